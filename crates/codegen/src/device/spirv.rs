//! Emission of SPIR-V modules.
//!
//! LLVM's back end keeps a table from blocks to ids for the life of the process. Its keys are the
//! addresses of functions, so a function that is allocated where an earlier one was gets that one's
//! ids, which may be taken. Such modules are recognized by their ids and emitted again, with the
//! memory of the earlier attempt still in use. A process that emits one module is not affected.

use inkwell::module::Module;
use inkwell::targets::{FileType, TargetMachine};
use std::collections::BTreeSet;
use std::sync::Mutex;
use support::{Error, Result};

use crate::emit;

/// Attempts to emit a module.
const ATTEMPTS: usize = 64;

/// Sizes of the blocks that an attempt keeps: around those of the functions of LLVM's back end.
const KEPT_SIZES: std::ops::Range<usize> = 512..4096;
const KEPT_EACH: usize = 8;

/// Memory that is never returned, so that no function is allocated there again.
static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Emits a module. `machine` makes the code generator, which must not outlive the module.
pub(crate) fn emit_spirv(
    module: &Module<'_>,
    machine: impl Fn() -> Result<TargetMachine>,
) -> Result<Vec<u8>> {
    for _ in 0..ATTEMPTS {
        // Emission modifies the module.
        let copy = module.clone();
        let machine = machine()?;
        let bytes = emit(&machine, &copy, FileType::Object)?;
        if has_distinct_ids(&bytes) {
            return Ok(bytes);
        }
        let sizes = KEPT_SIZES.step_by(16).flat_map(|size| std::iter::repeat_n(size, KEPT_EACH));
        let mut kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.extend(sizes.map(Vec::with_capacity));
    }
    Err(Error::internal(format!(
        "LLVM's back end for SPIR-V gave two values the same id in {ATTEMPTS} attempts"
    )))
}

/// True if no block has the id of another block or value, and all ids are below the module's bound.
/// SPIR-V specification, section 2.3, "Physical Layout of a SPIR-V Module and Instruction".
fn has_distinct_ids(bytes: &[u8]) -> bool {
    const HEADER_WORDS: usize = 5;
    const BOUND: usize = 3;
    const LABEL: u32 = 248;
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let Some(&bound) = words.get(BOUND) else { return false };
    let (mut values, mut blocks) = (BTreeSet::new(), BTreeSet::new());
    let mut at = HEADER_WORDS;
    while let Some(&first) = words.get(at) {
        let (length, opcode) = ((first >> 16) as usize, first & 0xffff);
        let Some(instruction) = words.get(at..at + length.max(1)) else { return false };
        let id = result_word(opcode).and_then(|word| instruction.get(word).copied());
        if let Some(id) = id {
            let is_repeated = if opcode == LABEL { !blocks.insert(id) } else { !values.insert(id) };
            if is_repeated || id >= bound {
                return false;
            }
        }
        at += length.max(1);
    }
    values.is_disjoint(&blocks)
}

/// Returns the position of the result's id in an instruction, if it has a result.
const fn result_word(opcode: u32) -> Option<usize> {
    match opcode {
        // Strings, imports, types, groups of decorations, labels: no type precedes the result.
        7 | 11 | 19..=39 | 73 | 248 => Some(1),
        // Names, sources, modes, capabilities, stores, decorations, barriers, branches, returns.
        0
        | 2..=6
        | 8
        | 10
        | 14..=17
        | 56
        | 62..=64
        | 71
        | 72
        | 74
        | 75
        | 224
        | 225
        | 228
        | 246
        | 247
        | 249..=257
        | 317
        | 330..=332 => None,
        _ => Some(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with the ids 1 (a type), 2 (a constant), and the given blocks.
    fn module(bound: u32, blocks: &[u32]) -> Vec<u8> {
        let instruction = |opcode: u32, operands: &[u32]| {
            let first = (operands.len() as u32 + 1) << 16 | opcode;
            std::iter::once(first).chain(operands.iter().copied()).collect::<Vec<u32>>()
        };
        let mut words = vec![0x0723_0203, 0x0001_0400, 0, bound, 0];
        words.extend(instruction(21, &[1, 32, 0]));
        words.extend(instruction(43, &[1, 2, 7]));
        for &block in blocks {
            words.extend(instruction(248, &[block]));
            words.extend(instruction(249, &[block]));
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn ids_of_blocks_are_compared_with_all_others() {
        assert!(has_distinct_ids(&module(9, &[3, 4])));
        assert!(!has_distinct_ids(&module(9, &[3, 3])), "two blocks");
        assert!(!has_distinct_ids(&module(9, &[3, 2])), "a block and a constant");
        assert!(!has_distinct_ids(&module(4, &[3, 4])), "beyond the bound");
        assert!(!has_distinct_ids(&module(9, &[3])[..40]), "a truncated instruction");
    }
}
