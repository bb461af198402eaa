//! Configs that a model states: a signature's feeds and fetches, with sizes that it leaves open.

use super::super::feeds::stated_shape;
use super::super::names::{Input, Names};
use super::super::{FedOutput, config, prune};
use super::feeds::{Shapes, label};
use super::names::Taken;
use super::{InferOptions, Inferred, proto, signatures, variables};
use crate::PartialShape;
use crate::proto::{Config, Feed, Fetch, GraphDef, Variable};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Part of a graph that the fetches of a config need.
pub(crate) struct Reached {
    /// For each node, whether it is needed or fed.
    pub(crate) needed: Vec<bool>,
    /// The variables among them, with what is known of them and the names of all nodes that are
    /// handles of each.
    pub(crate) variables: Vec<(Variable, Vec<String>)>,
}

/// Finds what the fetches of a config need, its feeds aside.
pub(crate) fn reach(graph: &GraphDef, config: &Config) -> Result<Reached> {
    let (names, fed) = (Names::new(&graph.node)?, fed(config));
    let mut needed = prune::needed(config, &graph.node, &names, &fed)?;
    let signatures = signatures(graph)?;
    let mut inferred = Inferred::default();
    let handles = variables::nodes_of(graph, &needed).into_iter();
    let mut handles: BTreeMap<&str, Vec<String>> = handles
        .map(|nodes| (nodes[0].name.as_str(), nodes.iter().map(|n| n.name.clone()).collect()))
        .collect();
    let mut shapes = Shapes::new(graph, InferOptions::default());
    variables::add(graph, &needed, &signatures, &mut shapes, &mut inferred);
    // Fed nodes count as reached. The graph supplies their types.
    for (name, _) in fed.keys() {
        if let Some(at) = names.get(name) {
            needed[at] = true;
        }
    }
    let with_handles = |variable: Variable| {
        let handles = handles.remove(variable.node_name.as_str()).unwrap_or_default();
        (variable, handles)
    };
    let variables = inferred.config.variable.into_iter().map(with_handles).collect();
    Ok(Reached { needed, variables })
}

fn fed(config: &Config) -> BTreeMap<FedOutput, usize> {
    config.feed.iter().enumerate().map(|(k, feed)| (config::id(&feed.id), k)).collect()
}

/// The config of a graph whose feeds and fetches are stated: names become identifiers, open sizes
/// are closed as the user says, feeds that nothing needs are dropped, variables are added.
pub(crate) fn complete(graph: &GraphDef, stated: &Config, options: &InferOptions) -> Result<Inferred> {
    let (names, fed) = (Names::new(&graph.node)?, fed(stated));
    let signatures = signatures(graph)?;
    let needed = prune::needed(stated, &graph.node, &names, &fed)?;
    let used = used_feeds(graph, &names, stated, &needed, &fed)?;
    let mut inferred = Inferred::default();
    let mut shapes = Shapes::new(graph, by_argument(stated, options));
    let mut taken = Taken::default();
    for (k, feed) in stated.feed.iter().enumerate() {
        let id = config::id(&feed.id);
        let argument = argument(feed);
        if !used.contains(&k) {
            inferred.notes.push(format!(
                "input '{}' ('{}:{}') is not needed for the fetches, and no feed of the program",
                label(&argument),
                id.0,
                id.1
            ));
            shapes.given(&argument);
            continue;
        }
        let node = names.get(&id.0).map(|at| &graph.node[at]).ok_or_else(|| {
            Error::invalid(format!(
                "input '{}' is '{}:{}', which the graph does not have",
                label(&argument),
                id.0,
                id.1
            ))
        })?;
        let shape = match &feed.shape {
            Some(shape) => PartialShape::from_proto(shape).map_err(|e| e.context(label(&argument)))?,
            None => PartialShape::UNKNOWN,
        };
        let shape = if shape == PartialShape::UNKNOWN { stated_shape(node, id.1) } else { shape };
        match shapes.sizes(&argument, shape) {
            Ok(Some(sizes)) => {
                let name = taken.claim(&argument);
                inferred.config.feed.push(Feed { shape: Some(proto(&sizes)), name, ..feed.clone() });
            }
            Ok(None) => {}
            Err(problem) => inferred.problems.push(problem.message().to_owned()),
        }
    }
    let mut taken = Taken::default();
    for fetch in &stated.fetch {
        let id = config::id(&fetch.id);
        let label = if fetch.name.is_empty() { id } else { (fetch.name.clone(), 0) };
        let name = taken.claim(&label);
        inferred.config.fetch.push(Fetch { name, ..fetch.clone() });
    }
    variables::add(graph, &needed, &signatures, &mut shapes, &mut inferred);
    shapes.finish(&mut inferred);
    Ok(inferred)
}

/// Name of a feed in flags: the argument of the signature, or the fed output.
fn argument(feed: &Feed) -> FedOutput {
    if feed.name.is_empty() { config::id(&feed.id) } else { (feed.name.clone(), 0) }
}

/// The options with what they say of nodes said of the arguments that the nodes stand for: users
/// may know either name.
fn by_argument(stated: &Config, options: &InferOptions) -> InferOptions {
    let mut options = options.clone();
    for feed in &stated.feed {
        let (id, argument) = (config::id(&feed.id), argument(feed));
        if id == argument {
            continue;
        }
        if let Some(shape) = options.shapes.remove(&id) {
            options.shapes.entry(argument.clone()).or_insert(shape);
        }
        let prefix = format!("{}.", label(&id));
        let dims: Vec<String> =
            options.dims.keys().filter(|name| name.starts_with(&prefix)).cloned().collect();
        for name in dims {
            if let Some(size) = options.dims.remove(&name) {
                options.dims.entry(format!("{}.{}", label(&argument), &name[prefix.len()..])).or_insert(size);
            }
        }
    }
    options
}

/// The positions of the feeds that the fetches need.
fn used_feeds(
    graph: &GraphDef,
    names: &Names<'_>,
    stated: &Config,
    needed: &[bool],
    fed: &BTreeMap<FedOutput, usize>,
) -> Result<BTreeSet<usize>> {
    let fetched = stated.fetch.iter().filter_map(|fetch| fed.get(&config::id(&fetch.id)));
    let mut used: BTreeSet<usize> = fetched.copied().collect();
    for (node, _) in graph.node.iter().zip(needed).filter(|(_, needed)| **needed) {
        for text in &node.input {
            used.extend(prune::replaced_by(Input::parse(text, &node.name)?, &graph.node, names, fed));
        }
    }
    Ok(used)
}
