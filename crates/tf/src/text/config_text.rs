//! Prints configs as text protos.

use super::printer::quoted;
use crate::DataType;
use crate::proto::{Config, TensorId, TensorShapeProto};
use std::fmt::Write as _;

/// Prints a config with one field of a feed, fetch, or variable per line. Messages within them take
/// a single line.
pub(crate) fn config_to_text(config: &Config) -> String {
    let mut out = String::from("# tensorflow.tf2xla.Config\n");
    for feed in &config.feed {
        out.push_str("feed {\n");
        id(&mut out, feed.id.as_ref());
        shape(&mut out, feed.shape.as_ref());
        named(&mut out, &feed.name, feed.r#type);
        if !feed.constant.is_empty() {
            field(&mut out, "constant", &quoted(feed.constant.as_bytes()));
        }
        out.push_str("}\n");
    }
    for fetch in &config.fetch {
        out.push_str("fetch {\n");
        id(&mut out, fetch.id.as_ref());
        named(&mut out, &fetch.name, fetch.r#type);
        shape(&mut out, fetch.shape.as_ref());
        out.push_str("}\n");
    }
    for variable in &config.variable {
        out.push_str("variable {\n");
        field(&mut out, "node_name", &quoted(variable.node_name.as_bytes()));
        named(&mut out, &variable.name, variable.r#type);
        shape(&mut out, variable.shape.as_ref());
        if variable.readonly {
            field(&mut out, "readonly", "true");
        }
        out.push_str("}\n");
    }
    for dimension in &config.dimension {
        out.push_str("dimension {\n");
        field(&mut out, "name", &quoted(dimension.name.as_bytes()));
        field(&mut out, "min", &dimension.min.to_string());
        field(&mut out, "max", &dimension.max.to_string());
        for size in &dimension.size {
            field(&mut out, "size", &size.to_string());
        }
        out.push_str("}\n");
    }
    out
}

fn field(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name}: {value}");
}

fn id(out: &mut String, id: Option<&TensorId>) {
    let Some(id) = id else { return };
    let _ = write!(out, "  id {{ node_name: {}", quoted(id.node_name.as_bytes()));
    if id.output_index != 0 {
        let _ = write!(out, " output_index: {}", id.output_index);
    }
    out.push_str(" }\n");
}

fn named(out: &mut String, name: &str, data_type: i32) {
    if !name.is_empty() {
        field(out, "name", &quoted(name.as_bytes()));
    }
    if let Some(data_type) = DataType::from_number(data_type) {
        field(out, "type", data_type.proto_name());
    }
}

fn shape(out: &mut String, shape: Option<&TensorShapeProto>) {
    let Some(shape) = shape else { return };
    out.push_str("  shape {");
    for dim in &shape.dim {
        let _ = write!(out, " dim {{ size: {}", dim.size);
        if !dim.name.is_empty() {
            let _ = write!(out, " name: {}", quoted(dim.name.as_bytes()));
        }
        out.push_str(" }");
    }
    out.push_str(if shape.unknown_rank { " unknown_rank: true }\n" } else { " }\n" });
}
