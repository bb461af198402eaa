//! Long sums in blocks. The rounding error of a sum of n elements then grows with the fourth root
//! of n instead of its square root. If all elements have the same sign, so that partial sums grow,
//! it also grows with the square root of its former rate.

use super::operation::Operation;
use super::{Body, LimitedLoop, nest};
use crate::context::KernelContext;
use crate::context::limits::{greater, lesser};
use crate::index::Index;
use hlo::analysis::Extent;
use nest::{FunctionBuilder, ValueId};
use support::Result;

/// Minimum number of steps of a sum that is cut into blocks.
const SHORT: i64 = 256;

/// Accumulators that a reduction carries between steps.
pub(crate) struct Carried<'o, 'a> {
    /// The operation of each accumulator.
    pub operations: &'o [Operation<'a>],
    /// Number of lanes of each accumulator.
    pub lanes: u32,
    /// Number of steps in the body of the innermost loop.
    pub inside: i64,
}

impl Carried<'_, '_> {
    /// True if `steps` steps are better summed in blocks.
    fn is_long(&self, steps: i64) -> bool {
        steps >= SHORT && self.operations.iter().any(Operation::rounds)
    }

    /// Returns the initial accumulators of a block.
    fn neutral(&self, b: &mut FunctionBuilder) -> Result<Vec<ValueId>> {
        self.operations.iter().map(|operation| operation.neutral(b, self.lanes)).collect()
    }

    fn combine(
        &self,
        cx: &mut KernelContext<'_>,
        totals: &[ValueId],
        block: Vec<ValueId>,
    ) -> Result<Vec<ValueId>> {
        let pairs = totals.iter().zip(block);
        pairs
            .zip(self.operations)
            .map(|((&total, sum), operation)| operation.combine(cx, total, sum))
            .collect()
    }
}

/// Like [`nest`], but cuts a long sum into blocks with separate accumulators.
pub(crate) fn nest_in_blocks(
    cx: &mut KernelContext<'_>,
    loops: &[LimitedLoop],
    indices: &mut Vec<Index>,
    carried: &Carried<'_, '_>,
    start: &[ValueId],
    body: &mut Body<'_>,
) -> Result<Vec<ValueId>> {
    let steps = loops.iter().map(|(l, _)| l.extent).fold(carried.inside, i64::saturating_mul);
    if loops.is_empty() || !carried.is_long(steps) {
        return nest(cx, loops, indices, start, body);
    }
    // Find the loops that a block contains entirely, and how much of the next loop it covers.
    let length = steps.isqrt();
    let (mut inside, mut number) = (carried.inside, loops.len() - 1);
    while number > 0 && inside * loops[number].0.extent <= length {
        inside *= loops[number].0.extent;
        number -= 1;
    }
    let (cut, limit) = loops[number];
    let part = part(cut.extent, length / inside);
    nest(cx, &loops[..number], indices, start, &mut |cx, indices, totals| {
        blocks(cx, (cut.extent, limit), 1, part, carried, totals, &mut |cx, index, sums| {
            indices[cut.dimension] = index;
            nest(cx, &loops[number + 1..], indices, sums, body)
        })
    })
}

/// Body of a range. It maps an index and the carried values to the next ones.
pub(crate) type Step<'f> = dyn FnMut(&mut KernelContext<'_>, Index, &[ValueId]) -> Result<Vec<ValueId>> + 'f;

/// Emits a loop over the multiples of `step` below `end`, as far as they are needed. It cuts a long
/// sum into blocks with separate accumulators.
pub(crate) fn range_in_blocks(
    cx: &mut KernelContext<'_>,
    (end, limit): (i64, Option<Extent>),
    step: i64,
    carried: &Carried<'_, '_>,
    start: &[ValueId],
    body: &mut Step<'_>,
) -> Result<Vec<ValueId>> {
    let steps = end / step;
    if !carried.is_long(steps) {
        return cx.for_needed((0, end, limit), step, start, body);
    }
    blocks(cx, (end, limit), step, part(steps, steps.isqrt()), carried, start, body)
}

/// Returns the number of steps in a block: about `length`, preferably a divisor of all steps, which
/// avoids separate code for a shorter last block.
fn part(steps: i64, length: i64) -> i64 {
    let length = length.clamp(1, steps.max(1));
    let shorter = (length / 2 + 1..=length).rev();
    let longer = length + 1..=(2 * length).min(steps);
    shorter.chain(longer).find(|part| steps % part == 0).unwrap_or(length)
}

/// Emits blocks of `part` steps, as far as they are needed.
fn blocks(
    cx: &mut KernelContext<'_>,
    (end, limit): (i64, Option<Extent>),
    step: i64,
    part: i64,
    carried: &Carried<'_, '_>,
    start: &[ValueId],
    body: &mut Step<'_>,
) -> Result<Vec<ValueId>> {
    let whole = end / (part * step) * (part * step);
    let limit = limit.filter(|&extent| !cx.covers(extent, end));
    let needed = limit.map(|extent| cx.extent(extent, end)).transpose()?;
    let mut block = |cx: &mut KernelContext<'_>, first: &Index, end: i64, totals: &[ValueId]| {
        let neutral = carried.neutral(cx)?;
        let step_of =
            |cx: &mut KernelContext<'_>, index: Index, sums: &[ValueId]| body(cx, first.plus(&index), sums);
        let sums = match needed {
            Some(needed) => {
                let (zero, most, first) = (cx.index(0), cx.index(end), cx.scalar_value(first)?);
                let rest = cx.sub(needed, first);
                let rest = greater(cx, rest, zero);
                let rest = lesser(cx, rest, most);
                cx.for_steps((zero, rest), (0, end), step, &neutral, step_of)?
            }
            None => cx.for_range_carrying(0, end, step, &neutral, step_of)?,
        };
        carried.combine(cx, totals, sums)
    };
    let totals = cx.for_needed((0, whole, limit), part * step, start, |cx, first, totals| {
        block(cx, &first, part * step, totals)
    })?;
    if whole == end {
        return Ok(totals);
    }
    block(cx, &Index::constant(whole), end - whole, &totals)
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn blocks_divide_a_sum_where_they_can() {
        assert_eq!(part(4096, 64), 64);
        assert_eq!(part(3136, 56), 56);
        // 1002 is 2 * 3 * 167. It has no divisor from 16 to 62, and 6 and 167 are too far off.
        assert_eq!(part(1002, 31), 31);
        assert_eq!(part(32, 45), 32);
        assert_eq!(part(1 << 15, 181), 128);
    }
}
