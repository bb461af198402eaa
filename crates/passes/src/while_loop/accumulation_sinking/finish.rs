//! Adds the code after the loop: one product or sum over all rows for each sunk term.

use super::is_zero;
use super::terms::{Accumulator, Term, TermKind};
use crate::while_loop::Loop;
use crate::while_loop::rows::Rows;
use hlo::{Computation, DotDimensionNumbers, InstructionId, Module, Op, OpMetadata};
use shape::ArrayShape;
use std::collections::BTreeMap;

/// Removes the sunk terms of one accumulator from the body and adds them after the loop.
pub(super) fn accumulator(
    module: &mut Module,
    while_loop: Loop,
    accumulator: &Accumulator,
    values: &BTreeMap<InstructionId, InstructionId>,
    rows: &Rows,
    count: i64,
) {
    let element = accumulator.element;
    let sums: Vec<InstructionId> = accumulator
        .terms
        .iter()
        .filter_map(|term| total_of_term(module, while_loop, term, values, rows, count))
        .collect();
    let staying = accumulator.terms.iter().filter(|term| matches!(term.kind, TermKind::Stays));
    let staying: Vec<InstructionId> = staying.map(|term| term.id).collect();
    let sum = while_loop.read(module, while_loop.body, element);
    let next = staying.iter().fold(sum, |sum, &term| add(module.computation_mut(while_loop.body), sum, term));
    while_loop.set_next(module, element, next);

    let start = while_loop.start(module, element);
    let caller = module.computation_mut(while_loop.caller);
    let reads = Loop::reads(caller, while_loop.id, element);
    let shape = caller[start].shape().clone();
    let mut parts = sums.into_iter();
    let starts_empty = staying.is_empty() && is_zero(caller, start);
    let mut total = if starts_empty {
        None
    } else if staying.is_empty() {
        Some(start)
    } else {
        let op = Op::GetTupleElement { index: element };
        Some(caller.add("", op, shape, &[while_loop.id], OpMetadata::default()))
    };
    for part in &mut parts {
        total = Some(match total {
            Some(total) => add(caller, total, part),
            None => part,
        });
    }
    let total = total.expect("accumulator without sunk terms");
    for read in reads {
        caller.replace_all_uses(read, total);
    }
}

fn add(computation: &mut Computation, a: InstructionId, b: InstructionId) -> InstructionId {
    let (shape, metadata) = (computation[b].shape().clone(), computation[b].metadata().clone());
    computation.add("", Op::Add {}, shape, &[a, b], metadata)
}

/// A term's sum over all iterations, in the caller.
fn total_of_term(
    module: &mut Module,
    while_loop: Loop,
    term: &Term,
    values: &BTreeMap<InstructionId, InstructionId>,
    rows: &Rows,
    count: i64,
) -> Option<InstructionId> {
    let metadata = module[while_loop.body][term.id].metadata().clone();
    let mut value = match &term.kind {
        TermKind::Dot { operands, numbers } => {
            let operands = [values[&operands[0]], values[&operands[1]]];
            product(module, while_loop, rows, operands, numbers, &metadata)
        }
        TermKind::Sum { operand, dimensions } => {
            sum(module, while_loop, rows, values[operand], dimensions, &metadata)
        }
        TermKind::Stays => return None,
    };
    debug_assert!(count > 0);
    for &id in term.moves.iter().rev() {
        let instruction = &module[while_loop.body][id];
        let (op, shape) = (instruction.op().clone(), instruction.shape().expect_array().clone());
        value = rows.add(module, op, shape, &[value], metadata.clone());
    }
    Some(value)
}

/// The product that also sums over the rows: they are merged with the summed dimensions.
fn product(
    module: &mut Module,
    while_loop: Loop,
    rows: &Rows,
    operands: [InstructionId; 2],
    numbers: &DotDimensionNumbers,
    metadata: &OpMetadata,
) -> InstructionId {
    let contracting = [&numbers.lhs_contracting_dims, &numbers.rhs_contracting_dims];
    let mut sizes = Vec::new();
    let mut flat = Vec::new();
    for (operand, contracting) in operands.into_iter().zip(contracting) {
        let shape = module[while_loop.caller][operand].shape().expect_array().clone();
        let summed: Vec<usize> = std::iter::once(0).chain(contracting.iter().map(|d| d + 1)).collect();
        let free: Vec<usize> = (1..shape.rank()).filter(|d| !summed.contains(d)).collect();
        let order: Vec<usize> = summed.iter().chain(&free).copied().collect();
        let moved = rows.transposed(module, operand, &order, metadata);
        let depth: i64 = summed.iter().map(|&d| shape.size(d)).product();
        let columns: Vec<i64> = free.iter().map(|&d| shape.size(d)).collect();
        let one: Vec<i64> = std::iter::once(depth).chain(columns.iter().copied()).collect();
        let one = ArrayShape::new(shape.element_type, &one);
        flat.push(rows.add(module, Op::Reshape {}, one, &[moved], metadata.clone()));
        sizes.extend(columns);
    }
    let element_type = module[while_loop.caller][operands[0]].shape().expect_array().element_type;
    let numbers = DotDimensionNumbers {
        lhs_contracting_dims: vec![0],
        rhs_contracting_dims: vec![0],
        ..DotDimensionNumbers::default()
    };
    let op = Op::Dot { dot_dimension_numbers: numbers };
    rows.add(module, op, ArrayShape::new(element_type, &sizes), &flat, metadata.clone())
}

/// The sum over the rows and some dimensions.
fn sum(
    module: &mut Module,
    while_loop: Loop,
    rows: &Rows,
    operand: InstructionId,
    dimensions: &[usize],
    metadata: &OpMetadata,
) -> InstructionId {
    let shape = module[while_loop.caller][operand].shape().expect_array().clone();
    let summed: Vec<usize> = std::iter::once(0).chain(dimensions.iter().map(|d| d + 1)).collect();
    let remaining: Vec<i64> =
        (0..shape.rank()).filter(|d| !summed.contains(d)).map(|d| shape.size(d)).collect();
    let zero = super::zero(module.computation_mut(while_loop.caller), shape.element_type);
    let to_apply = addition(module, shape.element_type);
    let op = Op::Reduce { dimensions: summed, to_apply };
    rows.add(module, op, ArrayShape::new(shape.element_type, &remaining), &[operand, zero], metadata.clone())
}

/// A computation that adds two scalars.
fn addition(module: &mut Module, element_type: shape::PrimitiveType) -> hlo::ComputationId {
    let scalar = ArrayShape::new(element_type, &[]);
    let mut computation = Computation::new("add");
    let parameter = |computation: &mut Computation, number: usize, name: &str| {
        let op = Op::Parameter { number };
        computation.add(name, op, scalar.clone().into(), &[], OpMetadata::default())
    };
    let x = parameter(&mut computation, 0, "x");
    let y = parameter(&mut computation, 1, "y");
    let sum = computation.add("sum", Op::Add {}, scalar.into(), &[x, y], OpMetadata::default());
    computation.set_root(sum);
    module.add_computation(computation)
}
