//! Values that share a piece of memory.
//!
//! Two values may share memory if they are never alive at the same tick; or at one only, the last one of the first, in which
//! the second is written by something that has the right to write it over the first.

use crate::Slice;
use crate::timeline::Interval;
use std::collections::BTreeSet;

/// The number of a value.
pub(crate) type ValueNumber = usize;

/// The rights to overwrite: in this tick, this value may be written over that one.
pub(crate) type Rights = BTreeSet<(usize, ValueNumber, ValueNumber)>;

/// A value and ticks in which it is alive, ordered by the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lifetime {
    ticks: Interval,
    value: ValueNumber,
}

impl Lifetime {
    /// True if both values are needed in some tick and neither has the right to be written over the other there.
    fn clashes(&self, other: &Self, rights: &Rights) -> bool {
        let (a, b) = (self.ticks, other.ticks);
        let (first, last) = (a.begin.max(b.begin), a.end.min(b.end));
        let touches = b.end == first && rights.contains(&(first, self.value, other.value))
            || a.end == first && rights.contains(&(first, other.value, self.value));
        first < last || (first == last && !touches)
    }
}

/// A partition of values into classes, each of one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    parents: Vec<usize>,
    /// Of a representative: when its values are alive. They overlap in single ticks only.
    intervals: Vec<BTreeSet<Lifetime>>,
    /// Of a representative: memory that the class has anyway.
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
        let mut at = value;
        while self.parents[at] != root {
            at = std::mem::replace(&mut self.parents[at], root);
        }
        root
    }

    /// The memory that a value's class has anyway.
    pub(crate) fn fixed(&mut self, value: ValueNumber) -> Option<Slice> {
        let root = self.find(value);
        self.fixed[root]
    }

    /// When some value of a class is alive, rising.
    pub(crate) fn intervals(&mut self, value: ValueNumber) -> Vec<Interval> {
        let root = self.find(value);
        self.intervals[root].iter().map(|lifetime| lifetime.ticks).collect()
    }

    /// From the first to the last tick of a value's class.
    pub(crate) fn hull(&mut self, value: ValueNumber) -> Option<Interval> {
        let root = self.find(value);
        let all = &self.intervals[root];
        // Intervals overlap in single ticks at most, so the last one to begin is the last one to end.
        let (first, last) = (all.first()?, all.last()?);
        let end = all.iter().rev().take(2).map(|l| l.ticks.end).max().unwrap_or(last.ticks.end);
        Some(Interval { begin: first.ticks.begin, end })
    }

    /// Lets two values share memory, if nothing stands against it; whether they do.
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

    /// Lets two values share memory whatever stands against it.
    pub(crate) fn unite(&mut self, large: ValueNumber, small: ValueNumber) {
        let (large, small) = (self.find(large), self.find(small));
        let moved = std::mem::take(&mut self.intervals[small]);
        self.intervals[large].extend(moved);
        self.parents[small] = large;
        self.fixed[large] = self.fixed[large].or(self.fixed[small]);
    }

    /// True if a value must not live in the memory of a class.
    fn clashes(&self, class: usize, new: &Lifetime, rights: &Rights) -> bool {
        let all = &self.intervals[class];
        let Interval { begin, end } = new.ticks;
        let least = Lifetime { ticks: Interval { begin, end: 0 }, value: 0 };
        // Of those that begin earlier, only the last ones can reach so far.
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
