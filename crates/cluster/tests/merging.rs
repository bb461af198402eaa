//! Rules for contracting edges one by one, each with a graph where the rule prevents a contraction
//! and one where it does not.

use crate::build::{
    Builder, CPU, GPU0, GPU1, UNCOMPILABLE, XLA_GPU0, XLA_GPU1, cluster_of, names, options, run, sets,
};
use cluster::{Flags, Options};
use tf::DataType;

#[test]
fn another_path_prevents_a_contraction() {
    let graph = |between: &str| {
        let mut graph = Builder::new();
        graph.constant("A", DataType::Float, &[100]);
        graph.node("B", between, &["A"]);
        graph.node("C", "MatMul", &["A", "B"]);
        graph
    };
    assert_eq!(sets(&graph(UNCOMPILABLE), &options()), names(&[]));
    assert_eq!(sets(&graph("Relu"), &options()), names(&[&["A", "B", "C"]]));
    let refused = run(&graph(UNCOMPILABLE), &options()).report.refused_edges;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].reason, "contracting the edge would create a cycle via [B]");
}

#[test]
fn a_tensorflow_1_loop_is_another_path() {
    // The source of the loop's input and the user of its output must not be merged.
    let mut graph = Builder::new();
    graph.placeholder("A");
    graph.placeholder("B");
    graph.node("C", "Add", &["A", "B"]);
    graph.node("enter", "Enter", &["C"]).text("frame_name", "frame");
    graph.node("next", "NextIteration", &["enter"]);
    graph.node("exit", "Exit", &["next"]);
    graph.node("D", "Add", &["C", "exit"]);
    assert_eq!(sets(&graph, &options()), names(&[]));
}

#[test]
fn a_loop_that_is_entered_after_its_end_prevents_clustering() {
    let graph = |second: &str| {
        let mut graph = Builder::new();
        graph.placeholder("A");
        graph.node("enter_a", "Enter", &["A"]).text("frame_name", "frame");
        graph.node("exit_a", "Exit", &["enter_a"]);
        graph.node("tanh", "Tanh", &["exit_a"]);
        graph.node("enter_b", "Enter", &["tanh"]).text("frame_name", second);
        graph.node("exit_b", "Exit", &["enter_b"]);
        graph
    };
    let one = Options { flags: Flags { min_cluster_size: 1, ..options().flags }, ..options() };
    assert_eq!(sets(&graph("frame"), &one), names(&[]));
    assert_eq!(sets(&graph("other"), &one), names(&[&["tanh"]]));
}

/// Two values after switches on these conditions.
fn switched(conditions: [&str; 2]) -> Builder {
    let mut graph = Builder::new();
    graph.placeholder("cond_a").ty("dtype", DataType::Bool);
    graph.placeholder("cond_b").ty("dtype", DataType::Bool);
    graph.placeholder("value");
    graph.node("switch_a", "Switch", &["value", conditions[0]]);
    graph.node("switch_b", "Switch", &["value", conditions[1]]);
    graph
}

#[test]
fn nodes_with_different_liveness_stay_apart() {
    let graph = |conditions: [&str; 2]| {
        let mut graph = switched(conditions);
        for side in ["a", "b"] {
            graph.node(&format!("tanh_{side}0"), "Tanh", &[&format!("switch_{side}:1")]);
            graph.node(&format!("tanh_{side}1"), "Tanh", &[&format!("tanh_{side}0")]);
        }
        graph.node("add", "Add", &["tanh_a1", "tanh_b1"]);
        graph
    };
    assert_eq!(
        sets(&graph(["cond_a", "cond_b"]), &options()),
        names(&[&["tanh_a0", "tanh_a1"], &["tanh_b0", "tanh_b1"]])
    );
    let all: &[&str] = &["add", "tanh_a0", "tanh_a1", "tanh_b0", "tanh_b1"];
    assert_eq!(sets(&graph(["cond_a", "cond_a"]), &options()), names(&[all]));
    let refused = run(&graph(["cond_a", "cond_b"]), &options()).report.refused_edges;
    assert!(
        refused
            .iter()
            .any(|e| e.reason == "the two have mismatching deadness: *cond_a and (*cond_a & *cond_b)"),
        "{refused:?}"
    );
    // Disabling the safety check merges them anyway.
    let flags = Flags { disable_deadness_safety_checks_for_debugging: true, ..options().flags };
    assert_eq!(sets(&graph(["cond_a", "cond_b"]), &Options { flags, ..options() }), names(&[all]));
}

#[test]
fn nodes_with_equal_liveness_merge_whatever_their_inputs() {
    let mut graph = switched(["cond_a", "cond_b"]);
    graph.node("add_a", "Add", &["switch_a:1", "switch_b:1"]);
    graph.node("add_b", "Add", &["switch_b:1", "switch_a:1"]);
    graph.node("add_c", "Add", &["add_a", "add_b"]);
    assert_eq!(sets(&graph, &options()), names(&[&["add_a", "add_b", "add_c"]]));
}

#[test]
fn liveness_after_a_conditional_equals_that_before_it() {
    let mut graph = Builder::new();
    graph.placeholder("cond").ty("dtype", DataType::Bool);
    graph.placeholder("value");
    graph.node("before", "Tanh", &["value"]);
    graph.node("switch", "Switch", &["before", "cond"]);
    graph.node("no", "Tanh", &["switch"]);
    graph.node("yes", "Exp", &["switch:1"]);
    graph.node("merge", "Merge", &["no", "yes"]);
    graph.node("after0", "Tanh", &["merge"]);
    graph.node("after1", "Add", &["after0", "value"]);
    let one = Options { flags: Flags { min_cluster_size: 1, ..options().flags }, ..options() };
    assert_eq!(sets(&graph, &one), names(&[&["before"], &["no"], &["yes"], &["after0", "after1"]]));
}

/// A TensorFlow 1 loop: `while i < 10: i, x = i + 1, f(x)`.
fn counted_loop(graph: &mut Builder, prefix: &str, input: &str) {
    let name = |part: &str| format!("{prefix}{part}");
    let int = DataType::Int32;
    graph.constant(&name("zero"), int, &[100]);
    for (part, from, data_type) in [("i", name("zero"), int), ("x", input.to_owned(), DataType::Float)] {
        graph
            .node(&name(&format!("{part}/enter")), "Enter", &[&from])
            .ty("T", data_type)
            .text("frame_name", prefix);
        let inputs = [name(&format!("{part}/enter")), name(&format!("{part}/next"))];
        let merge = graph.node(&name(&format!("{part}/merge")), "Merge", &[&inputs[0], &inputs[1]]);
        merge.ty("T", data_type);
    }
    graph.constant(&name("limit"), int, &[100]);
    graph.wait(&name("limit"), &name("i/merge"));
    graph.node(&name("less"), "Less", &[&name("i/merge"), &name("limit")]).ty("T", int);
    graph.node(&name("cond"), "LoopCond", &[&name("less")]);
    for (part, data_type) in [("i", int), ("x", DataType::Float)] {
        let from = name(&format!("{part}/merge"));
        graph.node(&name(&format!("{part}/switch")), "Switch", &[&from, &name("cond")]).ty("T", data_type);
        graph
            .node(&name(&format!("{part}/exit")), "Exit", &[&name(&format!("{part}/switch"))])
            .ty("T", data_type);
    }
    let next = |part: &str| format!("{}:1", name(&format!("{part}/switch")));
    graph.node(&name("i/add"), "AddV2", &[&next("i"), &next("i")]).ty("T", int);
    graph.node(&name("x/tanh"), "Tanh", &[&next("x")]);
    graph.node(&name("x/exp"), "Exp", &[&name("x/tanh")]);
    graph.node(&name("i/next"), "NextIteration", &[&name("i/add")]).ty("T", int);
    graph.node(&name("x/next"), "NextIteration", &[&name("x/exp")]);
}

#[test]
fn a_loops_body_and_its_surroundings_are_separate_clusters() {
    let mut graph = Builder::new();
    graph.placeholder("in");
    graph.node("a", "Tanh", &["in"]);
    graph.node("b", "Tanh", &["a"]);
    counted_loop(&mut graph, "w/", "b");
    graph.node("c", "Tanh", &["w/x/exit"]);
    graph.node("d", "Tanh", &["c"]);
    let clusters = cluster_of(&graph, &options());
    assert_eq!(clusters["a"], clusters["b"]);
    assert_eq!(clusters["w/x/tanh"], clusters["w/x/exp"]);
    assert_eq!(clusters["c"], clusters["d"]);
    let different: std::collections::BTreeSet<&String> =
        ["a", "w/x/tanh", "c"].iter().map(|n| &clusters[*n]).collect();
    assert_eq!(different.len(), 3);
    // The condition runs once more than the body.
    assert_ne!(clusters.get("w/less"), clusters.get("w/x/tanh"));
    // Both loop variables are live together, so their parts of the body could merge, but no edge
    // connects them.
    assert!(graph.def.node.len() > clusters.len());
}

#[test]
fn values_are_live_together_only_within_one_loop() {
    let mut graph = Builder::new();
    graph.placeholder("in");
    counted_loop(&mut graph, "v/", "in");
    counted_loop(&mut graph, "w/", "in");
    graph.node("sum", "Add", &["v/x/exit", "w/x/exit"]);
    graph.node("tanh", "Tanh", &["sum"]);
    // After both loops, liveness equals that before them.
    let clusters = cluster_of(&graph, &options());
    assert_eq!(clusters["sum"], clusters["tanh"]);
    assert_ne!(clusters["v/x/exp"], clusters["w/x/exp"]);
}

#[test]
fn a_read_after_a_write_is_in_another_cluster() {
    let graph = |first: &str, second: &str| {
        let mut graph = Builder::new();
        graph.read("R");
        graph.write("W");
        graph.wait(second, first);
        graph
    };
    let set: &[&str] = &["AssignmentW", "ReadR", "ValueToAssignW"];
    assert_eq!(sets(&graph("ReadR", "AssignmentW"), &options()), names(&[set]));
    assert_eq!(sets(&graph("AssignmentW", "ReadR"), &options()), names(&[]));
    let flags = Flags { disable_resource_variable_safety_checks_for_debugging: true, ..options().flags };
    assert_eq!(sets(&graph("AssignmentW", "ReadR"), &Options { flags, ..options() }), names(&[set]));
    let refused = run(&graph("AssignmentW", "ReadR"), &options()).report.refused_edges;
    assert_eq!(refused[0].reason, "the new cluster would break resource variable semantics");
}

#[test]
fn alternating_reads_and_writes_form_clusters_of_a_read_and_a_write() {
    let mut graph = Builder::new();
    graph.write("W0");
    graph.constant("N0", DataType::Float, &[]);
    graph.read("R0");
    graph.write("W1");
    graph.constant("N1", DataType::Float, &[]);
    graph.read("R1");
    for (node, before) in [
        ("N0", "AssignmentW0"),
        ("ReadR0", "N0"),
        ("AssignmentW1", "ReadR0"),
        ("N1", "AssignmentW1"),
        ("ReadR1", "N1"),
    ] {
        graph.wait(node, before);
    }
    assert_eq!(sets(&graph, &options()), names(&[&["AssignmentW1", "N0", "ReadR0", "ValueToAssignW1"]]));
}

#[test]
fn functions_count_as_reads_and_writes() {
    let mut graph = Builder::new();
    graph.read("R");
    graph.node("call", "Twice", &["ReadR"]);
    graph.node("relu", "Relu", &["call"]);
    graph.write("W");
    graph.wait("AssignmentW", "call");
    let mut body = Builder::new();
    body.node("y", "AddV2", &["x", "x"]);
    graph.function("Twice", &["x"], &["out=y:z:0"], body);
    // A read before the call and a write after it are permitted. A read after it is not.
    let all: &[&str] = &["ReadR", "call", "relu", "AssignmentW", "ValueToAssignW"];
    assert_eq!(sets(&graph, &options()), names(&[all]));
    graph.read("Late");
    graph.wait("ReadLate", "call");
    graph.node("late", "Relu", &["ReadLate"]);
    graph.node("later", "Relu", &["late"]);
    let clusters = cluster_of(&graph, &options());
    assert_ne!(clusters["call"], clusters["ReadLate"]);
    assert_eq!(clusters["ReadLate"], clusters["later"]);
}

#[test]
fn a_step_counter_and_a_group_sink_merge_last() {
    let mut graph = Builder::new();
    let int = DataType::Int64;
    graph.variable("iter").ty("dtype", int);
    graph.variable("weights_0");
    graph.variable("weights_1");
    graph.placeholder("delta");
    graph.placeholder("matmul_input");
    graph.constant("one", int, &[]);
    graph.node("some_ctrl_input", "NoOp", &[]);
    for i in ["0", "1"] {
        let (weights, update) = (format!("weights_{i}"), format!("weights_{i}_update"));
        graph
            .node(&update, "AssignAddVariableOp", &[&weights, "delta", "^some_ctrl_input"])
            .ty("dtype", DataType::Float);
    }
    let increment = graph.node(
        "increment",
        "AssignAddVariableOp",
        &["iter", "one", "^weights_0_update", "^weights_1_update"],
    );
    increment.ty("dtype", int);
    for i in ["0", "1"] {
        let after = format!("^weights_{i}_update");
        graph.node(&format!("matmul_{i}"), "MatMul", &["matmul_input", "matmul_input", &after]);
    }
    graph.node("group_deps", "NoOp", &["^increment", "^matmul_0", "^matmul_1"]);
    let clusters = cluster_of(&graph, &options());
    for node in ["weights_0_update", "weights_1_update", "matmul_0", "matmul_1"] {
        assert_eq!(clusters.get("some_ctrl_input"), clusters.get(node), "{node}");
    }
    assert_ne!(clusters.get("increment"), clusters.get("matmul_0"));
}

#[test]
fn shape_readers_merge_with_their_operands() {
    let graph = |op: &str| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.placeholder("b");
        graph.node("x", "MatMul", &["a", "b"]).device(GPU0);
        graph.node("y", op, &["x"]).device(CPU);
        graph.node("z", "Add", &["y", "y"]).ty("T", DataType::Int32).device(GPU1);
        graph
    };
    let clusters = cluster_of(&graph("Size"), &options());
    assert_eq!(clusters["x"], clusters["y"]);
    assert_ne!(clusters.get("z"), clusters.get("y"));
    // Any other op merges with its user, because users are visited first.
    let mut other = graph("Size");
    let cast = other.def.node.iter_mut().find(|n| n.name == "y").expect("no node 'y'");
    "Cast".clone_into(&mut cast.op);
    for (name, data_type) in [("SrcT", DataType::Float), ("DstT", DataType::Int32)] {
        cast.attr.insert(name.to_owned(), tf::proto::attr_value::Value::Type(data_type.number()).into());
    }
    let clusters = cluster_of(&other, &options());
    assert_eq!(clusters["y"], clusters["z"]);
    // On a single device all of them merge.
    let mut together = graph("Size");
    for node in ["x", "y", "z"] {
        together.place(node, CPU);
    }
    assert_eq!(sets(&together, &options()), names(&[&["x", "y", "z"]]));
}

#[test]
fn a_gpu_cluster_may_include_cpu_nodes_but_no_other_gpu() {
    let graph = |x: &str, y: &str| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.node("x", "Tanh", &["a"]).device(x);
        graph.node("y", "Add", &["x", "x"]).device(y);
        graph
    };
    assert_eq!(sets(&graph(GPU0, CPU), &options()), names(&[&["x", "y"]]));
    assert_eq!(sets(&graph(CPU, GPU0), &options()), names(&[&["x", "y"]]));
    assert_eq!(sets(&graph(GPU0, GPU1), &options()), names(&[]));
    assert_eq!(sets(&graph(CPU, XLA_GPU0), &options()), names(&[]));
    let clustered = run(&graph(CPU, GPU0), &options());
    assert_eq!(clustered.report.clusters[0].device, GPU0);
    let refused = run(&graph(GPU0, GPU1), &options()).report.refused_edges;
    assert_eq!(refused[0].reason, "the two have incompatible devices");
}

#[test]
fn variables_stay_on_the_device_of_their_cluster() {
    let graph = |read: &str, user: &str| {
        let mut graph = Builder::new();
        graph.placeholder("a");
        graph.read("r").device(read);
        graph.place("Varr", read);
        graph.node("b", "Add", &["Readr", "a"]).device(user);
        graph
    };
    assert_eq!(sets(&graph(GPU0, CPU), &options()), names(&[&["Readr", "b"]]));
    // The cluster would run on the GPU, but the variable is on the CPU.
    assert_eq!(sets(&graph(CPU, GPU0), &options()), names(&[]));
}

#[test]
fn clusters_add_no_cross_device_dependency() {
    let graph = |combined: &str| {
        let mut graph = Builder::new();
        for (device, side) in [(XLA_GPU0, "0"), (XLA_GPU1, "1")] {
            let (constant, tanh) = (format!("const{side}"), format!("tanh{side}"));
            graph.constant(&constant, DataType::Float, &[10, 10]).device(device);
            graph.node(&tanh, "Tanh", &[&constant]).device(device);
            graph.node(&format!("matmul{side}"), "MatMul", &[&tanh, &tanh]).device(device);
        }
        graph.node("combined", "MatMul", &["matmul0", "matmul1"]).device(combined);
        graph
    };
    let clusters = cluster_of(&graph(XLA_GPU1), &options());
    assert_eq!((&clusters["const0"], &clusters["const1"]), (&clusters["matmul0"], &clusters["matmul1"]));
    assert_ne!(clusters["matmul0"], clusters["matmul1"]);
    assert_ne!(clusters.get("combined"), Some(&clusters["matmul1"]));
    let refused = run(&graph(XLA_GPU1), &options()).report.refused_edges;
    assert!(
        refused.iter().any(|e| e.reason == "the new cluster would introduce a cross device dependency"),
        "{refused:?}"
    );
    // On a single device everything is one cluster.
    let mut one = graph(XLA_GPU0);
    for node in ["const1", "tanh1", "matmul1"] {
        one.place(node, XLA_GPU0);
    }
    assert_eq!(sets(&one, &options()).len(), 1);
}

#[test]
fn a_cycle_that_is_not_a_loop_is_an_error() {
    let mut graph = Builder::new();
    graph.node("a", "NoOp", &["^c"]);
    graph.node("b", "NoOp", &["^a"]);
    graph.node("c", "NoOp", &["^b"]);
    let error = cluster::cluster(
        &graph.def,
        &options(),
        &crate::build::Compiler,
        &mut cluster::State::default(),
        &mut cluster::Silent,
    );
    let error = error.expect_err("a cycle");
    assert!(error.message().contains("3 nodes form a cycle: 'b' -> 'c' -> 'a'"), "{error}");
}
