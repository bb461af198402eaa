//! Runs a pack of device programs on a machine with a GPU, where neither the compiler nor LLVM is
//! installed. `scripts/gpu/pack.sh` makes the pack. `run.sh` in it calls this program and the
//! peers.

mod cases;
mod models;

use device::{Device, Kind, Options};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use support::{Error, Result};

const HELP: &str = "\
Runs a pack of device programs and writes one JSON object.

    gpu-check PACK --json FILE [--kind cuda|opencl] [--device N] [--only TEXT] [--no-speed]

PACK/cases has recorded cases: NAME.npz with the answers, NAME.device, NAME.constants, NAME.json. PACK/models has
programs to measure. Last line: `N passed, M failed`. Exit status: 0 if nothing failed, 1 if something did, 2 if
nothing could be run.
";

/// The command line.
struct Arguments {
    pack: PathBuf,
    json: PathBuf,
    kind: Kind,
    ordinal: usize,
    only: Option<String>,
    has_speed: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(arguments) = parse(&words) else {
        print!("{HELP}");
        return ExitCode::from(2);
    };
    match run(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu-check: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[String]) -> Option<Arguments> {
    let (mut pack, mut json, mut only) = (None, None, None);
    let (mut kind, mut ordinal, mut has_speed) = (Kind::Cuda, 0, true);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--json" => json = Some(PathBuf::from(rest.next()?)),
            "--kind" => kind = if rest.next()? == "opencl" { Kind::OpenCl } else { Kind::Cuda },
            "--device" => ordinal = rest.next()?.parse().ok()?,
            "--only" => only = Some(rest.next()?.clone()),
            "--no-speed" => has_speed = false,
            flag if flag.starts_with('-') => return None,
            path => pack = Some(PathBuf::from(path)),
        }
    }
    Some(Arguments { pack: pack?, json: json?, kind, ordinal, only, has_speed })
}

/// Runs everything. Returns the number of failed cases.
fn run(arguments: &Arguments) -> Result<usize> {
    let device = Device::open(&Options::new(arguments.kind, arguments.ordinal))?;
    let info = device.info()?;
    println!("{}, {} multiprocessors", info.name, info.processors);
    let is_chosen = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let cases = cases::run(&arguments.pack.join("cases"), &device, &is_chosen)?;
    let failed = cases.iter().filter(|case| case.error.is_some()).count();
    let models = if arguments.has_speed {
        models::run(&arguments.pack.join("models"), &device, &is_chosen)?
    } else {
        Vec::new()
    };
    let report = json!({
        "device": {
            "kind": arguments.kind.name(),
            "name": info.name,
            "architecture": info.architecture,
            "processors": info.processors,
            "memory_bytes": info.memory_bytes,
            "driver_version": info.driver_version,
        },
        "passed": cases.len() - failed,
        "failed": cases.iter().filter_map(cases::Outcome::to_json).collect::<Vec<Value>>(),
        "models": models,
    });
    write(&arguments.json, &format!("{report:#}\n"))?;
    for case in cases.iter().filter(|case| case.error.is_some()) {
        println!("failed: {}: {}", case.name, case.error.as_deref().unwrap_or_default());
    }
    println!("{} passed, {failed} failed", cases.len() - failed);
    Ok(failed)
}

/// Returns the names in a folder whose files have an extension, sorted.
fn names(folder: &Path, extension: &str) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)
        .map_err(|e| Error::invalid(format!("cannot list {}: {e}", folder.display())))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let fits = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    let mut names: Vec<String> =
        fits.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| Error::invalid(format!("cannot read {}: {e}", path.display())))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| Error::invalid(format!("cannot write {}: {e}", path.display())))
}
