//! `// test: run`: runs the entry on the literals of the `// input:` lines, one per parameter. The
//! expected result is below the arrow. Inputs are parameters, never constants, because a folded
//! test would test only the evaluator.
//!
//! `// test: run=CPU,CPU` also compiles the module for each of these processors (LLVM's names, or
//! `baseline`) and requires the same bits from the code, except that any NaN matches any NaN.
//! Processors that this machine does not support are skipped.

use super::{Outcome, parse_input};
use crate::case::{Case, LineError};
use crate::oracle;
use compiler::{Executable, NoObserver};
use hlo::Module;
use hlo::text::{literal_to_text, parse_literal};
use shape::Literal;
use support::{Error, Result};

/// Reads, runs, prints the result.
pub(super) fn run(case: &Case) -> Outcome {
    let module = match parse_input(case) {
        Ok(module) => module,
        Err(errors) => return errors,
    };
    match results(case, &module) {
        Ok(text) => Outcome::Text { text, unless_expected: None },
        Err(error) => Outcome::Errors(vec![LineError::from_message(error.message())]),
    }
}

fn results(case: &Case, module: &Module) -> Result<String> {
    hlo::verify(module)?;
    let mut inputs = Vec::new();
    for (i, line) in case.input.lines().enumerate() {
        let Some(input) = line.strip_prefix("// input: ") else { continue };
        let input = parse_literal(input)
            .map_err(|error| error.context(format_args!("the input in line {}", i + 1)))?;
        inputs.push(input);
    }
    let expected = module.entry_computation().program_shape().parameters;
    if !inputs.iter().map(Literal::shape).eq(expected.iter().cloned()) {
        let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        return Err(Error::invalid(format!("expected inputs of {}", expected.join(", "))));
    }
    let result = evaluator::evaluate(module, &inputs)?;
    for cpu in case.argument.split(',').filter(|cpu| !cpu.is_empty()) {
        let Some(code) = compile(module, cpu)? else { continue };
        let actual = Literal::Tuple(code.run(&inputs)?);
        if let Some(why) = oracle::difference(&result, &actual) {
            return Err(Error::internal(format!("the code for {cpu} differs from the evaluator: {why}")));
        }
    }
    Ok(literal_to_text(&result) + "\n")
}

/// Compiles the module for a processor, or returns `None` if this machine does not support it.
fn compile(module: &Module, cpu: &str) -> Result<Option<Executable>> {
    let target = compiler::host(if cpu == "baseline" { "" } else { cpu });
    let is_here = match cpu {
        "baseline" => true,
        #[cfg(target_arch = "x86_64")]
        "x86-64-v2" => std::arch::is_x86_feature_detected!("sse4.2"),
        #[cfg(target_arch = "x86_64")]
        "x86-64-v3" => {
            std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        }
        #[cfg(target_arch = "x86_64")]
        "x86-64-v4" => std::arch::is_x86_feature_detected!("avx512vl"),
        // Products of bytes, without and with AVX-512, and lookups of bytes.
        #[cfg(target_arch = "x86_64")]
        "alderlake" => std::arch::is_x86_feature_detected!("avxvnni"),
        #[cfg(target_arch = "x86_64")]
        "cascadelake" => std::arch::is_x86_feature_detected!("avx512vnni"),
        #[cfg(target_arch = "x86_64")]
        "znver4" => {
            std::arch::is_x86_feature_detected!("avx512bf16")
                && std::arch::is_x86_feature_detected!("avx512vbmi")
                && std::arch::is_x86_feature_detected!("sse4a")
        }
        _ if cfg!(not(target_arch = "x86_64")) => false,
        _ => {
            return Err(Error::invalid(format!(
                "cannot tell whether this machine is a '{cpu}': add it to `compile` of the directive"
            )));
        }
    };
    if !is_here {
        return Ok(None);
    }
    let options = compiler::in_process_options(target?);
    let compiled = compiler::compile_module(module.clone(), &options, &mut NoObserver)?;
    Executable::load(&compiled).map(Some)
}
