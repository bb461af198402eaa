//! Infers the config of a graph without one: its fetches, feeds, and variables.
//!
//! Everything follows from the graph alone. The fetch is the only sink of the graph. Feeds are the
//! placeholders and outputs of input pipelines upstream of the fetch. Variables are those upstream
//! of the fetch. Everything that cannot be inferred is collected, with the flag that sets it, so
//! that a single run reports all of it.

mod dims;
mod edges;
mod feeds;
mod fetches;
mod names;
mod sinks;
mod stated;
mod variables;
mod writes;

pub use dims::DimSize;
pub(crate) use stated::{Reached, complete, reach};

use super::names::Names;
use super::signatures::Signatures;
use super::{FedOutput, prune};
use crate::proto::{Config, Dim, Fetch, GraphDef, TensorId, TensorShapeProto};
use edges::{Edges, Output};
use feeds::{Shapes, Sources};
use fetches::Finder;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Range of leading dimensions without a size that users get if they state none.
pub const BATCH_RANGE: (i64, i64) = (1, 64);

/// User-supplied hints.
#[derive(Clone, Debug, Default)]
pub struct InferOptions {
    /// Nodes to fetch. If empty, the only sink of the graph is fetched. A node without outputs runs
    /// for its updates.
    pub fetches: Vec<(String, i64)>,
    /// Shapes of feeds, which must be compatible with the shapes in the graph. `None` stands for a
    /// size that the graph or `dims` states.
    pub shapes: BTreeMap<(String, i64), Vec<Option<i64>>>,
    /// Sizes that are unknown in the graph: `batch` is the size of leading dimensions of feeds, and
    /// `NODE.D` or `NODE:K.D` is the size of dimension `D` of one feed. Other names are those that
    /// the model gives to its dimensions, and those that [`DimSize::Named`] refers to.
    pub dims: BTreeMap<String, DimSize>,
    /// Range of unknown leading dimensions of feeds for which `dims` has no size. Without it, their
    /// sizes must be stated.
    pub batch_range: Option<(i64, i64)>,
    /// Sizes with code of their own, by the name of the dimension, which has a range.
    pub sizes: BTreeMap<String, Vec<i64>>,
    /// Names in `dims` and `sizes` that another function of the model may have instead of this one.
    pub shared_names: BTreeSet<String>,
    /// Values of feeds that become constants, by the name of the feed or its node: numbers that
    /// commas separate.
    pub constants: BTreeMap<String, String>,
}

/// An inferred config, with notes and problems.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// The config, which is complete if there are no problems.
    pub config: Config,
    /// Choices that the user may want to know about.
    pub notes: Vec<String>,
    /// Properties that could not be inferred, with fixes. Each may have several lines.
    pub problems: Vec<String>,
    /// Flags for [`InferOptions::shared_names`] without effect.
    pub unused: Vec<String>,
}

/// Infers a config. Returns an error only if the graph itself is invalid; missing parts of the
/// config are problems of the result.
pub fn infer(graph: &GraphDef, options: &InferOptions) -> Result<Inferred> {
    Ends::find(graph, options)?.finish(graph)
}

/// The feeds and fetches of a graph, before its variables are determined. In between, variables may
/// be replaced by their values.
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
        let mut fetch_names = names::UsedNames::default();
        for id in &ids {
            let fetch = Fetch { id: tensor_id(id), name: fetch_names.claim(id), ..Fetch::default() };
            inferred.config.fetch.push(fetch);
        }
        // Rejects inputs from missing nodes before anything follows the inputs.
        prune::needed(&inferred.config, &graph.node, &node_names, &BTreeMap::new())?;

        let roots = ids.iter().filter_map(|id| Some(Output { node: node_names.get(&id.0)?, index: id.1 }));
        let mut feed_names = names::UsedNames::default();
        for output in sources.needed_by(roots) {
            match feeds::feed(graph, &edges, output, &signatures, &mut shapes) {
                Ok(Some(mut feed)) => {
                    feed.name = feed_names.claim(&(graph.node[output.node].name.clone(), output.index));
                    inferred.config.feed.push(feed);
                }
                Ok(None) => {}
                Err(problem) => inferred.problems.push(problem.message().to_owned()),
            }
        }
        Ok(Self { inferred, shapes })
    }

    /// Returns the feeds and fetches as a config.
    pub(crate) fn config(&self) -> &Config {
        &self.inferred.config
    }

    /// Adds the variables. In the meantime, some may have been replaced by constants of the graph.
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

/// Returns the signatures of ops and of the graph's functions.
fn signatures(graph: &GraphDef) -> Result<Signatures<'_>> {
    Signatures::new(graph.library.as_ref().map_or(&[][..], |library| library.function.as_slice()))
}

fn tensor_id(id: &FedOutput) -> Option<TensorId> {
    Some(TensorId { node_name: id.0.clone(), output_index: id.1 })
}

/// Returns a shape of known sizes.
fn proto(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}
