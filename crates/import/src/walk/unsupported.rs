//! Rejects unsupported nodes before anything is built, and lists all of them in one error.

use crate::node::rule::{Rule, RuleTable};
use crate::walk::needed_nodes::needed_nodes;
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Error, Result};
use tf::proto::attr_value::Value;
use tf::{DataType, Node, NodeId, Program};

/// Maximum number of nodes to name per op and type.
const NAMED: usize = 5;

/// A node that cannot be compiled.
pub(crate) struct Unsupported {
    /// Its name, prefixed with that of its function.
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) reason: String,
}

/// Returns every unsupported node, in the graph and in all functions reachable from it.
pub(crate) fn find(rules: &RuleTable, program: &Program) -> Vec<Unsupported> {
    let mut unsupported_nodes = Vec::new();
    let mut waiting = vec![(String::new(), &program.graph, None)];
    let mut seen = BTreeSet::new();
    while let Some((place, graph, needed)) = waiting.pop() {
        for (id, node) in graph.nodes.iter() {
            if needed.as_ref().is_some_and(|needed: &BTreeSet<NodeId>| !needed.contains(&id)) {
                continue;
            }
            if let Some(reason) = reason(rules, program, node) {
                let name = format!("{place}{}", node.name);
                unsupported_nodes.push(Unsupported { name, op: node.op.clone(), reason });
            }
            for name in called_functions(program, node) {
                if seen.insert(name.to_owned())
                    && let Some(function) = program.library.get(name)
                {
                    let needed = needed_nodes(rules, program, function);
                    waiting.push((format!("{name}/"), &function.graph, Some(needed)));
                }
            }
        }
    }
    unsupported_nodes
}

/// Returns an error that lists every unsupported node, if there are any.
pub(crate) fn check(rules: &RuleTable, program: &Program) -> Result<()> {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in find(rules, program) {
        by_reason.entry(node.reason).or_default().push(format!("'{}'", node.name));
    }
    if by_reason.is_empty() {
        return Ok(());
    }
    let count: usize = by_reason.values().map(Vec::len).sum();
    let mut message = match count {
        1 => "1 node of the graph cannot be compiled:".to_owned(),
        count => format!("{count} nodes of the graph cannot be compiled:"),
    };
    for (reason, nodes) in by_reason {
        let more = nodes.len().saturating_sub(NAMED);
        let named = nodes.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let plural = if nodes.len() == 1 { "node" } else { "nodes" };
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        message.push_str(&format!("\n  {reason}: {plural} {named}{more}"));
    }
    message.push_str("\nFeed what they compute, or fetch something that does not need them.");
    Err(Error::unsupported(message).coded(Code::UnsupportedOp))
}

/// Explains why a node is not supported.
pub(crate) fn reason(rules: &RuleTable, program: &Program, node: &Node) -> Option<String> {
    let types = node_types(node);
    match rules.find(&node.op) {
        Some(rule) => unsupported_type(rule, node),
        None if node.op == "_Arg" || program.library.get(&node.op).is_some() => None,
        None => match node.op.as_str() {
            "Enter" | "Exit" | "NextIteration" | "LoopCond" => {
                Some(format!("op {}{types} is not part of a loop as TensorFlow builds them", node.op))
            }
            op => Some(explained(op, &types)),
        },
    }
}

/// Returns the message that an op is not supported, with advice on what to do instead.
pub fn unsupported_op(op: &str) -> String {
    explained(op, "")
}

fn explained(op: &str, types: &str) -> String {
    match advice(op) {
        Some(advice) => format!("op {op}{types} is not supported: {advice}"),
        None => format!("op {op}{types} is not supported"),
    }
}

/// Advice for ops that compiled code deliberately does not perform.
fn advice(op: &str) -> Option<&'static str> {
    Some(match op {
        "DecodeJpeg" | "DecodeAndCropJpeg" | "DecodePng" | "DecodeGif" | "DecodeBmp" | "DecodeWebP"
        | "DecodeImage" | "EncodeJpeg" | "EncodePng" | "ExtractJpegShape" => {
            "compiled code does not read image files; decode the image before the call and feed its \
             pixels, [height, width, channels]: name this node's output as a feed in the config"
        }
        "DecodeRaw"
        | "DecodePaddedRaw"
        | "DecodeCSV"
        | "DecodeWav"
        | "DecodeCompressed"
        | "DecodeBase64"
        | "ParseExample"
        | "ParseExampleV2"
        | "ParseSingleExample"
        | "ParseSequenceExample"
        | "ParseSequenceExampleV2"
        | "ParseTensor" => {
            "compiled code does not process strings; parse before the call and feed the numbers: name this node's \
             outputs as feeds in the config"
        }
        "ReadFile" | "WriteFile" | "MatchingFiles" | "RestoreV2" | "SaveV2" | "Save" | "Restore" => {
            "compiled code does not read or write files; feed the node's outputs instead"
        }
        "PyFunc" | "PyFuncStateless" | "EagerPyFunc" => {
            "a Python function cannot be compiled; write it with TensorFlow's ops"
        }
        _ => return None,
    })
}

/// Explains why the op of a node, or one of its types, is not supported.
pub(crate) fn reason_of_op(rules: &RuleTable, node: &Node) -> Option<String> {
    match rules.find(&node.op) {
        Some(rule) => unsupported_type(rule, node),
        None => Some(explained(&node.op, &node_types(node))),
    }
}

/// Explains the first type of a node that its rule does not accept.
fn unsupported_type(rule: &Rule, node: &Node) -> Option<String> {
    for constraint in rule.types.iter().flatten() {
        let attribute = constraint.attribute;
        if !node.attributes.has(attribute) {
            continue;
        }
        // Any type of a list may be the unsupported one. A malformed attribute is reported when the
        // node is translated.
        let types = match node.attributes.ty(attribute) {
            Ok(data_type) => vec![data_type],
            Err(_) => node.attributes.types(attribute).unwrap_or_default(),
        };
        if let Some(data_type) = types.iter().find(|t| !constraint.types.contains(&t.base())) {
            let known: Vec<&str> = constraint.types.iter().map(|t| t.name()).collect();
            return Some(format!(
                "op {} is supported, but not for {attribute}={data_type} (only {})",
                node.op,
                known.join(", ")
            ));
        }
    }
    None
}

/// Formats the type attributes of a node.
fn node_types(node: &Node) -> String {
    let types = node.attributes.values().iter().filter_map(|(name, value)| match value.value {
        Some(Value::Type(number)) if !name.starts_with('_') => {
            Some(format!("{name}={}", DataType::from_number(number)?))
        }
        _ => None,
    });
    let types: Vec<String> = types.collect();
    if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) }
}

/// Returns the functions that a node names, as its op or in its attributes.
fn called_functions<'a>(program: &Program, node: &'a Node) -> Vec<&'a str> {
    let mut names = Vec::new();
    if program.library.get(&node.op).is_some() {
        names.push(node.op.as_str());
    }
    for value in node.attributes.values().values() {
        match &value.value {
            Some(Value::Func(func)) => names.push(func.name.as_str()),
            Some(Value::List(list)) => names.extend(list.func.iter().map(|func| func.name.as_str())),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_on_files_and_strings_are_rejected_with_advice() {
        let pixels = unsupported_op("DecodeJpeg");
        assert!(
            pixels.starts_with("op DecodeJpeg is not supported: compiled code does not read image files"),
            "{pixels}"
        );
        assert!(pixels.contains("feed its pixels, [height, width, channels]"), "{pixels}");
        assert_eq!(unsupported_op("Strange"), "op Strange is not supported");
    }
}
