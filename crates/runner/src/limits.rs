//! Upper limits for the integers in a program's arguments, derived from their uses.
//!
//! An index into an array is below the array's size, and a label compared with an `iota` is below
//! its length. Larger integers are clamped, yield NaN, or match nothing, so generated integers test
//! more if they stay below the limit.

use hlo::{ComparisonDirection, ComputationId, InstructionId, Module, Op};
use std::collections::BTreeSet;

/// Returns, for each parameter of the entry, the exclusive upper limit of its integers, or `None`
/// if there is none.
pub fn index_limits(module: &Module) -> Vec<Option<i64>> {
    let parameters = module.entry_computation().parameters();
    parameters.iter().map(|&parameter| limit(module, parameter)).collect()
}

/// Returns the least limit among all uses that the array's elements reach unchanged.
fn limit(module: &Module, parameter: InstructionId) -> Option<i64> {
    let shape = module.entry_computation()[parameter].shape().as_array()?;
    if !shape.element_type.is_integer() {
        return None;
    }
    let mut least: Option<i64> = None;
    let mut visited = BTreeSet::new();
    let mut waiting = vec![(module.entry(), parameter)];
    while let Some((place, value)) = waiting.pop() {
        if !visited.insert((place, value)) {
            continue;
        }
        for &user in module[place][value].users() {
            for position in positions(module, place, user, value) {
                match follow(module, place, user, position) {
                    Reached::Limit(limit) => least = Some(least.map_or(limit, |least| least.min(limit))),
                    Reached::Values(values) => waiting.extend(values),
                }
            }
        }
    }
    least.filter(|&limit| limit > 0)
}

/// Returns the operand positions at which an instruction uses a value.
fn positions(module: &Module, place: ComputationId, user: InstructionId, value: InstructionId) -> Vec<usize> {
    let operands = module[place][user].operands();
    (0..operands.len()).filter(|&k| operands[k] == value).collect()
}

/// Effect of an instruction on an operand.
enum Reached {
    /// The operand's elements must be below this limit.
    Limit(i64),
    /// The operand's elements reach these values unchanged; empty if they reach none.
    Values(Vec<(ComputationId, InstructionId)>),
}

fn follow(module: &Module, place: ComputationId, user: InstructionId, position: usize) -> Reached {
    let computation = &module[place];
    let instruction = &computation[user];
    let sizes = |k: usize| {
        let array = computation[instruction.operands()[k]].shape().as_array();
        array.map(shape::ArrayShape::sizes).unwrap_or_default()
    };
    let least = |limits: &mut dyn Iterator<Item = i64>| {
        limits.min().map_or(Reached::Values(Vec::new()), Reached::Limit)
    };
    match (instruction.op(), position) {
        (Op::Gather { gather_dimension_numbers: numbers, slice_sizes, .. }, 1) => {
            let operand = sizes(0);
            least(&mut numbers.start_index_map.iter().map(|&d| operand[d] - slice_sizes[d] + 1))
        }
        (Op::Scatter { scatter_dimension_numbers: numbers, .. }, k)
            if 2 * k + 1 == instruction.operands().len() =>
        {
            let operand = sizes(0);
            least(&mut numbers.scatter_dims_to_operand_dims.iter().map(|&d| operand[d]))
        }
        (Op::DynamicSlice { .. }, k @ 1..) => {
            let slice = instruction.shape().expect_array().sizes();
            Reached::Limit(sizes(0)[k - 1] - slice[k - 1] + 1)
        }
        (Op::DynamicUpdateSlice {}, k @ 2..) => Reached::Limit(sizes(0)[k - 2] - sizes(1)[k - 2] + 1),
        (Op::Compare { direction, .. }, k) => {
            let other = instruction.operands()[1 - k];
            let limit = match (direction, k) {
                (ComparisonDirection::Eq, _) => iota_length(module, place, other),
                (ComparisonDirection::Lt, 0) | (ComparisonDirection::Gt, 1) => splat(module, place, other),
                _ => None,
            };
            limit.filter(|&limit| limit > 0).map_or(Reached::Values(Vec::new()), Reached::Limit)
        }
        (
            Op::Reshape {} | Op::Broadcast { .. } | Op::Transpose { .. } | Op::Slice { .. } | Op::Copy {},
            0,
        )
        | (Op::Select {}, 1 | 2)
        | (Op::Clamp {}, 1)
        | (Op::Concatenate { .. }, _) => Reached::Values(vec![(place, user)]),
        (Op::Convert {}, 0) if instruction.shape().expect_array().element_type.is_integer() => {
            Reached::Values(vec![(place, user)])
        }
        (Op::DynamicSlice { .. } | Op::Gather { .. }, 0) => Reached::Values(vec![(place, user)]),
        (Op::Call { to_apply, .. }, k) => {
            Reached::Values(vec![(*to_apply, module[*to_apply].parameters()[k])])
        }
        (Op::Tuple {}, k) => Reached::Values(elements(module, place, user, k)),
        _ => Reached::Values(Vec::new()),
    }
}

/// Returns the reads of a tuple element: here, and in the body and condition of a loop that
/// receives the tuple.
fn elements(
    module: &Module,
    place: ComputationId,
    tuple: InstructionId,
    element: usize,
) -> Vec<(ComputationId, InstructionId)> {
    let read = |place: ComputationId, tuple: InstructionId| {
        let users = module[place][tuple].users().iter().copied();
        let is_read = move |&user: &InstructionId| matches!(module[place][user].op(), Op::GetTupleElement { index } if *index == element);
        users.filter(is_read).map(move |user| (place, user))
    };
    let mut reads: Vec<_> = read(place, tuple).collect();
    for &user in module[place][tuple].users() {
        if let Op::While { condition, body, .. } = module[place][user].op() {
            for within in [*condition, *body] {
                reads.extend(module[within].parameters().first().into_iter().flat_map(|&p| read(within, p)));
            }
        }
    }
    reads
}

/// Returns the length of the `iota` that a value broadcasts, if any.
fn iota_length(module: &Module, place: ComputationId, value: InstructionId) -> Option<i64> {
    let instruction = &module[place][value];
    match instruction.op() {
        Op::Iota { iota_dimension } => {
            instruction.shape().expect_array().sizes().get(*iota_dimension).copied()
        }
        Op::Broadcast { .. } | Op::Reshape {} | Op::Convert {} => {
            iota_length(module, place, instruction.operands()[0])
        }
        _ => None,
    }
}

/// Returns the integer that a value broadcasts, if any.
fn splat(module: &Module, place: ComputationId, value: InstructionId) -> Option<i64> {
    let instruction = &module[place][value];
    match instruction.op() {
        Op::Constant { literal } if literal.array_shape().rank() == 0 => literal.to_i64s()?.first().copied(),
        Op::Broadcast { .. } | Op::Reshape {} | Op::Convert {} => {
            splat(module, place, instruction.operands()[0])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::index_limits;

    fn limits(text: &str) -> Vec<Option<i64>> {
        index_limits(&hlo::parse(&format!("HloModule test\n\n{text}")).expect("valid HLO"))
    }

    #[test]
    fn indices_of_gathers_scatters_and_slices_stay_within_the_array() {
        let text = "add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  table = f32[5,3] parameter(0)
  rows = s32[4] parameter(1)
  into = s64[2,1] parameter(2)
  start = s32[] parameter(3)
  zero = s32[] constant(0)
  gathered = f32[4,3] gather(table, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}
  updates = f32[2,3] slice(gathered), slice={[0:2], [0:3]}
  scattered = f32[5,3] scatter(table, into, updates), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  cut = f32[2,3] dynamic-slice(scattered, start, zero), dynamic_slice_sizes={2,3}
  ROOT made = (f32[2,3]) tuple(cut)
}
";
        assert_eq!(limits(text), [None, Some(5), Some(5), Some(4)]);
    }

    #[test]
    fn labels_stay_below_the_classes_that_they_are_compared_with() {
        let text = "ENTRY main {
  labels = s64[4] parameter(0)
  narrow = s32[4] convert(labels)
  wide = s32[4,7] broadcast(narrow), dimensions={0}
  classes = s32[4,7] iota(), iota_dimension=1
  ROOT hot = pred[4,7] compare(wide, classes), direction=EQ
}
";
        assert_eq!(limits(text), [Some(7)]);
    }

    #[test]
    fn the_least_limit_holds_also_from_within_a_loop() {
        let text = "condition {
  state = (s32[], s32[2]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  two = s32[] constant(2)
  ROOT less = pred[] compare(i, two), direction=LT
}

body {
  state = (s32[], s32[2]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  rows = s32[2] get-tuple-element(state), index=1
  table = f32[6] iota(), iota_dimension=0
  read = f32[2] gather(table, rows), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  ROOT made = (s32[], s32[2]) tuple(next, rows)
}

ENTRY main {
  rows = s32[2] parameter(0)
  nine = s32[] constant(9)
  bound = s32[2] broadcast(nine), dimensions={}
  less = pred[2] compare(rows, bound), direction=LT
  zero = s32[] constant(0)
  start = (s32[], s32[2]) tuple(zero, rows)
  loop = (s32[], s32[2]) while(start), condition=condition, body=body
  ROOT made = (pred[2], (s32[], s32[2])) tuple(less, loop)
}
";
        assert_eq!(limits(text), [Some(6)]);
    }

    #[test]
    fn numbers_that_are_computed_with_have_no_limit() {
        let text = "ENTRY main {
  x = s32[4] parameter(0)
  y = f32[4] parameter(1)
  doubled = s32[4] add(x, x)
  zero = s32[] constant(0)
  zeros = s32[4] broadcast(zero), dimensions={}
  negative = pred[4] compare(x, zeros), direction=LT
  ROOT made = (s32[4], pred[4], f32[4]) tuple(doubled, negative, y)
}
";
        assert_eq!(limits(text), [None, None]);
    }
}
