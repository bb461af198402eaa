//! Lessons of one import for the next: the room that stacks and tensor arrays need.

use std::collections::{BTreeMap, BTreeSet};

/// Wrong assumptions of an import, corrected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lessons {
    places: BTreeMap<String, i64>,
    distrusted: BTreeSet<String>,
    has_changed: bool,
}

impl Lessons {
    /// Number of slots that the stack or tensor array of this node turned out to need, or 0.
    pub(crate) fn places(&self, node: &str) -> i64 {
        self.places.get(node).copied().unwrap_or(0)
    }

    /// Records that a stack or a tensor array needs this many slots.
    pub(crate) fn need_places(&mut self, node: &str, places: i64) {
        if self.places(node) < places {
            self.places.insert(node.to_owned(), places);
            self.has_changed = true;
        }
    }

    /// True if the values pushed before a pop do not tell what the pop returns.
    pub(crate) fn is_distrusted(&self, node: &str) -> bool {
        self.distrusted.contains(node)
    }

    /// Records that a value is pushed on a stack after a pop that may return it.
    pub(crate) fn distrust(&mut self, node: &str) {
        self.has_changed |= self.distrusted.insert(node.to_owned());
    }

    /// True if something was learned since the last call.
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }
}
