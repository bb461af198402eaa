//! New entries of modules, which do what the old ones do with other parameters or results.
//!
//! The old entry becomes a part of the new one. A call would hide the instructions that define the
//! sizes of bounded results.

use hlo::{Computation, ComputationBuilder, ComputationId, InstructionId, Module, Op};
use support::Result;

/// Adds what the module's entry does with these operands. Returns its result.
pub(crate) fn apply(
    module: &Module,
    builder: &mut ComputationBuilder,
    operands: &[InstructionId],
) -> InstructionId {
    builder.body(module.entry_computation(), operands)
}

/// Returns an element of a tuple.
pub(crate) fn element(
    module: &Module,
    builder: &mut ComputationBuilder,
    tuple: InstructionId,
    index: usize,
) -> Result<InstructionId> {
    let instruction = &builder.computation()[tuple];
    match instruction.op() {
        Op::Tuple {} => Ok(instruction.operands()[index]),
        _ => builder.op(module, Op::GetTupleElement { index }, &[tuple]),
    }
}

/// Makes a computation the module's entry, in place of the old one. Drops what its root does not
/// need, such as the tuple of the old results.
pub(crate) fn replace(module: &mut Module, mut computation: Computation) {
    let ids: Vec<InstructionId> = computation.instructions().map(|(id, _)| id).collect();
    // Users were added after their operands.
    for id in ids.into_iter().rev() {
        let instruction = &computation[id];
        let is_kept = matches!(instruction.op(), Op::Parameter { .. }) || instruction.has_effect();
        if instruction.users().is_empty() && id != computation.root() && !is_kept {
            computation.remove(id);
        }
    }
    let old = module.entry();
    if is_called(module, old) {
        let entry = module.add_computation(computation);
        module.set_entry(entry);
    } else {
        let name = module.entry_computation().name().to_owned();
        *module.computation_mut(old) = computation.renamed(name);
    }
}

/// True if an instruction calls the computation.
pub(crate) fn is_called(module: &Module, callee: ComputationId) -> bool {
    let mut instructions = module.computations().flat_map(|(_, computation)| computation.instructions());
    instructions.any(|(_, instruction)| instruction.op().called_computations().contains(&callee))
}
