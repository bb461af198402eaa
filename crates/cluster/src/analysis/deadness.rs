//! Determines when nodes are live: computes a formula for each node's outputs and for the node
//! itself.
//!
//! An output of `Switch` is dead in one of the two cases, and a node with a dead input is dead
//! itself. A cluster is a single node, so all of its nodes must be live together. Loops are visited
//! twice. In the first visit, a `Merge` that closes a loop is a symbol. In the second, its formula
//! is derived from the value of its back edge: `symbol & step` makes it a recurrence. At first, all
//! merges of a frame share one symbol, because they usually are live together. If that turns out to
//! be wrong, each gets its own.
//!
//! If a graph's formulas exceed the budget, the analysis gives up: every node then gets its own
//! condition, which prevents all clustering.

mod order;
mod predicate;

pub(crate) use predicate::{PredicateId, Predicates};

use crate::graph::frames::{Frame, frames};
use crate::graph::scalars;
use crate::graph::{Edge, EdgeKind, Graph, NodeId, OutputTensor, SINK, SOURCE};
use predicate::Predicate;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use support::{Error, IdVec, Result};

/// The formula of each node.
#[derive(Debug)]
pub(crate) struct Deadness {
    predicates: Predicates,
    nodes: IdVec<NodeId, Option<PredicateId>>,
}

impl Deadness {
    /// Analyzes a graph.
    pub(crate) fn new(graph: &Graph) -> Result<Self> {
        let frames = frames(graph)?;
        let order = order::by_root_frame(graph, &frames)?;
        let mut analysis = Analysis {
            graph,
            frames: &frames,
            predicates: Predicates::default(),
            outputs: graph.node_table(Outputs::default()),
            representatives: HashMap::new(),
        };
        let mut at = 0;
        while at < order.len() {
            let frame = order::root_frame(&frames, order[at]);
            let count = order[at..].iter().take_while(|&&id| order::root_frame(&frames, id) == frame).count();
            analysis.populate(&order[at..at + count], !frame.is_empty())?;
            at += count;
        }
        let nodes = analysis.outputs.values().map(|outputs| outputs.control).collect();
        let mut deadness = Self { predicates: analysis.predicates, nodes };
        if deadness.predicates.is_exhausted() {
            let own = |node| OutputTensor { node, output: usize::MAX };
            let symbols = graph.nodes.ids().map(|id| Some(deadness.predicates.symbol(own(id), false)));
            deadness.nodes = symbols.collect();
        }
        Ok(deadness)
    }

    /// The condition under which the node is live.
    pub(crate) fn node(&self, id: NodeId) -> Option<PredicateId> {
        self.nodes[id]
    }

    /// Text of a formula.
    pub(crate) fn text(&self, predicate: PredicateId, graph: &Graph) -> String {
        self.predicates.text(predicate, &|node| graph[node].name().to_owned())
    }
}

/// The known formulas of a node.
#[derive(Clone, Debug, Default)]
struct Outputs {
    data: Vec<Option<PredicateId>>,
    control: Option<PredicateId>,
}

struct Analysis<'g> {
    graph: &'g Graph,
    frames: &'g IdVec<NodeId, Frame>,
    predicates: Predicates,
    outputs: IdVec<NodeId, Outputs>,
    /// The merge that represents all merges of a frame.
    representatives: HashMap<Rc<str>, NodeId>,
}

impl Analysis<'_> {
    /// Computes the formulas of consecutive nodes, all in the same outermost loop or outside loops.
    fn populate(&mut self, order: &[NodeId], is_loop: bool) -> Result<()> {
        if is_loop {
            self.pass_twice(order, true)?;
            if self.has_converged(order)? {
                return Ok(());
            }
            for &id in order {
                self.outputs[id] = Outputs::default();
            }
        }
        self.pass_twice(order, false)
    }

    fn pass_twice(&mut self, order: &[NodeId], is_optimistic: bool) -> Result<()> {
        let mut again = std::collections::HashSet::new();
        for &id in order {
            if self.predicates.is_exhausted() {
                return Ok(());
            }
            self.visit(id, None, is_optimistic)?;
            if self.graph[id].is_next_iteration() {
                again.extend(
                    self.graph.out_edges(id).map(|e| e.dst).filter(|&dst| self.graph[dst].is_merge()),
                );
            }
        }
        for &id in order {
            if again.contains(&id) && !self.predicates.is_exhausted() {
                self.visit(id, Some(&mut again), false)?;
            }
        }
        Ok(())
    }

    /// True if, in each frame, all merges that close a loop are the same recurrence.
    fn has_converged(&self, order: &[NodeId]) -> Result<bool> {
        let mut by_frame: BTreeMap<&str, PredicateId> = BTreeMap::new();
        for &id in order.iter().filter(|&&id| self.graph[id].is_merge()) {
            if self.back_edge(id)?.is_none() {
                continue;
            }
            let Some(predicate) = self.outputs[id].control else { return Ok(false) };
            let is_recurrence = matches!(self.predicates.get(predicate), Predicate::AndRecurrence { .. });
            if !is_recurrence || *by_frame.entry(&self.frames[id].name).or_insert(predicate) != predicate {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn set(&mut self, id: NodeId, output: Option<usize>, predicate: PredicateId, again: &mut Again<'_>) {
        let outputs = &mut self.outputs[id];
        let place = match output {
            None => &mut outputs.control,
            Some(output) => {
                if outputs.data.len() <= output {
                    outputs.data.resize(output + 1, None);
                }
                &mut outputs.data[output]
            }
        };
        let before = place.replace(predicate);
        if let Some(again) = again
            && before.is_some_and(|before| before != predicate)
        {
            again.extend(self.graph.out_edges(id).map(|edge| edge.dst));
        }
    }

    fn set_all(&mut self, id: NodeId, outputs: usize, predicate: PredicateId, again: &mut Again<'_>) {
        for output in (0..outputs).map(Some).chain([None]) {
            self.set(id, output, predicate, again);
        }
    }

    fn known(&self, edge: Edge) -> Option<PredicateId> {
        let outputs = &self.outputs[edge.src];
        match edge.kind {
            EdgeKind::Control => outputs.control,
            EdgeKind::Data { output, .. } => outputs.data.get(output).copied().flatten(),
        }
    }

    fn inputs(&self, id: NodeId, is_included: impl Fn(&Edge) -> bool) -> Result<Vec<PredicateId>> {
        let known = |edge: Edge| {
            self.known(edge).ok_or_else(|| {
                Error::internal(format!(
                    "deadness analysis: visited '{}' before its input '{}'",
                    self.graph[id].name(),
                    self.graph[edge.src].name()
                ))
            })
        };
        self.graph.in_edges(id).filter(is_included).map(known).collect()
    }

    fn visit(&mut self, id: NodeId, again: Again<'_>, is_optimistic: bool) -> Result<()> {
        let node = &self.graph[id];
        let mut again = again;
        if node.is_switch() {
            return self.visit_switch(id, &mut again);
        }
        if node.is_merge() {
            return self.visit_merge(id, &mut again, is_optimistic);
        }
        let outputs = node.output_types.len();
        let op = node.op().to_owned();
        if op == "ControlTrigger" {
            let always = self.predicates.constant(true);
            self.set(id, None, always, &mut again);
            return Ok(());
        }
        let mut inputs = self.inputs(id, |_| true)?;
        if matches!(op.as_str(), "_Recv" | "_HostRecv") {
            // A receive is also dead if the sent value is.
            inputs.push(self.predicates.symbol(OutputTensor { node: id, output: 0 }, false));
        }
        let predicate = self.predicates.and(&inputs);
        self.set_all(id, outputs, predicate, &mut again);
        Ok(())
    }

    fn visit_switch(&mut self, id: NodeId, again: &mut Again<'_>) -> Result<()> {
        let mut inputs = self.inputs(id, |_| true)?;
        let tensor = self.graph.input(id, 1).ok_or_else(|| {
            Error::internal(format!("deadness analysis: switch '{}' has no condition", self.graph[id].name()))
        })?;
        if self.graph[id].op() != "_SwitchN" {
            let holds = self.symbol_of_bool(tensor);
            let fails = self.predicates.not(holds);
            for (output, case) in [(0, fails), (1, holds)] {
                inputs.push(case);
                let predicate = self.predicates.and(&inputs);
                inputs.pop();
                self.set(id, Some(output), predicate, again);
            }
        } else {
            let all = inputs.clone();
            let outputs = self.graph[id].output_types.len();
            for output in 0..outputs.saturating_sub(1) {
                let case = self.symbol_of_int(tensor, output as i32);
                inputs.push(case);
                let predicate = self.predicates.and(&inputs);
                self.set(id, Some(output), predicate, again);
                inputs.pop();
                inputs.push(self.predicates.not(case));
            }
            // The last output is live if no other is.
            if let Some(last) = outputs.checked_sub(1) {
                let predicate = self.predicates.and(&inputs);
                self.set(id, Some(last), predicate, again);
            }
            inputs = all;
        }
        let predicate = self.predicates.and(&inputs);
        self.set(id, None, predicate, again);
        Ok(())
    }

    fn symbol_of_bool(&mut self, tensor: OutputTensor) -> PredicateId {
        let node = &self.graph[tensor.node];
        match node.is_constant().then(|| scalars::bool_of(&node.def)).flatten() {
            Some(value) => self.predicates.constant(value),
            None => self.predicates.symbol(tensor, true),
        }
    }

    fn symbol_of_int(&mut self, tensor: OutputTensor, value: i32) -> PredicateId {
        let node = &self.graph[tensor.node];
        match node.is_constant().then(|| scalars::int_of(&node.def)).flatten() {
            Some(constant) => self.predicates.constant(constant == value),
            None => self.predicates.int_symbol(tensor, value),
        }
    }

    /// A merge is live if any of its data inputs is. Control inputs do not matter.
    fn visit_merge(&mut self, id: NodeId, again: &mut Again<'_>, is_optimistic: bool) -> Result<()> {
        let Some(current) = self.outputs[id].data.first().copied().flatten() else {
            let is_back = |edge: &Edge| !edge.is_control() && self.graph[edge.src].is_next_iteration();
            let is_open = self.graph.in_edges(id).any(|edge| is_back(&edge) && self.known(edge).is_none());
            let predicate = if is_open {
                let stands_for = if is_optimistic {
                    *self.representatives.entry(self.frames[id].name.clone()).or_insert(id)
                } else {
                    id
                };
                self.predicates.symbol(OutputTensor { node: stands_for, output: 0 }, false)
            } else {
                let inputs = self.inputs(id, |edge| !edge.is_control())?;
                self.predicates.or(&inputs)
            };
            self.set_all(id, 2, predicate, again);
            return Ok(());
        };
        if !matches!(self.predicates.get(current), Predicate::Symbol { .. }) {
            return Ok(());
        }
        let Some(back) = self.back_edge(id)? else { return Ok(()) };
        let Some(returned) = self.known(back) else { return Ok(()) };
        let Some(step) = self.step(current, returned) else { return Ok(()) };
        let entering: Vec<PredicateId> = self
            .graph
            .in_edges(id)
            .filter(|&edge| edge != back)
            .filter_map(|edge| self.known(edge))
            .collect();
        let start = self.predicates.or(&entering);
        let frame = order::full_frame(self.frames, id);
        let recurrence = self.predicates.and_recurrence(start, step, frame);
        self.set_all(id, 2, recurrence, again);
        Ok(())
    }

    /// The edge that closes a loop at a merge.
    fn back_edge(&self, id: NodeId) -> Result<Option<Edge>> {
        let mut edges = self.graph.in_edges(id).filter(|edge| self.graph[edge.src].is_next_iteration());
        match (edges.next(), edges.next()) {
            (edge, None) => Ok(edge),
            (_, Some(_)) => Err(Error::invalid(format!(
                "node '{}' (op {}) has more than one NextIteration among its inputs",
                self.graph[id].name(),
                self.graph[id].op()
            ))),
        }
    }

    /// Returns `step` if the value of the back edge is `symbol & step` and the step does not
    /// contain the symbol.
    fn step(&mut self, symbol: PredicateId, returned: PredicateId) -> Option<PredicateId> {
        let Predicate::And(operands) = self.predicates.get(returned) else { return None };
        let rest: Vec<PredicateId> = operands.iter().copied().filter(|&p| p != symbol).collect();
        if rest.len() == operands.len() || rest.iter().any(|&p| self.predicates.contains(p, symbol)) {
            return None;
        }
        Some(self.predicates.and(&rest))
    }
}

/// Nodes to visit again in the second pass.
type Again<'a> = Option<&'a mut std::collections::HashSet<NodeId>>;

/// True unless the node is the graph's source or sink.
fn is_op(id: NodeId) -> bool {
    id != SOURCE && id != SINK
}
