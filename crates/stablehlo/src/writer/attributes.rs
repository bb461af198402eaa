//! Attributes as text.

use super::types::quote;
use hlo::{
    ConvolutionDimensionNumbers, DotDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers,
};

/// Attributes by name.
pub(super) type Attributes = Vec<(&'static str, String)>;
/// The name of an operation, and its attributes.
pub(super) type NameAndAttributes = (&'static str, Attributes);

/// `array<i64: 1, 2>`.
pub(super) fn integers(values: impl IntoIterator<Item = i64>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    if values.is_empty() { "array<i64>".to_owned() } else { format!("array<i64: {}>", values.join(", ")) }
}

/// `array<i64: 1, 2>` for dimensions.
pub(super) fn dimensions(values: &[usize]) -> String {
    integers(values.iter().map(|&value| value as i64))
}

/// `array<i1: true, false>`.
pub(super) fn booleans(values: impl IntoIterator<Item = bool>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    if values.is_empty() { "array<i1>".to_owned() } else { format!("array<i1: {}>", values.join(", ")) }
}

/// `3 : i64`.
pub(super) fn integer(value: i64) -> String {
    format!("{value} : i64")
}

/// Pairs as a tensor: `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`.
pub(super) fn pairs(values: &[(i64, i64)]) -> String {
    let list: Vec<String> = values.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
    let list = if list.is_empty() { String::new() } else { format!("[{}]", list.join(", ")) };
    format!("dense<{list}> : tensor<{}x2xi64>", values.len())
}

/// `#stablehlo<fft_type RFFT>`.
pub(super) fn enumerator(kind: &str, value: &str) -> String {
    format!("#stablehlo<{kind} {value}>")
}

/// A string in quotes.
pub(super) fn string(text: &str) -> String {
    quote(text)
}

/// `#stablehlo.gather<offset_dims = [0], index_vector_dim = 1>`; omits empty fields.
fn record(name: &str, lists: &[(&str, &[usize])], number: Option<(&str, usize)>) -> String {
    let lists = lists.iter().filter(|(_, list)| !list.is_empty());
    let mut fields: Vec<String> = lists.map(|(field, list)| format!("{field} = {list:?}")).collect();
    fields.extend(number.map(|(field, value)| format!("{field} = {value}")));
    format!("#stablehlo.{name}<{}>", fields.join(", "))
}

pub(super) fn dot(numbers: &DotDimensionNumbers) -> String {
    let lists: [(&str, &[usize]); 4] = [
        ("lhs_batching_dimensions", &numbers.lhs_batch_dims),
        ("rhs_batching_dimensions", &numbers.rhs_batch_dims),
        ("lhs_contracting_dimensions", &numbers.lhs_contracting_dims),
        ("rhs_contracting_dimensions", &numbers.rhs_contracting_dims),
    ];
    record("dot", &lists, None)
}

pub(super) fn gather(numbers: &GatherDimensionNumbers) -> String {
    let lists: [(&str, &[usize]); 5] = [
        ("offset_dims", &numbers.offset_dims),
        ("collapsed_slice_dims", &numbers.collapsed_slice_dims),
        ("operand_batching_dims", &numbers.operand_batching_dims),
        ("start_indices_batching_dims", &numbers.start_indices_batching_dims),
        ("start_index_map", &numbers.start_index_map),
    ];
    record("gather", &lists, Some(("index_vector_dim", numbers.index_vector_dim)))
}

pub(super) fn scatter(numbers: &ScatterDimensionNumbers) -> String {
    let lists: [(&str, &[usize]); 5] = [
        ("update_window_dims", &numbers.update_window_dims),
        ("inserted_window_dims", &numbers.inserted_window_dims),
        ("input_batching_dims", &numbers.input_batching_dims),
        ("scatter_indices_batching_dims", &numbers.scatter_indices_batching_dims),
        ("scatter_dims_to_operand_dims", &numbers.scatter_dims_to_operand_dims),
    ];
    record("scatter", &lists, Some(("index_vector_dim", numbers.index_vector_dim)))
}

/// `#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`.
pub(super) fn convolution(labels: &ConvolutionDimensionNumbers) -> String {
    let part = |first: (usize, &str), second: (usize, &str), spatial: &[usize]| {
        let mut names = vec![String::new(); spatial.len() + 2];
        let spatial_names = spatial.iter().enumerate().map(|(k, &at)| (at, k.to_string()));
        for (at, name) in
            spatial_names.chain([(first.0, first.1.to_owned()), (second.0, second.1.to_owned())])
        {
            if let Some(slot) = names.get_mut(at) {
                *slot = name;
            }
        }
        format!("[{}]", names.join(", "))
    };
    let input = part(
        (labels.input_batch_dimension, "b"),
        (labels.input_feature_dimension, "f"),
        &labels.input_spatial_dimensions,
    );
    let kernel = part(
        (labels.kernel_input_feature_dimension, "i"),
        (labels.kernel_output_feature_dimension, "o"),
        &labels.kernel_spatial_dimensions,
    );
    let output = part(
        (labels.output_batch_dimension, "b"),
        (labels.output_feature_dimension, "f"),
        &labels.output_spatial_dimensions,
    );
    format!("#stablehlo.conv<{input}x{kernel}->{output}>")
}
