//! Sizes of dimensions that the graph leaves open: numbers, or ranges from which the caller of the
//! program chooses.

use super::Inferred;
use super::names::{UsedNames, identifier};
use crate::proto::{Dim, Dimension, TensorShapeProto};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Name of the size that leading dimensions share.
pub(super) const BATCH: &str = "batch";

/// A size that the user states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimSize {
    /// A number.
    Known(i64),
    /// Any size from the first to the second, which the caller of the program chooses.
    Range(i64, i64),
    /// The size that is stated under another name. Dimensions with one name have one size.
    Named(String),
}

/// The user's sizes, and the dimensions with ranges so far.
#[derive(Clone, Debug)]
pub(super) struct Dims {
    given: BTreeMap<String, DimSize>,
    /// Range of leading dimensions for which no size is given.
    batch_range: Option<(i64, i64)>,
    /// Sizes with code of their own, by the name of the dimension.
    sizes: BTreeMap<String, Vec<i64>>,
    /// Names that may be those of another function.
    shared: BTreeSet<String>,
    /// Names that the model gives to leading dimensions.
    leading: BTreeSet<String>,
    used: BTreeSet<String>,
    /// Valid names for `--dim`.
    known: BTreeSet<String>,
    ranges: Vec<Dimension>,
    /// Feeds whose leading dimension has the default range, by the name of that dimension.
    defaults: BTreeMap<String, Vec<String>>,
}

impl Dims {
    pub(super) fn new(
        given: BTreeMap<String, DimSize>,
        batch_range: Option<(i64, i64)>,
        sizes: BTreeMap<String, Vec<i64>>,
        shared: BTreeSet<String>,
    ) -> Self {
        let (leading, used, known, ranges) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), Vec::new());
        Self { given, batch_range, sizes, shared, leading, used, known, ranges, defaults: BTreeMap::new() }
    }

    /// Marks the name of a leading dimension of a feed. Other dimensions of this name are as open.
    pub(super) fn lead(&mut self, shape: &TensorShapeProto) {
        let first = shape.dim.first().filter(|dim| dim.size < 0 && is_name(&dim.name));
        self.leading.extend(first.map(|dim| dim.name.clone()));
    }

    /// Returns the size of a dimension of a feed, or `None` if it is unknown. `stated` is its size
    /// in the graph, and `name` the name that the model gives it, or empty.
    pub(super) fn size(
        &mut self,
        feed: &str,
        d: usize,
        stated: Option<i64>,
        name: &str,
    ) -> Result<Option<Dim>> {
        let name = if is_name(name) { name } else { "" };
        let own = format!("{feed}.{d}");
        self.known.insert(own.clone());
        if !name.is_empty() {
            self.known.insert(name.to_owned());
        }
        let is_given = self.given.contains_key(&own);
        if let Some(size) = stated {
            let given = self.given.get(&own);
            let is_elsewhere =
                given.is_some_and(|given| *given != DimSize::Known(size)) && self.shared.contains(&own);
            self.used.extend((is_given && !is_elsewhere).then(|| own.clone()));
            return match given.filter(|_| !is_elsewhere) {
                None => Ok(Some(known(size))),
                Some(DimSize::Known(given)) if *given == size => Ok(Some(known(size))),
                Some(DimSize::Known(given)) => Err(Error::invalid(format!(
                    "dimension {d} of feed '{feed}' has size {size} in the graph, not {given}: correct --dim {own}"
                ))),
                Some(_) => Err(Error::invalid(format!(
                    "dimension {d} of feed '{feed}' has size {size} in the graph, so it has no other size: remove --dim {own}"
                ))),
            };
        }
        // Programs and their headers have the model's names as identifiers.
        let identifier = if name.is_empty() { String::new() } else { identifier(name) };
        let names = [own.as_str(), name, identifier.as_str(), if d == 0 { BATCH } else { "" }];
        if let Some(key) = names.into_iter().find(|key| !key.is_empty() && self.given.contains_key(*key)) {
            return self.stated(key).map(Some);
        }
        let Some((low, high)) = self.batch_range.filter(|_| d == 0 || self.leading.contains(name)) else {
            return Ok(None);
        };
        let key = if name.is_empty() { BATCH } else { name };
        self.defaults.entry(key.to_owned()).or_default().push(feed.to_owned());
        Ok(Some(self.ranged(key, low, high)))
    }

    /// Returns the size that a flag states.
    fn stated(&mut self, key: &str) -> Result<Dim> {
        let Some(size) = self.given.get(key).cloned() else {
            return Err(Error::invalid(format!("no flag states the size '{key}': add --dim {key}=1..64")));
        };
        self.used.insert(key.to_owned());
        match size {
            DimSize::Known(size) => Ok(known(size)),
            DimSize::Range(low, high) => Ok(self.ranged(key, low, high)),
            DimSize::Named(other) => match self.given.get(&other) {
                Some(DimSize::Named(_)) => Err(Error::invalid(format!(
                    "--dim {key}={other} names a dimension that is itself given by a name: give '{other}' a range, as in \
                     --dim {other}=1..64"
                ))),
                _ => self.stated(&other).map_err(|e| e.context(format!("--dim {key}={other}"))),
            },
        }
    }

    /// Returns the dimension of this name, with a range.
    fn ranged(&mut self, name: &str, min: i64, max: i64) -> Dim {
        if !self.ranges.iter().any(|dimension| dimension.name == name) {
            let size = self.sizes.get(name).or_else(|| self.sizes.get(&identifier(name)));
            let size = size.cloned().unwrap_or_default();
            self.ranges.push(Dimension { name: name.to_owned(), min, max, size });
        }
        Dim { size: -1, name: name.to_owned() }
    }

    /// Adds the dimensions with ranges to a config, under names that no feed has. Adds notes for
    /// the user, and flags without effect.
    pub(super) fn finish(self, inferred: &mut Inferred) {
        let Inferred { config, notes, problems, unused } = inferred;
        let mut names = UsedNames::default();
        for feed in &config.feed {
            names.claim(&(feed.name.clone(), 0));
            let id = super::super::config::id(&feed.id);
            if id.0 != feed.name {
                names.claim(&id);
            }
        }
        let named =
            self.ranges.iter().map(|range| (range.name.as_str(), names.claim(&(range.name.clone(), 0))));
        let named: BTreeMap<&str, String> = named.collect();
        let shapes = config.feed.iter_mut().filter_map(|feed| feed.shape.as_mut());
        for dim in shapes.flat_map(|shape| &mut shape.dim).filter(|dim| dim.size < 0) {
            if let Some(name) = named.get(dim.name.as_str()) {
                dim.name.clone_from(name);
            }
        }
        let ranges = self.ranges.iter();
        config.dimension.extend(
            ranges.map(|range| Dimension { name: named[range.name.as_str()].clone(), ..range.clone() }),
        );
        for (key, feeds) in &self.defaults {
            let (low, high) = self.batch_range.unwrap_or_default();
            let feeds: Vec<String> = feeds.iter().map(|feed| format!("'{feed}'")).collect();
            notes.push(format!(
                "the dimension '{key}' of {} can have any size from {low} to {high}; --dim {key}=LOW..HIGH or --dim {key}=N \
                 changes that",
                feeds.join(", ")
            ));
        }
        for name in self.sizes.keys() {
            if self.ranges.iter().any(|range| range.name == *name || identifier(&range.name) == *name) {
                continue;
            }
            if self.shared.contains(name) {
                unused.push(format!("--sizes {name}"));
            } else {
                problems.push(format!(
                    "--sizes {name} names no dimension with a range: add --dim {name}=LOW..HIGH"
                ));
            }
        }
        for name in self.given.keys().filter(|name| !self.used.contains(*name)) {
            if self.shared.contains(name) {
                unused.push(format!("--dim {name}"));
                continue;
            }
            if name == BATCH {
                notes.push("--dim batch has no effect: no feed has an unknown leading dimension".to_owned());
                continue;
            }
            let others = self.known.iter().map(String::as_str).filter(|known| *known != BATCH);
            let known: Vec<&str> = std::iter::once(BATCH).chain(others).take(13).collect();
            problems.push(format!(
                "--dim {name} does not name a dimension of a feed: expected one of {}",
                known.join(", ")
            ));
        }
    }
}

/// True if the name of a dimension is one. Converters write "?" for sizes without a name.
fn is_name(name: &str) -> bool {
    name.contains(|c: char| c.is_alphanumeric())
}

/// A size that the program has in every run.
fn known(size: i64) -> Dim {
    Dim { size, name: String::new() }
}
