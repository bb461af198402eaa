//! The nodes of decision trees.

use crate::node::context::NodeContext;
use hlo::ComparisonDirection;
use shape::{Literal, NativeType, PrimitiveType};
use support::Result;

/// The test of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
    Leaf,
}

/// Modes by number.
const MODES: [Mode; 6] =
    [Mode::LessEqual, Mode::Less, Mode::GreaterEqual, Mode::Greater, Mode::Equal, Mode::NotEqual];

/// Number of the mode of leaves.
const LEAF: u8 = 255;

/// Deepest tree.
const DEEPEST: usize = 4096;

/// Most trees.
const MOST_TREES: usize = 1 << 18;

/// Visits of nodes that have several parents, in few nodes.
const VISITS_PER_NODE: usize = 64;

/// The same, in any number of nodes.
const MOST_VISITS: usize = 1 << 24;

/// A node: its test, and the nodes for both outcomes.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) threshold: f64,
    pub(super) feature: i32,
    pub(super) yes: u32,
    pub(super) no: u32,
    pub(super) mode: Mode,
    /// True if the test holds for NaN.
    pub(super) tracks_true: bool,
}

impl Node {
    pub(super) fn is_leaf(&self) -> bool {
        self.mode == Mode::Leaf
    }

    /// The nodes for both outcomes, which leaves do not have.
    pub(super) fn children(&self) -> [usize; 2] {
        [self.yes as usize, self.no as usize]
    }
}

/// A number that a leaf adds to a target.
#[derive(Clone, Copy)]
pub(super) struct Weight {
    pub(super) leaf: u32,
    pub(super) target: i32,
    pub(super) value: f64,
}

/// Trees with the numbers that leaves add to targets.
pub(super) struct Ensemble {
    pub(super) nodes: Vec<Node>,
    pub(super) roots: Vec<usize>,
    /// By leaf.
    pub(super) weights: Vec<Weight>,
    pub(super) targets: i64,
    /// The type of thresholds, weights, and sums.
    pub(super) element_type: PrimitiveType,
}

impl Ensemble {
    /// Reads the attributes of a node (`onnx::ops::trees`).
    pub(super) fn of_node(
        cx: &NodeContext<'_, '_>,
        targets: i64,
        features: i64,
        element_type: PrimitiveType,
    ) -> Result<Self> {
        let tests: Vec<i32> = list(cx, "features")?;
        let (modes, tracks): (Vec<u8>, Vec<u8>) = (list(cx, "modes")?, list(cx, "tracks")?);
        let (yes, no): (Vec<i32>, Vec<i32>) = (list(cx, "yes")?, list(cx, "no")?);
        let thresholds = floats(cx, "thresholds")?;
        let count = tests.len();
        let lengths = [modes.len(), tracks.len(), yes.len(), no.len(), thresholds.len()];
        cx.check(count > 0 && lengths.iter().all(|&length| length == count), || {
            format!("the attributes of {count} nodes have lengths {lengths:?}")
        })?;
        let place = |node: i32| {
            let place = u32::try_from(node).ok().filter(|&place| (place as usize) < count);
            place.ok_or_else(|| cx.invalid(format!("there is no node {node}")))
        };
        let mut nodes = Vec::with_capacity(count);
        for k in 0..count {
            let mode = match modes[k] {
                LEAF => Mode::Leaf,
                number => *MODES
                    .get(usize::from(number))
                    .ok_or_else(|| cx.invalid(format!("mode {number} of a node does not exist")))?,
            };
            let feature = i64::from(tests[k]);
            cx.check((0..features).contains(&feature), || {
                format!("a node tests feature {feature}, but the input has {features}")
            })?;
            nodes.push(Node {
                threshold: thresholds[k],
                feature: tests[k],
                yes: place(yes[k])?,
                no: place(no[k])?,
                mode,
                tracks_true: tracks[k] != 0,
            });
        }
        let roots: Vec<i32> = list(cx, "roots")?;
        let roots = roots.into_iter().map(|root| Ok(place(root)? as usize)).collect::<Result<Vec<_>>>()?;
        cx.check((1..=MOST_TREES).contains(&roots.len()), || {
            format!("there are {} trees, but 1 to {MOST_TREES} are supported", roots.len())
        })?;
        let (leaves, own): (Vec<i32>, Vec<i32>) = (list(cx, "leaves")?, list(cx, "targets")?);
        let values = floats(cx, "weights")?;
        cx.check(leaves.len() == own.len() && leaves.len() == values.len(), || {
            "the leaves do not fit".to_owned()
        })?;
        let mut weights = Vec::with_capacity(leaves.len());
        for k in 0..leaves.len() {
            let target = i64::from(own[k]);
            cx.check((0..targets).contains(&target), || format!("target {target} of {targets}"))?;
            weights.push(Weight { leaf: place(leaves[k])?, target: own[k], value: values[k] });
        }
        weights.sort_by_key(|weight| weight.leaf);
        let ensemble = Self { nodes, roots, weights, targets, element_type };
        ensemble.check_depth(cx)?;
        Ok(ensemble)
    }

    /// Checks that there are no cycles.
    fn check_depth(&self, cx: &NodeContext<'_, '_>) -> Result<()> {
        let count = self.nodes.len();
        let most = (2 * count).max((VISITS_PER_NODE * count).min(MOST_VISITS));
        let mut level = self.roots.clone();
        let (mut depth, mut visits) = (0, 0usize);
        while !level.is_empty() {
            depth += 1;
            visits += level.len();
            // Tests of several members share a child.
            cx.check(depth <= DEEPEST && visits <= most, || {
                "the nodes are no trees: a node is its own ancestor".to_owned()
            })?;
            let tests = level.iter().map(|&k| self.nodes[k]).filter(|node| !node.is_leaf());
            level = tests.flat_map(|node| node.children()).collect();
        }
        Ok(())
    }

    /// The most steps from nodes to leaves.
    pub(super) fn depth(&self, roots: &[usize]) -> usize {
        let mut level = roots.to_vec();
        let mut depth = 0;
        loop {
            let tests = level.iter().map(|&k| self.nodes[k]).filter(|node| !node.is_leaf());
            level = tests.flat_map(|node| node.children()).collect();
            if level.is_empty() {
                return depth;
            }
            depth += 1;
        }
    }

    /// The numbers that a leaf adds.
    pub(super) fn weights_of(&self, leaf: usize) -> &[Weight] {
        let first = self.weights.partition_point(|weight| (weight.leaf as usize) < leaf);
        let count = self.weights[first..].iter().take_while(|weight| weight.leaf as usize == leaf).count();
        &self.weights[first..first + count]
    }
}

/// The elements of an attribute.
fn list<T: NativeType>(cx: &NodeContext<'_, '_>, name: &str) -> Result<Vec<T>> {
    let literal = cx.attributes().tensor(name)?;
    literal.to_vec().ok_or_else(|| cx.invalid(format!("attribute '{name}' has another type")))
}

/// The elements of an attribute of floats, or of a list.
pub(super) fn floats(cx: &NodeContext<'_, '_>, name: &str) -> Result<Vec<f64>> {
    let literal: Literal = cx.attributes().tensor(name)?;
    literal.floats().ok_or_else(|| cx.invalid(format!("attribute '{name}' must have floats")))
}

/// The comparison of a test. Leaves have none.
pub(super) fn direction(mode: Mode) -> ComparisonDirection {
    match mode {
        Mode::LessEqual => ComparisonDirection::Le,
        Mode::Less => ComparisonDirection::Lt,
        Mode::GreaterEqual => ComparisonDirection::Ge,
        Mode::Greater => ComparisonDirection::Gt,
        Mode::Equal => ComparisonDirection::Eq,
        Mode::NotEqual | Mode::Leaf => ComparisonDirection::Ne,
    }
}
