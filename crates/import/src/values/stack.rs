//! Stacks: where their elements live, and what is known about them. Their ops are in `lists`.

use crate::values::value::TensorArrayId;
use bounded::VariableId;
use hlo::analysis::Range;
use shape::{ArrayShape, Literal, PrimitiveType};

/// A stack.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// The node that creates the stack.
    pub(crate) name: String,
    /// Level of the scope that it lives in.
    pub(crate) level: usize,
    /// `None` if it holds handles.
    pub(crate) element_type: Option<PrimitiveType>,
    /// For a stack of handles, the tensor array pushed. It is the same array throughout the graph.
    pub(crate) handle: Option<TensorArrayId>,
    /// Number of slots that the graph requests. `None` if the compiler chooses.
    pub(crate) max_size: Option<i64>,
    /// The buffer and its elements, once something was pushed.
    pub(crate) elements: Option<Elements>,
    /// The variable of the number of elements, an `s32` scalar.
    pub(crate) size: VariableId,
    /// Maximum number of pushes so far.
    pub(crate) pushes: i64,
    /// Range of all values pushed. Only for integer scalars.
    pub(crate) range: Option<Range>,
    /// The value common to all elements pushed, if known; gradients push shapes that way.
    /// `Some(None)` if they differ.
    pub(crate) constant: Option<Option<Literal>>,
    /// True if an import relied on that value or on the range.
    pub(crate) was_used: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) buffer: VariableId,
    pub(crate) places: i64,
    pub(crate) element: ArrayShape,
}
