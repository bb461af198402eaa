//! Clusters that write variables: in place, with another shape, and before the variable has a
//! value.

use crate::graph::{F, Graph, failure, floats, shape, text, ty};
use cluster::{Flags, JitLevel};
use session::{Launches, Options, Session};
use shape::Literal;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};
use tf::DataType;

fn vector(values: &[f32]) -> Literal {
    Literal::from_elements(&[values.len() as i64], values)
}

/// A session that clusters every node that supports it.
fn clustered(g: &Graph) -> Session {
    launched(g, Options::default())
}

fn launched(g: &Graph, options: Options) -> Session {
    let flags = Flags { cpu_global_jit: true, min_cluster_size: 1, ..Flags::default() };
    let rewrite = session::clusters(cluster::Options::new(JitLevel::On2, flags), Box::new(cluster::Silent));
    g.session_with(Options { rewrite: Some(rewrite), ..options })
}

/// The ops of the nodes that a run executes for these targets.
fn executed_ops(session: &Session, feeds: &[(&str, Literal)], targets: &[&str]) -> Vec<String> {
    let (_, metadata) = session.run_traced(feeds, &[], targets).expect("run");
    let devices = metadata.step_stats.unwrap_or_default().dev_stats;
    let labels = devices.into_iter().flat_map(|device| device.node_stats).map(|node| node.timeline_label);
    let op = |label: String| {
        let (_, call) = label.split_once(" = ").unwrap_or_else(|| panic!("{label}"));
        call.split('(').next().unwrap_or_default().to_owned()
    };
    labels.map(op).collect()
}

fn declare(g: &mut Graph, name: &str, sizes: Option<&[i64]>) {
    let shape = match sizes {
        Some(sizes) => shape(sizes),
        None => tf::proto::attr_value::Value::Shape(tf::proto::TensorShapeProto {
            unknown_rank: true,
            ..Default::default()
        }),
    };
    g.add(name, "VarHandleOp", &[], &[("dtype", ty(F)), ("shape", shape), ("shared_name", text(name))]);
}

/// A variable that is assigned `exp(-x)` and read afterward.
fn assigning(sizes: Option<&[i64]>) -> Graph {
    let mut g = Graph::default();
    declare(&mut g, "w", sizes);
    let attributes = [("T", ty(F))];
    g.placeholder("x", F).add("minus", "Neg", &["x"], &attributes).add("exp", "Exp", &["minus"], &attributes);
    g.add("assign", "AssignVariableOp", &["w", "exp"], &[("dtype", ty(F))]);
    g.add("read", "ReadVariableOp", &["w", "^assign"], &[("dtype", ty(F))]);
    g.add("twice", "AddV2", &["read", "read"], &attributes);
    g.add("known", "VarIsInitializedOp", &["w"], &[]);
    g.add("early", "ReadVariableOp", &["w"], &[("dtype", ty(F))]);
    g.add("product", "Mul", &["early", "exp"], &attributes);
    g.add("late", "AssignVariableOp", &["w", "product"], &[("dtype", ty(F))]);
    g
}

fn halves(values: &[f32]) -> Literal {
    // For these inputs, `exp(-x)` is 2 to the power of `-values`.
    vector(&values.iter().map(|v| v * std::f32::consts::LN_2).collect::<Vec<_>>())
}

fn close(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len(), "{got:?}");
    assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs()), "{got:?}, not {want:?}");
}

#[test]
fn a_cluster_assigns_the_first_and_later_values_of_a_variable() {
    let session = clustered(&assigning(Some(&[2])));
    let x = |values: &[f32]| [("x", halves(values))];
    assert_eq!(session.variable_value("w").expect("known"), None);
    close(&floats(&session, &x(&[1.0, 2.0]), "twice"), &[1.0, 0.5]);
    let value = |session: &Session| {
        session.variable_value("w").expect("known").expect("a value").to_vec::<f32>().expect("floats")
    };
    close(&value(&session), &[0.5, 0.25]);
    close(&floats(&session, &x(&[3.0, 0.0]), "twice"), &[0.25, 2.0]);
    close(&value(&session), &[0.125, 1.0]);
    // All nodes except the handle are in the cluster.
    let ops = executed_ops(&session, &x(&[1.0, 1.0]), &["assign"]);
    assert!(ops.iter().any(|op| op == "_XlaLaunch"), "{ops:?}");
    assert!(!ops.iter().any(|op| op == "AssignVariableOp" || op == "Exp"), "{ops:?}");
    close(&value(&session), &[0.5, 0.5]);
    // A read before the assignment returns the old value.
    session.run(&x(&[2.0, 0.0]), &[], &["late"]).expect("run");
    close(&value(&session), &[0.125, 0.5]);
    // The shape must be the one that the node declares.
    let message = failure(&session, &x(&[1.0, 2.0, 3.0]), &[], &["assign"]);
    assert!(message.contains("variable 'w': expected a value of shape [2], got shape [3]"), "{message}");
    close(&value(&session), &[0.125, 0.5]);
}

#[test]
fn a_cluster_may_change_the_shape_of_a_variable() {
    let session = clustered(&assigning(None));
    for values in [&[1f32][..], &[1.0, 2.0], &[], &[1.0, 2.0, 3.0], &[2.0, 2.0, 1.0]] {
        let expected: Vec<f32> = values.iter().map(|&v| 2.0 * (-v * std::f32::consts::LN_2).exp()).collect();
        close(&floats(&session, &[("x", halves(values))], "twice"), &expected);
        let value = session.variable_value("w").expect("known").expect("a value");
        assert_eq!(value.array_shape().sizes(), [values.len() as i64]);
    }
}

#[test]
fn a_variable_that_is_read_before_it_has_a_value_is_an_error_that_names_it() {
    let session = clustered(&assigning(Some(&[2])));
    let feeds = [("x", halves(&[1.0, 1.0]))];
    let message = failure(&session, &feeds, &[], &["late"]);
    assert!(message.contains("Attempting to use uninitialized value w"), "{message}");
    assert_eq!(session.variable_value("w").expect("known"), None);
    let known = |session: &Session| session.run(&[], &["known"], &[]).expect("run")[0].clone();
    assert_eq!(known(&session), Literal::scalar(false));
    session.run(&feeds, &[], &["assign"]).expect("assigned");
    assert_eq!(known(&session), Literal::scalar(true));
    session.run(&feeds, &[], &["late"]).expect("the variable has a value");
}

/// Several variables in one cluster: one with a value, one without, and one that is only read.
#[test]
fn variables_with_and_without_values_are_in_one_cluster() {
    let mut g = Graph::default();
    let attributes = [("dtype", ty(F))];
    for name in ["a", "b", "c"] {
        declare(&mut g, name, Some(&[2]));
        g.add(&format!("{name}/read"), "ReadVariableOp", &[name], &attributes);
    }
    g.add("sum", "AddV2", &["a/read", "c/read"], &[("T", ty(F))]);
    g.add("double", "AddV2", &["sum", "sum"], &[("T", ty(F))]);
    g.add("to_b", "AssignVariableOp", &["b", "double"], &attributes);
    g.add("to_a", "AssignAddVariableOp", &["a", "double"], &attributes);
    g.add("both", "NoOp", &["^to_a", "^to_b"], &[]);
    for options in [None, Some(())] {
        let session = if options.is_some() { clustered(&g) } else { g.session() };
        session.set_variable("a", &vector(&[1.0, 2.0])).expect("set");
        session.set_variable("c", &vector(&[10.0, 20.0])).expect("set");
        session.run(&[], &[], &["both"]).expect("run");
        assert_eq!(session.variable_value("a").expect("known"), Some(vector(&[23.0, 46.0])));
        assert_eq!(session.variable_value("b").expect("known"), Some(vector(&[22.0, 44.0])));
        session.run(&[], &[], &["both"]).expect("run");
        assert_eq!(session.variable_value("b").expect("known"), Some(vector(&[66.0, 132.0])));
        assert_eq!(session.variable_value("c").expect("known"), Some(vector(&[10.0, 20.0])));
    }
}

/// True if a run executes the cluster node by node instead of as one kernel.
fn is_by_nodes(session: &Session, feeds: &[(&str, Literal)], targets: &[&str]) -> bool {
    let ops = executed_ops(session, feeds, targets);
    assert!(ops.iter().any(|op| op == "_XlaLaunch"), "{ops:?}");
    ops.iter().any(|op| op == "Exp")
}

#[test]
fn a_lazy_cluster_is_compiled_first_and_for_other_shapes_on_their_second_run() {
    let launches = Launches { is_lazy: true, ..Launches::default() };
    let session = launched(&assigning(None), Options { launches, ..Options::default() });
    let (one, two) = ([("x", halves(&[1.0]))], [("x", halves(&[1.0, 2.0]))]);
    assert!(!is_by_nodes(&session, &one, &["assign"]));
    assert!(is_by_nodes(&session, &two, &["assign"]));
    close(&floats(&session, &two, "read"), &[0.5, 0.25]);
    // The variable has the new shape now, which needs another kernel, compiled on the second
    // request.
    assert!(is_by_nodes(&session, &two, &["assign"]));
    assert!(!is_by_nodes(&session, &two, &["assign"]));
    close(&floats(&session, &two, "read"), &[0.5, 0.25]);
}

/// A cache that stores nothing. While open, it records the requested keys. While closed, it blocks
/// requests for all other keys.
#[derive(Debug, Default)]
struct Gate {
    known: Mutex<BTreeSet<String>>,
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().expect("not poisoned") = is_closed;
        self.changed.notify_all();
    }
}

impl compiler::UnitCache for Gate {
    fn get(&self, key: &str) -> Option<Vec<u8>> {
        let is_closed = self.is_closed.lock().expect("not poisoned");
        if !*is_closed {
            self.known.lock().expect("not poisoned").insert(key.to_owned());
        } else if !self.known.lock().expect("not poisoned").contains(key) {
            drop(self.changed.wait_while(is_closed, |is_closed| *is_closed).expect("not poisoned"));
        }
        None
    }

    fn put(&self, _: &str, _: &[u8]) {}
}

/// A session that compiles clusters in the background, its gate, and its output.
fn in_background(g: &Graph, is_async: bool) -> (Session, Arc<Gate>, Arc<Mutex<String>>) {
    let gate = Arc::new(Gate::default());
    let messages = Arc::new(Mutex::new(String::new()));
    let sink = messages.clone();
    let options = Options {
        launches: Launches { is_lazy: true, is_async, ..Launches::default() },
        cache: Some(gate.clone()),
        output: Arc::new(move |text: &str| sink.lock().expect("not poisoned").push_str(text)),
        ..Options::default()
    };
    (launched(g, options), gate, messages)
}

#[test]
fn a_cluster_is_compiled_in_the_background_while_its_nodes_run() {
    let (session, gate, messages) = in_background(&assigning(None), true);
    let (one, two) = ([("x", halves(&[1.0]))], [("x", halves(&[1.0, 2.0]))]);
    let plain = assigning(None).session_with(Options { cache: Some(gate.clone()), ..Options::default() });
    for feeds in [&one, &two] {
        plain.run(feeds, &["read"], &["assign"]).expect("run");
    }
    gate.set(true);
    session.set_variable("w", &vector(&[0.0])).expect("set");
    for _ in 0..3 {
        assert!(is_by_nodes(&session, &one, &["assign"]));
    }
    gate.set(false);
    session.wait_for_compilations();
    let compiled = session.compiled_kernels();
    assert!(!is_by_nodes(&session, &one, &["assign"]));
    assert_eq!(session.compiled_kernels(), compiled);
    close(&floats(&session, &one, "read"), &[0.5]);
    // Another shape, which is compiled on its first request, and then the new shape of the
    // variable.
    gate.set(true);
    assert!(is_by_nodes(&session, &two, &["assign"]));
    assert!(!is_by_nodes(&session, &one, &["minus"]), "compiled shapes must not wait");
    gate.set(false);
    for _ in 0..2 {
        session.wait_for_compilations();
        session.run(&two, &[], &["assign"]).expect("run");
    }
    session.wait_for_compilations();
    assert!(!is_by_nodes(&session, &two, &["assign"]));
    close(&floats(&session, &two, "read"), &[0.5, 0.25]);
    assert_eq!(messages.lock().expect("not poisoned").as_str(), "");
}

#[test]
fn a_session_ends_while_a_cluster_is_being_compiled() {
    let (session, gate, _) = in_background(&assigning(Some(&[2])), true);
    let feeds = [("x", halves(&[1.0, 2.0]))];
    let plain = Options { cache: Some(gate.clone()), ..Options::default() };
    assigning(Some(&[2])).session_with(plain).run(&feeds, &[], &["assign"]).expect("run");
    gate.set(true);
    session.run(&feeds, &[], &["assign"]).expect("run");
    let opened = gate.clone();
    let opener = std::thread::spawn(move || opened.set(false));
    drop(session);
    opener.join().expect("no panic");
}

/// If a cluster fails to compile in the background, TensorFlow continues with its nodes. A session
/// does the same, but prints a warning.
#[test]
fn a_cluster_that_cannot_be_compiled_warns_once_and_runs_node_by_node() {
    let mut g = Graph::default();
    let count = [("T", ty(DataType::Int64))];
    // The number of places is known only at run time, and a mirrored edge has no rule for that.
    g.placeholder("x", F).add("places", "Where", &["x"], &[("T", ty(F))]);
    g.add("squeezed", "Squeeze", &["places"], &count)
        .constant("edges", Literal::from_elements(&[1, 2], &[1i32, 0]));
    let mirrored = [("T", ty(DataType::Int64)), ("mode", text("REFLECT"))];
    g.add("mirror", "MirrorPad", &["squeezed", "edges"], &mirrored);
    g.add("twice", "AddV2", &["mirror", "mirror"], &count);
    let feeds = [("x", vector(&[5.0, 0.0, 6.0, 7.0]))];
    for is_async in [true, false] {
        let (session, _, messages) = in_background(&g, is_async);
        for _ in 0..3 {
            let twice = session.run(&feeds, &["twice"], &[]).expect("run");
            assert_eq!(twice, [Literal::from_elements(&[4], &[4i64, 0, 4, 6])]);
            session.wait_for_compilations();
        }
        let messages = messages.lock().expect("not poisoned").clone();
        assert_eq!(messages.matches("warning: cluster 'cluster_").count(), 1, "{messages}");
        assert!(
            messages.contains("runs node by node") && messages.contains("node 'cluster_0/mirror'"),
            "{messages}"
        );
    }
}

#[test]
fn deferred_clusters_run_node_by_node() {
    let launches = Launches { is_deferred: true, ..Launches::default() };
    let session = launched(&assigning(Some(&[2])), Options { launches, ..Options::default() });
    let feeds = [("x", halves(&[1.0, 2.0]))];
    for _ in 0..3 {
        assert!(is_by_nodes(&session, &feeds, &["assign"]));
    }
    close(&floats(&session, &feeds, "twice"), &[1.0, 0.5]);
}

#[test]
fn inputs_and_outputs_of_clusters_are_checked_and_printed() {
    let mut g = Graph::default();
    let attributes = [("T", ty(F))];
    g.placeholder("x", F).add("root", "Sqrt", &["x"], &attributes).add(
        "sum",
        "AddV2",
        &["root", "root"],
        &attributes,
    );
    let messages = Arc::new(Mutex::new(String::new()));
    let sink = messages.clone();
    let session = |launches: Launches| {
        let sink = sink.clone();
        let output = Arc::new(move |text: &str| sink.lock().expect("not poisoned").push_str(text));
        launched(&g, Options { launches, output, ..Options::default() })
    };
    let feeds = |values: &[f32]| [("x", vector(values))];

    let into = session(Launches { checks_inputs: true, ..Launches::default() });
    close(&floats(&into, &feeds(&[4.0, 9.0]), "sum"), &[4.0, 6.0]);
    let message = failure(&into, &feeds(&[f32::INFINITY, f32::NAN]), &["sum"], &[]);
    assert!(message.contains("CheckNumerics failed for input 0 into cluster_"), "{message}");
    assert!(message.contains(" : Tensor had Inf and NaN values"), "{message}");

    let out = session(Launches { checks_outputs: true, ..Launches::default() });
    let message = failure(&out, &feeds(&[-1.0, 1.0]), &["sum"], &[]);
    assert!(message.contains("CheckNumerics failed for output 0 from cluster cluster_"), "{message}");
    assert!(message.contains(" : Tensor had NaN values"), "{message}");

    assert_eq!(messages.lock().expect("not poisoned").as_str(), "");
    let printing = session(Launches { prints_outputs: true, ..Launches::default() });
    close(&floats(&printing, &feeds(&[4.0, 9.0]), "sum"), &[4.0, 6.0]);
    let messages = messages.lock().expect("not poisoned").clone();
    assert!(
        messages.starts_with("output 0 from cluster_") && messages.ends_with(" is [4 6]\n"),
        "{messages:?}"
    );
}
