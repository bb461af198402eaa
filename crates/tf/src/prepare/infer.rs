//! The config of a graph that comes without one: what it computes, what that needs, and which
//! variables it uses.
//!
//! Everything follows from the graph alone: the fetch is the one end that it has, feeds are the
//! placeholders that the fetches need and what comes out of input pipelines, variables those that
//! they reach. All that cannot be inferred is collected, each with the flag that says it, so that
//! one run says all of it.

mod edges;
mod feeds;
mod fetches;
mod names;
mod sinks;
mod stated;
mod variables;
mod writes;

pub(crate) use stated::{Reached, complete, reach};

use super::names::Names;
use super::signatures::Signatures;
use super::{FedOutput, prune};
use crate::proto::{Config, Dim, Fetch, GraphDef, TensorId, TensorShapeProto};
use edges::{Edges, Output};
use feeds::{Shapes, Sources};
use fetches::Finder;
use std::collections::BTreeMap;
use support::Result;

/// User-supplied hints.
#[derive(Clone, Debug, Default)]
pub struct InferOptions {
    /// Nodes to fetch. If empty, the only sink of the graph is fetched. A node without outputs runs
    /// for its updates.
    pub fetches: Vec<(String, i64)>,
    /// Shapes of feeds, which must fit what the graph states; `None` is a size that the graph or
    /// `dims` gives.
    pub shapes: BTreeMap<(String, i64), Vec<Option<i64>>>,
    /// Sizes that the graph leaves open: `batch` is that of leading dimensions of feeds, `NODE.D`
    /// or `NODE:K.D` that of dimension `D` of one feed.
    pub dims: BTreeMap<String, i64>,
}

/// A config, and what there is to say about it.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// The config, complete if there are no problems.
    pub config: Config,
    /// Choices that the user may want to know of.
    pub notes: Vec<String>,
    /// Describes what could not be inferred, and the fix. May have several lines.
    pub problems: Vec<String>,
}

/// Infers a config. An error is about the graph itself; what is missing for a config is in the
/// problems.
pub fn infer(graph: &GraphDef, options: &InferOptions) -> Result<Inferred> {
    Ends::find(graph, options)?.finish(graph)
}

/// The feeds and fetches of a graph whose variables are not known yet: values may take their place
/// first.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    inferred: Inferred,
    shapes: Shapes,
}

impl Ends {
    /// Infers the feeds and fetches.
    pub(crate) fn find(graph: &GraphDef, options: &InferOptions) -> Result<Self> {
        let node_names = Names::new(&graph.node)?;
        let signatures = signatures(graph)?;
        let edges = Edges::new(&graph.node, &node_names);
        let sources = Sources::new(graph, &edges, options);
        let mut inferred = Inferred::default();
        let mut shapes = Shapes::new(graph, options.clone());
        let finder =
            Finder { graph, names: &node_names, edges: &edges, signatures: &signatures, sources: &sources };
        let ids = finder.fetches(options, &mut inferred);
        if ids.is_empty() {
            return Ok(Self { inferred, shapes });
        }
        let mut taken = names::Taken::default();
        for id in &ids {
            let fetch = Fetch { id: tensor_id(id), name: taken.claim(id), ..Fetch::default() };
            inferred.config.fetch.push(fetch);
        }
        // Refuses inputs that name no node, before anything follows them.
        prune::needed(&inferred.config, &graph.node, &node_names, &BTreeMap::new())?;

        let roots = ids.iter().filter_map(|id| Some(Output { node: node_names.get(&id.0)?, index: id.1 }));
        let mut taken = names::Taken::default();
        for output in sources.needed_by(roots) {
            match feeds::feed(graph, &edges, output, &signatures, &mut shapes) {
                Ok(Some(mut feed)) => {
                    feed.name = taken.claim(&(graph.node[output.node].name.clone(), output.index));
                    inferred.config.feed.push(feed);
                }
                Ok(None) => {}
                Err(problem) => inferred.problems.push(problem.message().to_owned()),
            }
        }
        Ok(Self { inferred, shapes })
    }

    /// The feeds and fetches as a config.
    pub(crate) fn config(&self) -> &Config {
        &self.inferred.config
    }

    /// Adds the variables. Some of them may have become constants of the graph in the meantime.
    pub(crate) fn finish(self, graph: &GraphDef) -> Result<Inferred> {
        let Self { mut inferred, mut shapes } = self;
        if inferred.config.fetch.is_empty() {
            return Ok(inferred);
        }
        let (node_names, signatures) = (Names::new(&graph.node)?, signatures(graph)?);
        let fed = feeds::by_output(&inferred.config.feed);
        let needed = prune::needed(&inferred.config, &graph.node, &node_names, &fed)?;
        variables::add(graph, &needed, &signatures, &mut shapes, &mut inferred);
        shapes.finish(&mut inferred);
        Ok(inferred)
    }
}

/// The signatures of ops and of the graph's functions.
fn signatures(graph: &GraphDef) -> Result<Signatures<'_>> {
    Signatures::new(graph.library.as_ref().map_or(&[][..], |library| library.function.as_slice()))
}

fn tensor_id(id: &FedOutput) -> Option<TensorId> {
    Some(TensorId { node_name: id.0.clone(), output_index: id.1 })
}

fn proto(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}
