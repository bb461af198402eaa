//! Maps files into memory, and distinguishes text from binary protos.

use crate::proto::{Config, ConfigProto, GraphDef, RunMetadata, SaverDef, SignatureDef, TensorDescription};
use crate::text::{self, MessageType};
use crate::wire;
use bytes::Bytes;
use prost::Message as _;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use support::{Code, Coded as _, Error, Result};

/// Limit for the bytes read from a file that does not state its size, such as those in `/proc`.
const MAX_STREAM: u64 = 1 << 30;

/// Name of the file kind SavedModel.
pub(crate) const SAVED_MODEL: &str = "SavedModel";

/// Name of the file kind MetaGraph.
pub(crate) const META_GRAPH: &str = "MetaGraphDef";

/// Returns the bytes of a regular file, which is mapped. Its pages are read on demand, and slices
/// of the bytes share them.
///
/// Other files are an error without being opened: that of a pipe waits until another process writes
/// to it, and a device may never end.
///
/// TensorFlow's own words describe a file that is missing.
pub fn read_bytes(path: &Path) -> Result<Bytes> {
    read(path, |reason| format!("{}; {reason}", path.display()))
}

/// Same as [`read_bytes`], for files that TensorFlow does not read.
pub fn read_other(path: &Path) -> Result<Bytes> {
    read(path, |reason| {
        let mut reason = reason.to_owned();
        if let Some(first) = reason.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        format!("cannot open '{}': {reason}", path.display())
    })
}

fn read(path: &Path, message: impl Fn(&str) -> String) -> Result<Bytes> {
    let io = |e: std::io::Error| {
        // Omits the number in "No such file or directory (os error 2)".
        let reason = e.to_string();
        let reason = reason.split(" (os error").next().unwrap_or(&reason);
        Error::invalid(message(reason)).coded(Code::ReadFile)
    };
    let kind = std::fs::metadata(path).map_err(io)?.file_type();
    if kind.is_dir() {
        return Err(Error::invalid(format!("{} is a directory", path.display())).coded(Code::ReadFile));
    }
    if !kind.is_file() {
        let error = Error::invalid(format!(
            "cannot read {}: it is a pipe or device; write what it holds to a file and name that",
            path.display()
        ));
        return Err(error.coded(Code::ReadFile));
    }
    let mut file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.len() > 0 {
        #[expect(unsafe_code, reason = "mapping a file")]
        // SAFETY: the map is private and read-only. As with every mapped input, a process that
        // truncates the file meanwhile can end this process with a signal, but cannot make it read
        // anything else.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        return Ok(Bytes::from_owner(map));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_STREAM + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_STREAM {
        let error = Error::invalid(format!(
            "cannot read {}: it states no size and has more than {MAX_STREAM} bytes",
            path.display()
        ));
        return Err(error.coded(Code::ReadFile));
    }
    Ok(bytes.into())
}

/// Reads a graph.
pub fn read_graph_def(path: &Path) -> Result<GraphDef> {
    parse_graph_def(read_bytes(path)?, &path.display().to_string())
}

/// Reads a `tensorflow.tf2xla.Config`, or the older `tensorflow.tfcompile.Config`.
pub fn read_config(path: &Path) -> Result<Config> {
    parse_config(read_bytes(path)?, &path.display().to_string())
}

/// Reads a saver.
pub fn read_saver_def(path: &Path) -> Result<SaverDef> {
    parse(read_bytes(path)?, &path.display().to_string(), &text::SAVER_DEF)
}

/// Parses a graph from the bytes of the file `name`.
pub fn parse_graph_def(bytes: Bytes, name: &str) -> Result<GraphDef> {
    if let Some(kind) = other_model(&bytes) {
        let error =
            Error::invalid(format!("Can't parse {name} as a GraphDef: it is a {kind}; {}", advice(kind)));
        return Err(error.coded(Code::ParseFile));
    }
    parse(bytes, name, &text::GRAPH_DEF)
}

/// Parses a config from the bytes of the file `name`.
pub fn parse_config(bytes: Bytes, name: &str) -> Result<Config> {
    parse(bytes, name, &text::CONFIG)
}

/// Parses a session's config from the bytes of the file `name`.
pub fn parse_session_config(bytes: Bytes, name: &str) -> Result<ConfigProto> {
    parse(bytes, name, &text::CONFIG_PROTO)
}

/// Prints a config as a text proto, which [`parse_config`] reads.
pub fn config_to_text(config: &Config) -> String {
    text::config_to_text(config)
}

/// Prints a graph as a text proto in the format of TensorFlow's `.pbtxt` files.
pub fn graph_def_to_text(graph: &GraphDef) -> String {
    text::to_text(&graph.encode_to_vec(), &text::GRAPH_DEF)
}

/// Encodes the statistics of a traced step as a binary proto.
pub fn run_metadata_to_bytes(metadata: &RunMetadata) -> Vec<u8> {
    metadata.encode_to_vec()
}

/// Prints the statistics of a traced step as a text proto.
pub fn run_metadata_to_text(metadata: &RunMetadata) -> String {
    text::to_text(&metadata.encode_to_vec(), &text::RUN_METADATA)
}

/// Prints a tensor's type, shape, and allocation as a text proto.
pub fn tensor_description_to_text(description: &TensorDescription) -> String {
    text::to_text(&description.encode_to_vec(), &text::TENSOR_DESCRIPTION)
}

/// Parses the statistics of a traced step from the bytes of the file `name`.
pub fn parse_run_metadata(bytes: Bytes, name: &str) -> Result<RunMetadata> {
    parse(bytes, name, &text::RUN_METADATA)
}

/// Reads a graph in the JSON form of protocol buffers. Unknown fields are ignored.
///
/// Errors name the value by its path from `what`.
pub fn graph_from_json(value: &Value, what: &str) -> Result<GraphDef> {
    from_json(value, what, &text::GRAPH_DEF)
}

/// Reads a signature in the JSON form of protocol buffers, as [`graph_from_json`] does.
pub fn signature_from_json(value: &Value, what: &str) -> Result<SignatureDef> {
    from_json(value, what, &text::SIGNATURE_DEF)
}

fn from_json<M: prost::Message + Default>(
    value: &Value,
    what: &str,
    message: &'static MessageType,
) -> Result<M> {
    text::json_to_wire(value, message)
        .and_then(|wire| wire::decode(wire.into(), message))
        .map_err(|e| Error::invalid(format!("{what}: {e}")).coded(Code::ParseFile))
}

/// Parses a text or binary proto. If content and file name disagree on the format, tries binary
/// before text.
pub(crate) fn parse<M: prost::Message + Default>(
    bytes: Bytes,
    name: &str,
    message: &'static MessageType,
) -> Result<M> {
    let named_text = name.ends_with(".pbtxt");
    let text = || -> Result<M> {
        let complain =
            |e| Error::invalid(format!("Can't parse {name} as text proto: {e}")).coded(Code::ParseFile);
        let wire = text::to_wire(&bytes, message).map_err(complain)?;
        wire::decode(wire.into(), message).map_err(complain)
    };
    let binary = || -> Result<M> {
        wire::decode(bytes.clone(), message)
            .map_err(|e| Error::invalid(format!("Can't parse {name} as binary proto: {e}")))
            .coded(Code::ParseFile)
    };
    match (looks_like_text(&bytes), named_text) {
        (true, true) => text(),
        (false, false) => binary(),
        // Printable, but not named `.pbtxt`. Only degenerate binary files, such as empty ones, are
        // printable, because the tags of the fields are control characters.
        (true, false) => binary().or_else(|_| text()),
        (false, true) => binary().or_else(|_| text()),
    }
}

/// True if the beginning of a file contains only text characters.
fn looks_like_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    head.iter().all(|&c| matches!(c, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) || (c >= b' ' && c != 0x7f))
}

const LITE: &str = "TensorFlow Lite model";
const HDF5: &str = "HDF5 file";
const ARCHIVE: &str = "Keras or zip archive";
/// Intact artifacts are read before this check.
const EXPORT: &str = "damaged or truncated artifact of jax.export";

/// Advice on how to convert a file of another kind to a supported one.
fn advice(kind: &str) -> &'static str {
    match kind {
        SAVED_MODEL | META_GRAPH => "give it to --graph or to a command that takes a MODEL",
        HDF5 | ARCHIVE => {
            "if it is a Keras model, export it with keras.models.load_model('FILE').export('DIRECTORY') and give the \
             directory"
        }
        EXPORT => "copy it again, or recreate it with serialize()",
        _ => "give the GraphDef or SavedModel from which it was converted",
    }
}

/// Recognizes the other file formats in which TensorFlow stores models.
pub(crate) fn other_model(bytes: &[u8]) -> Option<&'static str> {
    if looks_like_text(bytes) {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
        let first = head.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
        let field = first.split([' ', ':', '{']).next()?;
        return match field {
            "saved_model_schema_version" | "meta_graphs" => Some(SAVED_MODEL),
            "meta_info_def" | "graph_def" => Some(META_GRAPH),
            _ => None,
        };
    }
    // Field 1 of a SavedModel is its schema version. Field 2 holds the graphs.
    if bytes.len() > 3 && bytes[0] == 0x08 && bytes[2] == 0x12 {
        return Some(SAVED_MODEL);
    }
    let head = &bytes[..bytes.len().min(4096)];
    match bytes {
        _ if bytes.get(4..8) == Some(b"TFL3") => Some(LITE),
        [0x89, b'H', b'D', b'F', ..] => Some(HDF5),
        [b'P', b'K', 3, 4, ..] => Some(ARCHIVE),
        // A FlatBuffer begins with the offset of its root. This one contains MLIR bytecode.
        [offset, _, 0, 0, ..] if offset % 4 == 0 && head.windows(4).any(|word| word == b"ML\xefR") => {
            Some(EXPORT)
        }
        _ => None,
    }
}
