//! The report of a compiled file, from its metadata.

use crate::data::{Layer, Report};
use serde_json::Value;

/// Reports what an object's metadata says: sizes, and the code of each function. The metadata is
/// untrusted; missing or wrong fields count as 0.
pub fn of_metadata(name: &str, record: &Value) -> Report {
    let mut report = Report::new(name, "object");
    let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
    let memory = |key: &str| record.pointer(&format!("/memory/{key}")).and_then(Value::as_u64).unwrap_or(0);
    let sum = |key: &str, kinds: &[&str]| {
        let entries = record.get(key).and_then(Value::as_array).into_iter().flatten();
        let selected = entries.filter(|e| e["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)));
        selected.filter_map(|e| e["bytes"].as_u64()).fold(0, u64::saturating_add)
    };
    let versions = record.pointer("/target/versions").and_then(Value::as_array);
    let versions: Vec<&str> = versions.into_iter().flatten().filter_map(Value::as_str).collect();
    let words = [text("/target/triple"), text("/target/cpu"), versions.join(", ")];
    report.target = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
    let functions = record.get("functions").and_then(Value::as_array).into_iter().flatten();
    for function in functions {
        report.layers.push(Layer {
            name: function["name"].as_str().unwrap_or("?").to_owned(),
            kind: "function".to_owned(),
            code_bytes: function["bytes"].as_u64(),
            ..Layer::default()
        });
    }
    report.sizes.code =
        report.layers.iter().filter_map(|layer| layer.code_bytes).fold(0, u64::saturating_add);
    report.sizes.constants = memory("constants");
    report.sizes.arena = memory("temps");
    report.sizes.scratch = memory("scratch_per_worker");
    report.sizes.stack = memory("stack");
    report.sizes.feeds = sum("arguments", &["feed", "size"]);
    report.sizes.variables = sum("arguments", &["variable", "readonly variable"]);
    report.sizes.results = sum("results", &["fetch"]);
    report.missing.push(
        "A compiled file does not say how long layers take, how they compute, or what is live when: run `tfcompile report` \
         on its model for that."
            .to_owned(),
    );
    report
}
