//! The kinds of files that are made of a model.

use crate::files::hlo_formats::Format;
use clap::ValueEnum;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Kind {
    /// The object file: code and constants
    Obj,
    /// The C++ header, with the headers that it includes
    Header,
    /// A C header over the same code
    CHeader,
    /// A Rust module over the same code, for crates that depend on tfcompile-runtime; no_std with --freestanding
    Rust,
    /// A static archive of the object
    Archive,
    /// A shared library, made by the system's linker
    Shared,
    /// A program in C that runs the code on zeros and on random data and checks that the results depend on nothing else
    Test,
    /// A program in C that measures how long a run takes
    Benchmark,
    /// Names and shapes for the class's Lookup*Index() and ProgramShape(), and an object with the latter as a
    /// serialised xla.ProgramShapeProto
    Metadata,
    /// The HLO before optimisation, as an xla.HloSnapshot
    SessionModule,
    /// HLO text, which XLA's parser reads
    HloText,
    /// HLO as an xla.HloModuleProto
    HloProto,
    /// StableHLO, as MLIR text
    Stablehlo,
    /// The graph of the HLO for Graphviz
    Dot,
    /// One page that shows the graph in a browser
    Html,
    /// LLVM's IR
    Llvm,
    /// Assembly
    Asm,
    /// Constants that the program loads
    #[value(skip)]
    Constants,
    /// An object without contents, for build files that expect constants in one
    #[value(skip)]
    EmptyObject,
}

impl Kind {
    /// The form of HLO that it is.
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
