//! Tests of the order against a plain algorithm, of contraction against a plain search, and of
//! their costs.

use super::*;
use support::Id;

const ENOUGH: u64 = u64::MAX;

fn insert(cycles: &mut Cycles, from: usize, to: usize) -> bool {
    cycles.insert_edge(Vertex::from_index(from), Vertex::from_index(to))
}

fn contract(cycles: &mut Cycles, from: usize, to: usize) -> Result<usize, Refusal> {
    cycles.contract_edge(Vertex::from_index(from), Vertex::from_index(to)).map(Id::index)
}

fn post_order(cycles: &Cycles) -> Vec<usize> {
    cycles.post_order().into_iter().map(Id::index).collect()
}

fn has_edge(cycles: &Cycles, from: usize, to: usize) -> bool {
    cycles.links[Vertex::from_index(from)].outputs.contains(Vertex::from_index(to))
}

/// Nodes come after their inputs, and both ends of an edge list it.
fn check(cycles: &Cycles) {
    for (node, links) in cycles.links.iter() {
        for &next in links.outputs.members() {
            assert!(cycles.order.place(node) < cycles.order.place(next), "{node} -> {next}");
            assert!(cycles.links[next].inputs.contains(node));
        }
    }
    cycles.order.check(&cycles.links);
}

/// A small deterministic generator of numbers less than the argument.
fn draws() -> impl FnMut(usize) -> usize {
    let mut state = 1u64;
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    }
}

/// The original algorithm of Pearce and Kelly, with a rank for each node.
struct Plain {
    ranks: Vec<usize>,
    inputs: Vec<Vec<usize>>,
    outputs: Vec<Vec<usize>>,
}

impl Plain {
    fn new(nodes: usize) -> Self {
        Self {
            ranks: (0..nodes).collect(),
            inputs: vec![Vec::new(); nodes],
            outputs: vec![Vec::new(); nodes],
        }
    }

    fn insert_edge(&mut self, from: usize, to: usize) {
        if self.outputs[from].contains(&to) {
            return;
        }
        self.outputs[from].push(to);
        self.inputs[to].push(from);
        let (low, high) = (self.ranks[to], self.ranks[from]);
        let mut all = Vec::new();
        let mut nodes = Vec::new();
        for (start, lists) in [(from, &self.inputs), (to, &self.outputs)] {
            let mut nodes_found = vec![start];
            let mut at = 0;
            while at < nodes_found.len() && low < high {
                for &next in &lists[nodes_found[at]] {
                    if (low..=high).contains(&self.ranks[next]) && !nodes_found.contains(&next) {
                        nodes_found.push(next);
                    }
                }
                at += 1;
            }
            nodes_found.sort_by_key(|&node| self.ranks[node]);
            all.extend(nodes_found.iter().map(|&node| self.ranks[node]));
            nodes.extend(nodes_found);
        }
        if low < high {
            all.sort_unstable();
            nodes.into_iter().zip(all).for_each(|(node, rank)| self.ranks[node] = rank);
        }
    }

    fn remove_edge(&mut self, from: usize, to: usize) {
        let remove = |list: &mut Vec<usize>, node: usize| {
            let place = list.iter().position(|&other| other == node).expect("the edge is missing at one end");
            list.swap_remove(place);
        };
        remove(&mut self.outputs[from], to);
        remove(&mut self.inputs[to], from);
    }

    /// Merges the two ends of an edge. One of them survives.
    fn contract(&mut self, from: usize, to: usize, survivor: usize) {
        let absorbed = if survivor == from { to } else { from };
        self.remove_edge(from, to);
        let (inputs, outputs) = (self.inputs[absorbed].clone(), self.outputs[absorbed].clone());
        outputs.iter().for_each(|&next| self.remove_edge(absorbed, next));
        inputs.iter().for_each(|&next| self.remove_edge(next, absorbed));
        self.ranks[absorbed] = usize::MAX;
        outputs.into_iter().for_each(|next| self.insert_edge(survivor, next));
        inputs.into_iter().for_each(|next| self.insert_edge(next, survivor));
    }

    fn post_order(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> =
            (0..self.ranks.len()).filter(|&node| self.ranks[node] < usize::MAX).collect();
        nodes.sort_by_key(|&node| std::cmp::Reverse(self.ranks[node]));
        nodes
    }
}

/// Graphs that mostly consist of chains with constants created after them, both small and large.
/// The order must equal that of the plain algorithm after each edge and after each contraction.
#[test]
fn the_order_equals_that_of_a_plain_search() {
    let mut draw = draws();
    for round in 0..60 {
        let (chains, length) = (1 + draw(3), if round % 10 == 0 { 400 } else { 2 + draw(30) });
        let size = 2 * length + 4;
        let (mut cycles, mut plain) = (Cycles::new(size, ENOUGH), Plain::new(size));
        let mut edges: Vec<(usize, usize)> = (chains..length).map(|node| (node - chains, node)).collect();
        edges.extend((0..length).map(|node| (length + draw(length), node)));
        edges.extend((0..draw(length)).map(|_| (draw(size), draw(size))));
        // An edge against the order comes early.
        edges.insert(draw(edges.len()), (length - 1, length / 2));
        for (k, (from, to)) in edges.into_iter().enumerate() {
            if insert(&mut cycles, from, to) {
                plain.insert_edge(from, to);
            }
            if size < 100 || k % 50 == 0 {
                assert_eq!(post_order(&cycles), plain.post_order(), "{from} -> {to}");
                check(&cycles);
            }
        }
        for from in post_order(&cycles) {
            for to in cycles.successors(Vertex::from_index(from)).to_vec() {
                let to = to.index();
                if draw(4) == 0 || !has_edge(&cycles, from, to) {
                    continue;
                }
                match contract(&mut cycles, from, to) {
                    Ok(survivor) => plain.contract(from, to, survivor),
                    Err(_) => {
                        plain.remove_edge(from, to);
                        plain.insert_edge(from, to);
                    }
                }
                if size < 100 || draw(50) == 0 {
                    assert_eq!(post_order(&cycles), plain.post_order());
                    check(&cycles);
                }
            }
        }
        assert_eq!(post_order(&cycles), plain.post_order());
    }
}

/// Each node of a chain uses a constant created after the chain, which must move past half of it.
#[test]
fn constants_of_a_chain_cost_few_steps_each() {
    let length = 20_000;
    let mut cycles = Cycles::new(2 * length + 1, 2_000 * length as u64);
    // The last node of the order is created first.
    let (end, first) = (0, 1);
    for node in first + 1..first + length {
        assert!(insert(&mut cycles, node - 1, node));
    }
    assert!(insert(&mut cycles, length, end));
    for node in first..first + length {
        assert!(insert(&mut cycles, node + length, node));
    }
    assert!(cycles.work(0), "{length} edges took more than 2,000 steps each");
    let mut order = post_order(&cycles);
    order.reverse();
    let expected = (first..first + length).flat_map(|node| [node + length, node]).chain([end]);
    assert!(order.into_iter().eq(expected));
}

/// Two parallel chains, in which each node of one moves past half of all nodes.
#[test]
fn with_an_exhausted_budget_nodes_are_in_some_topological_order() {
    let size = 2_000;
    let mut cycles = Cycles::new(2 * size, 20 * size as u64);
    for node in 2..size {
        assert!(insert(&mut cycles, node - 2, node));
    }
    for node in 0..size {
        assert!(insert(&mut cycles, node + size, node));
    }
    assert!(!cycles.work(0) && cycles.finish(ENOUGH));
    check(&cycles);
    assert_eq!(contract(&mut cycles, size - 4, size - 2), Ok(size - 4));
    check(&cycles);
    let mut cycles = Cycles::new(3, 0);
    assert!(insert(&mut cycles, 1, 0) && insert(&mut cycles, 2, 1) && insert(&mut cycles, 0, 2));
    assert!(!cycles.finish(ENOUGH), "a cycle");
}

#[test]
fn edges_against_the_order_are_added_unless_they_close_a_cycle() {
    let mut cycles = Cycles::new(5, ENOUGH);
    for (from, to) in [(4, 3), (3, 2), (2, 1), (1, 0)] {
        assert!(insert(&mut cycles, from, to));
        check(&cycles);
    }
    assert!(!insert(&mut cycles, 0, 4));
    assert!(!has_edge(&cycles, 0, 4));
    assert!(!insert(&mut cycles, 2, 2));
    assert_eq!(post_order(&cycles), [0, 1, 2, 3, 4]);
}

/// Chains whose later nodes rank below their inputs must get the ranks of the general algorithm.
#[test]
fn nodes_moved_before_a_chain_have_the_ranks_of_a_search() {
    let mut cycles = Cycles::new(9, ENOUGH);
    for node in 0..5 {
        assert!(insert(&mut cycles, node, node + 1));
    }
    // Node 8 has an input before the chain, node 7 an input in it, and node 6 none.
    for (from, to) in [(0, 8), (8, 2), (3, 7), (7, 5), (6, 4)] {
        assert!(insert(&mut cycles, from, to));
        check(&cycles);
    }
    let mut order = post_order(&cycles);
    order.reverse();
    assert_eq!(order, [0, 1, 8, 2, 3, 6, 4, 7, 5]);
    assert!(!insert(&mut cycles, 5, 6));
    check(&cycles);
}

#[test]
fn an_edge_beside_another_path_is_not_contracted() {
    // A -> B -> C and A -> C.
    let mut cycles = Cycles::new(3, ENOUGH);
    for (from, to) in [(0, 1), (1, 2), (0, 2)] {
        assert!(insert(&mut cycles, from, to));
    }
    assert_eq!(contract(&mut cycles, 0, 2), Err(Refusal::Cycle));
    assert!(has_edge(&cycles, 0, 2));
    assert_eq!(cycles.other_path(Vertex::from_index(0), Vertex::from_index(2)), [Vertex::from_index(1)]);
    let survivor = contract(&mut cycles, 0, 1).expect("no other path");
    check(&cycles);
    assert!(has_edge(&cycles, survivor, 2));
    assert!(contract(&mut cycles, survivor, 2).is_ok());
    assert_eq!(post_order(&cycles).len(), 1);
}

/// Compares with a search without ranks, on random graphs.
#[test]
fn contraction_agrees_with_a_plain_search() {
    let mut draw = draws();
    for _ in 0..200 {
        let size = 4 + draw(12);
        let mut cycles = Cycles::new(size, ENOUGH);
        let mut edges: Vec<(usize, usize)> = Vec::new();
        for _ in 0..2 * size {
            let (from, to) = (draw(size), draw(size));
            let closes = from == to || path(&edges, to, from, None);
            assert_eq!(insert(&mut cycles, from, to), !closes);
            if !closes && !edges.contains(&(from, to)) {
                edges.push((from, to));
            }
            check(&cycles);
        }
        while let Some(&(from, to)) = edges.get(draw(edges.len().max(1))) {
            let other = path(&edges, from, to, Some((from, to)));
            match contract(&mut cycles, from, to) {
                Err(Refusal::Cycle) => {
                    assert!(other);
                    edges.retain(|&edge| edge != (from, to));
                    cycles.remove_edge(Vertex::from_index(from), Vertex::from_index(to));
                }
                Err(Refusal::TooMuchWork) => panic!("the budget is exhausted"),
                Ok(survivor) => {
                    assert!(!other);
                    let image = |node: usize| if node == from || node == to { survivor } else { node };
                    edges =
                        edges.iter().map(|&(a, b)| (image(a), image(b))).filter(|(a, b)| a != b).collect();
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
                if is_outward { insert(&mut cycles, hub, leaf) } else { insert(&mut cycles, leaf, hub) };
            assert!(inserted);
        }
        let mut hub = hub;
        for leaf in first..first + leaves {
            let edge = if is_outward { (hub, leaf) } else { (leaf, hub) };
            hub = contract(&mut cycles, edge.0, edge.1).expect("a star has no other paths");
        }
    }
}
