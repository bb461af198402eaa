//! `tfcompile config`: prints the config of a model, given or inferred.

use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::files::outputs;
use crate::program::model::read;
use crate::program::module_file;
use crate::report::dump::Dumper;
use crate::report::progress::Progress;
use compiler::Source;
use support::Result;
use terminal::printable;
use tf::proto::{Config, GraphDef};

/// Prints the config of a model, given or inferred, in the text format of protocol buffers.
pub(crate) fn run(arguments: &ModelArgs) -> Result<()> {
    let mut progress = Progress::new(arguments, "config");
    let read = read(arguments, &[], &mut progress, &mut Dumper::new(&XlaFlags::default()))?;
    drop(progress);
    match &read.input.source {
        Source::Graph { graph, config, .. } => {
            outputs::print(&(tf::source::config_to_text(config) + &quantization(graph, config)))
        }
        Source::Hlo(_) => Err(module_file::needs_no_config(&arguments.model)),
    }
}

/// Comments about the arrays that are quantized; empty if there are none.
fn quantization(graph: &GraphDef, config: &Config) -> String {
    let lines: Vec<String> = tf::config_quantization(graph, config)
        .into_iter()
        .map(|(kind, name, quantization)| format!("# {kind} {}: {quantization}\n", printable(&name)))
        .collect();
    match lines.as_slice() {
        [] => String::new(),
        lines => format!("# real = scale * (stored - zero point)\n{}", lines.concat()),
    }
}
