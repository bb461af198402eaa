//! Elementwise instructions: maps opcodes to functions, and evaluates them on numbers of any type.

use crate::array::{array, check_array, for_each_row, from_bytes, from_scalars};
use crate::operation::{Binary, Unary};
use crate::{complex, convert, float, integer};
use hlo::{ComparisonDirection, ComparisonType, Op};
use shape::{ArrayShape, Literal, NativeType, PrimitiveType, Scalar, Shape, Specials};
use std::cmp::Ordering;
use support::{Error, Result};

/// A function with one number per operand of the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Unary(Unary),
    Binary(Binary),
    Clamp,
    Compare(ComparisonDirection, ComparisonType),
    Complex,
    Convert,
    ReducePrecision { exponent_bits: u32, mantissa_bits: u32 },
    Select,
    StochasticConvert,
}

impl Function {
    /// Returns the function of an elementwise opcode, or `None` for other opcodes.
    pub(crate) fn of(op: &Op) -> Option<Self> {
        if let Some(function) = Unary::of(op) {
            return Some(Self::Unary(function));
        }
        if let Some(function) = Binary::of(op) {
            return Some(Self::Binary(function));
        }
        match op {
            Op::Clamp {} => Some(Self::Clamp),
            Op::Compare { direction, comparison_type } => Some(Self::Compare(*direction, *comparison_type)),
            Op::Complex {} => Some(Self::Complex),
            Op::Convert {} => Some(Self::Convert),
            &Op::ReducePrecision { exponent_bits, mantissa_bits } => {
                Some(Self::ReducePrecision { exponent_bits, mantissa_bits })
            }
            Op::Select {} => Some(Self::Select),
            Op::StochasticConvert {} => Some(Self::StochasticConvert),
            _ => None,
        }
    }

    fn arity(self) -> usize {
        match self {
            Self::Unary(_) | Self::Convert | Self::ReducePrecision { .. } => 1,
            Self::Binary(_) | Self::Compare(..) | Self::Complex | Self::StochasticConvert => 2,
            Self::Clamp | Self::Select => 3,
        }
    }

    /// Evaluates the function, rounded to the result's type.
    pub(crate) fn apply(
        self,
        result: PrimitiveType,
        operands: &[PrimitiveType],
        values: &[Scalar],
    ) -> Result<Scalar> {
        let value = match (self, values) {
            (Self::Unary(function), &[x]) => apply_unary(function, result, x),
            (Self::Binary(function), &[x, y]) => apply_binary(function, result, x, y),
            (Self::Clamp, &[low, x, high]) => {
                let raised = apply_binary(Binary::Maximum, result, low, x);
                raised.and_then(|x| apply_binary(Binary::Minimum, result, x, high))
            }
            (Self::Compare(direction, order), &[x, y]) => compare(direction, order, x, y).map(Scalar::Pred),
            (Self::Complex, &[Scalar::Float(re), Scalar::Float(im)]) => Some(Scalar::Complex(re, im)),
            (Self::Convert, &[x]) => Some(convert::convert(x, result)),
            (Self::ReducePrecision { exponent_bits, mantissa_bits }, &[Scalar::Float(x)]) => {
                Some(Scalar::Float(float::reduce_precision(result, exponent_bits, mantissa_bits, x)))
            }
            (Self::Select, &[Scalar::Pred(choice), x, y]) => Some(if choice { x } else { y }),
            (Self::StochasticConvert, &[x, random]) => {
                convert::stochastic(x, random, operands.get(1).copied(), result)
            }
            _ => None,
        };
        let value = value.ok_or_else(|| {
            let types: Vec<&str> = operands.iter().map(|t| t.name()).collect();
            Error::unsupported(format!("{self:?} is not defined from ({}) to {result}", types.join(", ")))
        })?;
        Ok(float::round_scalar(result, value))
    }
}

/// Evaluates an elementwise instruction. A scalar operand of `select` or `clamp` applies to all
/// elements.
pub(crate) fn evaluate(function: Function, shape: &Shape, operands: &[&Literal]) -> Result<Literal> {
    let result = array(shape)?;
    let count = result.element_count() as usize;
    if operands.len() != function.arity() {
        return Err(Error::invalid(format!(
            "expected {} operands, got {}",
            function.arity(),
            operands.len()
        )));
    }
    for operand in operands {
        check_array(operand)?;
        let operand_shape = operand.array_shape();
        if operand_shape.sizes() != result.sizes() && operand_shape.element_count() != 1 {
            return Err(Error::invalid(format!("an operand is {operand_shape}, but the result is {result}")));
        }
    }
    let types: Vec<PrimitiveType> = operands.iter().map(|o| o.array_shape().element_type).collect();
    let at = |operand: &Literal, i: usize| if operand.array_shape().rank() == 0 { 0 } else { i };
    match function {
        // Instructions that only move elements preserve their bits, including those of a NaN.
        Function::Unary(Unary::Copy) if types[0] == result.element_type => {
            return from_bytes(&result, operands[0].bytes().clone());
        }
        Function::Select if types[1] == result.element_type && types[2] == result.element_type => {
            let width = result.element_type.byte_size();
            let mut data = Vec::with_capacity(count * width);
            for i in 0..count {
                let choice =
                    if operands[0].scalar_at(at(operands[0], i)) == Scalar::Pred(true) { 1 } else { 2 };
                let start = at(operands[choice], i) * width;
                data.extend_from_slice(&operands[choice].bytes()[start..start + width]);
            }
            return from_bytes(&result, data);
        }
        _ => {}
    }
    if let (Function::Unary(unary), &[operand]) = (function, operands)
        && let Some(literal) = evaluate_sign(unary, &result, operand)
    {
        return Ok(literal);
    }
    if let Some(literal) = evaluate_floats(function, &result, &types, operands) {
        return Ok(literal);
    }
    let mut values = Vec::with_capacity(operands.len());
    let mut scalars = Vec::with_capacity(count);
    for i in 0..count {
        values.clear();
        values.extend(operands.iter().map(|o| o.scalar_at(at(o, i))));
        scalars.push(function.apply(result.element_type, &types, &values)?);
    }
    Ok(from_scalars(&result, scalars))
}

/// Number of elements that one thread computes at a time.
const ELEMENTS_OF_ROW: usize = 4096;

/// Approximate number of steps per element.
const STEPS_OF_ELEMENT: usize = 8;

/// Evaluates `abs` and `negate` of floats with a separate sign bit, preserving all other bits, even
/// those of a NaN. Returns `None` for other functions and types.
fn evaluate_sign(function: Unary, result: &ArrayShape, operand: &Literal) -> Option<Literal> {
    let format = result.element_type.float_format()?;
    let has_sign = !matches!(format.specials, Specials::NegativeZeroNan | Specials::PowersOfTwo);
    let source = operand.array_shape();
    let is_alike =
        source.element_type == result.element_type && source.element_count() == result.element_count();
    if !has_sign || !is_alike || !matches!(function, Unary::Abs | Unary::Negate) {
        return None;
    }
    let mask = format.sign_bit().to_le_bytes();
    let width = result.element_type.byte_size();
    let flip = |(byte, mask): (&u8, &u8)| if function == Unary::Abs { byte & !mask } else { byte ^ mask };
    let elements = operand.bytes().chunks_exact(width);
    let data: Vec<u8> = elements.flat_map(|element| element.iter().zip(&mask).map(flip)).collect();
    from_bytes(result, data).ok()
}

/// Evaluates a function for the most common types without converting to scalars. Returns `None` for
/// functions without a floating-point meaning.
fn evaluate_floats(
    function: Function,
    result: &ArrayShape,
    types: &[PrimitiveType],
    operands: &[&Literal],
) -> Option<Literal> {
    if types.iter().any(|&t| t != result.element_type) {
        return None;
    }
    match result.element_type {
        PrimitiveType::F32 => floats(
            function,
            result,
            operands,
            |bytes| f64::from(f32::read_le(bytes)),
            |value, bytes| bytes.copy_from_slice(&(value as f32).to_le_bytes()),
        ),
        PrimitiveType::F64 => floats(function, result, operands, f64::read_le, |value, bytes| {
            bytes.copy_from_slice(&value.to_le_bytes());
        }),
        _ => None,
    }
}

fn floats(
    function: Function,
    result: &ArrayShape,
    operands: &[&Literal],
    read: impl Fn(&[u8]) -> f64 + Sync,
    write: impl Fn(f64, &mut [u8]) + Sync,
) -> Option<Literal> {
    let apply = |values: &[f64]| match (function, values) {
        (Function::Unary(function), &[x]) => float::unary(function, x),
        (Function::Binary(function), &[x, y]) => float::binary(function, x, y),
        (Function::Clamp, &[low, x, high]) => {
            let raised = float::binary(Binary::Maximum, low, x)?;
            float::binary(Binary::Minimum, raised, high)
        }
        _ => None,
    };
    apply(&[0.0; 3][..operands.len()])?;
    let width = result.element_type.byte_size();
    // A scalar applies to all elements.
    let step = |operand: &Literal| if operand.array_shape().rank() == 0 { 0 } else { width };
    let sources: Vec<(&[u8], usize)> = operands.iter().map(|o| (&o.bytes()[..], step(o))).collect();
    let mut data = vec![0; result.byte_size() as usize];
    for_each_row(&mut data, width * ELEMENTS_OF_ROW, STEPS_OF_ELEMENT * ELEMENTS_OF_ROW, |row, data| {
        let mut values = [0.0; 3];
        for (i, element) in data.chunks_exact_mut(width).enumerate() {
            for (value, &(bytes, step)) in values.iter_mut().zip(&sources) {
                let at = (row * ELEMENTS_OF_ROW + i) * step;
                *value = read(&bytes[at..at + width]);
            }
            let value = apply(&values[..sources.len()]).expect("the function has a value, as checked above");
            write(value, element);
        }
    });
    from_bytes(result, data).ok()
}

fn apply_unary(function: Unary, result: PrimitiveType, x: Scalar) -> Option<Scalar> {
    match (function, x) {
        (Unary::IsFinite, Scalar::Float(x)) => Some(Scalar::Pred(x.is_finite())),
        (Unary::IsFinite, Scalar::Complex(re, im)) => Some(Scalar::Pred(re.is_finite() && im.is_finite())),
        (Unary::Copy, x) => Some(x),
        (Unary::Not, Scalar::Pred(x)) => Some(Scalar::Pred(!x)),
        (_, Scalar::Pred(_)) => None,
        (_, Scalar::Signed(x)) => integer::unary(function, result, x.into()),
        (_, Scalar::Unsigned(x)) => integer::unary(function, result, x.into()),
        (_, Scalar::Float(x)) => float::unary(function, x).map(Scalar::Float),
        (_, Scalar::Complex(re, im)) => complex::unary(function, [re, im]),
    }
}

pub(crate) fn apply_binary(function: Binary, result: PrimitiveType, x: Scalar, y: Scalar) -> Option<Scalar> {
    match (x, y) {
        (Scalar::Pred(x), Scalar::Pred(y)) => pred(function, x, y).map(Scalar::Pred),
        (Scalar::Signed(x), Scalar::Signed(y)) => integer::binary(function, result, x.into(), y.into()),
        (Scalar::Unsigned(x), Scalar::Unsigned(y)) => integer::binary(function, result, x.into(), y.into()),
        (Scalar::Float(x), Scalar::Float(y)) => float::binary(function, x, y).map(Scalar::Float),
        (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
            complex::binary(function, [a, b], [c, d]).map(|[re, im]| Scalar::Complex(re, im))
        }
        _ => None,
    }
}

/// Arithmetic of booleans: addition is `or`, multiplication is `and`.
fn pred(function: Binary, x: bool, y: bool) -> Option<bool> {
    match function {
        Binary::Add | Binary::Maximum | Binary::Or => Some(x | y),
        Binary::Multiply | Binary::Minimum | Binary::And => Some(x & y),
        Binary::Xor => Some(x ^ y),
        Binary::Power => Some(x | !y),
        Binary::Atan2
        | Binary::Divide
        | Binary::Remainder
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Subtract => None,
    }
}

/// Compares floats by IEEE semantics unless the total order is requested. Complex numbers are only
/// equal or unequal.
fn compare(direction: ComparisonDirection, order: ComparisonType, x: Scalar, y: Scalar) -> Option<bool> {
    use ComparisonDirection::{Eq, Ge, Gt, Le, Lt, Ne};
    let ordering = match (x, y) {
        (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
            let equal = a == c && b == d;
            return match direction {
                Eq => Some(equal),
                Ne => Some(!equal),
                Ge | Gt | Le | Lt => None,
            };
        }
        (Scalar::Float(x), Scalar::Float(y)) if order == ComparisonType::TotalOrder => Some(x.total_cmp(&y)),
        (x, y) => order_of(x, y)?,
    };
    Some(match direction {
        Eq => ordering == Some(Ordering::Equal),
        Ne => ordering != Some(Ordering::Equal),
        Ge => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
        Gt => ordering == Some(Ordering::Greater),
        Le => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        Lt => ordering == Some(Ordering::Less),
    })
}

/// Returns the order of two numbers of the same kind; an inner `None` means "unordered".
fn order_of(x: Scalar, y: Scalar) -> Option<Option<Ordering>> {
    match (x, y) {
        (Scalar::Pred(x), Scalar::Pred(y)) => Some(x.partial_cmp(&y)),
        (Scalar::Signed(x), Scalar::Signed(y)) => Some(x.partial_cmp(&y)),
        (Scalar::Unsigned(x), Scalar::Unsigned(y)) => Some(x.partial_cmp(&y)),
        (Scalar::Float(x), Scalar::Float(y)) => Some(x.partial_cmp(&y)),
        _ => None,
    }
}
