//! `run --jit --mnist`: digits from IDX files, accuracy, progress, profiles.

use crate::support::{refuse, root, succeed, tfcompile};
use shape::Literal;
use std::path::Path;
use std::process::Command;

/// An IDX file of bytes.
fn idx(sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, sizes.len() as u8];
    sizes.iter().for_each(|size| file.extend(size.to_be_bytes()));
    file.extend(bytes);
    file
}

/// Twelve images to train on, each with one bright pixel at its label: 1, 0, 1, 0 and so on. Four to test with: the labels of the
/// last two are wrong. Images are 28 by 28.
fn prepare(directory: &Path) {
    let set = |name: &str, labels: &[u8], shown: &[u8]| {
        let mut images = vec![0u8; labels.len() * 784];
        shown.iter().enumerate().for_each(|(k, &place)| images[k * 784 + usize::from(place)] = 255);
        let count = labels.len() as u32;
        let write =
            |name: String, data: Vec<u8>| std::fs::write(directory.join(name), data).expect("writable");
        write(format!("{name}-images-idx3-ubyte"), idx(&[count, 28, 28], &images));
        write(format!("{name}-labels-idx1-ubyte"), idx(&[count], labels));
    };
    let train = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0];
    set("train", &train, &train);
    set("t10k", &[0, 1, 1, 0], &[0, 1, 0, 1]);
}

fn command(directory: &Path, words: &[&str]) -> Command {
    let mut command = tfcompile(directory);
    command.arg(words[0]).arg(root().join("examples/mnist_softmax/train.pbtxt")).args(["--fetch", "loss"]);
    command.args(&words[1..]);
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("UTF-8")
}

/// The losses of a run's lines.
fn losses(text: &str) -> Vec<f64> {
    let lines = text.lines().filter_map(|line| line.split_once("  loss:0: "));
    lines.map(|(_, number)| number.parse().expect("a number")).collect()
}

#[test]
fn digits_are_trained_on_and_tested_with() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    // All weights begin at zero, so the first loss is that of ten equal chances.
    let first = 10f64.ln();
    for jit in ["off", "on"] {
        let words = ["run", "--batch", "2", "--jit", jit, "--mnist", ".", "--quiet"];
        let told = text(succeed(&mut command(out.path(), &words)).stdout);
        let losses = losses(&told);
        assert_eq!(losses.len(), 6, "as many steps as there are batches: {told}");
        assert!((losses[0] - first).abs() < 1e-6, "{told}");
        assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "every batch is the same here: {told}");
        assert!(told.ends_with("accuracy over 4 test images: 0.5000\n"), "{told}");
    }
    // A batch of label 1 alone, then one of label 0: the first step teaches nothing about the second.
    let rows = Literal::from_elements(&[2, 4], &[0u16, 2, 4, 6, 1, 3, 5, 7]);
    std::fs::write(out.path().join("rows.npy"), npz::write_npy(&rows)).expect("writable");
    let words = ["run", "--batch", "4", "--jit", "off", "--mnist", ".", "--batch-rows", "rows.npy"];
    let told = text(succeed(&mut command(out.path(), &words)).stdout);
    let seen = losses(&told);
    assert_eq!(seen.len(), 2, "{told}");
    assert!((seen[0] - first).abs() < 1e-6 && seen[1] > first, "{told}");
    // Another number than the accuracy: the loss over the test images, at the weights that were learnt.
    let more = [&words[..], &["--accuracy", "sparse_softmax_cross_entropy_loss/value", "--quiet"]].concat();
    let told = text(succeed(&mut command(out.path(), &more)).stdout);
    assert!(told.contains("over 4 test images: 2.") || told.contains("over 4 test images: 1."), "{told}");
}

#[test]
fn files_that_do_not_fit_are_named() {
    let out = tempfile::tempdir().expect("a directory");
    let run = |more: &[&str]| {
        let words = ["run", "--batch", "2", "--jit", "off", "--mnist", "."];
        command(out.path(), &[&words[..], more].concat())
    };
    let message = refuse(&mut run(&[]), out.path());
    assert!(message.contains("no file 'train-images-idx3-ubyte'"), "{message}");
    prepare(out.path());
    let message = refuse(&mut run(&["--batch-rows", "no.npy"]), out.path());
    assert!(message.contains("no.npy"), "{message}");
    let rows = |rows: &Literal| {
        std::fs::write(out.path().join("rows.npy"), npz::write_npy(rows)).expect("writable");
        refuse(&mut run(&["--batch-rows", "rows.npy"]), out.path())
    };
    let message = rows(&Literal::from_elements(&[1, 2], &[0i32, 12]));
    assert!(message.contains("there is no row 12: rows are 0 to 11"), "{message}");
    let message = rows(&Literal::from_elements(&[3], &[0i32, 1, 2]));
    assert!(message.contains("integers of [batches,2] are wanted"), "{message}");
    let message = refuse(
        &mut command(out.path(), &["run", "--batch", "13", "--jit", "off", "--mnist", "."]),
        out.path(),
    );
    assert!(message.contains("takes 13 images at once, and there are 12"), "{message}");
    let message = refuse(&mut command(out.path(), &["run", "--batch", "2", "--mnist", "."]), out.path());
    assert!(message.contains("--jit"), "{message}");
    let write = |name: &str, data: Vec<u8>| std::fs::write(out.path().join(name), data).expect("writable");
    // A label more than there are images; sizes beyond the file; images of other sizes than those to test with.
    write("train-labels-idx1-ubyte", idx(&[13], &[0; 13]));
    let message = refuse(&mut run(&[]), out.path());
    assert!(
        message.contains("'train-images-idx3-ubyte' has 12 images, 'train-labels-idx1-ubyte' 13"),
        "{message}"
    );
    write("train-images-idx3-ubyte", idx(&[u32::MAX, u32::MAX, u32::MAX], &[0; 100]));
    let message = refuse(&mut run(&[]), out.path());
    assert!(message.contains("'train-images-idx3-ubyte'") && message.contains("more bytes"), "{message}");
    write("train-images-idx3-ubyte", idx(&[13, 4, 4], &[0; 13 * 16]));
    let message = refuse(&mut run(&[]), out.path());
    assert!(message.contains("have 16 pixels, those to test with 784"), "{message}");
    write("t10k-images-idx3-ubyte", idx(&[4, 4, 4], &[0; 4 * 16]));
    let message = refuse(&mut run(&[]), out.path());
    assert!(
        message.contains("no feed takes images of 16 pixels") && message.contains("'x' of f32[2,784]"),
        "{message}"
    );
}

#[test]
fn a_bar_is_drawn_on_terminals_only() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    let words = ["run", "--batch", "2", "--jit", "off", "--mnist", ".", "--steps", "8"];
    let piped = succeed(&mut command(out.path(), &words));
    assert_eq!(losses(&text(piped.stdout)).len(), 8);
    let told = text(piped.stderr);
    assert!(told.starts_with("8 steps, ") && told.contains("steps/s") && !told.contains('\r'), "{told}");
    // `script` runs the tool on a terminal of its own; there, the bar stands for all steps but the last.
    let tool = command(out.path(), &words);
    let quoted = tool.get_args().map(|word| format!("'{}'", word.to_str().expect("UTF-8")));
    let line = format!("'{}' {}", env!("CARGO_BIN_EXE_tfcompile"), quoted.collect::<Vec<_>>().join(" "));
    let mut terminal = Command::new("script");
    terminal.current_dir(out.path()).env("TERM", "xterm").args(["-qec", &line, "/dev/null"]);
    let told = text(succeed(&mut terminal).stdout);
    assert!(told.contains("1/8") && told.contains("loss:0: 2.302585"), "the bar shows step and loss: {told}");
    assert_eq!(told.matches("step ").count(), 1, "only the last step has a line: {told}");
    assert!(told.contains("step 7  loss:0: "), "{told}");
}

#[test]
fn a_clusters_instructions_are_counted() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    let words = ["run", "--batch", "2", "--jit", "on", "--mnist", ".", "--steps", "6", "--xla_hlo_profile"];
    let more = ["--timeline", "t.json", "--trace-step", "5"];
    let told = text(succeed(&mut command(out.path(), &[&words[..], &more].concat())).stderr);
    // Forth and back.
    let flops = |line: &&str| line.contains("FLOP/s") && line.contains("MatMul");
    assert!(told.contains("Execution profile: 6 runs"), "{told}");
    assert!(told.lines().filter(flops).count() >= 2, "{told}");
    let timeline = std::fs::read_to_string(out.path().join("t.json")).expect("written");
    let timeline: serde_json::Value = serde_json::from_str(&timeline).expect("JSON");
    let events = timeline["traceEvents"].as_array().expect("a list");
    let launch = events.iter().find(|e| e["name"] == "_XlaLaunch").expect("a cluster");
    let (start, duration) = (launch["ts"].as_f64().expect("a time"), launch["dur"].as_f64().expect("a time"));
    let inside: Vec<_> = events.iter().filter(|e| e["cat"] == "HLO").collect();
    assert!(inside.len() > 2, "{inside:?}");
    for event in &inside {
        assert_eq!((&event["pid"], &event["tid"]), (&launch["pid"], &launch["tid"]), "in the launch's lane");
        let (from, long) = (event["ts"].as_f64().expect("a time"), event["dur"].as_f64().expect("a time"));
        assert!(from >= start && from + long <= start + duration + 1e-3, "{event} in {launch}");
    }
    assert_eq!(inside.iter().filter(|e| e["args"]["op"] == "dot").count(), 2, "{inside:?}");
}

#[test]
fn a_sessions_page_has_its_nodes_and_a_clusters_instructions() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    let page = |jit: &str| {
        let words = ["profile", "--batch", "2", "--jit", jit, "--mnist", ".", "--steps", "5", "--no-peak"];
        let told = text(succeed(&mut command(out.path(), &[&words[..], &["-o", "p.html"]].concat())).stdout);
        assert!(told.starts_with("average of 5 steps of a session"), "{told}");
        (told, std::fs::read_to_string(out.path().join("p.html")).expect("written"))
    };
    let (_, off) = page("off");
    assert!(off.contains(r#""kind":"MatMul""#), "a row of the table");
    assert!(off.contains("tensors in cpu") && !off.contains("_XlaLaunch"));
    let (told, on) = page("on");
    assert!(told.contains("Execution profile: 6 runs") && on.contains(r#""kind":"dot""#), "{told}");
    assert!(on.contains("_XlaLaunch") && on.contains(": inside"), "{told}");
}
