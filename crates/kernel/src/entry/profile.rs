//! Time counters of a program and its instructions. The entry keeps them in the frame's
//! `profile_counters`.

use buffers::Schedule;
use hlo::{ComputationId, InstructionId, Module, Op};
use nest::{Constant, Expression, FunctionBuilder, Predicate, RegionBuilder as _, Type, ValueId};
use support::{Error, Result};

/// Identifies a counter. It sums ticks of [`Expression::CycleCounter`] over all runs. Parallel work
/// counts for as long as the entry's own thread waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// The whole program.
    Total,
    /// The kernels of an instruction, if it has any.
    Instruction(ComputationId, InstructionId),
}

/// Counters are 64 bits wide. They are aligned to 4 bytes only, as on 32-bit machines.
const COUNTER_BYTES: i64 = 8;
const ALIGNMENT: u32 = 4;

/// Returns the counters of a module: the total, then every instruction that may take time. They are
/// sorted and the same on all machines.
pub(crate) fn counters(module: &Module, schedule: &Schedule) -> Vec<Counter> {
    let may_take_time = |computation: ComputationId, instruction: InstructionId| {
        !matches!(module[computation][instruction].op(), Op::Parameter { .. } | Op::Constant { .. })
    };
    let scheduled = schedule.sequences.iter().flat_map(|(&computation, sequence)| {
        sequence
            .iter()
            .filter(move |&&i| may_take_time(computation, i))
            .map(move |&i| Counter::Instruction(computation, i))
    });
    let mut counters: Vec<Counter> = std::iter::once(Counter::Total).chain(scheduled).collect();
    counters.sort_unstable();
    counters
}

/// Emitter for the counters of an entry.
pub(crate) struct Profile<'a> {
    /// Address of the counters. Null if the caller does not measure.
    pointer: ValueId,
    is_enabled: ValueId,
    counters: &'a [Counter],
}

impl<'a> Profile<'a> {
    /// Reads where the counters are from the frame's pointer.
    pub(crate) fn new(b: &mut FunctionBuilder, pointer: ValueId, counters: &'a [Counter]) -> Self {
        let null = b.value(Type::PTR, Expression::Constant(Constant::Integer(0)));
        let is_enabled = b.compare(Predicate::NotEqual, pointer, null);
        Self { pointer, is_enabled, counters }
    }

    /// Returns the current time.
    pub(crate) fn clock(b: &mut FunctionBuilder) -> ValueId {
        b.value(Type::I64, Expression::CycleCounter)
    }

    /// Adds the time since `start` to a counter.
    pub(crate) fn count(&self, b: &mut FunctionBuilder, counter: Counter, start: ValueId) -> Result<()> {
        let number = self.counters.binary_search(&counter);
        let number = number.map_err(|_| Error::internal(format!("missing counter {counter:?}")))?;
        let end = Self::clock(b);
        let pointer = self.pointer;
        b.if_then(self.is_enabled, |b| {
            let place = b.offset_bytes(pointer, COUNTER_BYTES * number as i64);
            let (sum, ticks) = (b.load(Type::I64, place, ALIGNMENT), b.sub(end, start));
            let sum = b.add(sum, ticks);
            b.store(sum, place, ALIGNMENT);
            Ok(())
        })
    }
}
