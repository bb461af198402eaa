//! Which leaf is whose value: forwarding through tuples, bitcasts and calls of control flow.

use crate::Leaf;
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use plan::{ModulePlan, Strategy};
use shape::{ArrayShape, ShapeIndex};
use std::collections::BTreeMap;

/// Resolves leaves to the leaf that defines their value.
pub(crate) struct Values<'m> {
    module: &'m Module,
    plan: &'m ModulePlan,
    /// For a computation that control flow calls: who calls it, and what its parameter is there.
    callers: BTreeMap<ComputationId, Caller>,
}

/// A call of a branch, a condition or a body; each such computation has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) computation: ComputationId,
    pub(crate) instruction: InstructionId,
    /// The branch number of a conditional; `None` for a while, whose state is the while's own value.
    pub(crate) branch: Option<usize>,
}

impl<'m> Values<'m> {
    pub(crate) fn new(module: &'m Module, plan: &'m ModulePlan) -> Self {
        let mut callers = BTreeMap::new();
        for &computation in plan.computations.keys() {
            for &instruction in plan.computations[&computation].instructions.keys() {
                let call = |branch| Caller { computation, instruction, branch };
                match module[computation][instruction].op() {
                    Op::Conditional { branch_computations } => {
                        for (k, &branch) in branch_computations.iter().enumerate() {
                            callers.insert(branch, call(Some(k)));
                        }
                    }
                    Op::While { condition, body } => {
                        callers.insert(*condition, call(None));
                        callers.insert(*body, call(None));
                    }
                    _ => {}
                }
            }
        }
        Self { module, plan, callers }
    }

    pub(crate) fn computation(&self, id: ComputationId) -> &'m Computation {
        &self.module[id]
    }

    pub(crate) fn caller(&self, id: ComputationId) -> Option<Caller> {
        self.callers.get(&id).copied()
    }

    pub(crate) fn plan(
        &self,
        computation: ComputationId,
        instruction: InstructionId,
    ) -> &'m plan::InstructionPlan {
        &self.plan.computations[&computation].instructions[&instruction]
    }

    /// Whether the instruction only passes on what it gets.
    pub(crate) fn is_alias(&self, computation: ComputationId, instruction: InstructionId) -> bool {
        self.plan(computation, instruction).strategy == Strategy::Alias
    }

    pub(crate) fn shape(&self, leaf: &Leaf) -> &'m ArrayShape {
        self.module[leaf.0][leaf.1].shape().get(&leaf.2).expect("a leaf of the shape").expect_array()
    }

    /// The leaf that defines the value of a leaf: of an entry parameter, a constant, a while, a conditional, or of an
    /// instruction with code.
    pub(crate) fn definition(&self, leaf: Leaf) -> Leaf {
        let (mut computation, mut instruction, mut index) = leaf;
        loop {
            let current = &self.module[computation][instruction];
            let operand = |k: usize| current.operands()[k];
            match current.op() {
                Op::Tuple {} => instruction = operand(index.remove(0)),
                Op::GetTupleElement { index: element } => {
                    index.insert(0, *element);
                    instruction = operand(0);
                }
                Op::Bitcast {} | Op::Reshape {} | Op::OptimizationBarrier {} | Op::AddDependency {} => {
                    instruction = operand(0);
                }
                Op::Parameter { .. } => {
                    let Some(caller) = self.caller(computation) else {
                        return (computation, instruction, index);
                    };
                    computation = caller.computation;
                    instruction = match caller.branch {
                        Some(k) => self.module[computation][caller.instruction].operands()[k + 1],
                        None => return (computation, caller.instruction, index),
                    };
                }
                _ => return (computation, instruction, index),
            }
        }
    }

    /// The definitions of the array leaves that an instruction with code reads.
    pub(crate) fn reads(&self, computation: ComputationId, instruction: InstructionId) -> Vec<Leaf> {
        let current = &self.module[computation][instruction];
        let plan = self.plan(computation, instruction);
        let mut reads = Vec::new();
        for (k, &operand) in current.operands().iter().enumerate() {
            let is_packed = plan.packed.iter().any(|p| p.operand == Some(k));
            // A branch reads its own operand, where it does; the call itself reads only the index.
            let is_branch_operand = matches!(current.op(), Op::Conditional { .. }) && k > 0;
            if !is_packed && !is_branch_operand {
                reads.extend(self.leaves(computation, operand).into_iter().map(|leaf| self.definition(leaf)));
            }
        }
        reads
    }

    /// All array leaves of an instruction.
    pub(crate) fn leaves(&self, computation: ComputationId, instruction: InstructionId) -> Vec<Leaf> {
        let shape = self.module[computation][instruction].shape();
        shape.leaves().into_iter().map(|(index, _)| (computation, instruction, index)).collect()
    }

    /// Where the leaves of a computation's root belong, if they belong anywhere: the leaf index of the root, and the
    /// definition whose memory it is to be written to.
    pub(crate) fn root_leaves(&self, computation: ComputationId) -> Vec<(ShapeIndex, Leaf)> {
        let root = self.module[computation].root();
        let leaves = self.leaves(computation, root);
        leaves.into_iter().map(|leaf| (leaf.2.clone(), self.definition(leaf))).collect()
    }
}
