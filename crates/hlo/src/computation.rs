//! A computation: a graph of instructions with one root, and the functions to edit it.

use crate::annotations::Annotations;
use crate::ids::{ComputationId, InstructionId};
use crate::instruction::{Instruction, OpMetadata};
use crate::opcode::{Op, Opcode, Traits};
use shape::{ProgramShape, Shape};
use std::collections::{BTreeMap, HashMap};
use std::ops::Index;
use std::sync::OnceLock;
use support::{IdSet, IdVec};

/// A graph of instructions. A removed instruction leaves an empty slot, so ids remain valid for the
/// computation's lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    name: String,
    execution_thread: String,
    instructions: IdVec<InstructionId, Option<Instruction>>,
    /// The opcodes of the live instructions. Searches read this list, which is hundreds of times
    /// smaller.
    opcodes: IdVec<InstructionId, Option<Opcode>>,
    parameters: Vec<InstructionId>,
    root: Option<InstructionId>,
    /// Never iterated, since its order is not determined.
    names: HashMap<String, InstructionId>,
    next_suffix: BTreeMap<String, u32>,
    order: Order,
}

/// The post-order of the graph, once something asked for it. It follows from the other fields, so
/// that any two are equal.
#[derive(Clone, Debug, Default)]
struct Order(OnceLock<Vec<InstructionId>>);

impl PartialEq for Order {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Computation {
    /// Creates an empty computation; it needs a root before it is used elsewhere.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            execution_thread: String::new(),
            instructions: IdVec::new(),
            opcodes: IdVec::new(),
            parameters: Vec::new(),
            root: None,
            names: HashMap::new(),
            next_suffix: BTreeMap::new(),
            order: Order::default(),
        }
    }

    /// Returns the name, which is unique in its module.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn set_name(&mut self, name: String) {
        self.name = name;
    }

    /// Returns the computation with another name, to be added to a module.
    #[must_use]
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Returns the name of the thread that runs it; empty for the main thread. It is an annotation
    /// for other compilers and never interpreted.
    pub fn execution_thread(&self) -> &str {
        &self.execution_thread
    }

    /// Sets the name of the thread that runs it.
    pub fn set_execution_thread(&mut self, name: impl Into<String>) {
        self.execution_thread = name.into();
    }

    /// Adds an instruction without any check; [`ComputationBuilder`](crate::ComputationBuilder)
    /// infers shapes, and the verifier checks them. The requested name gets a suffix `.N` if it is
    /// taken; an empty name is replaced by that of the opcode. Parameters must be added in the
    /// order of their numbers.
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
            assert_eq!(number, self.parameters.len(), "parameter added out of order");
            self.parameters.push(id);
        }
        self.add_in_any_order(name, op, shape, operands, metadata)
    }

    /// Builds the list of parameters after they were added in any order. Their numbers are 0, 1,
    /// and so on.
    pub(crate) fn list_parameters(&mut self) {
        let number = |(id, instruction): (InstructionId, &Instruction)| match instruction.op {
            Op::Parameter { number } => Some((number, id)),
            _ => None,
        };
        let by_number: BTreeMap<usize, InstructionId> = self.instructions().filter_map(number).collect();
        self.parameters = by_number.into_values().collect();
        self.forget_order();
    }

    /// Adds an instruction; does not list a parameter yet.
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
            // If the newest instruction is already a user, it is the last one in the list.
            let users = &mut self.expect_mut(operand).users;
            if users.last() != Some(&id) {
                users.push(id);
            }
        }
        self.names.insert(name.clone(), id);
        self.forget_order();
        let users = Vec::new();
        self.opcodes.push(Some(op.opcode()));
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

    /// Iterates over the live instructions in the order in which they were added.
    pub fn instructions(&self) -> impl DoubleEndedIterator<Item = (InstructionId, &Instruction)> {
        self.instructions.iter().filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }

    /// Iterates over the opcodes of the live instructions in the order in which they were added.
    pub fn opcodes(&self) -> impl Iterator<Item = (InstructionId, Opcode)> + '_ {
        self.opcodes.iter().filter_map(|(id, &opcode)| Some((id, opcode?)))
    }

    /// Number of ids allocated so far: the length of a table indexed by instruction.
    pub fn id_count(&self) -> usize {
        self.instructions.len()
    }

    /// Returns the instruction, or `None` if it was removed.
    pub fn get(&self, id: InstructionId) -> Option<&Instruction> {
        self.instructions.get(id)?.as_ref()
    }

    /// Returns the instruction called `name`.
    pub fn find(&self, name: &str) -> Option<InstructionId> {
        self.names.get(name).copied()
    }

    /// Returns the parameters, in the order of their numbers.
    pub fn parameters(&self) -> &[InstructionId] {
        &self.parameters
    }

    /// Returns the instruction that computes the computation's value. Panics if it is not set.
    pub fn root(&self) -> InstructionId {
        self.root.expect("expected a computation with a root")
    }

    /// Returns the root, or `None` if it is not set.
    pub fn root_if_set(&self) -> Option<InstructionId> {
        self.root
    }

    /// Makes an instruction the root.
    pub fn set_root(&mut self, id: InstructionId) {
        assert!(self.get(id).is_some(), "expected a live instruction as root");
        self.root = Some(id);
        self.forget_order();
    }

    /// Returns the shapes and names of the parameters, and the shape of the root.
    pub fn program_shape(&self) -> ProgramShape {
        ProgramShape {
            parameters: self.parameters.iter().map(|&id| self[id].shape.clone()).collect(),
            parameter_names: self.parameters.iter().map(|&id| self[id].name.clone()).collect(),
            result: self[self.root()].shape.clone(),
        }
    }

    /// Returns everything that the root depends on, plus all parameters and effects, operands
    /// before users. The graph determines the order: depth first from the parameters, then the
    /// effects, then the root, with operands from left to right.
    pub fn post_order(&self) -> Vec<InstructionId> {
        self.order.0.get_or_init(|| self.find_post_order()).clone()
    }

    /// Every change of operands, parameters, effects, or the root calls this.
    fn forget_order(&mut self) {
        self.order = Order::default();
    }

    fn find_post_order(&self) -> Vec<InstructionId> {
        let may_have_effect = |&(_, opcode): &(InstructionId, Opcode)| {
            opcode == Opcode::CustomCall || opcode.traits().contains(Traits::SIDE_EFFECT)
        };
        let effects = self.opcodes().filter(may_have_effect).map(|(id, _)| id);
        let effects = effects.filter(|&id| self[id].has_effect());
        let starts: Vec<InstructionId> =
            self.parameters.iter().copied().chain(effects).chain(self.root).collect();
        let mut order = Vec::new();
        let mut seen = IdSet::new();
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

    /// Replaces an instruction by a computation's body, applied to these arguments. The instruction
    /// remains, but is dead.
    pub fn inline(&mut self, instruction: InstructionId, callee: &Self, arguments: &[InstructionId]) {
        let root = self.add_body(callee, arguments);
        self.replace_all_uses(instruction, root);
    }

    /// Adds a copy of a computation's body, applied to these arguments. Returns the copy of the
    /// root.
    pub fn add_body(&mut self, callee: &Self, arguments: &[InstructionId]) -> InstructionId {
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
        copies[&callee.root()]
    }

    /// Replaces all uses of `old` by `new`, including its role as root.
    pub fn replace_all_uses(&mut self, old: InstructionId, new: InstructionId) {
        if old == new {
            return;
        }
        self.forget_order();
        let users = std::mem::take(&mut self.expect_mut(old).users);
        for user in users {
            // The user's operand list is short, whereas a list of users may be long.
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
        self.forget_order();
        let is_user = self[user].operands.contains(&new);
        let old = std::mem::replace(&mut self.expect_mut(user).operands[position], new);
        if !self[user].operands.contains(&old) {
            remove_user(self.expect_mut(old), user);
        }
        if !is_user {
            self.expect_mut(new).users.push(user);
        }
    }

    /// Replaces the payload; the opcode, the operands, and the shape stay the same.
    pub fn set_op(&mut self, id: InstructionId, op: Op) {
        self.forget_order();
        let instruction = self.expect_mut(id);
        assert_eq!(instruction.op.opcode(), op.opcode(), "set_op cannot change the opcode");
        instruction.op = op;
    }

    /// Replaces the shape (for layouts and dynamic dimensions; the verifier checks the rest).
    pub fn set_shape(&mut self, id: InstructionId, shape: Shape) {
        self.expect_mut(id).shape = shape;
    }

    /// Replaces the metadata.
    pub fn set_metadata(&mut self, id: InstructionId, metadata: OpMetadata) {
        self.expect_mut(id).metadata = metadata;
    }

    /// Replaces the annotations for other compilers.
    pub fn set_annotations(&mut self, id: InstructionId, annotations: Option<Annotations>) {
        self.expect_mut(id).annotations = annotations.map(Box::new);
    }

    /// Renames an instruction; a name that is taken gets a suffix.
    pub fn rename(&mut self, id: InstructionId, name: &str) {
        let old = self[id].name.clone();
        self.names.remove(&old);
        let name = self.unique_name(name);
        self.names.insert(name.clone(), id);
        self.expect_mut(id).name = name;
    }

    /// Removes an unused instruction that is neither the root nor a parameter.
    pub fn remove(&mut self, id: InstructionId) {
        assert!(self[id].users.is_empty(), "{} has users", self[id].name);
        assert!(self.root != Some(id), "{} is the root", self[id].name);
        if let Op::Parameter { number } = self[id].op {
            assert!(self.parameters.get(number) != Some(&id), "{} is a parameter", self[id].name);
        }
        self.forget_order();
        let instruction = self.instructions[id].take().expect("expected a live instruction");
        self.opcodes[id] = None;
        self.names.remove(&instruction.name);
        for operand in instruction.operands {
            if let Some(operand) = self.instructions[operand].as_mut() {
                remove_user(operand, id);
            }
        }
    }

    /// Removes an unused parameter and renumbers those after it. The caller must update all calls
    /// accordingly.
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
        self.instructions[id].as_mut().expect("expected a live instruction")
    }
}

/// Searches from the end, because instructions that are removed together are removed in reverse
/// order.
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

#[cfg(test)]
mod tests {
    use super::*;
    use shape::{ArrayShape, PrimitiveType};

    #[test]
    fn every_edit_of_the_graph_changes_its_order() {
        let mut graph = Computation::new("test");
        let shape = || Shape::from(ArrayShape::new(PrimitiveType::F32, &[2]));
        let add = |graph: &mut Computation, op: Op, operands: &[InstructionId]| {
            graph.add("", op, shape(), operands, OpMetadata::default())
        };
        let x = add(&mut graph, Op::Parameter { number: 0 }, &[]);
        let negated = add(&mut graph, Op::Negate {}, &[x]);
        let sum = add(&mut graph, Op::Add {}, &[x, negated]);
        graph.set_root(negated);
        assert_eq!(graph.post_order(), [x, negated]);
        graph.set_root(sum);
        assert_eq!(graph.post_order(), [x, negated, sum]);
        let y = add(&mut graph, Op::Parameter { number: 1 }, &[]);
        assert_eq!(graph.post_order(), [x, y, negated, sum]);
        graph.replace_operand(sum, 0, y);
        let absolute = add(&mut graph, Op::Abs {}, &[y]);
        assert_eq!(graph.post_order(), [x, y, negated, sum]);
        graph.replace_all_uses(negated, absolute);
        assert_eq!(graph.post_order(), [x, y, absolute, sum]);
        let other = graph.clone();
        graph.replace_operand(sum, 1, y);
        assert_eq!(graph.post_order(), [x, y, sum]);
        assert_eq!(other.post_order(), [x, y, absolute, sum]);
        graph.remove(negated);
        graph.remove_parameter(0);
        assert_eq!(graph.post_order(), [y, sum]);
    }
}
