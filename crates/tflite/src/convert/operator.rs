//! The operator that is being converted: what conversions read of it, and what they add.

use super::{Converter, DEEPEST, Use};
use crate::names::of_node;
use crate::schema::{Operator, Options, Quantization, Subgraph, Tensor};
use crate::variables::{Variable, key_of_counter, key_of_tensor};
use bytes::Bytes;
use shape::{ArrayShape, Literal, Scalar};
use std::collections::BTreeSet;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Attribute, Body, Outputs, Ref, scalar_bytes, shape_of, ty};
use tf::proto::attr_value::Value;

/// Most bytes of an operator's variable.
const MOST_STATE_BYTES: u64 = 1 << 30;

/// The operator that is being converted.
pub(crate) struct Op<'c, 'a> {
    pub(super) converter: &'c mut Converter<'a>,
    pub(super) subgraph: &'a Subgraph<'a>,
    /// Number of the subgraph.
    pub(super) number: usize,
    pub(super) operator: &'a Operator<'a>,
    pub(super) body: &'c mut Body,
    pub(super) values: &'c mut Vec<Option<Ref>>,
    pub(super) name: String,
}

impl<'a> Op<'_, 'a> {
    /// The operator in the file.
    pub(crate) fn operator(&self) -> &'a Operator<'a> {
        self.operator
    }

    pub(crate) fn options(&self) -> &'a Options<'a> {
        &self.operator.options
    }

    pub(crate) fn input_count(&self) -> usize {
        self.operator.inputs.len()
    }

    pub(crate) fn output_count(&self) -> usize {
        self.operator.outputs.len()
    }

    /// True if an optional input is present.
    pub(crate) fn has_input(&self, k: usize) -> bool {
        matches!(self.operator.inputs.get(k), Some(Some(_)))
    }

    fn input_tensor(&self, k: usize) -> Result<usize> {
        self.operator.inputs.get(k).copied().flatten().ok_or_else(|| {
            Error::invalid(format!("input {k} is missing: the operator has {} inputs", self.input_count()))
        })
    }

    fn output_tensor(&self, k: usize) -> Result<usize> {
        self.operator.outputs.get(k).copied().ok_or_else(|| {
            Error::invalid(format!("output {k} is missing: the operator has {} outputs", self.output_count()))
        })
    }

    /// An input as the file describes it.
    pub(crate) fn tensor(&self, k: usize) -> Result<&'a Tensor> {
        Ok(&self.subgraph.tensors[self.input_tensor(k)?])
    }

    /// An output as the file describes it.
    pub(crate) fn result(&self, k: usize) -> Result<&'a Tensor> {
        Ok(&self.subgraph.tensors[self.output_tensor(k)?])
    }

    /// A tensor that describes values inside of the operator.
    pub(crate) fn intermediate(&self, k: usize) -> Option<&'a Tensor> {
        self.operator.intermediates.get(k).map(|&tensor| &self.subgraph.tensors[tensor])
    }

    /// The quantization of an input that has one.
    pub(crate) fn quantization(&self, k: usize) -> Result<Option<&'a Quantization>> {
        Ok(self.tensor(k)?.quantization.as_ref())
    }

    pub(crate) fn data_type(&self, k: usize) -> Result<DataType> {
        Ok(self.tensor(k)?.data_type)
    }

    /// The sizes of an input.
    pub(crate) fn sizes(&self, k: usize) -> Result<&'a [i64]> {
        Ok(&self.tensor(k)?.sizes)
    }

    /// True if an input depends on values, not only on shapes, of the subgraph's inputs.
    pub(crate) fn is_fed(&self, k: usize) -> Result<bool> {
        let Subgraph { tensors, inputs, operators, .. } = self.subgraph;
        let mut pending = vec![self.input_tensor(k)?];
        let mut seen = BTreeSet::new();
        while let Some(tensor) = pending.pop() {
            if inputs.contains(&tensor) {
                return Ok(true);
            }
            if tensors[tensor].contents.is_some() || !seen.insert(tensor) {
                continue;
            }
            let producer = operators.iter().find(|operator| operator.outputs.contains(&tensor));
            let reads = producer.filter(|operator| !matches!(operator.op, "SHAPE" | "RANK"));
            pending.extend(reads.iter().flat_map(|operator| operator.inputs.iter().flatten()));
        }
        Ok(false)
    }

    /// The value of an input.
    pub(crate) fn input(&mut self, k: usize) -> Result<Ref> {
        let tensor = self.input_tensor(k)?;
        self.converter.value(self.subgraph, self.body, self.values, tensor)
    }

    /// The values of all inputs.
    pub(crate) fn inputs(&mut self) -> Result<Vec<Ref>> {
        (0..self.input_count()).map(|k| self.input(k)).collect()
    }

    /// The numbers of a constant input of integers.
    pub(crate) fn constant_ints(&self, k: usize) -> Result<Option<Vec<i64>>> {
        let Tensor { data_type, sizes, contents, .. } = self.tensor(k)?;
        if sizes.contains(&0) {
            return Ok(Some(Vec::new()));
        }
        let (Some(contents), Some(element)) = (contents, data_type.primitive_type()) else { return Ok(None) };
        let shape = ArrayShape::new(element, sizes);
        Ok(Literal::from_bytes(shape, contents.clone()).and_then(|literal| literal.to_i64s()))
    }

    /// The numbers of an input of integers, which must be constant.
    pub(crate) fn required_ints(&self, k: usize, what: &str) -> Result<Vec<i64>> {
        self.constant_ints(k)?.ok_or_else(|| Error::unsupported(format!("{what} must be a constant")))
    }

    /// Adds a node.
    pub(crate) fn add(
        &mut self,
        op: &str,
        inputs: &[Ref],
        attributes: impl IntoIterator<Item = Attribute>,
    ) -> Result<Outputs> {
        self.body.add(&format!("{}/{op}", self.name), op, inputs, attributes)
    }

    /// Adds a node of an op that is not registered.
    pub(crate) fn add_custom(
        &mut self,
        op: &str,
        inputs: &[Ref],
        attributes: impl IntoIterator<Item = Attribute>,
    ) -> Outputs {
        self.body.add_custom(
            &format!("{}/{op}", self.name),
            op,
            inputs,
            self.operator.outputs.len(),
            attributes,
        )
    }

    /// Adds a node with one output.
    pub(crate) fn node(
        &mut self,
        op: &str,
        inputs: &[Ref],
        attributes: impl IntoIterator<Item = Attribute>,
    ) -> Result<Ref> {
        Ok(self.add(op, inputs, attributes)?.remove(0))
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, data_type: DataType, sizes: &[i64], bytes: Bytes) -> Result<Ref> {
        self.body.constant(&format!("{}/Const", self.name), data_type, sizes, bytes)
    }

    /// Adds a vector of 32-bit integers.
    pub(crate) fn int_vector(&mut self, values: &[i64]) -> Result<Ref> {
        let bytes: Vec<u8> = values.iter().flat_map(|&value| (value as i32).to_le_bytes()).collect();
        self.constant(DataType::Int32, &[values.len() as i64], bytes.into())
    }

    /// Adds 64-bit integers.
    pub(crate) fn longs(&mut self, values: &[i64], sizes: &[i64]) -> Result<Ref> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(DataType::Int64, sizes, bytes.into())
    }

    /// Adds a vector of 64-bit integers.
    pub(crate) fn long_vector(&mut self, values: &[i64]) -> Result<Ref> {
        self.longs(values, &[values.len() as i64])
    }

    /// Adds a 32-bit integer.
    pub(crate) fn int(&mut self, value: i64) -> Result<Ref> {
        self.constant(DataType::Int32, &[], Bytes::copy_from_slice(&(value as i32).to_le_bytes()))
    }

    /// Adds a scalar of a type.
    pub(crate) fn scalar(&mut self, data_type: DataType, value: f64) -> Result<Ref> {
        self.constant(data_type, &[], scalar_bytes(data_type, value)?)
    }

    /// Adds an array of integers.
    pub(crate) fn integers(&mut self, data_type: DataType, sizes: &[i64], values: &[i64]) -> Result<Ref> {
        let element = data_type.primitive_type().filter(|element| element.is_integer());
        let element = element.ok_or_else(|| {
            Error::invalid(format!("an input of type {data_type}, where integers are expected"))
        })?;
        let scalars = values.iter().map(|&value| Scalar::Signed(value));
        let literal = Literal::from_scalars(ArrayShape::new(element, sizes), scalars);
        self.constant(data_type, sizes, literal.bytes().clone())
    }

    /// Sets an output.
    pub(crate) fn set(&mut self, k: usize, value: Ref) -> Result<()> {
        let tensor = self.output_tensor(k)?;
        self.values[tensor] = Some(value);
        Ok(())
    }

    /// Sets the first outputs, as many as there are.
    pub(crate) fn set_all(&mut self, values: Outputs) -> Result<()> {
        for (k, value) in values.into_iter().enumerate().take(self.output_count()) {
            self.set(k, value)?;
        }
        Ok(())
    }

    /// A subgraph by its number.
    pub(crate) fn subgraph(&self, number: i64) -> Result<(usize, &'a Subgraph<'a>)> {
        let index =
            usize::try_from(number).ok().filter(|&index| index < self.converter.model.subgraphs.len());
        let index = index.ok_or_else(|| {
            Error::invalid(format!(
                "subgraph {number} does not exist: the file has {}",
                self.converter.model.subgraphs.len()
            ))
        })?;
        Ok((index, &self.converter.model.subgraphs[index]))
    }

    /// The name of a function.
    pub(crate) fn function(&mut self, usage: &Use) -> Result<String> {
        self.converter.function(usage)
    }

    /// The name of a function that applies an op to two scalars.
    pub(crate) fn combination(&mut self, op: &str, data_type: DataType) -> Result<String> {
        self.converter.combination(op, data_type)
    }

    /// The keys of the variables that subgraphs use.
    pub(crate) fn used_variables(&mut self, subgraphs: &[usize]) -> Result<Vec<String>> {
        let mut keys = BTreeSet::new();
        for &number in subgraphs {
            let used = self.converter.variables.used(self.converter.model, number, DEEPEST)?;
            keys.extend(used.iter().cloned());
        }
        Ok(keys.into_iter().collect())
    }

    /// States the value of a variable before the first run.
    pub(crate) fn initialize(&mut self, variable: &str, value: Literal) {
        self.converter.initial.insert(variable.to_owned(), value);
    }

    /// A variable that only this operator uses: an input whose value persists between runs.
    pub(crate) fn state(&mut self, k: usize) -> Result<Ref> {
        let index = self.input_tensor(k)?;
        let Tensor { name, data_type, sizes, is_variable, quantization, .. } = &self.subgraph.tensors[index];
        if !is_variable {
            return Err(Error::invalid(format!("input {k} '{name}' must be a variable")));
        }
        let element =
            data_type.primitive_type().ok_or_else(|| Error::invalid("a variable that is not an array"))?;
        let key = key_of_tensor(self.number, index, name);
        let shape = ArrayShape::new(element, sizes);
        let bytes = shape.byte_size();
        if bytes > MOST_STATE_BYTES {
            return Err(Error::unsupported(format!(
                "variable '{name}' has {bytes} bytes, which is too much"
            )));
        }
        // Bytes stand for zero by their zero point; other types are set to 0 in any case.
        let zero = quantization.as_ref().filter(|_| *data_type == DataType::Int8);
        let zero = zero.map_or(0, |quantization| quantization.zero_points[0] as u8);
        let zeros = Literal::from_bytes(shape, vec![zero; bytes as usize].into());
        self.initialize(&key, zeros.expect("as many bytes as the shape has"));
        self.variable(&key)
    }

    /// The handle of a variable.
    pub(crate) fn variable(&mut self, key: &str) -> Result<Ref> {
        if let Some(handle) = self.body.handles.get(key) {
            return Ok(handle.clone());
        }
        if self.body.is_function() {
            return Err(Error::internal(format!("a function has no handle of variable '{key}'")));
        }
        let Variable { name, data_type, sizes, quantization } = self.converter.variables.get(key)?;
        let attributes = [
            ty("dtype", *data_type),
            ("shape", Value::Shape(shape_of(sizes))),
            tf::foreign::text("shared_name", key),
        ];
        let handle = self.body.add(&of_node(name), "VarHandleOp", &[], attributes)?.remove(0);
        if let Some(quantization) = quantization {
            quantization.state(self.body, self.body.nodes.len() - 1, &handle);
        }
        self.body.handles.insert(key.to_owned(), handle.clone());
        Ok(handle)
    }

    /// The counter of an operator that draws random numbers: a vector of one `int64`.
    pub(crate) fn counter(&mut self) -> Result<Ref> {
        let key = key_of_counter(self.number, self.output_tensor(0)?);
        self.initialize(&key, Literal::from_elements(&[1], &[0i64]));
        self.variable(&key)
    }
}
