//! Opcodes that move elements without arithmetic: broadcasts, reshapes, permutations,
//! concatenations, and padding.

use super::{Inference, array_of, either_dynamic, with_type};
use crate::attributes::PaddingConfig;
use shape::{Dimension, PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    pub(super) fn bitcast(&self) -> Result<Shape> {
        let (operand, declared) = (self.array(0)?, self.declared_array()?);
        self.check(
            operand.element_count() == declared.element_count()
                && operand.element_type.byte_size() == declared.element_type.byte_size(),
            format_args!("the result {declared} has a different number of bytes"),
        )?;
        Ok(self.declared()?.clone())
    }

    pub(super) fn broadcast(&self, dimensions: &[usize]) -> Result<Shape> {
        let (operand, declared) = (self.array(0)?, self.declared_array()?);
        self.check(
            dimensions.len() == operand.rank(),
            format_args!(
                "dimensions must name a result dimension for each operand dimension, got {dimensions:?}"
            ),
        )?;
        self.check_dimensions("dimensions", dimensions, declared.rank())?;
        for (i, (&to, from)) in dimensions.iter().zip(&operand.dimensions).enumerate() {
            let result = declared.dimensions[to];
            self.check(
                *from == result,
                format_args!("operand dimension {i} must equal dimension {to} of the result {declared}"),
            )?;
        }
        Ok(with_type(declared, operand.element_type))
    }

    pub(super) fn concatenate(&self, dimension: usize) -> Result<Shape> {
        self.check(!self.operands.is_empty(), "expected at least one operand")?;
        let arrays = self.arrays(0..self.operands.len())?;
        let first = arrays[0];
        self.check_dimension("dimension", dimension, first.rank())?;
        let mut dimensions = first.dimensions.clone();
        for array in &arrays[1..] {
            self.check(
                array.element_type == first.element_type,
                "the operands must have the same element type",
            )?;
            self.check(array.rank() == first.rank(), "the operands must have the same rank")?;
            for (i, (sum, next)) in dimensions.iter_mut().zip(&array.dimensions).enumerate() {
                *sum = if i == dimension {
                    let size = sum.size.checked_add(next.size);
                    let size = size.ok_or_else(|| self.error("the result has more than 2^63 rows"))?;
                    Dimension { size, is_dynamic: sum.is_dynamic || next.is_dynamic }
                } else {
                    self.check(
                        sum.size == next.size,
                        format_args!("the operands may differ in dimension {dimension} only"),
                    )?;
                    either_dynamic(*sum, *next)
                };
            }
        }
        Ok(array_of(first.element_type, dimensions))
    }

    pub(super) fn reshape(&self) -> Result<Shape> {
        let (operand, declared) = (self.array(0)?, self.declared_array()?);
        let (from, to) = (operand.sizes(), declared.sizes());
        self.check(
            shape::index::element_count(&from) == shape::index::element_count(&to),
            format_args!("the result {declared} has a different number of elements"),
        )?;
        // The operand's shape does not determine which result dimension is dynamic; the declared
        // shape does.
        Ok(with_type(declared, operand.element_type))
    }

    pub(super) fn dynamic_reshape(&self) -> Result<Shape> {
        let declared = self.declared_array()?;
        self.check(!self.operands.is_empty(), "expected the array and a size for each result dimension")?;
        let operand = self.array(0)?;
        self.check(
            self.operands.len() == declared.rank() + 1,
            "expected the array and a size for each result dimension",
        )?;
        for position in 1..self.operands.len() {
            let size = self.scalar(position)?;
            self.check(size.element_type == PrimitiveType::S32, "the sizes must be s32")?;
        }
        self.reshape().map(|_| with_type(declared, operand.element_type))
    }

    pub(super) fn reverse(&self, dimensions: &[usize]) -> Result<Shape> {
        let operand = self.array(0)?;
        self.check_dimensions("dimensions", dimensions, operand.rank())?;
        Ok(with_type(operand, operand.element_type))
    }

    pub(super) fn transpose(&self, dimensions: &[usize]) -> Result<Shape> {
        let operand = self.array(0)?;
        self.check(
            dimensions.len() == operand.rank(),
            format_args!("dimensions must permute those of the operand, got {dimensions:?}"),
        )?;
        self.check_dimensions("dimensions", dimensions, operand.rank())?;
        Ok(array_of(operand.element_type, dimensions.iter().map(|&d| operand.dimensions[d]).collect()))
    }

    pub(super) fn iota(&self, dimension: usize) -> Result<Shape> {
        let declared = self.declared_array()?;
        self.check_dimension("iota_dimension", dimension, declared.rank())?;
        self.check(declared.element_type != PrimitiveType::Pred, "expected numeric elements, got pred")?;
        Ok(self.declared()?.clone())
    }

    pub(super) fn pad(&self, padding: &PaddingConfig) -> Result<Shape> {
        let (operand, value) = (self.array(0)?, self.scalar(1)?);
        self.check(
            operand.element_type == value.element_type,
            "the padding value must have the operand's element type",
        )?;
        self.check(
            padding.dimensions.len() == operand.rank(),
            format_args!("expected {} padding dimensions, got {}", operand.rank(), padding.dimensions.len()),
        )?;
        let mut dimensions = operand.dimensions.clone();
        for (dimension, pad) in dimensions.iter_mut().zip(&padding.dimensions) {
            self.check(pad.interior_padding >= 0, "interior padding must not be negative")?;
            let (size, interior) = (i128::from(dimension.size), i128::from(pad.interior_padding));
            let size = size
                + i128::from(pad.edge_padding_low)
                + i128::from(pad.edge_padding_high)
                + (size - 1).max(0) * interior;
            let size = i64::try_from(size).ok().filter(|&size| size >= 0);
            dimension.size =
                size.ok_or_else(|| self.error("padding makes a dimension negative or larger than 2^63"))?;
        }
        Ok(array_of(operand.element_type, dimensions))
    }
}
