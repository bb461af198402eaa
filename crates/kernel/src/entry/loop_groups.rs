//! Loops that run at the same time, such as the two directions of a recurrent layer.
//!
//! The schedule names groups of loops that do not depend on each other. If none of them writes
//! memory that another one uses, each becomes a function, and one region runs all of them. A worker
//! runs whole loops, so their iterations need no fork and join.

use super::Entry;
use super::regions::{self, Item};
use crate::calls::Call;
use buffers::{Allocation, CopyPair, Slice};
use hlo::analysis::loop_iterations;
use hlo::{ComputationId, InstructionId, Op};
use nest::{
    FunctionBuilder, FunctionId, Linkage, PointerFacts, Predicate, RegionBuilder as _, Type, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};
use support::{Id as _, Result};

/// Number of iterations of a loop whose number is unknown, for the estimate of its duration.
const ASSUMED_ITERATIONS: u64 = 8;

/// The function that the entry's builder builds, and its values.
pub(super) struct Scope {
    pub(super) builder: FunctionBuilder,
    pub(super) frame: ValueId,
    /// The depth of the region that reads the frame, before everything else there.
    pub(super) hoisting_depth: usize,
    /// Values of frame fields, by offset.
    pub(super) fields: BTreeMap<i64, ValueId>,
    /// Addresses of slices, by allocation and offset.
    pub(super) pointers: BTreeMap<(Allocation, u64), ValueId>,
    /// Current addresses of buffers that the enclosing loops rotate.
    pub(super) exchanged: BTreeMap<(Allocation, u64), ValueId>,
    /// True if a worker runs the function, which therefore cannot fork.
    pub(super) is_on_worker: bool,
}

/// Slices that loops access, and their duration.
struct Accesses<'a> {
    /// Known numbers of iterations.
    iterations: &'a BTreeMap<(ComputationId, InstructionId), u64>,
    read: BTreeSet<Slice>,
    written: BTreeSet<Slice>,
    nanoseconds: u64,
}

impl<'a> Accesses<'a> {
    fn new(iterations: &'a BTreeMap<(ComputationId, InstructionId), u64>) -> Self {
        Self { iterations, read: BTreeSet::new(), written: BTreeSet::new(), nanoseconds: 0 }
    }

    fn into_call(self, function: FunctionId) -> Call {
        Call {
            function,
            written: self.read.len(),
            arguments: self.read.into_iter().chain(self.written).collect(),
            takes_workers_scratch: false,
            tasks: 1,
            nanoseconds: self.nanoseconds,
        }
    }

    fn copies(&mut self, copies: Option<&Vec<CopyPair>>) {
        for copy in copies.into_iter().flatten() {
            self.read.insert(copy.from);
            self.written.insert(copy.to);
        }
    }
}

impl Entry<'_> {
    /// Emits the loops of a group: at the same time if that is possible and long enough, else one
    /// after the other.
    pub(super) fn loop_group(
        &mut self,
        computation: ComputationId,
        group: &[InstructionId],
        nesting: usize,
    ) -> Result<()> {
        let iterations = loop_iterations(self.module);
        let calls: Vec<Call> = (group.iter().enumerate())
            .map(|(k, &number)| self.as_call((computation, number), FunctionId::from_index(k), &iterations))
            .collect();
        let are_long = calls.iter().all(|call| call.nanoseconds >= regions::MIN_PAIR_NANOSECONDS);
        let is_apart = |k: usize| {
            let start = self.start_as_call((computation, group[k]), FunctionId::from_index(k));
            let mut earlier = calls[..k].iter();
            earlier.all(|other| {
                regions::is_independent(other, &calls[k]) && regions::is_independent(other, &start)
            })
        };
        let is_parallel = are_long && (1..calls.len()).all(is_apart);
        if self.scope.is_on_worker || self.profile.is_some() || !is_parallel {
            return group.iter().try_for_each(|&number| {
                self.start_copies(computation, number);
                self.one_loop(computation, number, nesting)
            });
        }
        // All before the first loop: the initial state of one loop may be in the memory in which
        // another one changes its own.
        group.iter().for_each(|&number| self.start_copies(computation, number));
        let items: Vec<Item<'_>> = calls.iter().map(|call| Item { call, is_shared: false }).collect();
        let names: Vec<String> =
            group.iter().map(|&number| self.module[computation][number].name().to_owned()).collect();
        let region = regions::region(&items, |call| names[call.function.index()].clone());
        let places: Vec<(Allocation, u64)> = self.scope.exchanged.keys().copied().collect();
        let mut functions = Vec::with_capacity(group.len());
        for &number in group {
            functions.push(self.loop_function(computation, number, &places, nesting)?);
        }

        let mut b = FunctionBuilder::new((self.unique)(&format!("{}.region", names[0])), Linkage::Internal);
        let mut arguments = parameters(&mut b, self.frame_facts(), places.len());
        let mut number = |name: &str| b.parameter(name, Type::I64, PointerFacts::default());
        let (begin, end, worker) = (number("begin"), number("end"), number("worker"));
        arguments.push(worker);
        for (function, member) in functions.into_iter().zip(&region.members) {
            let first = b.index(member.items.0);
            let (is_begun, is_reached) =
                (b.compare(Predicate::LessEqual, begin, first), b.compare(Predicate::Less, first, end));
            let has_work = b.and(is_begun, is_reached);
            // The closure never fails.
            let _ = b.if_then(has_work, |b| {
                b.call(function, arguments.clone());
                Ok(())
            });
        }
        let function = self.program.functions.push(b.finish());
        let mut passed = vec![self.scope.frame];
        passed.extend(places.iter().map(|place| self.scope.exchanged[place]));
        self.scope.builder.parallel(function, region.items, passed);
        self.regions.push(region);
        Ok(())
    }

    fn one_loop(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        nesting: usize,
    ) -> Result<()> {
        match *self.module[computation][instruction].op() {
            Op::While { condition, body } => {
                self.while_loop(computation, instruction, condition, body, nesting)
            }
            _ => Ok(()),
        }
    }

    /// Builds a function that runs a loop as a worker. Its parameters are the frame, the present
    /// addresses of `places`, and the worker's number.
    fn loop_function(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        places: &[(Allocation, u64)],
        nesting: usize,
    ) -> Result<FunctionId> {
        let name = (self.unique)(&format!("{}.loop", self.module[computation][instruction].name()));
        let mut b = FunctionBuilder::new(name, Linkage::Internal);
        let pointers = parameters(&mut b, self.frame_facts(), places.len());
        let worker = b.parameter("worker", Type::I64, PointerFacts::default());
        let (frame, mut fields) = (pointers[0], BTreeMap::new());
        let each = self.assignment.worker_scratch_size as i64;
        if each > 0 {
            let at = b.offset_bytes(frame, self.layout.scratch());
            let all = b.load(Type::PTR, at, self.layout.pointer_bytes() as u32);
            fields.insert(self.layout.scratch(), b.offset(all, worker, each));
        }
        let exchanged = places.iter().copied().zip(pointers[1..].iter().copied()).collect();
        let inner = Scope {
            builder: b,
            frame,
            hoisting_depth: 1,
            fields,
            pointers: BTreeMap::new(),
            exchanged,
            is_on_worker: true,
        };
        let outer = std::mem::replace(&mut self.scope, inner);
        let emitted = self.one_loop(computation, instruction, nesting);
        let inner = std::mem::replace(&mut self.scope, outer);
        emitted.map(|()| self.program.functions.push(inner.builder.finish()))
    }

    /// Describes a loop as if it were a call of a kernel. `number` only identifies it.
    fn as_call(
        &self,
        place: (ComputationId, InstructionId),
        number: FunctionId,
        iterations: &BTreeMap<(ComputationId, InstructionId), u64>,
    ) -> Call {
        let mut accesses = Accesses::new(iterations);
        self.add_loop(place.0, place.1, &mut accesses);
        accesses.into_call(number)
    }

    /// Describes the copies of a loop's initial state as if they were a call of a kernel.
    fn start_as_call(&self, place: (ComputationId, InstructionId), number: FunctionId) -> Call {
        let iterations = BTreeMap::new();
        let mut accesses = Accesses::new(&iterations);
        accesses.copies(self.assignment.start_copies.get(&place));
        accesses.into_call(number)
    }

    fn add_loop(&self, computation: ComputationId, instruction: InstructionId, all: &mut Accesses<'_>) {
        let Op::While { condition, body } = self.module[computation][instruction].op() else { return };
        let place = (computation, instruction);
        for rotation in self.assignment.rotations.get(&place).into_iter().flatten() {
            all.written.extend(rotation.places.iter().chain(&rotation.stages));
        }
        all.read.insert(self.assignment.slice(*condition, self.module[*condition].root(), &[]));
        let before = all.nanoseconds;
        self.add_computation(*condition, all);
        self.add_computation(*body, all);
        let iterations = all.iterations.get(&place).copied().unwrap_or(ASSUMED_ITERATIONS);
        let each = all.nanoseconds - before;
        all.nanoseconds = before.saturating_add(each.saturating_mul(iterations));
    }

    fn add_computation(&self, computation: ComputationId, all: &mut Accesses<'_>) {
        for &instruction in self.schedule.sequences.get(&computation).into_iter().flatten() {
            match self.module[computation][instruction].op() {
                Op::While { .. } => {
                    all.copies(self.assignment.start_copies.get(&(computation, instruction)));
                    self.add_loop(computation, instruction, all);
                }
                Op::Conditional { branch_computations } => {
                    let index = self.module[computation][instruction].operands()[0];
                    all.read.insert(self.assignment.slice(computation, index, &[]));
                    branch_computations.iter().for_each(|&branch| self.add_computation(branch, all));
                }
                _ => {
                    for call in self.kernels.calls.get(&(computation, instruction)).into_iter().flatten() {
                        let (read, written) = call.arguments.split_at(call.written);
                        all.read.extend(read);
                        all.written.extend(written);
                        all.nanoseconds = all.nanoseconds.saturating_add(call.nanoseconds);
                    }
                }
            }
        }
        all.copies(self.assignment.end_copies.get(&computation));
    }

    fn frame_facts(&self) -> PointerFacts {
        PointerFacts { no_alias: true, read_only: true, alignment: self.layout.pointer_bytes() as u32 }
    }
}

/// Adds the parameters for the frame and for a number of places.
fn parameters(b: &mut FunctionBuilder, frame: PointerFacts, places: usize) -> Vec<ValueId> {
    let mut all = vec![b.parameter("frame", Type::PTR, frame)];
    all.extend((0..places).map(|k| b.parameter(&format!("place{k}"), Type::PTR, PointerFacts::default())));
    all
}
