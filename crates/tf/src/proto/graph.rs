//! Graphs.

use super::function::FunctionDefLibrary;
use super::node::NodeDef;
use prost::Message;

/// `tensorflow.GraphDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of graph.proto")]
pub struct GraphDef {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeDef>,
    #[prost(message, optional, tag = "4")]
    pub versions: Option<VersionDef>,
    #[prost(message, optional, tag = "2")]
    pub library: Option<FunctionDefLibrary>,
}

/// `tensorflow.VersionDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of versions.proto")]
pub struct VersionDef {
    #[prost(int32, tag = "1")]
    pub producer: i32,
    #[prost(int32, tag = "2")]
    pub min_consumer: i32,
    #[prost(int32, repeated, tag = "3")]
    pub bad_consumers: Vec<i32>,
}
