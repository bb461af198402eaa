//! Programs with code for particular sizes of named dimensions.
//!
//! The entry contains the code of several modules with equal parameters and results. It compares
//! the sizes of the run with those of each, and runs the first that fits, or else the code for all
//! sizes: a module, or the pieces of a batch.

use super::{Context, Entry};
use crate::calls::Kernels;
use crate::entry::pieces::{Batch, InnerFrame, Parts};
use crate::entry::regions::Region;
use nest::{Predicate, Program, RegionBuilder as _, ValueId};
use std::collections::BTreeMap;
use support::{Error, Result};
use target::Target;

/// A program for any sizes, with code for particular ones.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The code for all sizes within the ranges.
    pub whole: Whole<'a>,
    /// The modules for particular sizes.
    pub exact: Vec<Exact<'a>>,
}

/// The code for all sizes.
#[derive(Debug)]
pub enum Whole<'a> {
    /// A module.
    Module(Parts<'a>),
    /// The pieces of a batch.
    Batch(Batch<'a>),
}

impl<'a> Whole<'a> {
    /// Returns its modules.
    pub(crate) fn modules(&self) -> Vec<Parts<'a>> {
        match self {
            Self::Module(parts) => vec![*parts],
            Self::Batch(batch) => batch.pieces.iter().map(|piece| piece.parts).collect(),
        }
    }
}

/// A module for particular sizes of some named dimensions.
#[derive(Clone, Debug)]
pub struct Exact<'a> {
    /// The numbers of the parameters that hold these sizes, and the sizes.
    pub sizes: Vec<(usize, i64)>,
    /// The module and its plan.
    pub parts: Parts<'a>,
}

/// Adds the entry of a program. `kernels` are those of the modules for all sizes and of the others.
/// Returns the regions of all.
pub(crate) fn emit(
    choice: &Choice<'_>,
    kernels: &[Kernels],
    target: &Target,
    name: &str,
    program: &mut Program,
    unique: &mut dyn FnMut(&str) -> String,
) -> Result<Vec<Region>> {
    let modules = choice.whole.modules();
    let first = modules.first().ok_or_else(|| Error::internal("expected a batch with pieces"))?;
    let &Parts { module, schedule, assignment, .. } = first;
    let begin = Context { module, schedule, assignment, target, kernels: &kernels[0], counters: &[] };
    let mut entry = Entry::new(&begin, name, true, program, unique);
    let (sizes, frame) = match &choice.whole {
        Whole::Module(_) => (entry.check_sizes()?, None),
        Whole::Batch(batch) => {
            let mut sizes = BTreeMap::new();
            for (size, name) in std::iter::once((&batch.size, &batch.name))
                .chain(batch.other_sizes.iter().map(|(size, name)| (size, name)))
            {
                sizes.insert(size.parameter, entry.check_size(size, name)?);
            }
            (sizes, Some(entry.inner_frame(batch)))
        }
    };
    let (whole, exact) = kernels.split_at(modules.len());
    let all = AllSizes { whole: &choice.whole, kernels: whole, frame: frame.as_ref(), sizes: &sizes };
    entry.choose(&choice.exact, exact, &all)?;
    let Entry { scope, program, regions, .. } = entry;
    program.functions.push(scope.builder.finish());
    Ok(regions)
}

/// The code for all sizes, and the sizes of the run.
struct AllSizes<'c, 'a> {
    whole: &'c Whole<'a>,
    kernels: &'a [Kernels],
    /// The frame of a batch's pieces.
    frame: Option<&'c InnerFrame>,
    /// The sizes, by their parameters.
    sizes: &'c BTreeMap<usize, ValueId>,
}

impl<'a> Entry<'a> {
    /// Emits the choice among some modules for particular sizes and the code for all sizes.
    fn choose(
        &mut self,
        modules: &[Exact<'a>],
        kernels: &'a [Kernels],
        all: &AllSizes<'_, 'a>,
    ) -> Result<()> {
        let [exact, others @ ..] = modules else {
            return match (all.whole, all.frame) {
                (Whole::Module(parts), _) => self.run_module(*parts, &all.kernels[0]),
                (Whole::Batch(batch), Some(frame)) => {
                    self.run_pieces(batch, all.kernels, frame, all.sizes[&batch.size.parameter])
                }
                _ => Err(Error::internal("expected a frame for pieces")),
            };
        };
        let mut fits = None;
        for (parameter, size) in &exact.sizes {
            let own =
                all.sizes.get(parameter).ok_or_else(|| Error::internal("expected the size of a run"))?;
            let b = &mut self.scope.builder;
            let size = b.index(*size);
            let is_equal = b.compare(Predicate::Equal, *own, size);
            fits = Some(fits.map_or(is_equal, |other| b.and(other, is_equal)));
        }
        let fits = fits.ok_or_else(|| Error::internal("expected a module for particular sizes"))?;
        self.if_else(
            fits,
            |entry| entry.run_module(exact.parts, &kernels[0]).map(|()| Vec::new()),
            |entry| entry.choose(others, &kernels[1..], all).map(|()| Vec::new()),
        )
        .map(|_| ())
    }
}
