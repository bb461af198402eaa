//! The training step of examples/mnist_softmax through the library, by each way of asking for
//! just-in-time compilation.

use std::path::{Path, PathBuf};
use tfcompile::{JitLevel, Literal, Options, Session, TfXlaFlags, TimelineOptions, Trace, parse_config};

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mnist_softmax/train.pbtxt")
}

/// Images with one bright pixel each. The index of the pixel is the label, so a step changes the
/// weight of that pixel.
fn feeds() -> [(&'static str, Literal); 2] {
    let mut images = vec![0f32; 10 * 784];
    (0..10).for_each(|label| images[label * 784 + label] = 1.0);
    let labels: Vec<i64> = (0..10).collect();
    [("x", Literal::from_elements(&[10, 784], &images)), ("labels", Literal::from_elements(&[10], &labels))]
}

/// Trains three steps. Returns their losses, and the trace of the third.
fn train(options: &Options) -> (Vec<f32>, Trace) {
    let session = Session::open(model(), options).expect("it opens");
    let loss = |results: &[Literal]| results[0].to_vec::<f32>().expect("f32")[0];
    let mut losses = Vec::new();
    for _ in 0..2 {
        losses.push(loss(&session.run(&feeds(), &["loss"], &[]).expect("it runs")));
    }
    let (results, trace) = session.run_traced(&feeds(), &["loss"], &[]).expect("it runs");
    losses.push(loss(&results));
    let accuracy = session.run(&feeds(), &["accuracy"], &[]).expect("it runs");
    assert_eq!(accuracy[0].to_vec::<f32>(), Some(vec![1.0]), "each image has a different pixel");
    (losses, trace)
}

/// Returns the number of bars for an op in the timeline.
fn bars(trace: &Trace, op: &str) -> usize {
    let text = trace.timeline(TimelineOptions { dataflow: false, memory: false });
    text.matches(&format!(r#""op": "{op}""#)).count()
}

#[test]
fn losses_fall_as_by_hand_and_clusters_are_one_launch() {
    // Let w be the weight from a bright pixel to its label and v the weight to each other class,
    // with equal biases. A step of rate 0.5 over ten images adds 0.05 (1 - p) to w and subtracts
    // 0.05 (1 - p) / 9 from v, where p is the probability of the label.
    let (mut w, mut v) = (0f64, 0f64);
    let expected: Vec<f64> = (0..3)
        .map(|_| {
            let p = w.exp() / (w.exp() + 9.0 * v.exp());
            w += 0.05 * (1.0 - p);
            v -= 0.05 * (1.0 - p) / 9.0;
            -p.ln()
        })
        .collect();
    let config = |text: &str| parse_config(text.as_bytes().to_vec()).expect("a config");
    let level = "graph_options { optimizer_options { global_jit_level: ON_1 } }";
    let for_cpus = "graph_options { optimizer_options { global_jit_level: ON_1 cpu_global_jit: true } }";
    let flags = TfXlaFlags { cpu_global_jit: true, ..TfXlaFlags::default() };
    let default = Options::default;
    for (case, options, is_clustered) in [
        ("nothing stated", default(), false),
        ("off", Options { jit: Some(JitLevel::Off), ..default() }, false),
        ("on", Options { jit: Some(JitLevel::On1), ..default() }, true),
        ("a config's level", Options { config: config(level), ..default() }, false),
        ("a config's level for CPUs", Options { config: config(for_cpus), ..default() }, true),
        ("a config's level and flags", Options { config: config(level), flags, ..default() }, true),
    ] {
        let (losses, trace) = train(&options);
        for (loss, expected) in losses.iter().zip(&expected) {
            assert!((f64::from(*loss) - expected).abs() < 1e-6, "{case}: {losses:?}, not {expected:?}");
        }
        let seen = (bars(&trace, "MatMul") > 0, bars(&trace, "_XlaLaunch"));
        assert_eq!(seen, if is_clustered { (false, 1) } else { (true, 0) }, "{case}");
    }
}
