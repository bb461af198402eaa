//! Opcodes that move elements without arithmetic: broadcasts, reshapes, permutations, joins and paddings.

use super::{Inference, array_of, either_dynamic, retyped};
use crate::attributes::PaddingConfig;
use shape::{Dimension, PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    pub(super) fn bitcast(&self) -> Result<Shape> {
        let (operand, wanted) = (self.array(0)?, self.wanted_array()?);
        self.check(
            operand.element_count() == wanted.element_count()
                && operand.element_type.byte_size() == wanted.element_type.byte_size(),
            format_args!("{wanted} has another number of bytes"),
        )?;
        Ok(self.wanted()?.clone())
    }

    pub(super) fn broadcast(&self, dimensions: &[usize]) -> Result<Shape> {
        let (operand, wanted) = (self.array(0)?, self.wanted_array()?);
        self.check(
            dimensions.len() == operand.rank(),
            format_args!(
                "dimensions must name a result dimension for each of the operand, not {dimensions:?}"
            ),
        )?;
        self.check_dimensions("dimensions", dimensions, wanted.rank())?;
        for (i, (&to, from)) in dimensions.iter().zip(&operand.dimensions).enumerate() {
            let result = wanted.dimensions[to];
            self.check(
                *from == result,
                format_args!("operand dimension {i} must equal dimension {to} of the result {wanted}"),
            )?;
        }
        Ok(retyped(wanted, operand.element_type))
    }

    pub(super) fn concatenate(&self, dimension: usize) -> Result<Shape> {
        self.check(!self.operands.is_empty(), "takes at least one operand")?;
        let arrays = self.arrays(0..self.operands.len())?;
        let first = arrays[0];
        self.check_dimension("the dimension", dimension, first.rank())?;
        let mut dimensions = first.dimensions.clone();
        for array in &arrays[1..] {
            self.check(
                array.element_type == first.element_type,
                "the operands must have the same element type",
            )?;
            self.check(array.rank() == first.rank(), "the operands must have the same rank")?;
            for (i, (joined, next)) in dimensions.iter_mut().zip(&array.dimensions).enumerate() {
                *joined = if i == dimension {
                    let size = joined.size.checked_add(next.size);
                    let size = size.ok_or_else(|| self.error("the result has more than 2^63 rows"))?;
                    Dimension { size, is_dynamic: joined.is_dynamic || next.is_dynamic }
                } else {
                    self.check(
                        joined.size == next.size,
                        format_args!("the operands may differ in dimension {dimension} only"),
                    )?;
                    either_dynamic(*joined, *next)
                };
            }
        }
        Ok(array_of(first.element_type, dimensions))
    }

    pub(super) fn reshape(&self) -> Result<Shape> {
        let (operand, wanted) = (self.array(0)?, self.wanted_array()?);
        let (from, to) = (operand.sizes(), wanted.sizes());
        self.check(
            shape::index::element_count(&from) == shape::index::element_count(&to),
            format_args!("the result {wanted} has another number of elements"),
        )?;
        // Which result dimension is dynamic depends on where the size went; the caller knows.
        Ok(retyped(wanted, operand.element_type))
    }

    pub(super) fn dynamic_reshape(&self) -> Result<Shape> {
        let wanted = self.wanted_array()?;
        self.check(!self.operands.is_empty(), "takes the array and a size for each result dimension")?;
        let operand = self.array(0)?;
        self.check(
            self.operands.len() == wanted.rank() + 1,
            "takes the array and a size for each result dimension",
        )?;
        for position in 1..self.operands.len() {
            let size = self.scalar(position)?;
            self.check(size.element_type == PrimitiveType::S32, "the sizes must be s32")?;
        }
        self.reshape().map(|_| retyped(wanted, operand.element_type))
    }

    pub(super) fn reverse(&self, dimensions: &[usize]) -> Result<Shape> {
        let operand = self.array(0)?;
        self.check_dimensions("dimensions", dimensions, operand.rank())?;
        Ok(retyped(operand, operand.element_type))
    }

    pub(super) fn transpose(&self, dimensions: &[usize]) -> Result<Shape> {
        let operand = self.array(0)?;
        self.check(
            dimensions.len() == operand.rank(),
            format_args!("dimensions must permute those of the operand, not {dimensions:?}"),
        )?;
        self.check_dimensions("dimensions", dimensions, operand.rank())?;
        Ok(array_of(operand.element_type, dimensions.iter().map(|&d| operand.dimensions[d]).collect()))
    }

    pub(super) fn iota(&self, dimension: usize) -> Result<Shape> {
        let wanted = self.wanted_array()?;
        self.check_dimension("iota_dimension", dimension, wanted.rank())?;
        self.check(wanted.element_type != PrimitiveType::Pred, "the elements must be numbers, not pred")?;
        Ok(self.wanted()?.clone())
    }

    pub(super) fn pad(&self, padding: &PaddingConfig) -> Result<Shape> {
        let (operand, value) = (self.array(0)?, self.scalar(1)?);
        self.check(
            operand.element_type == value.element_type,
            "the padding value must have the operand's element type",
        )?;
        self.check(
            padding.dimensions.len() == operand.rank(),
            format_args!("padding has {} dimensions", padding.dimensions.len()),
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
                size.ok_or_else(|| self.error("padding gives a dimension less than 0 or more than 2^63"))?;
        }
        Ok(array_of(operand.element_type, dimensions))
    }
}
