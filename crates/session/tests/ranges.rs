//! Clusters whose inputs change their sizes from run to run: other sizes need no compilation.
//!
//! Expected results are computed here, row by row.

use crate::graph::{F, Graph, I, failure, floats, shape, text, ty};
use cluster::{Flags, JitLevel};
use session::{Launches, Options, Session};
use shape::Literal;
use tf::proto::attr_value::Value as Attr;

/// A session that clusters every node that supports it.
fn clustered(g: &Graph, launches: Launches) -> Session {
    let flags = Flags { cpu_global_jit: true, min_cluster_size: 1, ..Flags::default() };
    let rewrite = session::clusters(cluster::Options::new(JitLevel::On2, flags), Box::new(cluster::Silent));
    g.session_with(Options { rewrite: Some(rewrite), launches, ..Options::default() })
}

/// Small numbers that differ from row to row.
fn numbers(sizes: &[i64], seed: i64) -> Vec<f32> {
    (0..sizes.iter().product::<i64>()).map(|k| ((k * 37 + seed * 11) % 23) as f32 / 8.0 - 1.25).collect()
}

fn array(sizes: &[i64], seed: i64) -> Literal {
    Literal::from_elements(sizes, &numbers(sizes, seed))
}

fn close(got: &[f32], want: &[f32], what: impl std::fmt::Display) {
    assert_eq!(got.len(), want.len(), "{what}");
    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
    assert!(got.iter().zip(want).all(is_near), "{what}: {got:?}, not {want:?}");
}

/// Adds `product = x w`, for `w` with `columns` columns.
fn product(g: &mut Graph, rows: i64, columns: i64) {
    g.placeholder("x", F).constant("w", array(&[rows, columns], 3));
    g.add("product", "MatMul", &["x", "w"], &[("T", ty(F))]);
}

fn times_w(x: &[f32], rows: i64, columns: i64) -> Vec<f32> {
    let w = numbers(&[rows, columns], 3);
    let (rows, columns) = (rows as usize, columns as usize);
    let of_row = |x: &[f32]| {
        (0..columns).map(|c| (0..rows).map(|k| x[k] * w[k * columns + c]).sum()).collect::<Vec<f32>>()
    };
    x.chunks(rows).flat_map(of_row).collect()
}

/// The rows of a layer do not depend on each other.
#[test]
fn a_batch_of_independent_rows_is_compiled_for_a_size_and_for_a_range() {
    let mut g = Graph::default();
    product(&mut g, 5, 3);
    g.add("y", "Relu", &["product"], &[("T", ty(F))]);
    let session = clustered(&g, Launches::default());
    let mut compiled = Vec::new();
    for rows in [7, 5, 2, 1, 3, 8, 7, 6, 4, 13, 16, 9, 1, 30] {
        let y = session.run(&[("x", array(&[rows, 5], rows))], &["y"], &[]).expect("a run").remove(0);
        assert_eq!(y.array_shape().sizes(), [rows, 3]);
        let want: Vec<f32> =
            times_w(&numbers(&[rows, 5], rows), 5, 3).into_iter().map(|y| y.max(0.0)).collect();
        close(&y.to_vec::<f32>().expect("floats"), &want, format_args!("{rows} rows"));
        compiled.push(session.compiled_kernels());
    }
    // For 7, up to 8, up to 16, and up to 32.
    assert_eq!(compiled, [1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4]);
}

/// The mean over the batch depends on all rows.
#[test]
fn a_sum_over_a_changing_number_of_rows_ignores_the_rest() {
    let mut g = Graph::default();
    product(&mut g, 5, 3);
    g.int("axis", 0);
    let attributes = [("T", ty(F)), ("Tidx", ty(I)), ("keep_dims", Attr::B(true))];
    g.add("mean", "Mean", &["product", "axis"], &attributes);
    g.add("y", "Sub", &["product", "mean"], &[("T", ty(F))]);
    let session = clustered(&g, Launches::default());
    let mut compiled = Vec::new();
    for rows in [4, 6, 8, 3, 2, 7, 4, 5, 1, 9, 12] {
        let found = floats(&session, &[("x", array(&[rows, 5], rows))], "y");
        let product = times_w(&numbers(&[rows, 5], rows), 5, 3);
        let mean = |c: usize| product.iter().skip(c).step_by(3).sum::<f32>() / rows as f32;
        let want: Vec<f32> = product.iter().enumerate().map(|(k, y)| y - mean(k % 3)).collect();
        close(&found, &want, format_args!("{rows} rows"));
        compiled.push(session.compiled_kernels());
    }
    // For 4, up to 8, for 1, which is a size of its own, and up to 16.
    assert_eq!(compiled, [1, 2, 2, 2, 2, 2, 2, 2, 3, 4, 4]);
}

/// Rows that are independent, but not of how many there are.
#[test]
fn the_number_of_rows_is_that_of_the_run() {
    let mut g = Graph::default();
    g.placeholder("x", F).int("zero", 0).add("negative", "Neg", &["x"], &[("T", ty(F))]);
    g.add("shape", "Shape", &["negative"], &[("T", ty(F)), ("out_type", ty(I))]);
    let gather = [("Tparams", ty(I)), ("Tindices", ty(I)), ("Taxis", ty(I))];
    g.add("rows", "GatherV2", &["shape", "zero", "zero"], &gather);
    g.add("count", "Cast", &["rows"], &[("SrcT", ty(I)), ("DstT", ty(F))]);
    g.add("y", "Mul", &["negative", "count"], &[("T", ty(F))]);
    for launches in [Launches::default(), Launches { is_lazy: true, ..Launches::default() }] {
        let session = clustered(&g, launches);
        for rows in [4, 6, 5, 1, 3, 9, 2, 8] {
            let x = numbers(&[rows, 2], rows);
            let found = floats(&session, &[("x", array(&[rows, 2], rows))], "y");
            let want: Vec<f32> = x.iter().map(|x| -x * rows as f32).collect();
            close(&found, &want, format_args!("{rows} rows"));
        }
    }
}

/// A batch of sequences, both of which change, alone and together.
fn attention() -> Graph {
    let mut g = Graph::default();
    let float = [("T", ty(F))];
    g.placeholder("q", F).placeholder("k", F);
    g.add("scores", "BatchMatMulV2", &["q", "k"], &[("T", ty(F)), ("adj_y", Attr::B(true))]);
    g.add("weights", "Softmax", &["scores"], &float);
    g.add("y", "BatchMatMulV2", &["weights", "k"], &float);
    g
}

fn attend(q: &[f32], k: &[f32], [batch, from, to, width]: [usize; 4]) -> Vec<f32> {
    let mut results = Vec::new();
    for b in 0..batch {
        for row in 0..from {
            let q = &q[(b * from + row) * width..][..width];
            let key = |t: usize| &k[(b * to + t) * width..][..width];
            let score = |t: usize| q.iter().zip(key(t)).map(|(q, k)| q * k).sum::<f32>().exp();
            let total: f32 = (0..to).map(score).sum();
            results.extend((0..width).map(|w| (0..to).map(|t| score(t) * key(t)[w]).sum::<f32>() / total));
        }
    }
    results
}

#[test]
fn several_sizes_that_change_have_names_of_their_own() {
    let session = clustered(&attention(), Launches::default());
    let mut compiled = Vec::new();
    let calls = [
        (2, 4, 4),
        // The sequences.
        (2, 5, 5),
        (2, 8, 8),
        // The batch, too.
        (3, 6, 6),
        (4, 3, 3),
        (2, 7, 7),
        // The sequences differ.
        (3, 6, 7),
        (4, 2, 5),
        (2, 8, 3),
        (3, 3, 3),
    ];
    for (batch, from, to) in calls {
        let (q, k) = ([batch, from, 4], [batch, to, 4]);
        let y = session.run(&[("q", array(&q, from)), ("k", array(&k, to))], &["y"], &[]);
        let y = y.expect("a run").remove(0);
        assert_eq!(y.array_shape().sizes(), q);
        let want = attend(&numbers(&q, from), &numbers(&k, to), [batch, from, to, 4].map(|s| s as usize));
        close(&y.to_vec::<f32>().expect("floats"), &want, format_args!("{batch}, {from}, {to}"));
        compiled.push(session.compiled_kernels());
    }
    assert_eq!(compiled, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]);
}

/// Sizes that were equal until now share a name, but a run in which they differ is still the error
/// that it always was, and an array of one row is still broadcast.
#[test]
fn equal_sizes_may_differ_later() {
    let mut g = Graph::default();
    let float = [("T", ty(F))];
    g.placeholder("a", F).placeholder("b", F).add("sum", "AddV2", &["a", "b"], &float);
    g.add("y", "Neg", &["sum"], &float);
    let session = clustered(&g, Launches::default());
    let feeds = |a: i64, b: i64| [("a", array(&[a, 2], a)), ("b", array(&[b, 2], b + 1))];
    let check = |a: i64, b: i64| {
        let (x, y) = (numbers(&[a, 2], a), numbers(&[b, 2], b + 1));
        let at = |list: &[f32], rows: i64, k: usize| if rows == 1 { list[k % 2] } else { list[k] };
        let count = 2 * a.max(b) as usize;
        let want: Vec<f32> = (0..count).map(|k| -(at(&x, a, k) + at(&y, b, k))).collect();
        close(&floats(&session, &feeds(a, b), "y"), &want, format_args!("{a} and {b} rows"));
        session.compiled_kernels()
    };
    assert_eq!([check(4, 4), check(6, 6), check(7, 7)], [1, 2, 2]);
    for (a, b) in [(6, 5), (2, 8), (3, 4)] {
        let message = failure(&session, &feeds(a, b), &["y"], &[]);
        assert!(message.contains("sum"), "{message}");
    }
    for (a, b) in [(6, 1), (1, 4), (7, 1), (1, 1), (1, 3), (5, 5), (8, 8)] {
        check(a, b);
    }
}

#[test]
fn an_op_without_a_rule_for_ranges_is_compiled_for_each_size() {
    let mut g = Graph::default();
    let of_floats = [("T", ty(F))];
    g.placeholder("x", F).constant("edges", Literal::from_elements(&[1, 2], &[0i32, 1]));
    g.add("mirror", "MirrorPad", &["x", "edges"], &[("T", ty(F)), ("mode", text("SYMMETRIC"))]);
    g.add("y", "AddV2", &["mirror", "mirror"], &of_floats);
    let session = clustered(&g, Launches::default());
    let mut compiled = Vec::new();
    for n in [2i64, 3, 4, 3, 2, 5] {
        let numbers = numbers(&[n], n);
        let want: Vec<f32> = numbers.iter().chain(numbers.last()).map(|x| 2.0 * x).collect();
        close(&floats(&session, &[("x", array(&[n], n))], "y"), &want, n);
        compiled.push(session.compiled_kernels());
    }
    assert_eq!(compiled, [1, 2, 3, 3, 3, 4]);
}

/// A lazy cluster is compiled for its first shape, and then for all others at the second one of
/// them.
#[test]
fn a_lazy_cluster_is_compiled_for_a_range_on_the_second_other_shape() {
    let mut g = Graph::default();
    product(&mut g, 5, 3);
    g.add("y", "Relu", &["product"], &[("T", ty(F))]);
    let session = clustered(&g, Launches { is_lazy: true, ..Launches::default() });
    let (mut by_nodes, mut compilations) = (Vec::new(), Vec::new());
    for rows in [4, 6, 5, 8, 7, 3, 1, 4] {
        let (y, executions) =
            session.run_recorded(&[("x", array(&[rows, 5], rows))], &["y"], &[]).expect("a run");
        let want: Vec<f32> =
            times_w(&numbers(&[rows, 5], rows), 5, 3).into_iter().map(|y| y.max(0.0)).collect();
        close(&y[0].to_vec::<f32>().expect("floats"), &want, format_args!("{rows} rows"));
        by_nodes.push(executions.iter().any(|execution| execution.op == "MatMul"));
        compilations.extend(executions.iter().map(|execution| execution.compilations).max());
    }
    assert_eq!(by_nodes, [false, true, false, false, false, false, false, false]);
    assert_eq!(compilations, [1, 0, 2, 2, 2, 2, 2, 2]);
}

/// A training step: the gradient of a mean over the batch, added to a variable in place.
#[test]
fn a_variable_is_updated_by_batches_of_any_size() {
    let mut g = Graph::default();
    let float = [("T", ty(F))];
    g.add("v", "VarHandleOp", &[], &[("dtype", ty(F)), ("shape", shape(&[3]))]);
    product(&mut g, 5, 3);
    g.int("axis", 0).add("mean", "Mean", &["product", "axis"], &[("T", ty(F)), ("Tidx", ty(I))]);
    g.add("twice", "AddV2", &["mean", "mean"], &float);
    g.add("step", "AssignAddVariableOp", &["v", "twice"], &[("dtype", ty(F))]);
    let session = clustered(&g, Launches::default());
    session.set_variable("v", &Literal::from_elements(&[3], &[1f32, 2.0, 3.0])).expect("set");
    let mut v = [1f32, 2.0, 3.0];
    let mut compiled = Vec::new();
    for rows in [16, 9, 16, 12, 5, 2, 16] {
        session.run(&[("x", array(&[rows, 5], rows))], &[], &["step"]).expect("a run");
        let product = times_w(&numbers(&[rows, 5], rows), 5, 3);
        for (c, v) in v.iter_mut().enumerate() {
            *v += 2.0 * product.iter().skip(c).step_by(3).sum::<f32>() / rows as f32;
        }
        let found = session.variable_value("v").expect("known").expect("a value");
        close(&found.to_vec::<f32>().expect("floats"), &v, format_args!("{rows} rows"));
        compiled.push(session.compiled_kernels());
    }
    assert_eq!(compiled, [1, 2, 2, 2, 2, 2, 2]);
}

/// A reshape whose sizes are computed from the shape of the input, as layers write it.
#[test]
fn sizes_that_are_computed_from_a_shape_need_no_compilation() {
    let mut g = Graph::default();
    let (int, float) = ([("T", ty(I)), ("N", Attr::I(2)), ("axis", Attr::I(0))], [("T", ty(F))]);
    g.placeholder("x", F).int("zero", 0).int("six", 6).constant("w", array(&[6, 3], 3));
    g.add("exp", "Neg", &["x"], &float);
    g.add("shape", "Shape", &["exp"], &[("T", ty(F)), ("out_type", ty(I))]);
    let gather = [("Tparams", ty(I)), ("Tindices", ty(I)), ("Taxis", ty(I))];
    g.add("rows", "GatherV2", &["shape", "zero", "zero"], &gather);
    g.add("sizes", "Pack", &["rows", "six"], &int);
    g.add("flat", "Reshape", &["exp", "sizes"], &[("T", ty(F)), ("Tshape", ty(I))]);
    g.add("product", "MatMul", &["flat", "w"], &float).add("y", "Relu", &["product"], &float);
    let session = clustered(&g, Launches::default());
    let mut compiled = Vec::new();
    for rows in [7, 5, 3, 8, 6, 2] {
        let x: Vec<f32> = numbers(&[rows, 2, 3], rows).iter().map(|x| -x).collect();
        let want: Vec<f32> = times_w(&x, 6, 3).into_iter().map(|y| y.max(0.0)).collect();
        let feeds = [("x", array(&[rows, 2, 3], rows))];
        close(&floats(&session, &feeds, "y"), &want, format_args!("{rows} rows"));
        compiled.push(session.compiled_kernels());
    }
    assert_eq!(compiled[1..], [compiled[1]; 5], "{compiled:?}");
}
