//! One instruction of a computation.

use crate::annotations::Annotations;
use crate::ids::InstructionId;
use crate::opcode::{Op, Opcode, Traits};
use shape::Shape;

/// Source of an instruction: the only information about the source graph that remains after import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpMetadata {
    /// The source op, such as `MatMul`.
    pub op_type: String,
    /// The source node's name, such as `tower/dense/MatMul`.
    pub op_name: String,
    /// The source file, if known.
    pub source_file: String,
    /// The line in that file, 0 if unknown.
    pub source_line: u32,
}

/// An instruction: an opcode applied to operands.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    pub(crate) name: String,
    pub(crate) op: Op,
    pub(crate) shape: Shape,
    pub(crate) operands: Vec<InstructionId>,
    pub(crate) users: Vec<InstructionId>,
    pub(crate) metadata: OpMetadata,
    pub(crate) annotations: Option<Box<Annotations>>,
}

impl Instruction {
    /// Returns the name, which is unique in its computation.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the opcode and payload.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// Returns name, shape, opcode, and source node, for messages: `add.1 = f32[4] add (node
    /// 'a/Add', op AddV2)`.
    pub fn described(&self) -> String {
        let OpMetadata { op_type, op_name, .. } = &self.metadata;
        let node =
            if op_name.is_empty() { String::new() } else { format!(" (node '{op_name}', op {op_type})") };
        format!("{} = {} {}{node}", self.name, self.shape, self.opcode().name())
    }

    /// Returns the opcode.
    pub fn opcode(&self) -> Opcode {
        self.op.opcode()
    }

    /// True if it has an effect other than its result: it runs exactly once, even if the result is
    /// unused.
    pub fn has_effect(&self) -> bool {
        self.opcode().traits().contains(Traits::SIDE_EFFECT)
            || matches!(self.op, Op::CustomCall { custom_call_has_side_effect: true, .. })
    }

    /// Returns the shape of the result.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the operands.
    pub fn operands(&self) -> &[InstructionId] {
        &self.operands
    }

    /// Returns the users, each once, in the order in which they became users.
    pub fn users(&self) -> &[InstructionId] {
        &self.users
    }

    /// Returns the source.
    pub fn metadata(&self) -> &OpMetadata {
        &self.metadata
    }

    /// Returns the annotations for other compilers, if any.
    pub fn annotations(&self) -> Option<&Annotations> {
        self.annotations.as_deref()
    }
}
