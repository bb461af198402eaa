//! Imports TensorFlow graphs as HLO, with one rule per op.
//!
//! [`import`] walks a prepared [`tf::Program`] in execution order and applies the rule of each
//! node's op. The result is plain HLO. Its shapes are static, except for results whose sizes are
//! data-dependent. Each instruction carries the op and the name of the node that it comes from:
//! - The entry's parameters are the feeds, then the variables, in the order of the config.
//! - Its result is a tuple: the fetches, then the new value of each variable that is not
//!   readonly.
//! - A new value aliases its variable's parameter (`input_output_alias`, `must-alias`).
//! - Functions are inlined. Conditionals become `conditional`; the variables that they touch are
//!   operands and results.
//!
//! A rule is one row and one function in the file of its family. A folder lists its families;
//! `table` lists the folders.

mod control;
mod lists;
mod node;
mod ops;
mod table;
mod values;
mod walk;

pub use table::op_table::{op_pages, op_table};
pub use table::rules::{SupportedOp, supported_ops};
pub use walk::unsupported::unsupported_op;

use crate::table::rules::RULES;
use crate::walk::{rounds, unsupported, writers};
use bounded::VariableId;
use hlo::Module;
use std::collections::BTreeSet;
use support::{Error, Id as _, Result};
use tf::{Problem, Program};

/// Imports a program as HLO.
///
/// Errors are faults of the user's graph or config (`Invalid`: mismatched shapes, wrongly described
/// variables), or list every node that is not supported (`Unsupported`).
pub fn import(program: &Program) -> Result<Module> {
    Ok(import_program(program)?.module)
}

/// Imports a program as HLO, with its interface.
pub fn import_program(program: &Program) -> Result<hlo::Program> {
    rounds::import_in_rounds(&RULES, program).0
}

/// Like [`import_program`], but an error comes with the inputs whose values the rules asked for, as
/// node names and positions. A caller that knows these values may replace the inputs with constants
/// and retry.
pub fn import_or_requested(
    program: &Program,
) -> std::result::Result<hlo::Program, (Error, BTreeSet<(String, usize)>)> {
    let (result, requested) = rounds::import_in_rounds(&RULES, program);
    result.map_err(|error| (error, requested))
}

/// Returns everything that prevents a program from being imported: every node without a rule, and
/// every node whose inputs or attributes are wrong, as far as this can be determined. If there are
/// none, [`import`] succeeds.
pub fn problems(program: &Program) -> Vec<Problem> {
    walk::problems::problems(&RULES, program)
}

/// True if a node of the program writes the variable at a position, whether or not that node runs.
pub fn may_write(program: &Program, variable: usize) -> bool {
    writers::may_write(&RULES, program, VariableId::from_index(variable))
}

/// Explains why a node that calls no function is not supported, judging by its op and its type
/// attributes. Returns `None` if the node is supported.
pub fn unsupported_node(node: &tf::Node) -> Option<String> {
    unsupported::reason_of_op(&RULES, node)
}
