//! Resizing. Each axis has its own sources: for each position of the result, elements of the input
//! with weights, which follow from constants.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::onnx::operands::{constant, dimensions, flag, float, opset, place, required};
use bounded::{bounds, list};
use hlo::InstructionId;
use shape::{ArrayShape, Literal, PrimitiveType};
use support::Result;

mod open;

pub(crate) const RULES: &[Rule] = &[rule("OnnxResize", resize), rule("OnnxUpsample", resize)];

/// Most positions of an axis of the result.
const MOST: i64 = 1 << 24;

/// Most elements that one position of the result reads along an axis.
const MOST_TAPS: usize = 4096;

/// The attributes of a node.
struct Options<'p> {
    mode: &'p str,
    coordinates: &'p str,
    nearest: &'p str,
    cubic: f64,
    excludes_outside: bool,
    antialias: bool,
    extrapolation: f64,
}

/// An axis that is resized.
struct Axis {
    size: i64,
    result: i64,
    scale: f64,
    /// Ends of the part that is resized, for one mode.
    roi: [f64; 2],
}

/// Elements of the input that make up a position of the result.
type Taps = Vec<(i64, f64)>;

fn floats(literal: Option<Literal>) -> Vec<f64> {
    literal
        .map(|literal| literal.scalars().filter_map(|scalar| scalar.as_f64()).collect())
        .unwrap_or_default()
}

fn resize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let is_upsample = cx.node().op == "OnnxUpsample";
    // Version 10 has no region of interest and no sizes.
    let is_old = is_upsample || opset(cx)? < 11;
    let (scales, wanted, roi) = if cx.attributes().has("scales") {
        (cx.attributes().floats("scales")?.into_iter().map(f64::from).collect(), Vec::new(), Vec::new())
    } else if is_old {
        (floats(constant(cx, 1)?), Vec::new(), Vec::new())
    } else {
        let wanted = match place(cx, 3)? {
            Some(place) => cx.bounded_sizes(place)?,
            None => Vec::new(),
        };
        let reads_roi = cx.text_or("coordinate_transformation_mode", "half_pixel")? == "tf_crop_and_resize";
        let roi = if reads_roi { floats(constant(cx, 1)?) } else { Vec::new() };
        (floats(constant(cx, 2)?), wanted, roi)
    };
    let axes = cx.attributes().ints_or("axes", (0..sizes.len() as i64).collect())?;
    let axes = dimensions(cx, &axes, sizes.len())?;
    let options = Options {
        mode: cx.text_or("mode", "nearest")?,
        coordinates: if is_old {
            "asymmetric"
        } else {
            cx.text_or("coordinate_transformation_mode", "half_pixel")?
        },
        nearest: if is_old { "floor" } else { cx.text_or("nearest_mode", "round_prefer_floor")? },
        cubic: float(cx, "cubic_coeff_a", -0.75)?,
        excludes_outside: flag(cx, "exclude_outside", false)?,
        antialias: flag(cx, "antialias", false)?,
        extrapolation: float(cx, "extrapolation_value", 0.0)?,
    };
    let is_open = |&d: &usize| cx.array(x).dimensions[d].is_dynamic;
    if axes.iter().any(is_open) || wanted.iter().any(|size| size.size.is_some()) {
        return open::resize(cx, x, &options, &axes, &scales, &wanted);
    }
    let wanted = bounds(&wanted);
    let resized = resized_axes(cx, &sizes, &axes, &scales, &wanted, &roi)?;
    let mut y = x;
    let mut outside: Vec<(usize, Vec<bool>)> = Vec::new();
    for (&d, axis) in axes.iter().zip(&resized) {
        let is_same = axis.size == axis.result && axis.scale == 1.0;
        if is_same && options.coordinates != "tf_crop_and_resize" {
            continue;
        }
        cx.check(axis.size > 0 || axis.result == 0, || format!("dimension {d} has no elements"))?;
        let mut taps = Vec::new();
        let mut is_outside = Vec::new();
        for position in 0..axis.result {
            let at = coordinate(cx, &options, axis, position)?;
            is_outside.push(at < 0.0 || at > (axis.size - 1) as f64);
            taps.push(taps_at(cx, &options, axis, at)?);
        }
        if options.coordinates == "tf_crop_and_resize" && is_outside.contains(&true) {
            outside.push((d, is_outside));
        }
        y = combined(cx, y, d, &taps)?;
    }
    let result = cx.sizes(y);
    for (d, is_outside) in outside {
        let bytes: Vec<u8> = is_outside.iter().map(|&outside| u8::from(outside)).collect();
        let shape = ArrayShape::new(PrimitiveType::Pred, &[bytes.len() as i64]);
        let literal = Literal::from_bytes(shape, bytes.into());
        let literal = literal.ok_or_else(|| cx.invalid("the mask does not fit"))?;
        let mask = cx.literal(literal);
        let mask = cx.broadcast(mask, &result, &[d])?;
        let value = cx.splat_like(y, options.extrapolation)?;
        y = cx.select(mask, value, y)?;
    }
    Ok(y)
}

/// The sizes and scales of the axes, from those that the node states.
fn resized_axes(
    cx: &NodeContext<'_, '_>,
    sizes: &[i64],
    axes: &[usize],
    scales: &[f64],
    wanted: &[i64],
    roi: &[f64],
) -> Result<Vec<Axis>> {
    let count = axes.len();
    let fits = (scales.len() == count || wanted.len() == count) && (roi.is_empty() || roi.len() == 2 * count);
    cx.check(fits, || format!("{} scales and sizes {} do not fit {count} axes", scales.len(), list(wanted)))?;
    let ratio = |k: usize| wanted[k] as f64 / sizes[axes[k]] as f64;
    let mut common = None;
    if wanted.len() == count && count > 0 {
        let ratios = (0..count).map(ratio);
        common = match cx.text_or("keep_aspect_ratio_policy", "stretch")? {
            "not_larger" => Some(ratios.fold(f64::INFINITY, f64::min)),
            "not_smaller" => Some(ratios.fold(0.0, f64::max)),
            _ => None,
        };
    }
    let mut resized = Vec::new();
    for (k, &d) in axes.iter().enumerate() {
        let size = sizes[d];
        let roi = if roi.is_empty() { [0.0, 1.0] } else { [roi[k], roi[k + count]] };
        let (result, scale) = match (common, wanted.len() == count) {
            (Some(common), _) => ((common * size as f64 + 0.5).floor() as i64, common),
            (None, true) => (wanted[k], ratio(k)),
            (None, false) => ((size as f64 * scales[k] * (roi[1] - roi[0])).floor() as i64, scales[k]),
        };
        let fits = (0..=MOST).contains(&result) && size <= MOST && scale.is_finite() && scale > 0.0;
        cx.check(fits || result == 0 && size == 0, || {
            format!("dimension {d} of {size} elements cannot become one of {result}, with scale {scale}")
        })?;
        resized.push(Axis { size, result, scale, roi });
    }
    Ok(resized)
}

/// The place in the input of a position in the result.
fn coordinate(cx: &NodeContext<'_, '_>, options: &Options<'_>, axis: &Axis, position: i64) -> Result<f64> {
    let x = position as f64;
    // The extent of the result before its size is rounded.
    let (size, result) = (axis.size as f64, axis.size as f64 * axis.scale);
    Ok(match options.coordinates {
        "half_pixel" => (x + 0.5) / axis.scale - 0.5,
        "half_pixel_symmetric" => {
            let adjustment = axis.result as f64 / result;
            let offset = size / 2.0 * (1.0 - adjustment);
            offset + (x + 0.5) / axis.scale - 0.5
        }
        "pytorch_half_pixel" if axis.result <= 1 => 0.0,
        "pytorch_half_pixel" => (x + 0.5) / axis.scale - 0.5,
        "tf_half_pixel_for_nn" => (x + 0.5) / axis.scale,
        "align_corners" if axis.result <= 1 => 0.0,
        "align_corners" => x * (size - 1.0) / (result - 1.0),
        "asymmetric" => x / axis.scale,
        "tf_crop_and_resize" => {
            let [start, end] = axis.roi;
            if axis.result > 1 {
                start * (size - 1.0) + x * (end - start) * (size - 1.0) / (result - 1.0)
            } else {
                0.5 * (start + end) * (size - 1.0)
            }
        }
        other => {
            return Err(cx.invalid(format!("coordinate_transformation_mode: '{other}' does not exist")));
        }
    })
}

/// The elements of the input at a place, and their weights.
fn taps_at(cx: &NodeContext<'_, '_>, options: &Options<'_>, axis: &Axis, at: f64) -> Result<Taps> {
    let last = axis.size - 1;
    if options.mode == "nearest" {
        let index = match options.nearest {
            "round_prefer_floor" => (at - 0.5).ceil(),
            "round_prefer_ceil" => (at + 0.5).floor(),
            "floor" | "simple" => at.floor(),
            "ceil" => at.ceil(),
            other => return Err(cx.invalid(format!("nearest_mode: '{other}' does not exist"))),
        };
        return Ok(vec![((index as i64).clamp(0, last), 1.0)]);
    }
    // The place is at most one element after the base.
    let base = if at.fract() == 0.0 { at as i64 - 1 } else { at.floor() as i64 };
    let ratio = at - base as f64;
    let shrink = if options.antialias { axis.scale.min(1.0) } else { 1.0 };
    let (radius, weight): (f64, &dyn Fn(f64) -> f64) = match options.mode {
        "linear" => (1.0, &|x: f64| (1.0 - x.abs()).max(0.0)),
        "cubic" => (2.0, &|x: f64| cubic(options.cubic, x.abs())),
        other => return Err(cx.invalid(format!("mode: '{other}' does not exist"))),
    };
    let first = (-radius / shrink).floor() as i64 + 1;
    // As many on both sides of the place.
    let count = 2 * (1 - first);
    cx.check(count.unsigned_abs() as usize <= MOST_TAPS, || format!("{count} elements are too many"))?;
    let mut taps: Taps = (first..first + count)
        .map(|offset| (base + offset, weight((offset as f64 - ratio) * shrink)))
        .collect();
    if options.excludes_outside {
        for (index, weight) in &mut taps {
            if !(0..=last).contains(index) {
                *weight = 0.0;
            }
        }
    }
    if options.antialias || options.excludes_outside {
        let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
        if sum != 0.0 {
            taps.iter_mut().for_each(|(_, weight)| *weight /= sum);
        }
    }
    taps.iter_mut().for_each(|(index, _)| *index = (*index).clamp(0, last));
    Ok(taps)
}

/// Keys' cubic kernel.
fn cubic(a: f64, x: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

/// The weighted sums of elements along an axis.
fn combined(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    d: usize,
    taps: &[Taps],
) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    let most = taps.iter().map(Vec::len).max().unwrap_or(0);
    if most <= 1 {
        let indices: Vec<i64> = taps.iter().filter_map(|taps| taps.first()).map(|tap| tap.0).collect();
        let indices = cx.integers(PrimitiveType::S64, &indices)?;
        return cx.gather_along(x, indices, d as i64, 0);
    }
    let wide = if element_type == PrimitiveType::F64 { PrimitiveType::F64 } else { PrimitiveType::F32 };
    let x = cx.convert(x, wide)?;
    let mut sum: Option<InstructionId> = None;
    for k in 0..most {
        let of = |taps: &Taps| taps.get(k).copied().unwrap_or((0, 0.0));
        if taps.iter().all(|taps| of(taps).1 == 0.0) {
            continue;
        }
        let indices: Vec<i64> = taps.iter().map(|taps| of(taps).0).collect();
        let indices = cx.integers(PrimitiveType::S64, &indices)?;
        let part = cx.gather_along(x, indices, d as i64, 0)?;
        let shape = ArrayShape::new(wide, &[taps.len() as i64]);
        let weights = cx.literal(Literal::from_floats(shape, taps.iter().map(|taps| of(taps).1)));
        let sizes = cx.sizes(part);
        let weights = cx.broadcast(weights, &sizes, &[d])?;
        let part = cx.mul(part, weights)?;
        sum = Some(match sum {
            Some(sum) => cx.add(sum, part)?,
            None => part,
        });
    }
    let sum = sum.ok_or_else(|| cx.invalid("all weights are 0"))?;
    if element_type.is_integer() {
        let rounded = cx.op(hlo::Op::RoundNearestEven {}, &[sum])?;
        return cx.convert(rounded, element_type);
    }
    cx.convert(sum, element_type)
}
