//! Attributes: constant values that operations carry.

use crate::types::Type;
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;

/// Attributes by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(BTreeMap<String, Attribute>);

impl Attributes {
    /// An attribute.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.get(name)
    }

    /// Sets an attribute; the one that it had of that name before.
    pub fn set(&mut self, name: impl Into<String>, value: Attribute) -> Option<Attribute> {
        self.0.insert(name.into(), value)
    }

    /// Takes over all of `others`.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Takes an attribute out.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Attribute> {
        self.0.remove(name)
    }

    /// Puts those of some names into a record, if any is there.
    pub(crate) fn group(&mut self, record: &str, names: &[&str]) {
        let fields: BTreeMap<String, Attribute> =
            names.iter().filter_map(|name| self.0.remove_entry(*name)).collect();
        if !fields.is_empty() {
            self.set(record, Attribute::Dictionary(Self(fields)));
        }
    }

    /// All of them, by name.
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

/// The most numbers that a tensor may stand for as an attribute of an operation.
const LONGEST_LIST: i64 = 1 << 20;

/// A constant value. What texts spell in several ways is one thing here: a list of numbers is [`Attribute::Integers`]
/// whether it stood in brackets, in `array<i64: ...>` or in the assembly of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// `unit`: being there is all it says.
    Unit,
    /// `true`, `false`.
    Bool(bool),
    /// `3 : i64`. Wide enough for every signed and unsigned 64-bit number.
    Integer(i128),
    /// `1.0e-5 : f32`.
    Float(f64),
    /// `"text"`; bytes that are no UTF-8 are replaced.
    String(String),
    /// `@name`; of a nested one the last part.
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
    /// Anything else, as it was spelled.
    Other(String),
}

impl Attribute {
    /// What stands in brackets: numbers if all are.
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

    /// Numbers, however they are given: a list, a scalar, a tensor of integers.
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

    /// One number: an integer, a boolean, or a tensor of rank 0 of them.
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

    /// A real number.
    pub fn float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// True or false.
    pub fn boolean(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Unit => Some(true),
            Self::Integer(value) => Some(*value != 0),
            _ => None,
        }
    }

    /// The name that a string, a symbol or an enumerator spells.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::String(text) | Self::Symbol(text) | Self::Keyword(text) => Some(text),
            _ => None,
        }
    }

    /// The fields.
    pub fn dictionary(&self) -> Option<&Attributes> {
        match self {
            Self::Dictionary(fields) => Some(fields),
            _ => None,
        }
    }
}

/// The elements of a tensor constant: all of them, or one that stands for all.
#[derive(Clone, Debug, PartialEq)]
pub struct Elements {
    /// The tensor's shape.
    pub shape: ArrayShape,
    /// All elements; `None` if they are equal, or if there are none.
    pub all: Option<Literal>,
    /// The first element, of rank 0; zero if there is none.
    pub scalar: Literal,
}

impl Elements {
    /// One element for all, as its bytes. Panics if these are not of one element.
    pub(crate) fn splat(shape: ArrayShape, element: &[u8]) -> Self {
        let scalar = Literal::from_bytes(ArrayShape::new(shape.element_type, &[]), element.to_vec().into());
        Self { shape, all: None, scalar: scalar.expect("the bytes of one element") }
    }

    /// All elements as their bytes; `None` if these are not as many as the shape has.
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

    /// All elements. `None` if they take more memory than there is an address for.
    pub fn to_literal(&self) -> Option<Literal> {
        if let Some(all) = &self.all {
            return Some(all.clone());
        }
        support::check_memory(self.shape.byte_size(), "a tensor constant").ok()?;
        let count = usize::try_from(self.shape.element_count()).ok()?;
        Literal::from_bytes(self.shape.clone(), self.scalar.bytes().repeat(count).into())
    }
}
