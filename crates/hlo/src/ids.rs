//! Ids of what a module holds.

support::id_type!(
    /// An instruction of one computation.
    InstructionId,
    "%"
);

support::id_type!(
    /// A computation of one module.
    ComputationId,
    "computation"
);
