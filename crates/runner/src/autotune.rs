//! Finds the fastest candidate for each kernel on this machine.
//!
//! First, each distinct contraction of a program is compiled alone with each of its candidates, and
//! these alternate. Between runs, the caches approach their state within the program: if the
//! program exceeds the second-level cache, the kernel's constants are evicted, whereas its
//! arguments and results are present.
//!
//! This step proposes candidates. A kernel's effect on the caches and on its neighbors shows only
//! within the program, so each proposal is then confirmed there: the program with it and the
//! program without it alternate.
//!
//! Only times of alternating runs are compared, by the median of their ratios, never with times
//! measured at other moments: other work on the machine slows both down.

use crate::Progress;
use crate::fill::{Fill, Random};
use crate::kernels::{Extracted, Kernel, extract, kernels, program_cost};
use compiler::tuning::{candidates, kernel_of, machine};
use compiler::{
    BackOptions, Candidate, Choices, Executable, NoObserver, PlanOptions, Session, compile_optimized,
    in_process_options,
};
use hlo::{InstructionId, Module};
use shape::Literal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use support::Result;
use target::Target;

/// Result of autotuning.
#[derive(Clone, Debug, Default)]
pub struct Autotuned {
    /// The fastest candidates for kernels that the given choices do not name.
    pub choices: Choices,
    /// Kernels with several candidates, longest total time first.
    pub kernels: Vec<Tuned>,
    /// Number of kernels skipped because the time was up.
    pub left: usize,
}

/// The measurements of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The plan's description of the kernel.
    pub kernel: String,
    /// Number of instances in the program.
    pub instances: usize,
    /// Each candidate that compiled, starting with the planner's choice, with its time in
    /// seconds.
    pub times: Vec<(Candidate, f64)>,
    /// Index of the chosen candidate.
    pub chosen: usize,
    /// Time of the program with the proposal, relative to the time without it.
    pub in_program: Option<f64>,
}

impl Tuned {
    /// Returns the seconds of one run with the planner's choice and with the chosen candidate.
    pub fn seconds(&self) -> (f64, f64) {
        (self.times[0].1, self.times[self.chosen].1)
    }
}

/// Minimum relative gain of a candidate alone, and minimum share of the predicted gain that it must
/// achieve in the program, to replace the planner's choice.
const LEAST_GAIN: f64 = 0.02;
const LEAST_SHARE: f64 = 0.25;

/// Candidates slower than the best by this factor are dropped.
const HOPELESS: f64 = 1.25;

/// Number of rounds before candidates are dropped, and in total.
const TRIALS: usize = 7;
const MOST_ROUNDS: usize = 400;

/// Seconds for a kernel's rounds, and for a proposal's in the program, if the budget permits.
const KERNEL_SECONDS: f64 = 0.6;
const PROGRAM_SECONDS: f64 = 3.0;

/// Share of the time for measuring kernels alone.
const ALONE: f64 = 0.5;

/// Shorter runs are timed in groups.
const MIN_SAMPLE: f64 = 2e-6;

/// Measures the kernels of an optimized module for about `seconds`, longest first. Choices in the
/// options are kept.
pub fn autotune(
    module: &Module,
    target: &Target,
    options: &PlanOptions,
    seconds: f64,
    progress: &mut Progress<'_>,
) -> Result<Autotuned> {
    let begin = Instant::now();
    let machine = machine(target);
    let mut distinct: BTreeMap<String, (Kernel, usize)> = BTreeMap::new();
    for kernel in kernels(module) {
        let Some(text) = kernel_of(module, &module[kernel.computation], kernel.instruction) else { continue };
        if options.choices.get(&machine, &text).is_none() {
            distinct.entry(text).or_insert((kernel, 0)).1 += 1;
        }
    }
    let work = |kernel: Kernel, count: usize| {
        let cost = kernel.cost(module);
        cost.flops.saturating_mul(count as u64)
    };
    let mut all: Vec<(String, Kernel, usize)> = distinct.into_iter().map(|(t, (k, n))| (t, k, n)).collect();
    all.sort_by(|a, b| work(b.1, b.2).cmp(&work(a.1, a.2)).then_with(|| a.0.cmp(&b.0)));
    let caches = Caches::of(module, target);
    let tuning = Tuning { module, target, options };
    let mut result = Autotuned::default();
    for (number, (text, kernel, instances)) in all.iter().enumerate() {
        let remaining = seconds * ALONE - begin.elapsed().as_secs_f64();
        if remaining <= 0.0 {
            result.left = all.len() - number;
            break;
        }
        let each = (remaining / (all.len() - number) as f64 * 2.0).min(KERNEL_SECONDS);
        progress("measuring kernels", number, all.len());
        if let Some(mut tuned) = tuning.tune(*kernel, text, &caches, each)? {
            tuned.instances = *instances;
            result.kernels.push(tuned);
        }
    }
    let budget = || seconds - begin.elapsed().as_secs_f64();
    tuning.confirm(&mut result, &budget, progress)?;
    let total = |tuned: &Tuned| tuned.seconds().0 * tuned.instances as f64;
    result.kernels.sort_by(|a, b| total(b).total_cmp(&total(a)));
    Ok(result)
}

/// A program with the machine and the options that it is tuned for.
#[derive(Clone, Copy)]
struct Tuning<'a> {
    module: &'a Module,
    target: &'a Target,
    options: &'a PlanOptions,
}

impl Tuning<'_> {
    /// Tries the proposals in the program, most promising first. Keeps a proposal that achieves its
    /// gain, and the planner's choice otherwise.
    fn confirm(
        &self,
        result: &mut Autotuned,
        budget: &dyn Fn() -> f64,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let machine = machine(self.target);
        let gain = |tuned: &Tuned| (tuned.seconds().0 - tuned.seconds().1) * tuned.instances as f64;
        result.kernels.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        for tuned in &result.kernels {
            result.choices.set(&machine, &tuned.kernel, tuned.times[0].0);
        }
        let proposed = result.kernels.iter().filter(|tuned| tuned.chosen != 0).count();
        if proposed == 0 {
            return Ok(());
        }
        let known = &self.options.choices;
        let mut program = Trial::new(self, known.and(&result.choices))?;
        let proposals = result.kernels.iter_mut().filter(|tuned| tuned.chosen != 0);
        for (number, tuned) in proposals.enumerate() {
            let remaining = budget();
            let proposal = tuned.times[std::mem::take(&mut tuned.chosen)].0;
            if remaining <= 0.0 {
                continue;
            }
            progress("trying proposals in the program", number, proposed);
            let mut choices = result.choices.clone();
            choices.set(&machine, &tuned.kernel, proposal);
            let mut other = Trial::new(self, known.and(&choices))?;
            let ratio =
                program.against(&mut other, (remaining / (proposed - number) as f64).min(PROGRAM_SECONDS))?;
            tuned.in_program = Some(ratio);
            let number = tuned.times.iter().position(|time| time.0 == proposal).unwrap_or(0);
            let promised = (tuned.times[0].1 - tuned.times[number].1) * tuned.instances as f64;
            if ratio < 1.0 - LEAST_SHARE * promised / program.seconds.max(1e-9) {
                tuned.chosen = number;
                program = other;
                result.choices = choices;
            }
        }
        Ok(())
    }

    /// Measures the candidates of one kernel. Returns `None` if it has fewer than two, or cannot
    /// run alone.
    fn tune(&self, kernel: Kernel, text: &str, caches: &Caches, seconds: f64) -> Result<Option<Tuned>> {
        let Self { module, target, options } = *self;
        let Ok(Extracted { module: alone, .. }) = extract(module, kernel) else { return Ok(None) };
        // Alone, the kernel may no longer match its description.
        let Some(instruction) = instruction_of(&alone, text) else { return Ok(None) };
        let all = candidates(&alone, alone.entry_computation(), instruction, target, options);
        let mut programs = Vec::new();
        let mut objects = std::collections::BTreeSet::new();
        for &candidate in &all {
            let mut choices = Choices::default();
            choices.set(&machine(target), text, candidate);
            let plan = PlanOptions { choices: Arc::new(choices), ..options.clone() };
            let options = BackOptions { plan, ..in_process_options(target.clone()) };
            let alone = alone.clone();
            let compiled = compiler::guarded(|| compile_optimized(alone, &options, &mut NoObserver));
            match compiled {
                // Candidates may differ only in name if the shape leaves no choice.
                Ok(compiled) if !objects.insert(compiled.code.output.object.clone()) => {}
                Ok(compiled) => programs.push((candidate, Executable::load(&compiled)?)),
                // The default choice must compile. Other candidates may exceed limits.
                Err(error) if programs.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        if programs.len() < 2 {
            return Ok(None);
        }
        let arguments = random_arguments(&programs[0].1)?;
        let mut sessions = programs
            .iter()
            .map(|(_, program)| program.session(&arguments))
            .collect::<Result<Vec<Session<'_>>>>()?;
        let times = rounds(&mut sessions, &arguments, caches, seconds)?;
        let times: Vec<(Candidate, f64)> = programs.iter().map(|p| p.0).zip(times).collect();
        let best = (0..times.len()).min_by(|&a, &b| times[a].1.total_cmp(&times[b].1)).unwrap_or(0);
        let gains = times[best].1 < times[0].1 * (1.0 - LEAST_GAIN);
        let chosen = if gains { best } else { 0 };
        Ok(Some(Tuned { kernel: text.to_owned(), instances: 1, times, chosen, in_program: None }))
    }
}

/// A program with some choices, ready to run.
struct Trial {
    program: Executable,
    arguments: Vec<Literal>,
    /// Shortest time of a run.
    seconds: f64,
}

impl Trial {
    fn new(tuning: &Tuning<'_>, choices: Choices) -> Result<Self> {
        let plan = PlanOptions { choices: Arc::new(choices), ..tuning.options.clone() };
        let options = BackOptions { plan, ..in_process_options(tuning.target.clone()) };
        let module = tuning.module.clone();
        let compiled = compiler::guarded(|| compile_optimized(module, &options, &mut NoObserver))?;
        let program = Executable::load(&compiled)?;
        let arguments = random_arguments(&program)?;
        Ok(Self { program, arguments, seconds: f64::INFINITY })
    }

    /// Returns the time of another version relative to this one. Both alternate for about
    /// `seconds`.
    fn against(&mut self, other: &mut Self, seconds: f64) -> Result<f64> {
        let mut sessions = [self.program.session(&self.arguments)?, other.program.session(&other.arguments)?];
        let mut ratios = Vec::new();
        let begin = Instant::now();
        for session in &mut sessions {
            session.run()?;
        }
        let mut run = |number: usize| -> Result<f64> {
            let start = Instant::now();
            sessions[number].run()?;
            Ok(start.elapsed().as_secs_f64())
        };
        while ratios.len() < TRIALS || (ratios.len() < 100_000 && begin.elapsed().as_secs_f64() < seconds) {
            // Each version runs first equally often.
            let first = ratios.len() % 2;
            let (a, b) = (run(first)?, run(1 - first)?);
            let (own, others) = if first == 0 { (a, b) } else { (b, a) };
            self.seconds = self.seconds.min(own);
            other.seconds = other.seconds.min(others);
            ratios.push(others / own);
        }
        Ok(median(ratios))
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}

fn random_arguments(program: &Executable) -> Result<Vec<Literal>> {
    let random = Random::new(0);
    let array =
        |(k, argument): (usize, &hlo::Argument)| Fill::Random.array(&argument.shape, &mut random.fork(k));
    program.interface().arguments().iter().enumerate().map(array).collect()
}

/// Returns the instruction of a module with this description.
fn instruction_of(module: &Module, text: &str) -> Option<InstructionId> {
    let entry = module.entry_computation();
    let order = entry.post_order();
    order.into_iter().find(|&id| kernel_of(module, entry, id).as_deref() == Some(text))
}

/// Returns the time of each program, with all alternating: the first program's minimum times the
/// median ratio to the first program's time in the same round.
fn rounds(
    sessions: &mut [Session<'_>],
    arguments: &[Literal],
    caches: &Caches,
    seconds: f64,
) -> Result<Vec<f64>> {
    let mut groups = vec![1usize; sessions.len()];
    for (session, group) in sessions.iter_mut().zip(&mut groups) {
        session.run()?;
        let start = Instant::now();
        session.run()?;
        if caches.evicted.is_empty() {
            *group =
                (MIN_SAMPLE / start.elapsed().as_secs_f64().max(1e-9)).ceil().clamp(1.0, 1000.0) as usize;
        }
    }
    let mut least = f64::INFINITY;
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); sessions.len()];
    let mut is_hopeless = vec![false; sessions.len()];
    let begin = Instant::now();
    for round in 0..MOST_ROUNDS {
        if round >= TRIALS && begin.elapsed().as_secs_f64() > seconds {
            break;
        }
        if round == TRIALS {
            let medians: Vec<f64> = ratios.iter().map(|series| median(series.clone())).collect();
            let best = medians.iter().copied().fold(f64::INFINITY, f64::min);
            is_hopeless = medians.iter().map(|&ratio| ratio > best * HOPELESS).collect();
        }
        let mut times = vec![f64::NAN; sessions.len()];
        for turn in 0..sessions.len() {
            // Rotate the order, so that no program always follows the slowest one.
            let number = (turn + round) % sessions.len();
            if number != 0 && is_hopeless[number] {
                continue;
            }
            let session = &mut sessions[number];
            caches.prepare(session, arguments)?;
            let start = Instant::now();
            for _ in 0..groups[number] {
                session.run()?;
            }
            times[number] = start.elapsed().as_secs_f64() / groups[number] as f64;
        }
        least = least.min(times[0]);
        for (series, time) in ratios.iter_mut().zip(&times).filter(|(_, time)| !time.is_nan()) {
            series.push(time / times[0]);
        }
    }
    Ok(ratios.into_iter().map(|series| median(series) * least).collect())
}

/// The state in which the rest of the program leaves the caches.
struct Caches {
    /// Memory that evicts everything else when it is read; empty if the program fits the
    /// second-level cache.
    evicted: Vec<u64>,
}

impl Caches {
    fn of(module: &Module, target: &Target) -> Self {
        let bytes = program_cost(module).bytes();
        let size = if bytes <= target.l2_bytes { 0 } else { target.l2_bytes.saturating_mul(2).min(64 << 20) };
        Self { evicted: vec![1; (size / 8) as usize] }
    }

    /// Restores the state of the caches at the beginning of a kernel within the program.
    fn prepare(&self, session: &mut Session<'_>, arguments: &[Literal]) -> Result<()> {
        if self.evicted.is_empty() {
            return Ok(());
        }
        self.evict();
        // Results are written to recently used memory.
        std::hint::black_box(session.results()?);
        for (k, argument) in arguments.iter().enumerate() {
            session.set_argument(k, argument)?;
        }
        Ok(())
    }

    fn evict(&self) {
        // One word per cache line.
        let sum = self.evicted.iter().step_by(8).fold(0u64, |sum, &word| sum.wrapping_add(word));
        std::hint::black_box(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = r"
HloModule two

fused {
  x = f32[9,40] parameter(0)
  y = f32[40,70] parameter(1)
  d = f32[9,70] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  zeros = f32[9,70] broadcast(zero), dimensions={}
  ROOT r = f32[9,70] maximum(d, zeros)
}

ENTRY main {
  p = f32[9,40] parameter(0)
  q = f32[40,70] parameter(1)
  n = f32[9,40] negate(p)
  first = f32[9,70] fusion(p, q), kind=kOutput, calls=fused
  second = f32[9,70] fusion(n, q), kind=kOutput, calls=fused
  ROOT root = (f32[9,70], f32[9,70]) tuple(first, second)
}
";

    #[test]
    fn like_kernels_are_measured_once_and_known_ones_not_at_all() {
        let module = hlo::parse(MODULE).unwrap();
        let target = compiler::host("native").unwrap();
        let options = PlanOptions::default();
        let tuned = autotune(&module, &target, &options, 0.2, &mut |_, _, _| ()).unwrap();
        assert_eq!((tuned.kernels.len(), tuned.choices.len(), tuned.left), (1, 1, 0));
        let kernel = &tuned.kernels[0];
        assert_eq!(kernel.instances, 2);
        assert!(kernel.times.len() > 1 && kernel.times.iter().all(|time| time.1 > 0.0), "{kernel:?}");
        assert_eq!(tuned.choices.get(&machine(&target), &kernel.kernel), Some(kernel.times[kernel.chosen].0));
        let options = PlanOptions { choices: Arc::new(tuned.choices), ..options };
        let again = autotune(&module, &target, &options, 0.2, &mut |_, _, _| ()).unwrap();
        assert!(again.kernels.is_empty() && again.choices.is_empty());
    }

    #[test]
    fn without_time_nothing_is_measured() {
        let module = hlo::parse(MODULE).unwrap();
        let target = compiler::host("native").unwrap();
        let tuned = autotune(&module, &target, &PlanOptions::default(), 0.0, &mut |_, _, _| ()).unwrap();
        assert_eq!((tuned.kernels.len(), tuned.left), (0, 1));
    }
}
