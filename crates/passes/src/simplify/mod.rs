//! The algebraic simplifier: small rewrites, one file for each root op.
//!
//! Every rule goes downhill (its result costs less than what it replaces), so the pass runs to its fixpoint without a
//! fuse. Each rule's comment gives `before => after` and for which inputs it is exact.

mod broadcast;
mod convert;
mod dot;
mod reduce;
mod reshape;
mod slice;
mod transpose;

use crate::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, Opcode};
use support::Result;

/// A rewrite of one instruction.
struct Rule {
    /// `x-of-y`, for the reader of a trace.
    name: &'static str,
    root: Opcode,
    /// The instruction that replaces the root, if the rule applies.
    apply: fn(&mut Computation, InstructionId) -> Option<InstructionId>,
}

/// Every rule.
fn rules() -> impl Iterator<Item = &'static Rule> {
    [broadcast::RULES, convert::RULES, dot::RULES, reduce::RULES, reshape::RULES, slice::RULES, transpose::RULES]
        .into_iter()
        .flatten()
}

/// Applies every rule until none applies.
pub struct AlgebraicSimplifier;

impl Pass for AlgebraicSimplifier {
    fn name(&self) -> &'static str {
        "algebraic-simplifier"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in module.post_order() {
            while sweep(module.computation_mut(id)) {
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// One pass over a computation; whether a rule applied.
fn sweep(computation: &mut Computation) -> bool {
    let mut changed = false;
    for id in computation.post_order() {
        if computation.get(id).is_none() {
            continue;
        }
        let opcode = computation[id].opcode();
        for rule in rules().filter(|rule| rule.root == opcode) {
            let Some(new) = (rule.apply)(computation, id) else { continue };
            debug_assert!(
                computation[new].shape().compatible(computation[id].shape()),
                "{} changed the shape",
                rule.name
            );
            computation.replace_all_uses(id, new);
            changed = true;
            break;
        }
    }
    if changed {
        crate::dce::sweep(computation);
    }
    changed
}

/// Adds an instruction in the place of `root`, with its metadata.
fn replacement(
    computation: &mut Computation,
    root: InstructionId,
    op: Op,
    operands: &[InstructionId],
) -> InstructionId {
    let (shape, metadata) = (computation[root].shape().clone(), computation[root].metadata().clone());
    computation.add("", op, shape, operands, metadata)
}

#[cfg(test)]
mod tests {
    #[test]
    fn rule_names_are_unique() {
        let mut names: Vec<&str> = super::rules().map(|rule| rule.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
