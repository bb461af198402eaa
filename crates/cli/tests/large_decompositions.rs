//! Decompositions of matrices large enough to be computed in blocks, checked against their
//! definitions.

use crate::support::{succeed, tfcompile};
use shape::Literal;

const GRAPH: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_DOUBLE } } }
node { name: "lu" op: "Lu" input: "x" attr { key: "T" value { type: DT_DOUBLE } }
       attr { key: "output_idx_type" value { type: DT_INT32 } } }
node { name: "inverse" op: "MatrixInverse" input: "x" attr { key: "T" value { type: DT_DOUBLE } } }
node { name: "det" op: "LogMatrixDeterminant" input: "x" attr { key: "T" value { type: DT_DOUBLE } } }
"#;

/// More than two blocks, but not a whole number of blocks.
const N: usize = 150;

const CONFIG: &str = r#"
feed { id { node_name: "x" } shape { dim { size: 2 } dim { size: 150 } dim { size: 150 } } }
fetch { id { node_name: "lu" } name: "factors" }
fetch { id { node_name: "lu" output_index: 1 } name: "rows" }
fetch { id { node_name: "inverse" } name: "inverse" }
fetch { id { node_name: "det" } name: "sign" }
fetch { id { node_name: "det" output_index: 1 } name: "log" }
"#;

/// Returns random numbers in [-1, 1).
fn noise(count: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Sign of a permutation, 1 or -1.
fn sign_of(mut order: Vec<usize>) -> f64 {
    let mut sign = 1.0;
    for k in 0..order.len() {
        while order[k] != k {
            let at = order[k];
            order.swap(k, at);
            sign = -sign;
        }
    }
    sign
}

#[test]
fn large_matrices_are_eliminated_in_blocks() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in [("graph.pbtxt", GRAPH), ("config.pbtxt", CONFIG)] {
        std::fs::write(directory.path().join(name), text).expect("writable");
    }
    let a = noise(2 * N * N);
    let x = Literal::from_elements(&[2, N as i64, N as i64], &a);
    std::fs::write(directory.path().join("x.npy"), npz::write_npy(&x)).expect("writable");
    let mut run = tfcompile(directory.path());
    run.args(["run", "graph.pbtxt", "--config", "config.pbtxt", "--feed", "x=x.npy", "--out", "out.npz"]);
    succeed(&mut run);
    let archive = std::fs::read(directory.path().join("out.npz")).expect("readable");
    let mut archive = npz::Archive::open(archive.into(), 1 << 24).expect("an archive");
    let mut doubles = |name: &str| archive.require(name).expect("a member").to_vec::<f64>().expect("f64");
    let (factors, inverse) = (doubles("factors"), doubles("inverse"));
    let (signs, logs) = (doubles("sign"), doubles("log"));
    let order = archive.require("rows").expect("a member").to_vec::<i32>().expect("s32");
    for batch in 0..2 {
        let at = |x: &[f64], i: usize, j: usize| x[(batch * N + i) * N + j];
        let rows: Vec<usize> = order[batch * N..][..N].iter().map(|&row| row as usize).collect();
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..N));
        for (i, &row) in rows.iter().enumerate() {
            for j in 0..N {
                let lower = |k: usize| if k == i { 1.0 } else { at(&factors, i, k) };
                let product: f64 = (0..=i.min(j)).map(|k| lower(k) * at(&factors, k, j)).sum();
                assert!((product - at(&a, row, j)).abs() < 1e-12, "{batch} {i} {j}");
                assert!(j >= i || at(&factors, i, j).abs() <= 1.0, "a pivot is the largest");
                let one: f64 = (0..N).map(|k| at(&a, i, k) * at(&inverse, k, j)).sum();
                assert!((one - f64::from(u8::from(i == j))).abs() < 1e-9, "{batch} {i} {j}");
            }
        }
        let pivots = (0..N).map(|k| at(&factors, k, k));
        let sign = pivots.clone().fold(sign_of(rows), |sign, pivot| sign * pivot.signum());
        let log: f64 = pivots.map(|pivot| pivot.abs().ln()).sum();
        assert_eq!(signs[batch], sign);
        assert!((logs[batch] - log).abs() < 1e-9, "{log} {}", logs[batch]);
    }
}
