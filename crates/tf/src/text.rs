//! Protocol buffers in text format.
//!
//! The text is translated to the wire format, driven by a table of messages, and then decoded like
//! a binary file. So one decoder serves both forms, memory stays near the size of the text, and
//! messages and positions are libprotobuf's. The other way round, what a message encodes to is
//! printed by the same table.

mod config_text;
mod messages;
mod parser;
mod printer;
mod token;

pub(crate) use config_text::config_to_text;
pub(crate) use messages::{
    ATTR_VALUE, CONFIG, CONFIG_PROTO, GRAPH_DEF, Kind, META_GRAPH_DEF, MessageType, RUN_METADATA,
    SAVED_MODEL, SAVER_DEF, TENSOR, TENSOR_DESCRIPTION,
};
pub(crate) use parser::to_wire;
pub(crate) use printer::to_text;
