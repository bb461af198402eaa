//! Puts the bodies of kernels into one computation.

use super::body::{Body, memory};
use crate::fusion::body::{FusedBody, add_fusion, replace_results};
use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, Op, OpMetadata};
use std::collections::BTreeMap;

/// One computation in the making.
struct Merged<'m> {
    module: &'m Module,
    caller: &'m Computation,
    body: FusedBody,
    /// Arrays in memory, in the order of the parameters that they are.
    operands: Vec<InstructionId>,
    /// The instruction in here that a member has become.
    made: BTreeMap<InstructionId, InstructionId>,
}

/// Replaces kernels, given in the order of their computation, by one.
pub(super) fn fuse(module: &mut Module, id: ComputationId, members: &[InstructionId]) {
    let caller = &module[id];
    let mut merged = Merged {
        module,
        caller,
        body: FusedBody::new(caller, &[]),
        operands: Vec::new(),
        made: BTreeMap::new(),
    };
    members.iter().for_each(|&member| merged.add(member));
    let is_needed = |&member: &InstructionId| {
        let mut pending = vec![member];
        let mut is_needed = caller.root() == member;
        while let Some(at) = pending.pop() {
            for &user in caller[at].users() {
                match caller[user].op() {
                    Op::Reshape {} | Op::Bitcast {} => pending.push(user),
                    _ => is_needed |= !members.contains(&user),
                }
                is_needed |= user == caller.root();
            }
        }
        is_needed
    };
    let results: Vec<InstructionId> = members.iter().copied().filter(is_needed).collect();
    let roots: Vec<InstructionId> = results.iter().map(|member| merged.made[member]).collect();
    let metadata = metadata(caller, members);
    let Merged { body, operands, .. } = merged;
    let body = body.finish(&roots);
    let kind = FusionKind::with_hero(body[body.root()].op(), body.root());
    let fusion = add_fusion(module, id, kind, body, &operands, metadata);
    replace_results(module.computation_mut(id), fusion, &results);
}

impl Merged<'_> {
    /// Copies the body of a member; what it reads of members before it is what they have become.
    fn add(&mut self, member: InstructionId) {
        let body = Body::of(self.module, self.caller, member);
        let mut copies: BTreeMap<InstructionId, InstructionId> = BTreeMap::new();
        for id in body.instructions() {
            for &operand in body.computation[id].operands() {
                if let Some(array) = body.outside(operand) {
                    let value = self.value(array);
                    copies.insert(operand, value);
                }
            }
            let operands: Vec<InstructionId> =
                body.computation[id].operands().iter().map(|o| copies[o]).collect();
            copies.insert(id, self.body.copy_one(body.computation, id, &operands));
        }
        self.made.insert(member, copies[&body.root]);
    }

    /// The value of an array of the caller: a member's, seen through reshapes, or a parameter.
    fn value(&mut self, array: InstructionId) -> InstructionId {
        if let Some(&known) = self.made.get(&array) {
            return known;
        }
        if let Some(&made) = self.made.get(&memory(self.caller, array)) {
            return self.body.reshape(made, self.caller[array].shape().clone());
        }
        self.body.get(array).unwrap_or_else(|| {
            self.operands.push(array);
            self.body.parameter(self.caller, array)
        })
    }
}

/// The origin of the last member that has one.
fn metadata(caller: &Computation, members: &[InstructionId]) -> OpMetadata {
    let mut all = members.iter().rev().map(|&member| caller[member].metadata());
    all.find(|m| !m.op_name.is_empty()).cloned().unwrap_or_default()
}
