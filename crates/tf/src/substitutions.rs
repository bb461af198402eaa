//! User-requested substitutions: custom functions in place of ops, and checked assertions.
//!
//! The affected nodes become ops of this compiler before any other stage reads the graph, so that
//! unregistered ops get a signature.

use crate::op_def;
use crate::proto::{AttrValue, GraphDef, ListValue, NodeDef, attr_value::Value};
use crate::{DataType, PartialShape};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use support::{Error, Result};

/// Op of a node that calls a user-supplied function.
pub const CUSTOM_CALL: &str = "_CustomCall";

/// Op of an `Assert` that is checked at run time.
pub const CHECKED_ASSERT: &str = "_CheckedAssert";

/// Names of a node's outputs: the output argument of each, and its index within that argument.
type OutputNames = Vec<(String, usize)>;

/// Treatment of `Assert`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asserts {
    /// Assertions are not checked.
    #[default]
    Ignored,
    /// A failed assertion makes the run fail.
    Reported,
    /// A failed assertion aborts the process.
    Abort,
}

/// A user-supplied function that is called in place of an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCall {
    /// C symbol of the function.
    pub symbol: String,
    /// Outputs of the function. If empty, they follow from the op's signature and the node's
    /// attributes.
    pub outputs: Vec<CustomOutput>,
}

/// An output of a user-supplied function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomOutput {
    /// Data type. Defaults to that of the node's attribute `T`.
    pub data_type: Option<DataType>,
    /// Sizes.
    pub shape: CustomShape,
}

/// The sizes of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomShape {
    /// The given sizes.
    Sizes(Vec<i64>),
    /// The sizes of the input with this index.
    OfInput(usize),
}

/// Substitutions for nodes, selected by op.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Substitutions {
    /// Custom calls, keyed by op.
    pub custom_calls: BTreeMap<String, CustomCall>,
    /// Treatment of assertions.
    pub asserts: Asserts,
}

impl fmt::Display for CustomOutput {
    /// Prints `float[2,3]` or `float[input0]`. Without a type, prints only the text in brackets:
    /// `input0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = match &self.shape {
            CustomShape::OfInput(number) => format!("input{number}"),
            CustomShape::Sizes(sizes) => sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(","),
        };
        match self.data_type {
            Some(data_type) => write!(f, "{data_type}[{shape}]"),
            None => f.write_str(&shape),
        }
    }
}

impl CustomOutput {
    /// Parses the displayed form.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = || {
            Error::invalid(format!(
                "invalid output '{text}': expected TYPE[SIZES], such as float[2,3] or int32[], TYPE[inputN] for the sizes \
                 of input N, or inputN for its sizes and the type of attribute T"
            ))
        };
        let (data_type, shape) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((data_type, shape)) => (Some(DataType::from_name(data_type).ok_or_else(invalid)?), shape),
            None if text.starts_with("input") => (None, text),
            None => return Err(invalid()),
        };
        if data_type.is_some_and(|data_type| data_type.primitive_type().is_none()) {
            return Err(Error::invalid(format!(
                "invalid output '{text}': expected an array of numbers or bools"
            )));
        }
        let shape = if let Some(number) = shape.strip_prefix("input") {
            CustomShape::OfInput(number.parse().map_err(|_| invalid())?)
        } else {
            let sizes = shape.split(',').filter(|size| !size.is_empty()).map(|size| size.trim().parse());
            let sizes: Vec<i64> = sizes.collect::<Result<_, _>>().map_err(|_| invalid())?;
            if sizes.iter().any(|&size| size < 0) {
                return Err(invalid());
            }
            CustomShape::Sizes(sizes)
        };
        Ok(Self { data_type, shape })
    }

    /// Parses outputs separated by semicolons. An empty text has no outputs.
    pub fn parse_all(text: &str) -> Result<Vec<Self>> {
        text.split(';').filter(|output| !output.is_empty()).map(|output| Self::parse(output.trim())).collect()
    }
}

impl Substitutions {
    /// Replaces the nodes of a graph and of its functions.
    pub fn apply(&self, graph: &mut GraphDef) -> Result<()> {
        let library = graph.library.iter().flat_map(|library| &library.function);
        let functions = library.filter_map(|f| f.signature.as_ref()).map(|signature| signature.name.as_str());
        if let Some(name) = functions.clone().find(|name| self.custom_calls.contains_key(*name)) {
            return Err(Error::invalid(format!(
                "--custom-call {name}: '{name}' is a function of the graph's library, which is compiled; only ops can be \
                 replaced"
            )));
        }
        for node in &mut graph.node {
            self.replace(node)?;
        }
        for function in graph.library.iter_mut().flat_map(|library| &mut library.function) {
            let mut outputs = BTreeMap::new();
            for node in &mut function.node_def {
                if let Some(names) = self.replace(node)? {
                    outputs.insert(node.name.clone(), names);
                }
            }
            if !outputs.is_empty() {
                let inputs = function.node_def.iter_mut().flat_map(|node| &mut node.input);
                inputs.chain(function.ret.values_mut()).try_for_each(|input| rename(input, &outputs))?;
            }
        }
        Ok(())
    }

    /// Replaces a node. If it now calls a custom function, returns the former names of its outputs.
    /// For unregistered ops, the list of names is empty.
    fn replace(&self, node: &mut NodeDef) -> Result<Option<OutputNames>> {
        if node.op == "Assert" && self.asserts != Asserts::Ignored {
            node.op = CHECKED_ASSERT.to_owned();
            node.attr.insert("aborts".to_owned(), Value::B(self.asserts == Asserts::Abort).into());
        }
        let Some(call) = self.custom_calls.get(&node.op) else { return Ok(None) };
        let at_node = |e: Error| e.context(format!("node '{}' (op {})", node.name, node.op));
        let (types, names) = outputs(node, call).map_err(at_node)?;
        let input_count = node.input.iter().filter(|input| !input.starts_with('^')).count();
        let described: Vec<String> = call.outputs.iter().map(CustomOutput::to_string).collect();
        let text = |text: String| AttrValue::from(Value::S(Bytes::from(text)));
        // Placeholders: the types of inputs are not known yet.
        let input_types = vec![DataType::Float; input_count];
        let added = [
            ("_input_types", type_list(&input_types)),
            ("_output_types", type_list(&types)),
            ("_op", text(std::mem::replace(&mut node.op, CUSTOM_CALL.to_owned()))),
            ("_symbol", text(call.symbol.clone())),
            ("_outputs", text(described.join(";"))),
        ];
        node.attr.extend(added.map(|(name, value)| (name.to_owned(), value)));
        Ok(Some(names))
    }
}

fn type_list(types: &[DataType]) -> AttrValue {
    let list = ListValue { r#type: types.iter().map(|t| t.number()).collect(), ..ListValue::default() };
    Value::List(Box::new(list)).into()
}

/// Types of a node's outputs, and their names in the op's signature.
fn outputs(node: &NodeDef, call: &CustomCall) -> Result<(Vec<DataType>, OutputNames)> {
    let registered = match op_def::lookup(&node.op) {
        Some(signature) => {
            let mut values = node.attr.clone();
            op_def::fill_defaults(signature, &mut values)?;
            let (types, starts) = op_def::flat_types(&signature.output_arg, &values)?;
            let arguments = signature.output_arg.iter().zip(starts.windows(2));
            let names = arguments.flat_map(|(arg, bounds)| {
                (0..bounds[1] - bounds[0]).map(|number| (arg.name.clone(), number))
            });
            Some((types, names.collect::<Vec<_>>()))
        }
        None => None,
    };
    if call.outputs.is_empty() {
        if let Some(registered) = registered {
            return Ok(registered);
        }
        let count = match node.attr.get("_output_shapes").and_then(|v| v.value.as_ref()) {
            Some(Value::List(list)) => list.shape.len(),
            _ => 1,
        };
        return Ok((vec![type_attribute(node)?; count], Vec::new()));
    }
    let types: Vec<DataType> = call
        .outputs
        .iter()
        .map(|output| output.data_type.map_or_else(|| type_attribute(node), Ok))
        .collect::<Result<_>>()?;
    match registered {
        Some((registered, _)) if registered.len() != types.len() => Err(Error::invalid(format!(
            "--custom-call declares {} outputs, but the op has {}",
            types.len(),
            registered.len()
        ))),
        Some((_, names)) => Ok((types, names)),
        None => Ok((types, Vec::new())),
    }
}

/// Type in the attribute `T` of a node.
fn type_attribute(node: &NodeDef) -> Result<DataType> {
    match node.attr.get("T").and_then(|value| value.value.as_ref()) {
        Some(Value::Type(number)) => DataType::from_number(*number)
            .map(DataType::base)
            .ok_or_else(|| Error::invalid(format!("unknown type number {number} in attribute T"))),
        _ => Err(Error::invalid(
            "unknown output types, because the op is not registered in TensorFlow and the node has no attribute T: \
             declare them, as in --custom-call 'OP=symbol:float[2,3]'",
        )),
    }
}

/// Renames a reference to an output within a function to `node:outputs:number`.
fn rename(input: &mut String, outputs: &BTreeMap<String, OutputNames>) -> Result<()> {
    let mut parts = input.split(':');
    let (Some(name), Some(output)) = (parts.next(), parts.next()) else { return Ok(()) };
    let Some(names) = outputs.get(name) else { return Ok(()) };
    let index: usize = parts.next().and_then(|index| index.parse().ok()).unwrap_or(0);
    let number = match names.iter().position(|(known, number)| known == output && *number == index) {
        Some(number) => number,
        // The output names of an unregistered op are unknown. Only the first output can be
        // resolved.
        None if names.is_empty() && index == 0 => 0,
        None => {
            return Err(Error::unsupported(format!(
                "cannot resolve '{input}': only the first output of an unregistered op can be used within a function; use \
                 the op outside functions, or give it a single output"
            )));
        }
    };
    *input = format!("{name}:outputs:{number}");
    Ok(())
}

/// Shapes of a node's outputs as its attribute `_output_shapes` states them. Empty without it.
pub fn stated_shapes(attributes: &crate::Attributes) -> Result<Vec<PartialShape>> {
    if attributes.has("_output_shapes") { attributes.shapes("_output_shapes") } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_parsed_from_their_displayed_form() {
        for text in ["float[2,3]", "int32[]", "double[input1]", "input0", "bool[7]"] {
            assert_eq!(CustomOutput::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(CustomOutput::parse_all("float[1]; input0").unwrap().len(), 2);
        for text in ["", "float", "float[-1]", "strange[2]", "float[2", "string[2]", "input", "input-1"] {
            assert!(CustomOutput::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn unregistered_ops_get_a_signature() {
        let call =
            CustomCall { symbol: "f".to_owned(), outputs: CustomOutput::parse_all("float[input0]").unwrap() };
        let substitutions = Substitutions {
            custom_calls: BTreeMap::from([("Mine".to_owned(), call)]),
            ..Substitutions::default()
        };
        let node = NodeDef {
            name: "n".to_owned(),
            op: "Mine".to_owned(),
            input: vec!["x".to_owned(), "y:1".to_owned(), "^c".to_owned()],
            ..NodeDef::default()
        };
        let mut graph = GraphDef { node: vec![node], ..GraphDef::default() };
        substitutions.apply(&mut graph).unwrap();
        let node = &graph.node[0];
        assert_eq!(node.op, CUSTOM_CALL);
        let signature = op_def::lookup(CUSTOM_CALL).unwrap();
        assert_eq!(op_def::flat_types(&signature.input_arg, &node.attr).unwrap().0.len(), 2);
        assert_eq!(op_def::flat_types(&signature.output_arg, &node.attr).unwrap().0, [DataType::Float]);
    }

    #[test]
    fn outputs_within_functions_are_renamed_to_their_numbers() {
        let outputs = BTreeMap::from([
            ("own".to_owned(), Vec::new()),
            ("two".to_owned(), vec![("a".to_owned(), 0), ("b".to_owned(), 0), ("b".to_owned(), 1)]),
        ]);
        let renamed = |text: &str| {
            let mut text = text.to_owned();
            rename(&mut text, &outputs).map(|()| text)
        };
        assert_eq!(renamed("own:z:0").unwrap(), "own:outputs:0");
        assert_eq!(renamed("two:b:1").unwrap(), "two:outputs:2");
        assert_eq!(renamed("other:z:0").unwrap(), "other:z:0");
        assert!(renamed("own:z:1").is_err());
    }
}
