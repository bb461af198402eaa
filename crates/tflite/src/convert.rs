//! Conversion of subgraphs to a graph: the selected one becomes the graph itself, and those that it
//! calls become functions of the library.

mod operator;

pub(crate) use operator::Op;

use crate::names::{identifier, of_node};
use crate::schema::{Model, Operator, Signature, Subgraph, Tensor};
use crate::variables::Variables;
use bytes::Bytes;
use shape::Literal;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Body, Names, Ref, shape_of, ty};
use tf::proto::attr_value::Value;
use tf::proto::{
    ArgDef, Config, Feed, Fetch, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, OpDef, TensorId,
};

/// Deepest nesting of calls.
const DEEPEST: usize = 64;

/// Converts one operator.
pub(crate) type ConvertOperator = fn(&mut Op<'_, '_>) -> Result<()>;

/// State that all subgraphs share.
pub(crate) struct Converter<'a> {
    model: &'a Model<'a>,
    convert: ConvertOperator,
    /// Names of the functions by use.
    functions: BTreeMap<Use, String>,
    /// The subgraphs that are being converted.
    open: Vec<usize>,
    variables: Variables,
    function_names: Names,
    library: Vec<FunctionDef>,
    /// Values of variables before the first run, by shared name.
    pub(crate) initial: BTreeMap<String, Literal>,
}

/// A subgraph as a function, and what callers need of it besides its results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) subgraph: usize,
    /// Keys of the variables whose handles are arguments after the others.
    pub(crate) variables: Vec<String>,
    /// True if the handles are results, too, as the body of a loop returns them.
    pub(crate) returns_variables: bool,
    /// True for the condition of a loop: its result becomes a scalar.
    pub(crate) is_condition: bool,
}

/// A graph with its interface.
pub(crate) struct Converted {
    pub(crate) graph: GraphDef,
    pub(crate) config: Config,
    pub(crate) initial: BTreeMap<String, Literal>,
    /// Feeds with the sizes of the file, which leaves sizes other than the first open.
    pub(crate) settled: Vec<Settled>,
}

/// A feed with the sizes of the file, and which of them the file leaves open.
pub(crate) struct Settled {
    pub(crate) node: String,
    pub(crate) sizes: Vec<i64>,
    pub(crate) open: Vec<bool>,
}

/// Converts the subgraph of a signature, or the first one. `keeps_open` leaves open the sizes of
/// feeds that callers may choose.
pub(crate) fn convert(
    model: &Model<'_>,
    signature: Option<&Signature>,
    keeps_open: bool,
    convert: ConvertOperator,
) -> Result<Converted> {
    let mut converter = Converter {
        model,
        convert,
        functions: BTreeMap::new(),
        open: Vec::new(),
        variables: Variables::new(model)?,
        function_names: Names::default(),
        library: Vec::new(),
        initial: BTreeMap::new(),
    };
    let number = signature.map_or(0, |signature| signature.subgraph);
    let subgraph = &model.subgraphs[number];
    let mut body = Body::new(false);
    let mut values = vec![None; subgraph.tensors.len()];
    let mut config = Config::default();
    let tensor_names = |tensors: &[usize]| {
        tensors.iter().map(|&tensor| (subgraph.tensors[tensor].name.clone(), tensor)).collect::<Vec<_>>()
    };
    // A signature names the inputs; the order is that of the subgraph.
    let named = |tensors: &[usize], names: &[(String, usize)]| {
        if names.is_empty() {
            return tensor_names(tensors);
        }
        let mut names = names.to_vec();
        names.sort_by_key(|(_, tensor)| tensors.iter().position(|t| t == tensor));
        names
    };
    let (inputs, outputs) = match signature {
        Some(signature) => {
            (named(&subgraph.inputs, &signature.inputs), named(&subgraph.outputs, &signature.outputs))
        }
        None => (tensor_names(&subgraph.inputs), tensor_names(&subgraph.outputs)),
    };
    let mut names = Names::default();
    let mut settled = Vec::new();
    for (name, tensor) in inputs {
        let Tensor { data_type, sizes, open, .. } = &subgraph.tensors[tensor];
        let is_open = |d: usize| keeps_open && open.get(d).is_some_and(|is_open| *is_open);
        let sizes: Vec<i64> =
            sizes.iter().enumerate().map(|(d, &size)| if is_open(d) { -1 } else { size }).collect();
        let attributes = [ty("dtype", *data_type), ("shape", Value::Shape(shape_of(&sizes)))];
        let value =
            body.add(&of_node(&subgraph.tensors[tensor].name), "Placeholder", &[], attributes)?.remove(0);
        if let Some(quantization) = &subgraph.tensors[tensor].quantization {
            quantization.state(&mut body, 0, &value);
        }
        // The first dimension is the batch, for which the file's size is mostly a good one.
        if !keeps_open && open.iter().skip(1).any(|is_open| *is_open) {
            settled.push(Settled { node: value.node.clone(), sizes: sizes.clone(), open: open.clone() });
        }
        config.feed.push(Feed {
            id: Some(TensorId { node_name: value.node.clone(), output_index: 0 }),
            shape: Some(shape_of(&sizes)),
            name: names.unique(&identifier(&name)),
            r#type: data_type.number(),
            ..Feed::default()
        });
        values[tensor] = Some(value);
    }
    converter.open.push(number);
    converter.operators(subgraph, &mut body, &mut values)?;
    let mut names = Names::default();
    for (name, tensor) in outputs {
        let value = converter.value(subgraph, &mut body, &mut values, tensor)?;
        let Tensor { data_type, sizes, name: own, quantization, .. } = &subgraph.tensors[tensor];
        let mut value = body.after_effects(&of_node(own), &value, *data_type)?;
        if let Some(quantization) = quantization
            && !quantization.state(&mut body, 0, &value)
        {
            // Another tensor of the file, with another quantization, is the same value.
            value = body.add(&of_node(own), "Identity", &[value], [ty("T", *data_type)])?.remove(0);
            quantization.state(&mut body, 0, &value);
        }
        config.fetch.push(Fetch {
            id: Some(TensorId { node_name: value.node, output_index: value.output as i64 }),
            name: names.unique(&identifier(&name)),
            shape: Some(shape_of(sizes)),
            r#type: data_type.number(),
        });
    }
    let library = FunctionDefLibrary { function: converter.library, ..FunctionDefLibrary::default() };
    let graph = GraphDef { node: body.nodes, library: Some(library), ..GraphDef::default() };
    Ok(Converted { graph, config, initial: converter.initial, settled })
}

/// Gives the nodes that compute an operator's results the names of its tensors. The operator's
/// nodes are those from number `start` on.
fn name_results(
    subgraph: &Subgraph<'_>,
    operator: &Operator<'_>,
    body: &mut Body,
    values: &mut [Option<Ref>],
    start: usize,
) {
    for &tensor in &operator.outputs {
        let Some(value) = values[tensor].clone() else { continue };
        // A handle keeps the name of its variable.
        let is_new = |node: &NodeDef| node.name == value.node && node.op != "VarHandleOp";
        if value.output == 0 && body.nodes[start..].iter().any(is_new) {
            let renamed = body.rename(start, &value, &of_node(&subgraph.tensors[tensor].name));
            for &other in &operator.outputs {
                if let Some(other) = &mut values[other]
                    && other.node == value.node
                {
                    *other = other.renamed(&value, &renamed);
                }
            }
        }
    }
}

impl<'a> Converter<'a> {
    /// Converts the operators of a subgraph.
    fn operators(
        &mut self,
        subgraph: &'a Subgraph<'a>,
        body: &mut Body,
        values: &mut Vec<Option<Ref>>,
    ) -> Result<()> {
        for operator in &subgraph.operators {
            let first = operator.outputs.first().map(|&tensor| subgraph.tensors[tensor].name.as_str());
            let name = of_node(first.unwrap_or(operator.op));
            let start = body.nodes.len();
            let number = self.open.last().copied().unwrap_or(0);
            let mut op = Op { converter: self, subgraph, number, operator, body, values, name };
            let convert = op.converter.convert;
            convert(&mut op).map_err(|e| {
                let what = if operator.custom.is_empty() { operator.op } else { operator.custom.as_str() };
                e.context(format!("operator {what} of tensor '{}'", first.unwrap_or("")))
            })?;
            name_results(subgraph, operator, body, values, start);
            for &tensor in &operator.outputs {
                if let (Some(value), Some(quantization)) =
                    (&values[tensor], &subgraph.tensors[tensor].quantization)
                {
                    quantization.state(body, start, value);
                }
            }
        }
        Ok(())
    }

    /// The value of a tensor, which may be a constant.
    fn value(
        &mut self,
        subgraph: &Subgraph<'_>,
        body: &mut Body,
        values: &mut [Option<Ref>],
        tensor: usize,
    ) -> Result<Ref> {
        if let Some(value) = &values[tensor] {
            return Ok(value.clone());
        }
        let Tensor { name, data_type, sizes, contents, is_variable, .. } = &subgraph.tensors[tensor];
        let empty = sizes.contains(&0).then(Bytes::new);
        let value = match contents.clone().or(empty) {
            Some(contents) => body.constant(&of_node(name), *data_type, sizes, contents)?,
            None if *is_variable => {
                return Err(Error::unsupported(format!(
                    "tensor '{name}' is a variable, which only recurrent operators use"
                )));
            }
            None => {
                return Err(Error::invalid(format!(
                    "tensor '{name}' has no value: it is neither a constant nor the result of an earlier operator"
                )));
            }
        };
        values[tensor] = Some(value.clone());
        Ok(value)
    }

    /// The name of the function for a subgraph, which is converted on first use.
    fn function(&mut self, usage: &Use) -> Result<String> {
        if let Some(name) = self.functions.get(usage) {
            return Ok(name.clone());
        }
        let number = usage.subgraph;
        if self.open.contains(&number) {
            return Err(Error::invalid(format!("subgraph {number} calls itself")));
        }
        if self.open.len() > DEEPEST {
            return Err(Error::unsupported(format!("calls are nested more than {DEEPEST} deep")));
        }
        self.open.push(number);
        let subgraph = &self.model.subgraphs[number];
        let name = self.function_names.unique(&match subgraph.name.as_str() {
            "" => format!("subgraph_{number}"),
            name => identifier(name),
        });
        let function = self.function_of(subgraph, &name, usage);
        let function = function.map_err(|e| e.context(format!("subgraph {number} '{}'", subgraph.name)))?;
        self.library.push(function);
        self.functions.insert(usage.clone(), name.clone());
        self.open.pop();
        Ok(name)
    }

    /// The name of a function of two scalars.
    fn combination(&mut self, op: &str, data_type: DataType) -> Result<String> {
        let mut body = Body::new(true);
        let arguments = ["x", "y"].map(|name| Ref::argument(&body.names.unique(name)));
        let attributes = if op.starts_with("Logical") { Vec::new() } else { vec![ty("T", data_type)] };
        let result = body.add("result", op, &arguments, attributes)?.remove(0);
        let name = self.function_names.unique(&format!("combination_{op}"));
        let arg =
            |name: &str| ArgDef { name: name.to_owned(), r#type: data_type.number(), ..ArgDef::default() };
        let signature = OpDef {
            name: name.clone(),
            input_arg: vec![arg("x"), arg("y")],
            output_arg: vec![arg("result0")],
            ..OpDef::default()
        };
        let ret = BTreeMap::from([("result0".to_owned(), result.text().to_owned())]);
        let function =
            FunctionDef { signature: Some(signature), node_def: body.nodes, ret, ..FunctionDef::default() };
        self.library.push(function);
        Ok(name)
    }

    fn function_of(&mut self, subgraph: &'a Subgraph<'a>, name: &str, usage: &Use) -> Result<FunctionDef> {
        let mut body = Body::new(true);
        let mut values = vec![None; subgraph.tensors.len()];
        let mut signature = OpDef { name: name.to_owned(), ..OpDef::default() };
        let arg = |name: String, tensor: usize| ArgDef {
            name,
            r#type: subgraph.tensors[tensor].data_type.number(),
            ..ArgDef::default()
        };
        for (k, &tensor) in subgraph.inputs.iter().enumerate() {
            let argument = body.names.unique(&format!("arg{k}"));
            values[tensor] = Some(Ref::argument(&argument));
            signature.input_arg.push(arg(argument, tensor));
        }
        let handle = |name: String| ArgDef { name, r#type: DataType::Resource.number(), ..ArgDef::default() };
        for (k, key) in usage.variables.iter().enumerate() {
            let argument = body.names.unique(&format!("variable{k}"));
            body.handles.insert(key.clone(), Ref::argument(&argument));
            signature.input_arg.push(handle(argument));
        }
        self.operators(subgraph, &mut body, &mut values)?;
        let mut ret = BTreeMap::new();
        for (k, &tensor) in subgraph.outputs.iter().enumerate() {
            let result = format!("result{k}");
            let mut value = self.value(subgraph, &mut body, &mut values, tensor)?;
            if subgraph.inputs.contains(&tensor) {
                let data_type = subgraph.tensors[tensor].data_type;
                value = body.add(&result, "Identity", &[value], [ty("T", data_type)])?.remove(0);
            }
            if usage.is_condition {
                value = body.add("condition", "Squeeze", &[value], [ty("T", DataType::Bool)])?.remove(0);
            }
            ret.insert(result.clone(), value.text().to_owned());
            signature.output_arg.push(arg(result, tensor));
        }
        for (k, key) in usage.variables.iter().enumerate().filter(|_| usage.returns_variables) {
            let result = format!("handle{k}");
            ret.insert(result.clone(), body.handles[key].text().to_owned());
            signature.output_arg.push(handle(result));
        }
        let mut control_ret = BTreeMap::new();
        if let Some(last) = body.last_effect() {
            signature.is_stateful = true;
            signature.control_output.push("effects".to_owned());
            control_ret.insert("effects".to_owned(), last.to_owned());
        }
        Ok(FunctionDef {
            signature: Some(signature),
            node_def: body.nodes,
            ret,
            control_ret,
            ..FunctionDef::default()
        })
    }
}
