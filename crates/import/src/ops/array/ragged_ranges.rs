//! Concatenated sequences of different lengths.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use bounded::list;
use hlo::InstructionId;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::{Code, Error, Result};
use tf::DataType;

pub(crate) const RULES: &[Rule] = &[rule_many("RaggedRange", ragged_range)
    .types("T", &[DataType::Bfloat16, DataType::Float, DataType::Double, DataType::Int32, DataType::Int64])
    .types("Tsplits", &[DataType::Int32, DataType::Int64])];

/// Maximum number of values of all sequences that are known at compile time.
const MAX_VALUES: i128 = 1 << 24;

/// `RaggedRange(starts, limits, deltas)`: the beginning of each sequence, and the values `start,
/// start + delta, ...` below `limit` of all sequences. The number of values must be known at
/// compile time. It is if all three inputs are constant, or if they are integers and both the steps
/// and the distance of each limit from its start are constant.
fn ragged_range(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut sizes = Vec::with_capacity(3);
    for (k, name) in ["starts", "limits", "deltas"].into_iter().enumerate() {
        let id = cx.input(k)?;
        let sizes_k = cx.sizes(id);
        cx.check(sizes_k.len() <= 1, || {
            format!("{name}: expected a scalar or a vector, got shape {}", list(&sizes_k))
        })?;
        sizes.push(sizes_k.first().copied());
    }
    let rows = sizes.iter().flatten().next().copied().unwrap_or(1);
    cx.check(sizes.iter().flatten().all(|&size| size == rows), || {
        "expected scalars or equal lengths for starts, limits, and deltas".to_owned()
    })?;
    let ids = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let known = ids.map(|id| cx.fold(id));
    let splits_type = cx.output_type(0)?;
    if let [Some(starts), Some(limits), Some(deltas)] = &known {
        return known_ranges(cx, [starts, limits, deltas], rows, splits_type);
    }
    moving_ranges(cx, known[2].as_ref(), rows, &sizes, splits_type)
}

/// Returns the element of a row, or the only one for all rows.
fn element(literal: &Literal, row: i64) -> Scalar {
    let is_one = literal.array_shape().rank() == 0;
    literal.scalar_at(if is_one { 0 } else { row as usize })
}

/// Returns the number of steps of `delta` from `start` to `limit`.
fn steps(cx: &NodeContext<'_, '_>, start: i128, limit: i128, delta: i128) -> Result<i128> {
    cx.check(delta != 0, || "deltas must not be 0".to_owned())?;
    let distance = if delta > 0 { limit - start } else { start - limit };
    Ok(if distance <= 0 { 0 } else { (distance + delta.abs() - 1) / delta.abs() })
}

/// Like [`steps`] for floats, divided in their own type.
fn float_steps(cx: &NodeContext<'_, '_>, values: [f64; 3], element_type: PrimitiveType) -> Result<i128> {
    let [start, limit, delta] = values;
    cx.check(delta != 0.0, || "deltas must not be 0".to_owned())?;
    if (delta > 0.0 && limit < start) || (delta < 0.0 && limit > start) {
        return Ok(0);
    }
    let distance = rounded(limit - start, element_type);
    let count = rounded(distance / delta, element_type).abs().ceil();
    cx.check(count <= MAX_VALUES as f64, || format!("a sequence has too many elements: {count}"))?;
    Ok(count as i128)
}

/// Rounds a result to a floating-point type.
fn rounded(value: f64, element_type: PrimitiveType) -> f64 {
    if element_type == PrimitiveType::F64 {
        return value;
    }
    let scalar = [Scalar::Float(value)];
    let literal = Literal::from_scalars(ArrayShape::new(element_type, &[]), scalar);
    literal.scalar_at(0).as_f64().unwrap_or(value)
}

/// Returns the beginnings of sequences of these lengths as a constant, and their total length.
fn splits(
    cx: &mut NodeContext<'_, '_>,
    counts: &[i128],
    splits_type: PrimitiveType,
) -> Result<(InstructionId, i64)> {
    let mut total = 0i128;
    let mut splits = vec![0i64];
    for count in counts {
        total += count;
        cx.check(total <= MAX_VALUES, || {
            format!("the sequences have more than {MAX_VALUES} values; generate them where they are used")
        })?;
        splits.push(total as i64);
    }
    Ok((cx.integers(splits_type, &splits)?, total as i64))
}

/// Constant sequences. Each value is its predecessor plus the step, as in TensorFlow.
fn known_ranges(
    cx: &mut NodeContext<'_, '_>,
    [starts, limits, deltas]: [&Literal; 3],
    rows: i64,
    splits_type: PrimitiveType,
) -> Result<Vec<InstructionId>> {
    let element_type = starts.array_shape().element_type;
    let mut counts = Vec::with_capacity(rows as usize);
    for row in 0..rows {
        let parts = [starts, limits, deltas].map(|literal| element(literal, row));
        counts.push(if element_type.is_integer() {
            let [start, limit, delta] = parts.map(|part| i128::from(part.as_i64().unwrap_or_default()));
            steps(cx, start, limit, delta)?
        } else {
            float_steps(cx, parts.map(|part| part.as_f64().unwrap_or(f64::NAN)), element_type)?
        });
    }
    let (splits, total) = splits(cx, &counts, splits_type)?;
    let mut values = Vec::with_capacity(total as usize);
    for (row, &count) in counts.iter().enumerate() {
        let (start, delta) = (element(starts, row as i64), element(deltas, row as i64));
        if let (true, Some(start), Some(delta)) = (element_type.is_integer(), start.as_i64(), delta.as_i64())
        {
            values
                .extend((0..count as i64).map(|k| Scalar::Signed(start.wrapping_add(delta.wrapping_mul(k)))));
        } else {
            let (mut value, delta) = (start.as_f64().unwrap_or(f64::NAN), delta.as_f64().unwrap_or(f64::NAN));
            for _ in 0..count {
                values.push(Scalar::Float(value));
                value = rounded(value + delta, element_type);
            }
        }
    }
    let values = Literal::from_scalars(ArrayShape::new(element_type, &[total]), values);
    Ok(vec![splits, cx.literal(values)])
}

/// Integer sequences with run-time starts, but known lengths and steps.
fn moving_ranges(
    cx: &mut NodeContext<'_, '_>,
    deltas: Option<&Literal>,
    rows: i64,
    sizes: &[Option<i64>],
    splits_type: PrimitiveType,
) -> Result<Vec<InstructionId>> {
    let starts = cx.input(0)?;
    let element_type = cx.element_type(starts);
    let unknown = || {
        Error::unsupported(
            "the number of values is not known at compile time: make starts, limits, and deltas constants, or integers \
             with constant deltas and limits that are starts plus a constant; or use a dense range with a mask",
        ).coded(Code::NotConstant)
    };
    let deltas = deltas.filter(|_| element_type.is_integer()).ok_or_else(unknown)?;
    let mut counts = Vec::new();
    let (mut row_of, mut offsets) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let position = |k: usize| if sizes[k].is_some() { row as usize } else { 0 };
        let (start, limit) = (position(0), position(1));
        // The two may be rows of different vectors, if one is a scalar.
        let distance = if start == limit { cx.constant_difference(1, 0, start)? } else { None };
        let distance = distance.ok_or_else(unknown)?;
        let delta = element(deltas, row).as_i64().unwrap_or_default();
        let count = steps(cx, 0, i128::from(distance), i128::from(delta))?;
        cx.check(count + row_of.len() as i128 <= MAX_VALUES, || {
            "the sequences have too many values".to_owned()
        })?;
        counts.push(count);
        row_of.extend(std::iter::repeat_n(start as i64, count as usize));
        offsets.extend((0..count as i64).map(|k| delta.wrapping_mul(k)));
    }
    let (splits, total) = splits(cx, &counts, splits_type)?;
    let offsets: Vec<Scalar> = offsets.into_iter().map(Scalar::Signed).collect();
    let offsets = cx.literal(Literal::from_scalars(ArrayShape::new(element_type, &[total]), offsets));
    let starts = match sizes[0] {
        Some(_) => {
            let rows = cx.integers(PrimitiveType::S32, &row_of)?;
            cx.gather_along(starts, rows, 0, 0)?
        }
        None => cx.broadcast(starts, &[total], &[])?,
    };
    Ok(vec![splits, cx.add(starts, offsets)?])
}
