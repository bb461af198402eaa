//! Individual instructions: the shape follows from the operands, and the payload is valid.

use super::Errors;
use crate::computation::Computation;
use crate::custom_call::{CustomCallKind, custom_call};
use crate::ids::InstructionId;
use crate::infer::infer_shape;
use crate::module::Module;
use crate::opcode::Op;
use shape::{Literal, PrimitiveType, Shape};

/// Checks every instruction of a computation whose graph is valid.
pub(super) fn verify(module: &Module, computation: &Computation, errors: &mut Errors) {
    for (id, instruction) in computation.instructions() {
        verify_shape(computation, id, instruction.shape(), errors);
        let operands: Vec<&Shape> =
            instruction.operands().iter().map(|&operand| computation[operand].shape()).collect();
        if let Err(error) = infer_shape(module, instruction.op(), &operands, Some(instruction.shape())) {
            errors.instruction(computation, id, error.message());
        } else if let Some(CustomCallKind::Assert { .. }) = custom_call(instruction.op()) {
            let fits = operands == [&Shape::scalar(PrimitiveType::Pred)]
                && *instruction.shape() == Shape::Tuple(Vec::new());
            if !fits {
                errors.instruction(
                    computation,
                    id,
                    "expected an assertion to take a pred[] and return an empty tuple",
                );
            }
        } else if let Op::Constant { literal } = instruction.op() {
            verify_literal(computation, id, literal, errors);
        }
    }
}

/// Checks that sizes are not negative and layouts permute the dimensions.
fn verify_shape(computation: &Computation, id: InstructionId, shape: &Shape, errors: &mut Errors) {
    for (_, array) in shape.leaves() {
        if array.dimensions.iter().any(|dimension| dimension.size < 0) {
            errors.instruction(computation, id, format_args!("{array} has a negative size"));
        }
        let Some(layout) = &array.layout else { continue };
        let mut order = layout.minor_to_major.to_vec();
        order.sort_unstable();
        if !order.into_iter().eq(0..array.rank()) {
            errors.instruction(
                computation,
                id,
                format_args!("the layout of {array} does not permute its dimensions"),
            );
        }
    }
}

/// Checks that a literal has the bytes of its shape, is static and row-major, and that each byte of
/// a `pred` is 0 or 1.
fn verify_literal(computation: &Computation, id: InstructionId, literal: &Literal, errors: &mut Errors) {
    match literal {
        Literal::Array { shape, data } => {
            if !shape.is_static() || !shape.is_row_major() || data.len() as u64 != shape.byte_size() {
                let message = format_args!("the literal of {shape} has {} bytes", data.len());
                errors.instruction(computation, id, message);
            } else if shape.element_type == PrimitiveType::Pred && data.iter().any(|&byte| byte > 1) {
                errors.instruction(computation, id, format_args!("a byte of {shape} is neither 0 nor 1"));
            }
        }
        // The depth is bounded by that of shapes.
        Literal::Tuple(elements) => {
            elements.iter().for_each(|element| verify_literal(computation, id, element, errors));
        }
    }
}
