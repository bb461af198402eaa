//! Commands that take a model: their files, their output, and their errors.

mod report;

use crate::support::{refuse, root, succeed, tfcompile};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn case(name: &str) -> (String, String) {
    let case = root().join("tests/oracle/tfcompile_tests").join(name);
    (case.join("graph.pb").display().to_string(), case.join("config.pbtxt").display().to_string())
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Builds the matrix product of the original's own tests and returns the output.
fn build(directory: &Path, flags: &[&str]) -> String {
    let (graph, config) = case("tfmatmul");
    let mut command = tfcompile(directory);
    command.args([
        "build",
        &graph,
        "--config",
        &config,
        "--name",
        "product",
        "--class",
        "ns::Product",
        "-o",
        "out",
    ]);
    text(succeed(command.args(flags)).stdout)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("UTF-8")
}

/// Returns every file in a directory and its subdirectories, with its bytes.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files_found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files_found.extend(files(&path))
        } else {
            files_found.push((path.clone(), std::fs::read(&path).expect("readable")))
        }
    }
    files_found.sort();
    files_found
}

/// Program that multiplies two matrices and returns 0 if the product is right.
const MAIN: &str = r#"
#include "product.h"
int main() {
  ns::Product product;
  for (int k = 0; k < 6; ++k) { product.arg0_data()[k] = k + 1; product.arg1_data()[k] = 6 - k; }
  if (!product.Run()) return 1;
  const float expected[] = {20, 14, 56, 41};
  for (int k = 0; k < 4; ++k) if (product.result0_data()[k] != expected[k]) return 2;
  return 0;
}
"#;

/// Runs the command that `build` printed after `link:`, then the program.
fn link_and_run(directory: &Path, printed: &str) {
    link_and_run_source(directory, printed, MAIN);
}

fn link_and_run_source(directory: &Path, printed: &str, main: &str) {
    std::fs::write(directory.join("main.cc"), main).expect("writable");
    let line = printed.lines().find_map(|line| line.strip_prefix("link: ")).expect("a link line");
    succeed(Command::new("sh").current_dir(directory).args(["-c", line]));
    // The program must run from any directory, not only from the one where it was linked.
    succeed(Command::new(directory.join("main")).current_dir("/").env_remove("LD_LIBRARY_PATH"));
}

#[test]
fn the_printed_command_links_a_program_that_runs() {
    for emit in ["obj,header", "obj,header,metadata", "archive,header", "shared,header"] {
        let place = directory();
        let printed = build(place.path(), &["--emit", emit]);
        link_and_run(place.path(), &printed);
    }
    let place = directory();
    let printed = build(place.path(), &["--standalone-header", "--multiversion", "none"]);
    assert!(!place.path().join("out/include").exists());
    link_and_run(place.path(), &printed);
}

#[test]
fn a_library_of_another_directory_is_found_by_its_program() {
    let place = directory();
    let elsewhere = place.path().join("a library's place");
    let printed = build(place.path(), &["--emit", "shared,header", "-o", &elsewhere.display().to_string()]);
    link_and_run(place.path(), &printed);
}

#[test]
fn metadata_is_for_the_methods_of_the_class() {
    for (emit, has) in [("obj,header", "false"), ("obj,header,metadata", "true")] {
        let place = directory();
        let printed = build(place.path(), &["--emit", emit]);
        let main = MAIN.replace(
            "if (!product.Run()) return 1;",
            &format!(
                "if (!product.Run()) return 1;\n  if (product.HasNameIndices() != {has}) return 3;\n  if ((product.ProgramShape() != nullptr) != {has}) return 4;"
            ),
        );
        link_and_run_source(place.path(), &printed, &main);
    }
}

#[test]
fn a_library_for_windows_is_linked_and_the_same_each_time() {
    if Command::new("x86_64-w64-mingw32-gcc").arg("--version").output().is_err() {
        println!("skipped: there is no compiler for Windows");
        return;
    }
    let library = || {
        let place = directory();
        let flags = ["--target", "x86_64-windows", "--emit", "shared,header", "--multiversion", "none"];
        let printed = build(place.path(), &flags);
        assert!(
            printed.contains("link: x86_64-w64-mingw32-g++ ") && printed.contains(" out/product.dll "),
            "{printed}"
        );
        std::fs::read(place.path().join("out/product.dll")).expect("written")
    };
    let bytes = library();
    assert!(bytes.starts_with(b"MZ") && bytes.windows(12).any(|w| w == b"product.dll\0"));
    assert!(bytes == library());
}

#[test]
fn every_file_is_listed_with_its_size() {
    let place = directory();
    let everything = "obj,header,c-header,archive,shared,metadata,session-module";
    let printed = build(place.path(), &["--emit", everything, "--constants", "file"]);
    let names = [
        "product.o",
        "product.h",
        "product_c.h",
        "libproduct.a",
        "libproduct.so",
        "product.metadata.o",
        "product.hlo_snapshot.pb",
        "product.constants",
    ];
    for name in names {
        let line = printed.lines().find(|line| line.starts_with(&format!("out/{name} "))).expect(name);
        assert!(line.ends_with('B'), "{line}");
        assert!(place.path().join("out").join(name).metadata().expect(name).len() > 0);
    }
    let quiet = directory();
    assert_eq!(build(quiet.path(), &["-q"]), "");
}

#[test]
fn the_same_model_gives_the_same_files_anywhere() {
    let flags = ["--emit", "obj,header,c-header,archive,shared,metadata,session-module"];
    let (one, two) = (directory(), directory());
    build(one.path(), &flags);
    build(two.path(), &flags);
    let strip = |place: &TempDir| -> Vec<(PathBuf, Vec<u8>)> {
        let relative = |(path, bytes): (PathBuf, Vec<u8>)| {
            (path.strip_prefix(place.path()).expect("below").to_owned(), bytes)
        };
        files(place.path()).into_iter().map(relative).collect()
    };
    assert!(strip(&one) == strip(&two));
}

#[test]
fn a_library_exports_the_program_and_nothing_else() {
    let place = directory();
    build(place.path(), &["--emit", "shared,archive"]);
    let symbols = |file: &str, flags: &[&str]| -> Vec<String> {
        let listing = succeed(Command::new("nm").current_dir(place.path()).args(flags).arg(file));
        let listing = text(listing.stdout);
        let mut names: Vec<String> =
            listing.lines().filter_map(|line| line.split_whitespace().nth(2).map(str::to_owned)).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(symbols("out/libproduct.so", &["-D", "--defined-only"]), ["product", "product_constants"]);
    assert_eq!(symbols("out/libproduct.a", &["-g", "--defined-only"]), ["product", "product_constants"]);
    let index =
        text(succeed(Command::new("nm").current_dir(place.path()).args(["-s", "out/libproduct.a"])).stdout);
    assert!(index.contains("product in product.o"), "{index}");
    assert!(index.contains("product_constants in product.o"), "{index}");
}

#[test]
fn nothing_is_written_if_one_file_cannot_be() {
    let place = directory();
    std::fs::create_dir_all(place.path().join("out/product.h")).expect("created");
    let (graph, config) = case("tfmatmul");
    let mut command = tfcompile(place.path());
    command.args(["build", &graph, "--config", &config, "--name", "product", "-o", "out"]);
    let message = refuse(&mut command, place.path());
    assert!(message.contains("out/product.h"), "{message}");
    assert_eq!(files(&place.path().join("out")), []);
}

#[test]
fn names_come_from_the_model_and_wrong_ones_are_errors() {
    let place = directory();
    let (graph, config) = case("tfmatmul");
    succeed(tfcompile(place.path()).args(["build", &graph, "--config", &config]));
    let header =
        std::fs::read_to_string(place.path().join("tfmatmul.h")).expect("named by the model's directory");
    assert!(header.contains("class Tfmatmul"), "{header}");
    let say = |flags: &[&str]| {
        let place = directory();
        refuse(tfcompile(place.path()).args(["build", &graph, "--config", &config]).args(flags), place.path())
    };
    assert!(say(&["--name", "a-b"]).contains("a-b"));
    assert!(say(&["--class", "a-b::C"]).contains("illegal char"));
    assert!(say(&["--emit", "everything"]).contains("everything"));
    assert!(
        say(&["--emit", "shared", "--linker", "no-such-linker"])
            .contains("cannot start the linker 'no-such-linker'")
    );
    assert!(say(&["--emit", "shared", "--target", "aarch64-macos"]).contains("--linker"));
    assert!(say(&["--emit", "shared", "--linker", "false"]).contains("'false' failed"));
    assert!(say(&["--multiversion", "v9"]).contains("'v9'"));
    assert!(say(&["--multiversion", "v3", "--target-cpu", "haswell"]).contains("remove one of them"));
    assert!(say(&["--multiversion", "v3", "--target", "aarch64-linux"]).contains("x86-64"));
    assert!(say(&["--target", "pdp11"]).contains("pdp11"));
    let text = say(&["--config=c.pbtxt", "--dim=batch=1..4"]);
    assert!(
        text.contains("'--dim") && text.contains("dimension { name: \"batch\" min: 1 max: 64 }"),
        "{text}"
    );
    assert!(say(&["--precise", "--allow-winograd"]).contains("cannot be used with"));
    assert!(say(&["--precise", "--allow-tf32"]).contains("cannot be used with"));
    assert!(say(&["--sanitize", "everything"]).contains("address or thread"));
}

/// A model can have the name of a C library function or of a class.
#[test]
fn headers_of_models_with_any_name_compile() {
    let place = directory();
    let (graph, config) = case("tfmatmul");
    for (model, name, class) in [
        ("select", "model_select", "ModelSelect"),
        ("std", "model_std", "ModelStd"),
        ("Mlp", "Mlp", "MlpModel"),
    ] {
        let file = format!("{model}.pb");
        std::fs::copy(&graph, place.path().join(&file)).expect("copied");
        succeed(tfcompile(place.path()).args([
            "build",
            &file,
            "--config",
            &config,
            "-q",
            "--emit",
            "header,c-header",
        ]));
        let source = format!(
            "#include <cmath>\n#include <sys/select.h>\n#include \"{name}.h\"\n#include \"{name}_c.h\"\nint main() {{ {class} model; return !model.Run(); }}\n"
        );
        std::fs::write(place.path().join("main.cc"), source).expect("writable");
        let flags = ["-std=c++17", "-fsyntax-only", "-Werror", "-I.", "-Iinclude", "main.cc"];
        succeed(Command::new("g++").current_dir(place.path()).args(flags));
    }
    let say = |flags: &[&str]| {
        let place = directory();
        refuse(tfcompile(place.path()).args(["build", &graph, "--config", &config]).args(flags), place.path())
    };
    assert!(say(&["--name", "select"]).contains("such as select_model"));
    assert!(say(&["--name", "Mlp", "--class", "Mlp"]).contains("has the same name as a C symbol"));
    assert!(say(&["--class", ""]).contains("--class is empty"));
    assert!(say(&["--class", "int"]).contains("(--class)"));
}

#[test]
fn the_baseline_by_name_is_code_for_the_baseline_alone() {
    let versions = |flags: &[&str]| -> usize {
        let place = directory();
        build(place.path(), flags);
        let output = succeed(tfcompile(place.path()).args(["inspect", "out/product.o", "--json"]));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["programs"][0]["metadata"]["target"]["versions"].as_array().expect("a list").len()
    };
    assert_eq!(versions(&["--target", "x86-64"]), 0);
    assert_eq!(versions(&["--target-triple", "x86_64-pc-linux-gnu", "--target-cpu", "x86-64"]), 0);
    assert_eq!(versions(&["--target", "x86-64", "--multiversion", "v1,v3"]), 2);
    assert_eq!(versions(&["--target-triple", "x86_64-pc-linux-gnu"]), 3);
}

#[test]
fn a_model_with_products_of_bytes_has_versions_for_them() {
    let place = directory();
    let weights = vec!["{1, -2, 3, -4, 5, -6, 7, -8}"; 16].join(", ");
    let text = format!(
        "HloModule bytes\nENTRY main {{\n  x = s8[8,16] parameter(0)\n  y = s8[16,8] constant({{{weights}}})\n  \
         ROOT dot = s32[8,8] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
    );
    std::fs::write(place.path().join("bytes.hlo"), text).expect("writable");
    succeed(tfcompile(place.path()).args(["build", "bytes.hlo", "--target-triple", "x86_64-pc-linux-gnu"]));
    let output = succeed(tfcompile(place.path()).args(["inspect", "bytes.o", "--json"]));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        report["programs"][0]["metadata"]["target"]["versions"],
        serde_json::json!([
            "x86-64-v2",
            "x86-64-v3",
            "x86-64-v3 +avxvnni",
            "x86-64-v4",
            "x86-64-v4 +avx512vnni"
        ])
    );
}

#[test]
fn inspect_reads_back_what_build_wrote() {
    let place = directory();
    build(place.path(), &["--emit", "obj,archive,shared,metadata,header", "--multiversion", "v2,v3"]);
    let inspect = |file: &str| -> Value {
        let output = succeed(tfcompile(place.path()).args(["inspect", file, "--json"]));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let object = inspect("out/product.o");
    let program = &object["programs"][0]["metadata"];
    assert_eq!(program["entry_point"], "product");
    assert_eq!(program["cpp_class"], "ns::Product");
    assert_eq!(program["arguments"][0]["shape"], "f32[2,3]");
    assert_eq!(program["arguments"][1]["accessor"], "arg1");
    assert_eq!(program["results"][0]["bytes"], 16);
    assert_eq!(program["target"]["versions"], serde_json::json!(["x86-64-v2", "x86-64-v3"]));
    assert!(program["config"].as_str().expect("text").contains("feed"));
    let (graph, _) = case("tfmatmul");
    let hash = text(succeed(Command::new("sha256sum").arg(graph)).stdout);
    assert_eq!(program["inputs"]["graph"].as_str(), hash.split_whitespace().next());
    let functions = program["functions"].as_array().expect("a list");
    let listing = succeed(Command::new("nm").current_dir(place.path()).args(["-S", "out/product.o"]));
    let listing = text(listing.stdout);
    for function in functions {
        let (name, bytes) =
            (function["name"].as_str().expect("a name"), function["bytes"].as_u64().expect("a size"));
        let found = listing.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words.as_slice(), [_, size, "t" | "T", symbol]
                if *symbol == name && u64::from_str_radix(size, 16) == Ok(bytes))
        });
        assert!(found, "{name} of {bytes} bytes in\n{listing}");
    }
    assert!(program["memory"]["stack"].as_u64().is_some_and(|bytes| bytes > 0 && bytes < 64 << 10));
    for file in ["out/libproduct.a", "out/libproduct.so", "out/product.metadata.o"] {
        assert_eq!(inspect(file)["programs"][0]["metadata"], *program, "{file}");
    }
    let printed = text(succeed(tfcompile(place.path()).args(["inspect", "out/product.o"])).stdout);
    for words in ["ns::Product", "f32[2,3]", "x86-64-v2", "result0()"] {
        assert!(printed.contains(words), "{words} in\n{printed}");
    }
}

#[test]
fn linkers_drop_the_record_of_the_object() {
    let place = directory();
    let printed = build(place.path(), &[]);
    link_and_run(place.path(), &printed);
    let sections =
        text(succeed(Command::new("readelf").current_dir(place.path()).args(["-WS", "main"])).stdout);
    assert!(!sections.contains(".tfcompile"), "{sections}");
    let message = refuse(tfcompile(place.path()).args(["inspect", "main"]), place.path());
    assert!(message.contains("no tfcompile metadata"), "{message}");
}

#[test]
fn foreign_files_are_errors() {
    let place = directory();
    let say = |name: &str, bytes: &[u8]| {
        std::fs::write(place.path().join(name), bytes).expect("writable");
        refuse(tfcompile(place.path()).args(["inspect", name]), place.path())
    };
    assert!(say("empty", b"").contains("not an object file"));
    assert!(say("text", b"hello").contains("text: not an object file"));
    assert!(say("archive.a", b"!<arch>\nrubbish").contains("damaged"));
    assert!(say("cut.constants", b"TFCCONST\x01\0\0\0").contains("ends within its header"));
    let mut huge = b"TFCCONST\x01\0\0\0\x40\0\0\0".to_vec();
    huge.resize(48, 7);
    huge.extend([0xff; 16]);
    assert!(say("huge.constants", &huge).contains("expected 18446744073709551615 bytes after its header"));
    let missing = refuse(tfcompile(place.path()).args(["inspect", "missing"]), place.path());
    assert!(missing.contains("missing; No such file"), "{missing}");
}

/// A record of version 1, which is not compressed, with a terminal's escape sequence.
#[test]
fn escape_sequences_of_a_record_are_printed_escaped() {
    let place = directory();
    let recorded = "../../tests/releases/0.1.0/consumer/documentation/built/0_metadata.o";
    let mut object = std::fs::read(recorded).expect("readable");
    let name = b"foo::bar::MatMulComp";
    let at = object.windows(name.len()).position(|window| window == name).expect("the class in the record");
    let mut other = b"\\u001b[31m".to_vec();
    other.resize(name.len(), b'X');
    object[at..at + name.len()].copy_from_slice(&other);
    std::fs::write(place.path().join("record.o"), object).expect("writable");
    let printed = text(succeed(tfcompile(place.path()).args(["inspect", "record.o"])).stdout);
    assert!(!printed.contains('\u{1b}') && printed.contains("\\u{1b}[31mX"), "{printed}");
}

#[test]
fn check_lists_all_problems() {
    let place = directory();
    let graph = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
node { name: "scope/q" op: "SerializeTensor" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "l" op: "StringLength" input: "scope/q" }
node { name: "m" op: "MatMul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "n" op: "MatMul" input: "m" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1286 }
"#;
    std::fs::write(place.path().join("graph.pbtxt"), graph).expect("writable");
    let check = |flags: &[&str]| -> (Option<i32>, Value) {
        let mut command = tfcompile(place.path());
        let output = command.args(["check", "graph.pbtxt", "--json"]).args(flags).output().expect("runs");
        (output.status.code(), serde_json::from_slice(&output.stdout).expect("JSON"))
    };
    let problems = |report: &Value| -> Vec<(String, String)> {
        let text = |v: &Value| v.as_str().unwrap_or("").to_owned();
        let list = report["problems"].as_array().expect("a list");
        list.iter().map(|p| (text(&p["kind"]), text(&p["node"]))).collect()
    };
    let pair = |kind: &str, node: &str| (kind.to_owned(), node.to_owned());
    let (code, open) = check(&[]);
    assert_eq!((code, &open["compiles"]), (Some(1), &Value::Bool(false)));
    for expected in [pair("invalid", ""), pair("unsupported", "scope/q"), pair("unsupported", "l")] {
        assert!(problems(&open).contains(&expected), "{expected:?} in {open:#}");
    }
    let both = ["--fetch", "l", "--fetch", "n"];
    let (code, sized) = check(&[&both[..], &["--batch", "2"]].concat());
    assert_eq!(code, Some(1));
    // `n` is not listed, because its operand `m` is already an error.
    let mut listed = problems(&sized);
    listed.sort();
    assert_eq!(listed, [pair("invalid", "m"), pair("unsupported", "l"), pair("unsupported", "scope/q")]);
    let op = |name: &str| -> Value {
        let ops = sized["ops"].as_array().expect("a list");
        ops.iter().find(|op| op["op"] == name).cloned().expect(name)
    };
    assert_eq!((&op("MatMul")["nodes"], &op("MatMul")["supported"]), (&2.into(), &true.into()));
    assert_eq!(op("SerializeTensor")["supported"], Value::Bool(false));
    let (code, good) = check(&["--fetch", "m", "--shape", "x=3,3"]);
    assert_eq!((code, &good["compiles"]), (Some(0), &Value::Bool(true)));
    assert_eq!(good["interface"][1]["accessor"], "result_m");
    // The missing `--fetch` is the third problem.
    let message =
        refuse(tfcompile(place.path()).args(["check", "graph.pbtxt", "--dim", "batch=2"]), place.path());
    assert!(message.contains("3 problems"), "{message}");
}

#[test]
fn check_lists_a_written_variable_once() {
    let place = directory();
    let (graph, config) = case("tfvariable");
    let mut command = tfcompile(place.path());
    let output = succeed(command.args(["check", &graph, "--config", &config, "--json"]));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let entries = report["interface"].as_array().expect("a list");
    let kinds: Vec<&str> = entries.iter().filter_map(|entry| entry["kind"].as_str()).collect();
    assert_eq!(kinds, ["variable", "fetch"]);
}

#[test]
fn a_config_is_printed_and_serves() {
    let place = directory();
    let (graph, config) = case("tfmatmul");
    let printed = succeed(tfcompile(place.path()).args(["config", &graph, "--config", &config])).stdout;
    std::fs::write(place.path().join("again.pbtxt"), printed).expect("writable");
    let again = place.path().join("again.pbtxt").display().to_string();
    let build = |config: &str, name: &str| {
        let mut command = tfcompile(place.path());
        command.args([
            "build",
            &graph,
            "--config",
            config,
            "--name",
            "p",
            "-o",
            name,
            "--constants",
            "embed",
        ]);
        succeed(&mut command);
        std::fs::read(place.path().join(name).join("p.h")).expect("written")
    };
    assert!(build(&config, "one") == build(&again, "two"));
    let message = refuse(tfcompile(place.path()).args(["config", &graph, "--fetch", "nope"]), place.path());
    assert!(message.contains("no node 'nope'"), "{message}");
}

#[test]
fn commands_have_help_and_reject_unknown_flags() {
    let place = directory();
    for command in ["build", "check", "config", "inspect", "run", "bench", "verify", "freeze", "headers"] {
        let help = text(succeed(tfcompile(place.path()).args([command, "--help"])).stdout);
        assert!(help.contains("Usage: "), "{command}: {help}");
        let message = refuse(tfcompile(place.path()).args([command, "--no-such-flag"]), place.path());
        assert!(message.contains("'--no-such-flag' found. See --help."), "{command}: {message}");
    }
    let model = ["build", "model.pb", "--config", "c", "--fetch", "x"];
    assert!(refuse(tfcompile(place.path()).args(model), place.path()).contains("--fetch"));
}

#[test]
fn every_named_target_has_its_files_and_they_read_back() {
    for target in target::NAMES {
        let place = directory();
        let printed = build(place.path(), &["--target", target.name, "--emit", "obj,archive,metadata"]);
        assert!(printed.lines().last().is_some_and(|line| line.starts_with("link: ")), "{printed}");
        let mut metadata = Vec::new();
        for (path, _) in files(&place.path().join("out")) {
            let output = succeed(tfcompile(place.path()).arg("inspect").arg(&path).arg("--json"));
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            metadata.push(report["programs"][0]["metadata"].clone());
        }
        assert_eq!(metadata.len(), 3, "{}", target.name);
        assert!(metadata.iter().all(|m| m["target"]["triple"] == target.triple), "{}", target.name);
        assert!(metadata.iter().all(|m| *m == metadata[0]), "{}", target.name);
        assert!(metadata[0]["functions"].as_array().is_some_and(|f| !f.is_empty()), "{}", target.name);
    }
}

#[test]
fn a_saved_model_without_signatures_says_so() {
    let place = directory();
    let model = place.path().join("model");
    std::fs::create_dir(&model).expect("a directory");
    // Schema version 1, and a graph of no bytes.
    std::fs::write(model.join("saved_model.pb"), [0x08, 0x01, 0x12, 0x00]).expect("writable");
    for name in ["model", "model/saved_model.pb"] {
        for command in ["build", "check", "config"] {
            let message = refuse(tfcompile(place.path()).args([command, name]), place.path());
            assert!(message.contains("Unable to find signature_def_key 'serving_default'"), "{message}");
            assert!(message.contains("Available keys: []") && message.contains("--fetch"), "{message}");
        }
    }
}
