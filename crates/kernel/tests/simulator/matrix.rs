//! Products of matrices of a warp, from the tables of the PTX ISA ("Matrix fragments for
//! mma.m16n8k16 with floating point type" and "for mma.m16n8k32"), element by element.

use nest::MatrixKind;

/// A warp's threads.
const WARP: usize = 32;

/// Row and column of element `i` of a thread's part of `A`.
fn place_of_a(kind: MatrixKind, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    match kind {
        MatrixKind::F16 | MatrixKind::Bf16 => {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            let column = if i < 4 { thread * 2 + (i & 1) } else { thread * 2 + (i & 1) + 8 };
            (row, column)
        }
        MatrixKind::S8 => {
            let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
            let column = if i < 8 { thread * 4 + (i & 3) } else { thread * 4 + (i & 3) + 16 };
            (row, column)
        }
    }
}

/// Row and column of element `i` of a thread's part of `B`.
fn place_of_b(kind: MatrixKind, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    let row = match kind {
        MatrixKind::F16 | MatrixKind::Bf16 => thread * 2 + (i & 1) + if i < 2 { 0 } else { 8 },
        MatrixKind::S8 => thread * 4 + (i & 3) + if i < 4 { 0 } else { 16 },
    };
    (row, group)
}

/// Row and column of element `i` of a thread's part of `C`.
fn place_of_c(lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1))
}

fn number(kind: MatrixKind, word: u64, i: usize) -> f64 {
    match kind {
        MatrixKind::F16 => half((word >> (16 * i)) as u16),
        MatrixKind::Bf16 => f32::from_bits(((word >> (16 * i)) as u32 & 0xFFFF) << 16).into(),
        MatrixKind::S8 => f64::from((word >> (8 * i)) as i8),
    }
}

fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        31 => sign * if fraction == 0.0 { f64::INFINITY } else { f64::NAN },
        _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// Computes the sums of a warp. `a`, `b`, and `c` are the words of its threads.
pub fn multiply_add(kind: MatrixKind, a: &[Vec<u64>], b: &[Vec<u64>], c: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let per_word = 4 / kind.element_bytes() as usize;
    let summands = 8 * per_word;
    let mut left = vec![vec![f64::NAN; summands]; 16];
    let mut right = vec![vec![f64::NAN; 8]; summands];
    for lane in 0..WARP {
        for i in 0..4 * per_word {
            let (row, column) = place_of_a(kind, lane, i);
            left[row][column] = number(kind, a[lane][i / per_word], i % per_word);
        }
        for i in 0..2 * per_word {
            let (row, column) = place_of_b(kind, lane, i);
            right[row][column] = number(kind, b[lane][i / per_word], i % per_word);
        }
    }
    let sum = |lane: usize, i: usize| {
        let (row, column) = place_of_c(lane, i);
        let products: f64 = (0..summands).map(|k| left[row][k] * right[k][column]).sum();
        match kind {
            MatrixKind::S8 => (c[lane][i] as u32).wrapping_add(products as i64 as u32).into(),
            _ => ((f64::from(f32::from_bits(c[lane][i] as u32)) + products) as f32).to_bits().into(),
        }
    };
    (0..WARP).map(|lane| (0..4).map(|i| sum(lane, i)).collect()).collect()
}
