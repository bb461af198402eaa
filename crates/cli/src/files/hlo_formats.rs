//! File formats of HLO modules.

use clap::ValueEnum;
use compiler::Stage;
use hlo::Module;
use shape::Literal;
use stablehlo::{Version, WriteOptions};
use support::Result;

/// File format of an HLO module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Format {
    /// HLO text, which XLA's parser accepts
    Text,
    /// Serialized xla.HloModuleProto
    Proto,
    /// Serialized xla.HloSnapshot: the module and, with --feed, the arguments to replay it with
    Snapshot,
    /// StableHLO as MLIR text
    Stablehlo,
    /// Graph for Graphviz
    Dot,
    /// HTML page that shows the graph
    Html,
}

impl Format {
    /// True for binary formats.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Proto | Self::Snapshot)
    }

    /// File extension, without the leading dot.
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

/// Stage of compilation at which a module is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StageName {
    /// Imported, before any pass
    Import,
    /// Simplified and fused, as the code is generated
    Optimized,
    /// Optimized, and in the order of execution
    Scheduled,
}

impl StageName {
    /// The compiler's stage of this name.
    pub(crate) fn stage(self) -> Stage {
        match self {
            Self::Import => Stage::Import,
            Self::Optimized => Stage::Optimized,
            Self::Scheduled => Stage::Scheduled,
        }
    }
}

/// Data that goes into a file together with a module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// True if the instructions are in execution order.
    pub(crate) is_scheduled: bool,
    /// Arguments of a snapshot.
    pub(crate) arguments: Vec<Literal>,
    /// Names of the results, for formats that hold them.
    pub(crate) result_names: Vec<String>,
    /// Version of StableHLO to write.
    pub(crate) stablehlo_version: Version,
}

/// Renders the module in a format.
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
