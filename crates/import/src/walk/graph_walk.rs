//! The walk over a program: applies the rule of each node, in execution order, to the computation
//! being built.

use crate::control::calls::call_of_op;
use crate::node::context::{NodeContext, NodeInputs};
use crate::node::functions::{FunctionPart, Functions};
use crate::node::name::name_within;
use crate::node::rule::{Rule, RuleTable, Translation};
use crate::values::state::State;
use crate::values::value::Value;
use crate::walk::needed_nodes::needed_nodes;
use crate::walk::{passed_arguments, unsupported};
use hlo::{InstructionId, OpMetadata};
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Coded as _, Error, ErrorKind, Result};
use tf::{Function, Graph, NodeId};

/// Maximum nesting depth of calls and conditionals.
const MAX_DEPTH: usize = 50;

/// Maximum number of translated nodes. Nodes of functions count once per call. Nodes of loops count
/// once per round of type inference, and nested loops multiply these rounds.
const MAX_NODES: usize = 500_000;

/// A walk over a program's graph and the functions that it calls.
pub(crate) struct Walk<'p> {
    program: &'p tf::Program,
    rules: &'static RuleTable,
    depth: usize,
    nodes: usize,
    passed: passed_arguments::Known,
}

impl<'p> Walk<'p> {
    /// Creates a walk that has not begun.
    pub(crate) fn new(program: &'p tf::Program, rules: &'static RuleTable) -> Self {
        Self { program, rules, depth: 0, nodes: 0, passed: passed_arguments::Known::new() }
    }

    /// Translates a graph. `values` gives the values of its `_Arg` nodes. Nodes that are not in
    /// `needed` are skipped.
    pub(crate) fn translate_graph(
        &mut self,
        state: &mut State<'p>,
        graph: &'p Graph,
        mut values: BTreeMap<NodeId, Vec<Value>>,
        needed: Option<&BTreeSet<NodeId>>,
        prefix: &str,
    ) -> Result<BTreeMap<NodeId, Vec<Value>>> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::invalid(format!(
                "functions call each other more than {MAX_DEPTH} levels deep at '{}'; recursion cannot be compiled",
                prefix.trim_end_matches('/')
            )).coded(Code::FunctionLibrary));
        }
        self.depth += 1;
        let result = self.translate_nodes(state, graph, &mut values, needed, prefix);
        self.depth -= 1;
        result.map(|()| values)
    }

    fn translate_nodes(
        &mut self,
        state: &mut State<'p>,
        graph: &'p Graph,
        values: &mut BTreeMap<NodeId, Vec<Value>>,
        needed: Option<&BTreeSet<NodeId>>,
        prefix: &str,
    ) -> Result<()> {
        for id in graph.topological_order().coded(Code::Graph)? {
            if values.contains_key(&id) || needed.is_some_and(|needed| !needed.contains(&id)) {
                continue;
            }
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                return Err(Error::invalid(format!(
                    "the graph has more than {MAX_NODES} nodes after its function calls are inlined and its loops are tried; split \
                     it into several programs, or nest fewer loops that carry lists"
                )).coded(Code::TooLarge));
            }
            let results = if state.is_collecting() {
                self.try_node(state, graph, id, values, prefix)
            } else {
                Some(self.translate_node(state, graph, id, values, prefix)?)
            };
            // A node that failed has no values, so the nodes that read it fail too.
            if let Some(results) = results {
                values.insert(id, results);
            }
        }
        Ok(())
    }

    /// Translates a node if possible. Otherwise collects the reason, unless it is already known or
    /// another node is at fault.
    fn try_node(
        &mut self,
        state: &mut State<'p>,
        graph: &'p Graph,
        id: NodeId,
        values: &BTreeMap<NodeId, Vec<Value>>,
        prefix: &str,
    ) -> Option<Vec<Value>> {
        let node = &graph.nodes[id];
        let before = state.checkpoint();
        let collected = state.collected()?;
        let (failures, is_full) = (collected.failures, collected.is_full());
        let is_ready = !is_full
            && node.inputs.iter().all(|input| values.contains_key(&input.node))
            && unsupported::reason(self.rules, self.program, node).is_none();
        let error = if is_ready {
            match self.translate_node(state, graph, id, values, prefix) {
                Ok(results) => return Some(results),
                Err(error) => Some(error),
            }
        } else {
            None
        };
        // Discard the scopes that the node left open.
        state.close_since(&before);
        state.set_metadata(OpMetadata::default());
        let collected = state.collected()?;
        if let Some(error) = error
            && collected.failures == failures
        {
            collected.add(&name_within(prefix, &node.name), &node.op, error);
        }
        collected.failures += 1;
        None
    }

    fn translate_node(
        &mut self,
        state: &mut State<'p>,
        graph: &'p Graph,
        id: NodeId,
        values: &BTreeMap<NodeId, Vec<Value>>,
        prefix: &str,
    ) -> Result<Vec<Value>> {
        let node = &graph.nodes[id];
        let name = name_within(prefix, &node.name);
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            let value = values.get(&input.node).and_then(|outputs| outputs.get(input.index));
            inputs.push(*value.ok_or_else(|| {
                let producer = &graph.nodes[input.node];
                Error::invalid(format!(
                    "node '{name}' (op '{}') reads output {} of node '{}' (op '{}'), which has no such output",
                    node.op, input.index, producer.name, producer.op
                ))
            })?);
        }
        let metadata =
            OpMetadata { op_type: node.op.clone(), op_name: name.clone(), ..OpMetadata::default() };
        let outer = state.set_metadata(metadata);
        let rule = self.rules.find(&node.op);
        let mut cx = NodeContext::new(state, self, NodeInputs { node, graph, name, inputs });
        let result = translate(rule, &mut cx);
        let result = result.map_err(|error| {
            let code = match error.kind() {
                ErrorKind::Unsupported => Code::OpCase,
                _ => Code::OpMeaning,
            };
            cx.at_node(error.coded(code))
        });
        state.set_metadata(outer);
        result
    }
}

impl<'p> Functions<'p> for Walk<'p> {
    fn translate(
        &mut self,
        state: &mut State<'p>,
        function: &'p Function,
        arguments: &[Value],
        prefix: &str,
    ) -> Result<Vec<Value>> {
        if arguments.len() != function.arguments.len() {
            return Err(Error::invalid(format!(
                "function '{}' expects {} arguments, got {}",
                function.name,
                function.arguments.len(),
                arguments.len()
            ))
            .coded(Code::FunctionLibrary));
        }
        let given = function.arguments.iter().zip(arguments).map(|(&id, &value)| (id, vec![value])).collect();
        let needed = self.needed_nodes(function);
        let values = self.translate_graph(state, &function.graph, given, Some(&needed), prefix)?;
        let result = |output: &tf::OutputId| {
            values.get(&output.node).and_then(|outputs| outputs.get(output.index)).copied().ok_or_else(|| {
                Error::invalid(format!(
                    "function '{}' returns output {} of node '{}', which has no such output",
                    function.name, output.index, function.graph.nodes[output.node].name
                ))
            })
        };
        function.results.iter().map(result).collect()
    }

    fn translate_output(
        &mut self,
        state: &mut State<'p>,
        part: &FunctionPart<'p, '_>,
        arguments: &[Value],
        prefix: &str,
    ) -> Result<Option<Value>> {
        let FunctionPart { function, output, needed } = *part;
        let argument_values =
            function.arguments.iter().zip(arguments).map(|(&id, &value)| (id, vec![value])).collect();
        let values = self.translate_graph(state, &function.graph, argument_values, Some(needed), prefix)?;
        Ok(values.get(&output.node).and_then(|outputs| outputs.get(output.index)).copied())
    }

    fn needed_nodes(&self, function: &'p Function) -> BTreeSet<NodeId> {
        needed_nodes(self.rules, self.program, function)
    }

    fn passed_arguments(&mut self, function: &'p Function) -> Vec<Option<usize>> {
        passed_arguments::passed_arguments(&self.program.library, &mut self.passed, function)
    }
}

/// Applies the node's rule, or calls the function that its op names.
fn translate(rule: Option<&Rule>, cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    cx.settle_equal_sizes()?;
    let samples = cx.take_samples()?;
    let open = if samples.is_none() { cx.take_aligned()? } else { None };
    let mut outputs = apply(rule, cx)?;
    if let Some(samples) = samples {
        cx.with_samples(&samples, &mut outputs)?;
    }
    if let Some(open) = open {
        cx.with_aligned(&open, &mut outputs)?;
    }
    for output in &mut outputs {
        if let Value::Array(id) = output {
            *id = cx.settled_integer(*id);
        }
    }
    Ok(outputs)
}

/// Applies the rule to the inputs, or calls the function that the op names.
fn apply(rule: Option<&Rule>, cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let arrays = |ids: Vec<InstructionId>| ids.into_iter().map(Value::Array).collect();
    match rule {
        Some(Rule { translation: Translation::One(translate), .. }) => {
            let result = translate(cx)?;
            Ok(arrays(vec![cx.with_input_sizes(result)?]))
        }
        Some(Rule { translation: Translation::Many(translate), .. }) => Ok(arrays(translate(cx)?)),
        Some(Rule { translation: Translation::Values(translate), .. }) => {
            let mut results = translate(cx)?;
            for value in &mut results {
                if let Value::Array(id) = value {
                    *id = cx.with_input_sizes(*id)?;
                }
            }
            Ok(results)
        }
        None => call_of_op(cx),
    }
}
