//! Graphs of models in other formats: what their readers build nodes with.

mod body;
mod names;

pub use body::{
    Attribute, Body, Outputs, Ref, flag, float, floats, function, functions, int, ints, scalar_bytes,
    shape_of, text, text_bytes, ty, types,
};
pub use names::{Names, identifier, of_node};
