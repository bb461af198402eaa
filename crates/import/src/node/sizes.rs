//! Sizes that are inputs of a node: constants, or values of the run whose bounds are known.

use crate::node::accepted::keeps_input_sizes;
use crate::node::context::NodeContext;
use bounded::{Size, bounds, list};
use hlo::{InstructionId, Op};
use support::Result;

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
        let element = self.linear_element(id, position);
        let bound = match element.map(|element| (element.base, element.offset)) {
            Some((None, known)) => return Ok(Size::known(known)),
            // The element alone is often known better than the vector.
            Some((Some((base, at)), offset)) => {
                self.upper_bound(base, at).and_then(|high| high.checked_add(offset))
            }
            None => None,
        };
        let of_vector = self.range(id).high;
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

    /// Sizes from an input that should be known at compile time, or bounded; each at least 0, with few enough elements.
    pub(crate) fn bounded_sizes(&mut self, k: usize) -> Result<Vec<Size>> {
        let sizes = self.bounded_i64s(k)?;
        let known = bounds(&sizes);
        let fits = known.iter().all(|&size| size >= 0) && shape::index::element_count(&known).is_some();
        self.check(fits, || format!("input {k} is no shape: {}", list(&known)))?;
        Ok(sizes)
    }

    /// The result of an op that goes element by element, with the true sizes of its inputs even where its rule has made
    /// the result of something else, such as zeros.
    pub(crate) fn with_input_sizes(&mut self, made: InstructionId) -> Result<InstructionId> {
        let inputs: Vec<InstructionId> = self.inputs().iter().filter_map(|value| value.array()).collect();
        if !keeps_input_sizes(&self.node().op)
            || !inputs.iter().any(|&id| self.is_bounded(id))
            || self.is_bounded(made)
        {
            return Ok(made);
        }
        let bounds = self.sizes(made);
        for id in inputs {
            if self.is_bounded(id) && self.sizes(id) == bounds {
                return self.with_sizes_of(made, id);
            }
        }
        Ok(made)
    }
}
