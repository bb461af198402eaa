//! Slices in clusters whose start changes between runs or iterations: all of them share one kernel.

use crate::graph::{F, Graph, I, floats, text, ty};
use cluster::{Flags, JitLevel};
use session::{Options, Session};
use shape::Literal;
use tf::proto::attr_value::Value as Attr;

/// Rows of three numbers: row `i` is `[3 i, 3 i + 1, 3 i + 2]`.
fn rows(count: i64) -> Literal {
    Literal::from_elements(&[count, 3], &(0..3 * count).map(|x| x as f32).collect::<Vec<_>>())
}

/// A session that clusters every node that supports it and compiles each cluster.
fn clustered(g: &Graph) -> Session {
    let flags = Flags { cpu_global_jit: true, min_cluster_size: 1, ..Flags::default() };
    let rewrite = session::clusters(cluster::Options::new(JitLevel::On2, flags), Box::new(cluster::Silent));
    g.session_with(Options { rewrite: Some(rewrite), ..Options::default() })
}

/// Ways to write `cut`, a slice of `x` at `i`; then `y = cut + cut`.
const WAYS: &[&str] = &["Slice", "Slice to the end", "index", "range"];

/// Adds a slice of `from` at row `at`; names begin with `prefix`.
fn slice(g: &mut Graph, way: &str, prefix: &str, from: &str, at: &str) -> String {
    let name = |name: &str| format!("{prefix}{name}");
    let (zero, one, begin, end, strides) =
        (name("zero"), name("one"), name("begin"), name("end"), name("strides"));
    let pack = |n: i64| [("T", ty(I)), ("N", Attr::I(n)), ("axis", Attr::I(0))];
    let cut = name("cut");
    match way {
        "Slice" | "Slice to the end" => {
            g.int(&zero, 0).ints(&one, &[1, if way == "Slice" { 3 } else { -1 }]);
            g.add(&begin, "Pack", &[at, &zero], &pack(2));
            g.add(&cut, "Slice", &[from, &begin, &one], &[("T", ty(F)), ("Index", ty(I))]);
        }
        _ => {
            g.int(&one, 1).ints(&strides, &[1]).add(&begin, "Pack", &[at], &pack(1));
            g.add(&name("next"), "AddV2", &[at, &one], &[("T", ty(I))]);
            g.add(&end, "Pack", &[&name("next")], &pack(1));
            let shrink = Attr::I(i64::from(way == "index"));
            let attributes = [("T", ty(F)), ("Index", ty(I)), ("shrink_axis_mask", shrink)];
            g.add(&cut, "StridedSlice", &[from, &begin, &end, &strides], &attributes);
        }
    }
    cut
}

#[test]
fn a_slice_that_moves_between_runs_is_compiled_once() {
    for way in WAYS {
        for is_inside in [false, true] {
            let mut g = Graph::default();
            g.placeholder("x", F).placeholder("i", I).add("exp", "Neg", &["x"], &[("T", ty(F))]);
            let cut = slice(&mut g, way, "", if is_inside { "exp" } else { "x" }, "i");
            g.add("y", "AddV2", &[&cut, &cut], &[("T", ty(F))]);
            let session = clustered(&g);
            let mut compiled = 0;
            for i in 0..10 {
                let y = floats(&session, &[("x", rows(10)), ("i", Literal::scalar(i))], "y");
                let sign = if is_inside { -2.0 } else { 2.0 };
                let want: Vec<f32> = (0..3).map(|k| sign * (3 * i + k) as f32).collect();
                assert_eq!(y, want, "{way} at {i}");
                if i == 0 {
                    compiled = session.compiled_kernels();
                }
            }
            assert_eq!(session.compiled_kernels(), compiled, "{way}, {is_inside}");
        }
    }
}

/// Sums a hundred rows in a TensorFlow 1 loop, one row per iteration.
#[test]
fn a_hundred_slices_in_a_loop_are_one_kernel() {
    for way in WAYS {
        let mut g = Graph::default();
        g.placeholder("x", F).int("first", 0).int("limit", 100);
        let sizes: &[i64] = if *way == "index" { &[3] } else { &[1, 3] };
        g.constant("none", Literal::from_elements(sizes, &[0f32; 3]));
        let frame = [("frame_name", text("loop")), ("parallel_iterations", Attr::I(1))];
        let enter =
            |t, is_constant| [&frame[..], &[("T", ty(t)), ("is_constant", Attr::B(is_constant))]].concat();
        g.add("enter_i", "Enter", &["first"], &enter(I, false));
        g.add("enter_sum", "Enter", &["none"], &enter(F, false));
        g.add("enter_limit", "Enter", &["limit"], &enter(I, true));
        g.add("enter_x", "Enter", &["x"], &enter(F, true));
        let (int, float) = ([("T", ty(I))], [("T", ty(F))]);
        g.add("merge_i", "Merge", &["enter_i", "next_i"], &[("T", ty(I)), ("N", Attr::I(2))]);
        g.add("merge_sum", "Merge", &["enter_sum", "next_sum"], &[("T", ty(F)), ("N", Attr::I(2))]);
        g.add("less", "Less", &["merge_i", "enter_limit"], &int).add("goes_on", "LoopCond", &["less"], &[]);
        g.add("switch_i", "Switch", &["merge_i", "goes_on"], &int);
        g.add("switch_sum", "Switch", &["merge_sum", "goes_on"], &float);
        g.add("sum", "Exit", &["switch_sum"], &float);
        let before = g.def.node.len();
        let cut = slice(&mut g, way, "body/", "enter_x", "switch_i:1");
        g.int("step", 1);
        // A constant belongs to the iteration that its control input belongs to.
        for node in g.def.node[before..].iter_mut().filter(|node| node.op == "Const") {
            node.input.push("^switch_i".to_owned());
        }
        g.add("add_i", "AddV2", &["switch_i:1", "step"], &int).add(
            "next_i",
            "NextIteration",
            &["add_i"],
            &int,
        );
        g.add("add_sum", "AddV2", &["switch_sum:1", &cut], &float);
        g.add("next_sum", "NextIteration", &["add_sum"], &float);

        let session = clustered(&g);
        let (sum, executions) = session.run_recorded(&[("x", rows(100))], &["sum"], &[]).expect("a run");
        // For column k: 3 times 4950, plus k for each of the hundred rows.
        assert_eq!(sum[0].to_vec::<f32>(), Some(vec![14850.0, 14950.0, 15050.0]), "{way}");
        let count = |op: &str| executions.iter().filter(|execution| execution.op == op).count();
        assert!(count("_XlaLaunch") >= 100, "{way}");
        assert_eq!(count("Slice") + count("StridedSlice"), 0, "{way}");
        // The loop body. The counter and the comparison run in the executor or in one or two other
        // clusters.
        assert!(session.compiled_kernels() <= 4, "{way}: {}", session.compiled_kernels());
    }
}

/// The gradient of an index writes the row back to its position.
#[test]
fn the_gradient_of_an_index_is_compiled_once() {
    let mut g = Graph::default();
    g.placeholder("dy", F).placeholder("i", I).ints("shape", &[10, 3]).ints("strides", &[1]).int("one", 1);
    let pack = [("T", ty(I)), ("N", Attr::I(1)), ("axis", Attr::I(0))];
    g.add("next", "AddV2", &["i", "one"], &[("T", ty(I))]);
    g.add("begin", "Pack", &["i"], &pack).add("end", "Pack", &["next"], &pack);
    let attributes = [("T", ty(F)), ("Index", ty(I)), ("shrink_axis_mask", Attr::I(1))];
    g.add("back", "StridedSliceGrad", &["shape", "begin", "end", "strides", "dy"], &attributes);
    g.add("y", "AddV2", &["back", "back"], &[("T", ty(F))]);
    let session = clustered(&g);
    let dy = Literal::from_elements(&[3], &[1f32, 2.0, 3.0]);
    let mut compiled = 0;
    for i in 0..10 {
        let y = floats(&session, &[("dy", dy.clone()), ("i", Literal::scalar(i))], "y");
        let mut want = [0f32; 30];
        want[3 * i as usize..3 * i as usize + 3].copy_from_slice(&[2.0, 4.0, 6.0]);
        assert_eq!(y, want);
        compiled = if i == 0 { session.compiled_kernels() } else { compiled };
        assert_eq!(session.compiled_kernels(), compiled);
    }
}

/// Unrelated ends determine the size of a slice. Each length gets its own kernel and the correct
/// result.
#[test]
fn a_slice_whose_length_changes_is_compiled_for_each_length() {
    let mut g = Graph::default();
    g.placeholder("x", F).placeholder("from", I).placeholder("to", I).ints("strides", &[1]);
    let pack = [("T", ty(I)), ("N", Attr::I(1)), ("axis", Attr::I(0))];
    g.add("begin", "Pack", &["from"], &pack).add("end", "Pack", &["to"], &pack);
    let attributes = [("T", ty(F)), ("Index", ty(I))];
    g.add("cut", "StridedSlice", &["x", "begin", "end", "strides"], &attributes);
    g.add("y", "AddV2", &["cut", "cut"], &[("T", ty(F))]);
    let session = clustered(&g);
    let mut seen = Vec::new();
    for (from, to) in [(0, 2), (3, 4), (9, 10), (5, 5)] {
        let feeds = [("x", rows(10)), ("from", Literal::scalar(from)), ("to", Literal::scalar(to))];
        let y = session.run(&feeds, &["y"], &[]).expect("a run").remove(0);
        assert_eq!(y.array_shape().sizes(), [i64::from(to - from), 3]);
        let want: Vec<f32> = (3 * from..3 * to).map(|x| 2.0 * x as f32).collect();
        assert_eq!(y.to_vec::<f32>(), Some(want));
        seen.push(session.compiled_kernels());
    }
    assert!(seen.is_sorted() && seen[1] > seen[0], "{seen:?}");
}
