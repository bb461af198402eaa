//! Opcodes that apply a scalar computation: reductions, map, sort.

use super::{Inference, array_of, with_type};
use crate::attributes::Window;
use crate::ids::ComputationId;
use shape::{ArrayShape, Dimension, PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    /// Checks a reducer, which takes `2n` scalars, accumulators first, and returns the `n` new
    /// accumulators.
    pub(super) fn check_reducer(
        &self,
        what: &str,
        reducer: ComputationId,
        accumulators: &[PrimitiveType],
    ) -> Result<()> {
        let scalars: Vec<Shape> = accumulators.iter().map(|&t| Shape::scalar(t)).collect();
        let result = match &scalars[..] {
            [scalar] => scalar.clone(),
            _ => Shape::Tuple(scalars.clone()),
        };
        let signature = self.signature(reducer)?;
        let arguments: Vec<&Shape> = scalars.iter().chain(&scalars).collect();
        self.check_parameters(what, &signature, &arguments)?;
        self.check(
            signature.result.compatible(&result) || signature.result.compatible(&Shape::Tuple(scalars)),
            format_args!("expected {what} to return {result}, got {}", signature.result),
        )
    }

    /// Returns the types in which a reducer of these arrays accumulates: those of the arrays, or
    /// other floating-point types.
    fn accumulator_types(
        &self,
        reducer: ComputationId,
        arrays: &[&ArrayShape],
    ) -> Result<Vec<PrimitiveType>> {
        let parameters = self.signature(reducer)?.parameters;
        let accumulator_type = |(k, array): (usize, &&ArrayShape)| {
            let parameter_type = parameters
                .get(k)
                .and_then(Shape::as_array)
                .map_or(array.element_type, |parameter| parameter.element_type);
            if is_near(parameter_type, array.element_type) { parameter_type } else { array.element_type }
        };
        Ok(arrays.iter().enumerate().map(accumulator_type).collect())
    }

    /// True if a reducer returns a tuple, which is also valid for a single value.
    fn returns_tuple(&self, reducer: ComputationId) -> Result<bool> {
        Ok(self.signature(reducer)?.result.as_tuple().is_some())
    }

    /// Splits the operands into `n` arrays of equal sizes and their `n` initial scalars.
    fn arrays_and_initial_values(&self) -> Result<Vec<&ArrayShape>> {
        let count = self.operands.len() / 2;
        self.check(
            count >= 1 && self.operands.len().is_multiple_of(2),
            "expected arrays and an equal number of initial values",
        )?;
        let arrays = self.arrays(0..count)?;
        for (i, array) in arrays.iter().enumerate() {
            self.check(array.sizes() == arrays[0].sizes(), "the arrays must have the same dimensions")?;
            let initial = self.scalar(count + i)?;
            self.check(
                is_near(initial.element_type, array.element_type),
                format_args!("initial value {i} must have the element type of its array"),
            )?;
        }
        Ok(arrays)
    }

    /// Returns one array for each accumulator: a single array, or a tuple.
    fn result_arrays(&self, types: &[PrimitiveType], dimensions: &[Dimension], is_tuple: bool) -> Shape {
        let results: Vec<Shape> = types.iter().map(|&t| array_of(t, dimensions.to_vec())).collect();
        if is_tuple { Shape::Tuple(results) } else { single_or_tuple(results) }
    }

    pub(super) fn reduce(&self, reduced: &[usize], to_apply: ComputationId) -> Result<Shape> {
        let arrays = self.arrays_and_initial_values()?;
        self.check_dimensions("dimensions", reduced, arrays[0].rank())?;
        let types = self.accumulator_types(to_apply, &arrays)?;
        self.check_reducer("to_apply", to_apply, &types)?;
        let retained = arrays[0].dimensions.iter().enumerate().filter(|(d, _)| !reduced.contains(d));
        let retained: Vec<Dimension> = retained.map(|(_, &dimension)| dimension).collect();
        Ok(self.result_arrays(&types, &retained, self.returns_tuple(to_apply)?))
    }

    pub(super) fn reduce_window(&self, window: &Window, to_apply: ComputationId) -> Result<Shape> {
        let arrays = self.arrays_and_initial_values()?;
        let types = self.accumulator_types(to_apply, &arrays)?;
        self.check_reducer("to_apply", to_apply, &types)?;
        // As in XLA, results have the types of the initial values.
        let results: Vec<PrimitiveType> =
            self.arrays(arrays.len()..2 * arrays.len())?.iter().map(|a| a.element_type).collect();
        let positions = self.window_positions(&arrays[0].dimensions, window)?;
        Ok(self.result_arrays(&results, &positions, self.returns_tuple(to_apply)?))
    }

    pub(super) fn select_and_scatter(
        &self,
        window: &Window,
        select: ComputationId,
        scatter: ComputationId,
    ) -> Result<Shape> {
        let (operand, source, initial) = (self.array(0)?, self.array(1)?, self.scalar(2)?);
        self.check(
            source.element_type == operand.element_type && initial.element_type == operand.element_type,
            "the operands must have the same element type",
        )?;
        let scalar = Shape::scalar(operand.element_type);
        let signature = self.signature(select)?;
        self.check_parameters("select", &signature, &[&scalar, &scalar])?;
        self.check(
            signature.result.compatible(&Shape::scalar(PrimitiveType::Pred)),
            format_args!("expected select to return pred[], got {}", signature.result),
        )?;
        self.check_reducer("scatter", scatter, &[operand.element_type])?;
        let positions = self.window_positions(&operand.dimensions, window)?;
        let expected = array_of(operand.element_type, positions);
        self.check(
            expected.compatible(self.operand(1)?),
            format_args!("the source must have one element for each window position: {expected}"),
        )?;
        Ok(with_type(operand, operand.element_type))
    }

    pub(super) fn map(&self, dimensions: &[usize], to_apply: ComputationId) -> Result<Shape> {
        self.check(!self.operands.is_empty(), "expected at least one operand")?;
        let arrays = self.arrays(0..self.operands.len())?;
        let first = arrays[0];
        self.check(
            arrays.iter().all(|array| array.sizes() == first.sizes()),
            "the operands must have the same dimensions",
        )?;
        self.check(
            dimensions.iter().copied().eq(0..first.rank()),
            format_args!("dimensions must list all dimensions of the operands in order, got {dimensions:?}"),
        )?;
        let signature = self.signature(to_apply)?;
        let scalars: Vec<Shape> = arrays.iter().map(|array| Shape::scalar(array.element_type)).collect();
        self.check_parameters("to_apply", &signature, &scalars.iter().collect::<Vec<_>>())?;
        match signature.result.as_array() {
            Some(result) if result.rank() == 0 => Ok(with_type(first, result.element_type)),
            _ => {
                Err(self
                    .error(format_args!("expected to_apply to return a scalar, got {}", signature.result)))
            }
        }
    }

    pub(super) fn sort(&self, dimension: usize, to_apply: ComputationId) -> Result<Shape> {
        self.check(!self.operands.is_empty(), "expected at least one operand")?;
        let arrays = self.arrays(0..self.operands.len())?;
        self.check(
            arrays.iter().all(|array| array.sizes() == arrays[0].sizes()),
            "the operands must have the same dimensions",
        )?;
        // XLA allows a scalar to be sorted along dimension 0, although it has no dimensions.
        self.check_dimension("dimension", dimension, arrays[0].rank().max(1))?;
        let scalars: Vec<Shape> = arrays.iter().map(|array| Shape::scalar(array.element_type)).collect();
        let arguments: Vec<&Shape> = scalars.iter().flat_map(|scalar| [scalar, scalar]).collect();
        let signature = self.signature(to_apply)?;
        self.check_parameters("to_apply", &signature, &arguments)?;
        self.check(
            signature.result.compatible(&Shape::scalar(PrimitiveType::Pred)),
            format_args!("expected to_apply to return pred[], got {}", signature.result),
        )?;
        Ok(single_or_tuple(arrays.iter().map(|a| with_type(a, a.element_type)).collect()))
    }

    pub(super) fn top_k(&self, k: i64) -> Result<Shape> {
        let operand = self.array(0)?;
        let last = operand.dimensions.last().copied();
        let last = last.ok_or_else(|| self.error("the operand must have at least one dimension"))?;
        self.check(
            0 <= k && k <= last.size,
            format_args!("k = {k} is out of range for the last dimension's size {}", last.size),
        )?;
        let mut dimensions = operand.dimensions.clone();
        dimensions.pop();
        dimensions.push(Dimension { size: k, is_dynamic: last.is_dynamic });
        Ok(Shape::Tuple(vec![
            array_of(operand.element_type, dimensions.clone()),
            array_of(PrimitiveType::S32, dimensions),
        ]))
    }
}

/// True if the types are equal, or both are floating-point types.
fn is_near(a: PrimitiveType, b: PrimitiveType) -> bool {
    a == b || (a.is_floating_point() && b.is_floating_point())
}

/// Returns the only shape, or a tuple of several shapes.
fn single_or_tuple(mut shapes: Vec<Shape>) -> Shape {
    if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) }
}
