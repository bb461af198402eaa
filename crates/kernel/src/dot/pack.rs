//! Brings operands into the form that the loops want, in scratch, one product at a time.

use super::{Product, alignment, scalar_type, zero};
use crate::context::KernelContext;
use crate::element::{Element, decode, memory_type};
use crate::elemental::conversion;
use crate::index::Index;
use crate::ir::{FunctionBuilder, Type, ValueId};
use plan::{DotKind, DotPlan, Extent, Packing};
use shape::PrimitiveType;
use support::{Error, Result};

/// The address of a product's operand: the batch number taken apart along the batch dimensions.
pub(super) fn batch_pointer(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    pointer: ValueId,
    batch: &Index,
    extents: &[Extent],
    element_type: PrimitiveType,
) -> Result<ValueId> {
    let sizes: Vec<i64> = extents.iter().map(|e| e.size).collect();
    let indices = super::delinearised(b, cx, batch, &sizes)?;
    let position = indices.iter().zip(extents).fold(Index::default(), |sum, (i, e)| sum.plus(&i.times(e.stride)));
    let position = cx.scalar_value(b, &position)?;
    Ok(b.offset(pointer, position, element_type.byte_size() as i64))
}

/// Loads an element and converts it to the accumulator's type.
fn load(
    b: &mut FunctionBuilder,
    plan: &DotPlan,
    from: PrimitiveType,
    pointer: ValueId,
) -> Result<Element> {
    let ty = Type::scalar(memory_type(from));
    let part = ty.scalar.byte_size() as u32;
    let raw = b.load(ty, pointer, part);
    let element = if from.is_complex() {
        let imaginary = b.offset_bytes(pointer, i64::from(part));
        Element::Complex(raw, b.load(ty, imaginary, part))
    } else {
        Element::Real(decode(b, from, raw))
    };
    conversion::convert(b, from, plan.accumulator, element)
}

/// Packs what the plan says, and describes the product as the loops find it.
pub(super) fn product(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    mut product: Product,
) -> Result<Product> {
    let size = plan.accumulator.byte_size() as i64;
    let scratch = cx.scratch;
    let scratch = |what: &str| scratch.ok_or_else(|| Error::internal(format!("no scratch for {what}")));
    if plan.lhs_packing == Packing::Scratch {
        let to = scratch("the left operand")?;
        let outer = Dimension { extents: &plan.dims.rows, stride: plan.shape.k * size };
        let inner = Dimension { extents: &plan.dims.lhs_k, stride: size };
        copy(b, cx, plan, Matrix { from: product.lhs, element_type: plan.lhs_type, to, outer, inner })?;
        (product.lhs, product.lhs_row, product.lhs_k) = (to, plan.shape.k * size, size);
    }
    if plan.rhs_packing == Packing::Scratch {
        let to = scratch("the right operand")?;
        let to = b.offset_bytes(to, plan.lhs_scratch_bytes() as i64);
        if plan.kind == DotKind::Tiled {
            panels(b, cx, plan, product.rhs, to)?;
            product.panels(plan, to);
        } else {
            let outer = Dimension { extents: &plan.dims.columns, stride: plan.shape.k * size };
            let inner = Dimension { extents: &plan.dims.rhs_k, stride: size };
            copy(b, cx, plan, Matrix { from: product.rhs, element_type: plan.rhs_type, to, outer, inner })?;
            (product.rhs, product.rhs_column, product.rhs_k) = (to, plan.shape.k * size, size);
        }
    }
    Ok(product)
}

/// Dimensions of the source that become one dimension of the copy.
#[derive(Clone, Copy)]
struct Dimension<'p> {
    extents: &'p [Extent],
    /// Bytes between neighbours in the copy.
    stride: i64,
}

/// A matrix and its copy.
#[derive(Clone, Copy)]
struct Matrix<'p> {
    from: ValueId,
    element_type: PrimitiveType,
    to: ValueId,
    outer: Dimension<'p>,
    inner: Dimension<'p>,
}

/// Copies a matrix element by element, converting.
fn copy(b: &mut FunctionBuilder, cx: &mut KernelContext<'_>, plan: &DotPlan, matrix: Matrix<'_>) -> Result<()> {
    let element_size = matrix.element_type.byte_size() as i64;
    let start = Index::default();
    walk(b, cx, matrix.outer.extents, matrix.from, &start, element_size, &mut |b, cx, from, position| {
        let to = b.offset(matrix.to, position, matrix.outer.stride);
        walk(b, cx, matrix.inner.extents, from, &start, element_size, &mut |b, _, from, position| {
            let to = b.offset(to, position, matrix.inner.stride);
            let part = plan.accumulator.real_part().byte_size() as i64;
            let element = load(b, plan, matrix.element_type, from)?;
            for (k, value) in element.values().into_iter().enumerate() {
                let to = b.offset_bytes(to, k as i64 * part);
                b.store(value, to, part as u32);
            }
            Ok(())
        })
    })
}

type Visit<'v> = &'v mut dyn FnMut(&mut FunctionBuilder, &mut KernelContext<'_>, ValueId, ValueId) -> Result<()>;

/// Visits the elements along some dimensions: their addresses, and their positions in row-major order.
fn walk(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    extents: &[Extent],
    from: ValueId,
    position: &Index,
    element_size: i64,
    visit: Visit<'_>,
) -> Result<()> {
    let Some((extent, rest)) = extents.split_first() else {
        let position = cx.scalar_value(b, position)?;
        return visit(b, cx, from, position);
    };
    let inner: i64 = rest.iter().map(|e| e.size).product();
    cx.for_range(b, 0, extent.size, 1, |cx, b, index| {
        let value = cx.scalar_value(b, &index)?;
        let from = b.offset(from, value, extent.stride * element_size);
        walk(b, cx, rest, from, &position.plus(&index.times(inner)), element_size, visit)
    })
}

/// Copies the right operand into panels `[n / columns][k][columns]`, zeros behind the last column.
fn panels(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    from: ValueId,
    to: ValueId,
) -> Result<()> {
    let is_plain = plan.rhs_type == plan.accumulator && plan.dims.rhs_is_strided();
    if is_plain && plan.dims.rhs_n_stride() == 1 {
        return panels_of_rows(b, cx, plan, from, to);
    }
    let size = plan.accumulator.byte_size() as i64;
    let (columns, k) = (plan.tile.columns(), plan.shape.k);
    if plan.padded_columns() != plan.shape.n {
        let last = b.index((plan.padded_columns() / columns - 1) * k * columns);
        let last = b.offset(to, last, size);
        let byte = b.integer(Type::scalar(crate::ir::ScalarType::I8), 0);
        let bytes = b.index(k * columns * size);
        b.fill_bytes(last, byte, bytes);
    }
    let element_size = plan.rhs_type.byte_size() as i64;
    let start = Index::default();
    walk(b, cx, &plan.dims.columns, from, &start, element_size, &mut |b, cx, from, column| {
        let (panel, within) = cx.div_rem(b, &Index::scalar(column), columns)?;
        let to_element = cx.scalar_value(b, &panel.times(k * columns).plus(&within))?;
        let to = b.offset(to, to_element, size);
        walk(b, cx, &plan.dims.rhs_k, from, &start, element_size, &mut |b, _, from, k| {
            let to = b.offset(to, k, columns * size);
            let element = load(b, plan, plan.rhs_type, from)?;
            b.store(element.real(), to, alignment(plan.accumulator));
            Ok(())
        })
    })
}

/// The same for rows of contiguous columns, a vector at a time.
fn panels_of_rows(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    from: ValueId,
    to: ValueId,
) -> Result<()> {
    let size = plan.accumulator.byte_size() as i64;
    let (columns, n, k) = (plan.tile.columns(), plan.shape.n, plan.shape.k);
    let ty = Type::vector(scalar_type(plan.accumulator)?, plan.tile.lanes);
    let vector_bytes = (i64::from(plan.tile.lanes) * size).min(64) as u32;
    let row_stride = plan.dims.rhs_k_stride() * size;
    cx.for_range(b, 0, n / columns, 1, |cx, b, panel| {
        let panel = cx.scalar_value(b, &panel)?;
        let from = b.offset(from, panel, columns * size);
        let to = b.offset(to, panel, k * columns * size);
        cx.for_range(b, 0, k, 1, |cx, b, row| {
            let row = cx.scalar_value(b, &row)?;
            let from = b.offset(from, row, row_stride);
            let to = b.offset(to, row, columns * size);
            for vector in 0..i64::from(plan.tile.vectors) {
                let offset = vector * i64::from(plan.tile.lanes) * size;
                let (from, to) = (b.offset_bytes(from, offset), b.offset_bytes(to, offset));
                let value = b.load(ty, from, alignment(plan.accumulator));
                b.store(value, to, vector_bytes);
            }
            Ok(())
        })
    })?;
    let rest = n % columns;
    let from = b.offset_bytes(from, (n - rest) * size);
    let to = b.offset_bytes(to, n / columns * k * columns * size);
    let scalar = Type::scalar(ty.scalar);
    let rows = if rest == 0 { 0 } else { k };
    cx.for_range(b, 0, rows, 1, |cx, b, row| {
        let row = cx.scalar_value(b, &row)?;
        let from = b.offset(from, row, row_stride);
        let to = b.offset(to, row, columns * size);
        cx.for_range(b, 0, rest, 1, |cx, b, column| {
            let column = cx.scalar_value(b, &column)?;
            let (from, to) = (b.offset(from, column, size), b.offset(to, column, size));
            let value = b.load(scalar, from, size as u32);
            b.store(value, to, size as u32);
            Ok(())
        })?;
        let nothing = zero(b, scalar);
        cx.for_range(b, rest, columns, 1, |cx, b, column| {
            let column = cx.scalar_value(b, &column)?;
            let to = b.offset(to, column, size);
            b.store(nothing, to, size as u32);
            Ok(())
        })
    })
}
