//! Untrusted files: any content leads to an answer soon, in little memory, with one message, and
//! without output files.

use crate::support::{refuse, succeed, tfcompile};
use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Limits of an answer: processor seconds, which do not depend on the machine's load, and address
/// space in KiB.
const PROCESSOR_SECONDS: u64 = 20;
const ADDRESS_SPACE: u64 = 2 << 20;

/// A graph in text format, with a config of its feeds and fetches.
struct Model {
    graph: String,
    config: String,
}

impl Model {
    fn new() -> Self {
        Self { graph: String::new(), config: String::new() }
    }

    /// Adds a placeholder of floats and its feed.
    fn feed(mut self, name: &str, sizes: &[i64]) -> Self {
        let mut dims = String::new();
        for size in sizes {
            write!(dims, "dim {{ size: {size} }} ").expect("text");
        }
        writeln!(self.config, "feed {{ id {{ node_name: \"{name}\" }} shape {{ {dims} }} }}").expect("text");
        self.node(name, "Placeholder", &[], "attr { key: \"dtype\" value { type: DT_FLOAT } }")
    }

    /// Adds a node. `attributes` is in text format, too.
    fn node(mut self, name: &str, op: &str, inputs: &[&str], attributes: &str) -> Self {
        self.push(name, op, inputs, attributes);
        self
    }

    fn push(&mut self, name: &str, op: &str, inputs: &[&str], attributes: &str) {
        write!(self.graph, "node {{ name: \"{name}\" op: \"{op}\" ").expect("text");
        for input in inputs {
            write!(self.graph, "input: \"{input}\" ").expect("text");
        }
        writeln!(self.graph, "{attributes} }}").expect("text");
    }

    /// Adds a constant of 64-bit integers.
    fn integers(self, name: &str, values: &[i64]) -> Self {
        let values: String = values.iter().map(|v| format!("int64_val: {v} ")).collect();
        let size = values.matches("int64_val").count();
        let tensor = format!("dtype: DT_INT64 tensor_shape {{ dim {{ size: {size} }} }} {values}");
        self.node(
            name,
            "Const",
            &[],
            &format!(
                "{} attr {{ key: \"value\" value {{ tensor {{ {tensor} }} }} }}",
                ty("dtype", "DT_INT64")
            ),
        )
    }

    /// Adds a constant scalar. `value` is the field with its value.
    fn scalar(self, name: &str, data_type: &str, value: &str) -> Self {
        let tensor = format!("dtype: {data_type} tensor_shape {{ }} {value}");
        let value = format!("attr {{ key: \"value\" value {{ tensor {{ {tensor} }} }} }}");
        self.node(name, "Const", &[], &format!("{} {value}", ty("dtype", data_type)))
    }

    fn fetch(mut self, name: &str) -> Self {
        writeln!(self.config, "fetch {{ id {{ node_name: \"{name}\" }} }}").expect("text");
        self
    }

    /// Compiles the graph, which must fail, and returns the message.
    fn refuse(&self) -> String {
        let place = self.place();
        let message = refuse(&mut limited(place.path(), &[]), place.path());
        check(&message);
        message
    }

    /// Runs the graph in a session, which must fail, without and with clusters. Returns the
    /// messages.
    fn refuse_runs(&self) -> Vec<String> {
        let place = self.place();
        let run = |jit: &str| {
            let mut command = limited_command(place.path());
            command.args(["run", "graph.pbtxt", "--config", "config.pbtxt", "--quiet", "--jit", jit]);
            let message = refuse(&mut command, place.path());
            check(&message);
            message
        };
        vec![run("off"), run("on")]
    }

    fn succeed(&self) {
        let place = self.place();
        succeed(&mut limited(place.path(), &[]));
    }

    fn place(&self) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("graph.pbtxt"), &self.graph).expect("writable");
        std::fs::write(directory.path().join("config.pbtxt"), &self.config).expect("writable");
        directory
    }
}

/// A type attribute.
fn ty(name: &str, data_type: &str) -> String {
    format!("attr {{ key: \"{name}\" value {{ type: {data_type} }} }}")
}

fn check(message: &str) {
    assert!(message.len() < 5000, "{} bytes", message.len());
}

/// The tool without a command, with limits on time and address space.
fn limited(directory: &Path, flags: &[&str]) -> Command {
    let mut command = limited_command(directory);
    command.args(["--graph=graph.pbtxt", "--config=config.pbtxt", "--cpp_class=C"]).args(flags);
    command
}

/// The tool with limits on time and address space. A signal ends a process that takes longer.
fn limited_command(directory: &Path) -> Command {
    let limits =
        format!("ulimit -v {ADDRESS_SPACE}; ulimit -t {PROCESSOR_SECONDS}; ulimit -c 0; exec \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.arg0("sh").args(["-c", &limits, "sh"]).arg(tfcompile(directory).get_program());
    command.current_dir(directory).env_remove("XLA_FLAGS");
    command
}

#[test]
fn arrays_that_no_machine_holds_are_refused_by_name() {
    let float = ty("T", "DT_FLOAT");
    let huge = Model::new().feed("x", &[1 << 32, 1]).feed("z", &[1, 1 << 32]).fetch("y");
    let message = huge.node("y", "AddV2", &["x", "z"], &float).refuse();
    assert!(message.contains("node 'y'") && message.contains("4294967296,4294967296"), "{message}");
    let message = Model::new().feed("x", &[1 << 31, 1 << 31, 1 << 31, 0]).fetch("x").refuse();
    assert!(message.contains("feed 'x:0'"), "{message}");
    let tile = Model::new().feed("x", &[4]).integers("m", &[1 << 62]).fetch("y");
    let message = tile.node("y", "Tile", &["x", "m"], &(float + &ty("Tmultiples", "DT_INT64"))).refuse();
    assert!(message.contains("'y'"), "{message}");
}

#[test]
fn large_constants_that_are_written_in_few_bytes_stay_small() {
    let tensor = "dtype: DT_FLOAT tensor_shape { dim { size: 1048576 } dim { size: 1048576 } } float_val: 1";
    let value =
        format!("{} attr {{ key: \"value\" value {{ tensor {{ {tensor} }} }} }}", ty("dtype", "DT_FLOAT"));
    Model::new().node("y", "Const", &[], &value).fetch("y").succeed();
    let tensor = tensor.replace("float_val: 1", "float_val: 1 float_val: 2");
    let value =
        format!("{} attr {{ key: \"value\" value {{ tensor {{ {tensor} }} }} }}", ty("dtype", "DT_FLOAT"));
    let message = Model::new().node("y", "Const", &[], &value).fetch("y").refuse();
    assert!(message.contains("'y'"), "{message}");
}

#[test]
fn long_chains_and_wide_nodes_are_compiled() {
    let float = ty("T", "DT_FLOAT");
    let mut chain = Model::new().feed("x", &[4]).fetch("n19999");
    for i in 0..20_000 {
        let input = if i == 0 { "x".to_owned() } else { format!("n{}", i - 1) };
        chain.push(&format!("n{i}"), "AddV2", &[&input, "x"], &float);
    }
    chain.succeed();
    let inputs = vec!["x"; 10_000];
    let count = format!("{float} attr {{ key: \"N\" value {{ i: 10000 }} }}");
    Model::new().feed("x", &[]).node("y", "Pack", &inputs, &count).fetch("y").succeed();
}

#[test]
fn one_node_of_a_million_outputs_is_refused_by_name() {
    let attributes = ty("T", "DT_FLOAT") + " attr { key: \"num\" value { i: 1048576 } }";
    let message =
        Model::new().feed("x", &[1 << 20]).node("y", "Unpack", &["x"], &attributes).fetch("y").refuse();
    assert!(message.contains("node 'y'") && message.contains("instructions"), "{message}");
}

/// Functions `f0` to `f<depth>`, each of which calls the next one `calls` times; the last one
/// negates.
fn calls(depth: usize, calls: usize, last: &str) -> Model {
    let mut model = Model::new().feed("x", &[4]).fetch("y");
    let types = "attr { key: \"Tin\" value { list { type: DT_FLOAT } } } attr { key: \"Tout\" value { list { type: DT_FLOAT } } }";
    let call = |f: &str| format!("{types} attr {{ key: \"f\" value {{ func {{ name: \"{f}\" }} }} }}");
    model.push("y", "PartitionedCall", &["x"], &call("f0"));
    let mut library = String::new();
    for i in 0..=depth {
        let signature = format!(
            "signature {{ name: \"f{i}\" input_arg {{ name: \"a\" type: DT_FLOAT }} output_arg {{ name: \"r\" type: DT_FLOAT }} }}"
        );
        let (callee, times) = if i == depth { (last.to_owned(), 1) } else { (format!("f{}", i + 1), calls) };
        let mut body = String::new();
        let mut input = "a".to_owned();
        for j in 0..times {
            let (op, attributes, output) = match callee.as_str() {
                "Neg" => ("Neg", ty("T", "DT_FLOAT"), "y"),
                callee => ("PartitionedCall", call(callee), "output"),
            };
            write!(body, "node_def {{ name: \"b{j}\" op: \"{op}\" input: \"{input}\" {attributes} }} ")
                .expect("text");
            input = format!("b{j}:{output}:0");
        }
        writeln!(library, "function {{ {signature} {body} ret {{ key: \"r\" value: \"{input}\" }} }}")
            .expect("text");
    }
    write!(model.graph, "library {{ {library} }}").expect("text");
    model
}

#[test]
fn functions_may_not_call_too_deep_too_often_or_themselves() {
    calls(30, 1, "Neg").succeed();
    let message = calls(2000, 1, "Neg").refuse();
    assert!(message.contains("levels deep"), "{message}");
    let message = calls(45, 2, "Neg").refuse();
    assert!(message.contains("inlined"), "{message}");
    let message = calls(3, 1, "f0").refuse();
    assert!(message.contains("calls itself"), "{message}");
}

#[test]
fn names_of_a_megabyte_make_no_message_of_a_megabyte() {
    let name = "n".repeat(1 << 20);
    let model = Model::new().feed("x", &[2]).feed("z", &[3]).fetch(&name);
    let message = model.node(&name, "AddV2", &["x", "z"], &ty("T", "DT_FLOAT")).refuse();
    assert!(message.contains("Incompatible shapes: [2] vs. [3] (node 'nnn"), "{message}");
}

#[test]
fn texts_without_end_are_refused() {
    let mut model = Model::new().feed("x", &[2]).fetch("x");
    model.config = "feed { id ".repeat(100_000);
    assert!(model.refuse().contains("config.pbtxt"));
    model.config = "fetch { id { node_name: \"x\" } } ".repeat(100_000);
    assert!(model.refuse().contains("100000 fetches"));
}

#[test]
fn devices_and_directories_are_refused() {
    let model = Model::new().feed("x", &[2]).fetch("x");
    for graph in ["/dev/zero", "/dev/null", "/proc/self/maps", "."] {
        let place = model.place();
        let message = refuse(&mut limited(place.path(), &[&format!("--graph={graph}")]), place.path());
        check(&message);
    }
}

/// Names of every kind of file, one for each reader.
const PIPES: &[&str] = &[
    "model.pb",
    "model.pbtxt",
    "model.onnx",
    "model.tflite",
    "model.json",
    "a.npz",
    "a.npy",
    "a.safetensors",
    "a.tuning",
];

#[test]
fn pipes_and_devices_are_refused_without_waiting() {
    let model = Model::new().feed("x", &[2]).fetch("x");
    let place = model.place();
    let folder = place.path().join("pipes");
    let made = std::fs::create_dir(&folder).and_then(|()| {
        std::fs::create_dir(folder.join("saved"))?;
        std::os::unix::fs::symlink("/dev/zero", folder.join("saved/saved_model.pb"))?;
        Command::new("mkfifo").args(PIPES).current_dir(&folder).status()
    });
    assert!(made.expect("mkfifo").success());
    let config = "--config=config.pbtxt";
    let mlir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo/adam_step.mlir");
    let mlir = mlir.to_str().expect("a path");
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| commands.push(words.iter().map(|&word| word.to_owned()).collect());
    let models = PIPES[..5].iter().map(|name| format!("pipes/{name}"));
    for file in models.chain(["/dev/zero".to_owned(), "/dev/null".to_owned(), "pipes/saved".to_owned()]) {
        for command in ["check", "build", "run", "hlo", "config", "verify"] {
            add(&[command, &file]);
        }
    }
    for file in ["pipes/model.pb", "/dev/zero"] {
        add(&["inspect", file]);
        add(&["build", "graph.pbtxt", "--config", file]);
        add(&["build", "graph.pbtxt", config, "--tuning", file]);
        add(&["build", "graph.pbtxt", config, "--target-cpu=native", &format!("--autotune={file}")]);
        add(&["build", "graph.pbtxt", config, "--kernel-cache", file]);
        add(&["run", "graph.pbtxt", config, "--feed", &format!("x={file}")]);
        add(&["run", "graph.pbtxt", config, "--jit=on", "--session-config", file]);
        add(&["xla-extract", "--target_node=x", "--out_graph=out", &format!("--in_graph={file}")]);
        let input = format!("--input_graph={file}");
        let checkpoint = format!("--input_checkpoint={file}");
        let freeze = ["freeze", "--output_graph=out", "--output_node_names=x", &checkpoint];
        add(&[&freeze[..], &[&input]].concat());
        add(&[&freeze[..], &["--input_graph=graph.pbtxt"]].concat());
    }
    for file in ["pipes/a.npz", "pipes/a.safetensors", "pipes/a.npy", "/dev/zero"] {
        add(&["run", "graph.pbtxt", config, "--feed", &format!("x={file}")]);
        add(&["run", "graph.pbtxt", config, "--jit=on", "--batches", file]);
        add(&["run", mlir, "--variables", file]);
        add(&["build", mlir, "--weights", file]);
        add(&["quantize", "graph.pbtxt", config, "--output=out.mlir", "--data", file]);
    }
    for words in &commands {
        // A signal ends a process that waits; `refuse` takes only the exit status 1.
        let mut command = Command::new("timeout");
        command.arg("60").arg(tfcompile(place.path()).get_program()).args(words);
        command.current_dir(place.path()).env("TFCOMPILE_KERNEL_CACHE", "");
        let output = command.stdin(std::process::Stdio::null()).output().expect("timeout");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {message}");
        assert!(!message.is_empty(), "{words:?}");
        check(&message);
    }
}

#[test]
fn conditionals_without_end_are_refused_by_name() {
    let mut model = Model::new().feed("x", &[4]).fetch("m5999");
    model.push("p", "Placeholder", &[], &ty("dtype", "DT_BOOL"));
    model.config.push_str("feed { id { node_name: \"p\" } shape { } }\n");
    let float = ty("T", "DT_FLOAT");
    let two = float.clone() + " attr { key: \"N\" value { i: 2 } }";
    let mut value = "x".to_owned();
    for i in 0..6000 {
        model.push(&format!("s{i}"), "Switch", &[&value, "p"], &float);
        model.push(&format!("n{i}"), "Neg", &[&format!("s{i}")], &float);
        model.push(&format!("m{i}"), "Merge", &[&format!("s{i}:1"), &format!("n{i}")], &two);
        value = format!("m{i}");
    }
    let message = model.refuse();
    assert!(message.contains("branches") && message.contains("'m5000'"), "{message}");
}

#[test]
fn a_large_constant_times_itself_is_compiled() {
    let tensor =
        "dtype: DT_FLOAT tensor_shape { dim { size: 256 } dim { size: 256 } } float_val: 1 float_val: 2";
    let value =
        format!("{} attr {{ key: \"value\" value {{ tensor {{ {tensor} }} }} }}", ty("dtype", "DT_FLOAT"));
    let model = Model::new().node("c", "Const", &[], &value).fetch("y");
    model.node("y", "MatMul", &["c", "c"], &ty("T", "DT_FLOAT")).succeed();
}

/// Max pooling whose window is far larger than the array.
fn pool(size: i64) -> Model {
    let list =
        |name: &str, values: &str| format!("attr {{ key: \"{name}\" value {{ list {{ {values} }} }} }}");
    let attributes = [
        ty("T", "DT_FLOAT"),
        list("ksize", &format!("i: 1 i: {size} i: 3 i: 1")),
        list("strides", "i: 1 i: 1 i: 1 i: 1"),
        "attr { key: \"padding\" value { s: \"SAME\" } }".to_owned(),
    ];
    Model::new().feed("x", &[1, 10, 10, 3]).node("y", "MaxPool", &["x"], &attributes.join(" ")).fetch("y")
}

#[test]
fn windows_far_larger_than_the_array_are_refused_or_run() {
    assert!(pool(i64::MAX).refuse().contains("node 'y'"));
    let model = pool(1 << 40);
    for command in [&["run", "--random=1"][..], &["verify"]] {
        let place = model.place();
        succeed(limited_command(place.path()).args(command).args(["graph.pbtxt", "--config=config.pbtxt"]));
    }
}

#[test]
fn arrays_for_which_there_is_no_memory_are_refused_when_they_are_run() {
    let float = ty("T", "DT_FLOAT");
    let feed = Model::new().feed("x", &[1 << 38]).node("y", "Neg", &["x"], &float).fetch("y");
    let tensor = "dtype: DT_FLOAT tensor_shape { dim { size: 1073741824 } } float_val: 1";
    let value =
        format!("{} attr {{ key: \"value\" value {{ tensor {{ {tensor} }} }} }}", ty("dtype", "DT_FLOAT"));
    let result = Model::new().node("c", "Const", &[], &value).node("y", "Neg", &["c"], &float).fetch("y");
    for model in [feed, result] {
        for command in [&["run", "--random=1"][..], &["verify"], &["bench", "--random=1"]] {
            let place = model.place();
            let mut limited = limited_command(place.path());
            limited.args(command).args(["graph.pbtxt", "--config=config.pbtxt"]);
            let message = refuse(&mut limited, place.path());
            assert!(message.contains("memory") || message.contains("bytes"), "{message}");
            check(&message);
        }
    }
}

#[test]
fn sessions_refuse_what_takes_more_memory_than_there_is() {
    let count = |op: &str, inputs: &[&str], attributes: &str| {
        let model = Model::new().scalar("shape", "DT_INT32", "int_val: -1");
        model.scalar("count", "DT_INT32", "int_val: 268435456").node("value", op, inputs, attributes)
    };
    let types = ty("element_dtype", "DT_FLOAT") + &ty("shape_type", "DT_INT32");
    let list = count("TensorListReserve", &["shape", "count"], &types);
    let list = list.node("y", "TensorListLength", &["value"], "").fetch("y");
    let array = count("TensorArrayV3", &["count"], &ty("dtype", "DT_FLOAT"));
    let array = array.node("y", "TensorArraySizeV3", &["value", "value:1"], "").fetch("y");
    for message in [list, array].iter().flat_map(Model::refuse_runs) {
        assert!(message.contains("node 'value'") && message.contains("268435456 elements"), "{message}");
    }
    let text = ty("dtype", "DT_STRING");
    let mut strings = Model::new().scalar("s0", "DT_STRING", "string_val: \"0123456789\"");
    for k in 0..40 {
        let input = format!("s{k}");
        let two = "attr { key: \"N\" value { i: 2 } }";
        strings.push(&format!("s{}", k + 1), "StringJoin", &[&input, &input], two);
    }
    let strings = strings.node("y", "Identity", &["s40"], &text.replace("dtype", "T")).fetch("y");
    for message in strings.refuse_runs() {
        assert!(
            message.contains("(op StringJoin): cannot allocate ")
                && message.contains(" bytes for the joined strings"),
            "{message}"
        );
    }
}

#[test]
fn sessions_refuse_functions_that_call_two_each() {
    let call = |name: &str, input: &str, callee: usize| {
        format!("node_def {{ name: \"{name}\" op: \"f{callee}\" input: \"{input}\" }} ")
    };
    let mut model = Model::new().feed("x", &[2]).node("y", "f0", &["x"], "").fetch("y");
    model.graph.push_str("library { ");
    for k in 0..40 {
        let arg = |kind: &str, name: &str| format!("{kind} {{ name: \"{name}\" type: DT_FLOAT }} ");
        let signature = format!("name: \"f{k}\" {}{}", arg("input_arg", "a"), arg("output_arg", "r"));
        let (nodes, result) = match k {
            39 => (
                format!("node_def {{ name: \"p\" op: \"Relu\" input: \"a\" {} }}", ty("T", "DT_FLOAT")),
                "p:activations:0",
            ),
            _ => (call("p", "a", k + 1) + &call("q", "p:r:0", k + 1), "q:r:0"),
        };
        let ret = format!("ret {{ key: \"r\" value: \"{result}\" }}");
        writeln!(model.graph, "function {{ signature {{ {signature} }} {nodes} {ret} }}").expect("text");
    }
    model.graph.push('}');
    for message in model.refuse_runs() {
        assert!(message.contains("after inlining its calls, at 'y/p/"), "{message}");
    }
}

#[test]
fn random_numbers_of_the_largest_shape_are_refused() {
    let tensor = "tensor { dtype: DT_INT64 tensor_shape { dim { size: 1 } } int64_val: 9223372036854775807 }";
    let value = format!("attr {{ key: \"value\" value {{ {tensor} }} }} {}", ty("dtype", "DT_INT64"));
    for op in ["RandomStandardNormal", "TruncatedNormal"] {
        let types = ty("dtype", "DT_FLOAT") + &ty("T", "DT_INT64");
        let model =
            Model::new().node("shape", "Const", &[], &value).node("y", op, &["shape"], &types).fetch("y");
        for message in model.refuse_runs() {
            assert!(message.contains("node 'y'"), "{message}");
            assert!(message.contains("input 0 is not a valid shape: [9223372036854775807]"), "{message}");
        }
    }
}
