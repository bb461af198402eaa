//! Statistics of a traced step: when each node ran, and its outputs.

use super::{GraphDef, TensorShapeProto};
use prost::Message;
use std::collections::BTreeMap;

/// `tensorflow.RunMetadata`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of config.proto")]
pub struct RunMetadata {
    #[prost(message, optional, tag = "1")]
    pub step_stats: Option<StepStats>,
    #[prost(message, repeated, tag = "3")]
    pub partition_graphs: Vec<GraphDef>,
}

/// `tensorflow.StepStats`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of step_stats.proto")]
pub struct StepStats {
    #[prost(message, repeated, tag = "1")]
    pub dev_stats: Vec<DeviceStepStats>,
}

/// `tensorflow.DeviceStepStats`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of step_stats.proto")]
pub struct DeviceStepStats {
    #[prost(string, tag = "1")]
    pub device: String,
    #[prost(message, repeated, tag = "2")]
    pub node_stats: Vec<NodeExecStats>,
    #[prost(btree_map = "uint32, string", tag = "3")]
    pub thread_names: BTreeMap<u32, String>,
}

/// `tensorflow.NodeExecStats`. Times named `all_start` or `scheduled` count from the epoch, the
/// others from `all_start`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of step_stats.proto")]
pub struct NodeExecStats {
    #[prost(string, tag = "1")]
    pub node_name: String,
    #[prost(int64, tag = "2")]
    pub all_start_micros: i64,
    #[prost(int64, tag = "3")]
    pub op_start_rel_micros: i64,
    #[prost(int64, tag = "4")]
    pub op_end_rel_micros: i64,
    #[prost(int64, tag = "5")]
    pub all_end_rel_micros: i64,
    #[prost(message, repeated, tag = "6")]
    pub memory: Vec<AllocatorMemoryUsed>,
    #[prost(message, repeated, tag = "7")]
    pub output: Vec<NodeOutput>,
    #[prost(string, tag = "8")]
    pub timeline_label: String,
    #[prost(int64, tag = "9")]
    pub scheduled_micros: i64,
    #[prost(uint32, tag = "10")]
    pub thread_id: u32,
    #[prost(message, repeated, tag = "11")]
    pub referenced_tensor: Vec<AllocationDescription>,
    #[prost(message, optional, tag = "12")]
    pub memory_stats: Option<MemoryStats>,
    #[prost(int64, tag = "13")]
    pub all_start_nanos: i64,
    #[prost(int64, tag = "14")]
    pub op_start_rel_nanos: i64,
    #[prost(int64, tag = "15")]
    pub op_end_rel_nanos: i64,
    #[prost(int64, tag = "16")]
    pub all_end_rel_nanos: i64,
    #[prost(int64, tag = "17")]
    pub scheduled_nanos: i64,
}

/// `tensorflow.NodeOutput`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of step_stats.proto")]
pub struct NodeOutput {
    #[prost(int32, tag = "1")]
    pub slot: i32,
    #[prost(message, optional, tag = "3")]
    pub tensor_description: Option<TensorDescription>,
}

/// `tensorflow.TensorDescription`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of tensor_description.proto")]
pub struct TensorDescription {
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
    #[prost(message, optional, tag = "4")]
    pub allocation_description: Option<AllocationDescription>,
}

/// `tensorflow.AllocationDescription`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of allocation_description.proto")]
pub struct AllocationDescription {
    #[prost(int64, tag = "1")]
    pub requested_bytes: i64,
    #[prost(int64, tag = "2")]
    pub allocated_bytes: i64,
    #[prost(string, tag = "3")]
    pub allocator_name: String,
    #[prost(int64, tag = "4")]
    pub allocation_id: i64,
    #[prost(bool, tag = "5")]
    pub has_single_reference: bool,
    #[prost(uint64, tag = "6")]
    pub ptr: u64,
}

/// `tensorflow.AllocatorMemoryUsed`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of step_stats.proto")]
pub struct AllocatorMemoryUsed {
    #[prost(string, tag = "1")]
    pub allocator_name: String,
    #[prost(int64, tag = "2")]
    pub total_bytes: i64,
    #[prost(int64, tag = "3")]
    pub peak_bytes: i64,
    #[prost(int64, tag = "4")]
    pub live_bytes: i64,
    #[prost(int64, tag = "5")]
    pub allocator_bytes_in_use: i64,
    #[prost(message, repeated, tag = "6")]
    pub allocation_records: Vec<AllocationRecord>,
}

/// `tensorflow.AllocationRecord`: a positive or negative change in bytes.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of step_stats.proto")]
pub struct AllocationRecord {
    #[prost(int64, tag = "1")]
    pub alloc_micros: i64,
    #[prost(int64, tag = "2")]
    pub alloc_bytes: i64,
}

/// `tensorflow.MemoryStats`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of step_stats.proto")]
pub struct MemoryStats {
    #[prost(int64, tag = "1")]
    pub temp_memory_size: i64,
    #[prost(int64, tag = "3")]
    pub persistent_memory_size: i64,
}
