//! Batch normalization by XLA's formulas (`xla/service/batchnorm_expander.cc`), computed in `f64`.

use crate::array::{array, arrays, check_array, from_scalars};
use crate::contraction::terms;
use shape::index::row_major_strides;
use shape::{ArrayShape, Literal, Scalar, Shape};
use support::{Error, Result};

/// The feature of each element of an operand.
struct Features {
    feature: Vec<usize>,
    count: usize,
}

impl Features {
    fn new(operand: &Literal, feature_index: usize, vectors: &[&Literal]) -> Result<Self> {
        check_array(operand)?;
        let sizes = operand.array_shape().sizes();
        let Some(&count) = sizes.get(feature_index) else {
            return Err(Error::invalid(format!("{} has no dimension {feature_index}", operand.shape())));
        };
        for vector in vectors {
            check_array(vector)?;
            if vector.array_shape().element_count() != count {
                return Err(Error::invalid(format!("expected {count} elements, got {}", vector.shape())));
            }
        }
        let stride = row_major_strides(&sizes)[feature_index];
        let feature = |i: i64| (i / stride % count) as usize;
        let elements = operand.array_shape().element_count();
        Ok(Self { feature: (0..elements).map(feature).collect(), count: count as usize })
    }

    /// Returns the sum over the elements of each feature.
    fn sums(&self, value: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        self.feature.iter().enumerate().for_each(|(i, &f)| sums[f] += value(i));
        sums
    }

    /// Returns the number of elements per feature.
    fn elements_each(&self) -> f64 {
        self.feature.len() as f64 / self.count as f64
    }

    fn map(&self, result: &ArrayShape, value: impl Fn(usize, usize) -> f64) -> Literal {
        from_scalars(result, self.feature.iter().enumerate().map(|(i, &f)| Scalar::Float(value(i, f))))
    }
}

fn vector(result: &ArrayShape, values: Vec<f64>) -> Literal {
    from_scalars(result, values.into_iter().map(Scalar::Float))
}

/// `scale (x - mean) / sqrt(variance + epsilon) + offset`.
pub(crate) fn inference(
    shape: &Shape,
    [operand, scale, offset, mean, variance]: [&Literal; 5],
    epsilon: f32,
    feature_index: usize,
) -> Result<Literal> {
    let features = Features::new(operand, feature_index, &[scale, offset, mean, variance])?;
    let [x, scale, offset, mean, variance]: [Vec<f64>; 5] =
        [operand, scale, offset, mean, variance].map(terms);
    let epsilon = f64::from(epsilon);
    Ok(features
        .map(&array(shape)?, |i, f| scale[f] * (x[i] - mean[f]) / (variance[f] + epsilon).sqrt() + offset[f]))
}

/// Returns the normalized operand, and the batch's mean and (biased) variance.
pub(crate) fn training(
    shape: &Shape,
    [operand, scale, offset]: [&Literal; 3],
    epsilon: f32,
    feature_index: usize,
) -> Result<Literal> {
    let results = arrays(shape)?;
    let [normalized, mean_shape, variance_shape] = results.as_slice() else {
        return Err(Error::invalid(format!("expected 3 results, got {shape}")));
    };
    let features = Features::new(operand, feature_index, &[scale, offset])?;
    let [x, scale, offset]: [Vec<f64>; 3] = [operand, scale, offset].map(terms);
    let count = features.elements_each();
    let mean: Vec<f64> = features.sums(|i| x[i]).into_iter().map(|sum| sum / count).collect();
    let squares = features.sums(|i| {
        let difference = x[i] - mean[features.feature[i]];
        difference * difference
    });
    let variance: Vec<f64> = squares.into_iter().map(|sum| sum / count).collect();
    let epsilon = f64::from(epsilon);
    let y = features
        .map(normalized, |i, f| scale[f] * (x[i] - mean[f]) / (variance[f] + epsilon).sqrt() + offset[f]);
    Ok(Literal::Tuple(vec![y, vector(mean_shape, mean), vector(variance_shape, variance)]))
}

/// Returns the gradients of operand, scale, and offset.
pub(crate) fn grad(
    shape: &Shape,
    [operand, scale, mean, variance, grad_output]: [&Literal; 5],
    epsilon: f32,
    feature_index: usize,
) -> Result<Literal> {
    let results = arrays(shape)?;
    let [operand_shape, scale_shape, offset_shape] = results.as_slice() else {
        return Err(Error::invalid(format!("expected 3 results, got {shape}")));
    };
    let features = Features::new(operand, feature_index, &[scale, mean, variance])?;
    if grad_output.shape() != operand.shape() {
        return Err(Error::invalid(format!(
            "expected a gradient of shape {}, got {}",
            operand.shape(),
            grad_output.shape()
        )));
    }
    let [x, scale, mean, variance, dy]: [Vec<f64>; 5] =
        [operand, scale, mean, variance, grad_output].map(terms);
    let count = features.elements_each();
    let spread: Vec<f64> = variance.iter().map(|v| v + f64::from(epsilon)).collect();
    let sum = features.sums(|i| dy[i]);
    let product = features.sums(|i| dy[i] * (x[i] - mean[features.feature[i]]));
    let dx = features.map(operand_shape, |i, f| {
        let centered = count * dy[i] - sum[f] - (x[i] - mean[f]) * product[f] / spread[f];
        scale[f] / spread[f].sqrt() / count * centered
    });
    let dscale = product.iter().zip(&spread).map(|(p, s)| p / s.sqrt()).collect();
    Ok(Literal::Tuple(vec![dx, vector(scale_shape, dscale), vector(offset_shape, sum)]))
}
