//! Translation of loop nests to C source: one file in C11 that needs no library besides `memcpy`
//! and `memset`.
//!
//! The text has the same interface as an object of `codegen`: the entry, whose argument is the
//! frame, and the constants. It uses the vector types of GCC and Clang, or no extension at all.
//! Where the loop-nest language defines a result that C does not (integers that wrap, counts of
//! shifts, conversions of large floats), the text computes it with what C defines.

mod constants;
mod conversion;
mod dialect;
mod expression;
mod frame;
mod function;
mod integers;
mod kernel;
mod launches;
mod masks;
mod opencl;
mod opencl_functions;
mod opencl_names;
mod prelude;
mod scalars;
mod spaces;
mod statement;
mod symbols;
mod text;
mod uses;
mod vectors;

use nest::{FrameLayout, Linkage, Program};
use prelude::Prelude;
use std::fmt::Write as _;
use support::{Error, Result, is_c_identifier};
use target::{ByteProducts, Target};

pub use constants::MAX_CONSTANTS;
pub use launches::{Blocks, write_launches};
pub use opencl::write_kernels;

/// Vectors in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Vectors {
    /// The vector types of GCC and Clang.
    #[default]
    Gcc,
    /// None: C11 without extensions, for any compiler.
    None,
    /// Those of OpenCL C, for kernels of a device ([`write_kernels`]).
    OpenCl,
}

/// Options of the text.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the function, a C identifier. `<entry_point>_constants` are the constants.
    pub entry_point: String,
    /// Vectors in the text.
    pub vectors: Vectors,
    /// Section of the constants; `None` for the compiler's choice.
    pub constants_section: Option<String>,
}

impl Options {
    /// Options without a section.
    pub fn new(entry_point: impl Into<String>, vectors: Vectors) -> Self {
        Self { entry_point: entry_point.into(), vectors, constants_section: None }
    }

    fn has_vectors(&self) -> bool {
        self.vectors != Vectors::None
    }
}

/// Contents of the constants block: its size in bytes, and offsets and contents in ascending order.
/// Gaps are zeros. An empty block becomes 64 zero bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Constants<'a> {
    /// Size in bytes.
    pub size: u64,
    /// Offsets and contents.
    pub chunks: &'a [(u64, &'a [u8])],
}

/// A program as C.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file.
    pub text: String,
    /// The name of each function of the program.
    pub symbols: Vec<String>,
    /// Bytes of the arrays on the stack of the deepest chain of calls. Compilers need more for
    /// variables that do not fit in registers.
    pub stack_bytes: u64,
}

/// Returns the target for which programs are planned that become C: instructions that C has no
/// operators for do not count.
pub fn plan_target(target: &Target, vectors: Vectors) -> Target {
    let mut target = Target { has_float_parts: false, byte_lookups: None, ..target.clone() };
    // A sum of all lanes has no operator.
    target.byte_products = match target.byte_products {
        Some(ByteProducts::Across) => None,
        Some(ByteProducts::Signs) => Some(ByteProducts::Widened),
        products => products,
    };
    target.short_products = None;
    target.has_tile_products = false;
    if vectors == Vectors::None {
        target.vector_bytes = 1;
        target.has_rounding = false;
        target.has_f16_conversion = false;
        target.has_popcnt = false;
        target.byte_products = None;
        target.has_bf16_products = false;
    }
    target
}

/// Writes a program as C.
///
/// Errors: `invalid` for a name that is not an identifier, and for functions of the user with the
/// name of another one; `unsupported` for constants that are too large for a C file and for
/// profiled programs; `internal` for a program that the verifier rejects.
pub fn write(
    program: &Program,
    target: &Target,
    options: &Options,
    constants: Constants<'_>,
) -> Result<Source> {
    let symbols = names(&[(program, options)])?.swap_remove(0);
    let text = file(&[(program, options)], target, vec![symbols.clone()], constants)?;
    let stack_bytes = symbols::stack_bytes(program, &symbols);
    Ok(Source { text, symbols, stack_bytes })
}

/// Writes several programs, which share one file and have their constants elsewhere. They have
/// different entry points, the same target, and the same kind of vectors. Functions that are the
/// same in several programs are written once. Returns the file.
///
/// Errors: those of [`write()`].
pub fn write_functions(programs: &[(&Program, &Options)], target: &Target) -> Result<String> {
    file(programs, target, names(programs)?, Constants::default())
}

/// Returns the names of the functions of each program.
fn names(programs: &[(&Program, &Options)]) -> Result<Vec<Vec<String>>> {
    let mut taken = symbols::Taken::default();
    for (program, Options { entry_point, .. }) in programs {
        if !is_c_identifier(entry_point) {
            return Err(Error::invalid(format!("'{entry_point}' is not a C identifier")));
        }
        nest::verify(program)?;
        if program.functions.values().last().map(|f| f.linkage) != Some(Linkage::Entry) {
            return Err(Error::internal("the program has no entry function"));
        }
        taken.reserve(entry_point);
    }
    let names = programs.iter();
    Ok(names.map(|(program, options)| symbols::of(program, &options.entry_point, &mut taken)).collect())
}

/// Writes the file. Each program has constants of this size and contents.
fn file(
    programs: &[(&Program, &Options)],
    target: &Target,
    symbols: Vec<Vec<String>>,
    constants: Constants<'_>,
) -> Result<String> {
    let mut prelude = Prelude::default();
    let mut bodies = String::new();
    let mut pointer_bytes = None;
    let layout = FrameLayout::new(target.pointer_bytes);
    let mut shared = symbols::Shared::default();
    for (&(program, options), mut symbols) in programs.iter().zip(symbols) {
        let mut written: Vec<Vec<bool>> = Vec::new();
        for (number, function) in program.functions.values().enumerate() {
            let symbol = symbols[number].clone();
            let printed = function::print(
                &mut prelude,
                options,
                (program, &symbols),
                &written,
                (function, &symbol),
                (&mut pointer_bytes, layout),
            );
            let (text, parameters) =
                printed.map_err(|e| e.context(format_args!("function {:?}", function.name)))?;
            written.push(parameters);
            // Later functions call the one that is written.
            if function.linkage != Linkage::Entry {
                symbols[number] = shared.symbol(&symbol, &text);
            }
            if symbols[number] == symbol {
                let _ = writeln!(bodies, "/* {} */\n{text}", text::comment(&function.name));
            }
        }
    }
    let mut out = String::new();
    let all: Vec<&Options> = programs.iter().map(|(_, options)| *options).collect();
    head(&mut out, &all, target, &prelude, pointer_bytes);
    out += &prelude.text();
    out += frame::DECLARATION;
    for options in &all {
        let entry = &options.entry_point;
        let _ = writeln!(out, "int32_t {entry}(struct tfcompile_frame *frame);");
        constants::write(&mut out, entry, options.constants_section.as_deref(), constants)?;
        out.push('\n');
    }
    out += bodies.trim_end();
    out.push('\n');
    Ok(out)
}

/// Writes the start of the file.
fn head(
    out: &mut String,
    programs: &[&Options],
    target: &Target,
    prelude: &Prelude,
    pointer_bytes: Option<i64>,
) {
    let processor = target.processor();
    let names: Vec<&str> = programs.iter().map(|options| options.entry_point.as_str()).collect();
    let what = match names[..] {
        [name] => format!("The function {name}, whose header is generated with this file."),
        _ => format!("The functions {}, whose headers are generated with this file.", names.join(", ")),
    };
    let _ = writeln!(
        out,
        "/* Generated by tfcompile, the TensorFlow graph compiler. DO NOT EDIT!\n *\n \
         * {what} C11, without a library except\n \
         * memcpy and memset; little-endian. Planned for vectors of {} bytes ({}).\n \
         * With GCC, compile with -std=c11 or -ffp-contract=off, so that products and sums are rounded\n \
         * as written. */\n",
        target.vector_bytes,
        if processor.is_empty() { target.triple.as_str() } else { &processor },
    );
    for header in ["stdbool", "stddef", "stdint", "string"] {
        let _ = writeln!(out, "#include <{header}.h>");
    }
    let has_x86 = prelude.uses_x86;
    if has_x86 {
        out.push_str("#if defined(__SSE2__)\n#include <immintrin.h>\n#endif\n");
        out.push_str("#if defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n");
    }
    out.push('\n');
    if let Some(bytes) = pointer_bytes {
        let _ = writeln!(
            out,
            "#if UINTPTR_MAX != UINT{}_MAX\n#error \"this program needs addresses of {bytes} bytes: choose the target with --target\"\n#endif",
            bytes * 8
        );
    }
    out.push_str(if programs.iter().any(|options| options.has_vectors()) {
        "#if !defined(__clang__) && (!defined(__GNUC__) || __GNUC__ < 12)\n\
         #error \"this file needs GCC 12 or Clang: generate it with --c-vectors=none for other compilers\"\n#endif\n\
         #pragma GCC diagnostic ignored \"-Wpsabi\"\n"
    } else {
        ""
    });
    out.push_str(
        "#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n#endif\n\
         #if defined(__GNUC__) || defined(__TINYC__)\n\
         #define TFC_ALIGNED(bytes) __attribute__((aligned(bytes)))\n\
         #elif defined(_MSC_VER)\n\
         #define TFC_ALIGNED(bytes) __declspec(align(bytes))\n\
         #else\n\
         #define TFC_ALIGNED(bytes) _Alignas(bytes)\n\
         #endif\n\
         #if defined(__GNUC__)\n\
         #define TFC_PREFETCH(address, locality) __builtin_prefetch((address), 0, (locality))\n\
         #define TFC_INLINE inline __attribute__((always_inline))\n\
         #define TFC_HELPER static inline __attribute__((unused))\n\
         #else\n\
         #define TFC_PREFETCH(address, locality) ((void)(address))\n\
         #define TFC_INLINE inline\n\
         #define TFC_HELPER static inline\n\
         #endif\n\n",
    );
}
