//! `tfcompile freeze`.

use crate::flags::Freeze;
use crate::outputs;
use std::path::PathBuf;
use support::{Error, Result};
use tf::freeze::{FreezeOptions, freeze};

/// Reads graph and checkpoint and writes the frozen graph.
pub(crate) fn run(flags: &Freeze) -> Result<()> {
    let output = given(flags.output_graph.as_ref());
    let output = output.ok_or_else(|| Error::invalid("Must specify --output_graph"))?;
    let options = FreezeOptions {
        input_graph: given(flags.input_graph.as_ref()),
        input_meta_graph: given(flags.input_meta_graph.as_ref()),
        input_saved_model_dir: given(flags.input_saved_model_dir.as_ref()),
        saved_model_tags: flags.saved_model_tags.clone(),
        input_saver: given(flags.input_saver.as_ref()),
        input_checkpoint: flags.input_checkpoint.clone().unwrap_or_default(),
        checkpoint_version: flags.checkpoint_version,
        output_node_names: flags.output_node_names.clone(),
        clear_devices: flags.clear_devices,
        initializer_nodes: flags.initializer_nodes.clone(),
        variable_names_whitelist: flags.variable_names_whitelist.clone(),
        variable_names_denylist: flags.variable_names_denylist.clone(),
    };
    let graph = compiler::guarded(|| freeze(&options))?;
    outputs::write_all(&[(&output, &graph)])
}

/// A path, if it is not empty.
fn given(path: Option<&PathBuf>) -> Option<PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty()).cloned()
}
