//! Variables, random numbers, checkpoints, printed text: what lives longer than a node's execution.

mod graph;

use graph::{F, Graph, I, failure, float, floats, shape, strings, text, ty, types};
use session::{Options, Session};
use shape::Literal;
use std::sync::{Arc, Mutex};
use tf::DataType;
use tf::proto::attr_value::Value as Attr;

fn vector(values: &[f32]) -> Literal {
    Literal::from_elements(&[values.len() as i64], values)
}

/// A variable of both kinds with initialiser, gradient descent and a reader.
fn training(is_resource: bool) -> Session {
    let mut g = Graph::default();
    g.constant("start", vector(&[1.0, 2.0])).placeholder("gradient", F).placeholder("rate", F);
    let attributes = [("dtype", ty(F)), ("shape", shape(&[2]))];
    if is_resource {
        g.add("w", "VarHandleOp", &[], &attributes);
        g.add("init", "AssignVariableOp", &["w", "start"], &[("dtype", ty(F))]);
        g.add("read", "ReadVariableOp", &["w"], &[("dtype", ty(F))]);
        g.add("train", "ResourceApplyGradientDescent", &["w", "rate", "gradient"], &[("T", ty(F))]);
        g.add("after", "ReadVariableOp", &["w", "^train"], &[("dtype", ty(F))]);
        g.add("known", "VarIsInitializedOp", &["w"], &[]);
    } else {
        g.add("w", "VariableV2", &[], &attributes);
        g.add("init", "Assign", &["w", "start"], &[("T", ty(F))]);
        g.add("read", "Identity", &["w"], &[("T", ty(F))]);
        g.add("train", "ApplyGradientDescent", &["w", "rate", "gradient"], &[("T", ty(F))]);
        g.add("after", "Identity", &["train"], &[("T", ty(F))]);
        g.add("known", "IsVariableInitialized", &["w"], &[("dtype", ty(F))]);
    }
    // What was read before an update stays what it was.
    g.add("old", "Identity", &["read", "^train"], &[("T", ty(F))]);
    g.session()
}

#[test]
fn initialisers_run_in_the_order_they_need_and_say_what_is_wrong() {
    let variable = |g: &mut Graph, name: &str| {
        g.add(
            name,
            "VarHandleOp",
            &[],
            &[("dtype", ty(F)), ("shape", shape(&[2])), ("shared_name", text(name))],
        );
        g.add(&format!("{name}/Read"), "ReadVariableOp", &[name], &[("dtype", ty(F))]);
    };
    // The first one starts where the second one is.
    let mut g = Graph::default();
    variable(&mut g, "first");
    variable(&mut g, "second");
    g.constant("start", vector(&[1.0, 2.0]));
    g.add("first/Assign", "AssignVariableOp", &["first", "second/Read"], &[("dtype", ty(F))]);
    g.add("second/Assign", "AssignVariableOp", &["second", "start"], &[("dtype", ty(F))]);
    variable(&mut g, "third");
    let session = g.session();
    assert_eq!(session.initialize().expect("both"), ["third"], "nothing assigns to it");
    assert_eq!(floats(&session, &[], "first/Read"), [1.0, 2.0]);

    let mut g = Graph::default();
    variable(&mut g, "w");
    g.add("queue", "FIFOQueueV2", &[], &[]);
    g.add("taken", "QueueDequeueV2", &["queue"], &[("component_types", types(&[F]))]);
    g.add("w/Assign", "AssignVariableOp", &["w", "taken"], &[("dtype", ty(F))]);
    let message = g.session().initialize().expect_err("queues are refused").to_string();
    assert!(message.contains("variable 'w' cannot be initialised") && message.contains("queue"), "{message}");
}

#[test]
fn variables_are_updated_in_place_and_kept() {
    for is_resource in [true, false] {
        let session = training(is_resource);
        let message = failure(&session, &[], &["read"], &[]);
        assert!(message.contains("uninitialized value w"), "{message}");
        let known = |session: &Session| session.run(&[], &["known"], &[]).expect("asked")[0].clone();
        assert_eq!(known(&session), Literal::scalar(false));
        session.run(&[], &[], &["init"]).expect("initialised");
        assert_eq!(known(&session), Literal::scalar(true));
        let feeds = |rate: f32| [("gradient", vector(&[1.0, -2.0])), ("rate", Literal::scalar(rate))];
        assert_eq!(floats(&session, &feeds(0.5), "after"), [0.5, 3.0]);
        assert_eq!(floats(&session, &feeds(0.25), "after"), [0.25, 3.5]);
        assert_eq!(floats(&session, &[], "read"), [0.25, 3.5]);
        // The rate is no part of any key: one kernel updates.
        assert_eq!(session.compiled_kernels(), 1);
        session.set_variable("w", &vector(&[7.0, 8.0])).expect("set");
        let results = session.run(&feeds(1.0), &["read", "after"], &[]).expect("run");
        assert_eq!(results[1].to_vec::<f32>(), Some(vec![6.0, 10.0]));
        assert!(session.set_variable("w", &Literal::scalar(1f32)).is_err());
        assert!(session.set_variable("v", &Literal::scalar(1f32)).is_err());
    }
}

#[test]
fn rows_of_variables_are_updated_and_gathered() {
    let mut g = Graph::default();
    let matrix = Literal::from_elements(&[3, 2], &[0f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
    g.constant("start", matrix).placeholder("rows", I).placeholder("updates", F);
    g.add("w", "VarHandleOp", &[], &[("dtype", ty(F)), ("shape", shape(&[3, 2]))]);
    g.add("init", "AssignVariableOp", &["w", "start"], &[("dtype", ty(F))]);
    let both = [("dtype", ty(F)), ("Tindices", ty(I))];
    g.add("add", "ResourceScatterAdd", &["w", "rows", "updates"], &both);
    g.add("gather", "ResourceGather", &["w", "rows", "^add"], &both);
    let session = g.session();
    session.run(&[], &[], &["init"]).expect("initialised");
    let feeds = [
        ("rows", Literal::from_elements(&[2], &[2i32, 0])),
        ("updates", Literal::from_elements(&[2, 2], &[10f32, 20.0, 30.0, 40.0])),
    ];
    assert_eq!(floats(&session, &feeds, "gather"), [14.0, 25.0, 30.0, 41.0]);
}

#[test]
fn control_inputs_order_what_has_effects() {
    let mut g = Graph::default();
    g.float("one", 1.0).float("ten", 10.0);
    g.add("w", "VariableV2", &[], &[("dtype", ty(F)), ("shape", shape(&[]))]);
    g.add("a", "Assign", &["w", "one"], &[("T", ty(F))]);
    g.add("b", "AssignAdd", &["w", "ten", "^a"], &[("T", ty(F))]);
    g.add("c", "AssignSub", &["w", "one", "^b"], &[("T", ty(F))]);
    g.add("read", "Identity", &["w", "^c"], &[("T", ty(F))]);
    for threads in [1, 2, 3] {
        let session = g.session_with(Options { inter_op_threads: threads, ..Options::default() });
        for _ in 0..20 {
            assert_eq!(float(&session, &[], "read"), 10.0);
        }
    }
}

#[test]
fn random_numbers_are_those_of_tensorflow() {
    // tf.compat.v1, two runs of one session: random_uniform([5], seed=7), random_normal([3], seed=7),
    // truncated_normal([3], seed=7), random_uniform([4], 0, 100, tf.int32, seed=7) with graph seed 3.
    let mut g = Graph::default();
    g.ints("five", &[5]).ints("three", &[3]).ints("four", &[4]).int("low", 0).int("high", 100);
    let seeds = [("seed", Attr::I(3)), ("seed2", Attr::I(7)), ("T", ty(I))];
    let with = |more: (&'static str, Attr)| [seeds.to_vec(), vec![more]].concat();
    g.add("uniform", "RandomUniform", &["five"], &with(("dtype", ty(F))));
    g.add("normal", "RandomStandardNormal", &["three"], &with(("dtype", ty(F))));
    g.add("truncated", "TruncatedNormal", &["three"], &with(("dtype", ty(F))));
    g.add("int", "RandomUniformInt", &["four", "low", "high"], &with(("Tout", ty(I))));
    let session = g.session();
    for (uniform, normal, truncated, int) in RANDOM {
        assert_eq!(floats(&session, &[], "uniform"), uniform);
        assert_eq!(floats(&session, &[], "normal"), normal);
        assert_eq!(floats(&session, &[], "truncated"), truncated);
        assert_eq!(graph::ints(&session, &[], "int"), int);
    }
}

type Draw = ([f32; 5], [f32; 3], [f32; 3], [i32; 4]);

const RANDOM: [Draw; 2] = [
    (
        [0.7300215, 0.5961578, 0.37875235, 0.038805723, 0.7283852],
        [-0.45067555, -0.6528815, 0.3364032],
        [-0.45067555, -0.6528815, 0.3364032],
        [76, 86, 53, 30],
    ),
    (
        [0.018206239, 0.14788377, 0.061796904, 0.5092071, 0.5942911],
        [0.037331026, -0.10240118, -1.0685563],
        [0.037331026, -0.10240118, -1.0685563],
        [31, 54, 14, 4],
    ),
];

#[test]
fn checkpoints_are_written_and_read_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let prefix = directory.path().join("model").display().to_string();
    let mut g = Graph::default();
    g.string("prefix", &prefix).constant("start", vector(&[1.5, 2.5])).constant("zero", vector(&[0.0, 0.0]));
    g.def.node.push(strings("names", &[2], &["w", "step"]));
    g.def.node.push(strings("slices", &[2], &["", ""]));
    g.add("w", "VariableV2", &[], &[("dtype", ty(F)), ("shape", shape(&[2]))]);
    g.constant("step", Literal::scalar(41i64));
    g.add("init", "Assign", &["w", "start"], &[("T", ty(F))]);
    g.add("clear", "Assign", &["w", "zero"], &[("T", ty(F))]);
    let both = [("dtypes", types(&[F, DataType::Int64]))];
    g.add("save", "SaveV2", &["prefix", "names", "slices", "w", "step"], &both);
    g.add("restore", "RestoreV2", &["prefix", "names", "slices"], &both);
    g.add("back", "Assign", &["w", "restore"], &[("T", ty(F))]);
    let session = g.session();
    let message = failure(&session, &[], &["restore:1"], &[]);
    assert!(message.contains("restore"), "{message}");
    session.run(&[], &[], &["init"]).expect("initialised");
    session.run(&[], &[], &["save"]).expect("saved");
    session.run(&[], &[], &["clear"]).expect("cleared");
    session.run(&[], &[], &["back"]).expect("restored");
    assert_eq!(session.variable_value("w").expect("known"), Some(vector(&[1.5, 2.5])));
    let results = session.run(&[], &["restore:1"], &[]).expect("read");
    assert_eq!(results[0], Literal::scalar(41i64));
}

#[test]
fn text_is_printed_and_assertions_fail_with_their_data() {
    let printed = Arc::new(Mutex::new(String::new()));
    let kept = printed.clone();
    let output = Arc::new(move |text: &str| kept.lock().expect("whole").push_str(text));
    let mut g = Graph::default();
    g.placeholder("x", F).placeholder("ok", DataType::Bool).string("why", "x is wrong:");
    let data = [("T", ty(F)), ("U", types(&[F])), ("message", text("x = ")), ("first_n", Attr::I(2))];
    g.add("print", "Print", &["x", "x"], &data);
    let template = [("T", types(&[F])), ("template", text("<{}>")), ("placeholder", text("{}"))];
    g.add("format", "StringFormat", &["x"], &template).add("printv2", "PrintV2", &["format"], &[]);
    g.add("assert", "Assert", &["ok", "why", "x"], &[("T", types(&[DataType::String, F]))]);
    let session = g.session_with(Options { output, ..Options::default() });
    let x = ("x", vector(&[1.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0]));
    for _ in 0..3 {
        session.run(std::slice::from_ref(&x), &["print"], &[]).expect("printed");
    }
    session.run(std::slice::from_ref(&x), &[], &["printv2"]).expect("printed");
    let expected = "x = [1 2.5 3...]\nx = [1 2.5 3...]\n<[1 2.5 3 ... 5 6 7]>\n";
    assert_eq!(*printed.lock().expect("whole"), expected);
    let feeds = |ok: bool| [x.clone(), ("ok", Literal::scalar(ok))];
    session.run(&feeds(true), &[], &["assert"]).expect("it holds");
    let message = failure(&session, &feeds(false), &[], &["assert"]);
    assert!(message.contains("assertion failed: [x is wrong:] [1 2.5 3...]"), "{message}");
    assert!(message.contains("'assert'"), "{message}");
}
