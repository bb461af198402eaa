//! Names of a program's functions in C, and the stack of their calls.

use crate::text::identifier;
use nest::{Expression, Linkage, Program, Statement};
use std::collections::{BTreeMap, BTreeSet};

/// Longest part of a name that comes from the graph.
const MAX_NAME: usize = 60;

/// Names that the functions of a file have, and those that other files use.
#[derive(Default)]
pub(crate) struct Taken(BTreeSet<String>);

impl Taken {
    /// Reserves the names of an entry point.
    pub(crate) fn reserve(&mut self, entry_point: &str) {
        let ends = ["", "_constants", "_constants_pointer", "_device"];
        self.0.extend(ends.map(|end| format!("{entry_point}{end}")));
    }
}

/// Returns the name of each function. The names of the entry points of the file are reserved.
pub(crate) fn of(program: &Program, entry_point: &str, Taken(taken): &mut Taken) -> Vec<String> {
    let mut symbols = Vec::new();
    for function in program.functions.values() {
        if function.linkage == Linkage::Entry {
            symbols.push(entry_point.to_owned());
            continue;
        }
        let name: String = identifier(&function.name).chars().take(MAX_NAME).collect();
        let base = format!("{entry_point}_{}", name.trim_end_matches('_'));
        let mut symbol = base.clone();
        let mut number = 2;
        while !taken.insert(symbol.clone()) {
            symbol = format!("{base}_{number}");
            number += 1;
        }
        taken.extend(["_part", "_arguments"].map(|end| format!("{symbol}{end}")));
        symbols.push(symbol);
    }
    symbols
}

/// Returns the bytes of the arrays on the stack of the deepest chain of calls.
pub(crate) fn stack_bytes(program: &Program, symbols: &[String]) -> u64 {
    let mut frames: BTreeMap<String, u64> = BTreeMap::new();
    for (function, symbol) in program.functions.values().zip(symbols) {
        let slots = function.body.walk().map(|statement| match statement {
            Statement::Let(_, Expression::StackSlot { bytes, .. }) => *bytes,
            _ => 0,
        });
        frames.insert(symbol.clone(), slots.sum());
    }
    nest::stack::bound(&nest::stack::calls(program, symbols), &frames)
}
