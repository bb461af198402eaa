//! `convolution`, with every attribute that XLA supports.

use crate::array::{array, check_array, dot, for_each_row};
use crate::complex::Complex;
use crate::contraction::{Term, add_products, terms};
use crate::evaluator::Evaluator;
use hlo::{ConvolutionDimensionNumbers, Window, WindowDimension};
use shape::index::{indices, linear_index, multi_index, row_major_strides};
use shape::{ArrayShape, Literal, Shape};
use support::{Error, Result};

/// Attributes of a convolution.
pub(crate) struct Convolution<'a> {
    pub(crate) window: &'a Window,
    pub(crate) dim_labels: &'a ConvolutionDimensionNumbers,
    pub(crate) feature_group_count: i64,
    pub(crate) batch_group_count: i64,
}

impl Evaluator<'_> {
    /// Evaluates `convolution`.
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
        // Both operands as 64-bit numbers, transposed to a fixed order.
        let elements = lhs.array_shape().element_count() + rhs.array_shape().element_count();
        support::check_memory(
            (elements as u64)
                .saturating_mul(16)
                .saturating_add((result.element_count() as u64).saturating_mul(32)),
            format_args!("the evaluation of the convolution {result}"),
        )?;
        self.charge_product(&[result.element_count(), taps.max(1), features.max(1)])?;
        if convolution.feature_group_count < 1 || convolution.batch_group_count < 1 {
            return Err(Error::invalid(format!(
                "expected positive group counts, got {} and {}",
                convolution.feature_group_count, convolution.batch_group_count
            )));
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

/// Transposes the operands to `[batch, spatial..., feature]` and
/// `[spatial..., input feature, output feature]`, accumulates the sums for all features of one
/// output position side by side, and transposes the result to its order.
fn convolve<T: Term>(
    result: &ArrayShape,
    lhs: &Literal,
    rhs: &Literal,
    convolution: &Convolution<'_>,
) -> Result<Literal> {
    let labels = convolution.dim_labels;
    let order = |first: usize, spatial: &[usize], last: usize| [&[first], spatial, &[last]].concat();
    let kernel_order = [
        &labels.kernel_spatial_dimensions[..],
        &[labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension],
    ]
    .concat();
    let lhs = lhs.transpose(&order(
        labels.input_batch_dimension,
        &labels.input_spatial_dimensions,
        labels.input_feature_dimension,
    ));
    let rhs = rhs.transpose(&kernel_order);
    let output_order = order(
        labels.output_batch_dimension,
        &labels.output_spatial_dimensions,
        labels.output_feature_dimension,
    );
    let output_sizes: Vec<i64> = output_order.iter().map(|&d| result.size(d)).collect();

    let sums: Vec<T> = sums(&output_sizes, &lhs, &rhs, convolution);
    let output = T::write(ArrayShape::new(result.element_type, &output_sizes), sums);
    let place = |d: usize| output_order.iter().position(|&o| o == d);
    let inverse: Option<Vec<usize>> = (0..result.rank()).map(place).collect();
    let inverse =
        inverse.ok_or_else(|| Error::invalid("the output's dimension numbers are not a permutation"))?;
    Ok(output.transpose(&inverse))
}

/// Returns the sums in the order `[batch, spatial..., feature]`.
fn sums<T: Term>(output: &[i64], lhs: &Literal, rhs: &Literal, convolution: &Convolution<'_>) -> Vec<T> {
    let (lhs_sizes, rhs_sizes) = (lhs.array_shape().sizes(), rhs.array_shape().sizes());
    let lhs_strides = row_major_strides(&lhs_sizes);
    let (lhs, rhs): (Vec<T>, Vec<T>) = (terms(lhs), terms(rhs));
    let (taps, features) = rhs_sizes.split_at(rhs_sizes.len() - 2);
    let [input_features, output_features] = [features[0] as usize, features[1] as usize];
    let features_of_group = (output_features as i64 / convolution.feature_group_count).max(1) as usize;
    let features_of_batch_group = (output_features as i64 / convolution.batch_group_count).max(1) as usize;
    let batch_of_group = lhs_sizes[0] / convolution.batch_group_count;
    let taps: Vec<Vec<i64>> = indices(taps).collect();
    let tap_size = input_features * output_features;

    let mut sums = vec![T::ZERO; output.iter().product::<i64>() as usize];
    if input_features == 0 {
        return sums;
    }
    for_each_row(&mut sums, output_features, taps.len().saturating_mul(tap_size), |row, sums| {
        let at = multi_index(&output[..output.len() - 1], row as i64);
        let taps: Vec<(i64, usize)> = taps
            .iter()
            .filter_map(|tap| {
                let positions = positions(&at[1..], tap, convolution.window, &lhs_sizes[1..])?;
                Some((dot(&positions, &lhs_strides[1..]), kernel_position(tap, convolution.window)))
            })
            .collect();
        // Neighbors that read the same input features are computed together.
        let mut first = 0;
        while first < output_features {
            let (group, batch_group) = (first / features_of_group, first / features_of_batch_group);
            let end = ((group + 1) * features_of_group).min((batch_group + 1) * features_of_batch_group);
            let end = end.min(output_features);
            let batch = at[0] + batch_group as i64 * batch_of_group;
            let start = batch * lhs_strides[0] + (group * input_features) as i64;
            for &(position, tap) in &taps {
                let x = &lhs[(start + position) as usize..][..input_features];
                add_products(&mut sums[first..end], x, &rhs[tap * tap_size + first..], output_features);
            }
            first = end;
        }
    });
    sums
}

/// Returns the input position that a tap of the window reads at an output position, or `None` in
/// the padding or between dilated elements.
fn positions(at: &[i64], tap: &[i64], window: &Window, sizes: &[i64]) -> Option<Vec<i64>> {
    let position = |(d, window): (usize, &WindowDimension)| {
        let dilated = at[d] * window.stride - window.padding_low + tap[d] * window.window_dilation;
        let position = dilated / window.base_dilation;
        (dilated >= 0 && dilated % window.base_dilation == 0 && position < sizes[d]).then_some(position)
    };
    window.dimensions.iter().enumerate().map(position).collect()
}

/// Returns the row-major position of a tap in the kernel.
fn kernel_position(tap: &[i64], window: &Window) -> usize {
    let reversed = |(window, &t): (&WindowDimension, &i64)| {
        if window.window_reversal { window.size - 1 - t } else { t }
    };
    let tap: Vec<i64> = window.dimensions.iter().zip(tap).map(reversed).collect();
    let sizes: Vec<i64> = window.dimensions.iter().map(|w| w.size).collect();
    linear_index(&sizes, &tap) as usize
}
