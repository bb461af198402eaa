//! Finds all the errors that an import could stop at, in one pass.

use crate::node::rule::RuleTable;
use crate::values::collected::MAX_PROBLEMS;
use crate::values::lessons::Lessons;
use crate::values::state::State;
use crate::walk::entry::{Entry, add_variables_and_feeds};
use crate::walk::graph_walk::Walk;
use crate::walk::rounds::{import_in_rounds, with_flags};
use crate::walk::unsupported;
use support::{Code, Error};
use tf::{Problem, Program};

/// Returns everything that prevents a program from being imported.
pub(crate) fn problems(rules: &'static RuleTable, program: &Program) -> Vec<Problem> {
    let mut problems: Vec<Problem> = unsupported::find(rules, program)
        .into_iter()
        .map(|node| {
            let error = Error::unsupported(node.reason).coded(Code::UnsupportedOp);
            Problem::of_node(node.name, node.op, error)
        })
        .collect();
    problems.truncate(MAX_PROBLEMS);
    let mut state = State::new(program, Lessons::default());
    state.collect_problems();
    let whole = match add_variables_and_feeds(&mut state) {
        Ok(Entry { feed_values, .. }) => {
            Walk::new(program, rules).translate_graph(&mut state, &program.graph, feed_values, None, "").err()
        }
        Err(error) => Some(error),
    };
    problems.extend(state.take_collected().problems);
    problems.extend(whole.map(Problem::of_graph));
    let fixed = program.of_largest_sizes();
    if !problems.is_empty() && !program.dimensions.is_empty() && import_in_rounds(rules, &fixed).0.is_ok() {
        problems.iter_mut().for_each(|problem| problem.error = with_flags(program, problem.error.clone()));
    }
    if problems.is_empty() {
        problems.extend(import_in_rounds(rules, program).0.err().map(Problem::of_graph));
    }
    problems
}
