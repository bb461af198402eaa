//! Sessions on a GPU, by the OpenCL driver for processors (`scripts/setup_gpu.sh opencl`). Without
//! a driver, the tests that need one print a line and pass, except on build servers (`CI=true`).

use crate::graph::{F, Graph, I, shape, ty, types};
use session::{DeviceKind, GpuOptions, Options, Session};
use shape::Literal;
use tf::proto::TensorShapeProto;
use tf::proto::attr_value::Value as Attr;

const DEVICES: [&str; 2] = ["/device:GPU:0", "/device:XLA_GPU:0"];

fn opencl() -> Options {
    Options {
        gpu: GpuOptions { driver: Some(DeviceKind::OpenCl), ..GpuOptions::default() },
        ..Options::default()
    }
}

/// True if there is a device of OpenCL. Says so if there is none.
fn has_device() -> bool {
    match jit::device_count(DeviceKind::OpenCl) {
        Ok(count) if count > 0 => true,
        other => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "no OpenCL device: {other:?}");
            eprintln!("skipped: no OpenCL device ({other:?}); scripts/setup_gpu.sh opencl installs one");
            false
        }
    }
}

/// y = tanh(x w), and a variable that each run of `step` increases by the sum of y.
fn graph(device: &str) -> Graph {
    let mut g = Graph::default();
    g.placeholder("x", F);
    g.constant("w0", Literal::from_elements(&[2, 2], &[1f32, 0.5, -0.5, 2.0]));
    g.add("w", "VariableV2", &[], &[("dtype", ty(F)), ("shape", shape(&[2, 2]))]);
    g.add("init", "Assign", &["w", "w0"], &[("T", ty(F))]);
    g.add("xw", "MatMul", &["x", "w"], &[("T", ty(F))]);
    g.add("y", "Tanh", &["xw"], &[("T", ty(F))]);
    g.add("step", "AssignAdd", &["w", "y"], &[("T", ty(F))]);
    for node in g.def.node.iter_mut().filter(|node| node.name != "x") {
        node.device = device.to_owned();
    }
    g
}

fn x() -> Literal {
    Literal::from_elements(&[2, 2], &[1f32, 2.0, 3.0, 4.0])
}

/// Expected weights, computed here: w += tanh(x w), `steps` times.
fn expected(steps: usize) -> Vec<f32> {
    let x = [[1f64, 2.0], [3.0, 4.0]];
    let mut w = [[1f64, 0.5], [-0.5, 2.0]];
    for _ in 0..steps {
        let old = w;
        for i in 0..2 {
            for j in 0..2 {
                w[i][j] += (x[i][0] * old[0][j] + x[i][1] * old[1][j]).tanh();
            }
        }
    }
    w.concat().iter().map(|&v| v as f32).collect()
}

fn value(literal: Literal) -> session::Value {
    session::Tensor::from_literal(&literal).expect("small").into()
}

fn close(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-5, "{got}, not {want}");
    }
}

#[test]
fn variables_stay_on_the_gpu_between_steps() {
    if !has_device() {
        return;
    }
    for device in DEVICES {
        let session = graph(device).session_with(opencl());
        session.run(&[], &[], &["init"]).expect("initialized");
        session.run(&[("x", x())], &[], &["step"]).expect("a step");
        let before = session.copies();
        for _ in 0..4 {
            session.run(&[("x", x())], &[], &["step"]).expect("a step");
        }
        let after = session.copies();
        // Only x moves: 16 bytes in each step.
        assert_eq!(after.to_host - before.to_host, 0, "{device}");
        assert_eq!(
            (after.to_gpu - before.to_gpu, after.to_gpu_bytes - before.to_gpu_bytes),
            (4, 64),
            "{device}"
        );
        let w = session.variable_value("w").expect("known").expect("a value");
        close(&w.to_vec::<f32>().expect("floats"), &expected(5));
        assert_eq!(session.copies().to_host - after.to_host, 1, "{device}");
    }
}

#[test]
fn the_host_and_the_gpu_work_on_one_variable() {
    if !has_device() {
        return;
    }
    let session = graph("/device:GPU:0").session_with(opencl());
    session.run(&[], &[], &["init"]).expect("initialized");
    session.run(&[("x", x())], &[], &["step"]).expect("a step");
    session.set_variable("w", &Literal::from_elements(&[2, 2], &[1f32, 0.5, -0.5, 2.0])).expect("set");
    session.run(&[("x", x())], &[], &["step"]).expect("a step");
    let w = session.variable_value("w").expect("known").expect("a value");
    close(&w.to_vec::<f32>().expect("floats"), &expected(1));
    // The value that was read is not changed by later steps.
    let old = session.run(&[("x", x())], &["w"], &[]).expect("read")[0].clone();
    session.run(&[("x", x())], &[], &["step"]).expect("a step");
    close(&old.to_vec::<f32>().expect("floats"), &expected(1));
}

#[test]
fn the_default_device_takes_what_can_run_there() {
    if !has_device() {
        return;
    }
    let mut g = graph("");
    let attribute = Attr::Shape(TensorShapeProto::default());
    g.add("message", "AsString", &["y"], &[("T", ty(F))]);
    g.add(
        "print",
        "Print",
        &["y", "message"],
        &[("T", ty(F)), ("U", types(&[tf::DataType::String])), ("shape", attribute)],
    );
    let log = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let sink = log.clone();
    let options = Options {
        default_device: Some("/device:XLA_GPU:0".to_owned()),
        logs_placement: true,
        output: std::sync::Arc::new(move |line| sink.lock().expect("alive").push_str(line)),
        ..opencl()
    };
    let session = g.session_with(options);
    session.run(&[], &[], &["init"]).expect("initialized");
    session.run(&[("x", x())], &["print"], &[]).expect("printed");
    let log = log.lock().expect("alive");
    let prefix = "/job:localhost/replica:0/task:0/device:";
    for (node, device) in
        [("xw: (MatMul)", "XLA_GPU:0"), ("print: (Print)", "CPU:0"), ("w: (VariableV2)", "XLA_GPU:0")]
    {
        assert!(log.contains(&format!("{node}: {prefix}{device}\n")), "{node}: {log}");
    }
}

#[test]
fn control_flow_and_shapes_on_the_gpu_follow_the_host() {
    if !has_device() {
        return;
    }
    for device in DEVICES {
        let mut g = Graph::default();
        g.placeholder("x", F);
        g.float("zero", 0.0);
        g.constant("axes", Literal::from_elements(&[1], &[0i32]));
        g.add("sum", "Sum", &["x", "axes"], &[("T", ty(F)), ("Tidx", ty(I))]);
        g.add("is_positive", "Greater", &["sum", "zero"], &[("T", ty(F))]);
        g.add("sides", "Switch", &["sum", "is_positive"], &[("T", ty(F))]);
        g.add("negated", "Neg", &["sides"], &[("T", ty(F))]);
        g.add("rooted", "Sqrt", &["sides:1"], &[("T", ty(F))]);
        g.add("merged", "Merge", &["negated", "rooted"], &[("T", ty(F)), ("N", Attr::I(2))]);
        g.add("shape", "Shape", &["x"], &[("T", ty(F)), ("out_type", ty(I))]);
        for node in g.def.node.iter_mut().filter(|node| node.name != "x") {
            node.device = device.to_owned();
        }
        let session = g.session_with(opencl());
        for (x, want) in [([1f32, 3.0], 2f32), ([-1.0, -3.0], 4.0)] {
            let feeds = [("x", Literal::from_elements(&[2], &x))];
            let results = session.run(&feeds, &["merged", "shape"], &[]).expect("a step");
            close(&results[0].to_vec::<f32>().expect("floats"), &[want]);
            assert_eq!(results[1].to_vec::<i32>(), Some(vec![2]), "{device}");
        }
    }
}

#[test]
fn traces_show_kernels_and_copies_of_the_gpu() {
    if !has_device() {
        return;
    }
    let session = graph("/device:GPU:0").session_with(opencl());
    session.run(&[], &[], &["init"]).expect("initialized");
    let (_, metadata) = session.run_traced(&[("x", x())], &["y"], &[]).expect("a step");
    let stats = metadata.step_stats.expect("statistics");
    let of = |suffix: &str| {
        let name = format!("/job:localhost/replica:0/task:0/device:GPU:0/{suffix}");
        let device = stats.dev_stats.iter().find(|device| device.device == name);
        device.unwrap_or_else(|| {
            panic!("{name} in {:?}", stats.dev_stats.iter().map(|d| &d.device).collect::<Vec<_>>())
        })
    };
    let names = |suffix: &str| of(suffix).node_stats.iter().map(|n| n.node_name.clone()).collect::<Vec<_>>();
    assert_eq!(names("stream:1"), names("stream:all"));
    assert!(names("stream:all").contains(&"xw:MatMul".to_owned()), "{:?}", names("stream:all"));
    assert_eq!(names("stream:all").last().map(String::as_str), Some("y:Tanh"));
    let copies: Vec<&str> = of("memcpy").node_stats.iter().map(|node| node.timeline_label.as_str()).collect();
    assert!(copies.contains(&"MEMCPYHtoD bytes:16") && copies.contains(&"MEMCPYDtoH bytes:16"), "{copies:?}");
    let label = &of("stream:1").node_stats.last().expect("a kernel").timeline_label;
    assert!(label.contains("hlo:") && label.ends_with("@@y:Tanh"), "{label}");
}

#[test]
fn a_node_that_cannot_run_on_the_gpu_is_named_or_runs_on_the_host() {
    if !has_device() {
        return;
    }
    let mut g = graph("/device:GPU:0");
    g.add("message", "AsString", &["y"], &[("T", ty(F))]);
    g.def.node.last_mut().expect("a node").device = "/device:GPU:0".to_owned();
    g.add("joined", "StringJoin", &["message", "message"], &[("N", Attr::I(2))]);
    let session = g.session_with(opencl());
    session.run(&[], &[], &["init"]).expect("initialized");
    let message = session.run(&[("x", x())], &["joined"], &[]).expect_err("strings").to_string();
    for words in ["operation message:", "op AsString cannot run on", "device:GPU:0", "allow soft placement"] {
        assert!(message.contains(words), "{message}");
    }
    let session = g.session_with(Options { allow_soft_placement: true, ..opencl() });
    session.run(&[], &[], &["init"]).expect("initialized");
    let joined = session.run_values(&[("x", value(x()))], &["joined"], &[]).expect("on the host");
    assert!(matches!(&joined[0], session::Value::Strings(strings) if strings.sizes == [2, 2]), "{joined:?}");
}

fn failure(options: Options) -> String {
    let session: Session = graph("/device:GPU:0").session_with(options);
    session.run(&[], &[], &["init"]).expect_err("no GPU").to_string()
}

#[test]
fn hidden_gpus_are_missing() {
    if !has_device() {
        return;
    }
    let options = opencl();
    let hidden = GpuOptions { limit: Some(0), ..options.gpu.clone() };
    let message = failure(Options { gpu: hidden, ..options.clone() });
    assert!(message.contains("device_count hides the GPUs"), "{message}");
    let other = GpuOptions { visible: Some(vec![7]), ..options.gpu.clone() };
    let message = failure(Options { gpu: other, ..options });
    assert!(message.contains("visible_device_list names device 7"), "{message}");
}
