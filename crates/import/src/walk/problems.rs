//! All that [`import`](crate::import()) would stop at, found in one go.

use crate::values::value::Value;
use crate::walk::importer::Importer;
use crate::walk::unsupported;
use crate::{add_variables_and_feeds, import_program};
use std::collections::BTreeMap;
use support::{Code, Error};
use tf::{NodeId, Problem, Program};

/// The most problems that are collected.
const MAX_PROBLEMS: usize = 1000;

/// The problems of the nodes while they are translated one after another, without those that depend on one that failed.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) problems: Vec<Problem>,
    /// How many nodes have failed, with or without a problem of their own.
    pub(crate) failures: usize,
}

impl Collected {
    /// Whether no more problems are wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub(crate) fn add(&mut self, node: &str, op: &str, error: Error) {
        if !self.is_full() {
            self.problems.push(Problem::of_node(node, op, error));
        }
    }
}

/// Everything that keeps a program from being imported: every node that no rule takes, and every node whose inputs or
/// attributes are wrong, as far as they can be judged. None means that [`import`](crate::import()) succeeds.
pub fn problems(program: &Program) -> Vec<Problem> {
    let mut problems: Vec<Problem> = unsupported::find(program)
        .into_iter()
        .map(|node| {
            let error = Error::unsupported(node.reason).coded(Code::UnsupportedOp);
            Problem::of_node(node.name, node.op, error)
        })
        .collect();
    problems.truncate(MAX_PROBLEMS);
    let mut importer = Importer::new(program, "tfcompile");
    importer.collected = Some(Collected::default());
    let whole = match add_variables_and_feeds(&mut importer) {
        Ok(_) => {
            let parameters = importer.scope_ref().computation.parameters().to_vec();
            let feeds = program.feeds.iter().zip(parameters);
            let given: BTreeMap<NodeId, Vec<Value>> =
                feeds.map(|(feed, parameter)| (feed.tensor.node, vec![Value::Array(parameter)])).collect();
            importer.translate_graph(&program.graph, given, None, "").err()
        }
        Err(error) => Some(error),
    };
    problems.extend(importer.collected.take().unwrap_or_default().problems);
    problems.extend(whole.map(Problem::of_graph));
    if problems.is_empty() {
        problems.extend(import_program(program).err().map(Problem::of_graph));
    }
    problems
}
