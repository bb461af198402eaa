//! Checks an assignment by replaying the schedule over symbolic memory.
//!
//! Every slice holds the value last written to it. The replay checks three properties: each kernel
//! finds the values that it reads, it overwrites an operand only where the plan allows it, and the
//! root's values end up in their places. A loop's body is replayed once, starting from memory that
//! holds none of the loop's writes except its state, so that a successful check covers every
//! iteration. The replay uses neither intervals nor classes nor forwarded values.

use crate::schedule::in_place_target;
use crate::values::{Values, called};
use crate::{Allocation, BufferAssignment, Leaf, Schedule, Slice};
use hlo::{ComputationId, InstructionId, Module, Op};
use plan::{ModulePlan, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Checks an assignment. An error names the first kernel that would read wrong bytes.
pub fn check(
    module: &Module,
    plan: &ModulePlan,
    schedule: &Schedule,
    assignment: &BufferAssignment,
) -> Result<()> {
    let values = Values::literal(module, plan);
    let mut checker = Checker { module, plan, schedule, assignment, values, written: BTreeMap::new() };
    checker.note_written();
    let entry = module.entry();
    let mut memory = Memory::default();
    for &parameter in module[entry].parameters() {
        for leaf in checker.values.leaves(entry, parameter) {
            memory.write(assignment.slices[&leaf], leaf);
        }
    }
    // Equal constants share their bytes, so one slice may hold several values.
    for (leaf, slice) in &assignment.slices {
        if matches!(module[leaf.0][leaf.1].op(), Op::Constant { .. })
            && slice.allocation == Allocation::Constants
        {
            memory.name(*slice, leaf.clone());
        }
    }
    checker.run(entry, &mut memory)?;
    checker.end_copies(entry, &mut memory);
    for (index, definition) in checker.values.root_leaves(entry) {
        let root = (entry, module[entry].root(), index.clone());
        let size = checker.values.shape(&root).byte_size();
        let place = match in_place_target(&checker.values, module, entry, &index) {
            Some(parameter) => assignment.slices[&parameter],
            None => {
                let number = index.first().copied().unwrap_or(0);
                Slice { allocation: Allocation::Result(number), offset: 0, size }
            }
        };
        checker.expect(&memory, place, &definition, "the end of the entry")?;
    }
    Ok(())
}

/// Content of each slice. A slice holds several values if they are equal. Slices are disjoint.
#[derive(Clone, Default)]
struct Memory {
    contents: BTreeMap<(Allocation, u64), (u64, BTreeSet<Leaf>)>,
    /// The slices that hold each value.
    places: BTreeMap<Leaf, BTreeSet<Slice>>,
}

impl Memory {
    fn write(&mut self, slice: Slice, value: Leaf) {
        self.forget(&value);
        self.clobber(slice);
        self.name(slice, value);
    }

    /// Records another name for the content of a slice.
    fn name(&mut self, slice: Slice, value: Leaf) {
        if slice.size > 0 {
            let values = self.contents.entry((slice.allocation, slice.offset)).or_default();
            values.0 = slice.size;
            values.1.insert(value.clone());
            self.places.entry(value).or_default().insert(slice);
        }
    }

    /// Removes a value from all slices; a value of that name dates from an earlier iteration.
    fn forget(&mut self, value: &Leaf) {
        for slice in self.places.remove(value).into_iter().flatten() {
            if let Some(values) = self.contents.get_mut(&(slice.allocation, slice.offset)) {
                values.1.remove(value);
            }
        }
    }

    fn clobber(&mut self, slice: Slice) {
        if slice.size == 0 {
            return;
        }
        let (first, end) = ((slice.allocation, slice.offset), (slice.allocation, slice.offset + slice.size));
        let before = self.contents.range(..first).next_back();
        let reaching =
            before.filter(|((a, offset), (size, _))| *a == slice.allocation && offset + size > slice.offset);
        let overwritten: Vec<(Allocation, u64)> =
            reaching.into_iter().chain(self.contents.range(first..end)).map(|(key, _)| *key).collect();
        for key in overwritten {
            let (size, values) = self.contents.remove(&key).unwrap_or_default();
            let place = Slice { allocation: key.0, offset: key.1, size };
            for value in values {
                if let Some(places) = self.places.get_mut(&value) {
                    places.remove(&place);
                }
            }
        }
    }

    fn holds(&self, slice: Slice, value: &Leaf) -> bool {
        slice.size == 0 || self.places.get(value).is_some_and(|places| places.contains(&slice))
    }

    /// The values that exactly this slice holds.
    fn values(&self, slice: Slice) -> BTreeSet<Leaf> {
        let values =
            self.contents.get(&(slice.allocation, slice.offset)).filter(|values| values.0 == slice.size);
        values.map(|values| values.1.clone()).unwrap_or_default()
    }

    fn copy(&mut self, from: Slice, to: Slice) {
        let values = self.values(from);
        self.clobber(to);
        values.into_iter().for_each(|value| self.name(to, value));
    }

    /// Gives each place the content of the next one, and the last place that of the first.
    fn rotate(&mut self, places: &[Slice]) {
        let values: Vec<BTreeSet<Leaf>> = places.iter().map(|&place| self.values(place)).collect();
        places.iter().for_each(|&place| self.clobber(place));
        for (k, &place) in places.iter().enumerate() {
            values[(k + 1) % values.len()].iter().for_each(|value| self.name(place, value.clone()));
        }
    }

    /// Keeps the values that both memories hold.
    fn intersect(&mut self, other: &Self) {
        let all: Vec<(Leaf, Slice)> = (self.places.iter())
            .flat_map(|(value, places)| places.iter().map(move |place| (value.clone(), *place)))
            .collect();
        for (value, place) in all {
            if !other.holds(place, &value) {
                if let Some(values) = self.contents.get_mut(&(place.allocation, place.offset)) {
                    values.1.remove(&value);
                }
                if let Some(places) = self.places.get_mut(&value) {
                    places.remove(&place);
                }
            }
        }
        self.contents.retain(|_, values| !values.1.is_empty());
    }
}

struct Checker<'m> {
    module: &'m Module,
    plan: &'m ModulePlan,
    schedule: &'m Schedule,
    assignment: &'m BufferAssignment,
    values: Values<'m>,
    /// Slices that running a computation writes, including those of the computations that it runs.
    written: BTreeMap<ComputationId, BTreeSet<Slice>>,
}

impl Checker<'_> {
    fn note_written(&mut self) {
        for &computation in self.values.order().iter().rev() {
            let copies = self.assignment.end_copies.get(&computation).into_iter().flatten();
            let mut written: BTreeSet<Slice> = copies.map(|copy| copy.to).collect();
            for &instruction in &self.schedule.sequences[&computation] {
                if self.plan.computations[&computation].instructions[&instruction].strategy == Strategy::Alias
                {
                    continue;
                }
                let place = (computation, instruction);
                let callees = called(self.module[computation][instruction].op());
                if callees.is_empty() {
                    let leaves = self.values.leaves(computation, instruction).into_iter();
                    written.extend(leaves.map(|leaf| self.assignment.slice(leaf.0, leaf.1, &leaf.2)));
                    written.extend(self.assignment.scratch.get(&place));
                }
                let copies = self.assignment.start_copies.get(&place).into_iter().flatten();
                written.extend(copies.map(|copy| copy.to));
                for rotation in self.assignment.rotations.get(&place).into_iter().flatten() {
                    written.extend(rotation.places.iter().chain(&rotation.stages));
                }
                for callee in callees {
                    written.extend(self.written.get(&callee).into_iter().flatten());
                }
            }
            self.written.insert(computation, written);
        }
    }

    fn expect(&self, memory: &Memory, slice: Slice, value: &Leaf, place: &str) -> Result<()> {
        if memory.holds(slice, value) {
            return Ok(());
        }
        let name = self.module[value.0][value.1].name();
        Err(Error::internal(format!("buffer assignment: {place} expects {name}{:?} in {slice}", value.2)))
    }

    fn run(&self, computation: ComputationId, memory: &mut Memory) -> Result<()> {
        for &instruction in &self.schedule.sequences[&computation] {
            if self.plan.computations[&computation].instructions[&instruction].strategy == Strategy::Alias {
                continue;
            }
            match self.module[computation][instruction].op() {
                Op::Conditional { branch_computations } => {
                    self.reads(computation, instruction, memory)?;
                    self.conditional(computation, instruction, branch_computations, memory)?;
                }
                Op::While { condition, body } => {
                    self.reads(computation, instruction, memory)?;
                    self.repeat(computation, instruction, *condition, *body, memory)?;
                }
                _ => self.kernel(computation, instruction, memory)?,
            }
        }
        Ok(())
    }

    fn end_copies(&self, computation: ComputationId, memory: &mut Memory) {
        for copy in self.assignment.end_copies.get(&computation).into_iter().flatten() {
            memory.copy(copy.from, copy.to);
        }
    }

    /// Checks that each slice an instruction reads holds its value, and returns the slices.
    fn reads(
        &self,
        computation: ComputationId,
        instruction: InstructionId,
        memory: &Memory,
    ) -> Result<Vec<Slice>> {
        let name = self.module[computation][instruction].name();
        let mut slices = Vec::new();
        for leaf in self.values.reads(computation, instruction) {
            let slice = self.assignment.slice(leaf.0, leaf.1, &leaf.2);
            self.expect(memory, slice, &leaf, name)?;
            slices.push(slice);
        }
        Ok(slices)
    }

    fn kernel(
        &self,
        computation: ComputationId,
        instruction: InstructionId,
        memory: &mut Memory,
    ) -> Result<()> {
        let current = &self.module[computation][instruction];
        let plan = &self.plan.computations[&computation].instructions[&instruction];
        let reads = self.reads(computation, instruction, memory)?;
        let mut writes = Vec::new();
        for leaf in self.values.leaves(computation, instruction) {
            writes.push((self.assignment.slice(computation, instruction, &leaf.2), leaf));
        }
        // A value that is also read in another way must not be overwritten.
        let strict = |index: &[usize]| -> BTreeSet<Slice> {
            let may = |k: usize| match index {
                [] => plan.may_overwrite.contains(&k),
                [leaf] => plan.leaves_may_overwrite.contains(&(*leaf, k)),
                _ => false,
            };
            let operands = current.operands().iter().enumerate();
            operands
                .filter(|(k, _)| !may(*k) && !plan.packed.iter().any(|p| p.operand == Some(*k)))
                .flat_map(|(_, &operand)| self.values.leaves(computation, operand))
                .filter_map(|leaf| self.assignment.slices.get(&self.values.definition(leaf)).copied())
                .collect()
        };
        let scratch = self.assignment.scratch.get(&(computation, instruction)).copied();
        for (number, (slice, leaf)) in writes.iter().enumerate() {
            let strict = strict(&leaf.2);
            let is_twice = writes[..number].iter().any(|(other, _)| other.overlaps(slice));
            let clash = is_twice
                || reads.iter().any(|read| read.overlaps(slice) && (read != slice || strict.contains(read)));
            let constant = slice.allocation == Allocation::Constants && slice.size > 0;
            if clash || constant || scratch.is_some_and(|s| s.overlaps(slice)) {
                return Err(Error::internal(format!(
                    "buffer assignment: {} overwrites {slice}, which is still in use",
                    current.name()
                )));
            }
        }
        if let Some(scratch) = scratch {
            if reads.iter().any(|read| read.overlaps(&scratch)) {
                return Err(Error::internal(format!(
                    "buffer assignment: scratch of {} overlaps an operand",
                    current.name()
                )));
            }
            memory.clobber(scratch);
        }
        for (slice, leaf) in writes {
            memory.write(slice, leaf);
        }
        Ok(())
    }

    /// Replays each branch from the same memory. Then memory holds the values that every
    /// branch leaves.
    fn conditional(
        &self,
        computation: ComputationId,
        instruction: InstructionId,
        branches: &[ComputationId],
        memory: &mut Memory,
    ) -> Result<()> {
        let mut after: Option<Memory> = None;
        for &branch in branches {
            let mut branch_memory = memory.clone();
            self.run(branch, &mut branch_memory)?;
            self.end_copies(branch, &mut branch_memory);
            self.hand_over(branch, computation, instruction, &mut branch_memory)?;
            after = Some(match after {
                None => branch_memory,
                Some(mut common) => {
                    common.intersect(&branch_memory);
                    common
                }
            });
        }
        *memory = after.unwrap_or_default();
        Ok(())
    }

    /// Replays a loop for any number of iterations.
    fn repeat(
        &self,
        computation: ComputationId,
        instruction: InstructionId,
        condition: ComputationId,
        body: ComputationId,
        memory: &mut Memory,
    ) -> Result<()> {
        let place = (computation, instruction);
        for copy in self.assignment.start_copies.get(&place).into_iter().flatten() {
            memory.copy(copy.from, copy.to);
        }
        let name = self.module[computation][instruction].name();
        let initial = self.module[computation][instruction].operands()[0];
        let states = self.values.leaves(computation, instruction);
        for state in &states {
            let slice = self.assignment.slice(computation, instruction, &state.2);
            let start = self.values.definition((computation, initial, state.2.clone()));
            self.expect(memory, slice, &start, name)?;
        }
        let rotations = self.assignment.rotations.get(&place).map_or(&[][..], Vec::as_slice);
        let exchanged = rotations.iter().flat_map(|rotation| &rotation.places);
        for slice in [condition, body].iter().flat_map(|c| &self.written[c]).chain(exchanged) {
            memory.clobber(*slice);
        }
        for state in states {
            memory.forget(&state);
            memory.name(self.assignment.slice(computation, instruction, &state.2), state);
        }
        self.run(condition, memory)?;
        self.end_copies(condition, memory);
        let mut round = memory.clone();
        self.run(body, &mut round)?;
        rotations.iter().for_each(|rotation| round.rotate(&rotation.places));
        self.end_copies(body, &mut round);
        self.hand_over(body, computation, instruction, &mut round)?;
        // After the loop, only the state is back at its own address.
        for rotation in rotations {
            let others = rotation.places.iter().filter(|place| !rotation.state.contains(place));
            others.chain(&rotation.stages).for_each(|place| memory.clobber(*place));
        }
        Ok(())
    }

    /// Checks that the root's values of a called computation are in the caller's memory, and makes
    /// them the caller's result.
    fn hand_over(
        &self,
        callee: ComputationId,
        computation: ComputationId,
        instruction: InstructionId,
        memory: &mut Memory,
    ) -> Result<()> {
        let mut results = Vec::new();
        for (index, definition) in self.values.root_leaves(callee) {
            let slice = self.assignment.slice(computation, instruction, &index);
            self.expect(memory, slice, &definition, self.module[callee].name())?;
            results.push((slice, (computation, instruction, index)));
        }
        results.iter().for_each(|(_, result)| memory.forget(result));
        results.into_iter().for_each(|(slice, result)| memory.name(slice, result));
        Ok(())
    }
}
