//! HLO under construction: the finished computations, the open ones, and the budget for more.
//!
//! The builder only knows HLO, not the language that is translated to it. A scope is an open
//! computation. Branches and loop bodies open scopes of their own, and capture the values that they
//! read from enclosing ones.

mod fold;
mod gather;
mod literals;
mod operations;
mod polynomials;
mod progressions;
mod reducer;
mod regions;
mod scatter;
mod scope;
mod variables;

pub use fold::LinearElement;
pub use literals::{integer_vector, scalar_literal, scalar_of};
pub use operations::{broadcast_sizes, list};
pub use reducer::{Reducer, highest, lowest};
pub use regions::{Branch, Carried};
pub use scatter::Indices;
pub use scope::{Captures, LoopFacts, Scope, check_size};
pub use variables::VariableId;

use hlo::analysis::{Range, range_in};
use hlo::{Computation, ComputationId, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{Code, Error, Result};

/// Maximum total number of instructions. Some nodes build one for each of their outputs.
const MAX_INSTRUCTIONS: usize = 250_000;

/// Maximum total number of branches of all conditionals. The cost of code generation grows
/// superlinearly with it.
const MAX_BRANCHES: usize = 10_000;

/// A module under construction.
#[derive(Debug)]
pub struct Builder {
    module: Module,
    /// The entry, followed by the computations being built, the innermost last.
    scopes: Vec<Scope>,
    reducers: BTreeMap<(Reducer, PrimitiveType), ComputationId>,
    budget: Budget,
    /// Parameters of the entry that are sizes of named dimensions.
    size_parameters: Vec<InstructionId>,
}

/// The numbers of objects built so far.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    instructions: usize,
    branches: usize,
}

/// The state of a builder at the beginning of a trial. Finished computations are not removed: after
/// a rollback, nothing calls them.
#[derive(Debug)]
pub struct Checkpoint {
    budget: Budget,
    scopes: usize,
}

impl Builder {
    /// Creates a builder that adds to a module, with an open entry.
    pub fn new(module: Module) -> Self {
        Self {
            module,
            scopes: vec![Scope::entry("main")],
            reducers: BTreeMap::new(),
            budget: Budget::default(),
            size_parameters: Vec::new(),
        }
    }

    /// The finished computations.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The finished computations, to be extended.
    pub fn module_mut(&mut self) -> &mut Module {
        &mut self.module
    }

    /// Adds a finished computation.
    pub fn add_computation(&mut self, computation: Computation) -> ComputationId {
        self.module.add_computation(computation)
    }

    /// Returns the module, with a tuple of these elements as the entry's result. Computations that
    /// nothing calls are removed.
    pub fn finish(mut self, elements: &[InstructionId]) -> Module {
        let (entry, _) = self.close(0).finish(elements);
        self.finish_with(entry)
    }

    /// Like [`Self::finish`], with one instruction as the entry's result.
    pub fn finish_at(mut self, root: InstructionId) -> Module {
        let (entry, _) = self.close(0).finish_at(root);
        self.finish_with(entry)
    }

    /// Returns the module, with a finished computation as its entry.
    pub fn finish_with(mut self, entry: Computation) -> Module {
        let entry = self.module.add_computation(entry);
        self.module.set_entry(entry);
        // Remove reducers and branches without uses.
        self.module.remove_unreachable_computations();
        self.module
    }

    /// Returns a checkpoint for a trial.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { budget: self.budget, scopes: self.scopes.len() }
    }

    /// Rolls back to a checkpoint.
    pub fn roll_back(&mut self, to: &Checkpoint) {
        self.budget = to.budget;
        self.scopes.truncate(to.scopes);
    }

    /// Closes the scopes opened since a checkpoint, without restoring the budget.
    pub fn close_since(&mut self, before: &Checkpoint) {
        self.scopes.truncate(before.scopes);
    }

    /// Opens a scope within the innermost, and returns its level.
    pub fn open(&mut self, mut scope: Scope) -> usize {
        scope.fold_steps_left = Rc::clone(&self.scope_ref().fold_steps_left);
        self.scopes.push(scope);
        self.level()
    }

    /// Closes the scope of a level, and discards scopes that an error left open within it.
    pub fn close(&mut self, level: usize) -> Scope {
        self.scopes.truncate(level + 1);
        self.scopes.pop().expect("the scope of this level is not open")
    }

    /// Returns an open scope, by its level. The entry has level 0.
    pub fn scope_at(&self, level: usize) -> &Scope {
        &self.scopes[level]
    }

    /// Returns the number of the innermost branch being built.
    pub fn branch(&self) -> Option<usize> {
        self.scopes.iter().rev().find_map(|scope| scope.branch)
    }

    /// Creates a scope for a branch of a conditional, with the metadata of the innermost scope.
    pub fn branch_scope(&self, name: &str, index: usize) -> Scope {
        let mut scope = Scope::branch(name);
        scope.branch = Some(index);
        scope.metadata = self.scope_ref().metadata.clone();
        scope
    }

    /// Creates a scope for a computation of a loop, with the metadata of the innermost scope. Its
    /// parameter begins with the carried values.
    pub fn loop_scope(&self, name: &str, carried: &[(InstructionId, Shape)], facts: LoopFacts) -> Scope {
        let mut scope = Scope::of_loop(name, carried, facts);
        scope.metadata = self.scope_ref().metadata.clone();
        scope
    }

    /// The metadata of instructions to be built in the innermost scope.
    pub fn metadata(&self) -> &OpMetadata {
        &self.scope_ref().metadata
    }

    /// Replaces the metadata, and returns the old one.
    pub fn set_metadata(&mut self, metadata: OpMetadata) -> OpMetadata {
        std::mem::replace(&mut self.scope().metadata, metadata)
    }

    /// Changes the op that the metadata names.
    pub fn set_op_type(&mut self, op: &str) {
        self.scope().metadata.op_type = op.to_owned();
    }

    /// Records the range of an integer, in addition to what follows from its operands.
    pub fn note_range(&mut self, id: InstructionId, range: Range) {
        self.scope().ranges.insert(id, range);
    }

    /// Adds a parameter of the entry that is the size of a named dimension, from `low` to `high`.
    pub fn add_size_parameter(&mut self, id: InstructionId, low: i64, high: i64) {
        self.note_range(id, Range { low: Some(low), high: Some(high) });
        self.size_parameters.push(id);
    }

    /// Returns the size of a named dimension for use in the innermost scope.
    pub fn size_parameter(&mut self, position: usize) -> InstructionId {
        let shape = Shape::scalar(PrimitiveType::S32);
        let mut id = self.size_parameters[position];
        let range = self.range_at(0, id);
        for scope in &mut self.scopes[1..] {
            id = scope.capture(id, &shape);
            scope.ranges.insert(id, range);
        }
        id
    }

    /// Returns the size of a named dimension in the entry.
    pub fn entry_size_parameter(&self, position: usize) -> InstructionId {
        self.size_parameters[position]
    }

    /// Returns the position of the named dimension whose size this is, if it is one.
    pub fn named_size(&self, id: InstructionId) -> Option<usize> {
        self.named_size_at(self.level(), id)
    }

    /// Like [`Self::named_size`], for an instruction of an open scope.
    pub fn named_size_at(&self, level: usize, id: InstructionId) -> Option<usize> {
        if self.size_parameters.is_empty() {
            return None;
        }
        let mut id = id;
        for level in (0..=level).rev() {
            id = self.origin(level, id);
            if level == 0 {
                break;
            }
            let scope = &self.scopes[level];
            let captures = scope.captures.as_ref()?;
            let instruction = &scope.computation[id];
            let Op::GetTupleElement { index } = *instruction.op() else { return None };
            if instruction.operands()[0] != captures.parameter || !captures.is_captured(index) {
                return None;
            }
            id = captures.outer[index];
        }
        self.size_parameters.iter().position(|&size| size == id)
    }

    /// The computation being built.
    pub fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("no scope is open")
    }

    /// The computation being built, read-only.
    pub fn scope_ref(&self) -> &Scope {
        self.scopes.last().expect("no scope is open")
    }

    /// The finished computations, and the one being built.
    pub fn module_and_scope(&mut self) -> (&Module, &mut Scope) {
        (&self.module, self.scopes.last_mut().expect("no scope is open"))
    }

    /// Counts an instruction about to be built. Returns an error if there are too many.
    pub fn count_instruction(&mut self) -> Result<()> {
        self.budget.instructions += 1;
        if self.budget.instructions <= MAX_INSTRUCTIONS {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "the graph needs more than {MAX_INSTRUCTIONS} instructions after its function calls are inlined; split it \
             into several programs"
        )).coded(Code::TooLarge))
    }

    /// Counts the branches of a conditional about to be built. Returns an error if there are too
    /// many.
    pub fn count_branches(&mut self, branches: usize) -> Result<()> {
        self.budget.branches = self.budget.branches.saturating_add(branches);
        if self.budget.branches <= MAX_BRANCHES {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "the graph's conditionals have more than {MAX_BRANCHES} branches; split it into several programs"
        ))
        .coded(Code::TooLarge))
    }

    /// Returns the scalar computation of a reducer. It is built once for each type.
    pub fn reducer(&mut self, reducer: Reducer, element_type: PrimitiveType) -> Result<ComputationId> {
        if let Some(&id) = self.reducers.get(&(reducer, element_type)) {
            return Ok(id);
        }
        let id = reducer.build(&mut self.module, element_type)?;
        self.reducers.insert((reducer, element_type), id);
        Ok(id)
    }

    /// Level of the scope being built, counted from the entry.
    pub fn level(&self) -> usize {
        self.scopes.len() - 1
    }

    /// Adds an array of zeros in an open scope.
    pub fn zeros_at(
        &mut self,
        level: usize,
        element_type: PrimitiveType,
        sizes: &[i64],
    ) -> Result<InstructionId> {
        let zero = scalar_literal(element_type, 0.0);
        self.filled_at(level, zero, sizes)
    }

    /// Adds an array of copies of a scalar in an open scope.
    pub fn filled_at(&mut self, level: usize, scalar: Literal, sizes: &[i64]) -> Result<InstructionId> {
        let shape = Shape::array(scalar.array_shape().element_type, sizes);
        if shape::index::element_count(sizes).is_none() {
            return Err(Error::unsupported(format!("an array is too large: {sizes:?}")));
        }
        self.count_instruction()?;
        let Self { module, scopes, .. } = self;
        let id = scopes[level].add_constant(scalar);
        match sizes {
            [] => Ok(id),
            _ => scopes[level].add(module, Op::Broadcast { dimensions: Vec::new() }, &[id], Some(&shape)),
        }
    }

    /// Returns the range of an integer of the computation being built.
    pub fn range(&self, id: InstructionId) -> Range {
        self.range_at(self.level(), id)
    }

    /// Returns the range of an integer of an open scope.
    pub fn range_at(&self, level: usize, id: InstructionId) -> Range {
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

    /// Returns the maximum number of times that the innermost scope runs per run of an enclosing
    /// scope. `Err` explains which loop has no bound.
    pub fn runs_within(&self, level: usize) -> Result<i64, String> {
        let mut runs: i64 = 1;
        for facts in self.scopes[level + 1..].iter().filter_map(|scope| scope.loop_facts.as_ref()) {
            let bound = facts.bound.ok_or_else(|| facts.why_unbounded.clone())?;
            runs = runs.saturating_mul(i64::try_from(bound).unwrap_or(i64::MAX));
        }
        Ok(runs)
    }

    /// Returns an instruction of the computation being built and everything that it depends on,
    /// each with the level of its scope. Captured values are followed into enclosing scopes.
    pub fn dependencies(&self, id: InstructionId) -> BTreeSet<(usize, InstructionId)> {
        let mut seen = BTreeSet::new();
        let mut stack = vec![(self.scopes.len() - 1, id)];
        while let Some((level, id)) = stack.pop() {
            if !seen.insert((level, id)) {
                continue;
            }
            let scope = &self.scopes[level];
            let instruction = &scope.computation[id];
            match (instruction.op(), &scope.captures) {
                (Op::GetTupleElement { index }, Some(captures))
                    if instruction.operands()[0] == captures.parameter =>
                {
                    stack.extend(captures.outer().get(*index).map(|&outer| (level - 1, outer)));
                }
                _ => stack.extend(instruction.operands().iter().map(|&operand| (level, operand))),
            }
        }
        seen
    }

    /// Describes the loops that an instruction depends on.
    pub fn loops_before(&self, id: InstructionId) -> Vec<String> {
        let mut loops = BTreeSet::new();
        for (level, id) in self.dependencies(id) {
            let instruction = &self.scopes[level].computation[id];
            if let Op::While { .. } = instruction.op() {
                loops.insert(format!("the loop '{}'", instruction.metadata().op_name));
            }
        }
        loops.into_iter().collect()
    }

    /// Returns an error about the translated graph. The caller adds the location.
    pub fn invalid(&self, message: impl Into<String>) -> Error {
        Error::invalid(message)
    }

    /// Returns an error unless `holds`.
    pub fn check(&self, holds: bool, message: impl FnOnce() -> String) -> Result<()> {
        if holds { Ok(()) } else { Err(self.invalid(message())) }
    }

    /// Returns the shape of an array.
    pub fn array(&self, id: InstructionId) -> ArrayShape {
        self.scope_ref().shape(id).expect_array().clone()
    }

    /// Returns the sizes of an array.
    pub fn sizes(&self, id: InstructionId) -> Vec<i64> {
        self.array(id).sizes()
    }

    /// Returns the rank of an array.
    pub fn rank(&self, id: InstructionId) -> usize {
        self.scope_ref().shape(id).expect_array().rank()
    }

    /// Returns the element type of an array.
    pub fn element_type(&self, id: InstructionId) -> PrimitiveType {
        self.scope_ref().shape(id).expect_array().element_type
    }

    /// Returns a dimension number. Negative axes count from the end.
    pub fn dimension(&self, axis: i64, rank: usize) -> Result<usize> {
        let rank = rank as i64;
        let dimension = if axis < 0 { axis + rank } else { axis };
        self.check((0..rank).contains(&dimension), || {
            format!(
                "axis {axis} is out of range for a tensor of rank {rank}: expected an axis in [{}, {rank})",
                -rank
            )
        })?;
        Ok(dimension as usize)
    }
}
/// Returns the range of a value that is in one of two ranges.
pub fn join_ranges(a: Range, b: Range) -> Range {
    Range { low: a.low.zip(b.low).map(|(a, b)| a.min(b)), high: a.high.zip(b.high).map(|(a, b)| a.max(b)) }
}
