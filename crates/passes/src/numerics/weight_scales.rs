//! Moves the scales of weights in few bits after the dots that read them.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, NarrowWeights, Op};
use shape::ArrayShape;
use support::Result;

/// `dot(x, convert(w) * broadcast(s)) => dot(x, convert(w)) * broadcast(s)`, if the scales are
/// constant along the summands. One multiplication for each result takes the place of one for each
/// weight, and it joins the dot's epilogue.
///
/// Changes the rounding: sums are scaled instead of weights. With an infinite scale, a weight of 0
/// no longer makes the result NaN.
pub struct WeightScaleSinking;

impl Pass for WeightScaleSinking {
    fn name(&self) -> &'static str {
        "weight-scale-sinking"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            let mut has_sunk = false;
            for dot in computation.post_order() {
                has_sunk |= sink(computation, dot).is_some();
            }
            if has_sunk {
                crate::simplify::dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// Replaces a dot of scaled weights.
fn sink(computation: &mut Computation, dot: InstructionId) -> Option<()> {
    let weights = NarrowWeights::of(computation, dot)?;
    let scales = weights.scales?;
    let result = computation[dot].shape().as_array()?.clone();
    let [left, right] = *computation[dot].operands() else { return None };
    let Op::Dot { dot_dimension_numbers: numbers } = computation[dot].op().clone() else { return None };
    let operand = computation[right].shape().as_array()?.clone();
    let summands: i64 = numbers.rhs_contracting_dims.iter().map(|&d| operand.size(d)).product();
    let find = |is_wanted: fn(&Op) -> bool| {
        weights.members.iter().copied().find(|&member| is_wanted(computation[member].op()))
    };
    let broadcast = find(|op| matches!(op, Op::Broadcast { .. }))?;
    let wide = find(|op| matches!(op, Op::Multiply {}))?;
    let converted = *computation[wide].operands().iter().find(|&&operand| operand != broadcast)?;
    let Op::Broadcast { dimensions } = computation[broadcast].op() else { return None };
    if scales.block != summands || !dimensions.is_sorted() || result.element_type != operand.element_type {
        return None;
    }
    // One scale, or one for each column.
    let factors = computation[broadcast].operands()[0];
    let free: Vec<i64> = (0..operand.rank())
        .filter(|d| !numbers.rhs_contracting_dims.contains(d))
        .map(|d| operand.size(d))
        .collect();
    let count = computation[factors].shape().as_array()?.element_count();
    let metadata = computation[dot].metadata().clone();
    let (factors, dimensions) = if count == free.iter().product::<i64>() {
        let dimensions = (result.rank() - free.len()..result.rank()).collect();
        (reshaped(computation, factors, &free, dot), dimensions)
    } else if dimensions.is_empty() {
        (factors, Vec::new())
    } else {
        return None;
    };
    let right = reshaped(computation, converted, &operand.sizes(), dot);
    let op = computation[dot].op().clone();
    let sums = computation.add("", op, result.clone().into(), &[left, right], metadata.clone());
    let op = Op::Broadcast { dimensions };
    let factors = computation.add("", op, result.clone().into(), &[factors], metadata.clone());
    let scaled = computation.add("", Op::Multiply {}, result.into(), &[sums, factors], metadata);
    computation.replace_all_uses(dot, scaled);
    Some(())
}

/// Returns an array with other sizes, for the place of a dot.
fn reshaped(
    computation: &mut Computation,
    array: InstructionId,
    sizes: &[i64],
    dot: InstructionId,
) -> InstructionId {
    let shape = computation[array].shape().expect_array().clone();
    if shape.sizes() == sizes {
        return array;
    }
    let (shape, metadata) = (ArrayShape::new(shape.element_type, sizes), computation[dot].metadata().clone());
    computation.add("", Op::Reshape {}, shape.into(), &[array], metadata)
}
