//! Elementwise operators.

use super::{Row, activated, activation, cast, leaky_relu};
use crate::convert::Op;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{flag, ty};

pub(super) const ROWS: &[Row] = &[
    ("ADD", |op| binary(op, "AddV2", true)),
    ("SUB", |op| binary(op, "Sub", true)),
    ("MUL", |op| binary(op, "Mul", true)),
    ("DIV", |op| binary(op, "Div", true)),
    ("MAXIMUM", |op| extremum(op, "Maximum", "Greater")),
    ("MINIMUM", |op| extremum(op, "Minimum", "Less")),
    ("POW", |op| binary(op, "Pow", false)),
    ("FLOOR_DIV", |op| binary(op, "FloorDiv", false)),
    ("FLOOR_MOD", |op| binary(op, "FloorMod", false)),
    ("SQUARED_DIFFERENCE", |op| binary(op, "SquaredDifference", false)),
    ("ATAN2", |op| binary(op, "Atan2", false)),
    ("BITWISE_XOR", |op| binary(op, "BitwiseXor", false)),
    ("RIGHT_SHIFT", right_shift),
    ("EQUAL", |op| binary(op, "Equal", false)),
    ("NOT_EQUAL", |op| binary(op, "NotEqual", false)),
    ("LESS", |op| binary(op, "Less", false)),
    ("LESS_EQUAL", |op| binary(op, "LessEqual", false)),
    ("GREATER", |op| binary(op, "Greater", false)),
    ("GREATER_EQUAL", |op| binary(op, "GreaterEqual", false)),
    ("LOGICAL_AND", |op| untyped(op, "LogicalAnd")),
    ("LOGICAL_OR", |op| untyped(op, "LogicalOr")),
    ("LOGICAL_NOT", |op| untyped(op, "LogicalNot")),
    ("ABS", |op| unary(op, "Abs")),
    ("CEIL", |op| unary(op, "Ceil")),
    ("COS", |op| unary(op, "Cos")),
    ("ELU", |op| unary(op, "Elu")),
    ("EXP", |op| unary(op, "Exp")),
    ("FLOOR", |op| unary(op, "Floor")),
    ("LOG", |op| unary(op, "Log")),
    ("LOGISTIC", |op| unary(op, "Sigmoid")),
    ("NEG", |op| unary(op, "Neg")),
    ("ROUND", |op| unary(op, "Round")),
    ("RSQRT", |op| unary(op, "Rsqrt")),
    ("SIGN", |op| unary(op, "Sign")),
    ("SIN", |op| unary(op, "Sin")),
    ("SQRT", |op| unary(op, "Sqrt")),
    ("SQUARE", |op| unary(op, "Square")),
    ("TANH", |op| unary(op, "Tanh")),
    ("ZEROS_LIKE", |op| unary(op, "ZerosLike")),
    ("RELU", |op| activate(op, "RELU")),
    ("RELU6", |op| activate(op, "RELU6")),
    ("RELU_N1_TO_1", |op| activate(op, "RELU_N1_TO_1")),
    ("RELU_0_TO_1", |op| activate(op, "RELU_0_TO_1")),
    ("ADD_N", add_n),
    ("BITCAST", bitcast),
    ("CAST", |op| convert_type(op)),
    ("DEQUANTIZE", |op| convert_type(op)),
    ("QUANTIZE", |op| convert_type(op)),
    ("FAKE_QUANT", fake_quantize),
    ("GELU", gelu),
    ("HARD_SWISH", hard_swish),
    ("LEAKY_RELU", |op| {
        let (x, alpha) = (op.input(0)?, op.options().float(0)?);
        let y = leaky_relu(op, x, op.data_type(0)?, alpha)?;
        op.set(0, y)
    }),
    ("PRELU", prelu),
    ("SELECT", |op| select(op, "Select")),
    ("SELECT_V2", |op| select(op, "SelectV2")),
    ("COMPLEX_ABS", |op| of_complex(op, "ComplexAbs")),
    ("IMAG", |op| of_complex(op, "Imag")),
    ("REAL", |op| of_complex(op, "Real")),
];

fn unary(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let y = op.node(name, &[x], [ty("T", t)])?;
    op.set(0, y)
}

fn binary(op: &mut Op<'_, '_>, name: &str, is_activated: bool) -> Result<()> {
    let (x, y, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    // TensorFlow Lite divides integers toward zero, like C.
    let name = match name {
        "Div" if t.primitive_type().is_some_and(shape::PrimitiveType::is_integer) => "TruncateDiv",
        "Div" => "RealDiv",
        name => name,
    };
    let mut z = op.node(name, &[x, y], [ty("T", t)])?;
    if is_activated {
        z = activated(op, z, 0)?;
    }
    op.set(0, z)
}

/// The larger or the smaller operand. The second one if either is NaN.
fn extremum(op: &mut Op<'_, '_>, name: &str, comparison: &str) -> Result<()> {
    let (x, y, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    if t.primitive_type().is_some_and(shape::PrimitiveType::is_integer) {
        return binary(op, name, false);
    }
    let is_first = op.node(comparison, &[x.clone(), y.clone()], [ty("T", t)])?;
    let z = op.node("SelectV2", &[is_first, x, y], [ty("T", t)])?;
    op.set(0, z)
}

/// Counts below 0 shift by nothing.
fn right_shift(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, mut count, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    if t.primitive_type().is_some_and(shape::PrimitiveType::is_signed_integer) {
        let zero = op.scalar(t, 0.0)?;
        count = op.node("Maximum", &[count, zero], [ty("T", t)])?;
    }
    let y = op.node("RightShift", &[x, count], [ty("T", t)])?;
    op.set(0, y)
}

/// Logical operators have one type.
fn untyped(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node(name, &inputs, [])?;
    op.set(0, y)
}

fn activate(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let y = activation(op, name, x, t)?;
    op.set(0, y)
}

fn add_n(op: &mut Op<'_, '_>) -> Result<()> {
    let (inputs, t) = (op.inputs()?, op.data_type(0)?);
    let count = inputs.len() as i64;
    let y = op.node("AddN", &inputs, [ty("T", t), tf::foreign::int("N", count)])?;
    op.set(0, y)
}

fn bitcast(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, from, to) = (op.input(0)?, op.data_type(0)?, op.result(0)?.data_type);
    let y = op.node("Bitcast", &[x], [ty("T", from), ty("type", to)])?;
    op.set(0, y)
}

/// `CAST`, and `DEQUANTIZE` of weights in 16-bit floating point.
fn convert_type(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, from, to) = (op.input(0)?, op.data_type(0)?, op.result(0)?.data_type);
    let y = match (from, to) {
        (DataType::Complex64, DataType::Float) => op.node("Real", &[x], [ty("T", from), ty("Tout", to)])?,
        _ => cast(op, x, from, to)?,
    };
    op.set(0, y)
}

fn fake_quantize(op: &mut Op<'_, '_>) -> Result<()> {
    let options = op.options();
    let attributes = [
        tf::foreign::float("min", options.float(0)?),
        tf::foreign::float("max", options.float(1)?),
        tf::foreign::int("num_bits", options.int(2, 0)?),
        flag("narrow_range", options.bool(3, false)?),
    ];
    let x = op.input(0)?;
    let y = op.node("FakeQuantWithMinMaxArgs", &[x], attributes)?;
    op.set(0, y)
}

/// x Φ(x), exactly or by the approximation with tanh (Hendrycks and Gimpel, 2016).
fn gelu(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let typed = || [ty("T", t)];
    let (half, one) = (op.scalar(t, 0.5)?, op.scalar(t, 1.0)?);
    let bent = if op.options().bool(0, false)? {
        let (weight, scale) = (op.scalar(t, 0.044715)?, op.scalar(t, (2.0 / std::f64::consts::PI).sqrt())?);
        let square = op.node("Square", std::slice::from_ref(&x), typed())?;
        let cube = op.node("Mul", &[square, x.clone()], typed())?;
        let weighted = op.node("Mul", &[cube, weight], typed())?;
        let sum = op.node("AddV2", &[x.clone(), weighted], typed())?;
        let scaled = op.node("Mul", &[sum, scale], typed())?;
        op.node("Tanh", &[scaled], typed())?
    } else {
        let scale = op.scalar(t, std::f64::consts::FRAC_1_SQRT_2)?;
        let scaled = op.node("Mul", &[x.clone(), scale], typed())?;
        op.node("Erf", &[scaled], typed())?
    };
    let raised = op.node("AddV2", &[bent, one], typed())?;
    let halved = op.node("Mul", &[x, half], typed())?;
    let y = op.node("Mul", &[halved, raised], typed())?;
    op.set(0, y)
}

/// x relu6(x + 3) / 6.
fn hard_swish(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, t) = (op.input(0)?, op.data_type(0)?);
    let (three, sixth) = (op.scalar(t, 3.0)?, op.scalar(t, 1.0 / 6.0)?);
    let raised = op.node("AddV2", &[x.clone(), three], [ty("T", t)])?;
    let gate = op.node("Relu6", &[raised], [ty("T", t)])?;
    let product = op.node("Mul", &[x, gate], [ty("T", t)])?;
    let y = op.node("Mul", &[product, sixth], [ty("T", t)])?;
    op.set(0, y)
}

/// x where it is not negative, and alpha x elsewhere.
fn prelu(op: &mut Op<'_, '_>) -> Result<()> {
    let (x, alpha, t) = (op.input(0)?, op.input(1)?, op.data_type(0)?);
    let zero = op.scalar(t, 0.0)?;
    let keeps = op.node("GreaterEqual", &[x.clone(), zero], [ty("T", t)])?;
    let scaled = op.node("Mul", &[x.clone(), alpha], [ty("T", t)])?;
    let y = op.node("SelectV2", &[keeps, x, scaled], [ty("T", t)])?;
    op.set(0, y)
}

fn select(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let (inputs, t) = (op.inputs()?, op.data_type(1)?);
    let y = op.node(name, &inputs, [ty("T", t)])?;
    op.set(0, y)
}

fn of_complex(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let (x, from, to) = (op.input(0)?, op.data_type(0)?, op.result(0)?.data_type);
    let y = op.node(name, &[x], [ty("T", from), ty("Tout", to)])?;
    op.set(0, y)
}

/// Refuses operands that are not floating-point numbers.
pub(super) fn requires_float(op: &Op<'_, '_>, k: usize) -> Result<()> {
    let data_type = op.data_type(k)?;
    if data_type.primitive_type().is_some_and(shape::PrimitiveType::is_floating_point) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "input {k} has type {data_type}, but only floating-point numbers are supported"
    )))
}
