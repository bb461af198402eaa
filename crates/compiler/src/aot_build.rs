//! From graph and config to the files of an ahead-of-time build.

use crate::{BackOptions, Compiled, Front, Input, Observer, compile_module, front};
use aot::{
    Argument, ArgumentKind, Artifact, HeaderOptions, MemorySizes, MetadataOptions, Provenance, ResultEntry,
    ResultKind,
};
use import::ResultOrigin;
use sha2::{Digest, Sha256};
use shape::ArrayShape;
use support::{Error, Result};

/// What an ahead-of-time build is told.
#[derive(Clone, Debug)]
pub struct AotOptions {
    /// `[[namespace::]...]Class`.
    pub cpp_class: String,
    /// Names for `LookupArgIndex` and its kind.
    pub gen_name_to_index: bool,
    /// The shape for `ProgramShape()`.
    pub gen_program_shape: bool,
    /// Whether to serialise the unoptimised HLO.
    pub session_module: bool,
    /// Target, entry point, passes.
    pub back: BackOptions,
}

/// The files of an ahead-of-time build.
#[derive(Debug)]
pub struct Outputs {
    /// Code and constants.
    pub function_object: Vec<u8>,
    /// The header's text.
    pub header: String,
    /// Names, shapes, config, hashes.
    pub metadata_object: Vec<u8>,
    /// A serialised `xla.HloSnapshot` of the unoptimised HLO, if asked for.
    pub session_module: Option<Vec<u8>>,
}

/// Builds the files. Everything that can be wrong about names is found before any code is made.
pub fn build(
    graph: &Input,
    config: &Input,
    options: &AotOptions,
    observer: &mut dyn Observer,
) -> Result<Outputs> {
    let cpp_class = aot::parse_cpp_class(&options.cpp_class)?;
    aot::validate_entry_point(&options.back.entry_point)?;
    let hash = |input: &Input| Sha256::digest(&input.bytes).iter().map(|b| format!("{b:02x}")).collect();
    let input_hashes = vec![("config".to_owned(), hash(config)), ("graph".to_owned(), hash(graph))];
    let front = front::import(graph, config, observer)?;
    let mut artifact = Artifact {
        entry_point: options.back.entry_point.clone(),
        cpp_class,
        arguments: arguments(&front),
        results: results(&front)?,
        memory: MemorySizes::default(),
        constants_file: None,
        program_shape: front.module().entry_computation().program_shape(),
        profile_counters: Vec::new(),
        provenance: Provenance {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            target_triple: options.back.target.triple.as_str().to_owned(),
            target_cpu: options.back.target.cpu.clone(),
            target_features: options.back.target.features.clone(),
            config: String::from_utf8_lossy(&config.bytes).into_owned(),
            input_hashes,
            kernels: Vec::new(),
        },
    };
    artifact.program_shape.parameter_names.clone_from(&front.import.parameter_names);
    artifact.validate()?;
    let header_options = HeaderOptions {
        gen_name_to_index: options.gen_name_to_index,
        gen_program_shape: options.gen_program_shape,
        ..HeaderOptions::default()
    };
    aot::header(&artifact, &header_options)?;
    let snapshot = || hlo::proto::to_hlo_snapshot_bytes(front.module());
    let session_module = options.session_module.then(snapshot).transpose()?;
    let Compiled { assignment, kernels, code, .. } =
        compile_module(front.import.module, &options.back, observer)?;
    artifact.memory = MemorySizes {
        temps: assignment.temps_size,
        persistent_temps: assignment.persistent_size,
        scratch: 0,
        constants: assignment.constants_size,
    };
    artifact.provenance.kernels = kernels;
    let header = aot::header(&artifact, &header_options)?;
    let metadata = MetadataOptions { gen_program_shape: options.gen_program_shape };
    let metadata_object = aot::metadata_object(&artifact, &metadata)?;
    observer.ended("aot", &|| format!("{} bytes of header", header.len()));
    Ok(Outputs { function_object: code.object, header, metadata_object, session_module })
}

fn named(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

fn arguments(front: &Front) -> Vec<Argument> {
    let entry = front.module().entry_computation();
    let shapes: Vec<ArrayShape> =
        entry.parameters().iter().map(|&p| entry[p].shape().expect_array().clone()).collect();
    let feeds = front.program.feeds.iter().map(|feed| {
        let node = format!("{}:{}", feed.id.0, feed.id.1);
        (named(&feed.name), node, ArgumentKind::Feed)
    });
    let variables = front.program.variables.iter().map(|variable| {
        let kind = ArgumentKind::Variable { readonly: variable.readonly };
        (named(&variable.name), variable.node_name.clone(), kind)
    });
    let all = feeds.chain(variables).zip(shapes);
    all.map(|((name, node, kind), shape)| Argument { name, node, shape, kind }).collect()
}

fn results(front: &Front) -> Result<Vec<ResultEntry>> {
    let entry = front.module().entry_computation();
    let shape = entry[entry.root()].shape();
    let elements = shape.as_tuple().ok_or_else(|| Error::internal("the entry's result is a tuple"))?;
    let mut results = Vec::new();
    for (origin, element) in front.import.results.iter().zip(elements) {
        let shape = element.as_array().cloned();
        let shape = shape.ok_or_else(|| Error::internal("every result is an array"))?;
        results.push(match *origin {
            ResultOrigin::Fetch(k) => {
                let fetch = &front.program.fetches[k];
                let node = format!("{}:{}", fetch.id.0, fetch.id.1);
                ResultEntry { name: named(&fetch.name), node, shape, kind: ResultKind::Fetch }
            }
            ResultOrigin::Variable(k) => {
                let variable = &front.program.variables[k];
                let kind = ResultKind::Variable { argument: front.program.feeds.len() + k };
                ResultEntry { name: named(&variable.name), node: variable.node_name.clone(), shape, kind }
            }
        });
    }
    Ok(results)
}
