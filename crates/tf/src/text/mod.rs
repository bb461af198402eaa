//! Protocol buffers in text format.
//!
//! The text is translated to the wire format, driven by a table of messages, and then decoded like a binary file. So one
//! decoder serves both forms, memory stays near the size of the text, and messages and positions are libprotobuf's.

mod config_text;
mod messages;
mod parser;
mod token;

pub(crate) use config_text::config_to_text;
pub(crate) use messages::{
    ATTR_VALUE, CONFIG, GRAPH_DEF, Kind, META_GRAPH_DEF, MessageType, SAVED_MODEL, SAVER_DEF, TENSOR,
};
pub(crate) use parser::to_wire;
