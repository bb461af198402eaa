//! Validation of the config by itself.

use super::FedOutput;
use crate::proto::{Config, TensorId};
use crate::{Dimension, PartialShape};
use std::collections::BTreeSet;
use support::{Error, Result};

/// Maximum number of feeds or fetches. Each needs a pointer from the caller and a set of accessors
/// in the header.
const MAX_ENTRIES: usize = 20_000;

/// Maximum number of variables. Each is an argument and a result that share memory.
const MAX_VARIABLES: usize = 5_000;

/// Returns the node name and output index of an id.
pub(super) fn id(id: &Option<TensorId>) -> FedOutput {
    id.as_ref().map_or_else(FedOutput::default, |id| (id.node_name.clone(), id.output_index))
}

/// Checks everything that can be checked without the graph.
pub(super) fn validate(config: &Config) -> Result<()> {
    let counts = [
        ("feeds", config.feed.len(), MAX_ENTRIES),
        ("fetches", config.fetch.len(), MAX_ENTRIES),
        ("variables", config.variable.len(), MAX_VARIABLES),
    ];
    if let Some((kind, count, limit)) = counts.into_iter().find(|(_, count, limit)| count > limit) {
        return Err(Error::invalid(format!(
            "the config has {count} {kind}, more than {limit}: pack several tensors into one"
        )));
    }
    let mut feeds = BTreeSet::new();
    let mut names = Names::new("feed");
    for (i, feed) in config.feed.iter().enumerate() {
        let id = id(&feed.id);
        check_id(&id, "feed", i)?;
        if let Some(shape) = &feed.shape {
            PartialShape::from_proto(shape).map_err(|e| e.context(format!("feed '{}:{}'", id.0, id.1)))?;
        }
        if !feeds.insert(id.clone()) {
            return Err(Error::invalid(format!(
                "feed '{}:{}' is listed twice: remove one of them",
                id.0, id.1
            )));
        }
        names.add(&feed.name, &format!("{}:{}", id.0, id.1))?;
    }
    // Sizes of dimensions are feeds of the program.
    for dimension in &config.dimension {
        if dimension.name.is_empty() {
            return Err(Error::invalid("a dimension of the config has no name"));
        }
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_/:".contains(c);
        if !dimension.name.chars().all(is_legal) || dimension.name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Error::invalid(format!(
                "dimension '{}' of the config: expected a name of letters, digits, and _ that begins with no digit",
                dimension.name
            )));
        }
        if config.dimension.iter().filter(|other| other.name == dimension.name).count() > 1 {
            return Err(Error::invalid(format!(
                "dimension '{}' is listed twice: remove one of them",
                dimension.name
            )));
        }
        names.add(&dimension.name, "dimension")?;
    }
    names.check_clashes()?;
    let mut names = Names::new("fetch");
    for (i, fetch) in config.fetch.iter().enumerate() {
        let id = id(&fetch.id);
        check_id(&id, "fetch", i)?;
        names.add(&fetch.name, &format!("{}:{}", id.0, id.1))?;
    }
    names.check_clashes()?;
    validate_variables(config)?;
    if config.fetch.is_empty() {
        return Err(Error::invalid(
            "fetches must be specified: add fetch { id { node_name: \"...\" } } to the config",
        ));
    }
    Ok(())
}

/// Returns the dimensions of a config, each with a possible range and used by a feed.
pub(super) fn dimensions(config: &Config) -> Result<Vec<Dimension>> {
    let shapes = config.feed.iter().filter_map(|feed| feed.shape.as_ref());
    let used: BTreeSet<&str> = shapes
        .flat_map(|shape| &shape.dim)
        .filter(|dim| dim.size == -1)
        .map(|dim| dim.name.as_str())
        .collect();
    let dimension = |given: &crate::proto::Dimension| {
        let crate::proto::Dimension { name, min, max, size: sizes } = given;
        if *min < 0 || *max < 1 || max < min || *max > i64::from(i32::MAX) {
            return Err(Error::invalid(format!(
                "dimension '{name}' has the impossible range {min}..{max}: expected 0 <= min <= max, and a max from 1 to \
                 {}",
                i32::MAX
            )));
        }
        if let Some(size) = sizes.iter().find(|&size| *size < 1 || size < min || size > max) {
            return Err(Error::invalid(format!(
                "dimension '{name}' cannot have code for the size {size}, which is not in its range {min}..{max}"
            )));
        }
        if !used.contains(name.as_str()) {
            return Err(Error::invalid(format!(
                "no feed has the dimension '{name}': remove it from the config, or name it in the shape of a feed: \
                 dim {{ size: -1 name: \"{name}\" }}"
            )));
        }
        Ok(Dimension { name: name.clone(), low: *min, high: *max })
    };
    check_fixed(config)?;
    config.dimension.iter().map(dimension).collect()
}

/// Checks that no fixed size has the name of a dimension with a range.
fn check_fixed(config: &Config) -> Result<()> {
    for feed in &config.feed {
        let dims = feed.shape.iter().flat_map(|shape| &shape.dim).enumerate();
        for (number, dim) in dims.filter(|(_, dim)| dim.size != -1) {
            if let Some(named) = config.dimension.iter().find(|named| named.name == dim.name) {
                let (node, output) = id(&feed.id);
                return Err(Error::invalid(format!(
                    "dimension {number} of feed '{node}:{output}' has the size {}, and the name '{}' of a dimension of \
                     {}..{}: give it the size -1 or another name",
                    dim.size, dim.name, named.min, named.max
                )));
            }
        }
    }
    Ok(())
}

fn validate_variables(config: &Config) -> Result<()> {
    let mut nodes = BTreeSet::new();
    let mut names = Names::new("variable");
    for (i, variable) in config.variable.iter().enumerate() {
        let node = &variable.node_name;
        if node.is_empty() {
            return Err(Error::invalid(format!("variable number {i} of the config has no node_name")));
        }
        if let Some(shape) = &variable.shape {
            PartialShape::from_proto(shape).map_err(|e| e.context(format!("variable '{node}'")))?;
        }
        if !nodes.insert(node) {
            return Err(Error::invalid(format!("variable '{node}' is listed twice: remove one of them")));
        }
        names.add(&variable.name, node)?;
    }
    names.check_clashes()
}

fn check_id(id: &FedOutput, kind: &str, number: usize) -> Result<()> {
    if id.0.is_empty() {
        return Err(Error::invalid(format!(
            "TensorId node_name must be non-empty: {kind} number {number} of the config has none"
        )));
    }
    if id.1 < 0 {
        return Err(Error::invalid(format!(
            "TensorId output_index must be positive: {kind} '{}' has {}",
            id.0, id.1
        )));
    }
    Ok(())
}

/// The names of feeds, fetches, or variables. Names are unique, and `n` excludes `n_data`, because
/// `n_data()` is an accessor of `n`.
///
/// Names of feeds and fetches must be C++ identifiers or names of nodes or tensors (with `/` and
/// `:`), which the header mangles. Variables may have any name, like their nodes.
struct Names<'a> {
    kind: &'static str,
    names: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    fn new(kind: &'static str) -> Self {
        Self { kind, names: BTreeSet::new() }
    }

    fn add(&mut self, name: &'a str, id: &str) -> Result<()> {
        let kind = self.kind;
        if name.is_empty() {
            return Ok(());
        }
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_/:".contains(c);
        let problem = if kind == "variable" {
            None
        } else if name.starts_with(|c: char| c.is_ascii_digit()) {
            Some("illegal leading char")
        } else if !name.chars().all(is_legal) {
            Some("illegal char")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(Error::invalid(format!(
                "{problem}: {kind} name: '{name}', given to '{id}', must match [_A-Za-z][_A-Za-z0-9]* (or be the name of a node or tensor)"
            )));
        }
        if !self.names.insert(name) {
            return Err(Error::invalid(format!(
                "duplicate {kind} name: {name}: give '{id}' another name or none"
            )));
        }
        Ok(())
    }

    fn check_clashes(&self) -> Result<()> {
        for name in &self.names {
            let data = format!("{name}_data");
            if self.names.contains(data.as_str()) {
                return Err(Error::invalid(format!(
                    "conflicting {} name: {name} and {data}: both would have an accessor named {data}()",
                    self.kind
                )));
            }
        }
        Ok(())
    }
}
