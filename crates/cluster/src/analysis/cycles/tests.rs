//! The order against a plain one, contraction against a plain search, and what both cost.

use super::*;
use support::Id;

const ENOUGH: u64 = u64::MAX;

fn insert(cycles: &mut Cycles, from: usize, to: usize) -> bool {
    cycles.insert_edge(Vertex::from_index(from), Vertex::from_index(to))
}

fn contract(cycles: &mut Cycles, from: usize, to: usize) -> Result<usize, Refused> {
    cycles.contract_edge(Vertex::from_index(from), Vertex::from_index(to)).map(Id::index)
}

fn post_order(cycles: &Cycles) -> Vec<usize> {
    cycles.post_order().into_iter().map(Id::index).collect()
}

fn has_edge(cycles: &Cycles, from: usize, to: usize) -> bool {
    cycles.links[Vertex::from_index(from)].outputs.contains(Vertex::from_index(to))
}

/// Nodes are behind their inputs, and the two lists of an edge agree.
fn check(cycles: &Cycles) {
    for (node, links) in cycles.links.iter() {
        for &next in links.outputs.members() {
            assert!(cycles.order.place(node) < cycles.order.place(next), "{node} -> {next}");
            assert!(cycles.links[next].inputs.contains(node));
        }
    }
    cycles.order.check(&cycles.links);
}

/// A small generator: the same numbers in each run, each below what is asked for.
fn draws() -> impl FnMut(usize) -> usize {
    let mut state = 1u64;
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    }
}

/// The algorithm as Pearce and Kelly wrote it down, with a rank for each node.
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
            let mut found = vec![start];
            let mut at = 0;
            while at < found.len() && low < high {
                for &next in &lists[found[at]] {
                    if (low..=high).contains(&self.ranks[next]) && !found.contains(&next) {
                        found.push(next);
                    }
                }
                at += 1;
            }
            found.sort_by_key(|&node| self.ranks[node]);
            all.extend(found.iter().map(|&node| self.ranks[node]));
            nodes.extend(found);
        }
        if low < high {
            all.sort_unstable();
            nodes.into_iter().zip(all).for_each(|(node, rank)| self.ranks[node] = rank);
        }
    }

    fn remove_edge(&mut self, from: usize, to: usize) {
        let remove = |list: &mut Vec<usize>, node: usize| {
            let place = list.iter().position(|&other| other == node).expect("both ends know the edge");
            list.swap_remove(place);
        };
        remove(&mut self.outputs[from], to);
        remove(&mut self.inputs[to], from);
    }

    /// The two ends of an edge become one of the two, the other goes.
    fn contract(&mut self, from: usize, to: usize, stays: usize) {
        let goes = if stays == from { to } else { from };
        self.remove_edge(from, to);
        let (inputs, outputs) = (self.inputs[goes].clone(), self.outputs[goes].clone());
        outputs.iter().for_each(|&next| self.remove_edge(goes, next));
        inputs.iter().for_each(|&next| self.remove_edge(next, goes));
        self.ranks[goes] = usize::MAX;
        outputs.into_iter().for_each(|next| self.insert_edge(stays, next));
        inputs.into_iter().for_each(|next| self.insert_edge(next, stays));
    }

    fn post_order(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> =
            (0..self.ranks.len()).filter(|&node| self.ranks[node] < usize::MAX).collect();
        nodes.sort_by_key(|&node| std::cmp::Reverse(self.ranks[node]));
        nodes
    }
}

/// Graphs that are mostly chains behind which constants were made, of which each part is small and large: the order is that of
/// the plain algorithm after each edge, and after each contraction.
#[test]
fn the_order_is_that_of_a_plain_search() {
    let mut draw = draws();
    for round in 0..60 {
        let (chains, length) = (1 + draw(3), if round % 10 == 0 { 400 } else { 2 + draw(30) });
        let size = 2 * length + 4;
        let (mut cycles, mut plain) = (Cycles::new(size, ENOUGH), Plain::new(size));
        let mut edges: Vec<(usize, usize)> = (chains..length).map(|node| (node - chains, node)).collect();
        edges.extend((0..length).map(|node| (length + draw(length), node)));
        edges.extend((0..draw(length)).map(|_| (draw(size), draw(size))));
        // The last of all was made first.
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
                    Ok(stays) => plain.contract(from, to, stays),
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

/// Each node of a chain takes a constant that was made behind the chain: each has to pass half of it.
#[test]
fn constants_of_a_chain_cost_few_steps_each() {
    let length = 20_000;
    let mut cycles = Cycles::new(2 * length + 1, 2_000 * length as u64);
    // What is behind all else was made first.
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
    let wanted = (first..first + length).flat_map(|node| [node + length, node]).chain([end]);
    assert!(order.into_iter().eq(wanted));
}

/// Two chains side by side, of which each node of one moves past half of all.
#[test]
fn with_no_steps_left_nodes_are_in_some_order_that_fits() {
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
fn edges_against_the_order_are_taken_unless_they_close_a_cycle() {
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

/// Chains whose later nodes are ranked below what leads to them: the ranks are those of the general way.
#[test]
fn what_is_ranked_in_front_of_a_chain_has_the_rank_of_a_search() {
    let mut cycles = Cycles::new(9, ENOUGH);
    for node in 0..5 {
        assert!(insert(&mut cycles, node, node + 1));
    }
    // 8 has an input in front of the chain, 7 one within it, 6 none.
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
    assert_eq!(contract(&mut cycles, 0, 2), Err(Refused::Cycle));
    assert!(has_edge(&cycles, 0, 2));
    assert_eq!(cycles.other_path(Vertex::from_index(0), Vertex::from_index(2)), [Vertex::from_index(1)]);
    let stays = contract(&mut cycles, 0, 1).expect("no other path");
    check(&cycles);
    assert!(has_edge(&cycles, stays, 2));
    assert!(contract(&mut cycles, stays, 2).is_ok());
    assert_eq!(post_order(&cycles).len(), 1);
}

/// Against a search that knows no ranks, on graphs drawn from a small generator.
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
                Err(Refused::Cycle) => {
                    assert!(other);
                    edges.retain(|&edge| edge != (from, to));
                    cycles.remove_edge(Vertex::from_index(from), Vertex::from_index(to));
                }
                Err(Refused::TooMuchWork) => panic!("there was enough"),
                Ok(stays) => {
                    assert!(!other);
                    let image = |node: usize| if node == from || node == to { stays } else { node };
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
