//! Trip counts of loops.

use super::compared::{self, Compared};
use super::condition::{self, Moving, Term};
use super::induction::{self, Linear, Step};
use super::interval::{Interval, Range};
use super::range::{self, Ranges};
use crate::{ComparisonDirection, Computation, InstructionId, Module, Op};
use shape::{PrimitiveType, Scalar};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The number of times that a loop's body runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TripCount {
    /// The exact number, independent of the inputs.
    pub exact: Option<u64>,
    /// An upper bound. Known if `exact` is.
    pub bound: Option<u64>,
}

/// Returns the trip count of a loop. Condition and body take the state as one tuple; `initial(k)`
/// is the range of its element `k` before the first iteration.
///
/// The condition is split at its conjunctions, disjunctions, and negations. A comparison is usable
/// if one side is linear in an induction variable and the other is linear too, or lies in a known
/// range in every iteration. Other terms may end the loop earlier: with them, a conjunction has
/// only an upper bound, and a disjunction has none. A flag in the state stands for its definition
/// in the previous iteration of the body. A loop that could only end because an integer wraps has
/// no bound, nor does a loop whose bound would exceed 2^30.
pub fn trip_count(
    module: &Module,
    condition: &Computation,
    body: &Computation,
    initial: &dyn Fn(usize) -> Range,
) -> TripCount {
    Loop::new(module, condition, body, initial, 0).trip_count()
}

/// Returns the range of each state element at the start of the body, valid in every iteration.
pub fn state_ranges(
    module: &Module,
    condition: &Computation,
    body: &Computation,
    initial: &dyn Fn(usize) -> Range,
) -> Vec<Range> {
    Loop::new(module, condition, body, initial, 0).state_ranges(None)
}

/// Like [`state_ranges`], for a loop that runs at most `most` times regardless of its condition.
pub fn state_ranges_within(
    module: &Module,
    condition: &Computation,
    body: &Computation,
    initial: &dyn Fn(usize) -> Range,
    most: u64,
) -> Vec<Range> {
    Loop::new(module, condition, body, initial, 0).state_ranges(Some(most))
}

/// Returns the range of a state element after the loop.
pub(super) fn after_loop(
    module: &Module,
    condition: &Computation,
    body: &Computation,
    initial: &dyn Fn(usize) -> Range,
    element: usize,
    depth: usize,
) -> Option<Range> {
    Loop::new(module, condition, body, initial, depth).after(element)
}

/// Maximum nesting depth of conjunctions and disjunctions; deeper parts count as unknown.
const MAX_DEPTH: usize = 64;
/// Maximum length of a chain of flags that depend on each other.
const MAX_FLAGS: usize = 4;
/// Maximum number of parts of a condition that are analyzed.
const MAX_TERMS: usize = 1 << 12;

/// A larger bound comes from the limits of a type, not from the program.
const MAX_BOUND: u64 = 1 << 30;

struct Loop<'a> {
    module: &'a Module,
    condition: &'a Computation,
    body: &'a Computation,
    initial: &'a dyn Fn(usize) -> Range,
    /// Cached results of `initial`, each of which may require the analysis of another loop.
    initial_ranges: RefCell<BTreeMap<usize, Range>>,
    /// The next value of each induction variable.
    variables: BTreeMap<usize, Linear>,
    invariants: BTreeSet<usize>,
    /// Number of loops that this query has passed through.
    depth: usize,
    /// The flags whose next values are being analyzed, and whether each is negated.
    flags: Vec<(usize, bool)>,
}

impl<'a> Loop<'a> {
    fn new(
        module: &'a Module,
        condition: &'a Computation,
        body: &'a Computation,
        initial: &'a dyn Fn(usize) -> Range,
        depth: usize,
    ) -> Self {
        let invariants = induction::invariant_elements(module, body);
        let (initial_ranges, variables) = (RefCell::default(), BTreeMap::new());
        let flags = Vec::new();
        let mut analysis =
            Self { module, condition, body, initial, initial_ranges, variables, invariants, depth, flags };
        analysis.variables = induction::variables(module, body, &|k| analysis.initial(k).value());
        analysis
    }

    /// Returns the range of a state element before the loop.
    fn initial(&self, element: usize) -> Range {
        if let Some(&range) = self.initial_ranges.borrow().get(&element) {
            return range;
        }
        let range = (self.initial)(element);
        self.initial_ranges.borrow_mut().insert(element, range);
        range
    }

    fn trip_count(&self) -> TripCount {
        let Some(root) = self.condition.root_if_set() else { return TripCount::default() };
        let mut terms = 0;
        let Term { exact, bound, .. } = self.term(root, false, 0, &mut terms);
        TripCount { exact, bound: exact.or(bound.filter(|&bound| bound <= MAX_BOUND)) }
    }

    /// Determines when an instruction of the condition, or its negation, first fails.
    fn term(&self, id: InstructionId, is_negated: bool, depth: usize, terms: &mut usize) -> Term {
        *terms += 1;
        if depth > MAX_DEPTH || *terms > MAX_TERMS {
            return Term::UNKNOWN;
        }
        let instruction = &self.condition[id];
        let operands = instruction.operands();
        let mut part = |id: InstructionId, is_negated: bool| self.term(id, is_negated, depth + 1, terms);
        match (instruction.op(), operands) {
            (Op::And {}, &[a, b]) if !is_negated => part(a, false).and(part(b, false)),
            (Op::And {}, &[a, b]) => part(a, true).or(part(b, true)),
            (Op::Or {}, &[a, b]) if !is_negated => part(a, false).or(part(b, false)),
            (Op::Or {}, &[a, b]) => part(a, true).and(part(b, true)),
            (Op::Not {}, &[a]) => part(a, !is_negated),
            (Op::Copy {} | Op::Reshape {}, &[a]) => part(a, is_negated),
            (Op::Convert {}, &[a]) if self.is_pred(a) => part(a, is_negated),
            (Op::GetTupleElement { index }, &[tuple]) => match self.condition[tuple].op() {
                Op::Tuple {} => part(self.condition[tuple].operands()[*index], is_negated),
                _ => match induction::state_element(self.condition, id) {
                    Some(element) if !self.invariants.contains(&element) => {
                        self.flag(element, is_negated, depth, terms)
                    }
                    _ => self.constant_term(id, is_negated),
                },
            },
            (Op::Select {}, &[p, a, b]) => match (self.constant_value(a), self.constant_value(b), is_negated)
            {
                // p ? a : false
                (_, Some(false), false) => part(p, false).and(part(a, false)),
                (Some(true), _, false) => part(p, false).or(part(b, false)),
                (_, Some(false), true) => part(p, true).or(part(a, true)),
                (Some(true), _, true) => part(p, true).and(part(b, true)),
                _ => Term::UNKNOWN,
            },
            (Op::Compare { direction, .. }, &[a, b]) => {
                if self.is_pred(a) {
                    let asks_equal = match direction {
                        ComparisonDirection::Eq => true,
                        ComparisonDirection::Ne => false,
                        _ => return Term::UNKNOWN,
                    };
                    return match (self.constant_value(a), self.constant_value(b)) {
                        (_, Some(value)) => part(a, is_negated ^ (asks_equal != value)),
                        (Some(value), _) => part(b, is_negated ^ (asks_equal != value)),
                        _ => Term::UNKNOWN,
                    };
                }
                let direction = if is_negated { inverse(*direction) } else { *direction };
                self.comparison(direction, a, b)
            }
            _ => self.constant_term(id, is_negated),
        }
    }

    /// Determines when a flag in the state, or its negation, first fails: one iteration after its
    /// definition in the body does. Loops that end with a `break` have such a flag.
    fn flag(&self, element: usize, is_negated: bool, depth: usize, terms: &mut usize) -> Term {
        let is_first = self.initial(element).value().map(|value| (value != 0) != is_negated);
        if is_first == Some(false) {
            return Term { settled: Some((0, 0)), ..Term::FALSE };
        }
        if self.flags.contains(&(element, is_negated)) {
            // It cannot fail before some other term makes it fail.
            return Term::TRUE;
        }
        if self.flags.len() >= MAX_FLAGS || self.flags.iter().any(|&(other, _)| other == element) {
            return Term::UNKNOWN;
        }
        let next = self.body.root_if_set().and_then(|root| match self.body[root].op() {
            Op::Tuple {} => self.body[root].operands().get(element).copied(),
            _ => None,
        });
        let Some(next) = next else { return Term::UNKNOWN };
        let flags = [&self.flags[..], &[(element, is_negated)]].concat();
        let of_body = Self {
            condition: self.body,
            initial_ranges: self.initial_ranges.clone(),
            variables: self.variables.clone(),
            invariants: self.invariants.clone(),
            flags,
            ..*self
        };
        of_body.term(next, is_negated, depth + 1, terms).one_later(is_first.is_some())
    }

    fn is_pred(&self, id: InstructionId) -> bool {
        self.condition[id].shape().as_array().is_some_and(|s| s.element_type == PrimitiveType::Pred)
    }

    fn constant_term(&self, id: InstructionId, is_negated: bool) -> Term {
        match self.constant_value(id) {
            Some(value) if value != is_negated => Term::TRUE,
            Some(_) => Term::FALSE,
            None => Term::UNKNOWN,
        }
    }

    /// Returns the value that a predicate of the condition has in every iteration.
    fn constant_value(&self, id: InstructionId) -> Option<bool> {
        if let Op::Constant { literal } = self.condition[id].op() {
            if literal.array_shape().element_count() != 1 {
                return None;
            }
            let Scalar::Pred(value) = literal.scalar_at(0) else { return None };
            return Some(value);
        }
        Some(self.interval(id)?.value()? != 0)
    }

    fn comparison(&self, direction: ComparisonDirection, a: InstructionId, b: InstructionId) -> Term {
        let interval = |id| self.interval(id);
        let Some([a, b]) = compared::integers(self.condition, [a, b], &interval) else {
            return Term::UNKNOWN;
        };
        let (Some(a_in), Some(b_in)) = (a.interval(&interval), b.interval(&interval)) else {
            return Term::UNKNOWN;
        };
        let (a_linear, b_linear) = (self.linear(a), self.linear(b));
        match (&a_linear, &b_linear) {
            (Some(a_linear), Some(b_linear)) => {
                let (Some(a), Some(b)) = (self.moving(a_linear), self.moving(b_linear)) else {
                    return Term::UNKNOWN;
                };
                condition::against_moving(direction, &a, &b).unwrap_or(Term::UNKNOWN)
            }
            (Some(linear), None) => self.against(direction, linear, b, b_in),
            (None, Some(linear)) => self.against(mirror(direction), linear, a, a_in),
            (None, None) => match range::compare(direction, a_in, b_in).and_then(Interval::value) {
                Some(0) => Term::FALSE,
                Some(_) => Term::TRUE,
                None => Term::UNKNOWN,
            },
        }
    }

    fn against(
        &self,
        direction: ComparisonDirection,
        value: &Linear,
        limit: Compared,
        range: Interval,
    ) -> Term {
        let Some(moving) = self.moving(value) else { return Term::UNKNOWN };
        condition::against_limit(direction, &moving, range, self.is_fixed(limit))
    }

    /// Expresses a value of the condition as a linear function of an induction variable.
    fn linear(&self, compared: Compared) -> Option<Linear> {
        let Compared::Value(id) = compared else { return None };
        let constant = |k: usize| self.initial(k).value().filter(|_| self.invariants.contains(&k));
        let linear = induction::linear(self.module, self.condition, id, &constant)?;
        self.variables.contains_key(&linear.element).then_some(linear)
    }

    fn moving<'b>(&'b self, value: &'b Linear) -> Option<Moving<'b>> {
        let next = self.variables.get(&value.element)?;
        Some(Moving { start: self.start(value.element)?, next, value })
    }

    /// Returns the interval of a state element before the loop.
    fn start(&self, element: usize) -> Option<Interval> {
        let all = self.all(element)?;
        Some(Interval::from_range(self.initial(element), all))
    }

    fn all(&self, element: usize) -> Option<Interval> {
        let parameter = *self.body.parameters().first()?;
        let shape = self.body[parameter].shape().get(&[element])?.as_array()?;
        Interval::of_type(shape.element_type)
    }

    /// Returns an interval of an instruction in the condition that holds in every iteration: only
    /// invariant state is known.
    fn interval(&self, id: InstructionId) -> Option<Interval> {
        let of_leaf = |id: InstructionId| {
            let element = induction::state_element(self.condition, id)?;
            self.invariants.contains(&element).then(|| self.initial(element))
        };
        let ranges = Ranges {
            module: Some(self.module),
            computation: self.condition,
            of_leaf: &of_leaf,
            depth: self.depth,
        };
        ranges.interval(id)
    }

    /// True if an operand of a comparison depends only on constants and invariant elements.
    fn is_fixed(&self, compared: Compared) -> bool {
        let Compared::Value(id) = compared else { return true };
        let mut seen = BTreeSet::new();
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > MAX_TERMS {
                return false;
            }
            if let Some(element) = induction::state_element(self.condition, id) {
                if !self.invariants.contains(&element) {
                    return false;
                }
                continue;
            }
            let instruction = &self.condition[id];
            if instruction.has_effect()
                || matches!(instruction.op(), Op::Parameter { .. } | Op::CustomCall { .. })
            {
                return false;
            }
            pending.extend(instruction.operands());
        }
        true
    }

    fn state_ranges(&self, most: Option<u64>) -> Vec<Range> {
        let bounds = self.trip_count().bound.into_iter().chain(most);
        let last = bounds.min().map(|bound| bound.saturating_sub(1));
        let count = self.element_count();
        let moving = (0..count).map(|k| self.simple_element(k, 0, last));
        let ranges: Vec<Option<Range>> = moving.collect();
        (0..count).map(|k| ranges[k].unwrap_or_else(|| self.element_from_body(k, &ranges))).collect()
    }

    fn element_count(&self) -> usize {
        let parameter = self.body.parameters().first();
        parameter.and_then(|&p| self.body[p].shape().as_tuple()).map_or(0, <[_]>::len)
    }

    fn after(&self, element: usize) -> Option<Range> {
        let trip_count = self.trip_count();
        let first = trip_count.exact.unwrap_or(0);
        if let Some(range) = self.simple_element(element, first, trip_count.bound) {
            return Some(range);
        }
        self.state_ranges(None).get(element).copied()
    }

    /// Returns the range of an invariant or an induction variable after `first` through `last`
    /// iterations.
    fn simple_element(&self, element: usize, first: u64, last: Option<u64>) -> Option<Range> {
        if self.invariants.contains(&element) {
            return Some(self.initial(element));
        }
        let next = self.variables.get(&element)?;
        let (all, start) = (self.all(element)?, self.start(element)?);
        let after = |first: u64| {
            let iterations = Interval::new(first.into(), last?.into());
            Some(start.plus(Interval::exactly(next.offset).times(iterations)?))
        };
        if !next.wraps_like_element() {
            // Then no step may leave its range.
            let states = after(0)?;
            let fits = |step: &Step| Some(step.all.contains(states.scaled(step.multiplier, step.offset)?));
            next.path.iter().all(|step| fits(step) == Some(true)).then_some(())?;
        }
        let interval = after(first)?;
        all.contains(interval).then(|| interval.to_range(all))
    }

    /// Returns the hull of an element's initial value and its definition in the body.
    fn element_from_body(&self, element: usize, ranges: &[Option<Range>]) -> Range {
        let next = || {
            let root = self.body.root_if_set()?;
            let Op::Tuple {} = self.body[root].op() else { return None };
            let id = *self.body[root].operands().get(element)?;
            let of_leaf = |id: InstructionId| {
                let element = induction::state_element(self.body, id)?;
                ranges.get(element).copied().flatten()
            };
            let ranges = Ranges {
                module: Some(self.module),
                computation: self.body,
                of_leaf: &of_leaf,
                depth: self.depth + 1,
            };
            let all = self.all(element)?;
            Some(ranges.interval(id)?.hull(self.start(element)?).to_range(all))
        };
        next().unwrap_or(Range::UNKNOWN)
    }
}

fn inverse(direction: ComparisonDirection) -> ComparisonDirection {
    use ComparisonDirection::*;
    match direction {
        Lt => Ge,
        Ge => Lt,
        Le => Gt,
        Gt => Le,
        Eq => Ne,
        Ne => Eq,
    }
}

/// Returns the direction for swapped operands.
fn mirror(direction: ComparisonDirection) -> ComparisonDirection {
    use ComparisonDirection::*;
    match direction {
        Lt => Gt,
        Gt => Lt,
        Le => Ge,
        Ge => Le,
        Eq => Eq,
        Ne => Ne,
    }
}
