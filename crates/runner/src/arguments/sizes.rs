//! The sizes of named dimensions in a run: given ones, or else those of the given arrays.

use super::{Given, Source};
use crate::Signature;
use hlo::{Argument, NamedDimension, SizeRange};
use shape::Literal;
use support::{Error, Result};

/// The size of each named dimension in a run, by the argument that holds it.
pub(crate) struct Sizes(Vec<Option<i64>>);

impl Sizes {
    /// Returns the sizes of a run. `sources` are the values of the arguments, if they are given.
    /// Sizes that nothing determines are the largest.
    pub(crate) fn of_run(signature: &Signature, sources: &[Option<&Given>]) -> Result<Self> {
        let mut sizes: Vec<Option<(i64, String)>> = vec![None; sources.len()];
        for (position, argument, range) in signature.interface.sizes() {
            let Some(given) = sources[position] else { continue };
            let size = given_size(argument, range, given)?;
            sizes[position] = Some((size, given.origin.clone()));
        }
        for (argument, source) in signature.arguments().iter().zip(sources) {
            let Some(Given { source: Source::Array(array), origin, .. }) = source else { continue };
            let actual = array.array_shape().sizes();
            // Another rank is an error of its own.
            if actual.len() != argument.shape.rank() {
                continue;
            }
            for &NamedDimension { dimension, size: position } in &argument.named_dimensions {
                let (size, named) = (actual[dimension], &signature.arguments()[position]);
                let place = format!("{origin}: dimension {dimension} of '{}'", argument.label());
                if named.range.is_some_and(|range| !range.contains(size)) {
                    return Err(out_of_range(&place, named, size));
                }
                match &sizes[position] {
                    Some((other, by)) if *other != size => {
                        return Err(Error::invalid(format!(
                            "{place} has size {size}, but '{}' is {other} according to {by}; dimensions with one name have \
                             one size",
                            spoken(named)
                        )));
                    }
                    Some(_) => {}
                    None => sizes[position] = Some((size, place)),
                }
            }
        }
        let sizes =
            signature.arguments().iter().zip(sizes).map(|(argument, size)| {
                argument.range.map(|range| size.map_or(range.high, |(size, _)| size))
            });
        Ok(Self(sizes.collect()))
    }

    /// Returns the value of an argument that holds a size.
    pub(crate) fn value(&self, position: usize) -> Option<Literal> {
        let size = self.0[position]?;
        Some(Literal::scalar(i32::try_from(size).unwrap_or(i32::MAX)))
    }

    /// Returns the sizes of an argument.
    pub(crate) fn of(&self, argument: &Argument) -> Vec<i64> {
        argument.true_sizes(|position| self.0[position].unwrap_or_default())
    }
}

/// Returns the size that is given for a dimension.
fn given_size(argument: &Argument, range: SizeRange, given: &Given) -> Result<i64> {
    let array = match &given.source {
        Source::Array(array) => Some(array).filter(|array| array.array_shape().element_count() == 1),
        Source::Fill(_) => None,
    };
    let Some(size) = array.and_then(|array| array.scalar_at(0).as_i64()) else {
        return Err(Error::invalid(format!(
            "{}: '{}' is the size of a dimension: pass --size {}=N, with N from {range}",
            given.origin,
            spoken(argument),
            spoken(argument)
        )));
    };
    if range.contains(size) { Ok(size) } else { Err(out_of_range(&given.origin, argument, size)) }
}

fn out_of_range(place: &str, named: &Argument, size: i64) -> Error {
    let range = named.range.unwrap_or(SizeRange { low: 0, high: 0 });
    let name = spoken(named);
    Error::invalid(format!(
        "{place}: size {size} of '{name}' is out of range: {range}; compile for other sizes with --dim {name}=LOW..HIGH"
    ))
}

/// Returns the name of a dimension.
fn spoken(argument: &Argument) -> String {
    argument.name.clone().unwrap_or_else(|| argument.id.short())
}
