//! Measures the speed of a program, as a whole and per kernel, relative to the machine's peak.

mod report;

use crate::Progress;
use crate::device_profile::device_peak;
use crate::fill::{Fill, Random};
use crate::kernels::{Kernel, extract, kernels, nodes, program_cost};
use crate::latency::Latency;
use crate::peak::{Peak, measure_peak};
use compiler::{BackOptions, Compiled, Executable, NoObserver, compile_optimized, in_process_options};
use hlo::Module;
use hlo::analysis::Cost;
use shape::Literal;
use std::collections::BTreeMap;
use support::Result;
use target::Target;

/// Options of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchOptions {
    /// Approximate duration of each measurement in seconds.
    pub seconds: f64,
    /// Thread counts to run with, including the caller's thread.
    pub threads: Vec<usize>,
    /// True to time each kernel alone, too.
    pub kernels: bool,
    /// True to measure the machine's peak.
    pub peak: bool,
}

/// The measurement for one thread count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadsTime {
    /// Number of threads.
    pub threads: usize,
    /// Time of a run.
    pub latency: Latency,
    /// The machine's peak with the same number of threads.
    pub peak: Option<Peak>,
}

/// The measurement of a kernel alone, shared by all identical kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTime {
    /// Instruction name of the first instance.
    pub name: String,
    /// Opcode, or the main operation of a fusion.
    pub kind: &'static str,
    /// TensorFlow nodes from which the kernel originates.
    pub nodes: Vec<String>,
    /// Number of instances in the program.
    pub instances: usize,
    /// Operations and memory traffic of one instance.
    pub cost: Cost,
    /// Time of one instance on one thread; `None` if it cannot run alone.
    pub latency: Option<Latency>,
}

/// Results of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchReport {
    /// Operations and memory traffic of the whole program, of the largest sizes.
    pub cost: Cost,
    /// True if the measured runs have the largest sizes.
    pub is_largest: bool,
    /// Number of kernels.
    pub kernel_count: usize,
    /// Size of the temporary block in bytes.
    pub temps_bytes: u64,
    /// Size of the constants in bytes.
    pub constants_bytes: u64,
    /// One entry per thread count.
    pub times: Vec<ThreadsTime>,
    /// Kernels, longest total time first; empty if not requested.
    pub kernels: Vec<KernelTime>,
}

/// Measures a compiled program with the given arguments.
pub fn bench(
    compiled: &Compiled,
    arguments: &[Literal],
    target: &Target,
    options: &BenchOptions,
    progress: &mut Progress<'_>,
) -> Result<BenchReport> {
    let executable = Executable::load(compiled)?;
    let mut session = executable.session(arguments)?;
    let mut times = Vec::new();
    for (number, &threads) in options.threads.iter().enumerate() {
        progress("measuring runs", number, options.threads.len());
        session.set_threads(threads)?;
        let latency = Latency::measure(options.seconds, || session.run())?;
        let measure = || match &compiled.open_device {
            Some(device) => device_peak(device),
            None => measure_peak(target, threads),
        };
        if options.peak {
            progress("measuring the machine's peak", number, options.threads.len());
        }
        let peak = options.peak.then(measure).transpose()?;
        times.push(ThreadsTime { threads, latency, peak });
    }
    let module = &compiled.module;
    let is_largest = module.size_parameters().iter().all(|size| {
        let given = arguments.get(size.parameter).map(|size| size.scalar_at(0).as_i64());
        given == Some(Some(size.high))
    });
    Ok(BenchReport {
        cost: program_cost(module),
        is_largest,
        kernel_count: kernels(module).len(),
        temps_bytes: compiled.code.assignment.temps_size,
        constants_bytes: compiled.constants.size,
        times,
        kernels: if options.kernels {
            kernel_times(compiled, target, options.seconds, progress)?
        } else {
            Vec::new()
        },
    })
}

/// Times each kernel alone on random operands, measuring identical kernels once.
fn kernel_times(
    compiled: &Compiled,
    target: &Target,
    seconds: f64,
    progress: &mut Progress<'_>,
) -> Result<Vec<KernelTime>> {
    let module = &compiled.module;
    let all = kernels(module);
    let mut groups: BTreeMap<String, Vec<Kernel>> = BTreeMap::new();
    for &kernel in &all {
        let key = extract(module, kernel).map_or_else(|_| format!("{kernel:?}"), |alone| alone.key);
        groups.entry(key).or_default().push(kernel);
    }
    let each = seconds / (groups.len().max(1) as f64).sqrt().max(1.0) / 2.0;
    let mut times = Vec::new();
    for (number, group) in groups.values().enumerate() {
        progress("measuring kernels", number, groups.len());
        let kernel = group[0];
        let instruction = &module[kernel.computation][kernel.instruction];
        times.push(KernelTime {
            name: instruction.name().to_owned(),
            kind: crate::kernels::kind(module, kernel),
            nodes: nodes(module, kernel),
            instances: group.len(),
            cost: kernel.cost(module),
            latency: match extract(module, kernel) {
                Ok(alone) => Some(time_alone(alone.module, target, compiled, each)?),
                Err(_) => None,
            },
        });
    }
    times.sort_by(|a, b| b.total().total_cmp(&a.total()).then_with(|| a.name.cmp(&b.name)));
    Ok(times)
}

fn time_alone(module: Module, target: &Target, whole: &Compiled, seconds: f64) -> Result<Latency> {
    let plan = whole.plan_options.clone();
    let mut options = BackOptions { plan, ..in_process_options(target.clone()) };
    if let Some(device) = &whole.open_device {
        options = options.on_device(device.clone())?;
    }
    let compiled = compiler::guarded(|| compile_optimized(module, &options, &mut NoObserver))?;
    let executable = Executable::load(&compiled)?;
    let random = Random::new(0);
    let array =
        |(k, argument): (usize, &hlo::Argument)| Fill::Random.array(&argument.shape, &mut random.fork(k));
    let arguments: Vec<Literal> =
        executable.interface().arguments().iter().enumerate().map(array).collect::<Result<_>>()?;
    let mut session = executable.session(&arguments)?;
    Latency::measure(seconds, || session.run())
}

impl KernelTime {
    /// Returns the seconds of all instances in one run.
    pub fn total(&self) -> f64 {
        self.latency.map_or(0.0, |latency| latency.p50 * self.instances as f64)
    }
}
