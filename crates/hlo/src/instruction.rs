//! One instruction of a computation.

use crate::annotations::Annotations;
use crate::ids::InstructionId;
use crate::opcode::{Op, Opcode, Traits};
use shape::Shape;

/// Where an instruction comes from: all that is left of the source graph past the import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpMetadata {
    /// The source op, such as `MatMul`.
    pub op_type: String,
    /// The source node's name, such as `tower/dense/MatMul`.
    pub op_name: String,
    /// The file that made it, if known.
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
    /// The name, unique in its computation.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opcode and payload.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// Name, shape, opcode, and source node, for messages: `add.1 = f32[4] add (node 'a/Add', op AddV2)`.
    pub fn described(&self) -> String {
        let OpMetadata { op_type, op_name, .. } = &self.metadata;
        let node =
            if op_name.is_empty() { String::new() } else { format!(" (node '{op_name}', op {op_type})") };
        format!("{} = {} {}{node}", self.name, self.shape, self.opcode().name())
    }

    /// The opcode.
    pub fn opcode(&self) -> Opcode {
        self.op.opcode()
    }

    /// Whether it does something beside making its result: it runs even if nobody reads that, and only once.
    pub fn has_effect(&self) -> bool {
        self.opcode().traits().contains(Traits::SIDE_EFFECT)
            || matches!(self.op, Op::CustomCall { custom_call_has_side_effect: true, .. })
    }

    /// What it makes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What it reads.
    pub fn operands(&self) -> &[InstructionId] {
        &self.operands
    }

    /// Who reads it: each user once, in the order in which they became users.
    pub fn users(&self) -> &[InstructionId] {
        &self.users
    }

    /// Where it comes from.
    pub fn metadata(&self) -> &OpMetadata {
        &self.metadata
    }

    /// Its annotations for other compilers, if it has any.
    pub fn annotations(&self) -> Option<&Annotations> {
        self.annotations.as_deref()
    }
}
