//! Shape inference: what an opcode makes of operands of given shapes.

use crate::module::Module;
use crate::opcode::Op;
use shape::Shape;
use support::{Error, Result};

/// The shape of `op` applied to operands of these shapes, or an error that says which rule they break.
///
/// Opcodes whose result does not follow from operands and payload (`reshape`, `broadcast`, `convert`, `iota`, `rng`,
/// `custom-call` and so on) need `wanted`; for the others `wanted` is checked against what follows.
pub fn infer_shape(module: &Module, op: &Op, operands: &[&Shape], wanted: Option<&Shape>) -> Result<Shape> {
    let _ = (module, operands, wanted);
    Err(Error::internal(format!("shape inference of {}", op.opcode().name())))
}
