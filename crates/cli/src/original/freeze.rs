//! `tfcompile freeze`: replaces TensorFlow's `freeze_graph`.

use crate::files::outputs;
use clap::Args;
use clap::builder::BoolishValueParser;
use std::path::PathBuf;
use support::{Error, Result};
use tf::freeze::{FreezeOptions, freeze};

/// `tfcompile freeze`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct Freeze {
    /// Graph: a GraphDef file
    #[arg(long, value_name = "FILE")]
    pub(crate) input_graph: Option<PathBuf>,
    /// MetaGraphDef file instead of a graph, such as a saver's .meta file; its own saver restores
    /// the variables
    #[arg(long, value_name = "FILE")]
    pub(crate) input_meta_graph: Option<PathBuf>,
    /// Directory of a SavedModel, instead of a graph and a checkpoint
    #[arg(long, value_name = "DIR")]
    pub(crate) input_saved_model_dir: Option<PathBuf>,
    /// Tags of the graph in the SavedModel, joined by commas
    #[arg(long, value_name = "TAGS", default_value = "serve")]
    pub(crate) saved_model_tags: String,
    /// Checkpoint: its file, or the prefix of its files
    #[arg(long, value_name = "FILE")]
    pub(crate) input_checkpoint: Option<PathBuf>,
    /// SaverDef file that states how variables are stored
    #[arg(long, value_name = "FILE")]
    pub(crate) input_saver: Option<PathBuf>,
    /// Version of the checkpoint's format: 1 or 2. It is detected from the files; the flag's value
    /// is only validated
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) checkpoint_version: i64,
    /// Accepted without effect: binary input files are detected
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide_default_value = true)]
    pub(crate) input_binary: bool,
    /// Nodes to keep, with everything upstream of them: names joined by commas
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    pub(crate) output_node_names: String,
    /// Frozen graph to write
    #[arg(long, value_name = "FILE")]
    pub(crate) output_graph: Option<PathBuf>,
    /// Remove the devices from the nodes
    #[arg(long, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL")]
    pub(crate) clear_devices: bool,
    /// Nodes that initialize variables after the checkpoint is restored: names joined by commas.
    /// Ignored with --input_saver, as in the original
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    pub(crate) initializer_nodes: String,
    /// Variables to convert to constants: names joined by commas [default: all]
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    pub(crate) variable_names_whitelist: String,
    /// Variables to keep as variables: names joined by commas
    #[arg(
        long,
        alias = "variable_names_blacklist",
        value_name = "NAMES",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) variable_names_denylist: String,
    /// Accepted without effect: the saver names the op that restores
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) restore_op_name: Option<String>,
    /// Accepted without effect: --input_checkpoint names the checkpoint
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) filename_tensor_name: Option<String>,
}

/// Reads the graph and the checkpoint, and writes the frozen graph.
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

/// Returns a path unless it is empty.
fn given(path: Option<&PathBuf>) -> Option<PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty()).cloned()
}
