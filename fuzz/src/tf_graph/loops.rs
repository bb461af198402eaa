//! Loops over functions and lists of tensors, as frameworks write recurrent layers.

use super::Writer;
use super::layers::of_type;
use super::sizes::node;
use shape::Literal;
use tf::DataType;
use tf::proto::{ArgDef, FunctionDef, ListValue, NameAttrList, NodeDef, OpDef, attr_value::Value};

const FLOAT: DataType = DataType::Float;
const INT: DataType = DataType::Int32;
const LIST: DataType = DataType::Variant;

fn types(data_types: &[DataType]) -> Value {
    let r#type = data_types.iter().map(|t| t.number()).collect();
    Value::List(Box::new(ListValue { r#type, ..ListValue::default() }))
}

fn function_name(name: &str) -> Value {
    Value::Func(NameAttrList { name: name.to_owned(), ..NameAttrList::default() })
}

/// Returns a function. Arguments are named `a0`, `a1`, and so on.
fn function(
    name: &str,
    arguments: &[DataType],
    nodes: Vec<NodeDef>,
    results: &[(&str, DataType)],
) -> FunctionDef {
    let arg = |name: String, t: DataType| ArgDef { name, r#type: t.number(), ..ArgDef::default() };
    let signature = OpDef {
        name: name.to_owned(),
        input_arg: arguments.iter().enumerate().map(|(k, t)| arg(format!("a{k}"), *t)).collect(),
        output_arg: results.iter().enumerate().map(|(k, (_, t))| arg(format!("r{k}"), *t)).collect(),
        ..OpDef::default()
    };
    let ret = results.iter().enumerate().map(|(k, (value, _))| (format!("r{k}"), (*value).to_owned()));
    FunctionDef { signature: Some(signature), node_def: nodes, ret: ret.collect(), ..FunctionDef::default() }
}

impl Writer {
    /// A constant inside a function.
    fn inner_constant(&mut self, name: &str, data_type: DataType, literal: &Literal) -> NodeDef {
        self.constant(data_type, literal);
        self.tensors.pop();
        let node = self.nodes.pop().unwrap_or_default();
        NodeDef { name: name.to_owned(), ..node }
    }

    fn condition(&mut self, arguments: &[DataType]) -> String {
        let name = format!("below{}", self.functions.len());
        let less = node("less", "Less", &["a0", "a1"], &[("T", of_type(INT))]);
        self.functions.push(function(&name, arguments, vec![less], &[("less:z:0", DataType::Bool)]));
        name
    }

    /// A loop that counts to a constant or to a size, and changes an array.
    pub(super) fn repetition(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(1, 3)?;
        let d = self.draw.below(x.sizes.len());
        let count = if self.draw.once_in(2) { x.sizes[d] } else { self.draw.between(0, 3) };
        let limit = self.integers(INT, &[], &[count])?;
        let start = self.integers(INT, &[], &[0])?;
        let state = [INT, INT, FLOAT];
        let cond = self.condition(&state);
        let body = format!("body{}", self.functions.len());
        let op = self.draw.choose(&["Tanh", "Sigmoid", "Abs", "Neg"]);
        let nodes = vec![
            self.inner_constant("one", INT, &Literal::scalar(1i32)),
            node("next", "AddV2", &["a0", "one:output:0"], &[("T", of_type(INT))]),
            self.inner_constant("half", FLOAT, &Literal::scalar(0.5f32)),
            node("part", "Mul", &["a2", "half:output:0"], &[("T", of_type(FLOAT))]),
            node("other", op, &["a2"], &[("T", of_type(FLOAT))]),
            node("sum", "AddV2", &["part:z:0", "other:y:0"], &[("T", of_type(FLOAT))]),
        ];
        self.functions.push(function(
            &body,
            &state,
            nodes,
            &[("next:z:0", INT), ("a1", INT), ("sum:z:0", FLOAT)],
        ));
        let attr = [("T", types(&state)), ("cond", function_name(&cond)), ("body", function_name(&body))];
        let name = self.add("StatelessWhile", &[&start, &limit, &x.name], &attr);
        Some((format!("{name}:2"), FLOAT))
    }

    /// A recurrent layer: `[steps, ...]` in, the states of all steps or the last one out.
    pub(super) fn recurrent(&mut self) -> Option<(String, DataType)> {
        let x = self.hidden(2, 3)?;
        let rank = x.sizes.len();
        // The steps are the first or the second dimension.
        let swaps = rank == 3 && !self.draw.once_in(3);
        let (mut name, mut sizes) = (x.name, x.sizes);
        if swaps {
            let order = self.integers(INT, &[3], &[1, 0, 2])?;
            name = self.add("Transpose", &[&name, &order], &[("T", of_type(FLOAT))]);
            sizes.swap(0, 1);
        }
        let (steps, rest) = (sizes[0], &sizes[1..]);
        let known: Vec<i64> = rest.iter().map(|&s| if self.names.are_in(&[s]) { -1 } else { s }).collect();
        let start = self.integers(INT, &[], &[0])?;
        let element_shape = self.integers(INT, &[known.len() as i64], &known)?;
        let list_attr = [("element_dtype", of_type(FLOAT)), ("shape_type", of_type(INT))];
        let list = self.add("TensorListFromTensor", &[&name, &element_shape], &list_attr);
        // A number of steps that is no named size may still follow from one.
        let limit = if self.names.is_empty() || self.names.are_in(&[steps]) {
            self.integers(INT, &[], &[steps])?
        } else {
            self.add("TensorListLength", &[&list], &[])
        };
        let out = self.add("TensorListReserve", &[&element_shape, &limit], &list_attr);
        let dims = self.integers(INT, &[rest.len() as i64], rest)?;
        let zero = self.constant(FLOAT, &Literal::scalar(0f32));
        let begin = self.add("Fill", &[&dims, &zero], &[("T", of_type(FLOAT)), ("index_type", of_type(INT))]);

        let state = [INT, INT, LIST, LIST, FLOAT];
        let cond = self.condition(&state);
        let body = format!("body{}", self.functions.len());
        let known = Literal::from_elements(
            &[known.len() as i64],
            &known.iter().map(|&size| size as i32).collect::<Vec<_>>(),
        );
        let get = [("element_dtype", of_type(FLOAT))];
        let nodes = vec![
            self.inner_constant("one", INT, &Literal::scalar(1i32)),
            node("next", "AddV2", &["a0", "one:output:0"], &[("T", of_type(INT))]),
            self.inner_constant("sizes", INT, &known),
            node("item", "TensorListGetItem", &["a2", "a0", "sizes:output:0"], &get),
            node("sum", "AddV2", &["item:item:0", "a4"], &[("T", of_type(FLOAT))]),
            node("state", "Tanh", &["sum:z:0"], &[("T", of_type(FLOAT))]),
            node("set", "TensorListSetItem", &["a3", "a0", "state:y:0"], &get),
        ];
        self.functions.push(function(
            &body,
            &state,
            nodes,
            &[
                ("next:z:0", INT),
                ("a1", INT),
                ("a2", LIST),
                ("set:output_handle:0", LIST),
                ("state:y:0", FLOAT),
            ],
        ));
        let attr = [("T", types(&state)), ("cond", function_name(&cond)), ("body", function_name(&body))];
        let name = self.add("StatelessWhile", &[&start, &limit, &list, &out, &begin], &attr);
        if self.draw.once_in(2) {
            return Some((format!("{name}:4"), FLOAT));
        }
        let handle = format!("{name}:3");
        let y = self.add("TensorListStack", &[&handle, &element_shape], &get);
        if !swaps {
            return Some((y, FLOAT));
        }
        let order = self.integers(INT, &[3], &[1, 0, 2])?;
        Some((self.add("Transpose", &[&y, &order], &[("T", of_type(FLOAT))]), FLOAT))
    }
}
