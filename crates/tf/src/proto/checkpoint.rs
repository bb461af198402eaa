//! Checkpoints of both versions, and savers.

use super::{TensorShapeProto, VersionDef};
use bytes::Bytes;
use prost::Message;

/// `tensorflow.SaverDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of saver.proto")]
pub struct SaverDef {
    #[prost(string, tag = "1")]
    pub filename_tensor_name: String,
    #[prost(string, tag = "2")]
    pub save_tensor_name: String,
    #[prost(string, tag = "3")]
    pub restore_op_name: String,
    #[prost(int32, tag = "4")]
    pub max_to_keep: i32,
    #[prost(bool, tag = "5")]
    pub sharded: bool,
    #[prost(float, tag = "6")]
    pub keep_checkpoint_every_n_hours: f32,
    #[prost(int32, tag = "7")]
    pub version: i32,
}

/// `tensorflow.SavedTensorSlices`: a value of a version 1 checkpoint. The value of the empty key
/// contains `meta`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of saved_tensor_slice.proto")]
pub struct SavedTensorSlices {
    #[prost(message, optional, tag = "1")]
    pub meta: Option<SavedTensorSliceMeta>,
    #[prost(message, optional, tag = "2")]
    pub data: Option<SavedSlice>,
}

/// `tensorflow.SavedTensorSliceMeta`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of saved_tensor_slice.proto")]
pub struct SavedTensorSliceMeta {
    #[prost(message, repeated, tag = "1")]
    pub tensor: Vec<SavedSliceMeta>,
    #[prost(message, optional, tag = "2")]
    pub versions: Option<VersionDef>,
}

/// `tensorflow.SavedSliceMeta`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of saved_tensor_slice.proto")]
pub struct SavedSliceMeta {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "3")]
    pub r#type: i32,
    #[prost(message, repeated, tag = "4")]
    pub slice: Vec<TensorSliceProto>,
}

/// `tensorflow.SavedSlice`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of saved_tensor_slice.proto")]
pub struct SavedSlice {
    #[prost(string, tag = "1")]
    pub name: String,
    /// An encoded `TensorSliceProto`.
    #[prost(bytes = "bytes", tag = "2")]
    pub slice: Bytes,
    /// An encoded `TensorProto`, which is decoded on demand.
    #[prost(bytes = "bytes", tag = "3")]
    pub data: Bytes,
}

/// `tensorflow.TensorSliceProto`: a box within a tensor.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tensor_slice.proto")]
pub struct TensorSliceProto {
    #[prost(message, repeated, tag = "1")]
    pub extent: Vec<slice_extent::Extent>,
}

/// The extents of a [`TensorSliceProto`].
pub mod slice_extent {
    use super::*;

    /// `tensorflow.TensorSliceProto.Extent`. Without a length, it covers the whole dimension.
    #[derive(Clone, PartialEq, Message)]
    #[expect(missing_docs, reason = "the names are those of tensor_slice.proto")]
    pub struct Extent {
        #[prost(int64, tag = "1")]
        pub start: i64,
        #[prost(int64, optional, tag = "2")]
        pub length: Option<i64>,
    }
}

/// `tensorflow.BundleHeaderProto`: the value of the empty key in the index of a version 2
/// checkpoint.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tensor_bundle.proto")]
pub struct BundleHeaderProto {
    #[prost(int32, tag = "1")]
    pub num_shards: i32,
    #[prost(int32, tag = "2")]
    pub endianness: i32,
    #[prost(message, optional, tag = "3")]
    pub version: Option<VersionDef>,
}

/// `tensorflow.BundleEntryProto`: location of a tensor's bytes.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tensor_bundle.proto")]
pub struct BundleEntryProto {
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "3")]
    pub shard_id: i32,
    #[prost(int64, tag = "4")]
    pub offset: i64,
    #[prost(int64, tag = "5")]
    pub size: i64,
    #[prost(fixed32, tag = "6")]
    pub crc32c: u32,
    #[prost(message, repeated, tag = "7")]
    pub slices: Vec<TensorSliceProto>,
}

/// `tensorflow.TrackableObjectGraph`: objects whose variables a checkpoint or SavedModel contains.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of trackable_object_graph.proto")]
pub struct TrackableObjectGraph {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<TrackableObject>,
}

/// `tensorflow.TrackableObjectGraph.TrackableObject`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of trackable_object_graph.proto")]
pub struct TrackableObject {
    #[prost(message, repeated, tag = "1")]
    pub children: Vec<ObjectReference>,
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<SerializedTensor>,
    #[prost(message, repeated, tag = "3")]
    pub slot_variables: Vec<SlotVariableReference>,
}

/// `tensorflow.TrackableObjectGraph.TrackableObject.ObjectReference`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of trackable_object_graph.proto")]
pub struct ObjectReference {
    #[prost(int32, tag = "1")]
    pub node_id: i32,
    #[prost(string, tag = "2")]
    pub local_name: String,
}

/// `tensorflow.TrackableObjectGraph.TrackableObject.SerializedTensor`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of trackable_object_graph.proto")]
pub struct SerializedTensor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub full_name: String,
    #[prost(string, tag = "3")]
    pub checkpoint_key: String,
}

/// `tensorflow.TrackableObjectGraph.TrackableObject.SlotVariableReference`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of trackable_object_graph.proto")]
pub struct SlotVariableReference {
    #[prost(int32, tag = "1")]
    pub original_variable_node_id: i32,
    #[prost(string, tag = "2")]
    pub slot_name: String,
    #[prost(int32, tag = "3")]
    pub slot_variable_node_id: i32,
}
