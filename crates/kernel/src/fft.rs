//! Fourier transforms: the passes along one dimension, from memory through the worker's scratch to
//! memory. Each dimension is a separate kernel that reads the results of the one before.

mod butterfly;
mod lines;
mod pass;
mod real;

use crate::context::KernelContext;
use crate::context::tasks::Span;
use hlo::Op;
use hlo::analysis::{Extent, linear_extent};
use lines::{Line, Parts, RootTable};
use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, ValueId};
use pass::{Pass, into_lines, out_of_lines};
use plan::{FftKind, FftLayout, FftPlace, FftPlan, FftStep, Roots};
use real::Walk;
use shape::PrimitiveType;
use support::{Error, Result};

/// Emits the transforms along the dimension of one step.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &FftPlan, number: usize) -> Result<()> {
    let step = plan.steps.get(number).ok_or_else(|| Error::internal("missing step of a transform"))?;
    let table = *cx.packed().get(number).ok_or_else(|| Error::internal("missing table of roots of unity"))?;
    let (from, to) = (place(cx, plan, step.from)?, place(cx, plan, step.to)?);
    let scalar = match step.part {
        PrimitiveType::F32 => ScalarType::F32,
        PrimitiveType::F64 => ScalarType::F64,
        other => {
            return Err(Error::internal(format!("expected a transform of f32 or f64 parts, got {other:?}")));
        }
    };
    let (lines, within) = lines_before(cx, step.outer);
    let (units, tasks) = (step.units(), cx.plan().tasks);
    cx.for_tasks(|cx, task| {
        let span = cx.spans(&task, &[units], &[tasks])?[0];
        let within = within.iter().map(|&(extent, of)| Ok((cx.extent(extent, of)?, of)));
        let within = within.collect::<Result<_>>()?;
        let emitter = Emitter { step, scalar, table, from, to, lines, within };
        let scratch = (cx.plan().worker_scratch_bytes > 0).then(|| cx.worker_scratch());
        emitter.units(cx, span, scratch)
    })
}

/// Returns how many of the `outer` lines along a step's dimension are needed in a run: those of the
/// dimensions before it. A number in a transformed dimension depends on all numbers along it. Also
/// returns, for each limited dimension within the outermost one, the number of lines that one index
/// of the dimension before it contains, and how many of these are needed.
fn lines_before(cx: &KernelContext<'_>, outer: i64) -> (Option<Extent>, Vec<(Extent, i64)>) {
    let Op::Fft { fft_length, .. } = cx.fusion().root_op() else { return (None, Vec::new()) };
    let transformed = fft_length.len();
    let sizes = cx.results()[0].shape.sizes();
    let mut needed = cx.needed(cx.fusion().root);
    needed.iter_mut().rev().take(transformed).for_each(|extent| *extent = None);
    let Some(rank) = (0..=sizes.len()).find(|&rank| sizes[..rank].iter().product::<i64>() == outer) else {
        return (None, Vec::new());
    };
    let (sizes, needed) = (&sizes[..rank], &needed[..rank]);
    let outermost = sizes.iter().position(|&size| size != 1).unwrap_or(rank);
    let within = (outermost + 1..rank)
        .filter(|&d| sizes[d] != 1)
        .filter_map(|d| Some((linear_extent(&sizes[d..], &needed[d..])?, sizes[d..].iter().product())));
    (linear_extent(sizes, needed), within.collect())
}

/// Returns the address of an array.
fn place(cx: &mut KernelContext<'_>, plan: &FftPlan, place: FftPlace) -> Result<ValueId> {
    Ok(match place {
        FftPlace::Operand => {
            let operand = cx.fusion().body[cx.fusion().root].operands()[0];
            cx.operand(crate::movement::update::number_of(cx, operand)?)?.pointer
        }
        FftPlace::Result => cx.results()[0].pointer,
        FftPlace::Scratch(number) => {
            let scratch = cx
                .scratch()
                .ok_or_else(|| Error::internal("missing scratch for the arrays between steps"))?;
            cx.offset_bytes(scratch, number as i64 * plan.array_bytes as i64)
        }
    })
}

/// The moves of a line's points: between two buffers, and finally to memory.
struct Moves {
    /// Current line of points.
    current: Line,
    buffers: [Line; 2],
    target: Line,
    done: usize,
    count: usize,
}

impl Moves {
    /// Returns the lines that the next move reads and writes.
    fn next(&mut self) -> (Line, Line) {
        self.done += 1;
        let to = if self.done == self.count { self.target } else { self.buffers[(self.done + 1) % 2] };
        (std::mem::replace(&mut self.current, to), to)
    }
}

/// Emitter for a step.
struct Emitter<'a> {
    step: &'a FftStep,
    scalar: ScalarType,
    table: ValueId,
    from: ValueId,
    to: ValueId,
    /// Number of needed lines before the dimension, if not all.
    lines: Option<Extent>,
    /// For limited inner dimensions: the number of needed lines, and of all lines in a period.
    within: Vec<(ValueId, i64)>,
}

impl Emitter<'_> {
    /// Emits the needed lines of a task, or groups of them.
    fn units(&self, cx: &mut KernelContext<'_>, span: Span, scratch: Option<ValueId>) -> Result<()> {
        let FftStep { outer, inner, .. } = *self.step;
        let together = self.step.side_by_side();
        let size = self.scalar.byte_size() as i64;
        let [read, written] = self.step.numbers();
        // Addresses of a line's first elements in both arrays, given the number of the line and the
        // column.
        let lines = |b: &mut FunctionBuilder, row: ValueId, column: ValueId| {
            let mut first = |array: ValueId, numbers: i64| {
                let row = b.offset(array, row, numbers * inner * size);
                b.offset(row, column, 2 * size)
            };
            (first(self.from, read), first(self.to, written))
        };
        let span = match self.step.layout {
            FftLayout::Along => cx.limited(span, self.lines, 1)?,
            FftLayout::Across => cx.limited(span, self.lines, together)?,
            FftLayout::Columns if outer == 1 => span,
            FftLayout::Columns => cx.limited(span, self.lines, 1)?,
        };
        match self.step.layout {
            FftLayout::Along => cx.for_span(span, 1, |cx, row| {
                let row = cx.scalar_value(&row)?;
                self.when_needed(cx, row, |cx| {
                    let none = cx.index(0);
                    let (from, to) = lines(cx, row, none);
                    self.line(cx, from, to, scratch)
                })
            }),
            FftLayout::Across => self.groups(cx, span, outer, together, &mut |b, first| {
                let line = |b: &mut FunctionBuilder| {
                    let none = b.index(0);
                    let (from, to) = lines(b, first, none);
                    self.line(b, from, to, scratch)
                };
                match self.is_needed(b, first, together) {
                    Some(needed) => b.if_then(needed, line),
                    None => line(b),
                }
            }),
            FftLayout::Columns if outer == 1 => self.groups(cx, span, inner, together, &mut |b, first| {
                let none = b.index(0);
                let (from, to) = lines(b, none, first);
                self.line(b, from, to, scratch)
            }),
            FftLayout::Columns => cx.for_span(span, 1, |cx, row| {
                let row = cx.scalar_value(&row)?;
                self.when_needed(cx, row, |cx| {
                    self.groups(cx, Span::All(inner / together), inner, together, &mut |b, first| {
                        let (from, to) = lines(b, row, first);
                        self.line(b, from, to, scratch)
                    })
                })
            }),
        }
    }

    /// Returns whether one of `count` neighboring lines is needed. `None` if all are.
    fn is_needed(&self, b: &mut FunctionBuilder, first: ValueId, count: i64) -> Option<ValueId> {
        let mut needed: Option<ValueId> = None;
        for &(limit, of) in &self.within {
            let whole = b.index(of);
            let place = b.binary(BinaryOp::RemainderSigned, first, whole);
            let mut is_needed = b.compare(Predicate::Less, place, limit);
            if count > 1 {
                // The lines after the last of these are the first of the next ones.
                let last = b.index(of - count);
                let goes_on = b.compare(Predicate::Less, last, place);
                is_needed = b.or(is_needed, goes_on);
            }
            needed = Some(needed.map_or(is_needed, |others| b.and(others, is_needed)));
        }
        needed
    }

    /// Runs the body if the lines of a row are needed.
    fn when_needed(
        &self,
        cx: &mut KernelContext<'_>,
        row: ValueId,
        body: impl FnOnce(&mut KernelContext<'_>) -> Result<()>,
    ) -> Result<()> {
        match self.is_needed(cx, row, 1) {
            Some(needed) => cx.when(needed, body),
            None => body(cx),
        }
    }

    /// Runs the body for groups of `together` neighbors. The last group may overlap the one before.
    fn groups(
        &self,
        cx: &mut KernelContext<'_>,
        span: Span,
        count: i64,
        together: i64,
        body: &mut dyn FnMut(&mut FunctionBuilder, ValueId) -> Result<()>,
    ) -> Result<()> {
        let (whole, all) = (count / together, (count + together - 1) / together);
        let (begin, end) = match span {
            Span::All(_) => (cx.index(0), cx.index(all)),
            Span::Part { begin, end, .. } => {
                // The remainder belongs to the task of the group that it overlaps.
                let steps = cx.index(whole);
                let is_last = cx.compare(Predicate::Equal, end, steps);
                let is_some = cx.compare(Predicate::Less, begin, end);
                let is_last = cx.and(is_last, is_some);
                let all = cx.index(all);
                (begin, cx.select(is_last, all, end))
            }
        };
        cx.for_dynamic(begin, end, all, &[], |b, group, _| {
            let first = b.mul_constant(group, together);
            let limit = b.index(count - together);
            let is_less = b.compare(Predicate::Less, first, limit);
            let first = b.select(is_less, first, limit);
            body(b, first).map(|()| Vec::new())
        })
        .map(|_| ())
    }

    /// Emits the whole transform of a line, or of a group of lines.
    fn line(
        &self,
        b: &mut FunctionBuilder,
        from: ValueId,
        to: ValueId,
        scratch: Option<ValueId>,
    ) -> Result<()> {
        let step = self.step;
        let walk = Walk { lanes: step.lanes, is_along: step.layout == FftLayout::Along };
        let buffers = [0, 1].map(|number| self.buffer(b, scratch.unwrap_or(from), number));
        let reads_reals = step.kind == FftKind::ToSpectrum && !step.is_packed();
        let writes_reals = step.kind == FftKind::FromSpectrum && !step.is_packed();
        let (source, target) = (self.outside(from, reads_reals), self.outside(to, writes_reals));
        let mut moves = Moves { current: source, buffers, target, done: 0, count: step.moves() };
        let [read, written] = step.numbers();
        if step.layout == FftLayout::Across {
            let (_, to) = moves.next();
            into_lines(b, from, read, &to, step.lanes, reads_reals)?;
            if let (true, Parts::Split { re, .. }) = (reads_reals, to.parts) {
                moves.current.parts = Parts::Reals(re);
            }
        }
        let real_roots = step.real_roots.map(|roots| self.roots(roots, 1));
        if step.kind == FftKind::FromSpectrum {
            let (from, to) = moves.next();
            match &real_roots {
                Some(roots) => walk.pairs_of_spectrum(b, roots, step.points, &from, &to)?,
                None => walk.whole_spectrum(b, step.length, &from, &to)?,
            }
        }
        self.passes(b, &mut moves)?;
        if step.kind == FftKind::ToSpectrum {
            if let Some(roots) = &real_roots {
                let (from, to) = moves.next();
                walk.spectrum_of_pairs(b, roots, step.points, &from, &to)?;
            } else if walk.is_along {
                let (from, to) = moves.next();
                walk.copy(b, step.written_points(), &from, &to)?;
            }
        }
        if step.layout == FftLayout::Across {
            out_of_lines(b, &moves.current, to, written, step.lanes, writes_reals)?;
        }
        Ok(())
    }

    /// Returns a buffer in a worker's scratch.
    fn buffer(&self, b: &mut FunctionBuilder, scratch: ValueId, number: i64) -> Line {
        let part = self.step.part_bytes();
        let re = b.offset_bytes(scratch, 2 * number * part);
        let im = b.offset_bytes(scratch, (2 * number + 1) * part);
        Line {
            parts: Parts::Split { re, im },
            stride: self.step.side_by_side(),
            column: None,
            is_exchanged: false,
            scalar: self.scalar,
        }
    }

    /// Returns a line of the operand or of the result.
    fn outside(&self, first: ValueId, is_real: bool) -> Line {
        Line {
            parts: if is_real { Parts::Reals(first) } else { Parts::Pairs(first) },
            stride: if self.step.layout == FftLayout::Columns { self.step.inner } else { 1 },
            column: None,
            is_exchanged: false,
            scalar: self.scalar,
        }
    }

    /// Emits one pass per radix.
    fn passes(&self, b: &mut FunctionBuilder, moves: &mut Moves) -> Result<()> {
        let step = self.step;
        let mut done = 1;
        for (number, &radix) in step.radices.iter().enumerate() {
            let is_last = number + 1 == step.radices.len();
            let (mut from, mut to) = moves.next();
            from.is_exchanged = step.is_inverse && number == 0;
            to.is_exchanged = step.is_inverse && is_last;
            let pass = Pass {
                radix,
                done,
                rest: step.points / done / radix,
                roots: step.roots.get(number).map(|&roots| self.roots(roots, radix - 1)),
                scale: if is_last { step.scale } else { 1.0 },
                from,
                to,
            };
            if step.layout == FftLayout::Along {
                pass.along(b, step.lanes)?
            } else {
                pass.columns(b, step.lanes, step.vectors)?
            }
            done *= radix;
        }
        Ok(())
    }

    fn roots(&self, roots: Roots, lines: i64) -> RootTable {
        RootTable { table: self.table, roots, lines, scalar: self.scalar }
    }
}
