//! Ensembles of decision trees. Small trees make all their tests at once ([`super::tree_masks`]).
//! Otherwise, all trees of all rows take a step at a time ([`super::tree_words`]).

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::onnx::ml::{best_label, post_transform};
use crate::ops::onnx::operands::required;
use crate::ops::onnx::tree_groups;
use crate::ops::onnx::tree_masks::Masks;
use crate::ops::onnx::tree_nodes::{Ensemble, Mode, Node, direction, floats};
use crate::ops::onnx::tree_words::{Walk, Words, of_own_row};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxMlTreeEnsemble", tree_ensemble),
    rule_many("OnnxMlTreeEnsembleClassifier", classifier),
    rule("OnnxMlTreeEnsembleRegressor", regressor),
];

/// Most numbers of a table of leaves.
const MOST_WEIGHTS: usize = 1 << 26;

/// The way in which the numbers of trees become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Average,
    Sum,
    Least,
    Greatest,
}

impl Aggregate {
    fn reducer(self) -> Reducer {
        match self {
            Self::Average | Self::Sum => Reducer::Add,
            Self::Least => Reducer::Minimum,
            Self::Greatest => Reducer::Maximum,
        }
    }

    fn op(self) -> Op {
        match self {
            Self::Average | Self::Sum => Op::Add {},
            Self::Least => Op::Minimum {},
            Self::Greatest => Op::Maximum {},
        }
    }
}

/// A group of trees, and the table of its leaves if they have several numbers.
type Group = (Walk, Option<InstructionId>);

/// The trees by the target that their leaves add to, if each tree has one.
struct Classes {
    /// As many trees for each class. All are in one class if leaves add to several targets.
    trees: Vec<Vec<usize>>,
    /// Numbers of a leaf.
    width: i64,
}

impl Ensemble {
    fn classes(&self, aggregate: Aggregate) -> Classes {
        let all = || Classes { trees: vec![self.roots.clone()], width: self.targets };
        if self.targets == 1 || matches!(aggregate, Aggregate::Least | Aggregate::Greatest) {
            return all();
        }
        let mut trees: Vec<Vec<usize>> = vec![Vec::new(); self.targets as usize];
        for &root in &self.roots {
            let mut target = None;
            let mut ahead = vec![root];
            while let Some(node) = ahead.pop() {
                let own = &self.nodes[node];
                if !own.is_leaf() {
                    ahead.extend(own.children());
                }
                for weight in self.weights_of(node) {
                    if target.is_some_and(|target| target != weight.target) {
                        return all();
                    }
                    target = Some(weight.target);
                }
            }
            trees[target.unwrap_or(0) as usize].push(root);
        }
        let count = trees[0].len();
        if count > 0 && trees.iter().all(|trees| trees.len() == count) {
            Classes { trees, width: 1 }
        } else {
            all()
        }
    }

    /// The numbers of leaves, one row each.
    fn table(&self, cx: &mut NodeContext<'_, '_>, leaves: &[usize], width: i64) -> Result<InstructionId> {
        let (width, count) = (width as usize, leaves.len());
        cx.check(count.saturating_mul(width) <= MOST_WEIGHTS, || {
            format!("{count} leaves with {width} targets are too many")
        })?;
        let row = |&leaf: &usize| {
            let mut row = vec![0.0; width];
            for weight in self.weights_of(leaf) {
                row[if width == 1 { 0 } else { weight.target as usize }] += weight.value;
            }
            row
        };
        let shape = ArrayShape::new(self.element_type, &[count as i64, width as i64]);
        Ok(cx.literal(Literal::from_floats(shape, leaves.iter().flat_map(row))))
    }

    /// The combined numbers of all trees: (rows, targets).
    fn scores(
        &self,
        cx: &mut NodeContext<'_, '_>,
        x: InstructionId,
        aggregate: Aggregate,
    ) -> Result<InstructionId> {
        let Classes { trees: classes, width } = self.classes(aggregate);
        let (count, all) = (classes.len(), classes.concat());
        let scores = if let Some(masks) = Masks::of(self, &all, cx.form_rows(cx.sizes(x)[0]), count == 1) {
            let (leaf, leaves) = masks.leaves(cx, self, x)?;
            let table = self.table(cx, &leaves, width)?;
            let numbers = cx.gather_along(table, leaf, 0, 0)?;
            self.combined(cx, numbers, count, aggregate)?
        } else if let Some(groups) = self.words(cx, classes, width, x)? {
            self.scores_of_words(cx, &groups, x, count, aggregate)?
        } else {
            let leaf = self.walk(cx, x, &all)?;
            let leaves: Vec<usize> = (0..self.nodes.len()).collect();
            let table = self.table(cx, &leaves, width)?;
            let numbers = cx.gather_along(table, leaf, 0, 0)?;
            self.combined(cx, numbers, count, aggregate)?
        };
        if aggregate == Aggregate::Average {
            return cx.mul_scalar(scores, 1.0 / self.roots.len() as f64);
        }
        Ok(scores)
    }

    /// Combines the numbers of trees that are in as many classes: (rows, targets).
    fn combined(
        &self,
        cx: &mut NodeContext<'_, '_>,
        numbers: InstructionId,
        classes: usize,
        aggregate: Aggregate,
    ) -> Result<InstructionId> {
        let (rows, trees) = (cx.sizes(numbers)[0], cx.sizes(numbers)[1]);
        let classes = classes as i64;
        let numbers = cx.reshape(numbers, &[rows, classes, trees / classes, self.targets / classes])?;
        let scores = cx.reduce(numbers, aggregate.reducer(), &[2])?;
        cx.reshape(scores, &[rows, self.targets])
    }

    /// Groups of trees as words, each with a table of its leaves if they have several numbers.
    fn words(
        &self,
        cx: &mut NodeContext<'_, '_>,
        classes: Vec<Vec<usize>>,
        width: i64,
        x: InstructionId,
    ) -> Result<Option<Vec<Group>>> {
        let rows = cx.form_rows(cx.sizes(x)[0]);
        let mut groups = Vec::new();
        for roots in tree_groups::of(self, classes, rows / blocks(cx, rows)) {
            let mut leaves = Vec::new();
            let mut number = |leaf: usize| {
                if width == 1 {
                    return self.weights_of(leaf).iter().map(|weight| weight.value).sum();
                }
                leaves.push(leaf);
                (leaves.len() - 1) as f64
            };
            let Some(words) = Words::of(self, &roots, &mut number) else { return Ok(None) };
            groups.push((words, leaves));
        }
        let mut walks = Vec::new();
        for (words, leaves) in groups {
            let table = if width == 1 { None } else { Some(self.table(cx, &leaves, width)?) };
            walks.push((words.placed(cx, self.element_type), table));
        }
        Ok(Some(walks))
    }

    /// The combined numbers of trees as words. Loops of blocks of rows and of groups run side by
    /// side.
    fn scores_of_words(
        &self,
        cx: &mut NodeContext<'_, '_>,
        groups: &[Group],
        x: InstructionId,
        classes: usize,
        aggregate: Aggregate,
    ) -> Result<InstructionId> {
        let rows = cx.sizes(x)[0];
        let blocks = blocks(cx, rows);
        let mut scores = Vec::new();
        for block in 0..blocks {
            let x = cx.slice_in(x, 0, rows * block / blocks, rows * (block + 1) / blocks)?;
            let mut combined: Option<InstructionId> = None;
            for (walk, table) in groups {
                let mut numbers = walk.numbers(cx, x)?;
                if let Some(table) = *table {
                    let leaf = cx.convert(numbers, PrimitiveType::S32)?;
                    numbers = cx.gather_along(table, leaf, 0, 0)?;
                }
                let own = self.combined(cx, numbers, classes, aggregate)?;
                combined = Some(match combined {
                    None => own,
                    Some(others) => cx.op(aggregate.op(), &[others, own])?,
                });
            }
            scores.extend(combined);
        }
        cx.concatenate(&scores, 0)
    }

    /// The nodes that are the leaves of each row and tree: (rows, trees).
    fn walk(&self, cx: &mut NodeContext<'_, '_>, x: InstructionId, roots: &[usize]) -> Result<InstructionId> {
        let sizes = cx.sizes(x);
        let (count, trees) = (self.nodes.len() as i64, roots.len() as i64);
        let ints = |cx: &mut NodeContext<'_, '_>, values: &dyn Fn(&Node) -> i32| {
            let values: Vec<i32> = self.nodes.iter().map(values).collect();
            cx.literal(Literal::from_elements(&[count], &values))
        };
        let features = ints(cx, &|node| node.feature);
        let yes = ints(cx, &|node| node.yes as i32);
        let no = ints(cx, &|node| node.no as i32);
        let modes = ints(cx, &|node| node.mode as i32);
        let tracks = ints(cx, &|node| i32::from(node.tracks_true));
        let thresholds = ArrayShape::new(self.element_type, &[count]);
        let thresholds = Literal::from_floats(thresholds, self.nodes.iter().map(|node| node.threshold));
        let thresholds = cx.literal(thresholds);
        let own: Vec<i32> = roots.iter().map(|&root| root as i32).collect();
        let own = cx.literal(Literal::from_elements(&[trees], &own));
        let place = cx.broadcast(own, &[sizes[0], trees], &[1])?;
        let used: Vec<Mode> =
            [Mode::LessEqual, Mode::Less, Mode::GreaterEqual, Mode::Greater, Mode::Equal, Mode::NotEqual]
                .into_iter()
                .filter(|&mode| self.nodes.iter().any(|node| node.mode == mode))
                .collect();
        let carried = vec![place, x, features, yes, no, modes, tracks, thresholds];
        let results = cx.counted_loop(self.depth(roots) as i32, &carried, |cx, _, carried| {
            let place = carried[0];
            let of = |cx: &mut NodeContext<'_, '_>, k: usize| cx.gather_along(carried[k], place, 0, 0);
            let feature = of(cx, 2)?;
            let value = of_own_row(cx, carried[1], feature, 0)?;
            let threshold = of(cx, 7)?;
            let mode = of(cx, 5)?;
            let mut holds = cx.splat(PrimitiveType::Pred, &[sizes[0], trees], 0.0)?;
            for &known in &used {
                let test = cx.compare(direction(known), value, threshold)?;
                let is_mode = cx.compare_scalar(ComparisonDirection::Eq, mode, f64::from(known as i32))?;
                holds = cx.select(is_mode, test, holds)?;
            }
            let tracks = of(cx, 6)?;
            let tracks = cx.compare_scalar(ComparisonDirection::Ne, tracks, 0.0)?;
            let is_nan = cx.compare(ComparisonDirection::Ne, value, value)?;
            let by_missing = cx.op(Op::And {}, &[is_nan, tracks])?;
            let holds = cx.op(Op::Or {}, &[holds, by_missing])?;
            let (yes, no) = (of(cx, 3)?, of(cx, 4)?);
            let next = cx.select(holds, yes, no)?;
            Ok([vec![next], carried[1..].to_vec()].concat())
        })?;
        Ok(results[0])
    }
}

/// Number of blocks of rows. Pieces of a batch are not divided, because that would tell rows apart.
fn blocks(cx: &NodeContext<'_, '_>, rows: i64) -> i64 {
    if cx.is_piece() { 1 } else { tree_groups::blocks(rows) }
}

/// Adds the base values of the targets.
fn with_base(cx: &mut NodeContext<'_, '_>, scores: InstructionId) -> Result<InstructionId> {
    let attributes = cx.attributes();
    let base = if attributes.has("base_values_as_tensor") {
        floats(cx, "base_values_as_tensor")?
    } else if attributes.has("base_values") {
        attributes.floats("base_values")?.into_iter().map(f64::from).collect()
    } else {
        return Ok(scores);
    };
    let sizes = cx.sizes(scores);
    let shape = ArrayShape::new(cx.element_type(scores), &[base.len() as i64]);
    let base = cx.literal(Literal::from_floats(shape, base));
    let base = cx.broadcast_to(base, &sizes)?;
    cx.add(scores, base)
}

/// Rows of doubles if the input has them, and otherwise of floats: (rows, features).
fn rows(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let x = if cx.element_type(x) == PrimitiveType::F64 { x } else { cx.convert(x, PrimitiveType::F32)? };
    match sizes[..] {
        [features] => cx.reshape(x, &[1, features]),
        [_, _] => Ok(x),
        _ => Err(cx.invalid(format!("expected one or two dimensions, got {}", list(&sizes)))),
    }
}

/// The ensemble of a node, for rows of values.
fn ensemble(cx: &NodeContext<'_, '_>, targets: i64, x: InstructionId) -> Result<Ensemble> {
    cx.check((1..1 << 24).contains(&targets), || format!("there are {targets} targets"))?;
    Ensemble::of_node(cx, targets, cx.sizes(x)[1], cx.element_type(x))
}

fn regressor(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = rows(cx)?;
    let targets = cx.attributes().int_or("n_targets", 1)?;
    let aggregate = match cx.text_or("aggregate_function", "SUM")? {
        "SUM" => Aggregate::Sum,
        "AVERAGE" => Aggregate::Average,
        "MIN" => Aggregate::Least,
        "MAX" => Aggregate::Greatest,
        other => return Err(cx.invalid(format!("aggregate_function: '{other}' does not exist"))),
    };
    let scores = ensemble(cx, targets, x)?.scores(cx, x, aggregate)?;
    let scores = with_base(cx, scores)?;
    let scores = cx.convert(scores, PrimitiveType::F32)?;
    let transform = cx.text_or("post_transform", "NONE")?;
    post_transform(cx, scores, transform)
}

fn classifier(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = rows(cx)?;
    cx.check(cx.attributes().has("classlabels_int64s"), || "the labels must be integers".to_owned())?;
    let labels = cx.attributes().ints("classlabels_int64s")?;
    let classes = labels.len() as i64;
    let mut ensemble = ensemble(cx, classes, x)?;
    let is_binary =
        classes == 2 && ensemble.weights.iter().all(|weight| weight.target == ensemble.weights[0].target);
    let is_probability = ensemble.weights.iter().all(|weight| weight.value >= 0.0);
    if is_binary {
        ensemble.weights.iter_mut().for_each(|weight| weight.target = 0);
        ensemble.targets = 1;
    }
    let mut scores = ensemble.scores(cx, x, Aggregate::Sum)?;
    let transform = cx.text_or("post_transform", "NONE")?;
    let wanted = cx.node().output_types.len();
    if is_binary {
        // All leaves state the score of one class. If none is negative, scores are probabilities.
        let score = with_base(cx, scores)?;
        let threshold = if is_probability { 0.5 } else { 0.0 };
        let is_second = cx.compare_scalar(ComparisonDirection::Gt, score, threshold)?;
        let score = cx.convert(score, PrimitiveType::F32)?;
        let first = if is_probability && transform != "LOGISTIC" {
            let one = cx.splat_like(score, 1.0)?;
            cx.sub(one, score)?
        } else {
            cx.neg(score)?
        };
        let mut both = cx.concatenate(&[first, score], 1)?;
        if transform == "LOGISTIC" {
            both = post_transform(cx, both, transform)?;
        }
        let position = cx.convert(is_second, PrimitiveType::S32)?;
        let count = cx.sizes(position)[0];
        let position = cx.reshape(position, &[count])?;
        let labels = cx.integers(PrimitiveType::S64, &labels)?;
        let label = cx.gather_along(labels, position, 0, 0)?;
        return Ok(vec![label, both].into_iter().take(wanted).collect());
    }
    scores = with_base(cx, scores)?;
    let ranked = ranked(cx, &ensemble, scores)?;
    let label = best_label(cx, ranked, &labels)?;
    let scores = cx.convert(scores, PrimitiveType::F32)?;
    let scores = post_transform(cx, scores, transform)?;
    Ok(vec![label, scores].into_iter().take(wanted).collect())
}

/// The scores by which labels are chosen: a class without leaves is never the best one.
fn ranked(cx: &mut NodeContext<'_, '_>, ensemble: &Ensemble, scores: InstructionId) -> Result<InstructionId> {
    let mut offsets = vec![f64::NEG_INFINITY; ensemble.targets as usize];
    for weight in &ensemble.weights {
        offsets[weight.target as usize] = 0.0;
    }
    let attributes = cx.attributes();
    let has_base = attributes.has("base_values") || attributes.has("base_values_as_tensor");
    if has_base || offsets.iter().all(|&offset| offset == 0.0) {
        return Ok(scores);
    }
    let shape = ArrayShape::new(ensemble.element_type, &[ensemble.targets]);
    let offsets = cx.literal(Literal::from_floats(shape, offsets));
    let sizes = cx.sizes(scores);
    let offsets = cx.broadcast(offsets, &sizes, &[1])?;
    cx.add(scores, offsets)
}

/// Version 5, whose enums are numbers.
fn tree_ensemble(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let element_type = cx.output_type(0)?;
    let x = rows(cx)?;
    let targets = cx.attributes().int_or("n_targets", 1)?;
    let aggregate = match cx.attributes().int_or("aggregate_function", 1)? {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Least,
        _ => Aggregate::Greatest,
    };
    let scores = ensemble(cx, targets, x)?.scores(cx, x, aggregate)?;
    let transform = match cx.attributes().int_or("post_transform", 0)? {
        0 => "NONE",
        1 => "SOFTMAX",
        2 => "LOGISTIC",
        3 => "SOFTMAX_ZERO",
        _ => "PROBIT",
    };
    let scores = post_transform(cx, scores, transform)?;
    cx.convert(scores, element_type)
}
