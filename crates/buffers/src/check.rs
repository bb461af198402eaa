//! Judges an assignment by replaying the schedule over symbolic memory.
//!
//! Every slice holds the value last written to it. The replay checks that each kernel finds the values that it reads, that
//! it writes over an operand only where the plan allows, and that the root's values end up where they belong. It knows
//! nothing of intervals, groups or homes.

use crate::schedule::in_place_target;
use crate::values::Values;
use crate::{Allocation, BufferAssignment, Leaf, Schedule, Slice};
use hlo::{ComputationId, InstructionId, Module, Op};
use plan::{ModulePlan, Strategy};
use support::{Error, Result};

/// An error names the first kernel that would read the wrong bytes.
pub fn check(
    module: &Module,
    plan: &ModulePlan,
    schedule: &Schedule,
    assignment: &BufferAssignment,
) -> Result<()> {
    let checker = Checker { module, plan, schedule, assignment, values: Values::new(module, plan) };
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
            memory.contents.push((*slice, leaf.clone()));
        }
    }
    checker.run(entry, &mut memory)?;
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

/// What each slice holds.
#[derive(Clone, Default)]
struct Memory {
    contents: Vec<(Slice, Leaf)>,
}

impl Memory {
    fn write(&mut self, slice: Slice, value: Leaf) {
        self.clobber(slice);
        self.contents.push((slice, value));
    }

    fn clobber(&mut self, slice: Slice) {
        self.contents.retain(|(other, _)| !other.overlaps(&slice));
    }

    fn holds(&self, slice: Slice, value: &Leaf) -> bool {
        slice.size == 0 || self.contents.iter().any(|(s, v)| *s == slice && v == value)
    }

    fn copy(&mut self, from: Slice, to: Slice) {
        let held: Vec<Leaf> =
            self.contents.iter().filter(|(s, _)| *s == from).map(|(_, v)| v.clone()).collect();
        self.clobber(to);
        self.contents.extend(held.into_iter().map(|value| (to, value)));
    }
}

struct Checker<'m> {
    module: &'m Module,
    plan: &'m ModulePlan,
    schedule: &'m Schedule,
    assignment: &'m BufferAssignment,
    values: Values<'m>,
}

impl Checker<'_> {
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
        for copy in self.assignment.end_copies.get(&computation).into_iter().flatten() {
            memory.copy(copy.from, copy.to);
        }
        Ok(())
    }

    /// The slices that an instruction reads, each checked to hold its value.
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
        let allowed: Vec<Slice> = plan
            .may_overwrite
            .iter()
            .flat_map(|&k| self.values.leaves(computation, current.operands()[k]))
            .map(|leaf| self.assignment.slice(leaf.0, leaf.1, &leaf.2))
            .collect();
        let scratch = self.assignment.scratch.get(&(computation, instruction)).copied();
        for (slice, _) in &writes {
            let clash =
                reads.iter().any(|read| read.overlaps(slice) && !(read == slice && allowed.contains(read)));
            let constant = slice.allocation == Allocation::Constants && slice.size > 0;
            if clash || constant || scratch.is_some_and(|s| s.overlaps(slice)) {
                return Err(Error::internal(format!(
                    "buffer assignment: {} must not write {slice}, which it still needs",
                    current.name()
                )));
            }
        }
        if let Some(scratch) = scratch {
            if reads.iter().any(|read| read.overlaps(&scratch)) {
                return Err(Error::internal(format!(
                    "buffer assignment: scratch of {} is in use",
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

    /// Each branch from the same memory; what holds afterwards is what holds after every one.
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
            self.hand_over(branch, computation, instruction, &mut branch_memory)?;
            after = Some(match after {
                None => branch_memory,
                Some(mut common) => {
                    common.contents.retain(|held| branch_memory.contents.contains(held));
                    common
                }
            });
        }
        *memory = after.unwrap_or_default();
        Ok(())
    }

    /// Twice around, so that what one iteration leaves behind is what the next one finds.
    fn repeat(
        &self,
        computation: ComputationId,
        instruction: InstructionId,
        condition: ComputationId,
        body: ComputationId,
        memory: &mut Memory,
    ) -> Result<()> {
        for copy in self.assignment.start_copies.get(&(computation, instruction)).into_iter().flatten() {
            memory.copy(copy.from, copy.to);
        }
        for leaf in self.values.leaves(computation, instruction) {
            let slice = self.assignment.slice(computation, instruction, &leaf.2);
            memory.write(slice, leaf);
        }
        for _ in 0..2 {
            self.run(condition, memory)?;
            self.run(body, memory)?;
            self.hand_over(body, computation, instruction, memory)?;
        }
        self.run(condition, memory)
    }

    /// Checks that the root's values of a called computation are in the caller's memory, where they become its value.
    fn hand_over(
        &self,
        callee: ComputationId,
        computation: ComputationId,
        instruction: InstructionId,
        memory: &mut Memory,
    ) -> Result<()> {
        for (index, definition) in self.values.root_leaves(callee) {
            let slice = self.assignment.slice(computation, instruction, &index);
            self.expect(memory, slice, &definition, self.module[callee].name())?;
            memory.write(slice, (computation, instruction, index));
        }
        Ok(())
    }
}
