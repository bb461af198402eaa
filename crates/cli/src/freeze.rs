//! `tfcompile freeze`.

use crate::flags::Freeze;
use crate::outputs;
use std::path::PathBuf;
use support::{Error, Result};
use tf::freeze::{FreezeOptions, freeze};

/// Reads graph and checkpoint and writes the frozen graph.
pub(crate) fn run(flags: &Freeze) -> Result<()> {
    let output = required(flags.output_graph.as_ref(), "--output_graph")?;
    let options = FreezeOptions {
        input_graph: required(flags.input_graph.as_ref(), "--input_graph")?,
        input_saver: flags.input_saver.clone().filter(|path| !path.as_os_str().is_empty()),
        input_checkpoint: required(flags.input_checkpoint.as_ref(), "--input_checkpoint")?,
        checkpoint_version: flags.checkpoint_version,
        output_node_names: flags.output_node_names.clone(),
        clear_devices: flags.clear_devices,
    };
    let graph = compiler::guarded(|| freeze(&options))?;
    outputs::write_all(&[(&output, &graph)])
}

fn required(path: Option<&PathBuf>, flag: &str) -> Result<PathBuf> {
    let path = path.filter(|path| !path.as_os_str().is_empty());
    path.cloned().ok_or_else(|| Error::invalid(format!("Must specify {flag}")))
}
