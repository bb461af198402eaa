//! The part of a kernel's loops that one task does.

use crate::context::KernelContext;
use crate::index::{Facts, Index};
use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder as _, ValueId};
use support::Result;

/// Steps of a loop that a task does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Span {
    /// All of so many.
    All(i64),
    /// From a step to another, both known at run time, of so many.
    Part { begin: ValueId, end: ValueId, steps: i64 },
}

impl Span {
    /// Whether the span ends where the loop does; nothing if it always does. What is left behind the last whole step
    /// belongs to the task of that step.
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
    /// Whether a task is the first one that this call of the kernel's function does; nothing if there is one task only.
    /// What a task leaves in the worker's scratch, the next one of the same call finds there.
    pub(crate) fn is_first_task(&mut self, task: &Index) -> Result<Option<ValueId>> {
        let Some(tasks) = self.parameters.tasks else { return Ok(None) };
        let task = self.scalar_value(task)?;
        Ok(Some(self.compare(Predicate::Equal, task, tasks.begin)))
    }

    /// The spans of a task in loops of so many `steps`, the outermost first, that are cut into so many parts each.
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

    /// Part number `part` of `parts` of a loop; they differ by one step at most.
    pub(crate) fn span(&mut self, part: ValueId, parts: i64, steps: i64) -> Span {
        let next = self.add_constant(part, 1);
        let begin = self.first_of_part(part, parts, steps);
        let end = self.first_of_part(next, parts, steps);
        Span::Part { begin, end, steps }
    }

    /// Where a part begins: the first `steps % parts` have a step more than the others.
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

    /// As `for_range` over the steps of a span, each of so many indices.
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

    /// As `for_range` over the indices of the span's steps that lie between two numbers of steps; the index is that of
    /// the loop times `step`.
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
            Span::Part { begin, end, steps } => (begin, end, steps),
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

    /// A loop over the span's blocks of `step` indices, even if there is one only: the first index is always a value.
    pub(crate) fn for_each_block(
        &mut self,
        span: Span,
        step: i64,
        mut body: impl FnMut(&mut Self, ValueId) -> Result<()>,
    ) -> Result<()> {
        let (from, to, steps) = match span {
            Span::All(steps) => (self.index(0), self.index(steps * step), steps),
            Span::Part { begin, end, steps } => {
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

    /// The first byte and the number of bytes of a part of so many bytes, cut at whole cache lines.
    pub(crate) fn bytes_of_part(&mut self, part: ValueId, chunk: i64, bytes: i64) -> (ValueId, ValueId) {
        let begin = self.mul_constant(part, chunk);
        let begin = choose(self, Predicate::Less, begin, bytes);
        let end = self.add_constant(begin, chunk);
        let end = choose(self, Predicate::Less, end, bytes);
        (begin, self.binary(BinaryOp::Subtract, end, begin))
    }
}

/// A value or a constant, whichever the predicate holds for on the left.
fn choose(b: &mut FunctionBuilder, predicate: Predicate, value: ValueId, constant: i64) -> ValueId {
    let constant = b.index(constant);
    let holds = b.compare(predicate, value, constant);
    b.select(holds, value, constant)
}
