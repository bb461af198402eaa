//! CHLO: functions that StableHLO leaves to compilers, and operations with implicit broadcasting.

use super::Convert;
use super::shaping::expand;
use crate::walk::Context;
use composite::{Expression, special};
use hlo::{ComparisonDirection, ComparisonType, InstructionId, Op};
use shape::{ArrayShape, PrimitiveType, Shape};
use support::{Error, Result};

macro_rules! opcodes {
    ($name:expr, $($chlo:literal => $op:ident),* $(,)?) => {
        match $name {
            $($chlo => Some((|context| {
                let operands = context.operands()?;
                context.emit(Op::$op {}, &operands)
            }) as Convert),)*
            _ => None,
        }
    };
}

macro_rules! functions {
    ($name:expr, $($chlo:literal => $function:path),* $(,)?) => {
        match $name {
            $($chlo => Some((|context| unary(context, $function)) as Convert),)*
            _ => None,
        }
    };
}

pub(super) fn find(name: &str) -> Option<Convert> {
    let opcode: Option<Convert> = opcodes!(
        name,
        "chlo.acos" => Acos,
        "chlo.acosh" => Acosh,
        "chlo.asin" => Asin,
        "chlo.asinh" => Asinh,
        "chlo.atanh" => Atanh,
        "chlo.cosh" => Cosh,
        "chlo.erf" => Erf,
        "chlo.sinh" => Sinh,
        "chlo.tan" => Tan,
    );
    let function: Option<Convert> = functions!(
        name,
        "chlo.bessel_i1e" => special::bessel_i1e,
        "chlo.digamma" => special::digamma,
        "chlo.erf_inv" => special::erf_inv,
        "chlo.lgamma" => special::lgamma,
    );
    opcode.or(function).or(match name {
        "chlo.atan" => Some(atan),
        "chlo.erfc" => Some(erfc),
        "chlo.square" => Some(square),
        "chlo.conj" => Some(conj),
        "chlo.is_inf" => Some(is_inf),
        "chlo.is_pos_inf" => Some(|context| is_signed_infinity(context, f64::INFINITY)),
        "chlo.is_neg_inf" => Some(|context| is_signed_infinity(context, f64::NEG_INFINITY)),
        "chlo.polygamma" => Some(|context| binary(context, special::polygamma)),
        "chlo.zeta" => Some(|context| binary(context, special::zeta)),
        "chlo.next_after" => Some(next_after),
        "chlo.mulhi" => Some(mulhi),
        "chlo.top_k" | "chlo.topk" => Some(top_k),
        "chlo.constant_like" => Some(constant_like),
        "chlo.ragged_dot" => Some(super::ragged_dot::ragged_dot),
        "chlo.scan" => Some(super::scan::scan),
        _ if name.starts_with("chlo.broadcast_") => Some(broadcasting),
        _ => None,
    })
}

/// Returns a wider type in which to compute a function, so that its result is rounded once.
fn wide(element_type: PrimitiveType) -> PrimitiveType {
    match element_type {
        PrimitiveType::F32 | PrimitiveType::F64 => PrimitiveType::F64,
        _ => PrimitiveType::F32,
    }
}

fn unary(
    context: &mut Context<'_, '_>,
    function: for<'f> fn(Expression<'f>) -> Expression<'f>,
) -> Result<Vec<InstructionId>> {
    let x = context.operand(0)?;
    let element_type = context.array(x)?.element_type;
    context.composite(&[x], |_, operands| {
        vec![function(operands[0].convert(wide(element_type))).convert(element_type)]
    })
}

fn binary(
    context: &mut Context<'_, '_>,
    function: for<'f> fn(Expression<'f>, Expression<'f>) -> Expression<'f>,
) -> Result<Vec<InstructionId>> {
    let operands = [context.operand(0)?, context.operand(1)?];
    let element_type = context.array(operands[0])?.element_type;
    context.composite(&operands, |_, operands| {
        let [a, b] = [operands[0], operands[1]].map(|operand| operand.convert(wide(element_type)));
        vec![function(a, b).convert(element_type)]
    })
}

/// `atan2(x, 1)`.
fn atan(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = context.operand(0)?;
    let array = context.array(x)?;
    let one = context.number(array.element_type, 1);
    let one = context.spread(one, &array)?;
    context.emit(Op::Atan2 {}, &[x, one])
}

/// `1 - erf(x)`.
fn erfc(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = context.operand(0)?;
    let element_type = context.array(x)?.element_type;
    context.composite(&[x], |_, operands| {
        vec![match element_type {
            PrimitiveType::F64 => special::erfc_in_pairs(operands[0]),
            _ => special::erfc_of_single(operands[0].convert(PrimitiveType::F32)).convert(element_type),
        }]
    })
}

fn square(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = context.operand(0)?;
    context.emit(Op::Multiply {}, &[x, x])
}

fn conj(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = context.operand(0)?;
    if !context.array(x)?.element_type.is_complex() {
        return Ok(vec![x]);
    }
    let real = context.op(Op::Real {}, &[x])?;
    let imag = context.op(Op::Imag {}, &[x])?;
    let imag = context.op(Op::Negate {}, &[imag])?;
    context.emit(Op::Complex {}, &[real, imag])
}

fn is_inf(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = context.operand(0)?;
    let x = context.op(Op::Abs {}, &[x])?;
    equals_infinity(context, x, f64::INFINITY)
}

fn is_signed_infinity(context: &mut Context<'_, '_>, infinity: f64) -> Result<Vec<InstructionId>> {
    let x = context.operand(0)?;
    equals_infinity(context, x, infinity)
}

fn equals_infinity(
    context: &mut Context<'_, '_>,
    x: InstructionId,
    infinity: f64,
) -> Result<Vec<InstructionId>> {
    context.composite(&[x], |_, operands| vec![operands[0].equal(operands[0].splat(infinity))])
}

/// The next representable number after `x` in the direction of `y`.
fn next_after(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = [context.operand(0)?, context.operand(1)?];
    let element_type = context.array(operands[0])?.element_type;
    let (bits, count) = match element_type {
        PrimitiveType::F64 => (PrimitiveType::S64, 64),
        PrimitiveType::F32 => (PrimitiveType::S32, 32),
        PrimitiveType::F16 | PrimitiveType::Bf16 => (PrimitiveType::S16, 16),
        other => {
            return Err(Error::unsupported(format!("next_after does not support elements of type {other}")));
        }
    };
    let smallest = match count {
        64 => f64::from_bits(1),
        32 => f64::from(f32::from_bits(1)),
        _ if element_type == PrimitiveType::F16 => 2f64.powi(-24),
        _ => 2f64.powi(-133),
    };
    context.composite(&operands, |function, operands| {
        let (x, y) = (operands[0], operands[1]);
        let pattern = x.bitcast_convert(bits);
        // Bit patterns of one sign are ordered like magnitudes: away from zero is up.
        let grows = x.lt(y).equal(x.gt(0.0));
        let one = function.splat(bits, &x.sizes(), 1.0);
        let neighbor = (pattern + grows.select(one, -one)).bitcast_convert(element_type);
        let from_zero = x.lt(y).select(x.splat(smallest), x.splat(-smallest));
        let next = x.equal(x.splat(0.0)).select(from_zero, neighbor);
        let result = x.equal(y).select(y, next);
        vec![(x.is_nan() | y.is_nan()).select(x + y, result)]
    })
}

/// The upper half of the product.
fn mulhi(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = [context.operand(0)?, context.operand(1)?];
    let element_type = context.array(operands[0])?.element_type;
    let width = element_type.bit_width();
    let is_signed = element_type.is_signed_integer();
    context.composite(&operands, |function, operands| {
        let sizes = operands[0].sizes();
        let number = |element_type, value: u32| function.splat(element_type, &sizes, f64::from(value));
        if width < 64 {
            let wide = if is_signed { PrimitiveType::S64 } else { PrimitiveType::U64 };
            let product = operands[0].convert(wide) * operands[1].convert(wide);
            let upper = if is_signed {
                product.shift_right_arithmetic(number(wide, width))
            } else {
                product >> number(wide, width)
            };
            return vec![upper.convert(element_type)];
        }
        let unsigned = [operands[0], operands[1]].map(|operand| operand.bitcast_convert(PrimitiveType::U64));
        let half = number(PrimitiveType::U64, 32);
        let low = |value| low_half(value, half);
        let ([a, b], [c, d]) =
            ([unsigned[0] >> half, low(unsigned[0])], [unsigned[1] >> half, low(unsigned[1])]);
        let carry = ((b * d) >> half) + low(a * d) + low(b * c);
        let mut upper = a * c + ((a * d) >> half) + ((b * c) >> half) + (carry >> half);
        if is_signed {
            // Each negative operand adds an excess of 2^64 times the other operand.
            let zero = number(PrimitiveType::U64, 0);
            upper = upper - operands[0].lt(0.0).select(unsigned[1], zero);
            upper = upper - operands[1].lt(0.0).select(unsigned[0], zero);
        }
        vec![upper.bitcast_convert(element_type)]
    })
}

fn low_half<'f>(value: Expression<'f>, half: Expression<'f>) -> Expression<'f> {
    (value << half) >> half
}

fn top_k(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let k = context.view().integer("k")?;
    let operand = context.operand(0)?;
    let largest = context.view().find("largest").is_none_or(|_| context.view().flag("largest"));
    context.emit(Op::TopK { k, largest }, &[operand])
}

fn constant_like(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let value = context.view().float("value")?;
    let operand = context.operand(0)?;
    context.composite(&[operand], |_, operands| vec![operands[0].splat(value)])
}

/// `broadcast_OP`: broadcasts the operands by NumPy's rules or by `broadcast_dimensions`, then
/// applies the operation.
fn broadcasting(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    let target = context.result_array(0)?;
    let arrays = operands.iter().map(|&id| context.array(id)).collect::<Result<Vec<ArrayShape>>>()?;
    let smallest = arrays.iter().map(ArrayShape::rank).min().unwrap_or(0);
    let explicit = context.view().dimensions_or_none("broadcast_dimensions")?;
    let mut spread = Vec::new();
    for (&operand, array) in operands.iter().zip(&arrays) {
        let added = target.rank().saturating_sub(array.rank());
        let dimensions: Vec<usize> =
            if array.rank() == smallest && explicit.len() == smallest && array.rank() < target.rank() {
                explicit.clone()
            } else {
                (added..added + array.rank()).collect()
            };
        spread.push(expand(context, operand, &dimensions, &target)?);
    }
    apply(context, &spread, &target)
}

/// Applies the operation in a name such as `chlo.broadcast_add` to operands of one shape.
fn apply(
    context: &mut Context<'_, '_>,
    operands: &[InstructionId],
    target: &ArrayShape,
) -> Result<Vec<InstructionId>> {
    let name = context.operation.name.trim_start_matches("chlo.broadcast_");
    let shape: Shape = target.clone().into();
    let op = match name {
        "add" => Op::Add {},
        "and" => Op::And {},
        "atan2" => Op::Atan2 {},
        "complex" => Op::Complex {},
        "divide" => Op::Divide {},
        "maximum" => Op::Maximum {},
        "minimum" => Op::Minimum {},
        "multiply" => Op::Multiply {},
        "or" => Op::Or {},
        "power" => Op::Power {},
        "remainder" => Op::Remainder {},
        "select" => Op::Select {},
        "shift_left" => Op::ShiftLeft {},
        "shift_right_arithmetic" => Op::ShiftRightArithmetic {},
        "shift_right_logical" => Op::ShiftRightLogical {},
        "subtract" => Op::Subtract {},
        "xor" => Op::Xor {},
        "compare" => {
            let direction = match context.view().text("comparison_direction")? {
                "EQ" => ComparisonDirection::Eq,
                "NE" => ComparisonDirection::Ne,
                "GE" => ComparisonDirection::Ge,
                "GT" => ComparisonDirection::Gt,
                "LE" => ComparisonDirection::Le,
                _ => ComparisonDirection::Lt,
            };
            Op::Compare { direction, comparison_type: ComparisonType::Default }
        }
        _ => return Err(Error::unsupported("unknown broadcasting operation")),
    };
    Ok(vec![context.op_with_shape(op, operands, shape)?])
}
