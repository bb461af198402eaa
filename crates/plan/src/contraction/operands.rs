//! Operands of contractions that are constants or have a single reader.

use crate::fusion::{Fusion, Position};
use hlo::Op;
use shape::Literal;

/// True if an operand has exactly one reader: one operand of one instruction of the body.
pub(crate) fn is_read_once(fusion: &Fusion<'_>, number: usize) -> bool {
    let instructions = fusion.instructions();
    let read = instructions.iter().flat_map(|&id| fusion.body[id].operands());
    read.filter(|&&operand| fusion.position(operand) == Position::Operand(number)).count() == 1
}

/// The literal of a constant operand, seen through reshapes, which keep the order of elements.
pub(crate) fn constant_operand<'m>(fusion: &Fusion<'m>, number: usize) -> Option<&'m Literal> {
    if fusion.is_handed(number) {
        return None;
    }
    let mut id = fusion.operand(number);
    loop {
        match fusion.caller[id].op() {
            Op::Constant { literal } => return Some(literal),
            Op::Reshape {} | Op::Bitcast {} => id = fusion.caller[id].operands()[0],
            _ => return None,
        }
    }
}
