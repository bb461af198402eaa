//! `convolution`, with every attribute XLA has.

use crate::array::{array, check_array, for_each_index};
use crate::complex::Complex;
use crate::contraction::{Term, terms};
use crate::evaluator::Evaluator;
use hlo::{ConvolutionDimensionNumbers, Window};
use shape::index::row_major_strides;
use shape::{ArrayShape, Literal, Shape};
use support::{Error, Result};

/// What a convolution is but for its operands.
pub(crate) struct Convolution<'a> {
    pub(crate) window: &'a Window,
    pub(crate) dim_labels: &'a ConvolutionDimensionNumbers,
    pub(crate) feature_group_count: i64,
    pub(crate) batch_group_count: i64,
}

impl Evaluator<'_> {
    /// `convolution`.
    pub(crate) fn convolution(
        &mut self,
        shape: &Shape,
        lhs: &Literal,
        rhs: &Literal,
        convolution: &Convolution<'_>,
    ) -> Result<Literal> {
        let result = array(shape)?;
        check_array(lhs)?;
        check_array(rhs)?;
        let labels = convolution.dim_labels;
        let kernel = rhs.array_shape().sizes();
        let taps: i64 = labels.kernel_spatial_dimensions.iter().map(|&d| kernel[d]).product();
        let features = kernel[labels.kernel_input_feature_dimension];
        self.charge_product(&[result.element_count(), taps.max(1), features.max(1)])?;
        if convolution.feature_group_count < 1 || convolution.batch_group_count < 1 {
            return Err(Error::invalid("group counts must be positive"));
        }
        if result.element_type.is_complex() {
            convolve::<Complex>(&result, lhs, rhs, convolution)
        } else if result.element_type.is_floating_point() {
            convolve::<f64>(&result, lhs, rhs, convolution)
        } else {
            convolve::<u64>(&result, lhs, rhs, convolution)
        }
    }
}

fn convolve<T: Term>(
    result: &ArrayShape,
    lhs: &Literal,
    rhs: &Literal,
    convolution: &Convolution<'_>,
) -> Result<Literal> {
    let labels = convolution.dim_labels;
    let (lhs_sizes, rhs_sizes) = (lhs.array_shape().sizes(), rhs.array_shape().sizes());
    let (lhs_strides, rhs_strides) = (row_major_strides(&lhs_sizes), row_major_strides(&rhs_sizes));
    let (lhs, rhs): (Vec<T>, Vec<T>) = (terms(lhs), terms(rhs));
    let output_features = rhs_sizes[labels.kernel_output_feature_dimension];
    let input_features = rhs_sizes[labels.kernel_input_feature_dimension];
    let features_of_group = (output_features / convolution.feature_group_count).max(1);
    let features_of_batch_group = (output_features / convolution.batch_group_count).max(1);
    let batch_of_group = lhs_sizes[labels.input_batch_dimension] / convolution.batch_group_count;
    let taps: Vec<i64> = labels.kernel_spatial_dimensions.iter().map(|&d| rhs_sizes[d]).collect();
    let lhs_step = lhs_strides[labels.input_feature_dimension];
    let rhs_step = rhs_strides[labels.kernel_input_feature_dimension];

    let mut sums = Vec::with_capacity(result.element_count() as usize);
    for_each_index(&result.sizes(), |out| {
        let feature = out[labels.output_feature_dimension];
        let batch = out[labels.output_batch_dimension] + feature / features_of_batch_group * batch_of_group;
        let lhs_start = batch * lhs_strides[labels.input_batch_dimension]
            + feature / features_of_group * input_features * lhs_step;
        let rhs_start = feature * rhs_strides[labels.kernel_output_feature_dimension];
        let mut sum = T::ZERO;
        for_each_index(&taps, |tap| {
            let (mut lhs_at, mut rhs_at) = (lhs_start, rhs_start);
            for (s, (window, &t)) in convolution.window.dimensions.iter().zip(tap).enumerate() {
                let input = labels.input_spatial_dimensions[s];
                let dilated = out[labels.output_spatial_dimensions[s]] * window.stride - window.padding_low
                    + t * window.window_dilation;
                if dilated < 0 || dilated % window.base_dilation != 0 {
                    return Ok(());
                }
                let position = dilated / window.base_dilation;
                if position >= lhs_sizes[input] {
                    return Ok(());
                }
                let t = if window.window_reversal { window.size - 1 - t } else { t };
                lhs_at += position * lhs_strides[input];
                rhs_at += t * rhs_strides[labels.kernel_spatial_dimensions[s]];
            }
            for f in 0..input_features {
                let (x, y) = (lhs[(lhs_at + f * lhs_step) as usize], rhs[(rhs_at + f * rhs_step) as usize]);
                sum = sum.multiply_add(x, y);
            }
            Ok(())
        })?;
        sums.push(sum.to_scalar(result.element_type));
        Ok(())
    })?;
    Ok(Literal::from_scalars(result.clone(), sums))
}
