//! Discrete Fourier transforms.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{bounds, list, run_time};
use hlo::{FftType, InstructionId};
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
    check_lengths(cx, &sizes[sizes.len() - dimensions..])?;
    if sizes.contains(&0) {
        return Ok(x);
    }
    let lengths = cx.all_sizes(x)?.split_off(sizes.len() - dimensions);
    cx.fourier_transform(x, fft_type, &lengths)
}

/// Transforms from or to real numbers. Input 1 contains the lengths of the real signal. Longer
/// signals are truncated, and shorter ones are padded with zeros.
fn real(cx: &mut NodeContext<'_, '_>, fft_type: FftType, dimensions: usize) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    check(cx, &sizes, dimensions)?;
    let lengths = cx.bounded_sizes(1)?;
    let most = bounds(&lengths);
    cx.check(lengths.len() == dimensions, || {
        format!("fft_length: expected {dimensions} elements, got {}", list(&most))
    })?;
    check_lengths(cx, &most)?;
    let output = cx.output_type(0)?;
    let first = sizes.len() - dimensions;
    let mut result = cx.all_sizes(x)?;
    result.truncate(first);
    result.extend(&lengths);
    if let (FftType::Rfft, Some(half)) = (fft_type, result.last_mut()) {
        *half = cx.frequencies(*half)?;
    }
    let bound = bounds(&result);
    if bound.contains(&0) || sizes.contains(&0) || most.contains(&0) {
        let zeros = cx.splat(output, &bound, 0.0)?;
        return cx.bounded(zeros, &run_time(&result));
    }
    let part = output.real_part();
    let (input, input_part) = (cx.element_type(x), cx.element_type(x).real_part());
    cx.check(part == input_part, || {
        format!("input and output have parts of different types: {input} and {output}")
    })?;
    debug_assert!(matches!(part, PrimitiveType::F32 | PrimitiveType::F64));
    cx.fourier_transform(x, fft_type, &lengths)
}
