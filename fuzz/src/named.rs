//! Checks graphs with named dimensions: compiles each once, runs it at several sizes, and compares
//! the results with the evaluator on the same graph, imported with these sizes fixed.
//!
//! The memory of feeds beyond the sizes of a run contains random bits or NaN. Runs of different
//! sizes share memory, so that numbers of one may not reach the next.

use crate::check::{any_candidates, back_options, compared, refusal};
use crate::tf_graph::{NamedGraph, named_graph, with_sizes};
use crate::{Draw, Numbers, Outcome, Setup};
use compiler::{Compiled, Executable, NoObserver, Session, guarded};
use hlo::{Module, Program};
use plan::Choices;
use shape::index::{indices, linear_index};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Error, ErrorKind, Result};
use tf::proto::{Config, GraphDef};

/// The outcome of a graph, and what happened on the way.
#[derive(Clone, Debug)]
pub struct Report {
    /// The outcome.
    pub outcome: Outcome,
    /// Events to count: how the program treats its sizes, and refused steps with their reasons.
    pub notes: Vec<String>,
}

/// Number of sizes between the smallest and the largest ones.
const BETWEEN: usize = 3;

/// Checks the graph of a seed. The text of a failure ends with the smallest failing graph found.
pub fn run(seed: u64) -> Report {
    let mut draw = Draw::new(seed ^ 0x73_697a_6564);
    let size = 1 + draw.below(7);
    let setup = Setup::draw(&mut draw);
    let NamedGraph { graph, config, kept, refused } = match named_graph(seed, size) {
        Ok(graph) => graph,
        Err(outcome) => return Report { outcome, notes: Vec::new() },
    };
    let mut notes: Vec<String> = refused.iter().map(|reason| format!("step refused: {reason}")).collect();
    notes.extend((0..kept).map(|_| "step kept".to_owned()));
    let outcome = match check(&graph, &config, &setup, seed, &mut notes) {
        Outcome::Failed(why) => {
            let (config, reason) = smallest(&graph, &config, &setup, seed, &why);
            let graph = tf::source::graph_def_to_text(&upstream(&graph, &config));
            let config = tf::source::config_to_text(&config);
            Outcome::Failed(format!("{why}\nsmallest: {reason}\nsetup: {setup:?}\n{graph}\n{config}"))
        }
        outcome => outcome,
    };
    Report { outcome, notes }
}

/// Returns the text of a graph with named dimensions, of its config, and of its modules.
pub fn text(seed: u64) -> Result<String, Outcome> {
    let size = 1 + Draw::new(seed ^ 0x73_697a_6564).below(7);
    let NamedGraph { graph, config, .. } = named_graph(seed, size)?;
    let mut text =
        format!("{}\n{}", tf::source::graph_def_to_text(&graph), tf::source::config_to_text(&config));
    if let Ok(program) = guarded(|| compiler::import(graph, config, &mut NoObserver)) {
        text += &format!("\n{}", program.module);
        program.sized.iter().for_each(|sized| text += &format!("\n// {} rows\n{}", sized.size, sized.module));
        program.exact.iter().for_each(|exact| text += &format!("\n// {:?}\n{}", exact.sizes, exact.module));
    }
    Ok(text)
}

/// Returns the modules of a graph with named dimensions, for all sizes and for fixed ones.
pub(crate) fn modules(seed: u64) -> Result<(Vec<Module>, Setup), Outcome> {
    let mut draw = Draw::new(seed ^ 0x73_697a_6564);
    let size = 1 + draw.below(7);
    let setup = Setup::draw(&mut draw);
    let NamedGraph { graph, config, .. } = named_graph(seed, size)?;
    let program = guarded(|| compiler::import(graph, config, &mut NoObserver));
    let program = program.map_err(|error| refusal(&error, "importing"))?;
    let sized = program.sized.into_iter().map(|sized| sized.module);
    let exact = program.exact.into_iter().map(|exact| exact.module);
    Ok((std::iter::once(program.module).chain(sized).chain(exact).collect(), setup))
}

fn check(graph: &GraphDef, config: &Config, setup: &Setup, seed: u64, notes: &mut Vec<String>) -> Outcome {
    let import = |config: &Config| compiler::import(graph.clone(), config.clone(), &mut NoObserver);
    let program = match guarded(|| import(config)) {
        Ok(program) => program,
        Err(error) => return refusal(&error, "importing"),
    };
    let compiled = match guarded(|| compile(&program, setup, seed)) {
        Ok(compiled) => compiled,
        Err(error) => return refusal(&error, "compiling"),
    };
    notes.push(if program.sized.is_empty() { "masks" } else { "pieces" }.to_owned());
    if !program.exact.is_empty() {
        notes.push("code for particular sizes".to_owned());
    }
    let fixed = |sizes: &[i64]| import(&with_sizes(config.clone(), sizes));
    match guarded(|| run_sizes(&program, &compiled, &fixed, setup, seed, notes)) {
        Ok(outcome) => outcome,
        Err(error) => refusal(&error, "running"),
    }
}

fn compile(program: &Program, setup: &Setup, seed: u64) -> Result<Compiled> {
    let mut options = back_options(setup)?;
    if setup.any_candidate {
        let mut draw = Draw::new(seed);
        let mut choices = Choices::default();
        let whole: Vec<&Module> =
            std::iter::once(&program.module).chain(program.exact.iter().map(|exact| &exact.module)).collect();
        let sized: Vec<&Module> = program.sized.iter().map(|sized| &sized.module).collect();
        for module in if sized.is_empty() { &whole } else { &sized } {
            let mut module = (*module).clone();
            compiler::optimize(&mut module, &options, &mut NoObserver)?;
            choices.merge(any_candidates(&module, &options.target, &options.plan, &mut draw));
        }
        options.plan.choices = Arc::new(choices);
    }
    compiler::compile_program(program.clone(), &options, &mut NoObserver)
}

/// Draws the sizes of the runs: the largest ones, the smallest ones, some between, and those with
/// code of their own.
fn draw_sizes(program: &Program, draw: &mut Draw) -> Vec<Vec<i64>> {
    let ranges: Vec<_> = program.interface.sizes().map(|(_, _, range)| range).collect();
    let mut runs: Vec<Vec<i64>> =
        vec![ranges.iter().map(|range| range.high).collect(), ranges.iter().map(|range| range.low).collect()];
    for _ in 0..BETWEEN {
        runs.push(ranges.iter().map(|range| draw.between(range.low, range.high)).collect());
    }
    for exact in &program.exact {
        let own = |number| exact.sizes.iter().find(|(own, _)| *own == number).map(|(_, size)| *size);
        let sizes = program.interface.sizes();
        let size = |(number, _, range): (usize, _, hlo::SizeRange)| {
            own(number).unwrap_or_else(|| draw.between(range.low, range.high))
        };
        runs.push(sizes.map(size).collect());
    }
    if draw.once_in(2) {
        runs.swap(0, 1);
    }
    let mut seen = BTreeSet::new();
    runs.retain(|sizes| seen.insert(sizes.clone()));
    runs
}

fn run_sizes(
    program: &Program,
    compiled: &Compiled,
    fixed: &dyn Fn(&[i64]) -> Result<Program>,
    setup: &Setup,
    seed: u64,
    notes: &mut Vec<String>,
) -> Result<Outcome> {
    let mut draw = Draw::new(seed.wrapping_mul(37));
    let executable = Executable::load(compiled)?;
    let (mut undecided, mut elements) = (0, 0);
    let mut session: Option<Session<'_>> = None;
    for (round, sizes) in draw_sizes(program, &mut draw).iter().enumerate() {
        let of_size = match fixed(sizes) {
            Ok(program) => program,
            Err(error) if error.kind() == ErrorKind::Internal => return Err(error),
            Err(_) => {
                notes.push("size without a program".to_owned());
                continue;
            }
        };
        if ranks(&of_size) != ranks(program) {
            // `Squeeze` drops dimensions that happen to have the size 1.
            notes.push("size with results of other ranks".to_owned());
            continue;
        }
        let inputs = inputs(program, sizes, setup, seed, round as u64);
        let session = match &mut session {
            Some(session) => {
                for (k, whole) in inputs.whole.iter().enumerate() {
                    session.set_argument(k, whole)?;
                }
                session
            }
            none => none.insert(executable.session(&inputs.whole)?),
        };
        let before = session.whole_results()?;
        let failed = |why: String| Ok(Outcome::Failed(format!("sizes {sizes:?}: {why}")));
        if let Err(error) = session.run() {
            // TensorFlow repeats a dimension of size 1, where programs for ranges check sizes.
            let may_be_one = sizes.iter().any(|&size| size <= 3);
            // With fixed sizes, operands may switch their places in the message.
            let is_of_sizes = |error: &Error| error.message().contains("the sizes of dimension");
            let fails_too = || {
                let module = &of_size.module;
                let result = evaluator::evaluate_computation(module, module.entry(), &inputs.corners);
                result.err().is_some_and(|error| is_of_sizes(&error))
            };
            if is_of_sizes(&error) && (may_be_one || fails_too()) {
                notes.push("size at which a check fails".to_owned());
                continue;
            }
            return failed(format!("the run fails: {error}"));
        }
        let got = session.results()?;
        if !program.sized.is_empty() {
            let after = session.whole_results()?;
            for (k, (before, after)) in before.iter().zip(&after).enumerate() {
                if embed(&got[k], before).bytes() != after.bytes() {
                    return failed(format!("result {k} was written beyond the sizes of the run"));
                }
            }
        }
        let mut threads = executable.session(&inputs.whole)?;
        threads.set_threads(2)?;
        threads.run()?;
        let [alone, shared] = [got.clone(), threads.results()?].map(Literal::Tuple);
        if let Some(difference) = filetest::oracle::difference(&alone, &shared) {
            return failed(format!("results with two threads differ from those with one: {difference}"));
        }
        match judge(of_size, &inputs.corners, got, setup)? {
            Outcome::Clean { undecided: more, elements: judged } => {
                undecided += more;
                elements += judged;
            }
            Outcome::Failed(why) => return failed(why),
            refused @ Outcome::Refused(_) => return Ok(refused),
        }
    }
    Ok(Outcome::Clean { undecided, elements })
}

fn ranks(program: &Program) -> Vec<usize> {
    program.interface.results().iter().map(|result| result.shape.rank()).collect()
}

/// Compares results with the evaluator on the program with fixed sizes.
fn judge(program: Program, arguments: &[Literal], got: Vec<Literal>, setup: &Setup) -> Result<Outcome> {
    let Program { mut module, interface, .. } = program;
    let pass = passes::by_name("dynamic-dimension-results")
        .ok_or_else(|| Error::internal("there is no dynamic-dimension-results"))?;
    let _ = pass.run(&mut module)?;
    let mut results = got;
    if interface.results().iter().any(|result| !result.sizes().is_empty()) {
        // Sizes that depend on data: compared first, then everything within them.
        let want = evaluator::evaluate_computation(&module, module.entry(), arguments)?;
        let Literal::Tuple(want) = want else {
            return Err(Error::internal("the evaluator returns no tuple"));
        };
        let (arrays, sizes) = want.split_at(interface.results().len());
        let sizes: Vec<i64> = sizes.iter().filter_map(|size| size.scalars().next()?.as_i64()).collect();
        for (k, (result, want)) in interface.results().iter().zip(arrays).enumerate() {
            let (expected, found) = (result.true_sizes(&sizes), results[k].array_shape().sizes());
            if expected != found {
                return Ok(Outcome::Failed(format!("result {k} has the sizes {found:?}, not {expected:?}")));
            }
            results[k] = embed(&results[k], want);
        }
        results.extend_from_slice(&want[arrays.len()..]);
    }
    for (k, (result, found)) in interface.results().iter().zip(&results).enumerate() {
        let (expected, found) = (result.shape.sizes(), found.array_shape().sizes());
        if expected != found {
            return Ok(Outcome::Failed(format!("result {k} has the sizes {found:?}, not {expected:?}")));
        }
    }
    let first = compared(&module, &module, arguments, &results, "")?;
    if !matches!(first, Outcome::Failed(_)) {
        return Ok(first);
    }
    let sums_logarithms = |(_, computation): (_, &hlo::Computation)| {
        computation.instructions().any(|(_, i)| i.metadata().op_type == "CumulativeLogsumexp")
    };
    if module.computations().any(sums_logarithms) {
        // More steps with nothing to add turn -0 into 0.
        let want = evaluator::evaluate_computation(&module, module.entry(), arguments)?;
        if let Literal::Tuple(want) = want {
            results = results.iter().zip(&want).map(|(got, want)| with_zeros_of(got, want)).collect();
        }
    }
    let mut optimized = module.clone();
    compiler::optimize(&mut optimized, &back_options(setup)?, &mut NoObserver)?;
    compared(&module, &optimized, arguments, &results, "")
}

/// Returns an array whose zeros have the signs of another array's.
fn with_zeros_of(got: &Literal, want: &Literal) -> Literal {
    let shape = got.array_shape();
    if !shape.element_type.is_floating_point() || want.array_shape() != shape {
        return got.clone();
    }
    let is_zero = |scalar: shape::Scalar| scalar.as_f64() == Some(0.0);
    let pairs = got.scalars().zip(want.scalars());
    let scalars = pairs.map(|(got, want)| if is_zero(got) && is_zero(want) { want } else { got });
    Literal::from_scalars(shape.clone(), scalars)
}

/// The arguments of a run.
struct Inputs {
    /// Those of the program with fixed sizes.
    corners: Vec<Literal>,
    /// Those of the program for all sizes, with its sizes.
    whole: Vec<Literal>,
}

fn inputs(program: &Program, sizes: &[i64], setup: &Setup, seed: u64, round: u64) -> Inputs {
    let arguments = program.interface.arguments();
    let first = program.interface.feed_count() - sizes.len();
    let first = arguments.iter().position(|argument| argument.range.is_some()).unwrap_or(first);
    let mut inputs = Inputs { corners: Vec::new(), whole: Vec::new() };
    for (k, argument) in arguments.iter().enumerate() {
        if argument.range.is_some() {
            inputs.whole.push(Literal::scalar(sizes[k - first] as i32));
            continue;
        }
        let mut draw = Draw::new(seed.wrapping_mul(31).wrapping_add(round << 32).wrapping_add(k as u64));
        let own = argument.true_sizes(|size| sizes[size - first]);
        let element_type = argument.shape.element_type;
        let corner = draw.literal(&Shape::array(element_type, &own), setup.numbers);
        inputs.whole.push(embed(&corner, &junk(&argument.shape, &mut draw)));
        inputs.corners.push(corner);
    }
    inputs
}

/// Returns an array of numbers that no result may depend on.
fn junk(shape: &ArrayShape, draw: &mut Draw) -> Literal {
    let is_plain = shape.element_type != PrimitiveType::Pred && shape.element_type.bit_width() >= 8;
    if is_plain && draw.once_in(2) {
        let ones = vec![0xffu8; shape.byte_size() as usize];
        if let Some(literal) =
            Literal::from_bytes(ArrayShape::new(shape.element_type, &shape.sizes()), ones.into())
        {
            return literal;
        }
    }
    draw.literal(&Shape::array(shape.element_type, &shape.sizes()), Numbers::Bits)
}

/// Returns an array with another one in its corner.
fn embed(corner: &Literal, whole: &Literal) -> Literal {
    let (shape, sizes) = (whole.array_shape(), corner.array_shape().sizes());
    let (have, bytes) = (shape.sizes(), shape.element_type.byte_size());
    let mut data = whole.bytes().to_vec();
    let Some((&row, rows)) = sizes.split_last() else { return corner.clone() };
    let row = row as usize * bytes;
    for (k, mut at) in indices(rows).enumerate().filter(|_| row > 0) {
        at.push(0);
        let start = linear_index(&have, &at) as usize * bytes;
        data[start..start + row].copy_from_slice(&corner.bytes()[k * row..][..row]);
    }
    Literal::from_bytes(shape.clone(), data.into()).unwrap_or_else(|| whole.clone())
}

/// Drops fetches, and replaces fetches by their nodes' inputs, while the graph keeps failing.
fn smallest(graph: &GraphDef, config: &Config, setup: &Setup, seed: u64, why: &str) -> (Config, String) {
    let (mut best, mut reason) = (config.clone(), why.to_owned());
    let begin = Instant::now();
    let fails = |config: &Config| {
        if begin.elapsed() > Duration::from_secs(40) {
            return None;
        }
        match check(graph, config, setup, seed, &mut Vec::new()) {
            Outcome::Failed(why) => Some(why),
            _ => None,
        }
    };
    'shrink: loop {
        if best.fetch.len() > 1 {
            for fetch in &best.fetch {
                let candidate = Config { fetch: vec![fetch.clone()], ..best.clone() };
                if let Some(why) = fails(&candidate) {
                    (best, reason) = (candidate, why);
                    continue 'shrink;
                }
            }
        }
        let own = best.fetch.first().and_then(|fetch| fetch.id.clone()).unwrap_or_default();
        let node = graph.node.iter().find(|node| node.name == own.node_name);
        for input in node.iter().flat_map(|node| &node.input).filter(|_| best.fetch.len() == 1) {
            let (node_name, output) = input.split_once(':').unwrap_or((input, "0"));
            let mut fetch = best.fetch[0].clone();
            fetch.id = Some(tf::proto::TensorId {
                node_name: node_name.to_owned(),
                output_index: output.parse().unwrap_or(0),
            });
            let candidate = Config { fetch: vec![fetch], ..best.clone() };
            if let Some(why) = fails(&candidate) {
                (best, reason) = (candidate, why);
                continue 'shrink;
            }
        }
        break;
    }
    // Feeds that do not matter.
    let mut k = 0;
    while k < best.feed.len() {
        let mut candidate = best.clone();
        candidate.feed.remove(k);
        match fails(&candidate) {
            Some(why) if !why.starts_with("importing") => (best, reason) = (candidate, why),
            _ => k += 1,
        }
    }
    (best, reason)
}

/// Returns the nodes that the fetches need.
fn upstream(graph: &GraphDef, config: &Config) -> GraphDef {
    let mut names: BTreeSet<String> =
        config.fetch.iter().filter_map(|fetch| Some(fetch.id.as_ref()?.node_name.clone())).collect();
    for node in graph.node.iter().rev() {
        if names.contains(&node.name) {
            let name = |input: &String| input.split(':').next().unwrap_or_default().to_owned();
            names.extend(node.input.iter().map(name));
        }
    }
    let mut graph = graph.clone();
    graph.node.retain(|node| names.contains(&node.name));
    graph
}
