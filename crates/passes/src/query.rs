//! Queries that many passes use.

use hlo::{ComputationId, Module, Op};

/// The entry and the computations that control flow runs, callees first. Their instructions run one
/// by one. Fused and applied computations are not included.
pub(crate) fn executed_computations(module: &Module) -> Vec<ComputationId> {
    let mut executed = vec![module.entry()];
    let mut next = 0;
    while let Some(&id) = executed.get(next) {
        next += 1;
        for (_, instruction) in module[id].instructions() {
            let called = match instruction.op() {
                Op::Conditional { .. } | Op::While { .. } | Op::Call { .. } => {
                    instruction.op().called_computations()
                }
                _ => continue,
            };
            for callee in called {
                if !executed.contains(&callee) {
                    executed.push(callee);
                }
            }
        }
    }
    executed.reverse();
    executed
}
