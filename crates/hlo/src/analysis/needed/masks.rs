//! Sizes in scalars, masks, and arrays that are 0 beyond a size.

use super::extent::{Extent, least, most, reshaped};
use crate::analysis::invariant_elements;
use crate::{ComparisonDirection, ComputationId, InstructionId, Module, Op};
use shape::Literal;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of instructions to follow.
const MAX_DEPTH: usize = 24;

/// Masks and sizes of the entry, also inside fusions, loops, and branches.
pub(super) struct Masks<'a> {
    pub(super) module: &'a Module,
    /// The instruction that calls each computation of a fusion, a loop, or a branch.
    callers: BTreeMap<ComputationId, Place>,
    /// The state elements that stay the same, for each condition and body of a loop.
    invariants: BTreeMap<ComputationId, BTreeSet<usize>>,
}

pub(super) type Place = (ComputationId, InstructionId);

impl<'a> Masks<'a> {
    pub(super) fn of(module: &'a Module) -> Self {
        let (mut callers, mut shared) = (BTreeMap::new(), BTreeSet::new());
        let mut invariants = BTreeMap::new();
        let mut pending = vec![module.entry()];
        while let Some(at) = pending.pop() {
            for (id, instruction) in module[at].instructions() {
                let called = match instruction.op() {
                    Op::Fusion { calls, .. } => vec![*calls],
                    Op::While { condition, body } => {
                        let stay = invariant_elements(module, &module[*body]);
                        invariants.extend([(*condition, stay.clone()), (*body, stay)]);
                        vec![*condition, *body]
                    }
                    Op::Conditional { branch_computations } => branch_computations.clone(),
                    _ => Vec::new(),
                };
                for callee in called {
                    if callers.insert(callee, (at, id)).is_some() {
                        shared.insert(callee);
                    } else {
                        pending.push(callee);
                    }
                }
            }
        }
        callers.retain(|callee, _| !shared.contains(callee));
        Self { module, callers, invariants }
    }

    /// True for the computation of a fusion, a loop, or a branch that nothing else calls.
    pub(super) fn is_called_once(&self, computation: ComputationId) -> bool {
        self.callers.contains_key(&computation)
    }

    /// Follows parameters of fusions and branches to their operands, fusions to what they compute,
    /// and state that a loop does not change to its initial value.
    pub(super) fn origin(&self, place: Place) -> Place {
        self.origin_within(place, &mut MAX_DEPTH.clone())
    }

    fn origin_within(&self, mut place: Place, steps: &mut usize) -> Place {
        while let Some(next) = self.source(place, steps) {
            place = next;
        }
        place
    }

    /// Returns the place from which an instruction has its value, if it only passes it on.
    fn source(&self, (at, id): Place, steps: &mut usize) -> Option<Place> {
        *steps = steps.checked_sub(1)?;
        let operands = self.module[at][id].operands();
        match *self.module[at][id].op() {
            Op::Parameter { number } => {
                let &(caller, call) = self.callers.get(&at)?;
                let operands = self.module[caller][call].operands();
                match self.module[caller][call].op() {
                    Op::Fusion { .. } => Some((caller, operands[number])),
                    Op::Conditional { branch_computations } => {
                        let branch = branch_computations.iter().position(|&branch| branch == at)?;
                        Some((caller, operands[1 + branch]))
                    }
                    _ => None,
                }
            }
            Op::Fusion { calls, .. } if self.is_called_once(calls) => {
                Some((calls, self.module[calls].root()))
            }
            Op::Copy {} => Some((at, operands[0])),
            Op::GetTupleElement { index } => self.element((at, operands[0]), index, steps),
            _ => None,
        }
    }

    /// Returns the place of an element of a tuple.
    fn element(&self, mut tuple: Place, index: usize, steps: &mut usize) -> Option<Place> {
        loop {
            let (at, id) = self.origin_within(tuple, steps);
            *steps = steps.checked_sub(1)?;
            let operands = self.module[at][id].operands();
            let (of, initial) = match *self.module[at][id].op() {
                Op::Tuple {} => return Some((at, *operands.get(index)?)),
                Op::While { body, .. } => (body, (at, operands[0])),
                Op::Parameter { .. } => {
                    let &(caller, call) = self.callers.get(&at)?;
                    (at, (caller, self.module[caller][call].operands()[0]))
                }
                _ => return None,
            };
            if !self.invariants.get(&of)?.contains(&index) {
                return None;
            }
            tuple = initial;
        }
    }

    /// Returns the condition and the initial state of the loop that has this body.
    pub(super) fn loop_of(&self, body: ComputationId) -> Option<(ComputationId, Place)> {
        let &(caller, call) = self.callers.get(&body)?;
        match *self.module[caller][call].op() {
            Op::While { condition, body: own } if own == body => {
                Some((condition, self.operand((caller, call), 0)))
            }
            _ => None,
        }
    }

    /// Returns the place of an element of a tuple.
    pub(super) fn element_of(&self, tuple: Place, index: usize) -> Option<Place> {
        self.element(tuple, index, &mut MAX_DEPTH.clone())
    }

    pub(super) fn operand(&self, (at, id): Place, k: usize) -> Place {
        (at, self.module[at][id].operands()[k])
    }

    fn sizes(&self, (at, id): Place) -> Vec<i64> {
        self.module[at][id].shape().as_array().map(|array| array.sizes()).unwrap_or_default()
    }

    /// Returns an integer that derives from a size of the entry.
    pub(super) fn scalar(&self, at: ComputationId, id: InstructionId) -> Option<Extent> {
        self.number((at, id), MAX_DEPTH)
    }

    /// Returns at least an integer that derives from a size of the entry.
    pub(super) fn size(&self, at: ComputationId, id: InstructionId) -> Option<Extent> {
        self.at_most((at, id), MAX_DEPTH)
    }

    /// Returns such an integer unless it may wrap around.
    pub(super) fn number(&self, place: Place, depth: usize) -> Option<Extent> {
        let place = self.origin(place);
        let extent = self.derived(place, depth)?;
        let ty = self.module[place.0][place.1].shape().as_array()?.element_type;
        let least = if ty.is_unsigned_integer() { 0 } else { i64::from(i32::MIN) };
        let fits = self.least(extent)? >= least && self.most(extent)? <= i64::from(i32::MAX);
        fits.then_some(extent)
    }

    fn derived(&self, place: Place, depth: usize) -> Option<Extent> {
        let (depth, op) = (depth.checked_sub(1)?, self.module[place.0][place.1].op());
        let operand = |k| self.operand(place, k);
        match op {
            Op::Parameter { number } if place.0 == self.module.entry() => {
                let is_size = self.module.size_parameters().iter().any(|size| size.parameter == *number);
                is_size.then(|| Extent::of_parameter(*number))
            }
            Op::Convert {} => {
                // A size fits into any integer of at least 32 bits.
                let array = self.module[place.0][place.1].shape().as_array()?;
                let is_wide = array.element_type.is_integer() && array.element_type.bit_width() >= 32;
                self.number(operand(0), depth).filter(|_| is_wide)
            }
            Op::Reshape {} | Op::Bitcast {} => self.number(operand(0), depth),
            Op::Broadcast { dimensions } if dimensions.is_empty() => self.number(operand(0), depth),
            Op::Add {} => match (self.number(operand(0), depth), self.number(operand(1), depth)) {
                (Some(size), None) => size.plus(self.known(operand(1))?),
                (None, Some(size)) => size.plus(self.known(operand(0))?),
                _ => None,
            },
            Op::Subtract {} => self.number(operand(0), depth)?.plus(self.known(operand(1))?.checked_neg()?),
            Op::Maximum {} => {
                let (size, bound) = self.with_known(place, depth)?;
                (self.least(size)? >= bound).then_some(size)
            }
            Op::Minimum {} => {
                let (size, bound) = self.with_known(place, depth)?;
                (self.most(size)? <= bound).then_some(size)
            }
            Op::Multiply {} => match (self.number(operand(0), depth), self.number(operand(1), depth)) {
                (Some(size), None) => size.exactly_times(self.known(operand(1))?),
                (None, Some(size)) => size.exactly_times(self.known(operand(0))?),
                _ => None,
            },
            Op::Divide {} => {
                let size = self.number(operand(0), depth)?;
                let size = size.divided_by(self.known(operand(1))?)?;
                // Division rounds toward 0.
                (self.least(size)? >= 0).then_some(size)
            }
            _ => None,
        }
    }

    fn at_most(&self, place: Place, depth: usize) -> Option<Extent> {
        if let Some(exact) = self.number(place, depth) {
            return Some(exact);
        }
        let (place, depth) = (self.origin(place), depth.checked_sub(1)?);
        let operand = |k| self.operand(place, k);
        let (size, number) = match self.module[place.0][place.1].op() {
            Op::Convert {} | Op::Reshape {} | Op::Broadcast { .. } => return self.at_most(operand(0), depth),
            Op::Add {} | Op::Multiply {} => match self.known(operand(1)) {
                Some(number) => (operand(0), number),
                None => (operand(1), self.known(operand(0))?),
            },
            _ => return None,
        };
        let size = self.at_most(size, depth)?;
        let most = match self.module[place.0][place.1].op() {
            Op::Add {} => size.plus(number)?,
            _ => size.times(number)?,
        };
        let fits = self.least(most)? >= 0 && self.most(most)? <= i64::from(i32::MAX);
        fits.then_some(most)
    }

    /// Returns a constant and the number that derives from a size and is subtracted from it.
    pub(super) fn before(&self, place: Place) -> Option<(i64, Extent)> {
        let place = self.origin(place);
        match self.module[place.0][place.1].op() {
            Op::Subtract {} => {
                let [end, size] = [self.operand(place, 0), self.operand(place, 1)];
                Some((self.known(end)?, self.scalar(size.0, size.1)?))
            }
            _ => None,
        }
    }

    /// Returns the operands of an instruction of which one derives from a size and the other is
    /// known.
    fn with_known(&self, place: Place, depth: usize) -> Option<(Extent, i64)> {
        let [left, right] = [self.operand(place, 0), self.operand(place, 1)];
        match self.number(left, depth) {
            Some(size) => Some((size, self.known(right)?)),
            None => Some((self.number(right, depth)?, self.known(left)?)),
        }
    }

    /// Returns the least value of an extent.
    pub(super) fn least(&self, extent: Extent) -> Option<i64> {
        self.range(extent).map(|(low, _)| extent.at(low))
    }

    /// Returns the largest value of an extent.
    pub(super) fn most(&self, extent: Extent) -> Option<i64> {
        self.range(extent).map(|(_, high)| extent.at(high))
    }

    fn range(&self, extent: Extent) -> Option<(i64, i64)> {
        let mut sizes = self.module.size_parameters().iter();
        sizes.find(|size| size.parameter == extent.parameter).map(|size| (size.low, size.high))
    }

    /// Returns the value of an integer constant, or of one that is the same in a whole array.
    pub(super) fn known(&self, place: Place) -> Option<i64> {
        let place = self.origin(place);
        match self.module[place.0][place.1].op() {
            Op::Constant { literal } if literal.is_splat() && literal.array_shape().element_count() > 0 => {
                literal.scalar_at(0).as_i64()
            }
            Op::Broadcast { .. } | Op::Reshape {} => self.known(self.operand(place, 0)),
            _ => None,
        }
    }

    /// Returns the dimension whose index is the value of each element.
    fn index(&self, place: Place, depth: usize) -> Option<usize> {
        let place = self.origin(place);
        let (depth, op) = (depth.checked_sub(1)?, self.module[place.0][place.1].op());
        let operand = self.module[place.0][place.1].operands().first().map(|&id| (place.0, id));
        match op {
            Op::Iota { iota_dimension } => Some(*iota_dimension),
            Op::Broadcast { dimensions } => {
                let dimension = self.index(operand?, depth)?;
                dimensions.get(dimension).copied()
            }
            Op::Reshape {} | Op::Bitcast {} => {
                let dimension = self.index(operand?, depth)?;
                let mut marks = vec![None; self.sizes(operand?).len()];
                *marks.get_mut(dimension)? = Some(Extent::of_parameter(0));
                let marks = reshaped(&self.sizes(operand?), &marks, &self.sizes(place));
                marks.iter().position(|&mark| mark == Some(Extent::of_parameter(0)))
            }
            Op::Convert {} => {
                let array = self.module[place.0][place.1].shape().as_array()?;
                let is_wide = array.element_type.is_integer() && array.element_type.bit_width() >= 32;
                self.index(operand?, depth).filter(|_| is_wide)
            }
            _ => None,
        }
    }

    /// Returns, for each dimension, the number of first indices outside of which no element of a
    /// predicate has the given value.
    pub(super) fn of_predicate(
        &self,
        at: ComputationId,
        id: InstructionId,
        value: bool,
    ) -> Vec<Option<Extent>> {
        self.shown((at, id), value, MAX_DEPTH)
    }

    fn shown(&self, place: Place, value: bool, depth: usize) -> Vec<Option<Extent>> {
        let place = self.origin(place);
        let sizes = self.sizes(place);
        let nothing = vec![None; sizes.len()];
        let Some(depth) = depth.checked_sub(1) else { return nothing };
        let operand = |k| self.operand(place, k);
        match self.module[place.0][place.1].op() {
            Op::Compare { direction, .. } => {
                self.compared(place, *direction, value).map_or(nothing.clone(), |(dimension, extent)| {
                    let mut shown = nothing;
                    if let Some(one) = shown.get_mut(dimension) {
                        *one = Some(extent);
                    }
                    shown
                })
            }
            Op::And {} if value => self.either(operand(0), operand(1), value, depth),
            Op::Or {} if !value => self.either(operand(0), operand(1), value, depth),
            Op::Not {} => self.shown(operand(0), !value, depth),
            Op::Broadcast { dimensions } => {
                let mut shown = nothing;
                for (&to, one) in dimensions.iter().zip(self.shown(operand(0), value, depth)) {
                    shown[to] = one;
                }
                shown
            }
            Op::Transpose { .. } | Op::Reshape {} | Op::Bitcast {} => {
                self.rearranged(place, &self.shown(operand(0), value, depth))
            }
            _ => nothing,
        }
    }

    /// Returns the extents of a transpose or a reshape, given those of its operand.
    fn rearranged(&self, place: Place, of_operand: &[Option<Extent>]) -> Vec<Option<Extent>> {
        match self.module[place.0][place.1].op() {
            Op::Transpose { dimensions } => dimensions.iter().map(|&from| of_operand[from]).collect(),
            _ => reshaped(&self.sizes(self.operand(place, 0)), of_operand, &self.sizes(place)),
        }
    }

    fn either(&self, a: Place, b: Place, value: bool, depth: usize) -> Vec<Option<Extent>> {
        let (a, b) = (self.shown(a, value, depth), self.shown(b, value, depth));
        a.into_iter().zip(b).map(|(a, b)| least(a, b)).collect()
    }

    /// Returns the dimension of an index that is compared with a size, and the number of indices
    /// for which the comparison has this value.
    fn compared(&self, place: Place, direction: ComparisonDirection, value: bool) -> Option<(usize, Extent)> {
        use ComparisonDirection::{Ge, Gt, Le, Lt};
        let (left, right) = (self.operand(place, 0), self.operand(place, 1));
        let (index, size, direction) = match self.index(left, MAX_DEPTH) {
            Some(index) => (index, right, direction),
            None => {
                let mirrored = match direction {
                    Lt => Gt,
                    Le => Ge,
                    Gt => Lt,
                    Ge => Le,
                    other => other,
                };
                (self.index(right, MAX_DEPTH)?, left, mirrored)
            }
        };
        let size = self.at_most(size, MAX_DEPTH)?;
        let extent = match (direction, value) {
            (Lt, true) | (Ge, false) => size,
            (Le, true) | (Gt, false) => size.plus(1)?,
            _ => return None,
        };
        Some((index, extent))
    }

    /// Returns, for each dimension, the number of first indices outside of which all elements of an
    /// array are 0.
    pub(super) fn zeros(&self, at: ComputationId, id: InstructionId) -> Vec<Option<Extent>> {
        self.different((at, id), &|place| self.is_zero(place), MAX_DEPTH)
    }

    /// Returns, for each dimension, the number of first indices outside of which no element of an
    /// array changes its reduction, which begins with `initial`.
    pub(super) fn unlike(
        &self,
        array: Place,
        initial: Place,
        to_apply: ComputationId,
    ) -> Vec<Option<Extent>> {
        let computation = &self.module[to_apply];
        let of_parameters = |id: &InstructionId| matches!(computation[*id].op(), Op::Parameter { .. });
        let root = &computation[computation.root()];
        let nothing = vec![None; self.sizes(array).len()];
        let Some(initial) = self.constant(initial).filter(|_| root.operands().iter().all(of_parameters))
        else {
            return nothing;
        };
        let is_neutral = match root.op() {
            // Another maximum of the initial value changes nothing.
            Op::Maximum {} | Op::Minimum {} | Op::And {} | Op::Or {} => true,
            Op::Add {} => initial.bytes().iter().all(|&byte| byte == 0),
            Op::Multiply {} => {
                let one = initial.scalar_at(0);
                one.as_i64() == Some(1) || one.as_f64() == Some(1.0)
            }
            _ => false,
        };
        if !is_neutral {
            return nothing;
        }
        let is_initial = |place| {
            self.constant(place).is_some_and(|other| {
                let size = initial.bytes().len();
                size > 0 && other.bytes().chunks(size).all(|one| one == &initial.bytes()[..])
            })
        };
        self.different(array, &is_initial, MAX_DEPTH)
    }

    /// Returns, for each dimension, the number of first indices outside of which all elements of an
    /// array are those of a constant of this kind.
    pub(super) fn unlike_constant(
        &self,
        array: Place,
        is_kind: &dyn Fn(&Literal) -> bool,
    ) -> Vec<Option<Extent>> {
        self.different(array, &|place| self.constant(place).is_some_and(is_kind), MAX_DEPTH)
    }

    /// Returns, for each dimension, the number of first indices outside of which all elements of an
    /// array have a constant value.
    fn different(&self, place: Place, is_value: &dyn Fn(Place) -> bool, depth: usize) -> Vec<Option<Extent>> {
        let place = self.origin(place);
        let sizes = self.sizes(place);
        let nothing = vec![None; sizes.len()];
        let Some(depth) = depth.checked_sub(1) else { return nothing };
        let operand = |k| self.operand(place, k);
        match self.module[place.0][place.1].op() {
            Op::Select {} => {
                let values = [(true, operand(1), operand(2)), (false, operand(2), operand(1))];
                let shown = values.into_iter().find(|&(_, _, other)| is_value(other));
                let Some((value, kept, _)) = shown else { return nothing };
                let shown = self.shown(operand(0), value, depth);
                if shown.len() != sizes.len() {
                    return nothing;
                }
                let of_kept = self.different(kept, is_value, depth);
                shown.into_iter().zip(of_kept).map(|(a, b)| least(a, b)).collect()
            }
            Op::Transpose { .. } | Op::Reshape {} | Op::Bitcast {} => {
                self.rearranged(place, &self.different(operand(0), is_value, depth))
            }
            Op::Concatenate { dimension } => {
                let count = self.module[place.0][place.1].operands().len();
                // All operands together are followed no farther than one would be.
                let depth = depth / count.max(2);
                let parts = (0..count).map(|k| self.different(operand(k), is_value, depth));
                let widest = |a: Vec<Option<Extent>>, b: Vec<Option<Extent>>| {
                    a.into_iter().zip(b).map(|(a, b)| most(a, b)).collect()
                };
                let mut all = parts.reduce(widest).unwrap_or(nothing);
                all[*dimension] = None;
                all
            }
            _ => nothing,
        }
    }

    fn is_zero(&self, place: Place) -> bool {
        self.constant(place).is_some_and(|literal| literal.bytes().iter().all(|&byte| byte == 0))
    }

    /// Returns a constant whose elements, repeated, are those of an array.
    fn constant(&self, place: Place) -> Option<&'a Literal> {
        let place = self.origin(place);
        match self.module[place.0][place.1].op() {
            Op::Constant { literal } => Some(literal),
            Op::Broadcast { .. } | Op::Reshape {} => self.constant(self.operand(place, 0)),
            _ => None,
        }
    }
}
