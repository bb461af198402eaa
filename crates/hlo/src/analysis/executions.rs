//! Execution counts of a program's computations.

use super::cost::iterations;
use crate::{ComputationId, InstructionId, Module, Op};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the number of executions per run of the entry for each computation that `call`, `while`,
/// and `conditional` reach; `None` if it is data-dependent.
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

/// Returns the exact number of iterations of each loop that control flow reaches from the entry,
/// unless it is data-dependent.
pub fn loop_iterations(module: &Module) -> BTreeMap<(ComputationId, InstructionId), u64> {
    let plain = without_fusions(module);
    let mut counts = BTreeMap::new();
    for caller in callers_first(module) {
        for (id, instruction) in module[caller].instructions() {
            if matches!(instruction.op(), Op::While { .. })
                && let Some(count) = iterations(&plain, &plain[caller], id)
            {
                counts.insert((caller, id), count);
            }
        }
    }
    counts
}

/// Returns the module with all fusions inlined, so that trip counts can follow indices through
/// them.
fn without_fusions(module: &Module) -> Module {
    let mut inlined = module.clone();
    for id in callers_first(module) {
        for instruction in module[id].post_order() {
            let Op::Fusion { calls, .. } = module[id][instruction].op() else { continue };
            let body = &module[*calls];
            let computation = inlined.computation_mut(id);
            let operands = computation[instruction].operands().to_vec();
            let elements: Vec<(InstructionId, usize)> = computation[instruction]
                .users()
                .iter()
                .filter_map(|&user| match computation[user].op() {
                    Op::GetTupleElement { index } => Some((user, *index)),
                    _ => None,
                })
                .collect();
            computation.inline(instruction, body, &operands);
            for (user, index) in elements {
                let tuple = &computation[computation[user].operands()[0]];
                if let (Op::Tuple {}, Some(&element)) = (tuple.op(), tuple.operands().get(index)) {
                    computation.replace_all_uses(user, element);
                }
            }
        }
    }
    inlined
}

/// Returns the computations that a computation's control flow executes, with their executions per
/// execution of the caller.
fn callees(module: &Module, caller: ComputationId) -> Vec<(ComputationId, Option<u64>)> {
    let mut callees = Vec::new();
    for (id, instruction) in module[caller].instructions() {
        match instruction.op() {
            Op::Call { to_apply } => callees.push((*to_apply, Some(1))),
            Op::While { condition, body } => {
                let iteration_count = iterations(module, &module[caller], id);
                callees.push((
                    *condition,
                    iteration_count.and_then(|iteration_count| iteration_count.checked_add(1)),
                ));
                callees.push((*body, iteration_count));
            }
            Op::Conditional { branch_computations } => {
                callees.extend(branch_computations.iter().map(|&branch| (branch, None)));
            }
            _ => {}
        }
    }
    callees
}

/// Returns the computations that control flow reaches from the entry, callers before callees.
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
    fn counts_of_nested_loops_multiply_and_branches_are_unknown() {
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
        let count_of = |name: &str| {
            let (id, _) = module.computations().find(|(_, c)| c.name() == name).expect("a computation");
            counts[&id]
        };
        assert_eq!(count_of("main"), Some(1));
        assert_eq!((count_of("outer.body"), count_of("outer.condition")), (Some(3), Some(4)));
        assert_eq!((count_of("inner.body"), count_of("inner.condition")), (Some(15), Some(18)));
        assert_eq!((count_of("branch"), count_of("other")), (None, None));
    }
}
