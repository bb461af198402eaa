//! A graph without cycles that keeps a topological order while edges are added and contracted: the algorithm of Pearce
//! and Kelly.

use std::collections::HashMap;

/// A set of nodes in an order that depends only on what was done to it.
#[derive(Clone, Debug, Default)]
struct OrderedSet {
    members: Vec<u32>,
    /// Where members are; only for sets that are not small.
    places: Option<HashMap<u32, u32>>,
}

/// The most members that are searched one by one.
const SMALL: usize = 16;

impl OrderedSet {
    fn len(&self) -> usize {
        self.members.len()
    }

    fn place(&self, member: u32) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&member).map(|&place| place as usize),
            None => self.members.iter().position(|&m| m == member),
        }
    }

    fn contains(&self, member: u32) -> bool {
        self.place(member).is_some()
    }

    /// Whether the member is new.
    fn insert(&mut self, member: u32) -> bool {
        if self.contains(member) {
            return false;
        }
        if let Some(places) = &mut self.places {
            places.insert(member, self.members.len() as u32);
        } else if self.members.len() >= SMALL {
            let all = self.members.iter().chain([&member]).enumerate();
            self.places = Some(all.map(|(place, &m)| (m, place as u32)).collect());
        }
        self.members.push(member);
        true
    }

    /// The last member takes the place of the one that goes.
    fn remove(&mut self, member: u32) {
        let Some(place) = self.place(member) else { return };
        self.members.swap_remove(place);
        if let Some(places) = &mut self.places {
            places.remove(&member);
            if let Some(&moved) = self.members.get(place) {
                places.insert(moved, place as u32);
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Links {
    inputs: OrderedSet,
    outputs: OrderedSet,
}

/// What share of the nodes between two ranks a search may find before it looks at all of them.
const DENSE: usize = 16;

/// How many nodes may be moved along for a step of a search.
const CHEAP: u64 = 16;

/// Why an edge was not contracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another path leads from one to the other.
    Cycle,
    /// Too much was searched already to find out whether there is one.
    TooMuchWork,
}

/// Nodes, edges, and for each node a rank that is larger than those of its inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cycles {
    ranks: Vec<u32>,
    /// The node of each rank.
    order: Vec<u32>,
    /// For each rank, whether an edge leads to its node from that of the rank below. May miss some.
    is_linked: Vec<bool>,
    links: Vec<Links>,
    is_gone: Vec<bool>,
    /// Marks of the searches: the number of the search that saw the node last, from the front and from the back.
    seen: [Vec<u32>; 2],
    search: u32,
    /// How many more steps searches may take.
    work_left: u64,
}

impl Cycles {
    /// Nodes without edges, ranked in this order.
    pub(crate) fn new(nodes: usize, work: u64) -> Self {
        let mut cycles = Self { work_left: work, ..Self::default() };
        for _ in 0..nodes {
            cycles.add_node();
        }
        cycles
    }

    /// A new node; its rank is above all others.
    pub(crate) fn add_node(&mut self) -> usize {
        let id = self.ranks.len();
        self.ranks.push(id as u32);
        self.order.push(id as u32);
        self.is_linked.push(false);
        self.links.push(Links::default());
        self.is_gone.push(false);
        self.seen.iter_mut().for_each(|seen| seen.push(0));
        id
    }

    #[cfg(test)]
    fn has_edge(&self, from: usize, to: usize) -> bool {
        self.links[from].outputs.contains(to as u32)
    }

    pub(crate) fn successors(&self, node: usize) -> &[u32] {
        &self.links[node].outputs.members
    }

    pub(crate) fn predecessors(&self, node: usize) -> &[u32] {
        &self.links[node].inputs.members
    }

    /// Counts steps that were taken outside; whether more may be taken.
    pub(crate) fn work(&mut self, steps: u64) -> bool {
        self.work_left = self.work_left.saturating_sub(steps);
        self.work_left > 0
    }

    /// Adds an edge. `false`, and no edge, if it would close a cycle.
    pub(crate) fn insert_edge(&mut self, from: usize, to: usize) -> bool {
        if from == to {
            return false;
        }
        if !self.links[from].outputs.insert(to as u32) {
            return true;
        }
        self.links[to].inputs.insert(from as u32);
        if self.ranks[from] < self.ranks[to] {
            if self.ranks[from] + 1 == self.ranks[to] {
                self.is_linked[self.ranks[to] as usize] = true;
            }
            return true;
        }
        if self.moved_in_front(from, to) {
            return true;
        }
        // Only nodes between the two ranks can be out of order now.
        let Some(ahead) = self.reached_below(to, self.ranks[from]) else {
            self.remove_edge(from, to);
            return false;
        };
        let behind = self.reaching_above(from, self.ranks[to]);
        self.reorder(behind, ahead);
        true
    }

    /// Ranks a node right below one that reaches all nodes between them, none of which reaches the first, as the general way
    /// does, which would look at each: a constant of a chain that was made behind it. `false` if they are none such.
    fn moved_in_front(&mut self, from: usize, to: usize) -> bool {
        let (low, high) = (self.ranks[to] as usize, self.ranks[from] as usize);
        let inputs = &self.links[from].inputs.members;
        if inputs.len() > SMALL
            || inputs.iter().any(|&input| self.ranks[input as usize] >= low as u32)
            || !self.is_linked[low + 1..high].iter().all(|&is_linked| is_linked)
        {
            return false;
        }
        self.work_left = self.work_left.saturating_sub((high - low) as u64 / CHEAP);
        self.order[low..=high].rotate_right(1);
        for (rank, &node) in (low as u32..).zip(&self.order[low..=high]) {
            self.ranks[node as usize] = rank;
        }
        self.is_linked[low + 1..=high].fill(true);
        self.link(low as u32);
        self.link(high as u32 + 1);
        true
    }

    /// Finds out anew whether an edge leads to a rank's node from that of the rank below.
    fn link(&mut self, rank: u32) {
        let rank = rank as usize;
        if let (Some(below), Some(&node)) = (rank.checked_sub(1), self.order.get(rank)) {
            self.is_linked[rank] = self.links[node as usize].inputs.contains(self.order[below]);
        }
    }

    fn remove_edge(&mut self, from: usize, to: usize) {
        self.links[from].outputs.remove(to as u32);
        self.links[to].inputs.remove(from as u32);
        self.unlink(to);
    }

    /// Takes a node for one without an edge from the rank below.
    fn unlink(&mut self, node: usize) {
        self.is_linked[self.ranks[node] as usize] = false;
    }

    /// What `start` reaches through ranks below a bound, in the order of ranks; `None` if it reaches the node of that rank.
    fn reached_below(&mut self, start: usize, bound: u32) -> Option<Vec<u32>> {
        self.search += 1;
        let between = (bound - self.ranks[start]) as usize;
        let mut found = Vec::new();
        let mut stack = vec![start as u32];
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut self.seen[0][at as usize], self.search) == self.search {
                continue;
            }
            found.push(at);
            if found.len() > between / DENSE {
                return self.swept_below(start, bound);
            }
            let outputs = &self.links[at as usize].outputs.members;
            self.work_left = self.work_left.saturating_sub(outputs.len() as u64);
            for &next in outputs {
                let rank = self.ranks[next as usize];
                if rank == bound {
                    return None;
                }
                if rank < bound && self.seen[0][next as usize] != self.search {
                    stack.push(next);
                }
            }
        }
        found.sort_unstable_by_key(|&node| self.ranks[node as usize]);
        Some(found)
    }

    /// The same, by a look at all nodes between: where many of them are reached, that is less than a search and a sort.
    fn swept_below(&mut self, start: usize, bound: u32) -> Option<Vec<u32>> {
        self.search += 1;
        self.seen[0][start] = self.search;
        let first = self.ranks[start];
        let mut found = vec![start as u32];
        for &at in &self.order[first as usize + 1..=bound as usize] {
            let inputs = &self.links[at as usize].inputs.members;
            self.work_left = self.work_left.saturating_sub(inputs.len() as u64);
            if inputs.iter().any(|&input| self.seen[0][input as usize] == self.search) {
                self.seen[0][at as usize] = self.search;
                found.push(at);
            }
        }
        let ends_there = found.last().is_some_and(|&last| self.ranks[last as usize] == bound);
        (!ends_there).then_some(found)
    }

    /// What reaches `start` through ranks above a bound, in the order of ranks.
    fn reaching_above(&mut self, start: usize, bound: u32) -> Vec<u32> {
        self.search += 1;
        let between = (self.ranks[start] - bound) as usize;
        let mut found = Vec::new();
        let mut stack = vec![start as u32];
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut self.seen[0][at as usize], self.search) == self.search {
                continue;
            }
            found.push(at);
            if found.len() > between / DENSE {
                return self.swept_above(start, bound);
            }
            let inputs = &self.links[at as usize].inputs.members;
            self.work_left = self.work_left.saturating_sub(inputs.len() as u64);
            for &next in inputs {
                if self.ranks[next as usize] > bound && self.seen[0][next as usize] != self.search {
                    stack.push(next);
                }
            }
        }
        found.sort_unstable_by_key(|&node| self.ranks[node as usize]);
        found
    }

    /// The same, by a look at all nodes between.
    fn swept_above(&mut self, start: usize, bound: u32) -> Vec<u32> {
        self.search += 1;
        self.seen[0][start] = self.search;
        let mut found = vec![start as u32];
        for &at in self.order[bound as usize + 1..self.ranks[start] as usize].iter().rev() {
            let outputs = &self.links[at as usize].outputs.members;
            self.work_left = self.work_left.saturating_sub(outputs.len() as u64);
            if outputs.iter().any(|&output| self.seen[0][output as usize] == self.search) {
                self.seen[0][at as usize] = self.search;
                found.push(at);
            }
        }
        found.reverse();
        found
    }

    /// Gives the nodes behind an edge the lower of all their ranks; each group is, and stays, in the order of its ranks.
    fn reorder(&mut self, behind: Vec<u32>, ahead: Vec<u32>) {
        let rank = |node: &u32| self.ranks[*node as usize];
        let mut ranks: Vec<u32> = Vec::with_capacity(behind.len() + ahead.len());
        let mut higher = behind.iter().map(rank).peekable();
        for lower in ahead.iter().map(rank) {
            ranks.extend(std::iter::from_fn(|| higher.next_if(|&rank| rank < lower)));
            ranks.push(lower);
        }
        ranks.extend(higher);
        for (node, &rank) in behind.into_iter().chain(ahead).zip(&ranks) {
            self.ranks[node as usize] = rank;
            self.order[rank as usize] = node;
        }
        // Some are linked still, but to find that out takes longer than it saves.
        for rank in ranks {
            self.is_linked[rank as usize] = false;
            if let Some(above) = self.is_linked.get_mut(rank as usize + 1) {
                *above = false;
            }
        }
    }

    /// Whether a path leads from one node to another. Searches from both ends, so that it costs what the smaller side
    /// does; `None` if that is more than may be spent.
    fn is_reachable(&mut self, from: usize, to: usize) -> Option<bool> {
        let (low, high) = (self.ranks[from], self.ranks[to]);
        if low >= high {
            return Some(false);
        }
        self.search += 1;
        let mut fronts: [Vec<u32>; 2] = [vec![from as u32], vec![to as u32]];
        self.seen[0][from] = self.search;
        self.seen[1][to] = self.search;
        // Steps that each side has taken. The one goes on that has then taken fewer.
        let mut taken = [0u64; 2];
        loop {
            let (Some(&ahead), Some(&behind)) = (fronts[0].last(), fronts[1].last()) else {
                return Some(false);
            };
            // Looking at one node counts as a step even if it has no edges.
            let costs = [
                self.links[ahead as usize].outputs.len() as u64 + 1,
                self.links[behind as usize].inputs.len() as u64 + 1,
            ];
            let side = usize::from(taken[1] + costs[1] < taken[0] + costs[0]);
            let at = [ahead, behind][side];
            fronts[side].pop();
            let links = &self.links[at as usize];
            let next = if side == 0 { &links.outputs.members } else { &links.inputs.members };
            let steps = costs[side];
            taken[side] += steps;
            self.work_left = self.work_left.saturating_sub(steps);
            if self.work_left == 0 {
                return None;
            }
            for &node in next {
                let rank = self.ranks[node as usize];
                if self.seen[1 - side][node as usize] == self.search {
                    return Some(true);
                }
                if low < rank && rank < high && self.seen[side][node as usize] != self.search {
                    self.seen[side][node as usize] = self.search;
                    fronts[side].push(node);
                }
            }
        }
    }

    /// Makes the two ends of an edge one node, if that closes no cycle: the number of the node that stays, which is one of
    /// the two.
    pub(crate) fn contract_edge(&mut self, from: usize, to: usize) -> Result<usize, Refused> {
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
        let degree = |node: usize| self.links[node].inputs.len() + self.links[node].outputs.len();
        // The one with fewer edges goes.
        let (stays, goes) = if degree(to) > degree(from) { (to, from) } else { (from, to) };
        let links = std::mem::take(&mut self.links[goes]);
        self.unlink(goes);
        for &next in &links.outputs.members {
            self.links[next as usize].inputs.remove(goes as u32);
            self.unlink(next as usize);
        }
        for &next in &links.inputs.members {
            self.links[next as usize].outputs.remove(goes as u32);
        }
        self.is_gone[goes] = true;
        for &next in &links.outputs.members {
            self.insert_edge(stays, next as usize);
        }
        for &next in &links.inputs.members {
            self.insert_edge(next as usize, stays);
        }
        Ok(stays)
    }

    /// The nodes that are left, users before what they use.
    pub(crate) fn post_order(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = (0..self.ranks.len()).filter(|&node| !self.is_gone[node]).collect();
        nodes.sort_unstable_by_key(|&node| std::cmp::Reverse(self.ranks[node]));
        nodes
    }

    /// The nodes on a path between two nodes that is no edge between them; empty if there is none, or if it is not found soon.
    pub(crate) fn other_path(&self, from: usize, to: usize) -> Vec<usize> {
        let mut behind: HashMap<u32, u32> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([to as u32]);
        let mut steps = 0;
        while let Some(at) = queue.pop_front() {
            for &next in &self.links[at as usize].inputs.members {
                steps += 1;
                if steps > MAX_PATH_STEPS {
                    return Vec::new();
                }
                if next as usize == from && at as usize != to {
                    let mut path = vec![at as usize];
                    while let Some(&node) = behind.get(&(path[path.len() - 1] as u32)) {
                        path.push(node as usize);
                    }
                    path.pop();
                    return path;
                }
                if next as usize != from
                    && !behind.contains_key(&next)
                    && self.ranks[next as usize] > self.ranks[from]
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

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: u64 = u64::MAX;

    /// Ranks grow along every edge, and the two lists of an edge agree.
    fn check(cycles: &Cycles) {
        for (node, links) in cycles.links.iter().enumerate() {
            for &next in &links.outputs.members {
                assert!(cycles.ranks[node] < cycles.ranks[next as usize], "{node} -> {next}");
                assert!(cycles.links[next as usize].inputs.contains(node as u32));
            }
            let rank = cycles.ranks[node];
            assert_eq!(cycles.order[rank as usize], node as u32);
            if cycles.is_linked[rank as usize] {
                assert!(links.inputs.contains(cycles.order[rank as usize - 1]), "{node} at {rank}");
            }
        }
    }

    #[test]
    fn edges_against_the_order_are_taken_unless_they_close_a_cycle() {
        let mut cycles = Cycles::new(5, ENOUGH);
        for (from, to) in [(4, 3), (3, 2), (2, 1), (1, 0)] {
            assert!(cycles.insert_edge(from, to));
            check(&cycles);
        }
        assert!(!cycles.insert_edge(0, 4));
        assert!(!cycles.has_edge(0, 4));
        assert!(!cycles.insert_edge(2, 2));
        assert_eq!(cycles.post_order(), [0, 1, 2, 3, 4]);
    }

    /// Chains whose later nodes are ranked below what leads to them: the ranks are those of the general way.
    #[test]
    fn what_is_ranked_in_front_of_a_chain_has_the_rank_of_a_search() {
        let mut cycles = Cycles::new(9, ENOUGH);
        for node in 0..5 {
            assert!(cycles.insert_edge(node, node + 1));
        }
        // 8 has an input in front of the chain, 7 one within it, 6 none.
        for (from, to) in [(0, 8), (8, 2), (3, 7), (7, 5), (6, 4)] {
            assert!(cycles.insert_edge(from, to));
            check(&cycles);
        }
        let mut order = cycles.post_order();
        order.reverse();
        assert_eq!(order, [0, 1, 8, 2, 3, 6, 4, 7, 5]);
        assert!(!cycles.insert_edge(5, 6));
        check(&cycles);
    }

    #[test]
    fn an_edge_beside_another_path_is_not_contracted() {
        // A -> B -> C and A -> C.
        let mut cycles = Cycles::new(3, ENOUGH);
        for (from, to) in [(0, 1), (1, 2), (0, 2)] {
            assert!(cycles.insert_edge(from, to));
        }
        assert_eq!(cycles.contract_edge(0, 2), Err(Refused::Cycle));
        assert!(cycles.has_edge(0, 2));
        assert_eq!(cycles.other_path(0, 2), [1]);
        let stays = cycles.contract_edge(0, 1).expect("no other path");
        check(&cycles);
        assert!(cycles.has_edge(stays, 2));
        assert!(cycles.contract_edge(stays, 2).is_ok());
        assert_eq!(cycles.post_order().len(), 1);
    }

    /// Against a search that knows no ranks, on graphs drawn from a small generator.
    #[test]
    fn contraction_agrees_with_a_plain_search() {
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for _ in 0..200 {
            let size = 4 + draw(12);
            let mut cycles = Cycles::new(size, ENOUGH);
            let mut edges: Vec<(usize, usize)> = Vec::new();
            for _ in 0..2 * size {
                let (from, to) = (draw(size), draw(size));
                let closes = from == to || path(&edges, to, from, None);
                assert_eq!(cycles.insert_edge(from, to), !closes);
                if !closes && !edges.contains(&(from, to)) {
                    edges.push((from, to));
                }
                check(&cycles);
            }
            while let Some(&(from, to)) = edges.get(draw(edges.len().max(1))) {
                let other = path(&edges, from, to, Some((from, to)));
                match cycles.contract_edge(from, to) {
                    Err(Refused::Cycle) => {
                        assert!(other);
                        edges.retain(|&edge| edge != (from, to));
                        cycles.remove_edge(from, to);
                    }
                    Err(Refused::TooMuchWork) => panic!("there was enough"),
                    Ok(stays) => {
                        assert!(!other);
                        let image = |node: usize| if node == from || node == to { stays } else { node };
                        edges = edges
                            .iter()
                            .map(|&(a, b)| (image(a), image(b)))
                            .filter(|(a, b)| a != b)
                            .collect();
                        edges.sort_unstable();
                        edges.dedup();
                    }
                }
                check(&cycles);
            }
        }
    }

    fn path(edges: &[(usize, usize)], from: usize, to: usize, without: Option<(usize, usize)>) -> bool {
        let mut reached = vec![from];
        let mut at = 0;
        while at < reached.len() {
            for &(a, b) in edges.iter().filter(|&&edge| Some(edge) != without) {
                if a == reached[at] && !reached.contains(&b) {
                    reached.push(b);
                }
            }
            at += 1;
        }
        from == to || reached[1..].contains(&to)
    }

    #[test]
    fn a_star_costs_steps_in_proportion_to_its_size() {
        let leaves = 20_000;
        for is_outward in [true, false] {
            let mut cycles = Cycles::new(leaves + 1, 20 * leaves as u64);
            let (hub, first) = if is_outward { (0, 1) } else { (leaves, 0) };
            for leaf in first..first + leaves {
                let inserted =
                    if is_outward { cycles.insert_edge(hub, leaf) } else { cycles.insert_edge(leaf, hub) };
                assert!(inserted);
            }
            let mut hub = hub;
            for leaf in first..first + leaves {
                let edge = if is_outward { (hub, leaf) } else { (leaf, hub) };
                hub = cycles.contract_edge(edge.0, edge.1).expect("a star has no other paths");
            }
        }
    }
}
