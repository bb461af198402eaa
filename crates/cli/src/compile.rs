//! Compiling a graph: from flags to files.

use crate::dump::{Dumper, Watch};
use crate::flags::Compile;
use crate::outputs;
use crate::report::Report;
use crate::xla_flags::XlaFlags;
use aot::HeaderOptions;
use bytes::Bytes;
use compiler::{AotOptions, BackOptions, Input, Observer as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use target::Target;
use tf::InferOptions;
use tf::model::Model;
use tf::proto::Config;

/// Runs the compiler and writes what it made.
pub(crate) fn run(flags: &Compile, xla: &XlaFlags) -> Result<()> {
    xla.warn();
    check_flags(flags)?;
    let file = config_file(flags)?;
    if let Some((_, config)) = &file {
        let fetch_nodes = tf::fetch_nodes(config)?;
        if flags.dump_fetch_nodes {
            return outputs::print(&fetch_nodes.join(","));
        }
    }
    let path = given(flags.graph.as_ref()).ok_or_else(|| {
        Error::invalid(match file {
            Some(_) => "Must specify --graph: a GraphDef file, or a SavedModel",
            None => "Must specify --config: a file that names feeds and fetches; or --graph alone, to have them inferred",
        })
    })?;
    let mut report = Report::new(if flags.verbose {
        &["import", "fusion", "plan", "regions", "buffers", "codegen"]
    } else {
        &[]
    });
    let stated = file.as_ref().map(|(_, config)| config.clone());
    let options = flags.choice.options(stated, flags.inference.options()?)?;
    let model = compiler::guarded(|| tf::model::load(path, &options))?;
    let (config, bytes) = match file {
        Some((bytes, config)) => (config, Some(bytes)),
        None => (inferred(&model, &options.infer)?, None),
    };
    if flags.dump_fetch_nodes {
        return outputs::print(&tf::fetch_nodes(&config)?.join(","));
    }
    let loop_bounds = crate::model::loop_bounds(&flags.loop_bound)?;
    let input = Input::of_model(model, config, bytes).with_loop_bounds(loop_bounds);
    report.ended("read", &String::new);
    let class = flags.cpp_class.as_deref().filter(|class| !class.is_empty());
    let class = class.ok_or_else(|| {
        Error::invalid(
            "Must specify --cpp_class: the class that the header defines, such as mynamespace::MyComputation",
        )
    })?;
    let back = xla.options(BackOptions {
        plan: flags.tuning.options(flags.numerics.options())?,
        ..BackOptions::new(target(flags)?, &flags.entry_point)
    });
    let header = HeaderOptions {
        gen_name_to_index: flags.gen_name_to_index,
        gen_program_shape: flags.gen_program_shape,
        ..HeaderOptions::default()
    };
    let session_module = flags.out_session_module.is_some();
    let mut options = AotOptions {
        header,
        session_module,
        test_program: flags.out_test.is_some(),
        benchmark_program: flags.out_benchmark.is_some(),
        ..AotOptions::new(class, back)
    };
    let tuning = flags.autotune.measure(&input, &options.back, &mut |_| ())?;
    if let Some(tuning) = &tuning {
        options.back.plan.choices = tuning.choices.clone();
    }
    let mut dumper = Dumper::new(xla);
    let made =
        compiler::guarded(|| compiler::build(input, &options, &mut Watch::new(&mut report, &mut dumper)))?;
    dumper.finish()?;
    if let Some(note) = crate::tuning::ignored(&made.ignored_choices) {
        let _ = writeln!(std::io::stderr(), "note: {note}");
    }
    let mut files: Vec<(&Path, &[u8])> = vec![
        (&flags.out_function_object, &made.function_object),
        (&flags.out_header, made.header.as_bytes()),
        (&flags.out_metadata_object, &made.metadata_object),
    ];
    if let (Some(path), Some(snapshot)) = (&flags.out_session_module, &made.session_module) {
        files.push((path, snapshot));
    }
    for (path, program) in
        [(&flags.out_test, &made.test_program), (&flags.out_benchmark, &made.benchmark_program)]
    {
        if let (Some(path), Some(program)) = (path, program) {
            files.push((path, program.as_bytes()));
        }
    }
    let table = tuning.as_ref().map(crate::tuning::Tuning::table).transpose()?;
    if let (Some(tuning), Some(table)) = (&tuning, &table) {
        files.push((&tuning.path, table.as_bytes()));
    }
    let empty = match &flags.out_constant_buffers_object {
        Some(_) => aot::empty_object(options.back.target.triple.as_str())?,
        None => Vec::new(),
    };
    if let Some(path) = &flags.out_constant_buffers_object {
        files.push((path, &empty));
    }
    outputs::write_all(&files)?;
    if flags.verbose {
        report.print();
    }
    Ok(())
}

/// Flags of the original whose values this tool cannot honour.
fn check_flags(flags: &Compile) -> Result<()> {
    if flags.experimental_quantize {
        return Err(Error::unsupported(
            "--experimental_quantize calls a hook that is no part of tfcompile; leave it out",
        ));
    }
    if flags.sanitize_dataflow {
        return Err(Error::unsupported("--sanitize_dataflow: no code is instrumented here; leave it out"));
    }
    let known = ["", "None", "Bridge", "HloLowering"];
    match flags.mlir_components.split(',').find(|name| !known.contains(name)) {
        Some(name) => Err(Error::invalid(format!(
            "Unknown mlir_component {name}: None, Bridge and HloLowering are accepted"
        ))),
        None => Ok(()),
    }
}

/// The config that a flag names, and its file.
fn config_file(flags: &Compile) -> Result<Option<(Bytes, Config)>> {
    let Some(path) = given(flags.config.as_ref()) else { return Ok(None) };
    let file = tf::source::read_bytes(path)?;
    compiler::guarded(|| {
        let config = tf::source::parse_config(file.clone(), &path.display().to_string())?;
        Ok(Some((file, config)))
    })
}

/// The config of a model that comes without one. What the user may want to know is printed to standard error.
fn inferred(model: &Model, options: &InferOptions) -> Result<Config> {
    let inferred = compiler::guarded(|| model.infer(options))?;
    if !inferred.problems.is_empty() {
        return Err(Error::invalid(format!(
            "Must specify --config: {}",
            crate::infer::not_inferred(&model.name, &inferred).message()
        )));
    }
    for note in &inferred.notes {
        let _ = writeln!(std::io::stderr(), "note: {note}");
    }
    Ok(inferred.config)
}

fn given(path: Option<&PathBuf>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty()).map(PathBuf::as_path)
}

fn target(flags: &Compile) -> Result<Target> {
    if flags.target_cpu == "native" {
        let (cpu, host_features) = codegen::host_target();
        let features = match flags.target_features.as_str() {
            "" => host_features,
            more => format!("{host_features},{more}"),
        };
        return Target::new(&flags.target_triple, &cpu, &features);
    }
    Target::new(&flags.target_triple, &flags.target_cpu, &flags.target_features)
}
