//! Bounds the memory that decoding a file takes, before it is decoded.

use prost::encoding::{WireType, decode_key, decode_varint};

/// Limit for the bytes of a file's decoded messages, without the bytes that they share with it.
pub(crate) const MOST_BYTES: usize = 1 << 30;

/// Deepest nesting of messages. The decoder has the same limit.
const DEEPEST: usize = 100;

/// The messages that contain others, with the numbers of those fields.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    Type,
    Element,
    TensorType,
    Shape,
    Function,
    /// A message without messages.
    Leaf,
}

impl Kind {
    /// The kind of the message in a field.
    fn inner(self, field: u32) -> Option<Self> {
        Some(match (self, field) {
            (Self::Model, 7) | (Self::Attribute, 6) => Self::Graph,
            (Self::Model, 8) | (Self::Function, 9) | (Self::Tensor, 13) | (Self::Shape, 1) => Self::Leaf,
            (Self::Model, 25) => Self::Function,
            (Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Graph, 5) | (Self::Attribute, 5) | (Self::SparseTensor, 1 | 2) => Self::Tensor,
            (Self::Graph, 11..=13) => Self::ValueInfo,
            (Self::Graph, 15) | (Self::Attribute, 22) => Self::SparseTensor,
            (Self::Node, 5) | (Self::Function, 11) => Self::Attribute,
            (Self::ValueInfo, 2) | (Self::Element, 1) | (Self::Attribute, 14) => Self::Type,
            (Self::Type, 1) => Self::TensorType,
            (Self::Type, 4 | 9) => Self::Element,
            (Self::TensorType, 2) => Self::Shape,
            _ => return None,
        })
    }

    /// Bytes of a decoded message in a list, which grows by doubling.
    fn size(self) -> usize {
        use crate::proto::*;
        let own = match self {
            Self::Model => size_of::<ModelProto>(),
            Self::Graph => size_of::<GraphProto>(),
            Self::Node => size_of::<NodeProto>(),
            Self::Attribute => size_of::<AttributeProto>(),
            Self::Tensor => size_of::<TensorProto>(),
            Self::SparseTensor => size_of::<SparseTensorProto>(),
            Self::ValueInfo => size_of::<ValueInfoProto>(),
            Self::Type | Self::TensorType | Self::Element => size_of::<TypeProto>(),
            Self::Shape | Self::Leaf => 64,
            Self::Function => size_of::<FunctionProto>(),
        };
        3 * own
    }

    /// Bytes of the decoded field of bytes, a text, or a packed list.
    fn of_bytes(self, field: u32, length: usize) -> usize {
        match (self, field) {
            // Shared with the file.
            (Self::Tensor, 9) | (Self::Attribute, 4 | 9) => 96,
            (Self::Tensor | Self::Attribute | Self::SparseTensor, _) => length.saturating_mul(8) + 72,
            _ => length + 72,
        }
    }
}

/// Upper bound for the bytes of a model's decoded messages. Stops silently at malformed bytes,
/// because the decoder reports them.
pub(crate) fn of_model(bytes: &[u8]) -> usize {
    of_message(bytes, Kind::Model, 0)
}

fn of_message(mut rest: &[u8], kind: Kind, depth: usize) -> usize {
    let mut total = 0usize;
    if depth > DEEPEST {
        return total;
    }
    while !rest.is_empty() {
        let Ok((field, wire_type)) = decode_key(&mut rest) else { return total };
        let length = match wire_type {
            WireType::Varint => {
                if decode_varint(&mut rest).is_err() {
                    return total;
                }
                // An element of an unpacked list.
                total = total.saturating_add(24);
                continue;
            }
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            WireType::LengthDelimited => match decode_varint(&mut rest).map(usize::try_from) {
                Ok(Ok(length)) => length,
                _ => return total,
            },
            WireType::StartGroup | WireType::EndGroup => 0,
        };
        if length > rest.len() {
            return total;
        }
        let (body, tail) = rest.split_at(length);
        rest = tail;
        total = total.saturating_add(match (wire_type, kind.inner(field)) {
            (WireType::LengthDelimited, Some(inner)) => {
                inner.size().saturating_add(of_message(body, inner, depth + 1))
            }
            (WireType::LengthDelimited, None) => kind.of_bytes(field, length),
            _ => 24,
        });
    }
    total
}

/// True if the top-level fields are those of a model: a version, a graph, and nothing unknown.
pub(crate) fn has_fields_of_model(mut rest: &[u8]) -> bool {
    let (mut has_version, mut has_graph) = (false, false);
    while !rest.is_empty() {
        let Ok((field, wire_type)) = decode_key(&mut rest) else { return false };
        let length = match (wire_type, field) {
            (WireType::Varint, 1 | 5) => {
                has_version |= field == 1;
                if decode_varint(&mut rest).is_err() {
                    return false;
                }
                continue;
            }
            (WireType::LengthDelimited, 2..=4 | 6..=8 | 14 | 20 | 25 | 26) => {
                has_graph |= field == 7;
                match decode_varint(&mut rest).map(usize::try_from) {
                    Ok(Ok(length)) if length <= rest.len() => length,
                    _ => return false,
                }
            }
            _ => return false,
        };
        rest = &rest[length..];
    }
    has_version && has_graph
}
