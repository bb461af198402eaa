//! Contents of the generated files: their bytes, their symbols, and their sizes.

use crate::support::{refuse, root, succeed, tfcompile};
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

/// Line of a section in `readelf`'s table: size in hexadecimal digits, and flags.
fn section(object: &Path, name: &str) -> Option<(String, String)> {
    let listing = succeed(Command::new("readelf").arg("-SW").arg(object)).stdout;
    let listing = String::from_utf8(listing).expect("UTF-8");
    let words = listing.lines().find_map(|line| {
        let (_, rest) = line.split_once("] ")?;
        let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
        (words.first()? == name).then_some(words)
    })?;
    Some((words[4].clone(), words[6].clone()))
}

#[test]
fn weights_are_in_the_section_that_the_user_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let layer = root().join("tests/artifacts/layer.pbtxt");
    let build = |flags: &[&str]| {
        let mut command = tfcompile(at);
        command.arg("build").arg(&layer).args(["--shape=x=2,4", "-q", "--name=layer"]).args(flags);
        command
    };
    // Named or not, the sections have the same contents.
    let contents = |object: &str, section: &str| {
        let copied = at.join("contents");
        let dump = format!("--dump-section={section}={}", copied.display());
        succeed(Command::new("objcopy").arg(dump).arg(at.join(object)).arg("/dev/null"));
        std::fs::read(copied).expect("written")
    };
    succeed(&mut build(&["-o", "."]));
    let expected = contents("layer.o", ".rodata.tfcompile");
    assert!(expected.iter().any(|&byte| byte != 0));
    for name in [".flash_weights", "weights", ".rodata.model-1", ".data.weights"] {
        let named = format!("--constants-section={name}");
        succeed(&mut build(&[&named, "-o", "named"]));
        assert_eq!(contents("named/layer.o", name), expected, "{name}");
        assert_eq!(section(&at.join("named/layer.o"), ".rodata.tfcompile"), None);
        for target in ["cortex-m4f", "rv32imc", "aarch64-linux"] {
            succeed(&mut build(&[&named, "-o", "other", "--target", target]));
            let (size, flags) = section(&at.join("other/layer.o"), name).expect("the section");
            assert_eq!((usize::from_str_radix(&size, 16), &flags[..]), (Ok(expected.len()), "A"), "{target}");
        }
        succeed(&mut build(&[&named, "-o", "c", "--emit=c,c-header", "--c-vectors=none"]));
        let mut compiler = Command::new("gcc");
        compiler.current_dir(at.join("c")).args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-c",
        ]);
        succeed(compiler.arg("layer.c"));
        assert!(section(&at.join("c/layer.o"), name).is_some(), "{name} in C");
    }
}

#[test]
fn sections_that_cannot_hold_weights_are_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    let layer = root().join("tests/artifacts/layer.pbtxt");
    for (flags, expected) in [
        (&["--constants-section=a b"][..], "'a b' is not the name of a section"),
        (&["--constants-section="], "'' is not the name of a section"),
        (&["--constants-section=.bss.weights"], "'.bss.weights' has another meaning for linkers"),
        (&["--constants-section=.debug_info"], "'.debug_info' has another meaning for linkers"),
        (&["--constants-section=.w", "--target=x86_64-windows"], "'x86_64-pc-windows-msvc' are not in ELF"),
        (&["--constants-section=.w", "--target=wasm32"], "'wasm32-unknown-unknown' are not in ELF"),
        (&["--constants-section=.w", "--target=aarch64-macos"], "are not in ELF"),
        (&["--constants-section=.w", "--constants=file"], "keeps them in a file: remove one of the flags"),
        (&["--constants-section=.w", "--sanitize=address"], "cannot be combined with --sanitize"),
        (&["--constants-section=.w", "--emit=header"], "no file of this build has the weights"),
    ] {
        let mut command = tfcompile(directory.path());
        command.arg("build").arg(&layer).args(["--shape=x=2,4", "-o", "out"]).args(flags);
        let message = refuse(&mut command, directory.path());
        assert!(message.contains(expected), "{message}");
        assert!(!directory.path().join("out").exists(), "{flags:?}");
    }
}
