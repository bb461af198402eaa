//! XLA's instructions that apply a function of the graph to elements: reductions, windows,
//! scatters, and sorts.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::xla::instructions::not_serialized;
use bounded::list;
use hlo::{
    ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, InstructionId, Op, Window,
    WindowDimension,
};
use shape::{PrimitiveType, Shape};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("XlaReduce", xla_reduce).types("T", BOOL_NUMBERS_AND_QUANTIZED),
    rule_many("XlaVariadicReduce", xla_reduce).types("T", BOOL_NUMBERS_AND_QUANTIZED),
    rule_many("XlaVariadicReduceV2", xla_reduce).types("T", ALL),
    rule("XlaReduceWindow", xla_reduce_window)
        .types("T", BOOL_NUMBERS_AND_QUANTIZED)
        .types("Tindices", INDICES),
    rule("XlaSelectAndScatter", xla_select_and_scatter)
        .types("T", NUMBERS_AND_QUANTIZED)
        .types("Tindices", INDICES),
    rule("XlaScatter", xla_scatter).types("T", BOOL_NUMBERS_AND_QUANTIZED).types("Tindices", INDICES),
    rule_many("XlaSort", xla_sort).types("T", SORTABLE),
    rule_many("XlaKeyValueSort", xla_sort).types("K", REAL).types("V", ALL),
    rule_many("XlaVariadicSort", xla_variadic_sort).types("T", ALL),
];

/// Returns the element types of arrays.
fn types(cx: &NodeContext<'_, '_>, ids: &[InstructionId]) -> Vec<PrimitiveType> {
    ids.iter().map(|&id| cx.element_type(id)).collect()
}

/// Returns the elements of a result: the array itself, or those of the tuple.
fn results(cx: &mut NodeContext<'_, '_>, result: InstructionId, count: usize) -> Result<Vec<InstructionId>> {
    if count == 1 {
        return Ok(vec![result]);
    }
    (0..count).map(|k| cx.tuple_element(result, k)).collect()
}

/// `XlaReduce(x, init)` and its variants with several arrays. `reducer` takes the intermediate
/// results, then the elements.
fn xla_reduce(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = cx.inputs_from(0)?;
    let count = operands.len() / 2;
    cx.check(count > 0 && operands.len() == 2 * count, || {
        "expected at least one array, and an initial value for each".to_owned()
    })?;
    let rank = cx.rank(operands[0]);
    let mut dimensions = Vec::new();
    for dimension in cx.attributes().ints("dimensions_to_reduce")? {
        let fits = (0..rank as i64).contains(&dimension) && !dimensions.contains(&(dimension as usize));
        cx.check(fits, || {
            format!("dimensions_to_reduce: expected distinct dimensions below {rank}, got {dimension}")
        })?;
        dimensions.push(dimension as usize);
    }
    dimensions.sort_unstable();
    let elements = types(cx, &operands[..count]);
    let to_apply = cx.element_function("reducer", &[&elements[..], &elements].concat(), &elements)?;
    let result = cx.op(Op::Reduce { dimensions, to_apply }, &operands)?;
    results(cx, result, count)
}

/// Returns a window described by vectors of integers, one for each dimension, and a matrix of
/// paddings.
fn window(
    cx: &mut NodeContext<'_, '_>,
    rank: usize,
    vectors: [Option<usize>; 4],
    padding: usize,
) -> Result<Window> {
    let mut values = Vec::with_capacity(4);
    let names = ["window_dimensions", "window_strides", "base_dilations", "window_dilations"];
    for (k, name) in vectors.into_iter().zip(names) {
        let vector = match k {
            Some(k) => cx.constant_i64s(k)?,
            None => vec![1; rank],
        };
        let fits = vector.len() == rank && vector.iter().all(|&value| value > 0);
        cx.check(fits, || {
            format!(
                "{name}: expected a positive integer for each of the {rank} dimensions, got {}",
                list(&vector)
            )
        })?;
        values.push(vector);
    }
    let edges = cx.constant(padding)?;
    let edge_sizes = edges.array_shape().sizes();
    let edges = edges.to_i64s().unwrap_or_default();
    cx.check(edge_sizes == [rank as i64, 2] && edges.len() == 2 * rank, || {
        format!(
            "padding: expected a matrix [{rank}, 2] with a pair for each dimension, got shape {}",
            list(&edge_sizes)
        )
    })?;
    let dimension = |d: usize| WindowDimension {
        stride: values[1][d],
        padding_low: edges[2 * d],
        padding_high: edges[2 * d + 1],
        base_dilation: values[2][d],
        window_dilation: values[3][d],
        ..WindowDimension::of_size(values[0][d])
    };
    Ok(Window { dimensions: (0..rank).map(dimension).collect() })
}

/// `XlaReduceWindow(x, init, window_dimensions, window_strides, base_dilations, window_dilations,
/// padding)`.
fn xla_reduce_window(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, init) = (cx.input(0)?, cx.input(1)?);
    let rank = cx.rank(x);
    let window = window(cx, rank, [Some(2), Some(3), Some(4), Some(5)], 6)?;
    let element = cx.element_type(x);
    let to_apply = cx.element_function("computation", &[element, element], &[element])?;
    cx.op(Op::ReduceWindow { window, to_apply }, &[x, init])
}

/// `XlaSelectAndScatter(x, window_dimensions, window_strides, padding, source, init)`: adds each
/// element of `source`, by `scatter`, to the element of its window that `select` prefers.
fn xla_select_and_scatter(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, source, init) = (cx.input(0)?, cx.input(4)?, cx.input(5)?);
    let rank = cx.rank(x);
    let window = window(cx, rank, [Some(1), Some(2), None, None], 3)?;
    let element = cx.element_type(x);
    let select = cx.element_function("select", &[element, element], &[PrimitiveType::Pred])?;
    let scatter = cx.element_function("scatter", &[element, element], &[element])?;
    cx.op(Op::SelectAndScatter { window, select, scatter }, &[x, source, init])
}

/// `XlaScatter(x, scatter_indices, updates)`. Windows that do not fit are skipped.
fn xla_scatter(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let bytes = cx.attributes().string("dimension_numbers")?;
    let scatter_dimension_numbers = hlo::proto::scatter_dimension_numbers_from_bytes(&bytes)
        .map_err(|error| not_serialized(cx, "ScatterDimensionNumbers", &error))?;
    let indices_are_sorted = cx.attributes().bool_or("indices_are_sorted", false)?;
    let element = cx.element_type(operands[0]);
    let to_apply = cx.element_function("update_computation", &[element, element], &[element])?;
    let op = Op::Scatter { scatter_dimension_numbers, indices_are_sorted, unique_indices: false, to_apply };
    cx.op(op, &operands)
}

/// `XlaSort(x)` and `XlaKeyValueSort(keys, values)`: sorts along the last dimension in ascending
/// order. Floats are in total order: -0 before 0, and positive NaN last.
fn xla_sort(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = cx.inputs_from(0)?;
    let Some(dimension) = cx.rank(operands[0]).checked_sub(1) else { return Ok(operands) };
    let to_apply = ascending(cx, &operands)?;
    // Sort stably, so that the order of values with equal keys is well defined.
    let result = cx.op(Op::Sort { dimension, is_stable: true, to_apply }, &operands)?;
    results(cx, result, operands.len())
}

/// True if the first of two elements of operand 0 is less than the second.
fn ascending(cx: &mut NodeContext<'_, '_>, operands: &[InstructionId]) -> Result<ComputationId> {
    let mut builder = ComputationBuilder::new("ascending");
    let mut sides = Vec::new();
    for (k, element_type) in types(cx, operands).into_iter().enumerate() {
        sides.push(builder.parameter(&format!("x{k}"), Shape::scalar(element_type)));
        sides.push(builder.parameter(&format!("y{k}"), Shape::scalar(element_type)));
    }
    let comparison_type = if cx.element_type(operands[0]).is_floating_point() {
        ComparisonType::TotalOrder
    } else {
        ComparisonType::Default
    };
    let op = Op::Compare { direction: ComparisonDirection::Lt, comparison_type };
    let module = cx.module_mut();
    let root = builder.op(module, op, &sides[..2])?;
    Ok(module.add_computation(builder.finish(root)))
}

/// `XlaVariadicSort(x..., dimension)`: `comparator` takes two elements of each array.
fn xla_variadic_sort(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let last = cx.inputs().len().saturating_sub(1);
    let mut operands = cx.inputs_from(0)?;
    operands.truncate(last);
    cx.check(!operands.is_empty(), || "expected at least one array".to_owned())?;
    let dimension = cx.constant_i64(last)?;
    let rank = cx.rank(operands[0]);
    let dimension = cx.dimension(dimension, rank)?;
    let is_stable = cx.attributes().bool_or("is_stable", false)?;
    let pairs: Vec<PrimitiveType> = types(cx, &operands).into_iter().flat_map(|t| [t, t]).collect();
    let to_apply = cx.element_function("comparator", &pairs, &[PrimitiveType::Pred])?;
    let result = cx.op(Op::Sort { dimension, is_stable, to_apply }, &operands)?;
    results(cx, result, operands.len())
}
