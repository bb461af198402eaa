//! Stacks: where the elements live, and what is known of them. Their ops are in `lists`.

use crate::values::value::TensorArrayId;
use bounded::VariableId;
use hlo::analysis::Range;
use shape::{ArrayShape, Literal, PrimitiveType};

/// A stack.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// The node that makes it.
    pub(crate) name: String,
    /// The scope that it lives in.
    pub(crate) level: usize,
    /// `None` if it holds handles.
    pub(crate) element_type: Option<PrimitiveType>,
    /// Of a stack of handles the tensor array that is pushed, one and the same in the graph.
    pub(crate) handle: Option<TensorArrayId>,
    /// The places that the graph asks for; `None` if that is left to the compiler.
    pub(crate) max_size: Option<i64>,
    /// The buffer's places and one element, once something was pushed.
    pub(crate) elements: Option<Elements>,
    /// The number of elements: an `s32` scalar.
    pub(crate) size: VariableId,
    /// The most that was pushed so far.
    pub(crate) pushes: i64,
    /// What is known of all that was pushed, of integer scalars only.
    pub(crate) range: Option<Range>,
    /// What every element that was pushed is, if that is known: gradients put shapes away like that. `Some(None)` if they
    /// differ.
    pub(crate) constant: Option<Option<Literal>>,
    /// Whether somebody relies on that or on the range.
    pub(crate) was_used: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) buffer: VariableId,
    pub(crate) places: i64,
    pub(crate) element: ArrayShape,
}
