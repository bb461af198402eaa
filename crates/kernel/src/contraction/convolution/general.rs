//! Convolutions of any kind: one vector of output features after another, over the taps within the
//! input.

use super::walk::span;
use super::{finish, load};
use crate::context::KernelContext;
use crate::contraction::tile::{multiply_add, scalar_type, zero};
use crate::element::{Element, splat};
use crate::index::{Index, Position};
use hlo::ConvolutionForm;
use hlo::analysis::{Extent, linear_extent};
use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder as _, Type, UnaryOp, ValueId};
use plan::{ConvolutionPlan, SpatialDimension};
use shape::PrimitiveType;
use shape::index::row_major_strides;
use support::Result;

/// Emits the loops.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &ConvolutionPlan,
    lanes: u32,
    chunks: i64,
) -> Result<()> {
    let (input, kernel) = (cx.operand(plan.input_operand)?, cx.operand(plan.kernel_operand)?);
    let operand = |memory: &crate::Memory| Operand {
        pointer: memory.pointer,
        element_type: memory.shape.element_type,
        strides: row_major_strides(&memory.shape.sizes())
            .into_iter()
            .map(|stride| stride * memory.shape.element_type.byte_size() as i64)
            .collect(),
    };
    let nest = Nest { plan, lanes, input: operand(input), kernel: operand(kernel) };
    let dims = &plan.dims;
    let needed = needed(cx, plan);
    let outputs: Vec<_> = dims.spatial.iter().map(|d| d.output).zip(needed[1..].iter().copied()).collect();
    let rows = linear_extent(&[dims.batch, dims.lines() / dims.batch.max(1)], &needed);
    cx.for_tasks(|cx, task| {
        let lines = span(cx, &task, chunks, dims.lines())?;
        let lines = cx.limited(lines, rows, 1)?;
        cx.for_span(lines, 1, |cx, line| match outputs.split_first() {
            None => nest.pixels(cx, &[], &mut vec![line]),
            Some((&(first, limit), inner)) => {
                let (image, line) = cx.div_rem(&line, first)?;
                let Some(limit) = limit.filter(|&limit| dims.batch > 1 && !cx.covers(limit, first)) else {
                    return nest.pixels(cx, inner, &mut vec![image, line]);
                };
                let (number, limit) = (cx.scalar_value(&line)?, cx.extent(limit, first)?);
                let is_needed = cx.compare(Predicate::Less, number, limit);
                cx.when(is_needed, |cx| nest.pixels(cx, inner, &mut vec![image, line]))
            }
        })
    })
}

/// Returns how many images and outputs of each dimension are needed.
fn needed(cx: &KernelContext<'_>, plan: &ConvolutionPlan) -> Vec<Option<Extent>> {
    let op = cx.fusion().body[plan.hero].op();
    match ConvolutionForm::of(op) {
        Some(ConvolutionForm::Canonical) => cx.needed_for(cx.fusion().root, plan.hero),
        _ => vec![None; plan.dims.spatial.len() + 2],
    }
}

/// An operand in memory.
struct Operand {
    pointer: ValueId,
    element_type: PrimitiveType,
    /// Distance in bytes between neighbors, for each dimension.
    strides: Vec<i64>,
}

/// The loops of one convolution.
struct Nest<'p> {
    plan: &'p ConvolutionPlan,
    lanes: u32,
    input: Operand,
    kernel: Operand,
}

/// Taps of a dimension that may lie within the input.
#[derive(Clone, Copy)]
struct Taps {
    begin: ValueId,
    end: ValueId,
    /// Position of tap 0 in the dilated input.
    start: ValueId,
}

/// Addresses of the input and the kernel for the taps so far, and the sums.
#[derive(Clone)]
struct Partial {
    input: ValueId,
    kernel: ValueId,
    sums: Vec<ValueId>,
}

impl Nest<'_> {
    /// Emits loops over the output pixels of the remaining dimensions.
    fn pixels(
        &self,
        cx: &mut KernelContext<'_>,
        sizes: &[(i64, Option<Extent>)],
        position: &mut Vec<Index>,
    ) -> Result<()> {
        let Some((&(size, limit), rest)) = sizes.split_first() else { return self.features(cx, position) };
        cx.for_needed_indices((0, size, limit), |cx, index| {
            position.push(index);
            let result = self.pixels(cx, rest, position);
            position.pop();
            result
        })
    }

    /// Emits loops over the groups and vectors of one pixel's features.
    fn features(&self, cx: &mut KernelContext<'_>, position: &[Index]) -> Result<()> {
        let mut taps = Vec::new();
        for (d, index) in self.plan.dims.spatial.iter().zip(&position[1..]) {
            let output = cx.scalar_value(index)?;
            taps.push(taps_inside(cx, d, output));
        }
        let image = cx.scalar_value(&position[0])?;
        let input = cx.offset(self.input.pointer, image, self.input.strides[0]);
        let (outputs, lanes) = (self.plan.dims.outputs, i64::from(self.lanes));
        cx.for_range(0, self.plan.dims.groups, 1, |cx, group| {
            let number = cx.scalar_value(&group)?;
            let size = self.input.element_type.byte_size() as i64;
            let input = cx.offset(input, number, self.plan.dims.inputs * size);
            let first = group.times(outputs);
            let mut vector = |cx: &mut KernelContext<'_>, feature: Index| {
                self.vector(cx, position, &taps, input, &first.plus(&feature))
            };
            cx.for_range(0, outputs / lanes * lanes, lanes, &mut vector)?;
            if outputs % lanes != 0 {
                // The last vector overlaps the one before.
                vector(cx, Index::constant(outputs - lanes))?;
            }
            Ok(())
        })
    }

    /// Emits one vector of features of one pixel.
    fn vector(
        &self,
        cx: &mut KernelContext<'_>,
        position: &[Index],
        taps: &[Taps],
        input: ValueId,
        feature: &Index,
    ) -> Result<()> {
        let first = cx.scalar_value(feature)?;
        let kernel = cx.offset(self.kernel.pointer, first, self.kernel.element_type.byte_size() as i64);
        let accumulator = self.plan.accumulator;
        let nothing = zero(cx, Type::vector(scalar_type(accumulator)?, self.lanes));
        let parts = if accumulator.is_complex() { 2 } else { 1 };
        let sums = self.taps(cx, 0, taps, Partial { input, kernel, sums: vec![nothing; parts] })?;
        let mut position = position.to_vec();
        position.push(feature.plus(&Index::lanes(i64::from(self.lanes > 1))));
        let value = Element::from_values(&sums);
        finish(cx, self.plan, &Position::Multi(position), self.lanes, value)
    }

    /// Emits loops over the taps from a dimension on.
    fn taps(
        &self,
        cx: &mut KernelContext<'_>,
        d: usize,
        taps: &[Taps],
        partial: Partial,
    ) -> Result<Vec<ValueId>> {
        let Some(&Taps { begin, end, start }) = taps.get(d) else { return self.inputs(cx, partial) };
        let window = self.plan.dims.spatial[d].window;
        let Partial { input, kernel, sums } = partial;
        cx.for_dynamic(begin, end, window.size, &sums, |cx, tap, sums| {
            let distance = cx.mul_constant(tap, window.window_dilation);
            let at = cx.add(start, distance);
            let kernel = cx.offset(kernel, tap, self.kernel.strides[d]);
            let sums = sums.to_vec();
            let stride = self.input.strides[d + 1];
            if window.base_dilation == 1 {
                let input = cx.offset(input, at, stride);
                return self.taps(cx, d + 1, taps, Partial { input, kernel, sums });
            }
            // A tap between two elements reads no input.
            let by = cx.index(window.base_dilation);
            let rest = cx.binary(BinaryOp::RemainderSigned, at, by);
            let nothing = cx.index(0);
            let is_element = cx.compare(Predicate::Equal, rest, nothing);
            let kept = sums.clone();
            cx.if_else(
                is_element,
                |cx| {
                    let by = cx.index(window.base_dilation);
                    let at = cx.binary(BinaryOp::DivideSigned, at, by);
                    let input = cx.offset(input, at, stride);
                    cx.scoped(|cx| self.taps(cx, d + 1, taps, Partial { input, kernel, sums }))
                },
                |_| Ok(kept),
            )
        })
    }

    /// Adds the products with the input features at one tap.
    fn inputs(&self, cx: &mut KernelContext<'_>, partial: Partial) -> Result<Vec<ValueId>> {
        let Partial { input, kernel, sums } = partial;
        let rank = self.kernel.strides.len();
        let (from, step) = (self.input.element_type, self.kernel.strides[rank - 2]);
        cx.for_range_carrying(0, self.plan.dims.inputs, 1, &sums, |cx, index, sums| {
            let number = cx.scalar_value(&index)?;
            let input = cx.offset(input, number, from.byte_size() as i64);
            let kernel = cx.offset(kernel, number, step);
            let left = load(cx, self.plan, from, input, 1)?.map(|v| splat(cx, v, self.lanes));
            let right = load(cx, self.plan, self.kernel.element_type, kernel, self.lanes)?;
            Ok(match (left, right) {
                // (x + y i)(u + v i) = (x u - y v) + (x v + y u) i
                (Element::Complex(x, y), Element::Complex(u, v)) => {
                    let minus = cx.unary(UnaryOp::Negate, y);
                    let real = cx.multiply_add(x, u, sums[0]);
                    let imaginary = cx.multiply_add(x, v, sums[1]);
                    vec![cx.multiply_add(minus, v, real), cx.multiply_add(y, u, imaginary)]
                }
                _ => vec![multiply_add(cx, left.real(), right.real(), sums[0])],
            })
        })
    }
}

/// Returns the taps of an output that lie between the first and the last element of the input.
fn taps_inside(b: &mut FunctionBuilder, d: &SpatialDimension, output: ValueId) -> Taps {
    let w = d.window;
    let extent = if d.input == 0 { 0 } else { (d.input - 1) * w.base_dilation + 1 };
    let start = b.mul_constant(output, w.stride);
    let start = b.add_constant(start, -w.padding_low);
    let nothing = b.index(0);
    let before = b.sub(nothing, start);
    let to_end = b.add_constant(before, extent);
    let begin = taps_before(b, before, w.window_dilation, w.size);
    let end = taps_before(b, to_end, w.window_dilation, w.size);
    Taps { begin, end, start }
}

/// Returns the number of taps before a distance from tap 0, at most `taps`.
fn taps_before(b: &mut FunctionBuilder, distance: ValueId, dilation: i64, taps: i64) -> ValueId {
    let zero = b.index(0);
    let is_negative = b.compare(Predicate::Less, distance, zero);
    let distance = b.select(is_negative, zero, distance);
    let last = b.add_constant(distance, dilation - 1);
    let by = b.index(dilation);
    let count = b.binary(BinaryOp::DivideSigned, last, by);
    let most = b.index(taps);
    let is_more = b.compare(Predicate::Greater, count, most);
    b.select(is_more, most, count)
}
