//! Annotations of instructions for other compilers and machines: parsed, kept, and printed, but
//! never interpreted.

use crate::ids::InstructionId;

/// Annotations of an instruction. They never affect a value, and the frontend of the compiler drops
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Attributes in XLA's text, such as `sharding`, `frontend_attributes`, `backend_config`, and
    /// `origin`: names and values, in textual order.
    pub attributes: Vec<(String, String)>,
    /// The metadata fields that are not in [`OpMetadata`](crate::OpMetadata), as text.
    pub metadata: String,
    /// Instructions that must run earlier, although none of their values is read. Instructions
    /// removed in the meantime have no effect.
    pub control_predecessors: Vec<InstructionId>,
    /// True if the text has `{...}` in place of a constant's elements; they are read as zeros, as
    /// in XLA's parser.
    pub is_elided: bool,
}

impl Annotations {
    /// Returns the text of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find_map(|(own, text)| (own == name).then_some(text.as_str()))
    }
}
