//! Tensor arrays: where the elements live, and what is known of them. Their ops are in `lists`.

use crate::values::value::TensorArrayId;
use bounded::VariableId;
use shape::PrimitiveType;
use std::collections::BTreeMap;

/// A tensor array.
#[derive(Clone, Debug)]
pub(crate) struct TensorArray {
    /// The node that makes it.
    pub(crate) name: String,
    /// The scope that it lives in.
    pub(crate) level: usize,
    pub(crate) element_type: PrimitiveType,
    /// The places of the buffer.
    pub(crate) places: i64,
    /// Of an array that grows the number of elements, an `s32` scalar.
    pub(crate) length: Option<VariableId>,
    /// Whether writing adds.
    pub(crate) accumulates: bool,
    /// The sizes of an element, if something shows them.
    pub(crate) element: Option<Vec<i64>>,
    /// The buffer, once it is needed.
    pub(crate) buffer: Option<VariableId>,
    /// Whether it is one of an earlier iteration, whose elements are gone.
    pub(crate) is_gone: bool,
    /// The gradient arrays of this one, by the name of the gradient.
    pub(crate) gradients: BTreeMap<String, TensorArrayId>,
}

impl TensorArray {
    /// What is left of it in another loop, in a scope that is open there: its size and what its elements look like.
    pub(crate) fn of_earlier_iteration(&self, level: usize) -> Self {
        Self { level, buffer: None, length: None, is_gone: true, gradients: BTreeMap::new(), ..self.clone() }
    }
}
