//! Poolings of quantized tensors, whose input and output have the same scale.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::lite::contraction::clamped;
use crate::ops::lite::convolution::{padding, pair};
use crate::ops::lite::operands::Operands;
use crate::ops::nn::windows::WindowStep;
use bounded::Reducer;
use hlo::{InstructionId, Window, WindowDimension};
use shape::{Literal, PrimitiveType};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] =
    &[rule("TFLiteAveragePool2d", average_pool_2d), rule("TFLiteMaxPool2d", max_pool_2d)];

/// Most positions along a dimension for which windows are counted.
const MOST_COUNTED: i64 = 1 << 20;

/// An input with the windows over it, and the limits of the output.
struct Pool {
    x: InstructionId,
    window: Window,
    sizes: Vec<i64>,
    limits: [i64; 2],
    element_type: PrimitiveType,
}

impl Pool {
    fn of_node(cx: &mut NodeContext<'_, '_>) -> Result<Self> {
        let operands = Operands::of_node(cx)?;
        let (x, _) = operands.input(cx, 0)?;
        let output = operands.output(cx, 0)?;
        let activation = cx.attributes().int_or("activation", 0)?;
        let limits = output
            .activation_limits(activation)
            .ok_or_else(|| Error::unsupported(format!("fused activation {activation} is not supported")))?;
        let sizes = cx.sizes(x);
        cx.check_rank("the input", &sizes, 4)?;
        let padding = padding(cx)?;
        let filter = pair(cx, "filter_height", "filter_width", 1)?;
        let strides = pair(cx, "stride_h", "stride_w", 1)?;
        let mut window = Window { dimensions: vec![WindowDimension::of_size(1); 4] };
        for d in 0..2 {
            let step = WindowStep { filter: filter[d], stride: strides[d], dilation: 1 };
            window.dimensions[d + 1] = padding.window(cx, d + 1, sizes[d + 1], step)?.0;
        }
        Ok(Self { x, window, sizes, limits, element_type: output.element_type })
    }
}

fn max_pool_2d(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let pool = Pool::of_node(cx)?;
    let largest = cx.reduce_window(pool.x, Reducer::Maximum, pool.window)?;
    clamped(cx, largest, pool.limits)
}

/// Sums divided by the number of elements within the image, rounded away from zero at halves.
fn average_pool_2d(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let pool = Pool::of_node(cx)?;
    let wide = cx.convert(pool.x, PrimitiveType::S32)?;
    let sums = cx.reduce_window(wide, Reducer::Add, pool.window.clone())?;
    let counts = counts(cx, sums, &pool)?;
    let mean = cx.composite_one(&[sums, counts], |_, operands| {
        let (sums, counts) = (operands[0], operands[1]);
        let half = counts / 2.0;
        let nudged = sums.gt(0.0).select(sums + half, sums - half);
        nudged / counts
    })?;
    let mean = clamped(cx, mean, pool.limits)?;
    cx.convert(mean, pool.element_type)
}

/// Number of elements within the image for each element of the result.
fn counts(cx: &mut NodeContext<'_, '_>, sums: InstructionId, pool: &Pool) -> Result<InstructionId> {
    let result = cx.sizes(sums);
    let mut counts: Option<InstructionId> = None;
    for d in 1..3 {
        let window = &pool.window.dimensions[d];
        let next = if window.padding_low == 0 && window.padding_high == 0 {
            cx.splat_like(sums, window.size as f64)?
        } else {
            if result[d] > MOST_COUNTED {
                return Err(Error::unsupported(format!(
                    "the result has {} elements along dimension {d}, but the maximum is {MOST_COUNTED}",
                    result[d]
                )));
            }
            let count = |position: i64| {
                let begin = position * window.stride - window.padding_low;
                ((begin + window.size).min(pool.sizes[d]) - begin.max(0)) as i32
            };
            let along: Vec<i32> = (0..result[d]).map(count).collect();
            let vector = cx.literal(Literal::from_elements(&[result[d]], &along));
            cx.broadcast(vector, &result, &[d])?
        };
        counts = Some(match counts {
            Some(others) => cx.mul(others, next)?,
            None => next,
        });
    }
    Ok(counts.expect("there are two dimensions"))
}
