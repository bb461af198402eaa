//! Shape queries, and ops that change an array's shape without moving elements.

use super::{Context, Row};
use crate::value::{Tensor, Value};
use support::{Error, Result};
use tf::{DataType, PartialShape};

pub(super) const OPS: &[Row] = &[
    ("Shape", |cx| shapes(cx, 1)),
    ("ShapeN", |cx| shapes(cx, cx.inputs.len())),
    ("Rank", |cx| {
        let rank = sizes(cx.input(0)?)?.len();
        let tensor = Tensor::scalar(rank as i32)?;
        cx.push(tensor);
        Ok(())
    }),
    ("Size", |cx| {
        let sizes = sizes(cx.input(0)?)?;
        let count: i64 = sizes.iter().product();
        let tensor = Tensor::integers(is_wide(cx)?, &[], &[count])?;
        cx.push(tensor);
        Ok(())
    }),
    ("Reshape", |cx| {
        let value = cx.input(0)?.clone();
        let requested = cx.integers(1)?;
        let sizes = reshaped(&sizes(&value)?, &requested)?;
        with_sizes(cx, value, sizes)
    }),
    ("ExpandDims", expand_dims),
    ("Squeeze", squeeze),
    ("EnsureShape", ensure_shape),
    ("InvertPermutation", invert_permutation),
    ("BroadcastArgs", |cx| broadcast_arguments(cx, false)),
    ("BroadcastGradientArgs", |cx| broadcast_arguments(cx, true)),
    ("ConcatOffset", concat_offset),
];

/// Sizes of an array or of strings.
pub(super) fn sizes(value: &Value) -> Result<Vec<i64>> {
    match value {
        Value::Strings(strings) => Ok(strings.sizes.clone()),
        value => Ok(value.tensor()?.shape().sizes()),
    }
}

/// True if `out_type` is `int64`.
pub(super) fn is_wide(cx: &Context<'_>) -> Result<bool> {
    Ok(cx.node.attributes.ty_or("out_type", DataType::Int32)? == DataType::Int64)
}

fn shapes(cx: &mut Context<'_>, count: usize) -> Result<()> {
    let wide = is_wide(cx)?;
    for k in 0..count {
        let sizes = sizes(cx.input(k)?)?;
        cx.push(Tensor::integers(wide, &[sizes.len() as i64], &sizes)?);
    }
    Ok(())
}

/// Outputs a value with other sizes.
fn with_sizes(cx: &mut Context<'_>, value: Value, sizes: Vec<i64>) -> Result<()> {
    let reshaped: Option<Value> = match &value {
        Value::Strings(strings) => {
            let count = shape::index::element_count(&sizes);
            (count == Some(strings.strings.len() as i64)).then(|| {
                crate::value::Strings { sizes: sizes.clone(), strings: strings.strings.clone() }.into()
            })
        }
        value => value.tensor()?.reshaped(&sizes).map(Value::from),
    };
    let reshaped = reshaped.ok_or_else(|| {
        Error::invalid(format!("the number of elements of the input does not match the sizes {sizes:?}"))
    })?;
    cx.push(reshaped);
    Ok(())
}

/// The sizes that `Reshape` returns. A size of -1 is inferred.
fn reshaped(current: &[i64], requested: &[i64]) -> Result<Vec<i64>> {
    let count: i64 = current.iter().product();
    let wrong = || {
        Error::invalid(format!(
            "Input to reshape is a tensor with {count} values, but the requested shape is {requested:?}"
        ))
    };
    let known = requested.iter().filter(|&&size| size != -1);
    let product =
        known.clone().try_fold(1i64, |product, &size| product.checked_mul(size).filter(|p| *p >= 0));
    let product = product.filter(|_| known.clone().all(|&size| size >= 0)).ok_or_else(wrong)?;
    match requested.iter().filter(|&&size| size == -1).count() {
        0 => Ok(requested.to_vec()),
        1 => {
            let inferred = match product {
                0 if count == 0 => 0,
                0 => return Err(wrong()),
                product if count % product == 0 => count / product,
                _ => return Err(wrong()),
            };
            Ok(requested.iter().map(|&size| if size == -1 { inferred } else { size }).collect())
        }
        _ => Err(Error::invalid(format!("at most one size of a shape may be -1, got {requested:?}"))),
    }
}

fn expand_dims(cx: &mut Context<'_>) -> Result<()> {
    let value = cx.input(0)?.clone();
    let mut sizes = sizes(&value)?;
    let (axis, rank) = (cx.integer(1)?, sizes.len() as i64);
    let at = if axis < 0 { axis + rank + 1 } else { axis };
    if !(0..=rank).contains(&at) {
        return Err(Error::invalid(format!("axis {axis} must be in [{}, {rank}]", -rank - 1)));
    }
    sizes.insert(at as usize, 1);
    with_sizes(cx, value, sizes)
}

fn squeeze(cx: &mut Context<'_>) -> Result<()> {
    let value = cx.input(0)?.clone();
    let sizes = sizes(&value)?;
    let axes = cx.node.attributes.ints_or("squeeze_dims", Vec::new())?;
    let rank = sizes.len() as i64;
    let mut dropped: Vec<bool> = sizes.iter().map(|&size| axes.is_empty() && size == 1).collect();
    for axis in axes {
        let at = if axis < 0 { axis + rank } else { axis };
        if !(0..rank).contains(&at) || sizes[at as usize] != 1 {
            return Err(Error::invalid(format!("Can not squeeze dim[{axis}] of {sizes:?}")));
        }
        dropped[at as usize] = true;
    }
    let remaining =
        sizes.iter().zip(&dropped).filter(|(_, dropped)| !**dropped).map(|(&size, _)| size).collect();
    with_sizes(cx, value, remaining)
}

fn ensure_shape(cx: &mut Context<'_>) -> Result<()> {
    let value = cx.input(0)?.clone();
    let (sizes, expected) = (sizes(&value)?, cx.node.attributes.shape_or("shape", PartialShape::UNKNOWN)?);
    if !expected.allows(&sizes) {
        return Err(Error::invalid(format!(
            "Shape of tensor {} is not compatible with expected shape {expected}",
            PartialShape::known(&sizes)
        )));
    }
    cx.push(value);
    Ok(())
}

fn invert_permutation(cx: &mut Context<'_>) -> Result<()> {
    let tensor = cx.tensor(0)?;
    let values = tensor.to_i64s()?;
    let mut inverse = vec![-1; values.len()];
    for (k, &value) in values.iter().enumerate() {
        match usize::try_from(value).ok().and_then(|at| inverse.get_mut(at)) {
            Some(place) if *place == -1 => *place = k as i64,
            _ => {
                let count = values.len();
                return Err(Error::invalid(format!(
                    "the input is not a permutation: element {k} is {value}, which is a duplicate or not in [0, {count})"
                )));
            }
        }
    }
    let wide = tensor.shape().element_type == shape::PrimitiveType::S64;
    cx.push(Tensor::integers(wide, &[inverse.len() as i64], &inverse)?);
    Ok(())
}

/// Broadcasts two shapes. For a gradient, returns the dimensions of each that are summed instead.
fn broadcast_arguments(cx: &mut Context<'_>, is_gradient: bool) -> Result<()> {
    let wide = cx.tensor(0)?.shape().element_type == shape::PrimitiveType::S64;
    let (x, y) = (cx.integers(0)?, cx.integers(1)?);
    let rank = x.len().max(y.len());
    let padded = |sizes: &[i64]| {
        let mut all = vec![1; rank - sizes.len()];
        all.extend(sizes);
        all
    };
    let (px, py) = (padded(&x), padded(&y));
    let (mut shape, mut axes_x, mut axes_y) = (Vec::new(), Vec::new(), Vec::new());
    for (d, (&a, &b)) in px.iter().zip(&py).enumerate() {
        if a != b && a != 1 && b != 1 {
            return Err(Error::invalid(format!("Incompatible shapes: {x:?} vs. {y:?}")));
        }
        shape.push(if a == 1 { b } else { a });
        // A dimension of size 1 on both sides is reduced on both sides, which leaves its values
        // unchanged.
        if a == 1 {
            axes_x.push(d as i64);
        }
        if b == 1 {
            axes_y.push(d as i64);
        }
    }
    if !is_gradient {
        cx.push(Tensor::integers(wide, &[shape.len() as i64], &shape)?);
        return Ok(());
    }
    if x == y {
        (axes_x, axes_y) = (Vec::new(), Vec::new());
    }
    for axes in [axes_x, axes_y] {
        cx.push(Tensor::integers(wide, &[axes.len() as i64], &axes)?);
    }
    Ok(())
}

/// The offset of each operand in a concatenation.
fn concat_offset(cx: &mut Context<'_>) -> Result<()> {
    let axis = cx.integer(0)?;
    let count = cx.inputs.len();
    let mut offset = 0;
    for k in 1..count {
        let tensor = cx.tensor(k)?;
        let sizes = tensor.to_i64s()?;
        let rank = sizes.len() as i64;
        let at = if axis < 0 { axis + rank } else { axis };
        if !(0..rank).contains(&at) {
            return Err(Error::invalid(format!("axis {axis} is out of range for rank {rank}")));
        }
        let mut begins = vec![0; sizes.len()];
        begins[at as usize] = offset;
        offset += sizes[at as usize];
        let wide = tensor.shape().element_type == shape::PrimitiveType::S64;
        cx.push(Tensor::integers(wide, &[rank], &begins)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_minus_one_is_inferred() {
        assert_eq!(reshaped(&[2, 6], &[3, -1]).expect("fits"), [3, 4]);
        assert_eq!(reshaped(&[0, 6], &[-1, 6]).expect("fits"), [0, 6]);
        assert_eq!(reshaped(&[], &[-1]).expect("fits"), [1]);
        for wrong in [&[5, -1][..], &[-1, -1], &[-2, 6], &[i64::MAX, 4, -1]] {
            assert!(reshaped(&[2, 6], wrong).is_err(), "{wrong:?}");
        }
    }
}
