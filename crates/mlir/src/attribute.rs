//! Attributes: constant values that operations carry.

use crate::types::Type;
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;

/// Attributes by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(BTreeMap<String, Attribute>);

impl Attributes {
    /// Returns the attribute called `name`.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.get(name)
    }

    /// Sets an attribute and returns the previous attribute of that name.
    pub fn set(&mut self, name: impl Into<String>, value: Attribute) -> Option<Attribute> {
        self.0.insert(name.into(), value)
    }

    /// Adds all of `others`; they replace attributes of the same name.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Removes and returns an attribute.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Attribute> {
        self.0.remove(name)
    }

    /// Moves the attributes called `names` into a dictionary called `record`, if any of them is
    /// present.
    pub(crate) fn group(&mut self, record: &str, names: &[&str]) {
        let fields: BTreeMap<String, Attribute> =
            names.iter().filter_map(|name| self.0.remove_entry(*name)).collect();
        if !fields.is_empty() {
            self.set(record, Attribute::Dictionary(Self(fields)));
        }
    }

    /// Iterates over all attributes, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl IntoIterator for Attributes {
    type Item = (String, Attribute);
    type IntoIter = std::collections::btree_map::IntoIter<String, Attribute>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Maximum number of elements in a tensor that serves as a list-valued attribute.
const LONGEST_LIST: i64 = 1 << 20;

/// A constant value. Different spellings share one representation: a list of numbers is
/// [`Attribute::Integers`] whether it was written in brackets, as `array<i64: ...>`, or in the
/// assembly of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// `unit`: only its presence has meaning.
    Unit,
    /// `true`, `false`.
    Bool(bool),
    /// `3 : i64`. Wide enough for every signed and unsigned 64-bit number.
    Integer(i128),
    /// `1.0e-5 : f32`.
    Float(f64),
    /// `"text"`; bytes that are not UTF-8 are replaced.
    String(String),
    /// `@name`; for a nested symbol, the last part.
    Symbol(String),
    /// An enumerator: `EQ` of `#stablehlo<comparison_direction EQ>`.
    Keyword(String),
    /// A type.
    Type(Type),
    /// Numbers; booleans are 0 and 1.
    Integers(Vec<i64>),
    /// `array<f32: 1.0, 2.0>`.
    Floats(Vec<f64>),
    /// `dense<...> : tensor<...>`.
    Elements(Elements),
    /// `[...]` of anything but numbers.
    Array(Vec<Attribute>),
    /// `{a = 1}`, and a dialect's record such as `#stablehlo.gather<offset_dims = [0]>`.
    Dictionary(Attributes),
    /// Anything else, as spelled.
    Other(String),
}

impl Attribute {
    /// The value of a bracketed list: [`Attribute::Integers`] if all items are integers or
    /// booleans.
    pub(crate) fn list(items: Vec<Self>) -> Self {
        let numbers: Option<Vec<i64>> = items
            .iter()
            .map(|item| match item {
                Self::Integer(value) => i64::try_from(*value).ok(),
                Self::Bool(value) => Some(i64::from(*value)),
                _ => None,
            })
            .collect();
        match numbers {
            Some(numbers) if !items.is_empty() => Self::Integers(numbers),
            _ => Self::Array(items),
        }
    }

    /// Returns the integers of a list, a scalar or list constant, or a tensor of integers.
    pub fn integers(&self) -> Option<Vec<i64>> {
        match self {
            Self::Integers(values) => Some(values.clone()),
            Self::Array(values) if values.is_empty() => Some(Vec::new()),
            Self::Elements(elements) if elements.shape.element_count() <= LONGEST_LIST => {
                elements.to_literal()?.to_i64s()
            }
            _ => None,
        }
    }

    /// Returns a single integer, from an integer, a boolean, or a tensor of rank 0.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => i64::try_from(*value).ok(),
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Elements(elements) if elements.shape.rank() == 0 => {
                elements.scalar.to_i64s()?.first().copied()
            }
            _ => None,
        }
    }

    /// Returns a real number.
    pub fn float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// Returns a boolean.
    pub fn boolean(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Unit => Some(true),
            Self::Integer(value) => Some(*value != 0),
            _ => None,
        }
    }

    /// Returns the text of a string, a symbol, or an enumerator.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::String(text) | Self::Symbol(text) | Self::Keyword(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the fields of a dictionary.
    pub fn dictionary(&self) -> Option<&Attributes> {
        match self {
            Self::Dictionary(fields) => Some(fields),
            _ => None,
        }
    }
}

/// The elements of a tensor constant: either all of them, or one value shared by all (a splat).
#[derive(Clone, Debug, PartialEq)]
pub struct Elements {
    /// The tensor's shape.
    pub shape: ArrayShape,
    /// All elements; `None` if they are all equal or the tensor is empty.
    pub all: Option<Literal>,
    /// The first element, of rank 0; zero if the tensor is empty.
    pub scalar: Literal,
}

impl Elements {
    /// Creates a splat from the bytes of one element. Panics if the number of bytes is not that of
    /// one element.
    pub(crate) fn splat(shape: ArrayShape, element: &[u8]) -> Self {
        let scalar = Literal::from_bytes(ArrayShape::new(shape.element_type, &[]), element.to_vec().into());
        Self { shape, all: None, scalar: scalar.expect("expected the bytes of one element") }
    }

    /// Creates a constant from the bytes of all elements; `None` if their number does not match the
    /// shape.
    pub(crate) fn whole(shape: ArrayShape, bytes: Vec<u8>) -> Option<Self> {
        if bytes.len() as u64 != shape.byte_size() {
            return None;
        }
        let width = shape.element_type.byte_size();
        if bytes.is_empty() {
            return Some(Self::splat(shape, &[0; 16][..width]));
        }
        let scalar = Self::splat(shape.clone(), &bytes[..width]).scalar;
        let all = Literal::from_bytes(shape.clone(), bytes.into());
        Some(Self { shape, all, scalar })
    }

    /// Returns all elements; `None` if they exceed the address space.
    pub fn to_literal(&self) -> Option<Literal> {
        if let Some(all) = &self.all {
            return Some(all.clone());
        }
        support::check_memory(self.shape.byte_size(), "a tensor constant").ok()?;
        let count = usize::try_from(self.shape.element_count()).ok()?;
        Literal::from_bytes(self.shape.clone(), self.scalar.bytes().repeat(count).into())
    }
}
