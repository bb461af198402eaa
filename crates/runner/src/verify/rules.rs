//! Classifies the rounding of instructions.

use hlo::{ComputationId, Instruction, Module, Op, Traits};
use shape::{Literal, PrimitiveType};

/// Method for estimating an instruction's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// A function of the elements at each index.
    Elementwise,
    /// Moves, selects, or compares elements without rounding.
    Moves,
    /// Sums of products.
    Product,
    /// Sums.
    Sum,
    /// Products of elements.
    Factors,
    /// Anything else.
    Other,
}

/// Returns the rule of an instruction.
pub(super) fn rule_of(module: &Module, instruction: &Instruction) -> Rule {
    match instruction.op() {
        Op::Dot { .. } | Op::Convolution { .. } => Rule::Product,
        Op::Reduce { to_apply, .. } | Op::ReduceWindow { to_apply, .. } => {
            combination(module, *to_apply, instruction.operands().len() == 2)
        }
        Op::Scatter { to_apply, .. } => combination(module, *to_apply, instruction.operands().len() == 3),
        Op::Clamp {} => Rule::Elementwise,
        op if op.opcode().traits().contains(Traits::ELEMENTWISE) => Rule::Elementwise,
        op if op.opcode().traits().contains(Traits::REINDEXES) => Rule::Moves,
        Op::BitcastConvert {}
        | Op::Concatenate { .. }
        | Op::Constant { .. }
        | Op::Copy {}
        | Op::DynamicUpdateSlice {}
        | Op::Gather { .. }
        | Op::GetDimensionSize { .. }
        | Op::Iota { .. }
        | Op::OptimizationBarrier {}
        | Op::Pad { .. }
        | Op::RngBitGenerator { .. }
        | Op::RngGetAndUpdateState { .. }
        | Op::SetDimensionSize { .. }
        | Op::Sort { .. }
        | Op::TopK { .. } => Rule::Moves,
        _ => Rule::Other,
    }
}

/// Returns the rule for combining elements by a computation.
fn combination(module: &Module, id: ComputationId, single: bool) -> Rule {
    let computation = &module[id];
    let arithmetic = computation.instructions().filter(|(_, i)| !matches!(i.op(), Op::Parameter { .. }));
    let ops: Vec<&Op> = arithmetic.map(|(_, i)| i.op()).collect();
    match ops.as_slice() {
        [Op::Add {}] if single => return Rule::Sum,
        [Op::Multiply {}] if single => return Rule::Factors,
        _ => {}
    }
    let picks = |op: &&Op| {
        own_ulps(op, PrimitiveType::F32) == 0.0
            || matches!(op, Op::Tuple {} | Op::GetTupleElement { .. } | Op::Constant { .. })
    };
    if ops.iter().all(picks) { Rule::Moves } else { Rule::Other }
}

/// Returns the number of terms of each sum of an instruction, or 1 if it sums nothing.
pub(super) fn terms_of_sum(instruction: &Instruction, operands: &[Literal]) -> f64 {
    let sizes = |k: usize| operands.get(k).map(|o| o.array_shape().sizes()).unwrap_or_default();
    let product = |sizes: &[i64]| sizes.iter().map(|&size| size as f64).product::<f64>();
    let terms = match instruction.op() {
        Op::Dot { dot_dimension_numbers } => {
            let lhs = sizes(0);
            dot_dimension_numbers.lhs_contracting_dims.iter().map(|&d| lhs[d] as f64).product()
        }
        Op::Convolution { dim_labels, .. } => {
            let kernel = sizes(1);
            product(&kernel) / (kernel[dim_labels.kernel_output_feature_dimension] as f64).max(1.0)
        }
        Op::Reduce { dimensions, .. } => {
            let input = sizes(0);
            1.0 + dimensions.iter().map(|&d| input[d] as f64).product::<f64>()
        }
        Op::ReduceWindow { window, .. } => {
            1.0 + window.dimensions.iter().map(|w| w.size as f64).product::<f64>()
        }
        Op::Scatter { .. } => 1.0 + product(&sizes(operands.len().saturating_sub(1))),
        Op::SelectAndScatter { window, .. } => window.dimensions.iter().map(|w| w.size as f64).product(),
        _ => product(&sizes(0)).sqrt(),
    };
    terms.max(1.0)
}

/// True if the errors of an elementwise function's operands simply add up in its result.
pub(super) fn is_linear(op: &Op) -> bool {
    matches!(op, Op::Add {} | Op::Subtract {} | Op::Complex {})
}

/// Returns the error of code, in ulps, in an elementwise function of exact arguments: 1 for IEEE
/// arithmetic that code may round differently, 4 for approximated functions, 16 for functions of
/// complex numbers.
pub(super) fn own_ulps(op: &Op, element_type: PrimitiveType) -> f64 {
    let exact = matches!(
        op,
        Op::Abs {}
            | Op::And {}
            | Op::Ceil {}
            | Op::Clamp {}
            | Op::Compare { .. }
            | Op::Complex {}
            | Op::Copy {}
            | Op::CountLeadingZeros {}
            | Op::Floor {}
            | Op::Imag {}
            | Op::IsFinite {}
            | Op::Maximum {}
            | Op::Minimum {}
            | Op::Negate {}
            | Op::Not {}
            | Op::Or {}
            | Op::PopulationCount {}
            | Op::Real {}
            | Op::ReducePrecision { .. }
            | Op::RoundNearestAfz {}
            | Op::RoundNearestEven {}
            | Op::Select {}
            | Op::ShiftLeft {}
            | Op::ShiftRightArithmetic {}
            | Op::ShiftRightLogical {}
            | Op::Sign {}
            | Op::Xor {}
    );
    let is_complex = element_type.is_complex();
    match op {
        Op::Abs {} | Op::Sign {} if is_complex => 16.0,
        _ if exact => 0.0,
        _ if is_complex => 16.0,
        Op::Add {}
        | Op::Subtract {}
        | Op::Multiply {}
        | Op::Divide {}
        | Op::Sqrt {}
        | Op::Convert {}
        | Op::Remainder {}
        | Op::StochasticConvert {} => 1.0,
        _ => 4.0,
    }
}
