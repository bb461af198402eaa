//! Optimizers that maintain means of the gradient and of its square.

use super::Update;
use hlo::{InstructionId, Op};
use support::Result;

/// Returns Adam's bias-corrected learning rate, `lr * sqrt(1 - beta2_power) / (1 - beta1_power)`,
/// from the scalars at the inputs from `first` on.
fn unbiased_rate(u: &mut Update<'_, '_, '_>, first: usize) -> Result<InstructionId> {
    let [beta1_power, beta2_power, lr] = u.scalars(first)?;
    let rest = u.one_minus(beta2_power)?;
    let root = u.unary(Op::Sqrt {}, rest)?;
    let scaled = u.mul(lr, root)?;
    let divisor = u.one_minus(beta1_power)?;
    u.div(scaled, divisor)
}

/// Updates Adam's means of the gradient and its square, with weights `1 - beta`.
fn means(
    u: &mut Update<'_, '_, '_>,
    [m, v]: [InstructionId; 2],
    [beta1, beta2]: [InstructionId; 2],
    grad: InstructionId,
) -> Result<[InstructionId; 2]> {
    let fresh = u.one_minus(beta1)?;
    let m = u.toward(m, grad, fresh)?;
    let fresh = u.one_minus(beta2)?;
    let square = u.square(grad)?;
    let v = u.toward(v, square, fresh)?;
    Ok([m, v])
}

/// `var - numerator / (sqrt(v) + epsilon)`.
fn scaled_step(
    u: &mut Update<'_, '_, '_>,
    var: InstructionId,
    numerator: InstructionId,
    v: InstructionId,
    epsilon: InstructionId,
) -> Result<InstructionId> {
    let root = u.unary(Op::Sqrt {}, v)?;
    let divisor = u.add(root, epsilon)?;
    let step = u.div(numerator, divisor)?;
    u.sub(var, step)
}

/// `var -= m * alpha / (sqrt(v) + epsilon)`. With Nesterov momentum, `(grad * (1 - beta1) + beta1 *
/// m) * alpha` is the numerator.
pub(super) fn adam(
    u: &mut Update<'_, '_, '_>,
    [var, m, v]: [InstructionId; 3],
) -> Result<[InstructionId; 3]> {
    let is_nesterov = u.cx.attributes().bool_or("use_nesterov", false)?;
    let alpha = unbiased_rate(u, 3)?;
    let [beta1, beta2, epsilon] = u.scalars(6)?;
    let grad = u.gradient(9)?;
    let [m, v] = means(u, [m, v], [beta1, beta2], grad)?;
    let direction = if is_nesterov {
        let fresh = u.one_minus(beta1)?;
        u.blend(grad, fresh, beta1, m)?
    } else {
        m
    };
    let numerator = u.mul(direction, alpha)?;
    let var = scaled_step(u, var, numerator, v, epsilon)?;
    Ok([var, m, v])
}

/// Adam with the maximum of all `v` so far in the divisor.
pub(super) fn adam_with_amsgrad(
    u: &mut Update<'_, '_, '_>,
    [var, m, v, greatest]: [InstructionId; 4],
) -> Result<[InstructionId; 4]> {
    let alpha = unbiased_rate(u, 4)?;
    let [beta1, beta2, epsilon] = u.scalars(7)?;
    let grad = u.gradient(10)?;
    let [m, v] = means(u, [m, v], [beta1, beta2], grad)?;
    let greatest = u.max(greatest, v)?;
    let numerator = u.mul(m, alpha)?;
    let var = scaled_step(u, var, numerator, greatest, epsilon)?;
    Ok([var, m, v, greatest])
}

/// `m += (grad - m) * (1 - beta1)`; `v = max(beta2 * v, |grad|)`;
/// `var -= lr / (1 - beta1_power) * (m / (v + epsilon))`.
pub(super) fn ada_max(
    u: &mut Update<'_, '_, '_>,
    [var, m, v]: [InstructionId; 3],
) -> Result<[InstructionId; 3]> {
    let [beta1_power, lr, beta1, beta2, epsilon] = u.scalars(3)?;
    let grad = u.gradient(8)?;
    let fresh = u.one_minus(beta1)?;
    let m = u.toward(m, grad, fresh)?;
    let decayed = u.mul(beta2, v)?;
    let magnitude = u.unary(Op::Abs {}, grad)?;
    let v = u.max(decayed, magnitude)?;
    let rest = u.one_minus(beta1_power)?;
    let rate = u.div(lr, rest)?;
    let divisor = u.add(v, epsilon)?;
    let direction = u.div(m, divisor)?;
    let step = u.mul(rate, direction)?;
    let var = u.sub(var, step)?;
    Ok([var, m, v])
}

/// `mom = mom * momentum + grad * lr / sqrt(mean + epsilon)`; `var -= mom`. Returns the new `var`
/// and `mom`.
fn root_mean_square_step(
    u: &mut Update<'_, '_, '_>,
    [var, mom, mean]: [InstructionId; 3],
    [lr, momentum, epsilon]: [InstructionId; 3],
    grad: InstructionId,
) -> Result<[InstructionId; 2]> {
    let decayed = u.mul(mom, momentum)?;
    let scaled = u.mul(grad, lr)?;
    let shifted = u.add(mean, epsilon)?;
    let root = u.unary(Op::Sqrt {}, shifted)?;
    let step = u.div(scaled, root)?;
    let mom = u.add(decayed, step)?;
    let var = u.sub(var, mom)?;
    Ok([var, mom])
}

/// `ms += (grad^2 - ms) * (1 - rho)`, then a step divided by the root of `ms`.
pub(super) fn rms_prop(
    u: &mut Update<'_, '_, '_>,
    [var, ms, mom]: [InstructionId; 3],
) -> Result<[InstructionId; 3]> {
    let [lr, rho, momentum, epsilon] = u.scalars(3)?;
    let grad = u.gradient(7)?;
    let fresh = u.one_minus(rho)?;
    let square = u.square(grad)?;
    let ms = u.toward(ms, square, fresh)?;
    let [var, mom] = root_mean_square_step(u, [var, mom, ms], [lr, momentum, epsilon], grad)?;
    Ok([var, ms, mom])
}

/// `ms += (grad^2 - ms) * (1 - rho)`; `mg += (grad - mg) * (1 - rho)`, then a step divided by the
/// root of `ms - mg^2`.
pub(super) fn centered_rms_prop(
    u: &mut Update<'_, '_, '_>,
    [var, mg, ms, mom]: [InstructionId; 4],
) -> Result<[InstructionId; 4]> {
    let [lr, rho, momentum, epsilon] = u.scalars(4)?;
    let grad = u.gradient(8)?;
    let fresh = u.one_minus(rho)?;
    let square = u.square(grad)?;
    let ms = u.toward(ms, square, fresh)?;
    let mg = u.toward(mg, grad, fresh)?;
    let square = u.square(mg)?;
    let variance = u.sub(ms, square)?;
    let [var, mom] = root_mean_square_step(u, [var, mom, variance], [lr, momentum, epsilon], grad)?;
    Ok([var, mg, ms, mom])
}
