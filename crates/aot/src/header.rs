//! The C++ header: one class over the object's entry function.
//!
//! The text depends only on the artifact. It includes the standard library and one header of
//! `runtime/include`. All our names are fully qualified, so the class compiles in any namespace
//! that the user chooses.

mod accessors;
mod arena;
mod constants;
mod device;
mod freestanding;
mod functions;
mod sizes;
mod standalone;
mod tables;
mod text;
mod variables;

use crate::artifact::{Artifact, Signature};
use crate::mangle::{self, Group, Named};
use crate::quantized;
use crate::sizes::{Size, shape_text, sizes};
use hlo::{Argument, Interface, Output, Role};
use shape::{ArrayShape, Quantization};
use support::{Error, Result};

pub(crate) use arena::{ALIGNMENT, Arena, literal};
pub(crate) use constants::layout_table;
pub(crate) use device::not_freestanding;
pub use functions::{FunctionClass, functions_header};
pub(crate) use standalone::embed_one;
pub(crate) use text::{Text, quoted};

/// Fully qualified base class. A program that also includes TensorFlow has another
/// `XlaCompiledCpuFunction`.
const BASE: &str = "::tensorflow::tfcompile_v1::XlaCompiledCpuFunction";

/// Base class of classes whose constants are in a file; derives from `BASE`.
const FILE_BASE: &str = "::tensorflow::tfcompile_v1::ConstantsFileFunction";

/// Base class of the classes of programs that run on a GPU; derives from its parameter.
const DEVICE_BASE: &str = "::tensorflow::tfcompile_v1::DeviceFunction";

/// Version of the runtime headers (`TFCOMPILE_RUNTIME_VERSION`) that the generated headers require.
/// Later ones serve them, too, until `TFCOMPILE_OLDEST_RUNTIME_VERSION` says otherwise.
const RUNTIME_VERSION: u32 = 2;

/// Optional parts of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderOptions {
    /// `--gen_name_to_index`: name tables for `LookupArgIndex` and similar methods.
    pub gen_name_to_index: bool,
    /// `--gen_program_shape`: shapes for `ProgramShape`.
    pub gen_program_shape: bool,
    /// `--standalone-header`: embeds the runtime's headers, so that the file needs no others.
    pub standalone: bool,
    /// `--freestanding`: generates a class that needs no library, allocates nothing, and contains
    /// all of its memory. Excludes names and the program shape. The header is always standalone.
    pub freestanding: bool,
}

/// C++ names of an artifact's entries without their prefixes. `None` marks entries that are
/// accessible only by position, and feeds that are sizes of named dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CppNames {
    pub(crate) feeds: Vec<Option<String>>,
    pub(crate) fetches: Vec<Option<String>>,
    pub(crate) variables: Vec<Option<String>>,
    pub(crate) sizes: Vec<Size>,
}

impl HeaderOptions {
    /// Checks the names of a valid signature and the options. Needs no code. Fails as [`header`]
    /// does.
    pub fn check(&self, signature: Signature<'_>) -> Result<()> {
        let names = cpp_names(signature.interface)?;
        sizes::check_class(signature.cpp_class.class_name(), &names.sizes)?;
        if !self.freestanding {
            return Ok(());
        }
        if self.gen_name_to_index || self.gen_program_shape {
            return Err(Error::invalid(
                "--freestanding cannot be combined with --gen_name_to_index or --gen_program_shape, which need the C++ library",
            ));
        }
        Arena::check(signature.interface, 0)
    }
}

/// Returns the C++ header of an artifact, as contents of a file.
///
/// Fails if the artifact is inconsistent, if the user gave the same name to two entries, if an
/// argument or variable has a bounded shape, or if the options exclude one another.
pub fn header(artifact: &Artifact, options: &HeaderOptions) -> Result<String> {
    artifact.validate()?;
    options.check(artifact.signature())?;
    let names = cpp_names(&artifact.interface)?;
    if options.freestanding {
        if artifact.device.is_some() {
            return Err(device::not_freestanding());
        }
        return freestanding::header(artifact, &names);
    }
    let mut out = Text::new();
    begin(&mut out, artifact);
    includes(&mut out, artifact, options)?;
    declarations(&mut out, artifact);
    open_namespaces(&mut out, artifact);
    class_comment(&mut out, artifact, &names);
    class(&mut out, artifact, options, &names);
    end(&mut out, artifact);
    Ok(out.into_string())
}

fn open_namespaces(out: &mut Text, artifact: &Artifact) {
    for namespace in artifact.cpp_class.namespaces() {
        out.line(&format!("namespace {namespace} {{"));
    }
    out.blank();
}

/// Closes the namespaces and the include guard.
fn end(out: &mut Text, artifact: &Artifact) {
    out.blank();
    for namespace in artifact.cpp_class.namespaces().iter().rev() {
        out.line(&format!("}}  // end namespace {namespace}"));
    }
    out.blank();
    out.line(&format!("#endif  // {}", guard(artifact)));
    out.line("// clang-format on");
}

/// Mangles all names. Fails on conflicts that the user must resolve.
pub(crate) fn cpp_names(interface: &Interface) -> Result<CppNames> {
    let group = |prefix, noun, settable| Group { prefix, noun, settable };
    let feeds: Vec<_> = interface.feeds().iter().map(feed_name).collect();
    let fetches: Vec<_> = interface.fetches().iter().map(fetch_name).collect();
    let variables: Vec<_> = interface.variables().iter().map(variable_name).collect();
    Ok(CppNames {
        feeds: mangle::mangle(group("arg", "feed", true), &feeds)?,
        fetches: mangle::mangle(group("result", "fetch", false), &fetches)?,
        variables: mangle::mangle(group("var", "variable", true), &variables)?,
        sizes: crate::sizes::sizes(interface),
    })
}

/// Returns the name that the user chose, if any.
fn chosen_name(name: &Option<String>) -> Option<&str> {
    name.as_deref().filter(|name| !name.is_empty())
}

fn named<'a>(
    name: &'a str,
    chosen: bool,
    shape: &ArrayShape,
    quantization: Option<Quantization>,
) -> Named<'a> {
    let parameters = accessors::parameters(shape);
    Named { name, chosen, parameters, is_quantized: quantization.is_some(), is_sized: false }
}

fn feed_name(feed: &Argument) -> Option<Named<'_>> {
    let name = chosen_name(&feed.name).filter(|_| feed.range.is_none())?;
    let is_sized = !feed.named_dimensions.is_empty();
    Some(Named { is_sized, ..named(name, true, &feed.shape, feed.quantization) })
}

fn fetch_name(fetch: &Output) -> Option<Named<'_>> {
    Some(named(chosen_name(&fetch.name)?, true, &fetch.shape, fetch.quantization))
}

/// Returns the name that the user chose for a variable, or else the name of its node.
fn variable_name(variable: &Argument) -> Option<Named<'_>> {
    let chosen = chosen_name(&variable.name);
    let name = chosen.unwrap_or(variable.id.node());
    Some(named(name, chosen.is_some(), &variable.shape, variable.quantization))
}

/// Returns the name by which programs look up a feed or variable: the config's name, or else a
/// variable's node.
pub(crate) fn lookup_name(argument: &Argument) -> &str {
    match (&argument.name, argument.role) {
        (Some(name), _) if !name.is_empty() => name,
        (_, Role::Variable) => argument.id.node(),
        (_, Role::Feed) => "",
    }
}

fn guard(artifact: &Artifact) -> String {
    format!("TFCOMPILE_GENERATED_{}_H_", artifact.entry_point)
}

/// Opens the include guard.
fn begin(out: &mut Text, artifact: &Artifact) {
    let guard = guard(artifact);
    out.comment("Generated by tfcompile, the TensorFlow graph compiler.  DO NOT EDIT!");
    out.comment("");
    out.comment("Gives typed access to a compiled graph. Link the object file generated with this header.");
    out.line("// clang-format off");
    out.blank();
    out.line(&format!("#ifndef {guard}"));
    out.line(&format!("#define {guard}"));
    out.blank();
    out.line("#include <cstddef>");
    out.line("#include <cstdint>");
    out.blank();
}

fn includes(out: &mut Text, artifact: &Artifact, options: &HeaderOptions) -> Result<()> {
    let mut runtime = vec!["tfcompile/xla_compiled_cpu_function.h"];
    if artifact.constants_file.is_some() {
        runtime.insert(0, "tfcompile/constants_file.h");
    }
    if !artifact.interface.variables().is_empty() {
        runtime.insert(0, variables::HEADER);
        runtime.sort_unstable();
    }
    if quantized::converts(&artifact.interface) {
        runtime.push(quantized::HEADER);
        runtime.sort_unstable();
    }
    if artifact.device.is_some() {
        runtime.push("tfcompile/device_function.h");
        runtime.sort_unstable();
    }
    if options.standalone {
        standalone::embed(out, &runtime)?;
    } else {
        runtime.iter().for_each(|path| out.line(&format!("#include \"{path}\"")));
        out.blank();
    }
    out.line(&format!("#if TFCOMPILE_RUNTIME_VERSION < {RUNTIME_VERSION}"));
    out.line(
        "#error \"The runtime headers in tfcompile/ are older than this header: run 'tfcompile headers' of the tfcompile that generated it\"",
    );
    out.line(&format!("#elif TFCOMPILE_OLDEST_RUNTIME_VERSION > {RUNTIME_VERSION}"));
    out.line(
        "#error \"The runtime headers in tfcompile/ no longer serve headers of this age: build the model again\"",
    );
    out.line("#endif");
    out.blank();
    Ok(())
}

/// Declares the symbols that the object defines.
fn declarations(out: &mut Text, artifact: &Artifact) {
    let entry = &artifact.entry_point;
    out.comment("Defined in the object file. Only the class below uses them.");
    out.line(&format!("extern \"C\" ::std::int32_t {entry}(::tfcompile_frame* frame);"));
    match Constants::of(artifact) {
        Constants::Near => out.line(&format!("extern \"C\" const unsigned char {entry}_constants[];")),
        Constants::Far => out.line(&format!("extern \"C\" const void* const {entry}_constants_pointer;")),
        Constants::File => {}
    }
    if artifact.device.is_some() {
        out.line(&format!("extern \"C\" const unsigned char {entry}_device[];"));
    }
    out.blank();
}

/// Access path of a program to its constants.
#[derive(Clone, Copy)]
pub(crate) enum Constants {
    /// At the symbol `<entry>_constants`.
    Near,
    /// Through the pointer at `<entry>_constants_pointer`.
    Far,
    /// In a file.
    File,
}

impl Constants {
    pub(crate) fn of(artifact: &Artifact) -> Self {
        match artifact.constants_file {
            Some(_) => Self::File,
            None if artifact.constants_pointer => Self::Far,
            None => Self::Near,
        }
    }
}

fn class_comment(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    let class = artifact.cpp_class.class_name();
    for line in [
        &format!("{class} is a compiled TensorFlow graph:"),
        "",
        &format!("  {class} computation;"),
        "  // ... write the arguments through computation.argN() or computation.argN_data()",
        "  if (!computation.Run()) { /* computation.error_msg() says why */ }",
        "  // ... read computation.resultN() or computation.resultN_data()",
        "",
        "An object owns its results and, unless the AllocMode excludes them, its arguments and variables. \
         All buffers are row-major. Use one object per thread; const methods may be called concurrently.",
        "",
        "The logical function signature is:",
    ] {
        out.paragraph(line);
    }
    signature(out, &artifact.interface, names);
    device::comment(out, artifact);
    memory_comment(out, artifact);
    names_comment(out, artifact, names);
}

/// Writes the shapes of arguments and results as a comment, and an empty comment line.
fn signature(out: &mut Text, interface: &Interface, names: &CppNames) {
    let arguments = interface.arguments().iter().enumerate();
    let argument = |(i, a)| match names.sizes.iter().find(|size| size.argument == i) {
        Some(size) => format!("{}: {}", size.name, size.range),
        None => format!("arg{i}: {}", shape_text(interface, a)),
    };
    let arguments: Vec<String> = arguments.map(argument).collect();
    let results: Vec<String> = interface.results().iter().map(|r| r.shape.to_string()).collect();
    out.signature(&arguments, &results);
    out.comment("");
}

/// Writes sizes in bytes as TensorFlow's tfcompile does; `aligned` is the sum of the sizes rounded
/// up to 64.
fn memory_comment(out: &mut Text, artifact: &Artifact) {
    let aligned = |size: u64| size.div_ceil(64).saturating_mul(64);
    let total = |sizes: &[u64]| sizes.iter().fold(0u64, |sum, &size| sum.saturating_add(size));
    let arguments: Vec<u64> = artifact.interface.arguments().iter().map(|a| a.shape.byte_size()).collect();
    let results: Vec<u64> = artifact.interface.fetches().iter().map(|r| r.shape.byte_size()).collect();
    out.comment("Memory stats:");
    for (what, sizes) in [("arg", &arguments), ("result", &results), ("temp", &vec![artifact.memory.temps])] {
        let rounded: Vec<u64> = sizes.iter().map(|&size| aligned(size)).collect();
        out.comment(&format!("  {:<26}{}", format!("{what} bytes total:"), total(sizes)));
        out.comment(&format!("  {:<26}{}", format!("{what} bytes aligned:"), total(&rounded)));
    }
    out.comment(&format!("  {:<26}{}", "scratch bytes per worker:", artifact.memory.scratch));
    out.comment(&format!("  {:<26}{}", "constant bytes:", artifact.memory.constants));
}

/// Lists the accessors whose names differ from the graph's names.
fn names_comment(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    let differing = mangled_names(artifact, names);
    if differing.is_empty() {
        return;
    }
    out.comment("");
    out.comment("Graph names that were changed to valid C++ names:");
    for (accessor, name) in differing {
        out.comment(&format!("  {accessor}() is {}", quoted(&name)));
    }
}

/// Returns the accessor and the original name of every entry whose name had to change.
pub(crate) fn mangled_names(artifact: &Artifact, names: &CppNames) -> Vec<(String, String)> {
    let feeds = artifact.interface.feeds().iter().map(lookup_name).zip(&names.feeds);
    let fetches =
        artifact.interface.fetches().iter().map(|r| r.name.as_deref().unwrap_or("")).zip(&names.fetches);
    let variables = artifact.interface.variables().iter().map(lookup_name).zip(&names.variables);
    let with_prefix = |prefix: &'static str| {
        move |(name, cpp): (&str, &Option<String>)| {
            let cpp = cpp.as_deref().filter(|cpp| *cpp != name)?;
            Some((format!("{prefix}_{cpp}"), name.to_string()))
        }
    };
    let feeds = feeds.filter_map(with_prefix("arg"));
    let sizes = names.sizes.iter().filter(|size| size.name != size.graph_name);
    feeds
        .chain(sizes.map(|size| (size.name.clone(), size.graph_name.clone())))
        .chain(fetches.filter_map(with_prefix("result")))
        .chain(variables.filter_map(with_prefix("var")))
        .collect()
}

/// Returns the base class.
fn base(artifact: &Artifact) -> String {
    let base = if artifact.constants_file.is_some() { FILE_BASE } else { BASE };
    if artifact.device.is_some() { format!("{DEVICE_BASE}<{base}>") } else { base.to_owned() }
}

fn class(out: &mut Text, artifact: &Artifact, options: &HeaderOptions, names: &CppNames) {
    let class = artifact.cpp_class.class_name();
    out.line(&format!("class {class} final : public {} {{", base(artifact)));
    out.line(" public:");
    out.indented(|out| {
        counts(out, artifact, "kArgs[index].size");
        tables::static_data(out, artifact, options, names);
        variables::method(out, artifact);
        constructors(out, artifact);
        constants::class_methods(out, artifact);
        sizes::methods(out, artifact, names);
        accessors::arguments(out, artifact, names);
        accessors::results(out, artifact, names);
        accessors::variables(out, artifact, names);
        device::accessors(out, artifact, names);
    });
    out.line(" private:");
    out.indented(|out| {
        constants::layout_hash(out, artifact);
        tables::tables(out, artifact, options, names);
    });
    out.line("};");
}

fn counts(out: &mut Text, artifact: &Artifact, size: &str) {
    out.comment("Feeds and variables.");
    out.line(&format!("static constexpr ::std::size_t kNumArgs = {};", artifact.interface.arguments().len()));
    out.comment("Fetches and written variables.");
    out.line(&format!(
        "static constexpr ::std::size_t kNumResults = {};",
        artifact.interface.results().len()
    ));
    out.line(&format!(
        "static constexpr ::std::size_t kNumVariables = {};",
        artifact.interface.variables().len()
    ));
    out.blank();
    out.comment("Size of an argument's buffer in bytes; requires index < kNumArgs.");
    if artifact.interface.arguments().is_empty() {
        out.line("static constexpr ::std::int64_t ArgSize(::std::int32_t) { return 0; }");
    } else {
        out.line("static constexpr ::std::int64_t ArgSize(::std::int32_t index) {");
        out.line(&format!("  return static_cast<::std::int64_t>({size});"));
        out.line("}");
    }
    out.blank();
}

fn constructors(out: &mut Text, artifact: &Artifact) {
    let class = artifact.cpp_class.class_name();
    out.line(&format!("{class}({BASE}::AllocMode alloc_mode ="));
    out.line(&format!("          {BASE}::AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS)"));
    let program = device::program(artifact);
    let constants = if artifact.constants_file.is_some() { "kLayoutHash, DefaultConstants(), " } else { "" };
    out.line(&format!("    : {}({program}StaticData(), {constants}alloc_mode) {{}}", base(artifact)));
    out.line(&format!("{class}(const {class}&) = delete;"));
    out.line(&format!("{class}& operator=(const {class}&) = delete;"));
    out.line(&format!("{class}({class}&&) = default;"));
    out.line(&format!("{class}& operator=({class}&&) = default;"));
    out.blank();
}
