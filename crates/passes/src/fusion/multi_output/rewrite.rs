//! Merges the bodies of kernels into one computation.

use super::body::{Body, memory};
use crate::fusion::body::{FusedBody, add_fusion, replace_results};
use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, Op, OpMetadata};
use std::collections::BTreeMap;

/// A merged computation under construction.
struct Merged<'m> {
    module: &'m Module,
    caller: &'m Computation,
    body: FusedBody,
    /// Arrays in memory, in the order of their parameters.
    operands: Vec<InstructionId>,
    /// The counterpart, in this body, of each member.
    counterparts: BTreeMap<InstructionId, InstructionId>,
}

/// Merges kernels, given in order of execution, into one.
pub(super) fn fuse(module: &mut Module, id: ComputationId, members: &[InstructionId]) {
    let caller = &module[id];
    let mut merged = Merged {
        module,
        caller,
        body: FusedBody::new(caller, &[]),
        operands: Vec::new(),
        counterparts: BTreeMap::new(),
    };
    members.iter().for_each(|&member| merged.add(member));
    let is_needed = |&member: &InstructionId| {
        let mut pending = vec![member];
        let mut is_needed = caller.root() == member;
        while let Some(current) = pending.pop() {
            for &user in caller[current].users() {
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
    let roots: Vec<InstructionId> = results.iter().map(|member| merged.counterparts[member]).collect();
    let metadata = metadata(caller, members);
    let Merged { body, operands, .. } = merged;
    let body = body.finish(&roots);
    let kind = FusionKind::with_hero(body[body.root()].op(), body.root());
    let fusion = add_fusion(module, id, kind, body, &operands, metadata);
    replace_results(module.computation_mut(id), fusion, &results);
}

impl Merged<'_> {
    /// Copies the body of a member. Reads of earlier members become reads of their counterparts.
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
        self.counterparts.insert(member, copies[&body.root]);
    }

    /// The value of an array of the caller: that of a member, seen through reshapes, or a
    /// parameter.
    fn value(&mut self, array: InstructionId) -> InstructionId {
        if let Some(&value) = self.counterparts.get(&array) {
            return value;
        }
        if let Some(&member) = self.counterparts.get(&memory(self.caller, array)) {
            return self.body.reshape(member, self.caller[array].shape().clone());
        }
        self.body.get(array).unwrap_or_else(|| {
            self.operands.push(array);
            self.body.parameter(self.caller, array)
        })
    }
}

/// Metadata of the last member that has some.
fn metadata(caller: &Computation, members: &[InstructionId]) -> OpMetadata {
    let mut all = members.iter().rev().map(|&member| caller[member].metadata());
    all.find(|m| !m.op_name.is_empty()).cloned().unwrap_or_default()
}
