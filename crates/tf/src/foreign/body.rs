//! The nodes of a graph or function under construction.

use super::names::Names;
use crate::DataType;
use crate::proto::attr_value::Value;
use crate::proto::{AttrValue, Dim, ListValue, NameAttrList, NodeDef, TensorProto, TensorShapeProto};
use crate::{node_types, op_signature};
use bytes::Bytes;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::{Error, Result};

/// A tensor: an output of a node, as inputs and results name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// Name of the node.
    pub node: String,
    /// Number of the output.
    pub output: usize,
    text: String,
}

impl Ref {
    /// An argument of a function.
    pub fn argument(name: &str) -> Self {
        Self { node: name.to_owned(), output: 0, text: name.to_owned() }
    }

    /// The same output of a node that was renamed, given one of its outputs before and after.
    pub fn renamed(&self, before: &Self, after: &Self) -> Self {
        let rest = self.text.strip_prefix(before.node.as_str()).unwrap_or_default();
        Self { node: after.node.clone(), output: self.output, text: format!("{}{rest}", after.node) }
    }

    /// The text of a result of a function.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// An attribute with its value.
pub type Attribute = (&'static str, Value);

/// A new node: its outputs.
pub type Outputs = Vec<Ref>;

/// Nodes in order of execution.
#[derive(Debug, Default)]
pub struct Body {
    /// The nodes so far.
    pub nodes: Vec<NodeDef>,
    /// Their names.
    pub names: Names,
    /// True for a function, whose nodes name the arguments of outputs.
    is_function: bool,
    /// The last node with an effect, which the next one follows.
    last_effect: Option<String>,
    /// Handles of variables by key.
    pub handles: BTreeMap<String, Ref>,
}

impl Body {
    /// An empty graph or function.
    pub fn new(is_function: bool) -> Self {
        Self { is_function, ..Self::default() }
    }

    /// True for a function.
    pub fn is_function(&self) -> bool {
        self.is_function
    }

    /// Adds a node. Its name begins with `base`. A node with an effect follows the one before it.
    pub fn add(
        &mut self,
        base: &str,
        op: &str,
        inputs: &[Ref],
        attributes: impl IntoIterator<Item = Attribute>,
    ) -> Result<Outputs> {
        let signature = op_signature(op).ok_or_else(|| Error::internal(format!("op '{op}' is unknown")))?;
        let attr: BTreeMap<String, AttrValue> =
            attributes.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let types = node_types(signature, &signature.output_arg, &attr)?;
        let name = self.names.unique(base);
        let output = |output: usize| {
            let text = if self.is_function {
                let argument =
                    types.starts[..signature.output_arg.len()].iter().rposition(|&start| start <= output);
                let argument = argument.expect("outputs have arguments");
                format!("{name}:{}:{}", signature.output_arg[argument].name, output - types.starts[argument])
            } else if output == 0 {
                name.clone()
            } else {
                format!("{name}:{output}")
            };
            Ref { node: name.clone(), output, text }
        };
        let outputs = (0..types.types.len()).map(output).collect();
        let mut input: Vec<String> = inputs.iter().map(|input| input.text.clone()).collect();
        if signature.is_stateful && op != "VarHandleOp" {
            input.extend(self.last_effect.replace(name.clone()).map(|last| format!("^{last}")));
        }
        self.nodes.push(NodeDef { name, op: op.to_owned(), input, attr, ..NodeDef::default() });
        Ok(outputs)
    }

    /// Adds a constant.
    pub fn constant(&mut self, base: &str, data_type: DataType, sizes: &[i64], bytes: Bytes) -> Result<Ref> {
        let tensor = TensorProto {
            dtype: data_type.number(),
            tensor_shape: Some(shape_of(sizes)),
            tensor_content: bytes,
            ..TensorProto::default()
        };
        let attributes = [ty("dtype", data_type), ("value", Value::Tensor(Box::new(tensor)))];
        Ok(self.add(base, "Const", &[], attributes)?.remove(0))
    }

    /// Renames one of the nodes from number `start` on, which no earlier node uses. Returns its
    /// first output.
    pub fn rename(&mut self, start: usize, value: &Ref, wanted: &str) -> Ref {
        let name = self.names.unique(wanted);
        let old = value.node.as_str();
        // In functions, inputs name the output, too.
        let renamed = |text: &str| {
            let (mark, rest) = text.split_at(usize::from(text.starts_with('^')));
            let (node, output) = rest.split_at(rest.find(':').unwrap_or(rest.len()));
            (node == old).then(|| format!("{mark}{name}{output}"))
        };
        for node in &mut self.nodes[start..] {
            if node.name == old {
                node.name.clone_from(&name);
            }
            for input in &mut node.input {
                if let Some(text) = renamed(input) {
                    *input = text;
                }
            }
        }
        if self.last_effect.as_deref() == Some(old) {
            self.last_effect = Some(name.clone());
        }
        Ref { text: renamed(&value.text).unwrap_or_else(|| name.clone()), node: name, output: value.output }
    }

    /// States the quantization of the output of one of the nodes from number `start` on. Returns
    /// false if none of them computes it, or if it has another quantization.
    pub fn quantize(&mut self, start: usize, value: &Ref, scale: f32, zero_point: i64) -> bool {
        let Some(node) = self.nodes[start..].iter_mut().find(|node| node.name == value.node) else {
            return false;
        };
        let mut list = |name: &str| match node.attr.remove(name).and_then(|attribute| attribute.value) {
            Some(Value::List(list)) => *list,
            _ => ListValue::default(),
        };
        let (mut scales, mut zero_points) = (list("_scales"), list("_zero_points"));
        let count = scales.f.len().max(value.output + 1);
        scales.f.resize(count, 0.0);
        zero_points.i.resize(count, 0);
        let (known, zero) = (&mut scales.f[value.output], &mut zero_points.i[value.output]);
        let agrees = *known == 0.0 || (*known, *zero) == (scale, zero_point);
        if agrees {
            (*known, *zero) = (scale, zero_point);
        }
        for (name, list) in [("_scales", scales), ("_zero_points", zero_points)] {
            node.attr.insert(name.to_owned(), Value::List(Box::new(list)).into());
        }
        agrees
    }

    /// Adds a node of an op that is not registered, for `--custom-call`.
    pub fn add_custom(
        &mut self,
        base: &str,
        op: &str,
        inputs: &[Ref],
        outputs: usize,
        attributes: impl IntoIterator<Item = Attribute>,
    ) -> Outputs {
        let name = self.names.unique(base);
        let output = |output: usize| {
            let text = if self.is_function {
                format!("{name}:outputs:{output}")
            } else if output == 0 {
                name.clone()
            } else {
                format!("{name}:{output}")
            };
            Ref { node: name.clone(), output, text }
        };
        let outputs = (0..outputs).map(output).collect();
        let attr = attributes.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let input = inputs.iter().map(|input| input.text.clone()).collect();
        self.nodes.push(NodeDef { name, op: op.to_owned(), input, attr, ..NodeDef::default() });
        outputs
    }

    /// The last node with an effect, if there is one.
    pub fn last_effect(&self) -> Option<&str> {
        self.last_effect.as_deref()
    }

    /// Makes a value wait for all effects so far.
    pub fn after_effects(&mut self, base: &str, value: &Ref, data_type: DataType) -> Result<Ref> {
        let Some(last) = self.last_effect.clone() else { return Ok(value.clone()) };
        let output = self.add(base, "Identity", std::slice::from_ref(value), [ty("T", data_type)])?.remove(0);
        self.nodes.last_mut().expect("just added").input.push(format!("^{last}"));
        Ok(output)
    }
}

/// A shape as a message.
pub fn shape_of(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}

/// A type.
pub fn ty(name: &'static str, data_type: DataType) -> Attribute {
    (name, Value::Type(data_type.number()))
}

/// An integer.
pub fn int(name: &'static str, value: i64) -> Attribute {
    (name, Value::I(value))
}

/// A number.
pub fn float(name: &'static str, value: f32) -> Attribute {
    (name, Value::F(value))
}

/// A truth value.
pub fn flag(name: &'static str, value: bool) -> Attribute {
    (name, Value::B(value))
}

/// A string.
pub fn text(name: &'static str, value: &str) -> Attribute {
    text_bytes(name, value.as_bytes())
}

/// A string of any bytes.
pub fn text_bytes(name: &'static str, value: &[u8]) -> Attribute {
    (name, Value::S(Bytes::copy_from_slice(value)))
}

/// A list of integers.
pub fn ints(name: &'static str, values: &[i64]) -> Attribute {
    (name, Value::List(Box::new(ListValue { i: values.to_vec(), ..ListValue::default() })))
}

/// A list of numbers.
pub fn floats(name: &'static str, values: &[f32]) -> Attribute {
    (name, Value::List(Box::new(ListValue { f: values.to_vec(), ..ListValue::default() })))
}

/// A list of types.
pub fn types(name: &'static str, types: &[DataType]) -> Attribute {
    let r#type = types.iter().map(|data_type| data_type.number()).collect();
    (name, Value::List(Box::new(ListValue { r#type, ..ListValue::default() })))
}

/// A function.
pub fn function(name: &'static str, function: &str) -> Attribute {
    (name, Value::Func(NameAttrList { name: function.to_owned(), ..NameAttrList::default() }))
}

/// A list of functions.
pub fn functions(name: &'static str, functions: &[String]) -> Attribute {
    let of = |function: &String| NameAttrList { name: function.clone(), ..NameAttrList::default() };
    (
        name,
        Value::List(Box::new(ListValue { func: functions.iter().map(of).collect(), ..ListValue::default() })),
    )
}

/// Returns the bytes of a scalar, the number of a type nearest to a value. Fails for types that are
/// not numbers.
pub fn scalar_bytes(data_type: DataType, value: f64) -> Result<Bytes> {
    let element = data_type.primitive_type().ok_or_else(|| Error::internal("not a number"))?;
    let scalar = match element {
        PrimitiveType::Pred => Scalar::Pred(value != 0.0),
        t if t.is_signed_integer() => Scalar::Signed(value as i64),
        t if t.is_unsigned_integer() => Scalar::Unsigned(value as u64),
        t if t.is_complex() => Scalar::Complex(value, 0.0),
        _ => Scalar::Float(value),
    };
    let literal = Literal::from_scalars(ArrayShape::new(element, &[]), [scalar]);
    Ok(literal.bytes().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<'a>(node: &'a NodeDef, name: &str) -> &'a ListValue {
        match &node.attr[name].value {
            Some(Value::List(list)) => list,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn a_node_states_the_quantization_of_each_output_once() {
        let mut body = Body::new(false);
        let attributes = [ty("T", DataType::Int8), int("num_split", 2)];
        let values = [Ref::argument("axis"), Ref::argument("x")];
        let outputs = body.add("parts", "Split", &values, attributes).expect("a node");
        assert!(body.quantize(0, &outputs[1], 0.5, -3));
        let node = &body.nodes[0];
        assert_eq!(
            (&list(node, "_scales").f, &list(node, "_zero_points").i),
            (&vec![0.0, 0.5], &vec![0, -3])
        );
        assert!(body.quantize(0, &outputs[1], 0.5, -3), "the same again");
        assert!(!body.quantize(0, &outputs[1], 0.5, -2), "another zero point");
        assert!(!body.quantize(1, &outputs[0], 0.5, 0), "none of the nodes");
        assert_eq!(list(&body.nodes[0], "_zero_points").i, [0, -3]);
    }
}
