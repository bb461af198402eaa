//! Puts the bodies of kernels into one computation.

use super::body::{Body, memory};
use hlo::{Computation, ComputationId, FusionKind, InstructionId, Module, Op, OpMetadata};
use shape::Shape;
use std::collections::BTreeMap;

/// One computation in the making.
struct Merged<'m> {
    module: &'m Module,
    caller: &'m Computation,
    fused: Computation,
    /// Arrays in memory, in the order of the parameters that they are.
    operands: Vec<InstructionId>,
    parameters: BTreeMap<InstructionId, InstructionId>,
    /// The instruction in here that a member has become.
    made: BTreeMap<InstructionId, InstructionId>,
}

/// Replaces kernels, given in the order of their computation, by one.
pub(super) fn fuse(module: &mut Module, id: ComputationId, members: &[InstructionId]) {
    let caller = &module[id];
    let mut merged = Merged {
        module,
        caller,
        fused: Computation::new("fused_computation"),
        operands: Vec::new(),
        parameters: BTreeMap::new(),
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
    let shapes: Vec<Shape> = results.iter().map(|&member| caller[member].shape().clone()).collect();
    let metadata = metadata(caller, members);
    let Merged { mut fused, operands, .. } = merged;
    if let [root] = roots[..] {
        fused.set_root(root);
        let op = fused[root].op().clone();
        let kind = if matches!(op, Op::Reduce { .. }) { FusionKind::Input } else { FusionKind::Loop };
        let calls = module.add_computation(fused);
        let caller = module.computation_mut(id);
        let op = Op::Fusion { kind, calls };
        let fusion = caller.add("fusion", op, shapes[0].clone(), &operands, metadata);
        caller.replace_all_uses(results[0], fusion);
        return;
    }
    let shape = Shape::Tuple(shapes.clone());
    let root = fused.add("", Op::Tuple {}, shape.clone(), &roots, OpMetadata::default());
    fused.set_root(root);
    let calls = module.add_computation(fused);
    let caller = module.computation_mut(id);
    let op = Op::Fusion { kind: FusionKind::Loop, calls };
    let fusion = caller.add("fusion", op, shape, &operands, metadata);
    for (index, (member, shape)) in results.into_iter().zip(shapes).enumerate() {
        let metadata = caller[member].metadata().clone();
        let element = caller.add("", Op::GetTupleElement { index }, shape, &[fusion], metadata);
        caller.replace_all_uses(member, element);
    }
}

impl Merged<'_> {
    /// Copies the body of a member; what it reads of members before it is what they have become.
    fn add(&mut self, member: InstructionId) {
        let body = Body::of(self.module, self.caller, member);
        let mut copies: BTreeMap<InstructionId, InstructionId> = BTreeMap::new();
        for id in body.instructions() {
            let instruction = &body.computation[id];
            for &operand in instruction.operands() {
                if let Some(array) = body.outside(operand) {
                    let value = self.value(array);
                    copies.insert(operand, value);
                }
            }
            let operands: Vec<InstructionId> = instruction.operands().iter().map(|o| copies[o]).collect();
            let (op, shape) = (instruction.op().clone(), instruction.shape().clone());
            let copy =
                self.fused.add(instruction.name(), op, shape, &operands, instruction.metadata().clone());
            copies.insert(id, copy);
        }
        self.made.insert(member, copies[&body.root]);
    }

    /// The value of an array of the caller: a member's, seen through reshapes, or a parameter.
    fn value(&mut self, array: InstructionId) -> InstructionId {
        if let Some(&known) = self.made.get(&array) {
            return known;
        }
        if let Some(&made) = self.made.get(&memory(self.caller, array)) {
            let shape = self.caller[array].shape().clone();
            return self.fused.add("", Op::Reshape {}, shape, &[made], OpMetadata::default());
        }
        if let Some(&known) = self.parameters.get(&array) {
            return known;
        }
        let number = self.operands.len();
        let shape = self.caller[array].shape().clone();
        let name = format!("param_{number}");
        let parameter = self.fused.add(&name, Op::Parameter { number }, shape, &[], OpMetadata::default());
        self.operands.push(array);
        self.parameters.insert(array, parameter);
        parameter
    }
}

/// The origin of the last member that has one.
fn metadata(caller: &Computation, members: &[InstructionId]) -> OpMetadata {
    let mut all = members.iter().rev().map(|&member| caller[member].metadata());
    all.find(|m| !m.op_name.is_empty()).cloned().unwrap_or_default()
}
