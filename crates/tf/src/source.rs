//! Files: mapping them, and telling text from binary.

use crate::proto::{Config, ConfigProto, GraphDef, RunMetadata, SaverDef, TensorDescription};
use crate::text::{self, MessageType};
use crate::wire;
use bytes::Bytes;
use prost::Message as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use support::{Code, Coded as _, Error, Result};

/// The most bytes read from something that cannot be mapped, such as a pipe.
const MAX_STREAM: u64 = 1 << 30;

/// The kind of file that is a SavedModel.
pub(crate) const SAVED_MODEL: &str = "SavedModel";

/// The kind of file that is a MetaGraph.
pub(crate) const META_GRAPH: &str = "MetaGraphDef";

/// The bytes of a file. A regular file is mapped, so its pages are read as they are needed and
/// shared by everything that keeps a part of them.
pub fn read_bytes(path: &Path) -> Result<Bytes> {
    let io = |e: std::io::Error| {
        // "No such file or directory (os error 2)" without the number.
        let reason = e.to_string();
        let reason = reason.split(" (os error").next().unwrap_or(&reason);
        Error::invalid(format!("{}; {reason}", path.display())).coded(Code::ReadFile)
    };
    let mut file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if metadata.is_dir() {
        return Err(Error::invalid(format!("{} is a directory", path.display())).coded(Code::ReadFile));
    }
    if metadata.is_file() && metadata.len() > 0 {
        #[expect(unsafe_code, reason = "mapping a file")]
        // SAFETY: the map is private and read-only. As for every mapped input, another process that
        // shortens the file meanwhile can end this one with a signal; it cannot make it read
        // anything but the file.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        return Ok(Bytes::from_owner(map));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_STREAM + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_STREAM {
        let error = Error::invalid(format!("{}; more than {MAX_STREAM} bytes", path.display()));
        return Err(error.coded(Code::ReadFile));
    }
    Ok(bytes.into())
}

/// Reads a graph.
pub fn read_graph_def(path: &Path) -> Result<GraphDef> {
    parse_graph_def(read_bytes(path)?, &path.display().to_string())
}

/// Reads a config, of `tensorflow.tf2xla` or the older `tensorflow.tfcompile`.
pub fn read_config(path: &Path) -> Result<Config> {
    parse_config(read_bytes(path)?, &path.display().to_string())
}

/// Reads a saver.
pub fn read_saver_def(path: &Path) -> Result<SaverDef> {
    parse(read_bytes(path)?, &path.display().to_string(), &text::SAVER_DEF)
}

/// A graph from the bytes of the file `name`.
pub fn parse_graph_def(bytes: Bytes, name: &str) -> Result<GraphDef> {
    if let Some(kind) = other_model(&bytes) {
        let error =
            Error::invalid(format!("Can't parse {name} as a GraphDef: it is a {kind}; {}", advice(kind)));
        return Err(error.coded(Code::ParseFile));
    }
    parse(bytes, name, &text::GRAPH_DEF)
}

/// A config from the bytes of the file `name`.
pub fn parse_config(bytes: Bytes, name: &str) -> Result<Config> {
    parse(bytes, name, &text::CONFIG)
}

/// A session's config from the bytes of the file `name`.
pub fn parse_session_config(bytes: Bytes, name: &str) -> Result<ConfigProto> {
    parse(bytes, name, &text::CONFIG_PROTO)
}

/// A config as text proto, which [`parse_config`] reads.
pub fn config_to_text(config: &Config) -> String {
    text::config_to_text(config)
}

/// A graph as text proto, as TensorFlow writes `.pbtxt` files.
pub fn graph_def_to_text(graph: &GraphDef) -> String {
    text::to_text(&graph.encode_to_vec(), &text::GRAPH_DEF)
}

/// Statistics of a traced step, as a binary proto.
pub fn run_metadata_to_bytes(metadata: &RunMetadata) -> Vec<u8> {
    metadata.encode_to_vec()
}

/// Statistics of a traced step, as a text proto.
pub fn run_metadata_to_text(metadata: &RunMetadata) -> String {
    text::to_text(&metadata.encode_to_vec(), &text::RUN_METADATA)
}

/// A tensor's type, shape and place, as text proto.
pub fn tensor_description_to_text(description: &TensorDescription) -> String {
    text::to_text(&description.encode_to_vec(), &text::TENSOR_DESCRIPTION)
}

/// Statistics of a traced step, from the bytes of the file `name`.
pub fn parse_run_metadata(bytes: Bytes, name: &str) -> Result<RunMetadata> {
    parse(bytes, name, &text::RUN_METADATA)
}

/// The content decides whether a file is text or binary; the suffix `.pbtxt`, where the content
/// leaves both open.
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
        // Named binary, but of printable characters. Binary files of these messages hold control
        // characters, the tags of their fields, but for degenerate ones such as an empty file.
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
/// Whole ones are read before anybody asks what else a file may be.
const EXPORT: &str = "damaged or truncated artifact of jax.export";

/// Advice on how to convert a file of another kind to a supported one.
fn advice(kind: &str) -> &'static str {
    match kind {
        SAVED_MODEL | META_GRAPH => "commands that take a MODEL, and --graph, read it",
        HDF5 | ARCHIVE => {
            "if Keras made it, export it, keras.models.load_model('FILE').export('DIRECTORY'), and give the directory"
        }
        EXPORT => "copy it again, or write it again with serialize()",
        _ => "give a GraphDef or a SavedModel, from which it was made",
    }
}

/// Recognises the other files that TensorFlow stores models in.
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
    // Field 1 of a SavedModel is a number, its schema version; field 2 holds the graphs.
    if bytes.len() > 3 && bytes[0] == 0x08 && bytes[2] == 0x12 {
        return Some(SAVED_MODEL);
    }
    let head = &bytes[..bytes.len().min(4096)];
    match bytes {
        _ if bytes.get(4..8) == Some(b"TFL3") => Some(LITE),
        [0x89, b'H', b'D', b'F', ..] => Some(HDF5),
        [b'P', b'K', 3, 4, ..] => Some(ARCHIVE),
        // A FlatBuffer begins with the offset of its root, and this one has a file of MLIR's
        // bytecode in it.
        [offset, _, 0, 0, ..] if offset % 4 == 0 && head.windows(4).any(|word| word == b"ML\xefR") => {
            Some(EXPORT)
        }
        _ => None,
    }
}
