//! Kinds of files that a build generates from a model.

use crate::files::hlo_formats::Format;
use clap::ValueEnum;

/// Kind of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Kind {
    /// Object file with code and constants
    Obj,
    /// C source of the program for any C compiler, in place of an object file
    C,
    /// Kernels in OpenCL C, and a C header with their launches, for --target=opencl:c
    #[value(name = "opencl")]
    OpenCl,
    /// C++ header, with the headers that it includes
    Header,
    /// C header for the same code
    CHeader,
    /// Rust module for the same code, for crates that depend on tfcompile-runtime; no_std with
    /// --freestanding
    Rust,
    /// Module for browsers, Node, and Deno: WebAssembly, the JavaScript that loads it, and
    /// declarations for TypeScript
    Wasm,
    /// Static library that contains the object
    Archive,
    /// Shared library, linked by the system's linker
    Shared,
    /// Test program in C that runs the code on zeros and on random data, and checks that results
    /// depend only on the arguments
    Test,
    /// Benchmark program in C that measures the time of a run
    Benchmark,
    /// Names and shapes for the class's Lookup*Index() and ProgramShape(), and an object file with
    /// the shapes as a serialized xla.ProgramShapeProto
    Metadata,
    /// HLO before optimization, as an xla.HloSnapshot
    SessionModule,
    /// HLO text, which XLA's parser accepts
    HloText,
    /// HLO as a serialized xla.HloModuleProto
    HloProto,
    /// StableHLO as MLIR text
    Stablehlo,
    /// Graph of the HLO for Graphviz
    Dot,
    /// HTML page that shows the graph of the HLO
    Html,
    /// LLVM IR
    Llvm,
    /// Assembly
    Asm,
    /// Launches of kernels in OpenCL C
    #[value(skip)]
    Launches,
    /// JavaScript module
    #[value(skip)]
    JavaScript,
    /// Declarations for TypeScript
    #[value(skip)]
    Declarations,
    /// Constants that the program loads
    #[value(skip)]
    Constants,
    /// Empty object file, for build files that expect constants in one
    #[value(skip)]
    EmptyObject,
}

impl Kind {
    /// Format of the HLO in the file; `None` for files that are not HLO.
    pub(crate) fn format(self) -> Option<Format> {
        match self {
            Self::HloText => Some(Format::Text),
            Self::HloProto => Some(Format::Proto),
            Self::Stablehlo => Some(Format::Stablehlo),
            Self::Dot => Some(Format::Dot),
            Self::Html => Some(Format::Html),
            _ => None,
        }
    }
}
