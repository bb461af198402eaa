//! First values of variables, as the graph's own initialisers give them.

use crate::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tf::proto::NodeDef;

/// How often what could not be initialised is tried again: initialisers may read other variables.
const MAX_ROUNDS: usize = 16;

impl Session {
    /// Runs the initialisers of the variables that have no value: of each, the assignment that depends on no placeholder,
    /// the one that TensorFlow names after it first. The answer is the variables that have no such assignment.
    ///
    /// # Errors
    /// What an initialiser says that cannot run, with the variable's name in front.
    pub fn initialize(&self) -> Result<Vec<String>> {
        let without_value: Vec<String> = self
            .variables()
            .iter()
            .filter(|variable| variable.get().is_none())
            .map(|variable| variable.node().to_owned())
            .collect();
        let initialisers = initialisers(&self.graph().node, &without_value);
        let (mut waiting, without_initialiser): (Vec<String>, Vec<String>) =
            without_value.into_iter().partition(|variable| initialisers.contains_key(variable.as_str()));
        for round in 1.. {
            let mut failed: Vec<(String, Error)> = Vec::new();
            for variable in &waiting {
                if let Err(error) = self.run(&[], &[], &[initialisers[variable.as_str()]]) {
                    failed.push((variable.clone(), error));
                }
            }
            // One that reads another variable works in the round behind that one's.
            let is_stuck = failed.len() == waiting.len() || round == MAX_ROUNDS;
            waiting = failed.iter().map(|(variable, _)| variable.clone()).collect();
            match failed.pop() {
                None => break,
                Some((variable, error)) if is_stuck => {
                    return Err(error.context(format!("variable '{variable}' cannot be initialised")));
                }
                Some(_) => {}
            }
        }
        Ok(without_initialiser)
    }
}

/// The node of an input.
fn producer(input: &str) -> &str {
    let input = input.trim_start_matches('^');
    input.rsplit_once(':').map_or(input, |(node, _)| node)
}

/// For each variable the assignment that gives it its first value.
fn initialisers<'g>(nodes: &'g [NodeDef], variables: &[String]) -> BTreeMap<&'g str, &'g str> {
    let by_name: BTreeMap<&str, &NodeDef> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let wanted: BTreeSet<&str> = variables.iter().map(String::as_str).collect();
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    for node in nodes {
        if !matches!(node.op.as_str(), "Assign" | "AssignVariableOp") {
            continue;
        }
        let Some(variable) = node.input.first().map(|input| producer(input)) else { continue };
        if !wanted.contains(variable) || !is_fixed(&by_name, node) {
            continue;
        }
        let is_named = |name: &str| name == format!("{variable}/Assign");
        let better = found.get(variable).is_none_or(|known| !is_named(known) && is_named(&node.name));
        if better {
            found.insert(variable, &node.name);
        }
    }
    found
}

/// Whether what an assignment gives depends on no placeholder and on no file.
fn is_fixed(by_name: &BTreeMap<&str, &NodeDef>, node: &NodeDef) -> bool {
    let mut seen = BTreeSet::new();
    let mut work: Vec<&str> = node.input.iter().map(|input| producer(input)).collect();
    while let Some(name) = work.pop() {
        if !seen.insert(name) {
            continue;
        }
        let Some(node) = by_name.get(name) else { return false };
        let is_given = node.op.starts_with("Placeholder") && node.op != "PlaceholderWithDefault";
        if is_given || matches!(node.op.as_str(), "RestoreV2" | "Restore" | "RestoreSlice") {
            return false;
        }
        work.extend(node.input.iter().map(|input| producer(input)));
    }
    true
}
