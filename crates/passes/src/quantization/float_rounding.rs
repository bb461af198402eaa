//! Rounding of `f32` to integers by an addition.

use super::edit::Edit;
use hlo::analysis::ChannelConstant;
use hlo::{ComputationBuilder, ComputationId, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use support::Result;

/// Rounds what is added to it to an integer, which is then in the lowest bits: the unit in its last
/// place is 1.
pub(super) const ROUNDER: f32 = 12_582_912.0;

/// Half the distance of [`ROUNDER`] to numbers with another unit in the last place.
pub(super) const MOST: f64 = 2_097_152.0;

/// Fewest operations on integers that take longer than arithmetic of `f32`.
pub(super) const FEW_OPERATIONS: usize = 6;

/// The integer that a number is rounded to. Its magnitude is at most [`MOST`].
pub(super) fn integer(number: f32) -> i64 {
    i64::from((number + ROUNDER).to_bits() as i32 - ROUNDER.to_bits() as i32)
}

/// The least and the largest value of a type of bytes.
pub(super) fn of_bytes(element_type: PrimitiveType) -> Option<[i64; 2]> {
    match element_type {
        PrimitiveType::S8 => Some([i8::MIN.into(), i8::MAX.into()]),
        PrimitiveType::U8 => Some([0, u8::MAX.into()]),
        _ => None,
    }
}

/// Adds the conversion of integers to bytes, after limiting them.
pub(super) fn limited(
    edit: &mut Edit<'_>,
    integers: InstructionId,
    limits: [i64; 2],
    element_type: PrimitiveType,
) -> InstructionId {
    let shape = edit.computation[integers].shape().expect_array().clone();
    let scalar = ArrayShape::new(shape.element_type, &[]);
    let [least, most] = limits.map(|end| edit.spread(&ChannelConstant::of_all(end as f64), &scalar));
    let clamped = edit.add(Op::Clamp {}, &shape, &[least, integers, most]);
    edit.convert(clamped, element_type)
}

/// Functions of scalars that change bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Functions {
    /// The bits of an `f32`.
    bits: ComputationId,
    /// A positive `f32` with the sign of an `s32`.
    with_sign: ComputationId,
}

impl Functions {
    /// Adds them to a module.
    pub(super) fn add(module: &mut Module) -> Result<Self> {
        let f32 = || Shape::array(PrimitiveType::F32, &[]);
        let s32 = || Shape::array(PrimitiveType::S32, &[]);
        let mut b = ComputationBuilder::new("bits");
        let x = b.parameter("x", f32());
        let root = b.op_with_shape(module, s32(), Op::BitcastConvert {}, &[x])?;
        let bits = module.add_computation(b.finish(root));
        let mut b = ComputationBuilder::new("with_sign");
        let (sign, x) = (b.parameter("sign", s32()), b.parameter("x", f32()));
        let upper = b.constant(Literal::scalar(i32::MIN));
        let sign = b.op_with_shape(module, s32(), Op::And {}, &[sign, upper])?;
        let x = b.op_with_shape(module, s32(), Op::BitcastConvert {}, &[x])?;
        let x = b.op_with_shape(module, s32(), Op::Or {}, &[x, sign])?;
        let root = b.op_with_shape(module, f32(), Op::BitcastConvert {}, &[x])?;
        let with_sign = module.add_computation(b.finish(root));
        Ok(Self { bits, with_sign })
    }

    /// Adds the rounding of numbers to integers, and an integer.
    pub(super) fn rounded(self, edit: &mut Edit<'_>, number: InstructionId, zero: i32) -> InstructionId {
        let shape = edit.computation[number].shape().expect_array().clone();
        let rounder = edit.spread(&ChannelConstant::of_all(ROUNDER.into()), &shape);
        let sum = edit.add(Op::Add {}, &shape, &[number, rounder]);
        let integers = shape.with_element_type(PrimitiveType::S32);
        let bits = edit.add(map(self.bits, &shape), &integers, &[sum]);
        let zero = ChannelConstant::of_all(f64::from(ROUNDER.to_bits()) - f64::from(zero));
        let zero = edit.spread(&zero, &integers);
        edit.add(Op::Subtract {}, &integers, &[bits, zero])
    }

    /// Adds the conversion of positive numbers to those with the signs of integers.
    pub(super) fn with_sign(
        self,
        edit: &mut Edit<'_>,
        sign: InstructionId,
        number: InstructionId,
    ) -> InstructionId {
        let shape = edit.computation[number].shape().expect_array().clone();
        edit.add(map(self.with_sign, &shape), &shape, &[sign, number])
    }
}

fn map(to_apply: ComputationId, shape: &ArrayShape) -> Op {
    Op::Map { dimensions: (0..shape.rank()).collect(), to_apply }
}
