//! Selects the inputs of a node that are constants of its kernel.

use super::Site;
use crate::signature::input_names;
use crate::value::Value;
use std::collections::BTreeSet;

/// Arguments of op signatures that determine shapes or the form of the code in every op that has
/// them. TensorFlow's compiler requires their values, too.
const NAMES: &[&str] = &[
    "alg",
    "algorithm",
    "axis",
    "base_dilations",
    "block_shape",
    "concat_dim",
    "crops",
    "depth",
    "dim",
    "dim_index",
    "dimension",
    "dims",
    "fft_length",
    "filter_sizes",
    "group_assignment",
    "input_sizes",
    "ksize",
    "max_output_size",
    "multiples",
    "num",
    "num_cols",
    "num_rows",
    "num_samples",
    "num_segments",
    "orig_input_shape",
    "output_shape",
    "padding",
    "paddings",
    "perm",
    "reduction_indices",
    "scatter_dimension",
    "shape",
    "size",
    "size_indices",
    "size_splits",
    "slice_sizes",
    "split_dim",
    "strides",
    "window_dilations",
    "window_dimensions",
    "window_strides",
];

/// Arguments that do so in one op only.
const OF_OPS: &[(&str, &str)] = &[
    ("MatrixDiagPartV2", "k"),
    ("MatrixDiagPartV3", "k"),
    ("MatrixDiagV2", "k"),
    ("MatrixDiagV3", "k"),
    ("MatrixSetDiagV2", "k"),
    ("MatrixSetDiagV3", "k"),
    ("Range", "delta"),
    ("Range", "limit"),
    ("Range", "start"),
    ("StridedSlice", "begin"),
    ("StridedSlice", "end"),
    ("StridedSliceGrad", "begin"),
    ("StridedSliceGrad", "end"),
    ("TopKV2", "k"),
];

/// Maximum number of elements of a small integer input. An input whose value the importer requested
/// becomes a constant whatever its size. If the importer requested none, small integer inputs are
/// tried.
const FEW: i64 = 64;

/// The inputs of a node that are constants from the start.
pub(super) fn of(node: &tf::Node) -> BTreeSet<usize> {
    if crate::op_kind::must_compile(node) {
        let constants = node.attributes.types("Tconstants").unwrap_or_default().len();
        return (0..constants).collect();
    }
    let names = input_names(node);
    let is_constant = |name: &str| NAMES.contains(&name) || OF_OPS.contains(&(node.op.as_str(), name));
    names.iter().enumerate().filter(|(_, name)| is_constant(name)).map(|(k, _)| k).collect()
}

/// The inputs that become constants after a failed import: those that a rule requested, otherwise
/// small integers. Empty if there are no new ones.
pub(super) fn additional(
    site: &Site,
    inputs: &[Value],
    known: &BTreeSet<usize>,
    requested: &BTreeSet<usize>,
) -> BTreeSet<usize> {
    let may_be = |k: &usize| *k < inputs.len() && !site.is_variable(*k) && !known.contains(k);
    let new: BTreeSet<usize> = requested.iter().copied().filter(may_be).collect();
    if !new.is_empty() {
        return new;
    }
    let is_small = |k: &usize| match &inputs[*k] {
        Value::Tensor(tensor) => {
            let shape = tensor.shape();
            shape.element_type.is_integer() && shape.rank() <= 2 && shape.element_count() <= FEW
        }
        _ => false,
    };
    (0..inputs.len()).filter(may_be).filter(is_small).collect()
}
