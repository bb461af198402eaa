//! Discrete Fourier transforms.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::list;
use hlo::{FftType, InstructionId, Op, SliceDimension};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("FFT", |cx| complex(cx, FftType::Fft, 1)).types("Tcomplex", COMPLEX),
    rule("FFT2D", |cx| complex(cx, FftType::Fft, 2)).types("Tcomplex", COMPLEX),
    rule("FFT3D", |cx| complex(cx, FftType::Fft, 3)).types("Tcomplex", COMPLEX),
    rule("IFFT", |cx| complex(cx, FftType::Ifft, 1)).types("Tcomplex", COMPLEX),
    rule("IFFT2D", |cx| complex(cx, FftType::Ifft, 2)).types("Tcomplex", COMPLEX),
    rule("IFFT3D", |cx| complex(cx, FftType::Ifft, 3)).types("Tcomplex", COMPLEX),
    rule("RFFT", |cx| real(cx, FftType::Rfft, 1)).types("Treal", COMPLEX_PARTS).types("Tcomplex", COMPLEX),
    rule("RFFT2D", |cx| real(cx, FftType::Rfft, 2)).types("Treal", COMPLEX_PARTS).types("Tcomplex", COMPLEX),
    rule("RFFT3D", |cx| real(cx, FftType::Rfft, 3)).types("Treal", COMPLEX_PARTS).types("Tcomplex", COMPLEX),
    rule("IRFFT", |cx| real(cx, FftType::Irfft, 1)).types("Treal", COMPLEX_PARTS).types("Tcomplex", COMPLEX),
    rule("IRFFT2D", |cx| real(cx, FftType::Irfft, 2))
        .types("Treal", COMPLEX_PARTS)
        .types("Tcomplex", COMPLEX),
    rule("IRFFT3D", |cx| real(cx, FftType::Irfft, 3))
        .types("Treal", COMPLEX_PARTS)
        .types("Tcomplex", COMPLEX),
];

/// Rejects inputs with too few dimensions.
fn check(cx: &NodeContext<'_, '_>, sizes: &[i64], dimensions: usize) -> Result<()> {
    cx.check(sizes.len() >= dimensions, || {
        format!("expected {dimensions} or more dimensions, got shape {}", list(sizes))
    })
}

fn check_lengths(cx: &NodeContext<'_, '_>, lengths: &[i64]) -> Result<()> {
    let longest = ::composite::fft::MAX_LENGTH;
    cx.check(lengths.iter().all(|&n| n <= longest), || {
        format!("a transform of lengths {} is not supported; the maximum length is {longest}", list(lengths))
    })
}

/// Transforms complex numbers along the last dimensions.
fn complex(cx: &mut NodeContext<'_, '_>, fft_type: FftType, dimensions: usize) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    check(cx, &sizes, dimensions)?;
    let lengths = sizes[sizes.len() - dimensions..].to_vec();
    check_lengths(cx, &lengths)?;
    if sizes.contains(&0) {
        return Ok(x);
    }
    cx.op(Op::Fft { fft_type, fft_length: lengths }, &[x])
}

/// Transforms from or to real numbers. Input 1 contains the lengths of the real signal. Longer
/// signals are truncated, and shorter ones are padded with zeros.
fn real(cx: &mut NodeContext<'_, '_>, fft_type: FftType, dimensions: usize) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    let sizes = cx.sizes(x);
    check(cx, &sizes, dimensions)?;
    let lengths = cx.constant_sizes(1)?;
    cx.check(lengths.len() == dimensions, || {
        format!("fft_length: expected {dimensions} elements, got {}", list(&lengths))
    })?;
    check_lengths(cx, &lengths)?;
    let first = sizes.len() - dimensions;
    let half = lengths[dimensions - 1] / 2 + 1;
    let mut result = [&sizes[..first], &lengths[..]].concat();
    let mut requested = result.clone();
    let spectrum = if fft_type == FftType::Rfft { &mut result } else { &mut requested };
    spectrum[sizes.len() - 1] = half;
    let output = cx.output_type(0)?;
    if result.contains(&0) || sizes.contains(&0) || lengths.contains(&0) {
        return cx.splat(output, &result, 0.0);
    }
    let part = output.real_part();
    let (input, input_part) = (cx.element_type(x), cx.element_type(x).real_part());
    cx.check(part == input_part, || {
        format!("input and output have parts of different types: {input} and {output}")
    })?;
    let slices = sizes.iter().zip(&requested).map(|(&size, &requested)| SliceDimension {
        start: 0,
        limit: size.min(requested),
        stride: 1,
    });
    x = cx.slice(x, slices.collect())?;
    let padding: Vec<(i64, i64, i64)> =
        sizes.iter().zip(&requested).map(|(&size, &requested)| (0, (requested - size).max(0), 0)).collect();
    let zero = cx.scalar(input, 0.0);
    x = cx.pad(x, zero, &padding)?;
    debug_assert!(matches!(part, PrimitiveType::F32 | PrimitiveType::F64));
    cx.op(Op::Fft { fft_type, fft_length: lengths }, &[x])
}
