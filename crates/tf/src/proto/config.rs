//! `tensorflow.tf2xla.Config`. The older `tensorflow.tfcompile.Config` has a subset of its fields,
//! with the same numbers.

use super::TensorShapeProto;
use prost::Message;

/// Inputs, outputs, and variables of the program to compile.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tf2xla.proto")]
pub struct Config {
    #[prost(message, repeated, tag = "1")]
    pub feed: Vec<Feed>,
    #[prost(message, repeated, tag = "2")]
    pub fetch: Vec<Fetch>,
    #[prost(message, repeated, tag = "3")]
    pub variable: Vec<Variable>,
    /// Dimensions whose sizes the caller chooses at run time. A field of this compiler, which
    /// tf2xla does not have.
    #[prost(message, repeated, tag = "1000")]
    pub dimension: Vec<Dimension>,
}

/// A dimension whose size the caller chooses at run time. In the shapes of feeds, a size of -1 with
/// its name stands for it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Dimension {
    /// The name, which no feed has.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The smallest size.
    #[prost(int64, tag = "2")]
    pub min: i64,
    /// The largest size.
    #[prost(int64, tag = "3")]
    pub max: i64,
    /// Sizes with code of their own.
    #[prost(int64, repeated, tag = "4")]
    pub size: Vec<i64>,
}

impl Config {
    /// Returns the config of the same program for a fixed size of a dimension.
    #[must_use]
    pub fn with_size(mut self, dimension: &str, size: i64) -> Self {
        let shapes = self.feed.iter_mut().filter_map(|feed| feed.shape.as_mut());
        for dim in shapes.flat_map(|shape| &mut shape.dim) {
            if dim.size == -1 && dim.name == dimension {
                dim.size = size;
            }
        }
        self.dimension.retain(|known| known.name != dimension);
        self
    }
}

/// An output of a node.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tf2xla.proto")]
pub struct TensorId {
    #[prost(string, tag = "1")]
    pub node_name: String,
    #[prost(int64, tag = "2")]
    pub output_index: i64,
}

/// An argument of the program.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tf2xla.proto")]
pub struct Feed {
    #[prost(message, optional, tag = "1")]
    pub id: Option<TensorId>,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(int32, tag = "4")]
    pub r#type: i32,
    /// Value of a feed that becomes a constant: numbers that commas separate. A field of this
    /// compiler, which tf2xla does not have.
    #[prost(string, tag = "1000")]
    pub constant: String,
}

/// A result of the program. Shape and type are informative only.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tf2xla.proto")]
pub struct Fetch {
    #[prost(message, optional, tag = "1")]
    pub id: Option<TensorId>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, optional, tag = "3")]
    pub shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "4")]
    pub r#type: i32,
}

/// A resource variable that the program reads and, unless readonly, writes.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tf2xla.proto")]
pub struct Variable {
    #[prost(string, tag = "1")]
    pub node_name: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, optional, tag = "3")]
    pub shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "4")]
    pub r#type: i32,
    #[prost(bool, tag = "5")]
    pub readonly: bool,
}
