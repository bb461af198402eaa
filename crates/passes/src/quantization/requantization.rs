//! The arithmetic between integers and the integers that they are rounded to.

use super::constants::rewrite_all;
use super::edit::Edit;
use super::forms::{Rounded, Rounding, binary};
use crate::pass::{Changed, Pass};
use crate::query::is_static;
use hlo::analysis::ChannelConstant;
use hlo::quantization::{integer_range, limits as clamp};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, PrimitiveType};
use support::Result;

/// `quantize(clamp(convert(x) * a + convert(y) * b + c)) => convert(clamp(round(convert(x) * a' +
/// convert(y) * b' + c')))`, where x and y are integers, and the constants of the right side
/// contain the scale of the quantization. A division and several multiplications and clamps become
/// one multiplication for each array of integers, one addition, and one clamp.
///
/// Changes the rounding: constants are rounded once more, and sums are rounded at another scale. An
/// integer changes by at most one, if the number is about halfway between two. Numbers of
/// more than 2^18 steps, which are added to round a sum, stay.
pub struct RequantizationFolding;

impl Pass for RequantizationFolding {
    fn name(&self) -> &'static str {
        "requantization-folding"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        rewrite_all(module, rewritten)
    }
}

/// Maximum number of arrays of integers in a sum.
const MAX_TERMS: usize = 4;

/// Maximum number of steps that an addition on the way may have. A larger one rounds what it is
/// added to, perhaps on purpose.
const MAX_OFFSET: f64 = 262_144.0;

/// Maximum number of instructions from the quantization to an array of integers.
const MAX_DEPTH: usize = 24;

fn rewritten(computation: &mut Computation, root: InstructionId) -> Option<InstructionId> {
    if !is_static(computation, root) {
        return None;
    }
    let rounded = Rounded::of(computation, root)?;
    let mut limits = [f64::NEG_INFINITY, f64::INFINITY];
    let mut real = rounded.real;
    // The operand of clamps. The outer ones apply to the limits of the inner ones.
    while let Some((inner, [least, most])) = clamp(computation, real) {
        if !has_one_user(computation, real) {
            break;
        }
        limits = [least, most].map(|limit| limit.max(limits[0]).min(limits[1]));
        real = inner;
    }
    let linear = Linear::of(computation, real, MAX_DEPTH)?;
    // Others that read sums of a contraction would read them from memory.
    if !(has_one_user(computation, real) || linear.is_of_bytes(computation)) {
        return None;
    }
    let least_scale = rounded.scale.values.iter().copied().fold(f64::INFINITY, f64::min);
    if linear.largest_offset > MAX_OFFSET * least_scale {
        return None;
    }
    let sum = Sum::of(&rounded, &linear)?;
    if let Some(integers) = identity(computation, root, &rounded, &linear, limits) {
        return Some(integers);
    }
    // Only a product with a constant is left of a conversion: nothing to gain.
    let range = sum.range(&rounded, limits)?;
    let shape = computation[root].shape().as_array()?.with_element_type(PrimitiveType::F32);
    if let [_] = linear.terms[..]
        && linear.instructions <= 1
        && rounded.real == real
        && rounded.is_multiplied()
    {
        return None;
    }
    let mut edit = Edit::at(computation, root);
    let mut total: Option<InstructionId> = None;
    for (leaf, factor) in &sum.terms {
        let factor = edit.spread(factor, &shape);
        let product = edit.add(Op::Multiply {}, &shape, &[*leaf, factor]);
        total = Some(match total {
            Some(total) => edit.add(Op::Add {}, &shape, &[total, product]),
            None => product,
        });
    }
    let mut total = total?;
    if sum.offset.only() != Some(0.0) {
        let offset = edit.spread(&sum.offset, &shape);
        total = edit.add(Op::Add {}, &shape, &[total, offset]);
    }
    let mut steps = match rounded.rounding {
        Rounding::NearestEven => edit.add(Op::RoundNearestEven {}, &shape, &[total]),
        Rounding::NearestAway => edit.add(Op::RoundNearestAfz {}, &shape, &[total]),
        Rounding::HalfUpFromLow => edit.add(Op::Floor {}, &shape, &[total]),
    };
    if rounded.rounding != Rounding::HalfUpFromLow && rounded.origin.only() != Some(0.0) {
        let zero_points = edit.spread(&rounded.origin, &shape);
        steps = edit.add(Op::Add {}, &shape, &[steps, zero_points]);
    }
    steps = clamped(&mut edit, steps, range, rounded.storage, &shape);
    Some(edit.convert(steps, rounded.storage))
}

/// Limits numbers, unless the conversion that follows does that.
fn clamped(
    edit: &mut Edit<'_>,
    steps: InstructionId,
    range: [i64; 2],
    storage: PrimitiveType,
    shape: &ArrayShape,
) -> InstructionId {
    if range == integer_range(storage) {
        return steps;
    }
    let [least, most] = range.map(|end| edit.spread(&ChannelConstant::of_all(end as f64), shape));
    edit.add(Op::Clamp {}, shape, &[least, steps, most])
}

/// Returns the integers themselves if they are quantized as they were before.
fn identity(
    computation: &Computation,
    root: InstructionId,
    rounded: &Rounded,
    linear: &Linear,
    limits: [f64; 2],
) -> Option<InstructionId> {
    let [(leaf, factor)] = &linear.terms[..] else { return None };
    let integers = computation[*leaf].operands()[0];
    let storage = computation[integers].shape().as_array()?.element_type;
    // Wider integers are rounded when they become `f32`.
    if storage != rounded.storage || storage.bit_width() > 24 || limits != [f64::NEG_INFINITY, f64::INFINITY]
    {
        return None;
    }
    if rounded.range != integer_range(storage) {
        return None;
    }
    let ratio = factor.combine(&rounded.scale, |factor, scale| factor / scale)?;
    let offset = linear.offset.combine(&rounded.scale, |offset, scale| offset / scale)?;
    let shift = offset.combine(&rounded.shift()?, |offset, shift| offset + shift)?;
    // The integer is a multiple of the scale, except for roundings.
    let bits = storage.bit_width();
    let is_one = |&ratio: &f64| (ratio - 1.0).abs() * 2f64.powi(bits as i32) < 0.25;
    let is_same = ratio.values.iter().all(is_one) && shift.values.iter().all(|shift| shift.abs() < 0.125);
    (is_same && computation[integers].shape() == computation[root].shape()).then_some(integers)
}

fn has_one_user(computation: &Computation, id: InstructionId) -> bool {
    computation[id].users().len() == 1 && computation.root() != id
}

/// `sum(leaf * factor) + offset`, where leaves are integers converted to `f32`.
struct Linear {
    terms: Vec<(InstructionId, ChannelConstant)>,
    offset: ChannelConstant,
    /// The largest magnitude of an offset on the way.
    largest_offset: f64,
    /// The number of multiplications and additions.
    instructions: usize,
}

impl Linear {
    fn of(computation: &Computation, id: InstructionId, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        if let Some(leaf) = Self::leaf(computation, id) {
            return Some(leaf);
        }
        let operands = computation[id].operands();
        let inner = |id: InstructionId| {
            let linear = Self::of(computation, id, depth)?;
            (has_one_user(computation, id) || linear.is_of_bytes(computation)).then_some(linear)
        };
        let mut linear = match computation[id].op() {
            op @ (Op::Add {} | Op::Multiply {} | Op::Divide {} | Op::Subtract {}) => {
                match binary(computation, id, op) {
                    Some((x, constant)) => inner(x)?.with_constant(op, &constant)?,
                    None => inner(operands[0])?.with_linear(op, inner(operands[1])?)?,
                }
            }
            _ => return None,
        };
        linear.instructions += 1;
        (linear.terms.len() <= MAX_TERMS).then_some(linear)
    }

    /// Reads the conversion of integers to `f32`.
    fn leaf(computation: &Computation, id: InstructionId) -> Option<Self> {
        let Op::Convert {} = computation[id].op() else { return None };
        let from = computation[computation[id].operands()[0]].shape().as_array()?.element_type;
        let is_single = computation[id].shape().as_array()?.element_type == PrimitiveType::F32;
        (is_single && from.is_integer() && from.bit_width() <= 32).then(|| Self {
            terms: vec![(id, ChannelConstant::of_all(1.0))],
            offset: ChannelConstant::of_all(0.0),
            largest_offset: 0.0,
            instructions: 0,
        })
    }

    /// True if all terms are small to read.
    fn is_of_bytes(&self, computation: &Computation) -> bool {
        let is_byte = |id: InstructionId| {
            let integers = computation[id].operands()[0];
            computation[integers].shape().as_array().is_some_and(|s| s.element_type.bit_width() <= 16)
        };
        self.terms.iter().all(|&(id, _)| is_byte(id))
    }

    fn with_constant(self, op: &Op, constant: &ChannelConstant) -> Option<Self> {
        let apply = |a: f64, b: f64| match op {
            Op::Multiply {} => a * b,
            _ => a / b,
        };
        let Self { mut terms, mut offset, mut largest_offset, instructions } = self;
        match op {
            Op::Add {} => offset = offset.combine(constant, |a, b| a + b)?,
            Op::Subtract {} => offset = offset.combine(constant, |a, b| a - b)?,
            _ => {
                offset = offset.combine(constant, apply)?;
                largest_offset *= magnitude(&constant.map(|value| apply(1.0, value)));
                for (_, factor) in &mut terms {
                    *factor = factor.combine(constant, apply)?;
                }
            }
        }
        largest_offset = largest_offset.max(magnitude(&offset));
        Some(Self { terms, offset, largest_offset, instructions })
    }

    fn with_linear(self, op: &Op, other: Self) -> Option<Self> {
        let sign = match op {
            Op::Add {} => 1.0,
            Op::Subtract {} => -1.0,
            _ => return None,
        };
        let mut terms = self.terms;
        terms.extend(other.terms.into_iter().map(|(leaf, factor)| (leaf, factor.map(|value| sign * value))));
        let offset = self.offset.combine(&other.offset, |a, b| a + sign * b)?;
        let largest_offset = self.largest_offset.max(other.largest_offset).max(magnitude(&offset));
        Some(Self { terms, offset, largest_offset, instructions: self.instructions + other.instructions })
    }
}

/// The largest magnitude of the numbers.
fn magnitude(constant: &ChannelConstant) -> f64 {
    constant.values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

/// A sum whose rounded value is the number of steps: from the integer 0, or from the zero point.
struct Sum {
    terms: Vec<(InstructionId, ChannelConstant)>,
    offset: ChannelConstant,
}

impl Sum {
    fn of(rounded: &Rounded, linear: &Linear) -> Option<Self> {
        let scaled =
            |constant: &ChannelConstant| constant.combine(&rounded.scale, |value, scale| value / scale);
        let single = |constant: ChannelConstant| constant.map(|value| f64::from(value as f32));
        let mut terms = Vec::new();
        for (leaf, factor) in &linear.terms {
            terms.push((*leaf, single(scaled(factor)?)));
        }
        let mut offset = scaled(&linear.offset)?;
        if rounded.rounding == Rounding::HalfUpFromLow {
            offset = offset.combine(&rounded.shift()?, |offset, shift| offset + shift + 0.5)?;
        }
        let is_finite = |constant: &ChannelConstant| constant.values.iter().all(|&v| (v as f32).is_finite());
        let is_regular = is_finite(&offset) && terms.iter().all(|(_, factor)| is_finite(factor));
        is_regular.then(|| Self { terms, offset: single(offset) })
    }

    /// Returns the least and the largest integer, those of numbers within limits.
    fn range(&self, rounded: &Rounded, limits: [f64; 2]) -> Option<[i64; 2]> {
        let mut range = rounded.range;
        if limits != [f64::NEG_INFINITY, f64::INFINITY] {
            // Rounding is monotonic: limits apply to integers as well.
            let (scale, _) = (rounded.scale.only()?, rounded.origin.only()?);
            let [least, most] = limits.map(|limit| limit.clamp(-1e30, 1e30) as f32);
            let ends = [least, most].map(|limit| rounded.integer(limit, 0));
            range = [range[0].max(ends[0]), range[1].min(ends[1])];
            if scale <= 0.0 || range[0] > range[1] {
                return None;
            }
        }
        Some(range)
    }
}
