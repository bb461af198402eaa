//! The frame of each node.

use crate::functionalize::nodes::{is_enter, is_exit, is_merge, is_next_iteration};
use crate::functionalize::roots::Roots;
use crate::{Graph, NodeId};
use std::collections::BTreeMap;
use support::{Error, Id, IdVec, Result};

/// The depth to which loops may nest.
const MAX_DEPTH: usize = 64;

support::id_type!(
    /// A frame.
    FrameId,
    "frame"
);

/// The place of a loop.
pub(super) struct Frame {
    /// The `frame_name` of its `Enter` nodes.
    pub(super) name: String,
    /// The frame around it.
    pub(super) parent: Option<FrameId>,
    /// Nesting depth, including the frame itself.
    pub(super) depth: usize,
}

/// The frames of a graph.
pub(super) struct Frames {
    frames: IdVec<FrameId, Frame>,
    by_name: BTreeMap<(Option<FrameId>, String), FrameId>,
    of: Vec<Option<FrameId>>,
}

impl std::ops::Index<FrameId> for Frames {
    type Output = Frame;
    fn index(&self, id: FrameId) -> &Frame {
        &self.frames[id]
    }
}

impl Frames {
    /// Finds the frames of the nodes in `order`, which has inputs first. A node stands in the frame
    /// of its inputs, an
    /// `Enter` in the one it opens, an `Exit` around the one it leaves. Inputs from frames around
    /// are taken as if they came through an `Enter`; for nodes without inputs, those they wait for
    /// count.
    pub(super) fn new(graph: &Graph, order: &[NodeId]) -> Result<Self> {
        let mut frames =
            Self { frames: IdVec::default(), by_name: BTreeMap::new(), of: vec![None; graph.nodes.len()] };
        for &id in order {
            let node = &graph.nodes[id];
            let at = frames.of_inputs(graph, id)?;
            frames.of[id.index()] = match node.op.as_str() {
                op if is_enter(op) => Some(frames.enter(graph, id, at)?),
                op if is_exit(op) || is_next_iteration(op) || op == "LoopCond" => {
                    let inside = at.ok_or_else(|| {
                        Error::invalid(format!(
                            "node '{}' (op {op}) stands in no while loop: no Enter leads to its input '{}'",
                            node.name, graph.nodes[node.inputs[0].node].name
                        ))
                    })?;
                    if is_exit(op) { frames[inside].parent } else { Some(inside) }
                }
                _ => at,
            };
        }
        Ok(frames)
    }

    /// The frame of the inputs.
    fn of_inputs(&self, graph: &Graph, id: NodeId) -> Result<Option<FrameId>> {
        let node = &graph.nodes[id];
        let is_back = |input: &NodeId| is_merge(&node.op) && is_next_iteration(&graph.nodes[*input].op);
        let data = node.inputs.iter().map(|input| input.node).filter(|input| !is_back(input));
        let from: Vec<NodeId> =
            if node.inputs.is_empty() { node.control_inputs.clone() } else { data.collect() };
        let mut at: Option<(FrameId, NodeId)> = None;
        for input in from {
            let Some(frame) = self.of(input) else { continue };
            at = match at {
                None => Some((frame, input)),
                Some((other, _)) if self.is_within(frame, other) => Some((frame, input)),
                Some((other, _)) if self.is_within(other, frame) => at,
                Some((other, first)) => {
                    return Err(Error::invalid(format!(
                        "node '{}' (op {}) has the input '{}' from frame '{}' and the input '{}' from frame '{}', of \
                         which neither stands in the other: values leave a while loop through Exit only",
                        node.name,
                        node.op,
                        graph.nodes[first].name,
                        self[other].name,
                        graph.nodes[input].name,
                        self[frame].name
                    )));
                }
            };
        }
        Ok(at.map(|(frame, _)| frame))
    }

    /// The frame that an `Enter` opens.
    fn enter(&mut self, graph: &Graph, id: NodeId, parent: Option<FrameId>) -> Result<FrameId> {
        let node = &graph.nodes[id];
        let name = String::from_utf8_lossy(&node.attributes.string("frame_name")?).into_owned();
        let depth = 1 + parent.map_or(0, |parent| self[parent].depth);
        if depth > MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "node '{}' (op {}) opens frame '{name}' inside of {MAX_DEPTH} others: loops nest too deep",
                node.name, node.op
            )));
        }
        let frames = &mut self.frames;
        let mut new = |name: &str| frames.push(Frame { name: name.to_owned(), parent, depth });
        Ok(*self.by_name.entry((parent, name)).or_insert_with_key(|(_, name)| new(name)))
    }

    /// True if a frame equals another or is nested in it.
    fn is_within(&self, inner: FrameId, outer: FrameId) -> bool {
        let mut at = Some(inner);
        while let Some(frame) = at.filter(|&frame| frame != outer) {
            at = self[frame].parent;
        }
        at.is_some()
    }

    /// The frame of a node; `None` outside of all loops.
    pub(super) fn of(&self, id: NodeId) -> Option<FrameId> {
        self.of.get(id.index()).copied().flatten()
    }

    /// States the frame of a node that was added.
    pub(super) fn set(&mut self, id: NodeId, frame: Option<FrameId>) {
        if self.of.len() <= id.index() {
            self.of.resize(id.index() + 1, None);
        }
        self.of[id.index()] = frame;
    }

    /// Takes a node out of its frame.
    pub(super) fn move_to_parent(&mut self, id: NodeId) {
        let parent = self.of(id).and_then(|frame| self[frame].parent);
        self.set(id, parent);
    }

    /// Nesting depth of the frames.
    pub(super) fn depth(&self) -> usize {
        self.frames.values().map(|frame| frame.depth).max().unwrap_or(0)
    }

    /// Checks where values cross frames.
    pub(super) fn check(&self, graph: &Graph, order: &[NodeId], roots: &Roots) -> Result<()> {
        for &id in order {
            let node = &graph.nodes[id];
            for &input in node.inputs.iter().map(|i| &i.node).chain(&node.control_inputs) {
                let next = &graph.nodes[input];
                if !is_next_iteration(&next.op) {
                    continue;
                }
                let is_input = node.inputs.iter().any(|i| i.node == input);
                if !is_merge(&node.op) || !is_input {
                    return Err(Error::invalid(format!(
                        "node '{}' (op {}) takes node '{}' (op {}) as an input, which only a Merge at the head of a \
                         while loop can",
                        node.name, node.op, next.name, next.op
                    )));
                }
                if self.of(input) != self.of(id) {
                    return Err(Error::invalid(format!(
                        "node '{}' (op {}) of {} takes node '{}' (op {}) of {}: an iteration leads back into its own \
                         frame",
                        node.name,
                        node.op,
                        self.describe(id),
                        next.name,
                        next.op,
                        self.describe(input)
                    )));
                }
            }
        }
        match roots.results.iter().find(|output| self.of(output.node).is_some()) {
            Some(output) => Err(Error::invalid(format!(
                "{} '{}:{}' stands in {}, where it has a value in every iteration: use the output of an Exit instead",
                roots.name,
                graph.nodes[output.node].name,
                output.index,
                self.describe(output.node)
            ))),
            None => Ok(()),
        }
    }

    fn describe(&self, id: NodeId) -> String {
        match self.of(id) {
            Some(frame) => format!("the while loop '{}'", self[frame].name),
            None => "no while loop".to_owned(),
        }
    }
}
