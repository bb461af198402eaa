//! The numbers with which the sums of a quantized layer begin: its bias, and what corrects flipped
//! bytes.

use super::grouping::Grouping;
use super::operands::{constant_operand, is_read_once};
use super::panels::PanelLayout;
use crate::fusion::{Fusion, Position};
use crate::packing::PackedConstant;
use hlo::{InstructionId, Op};
use shape::Literal;

/// A constant for each column that is added to the result of a contraction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bias<'m> {
    /// The addition, whose values the kernel's sums become.
    pub(crate) sum: InstructionId,
    /// Index of the fusion's operand.
    operand: usize,
    literal: &'m Literal,
}

impl<'m> Bias<'m> {
    /// Reads the only user of a contraction with `columns` columns, if it adds an operand that
    /// nothing else reads and sums can begin with its numbers.
    pub(crate) fn of(
        fusion: &Fusion<'m>,
        contraction: InstructionId,
        columns: i64,
        grouping: Option<Grouping>,
    ) -> Option<Self> {
        let body = fusion.body;
        let &[sum] = body[contraction].users() else { return None };
        let (Op::Add {}, &[a, b]) = (body[sum].op(), body[sum].operands()) else { return None };
        if a == b || fusion.root == contraction || !grouping?.begins_with_numbers() {
            return None;
        }
        let added = if a == contraction { b } else { a };
        let last = body[contraction].shape().as_array()?.rank().checked_sub(1)?;
        let Op::Broadcast { dimensions } = body[added].op() else { return None };
        let Position::Operand(operand) = fusion.position(body[added].operands()[0]) else { return None };
        let literal = constant_operand(fusion, operand)?;
        let fits = dimensions.as_slice() == [last] && literal.array_shape().element_count() == columns;
        (fits && is_read_once(fusion, operand)).then_some(Self { sum, operand, literal })
    }

    /// The numbers for all columns of packed panels, in place of the operand.
    pub(crate) fn packed(&self, grouping: Grouping, layout: PanelLayout, panels: &[u8]) -> PackedConstant {
        let mut numbers = grouping.corrections(layout, panels);
        for (number, &bias) in numbers.iter_mut().zip(self.literal.bytes().as_chunks().0) {
            *number = number.wrapping_add(i32::from_le_bytes(bias));
        }
        let bytes: Vec<u8> = numbers.into_iter().flat_map(i32::to_le_bytes).collect();
        PackedConstant { operand: Some(self.operand), bytes: bytes.into() }
    }
}
