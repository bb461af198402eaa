//! Attention fusion: merges two products and the walk along rows between them into one kernel.

use super::chaining::join;
use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, Op};
use support::Result;

/// Returns true if an attention instruction should be fused.
pub type Judge = Box<dyn Fn(&Module, &Computation, InstructionId) -> bool>;

/// Fuses `dot -> softmax -> dot`, each with its epilogue, if the scores and the weights have no
/// other users. Scale, mask, and bias may follow the first dot in any order. Between the dots,
/// anything is allowed that `row-fusion` turns into one fusion. Exact for every input: the fused
/// instructions are the same. On processors each element is computed as before; kernels of GPUs
/// divide after the second dot.
pub struct AttentionFusion {
    /// Decides about each candidate.
    pub judge: Judge,
}

impl Default for AttentionFusion {
    /// Accepts every candidate.
    fn default() -> Self {
        Self { judge: Box::new(|_, _, _| true) }
    }
}

impl Pass for AttentionFusion {
    fn name(&self) -> &'static str {
        "attention-fusion"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let mut has_candidates = false;
            for last in module[id].post_order() {
                let Some(chain) = chain(module, id, last) else { continue };
                let Some(fusion) = join(module, id, &chain, kind) else { continue };
                // A rejected candidate has no users and is removed by DCE, but it has consumed a
                // name suffix, so the module did change.
                has_candidates = true;
                changed = true;
                if (self.judge)(module, &module[id], fusion) {
                    module.computation_mut(id).replace_all_uses(last, fusion);
                }
            }
            if has_candidates {
                crate::simplify::dce::sweep(module.computation_mut(id));
            }
        }
        module.remove_unreachable_computations();
        Ok(changed.into())
    }
}

/// The instructions to fuse, in order: the product of queries and keys, the instructions in
/// between, and the product with values, `last`. Reshapes may occur in between.
fn chain(module: &Module, id: ComputationId, last: InstructionId) -> Option<Vec<InstructionId>> {
    let caller = &module[id];
    let weights = contracted(module, caller, last)?;
    let mut chain = vec![last];
    let softmax = before_reshapes(caller, weights, last, &mut chain)?;
    let Op::Fusion { kind: FusionKind::Rows | FusionKind::Reduce, .. } = caller[softmax].op() else {
        return None;
    };
    caller[softmax].shape().as_array()?;
    // Exactly one of the walked arrays is a product.
    let mut scores_and_between = None;
    for &operand in caller[softmax].operands() {
        let mut between = vec![softmax];
        let Some(scores) = before_reshapes(caller, operand, softmax, &mut between) else { continue };
        if contracted(module, caller, scores).is_some()
            && scores_and_between.replace((scores, between)).is_some()
        {
            return None;
        }
    }
    let (scores, between) = scores_and_between?;
    chain.extend(between);
    chain.push(scores);
    chain.reverse();
    Some(chain)
}

/// The kind of a fusion of two dots.
fn kind(dots: &[InstructionId]) -> Option<FusionKind> {
    let &[scores, values] = dots else { return None };
    Some(FusionKind::Attention { scores, values })
}

/// The left operand of a dot, or of the dot in a fusion's body if it is an operand of the fusion.
fn contracted(module: &Module, caller: &Computation, id: InstructionId) -> Option<InstructionId> {
    let instruction = &caller[id];
    match instruction.op() {
        Op::Dot { .. } => Some(instruction.operands()[0]),
        Op::Fusion { kind: FusionKind::Dot { dot }, calls, .. } => {
            let body = &module[*calls];
            match body[body[*dot].operands()[0]].op() {
                Op::Parameter { number } => Some(instruction.operands()[*number]),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The instruction upstream of reshapes, if `reader` is its only user and each reshape has one
/// user. The reshapes are added to the chain.
fn before_reshapes(
    caller: &Computation,
    operand: InstructionId,
    reader: InstructionId,
    chain: &mut Vec<InstructionId>,
) -> Option<InstructionId> {
    let (mut id, mut reader) = (operand, reader);
    loop {
        let reads = caller[reader].operands().iter().filter(|&&o| o == id).count();
        if caller[id].users().len() != 1 || reads != 1 || caller.root() == id {
            return None;
        }
        if !matches!(caller[id].op(), Op::Reshape {} | Op::Bitcast {}) {
            return Some(id);
        }
        chain.push(id);
        reader = id;
        id = caller[id].operands()[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const ATTENTION: &str = "HloModule attention

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

weights {
  s = f32[4,4] parameter(0)
  e = f32[4,4] exponential(s)
  zero = f32[] constant(0)
  t = f32[4] reduce(e, zero), dimensions={1}, to_apply=sum
  b = f32[4,4] broadcast(t), dimensions={0}
  ROOT w = f32[4,4] divide(e, b)
}

ENTRY main {
  q = f32[4,8] parameter(0)
  k = f32[8,4] parameter(1)
  v = f32[4,8] parameter(2)
  scores = f32[4,4] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  fusion = f32[4,4] fusion(scores), kind=kInput, calls=weights
  ROOT fusion.2 = f32[4,8] dot(fusion, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
";

    #[test]
    fn a_rejected_candidate_is_a_change_if_it_consumes_a_name() {
        // Names like `fusion` already exist.
        let mut module = hlo::parse(ATTENTION).expect("a module");
        let before = module.clone();
        let calls = Arc::new(AtomicUsize::new(0));
        let calls_in_judge = calls.clone();
        let judge = move |_: &Module, _: &Computation, _: InstructionId| {
            calls_in_judge.fetch_add(1, Ordering::Relaxed);
            false
        };
        let changed = AttentionFusion { judge: Box::new(judge) }.run(&mut module).expect("no error");
        assert_eq!(calls.load(Ordering::Relaxed), 1, "the chain is a candidate");
        assert_eq!(module.to_text(), before.to_text());
        assert!(changed == Changed::Yes || module == before, "the reported change is accurate");
        assert!(module != before, "the candidate consumed a name");
    }
}
