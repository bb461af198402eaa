//! Operations on the elements of the operands at the same index.

use super::{Convert, complex};
use crate::walk::Context;
use hlo::{ComparisonDirection, ComparisonType, InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

macro_rules! plain {
    ($name:expr, $($stablehlo:literal => $op:ident),* $(,)?) => {
        match $name {
            $($stablehlo => Some((|context| {
                let operands = context.operands()?;
                context.emit(Op::$op {}, &operands)
            }) as Convert),)*
            _ => None,
        }
    };
}

pub(super) fn find(name: &str) -> Option<Convert> {
    let plain: Option<Convert> = plain!(
        name,
        "stablehlo.abs" => Abs,
        "stablehlo.add" => Add,
        "stablehlo.and" => And,
        "stablehlo.atan2" => Atan2,
        "stablehlo.bitcast_convert" => BitcastConvert,
        "stablehlo.ceil" => Ceil,
        "stablehlo.complex" => Complex,
        "stablehlo.cosine" => Cos,
        "stablehlo.count_leading_zeros" => CountLeadingZeros,
        "stablehlo.divide" => Divide,
        "stablehlo.exponential" => Exp,
        "stablehlo.exponential_minus_one" => Expm1,
        "stablehlo.floor" => Floor,
        "stablehlo.is_finite" => IsFinite,
        "stablehlo.log" => Log,
        "stablehlo.log_plus_one" => Log1p,
        "stablehlo.logistic" => Logistic,
        "stablehlo.multiply" => Multiply,
        "stablehlo.negate" => Negate,
        "stablehlo.not" => Not,
        "stablehlo.or" => Or,
        "stablehlo.popcnt" => PopulationCount,
        "stablehlo.power" => Power,
        "stablehlo.remainder" => Remainder,
        "stablehlo.round_nearest_afz" => RoundNearestAfz,
        "stablehlo.round_nearest_even" => RoundNearestEven,
        "stablehlo.rsqrt" => Rsqrt,
        "stablehlo.shift_left" => ShiftLeft,
        "stablehlo.shift_right_arithmetic" => ShiftRightArithmetic,
        "stablehlo.shift_right_logical" => ShiftRightLogical,
        "stablehlo.sign" => Sign,
        "stablehlo.sine" => Sin,
        "stablehlo.sqrt" => Sqrt,
        "stablehlo.subtract" => Subtract,
        "stablehlo.tan" => Tan,
        "stablehlo.tanh" => Tanh,
        "stablehlo.xor" => Xor,
    );
    plain.or(match name {
        "stablehlo.cbrt" => Some(complex::cbrt),
        "stablehlo.convert" => Some(complex::convert),
        "stablehlo.maximum" => Some(complex::maximum),
        "stablehlo.minimum" => Some(complex::minimum),
        "stablehlo.real" => Some(real),
        "stablehlo.imag" => Some(imag),
        "stablehlo.compare" => Some(compare),
        "stablehlo.select" => Some(select),
        "stablehlo.clamp" => Some(clamp),
        "stablehlo.reduce_precision" => Some(reduce_precision),
        _ => None,
    })
}

/// The real part; a real number is its own real part.
fn real(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operand = context.operand(0)?;
    if context.array(operand)?.element_type.is_complex() {
        context.emit(Op::Real {}, &[operand])
    } else {
        Ok(vec![operand])
    }
}

/// The imaginary part; 0 for a real number.
fn imag(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operand = context.operand(0)?;
    let array = context.array(operand)?;
    if array.element_type.is_complex() {
        return context.emit(Op::Imag {}, &[operand]);
    }
    let zero = context.number(array.element_type, 0);
    Ok(vec![context.spread(zero, &array)?])
}

fn compare(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let direction = match view.text("comparison_direction")? {
        "EQ" => ComparisonDirection::Eq,
        "NE" => ComparisonDirection::Ne,
        "GE" => ComparisonDirection::Ge,
        "GT" => ComparisonDirection::Gt,
        "LE" => ComparisonDirection::Le,
        "LT" => ComparisonDirection::Lt,
        other => return Err(Error::invalid(format!("unknown comparison '{other}'"))),
    };
    let comparison_type = match view.text("compare_type") {
        Ok("TOTALORDER") => ComparisonType::TotalOrder,
        _ => ComparisonType::Default,
    };
    let operands = context.operands()?;
    context.emit(Op::Compare { direction, comparison_type }, &operands)
}

/// The condition can be a scalar.
fn select(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut operands = context.operands()?;
    let shape = context.result_array(0)?;
    if let Some(condition) = operands.first_mut() {
        *condition = context.spread(*condition, &shape.with_element_type(PrimitiveType::Pred))?;
    }
    context.emit(Op::Select {}, &operands)
}

/// The limits can be scalars.
fn clamp(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut operands = context.operands()?;
    let shape = context.result_array(0)?;
    for operand in &mut operands {
        *operand = context.spread(*operand, &shape)?;
    }
    context.emit(Op::Clamp {}, &operands)
}

fn reduce_precision(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let bits = |name: &str| {
        let value = view.integer(name)?;
        u32::try_from(value).map_err(|_| Error::invalid(format!("'{name}' is out of range: {value}")))
    };
    let op =
        Op::ReducePrecision { exponent_bits: bits("exponent_bits")?, mantissa_bits: bits("mantissa_bits")? };
    let operands = context.operands()?;
    context.emit(op, &operands)
}
