//! A profiled run along its time: the instructions that its counters are about.

use crate::Compiled;
use buffers::Schedule;
use hlo::{ComputationId, FusionKind, InstructionId, Module, Op, Opcode};
use kernel::Counter;
use std::collections::BTreeMap;
use support::{Error, Result};

/// An instruction along the time of a run that was counted, in ticks since its beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The entry, or a computation that control flow runs.
    pub computation: ComputationId,
    /// The instruction.
    pub instruction: InstructionId,
    /// Its place in [`MachineCode::counters`](crate::MachineCode::counters); what takes no time has none.
    pub counter: Option<usize>,
    /// How many loops and conditionals it stands in.
    pub depth: usize,
    /// When it begins.
    pub start: f64,
    /// When it ends.
    pub end: f64,
}

impl Compiled {
    /// The instructions of a run in the order of the schedule, as long as `ticks` of the counters says. Those of a loop's body
    /// stand before the loop, which spans them, each as long as its rounds together.
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
    /// Lays a computation's instructions out from a time on; when they end.
    fn sequence(&mut self, computation: ComputationId, depth: usize, start: f64) -> Result<f64> {
        let order = self.schedule.sequences.get(&computation).cloned();
        let order = order.ok_or_else(|| Error::internal("a computation without a schedule"))?;
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

/// What an instruction does, in a word: its opcode; of a fusion that of its hero or reduction, else of its root.
pub fn kind(module: &Module, computation: ComputationId, instruction: InstructionId) -> &'static str {
    let instruction = &module[computation][instruction];
    let Op::Fusion { kind, calls, .. } = *instruction.op() else { return instruction.opcode().name() };
    let fused = &module[calls];
    let root = &fused[fused.root()];
    let is_reduction = |id: &&InstructionId| matches!(fused[**id].op(), Op::Reduce { .. });
    let shown = match (kind, kind.hero()) {
        (FusionKind::Rows, _) => return Opcode::Reduce.name(),
        (FusionKind::MultiOutput, _) => root.operands().iter().find(is_reduction).copied(),
        (_, hero) => hero,
    };
    shown.map_or(root, |id| &fused[id]).opcode().name()
}
