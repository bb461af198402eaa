//! Conversions of real numbers to integers, in the two forms that front ends produce.

use hlo::analysis::ChannelConstant;
use hlo::quantization::{Quantize, integer_range};
use hlo::{Computation, InstructionId, Op};
use shape::PrimitiveType;

/// Rounding of numbers of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// `clamp(round-nearest-even(real / scale) + zero point)`.
    NearestEven,
    /// The same, with halves rounded away from zero.
    NearestAway,
    /// `floor((clamp(low, real, high) - low) / scale + 0.5)`: TensorFlow's fake quantization, which
    /// counts steps from the lower end.
    HalfUpFromLow,
}

/// A conversion of `f32` numbers to integers with constant parameters.
#[derive(Clone, Debug)]
pub(super) struct Rounded {
    pub(super) real: InstructionId,
    pub(super) storage: PrimitiveType,
    pub(super) rounding: Rounding,
    pub(super) scale: ChannelConstant,
    /// The factor in place of a division by the scale.
    factor: Option<ChannelConstant>,
    /// The integer of the number 0, or the number of the integer 0 if steps count from there.
    pub(super) origin: ChannelConstant,
    /// The least and the largest integer.
    pub(super) range: [i64; 2],
    /// The largest number, if steps count from the lower end.
    high: ChannelConstant,
}

impl Rounded {
    /// Reads an instruction that returns integers.
    pub(super) fn of(computation: &Computation, id: InstructionId) -> Option<Self> {
        if let Some(Quantize { real, factor, quantization: q, is_away }) = Quantize::of(computation, id) {
            let is_single = q.expressed == PrimitiveType::F32;
            return is_single.then(|| Self {
                real,
                storage: q.storage,
                rounding: if is_away { Rounding::NearestAway } else { Rounding::NearestEven },
                scale: q.scale,
                factor,
                origin: q.zero_point,
                range: q.range,
                high: ChannelConstant::of_all(0.0),
            });
        }
        Self::from_low(computation, id)
    }

    fn from_low(computation: &Computation, id: InstructionId) -> Option<Self> {
        let Op::Convert {} = computation[id].op() else { return None };
        let storage = computation[id].shape().as_array()?.element_type;
        let floor = computation[id].operands()[0];
        let is_single = computation[floor].shape().as_array()?.element_type == PrimitiveType::F32;
        let Op::Floor {} = computation[floor].op() else { return None };
        let (raised, half) = binary(computation, computation[floor].operands()[0], &Op::Add {})?;
        let (steps, scale) = scaled(computation, raised)?;
        // The simplifier removes a lower end of 0.
        let from_zero = (steps, ChannelConstant::of_all(0.0));
        let (clamped, low) = binary(computation, steps, &Op::Subtract {}).unwrap_or(from_zero);
        let Op::Clamp {} = computation[clamped].op() else { return None };
        let &[least, real, most] = computation[clamped].operands() else { return None };
        let (least, high) =
            (ChannelConstant::of(computation, least)?, ChannelConstant::of(computation, most)?);
        let is_positive = scale.values.iter().all(|&value| value > 0.0 && value.is_finite());
        if !(storage.is_integer()
            && storage.bit_width() <= 32
            && is_single
            && is_positive
            && least == low
            && half.only() == Some(0.5))
        {
            return None;
        }
        let widths =
            high.combine(&low, |high, low| high - low)?.combine(&scale, |width, scale| width / scale)?;
        let most = widths.map(|steps| (steps + 0.5).floor()).only()?;
        // Limits in the wrong order, or NaN.
        if most.is_nan() || most < 0.0 {
            return None;
        }
        let range = [0, (most as i64).min(integer_range(storage)[1])];
        let rounding = Rounding::HalfUpFromLow;
        Some(Self { real, storage, rounding, scale, factor: None, origin: low, range, high })
    }

    /// Returns the integer of a number, at an index of the dimension of the scales. The operations
    /// are those of the instructions, one by one.
    pub(super) fn integer(&self, real: f32, index: usize) -> i64 {
        let (scale, origin) = (self.scale.at(index) as f32, self.origin.at(index) as f32);
        if real.is_nan() {
            return 0;
        }
        let scaled = self.factor.as_ref().map_or(real / scale, |factor| real * factor.at(index) as f32);
        let steps = match self.rounding {
            Rounding::NearestEven => scaled.round_ties_even() + origin,
            Rounding::NearestAway => scaled.round() + origin,
            Rounding::HalfUpFromLow => {
                let high = self.high.at(index) as f32;
                ((real.max(origin).min(high) - origin) / scale + 0.5).floor()
            }
        };
        (steps as i64).clamp(self.range[0], self.range[1])
    }

    /// Returns the numbers that are added to scaled real numbers before the rounding, without the
    /// half that turns it into rounding down.
    pub(super) fn shift(&self) -> Option<ChannelConstant> {
        match self.rounding {
            Rounding::NearestEven | Rounding::NearestAway => Some(self.origin.clone()),
            Rounding::HalfUpFromLow => self.origin.combine(&self.scale, |low, scale| -low / scale),
        }
    }

    /// True if real numbers are multiplied instead of divided.
    pub(super) fn is_multiplied(&self) -> bool {
        self.factor.is_some() || self.scale.only() == Some(1.0)
    }
}

/// Returns the operand of an instruction that is not a constant, and the one that is.
pub(super) fn binary(
    computation: &Computation,
    id: InstructionId,
    op: &Op,
) -> Option<(InstructionId, ChannelConstant)> {
    if computation[id].op() != op {
        return None;
    }
    ChannelConstant::beside(computation, id)
}

/// Reads `x / scale`, or `x * (1 / scale)` for a power of two.
fn scaled(computation: &Computation, id: InstructionId) -> Option<(InstructionId, ChannelConstant)> {
    if let Some(divided) = binary(computation, id, &Op::Divide {}) {
        return Some(divided);
    }
    let (x, factor) = binary(computation, id, &Op::Multiply {})?;
    let is_power = factor.values.iter().all(|value| value.to_bits() & ((1 << 52) - 1) == 0);
    is_power.then(|| (x, factor.map(|value| 1.0 / value)))
}
