//! The metadata object: a record that describes the compiled program, and optionally its
//! `ProgramShapeProto`.
//!
//! The record is in a separate section that is not loaded: `.tfcompile` in ELF and COFF,
//! `__LLVM,__tfcompile` in Mach-O. Linkers concatenate such sections, so a program with several
//! models has several consecutive records. Numbers in a record are little-endian for every target:
//!
//! | offset | bytes | content                                                   |
//! |--------|-------|-----------------------------------------------------------|
//! | 0      | 8     | `TFCMETA` and a zero byte                                 |
//! | 8      | 4     | version of this layout and of the JSON's keys: 2          |
//! | 12     | 4     | length of the compressed JSON in bytes                    |
//! | 16     | n     | JSON in UTF-8, keys sorted, as zlib compresses it         |
//! | 16 + n |       | zero bytes up to the next multiple of 8                   |
//!
//! In version 1, the JSON is not compressed. It has these keys, and new ones may be added within a
//! version:
//!
//! - `tool_version`, `entry_point`, `cpp_class`, `signature`, `config`
//! - `target`: `triple`, `cpu`, `features`, and `versions`, the list of processors if the code is
//!   multi-versioned
//! - `device`, only for programs that run on a GPU: `driver` (`cuda` or `opencl`) and
//!   `architectures`; `memory` is then the device's
//! - `arguments` and `results`: `name`, `node`, `kind`, `shape`, `bytes`, and `accessor`, the name
//!   in the header; bounded results also have `dim_size_accessor`, and arrays of integers that are
//!   quantized have `scale` and `zero_point`: real = scale × (stored - zero point). An argument of
//!   kind `size` holds the size of a dimension and has its `range`, the smallest and the largest
//!   size. Arguments with such dimensions have `named_dimensions`: for each, the `dimension` and
//!   the position of the `argument` that holds its size
//! - `memory`: sizes in bytes
//! - `profile_counters`
//! - `inputs`: SHA-256 by role
//! - `kernels`: names
//! - `sizes`, only for programs that compute a batch in pieces of a few sizes: for each, its number
//!   of rows (`size`), the bytes of `code` and `constants` that no smaller size has, and the
//!   estimated time of a run in `nanoseconds`
//! - `functions`: names of the object's functions with the size of their code in bytes

use crate::artifact::{Artifact, ModuleSize, SizeFacts};
use crate::header::{CppNames, cpp_names};
use crate::{embed, object_file, program_shape_proto};
use flate2::Compression;
use flate2::read::ZlibEncoder;
use hlo::{Argument, Identifier, Interface, NamedDimension, Origin, Output, Role, SizeRange};
use serde_json::{Map, Value, json};
use shape::{ArrayShape, PrimitiveType, Quantization};
use std::io::Read as _;
use support::{Error, Result};

/// Magic number of a record.
pub const METADATA_MAGIC: [u8; 8] = *b"TFCMETA\0";

/// Version of the records that are written: their JSON is compressed.
pub const METADATA_VERSION: u32 = 2;

/// Upper bound for the bytes of all JSON in a file.
pub(crate) const MAX_JSON: usize = 32 << 20;

/// Kind of an argument that holds the size of a named dimension.
const SIZE: &str = "size";

/// Optional contents of the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataOptions {
    /// `--gen_program_shape`: adds the serialized `ProgramShapeProto` as [`program_shape_symbol`].
    pub gen_program_shape: bool,
}

/// Returns the symbol of the serialized `ProgramShapeProto`, as in the objects of TensorFlow's
/// tfcompile.
pub fn program_shape_symbol(artifact: &Artifact) -> String {
    format!("__tfcompile_{}_ProgramShapeProto_protobuf_array_contents", artifact.cpp_class.symbol_part())
}

/// Returns the metadata object of an artifact for its target triple.
///
/// Fails as [`header`](crate::header()) does, and for targets whose object format is not ELF, COFF,
/// or Mach-O.
pub fn metadata_object(artifact: &Artifact, options: &MetadataOptions) -> Result<Vec<u8>> {
    artifact.validate()?;
    let record = record(artifact)?;
    let mut symbols = Vec::new();
    if options.gen_program_shape {
        symbols.push((
            program_shape_symbol(artifact),
            program_shape_proto::encode(&artifact.interface.program_shape()),
        ));
    }
    object_file::write(&artifact.provenance.target_triple, &record, &symbols)
}

/// Adds the record of the artifact to the function's object, in a section that linkers omit, so
/// that the object describes itself.
pub fn with_metadata(function_object: Vec<u8>, artifact: &Artifact) -> Result<Vec<u8>> {
    embed::embed(function_object, &record(artifact)?)
}

/// Returns the record with its header and padding.
fn record(artifact: &Artifact) -> Result<Vec<u8>> {
    let json = json(artifact)?.to_string();
    if json.len() > MAX_JSON {
        return Err(Error::unsupported("the metadata (names and config) exceeds 32 MiB: shorten the config"));
    }
    let mut compressed = Vec::new();
    ZlibEncoder::new(json.as_bytes(), Compression::best())
        .read_to_end(&mut compressed)
        .map_err(|e| Error::internal(format!("the metadata cannot be compressed: {e}")))?;
    let mut record = Vec::with_capacity(16 + compressed.len() + 7);
    record.extend_from_slice(&METADATA_MAGIC);
    record.extend_from_slice(&METADATA_VERSION.to_le_bytes());
    record.extend_from_slice(&(compressed.len() as u32).to_le_bytes());
    record.extend_from_slice(&compressed);
    record.resize(record.len().next_multiple_of(8), 0);
    Ok(record)
}

fn json(artifact: &Artifact) -> Result<Value> {
    let names = cpp_names(&artifact.interface)?;
    let provenance = &artifact.provenance;
    let inputs: Map<String, Value> =
        provenance.input_hashes.iter().map(|(role, hash)| (role.clone(), json!(hash))).collect();
    let entries = |entries: Vec<Accessor>| entries.iter().map(Accessor::to_json).collect::<Vec<_>>();
    let functions: Vec<Value> =
        provenance.functions.iter().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
    let mut all = json!({
        "tool_version": provenance.tool_version,
        "entry_point": artifact.entry_point,
        "cpp_class": artifact.cpp_class.to_string(),
        "target": {
            "triple": provenance.target_triple,
            "cpu": provenance.target_cpu,
            "features": provenance.target_features,
            "versions": provenance.versions,
        },
        "signature": artifact.interface.program_shape().to_string(),
        "arguments": entries(arguments(&artifact.interface, &names)),
        "results": entries(results(&artifact.interface, &names)),
        "memory": {
            "temps": artifact.memory.temps,
            "persistent_temps": artifact.memory.persistent_temps,
            "scratch_per_worker": artifact.memory.scratch,
            "constants": artifact.memory.constants,
            "stack": artifact.memory.stack,
            "constants_file": artifact.constants_file.map(|layout| layout.to_string()),
        },
        "profile_counters": artifact.profile_counters.iter().map(|c| c.short_name.as_str()).collect::<Vec<_>>(),
        "config": provenance.config,
        "inputs": inputs,
        "kernels": provenance.kernels,
        "functions": functions,
    });
    if !provenance.sizes.is_empty() {
        let size = |facts: &SizeFacts| {
            let SizeFacts { size, code, constants, nanoseconds } = facts;
            let mut all = json!({ "code": code, "constants": constants, "nanoseconds": nanoseconds });
            match size {
                ModuleSize::Rows(rows) => all["size"] = json!(rows),
                ModuleSize::Exact(sizes) => {
                    all["sizes"] = sizes.iter().map(|(name, size)| (name.clone(), json!(size))).collect();
                }
            }
            all
        };
        all["sizes"] = provenance.sizes.iter().map(size).collect();
    }
    if let Some(device) = &artifact.device {
        all["device"] = json!({ "driver": device.driver.name(), "architectures": device.architectures });
    }
    Ok(all)
}

/// An argument or a result, with the name of its C++ accessor.
#[derive(Clone, Debug, PartialEq)]
pub struct Accessor {
    /// `feed`, `size`, `fetch`, `variable`, or `readonly variable`.
    pub kind: &'static str,
    /// Name that the config gives.
    pub name: Option<String>,
    /// Name in the graph.
    pub node: String,
    /// Row-major shape. A fetch may have bounded dimensions.
    pub shape: ArrayShape,
    /// Element accessor, such as `arg_x`, or the method that returns a size.
    pub accessor: String,
    /// The real numbers that its integers stand for, if they are quantized with one scale.
    pub quantization: Option<Quantization>,
    /// The range of a size.
    pub range: Option<SizeRange>,
    /// Dimensions whose sizes the caller sets.
    pub named_dimensions: Vec<NamedDimension>,
}

impl Accessor {
    fn to_json(&self) -> Value {
        let mut entry = json!({
            "name": self.name,
            "node": self.node,
            "kind": self.kind,
            "shape": self.shape.to_string(),
            "bytes": self.shape.byte_size(),
            "accessor": self.accessor,
        });
        if !self.shape.is_static() || !self.named_dimensions.is_empty() {
            entry["dim_size_accessor"] = json!(format!("{}_dim_size", self.accessor));
        }
        if let Some(Quantization { scale, zero_point }) = self.quantization {
            entry["scale"] = json!(scale);
            entry["zero_point"] = json!(zero_point);
        }
        if let Some(SizeRange { low, high }) = self.range {
            entry["range"] = json!([low, high]);
        }
        if !self.named_dimensions.is_empty() {
            let named =
                |named: &NamedDimension| json!({ "dimension": named.dimension, "argument": named.size });
            entry["named_dimensions"] = self.named_dimensions.iter().map(named).collect();
        }
        entry
    }
}

/// Returns the arguments, then the results of an interface. Fails for names that the user must
/// change.
pub fn accessors(interface: &Interface) -> Result<Vec<Accessor>> {
    let names = cpp_names(interface)?;
    Ok(arguments(interface, &names).into_iter().chain(results(interface, &names)).collect())
}

fn arguments(interface: &Interface, names: &CppNames) -> Vec<Accessor> {
    let size = |index| names.sizes.iter().find(|size| size.argument == index);
    let accessor = |index: usize| match index.checked_sub(names.feeds.len()) {
        None => match size(index) {
            Some(size) => size.name.clone(),
            None => accessor("arg", Some(index), names.feeds[index].as_deref()),
        },
        Some(variable) => accessor("var", None, names.variables[variable].as_deref()),
    };
    let entry = |(index, argument): (usize, &Argument)| Accessor {
        kind: match argument.role {
            Role::Variable if interface.new_value(index).is_none() => "readonly variable",
            Role::Feed if argument.range.is_some() => SIZE,
            role => role.name(),
        },
        name: argument.name.clone(),
        node: argument.id.to_string(),
        shape: argument.shape.clone(),
        accessor: accessor(index),
        quantization: argument.quantization,
        range: argument.range,
        named_dimensions: argument.named_dimensions.clone(),
    };
    interface.arguments().iter().enumerate().map(entry).collect()
}

fn results(interface: &Interface, names: &CppNames) -> Vec<Accessor> {
    let entry = |(index, result): (usize, &Output)| {
        let (kind, accessor) = match result.alias {
            None => ("fetch", accessor("result", Some(index), names.fetches[index].as_deref())),
            Some(argument) => {
                let variable = argument - names.feeds.len();
                ("variable", accessor("var", None, names.variables[variable].as_deref()))
            }
        };
        let (name, node, shape) = (result.name.clone(), result.id.to_string(), result.shape.clone());
        let quantization = result.quantization;
        let (range, named_dimensions) = match result.alias {
            None => (None, Vec::new()),
            Some(argument) => {
                let argument = &interface.arguments()[argument];
                (argument.range, argument.named_dimensions.clone())
            }
        };
        Accessor { kind, name, node, shape, accessor, quantization, range, named_dimensions }
    };
    interface.results().iter().enumerate().map(entry).collect()
}

/// Returns the interface that the JSON of a record describes.
pub fn read_interface(metadata: &Value) -> Result<Interface> {
    let damaged = || Error::invalid("the object's metadata is damaged: invalid argument or result");
    let entries = |key: &str| metadata[key].as_array().ok_or_else(damaged);
    let text = |entry: &Value, key: &str| entry[key].as_str().map(str::to_owned).ok_or_else(damaged);
    let identifier = |entry: &Value, is_variable: bool| -> Result<Identifier> {
        let node = text(entry, "node")?;
        if is_variable {
            return Ok(Identifier::Variable(node));
        }
        let (node, index) = node.rsplit_once(':').ok_or_else(damaged)?;
        Ok(Identifier::Output { node: node.to_owned(), index: index.parse().map_err(|_| damaged())? })
    };
    let mut arguments = Vec::new();
    for entry in entries("arguments")? {
        let kind = text(entry, "kind")?;
        let role = if kind == Role::Feed.name() || kind == SIZE { Role::Feed } else { Role::Variable };
        let mut argument = Argument::new(
            entry["name"].as_str().map(str::to_owned),
            identifier(entry, role == Role::Variable)?,
            parse_shape(&text(entry, "shape")?).ok_or_else(damaged)?,
            role,
        );
        argument.quantization = read_quantization(entry).ok_or_else(damaged)?;
        argument.range = read_range(entry, &argument.shape).ok_or_else(damaged)?;
        arguments.push(argument);
    }
    for (k, entry) in entries("arguments")?.iter().enumerate() {
        let named = read_named_dimensions(entry, &arguments[k], &arguments).ok_or_else(damaged)?;
        arguments[k].named_dimensions = named;
    }
    let mut results = Vec::new();
    for entry in entries("results")? {
        let is_fetch = text(entry, "kind")? == "fetch";
        let (name, id) = (entry["name"].as_str().map(str::to_owned), identifier(entry, !is_fetch)?);
        let shape = parse_shape(&text(entry, "shape")?).ok_or_else(damaged)?;
        let mut result = if is_fetch {
            Output::new(name, id, shape, Origin::Fetch)
        } else {
            Output::new_value(name, id, shape, &arguments)
        };
        result.quantization = read_quantization(entry).ok_or_else(damaged)?;
        if !is_fetch && result.alias.is_none() {
            return Err(damaged());
        }
        results.push(result);
    }
    Ok(Interface::new(arguments, results))
}

/// Returns the quantization of an entry that has one; the outer `None` if it is damaged.
fn read_quantization(entry: &Value) -> Option<Option<Quantization>> {
    match (&entry["scale"], &entry["zero_point"]) {
        (Value::Null, Value::Null) => Some(None),
        (scale, zero_point) => Quantization::new(scale.as_f64()? as f32, zero_point.as_i64()?).map(Some),
    }
}

/// Returns the range of an argument that is a size; the outer `None` if it is damaged.
fn read_range(entry: &Value, shape: &ArrayShape) -> Option<Option<SizeRange>> {
    if entry["kind"] != SIZE {
        return Some(None);
    }
    let ends: Vec<i64> = entry["range"].as_array()?.iter().filter_map(Value::as_i64).collect();
    let &[low, high] = ends.as_slice() else { return None };
    let is_range = 0 <= low && low <= high && high <= i64::from(i32::MAX);
    (is_range && *shape == ArrayShape::new(PrimitiveType::S32, &[])).then_some(Some(SizeRange { low, high }))
}

/// Returns the named dimensions of an argument, one of `all`; `None` if they are damaged.
fn read_named_dimensions(
    entry: &Value,
    argument: &Argument,
    all: &[Argument],
) -> Option<Vec<NamedDimension>> {
    let read = |named: &Value| {
        let number = |key: &str| usize::try_from(named[key].as_u64()?).ok();
        let named = NamedDimension { dimension: number("dimension")?, size: number("argument")? };
        let range = all.get(named.size)?.range?;
        let fits =
            named.dimension < argument.shape.rank() && range.high <= argument.shape.size(named.dimension);
        fits.then_some(named)
    };
    entry["named_dimensions"].as_array().map_or(&[][..], Vec::as_slice).iter().map(read).collect()
}

/// Parses a shape such as `f32[2,<=3]`.
fn parse_shape(text: &str) -> Option<ArrayShape> {
    let (element, sizes) = text.strip_suffix(']')?.split_once('[')?;
    let element_type = PrimitiveType::ALL.into_iter().find(|known| known.name() == element)?;
    let words: Vec<&str> = sizes.split(',').filter(|word| !word.is_empty()).collect();
    let size = |word: &&str| word.trim_start_matches("<=").parse::<i64>().ok();
    let mut shape = ArrayShape::new(element_type, &words.iter().map(size).collect::<Option<Vec<_>>>()?);
    for (dimension, word) in shape.dimensions.iter_mut().zip(words) {
        dimension.is_dynamic = word.starts_with("<=");
    }
    Some(shape)
}

/// Returns the header's name of an element accessor, by name if there is one, otherwise by
/// position.
fn accessor(prefix: &str, index: Option<usize>, name: Option<&str>) -> String {
    match (name, index) {
        (Some(name), _) => format!("{prefix}_{name}"),
        (None, Some(index)) => format!("{prefix}{index}"),
        (None, None) => prefix.to_string(),
    }
}
