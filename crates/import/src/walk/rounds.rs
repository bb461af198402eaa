//! What one import teaches the next: how much room stacks and tensor arrays need.
//!
//! A buffer is made at the first push or write, when what comes later is not known yet. Nearly always that is enough; where
//! it is not, the program is imported again, with what was found.

use crate::walk::importer::Importer;
use std::collections::{BTreeMap, BTreeSet};

use support::{Code, Error, Result};
use tf::Program;

/// How often a program is imported; each time all that was found too small gets the room that it needed.
const MAX_ROUNDS: usize = 8;

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

/// Imports until nothing is learned any more.
pub(crate) fn import_in_rounds<'p, R>(
    program: &'p Program,
    import: impl Fn(Importer<'p>) -> (Result<R>, Lessons),
) -> Result<R> {
    let mut lessons = Lessons::default();
    for _ in 0..MAX_ROUNDS {
        let mut importer = Importer::new(program, "tfcompile");
        importer.lessons = lessons;
        let (result, mut learned) = import(importer);
        if !learned.take_change() {
            return result;
        }
        lessons = learned;
    }
    Err(Error::unsupported(format!(
        "the stacks or tensor arrays of the graph still need more room after {MAX_ROUNDS} rounds; give them their sizes"
    )).coded(Code::LoopBound))
}
