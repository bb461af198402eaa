//! Convolution chaining: merges successive convolutions into one kernel if that saves time.

use super::body::{FusedBody, add_fusion};
use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, Op, OpMetadata};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// The gain, in any unit, of computing convolutions, each the only reader of the previous one, in
/// one kernel; `None` if that is impossible or undesirable.
pub type Saving = Box<dyn Fn(&Module, &Computation, &[InstructionId]) -> Option<u64>>;

/// Fuses convolutions and their epilogues with the convolutions that read them. Among all divisions
/// of a sequence of convolutions into chains, the pass chooses one with the largest gain. Exact for
/// every input: each element is computed as before, some more than once.
pub struct ConvolutionChaining {
    /// Upper bound of the convolutions per chain.
    pub max_stages: usize,
    /// Estimates the gain of a chain.
    pub saving: Saving,
}

impl Default for ConvolutionChaining {
    /// Counts the bytes of the arrays between convolutions as the gain, regardless of the cost.
    fn default() -> Self {
        let between = |_: &Module, computation: &Computation, chain: &[InstructionId]| {
            let bytes = chain.iter().rev().skip(1).map(|&id| computation[id].shape().byte_size());
            Some(bytes.fold(0, u64::saturating_add))
        };
        Self { max_stages: 3, saving: Box::new(between) }
    }
}

impl Pass for ConvolutionChaining {
    fn name(&self) -> &'static str {
        "convolution-chaining"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            for sequence in sequences(module, id) {
                for chain in self.best_cut(module, id, &sequence) {
                    fuse(module, id, &chain);
                    changed = true;
                }
            }
            changed |= crate::simplify::dce::sweep(module.computation_mut(id));
        }
        changed |= module.remove_unreachable_computations();
        Ok(changed.into())
    }
}

impl ConvolutionChaining {
    /// The chains of at least two convolutions with the largest total gain.
    fn best_cut(
        &self,
        module: &Module,
        id: ComputationId,
        sequence: &[InstructionId],
    ) -> Vec<Vec<InstructionId>> {
        // For each number of convolutions from the beginning: (largest gain, length of the last
        // chain).
        let mut best = vec![(0u64, 0usize)];
        for end in 1..=sequence.len() {
            let (mut gain, mut length) = (best[end - 1].0, 1);
            for stages in 2..=self.max_stages.min(end) {
                let begin = end - stages;
                let saving = (self.saving)(module, &module[id], &sequence[begin..end]);
                if let Some(saving) = saving.filter(|&saving| saving > 0) {
                    let total = best[begin].0.saturating_add(saving);
                    if total > gain {
                        (gain, length) = (total, stages);
                    }
                }
            }
            best.push((gain, length));
        }
        let (mut chains, mut end) = (Vec::new(), sequence.len());
        while end > 0 {
            let begin = end - best[end].1;
            if end - begin > 1 {
                chains.push(sequence[begin..end].to_vec());
            }
            end = begin;
        }
        chains
    }
}

/// Maximal sequences of convolutions, each the only reader of the previous one.
fn sequences(module: &Module, id: ComputationId) -> Vec<Vec<InstructionId>> {
    let computation = &module[id];
    let order = computation.post_order();
    let convolutions: BTreeSet<InstructionId> =
        order.iter().copied().filter(|&i| input_of(module, computation, i).is_some()).collect();
    let mut next = BTreeMap::new();
    for &reader in &order {
        let Some(input) = input_of(module, computation, reader) else { continue };
        let is_only = computation[input].users().len() == 1 && computation.root() != input;
        if convolutions.contains(&input) && is_only {
            next.insert(input, reader);
        }
    }
    let followers: BTreeSet<InstructionId> = next.values().copied().collect();
    let mut sequences = Vec::new();
    for &first in order.iter().filter(|i| convolutions.contains(i) && !followers.contains(i)) {
        let sequence: Vec<InstructionId> =
            std::iter::successors(Some(first), |last| next.get(last).copied()).collect();
        if sequence.len() > 1 {
            sequences.push(sequence);
        }
    }
    sequences
}

/// The array that the convolution of an instruction, or of its body, reads, if it is an operand of
/// the instruction.
fn input_of(module: &Module, computation: &Computation, id: InstructionId) -> Option<InstructionId> {
    let instruction = &computation[id];
    match instruction.op() {
        Op::Convolution { .. } => Some(instruction.operands()[0]),
        Op::Fusion { kind: FusionKind::Convolution { convolution }, calls, .. } => {
            let body = &module[*calls];
            match body[body[*convolution].operands()[0]].op() {
                Op::Parameter { number } => Some(instruction.operands()[*number]),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Replaces the last instruction of a chain by a fusion of all. The others lose their only reader.
fn fuse(module: &mut Module, id: ComputationId, chain: &[InstructionId]) {
    let kind = |heroes: &[InstructionId]| heroes.last().map(|&last| FusionKind::Chain { last });
    let (Some(new), Some(&last)) = (join(module, id, chain, kind), chain.last()) else { return };
    module.computation_mut(id).replace_all_uses(last, new);
}

/// Adds a fusion of instructions and bodies of fusions, each of which reads earlier ones; the last
/// one is the result. `kind` receives the contractions in the new body, in the order of the chain.
pub(crate) fn join(
    module: &mut Module,
    id: ComputationId,
    chain: &[InstructionId],
    kind: impl FnOnce(&[InstructionId]) -> Option<FusionKind>,
) -> Option<InstructionId> {
    let caller = &module[id];
    let mut operands: Vec<InstructionId> = Vec::new();
    for &link in chain {
        for &operand in caller[link].operands() {
            if !chain.contains(&operand) && !operands.contains(&operand) {
                operands.push(operand);
            }
        }
    }
    let mut body = FusedBody::new(caller, &operands);
    let mut heroes = Vec::new();
    for &link in chain {
        heroes.extend(copy_link(module, caller, link, &mut body));
    }
    let &last = chain.last()?;
    let (root, kind, metadata) = (body.get(last)?, kind(&heroes)?, metadata(module, caller, last));
    Some(add_fusion(module, id, kind, body.finish(&[root]), &operands, metadata))
}

/// Copies an instruction or the body of a fusion. Returns the copy of its contraction.
fn copy_link(
    module: &Module,
    caller: &Computation,
    link: InstructionId,
    fused: &mut FusedBody,
) -> Option<InstructionId> {
    let instruction = &caller[link];
    let Op::Fusion { kind, calls, .. } = instruction.op() else {
        let copy = fused.copy(caller, link);
        return FusionKind::with_hero(instruction.op(), copy).hero();
    };
    let body = &module[*calls];
    let mut copies = BTreeMap::new();
    for id in body.post_order() {
        let copy = if let Op::Parameter { number } = body[id].op() {
            fused.get(instruction.operands()[*number])?
        } else {
            let operands: Vec<InstructionId> = body[id].operands().iter().map(|o| copies[o]).collect();
            fused.copy_one(body, id, &operands)
        };
        copies.insert(id, copy);
    }
    fused.set(link, copies[&body.root()]);
    kind.hero().map(|hero| copies[&hero])
}

/// Metadata of the instruction, or of its body's root.
fn metadata(module: &Module, caller: &Computation, id: InstructionId) -> OpMetadata {
    let own = caller[id].metadata();
    match caller[id].op() {
        Op::Fusion { calls, .. } if own.op_name.is_empty() => {
            module[*calls][module[*calls].root()].metadata().clone()
        }
        _ => own.clone(),
    }
}
