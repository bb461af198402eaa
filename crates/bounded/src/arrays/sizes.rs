//! Sizes that are operands: constants, or run-time values with known upper bounds.

pub use crate::size::Size;

use crate::builder::Builder;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

/// Maximum number of factors of a product to analyze.
const MAX_FACTORS: usize = 8;

/// Maximum nesting depth of products to analyze.
const MAX_PRODUCTS: usize = 4;

/// Returns the bounds of sizes.
pub fn bounds(sizes: &[Size]) -> Vec<i64> {
    sizes.iter().map(|size| size.bound).collect()
}

/// Returns the run-time values of sizes, if any.
pub fn run_time(sizes: &[Size]) -> Vec<Option<InstructionId>> {
    sizes.iter().map(|size| size.size).collect()
}

impl Builder {
    /// Returns the upper bound of an element of an array. Follows products of sizes, for which the
    /// ranges of whole vectors are too coarse.
    pub fn upper_bound(&mut self, id: InstructionId, position: usize) -> Option<i64> {
        self.bound_within(id, position, MAX_PRODUCTS)
    }

    fn bound_within(&mut self, id: InstructionId, position: usize, depth: usize) -> Option<i64> {
        let of_range = self.range(id).high;
        let (module, scope) = self.module_and_scope();
        let instruction = &scope.computation()[id];
        let operands = instruction.operands().to_vec();
        let factors: Vec<(InstructionId, usize)> = match instruction.op() {
            _ if depth == 0 => return of_range,
            Op::Multiply {} => operands.iter().map(|&operand| (operand, position)).collect(),
            Op::Convert {} => vec![(operands[0], position)],
            Op::Reduce { to_apply, .. } if operands.len() == 2 => {
                let callee = module.get(*to_apply)?;
                let vector = scope.computation()[operands[0]].shape().as_array()?;
                let is_product = matches!(callee[callee.root_if_set()?].op(), Op::Multiply {});
                if !is_product || vector.rank() != 1 || vector.element_count() > MAX_FACTORS as i64 {
                    return of_range;
                }
                let elements = (0..vector.element_count() as usize).map(|at| (operands[0], at));
                elements.chain([(operands[1], 0)]).collect()
            }
            _ => return of_range,
        };
        let mut product = 1i64;
        for (factor, at) in factors {
            let element = self.linear_element(factor, at)?;
            let high = match element.base {
                None => element.offset,
                Some((base, at)) => {
                    self.range(base).low.filter(|&low| low.saturating_add(element.offset) >= 0)?;
                    self.bound_within(base, at, depth - 1)?.checked_add(element.offset)?
                }
            };
            product = product.checked_mul(high).filter(|&product| product >= 0)?;
        }
        Some(of_range.map_or(product, |high| high.min(product)))
    }

    /// Returns one integer of a vector, or a scalar, as an `s32` scalar.
    pub fn s32_element(&mut self, id: InstructionId, position: i64) -> Result<InstructionId> {
        // An element by itself has a narrower range than the whole vector.
        let place = usize::try_from(position).ok().and_then(|position| self.linear_element(id, position));
        let origin = place.filter(|place| place.offset == 0).and_then(|place| place.base);
        let origin = origin.filter(|&(base, _)| self.array(base).element_count() == 1);
        let element = match (origin, self.rank(id)) {
            (Some((base, _)), _) => base,
            (None, 0) => id,
            _ => self.slice_in(id, 0, position, position + 1)?,
        };
        let element = self.reshape(element, &[])?;
        self.convert(element, PrimitiveType::S32)
    }

    /// Like [`Self::s32_element`], saturated to `s32`, for an end of a slice.
    pub fn saturated_element(&mut self, id: InstructionId, position: i64) -> Result<InstructionId> {
        if self.element_type(id) != PrimitiveType::S64 {
            return self.s32_element(id, position);
        }
        let element = match self.rank(id) {
            0 => id,
            _ => self.slice_in(id, 0, position, position + 1)?,
        };
        let element = self.reshape(element, &[])?;
        // Leave room to add or subtract a size without overflow.
        let limit = f64::from(i32::MAX / 2);
        let (low, high) = (self.splat_like(element, -limit)?, self.splat_like(element, limit)?);
        let element = self.clamped(element, low, high)?;
        self.convert(element, PrimitiveType::S32)
    }

    /// Returns the sizes of an array, including run-time ones.
    pub fn all_sizes(&mut self, id: InstructionId) -> Result<Vec<Size>> {
        let split = self.split(id)?;
        let bounds = self.sizes(id);
        Ok(bounds.into_iter().zip(split.sizes).map(|(bound, size)| Size { bound, size }).collect())
    }

    /// Returns a size as an `s32` scalar.
    pub fn size_value(&mut self, size: Size) -> Result<InstructionId> {
        match size.size {
            Some(id) => Ok(id),
            None => self.s32(size.bound),
        }
    }
}
