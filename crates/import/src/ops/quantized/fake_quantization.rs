//! Fake quantization and its gradients: rounds floats to the steps that integers of few bits would
//! have.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("FakeQuantWithMinMaxArgs", |cx| {
        let steps = Steps::of_attributes(cx)?;
        let x = cx.input(0)?;
        steps.quantize(cx, x)
    }),
    rule("FakeQuantWithMinMaxVars", |cx| {
        let x = cx.input(0)?;
        let steps = Steps::of_inputs(cx, 1, x, &[])?;
        steps.quantize(cx, x)
    }),
    rule("FakeQuantWithMinMaxVarsPerChannel", |cx| {
        let x = cx.input(0)?;
        let channel = channel(cx, x)?;
        let steps = Steps::of_inputs(cx, 1, x, &[channel])?;
        steps.quantize(cx, x)
    }),
    rule("FakeQuantWithMinMaxArgsGradient", |cx| {
        let steps = Steps::of_attributes(cx)?;
        let (gradient, x) = gradient_inputs(cx)?;
        steps.gradient(cx, gradient, x)
    }),
    rule_many("FakeQuantWithMinMaxVarsGradient", |cx| vars_gradient(cx, false)),
    rule_many("FakeQuantWithMinMaxVarsPerChannelGradient", |cx| vars_gradient(cx, true)),
];

/// Returns the dimension of the channels, the last one.
fn channel(cx: &NodeContext<'_, '_>, x: InstructionId) -> Result<usize> {
    cx.rank(x).checked_sub(1).ok_or_else(|| cx.invalid("expected an array with channels, got a scalar"))
}

/// Returns the smallest and the largest integer.
fn integers(cx: &NodeContext<'_, '_>) -> Result<(f32, f32)> {
    let bits = cx.attributes().int_or("num_bits", 8)?;
    cx.check((2..=16).contains(&bits), || format!("num_bits: expected 2 to 16, got {bits}"))?;
    let least = if cx.attributes().bool_or("narrow_range", false)? { 1.0 } else { 0.0 };
    Ok((least, ((1u32 << bits) - 1) as f32))
}

/// Returns the type of the numbers of steps.
fn storage(least: f32, most: f32) -> PrimitiveType {
    if most - least <= f32::from(u8::MAX) { PrimitiveType::U8 } else { PrimitiveType::U16 }
}

/// A range shifted such that 0 is one of its steps. The fields are scalars, or have one element for
/// each channel.
struct Steps {
    low: InstructionId,
    high: InstructionId,
    /// The size of a step.
    scale: InstructionId,
    /// Index of the step that is 0.
    zero: InstructionId,
    /// True if the range is 0 to 0. `None` if it cannot be.
    is_empty: Option<InstructionId>,
    /// The type of the numbers of steps, if the range is known when compiling.
    storage: Option<PrimitiveType>,
    /// The dimension of the channels, if there is one range for each.
    dimensions: Vec<usize>,
}

impl Steps {
    /// Derives the steps from the attributes `min` and `max`, in float32 arithmetic.
    fn of_attributes(cx: &mut NodeContext<'_, '_>) -> Result<Self> {
        let attributes = &cx.attributes();
        let (min, max) = (attributes.float_or("min", -6.0)?, attributes.float_or("max", 6.0)?);
        cx.check(min < max && (max - min).is_finite(), || {
            format!("expected min < max, got {min} and {max}")
        })?;
        let (least, most) = integers(cx)?;
        let scale = (max - min) / (most - least);
        let zero = (least - min / scale).clamp(least, most).round();
        let (low, high) = ((least - zero) * scale, (most - zero) * scale);
        let scalar = |cx: &mut NodeContext<'_, '_>, value: f32| cx.scalar(PrimitiveType::F32, value.into());
        Ok(Self {
            low: scalar(cx, low),
            high: scalar(cx, high),
            scale: scalar(cx, scale),
            zero: scalar(cx, zero - least),
            is_empty: None,
            storage: Some(storage(least, most)),
            dimensions: Vec::new(),
        })
    }

    /// Derives the steps from inputs `k` and `k + 1`, which have the sizes of `dimensions` of `x`.
    fn of_inputs(
        cx: &mut NodeContext<'_, '_>,
        k: usize,
        x: InstructionId,
        dimensions: &[usize],
    ) -> Result<Self> {
        let (min, max) = (cx.input(k)?, cx.input(k + 1)?);
        let sizes = cx.sizes(x);
        let expected: Vec<i64> = dimensions.iter().map(|&d| sizes[d]).collect();
        let actual = (cx.sizes(min), cx.sizes(max));
        cx.check(actual.0 == expected && actual.1 == expected, || {
            format!(
                "min and max: expected shape {}, got {} and {}",
                list(&expected),
                list(&actual.0),
                list(&actual.1)
            )
        })?;
        let (least, most) = integers(cx)?;
        let known = cx.fold(min).zip(cx.fold(max));
        let ends = known.and_then(|(min, max)| Some((min.floats()?, max.floats()?)));
        let is_known = ends.is_some_and(|(min, max)| {
            let mut widths = min.iter().zip(&max).map(|(min, max)| max - min);
            widths.all(|width| width > 0.0 && width.is_finite())
        });
        let storage = is_known.then(|| storage(least, most));
        let range = cx.sub(max, min)?;
        let count = cx.splat_like(range, f64::from(most - least))?;
        let scale = cx.div(range, count)?;
        let below = cx.div(min, scale)?;
        let (least, most) = (cx.splat_like(min, least.into())?, cx.splat_like(min, most.into())?);
        let zero = cx.sub(least, below)?;
        let zero = cx.op(Op::Clamp {}, &[least, zero, most])?;
        let zero = cx.op(Op::RoundNearestAfz {}, &[zero])?;
        let (low, high) = (cx.sub(least, zero)?, cx.sub(most, zero)?);
        let (low, high) = (cx.mul(low, scale)?, cx.mul(high, scale)?);
        let zero = cx.sub(zero, least)?;
        let low_is_zero = cx.compare_scalar(ComparisonDirection::Eq, min, 0.0)?;
        let high_is_zero = cx.compare_scalar(ComparisonDirection::Eq, max, 0.0)?;
        let is_empty = cx.op(Op::And {}, &[low_is_zero, high_is_zero])?;
        let is_empty = (!is_known).then_some(is_empty);
        Ok(Self { low, high, scale, zero, is_empty, storage, dimensions: dimensions.to_vec() })
    }

    fn wide(
        &self,
        cx: &mut NodeContext<'_, '_>,
        id: InstructionId,
        x: InstructionId,
    ) -> Result<InstructionId> {
        let sizes = cx.sizes(x);
        cx.broadcast(id, &sizes, &self.dimensions)
    }

    /// Rounds to the nearest step, halves up.
    fn quantize(&self, cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
        let (low, high) = (self.wide(cx, self.low, x)?, self.wide(cx, self.high, x)?);
        let (scale, zero) = (self.wide(cx, self.scale, x)?, self.wide(cx, self.zero, x)?);
        let clamped = cx.op(Op::Clamp {}, &[low, x, high])?;
        let from_low = cx.sub(clamped, low)?;
        let steps = cx.div(from_low, scale)?;
        let raised = cx.add_scalar(steps, 0.5)?;
        let mut step = cx.op(Op::Floor {}, &[raised])?;
        if let Some(storage) = self.storage {
            // Integers, which contractions can multiply.
            step = cx.convert(step, storage)?;
            step = cx.convert(step, PrimitiveType::F32)?;
        }
        // Count from the step that is 0, so that 0 remains 0.
        let step = cx.sub(step, zero)?;
        let value = cx.mul(step, scale)?;
        let Some(is_empty) = self.is_empty else { return Ok(value) };
        let is_empty = self.wide(cx, is_empty, x)?;
        let nothing = cx.splat_like(x, 0.0)?;
        cx.select(is_empty, nothing, value)
    }

    /// Returns the gradient at inputs within the range, and 0 elsewhere.
    fn gradient(
        &self,
        cx: &mut NodeContext<'_, '_>,
        gradient: InstructionId,
        x: InstructionId,
    ) -> Result<InstructionId> {
        let (low, high) = (self.wide(cx, self.low, x)?, self.wide(cx, self.high, x)?);
        let above = cx.compare(ComparisonDirection::Ge, x, low)?;
        let below = cx.compare(ComparisonDirection::Le, x, high)?;
        let mut inside = cx.op(Op::And {}, &[above, below])?;
        if let Some(is_empty) = self.is_empty {
            let is_empty = self.wide(cx, is_empty, x)?;
            inside = cx.op(Op::Or {}, &[inside, is_empty])?;
        }
        let zero = cx.splat_like(x, 0.0)?;
        cx.select(inside, gradient, zero)
    }

    /// Returns the sum of the gradients at inputs beyond an end.
    fn gradient_of_end(
        &self,
        cx: &mut NodeContext<'_, '_>,
        gradient: InstructionId,
        x: InstructionId,
        end: InstructionId,
        beyond: ComparisonDirection,
    ) -> Result<InstructionId> {
        let wide = self.wide(cx, end, x)?;
        let is_beyond = cx.compare(beyond, x, wide)?;
        let zero = cx.splat_like(x, 0.0)?;
        let share = cx.select(is_beyond, gradient, zero)?;
        let dimensions: Vec<usize> = (0..cx.rank(x)).filter(|d| !self.dimensions.contains(d)).collect();
        let sum = cx.reduce(share, Reducer::Add, &dimensions)?;
        let Some(is_empty) = self.is_empty else { return Ok(sum) };
        let nothing = cx.splat_like(sum, 0.0)?;
        cx.select(is_empty, nothing, sum)
    }
}

/// Returns the gradient and the input, which must have one shape.
fn gradient_inputs(cx: &mut NodeContext<'_, '_>) -> Result<(InstructionId, InstructionId)> {
    let (gradient, x) = (cx.input(0)?, cx.input(1)?);
    let sizes = (cx.sizes(gradient), cx.sizes(x));
    cx.check(sizes.0 == sizes.1, || {
        format!("gradients and inputs have different shapes: {} and {}", list(&sizes.0), list(&sizes.1))
    })?;
    Ok((gradient, x))
}

/// Returns the gradients of the input and of both ends.
fn vars_gradient(cx: &mut NodeContext<'_, '_>, per_channel: bool) -> Result<Vec<InstructionId>> {
    let (gradient, x) = gradient_inputs(cx)?;
    let dimensions: Vec<usize> = if per_channel { vec![channel(cx, x)?] } else { Vec::new() };
    let steps = Steps::of_inputs(cx, 2, x, &dimensions)?;
    let of_input = steps.gradient(cx, gradient, x)?;
    let of_low = steps.gradient_of_end(cx, gradient, x, steps.low, ComparisonDirection::Lt)?;
    let of_high = steps.gradient_of_end(cx, gradient, x, steps.high, ComparisonDirection::Gt)?;
    Ok(vec![of_input, of_low, of_high])
}
