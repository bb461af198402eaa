//! Ensembles of decision trees. Small trees make all their tests at once ([`super::tree_masks`]).
//! Otherwise, all trees of all rows take a step at a time: a step looks up the node of each tree in
//! tables and goes on to one of its children.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::onnx::ml::{best_label, post_transform, rows};
use crate::ops::onnx::operands::required;
use crate::ops::onnx::tree_masks::Masks;
use crate::ops::onnx::tree_nodes::{Ensemble, Mode, Node, direction};
use bounded::Reducer;
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use std::collections::BTreeMap;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxMlTreeEnsemble", tree_ensemble),
    rule_many("OnnxMlTreeEnsembleClassifier", classifier),
    rule("OnnxMlTreeEnsembleRegressor", regressor),
];

/// Deepest tree.
const DEEPEST: usize = 4096;

/// Most numbers of a table of leaves.
const MOST_WEIGHTS: usize = 1 << 26;

fn mode(cx: &NodeContext<'_, '_>, name: &str) -> Result<Mode> {
    Ok(match name {
        "LEAF" => Mode::Leaf,
        "BRANCH_LEQ" => Mode::LessEqual,
        "BRANCH_LT" => Mode::Less,
        "BRANCH_GTE" => Mode::GreaterEqual,
        "BRANCH_GT" => Mode::Greater,
        "BRANCH_EQ" => Mode::Equal,
        "BRANCH_NEQ" => Mode::NotEqual,
        other => return Err(cx.invalid(format!("mode '{other}' of a node does not exist"))),
    })
}

impl Ensemble {
    /// Reads the nodes of versions 1 to 3. `prefix` begins the names of the attributes of leaves.
    fn of_node(cx: &NodeContext<'_, '_>, prefix: &str, targets: i64) -> Result<Self> {
        let attributes = cx.attributes();
        let trees = attributes.ints("nodes_treeids")?;
        let ids = attributes.ints("nodes_nodeids")?;
        let features = attributes.ints("nodes_featureids")?;
        let modes = attributes.strings("nodes_modes")?;
        let (yes, no) = (attributes.ints("nodes_truenodeids")?, attributes.ints("nodes_falsenodeids")?);
        let thresholds = floats(cx, "nodes_values")?;
        let tracks = attributes.ints_or("nodes_missing_value_tracks_true", vec![0; trees.len()])?;
        let count = trees.len();
        let lengths =
            [ids.len(), features.len(), modes.len(), yes.len(), no.len(), thresholds.len(), tracks.len()];
        cx.check(count > 0 && lengths.iter().all(|&length| length == count), || {
            format!("the attributes of {count} nodes have lengths {lengths:?}")
        })?;
        let places: BTreeMap<(i64, i64), usize> =
            trees.iter().copied().zip(ids.iter().copied()).enumerate().map(|(k, key)| (key, k)).collect();
        let place = |tree: i64, id: i64| {
            places
                .get(&(tree, id))
                .copied()
                .ok_or_else(|| cx.invalid(format!("tree {tree} has no node {id}")))
        };
        let mut nodes = Vec::new();
        let mut roots: BTreeMap<i64, usize> = BTreeMap::new();
        for k in 0..count {
            roots.entry(trees[k]).or_insert(k);
            let mode = mode(cx, &String::from_utf8_lossy(&modes[k]))?;
            let is_leaf = mode == Mode::Leaf;
            nodes.push(Node {
                feature: if is_leaf { 0 } else { features[k] },
                mode,
                threshold: thresholds[k],
                yes: if is_leaf { k } else { place(trees[k], yes[k])? },
                no: if is_leaf { k } else { place(trees[k], no[k])? },
                tracks_true: tracks[k] != 0,
            });
        }
        let name = |end: &str| format!("{prefix}_{end}");
        let leaf_trees = attributes.ints(&name("treeids"))?;
        let leaf_ids = attributes.ints(&name("nodeids"))?;
        let leaf_targets = attributes.ints(&name("ids"))?;
        let values = floats(cx, &name("weights"))?;
        let lengths = [leaf_ids.len(), leaf_targets.len(), values.len()];
        cx.check(lengths.iter().all(|&length| length == leaf_trees.len()), || {
            "the leaves do not fit".to_owned()
        })?;
        let mut weights = Vec::new();
        for k in 0..values.len() {
            weights.push((place(leaf_trees[k], leaf_ids[k])?, leaf_targets[k], values[k]));
        }
        Ok(Self { nodes, roots: roots.into_values().collect(), weights, targets })
    }

    /// The most steps from a root to a leaf.
    fn depth(&self, cx: &NodeContext<'_, '_>) -> Result<usize> {
        let mut level = self.roots.clone();
        let (mut depth, mut visits) = (0, 0usize);
        loop {
            let mut next: Vec<usize> = Vec::new();
            for &k in &level {
                let node = self.nodes[k];
                if node.mode != Mode::Leaf {
                    next.extend([node.yes, node.no]);
                }
            }
            if next.is_empty() {
                return Ok(depth);
            }
            depth += 1;
            visits += next.len();
            // Tests of several members share a child.
            cx.check(depth <= DEEPEST && visits / 64 <= self.nodes.len(), || {
                "the nodes are no trees: a node is its own ancestor".to_owned()
            })?;
            level = next;
        }
    }

    /// The numbers that the leaves of each row and tree add to targets: (rows, trees, targets).
    fn leaves(&self, cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
        let features = cx.sizes(x)[1];
        let in_range = self.nodes.iter().all(|node| (0..features).contains(&node.feature));
        cx.check(in_range, || format!("a node tests a feature beyond the {features} of the input"))?;
        let (count, targets) = (self.nodes.len(), self.targets);
        let fits = (1..1 << 24).contains(&targets) && count * targets as usize <= MOST_WEIGHTS;
        cx.check(fits, || format!("{count} nodes with {targets} targets are too many"))?;
        let depth = self.depth(cx)?;
        let mut table = vec![0f32; count * targets as usize];
        for &(leaf, target, weight) in &self.weights {
            cx.check((0..targets).contains(&target), || format!("target {target} of {targets}"))?;
            table[leaf * targets as usize + target as usize] += weight;
        }
        let (place, table) = if let Some(masks) = Masks::of(self, depth) {
            let (place, nodes) = masks.leaves(cx, self, x)?;
            let rows = nodes.iter().flat_map(|node| &table[node * targets as usize..][..targets as usize]);
            (place, rows.copied().collect())
        } else {
            (self.walk(cx, x, depth)?, table)
        };
        let rows = table.len() as i64 / targets;
        let table = cx.literal(Literal::from_elements(&[rows, targets], &table));
        cx.gather_along(table, place, 0, 0)
    }

    /// The nodes that are the leaves of each row and tree: (rows, trees).
    fn walk(&self, cx: &mut NodeContext<'_, '_>, x: InstructionId, depth: usize) -> Result<InstructionId> {
        let sizes = cx.sizes(x);
        let (count, trees) = (self.nodes.len() as i64, self.roots.len() as i64);
        let ints = |cx: &mut NodeContext<'_, '_>, values: &dyn Fn(&Node) -> i32| {
            let values: Vec<i32> = self.nodes.iter().map(values).collect();
            cx.literal(Literal::from_elements(&[count], &values))
        };
        let features = ints(cx, &|node| node.feature as i32);
        let yes = ints(cx, &|node| node.yes as i32);
        let no = ints(cx, &|node| node.no as i32);
        let modes = ints(cx, &|node| node.mode as i32);
        let tracks = ints(cx, &|node| i32::from(node.tracks_true));
        let thresholds: Vec<f32> = self.nodes.iter().map(|node| node.threshold).collect();
        let thresholds = cx.literal(Literal::from_elements(&[count], &thresholds));
        let roots: Vec<i32> = self.roots.iter().map(|&root| root as i32).collect();
        let roots = cx.literal(Literal::from_elements(&[trees], &roots));
        let place = cx.broadcast(roots, &[sizes[0], trees], &[1])?;
        let used: Vec<Mode> =
            [Mode::LessEqual, Mode::Less, Mode::GreaterEqual, Mode::Greater, Mode::Equal, Mode::NotEqual]
                .into_iter()
                .filter(|&mode| self.nodes.iter().any(|node| node.mode == mode))
                .collect();
        let carried = vec![place, x, features, yes, no, modes, tracks, thresholds];
        let results = cx.counted_loop(depth as i32, &carried, |cx, _, carried| {
            let place = carried[0];
            let of = |cx: &mut NodeContext<'_, '_>, k: usize| cx.gather_along(carried[k], place, 0, 0);
            let feature = of(cx, 2)?;
            let value = of_own_row(cx, carried[1], feature)?;
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

/// Looks up elements of a matrix, each in the row of its index.
fn of_own_row(cx: &mut NodeContext<'_, '_>, x: InstructionId, index: InstructionId) -> Result<InstructionId> {
    // The row as a batch of the gather shows that rows do not depend on each other.
    let gather_dimension_numbers = GatherDimensionNumbers {
        collapsed_slice_dims: vec![1],
        start_index_map: vec![1],
        operand_batching_dims: vec![0],
        start_indices_batching_dims: vec![0],
        index_vector_dim: 2,
        ..Default::default()
    };
    let op = Op::Gather { gather_dimension_numbers, slice_sizes: vec![1, 1], indices_are_sorted: false };
    cx.op(op, &[x, index])
}

/// Floats of a list, or of a tensor of the newer names.
fn floats(cx: &NodeContext<'_, '_>, name: &str) -> Result<Vec<f32>> {
    let as_tensor = format!("{name}_as_tensor");
    let of_literal =
        |literal: Literal| literal.scalars().filter_map(|s| s.as_f64()).map(|v| v as f32).collect();
    if cx.attributes().has(&as_tensor) {
        return cx.attributes().tensor(&as_tensor).map(of_literal);
    }
    cx.attributes().floats(name)
}

/// Combines the trees' numbers: (rows, targets).
fn aggregated(cx: &mut NodeContext<'_, '_>, leaves: InstructionId, how: &str) -> Result<InstructionId> {
    let trees = cx.sizes(leaves)[1];
    match how {
        "SUM" => cx.reduce(leaves, Reducer::Add, &[1]),
        "AVERAGE" => {
            let sum = cx.reduce(leaves, Reducer::Add, &[1])?;
            cx.mul_scalar(sum, 1.0 / trees as f64)
        }
        "MIN" => cx.reduce(leaves, Reducer::Minimum, &[1]),
        "MAX" => cx.reduce(leaves, Reducer::Maximum, &[1]),
        other => Err(cx.invalid(format!("aggregate_function: '{other}' does not exist"))),
    }
}

/// Adds the base values of the targets.
fn with_base(cx: &mut NodeContext<'_, '_>, scores: InstructionId) -> Result<InstructionId> {
    let attributes = cx.attributes();
    let base = if attributes.has("base_values_as_tensor") || attributes.has("base_values") {
        floats(cx, "base_values")?
    } else {
        return Ok(scores);
    };
    let sizes = cx.sizes(scores);
    let base = cx.literal(Literal::from_elements(&[base.len() as i64], &base));
    let base = cx.broadcast_to(base, &sizes)?;
    cx.add(scores, base)
}

fn regressor(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let x = rows(cx, x)?;
    let targets = cx.attributes().int_or("n_targets", 1)?;
    let leaves = Ensemble::of_node(cx, "target", targets)?.leaves(cx, x)?;
    let how = cx.text_or("aggregate_function", "SUM")?;
    let scores = aggregated(cx, leaves, how)?;
    let scores = with_base(cx, scores)?;
    let transform = cx.text_or("post_transform", "NONE")?;
    post_transform(cx, scores, transform)
}

fn classifier(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let x = rows(cx, x)?;
    cx.check(cx.attributes().has("classlabels_int64s"), || "the labels must be integers".to_owned())?;
    let labels = cx.attributes().ints("classlabels_int64s")?;
    let classes = labels.len() as i64;
    let ensemble = Ensemble::of_node(cx, "class", classes)?;
    let is_binary = classes == 2 && ensemble.weights.iter().all(|weight| weight.1 == ensemble.weights[0].1);
    let is_probability = ensemble.weights.iter().all(|weight| weight.2 >= 0.0);
    let own = ensemble.weights.first().map_or(0, |weight| weight.1);
    let leaves = ensemble.leaves(cx, x)?;
    let mut scores = aggregated(cx, leaves, "SUM")?;
    let transform = cx.text_or("post_transform", "NONE")?;
    let wanted = cx.node().output_types.len();
    if is_binary {
        // All leaves state the score of one class. If none is negative, scores are probabilities.
        let mut score = cx.slice_in(scores, 1, own, own + 1)?;
        score = with_base(cx, score)?;
        let threshold = if is_probability { 0.5 } else { 0.0 };
        let is_second = cx.compare_scalar(ComparisonDirection::Gt, score, threshold)?;
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
    let label = best_label(cx, scores, &labels)?;
    let scores = post_transform(cx, scores, transform)?;
    Ok(vec![label, scores].into_iter().take(wanted).collect())
}

/// Version 5: leaves are apart from nodes, and enums are numbers.
fn tree_ensemble(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let element_type = cx.element_type(x);
    let x = rows(cx, x)?;
    let attributes = cx.attributes();
    let features = attributes.ints("nodes_featureids")?;
    let count = features.len();
    let modes = attributes.tensor("nodes_modes")?.to_i64s().unwrap_or_default();
    let splits = attributes.tensor("nodes_splits")?;
    let splits: Vec<f32> = splits.scalars().filter_map(|s| s.as_f64()).map(|v| v as f32).collect();
    let (yes, no) = (attributes.ints("nodes_truenodeids")?, attributes.ints("nodes_falsenodeids")?);
    let (yes_leaf, no_leaf) = (attributes.ints("nodes_trueleafs")?, attributes.ints("nodes_falseleafs")?);
    let tracks = attributes.ints_or("nodes_missing_value_tracks_true", vec![0; count])?;
    let lengths =
        [modes.len(), splits.len(), yes.len(), no.len(), yes_leaf.len(), no_leaf.len(), tracks.len()];
    cx.check(count > 0 && lengths.iter().all(|&length| length == count), || {
        format!("the attributes of {count} nodes have lengths {lengths:?}")
    })?;
    let leaf_targets = attributes.ints("leaf_targetids")?;
    let leaf_weights = attributes.tensor("leaf_weights")?;
    let leaf_weights: Vec<f32> =
        leaf_weights.scalars().filter_map(|s| s.as_f64()).map(|v| v as f32).collect();
    cx.check(leaf_targets.len() == leaf_weights.len(), || "the leaves do not fit".to_owned())?;
    let members = if attributes.has("membership_values") {
        attributes.tensor("membership_values")?.scalars().filter_map(|s| s.as_f64()).collect()
    } else {
        Vec::new()
    };
    let mut sets = members.split(|value: &f64| value.is_nan());
    let child = |id: i64, is_leaf: bool| {
        let limit = if is_leaf { leaf_targets.len() } else { count };
        let index = usize::try_from(id).ok().filter(|&index| index < limit);
        let index =
            index.ok_or_else(|| cx.invalid(format!("a node has child {id}, which does not exist")))?;
        Ok(if is_leaf { count + index } else { index })
    };
    let mut nodes = Vec::new();
    // Nodes that test further members of a set, which follow all others.
    let mut chained: Vec<Node> = Vec::new();
    let first_chained = count + leaf_targets.len();
    for k in 0..count {
        let (yes, no) = (child(yes[k], yes_leaf[k] != 0)?, child(no[k], no_leaf[k] != 0)?);
        let tracks_true = tracks[k] != 0;
        let node = |mode, threshold, no| Node { feature: features[k], mode, threshold, yes, no, tracks_true };
        let mode = match modes[k] {
            0 => Mode::LessEqual,
            1 => Mode::Less,
            2 => Mode::GreaterEqual,
            3 => Mode::Greater,
            4 => Mode::Equal,
            5 => Mode::NotEqual,
            6 => {
                let set = sets.next().unwrap_or_default();
                let [first, rest @ ..] = set else { return Err(cx.invalid("a set of members is empty")) };
                let next = |at: usize| if at < rest.len() { first_chained + chained.len() + at } else { no };
                let head = node(Mode::Equal, *first as f32, next(0));
                let tail: Vec<Node> = rest
                    .iter()
                    .enumerate()
                    .map(|(at, value)| node(Mode::Equal, *value as f32, next(at + 1)))
                    .collect();
                nodes.push(head);
                chained.extend(tail);
                continue;
            }
            other => return Err(cx.invalid(format!("mode {other} of a node does not exist"))),
        };
        nodes.push(node(mode, splits[k], no));
    }
    for k in 0..leaf_targets.len() {
        let place = count + k;
        nodes.push(Node {
            feature: 0,
            mode: Mode::Leaf,
            threshold: 0.0,
            yes: place,
            no: place,
            tracks_true: false,
        });
    }
    nodes.extend(chained);
    let mut roots = Vec::new();
    for root in attributes.ints("tree_roots")? {
        roots.push(child(root, false)?);
    }
    let weights = (0..leaf_targets.len()).map(|k| (count + k, leaf_targets[k], leaf_weights[k])).collect();
    let targets = attributes.int_or("n_targets", 1)?;
    let leaves = Ensemble { nodes, roots, weights, targets }.leaves(cx, x)?;
    let how = match attributes.int_or("aggregate_function", 1)? {
        0 => "AVERAGE",
        1 => "SUM",
        2 => "MIN",
        _ => "MAX",
    };
    let scores = aggregated(cx, leaves, how)?;
    let transform = match attributes.int_or("post_transform", 0)? {
        0 => "NONE",
        1 => "SOFTMAX",
        2 => "LOGISTIC",
        3 => "SOFTMAX_ZERO",
        _ => "PROBIT",
    };
    let scores = post_transform(cx, scores, transform)?;
    cx.convert(scores, element_type)
}
