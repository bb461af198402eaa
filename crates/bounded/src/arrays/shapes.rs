//! Rules that change the shapes of bounded arrays.

use super::Size;
use super::sizes::{bounds, run_time};
use crate::builder::{Builder, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use shape::index::element_count;
use support::Result;

impl Builder {
    /// Returns the sizes of a reshaped array, of which one may be stated as -1 for the rest of the
    /// elements.
    pub fn resolved_sizes(&mut self, x: InstructionId, mut sizes: Vec<Size>) -> Result<Vec<Size>> {
        let source = self.all_sizes(x)?;
        let unknown: Vec<usize> =
            (0..sizes.len()).filter(|&d| sizes[d].bound == -1 && sizes[d].size.is_none()).collect();
        let valid = unknown.len() <= 1
            && sizes.iter().enumerate().all(|(d, size)| size.bound >= 0 || unknown.contains(&d));
        self.check(valid, || format!("{} is not a valid shape", list(&bounds(&sizes))))?;
        if let [open] = *unknown.as_slice() {
            sizes[open] = self.inferred_size(&source, &sizes, open)?;
        } else {
            let (before, after) = (element_count(&bounds(&source)), element_count(&bounds(&sizes)));
            let is_known = sizes.iter().all(|size| size.size.is_none());
            self.check(!is_known || before >= after, || {
                format!(
                    "cannot reshape at most {} elements to the shape {}",
                    before.unwrap_or(0),
                    list(&bounds(&sizes))
                )
            })?;
        }
        Ok(sizes)
    }

    /// Returns the size of the dimension that contains the rest of the elements. Sizes that occur
    /// on both sides cancel.
    fn inferred_size(&mut self, source: &[Size], sizes: &[Size], open: usize) -> Result<Size> {
        let mut others: Vec<Size> = (0..sizes.len()).filter(|&d| d != open).map(|d| sizes[d]).collect();
        let mut left = Vec::new();
        for &size in source {
            let same = |cx: &Self, other: &Size| match (size.size, other.size) {
                (Some(a), Some(b)) => cx.same_size(a, b),
                _ => false,
            };
            match (0..others.len()).find(|&k| same(self, &others[k])) {
                Some(k) => drop(others.remove(k)),
                None => left.push(size),
            }
        }
        let product = |sizes: &[Size]| element_count(&bounds(sizes)).unwrap_or(i64::MAX);
        let known: Vec<Size> = others.iter().copied().filter(|size| size.size.is_none()).collect();
        let divisor = product(&known);
        let bound = if divisor == 0 { 0 } else { product(&left) / divisor };
        if left.iter().chain(&others).all(|size| size.size.is_none()) {
            return Ok(Size::known(bound));
        }
        let one = self.s32(1)?;
        let (mut count, mut divisor) = (one, one);
        for &size in &left {
            let size = self.size_value(size)?;
            count = self.times(count, size)?;
        }
        for &size in &others {
            let size = self.size_value(size)?;
            divisor = self.times(divisor, size)?;
        }
        let divisor = self.op(Op::Maximum {}, &[divisor, one])?;
        let size = if divisor == one { count } else { self.div(count, divisor)? };
        // A size of several dimensions may be a multiple of one of them.
        let known = if self.has_named_sizes() { self.size_element(size, 0)? } else { None };
        Ok(known.filter(|known| known.bound <= bound).unwrap_or(Size { bound, size: Some(size) }))
    }

    /// True if two sizes are the same value. Looks through conversions and through elements of
    /// vectors concatenated from it.
    fn same_size(&self, a: InstructionId, b: InstructionId) -> bool {
        self.origin(self.level(), a) == self.origin(self.level(), b)
    }

    /// Returns the instruction of an open scope whose value this one has.
    pub(crate) fn origin(&self, level: usize, mut id: InstructionId) -> InstructionId {
        let computation = &self.scope_at(level).computation();
        let mut position = 0usize;
        loop {
            let instruction = &computation[id];
            id = match instruction.op() {
                Op::Convert {} | Op::Reshape {} => instruction.operands()[0],
                Op::Maximum {} if self.is_size(level, instruction.operands()[0]) => instruction.operands()[0],
                Op::Slice { slice } if slice.len() == 1 => {
                    position = (slice[0].start + position as i64 * slice[0].stride) as usize;
                    instruction.operands()[0]
                }
                Op::Concatenate { .. } => {
                    let size = |id: &InstructionId| {
                        computation[*id].shape().as_array().map_or(0, |a| a.element_count())
                    };
                    let source = instruction.operands().iter().find(|operand| {
                        let here = (position as i64) < size(operand);
                        if !here {
                            position -= size(operand) as usize;
                        }
                        here
                    });
                    match source {
                        Some(&operand) => operand,
                        None => return id,
                    }
                }
                _ => return id,
            };
        }
    }

    /// True if a value is never negative.
    fn is_size(&self, level: usize, id: InstructionId) -> bool {
        self.range_at(level, id).low.is_some_and(|low| low >= 0)
    }

    /// `BroadcastTo` data-dependent sizes. Dimensions of size 1 are broadcast; others already have
    /// the size.
    pub fn broadcast_to_bounded(&mut self, x: InstructionId, sizes: &[Size]) -> Result<InstructionId> {
        let source = self.sizes(x);
        let target = bounds(sizes);
        let lead = sizes.len().checked_sub(source.len());
        let lead = lead.ok_or_else(|| {
            self.invalid(format!("{} has more dimensions than {}", list(&source), list(&target)))
        })?;
        let mut x = x;
        for (d, &size) in source.iter().enumerate() {
            let bound = target[lead + d];
            if self.array(x).dimensions[d].is_dynamic && size > 1 {
                let (own, wanted) = (self.true_size(x, d)?, self.size_value(sizes[lead + d])?);
                let one = self.s32(1)?;
                let is_one = self.compare(ComparisonDirection::Eq, own, one)?;
                if !self.same_size(own, wanted) && !is_known_false(self, is_one) {
                    x = self.repeated_if(x, d, bound, is_one, wanted)?;
                    continue;
                }
            }
            if size == 1 || size == bound {
                continue;
            }
            self.check(
                size < bound || sizes[lead + d].size.is_some() || self.array(x).dimensions[d].is_dynamic,
                || format!("Incompatible shapes: {} vs. {}", list(&source), list(&target)),
            )?;
            x = self.rebound(x, d, bound)?;
        }
        let repeated = self.broadcast_to(x, &target)?;
        let data = self.split(repeated)?.data;
        self.bounded(data, &run_time(sizes))
    }

    /// Changes the bound of a dimension. Elements beyond the true size are undefined.
    fn rebound(&mut self, x: InstructionId, dimension: usize, bound: i64) -> Result<InstructionId> {
        let mut split = self.split(x)?;
        let old_bound = self.sizes(split.data)[dimension];
        if bound < old_bound {
            split.data = self.slice_in(split.data, dimension, 0, bound)?;
            if let Some(size) = split.sizes[dimension] {
                let most = self.s32(bound)?;
                split.sizes[dimension] = Some(self.op(Op::Minimum {}, &[size, most])?);
            }
        } else {
            let element_type = self.element_type(split.data);
            let zero = self.scalar(element_type, 0.0);
            let mut padding = vec![(0, 0, 0); split.sizes.len()];
            padding[dimension].1 = bound - old_bound;
            split.data = self.pad(split.data, zero, &padding)?;
            if split.sizes[dimension].is_none() {
                split.sizes[dimension] = Some(self.s32(old_bound)?);
            }
        }
        self.bounded(split.data, &split.sizes)
    }

    /// Broadcasts the dimensions of size 1 of a bounded array. If such a dimension has a true size
    /// of 0, the result is empty.
    pub fn broadcast_bounded(
        &mut self,
        id: InstructionId,
        matching: &[usize],
        sizes: &[i64],
        dimensions: &[usize],
    ) -> Result<InstructionId> {
        let split = self.split(id)?;
        let source = self.sizes(split.data);
        let lead = sizes.len() - source.len();
        let matching_sizes: Vec<i64> = matching.iter().map(|&d| source[d]).collect();
        let squeezed = self.reshape(split.data, &matching_sizes)?;
        let repeated = self.broadcast(squeezed, sizes, dimensions)?;
        let mut true_sizes = vec![None; sizes.len()];
        for (d, &size) in split.sizes.iter().enumerate() {
            let Some(size) = size else { continue };
            true_sizes[lead + d] = Some(if matching.contains(&d) {
                size
            } else {
                let whole = self.s32(sizes[lead + d])?;
                self.times(size, whole)?
            });
        }
        self.bounded(repeated, &true_sizes)
    }

    /// Reconciles two inputs of a broadcasting op with different bounds: gives them a common bound,
    /// and broadcasts a true size of 1 to that of the other.
    pub fn reconciled(
        &mut self,
        mut a: InstructionId,
        mut b: InstructionId,
    ) -> Result<(InstructionId, InstructionId)> {
        if !self.is_bounded(a) && !self.is_bounded(b) {
            return Ok((a, b));
        }
        let rank = self.rank(a).max(self.rank(b));
        for d in 0..rank {
            let dimension_in = |cx: &Self, id: InstructionId| (d + cx.rank(id)).checked_sub(rank);
            let (Some(of_a), Some(of_b)) = (dimension_in(self, a), dimension_in(self, b)) else { continue };
            let (in_a, in_b) = (self.array(a).dimensions[of_a], self.array(b).dimensions[of_b]);
            // A static dimension of size 1 is broadcast anyway.
            let is_one = |dimension: shape::Dimension| dimension.size == 1 && !dimension.is_dynamic;
            if !(in_a.is_dynamic || in_b.is_dynamic) || is_one(in_a) || is_one(in_b) {
                continue;
            }
            let (size_a, size_b) = (self.split(a)?.sizes[of_a], self.split(b)?.sizes[of_b]);
            if let (Some(x), Some(y)) = (size_a, size_b)
                && in_a.size == in_b.size
                && self.same_size(x, y)
            {
                continue;
            }
            let bound = in_a.size.max(in_b.size);
            let (true_a, true_b) = (self.true_size(a, of_a)?, self.true_size(b, of_b)?);
            let one = self.s32(1)?;
            let a_is_one = self.compare(ComparisonDirection::Eq, true_a, one)?;
            let b_is_one = self.compare(ComparisonDirection::Eq, true_b, one)?;
            let least = self.op(Op::Minimum {}, &[true_a, true_b])?;
            let size = self.select(b_is_one, true_a, least)?;
            let size = self.select(a_is_one, true_b, size)?;
            a = self.repeated_if(a, of_a, bound, a_is_one, size)?;
            b = self.repeated_if(b, of_b, bound, b_is_one, size)?;
        }
        Ok((a, b))
    }

    /// Returns an array with this bound and true size of a dimension. If `is_one`, its first
    /// element is broadcast along it.
    fn repeated_if(
        &mut self,
        x: InstructionId,
        dimension: usize,
        bound: i64,
        is_one: InstructionId,
        size: InstructionId,
    ) -> Result<InstructionId> {
        let mut sizes = self.split(x)?.sizes;
        let x = if self.sizes(x)[dimension] == bound { x } else { self.rebound(x, dimension, bound)? };
        let data = self.split(x)?.data;
        let mut whole = self.sizes(data);
        if is_known_false(self, is_one) {
            sizes[dimension] = Some(size);
            return self.bounded(data, &sizes);
        }
        let first = self.slice_in(data, dimension, 0, bound.min(1))?;
        let others: Vec<usize> = (0..whole.len()).filter(|&d| d != dimension).collect();
        let rest: Vec<i64> = others.iter().map(|&d| whole[d]).collect();
        let repeated = if bound == 0 {
            data
        } else {
            let first = self.reshape(first, &rest)?;
            self.broadcast(first, &whole, &others)?
        };
        whole[dimension] = bound;
        let is_one = self.broadcast(is_one, &whole, &[])?;
        let data = self.select(is_one, repeated, data)?;
        sizes[dimension] = Some(size);
        self.bounded(data, &sizes)
    }

    /// `Tile` of a bounded array, or with a bounded multiple. Each element comes from its position
    /// modulo the true size.
    pub fn tile_bounded(&mut self, x: InstructionId, multiples: &[Size]) -> Result<InstructionId> {
        let mut x = x;
        for (d, &multiple) in multiples.iter().enumerate() {
            if multiple.size.is_none() && multiple.bound == 1 {
                continue;
            }
            let size = self.all_sizes(x)?[d];
            let bound = size.bound.checked_mul(multiple.bound).filter(|&bound| bound <= i64::from(i32::MAX));
            let bound = bound.ok_or_else(|| self.invalid("the result is too large"))?;
            let (size_value, times) = (self.size_value(size)?, self.size_value(multiple)?);
            let tiled = self.times(size_value, times)?;
            let one = self.s32(1)?;
            let period = self.op(Op::Maximum {}, &[size_value, one])?;
            let positions = self.iota(PrimitiveType::S32, &[bound], 0)?;
            let period = self.broadcast(period, &[bound], &[])?;
            let positions = self.op(Op::Remainder {}, &[positions, period])?;
            let split = self.split(x)?;
            let mut sizes = split.sizes;
            let data = self.gather_along(split.data, positions, d as i64, 0)?;
            sizes[d] = Some(tiled);
            x = self.bounded(data, &sizes)?;
        }
        Ok(x)
    }
}

fn is_known_false(cx: &mut Builder, id: InstructionId) -> bool {
    cx.fold(id).is_some_and(|literal| literal.scalar_at(0) == shape::Scalar::Pred(false))
}
