//! Integers that comparisons and sums read as floats, as converters write it for ops without
//! integers.

use super::interval::Interval;
use crate::{Computation, InstructionId, Op};
use shape::{PrimitiveType, Scalar};

/// An operand of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compared {
    /// An integer.
    Value(InstructionId),
    /// The number of a constant of floats.
    Number(i128),
}

impl Compared {
    /// Returns its interval, given that of instructions.
    pub(super) fn interval(
        self,
        interval_of: &dyn Fn(InstructionId) -> Option<Interval>,
    ) -> Option<Interval> {
        match self {
            Self::Value(id) => interval_of(id),
            Self::Number(number) => Some(Interval::exactly(number)),
        }
    }
}

/// Returns integers that are in the same order as the operands of a comparison.
///
/// Floats are converted integers or whole constants, one of them within the integers that its type
/// has all of: the other one may be rounded, but not to its other side.
pub(super) fn integers(
    computation: &Computation,
    [a, b]: [InstructionId; 2],
    interval_of: &dyn Fn(InstructionId) -> Option<Interval>,
) -> Option<[Compared; 2]> {
    let element_type = computation[a].shape().as_array()?.element_type;
    if !element_type.is_floating_point() {
        return Some([Compared::Value(a), Compared::Value(b)]);
    }
    let all = whole_numbers(element_type)?;
    let integers = [whole(computation, a)?, whole(computation, b)?];
    let is_exact =
        |compared: &Compared| compared.interval(interval_of).is_some_and(|found| all.contains(found));
    integers.iter().any(is_exact).then_some(integers)
}

/// Returns the largest integer up to which a type of floats has all integers, and to which no other
/// one is rounded. `None` for other types and for floats of 8 bits or fewer.
pub fn largest_exact_integer(element_type: PrimitiveType) -> Option<i64> {
    let digits = match element_type {
        PrimitiveType::F64 => 53,
        PrimitiveType::F32 => 24,
        PrimitiveType::F16 => 11,
        PrimitiveType::Bf16 => 8,
        _ => return None,
    };
    Some((1 << digits) - 1)
}

/// Returns the interval of these integers.
pub(super) fn whole_numbers(element_type: PrimitiveType) -> Option<Interval> {
    let largest = i128::from(largest_exact_integer(element_type)?);
    Some(Interval::new(-largest, largest))
}

/// Returns the instructions with the integers of operands.
pub(super) fn instructions(computation: &Computation, operands: &[InstructionId]) -> Vec<InstructionId> {
    let instruction = |&operand: &InstructionId| match whole(computation, operand) {
        Some(Compared::Value(integer)) => integer,
        _ => operand,
    };
    operands.iter().map(instruction).collect()
}

/// Returns the integer that an instruction converts to a float, or that a constant of floats is.
pub(super) fn whole(computation: &Computation, mut id: InstructionId) -> Option<Compared> {
    loop {
        let instruction = &computation[id];
        let operand = instruction.operands().first().copied();
        match instruction.op() {
            Op::Constant { literal } if literal.array_shape().element_count() == 1 => {
                let Scalar::Float(number) = literal.scalar_at(0) else { return None };
                // A total order has another place for -0.
                let is_other_zero = number == 0.0 && number.is_sign_negative();
                let is_whole = number.fract() == 0.0 && number.abs() < 2f64.powi(62) && !is_other_zero;
                return is_whole.then_some(Compared::Number(number as i128));
            }
            Op::Reshape {} | Op::Copy {} => id = operand?,
            Op::Convert {} => {
                let operand = operand?;
                let types = [id, operand].map(|id| Some(computation[id].shape().as_array()?.element_type));
                let [Some(to), Some(from)] = types else { return None };
                let is_widened = to.is_floating_point() && from.is_integer();
                return is_widened.then_some(Compared::Value(operand));
            }
            _ => return None,
        }
    }
}
