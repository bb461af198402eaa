//! Compiles and runs every arithmetic operation of the loop-nest language and compares it with
//! Rust's own arithmetic.

mod harness;

use harness::{binary, unary};
use nest::{BinaryOp, ConvertOp, Expression, Predicate, ScalarType, UnaryOp};

const F32: [f32; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    3.5,
    -2.5,
    0.49999997,
    8388609.0,
    -1e20,
    3e9,
    2147483648.0,
    2147483500.0,
    -2147483648.0,
    127.6,
    f32::MIN_POSITIVE,
    1e-40,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];
const F64: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    -3.5,
    1e300,
    2147483647.5,
    2147483648.0,
    -2147483649.0,
    -128.9,
    5e-324,
    4503599627370497.5,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

macro_rules! integer_tests {
    ($module:ident, $signed:ty, $unsigned:ty) => {
        mod $module {
            use super::*;

            const S: [$signed; 9] =
                [0, 1, -1, 2, 7, -100, <$signed>::MAX, <$signed>::MIN, <$signed>::MAX / 3];
            const U: [$unsigned; 7] =
                [0, 1, 3, 100, <$unsigned>::MAX, <$unsigned>::MAX / 2 + 1, <$unsigned>::MAX / 5];
            const BITS: u32 = <$signed>::BITS;

            fn always<T>(_: T, _: T) -> bool {
                true
            }

            #[test]
            fn wrapping_arithmetic() {
                use BinaryOp::*;
                binary("add", &S, always, |b, x, y| b.binary(Add, x, y), |x, y| x.wrapping_add(y));
                binary("subtract", &S, always, |b, x, y| b.binary(Subtract, x, y), |x, y| x.wrapping_sub(y));
                binary("multiply", &S, always, |b, x, y| b.binary(Multiply, x, y), |x, y| x.wrapping_mul(y));
            }

            #[test]
            fn division() {
                use BinaryOp::*;
                let is_defined = |x: $signed, y: $signed| y != 0 && !(x == <$signed>::MIN && y == -1);
                let nonzero = |_: $unsigned, y: $unsigned| y != 0;
                binary("divide_signed", &S, is_defined, |b, x, y| b.binary(DivideSigned, x, y), |x, y| x / y);
                binary(
                    "remainder_signed",
                    &S,
                    is_defined,
                    |b, x, y| b.binary(RemainderSigned, x, y),
                    |x, y| x % y,
                );
                binary(
                    "divide_unsigned",
                    &U,
                    nonzero,
                    |b, x, y| b.binary(DivideUnsigned, x, y),
                    |x, y| x / y,
                );
                binary(
                    "remainder_unsigned",
                    &U,
                    nonzero,
                    |b, x, y| b.binary(RemainderUnsigned, x, y),
                    |x, y| x % y,
                );
            }

            #[test]
            fn bits() {
                use BinaryOp::*;
                binary("and", &S, always, |b, x, y| b.binary(And, x, y), |x, y| x & y);
                binary("or", &S, always, |b, x, y| b.binary(Or, x, y), |x, y| x | y);
                binary("xor", &S, always, |b, x, y| b.binary(Xor, x, y), |x, y| x ^ y);
                unary("not", &S, |b, x| b.unary(UnaryOp::Not, x), |x| !x);
                unary(
                    "count_leading_zeros",
                    &U,
                    |b, x| b.unary(UnaryOp::CountLeadingZeros, x),
                    |x| x.leading_zeros() as $unsigned,
                );
                unary(
                    "population_count",
                    &U,
                    |b, x| b.unary(UnaryOp::PopulationCount, x),
                    |x| x.count_ones() as $unsigned,
                );
            }

            #[test]
            fn shifts() {
                use BinaryOp::*;
                let mut values = S.to_vec();
                values.extend([3, BITS as $signed - 1]);
                let is_defined = |_: $signed, y: $signed| (0..BITS as i64).contains(&(y as i64));
                binary("shift_left", &values, is_defined, |b, x, y| b.binary(ShiftLeft, x, y), |x, y| x << y);
                binary(
                    "shift_right_logical",
                    &values,
                    is_defined,
                    |b, x, y| b.binary(ShiftRightLogical, x, y),
                    |x, y| ((x as $unsigned) >> y) as $signed,
                );
                binary(
                    "shift_right_arithmetic",
                    &values,
                    is_defined,
                    |b, x, y| b.binary(ShiftRightArithmetic, x, y),
                    |x, y| x >> y,
                );
            }

            #[test]
            fn comparisons() {
                let signed: [(Predicate, fn($signed, $signed) -> bool); 6] = [
                    (Predicate::Equal, |x, y| x == y),
                    (Predicate::NotEqual, |x, y| x != y),
                    (Predicate::Less, |x, y| x < y),
                    (Predicate::LessEqual, |x, y| x <= y),
                    (Predicate::Greater, |x, y| x > y),
                    (Predicate::GreaterEqual, |x, y| x >= y),
                ];
                for (predicate, expected) in signed {
                    binary(
                        &format!("{predicate:?}"),
                        &S,
                        always,
                        |b, x, y| {
                            let truth = b.compare(predicate, x, y);
                            b.convert(ConvertOp::ZeroExtend, truth, ScalarType::I8)
                        },
                        |x, y| u8::from(expected(x, y)),
                    );
                }
                let unsigned: [(Predicate, fn($unsigned, $unsigned) -> bool); 4] = [
                    (Predicate::Below, |x, y| x < y),
                    (Predicate::BelowEqual, |x, y| x <= y),
                    (Predicate::Above, |x, y| x > y),
                    (Predicate::AboveEqual, |x, y| x >= y),
                ];
                for (predicate, expected) in unsigned {
                    binary(
                        &format!("{predicate:?}"),
                        &U,
                        always,
                        |b, x, y| {
                            let truth = b.compare(predicate, x, y);
                            b.convert(ConvertOp::ZeroExtend, truth, ScalarType::I8)
                        },
                        |x, y| u8::from(expected(x, y)),
                    );
                }
            }

            #[test]
            fn to_and_from_floats() {
                use ConvertOp::*;
                let (s, u) = (<$signed as harness::Element>::SCALAR, <$unsigned as harness::Element>::SCALAR);
                unary("signed_to_f32", &S, |b, x| b.convert(SignedToFloat, x, ScalarType::F32), |x| x as f32);
                unary(
                    "unsigned_to_f32",
                    &U,
                    |b, x| b.convert(UnsignedToFloat, x, ScalarType::F32),
                    |x| x as f32,
                );
                unary("signed_to_f64", &S, |b, x| b.convert(SignedToFloat, x, ScalarType::F64), |x| x as f64);
                unary(
                    "unsigned_to_f64",
                    &U,
                    |b, x| b.convert(UnsignedToFloat, x, ScalarType::F64),
                    |x| x as f64,
                );
                unary("f32_to_signed", &F32, |b, x| b.convert(FloatToSigned, x, s), |x| x as $signed);
                unary("f32_to_unsigned", &F32, |b, x| b.convert(FloatToUnsigned, x, u), |x| x as $unsigned);
                unary("f64_to_signed", &F64, |b, x| b.convert(FloatToSigned, x, s), |x| x as $signed);
                unary("f64_to_unsigned", &F64, |b, x| b.convert(FloatToUnsigned, x, u), |x| x as $unsigned);
            }
        }
    };
}
integer_tests!(int8, i8, u8);
integer_tests!(int16, i16, u16);
integer_tests!(int32, i32, u32);
integer_tests!(int64, i64, u64);

macro_rules! float_tests {
    ($module:ident, $float:ty, $bits:ty, $values:expr) => {
        mod $module {
            use super::*;

            fn always<T>(_: T, _: T) -> bool {
                true
            }

            #[test]
            fn arithmetic() {
                use BinaryOp::*;
                binary("add", &$values, always, |b, x, y| b.binary(Add, x, y), |x, y| x + y);
                binary("subtract", &$values, always, |b, x, y| b.binary(Subtract, x, y), |x, y| x - y);
                binary("multiply", &$values, always, |b, x, y| b.binary(Multiply, x, y), |x, y| x * y);
                binary("divide", &$values, always, |b, x, y| b.binary(Divide, x, y), |x, y| x / y);
                unary("sqrt", &$values, |b, x| b.unary(UnaryOp::Sqrt, x), <$float>::sqrt);
            }

            /// Checks the sign bit, including that of NaN.
            #[test]
            fn signs() {
                let mut values = $values.to_vec();
                values.push(-<$float>::NAN);
                let sign: $bits = (-0.0 as $float).to_bits();
                let as_bits = |b: &mut nest::FunctionBuilder, v| {
                    let ty = b.ty(v).with_scalar(<$bits as harness::Element>::SCALAR);
                    b.bitcast(v, ty)
                };
                unary(
                    "negate",
                    &values,
                    |b, x| {
                        let v = b.unary(UnaryOp::Negate, x);
                        as_bits(b, v)
                    },
                    |x: $float| x.to_bits() ^ sign,
                );
                unary(
                    "abs",
                    &values,
                    |b, x| {
                        let v = b.unary(UnaryOp::Abs, x);
                        as_bits(b, v)
                    },
                    |x: $float| x.to_bits() & !sign,
                );
            }

            #[test]
            fn comparisons() {
                let all: [(Predicate, fn($float, $float) -> bool); 6] = [
                    (Predicate::Equal, |x, y| x == y),
                    (Predicate::NotEqual, |x, y| x != y),
                    (Predicate::Less, |x, y| x < y),
                    (Predicate::LessEqual, |x, y| x <= y),
                    (Predicate::Greater, |x, y| x > y),
                    (Predicate::GreaterEqual, |x, y| x >= y),
                ];
                for (predicate, expected) in all {
                    binary(
                        &format!("{predicate:?}"),
                        &$values,
                        always,
                        |b, x, y| {
                            let truth = b.compare(predicate, x, y);
                            b.convert(ConvertOp::ZeroExtend, truth, ScalarType::I8)
                        },
                        |x, y| u8::from(expected(x, y)),
                    );
                }
            }

            /// A separate product and sum are never contracted. A multiply-add may be rounded once
            /// or twice.
            #[test]
            fn only_explicit_multiply_adds_are_contracted() {
                let values = [0.1 as $float, 1.0 / 3.0, -7.7, 1e-3, 1.0 + <$float>::EPSILON];
                binary(
                    "multiply, add",
                    &values,
                    always,
                    |b, x, y| {
                        let product = b.mul(x, y);
                        b.add(product, x)
                    },
                    |x, y| x * y + x,
                );
                for value in values {
                    let fused = value.mul_add(value, -value * value);
                    binary(
                        "multiply_add",
                        &[value],
                        always,
                        |b, x, y| {
                            let product = b.mul(x, y);
                            let negative = b.unary(UnaryOp::Negate, product);
                            let sum = b.multiply_add(x, y, negative);
                            // The sum must be one of the two permitted values.
                            let ty = b.ty(sum);
                            let (zero, exact) = (b.float(ty, 0.0), b.float(ty, f64::from(fused)));
                            let rounded_twice = b.compare(Predicate::Equal, sum, zero);
                            let rounded_once = b.compare(Predicate::Equal, sum, exact);
                            let either = b.or(rounded_twice, rounded_once);
                            b.convert(ConvertOp::ZeroExtend, either, ScalarType::I8)
                        },
                        |_, _| 1u8,
                    );
                }
            }

            #[test]
            fn rounding_on_targets_that_support_it() {
                let ops: [(UnaryOp, fn($float) -> $float); 4] = [
                    (UnaryOp::Floor, <$float>::floor),
                    (UnaryOp::Ceil, <$float>::ceil),
                    (UnaryOp::Truncate, <$float>::trunc),
                    (UnaryOp::RoundEven, <$float>::round_ties_even),
                ];
                for (op, expected) in ops {
                    harness::unary_where(
                        |target| target.has_rounding,
                        &format!("{op:?}"),
                        &$values,
                        |b, x| b.unary(op, x),
                        expected,
                    );
                }
            }
        }
    };
}
float_tests!(float32, f32, u32, F32);
float_tests!(float64, f64, u64, F64);

#[test]
fn products_of_fixed_point_numbers() {
    let values = [0, 1, -1, 2, 3, -3, 1 << 30, -(1 << 30), 1_431_655_766, i32::MAX, i32::MIN + 1, i32::MIN];
    let product = |x: i32, y: i32| ((i64::from(x) * i64::from(y) + (1 << 30)) >> 31) as i32;
    let always = |_, _| true;
    binary("direct", &values, always, |b, x, y| b.binary(BinaryOp::MultiplyFixed, x, y), product);
    let wide = |b: &mut nest::FunctionBuilder, x, y| {
        let [x, y] = [x, y].map(|value| b.convert(ConvertOp::SignExtend, value, ScalarType::I64));
        let product = b.mul(x, y);
        let sum = b.add_constant(product, 1 << 30);
        let bits = b.integer(b.ty(sum), 31);
        let quotient = b.binary(BinaryOp::ShiftRightArithmetic, sum, bits);
        b.convert(ConvertOp::Truncate, quotient, ScalarType::I32)
    };
    binary("in 64 bits", &values, always, wide, product);
    // Another distance or half is no such product.
    let other = |half: i64, distance: i64| {
        move |b: &mut nest::FunctionBuilder, x, y| {
            let [x, y] = [x, y].map(|value| b.convert(ConvertOp::SignExtend, value, ScalarType::I64));
            let product = b.mul(x, y);
            let sum = b.add_constant(product, half);
            let bits = b.integer(b.ty(sum), distance);
            let quotient = b.binary(BinaryOp::ShiftRightArithmetic, sum, bits);
            b.convert(ConvertOp::Truncate, quotient, ScalarType::I32)
        }
    };
    for (half, distance) in [(1 << 29, 31), (1 << 30, 30), (1 << 30, 33)] {
        let expected = move |x: i32, y: i32| ((i64::from(x) * i64::from(y) + half) >> distance) as i32;
        binary("others", &values, always, other(half, distance), expected);
    }
}

#[test]
fn integer_conversions() {
    use ConvertOp::*;
    let bytes = [0i8, 1, -1, 127, -128];
    let words = [0i64, 1, -1, 0x1_8000_0080, i64::MIN, i64::MAX];
    unary("i8 to i64", &bytes, |b, x| b.convert(SignExtend, x, ScalarType::I64), i64::from);
    unary("i8 to i16", &bytes, |b, x| b.convert(SignExtend, x, ScalarType::I16), i16::from);
    unary("u8 to u32", &[0u8, 1, 128, 255], |b, x| b.convert(ZeroExtend, x, ScalarType::I32), u32::from);
    unary("i64 to i8", &words, |b, x| b.convert(Truncate, x, ScalarType::I8), |x| x as i8);
    unary("i64 to i32", &words, |b, x| b.convert(Truncate, x, ScalarType::I32), |x| x as i32);
    let lowest = |b: &mut nest::FunctionBuilder, x| {
        let bit = b.convert(Truncate, x, ScalarType::Bool);
        b.convert(ZeroExtend, bit, ScalarType::I8)
    };
    unary("i64 to bool", &words, lowest, |x| (x & 1) as u8);
}

#[test]
fn float_conversions() {
    use ConvertOp::*;
    unary("f32 to f64", &F32, |b, x| b.convert(FloatExtend, x, ScalarType::F64), f64::from);
    let values = [0.0f64, -0.0, 1.0, 1.0 + 2f64.powi(-25), 1e300, -1e-300, 1e-40, f64::NAN];
    unary("f64 to f32", &values, |b, x| b.convert(FloatTruncate, x, ScalarType::F32), |x| x as f32);
}

#[test]
fn selection() {
    let smaller = |b: &mut nest::FunctionBuilder, x, y| {
        let less = b.compare(Predicate::Less, x, y);
        b.select(less, x, y)
    };
    binary("select f32", &F32, |_, _| true, smaller, |x, y| if x < y { x } else { y });
    binary("select i8", &[1i8, -1, 5, i8::MIN], |_, _| true, smaller, |x, y| if x < y { x } else { y });
    // A scalar condition applies to whole vectors.
    for truth in [0, 1] {
        binary(
            "select by scalar",
            &[1.0f64, 2.0],
            |_, _| true,
            |b, x, y| {
                let condition = b.integer(nest::Type::BOOL, truth);
                b.select(condition, x, y)
            },
            |x, y| if truth == 1 { x } else { y },
        );
    }
}

#[test]
fn logic_on_conditions() {
    type Logic = fn(bool, bool) -> bool;
    let ops: [(BinaryOp, Logic); 3] =
        [(BinaryOp::And, |x, y| x & y), (BinaryOp::Or, |x, y| x | y), (BinaryOp::Xor, |x, y| x ^ y)];
    for (op, expected) in ops {
        binary(
            &format!("{op:?} of conditions"),
            &[-1i32, 0, 3],
            |_, _| true,
            |b, x, y| {
                let ty = b.ty(x);
                let zero = b.integer(ty, 0);
                let x = b.compare(Predicate::Greater, x, zero);
                let y = b.compare(Predicate::Greater, y, zero);
                let both = b.binary(op, x, y);
                let not = b.unary(UnaryOp::Not, both);
                b.convert(ConvertOp::ZeroExtend, not, ScalarType::I8)
            },
            |x, y| u8::from(!expected(x > 0, y > 0)),
        );
    }
}

#[test]
fn constants_in_every_lane() {
    let pattern = f32::from_bits(0x7fc0_1234);
    unary(
        "NaN constant",
        &[0u32; 4],
        |b, x| {
            let ty = b.ty(x);
            let bits = Expression::Constant(nest::Constant::FloatBits(u64::from(pattern.to_bits())));
            let float = b.value(ty.with_scalar(ScalarType::F32), bits);
            b.bitcast(float, ty)
        },
        |_| pattern.to_bits(),
    );
    unary(
        "integer constant",
        &[5i16, -5],
        |b, x| {
            let ty = b.ty(x);
            let constant = b.integer(ty, -300);
            b.add(x, constant)
        },
        |x| x - 300,
    );
}
