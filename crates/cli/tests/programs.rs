//! Programs that `--emit=test,benchmark` writes: they compile everywhere and run, and the test
//! program detects defects.

use crate::support::{root, succeed, tfcompile};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// Runs `tfcompile build --emit=obj,test,benchmark` on a graph of the tests, with the name `model`.
fn build(graph: &str, config: &str, flags: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let tests = root().join("tests");
    let mut command = tfcompile(directory.path());
    command.arg("build").arg(tests.join(graph)).arg("--config").arg(tests.join(config));
    command.args(["--name=model", "--emit=obj,test,benchmark", "-q"]).args(flags);
    succeed(&mut command);
    directory
}

fn layer(flags: &[&str]) -> TempDir {
    build("artifacts/layer.pbtxt", "artifacts/layer.config.pbtxt", flags)
}

/// Compiles sources and objects to `program` with a compiler command.
fn compile(directory: &Path, compiler: &[&str], files: &[&str]) {
    let mut command = Command::new(compiler[0]);
    command.current_dir(directory).args(&compiler[1..]).args(WARNINGS).args(files);
    succeed(command.args(["-o", "program"]));
}

fn run(directory: &Path, flags: &[&str]) -> Output {
    Command::new(directory.join("program")).current_dir(directory).args(flags).output().expect("started")
}

fn stdout(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn both_compile_as_c_and_cpp_and_run() {
    let out = layer(&[]);
    for (program, flags, said) in [
        ("model_test.c", &["--seeds=3"], "model on random data 3: ok"),
        ("model_benchmark.c", &["--max_iters=20"], "Benchmark ran 20 iterations over "),
    ] {
        for compiler in [
            &["gcc", "-std=c99", "-O2", "-x", "c"],
            &["clang", "-std=c17", "-O1", "-x", "c"],
            &["g++", "-std=c++11", "-O1", "-x", "c++"],
            &["clang++", "-std=c++20", "-O2", "-x", "c++"],
        ] {
            compile(out.path(), compiler, &[program, "-x", "none", "model.o"]);
            let text = stdout(&run(out.path(), flags));
            assert!(text.contains(said), "{text}");
        }
    }
}

#[test]
fn they_need_only_the_c_library() {
    let out = layer(&[]);
    for program in ["model_test.c", "model_benchmark.c"] {
        compile(out.path(), &["gcc", "-std=c99", "-O2"], &[program, "model.o"]);
        let output = succeed(Command::new("readelf").args(["-d", "program"]).current_dir(out.path()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let needed: Vec<&str> = text.lines().filter(|line| line.contains("(NEEDED)")).collect();
        assert!(matches!(needed.as_slice(), [one] if one.contains("[libc.so")), "{text}");
    }
}

/// Feeds of several types, written variables, and results whose size is determined at run time.
#[test]
fn every_kind_of_program_passes_its_test() {
    for graph in ["tfvariable", "tfvariable_sequential_updates", "tftop_k", "tfrandom_uniform", "tfcond_cfv1"]
    {
        let at = |file: &str| format!("oracle/tfcompile_tests/{graph}/{file}");
        let out = build(&at("graph.pb"), &at("config.pbtxt"), &[]);
        compile(out.path(), &["gcc", "-std=c99", "-O1"], &["model_test.c", "model.o"]);
        let text = stdout(&run(out.path(), &[]));
        assert!(text.contains("model on zeros: ok") && text.contains("model on random data 2: ok"), "{text}");
    }
}

#[test]
fn results_of_bounded_size_are_compared_up_to_their_size() {
    let out = tempfile::tempdir().expect("a directory");
    let model = "HloModule ends\n\nENTRY main {\n  x = f32[40] parameter(0)\n  n = s32[] parameter(1)\n  \
                 ROOT y = f32[<=40] set-dimension-size(x, n), dimensions={0}\n}\n";
    std::fs::write(out.path().join("ends.hlo"), model).expect("written");
    let mut command = tfcompile(out.path());
    succeed(command.args(["build", "ends.hlo", "--name=model", "--emit=obj,test", "-q"]));
    let source = std::fs::read_to_string(out.path().join("model_test.c")).expect("written");
    assert!(source.contains("#define PROGRAM_DYNAMIC_SIZES"), "the result is of bounded size");
    compile(out.path(), &["gcc", "-std=c99", "-O1"], &["model_test.c", "model.o"]);
    stdout(&run(out.path(), &[]));
}

#[test]
fn weights_in_a_file_are_read_from_it() {
    let out = layer(&["--constants=file"]);
    for (program, flag) in [("model_test.c", "--seeds=1"), ("model_benchmark.c", "--max_iters=3")] {
        compile(out.path(), &["gcc", "-std=c99", "-O1"], &[program, "model.o"]);
        stdout(&run(out.path(), &[flag]));
        std::fs::copy(out.path().join("model.constants"), out.path().join("others")).expect("copied");
        stdout(&run(out.path(), &[flag, "--constants=others"]));
        let output = run(out.path(), &[flag, "--constants=missing"]);
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains("cannot read the constants file 'missing'"), "{message}");
    }
}

/// Compiles the test program with the given function body in place of the compiled code, and runs
/// it. The layer has one result.
fn test_of(body: &str) -> Output {
    let out = layer(&[]);
    let function = format!(
        "#define main generated_main\n#include \"model_test.c\"\n#undef main\n\
         const unsigned char model_constants[1] = {{0}};\n\
         static int runs = 0;\n\
         static int32_t item(void* data, int64_t begin, int64_t end, int64_t worker) {{\n\
           float* to = (float*)data;\n  for (; begin < end; ++begin) to[begin] = (float)worker;\n  return 0;\n}}\n\
         int32_t model(struct tfcompile_frame* frame) {{\n  float* y = (float*)frame->results[0];\n  uint64_t i;\n  \
         ++runs;\n  for (i = 0; i < program_results[0].count; ++i) y[i] = 1;\n  (void)item;\n{body}\n  return 0;\n}}\n\
         int main(int argc, char** argv) {{ return generated_main(argc, argv); }}\n"
    );
    std::fs::write(out.path().join("main.c"), function).expect("written");
    compile(out.path(), &["gcc", "-std=c99", "-O1"], &["main.c"]);
    run(out.path(), &[])
}

#[test]
fn the_test_fails_for_code_that_violates_its_contract() {
    assert!(test_of("").status.success(), "the same result every time");
    for (defect, what) in [
        // Results that differ from run to run, that depend on uninitialized memory, and on the
        // worker.
        ("  y[0] = (float)runs;", "differs between the first run and a run in other memory"),
        (
            "  y[0] = ((unsigned char*)frame->temps)[64];",
            "differs between the first run and a run in other memory",
        ),
        (
            "  if (frame->parallel_for) frame->parallel_for(frame->context, 2, item, y);",
            "differs between the first run and a run with other workers",
        ),
        (
            "  if (runs == 2) { frame->error = \"bad\"; return 1; }",
            "the first run reports '', but a run in other memory reports 'bad'",
        ),
        (
            "  frame->error = \"must be\"; return TFCOMPILE_ABORT;",
            "an assertion of the graph failed: must be",
        ),
    ] {
        let output = test_of(defect);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{defect}: {text}");
        assert!(text.contains("FAIL: ") && text.contains(what), "{defect}: {text}");
    }
    let output = test_of("  frame->error = \"not for zeros\"; return 1;");
    assert!(stdout(&output).contains("note: the program reports: not for zeros"));
}

/// Twenty times, computed by hand: the fastest tenth are two of them, a quarter is five.
#[test]
fn statistics_are_those_of_the_original() {
    let out = layer(&[]);
    let main = "#define main generated_main\n#include \"model_benchmark.c\"\n#undef main\n\
        int main(void) {\n\
          double times[20] = {100, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 1000, 1};\n\
          struct statistics s = statistics_of(times, 20);\n\
          print_statistics(&s, 20, 1271);\n\
          double one[1] = {7};\n\
          s = statistics_of(one, 1);\n\
          print_statistics(&s, 1, 7);\n\
          (void)generated_main;\n  return 0;\n}\n";
    std::fs::write(out.path().join("main.c"), main).expect("written");
    compile(out.path(), &["gcc", "-std=c99", "-O1"], &["main.c", "model.o"]);
    let text = stdout(&run(out.path(), &[]));
    // Sorted: 1 to 18, 100, 1000. The middle ten are 6 to 15.
    let expected = "Benchmark ran 20 iterations over 1271 us\n  \
        Best:                           1.000 us\n  \
        Worst:                       1000.000 us\n  \
        Median:                        11.000 us\n  \
        Mean:                          63.550 us\n  \
        Mean with 25% trimmed:         10.500 us\n  \
        Mean of 10% best:               1.500 us\n\
        Benchmark ran 1 iterations over 7 us\n";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.matches(" 7.000 us").count(), 6, "{text}");
}

#[test]
fn the_benchmark_keeps_its_limits() {
    let out = layer(&[]);
    compile(out.path(), &["gcc", "-std=c99", "-O1"], &["model_benchmark.c", "model.o"]);
    let text = stdout(&run(out.path(), &["--max_micros=1000", "--max_iters=1000000000", "--warmup=0"]));
    assert!(text.contains("Running benchmark for 1000 us"), "{text}");
    for flags in [&["--max_iters"][..], &["--max_iters=many"], &["model"], &["--help"]] {
        let output = run(out.path(), flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage: "), "{flags:?}");
    }
}

/// Runs in the emulator if it and the cross compiler are installed. They must be if CI is `true`.
#[test]
fn they_run_on_aarch64() {
    let (gcc, emulator) = ("aarch64-linux-gnu-gcc", "qemu-aarch64");
    if [gcc, emulator].iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{gcc} and {emulator} are needed");
        println!("skipped: {gcc} and {emulator} are needed");
        return;
    }
    let out = layer(&["--target=aarch64-linux"]);
    for (program, flag) in [("model_test.c", "--seeds=1"), ("model_benchmark.c", "--max_iters=5")] {
        compile(out.path(), &[gcc, "-std=c99", "-O2", "-static"], &[program, "model.o"]);
        let mut command = Command::new(emulator);
        succeed(command.arg("program").arg(flag).current_dir(out.path()));
    }
}

#[test]
fn the_drop_in_command_writes_them_too() {
    let out = tempfile::tempdir().expect("a directory");
    let graph = root().join("tests/oracle/tfcompile_tests/tfmatmulandadd");
    let flag = |name: &str, file: &str| format!("--{name}={}", graph.join(file).display());
    succeed(tfcompile(out.path()).args([
        &flag("graph", "graph.pb"),
        &flag("config", "config.pbtxt"),
        "--cpp_class=ns::Comp",
        "--entry_point=model",
        "--out_test=t.c",
        "--out_benchmark=b.c",
    ]));
    compile(out.path(), &["gcc", "-std=c99", "-O1"], &["t.c", "out_model.o"]);
    assert!(stdout(&run(out.path(), &[])).contains("model on zeros: ok"));
    compile(out.path(), &["gcc", "-std=c99", "-O1"], &["b.c", "out_model.o"]);
    assert!(stdout(&run(out.path(), &["--max_iters=2"])).contains("ran 2 iterations"));
}
