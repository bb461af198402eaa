//! Bounds the memory that decoding a file takes, before it is decoded.

use prost::encoding::WireType;
use tf::wire::{Field, MAX_DEPTH, fields};

/// Limit for the bytes of a file's decoded messages, without the bytes that they share with it.
pub(crate) const MOST_BYTES: usize = 1 << 30;

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

fn of_message(bytes: &[u8], kind: Kind, depth: usize) -> usize {
    if depth > MAX_DEPTH {
        return 0;
    }
    let of_field = |field: Field<'_>| match (field.wire_type, kind.inner(field.number)) {
        (WireType::LengthDelimited, Some(inner)) => {
            inner.size().saturating_add(of_message(field.value, inner, depth + 1))
        }
        (WireType::LengthDelimited, None) => kind.of_bytes(field.number, field.value.len()),
        // An element of an unpacked list.
        _ => 24,
    };
    fields(bytes).map_while(Result::ok).map(of_field).fold(0, usize::saturating_add)
}

/// True if the top-level fields are those of a model: a version, a graph, and nothing unknown.
pub(crate) fn has_fields_of_model(bytes: &[u8]) -> bool {
    let (mut has_version, mut has_graph) = (false, false);
    for field in fields(bytes) {
        match field.map(|field| (field.wire_type, field.number)) {
            Ok((WireType::Varint, number @ (1 | 5))) => has_version |= number == 1,
            Ok((WireType::LengthDelimited, number @ (2..=4 | 6..=8 | 14 | 20 | 25 | 26))) => {
                has_graph |= number == 7;
            }
            _ => return false,
        }
    }
    has_version && has_graph
}
