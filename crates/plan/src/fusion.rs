//! A uniform view of a kernel's body, whether it is a fusion or a single instruction.

use hlo::{Computation, FusionKind, InstructionId, Module, Op};
use shape::Shape;
use std::collections::BTreeSet;
use support::{Error, Result};

/// The computation of one kernel: the instructions between the operands of the caller's instruction
/// and its result.
#[derive(Clone, Copy, Debug)]
pub struct Fusion<'m> {
    /// The module, which holds the computations that the body applies.
    pub module: &'m Module,
    /// The computation that holds `instruction`.
    pub caller: &'m Computation,
    /// The caller's instruction.
    pub instruction: InstructionId,
    /// The computation that holds the body: the fused computation, or the caller itself for a
    /// single instruction.
    pub body: &'m Computation,
    /// The body's last instruction.
    pub root: InstructionId,
    is_fused: bool,
    part: Option<Part>,
}

/// Marks a view of a body as one of its parts.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The value that the previous part hands on, and its index as an operand, after those of the
    /// caller's instruction.
    handed: Option<(InstructionId, usize)>,
}

/// Position of an instruction relative to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Outside: an array in memory, the operand of the caller's instruction with this index.
    Operand(usize),
    /// Inside: computed by the kernel.
    Inside,
}

/// A slice of an array, as rows of contiguous elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSlice {
    /// Number of rows.
    pub rows: i64,
    /// Elements per row of the array.
    pub whole: i64,
    /// Elements per row of the slice.
    pub run: i64,
    /// Elements before the slice in a row of the array.
    pub offset: i64,
}

impl<'m> Fusion<'m> {
    /// Views the body of an instruction.
    pub fn of(module: &'m Module, caller: &'m Computation, instruction: InstructionId) -> Result<Self> {
        Ok(match caller[instruction].op() {
            Op::Fusion { calls, .. } => {
                let body = &module[*calls];
                if body.parameters().len() != caller[instruction].operands().len() {
                    return Err(Error::internal(
                        "a fusion and its computation have different numbers of operands and parameters",
                    ));
                }
                Self { module, caller, instruction, body, root: body.root(), is_fused: true, part: None }
            }
            _ => {
                let (body, root) = (caller, instruction);
                Self { module, caller, instruction, body, root, is_fused: false, part: None }
            }
        })
    }

    /// The kind of the caller's instruction.
    pub fn kind(&self) -> FusionKind {
        FusionKind::with_hero(self.caller[self.instruction].op(), self.instruction)
    }

    /// The same body with another root.
    pub(crate) fn up_to(&self, root: InstructionId) -> Self {
        Self { root, ..*self }
    }

    /// A part of the body: from the value that the previous part hands on, which is in memory as an
    /// operand with its own index, to `root`, which the next part reads.
    pub fn part(&self, root: InstructionId, handed: Option<(InstructionId, usize)>) -> Self {
        Self { root, part: Some(Part { handed }), ..*self }
    }

    /// True if an operand is the value that the previous part hands on.
    pub(crate) fn is_handed(&self, number: usize) -> bool {
        self.part.and_then(|part| part.handed).is_some_and(|(_, handed)| handed == number)
    }

    /// The op of the body's last instruction.
    pub fn root_op(&self) -> &'m Op {
        self.body[self.root].op()
    }

    /// The shape of the result.
    pub fn shape(&self) -> &'m Shape {
        self.body[self.root].shape()
    }

    /// Tells whether an instruction of the body is computed by the kernel or read from memory.
    pub fn position(&self, id: InstructionId) -> Position {
        if let Some((handed, number)) = self.part.and_then(|part| part.handed)
            && handed == id
        {
            return Position::Operand(number);
        }
        if self.is_fused {
            return match self.body[id].op() {
                Op::Parameter { number } => Position::Operand(*number),
                _ => Position::Inside,
            };
        }
        if id == self.root {
            return Position::Inside;
        }
        let operands = self.body[self.root].operands();
        Position::Operand(
            operands.iter().position(|&o| o == id).expect("expected an operand of the single instruction"),
        )
    }

    /// The caller's operand with this index.
    pub fn operand(&self, number: usize) -> InstructionId {
        self.caller[self.instruction].operands()[number]
    }

    /// The body's instructions that the kernel computes, operands before users.
    pub fn instructions(&self) -> Vec<InstructionId> {
        if !self.is_fused {
            return vec![self.root];
        }
        let inside = |id: &InstructionId| self.position(*id) == Position::Inside;
        let all = self.body.post_order().into_iter().filter(inside);
        if self.part.is_none() {
            return all.collect();
        }
        let (mut needed, mut pending) = (BTreeSet::new(), vec![self.root]);
        while let Some(id) = pending.pop() {
            if inside(&id) && needed.insert(id) {
                pending.extend(self.body[id].operands());
            }
        }
        all.filter(|id| needed.contains(id)).collect()
    }

    /// The instruction whose elements the kernel computes: the root, or the update if the root
    /// writes a slice.
    pub fn computed(&self) -> InstructionId {
        match self.root_op() {
            Op::DynamicUpdateSlice {} => self.body[self.root].operands()[1],
            _ => self.root,
        }
    }

    /// True if elements of the contraction have the same linear index in the result's memory.
    /// Unfinished sums may then be kept there.
    pub fn keeps_numbers(&self) -> bool {
        let moves = |id: InstructionId| {
            matches!(self.body[id].op(), Op::Transpose { .. } | Op::DynamicUpdateSlice {})
        };
        !self.instructions().into_iter().any(moves)
    }

    /// The slice that the kernel computes, if its position is known and it is a part along at most
    /// one dimension.
    pub fn row_slice(&self) -> Option<RowSlice> {
        let starts = self.constant_starts()?;
        let sizes = self.shape().as_array()?.sizes();
        let part = self.body[self.computed()].shape().as_array()?.sizes();
        let dimension = hlo::cut_dimension(&sizes, &part)?;
        let inner: i64 = sizes.iter().skip(dimension + 1).product();
        let extent = |sizes: &[i64]| sizes.get(dimension).map_or(inner, |size| size * inner);
        Some(RowSlice {
            rows: sizes.iter().take(dimension).product(),
            whole: extent(&sizes),
            run: extent(&part),
            offset: starts.get(dimension).map_or(0, |start| start * inner),
        })
    }

    /// The position at which the root, a slice update, writes, if it is known to be within the
    /// array.
    pub(crate) fn constant_starts(&self) -> Option<Vec<i64>> {
        let Op::DynamicUpdateSlice {} = self.root_op() else { return None };
        let operands = self.body[self.root].operands();
        let sizes = self.body[self.root].shape().as_array()?.sizes();
        let update = self.body[operands[1]].shape().as_array()?.sizes();
        let start = |&id: &InstructionId| match self.position(id) {
            Position::Inside => self.body[id].op(),
            Position::Operand(number) => self.caller[self.operand(number)].op(),
        };
        hlo::constant_starts(&sizes, &update, operands[2..].iter().map(start))
    }
}
