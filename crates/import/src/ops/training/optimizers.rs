//! Optimizers: ops that update a variable and its slots from a gradient.
//!
//! The formulas are those of TensorFlow's CPU kernels, in their order of operations. Values that
//! depend only on scalars are computed as scalars. An op of TF 1 takes references and returns that
//! of the variable. An op of TF 2 takes handles.

mod adagrad;
mod adam;
mod ftrl;
pub(crate) mod sparse;

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_values};
use crate::values::value::Value;
use bounded::{VariableId, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

use adagrad::{adadelta, adagrad, adagrad_da, adagrad_v2, proximal_adagrad};
use adam::{ada_max, adam, adam_with_amsgrad, centered_rms_prop, rms_prop};
use ftrl::{ftrl, sign_update};

type Translate = fn(&mut NodeContext<'_, '_>) -> Result<Vec<Value>>;

/// A rule of an op that updates variables.
const fn update(op: &'static str, types: &'static [tf::DataType], translate: Translate) -> Rule {
    rule_values(op, translate).types("T", types).effect()
}

pub(crate) const RULES: &[Rule] = &[
    update("ApplyGradientDescent", NUMBERS, |cx| dense(cx, gradient_descent)),
    update("ResourceApplyGradientDescent", FLOATS_AND_COMPLEX, |cx| dense(cx, gradient_descent)),
    update("ApplyProximalGradientDescent", FLOATS, |cx| dense(cx, proximal_gradient_descent)),
    update("ResourceApplyProximalGradientDescent", FLOATS, |cx| dense(cx, proximal_gradient_descent)),
    update("ApplyMomentum", FLOATS_AND_COMPLEX, |cx| dense(cx, momentum)),
    update("ResourceApplyMomentum", FLOATS_AND_COMPLEX, |cx| dense(cx, momentum)),
    update("ResourceApplyKerasMomentum", FLOATS_AND_COMPLEX, |cx| dense(cx, keras_momentum)),
    update("ApplyAdagrad", FLOATS_AND_COMPLEX, |cx| dense(cx, adagrad)),
    update("ResourceApplyAdagrad", FLOATS_AND_COMPLEX, |cx| dense(cx, adagrad)),
    update("ApplyAdagradV2", FLOATS_AND_COMPLEX, |cx| dense(cx, adagrad_v2)),
    update("ResourceApplyAdagradV2", FLOATS_AND_COMPLEX, |cx| dense(cx, adagrad_v2)),
    update("ApplyProximalAdagrad", FLOATS, |cx| dense(cx, proximal_adagrad)),
    update("ResourceApplyProximalAdagrad", FLOATS, |cx| dense(cx, proximal_adagrad)),
    update("ApplyAdagradDA", FLOATS, |cx| dense(cx, adagrad_da)),
    update("ResourceApplyAdagradDA", FLOATS, |cx| dense(cx, adagrad_da)),
    update("ApplyAdadelta", FLOATS_AND_COMPLEX, |cx| dense(cx, adadelta)),
    update("ResourceApplyAdadelta", FLOATS_AND_COMPLEX, |cx| dense(cx, adadelta)),
    update("ApplyAdam", FLOATS_AND_COMPLEX, |cx| dense(cx, adam)),
    update("ResourceApplyAdam", FLOATS_AND_COMPLEX, |cx| dense(cx, adam)),
    update("ResourceApplyAdamWithAmsgrad", FLOATS, |cx| dense(cx, adam_with_amsgrad)),
    update("ApplyAdaMax", FLOATS, |cx| dense(cx, ada_max)),
    update("ResourceApplyAdaMax", FLOATS, |cx| dense(cx, ada_max)),
    update("ApplyRMSProp", FLOATS_AND_COMPLEX, |cx| dense(cx, rms_prop)),
    update("ResourceApplyRMSProp", FLOATS_AND_COMPLEX, |cx| dense(cx, rms_prop)),
    update("ApplyCenteredRMSProp", FLOATS_AND_COMPLEX, |cx| dense(cx, centered_rms_prop)),
    update("ResourceApplyCenteredRMSProp", FLOATS_AND_COMPLEX, |cx| dense(cx, centered_rms_prop)),
    update("ApplyFtrl", FLOATS, |cx| dense(cx, |u, values| ftrl(u, values, false))),
    update("ResourceApplyFtrl", FLOATS, |cx| dense(cx, |u, values| ftrl(u, values, false))),
    update("ApplyFtrlV2", FLOATS, |cx| dense(cx, |u, values| ftrl(u, values, true))),
    update("ResourceApplyFtrlV2", FLOATS, |cx| dense(cx, |u, values| ftrl(u, values, true))),
    update("ApplyAddSign", FLOATS, |cx| dense(cx, |u, values| sign_update(u, values, false))),
    update("ResourceApplyAddSign", FLOATS, |cx| dense(cx, |u, values| sign_update(u, values, false))),
    update("ApplyPowerSign", FLOATS, |cx| dense(cx, |u, values| sign_update(u, values, true))),
    update("ResourceApplyPowerSign", FLOATS, |cx| dense(cx, |u, values| sign_update(u, values, true))),
];

/// A node that updates variables. Arithmetic on a scalar and an array broadcasts the scalar.
struct Update<'c, 'i, 'p> {
    cx: &'c mut NodeContext<'i, 'p>,
    element_type: PrimitiveType,
    /// The sizes of the variables and the gradient, or of their rows if only some are updated.
    sizes: Vec<i64>,
}

/// Returns the variables at the first `N` inputs, which must have one shape, and their values.
fn variables<const N: usize>(
    cx: &mut NodeContext<'_, '_>,
) -> Result<(PrimitiveType, [VariableId; N], [InstructionId; N])> {
    let element_type = cx.type_attribute("T")?;
    let mut variables = [None; N];
    let mut values = [None; N];
    for (k, (variable, value)) in variables.iter_mut().zip(&mut values).enumerate() {
        let id = cx.variable(k)?;
        *value = Some(cx.read_variable(id));
        *variable = Some(id);
    }
    let variables = variables.map(|variable| variable.expect("a variable is missing"));
    let values = values.map(|value| value.expect("a value is missing"));
    let sizes = cx.sizes(values[0]);
    for (&variable, &value) in variables.iter().zip(&values) {
        let array = cx.array(value);
        let fits = array.element_type == element_type && array.sizes() == sizes;
        cx.check(fits, || {
            let name = cx.variable_name(variable);
            let shape = list(&sizes);
            format!("variable '{name}' has shape {array}, but the op updates {element_type} of shape {shape}")
        })?;
    }
    Ok((element_type, variables, values))
}

impl Update<'_, '_, '_> {
    /// Returns the gradient, an input of the variables' shape.
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

    /// Returns `N` scalars from input `first` on.
    fn scalars<const N: usize>(&mut self, first: usize) -> Result<[InstructionId; N]> {
        let mut scalars = [None; N];
        for (i, scalar) in scalars.iter_mut().enumerate() {
            let id = self.cx.input(first + i)?;
            let sizes = self.cx.sizes(id);
            self.cx.check(sizes.is_empty(), || {
                format!("input {}: expected a scalar, got shape {}", first + i, list(&sizes))
            })?;
            *scalar = Some(id);
        }
        Ok(scalars.map(|scalar| scalar.expect("a scalar is missing")))
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

    /// `old + (new - old) * weight`: a moving average.
    fn toward(
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
        a: InstructionId,
        b: InstructionId,
        c: InstructionId,
        d: InstructionId,
    ) -> Result<InstructionId> {
        let left = self.mul(a, b)?;
        let right = self.mul(c, d)?;
        self.add(left, right)
    }

    /// `a > b ? on_true : on_false`.
    fn select_greater(
        &mut self,
        a: InstructionId,
        b: InstructionId,
        on_true: InstructionId,
        on_false: InstructionId,
    ) -> Result<InstructionId> {
        let (a, b) = self.cx.broadcast_pair(a, b)?;
        let greater = self.cx.compare(ComparisonDirection::Gt, a, b)?;
        let greater = self.cx.broadcast_to(greater, &self.sizes)?;
        let on_false = self.cx.broadcast_to(on_false, &self.sizes)?;
        self.cx.select(greater, on_true, on_false)
    }
}

/// Updates variables from a gradient of their shape.
fn dense<const N: usize>(
    cx: &mut NodeContext<'_, '_>,
    step: impl FnOnce(&mut Update<'_, '_, '_>, [InstructionId; N]) -> Result<[InstructionId; N]>,
) -> Result<Vec<Value>> {
    let (element_type, variables, values) = variables(cx)?;
    let sizes = cx.sizes(values[0]);
    let values = step(&mut Update { cx, element_type, sizes }, values)?;
    assign(cx, variables, values)
}

/// Assigns the new values to the variables.
fn assign<const N: usize>(
    cx: &mut NodeContext<'_, '_>,
    variables: [VariableId; N],
    values: [InstructionId; N],
) -> Result<Vec<Value>> {
    let mut outputs = Vec::new();
    for (variable, value) in variables.into_iter().zip(values).rev() {
        outputs = cx.assign_variable(variable, value)?;
    }
    // The last one assigned is the variable itself, whose reference TF 1's ops return.
    Ok(outputs)
}

/// `var -= grad * alpha`.
fn gradient_descent(u: &mut Update<'_, '_, '_>, [var]: [InstructionId; 1]) -> Result<[InstructionId; 1]> {
    let [alpha] = u.scalars(1)?;
    let grad = u.gradient(2)?;
    let step = u.mul(grad, alpha)?;
    let var = u.sub(var, step)?;
    Ok([var])
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
    let chosen = u.select_greater(l1, zero, shrunk, moved)?;
    let one = u.number(1.0);
    let decay = u.mul(l2, lr)?;
    let divisor = u.add(one, decay)?;
    u.div(chosen, divisor)
}

fn proximal_gradient_descent(
    u: &mut Update<'_, '_, '_>,
    [var]: [InstructionId; 1],
) -> Result<[InstructionId; 1]> {
    let [alpha, l1, l2] = u.scalars(1)?;
    let delta = u.gradient(4)?;
    let var = proximal_step(u, var, alpha, [l1, l2], delta)?;
    Ok([var])
}

/// `accum = accum * momentum + grad`; `var -= accum * lr`. With Nesterov momentum, `var -= grad *
/// lr + accum * momentum * lr`.
fn momentum(u: &mut Update<'_, '_, '_>, [var, accum]: [InstructionId; 2]) -> Result<[InstructionId; 2]> {
    let is_nesterov = u.cx.attributes().bool_or("use_nesterov", false)?;
    let [lr] = u.scalars(2)?;
    let grad = u.gradient(3)?;
    let [momentum] = u.scalars(4)?;
    let decayed = u.mul(accum, momentum)?;
    let accum = u.add(decayed, grad)?;
    let step = if is_nesterov {
        let ahead = u.mul(accum, momentum)?;
        u.blend(grad, lr, ahead, lr)?
    } else {
        u.mul(accum, lr)?
    };
    let var = u.sub(var, step)?;
    Ok([var, accum])
}

/// `accum = accum * momentum - grad * lr`; `var += accum`. With Nesterov momentum, `var += accum *
/// momentum - grad * lr`.
fn keras_momentum(
    u: &mut Update<'_, '_, '_>,
    [var, accum]: [InstructionId; 2],
) -> Result<[InstructionId; 2]> {
    let is_nesterov = u.cx.attributes().bool_or("use_nesterov", false)?;
    let [lr] = u.scalars(2)?;
    let grad = u.gradient(3)?;
    let [momentum] = u.scalars(4)?;
    let decayed = u.mul(accum, momentum)?;
    let step = u.mul(grad, lr)?;
    let accum = u.sub(decayed, step)?;
    let change = if is_nesterov {
        let ahead = u.mul(accum, momentum)?;
        u.sub(ahead, step)?
    } else {
        accum
    };
    let var = u.add(var, change)?;
    Ok([var, accum])
}
