//! Completes a config that a model states: the feeds and fetches of a signature, which may have
//! unknown sizes.

use super::super::feeds::stated_shape;
use super::super::names::{Input, Names};
use super::super::{FedOutput, config, prune};
use super::feeds::{Shapes, label};
use super::names::UsedNames;
use super::{InferOptions, Inferred, signatures, variables};
use crate::PartialShape;
use crate::proto::{Config, Feed, Fetch, GraphDef, Variable};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Part of a graph that the fetches of a config need.
pub(crate) struct Reached {
    /// For each node, true if it is needed or fed.
    pub(crate) needed: Vec<bool>,
    /// The needed variables, each with the names of all needed nodes that are handles of it.
    pub(crate) variables: Vec<(Variable, Vec<String>)>,
}

/// Finds the part of a graph that the fetches of a config need, up to its feeds.
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
    // Fed nodes are included, because the graph supplies their types.
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

/// Completes the config of a graph with stated feeds and fetches: converts names to identifiers,
/// sets unknown sizes from the user's options, drops unused feeds, and adds variables.
pub(crate) fn complete(graph: &GraphDef, stated: &Config, options: &InferOptions) -> Result<Inferred> {
    let (names, fed) = (Names::new(&graph.node)?, fed(stated));
    let signatures = signatures(graph)?;
    let needed = prune::needed(stated, &graph.node, &names, &fed)?;
    let used = used_feeds(graph, &names, stated, &needed, &fed)?;
    let mut inferred = Inferred::default();
    let mut shapes = Shapes::new(graph, by_argument(stated, options));
    let mut feed_names = UsedNames::default();
    for (_, feed) in stated.feed.iter().enumerate().filter(|(k, _)| used.contains(k)) {
        feed.shape.iter().for_each(|shape| shapes.lead(shape));
    }
    for (k, feed) in stated.feed.iter().enumerate() {
        let id = config::id(&feed.id);
        let argument = argument(feed);
        if !used.contains(&k) {
            inferred.notes.push(format!(
                "input '{}' ('{}:{}') is not needed for the fetches and is not a feed of the program",
                label(&argument),
                id.0,
                id.1
            ));
            shapes.user_shape(&argument);
            continue;
        }
        let node = names.get(&id.0).map(|at| &graph.node[at]).ok_or_else(|| {
            Error::invalid(format!(
                "input '{}' is '{}:{}', but the graph has no such node",
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
        let names = feed.shape.as_ref().map_or(&[][..], |shape| &shape.dim);
        match shapes.shape(&argument, shape, names) {
            Ok(Some(shape)) => {
                let name = feed_names.claim(&argument);
                inferred.config.feed.push(Feed { shape: Some(shape), name, ..feed.clone() });
            }
            Ok(None) => {}
            Err(problem) => inferred.problems.push(problem.message().to_owned()),
        }
    }
    let mut fetch_names = UsedNames::default();
    for fetch in &stated.fetch {
        let id = config::id(&fetch.id);
        let label = if fetch.name.is_empty() { id } else { (fetch.name.clone(), 0) };
        let name = fetch_names.claim(&label);
        inferred.config.fetch.push(Fetch { name, ..fetch.clone() });
    }
    variables::add(graph, &needed, &signatures, &mut shapes, &mut inferred);
    shapes.finish(&mut inferred);
    Ok(inferred)
}

/// Returns the name of a feed in flags: the argument of the signature, or else the fed output.
fn argument(feed: &Feed) -> FedOutput {
    if feed.name.is_empty() { config::id(&feed.id) } else { (feed.name.clone(), 0) }
}

/// Renames fed nodes in the options to the arguments that they represent, because users may know
/// either name.
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

/// Returns the positions of the feeds that the fetches need.
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
