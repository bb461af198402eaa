//! Fusions: the kind that a pass has stated is that of the body.

use super::Errors;
use crate::attributes::FusionKind;
use crate::module::Module;
use crate::opcode::Op;

/// Checks every fusion of a module whose computations are sound.
pub(super) fn verify(module: &Module, errors: &mut Errors) {
    for (_, computation) in module.computations() {
        for (id, instruction) in computation.instructions() {
            let Op::Fusion { kind, calls, .. } = instruction.op() else { continue };
            let found = FusionKind::of_body(&module[*calls]);
            if *kind != found {
                let message =
                    format_args!("the fusion is of kind {kind:?}, but its body is of kind {found:?}");
                errors.instruction(computation, id, message);
            }
        }
    }
}
