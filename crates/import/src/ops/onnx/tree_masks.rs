//! Decision trees of few leaves, whose tests are all made at once.
//!
//! The leaves of a tree have bits, from the first one, which is reached if all tests hold. A test
//! that fails clears the bits of the leaves beyond its other child. The first bit that is left is
//! that of the row's leaf (Lucchese et al., "QuickScorer", SIGIR 2015).

use crate::node::context::NodeContext;
use crate::ops::onnx::tree_nodes::{Ensemble, Mode, direction};
use bounded::Reducer;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use std::collections::BTreeSet;
use support::Result;

/// Most leaves of a tree: the bits of an integer.
const MOST_LEAVES: usize = 64;

/// Tests that take the time of a step from a node to its child.
const TESTS_PER_STEP: usize = 5;

/// Fewest rows that fill a vector.
const MANY_ROWS: i64 = 8;

/// A test of a tree: its node, and the leaves that a row cannot reach if it fails.
struct Test {
    node: usize,
    excluded: u64,
}

/// One tree.
#[derive(Default)]
struct Tree {
    tests: Vec<Test>,
    /// The nodes that are leaves, from the first bit.
    leaves: Vec<usize>,
}

impl Tree {
    /// Adds the nodes from one on; `None` if there are too many, or if two nodes share a child.
    fn visit(&mut self, ensemble: &Ensemble, node: usize, seen: &mut BTreeSet<usize>) -> Option<()> {
        // Each node on the way from the root has another leaf, which is yet to come.
        if self.leaves.len() >= MOST_LEAVES || seen.len() >= 2 * MOST_LEAVES || !seen.insert(node) {
            return None;
        }
        if ensemble.nodes[node].mode == Mode::Leaf {
            self.leaves.push(node);
            return Some(());
        }
        let first = self.leaves.len();
        self.visit(ensemble, ensemble.nodes[node].yes, seen)?;
        let excluded = (first..self.leaves.len()).fold(0, |bits, leaf| bits | 1 << (MOST_LEAVES - 1 - leaf));
        self.tests.push(Test { node, excluded });
        self.visit(ensemble, ensemble.nodes[node].no, seen)
    }
}

/// The trees of an ensemble, and the form of their tests.
pub(super) struct Masks {
    trees: Vec<Tree>,
    /// Tests of the largest tree.
    tests: usize,
    mode: Mode,
}

impl Masks {
    /// Returns `None` if making all tests of a tree of this depth takes longer than following a
    /// path, or if tests differ in more than a threshold and in what NaN means.
    pub(super) fn of(ensemble: &Ensemble, depth: usize) -> Option<Self> {
        let mut trees = Vec::new();
        for &root in &ensemble.roots {
            let mut tree = Tree::default();
            tree.visit(ensemble, root, &mut BTreeSet::new())?;
            trees.push(tree);
        }
        let tests = trees.iter().map(|tree| tree.tests.len()).max()?;
        let all = || trees.iter().flat_map(|tree| &tree.tests).map(|test| ensemble.nodes[test.node]);
        let mode = all().next()?.mode;
        let has_one_mode = all().all(|node| node.mode == mode);
        // As the smallest number, NaN passes these tests.
        let takes_nan = mode == Mode::LessEqual || all().all(|node| !node.tracks_true);
        (has_one_mode && takes_nan && tests <= TESTS_PER_STEP * depth).then_some(Self { trees, tests, mode })
    }

    /// The numbers of the leaves of each row and tree, and the nodes that are the leaves.
    pub(super) fn leaves(
        &self,
        cx: &mut NodeContext<'_, '_>,
        ensemble: &Ensemble,
        x: InstructionId,
    ) -> Result<(InstructionId, Vec<usize>)> {
        let (rows, features) = (cx.sizes(x)[0], cx.sizes(x)[1]);
        let (tests, trees) = (self.tests as i64, self.trees.len() as i64);
        let tracks_true =
            self.trees.iter().flat_map(|tree| &tree.tests).any(|test| ensemble.nodes[test.node].tracks_true);
        // Test by test, and in each the trees. A tree of fewer tests has some that exclude nothing.
        let of_tests = || (0..self.tests).flat_map(|k| self.trees.iter().map(move |tree| tree.tests.get(k)));
        let node = |test: Option<&Test>| test.map(|test| ensemble.nodes[test.node]);
        let columns: Vec<i32> = of_tests()
            .map(|test| {
                node(test).map_or(0, |n| (n.feature + if n.tracks_true { features } else { 0 }) as i32)
            })
            .collect();
        let thresholds: Vec<f32> = of_tests().map(|test| node(test).map_or(0.0, |n| n.threshold)).collect();
        let kept: Vec<u64> = of_tests().map(|test| test.map_or(u64::MAX, |test| !test.excluded)).collect();
        let x = if tracks_true {
            let is_nan = cx.compare(ComparisonDirection::Ne, x, x)?;
            let least = cx.splat_like(x, f64::NEG_INFINITY)?;
            let passing = cx.select(is_nan, least, x)?;
            cx.concatenate(&[x, passing], 1)?
        } else {
            x
        };
        let columns = cx.literal(Literal::from_elements(&[tests, trees], &columns));
        // The innermost dimension becomes vectors: rows, whose values of a feature are neighbors,
        // or trees, which look up their features.
        let by_rows = cx.form_rows(rows) >= MANY_ROWS;
        let (values, sizes, of_test) = if by_rows {
            let x = cx.transpose(x, &[1, 0])?;
            (cx.gather_along(x, columns, 0, 0)?, [tests, trees, rows], [0, 1])
        } else {
            (cx.gather_along(x, columns, 1, 0)?, [rows, tests, trees], [1, 2])
        };
        let thresholds = cx.literal(Literal::from_elements(&[tests, trees], &thresholds));
        let thresholds = cx.broadcast(thresholds, &sizes, &of_test)?;
        let holds = cx.compare(direction(self.mode), values, thresholds)?;
        let is_short = self.trees.iter().all(|tree| tree.leaves.len() <= MOST_LEAVES / 2);
        let (kept, all) = if is_short {
            let upper: Vec<u32> = kept.iter().map(|bits| (bits >> 32) as u32).collect();
            (Literal::from_elements(&[tests, trees], &upper), Literal::from_elements(&[], &[u32::MAX]))
        } else {
            (Literal::from_elements(&[tests, trees], &kept), Literal::from_elements(&[], &[u64::MAX]))
        };
        let (kept, all) = (cx.literal(kept), cx.literal(all));
        let (kept, all) = (cx.broadcast(kept, &sizes, &of_test)?, cx.broadcast(all, &sizes, &[])?);
        let left = cx.select(holds, all, kept)?;
        let left = cx.reduce(left, Reducer::And, &[usize::from(!by_rows)])?;
        let left = if by_rows { cx.transpose(left, &[1, 0])? } else { left };
        let leaf = cx.op(Op::CountLeadingZeros {}, &[left])?;
        let leaf = cx.convert(leaf, PrimitiveType::S32)?;
        let mut nodes = Vec::new();
        let mut firsts = Vec::new();
        for tree in &self.trees {
            firsts.push(nodes.len() as i32);
            nodes.extend(&tree.leaves);
        }
        let firsts = cx.literal(Literal::from_elements(&[trees], &firsts));
        let firsts = cx.broadcast(firsts, &[rows, trees], &[1])?;
        Ok((cx.add(leaf, firsts)?, nodes))
    }
}
