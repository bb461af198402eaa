//! State that outlives a node's execution: variables, random numbers, checkpoints, and printed
//! text.

use crate::graph::{F, Graph, I, failure, float, floats, shape, strings, text, ty, types};
use session::{Options, Session, Value};
use shape::Literal;
use std::sync::{Arc, Mutex};
use tf::DataType;
use tf::proto::attr_value::Value as Attr;

fn vector(values: &[f32]) -> Literal {
    Literal::from_elements(&[values.len() as i64], values)
}

/// A session with a variable of the given kind, its initializer, gradient descent, and reads.
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
    // A value read before an update must not change.
    g.add("old", "Identity", &["read", "^train"], &[("T", ty(F))]);
    g.session()
}

#[test]
fn initializers_run_in_order_of_dependency_and_report_errors() {
    let variable = |g: &mut Graph, name: &str| {
        g.add(
            name,
            "VarHandleOp",
            &[],
            &[("dtype", ty(F)), ("shape", shape(&[2])), ("shared_name", text(name))],
        );
        g.add(&format!("{name}/Read"), "ReadVariableOp", &[name], &[("dtype", ty(F))]);
    };
    // The first variable is initialized from the second one.
    let mut g = Graph::default();
    variable(&mut g, "first");
    variable(&mut g, "second");
    g.constant("start", vector(&[1.0, 2.0]));
    g.add("first/Assign", "AssignVariableOp", &["first", "second/Read"], &[("dtype", ty(F))]);
    g.add("second/Assign", "AssignVariableOp", &["second", "start"], &[("dtype", ty(F))]);
    variable(&mut g, "third");
    let session = g.session();
    assert_eq!(session.initialize().expect("both"), ["third"], "the variable has no assignment");
    assert_eq!(floats(&session, &[], "first/Read"), [1.0, 2.0]);

    let mut g = Graph::default();
    variable(&mut g, "w");
    g.add("queue", "FIFOQueueV2", &[], &[]);
    g.add("taken", "QueueDequeueV2", &["queue"], &[("component_types", types(&[F]))]);
    g.add("w/Assign", "AssignVariableOp", &["w", "taken"], &[("dtype", ty(F))]);
    let message = g.session().initialize().expect_err("queues are unsupported").to_string();
    assert!(message.contains("cannot initialize variable 'w'") && message.contains("queue"), "{message}");
}

#[test]
fn variables_are_updated_in_place_and_persist() {
    for is_resource in [true, false] {
        let session = training(is_resource);
        let message = failure(&session, &[], &["read"], &[]);
        assert!(message.contains("uninitialized value w"), "{message}");
        let known = |session: &Session| session.run(&[], &["known"], &[]).expect("run")[0].clone();
        assert_eq!(known(&session), Literal::scalar(false));
        session.run(&[], &[], &["init"]).expect("initialized");
        assert_eq!(known(&session), Literal::scalar(true));
        let feeds = |rate: f32| [("gradient", vector(&[1.0, -2.0])), ("rate", Literal::scalar(rate))];
        assert_eq!(floats(&session, &feeds(0.5), "after"), [0.5, 3.0]);
        assert_eq!(floats(&session, &feeds(0.25), "after"), [0.25, 3.5]);
        assert_eq!(floats(&session, &[], "read"), [0.25, 3.5]);
        // The rate is not part of the key, so one kernel serves all updates.
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
    session.run(&[], &[], &["init"]).expect("initialized");
    let feeds = [
        ("rows", Literal::from_elements(&[2], &[2i32, 0])),
        ("updates", Literal::from_elements(&[2, 2], &[10f32, 20.0, 30.0, 40.0])),
    ];
    assert_eq!(floats(&session, &feeds, "gather"), [14.0, 25.0, 30.0, 41.0]);
}

#[test]
fn control_inputs_order_side_effects() {
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
fn random_numbers_match_tensorflow() {
    // tf.compat.v1, two runs of one session: random_uniform([5], seed=7), random_normal([3],
    // seed=7), truncated_normal([3], seed=7), random_uniform([4], 0, 100, tf.int32, seed=7) with
    // graph seed 3.
    let mut g = Graph::default();
    g.ints("five", &[5]).ints("three", &[3]).ints("four", &[4]).int("low", 0).int("high", 100);
    let seeds = [("seed", Attr::I(3)), ("seed2", Attr::I(7)), ("T", ty(I))];
    let with = |more: (&'static str, Attr)| [seeds.to_vec(), vec![more]].concat();
    g.add("uniform", "RandomUniform", &["five"], &with(("dtype", ty(F))));
    g.add("normal", "RandomStandardNormal", &["three"], &with(("dtype", ty(F))));
    g.add("truncated", "TruncatedNormal", &["three"], &with(("dtype", ty(F))));
    g.add("int", "RandomUniformInt", &["four", "low", "high"], &with(("Tout", ty(I))));
    for device in ["/device:CPU:0", "/device:XLA_CPU:0"] {
        let flags = cluster::Flags { min_cluster_size: 1, ..cluster::Flags::default() };
        let options = cluster::Options::new(cluster::JitLevel::On2, flags);
        let session = g.session_with(Options {
            rewrite: Some(session::clusters(options, Box::new(cluster::Silent))),
            default_device: Some(device.to_owned()),
            ..Options::default()
        });
        for (uniform, normal, truncated, int) in RANDOM {
            assert_eq!(floats(&session, &[], "uniform"), uniform, "{device}");
            assert_eq!(floats(&session, &[], "normal"), normal, "{device}");
            assert_eq!(floats(&session, &[], "truncated"), truncated, "{device}");
            assert_eq!(crate::graph::ints(&session, &[], "int"), int, "{device}");
        }
    }
}

#[test]
fn host_random_ops_match_tensorflow() {
    // tf.compat.v1, two runs of one session, graph seed 3 and seed=7: random_shuffle(range(10,
    // 17)), random_shuffle(reshape(range(10.), [5, 2])), multinomial([[0, 1, 2], [3, 0, -1]], 6),
    // random_gamma([3], [0.5, 1, 4]), random_poisson([1.5, 30], [4]), and random_poisson of int32.
    let mut g = Graph::default();
    let iota: Vec<f32> = (0..10u8).map(f32::from).collect();
    g.ints("seven", &[10, 11, 12, 13, 14, 15, 16]).ints("three", &[3]).ints("four", &[4]).int("six", 6);
    g.constant("matrix", Literal::from_elements(&[5, 2], &iota)).constant("alpha", vector(&[0.5, 1.0, 4.0]));
    g.constant("logits", Literal::from_elements(&[2, 3], &[0f32, 1.0, 2.0, 3.0, 0.0, -1.0]));
    g.constant("rate", vector(&[1.5, 30.0]));
    g.def.node.push(strings("words", &[7], &["10", "11", "12", "13", "14", "15", "16"]));
    let with =
        |more: &[(&'static str, Attr)]| [&[("seed", Attr::I(3)), ("seed2", Attr::I(7))], more].concat();
    g.add("shuffle", "RandomShuffle", &["seven"], &with(&[("T", ty(I))]));
    g.add("rows", "RandomShuffle", &["matrix"], &with(&[("T", ty(F))]));
    g.add("texts", "RandomShuffle", &["words"], &with(&[("T", ty(DataType::String))]));
    g.add("classes", "Multinomial", &["logits", "six"], &with(&[("T", ty(F)), ("output_dtype", ty(I))]));
    g.add("gamma", "RandomGamma", &["three", "alpha"], &with(&[("T", ty(F)), ("S", ty(I))]));
    let poisson = |of| with(&[("R", ty(F)), ("S", ty(I)), ("dtype", ty(of))]);
    g.add("poisson", "RandomPoissonV2", &["four", "rate"], &poisson(F));
    g.add("counts", "RandomPoissonV2", &["four", "rate"], &poisson(I));
    let session = g.session();
    for run in &HOST_DRAWS {
        assert_eq!(crate::graph::ints(&session, &[], "shuffle"), run.shuffle);
        let texts = session.run_values(&[], &["texts"], &[]).expect("run");
        let Value::Strings(texts) = &texts[0] else { panic!("{texts:?}") };
        let words: Vec<String> = run.shuffle.iter().map(i32::to_string).collect();
        assert_eq!(texts.strings, words);
        let rows: Vec<f32> = floats(&session, &[], "rows").chunks(2).map(|row| row[0]).collect();
        assert_eq!(rows, run.rows);
        assert_eq!(crate::graph::ints(&session, &[], "classes"), run.classes);
        let gamma = floats(&session, &[], "gamma");
        assert_eq!(gamma.len(), run.gamma.len());
        for (got, want) in gamma.iter().zip(run.gamma) {
            assert!((got - want).abs() <= 1e-6 * want, "expected {want}, got {got}");
        }
        assert_eq!(crate::graph::ints(&session, &[], "counts"), run.poisson);
        let poisson: Vec<f32> = run.poisson.iter().map(|&count| count as f32).collect();
        assert_eq!(floats(&session, &[], "poisson"), poisson);
    }
    // None of these ops is compiled.
    assert_eq!(session.compiled_kernels(), 0);
}

/// Numbers that the host's random ops draw in one run.
struct HostDraws {
    shuffle: [i32; 7],
    rows: [f32; 5],
    classes: [i32; 12],
    gamma: [f32; 9],
    poisson: [i32; 8],
}

const HOST_DRAWS: [HostDraws; 2] = [
    HostDraws {
        shuffle: [14, 15, 11, 12, 13, 16, 10],
        rows: [2.0, 6.0, 4.0, 0.0, 8.0],
        classes: [2, 0, 2, 2, 2, 1, 0, 0, 0, 0, 1, 0],
        gamma: [
            1.307_596_4,
            0.646_829_3,
            3.561_968_6,
            0.021_732_08,
            0.407_780_7,
            4.246_424_7,
            0.235_231_43,
            0.681_960_7,
            9.159_015,
        ],
        poisson: [0, 27, 0, 30, 1, 26, 3, 36],
    },
    HostDraws {
        shuffle: [13, 11, 15, 14, 12, 16, 10],
        rows: [8.0, 0.0, 4.0, 6.0, 2.0],
        classes: [2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0],
        gamma: [
            0.044_732_574,
            0.637_752,
            6.384_438,
            0.184_565_53,
            0.616_768,
            2.348_399,
            0.237_349_38,
            0.002_862_623_2,
            1.430_540_7,
        ],
        poisson: [0, 29, 2, 29, 3, 33, 1, 37],
    },
];

#[test]
fn random_ops_without_seeds_differ_by_node_and_session() {
    let mut g = Graph::default();
    let iota: Vec<i32> = (0..40).collect();
    g.ints("x", &iota).add("a", "RandomShuffle", &["x"], &[("T", ty(I))]);
    g.add("b", "RandomShuffle", &["x"], &[("T", ty(I))]);
    let draw = |seed, node: &str| {
        crate::graph::ints(&g.session_with(Options { seed, ..Options::default() }), &[], node)
    };
    let first = draw(1, "a");
    assert_eq!(first, draw(1, "a"), "the same session again");
    assert!(first != draw(1, "b") && first != draw(2, "a"));
    let mut sorted = first;
    sorted.sort_unstable();
    assert_eq!(sorted, iota);
    // A rate for which no number is ever accepted causes an error that names the node.
    let mut g = Graph::default();
    g.ints("one", &[1]).constant("rate", vector(&[f32::NAN]));
    g.add("p", "RandomPoisson", &["one", "rate"], &[("S", ty(I)), ("dtype", ty(F))]);
    let message = failure(&g.session(), &[], &["p"], &[]);
    assert!(
        message.contains("'p'") && message.contains("no number was accepted for the rate NaN"),
        "{message}"
    );
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
fn text_is_printed_and_assertions_fail_with_their_data() {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let output = Arc::new(move |text: &str| sink.lock().expect("whole").push_str(text));
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
    session.run(&feeds(true), &[], &["assert"]).expect("the assertion holds");
    let message = failure(&session, &feeds(false), &[], &["assert"]);
    assert!(message.contains("assertion failed: [x is wrong:] [1 2.5 3...]"), "{message}");
    assert!(message.contains("'assert'"), "{message}");
}
