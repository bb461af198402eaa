//! Programs with code for particular sizes of named dimensions.
//!
//! The entry contains the code of several modules with equal parameters and results. It compares
//! the sizes of the run with those of each, and runs the first that fits, or else the whole one.

use super::{Context, Entry};
use crate::calls::Kernels;
use crate::entry::pieces::Parts;
use crate::entry::regions::Region;
use nest::{Predicate, Program, RegionBuilder as _, ValueId};
use std::collections::BTreeMap;
use support::{Error, Result};
use target::Target;

/// A program for any sizes, with code for particular ones.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The module for all sizes within the ranges.
    pub whole: Parts<'a>,
    /// The modules for particular sizes.
    pub exact: Vec<Exact<'a>>,
}

/// A module for particular sizes of some named dimensions.
#[derive(Clone, Debug)]
pub struct Exact<'a> {
    /// The numbers of the parameters that hold these sizes, and the sizes.
    pub sizes: Vec<(usize, i64)>,
    /// The module and its plan.
    pub parts: Parts<'a>,
}

/// Adds the entry of a program. `kernels` are those of the whole program and of the other modules.
/// Returns the regions of all.
pub(crate) fn emit(
    choice: &Choice<'_>,
    kernels: &[Kernels],
    target: &Target,
    name: &str,
    program: &mut Program,
    unique: &mut dyn FnMut(&str) -> String,
) -> Result<Vec<Region>> {
    let Parts { module, schedule, assignment, .. } = choice.whole;
    let begin = Context { module, schedule, assignment, target, kernels: &kernels[0], counters: &[] };
    let mut entry = Entry::new(&begin, name, true, program, unique);
    let sizes = entry.check_sizes()?;
    entry.choose(choice, kernels, &sizes, 0)?;
    let Entry { scope, program, regions, .. } = entry;
    program.functions.push(scope.builder.finish());
    Ok(regions)
}

impl<'a> Entry<'a> {
    /// Emits the choice among the modules from number `first` on.
    fn choose(
        &mut self,
        choice: &Choice<'a>,
        kernels: &'a [Kernels],
        sizes: &BTreeMap<usize, ValueId>,
        first: usize,
    ) -> Result<()> {
        let Some(exact) = choice.exact.get(first) else {
            return self.run_module(choice.whole, &kernels[0]);
        };
        let mut fits = None;
        for (parameter, size) in &exact.sizes {
            let own = sizes.get(parameter).ok_or_else(|| Error::internal("expected the size of a run"))?;
            let b = &mut self.scope.builder;
            let size = b.index(*size);
            let is_equal = b.compare(Predicate::Equal, *own, size);
            fits = Some(fits.map_or(is_equal, |other| b.and(other, is_equal)));
        }
        let fits = fits.ok_or_else(|| Error::internal("expected a module for particular sizes"))?;
        self.if_else(
            fits,
            |entry| entry.run_module(exact.parts, &kernels[first + 1]).map(|()| Vec::new()),
            |entry| entry.choose(choice, kernels, sizes, first + 1).map(|()| Vec::new()),
        )
        .map(|_| ())
    }
}
