//! Gradients of binary functions with broadcasting. The gradient of each operand is first computed
//! with the result's shape, then summed over the broadcast dimensions.

use super::builder::{Builder, Call, type_attribute};
use crate::proto::attr_value::Value;
use crate::{DataType, OutputId};
use support::{Error, Result};

type Build = fn(&mut Builder<'_>, &Call) -> Result<Vec<Option<OutputId>>>;

/// Operands and the gradient of the result.
#[derive(Clone, Copy)]
struct Pair {
    x: OutputId,
    y: OutputId,
    dz: OutputId,
}

type Parts = fn(&mut Builder<'_>, Pair) -> Result<[OutputId; 2]>;

pub(super) fn find(op: &str) -> Option<Build> {
    Some(match op {
        "Add" | "AddV2" => |b, c| pair(b, c, |_, p| Ok([p.dz, p.dz])),
        "Sub" => |b, c| pair(b, c, |b, p| Ok([p.dz, b.neg(p.dz)?])),
        "Mul" => |b, c| {
            pair(b, c, |b, p| {
                let (x, y) = (conjugate(b, p.x)?, conjugate(b, p.y)?);
                Ok([b.mul(p.dz, y)?, b.mul(x, p.dz)?])
            })
        },
        "MulNoNan" => |b, c| pair(b, c, |b, p| Ok([b.mul(p.dz, p.y)?, b.mul(p.x, p.dz)?])),
        "Div" => |b, c| pair(b, c, |b, p| quotient(b, p, "Div")),
        "RealDiv" => |b, c| pair(b, c, |b, p| quotient(b, p, "RealDiv")),
        "DivNoNan" => |b, c| pair(b, c, |b, p| quotient(b, p, "DivNoNan")),
        "Pow" => |b, c| pair(b, c, power),
        "Xlogy" => |b, c| pair(b, c, |b, p| by_divisor(b, p, "Xlogy", p.y)),
        "Xlog1py" => |b, c| {
            pair(b, c, |b, p| {
                let one = b.number(1.0, p.y)?;
                let divisor = b.op("AddV2", &[p.y, one])?;
                by_divisor(b, p, "Xlog1py", divisor)
            })
        },
        "Xdivy" => |b, c| {
            pair(b, c, |b, p| {
                let square = b.op("Square", &[p.y])?;
                let divisor = b.neg(square)?;
                by_divisor(b, p, "Xdivy", divisor)
            })
        },
        "SquaredDifference" => |b, c| {
            pair(b, c, |b, p| {
                let (two, difference) = (b.number(2.0, p.x)?, b.sub(p.x, p.y)?);
                let factor = b.mul(two, difference)?;
                let of_x = b.mul(factor, p.dz)?;
                Ok([of_x, b.neg(of_x)?])
            })
        },
        "Maximum" => |b, c| pair(b, c, |b, p| chosen(b, p, "GreaterEqual")),
        "Minimum" => |b, c| pair(b, c, |b, p| chosen(b, p, "LessEqual")),
        "Complex" => |b, c| {
            pair(b, c, |b, p| {
                let part =
                    if b.type_of(p.x) == DataType::Double { DataType::Double } else { DataType::Float };
                let whole = b.type_of(p.dz);
                let types = || vec![type_attribute("T", whole), type_attribute("Tout", part)];
                Ok([b.first("Real", &[p.dz], types())?, b.first("Imag", &[p.dz], types())?])
            })
        },
        "BatchMatMulV2" | "BatchMatMulV3" => batch_matmul,
        "BroadcastTo" => |b, c| {
            let (x, shape, dy) = (c.input(0)?, c.input(1)?, c.gradient()?);
            let own = shape_of(b, x, b.type_of(shape))?;
            let [dimensions, _] = repeated(b, own, shape)?;
            Ok(vec![Some(reduce(b, dy, dimensions, own)?), None])
        },
        _ => return None,
    })
}

/// Returns the gradients of two broadcast operands. `parts` computes them with the result's shape.
fn pair(b: &mut Builder<'_>, call: &Call, parts: Parts) -> Result<Vec<Option<OutputId>>> {
    let p = Pair { x: call.input(0)?, y: call.input(1)?, dz: call.gradient()? };
    let [of_x, of_y] = parts(b, p)?;
    let (x, y) = (b.shape(p.x)?, b.shape(p.y)?);
    let [along_x, along_y] = repeated(b, x, y)?;
    Ok(vec![Some(reduce(b, of_x, along_x, x)?), Some(reduce(b, of_y, along_y, y)?)])
}

/// Returns the dimensions along which arrays of two shapes are broadcast.
fn repeated(b: &mut Builder<'_>, x: OutputId, y: OutputId) -> Result<[OutputId; 2]> {
    let data_type = b.type_of(x);
    let node = b.node("BroadcastGradientArgs", &[x, y], vec![type_attribute("T", data_type)])?;
    Ok([0, 1].map(|index| OutputId { node, index }))
}

/// Sums a gradient over the broadcast dimensions, and reshapes it to the operand's shape.
fn reduce(b: &mut Builder<'_>, x: OutputId, dimensions: OutputId, shape: OutputId) -> Result<OutputId> {
    let sum = b.sum(x, dimensions, false)?;
    b.reshape(sum, shape)
}

fn shape_of(b: &mut Builder<'_>, x: OutputId, out_type: DataType) -> Result<OutputId> {
    let data_type = b.type_of(x);
    b.first("Shape", &[x], vec![type_attribute("T", data_type), type_attribute("out_type", out_type)])
}

fn conjugate(b: &mut Builder<'_>, x: OutputId) -> Result<OutputId> {
    match b.type_of(x) {
        DataType::Complex64 | DataType::Complex128 => b.op("Conj", &[x]),
        _ => Ok(x),
    }
}

/// `dz / y` and `dz * (-x / y^2)`.
fn quotient(b: &mut Builder<'_>, p: Pair, op: &str) -> Result<[OutputId; 2]> {
    let of_x = b.op(op, &[p.dz, p.y])?;
    let (negative, square) = (b.neg(p.x)?, b.op("Square", &[p.y])?);
    let factor = b.op(op, &[negative, square])?;
    Ok([of_x, b.mul(p.dz, factor)?])
}

/// `dz * y * x^(y - 1)`, and `dz * x^y * log(x)` where `x` is positive (complex: not 0).
fn power(b: &mut Builder<'_>, p: Pair) -> Result<[OutputId; 2]> {
    let (one, zero) = (b.number(1.0, p.y)?, b.number(0.0, p.x)?);
    let exponent = b.sub(p.y, one)?;
    let (lower, scaled) = (b.op("Pow", &[p.x, exponent])?, b.mul(p.dz, p.y)?);
    let of_x = b.mul(lower, scaled)?;
    let (power, log) = (b.op("Pow", &[p.x, p.y])?, b.op("Log", &[p.x])?);
    let is_complex = matches!(b.type_of(p.x), DataType::Complex64 | DataType::Complex128);
    let counts = b.op(if is_complex { "NotEqual" } else { "Greater" }, &[p.x, zero])?;
    let zeros = b.op("ZerosLike", &[p.x])?;
    let data_type = b.type_of(p.x);
    let log = b.first("SelectV2", &[counts, log, zeros], vec![type_attribute("T", data_type)])?;
    let scaled = b.mul(p.dz, power)?;
    Ok([of_x, b.mul(log, scaled)?])
}

/// Gradients of `x * f(y)`, which is 0 where `x` is 0. The gradient for `x` is `f(y)` where `x` is
/// not 0, and the gradient for `y` is `x / divisor`.
fn by_divisor(b: &mut Builder<'_>, p: Pair, op: &str, divisor: OutputId) -> Result<[OutputId; 2]> {
    let zeros = b.op("ZerosLike", &[p.x])?;
    let counts = b.op("NotEqual", &[p.x, zeros])?;
    let counts = b.cast(counts, b.type_of(p.x))?;
    let (of_x, of_y) = (b.op(op, &[counts, p.y])?, b.op("Xdivy", &[p.x, divisor])?);
    Ok([b.mul(of_x, p.dz)?, b.mul(of_y, p.dz)?])
}

/// Passes `dz` to the operand that was selected, or to the first one if both are equal.
fn chosen(b: &mut Builder<'_>, p: Pair, comparison: &str) -> Result<[OutputId; 2]> {
    let first = b.op(comparison, &[p.x, p.y])?;
    let mask = b.cast(first, b.type_of(p.dz))?;
    let of_x = b.mul(p.dz, mask)?;
    Ok([of_x, b.sub(p.dz, of_x)?])
}

/// Gradients of a matrix product with broadcast batch dimensions.
fn batch_matmul(b: &mut Builder<'_>, call: &Call) -> Result<Vec<Option<OutputId>>> {
    let parts = products(b, call, "BatchMatMulV2", ["adj_x", "adj_y"])?;
    let (x, y) = (b.shape(call.input(0)?)?, b.shape(call.input(1)?)?);
    let batch = |b: &mut Builder<'_>, shape: OutputId| {
        let ends = [b.integers(&[0], false)?, b.integers(&[-2], false)?, b.integers(&[1], false)?];
        let types = vec![type_attribute("T", DataType::Int32), type_attribute("Index", DataType::Int32)];
        b.first("StridedSlice", &[shape, ends[0], ends[1], ends[2]], types)
    };
    let batches = [batch(b, x)?, batch(b, y)?];
    let along = repeated(b, batches[0], batches[1])?;
    Ok(vec![Some(reduce(b, parts[0], along[0], x)?), Some(reduce(b, parts[1], along[1], y)?)])
}

/// Returns the gradients of the factors of a matrix product, with the result's batch dimensions.
pub(super) fn products(
    b: &mut Builder<'_>,
    call: &Call,
    op: &str,
    names: [&'static str; 2],
) -> Result<[OutputId; 2]> {
    let (x, y, dz) = (call.input(0)?, call.input(1)?, call.gradient()?);
    let data_type = b.type_of(x);
    if matches!(data_type, DataType::Complex64 | DataType::Complex128) {
        return Err(Error::unsupported("TensorFlow has no gradient for products of complex matrices"));
    }
    let attribute = |name: &str| call.node.attributes.bool_or(name, false);
    let (of_x, of_y) = match (attribute(names[0])?, attribute(names[1])?) {
        (false, false) => ((dz, false, y, true), (x, true, dz, false)),
        (false, true) => ((dz, false, y, false), (dz, true, x, false)),
        (true, false) => ((y, false, dz, true), (x, false, dz, false)),
        (true, true) => ((y, true, dz, true), (dz, true, x, true)),
    };
    let mut product = |(left, left_turned, right, right_turned): (OutputId, bool, OutputId, bool)| {
        let turned = [(names[0], Value::B(left_turned)), (names[1], Value::B(right_turned))];
        let attributes = [vec![type_attribute("T", data_type)], turned.to_vec()].concat();
        b.first(op, &[left, right], attributes)
    };
    Ok([product(of_x)?, product(of_y)?])
}
