//! `reduce` and `map`: apply a computation to individual elements.

use crate::array::{array, arrays, check_array, dot, for_each_index, from_scalars, pack, scalar};
use crate::evaluator::Evaluator;
use hlo::ComputationId;
use shape::index::row_major_strides;
use shape::{ArrayShape, Literal, Scalar, Shape};
use support::{Error, Result};

/// One tuple of accumulators per element of the results.
pub(crate) struct Accumulators(Vec<Vec<Scalar>>);

impl Accumulators {
    pub(crate) fn new(count: i64, inits: &[Scalar]) -> Self {
        Self(vec![inits.to_vec(); count as usize])
    }

    pub(crate) fn at(&mut self, linear: i64) -> &mut Vec<Scalar> {
        &mut self.0[linear as usize]
    }

    /// Returns the results, rounded to their types.
    pub(crate) fn finish(self, shape: &Shape, results: &[ArrayShape]) -> Literal {
        let column =
            |(i, result): (usize, &ArrayShape)| from_scalars(result, self.0.iter().map(|row| row[i]));
        pack(shape, results.iter().enumerate().map(column).collect())
    }
}

/// Splits operands into inputs and as many initial values. All inputs have the same dimensions.
pub(crate) fn inputs_and_inits<'a, 'b>(
    operands: &'a [&'b Literal],
    results: &[ArrayShape],
) -> Result<(&'a [&'b Literal], Vec<Scalar>)> {
    let (inputs, inits) = operands.split_at(operands.len() / 2);
    if inputs.is_empty() || inputs.len() != inits.len() || results.len() != inputs.len() {
        return Err(Error::invalid("expected one initial value and one result per input"));
    }
    for input in inputs {
        check_array(input)?;
        if input.array_shape().sizes() != inputs[0].array_shape().sizes() {
            return Err(Error::invalid("all inputs must have the same dimensions"));
        }
    }
    Ok((inputs, inits.iter().map(|init| scalar(init)).collect::<Result<_>>()?))
}

impl Evaluator<'_> {
    /// Evaluates `reduce` of one or several arrays in row-major order.
    pub(crate) fn reduce(
        &mut self,
        shape: &Shape,
        operands: &[&Literal],
        dimensions: &[usize],
        to_apply: ComputationId,
    ) -> Result<Literal> {
        let results = arrays(shape)?;
        let (inputs, inits) = inputs_and_inits(operands, &results)?;
        let callee = self.callee(to_apply, operands.len())?;
        let sizes = inputs[0].array_shape().sizes();
        // Steps along a reduced input dimension stay at the same result element.
        let mut result_strides = row_major_strides(&results[0].sizes()).into_iter();
        let strides: Vec<i64> = (0..sizes.len())
            .map(|d| if dimensions.contains(&d) { 0 } else { result_strides.next().unwrap_or(0) })
            .collect();
        if let (&[input], &[init], Some(step)) = (inputs, inits.as_slice(), callee.binary_step()) {
            self.charge(input.array_shape().element_count() as u64)?;
            let mut accumulators = vec![init; results[0].element_count() as usize];
            let mut values = input.scalars();
            for_each_index(&sizes, |index| {
                let accumulator = &mut accumulators[dot(index, &strides) as usize];
                let value = values.next().expect("as many elements as indices");
                *accumulator = step(*accumulator, value)?;
                Ok(())
            })?;
            return Ok(pack(shape, vec![from_scalars(&results[0], accumulators)]));
        }
        let mut accumulators = Accumulators::new(results[0].element_count(), &inits);
        let mut linear = 0;
        let mut values = Vec::with_capacity(inputs.len());
        for_each_index(&sizes, |index| {
            values.clear();
            values.extend(inputs.iter().map(|input| input.scalar_at(linear)));
            linear += 1;
            let accumulator = accumulators.at(dot(index, &strides));
            *accumulator = self.accumulate(&callee, accumulator, &values)?;
            Ok(())
        })?;
        Ok(accumulators.finish(shape, &results))
    }

    /// Evaluates `map`: one call per element.
    pub(crate) fn map(
        &mut self,
        shape: &Shape,
        operands: &[&Literal],
        to_apply: ComputationId,
    ) -> Result<Literal> {
        let result = array(shape)?;
        let callee = self.callee(to_apply, operands.len())?;
        for operand in operands {
            check_array(operand)?;
            if operand.array_shape().sizes() != result.sizes() {
                return Err(Error::invalid(format!("every operand must have the dimensions of {result}")));
            }
        }
        let mut scalars = Vec::with_capacity(result.element_count() as usize);
        for i in 0..result.element_count() as usize {
            let arguments: Vec<Scalar> = operands.iter().map(|o| o.scalar_at(i)).collect();
            scalars.extend(self.apply(&callee, &arguments)?);
        }
        Ok(from_scalars(&result, scalars))
    }
}
