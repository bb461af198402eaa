//! Quantized arrays: integers that stand for real numbers, and the two forms in which HLO converts
//! between them.
//!
//! - quantize: `convert(clamp(least, round-nearest-even(real / scale) + zero point, most))`,
//! - dequantize: `(convert(integers) - zero point) * scale`.
//!
//! Scales and zero points are constants: one for the whole array, or one for each index of a
//! dimension. Front ends build these forms with [`Quantization::quantize`] and
//! [`Quantization::dequantize`], and passes read them with [`Quantize::of`] and [`Dequantize::of`],
//! which also read what the simplifier leaves of them.

use crate::analysis::ChannelConstant;
use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::opcode::Op;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::{Error, Result};

/// Adds an instruction of a shape.
pub type Add<'a> = dyn FnMut(Op, Shape, &[InstructionId]) -> Result<InstructionId> + 'a;

/// The meaning of integers: `real = (integer - zero point) * scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    /// Type of the integers.
    pub storage: PrimitiveType,
    /// The least and the largest integer in use.
    pub range: [i64; 2],
    /// Type of the real numbers.
    pub expressed: PrimitiveType,
    /// The scales, numbers of the type `expressed`.
    pub scale: ChannelConstant,
    /// The zero points, which are integers, along the same dimension as the scales.
    pub zero_point: ChannelConstant,
}

impl Quantization {
    /// Returns a quantization to all integers of a type, with one `f32` scale and one zero point.
    pub fn of_array(storage: PrimitiveType, scale: f32, zero_point: i64) -> Self {
        Self {
            storage,
            range: integer_range(storage),
            expressed: PrimitiveType::F32,
            scale: ChannelConstant::of_all(scale.into()),
            zero_point: ChannelConstant::of_all(zero_point as f64),
        }
    }

    /// Returns the dimension whose indices have their own scales or zero points.
    pub fn dimension(&self) -> Option<usize> {
        self.scale.dimension.or(self.zero_point.dimension)
    }

    /// Adds instructions that quantize an array of real numbers, and returns the integers.
    pub fn quantize(
        &self,
        real: InstructionId,
        shape: &ArrayShape,
        add: &mut Add<'_>,
    ) -> Result<InstructionId> {
        let shape = &shape.with_element_type(self.expressed);
        let whole = || Shape::Array(shape.clone());
        let scale = spread(&self.scale, shape, add)?;
        let scaled = add(Op::Divide {}, whole(), &[real, scale])?;
        let mut steps = add(Op::RoundNearestEven {}, whole(), &[scaled])?;
        if self.zero_point.only() != Some(0.0) {
            let zero_point = spread(&self.zero_point, shape, add)?;
            steps = add(Op::Add {}, whole(), &[steps, zero_point])?;
        }
        let [least, most] = self.range.map(|end| ChannelConstant::of_all(end as f64));
        let (least, most) = (spread(&least, shape, add)?, spread(&most, shape, add)?);
        let clamped = add(Op::Clamp {}, whole(), &[least, steps, most])?;
        add(Op::Convert {}, shape.with_element_type(self.storage).into(), &[clamped])
    }

    /// Adds instructions that dequantize an array of integers, and returns the real numbers.
    pub fn dequantize(
        &self,
        integers: InstructionId,
        shape: &ArrayShape,
        add: &mut Add<'_>,
    ) -> Result<InstructionId> {
        let shape = &shape.with_element_type(self.expressed);
        let whole = || Shape::Array(shape.clone());
        let mut real = add(Op::Convert {}, whole(), &[integers])?;
        if self.zero_point.only() != Some(0.0) {
            let zero_point = spread(&self.zero_point, shape, add)?;
            real = add(Op::Subtract {}, whole(), &[real, zero_point])?;
        }
        let scale = spread(&self.scale, shape, add)?;
        add(Op::Multiply {}, whole(), &[real, scale])
    }
}

/// Returns the least and the largest integer of a type, cut to the range of `i64`.
pub fn integer_range(element_type: PrimitiveType) -> [i64; 2] {
    let width = element_type.bit_width().clamp(1, 64);
    if element_type.is_signed_integer() {
        [i64::MIN >> (64 - width), i64::MAX >> (64 - width)]
    } else {
        [0, i64::try_from(u64::MAX >> (64 - width)).unwrap_or(i64::MAX)]
    }
}

/// Adds a constant and its broadcast to a shape, in the element type of the shape.
pub fn spread(constant: &ChannelConstant, shape: &ArrayShape, add: &mut Add<'_>) -> Result<InstructionId> {
    let (sizes, dimensions) = match constant.dimension {
        None => (Vec::new(), Vec::new()),
        Some(dimension) if dimension < shape.rank() => (vec![shape.size(dimension)], vec![dimension]),
        Some(dimension) => {
            return Err(Error::invalid(format!(
                "the quantized dimension {dimension} is out of range for {shape}"
            )));
        }
    };
    let vector = ArrayShape::new(shape.element_type, &sizes);
    if vector.element_count() != constant.values.len() as i64 {
        return Err(Error::invalid(format!("{} scales do not match {shape}", constant.values.len())));
    }
    let numbers = constant.values.iter().map(|&value| Scalar::Float(value));
    let literal = Literal::from_scalars(vector.clone(), numbers);
    let id = add(Op::Constant { literal }, vector.into(), &[])?;
    if shape.rank() == 0 {
        return Ok(id);
    }
    add(Op::Broadcast { dimensions }, Shape::Array(shape.clone()), &[id])
}

/// Integers and the real numbers that are computed from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Dequantize {
    /// The integers.
    pub integers: InstructionId,
    /// Their meaning. The range is that of the type.
    pub quantization: Quantization,
}

impl Dequantize {
    /// Reads `(convert(integers) - zero point) * scale`. A missing zero point is 0, a missing scale
    /// is 1.
    pub fn of(computation: &Computation, id: InstructionId) -> Option<Self> {
        let expressed = computation[id].shape().as_array()?.element_type;
        let (centered, scale) = match computation[id].op() {
            Op::Multiply {} => ChannelConstant::beside(computation, id)?,
            _ => (id, ChannelConstant::of_all(1.0)),
        };
        let (converted, zero_point) = match computation[centered].op() {
            Op::Add {} => {
                let (x, offset) = ChannelConstant::beside(computation, centered)?;
                (x, offset.map(|value| 0.0 - value))
            }
            Op::Subtract {} => ChannelConstant::beside(computation, centered)?,
            _ => (centered, ChannelConstant::of_all(0.0)),
        };
        let Op::Convert {} = computation[converted].op() else { return None };
        let integers = computation[converted].operands()[0];
        let storage = computation[integers].shape().as_array()?.element_type;
        let is_regular = storage.is_integer()
            && expressed.is_floating_point()
            && zero_point.values.iter().all(|value| value.fract() == 0.0)
            && scale.values.iter().all(|&value| value > 0.0 && value.is_finite());
        let range = integer_range(storage);
        let quantization = Quantization { storage, range, expressed, scale, zero_point };
        let same = quantization.zero_point.combine(&quantization.scale, |a, _| a).is_some();
        (is_regular && same).then_some(Self { integers, quantization })
    }
}

/// Real numbers and the integers that they are rounded to.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantize {
    /// The real numbers.
    pub real: InstructionId,
    /// The factors of the real numbers, if these are multiplied instead of divided by the scales.
    pub factor: Option<ChannelConstant>,
    /// The meaning of the integers.
    pub quantization: Quantization,
    /// True if halves are rounded away from zero, not to even numbers.
    pub is_away: bool,
}

impl Quantize {
    /// Reads `convert(clamp(least, round-nearest-even(real / scale) + zero point, most))`, also if
    /// the real numbers are multiplied by the reciprocal, or halves rounded away from zero.
    /// Conversions clamp to the limits of the type themselves.
    pub fn of(computation: &Computation, id: InstructionId) -> Option<Self> {
        let Op::Convert {} = computation[id].op() else { return None };
        let storage = computation[id].shape().as_array()?.element_type;
        let clamped = computation[id].operands()[0];
        let expressed = computation[clamped].shape().as_array()?.element_type;
        // Limits and integers are numbers of `i64`, and of `f64` on the way.
        if !storage.is_integer() || storage.bit_width() > 32 || !expressed.is_floating_point() {
            return None;
        }
        let (steps, range) = unclamped(computation, clamped, integer_range(storage))?;
        let (rounded, zero_point) = match computation[steps].op() {
            Op::Add {} => ChannelConstant::beside(computation, steps)?,
            Op::Subtract {} => {
                let (x, offset) = ChannelConstant::beside(computation, steps)?;
                (x, offset.map(|value| 0.0 - value))
            }
            _ => (steps, ChannelConstant::of_all(0.0)),
        };
        let is_away = match computation[rounded].op() {
            Op::RoundNearestEven {} => false,
            Op::RoundNearestAfz {} => true,
            _ => return None,
        };
        let scaled = computation[rounded].operands()[0];
        let (real, scale, factor) = match computation[scaled].op() {
            Op::Multiply {} => {
                let (x, factor) = ChannelConstant::beside(computation, scaled)?;
                (x, factor.map(|value| nearest(expressed, 1.0 / value)), Some(factor))
            }
            Op::Divide {} => {
                let (x, scale) = ChannelConstant::beside(computation, scaled)?;
                (x, scale, None)
            }
            _ => (scaled, ChannelConstant::of_all(1.0), None),
        };
        let is_regular = zero_point.values.iter().all(|value| value.fract() == 0.0)
            && scale.values.iter().all(|&value| value > 0.0 && value.is_finite());
        let quantization = Quantization { storage, range, expressed, scale, zero_point };
        let same = quantization.zero_point.combine(&quantization.scale, |a, _| a).is_some();
        (is_regular && same).then_some(Self { real, factor, quantization, is_away })
    }
}

/// Returns the operand of clamps, and the integers within the limits of all of them.
fn unclamped(
    computation: &Computation,
    mut id: InstructionId,
    mut range: [i64; 2],
) -> Option<(InstructionId, [i64; 2])> {
    while let Op::Clamp {} | Op::Maximum {} | Op::Minimum {} = computation[id].op() {
        let (inner, [least, most]) = limits(computation, id)?;
        // The conversion truncates limits as it truncates numbers.
        range = [range[0].max(least.trunc() as i64), range[1].min(most.trunc() as i64)];
        id = inner;
    }
    (range[0] < range[1]).then_some((id, range))
}

/// Returns the operand of a clamp, or of a maximum or minimum with a constant, and the
/// limits, which are numbers.
pub fn limits(computation: &Computation, id: InstructionId) -> Option<(InstructionId, [f64; 2])> {
    let (x, limits) = match computation[id].op() {
        Op::Clamp {} => {
            let &[least, x, most] = computation[id].operands() else { return None };
            let number = |id| ChannelConstant::of(computation, id)?.only();
            (x, [number(least)?, number(most)?])
        }
        Op::Maximum {} => {
            let (x, least) = ChannelConstant::beside(computation, id)?;
            (x, [least.only()?, f64::INFINITY])
        }
        Op::Minimum {} => {
            let (x, most) = ChannelConstant::beside(computation, id)?;
            (x, [f64::NEG_INFINITY, most.only()?])
        }
        _ => return None,
    };
    limits.iter().all(|limit| !limit.is_nan()).then_some((x, limits))
}

/// Returns the number of a type nearest to a number.
fn nearest(element_type: PrimitiveType, value: f64) -> f64 {
    if element_type == PrimitiveType::F32 { f64::from(value as f32) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::OpMetadata;
    use PrimitiveType::*;

    /// Returns a computation of one parameter, and what `body` adds to it.
    fn computation(
        element_type: PrimitiveType,
        body: impl FnOnce(InstructionId, &ArrayShape, &mut Add<'_>) -> Result<InstructionId>,
    ) -> (Computation, InstructionId) {
        let mut computation = Computation::new("main");
        let shape = ArrayShape::new(element_type, &[2, 3]);
        let parameter = Op::Parameter { number: 0 };
        let x = computation.add("x", parameter, shape.clone().into(), &[], OpMetadata::default());
        let root = body(x, &shape, &mut |op, shape, operands| {
            Ok(computation.add("", op, shape, operands, OpMetadata::default()))
        });
        (computation, root.unwrap())
    }

    fn per_channel() -> Quantization {
        Quantization {
            storage: S8,
            range: [-127, 127],
            expressed: F32,
            scale: ChannelConstant { dimension: Some(1), values: vec![0.5, 0.25, 3.0] },
            zero_point: ChannelConstant { dimension: Some(1), values: vec![0.0, -4.0, 7.0] },
        }
    }

    #[test]
    fn forms_are_read_as_they_are_built() {
        for quantization in
            [per_channel(), Quantization::of_array(U8, 0.1, 128), Quantization::of_array(S16, 2.0, 0)]
        {
            let (built, id) = computation(F32, |x, shape, add| quantization.quantize(x, shape, add));
            let view = Quantize::of(&built, id).unwrap();
            assert_eq!((view.real, &view.quantization), (built.parameters()[0], &quantization));
            let (built, id) =
                computation(quantization.storage, |x, shape, add| quantization.dequantize(x, shape, add));
            let view = Dequantize::of(&built, id).unwrap();
            let range = integer_range(quantization.storage);
            let expected = Quantization { range, ..quantization };
            assert_eq!((view.integers, view.quantization), (built.parameters()[0], expected));
        }
    }

    #[test]
    fn other_spellings_are_read() {
        let (built, id) = computation(F32, |x, shape, add| {
            let number = |value: f64, add: &mut Add<'_>| spread(&ChannelConstant::of_all(value), shape, add);
            let whole = || Shape::Array(shape.clone());
            let (inverse, least, most) = (number(8.0, add)?, number(-3.5, add)?, number(0.5, add)?);
            let scaled = add(Op::Multiply {}, whole(), &[inverse, x])?;
            let rounded = add(Op::RoundNearestEven {}, whole(), &[scaled])?;
            let raised = add(Op::Maximum {}, whole(), &[least, rounded])?;
            let cut = add(Op::Minimum {}, whole(), &[raised, most])?;
            add(Op::Convert {}, shape.with_element_type(S8).into(), &[cut])
        });
        let view = Quantize::of(&built, id).unwrap();
        assert_eq!(
            view.quantization,
            Quantization { range: [-3, 0], ..Quantization::of_array(S8, 0.125, 0) }
        );
    }

    #[test]
    fn other_arithmetic_is_not_read() {
        // A zero point that is not an integer, and a negative scale.
        for (offset, factor) in [(0.5, 2.0), (1.0, -2.0)] {
            let (built, id) = computation(S8, |x, shape, add| {
                let shape = &shape.with_element_type(F32);
                let whole = || Shape::Array(shape.clone());
                let converted = add(Op::Convert {}, whole(), &[x])?;
                let offset = spread(&ChannelConstant::of_all(offset), shape, add)?;
                let centered = add(Op::Subtract {}, whole(), &[converted, offset])?;
                let factor = spread(&ChannelConstant::of_all(factor), shape, add)?;
                add(Op::Multiply {}, whole(), &[centered, factor])
            });
            assert_eq!(Dequantize::of(&built, id), None);
        }
        // Rounded toward zero.
        let (built, id) = computation(F32, |x, shape, add| {
            let scale = spread(&ChannelConstant::of_all(0.5), shape, add)?;
            let scaled = add(Op::Divide {}, Shape::Array(shape.clone()), &[x, scale])?;
            add(Op::Convert {}, shape.with_element_type(S8).into(), &[scaled])
        });
        assert_eq!(Quantize::of(&built, id), None);
    }
}
