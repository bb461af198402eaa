//! The nodes of decision trees.

use hlo::ComparisonDirection;

/// The test of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Leaf,
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
}

/// A node: its test, and the nodes for both outcomes.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) feature: i64,
    pub(super) mode: Mode,
    pub(super) threshold: f32,
    pub(super) yes: usize,
    pub(super) no: usize,
    /// True if the test holds for NaN.
    pub(super) tracks_true: bool,
}

/// Trees with the numbers that leaves add to targets.
pub(super) struct Ensemble {
    pub(super) nodes: Vec<Node>,
    pub(super) roots: Vec<usize>,
    /// Number of a leaf, its target, and the number.
    pub(super) weights: Vec<(usize, i64, f32)>,
    pub(super) targets: i64,
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
