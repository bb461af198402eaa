//! Products of complex matrices, one result after another.

use super::{DotElement, Part, Product, finish};
use crate::context::KernelContext;
use crate::contraction::tile::{scalar_type, zero};
use crate::element::Element;
use nest::{FunctionBuilder, Type, UnaryOp};
use plan::DotPlan;
use support::Result;

/// Emits the loops of one product.
pub(super) fn emit(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    product: &Product,
    task: Part,
) -> Result<()> {
    let ty = Type::scalar(scalar_type(plan.accumulator)?);
    let part = ty.scalar.byte_size() as i64;
    cx.for_span(b, task.rows, 1, |cx, b, row| {
        let lhs = product.row(b, cx, &row)?;
        cx.for_range(b, 0, plan.shape.n, 1, |cx, b, column| {
            let number = cx.scalar_value(b, &column)?;
            let rhs = b.offset(product.rhs, number, product.rhs_column);
            let nothing = zero(b, ty);
            let sums =
                cx.for_range_carrying(b, (0, plan.shape.k, 1), &[nothing, nothing], |cx, b, index, sums| {
                    let index = cx.scalar_value(b, &index)?;
                    let left = b.offset(lhs, index, product.lhs_k);
                    let right = b.offset(rhs, index, product.rhs_k);
                    let [(x, y), (u, v)] = [left, right].map(|pointer| {
                        let imaginary = b.offset_bytes(pointer, part);
                        (b.load(ty, pointer, part as u32), b.load(ty, imaginary, part as u32))
                    });
                    // (x + y i)(u + v i) = (x u - y v) + (x v + y u) i
                    let minus = b.unary(UnaryOp::Negate, y);
                    let real = b.multiply_add(x, u, sums[0]);
                    let real = b.multiply_add(minus, v, real);
                    let imaginary = b.multiply_add(x, v, sums[1]);
                    let imaginary = b.multiply_add(y, u, imaginary);
                    Ok(vec![real, imaginary])
                })?;
            let (batch, row) = (product.batch.clone(), row.clone());
            let value = Element::Complex(sums[0], sums[1]);
            finish(b, cx, plan, DotElement { batch, row, column, lanes: 1, value })
        })
    })
}
