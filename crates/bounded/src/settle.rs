//! Bounded shapes in HLO that others wrote: the same rules as for graphs, instruction by instruction.

mod computations;
mod conditional;

use crate::arrays::Size;
use crate::builder::Builder;
use hlo::{Computation, ComputationId, Instruction, InstructionId, Module, Op, Traits};
use shape::{ArrayShape, PrimitiveType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use support::{Error, Result};

/// A value of the entry: an array or a token, or the elements of a tuple, which need no instruction.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    One(InstructionId),
    Many(Vec<Value>),
}

impl Value {
    /// Its arrays and tokens, tuples of tuples taken apart.
    fn flat(self, leaves: &mut Vec<InstructionId>) {
        match self {
            Self::One(id) => leaves.push(id),
            Self::Many(elements) => elements.into_iter().for_each(|element| element.flat(leaves)),
        }
    }
}

/// Whether the entry, or what it calls, sets sizes of arrays, which only a run knows.
pub fn has_bounded_shapes(module: &Module) -> bool {
    sets_sizes(module, module.entry())
}

/// Whether a computation, or one that it calls, sets sizes of arrays.
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

/// A module whose entry computes on arrays of static shapes, and sets the sizes of what it returns: each
/// `set-dimension-size` is followed through the instructions behind it, which mind what lies behind a true size.
///
/// An error names the instruction that cannot.
pub fn settle_bounded_shapes(module: &Module) -> Result<Module> {
    let mut settler = Settler::new(module.clone());
    let entry = module.entry_computation();
    let mut values: BTreeMap<InstructionId, Value> = BTreeMap::new();
    // Parameters keep their numbers, also those that nobody reads.
    let parameters = entry.parameters().iter().copied();
    let rest = entry.post_order().into_iter().filter(|id| !entry.parameters().contains(id));
    for id in parameters.chain(rest) {
        settler.set_metadata(entry[id].metadata().clone());
        let value = settler.settled(entry, id, &values).map_err(|error| {
            error.context(format!("instruction '{}' ({})", entry[id].name(), entry[id].opcode().name()))
        })?;
        values.insert(id, value);
    }
    let root = values.remove(&entry.root()).expect("the root is behind its operands");
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
    /// Computations of the module, and what they are with arrays of bounded size settled.
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

/// What XLA's own passes leave of `set-dimension-size`: the array, then the true size of each dimension.
fn is_slice_to_dynamic(op: &Op) -> bool {
    matches!(op, Op::CustomCall { custom_call_target, .. } if custom_call_target == "SliceToDynamic")
}

impl Settler {
    /// One instruction of the entry, on values that are settled.
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
        let made = self.settled_array(&entry[id], &mut arrays)?;
        if self.scope_ref().tuple_sizes(made).is_some() {
            let count = shape.as_tuple().map_or(0, <[Shape]>::len);
            let element =
                |cx: &mut Self, index| Ok(Value::One(cx.op(Op::GetTupleElement { index }, &[made])?));
            return Ok(Value::Many((0..count).map(|index| element(self, index)).collect::<Result<_>>()?));
        }
        Ok(Value::One(made))
    }

    /// An instruction on operands that are one instruction each.
    fn settled_array(
        &mut self,
        instruction: &Instruction,
        arrays: &mut [InstructionId],
    ) -> Result<InstructionId> {
        let (op, shape) = (instruction.op(), instruction.shape());
        Ok(match op {
            Op::Parameter { .. } => {
                if !shape.leaves().iter().all(|(_, leaf)| leaf.is_static()) {
                    return Err(Error::unsupported(format!(
                        "a parameter of bounded shape {shape}; take the whole array, and set its sizes inside"
                    )));
                }
                let metadata = self.metadata().clone();
                self.scope().add_entry_parameter(instruction.name(), shape.clone(), metadata)
            }
            Op::Constant { literal } => self.literal(literal.clone()),
            Op::SetDimensionSize { dimension } => {
                let mut part = self.split(arrays[0])?;
                part.sizes[*dimension] = match shape.as_array() {
                    Some(array) if array.dimensions[*dimension].is_dynamic => Some(self.opaque(arrays[1])?),
                    _ => None,
                };
                self.bounded(part.data, &part.sizes)?
            }
            op if is_slice_to_dynamic(op) => self.slice_to_dynamic(shape, arrays)?,
            Op::GetDimensionSize { dimension } => self.true_size(arrays[0], *dimension)?,
            Op::DynamicReshape {} => {
                let wanted = shape.as_array().ok_or_else(|| Error::internal("reshapes make arrays"))?;
                let sizes = self.sizes_of(wanted, &arrays[1..])?;
                self.reshape_to(arrays[0], &sizes)?
            }
            Op::Reshape {} if self.is_bounded(arrays[0]) => self.settled_reshape(arrays[0], shape)?,
            _ => {
                // XLA repeats what a run finds to be of size 1, as operations of NumPy do.
                if let [a, b] = arrays
                    && op.opcode().traits().contains(Traits::ELEMENTWISE)
                    && self.is_bounded(*a)
                    && self.is_bounded(*b)
                {
                    (*a, *b) = self.reconciled(*a, *b)?;
                }
                let wanted = whole(shape);
                self.op_shaped(&wanted, op.clone(), arrays)?
            }
        })
    }

    /// The custom call `SliceToDynamic`: an array with a size for each of its dimensions.
    fn slice_to_dynamic(&mut self, shape: &Shape, operands: &[InstructionId]) -> Result<InstructionId> {
        let wanted = shape.as_array().ok_or_else(|| Error::invalid("SliceToDynamic makes an array"))?;
        let Some((&data, given)) = operands.split_first() else {
            return Err(Error::invalid("SliceToDynamic takes an array and its sizes"));
        };
        if self.sizes(data) != wanted.sizes() || given.len() != wanted.rank() {
            return Err(Error::invalid(format!(
                "SliceToDynamic takes an array of {wanted}'s bounds and a size for each dimension"
            )));
        }
        let sizes: Vec<_> = self.sizes_of(wanted, given)?.iter().map(|size| size.size).collect();
        self.bounded(data, &sizes)
    }

    /// A reshape of a bounded array. Where one dimension of the result is bounded, it has as many as there are for it.
    fn settled_reshape(&mut self, id: InstructionId, shape: &Shape) -> Result<InstructionId> {
        let wanted = shape.as_array().ok_or_else(|| Error::internal("reshapes make arrays"))?;
        let bounded: Vec<usize> = (0..wanted.rank()).filter(|&d| wanted.dimensions[d].is_dynamic).collect();
        let &[target] = &bounded[..] else { return self.op_shaped(&whole(shape), Op::Reshape {}, &[id]) };
        let all: Vec<usize> = (0..self.sizes(id).len()).collect();
        let count = self.true_count(id, &all)?;
        let others = (0..wanted.rank()).filter(|&d| d != target).map(|d| wanted.size(d));
        let others = self.s32(others.product::<i64>().max(1))?;
        let size = self.div(count, others)?;
        let mut sizes: Vec<Size> = wanted.sizes().into_iter().map(Size::known).collect();
        sizes[target].size = Some(size);
        self.reshape_to(id, &sizes)
    }

    /// Whether there is an array of bounded size in a value.
    fn has_sizes(&self, value: &Value) -> bool {
        match value {
            Value::One(id) => self.is_bounded(*id),
            Value::Many(elements) => elements.iter().any(|element| self.has_sizes(element)),
        }
    }

    /// A value as one instruction.
    pub(crate) fn joined(&mut self, value: &Value) -> Result<InstructionId> {
        match value {
            Value::One(id) => Ok(*id),
            Value::Many(elements) => {
                let elements =
                    elements.iter().map(|element| self.joined(element)).collect::<Result<Vec<_>>>()?;
                if elements.iter().any(|&element| self.is_bounded(element)) {
                    return Err(Error::unsupported("an operand is a tuple with arrays of bounded size"));
                }
                self.op(Op::Tuple {}, &elements)
            }
        }
    }

    /// A size as an `s32` scalar that counts as one that only a run knows, even if it is a constant: the bounds are those that
    /// the module states.
    fn opaque(&mut self, size: InstructionId) -> Result<InstructionId> {
        let size = self.convert(size, PrimitiveType::S32)?;
        let size = self.reshape(size, &[])?;
        let size = self.static_op(Op::OptimizationBarrier {}, &[size], None)?;
        self.forbid_folding(size);
        Ok(size)
    }

    /// The sizes that a shape states and operands give for its bounded dimensions.
    fn sizes_of(&mut self, shape: &ArrayShape, given: &[InstructionId]) -> Result<Vec<Size>> {
        let mut sizes = Vec::with_capacity(shape.rank());
        for (dimension, &size) in shape.dimensions.iter().zip(given) {
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

/// The shape with all its dimensions at their bounds.
pub(crate) fn whole(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => Shape::array(array.element_type, &array.sizes()),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(whole).collect()),
        Shape::Token => Shape::Token,
    }
}
