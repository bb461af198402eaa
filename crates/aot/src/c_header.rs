//! The plain C header: functions over one block of memory that the caller provides, for C99 and
//! later and for C++.
//!
//! The header includes only `<stddef.h>` and `<stdint.h>` and calls only the object's entry, so
//! freestanding programs can use it too. All its names begin with a prefix that the caller chooses.

mod constants;
mod device;
mod functions;
mod interface;
mod sizes;

use crate::artifact::{Artifact, Signature};
use crate::cpp_name::is_identifier;
use crate::cpp_type::c_type;
use crate::header::{ALIGNMENT, Arena, Constants, CppNames, Text, cpp_names, embed_one};
use crate::quantized::{self, Quantized};
use crate::sizes::{Size, TrueSizes, shape_text};
use hlo::Interface;
use std::collections::BTreeSet;
use support::{Error, Result};

/// Options of the C header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CHeaderOptions {
    /// Prefix of all names; macros use it in capitals. `None` stands for the entry point.
    pub prefix: Option<String>,
}

impl CHeaderOptions {
    /// Checks the names of a valid signature and the prefix. Needs no code. Fails as [`c_header`]
    /// does.
    pub fn check(&self, signature: Signature<'_>) -> Result<()> {
        let _ = cpp_names(signature.interface)?;
        let prefix = self.prefix(signature.entry_point);
        if !is_identifier(prefix) {
            return Err(Error::invalid(format!(
                "prefix '{prefix}' is not a C identifier, but all names of the C header begin with it"
            )));
        }
        Arena::check(signature.interface, state_bytes(signature.interface))
    }

    fn prefix<'a>(&'a self, entry_point: &'a str) -> &'a str {
        self.prefix.as_deref().unwrap_or(entry_point)
    }
}

/// Inputs of all parts of the header.
pub(crate) struct Source<'a> {
    artifact: &'a Artifact,
    /// Prefix of functions and types.
    prefix: &'a str,
    /// Prefix of macros.
    capitals: String,
    /// All arguments but the sizes.
    arguments: Vec<Buffer<'a>>,
    results: Vec<Buffer<'a>>,
    sizes: Vec<Size>,
    arena: Arena,
}

/// A buffer as C sees it.
struct Buffer<'a> {
    /// Name of the struct member and middle part of macro names: `arg_x`, `arg0`, `var_w`,
    /// `result_y`.
    stem: String,
    /// Position among the arguments or results.
    index: usize,
    shape: &'a shape::ArrayShape,
    access: Access,
    quantized: Option<Quantized>,
    /// Expressions for its sizes, if they change from run to run.
    true_sizes: Option<TrueSizes>,
}

/// Writers of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Only the caller writes, so the buffer may be constant memory of the caller.
    Argument,
    /// Both the caller and the computation write.
    Variable,
    /// Only the computation writes.
    Result,
}

/// Returns the C header of an artifact, as contents of a file.
///
/// Fails as [`header`](crate::header()) does, and if the prefix is not an identifier.
pub fn c_header(artifact: &Artifact, options: &CHeaderOptions) -> Result<String> {
    artifact.validate()?;
    options.check(artifact.signature())?;
    let names = cpp_names(&artifact.interface)?;
    let prefix = options.prefix(&artifact.entry_point);
    let source = Source {
        artifact,
        prefix,
        capitals: prefix.to_ascii_uppercase(),
        arguments: arguments(artifact, &names, prefix),
        results: results(artifact, &names),
        sizes: names.sizes,
        arena: Arena::new(artifact, state_bytes(&artifact.interface) + device::state_bytes(artifact))?,
    };
    let mut out = Text::new();
    begin(&mut out, &source)?;
    interface::constants(&mut out, &source);
    interface::types(&mut out, &source);
    functions::functions(&mut out, &source);
    device::functions(&mut out, &source);
    end(&mut out, artifact);
    Ok(out.into_string())
}

fn arguments<'a>(artifact: &'a Artifact, names: &CppNames, prefix: &str) -> Vec<Buffer<'a>> {
    let sizes = &names.sizes;
    let size = |number: usize| {
        let size = sizes.iter().find(|size| size.argument == number);
        format!("{prefix}_{}(state)", size.expect("a size for each named dimension").name)
    };
    let names =
        names.feeds.iter().map(|name| ("arg", name)).chain(names.variables.iter().map(|name| ("var", name)));
    let all = artifact.interface.arguments().iter().zip(names).enumerate();
    let arrays = all.filter(|(_, (argument, _))| argument.range.is_none());
    arrays
        .map(|(index, (argument, (kind, name)))| Buffer {
            stem: stem(kind, index, name.as_deref()),
            index,
            shape: &argument.shape,
            access: match artifact.interface.new_value(index) {
                Some(_) => Access::Variable,
                None => Access::Argument,
            },
            quantized: Quantized::new(&argument.shape, argument.quantization),
            true_sizes: TrueSizes::of_argument(argument, size),
        })
        .collect()
}

fn results<'a>(artifact: &'a Artifact, names: &CppNames) -> Vec<Buffer<'a>> {
    let all = artifact.interface.fetches().iter().zip(&names.fetches).enumerate();
    all.map(|(index, (result, name))| Buffer {
        stem: stem("result", index, name.as_deref()),
        index,
        shape: &result.shape,
        access: Access::Result,
        quantized: Quantized::new(&result.shape, result.quantization),
        true_sizes: (!result.shape.is_static()).then(|| {
            let indices = result.size_indices();
            let size = |index| format!("state->dynamic_sizes[{index}]");
            TrueSizes::new(&result.shape, |d| indices[d].map(size))
        }),
    })
    .collect()
}

/// Returns the name stem of a buffer, which equals the name of its accessor in the C++ header.
pub(crate) fn stem(kind: &str, index: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{kind}_{name}"),
        None => format!("{kind}{index}"),
    }
}

/// Upper bound of the state's size on any machine: the frame, the pointer tables, and the caller's
/// pointer.
fn state_bytes(interface: &Interface) -> u64 {
    const FRAME: u64 = 112;
    let pointers = interface.arguments().len().max(1) + interface.results().len().max(1) + 1;
    let named = interface.sizes().count();
    FRAME + 8 * (pointers + interface.size_count() + named) as u64
}

fn guard(artifact: &Artifact) -> String {
    format!("TFCOMPILE_GENERATED_C_{}_H_", artifact.entry_point)
}

fn begin(out: &mut Text, source: &Source<'_>) -> Result<()> {
    let (guard, prefix, capitals) = (guard(source.artifact), source.prefix, &source.capitals);
    let interface = &source.artifact.interface;
    let argument = |b: &Buffer<'_>| (b.index, shape_text(interface, &interface.arguments()[b.index]));
    let arrays = source.arguments.iter().map(|b| (argument(b), &b.stem));
    let mut parameters: Vec<(usize, String)> =
        arrays.map(|((index, shape), stem)| (index, format!("{stem}: {shape}"))).collect();
    parameters.extend(source.sizes.iter().map(|s| (s.argument, format!("{}: {}", s.name, s.range))));
    parameters.sort_unstable();
    let parameters: Vec<String> = parameters.into_iter().map(|(_, text)| text).collect();
    let results: Vec<String> = source.results.iter().map(|b| format!("{}: {}", b.stem, b.shape)).collect();
    for line in [
        "Generated by tfcompile, the TensorFlow graph compiler.  DO NOT EDIT!",
        "",
        &format!(
            "A compiled graph for C99 and C++. Link the object file generated with this header. {}",
            device::about(source.artifact)
        ),
        "",
        &format!("  static unsigned char memory[{capitals}_ARENA_BYTES];"),
        &format!("  {prefix}_state* state = {prefix}_init(memory);"),
        &format!("  // ... write the arguments at {prefix}_arg...(state),"),
        &format!("  // or pass your own memory to {prefix}_set_arg..."),
        &format!("  if ({prefix}_run(state) != 0) {{ /* {prefix}_error(state) says why */ }}"),
        &format!("  // ... read the results at {prefix}_result...(state)"),
        "",
        &format!(
            "All buffers are row-major. Use a state on one thread at a time. {}",
            device::about_memory(source)
        ),
        "",
    ] {
        out.paragraph(line);
    }
    out.signature(&parameters, &results);
    out.line("// clang-format off");
    out.blank();
    out.line(&format!("#ifndef {guard}"));
    out.line(&format!("#define {guard}"));
    out.blank();
    out.line("#include <stddef.h>");
    out.line("#include <stdint.h>");
    out.blank();
    let mut emitted_paths = BTreeSet::new();
    embed_one(out, "tfcompile/frame.h", &mut emitted_paths)?;
    if source.artifact.constants_file.is_some() {
        embed_one(out, "tfcompile/constants_format.h", &mut emitted_paths)?;
    }
    if source.artifact.device.is_some() {
        embed_one(out, "tfcompile/device_state.h", &mut emitted_paths)?;
    }
    if quantized::converts(&source.artifact.interface) {
        embed_one(out, quantized::HEADER, &mut emitted_paths)?;
    }
    if source.has_complex() {
        complex(out);
    }
    out.line("#ifdef __cplusplus");
    out.line("extern \"C\" {");
    out.line("#endif");
    out.blank();
    let entry = &source.artifact.entry_point;
    out.comment("Defined in the object file. Only the functions below use them.");
    out.line(&format!("int32_t {entry}(struct tfcompile_frame* frame);"));
    match Constants::of(source.artifact) {
        Constants::Near => out.line(&format!("extern const unsigned char {entry}_constants[];")),
        Constants::Far => out.line(&format!("extern const void* const {entry}_constants_pointer;")),
        Constants::File => {}
    }
    if source.artifact.device.is_some() {
        out.line(&format!("extern const unsigned char {entry}_device[];"));
    }
    out.blank();
    Ok(())
}

fn end(out: &mut Text, artifact: &Artifact) {
    out.line("#ifdef __cplusplus");
    out.line("}  // extern \"C\"");
    out.line("#endif");
    out.blank();
    out.line(&format!("#endif  // {}", guard(artifact)));
    out.line("// clang-format on");
}

/// Defines C99 types for complex numbers. Every C header repeats them.
fn complex(out: &mut Text) {
    out.line("#ifndef TFCOMPILE_C_COMPLEX_");
    out.line("#define TFCOMPILE_C_COMPLEX_");
    out.comment(
        "Interleaved like C's float complex and double complex; pointers to those may point to these.",
    );
    out.line("typedef struct tfcompile_complex64 { float real; float imag; } tfcompile_complex64;");
    out.line("typedef struct tfcompile_complex128 { double real; double imag; } tfcompile_complex128;");
    out.line("#endif");
    out.blank();
}

impl Source<'_> {
    /// Size of the block, with room for aligning its start.
    fn arena_bytes(&self) -> u64 {
        self.arena.size + ALIGNMENT
    }

    fn has_complex(&self) -> bool {
        self.arguments.iter().chain(&self.results).any(|buffer| buffer.shape.element_type.is_complex())
    }
}

impl Buffer<'_> {
    /// Returns the C type of a pointer to the buffer's elements.
    fn pointer(&self, constant: bool) -> String {
        let element = c_type(self.shape.element_type);
        if constant { format!("const {element}*") } else { format!("{element}*") }
    }

    /// Returns the C type of the pointer that the caller passes or receives.
    fn callers_pointer(&self) -> String {
        self.pointer(self.access != Access::Variable)
    }
}
