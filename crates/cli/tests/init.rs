//! `tfcompile init`, `completions`, and `man`. `scripts/test_builds.sh` builds the projects.

use crate::support::{refuse, root, succeed, tfcompile};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Creates a directory that looks like an unpacked release of tfcompile.
fn prefix(directory: &Path) {
    let config = directory.join("prefix/lib/cmake/tfcompile/tfcompileConfig.cmake");
    fs::create_dir_all(config.parent().expect("a folder")).expect("created");
    fs::write(config, "").expect("written");
}

fn init(directory: &Path, build: &str, model: &str, flags: &[&str]) -> Command {
    let mut command = tfcompile(directory);
    command.args(["init", "project", "--prefix=prefix", "--build", build, "--model"]);
    command.arg(root().join(model)).args(flags);
    command
}

#[test]
fn a_project_is_complete_and_has_no_placeholders() {
    for (build, files) in [
        ("bazel", &["WORKSPACE", "BUILD.bazel", ".bazelrc", "main.cc"][..]),
        ("cmake", &["CMakeLists.txt", "main.cc"]),
        ("cargo", &["Cargo.toml", "build.rs", "src/main.rs"]),
        ("make", &["Makefile", "main.cc"]),
        ("web", &["index.html", "app.js", "build.sh"]),
        ("pico-sdk", &["CMakeLists.txt", "pico_sdk_import.cmake", "model.cmake", "main.c"]),
        ("zephyr", &["CMakeLists.txt", "Kconfig", "prj.conf", "model.cmake", "src/main.c"]),
        ("arduino", &["library.properties", "build.sh", "examples/Run/Run.ino"]),
        ("esp-idf", &["CMakeLists.txt", "main/CMakeLists.txt", "main/main.c", "sdkconfig.defaults"]),
        ("cmsis", &["keras3.csolution.yml", "keras3.cproject.yml", "compile_model.cmake", "main.c"]),
    ] {
        let out = tempfile::tempdir().expect("a directory");
        prefix(out.path());
        let output = succeed(&mut init(out.path(), build, "tests/saved_models/keras3", &["--batch=3"]));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.contains("next: cd project && "), "{text}");
        let project = out.path().join("project");
        for file in files {
            let text = fs::read_to_string(project.join(file)).expect("written");
            assert!(
                !["@NAME", "@CLASS", "@PREFIX", "@MODEL", "@CONFIG", "@ACC", "@CAPITALS", "@RESULTS"]
                    .iter()
                    .any(|part| text.contains(part))
            );
        }
        let config = fs::read_to_string(project.join("model.config.pbtxt")).expect("written");
        assert!(config.contains("size: 3"), "the inferred sizes: {config}");
        let model = root().join("tests/saved_models/keras3/saved_model.pb");
        assert_eq!(
            fs::read(project.join("model/saved_model.pb")).expect("copied"),
            fs::read(model).expect("exists")
        );
        assert!(project.join("model/variables/variables.index").is_file());
    }
}

#[test]
fn a_project_of_an_open_batch_runs() {
    let out = tempfile::tempdir().expect("a directory");
    prefix(out.path());
    let graph = "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } }
        attr { key: \"shape\" value { shape { dim { size: -1 } dim { size: 3 } } } } }
        node { name: \"y\" op: \"Relu\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }";
    let model = out.path().join("rows.pbtxt");
    fs::write(&model, graph).expect("written");
    succeed(&mut init(out.path(), "make", model.to_str().expect("UTF-8"), &[]));
    let project = out.path().join("project");
    let mut tool = tfcompile(&project);
    tool.args(["build", "model/rows.pbtxt", "--config", "model.config.pbtxt", "--name", "rows", "-o", "."]);
    succeed(tool.args(["--class", "Rows", "-q", "--emit", "obj,header"]));
    let mut compiler = Command::new("g++");
    compiler.current_dir(&project).args(["-std=c++17", "-Wall", "-Werror", "-I"]);
    compiler.arg(root().join("runtime/include"));
    succeed(compiler.args(["main.cc", "rows.o", "-o", "app"]));
    let output = succeed(&mut Command::new(project.join("app")));
    assert_eq!(String::from_utf8(output.stdout).expect("UTF-8"), "result 0: 768 bytes\n");
}

#[test]
fn a_program_without_a_config_needs_none() {
    let out = tempfile::tempdir().expect("a directory");
    prefix(out.path());
    let module = "HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n";
    let path = out.path().join("negate.hlo");
    fs::write(&path, module).expect("written");
    succeed(&mut init(out.path(), "cmake", path.to_str().expect("UTF-8"), &[]));
    let text = fs::read_to_string(out.path().join("project/CMakeLists.txt")).expect("written");
    assert!(text.contains("GRAPH \"model/negate.hlo\"") && !text.contains("CONFIG"), "{text}");
}

#[test]
fn programs_for_boards_print_each_result_that_is_a_number() {
    let out = tempfile::tempdir().expect("a directory");
    let module = "HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n  y = s8[4] convert(x)\n  \
                  z = f16[4] convert(x)\n  ROOT r = (f32[4], s8[4], f16[4]) tuple(x, y, z)\n}\n";
    let path = out.path().join("three.hlo");
    fs::write(&path, module).expect("written");
    // Without a release: the projects need only the tool.
    succeed(&mut init(out.path(), "pico-sdk", path.to_str().expect("UTF-8"), &[]));
    let text = fs::read_to_string(out.path().join("project/main.c")).expect("written");
    let has = |name: &str| text.contains(&format!("(double)three_{name}(state)[0]);"));
    assert!(has("result_result0") && has("result_result1") && !has("result_result2"), "{text}");
    for name in ["three_arg_x(state), THREE_arg_x_COUNT", "three_result_result2(state)"] {
        assert!(text.contains(name), "{text}");
    }
    let text = fs::read_to_string(out.path().join("project/model.cmake")).expect("written");
    assert!(text.contains("model/three.hlo") && !text.contains("--config"), "{text}");
    // The C header has these names.
    let project = out.path().join("project");
    succeed(tfcompile(&project).args([
        "build",
        "model/three.hlo",
        "--name=three",
        "-q",
        "--emit=obj,c-header",
    ]));
    let mut compiler = Command::new("gcc");
    compiler.current_dir(&project).args([
        "-fsyntax-only",
        "-Wall",
        "-Werror",
        "-DPICO_STACK_SIZE=65536",
        "main.c",
    ]);
    succeed(compiler.arg("-I").arg(root().join("tests/microcontrollers/stand_ins/include")));
}

#[test]
fn nothing_is_overwritten_and_every_error_says_what_to_do() {
    let out = tempfile::tempdir().expect("a directory");
    let layer = "tests/artifacts/layer.pbtxt";
    let message = refuse(&mut init(out.path(), "make", layer, &["--shape=x=2,4"]), out.path());
    assert!(message.contains("--prefix"), "{message}");
    prefix(out.path());
    let message = refuse(&mut init(out.path(), "make", layer, &[]), out.path());
    assert!(message.contains("--shape x=SIZES"), "{message}");
    succeed(&mut init(out.path(), "make", layer, &["--shape=x=2,4"]));
    let message = refuse(&mut init(out.path(), "make", layer, &["--shape=x=2,4"]), out.path());
    assert!(message.contains("already exists"), "{message}");
    fs::copy(root().join(layer), out.path().join("a b.pbtxt")).expect("copied");
    let path = out.path().join("a b.pbtxt");
    fs::remove_dir_all(out.path().join("project")).expect("removed");
    let mut command = init(out.path(), "make", path.to_str().expect("UTF-8"), &["--shape=x=2,4"]);
    let message = refuse(&mut command, out.path());
    assert!(message.contains("special to build systems"), "{message}");
}

/// Runs a program with a text as its standard input.
fn feed(program: &str, arguments: &[&str], text: &[u8]) -> std::process::Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    child.stdin.take().expect("piped").write_all(text).expect("read");
    child.wait_with_output().expect("ended")
}

#[test]
fn bash_completes_commands_and_flags() {
    let out = tempfile::tempdir().expect("a directory");
    let script = succeed(tfcompile(out.path()).args(["completions", "bash"])).stdout;
    let ask = "\nCOMP_WORDS=(tfcompile build m.pb --no-run); COMP_CWORD=3\n\
               _tfcompile tfcompile --no-run m.pb\necho \"${COMPREPLY[@]}\"\n";
    let output = feed("bash", &[], &[&script[..], ask.as_bytes()].concat());
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "--no-runtime-headers");
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        let script = succeed(tfcompile(out.path()).args(["completions", shell])).stdout;
        assert!(String::from_utf8_lossy(&script).contains("no-runtime-headers"), "{shell}");
    }
}

#[test]
fn pages_describe_the_tool_and_each_command() {
    let out = tempfile::tempdir().expect("a directory");
    let page = succeed(tfcompile(out.path()).arg("man")).stdout;
    let page = String::from_utf8(page).expect("UTF-8");
    assert!(page.contains(".TH tfcompile 1") && page.contains("tfcompile\\-build(1)"), "{page}");
    let page = succeed(tfcompile(out.path()).args(["man", "build"])).stdout;
    assert!(String::from_utf8_lossy(&page).contains("\\-\\-depfile"));
    let message = refuse(tfcompile(out.path()).args(["man", "bake"]), out.path());
    assert!(message.contains("unknown command 'bake': expected one of build, check"), "{message}");
}
