//! SavedModels and MetaGraphs.

use super::{GraphDef, SaverDef, TensorShapeProto};
use bytes::Bytes;
use prost::Message;
use std::collections::BTreeMap;

/// `tensorflow.SavedModel`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of saved_model.proto")]
pub struct SavedModel {
    #[prost(int64, tag = "1")]
    pub saved_model_schema_version: i64,
    #[prost(message, repeated, tag = "2")]
    pub meta_graphs: Vec<MetaGraphDef>,
}

/// `tensorflow.MetaGraphDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of meta_graph.proto")]
pub struct MetaGraphDef {
    #[prost(message, optional, tag = "1")]
    pub meta_info_def: Option<MetaInfoDef>,
    #[prost(message, optional, tag = "2")]
    pub graph_def: Option<GraphDef>,
    #[prost(message, optional, tag = "3")]
    pub saver_def: Option<SaverDef>,
    #[prost(btree_map = "string, message", tag = "4")]
    pub collection_def: BTreeMap<String, CollectionDef>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub signature_def: BTreeMap<String, SignatureDef>,
    #[prost(message, repeated, tag = "6")]
    pub asset_file_def: Vec<AssetFileDef>,
}

/// `tensorflow.MetaGraphDef.MetaInfoDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of meta_graph.proto")]
pub struct MetaInfoDef {
    #[prost(string, repeated, tag = "4")]
    pub tags: Vec<String>,
    #[prost(string, tag = "5")]
    pub tensorflow_version: String,
}

/// `tensorflow.CollectionDef`: one of the lists is set.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of meta_graph.proto")]
pub struct CollectionDef {
    #[prost(message, optional, tag = "1")]
    pub node_list: Option<NodeList>,
    #[prost(message, optional, tag = "2")]
    pub bytes_list: Option<BytesList>,
}

/// `tensorflow.CollectionDef.NodeList`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of meta_graph.proto")]
pub struct NodeList {
    #[prost(string, repeated, tag = "1")]
    pub value: Vec<String>,
}

/// `tensorflow.CollectionDef.BytesList`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of meta_graph.proto")]
pub struct BytesList {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub value: Vec<Bytes>,
}

/// `tensorflow.SignatureDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of meta_graph.proto")]
pub struct SignatureDef {
    #[prost(btree_map = "string, message", tag = "1")]
    pub inputs: BTreeMap<String, TensorInfo>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub outputs: BTreeMap<String, TensorInfo>,
    #[prost(string, tag = "3")]
    pub method_name: String,
}

/// `tensorflow.TensorInfo`. Without a name, it describes a sparse or composite tensor.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of meta_graph.proto")]
pub struct TensorInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub dtype: i32,
    #[prost(message, optional, tag = "3")]
    pub tensor_shape: Option<TensorShapeProto>,
}

/// `tensorflow.AssetFileDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of meta_graph.proto")]
pub struct AssetFileDef {
    #[prost(message, optional, tag = "1")]
    pub tensor_info: Option<TensorInfo>,
    #[prost(string, tag = "2")]
    pub filename: String,
}
