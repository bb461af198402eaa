//! Ops of elements, and others whose counterparts in TensorFlow have the same meaning for every
//! shape.

use super::Row;
use crate::convert::{Array, Op};
use crate::tensor::Constant;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{float, int, text, ty};

pub(super) const ROWS: &[Row] = &[
    ("Abs", |op| unsigned_is_same(op, "Abs")),
    ("Acos", |op| unary(op, "Acos")),
    ("Acosh", |op| unary(op, "Acosh")),
    ("Add", |op| binary(op, "AddV2")),
    ("And", |op| logical(op, "LogicalAnd")),
    ("Asin", |op| unary(op, "Asin")),
    ("Asinh", |op| unary(op, "Asinh")),
    ("Atan", |op| unary(op, "Atan")),
    ("Atanh", |op| unary(op, "Atanh")),
    ("BitCast", bit_cast),
    ("BitShift", bit_shift),
    ("BitwiseAnd", |op| binary(op, "BitwiseAnd")),
    ("BitwiseNot", |op| unary(op, "Invert")),
    ("BitwiseOr", |op| binary(op, "BitwiseOr")),
    ("BitwiseXor", |op| binary(op, "BitwiseXor")),
    ("Cast", cast),
    ("CastLike", cast_like),
    ("Ceil", |op| unary(op, "Ceil")),
    ("Celu", celu),
    ("Clip", clip),
    ("Cos", |op| unary(op, "Cos")),
    ("Cosh", |op| unary(op, "Cosh")),
    ("Div", divide),
    ("Dropout", dropout),
    ("Einsum", einsum),
    ("Elu", elu),
    ("Equal", |op| comparison(op, "Equal")),
    ("Erf", |op| unary(op, "Erf")),
    ("Exp", |op| unary(op, "Exp")),
    ("Floor", |op| unary(op, "Floor")),
    ("Gelu", gelu),
    ("Greater", |op| comparison(op, "Greater")),
    ("GreaterOrEqual", |op| comparison(op, "GreaterEqual")),
    ("HardSigmoid", |op| hard_sigmoid(op, 0.2, 0.5)),
    ("HardSwish", hard_swish),
    ("IsInf", is_inf),
    ("IsNaN", |op| test(op, "IsNan")),
    ("LeakyRelu", leaky_relu),
    ("Less", |op| comparison(op, "Less")),
    ("LessOrEqual", |op| comparison(op, "LessEqual")),
    ("Log", |op| unary(op, "Log")),
    ("Max", |op| variadic(op, "Maximum")),
    ("Mean", mean),
    ("Min", |op| variadic(op, "Minimum")),
    ("Mish", mish),
    ("Mod", modulo),
    ("Mul", |op| binary(op, "Mul")),
    ("Neg", |op| unary(op, "Neg")),
    ("Not", |op| logical(op, "LogicalNot")),
    ("Or", |op| logical(op, "LogicalOr")),
    ("PRelu", prelu),
    ("Pow", power),
    ("Reciprocal", |op| unary(op, "Reciprocal")),
    ("Relu", |op| unary(op, "Relu")),
    ("Round", |op| unary(op, "Round")),
    ("Selu", selu),
    ("Shrink", shrink),
    ("Sigmoid", |op| unary(op, "Sigmoid")),
    ("Sign", sign),
    ("Sin", |op| unary(op, "Sin")),
    ("Sinh", |op| unary(op, "Sinh")),
    ("Softplus", |op| unary(op, "Softplus")),
    ("Softsign", |op| unary(op, "Softsign")),
    ("Sqrt", |op| unary(op, "Sqrt")),
    ("Sub", |op| binary(op, "Sub")),
    ("Sum", |op| variadic(op, "AddV2")),
    ("SwiGLU", swiglu),
    ("Swish", swish),
    ("Tan", |op| unary(op, "Tan")),
    ("Tanh", |op| unary(op, "Tanh")),
    ("ThresholdedRelu", thresholded_relu),
    ("Where", choose),
    ("Xor", |op| logical(op, "NotEqual")),
];

fn unary(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    let x = op.input(0)?;
    let y = op.unary(name, &x)?;
    op.set_array(y)
}

/// Version 6 aligns dimensions as attributes say, instead of at the end.
fn check_alignment(op: &Op<'_, '_, '_>) -> Result<()> {
    if op.version() < 7 && op.int("broadcast", 0) != 0 && op.attribute("axis").is_some() {
        return Err(Error::unsupported("attribute 'axis' of version 6: convert the model to version 7"));
    }
    Ok(())
}

fn binary(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    check_alignment(op)?;
    let (x, y) = (op.input(0)?, op.input(1)?);
    let z = op.binary(name, &x, &y)?;
    op.set_array(z)
}

fn comparison(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    check_alignment(op)?;
    let (x, y) = (op.input(0)?, op.input(1)?);
    let z = match known_comparison(name, &x, &y) {
        Some(truth) => op.constant(Constant::of_truth(truth))?,
        None => op.comparison(name, &x, &y)?,
    };
    op.set_array(z)
}

/// The result of a comparison of two known integers, on which a branch may depend.
fn known_comparison(name: &str, x: &Array, y: &Array) -> Option<bool> {
    let number = |array: &Array| {
        let constant = array.constant.as_ref().filter(|constant| constant.sizes.is_empty())?;
        constant.longs()?.first().copied()
    };
    let (x, y) = (number(x)?, number(y)?);
    match name {
        "Equal" => Some(x == y),
        "Less" => Some(x < y),
        "LessEqual" => Some(x <= y),
        "Greater" => Some(x > y),
        "GreaterEqual" => Some(x >= y),
        _ => None,
    }
}

fn logical(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    let inputs = (0..op.input_count()).map(|k| op.input(k)).collect::<Result<Vec<Array>>>()?;
    let y = match (name, inputs.as_slice()) {
        ("NotEqual", [x, y]) => op.comparison(name, x, y)?,
        _ => op.logical(name, &inputs.iter().collect::<Vec<_>>())?,
    };
    op.set_array(y)
}

/// An op with a truth value for each element.
fn test(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    let x = op.input(0)?;
    let y = op.unary(name, &x)?;
    op.set_array(Array::new(y.value, DataType::Bool))
}

fn is_unsigned(x: &Array) -> bool {
    x.data_type.primitive_type().is_some_and(|element| element.is_unsigned_integer())
}

pub(super) fn is_float(data_type: DataType) -> bool {
    data_type.primitive_type().is_some_and(|element| element.is_floating_point())
}

fn unsigned_is_same(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    let x = op.input(0)?;
    let y = if is_unsigned(&x) { op.unary("Identity", &x)? } else { op.unary(name, &x)? };
    op.set_array(y)
}

fn sign(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let y = if is_unsigned(&x) {
        let one = op.scalar(x.data_type, 1.0)?;
        op.binary("Minimum", &x, &one)?
    } else {
        op.unary("Sign", &x)?
    };
    op.set_array(y)
}

fn bit_cast(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let to = op.type_attribute("to")?.ok_or_else(|| Error::invalid("attribute 'to' is missing"))?;
    // Truth values are bytes.
    let byte = |data_type| if data_type == DataType::Bool { DataType::Uint8 } else { data_type };
    let x = op.cast(&x, byte(x.data_type))?;
    let attributes = [ty("T", x.data_type), ty("type", byte(to))];
    let y = op.node("Bitcast", std::slice::from_ref(&x.value), attributes)?;
    let y = op.cast(&Array::new(y, byte(to)), to)?;
    op.set_array(y)
}

fn bit_shift(op: &mut Op<'_, '_, '_>) -> Result<()> {
    match op.text("direction", "")? {
        "LEFT" => binary(op, "LeftShift"),
        "RIGHT" => binary(op, "RightShift"),
        other => Err(Error::invalid(format!("direction: expected LEFT or RIGHT, got '{other}'"))),
    }
}

/// Converts to another type. Numbers beyond the range of an 8-bit float become its largest one, if
/// `saturate` says so.
fn converted(op: &mut Op<'_, '_, '_>, x: &Array, to: DataType) -> Result<Array> {
    let limit = match to {
        DataType::Float8e4m3fn => Some(448.0),
        DataType::Float8e5m2 => Some(57344.0),
        _ => None,
    };
    let mut x = x.clone();
    // Integers of few bits keep the lowest bits of larger ones.
    let is_narrow = matches!(to, DataType::Int4 | DataType::Uint4 | DataType::Int2 | DataType::Uint2);
    if is_narrow && is_float(x.data_type) {
        x = op.cast(&x, DataType::Int32)?;
    }
    if let Some(limit) = limit
        && x.data_type != to
        && is_float(x.data_type)
        && op.int("saturate", 1) != 0
    {
        let (high, low) = (op.scalar(x.data_type, limit)?, op.scalar(x.data_type, -limit)?);
        let clipped = op.binary("Minimum", &x, &high)?;
        x = op.binary("Maximum", &clipped, &low)?;
    }
    if x.data_type == to { op.unary("Identity", &x) } else { op.cast(&x, to) }
}

fn cast(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let to = op.type_attribute("to")?.ok_or_else(|| Error::invalid("attribute 'to' is missing"))?;
    let y = converted(op, &x, to)?;
    op.set_array(y)
}

fn cast_like(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, like) = (op.input(0)?, op.input(1)?);
    let y = converted(op, &x, like.data_type)?;
    op.set_array(y)
}

/// `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
fn celu(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, alpha) = (op.input(0)?, op.float("alpha", 1.0));
    let alpha = op.scalar(x.data_type, f64::from(alpha))?;
    let zero = op.scalar(x.data_type, 0.0)?;
    let scaled = op.binary("RealDiv", &x, &alpha)?;
    let below = op.unary("Expm1", &scaled)?;
    let below = op.binary("Mul", &alpha, &below)?;
    let (above, below) = (op.binary("Maximum", &x, &zero)?, op.binary("Minimum", &below, &zero)?);
    let y = op.binary("AddV2", &above, &below)?;
    op.set_array(y)
}

fn clip(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let mut x = op.input(0)?;
    for (k, attribute, name) in [(1, "min", "Maximum"), (2, "max", "Minimum")] {
        let limit = match (op.optional(k)?, op.attribute(attribute)) {
            (Some(limit), _) => op.reshape(&limit, &[])?,
            (None, Some(attribute)) => op.scalar(x.data_type, f64::from(attribute.f))?,
            (None, None) => continue,
        };
        x = op.binary(name, &x, &limit)?;
    }
    let x = op.unary("Identity", &x)?;
    op.set_array(x)
}

fn divide(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let is_float = is_float(op.input(0)?.data_type);
    binary(op, if is_float { "RealDiv" } else { "TruncateDiv" })
}

/// The input: elements are dropped in training only.
fn dropout(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let training = match op.optional(2)? {
        None => Some(false),
        Some(mode) => mode.constant.and_then(|constant| constant.truth()),
    };
    let ratio = op.optional(1)?;
    let keeps_all = ratio.and_then(|ratio| ratio.constant).is_some_and(|c| c.bytes.iter().all(|&b| b == 0));
    if training != Some(false) && !keeps_all {
        return Err(Error::unsupported(
            "training_mode must be a constant false: dropped elements differ in every run",
        ));
    }
    let y = op.unary("Identity", &x)?;
    op.set_array(y)?;
    if op.has_output(1) {
        let yes = op.comparison("Equal", &x, &x)?;
        let no = op.logical("LogicalNot", &[&yes])?;
        let mask = op.logical("LogicalOr", &[&yes, &no])?;
        op.set(1, crate::convert::Value::Array(mask));
    }
    Ok(())
}

fn einsum(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let equation: String = op.text("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let equation = if equation.contains("->") { equation } else { explicit(&equation) };
    let inputs = (0..op.input_count()).map(|k| op.input(k)).collect::<Result<Vec<Array>>>()?;
    let first = inputs.first().ok_or_else(|| Error::invalid("the op has no inputs"))?;
    if inputs.iter().any(|array| array.data_type != first.data_type) {
        return Err(Error::invalid("all inputs must have the same type"));
    }
    let values: Vec<_> = inputs.iter().map(|array| array.value.clone()).collect();
    let attributes = [ty("T", first.data_type), int("N", values.len() as i64), text("equation", &equation)];
    let data_type = first.data_type;
    let y = op.node("Einsum", &values, attributes)?;
    op.set_array(Array::new(y, data_type))
}

/// The equation with its result: the labels that occur once, in alphabetical order.
fn explicit(equation: &str) -> String {
    let mut labels: Vec<char> = equation.chars().filter(|c| c.is_ascii_alphabetic()).collect();
    labels.sort_unstable();
    let once = labels.iter().filter(|label| labels.iter().filter(|other| other == label).count() == 1);
    let rest = if equation.contains("...") { "..." } else { "" };
    format!("{equation}->{rest}{}", once.collect::<String>())
}

/// `x >= 0 ? x : alpha * (exp(x) - 1)`.
fn exponential_below(op: &mut Op<'_, '_, '_>, x: &Array, alpha: f64) -> Result<Array> {
    let (alpha, zero) = (op.scalar(x.data_type, alpha)?, op.scalar(x.data_type, 0.0)?);
    let below = op.unary("Expm1", x)?;
    let below = op.binary("Mul", &alpha, &below)?;
    let is_above = op.comparison("GreaterEqual", x, &zero)?;
    op.select(&is_above, x, &below)
}

fn elu(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, alpha) = (op.input(0)?, op.float("alpha", 1.0));
    let y = exponential_below(op, &x, f64::from(alpha))?;
    op.set_array(y)
}

fn selu(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let alpha = op.float("alpha", 1.673_263_2);
    let gamma = op.float("gamma", 1.050_701);
    let y = exponential_below(op, &x, f64::from(alpha))?;
    let gamma = op.scalar(x.data_type, f64::from(gamma))?;
    let y = op.binary("Mul", &gamma, &y)?;
    op.set_array(y)
}

fn gelu(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let y = match op.text("approximate", "none")? {
        "none" => gelu_of(op, &x)?,
        "tanh" => fast_gelu_of(op, &x)?,
        other => return Err(Error::invalid(format!("approximate: expected none or tanh, got '{other}'"))),
    };
    op.set_array(y)
}

/// `x / 2 * (1 + erf(x / sqrt(2)))`.
pub(super) fn gelu_of(op: &mut Op<'_, '_, '_>, x: &Array) -> Result<Array> {
    let t = x.data_type;
    let (half, one) = (op.scalar(t, 0.5)?, op.scalar(t, 1.0)?);
    let root = op.scalar(t, std::f64::consts::FRAC_1_SQRT_2)?;
    let scaled = op.binary("Mul", x, &root)?;
    let erf = op.unary("Erf", &scaled)?;
    let weight = op.binary("AddV2", &erf, &one)?;
    let x = op.binary("Mul", x, &half)?;
    op.binary("Mul", &x, &weight)
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`.
pub(super) fn fast_gelu_of(op: &mut Op<'_, '_, '_>, x: &Array) -> Result<Array> {
    let t = x.data_type;
    let (half, one) = (op.scalar(t, 0.5)?, op.scalar(t, 1.0)?);
    let (root, cubic) = (op.scalar(t, (2.0 / std::f64::consts::PI).sqrt())?, op.scalar(t, 0.044715)?);
    let square = op.unary("Square", x)?;
    let cube = op.binary("Mul", &square, x)?;
    let cube = op.binary("Mul", &cube, &cubic)?;
    let sum = op.binary("AddV2", x, &cube)?;
    let scaled = op.binary("Mul", &sum, &root)?;
    let tanh = op.unary("Tanh", &scaled)?;
    let weight = op.binary("AddV2", &tanh, &one)?;
    let x = op.binary("Mul", x, &half)?;
    op.binary("Mul", &x, &weight)
}

/// `max(0, min(1, alpha * x + beta))`.
fn hard_sigmoid_of(op: &mut Op<'_, '_, '_>, x: &Array, alpha: f64, beta: f64) -> Result<Array> {
    let t = x.data_type;
    let (alpha, beta) = (op.scalar(t, alpha)?, op.scalar(t, beta)?);
    let (zero, one) = (op.scalar(t, 0.0)?, op.scalar(t, 1.0)?);
    let y = op.binary("Mul", x, &alpha)?;
    let y = op.binary("AddV2", &y, &beta)?;
    let y = op.binary("Minimum", &y, &one)?;
    op.binary("Maximum", &y, &zero)
}

fn hard_sigmoid(op: &mut Op<'_, '_, '_>, alpha: f32, beta: f32) -> Result<()> {
    let x = op.input(0)?;
    let (alpha, beta) = (op.float("alpha", alpha), op.float("beta", beta));
    let y = hard_sigmoid_of(op, &x, f64::from(alpha), f64::from(beta))?;
    op.set_array(y)
}

fn hard_swish(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let weight = hard_sigmoid_of(op, &x, 1.0 / 6.0, 0.5)?;
    let y = op.binary("Mul", &x, &weight)?;
    op.set_array(y)
}

fn is_inf(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let y = op.unary("IsInf", &x)?;
    let mut y = Array::new(y.value, DataType::Bool);
    let zero = op.scalar(x.data_type, 0.0)?;
    for (attribute, comparison) in [("detect_positive", "Less"), ("detect_negative", "Greater")] {
        if op.int(attribute, 1) == 0 {
            let is_other = op.comparison(comparison, &x, &zero)?;
            y = op.logical("LogicalAnd", &[&y, &is_other])?;
        }
    }
    op.set_array(y)
}

fn leaky_relu(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, alpha) = (op.input(0)?, op.float("alpha", 0.01));
    let attributes = [ty("T", x.data_type), float("alpha", alpha)];
    let y = op.node("LeakyRelu", std::slice::from_ref(&x.value), attributes)?;
    op.set_array(Array::new(y, x.data_type))
}

/// Combines all inputs, which are broadcast.
fn combined(op: &mut Op<'_, '_, '_>, name: &str) -> Result<Array> {
    let mut result = op.input(0)?;
    for k in 1..op.input_count() {
        let next = op.input(k)?;
        result = op.binary(name, &result, &next)?;
    }
    Ok(result)
}

fn variadic(op: &mut Op<'_, '_, '_>, name: &str) -> Result<()> {
    let result = combined(op, name)?;
    let result = if op.input_count() == 1 { op.unary("Identity", &result)? } else { result };
    op.set_array(result)
}

fn mean(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let sum = combined(op, "AddV2")?;
    let count = op.scalar(sum.data_type, op.input_count() as f64)?;
    let mean = op.binary("RealDiv", &sum, &count)?;
    op.set_array(mean)
}

/// `x * tanh(log(1 + exp(x)))`.
fn mish(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let soft = op.unary("Softplus", &x)?;
    let weight = op.unary("Tanh", &soft)?;
    let y = op.binary("Mul", &x, &weight)?;
    op.set_array(y)
}

fn modulo(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let is_float = is_float(op.input(0)?.data_type);
    let fmod = op.int("fmod", 0) != 0;
    binary(op, if fmod || is_float && op.version() < 28 { "TruncateMod" } else { "FloorMod" })
}

fn prelu(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, slope) = (op.input(0)?, op.input(1)?);
    let zero = op.scalar(x.data_type, 0.0)?;
    let is_below = op.comparison("Less", &x, &zero)?;
    let below = op.binary("Mul", &x, &slope)?;
    let y = op.select(&is_below, &below, &x)?;
    op.set_array(y)
}

/// The result has the type of the base.
fn power(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, y) = (op.input(0)?, op.input(1)?);
    let z = match (is_float(x.data_type), is_float(y.data_type)) {
        (false, true) => {
            let (base, exponent) = (op.cast(&x, DataType::Double)?, op.cast(&y, DataType::Double)?);
            let z = op.binary("Pow", &base, &exponent)?;
            op.cast(&z, x.data_type)?
        }
        _ => {
            let exponent = op.cast(&y, x.data_type)?;
            op.binary("Pow", &x, &exponent)?
        }
    };
    op.set_array(z)
}

/// `x < -lambd ? x + bias : x > lambd ? x - bias : 0`.
fn shrink(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let (bias, limit) = (op.float("bias", 0.0), op.float("lambd", 0.5));
    let t = x.data_type;
    let (low, high) = (op.scalar(t, f64::from(-limit))?, op.scalar(t, f64::from(limit))?);
    let (bias, zero) = (op.scalar(t, f64::from(bias))?, op.scalar(t, 0.0)?);
    let (raised, lowered) = (op.binary("AddV2", &x, &bias)?, op.binary("Sub", &x, &bias)?);
    let (is_low, is_high) = (op.comparison("Less", &x, &low)?, op.comparison("Greater", &x, &high)?);
    let others = op.select(&is_high, &lowered, &zero)?;
    let y = op.select(&is_low, &raised, &others)?;
    op.set_array(y)
}

/// `x * sigmoid(alpha * x)`.
fn swish_of(op: &mut Op<'_, '_, '_>, x: &Array) -> Result<Array> {
    let alpha = op.float("alpha", 1.0);
    let alpha = op.scalar(x.data_type, f64::from(alpha))?;
    let scaled = op.binary("Mul", x, &alpha)?;
    let weight = op.unary("Sigmoid", &scaled)?;
    op.binary("Mul", x, &weight)
}

fn swish(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let y = swish_of(op, &x)?;
    op.set_array(y)
}

fn swiglu(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, y) = (op.input(0)?, op.input(1)?);
    let gate = swish_of(op, &x)?;
    let z = op.binary("Mul", &gate, &y)?;
    op.set_array(z)
}

fn thresholded_relu(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (x, alpha) = (op.input(0)?, op.float("alpha", 1.0));
    let (alpha, zero) = (op.scalar(x.data_type, f64::from(alpha))?, op.scalar(x.data_type, 0.0)?);
    let is_above = op.comparison("Greater", &x, &alpha)?;
    let y = op.select(&is_above, &x, &zero)?;
    op.set_array(y)
}

fn choose(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let (condition, x, y) = (op.input(0)?, op.input(1)?, op.input(2)?);
    let z = op.select(&condition, &x, &y)?;
    op.set_array(z)
}
