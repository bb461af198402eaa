//! What flows along a TF graph's edges while it is imported.

use hlo::InstructionId;

support::id_type!(
    /// A variable of the config, by its position.
    VariableId,
    "variable"
);

/// The value of one output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// An array: an instruction of the computation being built.
    Array(InstructionId),
    /// The handle of a resource variable.
    Resource(VariableId),
    /// A reference to a TF 1 variable: read when it is used.
    Reference(VariableId),
    /// A string, or anything else that HLO has not: fine as long as nobody computes with it.
    Opaque,
}
