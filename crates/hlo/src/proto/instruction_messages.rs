//! The message of an instruction and its nested messages: everything that text can represent. Other
//! fields are not read.
//!
//! Fields have XLA's names and numbers; enums are plain integers.

use super::data_messages::{
    CholeskyOptionsProto, ConvolutionDimensionNumbersProto, DotDimensionNumbersProto,
    GatherDimensionNumbersProto, LiteralProto, OpMetadataProto, PaddingConfigProto,
    ScatterDimensionNumbersProto, ShapeProto, SliceDimensionsProto, TriangularSolveOptionsProto, WindowProto,
};
use prost::Message;
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Message)]
pub struct HloInstructionProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub opcode: String,
    #[prost(message, optional, tag = "3")]
    pub shape: Option<ShapeProto>,
    #[prost(message, optional, tag = "7")]
    pub metadata: Option<OpMetadataProto>,
    #[prost(message, optional, tag = "8")]
    pub literal: Option<LiteralProto>,
    #[prost(int64, tag = "9")]
    pub parameter_number: i64,
    #[prost(string, tag = "11")]
    pub fusion_kind: String,
    #[prost(int64, tag = "13")]
    pub tuple_index: i64,
    #[prost(int64, repeated, tag = "14")]
    pub dimensions: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    pub window: Option<WindowProto>,
    #[prost(message, optional, tag = "16")]
    pub convolution_dimension_numbers: Option<ConvolutionDimensionNumbersProto>,
    #[prost(message, repeated, tag = "17")]
    pub slice_dimensions: Vec<SliceDimensionsProto>,
    #[prost(int32, tag = "18")]
    pub exponent_bits: i32,
    #[prost(int32, tag = "19")]
    pub mantissa_bits: i32,
    #[prost(int64, repeated, tag = "20")]
    pub dynamic_slice_sizes: Vec<i64>,
    #[prost(message, optional, tag = "21")]
    pub padding_config: Option<PaddingConfigProto>,
    #[prost(bytes = "vec", tag = "22")]
    pub outfeed_config: Vec<u8>,
    #[prost(int32, tag = "23")]
    pub distribution: i32,
    #[prost(float, tag = "24")]
    pub epsilon: f32,
    #[prost(int64, tag = "25")]
    pub feature_index: i64,
    #[prost(int64, tag = "26")]
    pub channel_id: i64,
    #[prost(bytes = "vec", tag = "27")]
    pub infeed_config: Vec<u8>,
    #[prost(string, tag = "28")]
    pub custom_call_target: String,
    #[prost(message, optional, tag = "29")]
    pub outfeed_shape: Option<ShapeProto>,
    #[prost(message, optional, tag = "30")]
    pub dot_dimension_numbers: Option<DotDimensionNumbersProto>,
    #[prost(int32, tag = "31")]
    pub fft_type: i32,
    #[prost(int64, repeated, tag = "32")]
    pub fft_length: Vec<i64>,
    #[prost(message, optional, tag = "33")]
    pub gather_dimension_numbers: Option<GatherDimensionNumbersProto>,
    #[prost(int64, repeated, tag = "34")]
    pub gather_slice_sizes: Vec<i64>,
    #[prost(int64, tag = "35")]
    pub id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub operand_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "37")]
    pub control_predecessor_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub called_computation_ids: Vec<i64>,
    #[prost(message, optional, tag = "40")]
    pub sharding: Option<ShardingMessage>,
    #[prost(bytes = "vec", tag = "43")]
    pub backend_config: Vec<u8>,
    #[prost(bool, tag = "47")]
    pub is_host_transfer: bool,
    #[prost(message, optional, tag = "48")]
    pub scatter_dimension_numbers: Option<ScatterDimensionNumbersProto>,
    #[prost(message, repeated, tag = "49")]
    pub replica_groups: Vec<ReplicaGroupMessage>,
    #[prost(int64, tag = "50")]
    pub feature_group_count: i64,
    #[prost(message, optional, tag = "51")]
    pub precision_config: Option<PrecisionMessage>,
    #[prost(message, repeated, tag = "52")]
    pub source_target_pairs: Vec<SourceTargetMessage>,
    #[prost(message, optional, tag = "54")]
    pub domain_entry_sharding: Option<ShardingMessage>,
    #[prost(message, optional, tag = "55")]
    pub domain_exit_sharding: Option<ShardingMessage>,
    #[prost(bool, tag = "56")]
    pub constrain_layout: bool,
    #[prost(message, repeated, tag = "57")]
    pub operand_shapes_with_layout: Vec<ShapeProto>,
    #[prost(int64, tag = "58")]
    pub batch_group_count: i64,
    #[prost(message, optional, tag = "59")]
    pub triangular_solve_options: Option<TriangularSolveOptionsProto>,
    #[prost(bool, tag = "60")]
    pub is_stable: bool,
    #[prost(message, optional, tag = "61")]
    pub parameter_replication: Option<ParameterReplicationMessage>,
    #[prost(message, optional, tag = "62")]
    pub cholesky_options: Option<CholeskyOptionsProto>,
    #[prost(string, tag = "63")]
    pub comparison_direction: String,
    #[prost(bool, tag = "65")]
    pub custom_call_has_side_effect: bool,
    #[prost(int64, tag = "66")]
    pub delta: i64,
    #[prost(bool, tag = "67")]
    pub indices_are_sorted: bool,
    #[prost(message, optional, tag = "68")]
    pub frontend_attributes: Option<FrontendAttributesMessage>,
    #[prost(bool, tag = "69")]
    pub unique_indices: bool,
    #[prost(int32, tag = "70")]
    pub rng_algorithm: i32,
    #[prost(bool, tag = "71")]
    pub use_global_device_ids: bool,
    #[prost(string, tag = "72")]
    pub comparison_type: String,
    #[prost(message, repeated, tag = "74")]
    pub output_operand_aliasing: Vec<OutputOperandAliasingMessage>,
    #[prost(int32, tag = "75")]
    pub padding_type: i32,
    #[prost(int32, tag = "76")]
    pub custom_call_schedule: i32,
    #[prost(int32, tag = "77")]
    pub custom_call_api_version: i32,
    #[prost(string, tag = "79")]
    pub async_execution_thread: String,
    #[prost(int32, optional, tag = "80")]
    pub cross_program_prefetch_index: Option<i32>,
    #[prost(int64, tag = "81")]
    pub k: i64,
    #[prost(bool, tag = "85")]
    pub largest: bool,
    #[prost(message, optional, tag = "82")]
    pub statistics_viz: Option<StatisticsMessage>,
    #[prost(message, optional, tag = "87")]
    pub collective_device_list: Option<DeviceListMessage>,
    #[prost(message, optional, tag = "88")]
    pub original_value: Option<OriginalValueMessage>,
    #[prost(bool, tag = "89")]
    pub is_composite: bool,
    #[prost(message, optional, tag = "90")]
    pub ragged_dot_dimension_numbers: Option<RaggedDotMessage>,
    #[prost(message, optional, tag = "91")]
    pub result_accuracy: Option<ResultAccuracyMessage>,
    #[prost(message, optional, tag = "92")]
    pub iota_collective_device_list: Option<IotaGroupsMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ShardingMessage {
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(int64, repeated, tag = "3")]
    pub tile_assignment_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub tile_assignment_devices: Vec<i64>,
    #[prost(message, repeated, tag = "5")]
    pub tuple_shardings: Vec<ShardingMessage>,
    #[prost(bool, tag = "6")]
    pub replicate_on_last_tile_dim: bool,
    #[prost(message, repeated, tag = "7")]
    pub metadata: Vec<OpMetadataProto>,
    #[prost(int32, repeated, tag = "8")]
    pub last_tile_dims: Vec<i32>,
    #[prost(int64, repeated, tag = "9")]
    pub iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "10")]
    pub iota_transpose_perm: Vec<i32>,
    #[prost(bool, tag = "11")]
    pub is_shard_group: bool,
    #[prost(int64, tag = "12")]
    pub shard_group_id: i64,
    #[prost(int32, tag = "13")]
    pub shard_group_type: i32,
    /// A sharding by named mesh axes. XLA's text supports it; here, only its presence is checked.
    #[prost(bytes = "vec", optional, tag = "14")]
    pub named_sharding: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReplicaGroupMessage {
    #[prost(int64, repeated, tag = "1")]
    pub replica_ids: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DeviceListMessage {
    #[prost(message, repeated, tag = "1")]
    pub replica_groups: Vec<ReplicaGroupMessage>,
    #[prost(message, optional, tag = "2")]
    pub iota_replica_group_list: Option<IotaGroupsMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IotaGroupsMessage {
    #[prost(int64, tag = "1")]
    pub num_replica_groups: i64,
    #[prost(int64, tag = "2")]
    pub num_devices_per_group: i64,
    #[prost(int64, repeated, tag = "3")]
    pub iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "4")]
    pub iota_transpose_perm: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SourceTargetMessage {
    #[prost(int64, tag = "1")]
    pub source: i64,
    #[prost(int64, tag = "2")]
    pub target: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct PrecisionMessage {
    #[prost(int32, repeated, tag = "1")]
    pub operand_precision: Vec<i32>,
    #[prost(int32, tag = "2")]
    pub algorithm: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ParameterReplicationMessage {
    #[prost(bool, repeated, tag = "1")]
    pub replicated_at_leaf_buffers: Vec<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FrontendAttributesMessage {
    #[prost(btree_map = "string, string", tag = "1")]
    pub map: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OutputOperandAliasingMessage {
    #[prost(int64, repeated, tag = "1")]
    pub output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub operand_index: i64,
    #[prost(int64, repeated, tag = "3")]
    pub operand_shape_index: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RaggedDotMessage {
    #[prost(message, optional, tag = "1")]
    pub dot_dimension_numbers: Option<DotDimensionNumbersProto>,
    #[prost(int64, repeated, tag = "2")]
    pub lhs_ragged_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub rhs_group_dimensions: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StatisticsMessage {
    #[prost(int64, tag = "1")]
    pub stat_index_to_visualize: i64,
    #[prost(message, repeated, tag = "2")]
    pub statistics: Vec<StatisticMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StatisticMessage {
    #[prost(string, tag = "1")]
    pub stat_name: String,
    #[prost(double, tag = "2")]
    pub stat_val: f64,
}

#[derive(Clone, PartialEq, Message)]
pub struct OriginalValueMessage {
    #[prost(message, repeated, tag = "1")]
    pub elements: Vec<OriginalElementMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OriginalElementMessage {
    #[prost(int64, repeated, tag = "1")]
    pub shape_index: Vec<i64>,
    #[prost(message, optional, tag = "2")]
    pub original_array: Option<OriginalArrayMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OriginalArrayMessage {
    #[prost(string, tag = "1")]
    pub instruction_name: String,
    #[prost(int64, repeated, tag = "2")]
    pub shape_index: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResultAccuracyMessage {
    #[prost(int32, tag = "1")]
    pub mode: i32,
    #[prost(message, optional, tag = "2")]
    pub tolerance: Option<ToleranceMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ToleranceMessage {
    #[prost(double, tag = "1")]
    pub atol: f64,
    #[prost(double, tag = "2")]
    pub rtol: f64,
    #[prost(int64, tag = "3")]
    pub ulps: i64,
}
