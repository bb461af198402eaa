//! Runs a loop in strips of a fixed number of iterations.

use super::Loop;
use super::outside::{Outside, invariant_instructions};
use super::rows::{Index, Row, Rows, index_constant, sliced, sliced_dimension};
use super::state::take;
use hlo::analysis::{self, Affine};
use hlo::{ComparisonDirection, ComparisonType, Computation, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, PrimitiveType};
use std::collections::{BTreeMap, BTreeSet};

/// A limit of at least this many iterations stays an integer when those of a strip are subtracted.
const LEAST_LIMIT: i64 = -(1 << 24);

/// The condition of a loop that can run in strips: it compares only one counter, which grows by
/// one, with upper limits that stay the same.
pub(super) struct Strips {
    /// The element of the state that counts.
    pub(super) counter: usize,
    limits: Vec<Limit>,
}

/// An upper limit of the counter.
struct Limit {
    /// The comparison in the condition.
    comparison: InstructionId,
    /// The operand that is the limit.
    position: usize,
    /// True if the limit minus a strip may not be an integer. The counter is then at least 0, and
    /// less than the limit.
    may_wrap: bool,
}

impl Strips {
    /// Returns `None` if a loop has another condition.
    pub(super) fn of(module: &Module, while_loop: Loop) -> Option<Self> {
        let condition = &module[while_loop.condition];
        let invariants = while_loop.invariants(module);
        let same = invariant_instructions(condition, &invariants);
        let of_leaf = |id: InstructionId| {
            let element = analysis::state_element(condition, id)?;
            invariants.contains(&element).then(|| while_loop.initial_range(module, element))
        };
        let (mut counter, mut limits) = (None, Vec::new());
        let mut pending = vec![condition.root_if_set()?];
        while let Some(id) = pending.pop() {
            let (direction, [a, b]) = match (condition[id].op(), condition[id].operands()) {
                (Op::And {}, &[a, b]) => {
                    pending.extend([a, b]);
                    continue;
                }
                (Op::Compare { direction, .. }, &[a, b]) => (*direction, [a, b]),
                _ => return None,
            };
            let (position, is_strict) = match direction {
                ComparisonDirection::Lt => (1, true),
                ComparisonDirection::Le => (1, false),
                ComparisonDirection::Gt => (0, true),
                ComparisonDirection::Ge => (0, false),
                ComparisonDirection::Eq | ComparisonDirection::Ne => return None,
            };
            let (moving, limit) = if position == 1 { (a, b) } else { (b, a) };
            let element = analysis::state_element(condition, moving)?;
            if !same.contains(&limit) || *counter.get_or_insert(element) != element {
                return None;
            }
            let element_type = condition[limit].shape().as_array()?.element_type;
            let low = analysis::range_in(module, condition, limit, &of_leaf).low;
            let is_wide = element_type.is_signed_integer() && element_type.bit_width() >= 32;
            let may_wrap = !is_wide || low.is_none_or(|low| low < LEAST_LIMIT);
            if may_wrap && !(is_strict && starts_at_least_at_zero(module, while_loop, element)) {
                return None;
            }
            limits.push(Limit { comparison: id, position, may_wrap });
        }
        let counter = counter?;
        let steps = analysis::induction_variables(module, &module[while_loop.body]);
        (steps.get(&counter) == Some(&1)).then_some(Self { counter, limits })
    }
}

/// True if a counter that grows is never negative.
fn starts_at_least_at_zero(module: &Module, while_loop: Loop, counter: usize) -> bool {
    let is_natural = |shape: &ArrayShape| shape.element_type.is_unsigned_integer();
    while_loop.array(module, counter).is_some_and(is_natural)
        || while_loop.initial_range(module, counter).low.is_some_and(|low| low >= 0)
}

/// True if a loop runs what another one leaves: its counter continues that of the other.
pub(super) fn is_rest(module: &Module, while_loop: Loop, counter: usize) -> bool {
    let caller = &module[while_loop.caller];
    let start = &caller[while_loop.start(module, counter)];
    matches!(start.op(), Op::GetTupleElement { index } if *index == counter)
        && matches!(caller[start.operands()[0]].op(), Op::While { .. })
}

/// A slice in the body of a loop, of one row of a buffer.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    id: InstructionId,
    row: Row,
    affine: Affine,
    dimension: usize,
}

/// The slices from which values of a loop's body derive, if all of them take rows at a fixed
/// distance from the counter, or from its negative.
pub(super) fn slices_of(
    module: &Module,
    while_loop: Loop,
    rows: &Rows,
    counter: usize,
    values: &BTreeSet<InstructionId>,
) -> Option<Vec<Slice>> {
    let body = &module[while_loop.body];
    let mut seen = values.clone();
    let mut pending: Vec<InstructionId> = values.iter().copied().collect();
    let mut slices = Vec::new();
    while let Some(id) = pending.pop() {
        let instruction = &body[id];
        let Some(row) = rows.row(id) else { continue };
        let Op::DynamicSlice { dynamic_slice_sizes: sizes } = instruction.op() else {
            pending.extend(instruction.operands().iter().filter(|&&operand| seen.insert(operand)));
            continue;
        };
        let Index::Affine(affine) = row.index else { return None };
        let whole = body[instruction.operands()[0]].shape().as_array()?;
        let dimension = sliced_dimension(whole, sizes)?;
        if affine.element != counter || affine.multiplier.abs() != 1 {
            return None;
        }
        slices.push(Slice { id, row, affine, dimension });
    }
    Some(slices)
}

/// Puts a loop before another one that runs strips of `length` iterations of it, each by a loop of
/// its own, as long as a whole strip is left; the other loop runs the rest. The loop over a strip
/// takes rows of `slices` from the rows of the strip. Returns that loop. Exact for every input.
pub(super) fn strip_mine(
    module: &mut Module,
    while_loop: Loop,
    strips: &Strips,
    slices: &[Slice],
    length: i64,
) -> Loop {
    let counter = strips.counter;
    let state = module[while_loop.caller][while_loop.id].shape().clone();
    let metadata = module[while_loop.caller][while_loop.id].metadata().clone();
    let count = while_loop.element_count(module);
    let condition = module.add_computation(module[while_loop.condition].clone());
    let body = module.add_computation(module[while_loop.body].clone());

    let mut outer = Computation::new(format!("{}.strips", module[while_loop.body].name()));
    let parameter = outer.add("strip", Op::Parameter { number: 0 }, state.clone(), &[], metadata.clone());
    let starts: Vec<InstructionId> = (0..count).map(|k| take(&mut outer, parameter, k)).collect();
    let start = outer.add("", Op::Tuple {}, state.clone(), &starts, metadata.clone());
    let id = outer.add("", Op::While { condition, body }, state.clone(), &[start], metadata.clone());
    let mut ends: Vec<InstructionId> = (0..count).map(|k| take(&mut outer, id, k)).collect();
    let type_ = while_loop.array(module, counter).expect("counter is not an array").element_type;
    let iterations = index_constant(&mut outer, type_, length);
    ends[counter] = combined(&mut outer, Op::Add {}, starts[counter], iterations);
    let root = outer.add("", Op::Tuple {}, state.clone(), &ends, metadata.clone());
    outer.set_root(root);
    let caller = module.add_computation(outer);
    let strip = Loop { caller, id, condition, body };

    let number = count_iterations(module, strip, type_, length);
    take_rows_of_strip(module, strip, starts[counter], number, slices, length);
    let condition = module.add_computation(module[while_loop.condition].clone());
    ask_for_whole_strip(module.computation_mut(condition), strips, length);

    let entry = module.computation_mut(while_loop.caller);
    let start = entry[while_loop.id].operands()[0];
    let op = Op::While { condition, body: caller };
    let strips = entry.add("", op, state.clone(), &[start], metadata.clone());
    let starts: Vec<InstructionId> = (0..count).map(|k| take(entry, strips, k)).collect();
    let start = entry.add("", Op::Tuple {}, state, &starts, metadata);
    entry.replace_operand(while_loop.id, 0, start);
    strip
}

/// Makes a loop run `length` times. Returns the number of its iteration, in the body. A loop whose
/// limits depend on sizes still compares its counter with them, because the analysis of needed
/// elements reads them there.
fn count_iterations(
    module: &mut Module,
    strip: Loop,
    element_type: PrimitiveType,
    length: i64,
) -> InstructionId {
    let is_open = !module.size_parameters().is_empty();
    let zero = index_constant(module.computation_mut(strip.caller), element_type, 0);
    let element = strip.add_element(module, zero);
    let number = strip.read(module, strip.condition, element);
    let condition = module.computation_mut(strip.condition);
    let end = index_constant(condition, element_type, length);
    let op = Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::Default };
    let shape = condition[condition.root()].shape().clone();
    let is_in_strip = condition.add("", op, shape, &[number, end], OpMetadata::default());
    let root =
        if is_open { combined(condition, Op::And {}, condition.root(), is_in_strip) } else { is_in_strip };
    condition.set_root(root);
    crate::simplify::dce::sweep(condition);

    let number = strip.read(module, strip.body, element);
    let body = module.computation_mut(strip.body);
    let one = index_constant(body, element_type, 1);
    let next = combined(body, Op::Add {}, number, one);
    strip.set_next(module, element, next);
    number
}

/// Takes the rows of a strip from the buffers in the body of the outer loop, where the counter is
/// `start`, and the rows of an iteration, which has this number, from them.
fn take_rows_of_strip(
    module: &mut Module,
    strip: Loop,
    start: InstructionId,
    number: InstructionId,
    slices: &[Slice],
    length: i64,
) {
    let mut outside = Outside::new(strip, strip.body);
    let mut elements: BTreeMap<(InstructionId, Row), usize> = BTreeMap::new();
    for &Slice { id, row, affine, dimension } in slices {
        let slice = module[strip.body][id].clone();
        let Op::DynamicSlice { dynamic_slice_sizes: sizes } = slice.op() else { continue };
        let element_type = module[strip.body][number].shape().expect_array().element_type;
        let buffer = slice.operands()[0];
        let element = elements.get(&(buffer, row)).copied().unwrap_or_else(|| {
            let whole = outside.copy(module, buffer);
            let caller = module.computation_mut(strip.caller);
            // The first row of the strip; rows of a loop that runs backwards count down.
            let (op, offset) = match affine.multiplier {
                1 => (Op::Add {}, affine.offset),
                _ => (Op::Subtract {}, affine.offset - (length - 1)),
            };
            let offset = index_constant(caller, element_type, offset);
            let first = combined(caller, op, offset, start);
            let mut sizes = sizes.clone();
            sizes[dimension] = length;
            let rows = sliced(caller, whole, first, dimension, &sizes, slice.metadata());
            strip.add_element(module, rows)
        });
        elements.insert((buffer, row), element);
        let rows = strip.read(module, strip.body, element);
        let body = module.computation_mut(strip.body);
        let at = match affine.multiplier {
            1 => number,
            _ => {
                let last = index_constant(body, element_type, length - 1);
                combined(body, Op::Subtract {}, last, number)
            }
        };
        let taken = sliced(body, rows, at, dimension, sizes, slice.metadata());
        body.replace_all_uses(id, taken);
    }
    crate::simplify::dce::sweep(module.computation_mut(strip.body));
}

/// Makes a condition hold only if a whole strip is left, by lower limits.
fn ask_for_whole_strip(condition: &mut Computation, strips: &Strips, length: i64) {
    for &Limit { comparison, position, may_wrap } in &strips.limits {
        let mut limit = condition[comparison].operands()[position];
        let element_type = condition[limit].shape().expect_array().element_type;
        let others = index_constant(condition, element_type, length - 1);
        if may_wrap {
            // Without a whole strip, the limit becomes 0, which the counter has reached.
            limit = combined(condition, Op::Maximum {}, limit, others);
        }
        let limit = combined(condition, Op::Subtract {}, limit, others);
        condition.replace_operand(comparison, position, limit);
    }
}

/// The result of an operation on two scalars.
fn combined(computation: &mut Computation, op: Op, a: InstructionId, b: InstructionId) -> InstructionId {
    let shape = computation[a].shape().clone();
    computation.add("", op, shape, &[a, b], OpMetadata::default())
}
