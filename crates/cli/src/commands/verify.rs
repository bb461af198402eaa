//! `tfcompile verify`: compares compiled code with the evaluator.

use crate::args::feeds::FeedArgs;
use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::files::outputs;
use crate::program::arguments::Arguments;
use crate::program::in_process::{Program, compile_kernel};
use crate::report::bar::Bar;
use crate::report::text::print_json;
use clap::Args;
use compiler::{BackOptions, Executable, NoObserver, Precision, compile_module, in_process_options};
use hlo::{Origin, Output, Role};
use runner::{Fill, Inputs, PrecisionReport, Subject, VerifyOptions, VerifyReport};
use support::{Code, Coded as _, Error, Result};
use terminal::Screen;

/// `tfcompile verify`.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) feeds: FeedArgs,
    /// Seed of the random inputs
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Compare every kernel on every kind of input, and the whole program element by element,
    /// regardless of the time
    #[arg(long)]
    thorough: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Compares compiled code with the evaluator on random and edge-case inputs. Returns an error if
/// they disagree. With `--precision`, it also measures how far results move, on the given inputs.
pub(crate) fn run(arguments: &Verify, xla: &XlaFlags) -> Result<()> {
    let precision = arguments.model.plan_options()?.precision;
    let is_narrow = precision != Precision::F32;
    if !is_narrow && arguments.feeds.is_given() {
        return Err(Error::invalid(
            "--feed, --var, --variables, and --random are inputs for --precision; verify chooses its own inputs",
        )
        .coded(Code::CommandLine));
    }
    let mut inputs = None;
    let program = Program::compile(&arguments.model, xla, |signature, initial| {
        if is_narrow {
            let read = Arguments::read(&arguments.feeds, signature, initial, Some(Fill::Random));
            inputs = Some(read.coded(Code::GivenArray)?.inputs);
        }
        Ok(())
    })?
    .optimized()?;
    let executable = Executable::load(&program.compiled)?;
    let signature = &program.signature;
    let imported = compiler::with_size_results(&program.imported)?;
    let outputs = || signature.interface.results().iter().filter(|result| result.origin != Origin::Check);
    let mut results: Vec<String> = outputs().map(Output::label).collect();
    for result in outputs() {
        let name = result.label();
        let sizes = result.sizes().iter();
        results.extend(sizes.map(|size| format!("{name} (size of dimension {})", size.dimension)));
    }
    let compile = |module| compile_kernel(module, &program.back, program.compiled.plan_options.clone());
    let subject = Subject {
        // Rounded operands are part of the meaning of the optimized module only.
        imported: if is_narrow { &program.compiled.module } else { &imported },
        optimized: &program.compiled.module,
        results: &results,
        feeds: signature.arguments().iter().filter(|a| a.role == Role::Feed).count(),
        program: &executable,
        compile: &compile,
    };
    let mut options = VerifyOptions { seed: arguments.seed, ..VerifyOptions::default() };
    if arguments.thorough {
        options = VerifyOptions {
            small_program: u64::MAX,
            estimated_program: u64::MAX,
            small_kernel: u64::MAX,
            alike: usize::MAX,
            ..options
        };
    }
    let report = check(&subject, &options, &arguments.model)?;
    let moved = match &inputs {
        Some(inputs) => Some(measure(inputs, &imported, &results, precision, &executable)?),
        None => None,
    };
    // A program for a device is also compared with the processor's, which says whose error it is.
    let processor = match program.back.open_device {
        Some(_) => Some(check_processor(&program, &subject, &options, &arguments.model)?),
        None => None,
    };
    let passed = report.passed() && processor.as_ref().is_none_or(VerifyReport::passed);
    if arguments.json {
        let mut json = report.to_json();
        if let Some(processor) = &processor {
            json["processor"] = processor.to_json();
        }
        if let Some(moved) = &moved {
            json["precision"] = moved.to_json();
        }
        print_json("verify", &arguments.model.model.display().to_string(), json)?;
    } else if !(arguments.model.quiet && passed) {
        let screen = Screen::stdout();
        let mut text = match &processor {
            Some(processor) => [("== on the device", &report), ("== on the processor", processor)]
                .map(|(title, report)| screen.heading(title) + &report.to_text(&screen))
                .concat(),
            None => report.to_text(&screen),
        };
        if let Some(moved) = &moved {
            text += &format!("\n{}", moved.to_text(&screen));
        }
        outputs::print(&text)?;
    }
    if passed {
        Ok(())
    } else {
        Err(Error::internal(
            "the compiled code and the evaluator disagree; this is a bug in tfcompile, please report it",
        ))
    }
}

/// Measures how far a precision moves results, on each batch of the inputs.
fn measure(
    inputs: &Inputs,
    imported: &hlo::Module,
    results: &[String],
    precision: Precision,
    executable: &Executable,
) -> Result<PrecisionReport> {
    let batch = |step: u64| {
        let mut arguments = inputs.first.clone();
        inputs.at(step).for_each(|(k, array)| arguments[k] = array.clone());
        arguments
    };
    let batches: Vec<_> = (0..inputs.batch_count().unwrap_or(1)).map(batch).collect();
    compiler::guarded(|| {
        runner::measure_precision(imported, results, precision.name(), &batches, &mut |arguments| {
            executable.run_whole(arguments)
        })
    })
}

/// Verifies the processor's code of the same program.
fn check_processor(
    program: &Program,
    subject: &Subject<'_>,
    options: &VerifyOptions,
    flags: &ModelArgs,
) -> Result<VerifyReport> {
    let back = BackOptions { plan: program.back.plan.clone(), ..in_process_options(program.target.clone()) };
    let compiled = compile_module(program.imported.clone(), &back, &mut NoObserver)?;
    let executable = Executable::load(&compiled)?;
    let compile = |module| compile_kernel(module, &back, compiled.plan_options.clone());
    let subject =
        Subject { optimized: &compiled.module, program: &executable, compile: &compile, ..*subject };
    check(&subject, options, flags)
}

/// Verifies a program, with a progress line.
fn check(subject: &Subject<'_>, options: &VerifyOptions, flags: &ModelArgs) -> Result<VerifyReport> {
    let mut bar = Bar::new(&flags.stem(), flags.hides_progress());
    compiler::guarded(|| runner::verify(subject, options, &mut bar.watch()))
}
