//! Tests the runtime with C++ programs over generated headers and hand-written entry functions
//! instead of a compiled object. Uses two compilers, with and without exceptions and RTTI; all
//! warnings are errors.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use aot::{CHeaderOptions, HeaderOptions, LayoutHash, c_header, constants_file, header};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates a folder of generated headers below the target directory. Each test has its own because
/// tests run concurrently.
fn workplace(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let plain = HeaderOptions::default();
    let all = HeaderOptions { gen_name_to_index: true, gen_program_shape: true, ..plain };
    let standalone = HeaderOptions { standalone: true, ..plain };
    let freestanding = HeaderOptions { freestanding: true, ..plain };
    for (file, artifact, options) in [
        ("add.h", crate::fixtures::add(), plain),
        ("matmul_and_add.h", crate::fixtures::matmul_and_add(), all),
        ("train.h", crate::fixtures::train(), all),
        ("types.h", crate::fixtures::types(), all),
        ("scale.h", crate::fixtures::scale(), all),
        ("far.h", crate::fixtures::far(), plain),
        ("add_standalone.h", crate::fixtures::add(), standalone),
        ("matmul_and_add_standalone.h", crate::fixtures::matmul_and_add(), standalone),
        ("train_standalone.h", crate::fixtures::train(), HeaderOptions { standalone: true, ..all }),
        ("scale_standalone.h", crate::fixtures::scale(), standalone),
        ("matmul_and_add_freestanding.h", crate::fixtures::matmul_and_add(), freestanding),
        ("train_freestanding.h", crate::fixtures::train(), freestanding),
        ("types_freestanding.h", crate::fixtures::types(), freestanding),
        ("scale_freestanding.h", crate::fixtures::scale(), freestanding),
        ("far_freestanding.h", crate::fixtures::far(), freestanding),
        ("constant_freestanding.h", crate::fixtures::constant(), freestanding),
        ("counter_freestanding.h", crate::fixtures::counter(), freestanding),
        ("state_standalone.h", crate::fixtures::state(), standalone),
        ("state_freestanding.h", crate::fixtures::state(), freestanding),
        ("quantized.h", crate::fixtures::quantized(), plain),
        ("quantized_standalone.h", crate::fixtures::quantized(), standalone),
        ("quantized_freestanding.h", crate::fixtures::quantized(), freestanding),
        ("batched.h", crate::fixtures::batched(), all),
        ("batched_standalone.h", crate::fixtures::batched(), HeaderOptions { standalone: true, ..all }),
        ("batched_freestanding.h", crate::fixtures::batched(), freestanding),
        ("sequences.h", crate::fixtures::sequences(), plain),
        ("sequences_standalone.h", crate::fixtures::sequences(), standalone),
        ("sequences_freestanding.h", crate::fixtures::sequences(), freestanding),
    ] {
        std::fs::write(folder.join(file), header(&artifact, &options).unwrap()).unwrap();
    }
    for (file, artifact, prefix) in [
        ("add_c.h", crate::fixtures::add(), None),
        ("matmul_and_add_c.h", crate::fixtures::matmul_and_add(), Some("matmul")),
        ("train_c.h", crate::fixtures::train(), None),
        ("types_c.h", crate::fixtures::types(), None),
        ("scale_c.h", crate::fixtures::scale(), Some("scale_model")),
        ("far_c.h", crate::fixtures::far(), None),
        ("constant_c.h", crate::fixtures::constant(), None),
        ("counter_c.h", crate::fixtures::counter(), None),
        ("quantized_c.h", crate::fixtures::quantized(), None),
        ("batched_c.h", crate::fixtures::batched(), Some("batched")),
        ("sequences_c.h", crate::fixtures::sequences(), None),
    ] {
        let options = CHeaderOptions { prefix: prefix.map(str::to_owned) };
        std::fs::write(folder.join(file), c_header(&artifact, &options).unwrap()).unwrap();
    }
    weights(&folder);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for file in ["numpy.npz", "numpy_compressed.npz"] {
        std::fs::copy(data.join(file), folder.join(file)).unwrap();
    }
    folder
}

/// Writes constants files for the model `scale`: 1, 2, 3, 4 and ten times that, and files that do
/// not fit.
fn weights(folder: &Path) {
    let file = |layout: &LayoutHash, factor: f32| {
        let block: Vec<u8> = (1u8..=4).flat_map(|i| (f32::from(i) * factor).to_le_bytes()).collect();
        constants_file(layout, 64, &[(0, block)]).unwrap()
    };
    let first = file(&crate::fixtures::scale_layout(), 1.0);
    let mut other_version = first.clone();
    other_version[8] = 2;
    for (name, bytes) in [
        ("second.weights", file(&crate::fixtures::scale_layout(), 10.0)),
        ("other_layout.weights", file(&LayoutHash([1; 32]), 1.0)),
        ("other_version.weights", other_version),
        ("cut.weights", first[..100].to_vec()),
        ("empty.weights", Vec::new()),
        ("first.weights", first),
    ] {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns the available C++ compilers. g++ is required; clang++ is required only in CI.
fn compilers() -> Vec<&'static str> {
    let available: Vec<_> = ["g++", "clang++"].into_iter().filter(|compiler| exists(compiler)).collect();
    assert!(available.contains(&"g++"), "g++ is not installed");
    if available.len() == 1 {
        assert!(std::env::var_os("CI").is_none(), "clang++ is not installed");
        eprintln!("skipped: clang++ is not installed");
    }
    available
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}");
}

/// Builds and runs with every compiler.
fn build_and_run(name: &str, units: &[&str], flags: &[&str]) {
    build_and_run_with(&compilers(), name, units, flags);
}

/// Builds and runs with g++ only, which includes the sanitizers' libraries.
fn build_and_run_sanitized(name: &str, units: &[&str], flags: &[&str]) {
    build_and_run_with(&["g++"], name, units, flags);
}

fn build_and_run_with(compilers: &[&str], name: &str, units: &[&str], flags: &[&str]) {
    let folder = workplace(name);
    let language = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"];
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
    let flags: Vec<&str> =
        language.iter().chain(flags).copied().chain(["-I", include.to_str().unwrap()]).collect();
    build_and_run_in(&folder, compilers, name, units, &flags);
}

/// Builds and runs with the given flags, and with the generated headers on the include path.
fn build_and_run_in(folder: &Path, compilers: &[&str], name: &str, units: &[&str], flags: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = root.join("tests/cpp");
    let entries = folder.join("entries.o");
    run(Command::new("g++")
        .args(["-x", "c", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-c"])
        .arg(sources.join("entries.c"))
        .arg("-I")
        .arg(root.join("../../runtime/include"))
        .arg("-o")
        .arg(&entries));
    for compiler in compilers {
        let program = folder.join(format!("{name}_{compiler}"));
        run(Command::new(compiler)
            .args(flags)
            .arg("-I")
            .arg(folder)
            .args(units.iter().map(|unit| sources.join(unit)))
            .args(["-x", "none"])
            .arg(&entries)
            .args(["-lpthread", "-o"])
            .arg(&program));
        run(Command::new(&program).current_dir(folder));
    }
}

#[test]
fn models_in_one_program() {
    build_and_run("models", &["models.cc", "second_unit.cc"], &["-Wpedantic", "-Wconversion", "-Wshadow"]);
}

#[test]
fn models_without_exceptions_and_rtti() {
    build_and_run("models_plain", &["models.cc", "second_unit.cc"], &["-fno-exceptions", "-fno-rtti"]);
}

#[test]
fn models_under_sanitizers() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    build_and_run_sanitized("models_sanitized", &["models.cc", "second_unit.cc"], &flags);
}

#[test]
fn models_as_a_later_standard() {
    build_and_run("models_20", &["models.cc", "second_unit.cc"], &["-std=c++20", "-DNDEBUG"]);
}

#[test]
fn pools_share_the_work_out() {
    build_and_run("threads", &["threads.cc"], &["-Wpedantic", "-fno-exceptions", "-fno-rtti"]);
}

#[test]
fn pools_have_no_data_race() {
    build_and_run_sanitized("threads_sanitized", &["threads.cc"], &["-fsanitize=thread"]);
}

fn has_eigen() -> bool {
    let exists = Path::new("/usr/include/eigen3").exists();
    if !exists {
        assert!(std::env::var_os("CI").is_none(), "Eigen is not installed");
        eprintln!("skipped: Eigen is not installed");
    }
    exists
}

#[test]
fn eigen_pools_share_the_work_out() {
    if !has_eigen() {
        return;
    }
    build_and_run("eigen", &["eigen.cc"], &[]);
}

/// Warnings that the plain C header must not trigger.
const STRICT: [&str; 8] = [
    "-Wall",
    "-Wextra",
    "-pedantic",
    "-Werror",
    "-Wshadow",
    "-Wconversion",
    "-Wstrict-aliasing",
    "-Wno-deprecated",
];

/// Tests the C header under a standard of C or C++.
fn c_models(name: &str, language: &str, standard: &str, optimization: &str) {
    let folder = workplace(name);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
    let mut flags = vec![optimization, standard, "-I", include.to_str().unwrap(), "-x", language];
    flags.splice(0..0, STRICT);
    build_and_run_in(&folder, &compilers(), name, &["c_models.c"], &flags);
}

#[test]
fn c_headers_as_c99() {
    c_models("c_models_c99", "c", "-std=c99", "-O2");
}

#[test]
fn c_headers_under_sanitizers() {
    let folder = workplace("c_models_sanitized");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
    let flags = [
        "-std=c11",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-I",
        include.to_str().unwrap(),
        "-x",
        "c",
    ];
    build_and_run_in(&folder, &["gcc"], "c_models_sanitized", &["c_models.c"], &flags);
}

#[test]
fn c_headers_as_c17() {
    c_models("c_models_c17", "c", "-std=c17", "-O0");
}

#[test]
fn c_headers_as_cpp11() {
    c_models("c_models_cpp11", "c++", "-std=c++11", "-O2");
}

#[test]
fn c_headers_as_cpp20() {
    c_models("c_models_cpp20", "c++", "-std=c++20", "-O1");
}

#[test]
fn constants_in_files() {
    build_and_run("constants_file", &["constants_file.cc"], &["-Wpedantic", "-Wconversion", "-Wshadow"]);
}

#[test]
fn constants_in_files_without_exceptions_and_rtti() {
    build_and_run("constants_file_plain", &["constants_file.cc"], &["-fno-exceptions", "-fno-rtti"]);
}

#[test]
fn constants_in_files_under_sanitizers() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    build_and_run_sanitized("constants_file_sanitized", &["constants_file.cc"], &flags);
}

#[test]
fn constants_in_files_have_no_data_race() {
    build_and_run_sanitized("constants_file_race", &["constants_file.cc"], &["-fsanitize=thread"]);
}

#[test]
fn variables_in_files() {
    build_and_run("state", &["state.cc"], &["-Wpedantic", "-Wconversion", "-Wshadow"]);
    // Reads the program's file with an independent reader.
    let file = std::fs::read(Path::new(env!("CARGO_TARGET_TMPDIR")).join("state/state.npz")).unwrap();
    let mut archive = npz::Archive::open(file.into(), 1 << 20).unwrap();
    for argument in crate::fixtures::state().interface.arguments() {
        let literal = archive.require(argument.id.node()).unwrap();
        assert_eq!(literal.array_shape().sizes(), argument.shape.sizes(), "{}", argument.id);
        assert_eq!(literal.bytes().len() as u64, argument.shape.byte_size(), "{}", argument.id);
    }
    assert_eq!(archive.names().count(), crate::fixtures::state().interface.arguments().len());
}

#[test]
fn variables_in_files_without_exceptions_and_rtti() {
    build_and_run("state_plain", &["state.cc"], &["-fno-exceptions", "-fno-rtti", "-std=c++20"]);
}

#[test]
fn variables_in_files_under_sanitizers() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    build_and_run_sanitized("state_sanitized", &["state.cc"], &flags);
}

#[test]
fn freestanding_classes() {
    let flags = ["-Wpedantic", "-Wconversion", "-Wshadow", "-fno-exceptions", "-fno-rtti"];
    build_and_run("freestanding", &["freestanding.cc"], &flags);
}

#[test]
fn floats_become_integers_of_quantized_arrays() {
    for header in ["quantized.h", "quantized_standalone.h", "quantized_freestanding.h"] {
        let macros = format!("-DQUANTIZED_HEADER=\"{header}\"");
        let flags = ["-Wpedantic", "-Wconversion", "-Wshadow", "-fno-exceptions", "-fno-rtti", &macros];
        build_and_run(header.trim_end_matches(".h"), &["quantized.cc"], &flags);
    }
}

#[test]
fn sizes_of_named_dimensions_change_from_run_to_run() {
    for (kind, hosted) in [("", "-DHOSTED"), ("_standalone", "-DHOSTED"), ("_freestanding", "-DFREESTANDING")]
    {
        let header = |model: &str| format!("-D{}_HEADER=\"{model}{kind}.h\"", model.to_ascii_uppercase());
        let (batched, sequences) = (header("batched"), header("sequences"));
        let flags = ["-Wpedantic", "-Wconversion", "-Wshadow", hosted, &batched, &sequences];
        build_and_run(&format!("named_dimensions{kind}"), &["named_dimensions.cc"], &flags);
    }
    let sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DHOSTED"];
    let headers = ["-DBATCHED_HEADER=\"batched.h\"", "-DSEQUENCES_HEADER=\"sequences.h\""];
    let flags = [sanitize.as_slice(), &headers].concat();
    build_and_run_sanitized("named_dimensions_sanitized", &["named_dimensions.cc"], &flags);
}

#[test]
fn floats_become_integers_of_quantized_arrays_in_c() {
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++11")] {
        let folder = workplace(&format!("quantized_{language}"));
        let flags: Vec<&str> = STRICT.into_iter().chain(["-O2", standard, "-x", language]).collect();
        build_and_run_in(&folder, &compilers(), "quantized_c", &["quantized.c"], &flags);
    }
}

#[test]
fn standalone_headers_need_no_other() {
    let folder = workplace("standalone");
    let flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
    build_and_run_in(&folder, &compilers(), "standalone", &["standalone.cc"], &flags);
}

#[test]
fn standalone_headers_take_pools_of_eigen() {
    if !has_eigen() {
        return;
    }
    let folder = workplace("standalone_eigen");
    build_and_run_in(&folder, &["g++"], "standalone_eigen", &["standalone_eigen.cc"], &["-std=c++17", "-O1"]);
}

#[test]
fn standalone_headers_beside_others() {
    build_and_run("standalone_and_separate", &["standalone_and_separate.cc"], &["-Wpedantic"]);
}

#[test]
fn sizes_of_named_dimensions_change_from_run_to_run_in_c() {
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++17")] {
        let folder = workplace(&format!("named_dimensions_{language}"));
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/include");
        let mut flags = vec![standard, "-O1", "-I", include.to_str().unwrap(), "-x", language];
        flags.splice(0..0, STRICT);
        build_and_run_in(&folder, &compilers(), "named_dimensions_c", &["named_dimensions.c"], &flags);
    }
}

#[test]
fn test_programs_and_benchmarks_choose_sizes() {
    let folder = workplace("chosen_sizes");
    let entries = folder.join("entries.o");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = root.join("../../runtime/include");
    let compile = |arguments: &[&str]| {
        run(Command::new("gcc").current_dir(&folder).args(arguments).arg("-I").arg(&include));
    };
    let source = root.join("tests/cpp/entries.c");
    compile(&["-c", source.to_str().unwrap(), "-o", entries.to_str().unwrap()]);
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "entries.o"];
    for (name, artifact) in
        [("batched", crate::fixtures::batched()), ("sequences", crate::fixtures::sequences())]
    {
        for (kind, text) in
            [("test", aot::test_program(&artifact)), ("benchmark", aot::benchmark_program(&artifact))]
        {
            let (program, source) = (format!("{name}_{kind}"), format!("{name}_{kind}.c"));
            std::fs::write(folder.join(&source), text.unwrap()).unwrap();
            compile(&[flags.as_slice(), &[&source, "-o", &program]].concat());
        }
        run(Command::new(folder.join(format!("{name}_test"))).arg("--seeds=20"));
    }
    // This program reads beyond the size.
    let wrong =
        std::fs::read_to_string(&source).unwrap().replace("scale * x[i] : -1", "scale * x[i] + x[23] : -1");
    std::fs::write(folder.join("wrong.c"), wrong).unwrap();
    compile(&["-c", "wrong.c", "-o", "entries.o"]);
    compile(&[flags.as_slice(), &["batched_test.c", "-o", "wrong_test"]].concat());
    let output = Command::new(folder.join("wrong_test")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("FAIL: element") && text.contains("result_y differs"), "{text}");
    let benchmark = |flag: &str| {
        Command::new(folder.join("batched_benchmark")).args([flag, "--max_iters=3"]).output().unwrap()
    };
    assert!(benchmark("--batch=7").status.success());
    let output = benchmark("--batch=9");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "--batch: expected a size from 1 to 8\n");
}

/// Compiles for Windows if its cross compiler is available: file mapping, `long`, and warnings
/// differ.
#[test]
fn headers_compile_for_windows() {
    const COMPILER: &str = "x86_64-w64-mingw32-g++";
    if !exists(COMPILER) {
        eprintln!("skipped: {COMPILER} is not installed");
        return;
    }
    let folder = workplace("windows");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for unit in ["models.cc", "constants_file.cc", "standalone.cc", "state.cc", "c_models.c"] {
        run(Command::new(COMPILER)
            .args([
                "-std=c++17",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-fsyntax-only",
                "-x",
                "c++",
            ])
            .arg("-I")
            .arg(root.join("../../runtime/include"))
            .arg("-I")
            .arg(&folder)
            .arg(root.join("tests/cpp").join(unit)));
    }
}

/// Compiles under the rules of Microsoft's compiler as far as clang implements them. Its library is
/// not available, so this tests the headers that need none.
#[test]
fn headers_without_a_library_compile_by_the_rules_of_microsoft() {
    if !compilers().contains(&"clang++") {
        return;
    }
    let folder = workplace("microsoft");
    let includes = folder.join("sys");
    std::fs::create_dir_all(&includes).unwrap();
    std::fs::write(includes.join("cstddef"), "#include <stddef.h>\nnamespace std { using ::size_t; }\n")
        .unwrap();
    let types: String = [
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
        "uintptr_t",
    ]
    .map(|name| format!("using ::{name};"))
    .concat();
    std::fs::write(includes.join("cstdint"), format!("#include <stdint.h>\nnamespace std {{ {types} }}\n"))
        .unwrap();
    let rules =
        ["-fms-extensions", "-fms-compatibility", "--target=x86_64-pc-windows-msvc", "-ffreestanding"];
    let c_headers = [
        "add_c.h",
        "matmul_and_add_c.h",
        "train_c.h",
        "types_c.h",
        "scale_c.h",
        "far_c.h",
        "constant_c.h",
        "counter_c.h",
        "quantized_c.h",
        "batched_c.h",
    ];
    let classes =
        ["matmul_and_add", "train", "types", "scale", "far", "constant", "counter", "quantized", "batched"]
            .map(|name| format!("{name}_freestanding.h"));
    let text = |headers: &[&str]| headers.iter().map(|h| format!("#include \"{h}\"\n")).collect::<String>();
    std::fs::write(folder.join("unit.c"), text(&c_headers)).unwrap();
    let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
    std::fs::write(folder.join("unit.cc"), text(&classes) + &text(&c_headers)).unwrap();
    for (unit, standard) in [("unit.c", "-std=c99"), ("unit.c", "-std=c11"), ("unit.cc", "-std=c++17")] {
        run(Command::new("clang")
            .args(rules)
            .args([standard, "-Wall", "-Wextra", "-Werror", "-Wmicrosoft", "-fsyntax-only", "-isystem"])
            .arg(&includes)
            .arg("-I")
            .arg(&folder)
            .arg(folder.join(unit)));
    }
}
