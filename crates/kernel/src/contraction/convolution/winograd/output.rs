//! The end of a register tile: products are transformed to pixels, which are passed to the
//! epilogue.

use super::super::finish;
use super::image::inside;
use super::{Nest, Patch, least, transform};
use crate::context::KernelContext;
use crate::contraction::tile::Columns;
use crate::element::Element;
use crate::index::{Facts, Index, Position};
use nest::{Predicate, ScalarType, Type, ValueId};
use support::Result;

impl Nest<'_> {
    /// Computes the pixels of a patch, which is a row of the register tile, and passes them to the
    /// epilogue.
    pub(super) fn output(
        &self,
        cx: &mut KernelContext<'_>,
        number: ValueId,
        row: ValueId,
        column: &Index,
        parts: &[Columns],
    ) -> Result<()> {
        let scratch = self.winograd.scratch;
        let n = self.winograd.transform.size();
        let patch = self.patch(cx, number)?;
        let [lines, columns] = [0, 1].map(|d| self.dims.spatial[d].output);
        let pixel = self.first_pixel(cx, &patch);
        let products = cx.offset_bytes(self.scratch, scratch.products);
        let products = cx.offset(products, row, scratch.product_row);
        for &part in parts {
            let values = transform::output(cx, self.winograd.transform.output, &mut |b, row, column| {
                let frequency = row as i64 * n + column as i64;
                let at = frequency * scratch.product_frequency + part.offset * self.size();
                let pointer = b.offset_bytes(products, at);
                Ok(b.load(Type::vector(self.scalar, part.lanes), pointer, self.alignment(part)))
            })?;
            let values = self.unscaled(cx, values);
            if !self.may_leave_output() {
                self.hand_over_all(cx, pixel, column, part, &values)?;
                continue;
            }
            let m = self.winograd.transform.outputs;
            let inside = [0, 1].map(|d| inside(cx, patch.outputs[d], [lines, columns][d], m));
            let is_inside = cx.and(inside[0], inside[1]);
            cx.when(is_inside, |cx| self.hand_over_all(cx, pixel, column, part, &values))?;
            let no = cx.integer(Type::scalar(ScalarType::Bool), 0);
            let is_outside = cx.compare(Predicate::Equal, is_inside, no);
            cx.when(is_outside, |cx| self.hand_over_some(cx, pixel, patch.outputs, column, part, &values))?;
        }
        Ok(())
    }

    /// Returns the number of a patch's first pixel.
    fn first_pixel(&self, cx: &mut KernelContext<'_>, patch: &Patch) -> ValueId {
        let [lines, columns] = [0, 1].map(|d| self.dims.spatial[d].output);
        let line = cx.mul_constant(patch.image, lines);
        let line = cx.add(line, patch.outputs[0]);
        let pixel = cx.mul_constant(line, columns);
        let pixel = cx.add(pixel, patch.outputs[1]);
        cx.learn(pixel, Facts::range(0, self.dims.batch * lines * columns - 1));
        pixel
    }

    /// Prefetches the arrays that the epilogue of a patch reads and writes.
    pub(super) fn fetch(
        &self,
        cx: &mut KernelContext<'_>,
        number: ValueId,
        column: &Index,
        parts: &[Columns],
    ) -> Result<()> {
        let patch = self.patch(cx, number)?;
        let pixel = self.first_pixel(cx, &patch);
        let (m, columns) = (self.winograd.transform.outputs, self.dims.spatial[1].output);
        (0..m * m).try_for_each(|k| {
            let at = Index::scalar(pixel).plus_constant(k / m * columns + k % m);
            self.streams.fetch(cx, &at.times(self.dims.outputs).plus(column), parts)
        })
    }

    /// Passes all pixels of a patch to the epilogue.
    fn hand_over_all(
        &self,
        cx: &mut KernelContext<'_>,
        pixel: ValueId,
        column: &Index,
        part: Columns,
        values: &[Vec<ValueId>],
    ) -> Result<()> {
        let columns = self.dims.spatial[1].output;
        for (row, values) in values.iter().enumerate() {
            for (k, &value) in values.iter().enumerate() {
                let at = Index::scalar(pixel).plus_constant(row as i64 * columns + k as i64);
                self.hand_over(cx, &at, column, part, value)?;
            }
        }
        Ok(())
    }

    /// Passes those pixels of a patch to the epilogue that are inside the output.
    fn hand_over_some(
        &self,
        cx: &mut KernelContext<'_>,
        pixel: ValueId,
        first: [ValueId; 2],
        column: &Index,
        part: Columns,
        values: &[Vec<ValueId>],
    ) -> Result<()> {
        let m = self.winograd.transform.outputs;
        let vector = i64::from(part.lanes) * self.size();
        let border = cx.offset_bytes(self.scratch, self.winograd.scratch.border);
        for (k, &value) in values.iter().flatten().enumerate() {
            let pointer = cx.offset_bytes(border, k as i64 * vector);
            cx.store(value, pointer, self.alignment(part));
        }
        let [lines, columns] = [0, 1].map(|d| self.dims.spatial[d].output);
        let [rows, wide] = [(0, lines), (1, columns)].map(|(d, extent)| {
            let (all, whole) = (cx.index(extent), cx.index(m));
            let left = cx.sub(all, first[d]);
            least(cx, left, whole)
        });
        let zero = cx.index(0);
        cx.for_dynamic(zero, rows, m, &[], |cx, row, _| {
            cx.for_dynamic(zero, wide, m, &[], |cx, k, _| {
                let (line, number) = (cx.mul_constant(row, columns), cx.mul_constant(row, m));
                let (at, number) = (cx.add(line, k), cx.add(number, k));
                let at = cx.add(pixel, at);
                cx.learn(at, Facts::range(0, self.dims.batch * lines * columns - 1));
                let pointer = cx.offset(border, number, vector);
                let value = cx.load(Type::vector(self.scalar, part.lanes), pointer, self.alignment(part));
                self.hand_over(cx, &Index::scalar(at), column, part, value).map(|()| Vec::new())
            })
        })
        .map(|_| ())
    }

    /// Passes some features of a pixel to the epilogue.
    pub(super) fn hand_over(
        &self,
        cx: &mut KernelContext<'_>,
        pixel: &Index,
        column: &Index,
        part: Columns,
        value: ValueId,
    ) -> Result<()> {
        let at = pixel.times(self.dims.outputs).plus(column);
        part.pieces(cx, value, |cx, offset, lanes, value| {
            let at = at.plus_constant(offset).plus(&Index::lanes(i64::from(lanes > 1)));
            finish(cx, self.plan, &Position::Linear(at), lanes, Element::Real(value))
        })
    }
}
