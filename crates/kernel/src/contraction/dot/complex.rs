//! Products of complex matrices, one result after another.

use super::{DotElement, Part, Product, finish};
use crate::context::KernelContext;
use crate::contraction::tile::{scalar_type, zero};
use crate::element::Element;
use nest::{Type, UnaryOp};
use plan::DotPlan;
use support::Result;

/// Emits the loops of one product.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    product: &Product,
    task: Part<'_>,
) -> Result<()> {
    let ty = Type::scalar(scalar_type(plan.accumulator)?);
    let part = ty.scalar.byte_size() as i64;
    cx.for_span(task.rows.span, 1, |cx, row| {
        let lhs = product.row(cx, &row)?;
        cx.for_range(0, plan.shape.n, 1, |cx, column| {
            let number = cx.scalar_value(&column)?;
            let rhs = cx.offset(product.rhs, number, product.rhs_column);
            let nothing = zero(cx, ty);
            let sums =
                cx.for_range_carrying(0, plan.shape.k, 1, &[nothing, nothing], |cx, index, sums| {
                    let index = cx.scalar_value(&index)?;
                    let left = cx.offset(lhs, index, product.lhs_k);
                    let right = cx.offset(rhs, index, product.rhs_k);
                    let [(x, y), (u, v)] = [left, right].map(|pointer| {
                        let imaginary = cx.offset_bytes(pointer, part);
                        (cx.load(ty, pointer, part as u32), cx.load(ty, imaginary, part as u32))
                    });
                    // (x + y i)(u + v i) = (x u - y v) + (x v + y u) i
                    let minus = cx.unary(UnaryOp::Negate, y);
                    let real = cx.multiply_add(x, u, sums[0]);
                    let real = cx.multiply_add(minus, v, real);
                    let imaginary = cx.multiply_add(x, v, sums[1]);
                    let imaginary = cx.multiply_add(y, u, imaginary);
                    Ok(vec![real, imaginary])
                })?;
            let (batch, row) = (product.batch.clone(), row.clone());
            let value = Element::Complex(sums[0], sums[1]);
            finish(cx, plan, DotElement { batch, row, column, lanes: 1, value })
        })
    })
}
