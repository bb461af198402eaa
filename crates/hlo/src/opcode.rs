//! The opcode table: one row for each of XLA's opcodes (`xla/hlo/ir/hlo_opcode.h`).
//!
//! A row defines an enum variant, its name in HLO text, its operand count, its payload, and its
//! traits. This file contains no behavior. After a new row is added, shape inference, the
//! evaluator, and the lowering do not compile until they handle it.

use crate::attributes::*;
use crate::ids::ComputationId;
use shape::Literal;

/// The number of operands of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this number.
    Exactly(usize),
    /// Any number; it depends on the payload.
    Variadic,
}

/// Properties of an opcode that do not depend on its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits(u8);

impl Traits {
    /// No properties.
    pub const NONE: Self = Self(0);
    /// Each result element depends only on the operands' elements at the same index.
    pub const ELEMENTWISE: Self = Self(1);
    /// Elementwise in two operands whose order does not matter.
    pub const COMMUTATIVE: Self = Self(2 | 1);
    /// Moves elements without arithmetic; each result element comes from at most one operand
    /// element.
    pub const REINDEXES: Self = Self(4);
    /// Has an effect other than its result, so it is never removed, merged, or reordered.
    pub const SIDE_EFFECT: Self = Self(8);

    /// True if it includes all of `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

const VARIADIC: Arity = Arity::Variadic;
const fn exactly(count: usize) -> Arity {
    Arity::Exactly(count)
}

// A field is `name: type`, then `as "text"` if its name in XLA's text differs, then `= value` if
// the text can omit that value.
macro_rules! define_opcodes {
    ($($variant:ident = $text:literal, $arity:expr,
       { $($field:ident : $type:ty $(as $attribute:literal)? $(= $default:expr)?),* }, $traits:ident;)*) => {
        /// An opcode with its payload, each field named as XLA's text spells it.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "XLA's operation semantics document each opcode and attribute")]
        pub enum Op {
            $($variant { $($field: $type),* },)*
        }

        /// An opcode without its payload.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "XLA's operation semantics document each opcode")]
        pub enum Opcode {
            $($variant,)*
        }

        impl Op {
            /// The opcode.
            pub fn opcode(&self) -> Opcode {
                match self {
                    $(Self::$variant { .. } => Opcode::$variant,)*
                }
            }
        }

        impl Op {
            /// Returns the attributes of the payload that are only read and printed, never
            /// compiled.
            pub fn raw_attributes(&self) -> Option<&RawAttributes> {
                match self {
                    $(Self::$variant { $($field),* } => None $(.or_else(|| as_raw($field)))*,)*
                }
            }

            fn raw_attributes_mut(&mut self) -> Option<&mut RawAttributes> {
                match self {
                    $(Self::$variant { $($field),* } => {
                        $(if let Some(raw) = as_raw_mut($field) { return Some(raw); })*
                        None
                    })*
                }
            }
        }

        impl Opcode {
            /// Every opcode, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name in HLO text.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Returns the number of operands.
            pub const fn arity(self) -> Arity {
                match self {
                    $(Self::$variant => $arity,)*
                }
            }

            /// Returns the properties that do not depend on the payload.
            pub const fn traits(self) -> Traits {
                match self {
                    $(Self::$variant => Traits::$traits,)*
                }
            }
        }
    };
}

/// Returns a payload's field if it consists of attributes that are kept as text.
fn as_raw<T: std::any::Any>(field: &T) -> Option<&RawAttributes> {
    (field as &dyn std::any::Any).downcast_ref()
}

fn as_raw_mut<T: std::any::Any>(field: &mut T) -> Option<&mut RawAttributes> {
    (field as &mut dyn std::any::Any).downcast_mut()
}

pub(crate) type Dims = Vec<usize>;
pub(crate) type Sizes = Vec<i64>;

/// Passes all rows to a macro: `define_opcodes` in this file, and the one for the text of
/// attributes.
macro_rules! for_each_opcode {
    ($rows:ident) => {
        $rows! {
    // variant              text                        operands     payload      traits
    Abs                   = "abs",                      exactly(1),  {},                                          ELEMENTWISE;
    Acos                  = "acos",                     exactly(1),  {},                                          ELEMENTWISE;
    Acosh                 = "acosh",                    exactly(1),  {},                                          ELEMENTWISE;
    Add                   = "add",                      exactly(2),  {},                                          COMMUTATIVE;
    AddDependency         = "add-dependency",           exactly(2),  {},                                          NONE;
    AfterAll              = "after-all",                VARIADIC,    {},                                          NONE;
    AllGather             = "all-gather",               VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    AllGatherDone         = "all-gather-done",          exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    AllGatherStart        = "all-gather-start",         VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    AllReduce             = "all-reduce",               VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    AllReduceDone         = "all-reduce-done",          exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    AllReduceStart        = "all-reduce-start",         VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    AllToAll              = "all-to-all",               VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    And                   = "and",                      exactly(2),  {},                                          COMMUTATIVE;
    Asin                  = "asin",                     exactly(1),  {},                                          ELEMENTWISE;
    Asinh                 = "asinh",                    exactly(1),  {},                                          ELEMENTWISE;
    AsyncDone             = "async-done",               exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    AsyncStart            = "async-start",              VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    AsyncUpdate           = "async-update",             exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    Atan2                 = "atan2",                    exactly(2),  {},                                          ELEMENTWISE;
    Atanh                 = "atanh",                    exactly(1),  {},                                          ELEMENTWISE;
    BatchNormGrad         = "batch-norm-grad",          exactly(5),  { epsilon: f32, feature_index: usize },      NONE;
    BatchNormInference    = "batch-norm-inference",     exactly(5),  { epsilon: f32, feature_index: usize },      NONE;
    BatchNormTraining     = "batch-norm-training",      exactly(3),  { epsilon: f32, feature_index: usize },      NONE;
    Bitcast               = "bitcast",                  exactly(1),  {},                                          REINDEXES;
    BitcastConvert        = "bitcast-convert",          exactly(1),  {},                                          NONE;
    Broadcast             = "broadcast",                exactly(1),  { dimensions: Dims = Dims::new() },                        REINDEXES;
    Call                  = "call",                     VARIADIC,    { to_apply: ComputationId },                 NONE;
    Cbrt                  = "cbrt",                     exactly(1),  {},                                          ELEMENTWISE;
    Ceil                  = "ceil",                     exactly(1),  {},                                          ELEMENTWISE;
    Cholesky              = "cholesky",                 exactly(1),  { lower: bool = false },                             NONE;
    Clamp                 = "clamp",                    exactly(3),  {},                                          NONE;
    CollectiveBroadcast   = "collective-broadcast",     VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    CollectivePermute     = "collective-permute",       VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    CollectivePermuteDone = "collective-permute-done",  exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    CollectivePermuteStart = "collective-permute-start", VARIADIC,   { attributes: RawAttributes },               SIDE_EFFECT;
    Compare               = "compare",                  exactly(2),  { direction: ComparisonDirection, comparison_type: ComparisonType as "type" = ComparisonType::Default }, ELEMENTWISE;
    Complex               = "complex",                  exactly(2),  {},                                          ELEMENTWISE;
    Concatenate           = "concatenate",              VARIADIC,    { dimension: usize as "dimensions" },                        NONE;
    Conditional           = "conditional",              VARIADIC,    { branch_computations: Vec<ComputationId> }, NONE;
    Constant              = "constant",                 exactly(0),  { literal: Literal },                        NONE;
    Convert               = "convert",                  exactly(1),  {},                                          ELEMENTWISE;
    Convolution           = "convolution",              exactly(2),  { window: Window = Window::default(), dim_labels: ConvolutionDimensionNumbers, feature_group_count: i64 = 1, batch_group_count: i64 = 1 }, NONE;
    Copy                  = "copy",                     exactly(1),  {},                                          ELEMENTWISE;
    CopyDone              = "copy-done",                exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    CopyStart             = "copy-start",               exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    Cos                   = "cosine",                   exactly(1),  {},                                          ELEMENTWISE;
    Cosh                  = "cosh",                     exactly(1),  {},                                          ELEMENTWISE;
    CountLeadingZeros     = "count-leading-zeros",      exactly(1),  {},                                          ELEMENTWISE;
    CustomCall            = "custom-call",              VARIADIC,    { custom_call_target: String, backend_config: String = String::new(), custom_call_has_side_effect: bool = false, attributes: RawAttributes }, NONE;
    Divide                = "divide",                   exactly(2),  {},                                          ELEMENTWISE;
    Domain                = "domain",                   exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    Dot                   = "dot",                      exactly(2),  { dot_dimension_numbers: DotDimensionNumbers }, NONE;
    DynamicReshape        = "dynamic-reshape",          VARIADIC,    {},                                          NONE;
    DynamicSlice          = "dynamic-slice",            VARIADIC,    { dynamic_slice_sizes: Sizes },              REINDEXES;
    DynamicUpdateSlice    = "dynamic-update-slice",     VARIADIC,    {},                                          NONE;
    Erf                   = "erf",                      exactly(1),  {},                                          ELEMENTWISE;
    Exp                   = "exponential",              exactly(1),  {},                                          ELEMENTWISE;
    Expm1                 = "exponential-minus-one",    exactly(1),  {},                                          ELEMENTWISE;
    Fft                   = "fft",                      exactly(1),  { fft_type: FftType, fft_length: Sizes },    NONE;
    Floor                 = "floor",                    exactly(1),  {},                                          ELEMENTWISE;
    Fusion                = "fusion",                   VARIADIC,    { xla_kind: XlaFusionKind as "kind", kind: FusionKind as "calls", calls: ComputationId }, NONE;
    Gather                = "gather",                   exactly(2),  { gather_dimension_numbers: GatherDimensionNumbers, slice_sizes: Sizes, indices_are_sorted: bool = false }, NONE;
    GetDimensionSize      = "get-dimension-size",       exactly(1),  { dimension: usize as "dimensions" },                        NONE;
    GetTupleElement       = "get-tuple-element",        exactly(1),  { index: usize },                            NONE;
    Imag                  = "imag",                     exactly(1),  {},                                          ELEMENTWISE;
    Infeed                = "infeed",                   exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    Iota                  = "iota",                     exactly(0),  { iota_dimension: usize },                   NONE;
    IsFinite              = "is-finite",                exactly(1),  {},                                          ELEMENTWISE;
    Log                   = "log",                      exactly(1),  {},                                          ELEMENTWISE;
    Log1p                 = "log-plus-one",             exactly(1),  {},                                          ELEMENTWISE;
    Logistic              = "logistic",                 exactly(1),  {},                                          ELEMENTWISE;
    Map                   = "map",                      VARIADIC,    { dimensions: Dims = Dims::new(), to_apply: ComputationId }, NONE;
    Maximum               = "maximum",                  exactly(2),  {},                                          COMMUTATIVE;
    Minimum               = "minimum",                  exactly(2),  {},                                          COMMUTATIVE;
    Multiply              = "multiply",                 exactly(2),  {},                                          COMMUTATIVE;
    Negate                = "negate",                   exactly(1),  {},                                          ELEMENTWISE;
    Not                   = "not",                      exactly(1),  {},                                          ELEMENTWISE;
    OptimizationBarrier   = "opt-barrier",              exactly(1),  {},                                          NONE;
    Or                    = "or",                       exactly(2),  {},                                          COMMUTATIVE;
    Outfeed               = "outfeed",                  exactly(2),  { attributes: RawAttributes },               SIDE_EFFECT;
    Pad                   = "pad",                      exactly(2),  { padding: PaddingConfig = PaddingConfig::default() },                  NONE;
    Parameter             = "parameter",                exactly(0),  { number: usize },                           NONE;
    PartitionId           = "partition-id",             exactly(0),  {},                                          NONE;
    PopulationCount       = "popcnt",                   exactly(1),  {},                                          ELEMENTWISE;
    Power                 = "power",                    exactly(2),  {},                                          ELEMENTWISE;
    RaggedAllToAll        = "ragged-all-to-all",        exactly(6),  { attributes: RawAttributes },               SIDE_EFFECT;
    RaggedDot             = "ragged-dot",               exactly(3),  { attributes: RawAttributes },               NONE;
    Real                  = "real",                     exactly(1),  {},                                          ELEMENTWISE;
    Recv                  = "recv",                     exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    RecvDone              = "recv-done",                exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    Reduce                = "reduce",                   VARIADIC,    { dimensions: Dims, to_apply: ComputationId }, NONE;
    ReducePrecision       = "reduce-precision",         exactly(1),  { exponent_bits: u32, mantissa_bits: u32 },  ELEMENTWISE;
    ReduceScatter         = "reduce-scatter",           VARIADIC,    { attributes: RawAttributes },               SIDE_EFFECT;
    ReduceWindow          = "reduce-window",            VARIADIC,    { window: Window = Window::default(), to_apply: ComputationId }, NONE;
    Remainder             = "remainder",                exactly(2),  {},                                          ELEMENTWISE;
    ReplicaId             = "replica-id",               exactly(0),  {},                                          NONE;
    Reshape               = "reshape",                  exactly(1),  {},                                          REINDEXES;
    Reverse               = "reverse",                  exactly(1),  { dimensions: Dims },                        REINDEXES;
    Rng                   = "rng",                      exactly(2),  { distribution: RandomDistribution },        SIDE_EFFECT;
    RngBitGenerator       = "rng-bit-generator",        exactly(1),  { algorithm: RandomAlgorithm },              NONE;
    RngGetAndUpdateState  = "rng-get-and-update-state", exactly(0),  { delta: i64 },                              SIDE_EFFECT;
    RoundNearestAfz       = "round-nearest-afz",        exactly(1),  {},                                          ELEMENTWISE;
    RoundNearestEven      = "round-nearest-even",       exactly(1),  {},                                          ELEMENTWISE;
    Rsqrt                 = "rsqrt",                    exactly(1),  {},                                          ELEMENTWISE;
    ScaledDot             = "scaled-dot",               exactly(4),  { attributes: RawAttributes },               NONE;
    Scan                  = "scan",                     VARIADIC,    { attributes: RawAttributes },               NONE;
    Scatter               = "scatter",                  VARIADIC,    { scatter_dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool = false, unique_indices: bool = false, to_apply: ComputationId }, NONE;
    Select                = "select",                   exactly(3),  {},                                          ELEMENTWISE;
    SelectAndScatter      = "select-and-scatter",       exactly(3),  { window: Window = Window::default(), select: ComputationId, scatter: ComputationId }, NONE;
    Send                  = "send",                     exactly(2),  { attributes: RawAttributes },               SIDE_EFFECT;
    SendDone              = "send-done",                exactly(1),  { attributes: RawAttributes },               SIDE_EFFECT;
    SetDimensionSize      = "set-dimension-size",       exactly(2),  { dimension: usize as "dimensions" },                        NONE;
    ShiftLeft             = "shift-left",               exactly(2),  {},                                          ELEMENTWISE;
    ShiftRightArithmetic  = "shift-right-arithmetic",   exactly(2),  {},                                          ELEMENTWISE;
    ShiftRightLogical     = "shift-right-logical",      exactly(2),  {},                                          ELEMENTWISE;
    Sign                  = "sign",                     exactly(1),  {},                                          ELEMENTWISE;
    Sin                   = "sine",                     exactly(1),  {},                                          ELEMENTWISE;
    Sinh                  = "sinh",                     exactly(1),  {},                                          ELEMENTWISE;
    Slice                 = "slice",                    exactly(1),  { slice: Vec<SliceDimension> },              REINDEXES;
    Sort                  = "sort",                     VARIADIC,    { dimension: usize as "dimensions", is_stable: bool = false, to_apply: ComputationId }, NONE;
    Sqrt                  = "sqrt",                     exactly(1),  {},                                          ELEMENTWISE;
    StochasticConvert     = "stochastic-convert",       exactly(2),  {},                                          ELEMENTWISE;
    Subtract              = "subtract",                 exactly(2),  {},                                          ELEMENTWISE;
    Tan                   = "tan",                      exactly(1),  {},                                          ELEMENTWISE;
    Tanh                  = "tanh",                     exactly(1),  {},                                          ELEMENTWISE;
    TopK                  = "topk",                     exactly(1),  { k: i64, largest: bool = true },                   NONE;
    Transpose             = "transpose",                exactly(1),  { dimensions: Dims },                        REINDEXES;
    TriangularSolve       = "triangular-solve",         exactly(2),  { left_side: bool = false, lower: bool = false, unit_diagonal: bool = false, transpose_a: TriangularTranspose }, NONE;
    Tuple                 = "tuple",                    VARIADIC,    {},                                          NONE;
    While                 = "while",                    exactly(1),  { condition: ComputationId, body: ComputationId }, NONE;
    Xor                   = "xor",                      exactly(2),  {},                                          COMMUTATIVE;
        }
    };
}

pub(crate) use for_each_opcode;

for_each_opcode!(define_opcodes);

impl Op {
    /// Returns the computations it calls, in the order of the payload.
    pub fn called_computations(&self) -> Vec<ComputationId> {
        match self {
            Self::Call { to_apply }
            | Self::Map { to_apply, .. }
            | Self::Reduce { to_apply, .. }
            | Self::ReduceWindow { to_apply, .. }
            | Self::Scatter { to_apply, .. }
            | Self::Sort { to_apply, .. } => vec![*to_apply],
            Self::Fusion { calls, .. } => vec![*calls],
            Self::Conditional { branch_computations } => branch_computations.clone(),
            Self::SelectAndScatter { select, scatter, .. } => vec![*select, *scatter],
            Self::While { condition, body } => vec![*condition, *body],
            _ => self.raw_attributes().map_or_else(Vec::new, RawAttributes::called_computations),
        }
    }

    /// Renames the computations it calls.
    pub fn map_called_computations(&mut self, mut map: impl FnMut(ComputationId) -> ComputationId) {
        match self {
            Self::Call { to_apply }
            | Self::Map { to_apply, .. }
            | Self::Reduce { to_apply, .. }
            | Self::ReduceWindow { to_apply, .. }
            | Self::Scatter { to_apply, .. }
            | Self::Sort { to_apply, .. } => *to_apply = map(*to_apply),
            Self::Fusion { calls, .. } => *calls = map(*calls),
            Self::Conditional { branch_computations } => {
                branch_computations.iter_mut().for_each(|branch| *branch = map(*branch));
            }
            Self::SelectAndScatter { select, scatter, .. } => {
                *select = map(*select);
                *scatter = map(*scatter);
            }
            Self::While { condition, body } => {
                *condition = map(*condition);
                *body = map(*body);
            }
            _ => {
                if let Some(raw) = self.raw_attributes_mut() {
                    raw.map_called_computations(&mut map);
                }
            }
        }
    }
}
