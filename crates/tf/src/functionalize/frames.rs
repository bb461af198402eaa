//! Converts frames to `While` nodes, innermost first.
//!
//! The loop variables of a frame are the `Merge` nodes with an `Enter` and a `NextIteration` as
//! inputs. `LoopCond` decides whether there is another iteration, and a `Switch` on it sends data
//! into the body or out of the loop. Each node of a frame is therefore on one [side](sides): it
//! runs always, if the loop continues, or when the loop ends. The first two sides become the
//! functions `cond` and `body`. Nodes that run when the loop ends are placed after the `While`.

mod parts;
mod sides;
mod tree;
mod while_node;

use super::MAX_VISITS;
use super::nodes::{become_identity, is_enter, is_exit, is_loop};
use super::roots::{Redirects, Roots, reachable};
use crate::{FunctionLibrary, Graph, NodeId};
use sides::Loop;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tree::{FrameId, Frames};
use while_node::{Plan, Target};

/// Replaces every loop.
pub(super) fn replace(graph: &mut Graph, library: &mut FunctionLibrary, roots: &mut Roots) -> Result<()> {
    let order = reachable(graph, roots)?;
    if !order.iter().any(|&id| is_loop(&graph.nodes[id].op)) {
        return Ok(());
    }
    let mut frames = Frames::new(graph, &order)?;
    frames.check(graph, &order, roots)?;
    let mut names: BTreeSet<String> = graph.nodes.values().map(|node| node.name.clone()).collect();
    let mut visits = 0usize;
    for depth in (1..=frames.depth()).rev() {
        let order = reachable(graph, roots)?;
        visits = visits.saturating_add(order.len());
        if visits > MAX_VISITS {
            return Err(Error::unsupported("the graph has too many nested loops"));
        }
        let mut inside: BTreeMap<FrameId, Vec<NodeId>> = BTreeMap::new();
        let mut exits: BTreeMap<FrameId, Vec<NodeId>> = BTreeMap::new();
        for &id in &order {
            if let Some(frame) = frames.frame_of(id).filter(|&frame| frames[frame].depth == depth) {
                inside.entry(frame).or_default().push(id);
            }
            if is_exit(&graph.nodes[id].op)
                && let Some(frame) = frames.frame_of(graph.nodes[id].inputs[0].node)
            {
                exits.entry(frame).or_default().push(id);
            }
        }
        let mut moved = Redirects::default();
        for (&frame, nodes) in &inside {
            let exits = exits.get(&frame).map_or(&[][..], Vec::as_slice);
            let at_frame = |e: Error| e.context(format!("while loop '{}'", frames[frame].name));
            let while_loop = Loop::new(graph, &frames, frame, nodes, exits).map_err(at_frame)?;
            let Some(while_loop) = while_loop else {
                enter_parent(graph, &mut frames, nodes, exits);
                continue;
            };
            let plan = Plan::new(&while_loop).map_err(at_frame)?;
            let name = frames[frame].name.clone();
            let at_frame = |e: Error| e.context(format!("while loop '{name}'"));
            let mut target = Target { graph, library, frames: &mut frames, names: &mut names };
            moved.nodes.extend(plan.build(&mut target).map_err(at_frame)?);
        }
        for id in graph.nodes.ids() {
            let is_inside = frames.frame_of(id).is_some_and(|frame| inside.contains_key(&frame));
            if !is_inside {
                moved.apply_controls(&mut graph.nodes[id].control_inputs);
            }
        }
        moved.apply_controls(&mut roots.effects);
    }
    Ok(())
}

/// Moves the nodes of a frame without a loop into its parent, where they run once.
fn enter_parent(graph: &mut Graph, frames: &mut Frames, nodes: &[NodeId], exits: &[NodeId]) {
    for &id in nodes {
        frames.move_to_parent(id);
    }
    for &id in nodes.iter().chain(exits) {
        let node = &graph.nodes[id];
        if is_enter(&node.op) || is_exit(&node.op) {
            let input = node.inputs[0];
            become_identity(graph, id, input);
        }
    }
}
