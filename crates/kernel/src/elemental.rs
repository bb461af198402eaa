//! Single opcodes on elements in registers: the semantics of every elementwise opcode for every
//! element type.
//!
//! Lanes are independent, and all operands have the same number of them. Results are in register
//! form, rounded or wrapped to their type: each instruction rounds separately.

mod comparison;
mod complex;
mod complex_functions;
pub(crate) mod conversion;
mod integer;
mod real;

pub use comparison::{compare, total_order_key};
pub use conversion::{bits_of, convert, from_bits};
pub use real::{maximum, minimum};

use crate::element::{Element, is_narrow_float, normalize, register_type};
use crate::narrow;
use hlo::{
    Op, binary_ops, calling_ops, carried_ops, identity_ops, movement_ops, numeric_ops, unary_ops, value_ops,
};
use nest::{BinaryOp, FunctionBuilder, Type, UnaryOp, ValueId};
use shape::PrimitiveType;
use support::{Error, Result};
use target::Target;

/// Emits an elementwise opcode. `types` are the element types of the operands, and `result` is that
/// of the result.
pub fn emit(
    b: &mut FunctionBuilder,
    target: &Target,
    op: &Op,
    types: &[PrimitiveType],
    result: PrimitiveType,
    operands: &[Element],
) -> Result<Element> {
    match op {
        unary_ops!() => unary(b, target, op, types[0], operands[0]),
        binary_ops!() => binary(b, target, op, types[0], operands[0], operands[1]),
        Op::Clamp {} => {
            let raised = binary(b, target, &Op::Maximum {}, result, operands[1], operands[0])?;
            binary(b, target, &Op::Minimum {}, result, raised, operands[2])
        }
        Op::Compare { direction, comparison_type } => {
            compare(b, *direction, *comparison_type, types[0], operands[0], operands[1]).map(Element::Real)
        }
        Op::Complex {} => Ok(Element::Complex(operands[0].real(), operands[1].real())),
        Op::Convert {} => convert(b, types[0], result, operands[0]),
        Op::StochasticConvert {} => {
            let (x, random) = (operands[0].real(), operands[1].real());
            conversion::stochastic(b, target, types[0], result, x, random).map(Element::Real)
        }
        identity_ops!() => Ok(operands[0]),
        Op::ReducePrecision { exponent_bits, mantissa_bits } => {
            let value =
                real::reduce_precision(b, types[0], *exponent_bits, *mantissa_bits, operands[0].real());
            Ok(Element::Real(normalize(b, result, value)))
        }
        Op::Select {} => {
            let condition = operands[0].real();
            Ok(operands[1].zip(operands[2], |x, y| b.select(condition, x, y)))
        }
        Op::Constant { literal } => constant(b, literal, 0, 1),
        Op::BitcastConvert {} => {
            let bits = bits_of(b, types[0], operands[0].real());
            Ok(Element::Real(from_bits(b, result, bits)))
        }
        movement_ops!() | calling_ops!() | numeric_ops!() | value_ops!() | carried_ops!() => {
            Err(Error::unsupported(format!("opcode {} as an elementwise operation", op.opcode().name())))
        }
    }
}

fn unary(
    b: &mut FunctionBuilder,
    target: &Target,
    op: &Op,
    element_type: PrimitiveType,
    operand: Element,
) -> Result<Element> {
    match element_type {
        PrimitiveType::Pred => match op {
            Op::Not {} => Ok(Element::Real(b.unary(UnaryOp::Not, operand.real()))),
            _ => Err(undefined(op, element_type)),
        },
        t if t.is_integer() => integer::unary(b, op, t, operand.real()).map(Element::Real),
        t if t.is_complex() => complex::unary(b, target, op, t, operand),
        t if narrow::has_negatives(t) && matches!(op, Op::Abs {} | Op::Negate {}) => {
            let op = if matches!(op, Op::Abs {}) { UnaryOp::Abs } else { UnaryOp::Negate };
            Ok(Element::Real(narrow::change_sign(b, t, op, operand.real())))
        }
        t => {
            let value = real::unary(b, target, op, operand.real())?;
            let is_number = !matches!(op, Op::IsFinite {});
            Ok(Element::Real(if is_number { normalize(b, t, value) } else { value }))
        }
    }
}

fn binary(
    b: &mut FunctionBuilder,
    target: &Target,
    op: &Op,
    element_type: PrimitiveType,
    lhs: Element,
    rhs: Element,
) -> Result<Element> {
    match element_type {
        PrimitiveType::Pred => pred_binary(b, op, lhs.real(), rhs.real()).map(Element::Real),
        t if t.is_integer() => integer::binary(b, target, op, t, lhs.real(), rhs.real()).map(Element::Real),
        t if t.is_complex() => complex::binary(b, target, op, t, lhs, rhs),
        t => {
            let value = real::binary(b, target, op, lhs.real(), rhs.real())?;
            Ok(Element::Real(normalize(b, t, value)))
        }
    }
}

/// Arithmetic on truth values is integer arithmetic whose result is compared with zero.
fn pred_binary(b: &mut FunctionBuilder, op: &Op, x: ValueId, y: ValueId) -> Result<ValueId> {
    Ok(match op {
        Op::Add {} | Op::Maximum {} | Op::Or {} => b.or(x, y),
        Op::Multiply {} | Op::Minimum {} | Op::And {} => b.and(x, y),
        Op::Xor {} => b.binary(BinaryOp::Xor, x, y),
        Op::Power {} => {
            let not = b.unary(UnaryOp::Not, y);
            b.or(x, not)
        }
        _ => return Err(undefined(op, PrimitiveType::Pred)),
    })
}

/// Returns the error for an opcode that is not defined for an element type.
fn undefined(op: &Op, element_type: PrimitiveType) -> Error {
    Error::unsupported(format!("opcode {} of {element_type}", op.opcode().name()))
}

/// Returns element `linear` of a constant array in `lanes` lanes.
pub fn constant(
    b: &mut FunctionBuilder,
    literal: &shape::Literal,
    linear: usize,
    lanes: u32,
) -> Result<Element> {
    let element_type = match literal {
        shape::Literal::Array { shape, .. } => shape.element_type,
        shape::Literal::Tuple(_) => return Err(Error::internal("expected an array constant, got a tuple")),
    };
    let ty = Type::vector(register_type(element_type), lanes);
    Ok(match literal.scalar_at(linear) {
        shape::Scalar::Pred(value) => Element::Real(b.integer(ty, value.into())),
        shape::Scalar::Signed(value) => Element::Real(b.integer(ty, value)),
        // Constants are sign extended from the width of the register.
        shape::Scalar::Unsigned(value) => {
            Element::Real(b.integer(ty, narrow::sign_extended(ty.scalar, value)))
        }
        shape::Scalar::Float(_) if is_narrow_float(element_type) => {
            let size = element_type.byte_size();
            let bytes = &literal.bytes()[linear * size..(linear + 1) * size];
            let bits = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            Element::Real(narrow::constant(b, element_type, bits, lanes))
        }
        shape::Scalar::Float(value) => Element::Real(b.float(ty, value)),
        shape::Scalar::Complex(re, im) => {
            let re = b.float(ty, re);
            Element::Complex(re, b.float(ty, im))
        }
    })
}
