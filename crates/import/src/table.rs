//! The table of all rules, and the table of ops for readers.

pub(crate) mod op_notes;
pub(crate) mod op_table;
pub(crate) mod rules;
