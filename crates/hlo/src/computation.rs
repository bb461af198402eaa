//! A computation: a graph of instructions with one root, and the only way to edit it.

use crate::annotations::Annotations;
use crate::ids::{ComputationId, InstructionId};
use crate::instruction::{Instruction, OpMetadata};
use crate::opcode::Op;
use shape::{ProgramShape, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;
use support::IdVec;

/// A graph of instructions. Removed instructions leave a hole, so ids stay valid for the computation's life.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    name: String,
    execution_thread: String,
    instructions: IdVec<InstructionId, Option<Instruction>>,
    parameters: Vec<InstructionId>,
    root: Option<InstructionId>,
    names: BTreeMap<String, InstructionId>,
    next_suffix: BTreeMap<String, u32>,
}

impl Computation {
    /// An empty computation; it needs a root before anyone else may see it.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            execution_thread: String::new(),
            instructions: IdVec::new(),
            parameters: Vec::new(),
            root: None,
            names: BTreeMap::new(),
            next_suffix: BTreeMap::new(),
        }
    }

    /// The name, unique in its module.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn set_name(&mut self, name: String) {
        self.name = name;
    }

    /// The thread that runs it, as others name threads; empty for the main one. Annotations, never looked into.
    pub fn execution_thread(&self) -> &str {
        &self.execution_thread
    }

    /// Names the thread that runs it.
    pub fn set_execution_thread(&mut self, name: impl Into<String>) {
        self.execution_thread = name.into();
    }

    /// Adds an instruction without any check; [`ComputationBuilder`](crate::ComputationBuilder) infers shapes, and
    /// the verifier checks them. The wish for a name is granted as it is if free, else with a suffix `.N`; an empty
    /// wish is the opcode's name. Parameters must be added in the order of their numbers.
    pub fn add(
        &mut self,
        name: &str,
        op: Op,
        shape: Shape,
        operands: &[InstructionId],
        metadata: OpMetadata,
    ) -> InstructionId {
        let id = self.instructions.next_id();
        if let Op::Parameter { number } = op {
            assert_eq!(number, self.parameters.len(), "parameters come in order");
            self.parameters.push(id);
        }
        self.add_in_any_order(name, op, shape, operands, metadata)
    }

    /// Lists the parameters, which were added in any order. Their numbers are 0, 1 and so on.
    pub(crate) fn list_parameters(&mut self) {
        let number = |(id, instruction): (InstructionId, &Instruction)| match instruction.op {
            Op::Parameter { number } => Some((number, id)),
            _ => None,
        };
        let by_number: BTreeMap<usize, InstructionId> = self.instructions().filter_map(number).collect();
        self.parameters = by_number.into_values().collect();
    }

    /// Adds an instruction; a parameter is not listed yet.
    pub(crate) fn add_in_any_order(
        &mut self,
        name: &str,
        op: Op,
        shape: Shape,
        operands: &[InstructionId],
        metadata: OpMetadata,
    ) -> InstructionId {
        let name = self.unique_name(if name.is_empty() { op.opcode().name() } else { name });
        let id = self.instructions.next_id();
        for &operand in operands {
            // The newest instruction is the last user if it is one.
            let users = &mut self.expect_mut(operand).users;
            if users.last() != Some(&id) {
                users.push(id);
            }
        }
        self.names.insert(name.clone(), id);
        let users = Vec::new();
        self.instructions.push(Some(Instruction {
            name,
            op,
            shape,
            operands: operands.to_vec(),
            users,
            metadata,
            annotations: None,
        }))
    }

    fn unique_name(&mut self, wish: &str) -> String {
        if !self.names.contains_key(wish) {
            return wish.to_owned();
        }
        let suffix = self.next_suffix.entry(wish.to_owned()).or_insert(1);
        loop {
            let name = format!("{wish}.{suffix}");
            *suffix += 1;
            if !self.names.contains_key(&name) {
                return name;
            }
        }
    }

    /// The live instructions, in the order in which they were added.
    pub fn instructions(&self) -> impl DoubleEndedIterator<Item = (InstructionId, &Instruction)> {
        self.instructions.iter().filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }

    /// How many ids have been handed out: the length of a table indexed by instruction.
    pub fn id_count(&self) -> usize {
        self.instructions.len()
    }

    /// The instruction, or `None` if it was removed.
    pub fn get(&self, id: InstructionId) -> Option<&Instruction> {
        self.instructions.get(id)?.as_ref()
    }

    /// The instruction of a name.
    pub fn find(&self, name: &str) -> Option<InstructionId> {
        self.names.get(name).copied()
    }

    /// The parameters, in the order of their numbers.
    pub fn parameters(&self) -> &[InstructionId] {
        &self.parameters
    }

    /// The instruction whose value is the computation's. Panics before one is set.
    pub fn root(&self) -> InstructionId {
        self.root.expect("a finished computation has a root")
    }

    /// The root, or `None` before one is set.
    pub fn root_if_set(&self) -> Option<InstructionId> {
        self.root
    }

    /// Makes an instruction the root.
    pub fn set_root(&mut self, id: InstructionId) {
        assert!(self.get(id).is_some(), "the root is a live instruction");
        self.root = Some(id);
    }

    /// Shapes and names of the parameters, shape of the root.
    pub fn program_shape(&self) -> ProgramShape {
        ProgramShape {
            parameters: self.parameters.iter().map(|&id| self[id].shape.clone()).collect(),
            parameter_names: self.parameters.iter().map(|&id| self[id].name.clone()).collect(),
            result: self[self.root()].shape.clone(),
        }
    }

    /// Everything the root needs (and every parameter and effect, needed or not), operands before users. The order is
    /// fixed by the graph: depth first from the parameters, then the effects, then the root, operands left to right.
    pub fn post_order(&self) -> Vec<InstructionId> {
        let effects = self.instructions().filter(|(_, i)| i.has_effect()).map(|(id, _)| id);
        let starts: Vec<InstructionId> =
            self.parameters.iter().copied().chain(effects).chain(self.root).collect();
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for start in starts {
            let mut stack = vec![(start, 0)];
            while let Some((id, next)) = stack.pop() {
                if next == 0 && !seen.insert(id) {
                    continue;
                }
                match self[id].operands.get(next) {
                    Some(&operand) => {
                        stack.push((id, next + 1));
                        stack.push((operand, 0));
                    }
                    None => order.push(id),
                }
            }
        }
        order
    }

    /// Replaces an instruction by a computation's body, applied to these arguments. The instruction stays behind, dead.
    pub fn inline(&mut self, instruction: InstructionId, callee: &Self, arguments: &[InstructionId]) {
        let mut copies: BTreeMap<InstructionId, InstructionId> = BTreeMap::new();
        for inner in callee.post_order() {
            let original = &callee[inner];
            let copy = match original.op() {
                Op::Parameter { number } => arguments[*number],
                op => {
                    let operands: Vec<InstructionId> =
                        original.operands().iter().map(|o| copies[o]).collect();
                    let (shape, metadata) = (original.shape().clone(), original.metadata().clone());
                    self.add(original.name(), op.clone(), shape, &operands, metadata)
                }
            };
            copies.insert(inner, copy);
        }
        self.replace_all_uses(instruction, copies[&callee.root()]);
    }

    /// Makes every user of `old` (the root position too) use `new`.
    pub fn replace_all_uses(&mut self, old: InstructionId, new: InstructionId) {
        if old == new {
            return;
        }
        let users = std::mem::take(&mut self.expect_mut(old).users);
        for user in users {
            // Asking the user is cheaper than searching a list of users, which may be long.
            let is_user = self[user].operands.contains(&new);
            for operand in &mut self.expect_mut(user).operands {
                if *operand == old {
                    *operand = new;
                }
            }
            if !is_user {
                self.expect_mut(new).users.push(user);
            }
        }
        if self.root == Some(old) {
            self.root = Some(new);
        }
    }

    /// Replaces one operand.
    pub fn replace_operand(&mut self, user: InstructionId, position: usize, new: InstructionId) {
        let is_user = self[user].operands.contains(&new);
        let old = std::mem::replace(&mut self.expect_mut(user).operands[position], new);
        if !self[user].operands.contains(&old) {
            remove_user(self.expect_mut(old), user);
        }
        if !is_user {
            self.expect_mut(new).users.push(user);
        }
    }

    /// Replaces the payload; the opcode, the operands and the shape stay.
    pub fn set_op(&mut self, id: InstructionId, op: Op) {
        let instruction = self.expect_mut(id);
        assert_eq!(instruction.op.opcode(), op.opcode(), "set_op keeps the opcode");
        instruction.op = op;
    }

    /// Replaces the shape (for layouts and dynamic bits; the verifier checks the rest).
    pub fn set_shape(&mut self, id: InstructionId, shape: Shape) {
        self.expect_mut(id).shape = shape;
    }

    /// Replaces the metadata.
    pub fn set_metadata(&mut self, id: InstructionId, metadata: OpMetadata) {
        self.expect_mut(id).metadata = metadata;
    }

    /// Replaces what an instruction carries for others.
    pub fn set_annotations(&mut self, id: InstructionId, annotations: Option<Annotations>) {
        self.expect_mut(id).annotations = annotations.map(Box::new);
    }

    /// Renames; a name that is taken gets a suffix.
    pub fn rename(&mut self, id: InstructionId, name: &str) {
        let old = self[id].name.clone();
        self.names.remove(&old);
        let name = self.unique_name(name);
        self.names.insert(name.clone(), id);
        self.expect_mut(id).name = name;
    }

    /// Removes an instruction that nobody uses; not the root, not a parameter.
    pub fn remove(&mut self, id: InstructionId) {
        assert!(self[id].users.is_empty(), "{} has users", self[id].name);
        assert!(self.root != Some(id), "{} is the root", self[id].name);
        if let Op::Parameter { number } = self[id].op {
            assert!(self.parameters.get(number) != Some(&id), "{} is a parameter", self[id].name);
        }
        let instruction = self.instructions[id].take().expect("a live instruction");
        self.names.remove(&instruction.name);
        for operand in instruction.operands {
            if let Some(operand) = self.instructions[operand].as_mut() {
                remove_user(operand, id);
            }
        }
    }

    /// Removes a parameter that nobody uses and renumbers those behind it. Callers must be changed alike.
    pub fn remove_parameter(&mut self, number: usize) {
        let id = self.parameters.remove(number);
        self.remove(id);
        for (number, id) in self.parameters.clone().into_iter().enumerate() {
            self.expect_mut(id).op = Op::Parameter { number };
        }
    }

    /// Renames the computations that instructions call.
    pub fn map_called_computations(&mut self, mut map: impl FnMut(ComputationId) -> ComputationId) {
        for instruction in self.instructions.values_mut().flatten() {
            instruction.op.map_called_computations(&mut map);
        }
    }

    fn expect_mut(&mut self, id: InstructionId) -> &mut Instruction {
        self.instructions[id].as_mut().expect("a live instruction")
    }
}

/// Searches from the end, because what is removed together is removed backwards.
fn remove_user(instruction: &mut Instruction, user: InstructionId) {
    if let Some(at) = instruction.users.iter().rposition(|&u| u == user) {
        instruction.users.remove(at);
    }
}

impl Index<InstructionId> for Computation {
    type Output = Instruction;

    /// Panics if the instruction was removed.
    fn index(&self, id: InstructionId) -> &Instruction {
        self.instructions[id].as_ref().unwrap_or_else(|| panic!("{id} of {} was removed", self.name))
    }
}
