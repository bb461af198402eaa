//! The types of the loop-nest language.
//!
//! A program is a list of functions. A function has typed parameters and a body of statements in structured control
//! flow; every value is defined once, before its uses, and is visible in the region that defines it and the regions
//! inside. Loops carry values explicitly. Extents, strides and offsets are ordinary `i64` values, so they may be
//! constants or come in at run time. Memory is bytes behind pointers; alignment and aliasing facts stand on
//! parameters, loads and stores.

use std::fmt;
use support::IdVec;

support::id_type!(
    /// A function of a program.
    FunctionId,
    "f"
);
support::id_type!(
    /// A value of a function.
    ValueId,
    "v"
);

/// The type of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScalarType {
    /// One bit: conditions and masks. In memory a `pred` is an `I8` of 0 or 1.
    Bool,
    /// 8 bits, signed or not as the operation says.
    I8,
    /// 16 bits; also the bits of `f16` and `bf16`, which the lowering widens to `F32` for arithmetic.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits; all extents and indices.
    I64,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// An address.
    Ptr,
}

impl ScalarType {
    /// Bytes in memory.
    pub const fn byte_size(self) -> usize {
        match self {
            Self::Bool | Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 | Self::Ptr => 8,
        }
    }

    /// `F32` or `F64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// `I8` to `I64`.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }
}

/// The type of a value: a scalar, or a vector of a fixed number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type {
    /// Each lane's type; vectors of `Ptr` do not exist.
    pub scalar: ScalarType,
    /// 1 is a scalar.
    pub lanes: u32,
}

impl Type {
    /// An address.
    pub const PTR: Self = Self::scalar(ScalarType::Ptr);
    /// An index.
    pub const I64: Self = Self::scalar(ScalarType::I64);
    /// A condition.
    pub const BOOL: Self = Self::scalar(ScalarType::Bool);

    /// One lane.
    pub const fn scalar(scalar: ScalarType) -> Self {
        Self { scalar, lanes: 1 }
    }

    /// Some lanes.
    pub const fn vector(scalar: ScalarType, lanes: u32) -> Self {
        Self { scalar, lanes }
    }

    /// The same number of lanes of another type.
    #[must_use]
    pub const fn with_scalar(self, scalar: ScalarType) -> Self {
        Self { scalar, lanes: self.lanes }
    }
}

/// Operations on one value; integers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Floating-point negation (flips the sign bit, of NaN too).
    Negate,
    /// Floating-point magnitude (clears the sign bit).
    Abs,
    /// Correctly rounded square root.
    Sqrt,
    /// Largest integral value not above. Only for targets with `has_rounding`; the lowering emits arithmetic elsewhere.
    Floor,
    /// Smallest integral value not below; as `Floor`.
    Ceil,
    /// Integral value towards zero; as `Floor`.
    Truncate,
    /// Nearest integral value, ties to even; as `Floor`.
    RoundEven,
    /// `floor(log2 |a|)` of a float, of subnormal ones too; minus infinity of zeros, infinity of infinities. Only for
    /// targets with `has_float_parts`, as the next three; the lowering emits arithmetic elsewhere.
    Exponent,
    /// A float's magnitude times the power of two that brings it into [0.75, 1.5); NaN of negative ones. 1 of zeros and of
    /// infinity.
    Mantissa,
    /// `1 / a` with a relative error of at most `2^-14`, with the limits of zeros and infinities; what is subnormal in the
    /// result may be a zero.
    ReciprocalEstimate,
    /// `1 / sqrt(a)`, as `ReciprocalEstimate`.
    ReciprocalRootEstimate,
    /// Bitwise complement of an integer or a `Bool`.
    Not,
    /// Leading zero bits of an integer; the width for 0.
    CountLeadingZeros,
    /// Set bits of an integer.
    PopulationCount,
}

/// Operations on two values of one type; the result has that type. Integers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Sum of floats or integers.
    Add,
    /// Difference of floats or integers.
    Subtract,
    /// Product of floats or integers.
    Multiply,
    /// Quotient of floats.
    Divide,
    /// `a * 2^floor(b)` of floats, rounded once. Only for targets with `has_float_parts`.
    Scale,
    /// Signed quotient; the lowering guards zero divisors and overflow, which are undefined here.
    DivideSigned,
    /// Unsigned quotient; as `DivideSigned`.
    DivideUnsigned,
    /// Signed remainder, sign of the dividend; as `DivideSigned`.
    RemainderSigned,
    /// Unsigned remainder; as `DivideSigned`.
    RemainderUnsigned,
    /// Bitwise and, of `Bool` too.
    And,
    /// Bitwise or, of `Bool` too.
    Or,
    /// Bitwise exclusive or, of `Bool` too.
    Xor,
    /// Shift left; counts of the width and more are undefined here.
    ShiftLeft,
    /// Shift right, zeros come in; as `ShiftLeft`.
    ShiftRightLogical,
    /// Shift right, the sign comes in; as `ShiftLeft`.
    ShiftRightArithmetic,
}

/// Comparisons; the result is `Bool` with as many lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// Equal; false with NaN.
    Equal,
    /// Not equal; true with NaN.
    NotEqual,
    /// Signed or floating-point less; false with NaN.
    Less,
    /// Signed or floating-point less or equal; false with NaN.
    LessEqual,
    /// Signed or floating-point greater; false with NaN.
    Greater,
    /// Signed or floating-point greater or equal; false with NaN.
    GreaterEqual,
    /// Unsigned less.
    Below,
    /// Unsigned less or equal.
    BelowEqual,
    /// Unsigned greater.
    Above,
    /// Unsigned greater or equal.
    AboveEqual,
}

/// Conversions; the result's type stands with the value, lanes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvertOp {
    /// Wider integer, sign extended; from `Bool` too, where true is -1.
    SignExtend,
    /// Wider integer, zero extended; from `Bool` too.
    ZeroExtend,
    /// Narrower integer, high bits dropped; to `Bool` keeps the lowest bit.
    Truncate,
    /// Signed integer to the nearest float.
    SignedToFloat,
    /// Unsigned integer to the nearest float.
    UnsignedToFloat,
    /// Float to signed integer towards zero, saturating, NaN to 0.
    FloatToSigned,
    /// Float to unsigned integer towards zero, saturating, NaN to 0.
    FloatToUnsigned,
    /// `F32` to `F64`.
    FloatExtend,
    /// `F64` to the nearest `F32`.
    FloatTruncate,
    /// The same bits as another type of the same total size (lanes may change).
    Bitcast,
}

/// A splat constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// Integers and `Bool`, sign extended; of addresses only 0, the null pointer.
    Integer(i64),
    /// The bits of an `F32` or `F64`.
    FloatBits(u64),
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// The same constant in every lane.
    Constant(Constant),
    /// One operand.
    Unary(UnaryOp, ValueId),
    /// Two operands.
    Binary(BinaryOp, ValueId, ValueId),
    /// `a * b + c` of floats, fused or rounded twice as the target likes best.
    MultiplyAdd(ValueId, ValueId, ValueId),
    /// A comparison.
    Compare(Predicate, ValueId, ValueId),
    /// `condition ? a : b`, lane by lane; a scalar condition selects whole vectors.
    Select(ValueId, ValueId, ValueId),
    /// A conversion to the value's type.
    Convert(ConvertOp, ValueId),
    /// A scalar in every lane.
    Splat(ValueId),
    /// A scalar lane of a vector.
    Extract(ValueId, u32),
    /// A vector with one lane replaced: vector, lane, scalar.
    Insert(ValueId, u32, ValueId),
    /// Lanes of two vectors of one type: lane `m[i]` of the first, or `m[i] - lanes` of the second.
    Shuffle(ValueId, ValueId, Vec<u32>),
    /// Lanes 0, 1, 2, ... of an integer vector.
    Iota,
    /// `pointer + index * scale` bytes, within the object that the pointer points into.
    Offset {
        /// The base.
        pointer: ValueId,
        /// An `I64`.
        index: ValueId,
        /// Bytes for each step of the index.
        scale: i64,
    },
    /// Reads the value's type.
    Load {
        /// The address of the first lane.
        pointer: ValueId,
        /// Bytes; a power of two that divides the address.
        alignment: u32,
        /// Lanes that are read (`Bool` lanes); the others are 0 and their memory is not touched.
        mask: Option<ValueId>,
    },
    /// Uninitialised bytes on the function's stack, for the whole call. Only outside of loops.
    StackSlot {
        /// How many.
        bytes: u64,
        /// A power of two.
        alignment: u32,
    },
    /// The address of a function.
    FunctionAddress(FunctionId),
    /// The address of constant bytes, aligned to 8.
    Bytes(Vec<u8>),
    /// An `I64`: ticks of the processor's clock, or where programs may not read that, of the machine's steady one.
    CycleCounter,
}

/// A value that a loop hands from one iteration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carried {
    /// Its value at the start of an iteration.
    pub inner: ValueId,
    /// Its value before the first.
    pub initial: ValueId,
    /// Its value after the last, outside of the loop.
    pub result: ValueId,
}

/// Statements of a region, and the values it hands to the statement that owns it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    /// In order.
    pub statements: Vec<Statement>,
    /// As many as the owner expects.
    pub yields: Vec<ValueId>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// Defines a value.
    Let(ValueId, Expression),
    /// Writes a value (a scalar or all lanes) to memory; `Bool` is never stored.
    Store {
        /// What.
        value: ValueId,
        /// The address of the first lane.
        pointer: ValueId,
        /// Bytes; a power of two that divides the address.
        alignment: u32,
        /// Lanes that are written (`Bool` lanes).
        mask: Option<ValueId>,
    },
    /// `for index in (begin..end).step_by(step)`; the body yields the carried values' next ones.
    For {
        /// An `I64`, visible in the body.
        index: ValueId,
        /// The first index.
        begin: ValueId,
        /// One past the last; none at all if not above `begin`.
        end: ValueId,
        /// At least 1.
        step: i64,
        /// Values from iteration to iteration.
        carried: Vec<Carried>,
        /// The body.
        body: Block,
    },
    /// Repeats while the condition block yields true (its one yield, a scalar `Bool`); both blocks see `inner`.
    While {
        /// Values from iteration to iteration.
        carried: Vec<Carried>,
        /// Yields one `Bool`.
        condition: Block,
        /// Yields the carried values' next ones.
        body: Block,
    },
    /// One of two regions; each yields as many values as there are results.
    If {
        /// A scalar `Bool`.
        condition: ValueId,
        /// The chosen region's yields.
        results: Vec<ValueId>,
        /// If true.
        then: Block,
        /// If false.
        otherwise: Block,
    },
    /// Calls a function; functions other than the entry return nothing.
    Call {
        /// The callee.
        function: FunctionId,
        /// One for each parameter.
        arguments: Vec<ValueId>,
    },
    /// Runs a function over the items `0..count`, in parts, through the `parallel_for` of the frame if there is one; else
    /// it is one direct call. The function returns from the entry at once what `parallel_for` returns if that is not 0.
    /// Only in the entry.
    Parallel {
        /// The callee. Its last three parameters are `I64`: the first item, one past the last, the worker's number.
        function: FunctionId,
        /// How many items; at least 1.
        count: i64,
        /// One for each parameter but the last three.
        arguments: Vec<ValueId>,
    },
    /// Calls a C function of the user's, whose name is found when the object is linked: it takes addresses and returns an
    /// `int32_t`. Only in the entry.
    CallExternal {
        /// Its name.
        symbol: String,
        /// Addresses.
        arguments: Vec<ValueId>,
        /// What it returns, an `I32`.
        status: ValueId,
    },
    /// Returns a status from the entry if a condition holds. Only in the entry.
    LeaveIf {
        /// A scalar `Bool`.
        condition: ValueId,
        /// An `I32` that is not 0.
        status: ValueId,
    },
    /// Copies bytes between regions that do not overlap.
    CopyBytes {
        /// Where to.
        to: ValueId,
        /// Where from.
        from: ValueId,
        /// An `I64`.
        bytes: ValueId,
    },
    /// Sets bytes.
    FillBytes {
        /// Where.
        to: ValueId,
        /// An `I8`.
        byte: ValueId,
        /// An `I64`.
        bytes: ValueId,
    },
    /// Asks the machine to bring a cache line near, so that a later load finds it there. Changes nothing else; machines
    /// without such an instruction do nothing.
    Prefetch {
        /// An address of the line, within an object.
        pointer: ValueId,
        /// How near: 1 or 2 is the first or second cache.
        cache: u32,
    },
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// For the reader.
    pub name: String,
    /// Its value.
    pub value: ValueId,
    /// What is known of an address. Nothing for other types.
    pub pointer: PointerFacts,
}

/// What is known of the memory behind a pointer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PointerFacts {
    /// No other pointer of the function reaches the same memory while one of them writes it.
    pub no_alias: bool,
    /// The function does not write through it.
    pub read_only: bool,
    /// Bytes; 1 is unknown.
    pub alignment: u32,
}

impl Default for PointerFacts {
    fn default() -> Self {
        Self { no_alias: false, read_only: false, alignment: 1 }
    }
}

/// Who may call a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// The program's entry: one pointer parameter (the frame), exported, returns `int32_t` 0.
    Entry,
    /// Local to the object.
    Internal,
    /// Local, and worth inlining wherever it is called.
    Inline,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Unique in the program; kernels carry the source node's name.
    pub name: String,
    /// In order.
    pub parameters: Vec<Parameter>,
    /// The type of each value.
    pub values: IdVec<ValueId, Type>,
    /// Yields nothing.
    pub body: Block,
    /// Who may call it.
    pub linkage: Linkage,
}

/// A program: callees stand before callers, the entry last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The functions.
    pub functions: IdVec<FunctionId, Function>,
}

impl fmt::Display for Type {
    /// `f32`, `f32x8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.scalar {
            ScalarType::Bool => "bool",
            ScalarType::I8 => "i8",
            ScalarType::I16 => "i16",
            ScalarType::I32 => "i32",
            ScalarType::I64 => "i64",
            ScalarType::F32 => "f32",
            ScalarType::F64 => "f64",
            ScalarType::Ptr => "ptr",
        };
        if self.lanes == 1 { f.write_str(name) } else { write!(f, "{name}x{}", self.lanes) }
    }
}
