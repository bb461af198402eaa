//! Slices. The start of a slice is known at run time only; its size determines the shape of the
//! result.
//!
//! The host converts ends to sizes, so that a slice that moves with each step needs only one
//! kernel. A contiguous slice is copied directly.

use super::{Context, Prepared, Rewritten, Variant};
use crate::buffer::Buffer;
use crate::value::Tensor;
use shape::ArrayShape;
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value as Attr;

/// Kernel indices: `SLICE` for steps of 1; `STRIDED`, which only `StridedSlice` has, for other
/// steps.
const SLICE: usize = 0;
const STRIDED: usize = 1;

/// The kernels of a slicing node.
pub(super) fn rewrite(node: &tf::Node) -> Result<Option<Rewritten>> {
    let data_type = node.attributes.ty("T")?;
    if data_type.primitive_type().is_none() {
        return Ok(None);
    }
    let index = node.attributes.ty_or("Index", DataType::Int32)?;
    if node.op == "Slice" {
        let variants = vec![Variant { node: node.clone(), input_types: vec![data_type, index, index] }];
        return Ok(Some(Rewritten { variants, prepare: slice }));
    }
    let values = [("T", Attr::Type(data_type.number())), ("Index", Attr::Type(DataType::Int64.number()))];
    let plain = node.replacement("Slice", values, node.output_types.clone());
    let variants = vec![
        Variant { node: plain, input_types: vec![data_type, DataType::Int64, DataType::Int64] },
        Variant { node: node.clone(), input_types: vec![data_type, index, index, index] },
    ];
    Ok(Some(Rewritten { variants, prepare: strided_slice }))
}

/// `Slice(x, begin, size)`; a size of -1 means the rest of the dimension.
fn slice(cx: &mut Context<'_>) -> Result<Prepared> {
    let tensor = cx.tensor(0)?;
    let (begin, mut size) = (cx.integers(1)?, cx.integers(2)?);
    let sizes = tensor.shape().sizes();
    if begin.len() != sizes.len() || size.len() != sizes.len() {
        return Err(Error::invalid(format!(
            "begin {begin:?} and size {size:?} must have an element for each dimension of {}",
            tensor.shape()
        )));
    }
    for (d, ((&begin, size), &whole)) in begin.iter().zip(&mut size).zip(&sizes).enumerate() {
        if *size == -1 {
            *size = whole.saturating_sub(begin);
        }
        let fits = begin >= 0 && *size >= 0 && begin.checked_add(*size).is_some_and(|end| end <= whole);
        if !fits {
            return Err(Error::invalid(format!(
                "Expected begin[{d}] in [0, {whole}] and size[{d}] in [0, {}], but got {begin} and {size}",
                whole.saturating_sub(begin)
            )));
        }
    }
    if let Some(copied) = contiguous(&tensor, &begin, &size)? {
        cx.push(copied);
        return Ok(Prepared::Done);
    }
    let wide = cx.tensor(1)?.shape().element_type == shape::PrimitiveType::S64;
    cx.inputs[2] = Tensor::integers(wide, &[size.len() as i64], &size)?.into();
    Ok(Prepared::Launch(SLICE))
}

/// The slice, if its elements are contiguous.
fn contiguous(tensor: &Tensor, begin: &[i64], size: &[i64]) -> Result<Option<Tensor>> {
    let shape = tensor.shape();
    let sizes = shape.sizes();
    if size == sizes {
        return Ok(Some(tensor.clone()));
    }
    let result = ArrayShape::new(shape.element_type, size);
    let bytes = result.byte_size() as usize;
    if bytes > 0 {
        let first = size.iter().position(|&size| size != 1).unwrap_or(size.len());
        let rest = (first + 1).min(size.len());
        if size[rest..] != sizes[rest..] {
            return Ok(None);
        }
    }
    let offset = begin.iter().zip(&sizes).fold(0, |offset, (&begin, &size)| offset * size + begin);
    let start = if bytes == 0 { 0 } else { offset as usize * shape.element_type.byte_size() };
    let data = Buffer::from_bytes(&tensor.bytes()[start..start + bytes])?;
    Ok(Some(Tensor::new(result.into(), data)))
}

/// Bounds of `StridedSlice` in one dimension.
struct Dimension {
    begin: i64,
    end: i64,
    stride: i64,
    is_dropped: bool,
}

/// Bounds of a slice as the node states them.
struct Bounds {
    begins: Vec<i64>,
    ends: Vec<i64>,
    strides: Vec<i64>,
}

/// Masks of the node.
struct Masks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrink_axis: i64,
}

fn has(mask: i64, i: usize) -> bool {
    i < 64 && mask >> i & 1 == 1
}

/// `StridedSlice(x, begin, end, strides)`.
fn strided_slice(cx: &mut Context<'_>) -> Result<Prepared> {
    let tensor = cx.tensor(0)?;
    let sizes = tensor.shape().sizes();
    let bounds = Bounds { begins: cx.integers(1)?, ends: cx.integers(2)?, strides: cx.integers(3)? };
    let count = bounds.begins.len();
    if count != bounds.ends.len() || count != bounds.strides.len() || count >= 32 {
        return Err(Error::invalid(
            "begin, end, and strides must have the same length, which must be less than 32",
        ));
    }
    let mask = |name: &str| cx.node.attributes.int_or(name, 0);
    let masks = Masks {
        begin: mask("begin_mask")?,
        end: mask("end_mask")?,
        ellipsis: mask("ellipsis_mask")?,
        new_axis: mask("new_axis_mask")?,
        shrink_axis: mask("shrink_axis_mask")?,
    };
    let (dimensions, shape) = dense(&sizes, &bounds, &masks)?;
    if dimensions.iter().any(|dimension| dimension.stride != 1) {
        return Ok(Prepared::Launch(STRIDED));
    }
    let begin: Vec<i64> = dimensions.iter().map(|dimension| dimension.begin).collect();
    let size: Vec<i64> = dimensions.iter().map(|d| (d.end - d.begin).max(0)).collect();
    if let Some(copied) = contiguous(&tensor, &begin, &size)? {
        let reshaped = copied.reshaped(&shape);
        cx.push(reshaped.ok_or_else(|| {
            Error::internal(format!("cannot reshape a slice of sizes {size:?} to {shape:?}"))
        })?);
        return Ok(Prepared::Done);
    }
    let rank = size.len() as i64;
    cx.inputs.truncate(1);
    cx.inputs.push(Tensor::integers(true, &[rank], &begin)?.into());
    cx.inputs.push(Tensor::integers(true, &[rank], &size)?.into());
    Ok(Prepared::Reshape(SLICE, shape))
}

/// Bounds of each dimension of the operand, and the sizes of the result if all strides are 1.
fn dense(sizes: &[i64], bounds: &Bounds, masks: &Masks) -> Result<(Vec<Dimension>, Vec<i64>)> {
    let count = bounds.begins.len();
    let ellipsis = (0..count).find(|&i| has(masks.ellipsis, i));
    let is_new = |i: usize| has(masks.new_axis, i) && Some(i) != ellipsis;
    let named = (0..count).filter(|&i| !is_new(i) && Some(i) != ellipsis).count();
    if named > sizes.len() {
        return Err(Error::invalid(format!(
            "Index out of range using input dim {named}; input has only {} dims",
            sizes.len()
        )));
    }
    let mut dimensions: Vec<Dimension> = Vec::new();
    let mut shape = Vec::new();
    let whole = |dimensions: &mut Vec<Dimension>, shape: &mut Vec<i64>, count: usize| {
        for _ in 0..count {
            let size = sizes[dimensions.len()];
            dimensions.push(Dimension { begin: 0, end: size, stride: 1, is_dropped: false });
            shape.push(size);
        }
    };
    for i in 0..count {
        if Some(i) == ellipsis {
            whole(&mut dimensions, &mut shape, sizes.len() - named);
        } else if is_new(i) {
            shape.push(1);
        } else {
            let dimension = one(sizes[dimensions.len()], dimensions.len(), i, bounds, masks)?;
            if !dimension.is_dropped {
                shape.push((dimension.end - dimension.begin).max(0));
            }
            dimensions.push(dimension);
        }
    }
    let rest = sizes.len() - dimensions.len();
    whole(&mut dimensions, &mut shape, rest);
    Ok((dimensions, shape))
}

/// Bounds of a dimension that the node states.
fn one(
    size: i64,
    d: usize,
    i: usize,
    Bounds { begins, ends, strides }: &Bounds,
    masks: &Masks,
) -> Result<Dimension> {
    let stride = strides[i];
    if stride == 0 {
        return Err(Error::invalid(format!("strides[{i}] must be non-zero")));
    }
    let wrapped = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    if has(masks.shrink_axis, i) {
        if stride <= 0 {
            return Err(Error::invalid("only stride 1 allowed on non-range indexing."));
        }
        let at = wrapped(begins[i]);
        if !(0..size).contains(&at) {
            return Err(Error::invalid(format!("slice index {} of dimension {d} out of bounds.", begins[i])));
        }
        return Ok(Dimension { begin: at, end: at + 1, stride: 1, is_dropped: true });
    }
    let (low, high) = if stride > 0 { (0, size) } else { (-1, size - 1) };
    let (first, last) = if stride > 0 { (low, high) } else { (high, low) };
    let limit = |at: i64, is_masked: bool, default: i64| {
        if is_masked { default } else { wrapped(at).clamp(low, high.max(low)) }
    };
    Ok(Dimension {
        begin: limit(begins[i], has(masks.begin, i), first),
        end: limit(ends[i], has(masks.end, i), last),
        stride,
        is_dropped: false,
    })
}
