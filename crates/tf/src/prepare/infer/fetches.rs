//! Chooses the fetches: the nodes that the user names, or the only sink of the graph.

use super::super::FedOutput;
use super::super::names::Names;
use super::super::signatures::Signatures;
use super::edges::{Edges, Output};
use super::feeds::{Sources, label};
use super::sinks::{Sinks, numeric_outputs};
use super::writes::Writes;
use super::{InferOptions, Inferred, variables};
use crate::proto::GraphDef;

/// Maximum number of sinks that are listed with their dependencies.
const MAX_LISTED: usize = 20;

/// Maximum number of sinks that update variables and are examined.
const MAX_EXAMINED: usize = 200;

/// Maximum number of names in one line of the list.
const MAX_NAMES: usize = 6;

/// Context for finding fetches.
pub(super) struct Finder<'a> {
    pub(super) graph: &'a GraphDef,
    pub(super) names: &'a Names<'a>,
    pub(super) edges: &'a Edges,
    pub(super) signatures: &'a Signatures<'a>,
    pub(super) sources: &'a Sources<'a>,
}

impl Finder<'_> {
    /// Returns the fetches that the user names, or else the fetches that the graph suggests. If the
    /// user must choose, returns all of them.
    pub(super) fn fetches(&self, options: &InferOptions, inferred: &mut Inferred) -> Vec<FedOutput> {
        let fetches = match options.fetches.as_slice() {
            [] => self.suggest(inferred),
            fetches => self.check_named(fetches, inferred),
        };
        if inferred.problems.is_empty() && fetches.iter().all(|id| !self.has_outputs(id)) {
            let node = fetches.first().map_or("", |id| id.0.as_str());
            inferred.problems.push(format!(
                "node '{node}' runs only for its updates and has no result: add another --fetch for a result"
            ));
        }
        fetches
    }

    /// True if the node of a fetch has outputs. Otherwise it runs for its effects.
    fn has_outputs(&self, id: &FedOutput) -> bool {
        let node = self.names.get(&id.0).map(|at| &self.graph.node[at]);
        // The outputs of unknown ops are unknown too. These ops are reported later.
        node.is_none_or(|node| {
            self.signatures.output_types(node).map_or(true, |(_, types)| !types.is_empty())
        })
    }

    /// Returns the only sink of the graph. If there are several, reports that the user must choose.
    fn suggest(&self, inferred: &mut Inferred) -> Vec<FedOutput> {
        let sinks = Sinks::find(self.graph, self.edges, self.signatures);
        let results = [&sinks.results, &sinks.observed, &sinks.of_loops, &sinks.of_variables];
        let chosen = results.into_iter().find(|list| !list.is_empty()).cloned().unwrap_or_default();
        let mut candidates = chosen.clone();
        candidates.extend(self.not_covered(&sinks, &chosen));
        if candidates.is_empty() {
            candidates.clone_from(&sinks.rest);
        }
        match candidates.as_slice() {
            [] => {
                inferred.problems.push(
                    "the graph has no unused output of numbers or bools: choose what to compute with --fetch \
                     NODE"
                        .to_owned(),
                );
                Vec::new()
            }
            [one] if !self.outputs(*one).is_empty() => {
                let unused = sinks.observed.iter().chain(&sinks.of_loops).filter(|at| *at != one);
                let unused: Vec<&str> = unused.map(|&at| self.graph.node[at].name.as_str()).collect();
                if !unused.is_empty() {
                    inferred.notes.push(format!(
                        "fetching '{}', but not {}: choose with --fetch NODE",
                        self.graph.node[*one].name,
                        few(&unused)
                    ));
                }
                self.ids(*one)
            }
            _ => {
                for list in [&sinks.observed, &sinks.of_loops] {
                    let more = list.iter().filter(|at| !candidates.contains(at));
                    candidates = candidates.iter().chain(more).copied().collect();
                }
                inferred.problems.push(self.choice_problem(&candidates));
                // The rest of the config is inferred anyway, to report its problems as well.
                candidates.truncate(MAX_LISTED);
                candidates.iter().flat_map(|&at| self.ids(at)).collect()
            }
        }
    }

    /// Returns sinks that update variables which the chosen sinks do not update. Each adds at least
    /// one update. Nodes that only read a variable back come last.
    fn not_covered(&self, sinks: &Sinks, chosen: &[usize]) -> Vec<usize> {
        let is_read = |at: &usize| self.graph.node[*at].op == "ReadVariableOp";
        let (last, first): (Vec<usize>, Vec<usize>) = sinks.updates.iter().partition(|at| is_read(at));
        let mut covered = self.edges.cone(chosen.iter().copied());
        let mut additional = Vec::new();
        for at in first.into_iter().chain(last).take(MAX_EXAMINED) {
            let cone = self.edges.cone([at]);
            if (0..cone.len()).any(|node| cone[node] && sinks.is_update[node] && !covered[node]) {
                covered.iter_mut().zip(cone).for_each(|(covered, new)| *covered |= new);
                additional.push(at);
            }
        }
        additional
    }

    /// Describes the problem of several sinks, each with its flags and dependencies.
    fn choice_problem(&self, candidates: &[usize]) -> String {
        let lines = candidates.iter().take(MAX_LISTED).map(|&at| format!("\n    {}", self.describe(at)));
        let lines: String = lines.collect();
        let more = match candidates.len().saturating_sub(MAX_LISTED) {
            0 => String::new(),
            more => format!("\n    and {more} more"),
        };
        format!(
            "the graph has {} unused outputs; choose with one or more of these flags:{lines}{more}",
            candidates.len()
        )
    }

    /// Describes a sink: `--fetch NODE  (op Op) needs ...; reads ...; updates ...`.
    fn describe(&self, at: usize) -> String {
        let node = &self.graph.node[at];
        let outputs = self.outputs(at);
        let flags: Vec<String> = match outputs.as_slice() {
            [] => vec![format!("--fetch {}", node.name)],
            outputs => {
                outputs.iter().map(|&k| format!("--fetch {}", label(&(node.name.clone(), k)))).collect()
            }
        };
        let result = if outputs.is_empty() { ", no result: runs for its updates" } else { "" };
        let feeds = self.sources.needed_by([Output { node: at, index: 0 }]);
        let feeds: Vec<String> =
            feeds.iter().map(|fed| label(&(self.graph.node[fed.node].name.clone(), fed.index))).collect();
        let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
        let cone = self.edges.cone([at]);
        let mut writes = Writes::new(self.graph, &cone, self.signatures);
        let (mut read_only, mut updated) = (Vec::new(), Vec::new());
        for nodes in variables::nodes_of(self.graph, &cone) {
            let list =
                if nodes.iter().any(|node| writes.writes(node)) { &mut updated } else { &mut read_only };
            list.push(nodes[0].name.as_str());
        }
        let parts = [("needs the feeds", feeds), ("reads the variables", read_only), ("updates", updated)];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<String> = parts.map(|(verb, names)| format!("{verb} {}", few(names))).collect();
        let depends =
            if parts.is_empty() { "depends only on constants".to_owned() } else { parts.join("; ") };
        format!("{}  (op {}{result}) {depends}", flags.join(" "), node.op)
    }

    fn outputs(&self, at: usize) -> Vec<i64> {
        numeric_outputs(&self.graph.node[at], self.signatures)
    }

    /// Returns the outputs of a sink.
    fn ids(&self, at: usize) -> Vec<FedOutput> {
        let name = &self.graph.node[at].name;
        self.outputs(at).into_iter().map(|k| (name.clone(), k)).collect()
    }

    /// Returns the distinct valid fetches of the user, and reports the invalid ones.
    fn check_named(&self, fetches: &[FedOutput], inferred: &mut Inferred) -> Vec<FedOutput> {
        let mut valid: Vec<FedOutput> = Vec::new();
        for id in fetches {
            let Some(node) = self.names.get(&id.0).map(|at| &self.graph.node[at]) else {
                inferred.problems.push(format!(
                    "the graph has no node '{}' to fetch{}",
                    id.0,
                    self.similar(&id.0)
                ));
                continue;
            };
            if let Ok((_, types)) = self.signatures.output_types(node)
                && !usize::try_from(id.1).is_ok_and(|k| k < types.len().max(1))
            {
                inferred.problems.push(format!(
                    "cannot fetch '{}:{}': node '{}' (op {}) has {} outputs",
                    id.0,
                    id.1,
                    id.0,
                    node.op,
                    types.len()
                ));
                continue;
            }
            if !valid.contains(id) {
                valid.push(id.clone());
            }
        }
        valid
    }

    /// Suggests a node whose name has the same last component.
    fn similar(&self, name: &str) -> String {
        let last = |text: &str| text.rsplit('/').next().unwrap_or(text).to_ascii_lowercase();
        let expected = last(name);
        match self.graph.node.iter().find(|node| last(&node.name) == expected) {
            Some(node) => format!("; did you mean '{}'?", node.name),
            None => String::new(),
        }
    }
}

/// Lists the first names, and the number of remaining ones.
fn few(names: &[&str]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
