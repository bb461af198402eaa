//! Ensembles of decision trees in all versions of `ai.onnx.ml`, as one list of nodes.
//!
//! Files state them as up to ten lists, with names for nodes and texts for tests. Those of large
//! ensembles take hundreds of megabytes, so the node of the graph has compact tensors instead:
//!
//! | attribute | elements |
//! |---|---|
//! | `features`, `modes`, `thresholds`, `tracks` | tests of nodes; `tracks`: true for NaN |
//! | `yes`, `no` | the nodes for both outcomes; a leaf has itself |
//! | `roots` | the first node of each tree |
//! | `leaves`, `targets`, `weights` | numbers that leaves add to targets |
//!
//! Modes are those of version 5, and [`LEAF`].

use crate::convert::Op;
use crate::tensor::Constant;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::DataType;

/// Mode of a leaf.
const LEAF: u8 = 255;

/// Mode of a test of a value, in version 5 also of several.
const EQUAL: u8 = 4;

/// The tests of nodes in versions 1 to 3, by number in version 5.
const MODES: [&str; 6] = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"];

/// The form of an op's ensemble: the beginning of the names of leaves in versions 1 to 3.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Lists(&'static str),
    Tensors,
}

impl Form {
    /// The form in an op of the domain `ai.onnx.ml`, if it has trees.
    pub(super) fn of(op: &Op<'_, '_, '_>) -> Option<Self> {
        match (op.domain(), op.op_type()) {
            ("ai.onnx.ml", "TreeEnsembleClassifier") => Some(Self::Lists("class_")),
            ("ai.onnx.ml", "TreeEnsembleRegressor") => Some(Self::Lists("target_")),
            ("ai.onnx.ml", "TreeEnsemble") => Some(Self::Tensors),
            _ => None,
        }
    }

    /// True if an attribute is a part of the ensemble.
    pub(super) fn contains(self, name: &str) -> bool {
        match self {
            Self::Lists(prefix) => name.starts_with("nodes_") || name.starts_with(prefix),
            Self::Tensors => {
                ["nodes_", "leaf_"].iter().any(|prefix| name.starts_with(prefix))
                    || matches!(name, "tree_roots" | "membership_values")
            }
        }
    }

    /// The compact tensors of the node's ensemble.
    pub(super) fn tensors(self, op: &mut Op<'_, '_, '_>) -> Result<Vec<(&'static str, Constant)>> {
        let trees = match self {
            Self::Lists(prefix) => of_lists(op, prefix)?,
            Self::Tensors => of_tensors(op)?,
        };
        let ints = Constant::of_ints;
        let bytes = |values: Vec<u8>| Constant {
            data_type: DataType::Uint8,
            sizes: vec![values.len() as i64],
            bytes: values.into(),
        };
        Ok(vec![
            ("features", ints(&trees.features)),
            ("modes", bytes(trees.modes)),
            ("thresholds", trees.thresholds),
            ("tracks", bytes(trees.tracks)),
            ("yes", ints(&trees.yes)),
            ("no", ints(&trees.no)),
            ("roots", ints(&trees.roots)),
            ("leaves", ints(&trees.leaves)),
            ("targets", ints(&trees.targets)),
            ("weights", trees.weights),
        ])
    }
}

struct Trees {
    features: Vec<i32>,
    modes: Vec<u8>,
    thresholds: Constant,
    tracks: Vec<u8>,
    yes: Vec<i32>,
    no: Vec<i32>,
    roots: Vec<i32>,
    leaves: Vec<i32>,
    targets: Vec<i32>,
    weights: Constant,
}

/// A number that a valid model has in 32 bits. Others become the largest, which is never valid.
fn short(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

fn ints<'a>(op: &Op<'_, 'a, '_>, name: &str) -> Result<&'a [i64]> {
    let attribute = op.attribute(name).map(|attribute| attribute.ints.as_slice());
    attribute.ok_or_else(|| Error::invalid(format!("attribute '{name}' is missing")))
}

/// A tensor that an attribute states, or the tensor of a list of floats.
fn numbers(op: &mut Op<'_, '_, '_>, name: &str) -> Result<Constant> {
    if let Some(tensor) = op.attribute(name).and_then(|attribute| attribute.t.as_ref()) {
        let constant = Constant::read(tensor, &mut *op.converter.external);
        return constant.map_err(|e| e.context(format!("attribute '{name}'")));
    }
    match op.attribute(name) {
        Some(list) => Ok(Constant::of_floats(&[list.floats.len() as i64], &list.floats)),
        None => Err(Error::invalid(format!("attribute '{name}' is missing"))),
    }
}

/// A list of floats, or the tensor that versions with doubles have instead.
fn floats(op: &mut Op<'_, '_, '_>, name: &str) -> Result<Constant> {
    let as_tensor = format!("{name}_as_tensor");
    let name = if op.attribute(&as_tensor).is_some() { &as_tensor } else { name };
    numbers(op, name)
}

/// Finds the nodes with numbers in trees.
struct Places<'a> {
    trees: &'a [i64],
    ids: &'a [i64],
    /// The first node of each tree, in which nodes are in order; or all nodes by tree and number.
    order: Order,
}

enum Order {
    Starts(BTreeMap<i64, usize>),
    Sorted(Vec<usize>),
}

impl<'a> Places<'a> {
    fn new(trees: &'a [i64], ids: &'a [i64]) -> Result<Self> {
        let mut starts = BTreeMap::new();
        let mut first = 0;
        let is_regular = (0..trees.len()).all(|k| {
            let begins = k == 0 || trees[k] != trees[k - 1];
            if begins {
                first = k;
            }
            ids[k] == (k - first) as i64 && (!begins || starts.insert(trees[k], k).is_none())
        });
        if is_regular {
            return Ok(Self { trees, ids, order: Order::Starts(starts) });
        }
        let key = |k: &usize| (trees[*k], ids[*k]);
        let mut sorted: Vec<usize> = (0..trees.len()).collect();
        sorted.sort_by_key(key);
        if let Some(pair) = sorted.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
            let (tree, id) = key(&pair[0]);
            return Err(Error::invalid(format!("tree {tree} has two nodes {id}")));
        }
        Ok(Self { trees, ids, order: Order::Sorted(sorted) })
    }

    /// The node with a number. `near` is a node that is probably of the same tree.
    fn find(&self, tree: i64, id: i64, near: usize) -> Result<i32> {
        let found = match &self.order {
            Order::Starts(starts) => {
                let start = match self.trees.get(near) {
                    Some(&other) if other == tree => Some(near - self.ids[near] as usize),
                    _ => starts.get(&tree).copied(),
                };
                let place = start.and_then(|start| start.checked_add(usize::try_from(id).ok()?));
                place.filter(|&place| self.trees.get(place) == Some(&tree))
            }
            Order::Sorted(sorted) => {
                let found = sorted.binary_search_by_key(&(tree, id), |&k| (self.trees[k], self.ids[k]));
                found.ok().map(|at| sorted[at])
            }
        };
        let place = found.ok_or_else(|| Error::invalid(format!("tree {tree} has no node {id}")))?;
        Ok(short(place as i64))
    }
}

/// Reads versions 1 to 3. `prefix` begins the names of the attributes of leaves.
fn of_lists(op: &mut Op<'_, '_, '_>, prefix: &str) -> Result<Trees> {
    let (trees, ids) = (ints(op, "nodes_treeids")?, ints(op, "nodes_nodeids")?);
    let features = ints(op, "nodes_featureids")?;
    let texts = op.attribute("nodes_modes").map(|attribute| attribute.strings.as_slice()).unwrap_or_default();
    let (yes, no) = (ints(op, "nodes_truenodeids")?, ints(op, "nodes_falsenodeids")?);
    let tracks = op.attribute("nodes_missing_value_tracks_true").map(|attribute| &attribute.ints);
    let thresholds = floats(op, "nodes_values")?;
    let count = trees.len();
    let track_count = tracks.map_or(count, Vec::len);
    let lengths =
        [ids.len(), features.len(), texts.len(), yes.len(), no.len(), thresholds.count(), track_count];
    if count == 0 || lengths.iter().any(|&length| length != count) {
        return Err(Error::invalid(format!("the attributes of {count} nodes have lengths {lengths:?}")));
    }
    let places = Places::new(trees, ids)?;
    let mut modes = Vec::with_capacity(count);
    for text in texts {
        let known = MODES.iter().position(|mode| mode.as_bytes() == text);
        modes.push(match known {
            Some(mode) => mode as u8,
            None if text == "LEAF" => LEAF,
            None => {
                let text = String::from_utf8_lossy(text);
                return Err(Error::invalid(format!("mode '{text}' of a node does not exist")));
            }
        });
    }
    let child = |k: usize, children: &[i64]| match modes[k] {
        LEAF => Ok(short(k as i64)),
        _ => places.find(trees[k], children[k], k),
    };
    let children = |children: &[i64]| (0..count).map(|k| child(k, children)).collect::<Result<Vec<i32>>>();
    let (yes, no) = (children(yes)?, children(no)?);
    // The first node of each tree, by tree.
    let mut roots: Vec<usize> = (0..count).filter(|&k| k == 0 || trees[k] != trees[k - 1]).collect();
    roots.sort_by_key(|&k| trees[k]);
    roots.dedup_by_key(|k| trees[*k]);
    let list = |end: &str| ints(op, &format!("{prefix}{end}"));
    let (leaf_trees, leaf_ids, targets) = (list("treeids")?, list("nodeids")?, list("ids")?);
    let weights = floats(op, &format!("{prefix}weights"))?;
    if [leaf_ids.len(), targets.len(), weights.count()].iter().any(|&length| length != leaf_trees.len()) {
        return Err(Error::invalid("the leaves do not fit"));
    }
    let mut leaves = Vec::with_capacity(leaf_trees.len());
    for (&tree, &id) in leaf_trees.iter().zip(leaf_ids) {
        let near = leaves.last().map_or(0, |&place| place as usize);
        leaves.push(places.find(tree, id, near)?);
    }
    let feature = |k: usize| if modes[k] == LEAF { 0 } else { short(features[k]) };
    Ok(Trees {
        features: (0..count).map(feature).collect(),
        thresholds,
        tracks: tracks.map_or(vec![0; count], |tracks| tracks.iter().map(|&t| u8::from(t != 0)).collect()),
        yes,
        no,
        roots: roots.into_iter().map(|k| short(k as i64)).collect(),
        leaves,
        targets: targets.iter().map(|&target| short(target)).collect(),
        weights,
        modes,
    })
}

/// Reads version 5, whose leaves are apart from nodes. They follow the nodes, and tests of further
/// members of a set follow them.
fn of_tensors(op: &mut Op<'_, '_, '_>) -> Result<Trees> {
    let features = ints(op, "nodes_featureids")?;
    let (yes, no) = (ints(op, "nodes_truenodeids")?, ints(op, "nodes_falsenodeids")?);
    let (yes_leaf, no_leaf) = (ints(op, "nodes_trueleafs")?, ints(op, "nodes_falseleafs")?);
    let tracks = op.attribute("nodes_missing_value_tracks_true").map(|attribute| &attribute.ints);
    let targets = ints(op, "leaf_targetids")?;
    let roots = ints(op, "tree_roots")?;
    let stated = numbers(op, "nodes_modes")?;
    let splits = numbers(op, "nodes_splits")?;
    let weights = numbers(op, "leaf_weights")?;
    let (count, leaf_count) = (features.len(), targets.len());
    let track_count = tracks.map_or(count, Vec::len);
    let lengths =
        [stated.count(), splits.count(), yes.len(), no.len(), yes_leaf.len(), no_leaf.len(), track_count];
    if count == 0 || lengths.iter().any(|&length| length != count) {
        return Err(Error::invalid(format!("the attributes of {count} nodes have lengths {lengths:?}")));
    }
    if stated.data_type != DataType::Uint8 {
        return Err(Error::invalid("the modes of nodes must be uint8"));
    }
    if weights.count() != leaf_count {
        return Err(Error::invalid("the leaves do not fit"));
    }
    let members = match op.attribute("membership_values") {
        Some(_) => numbers(op, "membership_values")?.reals()?,
        None => Vec::new(),
    };
    let mut sets = members.split(|value| value.is_nan());
    let child = |id: i64, is_leaf: i64| {
        let limit = if is_leaf != 0 { leaf_count } else { count };
        let index = usize::try_from(id).ok().filter(|&index| index < limit);
        let index =
            index.ok_or_else(|| Error::invalid(format!("a node has child {id}, which does not exist")))?;
        Ok(short((if is_leaf != 0 { count + index } else { index }) as i64))
    };
    let mut trees = Trees {
        features: features.iter().map(|&feature| short(feature)).collect(),
        modes: stated.bytes.to_vec(),
        thresholds: splits,
        tracks: tracks.map_or(vec![0; count], |tracks| tracks.iter().map(|&t| u8::from(t != 0)).collect()),
        yes: (0..count).map(|k| child(yes[k], yes_leaf[k])).collect::<Result<_>>()?,
        no: (0..count).map(|k| child(no[k], no_leaf[k])).collect::<Result<_>>()?,
        roots: roots.iter().map(|&root| child(root, 0)).collect::<Result<_>>()?,
        leaves: (0..leaf_count).map(|k| short((count + k) as i64)).collect(),
        targets: targets.iter().map(|&target| short(target)).collect(),
        weights,
    };
    let mut thresholds = trees.thresholds.reals()?;
    for k in 0..leaf_count {
        trees.features.push(0);
        trees.modes.push(LEAF);
        trees.tracks.push(0);
        thresholds.push(0.0);
        trees.yes.push(short((count + k) as i64));
        trees.no.push(short((count + k) as i64));
    }
    for k in 0..count {
        match trees.modes[k] {
            0..=5 => {}
            6 => {
                let set = sets.next().unwrap_or_default();
                let [first, rest @ ..] = set else { return Err(Error::invalid("a set of members is empty")) };
                (trees.modes[k], thresholds[k]) = (EQUAL, *first);
                let (mut last, no) = (k, trees.no[k]);
                for &value in rest {
                    trees.no[last] = short(trees.modes.len() as i64);
                    last = trees.modes.len();
                    trees.features.push(trees.features[k]);
                    trees.modes.push(EQUAL);
                    trees.tracks.push(trees.tracks[k]);
                    thresholds.push(value);
                    trees.yes.push(trees.yes[k]);
                    trees.no.push(no);
                }
            }
            other => return Err(Error::invalid(format!("mode {other} of a node does not exist"))),
        }
    }
    let sizes = [thresholds.len() as i64];
    trees.thresholds = match trees.thresholds.data_type {
        DataType::Double => Constant {
            data_type: DataType::Double,
            sizes: sizes.to_vec(),
            bytes: thresholds.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into(),
        },
        _ => Constant::of_floats(&sizes, &thresholds.iter().map(|&value| value as f32).collect::<Vec<_>>()),
    };
    Ok(trees)
}
