//! Groups of flags that several commands share, and the parsing of their values.

pub(crate) mod feeds;
pub(crate) mod inference;
pub(crate) mod model;
pub(crate) mod numerics;
pub(crate) mod parse;
pub(crate) mod quantization;
pub(crate) mod session;
pub(crate) mod trace;
pub(crate) mod tuning;
pub(crate) mod versions;
pub(crate) mod xla_flags;
