//! Instruction fusion: decides which instructions are computed together.

mod group;
mod rewrite;

use crate::fusion::body;
use crate::pass::{Changed, Pass};
use group::Groups;
use hlo::{ComputationId, InstructionId, Module, Op};
use rewrite::Fused;
use shape::Literal;
use std::collections::BTreeMap;
use support::Result;

/// Fuses producers into their consumers.
///
/// Each instruction belongs to one group. It joins the group that holds all of its users, if each
/// of its elements is needed at only one position there. Otherwise it starts a group of its own,
/// whose result is in memory. Nothing is therefore computed twice except cheap data movement, which
/// is copied into every group that reads it. The pass builds three kinds of fusions: loops; loops
/// that end in a reduction, windowed or not (`kInput`); and elementwise work on the tiles of a dot
/// or a convolution (`kOutput`). Small constants with equal elements that must be in memory become
/// literals. Exact for every input.
pub struct InstructionFusion {
    /// Upper bound of the instructions per fusion, which bounds the size of a kernel.
    pub max_instructions: usize,
    /// Upper bound of the operands per fusion.
    pub max_operands: usize,
    /// True if the kernels of dots widen constant weights of few bits in registers.
    pub widens_weights: bool,
}

impl Default for InstructionFusion {
    fn default() -> Self {
        Self { max_instructions: 256, max_operands: 48, widens_weights: true }
    }
}

impl Pass for InstructionFusion {
    fn name(&self) -> &'static str {
        "fusion"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let replaced = self.fuse(module, id);
            changed |= !replaced.is_empty();
            let caller = module.computation_mut(id);
            replaced.into_iter().for_each(|(root, new)| caller.replace_all_uses(root, new));
            changed |= crate::simplify::dce::sweep(caller);
        }
        Ok(changed.into())
    }
}

/// Splats of at most this many bytes become literals if they are needed in memory.
const MAX_SPLAT_BYTES: u64 = 4096;

impl InstructionFusion {
    /// Adds the fusions of a computation without changing it otherwise. Returns the replacement of
    /// each root.
    fn fuse(&self, module: &mut Module, id: ComputationId) -> BTreeMap<InstructionId, InstructionId> {
        let mut replaced = BTreeMap::new();
        let bodies = Groups::new(self, &module[id]).bodies();
        for (root, body) in bodies {
            let computation = &module[id];
            let metadata = computation[root].metadata().clone();
            let new = match (Fused::build(computation, root, &body), splat(computation, root)) {
                (_, Some(literal)) => {
                    let shape = literal.shape();
                    module.computation_mut(id).add("", Op::Constant { literal }, shape, &[], metadata)
                }
                (Some(fused), None) => add_fusion(module, id, fused, &replaced),
                (None, None) => continue,
            };
            replaced.insert(root, new);
        }
        replaced
    }
}

/// The literal of a small broadcast of a scalar constant.
fn splat(computation: &hlo::Computation, id: InstructionId) -> Option<Literal> {
    let Op::Broadcast { .. } = computation[id].op() else { return None };
    let Op::Constant { literal } = computation[computation[id].operands()[0]].op() else { return None };
    let shape = computation[id].shape().as_array()?;
    if literal.array_shape().rank() != 0 || shape.byte_size() > MAX_SPLAT_BYTES || !shape.is_static() {
        return None;
    }
    let bytes = literal.bytes().repeat(shape.element_count() as usize);
    Literal::from_bytes(shape::ArrayShape { layout: None, ..shape.clone() }, bytes.into())
}

fn add_fusion(
    module: &mut Module,
    id: ComputationId,
    fused: Fused,
    replaced: &BTreeMap<InstructionId, InstructionId>,
) -> InstructionId {
    let operands: Vec<InstructionId> =
        fused.operands.iter().map(|o| replaced.get(o).copied().unwrap_or(*o)).collect();
    body::add_fusion(module, id, fused.kind, fused.computation, &operands, fused.metadata)
}
