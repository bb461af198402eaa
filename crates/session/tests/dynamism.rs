//! Slices in clusters whose begin changes from run to run, or from iteration to iteration: one kernel for all of them.

mod graph;

use cluster::{Flags, JitLevel};
use graph::{F, Graph, I, floats, ty};
use session::{Launches, Options, Session};
use shape::Literal;
use tf::proto::attr_value::Value as Attr;

/// Ten rows of three numbers: row `i` is `[3 i, 3 i + 1, 3 i + 2]`.
fn rows() -> Literal {
    Literal::from_elements(&[10, 3], &(0..30).map(|x| x as f32).collect::<Vec<_>>())
}

/// A session in which all that can be is in clusters, compiled for whatever comes.
fn clustered(g: &Graph) -> Session {
    let flags = Flags { cpu_global_jit: true, min_cluster_size: 1, ..Flags::default() };
    let rewrite = session::clusters(cluster::Options::new(JitLevel::On2, flags), Box::new(cluster::Silent));
    g.session_with(Options { rewrite: Some(rewrite), launches: Launches::default(), ..Options::default() })
}

/// `cut`, a slice of `x` at `i`, in these ways; then `y = cut + cut`.
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
fn a_slice_that_moves_on_from_run_to_run_is_compiled_once() {
    for way in WAYS {
        for is_inside in [false, true] {
            let mut g = Graph::default();
            g.placeholder("x", F).placeholder("i", I).add("exp", "Neg", &["x"], &[("T", ty(F))]);
            let cut = slice(&mut g, way, "", if is_inside { "exp" } else { "x" }, "i");
            g.add("y", "AddV2", &[&cut, &cut], &[("T", ty(F))]);
            let session = clustered(&g);
            let mut compiled = 0;
            for i in 0..10 {
                let y = floats(&session, &[("x", rows()), ("i", Literal::scalar(i))], "y");
                let sign = if is_inside { -2.0 } else { 2.0 };
                let want: Vec<f32> = (0..3).map(|k| sign * (3 * i + k) as f32).collect();
                assert_eq!(y, want, "{way} at {i}");
                if i == 0 {
                    compiled = session.compiled_kernels();
                }
            }
            eprintln!("{way} {is_inside}: {compiled} {}", session.compiled_kernels());
        }
    }
}
