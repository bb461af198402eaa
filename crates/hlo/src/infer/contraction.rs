//! Dot and convolution.

use super::{Inference, array_of, either_dynamic};
use crate::attributes::{ConvolutionDimensionNumbers, DotDimensionNumbers, Window};
use shape::{ArrayShape, Dimension, PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    /// Returns the accumulation type: that of the operands, or a wider one that is declared.
    fn sum_type(&self, lhs: &ArrayShape, rhs: &ArrayShape) -> Result<PrimitiveType> {
        match self.declared.and_then(Shape::as_array) {
            Some(declared) => {
                let (operand, result) = (lhs.element_type, declared.element_type);
                let same_kind = operand.is_complex() == result.is_complex()
                    && operand.is_floating_point() == result.is_floating_point();
                let is_widened = operand.is_integer() && result.is_floating_point();
                self.check(
                    same_kind || is_widened,
                    format_args!("cannot accumulate {operand} products in {result}"),
                )?;
                Ok(result)
            }
            None => {
                self.check(
                    lhs.element_type == rhs.element_type,
                    "the operands must have the same element type",
                )?;
                Ok(lhs.element_type)
            }
        }
    }

    pub(super) fn dot(&self, numbers: &DotDimensionNumbers) -> Result<Shape> {
        let (lhs, rhs) = (self.array(0)?, self.array(1)?);
        let lhs_dims = [&numbers.lhs_batch_dims[..], &numbers.lhs_contracting_dims].concat();
        let rhs_dims = [&numbers.rhs_batch_dims[..], &numbers.rhs_contracting_dims].concat();
        self.check_dimensions("lhs batch and contracting dimensions", &lhs_dims, lhs.rank())?;
        self.check_dimensions("rhs batch and contracting dimensions", &rhs_dims, rhs.rank())?;
        self.check(
            numbers.lhs_batch_dims.len() == numbers.rhs_batch_dims.len()
                && numbers.lhs_contracting_dims.len() == numbers.rhs_contracting_dims.len(),
            "both operands must have the same number of batch and of contracting dimensions",
        )?;
        for (&l, &r) in lhs_dims.iter().zip(&rhs_dims) {
            self.check(
                lhs.size(l) == rhs.size(r),
                format_args!("lhs dimension {l} must have the size of rhs dimension {r}"),
            )?;
        }
        let batch = numbers.lhs_batch_dims.iter().zip(&numbers.rhs_batch_dims);
        let mut dimensions: Vec<Dimension> =
            batch.map(|(&l, &r)| either_dynamic(lhs.dimensions[l], rhs.dimensions[r])).collect();
        for (array, used) in [(lhs, &lhs_dims), (rhs, &rhs_dims)] {
            let free = (0..array.rank()).filter(|d| !used.contains(d));
            dimensions.extend(free.map(|d| array.dimensions[d]));
        }
        Ok(array_of(self.sum_type(lhs, rhs)?, dimensions))
    }

    pub(super) fn convolution(
        &self,
        window: &Window,
        labels: &ConvolutionDimensionNumbers,
        feature_groups: i64,
        batch_groups: i64,
    ) -> Result<Shape> {
        let (lhs, rhs) = (self.array(0)?, self.array(1)?);
        self.check_convolution_labels(lhs, rhs, labels)?;
        self.check(
            feature_groups >= 1 && batch_groups >= 1 && (feature_groups == 1 || batch_groups == 1),
            "the group counts must be positive, and one of them 1",
        )?;
        let (batch, features) =
            (lhs.dimensions[labels.input_batch_dimension], lhs.size(labels.input_feature_dimension));
        let kernel_features = rhs.size(labels.kernel_input_feature_dimension);
        let outputs = rhs.dimensions[labels.kernel_output_feature_dimension];
        self.check(
            features % feature_groups == 0 && features / feature_groups == kernel_features,
            format_args!(
                "{features} input features in {feature_groups} feature groups do not match the kernel's {kernel_features} features per group"
            ),
        )?;
        self.check(
            outputs.size % feature_groups == 0 && outputs.size % batch_groups == 0,
            format_args!("the {} output features must be divisible by the group counts", outputs.size),
        )?;
        self.check(
            batch.size % batch_groups == 0,
            format_args!(
                "the batch size {} must be divisible by the {batch_groups} batch groups",
                batch.size
            ),
        )?;
        let kernel: Vec<i64> = labels.kernel_spatial_dimensions.iter().map(|&d| rhs.size(d)).collect();
        let sizes: Vec<i64> = window.dimensions.iter().map(|d| d.size).collect();
        self.check(
            kernel == sizes,
            format_args!("the window sizes {sizes:?} differ from the kernel sizes {kernel:?}"),
        )?;
        let base: Vec<Dimension> =
            labels.input_spatial_dimensions.iter().map(|&d| lhs.dimensions[d]).collect();
        let positions = self.window_positions(&base, window)?;
        let mut dimensions = vec![Dimension::from(0); lhs.rank()];
        dimensions[labels.output_batch_dimension] =
            Dimension { size: batch.size / batch_groups, is_dynamic: batch.is_dynamic };
        dimensions[labels.output_feature_dimension] = outputs;
        for (&d, position) in labels.output_spatial_dimensions.iter().zip(positions) {
            dimensions[d] = position;
        }
        Ok(array_of(self.sum_type(lhs, rhs)?, dimensions))
    }

    fn check_convolution_labels(
        &self,
        lhs: &ArrayShape,
        rhs: &ArrayShape,
        labels: &ConvolutionDimensionNumbers,
    ) -> Result<()> {
        let rank = lhs.rank();
        self.check(rhs.rank() == rank, "input and kernel must have the same rank")?;
        let groups = [
            (
                "input",
                labels.input_batch_dimension,
                labels.input_feature_dimension,
                &labels.input_spatial_dimensions,
            ),
            (
                "kernel",
                labels.kernel_input_feature_dimension,
                labels.kernel_output_feature_dimension,
                &labels.kernel_spatial_dimensions,
            ),
            (
                "output",
                labels.output_batch_dimension,
                labels.output_feature_dimension,
                &labels.output_spatial_dimensions,
            ),
        ];
        for (name, first, second, spatial) in groups {
            let all = [&[first, second], &spatial[..]].concat();
            self.check(
                all.len() == rank,
                format_args!("expected {rank} {name} dimensions in dim_labels, got {}", all.len()),
            )?;
            self.check_dimensions(&format!("dim_labels of the {name}"), &all, rank)?;
        }
        Ok(())
    }
}
