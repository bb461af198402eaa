//! Batch normalization: an array and vectors over its feature dimension.

use super::{Inference, array_of, with_type};
use shape::{ArrayShape, Shape};
use support::Result;

impl Inference<'_> {
    /// Checks that the operands at positions `vectors` are vectors over the feature dimension;
    /// returns that shape.
    fn check_features(
        &self,
        feature_index: usize,
        vectors: std::ops::Range<usize>,
    ) -> Result<(&ArrayShape, Shape)> {
        let operand = self.array(0)?;
        self.check_dimension("feature_index", feature_index, operand.rank())?;
        self.check(operand.element_type.is_floating_point(), "the elements must be floating-point")?;
        let features = operand.dimensions[feature_index];
        for position in vectors {
            let vector = self.array(position)?;
            self.check(
                vector.element_type == operand.element_type && vector.sizes() == [features.size],
                format_args!("operand {position} must be {}[{}]", operand.element_type, features.size),
            )?;
        }
        Ok((operand, array_of(operand.element_type, vec![features])))
    }

    pub(super) fn batch_norm_training(&self, feature_index: usize) -> Result<Shape> {
        let (operand, vector) = self.check_features(feature_index, 1..3)?;
        Ok(Shape::Tuple(vec![with_type(operand, operand.element_type), vector.clone(), vector]))
    }

    pub(super) fn batch_norm_inference(&self, feature_index: usize) -> Result<Shape> {
        let (operand, _) = self.check_features(feature_index, 1..5)?;
        Ok(with_type(operand, operand.element_type))
    }

    pub(super) fn batch_norm_grad(&self, feature_index: usize) -> Result<Shape> {
        let (operand, vector) = self.check_features(feature_index, 1..4)?;
        let gradient = self.array(4)?;
        self.check(
            gradient.element_type == operand.element_type && gradient.sizes() == operand.sizes(),
            "the output's gradient must have the first operand's shape",
        )?;
        Ok(Shape::Tuple(vec![with_type(operand, operand.element_type), vector.clone(), vector]))
    }
}
