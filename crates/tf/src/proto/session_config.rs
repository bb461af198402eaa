//! Session configuration: the part of `tensorflow.ConfigProto` that applies to one machine without
//! accelerators.

use prost::Message;
use std::collections::BTreeMap;

/// `tensorflow.ConfigProto`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of config.proto")]
pub struct ConfigProto {
    #[prost(btree_map = "string, int32", tag = "1")]
    pub device_count: BTreeMap<String, i32>,
    #[prost(int32, tag = "2")]
    pub intra_op_parallelism_threads: i32,
    #[prost(int32, tag = "5")]
    pub inter_op_parallelism_threads: i32,
    #[prost(message, optional, tag = "6")]
    pub gpu_options: Option<GpuOptions>,
    #[prost(bool, tag = "7")]
    pub allow_soft_placement: bool,
    #[prost(bool, tag = "8")]
    pub log_device_placement: bool,
    #[prost(message, optional, tag = "10")]
    pub graph_options: Option<GraphOptions>,
    #[prost(int64, tag = "11")]
    pub operation_timeout_in_ms: i64,
}

/// `tensorflow.GPUOptions`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of config.proto")]
pub struct GpuOptions {
    #[prost(double, tag = "1")]
    pub per_process_gpu_memory_fraction: f64,
    #[prost(bool, tag = "4")]
    pub allow_growth: bool,
    /// Numbers of devices, separated by commas.
    #[prost(string, tag = "5")]
    pub visible_device_list: String,
}

/// `tensorflow.GraphOptions`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of config.proto")]
pub struct GraphOptions {
    #[prost(message, optional, tag = "3")]
    pub optimizer_options: Option<OptimizerOptions>,
}

/// `tensorflow.OptimizerOptions`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of config.proto")]
pub struct OptimizerOptions {
    /// Level of just-in-time compilation: 1, 2, 0 for the default, or -1 for off.
    #[prost(int32, tag = "5")]
    pub global_jit_level: i32,
    #[prost(bool, tag = "7")]
    pub cpu_global_jit: bool,
}
