//! Fusions: the kind that a pass states must match the body.

use super::Errors;
use crate::attributes::FusionKind;
use crate::module::Module;
use crate::opcode::Op;

/// Checks every fusion of a module whose computations are valid.
pub(super) fn verify(module: &Module, errors: &mut Errors) {
    for (_, computation) in module.computations() {
        for (id, instruction) in computation.instructions() {
            let Op::Fusion { kind, calls, .. } = instruction.op() else { continue };
            let body_kind = FusionKind::of_body(&module[*calls]);
            if *kind != body_kind {
                let message =
                    format_args!("the fusion is of kind {kind:?}, but its body is of kind {body_kind:?}");
                errors.instruction(computation, id, message);
            }
        }
    }
}
