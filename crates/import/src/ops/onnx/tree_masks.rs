//! Decision trees whose tests are all made at once.
//!
//! The leaves of a tree have bits, from the first one, which is reached if all tests hold. A test
//! that fails clears the bits of the leaves beyond its other child. The first bit that is left is
//! that of the row's leaf (Lucchese et al., "QuickScorer", SIGIR 2015). The bits are in words, each
//! of which needs only the tests that clear some of its bits.

use crate::node::context::NodeContext;
use crate::ops::onnx::tree_nodes::{Ensemble, Mode, direction};
use bounded::Reducer;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use support::Result;

/// Leaves with bits in one word.
const WORD: usize = 64;

/// Most leaves of a tree.
const MOST_LEAVES: usize = 16 * WORD;

/// Most tests of all trees.
const MOST_TESTS: usize = 1 << 22;

/// Tests that take the time of a step from a node to its child, for few rows and for many.
const TESTS_PER_STEP: [usize; 2] = [3, 20];

/// Fewest rows that fill a vector.
const MANY_ROWS: i64 = 8;

/// A test of a tree: its node, and the leaves that a row cannot reach if it fails.
struct Test {
    node: usize,
    excluded: Range<usize>,
}

/// One tree.
#[derive(Default)]
struct Tree {
    tests: Vec<Test>,
    /// The nodes that are leaves, from the first bit.
    leaves: Vec<usize>,
}

impl Tree {
    /// `None` if there are too many leaves, or if two nodes share a child.
    fn of(ensemble: &Ensemble, root: usize) -> Option<Self> {
        enum Ahead {
            Node(usize),
            /// The second child of a node, after the leaves beyond the first one, which start here.
            Second(usize, usize),
        }
        let (mut tree, mut seen) = (Self::default(), BTreeSet::new());
        let mut ahead = vec![Ahead::Node(root)];
        while let Some(next) = ahead.pop() {
            match next {
                Ahead::Node(node) if !seen.insert(node) => return None,
                Ahead::Node(node) if ensemble.nodes[node].is_leaf() => {
                    tree.leaves.push(node);
                    if tree.leaves.len() > MOST_LEAVES {
                        return None;
                    }
                }
                Ahead::Node(node) => {
                    ahead.push(Ahead::Second(node, tree.leaves.len()));
                    ahead.push(Ahead::Node(ensemble.nodes[node].children()[0]));
                }
                Ahead::Second(node, first) => {
                    tree.tests.push(Test { node, excluded: first..tree.leaves.len() });
                    ahead.push(Ahead::Node(ensemble.nodes[node].children()[1]));
                }
            }
        }
        Some(tree)
    }

    /// The tests that exclude leaves of a word, each with the bits of the leaves that it keeps.
    fn tests_of(&self, word: usize) -> Vec<(usize, u64)> {
        let own = word * WORD..(word + 1) * WORD;
        let overlap = |test: &Test| test.excluded.start.max(own.start)..test.excluded.end.min(own.end);
        let kept = |leaves: Range<usize>| {
            !leaves.fold(0u64, |bits, leaf| bits | 1 << (WORD - 1 - (leaf - own.start)))
        };
        let tests = self.tests.iter().filter(|test| !overlap(test).is_empty());
        tests.map(|test| (test.node, kept(overlap(test)))).collect()
    }
}

/// The words with the same place in trees.
struct Level {
    /// The tests of each tree.
    trees: Vec<Vec<(usize, u64)>>,
    /// Tests of a tree at most.
    tests: usize,
    /// True if no tree has leaves in the lower half of the word.
    is_short: bool,
}

/// Trees, and the form of their tests.
pub(super) struct Masks {
    /// Later levels are those of the first trees, which have more words.
    levels: Vec<Level>,
    leaves: Vec<Vec<usize>>,
    mode: Mode,
}

impl Masks {
    /// The masks of trees with these roots, which may be in any order if `may_sort`.
    ///
    /// Returns `None` if making all tests takes longer than following paths, or if tests differ in
    /// more than a threshold and in what NaN means.
    pub(super) fn of(ensemble: &Ensemble, roots: &[usize], rows: i64, may_sort: bool) -> Option<Self> {
        let mut trees = roots.iter().map(|&root| Tree::of(ensemble, root)).collect::<Option<Vec<_>>>()?;
        let all = || trees.iter().flat_map(|tree| &tree.tests).map(|test| ensemble.nodes[test.node]);
        let mode = all().next()?.mode;
        let has_one_mode = all().all(|node| node.mode == mode);
        // As the smallest number, NaN passes these tests.
        let takes_nan = mode == Mode::LessEqual || all().all(|node| !node.tracks_true);
        if !has_one_mode || !takes_nan {
            return None;
        }
        let words = |tree: &Tree| tree.leaves.len().div_ceil(WORD);
        if may_sort {
            trees.sort_by_key(|tree| Reverse(words(tree)));
        }
        let mut levels = Vec::new();
        for word in 0..trees.iter().map(words).max()? {
            let count = if may_sort { trees.partition_point(|tree| words(tree) > word) } else { trees.len() };
            let tests: Vec<_> = trees[..count].iter().map(|tree| tree.tests_of(word)).collect();
            levels.push(Level {
                tests: tests.iter().map(Vec::len).max()?.max(1),
                is_short: trees[..count].iter().all(|tree| tree.leaves.len() <= word * WORD + WORD / 2),
                trees: tests,
            });
        }
        let tests: usize = levels.iter().map(|level| level.tests * level.trees.len()).sum();
        let steps: usize = roots.iter().map(|&root| ensemble.depth(&[root])).sum();
        let pays = tests <= MOST_TESTS && tests <= TESTS_PER_STEP[usize::from(rows >= MANY_ROWS)] * steps;
        let leaves = trees.into_iter().map(|tree| tree.leaves).collect();
        pays.then_some(Self { levels, leaves, mode })
    }

    /// The numbers of the leaves of each row and tree, and the nodes that are the leaves.
    pub(super) fn leaves(
        &self,
        cx: &mut NodeContext<'_, '_>,
        ensemble: &Ensemble,
        x: InstructionId,
    ) -> Result<(InstructionId, Vec<usize>)> {
        let (rows, trees) = (cx.sizes(x)[0], self.leaves.len() as i64);
        // The leaf of each tree with this level or a later one.
        let mut leaf: Option<InstructionId> = None;
        for (word, level) in self.levels.iter().enumerate().rev() {
            let left = self.left(cx, ensemble, x, level)?;
            let own = cx.op(Op::CountLeadingZeros {}, &[left])?;
            let own = cx.convert(own, PrimitiveType::S32)?;
            let own = cx.add_scalar(own, (word * WORD) as f64)?;
            leaf = Some(match leaf {
                None => own,
                Some(later) => {
                    let count = cx.sizes(later)[1];
                    let first = cx.slice_in(left, 1, 0, count)?;
                    let is_here = cx.compare_scalar(ComparisonDirection::Ne, first, 0.0)?;
                    let first = cx.slice_in(own, 1, 0, count)?;
                    let first = cx.select(is_here, first, later)?;
                    let others = cx.slice_in(own, 1, count, level.trees.len() as i64)?;
                    cx.concatenate(&[first, others], 1)?
                }
            });
        }
        let leaf = leaf.ok_or_else(|| cx.invalid("there are no trees"))?;
        let mut nodes = Vec::new();
        let mut firsts = Vec::new();
        for leaves in &self.leaves {
            firsts.push(nodes.len() as i32);
            nodes.extend(leaves);
        }
        let firsts = cx.literal(Literal::from_elements(&[trees], &firsts));
        let firsts = cx.broadcast(firsts, &[rows, trees], &[1])?;
        Ok((cx.add(leaf, firsts)?, nodes))
    }

    /// The bits that are left in the words of a level: (rows, trees).
    fn left(
        &self,
        cx: &mut NodeContext<'_, '_>,
        ensemble: &Ensemble,
        x: InstructionId,
        level: &Level,
    ) -> Result<InstructionId> {
        let (rows, features) = (cx.sizes(x)[0], cx.sizes(x)[1]);
        let (tests, trees) = (level.tests as i64, level.trees.len() as i64);
        let all = level.trees.iter().flatten();
        let tracks_true = all.clone().any(|&(node, _)| ensemble.nodes[node].tracks_true);
        // The innermost dimension becomes vectors: rows, whose values of a feature are neighbors,
        // or trees, which look up their features.
        let by_rows = cx.form_rows(rows) >= MANY_ROWS;
        // A tree of fewer tests has some that exclude nothing.
        let of_tests = || {
            let place = |k: usize| {
                if by_rows {
                    (k / level.tests, k % level.tests)
                } else {
                    (k % level.trees.len(), k / level.trees.len())
                }
            };
            (0..level.tests * level.trees.len()).map(move |k| {
                let (tree, test) = place(k);
                level.trees[tree].get(test)
            })
        };
        let node = |test: Option<&(usize, u64)>| test.map(|&(node, _)| ensemble.nodes[node]);
        let table = if by_rows { [trees, tests] } else { [tests, trees] };
        let columns: Vec<i32> = of_tests()
            .map(|test| node(test).map_or(0, |n| n.feature + if n.tracks_true { features as i32 } else { 0 }))
            .collect();
        let thresholds = of_tests().map(|test| node(test).map_or(0.0, |n| n.threshold));
        let thresholds = Literal::from_floats(ArrayShape::new(ensemble.element_type, &table), thresholds);
        let kept: Vec<u64> = of_tests().map(|test| test.map_or(u64::MAX, |test| test.1)).collect();
        let x = if tracks_true {
            let is_nan = cx.compare(ComparisonDirection::Ne, x, x)?;
            let least = cx.splat_like(x, f64::NEG_INFINITY)?;
            let passing = cx.select(is_nan, least, x)?;
            cx.concatenate(&[x, passing], 1)?
        } else {
            x
        };
        let columns = cx.literal(Literal::from_elements(&table, &columns));
        let (values, sizes, of_test) = if by_rows {
            let x = cx.transpose(x, &[1, 0])?;
            (cx.gather_along(x, columns, 0, 0)?, [trees, tests, rows], [0, 1])
        } else {
            (cx.gather_along(x, columns, 1, 0)?, [rows, tests, trees], [1, 2])
        };
        let thresholds = cx.literal(thresholds);
        let thresholds = cx.broadcast(thresholds, &sizes, &of_test)?;
        let holds = cx.compare(direction(self.mode), values, thresholds)?;
        let (kept, all) = if level.is_short {
            let upper: Vec<u32> = kept.iter().map(|bits| (bits >> 32) as u32).collect();
            (Literal::from_elements(&table, &upper), Literal::from_elements(&[], &[u32::MAX]))
        } else {
            (Literal::from_elements(&table, &kept), Literal::from_elements(&[], &[u64::MAX]))
        };
        let (kept, all) = (cx.literal(kept), cx.literal(all));
        let (kept, all) = (cx.broadcast(kept, &sizes, &of_test)?, cx.broadcast(all, &sizes, &[])?);
        let left = cx.select(holds, all, kept)?;
        let left = cx.reduce(left, Reducer::And, &[1])?;
        if by_rows { cx.transpose(left, &[1, 0]) } else { Ok(left) }
    }
}
