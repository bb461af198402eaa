//! Determines whether a program could write a variable. A branch that is never taken does not write
//! it, and yet the config rightly lists the variable as written.

use crate::node::rule::RuleTable;
use bounded::VariableId;
use std::collections::{BTreeMap, BTreeSet};
use support::Id;
use tf::{Graph, NodeId, OutputId, Program, Resource};

/// Maximum number of handle consumers to visit. Beyond it, the variable counts as not written.
const MAX_STEPS: usize = 1_000_000;

/// Ops that return the handle passed to them.
const PASSERS: [&str; 4] = ["Identity", "IdentityN", "RefIdentity", "Switch"];

/// Ops whose first input selects a function. The other inputs are its arguments.
const CHOOSERS: [&str; 5] = ["Case", "If", "StatelessCase", "StatelessIf", "XlaIf"];

/// An output of a node, in the program's graph or in a function.
type Place<'p> = (Option<&'p str>, OutputId);

/// The consumers of each output, with the position of the input.
type Readers = BTreeMap<OutputId, Vec<(NodeId, usize)>>;

/// True if a node of the program writes through a handle of a variable, whether or not that node
/// runs.
pub(crate) fn may_write(rules: &RuleTable, program: &Program, variable: VariableId) -> bool {
    let resource = &program.variables[variable.index()].resource;
    let is_handle =
        |op: &str| matches!(op, "VarHandleOp" | "_XlaAotOnlyVarHandleOp" | "VariableV2" | "Variable");
    let nodes = program.graph.nodes.iter();
    let handles = nodes.filter(|(_, node)| is_handle(&node.op) && Resource::of_node(node) == *resource);
    let mut work: Vec<Place<'_>> = handles.map(|(node, _)| (None, OutputId { node, index: 0 })).collect();
    let mut seen: BTreeSet<Place<'_>> = work.iter().copied().collect();
    let mut readers: BTreeMap<Option<&str>, Readers> = BTreeMap::new();
    let mut steps = 0;
    while let Some((function, output)) = work.pop() {
        let Some(graph) = graph_of(program, function) else { continue };
        let readers = readers.entry(function).or_insert_with(|| readers_of(graph));
        for &(id, position) in readers.get(&output).into_iter().flatten() {
            steps += 1;
            if steps > MAX_STEPS {
                return false;
            }
            let node = &graph.nodes[id];
            if PASSERS.contains(&node.op.as_str()) {
                for index in 0..node.output_types.len() {
                    let place = (function, OutputId { node: id, index });
                    if seen.insert(place) {
                        work.push(place);
                    }
                }
                continue;
            }
            let called = called_functions(program, node);
            // An op writes its first input. Optimizers write several.
            let is_target = position == 0 || node.op.contains("Apply");
            if called.is_empty() && is_target && rules.find(&node.op).is_some_and(|rule| rule.has_effect) {
                return true;
            }
            let first = usize::from(CHOOSERS.contains(&node.op.as_str()));
            for callee in called {
                let argument = position.checked_sub(first).and_then(|at| callee.arguments.get(at));
                let place = argument.map(|&node| (Some(callee.name.as_str()), OutputId { node, index: 0 }));
                work.extend(place.filter(|&place| seen.insert(place)));
            }
        }
    }
    false
}

fn graph_of<'p>(program: &'p Program, function: Option<&str>) -> Option<&'p Graph> {
    match function {
        None => Some(&program.graph),
        Some(name) => program.library.get(name).map(|function| &function.graph),
    }
}

fn readers_of(graph: &Graph) -> Readers {
    let mut readers = Readers::new();
    for (id, node) in graph.nodes.iter() {
        for (position, &input) in node.inputs.iter().enumerate() {
            readers.entry(input).or_default().push((id, position));
        }
    }
    readers
}

/// Returns the functions that a node calls, by its op or by its attributes.
fn called_functions<'p>(program: &'p Program, node: &tf::Node) -> Vec<&'p tf::Function> {
    let attributes = &node.attributes;
    let mut names: Vec<String> = vec![node.op.clone()];
    for name in attributes.values().keys() {
        if let Ok(function) = attributes.func(name) {
            names.push(function.0.to_owned());
        } else if let Ok(functions) = attributes.funcs(name) {
            names.extend(functions.iter().map(|f| f.0.to_owned()));
        }
    }
    names.iter().filter_map(|name| program.library.get(name)).collect()
}
