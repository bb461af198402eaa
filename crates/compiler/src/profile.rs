//! Timeline of a profiled run: the instructions that its counters measure.

use crate::Compiled;
use buffers::Schedule;
use hlo::{ComputationId, FusionKind, InstructionId, Module, Op, Opcode};
use kernel::Counter;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Instruction on the timeline of a profiled run, in ticks since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Entry computation, or a computation that control flow runs.
    pub computation: ComputationId,
    /// Instruction in that computation.
    pub instruction: InstructionId,
    /// Index in [`MachineCode::counters`](crate::MachineCode::counters); `None` if the instruction
    /// takes no time.
    pub counter: Option<usize>,
    /// Number of enclosing loops and conditionals.
    pub depth: usize,
    /// Start time.
    pub start: f64,
    /// End time.
    pub end: f64,
}

impl Compiled {
    /// Instructions of a run in the order of the schedule, with the durations in `ticks`. The
    /// instructions of a loop's body precede the loop, which spans them. Each has the total
    /// duration of all iterations.
    pub fn spans(&self, ticks: &[i64]) -> Result<Vec<Span>> {
        let counters = self.code.counted.iter().enumerate().filter_map(|(k, counter)| match *counter {
            Counter::Total => None,
            Counter::Instruction(computation, instruction) => Some(((computation, instruction), k)),
        });
        let mut layout = Layout {
            module: &self.module,
            schedule: buffers::schedule(&self.module, &self.code.plan),
            counters: counters.collect(),
            ticks,
            spans: Vec::new(),
        };
        layout.sequence(self.module.entry(), 0, 0.0)?;
        Ok(layout.spans)
    }
}

struct Layout<'a> {
    module: &'a Module,
    schedule: Schedule,
    counters: BTreeMap<(ComputationId, InstructionId), usize>,
    ticks: &'a [i64],
    spans: Vec<Span>,
}

impl Layout<'_> {
    /// Places a computation's instructions on the timeline from `start` on. Returns their end.
    fn sequence(&mut self, computation: ComputationId, depth: usize, start: f64) -> Result<f64> {
        let order = self.schedule.sequences.get(&computation).cloned();
        let order = order.ok_or_else(|| Error::internal("missing schedule for a computation"))?;
        let mut now = start;
        for instruction in order {
            let begin = now;
            let counter = self.counters.get(&(computation, instruction)).copied();
            let callees = match self.module[computation][instruction].op() {
                Op::While { condition, body } => vec![*condition, *body],
                Op::Conditional { branch_computations } => branch_computations.clone(),
                _ => Vec::new(),
            };
            if callees.is_empty() {
                now += counter.and_then(|k| self.ticks.get(k)).map_or(0.0, |&ticks| ticks as f64);
            }
            for callee in callees {
                now = self.sequence(callee, depth + 1, now)?;
            }
            self.spans.push(Span { computation, instruction, counter, depth, start: begin, end: now });
        }
        Ok(now)
    }
}

/// Kind of an instruction: its opcode. For a fusion, the opcode of its hero or reduction, or else
/// of its root.
pub fn kind(module: &Module, computation: ComputationId, instruction: InstructionId) -> &'static str {
    let instruction = &module[computation][instruction];
    let Op::Fusion { kind, calls, .. } = *instruction.op() else { return instruction.opcode().name() };
    let fused = &module[calls];
    let root = &fused[fused.root()];
    let is_reduction = |id: &&InstructionId| matches!(fused[**id].op(), Op::Reduce { .. });
    let representative = match (kind, kind.hero()) {
        (FusionKind::Rows, _) => return Opcode::Reduce.name(),
        (FusionKind::MultiOutput, _) => root.operands().iter().find(is_reduction).copied(),
        (_, hero) => hero,
    };
    representative.map_or(root, |id| &fused[id]).opcode().name()
}
