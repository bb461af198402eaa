//! Special functions. `f32` is computed in `f64` and narrower types in at least `f32`, so that each
//! result is rounded once.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use ::composite::{Expression, special};
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Lgamma", |cx| unary_of_double(cx, special::lgamma_near_roots, special::lgamma)).types("T", FLOATS),
    rule("Digamma", |cx| unary_of_double(cx, special::digamma_near_roots, special::digamma))
        .types("T", FLOATS),
    rule("Erf", |cx| cx.unary(Op::Erf {})).types("T", FLOATS),
    rule("Erfc", erfc).types("T", FLOATS),
    rule("Erfinv", |cx| unary(cx, special::erf_inv)).types("T", FLOATS),
    rule("Ndtri", ndtri).types("T", FLOATS),
    rule("BesselI0", |cx| unary(cx, special::bessel_i0)).types("T", FLOATS),
    rule("BesselI0e", |cx| unary(cx, special::bessel_i0e)).types("T", FLOATS),
    rule("BesselI1", |cx| unary(cx, special::bessel_i1)).types("T", FLOATS),
    rule("BesselI1e", |cx| unary(cx, special::bessel_i1e)).types("T", FLOATS),
    rule("BesselK0", |cx| unary(cx, special::bessel_k0)).types("T", FLOATS),
    rule("BesselK0e", |cx| unary(cx, special::bessel_k0e)).types("T", FLOATS),
    rule("BesselK1", |cx| unary(cx, special::bessel_k1)).types("T", FLOATS),
    rule("BesselK1e", |cx| unary(cx, special::bessel_k1e)).types("T", FLOATS),
    rule("BesselJ0", |cx| unary(cx, special::bessel_j0)).types("T", FLOATS),
    rule("BesselJ1", |cx| unary(cx, special::bessel_j1)).types("T", FLOATS),
    rule("BesselY0", |cx| unary(cx, special::bessel_y0)).types("T", FLOATS),
    rule("BesselY1", |cx| unary(cx, special::bessel_y1)).types("T", FLOATS),
    rule("Dawsn", |cx| unary(cx, special::dawsn)).types("T", FLOATS),
    rule("Expint", |cx| unary(cx, special::expint)).types("T", FLOATS),
    rule("FresnelCos", |cx| unary(cx, special::fresnel_cos)).types("T", FLOATS),
    rule("FresnelSin", |cx| unary(cx, special::fresnel_sin)).types("T", FLOATS),
    rule("Spence", |cx| unary(cx, special::spence)).types("T", FLOATS),
    rule("Igamma", |cx| binary_of_double(cx, special::igamma_in_pairs, special::igamma)).types("T", FLOATS),
    rule("Igammac", |cx| binary_of_double(cx, special::igammac_in_pairs, special::igammac))
        .types("T", FLOATS),
    rule("IgammaGradA", |cx| binary_of_double(cx, special::igamma_grad_a_in_pairs, special::igamma_grad_a))
        .types("T", FLOATS),
    rule("RandomGammaGrad", |cx| {
        binary_of_double(cx, special::random_gamma_grad_in_pairs, special::random_gamma_grad)
    })
    .types("T", FLOATS),
    rule("Zeta", |cx| binary(cx, special::zeta)).types("T", FLOATS),
    rule("Polygamma", |cx| binary(cx, special::polygamma)).types("T", FLOATS),
    rule("Betainc", betainc).types("T", FLOATS),
];

/// Returns the type to compute in.
fn wide(element_type: PrimitiveType) -> PrimitiveType {
    match element_type {
        PrimitiveType::F32 | PrimitiveType::F64 => PrimitiveType::F64,
        _ => PrimitiveType::F32,
    }
}

fn unary(
    cx: &mut NodeContext<'_, '_>,
    function: for<'f> fn(Expression<'f>) -> Expression<'f>,
) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let element_type = cx.element_type(x);
    cx.composite_one(&[x], |_, operands| {
        function(operands[0].convert(wide(element_type))).convert(element_type)
    })
}

/// Uses `of_double` for `double`, where its higher accuracy makes a difference.
fn unary_of_double(
    cx: &mut NodeContext<'_, '_>,
    of_double: for<'f> fn(Expression<'f>) -> Expression<'f>,
    function: for<'f> fn(Expression<'f>) -> Expression<'f>,
) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let is_double = cx.element_type(x) == PrimitiveType::F64;
    unary(cx, if is_double { of_double } else { function })
}

/// Types narrower than `double` are computed in `float`: activations call this for each element.
fn erfc(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let element_type = cx.element_type(x);
    cx.composite_one(&[x], |_, operands| match element_type {
        PrimitiveType::F64 => special::erfc_in_pairs(operands[0]),
        _ => special::erfc_of_single(operands[0].convert(PrimitiveType::F32)).convert(element_type),
    })
}

/// Narrow types are computed as in XLA, because TensorFlow's kernel supports only `float` and
/// `double`.
fn ndtri(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let p = cx.input(0)?;
    let is_narrow = cx.element_type(p).byte_size() < 4;
    unary(cx, if is_narrow { special::ndtri_by_erf_inv } else { special::ndtri })
}

fn binary(
    cx: &mut NodeContext<'_, '_>,
    function: for<'f> fn(Expression<'f>, Expression<'f>) -> Expression<'f>,
) -> Result<InstructionId> {
    let (a, b) = cx.binary_inputs()?;
    let element_type = cx.element_type(a);
    cx.composite_one(&[a, b], |_, operands| {
        let wide = wide(element_type);
        function(operands[0].convert(wide), operands[1].convert(wide)).convert(element_type)
    })
}

/// Uses `of_double` for `double`, where its higher accuracy makes a difference.
fn binary_of_double(
    cx: &mut NodeContext<'_, '_>,
    of_double: for<'f> fn(Expression<'f>, Expression<'f>) -> Expression<'f>,
    function: for<'f> fn(Expression<'f>, Expression<'f>) -> Expression<'f>,
) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let is_double = cx.element_type(x) == PrimitiveType::F64;
    binary(cx, if is_double { of_double } else { function })
}

/// `Betainc(a, b, x)` with broadcasting. All types are computed in `f64`.
fn betainc(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let inputs = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let element_type = cx.element_type(inputs[0]);
    let mut sizes = Vec::new();
    for input in inputs {
        sizes = cx.broadcast_sizes(&sizes, &cx.sizes(input))?;
    }
    let mut operands = Vec::new();
    for input in inputs {
        operands.push(cx.broadcast_to(input, &sizes)?);
    }
    cx.composite_one(&operands, |_, operands| {
        let [a, b, x] = [0, 1, 2].map(|k| operands[k].convert(PrimitiveType::F64));
        special::betainc(a, b, x).convert(element_type)
    })
}
