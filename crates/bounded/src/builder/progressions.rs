//! Vectors whose elements are equally far apart, such as positions in a text. Their elements at
//! run-time places are polynomials: the last of `n` positions is `n - 1`.

use crate::algebra::{Atom, Polynomial};
use crate::builder::Builder;
use hlo::analysis::Range;
use hlo::{InstructionId, Op};
use shape::{ArrayShape, PrimitiveType};

/// A vector of which the first `length` elements are `first`, `first + step`, and so on.
#[derive(Clone, Debug)]
struct Progression {
    first: Polynomial,
    step: i64,
    length: i64,
}

impl Progression {
    fn at(&self, place: &Polynomial) -> Option<Polynomial> {
        self.first.plus(place, self.step)
    }

    /// Returns the values of the first and the last element, if they are known.
    fn ends(&self) -> Option<[i64; 2]> {
        let first = self.first.as_constant()?;
        Some([first, self.step.checked_mul((self.length - 1).max(0))?.checked_add(first)?])
    }
}

impl Builder {
    /// Returns an element of a `dynamic-slice` of a vector.
    pub(super) fn sliced_element(
        &mut self,
        level: usize,
        id: InstructionId,
        position: usize,
        depth: usize,
    ) -> Option<Polynomial> {
        let slice = self.progression(level, id, depth)?;
        let place = position as i64;
        if place < slice.length { slice.at(&Polynomial::constant(place)) } else { None }
    }

    /// Returns a vector of integers as a progression whose elements fit `s32`.
    fn progression(&mut self, level: usize, id: InstructionId, depth: usize) -> Option<Progression> {
        let found = self.computed_progression(level, id, depth.checked_sub(1)?)?;
        let last = found.at(&Polynomial::constant((found.length - 1).max(0)))?;
        let fits = [&found.first, &last].into_iter().all(|end| {
            let Range { low, high } = end.range(&|atom: &Atom| self.range_of(atom));
            [low, high].into_iter().all(|end| end.is_some_and(|end| i32::try_from(end).is_ok()))
        });
        fits.then_some(found)
    }

    fn computed_progression(&mut self, level: usize, id: InstructionId, depth: usize) -> Option<Progression> {
        let instruction = &self.scopes[level].computation()[id];
        let array = instruction.shape().as_array().filter(|array| array.is_static() && array.rank() == 1)?;
        let length = array.element_count();
        if !matches!(array.element_type, PrimitiveType::S32 | PrimitiveType::S64) || length == 0 {
            return None;
        }
        let (op, operands) = (instruction.op().clone(), instruction.operands().to_vec());
        match (op, &operands[..]) {
            (Op::Constant { literal }, _) => {
                let values = literal.to_i64s()?;
                let (first, step) =
                    (values[0], values.get(1).map_or(0, |next| next.saturating_sub(values[0])));
                let is_even = values.windows(2).all(|pair| pair[0].checked_add(step) == Some(pair[1]));
                is_even.then(|| Progression { first: Polynomial::constant(first), step, length })
            }
            (Op::Iota { .. }, _) => Some(Progression { first: Polynomial::default(), step: 1, length }),
            (Op::Broadcast { dimensions }, &[scalar]) if dimensions.is_empty() => {
                Some(Progression { first: self.polynomial_at(level, scalar, 0, depth), step: 0, length })
            }
            (Op::Reshape {} | Op::Convert {}, &[x]) => self.progression(level, x, depth),
            (Op::Pad { padding }, &[x, _]) => {
                let sizes = padding.dimensions.first()?;
                let is_after = sizes.edge_padding_low == 0
                    && sizes.interior_padding == 0
                    && sizes.edge_padding_high >= 0;
                if is_after { self.progression(level, x, depth) } else { None }
            }
            (Op::Slice { slice }, &[x]) => {
                let x = self.progression(level, x, depth)?;
                let range = slice.first().filter(|range| range.limit <= x.length)?;
                let first = x.at(&Polynomial::constant(range.start))?;
                Some(Progression { first, step: x.step.checked_mul(range.stride)?, length })
            }
            (Op::DynamicSlice { .. }, &[x, begin]) => {
                let of_whole = self.scopes[level].shape(x).as_array().map(ArrayShape::element_count)?;
                let x = self.progression(level, x, depth)?;
                let begin = self.polynomial_at(level, begin, 0, depth);
                let range = begin.range(&|atom: &Atom| self.range_of(atom));
                let (low, high) = (range.low?, range.high?);
                // Otherwise, it may begin earlier.
                let is_inside = low >= 0 && high.checked_add(length)? <= of_whole;
                let left = length.min(x.length - high);
                let first = x.at(&begin)?;
                (is_inside && left > 0).then_some(Progression { first, step: x.step, length: left })
            }
            (Op::Gather { gather_dimension_numbers, slice_sizes, .. }, &[x, places])
                if gather_dimension_numbers.index_vector_dim == 1 && slice_sizes == [1] =>
            {
                let (x, places) =
                    (self.progression(level, x, depth)?, self.progression(level, places, depth)?);
                let is_inside = places.ends()?.iter().all(|place| (0..x.length).contains(place));
                let (first, step) = (x.at(&places.first)?, x.step.checked_mul(places.step)?);
                is_inside.then_some(Progression { first, step, length: places.length })
            }
            (Op::Concatenate { .. }, &[a, b]) => {
                let of_a = self.scopes[level].shape(a).as_array().map(ArrayShape::element_count)?;
                let (a, b) = (self.progression(level, a, depth)?, self.progression(level, b, depth)?);
                let a = if of_a == 1 { Progression { step: b.step, ..a } } else { a };
                let continues =
                    a.length == of_a && a.step == b.step && a.at(&Polynomial::constant(of_a))? == b.first;
                continues.then(|| Progression { length: of_a + b.length, ..a })
            }
            (op @ (Op::Maximum {} | Op::Minimum {}), &[a, b]) => {
                let (a, b) = (self.progression(level, a, depth)?, self.progression(level, b, depth)?);
                let (mut of_a, mut of_b) = (a.ends()?, b.ends()?);
                if matches!(op, Op::Maximum {}) {
                    std::mem::swap(&mut of_a, &mut of_b);
                }
                // Of two lines, the one that is below at both ends is below everywhere.
                let is_below =
                    |x: [i64; 2], y: [i64; 2]| a.length == b.length && x[0] <= y[0] && x[1] <= y[1];
                let (is_first, is_second) = (is_below(of_a, of_b), is_below(of_b, of_a));
                if is_first { Some(a) } else { is_second.then_some(b) }
            }
            (op @ (Op::Add {} | Op::Subtract {}), &[a, b]) => {
                let sign = if matches!(op, Op::Add {}) { 1 } else { -1 };
                let (a, b) = (self.progression(level, a, depth)?, self.progression(level, b, depth)?);
                let step = a.step.checked_add(b.step.checked_mul(sign)?)?;
                Some(Progression {
                    first: a.first.plus(&b.first, sign)?,
                    step,
                    length: a.length.min(b.length),
                })
            }
            (Op::Multiply {}, &[a, b]) => {
                let (a, b) = (self.progression(level, a, depth)?, self.progression(level, b, depth)?);
                let (x, factor) = if a.step == 0 { (b, a) } else { (a, b) };
                let by = if factor.step == 0 { factor.first.as_constant()? } else { return None };
                let first = x.first.times(&Polynomial::constant(by))?;
                Some(Progression {
                    first,
                    step: x.step.checked_mul(by)?,
                    length: x.length.min(factor.length),
                })
            }
            _ => None,
        }
    }
}
