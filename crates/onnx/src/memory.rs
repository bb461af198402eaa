//! Bounds the memory that decoding a file takes, before it is decoded.
//!
//! The bound counts what the decoder allocates, field by field: lists with the room that they have
//! after growing, texts, and boxes. Byte fields share the file's memory.

use prost::encoding::WireType;
use tf::wire::{Field, MAX_DEPTH, fields};

/// Limit for the bytes of a file's decoded messages, without the bytes that they share with it.
pub(crate) const MOST_BYTES: usize = 1 << 30;

/// Largest number of a field that is a list, and one more.
const FIELDS: usize = 26;

/// Bytes of an allocation besides its contents.
const ALLOCATION: usize = 16;

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

    /// True if a field with messages is a list.
    fn is_list(self, field: u32) -> bool {
        match self {
            Self::Model => field != 7,
            Self::Graph | Self::Node | Self::Function | Self::Shape => true,
            Self::Tensor => field == 13,
            _ => false,
        }
    }

    /// Bytes of a decoded message.
    fn size(self) -> usize {
        use crate::proto::*;
        match self {
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
        }
    }

    /// The form of the elements in a field that is not a message.
    fn element(self, field: u32) -> Element {
        match (self, field) {
            (Self::Attribute, 7) | (Self::Tensor, 4) => Element::Fixed(4),
            (Self::Tensor, 10) => Element::Fixed(8),
            (Self::Attribute, 8) | (Self::Tensor, 1 | 7 | 11) | (Self::SparseTensor, 3) => Element::Varint(8),
            (Self::Tensor, 5) => Element::Varint(4),
            (Self::Attribute, 9) => Element::Shared,
            (Self::Tensor, 9) | (Self::Attribute, 4) => Element::None,
            (Self::Node, 1 | 2) | (Self::Function, 4 | 5) => Element::Text,
            _ => Element::SingleText,
        }
    }
}

/// The form of a field's elements: their bytes, if the field is a list.
#[derive(Clone, Copy)]
enum Element {
    /// A list of numbers that have the same size in the file.
    Fixed(usize),
    /// A list of numbers of any length in the file.
    Varint(usize),
    /// A list of byte strings that share the file's memory.
    Shared,
    /// A list of texts.
    Text,
    /// A text, if it has a length.
    SingleText,
    /// Nothing but the bytes of the file.
    None,
}

/// The lists of a message: elements of each, and the bytes of one.
struct Lists([(usize, usize); FIELDS]);

impl Lists {
    fn add(&mut self, field: u32, count: usize, size: usize) {
        if let Some((counts, own)) = self.0.get_mut(field as usize) {
            (*counts, *own) = (*counts + count, size);
        }
    }
}

/// The count of a model's bytes.
#[derive(Default)]
struct Count {
    kept: usize,
    /// Bytes of the room that the largest list leaves when it grows for the last time.
    left: usize,
}

impl Count {
    fn add(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_add(bytes);
    }

    fn lists(&mut self, lists: &Lists) {
        for &(count, size) in lists.0.iter().filter(|(count, _)| *count > 0) {
            // The room doubles when it is exhausted.
            let room = count.max(4).next_power_of_two().saturating_mul(size);
            self.add(room + ALLOCATION);
            self.left = self.left.max(room / 2);
        }
    }

    /// Adds what a message refers to.
    fn message(&mut self, bytes: &[u8], kind: Kind, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let mut lists = Lists([(0, 0); FIELDS]);
        for Field { number, wire_type, value } in fields(bytes).map_while(Result::ok) {
            let has_length = wire_type == WireType::LengthDelimited;
            if has_length && let Some(inner) = kind.inner(number) {
                if kind.is_list(number) {
                    lists.add(number, 1, inner.size());
                } else {
                    // In a box, if it is not a part of this message.
                    self.add(inner.size() + ALLOCATION);
                }
                self.message(value, inner, depth + 1);
                continue;
            }
            match kind.element(number) {
                Element::Fixed(size) => {
                    lists.add(number, if has_length { value.len() / size } else { 1 }, size);
                }
                Element::Varint(size) => {
                    let ends = || value.iter().filter(|&&byte| byte < 0x80).count();
                    lists.add(number, if has_length { ends() } else { 1 }, size);
                }
                Element::Shared => lists.add(number, 1, size_of::<bytes::Bytes>()),
                Element::Text => {
                    lists.add(number, 1, size_of::<String>());
                    self.add(value.len() + 2 * ALLOCATION);
                }
                Element::SingleText if has_length => self.add(value.len() + 2 * ALLOCATION),
                Element::SingleText | Element::None => {}
            }
        }
        self.lists(&lists);
    }
}

/// Upper bound for the bytes of a model's decoded messages. Stops silently at malformed bytes,
/// because the decoder reports them.
pub(crate) fn of_model(bytes: &[u8]) -> usize {
    let mut count = Count::default();
    count.message(bytes, Kind::Model, 0);
    count.kept.saturating_add(count.left)
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

#[cfg(test)]
mod tests {
    use super::{MOST_BYTES, of_model};
    use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
    use bytes::Bytes;
    use prost::Message;
    use prost::encoding::encode_varint;
    use std::collections::BTreeMap;

    fn with_attribute(attribute: AttributeProto) -> ModelProto {
        let node = NodeProto { attribute: vec![attribute], ..NodeProto::default() };
        let graph = GraphProto { node: vec![node], ..GraphProto::default() };
        ModelProto { graph: Some(graph), ..ModelProto::default() }
    }

    /// Bytes of the lists and texts of a model as the decoder leaves them.
    fn allocated(model: &ModelProto) -> usize {
        fn list<T>(values: &Vec<T>) -> usize {
            values.capacity() * size_of::<T>()
        }
        let graph = model.graph.as_ref().expect("a graph");
        let mut bytes = size_of::<GraphProto>() + list(&graph.node) + list(&graph.initializer);
        for tensor in &graph.initializer {
            bytes += list(&tensor.dims) + list(&tensor.int32_data) + list(&tensor.double_data);
        }
        for node in &graph.node {
            bytes += list(&node.attribute) + list(&node.input);
            bytes += node.input.iter().map(String::capacity).sum::<usize>();
            for attribute in &node.attribute {
                bytes += list(&attribute.ints) + list(&attribute.floats) + list(&attribute.strings);
            }
        }
        bytes
    }

    #[test]
    fn the_bound_is_what_the_decoder_allocates() {
        let ints = AttributeProto { ints: (0..5000).collect(), ..AttributeProto::default() };
        let floats = AttributeProto { floats: vec![1.0; 9000], ..AttributeProto::default() };
        let strings =
            AttributeProto { strings: vec![Bytes::from_static(b"LEAF"); 3000], ..AttributeProto::default() };
        let mut many = with_attribute(AttributeProto::default());
        let graph = many.graph.as_mut().expect("a graph");
        graph.node = vec![NodeProto { input: vec!["value".to_owned(); 3], ..NodeProto::default() }; 700];
        let mut constants = many.clone();
        let graph = constants.graph.as_mut().expect("a graph");
        graph.node.clear();
        graph.initializer = vec![
            TensorProto {
                dims: vec![40],
                int32_data: vec![-1; 40],
                double_data: vec![0.5; 40],
                ..TensorProto::default()
            };
            500
        ];
        for model in [with_attribute(ints), with_attribute(floats), with_attribute(strings), many, constants]
        {
            let bytes = model.encode_to_vec();
            let decoded = ModelProto::decode(Bytes::from(bytes.clone())).expect("a model");
            let (bound, least) = (of_model(&bytes), allocated(&decoded));
            // The largest list leaves half of its room when it grows, and allocations have headers.
            assert!(least <= bound && bound < least * 2, "{bound} bytes for {least}");
        }
    }

    #[test]
    fn files_are_decoded_up_to_the_limit() {
        // Nodes without contents: two bytes each.
        let model = |count: usize| {
            let mut bytes = vec![7 << 3 | 2];
            encode_varint(2 * count as u64, &mut bytes);
            bytes.extend([1 << 3 | 2, 0].repeat(count));
            bytes
        };
        // 168 bytes each, and half as much while the list grows.
        assert!((1008 << 20..=MOST_BYTES).contains(&of_model(&model(1 << 22))), "{}", size_of::<NodeProto>());
        let above = Bytes::from(model((1 << 22) + 1));
        let mut external = |_: &str| Ok(Bytes::new());
        let error = crate::read(&above, &BTreeMap::new(), &mut external).expect_err("above the limit");
        assert!(error.to_string().contains("would take 2016 MiB, but at most 1024 MiB"), "{error}");
    }
}
