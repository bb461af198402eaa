//! Simplifies integers in a loop by their ranges.

use super::{Loop, scalars};
use hlo::analysis::{self, Range};
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use shape::{Literal, PrimitiveType, Scalar};
use std::collections::BTreeSet;

/// Replaces integers and predicates of one element in the condition and the body:
///
/// - `x => constant` if its range is one value,
/// - `maximum(x, y) => x` if x is at least y in all iterations, and likewise for `minimum`,
/// - `clamp(l, x, h) => x` if x lies within the bounds,
/// - `dynamic-slice(iota, x) => x` for a loop-invariant one-dimensional iota, if x lies within it.
///
/// Exact for every input. Returns true if anything changed.
pub(super) fn replace(module: &mut Module, while_loop: Loop) -> bool {
    let ranges = while_loop.state_ranges(module);
    let invariants = while_loop.invariants(module);
    // The condition also sees the state after the last iteration.
    let invariant_ranges = |k: usize| if invariants.contains(&k) { ranges[k] } else { Range::UNKNOWN };
    let invariant_ranges: Vec<Range> = (0..ranges.len()).map(invariant_ranges).collect();
    let in_condition = replacements(module, while_loop.condition, &invariant_ranges);
    // Users come before their operands, so that a replaced operand does not come back.
    let mut in_body = slices_of_iota(module, while_loop, &invariants, &ranges);
    in_body.extend(replacements(module, while_loop.body, &ranges));
    if in_condition.is_empty() && in_body.is_empty() {
        return false;
    }
    let while_loop = while_loop.exclusive(module);
    for (id, replacements) in [(while_loop.condition, in_condition), (while_loop.body, in_body)] {
        let computation = module.computation_mut(id);
        for (old, new) in replacements {
            let new = match new {
                Known::Same(operand) if computation[operand].shape() == computation[old].shape() => operand,
                Known::Same(operand) => {
                    let (shape, metadata) =
                        (computation[old].shape().clone(), computation[old].metadata().clone());
                    computation.add("", Op::Reshape {}, shape, &[operand], metadata)
                }
                Known::Value(scalar) => {
                    let shape = computation[old].shape().clone();
                    let literal = Literal::from_scalars(shape.expect_array().clone(), [scalar]);
                    let metadata = computation[old].metadata().clone();
                    computation.add("", Op::Constant { literal }, shape, &[], metadata)
                }
            };
            computation.replace_all_uses(old, new);
        }
        crate::simplify::dce::sweep(computation);
    }
    true
}

/// Slices of a loop-invariant iota, which equal their index.
fn slices_of_iota(
    module: &Module,
    while_loop: Loop,
    invariants: &BTreeSet<usize>,
    ranges: &[Range],
) -> Vec<(InstructionId, Known)> {
    let (body, caller) = (&module[while_loop.body], &module[while_loop.caller]);
    let of_leaf = |id: InstructionId| Some(ranges[analysis::state_element(body, id)?]);
    let slice = |id: InstructionId| {
        let &[line, index] = body[id].operands() else { return None };
        let element = analysis::state_element(body, line).filter(|k| invariants.contains(k))?;
        let start = while_loop.start(module, element);
        let is_line =
            matches!(caller[start].op(), Op::Iota { .. }) && while_loop.array(module, element)?.rank() == 1;
        let shape = while_loop.array(module, element)?;
        let is_alike = body[index].shape().as_array()?.element_type == shape.element_type;
        let range = analysis::range_in(module, body, index, &of_leaf);
        let is_within = range.low? >= 0 && range.high? < shape.size(0);
        let is_one = body[id].shape().as_array()?.element_count() == 1;
        (is_line && is_alike && is_within && is_one).then_some((id, Known::Same(index)))
    };
    let slices = body.post_order().into_iter().filter(|&id| matches!(body[id].op(), Op::DynamicSlice { .. }));
    slices.filter_map(slice).collect()
}

/// A simpler equivalent of an instruction.
enum Known {
    /// This value.
    Value(Scalar),
    /// One of its operands.
    Same(InstructionId),
}

/// Maximum number of scalars to examine per computation.
const MAX_SCALARS: usize = 512;

fn replacements(module: &Module, id: ComputationId, ranges: &[Range]) -> Vec<(InstructionId, Known)> {
    let computation = &module[id];
    let of_leaf = |id: InstructionId| Some(ranges[analysis::state_element(computation, id)?]);
    let range = |id: InstructionId| analysis::range_in(module, computation, id, &of_leaf);
    let mut results: Vec<(InstructionId, Known)> = Vec::new();
    let scalars = computation.post_order().into_iter().filter(|&id| is_candidate(computation, id));
    for id in scalars.take(MAX_SCALARS) {
        let known = match value(computation, id, range(id)) {
            Some(scalar) => Some(Known::Value(scalar)),
            None => same(computation, id, &range).map(Known::Same),
        };
        results.extend(known.map(|known| (id, known)));
    }
    // Users first.
    results.reverse();
    results
}

fn is_candidate(computation: &Computation, id: InstructionId) -> bool {
    let instruction = &computation[id];
    let is_leaf =
        matches!(instruction.op(), Op::Constant { .. } | Op::Parameter { .. } | Op::GetTupleElement { .. });
    let is_one = instruction.shape().as_array().is_some_and(|shape| {
        let is_integer = shape.element_type.is_integer() || shape.element_type == PrimitiveType::Pred;
        is_integer && shape.is_static() && shape.element_count() == 1
    });
    is_one && !is_leaf
}

fn value(computation: &Computation, id: InstructionId, range: Range) -> Option<Scalar> {
    let shape = computation[id].shape().as_array()?;
    match shape.element_type {
        PrimitiveType::Pred => Some(Scalar::Pred(range.value()? != 0)),
        _ => scalars::integer(shape, range.value()?.into()),
    }
}

/// The operand that an instruction always equals.
fn same(
    computation: &Computation,
    id: InstructionId,
    range: &dyn Fn(InstructionId) -> Range,
) -> Option<InstructionId> {
    let at_least = |a: InstructionId, b: InstructionId| matches!((range(a).low, range(b).high), (Some(low), Some(high)) if low >= high);
    let invariant_ranges = match (computation[id].op(), computation[id].operands()) {
        (Op::Maximum {}, &[x, y]) if at_least(x, y) => x,
        (Op::Maximum {}, &[x, y]) if at_least(y, x) => y,
        (Op::Minimum {}, &[x, y]) if at_least(y, x) => x,
        (Op::Minimum {}, &[x, y]) if at_least(x, y) => y,
        (Op::Clamp {}, &[low, x, high]) if at_least(x, low) && at_least(high, x) => x,
        (Op::Select {}, &[p, x, y]) => match range(p).value()? {
            0 => y,
            _ => x,
        },
        _ => return None,
    };
    (computation[invariant_ranges].shape() == computation[id].shape()).then_some(invariant_ranges)
}
