//! Strided slices whose length is known although their start is not, for compilers that support a
//! dynamic start.

use crate::graph::attributes::attribute;
use crate::graph::scalars;
use crate::graph::{Edge, Graph, NodeId};
use tf::proto::attr_value::Value;

/// Inputs of `StridedSlice` and `StridedSliceGrad`.
const BEGIN: usize = 1;
const END: usize = 2;
const STRIDES: usize = 3;

/// The nodes that determine the sizes of a slice's result besides its strides, if the values of
/// begin and end do not matter otherwise. That is the case if each dimension is an index, has
/// constant or omitted ends, or goes from a value to the same value plus another. The function
/// returns these other values, or `None` if the graph shows no such form. Strides that the graph
/// does not show count as 1; they must be constant anyway, so the compiler detects other values.
/// Only edges accepted by `follows` are traced.
pub(crate) fn known_length(
    graph: &Graph,
    id: NodeId,
    follows: &dyn Fn(&Edge) -> bool,
) -> Option<Vec<NodeId>> {
    let node = &graph[id];
    let strides = graph.input(id, STRIDES).and_then(|tensor| scalars::ints_of(&graph[tensor.node].def));
    let count = strides
        .as_ref()
        .map(Vec::len)
        .or_else(|| length(graph, id, BEGIN))
        .or_else(|| length(graph, id, END))?;
    let has = |mask: &str, k: usize| match attribute(&node.def.attr, mask) {
        Some(&Value::I(mask)) => k < 64 && mask >> k & 1 == 1,
        _ => false,
    };
    let mut lengths = Vec::new();
    for k in 0..count {
        if ["shrink_axis_mask", "ellipsis_mask", "new_axis_mask"].iter().any(|mask| has(mask, k)) {
            continue;
        }
        let (free_begin, free_end) = (has("begin_mask", k), has("end_mask", k));
        let (begin, end) = (element(graph, id, BEGIN, k, follows), element(graph, id, END, k, follows));
        let is_known = |is_free: bool, element: &Element| is_free || matches!(element, Element::Constant);
        if is_known(free_begin, &begin) && is_known(free_end, &end) {
            continue;
        }
        if free_begin || free_end || strides.as_ref().is_some_and(|strides| strides[k] != 1) {
            return None;
        }
        lengths.extend(difference(graph, &begin, &end, follows)?);
    }
    Some(lengths)
}

/// Number of elements of an input.
fn length(graph: &Graph, id: NodeId, input: usize) -> Option<usize> {
    let source = &graph[graph.input(id, input)?.node];
    match source.op() {
        "Pack" => Some(source.input_types.len()),
        "Const" => scalars::elements(&source.def).and_then(|count| usize::try_from(count).ok()),
        _ => None,
    }
}

/// Knowledge about an element of a vector.
#[derive(Debug)]
enum Element {
    Constant,
    /// The element is this scalar.
    From(Edge),
    Unknown,
}

fn element(graph: &Graph, id: NodeId, input: usize, k: usize, follows: &dyn Fn(&Edge) -> bool) -> Element {
    let Some(vector) = graph.input_edge(id, input).filter(follows) else { return Element::Unknown };
    let source = &graph[vector.src];
    let scalar = match source.op() {
        "Const" => return Element::Constant,
        "Pack" => graph.input_edge(vector.src, k),
        _ => None,
    };
    match scalar {
        Some(edge) if graph[edge.src].is_constant() => Element::Constant,
        Some(edge) => Element::From(edge),
        None => Element::Unknown,
    }
}

/// The summand that is added to `begin` to get `end`: nothing, or a node.
fn difference(
    graph: &Graph,
    begin: &Element,
    end: &Element,
    follows: &dyn Fn(&Edge) -> bool,
) -> Option<Option<NodeId>> {
    let (Element::From(begin), Element::From(end)) = (begin, end) else { return None };
    let is_begin = |edge: &Edge| edge.tensor() == begin.tensor();
    if is_begin(end) {
        return Some(None);
    }
    if !follows(end) || !matches!(graph[end.src].op(), "Add" | "AddV2") {
        return None;
    }
    let (a, b) = (graph.input_edge(end.src, 0)?, graph.input_edge(end.src, 1)?);
    let summand = match (is_begin(&a), is_begin(&b)) {
        (true, _) => b,
        (_, true) => a,
        _ => return None,
    };
    Some(Some(summand).filter(follows).map(|edge| edge.src))
}
