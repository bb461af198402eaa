//! Assigns each node of a graph to a loop: the frames of TensorFlow 1.

use crate::op_kind::{is_enter, is_exit};
use std::collections::{BTreeMap, VecDeque};
use support::{Error, IdVec, Result};
use tf::{Graph, Node, NodeId};

support::id_type!(
    /// Frame of the graph: the graph itself, which is [`ROOT`], or a loop.
    FrameId,
    "f"
);

/// A loop, or the graph itself.
#[derive(Debug)]
pub(crate) struct StaticFrame {
    /// Frame name that the `Enter` nodes state.
    pub(crate) name: String,
    /// Enclosing frame. The graph itself is its own parent.
    pub(crate) parent: FrameId,
    /// Maximum number of concurrent iterations.
    pub(crate) parallel_iterations: u64,
    /// Number of `Enter` nodes with users.
    pub(crate) enters: usize,
}

/// The frames of a graph.
pub(super) struct Frames {
    pub(super) frames: IdVec<FrameId, StaticFrame>,
    /// Frame in which each node runs. An `Enter` runs in its outer frame, an `Exit` in its inner
    /// one.
    pub(super) of_node: IdVec<NodeId, FrameId>,
}

/// The graph itself.
pub(crate) const ROOT: FrameId = FrameId(0);

/// Follows all edges from the nodes without inputs. All edges must assign a node to the same frame.
pub(super) fn find(graph: &Graph) -> Result<Frames> {
    let count = graph.nodes.len();
    let mut users: IdVec<NodeId, Vec<NodeId>> = IdVec::filled(Vec::new(), count);
    let mut work: VecDeque<NodeId> = VecDeque::new();
    let mut of_node: IdVec<NodeId, Option<FrameId>> = IdVec::filled(None, count);
    let mut frames: IdVec<FrameId, StaticFrame> = IdVec::new();
    frames.push(StaticFrame { name: String::new(), parent: ROOT, parallel_iterations: 1, enters: 0 });
    let mut by_name: BTreeMap<(FrameId, String), FrameId> = BTreeMap::new();
    for (id, node) in graph.nodes.iter() {
        let inputs = node.inputs.iter().map(|input| input.node).chain(node.control_inputs.iter().copied());
        let mut has_inputs = false;
        for input in inputs {
            users[input].push(id);
            has_inputs = true;
        }
        if !has_inputs {
            of_node[id] = Some(ROOT);
            work.push_back(id);
        }
    }
    while let Some(id) = work.pop_front() {
        let node = &graph.nodes[id];
        let frame = of_node[id].expect("a queued node has no frame");
        let output_frame = if is_enter(node) {
            enter(&mut frames, &mut by_name, frame, node, !users[id].is_empty())?
        } else if is_exit(node) {
            if frame == ROOT {
                return Err(Error::invalid(format!(
                    "node '{}' (op {}) leaves a loop, but is outside of any loop: its inputs come from no Enter",
                    node.name, node.op
                )));
            }
            frames[frame].parent
        } else {
            frame
        };
        for &user in &users[id] {
            match of_node[user] {
                None => {
                    of_node[user] = Some(output_frame);
                    work.push_back(user);
                }
                Some(known) if known == output_frame => {}
                Some(known) => {
                    let user = &graph.nodes[user];
                    return Err(Error::invalid(format!(
                        "The node '{}' (op {}) has inputs from different frames: node '{}' is in frame '{}', another \
                         input in frame '{}'. A value needs an Enter to enter a loop and an Exit to leave it; values \
                         inside a loop can be neither fed nor fetched",
                        user.name, user.op, node.name, frames[output_frame].name, frames[known].name
                    )));
                }
            }
        }
    }
    let of_node = graph.nodes.iter().map(|(id, node)| {
        of_node[id].ok_or_else(|| {
            Error::invalid(format!(
                "node '{}' (op {}) can never run: it is on a cycle that no input enters",
                node.name, node.op
            ))
        })
    });
    let of_node = of_node.collect::<Result<_>>()?;
    Ok(Frames { frames, of_node })
}

/// The frame that a node enters.
fn enter(
    frames: &mut IdVec<FrameId, StaticFrame>,
    by_name: &mut BTreeMap<(FrameId, String), FrameId>,
    parent: FrameId,
    node: &Node,
    is_read: bool,
) -> Result<FrameId> {
    let name = node.attributes.text("frame_name")?.to_owned();
    if name.is_empty() {
        return Err(Error::invalid(format!("node '{}' (op {}) has an empty frame name", node.name, node.op)));
    }
    let parallel = node.attributes.int_or("parallel_iterations", 10)?.max(1).unsigned_abs();
    let id = match by_name.get(&(parent, name.clone())) {
        Some(&id) => id,
        None => {
            let frame = StaticFrame { name: name.clone(), parent, parallel_iterations: parallel, enters: 0 };
            let id = frames.push(frame);
            by_name.insert((parent, name), id);
            id
        }
    };
    frames[id].enters += usize::from(is_read);
    Ok(id)
}
