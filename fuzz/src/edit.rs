//! The modules of the file tests, with random edits: patterns of every pass, and of their guards.

use crate::minimize::{clean, values, with_operand, with_parameter};
use crate::{Draw, Numbers};
use filetest::case::Case;
use hlo::{ComputationId, InstructionId, Module, Op};
use shape::Shape;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use support::{Error, Result};

/// Maximum number of edits of one module.
const MOST_EDITS: usize = 4;

/// Maximum number of elements of an argument.
const MOST_ELEMENTS: i64 = 1 << 18;

/// The valid modules of the file tests, in the order of their paths.
static MODULES: LazyLock<Vec<Module>> = LazyLock::new(|| {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/hlo"), &mut files);
    files.sort();
    let module = |file: &PathBuf| {
        let case = Case::parse(&std::fs::read_to_string(file).ok()?).ok()?;
        let module = hlo::parse(&case.input).ok()?;
        (hlo::verify(&module).is_ok() && has_small_arguments(&module)).then_some(module)
    };
    files.iter().filter_map(module).collect()
});

/// True if arguments can be generated: dimensions without a bound count as very large.
fn has_small_arguments(module: &Module) -> bool {
    let parameters = module.entry_computation().program_shape().parameters;
    let mut leaves = parameters.iter().flat_map(Shape::leaves);
    leaves.all(|(_, leaf)| leaf.element_count() <= MOST_ELEMENTS)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "hlo") {
            files.push(path);
        }
    }
}

/// Returns the module of a file test: the first seeds return each module as it is, further seeds
/// with edits.
pub fn module(seed: u64) -> Result<Module> {
    let count = MODULES.len() as u64;
    if count == 0 {
        return Err(Error::internal("tests/hlo has no modules"));
    }
    let mut module = MODULES[(seed % count) as usize].clone();
    let mut draw = Draw::new(seed ^ 0x65_6469_7473);
    let edits = if seed < count { 0 } else { 1 + draw.below(MOST_EDITS) };
    for _ in 0..edits {
        if let Some(edited) = edited(&module, &mut draw).filter(|edited| hlo::verify(edited).is_ok()) {
            module = edited;
        }
    }
    Ok(module)
}

/// Replaces one value by something else of its shape.
fn edited(module: &Module, draw: &mut Draw) -> Option<Module> {
    let candidates = values(module);
    if candidates.is_empty() {
        return None;
    }
    let (computation, id) = draw.choose(&candidates);
    match draw.below(4) {
        0 if computation == module.entry() => with_parameter(module, id),
        1 => {
            let operands = module[computation][id].operands().len();
            with_operand(module, computation, id, draw.below(operands))
        }
        2 => with_numbers(module, computation, id, draw),
        _ => with_sibling(module, computation, id, draw),
    }
}

/// Replaces the numbers of a constant.
fn with_numbers(
    module: &Module,
    computation: ComputationId,
    id: InstructionId,
    draw: &mut Draw,
) -> Option<Module> {
    let mut module = module.clone();
    let computation = module.computation_mut(computation);
    let Op::Constant { .. } = computation[id].op() else { return None };
    let shape = computation[id].shape().clone();
    shape.as_array()?;
    let numbers = draw.choose(&[Numbers::Edges, Numbers::Gentle, Numbers::Gentle]);
    let literal = draw.literal(&shape, numbers);
    let metadata = computation[id].metadata().clone();
    let new = computation.add("c", Op::Constant { literal }, shape, &[], metadata);
    computation.replace_all_uses(id, new);
    clean(module)
}

/// Replaces a value by an earlier one of its shape.
fn with_sibling(
    module: &Module,
    computation: ComputationId,
    id: InstructionId,
    draw: &mut Draw,
) -> Option<Module> {
    let mut module = module.clone();
    let computation = module.computation_mut(computation);
    let order = computation.post_order();
    let earlier = order.into_iter().take_while(|&other| other != id);
    let siblings: Vec<InstructionId> =
        earlier.filter(|&other| computation[other].shape() == computation[id].shape()).collect();
    if siblings.is_empty() {
        return None;
    }
    computation.replace_all_uses(id, draw.choose(&siblings));
    clean(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_stay_valid_and_later_seeds_change_them() {
        let count = MODULES.len() as u64;
        assert!(count > 300, "{count} modules");
        let mut changed = 0;
        for seed in (0..count).step_by(7) {
            let (original, edited) =
                (module(seed).expect("a module"), module(seed + count).expect("a module"));
            assert_eq!(original, MODULES[seed as usize]);
            hlo::verify(&edited).expect("a valid module");
            changed += u64::from(edited != original);
        }
        assert!(changed > count / 7 / 2, "{changed} of {} modules changed", count / 7);
    }
}
