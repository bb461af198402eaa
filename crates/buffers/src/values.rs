//! Resolves leaves to the values that they hold: through tuples, bitcasts, control-flow calls, and
//! state that loops only pass on.

use crate::Leaf;
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use plan::{ModulePlan, Strategy};
use shape::{ArrayShape, ShapeIndex};
use std::collections::BTreeMap;

/// Resolves leaves to the leaf that defines their value.
pub(crate) struct Values<'m> {
    module: &'m Module,
    plan: &'m ModulePlan,
    /// The caller of each computation that control flow calls, and the meaning of its parameter
    /// there.
    callers: BTreeMap<ComputationId, Caller>,
    /// The computations that run, callers first.
    order: Vec<ComputationId>,
    /// Control-flow results that are values from before the call: state that a loop passes on
    /// unchanged, and results that are the same value after every branch.
    forwarded: BTreeMap<Leaf, Leaf>,
}

/// A call of a branch, a condition, or a body. Each such computation has one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) computation: ComputationId,
    pub(crate) instruction: InstructionId,
    /// Index of a conditional's branch; `None` for a while loop, whose state is the loop's own
    /// value.
    pub(crate) branch: Option<usize>,
}

impl<'m> Values<'m> {
    /// Sees through control flow that passes a value on.
    pub(crate) fn new(module: &'m Module, plan: &'m ModulePlan) -> Self {
        let mut values = Self::literal(module, plan);
        for position in (0..values.order.len()).rev() {
            let computation = values.order[position];
            for &instruction in plan.computations[&computation].instructions.keys() {
                values.forward(computation, instruction);
            }
        }
        values
    }

    /// Treats every control-flow result as a value of its own.
    pub(crate) fn literal(module: &'m Module, plan: &'m ModulePlan) -> Self {
        let mut callers = BTreeMap::new();
        let mut order = vec![module.entry()];
        let mut next = 0;
        while let Some(&computation) = order.get(next) {
            next += 1;
            for &instruction in plan.computations[&computation].instructions.keys() {
                let op = module[computation][instruction].op();
                for (k, callee) in called(op).into_iter().enumerate() {
                    let branch = matches!(op, Op::Conditional { .. }).then_some(k);
                    if callers.insert(callee, Caller { computation, instruction, branch }).is_none() {
                        order.push(callee);
                    }
                }
            }
        }
        Self { module, plan, callers, order, forwarded: BTreeMap::new() }
    }

    /// Records which results of a loop or a conditional are values from before it. The computations
    /// that it calls were visited earlier.
    fn forward(&mut self, computation: ComputationId, instruction: InstructionId) {
        let current = &self.module[computation][instruction];
        match current.op() {
            Op::While { body, .. } => {
                for (index, definition) in self.root_leaves(*body) {
                    let state = (computation, instruction, index.clone());
                    if definition == state {
                        self.forwarded.insert(state, (computation, current.operands()[0], index));
                    }
                }
            }
            Op::Conditional { branch_computations } if branch_computations.len() > 1 => {
                let mut common: BTreeMap<ShapeIndex, Leaf> =
                    self.root_leaves(branch_computations[0]).into_iter().collect();
                for &branch in &branch_computations[1..] {
                    for (index, definition) in self.root_leaves(branch) {
                        if common.get(&index) != Some(&definition) {
                            common.remove(&index);
                        }
                    }
                }
                for (index, definition) in common {
                    self.forwarded.insert((computation, instruction, index), definition);
                }
            }
            _ => {}
        }
    }

    /// The computations that run, callers first.
    pub(crate) fn order(&self) -> &[ComputationId] {
        &self.order
    }

    /// True if a control-flow result is a value from before the call.
    pub(crate) fn is_forwarded(&self, leaf: &Leaf) -> bool {
        self.forwarded.contains_key(leaf)
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

    /// True if the instruction only passes its operand on.
    pub(crate) fn is_alias(&self, computation: ComputationId, instruction: InstructionId) -> bool {
        self.plan(computation, instruction).strategy == Strategy::Alias
    }

    pub(crate) fn shape(&self, leaf: &Leaf) -> &'m ArrayShape {
        self.module[leaf.0][leaf.1].shape().get(&leaf.2).expect("expected a leaf of the shape").expect_array()
    }

    /// The leaf that defines the value of a leaf: a leaf of an entry parameter, a constant, a loop,
    /// a conditional, or an instruction with code.
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
                        None => caller.instruction,
                    };
                    if caller.branch.is_none() {
                        match self.forwarded.get(&(computation, instruction, index.clone())) {
                            Some(outer) => (computation, instruction, index) = outer.clone(),
                            None => return (computation, instruction, index),
                        }
                    }
                }
                Op::While { .. } | Op::Conditional { .. } => {
                    match self.forwarded.get(&(computation, instruction, index.clone())) {
                        Some(outer) => (computation, instruction, index) = outer.clone(),
                        None => return (computation, instruction, index),
                    }
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
            // A branch reads its own operand where it uses it; the call itself reads only the
            // index.
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

    /// The leaves of a computation's root: the index of each, with the definition of its value.
    pub(crate) fn root_leaves(&self, computation: ComputationId) -> Vec<(ShapeIndex, Leaf)> {
        let root = self.module[computation].root();
        let leaves = self.leaves(computation, root);
        leaves.into_iter().map(|leaf| (leaf.2.clone(), self.definition(leaf))).collect()
    }
}

/// The computations that a control-flow instruction runs; for a while loop, the condition and then
/// the body.
pub(crate) fn called(op: &Op) -> Vec<ComputationId> {
    match op {
        Op::Conditional { branch_computations } => branch_computations.clone(),
        Op::While { condition, body } => vec![*condition, *body],
        _ => Vec::new(),
    }
}
