//! The numbers of VHLO's attributes and types, from StableHLO's `VhloBytecode.cpp`.

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($variant = $number,)*
        }

        impl $name {
            /// Returns the code for a number; `None` if no supported StableHLO version defines it.
            pub(super) fn from_number(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Attributes.
    AttributeCode {
        Array = 1,
        Boolean = 2,
        ComparisonDirection = 3,
        ComparisonType = 4,
        CustomCallApiVersion = 5,
        Dictionary = 6,
        FftType = 7,
        Float = 8,
        Integer = 9,
        OutputOperandAlias = 10,
        Precision = 11,
        RngAlgorithm = 12,
        RngDistribution = 13,
        String = 14,
        Tensor = 15,
        Transpose = 16,
        Type = 17,
        TypeExtensions = 18,
        ResultAccuracyMode = 19,
        ResultAccuracy = 20,
        SubAxisInfo = 21,
        AxisRef = 22,
        ReplicaGroupMeshAxes = 23,
        MeshAxis = 24,
        Mesh = 25,
    }
}

codes! {
    /// Types.
    TypeCode {
        Boolean = 0,
        Complex = 1,
        Bf16 = 2,
        F16 = 3,
        F32 = 4,
        F64 = 5,
        F8E4M3Fn = 6,
        F8E5M2 = 7,
        Function = 8,
        Index = 9,
        S4 = 10,
        S8 = 11,
        S16 = 12,
        S32 = 13,
        S64 = 14,
        U4 = 15,
        U8 = 16,
        U16 = 17,
        U32 = 18,
        U64 = 19,
        RankedTensor = 20,
        RankedTensorWithEncoding = 21,
        Token = 22,
        Tuple = 23,
        UniformQuantized = 24,
        UnrankedTensor = 25,
        Witness = 26,
        F8E4M3Fnuz = 27,
        F8E5M2Fnuz = 28,
        F8E4M3B11Fnuz = 29,
        UniformQuantizedPerAxis = 30,
        S2 = 31,
        U2 = 32,
        None = 33,
        Tf32 = 34,
        F8E4M3 = 35,
        F8E3M4 = 36,
        F4E2M1Fn = 37,
        F6E2M3Fn = 38,
        F6E3M2Fn = 39,
        F8E8M0Fnu = 40,
        Buffer = 41,
        Future = 42,
    }
}
