//! Multi-output fusion: merges kernels over one space of elements into one with several results.

mod body;
mod graph;
mod rewrite;

use crate::pass::{Changed, Pass};
use body::Kernel;
use graph::Graph;
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Fuses kernels that read the same arrays, or of which one reads the other's result element by
/// element.
///
/// Candidates are loops over elements, slice updates, concatenations, and reductions over columns
/// whose elements have the same dimensions, except for dimensions of size 1. They become one fusion
/// with a tuple of the results that have other users. Examples of computations that become one pass
/// over the data are the gates of a recurrent cell with their results and the updates that store
/// them; a variable with the moments that an optimizer keeps for it; and the two sums of a batch
/// normalization's gradient. Kernels whose results depend on each other through other instructions
/// are not merged, nor are those that could then no longer write to their destination in place.
/// Exact for every input.
pub struct MultiOutputFusion {
    /// Upper bound of the instructions per fusion.
    pub max_instructions: usize,
    /// Upper bound of the operands and results per fusion.
    pub max_arrays: usize,
}

impl Default for MultiOutputFusion {
    fn default() -> Self {
        Self { max_instructions: 256, max_arrays: 48 }
    }
}

impl Pass for MultiOutputFusion {
    fn name(&self) -> &'static str {
        "multi-output-fusion"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let groups = Groups::find(self, module, id);
            for members in groups {
                rewrite::fuse(module, id, &members);
                changed = true;
            }
            if changed {
                crate::simplify::dce::sweep(module.computation_mut(id));
            }
        }
        Ok(changed.into())
    }
}

/// Maximum number of groups tried for a kernel: the latest groups that share an array with it.
const MAX_TRIES: usize = 8;

/// Kernels that are merged into one.
#[derive(Debug, Default)]
struct Group {
    /// The kernels, in order of execution.
    members: Vec<InstructionId>,
    space: Vec<i64>,
    /// True for each dimension of the space that members reduce; `None` if no member is a
    /// reduction.
    reduced: Option<Vec<bool>>,
    instructions: usize,
    /// Arrays in memory that members read.
    read: BTreeSet<InstructionId>,
    /// Arrays in memory that members replace, completely or in part.
    replaced: BTreeSet<InstructionId>,
}

/// The groups of a computation under construction.
struct Groups<'m> {
    options: &'m MultiOutputFusion,
    computation: &'m Computation,
    graph: Graph<'m>,
    groups: Vec<Group>,
    group_of: BTreeMap<InstructionId, usize>,
    /// For each array in memory, the groups that read or write it.
    near: BTreeMap<InstructionId, Vec<usize>>,
}

impl<'m> Groups<'m> {
    /// The groups of at least two kernels, each in the order of the computation.
    fn find(
        options: &'m MultiOutputFusion,
        module: &'m Module,
        id: ComputationId,
    ) -> Vec<Vec<InstructionId>> {
        let computation = &module[id];
        let mut groups = Self {
            options,
            computation,
            graph: Graph::new(module, id),
            groups: Vec::new(),
            group_of: BTreeMap::new(),
            near: BTreeMap::new(),
        };
        for instruction in computation.post_order() {
            if instruction == computation.root() {
                continue;
            }
            if let Some(kernel) = Kernel::of(module, computation, instruction) {
                groups.add(instruction, &kernel);
            }
        }
        let several = groups.groups.into_iter().filter(|group| group.members.len() > 1);
        several.map(|group| group.members).collect()
    }

    /// Adds a kernel to an existing group or to a new one.
    fn add(&mut self, id: InstructionId, kernel: &Kernel) {
        let mut candidates: Vec<usize> = kernel
            .arrays
            .iter()
            .flat_map(|array| self.near.get(array).into_iter().flatten())
            .copied()
            .collect();
        candidates.sort_unstable();
        candidates.dedup();
        let accepting =
            candidates.into_iter().rev().take(MAX_TRIES).find(|&number| self.takes(number, id, kernel));
        let number = accepting.unwrap_or_else(|| {
            self.groups.push(Group { space: self.space(kernel), ..Group::default() });
            self.groups.len() - 1
        });
        let replaced = self.graph.replaced_by(id);
        let group = &mut self.groups[number];
        group.members.push(id);
        group.instructions += kernel.instructions;
        group.reduced = group.reduced.take().or_else(|| kernel.reduced.clone());
        group.read.extend(&kernel.arrays);
        group.replaced.extend(replaced);
        self.group_of.insert(id, number);
        self.graph.join(id, number);
        for &array in kernel.arrays.iter().chain([&id]) {
            let near = self.near.entry(array).or_default();
            if near.last() != Some(&number) {
                near.push(number);
            }
        }
    }

    /// The space of a kernel's elements. For a kernel that only places a concatenation, this is the
    /// space of its parts.
    fn space(&self, kernel: &Kernel) -> Vec<i64> {
        let source = kernel.placed.and_then(|array| self.group_of.get(&array).map(|_| array));
        let is_concatenation =
            |id: &InstructionId| matches!(self.computation[*id].op(), Op::Concatenate { .. });
        match source.filter(is_concatenation) {
            Some(array) => self.groups[self.group_of[&array]].space.clone(),
            None => kernel.space.clone(),
        }
    }

    /// True if a kernel may join a group.
    fn takes(&self, number: usize, id: InstructionId, kernel: &Kernel) -> bool {
        let group = &self.groups[number];
        let is_member = |array: &InstructionId| self.group_of.get(array) == Some(&number);
        let places_member = kernel.placed.as_ref().is_some_and(is_member);
        let space = if places_member { self.space(kernel) } else { kernel.space.clone() };
        let results = group.members.len() + 1;
        let fits = group.space == space
            && group.instructions + kernel.instructions <= self.options.max_instructions
            && group.read.len() + kernel.arrays.len() + results <= self.options.max_arrays
            && (group.reduced.is_none() || kernel.reduced.is_none() || group.reduced == kernel.reduced);
        if !fits {
            return false;
        }
        // A member's result must be read element by element, and must consist of elements.
        let reads_well = |array: &InstructionId| {
            kernel.on_tile.contains(array) && self.graph.makes_elements(*array)
                || kernel.placed == Some(*array)
        };
        if !kernel.arrays.iter().filter(|array| is_member(array)).all(reads_well) {
            return false;
        }
        // An array that one kernel updates in place must not be read by the others.
        let updated = self.graph.updated_by(id);
        let clash = updated.is_some_and(|buffer| group.read.contains(&buffer) || is_member(&buffer))
            || group.members.iter().any(|&m| {
                self.graph.updated_by(m).is_some_and(|b| kernel.arrays.contains(&b) || updated == Some(b))
            });
        !clash
            && self.is_worth_it(group, kernel, is_member)
            && self.graph.may_join(id, number, &group.replaced)
    }

    /// True if a large array is read once instead of twice.
    fn is_worth_it(
        &self,
        group: &Group,
        kernel: &Kernel,
        is_member: impl Fn(&InstructionId) -> bool,
    ) -> bool {
        let elements: i64 = group.space.iter().product();
        kernel.arrays.iter().any(|array| {
            let count = self.computation[*array].shape().as_array().map_or(0, |s| s.element_count());
            is_member(array) || group.read.contains(array) && count >= elements / 2
        })
    }
}
