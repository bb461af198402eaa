//! Chains of exact integer arithmetic that never decreases: a number that is scaled, shifted,
//! rounded, and limited.

use hlo::analysis::ChannelConstant;
use hlo::{ComparisonDirection, Computation, InstructionId, Op};
use shape::PrimitiveType;

/// A function of one integer for each channel, which never decreases.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The array whose elements vary.
    pub(super) source: InstructionId,
    /// The dimension of channels, if there are several.
    pub(super) dimension: Option<usize>,
    /// From the source to the result.
    steps: Vec<(Step, ChannelConstant)>,
}

/// A step of a chain, with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Add,
    /// Subtracts the constant from numbers below zero.
    LowerNegative,
    Multiply,
    ShiftLeft,
    ShiftRight,
    AtLeast,
    AtMost,
    /// Multiplies by a number in `f64`, and rounds to the nearest integer, halves away from zero.
    Scale,
    /// The number must have at most this many bits, with its sign.
    Fit,
}

/// A line below which a chain's results are the next integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) offset: f64,
}

/// Operations of a product in fixed-point arithmetic and its rounding.
const SCALE_OPERATIONS: usize = 6;

/// Maximum number of steps.
const MAX_STEPS: usize = 48;

impl Chain {
    /// Reads the chain that ends at `root`, back to what widens an array, or to what is no step.
    pub(super) fn of(computation: &Computation, root: InstructionId) -> Option<Self> {
        let (mut steps, mut source) = (Vec::new(), root);
        while steps.len() < MAX_STEPS {
            let Some((before, mut new)) = step(computation, source) else { break };
            let bits = |id: InstructionId| element_type(computation, id).map(PrimitiveType::bit_width);
            let is_widened = matches!(computation[source].op(), Op::Convert {})
                && (bits(before) < bits(source) || new.iter().any(|(step, _)| *step == Step::Scale));
            source = before;
            steps.append(&mut new);
            if is_widened {
                break;
            }
        }
        steps.reverse();
        let dimensions: Vec<usize> = steps.iter().filter_map(|(_, constant)| constant.dimension).collect();
        let dimension = dimensions.first().copied();
        dimensions.iter().all(|&d| Some(d) == dimension).then_some(Self { source, dimension, steps })
    }

    /// Number of operations of the steps other than conversions. Scaling in `f64` counts as many as
    /// in integers.
    pub(super) fn operations(&self) -> usize {
        let count = |step: &Step| match step {
            Step::Fit => 0,
            Step::Scale => SCALE_OPERATIONS,
            _ => 1,
        };
        self.steps.iter().map(|(step, _)| count(step)).sum()
    }

    /// Number of channels that may differ.
    pub(super) fn channels(&self) -> usize {
        self.steps.iter().map(|(_, constant)| constant.values.len()).max().unwrap_or(1)
    }

    /// The result for a number. `None` if a step does not fit its type. If the results of two
    /// numbers exist, so do those of all between them.
    pub(super) fn result(&self, channel: usize, mut x: i64) -> Option<i64> {
        for (step, constant) in &self.steps {
            let factor = constant.at(channel);
            let number = factor as i64;
            x = match step {
                Step::Add => x.checked_add(number)?,
                Step::LowerNegative => x.checked_sub(if x < 0 { number } else { 0 })?,
                Step::Multiply => x.checked_mul(number)?,
                Step::ShiftLeft => x.checked_mul(1i64.checked_shl(number as u32)?)?,
                Step::ShiftRight => x >> number,
                Step::AtLeast => x.max(number),
                Step::AtMost => x.min(number),
                Step::Scale => Some((x as f64 * factor).round()).filter(|x| x.abs() < 2f64.powi(53))? as i64,
                Step::Fit => {
                    let rest = x >> (number - 1);
                    (rest == 0 || rest == -1).then_some(x)?
                }
            };
        }
        Some(x)
    }

    /// The line below which the results for numbers of one sign are the next integers.
    pub(super) fn line(&self, channel: usize, is_negative: bool) -> Line {
        let mut line = Line { slope: 1.0, offset: 0.0 };
        for (step, constant) in &self.steps {
            let number = constant.at(channel);
            match step {
                Step::Add => line.offset += number,
                Step::LowerNegative if is_negative => line.offset -= number,
                Step::Multiply => line = line.times(number),
                // Halves below zero are rounded down.
                Step::Scale => {
                    line = line.times(number);
                    line.offset += if is_negative { 0.5 - 2f64.powi(-31) } else { 0.5 };
                }
                Step::ShiftLeft => line = line.times(2f64.powf(number)),
                Step::ShiftRight => line = line.times(2f64.powf(-number)),
                Step::LowerNegative | Step::AtLeast | Step::AtMost | Step::Fit => {}
            }
        }
        line
    }
}

impl Line {
    fn times(self, factor: f64) -> Self {
        Self { slope: self.slope * factor, offset: self.offset * factor }
    }
}

/// The operand of an instruction that varies, and the instruction's steps, last one first.
fn step(
    computation: &Computation,
    id: InstructionId,
) -> Option<(InstructionId, Vec<(Step, ChannelConstant)>)> {
    let instruction = &computation[id];
    let ty = element_type(computation, id)?;
    if !ty.is_signed_integer() || ty.is_subbyte_integer() {
        return None;
    }
    let operands = instruction.operands();
    let last = || Some((operands[0], constant(computation, operands[1])?));
    let either = || last().or_else(|| Some((operands[1], constant(computation, operands[0])?)));
    let one = |(x, number): (InstructionId, ChannelConstant), step: Step| Some((x, vec![(step, number)]));
    let shift = |found: (InstructionId, ChannelConstant), step: Step| {
        let is_within = found.1.values.iter().all(|&n| (0.0..ty.bit_width() as f64).contains(&n));
        if is_within { one(found, step) } else { None }
    };
    let (x, mut steps) = match instruction.op() {
        Op::Convert {} if element_type(computation, operands[0])? == PrimitiveType::F64 => {
            one(scaled(computation, operands[0])?, Step::Scale)?
        }
        Op::Convert {} => {
            let from = element_type(computation, operands[0])?;
            let is_plain = from.is_integer() && !from.is_subbyte_integer();
            is_plain.then_some((operands[0], Vec::new()))?
        }
        Op::Add {} => match either() {
            Some(found) => one(found, Step::Add)?,
            None => lowered_by_sign(computation, operands)?,
        },
        Op::Subtract {} => match last() {
            Some((x, number)) => one((x, number.map(|n| -n)), Step::Add)?,
            None => lowered_by_choice(computation, operands)?,
        },
        Op::Multiply {} => {
            let found = either()?;
            if found.1.values.iter().any(|&factor| factor < 0.0) {
                return None;
            }
            one(found, Step::Multiply)?
        }
        Op::ShiftLeft {} => shift(last()?, Step::ShiftLeft)?,
        Op::ShiftRightArithmetic {} => shift(last()?, Step::ShiftRight)?,
        Op::Maximum {} => one(either()?, Step::AtLeast)?,
        Op::Minimum {} => one(either()?, Step::AtMost)?,
        Op::Clamp {} => {
            let ends = [constant(computation, operands[0])?, constant(computation, operands[2])?];
            let [least, most] = ends;
            (operands[1], vec![(Step::AtMost, most), (Step::AtLeast, least)])
        }
        _ => return None,
    };
    // Numbers of 64 bits are checked at each step.
    if ty.bit_width() < 64 {
        steps.insert(0, (Step::Fit, ChannelConstant::of_all(ty.bit_width() as f64)));
    }
    Some((x, steps))
}

/// `round-nearest-afz(x * factor)` of an integer that `f64` holds exactly.
fn scaled(computation: &Computation, id: InstructionId) -> Option<(InstructionId, ChannelConstant)> {
    let Op::RoundNearestAfz {} = computation[id].op() else { return None };
    let product = computation[id].operands()[0];
    let Op::Multiply {} = computation[product].op() else { return None };
    let (wide, factor) = ChannelConstant::beside(computation, product)?;
    let Op::Convert {} = computation[wide].op() else { return None };
    let x = computation[wide].operands()[0];
    let ty = element_type(computation, x)?;
    let is_exact = ty.is_signed_integer() && ty.bit_width() <= 32;
    (is_exact && factor.values.iter().all(|&n| (0.0..1e9).contains(&n))).then_some((x, factor))
}

/// `x + (x >> bits)`: one less for numbers below zero.
fn lowered_by_sign(
    computation: &Computation,
    operands: &[InstructionId],
) -> Option<(InstructionId, Vec<(Step, ChannelConstant)>)> {
    let &[a, b] = operands else { return None };
    let is_sign_of = |sign: InstructionId, x: InstructionId| {
        let Op::ShiftRightArithmetic {} = computation[sign].op() else { return None };
        let bits = element_type(computation, x)?.bit_width() as f64;
        let count = constant(computation, computation[sign].operands()[1])?;
        (computation[sign].operands()[0] == x && count.only() == Some(bits - 1.0)).then_some(x)
    };
    let x = is_sign_of(b, a).or_else(|| is_sign_of(a, b))?;
    Some((x, vec![(Step::LowerNegative, ChannelConstant::of_all(1.0))]))
}

/// `x + number - (x < 0 ? lower : 0)`.
fn lowered_by_choice(
    computation: &Computation,
    operands: &[InstructionId],
) -> Option<(InstructionId, Vec<(Step, ChannelConstant)>)> {
    let &[sum, choice] = operands else { return None };
    let Op::Select {} = computation[choice].op() else { return None };
    let &[condition, lower, none] = computation[choice].operands() else { return None };
    let Op::Compare { direction: ComparisonDirection::Lt, .. } = computation[condition].op() else {
        return None;
    };
    let &[x, zero] = computation[condition].operands() else { return None };
    let [lower, none, zero] = [lower, none, zero].map(|id| constant(computation, id));
    let is_zero = |constant: &Option<ChannelConstant>| constant.as_ref()?.only().filter(|&n| n == 0.0);
    (is_zero(&none).is_some() && is_zero(&zero).is_some()).then_some(())?;
    let lower = lower.filter(|lower| lower.values.iter().all(|&n| n >= 0.0))?;
    let mut steps = vec![(Step::LowerNegative, lower)];
    if sum != x {
        let Op::Add {} = computation[sum].op() else { return None };
        let &[a, b] = computation[sum].operands() else { return None };
        let other = if a == x { b } else { a };
        (a == x || b == x).then_some(())?;
        steps.insert(0, (Step::Add, constant(computation, other)?));
    }
    Some((x, steps))
}

/// The values of a constant, or of arithmetic on constants.
fn constant(computation: &Computation, id: InstructionId) -> Option<ChannelConstant> {
    let ty = element_type(computation, id)?;
    if !ty.is_integer() {
        return None;
    }
    // Larger numbers may not be exact in f64.
    let is_exact = |constant: &ChannelConstant| constant.values.iter().all(|n| n.abs() <= 2f64.powi(53));
    if let Some(constant) = ChannelConstant::of(computation, id) {
        return Some(constant).filter(is_exact);
    }
    let operand = |k: usize| constant(computation, computation[id].operands()[k]);
    let pair = |f: fn(f64, f64) -> f64| operand(0)?.combine(&operand(1)?, f);
    let value = match computation[id].op() {
        Op::Convert {} => operand(0),
        Op::Broadcast { dimensions } => {
            let source = computation[id].operands()[0];
            let constant = constant(computation, source)?;
            let dimension = constant.dimension.map(|d| dimensions[d]);
            Some(ChannelConstant { dimension, ..constant })
        }
        Op::Add {} => pair(|a, b| a + b),
        Op::Minimum {} => pair(f64::min),
        Op::Maximum {} => pair(f64::max),
        Op::ShiftLeft {} => pair(|a, n| if (0.0..64.0).contains(&n) { a * 2f64.powf(n) } else { f64::NAN }),
        Op::ShiftRightArithmetic {} => {
            pair(|a, n| if (0.0..64.0).contains(&n) { (a * 2f64.powf(-n)).floor() } else { f64::NAN })
        }
        _ => None,
    };
    let end = 2f64.powi(ty.bit_width() as i32 - i32::from(ty.is_signed_integer()));
    let fits = |n: &f64| (if ty.is_signed_integer() { -end } else { 0.0 }..end).contains(n);
    value.filter(is_exact).filter(|constant| constant.values.iter().all(fits))
}

fn element_type(computation: &Computation, id: InstructionId) -> Option<PrimitiveType> {
    computation[id].shape().as_array().map(|shape| shape.element_type)
}
