//! The nodes needed by one part of a loop: its condition, its body, or its epilogue.

use super::sides::{Loop, Side};
use crate::functionalize::nodes::{is_enter, is_merge, is_next_iteration, is_read, is_stateful};
use crate::{DataType, NodeId, OutputId};
use std::collections::BTreeSet;
use support::{Error, Result};

/// A value from outside the frame. `data_type` is its type inside the frame, which is not a
/// reference type if an `Enter` reads the reference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Capture {
    pub(super) output: OutputId,
    pub(super) data_type: DataType,
}

/// Source of a value inside a frame.
pub(super) enum Source {
    /// Value of a loop variable at the start of the iteration.
    Variable(usize),
    /// A value from outside the frame.
    Outside(Capture),
    /// An output of a node of the frame.
    Node(OutputId),
}

/// A part of a loop: the nodes to copy, and the values and nodes from outside that they use.
pub(super) struct Part {
    pub(super) side: Side,
    /// The nodes, inputs first.
    pub(super) nodes: Vec<NodeId>,
    /// Nodes of this side that have effects and are not upstream of a result or of another effect.
    pub(super) effects: Vec<NodeId>,
    /// Values from outside the frame.
    pub(super) captures: BTreeSet<Capture>,
    /// Outside nodes that must run first.
    pub(super) waits_for: BTreeSet<NodeId>,
}

/// The search for the nodes of a part.
struct Search<'a, 'b> {
    source_loop: &'b Loop<'a>,
    part: Part,
    seen: BTreeSet<NodeId>,
    work: Vec<NodeId>,
}

impl Part {
    /// Collects the nodes upstream of `results`, and the nodes of `side` that have effects.
    pub(super) fn new(source_loop: &Loop<'_>, side: Side, results: &[OutputId]) -> Result<Self> {
        let part = Self {
            side,
            nodes: Vec::new(),
            effects: Vec::new(),
            captures: BTreeSet::new(),
            waits_for: BTreeSet::new(),
        };
        let mut search = Search { source_loop, part, seen: BTreeSet::new(), work: Vec::new() };
        for &result in results {
            search.visit(result)?;
        }
        search.run()?;
        // In reverse order, so that nodes upstream of an effect are not listed as effects
        // themselves.
        for &id in source_loop.nodes.iter().rev() {
            let op = source_loop.graph.nodes[id].op.as_str();
            if source_loop.side(id) == side && is_stateful(op) && !is_read(op) && !search.seen.contains(&id) {
                search.part.effects.push(id);
                search.work.push(id);
                search.run()?;
            }
        }
        let Search { mut part, seen, .. } = search;
        part.nodes = source_loop.nodes.iter().copied().filter(|id| seen.contains(id)).collect();
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
            for &input in &self.source_loop.graph.nodes[id].inputs {
                self.visit(input)?;
            }
            for &control in &self.source_loop.graph.nodes[id].control_inputs {
                self.wait(control);
            }
        }
        Ok(())
    }

    /// Records what an output requires: a node of the frame, or a value from outside.
    fn visit(&mut self, output: OutputId) -> Result<()> {
        let graph = self.source_loop.graph;
        let mut at = output;
        while let Some(next) = self.source_loop.forwarded_input(at.node) {
            for &control in &graph.nodes[at.node].control_inputs {
                self.wait(control);
            }
            if at.index != 0 && is_merge(&graph.nodes[at.node].op) {
                return Err(second_output(&graph.nodes[at.node]));
            }
            at = next;
        }
        match self.source_loop.source(at)? {
            Source::Variable(_) => {}
            Source::Outside(capture) => {
                if self.source_loop.frames.frame_of(at.node) == Some(self.source_loop.frame) {
                    self.wait(at.node);
                }
                self.part.captures.insert(capture);
            }
            Source::Node(output) => self.work.push(output.node),
        }
        Ok(())
    }

    /// Records a control input: a node of the part, or a node outside that must run first.
    fn wait(&mut self, control: NodeId) {
        let node = &self.source_loop.graph.nodes[control];
        if self.source_loop.frames.frame_of(control) != Some(self.source_loop.frame) {
            self.part.waits_for.insert(control);
        } else if is_enter(&node.op) {
            self.part.waits_for.extend(node.control_inputs.iter().copied());
        } else if self.source_loop.variable_of(control).is_none()
            && !is_next_iteration(&node.op)
            && self.source_loop.side(control) == self.part.side
        {
            // A control input on an earlier side needs no edge: it runs before this side starts.
            self.work.push(control);
        }
    }

    /// Rejects a node with an effect that is on another side: this part would run it again.
    fn check(&self, id: NodeId) -> Result<()> {
        let node = &self.source_loop.graph.nodes[id];
        let op = node.op.as_str();
        if self.source_loop.side(id) == self.part.side || !is_stateful(op) || is_read(op) {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "node '{}' (op {}) has an effect and is part of the loop's condition, but its result is also used outside \
             the condition: compute it in the body",
            node.name, node.op
        )))
    }
}

impl Loop<'_> {
    /// Source of an output as seen from inside the frame.
    pub(super) fn source(&self, output: OutputId) -> Result<Source> {
        let mut at = output;
        while let Some(next) = self.forwarded_input(at.node) {
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
        if self.frames.frame_of(at.node) != Some(self.frame) {
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
        "node '{}' (op {}) is in a while loop, and its second output is used",
        node.name, node.op
    ))
}
