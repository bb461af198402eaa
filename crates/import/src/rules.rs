//! All rules: the families, one after the other.

use crate::rule::Rule;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The families' rules.
const FAMILIES: &[&[Rule]] = &[
    crate::activations::RULES,
    crate::arithmetic::RULES,
    crate::arrays::RULES,
    crate::batch_norm::RULES,
    crate::call_module::RULES,
    crate::calls::RULES,
    crate::cast::RULES,
    crate::collectives::RULES,
    crate::comparison::RULES,
    crate::complex::RULES,
    crate::concat_split::RULES,
    crate::conditionals::RULES,
    crate::constants::RULES,
    crate::convolution::RULES,
    crate::convolution_gradients::RULES,
    crate::counts::RULES,
    crate::custom_calls::RULES,
    crate::data_formats::RULES,
    crate::division::RULES,
    crate::dynamic_stitch::RULES,
    crate::einsum::RULES,
    crate::fake_quantization::RULES,
    crate::fourier::RULES,
    crate::fused::RULES,
    crate::gather::RULES,
    crate::gru_cells::RULES,
    crate::image_colours::RULES,
    crate::image_crops::RULES,
    crate::image_resize::RULES,
    crate::isotonic::RULES,
    crate::linear_algebra::RULES,
    crate::local_response::RULES,
    crate::losses::RULES,
    crate::lstm_cells::RULES,
    crate::lstm_sequences::RULES,
    crate::matmul::RULES,
    crate::matrix_diagonals::RULES,
    crate::next_after::RULES,
    crate::non_max_suppression::RULES,
    crate::optimizers::RULES,
    crate::optimizers::SPARSE_RULES,
    crate::pad::RULES,
    crate::passing::RULES,
    crate::patches::RULES,
    crate::pooling::RULES,
    crate::pooling_gradients::RULES,
    crate::quantization::RULES,
    crate::ragged_ranges::RULES,
    crate::random::RULES,
    crate::ranges::RULES,
    crate::reductions::RULES,
    crate::scans::RULES,
    crate::scatter::RULES,
    crate::searches::RULES,
    crate::selections::RULES,
    crate::shapes::RULES,
    crate::space_to_depth::RULES,
    crate::special_math::RULES,
    crate::stacks::RULES,
    crate::stateful_random::RULES,
    crate::stateless_random::RULES,
    crate::strided_slice::RULES,
    crate::tensor_array_ops::RULES,
    crate::tensor_list::RULES,
    crate::tensor_list_whole::RULES,
    crate::topk::RULES,
    crate::tridiagonal::RULES,
    crate::trigonometry::RULES,
    crate::uniform_convolution::RULES,
    crate::uniform_quantization::RULES,
    crate::unique::RULES,
    crate::variables::RULES,
    crate::variants::RULES,
    crate::while_loops::RULES,
    crate::xla_convolution::RULES,
    crate::xla_ops::RULES,
    crate::xla_partitions::RULES,
    crate::xla_reductions::RULES,
];

static BY_OP: LazyLock<BTreeMap<&'static str, &'static Rule>> =
    LazyLock::new(|| FAMILIES.iter().copied().flatten().map(|rule| (rule.op, rule)).collect());

/// The rule of an op.
pub(crate) fn find(op: &str) -> Option<&'static Rule> {
    BY_OP.get(op).copied()
}

/// An op that can be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedOp {
    /// TensorFlow's name.
    pub name: &'static str,
    /// The types that each of its type attributes may name; attributes that are not here are not restricted.
    pub types: Vec<(&'static str, &'static [tf::DataType])>,
}

/// Every op that can be imported, by name.
pub fn supported_ops() -> Vec<SupportedOp> {
    let types = |rule: &Rule| rule.types.iter().flatten().map(|t| (t.attribute, t.types)).collect();
    BY_OP.values().map(|rule| SupportedOp { name: rule.op, types: types(rule) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_has_one_rule() {
        let rows: usize = FAMILIES.iter().map(|family| family.len()).sum();
        let mut names: Vec<&str> = FAMILIES.iter().copied().flatten().map(|rule| rule.op).collect();
        names.sort_unstable();
        let twice: Vec<&[&str]> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "rows of the same op: {twice:?}");
        assert_eq!(supported_ops().len(), rows);
    }
}
