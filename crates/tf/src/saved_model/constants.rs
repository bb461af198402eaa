//! Evaluates the few ops that initializers of tables use.

use super::trace::Trace;
use crate::DataType;
use bytes::Bytes;
use shape::PrimitiveType;
use support::Result;

/// Limit for the elements of an evaluated range.
const MAX_RANGE: i128 = 1 << 24;

/// Elements of a constant tensor, or of a range of integers. Does not return the shape.
pub(super) fn elements<'a>(trace: &Trace<'a>, frame: usize, input: &'a str) -> Option<(DataType, Bytes)> {
    let ((frame, node), _) = trace.origin(frame, input)?;
    match node.op.as_str() {
        "Const" => {
            let tensor = trace.constant(node)?;
            let literal: Result<_> = tensor.literal();
            Some((tensor.data_type(), literal.ok()?.bytes().clone()))
        }
        "Reshape" | "ExpandDims" | "Squeeze" => elements(trace, frame, node.input.first()?),
        "Range" => {
            let [start, limit, delta, ..] = node.input.as_slice() else { return None };
            let scalar = |input: &'a str| {
                let (data_type, bytes) = elements(trace, frame, input)?;
                Some((data_type, number(data_type, &bytes)?))
            };
            let ((data_type, start), (_, limit), (_, delta)) =
                (scalar(start)?, scalar(limit)?, scalar(delta)?);
            range(data_type, start, limit, delta)
        }
        _ => None,
    }
}

fn range(data_type: DataType, start: i128, limit: i128, delta: i128) -> Option<(DataType, Bytes)> {
    let width = data_type.primitive_type()?.byte_size();
    if delta == 0 {
        return None;
    }
    let count = ((limit - start) + delta - delta.signum()) / delta;
    if count > MAX_RANGE {
        return None;
    }
    let mut bytes = Vec::new();
    for k in 0..count.max(0) {
        bytes.extend_from_slice(&(start + k * delta).to_le_bytes()[..width]);
    }
    Some((data_type, bytes.into()))
}

/// Reads a scalar integer.
fn number(data_type: DataType, bytes: &[u8]) -> Option<i128> {
    match data_type.primitive_type()? {
        PrimitiveType::S32 => Some(i32::from_le_bytes(bytes.try_into().ok()?).into()),
        PrimitiveType::S64 => Some(i64::from_le_bytes(bytes.try_into().ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_evaluated() {
        let numbers = |start, limit, delta| {
            let (_, bytes) = range(DataType::Int32, start, limit, delta)?;
            Some(bytes.chunks(4).map(|c| i32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect::<Vec<_>>())
        };
        assert_eq!(numbers(0, 3, 1), Some(vec![0, 1, 2]));
        assert_eq!(numbers(0, 5, 2), Some(vec![0, 2, 4]));
        assert_eq!(numbers(3, 0, -2), Some(vec![3, 1]));
        assert_eq!(numbers(3, 0, 1), Some(vec![]));
        assert_eq!(numbers(0, 3, 0), None);
        assert_eq!(numbers(0, 1 << 40, 1), None);
    }
}
