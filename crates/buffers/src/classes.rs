//! Values that share memory.
//!
//! Two values may share memory if they are never live at the same tick. They may also meet in a
//! single tick, the last one of the first value, if the instruction that writes the second value in
//! that tick has the right to overwrite the first.

use crate::Slice;
use crate::timeline::Interval;
use std::collections::BTreeSet;

/// Index of a value.
pub(crate) type ValueNumber = usize;

/// Rights to overwrite: (tick, value that is written, value that it may overwrite).
pub(crate) type Rights = BTreeSet<(usize, ValueNumber, ValueNumber)>;

/// A value and an interval in which it is live, ordered by the beginning of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lifetime {
    ticks: Interval,
    value: ValueNumber,
}

impl Lifetime {
    /// True if both values are live in some tick and neither has the right to overwrite the other
    /// there.
    fn clashes(&self, other: &Self, rights: &Rights) -> bool {
        let (a, b) = (self.ticks, other.ticks);
        let (first, last) = (a.begin.max(b.begin), a.end.min(b.end));
        let touches = b.end == first && rights.contains(&(first, self.value, other.value))
            || a.end == first && rights.contains(&(first, other.value, self.value));
        first < last || (first == last && !touches)
    }
}

/// A partition of values into classes that share memory.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    parents: Vec<usize>,
    /// For a representative: the lifetimes of its values, which overlap in single ticks only.
    intervals: Vec<BTreeSet<Lifetime>>,
    /// For a representative: memory that the class already has.
    fixed: Vec<Option<Slice>>,
}

impl Classes {
    /// Adds a value in a class of its own.
    pub(crate) fn add(&mut self, intervals: &[Interval], fixed: Option<Slice>) -> ValueNumber {
        let number = self.parents.len();
        self.parents.push(number);
        self.intervals.push(intervals.iter().map(|&ticks| Lifetime { ticks, value: number }).collect());
        self.fixed.push(fixed);
        number
    }

    /// The representative of a value's class.
    pub(crate) fn find(&mut self, value: ValueNumber) -> usize {
        let mut root = value;
        while self.parents[root] != root {
            root = self.parents[root];
        }
        let mut current = value;
        while self.parents[current] != root {
            current = std::mem::replace(&mut self.parents[current], root);
        }
        root
    }

    /// The memory that a value's class already has.
    pub(crate) fn fixed(&mut self, value: ValueNumber) -> Option<Slice> {
        let root = self.find(value);
        self.fixed[root]
    }

    /// The lifetimes of a class, in ascending order.
    pub(crate) fn intervals(&mut self, value: ValueNumber) -> Vec<Interval> {
        let root = self.find(value);
        self.intervals[root].iter().map(|lifetime| lifetime.ticks).collect()
    }

    /// The interval from the first to the last tick of a value's class.
    pub(crate) fn hull(&mut self, value: ValueNumber) -> Option<Interval> {
        let root = self.find(value);
        let all = &self.intervals[root];
        // Intervals overlap in at most single ticks, so the last one to begin is the last one to
        // end.
        let (first, last) = (all.first()?, all.last()?);
        let end = all.iter().rev().take(2).map(|l| l.ticks.end).max().unwrap_or(last.ticks.end);
        Some(Interval { begin: first.ticks.begin, end })
    }

    /// Lets two values share memory if no lifetimes clash. Returns true if they share it.
    pub(crate) fn merge(&mut self, x: ValueNumber, y: ValueNumber, rights: &Rights) -> bool {
        let (x, y) = (self.find(x), self.find(y));
        if x == y {
            return true;
        }
        if self.fixed[x].is_some() && self.fixed[y].is_some() {
            return false;
        }
        let (large, small) = if self.intervals[x].len() >= self.intervals[y].len() { (x, y) } else { (y, x) };
        if self.intervals[small].iter().any(|small| self.clashes(large, small, rights)) {
            return false;
        }
        self.unite(large, small);
        true
    }

    /// Lets two values share memory unconditionally.
    pub(crate) fn unite(&mut self, large: ValueNumber, small: ValueNumber) {
        let (large, small) = (self.find(large), self.find(small));
        let moved = std::mem::take(&mut self.intervals[small]);
        self.intervals[large].extend(moved);
        self.parents[small] = large;
        self.fixed[large] = self.fixed[large].or(self.fixed[small]);
    }

    /// True if a value cannot live in the memory of a class.
    fn clashes(&self, class: usize, new: &Lifetime, rights: &Rights) -> bool {
        let all = &self.intervals[class];
        let Interval { begin, end } = new.ticks;
        let least = Lifetime { ticks: Interval { begin, end: 0 }, value: 0 };
        // Among those that begin earlier, only the last ones can extend this far.
        for earlier in all.range(..least).rev() {
            if new.clashes(earlier, rights) {
                return true;
            }
            if earlier.ticks.end < begin {
                break;
            }
        }
        let most = Lifetime { ticks: Interval { begin: end, end: usize::MAX }, value: usize::MAX };
        all.range(least..=most).any(|later| new.clashes(later, rights))
    }
}
