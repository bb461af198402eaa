//! The order of nodes, in blocks, so that moving one node past thousands costs a look at a few blocks.

use super::{Links, Vertex};
use support::IdVec;

/// Blocks have so many nodes when they are made, and at most twice as many.
const BLOCK: usize = 128;

/// Where a node is: its block, and behind that its offset there. Places compare as the order has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u64);

impl Place {
    fn new(block: usize, offset: usize) -> Self {
        Self((block as u64) << 32 | offset as u64)
    }

    fn block(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn offset(self) -> usize {
        self.0 as u32 as usize
    }
}

#[derive(Clone, Debug, Default)]
struct Block {
    nodes: Vec<Vertex>,
    /// The first block that has the nearest known input of one of its nodes; if that is known.
    lowest: Option<u32>,
}

/// Nodes in an order.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    blocks: Vec<Block>,
    /// By node; of one that was removed, nothing that means anything.
    places: IdVec<Vertex, Place>,
    /// For each node an input of it, the nearest one where somebody looked; or none.
    nearest: IdVec<Vertex, Option<Vertex>>,
    /// How many nodes there are.
    len: usize,
}

impl Order {
    /// Adds the next node, which is the last in the order.
    pub(super) fn push(&mut self) {
        if self.blocks.last().is_none_or(|block| block.nodes.len() >= BLOCK) {
            self.blocks.push(Block::default());
        }
        let at = self.blocks.len() - 1;
        let block = &mut self.blocks[at];
        let node = self.places.push(Place::new(at, block.nodes.len()));
        self.nearest.push(None);
        block.nodes.push(node);
        block.lowest = None;
        self.len += 1;
    }

    /// Where a node is; other nodes move when one does.
    pub(super) fn place(&self, node: Vertex) -> Place {
        self.places[node]
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> impl DoubleEndedIterator<Item = Vertex> + '_ {
        self.blocks.iter().flat_map(|block| block.nodes.iter().copied())
    }

    /// The part of each block from one node to another, both included.
    fn parts(&self, first: Vertex, last: Vertex) -> impl Iterator<Item = &[Vertex]> {
        let (from, to) = (self.places[first], self.places[last]);
        (from.block()..=to.block()).map(move |at| {
            let nodes = &self.blocks[at].nodes;
            let start = if at == from.block() { from.offset() } else { 0 };
            let end = if at == to.block() { to.offset() + 1 } else { nodes.len() };
            &nodes[start..end]
        })
    }

    /// How many nodes there are from one to another, both included.
    pub(super) fn distance(&self, first: Vertex, last: Vertex) -> usize {
        self.parts(first, last).map(<[Vertex]>::len).sum()
    }

    /// The nodes from one to another, both included.
    pub(super) fn span(&self, first: Vertex, last: Vertex) -> Vec<Vertex> {
        let mut found = Vec::with_capacity(self.distance(first, last));
        self.parts(first, last).for_each(|part| found.extend_from_slice(part));
        found
    }

    fn block_of(&mut self, node: Vertex) -> &mut Block {
        &mut self.blocks[self.places[node].block()]
    }

    /// Says that a node has a new input, which is before it.
    pub(super) fn add_input(&mut self, node: Vertex, input: Vertex) {
        if self.nearest[node].is_none_or(|nearest| self.places[nearest] < self.places[input]) {
            self.nearest[node] = Some(input);
            self.block_of(node).lowest = None;
        }
    }

    /// Says that a node has lost an input.
    pub(super) fn remove_input(&mut self, node: Vertex, input: Vertex) {
        if self.nearest[node] == Some(input) {
            self.nearest[node] = None;
            self.block_of(node).lowest = None;
        }
    }

    /// Whether each node between two has an input that is not before the first one, so that this one leads to all of them. Counts
    /// its steps.
    pub(super) fn leads_to_all(
        &mut self,
        first: Vertex,
        last: Vertex,
        links: &IdVec<Vertex, Links>,
        steps: &mut u64,
    ) -> bool {
        let (low, high) = (self.places[first], self.places[last]);
        for at in low.block()..=high.block() {
            *steps += 1;
            if at > low.block() && self.lowest(at, steps) > low.block() {
                continue;
            }
            let start = if at == low.block() { low.offset() + 1 } else { 0 };
            let end = if at == high.block() { high.offset() } else { self.blocks[at].nodes.len() };
            *steps += (end - start) as u64;
            for &node in &self.blocks[at].nodes[start..end] {
                let is_behind = |input: Option<Vertex>| input.is_some_and(|input| self.places[input] >= low);
                if is_behind(self.nearest[node]) {
                    continue;
                }
                let inputs = links[node].inputs.members().iter().copied();
                *steps += inputs.len() as u64;
                let nearest = inputs.max_by_key(|&input| self.places[input]);
                if !is_behind(nearest) {
                    return false;
                }
                self.nearest[node] = nearest;
            }
            if end - start == self.blocks[at].nodes.len() {
                // Nearer inputs may have been found.
                self.blocks[at].lowest = None;
            }
        }
        true
    }

    /// The first block that has the nearest known input of a node of this block.
    fn lowest(&mut self, at: usize, steps: &mut u64) -> usize {
        let block = &self.blocks[at];
        let lowest = block.lowest.unwrap_or_else(|| {
            *steps += block.nodes.len() as u64;
            let nearest = block.nodes.iter().map(|&node| self.nearest[node]);
            let blocks = nearest.map(|input| input.map_or(0, |input| self.places[input].block()));
            blocks.min().unwrap_or(at) as u32
        });
        self.blocks[at].lowest = Some(lowest);
        lowest as usize
    }

    /// Removes a node for good.
    pub(super) fn remove(&mut self, node: Vertex) {
        self.take(node);
        self.len -= 1;
        // Blocks that are empty would be looked at for ever.
        if self.blocks.len() > 4 * (self.len / BLOCK + 1) {
            self.spread();
        }
    }

    fn take(&mut self, node: Vertex) {
        let place = self.places[node];
        self.blocks[place.block()].nodes.remove(place.offset());
        self.renumber(place);
    }

    /// Tells the nodes of a block from a place on where they are.
    fn renumber(&mut self, place: Place) {
        for (offset, &node) in self.blocks[place.block()].nodes.iter().enumerate().skip(place.offset()) {
            self.places[node] = Place::new(place.block(), offset);
        }
    }

    /// Moves a node right before another, which was before it. `outputs` are the nodes that it is an input of. The answer counts the
    /// steps.
    pub(super) fn move_before(&mut self, node: Vertex, other: Vertex, outputs: &[Vertex]) -> u64 {
        self.take(node);
        let place = self.places[other];
        let block = &mut self.blocks[place.block()];
        block.nodes.insert(place.offset(), node);
        block.lowest = None;
        let is_full = block.nodes.len() >= 2 * BLOCK;
        self.renumber(place);
        for &output in outputs {
            self.block_of(output).lowest = None;
        }
        let steps = (2 * BLOCK + outputs.len()) as u64;
        if is_full {
            self.spread();
            return steps + self.len as u64;
        }
        steps
    }

    /// Makes all blocks equally long.
    fn spread(&mut self) {
        let nodes: Vec<Vertex> = self.nodes().collect();
        self.lay(&nodes);
    }

    /// Orders the nodes anew.
    pub(super) fn set(&mut self, nodes: &[Vertex]) {
        self.lay(nodes);
    }

    fn lay(&mut self, nodes: &[Vertex]) {
        self.blocks.clear();
        for (at, nodes) in nodes.chunks(BLOCK).enumerate() {
            for (offset, &node) in nodes.iter().enumerate() {
                self.places[node] = Place::new(at, offset);
            }
            self.blocks.push(Block { nodes: nodes.to_vec(), lowest: None });
        }
    }

    /// Gives nodes, in the order of `nodes`, the places of `sorted`, which are the same nodes as they are ordered.
    pub(super) fn permute(&mut self, nodes: &[Vertex], sorted: &[Vertex]) {
        let places: Vec<Place> = sorted.iter().map(|&node| self.places[node]).collect();
        for (&node, place) in nodes.iter().zip(places) {
            self.places[node] = place;
            self.blocks[place.block()].nodes[place.offset()] = node;
        }
        self.blocks.iter_mut().for_each(|block| block.lowest = None);
    }

    /// Whether what is kept of each node agrees with the rest, and no block is said to have nearer inputs than it has.
    #[cfg(test)]
    pub(super) fn check(&self, links: &IdVec<Vertex, Links>) {
        for (at, block) in self.blocks.iter().enumerate() {
            for (offset, &node) in block.nodes.iter().enumerate() {
                assert_eq!(self.places[node], Place::new(at, offset));
                let inputs = links[node].inputs.members();
                let nearest = self.nearest[node];
                assert!(
                    nearest.is_none_or(|nearest| inputs.contains(&nearest)),
                    "{nearest:?} is no input of {node}"
                );
                let inputs = inputs.iter().map(|&input| self.places[input].block());
                assert!(block.lowest.unwrap_or(0) as usize <= inputs.max().unwrap_or(0), "{node}");
            }
        }
        assert_eq!(self.nodes().count(), self.len);
    }
}
