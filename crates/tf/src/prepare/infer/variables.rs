//! Adds variables to a config: the variables that the fetches need, each only once even if several
//! nodes name it.

use super::super::signatures::Signatures;
use super::super::variables::{is_variable, resource};
use super::feeds::{Shapes, label};
use super::writes::Writes;
use super::{Inferred, names, proto};
use crate::proto::{GraphDef, NodeDef, Variable, attr_value::Value};
use crate::{DataType, PartialShape};
use std::collections::BTreeMap;

/// Returns the needed nodes of each variable. The config names the first node of each.
pub(super) fn nodes_of<'a>(graph: &'a GraphDef, needed: &[bool]) -> Vec<Vec<&'a NodeDef>> {
    let mut groups: Vec<Vec<&NodeDef>> = Vec::new();
    let mut group_of = BTreeMap::new();
    for (at, node) in graph.node.iter().enumerate() {
        if !needed[at] || !is_variable(&node.op) {
            continue;
        }
        let group = *group_of.entry(resource(node)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(node);
    }
    // A node with the variable's own name represents the variable.
    for group in &mut groups {
        if let Some(own) = group.iter().position(|node| resource(node).name == node.name) {
            group.swap(0, own);
        }
    }
    groups
}

/// Adds the variables that the fetches need.
pub(super) fn add(
    graph: &GraphDef,
    needed: &[bool],
    signatures: &Signatures<'_>,
    shapes: &mut Shapes,
    inferred: &mut Inferred,
) {
    let mut writes = Writes::new(graph, needed, signatures);
    let mut used_names = names::UsedNames::default();
    let mut open = Vec::new();
    for nodes in nodes_of(graph, needed) {
        let node = nodes[0];
        let id = (node.name.clone(), 0);
        let mut variable = Variable {
            node_name: node.name.clone(),
            name: used_names.claim(&id),
            readonly: !nodes.iter().any(|node| writes.writes(node)),
            ..Variable::default()
        };
        let stated = stated_shape(node);
        let user_shape =
            shapes.user_shape(&id).and_then(|shape| shape.iter().copied().collect::<Option<Vec<i64>>>());
        match stated.sizes().or_else(|| user_shape.filter(|sizes| stated.allows(sizes))) {
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
            "some shapes of variables are unknown; set them with these flags, with your own numbers, or freeze the \
             graph:{}",
            open.concat()
        ));
    }
    let count = inferred.config.variable.len();
    if count > 0 {
        let updated = inferred.config.variable.iter().filter(|v| !v.readonly).count();
        // A graph that writes a variable cannot be frozen.
        let hint = if updated == 0 { ". `tfcompile freeze` converts them to constants" } else { "" };
        inferred.notes.push(format!(
            "the program has {count} variable{}, {updated} of them written; the caller stores their values{hint}",
            if count == 1 { "" } else { "s" }
        ));
    }
}

/// Returns the shape that a variable's node states.
fn stated_shape(node: &NodeDef) -> PartialShape {
    match node.attr.get("shape").and_then(|v| v.value.as_ref()) {
        Some(Value::Shape(shape)) => PartialShape::from_proto(shape).unwrap_or(PartialShape::UNKNOWN),
        _ => PartialShape::UNKNOWN,
    }
}
