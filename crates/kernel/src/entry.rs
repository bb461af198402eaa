//! The entry function. It calls the kernels in schedule order, except that a parallel region may
//! run a kernel earlier.
//!
//! Its parameter is the caller's frame. The entry reads each pointer that it needs from the frame
//! once, before everything else.

pub mod choice;
pub(crate) mod custom_call;
mod loop_groups;
pub mod pieces;
pub(crate) mod profile;
pub mod regions;

use crate::calls::{Call, Kernels};
use buffers::{Allocation, BufferAssignment, CopyPair, Rotation, Schedule, Slice};
use hlo::custom_call::custom_call;
use hlo::{ComputationId, InstructionId, Module, Op};
use loop_groups::Scope;
use nest::{
    FrameLayout, FunctionBuilder, Linkage, PointerFacts, Predicate, Program, RegionBuilder, ScalarType, Type,
    ValueId,
};
use profile::{Counter, Profile};
use regions::{Item, Region};
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::{Error, Result};
use target::Target;

/// Maximum number of instructions with kernels for which the entry reads all pointers first. With
/// more, the pointers would not fit into registers, so each call reads its own.
const MAX_HOISTING_CALLS: usize = 256;

/// Maximum nesting depth of conditionals and loops.
const MAX_NESTING: usize = 100;

/// Inputs for building the entry.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) module: &'a Module,
    pub(crate) schedule: &'a Schedule,
    pub(crate) assignment: &'a BufferAssignment,
    pub(crate) target: &'a Target,
    pub(crate) kernels: &'a Kernels,
    /// Counters of a profiled entry. Empty if the entry is not profiled.
    pub(crate) counters: &'a [Counter],
}

/// Adds the entry function to a program, and a function for each region of several kernels. Returns
/// the regions. `unique` turns a requested function name into a unique one.
pub(crate) fn emit(
    context: &Context<'_>,
    name: &str,
    program: &mut Program,
    unique: &mut dyn FnMut(&str) -> String,
) -> Result<Vec<Region>> {
    // Code that leaves the entry early writes its error message into the frame.
    let may_leave = custom_call::may_leave(context.module) || !context.module.size_parameters().is_empty();
    let mut entry = Entry::new(context, name, may_leave, program, unique);
    if !context.counters.is_empty() {
        let pointer = entry.field(entry.layout.profile_counters());
        entry.profile = Some(Profile::new(&mut entry.scope.builder, pointer, context.counters));
    }
    entry.timed(Counter::Total, |entry| {
        let _ = entry.check_sizes()?;
        entry.sequence(context.module.entry(), 0)?;
        entry.end_copies(context.module.entry());
        Ok(())
    })?;
    let Entry { scope, program, regions, .. } = entry;
    program.functions.push(scope.builder.finish());
    Ok(regions)
}

/// Emitter for the entry and for the loops that it runs at the same time.
pub(crate) struct Entry<'a> {
    scope: Scope,
    /// The caller's frame, which receives error messages.
    caller: ValueId,
    pub(crate) module: &'a Module,
    schedule: &'a Schedule,
    pub(crate) assignment: &'a BufferAssignment,
    kernels: &'a Kernels,
    pub(crate) layout: FrameLayout,
    program: &'a mut Program,
    unique: &'a mut dyn FnMut(&str) -> String,
    regions: Vec<Region>,
    /// Time counters, if the entry is profiled.
    profile: Option<Profile<'a>>,
}

impl RegionBuilder for Entry<'_> {
    fn builder(&mut self) -> &mut FunctionBuilder {
        &mut self.scope.builder
    }
}

impl<'a> Entry<'a> {
    /// Begins the entry function. `may_leave` is true if it may return before its end.
    fn new(
        context: &Context<'a>,
        name: &str,
        may_leave: bool,
        program: &'a mut Program,
        unique: &'a mut dyn FnMut(&str) -> String,
    ) -> Self {
        let &Context { module, schedule, assignment, target, kernels, .. } = context;
        let mut b = FunctionBuilder::new(name, Linkage::Entry);
        let facts = PointerFacts { no_alias: true, read_only: !may_leave, alignment: target.pointer_bytes };
        let frame = b.parameter("frame", Type::PTR, facts);
        let scope = Scope {
            builder: b,
            frame,
            hoisting_depth: 1,
            fields: BTreeMap::new(),
            pointers: BTreeMap::new(),
            exchanged: BTreeMap::new(),
            is_on_worker: false,
        };
        let layout = FrameLayout::new(target.pointer_bytes);
        let regions = Vec::new();
        Self {
            scope,
            caller: frame,
            module,
            schedule,
            assignment,
            kernels,
            layout,
            program,
            unique,
            regions,
            profile: None,
        }
    }

    /// Emits everything in a computation except the copies at its end.
    fn sequence(&mut self, computation: ComputationId, nesting: usize) -> Result<()> {
        if nesting > MAX_NESTING {
            return Err(Error::unsupported(format!("control flow nested more than {MAX_NESTING} deep")));
        }
        let sequence = self.schedule.sequences.get(&computation);
        let kernels = self.kernels;
        let mut calls: Vec<&Call> = Vec::new();
        for &instruction in
            sequence.ok_or_else(|| Error::internal("found a computation without a schedule"))?
        {
            match self.module[computation][instruction].op() {
                Op::Conditional { branch_computations } => {
                    self.calls(std::mem::take(&mut calls));
                    self.conditional(computation, instruction, branch_computations, nesting)?;
                }
                Op::While { condition, body } => {
                    self.calls(std::mem::take(&mut calls));
                    match self.group_of(computation, instruction) {
                        None => {
                            self.start_copies(computation, instruction);
                            self.while_loop(computation, instruction, *condition, *body, nesting)?;
                        }
                        Some(group) if group[0] == instruction => {
                            self.loop_group(computation, group, nesting)?;
                        }
                        // The group's first loop has brought this one along.
                        Some(_) => {}
                    }
                }
                op @ Op::CustomCall { .. } if custom_call(op).is_some() => {
                    self.calls(std::mem::take(&mut calls));
                    let counter = Counter::Instruction(computation, instruction);
                    self.timed(counter, |entry| entry.custom_call(computation, instruction))?;
                }
                _ => {
                    let instruction_calls =
                        kernels.calls.get(&(computation, instruction)).into_iter().flatten();
                    calls.extend(instruction_calls);
                    if self.profile.is_some() && !calls.is_empty() {
                        let calls = std::mem::take(&mut calls);
                        let counter = Counter::Instruction(computation, instruction);
                        self.timed(counter, |entry| {
                            entry.calls(calls);
                            Ok(())
                        })?;
                    }
                }
            }
        }
        self.calls(calls);
        Ok(())
    }

    /// Emits code, and measures its time in a counter if the entry is profiled.
    fn timed(&mut self, counter: Counter, build: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let start = self.profile.is_some().then(|| Profile::clock(&mut self.scope.builder));
        build(self)?;
        match (&self.profile, start) {
            (Some(profile), Some(start)) => profile.count(&mut self.scope.builder, counter, start),
            _ => Ok(()),
        }
    }

    fn end_copies(&mut self, computation: ComputationId) {
        let copies = self.assignment.end_copies.get(&computation);
        copies.into_iter().flatten().for_each(|copy| self.copy(copy));
    }

    /// The loops that may run at the same time as a loop.
    fn group_of(
        &self,
        computation: ComputationId,
        instruction: InstructionId,
    ) -> Option<&'a [InstructionId]> {
        let groups = self.schedule.loop_groups.get(&computation)?;
        groups.iter().find(|group| group.contains(&instruction)).map(Vec::as_slice)
    }

    /// Emits calls of kernels that no control flow separates.
    fn calls(&mut self, calls: Vec<&Call>) {
        if self.scope.is_on_worker {
            return calls.into_iter().for_each(|call| self.call(Item { call, is_shared: false }));
        }
        let items = regions::share(&calls);
        for group in regions::group(&items) {
            let group: Vec<Item<'_>> = group.into_iter().map(|number| items[number]).collect();
            let region = regions::region(&group, |call| self.program.functions[call.function].name.clone());
            match group[..] {
                [item] => self.call(item),
                _ => self.shared_call(&group, &region),
            }
            self.regions.push(region);
        }
    }

    fn call(&mut self, Item { call, is_shared }: Item<'_>) {
        let mut arguments: Vec<ValueId> = call.arguments.iter().map(|slice| self.pointer(slice)).collect();
        if call.takes_workers_scratch {
            arguments.push(self.field(self.layout.scratch()));
        }
        if is_shared {
            self.scope.builder.parallel(call.function, call.tasks, arguments);
            return;
        }
        if call.tasks > 1 {
            // The entry's own thread runs all tasks.
            arguments.extend([
                self.scope.builder.index(0),
                self.scope.builder.index(call.tasks),
                self.scope.builder.index(0),
            ]);
        }
        self.scope.builder.call(call.function, arguments);
    }

    /// Emits several kernels as one region.
    fn shared_call(&mut self, items: &[Item<'_>], region: &Region) {
        let name = (self.unique)(&format!("{}.region", region.members[0].name));
        let scratch = self.assignment.worker_scratch_size as i64;
        let (function, slices) = regions::function(items, region, name, scratch);
        let function = self.program.functions.push(function);
        let mut arguments: Vec<ValueId> = slices.iter().map(|slice| self.pointer(slice)).collect();
        if items.iter().any(|item| item.call.takes_workers_scratch) {
            arguments.push(self.field(self.layout.scratch()));
        }
        self.scope.builder.parallel(function, region.items, arguments);
    }

    fn conditional(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        branches: &[ComputationId],
        nesting: usize,
    ) -> Result<()> {
        let index = self.module[computation][instruction].operands()[0];
        let element_type = self.module[computation][index].shape().expect_array().element_type;
        let slice = self.assignment.slice(computation, index, &[]);
        let pointer = self.pointer(&slice);
        let b = &mut self.scope.builder;
        let number = if element_type == PrimitiveType::Pred {
            let value = b.load(Type::scalar(ScalarType::I8), pointer, 1);
            let (zero, first, second) = (b.integer(b.ty(value), 0), b.index(0), b.index(1));
            let is_true = b.compare(Predicate::NotEqual, value, zero);
            b.select(is_true, first, second)
        } else {
            let value = b.load(Type::scalar(ScalarType::I32), pointer, 4);
            let wide = b.convert(nest::ConvertOp::SignExtend, value, ScalarType::I64);
            // Indices out of range, negative ones included, select the last branch.
            let (end, last) = (b.index(branches.len() as i64), b.index(branches.len() as i64 - 1));
            let is_branch = b.compare(Predicate::Below, wide, end);
            b.select(is_branch, wide, last)
        };
        self.branch(number, branches, 0, nesting + 1)
    }

    /// Emits a binary search for the branch of a number. The first of `branches` has the number
    /// `first`.
    fn branch(
        &mut self,
        number: ValueId,
        branches: &[ComputationId],
        first: i64,
        nesting: usize,
    ) -> Result<()> {
        if let [branch] = branches {
            self.sequence(*branch, nesting)?;
            self.end_copies(*branch);
            return Ok(());
        }
        let (low, high) = branches.split_at(branches.len() / 2);
        let middle = first + low.len() as i64;
        let limit = self.scope.builder.index(middle);
        let is_low = self.scope.builder.compare(Predicate::Less, number, limit);
        self.if_else(
            is_low,
            |entry| entry.branch(number, low, first, nesting).map(|()| Vec::new()),
            |entry| entry.branch(number, high, middle, nesting).map(|()| Vec::new()),
        )
        .map(|_| ())
    }

    /// Copies the initial state of a loop to its place.
    fn start_copies(&mut self, computation: ComputationId, instruction: InstructionId) {
        let copies = self.assignment.start_copies.get(&(computation, instruction));
        copies.into_iter().flatten().for_each(|copy| self.copy(copy));
    }

    /// Emits a loop whose initial state is in place.
    fn while_loop(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        condition: ComputationId,
        body: ComputationId,
        nesting: usize,
    ) -> Result<()> {
        let root = self.module[condition].root();
        let verdict = self.assignment.slice(condition, root, &[]);
        let assignment = self.assignment;
        let rotations = assignment.rotations.get(&(computation, instruction)).map_or(&[][..], Vec::as_slice);
        let places: Vec<Slice> = rotations.iter().flat_map(|r| r.places.iter().copied()).collect();
        let homes: Vec<ValueId> = places.iter().map(|place| self.pointer(place)).collect();
        let outer = self.scope.exchanged.clone();
        let last = self.while_carrying(
            &homes,
            |entry, present| {
                entry.exchange(&places, present);
                entry.sequence(condition, nesting + 1)?;
                entry.end_copies(condition);
                let pointer = entry.pointer(&verdict);
                let b = &mut entry.scope.builder;
                let value = b.load(Type::scalar(ScalarType::I8), pointer, 1);
                let zero = b.integer(b.ty(value), 0);
                Ok(b.compare(Predicate::NotEqual, value, zero))
            },
            |entry, present| {
                entry.exchange(&places, present);
                entry.sequence(body, nesting + 1)?;
                let next = rotated(rotations, present);
                entry.exchange(&places, &next);
                entry.end_copies(body);
                Ok(next)
            },
        )?;
        self.scope.exchanged = outer;
        let mut first = 0;
        for rotation in rotations {
            let range = first..first + rotation.places.len();
            first = range.end;
            self.bring_home(rotation, &homes[range.clone()], &last[range]);
        }
        Ok(())
    }

    /// Records the current addresses of rotated buffers.
    fn exchange(&mut self, places: &[Slice], present: &[ValueId]) {
        let keys = places.iter().map(|place| (place.allocation, place.offset));
        self.scope.exchanged.extend(keys.zip(present.iter().copied()));
    }

    /// Emits code after a loop: copies the state to its own buffer if it ended up in another one.
    fn bring_home(&mut self, rotation: &Rotation, homes: &[ValueId], present: &[ValueId]) {
        let stages: Vec<ValueId> = rotation.stages.iter().map(|stage| self.pointer(stage)).collect();
        let state: Vec<usize> =
            (0..homes.len()).filter(|&k| rotation.state.contains(&rotation.places[k])).collect();
        let bytes = rotation.places[0].size as i64;
        let is_elsewhere = self.scope.builder.compare(Predicate::NotEqual, homes[0], present[0]);
        let copies = |b: &mut FunctionBuilder| {
            let bytes = b.index(bytes);
            if stages.is_empty() {
                state.iter().for_each(|&k| b.copy_bytes(homes[k], present[k], bytes));
            } else {
                state.iter().zip(&stages).for_each(|(&k, &stage)| b.copy_bytes(stage, present[k], bytes));
                state.iter().zip(&stages).for_each(|(&k, &stage)| b.copy_bytes(homes[k], stage, bytes));
            }
            Ok(())
        };
        // The closure never fails.
        let _ = self.scope.builder.if_then(is_elsewhere, copies);
    }

    fn copy(&mut self, copy: &CopyPair) {
        let (to, from) = (self.pointer(&copy.to), self.pointer(&copy.from));
        let bytes = self.scope.builder.index(copy.to.size.min(copy.from.size) as i64);
        self.scope.builder.copy_bytes(to, from, bytes);
    }

    /// Returns the address of a slice. In entries with few calls, the address is read before
    /// everything else.
    pub(crate) fn pointer(&mut self, slice: &Slice) -> ValueId {
        let key = (slice.allocation, slice.offset);
        if let Some(&pointer) = self.scope.exchanged.get(&key).or_else(|| self.scope.pointers.get(&key)) {
            return pointer;
        }
        let offset = slice.offset as i64;
        let pointer = match slice.allocation {
            Allocation::Parameter(number) => self.listed(self.layout.args(), number, offset),
            // The last results are the sizes of bounded dimensions, which form one list.
            Allocation::Result(number) => match number.checked_sub(self.assignment.result_count) {
                None => self.listed(self.layout.results(), number, offset),
                Some(size) => {
                    let at = 8 * size as i64 + offset;
                    self.in_block(self.layout.dynamic_sizes(), at)
                }
            },
            Allocation::Temps => self.in_block(self.layout.temps(), offset),
            Allocation::Constants => self.in_block(self.layout.constants(), offset),
        };
        if self.is_hoisting() {
            self.scope.pointers.insert(key, pointer);
        }
        pointer
    }

    /// Returns a pointer from a list in the frame, plus an offset.
    fn listed(&mut self, field: i64, number: usize, offset: i64) -> ValueId {
        let list = self.field(field);
        let bytes = self.layout.pointer_bytes();
        self.hoisted(|b| {
            let at = b.offset_bytes(list, bytes * number as i64);
            let pointer = b.load(Type::PTR, at, bytes as u32);
            b.offset_bytes(pointer, offset)
        })
    }

    fn is_hoisting(&self) -> bool {
        self.kernels.calls.len() <= MAX_HOISTING_CALLS
    }

    fn hoisted(&mut self, build: impl FnOnce(&mut FunctionBuilder) -> ValueId) -> ValueId {
        let depth = self.scope.hoisting_depth;
        if self.is_hoisting() {
            self.scope.builder.outside(depth, build)
        } else {
            build(&mut self.scope.builder)
        }
    }

    fn in_block(&mut self, field: i64, offset: i64) -> ValueId {
        let block = self.field(field);
        self.hoisted(|b| b.offset_bytes(block, offset))
    }

    fn field(&mut self, field: i64) -> ValueId {
        let (frame, bytes) = (self.scope.frame, self.layout.pointer_bytes());
        let depth = self.scope.hoisting_depth;
        *self.scope.fields.entry(field).or_insert_with(|| {
            self.scope.builder.outside(depth, |b| {
                let at = b.offset_bytes(frame, field);
                b.load(Type::PTR, at, bytes as u32)
            })
        })
    }
}

/// Returns the addresses of the buffers after an iteration, given those during it.
fn rotated(rotations: &[Rotation], present: &[ValueId]) -> Vec<ValueId> {
    let mut next = Vec::with_capacity(present.len());
    let mut rest = present;
    for rotation in rotations {
        let (places, others) = rest.split_at(rotation.places.len());
        next.extend(places.iter().cycle().skip(1).take(places.len()));
        rest = others;
    }
    next
}
