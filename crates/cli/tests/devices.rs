//! Builds programs of `tests/device/programs` for GPUs and runs them on an OpenCL driver for
//! processors, if `scripts/setup_gpu.sh` has installed it. Also checks the errors of `--target`.

use crate::support::{refuse, root, succeed, tfcompile};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// Builds the layer of `tests/artifacts` and the program with variables of `tests/consumer`.
fn build(directory: &Path, target: &str, flags: &[&str]) {
    let root = root();
    for (name, class, graph, config) in [
        ("layer", "ns::Layer", "artifacts/layer.pbtxt", "artifacts/layer.config.pbtxt"),
        ("train", "ns::Train", "consumer/variables/graph.pbtxt", "consumer/variables/config.pbtxt"),
    ] {
        let (graph, config) = (root.join("tests").join(graph), root.join("tests").join(config));
        let mut command = tfcompile(directory);
        command.arg("build").arg(graph).arg("--config").arg(config);
        command.args(["--target", target, "--name", name, "--class", class, "-q", "-o", "."]).args(flags);
        succeed(&mut command);
    }
}

/// The variables that let programs find the OpenCL driver, or `None` if it is not installed.
/// Installs it in CI.
pub fn opencl() -> Option<Vec<(String, String)>> {
    let is_required = std::env::var("CI").as_deref() == Ok("true");
    let home = std::env::var("XDG_CACHE_HOME")
        .unwrap_or_else(|_| std::env::var("HOME").unwrap_or_default() + "/.cache");
    if !is_required && !Path::new(&home).join("tfcompile/opencl-venv/.packages").exists() {
        println!("skipped: scripts/setup_gpu.sh has not installed an OpenCL driver");
        return None;
    }
    let output = succeed(Command::new("bash").arg(root().join("scripts/setup_gpu.sh")).arg("opencl"));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let variable = |line: &str| {
        let (name, value) = line.split_once('=').expect("an assignment");
        (name.to_owned(), value.to_owned())
    };
    Some(text.lines().map(variable).collect())
}

/// Compiles a program of `tests/device/programs` in the directory.
fn compile(directory: &Path, compiler: &[&str], source: &str, objects: &[&str]) {
    let root = root();
    let mut command = Command::new(compiler[0]);
    command.current_dir(directory).args(&compiler[1..]).args(WARNINGS).args(["-I.", "-Iinclude", "-I"]);
    command.arg(root.join("tests/artifacts")).arg(root.join("tests/device/programs").join(source));
    succeed(command.args(["-x", "none"]).args(objects).args(["-pthread", "-ldl", "-o", "program"]));
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Compiles and runs a program on OpenCL with several compilers.
fn run_on_opencl(flags: &[&str], source: &str, objects: &[&str], compilers: &[&[&str]]) {
    let out = directory();
    build(out.path(), "opencl", flags);
    let variables = opencl();
    for compiler in compilers {
        compile(out.path(), compiler, source, objects);
        if let Some(variables) = &variables {
            let program = out.path().join("program");
            succeed(Command::new(program).current_dir(out.path()).envs(variables.iter().cloned()));
        }
    }
}

#[test]
fn a_class_runs_on_opencl_in_host_and_device_memory() {
    run_on_opencl(
        &[],
        "layer.cc",
        &["layer.o", "train.o"],
        &[&["g++", "-std=c++17", "-O1"], &["clang++", "-std=c++20", "-O1", "-fno-exceptions", "-fno-rtti"]],
    );
}

#[test]
fn objects_move_between_translation_units() {
    let other = root().join("tests/device/programs/other_unit.cc");
    let other = other.to_str().expect("a path in UTF-8");
    for optimization in ["-O0", "-O2"] {
        run_on_opencl(&[], "units.cc", &[other, "layer.o"], &[&["g++", "-std=c++17", optimization]]);
    }
}

#[test]
fn a_c_header_runs_on_opencl_in_host_and_device_memory() {
    run_on_opencl(
        &["--emit=obj,c-header"],
        "layer.c",
        &["layer.o", "train.o"],
        &[&["gcc", "-std=c99", "-O1"], &["clang", "-std=c17"], &["g++", "-std=c++17", "-x", "c++"]],
    );
}

#[test]
fn the_test_and_the_benchmark_run_on_opencl() {
    let out = directory();
    build(out.path(), "opencl", &["--emit=obj,test,benchmark"]);
    let variables = opencl();
    for (source, flags) in
        [("layer_test.c", &[][..]), ("train_test.c", &[]), ("layer_benchmark.c", &["--max_iters=3"])]
    {
        let object = format!("{}.o", &source[..5]);
        let mut command = Command::new("gcc");
        command.current_dir(out.path()).args(["-std=c99", "-O1"]).args(WARNINGS).args([source, &object]);
        succeed(command.args(["-pthread", "-ldl", "-o", "program"]));
        if let Some(variables) = &variables {
            let mut program = Command::new(out.path().join("program"));
            program.args(flags).current_dir(out.path()).envs(variables.iter().cloned());
            succeed(&mut program);
            let output = program.arg("--device=1000").output().expect("started");
            assert_eq!(output.status.code(), Some(1), "{source}: no such device");
        }
    }
}

#[test]
fn standalone_headers_of_several_programs_share_the_runtime() {
    let out = directory();
    build(out.path(), "opencl", &["--standalone-header"]);
    assert!(!out.path().join("include").exists(), "the headers are inside");
    compile(out.path(), &["g++", "-std=c++17"], "layer.cc", &["layer.o", "train.o"]);
}

#[test]
fn a_rust_program_runs_on_opencl_in_host_and_device_memory() {
    let root = root();
    let out = directory();
    let package = root.join("tests/device/rust");
    for folder in ["src", "models"] {
        std::fs::create_dir(out.path().join(folder)).expect("a directory");
    }
    for file in ["build.rs", "src/main.rs", "src/device_memory.rs"] {
        std::fs::copy(package.join(file), out.path().join(file)).expect("copied");
    }
    for (name, graph, config) in [
        ("layer", "artifacts/layer.pbtxt", "artifacts/layer.config.pbtxt"),
        ("train", "consumer/variables/graph.pbtxt", "consumer/variables/config.pbtxt"),
        ("asserts", "consumer/asserts/graph.pbtxt", "consumer/asserts/graph.config.pbtxt"),
        ("chosen", "rust/model/chosen.pbtxt", "rust/model/chosen.config.pbtxt"),
    ] {
        let models = out.path().join("models").join(name);
        let copy = |file: &str, extension: &str| {
            let to = models.with_extension(extension);
            std::fs::copy(root.join("tests").join(file), to).expect("copied");
        };
        copy(graph, "pbtxt");
        copy(config, "config.pbtxt");
    }
    let manifest = std::fs::read_to_string(package.join("Cargo.toml")).expect("readable");
    let crates = root.join("crates");
    let manifest = manifest.replace("../../../crates", crates.to_str().expect("a path in UTF-8"));
    std::fs::write(out.path().join("Cargo.toml"), manifest).expect("writable");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(out.path()).args(["build", "--quiet", "--offline"]);
    cargo.env("TFCOMPILE", env!("CARGO_BIN_EXE_tfcompile"));
    cargo.env("CARGO_TARGET_DIR", out.path().join("target"));
    // Variables set by the test runner's Cargo are meant for other packages.
    for variable in ["RUSTFLAGS", "XLA_FLAGS", "TF_XLA_FLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(variable);
    }
    succeed(&mut cargo);
    if let Some(variables) = opencl() {
        let mut program = Command::new(out.path().join("target/debug/on_device"));
        let output = succeed(program.envs(variables));
        // As in tests/artifacts/expect.h.
        let y = "[[5.0, 0.0, 3.0], [0.0, 0.0, 0.0]]";
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(text, format!("inside {y}\noutside {y}\noutside {y}\n"));
    }
}

#[test]
fn attention_is_one_kernel_on_opencl() {
    let Some(variables) = opencl() else { return };
    let out = directory();
    let program = root().join("tests/device/programs/attention.mlir");
    let mut command = tfcompile(out.path());
    command.arg("verify").arg(program).args(["--target", "opencl"]).envs(variables);
    let text = String::from_utf8(succeed(&mut command).stdout).expect("UTF-8");
    let device = text.split("== on the processor").next().expect("the device's part");
    assert!(device.contains("kernels: 1 of 1 compared"), "{text}");
}

#[test]
fn a_failed_assertion_is_an_error_of_the_run_or_ends_the_process() {
    let out = directory();
    let asserts = root().join("tests/consumer/asserts");
    for (name, class, effect) in [("reported", "Reported", "report"), ("aborting", "Aborting", "abort")] {
        let mut command = tfcompile(out.path());
        command.arg("build").arg(asserts.join("graph.pbtxt"));
        command.arg("--config").arg(asserts.join("graph.config.pbtxt"));
        command.args(["--target=opencl", "--assert", effect, "-q", "-o", "."]);
        succeed(command.args(["--name", name, "--class", class]));
    }
    compile(out.path(), &["g++", "-std=c++17"], "asserts.cc", &["reported.o", "aborting.o"]);
    let Some(variables) = opencl() else { return };
    let program = || {
        let mut program = Command::new(out.path().join("program"));
        program.current_dir(out.path()).envs(variables.iter().cloned());
        program
    };
    succeed(&mut program());
    for kind in ["run", "async"] {
        let output = program().arg(kind).output().expect("started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), None, "{kind}: ends by a signal: {text}");
        assert!(text.contains("assertion failed: [x must be positive]"), "{kind}: {text}");
    }
}

#[test]
fn a_shared_library_and_weights_in_a_file_serve_on_opencl() {
    let out = directory();
    build(out.path(), "opencl", &["--emit=obj,shared,header", "--constants=file"]);
    let libraries = ["liblayer.so", "libtrain.so", "-Wl,-rpath,$ORIGIN"];
    let compiler = ["g++", "-std=c++17", "-O1"];
    compile(out.path(), &compiler, "constants_file.cc", &libraries);
    if let Some(variables) = opencl() {
        let program = out.path().join("program");
        succeed(Command::new(program).current_dir(out.path()).envs(variables));
    }
}

#[test]
fn a_missing_driver_is_an_error_of_the_run() {
    let out = directory();
    build(out.path(), "cuda", &[]);
    compile(out.path(), &["g++", "-std=c++17"], "no_driver.cc", &["layer.o"]);
    let program = out.path().join("program");
    let output = succeed(Command::new(program).env("TFCOMPILE_CUDA_DRIVER", "libnowhere.so"));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("libnowhere.so") && text.contains("install the NVIDIA driver"), "{text}");
}

#[test]
fn inspect_names_the_gpus() {
    let out = directory();
    build(out.path(), "cuda:sm_90a,sm_75", &[]);
    let output = succeed(tfcompile(out.path()).args(["inspect", "layer.o"]));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("device     cuda: sm_75, sm_90a\n"), "{text}");
    build(out.path(), "opencl", &[]);
    let output = succeed(tfcompile(out.path()).args(["inspect", "layer.o"]));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("device     opencl\n"), "{text}");
}

#[test]
fn unsuitable_flags_are_refused() {
    let out = directory();
    let layer = root().join("tests/artifacts/layer.pbtxt");
    let config = root().join("tests/artifacts/layer.config.pbtxt");
    for (flags, message) in [
        (&["--target=cuda:sm_50"][..], "unknown GPU architecture 'sm_50'"),
        (&["--target=cuda", "--freestanding"], "--freestanding"),
        (&["--target=cuda", "--multiversion=v3"], "--multiversion=v3 selects processors"),
        (&["--target=opencl", "--ptxas=ptxas"], "is for NVIDIA's GPUs"),
        (&["--ptxas=ptxas"], "is for NVIDIA's GPUs"),
        (&["--target=cuda", "--ptxas=/nowhere/ptxas"], "cannot start the assembler '/nowhere/ptxas'"),
        (&["--target=cuda", "--autotune=file"], "autotuning measures on this machine's processor"),
        (&["--target=x86-64", "--target-cpu=native"], "both select the machine"),
        (&["--target=gpu"], "or a GPU: cuda, cuda:sm_80,sm_90a, opencl"),
    ] {
        let mut command = tfcompile(out.path());
        command.arg("build").arg(&layer).arg("--config").arg(&config);
        command.args(["-q", "-o", "."]).args(flags);
        let text = refuse(&mut command, out.path());
        assert!(text.contains(message), "{flags:?}: {text}");
    }
}

/// Functions of users run on the host, so a program of a device cannot call them.
#[test]
fn functions_of_users_are_refused_by_name() {
    let out = directory();
    let graph = "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } }
  attr { key: \"shape\" value { shape { dim { size: 2 } } } } }
node { name: \"y\" op: \"Clip\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }
";
    std::fs::write(out.path().join("clip.pbtxt"), graph).expect("a file");
    for target in ["cuda", "opencl"] {
        let mut command = tfcompile(out.path());
        command.args(["build", "clip.pbtxt", "--fetch", "y", "--custom-call", "Clip=my_clip"]);
        let error = refuse(command.args(["--target", target]), out.path());
        for text in ["my_clip", "'y'", "compile for a processor", "E0702"] {
            assert!(error.contains(text), "{target}: {error}");
        }
    }
}

/// Products of `f32` keep their precision unless TF32 is allowed.
#[test]
fn tf32_is_used_only_if_allowed() {
    let text = "HloModule m
ENTRY e {
  a = f32[256,256] parameter(0)
  b = f32[256,256] parameter(1)
  ROOT d = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
";
    for flags in [&[][..], &["--allow-tf32"]] {
        let out = directory();
        std::fs::write(out.path().join("product.hlo"), text).expect("a file");
        let mut command = tfcompile(out.path());
        succeed(command.args(["build", "product.hlo", "--target", "cuda", "-q", "-o", "."]).args(flags));
        let object = std::fs::read(out.path().join("product.o")).expect("an object");
        let instruction = b"m16n8k8.row.col.f32.tf32.tf32.f32";
        let is_used = object.windows(instruction.len()).any(|part| part == instruction);
        assert_eq!(is_used, !flags.is_empty(), "{flags:?}");
    }
}
