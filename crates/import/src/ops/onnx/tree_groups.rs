//! The choice of trees that are walked together.
//!
//! A group walks as many steps as its deepest tree has, and each step costs a kernel. Words beyond
//! those that a processor's L2 cache holds are slower to look up.

use crate::ops::onnx::tree_nodes::Ensemble;

/// Time of a kernel, in steps of one tree with one row.
const KERNEL: f64 = 64.0;

/// Bytes of words that are looked up in the usual time, if several rows use them.
const NEAR_BYTES: f64 = (1 << 18) as f64;

/// Bytes of a word.
const WORD_BYTES: usize = 8;

/// Most groups.
const MOST: usize = 64;

/// Fewest rows of a block.
const ROWS_OF_BLOCK: i64 = 64;

/// Most blocks.
const MOST_BLOCKS: i64 = 4;

/// Number of blocks of rows, whose loops run side by side.
pub(super) fn blocks(rows: i64) -> i64 {
    (rows / ROWS_OF_BLOCK).clamp(1, MOST_BLOCKS)
}

/// The depth of a tree and the bytes of its words.
#[derive(Clone, Copy)]
struct Size {
    depth: usize,
    bytes: usize,
}

fn size_of_tree(ensemble: &Ensemble, root: usize) -> Size {
    let (mut depth, mut count) = (0, 1);
    let mut level = vec![root];
    loop {
        let tests = level.iter().map(|&k| &ensemble.nodes[k]).filter(|node| !node.is_leaf());
        level = tests.flat_map(|node| node.children()).collect();
        if level.is_empty() {
            return Size { depth, bytes: count * WORD_BYTES };
        }
        depth += 1;
        count += level.len();
    }
}

/// Partitions trees, given by class, into groups that have as many of each class.
pub(super) fn of(ensemble: &Ensemble, classes: Vec<Vec<usize>>, rows: i64) -> Vec<Vec<usize>> {
    let count = classes.first().map_or(0, Vec::len);
    let mut columns = vec![Size { depth: 0, bytes: 0 }; count];
    let mut sorted = Vec::new();
    for trees in classes {
        let mut trees: Vec<(Size, usize)> =
            trees.into_iter().map(|root| (size_of_tree(ensemble, root), root)).collect();
        trees.sort_by_key(|(size, _)| size.depth);
        for (column, (size, _)) in columns.iter_mut().zip(&trees) {
            column.depth = column.depth.max(size.depth);
            column.bytes += size.bytes;
        }
        sorted.push(trees);
    }
    let cuts: Vec<usize> = {
        let stride = count.div_ceil(MOST).max(1);
        (0..count).step_by(stride).chain([count]).collect()
    };
    let mut bytes_before = vec![0usize];
    for column in &columns {
        bytes_before.push(bytes_before[bytes_before.len() - 1] + column.bytes);
    }
    let time = |from: usize, to: usize| {
        let steps = columns[to - 1].depth as f64;
        let trees = ((to - from) * sorted.len()) as f64;
        let excess = (bytes_before[to] - bytes_before[from]) as f64 / NEAR_BYTES;
        let of_word = if rows > 1 { 1.0 + excess.max(1.0).log2() / 2.0 } else { 1.0 };
        steps * (KERNEL + rows as f64 * trees * of_word)
    };
    // The least time up to each cut, and the cut before it.
    let mut best = vec![(0.0, 0)];
    for (k, &to) in cuts.iter().enumerate().skip(1) {
        let times = (0..k).map(|before| (best[before].0 + time(cuts[before], to), before));
        best.push(times.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default());
    }
    let mut groups = Vec::new();
    let mut end = cuts.len() - 1;
    while end > 0 {
        let before = best[end].1;
        let (from, to) = (cuts[before], cuts[end]);
        groups.push(sorted.iter().flat_map(|trees| trees[from..to].iter().map(|(_, root)| *root)).collect());
        end = before;
    }
    groups
}
