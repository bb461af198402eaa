//! Lessons of one import for the next: how much room stacks and tensor arrays need.

use std::collections::{BTreeMap, BTreeSet};

/// What was found wrong in an import.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lessons {
    places: BTreeMap<String, i64>,
    distrusted: BTreeSet<String>,
    has_changed: bool,
}

impl Lessons {
    /// The places that a stack or a tensor array turned out to need, by the node that makes it; else 0.
    pub(crate) fn places(&self, node: &str) -> i64 {
        self.places.get(node).copied().unwrap_or(0)
    }

    /// A stack or a tensor array needs so many places.
    pub(crate) fn need_places(&mut self, node: &str, places: i64) {
        if self.places(node) < places {
            self.places.insert(node.to_owned(), places);
            self.has_changed = true;
        }
    }

    /// Whether what was pushed before a pop says nothing about what it gives.
    pub(crate) fn is_distrusted(&self, node: &str) -> bool {
        self.distrusted.contains(node)
    }

    /// Something was pushed on a stack behind a pop that may give it.
    pub(crate) fn distrust(&mut self, node: &str) {
        self.has_changed |= self.distrusted.insert(node.to_owned());
    }

    /// Whether something was learned since this was asked last.
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }
}
