//! Ids of the entities of a module.

support::id_type!(
    /// A computation of one module.
    ComputationId,
    "computation"
);
support::id_type!(
    /// An instruction of one computation.
    InstructionId,
    "%"
);
