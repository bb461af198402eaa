//! A module: computations, one of which is the entry.

use crate::computation::Computation;
use crate::ids::ComputationId;
use shape::ShapeIndex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;
use support::IdVec;

/// Strictness of an alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasKind {
    /// `may-alias`.
    May,
    /// `must-alias`: an in-out argument.
    Must,
}

/// A result that uses a parameter's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputOutputAlias {
    /// The path in the entry's result.
    pub output_index: ShapeIndex,
    /// The parameter.
    pub parameter_number: usize,
    /// The path in that parameter.
    pub parameter_index: ShapeIndex,
    /// May or must.
    pub kind: AliasKind,
}

/// A dimension of a result whose true size is only known at run time; the result's shape contains
/// its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoundedDimension {
    /// The element of the entry's result tuple.
    pub result: usize,
    /// The dimension of that array.
    pub dimension: usize,
}

/// A parameter of the entry, an `s32[]`, that holds the size of a named dimension. Arrays with that
/// dimension have its upper bound, and their elements beyond the size are undefined. A program
/// fails, and writes nothing, if the caller's size is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeParameter {
    /// The parameter. Its name is the name of the dimension.
    pub parameter: usize,
    /// The smallest size.
    pub low: i64,
    /// The largest size.
    pub high: i64,
}

/// For each duplicate name, a suffix below which no other is free. This is only a cache, so it does
/// not affect equality.
#[derive(Clone, Debug, Default)]
struct Suffixes(BTreeMap<String, u64>);

impl PartialEq for Suffixes {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    name: String,
    computations: IdVec<ComputationId, Option<Computation>>,
    names: BTreeSet<String>,
    suffixes: Suffixes,
    entry: Option<ComputationId>,
    input_output_alias: Vec<InputOutputAlias>,
    bounded_dimensions: Vec<BoundedDimension>,
    size_parameters: Vec<SizeParameter>,
    attributes: Vec<(String, String)>,
}

impl Module {
    /// Creates a module without computations; it needs an entry before it is used elsewhere.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            computations: IdVec::new(),
            names: BTreeSet::new(),
            suffixes: Suffixes::default(),
            entry: None,
            input_output_alias: Vec::new(),
            bounded_dimensions: Vec::new(),
            size_parameters: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a computation; a name that is taken gets a suffix.
    pub fn add_computation(&mut self, mut computation: Computation) -> ComputationId {
        if self.names.contains(computation.name()) {
            let stem = computation.name().to_owned();
            let suffix = self.suffixes.0.entry(stem.clone()).or_insert(1);
            let with_suffix = |suffix: u64| format!("{stem}.{suffix}");
            while self.names.contains(&with_suffix(*suffix)) {
                *suffix += 1;
            }
            computation.set_name(with_suffix(*suffix));
        }
        self.names.insert(computation.name().to_owned());
        self.computations.push(Some(computation))
    }

    /// Iterates over the live computations in the order in which they were added.
    pub fn computations(&self) -> impl DoubleEndedIterator<Item = (ComputationId, &Computation)> {
        self.computations.iter().filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }

    /// Returns the computation, or `None` if it was removed.
    pub fn get(&self, id: ComputationId) -> Option<&Computation> {
        self.computations.get(id)?.as_ref()
    }

    /// Returns the computation for editing.
    pub fn computation_mut(&mut self, id: ComputationId) -> &mut Computation {
        self.computations[id].as_mut().expect("expected a live computation")
    }

    /// Returns the entry's id. Panics if it is not set.
    pub fn entry(&self) -> ComputationId {
        self.entry.expect("expected a module with an entry")
    }

    /// Returns the entry's id, or `None` if it is not set.
    pub fn entry_if_set(&self) -> Option<ComputationId> {
        self.entry
    }

    /// Returns the entry.
    pub fn entry_computation(&self) -> &Computation {
        &self[self.entry()]
    }

    /// Makes a computation the entry.
    pub fn set_entry(&mut self, id: ComputationId) {
        self.entry = Some(id);
    }

    /// Returns the results that use parameters' memory.
    pub fn input_output_alias(&self) -> &[InputOutputAlias] {
        &self.input_output_alias
    }

    /// Replaces the aliases.
    pub fn set_input_output_alias(&mut self, alias: Vec<InputOutputAlias>) {
        self.input_output_alias = alias;
    }

    /// Returns the dimensions whose true sizes are the last elements of the entry's result tuple,
    /// each an `s64[]`, in this order. Empty until the pass that adds them has run.
    pub fn bounded_dimensions(&self) -> &[BoundedDimension] {
        &self.bounded_dimensions
    }

    /// Sets the dimensions whose sizes are the last elements of the entry's result tuple.
    pub fn set_bounded_dimensions(&mut self, dimensions: Vec<BoundedDimension>) {
        self.bounded_dimensions = dimensions;
    }

    /// Returns the parameters that hold sizes of named dimensions.
    pub fn size_parameters(&self) -> &[SizeParameter] {
        &self.size_parameters
    }

    /// Sets the parameters that hold sizes of named dimensions.
    pub fn set_size_parameters(&mut self, parameters: Vec<SizeParameter>) {
        self.size_parameters = parameters;
    }

    /// Returns the attributes in the module's first line that are only passed through, such as
    /// `is_scheduled`, `num_partitions`, and `entry_computation_layout`: names and values in XLA's
    /// text.
    pub fn attributes(&self) -> &[(String, String)] {
        &self.attributes
    }

    /// Replaces the attributes that are only passed through.
    pub fn set_attributes(&mut self, attributes: Vec<(String, String)>) {
        self.attributes = attributes;
    }

    /// Returns the computations that the entry reaches, callees before callers, with the entry
    /// last.
    pub fn post_order(&self) -> Vec<ComputationId> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        let mut stack = vec![(self.entry(), None)];
        while let Some((id, callees)) = stack.pop() {
            let mut callees: std::vec::IntoIter<ComputationId> = match callees {
                Some(rest) => rest,
                None if !seen.insert(id) => continue,
                None => {
                    let callees = self[id].instructions().flat_map(|(_, i)| i.op().called_computations());
                    callees.collect::<Vec<_>>().into_iter()
                }
            };
            match callees.next() {
                Some(callee) => {
                    stack.push((id, Some(callees)));
                    stack.push((callee, None));
                }
                None => order.push(id),
            }
        }
        order
    }

    /// Removes the computations that the entry does not reach; returns true if there were any.
    pub fn remove_unreachable_computations(&mut self) -> bool {
        let reachable: BTreeSet<ComputationId> = self.post_order().into_iter().collect();
        let mut removed = false;
        for id in self.computations.ids().filter(|id| !reachable.contains(id)) {
            if let Some(computation) = self.computations[id].take() {
                self.names.remove(computation.name());
                removed = true;
            }
        }
        if removed {
            self.suffixes.0.clear();
        }
        removed
    }
}

impl Index<ComputationId> for Module {
    type Output = Computation;

    /// Panics if the computation was removed.
    fn index(&self, id: ComputationId) -> &Computation {
        self.computations[id].as_ref().unwrap_or_else(|| panic!("{id} of {} was removed", self.name))
    }
}
