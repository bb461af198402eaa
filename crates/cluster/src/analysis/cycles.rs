//! A graph without cycles that keeps a topological order while edges are added and contracted: the algorithm of Pearce
//! and Kelly.

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
    /// Node of the graph in which cycles are looked for.
    Vertex,
    "v"
);

#[derive(Clone, Debug, Default)]
struct Links {
    inputs: OrderedSet,
    outputs: OrderedSet,
}

/// Along edges or against them.
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

    /// Whether a place is on this side of another.
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

/// What share of the nodes between two a search may find before it looks at all of them.
const DENSE: usize = 16;

/// Why an edge was not contracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another path leads from one to the other.
    Cycle,
    /// Too much was searched already to find out whether there is one.
    TooMuchWork,
}

/// Nodes and edges, and the nodes in an order in which each is behind its inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cycles {
    order: Order,
    links: IdVec<Vertex, Links>,
    /// Marks of the searches: the number of the search that saw the node last, along edges and against them.
    seen: [IdVec<Vertex, u32>; 2],
    search: u32,
    /// How many more steps searches may take.
    work_left: u64,
    /// Whether edges were added when no more steps were left, so that nodes may be out of order.
    is_stale: bool,
}

impl Cycles {
    /// Nodes without edges, in this order.
    pub(crate) fn new(nodes: usize, work: u64) -> Self {
        let mut cycles = Self { work_left: work, ..Self::default() };
        for _ in 0..nodes {
            cycles.add_node();
        }
        cycles
    }

    /// A new node, behind all others.
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

    /// Counts steps; whether more may be taken.
    pub(crate) fn work(&mut self, steps: u64) -> bool {
        self.work_left = self.work_left.saturating_sub(steps);
        self.work_left > 0
    }

    /// Ends the building of a graph: orders the nodes, if that took too many steps to do edge by edge, and allows so many steps
    /// from here on. `false` if there is a cycle.
    pub(crate) fn finish(&mut self, work: u64) -> bool {
        self.work_left = work;
        self.order_anew()
    }

    /// Adds an edge. `false`, and no edge, if it would close a cycle; with no steps left, that is not looked for.
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
        if self.moves_alone(from, to) {
            return true;
        }
        // Only nodes between the two can be out of order now.
        let ahead = self.reached(to, from, Side::Ahead);
        let found = ahead.and_then(|ahead| Some((self.reached(from, to, Side::Behind)?, ahead)));
        let Some((behind, ahead)) = found else {
            self.remove_edge(from, to);
            return false;
        };
        self.reorder(behind, ahead);
        true
    }

    /// Moves a node right before another that leads to all nodes between the two, if none of those leads to the node. A search
    /// would do the same, but look at all of them: thousands, for the constant of a chain that was made behind it. `false` if they
    /// are none such.
    fn moves_alone(&mut self, node: Vertex, first: Vertex) -> bool {
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

    /// What a search finds from `start` to one side without going past `bound`, in their order; `None` if it comes to that.
    fn reached(&mut self, start: Vertex, bound: Vertex, side: Side) -> Option<Vec<Vertex>> {
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
                return self.swept(start, bound, side);
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

    /// The same, by a look at all nodes between: where many of them are reached, that is less than a search and a sort.
    fn swept(&mut self, start: Vertex, bound: Vertex, side: Side) -> Option<Vec<Vertex>> {
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

    /// Gives the nodes behind an edge the first of all their places; each group is, and stays, in order.
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

    /// Puts nodes in order again if edges were added without: of those whose inputs are all there, the one that was first is next.
    /// `false` if there is a cycle.
    fn order_anew(&mut self) -> bool {
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

    /// Whether a path leads from one node to another. Searches from both ends, so that it costs what the smaller side
    /// does; `None` if that is more than may be spent.
    fn is_reachable(&mut self, from: Vertex, to: Vertex) -> Option<bool> {
        let (low, high) = (self.order.place(from), self.order.place(to));
        if low >= high {
            return Some(false);
        }
        self.search += 1;
        let mut fronts: [Vec<Vertex>; 2] = [vec![from], vec![to]];
        self.seen[0][from] = self.search;
        self.seen[1][to] = self.search;
        // Steps that each side has taken. The one goes on that has then taken fewer.
        let mut taken = [0u64; 2];
        loop {
            let (Some(&ahead), Some(&behind)) = (fronts[0].last(), fronts[1].last()) else {
                return Some(false);
            };
            // Looking at one node counts as a step even if it has no edges.
            let costs =
                [self.links[ahead].outputs.len() as u64 + 1, self.links[behind].inputs.len() as u64 + 1];
            let side = usize::from(taken[1] + costs[1] < taken[0] + costs[0]);
            let at = [ahead, behind][side];
            fronts[side].pop();
            let next = self.links[at].on([Side::Ahead, Side::Behind][side]);
            let steps = costs[side];
            taken[side] += steps;
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

    /// Makes the two ends of an edge one node, if that closes no cycle: the number of the node that stays, which is one of
    /// the two.
    pub(crate) fn contract_edge(&mut self, from: Vertex, to: Vertex) -> Result<Vertex, Refused> {
        if self.work_left == 0 {
            return Err(Refused::TooMuchWork);
        }
        self.remove_edge(from, to);
        let refused = match self.is_reachable(from, to) {
            Some(false) => None,
            Some(true) => Some(Refused::Cycle),
            None => Some(Refused::TooMuchWork),
        };
        if let Some(refused) = refused {
            self.insert_edge(from, to);
            return Err(refused);
        }
        let degree = |node: Vertex| self.links[node].inputs.len() + self.links[node].outputs.len();
        // The one with fewer edges goes.
        let (stays, goes) = if degree(to) > degree(from) { (to, from) } else { (from, to) };
        let links = std::mem::take(&mut self.links[goes]);
        for &next in links.outputs.members() {
            self.links[next].inputs.remove(goes);
            self.order.remove_input(next, goes);
        }
        for &next in links.inputs.members() {
            self.links[next].outputs.remove(goes);
        }
        self.order.remove(goes);
        for &next in links.outputs.members() {
            self.insert_edge(stays, next);
        }
        for &next in links.inputs.members() {
            self.insert_edge(next, stays);
        }
        self.order_anew();
        Ok(stays)
    }

    /// The nodes that are left, users before what they use.
    pub(crate) fn post_order(&self) -> Vec<Vertex> {
        self.order.nodes().rev().collect()
    }

    /// The nodes on a path between two nodes that is no edge between them; empty if there is none, or if it is not found soon.
    pub(crate) fn other_path(&self, from: Vertex, to: Vertex) -> Vec<Vertex> {
        let mut behind: HashMap<Vertex, Vertex> = HashMap::new();
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
                    while let Some(&node) = behind.get(&path[path.len() - 1]) {
                        path.push(node);
                    }
                    path.pop();
                    return path;
                }
                if next != from
                    && !behind.contains_key(&next)
                    && self.order.place(next) > self.order.place(from)
                {
                    behind.insert(next, at);
                    queue.push_back(next);
                }
            }
        }
        Vec::new()
    }
}

/// The most steps of a search whose result only somebody reads.
const MAX_PATH_STEPS: usize = 2000;
