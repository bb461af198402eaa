//! FTRL, and optimizers that use the sign of the gradient.

use super::Update;
use hlo::{InstructionId, Op};
use support::Result;

/// `a ^ -power`, or the square root if the power is known to be -1/2.
fn root_or_power(
    u: &mut Update<'_, '_, '_>,
    a: InstructionId,
    power: InstructionId,
) -> Result<InstructionId> {
    let known = u.cx.fold(power).and_then(|literal| literal.scalar_at(0).as_f64());
    if known == Some(-0.5) {
        return u.unary(Op::Sqrt {}, a);
    }
    let negative = u.unary(Op::Negate {}, power)?;
    u.binary(Op::Power {}, a, negative)
}

/// `n = accum + grad^2`; `r = n^-lr_power`; `linear += g - (r - accum^-lr_power) / lr * var`, where
/// `g` is `grad` or, with shrinkage, `grad + 2 * l2_shrinkage * var`; `var = |linear| > l1 ? (l1 *
/// sign(linear) - linear) / (r / lr + 2 * l2) : 0`; `accum = n`.
///
/// With the attribute `multiply_linear_by_lr`, `linear`, `l1`, and the divisor are multiplied by
/// `lr`.
pub(super) fn ftrl(
    u: &mut Update<'_, '_, '_>,
    [var, accum, linear]: [InstructionId; 3],
    has_shrinkage: bool,
) -> Result<[InstructionId; 3]> {
    let times_lr = u.cx.attributes().bool_or("multiply_linear_by_lr", false)?;
    let grad = u.gradient(3)?;
    let [lr, l1, l2] = u.scalars(4)?;
    let two = u.number(2.0);
    let mut direction = grad;
    let mut power_at = 7;
    if has_shrinkage {
        let [shrinkage] = u.scalars(7)?;
        let doubled = u.mul(two, shrinkage)?;
        let pull = u.mul(doubled, var)?;
        direction = u.add(grad, pull)?;
        power_at = 8;
    }
    let [power] = u.scalars(power_at)?;
    let square = u.square(grad)?;
    let sum = u.add(accum, square)?;
    let root = root_or_power(u, sum, power)?;
    let old_root = root_or_power(u, accum, power)?;
    let mut sigma = u.sub(root, old_root)?;
    let doubled = u.mul(two, l2)?;
    let (threshold, divisor);
    if times_lr {
        direction = u.mul(direction, lr)?;
        threshold = u.mul(l1, lr)?;
        let decay = u.mul(doubled, lr)?;
        divisor = u.add(root, decay)?;
    } else {
        sigma = u.div(sigma, lr)?;
        threshold = l1;
        let scaled = u.div(root, lr)?;
        divisor = u.add(scaled, doubled)?;
    }
    let pull = u.mul(sigma, var)?;
    let change = u.sub(direction, pull)?;
    let linear = u.add(linear, change)?;
    let sign = u.unary(Op::Sign {}, linear)?;
    let edge = u.mul(threshold, sign)?;
    let rest = u.sub(edge, linear)?;
    let shrunk = u.div(rest, divisor)?;
    let magnitude = u.unary(Op::Abs {}, linear)?;
    let zero = u.number(0.0);
    let var = u.select_greater(magnitude, threshold, shrunk, zero)?;
    Ok([var, sum, linear])
}

/// `m = m * beta + grad * (1 - beta)`; `var -= lr * scale * grad`. `AddSign` scales by `alpha +
/// sign_decay * sign(grad) * sign(m)`, `PowerSign` by `exp(logbase * sign_decay * sign(grad) *
/// sign(m))`.
pub(super) fn sign_update(
    u: &mut Update<'_, '_, '_>,
    [var, m]: [InstructionId; 2],
    is_power: bool,
) -> Result<[InstructionId; 2]> {
    let [lr, base, sign_decay, beta] = u.scalars(2)?;
    let grad = u.gradient(6)?;
    let fresh = u.one_minus(beta)?;
    let m = u.blend(m, beta, grad, fresh)?;
    let grad_sign = u.unary(Op::Sign {}, grad)?;
    let mean_sign = u.unary(Op::Sign {}, m)?;
    let agreement = u.mul(grad_sign, mean_sign)?;
    let scale = if is_power {
        let exponent = u.mul(base, sign_decay)?;
        let exponent = u.mul(exponent, agreement)?;
        u.unary(Op::Exp {}, exponent)?
    } else {
        let decay = u.mul(sign_decay, agreement)?;
        u.add(base, decay)?
    };
    let rate = u.mul(lr, scale)?;
    let step = u.mul(rate, grad)?;
    let var = u.sub(var, step)?;
    Ok([var, m])
}
