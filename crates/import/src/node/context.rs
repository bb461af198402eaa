//! What a rule sees of its node: inputs, attributes, compile-time constants. Building is in `build`.

use crate::bounded::takes_bounded;
use crate::builder::fold::{MAX_ADDITIONS, fold, fold_element, linear_element};
use crate::values::value::{Value, VariableId};
use crate::walk::importer::Importer;
use hlo::InstructionId;
use shape::{ArrayShape, Literal, PrimitiveType};
use support::{Code, Error, Result};
use tf::DataType;

/// No shape has so many elements: arithmetic with the numbers of elements, of bytes and of bits stays within `i64`.
const MOST_ELEMENTS: i64 = 1 << 56;

/// One node while it is translated. Everything that is built through it carries the node's op and name.
pub(crate) struct NodeContext<'i, 'p> {
    pub(crate) importer: &'i mut Importer<'p>,
    pub(crate) node: &'p tf::Node,
    /// The graph or function that the node is of.
    pub(crate) graph: &'p tf::Graph,
    /// The node's name, with the names of the calls that lead to it before it.
    pub(crate) name: String,
    pub(crate) inputs: Vec<Value>,
}

impl<'p> NodeContext<'_, 'p> {
    /// An error about this node; the driver adds its name, op and input shapes.
    pub(crate) fn invalid(&self, message: impl Into<String>) -> Error {
        Error::invalid(message)
    }

    /// Refuses unless `holds`.
    pub(crate) fn check(&self, holds: bool, message: impl FnOnce() -> String) -> Result<()> {
        if holds { Ok(()) } else { Err(self.invalid(message())) }
    }

    /// The array at an input; a reference to a variable is read now.
    pub(crate) fn input(&mut self, k: usize) -> Result<InstructionId> {
        match self.value(k)? {
            Value::Array(id) if self.is_bounded(id) && !takes_bounded(&self.node.op) => {
                Err(Error::unsupported(format!(
                    "input {k} has a dimension whose size only a run knows, and {} is not supported for such arrays yet; \
                     give the input a fixed size first, as XlaRemoveDynamicDimensionSize does",
                    self.node.op
                )).coded(Code::BoundedSize))
            }
            Value::Array(id) => Ok(id),
            Value::Reference(variable) => Ok(self.importer.read_variable(variable)),
            Value::Resource(variable) => Err(self.invalid(format!(
                "input {k} is the handle of variable '{}', but the op wants its value: put a ReadVariableOp between",
                self.importer.variable_name(variable)
            ))),
            other @ (Value::List(_) | Value::Stack(_) | Value::TensorArray(_)) => Err(self.invalid(format!(
                "input {k} is {}, but the op wants an array",
                other.kind()
            ))),
            Value::Opaque => Err(self.invalid(format!(
                "input {k} is a string or another value that cannot be computed with; only Assert may take one"
            ))),
        }
    }

    /// All inputs from a position on.
    pub(crate) fn inputs_from(&mut self, first: usize) -> Result<Vec<InstructionId>> {
        (first..self.inputs.len()).map(|k| self.input(k)).collect()
    }

    /// Each output is the input of its position. References to variables are read.
    pub(crate) fn pass_on(&mut self) -> Result<Vec<Value>> {
        (0..self.node.output_types.len())
            .map(|k| match self.value(k)? {
                Value::Reference(variable) => Ok(Value::Array(self.importer.read_variable(variable))),
                value => Ok(value),
            })
            .collect()
    }

    /// Whatever comes in at a position.
    pub(crate) fn value(&self, k: usize) -> Result<Value> {
        let value = self.inputs.get(k).copied();
        value.ok_or_else(|| {
            self.invalid(format!("the op wants an input {k}, but the node has {} inputs", self.inputs.len()))
        })
    }

    /// The variable whose handle or reference comes in at a position.
    pub(crate) fn variable(&self, k: usize) -> Result<VariableId> {
        match self.value(k)? {
            Value::Resource(variable) | Value::Reference(variable) => Ok(variable),
            _ => Err(self.invalid(format!("input {k} must be a variable"))),
        }
    }

    /// The shape of an array.
    pub(crate) fn array(&self, id: InstructionId) -> ArrayShape {
        self.importer.scope_ref().shape(id).expect_array().clone()
    }

    /// The sizes of an array.
    pub(crate) fn sizes(&self, id: InstructionId) -> Vec<i64> {
        self.array(id).sizes()
    }

    /// The rank of an array.
    pub(crate) fn rank(&self, id: InstructionId) -> usize {
        self.importer.scope_ref().shape(id).expect_array().rank()
    }

    /// The element type of an array.
    pub(crate) fn element_type(&self, id: InstructionId) -> PrimitiveType {
        self.importer.scope_ref().shape(id).expect_array().element_type
    }

    /// The element type that a type attribute names.
    pub(crate) fn type_attribute(&self, name: &str) -> Result<PrimitiveType> {
        let data_type = self.node.attributes.ty(name)?;
        self.primitive(data_type)
    }

    /// The element type of an output.
    pub(crate) fn output_type(&self, k: usize) -> Result<PrimitiveType> {
        let data_type = self.node.output_types.get(k).copied();
        let data_type = data_type.ok_or_else(|| Error::internal(format!("no type for output {k}")))?;
        self.primitive(data_type)
    }

    fn primitive(&self, data_type: DataType) -> Result<PrimitiveType> {
        data_type.base().primitive_type().ok_or_else(|| {
            Error::unsupported(format!(
                "tensors of {data_type} cannot be compiled; only numbers and bool can"
            ))
            .coded(Code::UnsupportedOp)
        })
    }

    /// A string attribute, or a value for an absent one.
    pub(crate) fn text_or(&self, name: &str, default: &'p str) -> Result<&'p str> {
        if self.node.attributes.has(name) { self.node.attributes.text(name) } else { Ok(default) }
    }

    /// The value of an input that must be known at compile time.
    pub(crate) fn constant(&mut self, k: usize) -> Result<Literal> {
        let id = self.input(k)?;
        let (module, scope) = self.importer.module_and_scope();
        match fold(module, scope, id) {
            Some(literal) => Ok(literal),
            None => Err(self.not_constant(k, id)),
        }
    }

    /// The value of an instruction, if it is known at compile time.
    pub(crate) fn fold(&mut self, id: InstructionId) -> Option<Literal> {
        let (module, scope) = self.importer.module_and_scope();
        fold(module, scope, id)
    }

    /// One integer of an input, if that one is known at compile time.
    pub(crate) fn constant_element(&mut self, k: usize, position: usize) -> Result<Option<i64>> {
        let id = self.input(k)?;
        let (module, scope) = self.importer.module_and_scope();
        Ok(fold_element(module, scope, id, position))
    }

    /// `end[position] - begin[position]`, if both are known up to the same run-time value.
    pub(crate) fn constant_difference(
        &mut self,
        end: usize,
        begin: usize,
        position: usize,
    ) -> Result<Option<i64>> {
        let (end, begin) = (self.input(end)?, self.input(begin)?);
        let (module, scope) = self.importer.module_and_scope();
        let end = linear_element(module, scope, end, position, MAX_ADDITIONS);
        let begin = linear_element(module, scope, begin, position, MAX_ADDITIONS);
        Ok(match (end, begin) {
            (Some(end), Some(begin)) if end.base == begin.base => end.offset.checked_sub(begin.offset),
            _ => None,
        })
    }

    /// The error of an input that must be known at compile time and is not.
    pub(crate) fn not_constant(&self, k: usize, id: InstructionId) -> Error {
        self.importer.wanted_constants.borrow_mut().insert((self.name.clone(), k));
        let origins = self.importer.origins(id);
        let origins = match origins.as_slice() {
            [] => "it is too large to be evaluated at compile time".to_owned(),
            origins => format!("it depends on {}", origins.join(", ")),
        };
        Error::invalid(format!(
            "Input {k} to node `{}` with op {} must be a compile-time constant: {origins}. Shapes, axes and the like \
             must follow from constants and from the shapes of feeds: make it a Const in the graph, or feed the \
             tensor that it leads to instead.",
            self.name, self.node.op
        )).coded(Code::NotConstant)
    }

    /// The integers of an input that must be known at compile time: a scalar or a vector.
    pub(crate) fn constant_i64s(&mut self, k: usize) -> Result<Vec<i64>> {
        let literal = self.constant(k)?;
        let rank = literal.array_shape().rank();
        self.check(rank <= 1, || format!("input {k} must be a scalar or a vector, but has rank {rank}"))?;
        literal.to_i64s().ok_or_else(|| self.invalid(format!("input {k} must hold integers")))
    }

    /// The integer of an input that must be known at compile time: one element.
    pub(crate) fn constant_i64(&mut self, k: usize) -> Result<i64> {
        match self.constant_i64s(k)?.as_slice() {
            [value] => Ok(*value),
            values => {
                Err(self.invalid(format!("input {k} must be a scalar, but has {} elements", values.len())))
            }
        }
    }

    /// Sizes from an input that must be known at compile time; each at least 0, with few enough elements.
    pub(crate) fn constant_sizes(&mut self, k: usize) -> Result<Vec<i64>> {
        let sizes = self.constant_i64s(k)?;
        let count = shape::index::element_count(&sizes).unwrap_or(i64::MAX);
        let fits = sizes.iter().all(|size| (0..MOST_ELEMENTS).contains(size)) && count < MOST_ELEMENTS;
        self.check(fits, || format!("input {k} is no shape: {}", list(&sizes)))?;
        Ok(sizes)
    }

    /// A dimension number, negative ones counted from the end.
    pub(crate) fn dimension(&self, axis: i64, rank: usize) -> Result<usize> {
        let rank = rank as i64;
        let dimension = if axis < 0 { axis + rank } else { axis };
        self.check((0..rank).contains(&dimension), || {
            format!(
                "axis {axis} is out of range for a tensor of rank {rank}: it must be in [{}, {rank})",
                -rank
            )
        })?;
        Ok(dimension as usize)
    }
}

/// A shape as TensorFlow prints it: `[2,3]`.
pub(crate) fn list(sizes: &[i64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
    format!("[{}]", sizes.join(","))
}
