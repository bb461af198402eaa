//! Comparisons of vectors of floats for MVE, without the ones that LLVM swaps.
//!
//! MVE compares for greater and equal. Its `lt` and `le` are the complements, which hold if an
//! operand is NaN. LLVM 22 writes `x < y` as `y > x`, and where `y` is one number for all lanes,
//! swaps both again for the form with a scalar register: `vcmp.f32 lt, x, y`, which is true for
//! NaN (`PerformVCMPCombine`). A comparison of the negated operands has the other operand first.

use inkwell::FloatPredicate;
use inkwell::values::{BasicValue, BasicValueEnum, InstructionOpcode, VectorValue};
use support::Result;

use super::FunctionTranslator;
use crate::llvm::Built;

/// Largest depth of operations on scalars for all lanes, which LLVM computes before the splat.
const DEPTH: u32 = 4;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Compares the lanes of floats. The result is false for NaN, except for
    /// [`FloatPredicate::UNE`].
    pub(super) fn ordered_compare(
        &self,
        predicate: FloatPredicate,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
    ) -> Result<VectorValue<'c>> {
        let builder = &self.builder;
        let is_wrong = self.module.target.has_mve
            && a.get_type().get_element_type() == self.module.context.f32_type().into()
            && match predicate {
                FloatPredicate::OLT | FloatPredicate::OLE => is_splat(b, DEPTH) && !a.is_const(),
                FloatPredicate::OGT | FloatPredicate::OGE => is_splat(a, DEPTH) && !b.is_const(),
                _ => false,
            };
        if !is_wrong {
            return builder.build_float_compare(predicate, a, b, "").built();
        }
        let (a, b) = (builder.build_float_neg(a, "").built()?, builder.build_float_neg(b, "").built()?);
        builder.build_float_compare(swapped(predicate), a, b, "").built()
    }
}

/// The predicate of the negated operands.
const fn swapped(predicate: FloatPredicate) -> FloatPredicate {
    match predicate {
        FloatPredicate::OLT => FloatPredicate::OGT,
        FloatPredicate::OLE => FloatPredicate::OGE,
        FloatPredicate::OGT => FloatPredicate::OLT,
        FloatPredicate::OGE => FloatPredicate::OLE,
        other => other,
    }
}

/// True if all lanes of a vector may have the same number, as far as LLVM sees it.
fn is_splat(vector: VectorValue<'_>, depth: u32) -> bool {
    if vector.is_const() {
        return true;
    }
    let Some(instruction) = vector.as_instruction_value() else { return false };
    match instruction.get_opcode() {
        InstructionOpcode::ShuffleVector => true,
        InstructionOpcode::Load
        | InstructionOpcode::Phi
        | InstructionOpcode::InsertElement
        | InstructionOpcode::Call => false,
        _ => {
            depth > 0
                && instruction.get_operands().all(|operand| {
                    match operand.and_then(|operand| operand.value()) {
                        Some(BasicValueEnum::VectorValue(operand)) => is_splat(operand, depth - 1),
                        _ => true,
                    }
                })
        }
    }
}
