//! Products of complex matrices, one result after another.

use super::{DotElement, DotSurroundings, Product, scalar_type, zero};
use crate::ir::{FunctionBuilder, Type, UnaryOp, ValueId};
use plan::DotPlan;
use support::Result;

/// Emits the loops of one product.
pub(super) fn emit(
    b: &mut FunctionBuilder,
    plan: &DotPlan,
    product: &Product,
    surroundings: &mut dyn DotSurroundings,
) -> Result<()> {
    let ty = Type::scalar(scalar_type(plan.accumulator)?);
    let part = ty.scalar.byte_size() as i64;
    let (start, rows) = (b.index(0), b.index(plan.shape.m));
    b.for_each(start, rows, 1, |b, row| {
        let lhs = b.offset(product.lhs, row, product.lhs_row);
        let (start, columns) = (b.index(0), b.index(plan.shape.n));
        b.for_each(start, columns, 1, |b, column| {
            let rhs = b.offset(product.rhs, column, product.rhs_column);
            let (start, end) = (b.index(0), b.index(plan.shape.k));
            let nothing = zero(b, ty);
            let values = b.for_carrying(start, end, 1, &[nothing, nothing], |b, index, sums| {
                let left = b.offset(lhs, index, product.lhs_k);
                let right = b.offset(rhs, index, product.rhs_k);
                let mut parts = [left, right].map(|pointer| {
                    let imaginary = b.offset_bytes(pointer, part);
                    (b.load(ty, pointer, part as u32), b.load(ty, imaginary, part as u32))
                });
                let [(a, i), (c, d)] = &mut parts;
                // (a + i j)(c + d j) = (a c - i d) + (a d + i c) j
                let minus = b.unary(UnaryOp::Negate, *i);
                let real = b.multiply_add(*a, *c, sums[0]);
                let real = b.multiply_add(minus, *d, real);
                let imaginary = b.multiply_add(*a, *d, sums[1]);
                let imaginary = b.multiply_add(*i, *c, imaginary);
                Ok(vec![real, imaginary])
            })?;
            let element = DotElement { batch: product.batch, row, column, lanes: 1, values };
            surroundings.finish(b, &element)
        })
    })
}
