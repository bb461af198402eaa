//! Collects every problem that [`prepare`](super::prepare()) would stop at, in a single pass.

use super::names::{Input, Names};
use super::signatures::{Signatures, unregistered};
use super::{FedOutput, config, feeds, prune, variables};
use crate::proto::{Config, FunctionDef, GraphDef, NodeDef, attr_value::Value};
use crate::{DataType, Graph, Problem, functionalize};
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Coded as _, Error, Result};

/// Problems of a graph and a config.
#[derive(Clone, Debug, Default)]
pub struct Examined {
    /// Problems that prevent compilation.
    pub problems: Vec<Problem>,
    /// Suspicious properties that do not prevent compilation.
    pub warnings: Vec<String>,
    /// The compiled nodes of each op. Nodes of called functions are named `function/node`.
    pub ops: BTreeMap<String, Vec<String>>,
}

/// Maximum number of collected problems.
const MAX_PROBLEMS: usize = 1000;

fn push(problems: &mut Vec<Problem>, problem: Problem) {
    if problems.len() < MAX_PROBLEMS {
        problems.push(problem);
    }
}

/// True if preparation removes nodes of this op.
pub fn is_prepared(op: &str) -> bool {
    op.starts_with("Placeholder") || functionalize::is_control_flow(op)
}

/// Examines a graph and a config. If there are no problems, [`prepare`](super::prepare()) accepts
/// them.
pub fn examine(graph: &GraphDef, config: &Config) -> Examined {
    let mut examined = Examined::default();
    match examine_parts(graph, config, &mut examined) {
        Err(error) => push(&mut examined.problems, Problem::of_graph(error)),
        Ok(()) if examined.problems.is_empty() => {
            if let Err(error) = super::prepare(graph.clone(), config.clone()) {
                push(&mut examined.problems, Problem::of_graph(error));
            }
        }
        Ok(()) => {}
    }
    examined
}

/// Collects problems. Returns an error if the problem prevents any further examination.
fn examine_parts(graph: &GraphDef, config: &Config, examined: &mut Examined) -> Result<()> {
    let config = &super::constant_feeds::without(config);
    config::validate(config).coded(Code::Config)?;
    config::dimensions(config).coded(Code::Config)?;
    let names = Names::new(&graph.node).coded(Code::Graph)?;
    let empty = Vec::new();
    let functions = graph.library.as_ref().map_or(&empty, |l| &l.function);
    let signatures = Signatures::new(functions).coded(Code::FunctionLibrary)?;
    let node_of = |name: &str| names.get(name).map(|at| &graph.node[at]);
    let op_of = |name: &str| node_of(name).map_or("", |node| node.op.as_str());

    let mut fed = BTreeMap::new();
    for (at, feed) in config.feed.iter().enumerate() {
        let id = config::id(&feed.id);
        let alone =
            Config { feed: vec![feed.clone()], dimension: config.dimension.clone(), ..Config::default() };
        if let Err(error) = feeds::resolve(&alone, &graph.node, &names, &signatures).coded(Code::Feed) {
            push(&mut examined.problems, Problem::of_node(&id.0, op_of(&id.0), error));
        }
        fed.insert(id, at);
    }
    let mut known = Config::default();
    for fetch in &config.fetch {
        let id = config::id(&fetch.id);
        match node_of(&id.0) {
            None if !fed.contains_key(&id) => push(
                &mut examined.problems,
                Problem::of_node(
                    &id.0,
                    "",
                    Error::invalid(format!("fetch '{}:{}' does not name a node of the graph", id.0, id.1))
                        .coded(Code::Fetch),
                ),
            ),
            _ => known.fetch.push(fetch.clone()),
        }
    }
    let needed = prune::needed(&known, &graph.node, &names, &fed).coded(Code::Graph)?;
    let needed_nodes: Vec<&NodeDef> =
        graph.node.iter().zip(&needed).filter(|(_, needed)| **needed).map(|(node, _)| node).collect();
    sort_by_op(&needed_nodes, functions, &mut examined.ops);
    warn_of_unread_feeds(&needed_nodes, &known, &fed, &mut examined.warnings);
    let types = node_types(&needed_nodes, &signatures, &mut examined.problems);
    check_input_types(&needed_nodes, config, &fed, &types, &mut examined.problems);
    check_fetch_types(&known, &fed, &types, op_of, &mut examined.problems);
    for variable in &config.variable {
        let alone = Config { variable: vec![variable.clone()], ..Config::default() };
        if let Err(error) =
            variables::resolve(&alone, &graph.node, &names, &Graph::new()).coded(Code::Variable)
        {
            let name = &variable.node_name;
            push(&mut examined.problems, Problem::of_node(name, op_of(name), error));
        }
    }
    let configured: BTreeSet<&str> = config.variable.iter().map(|v| v.node_name.as_str()).collect();
    for node in
        needed_nodes.iter().filter(|n| variables::is_variable(&n.op) && !configured.contains(n.name.as_str()))
    {
        let error = Error::invalid(format!(
            "Variable: {} not configured: list it as variable {{ node_name: \"{}\" shape {{ ... }} type: DT_FLOAT }}, \
             or freeze the graph",
            node.name, node.name
        ))
        .coded(Code::Variable);
        push(&mut examined.problems, Problem::of_node(&node.name, &node.op, error));
    }
    Ok(())
}

/// Groups the nodes of the graph and of all functions that they call by op.
fn sort_by_op(nodes: &[&NodeDef], functions: &[FunctionDef], ops: &mut BTreeMap<String, Vec<String>>) {
    let library: BTreeMap<&str, &FunctionDef> =
        functions.iter().filter_map(|f| Some((f.signature.as_ref()?.name.as_str(), f))).collect();
    let mut seen = BTreeSet::new();
    let mut work: Vec<(&str, &NodeDef)> = nodes.iter().rev().map(|node| ("", *node)).collect();
    while let Some((function_name, node)) = work.pop() {
        let mut called = vec![node.op.as_str()];
        for value in node.attr.values() {
            match &value.value {
                Some(Value::Func(func)) => called.push(&func.name),
                Some(Value::List(list)) => called.extend(list.func.iter().map(|func| func.name.as_str())),
                _ => {}
            }
        }
        for name in called {
            if let Some((&name, function)) = library.get_key_value(name)
                && seen.insert(name)
            {
                work.extend(function.node_def.iter().map(|node| (name, node)));
            }
        }
        let name = match function_name {
            "" => node.name.clone(),
            function => format!("{function}/{}", node.name),
        };
        ops.entry(node.op.clone()).or_default().push(name);
    }
}

fn warn_of_unread_feeds(
    nodes: &[&NodeDef],
    config: &Config,
    fed: &BTreeMap<FedOutput, usize>,
    warnings: &mut Vec<String>,
) {
    let mut read: BTreeSet<FedOutput> = config.fetch.iter().map(|fetch| config::id(&fetch.id)).collect();
    for (node, text) in nodes.iter().flat_map(|node| node.input.iter().map(move |text| (node, text))) {
        if let Ok(Input::Data(name, index)) = Input::parse(text, &node.name) {
            read.insert((name.to_owned(), index));
        }
    }
    for id in fed.keys().filter(|id| !read.contains(id)) {
        warnings.push(format!("feed '{}:{}' is not needed: no fetch depends on it", id.0, id.1));
    }
}

/// Types of the inputs and outputs of each node whose op and attributes are valid.
type Types<'a> = BTreeMap<&'a str, (Vec<DataType>, Vec<DataType>)>;

fn node_types<'a>(
    nodes: &[&'a NodeDef],
    signatures: &Signatures<'_>,
    problems: &mut Vec<Problem>,
) -> Types<'a> {
    let mut types = BTreeMap::new();
    for &node in nodes {
        let mut add = |error| push(problems, Problem::of_node(&node.name, &node.op, error));
        if signatures.get(&node.op).is_none() {
            add(unregistered(&[(node.op.as_str(), node.name.as_str())]));
            continue;
        }
        if matches!(node.op.as_str(), "Placeholder" | "PlaceholderV2") {
            add(Error::invalid(format!(
                "placeholder '{}' is needed but not fed: give it a feed in the config, feed {{ id {{ node_name: \
                 \"{}\" }} shape {{ ... }} }}",
                node.name, node.name
            ))
            .coded(Code::Feed));
        }
        match signatures.apply(node, node.attr.clone()) {
            Ok(typed) => {
                types.insert(node.name.as_str(), (typed.input_types, typed.output_types));
            }
            Err(error) => add(error.coded(Code::NodeSignature)),
        }
    }
    types
}

/// Reports inputs that do not exist or have a type other than the op expects.
fn check_input_types(
    nodes: &[&NodeDef],
    config: &Config,
    fed: &BTreeMap<FedOutput, usize>,
    types: &Types<'_>,
    problems: &mut Vec<Problem>,
) {
    for node in nodes {
        let Some((expected, _)) = types.get(node.name.as_str()) else { continue };
        let mut add = |error: Error| {
            push(problems, Problem::of_node(&node.name, &node.op, error.coded(Code::NodeSignature)));
        };
        let inputs = node.input.iter().filter_map(|text| match Input::parse(text, &node.name) {
            Ok(Input::Data(name, index)) => Some((name, index)),
            _ => None,
        });
        let inputs: Vec<(&str, i64)> = inputs.collect();
        if inputs.len() != expected.len() {
            add(Error::invalid(format!(
                "has {} inputs, but its signature and attributes require {}",
                inputs.len(),
                expected.len()
            )));
            continue;
        }
        for (k, ((name, index), &expected)) in inputs.into_iter().zip(expected).enumerate() {
            let actual = match fed.get(&(name.to_owned(), index)) {
                // If the config states no type, the graph's type is used, which is correct.
                Some(&feed) => DataType::from_number(config.feed[feed].r#type),
                None => match types.get(name) {
                    None => None,
                    Some((_, outputs)) => match outputs.get(index as usize) {
                        Some(&actual) => Some(actual),
                        None => {
                            add(Error::invalid(format!(
                                "input {k} is '{name}:{index}', but that node has only {} outputs",
                                outputs.len()
                            )));
                            None
                        }
                    },
                },
            };
            if let Some(actual) = actual
                && actual != expected
                && (expected.is_ref() || actual.base() != expected)
            {
                add(Error::invalid(format!(
                    "input {k} has type {actual} from '{name}:{index}', expected {expected}: correct the type attribute \
                     or the input"
                )));
            }
        }
    }
}

/// Reports fetches of outputs that do not exist or have an unsupported type.
fn check_fetch_types<'a>(
    config: &Config,
    fed: &BTreeMap<FedOutput, usize>,
    types: &Types<'_>,
    op_of: impl Fn(&str) -> &'a str,
    problems: &mut Vec<Problem>,
) {
    for id in config.fetch.iter().map(|fetch| config::id(&fetch.id)).filter(|id| !fed.contains_key(id)) {
        let Some((_, outputs)) = types.get(id.0.as_str()) else { continue };
        let error = match usize::try_from(id.1).ok().and_then(|index| outputs.get(index)) {
            None if outputs.is_empty() && id.1 == 0 => continue,
            None => Error::invalid(format!(
                "fetch '{}:{}' names an output that does not exist: the node has {} outputs",
                id.0,
                id.1,
                outputs.len()
            )),
            Some(data_type) if data_type.base().primitive_type().is_none() => Error::unsupported(format!(
                "fetch '{}:{}' has type {data_type}, which cannot be a result: fetch a tensor of numbers or bools",
                id.0, id.1
            )),
            Some(_) => continue,
        };
        push(problems, Problem::of_node(&id.0, op_of(&id.0), error.coded(Code::Fetch)));
    }
}
