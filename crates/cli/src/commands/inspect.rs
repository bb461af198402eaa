//! `tfcompile inspect`: describes a compiled file from its metadata.

use crate::files::outputs;
use crate::report::text::{print_json, table, with_quantization};
use aot::{CONSTANTS_FILE_HEADER, ConstantsFileHeader, MetadataRecord, ModuleSize};
use clap::Args;
use serde_json::{Value, json};
use shape::Quantization;
use std::fmt::Write as _;
use std::path::PathBuf;
use support::Result;
use terminal::{Screen, printable};

/// `tfcompile inspect`.
#[derive(Args, Debug)]
pub(crate) struct Inspect {
    /// Object file, static library, shared library, program, or constants file built by tfcompile
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Maximum number of functions listed; the largest come first.
const MAX_FUNCTIONS: usize = 12;

/// Reads a file's metadata and prints it.
pub(crate) fn run(arguments: &Inspect) -> Result<()> {
    let bytes = tf::source::read_bytes(&arguments.file)?;
    let name = arguments.file.display().to_string();
    let in_file = |e: support::Error| e.context(&name);
    let start = &bytes[..bytes.len().min(CONSTANTS_FILE_HEADER)];
    if let Some(header) = ConstantsFileHeader::parse(start, bytes.len() as u64).map_err(in_file)? {
        return constants(arguments, &name, &header);
    }
    // A damaged file must not crash the tool, even if it makes the reader panic.
    let found = compiler::guarded(|| aot::read_metadata(&bytes)).map_err(in_file)?;
    if arguments.json {
        let records: Vec<Value> = found
            .into_iter()
            .map(|found| json!({ "member": found.member, "metadata": found.metadata }))
            .collect();
        return print_json("inspect", &name, json!({ "kind": "code", "programs": records }));
    }
    let texts: Vec<String> = found.iter().map(|found| program(&name, found)).collect();
    outputs::print(&texts.join("\n"))
}

fn constants(arguments: &Inspect, name: &str, header: &ConstantsFileHeader) -> Result<()> {
    let layout = header.layout.to_string();
    if arguments.json {
        let json = json!({ "kind": "constants", "layout": layout, "bytes": header.size });
        return print_json("inspect", name, json);
    }
    outputs::print(&format!(
        "{name}: constants of a program, {}\nlayout     {layout}\n",
        terminal::bytes(header.size)
    ))
}

/// Describes one program.
fn program(file: &str, found: &MetadataRecord) -> String {
    let record = &found.metadata;
    let text = |pointer: &str| printable(record.pointer(pointer).and_then(Value::as_str).unwrap_or("?"));
    let member = found.member.as_deref().map(|m| format!("({})", printable(m))).unwrap_or_default();
    let mut out = format!("{file}{member}: {}\n", text("/entry_point"));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:<10} {value}");
    };
    line("class", &text("/cpp_class"));
    line("made by", &format!("tfcompile {}", text("/tool_version")));
    line("target", &target(record));
    if let Some(device) = device(record) {
        line("device", &device);
    }
    line("signature", &text("/signature"));
    line("memory", &memory(record));
    let inputs = record.get("inputs").and_then(Value::as_object);
    for (role, hash) in inputs.into_iter().flatten() {
        line(&printable(role), &format!("with the SHA-256 {}", printable(hash.as_str().unwrap_or("?"))));
    }
    if let Some(layout) = record.pointer("/memory/constants_file").and_then(Value::as_str) {
        line("constants", &format!("in a file of layout {}", printable(layout)));
    }
    for (title, key) in [("arguments", "arguments"), ("results", "results")] {
        out += &table(&Screen::stdout(), title, &rows(record, key));
    }
    sizes(&mut out, record);
    functions(&mut out, record);
    let config = record.get("config").and_then(Value::as_str).unwrap_or("");
    if !config.is_empty() {
        let _ = writeln!(out, "config");
        for line in config.lines() {
            let _ = writeln!(out, "  {}", printable(line));
        }
    }
    out
}

/// Lists the sizes that have code of their own, with what each adds to the smaller ones or to the
/// code for all sizes.
fn sizes(out: &mut String, record: &Value) {
    let number = |size: &Value, key: &str| size[key].as_u64().unwrap_or(0);
    let exact = |size: &Value| {
        let sizes = size["sizes"].as_object()?.iter();
        Some(ModuleSize::Exact(
            sizes.map(|(name, size)| (name.clone(), size.as_i64().unwrap_or(0))).collect(),
        ))
    };
    let facts = |size: &Value| aot::SizeFacts {
        size: exact(size).unwrap_or_else(|| ModuleSize::Rows(size["size"].as_i64().unwrap_or(0))),
        code: number(size, "code"),
        constants: number(size, "constants"),
        nanoseconds: number(size, "nanoseconds"),
    };
    let sizes = record.get("sizes").and_then(Value::as_array);
    let sizes: Vec<aot::SizeFacts> = sizes.into_iter().flatten().map(facts).collect();
    let row = |(k, facts): (usize, &aot::SizeFacts)| {
        let smaller = k.checked_sub(1).map(|k| &sizes[k]);
        let speeds =
            smaller.and_then(|smaller| Some((smaller, facts.rows_per_second()?, smaller.rows_per_second()?)));
        let gain = speeds.map_or(String::new(), |(smaller, own, of_smaller)| {
            format!("{:.2} times the rows/s of {}", own / of_smaller, smaller.size)
        });
        let estimate = match facts.rows_per_second() {
            Some(speed) => format!("estimated {speed:.0} rows/s"),
            None => format!("estimated {}", terminal::seconds(facts.nanoseconds as f64 / 1e9)),
        };
        vec![
            facts.size.to_string(),
            format!("code {}", terminal::bytes(facts.code)),
            format!("constants {}", terminal::bytes(facts.constants)),
            estimate,
            gain,
        ]
    };
    *out += &table(&Screen::stdout(), "sizes", &sizes.iter().enumerate().map(row).collect::<Vec<_>>());
}

fn target(record: &Value) -> String {
    let text = |key: &str| record.pointer(&format!("/target/{key}")).and_then(Value::as_str).unwrap_or("");
    let mut words = vec![printable(text("triple"))];
    let versions = record.pointer("/target/versions").and_then(Value::as_array);
    let versions: Vec<String> =
        versions.into_iter().flatten().filter_map(Value::as_str).map(printable).collect();
    match versions.as_slice() {
        [] if text("cpu").is_empty() => {}
        [] => words.push(printable(text("cpu"))),
        versions => words.push(format!("versions {}", versions.join(", "))),
    }
    if !text("features").is_empty() {
        words.push(printable(text("features")));
    }
    words.join(", ")
}

/// The GPUs that run the program, if they do.
fn device(record: &Value) -> Option<String> {
    let driver = record.pointer("/device/driver")?.as_str().map(printable)?;
    let architectures = record.pointer("/device/architectures").and_then(Value::as_array);
    let architectures: Vec<String> =
        architectures.into_iter().flatten().filter_map(Value::as_str).map(printable).collect();
    Some(if architectures.is_empty() { driver } else { format!("{driver}: {}", architectures.join(", ")) })
}

fn memory(record: &Value) -> String {
    let bytes = |key: &str| record.pointer(&format!("/memory/{key}")).and_then(Value::as_u64).unwrap_or(0);
    let sum = |key: &str, kinds: &[&str]| -> u64 {
        let entries = record.get(key).and_then(Value::as_array).into_iter().flatten();
        let selected = entries.filter(|e| e["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)));
        selected.filter_map(|e| e["bytes"].as_u64()).fold(0, u64::saturating_add)
    };
    let mut parts = vec![
        format!("feeds {}", terminal::bytes(sum("arguments", &["feed"]))),
        format!("variables {}", terminal::bytes(sum("arguments", &["variable", "readonly variable"]))),
        format!("results {}", terminal::bytes(sum("results", &["fetch"]))),
        format!("temps {}", terminal::bytes(bytes("temps"))),
        format!("constants {}", terminal::bytes(bytes("constants"))),
        format!("scratch per worker {}", terminal::bytes(bytes("scratch_per_worker"))),
    ];
    if bytes("stack") > 0 {
        parts.push(format!("stack {}", terminal::bytes(bytes("stack"))));
    }
    parts.join(", ")
}

/// Number, kind, node, shape, size, and accessor of each argument or result. The shape of an
/// argument has the names of its dimensions, and that of a size its range.
fn rows(record: &Value, key: &str) -> Vec<Vec<String>> {
    let interface = aot::read_interface(record).ok();
    let named_shape = |number: usize| {
        let interface = interface.as_ref().filter(|_| key == "arguments")?;
        let argument = interface.arguments().get(number)?;
        Some(match argument.range {
            Some(range) => format!("{}, {range}", argument.shape),
            None => printable(&aot::shape_text(interface, argument)),
        })
    };
    let entries = record.get(key).and_then(Value::as_array).into_iter().flatten();
    let row = |(number, entry): (usize, &Value)| {
        let text = |key: &str| printable(entry[key].as_str().unwrap_or("-"));
        vec![
            number.to_string(),
            text("kind"),
            text("node"),
            with_quantization(named_shape(number).unwrap_or_else(|| text("shape")), quantization(entry)),
            terminal::bytes(entry["bytes"].as_u64().unwrap_or(0)),
            format!("{}()", text("accessor")),
        ]
    };
    entries.enumerate().map(row).collect()
}

/// The quantization of an argument or result, if it has one.
fn quantization(entry: &Value) -> Option<Quantization> {
    Quantization::new(entry["scale"].as_f64()? as f32, entry["zero_point"].as_i64()?)
}

fn functions(out: &mut String, record: &Value) {
    let mut functions: Vec<(u64, String)> = record
        .get("functions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|f| (f["bytes"].as_u64().unwrap_or(0), printable(f["name"].as_str().unwrap_or("?"))))
        .collect();
    if functions.is_empty() {
        return;
    }
    let total = functions.iter().fold(0u64, |sum, (bytes, _)| sum.saturating_add(*bytes));
    let _ = writeln!(out, "code: {} in {} functions", terminal::bytes(total), functions.len());
    let count = functions.len();
    functions.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    for (bytes, name) in functions.into_iter().take(MAX_FUNCTIONS) {
        let _ = writeln!(out, "  {:>9}  {name}", terminal::bytes(bytes));
    }
    if count > MAX_FUNCTIONS {
        let _ = writeln!(out, "             and {} smaller ones (--json lists all)", count - MAX_FUNCTIONS);
    }
}
