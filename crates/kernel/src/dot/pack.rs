//! Brings operands into the form that the loops want, in scratch, one product at a time.

use super::{DotSurroundings, Product, alignment, scalar_type, zero};
use crate::ir::{FunctionBuilder, Type, ValueId};
use plan::{DotKind, DotPlan, Extent, Packing};
use shape::PrimitiveType;
use support::{Error, Result};

/// The address of a product's operand: the batch number taken apart along the batch dimensions.
pub(super) fn batch_pointer(
    b: &mut FunctionBuilder,
    pointer: ValueId,
    batch: ValueId,
    extents: &[Extent],
    element_type: PrimitiveType,
) -> ValueId {
    let size = element_type.byte_size() as i64;
    let (mut pointer, mut rest) = (pointer, batch);
    for (position, extent) in extents.iter().enumerate().rev() {
        let index = if position == 0 {
            rest
        } else {
            let divisor = b.index(extent.size);
            let index = b.binary(crate::ir::BinaryOp::RemainderSigned, rest, divisor);
            rest = b.binary(crate::ir::BinaryOp::DivideSigned, rest, divisor);
            index
        };
        pointer = b.offset(pointer, index, extent.stride * size);
    }
    pointer
}

/// Packs what the plan says, and describes the product as the loops find it.
pub(super) fn product(
    b: &mut FunctionBuilder,
    plan: &DotPlan,
    mut product: Product,
    scratch: Option<ValueId>,
    surroundings: &mut dyn DotSurroundings,
) -> Result<Product> {
    let size = plan.accumulator.byte_size() as i64;
    let scratch = |what: &str| scratch.ok_or_else(|| Error::internal(format!("no scratch for {what}")));
    if plan.lhs_packing == Packing::Scratch {
        let to = scratch("the left operand")?;
        let outer = Destination { extents: &plan.dims.rows, stride: plan.shape.k * size };
        let inner = Destination { extents: &plan.dims.lhs_k, stride: size };
        copy(b, plan, (product.lhs, plan.lhs_type), to, outer, inner, surroundings)?;
        (product.lhs, product.lhs_row, product.lhs_k) = (to, plan.shape.k * size, size);
    }
    if plan.rhs_packing == Packing::Scratch {
        let to = scratch("the right operand")?;
        let to = b.offset_bytes(to, plan.lhs_scratch_bytes() as i64);
        if plan.kind == DotKind::Tiled {
            panels(b, plan, (product.rhs, plan.rhs_type), to, surroundings)?;
            product.panels(plan, to);
        } else {
            let outer = Destination { extents: &plan.dims.columns, stride: plan.shape.k * size };
            let inner = Destination { extents: &plan.dims.rhs_k, stride: size };
            copy(b, plan, (product.rhs, plan.rhs_type), to, outer, inner, surroundings)?;
            (product.rhs, product.rhs_column, product.rhs_k) = (to, plan.shape.k * size, size);
        }
    }
    Ok(product)
}

/// Dimensions of the source that become one dimension of the copy.
#[derive(Clone, Copy)]
struct Destination<'p> {
    extents: &'p [Extent],
    /// Bytes between neighbours in the copy.
    stride: i64,
}

/// Copies a matrix element by element, converting.
fn copy(
    b: &mut FunctionBuilder,
    plan: &DotPlan,
    (from, from_type): (ValueId, PrimitiveType),
    to: ValueId,
    outer: Destination<'_>,
    inner: Destination<'_>,
    surroundings: &mut dyn DotSurroundings,
) -> Result<()> {
    let element_size = from_type.byte_size() as i64;
    let start = b.index(0);
    walk(b, outer.extents, from, start, element_size, &mut |b, from, position| {
        let to = b.offset(to, position, outer.stride);
        let start = b.index(0);
        walk(b, inner.extents, from, start, element_size, &mut |b, from, position| {
            let to = b.offset(to, position, inner.stride);
            let values = surroundings.load(b, from_type, from)?;
            let part = plan.accumulator.real_part().byte_size() as i64;
            for (k, value) in values.into_iter().enumerate() {
                let to = b.offset_bytes(to, k as i64 * part);
                b.store(value, to, part as u32);
            }
            Ok(())
        })
    })
}

type Visit<'v> = &'v mut dyn FnMut(&mut FunctionBuilder, ValueId, ValueId) -> Result<()>;

/// Visits the elements along some dimensions: their addresses, and their positions in row-major order.
fn walk(
    b: &mut FunctionBuilder,
    extents: &[Extent],
    from: ValueId,
    position: ValueId,
    element_size: i64,
    visit: Visit<'_>,
) -> Result<()> {
    let Some((extent, rest)) = extents.split_first() else { return visit(b, from, position) };
    let (zero, end) = (b.index(0), b.index(extent.size));
    let inner: i64 = rest.iter().map(|e| e.size).product();
    b.for_each(zero, end, 1, |b, index| {
        let from = b.offset(from, index, extent.stride * element_size);
        let step = b.mul_constant(index, inner);
        let position = b.add(position, step);
        walk(b, rest, from, position, element_size, visit)
    })
}

/// Copies the right operand into panels `[n / columns][k][columns]`, zeros behind the last column.
fn panels(
    b: &mut FunctionBuilder,
    plan: &DotPlan,
    (from, from_type): (ValueId, PrimitiveType),
    to: ValueId,
    surroundings: &mut dyn DotSurroundings,
) -> Result<()> {
    let is_plain = from_type == plan.accumulator && plan.dims.rhs_is_strided();
    if is_plain && plan.dims.rhs_n_stride() == 1 {
        return panels_of_rows(b, plan, from, to);
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
    let element_size = from_type.byte_size() as i64;
    let start = b.index(0);
    walk(b, &plan.dims.columns, from, start, element_size, &mut |b, from, column| {
        let divisor = b.index(columns);
        let panel = b.binary(crate::ir::BinaryOp::DivideSigned, column, divisor);
        let within = b.binary(crate::ir::BinaryOp::RemainderSigned, column, divisor);
        let to = b.offset(to, panel, k * columns * size);
        let to = b.offset(to, within, size);
        let start = b.index(0);
        walk(b, &plan.dims.rhs_k, from, start, element_size, &mut |b, from, k| {
            let to = b.offset(to, k, columns * size);
            let values = surroundings.load(b, from_type, from)?;
            b.store(values[0], to, alignment(plan.accumulator));
            Ok(())
        })
    })
}

/// The same for rows of contiguous columns, a vector at a time.
fn panels_of_rows(b: &mut FunctionBuilder, plan: &DotPlan, from: ValueId, to: ValueId) -> Result<()> {
    let size = plan.accumulator.byte_size() as i64;
    let (columns, n, k) = (plan.tile.columns(), plan.shape.n, plan.shape.k);
    let ty = Type::vector(scalar_type(plan.accumulator)?, plan.tile.lanes);
    let vector_bytes = (i64::from(plan.tile.lanes) * size).min(64) as u32;
    let row_stride = plan.dims.rhs_k_stride() * size;
    let (start, full) = (b.index(0), b.index(n / columns));
    b.for_each(start, full, 1, |b, panel| {
        let from = b.offset(from, panel, columns * size);
        let to = b.offset(to, panel, k * columns * size);
        let (start, end) = (b.index(0), b.index(k));
        b.for_each(start, end, 1, |b, row| {
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
    if rest == 0 {
        return Ok(());
    }
    let from = b.offset_bytes(from, (n - rest) * size);
    let to = b.offset_bytes(to, n / columns * k * columns * size);
    let scalar = Type::scalar(ty.scalar);
    let (start, end) = (b.index(0), b.index(k));
    b.for_each(start, end, 1, |b, row| {
        let from = b.offset(from, row, row_stride);
        let to = b.offset(to, row, columns * size);
        let (start, end) = (b.index(0), b.index(rest));
        b.for_each(start, end, 1, |b, column| {
            let (from, to) = (b.offset(from, column, size), b.offset(to, column, size));
            let value = b.load(scalar, from, size as u32);
            b.store(value, to, size as u32);
            Ok(())
        })?;
        let (start, end) = (b.index(rest), b.index(columns));
        let nothing = zero(b, scalar);
        b.for_each(start, end, 1, |b, column| {
            let to = b.offset(to, column, size);
            b.store(nothing, to, size as u32);
            Ok(())
        })
    })
}
