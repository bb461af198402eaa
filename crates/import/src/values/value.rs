//! Values that flow along the edges of a TensorFlow graph while it is imported.

use bounded::VariableId;
use hlo::InstructionId;

support::id_type!(
    /// A tensor list: an index into the state's table.
    ListId,
    "list"
);

support::id_type!(
    /// A stack: an index into the state's table.
    StackId,
    "stack"
);

support::id_type!(
    /// A tensor array: an index into the state's table.
    TensorArrayId,
    "tensor array"
);

/// The value of one output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// An array: an instruction of the computation being built.
    Array(InstructionId),
    /// The handle of a resource variable.
    Resource(VariableId),
    /// A reference to a TF 1 variable. It is read when it is used.
    Reference(VariableId),
    /// A list of tensors. Like an array, it is a value; it consists of several instructions of the
    /// computation being built.
    List(ListId),
    /// The handle of a stack, whose elements live in local variables.
    Stack(StackId),
    /// The handle of a tensor array, whose elements live in local variables.
    TensorArray(TensorArrayId),
    /// A string, or any other value that HLO cannot represent. It is valid as long as nothing
    /// computes with it.
    Opaque,
}

impl Value {
    /// Returns the instruction of an array.
    pub(crate) fn array(self) -> Option<InstructionId> {
        match self {
            Self::Array(id) => Some(id),
            _ => None,
        }
    }

    /// Describes the kind of value.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Array(_) => "an array",
            Self::Resource(_) => "the handle of a variable",
            Self::Reference(_) => "a reference to a variable",
            Self::List(_) => "a tensor list",
            Self::Stack(_) => "the handle of a stack",
            Self::TensorArray(_) => "the handle of a tensor array",
            Self::Opaque => "not an array",
        }
    }
}
