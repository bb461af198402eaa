//! The table of all rules, and the user-facing table of ops.

pub(crate) mod op_notes;
pub(crate) mod op_table;
pub(crate) mod rules;
