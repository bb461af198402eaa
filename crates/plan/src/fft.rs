//! Plans Fourier transforms. They proceed along one dimension after another, each by passes of
//! small transforms ("butterflies") that leave frequencies in order (Stockham).
//!
//! A pass of radix `r` takes `points = t * r * m` points, where `t` is the length of the transforms
//! already done. From points `i + t (p + m k)` it computes the points `i + t (r p + k)`, rotated by
//! `p k / (r m)` of a turn. The first pass has `t = 1`, the last one `m = 1`. Inverse transforms
//! are forward ones with real and imaginary parts exchanged at both ends.
//!
//! Radices and tables depend on lengths alone, so that versions for several processors share them.

use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::packing::PackedConstant;
use crate::tasks::Work;
use bytes::Bytes;
use hlo::{FftType, Op};
use shape::PrimitiveType;
use std::f64::consts::PI;
use std::fmt;
use support::{Error, Result};
use target::Target;

/// The largest prime factor that has a butterfly.
const MAX_RADIX: i64 = 13;

/// The longest transform.
const MAX_LENGTH: i64 = 1 << 24;

/// Roots of unity of up to this many positions are in one table. For more positions, each root is a
/// product of two.
const MAX_ROOTS: i64 = 1 << 11;

/// Vectors may begin at any position, so tables extend this many positions beyond the last
/// beginning.
const OVERHANG: i64 = 64;

/// Bytes of adjacent columns that are read together: two cache lines, which processors fetch in
/// pairs.
const COLUMN_BYTES: i64 = 128;

/// Plan of a transform over one or more dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct FftPlan {
    /// One step for each dimension longer than 1, in order of execution.
    pub steps: Vec<FftStep>,
    /// Bytes of each array between steps.
    pub array_bytes: u64,
}

/// A transform along one dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct FftStep {
    /// Input and output domain.
    pub kind: FftKind,
    /// Type of the real and imaginary parts.
    pub part: PrimitiveType,
    /// Elements of the dimension: complex elements, or those of the real signal.
    pub length: i64,
    /// Points that the passes transform.
    pub points: i64,
    /// Radix of each pass. Their product is the number of points.
    pub radices: Vec<i64>,
    /// Product of the sizes before the dimension.
    pub outer: i64,
    /// Product of the sizes after the dimension.
    pub inner: i64,
    /// The points that share a vector.
    pub layout: FftLayout,
    /// Number of vector lanes.
    pub lanes: u32,
    /// Number of vectors of adjacent columns that are transformed together, so that whole cache
    /// lines are read.
    pub vectors: i64,
    /// True if real and imaginary parts are exchanged.
    pub is_inverse: bool,
    /// Factor that scales the results.
    pub scale: f64,
    /// Array from which the step reads.
    pub from: FftPlace,
    /// Array to which the step writes.
    pub to: FftPlace,
    /// Roots of each pass but the last.
    pub roots: Vec<Roots>,
    /// Roots that separate the spectra of the even and the odd elements of a real signal, if it is
    /// treated as a complex signal of half the length.
    pub real_roots: Option<Roots>,
}

/// Input and output domain of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FftKind {
    /// Complex numbers to complex numbers.
    Complex,
    /// A real signal to the first half of its spectrum.
    ToSpectrum,
    /// Inverse: half a spectrum to the real signal.
    FromSpectrum,
}

/// The points that share a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FftLayout {
    /// Points of one transform.
    Along,
    /// The same point of several lines, which are transposed on the way into scratch and on the way
    /// back.
    Across,
    /// The same point of adjacent elements in the dimensions after the transformed one.
    Columns,
}

/// An array that a step reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FftPlace {
    /// The operand.
    Operand,
    /// The result.
    Result,
    /// An array between steps, by index.
    Scratch(usize),
}

/// Roots of unity in the step's table: for each line the real parts of all positions, then the
/// imaginary parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Offset of the first root, in elements.
    pub offset: i64,
    /// Positions per line.
    pub count: i64,
    /// If there are two tables, the number of positions of the first one, a power of two. The
    /// second table follows; it holds the roots of positions that are multiples of this number.
    pub near: Option<i64>,
}

impl Roots {
    /// Positions per line of the (first) table.
    pub fn width(&self) -> i64 {
        self.near.map_or(self.count, |near| near + OVERHANG)
    }

    /// Positions per line of the second table.
    pub fn far(&self) -> i64 {
        self.near.map_or(0, |near| (self.count - 1) / near + 1)
    }
}

impl FftStep {
    /// True if a real signal is treated as a complex signal of half the length.
    pub fn is_packed(&self) -> bool {
        self.real_roots.is_some()
    }

    /// Points per line of the input.
    pub fn read_points(&self) -> i64 {
        match self.kind {
            FftKind::FromSpectrum => self.length / 2 + 1,
            _ => self.points,
        }
    }

    /// Points per line of the output.
    pub fn written_points(&self) -> i64 {
        match self.kind {
            FftKind::ToSpectrum => self.length / 2 + 1,
            _ => self.points,
        }
    }

    /// Numbers per line of the input and of the output.
    pub fn numbers(&self) -> [i64; 2] {
        let spectrum = 2 * (self.length / 2 + 1);
        match self.kind {
            FftKind::Complex => [2 * self.length; 2],
            FftKind::ToSpectrum => [self.length, spectrum],
            FftKind::FromSpectrum => [spectrum, self.length],
        }
    }

    /// Number of times that all points are moved.
    pub fn moves(&self) -> usize {
        let real = match self.kind {
            FftKind::Complex => 0,
            // When lines are transposed, the upper half of the spectrum is simply not copied out.
            FftKind::ToSpectrum => usize::from(self.is_packed() || self.layout == FftLayout::Along),
            FftKind::FromSpectrum => 1,
        };
        let transposed = if self.layout == FftLayout::Across { 2 } else { 0 };
        self.radices.len() + real + transposed
    }

    /// Number of lines that are transformed together.
    pub fn side_by_side(&self) -> i64 {
        if self.layout == FftLayout::Along { 1 } else { i64::from(self.lanes) * self.vectors }
    }

    /// Bytes of the real or the imaginary parts in the worker's scratch.
    pub fn part_bytes(&self) -> i64 {
        let points = self.points.max(self.read_points()).max(self.written_points()) + 1;
        let bytes = points.saturating_mul(self.side_by_side()).saturating_mul(self.part.byte_size() as i64);
        // One extra cache line: with power-of-two sizes, the parts would fall on the same lines of
        // the cache.
        (bytes.saturating_add(63) / 64 + 1).saturating_mul(64)
    }

    fn worker_bytes(&self) -> u64 {
        let buffers = self.moves().saturating_sub(1).min(2) as i64;
        self.part_bytes().saturating_mul(2 * buffers) as u64
    }

    /// Number of steps of the loop that tasks share.
    pub fn units(&self) -> i64 {
        match self.layout {
            FftLayout::Along => self.outer,
            FftLayout::Across => self.outer / self.side_by_side(),
            FftLayout::Columns if self.outer == 1 => self.inner / self.side_by_side(),
            FftLayout::Columns => self.outer,
        }
    }
}

impl fmt::Display for FftPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, step) in self.steps.iter().enumerate() {
            let kind = match step.kind {
                FftKind::Complex => "",
                FftKind::ToSpectrum => "real ",
                FftKind::FromSpectrum => "back to real ",
            };
            let layout = match step.layout {
                FftLayout::Along => "along",
                FftLayout::Across => "across",
                FftLayout::Columns => "in columns",
            };
            let radices = step.radices.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
            let comma = if k > 0 { ", then " } else { "" };
            write!(
                f,
                "{comma}{kind}transform of {} by {radices}, {} lanes {layout}",
                step.length, step.lanes
            )?;
        }
        Ok(())
    }
}

/// True if a kernel exists for transforms of these lengths, which must be products of small primes.
/// `fft-expander` builds other transforms from these.
pub fn has_kernel(fft_type: FftType, lengths: &[i64]) -> bool {
    let is_real = matches!(fft_type, FftType::Rfft | FftType::Irfft);
    let fits = |&n: &i64| (1..=MAX_LENGTH).contains(&n) && radices(n).is_some();
    lengths.iter().all(fits) && lengths.iter().any(|&n| n > 1) && (!is_real || lengths.last() != Some(&1))
}

/// Radices of a transform, large powers of two first, then primes; `None` if a prime factor is too
/// large.
fn radices(n: i64) -> Option<Vec<i64>> {
    let mut rest = n.max(1);
    let mut radices = Vec::new();
    let mut twos = rest.trailing_zeros();
    rest >>= twos;
    while twos > 0 {
        // Two passes of radix 4 instead of one of radix 8 and one of radix 2.
        let bits = if twos == 4 { 2 } else { twos.min(3) };
        radices.push(1 << bits);
        twos -= bits;
    }
    for prime in (3..=MAX_RADIX).step_by(2) {
        while rest % prime == 0 {
            radices.push(prime);
            rest /= prime;
        }
    }
    (rest == 1).then_some(radices)
}

/// Plans a transform.
pub(crate) fn plan(fusion: &Fusion<'_>, work: Work, target: &Target) -> Result<KernelPlan<FftPlan>> {
    let Op::Fft { fft_type, fft_length } = fusion.root_op() else {
        return Err(Error::internal("expected an fft as the root"));
    };
    let root = &fusion.body[fusion.root];
    let shape = fusion.body[root.operands()[0]].shape().expect_array();
    let result = root.shape().expect_array();
    if result.element_count() == 0 || shape.element_count() == 0 || !has_kernel(*fft_type, fft_length) {
        return Err(Error::unsupported(format!("Fourier transform of lengths {fft_length:?}")));
    }
    let kinds = kinds(*fft_type, fft_length.len());
    let first = shape.rank() - fft_length.len();
    let expected: Vec<(usize, FftKind)> =
        kinds.into_iter().filter(|&(k, kind)| fft_length[k] > 1 || kind != FftKind::Complex).collect();
    let is_inverse = matches!(fft_type, FftType::Ifft | FftType::Irfft);
    let count: f64 = fft_length.iter().map(|&n| n as f64).product();
    let part = shape.element_type.real_part();
    // Sizes of all complex arrays.
    let sizes = if result.element_type.is_complex() { result.sizes() } else { shape.sizes() };
    let mut packed = Vec::with_capacity(expected.len());
    let mut steps: Vec<FftStep> = Vec::with_capacity(expected.len());
    for (number, &(k, kind)) in expected.iter().enumerate() {
        let is_last = number + 1 == expected.len();
        let sizes_of = |sizes: &[i64]| sizes.iter().fold(1i64, |all, &size| all.saturating_mul(size));
        let length = fft_length[k];
        let is_packed = kind != FftKind::Complex && length % 2 == 0 && length > 2;
        let points = if is_packed { length / 2 } else { length };
        let radices = radices(points)
            .ok_or_else(|| Error::internal("FFT length has a prime factor without a kernel"))?;
        let mut table = Table { part, bytes: Vec::new() };
        let (roots, real_roots) =
            (table.of_passes(points, &radices), is_packed.then(|| table.of_real(length)));
        let from = if number == 0 { FftPlace::Operand } else { steps[number - 1].to };
        // Intermediate complex arrays alternate between the complex result and scratch, so that the
        // result is written last.
        let to = match (is_last, result.element_type.is_complex()) {
            (true, _) => FftPlace::Result,
            (false, true) if (expected.len() - number) % 2 == 1 => FftPlace::Result,
            (false, true) => FftPlace::Scratch(0),
            (false, false) => FftPlace::Scratch(number % 2),
        };
        let mut step = FftStep {
            kind,
            part,
            length,
            points,
            radices,
            outer: sizes_of(&sizes[..first + k]),
            inner: sizes_of(&sizes[first + k + 1..]),
            layout: FftLayout::Along,
            lanes: 1,
            vectors: 1,
            is_inverse,
            scale: if is_inverse && is_last { 1.0 / count } else { 1.0 },
            from,
            to,
            roots,
            real_roots,
        };
        choose(&mut step, target);
        packed.push(PackedConstant { operand: None, bytes: Bytes::from(table.bytes) });
        steps.push(step);
    }
    let arrays = steps.iter().filter_map(|step| match step.to {
        FftPlace::Scratch(number) => Some(number as u64 + 1),
        _ => None,
    });
    let complex_bytes = (sizes.iter().fold(1i64, |all, &size| all.saturating_mul(size)) as u64)
        .saturating_mul(2 * part.byte_size() as u64);
    let array_bytes = complex_bytes.next_multiple_of(64);
    let scratch_bytes = arrays.max().unwrap_or(0).saturating_mul(array_bytes);
    let worker_scratch_bytes = steps.iter().map(FftStep::worker_bytes).max().unwrap_or(0);
    let tasks = work.tasks(target).min(steps.iter().map(FftStep::units).max().unwrap_or(1)).max(1);
    let plan = KernelPlan::new(FftPlan { steps, array_bytes });
    Ok(KernelPlan { packed, scratch_bytes, worker_scratch_bytes, tasks, ..plan })
}

/// Kind of transform along each dimension, in order of execution.
fn kinds(fft_type: FftType, dimensions: usize) -> Vec<(usize, FftKind)> {
    let last = dimensions - 1;
    let complex = (0..last).map(|k| (k, FftKind::Complex));
    match fft_type {
        FftType::Fft | FftType::Ifft => (0..dimensions).rev().map(|k| (k, FftKind::Complex)).collect(),
        FftType::Rfft => std::iter::once((last, FftKind::ToSpectrum)).chain(complex.rev()).collect(),
        FftType::Irfft => complex.chain([(last, FftKind::FromSpectrum)]).collect(),
    }
}

/// Chooses the layout and its number of lanes.
fn choose(step: &mut FftStep, target: &Target) {
    let max_lanes = i64::from(target.lanes(step.part.byte_size()).clamp(1, 16));
    if step.inner > 1 {
        step.layout = FftLayout::Columns;
        step.lanes = max_lanes.min(power_below(step.inner)) as u32;
        let bytes = |step: &FftStep| 2 * step.side_by_side() * step.part.byte_size() as i64;
        while bytes(step) < COLUMN_BYTES && 2 * step.side_by_side() <= step.inner {
            step.vectors *= 2;
        }
        return;
    }
    step.lanes = max_lanes as u32;
    let [read, written] = step.numbers();
    let lanes = max_lanes.min(power_below(step.outer)).min(power_below(read)).min(power_below(written));
    if lanes < 2 {
        return;
    }
    let mut transforms = 1;
    let (mut along, mut across) = (0.0, 4.0 * (2.0 + lanes.ilog2() as f64) / lanes as f64);
    for &radix in &step.radices {
        let cost = 6.0 + 4.0 * (radix as f64).log2();
        let fit = if transforms == 1 { step.points / radix } else { transforms };
        let shuffles = match (transforms, radix.count_ones()) {
            (1, 1) => 2.0 + 2.0 * (radix as f64).log2(),
            (1, _) => 2.0 * radix as f64,
            _ => 0.0,
        };
        along += (cost + shuffles) / max_lanes.min(power_below(fit)) as f64;
        across += cost / lanes as f64;
        transforms *= radix;
    }
    let side_by_side = 4 * step.points * lanes * step.part.byte_size() as i64;
    if side_by_side > target.l1_bytes as i64 {
        across *= 1.5;
    }
    if across < along {
        step.layout = FftLayout::Across;
        step.lanes = lanes as u32;
    }
}

/// The largest power of two that is at most `n`, a positive number.
fn power_below(n: i64) -> i64 {
    1 << n.max(1).ilog2()
}

/// The table of a step under construction.
struct Table {
    part: PrimitiveType,
    bytes: Vec<u8>,
}

impl Table {
    fn of_passes(&mut self, points: i64, radices: &[i64]) -> Vec<Roots> {
        let mut n = points;
        let passes = &radices[..radices.len().saturating_sub(1)];
        passes
            .iter()
            .map(|&radix| {
                let (all, count) = (n, n / radix);
                n = count;
                self.add(radix - 1, count, all)
            })
            .collect()
    }

    fn of_real(&mut self, length: i64) -> Roots {
        self.add(1, length / 2 + 1, length)
    }

    /// Adds `e^(-2 pi i (line + 1) position / n)` for `lines` lines and `count` positions.
    fn add(&mut self, lines: i64, count: i64, n: i64) -> Roots {
        let offset = (self.bytes.len() / self.part.byte_size()) as i64;
        // Makes both tables about the same size.
        let near = (count > MAX_ROOTS).then(|| 1i64 << ((count as u64).ilog2() / 2 + 1));
        let roots = Roots { offset, count, near };
        self.lines(lines, (0..roots.width()).collect(), n);
        if let Some(near) = near {
            self.lines(lines, (0..roots.far()).map(|position| position * near).collect(), n);
        }
        roots
    }

    fn lines(&mut self, lines: i64, positions: Vec<i64>, n: i64) {
        for line in 1..=lines {
            for part in [0, 1] {
                for position in &positions {
                    let (re, im) = root_of_unity(line * position, n);
                    let value = if part == 0 { re } else { im };
                    match self.part {
                        PrimitiveType::F64 => self.bytes.extend_from_slice(&value.to_le_bytes()),
                        _ => self.bytes.extend_from_slice(&(value as f32).to_le_bytes()),
                    }
                }
            }
        }
    }
}

/// `e^(-2 pi i p / n)`. Whole quarter turns are removed exactly, and the rounding error of the
/// angle is compensated.
pub fn root_of_unity(p: i64, n: i64) -> (f64, f64) {
    let p = p.rem_euclid(n);
    let eighth = (8 * p + n / 2) / n;
    let quarter = ((eighth + 1) / 2) % 4;
    let rest = 4 * p - n * ((eighth + 1) / 2);
    let (numerator, denominator) = (rest as f64, 2.0 * n as f64);
    // The remainder of pi after its 53 bits.
    const PI_REST: f64 = 1.224_646_799_147_353_2e-16;
    let product = PI * numerator;
    let of_product = PI.mul_add(numerator, -product) + PI_REST * numerator;
    let angle = product / denominator;
    let of_angle = ((-angle).mul_add(denominator, product) + of_product) / denominator;
    let (sine, cosine) = (angle.sin(), angle.cos());
    let (cosine, sine) = (cosine - sine * of_angle, sine + cosine * of_angle);
    match quarter {
        0 => (cosine, -sine),
        1 => (-sine, -cosine),
        2 => (-cosine, sine),
        _ => (sine, cosine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radices_multiply_to_the_length() {
        let table: [(i64, Option<&[i64]>); 12] = [
            (1, Some(&[])),
            (2, Some(&[2])),
            (16, Some(&[4, 4])),
            (32, Some(&[8, 4])),
            (128, Some(&[8, 4, 4])),
            (512, Some(&[8, 8, 8])),
            (1000, Some(&[8, 5, 5, 5])),
            (1024, Some(&[8, 8, 4, 4])),
            (1001, Some(&[7, 11, 13])),
            (17, None),
            (74, None),
            (10007, None),
        ];
        for (n, expected) in table {
            assert_eq!(radices(n).as_deref(), expected, "{n}");
        }
        assert!(has_kernel(FftType::Fft, &[1, 6]) && !has_kernel(FftType::Fft, &[1, 1]));
        assert!(!has_kernel(FftType::Rfft, &[6, 1]) && !has_kernel(FftType::Fft, &[MAX_LENGTH * 2]));
    }

    #[test]
    fn roots_of_unity_are_exact_to_half_an_ulp() {
        let third = 0.75f64.sqrt();
        let table = [
            (0, 1, (1.0, 0.0)),
            (1, 4, (0.0, -1.0)),
            (6, 4, (-1.0, 0.0)),
            (3, 4, (0.0, 1.0)),
            (1, 8, (0.5f64.sqrt(), -(0.5f64.sqrt()))),
            (1, 3, (-0.5, -third)),
            (2, 3, (-0.5, third)),
            (5, 6, (0.5, third)),
        ];
        for (p, n, (re, im)) in table {
            let root = root_of_unity(p, n);
            let near = (root.0 - re).abs() <= f64::EPSILON / 2.0 && (root.1 - im).abs() <= f64::EPSILON / 2.0;
            assert!(near, "{p} of {n}: {root:?}");
        }
        // The sines of small angles keep all their bits: x - x^3 / 6.
        let x = 2.0 * PI / f64::from(1 << 20);
        assert!((root_of_unity(1, 1 << 20).1 + x - x * x * x / 6.0).abs() <= x * f64::EPSILON);
    }

    #[test]
    fn layout_follows_the_shape() {
        let table = [
            ("c64[64,1000]", "FFT", "1000", "transform of 1000 by 8x5x5x5, 8 lanes along"),
            ("c64[4096,6]", "FFT", "6", "transform of 6 by 2x3, 8 lanes across"),
            (
                "c128[3,4]",
                "IFFT",
                "3,4",
                "transform of 4 by 4, 2 lanes across, then transform of 3 by 3, 4 lanes in columns",
            ),
            ("f32[256,1024]", "RFFT", "1024", "real transform of 1024 by 8x8x8, 8 lanes along"),
        ];
        let target = Target::new("x86_64-unknown-linux-gnu", "haswell", "").expect("a valid triple");
        for (operand, kind, lengths, expected) in table {
            let result = if kind == "RFFT" { "c64[256,513]" } else { operand };
            let text = format!(
                "HloModule m\n\nENTRY main {{\n  x = {operand} parameter(0)\n  \
                 ROOT y = {result} fft(x), fft_type={kind}, fft_length={{{lengths}}}\n}}\n"
            );
            let module = hlo::parse(&text).expect("HLO");
            let actual = crate::planner::plan(&module, &target).expect("a plan").to_text(&module);
            assert!(actual.contains(expected), "expected '{expected}' in {actual}");
        }
    }
}
