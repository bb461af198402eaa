//! Comparisons in a loop's condition, and the iteration in which each first becomes false.

use super::induction::{Linear, Step};
use super::interval::Interval;
use crate::ComparisonDirection;

/// The iterations in which a part of a condition is false, assuming that the loop does not end
/// earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// The first iteration in which it is false.
    pub(super) exact: Option<u64>,
    /// It is false in this iteration or an earlier one.
    pub(super) bound: Option<u64>,
    /// It is false in every iteration from the first of these through the second.
    pub(super) settled: Option<(u64, u64)>,
    /// It is never false.
    pub(super) is_true: bool,
}

impl Term {
    /// No information.
    pub(super) const UNKNOWN: Self = Self { exact: None, bound: None, settled: None, is_true: false };
    /// Always true.
    pub(super) const TRUE: Self = Self { is_true: true, ..Self::UNKNOWN };
    /// Always false.
    pub(super) const FALSE: Self =
        Self { exact: Some(0), bound: Some(0), settled: Some((0, u64::MAX)), is_true: false };

    /// Delays the term by one iteration: this value decides in the next iteration. If
    /// `is_first_known`, the condition is true in the first iteration; otherwise it is unknown
    /// there.
    pub(super) fn one_later(self, is_first_known: bool) -> Self {
        let later = |iteration: u64| iteration.saturating_add(1);
        Self {
            exact: self.exact.filter(|_| is_first_known).map(later),
            bound: self.bound.map(later),
            settled: self.settled.map(|(from, to)| (later(from), later(to))),
            is_true: self.is_true && is_first_known,
        }
    }

    /// A conjunction is false as soon as either part is.
    pub(super) fn and(self, other: Self) -> Self {
        if self.is_true {
            return other;
        }
        if other.is_true {
            return self;
        }
        let bound = least(self.bound, other.bound);
        let exact = match (self.exact, other.exact) {
            (Some(a), Some(b)) => Some(a.min(b)),
            // No part can fail before the first iteration.
            _ => bound.filter(|&bound| bound == 0),
        };
        let settled = match (self.settled, other.settled) {
            (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
            (a, b) => a.or(b),
        };
        Self { exact, bound, settled, is_true: false }
    }

    /// A disjunction is false when both parts are, which is certain only once both have settled.
    pub(super) fn or(self, other: Self) -> Self {
        if self.is_true || other.is_true {
            return Self::TRUE;
        }
        let (Some(a), Some(b)) = (self.settled, other.settled) else { return Self::UNKNOWN };
        let (from, to) = (a.0.max(b.0), a.1.min(b.1));
        if from > to {
            return Self::UNKNOWN;
        }
        let is_exact = |term: Self, settled: (u64, u64)| term.exact == Some(settled.0);
        let exact = (is_exact(self, a) && is_exact(other, b)).then_some(from);
        Self { exact, bound: Some(from), settled: Some((from, to)), is_true: false }
    }
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// An induction variable in a comparison: its initial value, its next value, and the compared
/// value.
pub(super) struct Moving<'a> {
    pub(super) start: Interval,
    pub(super) next: &'a Linear,
    pub(super) value: &'a Linear,
}

impl Moving<'_> {
    /// Returns the change of the compared value per iteration.
    fn slope(&self) -> i128 {
        self.value.multiplier * self.next.offset
    }

    /// Returns the compared value before the first iteration, for variables with this initial
    /// value.
    fn first(&self, start: Interval) -> Option<Interval> {
        start.scaled(self.value.multiplier, self.value.offset)
    }

    /// Returns the last iteration before which no arithmetic wraps, for variables with this initial
    /// value.
    fn horizon(&self, start: Interval) -> Option<u64> {
        let step = self.next.offset;
        let last = |steps: &[Step]| -> Option<i128> {
            steps.iter().try_fold(i128::MAX, |last, s| {
                let first = start.scaled(s.multiplier, s.offset)?;
                if !s.all.contains(first) {
                    return None;
                }
                let slope = s.multiplier.checked_mul(step)?;
                let room = if slope > 0 { s.all.high - first.high } else { first.low - s.all.low };
                Some(last.min(room / slope.abs().max(1)))
            })
        };
        // The body computes the next value only in iterations that run, so one time less often.
        let read = last(&self.value.path)?;
        let written = last(&self.next.path).map_or(0, |last| last.saturating_add(1));
        Some(u64::try_from(read.min(written)).unwrap_or(u64::MAX))
    }
}

/// Determines when `moving direction limit` first fails. The limit lies in its interval in every
/// iteration; if `is_fixed`, it is the same in all of them.
pub(super) fn against_limit(
    direction: ComparisonDirection,
    moving: &Moving<'_>,
    limit: Interval,
    is_fixed: bool,
) -> Term {
    let order = |is_upper, margin| order_term(moving, limit, is_upper, margin).unwrap_or(Term::UNKNOWN);
    match direction {
        ComparisonDirection::Lt => order(true, 1),
        ComparisonDirection::Le => order(true, 0),
        ComparisonDirection::Gt => order(false, 1),
        ComparisonDirection::Ge => order(false, 0),
        ComparisonDirection::Ne if is_fixed => not_equal_term(moving, limit).unwrap_or(Term::UNKNOWN),
        ComparisonDirection::Eq if is_fixed => equal_term(moving, limit).unwrap_or(Term::UNKNOWN),
        ComparisonDirection::Ne | ComparisonDirection::Eq => Term::UNKNOWN,
    }
}

/// `value + margin <= limit` or, mirrored, `value - margin >= limit`.
fn order_term(moving: &Moving<'_>, limit: Interval, is_upper: bool, margin: i128) -> Option<Term> {
    let sign = if is_upper { 1 } else { -1 };
    let mirror = |interval: Interval| if is_upper { interval } else { interval.negated() };
    // The comparison is now `sign * value <= most`, with `most` in `limits`.
    let limits = mirror(limit).minus(Interval::exactly(margin));
    let first = mirror(moving.first(moving.start)?);
    let slope = sign * moving.slope();
    let settled = |from: u64| {
        let last = moving.horizon(moving.start)?;
        (slope > 0 && from <= last).then_some((from, last))
    };
    if first.low > limits.high {
        return Some(Term { exact: Some(0), bound: Some(0), settled: settled(0), is_true: false });
    }
    if slope <= 0 {
        return None;
    }
    let bound = (limits.high - first.low) / slope + 1;
    let bound = u64::try_from(bound).ok()?;
    // The loop only runs if the first comparison holds, so initial values beyond it do not matter.
    let inside = Interval { low: first.low, high: first.high.min(limits.high) };
    let start = starts_of(moving, mirror(inside))?;
    if moving.horizon(start)? < bound {
        return None;
    }
    let is_exact = first.value().is_some() && limits.value().is_some();
    Some(Term {
        exact: is_exact.then_some(bound),
        bound: Some(bound),
        settled: settled(bound),
        is_true: false,
    })
}

/// Returns bounds on the initial values for which the compared value lies in an interval.
fn starts_of(moving: &Moving<'_>, values: Interval) -> Option<Interval> {
    let (m, b) = (moving.value.multiplier, moving.value.offset);
    let (low, high) = if m > 0 { (values.low, values.high) } else { (values.high, values.low) };
    let low = (low - b).div_euclid(m);
    let high = (high - b).div_euclid(m) + i128::from((high - b).rem_euclid(m) != 0);
    moving.start.intersection(Interval::new(low, high))
}

/// `value != limit` fails when the value reaches the limit; a value that steps over it never ends
/// the loop.
fn not_equal_term(moving: &Moving<'_>, limit: Interval) -> Option<Term> {
    let (first, slope) = (moving.first(moving.start)?, moving.slope());
    let distance = if slope > 0 { limit.minus(first) } else { first.minus(limit) };
    let slope = slope.abs();
    let hits = |interval: Interval| interval.low >= 0 && (slope == 1 || interval.value().is_some());
    if !hits(distance) || distance.high % slope != 0 {
        return None;
    }
    let bound = u64::try_from(distance.high / slope).ok()?;
    if moving.horizon(moving.start)? < bound {
        return None;
    }
    let exact = distance.value().map(|_| bound);
    Some(Term { exact, bound: Some(bound), settled: None, is_true: false })
}

/// `value == limit` holds at most once, since the value changes in each iteration.
fn equal_term(moving: &Moving<'_>, limit: Interval) -> Option<Term> {
    let first = moving.first(moving.start)?;
    if first.intersection(limit).is_none() {
        return Some(Term { exact: Some(0), bound: Some(0), settled: None, is_true: false });
    }
    if moving.horizon(moving.start)? < 1 {
        return None;
    }
    let exact = (first.value().is_some() && first == limit).then_some(1);
    Some(Term { exact, bound: Some(1), settled: None, is_true: false })
}

/// Determines when `a direction b` first fails if both sides change.
pub(super) fn against_moving(direction: ComparisonDirection, a: &Moving<'_>, b: &Moving<'_>) -> Option<Term> {
    let (sign, margin) = match direction {
        ComparisonDirection::Lt => (1, 1),
        ComparisonDirection::Le => (1, 0),
        ComparisonDirection::Gt => (-1, 1),
        ComparisonDirection::Ge => (-1, 0),
        ComparisonDirection::Eq | ComparisonDirection::Ne => return None,
    };
    let difference = a.first(a.start)?.minus(b.first(b.start)?);
    let difference = if sign > 0 { difference } else { difference.negated() };
    let slope = sign * (a.slope() - b.slope());
    let last = a.horizon(a.start)?.min(b.horizon(b.start)?);
    let is_exact = difference.value().is_some();
    if difference.low > -margin {
        let settled = (slope >= 0).then_some((0, last));
        return Some(Term { exact: Some(0), bound: Some(0), settled, is_true: false });
    }
    if slope <= 0 {
        return None;
    }
    let bound = u64::try_from((-margin - difference.low) / slope + 1).ok()?;
    let exact = is_exact.then_some(bound);
    (bound <= last).then_some(Term {
        exact,
        bound: Some(bound),
        settled: Some((bound, last)),
        is_true: false,
    })
}
