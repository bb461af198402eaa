//! Dispatches an instruction to the function that evaluates its opcode.

use crate::array::check_array;
use crate::convolution::Convolution;
use crate::dynamic_index::indices_of;
use crate::elementwise::{self, Function};
use crate::evaluator::Evaluator;
use crate::linear_algebra::TriangularSolve;
use crate::{batch_norm, convert, data_movement, gather_scatter, random, sort};
use hlo::custom_call::{CustomCallKind, custom_call};
use hlo::{
    Arity, Op, binary_ops, calling_ops, carried_ops, direct_ops, movement_ops, numeric_ops, unary_ops,
};
use shape::{Literal, Shape};
use support::{Error, Result};

impl Evaluator<'_> {
    /// Evaluates one instruction with the given opcode and result shape. Parameters have no value,
    /// so they are an error. So are instructions that communicate with other devices, the host, or
    /// foreign code.
    pub fn evaluate_instruction(&mut self, op: &Op, shape: &Shape, operands: &[&Literal]) -> Result<Literal> {
        if let Arity::Exactly(count) = op.opcode().arity()
            && count != operands.len()
        {
            let (name, actual) = (op.opcode().name(), operands.len());
            return Err(Error::invalid(format!("{name} takes {count} operands, got {actual}")));
        }
        self.check_allocation(shape)?;
        self.charge(1)?;
        for (_, leaf) in shape.leaves() {
            self.charge(leaf.element_count() as u64)?;
        }
        self.dispatch(op, shape, operands)
    }

    fn dispatch(&mut self, op: &Op, shape: &Shape, operands: &[&Literal]) -> Result<Literal> {
        match op {
            unary_ops!()
            | binary_ops!()
            | Op::Clamp {}
            | Op::Compare { .. }
            | Op::Complex {}
            | Op::Convert {}
            | Op::ReducePrecision { .. }
            | Op::Select {}
            | Op::StochasticConvert {} => elementwise(op, shape, operands),
            Op::BitcastConvert {} => convert::bitcast_convert(shape, operands[0]),
            Op::AddDependency {} | Op::Copy {} | Op::OptimizationBarrier {} => Ok(operands[0].clone()),
            Op::Bitcast {} | Op::Reshape {} => data_movement::reshape(shape, operands[0]),
            Op::AfterAll {} => Ok(token()),
            Op::Constant { literal } => Ok(literal.clone()),
            Op::GetTupleElement { index } => get_tuple_element(operands[0], *index),
            Op::Parameter { number } => Err(Error::invalid(format!("parameter {number} has no value here"))),
            // There is one replica with one partition.
            Op::PartitionId {} | Op::ReplicaId {} => Ok(Literal::scalar(0u32)),
            Op::Tuple {} => Ok(Literal::Tuple(operands.iter().map(|&o| o.clone()).collect())),
            movement_ops!() => movement(op, shape, operands),
            calling_ops!() => self.calling(op, shape, operands),
            numeric_ops!() => self.numeric(op, shape, operands),
            carried_ops!() => Err(unknown(op)),
        }
    }

    fn calling(&mut self, op: &Op, shape: &Shape, operands: &[&Literal]) -> Result<Literal> {
        match op {
            Op::Call { to_apply } => self.call(*to_apply, operands),
            Op::Conditional { branch_computations } => self.conditional(branch_computations, operands),
            // The contents are unspecified; use zeros.
            Op::CustomCall { custom_call_target, .. }
                if custom_call_target == hlo::custom_call::ALLOCATE_BUFFER =>
            {
                let array = shape
                    .as_array()
                    .ok_or_else(|| Error::invalid("expected an array shape for the buffer"))?;
                Literal::from_bytes(array.clone(), vec![0; array.byte_size() as usize].into())
                    .ok_or_else(|| Error::internal("the buffer's size does not match its shape"))
            }
            op @ Op::CustomCall { .. } if custom_call(op).is_some() => custom_call_with_code(op, operands),
            Op::CustomCall { custom_call_target, .. } => Err(Error::unsupported(format!(
                "the evaluator has no implementation of the custom call \"{custom_call_target}\""
            ))),
            Op::Fusion { calls, .. } => self.call(*calls, operands),
            Op::Map { to_apply, .. } => self.map(shape, operands, *to_apply),
            Op::Reduce { dimensions, to_apply } => self.reduce(shape, operands, dimensions, *to_apply),
            Op::ReduceWindow { window, to_apply } => self.reduce_window(shape, operands, window, *to_apply),
            Op::Scatter { scatter_dimension_numbers, to_apply, .. } => {
                self.scatter(shape, operands, scatter_dimension_numbers, *to_apply)
            }
            Op::SelectAndScatter { window, select, scatter } => {
                self.select_and_scatter(shape, fixed_operands(operands)?, window, *select, *scatter)
            }
            Op::Sort { dimension, to_apply, .. } => self.sort(shape, operands, *dimension, *to_apply),
            Op::While { condition, body } => self.while_loop(*condition, *body, operands[0]),
            movement_ops!() | numeric_ops!() | direct_ops!() => Err(elsewhere(op)),
        }
    }

    fn numeric(&mut self, op: &Op, shape: &Shape, operands: &[&Literal]) -> Result<Literal> {
        match op {
            Op::BatchNormGrad { epsilon, feature_index } => {
                batch_norm::grad(shape, fixed_operands(operands)?, *epsilon, *feature_index)
            }
            Op::BatchNormInference { epsilon, feature_index } => {
                batch_norm::inference(shape, fixed_operands(operands)?, *epsilon, *feature_index)
            }
            Op::BatchNormTraining { epsilon, feature_index } => {
                batch_norm::training(shape, fixed_operands(operands)?, *epsilon, *feature_index)
            }
            Op::Cholesky { lower } => self.cholesky(shape, operands[0], *lower),
            Op::Convolution { window, dim_labels, feature_group_count, batch_group_count } => {
                let (feature_group_count, batch_group_count) = (*feature_group_count, *batch_group_count);
                let convolution = Convolution { window, dim_labels, feature_group_count, batch_group_count };
                self.convolution(shape, operands[0], operands[1], &convolution)
            }
            Op::Dot { dot_dimension_numbers } => {
                self.dot(shape, operands[0], operands[1], dot_dimension_numbers)
            }
            Op::Fft { fft_type, fft_length } => self.fft(shape, operands[0], *fft_type, fft_length),
            Op::Rng { distribution } => self.rng(shape, fixed_operands(operands)?, *distribution),
            Op::RngBitGenerator { algorithm } => random::rng_bit_generator(shape, operands[0], *algorithm),
            Op::RngGetAndUpdateState { delta } => self.rng_get_and_update_state(shape, *delta),
            Op::TopK { k, largest } => sort::top_k(shape, operands[0], *k, *largest),
            &Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => {
                let options = TriangularSolve { left_side, lower, unit_diagonal, transpose_a };
                self.triangular_solve(shape, operands[0], operands[1], options)
            }
            movement_ops!() | calling_ops!() | direct_ops!() => Err(elsewhere(op)),
        }
    }
}

fn movement(op: &Op, shape: &Shape, operands: &[&Literal]) -> Result<Literal> {
    match op {
        Op::Broadcast { dimensions } => data_movement::broadcast(shape, operands[0], dimensions),
        Op::Concatenate { dimension } => data_movement::concatenate(shape, operands, *dimension),
        Op::DynamicReshape {} => Err(unknown(op)),
        Op::DynamicSlice { .. } => {
            let (operand, start) = first(operands)?;
            data_movement::dynamic_slice(shape, operand, &indices_of(start)?)
        }
        Op::DynamicUpdateSlice {} => {
            let (operand, rest) = first(operands)?;
            let (update, start) = first(rest)?;
            data_movement::dynamic_update_slice(operand, update, &indices_of(start)?)
        }
        Op::Gather { gather_dimension_numbers, slice_sizes, .. } => {
            gather_scatter::gather(shape, operands[0], operands[1], gather_dimension_numbers, slice_sizes)
        }
        Op::GetDimensionSize { dimension } => get_dimension_size(operands[0], *dimension),
        Op::Iota { iota_dimension } => data_movement::iota(shape, *iota_dimension),
        Op::Pad { padding } => data_movement::pad(shape, operands[0], operands[1], padding),
        Op::Reverse { dimensions } => data_movement::reverse(shape, operands[0], dimensions),
        // The size is stored separately from the value, see `computation`.
        Op::SetDimensionSize { .. } => data_movement::reshape(shape, operands[0]),
        Op::Slice { slice } => data_movement::slice(shape, operands[0], slice),
        Op::Transpose { dimensions } => data_movement::transpose(operands[0], dimensions),
        calling_ops!() | numeric_ops!() | direct_ops!() => Err(elsewhere(op)),
    }
}

fn unknown(op: &Op) -> Error {
    Error::unsupported(format!("the evaluator does not support {}", op.opcode().name()))
}

/// Error for an opcode outside the table's family.
fn elsewhere(op: &Op) -> Error {
    Error::internal(format!("{} does not belong to this family of opcodes", op.opcode().name()))
}

fn elementwise(op: &Op, shape: &Shape, operands: &[&Literal]) -> Result<Literal> {
    match Function::of(op) {
        Some(function) => elementwise::evaluate(function, shape, operands),
        None => Err(Error::internal(format!("{} is not an elementwise function", op.opcode().name()))),
    }
}

fn fixed_operands<'a, const N: usize>(operands: &[&'a Literal]) -> Result<[&'a Literal; N]> {
    operands.try_into().map_err(|_| Error::invalid(format!("expected {N} operands, got {}", operands.len())))
}

fn first<'a, 'b>(operands: &'b [&'a Literal]) -> Result<(&'a Literal, &'b [&'a Literal])> {
    match operands {
        [first, rest @ ..] => Ok((first, rest)),
        [] => Err(Error::invalid("missing operand")),
    }
}

/// Returns the value of a token.
fn token() -> Literal {
    Literal::Tuple(Vec::new())
}

fn get_tuple_element(tuple: &Literal, index: usize) -> Result<Literal> {
    match tuple {
        Literal::Tuple(elements) if index < elements.len() => Ok(elements[index].clone()),
        other => Err(Error::invalid(format!("{} has no element {index}", other.shape()))),
    }
}

fn get_dimension_size(operand: &Literal, dimension: usize) -> Result<Literal> {
    check_array(operand)?;
    match operand.array_shape().dimensions.get(dimension) {
        Some(dimension_shape) => Ok(Literal::scalar(dimension_shape.size as i32)),
        None => Err(Error::invalid(format!("{} has no dimension {dimension}", operand.shape()))),
    }
}

/// Evaluates a custom call with known semantics: a check, which can fail the evaluation, or a
/// user-defined function, which is unavailable here.
fn custom_call_with_code(op: &Op, operands: &[&Literal]) -> Result<Literal> {
    match (custom_call(op), operands) {
        (Some(CustomCallKind::Assert { message, .. }), [holds]) => match holds.scalar_at(0).as_i64() {
            Some(0) => Err(Error::invalid(message)),
            _ => Ok(Literal::Tuple(Vec::new())),
        },
        (Some(CustomCallKind::Function { symbol, .. }), _) => Err(Error::unsupported(format!(
            "the evaluator cannot call the C function '{symbol}': compile ahead of time and link it"
        ))),
        _ => Err(Error::invalid("expected one operand of the check")),
    }
}
