//! Packs recorded cases and modules as device programs, for `gpu-check` on another machine.

use conformance::arguments::{self, Arguments};
use conformance::engine::{DeviceFiles, device_files_of};
use conformance::pack::{Packed, pack};
use conformance::select::{find, narrowed};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Error, Result};
use target::Target;

const HELP: &str = "\
Packs recorded cases as device programs.

    gpu-pack DIR... --out FOLDER [flags]

    --arch NAME          architecture, such as sm_80, or opencl; can be repeated (default: sm_80 and sm_90a)
    --only REGEX|OP      only cases with this TensorFlow op or a matching name
    --sample N           only N cases, spread over all
    --model NAME=FILE    also packs the StableHLO or HLO module in the file; can be repeated

Writes FOLDER/cases and FOLDER/models. Cases that the compiler rejects are listed. Last line: `N passed, M failed`.
";

fn main() -> ExitCode {
    arguments::main("gpu-pack", HELP, run)
}

fn run(words: Vec<String>) -> std::result::Result<bool, String> {
    let mut arguments = Arguments::new(words);
    let out: PathBuf = arguments.value("--out")?.ok_or("expected --out FOLDER")?;
    let mut names: Vec<String> = arguments.values("--arch")?;
    if names.is_empty() {
        names = ["sm_80", "sm_90a"].map(str::to_owned).to_vec();
    }
    let only: Option<String> = arguments.value("--only")?;
    let count: Option<usize> = arguments.value("--sample")?;
    let models: Vec<String> = arguments.values("--model")?;
    let directories: Vec<PathBuf> = arguments.rest()?.into_iter().map(PathBuf::from).collect();
    let target = |name: &String| if name == "opencl" { Target::opencl() } else { Target::cuda(name) };
    let devices = names.iter().map(target).collect::<Result<Vec<Target>>>().map_err(|e| e.to_string())?;
    let cases = find(&directories).and_then(|cases| narrowed(cases, only.as_deref(), count));
    let cases = cases.map_err(|e| e.to_string())?;
    let folder = out.join("cases");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (next, packed) = (AtomicUsize::new(0), Mutex::new(Vec::<Packed>::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let one = pack(case, &devices, &folder);
            packed.lock().expect("no thread panics while it holds the lock").push(one);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut packed = packed.into_inner().map_err(|_| "a thread panicked".to_owned())?;
    packed.sort_by(|a, b| a.name.cmp(&b.name));
    for model in &models {
        let (name, file) =
            model.split_once('=').ok_or_else(|| format!("--model {model}: expected NAME=FILE"))?;
        let bytes = pack_model(Path::new(file), &devices, &out.join("models"), name);
        packed.push(Packed { name: name.to_owned(), bytes });
    }
    let bytes: u64 = packed.iter().filter_map(|one| one.bytes.as_ref().ok()).sum();
    let failed: Vec<&Packed> = packed.iter().filter(|one| one.bytes.is_err()).collect();
    for one in &failed {
        println!(
            "rejected: {}: {}",
            one.name,
            one.bytes.as_ref().err().map_or(String::new(), Error::to_string)
        );
    }
    println!("{bytes} bytes");
    println!("{} passed, {} failed", packed.len() - failed.len(), failed.len());
    Ok(packed.len() > failed.len())
}

/// Packs the module in a file without its constants, which are random on the other machine.
fn pack_model(file: &Path, devices: &[Target], folder: &Path, name: &str) -> Result<u64> {
    let cannot = |e: std::io::Error| Error::invalid(format!("{}: {e}", file.display()));
    let text = std::fs::read_to_string(file).map_err(cannot)?;
    let module = if text.trim_start().starts_with("HloModule") {
        hlo::parse(&text)?
    } else {
        stablehlo::import(&mlir::parse(&text)?)?.module
    };
    let DeviceFiles { program, constants, interface } = device_files_of(module, devices)?;
    std::fs::create_dir_all(folder).map_err(cannot)?;
    let write = |extension: &str, bytes: &[u8]| {
        std::fs::write(folder.join(format!("{name}.{extension}")), bytes).map_err(cannot)
    };
    write("device", &program)?;
    write("constants", &constants)?;
    write("json", interface.to_string().as_bytes())?;
    Ok((program.len() + constants.len()) as u64)
}
