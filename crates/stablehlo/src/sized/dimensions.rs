//! Open dimensions of a program's arguments: their names and ranges, from the program, from its
//! constraints, and from the user.

use super::symbolic::Symbolic;
use crate::walk::symbol;
use mlir::{Attribute, Operation, Type};
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Error, Result};

/// Attribute of an argument: the sizes of its dimensions, as symbolic sizes.
pub(crate) const SIZES: &str = "tfcompile.sizes";

/// Attribute of a function: the ranges of named dimensions, as `batch=1..64`.
pub(crate) const RANGES: &str = "tfcompile.dimensions";

/// A size that the user states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenSize {
    /// A number.
    Known(i64),
    /// A range, both ends inclusive.
    Range(i64, i64),
    /// The size of this name.
    Named(String),
}

/// Sizes and ranges of open dimensions that the user states.
#[derive(Clone, Debug, Default)]
pub struct SizeRequest {
    /// Sizes by key: a name in the program, `ARGUMENT.D`, or `batch` for leading dimensions.
    pub given: BTreeMap<String, GivenSize>,
    /// The range of a leading dimension that is not given; without one, it must be given.
    pub default_range: Option<(i64, i64)>,
    /// Keys of `given` that another function may have instead of this one.
    pub shared: BTreeSet<String>,
}

/// The open dimensions of a program's arguments.
#[derive(Clone, Debug)]
pub struct OpenDimensions {
    /// The names whose sizes the caller of the program chooses, each with its range. The keys are
    /// what a [`SizeRequest`] calls them.
    pub names: BTreeMap<String, (i64, i64)>,
    /// The names whose ranges neither the user nor the program states.
    pub defaults: BTreeSet<String>,
    /// The keys of [`SizeRequest::shared`] without effect.
    pub unused: BTreeSet<String>,
    /// The names with known sizes.
    pub(crate) known: BTreeMap<String, i64>,
    /// The size of each open dimension of each argument.
    pub(crate) arguments: Vec<BTreeMap<usize, Symbolic>>,
}

impl OpenDimensions {
    /// Returns the dimensions of each argument whose size is a name of [`Self::names`]. `None` if
    /// the size of a dimension depends on a name in another way.
    pub fn named(&self) -> Option<Vec<BTreeMap<usize, &str>>> {
        let named = |sizes: &BTreeMap<usize, Symbolic>| {
            let mut named = BTreeMap::new();
            for (&dimension, size) in sizes {
                let mut names = BTreeSet::new();
                size.names(&mut names);
                names.retain(|name| self.names.contains_key(name));
                match size.name() {
                    _ if names.is_empty() => {}
                    Some(name) => drop(named.insert(dimension, self.names.get_key_value(name)?.0.as_str())),
                    None => return None,
                }
            }
            Some(named)
        };
        self.arguments.iter().map(named).collect()
    }
}

/// True if an argument has an open dimension, or any value an open one without a bound.
pub(crate) fn has_open_sizes(source: &mlir::Module, entry: &Operation) -> bool {
    let is_open = |value_type: &Type| value_type.as_tensor().is_some_and(|t| t.sizes.contains(&None));
    let is_unbounded = |value_type: &Type| is_open(value_type) && bounds(value_type).contains(&None);
    let arguments = argument_types(entry).iter().any(is_open);
    arguments || source.values.iter().any(|(_, value)| is_unbounded(&value.value_type))
}

fn argument_types(function: &Operation) -> &[Type] {
    match function.attribute("function_type") {
        Some(Attribute::Type(Type::Function { inputs, .. })) => inputs,
        _ => &[],
    }
}

/// Returns the upper bound of each open dimension of a type; `None` if it has none.
fn bounds(value_type: &Type) -> Vec<Option<i64>> {
    let Some(tensor) = value_type.as_tensor() else { return Vec::new() };
    let encoding = tensor.encoding.as_deref().and_then(Attribute::dictionary);
    let list = encoding.and_then(|encoding| encoding.get("bounds")?.integers()).unwrap_or_default();
    let bound = |(d, size): (usize, &Option<i64>)| match size {
        Some(size) => Some(*size),
        None => list.get(d).copied().filter(|&bound| bound >= 0),
    };
    tensor.sizes.iter().enumerate().map(bound).collect()
}

/// Returns the open dimensions of a function, whose arguments have these names.
///
/// An error names a dimension that needs a size or a range, or a size that fits no dimension.
pub fn open_dimensions(entry: &Operation, names: &[String], request: &SizeRequest) -> Result<OpenDimensions> {
    let given = &request.given;
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut arguments = Vec::with_capacity(names.len());
    // Ranges that follow from types, and where a name occurs first.
    let mut ranges: BTreeMap<String, (i64, i64)> = stated_ranges(entry);
    let mut places: BTreeMap<String, (bool, String)> = BTreeMap::new();
    let mut sizes_of: BTreeMap<String, GivenSize> = BTreeMap::new();
    for (k, value_type) in argument_types(entry).iter().enumerate() {
        let argument = names.get(k).map_or("", String::as_str);
        let Some(tensor) = value_type.as_tensor() else {
            arguments.push(BTreeMap::new());
            continue;
        };
        let stated = stated_sizes(entry, k);
        let bounds = bounds(value_type);
        let mut sizes = BTreeMap::new();
        for d in (0..tensor.sizes.len()).filter(|&d| tensor.sizes[d].is_none()) {
            let place = format!("{argument}.{d}");
            let key = given.get_key_value(&place);
            let symbolic = match stated.get(d).filter(|text| !text.is_empty()) {
                Some(text) => Symbolic::parse(text)?,
                None => match key {
                    Some((_, GivenSize::Named(name))) => Symbolic::Name(name.clone()),
                    Some(_) => Symbolic::Name(place.replace(['.', '-'], "_")),
                    None if bounds[d].is_some() => Symbolic::Name(place.replace(['.', '-'], "_")),
                    None if d == 0 => Symbolic::Name("batch".to_owned()),
                    None => {
                        return Err(open(
                            &place,
                            &format!("dimension {d} of argument '{argument}' has no size"),
                        ));
                    }
                },
            };
            if let (Some((key, size)), Some(name)) = (key, symbolic.name()) {
                used.insert(key);
                if let GivenSize::Known(_) | GivenSize::Range(..) = size {
                    sizes_of.insert(name.to_owned(), size.clone());
                }
            }
            let mut inside = BTreeSet::new();
            symbolic.names(&mut inside);
            for name in inside {
                let is_leading = d == 0;
                let place =
                    places.entry(name).or_insert((false, format!("dimension {d} of argument '{argument}'")));
                place.0 |= is_leading;
            }
            if let (Some(bound), Some(name)) = (bounds[d], symbolic.name()) {
                let range = ranges.entry(name.to_owned()).or_insert((0, bound));
                range.1 = range.1.min(bound);
            }
            sizes.insert(d, symbolic);
        }
        arguments.push(sizes);
    }
    let constraints = constraints(entry);
    let (mut open_names, mut known, mut defaults) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for (name, (is_leading, place)) in &places {
        let own = given.get_key_value(name.as_str());
        let batch = given.get_key_value("batch").filter(|_| *is_leading);
        let mut size = sizes_of.get(name).cloned();
        if let Some((key, of_name)) = own.or(batch) {
            used.insert(key);
            // A size by name also decides what a place has a range for.
            let decides = own.is_some() && matches!(of_name, GivenSize::Known(_));
            if size.is_none() || decides && matches!(size, Some(GivenSize::Range(..))) {
                size = Some(of_name.clone());
            }
        }
        if let Some(GivenSize::Named(other)) = size.clone()
            && let Some((key, of_other)) = given.get_key_value(&other)
        {
            used.insert(key);
            size = Some(of_other.clone());
        }
        if size.is_none() && !ranges.contains_key(name) {
            defaults.insert(name.clone());
        }
        let (least, most) = constraints.get(name).copied().unwrap_or((i64::MIN, i64::MAX));
        let range = match size {
            Some(GivenSize::Known(size)) => {
                known.insert(name.clone(), size);
                continue;
            }
            Some(GivenSize::Range(low, high)) => (low, high),
            Some(GivenSize::Named(other)) => {
                return Err(Error::invalid(format!(
                    "--dim {name}={other}: the size '{other}' is itself a name"
                )));
            }
            None => match (ranges.get(name), request.default_range.filter(|_| *is_leading)) {
                (Some(&range), _) => range,
                (None, Some((low, high))) => (low.max(least), high.min(most).max(low.max(least))),
                (None, None) if request.default_range.is_some() && most < i64::from(i32::MAX) => {
                    (least.max(0), most)
                }
                (None, None) => return Err(open(name, &format!("{place} has the size '{name}'"))),
            },
        };
        if range.1 < least || range.0 > most {
            let supported = match (least, most) {
                (i64::MIN, _) => format!("up to {most}"),
                (_, i64::MAX) => format!("from {least} on"),
                _ => format!("from {least} to {most}"),
            };
            return Err(Error::invalid(format!(
                "--dim {name}={}..{}: the program only supports sizes {supported}",
                range.0, range.1
            )));
        }
        open_names.insert(name.clone(), range);
    }
    let (unused, unknown): (BTreeSet<String>, BTreeSet<String>) = given
        .keys()
        .filter(|key| !used.contains(key.as_str()))
        .cloned()
        .partition(|key| request.shared.contains(key));
    if let Some(key) = unknown.first() {
        let known: Vec<&str> = places.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Error::invalid(format!(
            "--dim {key}: '{}' has no open dimension of this name; it has: {known}",
            symbol(entry)
        )));
    }
    Ok(OpenDimensions { names: open_names, defaults, unused, known, arguments })
}

fn open(key: &str, what: &str) -> Error {
    Error::invalid(format!("{what}: state a size or a range, such as --dim {key}=1..64"))
        .coded(Code::OpenSize)
}

/// Returns the sizes that the program states for an argument; empty text for one that it does not.
fn stated_sizes(entry: &Operation, argument: usize) -> Vec<String> {
    let attributes = match entry.attribute("arg_attrs") {
        Some(Attribute::Array(list)) => list.get(argument),
        _ => None,
    };
    match attributes.and_then(|attributes| attributes.dictionary()?.get(SIZES)) {
        Some(Attribute::Array(sizes)) => {
            sizes.iter().map(|size| size.text().unwrap_or_default().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the ranges that the program states for names.
fn stated_ranges(entry: &Operation) -> BTreeMap<String, (i64, i64)> {
    let Some(Attribute::Array(list)) = entry.attribute(RANGES) else { return BTreeMap::new() };
    let range = |text: &Attribute| {
        let (name, range) = text.text()?.split_once('=')?;
        let (low, high) = range.split_once("..")?;
        Some((name.to_owned(), (low.parse().ok()?, high.parse().ok()?)))
    };
    list.iter().filter_map(range).collect()
}

/// Returns limits of names that follow from the constraints of `jax.export`. Each of them is also a
/// check in the program, so one that is not understood here is checked at run time.
fn constraints(entry: &Operation) -> BTreeMap<String, (i64, i64)> {
    let mut limits: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let blocks = entry.regions.iter().flat_map(|region| &region.blocks);
    for operation in blocks.flat_map(|block| &block.operations) {
        let Some(message) = operation.attribute("error_message").and_then(Attribute::text) else { continue };
        if let Some((name, least)) = least_size(message) {
            let limit = limits.entry(name.to_owned()).or_insert((i64::MIN, i64::MAX));
            limit.0 = limit.0.max(least);
            continue;
        }
        let Some((_, rest)) = message.split_once("Expected '") else { continue };
        let Some((size, rest)) = rest.split_once('\'') else { continue };
        let is_equal = rest.starts_with(" to be equal to 0");
        if !is_equal && !rest.starts_with(" to be greater or equal to 0") {
            continue;
        }
        let Ok(size) = Symbolic::parse(size) else { continue };
        let mut names = BTreeSet::new();
        size.names(&mut names);
        let (Some(name), 1) = (names.first(), names.len()) else { continue };
        let Some((factor, rest)) = size.linear_in(name) else { continue };
        let Some(rest) = rest.constant() else { continue };
        let limit = limits.entry(name.clone()).or_insert((i64::MIN, i64::MAX));
        // factor * name + rest >= 0
        if factor > 0 {
            limit.0 = limit.0.max((-rest).div_euclid(factor) + i64::from((-rest).rem_euclid(factor) != 0));
        }
        if factor < 0 || is_equal && factor > 0 {
            limit.1 =
                limit.1.min(if factor < 0 { rest.div_euclid(-factor) } else { (-rest).div_euclid(factor) });
        }
    }
    limits
}

/// Parses a check of a name alone: `Expected value >= 1 for dimension variable 'b'`.
fn least_size(message: &str) -> Option<(&str, i64)> {
    let (_, rest) = message.split_once("Expected value >= ")?;
    let (least, rest) = rest.split_once(" for dimension variable '")?;
    Some((rest.split_once('\'')?.0, least.parse().ok()?))
}
