//! A node order stored in blocks, so that moving a node past thousands of others visits only a few
//! blocks.

use super::{Links, Vertex};
use support::IdVec;

/// Initial number of nodes in a block. A block has at most twice as many.
const BLOCK: usize = 128;

/// Place of a node: its block and its offset in the block. Places compare by order.
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
    /// First block that contains a nearest known input of one of the nodes, if known.
    lowest: Option<u32>,
}

/// Nodes in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    blocks: Vec<Block>,
    /// Place of each node; meaningless for removed nodes.
    places: IdVec<Vertex, Place>,
    /// An input of each node, or `None`. It is the nearest input if it was computed by
    /// [`Self::leads_to_all`].
    nearest: IdVec<Vertex, Option<Vertex>>,
    /// Number of nodes.
    len: usize,
}

impl Order {
    /// Adds the next node at the end of the order.
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

    /// Place of a node. Moving any node can change it.
    pub(super) fn place(&self, node: Vertex) -> Place {
        self.places[node]
    }

    /// All nodes in order.
    pub(super) fn nodes(&self) -> impl DoubleEndedIterator<Item = Vertex> + '_ {
        self.blocks.iter().flat_map(|block| block.nodes.iter().copied())
    }

    /// The parts of blocks from one node to another, inclusive.
    fn parts(&self, first: Vertex, last: Vertex) -> impl Iterator<Item = &[Vertex]> {
        let (from, to) = (self.places[first], self.places[last]);
        (from.block()..=to.block()).map(move |at| {
            let nodes = &self.blocks[at].nodes;
            let start = if at == from.block() { from.offset() } else { 0 };
            let end = if at == to.block() { to.offset() + 1 } else { nodes.len() };
            &nodes[start..end]
        })
    }

    /// Number of nodes from one node to another, inclusive.
    pub(super) fn distance(&self, first: Vertex, last: Vertex) -> usize {
        self.parts(first, last).map(<[Vertex]>::len).sum()
    }

    /// The nodes from one node to another, inclusive.
    pub(super) fn span(&self, first: Vertex, last: Vertex) -> Vec<Vertex> {
        let mut nodes = Vec::with_capacity(self.distance(first, last));
        self.parts(first, last).for_each(|part| nodes.extend_from_slice(part));
        nodes
    }

    fn block_of(&mut self, node: Vertex) -> &mut Block {
        &mut self.blocks[self.places[node].block()]
    }

    /// Records a new input of a node, which comes before the node.
    pub(super) fn add_input(&mut self, node: Vertex, input: Vertex) {
        if self.nearest[node].is_none_or(|nearest| self.places[nearest] < self.places[input]) {
            self.nearest[node] = Some(input);
            self.block_of(node).lowest = None;
        }
    }

    /// Records that a node lost an input.
    pub(super) fn remove_input(&mut self, node: Vertex, input: Vertex) {
        if self.nearest[node] == Some(input) {
            self.nearest[node] = None;
            self.block_of(node).lowest = None;
        }
    }

    /// True if each node between the two has an input that is not before `first`, so that `first`
    /// leads to all of them. Counts its steps.
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
                let is_not_before =
                    |input: Option<Vertex>| input.is_some_and(|input| self.places[input] >= low);
                if is_not_before(self.nearest[node]) {
                    continue;
                }
                let inputs = links[node].inputs.members().iter().copied();
                *steps += inputs.len() as u64;
                let nearest = inputs.max_by_key(|&input| self.places[input]);
                if !is_not_before(nearest) {
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

    /// First block that contains a nearest known input of a node of this block.
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

    /// Removes a node permanently.
    pub(super) fn remove(&mut self, node: Vertex) {
        self.take(node);
        self.len -= 1;
        // Merge blocks before empty ones dominate the cost of scans.
        if self.blocks.len() > 4 * (self.len / BLOCK + 1) {
            self.spread();
        }
    }

    fn take(&mut self, node: Vertex) {
        let place = self.places[node];
        self.blocks[place.block()].nodes.remove(place.offset());
        self.renumber(place);
    }

    /// Updates the places of the nodes of a block from `place` on.
    fn renumber(&mut self, place: Place) {
        for (offset, &node) in self.blocks[place.block()].nodes.iter().enumerate().skip(place.offset()) {
            self.places[node] = Place::new(place.block(), offset);
        }
    }

    /// Moves a node directly before another that preceded it. `outputs` are the users of the node.
    /// Returns the number of steps.
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

    /// Redistributes the nodes to blocks of equal length.
    fn spread(&mut self) {
        let nodes: Vec<Vertex> = self.nodes().collect();
        self.lay(&nodes);
    }

    /// Sets a new order.
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

    /// Assigns to `nodes`, in this order, the places of `sorted`, which are the same nodes in the
    /// current order.
    pub(super) fn permute(&mut self, nodes: &[Vertex], sorted: &[Vertex]) {
        let places: Vec<Place> = sorted.iter().map(|&node| self.places[node]).collect();
        for (&node, place) in nodes.iter().zip(places) {
            self.places[node] = place;
            self.blocks[place.block()].nodes[place.offset()] = node;
        }
        self.blocks.iter_mut().for_each(|block| block.lowest = None);
    }

    /// Verifies that places and nearest inputs are consistent and that no block claims nearer
    /// inputs than it has.
    #[cfg(test)]
    pub(super) fn check(&self, links: &IdVec<Vertex, Links>) {
        for (at, block) in self.blocks.iter().enumerate() {
            for (offset, &node) in block.nodes.iter().enumerate() {
                assert_eq!(self.places[node], Place::new(at, offset));
                let inputs = links[node].inputs.members();
                let nearest = self.nearest[node];
                assert!(
                    nearest.is_none_or(|nearest| inputs.contains(&nearest)),
                    "{nearest:?} is not an input of {node}"
                );
                let inputs = inputs.iter().map(|&input| self.places[input].block());
                assert!(block.lowest.unwrap_or(0) as usize <= inputs.max().unwrap_or(0), "{node}");
            }
        }
        assert_eq!(self.nodes().count(), self.len);
    }
}
