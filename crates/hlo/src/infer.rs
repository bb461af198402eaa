//! Shape inference: the result shape of an opcode for given operand shapes.
//!
//! The rules are those of XLA's operation semantics and `xla/service/shape_inference.cc`, without
//! implicit broadcasts and without mixed precision. Each family of opcodes has its own file; this
//! one contains the shared code.

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
use crate::{binary_ops, calling_ops, carried_ops, direct_ops, movement_ops, numeric_ops, unary_ops};
use shape::{ArrayShape, Dimension, PrimitiveType, ProgramShape, Shape};
use support::{Error, Result};

/// Maximum number of dimensions of an array. TensorFlow's limit is 254.
pub const MAX_RANK: usize = 256;

/// Maximum nesting depth of tuples.
pub const MAX_TUPLE_DEPTH: usize = 64;

/// Returns the shape of `op` applied to operands of these shapes, or an error that states the
/// violated rule.
///
/// Opcodes whose result shape does not follow from operands and payload (`reshape`, `broadcast`,
/// `convert`, `iota`, `rng`, `custom-call`, and so on) need `declared`; for the others, `declared`
/// is checked against the inferred shape. A layout in `declared` is kept.
pub fn infer_shape(module: &Module, op: &Op, operands: &[&Shape], declared: Option<&Shape>) -> Result<Shape> {
    let inference = Inference { module, op, operands, declared };
    inference.check_arity()?;
    let shape = inference.dispatch()?;
    inference.check_bounds(&shape, 0)?;
    let Some(declared) = declared else { return Ok(shape) };
    if !shape.compatible(declared) {
        return Err(inference.error(format_args!(
            "the result has shape {}, but {declared} is declared",
            without_layout(&shape)
        )));
    }
    Ok(declared.clone())
}

/// A query to shape inference.
struct Inference<'a> {
    module: &'a Module,
    op: &'a Op,
    operands: &'a [&'a Shape],
    declared: Option<&'a Shape>,
}

impl<'a> Inference<'a> {
    /// Creates an error for a violated rule, prefixed by the opcode and the operands' shapes.
    fn error(&self, rule: impl std::fmt::Display) -> Error {
        let operands: Vec<String> = self.operands.iter().map(|shape| shape.to_string()).collect();
        Error::invalid(format!("{}({}): {rule}", self.op.opcode().name(), operands.join(", ")))
    }

    fn check(&self, holds: bool, rule: impl std::fmt::Display) -> Result<()> {
        if holds { Ok(()) } else { Err(self.error(rule)) }
    }

    /// Bounds the shapes in a short program: otherwise ranks and tuples could double with each
    /// instruction.
    fn check_bounds(&self, shape: &Shape, depth: usize) -> Result<()> {
        match shape {
            Shape::Array(array) => self.check(
                array.rank() <= MAX_RANK,
                format_args!("the result has more than {MAX_RANK} dimensions"),
            ),
            Shape::Tuple(elements) => {
                self.check(
                    depth < MAX_TUPLE_DEPTH,
                    format_args!("tuples in the result nest deeper than {MAX_TUPLE_DEPTH} levels"),
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
                format_args!("expected {count} operands, got {}", self.operands.len()),
            ),
            Arity::Variadic => Ok(()),
        }
    }

    /// Returns the operand at a position, whose existence the arity or an earlier check ensures.
    fn operand(&self, position: usize) -> Result<&'a Shape> {
        match self.operands.get(position) {
            Some(shape) => Ok(shape),
            None => Err(self.error(format_args!("missing operand {position}"))),
        }
    }

    /// Returns the operand at a position, which must be an array.
    fn array(&self, position: usize) -> Result<&'a ArrayShape> {
        let shape = self.operand(position)?;
        shape.as_array().ok_or_else(|| self.error(format_args!("operand {position} must be an array")))
    }

    /// Returns the operands at these positions, all of which must be arrays.
    fn arrays(&self, positions: std::ops::Range<usize>) -> Result<Vec<&'a ArrayShape>> {
        positions.map(|position| self.array(position)).collect()
    }

    /// Returns the operand at a position, which must be an array of rank 0.
    fn scalar(&self, position: usize) -> Result<&'a ArrayShape> {
        let array = self.array(position)?;
        self.check(array.rank() == 0, format_args!("operand {position} must be a scalar"))?;
        Ok(array)
    }

    /// Returns the declared shape, which is required because it cannot be inferred.
    fn declared(&self) -> Result<&'a Shape> {
        self.declared.ok_or_else(|| {
            let name = self.op.opcode().name();
            Error::internal(format!(
                "{name}: missing the result's shape, which does not follow from the operands"
            ))
        })
    }

    fn declared_array(&self) -> Result<&'a ArrayShape> {
        let declared = self.declared()?;
        declared
            .as_array()
            .ok_or_else(|| self.error(format_args!("the result is an array, but {declared} is declared")))
    }

    /// Checks that a dimension number is less than a rank.
    fn check_dimension(&self, what: &str, dimension: usize, rank: usize) -> Result<()> {
        self.check(dimension < rank, format_args!("{what}: {dimension} is out of range for rank {rank}"))
    }

    /// Checks that dimension numbers are distinct and less than a rank.
    fn check_dimensions(&self, what: &str, dimensions: &[usize], rank: usize) -> Result<()> {
        for (i, &dimension) in dimensions.iter().enumerate() {
            self.check_dimension(what, dimension, rank)?;
            self.check(
                !dimensions[..i].contains(&dimension),
                format_args!("{what}: duplicate dimension {dimension}"),
            )?;
        }
        Ok(())
    }

    fn check_ascending(&self, what: &str, dimensions: &[usize]) -> Result<()> {
        self.check(dimensions.is_sorted(), format_args!("{what} must be sorted, got {dimensions:?}"))
    }

    /// Returns the parameters and result of a called computation; an error if it does not exist or
    /// has no root.
    fn signature(&self, computation: ComputationId) -> Result<ProgramShape> {
        let callee = self.module.get(computation).filter(|callee| callee.root_if_set().is_some());
        match callee {
            Some(callee) => Ok(callee.program_shape()),
            None => Err(self.error(format_args!("calls {computation}, which does not exist"))),
        }
    }

    /// Checks that a called computation has exactly these parameter shapes.
    fn check_parameters(&self, what: &str, signature: &ProgramShape, arguments: &[&Shape]) -> Result<()> {
        let (actual, expected) = (signature.parameters.len(), arguments.len());
        self.check(
            actual == expected,
            format_args!("expected {expected} parameters of {what}, got {actual}"),
        )?;
        for (number, (parameter, argument)) in signature.parameters.iter().zip(arguments).enumerate() {
            self.check(
                parameter.compatible(argument),
                format_args!(
                    "expected parameter {number} of {what} to be {}, got {}",
                    without_layout(argument),
                    without_layout(parameter)
                ),
            )?;
        }
        Ok(())
    }

    /// Dispatches on the opcode, by family. There is no wildcard, so a new opcode must be handled
    /// here.
    fn dispatch(&self) -> Result<Shape> {
        match self.op {
            unary_ops!() => self.unary(),
            binary_ops!() => self.binary(),
            Op::BitcastConvert {} => self.bitcast_convert(),
            Op::Clamp {} => self.clamp(),
            Op::Compare { direction, comparison_type } => self.compare(*direction, *comparison_type),
            Op::Complex {} => self.binary(),
            Op::Convert {} => self.convert(),
            Op::ReducePrecision { exponent_bits, .. } => self.reduce_precision(*exponent_bits),
            Op::Select {} => self.select(),
            Op::StochasticConvert {} => self.stochastic_convert(),

            Op::AddDependency {} => self.add_dependency(),
            Op::Bitcast {} => self.bitcast(),
            Op::Copy {} => self.unary(),
            Op::OptimizationBarrier {} => Ok(self.operand(0)?.clone()),
            Op::Reshape {} => self.reshape(),

            Op::AfterAll {} => self.after_all(),
            Op::Constant { literal } => Ok(literal.shape()),
            Op::GetTupleElement { index } => self.get_tuple_element(*index),
            Op::Parameter { .. } => Ok(self.declared()?.clone()),
            Op::PartitionId {} | Op::ReplicaId {} => Ok(Shape::scalar(PrimitiveType::U32)),
            Op::Tuple {} => Ok(Shape::Tuple(self.operands.iter().map(|&shape| shape.clone()).collect())),

            movement_ops!() => self.movement(),
            calling_ops!() => self.calling(),
            numeric_ops!() => self.numeric(),
            // These are read and printed, but never compiled: the declared shape is used.
            carried_ops!() => Ok(self.declared()?.clone()),
        }
    }

    fn movement(&self) -> Result<Shape> {
        match self.op {
            Op::Broadcast { dimensions } => self.broadcast(dimensions),
            Op::Concatenate { dimension } => self.concatenate(*dimension),
            Op::DynamicReshape {} => self.dynamic_reshape(),
            Op::DynamicSlice { dynamic_slice_sizes } => self.dynamic_slice(dynamic_slice_sizes),
            Op::DynamicUpdateSlice {} => self.dynamic_update_slice(),
            Op::Gather { gather_dimension_numbers, slice_sizes, .. } => {
                self.gather(gather_dimension_numbers, slice_sizes)
            }
            Op::GetDimensionSize { dimension } => self.get_dimension_size(*dimension),
            Op::Iota { iota_dimension } => self.iota(*iota_dimension),
            Op::Pad { padding } => self.pad(padding),
            Op::Reverse { dimensions } => self.reverse(dimensions),
            Op::SetDimensionSize { dimension } => self.set_dimension_size(*dimension),
            Op::Slice { slice } => self.slice(slice),
            Op::Transpose { dimensions } => self.transpose(dimensions),
            calling_ops!() | numeric_ops!() | direct_ops!() => Err(self.elsewhere()),
        }
    }

    fn calling(&self) -> Result<Shape> {
        match self.op {
            Op::Call { to_apply } => self.call("the called computation", *to_apply),
            Op::Conditional { branch_computations } => self.conditional(branch_computations),
            Op::CustomCall { .. } => Ok(self.declared()?.clone()),
            Op::Fusion { calls, .. } => self.call("the fused computation", *calls),
            Op::Map { dimensions, to_apply } => self.map(dimensions, *to_apply),
            Op::Reduce { dimensions, to_apply } => self.reduce(dimensions, *to_apply),
            Op::ReduceWindow { window, to_apply } => self.reduce_window(window, *to_apply),
            Op::Scatter { scatter_dimension_numbers, to_apply, .. } => {
                self.scatter(scatter_dimension_numbers, *to_apply)
            }
            Op::SelectAndScatter { window, select, scatter } => {
                self.select_and_scatter(window, *select, *scatter)
            }
            Op::Sort { dimension, to_apply, .. } => self.sort(*dimension, *to_apply),
            Op::While { condition, body } => self.while_loop(*condition, *body),
            movement_ops!() | numeric_ops!() | direct_ops!() => Err(self.elsewhere()),
        }
    }

    fn numeric(&self) -> Result<Shape> {
        match self.op {
            Op::BatchNormGrad { feature_index, .. } => self.batch_norm_grad(*feature_index),
            Op::BatchNormInference { feature_index, .. } => self.batch_norm_inference(*feature_index),
            Op::BatchNormTraining { feature_index, .. } => self.batch_norm_training(*feature_index),
            Op::Cholesky { .. } => self.cholesky(),
            Op::Convolution { window, dim_labels, feature_group_count, batch_group_count } => {
                self.convolution(window, dim_labels, *feature_group_count, *batch_group_count)
            }
            Op::Dot { dot_dimension_numbers } => self.dot(dot_dimension_numbers),
            Op::Fft { fft_type, fft_length } => self.fft(*fft_type, fft_length),
            Op::Rng { .. } => self.rng(),
            Op::RngBitGenerator { .. } => self.rng_bit_generator(),
            Op::RngGetAndUpdateState { .. } => self.rng_get_and_update_state(),
            Op::TopK { k, .. } => self.top_k(*k),
            Op::TriangularSolve { left_side, .. } => self.triangular_solve(*left_side),
            movement_ops!() | calling_ops!() | direct_ops!() => Err(self.elsewhere()),
        }
    }

    /// Creates an error for an opcode that belongs to another family.
    fn elsewhere(&self) -> Error {
        Error::internal(format!("unexpected opcode '{}' in this family", self.op.opcode().name()))
    }
}

/// Creates an array shape from an element type and dimensions.
fn array_of(element_type: PrimitiveType, dimensions: Vec<Dimension>) -> Shape {
    Shape::Array(ArrayShape { element_type, dimensions, layout: None })
}

/// Returns the same dimensions with another element type and without a layout.
fn with_type(array: &ArrayShape, element_type: PrimitiveType) -> Shape {
    array_of(element_type, array.dimensions.clone())
}

/// Returns the shape without layouts, for messages about differences.
fn without_layout(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => with_type(array, array.element_type),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(without_layout).collect()),
        Shape::Token => Shape::Token,
    }
}

/// Combines two dimensions of equal size; the result is dynamic if either one is.
fn either_dynamic(a: Dimension, b: Dimension) -> Dimension {
    Dimension { size: a.size, is_dynamic: a.is_dynamic || b.is_dynamic }
}
