//! Numbers that follow from the shapes of arrays: vectors and scalars with the sizes of named
//! dimensions.

use super::Writer;
use std::collections::BTreeMap;
use tf::DataType;
use tf::proto::{AttrValue, NodeDef, attr_value::Value};

impl Writer {
    /// Adds a node and returns its name.
    pub(super) fn add(&mut self, op: &str, input: &[&str], attr: &[(&str, Value)]) -> String {
        let name = format!("n{}", self.nodes.len());
        self.nodes.push(node(&name, op, input, attr));
        name
    }

    /// Adds an integer scalar or a vector. Numbers that stand for named dimensions become the
    /// sizes of arrays.
    pub(super) fn integers_of_shapes(
        &mut self,
        data_type: DataType,
        sizes: &[i64],
        values: &[i64],
    ) -> Option<String> {
        let is_known = !self.names.are_in(values);
        if is_known || !matches!(data_type, DataType::Int32 | DataType::Int64) {
            return if is_known { self.integers(data_type, sizes, values) } else { None };
        }
        let mut elements = Vec::new();
        for &value in values {
            elements.push(if self.names.are_in(&[value]) {
                self.size(data_type, value)?
            } else {
                self.integers(data_type, &[], &[value])?
            });
        }
        if sizes.is_empty() {
            return elements.pop();
        }
        let inputs: Vec<&str> = elements.iter().map(String::as_str).collect();
        let count = Value::I(inputs.len() as i64);
        Some(self.add("Pack", &inputs, &[("T", Value::Type(data_type.number())), ("N", count)]))
    }

    /// Adds the size of the named dimension that a number stands for, as a scalar.
    fn size(&mut self, data_type: DataType, stand_in: i64) -> Option<String> {
        let mut places = Vec::new();
        for tensor in &self.tensors {
            for (d, _) in tensor.sizes.iter().enumerate().filter(|(_, size)| **size == stand_in) {
                places.push((tensor.name.clone(), tensor.data_type, d as i64));
            }
        }
        let (name, own, d) = if places.is_empty() {
            (self.new_tensor(DataType::Float, &[stand_in])?, DataType::Float, 0)
        } else {
            self.draw.pick(&places)
        };
        let out = Value::Type(data_type.number());
        let shape =
            self.add("Shape", &[&name], &[("T", Value::Type(own.number())), ("out_type", out.clone())]);
        let index = |writer: &mut Self, value| writer.integers(DataType::Int32, &[1], &[value]);
        if self.draw.once_in(2) {
            let [d, axis] =
                [self.integers(DataType::Int32, &[], &[d])?, self.integers(DataType::Int32, &[], &[0])?];
            let int = Value::Type(DataType::Int32.number());
            let attr = [("Tparams", out), ("Tindices", int.clone()), ("Taxis", int)];
            return Some(self.add("GatherV2", &[&shape, &d, &axis], &attr));
        }
        let [begin, end, step] = [index(self, d)?, index(self, d + 1)?, index(self, 1)?];
        let int = Value::Type(DataType::Int32.number());
        let attr = [("T", out), ("Index", int), ("shrink_axis_mask", Value::I(1))];
        Some(self.add("StridedSlice", &[&shape, &begin, &end, &step], &attr))
    }
}

/// Returns a node.
pub(super) fn node(name: &str, op: &str, input: &[&str], attr: &[(&str, Value)]) -> NodeDef {
    let attr: BTreeMap<String, AttrValue> =
        attr.iter().map(|(name, value)| ((*name).to_owned(), AttrValue::from(value.clone()))).collect();
    NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        input: input.iter().map(|name| (*name).to_owned()).collect(),
        attr,
        ..NodeDef::default()
    }
}
