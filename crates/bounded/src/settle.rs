//! Bounded shapes in existing HLO: applies the rules for graphs instruction by instruction.

mod computations;
mod conditional;

use crate::arrays::Size;
use crate::builder::Builder;
use hlo::{
    Computation, ComputationId, Instruction, InstructionId, Module, Op, OpMetadata, SizeParameter, Traits,
};
use shape::{ArrayShape, PrimitiveType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use support::{Error, Result};

/// A value of the entry: an array, a token, or the elements of a tuple, which need no instruction.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    One(InstructionId),
    Many(Vec<Value>),
}

impl Value {
    /// Appends its arrays and tokens, flattening nested tuples.
    fn flat(self, leaves: &mut Vec<InstructionId>) {
        match self {
            Self::One(id) => leaves.push(id),
            Self::Many(elements) => elements.into_iter().for_each(|element| element.flat(leaves)),
        }
    }
}

/// True if a parameter of the entry has a bounded size, or if the entry, or a computation that it
/// calls, sets data-dependent sizes of arrays.
pub fn has_bounded_shapes(module: &Module) -> bool {
    let signature = module.entry_computation().program_shape();
    !signature.parameters.iter().all(is_static) || sets_sizes(module, module.entry())
}

pub(crate) fn is_static(shape: &Shape) -> bool {
    shape.leaves().iter().all(|(_, array)| array.is_static())
}

/// True if a computation, or one that it calls, sets sizes of arrays.
pub(crate) fn sets_sizes(module: &Module, root: ComputationId) -> bool {
    let sets_size = |op: &Op| {
        matches!(op, Op::SetDimensionSize { .. } | Op::DynamicReshape {}) || is_slice_to_dynamic(op)
    };
    let mut seen = BTreeSet::from([root]);
    let mut pending = vec![root];
    while let Some(id) = pending.pop() {
        for (_, instruction) in module[id].instructions() {
            if sets_size(instruction.op()) {
                return true;
            }
            let called = instruction.op().called_computations();
            pending.extend(called.into_iter().filter(|&callee| seen.insert(callee)));
        }
    }
    false
}

/// Returns a module whose entry computes on arrays of static shapes, and sets the sizes of its
/// results. Each `set-dimension-size` is propagated through its consumers, which mask the padding
/// beyond a true size.
///
/// Each bounded dimension of a parameter gets a parameter that holds its size, after all others.
///
/// An error names the instruction that does not support this.
pub fn settle_bounded_shapes(module: &Module) -> Result<Module> {
    let mut settler = Settler::new(module.clone());
    let entry = module.entry_computation();
    let mut values: BTreeMap<InstructionId, Value> = BTreeMap::new();
    // Parameters keep their numbers, even those without uses.
    for (number, &id) in entry.parameters().iter().enumerate() {
        settler.set_metadata(entry[id].metadata().clone());
        let parameter = settler.parameter(number, entry[id].name(), entry[id].shape());
        values.insert(id, Value::One(parameter));
    }
    for &id in entry.parameters() {
        let value = settler.with_sizes(values[&id].clone(), entry[id].name(), entry[id].shape())?;
        values.insert(id, value);
    }
    for id in entry.post_order().into_iter().filter(|id| !entry.parameters().contains(id)) {
        settler.set_metadata(entry[id].metadata().clone());
        let value = settler.settled(entry, id, &values).map_err(|error| {
            error.context(format!("instruction '{}' ({})", entry[id].name(), entry[id].opcode().name()))
        })?;
        values.insert(id, value);
    }
    let root = values.remove(&entry.root()).expect("the root is not in post order");
    Ok(match root {
        Value::One(id) => settler.builder.finish_at(id),
        Value::Many(elements) => {
            let mut leaves = Vec::new();
            elements.into_iter().for_each(|element| element.flat(&mut leaves));
            settler.builder.finish(&leaves)
        }
    })
}

/// Replays instructions of a module through a builder.
struct Settler {
    builder: Builder,
    /// Computations of the module, and their settled versions.
    settled: BTreeMap<ComputationId, ComputationId>,
}

impl Settler {
    fn new(module: Module) -> Self {
        Self { builder: Builder::new(module), settled: BTreeMap::new() }
    }
}

impl Deref for Settler {
    type Target = Builder;

    fn deref(&self) -> &Builder {
        &self.builder
    }
}

impl DerefMut for Settler {
    fn deref_mut(&mut self) -> &mut Builder {
        &mut self.builder
    }
}

/// The custom call that XLA's own passes lower `set-dimension-size` to: the array, then the true
/// size of each dimension.
fn is_slice_to_dynamic(op: &Op) -> bool {
    matches!(op, Op::CustomCall { custom_call_target, .. } if custom_call_target == "SliceToDynamic")
}

impl Settler {
    /// Settles one instruction of the entry, given its settled operands.
    pub(crate) fn settled(
        &mut self,
        entry: &Computation,
        id: InstructionId,
        values: &BTreeMap<InstructionId, Value>,
    ) -> Result<Value> {
        let (op, shape) = (entry[id].op(), entry[id].shape());
        let operands: Vec<&Value> = entry[id].operands().iter().map(|operand| &values[operand]).collect();
        match op {
            Op::Tuple {} => return Ok(Value::Many(operands.into_iter().cloned().collect())),
            Op::GetTupleElement { index } => {
                if let Value::Many(elements) = operands[0] {
                    return Ok(elements[*index].clone());
                }
            }
            Op::Conditional { branch_computations } => {
                let is_given = operands.iter().any(|value| self.has_sizes(value));
                if is_given || self.see_sizes(branch_computations, shape) {
                    let chooser = self.joined(operands[0])?;
                    let arguments = &operands[1..];
                    return if is_given && self.may_run_all(branch_computations) {
                        self.settled_conditional(branch_computations, chooser, arguments)
                    } else {
                        self.settled_branches(branch_computations, chooser, arguments, shape)
                    };
                }
            }
            Op::While { condition, body } if self.see_sizes(&[*condition, *body], shape) => {
                return self.settled_while(*condition, *body, operands[0], shape);
            }
            _ => {}
        }
        let mut arrays = Vec::with_capacity(operands.len());
        for operand in operands {
            arrays.push(self.joined(operand)?);
        }
        let result = self.settled_array(&entry[id], &mut arrays)?;
        if self.scope_ref().tuple_sizes(result).is_some() {
            let count = shape.as_tuple().map_or(0, <[Shape]>::len);
            let element =
                |cx: &mut Self, index| Ok(Value::One(cx.op(Op::GetTupleElement { index }, &[result])?));
            return Ok(Value::Many((0..count).map(|index| element(self, index)).collect::<Result<_>>()?));
        }
        Ok(Value::One(result))
    }

    /// Adds a parameter of the entry, with the bounds of its shape.
    fn parameter(&mut self, number: usize, name: &str, shape: &Shape) -> InstructionId {
        let metadata = self.metadata().clone();
        let id = self.scope().add_entry_parameter(name, whole(shape), metadata);
        let sizes = self.module().size_parameters().iter();
        if let Some(&SizeParameter { low, high, .. }) = sizes.clone().find(|size| size.parameter == number) {
            self.add_size_parameter(id, low, high);
        }
        id
    }

    /// Adds a parameter for the size of each bounded dimension of a parameter, and sets the sizes.
    fn with_sizes(&mut self, value: Value, name: &str, shape: &Shape) -> Result<Value> {
        let (Value::One(id), false) = (&value, is_static(shape)) else { return Ok(value) };
        let Some(array) = shape.as_array() else {
            return Err(Error::unsupported(format!(
                "the parameter '{name}' of shape {shape} is a tuple of arrays of bounded size; pass each array by itself"
            )));
        };
        let mut sizes = Vec::with_capacity(array.rank());
        for (d, dimension) in array.dimensions.iter().enumerate() {
            sizes.push(if dimension.is_dynamic && dimension.size > 0 {
                let parameter = self.scope_ref().computation().parameters().len();
                let scalar = Shape::scalar(PrimitiveType::S32);
                let size =
                    self.scope().add_entry_parameter(&format!("{name}_{d}"), scalar, OpMetadata::default());
                let (low, high) = (0, dimension.size.min(i64::from(i32::MAX)));
                self.add_size_parameter(size, low, high);
                let mut all = self.module().size_parameters().to_vec();
                all.push(SizeParameter { parameter, low, high });
                self.module_mut().set_size_parameters(all);
                Some(size)
            } else {
                None
            });
        }
        Ok(Value::One(self.bounded(*id, &sizes)?))
    }

    /// Settles an instruction whose operands are one instruction each.
    fn settled_array(
        &mut self,
        instruction: &Instruction,
        arrays: &mut [InstructionId],
    ) -> Result<InstructionId> {
        let (op, shape) = (instruction.op(), instruction.shape());
        Ok(match op {
            Op::Parameter { .. } => {
                return Err(Error::internal("a parameter of the entry is not settled twice"));
            }
            Op::Constant { literal } => self.literal(literal.clone()),
            Op::SetDimensionSize { dimension } => {
                let mut part = self.split(arrays[0])?;
                part.sizes[*dimension] = match shape.as_array() {
                    // A size that the caller chooses is within its range.
                    Some(array) if array.dimensions[*dimension].is_dynamic => {
                        let is_named = self.named_size(arrays[1]).is_some();
                        Some(if is_named { arrays[1] } else { self.opaque(arrays[1])? })
                    }
                    _ => None,
                };
                self.bounded(part.data, &part.sizes)?
            }
            op if is_slice_to_dynamic(op) => self.slice_to_dynamic(shape, arrays)?,
            Op::GetDimensionSize { dimension } => self.true_size(arrays[0], *dimension)?,
            Op::DynamicReshape {} => {
                let target = shape
                    .as_array()
                    .ok_or_else(|| Error::internal("expected an array as the result of a reshape"))?;
                let sizes = self.sizes_of(target, &arrays[1..])?;
                self.reshape_to(arrays[0], &sizes)?
            }
            Op::Reshape {} if self.is_bounded(arrays[0]) => self.settled_reshape(arrays[0], shape)?,
            _ => {
                // XLA broadcasts dimensions that have size 1 at run time, as NumPy does.
                if let [a, b] = arrays
                    && op.opcode().traits().contains(Traits::ELEMENTWISE)
                    && self.is_bounded(*a)
                    && self.is_bounded(*b)
                {
                    (*a, *b) = self.reconciled(*a, *b)?;
                }
                let static_shape = whole(shape);
                self.op_shaped(&static_shape, op.clone(), arrays)?
            }
        })
    }

    /// Settles the custom call `SliceToDynamic`: an array with a size for each of its dimensions.
    fn slice_to_dynamic(&mut self, shape: &Shape, operands: &[InstructionId]) -> Result<InstructionId> {
        let target = shape
            .as_array()
            .ok_or_else(|| Error::invalid("expected an array as the result of SliceToDynamic"))?;
        let Some((&data, size_operands)) = operands.split_first() else {
            return Err(Error::invalid("expected an array and its sizes as operands of SliceToDynamic"));
        };
        if self.sizes(data) != target.sizes() || size_operands.len() != target.rank() {
            return Err(Error::invalid(format!(
                "expected an array with the bounds of {target} and a size for each dimension as operands of SliceToDynamic"
            )));
        }
        let sizes: Vec<_> = self.sizes_of(target, size_operands)?.iter().map(|size| size.size).collect();
        self.bounded(data, &sizes)
    }

    /// Settles a reshape of a bounded array. If one dimension of the result is bounded, its size
    /// follows from the number of elements.
    fn settled_reshape(&mut self, id: InstructionId, shape: &Shape) -> Result<InstructionId> {
        let target_shape = shape
            .as_array()
            .ok_or_else(|| Error::internal("expected an array as the result of a reshape"))?;
        let bounded: Vec<usize> =
            (0..target_shape.rank()).filter(|&d| target_shape.dimensions[d].is_dynamic).collect();
        let &[target] = &bounded[..] else { return self.op_shaped(&whole(shape), Op::Reshape {}, &[id]) };
        let all: Vec<usize> = (0..self.sizes(id).len()).collect();
        let count = self.true_count(id, &all)?;
        let others = (0..target_shape.rank()).filter(|&d| d != target).map(|d| target_shape.size(d));
        let others = self.s32(others.product::<i64>().max(1))?;
        let size = self.div(count, others)?;
        let mut sizes: Vec<Size> = target_shape.sizes().into_iter().map(Size::known).collect();
        sizes[target].size = Some(size);
        self.reshape_to(id, &sizes)
    }

    /// True if a value contains an array of bounded size.
    fn has_sizes(&self, value: &Value) -> bool {
        match value {
            Value::One(id) => self.is_bounded(*id),
            Value::Many(elements) => elements.iter().any(|element| self.has_sizes(element)),
        }
    }

    /// Returns a value as one instruction.
    pub(crate) fn joined(&mut self, value: &Value) -> Result<InstructionId> {
        match value {
            Value::One(id) => Ok(*id),
            Value::Many(elements) => {
                let elements =
                    elements.iter().map(|element| self.joined(element)).collect::<Result<Vec<_>>>()?;
                if elements.iter().any(|&element| self.is_bounded(element)) {
                    return Err(Error::unsupported(
                        "an operand that is a tuple with arrays of bounded size is not supported",
                    ));
                }
                self.op(Op::Tuple {}, &elements)
            }
        }
    }

    /// Returns a size as an `s32` scalar that is treated as a run-time value, even if it is a
    /// constant, because the bounds are those that the module states.
    fn opaque(&mut self, size: InstructionId) -> Result<InstructionId> {
        let size = self.convert(size, PrimitiveType::S32)?;
        let size = self.reshape(size, &[])?;
        let size = self.static_op(Op::OptimizationBarrier {}, &[size], None)?;
        self.forbid_folding(size);
        Ok(size)
    }

    /// Returns the sizes of a shape. `size_operands` are the sizes of its bounded dimensions.
    fn sizes_of(&mut self, shape: &ArrayShape, size_operands: &[InstructionId]) -> Result<Vec<Size>> {
        let mut sizes = Vec::with_capacity(shape.rank());
        for (dimension, &size) in shape.dimensions.iter().zip(size_operands) {
            let known = Size::known(dimension.size);
            sizes.push(if dimension.is_dynamic {
                Size { size: Some(self.opaque(size)?), ..known }
            } else {
                known
            });
        }
        Ok(sizes)
    }
}

/// Returns the shape with all dimensions at their bounds.
pub(crate) fn whole(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => Shape::array(array.element_type, &array.sizes()),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(whole).collect()),
        Shape::Token => Shape::Token,
    }
}
