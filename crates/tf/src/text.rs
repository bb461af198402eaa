//! Protocol buffers in text format.
//!
//! The parser translates text to the wire format, driven by a table of message types. The result is
//! decoded like a binary file. So both formats share a decoder, memory use stays close to the size
//! of the text, and error messages and positions match libprotobuf's. The printer uses the same
//! table to print encoded messages.

mod config_text;
mod json;
mod messages;
mod parser;
mod printer;
mod token;

pub(crate) use config_text::config_to_text;
pub(crate) use json::json_to_wire;
pub(crate) use messages::{
    ATTR_VALUE, CONFIG, CONFIG_PROTO, GRAPH_DEF, Kind, META_GRAPH_DEF, MessageType, RUN_METADATA,
    SAVED_MODEL, SAVER_DEF, SIGNATURE_DEF, TENSOR, TENSOR_DESCRIPTION,
};
pub(crate) use parser::to_wire;
pub(crate) use printer::to_text;
