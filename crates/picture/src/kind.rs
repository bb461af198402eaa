//! Kinds of work of instructions, which pictures distinguish by color.

use hlo::{Op, Traits};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Parameter,
    Constant,
    Contraction,
    Elementwise,
    Reduction,
    Movement,
    Indexing,
    Fusion,
    Control,
    Random,
    LinearAlgebra,
    Communication,
    Custom,
}

impl Kind {
    /// All kinds, in the order of the legend.
    pub(crate) const ALL: [Self; 13] = [
        Self::Parameter,
        Self::Constant,
        Self::Contraction,
        Self::Elementwise,
        Self::Reduction,
        Self::Movement,
        Self::Indexing,
        Self::Fusion,
        Self::Control,
        Self::Random,
        Self::LinearAlgebra,
        Self::Communication,
        Self::Custom,
    ];

    /// Name in the legend.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::Constant => "constant",
            Self::Contraction => "contraction",
            Self::Elementwise => "elementwise",
            Self::Reduction => "reduction",
            Self::Movement => "data movement",
            Self::Indexing => "gather, scatter, sort",
            Self::Fusion => "fusion",
            Self::Control => "control flow, calls",
            Self::Random => "random",
            Self::LinearAlgebra => "linear algebra, FFT",
            Self::Communication => "communication",
            Self::Custom => "custom call",
        }
    }

    /// Background color, on white, as `#rrggbb`.
    pub(crate) fn color(self) -> &'static str {
        match self {
            Self::Parameter => "#ffd9a8",
            Self::Constant => "#e3e6ea",
            Self::Contraction => "#a9c8ff",
            Self::Elementwise => "#fff1a6",
            Self::Reduction => "#dcc2fa",
            Self::Movement => "#c4ebc7",
            Self::Indexing => "#a8e4dd",
            Self::Fusion => "#f7c6d4",
            Self::Control => "#d0d4f7",
            Self::Random => "#efd0ef",
            Self::LinearAlgebra => "#bfdcf0",
            Self::Communication => "#f3c9b3",
            Self::Custom => "#d9cfc2",
        }
    }

    /// Position in [`Kind::ALL`].
    pub(crate) fn index(self) -> usize {
        Self::ALL.iter().position(|&kind| kind == self).expect("every kind is in the legend")
    }

    pub(crate) fn of(op: &Op) -> Self {
        match op {
            Op::Parameter { .. } => Self::Parameter,
            Op::Constant { .. } | Op::Iota { .. } => Self::Constant,
            Op::Dot { .. } | Op::Convolution { .. } | Op::RaggedDot { .. } | Op::ScaledDot { .. } => {
                Self::Contraction
            }
            Op::Fusion { .. } => Self::Fusion,
            Op::Call { .. } | Op::While { .. } | Op::Conditional { .. } | Op::Scan { .. } => Self::Control,
            Op::Reduce { .. }
            | Op::ReduceWindow { .. }
            | Op::SelectAndScatter { .. }
            | Op::BatchNormInference { .. }
            | Op::BatchNormTraining { .. }
            | Op::BatchNormGrad { .. } => Self::Reduction,
            Op::Gather { .. }
            | Op::Scatter { .. }
            | Op::Sort { .. }
            | Op::TopK { .. }
            | Op::DynamicSlice { .. }
            | Op::DynamicUpdateSlice {} => Self::Indexing,
            Op::Rng { .. } | Op::RngBitGenerator { .. } | Op::RngGetAndUpdateState { .. } => Self::Random,
            Op::Cholesky { .. } | Op::TriangularSolve { .. } | Op::Fft { .. } => Self::LinearAlgebra,
            Op::CustomCall { .. } => Self::Custom,
            Op::Copy {} => Self::Movement,
            // `map` calls a function for each element.
            Op::Map { .. } | Op::Clamp {} => Self::Elementwise,
            Op::PartitionId {} | Op::ReplicaId {} => Self::Communication,
            op if op.opcode().traits().contains(Traits::ELEMENTWISE) => Self::Elementwise,
            op if op.opcode().traits().contains(Traits::SIDE_EFFECT) => Self::Communication,
            _ => Self::Movement,
        }
    }
}
