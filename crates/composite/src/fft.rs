//! Discrete Fourier transforms of lengths without a kernel, namely those with a large prime factor.
//!
//! A short transform is a product with a constant matrix. A longer one is a convolution of
//! power-of-two length (Bluestein), computed by transforms that remain instructions. A real signal
//! of even length is treated as a complex one of half the length. Errors grow with the logarithm of
//! the length. Complex numbers are kept as two real arrays, so that products are dots.

use crate::expression::Expression;
use crate::function::Function;
use hlo::{FftType, Op};
use shape::{ArrayShape, Literal, PrimitiveType};
use std::f64::consts::PI;

/// Longest transform computed as a product with a matrix.
const DIRECT: i64 = 32;

/// Largest table of roots of unity stored as a constant. Larger tables are computed.
const MAX_TABLE: i64 = 1 << 14;

/// Longest transform supported. Beyond it, the product of position and frequency overflows.
pub const MAX_LENGTH: i64 = 1 << 24;

/// Returns true if a transform of these lengths remains an instruction. Power-of-two lengths always
/// may.
pub type HasKernel = fn(FftType, &[i64]) -> bool;

/// Real and imaginary parts, of shape `[rows, length]`.
#[derive(Clone, Copy)]
struct Signal<'f> {
    real: Expression<'f>,
    /// `None` if all zero.
    imag: Option<Expression<'f>>,
}

impl<'f> Signal<'f> {
    fn map(self, body: impl Fn(Expression<'f>) -> Expression<'f>) -> Self {
        Self { real: body(self.real), imag: self.imag.map(body) }
    }

    fn imaginary(self) -> Expression<'f> {
        self.imag.unwrap_or_else(|| self.real.splat(0.0))
    }

    /// Multiplies by an array of the same shape.
    fn times(self, other: Self) -> Self {
        let (re, im) = (other.real, other.imaginary());
        let Some(imag) = self.imag else {
            return Self { real: self.real * re, imag: Some(self.real * im) };
        };
        Self { real: self.real * re - imag * im, imag: Some(self.real * im + imag * re) }
    }
}

/// Transforms the last `lengths.len()` dimensions with the semantics of HLO's `fft`. Lengths are at
/// most [`MAX_LENGTH`].
pub fn fft<'f>(
    x: Expression<'f>,
    fft_type: FftType,
    lengths: &[i64],
    has_kernel: HasKernel,
) -> Expression<'f> {
    let rank = x.rank();
    let first = rank.saturating_sub(lengths.len());
    let last = rank.saturating_sub(1);
    let is_inverse = matches!(fft_type, FftType::Ifft | FftType::Irfft);
    let length = |d: usize| lengths.get(d - first).copied().unwrap_or(1);
    let mut signal = match fft_type {
        FftType::Rfft => spectrum_of_real(x, length(last), has_kernel),
        _ => Signal { real: x.real(), imag: Some(x.imag()) },
    };
    match fft_type {
        FftType::Fft | FftType::Ifft => {
            for d in (first..rank).rev() {
                signal = along(signal, d, length(d), is_inverse, has_kernel);
            }
        }
        FftType::Rfft => {
            for d in (first..last).rev() {
                signal = along(signal, d, length(d), false, has_kernel);
            }
        }
        FftType::Irfft => {
            for d in first..last {
                signal = along(signal, d, length(d), true, has_kernel);
            }
            let real = real_of_spectrum(signal, length(last), has_kernel);
            signal = Signal { real, imag: None };
        }
    }
    if is_inverse {
        let count: f64 = lengths.iter().map(|&n| n.max(1) as f64).product();
        signal = signal.map(|part| part * (1.0 / count));
    }
    if fft_type == FftType::Irfft {
        return signal.real;
    }
    signal.real.complex(signal.imaginary())
}

/// Returns the first `n / 2 + 1` frequencies of real signals of length `n` in the last dimension.
fn spectrum_of_real(x: Expression<'_>, n: i64, has_kernel: HasKernel) -> Signal<'_> {
    let (mut sizes, last) = (x.sizes(), x.rank().saturating_sub(1));
    let half = if n == 0 { 0 } else { n / 2 + 1 };
    if n <= 1 || sizes.contains(&0) {
        return Signal { real: x.slice_in(last, 0, half), imag: None };
    }
    let rows: i64 = sizes[..last].iter().product();
    let flat = x.reshape(&[rows, n]);
    let spectrum = if n <= DIRECT {
        direct(Signal { real: flat, imag: None }, n, half, -1.0)
    } else if n % 2 == 0 {
        spectrum_of_pairs(flat, rows, n, has_kernel)
    } else {
        let whole = transform(Signal { real: flat, imag: None }, rows, n, -1.0, has_kernel);
        whole.map(|part| part.slice_in(1, 0, half))
    };
    sizes[last] = half;
    spectrum.map(|part| part.reshape(&sizes))
}

/// [`spectrum_of_real`] for rows of even length, treating pairs of elements as complex numbers. The
/// spectrum of the even elements is the symmetric part of the pairs' spectrum, that of the odd
/// elements the antisymmetric part.
fn spectrum_of_pairs(x: Expression<'_>, rows: i64, n: i64, has_kernel: HasKernel) -> Signal<'_> {
    let m = n / 2;
    let pairs = Signal { real: x.slice_strided(1, 0, n, 2), imag: Some(x.slice_strided(1, 1, n, 2)) };
    // Frequency m equals frequency 0.
    let function = x.function();
    let here = transform(pairs, rows, m, -1.0, has_kernel)
        .map(|part| function.concatenate(&[part, part.slice_in(1, 0, 1)], 1));
    let there = here.map(|part| part.reverse(1));
    let (re, im) = (here.real, here.imaginary());
    let (other_re, other_im) = (there.real, there.imaginary());
    let odd = Signal { real: im + other_im, imag: Some(other_re - re) };
    let turned = odd.times(line_of_roots(x, rows, m + 1, n, -1.0));
    let spectrum =
        Signal { real: re + other_re + turned.real, imag: Some(im - other_im + turned.imaginary()) };
    spectrum.map(|part| part * 0.5)
}

/// Returns the unscaled real signals of length `n` whose first `n / 2 + 1` frequencies are in the
/// last dimension. Ignores the imaginary part of frequency 0 and, if `n` is even, of the last
/// frequency.
fn real_of_spectrum(half: Signal<'_>, n: i64, has_kernel: HasKernel) -> Expression<'_> {
    let (mut sizes, last) = (half.real.sizes(), half.real.rank().saturating_sub(1));
    if n <= 1 || sizes.contains(&0) {
        return half.real;
    }
    let rows: i64 = sizes[..last].iter().product();
    let count = n / 2 + 1;
    let flat = half.map(|part| part.reshape(&[rows, count]));
    let real = if n <= DIRECT {
        real_directly(flat, n)
    } else if n % 2 == 0 {
        pairs_of_spectrum(flat, rows, n, has_kernel)
    } else {
        transform(whole_spectrum(flat, 1, n), rows, n, 1.0, has_kernel).real
    };
    sizes[last] = n;
    real.reshape(&sizes)
}

/// [`real_of_spectrum`] as one product. Each frequency occurs twice, except 0 and `n / 2`.
fn real_directly(half: Signal<'_>, n: i64) -> Expression<'_> {
    let count = n / 2 + 1;
    let mut matrix = Vec::with_capacity((2 * count * n) as usize);
    let weight = |k: i64| if k == 0 || 2 * k == n { 1.0 } else { 2.0 };
    for k in 0..count {
        matrix.extend((0..n).map(|j| weight(k) * root_of_unity(j * k, n, 1.0).0));
    }
    for k in 0..count {
        // The sine of a multiple of half a turn is 0.
        let is_even = weight(k) == 1.0;
        matrix.extend((0..n).map(|j| if is_even { 0.0 } else { -2.0 * root_of_unity(j * k, n, 1.0).1 }));
    }
    let (function, float) = (half.real.function(), half.real.element_type());
    let matrix = floats(function, float, &[2 * count, n], matrix);
    function.concatenate(&[half.real, half.imaginary()], 1).dot(matrix, 0)
}

/// [`real_of_spectrum`] for rows of even length: the inverse of [`spectrum_of_pairs`].
fn pairs_of_spectrum<'f>(half: Signal<'f>, rows: i64, n: i64, has_kernel: HasKernel) -> Expression<'f> {
    let m = n / 2;
    let function = half.real.function();
    // The first elements of both halves are real.
    let is_real = function.iota(PrimitiveType::S32, &[rows, m], 1).equal(0.0);
    let real_first = |part: Expression<'f>| is_real.select(part.splat(0.0), part);
    let (re, im) = (half.real.slice_in(1, 0, m), real_first(half.imaginary().slice_in(1, 0, m)));
    let other_re = half.real.slice_in(1, 1, m + 1).reverse(1);
    let other_im = real_first(half.imaginary().slice_in(1, 1, m + 1).reverse(1));
    let odd = Signal { real: re - other_re, imag: Some(im + other_im) };
    let turned = odd.times(line_of_roots(half.real, rows, m, n, 1.0));
    let pairs = Signal { real: re + other_re - turned.imaginary(), imag: Some(im - other_im + turned.real) };
    let pairs = transform(pairs, rows, m, 1.0, has_kernel).map(|part| part.reshape(&[rows, m, 1]));
    function.concatenate(&[pairs.real, pairs.imaginary()], 2).reshape(&[rows, n])
}

/// Returns `e^(sign 2 pi i k / n)` for `k < count`, in each row.
fn line_of_roots<'f>(like: Expression<'f>, rows: i64, count: i64, n: i64, sign: f64) -> Signal<'f> {
    let (function, float) = (like.function(), like.element_type());
    let line = if count <= MAX_TABLE {
        let roots: Vec<(f64, f64)> = (0..count).map(|k| root_of_unity(k, n, sign)).collect();
        let table = |part: fn(&(f64, f64)) -> f64| {
            floats(function, float, &[count], roots.iter().map(part).collect())
        };
        Signal { real: table(|root| root.0), imag: Some(table(|root| root.1)) }
    } else {
        let position = function.iota(PrimitiveType::F64, &[count], 0);
        let angle = position * (sign * 2.0 * PI / n as f64);
        Signal { real: angle.cos().convert(float), imag: Some(angle.sin().convert(float)) }
    };
    line.map(|part| part.broadcast(&[rows, count], &[1]))
}

/// Extends the first `n / 2 + 1` frequencies of a real signal of length `n` to the whole spectrum.
fn whole_spectrum(half: Signal<'_>, dimension: usize, n: i64) -> Signal<'_> {
    let mirrored = (n - 1) / 2;
    if mirrored <= 0 {
        return half;
    }
    let real = half.real.slice_in(dimension, 1, mirrored + 1).reverse(dimension);
    let imag = -half.imaginary().slice_in(dimension, 1, mirrored + 1).reverse(dimension);
    let function = half.real.function();
    Signal {
        real: function.concatenate(&[half.real, real], dimension),
        imag: Some(function.concatenate(&[half.imaginary(), imag], dimension)),
    }
}

/// Transforms one dimension, unscaled.
fn along(
    signal: Signal<'_>,
    dimension: usize,
    n: i64,
    is_inverse: bool,
    has_kernel: HasKernel,
) -> Signal<'_> {
    let sizes = signal.real.sizes();
    if n <= 1 || sizes.contains(&0) {
        return signal;
    }
    let mut order: Vec<usize> = (0..sizes.len()).filter(|&d| d != dimension).collect();
    order.push(dimension);
    let moved: Vec<i64> = order.iter().map(|&d| sizes[d]).collect();
    let rows: i64 = moved[..moved.len() - 1].iter().product();
    let flat = signal.map(|part| part.transpose(&order).reshape(&[rows, n]));
    let transformed = transform(flat, rows, n, if is_inverse { 1.0 } else { -1.0 }, has_kernel);
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &d)| back[d] = at);
    transformed.map(|part| part.reshape(&moved).transpose(&back))
}

/// Transforms each row, unscaled.
fn transform(signal: Signal<'_>, rows: i64, n: i64, sign: f64, has_kernel: HasKernel) -> Signal<'_> {
    match n {
        ..=1 => signal,
        _ if has_kernel(FftType::Fft, &[n]) => instruction(signal, n, sign),
        _ if n <= DIRECT => direct(signal, n, n, sign),
        _ => bluestein(signal, rows, n, sign),
    }
}

/// Transforms each row, unscaled, as an instruction. The inverse swaps real and imaginary parts of
/// both input and output.
fn instruction(signal: Signal<'_>, n: i64, sign: f64) -> Signal<'_> {
    let (re, im) = (signal.real, signal.imaginary());
    let (re, im) = if sign > 0.0 { (im, re) } else { (re, im) };
    let op = Op::Fft { fft_type: FftType::Fft, fft_length: vec![n] };
    let transformed = re.function().op(op, &[re.complex(im)], None);
    let (re, im) = (transformed.real(), transformed.imag());
    let (re, im) = if sign > 0.0 { (im, re) } else { (re, im) };
    Signal { real: re, imag: Some(im) }
}

/// Computes the first `count` frequencies. Each part is one product of `[real, imaginary]` with a
/// matrix of roots: `[cos, -sin]` and `[sin, cos]`.
fn direct(signal: Signal<'_>, n: i64, count: i64, sign: f64) -> Signal<'_> {
    let function = signal.real.function();
    let float = signal.real.element_type();
    let roots: Vec<(f64, f64)> =
        (0..n).flat_map(|j| (0..count).map(move |k| root_of_unity(j * k, n, sign))).collect();
    let matrix = |of_real: fn(&(f64, f64)) -> f64, of_imag: fn(&(f64, f64)) -> f64| {
        let mut matrix: Vec<f64> = roots.iter().map(of_real).collect();
        if signal.imag.is_some() {
            matrix.extend(roots.iter().map(of_imag));
        }
        floats(function, float, &[matrix.len() as i64 / count, count], matrix)
    };
    let parts: Vec<Expression<'_>> = [Some(signal.real), signal.imag].into_iter().flatten().collect();
    let parts = function.concatenate(&parts, 1);
    Signal {
        real: parts.dot(matrix(|root| root.0, |root| -root.1), 0),
        imag: Some(parts.dot(matrix(|root| root.1, |root| root.0), 0)),
    }
}

/// Returns `e^(sign 2 pi i p / n)`, evaluated with an angle within an eighth of a turn.
fn root_of_unity(p: i64, n: i64, sign: f64) -> (f64, f64) {
    let p = p.rem_euclid(n);
    let eighth = (8 * p + n / 2) / n;
    // Quarter turns are subtracted exactly.
    let quarter = ((eighth + 1) / 2) % 4;
    let rest = 4 * p - n * ((eighth + 1) / 2);
    let angle = PI * rest as f64 / (2.0 * n as f64);
    let (sine, cosine) = (angle.sin(), angle.cos());
    let (cosine, sine) = match quarter {
        0 => (cosine, sine),
        1 => (-sine, cosine),
        2 => (-cosine, -sine),
        _ => (sine, -cosine),
    };
    (cosine, sign * sine)
}

fn floats<'f>(
    function: &'f Function,
    float: PrimitiveType,
    sizes: &[i64],
    values: Vec<f64>,
) -> Expression<'f> {
    function.literal(Literal::from_floats(ArrayShape::new(float, sizes), values))
}

/// Transforms as a convolution of power-of-two length with a chirp:
/// `j k = (j^2 + k^2 - (k - j)^2) / 2`.
fn bluestein(signal: Signal<'_>, rows: i64, n: i64, sign: f64) -> Signal<'_> {
    let (function, float) = (signal.real.function(), signal.real.element_type());
    let padded = (2 * n - 1).cast_unsigned().next_power_of_two() as i64;
    let chirp: Vec<(f64, f64)> =
        (0..n).map(|j| root_of_unity(square_modulo(j, 2 * n), 2 * n, sign)).collect();
    let mut filter = vec![(0.0, 0.0); padded as usize];
    for (j, &(re, im)) in chirp.iter().enumerate() {
        filter[j] = (re, -im);
        filter[(padded as usize - j) % padded as usize] = (re, -im);
    }
    // The filter includes the scale of the inverse transform.
    let scale = 1.0 / padded as f64;
    let filter: Vec<(f64, f64)> =
        radix_2(filter).into_iter().map(|(re, im)| (re * scale, im * scale)).collect();
    let table = |values: &[(f64, f64)]| {
        let sizes = [values.len() as i64];
        let part = |values: Vec<f64>| {
            let count = sizes[0];
            floats(function, float, &sizes, values).broadcast(&[rows, count], &[1])
        };
        Signal {
            real: part(values.iter().map(|v| v.0).collect()),
            imag: Some(part(values.iter().map(|v| v.1).collect())),
        }
    };
    let chirp = table(&chirp);
    let spread = signal.times(chirp).map(|part| part.pad_in(1, 0, padded - n, 0.0));
    let product = instruction(spread, padded, -1.0).times(table(&filter));
    let convolved = instruction(product, padded, 1.0);
    convolved.map(|part| part.slice_in(1, 0, n)).times(chirp)
}

fn square_modulo(j: i64, n: i64) -> i64 {
    (i128::from(j) * i128::from(j) % i128::from(n)) as i64
}

/// Returns the forward transform of a constant whose length is a power of 2.
fn radix_2(values: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let n = values.len();
    if n <= 1 {
        return values;
    }
    let even = radix_2(values.iter().copied().step_by(2).collect());
    let odd = radix_2(values.iter().copied().skip(1).step_by(2).collect());
    let mut result = vec![(0.0, 0.0); n];
    for (k, (&(a, b), &(c, d))) in even.iter().zip(&odd).enumerate() {
        let (re, im) = root_of_unity(k as i64, n as i64, -1.0);
        let (re, im) = (c * re - d * im, c * im + d * re);
        result[k] = (a + re, b + im);
        result[k + n / 2] = (a - re, b - im);
    }
    result
}
