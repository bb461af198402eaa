//! The types of the loop-nest language.
//!
//! A program is a list of functions. A function has typed parameters and a body of statements in
//! structured control flow. Every value is defined once, before its uses, and is visible in the
//! region that defines it and in the regions inside. Loops carry values explicitly. Extents,
//! strides, and offsets are ordinary `i64` values: constants, or values known only at run time.
//! Memory consists of bytes that pointers refer to. Parameters, loads, and stores state facts about
//! alignment and aliasing.

mod matrix;
mod operators;
mod tiles;

pub use matrix::MatrixKind;
pub use operators::{BinaryOp, ConvertOp, Predicate, UnaryOp};
pub use tiles::{LEFT_TILES, RIGHT_TILES, SUM_TILES, TILE_ROWS, TileOperation};

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
    /// One bit, for conditions and masks. In memory, a `pred` is an `I8` of 0 or 1.
    Bool,
    /// 8 bits. Operations determine the signedness.
    I8,
    /// 16 bits. Also the bits of `f16` and `bf16`, which the lowering widens to `F32` for
    /// arithmetic.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits. The type of all extents and indices.
    I64,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// An address.
    Ptr,
}

impl ScalarType {
    /// Returns the size in memory in bytes.
    pub const fn byte_size(self) -> usize {
        match self {
            Self::Bool | Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 | Self::Ptr => 8,
        }
    }

    /// True for `F32` and `F64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// True for `I8` to `I64`.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }
}

/// The type of a value: a scalar, or a vector with a fixed number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type {
    /// Type of each lane. There are no vectors of `Ptr`.
    pub scalar: ScalarType,
    /// Number of lanes. A scalar has one.
    pub lanes: u32,
}

impl Type {
    /// An address.
    pub const PTR: Self = Self::scalar(ScalarType::Ptr);
    /// An index.
    pub const I64: Self = Self::scalar(ScalarType::I64);
    /// A condition.
    pub const BOOL: Self = Self::scalar(ScalarType::Bool);

    /// Returns the type of a scalar.
    pub const fn scalar(scalar: ScalarType) -> Self {
        Self { scalar, lanes: 1 }
    }

    /// Returns the type of a vector.
    pub const fn vector(scalar: ScalarType, lanes: u32) -> Self {
        Self { scalar, lanes }
    }

    /// Returns another lane type with the same number of lanes.
    #[must_use]
    pub const fn with_scalar(self, scalar: ScalarType) -> Self {
        Self { scalar, lanes: self.lanes }
    }
}

/// A constant that is the same in all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// An integer or `Bool`, sign extended. For addresses only 0, the null pointer.
    Integer(i64),
    /// The bits of an `F32` or `F64`.
    FloatBits(u64),
}

/// Factors that share a 32-bit lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// Four signed bytes times four signed bytes. Sums wrap around.
    SignedBytes,
    /// Like [`Self::SignedBytes`], where no second factor is -128 (a narrow range).
    SignedBytesByNarrow,
    /// Four unsigned bytes times four signed bytes. Sums wrap around.
    UnsignedBytes,
    /// Two signed numbers of 16 bits times two. Sums wrap around.
    Shorts,
    /// A signed number of 16 bits times another one: `a` and `b` are vectors of `i16`. Sums wrap
    /// around.
    Short,
    /// Two `bf16` times two `bf16`, the upper ones first. Each sum is rounded to nearest even. An
    /// implementation may treat subnormal numbers as zero, and round sums otherwise.
    Bf16,
    /// Like [`Self::SignedBytes`], in pairs of rows and columns. The four lanes of the first
    /// factors are two rows of eight bytes, those of the second ones two columns, and those of
    /// the sums two rows of two columns. Only on targets with such an instruction.
    SignedBytePairs,
    /// Like [`Self::UnsignedBytes`], in pairs of rows and columns.
    UnsignedBytePairs,
    /// Like [`Self::Bf16`], in pairs of rows and columns of four factors, in any order.
    Bf16Pairs,
    /// Like [`Self::SignedBytes`], with two products in each of twice as many lanes of sums.
    SignedByteHalves,
    /// Sixteen signed bytes times as many, all added to a scalar. Sums wrap around. Only on targets
    /// with such an instruction.
    SignedByteVectors,
}

impl GroupKind {
    /// Returns the type of the sums.
    pub const fn sum(self) -> ScalarType {
        match self {
            Self::SignedBytes
            | Self::SignedBytesByNarrow
            | Self::UnsignedBytes
            | Self::Shorts
            | Self::Short
            | Self::SignedBytePairs
            | Self::UnsignedBytePairs
            | Self::SignedByteHalves
            | Self::SignedByteVectors => ScalarType::I32,
            Self::Bf16 | Self::Bf16Pairs => ScalarType::F32,
        }
    }

    /// True if rows and columns are multiplied in pairs.
    pub const fn is_paired(self) -> bool {
        matches!(self, Self::SignedBytePairs | Self::UnsignedBytePairs | Self::Bf16Pairs)
    }
}

/// The definition of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// The same constant in every lane.
    Constant(Constant),
    /// One operand.
    Unary(UnaryOp, ValueId),
    /// Two operands.
    Binary(BinaryOp, ValueId, ValueId),
    /// `a * b + c` for floats, fused or rounded twice, whichever is faster on the target.
    MultiplyAdd(ValueId, ValueId, ValueId),
    /// `c` plus the products of a group of factors per lane: those of a lane of `a` times those of
    /// the same lane of `b`, or pairs of rows times pairs of columns. `a` and `b` are vectors of
    /// `i32`, unless the kind says otherwise.
    GroupMultiplyAdd {
        /// The types of the factors.
        kind: GroupKind,
        /// The first factors.
        a: ValueId,
        /// The second factors.
        b: ValueId,
        /// The sums so far.
        c: ValueId,
    },
    /// The byte of a table of 256 bytes whose number is the bits of a byte, lane by lane.
    ByteLookup {
        /// The 256 bytes.
        table: Vec<u8>,
        /// Bytes that select those of the table.
        index: ValueId,
    },
    /// `A * B + C` of matrices that the 32 threads of a warp hold together; see [`MatrixKind`]. All
    /// threads of the workgroup evaluate it. Only in kernels of devices with matrix units.
    MatrixMultiplyAdd {
        /// The types of the elements.
        kind: MatrixKind,
        /// The thread's elements of `A`: four words.
        a: ValueId,
        /// The thread's elements of `B`: two words.
        b: ValueId,
        /// The thread's elements of `C`: four sums.
        c: ValueId,
    },
    /// A comparison.
    Compare(Predicate, ValueId, ValueId),
    /// `condition ? a : b`, lane by lane. A scalar condition selects whole vectors.
    Select(ValueId, ValueId, ValueId),
    /// A conversion to the value's type.
    Convert(ConvertOp, ValueId),
    /// A scalar in every lane.
    Splat(ValueId),
    /// A scalar lane of a vector.
    Extract(ValueId, u32),
    /// A vector with one lane replaced: vector, lane, scalar.
    Insert(ValueId, u32, ValueId),
    /// Lanes of two vectors of the same type: lane `m[i]` of the first, or lane `m[i] - lanes` of
    /// the second.
    Shuffle(ValueId, ValueId, Vec<u32>),
    /// Lanes 0, 1, 2, ... of an integer vector.
    Iota,
    /// `pointer + index * scale` bytes, within the object that the pointer points into.
    Offset {
        /// The base.
        pointer: ValueId,
        /// An `I64`.
        index: ValueId,
        /// Bytes per step of the index.
        scale: i64,
    },
    /// Loads a value.
    Load {
        /// The address of the first lane.
        pointer: ValueId,
        /// Alignment in bytes: a power of two that divides the address.
        alignment: u32,
        /// `Bool` lanes that select the lanes to load. The other lanes are 0, and their memory is
        /// not accessed.
        mask: Option<ValueId>,
    },
    /// Uninitialized bytes on the function's stack that live until it returns. Only outside loops.
    StackSlot {
        /// Number of bytes.
        bytes: u64,
        /// Alignment in bytes; a power of two.
        alignment: u32,
    },
    /// The address of a function.
    FunctionAddress(FunctionId),
    /// The address of constant bytes, aligned to 8 bytes.
    Bytes(Vec<u8>),
    /// Ticks of the processor's cycle counter, as an `I64`. Where programs may not read it, ticks
    /// of a monotonic clock.
    CycleCounter,
    /// The number of the running thread in its workgroup, or of the workgroup in the grid, as an
    /// `I64`. Only in kernels of a device.
    Thread(ThreadIndex),
    /// Uninitialized bytes that the threads of a workgroup share. They live as long as the
    /// workgroup. Only in kernels of a device, outside loops.
    WorkgroupMemory {
        /// Number of bytes.
        bytes: u64,
        /// Alignment in bytes; a power of two.
        alignment: u32,
    },
}

/// A number of the running thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadIndex {
    /// The thread's number in its workgroup.
    Local,
    /// The workgroup's number in the grid.
    Workgroup,
}

/// A value that a loop carries from one iteration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carried {
    /// Its value at the start of an iteration.
    pub inner: ValueId,
    /// Its value before the first iteration.
    pub initial: ValueId,
    /// Its value after the last iteration, outside the loop.
    pub result: ValueId,
}

/// The statements of a region, and the values that it yields to the statement that owns it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    /// The statements, in order.
    pub statements: Vec<Statement>,
    /// The yielded values. The owner determines their number and types.
    pub yields: Vec<ValueId>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// Defines a value.
    Let(ValueId, Expression),
    /// Stores a scalar or all lanes of a vector. `Bool` is never stored.
    Store {
        /// The stored value.
        value: ValueId,
        /// The address of the first lane.
        pointer: ValueId,
        /// Alignment in bytes: a power of two that divides the address.
        alignment: u32,
        /// `Bool` lanes that select the lanes to store.
        mask: Option<ValueId>,
    },
    /// `for index in (begin..end).step_by(step)`. The body yields the next carried values.
    For {
        /// The index, an `I64`. Visible in the body.
        index: ValueId,
        /// The first index.
        begin: ValueId,
        /// One past the last index. The loop does not run if this is not greater than `begin`.
        end: ValueId,
        /// Increment of the index; at least 1.
        step: i64,
        /// Values carried between iterations.
        carried: Vec<Carried>,
        /// The body.
        body: Block,
    },
    /// Repeats the body while the condition block yields true. Both blocks see the `inner` values.
    While {
        /// Values carried between iterations.
        carried: Vec<Carried>,
        /// Yields one scalar `Bool`.
        condition: Block,
        /// Yields the next carried values.
        body: Block,
    },
    /// Runs one of two regions. Each yields as many values as there are results.
    If {
        /// A scalar `Bool`.
        condition: ValueId,
        /// The yields of the region that ran.
        results: Vec<ValueId>,
        /// The region for a true condition.
        then: Block,
        /// The region for a false condition.
        otherwise: Block,
    },
    /// Calls a function. Only the entry has a return value.
    Call {
        /// The callee.
        function: FunctionId,
        /// One argument per parameter.
        arguments: Vec<ValueId>,
    },
    /// Runs a function over the items `0..count`, in parts, with the `parallel_for` of the frame,
    /// or as one direct call if there is none. If `parallel_for` returns a nonzero status, the
    /// entry returns it immediately. Only in the entry.
    Parallel {
        /// The callee. Its last three parameters are `I64`: the first item, one past the last item,
        /// and the worker's number.
        function: FunctionId,
        /// Number of items; at least 1.
        count: i64,
        /// One argument per parameter, except for the last three.
        arguments: Vec<ValueId>,
    },
    /// Calls a user-provided C function, whose symbol is resolved at link time. It takes addresses
    /// and returns an `int32_t`. Only in the entry.
    CallExternal {
        /// Symbol of the function.
        symbol: String,
        /// Addresses.
        arguments: Vec<ValueId>,
        /// The returned status, an `I32`.
        status: ValueId,
    },
    /// Returns a status from the entry if a condition holds. Only in the entry.
    LeaveIf {
        /// A scalar `Bool`.
        condition: ValueId,
        /// An `I32` other than 0.
        status: ValueId,
    },
    /// Copies bytes between memory regions that do not overlap.
    CopyBytes {
        /// Destination address.
        to: ValueId,
        /// Source address.
        from: ValueId,
        /// Number of bytes, an `I64`.
        bytes: ValueId,
    },
    /// Sets bytes to a value.
    FillBytes {
        /// Address of the first byte.
        to: ValueId,
        /// The value, an `I8`.
        byte: ValueId,
        /// Number of bytes, an `I64`.
        bytes: ValueId,
    },
    /// Prefetches a cache line for a later load. It has no other effect. Machines without such an
    /// instruction ignore it.
    Prefetch {
        /// An address of the line, within an object.
        pointer: ValueId,
        /// Cache level: 1 or 2.
        cache: u32,
    },
    /// Waits for all threads of the workgroup, and makes their earlier stores to workgroup and
    /// global memory visible to each other. Only in kernels of a device, where all threads of the
    /// workgroup reach it.
    Barrier,
    /// An operation on tile registers. Only on targets that have them, and in functions that
    /// release them.
    Tiles(TileOperation),
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Name, for readers only.
    pub name: String,
    /// Its value.
    pub value: ValueId,
    /// Facts about an address. Default for other types.
    pub pointer: PointerFacts,
}

/// Facts about the memory that a pointer parameter refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PointerFacts {
    /// True if no other pointer of the function accesses the same memory while one of them writes
    /// it.
    pub no_alias: bool,
    /// True if the function does not write through it.
    pub read_only: bool,
    /// Alignment in bytes. 1 if unknown.
    pub alignment: u32,
}

impl Default for PointerFacts {
    fn default() -> Self {
        Self { no_alias: false, read_only: false, alignment: 1 }
    }
}

/// Visibility of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// The program's entry. It is exported, has one pointer parameter (the frame), and returns 0 as
    /// an `int32_t`.
    Entry,
    /// Local to the object.
    Internal,
    /// Local to the object, and worth inlining at every call.
    Inline,
    /// A kernel of a device: exported, and run by a grid of workgroups with this many threads each.
    /// All parameters are addresses in global memory. The first one is the guard: null, or the
    /// address of an `I32`. If that is 0, the kernel returns at once.
    Kernel {
        /// Number of threads of a workgroup.
        threads: u32,
    },
    /// Local to the object, and called by the code generator in place of an operation without an
    /// instruction. Its name is its symbol. The body yields the result: one or two scalars.
    Routine,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Unique in the program. The names of kernels contain the source node's name.
    pub name: String,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
    /// The type of each value.
    pub values: IdVec<ValueId, Type>,
    /// Body of the function. Only a routine's yields values.
    pub body: Block,
    /// Visibility.
    pub linkage: Linkage,
}

/// A program. Callees come before callers, and the entry is last.
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
