//! `tfcompile aot-compile-cpu`: replaces `saved_model_cli aot_compile_cpu`, with its flags and
//! files.

use crate::args::inference::InferArgs;
use crate::args::model::ChoiceArgs;
use crate::args::parse::loop_bounds;
use crate::args::xla_flags::XlaFlags;
use crate::artifacts::kind::Kind;
use crate::artifacts::request::Request;
use crate::files::outputs;
use crate::files::outputs::Output;
use crate::report::dump::Dumper;
use crate::report::stage_times::StageTimes;
use aot::HeaderOptions;
use clap::Args;
use compiler::{AotOptions, BackOptions, Input};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use target::Target;
use tf::model::Model;
use tf::proto::Config;

/// `tfcompile aot-compile-cpu`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct AotCompileCpu {
    /// Directory of the SavedModel
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Prefix of the names of the files to write: PREFIX.h, PREFIX.o, PREFIX_metadata.o,
    /// PREFIX_constants.o, PREFIX_makefile.inc, and the headers in PREFIX_include/
    #[arg(long, value_name = "PREFIX")]
    output_prefix: Option<String>,
    /// Class that the C++ header defines: [[namespace::]...]Class
    #[arg(long, value_name = "CLASS")]
    cpp_class: Option<String>,
    /// Tags of the graph in the SavedModel, joined by commas [default: serve, or the only graph]
    #[arg(long, value_name = "TAGS")]
    tag_set: Option<String>,
    /// Signature of the SavedModel to compile
    #[arg(long, value_name = "KEY", default_value = "serving_default")]
    signature_def_key: String,
    /// Values of the variables: a checkpoint file, or the prefix of its files [default:
    /// DIR/variables/variables]
    #[arg(long, value_name = "PATH")]
    checkpoint_path: Option<PathBuf>,
    /// Variables that the caller owns, instead of constants: names of their nodes joined by commas,
    /// or `all` [default: the variables that the program writes]
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    variables_to_feed: String,
    /// Machine to compile for, as an LLVM triple
    #[arg(long, value_name = "TRIPLE", default_value = "x86_64-pc-linux")]
    target_triple: String,
    /// Processor to compile for, by LLVM's name
    #[arg(long, value_name = "CPU", default_value = "")]
    target_cpu: String,
    /// Accepted without effect: the caller sets the number of threads at run time
    #[arg(long, value_name = "BOOL", default_value = "False", hide_default_value = true)]
    multithreading: String,
    /// Shape of an input that the signature leaves open, such as x=1,224,224,3. Can be repeated
    #[arg(long, value_name = "NAME=SIZES")]
    shape: Vec<String>,
    /// Size that the signature leaves open: batch=16 for the leading dimension of every input,
    /// x.1=100 for dimension 1 of input x. Can be repeated
    #[arg(long, value_name = "NAME=N")]
    dim: Vec<String>,
    /// Bounds rounding errors.
    #[command(flatten)]
    numerics: crate::args::numerics::NumericsArgs,
    /// Names the tuning file.
    #[command(flatten)]
    tuning: crate::args::tuning::TuningArgs,
    /// Upper bound on the iterations of a loop that has no other bound, by the name of its node or
    /// of its scope. Can be repeated
    #[arg(long, value_name = "NAME=N")]
    loop_bound: Vec<String>,
}

/// Compiles a signature and writes the files.
pub(crate) fn run(flags: &AotCompileCpu, xla: &XlaFlags) -> Result<()> {
    let missing = |flag: &str| Error::invalid(format!("Must specify {flag}"));
    let directory = flags.dir.as_ref().ok_or_else(|| missing("--dir: the directory of the SavedModel"))?;
    let prefix = flags.output_prefix.as_deref().filter(|prefix| !prefix.is_empty());
    let prefix = prefix.ok_or_else(|| missing("--output_prefix: the prefix of the names of the files"))?;
    let class = flags.cpp_class.as_deref().filter(|class| !class.is_empty());
    let class = class.ok_or_else(|| missing("--cpp_class: the class that the header defines"))?;
    xla.warn();
    let (model, config) = read(flags, directory)?;
    let input = Input::of_model(model, config, None).with_loop_bounds(loop_bounds(&flags.loop_bound)?);
    let target = Target::new(&flags.target_triple, &flags.target_cpu, "")?;
    let back = xla.options(BackOptions {
        cache: crate::args::versions::cache(None, None)?,
        plan: flags.tuning.options(flags.numerics.options())?,
        ..BackOptions::new(target, entry_point(prefix, class))
    });
    let header = HeaderOptions { gen_name_to_index: true, ..HeaderOptions::default() };
    let options = AotOptions { header, ..AotOptions::new(class, back) };
    let kinds = vec![Kind::Obj, Kind::Header, Kind::Metadata, Kind::EmptyObject];
    let artifacts = Request::new(kinds, options).make(input, &mut StageTimes::new(&[]), Dumper::new(xla))?;
    let at = |suffix: &str| PathBuf::from(format!("{prefix}{suffix}"));
    let mut files = artifacts.outputs(|kind| {
        at(match kind {
            Kind::Header => ".h",
            Kind::Metadata => "_metadata.o",
            Kind::EmptyObject => "_constants.o",
            _ => ".o",
        })
    })?;
    files.push(Output { path: at("_makefile.inc"), parts: vec![makefile(prefix).into_bytes().into()] });
    files.extend(outputs::runtime_headers(&at("_include"), false));
    outputs::create_directories(&files)?;
    outputs::write(&files)
}

/// Reads the model, and infers the config of its signature with the names that the original
/// assigns.
fn read(flags: &AotCompileCpu, directory: &Path) -> Result<(Model, Config)> {
    if !directory.is_dir() {
        return Err(Error::invalid(format!(
            "SavedModel file does not exist at: {}/{{saved_model.pbtxt|saved_model.pb}}",
            directory.display()
        )));
    }
    let choice = ChoiceArgs {
        signature: Some(flags.signature_def_key.clone()),
        tag_set: flags.tag_set.clone(),
        checkpoint: flags.checkpoint_path.clone(),
        variables_to_feed: Some(flags.variables_to_feed.clone()),
        ..ChoiceArgs::default()
    };
    let inference = InferArgs { shape: flags.shape.clone(), dim: flags.dim.clone(), ..InferArgs::default() };
    let options = choice.options(None, inference.fixed_options("aot_compile_cpu")?)?;
    compiler::guarded(|| {
        let model = compiler::load(directory, &options)?;
        let inferred = model.infer()?;
        if !inferred.problems.is_empty() {
            return Err(Error::invalid(format!(
                "Expected fully defined input shape for signature_def '{}':\n  {}",
                flags.signature_def_key,
                inferred.problems.join("\n  ")
            )));
        }
        for note in &inferred.notes {
            let _ = writeln!(std::io::stderr(), "note: {note}");
        }
        let mut config = inferred.config;
        config.feed.iter_mut().for_each(|feed| feed.name.insert_str(0, "feed_"));
        config.fetch.iter_mut().for_each(|fetch| fetch.name.insert_str(0, "fetch_"));
        config.variable.iter_mut().for_each(|variable| variable.name.insert_str(0, "param_"));
        Ok((model, config))
    })
}

/// Symbol of the function: prefix and class, with each run of characters other than letters and
/// digits replaced by `_`.
fn entry_point(prefix: &str, class: &str) -> String {
    let mut name = String::new();
    for c in format!("__xla_{prefix}__{class}").chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    name
}

/// Makefile with variables for another makefile that includes it. It finds the files even if they
/// are moved together.
fn makefile(prefix: &str) -> String {
    let name = Path::new(prefix).file_name().map_or_else(|| prefix.into(), |name| name.to_string_lossy());
    let directory = "$(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))";
    // `MAKEFILE_LIST` ends with this file only while Make reads it, so the variables expand at
    // once.
    format!(
        "\nINC := -I{directory}/{name}_include\nLIB := -L{directory}\nCXXFLAGS := -std=c++17 -D_GLIBCXX_USE_CXX11_ABI=1\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_are_the_originals() {
        // Derived by hand from the original's rule: re.sub('[^0-9a-zA-Z]+', '_', '__xla_' + prefix
        // + '__' + class).
        assert_eq!(entry_point("/tmp/out/m", "ns::C"), "_xla_tmp_out_m_ns_C");
        assert_eq!(entry_point("m", "C"), "_xla_m_C");
    }
}
