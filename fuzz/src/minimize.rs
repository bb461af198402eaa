//! Shrinks a failing module.

use crate::Outcome;
use hlo::{ComputationId, InstructionId, Module, Op};
use shape::Shape;
use std::time::{Duration, Instant};

/// Maximum number of trials.
const MOST_TRIALS: usize = 400;

/// No trial starts later than this, so that the result is reported before the parent process times
/// out.
const LONGEST: Duration = Duration::from_secs(45);

/// Drops results, and replaces values by parameters or by operands of their shape, while the module
/// keeps failing in the same way. Returns the smallest module and its failure.
pub fn minimize(module: &Module, why: &str, check: impl Fn(&Module) -> Outcome) -> (Module, String) {
    let (mut best, mut reason) = (module.clone(), why.to_owned());
    let (mut trials, begin) = (0, Instant::now());
    let kind = kind_of(why);
    let mut attempt = |best: &mut Module, reason: &mut String, candidate: Option<Module>| -> bool {
        let Some(candidate) = candidate else { return false };
        trials += 1;
        if trials > MOST_TRIALS || begin.elapsed() > LONGEST || hlo::verify(&candidate).is_err() {
            return false;
        }
        match check(&candidate) {
            Outcome::Failed(why) if kind_of(&why) == kind => {
                (*best, *reason) = (candidate, why);
                true
            }
            _ => false,
        }
    };
    loop {
        let mut changed = false;
        let count = best.entry_computation()[best.entry_computation().root()].operands().len();
        if count > 1 {
            for keep in 0..count {
                let candidate = with_result(&best, keep);
                if attempt(&mut best, &mut reason, candidate) {
                    changed = true;
                    break;
                }
            }
        }
        for (computation, id) in values(&best) {
            if best.get(computation).and_then(|c| c.get(id)).is_none() {
                continue;
            }
            let is_entry = computation == best.entry();
            let operands = best[computation][id].operands().len();
            let mut shrunk = is_entry && {
                let candidate = with_parameter(&best, id);
                attempt(&mut best, &mut reason, candidate)
            };
            for operand in 0..operands {
                shrunk = shrunk || {
                    let candidate = with_operand(&best, computation, id, operand);
                    attempt(&mut best, &mut reason, candidate)
                };
            }
            changed |= shrunk;
        }
        if !changed {
            return (best, reason);
        }
    }
}

/// Returns the part of a failure that must remain the same: the words before the first number.
fn kind_of(why: &str) -> String {
    let text = why.split(':').next().unwrap_or_default();
    text.chars().take_while(|c| !c.is_ascii_digit()).collect()
}

/// Returns the instructions that may be replaced, last ones first.
pub(crate) fn values(module: &Module) -> Vec<(ComputationId, InstructionId)> {
    let mut candidates = Vec::new();
    for (id, computation) in module.computations() {
        for instruction in computation.post_order().into_iter().rev() {
            let op = computation[instruction].op();
            if instruction != computation.root() && !matches!(op, Op::Parameter { .. } | Op::Tuple {}) {
                candidates.push((id, instruction));
            }
        }
    }
    candidates
}

/// Removes dead instructions.
pub(crate) fn clean(mut module: Module) -> Option<Module> {
    let dce = passes::by_name("dce").expect("dce is a pass");
    dce.run(&mut module).ok().map(|_| module)
}

/// Keeps only one of the results.
fn with_result(module: &Module, keep: usize) -> Option<Module> {
    let mut module = module.clone();
    module.set_input_output_alias(Vec::new());
    let entry = module.entry();
    let computation = module.computation_mut(entry);
    let root = computation.root();
    let operand = computation[root].operands()[keep];
    let shape = Shape::Tuple(vec![computation[operand].shape().clone()]);
    let metadata = computation[root].metadata().clone();
    let new = computation.add("", Op::Tuple {}, shape, &[operand], metadata);
    computation.set_root(new);
    clean(module)
}

/// Replaces a value of the entry by a new parameter.
pub(crate) fn with_parameter(module: &Module, id: InstructionId) -> Option<Module> {
    let mut module = module.clone();
    let entry = module.entry();
    let computation = module.computation_mut(entry);
    let shape = computation[id].shape().clone();
    shape.as_array()?;
    if matches!(computation[id].op(), Op::Constant { .. }) {
        return None;
    }
    let number = computation.parameters().len();
    let metadata = computation[id].metadata().clone();
    let new = computation.add("p", Op::Parameter { number }, shape, &[], metadata);
    computation.replace_all_uses(id, new);
    clean(module)
}

/// Replaces a value by an operand of its shape.
pub(crate) fn with_operand(
    module: &Module,
    computation: ComputationId,
    id: InstructionId,
    operand: usize,
) -> Option<Module> {
    let mut module = module.clone();
    let computation = module.computation_mut(computation);
    let operand = *computation[id].operands().get(operand)?;
    if computation[operand].shape() != computation[id].shape() {
        return None;
    }
    computation.replace_all_uses(id, operand);
    clean(module)
}
