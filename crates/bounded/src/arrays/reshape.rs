//! Reshapes of bounded arrays.
//!
//! The true elements are in row-major order of the true sizes. If they are at the beginning of both
//! arrays, the bytes remain in place. Otherwise each element is gathered from its old position.

use super::sizes::{bounds, run_time};
use super::{Bounded, Size};
use crate::algebra::Polynomial;
use crate::builder::{Builder, list};
use hlo::{GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use shape::index::{element_count, row_major_strides};
use std::ops::Range;
use support::{Code, Error, Result};

impl Builder {
    /// Reshapes an array. The product of the true sizes should be the number of true elements. If
    /// it is larger, the additional elements are undefined.
    pub fn reshape_to(&mut self, id: InstructionId, sizes: &[Size]) -> Result<InstructionId> {
        let id = self.before_joining(id).map_or(id, |(before, _)| before);
        if self.all_sizes(id)? == sizes {
            return Ok(id);
        }
        let from = self.split(id)?;
        let (whole_sizes, target) = (self.sizes(from.data), bounds(sizes));
        let true_sizes = run_time(sizes);
        let data = if is_prefix(&whole_sizes, &from.sizes) && is_prefix(&target, &true_sizes) {
            self.resized(from.data, &whole_sizes, &target)?
        } else if keeps_groups((&whole_sizes, &from.sizes), (&target, &true_sizes), &mut |a, b| {
            self.is_same_count(a, b)
        }) {
            self.reshape(from.data, &target)?
        } else {
            let data = self.looked_up(&from, &whole_sizes, sizes)?;
            self.scope().joined.insert(data, (id, sizes.to_vec()));
            data
        };
        self.bounded(data, &true_sizes)
    }

    /// True if two sizes, each with a number of elements per index, are known to make equally many
    /// elements.
    fn is_same_count(&mut self, a: (InstructionId, i64), b: (InstructionId, i64)) -> bool {
        let mut count = |(size, unit)| self.polynomial(size, 0).times(&Polynomial::constant(unit));
        a == b || count(a).is_some_and(|elements| count(b) == Some(elements))
    }

    /// Returns the first elements of an array in other dimensions, followed by zeros.
    fn resized(&mut self, data: InstructionId, whole_sizes: &[i64], target: &[i64]) -> Result<InstructionId> {
        let (Some(before), Some(after)) = (element_count(whole_sizes), element_count(target)) else {
            return Err(self.invalid(format!("{} is too large", list(target))));
        };
        if before == after {
            return self.reshape(data, target);
        }
        let flat = self.reshape(data, &[before])?;
        let resized = if after < before {
            self.slice_in(flat, 0, 0, after)?
        } else {
            let element_type = self.element_type(flat);
            let zero = self.scalar(element_type, 0.0);
            self.pad(flat, zero, &[(0, after - before, 0)])?
        };
        self.reshape(resized, target)
    }

    /// Gathers each element from its old position.
    fn looked_up(&mut self, from: &Bounded, whole_sizes: &[i64], sizes: &[Size]) -> Result<InstructionId> {
        let target = bounds(sizes);
        let counts = (element_count(whole_sizes), element_count(&target));
        let (Some(before @ 1..), Some(1..)) = counts else {
            let element_type = self.element_type(from.data);
            return self.splat(element_type, &target, 0.0);
        };
        let small = i64::from(i32::MAX);
        self.check(before <= small && counts.1.is_some_and(|after| after <= small), || {
            format!("{} has too many elements for an array of bounded size", list(whole_sizes))
        })?;
        // The position among the true elements.
        let mut stride = self.s32(1)?;
        let mut position = self.splat(PrimitiveType::S32, &target, 0.0)?;
        for (d, &size) in sizes.iter().enumerate().rev() {
            let index = self.iota(PrimitiveType::S32, &target, d)?;
            let step = self.broadcast(stride, &target, &[])?;
            let term = self.mul(index, step)?;
            position = self.add(position, term)?;
            let size = self.size_value(size)?;
            stride = self.times(stride, size)?;
        }
        // The position among all elements, including padding.
        let mut place = self.splat(PrimitiveType::S32, &target, 0.0)?;
        for (d, stride) in row_major_strides(whole_sizes).into_iter().enumerate().rev() {
            let size = self.size_value(Size { bound: whole_sizes[d], size: from.sizes[d] })?;
            let one = self.s32(1)?;
            let size = self.op(Op::Maximum {}, &[size, one])?;
            let size = self.broadcast(size, &target, &[])?;
            let index = self.op(Op::Remainder {}, &[position, size])?;
            position = self.div(position, size)?;
            let term = self.mul_scalar(index, stride as f64)?;
            place = self.add(place, term)?;
        }
        let flat = self.reshape(from.data, &[before])?;
        let gather_dimension_numbers = GatherDimensionNumbers {
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            index_vector_dim: target.len(),
            ..Default::default()
        };
        let op = Op::Gather { gather_dimension_numbers, slice_sizes: vec![1], indices_are_sorted: false };
        self.op(op, &[flat, place])
    }

    /// Returns the true sizes of a reshaped bounded array, given its bounds, or an error if they
    /// cannot be derived.
    pub(super) fn reshaped_sizes(
        &mut self,
        whole_sizes: &[i64],
        known: &[Option<InstructionId>],
        target: &[i64],
    ) -> Result<Vec<Size>> {
        let mut sizes: Vec<Size> = target.iter().map(|&size| Size::known(size)).collect();
        if whole_sizes.contains(&0) {
            // Only dimensions of size 1 are added or removed, or else no size follows.
            let from: Vec<usize> = (0..whole_sizes.len()).filter(|&d| whole_sizes[d] != 1).collect();
            let to: Vec<usize> = (0..target.len()).filter(|&d| target[d] != 1).collect();
            if from.iter().map(|&d| whole_sizes[d]).eq(to.iter().map(|&d| target[d])) {
                from.iter().zip(&to).for_each(|(&d, &same)| sizes[same].size = known[d]);
            }
            return Ok(sizes);
        }
        for (from, to) in groups(whole_sizes, target) {
            let bounded: Vec<usize> = from.clone().filter(|&d| known[d].is_some()).collect();
            let &[dimension] = bounded.as_slice() else {
                if bounded.is_empty() {
                    continue;
                }
                return Err(ambiguous_reshape(whole_sizes, target));
            };
            let size = known[dimension].expect("a bounded dimension without a size");
            let only = from.clone().all(|d| d == dimension || whole_sizes[d] == 1);
            let first = from.clone().take_while(|&d| d != dimension).all(|d| whole_sizes[d] == 1);
            // If the position is the same, the bounded dimension may have size 1.
            let same = to.clone().find(|&d| {
                target[d] == whole_sizes[dimension] && (whole_sizes[dimension] > 1 || to.len() == from.len())
            });
            if let (true, Some(same)) = (only, same) {
                let same = if to.len() == from.len() && whole_sizes[dimension] == 1 {
                    to.start + (dimension - from.start)
                } else {
                    same
                };
                sizes[same].size = Some(size);
                continue;
            }
            let target_dimension = to.clone().find(|&d| target[d] != 1).or(to.clone().next());
            let (true, Some(target_dimension)) = (first, target_dimension) else {
                return Err(ambiguous_reshape(whole_sizes, target));
            };
            let inner: i64 = from.clone().filter(|&d| d != dimension).map(|d| whole_sizes[d]).product();
            let target_inner: i64 =
                to.clone().filter(|&d| d != target_dimension).map(|d| target[d]).product();
            let factor = self.s32(inner)?;
            let mut scaled = self.times(size, factor)?;
            if target_inner != 1 {
                let divisor = self.s32(target_inner)?;
                scaled = self.div(scaled, divisor)?;
            }
            sizes[target_dimension].size = Some(scaled);
        }
        Ok(sizes)
    }
}

fn ambiguous_reshape(source: &[i64], target: &[i64]) -> Error {
    Error::unsupported(format!(
        "cannot derive the data-dependent size of a reshape from bounds {} to {}; reshape in \
         steps that leave the bounded dimension alone",
        list(source),
        list(target)
    ))
    .coded(Code::BoundedSize)
}

/// True if the true elements are the first ones of the array.
fn is_prefix(sizes: &[i64], known: &[Option<InstructionId>]) -> bool {
    let bounded: Vec<usize> = (0..sizes.len()).filter(|&d| known[d].is_some()).collect();
    match bounded.as_slice() {
        [] => true,
        &[dimension] => sizes[..dimension].iter().all(|&size| size == 1),
        _ => false,
    }
}

/// True if a reshape combines and splits dimensions in such a way that no true element moves: those
/// of each group of dimensions are the first ones before and after, and equally many. `is_same`
/// compares sizes with the numbers of elements per index.
fn keeps_groups(
    from: (&[i64], &[Option<InstructionId>]),
    to: (&[i64], &[Option<InstructionId>]),
    is_same: &mut dyn FnMut((InstructionId, i64), (InstructionId, i64)) -> bool,
) -> bool {
    if element_count(from.0) != element_count(to.0) || from.0.contains(&0) {
        return false;
    }
    // The bounded dimension of a group, as its size and the number of elements per index.
    let unit = |(sizes, known): (&[i64], &[Option<InstructionId>]), range: Range<usize>| {
        let (bounded, size) = range.clone().find_map(|d| known[d].map(|size| (d, size)))?;
        Some((size, sizes[bounded + 1..range.end].iter().product::<i64>()))
    };
    groups(from.0, to.0).into_iter().all(|(before, after)| {
        let in_group = |(sizes, known): (&[i64], &[Option<InstructionId>]), range: &Range<usize>| {
            is_prefix(&sizes[range.clone()], &known[range.clone()])
        };
        let has_prefix = in_group(from, &before) && in_group(to, &after);
        has_prefix
            && match (unit(from, before), unit(to, after)) {
                (Some(before), Some(after)) => is_same(before, after),
                (before, after) => before == after,
            }
    })
}

/// Returns pairs of dimension ranges that contain the same elements before and after a reshape.
fn groups(source: &[i64], target: &[i64]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < source.len() && j < target.len() {
        let (first, second) = (i, j);
        let (mut a, mut b) = (source[i], target[j]);
        (i, j) = (i + 1, j + 1);
        while a != b {
            if a < b {
                if i == source.len() {
                    break;
                }
                a = a.saturating_mul(source[i]);
                i += 1;
            } else {
                if j == target.len() {
                    break;
                }
                b = b.saturating_mul(target[j]);
                j += 1;
            }
        }
        groups.push((first..i, second..j));
    }
    // The remaining dimensions have size 1.
    match groups.last_mut() {
        Some((from, to)) => (from.end, to.end) = (source.len(), target.len()),
        None => groups.push((0..source.len(), 0..target.len())),
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use support::Id as _;

    #[test]
    fn dimensions_that_are_split_by_themselves_keep_their_elements() {
        let size = |number| Some(InstructionId::from_index(number));
        let (n, m, k) = (size(0), size(1), size(2));
        type Array<'a> = (&'a [i64], &'a [Option<InstructionId>]);
        let table: [(Array<'_>, Array<'_>, bool); 10] = [
            // [8, 8] with sizes n and m => [1, 8, 1, 8].
            ((&[8, 8], &[n, m]), (&[1, 8, 1, 8], &[None, n, None, m]), true),
            // Their sizes change places.
            ((&[8, 8], &[n, m]), (&[8, 8], &[m, n]), false),
            // [4, n, 6] => [4, n, 2, 3], and heads that are joined.
            ((&[4, 8, 6], &[None, n, None]), (&[4, 8, 2, 3], &[None, n, None, None]), true),
            ((&[4, 8, 2, 3], &[None, n, None, None]), (&[4, 8, 6], &[None, n, None]), true),
            // [4, n] => [4 n]: rows would no longer begin at multiples of 8.
            ((&[4, 8], &[None, n]), (&[32], &[m]), false),
            // [n, 6] => [6 n] in a group of its own, next to m.
            ((&[8, 6, 8], &[n, None, m]), (&[48, 8], &[n, m]), false),
            ((&[8, 6, 8], &[n, None, m]), (&[8, 2, 3, 8], &[n, None, None, m]), true),
            // Squares of pixels: [n, 6, m] => [k, m] and back, where k is 6 n.
            ((&[8, 6, 8], &[n, None, m]), (&[48, 8], &[k, m]), true),
            ((&[48, 8], &[k, m]), (&[8, 6, 8], &[n, None, m]), true),
            ((&[8, 3, 8], &[n, None, m]), (&[24, 8], &[k, m]), false),
        ];
        let is_multiple = |(a, of_a), (b, of_b)| Some(a) == n && Some(b) == k && of_a == 6 * of_b;
        for (from, to, expected) in table {
            let found = keeps_groups(from, to, &mut |a, b| a == b || is_multiple(a, b) || is_multiple(b, a));
            assert_eq!(found, expected, "{from:?} => {to:?}");
        }
    }
}
