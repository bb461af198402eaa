//! Programs of several modules: for the pieces of a batch, or for particular sizes.

use super::{Lowered, Planned, Versions, joined, optimize};
use crate::options::BackOptions;
use crate::sizes::report::SizeCode;
use crate::versions::{is_worth, variants};
use crate::{Observer, sizes};
use aot::ModuleSize;
use buffers::ConstantsPool;
use hlo::{Module, Program, SizeParameter, SizeRange, SizedModule};
use kernel::EntryOptions;
use plan::ModulePlan;
use std::collections::BTreeMap;
use support::{Code, Coded as _, Error, Result};
use target::Target;

/// Lowers the modules of a program with several for all targets.
pub(crate) fn lower_modules(
    program: &Program,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Versions> {
    let is_batch = !program.sized.is_empty();
    let mut modules: Vec<Module> = if is_batch {
        program.sized.iter().map(|sized| sized.module.clone()).collect()
    } else {
        let exact = program.exact.iter().map(|exact| exact.module.clone());
        std::iter::once(program.module.clone()).chain(exact).collect()
    };
    modules.iter_mut().try_for_each(|module| optimize(module, options, observer))?;
    let mut lower = |target: &Target| {
        let lower = if is_batch { lower_pieces } else { lower_choice };
        lower(program, &modules, target, options, pool, observer).coded(Code::UnsupportedHlo)
    };
    let first = lower(&options.target)?;
    let all = modules.iter().map(|module| variants(module, options));
    let targets = all.max_by_key(Vec::len).unwrap_or_default();
    let mut others = Vec::new();
    for target in targets {
        let lowered = lower(&target)?;
        if is_worth(&target, &lowered.program) {
            others.push((target, lowered));
        }
    }
    joined(first, others)
}

/// Lowers the modules of a program in pieces for one target. The plan and the assignment are those
/// of the largest size; the sizes of the assignment are large enough for all.
fn lower_pieces(
    program: &Program,
    modules: &[Module],
    target: &Target,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Lowered> {
    let mut plans: Vec<(&Module, i64, ModulePlan, u64)> = Vec::with_capacity(modules.len());
    for (SizedModule { size, is_required, .. }, module) in program.sized.iter().zip(modules) {
        let plan = plan::plan_with(module, target, &options.plan)?;
        let cost = kernel::duration(module, &plan);
        let is_worth = plans.last().is_some_and(|(_, smaller, _, of_smaller)| {
            sizes::is_worth((*size, cost), (*smaller, *of_smaller))
        });
        if *is_required || is_worth {
            plans.push((module, *size, plan, cost));
        }
    }
    let mut planned = Vec::with_capacity(plans.len());
    let mut sizes = Vec::with_capacity(plans.len());
    for (module, size, plan, nanoseconds) in plans {
        let known = pool.size();
        planned.push((module, size, Planned::of(module, plan, target, options, pool, observer)?));
        let constants = pool.size() - known;
        sizes.push(SizeCode { size: ModuleSize::Rows(size), nanoseconds, constants, functions: Vec::new() });
    }
    let interface = &program.interface;
    let Some((parameter, argument, SizeRange { low, high })) = interface.sizes().next() else {
        return Err(Error::internal("expected a program with a named dimension"));
    };
    let (arguments, results) = sizes::arrays(interface);
    planned.iter_mut().for_each(|(.., planned)| planned.move_results(&results));
    let pieces = planned
        .iter()
        .map(|(module, rows, planned)| kernel::Piece { rows: *rows, parts: planned.parts(module) });
    let batch = kernel::Batch {
        size: SizeParameter { parameter, low, high },
        name: argument.name.clone().unwrap_or_else(|| argument.id.short()),
        pieces: pieces.collect(),
        arguments,
        results,
        reported_sizes: interface.size_count(),
    };
    let entry = EntryOptions { name: &options.entry_point, is_profiled: false };
    let mut lowered = kernel::lower_batch(&batch, target, &entry)?;
    for (size, functions) in sizes.iter_mut().zip(std::mem::take(&mut lowered.of_modules)) {
        size.functions = functions;
    }
    let largest = Planned::with_space_for_all(planned.into_iter().map(|(.., planned)| planned).collect())?;
    Ok(Lowered { sizes, ..largest.finish(lowered, options, observer)? })
}

/// Lowers the modules of a program with code for particular sizes for one target. The first module
/// is the whole one, and so are the plan and the assignment; the sizes of the assignment
/// are large enough for all.
fn lower_choice(
    program: &Program,
    modules: &[Module],
    target: &Target,
    options: &BackOptions,
    pool: &mut ConstantsPool,
    observer: &mut dyn Observer,
) -> Result<Lowered> {
    let names: BTreeMap<usize, String> =
        program.interface.sizes().map(|(number, argument, _)| (number, argument.label())).collect();
    let (mut planned, mut sizes) = (Vec::with_capacity(modules.len()), Vec::new());
    let of_sizes = std::iter::once(None).chain(program.exact.iter().map(|exact| Some(&exact.sizes)));
    for (module, own) in modules.iter().zip(of_sizes) {
        let plan = plan::plan_with(module, target, &options.plan)?;
        let nanoseconds = kernel::duration(module, &plan);
        let known = pool.size();
        planned.push(Planned::of(module, plan, target, options, pool, observer)?);
        let constants = pool.size() - known;
        if let Some(own) = own {
            let own = own.iter().map(|(number, size)| (names[number].clone(), *size)).collect();
            sizes.push(SizeCode {
                size: ModuleSize::Exact(own),
                nanoseconds,
                constants,
                functions: Vec::new(),
            });
        }
    }
    let parts = |k: usize| planned[k].parts(&modules[k]);
    let exact = program.exact.iter().enumerate();
    let exact = exact.map(|(k, exact)| kernel::Exact { sizes: exact.sizes.clone(), parts: parts(k + 1) });
    let choice = kernel::Choice { whole: parts(0), exact: exact.collect() };
    let entry = EntryOptions { name: &options.entry_point, is_profiled: false };
    let mut lowered = kernel::lower_choice(&choice, target, &entry)?;
    let functions = std::mem::take(&mut lowered.of_modules).into_iter().skip(1);
    for (size, functions) in sizes.iter_mut().zip(functions) {
        size.functions = functions;
    }
    planned.reverse();
    Ok(Lowered { sizes, ..Planned::with_space_for_all(planned)?.finish(lowered, options, observer)? })
}
