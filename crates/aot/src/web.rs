//! Programs for the web: a linked WebAssembly module, the JavaScript module that loads and calls
//! it, and its declarations for TypeScript.
//!
//! The JavaScript is the same for all programs, except for one table. It needs no library and no
//! imports, and reads files only through `fetch`, or Node's `fs` for local ones.

use crate::artifact::Artifact;
use crate::header::{ALIGNMENT, Arena, Text, cpp_names};
use crate::sizes::shape_text;
use crate::template::fill;
use hlo::Interface;
use nest::FrameLayout;
use serde_json::{Value, json};
use shape::{ArrayShape, PrimitiveType};
use std::collections::BTreeSet;
use support::{Error, Result};
use wasm::{LinkOptions, Threads, WasmObject};

/// Size of the frame in bytes.
const FRAME: u64 = 72;

/// Version of the frame's layout.
const FRAME_VERSION: u32 = 1;

/// Stack of a thread beyond that of the program's own functions, for functions of the user's.
const SPARE_STACK: u64 = 16 << 10;

/// Stack of a thread if the program's own is unknown.
const UNKNOWN_STACK: u64 = 1 << 20;

/// Name of the function that distributes work.
const PARALLEL_FOR: &str = "tfcompile_parallel_for";

/// The files of a program for the web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebModule {
    /// The WebAssembly module.
    pub wasm: Vec<u8>,
    /// The JavaScript module.
    pub js: String,
    /// Declarations of the JavaScript module.
    pub declarations: String,
}

/// Links the object of a program, which has no metadata, and writes the modules. They expect each
/// other under `name` with different suffixes.
///
/// Fails if the object is not for WebAssembly, or needs more than 4 GiB of memory.
pub fn web_module(artifact: &Artifact, object: &[u8], name: &str) -> Result<WebModule> {
    artifact.validate()?;
    check_target(&artifact.provenance.target_triple)?;
    if artifact.device.is_some() {
        return Err(Error::unsupported(
            "modules for the web run on the processor: remove the GPUs from --target",
        ));
    }
    let object = WasmObject::parse(object)?;
    let features = &artifact.provenance.target_features;
    let is_threaded = features.split(',').any(|feature| feature == "+atomics");
    let stack = match artifact.memory.stack {
        0 => UNKNOWN_STACK,
        bytes => bytes,
    };
    let stack = (stack + SPARE_STACK).next_multiple_of(ALIGNMENT);
    let constants = format!("{}_constants", artifact.entry_point);
    let options = LinkOptions {
        exports: &[&artifact.entry_point, &constants],
        stack_bytes: stack,
        threads: is_threaded.then_some(Threads { parallel_for: PARALLEL_FOR }),
    };
    let module = wasm::link(&object, &options)?;
    let source = Source::new(artifact)?;
    let threads = is_threaded.then_some((module.heap_base, stack));
    let js = fill(
        include_str!("web/templates/module.js.txt"),
        &[
            ("FILE", name),
            ("SIGNATURE", &signature(&artifact.interface)),
            ("PROGRAM", &source.table(threads)),
            ("RUNTIME", &fill(include_str!("web/templates/runtime.js.txt"), &[("FILE", name)])),
        ],
    );
    Ok(WebModule { wasm: module.bytes, js, declarations: source.declarations(name) })
}

/// Fails for other targets than WebAssembly.
fn check_target(triple: &str) -> Result<()> {
    if triple.starts_with("wasm32") {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "modules for the web need WebAssembly, but the target is {triple}: add --target wasm32"
    )))
}

/// An array as JavaScript sees it.
struct Array<'a> {
    name: String,
    kind: &'static str,
    shape: &'a ArrayShape,
    /// Shape with the names of dimensions.
    text: String,
    offset: u64,
    /// For each dimension, the number of its size, if it changes.
    sizes: Vec<Option<usize>>,
}

/// Everything that the texts show.
struct Source<'a> {
    artifact: &'a Artifact,
    arguments: Vec<Array<'a>>,
    results: Vec<Array<'a>>,
    arena: Arena,
    /// Name, range, offset, and message of each named dimension.
    sizes: Vec<(String, hlo::SizeRange, u64, String)>,
    /// Offset of the true sizes.
    true_sizes: u64,
}

impl<'a> Source<'a> {
    fn new(artifact: &'a Artifact) -> Result<Self> {
        let interface = &artifact.interface;
        let names = cpp_names(interface)?;
        let tables = 4 * (interface.arguments().len() + interface.results().len()) as u64;
        let true_sizes = (FRAME + tables).next_multiple_of(8);
        let first_size = true_sizes + 8 * interface.size_count() as u64;
        let arena = Arena::new(artifact, first_size + 4 * names.sizes.len() as u64)?;
        let size_offset = |number: usize| first_size + 4 * number as u64;
        let number = |argument: usize| names.sizes.iter().position(|size| size.argument == argument);
        let (mut feeds, mut variables) = (Names::new("arg"), Names::new("var"));
        let all_names = names.feeds.iter().chain(&names.variables);
        let arguments = interface.arguments().iter().zip(all_names).enumerate();
        let arguments = arguments.map(|(index, (argument, name))| {
            let is_feed = index < interface.feed_count();
            let name = if is_feed { &mut feeds } else { &mut variables }.take(index, name.as_deref());
            let mut sizes = vec![None; argument.shape.rank()];
            for named in &argument.named_dimensions {
                sizes[named.dimension] = number(named.size);
            }
            Array {
                name,
                kind: match argument.range {
                    Some(_) => "size",
                    None if is_feed => "feed",
                    None => "variable",
                },
                shape: &argument.shape,
                text: shape_text(interface, argument),
                offset: number(index).map_or(arena.arguments[index], size_offset),
                sizes,
            }
        });
        let arguments = arguments.collect();
        let mut fetches = Names::new("result");
        let results = interface.results().iter().enumerate().map(|(index, result)| {
            let name = names.fetches.get(index).map(|name| fetches.take(index, name.as_deref()));
            let shared = result.alias.map(|argument| arena.arguments[argument]);
            Array {
                kind: if name.is_some() { "result" } else { "new value" },
                name: name.unwrap_or_default(),
                shape: &result.shape,
                text: result.shape.to_string(),
                offset: shared.unwrap_or_else(|| arena.results.get(index).copied().unwrap_or(0)),
                sizes: result.size_indices(),
            }
        });
        let results = results.collect();
        let sizes = names.sizes.iter().enumerate();
        let sizes = sizes
            .map(|(n, size)| (size.name.clone(), size.range, size_offset(n), size.out_of_range()))
            .collect();
        Ok(Self { artifact, arguments, results, arena, sizes, true_sizes })
    }

    /// The table of the program as JavaScript. `threads` has the heap's base and a stack's size.
    fn table(&self, threads: Option<(u64, u64)>) -> String {
        let frame = FrameLayout::new(4);
        let sizes = self.sizes.iter().map(|(name, range, offset, message)| {
            json!({ "name": name, "low": range.low, "high": range.high, "offset": offset, "message": message })
        });
        let constants = self
            .artifact
            .constants_file
            .map(|layout| json!({ "layout": layout.to_string(), "size": self.artifact.memory.constants }));
        let threads = threads
            .map(|(heap, stack)| json!({ "heap": heap, "stack": stack, "parallel_for": PARALLEL_FOR }));
        let entries: [(&str, Value); 12] = [
            ("name", json!(self.artifact.entry_point)),
            ("arguments", self.arguments.iter().map(Array::to_json).collect()),
            ("results", self.results.iter().map(Array::to_json).collect()),
            ("sizes", sizes.collect()),
            (
                "frame",
                json!({
                    "size": FRAME, "version": FRAME_VERSION, "args": frame.args(), "results": frame.results(),
                    "temps": frame.temps(), "constants": frame.constants(), "parallel_for": frame.parallel_for(),
                    "max_workers": frame.max_workers(), "scratch": frame.scratch(), "error": frame.error(),
                    "dynamic_sizes": frame.dynamic_sizes(),
                }),
            ),
            ("true_sizes", json!(self.true_sizes)),
            ("temps", json!(self.arena.temps)),
            ("scratch", json!(self.artifact.memory.scratch)),
            ("bytes", json!(self.arena.size)),
            ("constants", json!(constants)),
            ("threads", json!(threads)),
            ("tool", json!(format!("tfcompile {}", self.artifact.provenance.tool_version))),
        ];
        let mut out = String::from("{\n");
        for (key, value) in entries {
            match &value {
                Value::Array(items) if !items.is_empty() => {
                    let lines: Vec<String> = items.iter().map(|item| format!("    {item},\n")).collect();
                    out += &format!("  {key}: [\n{}  ],\n", lines.concat());
                }
                value => out += &format!("  {key}: {value},\n"),
            }
        }
        out + "}"
    }

    fn declarations(&self, file: &str) -> String {
        let members = |kind: &str| {
            let arrays = self.arguments.iter().chain(&self.results).filter(|array| array.kind == kind);
            let lines = arrays.map(|array| {
                let remark = remark(array.shape.element_type);
                format!(
                    "/** {}{remark} */\nreadonly {}: {};\n",
                    comment(&array.text),
                    array.name,
                    typed_array(array.shape.element_type).0
                )
            });
            lines.collect::<String>()
        };
        let sizes: String = (self.sizes.iter())
            .map(|(name, range, ..)| format!("/** {range} */\n{name}: number;\n"))
            .collect();
        fill(
            include_str!("web/templates/types.d.ts.txt"),
            &[
                ("FILE", file),
                ("ARGS", &members("feed")),
                ("VARIABLES", &members("variable")),
                ("RESULTS", &members("result")),
                ("SIZES", &sizes),
            ],
        )
    }
}

impl Array<'_> {
    fn to_json(&self) -> Value {
        let element = self.shape.element_type;
        let (array, parts) = typed_array(element);
        let mut entries = json!({
            "name": self.name,
            "kind": self.kind,
            "type": element.to_string(),
            "shape": self.shape.sizes(),
            "array": array,
            "count": self.shape.element_count() as u64 * parts,
            "offset": self.offset,
        });
        if self.sizes.iter().any(Option::is_some) {
            entries["sizes"] = json!(self.sizes);
        }
        entries
    }
}

/// Names of a kind of arrays, all different.
struct Names {
    prefix: &'static str,
    taken: BTreeSet<String>,
}

impl Names {
    fn new(prefix: &'static str) -> Self {
        Self { prefix, taken: BTreeSet::new() }
    }

    /// The user's name, or else one with the array's number.
    fn take(&mut self, index: usize, name: Option<&str>) -> String {
        let mut name = name.map_or_else(|| format!("{}{index}", self.prefix), str::to_owned);
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

/// The class of JavaScript's arrays for elements, and the number of its elements in each.
fn typed_array(element: PrimitiveType) -> (&'static str, u64) {
    match element {
        PrimitiveType::S16 => ("Int16Array", 1),
        PrimitiveType::S32 => ("Int32Array", 1),
        PrimitiveType::S64 => ("BigInt64Array", 1),
        PrimitiveType::U16 | PrimitiveType::F16 | PrimitiveType::Bf16 => ("Uint16Array", 1),
        PrimitiveType::U32 => ("Uint32Array", 1),
        PrimitiveType::U64 => ("BigUint64Array", 1),
        PrimitiveType::F32 => ("Float32Array", 1),
        PrimitiveType::F64 => ("Float64Array", 1),
        PrimitiveType::C64 => ("Float32Array", 2),
        PrimitiveType::C128 => ("Float64Array", 2),
        byte if byte.is_signed_integer() => ("Int8Array", 1),
        _ => ("Uint8Array", 1),
    }
}

/// Returns how elements are stored, if JavaScript has no such type.
fn remark(element: PrimitiveType) -> &'static str {
    match element {
        PrimitiveType::F16 | PrimitiveType::Bf16 => ", as bits",
        PrimitiveType::C64 | PrimitiveType::C128 => ", real and imaginary parts in turn",
        PrimitiveType::Pred => ", 0 or 1",
        element if element.is_floating_point() && typed_array(element).0 == "Uint8Array" => ", as bits",
        _ => "",
    }
}

/// Text within a comment, which it does not end.
fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace(['\n', '\r'], " ")
}

/// The signature as comments.
fn signature(interface: &Interface) -> String {
    let named = |name: &Option<String>, id: &hlo::Identifier| match name {
        Some(name) if !name.is_empty() => name.clone(),
        _ => id.short(),
    };
    let parameters = interface.arguments().iter().filter(|argument| argument.range.is_none());
    let parameters: Vec<String> = parameters
        .map(|a| comment(&format!("{}: {}", named(&a.name, &a.id), shape_text(interface, a))))
        .collect();
    let results = interface.fetches().iter();
    let results: Vec<String> =
        results.map(|r| comment(&format!("{}: {}", named(&r.name, &r.id), r.shape))).collect();
    let mut out = Text::new();
    out.signature(&parameters, &results);
    out.into_string()
}
