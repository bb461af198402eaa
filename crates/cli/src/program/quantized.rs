//! Quantization of a model that was read, on examples of its inputs from files.

use crate::args::quantization::{QuantizationArgs, SchemeName};
use crate::program::arguments::Arguments;
use crate::program::in_process::Initial;
use crate::report::Reporter;
use bytes::Bytes;
use compiler::{Executable, HloProgram, Input, NoObserver, Source};
use hlo::{Module, Program};
use runner::{QuantizationReport, Signature};
use support::{Code, Coded as _, Result};

/// Quantizes an input of the compiler. Returns it with the quantized program in the place of its
/// source.
pub(crate) fn quantize(
    input: Input,
    initial: &Initial,
    scheme: SchemeName,
    flags: &QuantizationArgs,
    reporter: &mut dyn Reporter,
) -> Result<(Input, QuantizationReport)> {
    let options = flags.options(scheme)?;
    let Input { source, config_text, files } = input;
    let (program, report) = compiler::guarded(|| {
        let program = source.without_checks()?.import(&mut NoObserver)?;
        let inputs = if flags.data.is_empty() {
            None
        } else {
            let signature = Signature::of(&runner::example_program(&program)?);
            let arguments = Arguments::of_data(&flags.data, &signature, initial);
            Some(arguments.coded(Code::GivenArray)?.inputs)
        };
        let host = compiler::host("native")?;
        let mut compile = |module: Module| {
            let options = compiler::in_process_options(host.clone());
            Executable::load(&compiler::compile_module(module, &options, &mut NoObserver)?)
        };
        let mut progress = |text: &str, done, total| reporter.doing(text, done, total);
        runner::quantize(program, inputs.as_ref(), &options, &mut compile, &mut progress)
    })?;
    Ok((of_program(program, config_text, files), report))
}

/// Imports one of several functions. Returns it, and true if it has layers to quantize.
pub(crate) fn find_layers(input: Input) -> Result<(Input, bool)> {
    let Input { source, config_text, files } = input;
    let (program, has_layers) = compiler::guarded(|| {
        let program = source.without_checks()?.import(&mut NoObserver)?;
        let has_layers = runner::has_layers(&program)?;
        Ok((program, has_layers))
    })?;
    Ok((of_program(program, config_text, files), has_layers))
}

fn of_program(program: Program, config_text: String, files: Vec<(String, Bytes)>) -> Input {
    let program = HloProgram { program, checks: Vec::new(), notes: Vec::new(), unused: Vec::new() };
    Input { source: Source::Hlo(program), config_text, files }
}
