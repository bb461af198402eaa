//! Ahead-of-time builds: from a graph and its config to files.

use crate::back::{CompiledObject, c_functions, compile_object, generate, lower_function};
use crate::compiled::{MachineCode, OpenClFiles};
use crate::{BackOptions, Input, Observer, Source};
use aot::{
    Artifact, CHeaderOptions, ConstantsMode, CppClass, DeviceDriver, DeviceTarget, FunctionClass,
    HeaderOptions, LayoutHash, MemorySizes, MetadataOptions, Provenance, RustOptions, Signature, WebModule,
};
use buffers::{ConstantsBlock, ConstantsPool};
use bytes::Bytes;
use hlo::{Interface, Program};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use support::{Code, Coded as _, Error, Result};
use target::Target;

/// Options of an ahead-of-time build.
#[derive(Clone, Debug)]
pub struct AotOptions {
    /// `[[namespace::]...]Class`.
    pub cpp_class: String,
    /// Options of the C++ header.
    pub header: HeaderOptions,
    /// Options of the C header; `None` to omit it.
    pub c_header: Option<CHeaderOptions>,
    /// Options of the Rust module; `None` to omit it.
    pub rust: Option<RustOptions>,
    /// Name of the files of a module for the web; `None` to omit it.
    pub web: Option<String>,
    /// True to write a program in C that tests the object.
    pub test_program: bool,
    /// True to write a program in C that measures the object.
    pub benchmark_program: bool,
    /// Place of the constants.
    pub constants: ConstantsMode,
    /// True to include metadata in the function's object.
    pub describe_object: bool,
    /// True to include metadata in the module for the web, which its users load.
    pub describe_web: bool,
    /// True to serialize the unoptimized HLO.
    pub session_module: bool,
    /// Target, entry point, and passes. `constants` takes precedence over its `embed_constants`.
    pub back: BackOptions,
}

impl AotOptions {
    /// Options for the object, the C++ header, and the metadata only.
    pub fn new(cpp_class: impl Into<String>, back: BackOptions) -> Self {
        Self {
            cpp_class: cpp_class.into(),
            header: HeaderOptions::default(),
            c_header: None,
            rust: None,
            web: None,
            test_program: false,
            benchmark_program: false,
            constants: ConstantsMode::Embed,
            describe_object: false,
            describe_web: false,
            session_module: false,
            back,
        }
    }
}

/// The files of an ahead-of-time build.
#[derive(Debug)]
pub struct Outputs {
    /// Object with the code, and with the constants unless they are in a file; or the C source.
    pub function_object: Vec<u8>,
    /// Text of the C++ header.
    pub header: String,
    /// Kernels in OpenCL C and their launches, if a device takes OpenCL C.
    pub opencl: Option<OpenClFiles>,
    /// Text of the C header, if requested.
    pub c_header: Option<String>,
    /// Text of the Rust module, if requested.
    pub rust: Option<String>,
    /// Modules for the web, if requested.
    pub web: Option<WebModule>,
    /// Text of the program that tests the object, if requested.
    pub test_program: Option<String>,
    /// Text of the program that measures the object, if requested.
    pub benchmark_program: Option<String>,
    /// Object with names, shapes, config, and hashes.
    pub metadata_object: Vec<u8>,
    /// Constants file, if the constants are in a file.
    pub constants_file: Option<ConstantsFile>,
    /// Serialized `xla.HloSnapshot` of the unoptimized HLO, if requested.
    pub session_module: Option<Vec<u8>>,
    /// Kernels for which the tuning names an unknown candidate.
    pub ignored_choices: Vec<String>,
    /// Names of the results, in order.
    pub result_names: Vec<String>,
}

/// Contents of a constants file.
#[derive(Debug)]
pub struct ConstantsFile {
    layout: LayoutHash,
    block: ConstantsBlock,
}

impl ConstantsFile {
    /// Creates the constants file that an object expects.
    fn new(object: &[u8], block: ConstantsBlock) -> Self {
        Self { layout: LayoutHash::new(object, block.size, &block.chunks), block }
    }

    /// The file in pieces, so that a large file is never in memory twice.
    pub fn parts(&self) -> Result<Vec<Cow<'_, [u8]>>> {
        aot::constants_file_parts(&self.layout, self.block.size, &self.block.chunks)
    }
}

/// Builds the files. Errors in names are reported before any code is generated.
pub fn build(input: Input, options: &AotOptions, observer: &mut dyn Observer) -> Result<Outputs> {
    let Input { source, config_text, files } = input;
    // Hash in parallel: large files take a while, and only the metadata needs the hashes.
    let hash = |bytes: &Bytes| Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
    let hash_all = || files.iter().map(|(what, bytes)| (what.clone(), hash(bytes))).collect();
    std::thread::scope(|scope| {
        let hashes = std::thread::Builder::new().spawn_scoped(scope, hash_all);
        let (draft, program) = Draft::import(source, config_text, options, observer)?;
        let snapshot = || hlo::proto::to_hlo_snapshot_bytes(&program.module);
        let session_module = options.session_module.then(snapshot).transpose()?;
        let embed_constants = options.constants == ConstantsMode::Embed;
        let back = BackOptions { embed_constants, ..options.back.clone() };
        let object = compile_object(program, &back, observer)?;
        let hashes = match hashes {
            Ok(thread) => {
                thread.join().map_err(|_| Error::internal("the thread that hashes files panicked"))?
            }
            Err(_) => hash_all(),
        };
        write(draft, object, hashes, session_module, options, observer)
    })
}

/// Functions to build into one object.
#[derive(Debug)]
pub struct Functions {
    /// Name of the object's header, without `.h`.
    pub name: String,
    /// `[[namespace::]...]Class` of the class with all functions.
    pub cpp_class: String,
    /// The functions.
    pub functions: Vec<Function>,
}

/// A function of an object.
#[derive(Debug)]
pub struct Function {
    /// Its name, a C identifier.
    pub name: String,
    /// Its program.
    pub input: Input,
    /// Its class, its entry point, and the options that all functions have in common.
    pub options: AotOptions,
}

/// The files of an object with several functions.
#[derive(Debug)]
pub struct FunctionsOutputs {
    /// The object, without constants; or the C source.
    pub object: Vec<u8>,
    /// Text of the C++ header of the class with all functions.
    pub header: String,
    /// Names of the headers of the functions' classes, and their texts.
    pub headers: Vec<(String, String)>,
    /// Names of the functions' C headers, and their texts, if the options have some.
    pub c_headers: Vec<(String, String)>,
    /// The constants of all functions.
    pub constants_file: ConstantsFile,
}

/// Builds several functions that share one object and one constants file. Equal constants are
/// stored once; packed weights are equal if their matrices are.
pub fn build_functions(request: Functions, observer: &mut dyn Observer) -> Result<FunctionsOutputs> {
    let class = aot::parse_cpp_class(&request.cpp_class).coded(Code::OutputName)?;
    let mut pool = ConstantsPool::default();
    let packings = plan::Packings::default();
    let (mut lowered, mut classes) = (Vec::new(), Vec::new());
    for Function { name, input, options } in request.functions {
        if options.constants != ConstantsMode::File || !options.back.devices.is_empty() {
            return Err(Error::invalid(
                "several functions in one object share a constants file and run on a processor: add --constants=file, and \
                 remove GPUs from --target",
            ));
        }
        let (draft, program) = Draft::import(input.source, input.config_text, &options, observer)?;
        let header = format!("{}.h", options.back.entry_point);
        classes.push(FunctionClass {
            name,
            header,
            class: draft.cpp_class.clone(),
            interface: draft.interface.clone(),
        });
        let mut back = BackOptions { embed_constants: false, ..options.back.clone() };
        back.plan.packings = packings.clone();
        lowered.push((draft, lower_function(program, &back, &mut pool, observer)?, options, back));
    }
    let header = aot::functions_header(&class, &request.name, &classes).coded(Code::OutputName)?;
    let constants = pool.finish();
    let constants_size = constants.size;
    let source = match lowered.first().and_then(|(.., back)| back.c_source) {
        Some(vectors) => {
            let functions: Vec<_> = lowered.iter().map(|(_, versions, _, back)| (versions, back)).collect();
            Some(c_functions(&functions, vectors)?)
        }
        None => None,
    };
    let (mut objects, mut codes) = (Vec::new(), Vec::new());
    for (draft, versions, options, back) in lowered {
        let mut code = generate(versions, &back, None, observer)?;
        objects.push(std::mem::take(&mut code.output.object));
        codes.push((draft, code, options));
    }
    let object = match source {
        Some(source) => source,
        None => codegen::merge_objects(&objects)?,
    };
    let constants_file = ConstantsFile::new(&object, constants);
    let (mut headers, mut c_headers) = (Vec::new(), Vec::new());
    for ((draft, mut code, options), class) in codes.into_iter().zip(classes) {
        code.output.object = object.clone();
        let code = CompiledObject { code, constants_size, constants: None };
        let artifact = draft.finish(&code, Some(constants_file.layout), Vec::new(), &options.back)?;
        headers.push((class.header, aot::header(&artifact, &options.header)?));
        if let Some(c_header) = &options.c_header {
            let file = format!("{}_c.h", options.back.entry_point);
            c_headers.push((file, aot::c_header(&artifact, c_header)?));
        }
    }
    Ok(FunctionsOutputs { object, header, headers, c_headers, constants_file })
}

/// Program without its code, with names that are valid in all requested files.
struct Draft {
    cpp_class: CppClass,
    interface: Interface,
    /// Config as text.
    config: String,
}

impl Draft {
    /// Imports a program and checks its names. Also returns the program.
    fn import(
        source: Source,
        config: String,
        options: &AotOptions,
        observer: &mut dyn Observer,
    ) -> Result<(Self, Program)> {
        let entry_point = &options.back.entry_point;
        let cpp_class = aot::parse_cpp_class(&options.cpp_class).coded(Code::OutputName)?;
        aot::validate_entry_point(entry_point).coded(Code::OutputName)?;
        let program = source.without_checks()?.import_code(&options.back, observer)?;
        let interface = program.interface.clone();
        let signature = Signature { entry_point, cpp_class: &cpp_class, interface: &interface };
        check_names(signature, options).coded(Code::OutputName)?;
        Ok((Self { cpp_class, interface, config }, program))
    }

    /// Adds the facts about the code to the program. `layout` is the hash of the constants file, if
    /// there is one.
    fn finish(
        self,
        object: &CompiledObject,
        layout: Option<LayoutHash>,
        input_hashes: Vec<(String, String)>,
        back: &BackOptions,
    ) -> Result<Artifact> {
        let (code, target) = (&object.code, &back.target);
        Ok(Artifact {
            entry_point: back.entry_point.clone(),
            cpp_class: self.cpp_class,
            interface: self.interface,
            memory: MemorySizes {
                temps: code.assignment.temps_size,
                persistent_temps: code.assignment.persistent_size,
                scratch: code.assignment.worker_scratch_size,
                constants: object.constants_size,
                stack: code.output.stack_bytes,
            },
            constants_file: layout,
            constants_pointer: code.output.large_constants,
            profile_counters: code.counters.clone(),
            device: device_target(&back.devices),
            provenance: Provenance {
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
                target_triple: target.triple.as_str().to_owned(),
                target_cpu: target.cpu.clone(),
                target_features: target.features.clone(),
                config: self.config,
                input_hashes,
                kernels: code.kernels.clone(),
                sizes: code.sizes.clone(),
                versions: versions(back, &object.code),
                functions: match back.c_source {
                    Some(_) => Vec::new(),
                    None => aot::function_sizes(&code.output.object)?,
                },
            },
        })
    }
}

/// Checks the names and shapes of a program for all requested files.
fn check_names(signature: Signature<'_>, options: &AotOptions) -> Result<()> {
    signature.validate()?;
    options.header.check(signature)?;
    if let Some(c_header) = &options.c_header {
        c_header.check(signature)?;
    }
    if options.rust.is_some() {
        aot::check_rust_module(signature)?;
    }
    if options.test_program || options.benchmark_program {
        aot::check_c_program(signature)?;
    }
    Ok(())
}

/// Writes the files of a program and its code.
fn write(
    draft: Draft,
    mut object: CompiledObject,
    input_hashes: Vec<(String, String)>,
    session_module: Option<Vec<u8>>,
    options: &AotOptions,
    observer: &mut dyn Observer,
) -> Result<Outputs> {
    let constants = object.constants.take();
    let constants_file = constants.map(|block| ConstantsFile::new(&object.code.output.object, block));
    let layout = constants_file.as_ref().map(|file| file.layout);
    let artifact = draft.finish(&object, layout, input_hashes, &options.back)?;
    let header = aot::header(&artifact, &options.header)?;
    let c_header = options.c_header.as_ref().map(|c| aot::c_header(&artifact, c)).transpose()?;
    let rust = options.rust.as_ref().map(|rust| aot::rust_module(&artifact, rust)).transpose()?;
    let output = &object.code.output.object;
    let mut web = options.web.as_ref().map(|name| aot::web_module(&artifact, output, name)).transpose()?;
    if let Some(web) = web.as_mut().filter(|_| options.describe_web) {
        web.wasm = aot::with_metadata(std::mem::take(&mut web.wasm), &artifact)?;
    }
    let test_program = options.test_program.then(|| aot::test_program(&artifact)).transpose()?;
    let benchmark_program =
        options.benchmark_program.then(|| aot::benchmark_program(&artifact)).transpose()?;
    let metadata = MetadataOptions { gen_program_shape: options.header.gen_program_shape };
    let metadata_object = aot::metadata_object(&artifact, &metadata)?;
    let function_object = if options.describe_object && options.back.c_source.is_none() {
        aot::with_metadata(object.code.output.object, &artifact)?
    } else {
        object.code.output.object
    };
    observer.ended("aot", &|| format!("{} bytes of header", header.len()));
    let opencl = object.code.device.and_then(|device| device.opencl);
    let plans = std::iter::once(&object.code.plan).chain(object.code.variants.iter().map(|(_, plan)| plan));
    Ok(Outputs {
        function_object,
        header,
        opencl,
        c_header,
        rust,
        web,
        test_program,
        benchmark_program,
        metadata_object,
        constants_file,
        session_module,
        ignored_choices: plans.flat_map(|plan| plan.ignored_choices.iter().cloned()).collect(),
        result_names: artifact.interface.result_names(),
    })
}

/// GPUs that the object has code for.
fn device_target(devices: &[Target]) -> Option<DeviceTarget> {
    let first = devices.first()?.gpu?;
    let is_cuda = first.capability > 0;
    Some(DeviceTarget {
        driver: if is_cuda { DeviceDriver::Cuda } else { DeviceDriver::OpenCl },
        architectures: devices.iter().filter(|_| is_cuda).map(|device| device.cpu.clone()).collect(),
    })
}

/// Processors of the object's versions; empty if there is only one.
fn versions(back: &BackOptions, code: &MachineCode) -> Vec<String> {
    if code.variants.is_empty() {
        return Vec::new();
    }
    let others = code.variants.iter().map(|(target, _)| target);
    std::iter::once(&back.target).chain(others).map(Target::processor).collect()
}
