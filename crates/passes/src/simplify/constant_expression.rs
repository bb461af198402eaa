//! Values of expressions of constants.

use hlo::{Computation, InstructionId, Module, Op};
use shape::Literal;
use std::collections::{BTreeMap, BTreeSet};

/// The value of an instruction whose operands, and theirs, are all among `steps`, which call no
/// computation. `None` if the evaluator rejects one of them.
pub(crate) fn value(
    computation: &Computation,
    steps: &BTreeSet<InstructionId>,
    root: InstructionId,
) -> Option<Literal> {
    let module = Module::new("constants");
    let mut values: BTreeMap<InstructionId, Literal> = BTreeMap::new();
    for id in computation.post_order().into_iter().filter(|id| steps.contains(id)) {
        let instruction = &computation[id];
        let value = match instruction.op() {
            Op::Constant { literal } => literal.clone(),
            op => {
                let operands: Vec<&Literal> = instruction
                    .operands()
                    .iter()
                    .map(|operand| values.get(operand))
                    .collect::<Option<_>>()?;
                evaluator::evaluate_instruction(&module, op, instruction.shape(), &operands).ok()?
            }
        };
        values.insert(id, value);
    }
    values.remove(&root)
}
