//! One conditional, described by the nodes that end it.

use super::state::{Outcome, States};
use crate::{NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The nodes that end a conditional: they become the results of one `If`.
pub(super) struct Conditional {
    pub(super) predicate: OutputId,
    /// State in which the conditional as a whole runs.
    pub(super) outer: Rc<Vec<Outcome>>,
    /// Each `Merge` with its input under each outcome.
    pub(super) merges: BTreeMap<NodeId, Vec<usize>>,
    /// Nodes that run for their effect under one of the outcomes.
    pub(super) effects: BTreeSet<NodeId>,
    /// Nodes that run under every outcome because they use a `Merge` of this conditional and a
    /// branch of it needs them.
    pub(super) between: BTreeSet<NodeId>,
    /// True if the branches contain conditionals, which are replaced in the branch functions.
    pub(super) nests: bool,
}

impl Conditional {
    /// The nodes that end the conditional.
    pub(super) fn ends(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.merges.keys().chain(&self.effects).copied()
    }

    /// Outcome of the predicate under which a node runs, if it runs under only one.
    pub(super) fn outcome_of(&self, states: &States, id: NodeId) -> Option<usize> {
        let state = states.node_state(id).as_ref()?;
        state.iter().find(|outcome| outcome.predicate == self.predicate).map(|outcome| outcome.number)
    }
}
