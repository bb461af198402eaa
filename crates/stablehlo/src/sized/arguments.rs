//! The entry of a program with open dimensions: its parameters, and the sizes of named dimensions
//! after them.

use super::dimensions::OpenDimensions;
use super::symbolic::Symbolic;
use crate::checks::Check;
use crate::names::{argument_names, result_names};
use crate::types::shape_with;
use crate::walk::{Importer, Scope, body_of, symbol};
use bounded::Builder;
use hlo::analysis::Range;
use hlo::{
    ComparisonDirection, InstructionId, Interface, Module, NamedDimension, Op, OpMetadata, SizeParameter,
};
use mlir::Operation;
use shape::{PrimitiveType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// A size that is a parameter of the entry.
struct Parameter {
    name: String,
    range: (i64, i64),
}

/// Converts a function whose arguments have open dimensions. Returns its module, its interface, and
/// its checks.
pub(crate) fn import_function(
    source: &mlir::Module,
    functions: &[&Operation],
    entry: &Operation,
    name: &str,
    open: &OpenDimensions,
) -> Result<(Module, Interface, Vec<Check>)> {
    let body = body_of(entry)?;
    let mut arguments = argument_names(source, entry)?;
    let layout = Layout::new(open, &arguments)?;
    let mut importer = Importer::new(source, functions, name, super::convert);
    let mut parameters = Vec::with_capacity(body.arguments.len());
    for (k, &argument) in body.arguments.iter().enumerate() {
        let value = &source[argument];
        let bound = |d: usize| open.arguments.get(k).and_then(|sizes| layout.bound(open, sizes.get(&d)?));
        let shape = shape_with(&value.value_type, &bound)?;
        if let Shape::Array(array) = &shape {
            bounded::check_size(&shape).map_err(|e| e.context(format!("argument '{}'", arguments[k])))?;
            debug_assert!(array.is_static(), "parameters are whole arrays");
        }
        let builder = &mut importer.builder;
        parameters.push(builder.scope().add_entry_parameter(&arguments[k], shape, OpMetadata::default()));
    }
    let builder = &mut importer.builder;
    let mut sizes = Vec::with_capacity(layout.parameters.len());
    let mut size_parameters = Vec::new();
    for Parameter { name, range: (low, high) } in &layout.parameters {
        let metadata =
            OpMetadata { op_type: "Size".to_owned(), op_name: name.clone(), ..OpMetadata::default() };
        let scalar = Shape::scalar(PrimitiveType::S32);
        let size = builder.scope().add_entry_parameter(name, scalar, metadata);
        builder.add_size_parameter(size, *low, *high);
        size_parameters.push(SizeParameter {
            parameter: parameters.len() + sizes.len(),
            low: *low,
            high: *high,
        });
        sizes.push(size);
    }
    let values = layout.values(builder, open, &sizes)?;
    let mut named = Vec::new();
    let mut scope = Scope::shared(symbol(entry), true);
    for (k, (&argument, &parameter)) in body.arguments.iter().zip(&parameters).enumerate() {
        let rank = builder.scope_ref().shape(parameter).as_array().map_or(0, |array| array.rank());
        let mut own = vec![None; rank];
        for (&d, symbolic) in open.arguments.get(k).into_iter().flatten() {
            let size = symbolic.build(builder, &values)?;
            own[d] = Some(size);
            let is_fixed = builder.known_integer(size, 0).is_some();
            if let Some(number) = layout.parameter_of(k, d, symbolic).filter(|_| !is_fixed) {
                named.push((k, NamedDimension { dimension: d, size: parameters.len() + number }));
                if symbolic.name().is_none() {
                    let is_equal = builder.compare(ComparisonDirection::Eq, sizes[number], size)?;
                    let message =
                        format!("the size of dimension {d} of '{}' is not {symbolic}", arguments[k]);
                    builder.assert(is_equal, message)?;
                }
            }
        }
        let value = builder.bounded(parameter, &own)?;
        scope.define(argument, value);
    }
    let mut results = importer.block(&mut scope, body)?;
    let count = results.len();
    results.append(&mut scope.compared);
    let builder = &importer.builder;
    let shapes: Vec<Shape> =
        results[..count].iter().map(|&id| builder.scope_ref().shape(id).clone()).collect();
    let mut module = importer.builder.finish(&results);
    module.set_size_parameters(size_parameters);
    arguments.extend(layout.parameters.into_iter().map(|parameter| parameter.name));
    let results = result_names(entry, shapes)?;
    let mut interface = Interface::with_names(&module, &arguments, &results)?;
    interface.add_named_dimensions(named);
    Ok((module, interface, importer.checks))
}

/// The sizes that are parameters: names that are the size of a dimension, and each dimension whose
/// size is computed from names.
struct Layout {
    parameters: Vec<Parameter>,
    /// The numbers of the parameters of names.
    names: BTreeMap<String, usize>,
    /// The numbers of the parameters of dimensions, by argument and dimension.
    dimensions: BTreeMap<(usize, usize), usize>,
}

impl Layout {
    fn new(open: &OpenDimensions, arguments: &[String]) -> Result<Self> {
        let mut layout = Self { parameters: Vec::new(), names: BTreeMap::new(), dimensions: BTreeMap::new() };
        let dimensions = || {
            let all = open.arguments.iter().enumerate();
            all.flat_map(|(k, sizes)| sizes.iter().map(move |(&d, symbolic)| (k, d, symbolic)))
        };
        for (_, _, symbolic) in dimensions() {
            let Some((name, &range)) = symbolic.name().and_then(|name| open.names.get_key_value(name)) else {
                continue;
            };
            if !layout.names.contains_key(name) {
                layout.names.insert(name.clone(), layout.parameters.len());
                layout.parameters.push(Parameter { name: name.clone(), range });
            }
        }
        for (k, d, symbolic) in dimensions().filter(|(_, _, symbolic)| symbolic.name().is_none()) {
            let mut names = BTreeSet::new();
            symbolic.names(&mut names);
            if !names.iter().any(|name| open.names.contains_key(name)) {
                continue;
            }
            let Some(range) = range(open, symbolic) else {
                return Err(Error::unsupported(format!(
                    "dimension {d} of argument '{}' has no upper bound, or one that is too large",
                    arguments[k]
                )));
            };
            layout.dimensions.insert((k, d), layout.parameters.len());
            layout.parameters.push(Parameter { name: format!("{}_{d}", arguments[k]), range });
        }
        Ok(layout)
    }

    /// Returns the size of the memory of a dimension.
    fn bound(&self, open: &OpenDimensions, symbolic: &Symbolic) -> Option<i64> {
        range(open, symbolic).map(|(_, high)| high)
    }

    fn parameter_of(&self, argument: usize, dimension: usize, symbolic: &Symbolic) -> Option<usize> {
        match symbolic.name() {
            Some(name) => self.names.get(name).copied(),
            None => self.dimensions.get(&(argument, dimension)).copied(),
        }
    }

    /// Returns the values of all names: numbers, parameters, and what follows from the sizes of
    /// dimensions.
    fn values(
        &self,
        builder: &mut Builder,
        open: &OpenDimensions,
        sizes: &[InstructionId],
    ) -> Result<BTreeMap<String, InstructionId>> {
        let mut values = BTreeMap::new();
        for (name, &size) in &open.known {
            values.insert(name.clone(), builder.s32(size)?);
        }
        values.extend(self.names.iter().map(|(name, &number)| (name.clone(), sizes[number])));
        loop {
            let mut found = None;
            for (&(k, d), &number) in &self.dimensions {
                let symbolic = &open.arguments[k][&d];
                let mut unknown = BTreeSet::new();
                symbolic.names(&mut unknown);
                unknown.retain(|name| !values.contains_key(name));
                if let (Some(name), 1) = (unknown.pop_first(), unknown.len() + 1)
                    && let Some((factor, rest)) = symbolic.linear_in(&name).filter(|&(factor, _)| factor != 0)
                {
                    found = Some((name, factor, rest, sizes[number]));
                    break;
                }
            }
            let Some((name, factor, rest, size)) = found else { return Ok(values) };
            let rest = rest.build(builder, &values)?;
            let multiple = builder.sub(size, rest)?;
            let factor = builder.s32(factor)?;
            let quotient = builder.div(multiple, factor)?;
            // All that is known about it is its range: other sizes are computed from it.
            let value = builder.static_op(Op::OptimizationBarrier {}, &[quotient], None)?;
            if let Some(&(low, high)) = open.names.get(&name) {
                let (least, most) = (builder.s32(low)?, builder.s32(high)?);
                let clamped = builder.clamped(value, least, most)?;
                let value = builder.static_op(Op::OptimizationBarrier {}, &[clamped], None)?;
                builder.note_range(value, Range { low: Some(low), high: Some(high) });
                values.insert(name, value);
            } else {
                values.insert(name, value);
            }
        }
    }
}

/// Returns the range of a size, from 0. `None` if it may be larger than an `s32`.
fn range(open: &OpenDimensions, symbolic: &Symbolic) -> Option<(i64, i64)> {
    let (low, high) = interval(open, symbolic)?;
    let high = i64::try_from(high).ok().filter(|&high| high <= i64::from(i32::MAX))?;
    Some((i64::try_from(low.max(0)).ok()?.min(high.max(0)), high.max(0)))
}

fn interval(open: &OpenDimensions, symbolic: &Symbolic) -> Option<(i128, i128)> {
    let both = |a: &Symbolic, b: &Symbolic| Some((interval(open, a)?, interval(open, b)?));
    let within = |list: [Option<i128>; 4]| {
        let list: Option<Vec<i128>> = list.into_iter().collect();
        let list = list?;
        Some((*list.iter().min()?, *list.iter().max()?))
    };
    match symbolic {
        Symbolic::Number(value) => Some((i128::from(*value), i128::from(*value))),
        Symbolic::Name(name) => match (open.names.get(name), open.known.get(name)) {
            (Some(&(low, high)), _) => Some((low.into(), high.into())),
            (None, Some(&size)) => Some((size.into(), size.into())),
            (None, None) => None,
        },
        Symbolic::Sum(a, b) => {
            let (a, b) = both(a, b)?;
            Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
        }
        Symbolic::Product(a, b) => {
            let (a, b) = both(a, b)?;
            within([a.0.checked_mul(b.0), a.0.checked_mul(b.1), a.1.checked_mul(b.0), a.1.checked_mul(b.1)])
        }
        Symbolic::Quotient(a, b) => {
            let (a, b) = both(a, b)?;
            let b = (b.0.max(1), b.1.max(1));
            within([(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| Some(a.div_euclid(b))))
        }
        Symbolic::Remainder(_, b) => Some((0, interval(open, b)?.1.checked_sub(1)?.max(0))),
        Symbolic::Maximum(a, b) => both(a, b).map(|(a, b)| (a.0.max(b.0), a.1.max(b.1))),
        Symbolic::Minimum(a, b) => both(a, b).map(|(a, b)| (a.0.min(b.0), a.1.min(b.1))),
    }
}
