//! Units of code generation: parts of a program that become LLVM modules of their own, so that several threads make the
//! code. What is in a unit depends on the program alone, never on how many threads there are.

use std::collections::BTreeSet;
use std::ops::Range;

use nest::stack::{self, Calls};
use nest::{Function, FunctionId, Linkage};
use support::{Id, Result};
use target::{Level, ObjectFormat, Target};

use crate::symbols::{choice_symbol, entry_symbols, local_symbol, unique};
use crate::{CodegenOptions, Version, version};

/// A program's versions, and what all units know of them.
pub(crate) struct Source<'a> {
    pub(crate) versions: &'a [Version<'a>],
    /// What every machine of the triple can do until it is asked.
    pub(crate) baseline: &'a Target,
    /// The processors that the versions are for; none for a single version.
    pub(crate) levels: Vec<Level>,
    /// The symbols of each version's functions.
    pub(crate) symbols: Vec<Vec<String>>,
    /// Who calls whom, callees before callers.
    pub(crate) calls: Vec<Calls>,
}

/// Functions that become one LLVM module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// For each version the numbers of its functions in the unit, which lie next to each other.
    functions: Vec<Range<usize>>,
    /// Whether it is the last one, which has the entry and the constants.
    pub(crate) is_last: bool,
    /// Whether it is the only one.
    pub(crate) is_whole: bool,
}

/// Statements of a unit, at least: each costs some milliseconds more than its code.
const MIN_STATEMENTS: usize = 1500;

/// Units of a program, at most.
const MAX_UNITS: usize = 32;

impl<'a> Source<'a> {
    /// Names the functions.
    pub(crate) fn new(versions: &'a [Version<'a>], baseline: &'a Target, entry_point: &str) -> Result<Self> {
        let levels = version::levels(versions)?;
        let mut names = BTreeSet::from(entry_symbols(entry_point));
        let (mut symbols, mut calls) = (Vec::new(), Vec::new());
        for (k, version) in versions.iter().enumerate() {
            let suffix = levels.get(k).map_or(String::new(), |level| format!(".{}", level.name()));
            let mut symbol = |function: &Function| match function.linkage {
                Linkage::Entry if suffix.is_empty() => entry_point.to_owned(),
                Linkage::Entry => unique(format!("{entry_point}{suffix}"), &mut names),
                _ => local_symbol(entry_point, &function.name, &suffix, &mut names),
            };
            let of_version: Vec<String> = version.program.functions.values().map(&mut symbol).collect();
            calls.extend(stack::calls(version.program, &of_version));
            symbols.push(of_version);
        }
        if !levels.is_empty() {
            let choice = choice_symbol(entry_point);
            let entries = symbols.iter().filter_map(|of_version| of_version.last().cloned());
            let callees = entries.chain([choice.clone()]).collect();
            calls.push(Calls { caller: choice, callees: Vec::new() });
            calls.push(Calls { caller: entry_point.to_owned(), callees });
        }
        Ok(Self { versions, baseline, levels, symbols, calls })
    }

    /// Cuts the versions into units of about as many statements each.
    pub(crate) fn units(&self, target: &Target, options: &CodegenOptions) -> Vec<Unit> {
        let none = || self.versions.iter().map(|_| 0..0).collect::<Vec<_>>();
        let all = || self.versions.iter().map(|v| 0..v.program.functions.len()).collect();
        // Only objects of this kind can be merged; memory functions of the object's own and what a sanitizer adds are
        // there once.
        let can_merge = target.triple.object_format == ObjectFormat::Elf
            && target.pointer_bytes == 8
            && options.sanitize.is_none()
            && !options.freestanding;
        let weights = self.versions.iter().map(|v| v.program.functions.values().map(weight).sum::<usize>());
        let wanted = (weights.sum::<usize>() / MAX_UNITS).max(MIN_STATEMENTS);
        let mut units = Vec::new();
        let mut unit = Unit { functions: none(), is_last: false, is_whole: false };
        let mut statements = 0;
        for (k, version) in self.versions.iter().enumerate().filter(|_| can_merge) {
            unit.functions[k] = 0..0;
            for (id, function) in version.program.functions.iter() {
                unit.functions[k].end = id.index() + 1;
                statements += weight(function);
                if statements >= wanted {
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
        // What is left over joins the last unit that is full.
        if statements < wanted / 2
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
    /// The functions of a version whose bodies the unit has. What is inlined is in every unit that calls it.
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

/// A measure of the time that a function's code takes to generate.
fn weight(function: &Function) -> usize {
    1 + function.statement_count()
}
