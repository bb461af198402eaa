//! Copies a group into a computation of its own.

use super::group::Group;
use crate::fusion::body::{FusedBody, add_fusion, replace_results};
use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, OpMetadata};
use std::collections::BTreeMap;

/// The replacements of groups' results.
pub(super) type Replaced = BTreeMap<InstructionId, InstructionId>;

/// Replaces the results of a group by those of its fusion. The members are left without users.
pub(super) fn replace(module: &mut Module, id: ComputationId, group: &Group, replaced: &mut Replaced) {
    let caller = &module[id];
    let operands: Vec<InstructionId> =
        group.operands.iter().map(|operand| replaced.get(operand).copied().unwrap_or(*operand)).collect();
    let mut body = FusedBody::new(caller, &operands);
    let results: Vec<InstructionId> = group.results.iter().map(|&result| body.copy(caller, result)).collect();
    let metadata = metadata(caller, group);
    let fusion = add_fusion(module, id, FusionKind::Rows, body.finish(&results), &operands, metadata);
    let new = replace_results(module.computation_mut(id), fusion, &group.results);
    replaced.extend(group.results.iter().copied().zip(new));
}

/// Metadata of the last result that has some, otherwise of the last such member.
fn metadata(caller: &Computation, group: &Group) -> OpMetadata {
    let candidates = group.results.iter().rev().chain(group.members.iter().rev());
    let mut metadata = candidates.map(|&id| caller[id].metadata());
    metadata.find(|m| !m.op_name.is_empty()).cloned().unwrap_or_default()
}
