//! Contents of the generated files: their bytes, their symbols, and their sizes.

use crate::support::{root, succeed, tfcompile};
use std::path::Path;
use std::process::Command;

const OUTPUTS: [&str; 4] = ["out.h", "out_model.o", "out_helper.o", "session.pb"];

/// Compiles one of the committed graphs in a directory and returns the files' bytes.
fn compile(name: &str, directory: &Path, flags: &[&str]) -> Vec<Vec<u8>> {
    let case = root().join("tests/oracle/tfcompile_tests").join(name);
    succeed(
        tfcompile(directory)
            .arg(format!("--graph={}", case.join("graph.pb").display()))
            .arg(format!("--config={}", case.join("config.pbtxt").display()))
            .args(["--cpp_class=ns::Comp", "--out_session_module=session.pb"])
            .args(flags),
    );
    OUTPUTS.iter().map(|file| std::fs::read(directory.join(file)).expect("written")).collect()
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for name in ["tfmatmul", "tfsplits", "tfvariable_sequential_updates"] {
        let (first, second) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let one = compile(name, first.path(), &["-j1"]);
        assert!(one == compile(name, first.path(), &["-j1"]), "{name}: two runs differ");
        assert!(one == compile(name, second.path(), &["-j2"]), "{name}: another directory or -j2 differs");
    }
}

#[test]
fn objects_need_nothing_but_memory_functions() {
    for name in ["tfadd", "tfmatmul", "tfsplits", "tftop_k", "tffunction", "tfcond_cfv1"] {
        for cpu in ["", "x86-64-v3", "x86-64-v4"] {
            let directory = tempfile::tempdir().expect("a directory");
            compile(name, directory.path(), &[&format!("--target_cpu={cpu}")]);
            for object in ["out_model.o", "out_helper.o"] {
                let listing = succeed(Command::new("nm").arg("-u").arg(directory.path().join(object)));
                let listing = String::from_utf8(listing.stdout).expect("UTF-8");
                let undefined: Vec<&str> = listing.split_whitespace().filter(|word| *word != "U").collect();
                let memory = ["memcpy", "memset", "memmove"];
                assert!(
                    undefined.iter().all(|s| memory.contains(s)),
                    "{name} {object} for '{cpu}': {undefined:?}"
                );
            }
        }
    }
}

#[test]
fn only_the_entrys_symbols_are_global() {
    let directory = tempfile::tempdir().expect("a directory");
    compile("tfsplits", directory.path(), &["--entry_point=my_entry"]);
    let listing =
        succeed(Command::new("nm").args(["-g", "--defined-only"]).arg(directory.path().join("out_model.o")));
    let listing = String::from_utf8(listing.stdout).expect("UTF-8");
    let mut names: Vec<&str> = listing.lines().filter_map(|line| line.split_whitespace().last()).collect();
    names.sort_unstable();
    assert_eq!(names, ["my_entry", "my_entry_constants"]);
}

#[test]
fn a_stripped_program_is_small() {
    let directory = tempfile::tempdir().expect("a directory");
    compile("tfmatmul", directory.path(), &[]);
    let main = "#include \"out.h\"\nint main() { ns::Comp c; return c.Run() ? 0 : 1; }\n";
    std::fs::write(directory.path().join("main.cc"), main).expect("writable");
    let include = root().join("runtime/include");
    let mut build = Command::new("g++");
    build.current_dir(directory.path()).args([
        "-O2",
        "-s",
        "main.cc",
        "out_model.o",
        "out_helper.o",
        "-o",
        "program",
    ]);
    succeed(build.arg("-I").arg(include));
    let size = std::fs::metadata(directory.path().join("program")).expect("linked").len();
    assert!(size < 32 << 10, "{size} bytes");
}
