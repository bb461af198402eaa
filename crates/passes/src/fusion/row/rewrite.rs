//! Puts a group into a computation of its own.

use super::group::Group;
use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, Op, OpMetadata};
use shape::Shape;
use std::collections::BTreeMap;

/// What results of groups have become.
pub(super) type Replaced = BTreeMap<InstructionId, InstructionId>;

/// Replaces the results of a group by those of its fusion. The members are left without users.
pub(super) fn replace(module: &mut Module, id: ComputationId, group: &Group, replaced: &mut Replaced) {
    let caller = &module[id];
    let operands: Vec<InstructionId> =
        group.operands.iter().map(|operand| replaced.get(operand).copied().unwrap_or(*operand)).collect();
    let fused = fused(caller, group, &operands);
    let metadata = metadata(caller, group);
    let shape = fused[fused.root()].shape().clone();
    let calls = module.add_computation(fused);
    let caller = module.computation_mut(id);
    let op = Op::Fusion { kind: FusionKind::Input, calls };
    let fusion = caller.add("fusion", op, shape, &operands, metadata);
    if let [result] = group.results[..] {
        caller.replace_all_uses(result, fusion);
        replaced.insert(result, fusion);
        return;
    }
    for (index, &result) in group.results.iter().enumerate() {
        let (shape, metadata) = (caller[result].shape().clone(), caller[result].metadata().clone());
        let element = caller.add("", Op::GetTupleElement { index }, shape, &[fusion], metadata);
        caller.replace_all_uses(result, element);
        replaced.insert(result, element);
    }
}

fn fused(caller: &Computation, group: &Group, operands: &[InstructionId]) -> Computation {
    let mut fused = Computation::new("fused_computation");
    let mut copies: BTreeMap<InstructionId, InstructionId> = BTreeMap::new();
    for (number, &operand) in operands.iter().enumerate() {
        let (shape, metadata) = (caller[operand].shape().clone(), OpMetadata::default());
        let parameter = fused.add(&format!("param_{number}"), Op::Parameter { number }, shape, &[], metadata);
        copies.insert(operand, parameter);
    }
    for &result in &group.results {
        copy(caller, result, &mut fused, &mut copies);
    }
    let results: Vec<InstructionId> = group.results.iter().map(|result| copies[result]).collect();
    let root = match results[..] {
        [root] => root,
        _ => {
            let shapes = results.iter().map(|&result| fused[result].shape().clone()).collect();
            fused.add("", Op::Tuple {}, Shape::Tuple(shapes), &results, OpMetadata::default())
        }
    };
    fused.set_root(root);
    fused
}

/// Copies an instruction and what it needs, operands first, without recursion.
fn copy(
    caller: &Computation,
    root: InstructionId,
    fused: &mut Computation,
    copies: &mut BTreeMap<InstructionId, InstructionId>,
) {
    let mut stack = vec![(root, 0)];
    while let Some((id, next)) = stack.pop() {
        if copies.contains_key(&id) {
            continue;
        }
        let original = &caller[id];
        match original.operands().get(next) {
            Some(&operand) => {
                stack.push((id, next + 1));
                stack.push((operand, 0));
            }
            None => {
                let operands: Vec<InstructionId> = original.operands().iter().map(|o| copies[o]).collect();
                let (op, shape) = (original.op().clone(), original.shape().clone());
                let copy = fused.add(original.name(), op, shape, &operands, original.metadata().clone());
                copies.insert(id, copy);
            }
        }
    }
}

/// The last result's origin, else the last member's that has one.
fn metadata(caller: &Computation, group: &Group) -> OpMetadata {
    let candidates = group.results.iter().rev().chain(group.members.iter().rev());
    let mut metadata = candidates.map(|&id| caller[id].metadata());
    metadata.find(|m| !m.op_name.is_empty()).cloned().unwrap_or_default()
}
