//! The order of nodes, in blocks, so that moving one node past thousands costs a look at a few blocks.

use super::Links;

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

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
struct Block {
    nodes: Vec<u32>,
    /// The first block that has the nearest known input of one of its nodes; if that is known.
    lowest: Option<u32>,
}

/// Nodes in an order.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    blocks: Vec<Block>,
    /// By node; of one that was removed, nothing that means anything.
    places: Vec<Place>,
    /// For each node an input of it, the nearest one where somebody looked; or none.
    nearest: Vec<u32>,
    /// How many nodes there are.
    len: usize,
}

impl Order {
    /// Adds the next node, which is the last in the order.
    pub(super) fn push(&mut self) {
        let node = self.places.len() as u32;
        if self.blocks.last().is_none_or(|block| block.nodes.len() >= BLOCK) {
            self.blocks.push(Block::default());
        }
        let at = self.blocks.len() - 1;
        let block = &mut self.blocks[at];
        self.places.push(Place::new(at, block.nodes.len()));
        self.nearest.push(NONE);
        block.nodes.push(node);
        block.lowest = None;
        self.len += 1;
    }

    /// Where a node is; other nodes move when one does.
    pub(super) fn place(&self, node: usize) -> Place {
        self.places[node]
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.blocks.iter().flat_map(|block| block.nodes.iter().copied())
    }

    /// The part of each block from one node to another, both included.
    fn parts(&self, first: usize, last: usize) -> impl Iterator<Item = &[u32]> {
        let (from, to) = (self.places[first], self.places[last]);
        (from.block()..=to.block()).map(move |at| {
            let nodes = &self.blocks[at].nodes;
            let start = if at == from.block() { from.offset() } else { 0 };
            let end = if at == to.block() { to.offset() + 1 } else { nodes.len() };
            &nodes[start..end]
        })
    }

    /// How many nodes there are from one to another, both included.
    pub(super) fn distance(&self, first: usize, last: usize) -> usize {
        self.parts(first, last).map(<[u32]>::len).sum()
    }

    /// The nodes from one to another, both included.
    pub(super) fn span(&self, first: usize, last: usize) -> Vec<u32> {
        let mut found = Vec::with_capacity(self.distance(first, last));
        self.parts(first, last).for_each(|part| found.extend_from_slice(part));
        found
    }

    fn block_of(&mut self, node: u32) -> &mut Block {
        &mut self.blocks[self.places[node as usize].block()]
    }

    /// Says that a node has a new input, which is before it.
    pub(super) fn add_input(&mut self, node: usize, input: usize) {
        let nearest = self.nearest[node];
        if nearest == NONE || self.places[nearest as usize] < self.places[input] {
            self.nearest[node] = input as u32;
            self.block_of(node as u32).lowest = None;
        }
    }

    /// Says that a node has lost an input.
    pub(super) fn remove_input(&mut self, node: usize, input: usize) {
        if self.nearest[node] == input as u32 {
            self.nearest[node] = NONE;
            self.block_of(node as u32).lowest = None;
        }
    }

    /// Whether each node between two has an input that is not before the first one, so that this one leads to all of them. Counts
    /// its steps.
    pub(super) fn leads_to_all(
        &mut self,
        first: usize,
        last: usize,
        links: &[Links],
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
                let is_behind = |input: u32| input != NONE && self.places[input as usize] >= low;
                if is_behind(self.nearest[node as usize]) {
                    continue;
                }
                let inputs = links[node as usize].inputs.members().iter().copied();
                *steps += inputs.len() as u64;
                let nearest = inputs.max_by_key(|&input| self.places[input as usize]).unwrap_or(NONE);
                if !is_behind(nearest) {
                    return false;
                }
                self.nearest[node as usize] = nearest;
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
            let nearest = block.nodes.iter().map(|&node| self.nearest[node as usize]);
            let blocks =
                nearest.map(|input| self.places.get(input as usize).map_or(0, |place| place.block()));
            blocks.min().unwrap_or(at) as u32
        });
        self.blocks[at].lowest = Some(lowest);
        lowest as usize
    }

    /// Removes a node for good.
    pub(super) fn remove(&mut self, node: usize) {
        self.take(node);
        self.len -= 1;
        // Blocks that are empty would be looked at for ever.
        if self.blocks.len() > 4 * (self.len / BLOCK + 1) {
            self.spread();
        }
    }

    fn take(&mut self, node: usize) {
        let place = self.places[node];
        self.blocks[place.block()].nodes.remove(place.offset());
        self.renumber(place);
    }

    /// Tells the nodes of a block from a place on where they are.
    fn renumber(&mut self, place: Place) {
        for (offset, &node) in self.blocks[place.block()].nodes.iter().enumerate().skip(place.offset()) {
            self.places[node as usize] = Place::new(place.block(), offset);
        }
    }

    /// Moves a node right before another, which was before it. `outputs` are the nodes that it is an input of. The answer counts the
    /// steps.
    pub(super) fn move_before(&mut self, node: usize, other: usize, outputs: &[u32]) -> u64 {
        self.take(node);
        let place = self.places[other];
        let block = &mut self.blocks[place.block()];
        block.nodes.insert(place.offset(), node as u32);
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
        let nodes: Vec<u32> = self.nodes().collect();
        self.lay(&nodes);
    }

    /// Orders the nodes anew.
    pub(super) fn set(&mut self, nodes: &[u32]) {
        self.lay(nodes);
    }

    fn lay(&mut self, nodes: &[u32]) {
        self.blocks.clear();
        for (at, nodes) in nodes.chunks(BLOCK).enumerate() {
            for (offset, &node) in nodes.iter().enumerate() {
                self.places[node as usize] = Place::new(at, offset);
            }
            self.blocks.push(Block { nodes: nodes.to_vec(), lowest: None });
        }
    }

    /// Gives nodes, in the order of `nodes`, the places of `sorted`, which are the same nodes as they are ordered.
    pub(super) fn permute(&mut self, nodes: &[u32], sorted: &[u32]) {
        let places: Vec<Place> = sorted.iter().map(|&node| self.places[node as usize]).collect();
        for (&node, place) in nodes.iter().zip(places) {
            self.places[node as usize] = place;
            self.blocks[place.block()].nodes[place.offset()] = node;
        }
        self.blocks.iter_mut().for_each(|block| block.lowest = None);
    }

    /// Whether what is kept of each node agrees with the rest, and no block is said to have nearer inputs than it has.
    #[cfg(test)]
    pub(super) fn check(&self, links: &[Links]) {
        for (at, block) in self.blocks.iter().enumerate() {
            for (offset, &node) in block.nodes.iter().enumerate() {
                assert_eq!(self.places[node as usize], Place::new(at, offset));
                let inputs = links[node as usize].inputs.members();
                let nearest = self.nearest[node as usize];
                assert!(nearest == NONE || inputs.contains(&nearest), "{nearest} is no input of {node}");
                let inputs = inputs.iter().map(|&input| self.places[input as usize].block());
                assert!(block.lowest.unwrap_or(0) as usize <= inputs.max().unwrap_or(0), "{node}");
            }
        }
        assert_eq!(self.nodes().count(), self.len);
    }
}
