//! Sizes that are inputs of a node: constants, or run-time values with known upper bounds.

use crate::node::accepted::keeps_input_sizes;
use crate::node::context::NodeContext;
use bounded::{Size, bounds, list};
use hlo::{InstructionId, Op};
use shape::ArrayShape;
use support::Result;

impl NodeContext<'_, '_> {
    /// Returns the integers of an input that is a scalar or a vector. Each must be known at compile
    /// time or have an upper bound; otherwise this is an error.
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
            format!("input {k}: expected a scalar or a vector, got rank {}", sizes.len())
        })?;
        let count = sizes.first().copied().unwrap_or(1);
        (0..count).map(|position| self.bounded_element(k, position as usize)).collect()
    }

    /// Returns an integer of an input in row-major order, as [`Self::bounded_i64s`] does. Negative
    /// ones that are not known become 0.
    pub(crate) fn bounded_element(&mut self, k: usize, position: usize) -> Result<Size> {
        let id = self.input(k)?;
        if let Some(size) = self.size_element(id, position)?
            && (size.size.is_none() || self.size_range(size).low.is_some_and(|low| low >= 0))
        {
            return Ok(size);
        }
        let element = self.linear_element(id, position);
        let bound = match element.map(|element| (element.base, element.offset)) {
            Some((None, known)) => return Ok(Size::known(known)),
            // The bound of the element alone is often tighter than that of the vector.
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
        // A bound larger than memory is useless.
        let Some(bound) = bound.filter(|&bound| bound < i64::from(i32::MAX)) else {
            return Err(self.not_constant(k, id));
        };
        let count = self.array(id).element_count();
        let elements = self.reshape(id, &[count])?;
        let element = self.s32_element(elements, position as i64)?;
        let zero = self.s32(0)?;
        let size = self.op(Op::Maximum {}, &[element, zero])?;
        Ok(Size { bound: bound.max(0), size: Some(size) })
    }

    /// Returns sizes from an input, each known at compile time or bounded. Rejects negative sizes
    /// and shapes with too many elements.
    pub(crate) fn bounded_sizes(&mut self, k: usize) -> Result<Vec<Size>> {
        let sizes = self.bounded_i64s(k)?;
        let known = bounds(&sizes);
        let fits = known.iter().all(|&size| size >= 0) && shape::index::element_count(&known).is_some();
        self.check(fits, || format!("input {k} is not a valid shape: {}", list(&known)))?;
        Ok(sizes)
    }

    /// Returns an integer or a `pred` as a constant if the ranges of named dimensions decide it.
    pub(crate) fn settled_integer(&mut self, id: InstructionId) -> InstructionId {
        let is_scalar = |array: &ArrayShape| array.rank() == 0;
        if !self.has_named_sizes()
            || !self.scope_ref().shape(id).as_array().is_some_and(is_scalar)
            || self.fold(id).is_some()
        {
            return id;
        }
        let element_type = self.element_type(id);
        match self.known_integer(id, 0).filter(|&value| i32::try_from(value).is_ok()) {
            Some(value) => self.scalar(element_type, value as f64),
            None => id,
        }
    }

    /// Gives the result of an elementwise op the true sizes of its inputs, in case its rule built
    /// the result from something else, such as zeros.
    pub(crate) fn with_input_sizes(&mut self, result: InstructionId) -> Result<InstructionId> {
        let inputs: Vec<InstructionId> = self.inputs().iter().filter_map(|value| value.array()).collect();
        if !keeps_input_sizes(&self.node().op)
            || !inputs.iter().any(|&id| self.is_bounded(id))
            || self.is_bounded(result)
        {
            return Ok(result);
        }
        let bounds = self.sizes(result);
        for id in inputs {
            if self.is_bounded(id) && self.sizes(id) == bounds {
                return self.with_sizes_of(result, id);
            }
        }
        Ok(result)
    }
}
