//! Runs the training steps that were recorded with TensorFlow node by node. Reads
//! `$TFCOMPILE_SHARED/oracle`, by default `../shared/oracle`, and tests nothing if it does not
//! exist. `TFCOMPILE_EXPERIMENTS` names the experiments to run; `all` selects all of them (`make
//! test-sessions`). The default is a few quick ones.

use cluster::{Flags, JitLevel};
use npz::Archive;
use serde_json::Value;
use session::{Options, Session};
use shape::{Literal, PrimitiveType};
use std::path::{Path, PathBuf};

fn oracle() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(std::env::var_os("TFCOMPILE_SHARED").unwrap_or("../shared".into())).join("oracle")
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("readable")).expect("JSON")
}

fn archive(path: &Path) -> Archive {
    Archive::open(std::fs::read(path).expect("readable").into(), 1 << 30).expect("an archive")
}

fn array(archive: &mut Archive, name: &str) -> Literal {
    archive.get(name).expect("readable").unwrap_or_else(|| panic!("the array {name}"))
}

fn session(directory: &Path, options: Options) -> Session {
    let graph = tf::source::read_graph_def(&directory.join("graph.pb")).expect("a graph");
    Session::new(graph, options).expect("a session")
}

/// Value of a variable according to the oracle's recipe: SplitMix64, seeded with the FNV-1a hash of
/// the key. 24 bits of it select a number in the range.
fn initial_value(variable: &Value) -> Literal {
    let (rule, key) = (&variable["rule"], variable["key"].as_str().expect("a key"));
    let sizes: Vec<i64> =
        variable["shape"].as_array().expect("a shape").iter().filter_map(Value::as_i64).collect();
    let count: i64 = sizes.iter().product();
    let seed = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let number = |name: &str| rule[name].as_f64().expect("a number of the rule");
    let element = |k: u64| match rule["kind"].as_str() {
        Some("const") => number("value"),
        Some("uniform") => {
            let z = seed.wrapping_add((k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let bits = (z ^ (z >> 31)) >> 40;
            number("lo") + (number("hi") - number("lo")) * (bits as f64 / 16_777_216.0)
        }
        other => panic!("the rule {other:?}"),
    };
    let values = (0..count as u64).map(element);
    match variable["dtype"].as_str() {
        Some("float32") => Literal::from_elements(&sizes, &values.map(|v| v as f32).collect::<Vec<_>>()),
        Some("int64") => Literal::from_elements(&sizes, &values.map(|v| v as i64).collect::<Vec<_>>()),
        Some("int32") => Literal::from_elements(&sizes, &values.map(|v| v as i32).collect::<Vec<_>>()),
        other => panic!("the type {other:?}"),
    }
}

fn close(what: &str, got: &Literal, want: &Literal, tolerance: f64) {
    let numbers = |literal: &Literal| match literal.array_shape().element_type {
        PrimitiveType::F32 => literal.floats().expect("floats"),
        _ => literal.to_i64s().expect("integers").iter().map(|&v| v as f64).collect(),
    };
    let (got, want) = (numbers(got), numbers(want));
    assert_eq!(got.len(), want.len(), "{what}");
    for (k, (got, want)) in got.iter().zip(&want).enumerate() {
        assert!((got - want).abs() <= tolerance, "{what}[{k}]: {got}, not {want} within {tolerance}");
    }
}

/// Runs the recorded steps of an experiment and returns their number.
fn run(directory: &Path, options: &Options) -> usize {
    let spec = read_json(&directory.join("spec.json"));
    let fetch = spec["fetch"].as_str().expect("a fetch");
    let mut steps = 0;
    for recorded in spec["runs"].as_array().expect("runs") {
        let session = session(directory, options.clone());
        let mut expected = archive(&directory.join(recorded["file"].as_str().expect("a file")));
        let variables = recorded["variables"].as_array().expect("variables");
        for variable in variables {
            session
                .set_variable(variable["name"].as_str().expect("a name"), &initial_value(variable))
                .expect("set");
        }
        let losses = array(&mut expected, fetch).to_vec::<f32>().expect("losses");
        let tolerance = recorded["loss_tolerance"].as_f64().expect("a tolerance");
        for (step, &loss) in losses.iter().enumerate() {
            let feeds: Vec<(&str, Literal)> = spec["feeds"]
                .as_array()
                .expect("feeds")
                .iter()
                .map(|feed| {
                    let (file, key) =
                        feed["batches"].as_str().expect("batches").split_once(':').expect("a key");
                    let all = array(&mut archive(&directory.parent().expect("a directory").join(file)), key);
                    (feed["tensor"].as_str().expect("a tensor"), row(&all, step))
                })
                .collect();
            let results =
                session.run(&feeds, &[fetch], &[]).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
            close(
                &format!("loss {step} of {}", directory.display()),
                &results[0],
                &Literal::scalar(loss),
                tolerance,
            );
            steps += 1;
        }
        for variable in variables.iter().filter(|variable| variable["stored"] == "whole") {
            let name = variable["name"].as_str().expect("a name");
            let got = session.variable_value(name).expect("known").expect("a value");
            let want = array(&mut expected, &format!("final/{name}"));
            close(
                &format!("final {name}"),
                &got,
                &want,
                variable["tolerance"].as_f64().expect("a tolerance"),
            );
        }
    }
    steps
}

/// A row of an array.
fn row(all: &Literal, at: usize) -> Literal {
    let shape = all.array_shape();
    let sizes = shape.sizes();
    let row = shape::ArrayShape::new(shape.element_type, &sizes[1..]);
    let bytes = row.byte_size() as usize;
    let data = all.bytes().slice(at * bytes..(at + 1) * bytes);
    Literal::from_bytes(row, data).expect("a row")
}

/// Experiments of the quick default run: no loop, a TensorFlow 1 loop, and a functional loop.
const FEW: &str = "fc_batchnorm_adam dynamic_rnn keras_rnn_cfv2";

#[test]
fn training_steps_give_the_recorded_losses() {
    let directory = oracle().join("cerebras14");
    let Ok(entries) = std::fs::read_dir(&directory) else { return };
    let selection = std::env::var("TFCOMPILE_EXPERIMENTS").unwrap_or_else(|_| FEW.to_owned());
    let mut names: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.retain(|path| path.join("spec.json").is_file());
    names.retain(|path| selection == "all" || selection.split_whitespace().any(|name| path.ends_with(name)));
    names.sort();
    assert!(!names.is_empty());
    for path in names {
        // Node by node, in the clusters of the first level, and in clusters as large as possible.
        for (level, min_cluster_size) in [(JitLevel::Off, 4), (JitLevel::On1, 4), (JitLevel::On2, 1)] {
            let begin = std::time::Instant::now();
            let steps =
                run(&path, &Options { inter_op_threads: 2, ..with_clusters(level, min_cluster_size) });
            assert!(steps > 0);
            eprintln!("{}, {level:?}: {steps} steps in {:?}", path.display(), begin.elapsed());
        }
    }
}

/// Options of a session that clusters its graph.
fn with_clusters(level: JitLevel, min_cluster_size: i32) -> Options {
    let flags = Flags { cpu_global_jit: true, min_cluster_size, ..Flags::default() };
    let rewrite = session::clusters(cluster::Options::new(level, flags), Box::new(cluster::Silent));
    Options { rewrite: Some(rewrite), ..Options::default() }
}

#[test]
fn batches_may_change_their_size_from_run_to_run() {
    let Some(script) = Script::read() else { return };
    let loss = |rows: &[i64]| {
        let session = script.session();
        f64::from(script.step(&session, rows))
    };
    let rows: Vec<i64> = (0..60).collect();
    let whole = loss(&rows);
    for parts in [30, 20, 12] {
        // The loss is a mean over the rows.
        let losses: Vec<f64> = rows.chunks(parts).map(loss).collect();
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        assert!((whole - mean).abs() < 1e-6, "expected {whole}, got {mean} in parts of {parts}");
    }
    // One session runs several sizes, the first one twice. Clustering must not change the losses,
    // and a second session must return identical ones.
    for size in [60, 7, 60] {
        let rows = &rows[..size];
        let (one, other) = (script.session(), script.session_with(with_clusters(JitLevel::On1, 4)));
        assert!((script.step(&one, rows) - script.step(&other, rows)).abs() < 1e-6, "{size} rows");
    }
    let session = script.session_with(with_clusters(JitLevel::On1, 4));
    let twice = script.session_with(with_clusters(JitLevel::On1, 4));
    for size in [60, 7, 60] {
        assert_eq!(script.step(&session, &rows[..size]), script.step(&twice, &rows[..size]));
    }
}

/// The recorded script of softmax regression.
struct Script {
    directory: PathBuf,
    spec: Value,
    images: Vec<u8>,
    labels: Vec<i64>,
}

impl Script {
    fn read() -> Option<Self> {
        let directory = oracle().join("mnist_softmax");
        if !directory.is_dir() {
            return None;
        }
        let spec = read_json(&directory.join("spec.json"));
        let mut digits = archive(&directory.join("digits.npz"));
        let images = array(&mut digits, "train_images").to_vec::<u8>().expect("bytes");
        let labels = array(&mut digits, "train_labels").to_i64s().expect("labels");
        Some(Self { directory, spec, images, labels })
    }

    fn name(&self, key: &str) -> &str {
        self.spec["train"][key].as_str().expect("a name")
    }

    /// A session whose variables are zero.
    fn session(&self) -> Session {
        self.session_with(Options::default())
    }

    /// A session with these options whose variables are zero.
    fn session_with(&self, options: Options) -> Session {
        let session = session(&self.directory.join("train"), options);
        session
            .set_variable(self.name("w"), &Literal::from_elements(&[784, 10], &[0f32; 7840]))
            .expect("set");
        session.set_variable(self.name("b"), &Literal::from_elements(&[10], &[0f32; 10])).expect("set");
        session
    }

    /// Trains on some rows and returns the loss.
    fn step(&self, session: &Session, rows: &[i64]) -> f32 {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for &row in rows {
            let row = row as usize;
            x.extend(self.images[row * 784..(row + 1) * 784].iter().map(|&p| f32::from(p) / 255.0));
            y.push(self.labels[row]);
        }
        let count = rows.len() as i64;
        let feeds = [
            (self.name("x"), Literal::from_elements(&[count, 784], &x)),
            (self.name("y"), Literal::from_elements(&[count], &y)),
        ];
        let results = session.run(&feeds, &[self.name("loss")], &[]).expect("a step");
        results[0].to_vec::<f32>().expect("a float")[0]
    }
}

#[test]
fn a_thousand_steps_of_softmax_regression_match_tensorflow() {
    let Some(script) = Script::read() else { return };
    let mut digits = archive(&script.directory.join("digits.npz"));
    let mut expected = archive(&script.directory.join("expected.npz"));
    let rows = array(&mut digits, "batch_rows");
    let batch = rows.array_shape().size(1) as usize;
    let rows = rows.to_i64s().expect("rows");
    let losses = array(&mut expected, script.name("loss")).to_vec::<f32>().expect("losses");
    for options in [Options::default(), with_clusters(JitLevel::On1, 4)] {
        let session = script.session_with(options);
        for (step, (rows, &want)) in rows.chunks_exact(batch).zip(&losses).enumerate() {
            let got = Literal::scalar(script.step(&session, rows));
            close(&format!("loss {step}"), &got, &Literal::scalar(want), 1e-5);
        }
        for variable in ["w", "b"] {
            let got = session.variable_value(script.name(variable)).expect("known").expect("a value");
            let want = array(&mut expected, &format!("final/{}", script.name(variable)));
            close(variable, &got, &want, 1e-5);
        }
    }
}
