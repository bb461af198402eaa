//! Writes an instruction's attributes in XLA's text form.

use super::TUPLE;
use super::annotations_text::{
    enumerator, frontend_attributes_text, metadata_text, origin_text, sharding_text, statistics_text,
};
use super::instruction_messages::{HloInstructionProto, IotaGroupsMessage, ToleranceMessage};
use super::messages::{
    ConvolutionDimensionNumbersProto, DotDimensionNumbersProto, ShapeProto, WindowDimensionProto,
};
use super::read_literal::read_literal;
use super::shape_text::shape_text;
use super::text_form::{INFALLIBLE, Names, Shapes, escape, list};
use crate::infer::MAX_RANK;
use crate::text::literal_to_text;
use shape::{Literal, PrimitiveType};
use std::collections::BTreeMap;
use std::fmt::Write;
use support::{Error, Result};

/// Text of attributes, each preceded by a comma.
struct Attributes(String);

impl Attributes {
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        write!(self.0, ", {name}={value}").expect(INFALLIBLE);
    }

    /// `name={1,2}`.
    fn numbers<T: ToString>(&mut self, name: &str, values: &[T]) {
        self.add(name, format_args!("{{{}}}", list(values)));
    }

    /// `name={1,2}`, unless the list is empty.
    fn some_numbers<T: ToString>(&mut self, name: &str, values: &[T]) {
        if !values.is_empty() {
            self.numbers(name, values);
        }
    }

    fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.add(name, true);
        }
    }

    fn text(&mut self, name: &str, value: &[u8]) {
        if !value.is_empty() {
            self.add(name, format_args!("\"{}\"", escape(value)));
        }
    }
}

/// Returns all attributes of an instruction. `shapes` contains the shapes of its computation's
/// instructions.
pub(super) fn attributes(
    instruction: &HloInstructionProto,
    names: &Names,
    computations: &Names,
    shapes: &Shapes<'_>,
) -> Result<String> {
    let operand =
        instruction.operand_ids.first().and_then(|id| shapes.get(id).map(|shape| shape.element_type));
    let mut out = Attributes(String::new());
    dimensions(&mut out, instruction);
    numbers(&mut out, instruction);
    windows(&mut out, instruction)?;
    scalars(&mut out, instruction, operand)?;
    called_computations(&mut out, instruction, computations, operand == Some(PrimitiveType::Pred as i32))?;
    communication(&mut out, instruction, shapes)?;
    custom(&mut out, instruction)?;
    common(&mut out, instruction, names)?;
    Ok(out.0)
}

fn dimensions(out: &mut Attributes, instruction: &HloInstructionProto) {
    match instruction.opcode.as_str() {
        "iota" => out.add("iota_dimension", instruction.dimensions.first().copied().unwrap_or(0)),
        "broadcast" | "map" | "reduce" | "reverse" | "transpose" | "concatenate" | "sort" => {
            out.numbers("dimensions", &instruction.dimensions);
        }
        "reshape" => {
            if let Some(inferred) = instruction.dimensions.first() {
                out.add("inferred_dimension", inferred);
            }
        }
        _ => out.some_numbers("dimensions", &instruction.dimensions),
    }
    if instruction.opcode == "dynamic-slice" {
        out.numbers("dynamic_slice_sizes", &instruction.dynamic_slice_sizes);
    }
    if instruction.opcode == "slice" {
        let ranges = instruction.slice_dimensions.iter();
        let ranges: Vec<String> =
            ranges.map(|range| format!("[{}:{}:{}]", range.start, range.limit, range.stride)).collect();
        out.add("slice", format_args!("{{{}}}", ranges.join(", ")));
    }
}

fn numbers(out: &mut Attributes, instruction: &HloInstructionProto) {
    let dot = |out: &mut Attributes, numbers: &DotDimensionNumbersProto| {
        out.some_numbers("lhs_batch_dims", &numbers.lhs_batch_dimensions);
        out.some_numbers("lhs_contracting_dims", &numbers.lhs_contracting_dimensions);
        out.some_numbers("rhs_batch_dims", &numbers.rhs_batch_dimensions);
        out.some_numbers("rhs_contracting_dims", &numbers.rhs_contracting_dimensions);
    };
    if let Some(numbers) = &instruction.dot_dimension_numbers {
        dot(out, numbers);
    }
    if let Some(ragged) = &instruction.ragged_dot_dimension_numbers {
        if let Some(numbers) = &ragged.dot_dimension_numbers {
            dot(out, numbers);
        }
        out.some_numbers("lhs_ragged_dims", &ragged.lhs_ragged_dimensions);
        out.some_numbers("rhs_group_dims", &ragged.rhs_group_dimensions);
    }
    if let Some(numbers) = &instruction.gather_dimension_numbers {
        out.numbers("offset_dims", &numbers.offset_dims);
        out.numbers("collapsed_slice_dims", &numbers.collapsed_slice_dims);
        out.numbers("start_index_map", &numbers.start_index_map);
        out.some_numbers("operand_batching_dims", &numbers.operand_batching_dims);
        out.some_numbers("start_indices_batching_dims", &numbers.start_indices_batching_dims);
        out.add("index_vector_dim", numbers.index_vector_dim);
        out.numbers("slice_sizes", &instruction.gather_slice_sizes);
    }
    if let Some(numbers) = &instruction.scatter_dimension_numbers {
        out.numbers("update_window_dims", &numbers.update_window_dims);
        out.numbers("inserted_window_dims", &numbers.inserted_window_dims);
        out.numbers("scatter_dims_to_operand_dims", &numbers.scatter_dims_to_operand_dims);
        out.some_numbers("input_batching_dims", &numbers.input_batching_dims);
        out.some_numbers("scatter_indices_batching_dims", &numbers.scatter_indices_batching_dims);
        out.add("index_vector_dim", numbers.index_vector_dim);
    }
    out.flag("indices_are_sorted", instruction.indices_are_sorted);
    out.flag("unique_indices", instruction.unique_indices);
}

fn windows(out: &mut Attributes, instruction: &HloInstructionProto) -> Result<()> {
    if let Some(window) = instruction.window.as_ref().filter(|window| !window.dimensions.is_empty()) {
        let each = |part: &dyn Fn(&WindowDimensionProto) -> String| {
            window.dimensions.iter().map(part).collect::<Vec<_>>().join("x")
        };
        let text = format!(
            "{{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}",
            each(&|d| d.size.to_string()),
            each(&|d| d.stride.to_string()),
            each(&|d| format!("{}_{}", d.padding_low, d.padding_high)),
            each(&|d| d.base_dilation.to_string()),
            each(&|d| d.window_dilation.to_string()),
            each(&|d| u8::from(d.window_reversal).to_string()),
        );
        out.add("window", text);
    }
    if let Some(labels) = &instruction.convolution_dimension_numbers
        && matches!(instruction.opcode.as_str(), "convolution" | "custom-call")
    {
        out.add("dim_labels", dim_labels(labels)?);
    }
    let groups = [
        ("feature_group_count", instruction.feature_group_count),
        ("batch_group_count", instruction.batch_group_count),
    ];
    for (name, count) in groups.into_iter().filter(|(_, count)| *count > 1) {
        out.add(name, count);
    }
    if let Some(padding) = &instruction.padding_config {
        let dimensions = padding.dimensions.iter();
        let text: Vec<String> = dimensions
            .map(|d| format!("{}_{}_{}", d.edge_padding_low, d.edge_padding_high, d.interior_padding))
            .collect();
        out.add("padding", text.join("x"));
    }
    Ok(())
}

/// `b01f_01io->b01f`, with `?` for dimensions without a name, which custom calls can have.
fn dim_labels(numbers: &ConvolutionDimensionNumbersProto) -> Result<String> {
    let label = |first: (char, i64), second: (char, i64), spatial: &[i64]| -> Result<String> {
        let digits = spatial.iter().enumerate().map(|(k, dimension)| (k.to_string(), *dimension));
        let letters = [first, second].map(|(letter, dimension)| (letter.to_string(), dimension));
        let mut labels: BTreeMap<usize, String> = BTreeMap::new();
        for (letter, dimension) in letters.into_iter().chain(digits) {
            let place = usize::try_from(dimension).ok().filter(|place| *place < MAX_RANK);
            if place.is_none_or(|place| labels.insert(place, letter).is_some()) {
                return Err(Error::invalid("invalid dimension numbers of a convolution"));
            }
        }
        let last = labels.last_key_value().map_or(0, |(place, _)| *place);
        Ok((0..=last).map(|place| labels.get(&place).map_or("?", String::as_str)).collect())
    };
    Ok(format!(
        "{}_{}->{}",
        label(
            ('b', numbers.input_batch_dimension),
            ('f', numbers.input_feature_dimension),
            &numbers.input_spatial_dimensions
        )?,
        label(
            ('i', numbers.kernel_input_feature_dimension),
            ('o', numbers.kernel_output_feature_dimension),
            &numbers.kernel_spatial_dimensions
        )?,
        label(
            ('b', numbers.output_batch_dimension),
            ('f', numbers.output_feature_dimension),
            &numbers.output_spatial_dimensions
        )?,
    ))
}

fn word<'w>(value: &'w str, what: &str) -> Result<&'w str> {
    let is_word = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word
        .then_some(value)
        .ok_or_else(|| Error::invalid(format!("'{}' is not a {what}", value.escape_debug())))
}

/// Returns the comparison type that applies if the text states none.
fn default_comparison(element: Option<i32>) -> &'static str {
    let element = PrimitiveType::ALL.into_iter().find(|known| Some(*known as i32) == element);
    match element {
        Some(PrimitiveType::Pred) => "UNSIGNED",
        Some(element) if element.is_unsigned_integer() => "UNSIGNED",
        Some(element) if element.is_signed_integer() => "SIGNED",
        _ => "FLOAT",
    }
}

fn scalars(out: &mut Attributes, instruction: &HloInstructionProto, operand: Option<i32>) -> Result<()> {
    match instruction.opcode.as_str() {
        "get-tuple-element" => out.add("index", instruction.tuple_index),
        "compare" => {
            out.add("direction", word(&instruction.comparison_direction, "comparison")?);
            let comparison_type = instruction.comparison_type.as_str();
            if !comparison_type.is_empty() && comparison_type != default_comparison(operand) {
                out.add("type", word(comparison_type, "type of a comparison")?);
            }
        }
        "fft" => {
            out.add(
                "fft_type",
                enumerator(&["FFT", "IFFT", "RFFT", "IRFFT"], instruction.fft_type, "FFT type")?,
            );
            out.numbers("fft_length", &instruction.fft_length);
        }
        "rng" => {
            let names = ["", "rng_uniform", "rng_normal"];
            out.add("distribution", enumerator(&names, instruction.distribution, "random distribution")?);
        }
        "rng-bit-generator" => {
            let names = ["rng_default", "rng_three_fry", "rng_philox"];
            out.add("algorithm", enumerator(&names, instruction.rng_algorithm, "random algorithm")?);
        }
        "rng-get-and-update-state" => out.add("delta", instruction.delta),
        "reduce-precision" => {
            out.add("exponent_bits", instruction.exponent_bits);
            out.add("mantissa_bits", instruction.mantissa_bits);
        }
        "batch-norm-training" | "batch-norm-inference" | "batch-norm-grad" => {
            out.add("epsilon", format_args!("{:?}", instruction.epsilon));
            out.add("feature_index", instruction.feature_index);
        }
        "topk" => {
            out.add("k", instruction.k);
            out.add("largest", instruction.largest);
        }
        "sort" => out.flag("is_stable", instruction.is_stable),
        "fusion" => out.add("kind", word(&instruction.fusion_kind, "kind of fusion")?),
        _ => {}
    }
    if let Some(options) = &instruction.cholesky_options {
        out.flag("lower", options.lower);
    }
    if let Some(options) = &instruction.triangular_solve_options {
        out.flag("left_side", options.left_side);
        out.flag("lower", options.lower);
        out.flag("unit_diagonal", options.unit_diagonal);
        let names = ["NO_TRANSPOSE", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"];
        out.add("transpose_a", enumerator(&names, options.transpose_a, "transposition")?);
    }
    Ok(())
}

/// Writes the computations that an instruction calls, under the names for its opcode.
fn called_computations(
    out: &mut Attributes,
    instruction: &HloInstructionProto,
    computations: &Names,
    takes_pred: bool,
) -> Result<()> {
    let name = |id: &i64| {
        let name = computations.get(id).map(String::as_str);
        name.ok_or_else(|| Error::invalid(format!("unknown computation {id}")))
    };
    let names: Vec<&str> = instruction.called_computation_ids.iter().map(name).collect::<Result<_>>()?;
    match (instruction.opcode.as_str(), &names[..]) {
        (_, []) => {}
        ("while", [body, condition]) => {
            out.add("condition", condition);
            out.add("body", body);
        }
        ("select-and-scatter", [select, scatter]) => {
            out.add("select", select);
            out.add("scatter", scatter);
        }
        ("conditional", [when_true, when_false]) if takes_pred => {
            out.add("true_computation", when_true);
            out.add("false_computation", when_false);
        }
        ("conditional", branches) => {
            out.add("branch_computations", format_args!("{{{}}}", branches.join(", ")));
        }
        ("fusion" | "async-start" | "async-update" | "async-done", [only]) => out.add("calls", only),
        ("custom-call", several) => {
            out.add("called_computations", format_args!("{{{}}}", several.join(", ")));
        }
        (opcode, [only]) => {
            out.add("to_apply", only);
            out.flag("is_composite", instruction.is_composite && opcode == "call");
        }
        (opcode, several) => {
            return Err(Error::invalid(format!("{opcode} cannot call {} computations", several.len())));
        }
    }
    Ok(())
}

/// Attributes of programs for several devices, and of transfers.
fn communication(out: &mut Attributes, instruction: &HloInstructionProto, shapes: &Shapes<'_>) -> Result<()> {
    if instruction.channel_id != 0 {
        out.add("channel_id", instruction.channel_id);
    }
    let groups = match &instruction.collective_device_list {
        Some(list) if !list.replica_groups.is_empty() => &list.replica_groups,
        _ => &instruction.replica_groups,
    };
    let device_list = instruction.collective_device_list.as_ref();
    let iota = device_list.and_then(|list| list.iota_replica_group_list.as_ref());
    if let Some(iota) = instruction.iota_collective_device_list.as_ref().or(iota) {
        out.add("replica_groups", iota_groups_text(iota));
    } else if !groups.is_empty() {
        let groups: Vec<String> =
            groups.iter().map(|group| format!("{{{}}}", list(&group.replica_ids))).collect();
        out.add("replica_groups", format_args!("{{{}}}", groups.join(",")));
    }
    if !instruction.source_target_pairs.is_empty() {
        let pairs = instruction.source_target_pairs.iter();
        let pairs: Vec<String> = pairs.map(|pair| format!("{{{},{}}}", pair.source, pair.target)).collect();
        out.add("source_target_pairs", format_args!("{{{}}}", pairs.join(",")));
    }
    if instruction.opcode.starts_with("collective-permute") && !instruction.dynamic_slice_sizes.is_empty() {
        out.add("slice_sizes", slice_sizes_text(instruction, shapes)?);
    }
    out.flag("use_global_device_ids", instruction.use_global_device_ids);
    out.flag("is_host_transfer", instruction.is_host_transfer);
    if let Some(shape) = instruction.outfeed_shape.as_ref().filter(|_| instruction.opcode == "outfeed") {
        out.add("outfeed_shape", shape_text(shape, 0)?);
    }
    out.text("infeed_config", &instruction.infeed_config);
    out.text("outfeed_config", &instruction.outfeed_config);
    if instruction.opcode.starts_with("async-") && instruction.async_execution_thread != "main" {
        out.text("async_execution_thread", instruction.async_execution_thread.as_bytes());
    }
    if let Some(index) = instruction.cross_program_prefetch_index {
        out.add("cross_program_prefetch_index", index);
    }
    if let (Some(entry), Some(exit)) = (&instruction.domain_entry_sharding, &instruction.domain_exit_sharding)
    {
        // In the message, the entry is on the side of the operand; in the text, on that of the
        // users.
        let (exit, entry) = (sharding_text(entry, 0)?, sharding_text(exit, 0)?);
        out.add("domain", format_args!("{{kind=\"sharding\", entry={entry}, exit={exit}}}"));
    }
    Ok(())
}

/// `{{1,8,128},{1,8,128}}`: the sizes of the slices that a permutation moves, each with the
/// operand's rank. The message stores them consecutively, one for each start of each array.
fn slice_sizes_text(instruction: &HloInstructionProto, shapes: &Shapes<'_>) -> Result<String> {
    let mismatch = || Error::invalid("slice sizes that do not match the operands");
    let operand =
        |k: usize| instruction.operand_ids.get(k).and_then(|id| shapes.get(id)).ok_or_else(mismatch);
    let (source, starts) = (operand(0)?, operand(2)?);
    // A start is a tuple of numbers; there can be several per array, and several arrays.
    let counts: Vec<(usize, usize)> = if source.element_type != TUPLE {
        let nested = starts.tuple_shapes.first().is_some_and(|first| first.element_type == TUPLE);
        vec![(source.dimensions.len(), if nested { starts.tuple_shapes.len() } else { 1 })]
    } else {
        let count = |start: &ShapeProto| match start.tuple_shapes.first() {
            Some(first) if first.element_type == TUPLE => start.tuple_shapes.len(),
            _ => 1,
        };
        let pairs = source.tuple_shapes.iter().zip(&starts.tuple_shapes);
        pairs.map(|(array, start)| (array.dimensions.len(), count(start))).collect()
    };
    let mut rest = &instruction.dynamic_slice_sizes[..];
    let mut texts = Vec::new();
    let ranks = counts.into_iter().flat_map(|(rank, count)| std::iter::repeat_n(rank, count));
    for rank in ranks.filter(|rank| *rank > 0) {
        // The list can be shorter or longer than the starts imply.
        let (sizes, others) = rest.split_at(rank.min(rest.len()));
        if !sizes.is_empty() {
            texts.push(format!("{{{}}}", list(sizes)));
        }
        rest = others;
    }
    Ok(format!("{{{}}}", texts.join(",")))
}

/// `[2,4]<=[4,2]T(1,0)`: the devices in order, reshaped, transposed, and divided into groups.
fn iota_groups_text(iota: &IotaGroupsMessage) -> String {
    let transposed = match iota.iota_transpose_perm.len() {
        0 | 1 => String::new(),
        _ => format!("T({})", list(&iota.iota_transpose_perm)),
    };
    let (groups, devices) = (iota.num_replica_groups, iota.num_devices_per_group);
    format!("[{groups},{devices}]<=[{}]{transposed}", list(&iota.iota_reshape_dims))
}

/// Attributes of custom calls, and the precision of products.
fn custom(out: &mut Attributes, instruction: &HloInstructionProto) -> Result<()> {
    if instruction.opcode == "custom-call" {
        out.add(
            "custom_call_target",
            format_args!("\"{}\"", escape(instruction.custom_call_target.as_bytes())),
        );
        out.flag("custom_call_has_side_effect", instruction.custom_call_has_side_effect);
        if instruction.custom_call_api_version > 1 {
            out.add(
                "api_version",
                enumerator(&API_VERSIONS, instruction.custom_call_api_version, "API version")?,
            );
        }
        if instruction.custom_call_schedule > 0 {
            out.add("schedule", enumerator(&SCHEDULES, instruction.custom_call_schedule, "schedule")?);
        }
        if let Some(value) = &instruction.literal {
            out.add("literal", shaped_literal(&read_literal(value)?));
        }
        if instruction.padding_type != 0 {
            out.add("padding_type", enumerator(&PADDING_TYPES, instruction.padding_type, "padding type")?);
        }
        if instruction.constrain_layout {
            let shapes = instruction.operand_shapes_with_layout.iter().map(|shape| shape_text(shape, 0));
            let shapes = shapes.collect::<Result<Vec<_>>>()?.join(", ");
            out.add("operand_layout_constraints", format_args!("{{{shapes}}}"));
        }
    } else {
        out.flag("constrain_layout", instruction.constrain_layout);
    }
    if !instruction.output_operand_aliasing.is_empty() {
        let pairs = instruction.output_operand_aliasing.iter().map(|pair| {
            let (output, operand) = (list(&pair.output_shape_index), list(&pair.operand_shape_index));
            format!("{{{output}}}: ({}, {{{operand}}})", pair.operand_index)
        });
        let pairs: Vec<String> = pairs.collect();
        out.add("output_to_operand_aliasing", format_args!("{{{}}}", pairs.join(", ")));
    }
    if let Some(precision) = &instruction.precision_config {
        if precision.operand_precision.iter().any(|value| *value != 0) {
            let names = precision.operand_precision.iter();
            let names = names.map(|value| enumerator(&PRECISIONS, *value, "precision"));
            let names = names.collect::<Result<Vec<_>>>()?.join(",");
            out.add("operand_precision", format_args!("{{{names}}}"));
        }
        if precision.algorithm != 0 {
            out.add("algorithm", enumerator(&ALGORITHMS, precision.algorithm, "algorithm of a dot")?);
        }
    }
    Ok(())
}

/// `s32[2]{0} {1, 2}`, `( s32[] 1, pred[] true )`. XLA reads braces after a shape as its layout, so
/// the layout is always written.
fn shaped_literal(literal: &Literal) -> String {
    if let Literal::Tuple(elements) = literal {
        let elements: Vec<String> = elements.iter().map(shaped_literal).collect();
        return format!("( {} )", elements.join(", "));
    }
    let text = literal_to_text(literal);
    let shape = literal.shape();
    let rank = shape.as_array().map_or(0, |array| array.rank());
    match (rank, text.split_once(' ')) {
        (1.., Some((shape, elements))) => {
            let order: Vec<usize> = (0..rank).rev().collect();
            format!("{shape}{{{}}} {elements}", list(&order))
        }
        _ => text,
    }
}

/// The texts of `CustomCallApiVersion`; the first two are the meanings of a text without one.
pub(super) const API_VERSIONS: [&str; 5] =
    ["", "", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"];

/// The texts of `CustomCallSchedule`.
pub(super) const SCHEDULES: [&str; 3] = ["", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"];

/// The texts of `PaddingType`.
pub(super) const PADDING_TYPES: [&str; 3] = ["", "PADDING_VALID", "PADDING_SAME"];

/// The texts of `PrecisionConfig.Precision`.
pub(super) const PRECISIONS: [&str; 3] = ["default", "high", "highest"];

/// The texts of `PrecisionConfig.Algorithm`.
pub(super) const ALGORITHMS: [&str; 14] = [
    "",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
];

/// Attributes that every instruction can have.
fn common(out: &mut Attributes, instruction: &HloInstructionProto, names: &Names) -> Result<()> {
    if let Some(message) = &instruction.sharding {
        out.add("sharding", sharding_text(message, 0)?);
    }
    if let Some(replication) = &instruction.parameter_replication
        && !replication.replicated_at_leaf_buffers.is_empty()
    {
        out.numbers("parameter_replication", &replication.replicated_at_leaf_buffers);
    }
    if let Some(frontend) =
        instruction.frontend_attributes.as_ref().filter(|frontend| !frontend.map.is_empty())
    {
        out.add("frontend_attributes", frontend_attributes_text(frontend));
    }
    if !instruction.control_predecessor_ids.is_empty() {
        let name = |id: &i64| {
            let name = names.get(id).map(String::as_str);
            name.ok_or_else(|| Error::invalid(format!("control predecessor {id} is not in its computation")))
        };
        let predecessors: Vec<&str> =
            instruction.control_predecessor_ids.iter().map(name).collect::<Result<_>>()?;
        out.add("control-predecessors", format_args!("{{{}}}", predecessors.join(", ")));
    }
    if let Some(statistics) = instruction.statistics_viz.as_ref().filter(|viz| !viz.statistics.is_empty()) {
        out.add("statistics", statistics_text(statistics));
    }
    if let Some(accuracy) = &instruction.result_accuracy {
        if accuracy.mode != 0 {
            let mode = enumerator(&["default", "highest"], accuracy.mode, "accuracy")?;
            out.add("result_accuracy", format_args!("{{mode={mode}}}"));
        } else if let Some(ToleranceMessage { atol, rtol, ulps }) = &accuracy.tolerance {
            let tolerance = format_args!("{{tolerance={{atol={atol},rtol={rtol},ulps={ulps}}}}}");
            out.add("result_accuracy", tolerance);
        }
    }
    if let (Some(origin), Some(shape)) = (&instruction.original_value, &instruction.shape)
        && !origin.elements.is_empty()
    {
        out.add("origin", origin_text(origin, shape)?);
    }
    if let Some(metadata) = &instruction.metadata {
        let text = metadata_text(metadata);
        if !text.is_empty() {
            out.add("metadata", format_args!("{{{text}}}"));
        }
    }
    out.text("backend_config", &instruction.backend_config);
    Ok(())
}
