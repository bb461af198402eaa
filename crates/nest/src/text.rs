//! The text form of a program. Printed text parses to the same program.
//!
//! ```text
//! internal fn "add" (v0 "x": ptr noalias readonly align 64, v1 "n": i64) {
//!   v2: i64 = constant 0
//!   v8: f32x4 = for v3 in v2..v1 step 4 carry (v4 = v7) {
//!     v5: ptr = offset v0 + v3 * 4
//!     v6: f32x4 = load v5 align 4
//!     yield v6
//!   }
//!   store v8 to v0 align 16
//! }
//! ```

mod parse;
mod print;
mod tiles;

pub use parse::parse;
pub(crate) use print::StatementHead;

use crate::language::{BinaryOp, ConvertOp, GroupKind, MatrixKind, Predicate, ScalarType, UnaryOp};

/// Names of a family of operations.
macro_rules! names {
    ($table:ident: $ty:ty { $($name:literal = $variant:ident,)* }) => {
        pub(super) const $table: &[($ty, &str)] = &[$((<$ty>::$variant, $name),)*];
    };
}

names!(UNARY: UnaryOp {
    "negate" = Negate,
    "abs" = Abs,
    "sqrt" = Sqrt,
    "floor" = Floor,
    "ceil" = Ceil,
    "trunc" = Truncate,
    "round_even" = RoundEven,
    "exponent" = Exponent,
    "mantissa" = Mantissa,
    "reciprocal_estimate" = ReciprocalEstimate,
    "reciprocal_root_estimate" = ReciprocalRootEstimate,
    "not" = Not,
    "count_leading_zeros" = CountLeadingZeros,
    "population_count" = PopulationCount,
});

names!(BINARY: BinaryOp {
    "add" = Add,
    "subtract" = Subtract,
    "multiply" = Multiply,
    "multiply_fixed" = MultiplyFixed,
    "divide" = Divide,
    "scale" = Scale,
    "divide_signed" = DivideSigned,
    "divide_unsigned" = DivideUnsigned,
    "remainder_signed" = RemainderSigned,
    "remainder_unsigned" = RemainderUnsigned,
    "and" = And,
    "or" = Or,
    "xor" = Xor,
    "shift_left" = ShiftLeft,
    "shift_right_logical" = ShiftRightLogical,
    "shift_right_arithmetic" = ShiftRightArithmetic,
});

names!(GROUPS: GroupKind {
    "signed_bytes" = SignedBytes,
    "signed_bytes_by_narrow" = SignedBytesByNarrow,
    "unsigned_bytes" = UnsignedBytes,
    "shorts" = Shorts,
    "short" = Short,
    "bf16" = Bf16,
    "signed_byte_pairs" = SignedBytePairs,
    "unsigned_byte_pairs" = UnsignedBytePairs,
    "bf16_pairs" = Bf16Pairs,
    "signed_byte_halves" = SignedByteHalves,
    "signed_byte_vectors" = SignedByteVectors,
});

names!(MATRICES: MatrixKind {
    "f16" = F16,
    "bf16" = Bf16,
    "s8" = S8,
    "tf32" = Tf32,
});

names!(PREDICATES: Predicate {
    "equal" = Equal,
    "not_equal" = NotEqual,
    "less" = Less,
    "less_equal" = LessEqual,
    "greater" = Greater,
    "greater_equal" = GreaterEqual,
    "below" = Below,
    "below_equal" = BelowEqual,
    "above" = Above,
    "above_equal" = AboveEqual,
});

names!(CONVERSIONS: ConvertOp {
    "sign_extend" = SignExtend,
    "zero_extend" = ZeroExtend,
    "truncate" = Truncate,
    "signed_to_float" = SignedToFloat,
    "unsigned_to_float" = UnsignedToFloat,
    "float_to_signed" = FloatToSigned,
    "float_to_unsigned" = FloatToUnsigned,
    "float_extend" = FloatExtend,
    "float_truncate" = FloatTruncate,
    "bitcast" = Bitcast,
});

names!(SCALARS: ScalarType {
    "bool" = Bool,
    "i8" = I8,
    "i16" = I16,
    "i32" = I32,
    "i64" = I64,
    "f32" = F32,
    "f64" = F64,
    "ptr" = Ptr,
});

fn name_of<T: PartialEq>(table: &'static [(T, &'static str)], op: &T) -> &'static str {
    table
        .iter()
        .find(|(candidate, _)| candidate == op)
        .map(|(_, name)| *name)
        .expect("expected a name for every operation")
}

fn named<T: Copy>(table: &[(T, &str)], name: &str) -> Option<T> {
    table.iter().find(|(_, candidate)| *candidate == name).map(|(op, _)| *op)
}
