//! The result of clustering: one node per cluster, its function, and the order of its operands.

use crate::build::{Builder, Compiler, Listener, UNCOMPILABLE, XLA_CPU, options, run};
use cluster::{Clustered, Flags, JitLevel, Options, State, cluster};
use std::collections::BTreeSet;
use tf::DataType;
use tf::proto::attr_value::Value;
use tf::proto::{FunctionDef, GraphDef, NodeDef};

fn node<'g>(graph: &'g GraphDef, name: &str) -> &'g NodeDef {
    graph.node.iter().find(|n| n.name == name).unwrap_or_else(|| panic!("no node '{name}'"))
}

fn function<'g>(graph: &'g GraphDef, name: &str) -> &'g FunctionDef {
    let functions = &graph.library.as_ref().expect("a library").function;
    let function = functions.iter().find(|f| f.signature.as_ref().is_some_and(|s| s.name == name));
    function.unwrap_or_else(|| panic!("no function '{name}'"))
}

fn launches(clustered: &Clustered) -> Vec<&NodeDef> {
    clustered.graph.node.iter().filter(|n| n.op == "_XlaLaunch").collect()
}

fn types(node: &NodeDef, name: &str) -> Vec<DataType> {
    match node.attr[name].value.as_ref() {
        Some(Value::List(list)) => {
            list.r#type.iter().map(|&t| DataType::from_number(t).expect("a type")).collect()
        }
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn operands_are_constants_then_arguments_then_resources() {
    let mut graph = Builder::new();
    graph.variable("v");
    graph.placeholder("x");
    graph.placeholder("axes").ty("dtype", DataType::Int32);
    graph.node("read", "ReadVariableOp", &["v"]).ty("dtype", DataType::Float);
    graph.node("add", "AddV2", &["read", "x"]);
    graph.node("sum", "Sum", &["add", "axes"]).ty("Tidx", DataType::Int32);
    graph.node("write", "AssignVariableOp", &["v", "add"]).ty("dtype", DataType::Float);
    graph.node("late", UNCOMPILABLE, &["sum", "^write"]);
    let clustered = run(&graph, &options());
    let launch = launches(&clustered)[0];
    assert_eq!(launch.input, ["axes", "x", "v"]);
    assert_eq!(types(launch, "Tconstants"), [DataType::Int32]);
    assert_eq!(types(launch, "Targs"), [DataType::Float]);
    assert_eq!(launch.attr["Nresources"].value, Some(Value::I(1)));
    assert_eq!(types(launch, "Tresults"), [DataType::Float]);
    assert_eq!(launch.name, "cluster_0");
    let body = function(&clustered.graph, "cluster_0");
    let names: BTreeSet<&str> = body.node_def.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["add", "read", "sum", "write"]));
    let sum = body.node_def.iter().find(|n| n.name == "sum").expect("the node is in the body");
    let arguments: Vec<&str> =
        body.signature.as_ref().expect("one").input_arg.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(sum.input, ["add:z:0", arguments[0]]);
    // The launch provides both the value and the side effect now.
    assert_eq!(node(&clustered.graph, "late").input, ["cluster_0", "^cluster_0"]);
    assert!(body.control_ret.contains_key("write"), "{:?}", body.control_ret);
}

#[test]
fn required_constants_are_arguments_only_if_they_come_from_outside() {
    // The sizes are computed outside the cluster, regardless of their source.
    let mut graph = Builder::new();
    graph.placeholder("x");
    graph.placeholder("n").ty("dtype", DataType::Int32);
    graph.node("m", "AddV2", &["n", "n"]).ty("T", DataType::Int32);
    graph.node("reshape", "Reshape", &["x", "m"]);
    graph.node("tanh", "Tanh", &["reshape"]);
    graph.node("exp", "Exp", &["tanh"]);
    let clustered = run(&graph, &options());
    assert_eq!(clustered.report.clusters[0].nodes, ["reshape", "tanh", "exp"]);
    assert_eq!(launches(&clustered)[0].input, ["m", "x"]);
    assert_eq!(node(&clustered.graph, "m").op, "AddV2");
    // Sizes computed from the cluster's own values stay inside, where they are known.
    let mut inner = Builder::new();
    inner.placeholder("x");
    inner.node("tanh", "Tanh", &["x"]);
    inner.node("shape", "Shape", &["tanh"]);
    inner.node("double", "AddV2", &["shape", "shape"]).ty("T", DataType::Int32);
    inner.node("fill", "Reshape", &["tanh", "double"]);
    let clustered = run(&inner, &options());
    assert_eq!(clustered.report.clusters[0].nodes.len(), 4);
    assert_eq!(types(launches(&clustered)[0], "Tconstants"), []);
}

#[test]
fn the_shape_of_an_outside_value_is_read_outside() {
    let graph = |source: &str| {
        let mut graph = Builder::new();
        graph.placeholder("x");
        graph.node("tanh", "Tanh", &["x"]);
        graph.node("shape", "Shape", &[source]);
        graph.node("cast", "Cast", &["shape"]).ty("SrcT", DataType::Int32).ty("DstT", DataType::Float);
        graph.node("reshape", "AddV2", &["tanh", "cast"]);
        graph
    };
    let inside =
        |source: &str| run(&graph(source), &options()).report.clusters[0].nodes.contains(&"shape".to_owned());
    assert!(inside("tanh"));
    assert!(!inside("x"));
}

#[test]
fn a_fill_with_only_outside_users_stays_outside() {
    let graph = |user: &str| {
        let mut graph = Builder::new();
        graph.placeholder("sizes").ty("dtype", DataType::Int32);
        graph.placeholder("value");
        graph.node("x", "Tanh", &["value"]);
        graph.node("fill", "Fill", &["sizes", "x"]).ty("index_type", DataType::Int32);
        graph.node("y", "Exp", &["x"]);
        graph.node("user", user, &["fill"]);
        graph
    };
    let inside =
        |user: &str| run(&graph(user), &options()).report.clusters[0].nodes.contains(&"fill".to_owned());
    assert!(inside("Tanh"));
    assert!(!inside(UNCOMPILABLE));
}

#[test]
fn large_constants_with_outside_users_stay_outside() {
    let graph = |size: i64, user: &str| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.constant("c", DataType::Float, &[size]);
        graph.node("x", "Add", &["a", "c"]);
        graph.node("y", "Tanh", &["x"]);
        graph.node("user", user, &["c"]);
        graph
    };
    let inside =
        |size, user| run(&graph(size, user), &options()).report.clusters[0].nodes.contains(&"c".to_owned());
    assert!(inside(16385, "Relu"));
    assert!(inside(16384, UNCOMPILABLE));
    assert!(!inside(16385, UNCOMPILABLE));
}

#[test]
fn loops_and_conditionals_are_kept_below_the_minimum_size() {
    let graph = |op: &str| {
        let mut graph = Builder::new();
        graph.placeholder("c").ty("dtype", DataType::Bool);
        graph.placeholder("x");
        let node = graph.node("node", op, &["c", "x"]);
        let node = node
            .types("Tin", &[DataType::Float])
            .types("Tout", &[DataType::Float])
            .ty("Tcond", DataType::Bool);
        node.function("then_branch", "Same").function("else_branch", "Same");
        let mut body = Builder::new();
        body.node("y", "Relu", &["x"]);
        graph.function("Same", &["x"], &["out=y:activations:0"], body);
        graph
    };
    let flags = Flags { min_cluster_size: 4, ..options().flags };
    let clustered = run(&graph("StatelessIf"), &Options { flags: flags.clone(), ..options() });
    assert_eq!(clustered.report.clusters[0].nodes, ["node"]);
    // Nodes that are not control flow are not.
    let mut select = Builder::new();
    select.placeholder("x");
    select.node("node", "Relu", &["x"]);
    assert!(run(&select, &Options { flags, ..options() }).report.clusters.is_empty());
}

#[test]
fn fetches_and_targets_return_their_current_names() {
    let mut graph = Builder::new();
    graph.placeholder("x");
    graph.variable("v");
    graph.node("a", "Tanh", &["x"]);
    graph.node("b", "Exp", &["a"]);
    graph.node("train", "AssignVariableOp", &["v", "b"]).ty("dtype", DataType::Float);
    graph.node("out", UNCOMPILABLE, &["b"]);
    let mut options = options();
    options.fetches = ["x", "a:0", "out", "b"].map(str::to_owned).to_vec();
    options.targets = ["train", "out"].map(str::to_owned).to_vec();
    let clustered = run(&graph, &options);
    assert_eq!(clustered.targets, ["cluster_0", "out"]);
    assert_eq!(clustered.fetches[0], "x");
    assert_eq!(clustered.fetches[2], "out");
    let body = function(&clustered.graph, "cluster_0");
    let results = &body.signature.as_ref().expect("one").output_arg;
    for (fetch, expected) in [(1, "a:y:0"), (3, "b:y:0")] {
        let text = &clustered.fetches[fetch];
        let index: usize = text.split(':').nth(1).map_or(0, |i| i.parse().expect("a number"));
        assert!(text.starts_with("cluster_0"), "{text}");
        assert_eq!(body.ret[&results[index].name], expected);
    }
    // Without fetches, no outside node uses `a`.
    let mut without_fetches = crate::build::options();
    without_fetches.targets = vec!["train".to_owned()];
    let clustered = run(&graph, &without_fetches);
    assert_eq!(types(launches(&clustered)[0], "Tresults").len(), 1);
    let wrong = Options { fetches: vec!["nothing:0".to_owned()], ..crate::build::options() };
    let error = cluster(&graph.def, &wrong, &Compiler, &mut State::default(), &mut cluster::Silent)
        .expect_err("no such node");
    assert!(error.message().contains("'nothing'"), "{error}");
}

#[test]
fn fetched_nodes_keep_their_names_if_requested() {
    let mut graph = Builder::new();
    graph.placeholder("x");
    graph.variable("v");
    graph.node("a", "Tanh", &["x"]);
    graph.node("two", "Unpack", &["a"]).attr("num", Value::I(2));
    graph.node("train", "AssignVariableOp", &["v", "a"]).ty("dtype", DataType::Float);
    let mut options = options();
    options.fetches = ["x", "a", "two:1"].map(str::to_owned).to_vec();
    options.targets = vec!["train".to_owned()];
    options.keeps_names = true;
    let clustered = run(&graph, &options);
    assert_eq!(clustered.fetches, options.fetches);
    let op = |name: &str| node(&clustered.graph, name).op.clone();
    assert_eq!(
        (op("x"), op("a"), op("two"), op("train")),
        ("Placeholder".to_owned(), "Identity".to_owned(), "IdentityN".to_owned(), "NoOp".to_owned())
    );
    assert_eq!(node(&clustered.graph, "train").input, ["^cluster_0"]);
    let body = function(&clustered.graph, "cluster_0");
    let results = &body.signature.as_ref().expect("one").output_arg;
    let body_output = |input: &str| {
        let index: usize = input.split(':').nth(1).map_or(0, |i| i.parse().expect("a number"));
        body.ret[&results[index].name].clone()
    };
    assert_eq!(body_output(&node(&clustered.graph, "a").input[0]), "a:y:0");
    let two: Vec<String> =
        node(&clustered.graph, "two").input.iter().map(|input| body_output(input)).collect();
    assert_eq!(two, ["two:output:0", "two:output:1"]);
}

#[test]
fn unneeded_nodes_are_pruned_if_requested() {
    let mut graph = Builder::new();
    graph.placeholder("x");
    graph.variable("v");
    graph.constant("zero", DataType::Float, &[100]);
    graph.node("initialize", "AssignVariableOp", &["v", "zero"]).ty("dtype", DataType::Float);
    graph.node("a", "Add", &["x", "zero"]);
    graph.node("b", "Exp", &["a"]);
    graph.node("c", "Tanh", &["b"]);
    let with = |prunes: bool, feeds: &[&str]| {
        let mut options = Options { prunes, keeps_names: true, ..options() };
        options.fetches = vec!["c".to_owned()];
        options.feeds = feeds.iter().map(|&feed| feed.to_owned()).collect();
        run(&graph, &options)
    };
    assert!(with(false, &[]).report.clusters[0].nodes.contains(&"initialize".to_owned()));
    assert_eq!(with(true, &[]).report.clusters[0].nodes, ["zero", "a", "b", "c"]);
    // The inputs of a fed node are not needed.
    let fed = with(true, &["a:0"]);
    let names: Vec<&str> = fed.graph.node.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(node(&fed.graph, "a").op, "Placeholder");
    assert_eq!(fed.report.clusters[0].nodes, ["b", "c"]);
    assert!(!names.contains(&"x") && !names.contains(&"zero"), "{names:?}");
}

#[test]
fn cluster_names_are_numbered_across_the_graphs_of_a_session() {
    let mut graph = Builder::new();
    graph.placeholder("x");
    graph.node("a", "Tanh", &["x"]);
    graph.node("b", "Exp", &["a"]);
    let name = |state: &mut State, options: &Options| {
        let clustered = cluster(&graph.def, options, &Compiler, state, &mut cluster::Silent).expect("fine");
        clustered.report.clusters[0].name.clone()
    };
    let mut state = State::default();
    assert_eq!(name(&mut state, &options()), "cluster_0");
    assert_eq!(name(&mut state, &options()), "cluster_1");
    let prefixed = Options { name_prefix: "session".to_owned(), ..options() };
    assert_eq!(name(&mut state, &prefixed), "session_2");
    // Deterministic names include the graph's fingerprint. The number counts graphs with that
    // fingerprint.
    let flags = Flags { deterministic_cluster_names: true, ..options().flags };
    let deterministic = Options { flags, ..options() };
    let (one, two) = (name(&mut state, &deterministic), name(&mut state, &deterministic));
    let parts = |name: &str| name.split('_').map(str::to_owned).collect::<Vec<_>>();
    let (one, two) = (parts(&one), parts(&two));
    assert_eq!((one.len(), &one[..2], one[2].as_str(), two[2].as_str()), (3, &two[..2], "0", "1"));
    assert_eq!(parts(&name(&mut State::default(), &deterministic)), one);
    let mut other = Builder::new();
    other.placeholder("x");
    other.node("a", "Tanh", &["x"]);
    other.node("c", "Exp", &["a"]);
    let clustered =
        cluster(&other.def, &deterministic, &Compiler, &mut state, &mut cluster::Silent).expect("fine");
    assert_ne!(parts(&clustered.report.clusters[0].name)[1], one[1]);
}

#[test]
fn existing_names_are_not_reused() {
    let mut graph = Builder::new();
    graph.placeholder("cluster_0");
    graph.node("a", "Tanh", &["cluster_0"]);
    graph.node("b", "Exp", &["a"]);
    let clustered = run(&graph, &options());
    assert_eq!(launches(&clustered)[0].name, "cluster_0_1");
    assert_eq!(launches(&clustered)[0].input, ["cluster_0"]);
}

#[test]
fn a_function_that_must_be_compiled_becomes_one_launch() {
    let graph = |attribute: &str, op: &str| {
        let mut graph = Builder::new();
        graph.variable("v");
        graph.placeholder("n").ty("dtype", DataType::Int32);
        graph.placeholder("x");
        let call = graph.node("call", "StatefulPartitionedCall", &["v", "x", "n"]).function("f", "Step");
        let call = call.types("Tin", &[DataType::Resource, DataType::Float, DataType::Int32]);
        call.types("Tout", &[DataType::Float]).flag(attribute, true);
        let mut body = Builder::new();
        body.node("read", "ReadVariableOp", &["v"]).ty("dtype", DataType::Float);
        body.node("add", "AddV2", &["read:value:0", "x"]);
        body.node("shaped", op, &["add:z:0", "n"]);
        graph.function("Step", &["v:resource", "x", "n:int32"], &["out=shaped:output:0"], body);
        graph
    };
    // The JIT is off, but functions that must be compiled still are.
    let off = Options { level: JitLevel::Off, ..options() };
    let clustered = run(&graph("_XlaMustCompile", "Reshape"), &off);
    assert_eq!(clustered.report.must_compile, [("call".to_owned(), "Step".to_owned())]);
    let launch = node(&clustered.graph, "call");
    assert_eq!(launch.op, "XlaLaunch");
    assert_eq!(launch.input, ["n", "x", "v"]);
    assert_eq!(types(launch, "Tconstants"), [DataType::Int32]);
    let caller = function(&clustered.graph, "Step_xla");
    assert_eq!(caller.node_def[0].input, ["arg_0", "arg_1", "arg_2"]);
    let arguments: Vec<&str> =
        caller.signature.as_ref().expect("one").input_arg.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(arguments, ["arg_2", "arg_1", "arg_0"]);
    // Any other attribute has no effect.
    let clustered = run(&graph("_SomethingElse", "Reshape"), &off);
    assert_eq!(node(&clustered.graph, "call").op, "StatefulPartitionedCall");
}

#[test]
fn bodies_of_functions_outside_clusters_are_clustered_in_a_copy() {
    let graph = || {
        let mut graph = Builder::new();
        graph.placeholder("x");
        graph.node("call", "Partly", &["x"]);
        let mut body = Builder::new();
        body.node("a", "Tanh", &["x"]);
        body.node("b", "Exp", &["a:y:0"]);
        body.node("c", UNCOMPILABLE, &["b:y:0"]);
        graph.function("Partly", &["x"], &["out=c:y:0"], body);
        graph
    };
    let clustered = run(&graph(), &options());
    assert_eq!(node(&clustered.graph, "call").op, "Partly__clustered");
    let copy = function(&clustered.graph, "Partly__clustered");
    let ops: Vec<&str> = copy.node_def.iter().map(|n| n.op.as_str()).collect();
    assert_eq!(ops, [UNCOMPILABLE, "_XlaLaunch"]);
    assert_eq!(clustered.report.clusters[0].function, "Partly");
    // The function itself is unchanged.
    assert_eq!(function(&clustered.graph, "Partly"), function(&graph().def, "Partly"));
    let only_main = Options { cluster_functions: false, ..options() };
    assert_eq!(node(&run(&graph(), &only_main).graph, "call").op, "Partly");
}

#[test]
fn a_loop_outside_clusters_runs_a_clustered_body() {
    let mut graph = Builder::new();
    graph.placeholder("x");
    let while_node = graph.node("loop", "While", &["x"]).types("T", &[DataType::Float]);
    while_node.function("cond", "More").function("body", "Step");
    let mut body = Builder::new();
    body.constant("limit", DataType::Float, &[]);
    body.node("less", "Less", &["x", "limit:output:0"]);
    graph.function("More", &["x"], &["out:bool=less:z:0"], body);
    let mut body = Builder::new();
    body.node("print", UNCOMPILABLE, &["x"]);
    body.node("a", "Tanh", &["print:y:0"]);
    body.node("b", "Exp", &["a:y:0"]);
    graph.function("Step", &["x"], &["out=b:y:0"], body);
    let clustered = run(&graph, &options());
    let called = |name: &str| match &node(&clustered.graph, "loop").attr[name].value {
        Some(Value::Func(func)) => func.name.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((called("cond").as_str(), called("body").as_str()), ("More", "Step__clustered"));
}

#[test]
fn nodes_of_one_xla_compile_call_are_one_launch() {
    let graph = |id: &str| {
        let mut graph = Builder::new();
        graph.placeholder("x");
        graph.node("a", "Tanh", &["x"]).text("_xla_compile_id", id);
        graph.node("b", UNCOMPILABLE, &["a"]).text("_xla_compile_id", id);
        graph.node("out", "XlaClusterOutput", &["b"]);
        graph.node("user", UNCOMPILABLE, &["out"]);
        graph
    };
    let off = Options { level: JitLevel::Off, ..options() };
    let clustered = run(&graph("region"), &off);
    assert_eq!(node(&clustered.graph, "region").op, "_XlaLaunch");
    assert_eq!(node(&clustered.graph, "user").input, ["region"]);
    let clustered = run(&graph(""), &off);
    assert_eq!(node(&clustered.graph, "user").input, ["b"]);
}

#[test]
fn graphs_are_reported_under_tensorflows_names_if_requested() {
    let mut graph = Builder::new();
    graph.variable("v");
    graph.placeholder("x");
    graph.node("a", "Tanh", &["x"]);
    graph.node("b", "Exp", &["a"]);
    graph.node("w", "AssignVariableOp", &["v", "b"]).ty("dtype", DataType::Float);
    let reported_graphs = |clustering_debug: bool| {
        let flags = Flags { clustering_debug, ..options().flags };
        let mut listener = Listener::default();
        let options = Options { flags, ..options() };
        cluster(&graph.def, &options, &Compiler, &mut State::default(), &mut listener).expect("fine");
        listener.graphs
    };
    assert!(reported_graphs(false).is_empty());
    let graphs = reported_graphs(true);
    let names: Vec<&str> = graphs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "before_mark_for_compilation",
            "mark_for_compilation",
            "mark_for_compilation_annotated",
            "before_increase_dynamism_for_auto_jit_pass"
        ]
    );
    let annotated: BTreeSet<&str> = graphs[2].1.node.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(
        annotated,
        BTreeSet::from(["cluster_0/a", "cluster_0/b", "cluster_0/w", "unclustered/x", "varhandle/v"])
    );
    let inputs = |graph: &GraphDef, name: &str| node(graph, name).input.clone();
    assert_eq!(inputs(&graphs[2].1, "cluster_0/w"), ["varhandle/v", "cluster_0/b"]);
    assert!(!graphs[0].1.node.iter().any(|n| n.attr.contains_key("_XlaCluster")));
    assert_eq!(node(&graphs[1].1, "a").attr["_XlaCluster"].value, Some(Value::S("cluster_0".into())));
}

#[test]
fn everything_on_a_device_that_must_compile_is_clustered_without_a_level() {
    let graph = |device: &str| {
        let mut graph = Builder::new();
        graph.placeholder("x");
        graph.node("a", "Tanh", &["x"]).device(device);
        graph.node("b", "Exp", &["a"]).device(device);
        graph
    };
    let off = Options { level: JitLevel::Off, ..options() };
    let clustered = run(&graph(XLA_CPU), &off);
    assert_eq!(clustered.report.clusters.len(), 1);
    assert_eq!(launches(&clustered)[0].device, XLA_CPU);
    assert!(run(&graph(crate::build::CPU), &off).report.clusters.is_empty());
}

#[test]
fn the_report_summarizes_the_clusters() {
    let mut graph = Builder::new();
    graph.placeholder("x");
    graph.node("a", "Tanh", &["x"]);
    graph.node("b", "Exp", &["a"]);
    let report = run(&graph, &options()).report;
    assert_eq!(report.unclustered.get("Placeholder"), Some(&1));
    assert_eq!(
        report.summary(),
        format!(
            "1 clusters with 2 nodes; 1 nodes outside\n  cluster_0: 2 nodes, effective size 2, on {}\n  outside: 1 Placeholder\n",
            crate::build::CPU
        )
    );
}
