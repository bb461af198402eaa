//! Candidate rules one by one, each with a graph where it applies and one where it does not. The
//! graphs and results are those of TensorFlow's tests where they exist.

use crate::build::{
    Builder, Compiler, Listener, UNCOMPILABLE, XLA_CPU, XLA_GPU0, cluster_of, names, options, run, sets, why,
};
use cluster::{AutoJit, Flags, JitLevel, Options, Silent, State, cluster};
use tf::DataType;
use tf::proto::attr_value::Value;
use tf::proto::{AttrValue, ListValue};

/// `placeholder -> B -> C -> D (uncompilable) -> E -> F`.
fn chain() -> Builder {
    let mut graph = Builder::new();
    graph.placeholder("A");
    graph.node("B", "Relu", &["A"]);
    graph.node("C", "Relu", &["B"]);
    graph.node("D", UNCOMPILABLE, &["C"]);
    graph.node("E", "Relu", &["D"]);
    graph.node("F", "Relu", &["E"]);
    graph
}

#[test]
fn uncompilable_nodes_separate_clusters() {
    assert_eq!(sets(&chain(), &options()), names(&[&["B", "C"], &["E", "F"]]));
    let clustered = run(&chain(), &options());
    assert_eq!(why(&clustered, "D"), format!("the compiler does not support {UNCOMPILABLE}"));
}

#[test]
fn the_level_decides() {
    let at = |level: JitLevel, auto_jit: AutoJit| {
        let flags = Flags { auto_jit, ..options().flags };
        sets(&chain(), &Options { level, flags, ..options() }).len()
    };
    let unset = AutoJit::default();
    assert_eq!(at(JitLevel::Off, unset), 0);
    assert_eq!(at(JitLevel::Default, unset), 0);
    assert_eq!(at(JitLevel::On1, unset), 2);
    assert_eq!(at(JitLevel::On2, unset), 2);
    // The flag overrides the session's level unless it is 0.
    assert_eq!(at(JitLevel::Off, AutoJit { single_gpu: 2, general: 2 }), 2);
    assert_eq!(at(JitLevel::On2, AutoJit { single_gpu: -1, general: -1 }), 0);
    // No node is on a GPU.
    assert_eq!(at(JitLevel::Default, AutoJit { single_gpu: 2, general: 0 }), 0);
}

#[test]
fn single_gpu_is_a_graph_with_nodes_on_exactly_one() {
    let flags = Flags { auto_jit: AutoJit { single_gpu: 2, general: 0 }, ..options().flags };
    let options = Options { level: JitLevel::Default, flags, ..options() };
    let mut graph = chain();
    for node in ["B", "C", "D", "E", "F"] {
        graph.place(node, crate::build::GPU0);
    }
    assert_eq!(sets(&graph, &options).len(), 2);
    graph.place("F", crate::build::GPU1);
    assert_eq!(sets(&graph, &options).len(), 0);
}

#[test]
fn cpus_are_excluded_by_default_with_a_single_warning() {
    let flags = Flags { cpu_global_jit: false, ..options().flags };
    let mut options = Options::new(JitLevel::On1, flags);
    options.flags.min_cluster_size = 2;
    let mut state = State::default();
    let mut listener = Listener::default();
    for _ in 0..2 {
        let clustered =
            cluster(&chain().def, &options, &Compiler, &mut state, &mut listener).expect("well-formed");
        assert!(clustered.report.clusters.is_empty());
    }
    assert_eq!(listener.warnings.len(), 1);
    assert!(listener.warnings[0].contains("--tf_xla_cpu_global_jit"));
    // The session's own option has the same effect as the flag.
    options.cpu_global_jit = true;
    let clustered =
        cluster(&chain().def, &options, &Compiler, &mut state, &mut listener).expect("well-formed");
    assert_eq!(clustered.report.clusters.len(), 2);
    let mut silent = Listener::default();
    let off = Options { level: JitLevel::Off, cpu_global_jit: false, ..options };
    cluster(&chain().def, &off, &Compiler, &mut State::default(), &mut silent).expect("well-formed");
    assert!(silent.warnings.is_empty(), "no clusters were requested");
}

#[test]
fn clusters_have_a_minimum_and_a_maximum_size() {
    let sized = |min_cluster_size, max_cluster_size| {
        let flags = Flags { min_cluster_size, max_cluster_size, ..options().flags };
        let mut graph = Builder::new();
        graph.placeholder("A");
        for i in 0..6 {
            let input = if i == 0 { "A".to_owned() } else { format!("n{}", i - 1) };
            graph.node(&format!("n{i}"), "Relu", &[&input]);
        }
        let mut sizes: Vec<usize> =
            sets(&graph, &Options { flags, ..options() }).iter().map(|set| set.len()).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sized(6, i32::MAX), [6]);
    assert_eq!(sized(7, i32::MAX), [0usize; 0]);
    assert_eq!(sized(1, 3), [3, 3]);
    assert_eq!(sized(1, 4), [2, 4]);
}

#[test]
fn constants_and_identities_do_not_count() {
    let mut graph = Builder::new();
    graph.placeholder("A");
    graph.node("B", "Identity", &["A"]);
    graph.node("C", "Identity", &["B"]);
    assert_eq!(sets(&graph, &options()), names(&[]));
    graph.node("D", "Relu", &["C"]);
    assert_eq!(sets(&graph, &options()), names(&[]));
    graph.node("E", "Relu", &["D"]);
    assert_eq!(sets(&graph, &options()), names(&[&["B", "C", "D", "E"]]));
}

#[test]
fn fuel_limits_the_number_of_candidates() {
    let with = |clustering_fuel: i64| {
        let flags = Flags { clustering_fuel, ..options().flags };
        sets(&chain(), &Options { flags, ..options() })
    };
    assert_eq!(with(2), names(&[&["B", "C"]]));
    assert_eq!(with(1), names(&[]));
    assert_eq!(with(4), names(&[&["B", "C"], &["E", "F"]]));
    // The fuel is not replenished for the next graph.
    let flags = Flags { clustering_fuel: 4, ..options().flags };
    let (options, mut state) = (Options { flags, ..options() }, State::default());
    let mut clusters =
        || cluster(&chain().def, &options, &Compiler, &mut state, &mut Silent).expect("fine").report.clusters;
    assert_eq!(clusters().len(), 2);
    assert_eq!(clusters().len(), 0);
}

#[test]
fn only_listed_ops_are_clustered_if_a_list_is_given() {
    let with = |list: &str| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.node("relu", "Relu", &["a"]);
        graph.node("tanh", "Tanh", &["relu"]);
        graph.node("matmul", "MatMul", &["tanh", "tanh"]);
        graph.node("exp", "Exp", &["matmul"]);
        let flags = Flags { ops_to_cluster: list.to_owned(), min_cluster_size: 1, ..options().flags };
        cluster(&graph.def, &Options { flags, ..options() }, &Compiler, &mut State::default(), &mut Silent)
            .map(|clustered| {
                let mut sets: Vec<Vec<String>> =
                    clustered.report.clusters.into_iter().map(|c| c.nodes).collect();
                sets.sort();
                sets
            })
            .map_err(|e| e.message().to_owned())
    };
    let sets =
        |lists: &[&[&str]]| Ok(lists.iter().map(|l| l.iter().map(|&n| n.to_owned()).collect()).collect());
    assert_eq!(with(""), sets(&[&["relu", "tanh", "matmul", "exp"]]));
    assert_eq!(with("PW"), sets(&[&["exp"], &["relu", "tanh"]]));
    assert_eq!(with("PW,MatMul"), sets(&[&["relu", "tanh", "matmul", "exp"]]));
    assert_eq!(with("FUSIBLE"), sets(&[&["exp"], &["relu", "tanh"]]));
    assert_eq!(with("RED"), sets(&[]));
    assert_eq!(with("Tanh"), sets(&[&["tanh"]]));
    assert_eq!(
        with("NoSuchOp"),
        Err("The operation 'NoSuchOp' passed to --tf_xla_ops_to_cluster is not supported by XLA.".to_owned())
    );
}

#[test]
fn excluded_ops_stay_outside() {
    let with = |list: &str| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.node("tanh", "Tanh", &["a"]);
        graph.node("where", "Where", &["tanh"]);
        graph.node("shape", "Shape", &["where"]).ty("T", DataType::Int64);
        let flags = Flags { cluster_exclude_ops: list.to_owned(), min_cluster_size: 1, ..options().flags };
        cluster(&graph.def, &Options { flags, ..options() }, &Compiler, &mut State::default(), &mut Silent)
    };
    let nodes = |list: &str| {
        let mut nodes: Vec<String> =
            with(list).expect("fine").report.clusters.into_iter().flat_map(|c| c.nodes).collect();
        nodes.sort();
        nodes
    };
    assert_eq!(nodes(""), ["shape", "tanh", "where"]);
    // The node after it does not start a cluster, because it only reads a shape.
    assert_eq!(nodes("Where"), ["tanh"]);
    let error = with("NoSuchOp").expect_err("unknown").message().to_owned();
    assert!(error.contains("'NoSuchOp' passed to --tf_xla_cluster_exclude_ops is not supported"), "{error}");
}

#[test]
fn an_attribute_requests_or_forbids_a_cluster() {
    // Without a level, requested nodes are clustered regardless of size. Neighbors stay outside.
    let off = Options { level: JitLevel::Off, ..options() };
    let mut graph = chain();
    assert_eq!(sets(&graph, &off), names(&[]));
    graph.def.node[1].attr.insert("_XlaCompile".to_owned(), Value::B(true).into());
    assert_eq!(sets(&graph, &off), names(&[&["B"]]));
    // With a level, everything is clustered except forbidden nodes.
    graph.def.node[1].attr.insert("_XlaCompile".to_owned(), Value::B(false).into());
    assert_eq!(sets(&graph, &options()), names(&[&["E", "F"]]));
    assert_eq!(why(&run(&graph, &options()), "B"), "_XlaCompile is false");
}

#[test]
fn the_attribute_applies_through_the_called_function() {
    let with = |attribute: Option<bool>| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.node("call", "Twice", &["a"]);
        let mut body = Builder::new();
        body.node("y", "AddV2", &["x", "x"]);
        let function = graph.function("Twice", &["x"], &["out=y:z:0"], body);
        if let Some(value) = attribute {
            function.attr.insert("_XlaCompile".to_owned(), Value::B(value).into());
        }
        graph
    };
    let off = Options { level: JitLevel::Off, ..options() };
    assert_eq!(sets(&with(None), &off), names(&[]));
    assert_eq!(sets(&with(Some(true)), &off), names(&[&["call"]]));
    let one = Options { flags: Flags { min_cluster_size: 1, ..options().flags }, ..options() };
    assert_eq!(sets(&with(None), &one), names(&[&["call"]]));
    let forbidden = run(&with(Some(false)), &one);
    assert_eq!(why(&forbidden, "call"), "_XlaCompile is false");
}

#[test]
fn a_call_is_a_candidate_if_all_of_the_function_is() {
    let mut graph = Builder::new();
    graph.placeholder("A");
    for (name, function) in [("B", "Compilable"), ("C", "Uncompilable")] {
        let call = graph.node(name, "PartitionedCall", &["A"]);
        call.types("Tin", &[DataType::Float]).types("Tout", &[DataType::Float]).function("f", function);
    }
    graph.node("D", "AddV2", &["B", "C"]);
    let mut body = Builder::new();
    body.node("y", "Relu", &["x"]);
    graph.function("Compilable", &["x"], &["out=y:activations:0"], body);
    let mut body = Builder::new();
    body.node("y", UNCOMPILABLE, &["x"]);
    graph.function("Uncompilable", &["x"], &["out=y:y:0"], body);
    assert_eq!(sets(&graph, &options()), names(&[&["B", "D"]]));
    assert!(why(&run(&graph, &options()), "C").contains("'y' in function 'Uncompilable'"));
}

#[test]
fn a_recursive_function_is_not_a_candidate() {
    let mut graph = Builder::new();
    graph.placeholder("A");
    graph.node("B", "Endless", &["A"]);
    graph.node("C", "Relu", &["B"]);
    graph.node("D", "Relu", &["C"]);
    let mut body = Builder::new();
    body.node("y", "Endless", &["x"]);
    graph.function("Endless", &["x"], &["out=y:out:0"], body);
    assert_eq!(sets(&graph, &options()), names(&[&["C", "D"]]));
    assert!(why(&run(&graph, &options()), "B").contains("calls itself"));
}

#[test]
fn user_scopes_apply_only_without_a_level() {
    let graph = || {
        let mut graph = Builder::new();
        graph.constant("A", DataType::Float, &[100]).flag("_XlaCompile", true).text("_XlaScope", "Scope1");
        graph.node("B", "Relu", &["A"]).flag("_XlaCompile", true).text("_XlaScope", "Scope1");
        graph.node("C", "MatMul", &["A", "B"]).flag("_XlaCompile", true).text("_XlaScope", "Scope2");
        graph.node("D", "Add", &["B", "C"]).flag("_XlaCompile", true).text("_XlaScope", "Scope2");
        graph
    };
    let off = Options { level: JitLevel::Off, ..options() };
    assert_eq!(sets(&graph(), &off), names(&[&["A", "B"], &["C", "D"]]));
    assert_eq!(sets(&graph(), &options()), names(&[&["A", "B", "C", "D"]]));
    let refused = run(&graph(), &off).report.refused_edges;
    assert!(refused.iter().any(|edge| edge.reason == "the two have mismatching XLA scopes"), "{refused:?}");
}

#[test]
fn pass_scopes_apply_only_with_a_level() {
    let graph = || {
        let mut graph = Builder::new();
        graph.placeholder("A");
        for (name, input, scope) in
            [("B", "A", "one"), ("C", "B", "one"), ("D", "C", "two"), ("E", "D", "two")]
        {
            graph.node(name, "Relu", &[input]).flag("_XlaCompile", true).text("_XlaInternalScope", scope);
        }
        graph
    };
    assert_eq!(sets(&graph(), &options()), names(&[&["B", "C"], &["D", "E"]]));
    let off = Options { level: JitLevel::Off, ..options() };
    assert_eq!(sets(&graph(), &off), names(&[&["B", "C", "D", "E"]]));
}

#[test]
fn stages_of_a_pipeline_stay_apart() {
    let mut graph = Builder::new();
    graph.constant("a", DataType::Float, &[]);
    graph.constant("b", DataType::Float, &[]);
    graph.node("unstage", "Unstage", &[]).types("dtypes", &[DataType::Float]);
    graph.node("add0", "Add", &["a", "b"]);
    graph.node("add1", "Add", &["unstage", "b"]);
    graph.node("relu0", "Relu", &["add0"]);
    graph.node("relu1", "Relu", &["add1"]);
    graph.node("stage", "Stage", &["relu0"]).types("dtypes", &[DataType::Float]);
    let clusters = cluster_of(&graph, &options());
    assert_eq!(clusters["add0"], clusters["relu0"]);
    assert_eq!(clusters["add1"], clusters["relu1"]);
    assert_ne!(clusters["add0"], clusters["add1"]);
    // Without stages, a shared large constant connects both.
    let mut plain = Builder::new();
    plain.constant("b", DataType::Float, &[100]);
    for side in ["0", "1"] {
        plain.placeholder(&format!("in{side}"));
        plain.node(&format!("add{side}"), "Add", &[&format!("in{side}"), "b"]);
        plain.node(&format!("relu{side}"), "Relu", &[&format!("add{side}")]);
    }
    let clusters = cluster_of(&plain, &options());
    assert_eq!(clusters["add0"], clusters["add1"]);
}

#[test]
fn small_constants_do_not_connect_clusters() {
    let graph = |size: i64| {
        let mut graph = Builder::new();
        graph.constant("b", DataType::Float, &[size]);
        for side in ["0", "1"] {
            graph.placeholder(&format!("in{side}"));
            graph.node(&format!("add{side}"), "Add", &[&format!("in{side}"), "b"]);
            graph.node(&format!("relu{side}"), "Relu", &[&format!("add{side}")]);
        }
        graph
    };
    assert_eq!(sets(&graph(15), &options()).len(), 2);
    assert_eq!(sets(&graph(16), &options()).len(), 1);
}

#[test]
fn a_clustered_graph_is_not_clustered_again() {
    let mut graph = chain();
    assert_eq!(sets(&graph, &options()).len(), 2);
    graph.def.node[5].attr.insert("_XlaAlreadyClustered".to_owned(), Value::B(true).into());
    assert_eq!(sets(&graph, &options()), names(&[]));
}

#[test]
fn devices_without_a_compiler_are_ignored() {
    let mut graph = chain();
    for node in ["B", "C"] {
        graph.place(node, "/device:FPGA:0");
    }
    assert_eq!(sets(&graph, &options()), names(&[&["E", "F"]]));
    assert_eq!(why(&run(&graph, &options()), "B"), "no compiler supports devices of kind 'FPGA'");
    graph.place("B", "nowhere");
    let error = cluster(&graph.def, &options(), &Compiler, &mut State::default(), &mut Silent)
        .expect_err("an invalid device");
    assert!(error.message().contains("node 'B': invalid device name 'nowhere'"), "{error}");
}

#[test]
fn stateful_random_ops_are_clustered_only_where_everything_is() {
    let graph = |device: &str| {
        let mut graph = Builder::new();
        graph.constant("shape", DataType::Int32, &[2]).device(device);
        for name in ["a", "b"] {
            let node = graph.node(name, "RandomUniform", &["shape"]);
            node.ty("T", DataType::Int32).ty("dtype", DataType::Float).device(device);
        }
        graph.node("c", "Add", &["a", "b"]).device(device);
        graph
    };
    let on_cpu = cluster_of(&graph(crate::build::CPU), &options());
    assert!(!on_cpu.contains_key("a") && !on_cpu.contains_key("b"), "{on_cpu:?}");
    let on_xla = cluster_of(&graph(XLA_CPU), &options());
    assert_eq!((&on_xla["a"], &on_xla["b"]), (&on_xla["c"], &on_xla["c"]));
}

#[test]
fn shapes_must_not_depend_on_values_that_change_between_runs() {
    let graph = |is_random: bool| {
        let mut graph = Builder::new();
        let int = DataType::Int32;
        graph.constant("size", int, &[1]).device(XLA_GPU0);
        graph.constant("low", int, &[]).device(XLA_GPU0);
        graph.constant("high", int, &[]).device(XLA_GPU0);
        if is_random {
            let node = graph.node("shape", "RandomUniformInt", &["size", "low", "high"]);
            node.ty("T", int).ty("Tout", int).device(XLA_GPU0);
        } else {
            graph
                .node("shape", "Fill", &["size", "high"])
                .ty("T", int)
                .ty("index_type", int)
                .device(XLA_GPU0);
        }
        graph.placeholder("input");
        graph.node("reshape", "Reshape", &["input", "shape"]).device(XLA_GPU0);
        graph.node("tanh", "Tanh", &["reshape"]).device(XLA_GPU0);
        graph
    };
    let random = cluster_of(&graph(true), &options());
    assert!(!random.contains_key("shape"));
    assert_eq!(random["reshape"], random["tanh"]);
    let known = cluster_of(&graph(false), &options());
    assert_eq!(known["shape"], known["reshape"]);
}

#[test]
fn tensor_arrays_keep_their_values_in_their_cluster() {
    let mut graph = Builder::new();
    let (int, float) = (DataType::Int32, DataType::Float);
    graph.constant("size", int, &[]).device(XLA_GPU0);
    graph.constant("zero", int, &[]).device(XLA_GPU0);
    graph.constant("value", int, &[]).device(XLA_GPU0);
    graph.node("array", "TensorArrayV3", &["size"]).ty("dtype", int).device(XLA_GPU0);
    let write = graph.node("write", "TensorArrayWriteV3", &["array", "zero", "value", "array:1"]);
    write.ty("T", int).device(XLA_GPU0);
    graph.node("read", "TensorArrayReadV3", &["array", "zero", "write"]).ty("dtype", int).device(XLA_GPU0);
    graph.placeholder("input");
    graph.node("reshape", "Reshape", &["input", "read"]).ty("T", float).device(XLA_GPU0);
    let clusters = cluster_of(&graph, &options());
    assert_eq!(clusters["read"], clusters["reshape"]);
    // On a plain device none of them is clustered.
    for node in &mut graph.def.node {
        crate::build::CPU.clone_into(&mut node.device);
    }
    let clusters = cluster_of(&graph, &options());
    assert!(!clusters.contains_key("read") && !clusters.contains_key("write"), "{clusters:?}");
}

#[test]
fn checks_are_dropped_only_where_everything_is_compiled() {
    let graph = |device: &str| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.placeholder("b");
        graph.node("check", "CheckNumerics", &["a"]).device(device);
        graph.node("less", "Less", &["check", "b"]).device(device);
        graph.node("assert", "Assert", &["less", "a"]).types("T", &[DataType::Float]).device(device);
        graph
    };
    let on_xla = cluster_of(&graph(XLA_CPU), &options());
    assert_eq!((&on_xla["check"], &on_xla["assert"]), (&on_xla["less"], &on_xla["less"]));
    let one = Options { flags: Flags { min_cluster_size: 1, ..options().flags }, ..options() };
    let on_cpu = cluster_of(&graph(crate::build::CPU), &one);
    assert_eq!(on_cpu.keys().collect::<Vec<_>>(), ["less"]);
}

#[test]
fn variants_are_clustered_only_where_everything_is() {
    let graph = |device: &str| {
        let mut graph = Builder::new();
        let int = DataType::Int32;
        graph.constant("shape", int, &[2]).device(device);
        graph.constant("count", int, &[]).device(device);
        let reserve = graph.node("list", "TensorListReserve", &["shape", "count"]);
        reserve.ty("shape_type", int).ty("element_dtype", DataType::Float).device(device);
        let shape = graph.node("of", "TensorListElementShape", &["list"]);
        shape.ty("shape_type", int).device(device);
        graph
    };
    let one = Options { flags: Flags { min_cluster_size: 1, ..options().flags }, ..options() };
    assert!(!cluster_of(&graph(crate::build::CPU), &one).contains_key("list"));
    let on_xla = cluster_of(&graph(XLA_CPU), &one);
    assert_eq!(on_xla["list"], on_xla["of"]);
}

#[test]
fn some_attributes_and_ops_keep_nodes_outside() {
    let one = Options { flags: Flags { min_cluster_size: 1, ..options().flags }, ..options() };
    let graph = |attribute: Option<(&str, AttrValue)>| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.node("x", "Tanh", &["a"]);
        graph.node("z", "Add", &["x", "x"]);
        if let Some((name, value)) = attribute {
            graph.def.node[2].attr.insert(name.to_owned(), value);
        }
        graph
    };
    assert_eq!(sets(&graph(None), &one), names(&[&["x", "z"]]));
    let list = Value::List(Box::new(ListValue { i: vec![0, 155], ..ListValue::default() }));
    assert_eq!(sets(&graph(Some(("_scoped_allocator", list.into()))), &one), names(&[&["x"]]));
    assert_eq!(sets(&graph(Some(("_forward_from", Value::I(0).into()))), &one), names(&[&["x"]]));
    for op in ["Svd", "Qr", "MatrixInverse"] {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.node("x", op, &["a"]);
        assert_eq!(sets(&graph, &one), names(&[]), "{op}");
        graph.place("x", XLA_CPU);
        assert_eq!(sets(&graph, &one), names(&[&["x"]]), "{op}");
    }
    let mut graph = Builder::new();
    graph.node("text", "Const", &[]).ty("dtype", DataType::String).flag("_XlaCompile", true);
    assert_eq!(sets(&graph, &one), names(&[]));
}

#[test]
fn clusters_do_not_forward_references() {
    let mut graph = Builder::new();
    graph.node("variable", "Variable", &[]).ty("dtype", DataType::Float);
    graph.node("read", "Identity", &["variable"]);
    graph.node("negate", "Neg", &["read"]);
    graph.node("identity", "Identity", &["negate"]);
    graph.node("add", "Add", &["identity", "negate"]);
    assert_eq!(sets(&graph, &options()), names(&[&["negate", "identity", "add"]]));
}

#[test]
fn the_control_input_of_loop_constants_stays_outside() {
    let graph = |condition: &str| {
        let mut graph = Builder::new();
        graph.placeholder("cond").ty("dtype", DataType::Bool);
        graph.placeholder("value");
        graph.node("loop_cond", condition, &["cond"]).ty("T", DataType::Bool);
        graph.node("switch", "Switch", &["value", "loop_cond"]);
        graph.node("identity", "Identity", &["switch:1"]);
        graph.constant("const", DataType::Float, &[100]);
        graph.wait("const", "identity");
        graph.node("tanh0", "Tanh", &["const"]);
        graph.node("tanh1", "Tanh", &["tanh0"]);
        graph.node("add", "Add", &["const", "tanh1"]);
        graph
    };
    let mut loops = graph("LoopCond");
    loops.def.node[2].attr.clear();
    let clusters = cluster_of(&loops, &options());
    assert!(!clusters.contains_key("identity") && clusters.contains_key("add"), "{clusters:?}");
    // After a regular switch it is clustered with the other nodes.
    let clusters = cluster_of(&graph("Identity"), &options());
    assert_eq!(clusters["identity"], clusters["add"]);
}

#[test]
fn fed_nodes_stay_outside() {
    let mut options = options();
    assert_eq!(sets(&chain(), &options), names(&[&["B", "C"], &["E", "F"]]));
    options.feeds = vec!["C:0".to_owned()];
    assert_eq!(sets(&chain(), &options), names(&[&["E", "F"]]));
}
