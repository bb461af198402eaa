//! Values that flow along the edges of a graph, their types, and the state behind their handles.

pub(crate) mod local_state;
pub(crate) mod value;
pub(crate) mod value_type;
