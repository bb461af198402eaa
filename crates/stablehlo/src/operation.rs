//! What an operation's attributes say, or an error that names the attribute.

use mlir::{Attribute, Operation};
use support::{Error, Result};

/// An operation's attributes, also those in the records that group them in text: `offset_dims` is found whether it is
/// an attribute or a field of `dimension_numbers`.
#[derive(Clone, Copy)]
pub(crate) struct OperationView<'s>(pub(crate) &'s Operation);

/// Attributes whose fields count as attributes of the operation.
const RECORDS: [&str; 4] = [
    "dimension_numbers",
    "dot_dimension_numbers",
    "ragged_dot_dimension_numbers",
    "scatter_dimension_numbers",
];

impl<'s> OperationView<'s> {
    /// The attribute of a name, if it has one.
    pub(crate) fn find(self, name: &str) -> Option<&'s Attribute> {
        self.0
            .attribute(name)
            .or_else(|| RECORDS.iter().find_map(|record| self.0.attribute(record)?.dictionary()?.get(name)))
    }

    fn missing(self, name: &str, what: &str) -> Error {
        Error::invalid(format!("attribute '{name}' lacks or is no {what}"))
    }

    /// A list of numbers that has to be there.
    pub(crate) fn integers(self, name: &str) -> Result<Vec<i64>> {
        self.find(name).and_then(Attribute::integers).ok_or_else(|| self.missing(name, "list of numbers"))
    }

    /// A list of numbers, or one of `count` times `default` where it lacks.
    pub(crate) fn integers_or(self, name: &str, count: usize, default: i64) -> Result<Vec<i64>> {
        let values = match self.find(name) {
            None => return Ok(vec![default; count]),
            Some(_) => self.integers(name)?,
        };
        if values.len() != count {
            return Err(Error::invalid(format!(
                "attribute '{name}' has {} numbers, not {count}",
                values.len()
            )));
        }
        Ok(values)
    }

    /// A list of dimensions that has to be there.
    pub(crate) fn dimensions(self, name: &str) -> Result<Vec<usize>> {
        let negative = |_| Error::invalid(format!("attribute '{name}' has a negative dimension"));
        self.integers(name)?
            .into_iter()
            .map(|dimension| usize::try_from(dimension).map_err(negative))
            .collect()
    }

    /// A list of dimensions, none where it lacks.
    pub(crate) fn dimensions_or_none(self, name: &str) -> Result<Vec<usize>> {
        if self.find(name).is_none() { Ok(Vec::new()) } else { self.dimensions(name) }
    }

    /// A number that has to be there.
    pub(crate) fn integer(self, name: &str) -> Result<i64> {
        self.find(name).and_then(Attribute::integer).ok_or_else(|| self.missing(name, "number"))
    }

    /// A number, or this one where it lacks.
    pub(crate) fn integer_or(self, name: &str, default: i64) -> Result<i64> {
        if self.find(name).is_none() { Ok(default) } else { self.integer(name) }
    }

    /// A dimension that has to be there.
    pub(crate) fn dimension(self, name: &str) -> Result<usize> {
        usize::try_from(self.integer(name)?).map_err(|_| self.missing(name, "dimension"))
    }

    /// A real number that has to be there.
    pub(crate) fn float(self, name: &str) -> Result<f64> {
        self.find(name).and_then(Attribute::float).ok_or_else(|| self.missing(name, "number"))
    }

    /// Whether; false where it lacks.
    pub(crate) fn flag(self, name: &str) -> bool {
        self.find(name).and_then(Attribute::boolean).unwrap_or(false)
    }

    /// A name: an enumerator, a symbol or a string that has to be there.
    pub(crate) fn text(self, name: &str) -> Result<&'s str> {
        self.find(name).and_then(Attribute::text).ok_or_else(|| self.missing(name, "name"))
    }
}
