//! Upper bound on the stack that the entry needs: the frame sizes that the code generator reports,
//! added along the calls.

use std::collections::BTreeMap;

use crate::language::{FunctionId, Program, Statement};
use support::{Error, Id, Result};

/// Limit in bytes. Programs may run models on small stacks, of 256 KiB or less.
const MAX_STACK: u64 = 64 << 10;

/// Stack bytes of a call in addition to the frame: the return address, and padding for frames that
/// hold vectors of a cache line.
const CALL_BYTES: u64 = 16 + 64;

/// A function and its callees.
#[derive(Clone, Debug)]
pub struct Calls {
    /// The symbol of the function.
    pub caller: String,
    /// The symbols of its callees.
    pub callees: Vec<String>,
}

/// Returns the symbol of the function that passes a part of a parallel call to a function.
pub fn part_symbol(function: &str) -> String {
    format!("{function}.part")
}

/// Returns the calls of a program's functions, in order. `symbols` are the symbols of the
/// functions.
pub fn calls(program: &Program, symbols: &[String]) -> Vec<Calls> {
    let name = |id: FunctionId| symbols[id.index()].clone();
    let mut all = Vec::new();
    for (id, function) in program.functions.iter() {
        let mut callees: Vec<String> = function.callees().map(name).collect();
        for statement in function.body.walk() {
            // The thread of the entry's caller may run a part on its own stack.
            if let Statement::Parallel { function, .. } = statement {
                let part = part_symbol(&name(*function));
                callees.push(part.clone());
                all.push(Calls { caller: part, callees: vec![name(*function)] });
            }
        }
        all.push(Calls { caller: name(id), callees });
    }
    all
}

/// Returns the stack size of the last function: its frame, and the deepest chain of its callees.
/// Inlined functions have no frames.
pub fn bound(calls: &[Calls], frames: &BTreeMap<String, u64>) -> u64 {
    let mut depths: BTreeMap<&str, u64> = BTreeMap::new();
    for function in calls {
        let below = function.callees.iter().filter_map(|callee| depths.get(callee.as_str())).max();
        let own = CALL_BYTES.saturating_add(frames.get(&function.caller).copied().unwrap_or(0));
        depths.insert(&function.caller, own.saturating_add(below.copied().unwrap_or(0)));
    }
    calls.last().and_then(|entry| depths.get(entry.caller.as_str())).copied().unwrap_or(0)
}

/// Rejects code that needs more stack than small threads have.
pub fn check(bytes: u64) -> Result<()> {
    if bytes <= MAX_STACK {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the code needs {bytes} bytes of stack, more than the limit of {MAX_STACK}: this is a bug in a kernel; please report it \
         with the graph"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_chain_counts() {
        let calls = |caller: &str, callees: &[&str]| Calls {
            caller: caller.to_owned(),
            callees: callees.iter().map(|&c| c.to_owned()).collect(),
        };
        let graph = [calls("a", &[]), calls("b", &["a"]), calls("c", &[]), calls("entry", &["b", "c", "b"])];
        let frames =
            BTreeMap::from([("a", 100), ("b", 20), ("c", 90), ("entry", 8)].map(|(n, b)| (n.to_owned(), b)));
        assert_eq!(bound(&graph, &frames), 128 + 3 * CALL_BYTES);
        assert!(check(MAX_STACK).is_ok() && check(MAX_STACK + 1).is_err());
    }
}
