//! How often control flow runs the computations of a program.

use super::cost::iterations;
use crate::{ComputationId, InstructionId, Module, Op};
use std::collections::{BTreeMap, BTreeSet};

/// How often one run of the entry runs each computation that `call`, `while` and `conditional` lead to; `None` where data decides.
pub fn executions(module: &Module) -> BTreeMap<ComputationId, Option<u64>> {
    let module = &without_fusions(module);
    let mut counts: BTreeMap<ComputationId, Option<u64>> = BTreeMap::from([(module.entry(), Some(1))]);
    for caller in callers_first(module) {
        let count = counts.get(&caller).copied().flatten();
        for (callee, times) in callees(module, caller) {
            let more = count.zip(times).and_then(|(count, times)| count.checked_mul(times));
            counts
                .entry(callee)
                .and_modify(|sum| *sum = sum.zip(more).and_then(|(sum, more)| sum.checked_add(more)))
                .or_insert(more);
        }
    }
    counts
}

/// The module with the bodies of fusions in their places, where trip counts see what indices do.
fn without_fusions(module: &Module) -> Module {
    let mut plain = module.clone();
    for id in callers_first(module) {
        for instruction in module[id].post_order() {
            let Op::Fusion { calls, .. } = module[id][instruction].op() else { continue };
            let fused = &module[*calls];
            let computation = plain.computation_mut(id);
            let operands = computation[instruction].operands().to_vec();
            let elements: Vec<(InstructionId, usize)> = computation[instruction]
                .users()
                .iter()
                .filter_map(|&user| match computation[user].op() {
                    Op::GetTupleElement { index } => Some((user, *index)),
                    _ => None,
                })
                .collect();
            computation.inline(instruction, fused, &operands);
            for (user, index) in elements {
                let tuple = &computation[computation[user].operands()[0]];
                if let (Op::Tuple {}, Some(&element)) = (tuple.op(), tuple.operands().get(index)) {
                    computation.replace_all_uses(user, element);
                }
            }
        }
    }
    plain
}

/// What a computation's control flow runs, and how often for each of its own runs.
fn callees(module: &Module, caller: ComputationId) -> Vec<(ComputationId, Option<u64>)> {
    let mut found = Vec::new();
    for (id, instruction) in module[caller].instructions() {
        match instruction.op() {
            Op::Call { to_apply } => found.push((*to_apply, Some(1))),
            Op::While { condition, body } => {
                let rounds = iterations(module, &module[caller], id);
                found.push((*condition, rounds.and_then(|rounds| rounds.checked_add(1))));
                found.push((*body, rounds));
            }
            Op::Conditional { branch_computations } => {
                found.extend(branch_computations.iter().map(|&branch| (branch, None)));
            }
            _ => {}
        }
    }
    found
}

/// The computations that control flow leads to from the entry, each in front of those that it runs.
fn callers_first(module: &Module) -> Vec<ComputationId> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::from([module.entry()]));
    let mut stack = vec![(module.entry(), callees(module, module.entry()))];
    while let Some((computation, rest)) = stack.last_mut() {
        match rest.pop() {
            Some((callee, _)) => {
                if seen.insert(callee) {
                    stack.push((callee, callees(module, callee)));
                }
            }
            None => {
                order.push(*computation);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_nested_loops_multiply_and_branches_are_not_known() {
        let text = r#"
HloModule nested

branch { ROOT x = s32[] parameter(0) }
other { ROOT x = s32[] parameter(0) }

advance {
  n = s32[] parameter(0)
  one = s32[] constant(1)
  next = s32[] add(n, one)
  ROOT both = (s32[], s32[]) tuple(one, next)
}

inner.body {
  p = (s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  both = (s32[], s32[]) fusion(n), kind=kLoop, calls=advance
  next = s32[] get-tuple-element(both), index=1
  ROOT t = (s32[]) tuple(next)
}

is_less {
  n = s32[] parameter(0)
  most = s32[] constant(5)
  ROOT less = pred[] compare(n, most), direction=LT
}

inner.condition {
  p = (s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  ROOT less = pred[] fusion(n), kind=kLoop, calls=is_less
}

outer.body {
  p = (s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  zero = s32[] constant(0)
  start = (s32[]) tuple(zero)
  inner = (s32[]) while(start), condition=inner.condition, body=inner.body
  one = s32[] constant(1)
  next = s32[] add(n, one)
  ROOT t = (s32[]) tuple(next)
}

outer.condition {
  p = (s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant(3)
  ROOT less = pred[] compare(n, most), direction=LT
}

ENTRY main {
  choice = s32[] parameter(0)
  zero = s32[] constant(0)
  start = (s32[]) tuple(zero)
  outer = (s32[]) while(start), condition=outer.condition, body=outer.body
  chosen = s32[] conditional(choice, zero, zero), branch_computations={branch, other}
  ROOT t = ((s32[]), s32[]) tuple(outer, chosen)
}
"#;
        let module = crate::parse(text).expect("valid");
        let counts = executions(&module);
        let of = |name: &str| {
            let (id, _) = module.computations().find(|(_, c)| c.name() == name).expect("a computation");
            counts[&id]
        };
        assert_eq!(of("main"), Some(1));
        assert_eq!((of("outer.body"), of("outer.condition")), (Some(3), Some(4)));
        assert_eq!((of("inner.body"), of("inner.condition")), (Some(15), Some(18)));
        assert_eq!((of("branch"), of("other")), (None, None));
    }
}
