//! `dot`, and the arithmetic of sums of products.

use crate::array::{array, check_array};
use crate::complex::{self, Complex};
use crate::evaluator::Evaluator;
use crate::float::round_scalar;
use crate::integer::wrap;
use hlo::DotDimensionNumbers;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::{Error, Result};

/// A type in which products are summed.
pub(crate) trait Term: Copy {
    const ZERO: Self;
    fn from_scalar(scalar: Scalar) -> Self;
    fn multiply_add(self, x: Self, y: Self) -> Self;
    fn to_scalar(self, element_type: PrimitiveType) -> Scalar;
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

/// Integers modulo 2^64, which wrap to any width in the end; `pred` as 0 and 1, where a sum is "any".
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

/// All elements of an array as terms.
pub(crate) fn terms<T: Term>(literal: &Literal) -> Vec<T> {
    literal.scalars().map(T::from_scalar).collect()
}

impl Evaluator<'_> {
    /// `dot`: batch dimensions, then the lhs's free ones, then the rhs's.
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
        let (lhs, [batch, rows, depth]) = grouped(lhs, &n.lhs_batch_dims, &n.lhs_contracting_dims)?;
        let (rhs, [rhs_batch, columns, rhs_depth]) =
            grouped(rhs, &n.rhs_batch_dims, &n.rhs_contracting_dims)?;
        if (batch, depth) != (rhs_batch, rhs_depth) || result.element_count() != batch * rows * columns {
            return Err(Error::invalid(format!("the operands' dimensions do not give {result}")));
        }
        self.charge_product(&[batch, rows, columns, depth.max(1)])?;
        let (lhs, rhs): (Vec<T>, Vec<T>) = (terms(&lhs), terms(&rhs));
        let depth = depth as usize;
        let mut sums = Vec::with_capacity(result.element_count() as usize);
        for b in 0..batch as usize {
            for i in 0..rows as usize {
                let row = &lhs[(b * rows as usize + i) * depth..][..depth];
                for j in 0..columns as usize {
                    let column = &rhs[(b * columns as usize + j) * depth..][..depth];
                    let sum = row.iter().zip(column).fold(T::ZERO, |sum, (&x, &y)| sum.multiply_add(x, y));
                    sums.push(sum.to_scalar(result.element_type));
                }
            }
        }
        Ok(Literal::from_scalars(result.clone(), sums))
    }
}

/// The operand transposed to batch, free and contracting dimensions, and the number of indices of each group.
fn grouped(operand: &Literal, batch: &[usize], contracting: &[usize]) -> Result<(Literal, [i64; 3])> {
    check_array(operand)?;
    let sizes = operand.array_shape().sizes();
    let free: Vec<usize> =
        (0..sizes.len()).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect();
    let permutation = [batch, &free, contracting].concat();
    if permutation.len() != sizes.len() || permutation.iter().any(|&d| d >= sizes.len()) {
        return Err(Error::invalid(format!("{batch:?} and {contracting:?} are no dimensions of {sizes:?}")));
    }
    let count = |dimensions: &[usize]| dimensions.iter().map(|&d| sizes[d]).product();
    Ok((operand.transpose(&permutation), [count(batch), count(&free), count(contracting)]))
}
