//! Estimates the work and the memory traffic of instructions from their HLO, not from measurements.
//!
//! - A *flop* is an addition, a multiplication, a comparison, or another simple function of one
//!   element; a multiply-add counts as two. Only the work in an instruction's definition counts:
//!   convolution taps that read padding do not.
//! - A *transcendental* is one evaluation of exp, log, tanh, or a similar function, counted
//!   separately.
//! - *Bytes* are those of a kernel's operands and results, each counted once: values that fusion
//!   keeps in registers cause no traffic. For operands that a kernel reads only in part (gather,
//!   slices), only that part counts.

use super::{Range, range_in, trip_count};
use crate::attributes::{Window, WindowDimension};
use crate::computation::Computation;
use crate::ids::{ComputationId, InstructionId};
use crate::module::Module;
use crate::opcode::{Op, Traits};
use shape::{ArrayShape, Shape};
use std::iter::Sum;
use std::ops::{Add, Mul};

/// Amounts of work. All counts saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Simple arithmetic on elements.
    pub flops: u64,
    /// Evaluations of transcendental functions.
    pub transcendentals: u64,
    /// Bytes read from memory.
    pub bytes_read: u64,
    /// Bytes written to memory.
    pub bytes_written: u64,
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            flops: self.flops.saturating_add(other.flops),
            transcendentals: self.transcendentals.saturating_add(other.transcendentals),
            bytes_read: self.bytes_read.saturating_add(other.bytes_read),
            bytes_written: self.bytes_written.saturating_add(other.bytes_written),
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

impl Mul<u64> for Cost {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self {
            flops: self.flops.saturating_mul(times),
            transcendentals: self.transcendentals.saturating_mul(times),
            bytes_read: self.bytes_read.saturating_mul(times),
            bytes_written: self.bytes_written.saturating_mul(times),
        }
    }
}

impl Cost {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.bytes_read.saturating_add(self.bytes_written)
    }

    /// Returns the cost of one execution of an instruction. A loop's arithmetic is multiplied by
    /// its trip count, if known. All branches of a conditional count. For both, bytes are those of
    /// their operands and results.
    pub fn of_instruction(module: &Module, computation: ComputationId, id: InstructionId) -> Self {
        let computation = &module[computation];
        let instruction = &computation[id];
        let arithmetic = arithmetic_of(module, computation, id, 0);
        let mut operands = instruction.operands().to_vec();
        operands.sort();
        operands.dedup();
        let read = |&operand: &InstructionId| match instruction.op() {
            Op::Fusion { calls, .. } => {
                let inner = &module[*calls];
                let positions = instruction.operands().iter().enumerate().filter(|(_, o)| **o == operand);
                let parameters = positions.map(|(position, _)| inner.parameters()[position]);
                parameters.map(|p| bytes_read(inner, p)).max().unwrap_or(0)
            }
            _ => bytes_read_by(computation, id, operand),
        };
        let bytes_read = operands.iter().map(read).fold(0, u64::saturating_add);
        let updates_in_place = matches!(instruction.op(), Op::DynamicUpdateSlice {});
        let bytes_written = if updates_in_place {
            computation[instruction.operands()[1]].shape().byte_size()
        } else {
            instruction.shape().byte_size()
        };
        Self { bytes_read, bytes_written, ..arithmetic }
    }
}

/// Number of bytes of a value that its users in a computation read.
fn bytes_read(computation: &Computation, value: InstructionId) -> u64 {
    let users = computation[value].users().iter();
    let read = users.map(|&user| bytes_read_by(computation, user, value)).fold(0, u64::saturating_add);
    let whole = computation[value].shape().byte_size();
    if computation.root() == value { whole } else { read.min(whole) }
}

/// Number of bytes of an operand that an instruction reads.
fn bytes_read_by(computation: &Computation, user: InstructionId, operand: InstructionId) -> u64 {
    let instruction = &computation[user];
    let whole = computation[operand].shape().byte_size();
    match instruction.op() {
        Op::Slice { .. } | Op::Gather { .. } | Op::DynamicSlice { .. }
            if instruction.operands().first() == Some(&operand) =>
        {
            instruction.shape().byte_size().min(whole)
        }
        // The rest of the array stays in place.
        Op::DynamicUpdateSlice {} if instruction.operands().first() == Some(&operand) => 0,
        _ => whole,
    }
}

/// Flops and transcendentals of an instruction, including the computations that it calls.
fn arithmetic_of(module: &Module, computation: &Computation, id: InstructionId, depth: usize) -> Cost {
    let instruction = &computation[id];
    let count = elements(instruction.shape());
    let operand = |k: usize| computation[instruction.operands()[k]].shape().as_array();
    let callee_cost = |callee: ComputationId| arithmetic_in(module, callee, depth + 1);
    let flops = |flops: u64| Cost { flops, ..Cost::default() };
    match instruction.op() {
        Op::Fusion { calls, .. } => callee_cost(*calls),
        Op::Call { to_apply } => callee_cost(*to_apply),
        Op::While { condition, body } => {
            (callee_cost(*condition) + callee_cost(*body)) * iterations(module, computation, id).unwrap_or(1)
        }
        Op::Conditional { branch_computations } => branch_computations.iter().map(|&b| callee_cost(b)).sum(),
        Op::Map { to_apply, .. } => callee_cost(*to_apply) * count,
        Op::Dot { dot_dimension_numbers } => {
            let depth: u64 = operand(0).map_or(0, |lhs| {
                let sizes = dot_dimension_numbers.lhs_contracting_dims.iter().map(|&d| lhs.size(d) as u64);
                sizes.fold(1, u64::saturating_mul)
            });
            flops(multiply_adds(instruction.shape(), count.saturating_mul(depth)))
        }
        Op::Convolution { window, dim_labels, .. } => {
            let (Some(lhs), Some(rhs), Some(out)) = (operand(0), operand(1), instruction.shape().as_array())
            else {
                return Cost::default();
            };
            let sizes_of = |array: &ArrayShape, dimensions: &[usize]| -> Vec<i64> {
                dimensions.iter().map(|&d| array.size(d)).collect()
            };
            let taps = window_reads(
                window,
                &sizes_of(lhs, &dim_labels.input_spatial_dimensions),
                &sizes_of(out, &dim_labels.output_spatial_dimensions),
            );
            let positions: u64 = sizes_of(out, &dim_labels.output_spatial_dimensions)
                .iter()
                .fold(1, |product, &size| product.saturating_mul(size as u64));
            let each = count / positions.max(1);
            let depth = rhs.size(dim_labels.kernel_input_feature_dimension) as u64;
            flops(multiply_adds(instruction.shape(), taps.saturating_mul(each).saturating_mul(depth)))
        }
        Op::Reduce { to_apply, .. } => {
            let inputs = operand(0).map_or(0, |input| input.element_count() as u64);
            callee_cost(*to_apply) * inputs.saturating_sub(count)
        }
        Op::ReduceWindow { window, to_apply } => {
            let out = instruction.shape().leaves().first().map(|(_, leaf)| leaf.sizes());
            let reads = operand(0).zip(out).map(|(input, out)| window_reads(window, &input.sizes(), &out));
            callee_cost(*to_apply) * reads.unwrap_or(0).saturating_sub(count)
        }
        Op::SelectAndScatter { select, scatter, .. } => {
            let inputs = operand(0).map_or(0, |input| input.element_count() as u64);
            let sources = operand(1).map_or(0, |source| source.element_count() as u64);
            callee_cost(*select) * inputs + callee_cost(*scatter) * sources
        }
        Op::Scatter { to_apply, .. } => {
            let arrays = instruction.operands().len() / 2;
            let updates = operand(arrays + 1).map_or(0, |update| update.element_count() as u64);
            callee_cost(*to_apply) * updates
        }
        Op::Sort { dimension, to_apply, .. } => {
            let row = operand(0).map_or(1, |input| input.size(*dimension).max(1) as u64);
            let inputs = operand(0).map_or(0, |input| input.element_count() as u64);
            callee_cost(*to_apply) * inputs.saturating_mul(u64::from(row.ilog2() + 1))
        }
        Op::BatchNormInference { .. } => flops(count.saturating_mul(4)),
        Op::BatchNormTraining { .. } | Op::BatchNormGrad { .. } => flops(count.saturating_mul(8)),
        Op::Clamp {} => flops(count.saturating_mul(2)),
        Op::Copy {} | Op::Convert {} | Op::Real {} | Op::Imag {} | Op::Complex {} => Cost::default(),
        op if is_transcendental(op) => Cost { transcendentals: count, ..Cost::default() },
        op if op.opcode().traits().contains(Traits::ELEMENTWISE) => flops(count),
        _ => Cost::default(),
    }
}

/// Returns the trip count of a loop, if it follows from the initial state.
pub(super) fn iterations(module: &Module, computation: &Computation, id: InstructionId) -> Option<u64> {
    let Op::While { condition, body } = computation[id].op() else { return None };
    let state = &computation[computation[id].operands()[0]];
    let initial = |element: usize| match (state.op(), state.operands().get(element)) {
        (Op::Tuple {}, Some(&operand)) => range_in(module, computation, operand, &|_| None),
        _ => Range::default(),
    };
    trip_count(module, &module[*condition], &module[*body], &initial).exact
}

/// Maximum depth of calls that are followed. Modules that pass the verifier do not exceed it.
const MAX_DEPTH: usize = 64;

fn arithmetic_in(module: &Module, id: ComputationId, depth: usize) -> Cost {
    if depth > MAX_DEPTH {
        return Cost::default();
    }
    let computation = &module[id];
    let order = computation.post_order();
    order.iter().fold(Cost::default(), |sum, &i| sum + arithmetic_of(module, computation, i, depth))
}

fn elements(shape: &Shape) -> u64 {
    shape.leaves().first().map_or(0, |(_, leaf)| leaf.element_count() as u64)
}

/// Two flops each, or eight for complex numbers.
fn multiply_adds(shape: &Shape, count: u64) -> u64 {
    let is_complex = shape.as_array().is_some_and(|array| array.element_type.is_complex());
    count.saturating_mul(if is_complex { 8 } else { 2 })
}

/// Windows with more taps in one dimension are counted as if there were no padding.
const MAX_COUNTED: u64 = 1 << 22;

/// Number of elements that all windows read, without padding and the gaps of dilation.
///
/// Windows that grow from one to the next are counted as a running total.
fn window_reads(window: &Window, input: &[i64], output: &[i64]) -> u64 {
    if window.running_dimension(input, output).is_some() {
        let count = |sizes: &[i64]| sizes.iter().fold(1u64, |all, &size| all.saturating_mul(size as u64));
        return count(input).saturating_add(count(output));
    }
    let along = |((w, &input), &output): ((&WindowDimension, &i64), &i64)| -> u64 {
        let all = (w.size as u64).saturating_mul(output as u64);
        if all > MAX_COUNTED {
            return all;
        }
        let reads = |tap: i64| {
            (0..output).filter(move |out| {
                let position = out * w.stride + tap * w.window_dilation - w.padding_low;
                position >= 0 && position % w.base_dilation == 0 && position / w.base_dilation < input
            })
        };
        // Dimensions are independent: the total is the product of their counts.
        (0..w.size).map(|tap| reads(tap).count() as u64).sum()
    };
    window.dimensions.iter().zip(input).zip(output).map(along).fold(1, u64::saturating_mul)
}

fn is_transcendental(op: &Op) -> bool {
    matches!(
        op,
        Op::Acos {}
            | Op::Acosh {}
            | Op::Asin {}
            | Op::Asinh {}
            | Op::Atan2 {}
            | Op::Atanh {}
            | Op::Cbrt {}
            | Op::Cos {}
            | Op::Cosh {}
            | Op::Erf {}
            | Op::Exp {}
            | Op::Expm1 {}
            | Op::Log {}
            | Op::Log1p {}
            | Op::Logistic {}
            | Op::Power {}
            | Op::Rsqrt {}
            | Op::Sin {}
            | Op::Sinh {}
            | Op::Sqrt {}
            | Op::Tan {}
            | Op::Tanh {}
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(text: &str) -> Cost {
        let module = crate::parse(text).unwrap();
        let instructions = module.entry_computation().instructions();
        let ids = instructions
            .filter(|(_, i)| !matches!(i.op(), Op::Parameter { .. } | Op::Constant { .. } | Op::Tuple {}));
        ids.map(|(id, _)| Cost::of_instruction(&module, module.entry(), id)).sum()
    }

    #[test]
    fn a_dense_layer_costs_its_products_and_its_epilogue() {
        let cost = cost(
            "HloModule m
f {
  x = f32[2,3] parameter(0)
  w = f32[3,5] parameter(1)
  b = f32[5] parameter(2)
  d = f32[2,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[2,5] broadcast(b), dimensions={1}
  s = f32[2,5] add(d, bb)
  ROOT t = f32[2,5] tanh(s)
}
ENTRY main {
  x = f32[2,3] parameter(0)
  w = f32[3,5] parameter(1)
  b = f32[5] parameter(2)
  y = f32[2,5] fusion(x, w, b), kind=kOutput, calls=f
  ROOT r = (f32[2,5]) tuple(y)
}",
        );
        // 2*5 sums of 3 products: 60 flops; 10 additions; 10 tanh. 6 + 15 + 5 floats in, 10 out.
        let expected = Cost { flops: 70, transcendentals: 10, bytes_read: 104, bytes_written: 40 };
        assert_eq!(cost, expected);
    }

    #[test]
    fn padding_of_a_convolution_costs_nothing() {
        let cost = cost(
            "HloModule m
ENTRY main {
  x = f32[1,4,4,2] parameter(0)
  w = f32[3,3,2,8] parameter(1)
  y = f32[1,4,4,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  ROOT r = (f32[1,4,4,8]) tuple(y)
}",
        );
        // In a dimension of size 4, the taps read 3 + 4 + 3 elements: 100 taps for all positions, 2
        // inputs, 8 outputs.
        assert_eq!(cost.flops, 2 * 100 * 2 * 8);
        assert_eq!(cost.bytes_read, 4 * (32 + 144));
        assert_eq!(cost.bytes_written, 4 * 128);
    }

    #[test]
    fn the_cost_of_a_loop_is_multiplied_by_its_trip_count() {
        let cost = cost(
            "HloModule m
condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] exponential(x)
  ROOT r = (s32[], f32[8]) tuple(next, y)
}
ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(s), condition=condition, body=body
  ROOT y = f32[8] get-tuple-element(w), index=1
}",
        );
        // In each of 5 iterations: a comparison, an addition, and 8 exponentials.
        assert_eq!((cost.flops, cost.transcendentals), (5 * 2, 5 * 8));
    }

    #[test]
    fn reductions_cost_one_less_than_their_inputs_and_gathers_read_what_they_pick() {
        let cost = cost(
            "HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[1000,4] parameter(0)
  i = s32[2] parameter(1)
  zero = f32[] constant(0)
  rows = f32[2,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
  sum = f32[2] reduce(rows, zero), dimensions={1}, to_apply=add
  ROOT r = (f32[2]) tuple(sum)
}",
        );
        assert_eq!(cost.flops, 6);
        // Gather: 2 rows and 2 indices in, 2 rows out. Reduce: 2 rows and the zero in, 2 sums out.
        assert_eq!(cost.bytes_read, (32 + 8) + (32 + 4));
        assert_eq!(cost.bytes_written, 32 + 8);
    }

    #[test]
    fn a_running_total_costs_an_addition_for_each_element() {
        let cost = cost(
            "HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[5,1000] parameter(0)
  zero = f32[] constant(0)
  ROOT sums = f32[5,1000] reduce-window(x, zero), window={size=1x1000 pad=0_0x999_0}, to_apply=add
}",
        );
        assert_eq!(cost.flops, 5000);
    }
}
