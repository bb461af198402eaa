//! Loops that end at sizes that are known only at run time, because the rest is not read.

use crate::context::tasks::Span;
use crate::context::{IndexKey, KernelContext};
use crate::index::{Facts, Index};
use hlo::analysis::{Extent, NeededSizes, linear_extent, needed_for};
use hlo::{ComputationId, InstructionId};
use nest::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, ValueId};
use plan::{Fusion, Loop};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// The sizes that a kernel's loops depend on.
#[derive(Clone, Debug)]
pub(crate) struct Sizes<'a> {
    needed: &'a NeededSizes,
    /// The computation that holds the kernel's body.
    body: ComputationId,
    /// Addresses of the sizes, by parameter of the entry.
    pointers: BTreeMap<usize, ValueId>,
}

impl<'a> Sizes<'a> {
    /// Creates the sizes of a kernel without any.
    pub(crate) fn new(needed: &'a NeededSizes, body: ComputationId) -> Self {
        Self { needed, body, pointers: BTreeMap::new() }
    }

    /// Returns the entry's parameters whose values the kernel needs.
    pub(crate) fn parameters(&self, fusion: &Fusion<'_>) -> BTreeSet<usize> {
        let of_instruction = |id: InstructionId| {
            let array = self.needed.array(self.body, id).unwrap_or_default().iter().copied();
            let significant = self.needed.significant(self.body, id).unwrap_or_default().iter().copied();
            array.chain(significant).chain([self.needed.summands(self.body, id)]).flatten()
        };
        let all = fusion.instructions().into_iter().flat_map(of_instruction);
        all.map(|extent| extent.parameter).collect()
    }

    /// Adds the address of a size.
    pub(crate) fn set(&mut self, parameter: usize, pointer: ValueId) {
        self.pointers.insert(parameter, pointer);
    }
}

impl KernelContext<'_> {
    /// Returns how many elements of an instruction in the body are read along each dimension.
    /// Nothing beyond its size needs to be computed.
    pub(crate) fn needed(&self, id: InstructionId) -> Vec<Option<Extent>> {
        let rank = self.fusion.body[id].shape().as_array().map_or(0, |array| array.rank());
        let found = self.sizes.as_ref().and_then(|sizes| sizes.needed.array(sizes.body, id));
        found.map_or_else(|| vec![None; rank], <[_]>::to_vec)
    }

    /// Returns how many elements of an instruction along each dimension the needed elements of a
    /// result are made of. They must be computed even if a mask hides them.
    pub(crate) fn needed_for(&self, result: InstructionId, id: InstructionId) -> Vec<Option<Extent>> {
        let extents = self.needed(result);
        let rank = self.fusion.body[id].shape().as_array().map_or(0, |array| array.rank());
        if extents.iter().all(Option::is_none) {
            return vec![None; rank];
        }
        if result == id {
            return extents;
        }
        needed_for(self.fusion.body, result, &extents, id).unwrap_or_else(|| vec![None; rank])
    }

    /// Returns, for each dimension of the array that an instruction in the body walks along, the
    /// number of first elements beyond which none changes what is read of the result
    /// ([`NeededSizes::significant`]).
    pub(crate) fn significant(&self, id: InstructionId) -> Vec<Option<Extent>> {
        let found = self.sizes.as_ref().and_then(|sizes| sizes.needed.significant(sizes.body, id));
        found.map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Returns the number of summands of a dot in the body that are not known to be 0.
    pub(crate) fn needed_summands(&self, dot: InstructionId) -> Option<Extent> {
        self.sizes.as_ref().and_then(|sizes| sizes.needed.summands(sizes.body, dot))
    }

    /// Returns the value of an extent, from 0 to `most`.
    pub(crate) fn extent(&mut self, extent: Extent, most: i64) -> Result<ValueId> {
        let key = IndexKey::Extent(extent, most);
        if let Some(known) = self.known_index(&key) {
            return Ok(known);
        }
        let pointer = self.sizes.as_ref().and_then(|sizes| sizes.pointers.get(&extent.parameter).copied());
        let pointer = pointer.ok_or_else(|| Error::internal("a kernel has no address of a size"))?;
        let value = self.outside(1, |b| {
            let size = b.load(Type::scalar(ScalarType::I32), pointer, 4);
            let size = b.convert(ConvertOp::SignExtend, size, ScalarType::I64);
            let product = b.mul_constant(size, extent.multiple);
            let value = b.add_constant(product, extent.offset);
            let (least, most, divisor) = (b.index(0), b.index(most), b.index(extent.divisor));
            let is_less = b.compare(Predicate::Less, value, least);
            let value = b.select(is_less, least, value);
            let value = b.binary(BinaryOp::DivideSigned, value, divisor);
            lesser(b, value, most)
        });
        self.facts.insert(value, Facts::range(0, most));
        self.frames[0].indices.insert(key, value);
        Ok(value)
    }

    /// Like `for_range_carrying`, but ends with the step that covers the extent.
    pub(crate) fn for_needed(
        &mut self,
        (begin, end, extent): (i64, i64, Option<Extent>),
        step: i64,
        initial: &[ValueId],
        body: impl FnMut(&mut Self, Index, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        let Some(extent) = extent.filter(|&extent| begin < end && !self.covers(extent, end)) else {
            return self.for_range_carrying(begin, end, step, initial, body);
        };
        let (from, limit) = (self.index(begin), self.extent(extent, end)?);
        self.for_steps((from, limit), (begin, end), step, initial, body)
    }

    /// Like `for_needed` with steps of 1 that carry nothing.
    pub(crate) fn for_needed_indices(
        &mut self,
        range: (i64, i64, Option<Extent>),
        mut body: impl FnMut(&mut Self, Index) -> Result<()>,
    ) -> Result<()> {
        self.for_needed(range, 1, &[], |cx, index, _| body(cx, index).map(|()| Vec::new())).map(|_| ())
    }

    /// Runs `body` for steps between two numbers that are computed at run time. They lie between
    /// two known ones, a multiple of the step from the first of these.
    pub(crate) fn for_steps(
        &mut self,
        (from, to): (ValueId, ValueId),
        (begin, end): (i64, i64),
        step: i64,
        initial: &[ValueId],
        mut body: impl FnMut(&mut Self, Index, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        self.for_carrying(from, to, step, initial, |cx, index, carried| {
            let max = begin + (end - 1 - begin).max(0) / step * step;
            let multiple = if begin % step == 0 { step } else { 1 };
            cx.facts.insert(index, Facts { min: begin, max, multiple });
            cx.scoped(|cx| body(cx, Index::scalar(index), carried))
        })
    }

    /// Returns a span that ends at an extent. Its steps have `width` indices each.
    pub(crate) fn limited(&mut self, span: Span, extent: Option<Extent>, width: i64) -> Result<Span> {
        let steps = match span {
            Span::All(steps) | Span::Part { steps, .. } => steps,
        };
        let Some(extent) = extent.filter(|&extent| !self.covers(extent, steps * width)) else {
            return Ok(span);
        };
        // One more step than there are stands for the rest beyond whole steps.
        let most = steps.saturating_add(1).saturating_mul(width);
        let count = self.extent(extent, most)?;
        let steps_of = Index::scalar(count).plus_constant(width - 1);
        let (needed, _) = self.div_rem(&steps_of, width)?;
        let needed = self.scalar_value(&needed)?;
        Ok(self.until(span, needed))
    }

    /// Runs `body` for the needed parts of a span over the indices of several dimensions, in
    /// row-major order. If only an outer dimension is limited, or none is, there is one part.
    pub(crate) fn for_needed_parts(
        &mut self,
        span: Span,
        sizes: &[i64],
        extents: &[Option<Extent>],
        body: &mut dyn FnMut(&mut Self, Span) -> Result<()>,
    ) -> Result<()> {
        let limited = |d: &usize| extents[*d].is_some_and(|extent| !self.covers(extent, sizes[*d]));
        let inner =
            (0..sizes.len()).rev().find(limited).filter(|&d| sizes[..d].iter().any(|&size| size != 1));
        let Some(d) = inner else {
            let span = self.limited(span, linear_extent(sizes, extents), 1)?;
            return body(self, span);
        };
        let extent = extents[d].ok_or_else(|| Error::internal("a limited dimension has no extent"))?;
        let unit: i64 = sizes[d + 1..].iter().product();
        let (block, outer) = (sizes[d] * unit, sizes[..d].iter().product::<i64>());
        let (begin, end, steps) = match span {
            Span::All(steps) => (self.index(0), self.index(steps), steps),
            Span::Part { begin, end, steps, .. } => (begin, end, steps),
        };
        let count = self.extent(extent, sizes[d])?;
        let count = self.mul_constant(count, unit);
        // The blocks that the span touches.
        let (first, _) = self.div_rem(&Index::scalar(begin), block)?;
        let (last, _) = self.div_rem(&Index::scalar(end).plus_constant(block - 1), block)?;
        let (first, last) = (self.scalar_value(&first)?, self.scalar_value(&last)?);
        let blocks = Span::Part { begin: first, end: last, steps: outer, is_one: false };
        self.for_needed_parts(blocks, &sizes[..d], &extents[..d], &mut |cx, blocks| {
            cx.for_span(blocks, 1, |cx, number| {
                let start = cx.scalar_value(&number.times(block))?;
                let limit = cx.add(start, count);
                let (from, to) = (greater(cx, begin, start), lesser(cx, end, limit));
                cx.facts.insert(from, Facts::range(0, steps));
                cx.facts.insert(to, Facts::range(0, steps));
                body(cx, Span::Part { begin: from, end: to, steps, is_one: false })
            })
        })
    }

    /// Returns a span that ends at a step that is known at run time.
    pub(crate) fn until(&mut self, span: Span, step: ValueId) -> Span {
        let (begin, end, steps) = match span {
            Span::All(steps) => (self.index(0), self.index(steps), steps),
            Span::Part { begin, end, steps, .. } => (begin, end, steps),
        };
        let end = lesser(self, end, step);
        self.facts.insert(end, Facts::range(0, steps));
        Span::Part { begin, end, steps, is_one: false }
    }

    /// True if an extent has at least this many elements in every run.
    pub(crate) fn covers(&self, extent: Extent, elements: i64) -> bool {
        let sizes = self.module.size_parameters();
        let size = sizes.iter().find(|size| size.parameter == extent.parameter);
        size.is_some_and(|size| extent.at(size.low) >= elements)
    }

    /// Returns how many indices of each loop are needed. A loop covers the dimensions after that of
    /// the loop before, the outermost first, up to its own.
    pub(crate) fn loop_extents(
        loops: &[Loop],
        sizes: &[i64],
        extents: &[Option<Extent>],
    ) -> Vec<Option<Extent>> {
        let mut first = 0;
        let of_loop = |l: &Loop| {
            let range = first..l.dimension + 1;
            first = l.dimension + 1;
            linear_extent(sizes.get(range.clone())?, extents.get(range)?)
        };
        loops.iter().map(of_loop).collect()
    }
}

/// Returns the lesser of two numbers.
pub(crate) fn lesser(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    let is_less = b.compare(Predicate::Less, x, y);
    b.select(is_less, x, y)
}

/// Returns the greater of two numbers.
pub(crate) fn greater(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    let is_less = b.compare(Predicate::Less, x, y);
    b.select(is_less, y, x)
}
