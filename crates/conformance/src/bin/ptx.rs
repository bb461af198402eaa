//! Compiles recorded cases for NVIDIA's GPUs and assembles all kernels, on machines without a GPU.

use conformance::arguments::{self, Arguments};
use conformance::assemble::{KernelReport, assemble};
use conformance::case::read_case;
use conformance::select::{find, narrowed};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::Result;

const HELP: &str = "\
Compiles recorded cases for NVIDIA's GPUs, and assembles their kernels with ptxas.

    ptx DIR... --ptxas FILE [flags]

    --arch NAME          architecture, such as sm_80; can be repeated (default: sm_80 and sm_90a)
    --only REGEX|OP      only cases with this TensorFlow op or a matching name
    --sample N           only N cases, spread over all
    --report FILE        write one line per kernel: case,kernel,arch,registers,workgroup bytes,spilled bytes,stack bytes

Cases that the compiler rejects are listed, and do not count as failed. Last line: `N passed, M failed`. A case fails
if ptxas rejects a kernel, or a kernel stores registers to memory; up to 16 bytes of a kernel with at most 48 registers
are counted, not failed.
";

/// Results of all cases and architectures.
#[derive(Default)]
struct Totals {
    passed: usize,
    kernels: usize,
    /// Kernels with few registers that store some of them to memory.
    small_spills: usize,
    failures: Vec<String>,
    rejected: Vec<String>,
    lines: Vec<String>,
}

fn main() -> ExitCode {
    arguments::main("ptx", HELP, run)
}

fn run(words: Vec<String>) -> std::result::Result<bool, String> {
    let mut arguments = Arguments::new(words);
    let ptxas: OsString = arguments.value("--ptxas")?.ok_or("expected --ptxas FILE")?;
    let mut architectures: Vec<String> = arguments.values("--arch")?;
    if architectures.is_empty() {
        architectures = ["sm_80", "sm_90a"].map(str::to_owned).to_vec();
    }
    let only: Option<String> = arguments.value("--only")?;
    let count: Option<usize> = arguments.value("--sample")?;
    let report: Option<PathBuf> = arguments.value("--report")?;
    let directories: Vec<PathBuf> = arguments.rest()?.into_iter().map(PathBuf::from).collect();
    let cases = find(&directories).and_then(|cases| narrowed(cases, only.as_deref(), count));
    let cases = cases.map_err(|e| e.to_string())?;
    if cases.is_empty() {
        return Err("no case selected".to_owned());
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (next, totals) = (AtomicUsize::new(0), Mutex::new(Totals::default()));
    let work = |worker: usize| {
        let scratch = folder.path().join(format!("kernels{worker}"));
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            for architecture in &architectures {
                let outcome = one(&case.path, architecture, &ptxas, &scratch);
                let mut totals = totals.lock().expect("no thread panics while it holds the lock");
                totals.add(&case.name, architecture, outcome);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|worker| drop(scope.spawn(move || work(worker)))));
    let mut totals = totals.into_inner().map_err(|_| "a thread panicked".to_owned())?;
    totals.lines.sort();
    if let Some(path) = report {
        std::fs::write(&path, totals.lines.concat()).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    totals.rejected.sort();
    totals.rejected.iter().for_each(|line| println!("rejected: {line}"));
    totals.failures.sort();
    totals.failures.iter().for_each(|line| println!("failed: {line}"));
    println!(
        "{} kernels, {} of them with at most 48 registers and 16 spilled bytes; {} cases rejected by the compiler",
        totals.kernels,
        totals.small_spills,
        totals.rejected.len()
    );
    println!("{} passed, {} failed", totals.passed, totals.failures.len());
    Ok(totals.failures.is_empty() && totals.passed > 0)
}

/// Outcome of a case.
enum Outcome {
    Assembled(Vec<KernelReport>),
    Rejected(String),
    Failed(String),
}

fn one(path: &Path, architecture: &str, ptxas: &OsString, scratch: &Path) -> Outcome {
    let result: Result<Vec<KernelReport>> =
        read_case(path).and_then(|case| assemble(&case, architecture, ptxas, scratch));
    match result {
        Ok(kernels) => Outcome::Assembled(kernels),
        Err(error) if error.kind() == support::ErrorKind::Internal => Outcome::Failed(error.to_string()),
        Err(error) => Outcome::Rejected(error.to_string()),
    }
}

/// True if ptxas stores a few bytes although the kernel could have more registers: it bounds those
/// of small kernels by itself, for more threads on a multiprocessor. Kernels of products have more.
fn is_by_choice(kernel: &KernelReport) -> bool {
    const FEW_REGISTERS: u64 = 48;
    const FEW_BYTES: u64 = 16;
    kernel.registers <= FEW_REGISTERS && kernel.spill_bytes <= FEW_BYTES
}

impl Totals {
    fn add(&mut self, case: &str, architecture: &str, outcome: Outcome) {
        match outcome {
            Outcome::Rejected(why) => self.rejected.push(format!("{case}, {architecture}: {why}")),
            Outcome::Failed(why) => self.failures.push(format!("{case}, {architecture}: {why}")),
            Outcome::Assembled(kernels) => {
                self.kernels += kernels.len();
                self.small_spills += kernels.iter().filter(|k| k.spill_bytes > 0 && is_by_choice(k)).count();
                let spilled = kernels.iter().find(|kernel| kernel.spill_bytes > 0 && !is_by_choice(kernel));
                match spilled {
                    None => self.passed += 1,
                    Some(kernel) => self.failures.push(format!(
                        "{case}, {architecture}: kernel {} stores {} bytes of registers to memory",
                        kernel.kernel, kernel.spill_bytes
                    )),
                }
                self.lines.extend(kernels.iter().map(|k| {
                    format!(
                        "{case},{},{architecture},{},{},{},{}\n",
                        k.kernel, k.registers, k.workgroup_bytes, k.spill_bytes, k.stack_bytes
                    )
                }));
            }
        }
    }
}
