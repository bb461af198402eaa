//! Epilogues: elementwise work on the tiles that a contraction has computed.

use crate::fusion::Fusion;
use hlo::{InstructionId, Op};
use std::collections::BTreeSet;
use support::{Error, Result};

/// Checks that the epilogue of a dot works on its tiles: elementwise, on operands that need no
/// other of its elements, and with one destination per element.
pub(crate) fn check_epilogue(fusion: &Fusion<'_>, dot: InstructionId) -> Result<()> {
    let mut epilogue = BTreeSet::from([dot]);
    for id in fusion.instructions() {
        let op = fusion.body[id].op();
        let reads_dot = fusion.body[id].operands().iter().any(|operand| epilogue.contains(operand));
        let elementwise = op.is_elementwise();
        let moves = matches!(op, Op::Reshape {} | Op::Bitcast {} | Op::Transpose { .. });
        let is_update = id == fusion.root && fusion.row_slice().is_some();
        let is_contraction = op.is_contraction();
        if id != dot && (is_contraction || (reads_dot && !elementwise && !moves && !is_update)) {
            return Err(Error::unsupported(format!(
                "opcode {} after a contraction in one fusion",
                op.opcode().name()
            )));
        }
        if id != dot && !is_update {
            crate::loops::check_fusible(op)?;
        }
        if reads_dot {
            epilogue.insert(id);
        }
    }
    Ok(())
}
