//! TensorFlow's data types.

use shape::PrimitiveType;
use std::fmt;

macro_rules! data_types {
    ($($variant:ident, $reference:ident = $number:literal, $name:literal, $proto:literal, $primitive:expr;)*) => {
        /// A data type. `XRef` is a reference to a mutable tensor of type `X`, the output of a
        /// TensorFlow 1 variable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the names are the documentation")]
        pub enum DataType {
            $($variant,)*
            $($reference,)*
        }

        impl DataType {
            /// Every type except reference types.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The type with this number in the proto enum `DataType`. `None` for 0 (`DT_INVALID`)
            /// and unused numbers.
            pub fn from_number(number: i32) -> Option<Self> {
                match number {
                    $(
                        $number => Some(Self::$variant),
                        number if number == $number + 100 => Some(Self::$reference),
                    )*
                    _ => None,
                }
            }

            /// The type's number in the proto enum.
            pub fn number(self) -> i32 {
                match self {
                    $(Self::$variant => $number, Self::$reference => $number + 100,)*
                }
            }

            /// The type's name in the proto enum, for instance `DT_FLOAT` or `DT_FLOAT_REF`.
            pub fn proto_name(self) -> &'static str {
                match self {
                    $(Self::$variant => $proto, Self::$reference => concat!($proto, "_REF"),)*
                }
            }

            /// TensorFlow's short name, for instance `float`, `int32`, or `float_ref`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name, Self::$reference => concat!($name, "_ref"),)*
                }
            }

            /// The type without the reference.
            #[must_use]
            pub fn base(self) -> Self {
                match self {
                    $(Self::$variant | Self::$reference => Self::$variant,)*
                }
            }

            /// The reference to this type.
            #[must_use]
            pub fn reference(self) -> Self {
                match self {
                    $(Self::$variant | Self::$reference => Self::$reference,)*
                }
            }

            /// True for reference types.
            pub fn is_ref(self) -> bool {
                matches!(self, $(Self::$reference)|*)
            }

            /// Element type of the type's tensors. Quantized types are plain integers. `None` for
            /// references, for the non-numeric types string, resource, and variant, and for the
            /// float8 formats that only other hardware supports.
            pub fn primitive_type(self) -> Option<PrimitiveType> {
                match self {
                    $(Self::$variant => $primitive,)*
                    _ => None,
                }
            }
        }
    };
}

use PrimitiveType as P;

data_types! {
    Float, FloatRef = 1, "float", "DT_FLOAT", Some(P::F32);
    Double, DoubleRef = 2, "double", "DT_DOUBLE", Some(P::F64);
    Int32, Int32Ref = 3, "int32", "DT_INT32", Some(P::S32);
    Uint8, Uint8Ref = 4, "uint8", "DT_UINT8", Some(P::U8);
    Int16, Int16Ref = 5, "int16", "DT_INT16", Some(P::S16);
    Int8, Int8Ref = 6, "int8", "DT_INT8", Some(P::S8);
    String, StringRef = 7, "string", "DT_STRING", None;
    Complex64, Complex64Ref = 8, "complex64", "DT_COMPLEX64", Some(P::C64);
    Int64, Int64Ref = 9, "int64", "DT_INT64", Some(P::S64);
    Bool, BoolRef = 10, "bool", "DT_BOOL", Some(P::Pred);
    Qint8, Qint8Ref = 11, "qint8", "DT_QINT8", Some(P::S8);
    Quint8, Quint8Ref = 12, "quint8", "DT_QUINT8", Some(P::U8);
    Qint32, Qint32Ref = 13, "qint32", "DT_QINT32", Some(P::S32);
    Bfloat16, Bfloat16Ref = 14, "bfloat16", "DT_BFLOAT16", Some(P::Bf16);
    Qint16, Qint16Ref = 15, "qint16", "DT_QINT16", Some(P::S16);
    Quint16, Quint16Ref = 16, "quint16", "DT_QUINT16", Some(P::U16);
    Uint16, Uint16Ref = 17, "uint16", "DT_UINT16", Some(P::U16);
    Complex128, Complex128Ref = 18, "complex128", "DT_COMPLEX128", Some(P::C128);
    Half, HalfRef = 19, "half", "DT_HALF", Some(P::F16);
    Resource, ResourceRef = 20, "resource", "DT_RESOURCE", None;
    Variant, VariantRef = 21, "variant", "DT_VARIANT", None;
    Uint32, Uint32Ref = 22, "uint32", "DT_UINT32", Some(P::U32);
    Uint64, Uint64Ref = 23, "uint64", "DT_UINT64", Some(P::U64);
    Float8e5m2, Float8e5m2Ref = 24, "float8_e5m2", "DT_FLOAT8_E5M2", Some(P::F8e5m2);
    Float8e4m3fn, Float8e4m3fnRef = 25, "float8_e4m3fn", "DT_FLOAT8_E4M3FN", Some(P::F8e4m3fn);
    Float8e4m3fnuz, Float8e4m3fnuzRef = 26, "float8_e4m3fnuz", "DT_FLOAT8_E4M3FNUZ", None;
    Float8e4m3b11fnuz, Float8e4m3b11fnuzRef = 27, "float8_e4m3b11fnuz", "DT_FLOAT8_E4M3B11FNUZ", None;
    Float8e5m2fnuz, Float8e5m2fnuzRef = 28, "float8_e5m2fnuz", "DT_FLOAT8_E5M2FNUZ", None;
    Int4, Int4Ref = 29, "int4", "DT_INT4", Some(P::S4);
    Uint4, Uint4Ref = 30, "uint4", "DT_UINT4", Some(P::U4);
    Int2, Int2Ref = 31, "int2", "DT_INT2", Some(P::S2);
    Uint2, Uint2Ref = 32, "uint2", "DT_UINT2", Some(P::U2);
}

impl DataType {
    /// The type with this short name, which may be a reference type.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.strip_suffix("_ref") {
            Some(base) => Self::ALL.iter().find(|t| t.name() == base).map(|t| t.reference()),
            None => Self::ALL.iter().find(|t| t.name() == name).copied(),
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_read_back() {
        for number in -1..200 {
            let Some(data_type) = DataType::from_number(number) else { continue };
            assert_eq!(data_type.number(), number);
            assert_eq!(DataType::from_name(data_type.name()), Some(data_type));
            assert_eq!(data_type.is_ref(), number > 100);
            assert_eq!(data_type.base().reference(), data_type.reference());
        }
        assert_eq!(DataType::from_number(0), None);
        assert_eq!(DataType::from_number(119), Some(DataType::HalfRef));
    }
}
