//! A topological order that is maintained edge by edge (Pearce and Kelly, "A dynamic topological
//! sort algorithm for directed acyclic graphs", JEA 2006).

/// Number of steps after which further edges are ignored. The order stays valid, but some
/// preferences remain unfulfilled.
const MAX_STEPS: usize = 20_000_000;

/// Nodes 0, 1, ... in an order that respects all edges; initially in ascending order.
pub(crate) struct Order {
    /// The position of each node.
    places: Vec<usize>,
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    /// Steps that remain until further edges are ignored.
    steps: usize,
}

impl Order {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            places: (0..nodes).collect(),
            before: vec![Vec::new(); nodes],
            after: vec![Vec::new(); nodes],
            steps: MAX_STEPS,
        }
    }

    /// The nodes that must precede a node.
    pub(crate) fn before(&self, node: usize) -> &[usize] {
        &self.before[node]
    }

    /// The nodes that must follow a node.
    pub(crate) fn after(&self, node: usize) -> &[usize] {
        &self.after[node]
    }

    /// Puts `first` before `second`, unless that forms a cycle or the limit of steps is reached.
    pub(crate) fn put_before(&mut self, first: usize, second: usize) {
        if first == second || self.steps == 0 {
            return;
        }
        if self.places[first] > self.places[second] && !self.reorder(first, second) {
            return;
        }
        self.before[second].push(first);
        self.after[first].push(second);
    }

    /// Moves a later node before an earlier one, together with the nodes that depend on either.
    /// Returns false if they form a cycle.
    fn reorder(&mut self, first: usize, second: usize) -> bool {
        let (low, high) = (self.places[second], self.places[first]);
        let mut successors = self.reached(second, |order, node| &order.after[node], |place| place <= high);
        if successors.contains(&first) {
            return false;
        }
        let mut predecessors = self.reached(first, |order, node| &order.before[node], |place| place >= low);
        successors.sort_by_key(|&node| self.places[node]);
        predecessors.sort_by_key(|&node| self.places[node]);
        predecessors.extend(successors);
        let mut places: Vec<usize> = predecessors.iter().map(|&node| self.places[node]).collect();
        places.sort_unstable();
        predecessors.into_iter().zip(places).for_each(|(node, place)| self.places[node] = place);
        true
    }

    /// The nodes that are reachable by edges through positions within a range.
    fn reached(
        &mut self,
        from: usize,
        next: impl Fn(&Self, usize) -> &Vec<usize>,
        is_within: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut seen = std::collections::BTreeSet::from([from]);
        let mut stack = vec![from];
        let mut reached = Vec::new();
        let mut steps = self.steps;
        while let Some(node) = stack.pop() {
            reached.push(node);
            steps = steps.saturating_sub(1);
            for &other in next(self, node) {
                steps = steps.saturating_sub(1);
                if is_within(self.places[other]) && seen.insert(other) {
                    stack.push(other);
                }
            }
        }
        self.steps = steps;
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_that_close_a_cycle_are_ignored() {
        let mut order = Order::new(4);
        order.put_before(0, 1);
        order.put_before(1, 2);
        order.put_before(3, 0);
        order.put_before(2, 3);
        assert_eq!(order.before(0), [3]);
        assert_eq!(order.before(3), [] as [usize; 0]);
        let mut sorted: Vec<usize> = (0..4).collect();
        sorted.sort_by_key(|&node| order.places[node]);
        assert_eq!(sorted, [3, 0, 1, 2]);
    }

    #[test]
    fn a_moved_node_takes_its_dependents_along() {
        let mut order = Order::new(6);
        order.put_before(0, 2);
        order.put_before(1, 5);
        order.put_before(5, 0);
        order.put_before(4, 1);
        let place = |node: usize| order.places[node];
        assert!(place(4) < place(1) && place(1) < place(5) && place(5) < place(0) && place(0) < place(2));
        order.put_before(2, 4);
        assert_eq!(order.before(4), [] as [usize; 0], "a cycle");
    }

    #[test]
    fn without_steps_further_edges_are_ignored() {
        // An edge against the order takes at least one step for each of its ends.
        let mut order = Order { steps: 2, ..Order::new(3) };
        order.put_before(0, 1);
        order.put_before(2, 1);
        assert_eq!(order.before(1), [0, 2]);
        order.put_before(1, 0);
        order.put_before(0, 2);
        assert_eq!((order.before(0), order.before(2)), (&[][..], &[][..]));
        // Enough steps for both.
        let mut order = Order { steps: 20, ..Order::new(3) };
        order.put_before(2, 1);
        order.put_before(0, 2);
        assert_eq!((order.before(1), order.before(2)), (&[2][..], &[0][..]));
    }
}
