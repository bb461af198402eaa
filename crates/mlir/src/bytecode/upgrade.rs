//! Converts operations of VHLO to StableHLO.
//!
//! VHLO is StableHLO with a version in each name: attributes with a default are explicit, records
//! are split into fields, and symbols are strings. Older versions omit attributes that were added
//! later, whose defaults preserve the older meaning.

use super::newer;
use super::vhlo::API_VERSIONS;
use crate::attribute::{Attribute, Attributes};
use crate::ir::{Operation, Region};
use crate::types::Type;
use support::Result;

/// Returns the operation as the text parser would.
pub(super) fn upgrade(mut operation: Operation) -> Result<Operation> {
    let Some(versioned) = operation.name.strip_prefix("vhlo.") else { return Ok(operation) };
    let name = match versioned.rsplit_once("_v") {
        Some((name, version)) if version.parse::<u32>().is_ok() => name.to_owned(),
        _ => return Err(newer(format_args!("operation {versioned}"))),
    };
    operation.name = match name.as_str() {
        "func" => "func.func".to_owned(),
        "call" => "func.call".to_owned(),
        _ => format!("stablehlo.{name}"),
    };
    let versioned_attributes = std::mem::take(&mut operation.attributes);
    for (key, value) in versioned_attributes.into_iter() {
        if !is_default(&name, &key, &value) {
            let (key, value) = rename(&name, key, value);
            operation.attributes.set(key, value);
        }
    }
    group(&name, &mut operation.attributes);
    if name == "func" {
        finish_function(&mut operation);
    }
    Ok(operation)
}

/// True if an attribute has its default value, so that it can be omitted.
fn is_default(operation: &str, key: &str, value: &Attribute) -> bool {
    let is_false = || matches!(value, Attribute::Bool(false));
    let is_zero = || matches!(value, Attribute::Integer(0));
    let is_empty = || match value {
        Attribute::Array(list) => list.is_empty(),
        Attribute::String(text) => text.is_empty(),
        Attribute::Dictionary(fields) => fields.iter().next().is_none(),
        Attribute::Elements(elements) => elements.shape.element_count() == 0,
        _ => false,
    };
    let all_are = |number: i64| match value {
        Attribute::Elements(elements) => {
            let values = elements.all.as_ref().unwrap_or(&elements.scalar).to_i64s();
            elements.shape.element_count() == 0
                || values.is_some_and(|numbers| numbers.iter().all(|n| *n == number))
        }
        _ => false,
    };
    let has_window =
        matches!(operation, "convolution" | "dynamic_conv" | "reduce_window" | "select_and_scatter");
    match key {
        "sym_visibility" | "arg_attrs" | "res_attrs" => is_empty(),
        "channel_id" => is_zero() && !matches!(operation, "send" | "recv"),
        "use_global_device_ids" | "has_dynamic_root" | "indices_are_sorted" | "unique_indices" => is_false(),
        "is_stable" | "has_side_effect" | "is_host_transfer" => is_false(),
        "lower" => operation == "cholesky" && is_false(),
        "compare_type" => value.text() == Some("NOTYPE"),
        "version" | "composite_attributes" => operation == "composite" && (is_zero() || is_empty()),
        "window_strides" | "lhs_dilation" | "rhs_dilation" | "base_dilations" | "window_dilations" => {
            has_window && all_are(1)
        }
        "padding" => has_window && all_are(0),
        "window_reversal" => all_are(0),
        "precision_config" => match value {
            Attribute::Array(list) => list.iter().all(|precision| precision.text() == Some("DEFAULT")),
            _ => false,
        },
        "backend_config" | "called_computations" | "operand_layouts" | "result_layouts" => is_empty(),
        "output_operand_aliases" | "result_tilings" => is_empty(),
        "infeed_config" | "outfeed_config" | "layout" | "source_target_pairs" => is_empty(),
        "known_expanding_dimensions" | "known_nonexpanding_dimensions" => is_empty(),
        "operand_batching_dims" | "start_indices_batching_dims" => is_empty(),
        "input_batching_dims" | "scatter_indices_batching_dims" => is_empty(),
        "api_version" => value.text() == Some("API_VERSION_ORIGINAL"),
        "dimension" => operation == "sort" && matches!(value, Attribute::Integer(-1)),
        "result_accuracy" => is_default_accuracy(value),
        _ => false,
    }
}

fn is_default_accuracy(value: &Attribute) -> bool {
    let Some(fields) = value.dictionary() else { return false };
    let is_zero = |key: &str| fields.get(key).and_then(Attribute::float) == Some(0.0);
    let mode = fields.get("mode").and_then(Attribute::text);
    is_zero("atol") && is_zero("rtol") && is_zero("ulps") && mode == Some("DEFAULT")
}

/// Returns an attribute with the name and in the form that StableHLO uses.
fn rename(operation: &str, key: String, value: Attribute) -> (String, Attribute) {
    match (operation, key.as_str(), value) {
        ("call", "callee", Attribute::String(name))
        | ("composite", "decomposition", Attribute::String(name)) => (key, Attribute::Symbol(name)),
        ("custom_call", "called_computations", Attribute::Array(names)) => {
            let symbol = |name| match name {
                Attribute::String(name) => Attribute::Symbol(name),
                other => other,
            };
            (key, Attribute::Array(names.into_iter().map(symbol).collect()))
        }
        (_, "api_version", Attribute::Keyword(version)) => {
            let number = API_VERSIONS.iter().position(|name| *name == version).unwrap_or(0);
            (key, Attribute::Integer(number as i128))
        }
        (_, "channel_id", id) if !matches!(operation, "send" | "recv") => {
            let mut handle = Attributes::default();
            handle.set("handle", id);
            handle.set("type", Attribute::Integer(0));
            ("channel_handle".to_owned(), Attribute::Dictionary(handle))
        }
        (_, "channel_id", id) => ("handle".to_owned(), id),
        (_, "channel_type", id) => ("type".to_owned(), id),
        (_, "use_global_device_ids" | "has_dynamic_root", Attribute::Bool(true)) => (key, Attribute::Unit),
        (_, _, value) if is_list(operation, &key) && matches!(value, Attribute::Elements(_)) => {
            (key, value.integers().map_or(value, Attribute::Integers))
        }
        (_, _, value) => (key, value),
    }
}

/// True if StableHLO uses a list of numbers where VHLO uses a tensor.
fn is_list(operation: &str, key: &str) -> bool {
    match operation {
        "constant" => false,
        "custom_call" | "composite" => false,
        _ => !matches!(key, "padding" | "replica_groups" | "source_target_pairs" | "value"),
    }
}

/// Collects attributes that form a record in StableHLO.
fn group(operation: &str, attributes: &mut Attributes) {
    let conv = [
        "input_batch_dimension",
        "input_feature_dimension",
        "input_spatial_dimensions",
        "kernel_input_feature_dimension",
        "kernel_output_feature_dimension",
        "kernel_spatial_dimensions",
        "output_batch_dimension",
        "output_feature_dimension",
        "output_spatial_dimensions",
    ];
    match operation {
        "convolution" | "dynamic_conv" => {
            attributes.group("dimension_numbers", &conv);
            // In a dynamic convolution, the padding is an operand.
            if operation == "dynamic_conv" {
                attributes.remove("padding");
            }
        }
        "dot_general" => {
            let sides = ["lhs", "rhs"];
            let dims = sides.map(|side| {
                [format!("{side}_batching_dimensions"), format!("{side}_contracting_dimensions")]
            });
            let dims: Vec<&str> = dims.as_flattened().iter().map(String::as_str).collect();
            attributes.group("dot_dimension_numbers", &dims);
            let algorithm = [
                "lhs_precision_type",
                "rhs_precision_type",
                "accumulation_type",
                "lhs_component_count",
                "rhs_component_count",
                "num_primitive_operations",
                "allow_imprecise_accumulation",
            ];
            attributes.group("algorithm", &algorithm);
            let none = Attribute::Type(Type::None);
            let record = attributes.get("algorithm").and_then(Attribute::dictionary);
            if record.is_some_and(|fields| fields.get("lhs_component_count") == Some(&none)) {
                attributes.remove("algorithm");
            }
        }
        "gather" | "dynamic_gather" => attributes.group(
            "dimension_numbers",
            &[
                "offset_dims",
                "collapsed_slice_dims",
                "operand_batching_dims",
                "start_indices_batching_dims",
                "start_index_map",
                "index_vector_dim",
            ],
        ),
        "scatter" => attributes.group(
            "scatter_dimension_numbers",
            &[
                "update_window_dims",
                "inserted_window_dims",
                "input_batching_dims",
                "scatter_indices_batching_dims",
                "scatter_dims_to_operand_dims",
                "index_vector_dim",
            ],
        ),
        "send" | "recv" => {
            attributes.group("channel_handle", &["handle", "type"]);
        }
        _ => {}
    }
}

/// Replaces the terminator by `func.return` and gives each argument and result attributes, even if
/// empty.
fn finish_function(function: &mut Operation) {
    let Some(Attribute::Type(Type::Function { inputs, results })) = function.attribute("function_type")
    else {
        return;
    };
    let counts = [("arg_attrs", inputs.len()), ("res_attrs", results.len())];
    for (key, count) in counts {
        let is_complete = match function.attribute(key) {
            Some(Attribute::Array(list)) => list.len() == count,
            _ => false,
        };
        if !is_complete {
            let none = vec![Attribute::Dictionary(Attributes::default()); count];
            function.attributes.set(key, Attribute::Array(none));
        }
    }
    let is_bodiless = |region: &Region| region.blocks.iter().all(|block| block.operations.is_empty());
    function.regions.retain(|region| !is_bodiless(region));
    for block in function.regions.iter_mut().flat_map(|region| &mut region.blocks) {
        for operation in &mut block.operations {
            if operation.name == "stablehlo.return" {
                operation.name = "func.return".to_owned();
            }
        }
    }
}
