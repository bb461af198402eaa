//! TensorFlow graphs to HLO: one rule for each op.
//!
//! [`import`] walks a prepared [`tf::Program`] in execution order and applies the rule of each node's op. What comes
//! out is plain HLO of static shapes (but for results whose sizes only a run knows), each instruction with the op and the
//! name of the node it comes from:
//! - the entry's parameters are the feeds, then the variables, in the order of the config;
//! - its result is a tuple: the fetches, then the new value of each variable that is not readonly;
//! - such a result lives in its variable's parameter (`input_output_alias`, `must-alias`);
//! - functions are inlined; conditionals become `conditional`, with the variables they touch passed in and out.
//!
//! A rule lives in the file of its family, as one row and one function. A folder lists its families; `table` lists the folders.

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

/// The HLO of a program.
///
/// Errors are the user's graph's (`Invalid`: shapes that do not fit, variables that the config describes wrongly), or
/// list every node that cannot be compiled yet (`Unsupported`).
pub fn import(program: &Program) -> Result<Module> {
    Ok(import_program(program)?.module)
}

/// The HLO of a program, with its interface.
pub fn import_program(program: &Program) -> Result<hlo::Program> {
    rounds::import_in_rounds(&RULES, program).0
}

/// As [`import_program`], and beside an error the inputs whose values the rules wanted to know: names of nodes and positions.
/// Whoever knows them may put constants there and ask again.
pub fn import_or_wanted(
    program: &Program,
) -> std::result::Result<hlo::Program, (Error, BTreeSet<(String, usize)>)> {
    let (result, wanted) = rounds::import_in_rounds(&RULES, program);
    result.map_err(|error| (error, wanted))
}

/// Everything that keeps a program from being imported: every node that no rule takes, and every node whose inputs or
/// attributes are wrong, as far as they can be judged. None means that [`import`] succeeds.
pub fn problems(program: &Program) -> Vec<Problem> {
    walk::problems::problems(&RULES, program)
}

/// Whether a node of the program writes the variable at a position, be it run or not.
pub fn may_write(program: &Program, variable: usize) -> bool {
    writers::may_write(&RULES, program, VariableId::from_index(variable))
}

/// Why a node that calls no function cannot be compiled, by its op and the types that it names; `None` if it can.
pub fn unsupported_node(node: &tf::Node) -> Option<String> {
    unsupported::reason_of_op(&RULES, node)
}
