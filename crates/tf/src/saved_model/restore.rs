//! Maps each variable to its tensor in the checkpoint.
//!
//! The saver's restore op defines the mapping. TensorFlow 1 places it in the graph, TensorFlow 2 in
//! a function. It is analyzed, never run. Checkpoints from other programs are searched by the names
//! of variables.

use super::trace::Trace;
use crate::DataType;
use crate::checkpoint::Checkpoint;
use crate::proto::{GraphDef, NodeDef, SaverDef, attr_value::Value};
use shape::Literal;
use std::collections::BTreeMap;
use support::{Error, Result};

/// A tensor of a checkpoint, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) key: String,
    /// The part: sizes of the whole tensor, followed by start and length in each dimension, for
    /// instance `2 3 0,1:-`. Empty for the whole tensor.
    pub(crate) slice: String,
}

/// Source of each value that the saver restores, keyed by the name of the variable's node.
pub(crate) fn sources(graph: &GraphDef, saver: &SaverDef) -> Result<BTreeMap<String, Source>> {
    let mut trace = Trace::new(graph);
    let mut sources = BTreeMap::new();
    for (frame, assign) in trace.steps(&[saver.restore_op_name.as_str()])? {
        if !matches!(assign.op.as_str(), "Assign" | "AssignVariableOp") {
            continue;
        }
        let [handle, value, ..] = assign.input.as_slice() else { continue };
        let (Some(((0, variable), _)), Some(((at, restore), index))) =
            (trace.origin(frame, handle), trace.origin(frame, value))
        else {
            continue;
        };
        let [_, names, slices, ..] = restore.input.as_slice() else { continue };
        let text = |input| {
            let strings = trace.strings(at, input)?;
            String::from_utf8(strings.get(index)?.to_vec()).ok()
        };
        let source = match restore.op.as_str() {
            "RestoreV2" => text(names).map(|key| Source { key, slice: text(slices).unwrap_or_default() }),
            "Restore" => text(names).map(|key| Source { key, slice: String::new() }),
            "RestoreSlice" => text(names).zip(text(slices)).map(|(key, slice)| Source { key, slice }),
            _ => None,
        };
        if let Some(source) = source {
            sources.insert(variable.name.clone(), source);
        }
    }
    Ok(sources)
}

/// Reads the value of a variable from the saver's source, or else from a key with the variable's
/// name. Returns `None` if the checkpoint has neither.
pub(crate) fn value(
    variable: &NodeDef,
    source: Option<&Source>,
    keys: &BTreeMap<String, String>,
    checkpoint: &Checkpoint,
) -> Result<Option<(DataType, Literal)>> {
    let at_variable = |e: Error| e.context(format!("variable '{}'", variable.name));
    let shared_name = match variable.attr.get("shared_name").and_then(|v| v.value.as_ref()) {
        Some(Value::S(shared)) => std::str::from_utf8(shared).ok().filter(|shared| !shared.is_empty()),
        _ => None,
    };
    let names = [shared_name, Some(variable.name.as_str())].into_iter().flatten();
    let by_name = names.clone().chain(names.filter_map(|name| keys.get(name).map(String::as_str)));
    let by_saver = source.map(|source| (source.key.as_str(), source.slice.as_str()));
    for (key, slice) in by_saver.into_iter().chain(by_name.map(|key| (key, ""))) {
        if let Some(value) = checkpoint.restore(key, slice).map_err(at_variable)? {
            let literal = value.array().map_err(at_variable)?.clone();
            return Ok(Some((value.data_type(), literal)));
        }
    }
    Ok(None)
}
