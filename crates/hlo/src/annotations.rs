//! Annotations of instructions for other compilers and other machines: read, kept and printed, never interpreted.

use crate::ids::InstructionId;

/// Annotations of an instruction. None of them changes a value; the front of the compiler drops them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Attributes as XLA's text has them, such as `sharding`, `frontend_attributes`, `backend_config`, `origin`: names and
    /// values, in the order of the text.
    pub attributes: Vec<(String, String)>,
    /// The fields of the metadata that [`OpMetadata`](crate::OpMetadata) lacks, as the text has them.
    pub metadata: String,
    /// What has to be done before, though no value is read. An instruction that was removed since has no say any more.
    pub control_predecessors: Vec<InstructionId>,
    /// The text has `{...}` in the place of a constant's elements, which are read as zeros, as XLA's parser reads them.
    pub is_elided: bool,
}

impl Annotations {
    /// The text of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find_map(|(own, text)| (own == name).then_some(text.as_str()))
    }
}
