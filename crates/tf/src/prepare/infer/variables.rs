//! The variables of a config: those that the fetches reach, each once, however many nodes name it.

use super::super::signatures::Signatures;
use super::super::variables::{is_variable, resource};
use super::feeds::{Shapes, label};
use super::writes::Writes;
use super::{Inferred, names, proto};
use crate::proto::{GraphDef, NodeDef, Variable, attr_value::Value};
use crate::{DataType, PartialShape};
use std::collections::BTreeMap;

/// The needed nodes of each variable, the first of a variable being the one that the config names.
pub(super) fn nodes_of<'a>(graph: &'a GraphDef, needed: &[bool]) -> Vec<Vec<&'a NodeDef>> {
    let mut groups: Vec<Vec<&NodeDef>> = Vec::new();
    let mut known = BTreeMap::new();
    for (at, node) in graph.node.iter().enumerate() {
        if !needed[at] || !is_variable(&node.op) {
            continue;
        }
        let group = *known.entry(resource(node)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(node);
    }
    // The node that bears the variable's own name stands for it.
    for group in &mut groups {
        if let Some(own) = group.iter().position(|node| resource(node).name == node.name) {
            group.swap(0, own);
        }
    }
    groups
}

/// Adds the variables that the fetches reach.
pub(super) fn add(
    graph: &GraphDef,
    needed: &[bool],
    signatures: &Signatures<'_>,
    shapes: &mut Shapes,
    inferred: &mut Inferred,
) {
    let mut writes = Writes::new(graph, needed, signatures);
    let mut taken = names::Taken::default();
    let mut open = Vec::new();
    for nodes in nodes_of(graph, needed) {
        let node = nodes[0];
        let id = (node.name.clone(), 0);
        let mut variable = Variable {
            node_name: node.name.clone(),
            name: taken.claim(&id),
            readonly: !nodes.iter().any(|node| writes.writes(node)),
            ..Variable::default()
        };
        let stated = stated(node);
        let given = shapes.given(&id).and_then(|given| given.iter().copied().collect::<Option<Vec<i64>>>());
        match stated.sizes().or_else(|| given.filter(|given| stated.allows(given))) {
            Some(sizes) => variable.shape = Some(proto(&sizes)),
            None => open.push(format!("\n    '{}' of shape {stated}: --shape {}=...", node.name, label(&id))),
        }
        if let Some(Value::Type(number)) = node.attr.get("dtype").and_then(|v| v.value.as_ref()) {
            variable.r#type = DataType::from_number(*number).map_or(0, |t| t.base().number());
        }
        inferred.config.variable.push(variable);
    }
    if !open.is_empty() {
        inferred.problems.push(format!(
            "shapes of variables are not known; give them, with your numbers, or freeze the graph:{}",
            open.concat()
        ));
    }
    let count = inferred.config.variable.len();
    if count > 0 {
        let written = inferred.config.variable.iter().filter(|v| !v.readonly).count();
        // A graph that writes a variable cannot be frozen.
        let hint = if written == 0 { ". `tfcompile freeze` makes constants of them" } else { "" };
        inferred.notes.push(format!(
            "the program has {count} variable{}, {written} of them written; the caller holds their values{hint}",
            if count == 1 { "" } else { "s" }
        ));
    }
}

/// The shape that a variable's node states.
fn stated(node: &NodeDef) -> PartialShape {
    match node.attr.get("shape").and_then(|v| v.value.as_ref()) {
        Some(Value::Shape(shape)) => PartialShape::from_proto(shape).unwrap_or(PartialShape::UNKNOWN),
        _ => PartialShape::UNKNOWN,
    }
}
