//! Reshapes that join open dimensions, such as the samples and words of texts to rows of words.
//!
//! The rows of a joined array are next to each other, whatever the sizes of a run. Finding them
//! takes as much memory traffic as a copy, and their number is a product of sizes, at which no loop
//! ends. What treats each row by itself is therefore computed before the reshape.

use super::{Size, bounds, run_time};
use crate::builder::Builder;
use hlo::{InstructionId, Op, Traits};
use shape::Shape;
use support::Result;

/// An array before its first dimensions were joined.
struct Apart {
    array: InstructionId,
    /// Number of its dimensions that became others.
    before: usize,
    /// The dimensions that they became.
    joined: Vec<Size>,
}

impl Builder {
    /// Returns the array before the reshape that moved the elements of an array, if one did, and
    /// the true sizes after it. The array may also be the whole one.
    pub fn before_joining(&self, mut id: InstructionId) -> Option<(InstructionId, Vec<Size>)> {
        let computation = self.scope_ref().computation();
        while let Op::SetDimensionSize { .. } = computation[id].op() {
            id = computation[id].operands()[0];
        }
        self.scope_ref().joined.get(&id).cloned()
    }

    /// Computes an instruction before a reshape of its operand, and reshapes the result. Returns
    /// `None` unless the instruction treats each index of the reshaped dimensions by itself.
    pub(super) fn op_before_joining(
        &mut self,
        op: &Op,
        operands: &[InstructionId],
        requested: Option<&Shape>,
    ) -> Result<Option<InstructionId>> {
        let Some(&first) = operands.iter().find(|&&id| self.before_joining(id).is_some()) else {
            return Ok(None);
        };
        let Some(apart) = self.apart(first)? else { return Ok(None) };
        let requested = requested.and_then(Shape::as_array).map(|array| array.element_type);
        let requested = requested.map(|ty| Shape::array(ty, &self.sizes(apart.array)));
        let result = match op {
            Op::Dot { dot_dimension_numbers: numbers } if first == operands[0] => {
                let mut numbers = numbers.clone();
                let is_inside = numbers.lhs_contracting_dims.iter().all(|&d| d >= apart.joined.len());
                if !numbers.lhs_batch_dims.is_empty() || !is_inside {
                    return Ok(None);
                }
                numbers
                    .lhs_contracting_dims
                    .iter_mut()
                    .for_each(|d| *d = *d - apart.joined.len() + apart.before);
                let op = Op::Dot { dot_dimension_numbers: numbers };
                self.bounded_op(op, &[apart.array, operands[1]], requested.as_ref())?
            }
            op if op.opcode().traits().contains(Traits::ELEMENTWISE) => {
                let mut all = Vec::with_capacity(operands.len());
                for &operand in operands {
                    match self.operand_apart(&apart, first, operand)? {
                        Some(operand) => all.push(operand),
                        None => return Ok(None),
                    }
                }
                self.bounded_op(op.clone(), &all, requested.as_ref())?
            }
            _ => return Ok(None),
        };
        let mut sizes = apart.joined;
        sizes.extend(self.all_sizes(result)?.into_iter().skip(apart.before));
        self.reshape_to(result, &sizes).map(Some)
    }

    /// Returns the array before its dimensions were joined. The last dimensions stay as they are.
    fn apart(&mut self, joined: InstructionId) -> Result<Option<Apart>> {
        let Some((array, to)) = self.before_joining(joined) else { return Ok(None) };
        let from = self.all_sizes(array)?;
        let kept = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
        let (before, after) = (from.len() - kept, to.len() - kept);
        let joined = to[..after].to_vec();
        Ok((after > 0 && after < before).then_some(Apart { array, before, joined }))
    }

    /// Returns an operand of an elementwise instruction before the dimensions were joined: an array
    /// that was joined in the same way, or one that is the same at all of their indices.
    fn operand_apart(
        &mut self,
        apart: &Apart,
        first: InstructionId,
        operand: InstructionId,
    ) -> Result<Option<InstructionId>> {
        if operand == first {
            return Ok(Some(apart.array));
        }
        let sizes = self.all_sizes(apart.array)?;
        if let Some(other) = self.apart(operand)? {
            let is_same = self.all_sizes(other.array)? == sizes && other.joined == apart.joined;
            return Ok(is_same.then_some(other.array));
        }
        let whole = self.split(operand)?.data;
        let instruction = &self.scope_ref().computation()[whole];
        let Op::Broadcast { dimensions } = instruction.op() else { return Ok(None) };
        if dimensions.iter().any(|&d| d < apart.joined.len()) || self.rank(whole) != self.rank(first) {
            return Ok(None);
        }
        let dimensions: Vec<usize> =
            dimensions.iter().map(|&d| d - apart.joined.len() + apart.before).collect();
        let part = instruction.operands()[0];
        let whole = self.broadcast(part, &bounds(&sizes), &dimensions)?;
        self.bounded(whole, &run_time(&sizes)).map(Some)
    }
}
