//! Output of HLO: `tfcompile hlo` in each format, `xla-extract`, `build --emit`, and XLA's own
//! flags.

use crate::support::{refuse, root, succeed, tfcompile};
use std::path::Path;
use std::process::Command;

fn case(name: &str, file: &str) -> String {
    root().join("tests/oracle/tfcompile_tests").join(name).join(file).display().to_string()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Command `tfcompile hlo` for a recorded graph with its config.
fn hlo(directory: &Path, name: &str, flags: &[&str]) -> Command {
    let mut command = tfcompile(directory);
    command.args(["hlo", &case(name, "graph.pb"), "--config", &case(name, "config.pbtxt")]).args(flags);
    command
}

fn text_of(command: &mut Command) -> String {
    String::from_utf8(succeed(command).stdout).expect("UTF-8")
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn text_names_nodes_parameters_and_aliases() {
    let directory = directory();
    let text = text_of(&mut hlo(directory.path(), "tfvariable", &[]));
    assert!(text.starts_with("HloModule "), "{text}");
    assert!(text.contains("input_output_alias={ {1}: (0, {}, must-alias) }"), "{text}");
    assert!(text.contains("op_type=\"AddV2\"") || text.contains("op_type=\"AssignAddVariableOp\""), "{text}");
    let text = text_of(&mut hlo(directory.path(), "tfmatmul", &[]));
    for parameter in ["x_hold = f32[2,3] parameter(0)", "y_hold = f32[3,2] parameter(1)"] {
        assert!(text.contains(parameter), "{text}");
    }
    // A fetch alone is enough.
    let fetched = text_of(tfcompile(directory.path()).args([
        "hlo",
        &case("tfmatmul", "graph.pb"),
        "--fetch=x_y_prod",
        "--shape=x_hold=2,3",
        "--shape=y_hold=3,2",
    ]));
    assert!(fetched.contains(" dot("), "{fetched}");
}

#[test]
fn a_scheduled_module_says_so_and_reads_back() {
    let directory = directory();
    let text = text_of(&mut hlo(directory.path(), "tfmatmulandadd", &["--stage=scheduled"]));
    assert!(text.lines().next().is_some_and(|line| line.contains(", is_scheduled=true")), "{text}");
    let optimized = text_of(&mut hlo(directory.path(), "tfmatmulandadd", &["--stage=optimized"]));
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&text), sorted(&optimized), "the same instructions");
}

#[test]
fn stablehlo_states_its_version_and_runs_as_the_graph_does() {
    let directory = directory();
    let flags = ["--format=stablehlo", "-o", "f.mlir", "--stage=optimized", "--stablehlo-version=1.0.0"];
    succeed(&mut hlo(directory.path(), "tfmatmulandadd", &flags));
    let text = std::fs::read_to_string(directory.path().join("f.mlir")).expect("written");
    assert!(text.contains("stablehlo.target_version = \"1.0.0\""), "{text}");
    let ran = |arguments: &[&str]| {
        let output =
            text_of(tfcompile(directory.path()).arg("run").args(arguments).args(["--random=1", "-q"]));
        // The config determines the names of the results.
        let values =
            output.lines().map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest).to_owned());
        values.collect::<Vec<_>>()
    };
    let graph = case("tfmatmulandadd", "graph.pb");
    let config = case("tfmatmulandadd", "config.pbtxt");
    assert_eq!(ran(&["f.mlir"]).len(), ran(&[&graph, "--config", &config]).len());
    let error =
        refuse(&mut hlo(directory.path(), "tfmatmul", &["--stablehlo-version=9.0.0"]), directory.path());
    assert!(error.contains("expected a version from 0.9.0 to 1.20.0"), "{error}");
    let random = ["--format=stablehlo"];
    let error = refuse(&mut hlo(directory.path(), "tfrandom_uniform", &random), directory.path());
    assert!(error.contains("instruction 'rng-get-and-update-state'"), "{error}");
}

#[test]
fn a_snapshot_holds_arguments() {
    let directory = directory();
    let without = succeed(&mut hlo(directory.path(), "tfmatmul", &["--format=snapshot"])).stdout;
    let ones = ["--format=snapshot", "--feed=x_hold=ones", "--feed=y_hold=ones"];
    let with = succeed(&mut hlo(directory.path(), "tfmatmul", &ones)).stdout;
    assert!(with.starts_with(&without), "the module, then the arguments");
    let one: Vec<u8> = [1f32; 6].iter().flat_map(|x| x.to_le_bytes()).collect();
    let arguments = &with[without.len()..];
    assert_eq!(arguments.windows(one.len()).filter(|window| *window == one).count(), 2);
    // A snapshot is all that a run needs.
    std::fs::write(directory.path().join("s.pb"), &with).expect("writable");
    let replayed = text_of(tfcompile(directory.path()).args(["run", "s.pb", "-q"]));
    assert!(replayed.contains("[[3, 3],\n   [3, 3]]"), "{replayed}");
    let error = refuse(&mut hlo(directory.path(), "tfmatmul", &["--feed=x_hold=ones"]), directory.path());
    assert!(error.contains("only snapshots hold arguments"), "{error}");
}

#[test]
fn a_function_of_the_library_is_a_program() {
    let directory = directory();
    let graph = case("tffunction", "graph.pb");
    let flags = ["--function=test_func_zgAjGndQ1mw", "--shape=a=", "--shape=b="];
    let text = text_of(tfcompile(directory.path()).args(["hlo", &graph]).args(flags));
    for parameter in ["a = s32[] parameter(0)", "b = s32[] parameter(1)"] {
        assert!(text.contains(parameter), "{text}");
    }
    let error =
        refuse(tfcompile(directory.path()).args(["hlo", &graph, "--function=other"]), directory.path());
    assert!(error.contains("available functions: test_func_zgAjGndQ1mw"), "{error}");
}

#[test]
fn extraction_writes_messages_as_text_by_default() {
    let directory = directory();
    let graph = format!("--in_graph={}", case("tfvariable", "graph.pb"));
    let extract = |flags: &[&str]| {
        let mut command = tfcompile(directory.path());
        command.args(["xla-extract", &graph]).args(flags);
        command
    };
    succeed(&mut extract(&["--target_node=result:0"]));
    let text = std::fs::read_to_string(directory.path().join("xla_module.pbtxt")).expect("written");
    assert!(text.contains("entry_computation_name: "), "{text}");
    assert!(text.contains("opcode: \"parameter\""), "{text}");
    succeed(&mut extract(&["--target_node=result", "--out_graph=m.pb"]));
    succeed(&mut extract(&["--target_node=result", "--out_graph=m.txt"]));
    assert_eq!(files(directory.path()), ["m.pb", "m.txt", "xla_module.pbtxt"]);
    let error = refuse(&mut extract(&[]), directory.path());
    assert!(error.contains("target_node can't be empty"), "{error}");
    let error =
        refuse(tfcompile(directory.path()).args(["xla-extract", "--target_node=result"]), directory.path());
    assert!(error.contains("in_graph graph can't be empty"), "{error}");
}

#[test]
fn build_writes_hlo_and_code_as_text() {
    let directory = directory();
    succeed(tfcompile(directory.path()).args([
        "build",
        &case("tfmatmul", "graph.pb"),
        "--config",
        &case("tfmatmul", "config.pbtxt"),
        "--name=product",
        "--class=Product",
        "--target-cpu=x86-64-v3",
        "--target-triple=x86_64-pc-linux",
        "--emit=hlo-text,hlo-proto,stablehlo,dot,html,llvm,asm",
        "-o",
        "out",
        "-q",
    ]));
    let out = directory.path().join("out");
    let names = ["dot", "hlo", "hlo.pb", "html", "ll", "mlir", "s"].map(|suffix| format!("product.{suffix}"));
    assert_eq!(files(&out), names);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect("text");
    for (name, part) in [
        ("product.hlo", "HloModule "),
        ("product.mlir", "func.func public @main("),
        ("product.dot", "digraph"),
        ("product.html", "<html"),
        ("product.ll", "define "),
        ("product.s", "product:"),
    ] {
        assert!(read(name).contains(part), "missing {part} in {name}");
    }
}

#[test]
fn xlas_flags_write_files_with_xlas_names() {
    let directory = directory();
    let mut command = tfcompile(directory.path());
    let flags = "--xla_dump_to=d --xla_dump_hlo_as_text --xla_dump_hlo_as_proto --xla_dump_hlo_as_dot \
                 --xla_dump_hlo_as_html --xla_dump_hlo_pass_re=.*";
    command.env("XLA_FLAGS", flags);
    let graph = case("tfmatmulandadd", "graph.pb");
    let config = case("tfmatmulandadd", "config.pbtxt");
    succeed(command.args(["run", &graph, "--config", &config, "--random=1", "-q"]));
    let names = files(&directory.path().join("d"));
    for when in ["before_optimizations", "cpu_after_optimizations"] {
        for suffix in [".txt", ".hlo.pb", ".dot", ".html"] {
            let name = format!("module_0000.tfcompile.{when}{suffix}");
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
    }
    let memory = "module_0000.tfcompile.cpu_after_optimizations-buffer-assignment.txt".to_owned();
    assert!(names.contains(&memory), "{names:?}");
    let between = |name: &&String| name.starts_with("module_0000.tfcompile.0000.optimization.after_");
    assert!(names.iter().any(|name| between(&name)), "{names:?}");
}

/// HLO that another compiler has fused is also dumped between the passes that normalize it.
#[test]
fn passes_over_foreign_hlo_are_dumped_like_the_others() {
    let directory = directory();
    let text = "HloModule given\n\nfused {\n  a = f32[2] parameter(0)\n  ROOT b = f32[2] negate(a)\n}\n\n\
                ENTRY main {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] fusion(x), kind=kLoop, calls=fused\n}\n";
    std::fs::write(directory.path().join("given.hlo"), text).expect("writable");
    let mut command = tfcompile(directory.path());
    command.env("XLA_FLAGS", "--xla_dump_to=d --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*");
    succeed(command.args(["build", "given.hlo", "-o", "out", "-q"]));
    let names = files(&directory.path().join("d"));
    let beginning = |step: usize, when: &str| {
        let start = format!("module_0000.given.{step:04}.{when}");
        let name_found = names.iter().find(|name| name.starts_with(&start));
        let name_found = name_found.unwrap_or_else(|| panic!("{start} is not in {names:?}"));
        std::fs::read_to_string(directory.path().join("d").join(name_found)).expect("readable")
    };
    assert!(beginning(0, "normalization.after_pipeline-start.before_").contains(" fusion("));
    assert!(!beginning(1, "normalization.after_defuser.before_").contains(" fusion("));
    let _ = beginning(0, "optimization.after_pipeline-start.before_");
}

#[test]
fn the_older_variables_ask_for_graphs_and_logs() {
    let directory = directory();
    let mut command = hlo(directory.path(), "tfadd", &["-o", "m.hlo"]);
    command.env("TF_XLA_FLAGS", "--xla_generate_hlo_graph=.*").env("TF_CPP_MIN_VLOG_LEVEL", "3");
    let output = succeed(&mut command);
    let log = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(log.contains("HLO before optimizations:\nHloModule "), "{log}");
    assert_eq!(files(directory.path()), ["m.hlo", "module_0000.tfcompile.before_optimizations.dot"]);
    let mut command = hlo(directory.path(), "tfadd", &["-o", "n.hlo"]);
    command.env("TF_XLA_FLAGS", "--xla_generate_hlo_graph=no_such_module");
    succeed(&mut command);
    assert_eq!(files(directory.path()).len(), 3, "the module alone");
}
