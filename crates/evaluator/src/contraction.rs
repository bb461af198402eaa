//! `dot`, and the arithmetic of sums of products.
//!
//! Every sum adds its terms in row-major order, regardless of the loop structure and the number of
//! threads.

use crate::array::{array, check_array, for_each_row};
use crate::complex::{self, Complex};
use crate::evaluator::Evaluator;
use crate::float::{round_float, round_scalar};
use crate::integer::wrap;
use hlo::DotDimensionNumbers;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::{Error, Result};

/// A type in which products are accumulated.
pub(crate) trait Term: Copy + Send + Sync {
    const ZERO: Self;
    fn from_scalar(scalar: Scalar) -> Self;
    fn multiply_add(self, x: Self, y: Self) -> Self;
    fn to_scalar(self, element_type: PrimitiveType) -> Scalar;

    /// Reads all elements of an array.
    fn read(literal: &Literal) -> Vec<Self> {
        literal.scalars().map(Self::from_scalar).collect()
    }

    /// Converts sums to an array, rounded to its type.
    fn write(shape: ArrayShape, sums: Vec<Self>) -> Literal {
        let element_type = shape.element_type;
        Literal::from_scalars(shape, sums.into_iter().map(|sum| sum.to_scalar(element_type)))
    }
}

impl Term for f64 {
    const ZERO: Self = 0.0;
    fn from_scalar(scalar: Scalar) -> Self {
        scalar.as_f64().unwrap_or(f64::NAN)
    }
    fn multiply_add(self, x: Self, y: Self) -> Self {
        self + x * y
    }
    fn to_scalar(self, element_type: PrimitiveType) -> Scalar {
        round_scalar(element_type, Scalar::Float(self))
    }
    fn read(literal: &Literal) -> Vec<Self> {
        literal.floats().unwrap_or_else(|| literal.scalars().map(Self::from_scalar).collect())
    }
    fn write(shape: ArrayShape, sums: Vec<Self>) -> Literal {
        let element_type = shape.element_type;
        Literal::from_floats(shape, sums.into_iter().map(|sum| round_float(element_type, sum)))
    }
}

impl Term for Complex {
    const ZERO: Self = [0.0, 0.0];
    fn from_scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Complex(re, im) => [re, im],
            other => [f64::from_scalar(other), 0.0],
        }
    }
    fn multiply_add(self, x: Self, y: Self) -> Self {
        complex::add(self, complex::multiply(x, y))
    }
    fn to_scalar(self, element_type: PrimitiveType) -> Scalar {
        round_scalar(element_type, Scalar::Complex(self[0], self[1]))
    }
}

/// Integers modulo 2^64, wrapped to the actual width at the end. `pred` is 0 or 1, with "any" as
/// the sum.
impl Term for u64 {
    const ZERO: Self = 0;
    fn from_scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Unsigned(value) => value,
            other => other.as_i64().unwrap_or(0) as u64,
        }
    }
    fn multiply_add(self, x: Self, y: Self) -> Self {
        self.wrapping_add(x.wrapping_mul(y))
    }
    fn to_scalar(self, element_type: PrimitiveType) -> Scalar {
        match element_type {
            PrimitiveType::Pred => Scalar::Pred(self != 0),
            other => wrap(other, self.into()),
        }
    }
}

/// Reads all elements of an array as terms.
pub(crate) fn terms<T: Term>(literal: &Literal) -> Vec<T> {
    T::read(literal)
}

impl Evaluator<'_> {
    /// Evaluates `dot`. The result has the batch dimensions, then the lhs's free ones, then the
    /// rhs's.
    pub(crate) fn dot(
        &mut self,
        shape: &Shape,
        lhs: &Literal,
        rhs: &Literal,
        numbers: &DotDimensionNumbers,
    ) -> Result<Literal> {
        let result = array(shape)?;
        let element_type = result.element_type;
        if element_type.is_complex() {
            self.dot_of::<Complex>(&result, lhs, rhs, numbers)
        } else if element_type.is_floating_point() {
            self.dot_of::<f64>(&result, lhs, rhs, numbers)
        } else {
            self.dot_of::<u64>(&result, lhs, rhs, numbers)
        }
    }

    fn dot_of<T: Term>(
        &mut self,
        result: &ArrayShape,
        lhs: &Literal,
        rhs: &Literal,
        numbers: &DotDimensionNumbers,
    ) -> Result<Literal> {
        let n = numbers;
        let [lhs_batch, lhs_free, lhs_contracting] = groups(lhs, &n.lhs_batch_dims, &n.lhs_contracting_dims)?;
        let [rhs_batch, rhs_free, rhs_contracting] = groups(rhs, &n.rhs_batch_dims, &n.rhs_contracting_dims)?;
        let [batch, rows, depth] = [&lhs_batch, &lhs_free, &lhs_contracting].map(|group| group.count);
        let columns = rhs_free.count;
        if (batch, depth) != (rhs_batch.count, rhs_contracting.count)
            || result.element_count() != batch * rows * columns
        {
            return Err(Error::invalid(format!("the operands' dimensions do not match the result {result}")));
        }
        self.charge_product(&[batch, rows, columns, depth.max(1)])?;
        let lhs = transposed(lhs, [&lhs_batch, &lhs_free, &lhs_contracting]);
        let rhs = transposed(rhs, [&rhs_batch, &rhs_contracting, &rhs_free]);
        let (lhs, rhs): (Vec<T>, Vec<T>) = (terms(&lhs), terms(&rhs));
        let [rows, columns, depth] = [rows, columns, depth].map(|size| size as usize);
        let mut sums = vec![T::ZERO; result.element_count() as usize];
        for_each_row(&mut sums, columns, columns.saturating_mul(depth), |row, sums| {
            let matrix = &rhs[row / rows * depth * columns..][..depth * columns];
            add_products(sums, &lhs[row * depth..][..depth], matrix, columns);
        });
        Ok(T::write(result.clone(), sums))
    }
}

/// Number of sums accumulated side by side: enough to keep the processor busy, few enough for its
/// registers.
const SUMS: usize = 16;

/// Adds `x[0] y[0][j] + x[1] y[1][j] + ...` to `sums[j]`, from left to right. Rows of `y` are
/// `stride` apart.
pub(crate) fn add_products<T: Term>(sums: &mut [T], x: &[T], y: &[T], stride: usize) {
    let mut blocks = sums.chunks_exact_mut(SUMS);
    let mut first = 0;
    for block in &mut blocks {
        let block: &mut [T; SUMS] = block.try_into().expect("a chunk of this size");
        let mut sum = *block;
        for (k, &x) in x.iter().enumerate() {
            let y: &[T; SUMS] = y[k * stride + first..][..SUMS].try_into().expect("a slice of this size");
            for j in 0..SUMS {
                sum[j] = sum[j].multiply_add(x, y[j]);
            }
        }
        *block = sum;
        first += SUMS;
    }
    for (j, sum) in blocks.into_remainder().iter_mut().enumerate() {
        for (k, &x) in x.iter().enumerate() {
            *sum = sum.multiply_add(x, y[k * stride + first + j]);
        }
    }
}

/// Some dimensions of an operand, and the product of their sizes.
struct Group {
    dimensions: Vec<usize>,
    count: i64,
}

/// Returns the batch, free, and contracting dimensions of an operand.
fn groups(operand: &Literal, batch: &[usize], contracting: &[usize]) -> Result<[Group; 3]> {
    check_array(operand)?;
    let sizes = operand.array_shape().sizes();
    let free: Vec<usize> =
        (0..sizes.len()).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect();
    let all = [batch, &free, contracting].concat();
    if all.len() != sizes.len() || all.iter().any(|&d| d >= sizes.len()) {
        return Err(Error::invalid(format!("{batch:?} and {contracting:?} are not dimensions of {sizes:?}")));
    }
    let group = |dimensions: &[usize]| Group {
        dimensions: dimensions.to_vec(),
        count: dimensions.iter().map(|&d| sizes[d]).product(),
    };
    Ok([group(batch), group(&free), group(contracting)])
}

fn transposed(operand: &Literal, order: [&Group; 3]) -> Literal {
    operand.transpose(&order.map(|group| group.dimensions.as_slice()).concat())
}
