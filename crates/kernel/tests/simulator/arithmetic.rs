//! The arithmetic of the loop-nest language on bits.

use nest::{BinaryOp, ConvertOp, Predicate, ScalarType, Type, UnaryOp};

fn bits_of(scalar: ScalarType) -> u32 {
    match scalar {
        ScalarType::Bool => 1,
        other => 8 * other.byte_size() as u32,
    }
}

/// Keeps the bits of a type.
pub fn masked(scalar: ScalarType, value: u64) -> u64 {
    value & (u64::MAX >> (64 - bits_of(scalar)))
}

fn signed(scalar: ScalarType, value: u64) -> i64 {
    let unused = 64 - bits_of(scalar);
    ((value << unused) as i64) >> unused
}

fn float(scalar: ScalarType, bits: u64) -> f64 {
    match scalar {
        ScalarType::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

/// The bits of a number that is rounded once. The result of one operation on `f32` in `f64`,
/// rounded to `f32`, is the correctly rounded one.
fn rounded(scalar: ScalarType, value: f64) -> u64 {
    match scalar {
        ScalarType::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

pub fn unary(op: UnaryOp, scalar: ScalarType, a: u64) -> u64 {
    let sign = 1u64 << (bits_of(scalar) - 1);
    let exact = |f: fn(f64) -> f64| rounded(scalar, f(float(scalar, a)));
    match op {
        UnaryOp::Negate => a ^ sign,
        UnaryOp::Abs => a & !sign,
        UnaryOp::Sqrt => exact(f64::sqrt),
        UnaryOp::Floor => exact(f64::floor),
        UnaryOp::Ceil => exact(f64::ceil),
        UnaryOp::Truncate => exact(f64::trunc),
        UnaryOp::RoundEven => exact(f64::round_ties_even),
        UnaryOp::Not => masked(scalar, !a),
        UnaryOp::CountLeadingZeros => u64::from(a.leading_zeros()) + u64::from(bits_of(scalar)) - 64,
        UnaryOp::PopulationCount => a.count_ones().into(),
        other => panic!("no {other:?} in tests"),
    }
}

pub fn binary(op: BinaryOp, scalar: ScalarType, a: u64, b: u64) -> u64 {
    if scalar.is_float() {
        let (a, b) = (float(scalar, a), float(scalar, b));
        let value = match op {
            BinaryOp::Add => a + b,
            BinaryOp::Subtract => a - b,
            BinaryOp::Multiply => a * b,
            BinaryOp::Divide => a / b,
            other => panic!("no {other:?} in tests"),
        };
        return rounded(scalar, value);
    }
    let (x, y) = (signed(scalar, a), signed(scalar, b));
    masked(
        scalar,
        match op {
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Subtract => a.wrapping_sub(b),
            BinaryOp::Multiply => a.wrapping_mul(b),
            BinaryOp::MultiplyFixed => ((x * y + (1 << 30)) >> 31) as u64,
            BinaryOp::DivideSigned => x.wrapping_div(y) as u64,
            BinaryOp::RemainderSigned => x.wrapping_rem(y) as u64,
            BinaryOp::DivideUnsigned => a / b,
            BinaryOp::RemainderUnsigned => a % b,
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::ShiftLeft => a << b,
            BinaryOp::ShiftRightLogical => a >> b,
            BinaryOp::ShiftRightArithmetic => (x >> b) as u64,
            BinaryOp::Divide | BinaryOp::Scale => panic!("{op:?} of integers"),
        },
    )
}

pub fn multiply_add(scalar: ScalarType, a: u64, b: u64, c: u64) -> u64 {
    match scalar {
        ScalarType::F32 => {
            let [a, b, c] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
            a.mul_add(b, c).to_bits().into()
        }
        _ => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits(),
    }
}

pub fn compare(predicate: Predicate, scalar: ScalarType, a: u64, b: u64) -> u64 {
    if scalar.is_float() {
        let (a, b) = (float(scalar, a), float(scalar, b));
        return u64::from(match predicate {
            Predicate::Equal => a == b,
            Predicate::NotEqual => a != b,
            Predicate::Less => a < b,
            Predicate::LessEqual => a <= b,
            Predicate::Greater => a > b,
            Predicate::GreaterEqual => a >= b,
            other => panic!("{other:?} of floats"),
        });
    }
    let (x, y) = (signed(scalar, a), signed(scalar, b));
    u64::from(match predicate {
        Predicate::Equal => a == b,
        Predicate::NotEqual => a != b,
        Predicate::Less => x < y,
        Predicate::LessEqual => x <= y,
        Predicate::Greater => x > y,
        Predicate::GreaterEqual => x >= y,
        Predicate::Below => a < b,
        Predicate::BelowEqual => a <= b,
        Predicate::Above => a > b,
        Predicate::AboveEqual => a >= b,
    })
}

pub fn convert(op: ConvertOp, from: Type, to: Type, lanes: &[u64]) -> Vec<u64> {
    if op == ConvertOp::Bitcast {
        let bytes: Vec<u8> =
            lanes.iter().flat_map(|lane| lane.to_le_bytes()[..from.scalar.byte_size()].to_vec()).collect();
        let lane = |chunk: &[u8]| {
            let mut bits = [0; 8];
            bits[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(bits)
        };
        return bytes.chunks(to.scalar.byte_size()).map(lane).collect();
    }
    let one = |&a: &u64| match op {
        ConvertOp::SignExtend => masked(to.scalar, signed(from.scalar, a) as u64),
        ConvertOp::ZeroExtend => a,
        ConvertOp::Truncate => masked(to.scalar, a),
        ConvertOp::SignedToFloat => match to.scalar {
            ScalarType::F32 => (signed(from.scalar, a) as f32).to_bits().into(),
            _ => (signed(from.scalar, a) as f64).to_bits(),
        },
        ConvertOp::UnsignedToFloat => match to.scalar {
            ScalarType::F32 => (a as f32).to_bits().into(),
            _ => (a as f64).to_bits(),
        },
        ConvertOp::FloatExtend | ConvertOp::FloatTruncate => rounded(to.scalar, float(from.scalar, a)),
        other => panic!("no {other:?} in tests"),
    };
    lanes.iter().map(one).collect()
}
