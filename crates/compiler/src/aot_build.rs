//! From graph and config to the files of an ahead-of-time build.

use crate::back::{Made, compile_object};
use crate::{BackOptions, Input, Observer};
use aot::{
    Artifact, CHeaderOptions, ConstantsMode, HeaderOptions, LayoutHash, MemorySizes, MetadataOptions,
    Provenance, RustOptions,
};
use bytes::Bytes;
use hlo::{Interface, Program};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use support::{Code, Coded as _, Error, Result};

/// What an ahead-of-time build is told.
#[derive(Clone, Debug)]
pub struct AotOptions {
    /// `[[namespace::]...]Class`.
    pub cpp_class: String,
    /// What the C++ header offers.
    pub header: HeaderOptions,
    /// What the C header is like, if there is to be one.
    pub c_header: Option<CHeaderOptions>,
    /// What the Rust module is like, if there is to be one.
    pub rust: Option<RustOptions>,
    /// Whether to write a program in C that tests the object.
    pub test_program: bool,
    /// Whether to write a program in C that measures it.
    pub benchmark_program: bool,
    /// Where the constants are.
    pub constants: ConstantsMode,
    /// Whether the function's object tells about itself too.
    pub describe_object: bool,
    /// Whether to serialise the unoptimised HLO.
    pub session_module: bool,
    /// Target, entry point, passes. Where the constants are is decided above.
    pub back: BackOptions,
}

impl AotOptions {
    /// Object, C++ header and metadata, and nothing else.
    pub fn new(cpp_class: impl Into<String>, back: BackOptions) -> Self {
        Self {
            cpp_class: cpp_class.into(),
            header: HeaderOptions::default(),
            c_header: None,
            rust: None,
            test_program: false,
            benchmark_program: false,
            constants: ConstantsMode::Embed,
            describe_object: false,
            session_module: false,
            back,
        }
    }
}

/// The files of an ahead-of-time build.
#[derive(Debug)]
pub struct Outputs {
    /// Code, and the constants unless they are in a file.
    pub function_object: Vec<u8>,
    /// The text of the C++ header.
    pub header: String,
    /// The text of the C header, if asked for.
    pub c_header: Option<String>,
    /// The text of the Rust module, if asked for.
    pub rust: Option<String>,
    /// The text of the program that tests the object, if asked for.
    pub test_program: Option<String>,
    /// The text of the program that measures it, if asked for.
    pub benchmark_program: Option<String>,
    /// Names, shapes, config, hashes.
    pub metadata_object: Vec<u8>,
    /// The constants file, if the constants are in a file.
    pub constants_file: Option<ConstantsFile>,
    /// A serialised `xla.HloSnapshot` of the unoptimised HLO, if asked for.
    pub session_module: Option<Vec<u8>>,
    /// Kernels for which the tuning named what is no candidate of theirs.
    pub ignored_choices: Vec<String>,
    /// What the results are called, in order.
    pub result_names: Vec<String>,
}

/// The contents of a constants file.
#[derive(Debug)]
pub struct ConstantsFile {
    layout: LayoutHash,
    size: u64,
    chunks: Vec<(u64, Bytes)>,
}

impl ConstantsFile {
    /// The file in pieces: larger than one would hold in memory twice.
    pub fn parts(&self) -> Result<Vec<Cow<'_, [u8]>>> {
        aot::constants_file_parts(&self.layout, self.size, &self.chunks)
    }
}

/// Builds the files. Everything that can be wrong about names is found before any code is made.
pub fn build(input: Input, options: &AotOptions, observer: &mut dyn Observer) -> Result<Outputs> {
    // Large files take a while to hash, and only what is written last wants to know.
    std::thread::scope(|scope| {
        let files = input.files;
        let hash = |bytes: &Bytes| Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
        let hash_all = move || files.iter().map(|(what, bytes)| (what.clone(), hash(bytes))).collect();
        let hashes = scope.spawn(hash_all);
        let input = Input { files: Vec::new(), ..input };
        build_with(input, options, observer, || {
            hashes.join().map_err(|_| Error::internal("a thread that hashes files panicked"))
        })
    })
}

/// The same with the files' hashes, which are asked for when the code is made.
fn build_with(
    input: Input,
    options: &AotOptions,
    observer: &mut dyn Observer,
    input_hashes: impl FnOnce() -> Result<Vec<(String, String)>>,
) -> Result<Outputs> {
    let cpp_class = aot::parse_cpp_class(&options.cpp_class).coded(Code::OutputName)?;
    aot::validate_entry_point(&options.back.entry_point).coded(Code::OutputName)?;
    let Program { module, interface } =
        Input { config_text: String::new(), files: Vec::new(), source: input.source }
            .without_checks()?
            .import(observer)?;
    let target = &options.back.target;
    let mut artifact = Artifact {
        provenance: Provenance {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            target_triple: target.triple.as_str().to_owned(),
            target_cpu: target.cpu.clone(),
            target_features: target.features.clone(),
            versions: versions(&options.back),
            config: input.config_text,
            ..Provenance::default()
        },
        ..artifact(interface, cpp_class, &options.back.entry_point).coded(Code::OutputName)?
    };
    if options.constants == ConstantsMode::File {
        // The headers differ by whether there is a file; which one follows when the code is made.
        artifact.constants_file = Some(LayoutHash([0; 32]));
    }
    interfaces(&artifact, options).coded(Code::OutputName)?;
    let snapshot = || hlo::proto::to_hlo_snapshot_bytes(&module);
    let session_module = options.session_module.then(snapshot).transpose()?;
    let result_names = artifact.interface.result_names();
    let back =
        BackOptions { embed_constants: options.constants == ConstantsMode::Embed, ..options.back.clone() };
    let Made { assignment, kernels, counters, code, plan, variants, .. } =
        compile_object(module, &back, observer)?;
    artifact.memory = MemorySizes {
        temps: assignment.temps_size,
        persistent_temps: assignment.persistent_size,
        scratch: assignment.worker_scratch_size,
        constants: assignment.constants_size,
        stack: code.stack_bytes,
    };
    artifact.constants_pointer = code.large_constants;
    artifact.profile_counters = counters;
    artifact.provenance.input_hashes = input_hashes()?;
    artifact.provenance.kernels = kernels;
    artifact.provenance.functions = aot::function_sizes(&code.object)?;
    let mut constants_file = None;
    if options.constants == ConstantsMode::File {
        let (size, chunks) = (assignment.constants_size, assignment.constants);
        let layout = LayoutHash::new(&code.object, size, &chunks);
        artifact.constants_file = Some(layout);
        constants_file = Some(ConstantsFile { layout, size, chunks });
    }
    let Interfaces { header, c_header, rust, test_program, benchmark_program } =
        interfaces(&artifact, options)?;
    let metadata = MetadataOptions { gen_program_shape: options.header.gen_program_shape };
    let metadata_object = aot::metadata_object(&artifact, &metadata)?;
    let function_object = match options.describe_object {
        true => aot::with_metadata(code.object, &artifact)?,
        false => code.object,
    };
    observer.ended("aot", &|| format!("{} bytes of header", header.len()));
    let plans = std::iter::once(&plan).chain(variants.iter().map(|variant| &variant.plan));
    let ignored_choices = plans.flat_map(|plan| plan.ignored_choices.iter().cloned()).collect();
    Ok(Outputs {
        function_object,
        header,
        c_header,
        rust,
        test_program,
        benchmark_program,
        metadata_object,
        constants_file,
        session_module,
        ignored_choices,
        result_names,
    })
}

/// The processors that the object chooses from, if it does.
fn versions(back: &BackOptions) -> Vec<String> {
    match back.variants.as_slice() {
        [] => Vec::new(),
        variants => std::iter::once(&back.target).chain(variants).map(|target| target.cpu.clone()).collect(),
    }
}

/// The program as other languages see it: C++, and those that are asked for.
struct Interfaces {
    header: String,
    c_header: Option<String>,
    rust: Option<String>,
    test_program: Option<String>,
    benchmark_program: Option<String>,
}

fn interfaces(artifact: &Artifact, options: &AotOptions) -> Result<Interfaces> {
    Ok(Interfaces {
        header: aot::header(artifact, &options.header)?,
        c_header: options.c_header.as_ref().map(|c| aot::c_header(artifact, c)).transpose()?,
        rust: options.rust.as_ref().map(|rust| aot::rust_module(artifact, rust)).transpose()?,
        test_program: options.test_program.then(|| aot::test_program(artifact)).transpose()?,
        benchmark_program: options.benchmark_program.then(|| aot::benchmark_program(artifact)).transpose()?,
    })
}

/// What is known of an artifact when its graph is imported: names and shapes.
pub(crate) fn artifact(
    interface: Interface,
    cpp_class: aot::CppClass,
    entry_point: &str,
) -> Result<Artifact> {
    let artifact = Artifact {
        entry_point: entry_point.to_owned(),
        cpp_class,
        interface,
        memory: MemorySizes::default(),
        constants_file: None,
        constants_pointer: false,
        profile_counters: Vec::new(),
        provenance: Provenance::default(),
    };
    artifact.validate()?;
    Ok(artifact)
}
