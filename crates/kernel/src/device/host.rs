//! The steps of the host. Branches become guards; loops are repeated, or run until their guard is
//! 0.

use super::control;
use super::{CALLER_ALIGNMENT, Calls, DeviceCall};
use buffers::{Allocation, BufferAssignment, CopyPair, Schedule, Slice};
use hlo::analysis::loop_iterations;
use hlo::custom_call::{CustomCallKind, custom_call};
use hlo::{ComputationId, InstructionId, Module, Op};
use nest::launch::{DeviceProgram, KernelFacts, Message, Slot, SlotId, Space, Step};
use nest::{Function, FunctionId};
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::{Code, Error, Id as _, Result};

use crate::entry::custom_call::ABORT_STATUS;

/// Maximum nesting depth of conditionals and loops.
const MAX_NESTING: usize = 100;

/// Branches with more steps than this, or with loops, are worth waiting for their guard.
const MANY_STEPS: usize = 24;

/// Adds the steps of the module's entry to the program, and the kernels that control it.
pub(crate) fn emit(
    module: &Module,
    schedule: &Schedule,
    assignment: &BufferAssignment,
    calls: &Calls,
    program: &mut DeviceProgram,
) -> Result<()> {
    let mut host = Host {
        module,
        schedule,
        assignment,
        calls,
        program,
        slots: BTreeMap::new(),
        controls: BTreeMap::new(),
        // The status word, and the rest of its cache line.
        control_size: 64,
        trips: loop_iterations(module),
    };
    let mut steps = Vec::new();
    host.sequence(module.entry(), None, 0, &mut steps)?;
    host.end_copies(module.entry(), None, &mut steps)?;
    host.program.control_size = host.control_size;
    host.program.steps = steps;
    Ok(())
}

/// A kind of control kernel. Equal ones share a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Control {
    Branch { count: usize, is_pred: bool, has_outer: bool },
    LoopStart { has_outer: bool },
    LoopTest,
    Check { number: usize },
    Copy { bytes: u64, alignment: u64 },
}

struct Host<'a> {
    module: &'a Module,
    schedule: &'a Schedule,
    assignment: &'a BufferAssignment,
    calls: &'a Calls,
    program: &'a mut DeviceProgram,
    slots: BTreeMap<Slot, SlotId>,
    /// Control kernels and their numbers of workgroups.
    controls: BTreeMap<Control, (FunctionId, u64)>,
    control_size: u64,
    /// Numbers of iterations that do not depend on the inputs.
    trips: BTreeMap<(ComputationId, InstructionId), u64>,
}

impl Host<'_> {
    fn sequence(
        &mut self,
        computation: ComputationId,
        guard: Option<SlotId>,
        nesting: usize,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        if nesting > MAX_NESTING {
            return Err(Error::unsupported(format!("control flow nested more than {MAX_NESTING} deep")));
        }
        let (module, calls) = (self.module, self.calls);
        let sequence = self.schedule.sequences.get(&computation);
        for &instruction in
            sequence.ok_or_else(|| Error::internal("found a computation without a schedule"))?
        {
            match module[computation][instruction].op() {
                Op::Conditional { branch_computations } => {
                    self.conditional(computation, instruction, branch_computations, guard, nesting, steps)?;
                }
                Op::While { condition, body } => {
                    self.while_loop(computation, instruction, [*condition, *body], guard, nesting, steps)?;
                }
                op @ Op::CustomCall { .. } if custom_call(op).is_some() => {
                    self.custom_call(computation, instruction, guard, steps)
                        .map_err(|error| error.context(module[computation][instruction].described()))?;
                }
                _ => {
                    for call in calls.get(&(computation, instruction)).into_iter().flatten() {
                        let step = self.launch(call, guard);
                        steps.push(step);
                    }
                }
            }
        }
        Ok(())
    }

    fn launch(&mut self, call: &DeviceCall, guard: Option<SlotId>) -> Step {
        let mut arguments = vec![self.guard(guard)];
        arguments.extend(call.arguments.iter().map(|slice| self.slice(slice)));
        if call.takes_workers_scratch {
            arguments.push(self.slot(Space::Scratch, 0));
        }
        Step::Launch { kernel: call.function, groups: call.groups, arguments }
    }

    /// Returns a guard, or the null address.
    fn guard(&mut self, guard: Option<SlotId>) -> SlotId {
        guard.unwrap_or_else(|| self.slot(Space::Null, 0))
    }

    fn slot(&mut self, space: Space, offset: u64) -> SlotId {
        let slot = Slot { space, offset };
        let slots = &mut self.program.slots;
        *self.slots.entry(slot).or_insert_with(|| {
            slots.push(slot);
            SlotId::from_index(slots.len() - 1)
        })
    }

    fn slice(&mut self, slice: &Slice) -> SlotId {
        let (space, offset) = match slice.allocation {
            Allocation::Parameter(number) => (Space::Argument(number as u32), slice.offset),
            Allocation::Result(number) => match number.checked_sub(self.assignment.result_count) {
                None => (Space::Result(number as u32), slice.offset),
                Some(size) => (Space::Sizes, 8 * size as u64 + slice.offset),
            },
            Allocation::Temps => (Space::Temps, slice.offset),
            Allocation::Constants => (Space::Constants, slice.offset),
        };
        self.slot(space, offset)
    }

    /// Reserves consecutive `I32`s of the control block.
    fn control_words(&mut self, count: usize) -> Vec<SlotId> {
        let first = self.control_size;
        self.control_size += 4 * count as u64;
        (0..count as u64).map(|k| self.slot(Space::Control, first + 4 * k)).collect()
    }

    /// Returns a launch of a control kernel.
    fn control(&mut self, control: Control, guard: Option<SlotId>, rest: &[SlotId]) -> Result<Step> {
        let (kernel, groups) = match self.controls.get(&control) {
            Some(&known) => known,
            None => {
                let (function, groups) = build(control)?;
                let label = function.name.clone();
                let id = self.program.kernels.functions.push(function);
                self.program.facts.push(KernelFacts { label, ..KernelFacts::default() });
                self.controls.insert(control, (id, groups));
                (id, groups)
            }
        };
        let guard = self.guard(guard);
        let arguments = std::iter::once(guard).chain(rest.iter().copied()).collect();
        Ok(Step::Launch { kernel, groups, arguments })
    }

    fn conditional(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        branches: &[ComputationId],
        guard: Option<SlotId>,
        nesting: usize,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let index = self.module[computation][instruction].operands()[0];
        let is_pred =
            self.module[computation][index].shape().expect_array().element_type == PrimitiveType::Pred;
        let index = self.assignment.slice(computation, index, &[]);
        let index = self.slice(&index);
        let guards = self.control_words(branches.len());
        let control = Control::Branch { count: branches.len(), is_pred, has_outer: guard.is_some() };
        let rest: Vec<SlotId> = [guards[0], index].into_iter().chain(guard).collect();
        let step = self.control(control, None, &rest)?;
        steps.push(step);
        for (&branch, own) in branches.iter().zip(guards) {
            let mut body = Vec::new();
            self.sequence(branch, Some(own), nesting + 1, &mut body)?;
            self.end_copies(branch, Some(own), &mut body)?;
            // Inside of a loop, the host never waits.
            let is_long = body.len() > MANY_STEPS || body.iter().any(repeats);
            if is_long && nesting == 0 {
                steps.push(Step::Skip { guard: own, body });
            } else {
                steps.extend(body);
            }
        }
        Ok(())
    }

    fn while_loop(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        [condition, body]: [ComputationId; 2],
        outer: Option<SlotId>,
        nesting: usize,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let copies = self.assignment.start_copies.get(&(computation, instruction));
        for copy in copies.into_iter().flatten() {
            let step = self.copy(copy, outer)?;
            steps.push(step);
        }
        if let Some(&trips) = self.trips.get(&(computation, instruction)) {
            let mut repeated = Vec::new();
            self.sequence(body, outer, nesting + 1, &mut repeated)?;
            self.end_copies(body, outer, &mut repeated)?;
            steps.push(Step::Repeat { trips, body: repeated });
            return Ok(());
        }
        let words = self.control_words(2);
        let (guard, count) = (words[0], words[1]);
        let rest: Vec<SlotId> = [guard].into_iter().chain(outer).collect();
        let start = self.control(Control::LoopStart { has_outer: outer.is_some() }, None, &rest)?;
        steps.push(start);
        let (mut before, mut repeated) = (Vec::new(), Vec::new());
        self.sequence(condition, Some(guard), nesting + 1, &mut before)?;
        self.end_copies(condition, Some(guard), &mut before)?;
        let verdict = self.assignment.slice(condition, self.module[condition].root(), &[]);
        let (verdict, status) = (self.slice(&verdict), self.slot(Space::Control, 0));
        let test = self.control(Control::LoopTest, None, &[guard, verdict, status])?;
        before.push(test);
        self.sequence(body, Some(guard), nesting + 1, &mut repeated)?;
        self.end_copies(body, Some(guard), &mut repeated)?;
        steps.push(Step::While { guard, count, before, body: repeated });
        Ok(())
    }

    fn custom_call(
        &mut self,
        computation: ComputationId,
        instruction: InstructionId,
        guard: Option<SlotId>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let call = &self.module[computation][instruction];
        let (message, aborts) = match custom_call(call.op()) {
            Some(CustomCallKind::Assert { message, aborts }) => (message, aborts),
            Some(CustomCallKind::Function { symbol, .. }) => {
                return Err(Error::unsupported(format!(
                    "the function {symbol} runs on the host, and a program of a device cannot call it: \
                     compile for a processor, or express the op in the graph"
                ))
                .coded(Code::UnsupportedHlo));
            }
            None => return Err(Error::internal("expected a custom call with code")),
        };
        let &[holds] = call.operands() else {
            return Err(Error::internal("expected a check with one operand"));
        };
        let holds = self.assignment.slice(computation, holds, &[]);
        let (holds, status) = (self.slice(&holds), self.slot(Space::Control, 0));
        let number = self.program.messages.len();
        let code = if aborts { ABORT_STATUS } else { 1 };
        self.program.messages.push(Message { text: message.to_owned(), code });
        let step = self.control(Control::Check { number }, guard, &[holds, status])?;
        steps.push(step);
        Ok(())
    }

    fn end_copies(
        &mut self,
        computation: ComputationId,
        guard: Option<SlotId>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let copies = self.assignment.end_copies.get(&computation);
        for copy in copies.into_iter().flatten() {
            let step = self.copy(copy, guard)?;
            steps.push(step);
        }
        Ok(())
    }

    fn copy(&mut self, copy: &CopyPair, guard: Option<SlotId>) -> Result<Step> {
        let (to, from) = (self.slice(&copy.to), self.slice(&copy.from));
        let bytes = copy.to.size.min(copy.from.size);
        if guard.is_none() || bytes == 0 {
            return Ok(Step::Copy { to, from, bytes });
        }
        let alignment = [copy.to, copy.from].map(|slice| alignment(&slice));
        let alignment = alignment[0].min(alignment[1]);
        self.control(Control::Copy { bytes, alignment }, guard, &[to, from])
    }
}

/// True if a step is a loop.
fn repeats(step: &Step) -> bool {
    matches!(step, Step::Repeat { .. } | Step::While { .. })
}

/// Returns a power of two that divides a slice's address.
fn alignment(slice: &Slice) -> u64 {
    1 << slice.offset.trailing_zeros().min(CALLER_ALIGNMENT.trailing_zeros())
}

fn build(control: Control) -> Result<(Function, u64)> {
    Ok(match control {
        Control::Branch { count, is_pred, has_outer } => {
            let kind = if is_pred { "pred" } else { "s32" };
            let outer = if has_outer { "_inner" } else { "" };
            (control::branch(format!("branch_{kind}_{count}{outer}"), count, is_pred, has_outer), 1)
        }
        Control::LoopStart { has_outer } => {
            let outer = if has_outer { "_inner" } else { "" };
            (control::loop_start(format!("loop_start{outer}"), has_outer), 1)
        }
        Control::LoopTest => (control::loop_test("loop_test".to_owned()), 1),
        Control::Check { number } => (control::check(format!("check_{number}"), number)?, 1),
        Control::Copy { bytes, alignment } => {
            control::copy(format!("copy_{bytes}_by_{alignment}"), bytes, alignment)?
        }
    })
}
