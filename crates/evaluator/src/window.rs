//! `reduce-window` and `select-and-scatter`.

use crate::array::{View, array, arrays, for_each_index, from_scalars, pack};
use crate::computation::scalar;
use crate::evaluator::Evaluator;
use crate::reduction::{Accumulators, inputs_and_inits};
use hlo::{ComputationId, Window};
use shape::index::{linear_index, row_major_strides};
use shape::{Literal, Scalar, Shape};
use support::{Error, Result};

/// The position in the base array of one element of one window; `None` in the padding or between dilated elements.
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

fn window_sizes(window: &Window, rank: usize) -> Result<Vec<i64>> {
    if window.dimensions.len() != rank || window.dimensions.iter().any(|w| w.window_reversal) {
        return Err(Error::invalid(format!("a window without reversal over {rank} dimensions is wanted")));
    }
    Ok(window.dimensions.iter().map(|w| w.size).collect())
}

impl Evaluator<'_> {
    /// `reduce-window` of one or several arrays.
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
        let (strides, taps) = (row_major_strides(&sizes), window_sizes(window, sizes.len())?);
        if let (&[input], &[init], Some(step)) = (inputs, inits.as_slice(), callee.binary_step()) {
            let mut accumulators = Vec::with_capacity(results[0].element_count() as usize);
            for_each_index(&results[0].sizes(), |placement| {
                let mut accumulator = init;
                for_each_index(&taps, |tap| {
                    self.charge(1)?;
                    if let Some(at) = base_position(window, &sizes, &strides, placement, tap) {
                        accumulator = step(accumulator, input.scalar_at(at as usize))?;
                    }
                    Ok(())
                })?;
                accumulators.push(accumulator);
                Ok(())
            })?;
            return Ok(pack(shape, vec![from_scalars(&results[0], accumulators)]));
        }
        let mut accumulators = Accumulators::new(results[0].element_count(), &inits);
        let mut linear = 0;
        for_each_index(&results[0].sizes(), |placement| {
            let accumulator = accumulators.at(linear);
            linear += 1;
            for_each_index(&taps, |tap| {
                self.charge(1)?;
                let Some(at) = base_position(window, &sizes, &strides, placement, tap) else { return Ok(()) };
                let values: Vec<Scalar> = inputs.iter().map(|input| input.scalar_at(at as usize)).collect();
                *accumulator = self.accumulate(&callee, accumulator, &values)?;
                Ok(())
            })
        })?;
        Ok(accumulators.finish(shape, &results))
    }

    /// `select-and-scatter`: in each window the element that `select` prefers (the first of equals) receives the
    /// source's element, combined by `scatter`.
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
        let taps = window_sizes(window, base.sizes.len())?;
        let mut scattered = vec![scalar(init)?; result.element_count() as usize];
        for_each_index(&placements.sizes, |placement| {
            let mut selected: Option<(usize, Scalar)> = None;
            for_each_index(&taps, |tap| {
                self.charge(1)?;
                let Some(at) = base_position(window, &base.sizes, &base.strides, placement, tap) else {
                    return Ok(());
                };
                let candidate = operand.scalar_at(at as usize);
                let keeps = match selected {
                    None => false,
                    Some((_, best)) => self.apply(&select, &[best, candidate])? == [Scalar::Pred(true)],
                };
                if !keeps {
                    selected = Some((at as usize, candidate));
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
        other => Err(Error::invalid(format!("a computation must have one result, not {}", other.len()))),
    }
}
