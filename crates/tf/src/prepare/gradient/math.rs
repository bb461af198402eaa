//! Gradients of elementwise unary functions and of casts.

use super::builder::{Builder, Call};
use crate::OutputId;
use support::Result;

type Build = fn(&mut Builder<'_>, &Call) -> Result<Vec<Option<OutputId>>>;

/// Returns the gradient of an op with one input, or `None` for other ops.
pub(super) fn find(op: &str) -> Option<Build> {
    plain(op).or_else(|| power_or_logarithm(op)).or_else(|| circular_or_hyperbolic(op))
}

/// Magnitudes, copies, and casts.
fn plain(op: &str) -> Option<Build> {
    Some(match op {
        "Abs" => |b, c| times(b, c, |b, x, _| b.op("Sign", &[x])),
        "Neg" => |b, c| one(c, |dy| b.neg(dy)),
        "Sign" => |b, c| Ok(vec![Some(b.op("ZerosLike", &[c.input(0)?])?)]),
        "Conj" => |b, c| one(c, |dy| b.op("Conj", &[dy])),
        "Identity" => |_, c| one(c, Ok),
        "Cast" => |b, c| {
            let to = b.type_of(c.input(0)?);
            one(c, |dy| b.cast(dy, to))
        },
        "ReadVariableOp" => |_, c| one(c, Ok),
        _ => return None,
    })
}

/// Powers, exponentials, and logarithms.
fn power_or_logarithm(op: &str) -> Option<Build> {
    Some(match op {
        "Inv" | "Reciprocal" => |b, c| {
            times(b, c, |b, _, y| {
                let square = b.op("Square", &[y])?;
                b.neg(square)
            })
        },
        "Square" => |b, c| {
            times(b, c, |b, x, _| {
                let two = b.number(2.0, x)?;
                b.mul(x, two)
            })
        },
        "Sqrt" => |b, c| {
            times(b, c, |b, _, y| {
                let (half, inverse) = (b.number(0.5, y)?, b.op("Reciprocal", &[y])?);
                b.mul(half, inverse)
            })
        },
        "Rsqrt" => |b, c| {
            times(b, c, |b, x, y| {
                let (half, inverse) = (b.number(-0.5, x)?, b.op("Reciprocal", &[x])?);
                let product = b.mul(half, inverse)?;
                b.mul(product, y)
            })
        },
        "Exp" => |b, c| times(b, c, |_, _, y| Ok(y)),
        "Expm1" => |b, c| times(b, c, |b, x, _| b.op("Exp", &[x])),
        "Log" => |b, c| times(b, c, |b, x, _| b.op("Reciprocal", &[x])),
        "Log1p" => |b, c| {
            let (x, dy) = (c.input(0)?, c.gradient()?);
            let one = b.number(1.0, x)?;
            let sum = b.op("AddV2", &[one, x])?;
            Ok(vec![Some(b.op("Div", &[dy, sum])?)])
        },
        "Sigmoid" => |b, c| {
            times(b, c, |b, _, y| {
                let one = b.number(1.0, y)?;
                let rest = b.sub(one, y)?;
                b.mul(y, rest)
            })
        },
        _ => return None,
    })
}

/// Circular and hyperbolic functions, and their inverses.
fn circular_or_hyperbolic(op: &str) -> Option<Build> {
    Some(match op {
        "Sin" => |b, c| times(b, c, |b, x, _| b.op("Cos", &[x])),
        "Cos" => |b, c| {
            times(b, c, |b, x, _| {
                let sine = b.op("Sin", &[x])?;
                b.neg(sine)
            })
        },
        "Acos" => |b, c| {
            times(b, c, |b, x, _| {
                let inverse = inverse_root(b, x)?;
                b.neg(inverse)
            })
        },
        "Asin" => |b, c| times(b, c, |b, x, _| inverse_root(b, x)),
        "Atan" => |b, c| {
            times(b, c, |b, x, _| {
                let (square, one) = (b.op("Square", &[x])?, b.number(1.0, x)?);
                let sum = b.op("AddV2", &[one, square])?;
                b.op("Reciprocal", &[sum])
            })
        },
        "Tan" => |b, c| {
            times(b, c, |b, x, _| {
                let cosine = b.op("Cos", &[x])?;
                let secant = b.op("Reciprocal", &[cosine])?;
                b.op("Square", &[secant])
            })
        },
        "Sinh" => |b, c| times(b, c, |b, x, _| b.op("Cosh", &[x])),
        "Cosh" => |b, c| times(b, c, |b, x, _| b.op("Sinh", &[x])),
        "Tanh" => |b, c| times(b, c, |b, _, y| one_less_square(b, y)),
        "Asinh" => |b, c| times(b, c, |b, _, y| b.op("Cosh", &[y])),
        "Acosh" => |b, c| times(b, c, |b, _, y| b.op("Sinh", &[y])),
        "Atanh" => |b, c| {
            times(b, c, |b, x, _| {
                let rest = one_less_square(b, x)?;
                b.op("Reciprocal", &[rest])
            })
        },
        _ => return None,
    })
}

/// Returns the gradient of the only input, computed from the gradient of the only output.
fn one(call: &Call, back: impl FnOnce(OutputId) -> Result<OutputId>) -> Result<Vec<Option<OutputId>>> {
    Ok(vec![Some(back(call.gradient()?)?)])
}

/// Returns `dy` times the result of `factor` for the input and output.
fn times(
    b: &mut Builder<'_>,
    call: &Call,
    factor: fn(&mut Builder<'_>, OutputId, OutputId) -> Result<OutputId>,
) -> Result<Vec<Option<OutputId>>> {
    let (x, dy) = (call.input(0)?, call.gradient()?);
    let factor = factor(b, x, call.y[0])?;
    Ok(vec![Some(b.mul(dy, factor)?)])
}

/// `1 - x^2`.
fn one_less_square(b: &mut Builder<'_>, x: OutputId) -> Result<OutputId> {
    let (square, one) = (b.op("Square", &[x])?, b.number(1.0, x)?);
    b.sub(one, square)
}

/// `1 / sqrt(1 - x^2)`.
fn inverse_root(b: &mut Builder<'_>, x: OutputId) -> Result<OutputId> {
    let rest = one_less_square(b, x)?;
    let root = b.op("Sqrt", &[rest])?;
    b.op("Reciprocal", &[root])
}
