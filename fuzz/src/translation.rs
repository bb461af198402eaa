//! Translation validation: runs the passes of a graph one by one, and after each one that changed
//! the module, compares what the evaluator computes before and after it.
//!
//! Exact passes must give the same bits. For passes that round, results may differ within the
//! bounds that `runner` estimates for each element. No code is generated, so the passes can be
//! those for any machine.

use crate::check::{Setup, arguments, compared, refusal};
use crate::named::{self, Report};
use crate::subject::{self, Kind, Subject};
use crate::{Draw, Numbers, Outcome, minimize};
use compiler::guarded;
use evaluator::{Evaluator, Limits};
use filetest::oracle::difference;
use hlo::Module;
use passes::{Changed, Pass, Pipeline};
use shape::{Literal, Scalar};
use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::{Error, ErrorKind, Result};
use target::Target;

/// Passes that may change the rounding of floats.
const ROUNDING: &[&str] = &[
    "batch-norm-expander",
    "batch-norm-folding",
    "cholesky-expander",
    "decomposition-expander",
    "fft-expander",
    "float-narrowing",
    "power-expander",
    "quantized-contraction",
    "reduction-normalization",
    "requantization-folding",
    "select-and-scatter-expander",
    "softmax-reciprocal",
    "tree-reduction-rewriter",
    "triangular-solve-expander",
    "weight-scale-sinking",
    "while-loop-accumulation-sinking",
    "while-loop-input-hoisting",
];

/// Passes whose results may be another infinity or NaN where a result is not finite: they move
/// divisions and products, and a product of 0 and an infinity is NaN.
const NOT_EXACT_BEYOND_FINITE: &[&str] = &["triangular-solve-expander", "weight-scale-sinking"];

/// Prefix of the note that a pass changed a module.
pub const PASS: &str = "pass ";
/// Prefix of the note that a rule was applied.
pub const RULE: &str = "rule ";
/// Prefix of the note that results changed within their bounds.
pub const ROUNDED: &str = "rounded by ";

/// Number of runs on different arguments.
const ROUNDS: u64 = 2;

/// Maximum number of steps of the evaluator for one module.
const MAX_STEPS: u64 = 1 << 24;

/// Checks the passes on the graphs of a seed. The notes count the passes that changed a module, and
/// the applications of their rules. The text of a failure ends with the smallest module found on
/// which the pass fails, as a file test.
pub fn run(kind: Kind, seed: u64) -> Report {
    let mut notes = Vec::new();
    let outcome = match modules(kind, seed) {
        Ok((modules, setup)) => all(kind, &modules, &setup, seed, &mut notes),
        Err(outcome) => outcome,
    };
    Report { outcome, notes }
}

/// Returns the modules of a seed.
fn modules(kind: Kind, seed: u64) -> Result<(Vec<Module>, Setup), Outcome> {
    match kind {
        Kind::Sizes => named::modules(seed),
        kind => subject::subject(kind, seed).map(|Subject { module, setup }| (vec![module], setup)),
    }
}

/// Checks the passes on each module, up to the first failure.
fn all(kind: Kind, modules: &[Module], setup: &Setup, seed: u64, notes: &mut Vec<String>) -> Outcome {
    let (mut undecided, mut elements) = (0, 0);
    for module in modules {
        match guarded(|| Check::new(kind, setup, seed)?.run(module, notes)) {
            Ok(Outcome::Clean { undecided: more, elements: judged }) => {
                undecided += more;
                elements += judged;
            }
            Ok(outcome) => return outcome,
            Err(error) => return refusal(&error, "running the passes"),
        }
    }
    Outcome::Clean { undecided, elements }
}

/// The passes and the numbers of a graph.
struct Check<'a> {
    setup: &'a Setup,
    seed: u64,
    pipelines: Vec<Pipeline>,
}

/// Results of a module in each round, or the reason why the evaluator stops.
type Results = Vec<Result<Literal>>;

impl<'a> Check<'a> {
    fn new(kind: Kind, setup: &'a Setup, seed: u64) -> Result<Self> {
        let options = plan::Options { winograd: setup.winograd, ..plan::Options::default() };
        let target = any_target(&mut Draw::new(seed ^ 0x0074_6172_6765_7473))?;
        // Normalization also takes apart what the optimization has built.
        let mut pipelines =
            vec![compiler::pipeline_for(vec![target], options), compiler::normalization_pipeline()];
        if kind == Kind::Files {
            // Some are from other compilers.
            pipelines.insert(0, compiler::normalization_pipeline());
        }
        Ok(Self { setup, seed, pipelines })
    }

    fn run(&self, module: &Module, notes: &mut Vec<String>) -> Result<Outcome> {
        let mut module = module.clone();
        let mut results = self.evaluate(&module);
        if let Some(Err(error)) = results.iter().find(|result| is_unsupported(result)) {
            return Ok(Outcome::Refused(error.message().to_owned()));
        }
        let (mut undecided, mut elements) = (0, 0);
        for pass in self.pipelines.iter().flat_map(Pipeline::passes) {
            if self.setup.disabled.iter().any(|name| name == pass.name()) {
                continue;
            }
            match self.step(pass, &mut module, &mut results, notes) {
                Outcome::Clean { undecided: more, elements: judged } => {
                    undecided += more;
                    elements += judged;
                }
                Outcome::Failed(why) => return Ok(Outcome::Failed(self.failure(pass, &module, &why))),
                refused @ Outcome::Refused(_) => return Ok(refused),
            }
        }
        Ok(Outcome::Clean { undecided, elements })
    }

    /// Runs a pass, and compares the results. The module and its results become those after the
    /// pass, unless the pass fails.
    fn step(
        &self,
        pass: &dyn Pass,
        module: &mut Module,
        results: &mut Results,
        notes: &mut Vec<String>,
    ) -> Outcome {
        let mut after = module.clone();
        let mut rules = Vec::new();
        let applied = &mut |rule| {
            rules.push(rule);
            ControlFlow::Continue(())
        };
        let ran = catch_unwind(AssertUnwindSafe(|| pass.run_rules(&mut after, applied)));
        let name = pass.name();
        let changed = match ran {
            Ok(Ok(changed)) => changed,
            Ok(Err(error)) => return refusal(&error, &format!("running {name}")),
            Err(panic) => return Outcome::Failed(format!("{name} panics: {}", panic_text(&*panic))),
        };
        if changed == Changed::No {
            if *module != after {
                return Outcome::Failed(format!("after {name}: the module changed, which was not reported"));
            }
            return Outcome::Clean { undecided: 0, elements: 0 };
        }
        notes.push(format!("{PASS}{name}"));
        notes.extend(rules.iter().map(|rule| format!("{RULE}{rule}")));
        if let Err(error) = hlo::verify(&after) {
            return Outcome::Failed(format!("after {name}: {error}"));
        }
        let own = self.evaluate(&after);
        let outcome = if name == "bounded-shapes" {
            // The program's interface changes: results become arrays of the bounds.
            Outcome::Clean { undecided: 0, elements: 0 }
        } else {
            self.judge(name, (module, results), (&after, &own), notes)
        };
        if let Outcome::Failed(why) = outcome {
            let rule = self.guilty_rule(pass, module, results, &rules);
            let rule = rule.map(|rule| format!(", rule {rule}")).unwrap_or_default();
            return Outcome::Failed(format!("after {name}{rule}: {why}"));
        }
        (*module, *results) = (after, own);
        outcome
    }

    /// Returns the first rule after which a module computes something else.
    fn guilty_rule(
        &self,
        pass: &dyn Pass,
        module: &Module,
        results: &Results,
        rules: &[&'static str],
    ) -> Option<&'static str> {
        let fails = |count: usize| {
            let (mut after, mut left) = (module.clone(), count);
            let stop = &mut |_| {
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let ran = pass.run_rules(&mut after, stop);
            let own = self.evaluate(&after);
            let outcome = self.judge(pass.name(), (module, results), (&after, &own), &mut Vec::new());
            ran.is_err() || matches!(outcome, Outcome::Failed(_))
        };
        let first = (1..=rules.len()).find(|&count| fails(count))?;
        Some(rules[first - 1])
    }

    /// Compares the results before and after a pass.
    fn judge(
        &self,
        pass: &str,
        (before, want): (&Module, &Results),
        (after, got): (&Module, &Results),
        notes: &mut Vec<String>,
    ) -> Outcome {
        let (mut undecided, mut elements) = (0, 0);
        for (round, (want, got)) in want.iter().zip(got).enumerate() {
            let (want, got) = match (want, got) {
                (Ok(want), Ok(got)) => (want, got),
                // A check of the program fails.
                (Err(_), Err(_)) => continue,
                (_, Err(error)) if error.kind() == ErrorKind::Unsupported => {
                    return Outcome::Refused(error.message().to_owned());
                }
                (_, Err(error)) => return Outcome::Failed(format!("run {round}: the evaluator: {error}")),
                (Err(error), _) => {
                    return Outcome::Failed(format!("run {round}: the evaluator no longer says: {error}"));
                }
            };
            let Some(why) = difference(want, got) else {
                elements += element_count(want);
                continue;
            };
            if !ROUNDING.contains(&pass) {
                return Outcome::Failed(format!("run {round}: {why}"));
            }
            notes.push(format!("{ROUNDED}{pass}"));
            if !before.size_parameters().is_empty() {
                // The bounds are those of whole arrays, whatever the sizes.
                undecided += element_count(want);
                continue;
            }
            let arguments = self.arguments(before, round as u64);
            // Without cutting bounded results to their true sizes.
            let whole = evaluator::evaluate_computation(after, after.entry(), &arguments);
            let mut got = match whole {
                Ok(Literal::Tuple(elements)) => elements,
                Ok(array) => vec![array],
                Err(error) => return refusal(&error, &format!("run {round}")),
            };
            if NOT_EXACT_BEYOND_FINITE.contains(&pass)
                && let Literal::Tuple(want) = want
            {
                got = got.iter().zip(want).map(|(got, want)| finite_part(got, want)).collect();
            }
            match compared(before, after, &arguments, &got, &format!("run {round}: ")) {
                Ok(Outcome::Clean { undecided: more, elements: judged }) => {
                    undecided += more;
                    elements += judged;
                }
                Ok(outcome) => return outcome,
                Err(error) => return refusal(&error, &format!("run {round}")),
            }
        }
        Outcome::Clean { undecided, elements }
    }

    fn arguments(&self, module: &Module, round: u64) -> Vec<Literal> {
        let numbers = if round == 0 { self.setup.numbers } else { Numbers::Edges };
        let mut arguments = arguments(module, &Setup { numbers, ..self.setup.clone() }, self.seed, round);
        let mut draw = Draw::new(self.seed.wrapping_mul(37).wrapping_add(round));
        for size in module.size_parameters() {
            let value = i32::try_from(draw.between(size.low, size.high)).unwrap_or(i32::MAX);
            arguments[size.parameter] = Literal::scalar(value);
        }
        arguments
    }

    fn evaluate(&self, module: &Module) -> Results {
        let limits = Limits { max_steps: MAX_STEPS, max_live_bytes: 1 << 30, ..Limits::default() };
        let evaluate =
            |round| Evaluator::with_limits(module, limits).evaluate(&self.arguments(module, round));
        (0..ROUNDS).map(evaluate).collect()
    }

    /// Describes the failure of a pass on a module, with the smallest module found that fails.
    fn failure(&self, pass: &dyn Pass, module: &Module, why: &str) -> String {
        let check = |module: &Module| {
            let mut results = self.evaluate(module);
            self.step(pass, &mut module.clone(), &mut results, &mut Vec::new())
        };
        let (small, reason) = minimize(module, why, check);
        let mut after = small.clone();
        let after = match catch_unwind(AssertUnwindSafe(|| pass.run(&mut after).map(|_| after.to_text()))) {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => format!("{error}\n"),
            Err(panic) => format!("{}\n", panic_text(&*panic)),
        };
        let name = pass.name();
        format!(
            "{why}\nsmallest: {reason}\nnumbers: {:?}\n// test: pass={name}\n\
             // Describe the behavior that this test guards.\n\n{}// ==>\n{after}",
            self.setup.numbers,
            small.to_text()
        )
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Returns an array with the wanted elements where these are not finite.
fn finite_part(got: &Literal, want: &Literal) -> Literal {
    let (Literal::Array { shape, .. }, Literal::Array { shape: wanted, .. }) = (got, want) else {
        return got.clone();
    };
    if shape != wanted || !shape.element_type.is_floating_point() {
        return got.clone();
    }
    let is_finite = |scalar: Scalar| scalar.as_f64().is_some_and(f64::is_finite);
    let pairs = got.scalars().zip(want.scalars());
    let scalars = pairs.map(|(got, want)| if is_finite(want) { got } else { want });
    Literal::from_scalars(shape.clone(), scalars.collect::<Vec<_>>())
}

fn is_unsupported(result: &Result<Literal>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::Unsupported)
}

fn element_count(literal: &Literal) -> usize {
    match literal {
        Literal::Tuple(elements) => elements.iter().map(element_count).sum(),
        array => array.array_shape().element_count() as usize,
    }
}

/// Draws a processor or a GPU.
fn any_target(draw: &mut Draw) -> Result<Target> {
    const X86: &[&str] = &["", "x86-64-v2", "x86-64-v3", "x86-64-v4", "alderlake", "cascadelake"];
    match draw.below(10) {
        0 => Target::opencl(),
        1 => Target::cuda("sm_80"),
        2 => Target::new("aarch64-unknown-linux-gnu", "", "+dotprod,+i8mm"),
        3 => Target::new("thumbv7em-none-eabi", "cortex-m4", ""),
        _ => Target::new("x86_64-unknown-linux-gnu", draw.choose(X86), ""),
    }
    .map_err(|error: Error| error.context("a target of the fuzzer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::{Op, Opcode};

    /// Applies two rules: one that keeps the meaning, and one that does not.
    struct Faulty {
        /// False to change the module without saying so.
        is_truthful: bool,
    }

    impl Pass for Faulty {
        fn name(&self) -> &'static str {
            "faulty"
        }

        fn run(&self, module: &mut Module) -> Result<Changed> {
            self.run_rules(module, &mut |_| ControlFlow::Continue(()))
        }

        fn run_rules(
            &self,
            module: &mut Module,
            applied: &mut dyn FnMut(&'static str) -> ControlFlow<()>,
        ) -> Result<Changed> {
            let rules = [("good", Opcode::Negate, Op::Negate {}), ("bad", Opcode::Abs, Op::Sqrt {})];
            let mut changed = false;
            for (name, opcode, op) in rules {
                let entry = module.entry();
                let computation = module.computation_mut(entry);
                for id in computation.post_order() {
                    let instruction = &computation[id];
                    if instruction.opcode() != opcode {
                        continue;
                    }
                    let (shape, operands) = (instruction.shape().clone(), instruction.operands().to_vec());
                    let metadata = instruction.metadata().clone();
                    let new = computation.add("", op.clone(), shape, &operands, metadata);
                    computation.replace_all_uses(id, new);
                    changed = true;
                    if applied(name).is_break() {
                        return Ok(Changed::Yes);
                    }
                }
            }
            Ok((changed && self.is_truthful).into())
        }
    }

    fn outcome(operation: &str, is_truthful: bool) -> (Outcome, Vec<String>) {
        let text = format!(
            "HloModule m\nENTRY main {{\n  x = f32[9] parameter(0)\n  n = f32[9] negate(x)\n  \
             y = f32[9] {operation}(n)\n  ROOT t = (f32[9]) tuple(y)\n}}\n"
        );
        let module = hlo::parse(&text).expect("a valid text");
        let setup = Setup { numbers: Numbers::Gentle, ..Setup::draw(&mut Draw::new(1)) };
        let pipelines = vec![Pipeline::new("test", vec![Box::new(Faulty { is_truthful })])];
        let mut notes = Vec::new();
        let outcome = Check { setup: &setup, seed: 1, pipelines }.run(&module, &mut notes);
        (outcome.expect("a judged run"), notes)
    }

    #[test]
    fn the_rule_that_changes_a_result_is_named() {
        let (failed, _) = outcome("abs", true);
        let Outcome::Failed(why) = failed else { panic!("{failed:?}") };
        assert!(why.starts_with("after faulty, rule bad: run 0: result 0: element"), "{why}");
        assert!(why.contains("// test: pass=faulty"), "{why}");
    }

    #[test]
    fn a_pass_that_keeps_results_is_clean_and_counted() {
        let (clean, notes) = outcome("exponential", true);
        assert_eq!(clean, Outcome::Clean { undecided: 0, elements: 18 });
        assert_eq!(notes, ["pass faulty", "rule good"]);
    }

    #[test]
    fn a_change_that_is_not_reported_fails() {
        let (failed, _) = outcome("exponential", false);
        let Outcome::Failed(why) = failed else { panic!("{failed:?}") };
        assert!(why.starts_with("after faulty: the module changed, which was not reported"), "{why}");
    }
}
