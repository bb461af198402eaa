//! Fields of each message, with their names in text format.
//!
//! The tables contain more fields than the structs of [`crate::proto`], so that a text may use any
//! field that exists in TensorFlow.

use crate::DataType;
use crate::proto::*;
use std::string::String as Text;

/// A message's name and fields.
pub(crate) struct MessageType {
    /// Fully qualified name.
    pub(crate) name: &'static str,
    /// Fields in the order of their definition.
    pub(crate) fields: &'static [Field],
    /// Name of the oneof, for messages that consist of a single oneof.
    pub(crate) oneof: Option<&'static str>,
    /// Size in bytes of the decoded message, without its heap memory.
    pub(crate) memory: usize,
}

/// A field of a message.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) repeated: bool,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Int32,
    Int64,
    Uint32,
    Uint64,
    Bool,
    Float,
    Double,
    String,
    Bytes,
    Enum(EnumType),
    Message(&'static MessageType),
    /// Any type. The value is checked for well-formedness and discarded.
    Skipped,
}

/// The values of an enumeration.
#[derive(Clone, Copy)]
pub(crate) struct EnumType {
    /// Converts the name of a value to its number.
    pub(crate) number: fn(&str) -> Option<i32>,
    /// Converts the number of a value to its name.
    pub(crate) name: fn(i32) -> Option<&'static str>,
}

use Kind::*;

const DTYPE: Kind = Enum(EnumType { number: data_type, name: data_type_name });

fn data_type_name(number: i32) -> Option<&'static str> {
    if number == 0 { Some("DT_INVALID") } else { DataType::from_number(number).map(DataType::proto_name) }
}

fn data_type(name: &str) -> Option<i32> {
    if name == "DT_INVALID" {
        return Some(0);
    }
    let base = name.strip_suffix("_REF").unwrap_or(name);
    let data_type = DataType::ALL.iter().find(|t| t.proto_name() == base)?;
    Some(if base == name { data_type.number() } else { data_type.reference().number() })
}

const SAVER_VERSIONS: [&str; 3] = ["LEGACY", "V1", "V2"];

const SAVER_VERSION: Kind = Enum(EnumType {
    number: |name| SAVER_VERSIONS.iter().position(|&n| n == name).map(|i| i as i32),
    name: |number| usize::try_from(number).ok().and_then(|i| SAVER_VERSIONS.get(i).copied()),
});

const JIT_LEVELS: [(&str, i32); 4] = [("DEFAULT", 0), ("OFF", -1), ("ON_1", 1), ("ON_2", 2)];

const JIT_LEVEL: Kind = Enum(EnumType {
    number: |name| JIT_LEVELS.iter().find(|(level, _)| *level == name).map(|(_, number)| *number),
    name: |number| JIT_LEVELS.iter().find(|(_, value)| *value == number).map(|(name, _)| *name),
});

const fn one(name: &'static str, number: u32, kind: Kind) -> Field {
    Field { name, number, kind, repeated: false }
}

const fn many(name: &'static str, number: u32, kind: Kind) -> Field {
    Field { name, number, kind, repeated: true }
}

macro_rules! messages {
    ($($(#[$doc:meta])* $ident:ident = $name:literal as $type:ty, $(oneof $oneof:literal)? { $($field:expr),* $(,)? })*) => {
        $(
            $(#[$doc])*
            pub(crate) static $ident: MessageType = MessageType {
                name: $name,
                fields: &[$($field),*],
                oneof: messages!(@oneof $($oneof)?),
                memory: size_of::<$type>(),
            };
        )*
    };
    (@oneof) => { None };
    (@oneof $oneof:literal) => { Some($oneof) };
}

messages! {
    /// `tensorflow.GraphDef`.
    GRAPH_DEF = "tensorflow.GraphDef" as GraphDef, {
        many("node", 1, Message(&NODE_DEF)),
        one("versions", 4, Message(&VERSION_DEF)),
        one("version", 3, Int32),
        one("library", 2, Message(&LIBRARY)),
        one("debug_info", 5, Skipped),
    }
    VERSION_DEF = "tensorflow.VersionDef" as VersionDef, {
        one("producer", 1, Int32),
        one("min_consumer", 2, Int32),
        many("bad_consumers", 3, Int32),
    }
    NODE_DEF = "tensorflow.NodeDef" as NodeDef, {
        one("name", 1, String),
        one("op", 2, String),
        many("input", 3, String),
        one("device", 4, String),
        many("attr", 5, Message(&NODE_ATTR_ENTRY)),
        one("experimental_debug_info", 6, Skipped),
        one("experimental_type", 7, Skipped),
    }
    NODE_ATTR_ENTRY = "tensorflow.NodeDef.AttrEntry" as (Text, AttrValue), {
        one("key", 1, String),
        one("value", 2, Message(&ATTR_VALUE)),
    }
    /// `tensorflow.AttrValue`.
    ATTR_VALUE = "tensorflow.AttrValue" as AttrValue, oneof "value" {
        one("s", 2, Bytes),
        one("i", 3, Int64),
        one("f", 4, Float),
        one("b", 5, Bool),
        one("type", 6, DTYPE),
        one("shape", 7, Message(&TENSOR_SHAPE)),
        one("tensor", 8, Message(&TENSOR)),
        one("list", 1, Message(&LIST_VALUE)),
        one("func", 10, Message(&NAME_ATTR_LIST)),
        one("placeholder", 9, String),
    }
    LIST_VALUE = "tensorflow.AttrValue.ListValue" as ListValue, {
        many("s", 2, Bytes),
        many("i", 3, Int64),
        many("f", 4, Float),
        many("b", 5, Bool),
        many("type", 6, DTYPE),
        many("shape", 7, Message(&TENSOR_SHAPE)),
        many("tensor", 8, Message(&TENSOR)),
        many("func", 9, Message(&NAME_ATTR_LIST)),
    }
    NAME_ATTR_LIST = "tensorflow.NameAttrList" as NameAttrList, {
        one("name", 1, String),
        many("attr", 2, Message(&NAME_ATTR_ENTRY)),
    }
    NAME_ATTR_ENTRY = "tensorflow.NameAttrList.AttrEntry" as (Text, AttrValue), {
        one("key", 1, String),
        one("value", 2, Message(&ATTR_VALUE)),
    }
    TENSOR_SHAPE = "tensorflow.TensorShapeProto" as TensorShapeProto, {
        many("dim", 2, Message(&DIM)),
        one("unknown_rank", 3, Bool),
    }
    DIM = "tensorflow.TensorShapeProto.Dim" as Dim, {
        one("size", 1, Int64),
        one("name", 2, String),
    }
    TENSOR = "tensorflow.TensorProto" as TensorProto, {
        one("dtype", 1, DTYPE),
        one("tensor_shape", 2, Message(&TENSOR_SHAPE)),
        one("version_number", 3, Int32),
        one("tensor_content", 4, Bytes),
        many("half_val", 13, Int32),
        many("float_val", 5, Float),
        many("double_val", 6, Double),
        many("int_val", 7, Int32),
        many("string_val", 8, Bytes),
        many("scomplex_val", 9, Float),
        many("int64_val", 10, Int64),
        many("bool_val", 11, Bool),
        many("dcomplex_val", 12, Double),
        many("resource_handle_val", 14, Skipped),
        many("variant_val", 15, Skipped),
        many("uint32_val", 16, Uint32),
        many("uint64_val", 17, Uint64),
        one("float8_val", 18, Bytes),
    }
    LIBRARY = "tensorflow.FunctionDefLibrary" as FunctionDefLibrary, {
        many("function", 1, Message(&FUNCTION_DEF)),
        many("gradient", 2, Message(&GRADIENT_DEF)),
        many("registered_gradients", 3, Skipped),
    }
    GRADIENT_DEF = "tensorflow.GradientDef" as GradientDef, {
        one("function_name", 1, String),
        one("gradient_func", 2, String),
    }
    FUNCTION_DEF = "tensorflow.FunctionDef" as FunctionDef, {
        one("signature", 1, Message(&OP_DEF)),
        many("attr", 5, Message(&FUNCTION_ATTR_ENTRY)),
        many("arg_attr", 7, Message(&ARG_ATTR_ENTRY)),
        many("resource_arg_unique_id", 8, Skipped),
        many("node_def", 3, Message(&NODE_DEF)),
        many("ret", 4, Message(&RET_ENTRY)),
        many("control_ret", 6, Message(&CONTROL_RET_ENTRY)),
    }
    ARG_ATTR_ENTRY = "tensorflow.FunctionDef.ArgAttrEntry" as (u32, ArgAttrs), {
        one("key", 1, Uint32),
        one("value", 2, Message(&ARG_ATTRS)),
    }
    ARG_ATTRS = "tensorflow.FunctionDef.ArgAttrs" as ArgAttrs, {
        many("attr", 1, Message(&FUNCTION_ATTR_ENTRY)),
    }
    FUNCTION_ATTR_ENTRY = "tensorflow.FunctionDef.AttrEntry" as (Text, AttrValue), {
        one("key", 1, String),
        one("value", 2, Message(&ATTR_VALUE)),
    }
    RET_ENTRY = "tensorflow.FunctionDef.RetEntry" as (Text, Text), {
        one("key", 1, String),
        one("value", 2, String),
    }
    CONTROL_RET_ENTRY = "tensorflow.FunctionDef.ControlRetEntry" as (Text, Text), {
        one("key", 1, String),
        one("value", 2, String),
    }
    OP_DEF = "tensorflow.OpDef" as OpDef, {
        one("name", 1, String),
        many("input_arg", 2, Message(&ARG_DEF)),
        many("output_arg", 3, Message(&ARG_DEF)),
        many("control_output", 20, String),
        many("attr", 4, Message(&ATTR_DEF)),
        one("deprecation", 8, Skipped),
        one("summary", 5, String),
        one("description", 6, String),
        one("is_commutative", 18, Bool),
        one("is_aggregate", 16, Bool),
        one("is_stateful", 17, Bool),
        one("allows_uninitialized_input", 19, Bool),
        one("is_distributed_communication", 21, Bool),
    }
    ARG_DEF = "tensorflow.OpDef.ArgDef" as ArgDef, {
        one("name", 1, String),
        one("description", 2, String),
        one("type", 3, DTYPE),
        one("type_attr", 4, String),
        one("number_attr", 5, String),
        one("type_list_attr", 6, String),
        many("handle_data", 7, Skipped),
        one("is_ref", 16, Bool),
        one("experimental_full_type", 17, Skipped),
    }
    ATTR_DEF = "tensorflow.OpDef.AttrDef" as AttrDef, {
        one("name", 1, String),
        one("type", 2, String),
        one("default_value", 3, Message(&ATTR_VALUE)),
        one("description", 4, String),
        one("has_minimum", 5, Bool),
        one("minimum", 6, Int64),
        one("allowed_values", 7, Message(&ATTR_VALUE)),
    }
    /// `tensorflow.tf2xla.Config`.
    CONFIG = "tensorflow.tf2xla.Config" as Config, {
        many("feed", 1, Message(&FEED)),
        many("fetch", 2, Message(&FETCH)),
        many("variable", 3, Message(&VARIABLE)),
        one("conversion_options", 4, Skipped),
        many("dimension", 1000, Message(&DIMENSION)),
    }
    DIMENSION = "tensorflow.tf2xla.Dimension" as Dimension, {
        one("name", 1, String),
        one("min", 2, Int64),
        one("max", 3, Int64),
        many("size", 4, Int64),
    }
    TENSOR_ID = "tensorflow.tf2xla.TensorId" as TensorId, {
        one("node_name", 1, String),
        one("output_index", 2, Int64),
    }
    FEED = "tensorflow.tf2xla.Feed" as Feed, {
        one("id", 1, Message(&TENSOR_ID)),
        one("shape", 2, Message(&TENSOR_SHAPE)),
        one("name", 3, String),
        one("type", 4, DTYPE),
        one("constant", 1000, String),
    }
    FETCH = "tensorflow.tf2xla.Fetch" as Fetch, {
        one("id", 1, Message(&TENSOR_ID)),
        one("name", 2, String),
        one("shape", 3, Message(&TENSOR_SHAPE)),
        one("type", 4, DTYPE),
    }
    // `readonly` was called `read_only` for a short time.
    VARIABLE = "tensorflow.tf2xla.Variable" as Variable, {
        one("node_name", 1, String),
        one("name", 2, String),
        one("shape", 3, Message(&TENSOR_SHAPE)),
        one("type", 4, DTYPE),
        one("readonly", 5, Bool),
        one("read_only", 5, Bool),
    }
    /// `tensorflow.SaverDef`.
    SAVER_DEF = "tensorflow.SaverDef" as SaverDef, {
        one("filename_tensor_name", 1, String),
        one("save_tensor_name", 2, String),
        one("restore_op_name", 3, String),
        one("max_to_keep", 4, Int32),
        one("sharded", 5, Bool),
        one("keep_checkpoint_every_n_hours", 6, Float),
        one("version", 7, SAVER_VERSION),
    }
    /// `tensorflow.SavedModel`.
    SAVED_MODEL = "tensorflow.SavedModel" as SavedModel, {
        one("saved_model_schema_version", 1, Int64),
        many("meta_graphs", 2, Message(&META_GRAPH_DEF)),
    }
    /// `tensorflow.MetaGraphDef`.
    META_GRAPH_DEF = "tensorflow.MetaGraphDef" as MetaGraphDef, {
        one("meta_info_def", 1, Message(&META_INFO_DEF)),
        one("graph_def", 2, Message(&GRAPH_DEF)),
        one("saver_def", 3, Message(&SAVER_DEF)),
        many("collection_def", 4, Message(&COLLECTION_ENTRY)),
        many("signature_def", 5, Message(&SIGNATURE_ENTRY)),
        many("asset_file_def", 6, Message(&ASSET_FILE_DEF)),
        one("object_graph_def", 7, Skipped),
    }
    META_INFO_DEF = "tensorflow.MetaGraphDef.MetaInfoDef" as MetaInfoDef, {
        one("meta_graph_version", 1, Skipped),
        one("stripped_op_list", 2, Skipped),
        one("any_info", 3, Skipped),
        many("tags", 4, String),
        one("tensorflow_version", 5, String),
        one("tensorflow_git_version", 6, Skipped),
        one("stripped_default_attrs", 7, Skipped),
        many("function_aliases", 8, Skipped),
    }
    COLLECTION_ENTRY = "tensorflow.MetaGraphDef.CollectionDefEntry" as (Text, CollectionDef), {
        one("key", 1, String),
        one("value", 2, Message(&COLLECTION_DEF)),
    }
    COLLECTION_DEF = "tensorflow.CollectionDef" as CollectionDef, oneof "kind" {
        one("node_list", 1, Message(&NODE_LIST)),
        one("bytes_list", 2, Message(&BYTES_LIST)),
        one("int64_list", 3, Skipped),
        one("float_list", 4, Skipped),
        one("any_list", 5, Skipped),
    }
    NODE_LIST = "tensorflow.CollectionDef.NodeList" as NodeList, {
        many("value", 1, String),
    }
    BYTES_LIST = "tensorflow.CollectionDef.BytesList" as BytesList, {
        many("value", 1, Bytes),
    }
    SIGNATURE_ENTRY = "tensorflow.MetaGraphDef.SignatureDefEntry" as (Text, SignatureDef), {
        one("key", 1, String),
        one("value", 2, Message(&SIGNATURE_DEF)),
    }
    SIGNATURE_DEF = "tensorflow.SignatureDef" as SignatureDef, {
        many("inputs", 1, Message(&TENSOR_INFO_ENTRY)),
        many("outputs", 2, Message(&TENSOR_INFO_ENTRY)),
        one("method_name", 3, String),
        many("defaults", 4, Skipped),
    }
    TENSOR_INFO_ENTRY = "tensorflow.SignatureDef.InputsEntry" as (Text, TensorInfo), {
        one("key", 1, String),
        one("value", 2, Message(&TENSOR_INFO)),
    }
    TENSOR_INFO = "tensorflow.TensorInfo" as TensorInfo, {
        one("name", 1, String),
        one("coo_sparse", 4, Skipped),
        one("composite_tensor", 5, Skipped),
        one("dtype", 2, DTYPE),
        one("tensor_shape", 3, Message(&TENSOR_SHAPE)),
    }
    ASSET_FILE_DEF = "tensorflow.AssetFileDef" as AssetFileDef, {
        one("tensor_info", 1, Message(&TENSOR_INFO)),
        one("filename", 2, String),
    }
    /// `tensorflow.RunMetadata`.
    RUN_METADATA = "tensorflow.RunMetadata" as RunMetadata, {
        one("step_stats", 1, Message(&STEP_STATS)),
        one("cost_graph", 2, Skipped),
        many("partition_graphs", 3, Message(&GRAPH_DEF)),
        many("function_graphs", 4, Skipped),
        one("session_metadata", 5, Skipped),
    }
    /// `tensorflow.StepStats`.
    STEP_STATS = "tensorflow.StepStats" as StepStats, {
        many("dev_stats", 1, Message(&DEVICE_STEP_STATS)),
    }
    DEVICE_STEP_STATS = "tensorflow.DeviceStepStats" as DeviceStepStats, {
        one("device", 1, String),
        many("node_stats", 2, Message(&NODE_EXEC_STATS)),
        many("thread_names", 3, Message(&THREAD_NAME_ENTRY)),
    }
    THREAD_NAME_ENTRY = "tensorflow.DeviceStepStats.ThreadNamesEntry" as (u32, Text), {
        one("key", 1, Uint32),
        one("value", 2, String),
    }
    NODE_EXEC_STATS = "tensorflow.NodeExecStats" as NodeExecStats, {
        one("node_name", 1, String),
        one("all_start_micros", 2, Int64),
        one("op_start_rel_micros", 3, Int64),
        one("op_end_rel_micros", 4, Int64),
        one("all_end_rel_micros", 5, Int64),
        many("memory", 6, Message(&ALLOCATOR_MEMORY_USED)),
        many("output", 7, Message(&NODE_OUTPUT)),
        one("timeline_label", 8, String),
        one("scheduled_micros", 9, Int64),
        one("thread_id", 10, Uint32),
        many("referenced_tensor", 11, Message(&ALLOCATION_DESCRIPTION)),
        one("memory_stats", 12, Message(&MEMORY_STATS)),
        one("all_start_nanos", 13, Int64),
        one("op_start_rel_nanos", 14, Int64),
        one("op_end_rel_nanos", 15, Int64),
        one("all_end_rel_nanos", 16, Int64),
        one("scheduled_nanos", 17, Int64),
    }
    NODE_OUTPUT = "tensorflow.NodeOutput" as NodeOutput, {
        one("slot", 1, Int32),
        one("tensor_description", 3, Message(&TENSOR_DESCRIPTION)),
    }
    TENSOR_DESCRIPTION = "tensorflow.TensorDescription" as TensorDescription, {
        one("dtype", 1, DTYPE),
        one("shape", 2, Message(&TENSOR_SHAPE)),
        one("allocation_description", 4, Message(&ALLOCATION_DESCRIPTION)),
    }
    ALLOCATION_DESCRIPTION = "tensorflow.AllocationDescription" as AllocationDescription, {
        one("requested_bytes", 1, Int64),
        one("allocated_bytes", 2, Int64),
        one("allocator_name", 3, String),
        one("allocation_id", 4, Int64),
        one("has_single_reference", 5, Bool),
        one("ptr", 6, Uint64),
    }
    ALLOCATOR_MEMORY_USED = "tensorflow.AllocatorMemoryUsed" as AllocatorMemoryUsed, {
        one("allocator_name", 1, String),
        one("total_bytes", 2, Int64),
        one("peak_bytes", 3, Int64),
        one("live_bytes", 4, Int64),
        one("allocator_bytes_in_use", 5, Int64),
        many("allocation_records", 6, Message(&ALLOCATION_RECORD)),
    }
    ALLOCATION_RECORD = "tensorflow.AllocationRecord" as AllocationRecord, {
        one("alloc_micros", 1, Int64),
        one("alloc_bytes", 2, Int64),
    }
    MEMORY_STATS = "tensorflow.MemoryStats" as MemoryStats, {
        one("temp_memory_size", 1, Int64),
        one("persistent_memory_size", 3, Int64),
        many("persistent_tensor_alloc_ids", 5, Skipped),
        one("device_temp_memory_size", 2, Skipped),
        one("device_persistent_memory_size", 4, Skipped),
        many("device_persistent_tensor_alloc_ids", 6, Skipped),
    }
    /// `tensorflow.ConfigProto`.
    CONFIG_PROTO = "tensorflow.ConfigProto" as ConfigProto, {
        many("device_count", 1, Message(&DEVICE_COUNT_ENTRY)),
        one("intra_op_parallelism_threads", 2, Int32),
        one("inter_op_parallelism_threads", 5, Int32),
        one("use_per_session_threads", 9, Skipped),
        many("session_inter_op_thread_pool", 12, Skipped),
        one("placement_period", 3, Skipped),
        many("device_filters", 4, Skipped),
        one("gpu_options", 6, Message(&GPU_OPTIONS)),
        one("pluggable_device_options", 18, Skipped),
        one("allow_soft_placement", 7, Bool),
        one("log_device_placement", 8, Bool),
        one("graph_options", 10, Message(&GRAPH_OPTIONS)),
        one("operation_timeout_in_ms", 11, Int64),
        one("rpc_options", 13, Skipped),
        one("cluster_def", 14, Skipped),
        one("isolate_session_state", 15, Skipped),
        one("share_cluster_devices_in_session", 17, Skipped),
        one("experimental", 16, Skipped),
    }
    GPU_OPTIONS = "tensorflow.GPUOptions" as GpuOptions, {
        one("per_process_gpu_memory_fraction", 1, Double),
        one("allow_growth", 4, Bool),
        one("allocator_type", 2, Skipped),
        one("deferred_deletion_bytes", 3, Skipped),
        one("visible_device_list", 5, String),
        one("polling_active_delay_usecs", 6, Skipped),
        one("polling_inactive_delay_msecs", 7, Skipped),
        one("force_gpu_compatible", 8, Skipped),
        one("experimental", 9, Skipped),
    }
    DEVICE_COUNT_ENTRY = "tensorflow.ConfigProto.DeviceCountEntry" as (Text, i32), {
        one("key", 1, String),
        one("value", 2, Int32),
    }
    GRAPH_OPTIONS = "tensorflow.GraphOptions" as GraphOptions, {
        one("enable_recv_scheduling", 2, Skipped),
        one("optimizer_options", 3, Message(&OPTIMIZER_OPTIONS)),
        one("build_cost_model", 4, Skipped),
        one("build_cost_model_after", 9, Skipped),
        one("infer_shapes", 5, Skipped),
        one("place_pruned_graph", 6, Skipped),
        one("enable_bfloat16_sendrecv", 7, Skipped),
        one("timeline_step", 8, Skipped),
        one("rewrite_options", 10, Skipped),
    }
    OPTIMIZER_OPTIONS = "tensorflow.OptimizerOptions" as OptimizerOptions, {
        one("do_common_subexpression_elimination", 1, Skipped),
        one("do_constant_folding", 2, Skipped),
        one("max_folded_constant_in_bytes", 6, Skipped),
        one("do_function_inlining", 4, Skipped),
        one("opt_level", 3, Skipped),
        one("global_jit_level", 5, JIT_LEVEL),
        one("cpu_global_jit", 7, Bool),
    }
}
