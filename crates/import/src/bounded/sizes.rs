//! Sizes that are operands: constants, or values of the run whose bounds are known.

use crate::builder::fold::{MAX_ADDITIONS, linear_element};
use crate::node::context::{NodeContext, list};
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

/// How many factors of a product are looked at.
const MAX_FACTORS: usize = 8;

/// How deep products of products are followed.
const MAX_PRODUCTS: usize = 4;

/// A size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The size, or the most that it can be.
    pub(crate) bound: i64,
    /// The size as an `s32` scalar if only a run knows it.
    pub(crate) size: Option<InstructionId>,
}

impl Size {
    /// A size that is known.
    pub(crate) fn known(size: i64) -> Self {
        Self { bound: size, size: None }
    }
}

/// The bounds of sizes.
pub(crate) fn bounds(sizes: &[Size]) -> Vec<i64> {
    sizes.iter().map(|size| size.bound).collect()
}

/// What is known at run time only.
pub(crate) fn run_time(sizes: &[Size]) -> Vec<Option<InstructionId>> {
    sizes.iter().map(|size| size.size).collect()
}

impl NodeContext<'_, '_> {
    /// The integers of an input that should be known at compile time, or bounded from above: a scalar or a vector. An
    /// error for one that is neither.
    pub(crate) fn bounded_i64s(&mut self, k: usize) -> Result<Vec<Size>> {
        let id = self.input(k)?;
        if self.is_bounded(id) {
            return Err(self.not_constant(k, id));
        }
        if self.fold(id).is_some() {
            return Ok(self.constant_i64s(k)?.into_iter().map(Size::known).collect());
        }
        let sizes = self.sizes(id);
        self.check(sizes.len() <= 1, || {
            format!("input {k} must be a scalar or a vector, but has rank {}", sizes.len())
        })?;
        let count = sizes.first().copied().unwrap_or(1);
        (0..count).map(|position| self.bounded_element(k, id, position as usize)).collect()
    }

    /// One of these integers.
    fn bounded_element(&mut self, k: usize, id: InstructionId, position: usize) -> Result<Size> {
        let (module, scope) = self.importer.module_and_scope();
        let element = linear_element(module, scope, id, position, MAX_ADDITIONS);
        let bound = match element.map(|element| (element.base, element.offset)) {
            Some((None, known)) => return Ok(Size::known(known)),
            // The element alone is often known better than the vector.
            Some((Some((base, at)), offset)) => {
                self.upper_bound(base, at, MAX_PRODUCTS).and_then(|high| high.checked_add(offset))
            }
            None => None,
        };
        let of_vector = self.importer.range(id).high;
        let bound = match (bound, of_vector) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        // As much as memory could not hold is no bound.
        let Some(bound) = bound.filter(|&bound| bound < i64::from(i32::MAX)) else {
            return Err(self.not_constant(k, id));
        };
        let element = self.s32_element(id, position as i64)?;
        let zero = self.s32(0)?;
        let size = self.op(Op::Maximum {}, &[element, zero])?;
        Ok(Size { bound: bound.max(0), size: Some(size) })
    }

    /// The most that an element of an array can be. Products of sizes are followed, which intervals of whole vectors are
    /// too coarse for.
    fn upper_bound(&mut self, id: InstructionId, position: usize, depth: usize) -> Option<i64> {
        let of_range = self.importer.range(id).high;
        let (module, scope) = self.importer.module_and_scope();
        let instruction = &scope.computation[id];
        let operands = instruction.operands().to_vec();
        let factors: Vec<(InstructionId, usize)> = match instruction.op() {
            _ if depth == 0 => return of_range,
            Op::Multiply {} => operands.iter().map(|&operand| (operand, position)).collect(),
            Op::Convert {} => vec![(operands[0], position)],
            Op::Reduce { to_apply, .. } if operands.len() == 2 => {
                let callee = module.get(*to_apply)?;
                let vector = scope.computation[operands[0]].shape().as_array()?;
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
            let (module, scope) = self.importer.module_and_scope();
            let element = linear_element(module, scope, factor, at, MAX_ADDITIONS)?;
            let high = match element.base {
                None => element.offset,
                Some((base, at)) => {
                    self.importer.range(base).low.filter(|&low| low.saturating_add(element.offset) >= 0)?;
                    self.upper_bound(base, at, depth - 1)?.checked_add(element.offset)?
                }
            };
            product = product.checked_mul(high).filter(|&product| product >= 0)?;
        }
        Some(of_range.map_or(product, |high| high.min(product)))
    }

    /// One integer of a vector, or a scalar, as an `s32` scalar.
    pub(crate) fn s32_element(&mut self, id: InstructionId, position: i64) -> Result<InstructionId> {
        let element = match self.rank(id) {
            0 => id,
            _ => self.slice_in(id, 0, position, position + 1)?,
        };
        let element = self.reshape(element, &[])?;
        self.convert(element, PrimitiveType::S32)
    }

    /// The same, of which only what `s32` holds counts: as an end of a slice.
    pub(crate) fn saturated_element(&mut self, id: InstructionId, position: i64) -> Result<InstructionId> {
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

    /// Sizes from an input that should be known at compile time, or bounded; each at least 0, with few enough elements.
    pub(crate) fn bounded_sizes(&mut self, k: usize) -> Result<Vec<Size>> {
        let sizes = self.bounded_i64s(k)?;
        let known = bounds(&sizes);
        let fits = known.iter().all(|&size| size >= 0) && shape::index::element_count(&known).is_some();
        self.check(fits, || format!("input {k} is no shape: {}", list(&known)))?;
        Ok(sizes)
    }

    /// The sizes of an array, run-time ones included.
    pub(crate) fn all_sizes(&mut self, id: InstructionId) -> Result<Vec<Size>> {
        let split = self.split(id)?;
        let bounds = self.sizes(id);
        Ok(bounds.into_iter().zip(split.sizes).map(|(bound, size)| Size { bound, size }).collect())
    }

    /// A size as an `s32` scalar.
    pub(crate) fn size_value(&mut self, size: Size) -> Result<InstructionId> {
        match size.size {
            Some(id) => Ok(id),
            None => self.s32(size.bound),
        }
    }
}
