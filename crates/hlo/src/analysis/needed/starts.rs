//! Limits of the indices at which slices start, such as the number of an iteration of a loop.

use super::extent::{Extent, least};
use super::masks::{Masks, Place};
use crate::{ComparisonDirection, ComputationId, InstructionId, Op};

/// Maximum number of instructions to follow.
const MAX_DEPTH: usize = 12;

/// A range of integers: from a constant up to a number that depends on a size.
#[derive(Clone, Copy)]
struct Limits {
    least: i64,
    most: Extent,
}

impl Limits {
    fn plus(self, number: i64) -> Option<Self> {
        Some(Self { least: self.least.checked_add(number)?, most: self.most.plus(number)? })
    }
}

impl Masks<'_> {
    /// Returns the largest value that a start index may have, after it is clamped to 0.
    pub(super) fn start(&self, at: ComputationId, id: InstructionId) -> Option<Extent> {
        let Limits { least, most } = self.limits((at, id), MAX_DEPTH)?;
        (least >= 0 || self.least(most)? >= 0).then_some(most)
    }

    /// Returns the limits of an integer that does not wrap around.
    fn limits(&self, place: Place, depth: usize) -> Option<Limits> {
        let place = self.origin(place);
        if let Some(most) = self.number(place, depth) {
            return Some(Limits { least: self.least(most)?, most });
        }
        let limits = self.derived_limits(place, depth)?;
        let ty = self.module[place.0][place.1].shape().as_array()?.element_type;
        let is_wide = ty.is_integer() && ty.bit_width() >= 32;
        let fits = limits.least >= self.lowest(place)? && self.most(limits.most)? <= i64::from(i32::MAX);
        (is_wide && fits).then_some(limits)
    }

    /// Returns the lowest number of an integer type that limits tell from a wrapped one.
    fn lowest(&self, place: Place) -> Option<i64> {
        let ty = self.module[place.0][place.1].shape().as_array()?.element_type;
        Some(if ty.is_unsigned_integer() { 0 } else { i64::from(i32::MIN) })
    }

    fn derived_limits(&self, place: Place, depth: usize) -> Option<Limits> {
        let depth = depth.checked_sub(1)?;
        let operand = |k| self.operand(place, k);
        match self.module[place.0][place.1].op() {
            Op::Convert {} | Op::Reshape {} | Op::Bitcast {} => self.limits(operand(0), depth),
            Op::Add {} => match self.limits(operand(0), depth) {
                Some(limits) => limits.plus(self.known(operand(1))?),
                None => self.limits(operand(1), depth)?.plus(self.known(operand(0))?),
            },
            Op::Subtract {} => match self.known(operand(1)) {
                Some(number) => self.limits(operand(0), depth)?.plus(number.checked_neg()?),
                None => {
                    let size = self.number(operand(0), depth)?;
                    let Limits { least, most } = self.limits(operand(1), depth)?;
                    let lowest = self.least(size)?.checked_sub(self.most(most)?)?;
                    Some(Limits { least: lowest, most: size.plus(least.checked_neg()?)? })
                }
            },
            Op::Maximum {} => {
                let (limits, bound) = self.limits_and_known(place, depth)?;
                let is_above = self.least(limits.most)? >= bound;
                is_above.then_some(Limits { least: limits.least.max(bound), ..limits })
            }
            Op::Minimum {} => match self.limits_and_known(place, depth) {
                Some((limits, bound)) => Some(Limits { least: limits.least.min(bound), ..limits }),
                None => match [0, 1].map(|k| self.limits(operand(k), depth)) {
                    [Some(a), Some(b)] => {
                        Some(Limits { least: a.least.min(b.least), most: least(Some(a.most), Some(b.most))? })
                    }
                    [one, other] => {
                        // The other number may be any of its type; 64 bits hold lower ones.
                        let ty = self.module[place.0][place.1].shape().as_array()?.element_type;
                        let is_exact = ty.is_unsigned_integer() || ty.bit_width() <= 32;
                        let limits = Limits { least: self.lowest(place)?, most: one.or(other)?.most };
                        is_exact.then_some(limits)
                    }
                },
            },
            Op::GetTupleElement { index } => self.counted(operand(0), *index, depth),
            _ => None,
        }
    }

    /// Returns the limits of one operand of an instruction, and the value of the other.
    fn limits_and_known(&self, place: Place, depth: usize) -> Option<(Limits, i64)> {
        let [left, right] = [self.operand(place, 0), self.operand(place, 1)];
        match self.known(right) {
            Some(known) => Some((self.limits(left, depth)?, known)),
            None => Some((self.limits(right, depth)?, self.known(left)?)),
        }
    }

    /// Returns the limits of an induction variable in the body of a loop: it begins at one of them,
    /// and the condition ends the loop at the other.
    fn counted(&self, state: Place, element: usize, depth: usize) -> Option<Limits> {
        let (body, _) = self.origin(state);
        let (condition, initial) = self.loop_of(body)?;
        let step = self.step(body, element)?;
        let initial = self.element_of(initial, element)?;
        let verdict = (condition, self.module[condition].root());
        if step > 0 {
            let least = match self.known(initial) {
                Some(known) => known,
                None => self.limits(initial, depth)?.least,
            };
            let most = self.while_below(verdict, element, depth)?;
            // The last addition does not wrap around.
            let fits = self.most(most)?.checked_add(step)? <= i64::from(i32::MAX);
            fits.then_some(Limits { least, most })
        } else {
            let (most, least) = (self.number(initial, depth)?, self.while_above(verdict, element, depth)?);
            let fits = least.checked_add(step)? >= i64::from(i32::MIN);
            fits.then_some(Limits { least, most })
        }
    }

    /// Returns the largest value of a state element for which a predicate of the condition holds.
    fn while_below(&self, predicate: Place, element: usize, depth: usize) -> Option<Extent> {
        use ComparisonDirection::{Ge, Gt, Le, Lt};
        let (predicate, depth) = (self.origin(predicate), depth.checked_sub(1)?);
        let operand = |k| self.operand(predicate, k);
        let (value, limit, is_strict) = match self.module[predicate.0][predicate.1].op() {
            Op::And {} => {
                let either = (0..2).map(|k| self.while_below(operand(k), element, depth));
                return either.flatten().next();
            }
            Op::Compare { direction: direction @ (Lt | Le), .. } => {
                (operand(0), operand(1), *direction == Lt)
            }
            Op::Compare { direction: direction @ (Gt | Ge), .. } => {
                (operand(1), operand(0), *direction == Gt)
            }
            _ => return None,
        };
        let limit = self.number(limit, depth).filter(|_| self.is_state(value, element))?;
        limit.plus(-i64::from(is_strict))
    }

    /// Returns the least value of a state element for which a predicate of the condition holds.
    fn while_above(&self, predicate: Place, element: usize, depth: usize) -> Option<i64> {
        use ComparisonDirection::{Ge, Gt, Le, Lt};
        let (predicate, depth) = (self.origin(predicate), depth.checked_sub(1)?);
        let operand = |k| self.operand(predicate, k);
        let (value, limit, is_strict) = match self.module[predicate.0][predicate.1].op() {
            Op::And {} => {
                let either = (0..2).map(|k| self.while_above(operand(k), element, depth));
                return either.flatten().next();
            }
            Op::Compare { direction: direction @ (Gt | Ge), .. } => {
                (operand(0), operand(1), *direction == Gt)
            }
            Op::Compare { direction: direction @ (Lt | Le), .. } => {
                (operand(1), operand(0), *direction == Lt)
            }
            _ => return None,
        };
        let limit = self.known(limit).filter(|_| self.is_state(value, element))?;
        limit.checked_add(i64::from(is_strict))
    }

    /// Returns what each iteration of a loop adds to a state element, if that is a constant.
    fn step(&self, body: ComputationId, element: usize) -> Option<i64> {
        let root = (body, self.module[body].root());
        let next = self.origin(self.element_of(root, element)?);
        let operand = |k| self.operand(next, k);
        match self.module[next.0][next.1].op() {
            Op::Add {} if self.is_state(operand(0), element) => self.known(operand(1)),
            Op::Add {} if self.is_state(operand(1), element) => self.known(operand(0)),
            Op::Subtract {} if self.is_state(operand(0), element) => self.known(operand(1))?.checked_neg(),
            _ => None,
        }
    }

    /// True if a value of a condition or a body is an element of the state.
    fn is_state(&self, value: Place, element: usize) -> bool {
        let (at, id) = self.origin(value);
        match *self.module[at][id].op() {
            Op::GetTupleElement { index } => {
                let (at, id) = self.origin(self.operand((at, id), 0));
                index == element && matches!(self.module[at][id].op(), Op::Parameter { .. })
            }
            _ => false,
        }
    }
}
