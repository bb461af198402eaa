//! Which tensor of the checkpoint each variable has.
//!
//! The saver's restore op says it exactly, wherever it stands: in TensorFlow 1 in the graph, in TensorFlow 2 in a function.
//! It is read, never run. Checkpoints that were written by another program are searched by the names of variables.

use super::trace::Trace;
use crate::DataType;
use crate::checkpoint::Checkpoint;
use crate::proto::{GraphDef, NodeDef, SaverDef, attr_value::Value};
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;
use support::{Error, Result};

/// A tensor of a checkpoint, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) key: String,
    /// `2 3 0,1:-`: the sizes of the whole, and of each dimension where the part begins and how long it is. Empty: all.
    pub(crate) slice: String,
}

/// What the saver restores: by the name of the variable's node, where its value is.
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

/// The value of a variable: where the saver finds it, or else under a name of the variable. `None`: there is none.
pub(crate) fn value(
    variable: &NodeDef,
    source: Option<&Source>,
    checkpoint: &Checkpoint,
) -> Result<Option<(DataType, Literal)>> {
    let at_variable = |e: Error| e.context(format!("variable '{}'", variable.name));
    if let Some(Source { key, slice }) = source
        && let Some((data_type, whole)) = checkpoint.tensor(key).map_err(at_variable)?
    {
        let part = part(&whole, slice).map_err(|e| at_variable(e.context(format!("tensor '{key}'"))))?;
        return Ok(Some((data_type, part)));
    }
    let shared_name = match variable.attr.get("shared_name").and_then(|v| v.value.as_ref()) {
        Some(Value::S(shared)) => std::str::from_utf8(shared).ok().filter(|shared| !shared.is_empty()),
        _ => None,
    };
    for name in [shared_name, Some(variable.name.as_str())].into_iter().flatten() {
        if let Some(value) = checkpoint.tensor(name).map_err(at_variable)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// The part of a tensor that `2 3 0,1:-` describes.
fn part(whole: &Literal, slice: &str) -> Result<Literal> {
    if slice.is_empty() {
        return Ok(whole.clone());
    }
    let shape = whole.array_shape();
    let wrong = || Error::invalid(format!("'{slice}' describes no part of a tensor of shape {:?}", shape.sizes()));
    let (sizes, extents) = slice.rsplit_once(' ').unwrap_or(("", slice));
    let sizes: Vec<i64> =
        sizes.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>().map_err(|_| wrong())?;
    let extents: Vec<&str> = if sizes.is_empty() { Vec::new() } else { extents.split(':').collect() };
    if sizes != shape.sizes() || extents.len() != sizes.len() {
        return Err(wrong());
    }
    let (mut starts, mut lengths) = (Vec::new(), Vec::new());
    for (extent, &size) in extents.iter().zip(&sizes) {
        let (start, length) = match extent.split_once(',') {
            None if *extent == "-" => (0, size),
            None => return Err(wrong()),
            Some((start, length)) => {
                let parse = |text: &str| text.parse::<i64>().ok().filter(|value| (0..=size).contains(value));
                let (start, length) = parse(start).zip(parse(length)).ok_or_else(wrong)?;
                (start, length)
            }
        };
        if start + length > size {
            return Err(wrong());
        }
        starts.push(start as usize);
        lengths.push(length);
    }
    let element = shape.element_type.byte_size();
    let part_shape = ArrayShape::new(shape.element_type, &lengths);
    let mut bytes = Vec::with_capacity(part_shape.byte_size() as usize);
    // Rows of the innermost dimension, in row-major order.
    let row = lengths.last().map_or(1, |&length| length as usize) * element;
    let rows: usize = lengths.split_last().map_or(1, |(_, outer)| outer.iter().product::<i64>() as usize);
    if row > 0 {
        let mut index = vec![0usize; lengths.len().saturating_sub(1)];
        for _ in 0..rows {
            let mut offset = 0;
            for (k, &size) in sizes.iter().enumerate() {
                offset = offset * size as usize + starts[k] + index.get(k).copied().unwrap_or(0);
            }
            bytes.extend_from_slice(&whole.bytes()[offset * element..offset * element + row]);
            for (digit, &length) in index.iter_mut().zip(&lengths).rev() {
                *digit += 1;
                if *digit < length as usize {
                    break;
                }
                *digit = 0;
            }
        }
    }
    Literal::from_bytes(part_shape, bytes.into()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::PrimitiveType;

    #[test]
    fn parts_are_cut_out() {
        let bytes: Vec<u8> = (0..12).collect();
        let shape = ArrayShape::new(PrimitiveType::U8, &[2, 3, 2]);
        let whole = Literal::from_bytes(shape, bytes.into()).expect("twelve bytes");
        let bytes = |slice| part(&whole, slice).map(|part| (part.array_shape().sizes(), part.bytes().to_vec()));
        assert_eq!(bytes("").expect("all").1.len(), 12);
        assert_eq!(bytes("2 3 2 -:1,2:-").expect("valid"), (vec![2, 2, 2], vec![2, 3, 4, 5, 8, 9, 10, 11]));
        assert_eq!(bytes("2 3 2 1,1:0,3:1,1").expect("valid"), (vec![1, 3, 1], vec![7, 9, 11]));
        for bad in ["2 3 -:-", "2 3 2 -:-", "2 3 2 -:2,2:-", "2 3 2 -:x:-", "-", "2 3 2 -:-1,1:-", "9 3 2 -:-:-"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
