//! Bounded arrays in other dimensions.
//!
//! The true elements follow each other in row-major order of the true sizes. Where they lie at the beginning of both
//! arrays, the bytes stay; else each element is looked up where it was.

use super::sizes::{bounds, run_time};
use super::{Bounded, Size};
use crate::builder::{Builder, list};
use hlo::{GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use shape::index::{element_count, row_major_strides};
use support::{Code, Error, Result};

impl Builder {
    /// The elements of an array with other sizes. The true sizes multiply to as many elements as there are; where they
    /// do not, what is missing is undefined.
    pub fn reshape_to(&mut self, id: InstructionId, sizes: &[Size]) -> Result<InstructionId> {
        let from = self.split(id)?;
        let (have, wanted) = (self.sizes(from.data), bounds(sizes));
        let true_sizes = run_time(sizes);
        let data = if is_prefix(&have, &from.sizes) && is_prefix(&wanted, &true_sizes) {
            self.resized(from.data, &have, &wanted)?
        } else {
            self.looked_up(&from, &have, sizes)?
        };
        self.bounded(data, &true_sizes)
    }

    /// The first elements of an array in other dimensions, zeros behind them.
    fn resized(&mut self, data: InstructionId, have: &[i64], wanted: &[i64]) -> Result<InstructionId> {
        let (Some(before), Some(after)) = (element_count(have), element_count(wanted)) else {
            return Err(self.invalid(format!("{} is too large", list(wanted))));
        };
        if before == after {
            return self.reshape(data, wanted);
        }
        let flat = self.reshape(data, &[before])?;
        let resized = if after < before {
            self.slice_in(flat, 0, 0, after)?
        } else {
            let element_type = self.element_type(flat);
            let zero = self.scalar(element_type, 0.0);
            self.pad(flat, zero, &[(0, after - before, 0)])?
        };
        self.reshape(resized, wanted)
    }

    /// Each element from where it was.
    fn looked_up(&mut self, from: &Bounded, have: &[i64], sizes: &[Size]) -> Result<InstructionId> {
        let wanted = bounds(sizes);
        let counts = (element_count(have), element_count(&wanted));
        let (Some(before @ 1..), Some(1..)) = counts else {
            let element_type = self.element_type(from.data);
            return self.splat(element_type, &wanted, 0.0);
        };
        let small = i64::from(i32::MAX);
        self.check(before <= small && counts.1.is_some_and(|after| after <= small), || {
            format!("{} has too many elements for an array of bounded size", list(have))
        })?;
        // The position among the true elements.
        let mut stride = self.s32(1)?;
        let mut position = self.splat(PrimitiveType::S32, &wanted, 0.0)?;
        for (d, &size) in sizes.iter().enumerate().rev() {
            let index = self.iota(PrimitiveType::S32, &wanted, d)?;
            let step = self.broadcast(stride, &wanted, &[])?;
            let term = self.mul(index, step)?;
            position = self.add(position, term)?;
            let size = self.size_value(size)?;
            stride = self.times(stride, size)?;
        }
        // From there the position among all elements.
        let mut place = self.splat(PrimitiveType::S32, &wanted, 0.0)?;
        for (d, stride) in row_major_strides(have).into_iter().enumerate().rev() {
            let size = self.size_value(Size { bound: have[d], size: from.sizes[d] })?;
            let one = self.s32(1)?;
            let size = self.op(Op::Maximum {}, &[size, one])?;
            let size = self.broadcast(size, &wanted, &[])?;
            let index = self.op(Op::Remainder {}, &[position, size])?;
            position = self.div(position, size)?;
            let term = self.mul_scalar(index, stride as f64)?;
            place = self.add(place, term)?;
        }
        let flat = self.reshape(from.data, &[before])?;
        let gather_dimension_numbers = GatherDimensionNumbers {
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            index_vector_dim: wanted.len(),
            ..Default::default()
        };
        let op = Op::Gather { gather_dimension_numbers, slice_sizes: vec![1], indices_are_sorted: false };
        self.op(op, &[flat, place])
    }

    /// The sizes of a bounded array in other dimensions whose bounds a rule gives. An error if they don't follow.
    pub(super) fn reshaped_sizes(
        &mut self,
        have: &[i64],
        known: &[Option<InstructionId>],
        wanted: &[i64],
    ) -> Result<Vec<Size>> {
        let mut sizes: Vec<Size> = wanted.iter().map(|&size| Size::known(size)).collect();
        if have.contains(&0) {
            return Ok(sizes);
        }
        for (from, to) in groups(have, wanted) {
            let bounded: Vec<usize> = from.clone().filter(|&d| known[d].is_some()).collect();
            let &[dimension] = bounded.as_slice() else {
                if bounded.is_empty() {
                    continue;
                }
                return Err(unclear(have, wanted));
            };
            let size = known[dimension].expect("it is bounded");
            let only = from.clone().all(|d| d == dimension || have[d] == 1);
            let first = from.clone().take_while(|&d| d != dimension).all(|d| have[d] == 1);
            // Where the position is the same, a dimension of 1 may be meant too.
            let same = to
                .clone()
                .find(|&d| wanted[d] == have[dimension] && (have[dimension] > 1 || to.len() == from.len()));
            if let (true, Some(same)) = (only, same) {
                let same = if to.len() == from.len() && have[dimension] == 1 {
                    to.start + (dimension - from.start)
                } else {
                    same
                };
                sizes[same].size = Some(size);
                continue;
            }
            let target = to.clone().find(|&d| wanted[d] != 1).or(to.clone().next());
            let (true, Some(target)) = (first, target) else { return Err(unclear(have, wanted)) };
            let inner: i64 = from.clone().filter(|&d| d != dimension).map(|d| have[d]).product();
            let inner_wanted: i64 = to.clone().filter(|&d| d != target).map(|d| wanted[d]).product();
            let factor = self.s32(inner)?;
            let mut scaled = self.times(size, factor)?;
            if inner_wanted != 1 {
                let divisor = self.s32(inner_wanted)?;
                scaled = self.div(scaled, divisor)?;
            }
            sizes[target].size = Some(scaled);
        }
        Ok(sizes)
    }
}

fn unclear(have: &[i64], wanted: &[i64]) -> Error {
    Error::unsupported(format!(
        "an array within the bounds {} becomes {}, and which size only a run knows then does not follow; reshape in \
         steps that leave the bounded dimension alone",
        list(have),
        list(wanted)
    )).coded(Code::BoundedSize)
}

/// Whether the true elements are the first of all.
fn is_prefix(sizes: &[i64], known: &[Option<InstructionId>]) -> bool {
    let bounded: Vec<usize> = (0..sizes.len()).filter(|&d| known[d].is_some()).collect();
    match bounded.as_slice() {
        [] => true,
        &[dimension] => sizes[..dimension].iter().all(|&size| size == 1),
        _ => false,
    }
}

/// Runs of dimensions that hold the same elements before and after.
fn groups(have: &[i64], wanted: &[i64]) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < have.len() && j < wanted.len() {
        let (first, second) = (i, j);
        let (mut a, mut b) = (have[i], wanted[j]);
        (i, j) = (i + 1, j + 1);
        while a != b {
            if a < b {
                if i == have.len() {
                    break;
                }
                a = a.saturating_mul(have[i]);
                i += 1;
            } else {
                if j == wanted.len() {
                    break;
                }
                b = b.saturating_mul(wanted[j]);
                j += 1;
            }
        }
        groups.push((first..i, second..j));
    }
    // What is left are dimensions of 1.
    match groups.last_mut() {
        Some((from, to)) => (from.end, to.end) = (have.len(), wanted.len()),
        None => groups.push((0..have.len(), 0..wanted.len())),
    }
    groups
}
