//! Determines the feeds and their shapes: placeholders, and outputs of input pipelines.

use super::super::FedOutput;
use super::super::feeds::stated_shape;
use super::super::signatures::Signatures;
use super::dims::{BATCH, Dims};
use super::edges::{Edges, Output};
use super::{InferOptions, Inferred, tensor_id};
use crate::proto::{Dim, Feed, GraphDef, NodeDef, TensorShapeProto, attr_value::Value};
use crate::{DataType, PartialShape};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// First graph version in which a placeholder's shape without dimensions means a scalar.
const SCALAR_PLACEHOLDERS: i32 = 24;

/// True if nodes of an op hold a value that the caller supplies.
pub(super) fn is_placeholder(op: &str) -> bool {
    matches!(op, "Placeholder" | "PlaceholderV2")
}

/// True if nodes of an op read batches from an input pipeline, so that their outputs are fed
/// instead.
pub(super) fn is_pipeline(op: &str) -> bool {
    op.starts_with("IteratorGetNext") && op != "IteratorGetNextAsOptional"
        || op.starts_with("QueueDequeue")
        || op == "MultiDeviceIteratorGetNextFromShard"
}

/// The nodes of a graph whose outputs are fed, according to the flags.
pub(super) struct Sources<'a> {
    graph: &'a GraphDef,
    edges: &'a Edges,
    /// Placeholders with a default that are fed anyway.
    fed_defaults: BTreeSet<usize>,
}

impl<'a> Sources<'a> {
    /// Finds the fed nodes. A placeholder with a default is fed only if the user states its shape,
    /// or if the default depends on a pipeline or another placeholder.
    pub(super) fn new(graph: &'a GraphDef, edges: &'a Edges, options: &InferOptions) -> Self {
        let named: BTreeSet<&str> = options.shapes.keys().map(|id| id.0.as_str()).collect();
        let dims: Vec<&str> =
            options.dims.keys().filter_map(|name| name.rsplit_once('.')).map(|(feed, _)| feed).collect();
        let op = |at: usize| graph.node[at].op.as_str();
        let inputs = (0..graph.node.len()).filter(|&at| is_placeholder(op(at)) || is_pipeline(op(at)));
        let from_outside = edges.computed_from(inputs);
        let is_fed = |&at: &usize| {
            let name = graph.node[at].name.as_str();
            op(at) == "PlaceholderWithDefault"
                && (from_outside[at] || named.contains(name) || dims.contains(&name))
        };
        let fed_defaults = (0..graph.node.len()).filter(is_fed).collect();
        Self { graph, edges, fed_defaults }
    }

    /// True if the outputs of a node are fed.
    fn is_source(&self, at: usize) -> bool {
        let op = self.graph.node[at].op.as_str();
        is_placeholder(op) || is_pipeline(op) || self.fed_defaults.contains(&at)
    }

    /// Returns the outputs that must be fed to compute other outputs, in the order of the graph.
    pub(super) fn needed_by(&self, roots: impl IntoIterator<Item = Output>) -> BTreeSet<Output> {
        let mut sources = BTreeSet::new();
        let mut seen = vec![false; self.graph.node.len()];
        let mut work = Vec::new();
        let mut visit = |output: Output, work: &mut Vec<usize>| {
            if self.is_source(output.node) {
                sources.insert(output);
            } else {
                work.push(output.node);
            }
        };
        roots.into_iter().for_each(|root| visit(root, &mut work));
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                self.edges.data[at].iter().for_each(|&input| visit(input, &mut work));
                self.edges.control[at].iter().for_each(|&node| visit(Output { node, index: 0 }, &mut work));
            }
        }
        sources
    }
}

/// A feed with unknown sizes.
#[derive(Clone, Debug)]
struct Open {
    label: String,
    stated: PartialShape,
    /// The sizes, with the names that the model gives to unknown ones.
    sizes: Option<Vec<(Option<Dim>, String)>>,
}

/// The shapes of feeds, from the graph and the flags.
#[derive(Clone, Debug)]
pub(super) struct Shapes {
    given: BTreeMap<FedOutput, Vec<Option<i64>>>,
    producer: i32,
    used_shapes: BTreeSet<FedOutput>,
    dims: Dims,
    open: Vec<Open>,
}

impl Shapes {
    pub(super) fn new(graph: &GraphDef, options: InferOptions) -> Self {
        let producer = graph.versions.as_ref().map_or(0, |v| v.producer);
        let dims = Dims::new(options.dims, options.batch_range, options.sizes, options.shared_names);
        Self { given: options.shapes, producer, used_shapes: BTreeSet::new(), dims, open: Vec::new() }
    }

    /// Returns the shape that the user states for an output, and marks it as used.
    pub(super) fn user_shape(&mut self, id: &FedOutput) -> Option<&[Option<i64>]> {
        let shape = self.given.get(id)?;
        self.used_shapes.insert(id.clone());
        Some(shape)
    }

    /// Marks the name that the model gives to a leading dimension.
    pub(super) fn lead(&mut self, shape: &TensorShapeProto) {
        self.dims.lead(shape);
    }

    /// Returns the shape of a feed, or `None` if some sizes are unknown, which [`Self::finish`]
    /// reports. `names` are the names that the model gives to the dimensions.
    pub(super) fn shape(
        &mut self,
        id: &FedOutput,
        stated: PartialShape,
        names: &[Dim],
    ) -> Result<Option<TensorShapeProto>> {
        let label = label(id);
        let mut sizes = stated.dimensions.clone();
        if let Some(shape) = self.user_shape(id) {
            let sizes = sizes.get_or_insert_with(|| shape.to_vec());
            let fits = sizes.len() == shape.len()
                && sizes.iter().zip(shape).all(|(a, b)| a.is_none() || b.is_none() || a == b);
            if !fits {
                let shape = PartialShape { dimensions: Some(shape.to_vec()) };
                return Err(Error::invalid(format!(
                    "feed '{label}' has shape {stated} in the graph, which is incompatible with {shape}: correct --shape"
                )));
            }
            sizes.iter_mut().zip(shape).for_each(|(size, stated)| *size = size.or(*stated));
        }
        let Some(sizes) = sizes else {
            self.open.push(Open { label, stated, sizes: None });
            return Ok(None);
        };
        let mut dims = Vec::with_capacity(sizes.len());
        for (d, &size) in sizes.iter().enumerate() {
            let name = names.get(d).map_or("", |dim| dim.name.as_str());
            dims.push((self.dims.size(&label, d, size, name)?, name.to_owned()));
        }
        let known: Option<Vec<Dim>> = dims.iter().map(|(dim, _)| dim.clone()).collect();
        if known.is_none() {
            self.open.push(Open { label, stated, sizes: Some(dims) });
        }
        Ok(known.map(|dim| TensorShapeProto { dim, unknown_rank: false }))
    }

    /// Reports unknown sizes, and flags without effect.
    pub(super) fn finish(self, inferred: &mut Inferred) {
        if !self.open.is_empty() {
            let lines = self.open.iter().map(|open| format!("\n    {}", open.line()));
            inferred.problems.push(format!(
                "some sizes of feeds are unknown; set them with these flags, with your own numbers:{}",
                lines.collect::<String>()
            ));
        }
        for id in self.given.keys().filter(|id| !self.used_shapes.contains(*id)) {
            inferred.problems.push(format!(
                "--shape names '{}:{}', which is not a placeholder that the fetches need: correct --shape",
                id.0, id.1
            ));
        }
        self.dims.finish(inferred);
    }
}

impl Open {
    /// Describes the feed and the flags that set its sizes.
    fn line(&self) -> String {
        let Self { label, stated, sizes } = self;
        let Some(sizes) = sizes else {
            return format!(
                "feed '{label}' of unknown rank: --shape {label}=SIZES, for example 1,224,224,3 (empty for a \
                 scalar)"
            );
        };
        let open = sizes.iter().enumerate().filter(|(_, (size, _))| size.is_none());
        let dims = open.map(|(d, (_, name))| match (d, name.as_str()) {
            (0, "") => format!("--dim {BATCH}=1"),
            (d, "") => format!("--dim {label}.{d}=1"),
            (_, name) => format!("--dim {name}=1"),
        });
        let dims: Vec<String> = dims.collect();
        // A range stays open.
        let size = |(size, _): &(Option<Dim>, String)| match size {
            Some(Dim { size: -1, .. }) => "?".to_owned(),
            size => size.as_ref().map_or(1, |dim| dim.size).to_string(),
        };
        let whole: Vec<String> = sizes.iter().map(size).collect();
        format!(
            "feed '{label}' of shape {stated}: {}, or --shape {label}={}",
            dims.join(" "),
            whole.join(",")
        )
    }
}

/// Returns the name of an output in flags.
pub(super) fn label(id: &FedOutput) -> String {
    if id.1 == 0 { id.0.clone() } else { format!("{}:{}", id.0, id.1) }
}

/// Returns the feed of an output, or `None` if its sizes are unknown, which [`Shapes::finish`]
/// reports.
pub(super) fn feed(
    graph: &GraphDef,
    edges: &Edges,
    output: Output,
    signatures: &Signatures<'_>,
    shapes: &mut Shapes,
) -> Result<Option<Feed>> {
    let Output { node: at, index } = output;
    let node = &graph.node[at];
    let id = (node.name.clone(), index);
    let data_type = feed_type(node, &id, signatures)?;
    let mut stated = if is_pipeline(&node.op) {
        pipeline_shape(graph, edges, at, index)
    } else {
        stated_shape(node, index)
    };
    if stated.rank() == Some(0) && shapes.producer < SCALAR_PLACEHOLDERS {
        stated = PartialShape::UNKNOWN;
    }
    let Some(shape) = shapes.shape(&id, stated, &[])? else { return Ok(None) };
    Ok(Some(Feed { id: tensor_id(&id), shape: Some(shape), r#type: data_type.number(), ..Feed::default() }))
}

fn feed_type(node: &NodeDef, id: &FedOutput, signatures: &Signatures<'_>) -> Result<DataType> {
    let label = if is_placeholder(&node.op) {
        format!("placeholder '{}'", node.name)
    } else {
        format!("'{}' (op {})", label(id), node.op)
    };
    let (_, types) = signatures.output_types(node)?;
    let data_type = usize::try_from(id.1).ok().and_then(|k| types.get(k)).map(|t| t.base());
    let data_type =
        data_type.ok_or_else(|| Error::invalid(format!("{label} has only {} outputs", types.len())))?;
    if data_type.primitive_type().is_none() {
        return Err(Error::unsupported(format!(
            "{label} has type {data_type}, which cannot be an argument: fetch nodes that do not depend on it, or use a \
             config that feeds tensors of numbers or bools downstream of it"
        )));
    }
    Ok(data_type)
}

/// Returns the shape of a pipeline's output. An iterator states it in an attribute. A queue states
/// the shape of its elements, which has an unknown leading dimension added if several are dequeued.
fn pipeline_shape(graph: &GraphDef, edges: &Edges, at: usize, index: i64) -> PartialShape {
    let node = &graph.node[at];
    let stated = stated_shape(node, index);
    if stated != PartialShape::UNKNOWN {
        return stated;
    }
    let listed = |node: &NodeDef, name: &str| {
        let Some(Value::List(list)) = node.attr.get(name).and_then(|v| v.value.as_ref()) else { return None };
        list.shape.get(usize::try_from(index).ok()?).and_then(|shape| PartialShape::from_proto(shape).ok())
    };
    if !node.op.starts_with("QueueDequeue") {
        return listed(node, "output_shapes").unwrap_or(PartialShape::UNKNOWN);
    }
    let queue = edges.data[at].first().map(|queue| &graph.node[edges.origin(&graph.node, queue.node)]);
    let mut shape = queue.and_then(|queue| listed(queue, "shapes")).unwrap_or(PartialShape::UNKNOWN);
    if node.op.contains("Many") || node.op.contains("UpTo") {
        shape.dimensions.iter_mut().for_each(|sizes| sizes.insert(0, None));
    }
    shape
}

/// Returns the positions of a config's feeds by the outputs that they replace.
pub(super) fn by_output(feeds: &[Feed]) -> BTreeMap<FedOutput, usize> {
    feeds.iter().enumerate().map(|(i, feed)| (super::super::config::id(&feed.id), i)).collect()
}
