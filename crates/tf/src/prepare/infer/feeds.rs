//! Which outputs are fed, and with what shape: placeholders, and what comes out of input pipelines.

use super::super::FedOutput;
use super::super::feeds::stated_shape;
use super::super::signatures::Signatures;
use super::edges::{Edges, Output};
use super::{InferOptions, Inferred, proto, tensor_id};
use crate::proto::{Feed, GraphDef, NodeDef, attr_value::Value};
use crate::{DataType, PartialShape};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// The first version of graphs in which a placeholder's shape without sizes is that of a scalar.
const SCALAR_PLACEHOLDERS: i32 = 24;

/// The name of the size that leading dimensions share.
const BATCH: &str = "batch";

/// True if a node holds a value that the caller supplies.
pub(super) fn is_placeholder(op: &str) -> bool {
    matches!(op, "Placeholder" | "PlaceholderV2")
}

/// True if a node reads batches from an input pipeline, so that its outputs are fed instead.
pub(super) fn is_pipeline(op: &str) -> bool {
    op.starts_with("IteratorGetNext") && op != "IteratorGetNextAsOptional"
        || op.starts_with("QueueDequeue")
        || op == "MultiDeviceIteratorGetNextFromShard"
}

/// Feeds of a graph according to the flags.
pub(super) struct Sources<'a> {
    graph: &'a GraphDef,
    edges: &'a Edges,
    /// The placeholders with a default that are fed all the same.
    fed_defaults: BTreeSet<usize>,
}

impl<'a> Sources<'a> {
    /// A placeholder with a default keeps it, unless the user gives it a shape, or the default
    /// comes out of a pipeline or another placeholder.
    pub(super) fn new(graph: &'a GraphDef, edges: &'a Edges, options: &InferOptions) -> Self {
        let named: BTreeSet<&str> = options.shapes.keys().map(|id| id.0.as_str()).collect();
        let dims: Vec<&str> =
            options.dims.keys().filter_map(|name| name.rsplit_once('.')).map(|(feed, _)| feed).collect();
        let op = |at: usize| graph.node[at].op.as_str();
        let given = (0..graph.node.len()).filter(|&at| is_placeholder(op(at)) || is_pipeline(op(at)));
        let from_outside = edges.computed_from(given);
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

    /// The outputs that must be fed to compute some others, in the order of the graph.
    pub(super) fn needed_by(&self, roots: impl IntoIterator<Item = Output>) -> BTreeSet<Output> {
        let mut found = BTreeSet::new();
        let mut seen = vec![false; self.graph.node.len()];
        let mut work = Vec::new();
        let mut visit = |output: Output, work: &mut Vec<usize>| {
            if self.is_source(output.node) {
                found.insert(output);
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
        found
    }
}

/// A feed with unspecified sizes.
#[derive(Clone, Debug)]
struct Open {
    label: String,
    stated: PartialShape,
    sizes: Option<Vec<Option<i64>>>,
}

/// The shapes of feeds, from the graph and the flags.
#[derive(Clone, Debug)]
pub(super) struct Shapes {
    options: InferOptions,
    producer: i32,
    used_shapes: BTreeSet<FedOutput>,
    used_dims: BTreeSet<String>,
    /// The names that `--dim` could have given.
    known_dims: BTreeSet<String>,
    open: Vec<Open>,
}

impl Shapes {
    pub(super) fn new(graph: &GraphDef, options: InferOptions) -> Self {
        let producer = graph.versions.as_ref().map_or(0, |v| v.producer);
        let (used_shapes, used_dims, known_dims) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { options, producer, used_shapes, used_dims, known_dims, open: Vec::new() }
    }

    /// The given shape of a variable, or of another node that is not a feed.
    pub(super) fn given(&mut self, id: &FedOutput) -> Option<&[Option<i64>]> {
        let given = self.options.shapes.get(id)?;
        self.used_shapes.insert(id.clone());
        Some(given)
    }

    /// The sizes of a feed. `None` if some are missing, which [`Self::finish`] reports.
    pub(super) fn sizes(&mut self, id: &FedOutput, stated: PartialShape) -> Result<Option<Vec<i64>>> {
        let label = label(id);
        let mut sizes = stated.dimensions.clone();
        if let Some(given) = self.given(id) {
            let have = sizes.get_or_insert_with(|| given.to_vec());
            let fits = have.len() == given.len()
                && have.iter().zip(given).all(|(h, g)| h.is_none() || g.is_none() || h == g);
            if !fits {
                let given = PartialShape { dimensions: Some(given.to_vec()) };
                return Err(Error::invalid(format!(
                    "feed '{label}' has shape {stated} in the graph, which {given} does not fit: correct --shape"
                )));
            }
            have.iter_mut().zip(given).for_each(|(have, given)| *have = have.or(*given));
        }
        for (d, size) in sizes.iter_mut().flatten().enumerate() {
            let name = format!("{label}.{d}");
            let own = self.options.dims.get(&name);
            if let Some(&given) = own {
                self.used_dims.insert(name.clone());
                if size.is_some_and(|size| size != given) {
                    return Err(Error::invalid(format!(
                        "dimension {d} of feed '{label}' has size {} in the graph, not {given}: correct --dim {name}",
                        size.unwrap_or_default()
                    )));
                }
            }
            let batch = self.options.dims.get(BATCH).filter(|_| d == 0);
            if size.is_none() && own.is_none() && batch.is_some() {
                self.used_dims.insert(BATCH.to_owned());
            }
            *size = size.or(own.copied()).or(batch.copied());
            self.known_dims.insert(name);
        }
        let known = sizes.as_ref().and_then(|sizes| sizes.iter().copied().collect());
        if known.is_none() {
            self.open.push(Open { label, stated, sizes });
        }
        Ok(known)
    }

    /// Reports sizes that are missing, and flags that mean nothing.
    pub(super) fn finish(self, inferred: &mut Inferred) {
        if !self.open.is_empty() {
            let lines = self.open.iter().map(|open| format!("\n    {}", open.line()));
            inferred.problems.push(format!(
                "not all sizes of the feeds are known; give them with these flags, with your numbers:{}",
                lines.collect::<String>()
            ));
        }
        for id in self.options.shapes.keys().filter(|id| !self.used_shapes.contains(*id)) {
            inferred.problems.push(format!(
                "a shape is given for '{}:{}', which is not a placeholder that the fetches need; correct --shape",
                id.0, id.1
            ));
        }
        for name in self.options.dims.keys().filter(|name| !self.used_dims.contains(*name)) {
            if name == BATCH {
                inferred.notes.push(
                    "--dim batch changes nothing: no leading dimension of a feed is left open".to_owned(),
                );
                continue;
            }
            let known: Vec<&str> = self.known_dims.iter().take(12).map(String::as_str).collect();
            inferred.problems.push(format!(
                "--dim {name} names no dimension of a feed: there are {BATCH}, {}",
                known.join(", ")
            ));
        }
    }
}

impl Open {
    /// The feed, and the flags that would do.
    fn line(&self) -> String {
        let Self { label, stated, sizes } = self;
        let Some(sizes) = sizes else {
            return format!(
                "feed '{label}', of which not even the rank is known: --shape {label}=SIZES, such as 1,224,224,3 \
                 (nothing for a scalar)"
            );
        };
        let open = sizes.iter().enumerate().filter(|(_, size)| size.is_none());
        let dims = open.map(|(d, _)| match d {
            0 => format!("--dim {BATCH}=1"),
            d => format!("--dim {label}.{d}=1"),
        });
        let dims: Vec<String> = dims.collect();
        let whole: Vec<String> = sizes.iter().map(|size| size.unwrap_or(1).to_string()).collect();
        format!(
            "feed '{label}' of shape {stated}: {}, or --shape {label}={}",
            dims.join(" "),
            whole.join(",")
        )
    }
}

/// An output as flags name it.
pub(super) fn label(id: &FedOutput) -> String {
    if id.1 == 0 { id.0.clone() } else { format!("{}:{}", id.0, id.1) }
}

/// The feed of an output; `None` if it cannot be made, which is reported then or in the end.
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
    let Some(sizes) = shapes.sizes(&id, stated)? else { return Ok(None) };
    Ok(Some(Feed {
        id: tensor_id(&id),
        shape: Some(proto(&sizes)),
        r#type: data_type.number(),
        ..Feed::default()
    }))
}

fn feed_type(node: &NodeDef, id: &FedOutput, signatures: &Signatures<'_>) -> Result<DataType> {
    let what = if is_placeholder(&node.op) {
        format!("placeholder '{}'", node.name)
    } else {
        format!("'{}' (op {})", label(id), node.op)
    };
    let (_, types) = signatures.output_types(node)?;
    let data_type = usize::try_from(id.1).ok().and_then(|k| types.get(k)).map(|t| t.base());
    let data_type =
        data_type.ok_or_else(|| Error::invalid(format!("{what} has only {} outputs", types.len())))?;
    if data_type.primitive_type().is_none() {
        return Err(Error::unsupported(format!(
            "{what} has type {data_type}, which cannot be an argument: fetch something that does not need it, or give \
             a config that feeds tensors of numbers or bools behind it"
        )));
    }
    Ok(data_type)
}

/// The shape of what a pipeline makes: an iterator's is its attribute; a queue's is that of its
/// elements, with how many are taken in front.
fn pipeline_shape(graph: &GraphDef, edges: &Edges, at: usize, index: i64) -> PartialShape {
    let node = &graph.node[at];
    let noted = stated_shape(node, index);
    if noted != PartialShape::UNKNOWN {
        return noted;
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

/// The feeds of a config by what they replace.
pub(super) fn by_output(feeds: &[Feed]) -> BTreeMap<FedOutput, usize> {
    feeds.iter().enumerate().map(|(i, feed)| (super::super::config::id(&feed.id), i)).collect()
}
