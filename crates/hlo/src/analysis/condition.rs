//! Comparisons in a loop's condition: in which iteration they first fail.

use super::induction::{Linear, Step};
use super::interval::Interval;
use crate::ComparisonDirection;

/// What is known of when a part of a condition fails, if the loop runs on as long as it wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// The first iteration in which it is false.
    pub(super) exact: Option<u64>,
    /// It is false in this iteration or an earlier one.
    pub(super) bound: Option<u64>,
    /// It is false in every iteration from the first of these to the second.
    pub(super) settled: Option<(u64, u64)>,
    /// It is never false.
    pub(super) is_true: bool,
}

impl Term {
    /// Nothing is known.
    pub(super) const UNKNOWN: Self = Self { exact: None, bound: None, settled: None, is_true: false };
    /// True for ever.
    pub(super) const TRUE: Self = Self { is_true: true, ..Self::UNKNOWN };
    /// False for ever.
    pub(super) const FALSE: Self =
        Self { exact: Some(0), bound: Some(0), settled: Some((0, u64::MAX)), is_true: false };

    /// When what is this in one iteration and decides in the next fails. `is_first_known`: in the first it is true, else
    /// anything.
    pub(super) fn one_later(self, is_first_known: bool) -> Self {
        let later = |iteration: u64| iteration.saturating_add(1);
        Self {
            exact: self.exact.filter(|_| is_first_known).map(later),
            bound: self.bound.map(later),
            settled: self.settled.map(|(from, to)| (later(from), later(to))),
            is_true: self.is_true && is_first_known,
        }
    }

    /// False as soon as one is.
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
            // Nothing fails earlier than at once.
            _ => bound.filter(|&bound| bound == 0),
        };
        let settled = match (self.settled, other.settled) {
            (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
            (a, b) => a.or(b),
        };
        Self { exact, bound, settled, is_true: false }
    }

    /// False when both are: certainly when both have settled.
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

/// An induction variable in a comparison: the variable before the loop, its next value, and what is compared.
pub(super) struct Moving<'a> {
    pub(super) start: Interval,
    pub(super) next: &'a Linear,
    pub(super) value: &'a Linear,
}

impl Moving<'_> {
    /// What one iteration adds to what is compared.
    fn slope(&self) -> i128 {
        self.value.multiplier * self.next.offset
    }

    /// What is compared before the first iteration, for variables that start here.
    fn first(&self, start: Interval) -> Option<Interval> {
        start.scaled(self.value.multiplier, self.value.offset)
    }

    /// The last iteration up to which nothing wraps, for variables that start here.
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
        // The body computes the next value only in iterations that run, one fewer.
        let read = last(&self.value.path)?;
        let written = last(&self.next.path).map_or(0, |last| last.saturating_add(1));
        Some(u64::try_from(read.min(written)).unwrap_or(u64::MAX))
    }
}

/// When `moving direction limit` first fails. The limit lies in its interval in every iteration; `is_fixed` says that it is
/// the same in all of them.
pub(super) fn against_limit(
    direction: ComparisonDirection,
    moving: &Moving<'_>,
    limit: Interval,
    is_fixed: bool,
) -> Term {
    let order = |is_upper, margin| ordered(moving, limit, is_upper, margin).unwrap_or(Term::UNKNOWN);
    match direction {
        ComparisonDirection::Lt => order(true, 1),
        ComparisonDirection::Le => order(true, 0),
        ComparisonDirection::Gt => order(false, 1),
        ComparisonDirection::Ge => order(false, 0),
        ComparisonDirection::Ne if is_fixed => not_equal(moving, limit).unwrap_or(Term::UNKNOWN),
        ComparisonDirection::Eq if is_fixed => equal(moving, limit).unwrap_or(Term::UNKNOWN),
        ComparisonDirection::Ne | ComparisonDirection::Eq => Term::UNKNOWN,
    }
}

/// `value + margin <= limit` or, mirrored, `value - margin >= limit`.
fn ordered(moving: &Moving<'_>, limit: Interval, is_upper: bool, margin: i128) -> Option<Term> {
    let sign = if is_upper { 1 } else { -1 };
    let mirrored = |interval: Interval| if is_upper { interval } else { interval.negated() };
    // From here on it is `sign * value <= most`, most within limits.
    let limits = mirrored(limit).minus(Interval::exactly(margin));
    let first = mirrored(moving.first(moving.start)?);
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
    // Only where the first comparison holds the loop runs at all: variables that start beyond it need not fit.
    let inside = Interval { low: first.low, high: first.high.min(limits.high) };
    let start = starts_of(moving, mirrored(inside))?;
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

/// The variables for which what is compared lies within an interval, at most.
fn starts_of(moving: &Moving<'_>, values: Interval) -> Option<Interval> {
    let (m, b) = (moving.value.multiplier, moving.value.offset);
    let (low, high) = if m > 0 { (values.low, values.high) } else { (values.high, values.low) };
    let low = (low - b).div_euclid(m);
    let high = (high - b).div_euclid(m) + i128::from((high - b).rem_euclid(m) != 0);
    moving.start.intersection(Interval::new(low, high))
}

/// `value != limit` fails where the value hits the limit; a value that steps over it runs on for ever.
fn not_equal(moving: &Moving<'_>, limit: Interval) -> Option<Term> {
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

/// `value == limit` holds at most once, since the value moves on.
fn equal(moving: &Moving<'_>, limit: Interval) -> Option<Term> {
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

/// When `a direction b` first fails, where both move.
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
