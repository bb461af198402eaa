//! The sets of data types that TF ops are registered with on XLA's CPU device, named for the rows
//! of the rules.

use tf::DataType::{self, *};

/// The types that an array can hold, followed by others.
macro_rules! array_types {
    ($($more:ident),*) => {
        &[
            Bfloat16, Bool, Complex128, Complex64, Half, Float, Double, Float8e4m3fn,
            Float8e5m2, Int16, Int32, Int4, Int64, Int8, Qint32, Qint8, Quint8, Uint16, Uint32,
            Uint4, Uint64, Uint8, Qint16, Quint16, Int2, Uint2,
            $($more),*
        ]
    };
}

/// All types that an array can hold.
pub(crate) const ALL: &[DataType] = array_types!();

/// Arrays and strings.
pub(crate) const ALL_AND_STRINGS: &[DataType] = array_types!(String);

/// Arrays and resource handles.
pub(crate) const ALL_AND_HANDLES: &[DataType] = array_types!(Resource);

/// Arrays, strings, and values that flow through graphs without being arrays.
pub(crate) const ANYTHING: &[DataType] = array_types!(String, Resource, Variant);

/// Arrays and tensor lists.
pub(crate) const ALL_AND_VARIANTS: &[DataType] = array_types!(Variant);

/// Types that `AddN` adds.
pub(crate) const SUMMABLE: &[DataType] = &[
    Bfloat16, Complex128, Complex64, Half, Float, Double, Int16, Int32, Int64, Int8, Uint16, Uint32, Uint64,
    Uint8, Qint32, Qint8, Quint8, Variant,
];

/// Real floating point.
pub(crate) const FLOATS: &[DataType] = &[Bfloat16, Half, Float, Double];

/// Real and complex floating point.
pub(crate) const FLOATS_AND_COMPLEX: &[DataType] = &[Bfloat16, Complex128, Complex64, Half, Float, Double];

/// Complex types.
pub(crate) const COMPLEX: &[DataType] = &[Complex128, Complex64];

/// Types of the parts of complex numbers.
pub(crate) const COMPLEX_PARTS: &[DataType] = &[Float, Double];

/// Integers, without quantized ones.
pub(crate) const INTEGERS: &[DataType] = &[Int16, Int32, Int64, Int8, Uint16, Uint32, Uint64, Uint8];

/// Types of indices.
pub(crate) const INDICES: &[DataType] = &[Int32, Int64, Int16];

/// Real numbers: integers and floating point.
pub(crate) const REAL: &[DataType] =
    &[Bfloat16, Half, Float, Double, Int16, Int32, Int64, Int8, Uint16, Uint32, Uint64, Uint8];

/// Real numbers, including quantized ones.
pub(crate) const REAL_AND_QUANTIZED: &[DataType] = &[
    Bfloat16, Half, Float, Double, Int16, Int32, Int64, Int8, Uint16, Uint32, Uint64, Uint8, Qint32, Qint8,
    Quint8,
];

/// Truth values and real numbers, including quantized ones.
pub(crate) const ORDERED: &[DataType] = &[
    Bfloat16, Bool, Half, Float, Double, Int16, Int32, Int64, Int8, Uint16, Uint32, Uint64, Uint8, Qint32,
    Qint8, Quint8,
];

/// Numbers: integers, floating point, and complex.
pub(crate) const NUMBERS: &[DataType] = &[
    Bfloat16, Complex128, Complex64, Half, Float, Double, Int16, Int32, Int64, Int8, Uint16, Uint32, Uint64,
    Uint8,
];

/// Numbers, including quantized ones.
pub(crate) const NUMBERS_AND_QUANTIZED: &[DataType] = &[
    Bfloat16, Complex128, Complex64, Half, Float, Double, Int16, Int32, Int64, Int8, Qint32, Qint8, Quint8,
    Uint16, Uint32, Uint64, Uint8,
];

/// Numbers with a sign.
pub(crate) const SIGNED_NUMBERS: &[DataType] =
    &[Bfloat16, Complex128, Complex64, Half, Float, Double, Int16, Int32, Int64, Int8];

/// Real numbers with a sign.
pub(crate) const SIGNED_REAL: &[DataType] = &[Bfloat16, Half, Float, Double, Int16, Int32, Int64, Int8];

/// Floating point and the two integer types that remainders are defined for.
pub(crate) const FLOATS_AND_INDICES: &[DataType] = &[Bfloat16, Half, Float, Double, Int32, Int64];

/// `bool` and numbers, without quantized ones.
pub(crate) const BOOL_AND_NUMBERS: &[DataType] = &[
    Bfloat16, Bool, Complex128, Complex64, Half, Float, Double, Int16, Int32, Int64, Int8, Uint16, Uint32,
    Uint64, Uint8,
];

/// Types that `Relu` is defined for.
pub(crate) const RELU: &[DataType] =
    &[Bfloat16, Half, Float, Double, Int16, Int32, Int64, Int8, Qint8, Uint16, Uint32, Uint64, Uint8];

/// Types that convolutions are defined for.
pub(crate) const CONVOLUTION: &[DataType] = &[Bfloat16, Half, Float, Double, Int32];

/// Types that `MaxPool` is defined for.
pub(crate) const MAX_POOL: &[DataType] =
    &[Bfloat16, Half, Float, Double, Int16, Int32, Int64, Int8, Qint8, Uint16, Uint8];

/// Real floating point up to 32 bits.
pub(crate) const FLOATS_TO_32_BITS: &[DataType] = &[Bfloat16, Half, Float];

/// Element types of images.
pub(crate) const IMAGE: &[DataType] =
    &[Bfloat16, Half, Float, Double, Int16, Int32, Int64, Int8, Uint16, Uint8];

/// `bool` and numbers, including quantized ones.
pub(crate) const BOOL_NUMBERS_AND_QUANTIZED: &[DataType] = &[
    Bfloat16, Bool, Complex128, Complex64, Half, Float, Double, Int16, Int32, Int64, Int8, Qint32, Qint8,
    Quint8, Uint16, Uint32, Uint64, Uint8,
];

/// Types with an order that sorts can use.
pub(crate) const SORTABLE: &[DataType] = &[
    Bfloat16,
    Bool,
    Half,
    Float,
    Double,
    Float8e4m3fn,
    Float8e5m2,
    Int16,
    Int32,
    Int4,
    Int64,
    Int8,
    Qint32,
    Qint8,
    Quint8,
    Uint16,
    Uint32,
    Uint4,
    Uint64,
    Uint8,
];
