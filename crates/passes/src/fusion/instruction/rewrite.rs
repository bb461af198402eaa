//! Copies a group into a computation of its own.

use super::group::Body;
use hlo::{Computation, FusionKind, InstructionId, Op, OpMetadata};
use std::collections::BTreeMap;

/// A fusion that is not in its module yet.
pub(super) struct Fused {
    pub(super) computation: Computation,
    pub(super) kind: FusionKind,
    pub(super) operands: Vec<InstructionId>,
    pub(super) metadata: OpMetadata,
}

impl Fused {
    /// The fusion of a body; `None` if it is a single instruction.
    pub(super) fn build(caller: &Computation, root: InstructionId, body: &Body) -> Option<Self> {
        if body.members.len() < 2 {
            return None;
        }
        let mut fused = Computation::new("fused_computation");
        let mut copies = BTreeMap::new();
        for (number, &operand) in body.operands.iter().enumerate() {
            let (shape, metadata) = (caller[operand].shape().clone(), OpMetadata::default());
            let parameter =
                fused.add(&format!("param_{number}"), Op::Parameter { number }, shape, &[], metadata);
            copies.insert(operand, parameter);
        }
        let root_copy = copy(caller, root, &mut fused, &mut copies);
        fused.set_root(root_copy);
        let has_contraction = body.members.iter().any(|&m| super::group::is_contraction(caller, m));
        let kind = match caller[root].op() {
            _ if has_contraction => FusionKind::Output,
            Op::Reduce { .. } | Op::ReduceWindow { .. } => FusionKind::Input,
            _ => FusionKind::Loop,
        };
        let metadata = metadata(caller, root, body);
        Some(Self { computation: fused, kind, operands: body.operands.clone(), metadata })
    }
}

/// Copies an instruction and what it needs, operands first, without recursion.
fn copy(
    caller: &Computation,
    root: InstructionId,
    fused: &mut Computation,
    copies: &mut BTreeMap<InstructionId, InstructionId>,
) -> InstructionId {
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
    copies[&root]
}

/// The contraction's origin if there is one, else the root's, else the first member's that has one.
fn metadata(caller: &Computation, root: InstructionId, body: &Body) -> OpMetadata {
    let contraction = body.members.iter().copied().find(|&m| super::group::is_contraction(caller, m));
    let candidates = contraction.into_iter().chain([root]).chain(body.members.iter().copied());
    let mut metadata = candidates.map(|id| caller[id].metadata());
    metadata.find(|m| !m.op_name.is_empty()).cloned().unwrap_or_default()
}
