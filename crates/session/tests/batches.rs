//! Runs the fourteen training steps with batches whose size changes from step to step: node by
//! node, in clusters, and as one cluster. Compares the losses with TensorFlow's
//! (`tests/experiments`, written by `examples/experiments/make_graphs.py`).
//!
//! `TFCOMPILE_EXPERIMENTS` names the experiments to run; `all` selects all of them (`make
//! test-sessions`). The default is a few quick ones. The test prints a table row for each.

mod graph;

use cluster::{Flags, JitLevel};
use graph::{func, node, types};
use npz::Archive;
use session::{Options, Session};
use shape::Literal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tf::DataType;
use tf::proto::attr_value::Value as Attr;
use tf::proto::{ArgDef, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, OpDef};

/// Experiments of the quick default run: a step without loops, and one with loops.
const FEW: &str = "fc_kerasbatchnorm keras_rnn";

/// Ways to run the steps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Node by node.
    Off,
    /// Runs in clusters of the first level.
    On1,
    /// Runs in clusters of any size and of every node that supports it.
    On2,
    /// Runs in one function that must be compiled.
    One,
}

impl Mode {
    fn options(self) -> Options {
        let (level, min_cluster_size) = match self {
            Self::Off | Self::One => (JitLevel::Off, 4),
            Self::On1 => (JitLevel::On1, 4),
            Self::On2 => (JitLevel::On2, 1),
        };
        let flags = Flags { cpu_global_jit: true, min_cluster_size, ..Flags::default() };
        let rewrite = session::clusters(cluster::Options::new(level, flags), Box::new(cluster::Silent));
        Options { rewrite: Some(rewrite), ..device_options() }
    }

    /// The output to fetch.
    fn loss(self) -> &'static str {
        if self == Self::One { "step:0" } else { "loss:0" }
    }
}

/// Options for the device that `TFCOMPILE_DEVICE` names (`make test-gpu-sessions`), such as
/// `/device:XLA_GPU:0`, with OpenCL's driver.
fn device_options() -> Options {
    let driver = Some(session::DeviceKind::OpenCl);
    match std::env::var("TFCOMPILE_DEVICE") {
        Ok(device) => Options {
            gpu: session::GpuOptions { driver, ..session::GpuOptions::default() },
            default_device: Some(device),
            ..Options::default()
        },
        Err(_) => Options::default(),
    }
}

/// A recorded experiment.
struct Experiment {
    graph: GraphDef,
    /// Rows of each placeholder.
    rows: BTreeMap<String, Literal>,
    batches: Vec<usize>,
    losses: Vec<f32>,
}

impl Experiment {
    fn read(name: &str) -> Self {
        let file = |end: &str| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/experiments/{name}.{end}"))
        };
        let bytes = std::fs::read(file("npz")).expect("readable");
        let mut archive = Archive::open(bytes.into(), 1 << 20).expect("an archive");
        let mut array = |name: &str| archive.get(name).expect("readable");
        let batches = array("batches").expect("batches").to_i64s().expect("integers");
        let losses = array("losses").expect("losses").to_vec::<f32>().expect("floats");
        let named = |name: &str| Some((format!("{name}:0"), array(name)?));
        Self {
            graph: tf::source::read_graph_def(&file("pb")).expect("a graph"),
            rows: ["x", "y", "lengths"].into_iter().filter_map(named).collect(),
            batches: batches.into_iter().map(|batch| batch as usize).collect(),
            losses,
        }
    }

    /// Feeds of a step: rows starting at row `step`, wrapping around.
    fn feeds(&self, step: usize) -> Vec<(&str, Literal)> {
        let feed = |all: &Literal| {
            let shape = all.array_shape();
            let mut sizes = shape.sizes();
            let bytes = shape.byte_size() as usize / sizes[0] as usize;
            let begin = step * bytes;
            let around = [&all.bytes()[begin..], &all.bytes()[..begin]].concat();
            sizes[0] = self.batches[step] as i64;
            let shape = shape::ArrayShape::new(shape.element_type, &sizes);
            Literal::from_bytes(shape, around[..self.batches[step] * bytes].to_vec().into()).expect("rows")
        };
        self.rows.iter().map(|(name, all)| (name.as_str(), feed(all))).collect()
    }

    /// Trains a session. Returns the launches of the last step, the largest difference of a loss
    /// from TensorFlow's, and the variables.
    fn train(&self, mode: Mode) -> Trained {
        let graph = if mode == Mode::One { in_one_function(&self.graph) } else { self.graph.clone() };
        let session = Session::new(graph, mode.options()).expect("a session");
        session.run(&[], &[], &["init"]).expect("first values");
        let mut trained = Trained::default();
        for (step, &want) in self.losses.iter().enumerate() {
            let (results, executions) =
                session.run_recorded(&self.feeds(step), &[mode.loss()], &[]).unwrap_or_else(|error| {
                    panic!("step {step} of {mode:?}, {} examples: {error}", self.batches[step])
                });
            let loss = results[0].to_vec::<f32>().expect("a float")[0];
            trained.difference = trained.difference.max((loss - want).abs());
            trained.ops = executions.into_iter().map(|execution| execution.op).collect();
        }
        trained.compiled = session.compiled_kernels();
        for variable in session.variables() {
            let value = session.variable_value(variable.node()).expect("known").expect("a value");
            if let Some(floats) = value.floats() {
                trained.variables.insert(variable.node().to_owned(), floats);
            }
        }
        trained
    }
}

#[derive(Default)]
struct Trained {
    /// Largest difference from TensorFlow's losses.
    difference: f32,
    /// Number of kernels compiled.
    compiled: u64,
    /// Ops that the last step executions.
    ops: Vec<String>,
    variables: BTreeMap<String, Vec<f64>>,
}

impl Trained {
    fn launches(&self) -> usize {
        self.ops.iter().filter(|op| op.ends_with("XlaLaunch")).count()
    }

    /// The largest difference of an element of a variable.
    fn distance(&self, other: &Self) -> f64 {
        assert!(!self.variables.is_empty() && self.variables.keys().eq(other.variables.keys()));
        let pairs = self.variables.values().flatten().zip(other.variables.values().flatten());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }
}

/// The graph with a second copy of its step, as a function that must be compiled. The node `step`
/// calls it.
fn in_one_function(graph: &GraphDef) -> GraphDef {
    let by_name: BTreeMap<&str, &NodeDef> =
        graph.node.iter().map(|node| (node.name.as_str(), node)).collect();
    let producer = |input: &str| {
        let name = input.trim_start_matches('^');
        by_name[name.split(':').next().expect("a name")]
    };
    let is_outside =
        |node: &NodeDef| matches!(node.op.as_str(), "Placeholder" | "VarHandleOp" | "VariableV2");
    let (mut needed, mut work) = (BTreeSet::new(), vec![by_name["loss"]]);
    while let Some(node) = work.pop() {
        if needed.insert(node.name.as_str()) {
            work.extend(node.input.iter().map(|input| producer(input)));
        }
    }
    let needed = graph.node.iter().filter(|node| needed.contains(node.name.as_str()));
    let (outside, inside): (Vec<&NodeDef>, Vec<&NodeDef>) = needed.partition(|node| is_outside(node));
    let argument: BTreeMap<&str, String> =
        outside.iter().enumerate().map(|(k, node)| (node.name.as_str(), format!("argument_{k}"))).collect();
    // Function bodies name an output by its argument of the signature and its index.
    let text = |input: &String| {
        let from = producer(input);
        if let Some(argument) = argument.get(from.name.as_str()) {
            return argument.clone();
        }
        if input.starts_with('^') {
            return input.clone();
        }
        let output = input.split_once(':').map_or(0, |(_, number)| number.parse().expect("a number"));
        let signature = tf::op_signature(&from.op).expect("known");
        let starts = tf::node_types(signature, &signature.output_arg, &from.attr).expect("types").starts;
        let at = starts.partition_point(|&start| start <= output) - 1;
        format!("{}:{}:{}", from.name, signature.output_arg[at].name, output - starts[at])
    };
    let body = inside.iter().map(|node| NodeDef {
        input: node
            .input
            .iter()
            .filter(|input| !(input.starts_with('^') && is_outside(producer(input))))
            .map(text)
            .collect(),
        ..(*node).clone()
    });
    let arg = |name: &str, data_type: DataType| ArgDef {
        name: name.to_owned(),
        r#type: data_type.number(),
        ..ArgDef::default()
    };
    let types_outside: Vec<DataType> = outside
        .iter()
        .map(|node| {
            let signature = tf::op_signature(&node.op).expect("known");
            tf::node_types(signature, &signature.output_arg, &node.attr).expect("types").types[0]
        })
        .collect();
    let function = FunctionDef {
        signature: Some(OpDef {
            name: "whole_step".to_owned(),
            input_arg: outside
                .iter()
                .zip(&types_outside)
                .map(|(node, &data_type)| arg(&argument[node.name.as_str()], data_type))
                .collect(),
            output_arg: vec![arg("result", DataType::Float)],
            is_stateful: true,
            ..OpDef::default()
        }),
        node_def: body.collect(),
        ret: BTreeMap::from([("result".to_owned(), text(&"loss".to_owned()))]),
        ..FunctionDef::default()
    };
    let inputs: Vec<&str> = outside.iter().map(|node| node.name.as_str()).collect();
    let attributes = [
        ("Tin", types(&types_outside)),
        ("Tout", types(&[DataType::Float])),
        ("f", func("whole_step")),
        ("_XlaMustCompile", Attr::B(true)),
    ];
    let mut changed = graph.clone();
    changed.node.push(node("step", "StatefulPartitionedCall", &inputs, &attributes));
    let library = changed.library.get_or_insert_with(FunctionDefLibrary::default);
    library.function.push(function);
    changed
}

/// Names of all recorded experiments.
fn recorded_names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/experiments");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let is_graph = path.extension().is_some_and(|end| end == "pb");
        is_graph.then(|| path.file_stem().expect("a name").to_string_lossy().into_owned())
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    names
}

#[test]
fn the_experiments_train_like_tensorflow_for_all_clusterings_and_batch_sizes() {
    let recorded = recorded_names();
    assert_eq!(recorded.len(), 14);
    let selection = std::env::var("TFCOMPILE_EXPERIMENTS").unwrap_or_else(|_| FEW.to_owned());
    let names: Vec<&str> = match selection.as_str() {
        "all" => recorded.iter().map(String::as_str).collect(),
        some => some.split_whitespace().collect(),
    };
    println!(
        "| experiment | mode | nodes run | launches | kernels | losses, from TensorFlow's | variables, from OFF's |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for name in names {
        let experiment = Experiment::read(name);
        let plain = experiment.train(Mode::Off);
        // The devices of XLA compile every node, at every level.
        let is_xla = std::env::var("TFCOMPILE_DEVICE").is_ok_and(|device| device.contains("XLA_"));
        assert_eq!(plain.launches() > 0, is_xla, "{name}");
        for mode in [Mode::Off, Mode::On1, Mode::On2, Mode::One] {
            let trained = if mode == Mode::Off { None } else { Some(experiment.train(mode)) };
            let trained = trained.as_ref().unwrap_or(&plain);
            let distance = plain.distance(trained);
            println!(
                "| {name} | {mode:?} | {} | {} | {} | {:.1e} | {distance:.1e} |",
                trained.ops.len(),
                trained.launches(),
                trained.compiled,
                trained.difference,
            );
            assert!(trained.difference < 2e-5, "{name}, {mode:?}: {}", trained.difference);
            assert!(distance < 2e-5, "{name}, {mode:?}: {distance}");
            match mode {
                Mode::Off => {}
                Mode::On1 | Mode::On2 => assert!(trained.launches() > 0, "{name}, {mode:?}"),
                Mode::One => {
                    assert_eq!(trained.launches(), 1, "{name}: {:?}", trained.ops);
                    let is_beside = |op: &String| !matches!(op.as_str(), "VarHandleOp" | "_Arg" | "_Retval");
                    let ran: Vec<&String> = trained.ops.iter().filter(|op| is_beside(op)).collect();
                    assert_eq!(ran.len(), 1, "{name}: {ran:?}");
                }
            }
        }
    }
}
