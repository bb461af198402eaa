//! The values that become integers: inputs of layers, and everything that is only moved on the way
//! to them.
//!
//! A moved value (reshaped, transposed, sliced, concatenated, pooled by maximum) has the scale of
//! its origin, so it is moved as integers. Values that meet in a concatenation share one scale.

use crate::layer::{Layer, literal};
use hlo::{Computation, InstructionId, Module, Op};
use shape::PrimitiveType;
use std::collections::{BTreeMap, BTreeSet};

/// Values of the entry that become integers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// The group of each value. Values of a group have one scale.
    groups: BTreeMap<InstructionId, usize>,
    /// Number of groups.
    count: usize,
}

impl Points {
    /// Finds the inputs of layers in the entry, and what they are moved from. `others` also become
    /// integers.
    pub fn of(module: &Module, layers: &[Layer], others: &[InstructionId]) -> Self {
        let entry = module.entry_computation();
        let inputs = layers.iter().filter(|layer| layer.computation == module.entry());
        let mut pending: Vec<InstructionId> = inputs.map(|layer| layer.input(module)).collect();
        pending.extend(others);
        let mut found = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if is_float(entry, id) && literal(entry, id).is_none() && found.insert(id) {
                pending.extend(origins(module, id).unwrap_or_default());
            }
        }
        // The lowest id of each group stands for it.
        let mut leaders: BTreeMap<InstructionId, InstructionId> = found.iter().map(|&id| (id, id)).collect();
        for &id in &found {
            for origin in origins(module, id).unwrap_or_default() {
                let (a, b) = (leaders[&id], leaders[&origin]);
                leaders
                    .values_mut()
                    .filter(|leader| **leader == a.max(b))
                    .for_each(|leader| *leader = a.min(b));
            }
        }
        let distinct: BTreeSet<InstructionId> = leaders.values().copied().collect();
        let numbers: BTreeMap<InstructionId, usize> =
            distinct.into_iter().enumerate().map(|(number, leader)| (leader, number)).collect();
        let groups = leaders.into_iter().map(|(id, leader)| (id, numbers[&leader])).collect();
        Self { groups, count: numbers.len() }
    }

    /// Number of groups.
    pub fn group_count(&self) -> usize {
        self.count
    }

    /// The group of a value; `None` if the value does not become integers.
    pub fn group(&self, id: InstructionId) -> Option<usize> {
        self.groups.get(&id).copied()
    }

    /// The values that are not moved from others, with their groups.
    pub fn sources(&self, module: &Module) -> Vec<(InstructionId, usize)> {
        let is_source = |id: InstructionId| origins(module, id).is_none();
        self.groups.iter().filter(|(id, _)| is_source(**id)).map(|(&id, &group)| (id, group)).collect()
    }
}

/// True if an instruction has an array of `f32` with static sizes.
pub(crate) fn is_float(computation: &Computation, id: InstructionId) -> bool {
    let shape = computation[id].shape().as_array();
    shape.is_some_and(|shape| shape.element_type == PrimitiveType::F32 && shape.is_static())
}

/// The values of the entry whose elements an instruction moves, if it does nothing else and none of
/// them is constant.
pub(crate) fn origins(module: &Module, id: InstructionId) -> Option<Vec<InstructionId>> {
    let entry = module.entry_computation();
    let operands = entry[id].operands();
    let moved = match entry[id].op() {
        Op::Reshape {}
        | Op::Transpose { .. }
        | Op::Reverse { .. }
        | Op::Slice { .. }
        | Op::Copy {}
        | Op::Broadcast { .. }
        | Op::DynamicSlice { .. } => &operands[..1],
        Op::Concatenate { .. } => operands,
        Op::Pad { .. } if is_number(entry, operands[1], |number| number == 0.0) => &operands[..1],
        Op::ReduceWindow { to_apply, .. }
            if operands.len() == 2
                && matches!(module[*to_apply][module[*to_apply].root()].op(), Op::Maximum {})
                && hlo::is_associative(&module[*to_apply])
                && is_number(entry, operands[1], is_least) =>
        {
            &operands[..1]
        }
        _ => return None,
    };
    let is_value = |&id: &InstructionId| is_float(entry, id) && literal(entry, id).is_none();
    moved.iter().all(is_value).then(|| moved.to_vec())
}

/// True for a number from which maxima start, because no other `f32` is less.
pub(crate) fn is_least(number: f64) -> bool {
    number <= f64::from(f32::MIN)
}

/// True if an instruction is a constant scalar with this property.
fn is_number(computation: &Computation, id: InstructionId, holds: impl Fn(f64) -> bool) -> bool {
    let number = literal(computation, id).filter(|literal| literal.array_shape().rank() == 0);
    number.and_then(|literal| literal.scalar_at(0).as_f64()).is_some_and(holds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Layers;

    /// `x` and `y` meet in a concatenation, which is transposed for one dot. The other reads `z`.
    const TEXT: &str = "HloModule m

ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[2,1] parameter(1)
  joined = f32[2,4] concatenate(x, y), dimensions={1}
  turned = f32[4,2] transpose(joined), dimensions={1,0}
  w = f32[2,2] constant({{1, 2}, {3, 4}})
  first = f32[4,2] dot(turned, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[4,2] tanh(first)
  second = f32[4,2] dot(z, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[4,2]) tuple(second)
}
";

    #[test]
    fn moved_values_share_the_scale_of_their_origins() {
        let module = hlo::parse(TEXT).expect("a module");
        let layers = Layers::of(&module).layers;
        assert_eq!(layers.len(), 2);
        let points = Points::of(&module, &layers, &[]);
        let entry = module.entry_computation();
        let group = |name: &str| points.group(entry.find(name).expect("an instruction"));
        assert_eq!(points.group_count(), 2);
        assert!(group("x").is_some() && group("x") != group("z"));
        assert!(["y", "joined", "turned"].iter().all(|name| group(name) == group("x")));
        assert_eq!((group("first"), group("second"), group("w")), (None, None, None));
        let sources: Vec<&str> = points.sources(&module).iter().map(|&(id, _)| entry[id].name()).collect();
        assert_eq!(sources, ["x", "y", "z"]);
    }
}
