//! One view of a kernel's body, whether it is a fusion or a single instruction.

use hlo::{Computation, InstructionId, Module, Op};
use shape::Shape;
use support::{Error, Result};

/// What one kernel computes: instructions between the operands of the caller's instruction and its result.
#[derive(Clone, Copy, Debug)]
pub struct Fusion<'m> {
    /// The module, for computations that the body applies.
    pub module: &'m Module,
    /// The computation that holds `instruction`.
    pub caller: &'m Computation,
    /// The caller's instruction.
    pub instruction: InstructionId,
    /// The computation that holds the body: the fused one, or the caller itself for a single instruction.
    pub body: &'m Computation,
    /// The body's last instruction.
    pub root: InstructionId,
    is_fused: bool,
}

/// Where an instruction of a body stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Outside: operand so-and-so of the caller's instruction, an array in memory.
    Operand(usize),
    /// Inside: computed by the kernel.
    Inside,
}

impl<'m> Fusion<'m> {
    /// The body of an instruction.
    pub fn of(module: &'m Module, caller: &'m Computation, instruction: InstructionId) -> Result<Self> {
        Ok(match caller[instruction].op() {
            Op::Fusion { calls, .. } => {
                let body = &module[*calls];
                if body.parameters().len() != caller[instruction].operands().len() {
                    return Err(Error::internal("a fusion's operands and parameters differ in number"));
                }
                Self { module, caller, instruction, body, root: body.root(), is_fused: true }
            }
            _ => Self { module, caller, instruction, body: caller, root: instruction, is_fused: false },
        })
    }

    /// The op of the body's last instruction.
    pub fn root_op(&self) -> &'m Op {
        self.body[self.root].op()
    }

    /// The shape of the result.
    pub fn shape(&self) -> &'m Shape {
        self.body[self.root].shape()
    }

    /// Whether an instruction of the body is computed by the kernel or read from memory.
    pub fn position(&self, id: InstructionId) -> Position {
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
            operands.iter().position(|&o| o == id).expect("an operand of the single instruction"),
        )
    }

    /// The caller's operand.
    pub fn operand(&self, number: usize) -> InstructionId {
        self.caller[self.instruction].operands()[number]
    }

    /// The body's instructions that the kernel computes, operands before users.
    pub fn instructions(&self) -> Vec<InstructionId> {
        if !self.is_fused {
            return vec![self.root];
        }
        let inside = |id: &InstructionId| self.position(*id) == Position::Inside;
        self.body.post_order().into_iter().filter(inside).collect()
    }

    /// The body's dot, if it has one.
    pub fn find_dot(&self) -> Option<InstructionId> {
        self.instructions().into_iter().find(|&id| matches!(self.body[id].op(), Op::Dot { .. }))
    }

    /// The body's convolution, if it has one.
    pub fn find_convolution(&self) -> Option<InstructionId> {
        self.instructions().into_iter().find(|&id| matches!(self.body[id].op(), Op::Convolution { .. }))
    }
}
