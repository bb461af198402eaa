//! Transforms of signals, windows, and arrays from overlapping blocks.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::onnx::operands::{constant, flag, number, optional, place, required};
use bounded::{Size, list};
use hlo::{FftType, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxBlackmanWindow", |cx| window(cx, [0.42, -0.5, 0.08])),
    rule("OnnxCol2Im", col2im),
    rule("OnnxDFT", dft),
    rule("OnnxHammingWindow", |cx| window(cx, [25.0 / 46.0, 25.0 / 46.0 - 1.0, 0.0])),
    rule("OnnxHannWindow", |cx| window(cx, [0.5, -0.5, 0.0])),
    rule("OnnxMelWeightMatrix", mel_weights),
    rule("OnnxSTFT", stft),
];

/// Longest transform, and largest constant.
const MOST: i64 = 1 << 24;

/// A sum of cosines over a number of positions.
fn window(cx: &mut NodeContext<'_, '_>, factors: [f64; 3]) -> Result<InstructionId> {
    let size = number(cx, 0)?.unwrap_or(0.0);
    cx.check((0.0..MOST as f64).contains(&size), || format!("a window of {size} positions"))?;
    let size = size as i64;
    let period = if flag(cx, "periodic", true)? { size } else { size - 1 };
    let element_type = cx.output_type(0)?;
    let value = |n: i64| {
        let angle = 2.0 * std::f64::consts::PI * n as f64 / period.max(1) as f64;
        factors[0] + factors[1] * angle.cos() + factors[2] * (2.0 * angle).cos()
    };
    let literal = literal_of(element_type, &[size], (0..size).map(value));
    Ok(cx.literal(literal))
}

/// A constant of floats, also of integers.
fn literal_of(element_type: PrimitiveType, sizes: &[i64], values: impl Iterator<Item = f64>) -> Literal {
    let scalar = |value: f64| {
        if element_type.is_signed_integer() {
            Scalar::Signed(value as i64)
        } else if element_type.is_unsigned_integer() {
            Scalar::Unsigned(value as u64)
        } else {
            Scalar::Float(value)
        }
    };
    Literal::from_scalars(ArrayShape::new(element_type, sizes), values.map(scalar))
}

/// The transform of the last dimension of an array (.., 1 or 2 parts), of a length. Returns (..,
/// parts).
fn transformed(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    length: Size,
    onesided: bool,
    inverse: bool,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let rank = sizes.len();
    cx.check((1..=MOST).contains(&length.bound), || format!("a transform of {} elements", length.bound))?;
    let own = cx.element_type(x);
    let wide = if own == PrimitiveType::F64 { PrimitiveType::F64 } else { PrimitiveType::F32 };
    let x = cx.convert(x, wide)?;
    let (row, parts) = (&sizes[..rank - 1], sizes[rank - 1]);
    let returns_reals = onesided && inverse;
    let part = |cx: &mut NodeContext<'_, '_>, k: i64| {
        let part = cx.slice_in(x, rank - 1, k, k + 1)?;
        cx.reshape(part, row)
    };
    let real = part(cx, 0)?;
    let y = if onesided && !inverse && parts == 1 {
        cx.fourier_transform(real, FftType::Rfft, &[length])?
    } else {
        let imaginary = if parts == 2 { part(cx, 1)? } else { cx.splat_like(real, 0.0)? };
        let complex = cx.op(Op::Complex {}, &[real, imaginary])?;
        let fft_type = match (inverse, returns_reals) {
            (true, true) => FftType::Irfft,
            (true, false) => FftType::Ifft,
            (false, _) => FftType::Fft,
        };
        cx.fourier_transform(complex, fft_type, &[length])?
    };
    let mut result = cx.sizes(y);
    result.push(1);
    if returns_reals {
        let y = cx.reshape(y, &result)?;
        return cx.convert(y, own);
    }
    let (real, imaginary) = cx.parts(y)?;
    let (real, imaginary) = (cx.reshape(real, &result)?, cx.reshape(imaginary, &result)?);
    let mut y = cx.concatenate(&[real, imaginary], rank - 1)?;
    if onesided {
        let half = cx.frequencies(length)?;
        y = cx.with_lengths(y, rank - 2, &[half, Size::known(2)])?;
    }
    cx.convert(y, own)
}

/// The discrete Fourier transform along an axis.
fn dft(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let rank = sizes.len();
    cx.check(rank >= 2 && matches!(sizes[rank - 1], 1 | 2), || {
        format!("expected a last dimension of one or two parts, got {}", list(&sizes))
    })?;
    let axis = transformed_axis(cx, rank)?;
    cx.check(axis + 1 < rank, || "the last dimension cannot be transformed".to_owned())?;
    let (onesided, inverse) = (flag(cx, "onesided", false)?, flag(cx, "inverse", false)?);
    let own = cx.all_sizes(x)?[axis];
    let length = match place(cx, 1)? {
        Some(place) => cx.bounded_element(place, 0)?,
        None if !(onesided && inverse) => own,
        None => {
            let signal = |n: i64| 2 * (n - 1);
            let size = own.size.map(|size| {
                let less = cx.add_scalar(size, -1.0)?;
                cx.mul_scalar(less, 2.0)
            });
            Size { bound: signal(own.bound), size: size.transpose()? }
        }
    };
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(axis, rank - 2);
    let rows = cx.transpose(x, &order)?;
    let y = transformed(cx, rows, length, onesided, inverse)?;
    cx.transpose(y, &order)
}

/// Returns the dimension that a transform transforms.
fn transformed_axis(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<usize> {
    let axis = if cx.attributes().int("opset")? < 20 {
        cx.attributes().int_or("axis", 1)?
    } else if let Some(place) = place(cx, 2)? {
        let axis = cx.input(place)?;
        cx.fold_element(axis, 0).ok_or_else(|| cx.not_constant(place, axis))?
    } else {
        -2
    };
    cx.dimension(axis, rank)
}

/// Transforms of overlapping frames. Inputs: the signal (batch, length, parts), the distance of
/// frames, a window, and the length of frames.
fn stft(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let step = number(cx, 1)?.unwrap_or(0.0) as i64;
    let length = frame_length(cx)?;
    if !cx.is_bounded(x) {
        return stft_of(cx, x, step, length);
    }
    let (whole, sizes) = (cx.split(x)?, cx.all_sizes(x)?);
    let result = stft_of(cx, whole.data, step, length)?;
    // Frames beyond the end of the signal are computed from undefined samples.
    let last = cx.size_sum(sizes[1], Size::known(1), -length)?;
    let last = last.ok_or_else(|| cx.invalid("the number of frames"))?;
    let frames = match (cx.size_range(sizes[1]).low, last) {
        (Some(low), _) if low >= length => cx.size_sum(last, Size::known(1), 1)?,
        _ => None,
    };
    let frames = match frames {
        Some(starts) => cx.size_quotient(starts, step)?,
        None => None,
    };
    let frames = frames.ok_or_else(|| {
        Error::unsupported(format!("signals that may be shorter than a frame of {length} samples"))
            .coded(Code::BoundedSize)
    })?;
    let mut open = vec![None; cx.rank(result)];
    (open[0], open[1]) = (whole.sizes[0], frames.size);
    cx.bounded(result, &open)
}

/// The length of frames: an input, or that of the window.
fn frame_length(cx: &mut NodeContext<'_, '_>) -> Result<i64> {
    match (place(cx, 3)?, optional(cx, 2)?) {
        (Some(_), _) => Ok(number(cx, 3)?.unwrap_or(0.0) as i64),
        (None, Some(window)) => Ok(cx.sizes(window).first().copied().unwrap_or(0)),
        (None, None) => Err(cx.invalid("expected a window or the length of frames")),
    }
}

/// The transforms of a signal of known length.
fn stft_of(
    cx: &mut NodeContext<'_, '_>,
    mut x: InstructionId,
    step: i64,
    length: i64,
) -> Result<InstructionId> {
    let mut sizes = cx.sizes(x);
    if sizes.len() == 2 {
        sizes.push(1);
        x = cx.reshape(x, &sizes)?;
    }
    cx.check(sizes.len() == 3 && matches!(sizes[2], 1 | 2), || format!("signals of shape {}", list(&sizes)))?;
    let window = optional(cx, 2)?;
    let fits = step > 0 && (1..=sizes[1].min(MOST)).contains(&length);
    cx.check(fits, || format!("frames of {length} in steps of {step} do not fit {} samples", sizes[1]))?;
    let frames = (sizes[1] - length) / step + 1;
    cx.check(frames.saturating_mul(length) <= MOST, || "there are too many frames".to_owned())?;
    let indices: Vec<i64> = (0..frames).flat_map(|k| (0..length).map(move |n| k * step + n)).collect();
    let indices = cx.integers(PrimitiveType::S64, &indices)?;
    let gathered = cx.gather_along(x, indices, 1, 0)?;
    let whole = [sizes[0], frames, length, sizes[2]];
    let mut gathered = cx.reshape(gathered, &whole)?;
    if let Some(window) = window {
        let own = cx.sizes(window);
        cx.check(own == [length], || format!("a window {} does not fit frames of {length}", list(&own)))?;
        let element_type = cx.element_type(gathered);
        let window = cx.convert(window, element_type)?;
        let window = cx.broadcast(window, &whole, &[2])?;
        gathered = cx.mul(gathered, window)?;
    }
    let onesided = flag(cx, "onesided", true)?;
    transformed(cx, gathered, Size::known(length), onesided, false)
}

/// Weights from bins of a spectrum to bins on the mel scale. Inputs: number of mel bins, length of
/// the transform, sample rate, and both ends of the frequencies.
fn mel_weights(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut inputs = [0.0; 5];
    for (k, input) in inputs.iter_mut().enumerate() {
        *input = number(cx, k)?.ok_or_else(|| cx.invalid(format!("input {k} is missing")))?;
    }
    let [bins, length, rate, low, high] = inputs;
    let fits =
        (1.0..1e4).contains(&bins) && (1.0..1e6).contains(&length) && rate > 0.0 && low >= 0.0 && high > low;
    cx.check(fits, || format!("{bins} bins of {length} at {rate} from {low} to {high}"))?;
    let (bins, spectrum) = (bins as usize, length as i64 / 2 + 1);
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let (low, high) = (mel(low), mel(high));
    let step = (high - low) / (bins as f64 + 2.0);
    let edges: Vec<i64> = (0..bins + 2)
        .map(|k| {
            let hertz = 700.0 * (10f64.powf((k as f64 * step + low) / 2595.0) - 1.0);
            ((length + 1.0) * hertz / rate).floor() as i64
        })
        .collect();
    let mut weights = vec![0.0; spectrum as usize * bins];
    for bin in 0..bins {
        let [start, center, end] = [edges[bin], edges[bin + 1], edges[bin + 2]];
        let mut set = |row: i64, value: f64| {
            if (0..spectrum).contains(&row) {
                weights[row as usize * bins + bin] = value;
            }
        };
        if center == start {
            set(center, 1.0);
        } else {
            for row in start..=center {
                set(row, (row - start) as f64 / (center - start) as f64);
            }
        }
        for row in center..end {
            set(row, (end - row) as f64 / (end - center) as f64);
        }
    }
    let element_type = cx.output_type(0)?;
    let literal = literal_of(element_type, &[spectrum, bins as i64], weights.into_iter());
    Ok(cx.literal(literal))
}

/// The sum of overlapping blocks. Inputs: columns (batch, features * block, blocks), the sizes of
/// the image, and those of blocks.
fn col2im(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let image = constant(cx, 1)?.and_then(|literal| literal.to_i64s()).unwrap_or_default();
    let block = constant(cx, 2)?.and_then(|literal| literal.to_i64s()).unwrap_or_default();
    let (sizes, rank) = (cx.sizes(x), image.len());
    let [strides, dilations] = super::windows::steps(cx, rank)?;
    let pads = super::windows::stated_pads(cx, rank)?;
    let valid = sizes.len() == 3 && block.len() == rank && rank > 0;
    let in_range = image.iter().chain(&block).all(|size| (1..1 << 24).contains(size))
        && pads.iter().flatten().all(|pad| *pad >= 0);
    cx.check(valid && in_range, || format!("blocks {} do not fit {}", list(&block), list(&image)))?;
    let taps = cx.checked_product(&block)?;
    let mut positions = Vec::new();
    for d in 0..rank {
        let span = super::windows::span(block[d], dilations[d]);
        positions.push((image[d] + pads[d][0] + pads[d][1] - span).div_euclid(strides[d]) + 1);
    }
    let fits = positions.iter().all(|&count| count > 0)
        && cx.checked_product(&positions)? == sizes[2]
        && sizes[1] % taps == 0
        && taps <= 4096;
    cx.check(fits, || format!("columns {} do not fit blocks {}", list(&sizes), list(&block)))?;
    let features = sizes[1] / taps;
    let columns = cx.reshape(x, &[sizes[0], features, taps, sizes[2]])?;
    let element_type = cx.element_type(x);
    let zero = cx.scalar(element_type, 0.0);
    let mut sum: Option<InstructionId> = None;
    for tap in 0..taps {
        let part = cx.slice_in(columns, 2, tap, tap + 1)?;
        let part = cx.reshape(part, &[&[sizes[0], features], &positions[..]].concat())?;
        let mut rest = tap;
        let mut padding = vec![(0, 0, 0); rank + 2];
        for d in (0..rank).rev() {
            let low = rest % block[d] * dilations[d] - pads[d][0];
            rest /= block[d];
            let whole = (positions[d] - 1) * strides[d] + 1;
            padding[d + 2] = (low, image[d] - whole - low, strides[d] - 1);
        }
        let placed = cx.pad(part, zero, &padding)?;
        sum = Some(match sum {
            Some(sum) => cx.add(sum, placed)?,
            None => placed,
        });
    }
    sum.ok_or_else(|| cx.invalid("the blocks are empty"))
}
