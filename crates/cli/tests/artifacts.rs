//! Builds and runs the programs of `tests/artifacts`, as its README says.

mod web;

use crate::support::{refuse, root, succeed, tfcompile};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// Builds a layer into a directory.
fn build(graph: &str, directory: &Path, flags: &[&str]) {
    let artifacts = root().join("tests/artifacts");
    build_model(&artifacts.join(graph), &artifacts.join("layer.config.pbtxt"), "layer", directory, flags);
}

fn build_model(graph: &Path, config: &Path, name: &str, directory: &Path, flags: &[&str]) {
    let mut command = tfcompile(directory);
    command.arg("build").arg(graph).arg("--config").arg(config);
    succeed(command.args(["--name", name, "-q", "-o", "."]).args(flags));
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Copies the program's sources next to the build's files.
fn copy_sources(program: &str, directory: &Path) {
    let artifacts = root().join("tests/artifacts");
    let mut sources = vec![artifacts.join("expect.h")];
    for entry in std::fs::read_dir(artifacts.join(program)).expect("readable") {
        sources.push(entry.expect("readable").path());
    }
    for source in sources {
        let name = source.file_name().expect("a name");
        std::fs::copy(&source, directory.join(name)).expect("copied");
    }
}

/// Compiles, links, and runs in the directory: `compiler -x language -std=standard source -x none
/// objects`.
fn run_program(directory: &Path, compiler: &[&str], source: &str, objects: &[&str]) {
    let mut build = Command::new(compiler[0]);
    build.current_dir(directory).args(&compiler[1..]).args(WARNINGS).arg(source);
    succeed(build.args(["-x", "none"]).args(objects).args(["-o", "program"]));
    succeed(Command::new(directory.join("program")).current_dir(directory));
}

#[test]
fn a_c_header_serves_c_and_cpp() {
    let out = directory();
    build("layer.pbtxt", out.path(), &["--emit=obj,c-header"]);
    copy_sources("c", out.path());
    for compiler in [
        &["gcc", "-std=c99", "-O2", "-x", "c"],
        &["clang", "-std=c99", "-O2", "-x", "c"],
        &["gcc", "-std=c17", "-O0", "-x", "c"],
        &["g++", "-std=c++11", "-O2", "-x", "c++"],
        &["clang++", "-std=c++20", "-O1", "-x", "c++"],
    ] {
        run_program(out.path(), compiler, "main.c", &["layer.o"]);
    }
}

#[test]
fn headers_serve_c_source_as_they_serve_an_object() {
    for vectors in ["gcc", "none"] {
        let out = directory();
        build("layer.pbtxt", out.path(), &["--emit=c,c-header,header", "--c-vectors", vectors]);
        copy_sources("c", out.path());
        for compiler in ["gcc", "clang"] {
            let mut compile = Command::new(compiler);
            compile.current_dir(out.path()).args(WARNINGS).args(["-std=c11", "-Wconversion", "-Wno-psabi"]);
            succeed(compile.args(["-O1", "-c", "layer.c", "-o", "layer.o"]));
            run_program(out.path(), &["gcc", "-std=c99", "-x", "c"], "main.c", &["layer.o"]);
            run_program(out.path(), &["g++", "-std=c++17", "-Iinclude"], "main.cc", &["layer.o"]);
        }
    }
}

#[test]
fn c_source_excludes_what_it_replaces() {
    let out = directory();
    let layer = root().join("tests/artifacts/layer.pbtxt");
    for (flags, word) in [
        (&["--emit=c,obj"][..], "obj exclude each other"),
        (&["--emit=c", "--target=opencl"], "GPU"),
        (&["--emit=c", "--multiversion=v2,v3"], "--multiversion"),
        (&["--emit=c", "--freestanding"], "--freestanding"),
        (&["--emit=c", "--target=cortex-m55", "--c-vectors=gcc"], "MVE: remove the flag"),
        (&["--c-vectors=none"], "add c to --emit"),
    ] {
        let mut command = tfcompile(out.path());
        let message = refuse(command.arg("build").arg(&layer).args(["-o", "."]).args(flags), out.path());
        assert!(message.contains(word), "{flags:?}: {message}");
    }
}

#[test]
fn opencl_c_comes_with_tables_of_launches() {
    let out = directory();
    build("layer.pbtxt", out.path(), &["--emit=opencl"]);
    let kernels = std::fs::read_to_string(out.path().join("layer.cl")).expect("kernels");
    let tables = std::fs::read_to_string(out.path().join("layer_opencl.h")).expect("tables");
    assert!(kernels.contains("\nkernel __attribute__((reqd_work_group_size("), "{kernels}");
    // Each kernel of the text is in the table, with the number of its addresses.
    let mut count = 0;
    for part in kernels.split("\nvoid ").skip(1) {
        let (name, rest) = part.split_once('(').expect("parameters");
        let list = rest.split_once(')').expect("the end of the parameters").0;
        let addresses = list.matches("global ").count();
        assert_eq!(list.matches("const ulong ").count(), addresses, "{list}");
        let row = tables.lines().find(|line| line.contains(&format!("{{\"{name}\"")));
        let row = row.unwrap_or_else(|| panic!("no {name} in {tables}")).trim_end_matches(',');
        assert!(row.ends_with(&format!(", {addresses}}}")), "{row}: {list}");
        count += 1;
    }
    assert!(count > 0 && tables.contains(&format!("layer_kernels_count {count}\n")), "{tables}");
    std::fs::write(out.path().join("use.c"), "#include \"layer_opencl.h\"\nint main(void) { return 0; }\n")
        .expect("a file");
    for compiler in [&["gcc", "-std=c99", "-x", "c"][..], &["g++", "-std=c++17", "-x", "c++"]] {
        let mut compile = Command::new(compiler[0]);
        compile.current_dir(out.path()).args(&compiler[1..]).args([
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
        ]);
        succeed(compile.args(["-Wno-unused-variable", "-fsyntax-only", "use.c"]));
    }
}

#[test]
fn opencl_c_is_for_devices_of_opencl() {
    let out = directory();
    let layer = root().join("tests/artifacts/layer.pbtxt");
    for (flags, words) in [
        (
            &["--emit=opencl", "--target=cuda"][..],
            "--target=cuda selects GPUs of CUDA: use --target=opencl:c",
        ),
        (&["--emit=opencl", "--target=opencl"], "--target=opencl selects SPIR-V"),
        (&["--emit=opencl", "--target=aarch64-linux"], "selects a processor"),
        (&["--emit=opencl", "--target-cpu=skylake"], "--target-cpu selects a processor"),
        (&["--emit=opencl,c"], "build each alone"),
        (&["--emit=obj", "--target=opencl:cpp"], "unknown form of code 'cpp'"),
    ] {
        let mut command = tfcompile(out.path());
        let message = refuse(command.arg("build").arg(&layer).args(["-o", "."]).args(flags), out.path());
        assert!(message.contains(words), "{flags:?}: {message}");
    }
}

#[test]
fn a_standalone_header_is_all_that_a_program_includes() {
    let out = directory();
    build("layer.pbtxt", out.path(), &["--standalone-header"]);
    assert!(!out.path().join("include").exists(), "the headers are inside");
    copy_sources("c", out.path());
    for compiler in ["g++", "clang++"] {
        run_program(out.path(), &[compiler, "-std=c++17", "-O1"], "main.cc", &["layer.o"]);
    }
}

#[test]
fn a_header_finds_the_headers_beside_it() {
    let out = directory();
    build("layer.pbtxt", out.path(), &[]);
    copy_sources("c", out.path());
    run_program(out.path(), &["g++", "-std=c++17", "-O1", "-Iinclude"], "main.cc", &["layer.o"]);
}

/// The two graphs of the freestanding programs, and the programs' sources.
fn freestanding(flags: &[&str]) -> TempDir {
    let out = directory();
    let oracle = root().join("tests/oracle/tfcompile_tests/tfsplits");
    let flags: Vec<&str> =
        ["--freestanding", "--emit=obj,header,c-header"].iter().chain(flags).copied().collect();
    build("layer.pbtxt", out.path(), &flags);
    build_model(&oracle.join("graph.pb"), &oracle.join("config.pbtxt"), "splits", out.path(), &flags);
    assert!(!out.path().join("include").exists(), "freestanding headers are standalone");
    copy_sources("freestanding", out.path());
    out
}

/// Compiles and links a program without any library.
fn bare(directory: &Path, compiler: &str, source: &str) {
    let mut build = Command::new(compiler);
    build.current_dir(directory).args(WARNINGS);
    build.args(["-O2", "-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector", "-fno-pie"]);
    if source.ends_with("cc") {
        build.args(["-std=c++17", "-fno-exceptions", "-fno-rtti"])
    } else {
        build.arg("-std=c99")
    };
    succeed(build.args([source, "layer.o", "splits.o", "-o", "program"]));
}

fn run_freestanding(flags: &[&str]) {
    let out = freestanding(flags);
    for (compiler, source) in
        [("gcc", "main.c"), ("clang", "main.c"), ("g++", "main.cc"), ("clang++", "main.cc")]
    {
        bare(out.path(), compiler, source);
        succeed(&mut Command::new(out.path().join("program")));
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn freestanding_programs_run_without_any_library() {
    run_freestanding(&[]);
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn freestanding_programs_of_one_processor_run_without_any_library() {
    run_freestanding(&["--target-cpu=x86-64"]);
}

/// Runs the programs in an emulator if it and the cross compiler are installed. They must be if the
/// variable `required_if` is `true`.
fn run_freestanding_elsewhere(triple: &str, tools: &str, emulator: &str, required_if: &str) {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let (gcc, gxx) = (format!("{tools}-gcc"), format!("{tools}-g++"));
    if !has(&gcc) || !has(&gxx) || !has(emulator) {
        assert!(std::env::var(required_if).as_deref() != Ok("true"), "{triple} needs {gxx} and {emulator}");
        println!("skipped: {triple} needs {gxx} and {emulator}");
        return;
    }
    let out = freestanding(&[&format!("--target-triple={triple}")]);
    for (compiler, source) in [(&gcc, "main.c"), (&gxx, "main.cc")] {
        bare(out.path(), compiler, source);
        succeed(Command::new(emulator).arg(out.path().join("program")));
    }
}

#[test]
fn freestanding_programs_run_on_aarch64() {
    run_freestanding_elsewhere("aarch64-unknown-linux-gnu", "aarch64-linux-gnu", "qemu-aarch64", "CI");
}

#[test]
fn freestanding_programs_run_on_armv7() {
    let (triple, tools) = ("armv7-unknown-linux-gnueabihf", "arm-linux-gnueabihf");
    run_freestanding_elsewhere(triple, tools, "qemu-arm", "TEST_CROSS");
}

#[test]
fn freestanding_programs_run_on_riscv64() {
    let (triple, tools) = ("riscv64-unknown-linux-gnu", "riscv64-linux-gnu");
    run_freestanding_elsewhere(triple, tools, "qemu-riscv64", "TEST_CROSS");
}

/// Machines without an operating system. The tool itself checks that their objects need no library.
#[test]
fn graphs_are_built_for_microcontrollers() {
    let names = target::NAMES.iter().map(|entry| entry.name);
    let small = names.filter(|name| target::named(name).expect("a target").is_microcontroller);
    let by_name: Vec<Vec<String>> = small.map(|name| vec![format!("--target={name}")]).collect();
    assert!(by_name.len() >= 7, "{by_name:?}");
    let by_triple = [
        ["--target-triple=thumbv7em-none-eabihf", "--target-cpu=cortex-m4"],
        ["--target-triple=thumbv7em-none-eabi", "--target-features="],
        ["--target-triple=riscv32-unknown-elf", "--target-features=+m,+f,+d"],
        ["--target-triple=riscv32-unknown-elf", "--target-features="],
    ];
    for flags in by_name.into_iter().chain(by_triple.map(|flags| flags.map(str::to_owned).to_vec())) {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let out = freestanding(&flags);
        for object in ["layer.o", "splits.o"] {
            let bytes = std::fs::read(out.path().join(object)).expect("an object");
            assert_eq!(bytes[..5], *b"\x7fELF\x01", "{flags:?}: ELF of 32 bits");
        }
    }
}

/// Builds the layer with its weights in a file, and the other graphs in the same way in subfolders.
fn trainings(flags: &[&str]) -> TempDir {
    let out = directory();
    let flags: Vec<&str> = ["--constants=file"].iter().chain(flags).copied().collect();
    build("layer.pbtxt", out.path(), &flags);
    for (graph, folder) in [
        ("layer_trained_again.pbtxt", "again"),
        ("layer_without_bias.pbtxt", "without_bias"),
        ("layer_of_another_kind.pbtxt", "another_kind"),
    ] {
        let folder = out.path().join(folder);
        std::fs::create_dir(&folder).expect("a directory");
        build(graph, &folder, &flags);
    }
    copy_sources("constants_file", out.path());
    out
}

#[test]
fn weights_are_swapped_among_trainings_of_one_network() {
    let out = trainings(&["--emit=obj,header,c-header"]);
    // Retraining changes only the weights: the header, including its layout hash, stays the same.
    let file = |path: &str| std::fs::read(out.path().join(path)).expect("a file");
    assert_eq!(file("layer.h"), file("again/layer.h"));
    assert_ne!(file("layer.constants"), file("again/layer.constants"));
    for compiler in ["g++", "clang++"] {
        let compiler = [compiler, "-std=c++17", "-O1", "-Iinclude"];
        run_program(out.path(), &compiler, "main.cc", &["layer.o", "-lpthread"]);
    }
    run_program(out.path(), &["gcc", "-std=c99", "-O1"], "main.c", &["layer.o"]);
}

#[test]
fn weights_are_also_loaded_by_a_standalone_header() {
    let out = trainings(&["--standalone-header"]);
    run_program(out.path(), &["g++", "-std=c++17", "-O1"], "main.cc", &["layer.o", "-lpthread"]);
}

#[test]
fn weights_of_one_processor_are_also_swapped() {
    let out = trainings(&["--target-cpu=x86-64", "--target-triple=x86_64-unknown-linux-gnu"]);
    if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        let compiler = ["g++", "-std=c++17", "-O1", "-Iinclude"];
        run_program(out.path(), &compiler, "main.cc", &["layer.o", "-lpthread"]);
    }
}
