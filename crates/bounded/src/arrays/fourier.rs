//! Discrete Fourier transforms whose lengths are known only at run time.
//!
//! A short transform is a product with a matrix of roots of unity for the length of the run. A
//! longer one is a convolution with a chirp (Bluestein), by transforms whose length is a power of
//! two that suffices for every run. Positions on the unit circle are integers, and angles are
//! reduced to an eighth of a turn, so that a root is as exact as its sine and cosine.

use super::{Bounded, Size};
use crate::builder::Builder;
use hlo::{ComparisonDirection, DotDimensionNumbers, FftType, InstructionId, Op, SliceDimension};
use shape::PrimitiveType::{self, S32, S64};
use std::f64::consts::FRAC_PI_2;
use support::{Code, Error, Result};

/// Longest transform that is a product with a matrix.
const DIRECT: i64 = 64;

/// Longest transform. The convolution has up to four times its length.
const MAX_LENGTH: i64 = 1 << 22;

/// Longest transform whose squares of positions fit in `s32`.
const MAX_SQUARE: i64 = 46_340;

/// Input and output of a transform along one dimension.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Complex numbers to complex numbers.
    Complex { is_inverse: bool },
    /// A real signal to the first half of its spectrum.
    ToSpectrum,
    /// Half a spectrum to the real signal.
    FromSpectrum,
}

impl Kind {
    fn is_inverse(self) -> bool {
        matches!(self, Self::Complex { is_inverse: true } | Self::FromSpectrum)
    }
}

/// Real and imaginary parts of roots of unity.
#[derive(Clone, Copy)]
struct Roots {
    cosine: InstructionId,
    sine: InstructionId,
}

/// Rows to be transformed, of the same length in each run.
struct Rows {
    /// The array, of which the last dimension is transformed.
    array: InstructionId,
    /// The length of the run, and its upper bound.
    length: InstructionId,
    bound: i64,
    kind: Kind,
}

impl Builder {
    /// Transforms the last dimensions, one for each length, with the semantics of HLO's `fft`.
    /// Longer dimensions are cut, and shorter ones are padded with zeros.
    pub fn fourier_transform(
        &mut self,
        x: InstructionId,
        fft_type: FftType,
        lengths: &[Size],
    ) -> Result<InstructionId> {
        let first = self.rank(x) - lengths.len();
        let last = self.rank(x) - 1;
        let known = |cx: &mut Self, size: InstructionId| cx.fold(size)?.scalar_at(0).as_i64();
        let settled = lengths.iter().map(|&length| {
            let known = length.size.and_then(|size| known(self, size));
            known.map_or(length, |known| Size::known(known.clamp(0, length.bound)))
        });
        let lengths: &[Size] = &settled.collect::<Vec<_>>();
        let mut read = lengths.to_vec();
        if let (FftType::Irfft, Some(length)) = (fft_type, read.last_mut()) {
            *length = self.frequencies(*length)?;
        }
        let mut x = self.with_lengths(x, first, &read)?;
        if lengths.iter().all(|length| length.size.is_none()) {
            let fft_length = lengths.iter().map(|length| length.bound).collect();
            return self.op(Op::Fft { fft_type, fft_length }, &[x]);
        }
        let is_inverse = matches!(fft_type, FftType::Ifft | FftType::Irfft);
        let mut steps: Vec<(usize, Kind)> =
            (first..=last).map(|d| (d, Kind::Complex { is_inverse })).collect();
        match fft_type {
            FftType::Fft | FftType::Ifft => {}
            FftType::Rfft => steps[last - first].1 = Kind::ToSpectrum,
            FftType::Irfft => steps[last - first].1 = Kind::FromSpectrum,
        }
        if fft_type != FftType::Irfft {
            steps.reverse();
        }
        for (d, kind) in steps {
            x = self.transformed_along(x, d, lengths[d - first], kind)?;
        }
        Ok(x)
    }

    /// Returns the number of frequencies of a real signal: `length / 2 + 1`.
    pub fn frequencies(&mut self, length: Size) -> Result<Size> {
        let bound = length.bound / 2 + 1;
        let Some(size) = length.size else { return Ok(Size::known(bound)) };
        let two = self.s32(2)?;
        let half = self.div(size, two)?;
        Ok(Size { bound, size: Some(self.add_scalar(half, 1.0)?) })
    }

    /// Cuts the dimensions from `first` on to these lengths, or pads them with zeros.
    pub fn with_lengths(
        &mut self,
        x: InstructionId,
        first: usize,
        lengths: &[Size],
    ) -> Result<InstructionId> {
        let own = self.all_sizes(x)?;
        let changed: Vec<usize> = (first..own.len())
            .filter(|&d| {
                let (own, length) = (own[d], lengths[d - first]);
                own != length && self.known_difference(own, length) != Some(0)
            })
            .collect();
        if changed.is_empty() {
            return Ok(x);
        }
        let split = self.split(x)?;
        let element_type = self.element_type(x);
        let zero = self.scalar(element_type, 0.0);
        let data = self.masked(&split, &changed, zero)?;
        let (whole, mut sizes) = (self.sizes(data), split.sizes);
        let target = |d: usize| if changed.contains(&d) { lengths[d - first].bound } else { whole[d] };
        let slice =
            (0..whole.len()).map(|d| SliceDimension { start: 0, limit: whole[d].min(target(d)), stride: 1 });
        let cut = self.slice(data, slice.collect())?;
        let padding: Vec<(i64, i64, i64)> =
            (0..whole.len()).map(|d| (0, (target(d) - whole[d]).max(0), 0)).collect();
        let padded = self.pad(cut, zero, &padding)?;
        changed.iter().for_each(|&d| sizes[d] = lengths[d - first].size);
        self.bounded(padded, &sizes)
    }

    /// Transforms one dimension.
    fn transformed_along(
        &mut self,
        x: InstructionId,
        dimension: usize,
        length: Size,
        kind: Kind,
    ) -> Result<InstructionId> {
        let mut order: Vec<usize> = (0..self.rank(x)).collect();
        let last = order.len() - 1;
        order.swap(dimension, last);
        let array = self.transpose(x, &order)?;
        let y = match length.size {
            None => {
                let fft_type = match kind {
                    Kind::Complex { is_inverse: false } => FftType::Fft,
                    Kind::Complex { is_inverse: true } => FftType::Ifft,
                    Kind::ToSpectrum => FftType::Rfft,
                    Kind::FromSpectrum => FftType::Irfft,
                };
                self.op(Op::Fft { fft_type, fft_length: vec![length.bound] }, &[array])?
            }
            Some(size) => {
                if length.bound > MAX_LENGTH {
                    return Err(Error::unsupported(format!(
                        "a transform of up to {} elements, whose length is chosen in each run, is not \
                         supported; the maximum is {MAX_LENGTH}. Lower the range, or fix the size",
                        length.bound
                    ))
                    .coded(Code::OpenSize));
                }
                // A run without elements returns none.
                let one = self.s32(1)?;
                let positive = self.op(Op::Maximum {}, &[size, one])?;
                let rows = Rows { array, length: positive, bound: length.bound, kind };
                let y = if length.bound <= DIRECT { self.by_matrix(&rows)? } else { self.by_chirp(&rows)? };
                let mut sizes = self.split(array)?.sizes;
                sizes[last] = match kind {
                    Kind::ToSpectrum => self.frequencies(length)?.size,
                    _ => Some(size),
                };
                self.bounded(y, &sizes)?
            }
        };
        self.transpose(y, &order)
    }

    /// Returns the real and imaginary parts of rows. Numbers beyond the length remain undefined.
    fn parts_of_rows(&mut self, rows: &Rows) -> Result<(InstructionId, Option<InstructionId>)> {
        let data = self.split(rows.array)?.data;
        if rows.kind == Kind::ToSpectrum {
            return Ok((data, None));
        }
        let (real, mut imaginary) = self.parts(data)?;
        if rows.kind == Kind::FromSpectrum {
            let sizes = self.sizes(imaginary);
            let is_single = self.is_single(&sizes, sizes.len() - 1, rows.length)?;
            let zero = self.splat_like(imaginary, 0.0)?;
            imaginary = self.select(is_single, zero, imaginary)?;
        }
        Ok((real, Some(imaginary)))
    }

    /// True for the frequencies that occur once in the spectrum of a real signal: 0, and half the
    /// length. Their imaginary parts are ignored.
    fn is_single(&mut self, sizes: &[i64], dimension: usize, length: InstructionId) -> Result<InstructionId> {
        let frequency = self.iota(S32, sizes, dimension)?;
        let length = self.broadcast(length, sizes, &[])?;
        let twice = self.mul_scalar(frequency, 2.0)?;
        let is_middle = self.compare(ComparisonDirection::Eq, twice, length)?;
        let is_first = self.compare_scalar(ComparisonDirection::Eq, frequency, 0.0)?;
        self.op(Op::Or {}, &[is_first, is_middle])
    }

    /// Returns the factors of frequencies in half a spectrum: 1 for those that occur once, 2 for
    /// others.
    fn weights(
        &mut self,
        like: InstructionId,
        dimension: usize,
        length: InstructionId,
    ) -> Result<InstructionId> {
        let sizes = self.sizes(like);
        let is_single = self.is_single(&sizes, dimension, length)?;
        let (one, two) = (self.splat_like(like, 1.0)?, self.splat_like(like, 2.0)?);
        self.select(is_single, one, two)
    }

    /// Returns `e^(2 pi i p / m)` for positions `p` from 0 to `m - 1`, of integers of one type.
    fn roots_of_unity(&mut self, p: InstructionId, m: InstructionId, float: PrimitiveType) -> Result<Roots> {
        let sizes = self.sizes(p);
        let whole = self.broadcast(m, &sizes, &[])?;
        // Quarter turns are subtracted exactly: an eighth of a turn remains at most.
        let eighths = self.mul_scalar(p, 8.0)?;
        let mut is_beyond = Vec::new();
        for odd in [1.0, 3.0, 5.0, 7.0] {
            let limit = self.mul_scalar(whole, odd)?;
            is_beyond.push(self.compare(ComparisonDirection::Ge, eighths, limit)?);
        }
        let mut rest = self.mul_scalar(p, 4.0)?;
        for &is_beyond in &is_beyond {
            let none = self.splat_like(rest, 0.0)?;
            let quarter = self.select(is_beyond, whole, none)?;
            rest = self.sub(rest, quarter)?;
        }
        let (rest, whole) = (self.convert(rest, float)?, self.convert(whole, float)?);
        let angle = self.div(rest, whole)?;
        let angle = self.mul_scalar(angle, FRAC_PI_2)?;
        let (cosine, sine) = (self.op(Op::Cos {}, &[angle])?, self.op(Op::Sin {}, &[angle])?);
        let [first, second, third, fourth] = [is_beyond[0], is_beyond[1], is_beyond[2], is_beyond[3]];
        // An odd number of quarter turns exchanges the parts.
        let (a, b) = (self.op(Op::Xor {}, &[first, second])?, self.op(Op::Xor {}, &[third, fourth])?);
        let is_odd = self.op(Op::Or {}, &[a, b])?;
        let (x, y) = (self.select(is_odd, sine, cosine)?, self.select(is_odd, cosine, sine)?);
        let is_left = self.op(Op::Xor {}, &[first, third])?;
        let is_below = self.op(Op::Xor {}, &[second, fourth])?;
        let (minus_x, minus_y) = (self.neg(x)?, self.neg(y)?);
        Ok(Roots { cosine: self.select(is_left, minus_x, x)?, sine: self.select(is_below, minus_y, y)? })
    }

    /// Returns `1 / length`.
    fn reciprocal(&mut self, length: InstructionId, float: PrimitiveType) -> Result<InstructionId> {
        let length = self.convert(length, float)?;
        let one = self.scalar(float, 1.0);
        self.div(one, length)
    }

    /// Transforms rows by products with matrices of roots of unity, which end at the length.
    fn by_matrix(&mut self, rows: &Rows) -> Result<InstructionId> {
        let (real, imaginary) = self.parts_of_rows(rows)?;
        let float = self.element_type(real);
        let last = self.rank(real) - 1;
        let read = self.sizes(real)[last];
        let written = if rows.kind == Kind::ToSpectrum { rows.bound / 2 + 1 } else { rows.bound };
        let table = [read, written];
        let (j, k) = (self.iota(S32, &table, 0)?, self.iota(S32, &table, 1)?);
        let (product, length) = (self.mul(j, k)?, self.broadcast(rows.length, &table, &[])?);
        let position = self.op(Op::Remainder {}, &[product, length])?;
        let mut roots = self.roots_of_unity(position, rows.length, float)?;
        if rows.kind == Kind::FromSpectrum {
            let weights = self.weights(roots.cosine, 0, rows.length)?;
            roots.cosine = self.mul(roots.cosine, weights)?;
            roots.sine = self.mul(roots.sine, weights)?;
        }
        let open = self.split(rows.array)?.sizes[last];
        let dot = |cx: &mut Self, part: InstructionId, matrix: InstructionId| {
            let mut sizes = vec![None; last + 1];
            sizes[last] = open;
            let (part, matrix) = (cx.bounded(part, &sizes)?, cx.bounded(matrix, &[open, None])?);
            let dot_dimension_numbers = DotDimensionNumbers {
                lhs_contracting_dims: vec![last],
                rhs_contracting_dims: vec![0],
                ..DotDimensionNumbers::default()
            };
            cx.op(Op::Dot { dot_dimension_numbers }, &[part, matrix])
        };
        let by_cosine = dot(self, real, roots.cosine)?;
        let Some(imaginary) = imaginary else {
            let by_sine = dot(self, real, roots.sine)?;
            let by_sine = self.neg(by_sine)?;
            return self.op(Op::Complex {}, &[by_cosine, by_sine]);
        };
        let other = dot(self, imaginary, roots.sine)?;
        if !rows.kind.is_inverse() {
            let re = self.add(by_cosine, other)?;
            let (a, b) = (dot(self, imaginary, roots.cosine)?, dot(self, real, roots.sine)?);
            let im = self.sub(a, b)?;
            return self.op(Op::Complex {}, &[re, im]);
        }
        let scale = self.reciprocal(rows.length, float)?;
        let scale = self.broadcast(scale, &self.sizes(by_cosine), &[])?;
        let re = self.sub(by_cosine, other)?;
        let re = self.mul(re, scale)?;
        if rows.kind == Kind::FromSpectrum {
            return Ok(re);
        }
        let (a, b) = (dot(self, imaginary, roots.cosine)?, dot(self, real, roots.sine)?);
        let im = self.add(a, b)?;
        let im = self.mul(im, scale)?;
        self.op(Op::Complex {}, &[re, im])
    }

    /// Transforms rows by a convolution with a chirp: `j k = (j^2 + k^2 - (k - j)^2) / 2`.
    fn by_chirp(&mut self, rows: &Rows) -> Result<InstructionId> {
        let (mut real, imaginary) = self.parts_of_rows(rows)?;
        let float = self.element_type(real);
        let last = self.rank(real) - 1;
        let most = rows.bound;
        let padded = (2 * most - 1).cast_unsigned().next_power_of_two() as i64;
        let mut imaginary = match imaginary {
            Some(imaginary) => imaginary,
            None => self.splat_like(real, 0.0)?,
        };
        if rows.kind == Kind::FromSpectrum {
            let weights = self.weights(real, last, rows.length)?;
            real = self.mul(real, weights)?;
            imaginary = self.mul(imaginary, weights)?;
        }
        let open = self.split(rows.array)?.sizes[last];
        let mut sizes = vec![None; last + 1];
        sizes[last] = open;
        let zero = self.scalar(float, 0.0);
        let real = self.masked(&Bounded { data: real, sizes: sizes.clone() }, &[last], zero)?;
        let imaginary = self.masked(&Bounded { data: imaginary, sizes }, &[last], zero)?;
        let signal = self.op(Op::Complex {}, &[real, imaginary])?;

        // The distances of positions on a circle, of which the lengths are before `length`.
        let position = self.iota(S32, &[padded], 0)?;
        let back = self.neg(position)?;
        let back = self.add_scalar(back, padded as f64)?;
        let distance = self.op(Op::Minimum {}, &[position, back])?;
        let limit = self.broadcast(rows.length, &[padded], &[])?;
        let exists = self.compare(ComparisonDirection::Lt, distance, limit)?;
        let integer = if most > MAX_SQUARE { S64 } else { S32 };
        let largest = self.splat_like(distance, most as f64 - 1.0)?;
        let distance = self.op(Op::Minimum {}, &[distance, largest])?;
        let distance = self.convert(distance, integer)?;
        let length = self.convert(rows.length, integer)?;
        let twice = self.mul_scalar(length, 2.0)?;
        let square = self.mul(distance, distance)?;
        let whole = self.broadcast(twice, &[padded], &[])?;
        let turned = self.op(Op::Remainder {}, &[square, whole])?;
        let Roots { cosine, sine } = self.roots_of_unity(turned, twice, float)?;
        let minus = self.neg(sine)?;
        let (forward, backward) = if rows.kind.is_inverse() { (sine, minus) } else { (minus, sine) };
        let chirp = self.op(Op::Complex {}, &[cosine, forward])?;
        let chirp = self.slice_in(chirp, 0, 0, most)?;
        let filter = self.op(Op::Complex {}, &[cosine, backward])?;
        let none = self.splat_like(filter, 0.0)?;
        let filter = self.select(exists, filter, none)?;
        let transform = |cx: &mut Self, fft_type: FftType, x: InstructionId| {
            cx.op(Op::Fft { fft_type, fft_length: vec![padded] }, &[x])
        };
        let filter = transform(self, FftType::Fft, filter)?;

        let read = self.sizes(signal)[last];
        let sizes = self.sizes(signal);
        let of_read = self.slice_in(chirp, 0, 0, read)?;
        let of_read = self.broadcast(of_read, &sizes, &[last])?;
        let spread = self.mul(signal, of_read)?;
        let spread = self.pad_end(spread, last, padded - read)?;
        let spectrum = transform(self, FftType::Fft, spread)?;
        let filter = self.broadcast(filter, &self.sizes(spectrum), &[last])?;
        let product = self.mul(spectrum, filter)?;
        let convolved = transform(self, FftType::Ifft, product)?;
        let written = if rows.kind == Kind::ToSpectrum { most / 2 + 1 } else { most };
        let convolved = self.slice_in(convolved, last, 0, written)?;
        let of_written = self.slice_in(chirp, 0, 0, written)?;
        let of_written = self.broadcast(of_written, &self.sizes(convolved), &[last])?;
        let mut result = self.mul(convolved, of_written)?;
        if rows.kind.is_inverse() {
            let scale = self.reciprocal(rows.length, float)?;
            let scale = self.broadcast(scale, &self.sizes(result), &[])?;
            let (re, im) = self.parts(result)?;
            let re = self.mul(re, scale)?;
            if rows.kind == Kind::FromSpectrum {
                return Ok(re);
            }
            let im = self.mul(im, scale)?;
            result = self.op(Op::Complex {}, &[re, im])?;
        }
        Ok(result)
    }
}
