//! Initial values of variables, from the graph's own initializers.

use crate::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tf::proto::NodeDef;

/// Maximum number of rounds of initialization: an initializer may read other variables.
const MAX_ROUNDS: usize = 16;

impl Session {
    /// Runs the initializers of all variables without a value. The initializer of a variable is an
    /// assignment that depends on no placeholder; the one that TensorFlow names after the variable
    /// is preferred. Returns the variables that have no such assignment.
    ///
    /// # Errors
    /// The error of an initializer that cannot run, prefixed with the variable's name.
    pub fn initialize(&self) -> Result<Vec<String>> {
        let without_value: Vec<String> = self
            .variables()
            .iter()
            .filter(|variable| variable.get().is_none())
            .map(|variable| variable.node().to_owned())
            .collect();
        let initializers = initializers(&self.graph().node, &without_value);
        let (mut waiting, without_initializer): (Vec<String>, Vec<String>) =
            without_value.into_iter().partition(|variable| initializers.contains_key(variable.as_str()));
        for round in 1.. {
            let mut failed: Vec<(String, Error)> = Vec::new();
            for variable in &waiting {
                if let Err(error) = self.run(&[], &[], &[initializers[variable.as_str()]]) {
                    failed.push((variable.clone(), error));
                }
            }
            // An initializer that reads another variable succeeds one round later than that
            // variable's.
            let is_stuck = failed.len() == waiting.len() || round == MAX_ROUNDS;
            waiting = failed.iter().map(|(variable, _)| variable.clone()).collect();
            match failed.pop() {
                None => break,
                Some((variable, error)) if is_stuck => {
                    return Err(error.context(format!("cannot initialize variable '{variable}'")));
                }
                Some(_) => {}
            }
        }
        Ok(without_initializer)
    }
}

/// The node of an input.
fn producer(input: &str) -> &str {
    let input = input.trim_start_matches('^');
    input.rsplit_once(':').map_or(input, |(node, _)| node)
}

/// The initializing assignment of each variable.
fn initializers<'g>(nodes: &'g [NodeDef], variables: &[String]) -> BTreeMap<&'g str, &'g str> {
    let by_name: BTreeMap<&str, &NodeDef> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let uninitialized: BTreeSet<&str> = variables.iter().map(String::as_str).collect();
    let mut assignments: BTreeMap<&str, &str> = BTreeMap::new();
    for node in nodes {
        if !matches!(node.op.as_str(), "Assign" | "AssignVariableOp") {
            continue;
        }
        let Some(variable) = node.input.first().map(|input| producer(input)) else { continue };
        if !uninitialized.contains(variable) || !is_fixed(&by_name, node) {
            continue;
        }
        let is_named = |name: &str| name == format!("{variable}/Assign");
        let better = assignments.get(variable).is_none_or(|known| !is_named(known) && is_named(&node.name));
        if better {
            assignments.insert(variable, &node.name);
        }
    }
    assignments
}

/// True if the assigned value depends on no placeholder and no file.
fn is_fixed(by_name: &BTreeMap<&str, &NodeDef>, node: &NodeDef) -> bool {
    let mut seen = BTreeSet::new();
    let mut work: Vec<&str> = node.input.iter().map(|input| producer(input)).collect();
    while let Some(name) = work.pop() {
        if !seen.insert(name) {
            continue;
        }
        let Some(node) = by_name.get(name) else { return false };
        let is_fed = node.op.starts_with("Placeholder") && node.op != "PlaceholderWithDefault";
        if is_fed || matches!(node.op.as_str(), "RestoreV2" | "Restore" | "RestoreSlice") {
            return false;
        }
        work.extend(node.input.iter().map(|input| producer(input)));
    }
    true
}
