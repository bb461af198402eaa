//! Opcodes with computations: calls, fusions, control flow, reductions, sorts.

use super::body::{Body, Leaf, Value};
use super::instruction::{shape_of, shapes_of};
use super::{Version, attributes, windows};
use hlo::{Instruction, Op};
use shape::{ArrayShape, PrimitiveType, Shape};
use support::{Error, Result};

impl Body<'_, '_> {
    /// Writes an opcode with computations and returns the leaves of its result; `None` for other
    /// opcodes.
    pub(super) fn structured(
        &mut self,
        instruction: &Instruction,
        operands: &[Value],
        leaves: &[Leaf],
    ) -> Result<Option<Vec<Leaf>>> {
        let shapes = shapes_of(instruction.shape());
        let (name, attributes, regions) = match instruction.op() {
            Op::Fusion { calls, .. } => {
                return Ok(Some(self.computation(*calls, operands.to_vec())?.leaves()));
            }
            Op::Call { to_apply } => {
                let function = self.writer.function_of(*to_apply);
                return Ok(Some(self.call(&format!("func.call @{function}"), leaves, "", &shapes)?));
            }
            Op::Conditional { branch_computations } => {
                return self.conditional(branch_computations, operands, &shapes).map(Some);
            }
            Op::While { condition, body } => {
                let regions = vec![self.region(*condition, None)?, self.region(*body, None)?];
                ("stablehlo.while", Vec::new(), regions)
            }
            Op::Map { dimensions, to_apply } => {
                let list = vec![("dimensions", attributes::dimensions(dimensions))];
                ("stablehlo.map", list, vec![self.region(*to_apply, None)?])
            }
            Op::Reduce { dimensions, to_apply } => {
                let list = vec![("dimensions", attributes::dimensions(dimensions))];
                ("stablehlo.reduce", list, vec![self.region(*to_apply, None)?])
            }
            Op::ReduceWindow { window, to_apply } => {
                let list = windows::reduce_window(window)?;
                ("stablehlo.reduce_window", list, vec![self.region(*to_apply, None)?])
            }
            Op::SelectAndScatter { window, select, scatter } => {
                let list = windows::select_and_scatter(window)?;
                let regions = vec![self.region(*select, None)?, self.region(*scatter, None)?];
                ("stablehlo.select_and_scatter", list, regions)
            }
            Op::Scatter {
                scatter_dimension_numbers: numbers,
                indices_are_sorted,
                unique_indices,
                to_apply,
            } => {
                if !numbers.input_batching_dims.is_empty() {
                    self.require(Version::new(1, 1, 0), "a scatter with batching dimensions")?;
                }
                let list = vec![
                    ("indices_are_sorted", indices_are_sorted.to_string()),
                    ("scatter_dimension_numbers", attributes::scatter(numbers)),
                    ("unique_indices", unique_indices.to_string()),
                ];
                ("stablehlo.scatter", list, vec![self.region(*to_apply, None)?])
            }
            Op::Sort { dimension, is_stable, to_apply } => {
                let list = sort_attributes(*dimension, *is_stable);
                ("stablehlo.sort", list, vec![self.region(*to_apply, None)?])
            }
            _ => return Ok(None),
        };
        self.operation(name, leaves, &attributes, &regions, &shapes).map(Some)
    }

    /// Writes a conditional. Branches refer to their operands directly.
    fn conditional(
        &mut self,
        branches: &[hlo::ComputationId],
        operands: &[Value],
        shapes: &[Shape],
    ) -> Result<Vec<Leaf>> {
        let (Some(Value::Leaf(selector)), Some(arguments)) = (operands.first(), operands.get(1..)) else {
            return Err(Error::invalid("missing selector of a conditional"));
        };
        let mut regions = Vec::new();
        for (&branch, argument) in branches.iter().zip(arguments) {
            regions.push(self.region(branch, Some(vec![argument.clone()]))?);
        }
        let is_pred = selector.array.as_ref().is_some_and(|array| array.element_type == PrimitiveType::Pred);
        let name = if is_pred { "stablehlo.if" } else { "stablehlo.case" };
        self.operation(name, std::slice::from_ref(selector), &[], &regions, shapes)
    }

    /// Sorts the elements together with their positions, floats by total order and ties by
    /// position, and takes the first `k`.
    pub(super) fn top_k(&mut self, leaves: &[Leaf], k: i64, largest: bool) -> Result<Vec<Leaf>> {
        let Some(array) = leaves.first().and_then(|leaf| leaf.array.clone()) else {
            return Err(Error::invalid("expected an array as the operand of topk"));
        };
        let Some(last) = array.rank().checked_sub(1) else {
            return Err(Error::invalid("expected an operand of rank 1 or more for topk"));
        };
        let positions = array.with_element_type(PrimitiveType::S32);
        let dimension = [("iota_dimension", attributes::integer(last as i64))];
        let iota = self.one("stablehlo.iota", &[], &dimension, positions.clone())?;
        let comparator = self.comparator(array.element_type, if largest { "GT" } else { "LT" })?;
        let shapes = [Shape::Array(array.clone()), Shape::Array(positions)];
        let sorted = self.operation(
            "stablehlo.sort",
            &[leaves[0].clone(), iota],
            &sort_attributes(last, true),
            &[comparator],
            &shapes,
        )?;
        let mut results = Vec::new();
        for leaf in sorted {
            let (shape, mut limits) = (shape_of(&leaf), array.sizes());
            let Shape::Array(mut first) = shape else {
                return Err(Error::internal("expected an array from a sort"));
            };
            limits[last] = k;
            first.dimensions[last] = k.into();
            let list = [
                ("limit_indices", attributes::integers(limits)),
                ("start_indices", attributes::integers(vec![0; array.rank()])),
                ("strides", attributes::integers(vec![1; array.rank()])),
            ];
            results.push(self.one("stablehlo.slice", &[leaf], &list, first)?);
        }
        Ok(results)
    }

    /// Returns the region that compares the elements of two pairs of an element and its position.
    fn comparator(&mut self, element_type: PrimitiveType, direction: &str) -> Result<String> {
        let element = super::types::tensor(&ArrayShape::new(element_type, &[]), self.version())?;
        let order = if element_type.is_floating_point() {
            format!(", compare_type = {}", attributes::enumerator("comparison_type", "TOTALORDER"))
        } else {
            String::new()
        };
        let direction = attributes::enumerator("comparison_direction", direction);
        // Names of block arguments are only visible in the block, and no name in the function
        // begins with a period.
        Ok(format!(
            "{{ ^bb0(%.a: {element}, %.b: {element}, %.i: tensor<i32>, %.j: tensor<i32>): \
             %.r = \"stablehlo.compare\"(%.a, %.b) <{{comparison_direction = {direction}{order}}}> : \
             ({element}, {element}) -> tensor<i1> stablehlo.return %.r : tensor<i1> }}"
        ))
    }
}

fn sort_attributes(dimension: usize, is_stable: bool) -> attributes::Attributes {
    vec![("dimension", attributes::integer(dimension as i64)), ("is_stable", is_stable.to_string())]
}
