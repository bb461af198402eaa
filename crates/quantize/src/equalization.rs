//! Cross-layer equalization (Nagel et al., 2019): features between two layers are divided by
//! factors, and the next layer's weights multiplied, so that no feature has a much smaller range
//! than the others.
//!
//! Between the layers, each feature may be shifted by a constant, cut off at zero or at a limit,
//! and pooled, but features may not be mixed.

use crate::bias::{bias, channels};
use crate::form;
use crate::layer::{IndexOf, Layer, Layers, elements};
use crate::point::is_least;
use hlo::analysis::ChannelConstant;
use hlo::{Computation, InstructionId, Module, Op, WindowDimension};
use passes::Edit;
use shape::Literal;
use support::Result;

/// Equalizes all pairs of layers of which the second one alone reads the first one's outputs.
/// Returns the number of pairs.
pub fn equalize(module: &mut Module) -> Result<usize> {
    let mut pairs = 0;
    // Two rounds spread the factors over chains of layers.
    for _ in 0..2 {
        let mut count = 0;
        let layers = Layers::of(module).layers;
        for first in &layers {
            let computation = &module[first.computation];
            let Some(path) = Path::of(module, first) else { continue };
            let of_end =
                |layer: &&Layer| layer.computation == first.computation && layer.input(module) == path.end;
            let Some(second) = layers.iter().find(of_end) else { continue };
            if !matches!(computation[path.end].users(), [user] if *user == second.instruction) {
                continue;
            }
            let (Some(outputs), Some(inputs)) = (output_ranges(module, first), input_ranges(module, second))
            else {
                continue;
            };
            if outputs.len() != inputs.len() {
                continue;
            }
            let factors: Vec<f32> = outputs.iter().zip(&inputs).map(|(a, b)| factor(*a, *b)).collect();
            let first_weights = scaled(module, first, &factors, Side::Outputs);
            let second_weights = scaled(module, second, &factors, Side::Features);
            let (Some(first_weights), Some(second_weights)) = (first_weights, second_weights) else {
                continue;
            };
            let computation = module.computation_mut(first.computation);
            replace_weights(computation, first, first_weights);
            replace_weights(computation, second, second_weights);
            for step in path.steps {
                divide(computation, step, &factors);
            }
            count += 1;
        }
        pairs = pairs.max(count);
    }
    let _ = passes::Pass::run(&passes::DeadCodeElimination, module)?;
    hlo::verify(module)?;
    Ok(pairs)
}

/// Divisor of the outputs of a layer that makes the ranges of both layers equal.
fn factor(outputs: f32, inputs: f32) -> f32 {
    let factor = (outputs / inputs).sqrt();
    if factor.is_normal() { factor.clamp(1e-4, 1e4) } else { 1.0 }
}

/// Operations between a layer and the only reader of its outputs.
struct Path {
    /// Operations with constants that are divided as well.
    steps: Vec<Step>,
    /// The value that the next layer reads.
    end: InstructionId,
}

enum Step {
    /// A sum with a constant.
    Bias { sum: InstructionId, of: InstructionId },
    /// A limit from zero to a constant.
    Limit { clamp: InstructionId },
}

impl Path {
    /// Follows the outputs of a layer along the last dimension.
    fn of(module: &Module, layer: &Layer) -> Option<Self> {
        let computation = &module[layer.computation];
        let features = |id: InstructionId| {
            let shape = computation[id].shape().as_array()?;
            Some(shape.size(shape.rank().checked_sub(1)?))
        };
        let (mut end, mut steps) = (layer.instruction, Vec::new());
        let count = features(end)?;
        loop {
            let &[user] = computation[end].users() else { return None };
            let rank = computation[end].shape().as_array()?.rank();
            match computation[user].op() {
                Op::Dot { .. } | Op::Convolution { .. } => return Some(Self { steps, end }),
                Op::Add {} => {
                    bias(computation, user, end)?;
                    steps.push(Step::Bias { sum: user, of: end });
                }
                Op::Maximum {} => {
                    let &[a, b] = computation[user].operands() else { return None };
                    (only(computation, if a == end { b } else { a })? == 0.0).then_some(())?;
                }
                Op::Clamp {} => {
                    let &[least, value, most] = computation[user].operands() else { return None };
                    let is_limit = value == end && only(computation, least)? == 0.0;
                    let most = limits(computation, most, count as usize)?;
                    (is_limit && most.iter().all(|most| *most > 0.0)).then_some(())?;
                    steps.push(Step::Limit { clamp: user });
                }
                Op::ReduceWindow { window, to_apply } => {
                    let &[array, init] = computation[user].operands() else { return None };
                    let is_pooling = array == end
                        && is_maximum_or_sum(&module[*to_apply], only(computation, init)?)
                        && *window.dimensions.last()? == WindowDimension::of_size(1);
                    is_pooling.then_some(())?;
                }
                Op::Reduce { dimensions, to_apply } => {
                    let &[array, init] = computation[user].operands() else { return None };
                    let is_mean = array == end
                        && is_maximum_or_sum(&module[*to_apply], only(computation, init)?)
                        && !dimensions.contains(&(rank - 1));
                    is_mean.then_some(())?;
                }
                Op::Multiply {} | Op::Divide {} => {
                    let &[a, b] = computation[user].operands() else { return None };
                    (a == end && only(computation, b)? > 0.0).then_some(())?;
                }
                _ => return None,
            }
            end = user;
            (features(end)? == count).then_some(())?;
        }
    }
}

/// True for a sum from zero, and for a maximum from zero or the least number: they scale with their
/// operands.
fn is_maximum_or_sum(computation: &Computation, init: f64) -> bool {
    let scales = match computation[computation.root()].op() {
        Op::Maximum {} => init == 0.0 || is_least(init),
        Op::Add {} => init == 0.0,
        _ => false,
    };
    scales && hlo::is_associative(computation)
}

/// The number in all elements of a constant.
fn only(computation: &Computation, id: InstructionId) -> Option<f64> {
    ChannelConstant::of(computation, id)?.only()
}

/// The number of each feature in a constant.
fn limits(computation: &Computation, id: InstructionId, count: usize) -> Option<Vec<f32>> {
    match only(computation, id) {
        Some(number) => Some(vec![number as f32; count]),
        None => channels(computation, id),
    }
}

/// Side of a layer that factors belong to.
#[derive(Clone, Copy)]
enum Side {
    Outputs,
    Features,
}

/// The index of a factor for each weight of a layer.
fn factor_of(module: &Module, layer: &Layer, side: Side) -> Option<IndexOf> {
    let op = module[layer.computation][layer.instruction].op();
    match (op, side) {
        (_, Side::Outputs) => layer.channel_of(module),
        (Op::Dot { dot_dimension_numbers: numbers }, Side::Features) => {
            let input = module[layer.computation][layer.input(module)].shape().as_array()?;
            let is_last = numbers.lhs_contracting_dims.as_slice() == [input.rank().checked_sub(1)?];
            if is_last { layer.feature_of(module) } else { None }
        }
        (Op::Convolution { dim_labels, .. }, Side::Features) => {
            let input = module[layer.computation][layer.input(module)].shape().as_array()?;
            let is_last = dim_labels.input_feature_dimension + 1 == input.rank();
            if is_last { layer.feature_of(module) } else { None }
        }
        (_, Side::Features) => None,
    }
}

/// The largest weight of each output or feature.
fn ranges(module: &Module, layer: &Layer, side: Side) -> Option<Vec<f32>> {
    let factor_of = factor_of(module, layer, side)?;
    let mut ranges = Vec::new();
    for (k, weight) in elements(layer.literal(module)?).into_iter().enumerate() {
        let at = factor_of(k);
        if ranges.len() <= at {
            ranges.resize(at + 1, 0f32);
        }
        ranges[at] = ranges[at].max(weight.abs());
    }
    Some(ranges)
}

fn output_ranges(module: &Module, layer: &Layer) -> Option<Vec<f32>> {
    ranges(module, layer, Side::Outputs)
}

fn input_ranges(module: &Module, layer: &Layer) -> Option<Vec<f32>> {
    ranges(module, layer, Side::Features)
}

/// The weights of a layer with outputs divided or features multiplied.
fn scaled(module: &Module, layer: &Layer, factors: &[f32], side: Side) -> Option<Literal> {
    let factor_of = factor_of(module, layer, side)?;
    let weights = layer.literal(module)?;
    let scaled = elements(weights).into_iter().enumerate().map(|(k, weight)| match side {
        Side::Outputs => weight / factors[factor_of(k)],
        Side::Features => weight * factors[factor_of(k)],
    });
    Some(Literal::from_elements(&weights.array_shape().sizes(), &scaled.collect::<Vec<f32>>()))
}

fn replace_weights(computation: &mut Computation, layer: &Layer, weights: Literal) {
    let new = Edit::at(computation, layer.instruction).literal(weights);
    computation.replace_operand(layer.instruction, layer.weights, new);
}

/// Divides the constants of a step.
fn divide(computation: &mut Computation, step: Step, factors: &[f32]) {
    let (user, old, numbers) = match step {
        Step::Bias { sum, of } => {
            let Some(numbers) = bias(computation, sum, of) else { return };
            let operands = computation[sum].operands();
            (sum, usize::from(operands[0] == of), numbers)
        }
        Step::Limit { clamp } => {
            let most = computation[clamp].operands()[2];
            let Some(limits) = limits(computation, most, factors.len()) else { return };
            (clamp, 2, limits)
        }
    };
    let divided: Vec<f32> = numbers.iter().zip(factors).map(|(number, factor)| number / factor).collect();
    let shape = computation[user].shape().expect_array().clone();
    let is_limit = matches!(computation[user].op(), Op::Clamp {});
    let mut edit = Edit::at(computation, user);
    let spread = form::channels(&mut edit, &divided, &shape);
    if is_limit {
        // Both bounds of a clamp have the same form.
        let zeros = form::channels(&mut edit, &vec![0.0; divided.len()], &shape);
        computation.replace_operand(user, 0, zeros);
    }
    computation.replace_operand(user, old, spread);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feature 0 has weights up to 4 before and 1 after, feature 1 has 1 and 4: both factors make
    /// them 2 and 2. The biases and the limit follow.
    #[test]
    fn both_layers_get_the_same_ranges() {
        let text = "HloModule m

ENTRY main {
  x = f32[1,2] parameter(0)
  v = f32[2,2] constant({{4, 1}, {2, 0.5}})
  first = f32[1,2] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[2] constant({8, 1})
  bias = f32[1,2] broadcast(b), dimensions={1}
  sum = f32[1,2] add(first, bias)
  zero = f32[] constant(0)
  six = f32[] constant(6)
  limited = f32[1,2] clamp(zero, sum, six)
  w = f32[2,2] constant({{1, 0.25}, {4, 3}})
  second = f32[1,2] dot(limited, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[1,2]) tuple(second)
}
";
        let mut module = hlo::parse(text).expect("a module");
        assert_eq!(equalize(&mut module).expect("valid"), 1);
        let entry = module.entry_computation();
        let layers = Layers::of(&module).layers;
        let weights = |k: usize| elements(layers[k].literal(&module).expect("a constant"));
        assert_eq!(weights(0), [2.0, 2.0, 1.0, 1.0]);
        assert_eq!(weights(1), [2.0, 0.5, 2.0, 1.5]);
        let sum = entry.find("sum").expect("an instruction");
        assert_eq!(bias(entry, sum, entry.find("first").expect("an instruction")), Some(vec![4.0, 2.0]));
        let limit = entry[entry.find("limited").expect("an instruction")].operands()[2];
        assert_eq!(channels(entry, limit), Some(vec![3.0, 12.0]));
    }

    /// The last dimension of `first` has its outputs, and that which `second` sums over is another.
    #[test]
    fn features_in_another_dimension_stay() {
        let pairs = |labels: &str| {
            let text = format!(
                "HloModule m

ENTRY main {{
  x = f32[1,2,2] parameter(0)
  v = f32[1,2,2] constant({{{{{{4, 1}}, {{2, 0.5}}}}}})
  first = f32[1,2,2] convolution(x, v), window={{size=1}}, dim_labels=b0f_0io->b0f
  w = f32[1,2,2] constant({{{{{{1, 0.25}}, {{4, 3}}}}}})
  second = f32[1,2,2] convolution(first, w), window={{size=1}}, dim_labels={labels}_0io->b0f
  ROOT r = (f32[1,2,2]) tuple(second)
}}
"
            );
            equalize(&mut hlo::parse(&text).expect("a module")).expect("valid")
        };
        assert_eq!((pairs("b0f"), pairs("bf0")), (1, 0));
    }

    /// A sum over positions scales with its operands, but one of squares does not, nor one that
    /// starts from a number other than zero.
    #[test]
    fn values_that_do_not_scale_stay() {
        let pairs = |reducer: &str, init: &str| {
            let text = format!(
                "HloModule m

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

squares {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] multiply(b, b)
  ROOT s = f32[] add(a, c)
}}

largest {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}}

ENTRY main {{
  x = f32[1,4,2] parameter(0)
  v = f32[2,2] constant({{{{4, 1}}, {{2, 0.5}}}})
  first = f32[1,4,2] dot(x, v), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
  init = f32[] constant({init})
  joined = f32[1,2] reduce(first, init), dimensions={{1}}, to_apply={reducer}
  w = f32[2,2] constant({{{{1, 0.25}}, {{4, 3}}}})
  second = f32[1,2] dot(joined, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = (f32[1,2]) tuple(second)
}}
"
            );
            equalize(&mut hlo::parse(&text).expect("a module")).expect("valid")
        };
        for (reducer, init) in [("sum", "0"), ("largest", "0"), ("largest", "-inf")] {
            assert_eq!(pairs(reducer, init), 1, "{reducer} from {init}");
        }
        for (reducer, init) in [("sum", "5"), ("largest", "5"), ("largest", "-5"), ("squares", "0")] {
            assert_eq!(pairs(reducer, init), 0, "{reducer} from {init}");
        }
    }
}
