//! Readers of files that anyone may have written, by name. Each reads some bytes and does what
//! commonly comes next. An error is as good as a result; a panic, a crash, a long wait, and too
//! much memory are findings.
//!
//! The fuzz target and a test of the workspace share this table.

use bytes::Bytes;
use codegen::{CodegenOptions, Constants, UnitCache};
use report::Report;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use support::Result;
use terminal::Screen;
use tf::checkpoint::Checkpoint;
use tf::model::{Foreign, LoadOptions, Model};
use tf::proto::{Config, GraphDef};

/// A reader.
pub struct Reader {
    /// Its name, which is also that of its corpus.
    pub name: &'static str,
    /// Reads the bytes. Readers of several files write them to the folder, which no other reader
    /// uses.
    pub read: fn(&[u8], &Path),
}

/// All readers.
pub const READERS: &[Reader] = &[
    Reader { name: "graph", read: |bytes, _| graph(bytes, "graph.pb") },
    Reader { name: "graph-text", read: |bytes, _| graph(bytes, "graph.pbtxt") },
    Reader { name: "config", read: |bytes, _| config(bytes, "config.pb") },
    Reader { name: "config-text", read: |bytes, _| config(bytes, "config.pbtxt") },
    Reader { name: "saved-model", read: saved_model },
    Reader { name: "meta-graph", read: meta_graph },
    Reader { name: "checkpoint-v1", read: checkpoint_v1 },
    Reader { name: "checkpoint-v2", read: checkpoint_v2 },
    Reader { name: "hlo-text", read: |bytes, _| on_text(bytes, hlo_text) },
    Reader { name: "hlo-proto", read: |bytes, _| done(hlo_proto(bytes)) },
    Reader { name: "mlir-text", read: |bytes, _| on_text(bytes, |text| stablehlo(&mlir::parse(text)?)) },
    Reader { name: "mlir-bytecode", read: |bytes, _| done(mlir_bytecode(bytes)) },
    Reader { name: "jax-export", read: |bytes, _| done(jax_export(bytes)) },
    Reader { name: "npy", read: |bytes, _| done(npy(bytes)) },
    Reader { name: "npz", read: |bytes, _| done(npz_archive(bytes)) },
    Reader { name: "safetensors", read: |bytes, _| done(safetensors(bytes)) },
    Reader { name: "idx", read: |bytes, _| done(npz::parse_idx(&copy(bytes), MAX_ARRAY)) },
    Reader { name: "tflite", read: |bytes, _| tflite(bytes) },
    Reader { name: "onnx", read: |bytes, _| done(onnx(bytes)) },
    Reader { name: "tfjs", read: |bytes, folder| done(tfjs(bytes, folder)) },
    Reader { name: "tuning", read: |bytes, _| on_text(bytes, tuning) },
    Reader { name: "metadata", read: |bytes, _| done(metadata(bytes)) },
    Reader { name: "report", read: |bytes, _| done(saved_report(bytes)) },
    Reader { name: "budget", read: |bytes, _| on_text(bytes, budget) },
    Reader { name: "kernel-cache", read: |bytes, _| done(kernel_cache(bytes)) },
];

/// Limit of arrays in archives and idx files. The tool's limit is above this machine's memory.
const MAX_ARRAY: u64 = 1 << 30;

/// Limit for the tensors of a checkpoint to read: many may share the same bytes.
const MAX_TENSORS: usize = 100;

fn copy(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// Drops a result: it does not matter whether there is one.
fn done<T>(result: Result<T>) {
    drop(result);
}

fn on_text<T>(bytes: &[u8], read: impl FnOnce(&str) -> Result<T>) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        done(read(text));
    }
}

/// Splits an input of several files: `COUNT - 1` sizes as 32-bit little-endian integers, then the
/// contents. The last file has the rest.
fn parts<const COUNT: usize>(bytes: &[u8]) -> [&[u8]; COUNT] {
    let (sizes, mut rest) = bytes.split_at(bytes.len().min(4 * (COUNT - 1)));
    let mut sizes = sizes.chunks_exact(4);
    std::array::from_fn(|part| {
        let size = match sizes.next() {
            Some(size) => u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize,
            None if part + 1 == COUNT => rest.len(),
            None => 0,
        };
        let (content, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        content
    })
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, bytes).expect("writable");
}

/// The steps after the reading of a graph, up to its import.
fn prepare(graph: GraphDef, config: Option<Config>) {
    let inferred = tf::infer(&graph, &tf::InferOptions::default());
    let Some(config) = config.or_else(|| Some(inferred.ok()?.config)) else { return };
    let examined = tf::examine(&graph, &config);
    if examined.problems.is_empty() {
        done(tf::prepare(graph, config));
    }
}

fn graph(bytes: &[u8], name: &str) {
    if let Ok(graph) = tf::source::parse_graph_def(copy(bytes), name) {
        let text = tf::source::graph_def_to_text(&graph);
        done(tf::source::parse_graph_def(text.into(), "graph.pbtxt"));
        prepare(graph, None);
    }
}

fn config(bytes: &[u8], name: &str) {
    done(tf::source::parse_session_config(copy(bytes), name));
    done(tf::source::parse_run_metadata(copy(bytes), name));
    if let Ok(config) = tf::source::parse_config(copy(bytes), name) {
        let text = tf::source::config_to_text(&config);
        done(tf::source::parse_config(text.into(), "config.pbtxt"));
        done(tf::fetch_nodes(&config));
        prepare(GraphDef::default(), Some(config));
    }
}

fn model(model: Model) {
    done(model.infer());
    prepare(model.graph, model.config);
}

fn foreign(foreign: Foreign) {
    prepare(foreign.graph.clone(), Some(foreign.config.clone()));
    let read = tf::model::load_foreign(Path::new("model"), Bytes::new(), foreign, &LoadOptions::default());
    done(read.map(model));
}

/// The graph, the index of the variables, and their values.
fn saved_model(bytes: &[u8], folder: &Path) {
    let [graph, index, data] = parts(bytes);
    write(&folder.join("saved_model.pb"), graph);
    write(&folder.join("variables/variables.index"), index);
    write(&folder.join("variables/variables.data-00000-of-00001"), data);
    done(tf::model::load(folder, &LoadOptions::default()).map(model));
}

fn meta_graph(bytes: &[u8], folder: &Path) {
    let path = folder.join("model.meta");
    write(&path, bytes);
    done(tf::model::load(&path, &LoadOptions::default()).map(model));
}

fn checkpoint(path: &Path) {
    let Ok(checkpoint) = Checkpoint::open(path) else { return };
    for name in checkpoint.names().take(MAX_TENSORS) {
        done(checkpoint.tensor_type(name));
        done(checkpoint.value(name));
        done(checkpoint.restore(name, "10 4 0,5:-"));
    }
    done(checkpoint.variable_keys());
    if checkpoint.names().count() <= MAX_TENSORS {
        done(checkpoint.stored());
    }
}

fn checkpoint_v1(bytes: &[u8], folder: &Path) {
    let path = folder.join("model.ckpt");
    write(&path, bytes);
    checkpoint(&path);
}

/// The index and the values.
fn checkpoint_v2(bytes: &[u8], folder: &Path) {
    let [index, data] = parts(bytes);
    write(&folder.join("model.index"), index);
    write(&folder.join("model.data-00000-of-00001"), data);
    checkpoint(&folder.join("model"));
}

/// The steps after the reading of HLO, up to the passes.
fn module(module: &hlo::Module) -> Result<()> {
    if module.entry_if_set().is_none() || hlo::verify(module).is_err() {
        drop(hlo::verify_all(module));
        return Ok(());
    }
    let again = hlo::parse(&module.to_text())?;
    done(hlo::verify(&again));
    drop(hlo::text::print(module, hlo::PrintOptions::short()));
    done(hlo::Interface::of_module(module));
    done(stablehlo::write(module, &stablehlo::WriteOptions::default()));
    done(hlo::proto::read_hlo_proto(&hlo::proto::to_hlo_module_proto_bytes(module)?));
    Ok(())
}

fn hlo_text(text: &str) -> Result<()> {
    done(hlo::text::parse_literal(text));
    module(&hlo::parse(text)?)
}

fn hlo_proto(bytes: &[u8]) -> Result<()> {
    done(hlo::proto::dot_dimension_numbers_from_bytes(bytes));
    module(&hlo::proto::read_hlo_proto(bytes)?.0)
}

fn stablehlo(source: &mlir::Module) -> Result<()> {
    let request = stablehlo::SizeRequest::default();
    done(stablehlo::dimensions(source, None, &request));
    done(stablehlo::import_each(source));
    module(&stablehlo::import_sized(source, None, &request)?.module)
}

fn mlir_bytecode(bytes: &[u8]) -> Result<()> {
    stablehlo(&mlir::parse_bytecode(bytes)?)
}

fn jax_export(bytes: &[u8]) -> Result<()> {
    if stablehlo::is_export(bytes) {
        stablehlo(&stablehlo::read_export(bytes)?)?;
    }
    Ok(())
}

fn npy(bytes: &[u8]) -> Result<()> {
    done(npz::parse_npy(&npz::write_npy(&npz::parse_npy(&copy(bytes))?).into()));
    Ok(())
}

fn npz_archive(bytes: &[u8]) -> Result<()> {
    let mut archive = npz::Archive::open(copy(bytes), MAX_ARRAY)?;
    let names: Vec<String> = archive.names().take(MAX_TENSORS).map(str::to_owned).collect();
    for name in names {
        done(archive.get(&name));
        done(archive.require_bytes(&name));
    }
    Ok(())
}

fn safetensors(bytes: &[u8]) -> Result<()> {
    let file = npz::Safetensors::open(copy(bytes))?;
    for name in file.names().take(MAX_TENSORS) {
        done(file.get(name));
    }
    Ok(())
}

fn tflite(bytes: &[u8]) {
    for keeps_open in [false, true] {
        let selection = tflite::Selection { signature: None, keeps_open };
        done(tflite::read(&copy(bytes), selection).map(foreign));
    }
}

/// A model. All of its external files have the same contents.
fn onnx(bytes: &[u8]) -> Result<()> {
    let mut external = |_: &str| Ok(Bytes::from_static(&[0x3f; 4096]));
    foreign(onnx::read(&copy(bytes), &BTreeMap::new(), &mut external)?.foreign);
    Ok(())
}

/// The model and its only file of weights.
fn tfjs(bytes: &[u8], folder: &Path) -> Result<()> {
    let [json, weights] = parts(bytes);
    write(&folder.join("group1-shard1of1.bin"), weights);
    let path = folder.join("model.json");
    let meta = tfjs::read(&path, &copy(json))?;
    let file = ("tfjs".to_owned(), copy(json));
    model(tf::model::load_meta_graph(&path, file, meta, &LoadOptions::default())?);
    Ok(())
}

fn tuning(text: &str) -> Result<()> {
    let choices = plan::Choices::parse(text, "tuning")?;
    for line in text.lines() {
        if let Some((kernel, candidate)) = line.split_once(" => ") {
            let _ = plan::Candidate::parse(candidate);
            let _ = choices.get("x86_64", kernel);
        }
    }
    plan::Choices::parse(&choices.to_text(), "tuning").map(drop)
}

fn metadata(bytes: &[u8]) -> Result<()> {
    done(aot::ConstantsFileHeader::parse(bytes, bytes.len() as u64));
    done(aot::function_sizes(bytes));
    for record in aot::read_metadata(bytes)? {
        done(aot::read_interface(&record.metadata));
    }
    Ok(())
}

/// A saved report as a page, as text, and in comparison with itself.
fn saved_report(bytes: &[u8]) -> Result<()> {
    let report = Report::parse(bytes)?;
    let again = Report::parse(report.to_json()?.as_bytes())?;
    for screen in [Screen::PLAIN, Screen::new(20, true)] {
        drop(report.to_text(&screen));
        drop(report::Diff::new(&report, &again).to_text(&screen));
    }
    drop(report::html(&report, Some(&again)));
    let budget = report::Budget::parse("latency = \"1 ms\"\nram = 1\n[error]\n\"*\" = 0.5\n", "budget.toml")?;
    drop(report::junit(&budget.file, &budget.check(&report)));
    Ok(())
}

/// A budget, and what it says about a report without figures.
fn budget(text: &str) -> Result<()> {
    let budget = report::Budget::parse(text, "budget.toml")?;
    let findings = budget.check(&Report::new("model", "model"));
    drop(report::github(&budget.file, &findings));
    drop(report::junit(&budget.file, &findings));
    Ok(())
}

/// Stands in for the kernel cache: each key has an intact entry with these contents.
#[derive(Debug)]
struct OneEntry(Vec<u8>);

impl UnitCache for OneEntry {
    fn get(&self, key: &str) -> Option<Vec<u8>> {
        Some(codegen::seal(codegen::UNIT_MAGIC, key, &self.0))
    }

    fn put(&self, _: &str, _: &[u8]) {}
}

/// The contents of an entry of the kernel cache, from which an object is made. Its hash only shows
/// that a program has stored it under its key.
fn kernel_cache(bytes: &[u8]) -> Result<()> {
    let program = nest::parse("entry fn \"entry\" (v0 \"frame\": ptr align 8) {\n}\n")?;
    let target = target::Target::new("x86_64-pc-linux", "", "")?;
    let cache = Arc::new(OneEntry(bytes.to_vec()));
    let options = CodegenOptions { cache: Some(cache), ..CodegenOptions::new("entry") };
    // Of several units, the objects are merged. The number of frames comes first.
    if let Some((_, object)) = bytes.split_first_chunk::<8>() {
        done(codegen::merge_objects(&[object.to_vec(), object.to_vec()]));
    }
    codegen::compile(&program, &target, &options, &Constants::from_bytes(&[1; 100])).map(drop)
}
