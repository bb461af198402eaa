//! Names and kinds of the messages' fields by number, for protocol buffers' text format.

use Kind::{Bool, Bytes, Double, ElementType, Float, Message, Signed, Unsigned};

/// The kind of a field.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    Bool,
    Float,
    Double,
    /// A string, or bytes.
    Bytes,
    /// `xla.PrimitiveType`, by name.
    ElementType,
    Message(&'static Fields),
}

/// Number, name, and kind of each field of a message.
pub(super) struct Fields(pub(super) &'static [(u32, &'static str, Kind)]);

pub(super) static HLO_MODULE: Fields = Fields(&[
    (1, "name", Bytes),
    (2, "entry_computation_name", Bytes),
    (3, "computations", Message(&HLO_COMPUTATION)),
    (4, "host_program_shape", Message(&PROGRAM_SHAPE)),
    (5, "id", Signed),
    (6, "entry_computation_id", Signed),
    (7, "schedule", Message(&HLO_SCHEDULE)),
    (8, "input_output_alias", Message(&HLO_INPUT_OUTPUT_ALIAS)),
    (18, "buffer_donor", Message(&HLO_BUFFER_DONOR)),
    (19, "frontend_attributes", Message(&FRONTEND_ATTRIBUTES)),
    (20, "original_value_recovery_table", Message(&RECOVERY_TABLE)),
]);
static HLO_BUFFER_DONOR: Fields = Fields(&[(1, "entries", Message(&BUFFER_DONOR_ENTRY))]);
static BUFFER_DONOR_ENTRY: Fields =
    Fields(&[(1, "parameter_number", Signed), (2, "parameter_shape_index", Signed)]);
static FRONTEND_ATTRIBUTES: Fields = Fields(&[(1, "map", Message(&FRONTEND_ATTRIBUTE))]);
static FRONTEND_ATTRIBUTE: Fields = Fields(&[(1, "key", Bytes), (2, "value", Bytes)]);
static RECOVERY_TABLE: Fields = Fields(&[(1, "entries", Message(&RECOVERY_ENTRY))]);
static RECOVERY_ENTRY: Fields = Fields(&[
    (1, "old_original_array", Message(&ORIGINAL_ARRAY)),
    (2, "new_original_array", Message(&ORIGINAL_ARRAY)),
    (3, "recovery_module", Message(&HLO_MODULE)),
]);
static ORIGINAL_ARRAY: Fields = Fields(&[(1, "instruction_name", Bytes), (2, "shape_index", Signed)]);
static HLO_SCHEDULE: Fields = Fields(&[(1, "sequences", Message(&SEQUENCE_ENTRY))]);
static SEQUENCE_ENTRY: Fields = Fields(&[(1, "key", Signed), (2, "value", Message(&INSTRUCTION_SEQUENCE))]);
static INSTRUCTION_SEQUENCE: Fields = Fields(&[(1, "instruction_ids", Signed)]);
static HLO_INPUT_OUTPUT_ALIAS: Fields = Fields(&[(1, "entries", Message(&ALIAS_ENTRY))]);
static ALIAS_ENTRY: Fields = Fields(&[
    (1, "output_shape_index", Signed),
    (2, "parameter_number", Signed),
    (3, "parameter_shape_index", Signed),
    (4, "kind", Signed),
]);
static HLO_COMPUTATION: Fields = Fields(&[
    (1, "name", Bytes),
    (2, "instructions", Message(&HLO_INSTRUCTION)),
    (4, "program_shape", Message(&PROGRAM_SHAPE)),
    (5, "id", Signed),
    (6, "root_id", Signed),
    (7, "is_fusion_computation", Bool),
    (8, "execution_thread", Bytes),
]);
static HLO_INSTRUCTION: Fields = Fields(&[
    (1, "name", Bytes),
    (2, "opcode", Bytes),
    (3, "shape", Message(&SHAPE)),
    (7, "metadata", Message(&OP_METADATA)),
    (8, "literal", Message(&LITERAL)),
    (9, "parameter_number", Signed),
    (11, "fusion_kind", Bytes),
    (13, "tuple_index", Signed),
    (14, "dimensions", Signed),
    (15, "window", Message(&WINDOW)),
    (16, "convolution_dimension_numbers", Message(&CONVOLUTION_DIMENSION_NUMBERS)),
    (17, "slice_dimensions", Message(&SLICE_DIMENSIONS)),
    (18, "exponent_bits", Signed),
    (19, "mantissa_bits", Signed),
    (20, "dynamic_slice_sizes", Signed),
    (21, "padding_config", Message(&PADDING_CONFIG)),
    (22, "outfeed_config", Bytes),
    (23, "distribution", Signed),
    (24, "epsilon", Float),
    (25, "feature_index", Signed),
    (26, "channel_id", Signed),
    (27, "infeed_config", Bytes),
    (28, "custom_call_target", Bytes),
    (29, "outfeed_shape", Message(&SHAPE)),
    (30, "dot_dimension_numbers", Message(&DOT_DIMENSION_NUMBERS)),
    (31, "fft_type", Signed),
    (32, "fft_length", Signed),
    (33, "gather_dimension_numbers", Message(&GATHER_DIMENSION_NUMBERS)),
    (34, "gather_slice_sizes", Signed),
    (35, "id", Signed),
    (36, "operand_ids", Signed),
    (37, "control_predecessor_ids", Signed),
    (38, "called_computation_ids", Signed),
    (40, "sharding", Message(&OP_SHARDING)),
    (43, "backend_config", Bytes),
    (47, "is_host_transfer", Bool),
    (48, "scatter_dimension_numbers", Message(&SCATTER_DIMENSION_NUMBERS)),
    (49, "replica_groups", Message(&REPLICA_GROUP)),
    (50, "feature_group_count", Signed),
    (51, "precision_config", Message(&PRECISION_CONFIG)),
    (52, "source_target_pairs", Message(&SOURCE_TARGET)),
    (54, "domain_entry_sharding", Message(&OP_SHARDING)),
    (55, "domain_exit_sharding", Message(&OP_SHARDING)),
    (56, "constrain_layout", Bool),
    (57, "operand_shapes_with_layout", Message(&SHAPE)),
    (58, "batch_group_count", Signed),
    (59, "triangular_solve_options", Message(&TRIANGULAR_SOLVE_OPTIONS)),
    (60, "is_stable", Bool),
    (61, "parameter_replication", Message(&PARAMETER_REPLICATION)),
    (62, "cholesky_options", Message(&CHOLESKY_OPTIONS)),
    (63, "comparison_direction", Bytes),
    (65, "custom_call_has_side_effect", Bool),
    (66, "delta", Signed),
    (67, "indices_are_sorted", Bool),
    (68, "frontend_attributes", Message(&FRONTEND_ATTRIBUTES)),
    (69, "unique_indices", Bool),
    (70, "rng_algorithm", Signed),
    (71, "use_global_device_ids", Bool),
    (72, "comparison_type", Bytes),
    (74, "output_operand_aliasing", Message(&OUTPUT_OPERAND_ALIASING)),
    (75, "padding_type", Signed),
    (76, "custom_call_schedule", Signed),
    (77, "custom_call_api_version", Signed),
    (79, "async_execution_thread", Bytes),
    (80, "cross_program_prefetch_index", Signed),
    (81, "k", Signed),
    (82, "statistics_viz", Message(&STATISTICS_VIZ)),
    (85, "largest", Bool),
    (87, "collective_device_list", Message(&COLLECTIVE_DEVICE_LIST)),
    (88, "original_value", Message(&ORIGINAL_VALUE)),
    (89, "is_composite", Bool),
    (90, "ragged_dot_dimension_numbers", Message(&RAGGED_DOT_DIMENSION_NUMBERS)),
    (91, "result_accuracy", Message(&RESULT_ACCURACY)),
    (92, "iota_collective_device_list", Message(&IOTA_REPLICA_GROUP_LIST)),
]);
static SLICE_DIMENSIONS: Fields =
    Fields(&[(1, "start", Signed), (2, "limit", Signed), (3, "stride", Signed)]);
static OP_METADATA: Fields = Fields(&[
    (1, "op_type", Bytes),
    (2, "op_name", Bytes),
    (3, "source_file", Bytes),
    (4, "source_line", Signed),
    (5, "profile_type", Signed),
    (12, "deduplicated_name", Bytes),
    (16, "scheduling_name", Bytes),
    (17, "source_end_line", Signed),
    (18, "source_column", Signed),
    (19, "source_end_column", Signed),
]);
static SHAPE: Fields = Fields(&[
    (2, "element_type", ElementType),
    (3, "dimensions", Signed),
    (4, "tuple_shapes", Message(&SHAPE)),
    (5, "layout", Message(&LAYOUT)),
    (6, "is_dynamic_dimension", Bool),
]);
static LAYOUT: Fields = Fields(&[
    (1, "minor_to_major", Signed),
    (6, "tiles", Message(&TILE)),
    (7, "element_size_in_bits", Signed),
    (8, "memory_space", Signed),
    (10, "physical_shape", Message(&SHAPE)),
    (11, "index_primitive_type", ElementType),
    (12, "pointer_primitive_type", ElementType),
    (15, "dynamic_shape_metadata_prefix_bytes", Signed),
    (16, "tail_padding_alignment_in_elements", Signed),
    (17, "split_configs", Message(&SPLIT_CONFIG)),
]);
static TILE: Fields = Fields(&[(1, "dimensions", Signed)]);
static SPLIT_CONFIG: Fields = Fields(&[(1, "dimension", Signed), (2, "split_indices", Signed)]);
static PROGRAM_SHAPE: Fields = Fields(&[
    (1, "parameters", Message(&SHAPE)),
    (2, "result", Message(&SHAPE)),
    (3, "parameter_names", Bytes),
]);
static LITERAL: Fields = Fields(&[
    (1, "shape", Message(&SHAPE)),
    (2, "preds", Bool),
    (3, "u8s", Bytes),
    (4, "s32s", Signed),
    (5, "s64s", Signed),
    (6, "u32s", Unsigned),
    (7, "u64s", Unsigned),
    (8, "f32s", Float),
    (9, "f64s", Double),
    (10, "tuple_literals", Message(&LITERAL)),
    (11, "f16s", Bytes),
    (12, "c64s", Float),
    (13, "bf16s", Bytes),
    (15, "s8s", Bytes),
    (16, "u16s", Bytes),
    (17, "s16s", Bytes),
    (18, "c128s", Double),
    (19, "f8e5m2s", Bytes),
    (20, "f8e4m3fns", Bytes),
    (21, "s4s", Bytes),
    (22, "u4s", Bytes),
    (23, "f8e4m3b11fnuzs", Bytes),
    (24, "f8e5m2fnuzs", Bytes),
    (25, "f8e4m3fnuzs", Bytes),
    (26, "s2s", Bytes),
    (27, "u2s", Bytes),
    (28, "f8e4m3s", Bytes),
    (29, "f8e3m4s", Bytes),
    (30, "s1s", Bytes),
    (31, "u1s", Bytes),
    (32, "f4e2m1fns", Bytes),
    (33, "f8e8m0fnus", Bytes),
]);
static WINDOW: Fields = Fields(&[(1, "dimensions", Message(&WINDOW_DIMENSION))]);
static WINDOW_DIMENSION: Fields = Fields(&[
    (1, "size", Signed),
    (2, "stride", Signed),
    (3, "padding_low", Signed),
    (4, "padding_high", Signed),
    (5, "window_dilation", Signed),
    (6, "base_dilation", Signed),
    (7, "window_reversal", Bool),
]);
static CONVOLUTION_DIMENSION_NUMBERS: Fields = Fields(&[
    (3, "kernel_input_feature_dimension", Signed),
    (4, "kernel_output_feature_dimension", Signed),
    (6, "kernel_spatial_dimensions", Signed),
    (7, "input_batch_dimension", Signed),
    (8, "input_feature_dimension", Signed),
    (9, "output_batch_dimension", Signed),
    (10, "output_feature_dimension", Signed),
    (11, "input_spatial_dimensions", Signed),
    (12, "output_spatial_dimensions", Signed),
]);
static DOT_DIMENSION_NUMBERS: Fields = Fields(&[
    (1, "lhs_contracting_dimensions", Signed),
    (2, "rhs_contracting_dimensions", Signed),
    (3, "lhs_batch_dimensions", Signed),
    (4, "rhs_batch_dimensions", Signed),
]);
static GATHER_DIMENSION_NUMBERS: Fields = Fields(&[
    (1, "offset_dims", Signed),
    (2, "collapsed_slice_dims", Signed),
    (3, "start_index_map", Signed),
    (4, "index_vector_dim", Signed),
    (5, "operand_batching_dims", Signed),
    (6, "start_indices_batching_dims", Signed),
]);
static SCATTER_DIMENSION_NUMBERS: Fields = Fields(&[
    (1, "update_window_dims", Signed),
    (2, "inserted_window_dims", Signed),
    (3, "scatter_dims_to_operand_dims", Signed),
    (4, "index_vector_dim", Signed),
    (5, "input_batching_dims", Signed),
    (6, "scatter_indices_batching_dims", Signed),
]);
static PADDING_CONFIG: Fields = Fields(&[(1, "dimensions", Message(&PADDING_CONFIG_DIMENSION))]);
static PADDING_CONFIG_DIMENSION: Fields = Fields(&[
    (1, "edge_padding_low", Signed),
    (2, "edge_padding_high", Signed),
    (3, "interior_padding", Signed),
]);
static TRIANGULAR_SOLVE_OPTIONS: Fields = Fields(&[
    (1, "left_side", Bool),
    (2, "lower", Bool),
    (3, "unit_diagonal", Bool),
    (4, "transpose_a", Signed),
]);
static CHOLESKY_OPTIONS: Fields = Fields(&[(1, "lower", Bool)]);

static OP_SHARDING: Fields = Fields(&[
    (1, "type", Signed),
    (3, "tile_assignment_dimensions", Signed),
    (4, "tile_assignment_devices", Signed),
    (5, "tuple_shardings", Message(&OP_SHARDING)),
    (6, "replicate_on_last_tile_dim", Bool),
    (7, "metadata", Message(&OP_METADATA)),
    (8, "last_tile_dims", Signed),
    (9, "iota_reshape_dims", Signed),
    (10, "iota_transpose_perm", Signed),
    (11, "is_shard_group", Bool),
    (12, "shard_group_id", Signed),
    (13, "shard_group_type", Signed),
]);
static REPLICA_GROUP: Fields = Fields(&[(1, "replica_ids", Signed)]);
static COLLECTIVE_DEVICE_LIST: Fields = Fields(&[
    (1, "replica_groups", Message(&REPLICA_GROUP)),
    (2, "iota_replica_group_list", Message(&IOTA_REPLICA_GROUP_LIST)),
]);
static IOTA_REPLICA_GROUP_LIST: Fields = Fields(&[
    (1, "num_replica_groups", Signed),
    (2, "num_devices_per_group", Signed),
    (3, "iota_reshape_dims", Signed),
    (4, "iota_transpose_perm", Signed),
]);
static SOURCE_TARGET: Fields = Fields(&[(1, "source", Signed), (2, "target", Signed)]);
static PRECISION_CONFIG: Fields = Fields(&[(1, "operand_precision", Signed), (2, "algorithm", Signed)]);
static PARAMETER_REPLICATION: Fields = Fields(&[(1, "replicated_at_leaf_buffers", Bool)]);
static OUTPUT_OPERAND_ALIASING: Fields = Fields(&[
    (1, "output_shape_index", Signed),
    (2, "operand_index", Signed),
    (3, "operand_shape_index", Signed),
]);
static RAGGED_DOT_DIMENSION_NUMBERS: Fields = Fields(&[
    (1, "dot_dimension_numbers", Message(&DOT_DIMENSION_NUMBERS)),
    (2, "lhs_ragged_dimensions", Signed),
    (3, "rhs_group_dimensions", Signed),
]);
static STATISTICS_VIZ: Fields =
    Fields(&[(1, "stat_index_to_visualize", Signed), (2, "statistics", Message(&STATISTIC))]);
static STATISTIC: Fields = Fields(&[(1, "stat_name", Bytes), (2, "stat_val", Double)]);
static ORIGINAL_VALUE: Fields = Fields(&[(1, "elements", Message(&ORIGINAL_ELEMENT))]);
static ORIGINAL_ELEMENT: Fields =
    Fields(&[(1, "shape_index", Signed), (2, "original_array", Message(&ORIGINAL_ARRAY))]);
static RESULT_ACCURACY: Fields = Fields(&[(1, "mode", Signed), (2, "tolerance", Message(&TOLERANCE))]);
static TOLERANCE: Fields = Fields(&[(1, "atol", Double), (2, "rtol", Double), (3, "ulps", Signed)]);
