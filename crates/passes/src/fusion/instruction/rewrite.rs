//! Copies a group into a computation of its own.

use super::group::{Body, is_contraction};
use crate::fusion::body::FusedBody;
use hlo::{Computation, FusionKind, InstructionId, OpMetadata};

/// A fusion that has not been added to its module.
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
        let mut fused = FusedBody::new(caller, &body.operands);
        let root_copy = fused.copy(caller, root);
        let contraction = body.members.iter().copied().find(|&m| is_contraction(caller, m));
        let hero = contraction.unwrap_or(root);
        let kind = FusionKind::with_hero(caller[hero].op(), fused.get(hero)?);
        let metadata = metadata(caller, [contraction, Some(root)], body);
        let computation = fused.finish(&[root_copy]);
        Some(Self { computation, kind, operands: body.operands.clone(), metadata })
    }
}

/// Metadata of the contraction if there is one, otherwise of the root, otherwise of the first
/// member that has some.
fn metadata(caller: &Computation, first: [Option<InstructionId>; 2], body: &Body) -> OpMetadata {
    let candidates = first.into_iter().flatten().chain(body.members.iter().copied());
    let mut metadata = candidates.map(|id| caller[id].metadata());
    metadata.find(|m| !m.op_name.is_empty()).cloned().unwrap_or_default()
}
