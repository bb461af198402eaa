//! The algebraic simplifier: small rewrites, one file per root op.
//!
//! The result of every rule costs less than the original, or is one step closer to a form in which
//! more is fused. The pass therefore reaches its fixpoint without a limit on iterations. Each
//! rule's comment gives `before => after` and the inputs for which it is exact. All rules preserve
//! the signs of zeros and whether an element is NaN, but not the bits of a NaN. Rules see only
//! instructions on static arrays.

mod add;
mod broadcast;
mod compare;
mod concatenate;
mod convert;
mod convolution;
mod divide;
mod dot;
mod dynamic_slice;
mod elementwise;
mod gather;
mod get_dimension_size;
mod graph;
mod iota;
mod logical;
mod maximum;
mod multiply;
mod pad;
mod power;
mod reduce;
mod reduce_window;
mod reshape;
mod reverse;
mod select;
mod slice;
mod transpose;

use crate::pass::{Changed, Pass};
use crate::query::is_static;
use graph::{Graph, Regions};
use hlo::{Computation, InstructionId, Module, Op, Opcode, Traits};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use support::Result;

/// Instructions to which a rule applies.
enum Root {
    /// Instructions of one opcode.
    Is(Opcode),
    /// All elementwise instructions.
    Elementwise,
}

/// A rewrite of one instruction.
struct Rule {
    /// Name of the rule in traces, such as `x-of-y`.
    name: &'static str,
    root: Root,
    /// Returns the instruction that replaces the root, if the rule applies.
    apply: fn(&mut Graph<'_>, InstructionId) -> Option<InstructionId>,
}

/// All rules.
fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        add::RULES,
        broadcast::RULES,
        compare::RULES,
        concatenate::RULES,
        convert::RULES,
        convolution::RULES,
        divide::RULES,
        dot::RULES,
        dynamic_slice::RULES,
        elementwise::RULES,
        gather::RULES,
        get_dimension_size::RULES,
        iota::RULES,
        logical::RULES,
        maximum::RULES,
        multiply::RULES,
        pad::RULES,
        power::RULES,
        reduce::RULES,
        reduce_window::RULES,
        reshape::RULES,
        reverse::RULES,
        select::RULES,
        slice::RULES,
        transpose::RULES,
    ]
    .into_iter()
    .flatten()
}

/// Applies all rules until none applies.
pub struct AlgebraicSimplifier;

impl AlgebraicSimplifier {
    /// Names of all rules.
    pub fn rule_names() -> impl Iterator<Item = &'static str> {
        rules().map(|rule| rule.name)
    }
}

impl Pass for AlgebraicSimplifier {
    fn name(&self) -> &'static str {
        "algebraic-simplifier"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        self.run_rules(module, &mut |_| ControlFlow::Continue(()))
    }

    fn run_rules(
        &self,
        module: &mut Module,
        applied: &mut dyn FnMut(&'static str) -> ControlFlow<()>,
    ) -> Result<Changed> {
        let mut changed = false;
        let regions = graph::regions(module);
        for id in crate::query::executed_computations(module) {
            loop {
                let swept = sweep(module.computation_mut(id), &regions, applied);
                changed |= swept != Swept::Unchanged;
                match swept {
                    Swept::Changed => {}
                    Swept::Unchanged => break,
                    Swept::Stopped => return Ok(Changed::Yes),
                }
            }
        }
        Ok(changed.into())
    }
}

/// Outcome of one pass over a computation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Swept {
    Unchanged,
    Changed,
    /// Changed, and no further rule may be applied.
    Stopped,
}

/// Applies rules in one pass over a computation.
fn sweep(
    computation: &mut Computation,
    regions: &Regions,
    applied: &mut dyn FnMut(&'static str) -> ControlFlow<()>,
) -> Swept {
    let mut swept = Swept::Unchanged;
    let mut by_opcode: BTreeMap<Opcode, Vec<&Rule>> = BTreeMap::new();
    'instructions: for id in computation.post_order() {
        if !is_static(computation, id) || matches!(computation[id].op(), Op::Parameter { .. }) {
            continue;
        }
        let opcode = computation[id].opcode();
        let rules = by_opcode.entry(opcode).or_insert_with(|| {
            let looks_at = |rule: &&Rule| match rule.root {
                Root::Is(root) => root == opcode,
                Root::Elementwise => opcode.traits().contains(Traits::ELEMENTWISE),
            };
            rules().filter(looks_at).collect()
        });
        for rule in rules.iter() {
            let Some(new) = (rule.apply)(&mut Graph { computation, regions }, id) else { continue };
            debug_assert!(new != id, "rule {} returned its root unchanged", rule.name);
            debug_assert!(
                computation[new].shape().compatible(computation[id].shape()),
                "rule {} changed the shape",
                rule.name
            );
            computation.replace_all_uses(id, new);
            swept = Swept::Changed;
            if applied(rule.name).is_break() {
                swept = Swept::Stopped;
                break 'instructions;
            }
            break;
        }
    }
    if swept != Swept::Unchanged {
        crate::simplify::dce::sweep(computation);
    }
    swept
}

#[cfg(test)]
mod tests {
    #[test]
    fn rule_names_are_unique() {
        let mut names: Vec<&str> = super::AlgebraicSimplifier::rule_names().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
