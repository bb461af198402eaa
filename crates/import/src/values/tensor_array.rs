//! Tensor arrays: where their elements live, and what is known about them. Their ops are in
//! `lists`.

use crate::values::value::TensorArrayId;
use bounded::VariableId;
use hlo::InstructionId;
use shape::PrimitiveType;
use std::collections::BTreeMap;

/// A tensor array.
#[derive(Clone, Debug)]
pub(crate) struct TensorArray {
    /// The node that creates the array.
    pub(crate) name: String,
    /// Level of the scope that it lives in.
    pub(crate) level: usize,
    pub(crate) element_type: PrimitiveType,
    /// Number of slots of the buffer.
    pub(crate) places: i64,
    /// The number of elements, an instruction of the entry, if it is open.
    pub(crate) size: Option<InstructionId>,
    /// For an array that grows, the variable of the number of elements, an `s32` scalar.
    pub(crate) length: Option<VariableId>,
    /// True if a write adds to the element.
    pub(crate) accumulates: bool,
    /// The sizes of an element, if known. Those of named dimensions are their bounds.
    pub(crate) element: Option<Vec<i64>>,
    /// The names of an element's dimensions; none of an element without.
    pub(crate) names: Vec<Option<usize>>,
    /// The buffer, once it is needed.
    pub(crate) buffer: Option<VariableId>,
    /// True if the array belongs to an earlier iteration, so that its elements are gone.
    pub(crate) is_gone: bool,
    /// The gradient arrays of this array, by the name of the gradient.
    pub(crate) gradients: BTreeMap<String, TensorArrayId>,
}

impl TensorArray {
    /// Returns what remains of the array in another loop, in a scope that is open there: its size
    /// and the shape of its elements.
    pub(crate) fn of_earlier_iteration(&self, level: usize) -> Self {
        Self { level, buffer: None, length: None, is_gone: true, gradients: BTreeMap::new(), ..self.clone() }
    }
}
