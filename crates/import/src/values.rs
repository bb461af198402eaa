//! Values that flow along the edges of a graph, their types, and the state that their handles refer
//! to.

pub(crate) mod collected;
pub(crate) mod lessons;
pub(crate) mod list;
pub(crate) mod stack;
pub(crate) mod state;
pub(crate) mod tensor_array;
pub(crate) mod value;
pub(crate) mod value_type;
