//! One conditional: the nodes that end it.

use super::state::{Outcome, States};
use crate::{NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The nodes that end a conditional: they become the results of one `If`.
pub(super) struct Conditional {
    pub(super) predicate: OutputId,
    /// The state of the place where it stands.
    pub(super) outer: Rc<Vec<Outcome>>,
    /// Each `Merge` with its input under each outcome.
    pub(super) merges: BTreeMap<NodeId, Vec<usize>>,
    /// Nodes that run for their effect under one of the outcomes.
    pub(super) effects: BTreeSet<NodeId>,
    /// Nodes that run under every outcome, between a `Merge` of this conditional and a branch that
    /// needs them.
    pub(super) between: BTreeSet<NodeId>,
    /// True if the branches contain conditionals, which are replaced in the branch functions.
    pub(super) nests: bool,
}

impl Conditional {
    /// The nodes that end it.
    pub(super) fn ends(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.merges.keys().chain(&self.effects).copied()
    }

    /// Under which outcome of the predicate a node runs, if under one only.
    pub(super) fn outcome_of(&self, states: &States, id: NodeId) -> Option<usize> {
        let state = states.of_node(id).as_ref()?;
        state.iter().find(|outcome| outcome.predicate == self.predicate).map(|outcome| outcome.number)
    }
}
