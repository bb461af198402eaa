//! Optimisers: ops that update a variable and its slots from a gradient.
//!
//! The formulas are those of TensorFlow's CPU kernels, in their order of operations. What depends on scalars only is
//! computed on scalars. An op of TF 1 takes references and returns that of the variable; one of TF 2 takes handles.

use crate::context::{NodeContext, list};
use crate::data_types::*;
use crate::rule::{Rule, rule_values};
use crate::value::{Value, VariableId};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

type Translate = fn(&mut NodeContext<'_, '_>) -> Result<Vec<Value>>;

/// A rule of an op that updates variables.
const fn update(op: &'static str, types: &'static [tf::DataType], translate: Translate) -> Rule {
    rule_values(op, translate).types("T", types).effect()
}

pub(crate) const RULES: &[Rule] = &[
    update("ApplyGradientDescent", NUMBERS, gradient_descent),
    update("ResourceApplyGradientDescent", FLOATS_AND_COMPLEX, gradient_descent),
    update("ApplyProximalGradientDescent", FLOATS, proximal_gradient_descent),
    update("ResourceApplyProximalGradientDescent", FLOATS, proximal_gradient_descent),
    update("ApplyMomentum", FLOATS_AND_COMPLEX, momentum),
    update("ResourceApplyMomentum", FLOATS_AND_COMPLEX, momentum),
    update("ResourceApplyKerasMomentum", FLOATS_AND_COMPLEX, keras_momentum),
    update("ApplyAdagrad", FLOATS_AND_COMPLEX, adagrad),
    update("ResourceApplyAdagrad", FLOATS_AND_COMPLEX, adagrad),
    update("ApplyAdagradV2", FLOATS_AND_COMPLEX, adagrad_v2),
    update("ResourceApplyAdagradV2", FLOATS_AND_COMPLEX, adagrad_v2),
    update("ApplyProximalAdagrad", FLOATS, proximal_adagrad),
    update("ResourceApplyProximalAdagrad", FLOATS, proximal_adagrad),
    update("ApplyAdagradDA", FLOATS, adagrad_da),
    update("ResourceApplyAdagradDA", FLOATS, adagrad_da),
    update("ApplyAdadelta", FLOATS_AND_COMPLEX, adadelta),
    update("ResourceApplyAdadelta", FLOATS_AND_COMPLEX, adadelta),
    update("ApplyAdam", FLOATS_AND_COMPLEX, adam),
    update("ResourceApplyAdam", FLOATS_AND_COMPLEX, adam),
    update("ResourceApplyAdamWithAmsgrad", FLOATS, adam_with_amsgrad),
    update("ApplyAdaMax", FLOATS, ada_max),
    update("ResourceApplyAdaMax", FLOATS, ada_max),
    update("ApplyRMSProp", FLOATS_AND_COMPLEX, rms_prop),
    update("ResourceApplyRMSProp", FLOATS_AND_COMPLEX, rms_prop),
    update("ApplyCenteredRMSProp", FLOATS_AND_COMPLEX, centered_rms_prop),
    update("ResourceApplyCenteredRMSProp", FLOATS_AND_COMPLEX, centered_rms_prop),
    update("ApplyFtrl", FLOATS, |cx| ftrl(cx, false)),
    update("ResourceApplyFtrl", FLOATS, |cx| ftrl(cx, false)),
    update("ApplyFtrlV2", FLOATS, |cx| ftrl(cx, true)),
    update("ResourceApplyFtrlV2", FLOATS, |cx| ftrl(cx, true)),
    update("ApplyAddSign", FLOATS, |cx| sign_update(cx, false)),
    update("ResourceApplyAddSign", FLOATS, |cx| sign_update(cx, false)),
    update("ApplyPowerSign", FLOATS, |cx| sign_update(cx, true)),
    update("ResourceApplyPowerSign", FLOATS, |cx| sign_update(cx, true)),
];

/// A node that updates variables; arithmetic in which a scalar meets an array repeats the scalar.
struct Update<'c, 'i, 'p> {
    cx: &'c mut NodeContext<'i, 'p>,
    element_type: PrimitiveType,
    /// The sizes of the variables and the gradient.
    sizes: Vec<i64>,
    variables: Vec<VariableId>,
}

impl<'c, 'i, 'p> Update<'c, 'i, 'p> {
    /// Reads the variables at the first `N` inputs, which have one shape.
    fn begin<const N: usize>(cx: &'c mut NodeContext<'i, 'p>) -> Result<(Self, [InstructionId; N])> {
        let element_type = cx.type_attribute("T")?;
        let mut variables = Vec::with_capacity(N);
        let mut values = [None; N];
        for (k, value) in values.iter_mut().enumerate() {
            let variable = cx.variable(k)?;
            *value = Some(cx.importer.read_variable(variable));
            variables.push(variable);
        }
        let values = values.map(|value| value.expect("every one is read"));
        let sizes = cx.sizes(values[0]);
        for (&variable, &value) in variables.iter().zip(&values) {
            let array = cx.array(value);
            let fits = array.element_type == element_type && array.sizes() == sizes;
            cx.check(fits, || {
                let name = cx.importer.variable_name(variable);
                let shape = list(&sizes);
                format!(
                    "variable '{name}' has shape {array}, but the op updates {element_type} of shape {shape}"
                )
            })?;
        }
        Ok((Self { cx, element_type, sizes, variables }, values))
    }

    /// The gradient: an input of the variables' shape.
    fn gradient(&mut self, k: usize) -> Result<InstructionId> {
        let gradient = self.cx.input(k)?;
        let sizes = self.cx.sizes(gradient);
        self.cx.check(sizes == self.sizes, || {
            format!(
                "the variable has shape {}, but its gradient has shape {}",
                list(&self.sizes),
                list(&sizes)
            )
        })?;
        Ok(gradient)
    }

    /// The scalars at some inputs.
    fn scalars<const N: usize>(&mut self, first: usize) -> Result<[InstructionId; N]> {
        let mut scalars = [None; N];
        for (i, scalar) in scalars.iter_mut().enumerate() {
            let id = self.cx.input(first + i)?;
            let sizes = self.cx.sizes(id);
            self.cx.check(sizes.is_empty(), || {
                format!("input {} must be a scalar, but has shape {}", first + i, list(&sizes))
            })?;
            *scalar = Some(id);
        }
        Ok(scalars.map(|scalar| scalar.expect("every one is read")))
    }

    fn number(&mut self, value: f64) -> InstructionId {
        self.cx.scalar(self.element_type, value)
    }

    fn binary(&mut self, op: Op, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        let (a, b) = self.cx.broadcast_pair(a, b)?;
        self.cx.op(op, &[a, b])
    }

    fn add(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.binary(Op::Add {}, a, b)
    }

    fn sub(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.binary(Op::Subtract {}, a, b)
    }

    fn mul(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.binary(Op::Multiply {}, a, b)
    }

    fn div(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.binary(Op::Divide {}, a, b)
    }

    fn max(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        self.binary(Op::Maximum {}, a, b)
    }

    fn square(&mut self, a: InstructionId) -> Result<InstructionId> {
        self.mul(a, a)
    }

    fn unary(&mut self, op: Op, a: InstructionId) -> Result<InstructionId> {
        self.cx.op(op, &[a])
    }

    /// `1 - a`.
    fn one_minus(&mut self, a: InstructionId) -> Result<InstructionId> {
        let one = self.number(1.0);
        self.sub(one, a)
    }

    /// `old + (new - old) * weight`: a mean that follows `new`.
    fn towards(
        &mut self,
        old: InstructionId,
        new: InstructionId,
        weight: InstructionId,
    ) -> Result<InstructionId> {
        let difference = self.sub(new, old)?;
        let step = self.mul(difference, weight)?;
        self.add(old, step)
    }

    /// `a * b + c * d`.
    fn blend(
        &mut self,
        (a, b): (InstructionId, InstructionId),
        (c, d): (InstructionId, InstructionId),
    ) -> Result<InstructionId> {
        let left = self.mul(a, b)?;
        let right = self.mul(c, d)?;
        self.add(left, right)
    }

    /// `a > b ? on_true : on_false`.
    fn select_greater(
        &mut self,
        (a, b): (InstructionId, InstructionId),
        on_true: InstructionId,
        on_false: InstructionId,
    ) -> Result<InstructionId> {
        let (a, b) = self.cx.broadcast_pair(a, b)?;
        let greater = self.cx.compare(ComparisonDirection::Gt, a, b)?;
        let greater = self.cx.broadcast_to(greater, &self.sizes)?;
        let on_false = self.cx.broadcast_to(on_false, &self.sizes)?;
        self.cx.select(greater, on_true, on_false)
    }

    /// Gives the variables their new values.
    fn assign<const N: usize>(self, values: [InstructionId; N]) -> Result<Vec<Value>> {
        let mut returned = Vec::new();
        for (&variable, value) in self.variables.iter().zip(values).rev() {
            returned = self.cx.assign_variable(variable, value)?;
        }
        // The last one assigned is the variable itself, whose reference TF 1's ops return.
        Ok(returned)
    }
}

/// `var -= grad * alpha`.
fn gradient_descent(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var]) = Update::begin(cx)?;
    let [alpha] = u.scalars(1)?;
    let grad = u.gradient(2)?;
    let step = u.mul(grad, alpha)?;
    let var = u.sub(var, step)?;
    u.assign([var])
}

/// `p = var - grad * lr`; `var = (l1 > 0 ? sign(p) * max(|p| - lr * l1, 0) : p) / (1 + l2 * lr)`.
///
/// `lr` is a scalar or an array.
fn proximal_step(
    u: &mut Update<'_, '_, '_>,
    var: InstructionId,
    lr: InstructionId,
    [l1, l2]: [InstructionId; 2],
    grad: InstructionId,
) -> Result<InstructionId> {
    let step = u.mul(grad, lr)?;
    let moved = u.sub(var, step)?;
    let zero = u.number(0.0);
    let threshold = u.mul(lr, l1)?;
    let sign = u.unary(Op::Sign {}, moved)?;
    let magnitude = u.unary(Op::Abs {}, moved)?;
    let rest = u.sub(magnitude, threshold)?;
    let rest = u.max(rest, zero)?;
    let shrunk = u.mul(sign, rest)?;
    let chosen = u.select_greater((l1, zero), shrunk, moved)?;
    let one = u.number(1.0);
    let decay = u.mul(l2, lr)?;
    let divisor = u.add(one, decay)?;
    u.div(chosen, divisor)
}

fn proximal_gradient_descent(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var]) = Update::begin(cx)?;
    let [alpha, l1, l2] = u.scalars(1)?;
    let delta = u.gradient(4)?;
    let var = proximal_step(&mut u, var, alpha, [l1, l2], delta)?;
    u.assign([var])
}

/// `accum = accum * momentum + grad`; `var -= accum * lr`, with Nesterov's look ahead
/// `var -= grad * lr + accum * momentum * lr`.
fn momentum(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let is_nesterov = cx.node.attributes.bool_or("use_nesterov", false)?;
    let (mut u, [var, accum]) = Update::begin(cx)?;
    let [lr] = u.scalars(2)?;
    let grad = u.gradient(3)?;
    let [momentum] = u.scalars(4)?;
    let kept = u.mul(accum, momentum)?;
    let accum = u.add(kept, grad)?;
    let step = if is_nesterov {
        let ahead = u.mul(accum, momentum)?;
        u.blend((grad, lr), (ahead, lr))?
    } else {
        u.mul(accum, lr)?
    };
    let var = u.sub(var, step)?;
    u.assign([var, accum])
}

/// `accum = accum * momentum - grad * lr`; `var += accum`, with Nesterov's look ahead
/// `var += accum * momentum - grad * lr`.
fn keras_momentum(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let is_nesterov = cx.node.attributes.bool_or("use_nesterov", false)?;
    let (mut u, [var, accum]) = Update::begin(cx)?;
    let [lr] = u.scalars(2)?;
    let grad = u.gradient(3)?;
    let [momentum] = u.scalars(4)?;
    let kept = u.mul(accum, momentum)?;
    let step = u.mul(grad, lr)?;
    let accum = u.sub(kept, step)?;
    let change = if is_nesterov {
        let ahead = u.mul(accum, momentum)?;
        u.sub(ahead, step)?
    } else {
        accum
    };
    let var = u.add(var, change)?;
    u.assign([var, accum])
}

/// `accum + grad^2`, unless the attribute `update_slots` says otherwise.
fn squares(u: &mut Update<'_, '_, '_>, accum: InstructionId, grad: InstructionId) -> Result<InstructionId> {
    if !u.cx.node.attributes.bool_or("update_slots", true)? {
        return Ok(accum);
    }
    let square = u.square(grad)?;
    u.add(accum, square)
}

/// `accum += grad^2`; `var -= grad * lr * rsqrt(accum)`.
fn adagrad(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var, accum]) = Update::begin(cx)?;
    let [lr] = u.scalars(2)?;
    let grad = u.gradient(3)?;
    let accum = squares(&mut u, accum, grad)?;
    let scaled = u.mul(grad, lr)?;
    let rsqrt = u.unary(Op::Rsqrt {}, accum)?;
    let step = u.mul(scaled, rsqrt)?;
    let var = u.sub(var, step)?;
    u.assign([var, accum])
}

/// `accum += grad^2`; `var -= grad * lr / (sqrt(accum) + epsilon)`.
fn adagrad_v2(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var, accum]) = Update::begin(cx)?;
    let [lr, epsilon] = u.scalars(2)?;
    let grad = u.gradient(4)?;
    let accum = squares(&mut u, accum, grad)?;
    let scaled = u.mul(grad, lr)?;
    let root = u.unary(Op::Sqrt {}, accum)?;
    let divisor = u.add(root, epsilon)?;
    let step = u.div(scaled, divisor)?;
    let var = u.sub(var, step)?;
    u.assign([var, accum])
}

/// `accum += grad^2`, then a proximal step with the learning rates `lr * rsqrt(accum)`.
fn proximal_adagrad(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var, accum]) = Update::begin(cx)?;
    let [lr, l1, l2] = u.scalars(2)?;
    let grad = u.gradient(5)?;
    let square = u.square(grad)?;
    let accum = u.add(accum, square)?;
    let rsqrt = u.unary(Op::Rsqrt {}, accum)?;
    let rates = u.mul(lr, rsqrt)?;
    let var = proximal_step(&mut u, var, rates, [l1, l2], grad)?;
    u.assign([var, accum])
}

/// `g += grad`; `gg += grad^2`; `var = -lr * x / (l2 * step * lr + sqrt(gg))`, where `x` is `g`, or with `l1 > 0` what is
/// left of it: `sign(g) * max(|g| - step * l1, 0)`.
fn adagrad_da(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [_, sum, squared_sum]) = Update::begin(cx)?;
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
    let chosen = u.select_greater((l1, zero), shrunk, sum)?;
    let negative = u.unary(Op::Negate {}, lr)?;
    let numerator = u.mul(negative, chosen)?;
    let rate = u.mul(step, lr)?;
    let decay = u.mul(l2, rate)?;
    let root = u.unary(Op::Sqrt {}, squared_sum)?;
    let divisor = u.add(decay, root)?;
    let var = u.div(numerator, divisor)?;
    u.assign([var, sum, squared_sum])
}

/// `accum = accum * rho + grad^2 * (1 - rho)`; `x = sqrt(accum_update + epsilon) * rsqrt(accum + epsilon) * grad`;
/// `var -= x * lr`; `accum_update = accum_update * rho + x^2 * (1 - rho)`.
fn adadelta(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var, accum, accum_update]) = Update::begin(cx)?;
    let [lr, rho, epsilon] = u.scalars(3)?;
    let grad = u.gradient(6)?;
    let fresh = u.one_minus(rho)?;
    let square = u.square(grad)?;
    let accum = u.blend((accum, rho), (square, fresh))?;
    let shifted = u.add(accum_update, epsilon)?;
    let root = u.unary(Op::Sqrt {}, shifted)?;
    let shifted = u.add(accum, epsilon)?;
    let rsqrt = u.unary(Op::Rsqrt {}, shifted)?;
    let ratio = u.mul(root, rsqrt)?;
    let change = u.mul(ratio, grad)?;
    let step = u.mul(change, lr)?;
    let var = u.sub(var, step)?;
    let square = u.square(change)?;
    let accum_update = u.blend((accum_update, rho), (square, fresh))?;
    u.assign([var, accum, accum_update])
}

/// Adam's learning rate without bias, `lr * sqrt(1 - beta2_power) / (1 - beta1_power)`, from the scalars at inputs from
/// `first` on.
fn unbiased_rate(u: &mut Update<'_, '_, '_>, first: usize) -> Result<InstructionId> {
    let [beta1_power, beta2_power, lr] = u.scalars(first)?;
    let rest = u.one_minus(beta2_power)?;
    let root = u.unary(Op::Sqrt {}, rest)?;
    let scaled = u.mul(lr, root)?;
    let divisor = u.one_minus(beta1_power)?;
    u.div(scaled, divisor)
}

/// Adam's means of the gradient and its square, each moved by `1 - beta`.
fn means(
    u: &mut Update<'_, '_, '_>,
    [m, v]: [InstructionId; 2],
    [beta1, beta2]: [InstructionId; 2],
    grad: InstructionId,
) -> Result<[InstructionId; 2]> {
    let fresh = u.one_minus(beta1)?;
    let m = u.towards(m, grad, fresh)?;
    let fresh = u.one_minus(beta2)?;
    let square = u.square(grad)?;
    let v = u.towards(v, square, fresh)?;
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

/// `var -= m * alpha / (sqrt(v) + epsilon)`; with Nesterov's look ahead `(grad * (1 - beta1) + beta1 * m) * alpha`.
fn adam(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let is_nesterov = cx.node.attributes.bool_or("use_nesterov", false)?;
    let (mut u, [var, m, v]) = Update::begin(cx)?;
    let alpha = unbiased_rate(&mut u, 3)?;
    let [beta1, beta2, epsilon] = u.scalars(6)?;
    let grad = u.gradient(9)?;
    let [m, v] = means(&mut u, [m, v], [beta1, beta2], grad)?;
    let direction = if is_nesterov {
        let fresh = u.one_minus(beta1)?;
        u.blend((grad, fresh), (beta1, m))?
    } else {
        m
    };
    let numerator = u.mul(direction, alpha)?;
    let var = scaled_step(&mut u, var, numerator, v, epsilon)?;
    u.assign([var, m, v])
}

/// Adam, with the greatest `v` so far in the divisor.
fn adam_with_amsgrad(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var, m, v, greatest]) = Update::begin(cx)?;
    let alpha = unbiased_rate(&mut u, 4)?;
    let [beta1, beta2, epsilon] = u.scalars(7)?;
    let grad = u.gradient(10)?;
    let [m, v] = means(&mut u, [m, v], [beta1, beta2], grad)?;
    let greatest = u.max(greatest, v)?;
    let numerator = u.mul(m, alpha)?;
    let var = scaled_step(&mut u, var, numerator, greatest, epsilon)?;
    u.assign([var, m, v, greatest])
}

/// `m += (grad - m) * (1 - beta1)`; `v = max(beta2 * v, |grad|)`;
/// `var -= lr / (1 - beta1_power) * (m / (v + epsilon))`.
fn ada_max(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var, m, v]) = Update::begin(cx)?;
    let [beta1_power, lr, beta1, beta2, epsilon] = u.scalars(3)?;
    let grad = u.gradient(8)?;
    let fresh = u.one_minus(beta1)?;
    let m = u.towards(m, grad, fresh)?;
    let kept = u.mul(beta2, v)?;
    let magnitude = u.unary(Op::Abs {}, grad)?;
    let v = u.max(kept, magnitude)?;
    let rest = u.one_minus(beta1_power)?;
    let rate = u.div(lr, rest)?;
    let divisor = u.add(v, epsilon)?;
    let direction = u.div(m, divisor)?;
    let step = u.mul(rate, direction)?;
    let var = u.sub(var, step)?;
    u.assign([var, m, v])
}

/// `mom = mom * momentum + grad * lr / sqrt(mean + epsilon)`; `var -= mom`. The new `var` and `mom`.
fn root_mean_square_step(
    u: &mut Update<'_, '_, '_>,
    [var, mom, mean]: [InstructionId; 3],
    [lr, momentum, epsilon]: [InstructionId; 3],
    grad: InstructionId,
) -> Result<[InstructionId; 2]> {
    let kept = u.mul(mom, momentum)?;
    let scaled = u.mul(grad, lr)?;
    let shifted = u.add(mean, epsilon)?;
    let root = u.unary(Op::Sqrt {}, shifted)?;
    let step = u.div(scaled, root)?;
    let mom = u.add(kept, step)?;
    let var = u.sub(var, mom)?;
    Ok([var, mom])
}

/// `ms += (grad^2 - ms) * (1 - rho)`, then a step by the root of `ms`.
fn rms_prop(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var, ms, mom]) = Update::begin(cx)?;
    let [lr, rho, momentum, epsilon] = u.scalars(3)?;
    let grad = u.gradient(7)?;
    let fresh = u.one_minus(rho)?;
    let square = u.square(grad)?;
    let ms = u.towards(ms, square, fresh)?;
    let [var, mom] = root_mean_square_step(&mut u, [var, mom, ms], [lr, momentum, epsilon], grad)?;
    u.assign([var, ms, mom])
}

/// `ms += (grad^2 - ms) * (1 - rho)`; `mg += (grad - mg) * (1 - rho)`, then a step by the root of `ms - mg^2`.
fn centered_rms_prop(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (mut u, [var, mg, ms, mom]) = Update::begin(cx)?;
    let [lr, rho, momentum, epsilon] = u.scalars(4)?;
    let grad = u.gradient(8)?;
    let fresh = u.one_minus(rho)?;
    let square = u.square(grad)?;
    let ms = u.towards(ms, square, fresh)?;
    let mg = u.towards(mg, grad, fresh)?;
    let square = u.square(mg)?;
    let variance = u.sub(ms, square)?;
    let [var, mom] = root_mean_square_step(&mut u, [var, mom, variance], [lr, momentum, epsilon], grad)?;
    u.assign([var, mg, ms, mom])
}

/// `a ^ -power`; where the power is known to be -1/2, the root.
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

/// `n = accum + grad^2`; `r = n^-lr_power`;
/// `linear += g - (r - accum^-lr_power) / lr * var`, where `g` is `grad`, with shrinkage `grad + 2 * l2_shrinkage * var`;
/// `var = |linear| > l1 ? (l1 * sign(linear) - linear) / (r / lr + 2 * l2) : 0`; `accum = n`.
///
/// With the attribute `multiply_linear_by_lr`, `linear`, `l1` and the divisor are `lr` times as large.
fn ftrl(cx: &mut NodeContext<'_, '_>, has_shrinkage: bool) -> Result<Vec<Value>> {
    let times_lr = cx.node.attributes.bool_or("multiply_linear_by_lr", false)?;
    let (mut u, [var, accum, linear]) = Update::begin(cx)?;
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
    let root = root_or_power(&mut u, sum, power)?;
    let old_root = root_or_power(&mut u, accum, power)?;
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
    let var = u.select_greater((magnitude, threshold), shrunk, zero)?;
    u.assign([var, sum, linear])
}

/// `m = m * beta + grad * (1 - beta)`; `var -= lr * scale * grad`. `AddSign` scales by
/// `alpha + sign_decay * sign(grad) * sign(m)`, `PowerSign` by `exp(logbase * sign_decay * sign(grad) * sign(m))`.
fn sign_update(cx: &mut NodeContext<'_, '_>, is_power: bool) -> Result<Vec<Value>> {
    let (mut u, [var, m]) = Update::begin(cx)?;
    let [lr, base, sign_decay, beta] = u.scalars(2)?;
    let grad = u.gradient(6)?;
    let fresh = u.one_minus(beta)?;
    let m = u.blend((m, beta), (grad, fresh))?;
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
    u.assign([var, m])
}
