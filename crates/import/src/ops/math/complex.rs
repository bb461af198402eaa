//! Complex numbers and their parts.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use hlo::{InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Complex", |cx| cx.binary(Op::Complex {})).types("T", COMPLEX_PARTS),
    rule("Real", |cx| cx.unary(Op::Real {})).types("T", COMPLEX),
    rule("Imag", |cx| cx.unary(Op::Imag {})).types("T", COMPLEX),
    rule("ComplexAbs", |cx| cx.unary(Op::Abs {})).types("T", COMPLEX),
    rule("Conj", conj).types("T", COMPLEX),
    rule("Angle", angle).types("T", COMPLEX),
];

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
