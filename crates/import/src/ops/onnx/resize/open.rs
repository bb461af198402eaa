//! Resizing along dimensions whose sizes are open: a run computes the places and the weights.

use super::{MOST, Options};
use crate::node::context::NodeContext;
use crate::ops::image::resample::{Resampling, repeated};
use crate::ops::onnx::sampling::cubic;
use bounded::Size;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::{Code, Error, Result};

/// Largest denominator of a scale.
const MOST_PARTS: i64 = 64;

fn unsupported(what: String) -> Error {
    Error::unsupported(format!("{what} is not supported where a dimension that is resized has an open size"))
        .coded(Code::BoundedSize)
}

/// Resizes dimensions by scales, or to sizes.
pub(super) fn resize(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    options: &Options<'_>,
    axes: &[usize],
    scales: &[f64],
    wanted: &[Size],
) -> Result<InstructionId> {
    let policy = cx.text_or("keep_aspect_ratio_policy", "stretch")?;
    if policy != "stretch" {
        return Err(unsupported(format!("keep_aspect_ratio_policy '{policy}'")));
    }
    if options.antialias {
        return Err(unsupported("antialias".to_owned()));
    }
    let fits = [scales.len(), wanted.len()].contains(&axes.len());
    cx.check(fits, || {
        format!("{} scales and {} sizes do not fit {} axes", scales.len(), wanted.len(), axes.len())
    })?;
    let mut y = x;
    for (k, &d) in axes.iter().enumerate() {
        let from = cx.all_sizes(y)?[d];
        if let Some(&size) = wanted.get(k) {
            if cx.known_difference(size, from) != Some(0) {
                y = resampled(cx, y, d, options, size, None)?;
            }
            continue;
        }
        let scale = scales[k];
        if scale == 1.0 {
            continue;
        }
        cx.check(scale.is_finite() && scale > 0.0, || format!("dimension {d} has the scale {scale}"))?;
        y = match fraction(scale) {
            Some((times, 1)) if copies(options) => repeated(cx, y, d, times)?,
            parts => {
                let size = scaled(cx, from, scale, parts)?;
                resampled(cx, y, d, options, size, Some(scale))?
            }
        };
    }
    Ok(y)
}

/// A positive number as a fraction.
fn fraction(scale: f64) -> Option<(i64, i64)> {
    let fits =
        |&whole: &i64| (scale * whole as f64).fract() == 0.0 && (1.0..1e6).contains(&(scale * whole as f64));
    (1..=MOST_PARTS).find(fits).map(|whole| ((scale * whole as f64) as i64, whole))
}

/// A size times a scale, rounded down.
fn scaled(cx: &mut NodeContext<'_, '_>, from: Size, scale: f64, parts: Option<(i64, i64)>) -> Result<Size> {
    if let Some((times, divisor)) = parts
        && let Some(size) = cx.size_fraction(from, times, divisor)?
    {
        return Ok(size);
    }
    let bound = (from.bound as f64 * scale).floor();
    cx.check(bound <= MOST as f64, || format!("{} elements become {bound}, which are too many", from.bound))?;
    let size = cx.size_value(from)?;
    let size = cx.convert(size, PrimitiveType::F64)?;
    let size = cx.mul_scalar(size, scale)?;
    let size = cx.op(Op::Floor {}, &[size])?;
    Ok(Size { bound: bound as i64, size: Some(cx.convert(size, PrimitiveType::S32)?) })
}

/// True if enlarging by a whole number repeats each element that many times.
fn copies(options: &Options<'_>) -> bool {
    let is_rounded = options.nearest.starts_with("round");
    let is_floor = matches!(options.nearest, "floor" | "simple");
    options.mode == "nearest"
        && match options.coordinates {
            "asymmetric" | "tf_half_pixel_for_nn" => is_floor,
            "half_pixel" | "half_pixel_symmetric" | "pytorch_half_pixel" => is_rounded,
            _ => false,
        }
}

/// Resizes a dimension to a size. Without a scale, it is the quotient of the sizes.
fn resampled(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    d: usize,
    options: &Options<'_>,
    size: Size,
    scale: Option<f64>,
) -> Result<InstructionId> {
    let from = cx.sizes(x)[d];
    cx.check((0..=MOST).contains(&size.bound) && from <= MOST, || {
        format!("dimension {d} of up to {from} elements cannot become one of up to {}", size.bound)
    })?;
    let along = Resampling::new(cx, x, d, size, PrimitiveType::F64)?;
    let scale = match scale {
        Some(scale) => along.number(cx, scale),
        None => cx.div(along.to, along.from)?,
    };
    let places = places(cx, &along, options, scale)?;
    let element_type = cx.element_type(x);
    if options.mode == "nearest" {
        let nearest = match options.nearest {
            "round_prefer_floor" => {
                let below = cx.add_scalar(places, -0.5)?;
                cx.op(Op::Ceil {}, &[below])?
            }
            "round_prefer_ceil" => {
                let above = cx.add_scalar(places, 0.5)?;
                cx.op(Op::Floor {}, &[above])?
            }
            "floor" | "simple" => cx.op(Op::Floor {}, &[places])?,
            "ceil" => cx.op(Op::Ceil {}, &[places])?,
            other => return Err(cx.invalid(format!("nearest_mode: '{other}' does not exist"))),
        };
        let copied = along.elements(cx, x, d, nearest)?;
        return along.finish(cx, x, d, copied);
    }
    let radius = match options.mode {
        "linear" => 1,
        "cubic" => 2,
        other => return Err(cx.invalid(format!("mode: '{other}' does not exist"))),
    };
    let wide = if element_type == PrimitiveType::F64 { PrimitiveType::F64 } else { PrimitiveType::F32 };
    let array = cx.convert(x, wide)?;
    let base = cx.op(Op::Floor {}, &[places])?;
    let ratio = cx.sub(places, base)?;
    let mut taps = Vec::new();
    let mut total: Option<InstructionId> = None;
    for offset in 1 - radius..=radius {
        let place = cx.add_scalar(base, offset as f64)?;
        let distance = cx.add_scalar(ratio, -(offset as f64))?;
        let distance = cx.op(Op::Abs {}, &[distance])?;
        let mut weight = match radius {
            1 => {
                let one = cx.splat_like(distance, 1.0)?;
                cx.sub(one, distance)?
            }
            _ => cubic(cx, options.cubic, distance, offset == 0 || offset == 1)?,
        };
        if options.excludes_outside {
            let (zero, last) = (along.number(cx, 0.0), along.last(cx)?);
            let (zero, last) = (along.spread(cx, zero)?, along.spread(cx, last)?);
            let is_after = cx.compare(ComparisonDirection::Ge, place, zero)?;
            let is_before = cx.compare(ComparisonDirection::Le, place, last)?;
            let is_inside = cx.op(Op::And {}, &[is_after, is_before])?;
            weight = cx.select(is_inside, weight, zero)?;
            total = Some(match total {
                Some(total) => cx.add(total, weight)?,
                None => weight,
            });
        }
        taps.push((place, weight));
    }
    let mut sum: Option<InstructionId> = None;
    for (place, mut weight) in taps {
        if let Some(total) = total {
            weight = cx.div(weight, total)?;
        }
        let part = along.elements(cx, array, d, place)?;
        let weight = along.weights(cx, weight, part, d)?;
        let part = cx.mul(part, weight)?;
        sum = Some(match sum {
            Some(sum) => cx.add(sum, part)?,
            None => part,
        });
    }
    let mut sum = sum.ok_or_else(|| cx.invalid("no element has a weight"))?;
    if element_type.is_integer() {
        sum = cx.op(Op::RoundNearestEven {}, &[sum])?;
    }
    let resized = cx.convert(sum, element_type)?;
    along.finish(cx, x, d, resized)
}

/// The places in the array of the positions of the result.
fn places(
    cx: &mut NodeContext<'_, '_>,
    along: &Resampling,
    options: &Options<'_>,
    scale: InstructionId,
) -> Result<InstructionId> {
    let zero = along.number(cx, 0.0);
    let at_centers = |cx: &mut NodeContext<'_, '_>, shift: f64| {
        let scale = along.spread(cx, scale)?;
        let centers = cx.add_scalar(along.positions, 0.5)?;
        let places = cx.div(centers, scale)?;
        if shift == 0.0 { Ok(places) } else { cx.add_scalar(places, shift) }
    };
    match options.coordinates {
        "half_pixel" => at_centers(cx, -0.5),
        "half_pixel_symmetric" => {
            // The extent of the result before its size is rounded.
            let extent = cx.mul(along.from, scale)?;
            let adjustment = cx.div(along.to, extent)?;
            let one = along.number(cx, 1.0);
            let rest = cx.sub(one, adjustment)?;
            let half = cx.mul_scalar(along.from, 0.5)?;
            let offset = cx.mul(half, rest)?;
            let (offset, places) = (along.spread(cx, offset)?, at_centers(cx, -0.5)?);
            cx.add(offset, places)
        }
        "pytorch_half_pixel" => {
            let places = at_centers(cx, -0.5)?;
            let none = along.spread(cx, zero)?;
            let is_one = cx.compare_scalar(ComparisonDirection::Le, along.to, 1.0)?;
            let is_one = along.spread(cx, is_one)?;
            cx.select(is_one, none, places)
        }
        "tf_half_pixel_for_nn" => at_centers(cx, 0.0),
        "align_corners" => {
            let extent = cx.mul(along.from, scale)?;
            let (last, last_of_result) = (along.last(cx)?, cx.add_scalar(extent, -1.0)?);
            let step = cx.div(last, last_of_result)?;
            let step = along.for_one(cx, zero, step)?;
            let step = along.spread(cx, step)?;
            cx.mul(along.positions, step)
        }
        "asymmetric" => {
            let scale = along.spread(cx, scale)?;
            cx.div(along.positions, scale)
        }
        "tf_crop_and_resize" => {
            Err(unsupported("coordinate_transformation_mode 'tf_crop_and_resize'".to_owned()))
        }
        other => Err(cx.invalid(format!("coordinate_transformation_mode: '{other}' does not exist"))),
    }
}
