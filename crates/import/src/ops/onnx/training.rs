//! Steps of optimizers. Inputs: the learning rate, the number of steps so far, then all parameters,
//! all gradients, and all states of each kind; the results are the new parameters and states.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use crate::ops::onnx::operands::{count, float, required};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("OnnxAdagrad", |cx| optimizer(cx, 1, adagrad)),
    rule_many("OnnxAdam", |cx| optimizer(cx, 2, adam)),
    rule_many("OnnxMomentum", |cx| optimizer(cx, 1, momentum)),
];

/// The learning rate and the number of steps so far, as scalars.
type Schedule = [InstructionId; 2];

/// The new parameter and states of one parameter, its gradient, and its states.
type Update = fn(&mut NodeContext<'_, '_>, Schedule, &[InstructionId]) -> Result<Vec<InstructionId>>;

fn optimizer(cx: &mut NodeContext<'_, '_>, states: usize, update: Update) -> Result<Vec<InstructionId>> {
    let groups = states + 2;
    let arrays = count(cx)?.saturating_sub(2);
    cx.check(arrays > 0 && arrays % groups == 0, || format!("{arrays} arrays do not fit {states} states"))?;
    let parameters = arrays / groups;
    let mut schedule = Vec::new();
    for k in 0..2 {
        let number = required(cx, k)?;
        schedule.push(cx.reshape(number, &[])?);
    }
    let mut results = vec![Vec::new(); states + 1];
    for k in 0..parameters {
        let mut own = Vec::new();
        for group in 0..groups {
            own.push(required(cx, 2 + group * parameters + k)?);
        }
        let sizes = cx.sizes(own[0]);
        cx.check(own.iter().all(|&array| cx.sizes(array) == sizes), || "the shapes differ".to_owned())?;
        for (result, array) in results.iter_mut().zip(update(cx, [schedule[0], schedule[1]], &own)?) {
            result.push(array);
        }
    }
    let wanted = cx.node().output_types.len();
    Ok(results.concat().into_iter().take(wanted).collect())
}

/// A scalar in the type and with the sizes of an array.
fn like(cx: &mut NodeContext<'_, '_>, scalar: InstructionId, array: InstructionId) -> Result<InstructionId> {
    let (element_type, sizes) = (cx.element_type(array), cx.sizes(array));
    let scalar = cx.convert(scalar, element_type)?;
    cx.broadcast(scalar, &sizes, &[])
}

/// The gradient with that of the norm of the parameter.
fn regularized(
    cx: &mut NodeContext<'_, '_>,
    parameter: InstructionId,
    gradient: InstructionId,
) -> Result<InstructionId> {
    let norm = float(cx, "norm_coefficient", 0.0)?;
    if norm == 0.0 {
        return Ok(gradient);
    }
    let own = cx.mul_scalar(parameter, norm)?;
    cx.add(own, gradient)
}

fn adagrad(
    cx: &mut NodeContext<'_, '_>,
    [rate, steps]: Schedule,
    own: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    let [x, gradient, squares] = [own[0], own[1], own[2]];
    let (decay, epsilon) = (float(cx, "decay_factor", 0.0)?, float(cx, "epsilon", 1e-6)?);
    let steps = cx.convert(steps, PrimitiveType::F32)?;
    let steps = cx.mul_scalar(steps, decay)?;
    let divisor = cx.add_scalar(steps, 1.0)?;
    let rate = cx.convert(rate, PrimitiveType::F32)?;
    let rate = cx.div(rate, divisor)?;
    let gradient = regularized(cx, x, gradient)?;
    let square = cx.mul(gradient, gradient)?;
    let squares = cx.add(squares, square)?;
    let root = cx.op(Op::Sqrt {}, &[squares])?;
    let root = cx.add_scalar(root, epsilon)?;
    let rate = like(cx, rate, x)?;
    let step = cx.mul(rate, gradient)?;
    let step = cx.div(step, root)?;
    Ok(vec![cx.sub(x, step)?, squares])
}

/// `factor * old + rest * new`.
fn average(
    cx: &mut NodeContext<'_, '_>,
    old: InstructionId,
    new: InstructionId,
    [factor, rest]: [f64; 2],
) -> Result<InstructionId> {
    let (old, new) = (cx.mul_scalar(old, factor)?, cx.mul_scalar(new, rest)?);
    cx.add(old, new)
}

fn adam(
    cx: &mut NodeContext<'_, '_>,
    [rate, steps]: Schedule,
    own: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    let [x, gradient, means, squares] = [own[0], own[1], own[2], own[3]];
    let (alpha, beta) = (float(cx, "alpha", 0.9)?, float(cx, "beta", 0.999)?);
    let epsilon = float(cx, "epsilon", 1e-6)?;
    let gradient = regularized(cx, x, gradient)?;
    let means = average(cx, means, gradient, [alpha, 1.0 - alpha])?;
    let square = cx.mul(gradient, gradient)?;
    let squares = average(cx, squares, square, [beta, 1.0 - beta])?;
    let root = cx.op(Op::Sqrt {}, &[squares])?;
    let root = cx.add_scalar(root, epsilon)?;
    // From the second step on, the rate makes up for averages that began at 0.
    let rate = cx.convert(rate, PrimitiveType::F32)?;
    let exponent = cx.convert(steps, PrimitiveType::F32)?;
    let mut rest = Vec::new();
    for factor in [alpha, beta] {
        let base = cx.splat_like(exponent, factor)?;
        let power = cx.op(Op::Power {}, &[base, exponent])?;
        let one = cx.splat_like(power, 1.0)?;
        rest.push(cx.sub(one, power)?);
    }
    let root_of_rest = cx.op(Op::Sqrt {}, &[rest[1]])?;
    let corrected = cx.mul(rate, root_of_rest)?;
    let corrected = cx.div(corrected, rest[0])?;
    let is_later = cx.compare_scalar(ComparisonDirection::Gt, exponent, 0.0)?;
    let rate = cx.select(is_later, corrected, rate)?;
    let rate = like(cx, rate, x)?;
    let step = cx.mul(rate, means)?;
    let step = cx.div(step, root)?;
    let x = cx.sub(x, step)?;
    let norm = float(cx, "norm_coefficient_post", 0.0)?;
    let x = if norm == 0.0 { x } else { cx.mul_scalar(x, 1.0 - norm)? };
    Ok(vec![x, means, squares])
}

fn momentum(
    cx: &mut NodeContext<'_, '_>,
    [rate, steps]: Schedule,
    own: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    let [x, gradient, moments] = [own[0], own[1], own[2]];
    let (alpha, beta) = (float(cx, "alpha", 0.9)?, float(cx, "beta", 1.0)?);
    let gradient = regularized(cx, x, gradient)?;
    let is_later = cx.compare_scalar(ComparisonDirection::Gt, steps, 0.0)?;
    let (later, first) = (cx.scalar(PrimitiveType::F32, beta), cx.scalar(PrimitiveType::F32, 1.0));
    let factor = cx.select(is_later, later, first)?;
    let factor = like(cx, factor, x)?;
    let (old, new) = (cx.mul_scalar(moments, alpha)?, cx.mul(factor, gradient)?);
    let moments = cx.add(old, new)?;
    let direction = match cx.text_or("mode", "standard")? {
        "standard" => moments,
        "nesterov" => {
            let moments = cx.mul_scalar(moments, alpha)?;
            cx.add(gradient, moments)?
        }
        other => return Err(cx.invalid(format!("mode: '{other}' does not exist"))),
    };
    let rate = like(cx, rate, x)?;
    let step = cx.mul(rate, direction)?;
    Ok(vec![cx.sub(x, step)?, moments])
}
