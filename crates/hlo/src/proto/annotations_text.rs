//! Annotations of instructions and modules in XLA's text: metadata, shardings, statistics, origins.

use super::TUPLE;
use super::instruction_messages::{
    FrontendAttributesMessage, OriginalArrayMessage, OriginalValueMessage, ShardingMessage, StatisticsMessage,
};
use super::messages::{OpMetadataProto, ShapeProto};
use super::text_form::{INFALLIBLE, escape, list};
use std::collections::BTreeMap;
use std::fmt::Write;
use support::{Error, Result};

/// Maximum nesting depth of shardings and the shapes of origins.
const MAX_DEPTH: usize = 20;

/// The texts of `OpSharding.Type`; tiles are written as `devices=...` instead.
pub(super) const SHARDING_KINDS: [&str; 7] =
    ["replicated", "maximal", "tuple", "other", "manual", "unknown", "unreduced"];

/// The texts of `OpSharding.ShardGroupType`.
pub(super) const SHARD_GROUP_KINDS: [&str; 2] = ["shard_as", "shard_like"];

/// Returns the name of an enumerator.
pub(super) fn enumerator(names: &[&'static str], value: i32, what: &str) -> Result<&'static str> {
    let name = usize::try_from(value).ok().and_then(|value| names.get(value).copied());
    name.filter(|name| !name.is_empty()).ok_or_else(|| Error::unsupported(format!("unknown {what} {value}")))
}

/// Returns the fields of metadata in the order of XLA's text.
pub(super) fn metadata_text(metadata: &OpMetadataProto) -> String {
    let mut parts = Vec::new();
    let text = |name: &str, value: &str| {
        (!value.is_empty()).then(|| format!("{name}=\"{}\"", escape(value.as_bytes())))
    };
    parts.extend(text("op_type", &metadata.op_type));
    parts.extend(text("op_name", &metadata.op_name));
    parts.extend(text("source_file", &metadata.source_file));
    let numbers = [
        ("source_line", metadata.source_line),
        ("source_end_line", metadata.source_end_line),
        ("source_column", metadata.source_column),
        ("source_end_column", metadata.source_end_column),
    ];
    let numbers = numbers.into_iter().filter(|(_, number)| *number != 0);
    parts.extend(numbers.map(|(name, number)| format!("{name}={number}")));
    if !metadata.profile_type.is_empty() {
        parts.push(format!("profile_type={{{}}}", list(&metadata.profile_type)));
    }
    parts.extend(text("deduplicated_name", &metadata.deduplicated_name));
    parts.extend(text("scheduling_name", &metadata.scheduling_name));
    parts.join(" ")
}

/// `{key="value",other="value"}`.
pub(super) fn frontend_attributes_text(frontend: &FrontendAttributesMessage) -> String {
    let entries = frontend.map.iter().map(|(key, value)| {
        let key = crate::text::sanitize(key);
        format!("{key}=\"{}\"", escape(value.as_bytes()))
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// `{visualizing_index=1,stat-1=33,stat-2=44}`.
pub(super) fn statistics_text(viz: &StatisticsMessage) -> String {
    let each = viz.statistics.iter();
    let each = each.map(|one| format!(",{}={}", crate::text::sanitize(&one.stat_name), one.stat_val));
    format!("{{visualizing_index={}{}}}", viz.stat_index_to_visualize, each.collect::<String>())
}

/// `{({"a" {0}}, {})}`: the source of each array in a shape, if known.
pub(super) fn origin_text(origin: &OriginalValueMessage, shape: &ShapeProto) -> Result<String> {
    let arrays: BTreeMap<&[i64], &OriginalArrayMessage> = origin
        .elements
        .iter()
        .filter_map(|element| Some((&element.shape_index[..], element.original_array.as_ref()?)))
        .collect();
    fn node(
        shape: &ShapeProto,
        index: &mut Vec<i64>,
        arrays: &BTreeMap<&[i64], &OriginalArrayMessage>,
    ) -> Result<String> {
        if index.len() > MAX_DEPTH {
            return Err(Error::unsupported(format!("tuples nest deeper than {MAX_DEPTH} levels")));
        }
        if shape.element_type != TUPLE {
            let array = arrays.get(&index[..]).map(|array| original_array_text(array));
            return Ok(format!("{{{}}}", array.unwrap_or_default()));
        }
        let mut elements = Vec::with_capacity(shape.tuple_shapes.len());
        for (k, element) in shape.tuple_shapes.iter().enumerate() {
            index.push(k as i64);
            elements.push(node(element, index, arrays)?);
            index.pop();
        }
        Ok(format!("({})", elements.join(", ")))
    }
    Ok(format!("{{{}}}", node(shape, &mut Vec::new(), &arrays)?))
}

/// `"name" {0,1}`, without the index if it is empty.
pub(super) fn original_array_text(array: &OriginalArrayMessage) -> String {
    let name = escape(array.instruction_name.as_bytes());
    match &array.shape_index[..] {
        [] => format!("\"{name}\""),
        index => format!("\"{name}\" {{{}}}", list(index)),
    }
}

/// `{replicated}`, `{devices=[2,1]0,1 shard_as 0}`, `{{replicated}, {manual
/// metadata={op_name="a"}}}`.
pub(super) fn sharding_text(message: &ShardingMessage, depth: usize) -> Result<String> {
    if depth > MAX_DEPTH {
        return Err(Error::unsupported(format!("shardings nest deeper than {MAX_DEPTH} levels")));
    }
    if message.named_sharding.is_some() {
        return Err(Error::unsupported(
            "a sharding by named mesh axes is not supported: write it as tiles of devices",
        ));
    }
    let kind = enumerator(&SHARDING_KINDS, message.kind, "kind of sharding")?;
    let mut text = match kind {
        "tuple" => {
            let parts = message.tuple_shardings.iter().map(|part| sharding_text(part, depth + 1));
            return Ok(format!("{{{}}}", parts.collect::<Result<Vec<_>>>()?.join(", ")));
        }
        "maximal" => {
            format!("maximal device={}", message.tile_assignment_devices.first().copied().unwrap_or(0))
        }
        "other" => tiles_text(message)?,
        simple => simple.to_owned(),
    };
    if message.is_shard_group {
        let group = enumerator(&SHARD_GROUP_KINDS, message.shard_group_type, "kind of shard group")?;
        write!(text, " {group} {}", message.shard_group_id).expect(INFALLIBLE);
    }
    let metadata: Vec<String> = message.metadata.iter().map(metadata_text).collect();
    match &metadata[..] {
        [] => {}
        [only] => write!(text, " metadata={{{only}}}").expect(INFALLIBLE),
        several => write!(text, " metadata={{{{{}}}}}", several.join("}, {")).expect(INFALLIBLE),
    }
    Ok(format!("{{{text}}}"))
}

/// `devices=[2,2]<=[4]T(1,0) last_tile_dims={manual}`.
fn tiles_text(message: &ShardingMessage) -> Result<String> {
    let devices = if message.iota_reshape_dims.is_empty() {
        list(&message.tile_assignment_devices)
    } else if message.iota_transpose_perm.len() < 2 {
        format!("<=[{}]", list(&message.iota_reshape_dims))
    } else {
        format!("<=[{}]T({})", list(&message.iota_reshape_dims), list(&message.iota_transpose_perm))
    };
    let mut text = format!("devices=[{}]{devices}", list(&message.tile_assignment_dimensions));
    if message.replicate_on_last_tile_dim {
        text.push_str(" last_tile_dim_replicate");
    }
    if !message.last_tile_dims.is_empty() {
        let names =
            message.last_tile_dims.iter().map(|kind| enumerator(&SHARDING_KINDS, *kind, "kind of sharding"));
        write!(text, " last_tile_dims={{{}}}", names.collect::<Result<Vec<_>>>()?.join(", "))
            .expect(INFALLIBLE);
    }
    Ok(text)
}
