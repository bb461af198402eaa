//! Weights in few bits: how a dot's right operand follows from numbers that are stored in a
//! narrower type, and their scales. Part of the fusion contract: the pass that puts these
//! instructions into the dot's kernel and the plan that reads them agree here.

use crate::attributes::DotDimensionNumbers;
use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::opcode::Op;
use shape::{ArrayShape, PrimitiveType};

/// Minimum summands that share a scale. With fewer, scaling takes as long as multiplying.
const MIN_BLOCK: i64 = 8;

/// The right operand of a dot, computed from narrow numbers:
/// `[reshape](convert(stored) [* broadcast(scales)])`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarrowWeights {
    /// The stored numbers. They have the same order of elements as the right operand.
    pub stored: InstructionId,
    /// The scales, if there are any.
    pub scales: Option<Scales>,
    /// The instructions between these arrays and the dot.
    pub members: Vec<InstructionId>,
}

/// Scales of blocks of numbers that are summed up together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scales {
    /// The scales, possibly in a narrower type.
    pub values: InstructionId,
    /// For each dimension of the stored numbers, the distance in elements of the scales of
    /// neighbors; 0 for the dimensions that share a scale.
    pub strides: Vec<i64>,
    /// Summands that share a scale.
    pub block: i64,
}

impl NarrowWeights {
    /// Returns the weights of a dot with sums in `f32` if its right operand has this form. The
    /// result of the instructions is exact before the scale is applied.
    pub fn of(computation: &Computation, dot: InstructionId) -> Option<Self> {
        let Op::Dot { dot_dimension_numbers: numbers } = computation[dot].op() else { return None };
        let array = |id: InstructionId| computation[id].shape().as_array();
        let mut id = *computation[dot].operands().get(1)?;
        let operand = array(id)?;
        let mut members = Vec::new();
        if let Op::Reshape {} = computation[id].op() {
            members.push(id);
            id = computation[id].operands()[0];
        }
        let whole = array(id)?;
        let contracting = contracting_dimensions(numbers, operand, whole)?;
        let mut scales = None;
        if let Op::Multiply {} = computation[id].op() {
            let &[left, right] = computation[id].operands() else { return None };
            let is_broadcast = |id: InstructionId| matches!(computation[id].op(), Op::Broadcast { .. });
            let (numbers, broadcast) = if is_broadcast(left) { (right, left) } else { (left, right) };
            members.push(id);
            scales = Some(Scales::of(computation, broadcast, &contracting, whole, &mut members)?);
            id = numbers;
        }
        let Op::Convert {} = computation[id].op() else { return None };
        members.push(id);
        let stored = computation[id].operands()[0];
        let from = array(stored)?.element_type;
        let result = array(dot)?.element_type;
        let has_f32_sums = matches!(result, PrimitiveType::F32 | PrimitiveType::F16 | PrimitiveType::Bf16);
        (has_f32_sums && is_exact(from, whole.element_type, scales.is_some()) && operand.is_static())
            .then_some(Self { stored, scales, members })
    }
}

/// Most rows of a dot whose kernel widens the elements of its right operand each time that it reads
/// them. More rows are worth a wide copy.
const FEW_ROWS: i64 = 4;

/// Number of summands from which on that many rows have one sum per result, and vectors along the
/// summands; otherwise, half as many do.
const MANY_SUMMANDS: i64 = 128;

/// Number of summands that do not fill a vector.
const FEW_SUMMANDS: i64 = 16;

/// Returns the narrow array that a dot of few rows with sums in `f32` reads as `convert(array)`, if
/// nothing else reads the wide one and vectors of neighbors can be loaded from it.
pub fn narrow_operand(computation: &Computation, dot: InstructionId) -> Option<InstructionId> {
    let Op::Dot { dot_dimension_numbers: numbers } = computation[dot].op() else { return None };
    let &[left, right] = computation[dot].operands() else { return None };
    let (Op::Convert {}, &[_]) = (computation[right].op(), computation[right].users()) else { return None };
    if left == right {
        return None;
    }
    let array = |id: InstructionId| computation[id].shape().as_array();
    let stored = computation[right].operands()[0];
    let (lhs, from, to) = (array(left)?, array(stored)?, array(right)?);
    let is_row = |d: &usize| !numbers.lhs_batch_dims.contains(d) && !numbers.lhs_contracting_dims.contains(d);
    let rows: i64 = (0..lhs.rank()).filter(is_row).map(|d| lhs.size(d)).product();
    let last = to.rank().checked_sub(1)?;
    let most_rows = match &numbers.rhs_contracting_dims[..] {
        // Vectors run along the summands.
        &[only] if only == last && to.size(last) < MANY_SUMMANDS => FEW_ROWS / 2,
        _ if numbers.rhs_batch_dims.contains(&last) => 0,
        _ => FEW_ROWS,
    };
    let is_short = numbers.rhs_contracting_dims.contains(&last) && to.size(last) < FEW_SUMMANDS;
    let is_f32 = [array(dot)?, to].iter().all(|array| array.element_type == PrimitiveType::F32);
    let fits = !from.element_type.is_subbyte_integer() && is_exact(from.element_type, to.element_type, false);
    let is_static = to.is_static() && lhs.is_static();
    (rows <= most_rows && !is_short && is_f32 && fits && is_static).then_some(stored)
}

impl Scales {
    fn of(
        computation: &Computation,
        broadcast: InstructionId,
        contracting: &[usize],
        whole: &ArrayShape,
        members: &mut Vec<InstructionId>,
    ) -> Option<Self> {
        let Op::Broadcast { dimensions } = computation[broadcast].op() else { return None };
        members.push(broadcast);
        let mut values = computation[broadcast].operands()[0];
        let sizes = computation[values].shape().as_array()?.sizes();
        while let Op::Reshape {} | Op::Convert {} = computation[values].op() {
            members.push(values);
            values = computation[values].operands()[0];
        }
        let element_type = computation[values].shape().as_array()?.element_type;
        if !matches!(element_type, PrimitiveType::F32 | PrimitiveType::F16 | PrimitiveType::Bf16) {
            return None;
        }
        let mut strides = vec![0; whole.rank()];
        for (dimension, stride) in dimensions.iter().zip(shape::index::row_major_strides(&sizes)) {
            *strides.get_mut(*dimension)? = stride;
        }
        // The dimensions without scales are the last ones among those that are summed up.
        let shared = |&d: &usize| !dimensions.contains(&d);
        let of_block = contracting.iter().rev().take_while(|d| shared(d)).count();
        let block = contracting.iter().rev().take(of_block).map(|&d| whole.size(d)).product();
        (block >= MIN_BLOCK).then_some(Self { values, strides, block })
    }
}

/// Returns the dimensions of the array before a reshape that the dot sums up, in the order of its
/// summands. The reshape may merge neighboring dimensions. Returns `None` for batch dimensions and
/// for other reshapes.
fn contracting_dimensions(
    numbers: &DotDimensionNumbers,
    operand: &ArrayShape,
    whole: &ArrayShape,
) -> Option<Vec<usize>> {
    let (merged, parts) = (operand.sizes(), whole.sizes());
    let mut of_operand: Vec<Vec<usize>> = Vec::new();
    let mut next = 0;
    for &size in &merged {
        let (mut dimensions, mut product) = (Vec::new(), 1);
        while product < size || dimensions.is_empty() {
            product *= parts.get(next)?;
            dimensions.push(next);
            next += 1;
        }
        if product != size {
            return None;
        }
        of_operand.push(dimensions);
    }
    let is_plain = numbers.rhs_batch_dims.is_empty() && next == parts.len();
    let contracting = &numbers.rhs_contracting_dims;
    (is_plain && !contracting.is_empty() && contracting.is_sorted())
        .then(|| contracting.iter().flat_map(|&d| of_operand[d].clone()).collect())
}

/// True if numbers of a narrower type are numbers of another one. A scaled number is exact only in
/// `f32`: the product is not rounded again.
fn is_exact(from: PrimitiveType, to: PrimitiveType, is_scaled: bool) -> bool {
    use PrimitiveType::{Bf16, F16, F32, S4, S8, U4, U8};
    match (from, to) {
        (S4 | U4 | S8 | U8 | F16 | Bf16, F32) => true,
        (S4 | U4 | S8 | U8, F16 | Bf16) => !is_scaled,
        _ => false,
    }
}
