//! The error function and its kin.

use crate::context::NodeContext;
use crate::data_types::*;
use crate::rule::{Rule, rule};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] =
    &[rule("Erf", |cx| cx.unary(Op::Erf {})).types("T", FLOATS), rule("Erfc", erfc).types("T", FLOATS)];

/// Rational approximations of `erfc(x) / exp(-x * x)` from the Cephes library: numerator and denominator, the highest
/// power first, for `1 < |x| < 8` and for `|x| >= 8`.
const ERFC_MIDDLE: (&[f64], &[f64]) = (
    &[
        2.461_969_814_735_305e-10,
        0.564_189_564_831_068_9,
        7.463_210_564_422_699,
        48.637_197_098_568_14,
        196.520_832_956_077_1,
        526.445_194_995_477_3,
        934.528_527_171_957_6,
        1_027.551_886_895_157_2,
        557.535_335_369_399_4,
    ],
    &[
        1.0,
        13.228_195_115_474_499,
        86.707_214_088_598_97,
        354.937_778_887_819_9,
        975.708_501_743_205_5,
        1_823.909_166_879_097_3,
        2_246.337_608_187_109_7,
        1_656.663_091_941_613_4,
        557.535_340_817_727_7,
    ],
);
const ERFC_FAR: (&[f64], &[f64]) = (
    &[
        0.564_189_583_547_755_1,
        1.275_366_707_599_781,
        5.019_050_422_511_805,
        6.160_210_979_930_536,
        7.409_742_699_504_489_5,
        2.978_866_653_721_002_2,
    ],
    &[
        1.0,
        2.260_528_632_201_172_6,
        9.396_035_249_380_015,
        12.048_953_980_809_666,
        17.081_445_074_756_59,
        9.608_968_090_632_859,
        3.369_076_451_000_815,
    ],
);

/// `Erfc(x) = 1 - erf(x)`; where that would cancel, `exp(-x * x)` times a rational function.
fn erfc(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let element_type = cx.element_type(x);
    let wide = if element_type == PrimitiveType::F64 { PrimitiveType::F64 } else { PrimitiveType::F32 };
    let x = cx.convert(x, wide)?;
    let magnitude = cx.op(Op::Abs {}, &[x])?;
    let one = cx.splat_like(x, 1.0)?;
    let erf = cx.op(Op::Erf {}, &[x])?;
    let near = cx.sub(one, erf)?;

    let square = cx.mul(x, x)?;
    let negative = cx.neg(square)?;
    let exp = cx.op(Op::Exp {}, &[negative])?;
    let middle = rational(cx, magnitude, ERFC_MIDDLE)?;
    let far = rational(cx, magnitude, ERFC_FAR)?;
    let is_middle = cx.compare_scalar(ComparisonDirection::Lt, magnitude, 8.0)?;
    let factor = cx.select(is_middle, middle, far)?;
    let tail = cx.mul(exp, factor)?;
    // At infinity the rational function is inf / inf.
    let gone = cx.compare_scalar(ComparisonDirection::Gt, magnitude, 28.0)?;
    let zero = cx.splat_like(x, 0.0)?;
    let tail = cx.select(gone, zero, tail)?;
    let two = cx.splat_like(x, 2.0)?;
    let mirrored = cx.sub(two, tail)?;
    let is_negative = cx.compare_scalar(ComparisonDirection::Lt, x, 0.0)?;
    let tail = cx.select(is_negative, mirrored, tail)?;
    let is_tail = cx.compare_scalar(ComparisonDirection::Gt, magnitude, 1.0)?;
    let result = cx.select(is_tail, tail, near)?;
    cx.convert(result, element_type)
}

/// A quotient of polynomials, the highest power first.
fn rational(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    (numerator, denominator): (&[f64], &[f64]),
) -> Result<InstructionId> {
    let numerator = cx.polynomial(x, numerator)?;
    let denominator = cx.polynomial(x, denominator)?;
    cx.div(numerator, denominator)
}

impl NodeContext<'_, '_> {
    /// A polynomial by Horner's rule, the highest power first.
    pub(crate) fn polynomial(&mut self, x: InstructionId, coefficients: &[f64]) -> Result<InstructionId> {
        let mut sum = self.splat_like(x, coefficients[0])?;
        for &coefficient in &coefficients[1..] {
            let product = self.mul(sum, x)?;
            sum = self.add_scalar(product, coefficient)?;
        }
        Ok(sum)
    }
}
