//! Shapes of values, and arrays accessed as numbers or as bytes.

use crate::float::round_scalar;
use shape::index::{advance, row_major_strides};
use shape::{ArrayShape, Literal, Scalar, Shape};
use support::{Error, Result, for_each_chunk};

/// Number of steps that justifies a separate thread.
const STEPS_OF_THREAD: usize = 1 << 23;

/// Calls `compute` with the index of each row of `width` elements, and the row. The last row may be
/// shorter. One call takes about `steps` steps.
pub(crate) fn for_each_row<T: Send>(
    elements: &mut [T],
    width: usize,
    steps: usize,
    compute: impl Fn(usize, &mut [T]) + Sync,
) {
    let rows = elements.len().div_ceil(width.max(1));
    for_each_chunk(elements, width, rows.saturating_mul(steps) / STEPS_OF_THREAD, compute);
}

/// Returns the shape of a value: without layouts and dynamic bits, with tokens as empty tuples.
pub(crate) fn static_shape(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => Shape::Array(static_array(array)),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(static_shape).collect()),
        Shape::Token => Shape::Tuple(Vec::new()),
    }
}

pub(crate) fn static_array(array: &ArrayShape) -> ArrayShape {
    ArrayShape::new(array.element_type, &array.sizes())
}

/// Returns the shape of an array result, or an error for other shapes.
pub(crate) fn array(shape: &Shape) -> Result<ArrayShape> {
    match shape {
        Shape::Array(array) => Ok(static_array(array)),
        other => Err(Error::invalid(format!("expected an array result, got {other}"))),
    }
}

/// Returns the element shapes of a result of one or several arrays.
pub(crate) fn arrays(shape: &Shape) -> Result<Vec<ArrayShape>> {
    match shape {
        Shape::Array(array) => Ok(vec![static_array(array)]),
        Shape::Tuple(elements) => elements.iter().map(array).collect(),
        Shape::Token => Err(Error::invalid("expected an array result, got a token")),
    }
}

/// Packs one literal for an array, or several for a tuple.
pub(crate) fn pack(shape: &Shape, mut literals: Vec<Literal>) -> Literal {
    match shape {
        Shape::Array(_) if literals.len() == 1 => literals.remove(0),
        _ => Literal::Tuple(literals),
    }
}

/// Returns an error unless the literal is an array.
pub(crate) fn check_array(literal: &Literal) -> Result<()> {
    match literal {
        Literal::Array { .. } => Ok(()),
        Literal::Tuple(_) => Err(Error::invalid(format!("expected an array, got {}", literal.shape()))),
    }
}

/// Returns the only element of an array.
pub(crate) fn scalar(literal: &Literal) -> Result<Scalar> {
    match literal {
        Literal::Array { shape, .. } if shape.element_count() == 1 => Ok(literal.scalar_at(0)),
        other => Err(Error::invalid(format!("expected a scalar, got {}", other.shape()))),
    }
}

/// Returns the value of a scalar `pred`.
pub(crate) fn predicate(literal: &Literal) -> Result<bool> {
    match scalar(literal)? {
        Scalar::Pred(value) => Ok(value),
        _ => Err(Error::invalid(format!("expected a pred[], got {}", literal.shape()))),
    }
}

/// Creates an array of numbers, each rounded to the element type.
pub(crate) fn from_scalars(shape: &ArrayShape, scalars: impl IntoIterator<Item = Scalar>) -> Literal {
    let element_type = shape.element_type;
    Literal::from_scalars(shape.clone(), scalars.into_iter().map(|s| round_scalar(element_type, s)))
}

/// An array's elements as bytes, addressed by multi-index.
pub(crate) struct View<'a> {
    bytes: &'a [u8],
    pub(crate) sizes: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    width: usize,
}

impl<'a> View<'a> {
    pub(crate) fn new(literal: &'a Literal) -> Result<Self> {
        check_array(literal)?;
        let shape = literal.array_shape();
        let (sizes, width) = (shape.sizes(), shape.element_type.byte_size());
        Ok(Self { bytes: literal.bytes(), strides: row_major_strides(&sizes), sizes, width })
    }

    /// Returns the element at a row-major position.
    pub(crate) fn at(&self, linear: i64) -> &'a [u8] {
        let start = linear as usize * self.width;
        &self.bytes[start..start + self.width]
    }

    /// Returns the element at a multi-index.
    pub(crate) fn get(&self, index: &[i64]) -> &'a [u8] {
        self.at(dot(index, &self.strides))
    }
}

/// Returns the position of a multi-index.
pub(crate) fn dot(index: &[i64], strides: &[i64]) -> i64 {
    index.iter().zip(strides).map(|(i, s)| i * s).sum()
}

/// Calls `visit` with every multi-index in row-major order.
pub(crate) fn for_each_index(sizes: &[i64], mut visit: impl FnMut(&[i64]) -> Result<()>) -> Result<()> {
    if sizes.contains(&0) {
        return Ok(());
    }
    let mut index = vec![0; sizes.len()];
    loop {
        visit(&index)?;
        if !advance(sizes, &mut index) {
            return Ok(());
        }
    }
}

/// Creates an array by copying each element from `source`.
pub(crate) fn move_elements<'a>(
    shape: &ArrayShape,
    mut source: impl FnMut(&[i64]) -> &'a [u8],
) -> Result<Literal> {
    let mut data = Vec::with_capacity(shape.byte_size() as usize);
    for_each_index(&shape.sizes(), |index| {
        data.extend_from_slice(source(index));
        Ok(())
    })?;
    from_bytes(shape, data)
}

/// Creates an array from bytes, or returns an error if they do not match the shape.
pub(crate) fn from_bytes(shape: &ArrayShape, data: impl Into<bytes::Bytes>) -> Result<Literal> {
    let data = data.into();
    let available = data.len();
    Literal::from_bytes(shape.clone(), data).ok_or_else(|| {
        Error::invalid(format!(
            "{shape} needs {} bytes, but its operands provide {available}",
            shape.byte_size()
        ))
    })
}
