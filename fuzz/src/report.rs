//! Prints a failure as a file test.

use crate::Setup;
use crate::check::arguments;
use hlo::Module;
use hlo::text::literal_to_text;

/// Returns the text of a `// test: run=CPU`, with the arguments of the run that the text of a
/// failure names, or else of the first, and the evaluator's result.
pub fn file_test(module: &Module, setup: &Setup, seed: u64, failure: &str) -> String {
    let cpu = if setup.cpu.is_empty() { "baseline" } else { setup.cpu };
    let arguments = arguments(module, setup, seed, u64::from(failure.contains("run 1")));
    let mut text = format!("// test: run={cpu}\n// Describe the behavior that this test guards.\n\n");
    for argument in &arguments {
        text += &format!("// input: {}\n", literal_to_text(argument));
    }
    let mut module = module.clone();
    module.set_input_output_alias(Vec::new());
    text += &module.to_text();
    text += "// ==>\n";
    match evaluator::evaluate(&module, &arguments) {
        Ok(result) => text += &(literal_to_text(&result) + "\n"),
        Err(error) => text += &format!("evaluator error: {error}\n"),
    }
    text
}
