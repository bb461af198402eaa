//! A task's part of the kernel's loops.

use crate::context::KernelContext;
use crate::index::{Facts, Index};
use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder as _, ValueId};
use support::Result;

/// Steps of a loop that a task runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Span {
    /// All steps; their number.
    All(i64),
    /// A range of steps whose limits are known only at run time. `steps` is the loop's total. If
    /// `is_one`, the range is a single step, on a device.
    Part { begin: ValueId, end: ValueId, steps: i64, is_one: bool },
}

impl Span {
    /// Returns a condition that holds if the span ends where the loop does, or `None` if it always
    /// does. The task with the last whole step also runs the remainder.
    pub(crate) fn is_last(self, b: &mut FunctionBuilder) -> Option<ValueId> {
        match self {
            Self::All(_) => None,
            Self::Part { end, steps, .. } => {
                let all = b.index(steps);
                Some(b.compare(Predicate::Equal, end, all))
            }
        }
    }
}

impl KernelContext<'_> {
    /// Returns a condition that holds for the first task of a call, or `None` if there is one task
    /// only. The next task of the same call finds in the worker's scratch what the one before left
    /// there.
    pub(crate) fn is_first_task(&mut self, task: &Index) -> Result<Option<ValueId>> {
        let Some(tasks) = self.parameters.tasks else { return Ok(None) };
        if tasks.step > 1 {
            // The previous task is another thread's.
            return Ok(None);
        }
        let task = self.scalar_value(task)?;
        Ok(Some(self.compare(Predicate::Equal, task, tasks.begin)))
    }

    /// Returns a task's spans in loops with these `steps`, the outermost first. Each loop is cut
    /// into the given number of parts.
    pub(crate) fn spans(&mut self, task: &Index, steps: &[i64], cuts: &[i64]) -> Result<Vec<Span>> {
        let mut rest = task.clone();
        let mut spans = Vec::with_capacity(steps.len());
        for (k, &steps) in steps.iter().enumerate().rev() {
            let parts = cuts.get(k).copied().unwrap_or(1);
            if parts <= 1 {
                spans.push(Span::All(steps));
                continue;
            }
            let part;
            (rest, part) = if cuts[..k].iter().all(|&parts| parts <= 1) {
                (Index::default(), rest)
            } else {
                self.div_rem(&rest, parts)?
            };
            let part = self.scalar_value(&part)?;
            spans.push(self.span(part, parts, steps));
        }
        spans.reverse();
        Ok(spans)
    }

    /// Returns part number `part` of `parts` of a loop. Their lengths differ by at most one step.
    pub(crate) fn span(&mut self, part: ValueId, parts: i64, steps: i64) -> Span {
        let next = self.add_constant(part, 1);
        let begin = self.first_of_part(part, parts, steps);
        let end = self.first_of_part(next, parts, steps);
        let is_one = parts == steps && self.target.gpu.is_some();
        Span::Part { begin, end, steps, is_one }
    }

    /// Returns the first step of a part. The first `steps % parts` parts have one step more than
    /// the others.
    fn first_of_part(&mut self, part: ValueId, parts: i64, steps: i64) -> ValueId {
        let (each, more) = (steps / parts, steps % parts);
        let mut first = self.mul_constant(part, each);
        if more > 0 {
            let limit = self.index(more);
            let is_early = self.compare(Predicate::Less, part, limit);
            let longer = self.select(is_early, part, limit);
            first = self.add(first, longer);
        }
        self.facts.insert(first, Facts::range(0, steps));
        first
    }

    /// Like `for_range`, over the steps of a span, each of `step` indices.
    pub(crate) fn for_span(
        &mut self,
        span: Span,
        step: i64,
        body: impl FnMut(&mut Self, Index) -> Result<()>,
    ) -> Result<()> {
        match span {
            Span::All(steps) => self.for_range(0, steps * step, step, body),
            Span::Part { .. } => self.for_part(span, 0, i64::MAX, step, body),
        }
    }

    /// Like `for_range`, over the steps of the span from `low` to `high`, excluding `high`. The
    /// index is the step's number times `step`.
    pub(crate) fn for_part(
        &mut self,
        span: Span,
        low: i64,
        high: i64,
        step: i64,
        mut body: impl FnMut(&mut Self, Index) -> Result<()>,
    ) -> Result<()> {
        let (begin, end, steps) = match span {
            Span::All(steps) => {
                let high = high.min(steps);
                return self.for_range(low.min(high) * step, high * step, step, body);
            }
            Span::Part { begin, steps, is_one: true, .. } if low <= 0 && high >= steps => {
                let index = self.mul_constant(begin, step);
                self.facts.insert(index, Facts { min: 0, max: (steps - 1) * step, multiple: step });
                return body(self, Index::scalar(index));
            }
            Span::Part { begin, end, steps, .. } => (begin, end, steps),
        };
        let high = high.min(steps);
        if low >= high {
            return Ok(());
        }
        let begin = if low > 0 { choose(self, Predicate::Greater, begin, low) } else { begin };
        let end = if high < steps { choose(self, Predicate::Less, end, high) } else { end };
        let (begin, end) = (self.mul_constant(begin, step), self.mul_constant(end, step));
        self.for_carrying(begin, end, step, &[], |cx, index, _| {
            cx.facts.insert(index, Facts { min: low * step, max: (high - 1) * step, multiple: step });
            cx.scoped(|cx| body(cx, Index::scalar(index))).map(|()| Vec::new())
        })
        .map(|_| ())
    }

    /// Emits a loop over the span's blocks of `step` indices, even if there is only one. The first
    /// index of a block is always a value.
    pub(crate) fn for_each_block(
        &mut self,
        span: Span,
        step: i64,
        mut body: impl FnMut(&mut Self, ValueId) -> Result<()>,
    ) -> Result<()> {
        let (from, to, steps) = match span {
            Span::All(steps) => (self.index(0), self.index(steps * step), steps),
            Span::Part { begin, end, steps, .. } => {
                (self.mul_constant(begin, step), self.mul_constant(end, step), steps)
            }
        };
        self.for_carrying(from, to, step, &[], |cx, index, _| {
            cx.facts.insert(index, Facts { min: 0, max: ((steps - 1) * step).max(0), multiple: step });
            cx.scoped(|cx| body(cx, index)).map(|()| Vec::new())
        })
        .map(|_| ())
    }

    /// Runs `body` if the span ends where its loop does.
    pub(crate) fn if_last(&mut self, span: Span, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        match span.is_last(self) {
            None => body(self),
            Some(is_last) => self.when(is_last, body),
        }
    }

    /// Returns the first byte and the number of bytes of a part of `bytes` bytes. Parts end at
    /// whole cache lines if `chunk` does.
    pub(crate) fn bytes_of_part(&mut self, part: ValueId, chunk: i64, bytes: i64) -> (ValueId, ValueId) {
        let begin = self.mul_constant(part, chunk);
        let begin = choose(self, Predicate::Less, begin, bytes);
        let end = self.add_constant(begin, chunk);
        let end = choose(self, Predicate::Less, end, bytes);
        (begin, self.binary(BinaryOp::Subtract, end, begin))
    }
}

/// Returns the value if the predicate holds for the value and the constant, or else the constant.
fn choose(b: &mut FunctionBuilder, predicate: Predicate, value: ValueId, constant: i64) -> ValueId {
    let constant = b.index(constant);
    let holds = b.compare(predicate, value, constant);
    b.select(holds, value, constant)
}
