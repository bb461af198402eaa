//! Programs of several modules: for the pieces of a batch, or for particular sizes.

use super::{Lowered, Planned, Versions, joined, optimize};
use crate::options::BackOptions;
use crate::sizes::report::SizeCode;
use crate::versions::variants;
use crate::{Observer, sizes};
use aot::ModuleSize;
use buffers::ConstantsPool;
use hlo::{Interface, Module, Program, SizeParameter, SizedModule};
use kernel::EntryOptions;
use plan::ModulePlan;
use support::{Code, Coded as _, Error, Result};
use target::Target;

/// Lowers the modules of a program with several for all targets.
pub(crate) fn lower_modules(
    program: &Program,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Versions> {
    let whole: Vec<&Module> = match &program.sized[..] {
        [] => vec![&program.module],
        sized => sized.iter().map(|sized| &sized.module).collect(),
    };
    let exact = program.exact.iter().map(|exact| &exact.module);
    let mut modules: Vec<Module> = whole.into_iter().chain(exact).cloned().collect();
    modules.iter_mut().try_for_each(|module| optimize(module, options, observer))?;
    let mut lower = |target: &Target| {
        lower_choice(program, &modules, target, options, pool, observer).coded(Code::UnsupportedHlo)
    };
    let first = lower(&options.target)?;
    let all = modules.iter().map(|module| variants(module, options));
    let targets = all.max_by_key(Vec::len).unwrap_or_default();
    let mut others = Vec::new();
    for target in targets {
        let lowered = lower(&target)?;
        others.push((target, lowered));
    }
    joined(first, others)
}

/// A module with its plan.
struct Candidate<'a> {
    module: &'a Module,
    /// The size for which it is; `None` for the module for all sizes.
    size: Option<ModuleSize>,
    plan: ModulePlan,
    nanoseconds: u64,
}

/// Lowers the modules of a program for one target: those for all sizes, which come first, and those
/// for particular ones. The plan and the assignment are those of the last one for all sizes; the
/// sizes of the assignment are large enough for all.
fn lower_choice(
    program: &Program,
    modules: &[Module],
    target: &Target,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Lowered> {
    let interface = &program.interface;
    let (whole, exact) = modules.split_at(program.sized.len().max(1));
    let planned = |module, size| {
        let plan = plan::plan_with(module, target, &options.plan)?;
        let nanoseconds = kernel::duration(module, &plan);
        Ok(Candidate { module, size, plan, nanoseconds })
    };
    let mut candidates = match &program.sized[..] {
        [] => vec![planned(&whole[0], None)?],
        sized => pieces(sized, whole, &planned)?,
    };
    let whole_count = candidates.len();
    for (exact, module) in program.exact.iter().zip(exact) {
        let label = |number: usize| interface.arguments()[number].label();
        let own = exact.sizes.iter().map(|&(number, size)| (label(number), size)).collect();
        candidates.push(planned(module, Some(ModuleSize::Exact(own)))?);
    }
    let (mut all, mut sizes) = (Vec::with_capacity(candidates.len()), Vec::with_capacity(candidates.len()));
    for Candidate { module, size, plan, nanoseconds } in candidates {
        let known = pool.size();
        all.push((module, Planned::of(module, plan, target, options, pool, observer)?));
        let constants = pool.size() - known;
        sizes.push(size.map(|size| SizeCode { size, nanoseconds, constants, functions: Vec::new() }));
    }
    let batch = program.sized.first().map(|first| frame_of_batch(interface, first)).transpose()?;
    if let Some(batch) = &batch {
        all[..whole_count].iter_mut().for_each(|(_, planned)| planned.move_results(&batch.results));
    }
    let parts = |k: usize| all[k].1.parts(all[k].0);
    let whole = match batch {
        None => kernel::Whole::Module(parts(0)),
        Some(mut batch) => {
            for (k, size) in sizes[..whole_count].iter().enumerate() {
                if let Some(SizeCode { size: ModuleSize::Rows(rows), .. }) = size {
                    batch.pieces.push(kernel::Piece { rows: *rows, parts: parts(k) });
                }
            }
            kernel::Whole::Batch(batch)
        }
    };
    let exact = program.exact.iter().enumerate();
    let exact =
        exact.map(|(k, exact)| kernel::Exact { sizes: exact.sizes.clone(), parts: parts(whole_count + k) });
    let choice = kernel::Choice { whole, exact: exact.collect() };
    let entry = EntryOptions { name: &options.entry_point, is_profiled: false };
    let mut lowered = kernel::lower_choice(&choice, target, &entry)?;
    for (size, functions) in sizes.iter_mut().zip(std::mem::take(&mut lowered.of_modules)) {
        if let Some(size) = size {
            size.functions = functions;
        }
    }
    let mut all: Vec<Planned> = all.into_iter().map(|(_, planned)| planned).collect();
    let end = all.len() - 1;
    all.swap(whole_count - 1, end);
    let last = Planned::with_space_for_all(all)?;
    Ok(Lowered { sizes: sizes.into_iter().flatten().collect(), ..last.finish(lowered, options, observer)? })
}

/// Returns the modules of a batch that are required, or pay.
fn pieces<'a>(
    sized: &[SizedModule],
    modules: &'a [Module],
    planned: &dyn Fn(&'a Module, Option<ModuleSize>) -> Result<Candidate<'a>>,
) -> Result<Vec<Candidate<'a>>> {
    let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(modules.len());
    let mut smaller: Option<(i64, u64)> = None;
    for (SizedModule { size, is_required, .. }, module) in sized.iter().zip(modules) {
        let candidate = planned(module, Some(ModuleSize::Rows(*size)))?;
        let own = (*size, candidate.nanoseconds);
        if *is_required || smaller.is_some_and(|smaller| sizes::is_worth(own, smaller)) {
            smaller = Some(own);
            candidates.push(candidate);
        }
    }
    Ok(candidates)
}

/// Returns a batch without its pieces. `first` is the module of the smallest one.
fn frame_of_batch<'a>(interface: &Interface, first: &SizedModule) -> Result<kernel::Batch<'a>> {
    let size_of = |(parameter, argument, range): (usize, &hlo::Argument, hlo::SizeRange)| {
        let name = argument.name.clone().unwrap_or_else(|| argument.id.short());
        (SizeParameter { parameter, low: range.low, high: range.high }, name)
    };
    let (own, others): (Vec<_>, Vec<_>) =
        interface.sizes().map(size_of).partition(|(size, _)| size.parameter == first.parameter);
    let (size, name) =
        own.into_iter().next().ok_or_else(|| Error::internal("expected a program with a named dimension"))?;
    let sizes::Arrays { arguments, results, reported_sizes } = sizes::arrays(interface, first)?;
    Ok(kernel::Batch {
        size,
        name,
        pieces: Vec::new(),
        arguments,
        results,
        reported_sizes,
        other_sizes: others,
    })
}
