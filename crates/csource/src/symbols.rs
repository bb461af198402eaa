//! Names of a program's functions in C, the functions that programs share, and the stack of their
//! calls.

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

/// Functions of a file, by their text without their own name.
#[derive(Default)]
pub(crate) struct Shared(BTreeMap<String, String>);

impl Shared {
    /// Returns the name of the first function with this text: `symbol` unless one was written
    /// before.
    pub(crate) fn symbol(&mut self, symbol: &str, text: &str) -> String {
        self.0.entry(without_name(symbol, text)).or_insert_with(|| symbol.to_owned()).clone()
    }
}

/// Replaces the name of a function, and those of its parts, in its text.
fn without_name(symbol: &str, text: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| is_name(c) != is_name(first)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match word.strip_prefix(symbol) {
            Some(part @ ("" | "_part" | "_arguments")) => {
                out.push('@');
                out += part;
            }
            _ => out += word,
        }
        rest = after;
    }
    out
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
