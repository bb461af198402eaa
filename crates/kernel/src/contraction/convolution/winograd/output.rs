//! The end of a register tile: products become pixels, which what follows takes.

use super::super::finish;
use super::image::inside;
use super::{Nest, Patch, least, transform};
use crate::context::KernelContext;
use crate::contraction::tile::Columns;
use crate::element::Element;
use crate::index::{Facts, Index, Position};
use nest::{FunctionBuilder, Predicate, ScalarType, Type, ValueId};
use support::Result;

impl Nest<'_> {
    /// Makes the pixels of a patch, which is a row of the register tile, and hands them over.
    pub(super) fn output(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        (number, row): (ValueId, ValueId),
        column: &Index,
        parts: &[Columns],
    ) -> Result<()> {
        let scratch = self.winograd.scratch;
        let n = self.winograd.transform.size();
        let patch = self.patch(b, cx, number)?;
        let [lines, columns] = [0, 1].map(|d| self.dims.spatial[d].output);
        let pixel = self.first_pixel(b, cx, &patch);
        let products = b.offset_bytes(self.scratch, scratch.products);
        let products = b.offset(products, row, scratch.product_row);
        for &part in parts {
            let values = transform::output(b, self.winograd.transform.output, &mut |b, row, column| {
                let frequency = row as i64 * n + column as i64;
                let at = frequency * scratch.product_frequency + part.offset * self.size();
                let pointer = b.offset_bytes(products, at);
                Ok(b.load(Type::vector(self.scalar, part.lanes), pointer, self.alignment(part)))
            })?;
            if !self.may_leave_output() {
                self.hand_over_all(b, cx, pixel, column, part, &values)?;
                continue;
            }
            let m = self.winograd.transform.outputs;
            let inside = [0, 1].map(|d| inside(b, patch.outputs[d], [lines, columns][d], m));
            let is_inside = b.and(inside[0], inside[1]);
            cx.if_then(b, is_inside, |cx, b| self.hand_over_all(b, cx, pixel, column, part, &values))?;
            let no = b.integer(Type::scalar(ScalarType::Bool), 0);
            let is_outside = b.compare(Predicate::Equal, is_inside, no);
            cx.if_then(b, is_outside, |cx, b| {
                self.hand_over_some(b, cx, (pixel, patch.outputs), column, part, &values)
            })?;
        }
        Ok(())
    }

    /// The number of a patch's first pixel.
    fn first_pixel(&self, b: &mut FunctionBuilder, cx: &mut KernelContext<'_>, patch: &Patch) -> ValueId {
        let [lines, columns] = [0, 1].map(|d| self.dims.spatial[d].output);
        let line = b.mul_constant(patch.image, lines);
        let line = b.add(line, patch.outputs[0]);
        let pixel = b.mul_constant(line, columns);
        let pixel = b.add(pixel, patch.outputs[1]);
        cx.facts.insert(pixel, Facts::range(0, self.dims.batch * lines * columns - 1));
        pixel
    }

    /// Asks for what the end of a patch will read and write.
    pub(super) fn fetch(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        number: ValueId,
        column: &Index,
        parts: &[Columns],
    ) -> Result<()> {
        let patch = self.patch(b, cx, number)?;
        let pixel = self.first_pixel(b, cx, &patch);
        let (m, columns) = (self.winograd.transform.outputs, self.dims.spatial[1].output);
        (0..m * m).try_for_each(|k| {
            let at = Index::scalar(pixel).plus_constant(k / m * columns + k % m);
            self.streams.fetch(b, cx, &at.times(self.dims.outputs).plus(column), parts)
        })
    }

    /// Hands over all pixels of a patch.
    fn hand_over_all(
        &self,
        b: &mut FunctionBuilder,
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
                self.hand_over(b, cx, &at, column, part, value)?;
            }
        }
        Ok(())
    }

    /// Hands over the pixels of a patch that exist.
    fn hand_over_some(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        (pixel, first): (ValueId, [ValueId; 2]),
        column: &Index,
        part: Columns,
        values: &[Vec<ValueId>],
    ) -> Result<()> {
        let m = self.winograd.transform.outputs;
        let vector = i64::from(part.lanes) * self.size();
        let border = b.offset_bytes(self.scratch, self.winograd.scratch.border);
        for (k, &value) in values.iter().flatten().enumerate() {
            let pointer = b.offset_bytes(border, k as i64 * vector);
            b.store(value, pointer, self.alignment(part));
        }
        let [lines, columns] = [0, 1].map(|d| self.dims.spatial[d].output);
        let [rows, wide] = [(0, lines), (1, columns)].map(|(d, extent)| {
            let (all, whole) = (b.index(extent), b.index(m));
            let left = b.sub(all, first[d]);
            least(b, left, whole)
        });
        let zero = b.index(0);
        cx.for_dynamic(b, zero, rows, m, &[], |cx, b, row, _| {
            cx.for_dynamic(b, zero, wide, m, &[], |cx, b, k, _| {
                let (line, number) = (b.mul_constant(row, columns), b.mul_constant(row, m));
                let (at, number) = (b.add(line, k), b.add(number, k));
                let at = b.add(pixel, at);
                cx.facts.insert(at, Facts::range(0, self.dims.batch * lines * columns - 1));
                let pointer = b.offset(border, number, vector);
                let value = b.load(Type::vector(self.scalar, part.lanes), pointer, self.alignment(part));
                self.hand_over(b, cx, &Index::scalar(at), column, part, value).map(|()| Vec::new())
            })
        })
        .map(|_| ())
    }

    /// Hands over some features of a pixel.
    fn hand_over(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        pixel: &Index,
        column: &Index,
        part: Columns,
        value: ValueId,
    ) -> Result<()> {
        let at = pixel.times(self.dims.outputs).plus(column);
        part.pieces(b, value, |b, offset, lanes, value| {
            let at = at.plus_constant(offset).plus(&Index::lanes(i64::from(lanes > 1)));
            finish(b, cx, self.plan, &Position::Linear(at), lanes, Element::Real(value))
        })
    }
}
