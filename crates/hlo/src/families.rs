//! Families of opcodes, as patterns for exhaustive matches on the opcode.
//!
//! A match names a family if it handles all members alike, or delegates them to another match. Each
//! opcode belongs to one family, except for `constant`, which belongs to none. No match has a
//! wildcard, so a new row of the opcode table fails to compile until it is added to a family or
//! named in every match.

/// Elementwise functions of one operand. The result's element type equals the operand's or follows
/// from it.
#[macro_export]
macro_rules! unary_ops {
    () => {
        $crate::Op::Abs { .. }
            | $crate::Op::Acos { .. }
            | $crate::Op::Acosh { .. }
            | $crate::Op::Asin { .. }
            | $crate::Op::Asinh { .. }
            | $crate::Op::Atanh { .. }
            | $crate::Op::Cbrt { .. }
            | $crate::Op::Ceil { .. }
            | $crate::Op::Cos { .. }
            | $crate::Op::Cosh { .. }
            | $crate::Op::CountLeadingZeros { .. }
            | $crate::Op::Erf { .. }
            | $crate::Op::Exp { .. }
            | $crate::Op::Expm1 { .. }
            | $crate::Op::Floor { .. }
            | $crate::Op::Imag { .. }
            | $crate::Op::IsFinite { .. }
            | $crate::Op::Log { .. }
            | $crate::Op::Log1p { .. }
            | $crate::Op::Logistic { .. }
            | $crate::Op::Negate { .. }
            | $crate::Op::Not { .. }
            | $crate::Op::PopulationCount { .. }
            | $crate::Op::Real { .. }
            | $crate::Op::RoundNearestAfz { .. }
            | $crate::Op::RoundNearestEven { .. }
            | $crate::Op::Rsqrt { .. }
            | $crate::Op::Sign { .. }
            | $crate::Op::Sin { .. }
            | $crate::Op::Sinh { .. }
            | $crate::Op::Sqrt { .. }
            | $crate::Op::Tan { .. }
            | $crate::Op::Tanh { .. }
    };
}

/// Elementwise functions of two operands of one type.
#[macro_export]
macro_rules! binary_ops {
    () => {
        $crate::Op::Add { .. }
            | $crate::Op::And { .. }
            | $crate::Op::Atan2 { .. }
            | $crate::Op::Divide { .. }
            | $crate::Op::Maximum { .. }
            | $crate::Op::Minimum { .. }
            | $crate::Op::Multiply { .. }
            | $crate::Op::Or { .. }
            | $crate::Op::Power { .. }
            | $crate::Op::Remainder { .. }
            | $crate::Op::ShiftLeft { .. }
            | $crate::Op::ShiftRightArithmetic { .. }
            | $crate::Op::ShiftRightLogical { .. }
            | $crate::Op::Subtract { .. }
            | $crate::Op::Xor { .. }
    };
}

/// Elementwise functions whose operands and result differ in type, or of three operands.
#[macro_export]
macro_rules! mixed_ops {
    () => {
        $crate::Op::BitcastConvert { .. }
            | $crate::Op::Clamp { .. }
            | $crate::Op::Compare { .. }
            | $crate::Op::Complex { .. }
            | $crate::Op::Convert { .. }
            | $crate::Op::ReducePrecision { .. }
            | $crate::Op::Select { .. }
            | $crate::Op::StochasticConvert { .. }
    };
}

/// Opcodes whose result has their first operand's elements in the same order.
#[macro_export]
macro_rules! identity_ops {
    () => {
        $crate::Op::AddDependency { .. }
            | $crate::Op::Bitcast { .. }
            | $crate::Op::Copy { .. }
            | $crate::Op::OptimizationBarrier { .. }
            | $crate::Op::Reshape { .. }
    };
}

/// Opcodes that move elements without arithmetic, or read and set sizes.
#[macro_export]
macro_rules! movement_ops {
    () => {
        $crate::Op::Broadcast { .. }
            | $crate::Op::Concatenate { .. }
            | $crate::Op::DynamicReshape { .. }
            | $crate::Op::DynamicSlice { .. }
            | $crate::Op::DynamicUpdateSlice { .. }
            | $crate::Op::Gather { .. }
            | $crate::Op::GetDimensionSize { .. }
            | $crate::Op::Iota { .. }
            | $crate::Op::Pad { .. }
            | $crate::Op::Reverse { .. }
            | $crate::Op::SetDimensionSize { .. }
            | $crate::Op::Slice { .. }
            | $crate::Op::Transpose { .. }
    };
}

/// Opcodes that call computations or foreign code.
#[macro_export]
macro_rules! calling_ops {
    () => {
        $crate::Op::Call { .. }
            | $crate::Op::Conditional { .. }
            | $crate::Op::CustomCall { .. }
            | $crate::Op::Fusion { .. }
            | $crate::Op::Map { .. }
            | $crate::Op::Reduce { .. }
            | $crate::Op::ReduceWindow { .. }
            | $crate::Op::Scatter { .. }
            | $crate::Op::SelectAndScatter { .. }
            | $crate::Op::Sort { .. }
            | $crate::Op::While { .. }
    };
}

/// Contractions, linear algebra, normalization, random numbers, and `topk`.
#[macro_export]
macro_rules! numeric_ops {
    () => {
        $crate::Op::BatchNormGrad { .. }
            | $crate::Op::BatchNormInference { .. }
            | $crate::Op::BatchNormTraining { .. }
            | $crate::Op::Cholesky { .. }
            | $crate::Op::Convolution { .. }
            | $crate::Op::Dot { .. }
            | $crate::Op::Fft { .. }
            | $crate::Op::Rng { .. }
            | $crate::Op::RngBitGenerator { .. }
            | $crate::Op::RngGetAndUpdateState { .. }
            | $crate::Op::TopK { .. }
            | $crate::Op::TriangularSolve { .. }
    };
}

/// Parameters, tuples, tokens, and the numbers of devices.
#[macro_export]
macro_rules! value_ops {
    () => {
        $crate::Op::AfterAll { .. }
            | $crate::Op::GetTupleElement { .. }
            | $crate::Op::Parameter { .. }
            | $crate::Op::PartitionId { .. }
            | $crate::Op::ReplicaId { .. }
            | $crate::Op::Tuple { .. }
    };
}

/// Opcodes that are read and printed, never compiled.
#[macro_export]
macro_rules! carried_ops {
    () => {
        $crate::Op::AllGather { .. }
            | $crate::Op::AllGatherDone { .. }
            | $crate::Op::AllGatherStart { .. }
            | $crate::Op::AllReduce { .. }
            | $crate::Op::AllReduceDone { .. }
            | $crate::Op::AllReduceStart { .. }
            | $crate::Op::AllToAll { .. }
            | $crate::Op::AsyncDone { .. }
            | $crate::Op::AsyncStart { .. }
            | $crate::Op::AsyncUpdate { .. }
            | $crate::Op::CollectiveBroadcast { .. }
            | $crate::Op::CollectivePermute { .. }
            | $crate::Op::CollectivePermuteDone { .. }
            | $crate::Op::CollectivePermuteStart { .. }
            | $crate::Op::CopyDone { .. }
            | $crate::Op::CopyStart { .. }
            | $crate::Op::Domain { .. }
            | $crate::Op::Infeed { .. }
            | $crate::Op::Outfeed { .. }
            | $crate::Op::RaggedAllToAll { .. }
            | $crate::Op::RaggedDot { .. }
            | $crate::Op::Recv { .. }
            | $crate::Op::RecvDone { .. }
            | $crate::Op::ReduceScatter { .. }
            | $crate::Op::ScaledDot { .. }
            | $crate::Op::Scan { .. }
            | $crate::Op::Send { .. }
            | $crate::Op::SendDone { .. }
    };
}

/// All elementwise functions.
#[macro_export]
macro_rules! elementwise_ops {
    () => {
        $crate::unary_ops!() | $crate::binary_ops!() | $crate::mixed_ops!()
    };
}

/// Opcodes outside `movement_ops`, `calling_ops`, and `numeric_ops`: matches that delegate these
/// three handle all others directly.
#[macro_export]
macro_rules! direct_ops {
    () => {
        $crate::elementwise_ops!()
            | $crate::identity_ops!()
            | $crate::value_ops!()
            | $crate::carried_ops!()
            | $crate::Op::Constant { .. }
    };
}
