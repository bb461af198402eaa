//! The price and the gain of each size with code of its own.

use aot::SizeFacts;
use codegen::CompiledModule;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A size of one version of the code.
#[derive(Clone, Debug)]
pub(crate) struct SizeCode {
    /// The size.
    pub(crate) rows: i64,
    /// Estimated time of a run in nanoseconds.
    pub(crate) nanoseconds: u64,
    /// Bytes of constants that no smaller size has.
    pub(crate) constants: u64,
    /// Names of the functions that no smaller size has.
    pub(crate) functions: Vec<String>,
}

/// Sums up the sizes of all versions. `versions` has, for each version, its sizes in ascending
/// order and the names of all functions of its program. Times are those of the first version.
pub(crate) fn facts(versions: &[(Vec<SizeCode>, Vec<String>)], output: &CompiledModule) -> Vec<SizeFacts> {
    let bytes: BTreeMap<&str, u64> =
        output.functions.iter().map(|function| (function.name.as_str(), function.bytes)).collect();
    let mut all: BTreeMap<i64, SizeFacts> = BTreeMap::new();
    for ((sizes, names), symbols) in versions.iter().zip(&output.symbols) {
        for SizeCode { rows, nanoseconds, constants, functions } in sizes {
            let own: BTreeSet<&String> = functions.iter().collect();
            let symbols = names.iter().zip(symbols).filter(|(name, _)| own.contains(name));
            let code: u64 = symbols.filter_map(|(_, symbol)| bytes.get(symbol.as_str())).sum();
            let facts = all.entry(*rows).or_insert(SizeFacts {
                size: *rows,
                code: 0,
                constants: 0,
                nanoseconds: *nanoseconds,
            });
            facts.code += code;
            facts.constants += constants;
        }
    }
    all.into_values().collect()
}

/// Describes the sizes: bytes of code and constants, and estimated rows per second.
pub(crate) fn to_text(sizes: &[SizeFacts]) -> String {
    let mut text = String::from("  rows        code   constants      rows/s  (estimated)\n");
    let mut smaller: Option<&SizeFacts> = None;
    for facts in sizes {
        let SizeFacts { size, code, constants, .. } = facts;
        let _ = write!(text, "{size:>6} {code:>9} B {constants:>9} B {:>11.0}", facts.rows_per_second());
        if let Some(smaller) = smaller {
            let gain = facts.rows_per_second() / smaller.rows_per_second();
            let _ = write!(text, "  {gain:.2} times those of {}", smaller.size);
        }
        text.push('\n');
        smaller = Some(facts);
    }
    text
}
