//! Modules for particular sizes of named dimensions, where a batch is not computed in pieces:
//! positions depend on each other, as tokens do, or several dimensions have names.

use crate::entry;
use hlo::{
    ComputationBuilder, ExactModule, InstructionId, Module, Op, Program, SizeParameter, SliceDimension,
};
use shape::{ArrayShape, Literal, Shape};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Maximum number of modules for particular sizes.
const MAX_MODULES: usize = 16;

/// Translates a program with these sizes in place of ranges.
pub(crate) type ImportExact<'a> = &'a dyn Fn(&[(String, i64)]) -> Result<Program>;

/// Returns modules for the sizes that the user wants code for: each one alone, with the other
/// dimensions open, and all combinations of sizes of different dimensions.
///
/// Errors: there are more than 16, or a program for a size is not supported.
pub(crate) fn exact_modules(
    whole: &Program,
    given: &[(&str, &[i64])],
    import: ImportExact<'_>,
) -> Result<Vec<ExactModule>> {
    let all = combinations(given)?;
    let module = |sizes: &Vec<(String, i64)>| {
        let list: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        let module = fitted(whole, sizes, import).map_err(|error| {
            error.context(format!("there is no code for {}, remove it from --sizes", list.join(", ")))
        })?;
        hlo::verify(&module.module)?;
        Ok(module)
    };
    all.iter().map(module).collect()
}

/// Returns the combinations of sizes of dimensions, those of the most dimensions first.
fn combinations(given: &[(&str, &[i64])]) -> Result<Vec<Vec<(String, i64)>>> {
    let mut all: Vec<Vec<(String, i64)>> = vec![Vec::new()];
    for (name, sizes) in given {
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        let known = all.clone();
        for size in sizes {
            let with_size = known.iter().map(|sizes| {
                let mut sizes = sizes.clone();
                sizes.push(((*name).to_owned(), size));
                sizes
            });
            all.extend(with_size);
            if all.len() > MAX_MODULES + 1 {
                return Err(Error::unsupported(format!(
                    "--sizes states more than {MAX_MODULES} sizes and combinations of sizes: remove some"
                )));
            }
        }
    }
    all.sort_by_key(|sizes| std::cmp::Reverse(sizes.len()));
    // The last one has no sizes: it is the whole program.
    all.pop();
    Ok(all)
}

/// Returns the module for some sizes, with the parameters and results of the whole program: it
/// reads the corners of larger arrays, and writes the corners of larger results.
fn fitted(whole: &Program, sizes: &[(String, i64)], import: ImportExact<'_>) -> Result<ExactModule> {
    let differ = || Error::unsupported("arguments or results differ from those of other sizes");
    let Program { mut module, interface: own, .. } = import(sizes)?;
    let interface = &whole.interface;
    let signature = whole.module.entry_computation().program_shape();
    let own_parameters = module.entry_computation().program_shape().parameters;
    let mut own_arguments = own.arguments().iter().zip(&own_parameters);
    let mut builder = ComputationBuilder::new("exact");
    let (mut operands, mut fixed, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for (parameter, argument) in interface.arguments().iter().enumerate() {
        let name = &signature.parameter_names[parameter];
        let id = builder.parameter(name, signature.parameters[parameter].clone());
        let label = argument.label();
        if let Some(range) = argument.range {
            if let Some((_, size)) = sizes.iter().find(|(name, _)| *name == label) {
                fixed.push((parameter, *size));
                continue;
            }
            open.push(SizeParameter { parameter, low: range.low, high: range.high });
        }
        let (own, shape) = own_arguments.next().ok_or_else(differ)?;
        if own.label() != label {
            return Err(differ());
        }
        operands.push(corner(&module, &mut builder, id, shape)?);
    }
    if fixed.len() != sizes.len() || own_arguments.next().is_some() {
        return Err(differ());
    }
    let result = entry::apply(&module, &mut builder, &operands);
    let mut results = Vec::new();
    for (number, output) in interface.results().iter().enumerate() {
        let own = entry::element(&module, &mut builder, result, number)?;
        results.push(in_corner(&module, &mut builder, own, &output.shape)?);
    }
    let root = builder.op(&module, Op::Tuple {}, &results)?;
    entry::replace(&mut module, builder.finish(root));
    module.set_size_parameters(open);
    module.set_input_output_alias(whole.module.input_output_alias().to_vec());
    Ok(ExactModule { sizes: fixed, module })
}

/// Returns the corner of an array that has this shape.
fn corner(
    module: &Module,
    builder: &mut ComputationBuilder,
    array: InstructionId,
    shape: &Shape,
) -> Result<InstructionId> {
    if builder.computation()[array].shape() == shape {
        return Ok(array);
    }
    let limits = shape.as_array().map(ArrayShape::sizes).unwrap_or_default();
    let slice = limits.into_iter().map(|limit| SliceDimension { start: 0, limit, stride: 1 }).collect();
    builder.op(module, Op::Slice { slice }, &[array])
}

/// Returns an array of a shape with a value in its corner. Its bounded dimensions have the sizes of
/// the value.
fn in_corner(
    module: &Module,
    builder: &mut ComputationBuilder,
    mut value: InstructionId,
    shape: &ArrayShape,
) -> Result<InstructionId> {
    let mut sizes = BTreeMap::new();
    while let Op::SetDimensionSize { dimension } = builder.computation()[value].op() {
        let dimension = *dimension;
        let operands = builder.computation()[value].operands();
        sizes.entry(dimension).or_insert(operands[1]);
        value = operands[0];
    }
    let own = builder.computation()[value].shape().as_array().filter(|own| own.is_static()).cloned();
    let fits = |own: &ArrayShape| {
        own.element_type == shape.element_type
            && own.rank() == shape.rank()
            && (0..shape.rank()).all(|d| own.size(d) <= shape.size(d))
            && sizes.keys().all(|&d| shape.dimensions[d].is_dynamic)
    };
    let Some(own) = own.filter(fits) else {
        return Err(Error::unsupported("a result is larger for this size than for others"));
    };
    let bounds = ArrayShape::new(shape.element_type, &shape.sizes());
    if own.sizes() != bounds.sizes() {
        let buffer = builder.op_with_shape(module, bounds.into(), hlo::custom_call::allocation(), &[])?;
        let zero = builder.constant(Literal::scalar(0i32));
        let operands: Vec<InstructionId> =
            [buffer, value].into_iter().chain(std::iter::repeat_n(zero, own.rank())).collect();
        value = builder.op(module, Op::DynamicUpdateSlice {}, &operands)?;
    }
    for (dimension, of_shape) in shape.dimensions.iter().enumerate() {
        if of_shape.is_dynamic {
            let size = match sizes.get(&dimension) {
                Some(&size) => size,
                None => builder.constant(Literal::scalar(own.size(dimension) as i32)),
            };
            value = builder.op(module, Op::SetDimensionSize { dimension }, &[value, size])?;
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::combinations;

    fn list(given: &[(&str, &[i64])]) -> Vec<String> {
        let text = |sizes: &Vec<(String, i64)>| {
            let sizes: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}{size}")).collect();
            sizes.join(" ")
        };
        combinations(given).expect("few").iter().map(text).collect()
    }

    #[test]
    fn sizes_of_more_dimensions_come_first() {
        assert_eq!(list(&[("t", &[8, 1, 8])]), ["t1", "t8"]);
        assert_eq!(list(&[("b", &[1, 8]), ("t", &[4])]), ["b1 t4", "b8 t4", "b1", "b8", "t4"]);
    }

    #[test]
    fn many_combinations_are_refused() {
        let many: Vec<i64> = (1..=16).collect();
        assert_eq!(list(&[("t", &many)]).len(), 16);
        let refused = combinations(&[("t", &many), ("b", &[1])]).expect_err("too many");
        assert!(refused.message().contains("more than 16"), "{refused}");
    }
}
