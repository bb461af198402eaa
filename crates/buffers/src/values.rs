//! Which leaf is whose value: forwarding through tuples, bitcasts, calls of control flow, and state that loops only pass on.

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
    /// The computations that run, callers first.
    order: Vec<ComputationId>,
    /// Results of control flow that are values from in front of it: state that a loop passes on unchanged, results that
    /// are the same value after every branch.
    forwarded: BTreeMap<Leaf, Leaf>,
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

    /// Takes every result of control flow for a value of its own.
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

    /// Notes which results of a while or a conditional are values from in front of it; what it calls has been seen.
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

    /// Whether a result of control flow is a value from in front of it.
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

/// The computations that an instruction of control flow runs; of a while the condition, then the body.
pub(crate) fn called(op: &Op) -> Vec<ComputationId> {
    match op {
        Op::Conditional { branch_computations } => branch_computations.clone(),
        Op::While { condition, body } => vec![*condition, *body],
        _ => Vec::new(),
    }
}
