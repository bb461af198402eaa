//! The tree of frames, and the frame of each node.

use crate::functionalize::nodes::{is_enter, is_exit, is_merge, is_next_iteration};
use crate::functionalize::roots::Roots;
use crate::{Graph, NodeId};
use std::collections::BTreeMap;
use support::{Error, Id, IdVec, Result};

/// Maximum nesting depth of loops.
const MAX_DEPTH: usize = 64;

support::id_type!(
    /// A frame of a graph.
    FrameId,
    "frame"
);

/// The context in which the nodes of a loop run.
pub(super) struct Frame {
    /// The `frame_name` of its `Enter` nodes.
    pub(super) name: String,
    /// The enclosing frame.
    pub(super) parent: Option<FrameId>,
    /// Nesting depth, including the frame itself.
    pub(super) depth: usize,
}

/// The frames of a graph.
pub(super) struct Frames {
    frames: IdVec<FrameId, Frame>,
    by_name: BTreeMap<(Option<FrameId>, String), FrameId>,
    /// The frame of each node.
    by_node: Vec<Option<FrameId>>,
}

impl std::ops::Index<FrameId> for Frames {
    type Output = Frame;
    fn index(&self, id: FrameId) -> &Frame {
        &self.frames[id]
    }
}

impl Frames {
    /// Finds the frames of the nodes in `order`, which lists inputs first. A node is in the frame
    /// of its inputs, an `Enter` in the frame that it opens, and an `Exit` in the parent of the
    /// frame that it leaves. Inputs from enclosing frames are treated as if they came through an
    /// `Enter`. A node without inputs is in the frame of its control inputs.
    pub(super) fn new(graph: &Graph, order: &[NodeId]) -> Result<Self> {
        let by_node = vec![None; graph.nodes.len()];
        let mut frames = Self { frames: IdVec::default(), by_name: BTreeMap::new(), by_node };
        for &id in order {
            let node = &graph.nodes[id];
            let at = frames.frame_of_inputs(graph, id)?;
            frames.by_node[id.index()] = match node.op.as_str() {
                op if is_enter(op) => Some(frames.enter(graph, id, at)?),
                op if is_exit(op) || is_next_iteration(op) || op == "LoopCond" => {
                    let inside = at.ok_or_else(|| {
                        Error::invalid(format!(
                            "node '{}' (op {op}) is not in a while loop: no Enter leads to its input '{}'",
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

    /// Innermost frame of the inputs of a node.
    fn frame_of_inputs(&self, graph: &Graph, id: NodeId) -> Result<Option<FrameId>> {
        let node = &graph.nodes[id];
        let is_back = |input: &NodeId| is_merge(&node.op) && is_next_iteration(&graph.nodes[*input].op);
        let data = node.inputs.iter().map(|input| input.node).filter(|input| !is_back(input));
        let from: Vec<NodeId> =
            if node.inputs.is_empty() { node.control_inputs.clone() } else { data.collect() };
        let mut at: Option<(FrameId, NodeId)> = None;
        for input in from {
            let Some(frame) = self.frame_of(input) else { continue };
            at = match at {
                None => Some((frame, input)),
                Some((other, _)) if self.is_within(frame, other) => Some((frame, input)),
                Some((other, _)) if self.is_within(other, frame) => at,
                Some((other, first)) => {
                    return Err(Error::invalid(format!(
                        "node '{}' (op {}) has input '{}' from frame '{}' and input '{}' from frame '{}', and neither \
                         frame contains the other: values leave a while loop only through Exit",
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
                "node '{}' (op {}) opens frame '{name}' inside {MAX_DEPTH} others: loops are nested too deeply",
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

    /// The frame of a node, or `None` outside all loops.
    pub(super) fn frame_of(&self, id: NodeId) -> Option<FrameId> {
        self.by_node.get(id.index()).copied().flatten()
    }

    /// Sets the frame of a node, which may have been added to the graph later.
    pub(super) fn set(&mut self, id: NodeId, frame: Option<FrameId>) {
        if self.by_node.len() <= id.index() {
            self.by_node.resize(id.index() + 1, None);
        }
        self.by_node[id.index()] = frame;
    }

    /// Moves a node to the parent of its frame.
    pub(super) fn move_to_parent(&mut self, id: NodeId) {
        let parent = self.frame_of(id).and_then(|frame| self[frame].parent);
        self.set(id, parent);
    }

    /// Maximum nesting depth of the frames.
    pub(super) fn depth(&self) -> usize {
        self.frames.values().map(|frame| frame.depth).max().unwrap_or(0)
    }

    /// Checks the uses of each `NextIteration`, and that all results are outside of loops.
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
                        "node '{}' (op {}) uses node '{}' (op {}), which only a Merge at the start of a while loop may \
                         use",
                        node.name, node.op, next.name, next.op
                    )));
                }
                if self.frame_of(input) != self.frame_of(id) {
                    return Err(Error::invalid(format!(
                        "node '{}' (op {}) is in {} but uses node '{}' (op {}) in {}: a Merge and its NextIteration must \
                         be in the same frame",
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
        match roots.results.iter().find(|output| self.frame_of(output.node).is_some()) {
            Some(output) => Err(Error::invalid(format!(
                "{} '{}:{}' is in {}, where it has a value in every iteration: use the output of an Exit instead",
                roots.name,
                graph.nodes[output.node].name,
                output.index,
                self.describe(output.node)
            ))),
            None => Ok(()),
        }
    }

    fn describe(&self, id: NodeId) -> String {
        match self.frame_of(id) {
            Some(frame) => format!("the while loop '{}'", self[frame].name),
            None => "no while loop".to_owned(),
        }
    }
}
