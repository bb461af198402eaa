//! TensorFlow 1 loops and conditionals, and those of functions.

use crate::graph::{F, Graph, I, failure, float, func, ints, shape, text, ty, types};
use session::Options;
use shape::Literal;
use tf::DataType;
use tf::proto::attr_value::Value as Attr;
use tf::proto::{ArgDef, FunctionDef, OpDef};

/// Adds the head of a loop that enters `starts` and continues while the first value is less than
/// `limit`, which enters as a constant. Adds `<frame>/merge_k` and `<frame>/switch_k`; the caller
/// must add `<frame>/next_k`.
fn while_less(g: &mut Graph, frame: &str, starts: &[(&str, DataType)], limit: &str, parallel: i64) {
    let at = |name: &str| format!("{frame}/{name}");
    let enter = |constant: bool, t: DataType| {
        vec![
            ("T", ty(t)),
            ("frame_name", text(frame)),
            ("is_constant", Attr::B(constant)),
            ("parallel_iterations", Attr::I(parallel)),
        ]
    };
    for (k, (start, t)) in starts.iter().enumerate() {
        g.add(&at(&format!("enter_{k}")), "Enter", &[start], &enter(false, *t));
        let merge = at(&format!("merge_{k}"));
        let next = at(&format!("next_{k}"));
        g.add(&merge, "Merge", &[&at(&format!("enter_{k}")), &next], &[("T", ty(*t)), ("N", Attr::I(2))]);
    }
    g.add(&at("limit"), "Enter", &[limit], &enter(true, I));
    g.add(&at("less"), "Less", &[&at("merge_0"), &at("limit")], &[("T", ty(I))]);
    g.add(&at("cond"), "LoopCond", &[&at("less")], &[]);
    for (k, (_, t)) in starts.iter().enumerate() {
        let (switch, exit) = (at(&format!("switch_{k}")), at(&format!("exit_{k}")));
        g.add(&switch, "Switch", &[&at(&format!("merge_{k}")), &at("cond")], &[("T", ty(*t))]);
        g.add(&exit, "Exit", &[&switch], &[("T", ty(*t))]);
    }
}

/// Increments the first value of a loop by one.
fn count(g: &mut Graph, frame: &str) {
    let at = |name: &str| format!("{frame}/{name}");
    g.constant(&at("one"), Literal::scalar(1i32));
    g.def.node.last_mut().expect("the constant").input.push(format!("^{}", at("switch_0")));
    g.add(&at("count"), "AddV2", &[&format!("{}:1", at("switch_0")), &at("one")], &[("T", ty(I))]);
    g.add(&at("next_0"), "NextIteration", &[&at("count")], &[("T", ty(I))]);
}

/// A loop that sums all numbers less than a limit.
fn sum_below(parallel: i64) -> Graph {
    let mut g = Graph::default();
    g.int("zero", 0).int("sum", 0).placeholder("limit", I);
    while_less(&mut g, "loop", &[("zero", I), ("sum", I)], "limit", parallel);
    count(&mut g, "loop");
    g.add("loop/add", "AddV2", &["loop/switch_1:1", "loop/switch_0:1"], &[("T", ty(I))]);
    g.add("loop/next_1", "NextIteration", &["loop/add"], &[("T", ty(I))]);
    g
}

#[test]
fn loops_run_as_often_as_their_condition_says() {
    for (parallel, threads) in [(1, 1), (10, 1), (3, 3)] {
        let options = Options { inter_op_threads: threads, ..Options::default() };
        let session = sum_below(parallel).session_with(options);
        for (limit, sum) in [(10, 45), (0, 0), (1, 0), (1000, 499_500)] {
            let limit = [("limit", Literal::scalar(limit))];
            assert_eq!(ints(&session, &limit, "loop/exit_1"), [sum], "{parallel} iterations at once");
        }
    }
}

#[test]
fn loops_nest() {
    let mut g = Graph::default();
    g.int("zero", 0).int("sum", 0).int("three", 3).int("four", 4);
    while_less(&mut g, "outer", &[("zero", I), ("sum", I)], "three", 10);
    count(&mut g, "outer");
    g.int("inner_zero", 0);
    g.def.node.last_mut().expect("the constant").input.push("^outer/switch_0".to_owned());
    g.int("inner_four", 4);
    g.def.node.last_mut().expect("the constant").input.push("^outer/switch_0".to_owned());
    while_less(&mut g, "inner", &[("inner_zero", I), ("outer/switch_1:1", I)], "inner_four", 10);
    count(&mut g, "inner");
    let enter = [
        ("T", ty(I)),
        ("frame_name", text("inner")),
        ("is_constant", Attr::B(true)),
        ("parallel_iterations", Attr::I(10)),
    ];
    g.add("inner/i", "Enter", &["outer/switch_0:1"], &enter);
    g.add("inner/product", "Mul", &["inner/i", "inner/switch_0:1"], &[("T", ty(I))]);
    g.add("inner/add", "AddV2", &["inner/switch_1:1", "inner/product"], &[("T", ty(I))]);
    g.add("inner/next_1", "NextIteration", &["inner/add"], &[("T", ty(I))]);
    g.add("outer/next_1", "NextIteration", &["inner/exit_1"], &[("T", ty(I))]);
    for threads in [1, 2, 3] {
        let session = g.session_with(Options { inter_op_threads: threads, ..Options::default() });
        // (0 + 1 + 2) * (0 + 1 + 2 + 3)
        assert_eq!(ints(&session, &[], "outer/exit_1"), [18]);
    }
}

/// `x * 2` if the predicate is true, otherwise `-x`. Each branch counts its runs.
fn conditional() -> Graph {
    let mut g = Graph::default();
    g.placeholder("x", F).placeholder("p", DataType::Bool).float("zero", 0.0);
    for branch in ["then", "else"] {
        let name = format!("{branch}_count");
        g.add(&name, "VariableV2", &[], &[("dtype", ty(F)), ("shape", shape(&[]))]);
        g.add(&format!("{branch}_init"), "Assign", &[&name, "zero"], &[("T", ty(F))]);
    }
    g.add("init", "NoOp", &["^then_init", "^else_init"], &[]);
    g.add("switch", "Switch", &["x", "p"], &[("T", ty(F))]);
    g.float("two", 2.0);
    g.def.node.last_mut().expect("the constant").input.push("^then_pivot".to_owned());
    g.add("then_pivot", "Identity", &["switch:1"], &[("T", ty(F))]);
    g.add("then", "Mul", &["then_pivot", "two"], &[("T", ty(F))]);
    g.add("else", "Neg", &["switch"], &[("T", ty(F))]);
    g.float("one_then", 1.0);
    g.def.node.last_mut().expect("the constant").input.push("^then".to_owned());
    g.float("one_else", 1.0);
    g.def.node.last_mut().expect("the constant").input.push("^else".to_owned());
    g.add("count_then", "AssignAdd", &["then_count", "one_then"], &[("T", ty(F))]);
    g.add("count_else", "AssignAdd", &["else_count", "one_else"], &[("T", ty(F))]);
    g.add("merge", "Merge", &["else", "then"], &[("T", ty(F)), ("N", Attr::I(2))]);
    g
}

#[test]
fn only_the_branch_that_is_taken_runs() {
    let session = conditional().session();
    session.run(&[], &[], &["init"]).expect("initialized");
    for (p, y, index) in [(true, 6.0, 1), (false, -3.0, 0), (true, 6.0, 1)] {
        let feeds = [("x", Literal::scalar(3f32)), ("p", Literal::scalar(p))];
        let results = session.run(&feeds, &["merge", "merge:1"], &["count_then", "count_else"]).expect("run");
        assert_eq!(results[0].to_vec::<f32>(), Some(vec![y]));
        assert_eq!(results[1].to_vec::<i32>(), Some(vec![index]));
    }
    assert_eq!(session.variable_value("then_count").expect("known"), Some(Literal::scalar(2f32)));
    assert_eq!(session.variable_value("else_count").expect("known"), Some(Literal::scalar(1f32)));
    let feeds = [("x", Literal::scalar(3f32)), ("p", Literal::scalar(true))];
    let message = failure(&session, &feeds, &["else"], &[]);
    assert!(message.contains("branch of a conditional that was not taken"), "{message}");
}

#[test]
fn a_loop_on_the_branch_not_taken_is_dead_as_a_whole() {
    let mut g = Graph::default();
    g.placeholder("p", DataType::Bool).int("zero", 0).int("sum", 0).int("limit", 5).int("other", -1);
    g.add("switch", "Switch", &["zero", "p"], &[("T", ty(I))]);
    g.add("sum_switch", "Switch", &["sum", "p"], &[("T", ty(I))]);
    g.add("limit_switch", "Switch", &["limit", "p"], &[("T", ty(I))]);
    while_less(&mut g, "loop", &[("switch:1", I), ("sum_switch:1", I)], "limit_switch:1", 10);
    count(&mut g, "loop");
    g.add("loop/add", "AddV2", &["loop/switch_1:1", "loop/switch_0:1"], &[("T", ty(I))]);
    g.add("loop/next_1", "NextIteration", &["loop/add"], &[("T", ty(I))]);
    g.add("other_switch", "Switch", &["other", "p"], &[("T", ty(I))]);
    g.add("merge", "Merge", &["other_switch", "loop/exit_1"], &[("T", ty(I)), ("N", Attr::I(2))]);
    let session = g.session();
    assert_eq!(ints(&session, &[("p", Literal::scalar(true))], "merge"), [10]);
    assert_eq!(ints(&session, &[("p", Literal::scalar(false))], "merge"), [-1]);
}

#[test]
fn a_conditional_in_a_loop_takes_its_branch_in_each_iteration() {
    let mut g = Graph::default();
    g.int("zero", 0).int("sum", 0).placeholder("limit", I);
    while_less(&mut g, "loop", &[("zero", I), ("sum", I)], "limit", 4);
    count(&mut g, "loop");
    let waits =
        |g: &mut Graph| g.def.node.last_mut().expect("a constant").input.push("^loop/switch_0".to_owned());
    g.int("two", 2);
    waits(&mut g);
    g.int("none", 0);
    waits(&mut g);
    g.add("odd", "FloorMod", &["loop/switch_0:1", "two"], &[("T", ty(I))]);
    g.add("is_odd", "NotEqual", &["odd", "none"], &[("T", ty(I))]);
    g.add("switch", "Switch", &["loop/switch_0:1", "is_odd"], &[("T", ty(I))]);
    g.add("negative", "Neg", &["switch:1"], &[("T", ty(I))]);
    g.add("merge", "Merge", &["switch", "negative"], &[("T", ty(I)), ("N", Attr::I(2))]);
    g.add("add", "AddV2", &["loop/switch_1:1", "merge"], &[("T", ty(I))]);
    g.add("loop/next_1", "NextIteration", &["add"], &[("T", ty(I))]);
    // 0 - 1 + 2 - 3 + 4 - 5 + 6
    assert_eq!(ints(&g.session(), &[("limit", Literal::scalar(7i32))], "loop/exit_1"), [3]);
}

/// A function with these nodes that returns the last one.
fn function(
    name: &str,
    inputs: &[(&str, DataType)],
    output: DataType,
    nodes: Vec<tf::proto::NodeDef>,
) -> FunctionDef {
    let arg =
        |name: &str, t: DataType| ArgDef { name: name.to_owned(), r#type: t.number(), ..ArgDef::default() };
    let signature = OpDef {
        name: name.to_owned(),
        input_arg: inputs.iter().map(|(name, t)| arg(name, *t)).collect(),
        output_arg: vec![arg("result", output)],
        ..OpDef::default()
    };
    let last = nodes.last().map(|node| node.name.clone()).expect("a node");
    let last_output = if nodes.last().is_some_and(|node| node.op == "Const") { "output" } else { "z" };
    FunctionDef {
        signature: Some(signature),
        node_def: nodes,
        ret: [("result".to_owned(), format!("{last}:{last_output}:0"))].into(),
        ..FunctionDef::default()
    }
}

#[test]
fn functions_are_called_by_conditionals_loops_and_calls() {
    let mut g = Graph::default();
    let binary =
        |name: &str, op: &str, a: &str, b: &str| crate::graph::node(name, op, &[a, b], &[("T", ty(F))]);
    let ten = crate::graph::constant("ten", &Literal::scalar(10f32));
    g.function(function("double", &[("x", F)], F, vec![binary("y", "AddV2", "x", "x")]));
    g.function(function("square", &[("x", F)], F, vec![binary("y", "Mul", "x", "x")]));
    g.function(function(
        "below_ten",
        &[("x", F)],
        DataType::Bool,
        vec![ten, crate::graph::node("y", "Less", &["x", "ten:output:0"], &[("T", ty(F))])],
    ));
    g.placeholder("x", F).placeholder("p", DataType::Bool).placeholder("k", I);
    let one = |extra: &[(&'static str, Attr)]| {
        let mut all = vec![("Tin", types(&[F])), ("Tout", types(&[F]))];
        all.extend(extra.iter().cloned());
        all
    };
    let branches =
        [("Tcond", ty(DataType::Bool)), ("then_branch", func("double")), ("else_branch", func("square"))];
    g.add("if", "If", &["p", "x"], &one(&branches));
    let list = tf::proto::ListValue {
        func: ["double", "square"]
            .map(|name| tf::proto::NameAttrList { name: name.into(), ..Default::default() })
            .into(),
        ..Default::default()
    };
    g.add("case", "Case", &["k", "x"], &one(&[("branches", Attr::List(Box::new(list)))]));
    g.add(
        "while",
        "While",
        &["x"],
        &[("T", types(&[F])), ("cond", func("below_ten")), ("body", func("double"))],
    );
    g.add("call", "PartitionedCall", &["x"], &one(&[("f", func("square"))]));
    g.add("direct", "double", &["call"], &[]);
    let session = g.session();
    let x = |value: f32| ("x", Literal::scalar(value));
    assert_eq!(float(&session, &[x(3.0), ("p", Literal::scalar(true))], "if"), 6.0);
    assert_eq!(float(&session, &[x(3.0), ("p", Literal::scalar(false))], "if"), 9.0);
    for (k, y) in [(0, 6.0), (1, 9.0), (7, 9.0), (-1, 9.0)] {
        assert_eq!(float(&session, &[x(3.0), ("k", Literal::scalar(k))], "case"), y);
    }
    assert_eq!(float(&session, &[x(3.0)], "while"), 12.0);
    assert_eq!(float(&session, &[x(11.0)], "while"), 11.0);
    assert_eq!(float(&session, &[x(3.0)], "direct"), 18.0);
}

#[test]
fn invalid_loops_and_cycles_are_rejected_by_name() {
    let mut g = Graph::default();
    g.placeholder("x", F);
    g.add("a", "AddV2", &["x", "b"], &[("T", ty(F))]).add("b", "Neg", &["a"], &[("T", ty(F))]);
    let message = failure(&g.session(), &[("x", Literal::scalar(1f32))], &["b"], &[]);
    assert!(message.contains("cycle") && message.contains("'a'"), "{message}");

    let mut g = Graph::default();
    g.float("x", 1.0).add("out", "Exit", &["x"], &[("T", ty(F))]);
    let message = failure(&g.session(), &[], &["out"], &[]);
    assert!(message.contains("'out'") && message.contains("outside of any loop"), "{message}");

    let mut g = sum_below(10);
    g.add("mixed", "AddV2", &["loop/add", "zero"], &[("T", ty(I))]);
    let message = failure(&g.session(), &[("limit", Literal::scalar(3i32))], &["mixed"], &[]);
    assert!(message.contains("'mixed'") && message.contains("different frames"), "{message}");
}
