//! Clusters in the bodies of functions that the executor runs.
//!
//! TensorFlow clusters a function's body when the function is instantiated for a call. Here all
//! function bodies are clustered together with the graph. If a function is called outside clusters,
//! or is a branch of a conditional or part of a loop outside clusters, it gets a clustered copy,
//! and those nodes call the copy instead. The function itself stays unchanged, because clusters may
//! call it, too.

use crate::candidates::{COMPILE, Context, MUST_COMPILE};
use crate::graph::attributes::{function_attribute, function_list};
use crate::graph::library::MAX_DEPTH;
use crate::graph::{Graph, NodeId};
use crate::rewrite::encapsulate::to_function;
use crate::rewrite::{COMPILE_ID, Work, rewrite};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;
use tf::proto::attr_value::Value;
use tf::proto::{FunctionDef, NameAttrList};

/// True if any body could contain a cluster.
pub(crate) fn may_be_clustered(context: &Context<'_>, library: &[FunctionDef]) -> bool {
    let is_request = |name: &String| [COMPILE, MUST_COMPILE, COMPILE_ID].contains(&name.as_str());
    context.is_on
        || context.options.devices.values().any(|r| r.policy == crate::devices::Policy::Always)
            && library.iter().flat_map(|f| &f.node_def).any(|node| node.device.contains("XLA_"))
        || library.iter().any(|f| {
            f.attr.keys().any(is_request) || f.node_def.iter().any(|node| node.attr.keys().any(is_request))
        })
}

/// Redirects the nodes of a graph to clustered copies of their callees. Returns true if any copy is
/// used.
pub(crate) fn cluster_callees(
    graph: &mut Graph,
    context: &Context<'_>,
    work: &mut Work<'_>,
    depth: usize,
) -> Result<bool> {
    let mut has_changed = false;
    for id in graph.ids().collect::<Vec<_>>() {
        let node = &graph[id];
        if context.library.definitions.function(node.op()).is_some() {
            let callee = NameAttrList { name: node.op().to_owned(), attr: node.def.attr.clone() };
            if let Some(copy) = copy_of(&callee, context, work, depth)? {
                has_changed = true;
                graph[id].def.op = copy;
            }
            continue;
        }
        let names: &[&str] = match node.op() {
            "PartitionedCall" | "StatefulPartitionedCall" => &["f"],
            "If" | "StatelessIf" => &["then_branch", "else_branch"],
            "While" | "StatelessWhile" => &["cond", "body"],
            "Case" | "StatelessCase" => &["branches"],
            _ => continue,
        };
        for &name in names {
            if let Some(callee) = function_attribute(&graph[id].def.attr, name).cloned()
                && let Some(copy) = copy_of(&callee, context, work, depth)?
            {
                has_changed = true;
                let copy = NameAttrList { name: copy, attr: BTreeMap::new() };
                graph[id].def.attr.insert(name.to_owned(), Value::Func(copy).into());
            }
            for (place, callee) in function_list(&graph[id].def.attr, name).to_vec().into_iter().enumerate() {
                let Some(copy) = copy_of(&callee, context, work, depth)? else { continue };
                has_changed = true;
                if let Some(Value::List(list)) =
                    graph[id].def.attr.get_mut(name).and_then(|v| v.value.as_mut())
                {
                    list.func[place] = NameAttrList { name: copy, attr: BTreeMap::new() };
                }
            }
        }
    }
    Ok(has_changed)
}

/// The clustered copy of a function, or `None` if nothing in it is clustered.
fn copy_of(
    callee: &NameAttrList,
    context: &Context<'_>,
    work: &mut Work<'_>,
    depth: usize,
) -> Result<Option<String>> {
    let Some(original) = context.library.definitions.function(&callee.name).filter(|_| depth < MAX_DEPTH)
    else {
        return Ok(None);
    };
    let body = context.library.body(&callee.name, &callee.attr)?;
    let signature = original.signature.as_ref();
    let own: BTreeSet<&str> = signature.iter().flat_map(|s| &s.attr).map(|attr| attr.name.as_str()).collect();
    let mut key = callee.clone();
    key.attr.retain(|name, _| own.contains(name.as_str()));
    let key = key.encode_to_vec();
    if let Some(known) = work.copies.get(&key) {
        return Ok(known.clone());
    }
    work.copies.insert(key.clone(), None);
    let mut graph = body.graph.clone();
    let by_name: BTreeMap<String, NodeId> = graph.ids().map(|id| (graph[id].name().to_owned(), id)).collect();
    let (is_clustered, replacements) = rewrite(&mut graph, context, &callee.name, work)?;
    let has_callees = cluster_callees(&mut graph, context, work, depth + 1)?;
    if !is_clustered && !has_callees {
        return Ok(None);
    }
    let mut control_ret = BTreeMap::new();
    for (key, node) in &original.control_ret {
        if let Some(id) = by_name.get(node) {
            control_ret.insert(key.clone(), graph[replacements.node(*id)].name().to_owned());
        }
    }
    let mut name = format!("{}__clustered", callee.name);
    let mut number = 0;
    while !work.used_names.insert(name.clone()) {
        number += 1;
        name = format!("{}__clustered_{number}", callee.name);
    }
    let copy = to_function(&graph, original, &name, control_ret)
        .map_err(|e| e.context(format!("function '{name}'")))?;
    work.functions.push(copy);
    work.copies.insert(key, Some(name.clone()));
    Ok(Some(name))
}
