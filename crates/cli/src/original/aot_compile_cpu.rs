//! `tfcompile aot-compile-cpu`: what `saved_model_cli aot_compile_cpu` does, with its flags, names and files.

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
    /// The directory of the SavedModel
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// What the names of the files begin with: PREFIX.h, PREFIX.o, PREFIX_metadata.o, PREFIX_constants.o,
    /// PREFIX_makefile.inc, and the headers in PREFIX_include/
    #[arg(long, value_name = "PREFIX")]
    output_prefix: Option<String>,
    /// The class that the header defines: [[namespace::]...]Class
    #[arg(long, value_name = "CLASS")]
    cpp_class: Option<String>,
    /// The tags of the graph, joined by commas [default: serve, or the only graph]
    #[arg(long, value_name = "TAGS")]
    tag_set: Option<String>,
    /// The signature to compile
    #[arg(long, value_name = "KEY", default_value = "serving_default")]
    signature_def_key: String,
    /// The values of the variables [default: DIR/variables/variables]
    #[arg(long, value_name = "PATH")]
    checkpoint_path: Option<PathBuf>,
    /// The variables that the caller holds, instead of constants: names of their nodes joined by commas, or `all`
    /// [default: those that the program writes]
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    variables_to_feed: String,
    /// The machine to compile for, as an LLVM triple
    #[arg(long, value_name = "TRIPLE", default_value = "x86_64-pc-linux")]
    target_triple: String,
    /// Its processor, by LLVM's name
    #[arg(long, value_name = "CPU", default_value = "")]
    target_cpu: String,
    /// Accepted: the caller says at run time how many threads share the work
    #[arg(long, value_name = "BOOL", default_value = "False", hide_default_value = true)]
    multithreading: String,
    /// The shape of an input that the signature leaves open, such as x=1,224,224,3. May be given several times
    #[arg(long, value_name = "NAME=SIZES")]
    shape: Vec<String>,
    /// A size that the signature leaves open: batch=16 for leading dimensions, x.1=100 for dimension 1 of input x. May be
    /// given several times
    #[arg(long, value_name = "NAME=N")]
    dim: Vec<String>,
    /// How far rounding may differ.
    #[command(flatten)]
    numerics: crate::args::numerics::NumericsArgs,
    /// What was measured before.
    #[command(flatten)]
    tuning: crate::args::tuning::TuningArgs,
    /// The most iterations of a loop that nothing else bounds, by the name of its node or its scope. May be given several
    /// times
    #[arg(long, value_name = "NAME=N")]
    loop_bound: Vec<String>,
}

/// Compiles a signature and writes the files.
pub(crate) fn run(flags: &AotCompileCpu, xla: &XlaFlags) -> Result<()> {
    let missing = |flag: &str| Error::invalid(format!("Must specify {flag}"));
    let directory = flags.dir.as_ref().ok_or_else(|| missing("--dir: the directory of a SavedModel"))?;
    let prefix = flags.output_prefix.as_deref().filter(|prefix| !prefix.is_empty());
    let prefix = prefix.ok_or_else(|| missing("--output_prefix: what the names of the files begin with"))?;
    let class = flags.cpp_class.as_deref().filter(|class| !class.is_empty());
    let class = class.ok_or_else(|| missing("--cpp_class: the class that the header defines"))?;
    xla.warn();
    let (model, config) = read(flags, directory)?;
    let input = Input::of_model(model, config, None).with_loop_bounds(loop_bounds(&flags.loop_bound)?);
    let target = Target::new(&flags.target_triple, &flags.target_cpu, "")?;
    let back = xla.options(BackOptions {
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
    files.extend(outputs::runtime_headers(&at("_include")));
    outputs::create_directories(&files)?;
    outputs::write(&files)
}

/// The model, and the config of its signature with the names that the original gives.
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
    let options = choice.options(None, inference.options()?)?;
    compiler::guarded(|| {
        let model = tf::model::load(directory, &options)?;
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

/// The symbol of the function: prefix and class, with each run of other characters than letters and digits as one `_`.
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

/// Variables for a makefile that includes this one: wherever the files are moved to together, they are found.
fn makefile(prefix: &str) -> String {
    let name = Path::new(prefix).file_name().map_or_else(|| prefix.into(), |name| name.to_string_lossy());
    let directory = "$(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))";
    // The directory is that of the file read last, so it must be found now and not where it is used.
    format!(
        "\nINC := -I{directory}/{name}_include\nLIB := -L{directory}\nCXXFLAGS := -std=c++17 -D_GLIBCXX_USE_CXX11_ABI=1\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_are_the_originals() {
        // By hand from the original's rule: re.sub('[^0-9a-zA-Z]+', '_', '__xla_' + prefix + '__' + class).
        assert_eq!(entry_point("/tmp/out/m", "ns::C"), "_xla_tmp_out_m_ns_C");
        assert_eq!(entry_point("m", "C"), "_xla_m_C");
    }
}
