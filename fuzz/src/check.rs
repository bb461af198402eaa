//! Compiles one graph, runs it, and compares the results.

use crate::{Draw, Numbers};
use compiler::{BackOptions, Compiled, Executable, NoObserver, PlanOptions, Winograd, guarded};
use hlo::Module;
use plan::{Choices, Fusion, tuning};
use shape::Literal;
use std::sync::Arc;
use support::{Error, ErrorKind, Result};
use target::Target;

/// Compilation options of a graph, and the numbers it runs on.
#[derive(Clone, Debug)]
pub struct Setup {
    /// LLVM's name of the processor; empty for the baseline.
    pub cpu: &'static str,
    /// Transforms of convolutions.
    pub winograd: Winograd,
    /// Disabled passes.
    pub disabled: Vec<String>,
    /// True to choose a random candidate for each kernel instead of the cost model's.
    pub any_candidate: bool,
    /// Kind of argument values.
    pub numbers: Numbers,
}

/// Passes that a program can do without.
const OPTIONAL: &[&str] = &[
    "algebraic-simplifier",
    "attention-fusion",
    "batch-norm-folding",
    "concatenate-in-place",
    "constant-folding",
    "convolution-canonicalization",
    "convolution-chaining",
    "cse",
    "fusion",
    "multi-output-fusion",
    "producer-duplication",
    "row-fusion",
    "softmax-reciprocal",
    "tree-reduction-rewriter",
];

impl Setup {
    /// Draws a random setup. Processors are limited to those that this machine supports.
    pub fn draw(draw: &mut Draw) -> Self {
        let mut cpus = vec!["", "x86-64-v2"];
        if cfg!(target_arch = "x86_64") {
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                cpus.extend(["x86-64-v3", "x86-64-v3"]);
            }
            if std::arch::is_x86_feature_detected!("avx512vl") {
                cpus.extend(["x86-64-v4", "x86-64-v4"]);
            }
            // Instructions that multiply bytes, without and with AVX-512.
            if std::arch::is_x86_feature_detected!("avxvnni") {
                cpus.push("alderlake");
            }
            if std::arch::is_x86_feature_detected!("avx512vnni") {
                cpus.push("cascadelake");
            }
            // Tile registers.
            if compiler::host("native").is_ok_and(|host| host.has_tile_products) {
                cpus.push("sapphirerapids");
            }
        } else {
            cpus = vec![""];
        }
        let count = if draw.once_in(5) { 1 + draw.below(2) } else { 0 };
        Self {
            cpu: draw.choose(&cpus),
            winograd: draw.choose(&[Winograd::Small, Winograd::Small, Winograd::Never, Winograd::Forced(2)]),
            disabled: (0..count).map(|_| draw.choose(OPTIONAL).to_owned()).collect(),
            any_candidate: draw.once_in(2),
            numbers: draw.choose(&[Numbers::Gentle, Numbers::Gentle, Numbers::Edges, Numbers::Bits]),
        }
    }
}

/// Result of checking a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// No errors.
    Clean {
        /// Number of elements with an infinite bound.
        undecided: usize,
        /// Number of elements.
        elements: usize,
    },
    /// Rejected as unsupported.
    Refused(String),
    /// Wrong results, an internal error or a panic.
    Failed(String),
}

/// Returns the outcome of an error.
pub(crate) fn refusal(error: &Error, stage: &str) -> Outcome {
    match error.kind() {
        ErrorKind::Unsupported => Outcome::Refused(error.message().to_owned()),
        _ => Outcome::Failed(format!("{stage}: {error}")),
    }
}

/// Maximum number of elements that the evaluator may compute.
const BUDGET: u64 = 40_000_000;

/// Compiles a graph with its setup, runs it on arguments drawn from the seed, and compares the
/// results.
pub fn check(module: &Module, setup: &Setup, seed: u64) -> Outcome {
    let compiled = match guarded(|| compile(module, setup, seed)) {
        Ok(compiled) => compiled,
        Err(error) => return refusal(&error, "compiling"),
    };
    match guarded(|| run(module, &compiled, setup, seed)) {
        Ok(outcome) => outcome,
        Err(error) => refusal(&error, "running"),
    }
}

/// Returns the options of a compilation, without choices for kernels.
pub(crate) fn back_options(setup: &Setup) -> Result<BackOptions> {
    let target = compiler::host(setup.cpu)?;
    let mut options = compiler::in_process_options(target);
    options.disabled_passes.clone_from(&setup.disabled);
    options.plan.winograd = setup.winograd;
    Ok(options)
}

fn compile(module: &Module, setup: &Setup, seed: u64) -> Result<Compiled> {
    let mut options = back_options(setup)?;
    let mut module = module.clone();
    compiler::optimize(&mut module, &options, &mut NoObserver)?;
    hlo::verify(&module).map_err(|error| Error::internal(format!("after the passes: {error}")))?;
    if setup.any_candidate {
        let choices = any_candidates(&module, &options.target, &options.plan, &mut Draw::new(seed));
        options.plan.choices = Arc::new(choices);
    }
    compiler::compile_optimized(module, &options, &mut NoObserver)
}

/// Chooses a random candidate for each contraction.
pub(crate) fn any_candidates(
    module: &Module,
    target: &Target,
    options: &PlanOptions,
    draw: &mut Draw,
) -> Choices {
    let mut choices = Choices::default();
    let machine = tuning::machine(target);
    for (_, computation) in module.computations() {
        for id in computation.post_order() {
            let candidates = plan::candidates(module, computation, id, target, options);
            let name = Fusion::of(module, computation, id).ok().and_then(|fusion| tuning::kernel(&fusion));
            if let (Some(name), false) = (name, candidates.is_empty()) {
                choices.set(&machine, &name, draw.pick(&candidates));
            }
        }
    }
    choices
}

/// Draws the arguments of one run.
pub(crate) fn arguments(module: &Module, setup: &Setup, seed: u64, round: u64) -> Vec<Literal> {
    let parameters = module.entry_computation().program_shape().parameters;
    let argument = |(k, shape)| {
        // Each argument depends only on its number, so adding or removing a parameter leaves the
        // others unchanged.
        let mut draw = Draw::new(seed.wrapping_mul(31).wrapping_add(round << 32).wrapping_add(k as u64));
        draw.literal(shape, setup.numbers)
    };
    parameters.iter().enumerate().map(argument).collect()
}

/// Runs the code twice in the same memory, the second time on other numbers, and on two threads if
/// it has several tasks.
fn run(module: &Module, compiled: &Compiled, setup: &Setup, seed: u64) -> Result<Outcome> {
    let executable = Executable::load(compiled)?;
    let mut session = executable.session(&arguments(module, setup, seed, 0))?;
    let plans = compiled.code.plan.computations.values().flat_map(|plan| plan.instructions.values());
    let has_tasks = plans.into_iter().any(|plan| plan.tasks > 1);
    let (mut undecided, mut elements) = (0, 0);
    for round in 0..2 {
        let arguments = arguments(module, setup, seed, round);
        for (k, argument) in arguments.iter().enumerate() {
            session.set_argument(k, argument)?;
        }
        if let Err(error) = session.run() {
            return failed_check(module, &arguments, &error);
        }
        let got = session.whole_results()?;
        if has_tasks {
            let mut threads = executable.session(&arguments)?;
            threads.set_threads(2)?;
            threads.run()?;
            let shared = Literal::Tuple(threads.whole_results()?);
            let difference = filetest::oracle::difference(&Literal::Tuple(got.clone()), &shared);
            // Random states advance from run to run.
            if let Some(difference) = difference.filter(|_| round == 0) {
                let text = format!("results with two threads differ from those with one: {difference}");
                return Ok(Outcome::Failed(text));
            }
        }
        let name = format!("run {round}: ");
        let judged = compared(module, &compiled.module, &arguments, &got, &name);
        match judged.map_err(|error| error.context(format!("run {round}, after the code ran")))? {
            Outcome::Clean { undecided: more, elements: judged } => {
                undecided += more;
                elements += judged;
            }
            other => return Ok(other),
        }
    }
    Ok(Outcome::Clean { undecided, elements })
}

/// Judges a run that a check of the program ended: the same check must fail in the evaluator.
fn failed_check(module: &Module, arguments: &[Literal], failure: &Error) -> Result<Outcome> {
    match evaluator::evaluate_computation(module, module.entry(), arguments) {
        Err(error) if error.message().contains(failure.message()) => {
            Ok(Outcome::Refused("a check fails".to_owned()))
        }
        Err(error) => Ok(Outcome::Failed(format!("the run fails: {failure}; the evaluator: {error}"))),
        Ok(_) => Ok(Outcome::Failed(format!("the run fails: {failure}"))),
    }
}

/// Compares results with the evaluator. `run` names the run in the text of a failure.
pub(crate) fn compared(
    module: &Module,
    optimized: &Module,
    arguments: &[Literal],
    got: &[Literal],
    run: &str,
) -> Result<Outcome> {
    let Some(results) = runner::compare_run(module, optimized, arguments, got, BUDGET)? else {
        return Ok(Outcome::Refused("too large for the evaluator".to_owned()));
    };
    let (mut undecided, mut elements) = (0, 0);
    for result in results {
        undecided += result.undecided;
        elements += result.elements;
        if let Some(first) = &result.first {
            return Ok(Outcome::Failed(format!(
                "{run}{} of {} elements of {} are wrong: at {:?} got {}, expected {} +- {:e}",
                result.mismatches,
                result.elements,
                result.name,
                first.index,
                first.got,
                first.want,
                first.limit
            )));
        }
        if !result.passed() {
            return Ok(Outcome::Failed(format!("{} has the wrong shape", result.name)));
        }
    }
    Ok(Outcome::Clean { undecided, elements })
}
