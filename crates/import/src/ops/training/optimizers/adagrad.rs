//! Optimizers that divide by the root of accumulated squares of the gradient.

use super::{Update, proximal_step};
use hlo::{InstructionId, Op};
use support::Result;

/// `accum + grad^2`, or `accum` if the attribute `update_slots` is false.
pub(super) fn squares(
    u: &mut Update<'_, '_, '_>,
    accum: InstructionId,
    grad: InstructionId,
) -> Result<InstructionId> {
    if !u.cx.attributes().bool_or("update_slots", true)? {
        return Ok(accum);
    }
    let square = u.square(grad)?;
    u.add(accum, square)
}

/// `accum += grad^2`; `var -= grad * lr * rsqrt(accum)`.
pub(super) fn adagrad(
    u: &mut Update<'_, '_, '_>,
    [var, accum]: [InstructionId; 2],
) -> Result<[InstructionId; 2]> {
    let [lr] = u.scalars(2)?;
    let grad = u.gradient(3)?;
    let accum = squares(u, accum, grad)?;
    let scaled = u.mul(grad, lr)?;
    let rsqrt = u.unary(Op::Rsqrt {}, accum)?;
    let step = u.mul(scaled, rsqrt)?;
    let var = u.sub(var, step)?;
    Ok([var, accum])
}

/// `accum += grad^2`; `var -= grad * lr / (sqrt(accum) + epsilon)`.
pub(super) fn adagrad_v2(
    u: &mut Update<'_, '_, '_>,
    [var, accum]: [InstructionId; 2],
) -> Result<[InstructionId; 2]> {
    let [lr, epsilon] = u.scalars(2)?;
    let grad = u.gradient(4)?;
    let accum = squares(u, accum, grad)?;
    let scaled = u.mul(grad, lr)?;
    let root = u.unary(Op::Sqrt {}, accum)?;
    let divisor = u.add(root, epsilon)?;
    let step = u.div(scaled, divisor)?;
    let var = u.sub(var, step)?;
    Ok([var, accum])
}

/// `accum += grad^2`, then a proximal step with the learning rates `lr * rsqrt(accum)`.
pub(super) fn proximal_adagrad(
    u: &mut Update<'_, '_, '_>,
    [var, accum]: [InstructionId; 2],
) -> Result<[InstructionId; 2]> {
    let [lr, l1, l2] = u.scalars(2)?;
    let grad = u.gradient(5)?;
    let square = u.square(grad)?;
    let accum = u.add(accum, square)?;
    let rsqrt = u.unary(Op::Rsqrt {}, accum)?;
    let rates = u.mul(lr, rsqrt)?;
    let var = proximal_step(u, var, rates, [l1, l2], grad)?;
    Ok([var, accum])
}

/// `g += grad`; `gg += grad^2`; `var = -lr * x / (l2 * step * lr + sqrt(gg))`. Here `x` is `g` or,
/// with `l1 > 0`, `sign(g) * max(|g| - step * l1, 0)`.
pub(super) fn adagrad_da(
    u: &mut Update<'_, '_, '_>,
    [_, sum, squared_sum]: [InstructionId; 3],
) -> Result<[InstructionId; 3]> {
    let grad = u.gradient(3)?;
    let [lr, l1, l2, step] = u.scalars(4)?;
    let step = u.cx.convert(step, u.element_type)?;
    let sum = u.add(sum, grad)?;
    let square = u.square(grad)?;
    let squared_sum = u.add(squared_sum, square)?;
    let zero = u.number(0.0);
    let sign = u.unary(Op::Sign {}, sum)?;
    let magnitude = u.unary(Op::Abs {}, sum)?;
    let threshold = u.mul(step, l1)?;
    let rest = u.sub(magnitude, threshold)?;
    let rest = u.max(rest, zero)?;
    let shrunk = u.mul(sign, rest)?;
    let chosen = u.select_greater(l1, zero, shrunk, sum)?;
    let negative = u.unary(Op::Negate {}, lr)?;
    let numerator = u.mul(negative, chosen)?;
    let rate = u.mul(step, lr)?;
    let decay = u.mul(l2, rate)?;
    let root = u.unary(Op::Sqrt {}, squared_sum)?;
    let divisor = u.add(decay, root)?;
    let var = u.div(numerator, divisor)?;
    Ok([var, sum, squared_sum])
}

/// `accum = accum * rho + grad^2 * (1 - rho)`; `x = sqrt(accum_update + epsilon) * rsqrt(accum +
/// epsilon) * grad`; `var -= x * lr`; `accum_update = accum_update * rho + x^2 * (1 - rho)`.
pub(super) fn adadelta(
    u: &mut Update<'_, '_, '_>,
    [var, accum, accum_update]: [InstructionId; 3],
) -> Result<[InstructionId; 3]> {
    let [lr, rho, epsilon] = u.scalars(3)?;
    let grad = u.gradient(6)?;
    let fresh = u.one_minus(rho)?;
    let square = u.square(grad)?;
    let accum = u.blend(accum, rho, square, fresh)?;
    let shifted = u.add(accum_update, epsilon)?;
    let root = u.unary(Op::Sqrt {}, shifted)?;
    let shifted = u.add(accum, epsilon)?;
    let rsqrt = u.unary(Op::Rsqrt {}, shifted)?;
    let ratio = u.mul(root, rsqrt)?;
    let change = u.mul(ratio, grad)?;
    let step = u.mul(change, lr)?;
    let var = u.sub(var, step)?;
    let square = u.square(change)?;
    let accum_update = u.blend(accum_update, rho, square, fresh)?;
    Ok([var, accum, accum_update])
}
