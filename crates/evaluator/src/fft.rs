//! `fft`: discrete Fourier transforms along the last dimensions, in `f64`.

use crate::array::{array, check_array, from_bytes, from_scalars};
use crate::complex::{Complex, add, conjugate, multiply};
use crate::contraction::terms;
use crate::evaluator::Evaluator;
use hlo::FftType;
use shape::index::row_major_strides;
use shape::{Literal, Scalar, Shape};
use support::{Error, Result};

impl Evaluator<'_> {
    /// Evaluates `fft`. Forward transforms are not scaled, inverse ones are scaled by the
    /// reciprocal of their length. `rfft` keeps the first half of the spectrum, `irfft` starts from
    /// it.
    pub(crate) fn fft(
        &mut self,
        shape: &Shape,
        operand: &Literal,
        fft_type: FftType,
        lengths: &[i64],
    ) -> Result<Literal> {
        let result = array(shape)?;
        check_array(operand)?;
        if result.element_count() == 0 {
            return from_bytes(&result, Vec::new());
        }
        let sizes = operand.array_shape().sizes();
        let (Some(&last), true) = (lengths.last(), lengths.len() <= sizes.len()) else {
            return Err(Error::invalid(format!(
                "invalid transform lengths {lengths:?} for {}",
                operand.shape()
            )));
        };
        let mut array = Axes { values: terms(operand), sizes };
        let (first, axis) = (array.sizes.len() - lengths.len(), array.sizes.len() - 1);
        let spectrum = last / 2 + 1;
        let expected_last = if fft_type == FftType::Irfft { spectrum } else { last };
        if array.sizes[axis] != expected_last || array.sizes[first..axis] != lengths[..lengths.len() - 1] {
            return Err(Error::invalid(format!(
                "{} does not match the transform lengths {lengths:?}",
                operand.shape()
            )));
        }
        let count = (array.values.len() as u64).max(result.element_count() as u64);
        self.charge(lengths.iter().fold(0u64, |sum, &n| sum.saturating_add(n as u64)).saturating_mul(count))?;
        let to_scalar = |[re, im]: Complex| {
            if result.element_type.is_complex() { Scalar::Complex(re, im) } else { Scalar::Float(re) }
        };
        // Empty sums.
        if array.values.is_empty() {
            let zeros = vec![[0.0, 0.0]; result.element_count() as usize];
            return Ok(from_scalars(&result, zeros.into_iter().map(to_scalar)));
        }
        match fft_type {
            FftType::Fft => (first..=axis).for_each(|d| array.transform(d, |x| dft(x, false))),
            FftType::Ifft => (first..=axis).for_each(|d| array.transform(d, inverse)),
            FftType::Rfft => {
                array.transform(axis, |x| {
                    let mut all = dft(x, false);
                    all.truncate(spectrum as usize);
                    all
                });
                (first..axis).for_each(|d| array.transform(d, |x| dft(x, false)));
            }
            FftType::Irfft => {
                (first..axis).for_each(|d| array.transform(d, inverse));
                array.transform(axis, |x| inverse(&hermitian(x, last as usize)));
            }
        }
        if array.sizes != result.sizes() {
            return Err(Error::invalid(format!(
                "the transform yields {:?}, but the result is {result}",
                array.sizes
            )));
        }
        Ok(from_scalars(&result, array.values.into_iter().map(to_scalar)))
    }
}

/// An array to be transformed along several axes.
struct Axes {
    values: Vec<Complex>,
    sizes: Vec<i64>,
}

impl Axes {
    /// Replaces every line along an axis. All lines get the same new length.
    fn transform(&mut self, axis: usize, function: impl Fn(&[Complex]) -> Vec<Complex>) {
        let stride = row_major_strides(&self.sizes)[axis] as usize;
        let length = self.sizes[axis] as usize;
        let block = stride * length;
        let mut values = Vec::with_capacity(self.values.len());
        for chunk in self.values.chunks_exact(block) {
            let lines: Vec<Vec<Complex>> = (0..stride)
                .map(|offset| {
                    function(&chunk.iter().skip(offset).step_by(stride).copied().collect::<Vec<_>>())
                })
                .collect();
            let new_length = lines[0].len();
            self.sizes[axis] = new_length as i64;
            values.extend((0..new_length).flat_map(|i| lines.iter().map(move |line| line[i])));
        }
        self.values = values;
    }
}

/// Completes the spectrum of a real signal from its first half.
fn hermitian(half: &[Complex], length: usize) -> Vec<Complex> {
    let mirrored = |k: usize| if k < half.len() { half[k] } else { conjugate(half[length - k]) };
    let mut whole: Vec<Complex> = (0..length).map(mirrored).collect();
    if let Some(first) = whole.first_mut() {
        first[1] = 0.0;
    }
    if length.is_multiple_of(2) && length > 0 {
        whole[length / 2][1] = 0.0;
    }
    whole
}

fn inverse(x: &[Complex]) -> Vec<Complex> {
    let scale = 1.0 / x.len() as f64;
    dft(x, true).into_iter().map(|[re, im]| [re * scale, im * scale]).collect()
}

/// Cooley and Tukey's recursion over the prime factors of the length.
fn dft(x: &[Complex], is_inverse: bool) -> Vec<Complex> {
    let n = x.len();
    if n <= 1 {
        return x.to_vec();
    }
    let factor = (2..).take_while(|p| p * p <= n).find(|p| n.is_multiple_of(*p)).unwrap_or(n);
    let part = n / factor;
    let parts: Vec<Vec<Complex>> = (0..factor)
        .map(|r| dft(&x.iter().skip(r).step_by(factor).copied().collect::<Vec<_>>(), is_inverse))
        .collect();
    let roots: Vec<Complex> = (0..n).map(|k| root_of_unity(k as i64, n as i64, is_inverse)).collect();
    (0..n)
        .map(|k| {
            let terms = parts
                .iter()
                .enumerate()
                .map(|(r, part_values)| multiply(roots[r * k % n], part_values[k % part]));
            terms.fold([0.0, 0.0], add)
        })
        .collect()
}

/// Returns `e^(-2 pi i k / n)`, or its conjugate. Quarter turns are exact, so that sums of equal
/// numbers cancel.
fn root_of_unity(k: i64, n: i64, is_inverse: bool) -> Complex {
    let quarters = (8 * k + n) / (2 * n);
    let angle = std::f64::consts::FRAC_PI_2 * (4 * k - quarters * n) as f64 / n as f64;
    let (cosine, sine) = (libm::cos(angle), libm::sin(angle));
    let [re, im] = match quarters % 4 {
        0 => [cosine, sine],
        1 => [0.0 - sine, cosine],
        2 => [-cosine, 0.0 - sine],
        _ => [sine, -cosine],
    };
    if is_inverse { [re, im] } else { [re, 0.0 - im] }
}
