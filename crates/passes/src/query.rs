//! Queries that many passes use.

use hlo::{Computation, ComputationId, InstructionId, Module, Opcode};
use shape::ArrayShape;
use support::IdSet;

/// The entry and the computations that control flow runs, callees first. Their instructions run one
/// by one. Fused and applied computations are not included.
pub(crate) fn executed_computations(module: &Module) -> Vec<ComputationId> {
    let mut executed = vec![module.entry()];
    let mut seen: IdSet<ComputationId> = executed.iter().copied().collect();
    let mut next = 0;
    while let Some(&id) = executed.get(next) {
        next += 1;
        let runs_others =
            |opcode: Opcode| matches!(opcode, Opcode::Conditional | Opcode::While | Opcode::Call);
        for (caller, _) in module[id].opcodes().filter(|&(_, opcode)| runs_others(opcode)) {
            for callee in module[id][caller].op().called_computations() {
                if seen.insert(callee) {
                    executed.push(callee);
                }
            }
        }
    }
    executed.reverse();
    executed
}

/// True if an instruction returns an array of a static shape.
pub(crate) fn is_static_array(computation: &Computation, id: InstructionId) -> bool {
    computation[id].shape().as_array().is_some_and(ArrayShape::is_static)
}

/// True if an instruction returns and reads only arrays of static shapes.
pub(crate) fn is_static(computation: &Computation, id: InstructionId) -> bool {
    let mut all = computation[id].operands().iter().chain([&id]);
    all.all(|&id| is_static_array(computation, id))
}
