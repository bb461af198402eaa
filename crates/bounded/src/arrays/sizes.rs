//! Sizes that are operands: constants, or values of the run whose bounds are known.

use crate::builder::Builder;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

/// How many factors of a product are looked at.
const MAX_FACTORS: usize = 8;

/// How deep products of products are followed.
const MAX_PRODUCTS: usize = 4;

/// A size.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The size, or the most that it can be.
    pub bound: i64,
    /// The size as an `s32` scalar if only a run knows it.
    pub size: Option<InstructionId>,
}

impl Size {
    /// A size that is known.
    pub fn known(size: i64) -> Self {
        Self { bound: size, size: None }
    }
}

/// The bounds of sizes.
pub fn bounds(sizes: &[Size]) -> Vec<i64> {
    sizes.iter().map(|size| size.bound).collect()
}

/// What is known at run time only.
pub fn run_time(sizes: &[Size]) -> Vec<Option<InstructionId>> {
    sizes.iter().map(|size| size.size).collect()
}

impl Builder {
    /// The most that an element of an array can be. Products of sizes are followed, which intervals of whole vectors are
    /// too coarse for.
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

    /// One integer of a vector, or a scalar, as an `s32` scalar.
    pub fn s32_element(&mut self, id: InstructionId, position: i64) -> Result<InstructionId> {
        let element = match self.rank(id) {
            0 => id,
            _ => self.slice_in(id, 0, position, position + 1)?,
        };
        let element = self.reshape(element, &[])?;
        self.convert(element, PrimitiveType::S32)
    }

    /// The same, of which only what `s32` holds counts: as an end of a slice.
    pub fn saturated_element(&mut self, id: InstructionId, position: i64) -> Result<InstructionId> {
        if self.element_type(id) != PrimitiveType::S64 {
            return self.s32_element(id, position);
        }
        let element = match self.rank(id) {
            0 => id,
            _ => self.slice_in(id, 0, position, position + 1)?,
        };
        let element = self.reshape(element, &[])?;
        // A size may be subtracted or added without leaving the type.
        let limit = f64::from(i32::MAX / 2);
        let (low, high) = (self.splat_like(element, -limit)?, self.splat_like(element, limit)?);
        let element = self.clamped(element, low, high)?;
        self.convert(element, PrimitiveType::S32)
    }

    /// The sizes of an array, run-time ones included.
    pub fn all_sizes(&mut self, id: InstructionId) -> Result<Vec<Size>> {
        let split = self.split(id)?;
        let bounds = self.sizes(id);
        Ok(bounds.into_iter().zip(split.sizes).map(|(bound, size)| Size { bound, size }).collect())
    }

    /// A size as an `s32` scalar.
    pub fn size_value(&mut self, size: Size) -> Result<InstructionId> {
        match size.size {
            Some(id) => Ok(id),
            None => self.s32(size.bound),
        }
    }
}
