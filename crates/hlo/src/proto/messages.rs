//! The messages of `xla/service/hlo.proto`, limited to the parts that are read or written.
//!
//! Fields have XLA's names and numbers; enums are plain integers.

pub use super::data_messages::*;
pub use super::instruction_messages::{FrontendAttributesMessage, HloInstructionProto, OriginalArrayMessage};
use prost::Message;
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Message)]
pub struct HloSnapshot {
    #[prost(message, optional, tag = "1")]
    pub hlo: Option<HloProto>,
    #[prost(message, repeated, tag = "2")]
    pub arguments: Vec<LiteralProto>,
    #[prost(message, optional, tag = "3")]
    pub result: Option<LiteralProto>,
    #[prost(string, tag = "4")]
    pub execution_platform: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct HloProto {
    #[prost(message, optional, tag = "1")]
    pub hlo_module: Option<HloModuleProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct HloModuleProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub entry_computation_name: String,
    #[prost(message, repeated, tag = "3")]
    pub computations: Vec<HloComputationProto>,
    #[prost(message, optional, tag = "4")]
    pub host_program_shape: Option<ProgramShapeProto>,
    #[prost(int64, tag = "5")]
    pub id: i64,
    #[prost(int64, tag = "6")]
    pub entry_computation_id: i64,
    #[prost(message, optional, tag = "7")]
    pub schedule: Option<HloScheduleProto>,
    #[prost(message, optional, tag = "8")]
    pub input_output_alias: Option<HloInputOutputAliasProto>,
    #[prost(message, optional, tag = "18")]
    pub buffer_donor: Option<HloBufferDonorProto>,
    #[prost(message, optional, tag = "19")]
    pub frontend_attributes: Option<FrontendAttributesMessage>,
    #[prost(message, optional, tag = "20")]
    pub original_value_recovery_table: Option<OriginalValueRecoveryTableProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct HloScheduleProto {
    #[prost(btree_map = "int64, message", tag = "1")]
    pub sequences: BTreeMap<i64, InstructionSequenceProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InstructionSequenceProto {
    #[prost(int64, repeated, tag = "1")]
    pub instruction_ids: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct HloInputOutputAliasProto {
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<AliasEntryProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AliasEntryProto {
    #[prost(int64, repeated, tag = "1")]
    pub output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub parameter_number: i64,
    #[prost(int64, repeated, tag = "3")]
    pub parameter_shape_index: Vec<i64>,
    #[prost(int32, tag = "4")]
    pub kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct HloBufferDonorProto {
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<BufferDonorEntryProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct BufferDonorEntryProto {
    #[prost(int64, tag = "1")]
    pub parameter_number: i64,
    #[prost(int64, repeated, tag = "2")]
    pub parameter_shape_index: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OriginalValueRecoveryTableProto {
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<OriginalValueRecoveryProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OriginalValueRecoveryProto {
    #[prost(message, optional, tag = "1")]
    pub old_original_array: Option<OriginalArrayMessage>,
    #[prost(message, optional, tag = "2")]
    pub new_original_array: Option<OriginalArrayMessage>,
    #[prost(message, optional, tag = "3")]
    pub recovery_module: Option<HloModuleProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct HloComputationProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub instructions: Vec<HloInstructionProto>,
    #[prost(message, optional, tag = "4")]
    pub program_shape: Option<ProgramShapeProto>,
    #[prost(int64, tag = "5")]
    pub id: i64,
    #[prost(int64, tag = "6")]
    pub root_id: i64,
    #[prost(bool, tag = "7")]
    pub is_fusion_computation: bool,
    #[prost(string, tag = "8")]
    pub execution_thread: String,
}
