//! The forms in which a module of HLO leaves the tool.

use clap::ValueEnum;
use compiler::Stage;
use hlo::Module;
use shape::Literal;
use stablehlo::{Version, WriteOptions};
use support::Result;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Format {
    /// HLO text, which XLA's parser reads
    Text,
    /// A serialised xla.HloModuleProto
    Proto,
    /// A serialised xla.HloSnapshot: the module and, with --feed, arguments to replay it with
    Snapshot,
    /// StableHLO, as MLIR text
    Stablehlo,
    /// A graph for Graphviz
    Dot,
    /// One page that shows the graph in a browser
    Html,
}

impl Format {
    /// Whether it is no text.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Proto | Self::Snapshot)
    }

    /// What a file of it ends in.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Text => "hlo",
            Self::Proto => "hlo.pb",
            Self::Snapshot => "hlo_snapshot.pb",
            Self::Stablehlo => "mlir",
            Self::Dot => "dot",
            Self::Html => "html",
        }
    }
}

/// How far the module is compiled that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StageName {
    /// What the graph means: before any pass
    Import,
    /// Behind the passes: simplified and fused, as code is made of it
    Optimized,
    /// The same in the order in which the code runs it
    Scheduled,
}

impl StageName {
    /// The compiler's word.
    pub(crate) fn stage(self) -> Stage {
        match self {
            Self::Import => Stage::Import,
            Self::Optimized => Stage::Optimized,
            Self::Scheduled => Stage::Scheduled,
        }
    }
}

/// What goes with a module into a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Whether the instructions stand in the order in which they run.
    pub(crate) is_scheduled: bool,
    /// The arguments of a snapshot.
    pub(crate) arguments: Vec<Literal>,
    /// The names of the results, where the form has a place for them.
    pub(crate) result_names: Vec<String>,
    /// The version of StableHLO.
    pub(crate) stablehlo_version: Version,
}

/// The module in a form.
pub(crate) fn render(module: &Module, format: Format, with: &Surroundings) -> Result<Vec<u8>> {
    let module = &*compiler::portable(module);
    Ok(match format {
        Format::Text => hlo::text::text_for_xla(module)?.into_bytes(),
        Format::Proto if with.is_scheduled => hlo::proto::to_scheduled_hlo_module_proto_bytes(module)?,
        Format::Proto => hlo::proto::to_hlo_module_proto_bytes(module)?,
        Format::Snapshot => hlo::proto::to_hlo_snapshot_bytes_with(module, &with.arguments)?,
        Format::Stablehlo => {
            let options =
                WriteOptions { version: with.stablehlo_version, result_names: with.result_names.clone() };
            stablehlo::write(module, &options)?.into_bytes()
        }
        Format::Dot => picture::dot(module).into_bytes(),
        Format::Html => picture::html(module).into_bytes(),
    })
}
