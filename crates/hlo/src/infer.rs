//! Shape inference: what an opcode makes of operands of given shapes.
//!
//! The rules are those of XLA's operation semantics and `xla/service/shape_inference.cc`, without implicit broadcasts
//! and without mixed precision. One file for each family of opcodes; this one holds what they share.

mod batch_norm;
mod contraction;
mod control_flow;
mod elementwise;
mod gather_scatter;
mod linear_algebra;
mod reduction;
mod reindexing;
mod slicing;
mod special;
mod window;

use crate::ids::ComputationId;
use crate::module::Module;
use crate::opcode::{Arity, Op};
use shape::{ArrayShape, Dimension, PrimitiveType, ProgramShape, Shape};
use support::{Error, Result};

/// How many dimensions an array may have. TensorFlow's limit is 254.
pub const MAX_RANK: usize = 256;

/// How deep tuples may nest.
pub const MAX_TUPLE_DEPTH: usize = 64;

/// The shape of `op` applied to operands of these shapes, or an error that says which rule they break.
///
/// Opcodes whose result does not follow from operands and payload (`reshape`, `broadcast`, `convert`, `iota`, `rng`,
/// `custom-call` and so on) need `wanted`; for the others `wanted` is checked against what follows. A layout in
/// `wanted` is kept.
pub fn infer_shape(module: &Module, op: &Op, operands: &[&Shape], wanted: Option<&Shape>) -> Result<Shape> {
    let inference = Inference { module, op, operands, wanted };
    inference.check_arity()?;
    let shape = inference.dispatch()?;
    inference.check_bounds(&shape, 0)?;
    let Some(wanted) = wanted else { return Ok(shape) };
    if !shape.compatible(wanted) {
        return Err(inference.error(format_args!("makes {}, not {wanted}", without_layout(&shape))));
    }
    Ok(wanted.clone())
}

/// One question to shape inference.
struct Inference<'a> {
    module: &'a Module,
    op: &'a Op,
    operands: &'a [&'a Shape],
    wanted: Option<&'a Shape>,
}

impl<'a> Inference<'a> {
    /// The rule that is broken, with the opcode and the operands' shapes before it.
    fn error(&self, rule: impl std::fmt::Display) -> Error {
        let operands: Vec<String> = self.operands.iter().map(|shape| shape.to_string()).collect();
        Error::invalid(format!("{}({}): {rule}", self.op.opcode().name(), operands.join(", ")))
    }

    fn check(&self, holds: bool, rule: impl std::fmt::Display) -> Result<()> {
        if holds { Ok(()) } else { Err(self.error(rule)) }
    }

    /// Bounds what a short program can make: without this, ranks and tuples would double with each instruction.
    fn check_bounds(&self, shape: &Shape, depth: usize) -> Result<()> {
        match shape {
            Shape::Array(array) => {
                self.check(array.rank() <= MAX_RANK, format_args!("makes more than {MAX_RANK} dimensions"))
            }
            Shape::Tuple(elements) => {
                self.check(
                    depth < MAX_TUPLE_DEPTH,
                    format_args!("makes tuples that nest deeper than {MAX_TUPLE_DEPTH}"),
                )?;
                elements.iter().try_for_each(|element| self.check_bounds(element, depth + 1))
            }
            Shape::Token => Ok(()),
        }
    }

    fn check_arity(&self) -> Result<()> {
        match self.op.opcode().arity() {
            Arity::Exactly(count) => self.check(
                self.operands.len() == count,
                format_args!("takes {count} operands, not {}", self.operands.len()),
            ),
            Arity::Variadic => Ok(()),
        }
    }

    /// The operand at a position, which the arity or an earlier check promises.
    fn operand(&self, position: usize) -> Result<&'a Shape> {
        match self.operands.get(position) {
            Some(shape) => Ok(shape),
            None => Err(self.error(format_args!("lacks operand {position}"))),
        }
    }

    /// The operand at a position, which must be an array.
    fn array(&self, position: usize) -> Result<&'a ArrayShape> {
        let shape = self.operand(position)?;
        shape.as_array().ok_or_else(|| self.error(format_args!("operand {position} must be an array")))
    }

    /// Operands from a position on, all of which must be arrays.
    fn arrays(&self, positions: std::ops::Range<usize>) -> Result<Vec<&'a ArrayShape>> {
        positions.map(|position| self.array(position)).collect()
    }

    /// The operand at a position, which must be an array of rank 0.
    fn scalar(&self, position: usize) -> Result<&'a ArrayShape> {
        let array = self.array(position)?;
        self.check(array.rank() == 0, format_args!("operand {position} must be a scalar"))?;
        Ok(array)
    }

    /// The shape that the caller has to give, because it does not follow.
    fn wanted(&self) -> Result<&'a Shape> {
        self.wanted.ok_or_else(|| {
            let name = self.op.opcode().name();
            Error::internal(format!(
                "{name}: the result's shape does not follow from the operands, so give it"
            ))
        })
    }

    fn wanted_array(&self) -> Result<&'a ArrayShape> {
        let wanted = self.wanted()?;
        wanted.as_array().ok_or_else(|| self.error(format_args!("makes an array, not {wanted}")))
    }

    /// Checks that a dimension number is within a rank.
    fn check_dimension(&self, what: &str, dimension: usize, rank: usize) -> Result<()> {
        self.check(dimension < rank, format_args!("{what} {dimension} is not below the rank {rank}"))
    }

    /// Checks that dimension numbers are within a rank and differ.
    fn check_dimensions(&self, what: &str, dimensions: &[usize], rank: usize) -> Result<()> {
        for (i, &dimension) in dimensions.iter().enumerate() {
            self.check_dimension(what, dimension, rank)?;
            self.check(
                !dimensions[..i].contains(&dimension),
                format_args!("{what} names {dimension} twice"),
            )?;
        }
        Ok(())
    }

    fn check_ascending(&self, what: &str, dimensions: &[usize]) -> Result<()> {
        self.check(dimensions.is_sorted(), format_args!("{what} must ascend, not {dimensions:?}"))
    }

    /// Parameters and result of a called computation; an error if it does not exist or has no root yet.
    fn signature(&self, computation: ComputationId) -> Result<ProgramShape> {
        let called = self.module.get(computation).filter(|called| called.root_if_set().is_some());
        match called {
            Some(called) => Ok(called.program_shape()),
            None => Err(self.error(format_args!("calls {computation}, which does not exist"))),
        }
    }

    /// Checks that a called computation takes exactly these shapes.
    fn check_parameters(&self, what: &str, signature: &ProgramShape, arguments: &[&Shape]) -> Result<()> {
        let (have, want) = (signature.parameters.len(), arguments.len());
        self.check(have == want, format_args!("{what} takes {have} parameters, must take {want}"))?;
        for (number, (parameter, argument)) in signature.parameters.iter().zip(arguments).enumerate() {
            self.check(
                parameter.compatible(argument),
                format_args!(
                    "parameter {number} of {what} is {}, must be {}",
                    without_layout(parameter),
                    without_layout(argument)
                ),
            )?;
        }
        Ok(())
    }

    /// Every opcode, by family. No wildcard: a new row of the table must be answered here.
    fn dispatch(&self) -> Result<Shape> {
        match self.op {
            Op::Abs {}
            | Op::Acos {}
            | Op::Acosh {}
            | Op::Asin {}
            | Op::Asinh {}
            | Op::Atanh {}
            | Op::Cbrt {}
            | Op::Ceil {}
            | Op::Copy {}
            | Op::Cos {}
            | Op::Cosh {}
            | Op::CountLeadingZeros {}
            | Op::Erf {}
            | Op::Exp {}
            | Op::Expm1 {}
            | Op::Floor {}
            | Op::Imag {}
            | Op::IsFinite {}
            | Op::Log {}
            | Op::Log1p {}
            | Op::Logistic {}
            | Op::Negate {}
            | Op::Not {}
            | Op::PopulationCount {}
            | Op::Real {}
            | Op::RoundNearestAfz {}
            | Op::RoundNearestEven {}
            | Op::Rsqrt {}
            | Op::Sign {}
            | Op::Sin {}
            | Op::Sinh {}
            | Op::Sqrt {}
            | Op::Tan {}
            | Op::Tanh {} => self.unary(),
            Op::Add {}
            | Op::And {}
            | Op::Atan2 {}
            | Op::Complex {}
            | Op::Divide {}
            | Op::Maximum {}
            | Op::Minimum {}
            | Op::Multiply {}
            | Op::Or {}
            | Op::Power {}
            | Op::Remainder {}
            | Op::ShiftLeft {}
            | Op::ShiftRightArithmetic {}
            | Op::ShiftRightLogical {}
            | Op::Subtract {}
            | Op::Xor {} => self.binary(),
            Op::Compare { direction, comparison_type } => self.compare(*direction, *comparison_type),
            Op::Select {} => self.select(),
            Op::Clamp {} => self.clamp(),
            Op::Convert {} => self.convert(),
            Op::BitcastConvert {} => self.bitcast_convert(),
            Op::StochasticConvert {} => self.stochastic_convert(),
            Op::ReducePrecision { exponent_bits, .. } => self.reduce_precision(*exponent_bits),

            Op::Bitcast {} => self.bitcast(),
            Op::Broadcast { dimensions } => self.broadcast(dimensions),
            Op::Concatenate { dimension } => self.concatenate(*dimension),
            Op::DynamicReshape {} => self.dynamic_reshape(),
            Op::Iota { iota_dimension } => self.iota(*iota_dimension),
            Op::Pad { padding } => self.pad(padding),
            Op::Reshape {} => self.reshape(),
            Op::Reverse { dimensions } => self.reverse(dimensions),
            Op::Transpose { dimensions } => self.transpose(dimensions),

            Op::DynamicSlice { dynamic_slice_sizes } => self.dynamic_slice(dynamic_slice_sizes),
            Op::DynamicUpdateSlice {} => self.dynamic_update_slice(),
            Op::GetDimensionSize { dimension } => self.get_dimension_size(*dimension),
            Op::SetDimensionSize { dimension } => self.set_dimension_size(*dimension),
            Op::Slice { slice } => self.slice(slice),

            Op::Gather { gather_dimension_numbers, slice_sizes, .. } => {
                self.gather(gather_dimension_numbers, slice_sizes)
            }
            Op::Scatter { scatter_dimension_numbers, to_apply, .. } => {
                self.scatter(scatter_dimension_numbers, *to_apply)
            }

            Op::Convolution { window, dim_labels, feature_group_count, batch_group_count } => {
                self.convolution(window, dim_labels, *feature_group_count, *batch_group_count)
            }
            Op::Dot { dot_dimension_numbers } => self.dot(dot_dimension_numbers),

            Op::Map { dimensions, to_apply } => self.map(dimensions, *to_apply),
            Op::Reduce { dimensions, to_apply } => self.reduce(dimensions, *to_apply),
            Op::ReduceWindow { window, to_apply } => self.reduce_window(window, *to_apply),
            Op::SelectAndScatter { window, select, scatter } => {
                self.select_and_scatter(window, *select, *scatter)
            }
            Op::Sort { dimension, to_apply, .. } => self.sort(*dimension, *to_apply),
            Op::TopK { k, .. } => self.top_k(*k),

            Op::Call { to_apply } => self.call("the called computation", *to_apply),
            Op::Conditional { branch_computations } => self.conditional(branch_computations),
            Op::Fusion { calls, .. } => self.call("the fused computation", *calls),
            Op::While { condition, body } => self.while_loop(*condition, *body),

            Op::BatchNormGrad { feature_index, .. } => self.batch_norm_grad(*feature_index),
            Op::BatchNormInference { feature_index, .. } => self.batch_norm_inference(*feature_index),
            Op::BatchNormTraining { feature_index, .. } => self.batch_norm_training(*feature_index),

            Op::Cholesky { .. } => self.cholesky(),
            Op::Fft { fft_type, fft_length } => self.fft(*fft_type, fft_length),
            Op::TriangularSolve { left_side, .. } => self.triangular_solve(*left_side),

            Op::AddDependency {} => self.add_dependency(),
            Op::AfterAll {} => self.after_all(),
            Op::Constant { literal } => Ok(literal.shape()),
            Op::GetTupleElement { index } => self.get_tuple_element(*index),
            Op::OptimizationBarrier {} => Ok(self.operand(0)?.clone()),
            Op::PartitionId {} | Op::ReplicaId {} => Ok(Shape::scalar(PrimitiveType::U32)),
            Op::Rng { .. } => self.rng(),
            Op::RngBitGenerator { .. } => self.rng_bit_generator(),
            Op::RngGetAndUpdateState { .. } => self.rng_get_and_update_state(),
            Op::Tuple {} => Ok(Shape::Tuple(self.operands.iter().map(|&shape| shape.clone()).collect())),

            Op::CustomCall { .. } | Op::Parameter { .. } => Ok(self.wanted()?.clone()),
            // Read and printed, never compiled: the shape is as given.
            Op::AllGather { .. }
            | Op::AllGatherDone { .. }
            | Op::AllGatherStart { .. }
            | Op::AllReduce { .. }
            | Op::AllReduceDone { .. }
            | Op::AllReduceStart { .. }
            | Op::AllToAll { .. }
            | Op::AsyncDone { .. }
            | Op::AsyncStart { .. }
            | Op::AsyncUpdate { .. }
            | Op::CollectiveBroadcast { .. }
            | Op::CollectivePermute { .. }
            | Op::CollectivePermuteDone { .. }
            | Op::CollectivePermuteStart { .. }
            | Op::CopyDone { .. }
            | Op::CopyStart { .. }
            | Op::Domain { .. }
            | Op::Infeed { .. }
            | Op::Outfeed { .. }
            | Op::RaggedAllToAll { .. }
            | Op::RaggedDot { .. }
            | Op::Recv { .. }
            | Op::RecvDone { .. }
            | Op::ReduceScatter { .. }
            | Op::ScaledDot { .. }
            | Op::Scan { .. }
            | Op::Send { .. }
            | Op::SendDone { .. } => Ok(self.wanted()?.clone()),
        }
    }
}

/// An array of an element type and dimensions.
fn array_of(element_type: PrimitiveType, dimensions: Vec<Dimension>) -> Shape {
    Shape::Array(ArrayShape { element_type, dimensions, layout: None })
}

/// The same dimensions with another element type, and no layout.
fn retyped(array: &ArrayShape, element_type: PrimitiveType) -> Shape {
    array_of(element_type, array.dimensions.clone())
}

/// The same shape without layouts, for messages about what differs.
fn without_layout(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => retyped(array, array.element_type),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(without_layout).collect()),
        Shape::Token => Shape::Token,
    }
}

/// `size` of `<=size` if either is dynamic; the sizes are equal.
fn either_dynamic(a: Dimension, b: Dimension) -> Dimension {
    Dimension { size: a.size, is_dynamic: a.is_dynamic || b.is_dynamic }
}
