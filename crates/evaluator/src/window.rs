//! `reduce-window` and `select-and-scatter`.

use crate::array::{View, array, arrays, for_each_index, from_scalars, pack, scalar};
use crate::evaluator::Evaluator;
use crate::reduction::{Accumulators, inputs_and_inits};
use hlo::{ComputationId, Window};
use shape::index::{linear_index, row_major_strides};
use shape::{Literal, Scalar, Shape};
use support::{Error, Result};

/// Calls `visit` with the position in the base array of each element of a window, in order.
/// Elements in the padding or between dilated elements have no position. Elements outside the array
/// cost nothing, since a window may be far larger than the array.
fn for_each_position(
    window: &Window,
    sizes: &[i64],
    strides: &[i64],
    placement: &[i64],
    mut visit: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let inside: Vec<std::ops::Range<i64>> = (0..sizes.len())
        .map(|d| {
            let w = &window.dimensions[d];
            let start = w.padding_low - placement[d] * w.stride;
            let end = start + (sizes[d] - 1) * w.base_dilation + 1;
            let first = |at: i64| at.div_euclid(w.window_dilation) + i64::from(at % w.window_dilation != 0);
            first(start).clamp(0, w.size)..first(end).clamp(0, w.size)
        })
        .collect();
    let counts: Vec<i64> = inside.iter().map(|range| (range.end - range.start).max(0)).collect();
    let mut tap = vec![0; sizes.len()];
    for_each_index(&counts, |offset| {
        for (d, tap) in tap.iter_mut().enumerate() {
            *tap = inside[d].start + offset[d];
        }
        match base_position(window, sizes, strides, placement, &tap) {
            Some(at) => visit(at as usize),
            None => Ok(()),
        }
    })
}

/// Returns the position in the base array of one element of one window, or `None` in the padding or
/// between dilated elements.
fn base_position(
    window: &Window,
    sizes: &[i64],
    strides: &[i64],
    placement: &[i64],
    tap: &[i64],
) -> Option<i64> {
    let mut linear = 0;
    for (d, w) in window.dimensions.iter().enumerate() {
        let dilated = placement[d] * w.stride + tap[d] * w.window_dilation - w.padding_low;
        let position = dilated / w.base_dilation;
        if dilated < 0 || dilated % w.base_dilation != 0 || position >= sizes[d] {
            return None;
        }
        linear += position * strides[d];
    }
    Some(linear)
}

fn check_window(window: &Window, rank: usize) -> Result<()> {
    if window.dimensions.len() != rank || window.dimensions.iter().any(|w| w.window_reversal) {
        return Err(Error::invalid(format!("expected a window without reversal over {rank} dimensions")));
    }
    if window.dimensions.iter().any(|w| w.base_dilation < 1 || w.window_dilation < 1) {
        return Err(Error::invalid("expected positive window dilations"));
    }
    Ok(())
}

/// Windows along one dimension such that each contains all elements of its neighbor. A window's
/// result continues from the neighbor's.
struct RunningTotals {
    dimension: usize,
    /// True if the last window is the smallest.
    backward: bool,
    /// The window's elements that its neighbor does not contain.
    newest: Window,
}

impl RunningTotals {
    /// Returns `None` if the windows do not nest, or if they grow at their beginning and the order
    /// of their elements matters.
    fn of(window: &Window, sizes: &[i64], counts: &[i64], is_free_of_order: bool) -> Option<Self> {
        let (dimension, backward) = window.running_dimension(sizes, counts)?;
        if backward && !is_free_of_order {
            return None;
        }
        let mut newest = window.clone();
        let w = &mut newest.dimensions[dimension];
        if !backward {
            w.padding_low = w.padding_low.saturating_sub(w.size - 1);
        }
        w.size = 1;
        Some(Self { dimension, backward, newest })
    }
}

/// Returns the placement of the window computed for an index, and the number of the result from
/// which it continues.
fn step_of(totals: Option<&RunningTotals>, counts: &[i64], index: &[i64]) -> (Vec<i64>, Option<i64>) {
    let mut placement = index.to_vec();
    let Some(&RunningTotals { dimension, backward, .. }) = totals else { return (placement, None) };
    let mut before = placement.clone();
    before[dimension] -= 1;
    if backward {
        for at in [&mut placement, &mut before] {
            at[dimension] = counts[dimension] - 1 - at[dimension];
        }
    }
    (placement, (index[dimension] > 0).then(|| linear_index(counts, &before)))
}

impl Evaluator<'_> {
    /// Evaluates `reduce-window` of one or several arrays.
    pub(crate) fn reduce_window(
        &mut self,
        shape: &Shape,
        operands: &[&Literal],
        window: &Window,
        to_apply: ComputationId,
    ) -> Result<Literal> {
        let results = arrays(shape)?;
        let (inputs, inits) = inputs_and_inits(operands, &results)?;
        let callee = self.callee(to_apply, operands.len())?;
        let sizes = inputs[0].array_shape().sizes();
        check_window(window, sizes.len())?;
        let strides = row_major_strides(&sizes);
        let counts = results[0].sizes();
        let totals = RunningTotals::of(window, &sizes, &counts, callee.is_free_of_order());
        if let (&[input], &[init], Some(step)) = (inputs, inits.as_slice(), callee.binary_step()) {
            let mut accumulators = vec![init; results[0].element_count() as usize];
            for_each_index(&counts, |index| {
                let (placement, before) = step_of(totals.as_ref(), &counts, index);
                let (window, mut accumulator) = match (before, &totals) {
                    (Some(before), Some(totals)) => (&totals.newest, accumulators[before as usize]),
                    _ => (window, init),
                };
                for_each_position(window, &sizes, &strides, &placement, |at| {
                    self.charge(1)?;
                    accumulator = step(accumulator, input.scalar_at(at))?;
                    Ok(())
                })?;
                accumulators[linear_index(&counts, &placement) as usize] = accumulator;
                Ok(())
            })?;
            return Ok(pack(shape, vec![from_scalars(&results[0], accumulators)]));
        }
        let mut accumulators = Accumulators::new(results[0].element_count(), &inits);
        for_each_index(&counts, |index| {
            let (placement, before) = step_of(totals.as_ref(), &counts, index);
            let mut accumulator = accumulators.at(linear_index(&counts, &placement)).clone();
            let mut window = window;
            if let (Some(before), Some(totals)) = (before, &totals) {
                accumulator.clone_from(accumulators.at(before));
                window = &totals.newest;
            }
            for_each_position(window, &sizes, &strides, &placement, |at| {
                self.charge(1)?;
                let values: Vec<Scalar> = inputs.iter().map(|input| input.scalar_at(at)).collect();
                accumulator = self.accumulate(&callee, &accumulator, &values)?;
                Ok(())
            })?;
            *accumulators.at(linear_index(&counts, &placement)) = accumulator;
            Ok(())
        })?;
        Ok(accumulators.finish(shape, &results))
    }

    /// Evaluates `select-and-scatter`. In each window, the source's element is combined by
    /// `scatter` into the element that `select` prefers (the first of equals).
    pub(crate) fn select_and_scatter(
        &mut self,
        shape: &Shape,
        [operand, source, init]: [&Literal; 3],
        window: &Window,
        select: ComputationId,
        scatter: ComputationId,
    ) -> Result<Literal> {
        let result = array(shape)?;
        let (base, placements) = (View::new(operand)?, View::new(source)?);
        if base.sizes != result.sizes() {
            return Err(Error::invalid(format!("the operand must have the dimensions of {result}")));
        }
        let (select, scatter) = (self.callee(select, 2)?, self.callee(scatter, 2)?);
        check_window(window, base.sizes.len())?;
        let mut scattered = vec![scalar(init)?; result.element_count() as usize];
        for_each_index(&placements.sizes, |placement| {
            let mut selected: Option<(usize, Scalar)> = None;
            for_each_position(window, &base.sizes, &base.strides, placement, |at| {
                self.charge(1)?;
                let candidate = operand.scalar_at(at);
                let keeps = match selected {
                    None => false,
                    Some((_, best)) => self.apply(&select, &[best, candidate])? == [Scalar::Pred(true)],
                };
                if !keeps {
                    selected = Some((at, candidate));
                }
                Ok(())
            })?;
            if let Some((at, _)) = selected {
                let value = source.scalar_at(linear_index(&placements.sizes, placement) as usize);
                scattered[at] = single(self.accumulate(&scatter, &[scattered[at]], &[value])?)?;
            }
            Ok(())
        })?;
        Ok(from_scalars(&result, scattered))
    }
}

fn single(values: Vec<Scalar>) -> Result<Scalar> {
    match values.as_slice() {
        &[value] => Ok(value),
        other => Err(Error::invalid(format!("expected a computation with one result, got {}", other.len()))),
    }
}
