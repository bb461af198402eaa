//! Typed access to an operation's attributes; errors name the attribute.

use mlir::{Attribute, Operation};
use support::{Error, Result};

/// An operation's attributes, including the fields of records that group them in text:
/// `offset_dims` is found both as an attribute and as a field of `dimension_numbers`.
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
    /// Returns the attribute called `name`, if present.
    pub(crate) fn find(self, name: &str) -> Option<&'s Attribute> {
        self.0
            .attribute(name)
            .or_else(|| RECORDS.iter().find_map(|record| self.0.attribute(record)?.dictionary()?.get(name)))
    }

    fn missing(self, name: &str, what: &str) -> Error {
        Error::invalid(format!("expected a {what} as attribute '{name}'"))
    }

    /// Returns a required list of numbers.
    pub(crate) fn integers(self, name: &str) -> Result<Vec<i64>> {
        self.find(name).and_then(Attribute::integers).ok_or_else(|| self.missing(name, "list of numbers"))
    }

    /// Returns a list of numbers, or `count` times `default` if it is missing.
    pub(crate) fn integers_or(self, name: &str, count: usize, default: i64) -> Result<Vec<i64>> {
        let values = match self.find(name) {
            None => return Ok(vec![default; count]),
            Some(_) => self.integers(name)?,
        };
        if values.len() != count {
            return Err(Error::invalid(format!(
                "expected {count} numbers in attribute '{name}', got {}",
                values.len()
            )));
        }
        Ok(values)
    }

    /// Returns a required list of dimensions.
    pub(crate) fn dimensions(self, name: &str) -> Result<Vec<usize>> {
        let negative = |_| Error::invalid(format!("attribute '{name}' has a negative dimension"));
        self.integers(name)?
            .into_iter()
            .map(|dimension| usize::try_from(dimension).map_err(negative))
            .collect()
    }

    /// Returns a list of dimensions; empty if it is missing.
    pub(crate) fn dimensions_or_none(self, name: &str) -> Result<Vec<usize>> {
        if self.find(name).is_none() { Ok(Vec::new()) } else { self.dimensions(name) }
    }

    /// Returns a required number.
    pub(crate) fn integer(self, name: &str) -> Result<i64> {
        self.find(name).and_then(Attribute::integer).ok_or_else(|| self.missing(name, "number"))
    }

    /// Returns a number, or `default` if it is missing.
    pub(crate) fn integer_or(self, name: &str, default: i64) -> Result<i64> {
        if self.find(name).is_none() { Ok(default) } else { self.integer(name) }
    }

    /// Returns a required dimension.
    pub(crate) fn dimension(self, name: &str) -> Result<usize> {
        usize::try_from(self.integer(name)?).map_err(|_| self.missing(name, "dimension"))
    }

    /// Returns a required real number.
    pub(crate) fn float(self, name: &str) -> Result<f64> {
        self.find(name).and_then(Attribute::float).ok_or_else(|| self.missing(name, "number"))
    }

    /// Returns a boolean; false if it is missing.
    pub(crate) fn flag(self, name: &str) -> bool {
        self.find(name).and_then(Attribute::boolean).unwrap_or(false)
    }

    /// Returns a required name: an enumerator, a symbol, or a string.
    pub(crate) fn text(self, name: &str) -> Result<&'s str> {
        self.find(name).and_then(Attribute::text).ok_or_else(|| self.missing(name, "name"))
    }
}
