//! `tfcompile xla-extract`: extracts the XLA program of a graph for another compiler, as the
//! extraction tools of accelerators' compilers did.

use crate::args::parse::loop_bounds;
use crate::args::xla_flags::XlaFlags;
use crate::files::outputs;
use crate::report::dump::{Dumper, Watch};
use crate::report::stage_times::StageTimes;
use clap::Args;
use compiler::Input;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use tf::InferOptions;
use tf::model::{LoadOptions, VariablesToFeed};

/// `tfcompile xla-extract`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct XlaExtract {
    /// Graph: a GraphDef file, binary or text
    #[arg(long, value_name = "FILE")]
    in_graph: Option<PathBuf>,
    /// File to write: an xla.HloModuleProto as text, binary if the name ends in .pb, or HLO text if
    /// it ends in .txt or .hlo
    #[arg(long, value_name = "FILE", default_value = "xla_module.pbtxt")]
    out_graph: PathBuf,
    /// Outputs of nodes to extract, separated by spaces or commas: "loss:0 train"
    #[arg(long, value_name = "NODES", default_value = "", hide_default_value = true)]
    target_node: String,
    /// Upper bound on the iterations of a loop that has no other bound, by the name of its node or
    /// of its scope. Can be repeated
    #[arg(long, alias = "loop-bound", value_name = "NAME=N")]
    loop_bound: Vec<String>,
    /// Sizes that the graph leaves open.
    #[command(flatten)]
    inference: ShapeArgs,
}

/// Flags for sizes that the graph leaves open.
#[derive(Args, Clone, Debug, Default)]
struct ShapeArgs {
    /// Shape of a feed that the graph leaves open, such as x=1,224,224,3. Can be repeated
    #[arg(long, value_name = "NODE=SIZES")]
    shape: Vec<String>,
    /// Size that the graph leaves open: batch=16 for the leading dimension of every feed, x.1=100
    /// for dimension 1 of feed x. Can be repeated
    #[arg(long, value_name = "NAME=N")]
    dim: Vec<String>,
}

/// Imports everything upstream of the nodes with variables as parameters, simplifies it, and writes
/// the module.
pub(crate) fn run(arguments: &XlaExtract, xla: &XlaFlags) -> Result<()> {
    xla.warn();
    let graph = arguments.in_graph.as_ref().filter(|path| !path.as_os_str().is_empty());
    let graph =
        graph.ok_or_else(|| Error::invalid("in_graph graph can't be empty: name it with --in_graph=FILE"))?;
    let words = arguments.target_node.split([' ', ',', '\t', '\n']).filter(|word| !word.is_empty());
    let fetch: Vec<String> = words.map(str::to_owned).collect();
    if fetch.is_empty() {
        return Err(Error::invalid(
            "target_node can't be empty: name the outputs to extract with --target_node=\"a:0 b:0\"",
        ));
    }
    let shapes = &arguments.inference;
    let infer = crate::args::inference::InferArgs {
        fetch,
        shape: shapes.shape.clone(),
        dim: shapes.dim.clone(),
        ..Default::default()
    }
    .fixed_options("xla-extract")?;
    let module = compiler::guarded(|| extract(graph, arguments, infer, xla))?;
    let extension = arguments.out_graph.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let bytes = match extension {
        "pb" => hlo::proto::to_hlo_module_proto_bytes(&module)?,
        "txt" | "hlo" => hlo::text::text_for_xla(&module)?.into_bytes(),
        _ => hlo::proto::to_hlo_module_proto_text(&module)?.into_bytes(),
    };
    outputs::write_all(&[(&arguments.out_graph, &bytes)])
}

fn extract(path: &Path, arguments: &XlaExtract, infer: InferOptions, xla: &XlaFlags) -> Result<hlo::Module> {
    // Variables stay parameters, because the accelerator loads the weights.
    let options = LoadOptions { variables_to_feed: VariablesToFeed::All, infer, ..LoadOptions::default() };
    let model = compiler::load(path, &options)?;
    let inferred = model.infer()?;
    if !inferred.problems.is_empty() {
        return Err(crate::program::model::not_inferred(&model.name, &inferred));
    }
    let input =
        Input::of_model(model, inferred.config, None).with_loop_bounds(loop_bounds(&arguments.loop_bound)?);
    let mut dumper = Dumper::new(xla);
    let mut report = StageTimes::new(&[]);
    let mut module = input.source.import_whole(&mut Watch::new(&mut report, &mut dumper))?.module;
    compiler::extraction_pipeline().run(&mut module, &xla.disabled_passes, |_, _| ())?;
    dumper.finish()?;
    Ok(module)
}
