//! Colors of images. The last dimension contains red, green, and blue, or hue, saturation, and
//! value.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::math::reductions::accumulation_type;
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("RGBToHSV", |cx| {
        let x = cx.input(0)?;
        let rgb = channels(cx, x)?;
        let hsv = hsv_of_rgb(cx, rgb)?;
        joined(cx, hsv)
    })
    .types("T", FLOATS),
    rule("HSVToRGB", |cx| {
        let x = cx.input(0)?;
        let hsv = channels(cx, x)?;
        let rgb = rgb_of_hsv(cx, hsv)?;
        joined(cx, rgb)
    })
    .types("T", FLOATS),
    rule("AdjustHue", |cx| adjust(cx, turn_hue)).types("T", FLOATS_TO_32_BITS),
    rule("AdjustSaturation", |cx| adjust(cx, scale_saturation)).types("T", FLOATS_TO_32_BITS),
    rule("AdjustContrastv2", adjust_contrast).types("T", FLOATS_TO_32_BITS),
];

type Channels = [InstructionId; 3];

/// Returns the three channels, each an array whose last dimension is 1.
fn channels(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<Channels> {
    let sizes = cx.sizes(x);
    cx.check(sizes.last() == Some(&3), || {
        format!("expected 3 channels in the last dimension, got shape {}", list(&sizes))
    })?;
    let last = sizes.len() - 1;
    Ok([cx.slice_in(x, last, 0, 1)?, cx.slice_in(x, last, 1, 2)?, cx.slice_in(x, last, 2, 3)?])
}

fn joined(cx: &mut NodeContext<'_, '_>, channels: Channels) -> Result<InstructionId> {
    let last = cx.rank(channels[0]) - 1;
    cx.concatenate(&channels, last)
}

/// Converts RGB to hue in turns from 0 to 1 (0 for grays), saturation (0 for black), and value (the
/// largest channel).
fn hsv_of_rgb(cx: &mut NodeContext<'_, '_>, [red, green, blue]: Channels) -> Result<Channels> {
    let larger = cx.op(Op::Maximum {}, &[red, green])?;
    let value = cx.op(Op::Maximum {}, &[larger, blue])?;
    let smaller = cx.op(Op::Minimum {}, &[red, green])?;
    let least = cx.op(Op::Minimum {}, &[smaller, blue])?;
    let range = cx.sub(value, least)?;
    let zero = cx.splat_like(value, 0.0)?;
    let share = cx.div(range, value)?;
    let is_lit = cx.compare_scalar(ComparisonDirection::Gt, value, 0.0)?;
    let saturation = cx.select(is_lit, share, zero)?;
    let sixth = cx.splat_like(range, 1.0 / 6.0)?;
    let unit = cx.div(sixth, range)?;
    let arc = |cx: &mut NodeContext<'_, '_>, a, b, start: f64| {
        let difference = cx.sub(a, b)?;
        let angle = cx.mul(unit, difference)?;
        cx.add_scalar(angle, start)
    };
    let (from_green, from_blue) = (arc(cx, blue, red, 2.0 / 6.0)?, arc(cx, red, green, 4.0 / 6.0)?);
    let from_red = {
        let difference = cx.sub(green, blue)?;
        cx.mul(unit, difference)?
    };
    let is_green = cx.compare(ComparisonDirection::Eq, green, value)?;
    let hue = cx.select(is_green, from_green, from_blue)?;
    let is_red = cx.compare(ComparisonDirection::Eq, red, value)?;
    let hue = cx.select(is_red, from_red, hue)?;
    let is_colored = cx.compare_scalar(ComparisonDirection::Gt, range, 0.0)?;
    let hue = cx.select(is_colored, hue, zero)?;
    let is_before = cx.compare_scalar(ComparisonDirection::Lt, hue, 0.0)?;
    let turned = cx.add_scalar(hue, 1.0)?;
    Ok([cx.select(is_before, turned, hue)?, saturation, value])
}

/// Converts HSV to RGB. Each channel is piecewise linear in the hue.
fn rgb_of_hsv(cx: &mut NodeContext<'_, '_>, [hue, saturation, value]: Channels) -> Result<Channels> {
    let sixths = cx.mul_scalar(hue, 6.0)?;
    let (zero, one) = (cx.splat_like(hue, 0.0)?, cx.splat_like(hue, 1.0)?);
    let white = cx.sub(one, saturation)?;
    let mut channel = |center: f64, is_outside: bool| {
        let from_center = cx.add_scalar(sixths, -center)?;
        let distance = cx.op(Op::Abs {}, &[from_center])?;
        let strength = if is_outside {
            cx.add_scalar(distance, -1.0)?
        } else {
            let two = cx.splat_like(distance, 2.0)?;
            cx.sub(two, distance)?
        };
        let strength = cx.op(Op::Clamp {}, &[zero, strength, one])?;
        let colored = cx.mul(saturation, strength)?;
        let mixed = cx.add(white, colored)?;
        cx.mul(mixed, value)
    };
    Ok([channel(3.0, true)?, channel(2.0, false)?, channel(4.0, false)?])
}

/// Returns images of rank 3 or more, and a scalar.
fn image_and_scalar(cx: &mut NodeContext<'_, '_>) -> Result<(InstructionId, InstructionId)> {
    let (x, scalar) = (cx.input(0)?, cx.input(1)?);
    let (sizes, rank) = (cx.sizes(x), cx.rank(scalar));
    cx.check(sizes.len() >= 3 && rank == 0, || {
        format!("expected images of rank 3 or more and a scalar, got {} and rank {rank}", list(&sizes))
    })?;
    Ok((x, scalar))
}

/// Changes hue, saturation, and value by a scalar, in float32.
fn adjust(
    cx: &mut NodeContext<'_, '_>,
    change: fn(&mut NodeContext<'_, '_>, Channels, InstructionId) -> Result<Channels>,
) -> Result<InstructionId> {
    let (x, amount) = image_and_scalar(cx)?;
    let wide = cx.convert(x, PrimitiveType::F32)?;
    let rgb = channels(cx, wide)?;
    let hsv = hsv_of_rgb(cx, rgb)?;
    let sizes = cx.sizes(hsv[0]);
    let amount = cx.broadcast(amount, &sizes, &[])?;
    let changed = change(cx, hsv, amount)?;
    let rgb = rgb_of_hsv(cx, changed)?;
    let adjusted = joined(cx, rgb)?;
    let element_type = cx.element_type(x);
    cx.convert(adjusted, element_type)
}

/// Rotates the hue by `delta` turns.
fn turn_hue(cx: &mut NodeContext<'_, '_>, hsv: Channels, delta: InstructionId) -> Result<Channels> {
    let turned = cx.add(hsv[0], delta)?;
    let turns = cx.op(Op::Floor {}, &[turned])?;
    Ok([cx.sub(turned, turns)?, hsv[1], hsv[2]])
}

/// Multiplies the saturation by a scale, clamped to [0, 1].
fn scale_saturation(cx: &mut NodeContext<'_, '_>, hsv: Channels, scale: InstructionId) -> Result<Channels> {
    let scaled = cx.mul(hsv[1], scale)?;
    let (zero, one) = (cx.splat_like(scaled, 0.0)?, cx.splat_like(scaled, 1.0)?);
    Ok([hsv[0], cx.op(Op::Clamp {}, &[zero, scaled, one])?, hsv[2]])
}

/// `AdjustContrastv2(x, factor) = x * factor + mean * (1 - factor)`, with the mean of each channel
/// of each image.
fn adjust_contrast(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, factor) = image_and_scalar(cx)?;
    let (element_type, sizes) = (cx.element_type(x), cx.sizes(x));
    let rank = sizes.len();
    let sum_type = accumulation_type(element_type);
    let wide = cx.convert(x, sum_type)?;
    let sum = cx.reduce(wide, Reducer::Add, &[rank - 3, rank - 2])?;
    let pixels = cx.checked_product(&sizes[rank - 3..rank - 1])?;
    let pixels = cx.splat_like(sum, pixels as f64)?;
    let mean = cx.div(sum, pixels)?;
    let mean = cx.convert(mean, element_type)?;
    let factor = cx.convert(factor, element_type)?;
    let one = cx.scalar(element_type, 1.0);
    let rest = cx.sub(one, factor)?;
    let mean_sizes = cx.sizes(mean);
    let rest = cx.broadcast(rest, &mean_sizes, &[])?;
    let offset = cx.mul(mean, rest)?;
    let dimensions: Vec<usize> = (0..rank).filter(|&d| d != rank - 3 && d != rank - 2).collect();
    let offset = cx.broadcast(offset, &sizes, &dimensions)?;
    let factor = cx.broadcast(factor, &sizes, &[])?;
    let scaled = cx.mul(x, factor)?;
    cx.add(scaled, offset)
}
