//! Attributes of a module's results. Each input-output alias pairs an array of a parameter with an
//! array of the same number of bytes in the result.

use super::Errors;
use crate::module::Module;
use shape::{PrimitiveType, Shape, ShapeIndex};
use std::collections::BTreeSet;

/// Checks the aliases of a module whose entry is valid.
pub(super) fn verify(module: &Module, errors: &mut Errors) {
    let signature = module.entry_computation().program_shape();
    let mut outputs: BTreeSet<ShapeIndex> = BTreeSet::new();
    let mut inputs: BTreeSet<(usize, ShapeIndex)> = BTreeSet::new();
    for alias in module.input_output_alias() {
        let (number, index) = (alias.parameter_number, &alias.parameter_index);
        let name = format!("alias of result {:?} with parameter {number} {index:?}", alias.output_index);
        let output = signature.result.get(&alias.output_index);
        let input = signature.parameters.get(number).and_then(|parameter| parameter.get(index));
        match (output, input) {
            (Some(output @ Shape::Array(_)), Some(input @ Shape::Array(_))) => {
                if output.byte_size() != input.byte_size() {
                    errors.module(format_args!("{name}: {output} does not fit in the memory of {input}"));
                }
            }
            (None | Some(_), Some(Shape::Array(_))) => {
                errors.module(format_args!("{name}: the result {} has no such array", signature.result));
            }
            _ => errors.module(format_args!("{name}: the parameters have no such array")),
        }
        if !outputs.insert(alias.output_index.clone()) {
            errors.module(format_args!("{name}: duplicate alias of the result"));
        }
        if !inputs.insert((number, index.clone())) {
            errors.module(format_args!("{name}: duplicate alias of the parameter"));
        }
    }
    verify_bounded_dimensions(module, &signature.result, errors);
    verify_size_parameters(module, &signature.parameters, errors);
}

/// Checks that sizes of named dimensions are integers with a range.
fn verify_size_parameters(module: &Module, parameters: &[Shape], errors: &mut Errors) {
    for size in module.size_parameters() {
        let number = size.parameter;
        if parameters.get(number) != Some(&Shape::scalar(PrimitiveType::S32)) {
            errors.module(format_args!("size parameter {number} must be a parameter of shape s32[]"));
        }
        if size.low < 0 || size.high < size.low || size.high > i64::from(i32::MAX) {
            let (low, high) = (size.low, size.high);
            errors.module(format_args!("size parameter {number} has the impossible range {low}..{high}"));
        }
    }
}

/// Checks that each bounded dimension belongs to a result, and that its size follows the results.
fn verify_bounded_dimensions(module: &Module, result: &Shape, errors: &mut Errors) {
    let bounded = module.bounded_dimensions();
    let elements = result.as_tuple().unwrap_or_default();
    let Some(results) = elements.len().checked_sub(bounded.len()) else {
        errors.module(format_args!(
            "the result {result} has too few elements for {} sizes of bounded dimensions",
            bounded.len()
        ));
        return;
    };
    if elements[results..].iter().any(|size| *size != Shape::scalar(PrimitiveType::S64)) {
        errors.module(format_args!(
            "the sizes of bounded dimensions must be s64[], but the result is {result}"
        ));
    }
    for bounded in bounded {
        let array = elements[..results].get(bounded.result).and_then(Shape::as_array);
        if array.is_none_or(|array| bounded.dimension >= array.rank()) {
            let (number, dimension) = (bounded.result, bounded.dimension);
            errors.module(format_args!("result {number} has no bounded dimension {dimension}: {result}"));
        }
    }
}
