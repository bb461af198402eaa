//! The nodes that one part of a loop needs: its condition, its body, or what is computed when it
//! ends.

use super::sides::{Loop, Side};
use crate::functionalize::nodes::{is_enter, is_merge, is_next_iteration, is_read, is_stateful};
use crate::{DataType, NodeId, OutputId};
use std::collections::BTreeSet;
use support::{Error, Result};

/// A value from outside of the frame, and its type inside: an `Enter` may read a reference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Capture {
    pub(super) output: OutputId,
    pub(super) data_type: DataType,
}

/// Kinds of values inside a frame.
pub(super) enum Source {
    /// The value of a loop variable at the head of the iteration.
    Variable(usize),
    /// A value from outside.
    Outside(Capture),
    /// An output of a node of the frame.
    Node(OutputId),
}

/// A part of a loop on its way to a function.
pub(super) struct Part {
    pub(super) side: Side,
    /// The nodes, inputs first.
    pub(super) nodes: Vec<NodeId>,
    /// Nodes that must run for their effects.
    pub(super) effects: Vec<NodeId>,
    /// Values from outside.
    pub(super) captures: BTreeSet<Capture>,
    /// Outside nodes that must run first.
    pub(super) waits_for: BTreeSet<NodeId>,
}

/// The search for the nodes of a part.
struct Search<'a, 'b> {
    of: &'b Loop<'a>,
    part: Part,
    seen: BTreeSet<NodeId>,
    work: Vec<NodeId>,
}

impl Part {
    /// Collects what results on a side need, and the nodes of that side that have effects.
    pub(super) fn new(of: &Loop<'_>, side: Side, results: &[OutputId]) -> Result<Self> {
        let part = Self {
            side,
            nodes: Vec::new(),
            effects: Vec::new(),
            captures: BTreeSet::new(),
            waits_for: BTreeSet::new(),
        };
        let mut search = Search { of, part, seen: BTreeSet::new(), work: Vec::new() };
        for &result in results {
            search.visit(result)?;
        }
        search.run()?;
        // In reverse order, so that the inputs of an effect are not listed as effects themselves.
        for &id in of.nodes.iter().rev() {
            let op = of.graph.nodes[id].op.as_str();
            if of.side(id) == side && is_stateful(op) && !is_read(op) && !search.seen.contains(&id) {
                search.part.effects.push(id);
                search.work.push(id);
                search.run()?;
            }
        }
        let Search { mut part, seen, .. } = search;
        part.nodes = of.nodes.iter().copied().filter(|id| seen.contains(id)).collect();
        Ok(part)
    }
}

impl Search<'_, '_> {
    fn run(&mut self) -> Result<()> {
        while let Some(id) = self.work.pop() {
            if !self.seen.insert(id) {
                continue;
            }
            self.check(id)?;
            for &input in &self.of.graph.nodes[id].inputs {
                self.visit(input)?;
            }
            for &control in &self.of.graph.nodes[id].control_inputs {
                self.wait(control);
            }
        }
        Ok(())
    }

    /// Notes what an output takes.
    fn visit(&mut self, output: OutputId) -> Result<()> {
        let graph = self.of.graph;
        let mut at = output;
        while let Some(next) = self.of.passes_on(at.node) {
            for &control in &graph.nodes[at.node].control_inputs {
                self.wait(control);
            }
            if at.index != 0 && is_merge(&graph.nodes[at.node].op) {
                return Err(second_output(&graph.nodes[at.node]));
            }
            at = next;
        }
        match self.of.source(at)? {
            Source::Variable(_) => {}
            Source::Outside(capture) => {
                if self.of.frames.of(at.node) == Some(self.of.frame) {
                    self.wait(at.node);
                }
                self.part.captures.insert(capture);
            }
            Source::Node(output) => self.work.push(output.node),
        }
        Ok(())
    }

    /// Notes what must run first.
    fn wait(&mut self, control: NodeId) {
        let node = &self.of.graph.nodes[control];
        if self.of.frames.of(control) != Some(self.of.frame) {
            self.part.waits_for.insert(control);
        } else if is_enter(&node.op) {
            self.part.waits_for.extend(node.control_inputs.iter().copied());
        } else if self.of.variable_of(control).is_none()
            && !is_next_iteration(&node.op)
            && self.of.side(control) == self.part.side
        {
            // A node of an earlier side needs no edge: it has run before the later sides start.
            self.work.push(control);
        }
    }

    /// Checks that a node which always runs and has an effect does not run again in another part.
    fn check(&self, id: NodeId) -> Result<()> {
        let node = &self.of.graph.nodes[id];
        let op = node.op.as_str();
        if self.of.side(id) == self.part.side || !is_stateful(op) || is_read(op) {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "node '{}' (op {}) has an effect and belongs to the loop's condition, but its result is used after it too: \
             compute it in the body",
            node.name, node.op
        )))
    }
}

impl Loop<'_> {
    /// Kind of an output as seen from inside the frame.
    pub(super) fn source(&self, output: OutputId) -> Result<Source> {
        let mut at = output;
        while let Some(next) = self.passes_on(at.node) {
            at = next;
        }
        let node = &self.graph.nodes[at.node];
        if let Some(variable) = self.variable_of(at.node) {
            return match at.index {
                0 => Ok(Source::Variable(variable)),
                _ => Err(second_output(node)),
            };
        }
        let data_type = self.graph.output_type(at);
        if self.frames.of(at.node) != Some(self.frame) {
            return Ok(Source::Outside(Capture { output: at, data_type }));
        }
        if is_enter(&node.op) {
            return Ok(Source::Outside(Capture { output: node.inputs[0], data_type }));
        }
        Ok(Source::Node(at))
    }
}

fn second_output(node: &crate::Node) -> Error {
    Error::unsupported(format!(
        "node '{}' (op {}) stands in a while loop, and its second output is used",
        node.name, node.op
    ))
}
