//! Units of code generation: parts of a program that become separate LLVM modules, so that several
//! threads can generate code. The contents of a unit depend only on the program, never on the
//! number of threads.

use std::collections::BTreeSet;
use std::ops::Range;

use nest::stack::{self, Calls};
use nest::{Function, FunctionId, Linkage};
use support::{Id, Result};
use target::{ObjectFormat, Target};

use crate::symbols::{choice_symbol, entry_symbols, local_symbol, unique};
use crate::version::{self, Requirement};
use crate::{CodegenOptions, Version};

/// A program's versions and the information that all units share.
pub(crate) struct Source<'a> {
    pub(crate) versions: &'a [Version<'a>],
    /// Baseline of the triple: the instructions that every machine supports.
    pub(crate) baseline: &'a Target,
    /// Requirements of the versions. Empty if the only version is the entry.
    pub(crate) requirements: Vec<Requirement>,
    /// Symbols of each version's functions.
    pub(crate) symbols: Vec<Vec<String>>,
    /// Call graph of each version, callees before callers.
    pub(crate) calls: Vec<Calls>,
}

/// Functions that become one LLVM module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Range of function numbers in the unit, for each version.
    functions: Vec<Range<usize>>,
    /// True for the last unit, which contains the entry and the constants.
    pub(crate) is_last: bool,
    /// True if it is the only unit.
    pub(crate) is_whole: bool,
}

/// Minimum number of statements per unit. Each unit costs some milliseconds beyond its code.
const MIN_STATEMENTS: usize = 1500;

/// Maximum number of units per program.
const MAX_UNITS: usize = 32;

impl<'a> Source<'a> {
    /// Assigns names to the functions.
    pub(crate) fn new(versions: &'a [Version<'a>], baseline: &'a Target, entry_point: &str) -> Result<Self> {
        let requirements = version::requirements(versions)?;
        let mut names = BTreeSet::from(entry_symbols(entry_point));
        let (mut symbols, mut calls) = (Vec::new(), Vec::new());
        for (k, version) in versions.iter().enumerate() {
            let suffix = requirements.get(k).map_or(String::new(), |version| format!(".{}", version.name()));
            let mut symbol = |function: &Function| match function.linkage {
                Linkage::Entry if suffix.is_empty() => entry_point.to_owned(),
                Linkage::Entry => unique(format!("{entry_point}{suffix}"), &mut names),
                _ => local_symbol(entry_point, &function.name, &suffix, &mut names),
            };
            let of_version: Vec<String> = version.program.functions.values().map(&mut symbol).collect();
            calls.extend(stack::calls(version.program, &of_version));
            symbols.push(of_version);
        }
        if !requirements.is_empty() {
            let choice = choice_symbol(entry_point);
            let entries = symbols.iter().filter_map(|of_version| of_version.last().cloned());
            let callees = entries.chain([choice.clone()]).collect();
            calls.push(Calls { caller: choice, callees: Vec::new() });
            calls.push(Calls { caller: entry_point.to_owned(), callees });
        }
        Ok(Self { versions, baseline, requirements, symbols, calls })
    }

    /// Divides the versions into units with similar numbers of statements.
    pub(crate) fn units(&self, target: &Target, options: &CodegenOptions) -> Vec<Unit> {
        let none = || self.versions.iter().map(|_| 0..0).collect::<Vec<_>>();
        let all = || self.versions.iter().map(|v| 0..v.program.functions.len()).collect();
        // Only ELF objects can be merged. The object's own memory functions and the sanitizer's
        // additions must exist only once.
        let can_merge = target.triple.object_format == ObjectFormat::Elf
            && target.pointer_bytes == 8
            && options.sanitize.is_none()
            && !options.freestanding;
        let weights = self.versions.iter().map(|v| v.program.functions.values().map(weight).sum::<usize>());
        let share = (weights.sum::<usize>() / MAX_UNITS).max(MIN_STATEMENTS);
        let mut units = Vec::new();
        let mut unit = Unit { functions: none(), is_last: false, is_whole: false };
        let mut statements = 0;
        for (k, version) in self.versions.iter().enumerate().filter(|_| can_merge) {
            unit.functions[k] = 0..0;
            for (id, function) in version.program.functions.iter() {
                unit.functions[k].end = id.index() + 1;
                statements += weight(function);
                if statements >= share {
                    let mut next = Unit { functions: none(), ..unit.clone() };
                    next.functions[k] = id.index() + 1..id.index() + 1;
                    units.push(std::mem::replace(&mut unit, next));
                    statements = 0;
                }
            }
        }
        units.push(unit);
        if units.len() == 1 {
            return vec![Unit { functions: all(), is_last: true, is_whole: true }];
        }
        // A small remainder joins the last full unit.
        if statements < share / 2
            && let (Some(left), Some(last)) = (units.pop(), units.last_mut())
        {
            for (range, left) in last.functions.iter_mut().zip(left.functions) {
                *range = if range.start >= range.end { left } else { range.start..range.end.max(left.end) };
            }
        }
        if let Some(last) = units.last_mut() {
            last.is_last = true;
            last.is_whole = false;
        }
        if let [only] = &mut units[..] {
            only.is_whole = true;
        }
        units
    }
}

impl Unit {
    /// Returns the functions of a version whose bodies the unit contains. Inlined functions are in
    /// every unit that calls them.
    pub(crate) fn bodies(&self, source: &Source<'_>, version: usize) -> BTreeSet<FunctionId> {
        let program = source.versions[version].program;
        let is_inlined = |id: &FunctionId| program.functions[*id].linkage == Linkage::Inline;
        let own = self.functions[version].clone().map(FunctionId::from_index);
        let mut bodies: BTreeSet<FunctionId> = own.filter(|id| self.is_whole || !is_inlined(id)).collect();
        let mut pending: Vec<FunctionId> = bodies.iter().copied().collect();
        while let Some(id) = pending.pop() {
            for callee in program.functions[id].callees() {
                if is_inlined(&callee) && bodies.insert(callee) {
                    pending.push(callee);
                }
            }
        }
        bodies
    }
}

/// Estimates the time to generate a function's code.
fn weight(function: &Function) -> usize {
    1 + function.statement_count()
}
