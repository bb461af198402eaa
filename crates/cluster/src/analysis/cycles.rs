//! An acyclic graph that maintains a topological order while edges are added and contracted, by the
//! algorithm of Pearce and Kelly.

mod order;
mod set;
#[cfg(test)]
mod tests;

use order::{Order, Place};
use set::OrderedSet;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use support::IdVec;

support::id_type!(
    /// Vertex of the graph for cycle detection.
    Vertex,
    "v"
);

#[derive(Clone, Debug, Default)]
struct Links {
    inputs: OrderedSet,
    outputs: OrderedSet,
}

/// Direction of a search: along edges or against them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ahead,
    Behind,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Ahead => Self::Behind,
            Self::Behind => Self::Ahead,
        }
    }

    /// True if a place is on this side of another.
    fn is_past(self, place: Place, other: Place) -> bool {
        match self {
            Self::Ahead => place > other,
            Self::Behind => place < other,
        }
    }
}

impl Links {
    fn on(&self, side: Side) -> &[Vertex] {
        match side {
            Side::Ahead => self.outputs.members(),
            Side::Behind => self.inputs.members(),
        }
    }
}

/// A search that has found more than 1/`DENSE` of the nodes in its range scans the whole range
/// instead.
const DENSE: usize = 16;

/// Reason why an edge was not contracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another path connects the two ends.
    Cycle,
    /// The search budget is exhausted, so the existence of another path is unknown.
    TooMuchWork,
}

/// A graph with its nodes in topological order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cycles {
    order: Order,
    links: IdVec<Vertex, Links>,
    /// Number of the last search that visited each node, along edges and against them.
    seen: [IdVec<Vertex, u32>; 2],
    search: u32,
    /// Number of remaining search steps.
    work_left: u64,
    /// True if edges were added after the budget was exhausted, so that nodes may be out of order.
    is_stale: bool,
}

impl Cycles {
    /// Creates a graph of nodes without edges, in this order.
    pub(crate) fn new(nodes: usize, work: u64) -> Self {
        let mut cycles = Self { work_left: work, ..Self::default() };
        for _ in 0..nodes {
            cycles.add_node();
        }
        cycles
    }

    /// Adds a node at the end of the order.
    pub(crate) fn add_node(&mut self) -> Vertex {
        self.order.push();
        for seen in &mut self.seen {
            seen.push(0);
        }
        self.links.push(Links::default())
    }

    pub(crate) fn successors(&self, node: Vertex) -> &[Vertex] {
        self.links[node].outputs.members()
    }

    pub(crate) fn predecessors(&self, node: Vertex) -> &[Vertex] {
        self.links[node].inputs.members()
    }

    /// Counts search steps. Returns true if the budget is not exhausted.
    pub(crate) fn work(&mut self, steps: u64) -> bool {
        self.work_left = self.work_left.saturating_sub(steps);
        self.work_left > 0
    }

    /// Finishes building a graph: orders the nodes if doing so edge by edge exceeded the budget,
    /// and sets the budget for further steps. Returns false if there is a cycle.
    pub(crate) fn finish(&mut self, work: u64) -> bool {
        self.work_left = work;
        self.restore_order()
    }

    /// Adds an edge and returns true, or returns false if the edge would close a cycle. With an
    /// exhausted budget, cycles are not detected here.
    pub(crate) fn insert_edge(&mut self, from: Vertex, to: Vertex) -> bool {
        if from == to {
            return false;
        }
        if !self.links[from].outputs.insert(to) {
            return true;
        }
        self.links[to].inputs.insert(from);
        if self.order.place(from) < self.order.place(to) {
            self.order.add_input(to, from);
            return true;
        }
        if self.work_left == 0 {
            self.is_stale = true;
            return true;
        }
        if self.move_alone(from, to) {
            return true;
        }
        // The search for out-of-order nodes can be limited to those between the two.
        let ahead = self.reach(to, from, Side::Ahead);
        let ranges = ahead.and_then(|ahead| Some((self.reach(from, to, Side::Behind)?, ahead)));
        let Some((behind, ahead)) = ranges else {
            self.remove_edge(from, to);
            return false;
        };
        self.reorder(behind, ahead);
        true
    }

    /// Moves `node` directly before `first` if `first` leads to all nodes between the two and none
    /// of these leads to `node`. A search would do the same, but visit all of these nodes, which
    /// can be thousands for the constant of a chain that was created after the chain. Returns false
    /// if the condition does not hold.
    fn move_alone(&mut self, node: Vertex, first: Vertex) -> bool {
        let Links { inputs, outputs } = &self.links[node];
        let (inputs, outputs) = (inputs.members(), outputs.members());
        let mut steps = inputs.len() as u64;
        let start = self.order.place(first);
        let is_free = inputs.iter().all(|&input| self.order.place(input) < start);
        let moves = is_free && self.order.leads_to_all(first, node, &self.links, &mut steps);
        if moves {
            steps += self.order.move_before(node, first, outputs);
            self.order.add_input(first, node);
        }
        self.work(steps);
        moves
    }

    fn remove_edge(&mut self, from: Vertex, to: Vertex) {
        self.links[from].outputs.remove(to);
        self.links[to].inputs.remove(from);
        self.order.remove_input(to, from);
    }

    /// The nodes that a search reaches from `start` on one side without passing `bound`, in
    /// topological order. `None` if it reaches `bound`.
    fn reach(&mut self, start: Vertex, bound: Vertex, side: Side) -> Option<Vec<Vertex>> {
        self.search += 1;
        let end = self.order.place(bound);
        let between = match side {
            Side::Ahead => self.order.distance(start, bound),
            Side::Behind => self.order.distance(bound, start),
        };
        let mut found = Vec::new();
        let mut stack = vec![start];
        let mut steps = 0;
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut self.seen[0][at], self.search) == self.search {
                continue;
            }
            found.push(at);
            let next = self.links[at].on(side);
            steps += 1 + next.len() as u64;
            if found.len() > between / DENSE {
                self.work(steps);
                return self.sweep(start, bound, side);
            }
            for &next in next {
                if next == bound {
                    self.work(steps);
                    return None;
                }
                let is_within = side.is_past(end, self.order.place(next));
                if is_within && self.seen[0][next] != self.search {
                    stack.push(next);
                }
            }
        }
        self.work(steps);
        found.sort_unstable_by_key(|&node| self.order.place(node));
        Some(found)
    }

    /// Like [`Self::reach`], but scans all nodes in the range. If many of them are reached, this is
    /// cheaper than a search and a sort.
    fn sweep(&mut self, start: Vertex, bound: Vertex, side: Side) -> Option<Vec<Vertex>> {
        self.search += 1;
        self.seen[0][start] = self.search;
        let mut between = match side {
            Side::Ahead => self.order.span(start, bound),
            Side::Behind => self.order.span(bound, start),
        };
        if side == Side::Behind {
            between.reverse();
        }
        let mut steps = 0;
        between.retain(|&at| {
            let before = self.links[at].on(side.other());
            steps += 1 + before.len() as u64;
            let is_reached = at == start || before.iter().any(|&before| self.seen[0][before] == self.search);
            if is_reached {
                self.seen[0][at] = self.search;
            }
            is_reached
        });
        self.work(steps);
        if between.last() == Some(&bound) {
            return None;
        }
        if side == Side::Behind {
            between.reverse();
        }
        Some(between)
    }

    /// Moves the nodes of the backward search before those of the forward search, within their
    /// combined places. Each group keeps its order.
    fn reorder(&mut self, mut behind: Vec<Vertex>, ahead: Vec<Vertex>) {
        let place = |node: Vertex| self.order.place(node);
        let mut sorted = Vec::with_capacity(behind.len() + ahead.len());
        let mut rest = &ahead[..];
        for &node in &behind {
            let (first, others) = rest.split_at(rest.partition_point(|&other| place(other) < place(node)));
            sorted.extend_from_slice(first);
            sorted.push(node);
            rest = others;
        }
        sorted.extend_from_slice(rest);
        behind.extend(ahead);
        self.order.permute(&behind, &sorted);
        self.work(sorted.len() as u64);
    }

    /// Restores the order after edges were added without it. Among the nodes whose inputs are all
    /// placed, the one that came first is next. Returns false if there is a cycle.
    fn restore_order(&mut self) -> bool {
        if !std::mem::take(&mut self.is_stale) {
            return true;
        }
        let old: Vec<Vertex> = self.order.nodes().collect();
        let mut waits: IdVec<Vertex, usize> = self.links.values().map(|links| links.inputs.len()).collect();
        let entry = |node: Vertex| Reverse((self.order.place(node), node));
        let mut ready: BinaryHeap<Reverse<(Place, Vertex)>> =
            old.iter().copied().filter(|&node| waits[node] == 0).map(entry).collect();
        let mut new = Vec::with_capacity(old.len());
        while let Some(Reverse((_, node))) = ready.pop() {
            new.push(node);
            for &next in self.links[node].outputs.members() {
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.push(entry(next));
                }
            }
        }
        let is_whole = new.len() == old.len();
        if is_whole {
            self.order.set(&new);
        }
        is_whole
    }

    /// True if a path leads from one node to another. Searches from both ends, so that the cost is
    /// that of the smaller side. `None` if it exceeds the budget.
    fn is_reachable(&mut self, from: Vertex, to: Vertex) -> Option<bool> {
        let (low, high) = (self.order.place(from), self.order.place(to));
        if low >= high {
            return Some(false);
        }
        self.search += 1;
        let mut fronts: [Vec<Vertex>; 2] = [vec![from], vec![to]];
        self.seen[0][from] = self.search;
        self.seen[1][to] = self.search;
        // Steps taken by each side. The side with fewer steps continues.
        let mut side_steps = [0u64; 2];
        loop {
            let (Some(&ahead), Some(&behind)) = (fronts[0].last(), fronts[1].last()) else {
                return Some(false);
            };
            // Visiting a node counts as a step even if it has no edges.
            let costs =
                [self.links[ahead].outputs.len() as u64 + 1, self.links[behind].inputs.len() as u64 + 1];
            let side = usize::from(side_steps[1] + costs[1] < side_steps[0] + costs[0]);
            let at = [ahead, behind][side];
            fronts[side].pop();
            let next = self.links[at].on([Side::Ahead, Side::Behind][side]);
            let steps = costs[side];
            side_steps[side] += steps;
            self.work_left = self.work_left.saturating_sub(steps);
            if self.work_left == 0 {
                return None;
            }
            for &node in next {
                let place = self.order.place(node);
                if self.seen[1 - side][node] == self.search {
                    return Some(true);
                }
                if low < place && place < high && self.seen[side][node] != self.search {
                    self.seen[side][node] = self.search;
                    fronts[side].push(node);
                }
            }
        }
    }

    /// Merges the two ends of an edge into one node unless that closes a cycle. Returns the
    /// remaining node, which is one of the two.
    pub(crate) fn contract_edge(&mut self, from: Vertex, to: Vertex) -> Result<Vertex, Refusal> {
        if self.work_left == 0 {
            return Err(Refusal::TooMuchWork);
        }
        self.remove_edge(from, to);
        let refusal = match self.is_reachable(from, to) {
            Some(false) => None,
            Some(true) => Some(Refusal::Cycle),
            None => Some(Refusal::TooMuchWork),
        };
        if let Some(refusal) = refusal {
            self.insert_edge(from, to);
            return Err(refusal);
        }
        let degree = |node: Vertex| self.links[node].inputs.len() + self.links[node].outputs.len();
        // The node with more edges survives.
        let (survivor, absorbed) = if degree(to) > degree(from) { (to, from) } else { (from, to) };
        let links = std::mem::take(&mut self.links[absorbed]);
        for &next in links.outputs.members() {
            self.links[next].inputs.remove(absorbed);
            self.order.remove_input(next, absorbed);
        }
        for &next in links.inputs.members() {
            self.links[next].outputs.remove(absorbed);
        }
        self.order.remove(absorbed);
        for &next in links.outputs.members() {
            self.insert_edge(survivor, next);
        }
        for &next in links.inputs.members() {
            self.insert_edge(next, survivor);
        }
        self.restore_order();
        Ok(survivor)
    }

    /// The remaining nodes, users before their inputs.
    pub(crate) fn post_order(&self) -> Vec<Vertex> {
        self.order.nodes().rev().collect()
    }

    /// Inner nodes of another path between two adjacent nodes. Empty if there is none, or if it is
    /// not found quickly.
    pub(crate) fn other_path(&self, from: Vertex, to: Vertex) -> Vec<Vertex> {
        let mut next_on_path: HashMap<Vertex, Vertex> = HashMap::new();
        let mut queue = VecDeque::from([to]);
        let mut steps = 0;
        while let Some(at) = queue.pop_front() {
            for &next in self.links[at].inputs.members() {
                steps += 1;
                if steps > MAX_PATH_STEPS {
                    return Vec::new();
                }
                if next == from && at != to {
                    let mut path = vec![at];
                    while let Some(&node) = next_on_path.get(&path[path.len() - 1]) {
                        path.push(node);
                    }
                    path.pop();
                    return path;
                }
                if next != from
                    && !next_on_path.contains_key(&next)
                    && self.order.place(next) > self.order.place(from)
                {
                    next_on_path.insert(next, at);
                    queue.push_back(next);
                }
            }
        }
        Vec::new()
    }
}

/// Maximum number of steps of a search that is only used for reports.
const MAX_PATH_STEPS: usize = 2000;
