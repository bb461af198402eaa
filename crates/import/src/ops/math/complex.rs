//! Complex numbers and their parts.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use hlo::{InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Complex", |cx| result(cx, |cx| cx.binary(Op::Complex {}))).types("T", COMPLEX_PARTS),
    rule("Real", |cx| result(cx, |cx| cx.unary(Op::Real {}))).types("T", COMPLEX),
    rule("Imag", |cx| result(cx, |cx| cx.unary(Op::Imag {}))).types("T", COMPLEX),
    rule("ComplexAbs", |cx| result(cx, |cx| cx.unary(Op::Abs {}))).types("T", COMPLEX),
    rule("Conj", conj).types("T", COMPLEX),
    rule("Angle", |cx| result(cx, angle)).types("T", COMPLEX),
];

/// Checks that `Tout` is the type of the result, which follows from `T`. TensorFlow has no kernels
/// for other pairs of types.
fn result(
    cx: &mut NodeContext<'_, '_>,
    compute: impl FnOnce(&mut NodeContext<'_, '_>) -> Result<InstructionId>,
) -> Result<InstructionId> {
    let result = compute(cx)?;
    let (got, stated) = (cx.element_type(result), cx.output_type(0)?);
    cx.check(got == stated, || {
        format!("Tout is {stated}, but the result for this T is {got}: correct Tout")
    })?;
    Ok(result)
}

/// `re - i im`.
fn conj(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    cx.conjugate(x)
}

/// `Angle(x) = atan2(im, re)`.
fn angle(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (re, im) = cx.parts(x)?;
    cx.op(Op::Atan2 {}, &[im, re])
}
