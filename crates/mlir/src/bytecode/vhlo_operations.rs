//! The attributes of VHLO operations.
//!
//! Since version 5 of the format, attributes of an operation are stored without names, in the order
//! listed here. The list covers all versions in `VhloOps.td`; operations without attributes are
//! omitted.

/// Returns the names of an operation's attributes, in alphabetical order; `None` if the operation
/// is not known to have any.
pub(super) fn attributes_of(operation: &str) -> Option<&'static [&'static str]> {
    OPERATIONS
        .iter()
        .find(|(operations, _)| operations.contains(&operation))
        .map(|&(_, attributes)| attributes)
}

/// Groups of operations with the same attributes.
const OPERATIONS: [(&[&str], &[&str]); 55] = [
    (
        &["all_gather_v1", "all_gather_v2"],
        &["all_gather_dim", "channel_id", "replica_groups", "use_global_device_ids"],
    ),
    (&["all_reduce_v1", "all_reduce_v2"], &["channel_id", "replica_groups", "use_global_device_ids"]),
    (
        &["all_to_all_v1", "all_to_all_v2"],
        &["channel_id", "concat_dimension", "replica_groups", "split_count", "split_dimension"],
    ),
    (
        &["batch_norm_grad_v1", "batch_norm_inference_v1", "batch_norm_training_v1"],
        &["epsilon", "feature_index"],
    ),
    (&["broadcast_in_dim_v1"], &["broadcast_dimensions"]),
    (&["broadcast_v1"], &["broadcast_sizes"]),
    (&["call_v1"], &["callee"]),
    (
        &[
            "cbrt_v2",
            "cosine_v2",
            "exponential_minus_one_v2",
            "exponential_v2",
            "log_plus_one_v2",
            "log_v2",
            "logistic_v2",
            "rsqrt_v2",
            "sine_v2",
            "sqrt_v2",
            "tan_v2",
            "tanh_v2",
        ],
        &["result_accuracy"],
    ),
    (&["cholesky_v1"], &["lower"]),
    (&["collective_broadcast_v1"], &["channel_id", "replica_groups"]),
    (&["collective_broadcast_v2"], &["channel_id", "has_dynamic_root", "replica_groups"]),
    (&["collective_permute_v1"], &["channel_id", "source_target_pairs"]),
    (
        &["collective_reduce_v1"],
        &["channel_id", "has_dynamic_root", "replica_groups", "use_global_device_ids"],
    ),
    (&["compare_v1"], &["compare_type", "comparison_direction"]),
    (&["composite_v1", "composite_v2"], &["composite_attributes", "decomposition", "name", "version"]),
    (&["concatenate_v1", "get_dimension_size_v1", "set_dimension_size_v1"], &["dimension"]),
    (&["constant_v1"], &["value"]),
    (
        &["convolution_v1", "dynamic_conv_v1"],
        &[
            "batch_group_count",
            "feature_group_count",
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
            "lhs_dilation",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
            "padding",
            "precision_config",
            "rhs_dilation",
            "window_reversal",
            "window_strides",
        ],
    ),
    (&["cross-replica-sum_v1"], &["replica_groups"]),
    (
        &["custom_call_v1"],
        &[
            "api_version",
            "backend_config",
            "call_target_name",
            "called_computations",
            "has_side_effect",
            "operand_layouts",
            "output_operand_aliases",
            "result_layouts",
        ],
    ),
    (
        &["custom_call_v2"],
        &[
            "api_version",
            "backend_config",
            "call_target_name",
            "called_computations",
            "has_side_effect",
            "operand_layouts",
            "output_operand_aliases",
            "result_layouts",
            "result_tilings",
        ],
    ),
    (
        &["dot_general_v1"],
        &[
            "lhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "precision_config",
            "rhs_batching_dimensions",
            "rhs_contracting_dimensions",
        ],
    ),
    (
        &["dot_general_v2"],
        &[
            "accumulation_type",
            "allow_imprecise_accumulation",
            "lhs_batching_dimensions",
            "lhs_component_count",
            "lhs_contracting_dimensions",
            "lhs_precision_type",
            "num_primitive_operations",
            "precision_config",
            "rhs_batching_dimensions",
            "rhs_component_count",
            "rhs_contracting_dimensions",
            "rhs_precision_type",
        ],
    ),
    (&["dot_v1"], &["precision_config"]),
    (
        &["dynamic_broadcast_in_dim_v1"],
        &["broadcast_dimensions", "known_expanding_dimensions", "known_nonexpanding_dimensions"],
    ),
    (
        &["dynamic_conv_v2"],
        &[
            "batch_group_count",
            "feature_group_count",
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
            "lhs_dilation",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
            "precision_config",
            "rhs_dilation",
            "window_reversal",
            "window_strides",
        ],
    ),
    (
        &["dynamic_gather_v1"],
        &["collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "start_index_map"],
    ),
    (
        &["dynamic_gather_v2"],
        &[
            "collapsed_slice_dims",
            "index_vector_dim",
            "indices_are_sorted",
            "offset_dims",
            "operand_batching_dims",
            "start_index_map",
            "start_indices_batching_dims",
        ],
    ),
    (&["dynamic_iota_v1", "iota_v1"], &["iota_dimension"]),
    (&["dynamic_slice_v1"], &["slice_sizes"]),
    (&["einsum_v1", "unary_einsum_v1"], &["einsum_config"]),
    (&["fft_v1"], &["fft_length", "fft_type"]),
    (&["func_v1"], &["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"]),
    (
        &["gather_v1"],
        &[
            "collapsed_slice_dims",
            "index_vector_dim",
            "indices_are_sorted",
            "offset_dims",
            "slice_sizes",
            "start_index_map",
        ],
    ),
    (
        &["gather_v2"],
        &[
            "collapsed_slice_dims",
            "index_vector_dim",
            "indices_are_sorted",
            "offset_dims",
            "operand_batching_dims",
            "slice_sizes",
            "start_index_map",
            "start_indices_batching_dims",
        ],
    ),
    (&["get_tuple_element_v1"], &["index"]),
    (&["infeed_v1"], &["infeed_config", "layout"]),
    (&["map_v1", "reduce_v1", "reverse_v1"], &["dimensions"]),
    (&["outfeed_v1"], &["outfeed_config"]),
    (&["pad_v1"], &["edge_padding_high", "edge_padding_low", "interior_padding"]),
    (&["recv_v1", "send_v1"], &["channel_id", "channel_type", "is_host_transfer"]),
    (&["recv_v2", "send_v2"], &["channel_id", "channel_type", "is_host_transfer", "source_target_pairs"]),
    (&["reduce_precision_v1"], &["exponent_bits", "mantissa_bits"]),
    (&["reduce_scatter_v1"], &["channel_id", "replica_groups", "scatter_dimension", "use_global_device_ids"]),
    (
        &["reduce_window_v1"],
        &["base_dilations", "padding", "window_dilations", "window_dimensions", "window_strides"],
    ),
    (&["rng_bit_generator_v1"], &["rng_algorithm"]),
    (&["rng_v1"], &["rng_distribution"]),
    (
        &["scatter_v1"],
        &[
            "index_vector_dim",
            "indices_are_sorted",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "unique_indices",
            "update_window_dims",
        ],
    ),
    (
        &["scatter_v2"],
        &[
            "index_vector_dim",
            "indices_are_sorted",
            "input_batching_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "scatter_indices_batching_dims",
            "unique_indices",
            "update_window_dims",
        ],
    ),
    (&["select_and_scatter_v1"], &["padding", "window_dimensions", "window_strides"]),
    (&["slice_v1"], &["limit_indices", "start_indices", "strides"]),
    (&["sort_v1"], &["dimension", "is_stable"]),
    (&["torch_index_select_v1"], &["batch_dims", "dim"]),
    (&["transpose_v1"], &["permutation"]),
    (&["triangular_solve_v1"], &["left_side", "lower", "transpose_a", "unit_diagonal"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_listed_once_and_attributes_are_in_order() {
        let mut operations: Vec<&str> =
            OPERATIONS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        operations.sort_unstable();
        assert!(operations.is_sorted_by(|a, b| a < b), "{operations:?}");
        for (index, (_, attributes)) in OPERATIONS.iter().enumerate() {
            assert!(attributes.is_sorted() && !attributes.is_empty(), "{attributes:?}");
            assert!(OPERATIONS[..index].iter().all(|(_, others)| others != attributes), "{attributes:?}");
        }
        assert_eq!(attributes_of("iota_v1"), Some(&["iota_dimension"][..]));
        assert_eq!(attributes_of("tanh_v2"), Some(&["result_accuracy"][..]));
        assert_eq!(attributes_of("add_v1"), None);
    }
}
