//! Computations of scalars, which reductions, maps, scatters, and sorts apply to elements.

use crate::context::KernelContext;
use crate::element::Element;
use crate::elemental;
use hlo::{Computation, ComputationId, InstructionId, Op};
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Maximum nesting depth of calls between computations.
const MAX_DEPTH: usize = 64;

impl KernelContext<'_> {
    /// Applies a computation to elements, one per parameter, and returns the leaves of its result.
    /// The code is built in the current region; the result has as many lanes as the widest
    /// argument.
    pub fn apply(&mut self, computation: ComputationId, arguments: &[Element]) -> Result<Vec<Element>> {
        self.apply_at(computation, arguments, 0)
    }

    fn apply_at(&mut self, id: ComputationId, arguments: &[Element], depth: usize) -> Result<Vec<Element>> {
        if depth > MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "computations are nested more than {MAX_DEPTH} calls deep"
            )));
        }
        let computation = &self.module[id];
        if let (Some(table), &[index]) = (hlo::byte_table(computation), arguments) {
            let index = index.real();
            let depth = self.depth_of_all([index]);
            let table = table.bytes().to_vec();
            return Ok(vec![Element::Real(self.at(depth, |b| b.byte_lookup(table, index)))]);
        }
        let mut values: BTreeMap<InstructionId, Vec<Element>> = BTreeMap::new();
        for id in computation.post_order() {
            let instruction = &computation[id];
            let operands: Vec<&[Element]> = instruction.operands().iter().map(|o| &values[o][..]).collect();
            let one = |k: usize| operands[k].to_vec();
            let value = match instruction.op() {
                Op::Parameter { number } => {
                    let argument = arguments.get(*number).copied();
                    vec![argument.ok_or_else(|| Error::internal("missing argument for a parameter"))?]
                }
                Op::Constant { literal } => vec![self.at(1, |b| elemental::constant(b, literal, 0, 1))?],
                Op::Tuple {} => operands.concat(),
                Op::GetTupleElement { index } => vec![tuple_element(operands[0], *index)?],
                Op::Broadcast { .. }
                | Op::Reshape {}
                | Op::Bitcast {}
                | Op::Copy {}
                | Op::OptimizationBarrier {} => {
                    scalar_only(computation, id)?;
                    one(0)
                }
                Op::Call { to_apply } | Op::Map { to_apply, .. } | Op::Fusion { calls: to_apply, .. } => {
                    scalar_only(computation, id)?;
                    let arguments = operands.concat();
                    self.apply_at(*to_apply, &arguments, depth + 1)?
                }
                op => {
                    let types: Vec<PrimitiveType> = instruction
                        .operands()
                        .iter()
                        .map(|&o| element_type(computation, o))
                        .collect::<Result<_>>()?;
                    let arguments = operands.concat();
                    vec![self.compute(op, &types, element_type(computation, id)?, &arguments)?]
                }
            };
            values.insert(id, value);
        }
        values
            .remove(&computation.root())
            .ok_or_else(|| Error::internal("missing value of the computation's root"))
    }
}

fn tuple_element(elements: &[Element], index: usize) -> Result<Element> {
    elements.get(index).copied().ok_or_else(|| Error::unsupported("nested tuples of scalars"))
}

fn element_type(computation: &Computation, id: InstructionId) -> Result<PrimitiveType> {
    scalar_only(computation, id)?;
    let shape = computation[id].shape().as_array();
    shape
        .map(|s| s.element_type)
        .ok_or_else(|| Error::unsupported("expected an element in a computation of scalars, got a tuple"))
}

fn scalar_only(computation: &Computation, id: InstructionId) -> Result<()> {
    let instruction = &computation[id];
    if instruction.shape().leaves().iter().all(|(_, leaf)| leaf.element_count() == 1) {
        return Ok(());
    }
    let shape = instruction.shape();
    Err(Error::unsupported(format!("{} of shape {shape} in a computation of scalars", instruction.name())))
}
