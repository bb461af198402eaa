//! The price and the gain of each size with code of its own.

use aot::{ModuleSize, SizeFacts};
use codegen::CompiledModule;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A size of one version of the code.
#[derive(Clone, Debug)]
pub(crate) struct SizeCode {
    /// The size.
    pub(crate) size: ModuleSize,
    /// Estimated time of a run in nanoseconds.
    pub(crate) nanoseconds: u64,
    /// Bytes of constants that no module before this one has.
    pub(crate) constants: u64,
    /// Names of the functions that no module before this one has.
    pub(crate) functions: Vec<String>,
}

/// Sums up the sizes of all versions. `versions` has, for each version, its sizes in ascending
/// order and the names of all functions of its program. Times are those of the first version.
pub(crate) fn facts(versions: &[(Vec<SizeCode>, Vec<String>)], output: &CompiledModule) -> Vec<SizeFacts> {
    let bytes: BTreeMap<&str, u64> =
        output.functions.iter().map(|function| (function.name.as_str(), function.bytes)).collect();
    let mut all: BTreeMap<ModuleSize, SizeFacts> = BTreeMap::new();
    for ((sizes, names), symbols) in versions.iter().zip(&output.symbols) {
        for SizeCode { size, nanoseconds, constants, functions } in sizes {
            let own: BTreeSet<&String> = functions.iter().collect();
            let symbols = names.iter().zip(symbols).filter(|(name, _)| own.contains(name));
            let code: u64 = symbols.filter_map(|(_, symbol)| bytes.get(symbol.as_str())).sum();
            let facts = all.entry(size.clone()).or_insert(SizeFacts {
                size: size.clone(),
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

/// Describes the sizes: bytes of code and constants, and estimated rows per second of a batch or
/// microseconds of a run.
pub(crate) fn to_text(sizes: &[SizeFacts]) -> String {
    let is_batch = sizes.iter().any(|facts| facts.rows_per_second().is_some());
    let heading = if is_batch { ["rows", "rows/s"] } else { ["size", "us"] };
    let mut text = format!("{:>6}        code   constants {:>11}  (estimated)\n", heading[0], heading[1]);
    let mut smaller: Option<(&SizeFacts, f64)> = None;
    for facts in sizes {
        let SizeFacts { size, code, constants, nanoseconds } = facts;
        let _ = write!(text, "{:>6} {code:>9} B {constants:>9} B", size.to_string());
        match facts.rows_per_second() {
            None => {
                let _ = write!(text, " {:>11.1}", *nanoseconds as f64 / 1000.0);
            }
            Some(speed) => {
                let _ = write!(text, " {speed:>11.0}");
                if let Some((smaller, of_smaller)) = smaller {
                    let _ = write!(text, "  {:.2} times those of {}", speed / of_smaller, smaller.size);
                }
                smaller = Some((facts, speed));
            }
        }
        text.push('\n');
    }
    text
}
