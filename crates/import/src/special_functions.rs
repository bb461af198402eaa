//! The error function and its kin.

use crate::context::NodeContext;
use crate::data_types::*;
use crate::rule::{Rule, rule};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Erf", |cx| cx.unary(Op::Erf {})).types("T", FLOATS),
    rule("Erfc", erfc).types("T", FLOATS),
];

/// Rational approximations of `erfc(x) / exp(-x * x)` from the Cephes library: numerator and denominator, the highest
/// power first, for `1 < |x| < 8` and for `|x| >= 8`.
const ERFC_MIDDLE: (&[f64], &[f64]) = (
    &[
        2.461_969_814_735_305_1e-10,
        5.641_895_648_310_688_2e-1,
        7.463_210_564_422_699_1,
        4.863_719_709_856_813_7e1,
        1.965_208_329_560_771e2,
        5.264_451_949_954_774e2,
        9.345_285_271_719_576e2,
        1.027_551_886_895_157_1e3,
        5.575_353_353_693_994e2,
    ],
    &[
        1.0,
        1.322_819_511_547_449_9e1,
        8.670_721_408_859_897e1,
        3.549_377_788_878_199e2,
        9.757_085_017_432_055e2,
        1.823_909_166_879_097_4e3,
        2.246_337_608_187_109_8e3,
        1.656_663_091_941_613_5e3,
        5.575_353_408_177_277e2,
    ],
);
const ERFC_FAR: (&[f64], &[f64]) = (
    &[
        5.641_895_835_477_551e-1,
        1.275_366_707_599_781,
        5.019_050_422_511_805,
        6.160_210_979_930_536,
        7.409_742_699_504_489,
        2.978_866_653_721_002_4,
    ],
    &[
        1.0,
        2.260_528_632_201_172_8,
        9.396_035_249_380_015,
        1.204_895_398_080_966_6e1,
        1.708_144_507_475_659e1,
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
