//! Builds and runs the programs of `tests/consumer`, as its README says, and those that earlier
//! versions built.

mod releases;

use crate::support::{root, succeed, tfcompile};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Contents of a `case.txt`.
#[derive(Default)]
struct Case {
    /// Words after `compile` and `build`: arguments of the tool in its original form and of
    /// `tfcompile build`.
    compile: Vec<Vec<String>>,
    build: Vec<Vec<String>>,
    cxx: Vec<String>,
    needs_eigen: bool,
}

fn read_directives(directory: &Path) -> Case {
    let mut case = Case::default();
    let text = std::fs::read_to_string(directory.join("case.txt")).expect("a case.txt");
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match words[0].as_str() {
            "compile" => case.compile.push(words[1..].to_vec()),
            "build" => case.build.push(words[1..].to_vec()),
            "cxx" => case.cxx.extend_from_slice(&words[1..]),
            "needs" if words[1] == "eigen" => case.needs_eigen = true,
            other => panic!("{}: unknown directive {other}", directory.display()),
        }
    }
    case
}

/// Compiles the case's graphs and returns their objects.
fn compile(case: &Case, directory: &Path, out: &Path) -> Vec<PathBuf> {
    assert!(case.compile.len() + case.build.len() > 0, "{}: nothing to compile", directory.display());
    let mut objects = Vec::new();
    for (number, words) in case.compile.iter().enumerate() {
        let [graph, config, header, flags @ ..] = &words[..] else {
            panic!("compile GRAPH CONFIG HEADER FLAGS...")
        };
        let header = out.join(header);
        std::fs::create_dir_all(header.parent().expect("a folder")).expect("writable");
        let object = out.join(format!("{number}.o"));
        let metadata = out.join(format!("{number}_metadata.o"));
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        succeed(
            tfcompile(directory)
                .arg(flag("graph", Path::new(graph)))
                .arg(flag("config", Path::new(config)))
                .arg(flag("out_header", &header))
                .arg(flag("out_function_object", &object))
                .arg(flag("out_metadata_object", &metadata))
                .args(flags),
        );
        objects.extend([object, metadata]);
    }
    for words in &case.build {
        let name =
            words.iter().find_map(|word| word.strip_prefix("--name=")).expect("build MODEL --name=NAME");
        succeed(tfcompile(directory).arg("build").args(words).args(["--quiet", "--output"]).arg(out));
        objects.push(out.join(format!("{name}.o")));
    }
    objects
}

/// Returns the sources of a program.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("readable")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "cc"))
        .collect();
    sources.sort();
    sources
}

/// True if the case can be built. Without Eigen, it is skipped with a message, or fails in CI.
fn has_needs(name: &str, case: &Case) -> bool {
    let lacks_eigen = case.needs_eigen && !Path::new("/usr/include/eigen3").exists();
    if lacks_eigen {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{name} needs Eigen");
        println!("skipped: {name} needs Eigen");
    }
    !lacks_eigen
}

fn build_and_run(name: &str, compilers: &[&str]) {
    build_and_run_as(name, compilers, &[&[], &["-fno-exceptions", "-fno-rtti"]]);
}

/// Builds and runs the program with each compiler in each dialect.
fn build_and_run_as(name: &str, compilers: &[&str], dialects: &[&[&str]]) {
    let root = root();
    let directory = root.join("tests/consumer").join(name);
    let case = read_directives(&directory);
    if !has_needs(name, &case) {
        return;
    }
    let out = tempfile::tempdir().expect("a directory");
    let objects = compile(&case, &directory, out.path());
    let sources = sources(&directory);
    for compiler in compilers {
        for dialect in dialects {
            let program = out.path().join("program");
            let mut build = Command::new(compiler);
            build.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1"]).args(*dialect).args(&case.cxx);
            for include in [root.join("runtime/include"), out.path().to_owned(), root.join("tests/consumer")]
            {
                build.arg("-I").arg(include);
            }
            build.args(&sources).args(&objects).arg("-lpthread").arg("-o").arg(&program);
            succeed(&mut build);
            succeed(Command::new(&program).current_dir(out.path()));
        }
    }
}

/// The pool's own threads run compiled code, so the pool must provide all synchronization. Only g++
/// is tested, because it comes with the sanitizers' libraries.
#[test]
fn threads_have_no_data_race() {
    build_and_run_as("threads", &["g++"], &[&["-fsanitize=thread"]]);
}

/// Pools, variables, and every element type under the sanitizer of undefined behavior.
#[test]
fn headers_have_no_undefined_behavior() {
    for name in ["threads", "types", "variables"] {
        build_and_run_as(name, &["g++"], &[&["-fsanitize=undefined", "-fno-sanitize-recover=all"]]);
    }
}

/// One test for each program and compiler family.
macro_rules! programs {
    ($($name:ident),* $(,)?) => {
        $(mod $name {
            #[test]
            fn with_gcc() {
                super::build_and_run(stringify!($name), &["g++"]);
            }

            #[test]
            fn with_clang() {
                super::build_and_run(stringify!($name), &["clang++"]);
            }
        })*

        #[test]
        fn every_program_has_a_test() {
            let mut found: Vec<String> = std::fs::read_dir(root().join("tests/consumer"))
                .expect("readable")
                .map(|entry| entry.expect("readable").path())
                .filter(|path| path.is_dir())
                .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
                .collect();
            found.sort();
            let mut listed = vec![$(stringify!($name)),*];
            listed.sort_unstable();
            assert_eq!(found, listed);
        }
    };
}

programs!(
    add,
    asserts,
    custom_call,
    documentation,
    functions,
    names,
    quantized,
    sizes,
    threads,
    two_models,
    types,
    variables
);
