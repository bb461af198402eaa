//! `run --jit --mnist`: digits from IDX files, accuracy, progress, and profiles.

use crate::support::{refuse, root, succeed, tfcompile};
use shape::Literal;
use std::path::Path;
use std::process::Command;

/// Returns an IDX file of bytes.
fn idx(sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, sizes.len() as u8];
    sizes.iter().for_each(|size| file.extend(size.to_be_bytes()));
    file.extend(bytes);
    file
}

/// Writes twelve training images with one bright pixel each, at the position of the label: 1, 0, 1,
/// 0, and so on. Also writes four test images, of which the last two have wrong labels. Images are
/// 28 by 28.
fn prepare(directory: &Path) {
    let set = |name: &str, labels: &[u8], bright: &[u8]| {
        let mut images = vec![0u8; labels.len() * 784];
        bright.iter().enumerate().for_each(|(k, &place)| images[k * 784 + usize::from(place)] = 255);
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

/// Losses in the output of a run.
fn losses(text: &str) -> Vec<f64> {
    let lines = text.lines().filter_map(|line| line.split_once("  loss:0: "));
    lines.map(|(_, number)| number.parse().expect("a number")).collect()
}

#[test]
fn digits_are_used_for_training_and_testing() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    // All weights start at zero, so the first loss is that of ten equally likely classes.
    let first = 10f64.ln();
    for jit in ["off", "on"] {
        let words = ["run", "--batch", "2", "--jit", jit, "--mnist", ".", "--quiet"];
        let output = text(succeed(&mut command(out.path(), &words)).stdout);
        let losses = losses(&output);
        assert_eq!(losses.len(), 6, "one step per batch: {output}");
        assert!((losses[0] - first).abs() < 1e-6, "{output}");
        assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "all batches are the same: {output}");
        assert!(output.ends_with("accuracy over 4 test images: 0.5000\n"), "{output}");
    }
    // A batch of label 1 only, then one of label 0 only: the first step does not reduce the second
    // loss.
    let rows = Literal::from_elements(&[2, 4], &[0u16, 2, 4, 6, 1, 3, 5, 7]);
    std::fs::write(out.path().join("rows.npy"), npz::write_npy(&rows)).expect("writable");
    let words = ["run", "--batch", "4", "--jit", "off", "--mnist", ".", "--batch-rows", "rows.npy"];
    let output = text(succeed(&mut command(out.path(), &words)).stdout);
    let values = losses(&output);
    assert_eq!(values.len(), 2, "{output}");
    assert!((values[0] - first).abs() < 1e-6 && values[1] > first, "{output}");
    // Another number than the accuracy: the loss over the test images with the trained weights.
    let more = [&words[..], &["--accuracy", "sparse_softmax_cross_entropy_loss/value", "--quiet"]].concat();
    let output = text(succeed(&mut command(out.path(), &more)).stdout);
    assert!(
        output.contains("over 4 test images: 2.") || output.contains("over 4 test images: 1."),
        "{output}"
    );
}

#[test]
fn files_that_do_not_fit_are_named() {
    let out = tempfile::tempdir().expect("a directory");
    let run = |more: &[&str]| {
        let words = ["run", "--batch", "2", "--jit", "off", "--mnist", "."];
        command(out.path(), &[&words[..], more].concat())
    };
    let message = refuse(&mut run(&[]), out.path());
    assert!(message.contains("cannot find 'train-images-idx3-ubyte'"), "{message}");
    prepare(out.path());
    let message = refuse(&mut run(&["--batch-rows", "no.npy"]), out.path());
    assert!(message.contains("no.npy"), "{message}");
    let rows = |rows: &Literal| {
        std::fs::write(out.path().join("rows.npy"), npz::write_npy(rows)).expect("writable");
        refuse(&mut run(&["--batch-rows", "rows.npy"]), out.path())
    };
    let message = rows(&Literal::from_elements(&[1, 2], &[0i32, 12]));
    assert!(message.contains("row 12 is out of range: expected 0 to 11"), "{message}");
    let message = rows(&Literal::from_elements(&[3], &[0i32, 1, 2]));
    assert!(message.contains("expected integers of shape [batches,2]"), "{message}");
    let message = refuse(
        &mut command(out.path(), &["run", "--batch", "13", "--jit", "off", "--mnist", "."]),
        out.path(),
    );
    assert!(message.contains("requires 13 rows per batch, but the training set has 12"), "{message}");
    let message = refuse(&mut command(out.path(), &["run", "--batch", "2", "--mnist", "."]), out.path());
    assert!(message.contains("--jit"), "{message}");
    let write = |name: &str, data: Vec<u8>| std::fs::write(out.path().join(name), data).expect("writable");
    // One more label than images; sizes beyond the end of the file; sizes that differ from the test
    // images'.
    write("train-labels-idx1-ubyte", idx(&[13], &[0; 13]));
    let message = refuse(&mut run(&[]), out.path());
    assert!(
        message.contains("'train-images-idx3-ubyte' has 12 images, but 'train-labels-idx1-ubyte' has 13"),
        "{message}"
    );
    write("train-images-idx3-ubyte", idx(&[u32::MAX, u32::MAX, u32::MAX], &[0; 100]));
    let message = refuse(&mut run(&[]), out.path());
    assert!(message.contains("'train-images-idx3-ubyte'") && message.contains("more bytes"), "{message}");
    write("train-images-idx3-ubyte", idx(&[13, 4, 4], &[0; 13 * 16]));
    let message = refuse(&mut run(&[]), out.path());
    assert!(message.contains("have 16 pixels, but test images have 784"), "{message}");
    write("t10k-images-idx3-ubyte", idx(&[4, 4, 4], &[0; 4 * 16]));
    let message = refuse(&mut run(&[]), out.path());
    assert!(
        message.contains("no feed accepts images of 16 pixels") && message.contains("'x' of f32[2,784]"),
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
    let output = text(piped.stderr);
    assert!(
        output.starts_with("8 steps, ") && output.contains("steps/s") && !output.contains('\r'),
        "{output}"
    );
    // `script` runs the tool on a terminal of its own, where the bar replaces the lines of all
    // steps but the last.
    let tool = command(out.path(), &words);
    let quoted = tool.get_args().map(|word| format!("'{}'", word.to_str().expect("UTF-8")));
    let line = format!("'{}' {}", env!("CARGO_BIN_EXE_tfcompile"), quoted.collect::<Vec<_>>().join(" "));
    let mut terminal = Command::new("script");
    terminal.current_dir(out.path()).env("TERM", "xterm").args(["-qec", &line, "/dev/null"]);
    let output = text(succeed(&mut terminal).stdout);
    assert!(
        output.contains("1/8") && output.contains("loss:0: 2.302585"),
        "the bar shows step and loss: {output}"
    );
    assert_eq!(output.matches("step ").count(), 1, "only the last step has a line: {output}");
    assert!(output.contains("step 7  loss:0: "), "{output}");
}

#[test]
fn a_clusters_instructions_are_counted() {
    let out = tempfile::tempdir().expect("a directory");
    prepare(out.path());
    let words = ["run", "--batch", "2", "--jit", "on", "--mnist", ".", "--steps", "6", "--xla_hlo_profile"];
    let more = ["--timeline", "t.json", "--trace-step", "5"];
    let output = text(succeed(&mut command(out.path(), &[&words[..], &more].concat())).stderr);
    // The forward and the backward pass each have a product.
    let flops = |line: &&str| line.contains("FLOP/s") && line.contains("MatMul");
    assert!(output.contains("Execution profile: 6 runs"), "{output}");
    assert!(output.lines().filter(flops).count() >= 2, "{output}");
    let timeline = std::fs::read_to_string(out.path().join("t.json")).expect("written");
    let timeline: serde_json::Value = serde_json::from_str(&timeline).expect("JSON");
    let events = timeline["traceEvents"].as_array().expect("a list");
    let launch = events.iter().find(|e| e["name"] == "_XlaLaunch").expect("a cluster");
    let (start, duration) = (launch["ts"].as_f64().expect("a time"), launch["dur"].as_f64().expect("a time"));
    let inside: Vec<_> = events.iter().filter(|e| e["cat"] == "HLO").collect();
    assert!(inside.len() > 2, "{inside:?}");
    for event in &inside {
        assert_eq!(
            (&event["pid"], &event["tid"]),
            (&launch["pid"], &launch["tid"]),
            "in the same lane as the launch"
        );
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
        let output =
            text(succeed(&mut command(out.path(), &[&words[..], &["-o", "p.html"]].concat())).stdout);
        assert!(output.starts_with("average of 5 steps of a session"), "{output}");
        (output, std::fs::read_to_string(out.path().join("p.html")).expect("written"))
    };
    let (_, off) = page("off");
    assert!(off.contains(r#""kind":"MatMul""#), "a row of the table");
    assert!(off.contains("tensors in cpu") && !off.contains("_XlaLaunch"));
    let (output, on) = page("on");
    assert!(output.contains("Execution profile: 6 runs") && on.contains(r#""kind":"dot""#), "{output}");
    assert!(on.contains("_XlaLaunch") && on.contains(": inside"), "{output}");
}
