//! The state of stacks and tensor arrays: local variables, which live in the computation that made the resource, and what
//! must be as before when a computation is translated again.

use crate::bounded::crossing;
use crate::builder::fold::fold;
use crate::builder::scope::Scope;
use crate::lists::stacks::Stack;
use crate::lists::tensor_arrays::TensorArray;
use crate::node::context::NodeContext;
use crate::values::value::{StackId, TensorArrayId, Value, VariableId};
use crate::values::value_type::{leaves, rebuild, value_type};
use crate::walk::importer::Importer;
use hlo::analysis::{Range, range_in};
use hlo::{InstructionId, Op};
use shape::{Literal, PrimitiveType, Shape};
use std::rc::Rc;
use support::{Error, Id, IdVec, Result};

/// Constants with at most so many elements are built again inside of a branch or a loop, so that shapes and axes stay
/// known there.
const MAX_COPIED_ELEMENTS: i64 = 1024;

/// A variable that the program does not know of.
#[derive(Debug)]
pub(crate) struct Local {
    /// The node that made it.
    node: String,
    /// The scope that it lives in, counted from the entry.
    level: usize,
}

/// What translating a computation changes beside the computation.
pub(crate) struct Snapshot {
    instructions: usize,
    branches: usize,
    random_streams: u64,
    depth: usize,
    scopes: usize,
    stacks: IdVec<StackId, Stack>,
    tensor_arrays: IdVec<TensorArrayId, TensorArray>,
}

impl Importer<'_> {
    /// The state before something that may be given up.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            instructions: self.instructions,
            branches: self.branches,
            random_streams: self.random_streams,
            depth: self.depth,
            scopes: self.scopes.len(),
            stacks: self.stacks.clone(),
            tensor_arrays: self.tensor_arrays.clone(),
        }
    }

    /// Gives up what came since.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot) {
        self.instructions = snapshot.instructions;
        self.branches = snapshot.branches;
        self.random_streams = snapshot.random_streams;
        self.depth = snapshot.depth;
        self.scopes.truncate(snapshot.scopes);
        self.stacks.clone_from(&snapshot.stacks);
        self.tensor_arrays.clone_from(&snapshot.tensor_arrays);
    }

    /// The scope that is being built, counted from the entry.
    pub(crate) fn level(&self) -> usize {
        self.scopes.len() - 1
    }

    /// The name of a variable in messages.
    pub(crate) fn variable_name(&self, variable: VariableId) -> &str {
        match self.program.variables.get(variable.index()) {
            Some(variable) => &variable.node_name,
            None => &self.locals[variable.index() - self.program.variables.len()].node,
        }
    }

    /// A new local variable of a node, with a value in a scope that is open.
    pub(crate) fn new_local(&mut self, node: &str, level: usize, value: InstructionId) -> VariableId {
        self.locals.push(Local { node: node.to_owned(), level });
        let variable = VariableId::from_index(self.program.variables.len() + self.locals.len() - 1);
        self.scopes[level].variables.insert(variable, value);
        variable
    }

    /// The scope that a variable lives in: the entry for those of the config.
    pub(crate) fn variable_level(&self, variable: VariableId) -> usize {
        let local = variable.index().checked_sub(self.program.variables.len());
        local.map_or(0, |local| self.locals[local].level)
    }

    /// An array of zeros in a scope that is open.
    pub(crate) fn zeros_at(
        &mut self,
        level: usize,
        element_type: PrimitiveType,
        sizes: &[i64],
    ) -> Result<InstructionId> {
        let zero = crate::builder::operations::scalar_literal(element_type, 0.0);
        self.filled_at(level, zero, sizes)
    }

    /// An array of copies of a scalar in a scope that is open.
    pub(crate) fn filled_at(
        &mut self,
        level: usize,
        scalar: Literal,
        sizes: &[i64],
    ) -> Result<InstructionId> {
        let shape = Shape::array(scalar.array_shape().element_type, sizes);
        if shape::index::element_count(sizes).is_none() {
            return Err(Error::unsupported(format!("an array of sizes {sizes:?} is too large")));
        }
        self.count_instruction()?;
        let Self { module, scopes, .. } = self;
        let id = scopes[level].add_constant(scalar);
        match sizes {
            [] => Ok(id),
            _ => scopes[level].add(module, Op::Broadcast { dimensions: Vec::new() }, &[id], Some(&shape)),
        }
    }

    /// What is known of an integer of the computation being built.
    pub(crate) fn range(&self, id: InstructionId) -> Range {
        self.range_at(self.level(), id)
    }

    /// What is known of an integer of a scope that is open.
    pub(crate) fn range_at(&self, level: usize, id: InstructionId) -> Range {
        let scope = &self.scopes[level];
        let of_leaf = |leaf: InstructionId| {
            if let Some(&range) = scope.ranges.get(&leaf) {
                return Some(range);
            }
            let captures = scope.captures.as_ref()?;
            let instruction = &scope.computation[leaf];
            let Op::GetTupleElement { index } = *instruction.op() else { return None };
            let is_fixed = instruction.operands()[0] == captures.parameter && captures.is_captured(index);
            is_fixed.then(|| self.range_at(level - 1, captures.outer[index]))
        };
        range_in(&self.module, &scope.computation, id, &of_leaf)
    }

    /// What stands in the innermost scope for a value of the scope around it: captured, or built again if it is a small
    /// constant.
    pub(crate) fn bring_in(&mut self, value: Value, is_needed: bool) -> Value {
        match value {
            Value::Array(_) | Value::List(_) if !is_needed => Value::Opaque,
            Value::Array(id) => {
                let outer = &self.scopes[self.scopes.len() - 2];
                let (shape, parts) = (outer.shape(id).expect_array().clone(), crossing::parts(outer, id));
                let inner: Vec<InstructionId> =
                    parts.into_iter().map(|part| self.bring_in_array(part)).collect();
                Value::Array(crossing::assembled(self, &shape, &inner))
            }
            Value::List(_) => {
                let list_type = value_type(self, value);
                let inner: Vec<InstructionId> =
                    leaves(self, value).into_iter().map(|leaf| self.bring_in_array(leaf)).collect();
                rebuild(self, &list_type, &inner)
            }
            handle => handle,
        }
    }

    fn bring_in_array(&mut self, id: InstructionId) -> InstructionId {
        let Self { module, scopes, .. } = self;
        let [.., outer, inner] = scopes.as_mut_slice() else {
            unreachable!("a branch lies in another scope")
        };
        let shape = outer.shape(id).clone();
        let is_small = shape.as_array().is_some_and(|a| a.element_count() <= MAX_COPIED_ELEMENTS);
        let known = if is_small { fold(module, outer, id) } else { None };
        match known {
            Some(literal) => inner.add_constant(literal),
            None => inner.capture(id, &shape),
        }
    }

    /// The shapes of tensor arrays' elements, as far as they are known.
    pub(crate) fn element_shapes(&self) -> Vec<Option<Vec<i64>>> {
        self.tensor_arrays.values().map(|array| array.element.clone()).collect()
    }

    /// Takes over such shapes where none were known.
    pub(crate) fn learn_element_shapes(&mut self, learned: Vec<Option<Vec<i64>>>) {
        for (array, learned) in self.tensor_arrays.values_mut().zip(learned) {
            array.element = array.element.take().or(learned);
        }
    }

    /// How often what is being built runs at most for each time that a scope around it does. `Err` says which loop has
    /// no bound.
    pub(crate) fn runs_within(&self, level: usize) -> Result<i64, String> {
        let mut runs: i64 = 1;
        for facts in self.scopes[level + 1..].iter().filter_map(|scope| scope.loop_facts.as_ref()) {
            let bound = facts.bound.ok_or_else(|| facts.why_unbounded.clone())?;
            runs = runs.saturating_mul(i64::try_from(bound).unwrap_or(i64::MAX));
        }
        Ok(runs)
    }
}

/// The range of a value that is in one of two.
pub(crate) fn join_ranges(a: Range, b: Range) -> Range {
    Range { low: a.low.zip(b.low).map(|(a, b)| a.min(b)), high: a.high.zip(b.high).map(|(a, b)| a.max(b)) }
}

impl<'p> NodeContext<'_, 'p> {
    /// Builds in a scope of its own; gives that back.
    pub(crate) fn within<R>(
        &mut self,
        mut scope: Scope,
        build: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<(Scope, R)> {
        scope.fold_steps_left = Rc::clone(&self.importer.scope_ref().fold_steps_left);
        let level = self.importer.scopes.len();
        self.importer.scopes.push(scope);
        let built = build(self);
        // What is said of this node is about the computation around that scope.
        self.importer.scopes.truncate(level + 1);
        let scope = self.importer.scopes.pop().expect("the scope that was pushed above");
        Ok((scope, built?))
    }
}
