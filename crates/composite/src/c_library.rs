//! Logarithm, sine and cosine of `f32`, bit for bit as glibc has computed them since 2.28.
//! TensorFlow's kernels call these functions.
//!
//! Everything is computed in `f64` and rounded once. The result is nearly always, but not always,
//! the nearest `f32`. The constants are those of Arm's Optimized Routines, glibc's source for them.

use crate::expression::Expression;
use hlo::Op;
use shape::PrimitiveType;

/// The bits of `1/c` and `log c`, with `c` near the middle of each sixteenth of the mantissa range.
const LOGARITHMS: [[u64; 2]; 16] = [
    [0x3ff6_61ec_79f8_f3be, 0xbfd5_7bf7_808c_aade],
    [0x3ff5_71ed_4aaf_883d, 0xbfd2_bef0_a7c0_6ddb],
    [0x3ff4_9539_f0f0_10b0, 0xbfd0_1eae_7f51_3a67],
    [0x3ff3_c995_b0b8_0385, 0xbfcb_31d8_a682_24e9],
    [0x3ff3_0d19_0c88_64a5, 0xbfc6_574f_0ac0_7758],
    [0x3ff2_5e22_7b0b_8ea0, 0xbfc1_aa2b_c79c_8100],
    [0x3ff1_bb4a_4a1a_343f, 0xbfba_4e76_ce8c_0e5e],
    [0x3ff1_2358_f08a_e5ba, 0xbfb1_973c_5a61_1ccc],
    [0x3ff0_953f_4199_00a7, 0xbfa2_52f4_38e1_0c1e],
    [0x3ff0_0000_0000_0000, 0x0000_0000_0000_0000],
    [0x3fee_608c_fd9a_47ac, 0x3faa_a5aa_5df2_5984],
    [0x3fec_a4b3_1f02_6aa0, 0x3fbc_5e53_aa36_2eb4],
    [0x3feb_2036_576a_fce6, 0x3fc5_26e5_7720_db08],
    [0x3fe9_c2d1_63a1_aa2d, 0x3fcb_c286_0d22_4770],
    [0x3fe8_86e6_0378_41ed, 0x3fd1_058b_c8a0_7ee1],
    [0x3fe7_67dc_f553_4862, 0x3fd4_0430_57b6_ee09],
];

const LOG_2: u64 = 0x3fe6_2e42_fefa_39ef;

/// Coefficients of the polynomial for `log(1 + r)`, highest power first, without the linear term.
const LOG_POLYNOMIAL: [u64; 3] = [0xbfd0_0ea3_48b8_8334, 0x3fd5_575b_0be0_0b6a, 0xbfdf_fffe_f20a_4123];

/// `2^24 * 2 / pi`, and `pi / 2`.
const TURNS: u64 = 0x4164_5f30_6dc9_c883;
const QUARTER: u64 = 0x3ff9_21fb_5444_2d18;

/// Coefficients of the polynomials for sine and cosine near 0, lowest power first, without the
/// leading terms.
const SINE: [u64; 3] = [0xbfc5_5554_5995_a603, 0x3f81_1076_0523_0bc4, 0xbf29_94eb_3774_cf24];
const COSINE: [u64; 4] =
    [0xbfdf_ffff_fd0c_621c, 0x3fa5_5553_e106_8f19, 0xbf56_c087_e89a_359d, 0x3ef9_9343_027b_f8c3];

fn number(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// Selects `LOGARITHMS[i][column]` for each index `i` in `0..16`.
fn entry<'f>(index: Expression<'f>, like: Expression<'f>, column: usize) -> Expression<'f> {
    let mut level: Vec<Expression<'f>> =
        LOGARITHMS.iter().map(|entry| like.splat(number(entry[column]))).collect();
    for bit in 0..4 {
        let is_set = (index & f64::from(1 << bit)).not_equal(0.0);
        level = level.chunks(2).map(|pair| is_set.select(pair[1], pair[0])).collect();
    }
    level[0]
}

/// Natural logarithm of positive normal `f32`s.
pub(crate) fn logf(x: Expression<'_>) -> Expression<'_> {
    // Low end of the mantissa range, chosen such that 1 has a table entry of its own.
    const LOW: f64 = 0x3f33_0000 as f64;
    let bits = x.bitcast_convert(PrimitiveType::U32);
    let above = bits - LOW;
    let index = (above >> 19.0) & 15.0;
    let shift = above.splat(23.0).bitcast_convert(PrimitiveType::S32);
    let signed = above.bitcast_convert(PrimitiveType::S32);
    let exponent = x.function().op(Op::ShiftRightArithmetic {}, &[signed, shift], None);
    let mantissa = (bits - (above & f64::from(0xff80_0000u32))).bitcast_convert(PrimitiveType::F32);
    let z = mantissa.convert(PrimitiveType::F64);
    let r = z * entry(index, z, 0) - 1.0;
    let whole = entry(index, z, 1) + exponent.convert(PrimitiveType::F64) * number(LOG_2);
    let square = r * r;
    let [a, b, c] = LOG_POLYNOMIAL.map(number);
    let tail = square * a + (r * b + c);
    (tail * square + (whole + r)).convert(PrimitiveType::F32)
}

/// Sine and cosine of `f32`s within a few turns.
pub(crate) fn sincosf(x: Expression<'_>) -> [Expression<'_>; 2] {
    let x = x.convert(PrimitiveType::F64);
    let turned = (x * number(TURNS)).convert(PrimitiveType::S32) + f64::from(0x80_0000);
    let shift = turned.splat(24.0);
    let quarter = x.function().op(Op::ShiftRightArithmetic {}, &[turned, shift], None);
    let x = x - quarter.convert(PrimitiveType::F64) * number(QUARTER);
    let (square, [s1, s2, s3]) = (x * x, SINE.map(number));
    let cube = x * square;
    let sine = (x + cube * s1) + (cube * square) * (square * s3 + s2);
    let [c1, c2, c3, c4] = COSINE.map(number);
    let fourth = square * square;
    let cosine = ((square * c1 + 1.0) + fourth * c2) + (fourth * square) * (square * c4 + c3);
    let is_odd = (quarter & 1.0).not_equal(0.0);
    let is_far = (quarter & 2.0).not_equal(0.0);
    [is_odd.select(cosine, sine), is_odd.select(-sine, cosine)]
        .map(|value| is_far.select(-value, value).convert(PrimitiveType::F32))
}
