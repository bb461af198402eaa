//! Methods of the model, from the templates in `templates`.

use super::types::{ALLOW, about};
use super::{Field, RUNTIME, Source, quantization, sizes, true_sizes};
use crate::DeviceDriver;
use crate::ModuleSize;
use crate::header::{Constants, Text};
use crate::template::fill;

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("templates/", $name, ".rs.txt"))
    };
}

pub(super) fn methods(out: &mut Text, source: &Source<'_>) {
    let name = source.name;
    let values = [
        ("ALLOW", ALLOW),
        ("NAME", name),
        ("NEW", &new(source)),
        ("SIZES", &sizes::methods(source)),
        ("ACCESSORS", &all_accessors(source)),
        ("SET_CONSTANTS", &set_constants(source)),
        ("PROFILE_COUNTERS", &profile_counters(source)),
        ("RUN", &run(source)),
        ("CALL", &call(source)),
        ("OUTPUTS", &outputs(source)),
        ("ENTER", &enter(source)),
    ];
    let mut text = fill(template!("model"), &values);
    if !source.options.no_std {
        text += &fill(template!("default"), &[("NAME", name)]);
    }
    text.lines().for_each(|line| out.line(line));
}

fn new(source: &Source<'_>) -> String {
    let constants = if source.artifact.constants_file.is_some() { ", constants: None" } else { "" };
    let constants = format!("{constants}{}", sizes::initializer(source));
    if source.options.no_std {
        let fields = source.fields().map(|field| field.name.as_str());
        let fields = fields.chain(["temps", "scratch", "profile_counters", "dynamic_sizes"]);
        let fields = lines(fields.map(|field| format!("{field}: {RUNTIME}::Aligned::zeroed(),")));
        let values = [("NAME", source.name), ("FIELDS", &fields), ("CONSTANTS", constants.as_str())];
        fill(template!("new_no_std"), &values)
    } else {
        let device = device_field(source);
        fill(
            template!("new"),
            &[("SCRATCH", &scratch(source)), ("DEVICE", &device), ("CONSTANTS", constants.as_str())],
        )
    }
}

/// Returns the initializer of the field for the device; empty for processors.
fn device_field(source: &Source<'_>) -> String {
    let kind = match source.artifact.device.as_ref().map(|device| device.driver) {
        None => return String::new(),
        Some(DeviceDriver::Cuda) => "Cuda",
        Some(DeviceDriver::OpenCl) => "OpenCl",
    };
    format!(", device: {RUNTIME}::Device::new({RUNTIME}::DeviceKind::{kind})")
}

fn all_accessors(source: &Source<'_>) -> String {
    let mut text = String::new();
    for feed in source.feeds() {
        text += &accessors("Feed", feed);
        text += &sizes::of_argument(feed);
        text += &quantization::constants("feed", feed);
        text += &quantization::quantize("feed", feed);
    }
    for variable in source.variables() {
        text += &accessors("Variable", variable);
        text += &quantization::constants("variable", variable);
        text += &quantization::quantize("variable", variable);
        text += &quantization::dequantize("variable", variable);
    }
    for (index, fetch) in source.fetches.iter().enumerate() {
        text += &getter("Fetch", fetch);
        text += &quantization::constants("fetch", fetch);
        text += &quantization::dequantize("fetch", fetch);
        if !fetch.shape.is_static() {
            let sizes = true_sizes(&source.artifact.interface.fetches()[index]).dimensions.join(", ");
            let rank = fetch.shape.rank().to_string();
            let values = [("NAME", fetch.name.as_str()), ("RANK", &rank), ("SIZES", &sizes)];
            text += &fill(template!("sizes"), &values);
        }
    }
    text
}

fn getter(what: &str, field: &Field<'_>) -> String {
    let Field { name, rust_type, .. } = field;
    let part = field.rows().map_or_else(String::new, |rows| format!("[..{rows}]"));
    format!("{}\npub fn {name}(&self) -> &{rust_type} {{ &self.memory.{name}{part} }}\n", about(what, field))
}

fn accessors(what: &str, field: &Field<'_>) -> String {
    let Field { name, rust_type, .. } = field;
    let body = match field.rows() {
        None => format!("&mut self.memory.{name}"),
        Some(rows) => format!("let rows = {rows}; &mut self.memory.{name}[..rows]"),
    };
    format!(
        "{}{}\npub fn {name}_mut(&mut self) -> &mut {rust_type} {{ {body} }}\n",
        getter(what, field),
        about(&format!("{what}, to write:"), field)
    )
}

fn set_constants(source: &Source<'_>) -> String {
    let Some(layout) = source.artifact.constants_file else { return String::new() };
    let bytes: Vec<String> = layout.0.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let hash = lines(bytes.chunks(16).map(|row| format!("{},", row.join(", "))));
    let close = if source.artifact.device.is_some() { "self.device.close();" } else { "" };
    fill(template!("set_constants"), &[("LAYOUT_HASH", &hash), ("CLOSE", close)])
}

fn profile_counters(source: &Source<'_>) -> String {
    match source.artifact.profile_counters.len() {
        0 => String::new(),
        count => fill(template!("profile_counters"), &[("COUNT", &count.to_string())]),
    }
}

/// Writes the methods that start a run, and set the number of threads.
fn run(source: &Source<'_>) -> String {
    let has_feeds = !source.feeds().is_empty();
    let scratch = scratch(source);
    if source.options.no_std {
        let inputs = if has_feeds { "None, " } else { "" };
        fill(template!("run_no_std"), &[("INPUTS", inputs), ("SCRATCH", &scratch)])
    } else {
        let inputs = if has_feeds { "None" } else { "" };
        fill(template!("run"), &[("INPUTS", inputs), ("SCRATCH", &scratch), ("DEVICE", &device(source))])
    }
}

/// Writes the methods of a program for a GPU; empty for processors.
fn device(source: &Source<'_>) -> String {
    if source.artifact.device.is_none() {
        return String::new();
    }
    let mut arrays = String::new();
    for (index, argument) in source.arguments.iter().enumerate() {
        let what = if index < source.feeds().len() { "Feed" } else { "Variable" };
        arrays += &device_array(what, "argument", index, argument);
    }
    let results = source.artifact.interface.results().iter().enumerate();
    let own_results = results.filter(|(_, result)| result.alias.is_none());
    for ((index, _), fetch) in own_results.zip(&source.fetches) {
        arrays += &device_array("Fetch", "result", index, fetch);
    }
    let (symbol, constants) = constants(source);
    let values = [
        ("ENTRY", source.artifact.entry_point.as_str()),
        ("ARRAYS", &arrays),
        ("CONSTANTS_SYMBOL", &symbol),
        ("CONSTANTS", &constants),
    ];
    fill(template!("device"), &values)
}

fn device_array(what: &str, kind: &str, index: usize, field: &Field<'_>) -> String {
    let (about, index) = (about(&format!("{what}, on the device:"), field), index.to_string());
    let values = [
        ("ABOUT", about.as_str()),
        ("NAME", &field.name),
        ("TYPE", &field.rust_type),
        ("KIND", kind),
        ("INDEX", &index),
    ];
    fill(template!("device_array"), &values)
}

fn call(source: &Source<'_>) -> String {
    if source.feeds().is_empty() || source.fetches.is_empty() {
        return String::new();
    }
    let workers = if source.options.no_std { ", None" } else { "" };
    let sizes = sizes::of_inputs(source);
    let about = match (sizes.is_empty(), is_in_pieces(source)) {
        (true, _) => template!("about_call"),
        (false, true) => template!("about_call_of_batch"),
        (false, false) => template!("about_call_with_sizes"),
    };
    let values = [("ABOUT", about), ("NAME", source.name), ("WORKERS", workers), ("SIZES", &sizes)];
    fill(template!("call"), &values)
}

/// True if the code computes a batch in pieces, and reads no rows beyond it.
fn is_in_pieces(source: &Source<'_>) -> bool {
    let sizes = &source.artifact.provenance.sizes;
    sizes.iter().any(|facts| matches!(facts.size, ModuleSize::Rows(_)))
}

fn outputs(source: &Source<'_>) -> String {
    if source.fetches.is_empty() {
        return String::new();
    }
    let fields = source.fetches.iter().flat_map(|fetch| {
        let name = &fetch.name;
        let sizes = (!fetch.shape.is_static()).then(|| format!("{name}_sizes: self.{name}_sizes(),"));
        std::iter::once(format!("{name}: self.{name}(),")).chain(sizes)
    });
    fill(template!("outputs"), &[("NAME", source.name), ("FIELDS", &lines(fields))])
}

/// Returns the declaration of the constants' symbol, and the statement that defines `constants`.
fn constants(source: &Source<'_>) -> (String, String) {
    let entry = source.artifact.entry_point.as_str();
    match Constants::of(source.artifact) {
        Constants::Near => (
            format!("static {entry}_constants: u8;"),
            format!("let constants = &raw const {entry}_constants;"),
        ),
        Constants::Far => (
            format!("static {entry}_constants_pointer: *const ::core::ffi::c_void;"),
            format!(
                "// SAFETY: a constant of the object.\nlet constants = unsafe {{ {entry}_constants_pointer }};"
            ),
        ),
        Constants::File => (String::new(), template!("loaded_constants").to_owned()),
    }
}

/// Writes the only method that builds a frame.
fn enter(source: &Source<'_>) -> String {
    let (artifact, scratch) = (source.artifact, scratch(source));
    let entry = artifact.entry_point.as_str();
    let (memory, workers) = if source.options.no_std {
        ("self.memory", template!("workers_no_std").to_owned())
    } else {
        ("*self.memory", fill(template!("workers"), &[("SCRATCH", &scratch)]))
    };
    let ((symbol, constants), in_frame, workers, call) = match artifact.device {
        None => (constants(source), "constants: constants.cast(),", workers, template!("enter_host")),
        // The program on the device has its constants.
        Some(_) => {
            ((String::new(), "self.load()?;".to_owned()), "", String::new(), template!("enter_device"))
        }
    };
    let call = fill(call, &[("ENTRY", entry)]);
    let values = [
        ("CALL", call.as_str()),
        ("ENTRY", entry),
        ("PARAMETERS", &parameters(source, &scratch)),
        ("CONSTANTS_SYMBOL", &symbol),
        ("CONSTANTS", &constants),
        ("FRAME_CONSTANTS", in_frame),
        ("MEMORY", memory),
        ("SIZES", &sizes::values(source)),
        ("ARG_COUNT", &artifact.interface.arguments().len().to_string()),
        ("ARGS", &argument_addresses(source)),
        ("RESULT_COUNT", &artifact.interface.results().len().to_string()),
        ("RESULTS", &result_addresses(source)),
        ("WORKERS", &workers),
    ];
    fill(template!("enter"), &values)
}

fn parameters(source: &Source<'_>, scratch: &str) -> String {
    let mut parameters = Vec::new();
    if !source.feeds().is_empty() {
        parameters.push(format!("inputs: ::core::option::Option<&{}Inputs<'_>>", source.name));
    }
    if source.options.no_std {
        parameters.push(format!(
            "workers: ::core::option::Option<(&dyn {RUNTIME}::Workers, &mut [{RUNTIME}::Aligned<[u8; {scratch}]>])>"
        ));
    }
    parameters.join(", ")
}

/// Returns the address expression of each argument. The caller may provide the memory of feeds.
fn argument_addresses(source: &Source<'_>) -> String {
    let feed = |field: &Field<'_>| {
        let name = &field.name;
        let own = format!("(&raw mut memory.{name}).cast()");
        if field.rows().is_some() && is_in_pieces(source) {
            return fill(template!("batch"), &[("NAME", name)]);
        }
        if field.rows().is_some() {
            return fill(template!("rows"), &[("NAME", name), ("ROWS", &field.shape.size(0).to_string())]);
        }
        format!(
            "match inputs {{ Some(inputs) => ::core::ptr::from_ref(inputs.{name}).cast_mut().cast(), None => {own} }},"
        )
    };
    let address = |index: usize| {
        if let Some(size) = source.sizes.iter().position(|size| size.argument == index) {
            return format!("(&raw mut sizes[{size}]).cast(),");
        }
        let field = source.arguments.iter().find(|field| field.index == index);
        let field = field.expect("a field for each other argument");
        if index < source.artifact.interface.feed_count() {
            feed(field).trim_end().to_owned()
        } else {
            format!("(&raw mut memory.{}).cast(),", field.name)
        }
    };
    lines((0..source.artifact.interface.arguments().len()).map(address))
}

fn result_addresses(source: &Source<'_>) -> String {
    let mut fetches = source.fetches.iter();
    lines(source.artifact.interface.results().iter().map(|result| match result.alias {
        Some(argument) => format!("args[{argument}],"),
        None => {
            let fetch = fetches.next().expect("a field for each fetch");
            format!("(&raw mut memory.{}).cast(),", fetch.name)
        }
    }))
}

/// Returns the size of the scratch memory per worker in bytes.
fn scratch(source: &Source<'_>) -> String {
    source.artifact.host_memory().scratch.to_string()
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}
