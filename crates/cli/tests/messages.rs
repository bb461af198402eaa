//! Errors of users: each leads to one message and exit code 1, and no file is written.

use crate::support::{refuse, root, succeed, tfcompile};
use std::path::Path;

/// A graph of one node `y = x + x` over a placeholder, and a config for it.
const GRAPH: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1286 }
"#;
const CONFIG: &str = r#"
feed { id { node_name: "x" } shape { dim { size: 2 } } }
fetch { id { node_name: "y" } }
"#;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("graph.pbtxt"), GRAPH).expect("writable");
        std::fs::write(directory.path().join("config.pbtxt"), CONFIG).expect("writable");
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs the tool with these flags and with a valid graph and config. Returns the error message.
    fn refuse(&self, flags: &[&str]) -> String {
        let mut command = tfcompile(self.path());
        command.args(["--graph=graph.pbtxt", "--config=config.pbtxt", "--cpp_class=Comp"]).args(flags);
        refuse(&mut command, self.path())
    }
}

#[test]
fn missing_flags_are_named_one_after_another() {
    let place = Place::new();
    let say = |flags: &[&str]| refuse(tfcompile(place.path()).args(flags), place.path());
    assert!(say(&[]).contains("Must specify --config"));
    assert!(say(&["--config=config.pbtxt"]).contains("Must specify --graph"));
    assert!(say(&["--config=config.pbtxt", "--graph=graph.pbtxt"]).contains("Must specify --cpp_class"));
}

#[test]
fn wrong_words_are_named() {
    let place = Place::new();
    assert!(place.refuse(&["--no_such_flag=1"]).contains("'--no_such_flag'"));
    assert!(place.refuse(&["left_over"]).contains("does not take any arguments other than flags"));
    assert!(place.refuse(&["--gen_program_shape=perhaps"]).contains("perhaps"));
    assert!(place.refuse(&["--mlir_components=Rubbish"]).contains("Unknown mlir_component Rubbish"));
    let near = place.refuse(&["--out_heder=x"]);
    assert!(
        near.contains("'--out_heder' found; a similar argument exists: '--out_header'. See --help."),
        "{near}"
    );
    let none = place.refuse(&["--out_header"]);
    let first = none.lines().next().unwrap_or_default();
    assert!(!none.contains("For more") && first.ends_with(". See --help."), "{none}");
}

#[test]
fn the_last_line_of_a_message_has_a_code_that_explain_knows() {
    let place = Place::new();
    for (flags, code) in [
        (&["--no_such_flag=1"][..], "E0101"),
        (&["--graph=missing.pb"], "E0102"),
        (&["--cpp_class=a-b::C"], "E0106"),
        (&["--target_cpu=skylak"], "E0105"),
    ] {
        let message = place.refuse(flags);
        let last = format!("({code}: `tfcompile explain {code}` says more)");
        assert_eq!(message.lines().last(), Some(&*last), "{message}");
        let output = succeed(tfcompile(place.path()).args(["explain", code]));
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(&format!("{code}: ")), "{code}");
    }
    let message = refuse(tfcompile(place.path()).args(["explain", "E9999"]), place.path());
    assert!(message.contains("'E9999'"), "{message}");
}

#[test]
fn wrong_names_are_refused_before_anything_is_compiled() {
    let place = Place::new();
    assert!(
        place
            .refuse(&["--cpp_class=a-b::C"])
            .contains("illegal char: in namespace component of cpp_class: a-b::C")
    );
    assert!(
        place
            .refuse(&["--cpp_class=a::::C"])
            .contains("empty identifier: in namespace component of cpp_class")
    );
    assert!(place.refuse(&["--entry_point=a:b"]).contains("a:b"));
    assert!(place.refuse(&["--entry_point=malloc"]).contains("taken by a function of the C library"));
    assert!(place.refuse(&["--entry_point=Comp"]).contains("has the same name as a C symbol"));
    assert!(place.refuse(&["--cpp_class=tensorflow"]).contains("is a namespace"));
}

#[test]
fn wrong_targets_are_refused_by_name() {
    let place = Place::new();
    assert!(place.refuse(&["--target_triple=nonsense-pc-linux"]).contains("nonsense-pc-linux"));
    assert!(place.refuse(&["--target_cpu=pentium9"]).contains("pentium9"));
    assert!(place.refuse(&["--target_features=+avx9"]).contains("avx9"));
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let place = Place::new();
    assert!(
        place.refuse(&["--graph=/nonexistent.pb"]).contains("/nonexistent.pb; No such file or directory")
    );
    let missing = place.refuse(&["--out_header=missing/out.h"]);
    assert!(missing.contains("'missing/out.h': No such file or directory"), "{missing}");
    assert!(missing.contains("create its directory first") && !missing.contains(".tfcompile-"), "{missing}");
    assert!(place.refuse(&["--out_function_object=/dev/full"]).contains("/dev/full"));
    assert!(Path::new("/dev/full").exists());
}

#[test]
fn a_wrong_field_of_the_config_is_named_with_its_place() {
    let place = Place::new();
    std::fs::write(place.path().join("bad.pbtxt"), "feed { bogus: 1 }\n").expect("writable");
    let message = place.refuse(&["--config=bad.pbtxt"]);
    assert!(message.contains("1:13"), "{message}");
    assert!(message.contains("\"tensorflow.tf2xla.Feed\" has no field named \"bogus\""), "{message}");
}

#[test]
fn fetch_nodes_are_printed_sorted_and_alone() {
    let place = Place::new();
    let config = r#"fetch { id { node_name: "b" } } fetch { id { node_name: "a" } } fetch { id { node_name: "b" output_index: 1 } }"#;
    std::fs::write(place.path().join("config.pbtxt"), config).expect("writable");
    let output = succeed(tfcompile(place.path()).args(["--config=config.pbtxt", "--dump_fetch_nodes"]));
    assert_eq!(output.stdout, b"a,b");
}

#[test]
fn help_and_version_are_not_errors() {
    let help = succeed(tfcompile(&root()).arg("--help"));
    let text = String::from_utf8(help.stdout).expect("UTF-8");
    for flag in ["--graph", "--config", "--cpp_class", "--target_cpu", "--out_header", "--dump_fetch_nodes"] {
        assert!(text.contains(flag), "{flag}");
    }
    let version = succeed(tfcompile(&root()).arg("--version"));
    assert!(String::from_utf8(version.stdout).expect("UTF-8").starts_with("tfcompile "));
}

#[test]
fn xla_flags_are_accepted_with_a_warning() {
    let place = Place::new();
    let mut command = tfcompile(place.path());
    command.args([
        "--graph=graph.pbtxt",
        "--config=config.pbtxt",
        "--cpp_class=Comp",
        "--xla_cpu_no_such_thing=3",
    ]);
    let output = succeed(command.env("XLA_FLAGS", "--xla_cpu_enable_fast_math=true"));
    let warnings = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(warnings.contains("--xla_cpu_enable_fast_math in XLA_FLAGS is ignored"), "{warnings}");
    assert!(warnings.contains("--xla_cpu_no_such_thing"), "{warnings}");
}

/// Runs the tool with standard output on a terminal of this width. Returns what appears there.
fn on_terminal(place: &Path, columns: usize, variables: &[(&str, &str)], arguments: &str) -> String {
    let tool = env!("CARGO_BIN_EXE_tfcompile");
    let mut command = std::process::Command::new("script");
    command.current_dir(place).env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied());
    command.args(["--quiet", "--return", "/dev/null", "--command"]);
    command.arg(format!("stty rows 24 cols {columns}; exec {tool} {arguments}"));
    String::from_utf8(succeed(&mut command).stdout).expect("UTF-8").replace('\r', "")
}

#[test]
fn tables_fit_the_terminal() {
    let place = Place::new();
    let model = "graph.pbtxt --config config.pbtxt --quiet";
    for (command, title) in [
        ("bench --seconds 0.01 --kernels", "threads"),
        ("profile --steps 3 --no-peak", "share"),
        ("report --seconds 0.01 --no-peak", "share"),
        ("check", "interface"),
        ("verify", "whole program"),
    ] {
        // With --quiet, `verify` prints only failures.
        let model = if command == "verify" { "graph.pbtxt --config config.pbtxt -v" } else { model };
        let at = |columns, variables: &[_]| {
            on_terminal(place.path(), columns, variables, &format!("{command} {model}"))
        };
        let plain = at(48, &[("NO_COLOR", "1")]);
        assert!(!plain.contains('\x1b'), "{command}: {plain}");
        let table = plain.split_once(title).unwrap_or_else(|| panic!("{command} has no {title}: {plain}")).1;
        for line in table.lines() {
            assert!(line.chars().count() <= 48, "{command} is too wide: {line}");
        }
        assert!(at(120, &[]).contains("\x1b[1m"), "{command} has no bold titles");
    }
}

#[test]
fn sizes_in_a_config_are_possible_and_have_an_effect() {
    let place = Place::new();
    let graph = GRAPH.replace(
        "versions",
        "node { name: \"w\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } }\n\
         node { name: \"z\" op: \"AddV2\" input: \"x\" input: \"w\" attr { key: \"T\" value { type: DT_FLOAT } } }\n\
         versions",
    );
    std::fs::write(place.path().join("graph.pbtxt"), graph).expect("writable");
    let say = |dimensions: &str, command: &[&str]| {
        let feed = |name: &str, size: &str| {
            format!(
                "feed {{ id {{ node_name: \"{name}\" }} shape {{ dim {{ size: -1 name: \"{size}\" }} }} }}\n"
            )
        };
        let feeds = feed("x", "n") + &feed("w", "m");
        let config = feeds + "fetch { id { node_name: \"z\" } }\n" + dimensions;
        std::fs::write(place.path().join("config.pbtxt"), config).expect("writable");
        let mut tool = tfcompile(place.path());
        let [command, flags @ ..] = command else { panic!("a command") };
        if *command == "build" && flags.is_empty() {
            tool.env("XLA_FLAGS", "--xla_hlo_profile");
        }
        tool.args([*command, "graph.pbtxt", "--config=config.pbtxt"]).args(flags);
        refuse(&mut tool, place.path())
    };
    let m = "dimension { name: \"m\" min: 2 max: 4 }\n";
    let n = |rest: &str| format!("{m}dimension {{ name: \"n\" {rest} }}");
    let sized = n("min: 1 max: 4 size: 2");
    let profile = "the sizes of dimension 'n' in the config have no effect, remove them: a profile measures";
    assert!(say(&sized, &["profile"]).contains(profile));
    assert!(say(&sized, &["build"]).contains(profile));
    let gpu = say(&sized, &["build", "--target=cuda"]);
    assert!(gpu.contains("'n' in the config have no effect, remove them: programs for GPUs"), "{gpu}");
    // No run could add two arrays of these sizes.
    let apart = say(&n("min: 5 max: 9"), &["run", "--random=1"]);
    assert!(apart.contains("Incompatible shapes: [9] vs. [4] (node 'z'"), "{apart}");
    let spaced = say(&n("min: 1 max: 4").replace("\"m\"", "\"m m\""), &["run", "--random=1"]);
    assert!(spaced.contains("dimension 'm m' of the config: expected a name of letters"), "{spaced}");
}
