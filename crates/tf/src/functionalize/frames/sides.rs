//! The loop of one frame: its variables, its condition, and the side of each node.

use super::tree::{FrameId, Frames};
use crate::functionalize::nodes::{canonical, is_enter, is_merge, is_next_iteration, is_switch};
use crate::{Graph, NodeId, OutputId};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Side of a node, which determines when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Runs before the loop condition is evaluated.
    Always,
    /// Runs in every iteration, after the condition is true.
    Continue,
    /// Runs once, when the loop ends.
    Leave,
    /// Never runs, because it needs values of both `Continue` and `Leave`.
    Never,
}

impl Side {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Always, side) | (side, Self::Always) => side,
            (a, b) if a == b => a,
            _ => Self::Never,
        }
    }
}

/// A loop variable.
pub(super) struct LoopVariable {
    pub(super) merge: NodeId,
    pub(super) enter: NodeId,
    pub(super) next: NodeId,
}

/// The loop of a frame.
pub(super) struct Loop<'a> {
    pub(super) graph: &'a Graph,
    pub(super) frames: &'a Frames,
    pub(super) frame: FrameId,
    /// The nodes of the frame, inputs first.
    pub(super) nodes: &'a [NodeId],
    pub(super) exits: &'a [NodeId],
    pub(super) variables: Vec<LoopVariable>,
    /// Input of `LoopCond`.
    pub(super) predicate: OutputId,
    /// Index of the loop variable of each `Merge` that starts one.
    heads: BTreeMap<NodeId, usize>,
    sides: BTreeMap<NodeId, Side>,
    /// The nodes that only forward a value, with that value: `LoopCond`, a `Switch` on it, and a
    /// `Merge` with a single input that can be alive.
    forwards: BTreeMap<NodeId, OutputId>,
}

impl<'a> Loop<'a> {
    /// Reads the loop of a frame. Returns `None` if the frame has no loop.
    pub(super) fn new(
        graph: &'a Graph,
        frames: &'a Frames,
        frame: FrameId,
        nodes: &'a [NodeId],
        exits: &'a [NodeId],
    ) -> Result<Option<Self>> {
        let Some(predicate) = predicate(graph, nodes)? else { return Ok(None) };
        let variables: Vec<LoopVariable> = nodes
            .iter()
            .filter_map(|&id| variable(graph, frames, frame, id).transpose())
            .collect::<Result<_>>()?;
        if variables.is_empty() {
            return Err(Error::invalid(format!(
                "no Merge in the frame has an Enter and a NextIteration as inputs, so its condition '{}' never changes",
                graph.nodes[predicate.node].name
            )));
        }
        let heads = variables.iter().enumerate().map(|(k, variable)| (variable.merge, k)).collect();
        let (sides, forwards) = (BTreeMap::new(), BTreeMap::new());
        let mut while_loop =
            Self { graph, frames, frame, nodes, exits, variables, predicate, heads, sides, forwards };
        while_loop.find_sides()?;
        while_loop.check()?;
        Ok(Some(while_loop))
    }

    /// Side of a node. Nodes outside the frame are on side `Always`.
    pub(super) fn side(&self, id: NodeId) -> Side {
        self.sides.get(&id).copied().unwrap_or(Side::Always)
    }

    /// The input that a node forwards, if it does nothing else.
    pub(super) fn forwarded_input(&self, id: NodeId) -> Option<OutputId> {
        self.forwards.get(&id).copied()
    }

    /// Index of the loop variable that a `Merge` starts.
    pub(super) fn variable_of(&self, merge: NodeId) -> Option<usize> {
        self.heads.get(&merge).copied()
    }

    fn find_sides(&mut self) -> Result<()> {
        let graph = self.graph;
        for &id in self.nodes {
            let node = &graph.nodes[id];
            let is_head = self.variable_of(id).is_some();
            let side = match node.op.as_str() {
                op if is_enter(op) || is_head => Side::Always,
                op if is_merge(op) => self.merge_side(id)?,
                op => {
                    if op == "LoopCond" || (is_switch(op) && self.is_on_loop_cond(id)) {
                        self.forwards.insert(id, node.inputs[0]);
                    }
                    let data = node.inputs.iter().map(|&input| self.output_side(input));
                    // A `ControlTrigger` runs even if its control inputs are dead, but not before
                    // one of them can run.
                    let trigger = op == "ControlTrigger";
                    let control = node.control_inputs.iter().map(|&input| self.side(input));
                    data.chain(control).fold(Side::Always, |a, b| match a.join(b) {
                        Side::Never if trigger => Side::Continue,
                        side => side,
                    })
                }
            };
            self.sides.insert(id, side);
        }
        Ok(())
    }

    /// Side of an output. Each output of a `Switch` on the loop condition has its own.
    fn output_side(&self, output: OutputId) -> Side {
        let side = self.side(output.node);
        let node = &self.graph.nodes[output.node];
        match (is_switch(&node.op) && self.forwards.contains_key(&output.node), output.index) {
            (true, 0) => side.join(Side::Leave),
            (true, _) => side.join(Side::Continue),
            (false, _) => side,
        }
    }

    /// True if the predicate of a `Switch` is the loop condition.
    fn is_on_loop_cond(&self, switch: NodeId) -> bool {
        let predicate = canonical(self.graph, self.graph.nodes[switch].inputs[1]).node;
        self.graph.nodes[predicate].op == "LoopCond" && self.frames.frame_of(predicate) == Some(self.frame)
    }

    /// Side of a `Merge` that does not start a loop variable. It runs if one of its inputs is
    /// alive.
    fn merge_side(&mut self, id: NodeId) -> Result<Side> {
        let node = &self.graph.nodes[id];
        let alive: Vec<(OutputId, Side)> = node
            .inputs
            .iter()
            .map(|&input| (input, self.output_side(input)))
            .filter(|(_, side)| *side != Side::Never)
            .collect();
        let side = alive.iter().map(|(_, side)| *side).fold(Side::Always, Side::join);
        match alive.as_slice() {
            [(one, side)] => {
                self.forwards.insert(id, *one);
                Ok(*side)
            }
            all if side != Side::Never && all.len() == node.inputs.len() => Ok(side),
            [] => Ok(Side::Never),
            _ => Err(Error::unsupported(format!(
                "node '{}' (op {}) joins a value of an iteration with a value computed when the loop ends",
                node.name, node.op
            ))),
        }
    }

    fn check(&self) -> Result<()> {
        for variable in &self.variables {
            self.check_input(variable.next, Side::Continue, "1")?;
        }
        for &exit in self.exits {
            self.check_input(exit, Side::Leave, "0")?;
        }
        Ok(())
    }

    /// Checks that the input of a node with one input is on the expected side.
    fn check_input(&self, id: NodeId, expected: Side, output: &str) -> Result<()> {
        let node = &self.graph.nodes[id];
        let input = &self.graph.nodes[node.inputs[0].node];
        let side = self.output_side(node.inputs[0]);
        if side == expected {
            return Ok(());
        }
        let problem = match side {
            Side::Always => "does not depend on a Switch controlled by LoopCond",
            Side::Continue => "is computed in an iteration",
            Side::Leave => "is computed when the loop ends",
            Side::Never => "needs both outputs of a Switch and is therefore never computed",
        };
        Err(Error::invalid(format!(
            "node '{}' (op {}) uses node '{}' (op {}), which {problem}; it must depend on output {output} of a Switch \
             controlled by LoopCond",
            node.name, node.op, input.name, input.op
        )))
    }
}

/// The input of the frame's `LoopCond`, or `None` if the frame has no loop.
fn predicate(graph: &Graph, nodes: &[NodeId]) -> Result<Option<OutputId>> {
    let is = |op: &'static str| move |id: &&NodeId| graph.nodes[**id].op == op;
    let conditions: Vec<NodeId> = nodes.iter().filter(is("LoopCond")).copied().collect();
    let Some(&first) = conditions.first() else {
        return match nodes.iter().find(|&&id| is_next_iteration(&graph.nodes[id].op)) {
            None => Ok(None),
            Some(&id) => Err(Error::invalid(format!(
                "node '{}' (op {}) starts another iteration, but the frame has no LoopCond to end the loop",
                graph.nodes[id].name, graph.nodes[id].op
            ))),
        };
    };
    let predicate = |id: NodeId| canonical(graph, graph.nodes[id].inputs[0]);
    match conditions.iter().find(|&&id| predicate(id) != predicate(first)) {
        Some(&other) => Err(Error::invalid(format!(
            "the frame has two conditions: nodes '{}' and '{}' (op LoopCond), with the inputs '{}' and '{}'",
            graph.nodes[first].name,
            graph.nodes[other].name,
            graph.nodes[predicate(first).node].name,
            graph.nodes[predicate(other).node].name
        ))),
        None => Ok(Some(graph.nodes[first].inputs[0])),
    }
}

/// The loop variable that a node starts, if it is a `Merge` with a `NextIteration`.
fn variable(graph: &Graph, frames: &Frames, frame: FrameId, id: NodeId) -> Result<Option<LoopVariable>> {
    let node = &graph.nodes[id];
    let is_next = |input: &OutputId| is_next_iteration(&graph.nodes[input.node].op);
    if !is_merge(&node.op) || !node.inputs.iter().any(is_next) {
        return Ok(None);
    }
    let is_entered = |input: &OutputId| {
        is_enter(&graph.nodes[input.node].op) && frames.frame_of(input.node) == Some(frame)
    };
    match node.inputs.as_slice() {
        [a, b] if is_entered(a) && is_next(b) => {
            Ok(Some(LoopVariable { merge: id, enter: a.node, next: b.node }))
        }
        [a, b] if is_next(a) && is_entered(b) => {
            Ok(Some(LoopVariable { merge: id, enter: b.node, next: a.node }))
        }
        inputs => {
            let inputs: Vec<String> = inputs
                .iter()
                .take(4)
                .map(|i| format!("'{}' (op {})", graph.nodes[i.node].name, graph.nodes[i.node].op))
                .collect();
            Err(Error::invalid(format!(
                "node '{}' (op {}): expected one Enter and one NextIteration as inputs, got {}",
                node.name,
                node.op,
                inputs.join(", ")
            )))
        }
    }
}
