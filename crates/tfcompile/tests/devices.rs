//! The training step of examples/mnist_softmax on the device where everything is compiled.

use std::path::Path;
use tfcompile::{GraphDef, JitLevel, Literal, Options, Session, TimelineOptions, parse_config, parse_graph};

const XLA_CPU: &str = "/device:XLA_CPU:0";

/// Returns the graph with all nodes on `device`, and with a node `printed` that prints the loss.
fn placed(device: &str) -> GraphDef {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mnist_softmax/train.pbtxt");
    let mut text = std::fs::read_to_string(path).expect("readable");
    text.push_str(
        r#"node { name: "printed" op: "Print" input: "loss" input: "loss" attr { key: "T" value { type: DT_FLOAT } }
           attr { key: "U" value { list { type: DT_FLOAT } } } attr { key: "message" value { s: "loss " } } }"#,
    );
    let mut graph = parse_graph(text.into_bytes()).expect("a graph");
    graph.node.iter_mut().for_each(|node| device.clone_into(&mut node.device));
    graph
}

/// Two images, each with a different bright pixel.
fn feeds() -> [(&'static str, Literal); 2] {
    let mut images = vec![0f32; 2 * 784];
    (images[3], images[784 + 5]) = (1.0, 1.0);
    [("x", Literal::from_elements(&[2, 784], &images)), ("labels", Literal::from_elements(&[2], &[3i64, 5]))]
}

fn session(device: &str, options: &Options) -> Session {
    let session = Session::new(placed(device), options).expect("a session");
    session.initialize().expect("first values");
    session
}

/// Returns the losses of three steps.
fn losses(session: &Session, fetch: &str) -> Vec<f32> {
    let step = |_| session.run(&feeds(), &[fetch], &[]).expect("a step")[0].to_vec::<f32>().expect("f32")[0];
    (0..3).map(step).collect()
}

#[test]
fn a_session_on_the_compiling_device_trains_as_one_on_the_host() {
    // At first all ten classes are equally likely. Later losses must equal those on the host.
    let on_host = losses(&session("", &Options::default()), "loss");
    assert!((f64::from(on_host[0]) - 10f64.ln()).abs() < 1e-6 && on_host[2] < on_host[1], "{on_host:?}");
    for jit in [None, Some(JitLevel::Off), Some(JitLevel::On1)] {
        let session = session(XLA_CPU, &Options { jit, ..Options::default() });
        assert!(session.devices().iter().any(|name| name.ends_with(XLA_CPU)));
        for (loss, expected) in losses(&session, "loss").into_iter().zip(&on_host) {
            assert!((loss - expected).abs() < 1e-6, "{jit:?}: {loss}, not {expected}");
        }
        let (_, trace) = session.run_traced(&feeds(), &["loss"], &[]).expect("a step");
        let timeline = trace.timeline(TimelineOptions { dataflow: false, memory: false });
        assert!(timeline.contains("/device:XLA_CPU:0 Compute"), "{jit:?}");
        // As in TensorFlow, nodes on this device are clustered at every level.
        assert_eq!(timeline.matches(r#""op": "_XlaLaunch""#).count(), 1, "{jit:?}");
        assert!(!timeline.contains(r#""op": "MatMul""#), "{jit:?}");
    }
}

#[test]
fn a_node_that_cannot_be_compiled_is_named_or_placed_softly() {
    let session_of = |config: &str| {
        let config = parse_config(config.as_bytes().to_vec()).expect("a config");
        session(XLA_CPU, &Options { config, ..Options::default() })
    };
    let error =
        session_of("").run(&feeds(), &["printed"], &[]).expect_err("nothing prints there").to_string();
    assert!(error.contains("operation printed: op Print cannot run on"), "{error}");
    assert!(error.contains("device:XLA_CPU:0") && error.contains("allow soft placement"), "{error}");
    // Fetches that do not need that node still run.
    let all = losses(&session_of(""), "loss");
    assert_eq!(losses(&session_of("allow_soft_placement: true"), "printed"), all);
    for device in ["/device:XLA_GPU:0", "/device:GPU:0"] {
        let session = Session::new(placed(device), &Options::default()).expect("a session");
        let error = session.run(&feeds(), &["loss"], &[]).expect_err("no GPU").to_string();
        assert!(
            error.contains("explicitly assigned to") && error.contains("available devices are"),
            "{error}"
        );
    }
}
