//! Operands of contractions that are constants, or that nothing else reads.

use crate::fusion::{Fusion, Position};
use hlo::Op;
use shape::Literal;

/// Whether one operand of one instruction of the body is all that reads an operand.
pub(crate) fn is_read_once(fusion: &Fusion<'_>, number: usize) -> bool {
    let instructions = fusion.instructions();
    let read = instructions.iter().flat_map(|&id| fusion.body[id].operands());
    read.filter(|&&operand| fusion.position(operand) == Position::Operand(number)).count() == 1
}

/// The literal of a constant operand, seen through reshapes (they keep the elements' order).
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
