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
    let counts = Counts::of(cx, sums, &pool)?;
    let mean = if counts.are_few() && pool.element_type.byte_size() == 1 {
        let half = counts.map(cx, sums, |count| count / 2)?;
        let reciprocal = counts.map(cx, sums, |count| (1 << RECIPROCAL_BITS) / count + 1)?;
        cx.composite_one(&[sums, half, reciprocal], |_, operands| {
            let (sums, half, reciprocal) = (operands[0], operands[1], operands[2]);
            let product = (sums.max(-sums) + half) * reciprocal;
            let quotient = product.shift_right_arithmetic(f64::from(RECIPROCAL_BITS));
            sums.lt(0.0).select(-quotient, quotient)
        })?
    } else {
        let counts = counts.product(cx, sums)?;
        cx.composite_one(&[sums, counts], |_, operands| {
            let (sums, counts) = (operands[0], operands[1]);
            let half = counts / 2.0;
            let nudged = sums.gt(0.0).select(sums + half, sums - half);
            nudged / counts
        })?
    };
    let mean = clamped(cx, mean, pool.limits)?;
    cx.convert(mean, pool.element_type)
}

/// Fractional bits of the reciprocals of counts. Each exceeds the real number by at most 2^-22. A
/// sum of `c` bytes and half of `c` are at most 256 c, so the quotient of integers is exact if
/// 256 c c <= 2^22, and the product fits 31 bits.
const RECIPROCAL_BITS: u32 = 22;

/// Upper bound of the counts whose reciprocals are exact.
const MOST_FOR_RECIPROCALS: i64 = 127;

/// Upper bound of the reciprocals of an image, which are constants.
const MOST_RECIPROCALS: usize = 1 << 16;

/// Numbers of elements within the image, for each position along both dimensions. Without padding,
/// one number.
struct Counts([Vec<i32>; 2]);

impl Counts {
    fn of(cx: &NodeContext<'_, '_>, sums: InstructionId, pool: &Pool) -> Result<Self> {
        let result = cx.sizes(sums);
        let along = |d: usize| {
            let window = &pool.window.dimensions[d];
            if window.padding_low == 0 && window.padding_high == 0 {
                return Ok(vec![window.size as i32]);
            }
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
            Ok((0..result[d]).map(count).collect())
        };
        Ok(Self([along(1)?, along(2)?]))
    }

    /// True if a product with a reciprocal replaces the division by each count.
    fn are_few(&self) -> bool {
        let [lines, columns] = &self.0;
        let most = |counts: &[i32]| counts.iter().max().map_or(1, |&most| i64::from(most));
        let are_positive = lines.iter().chain(columns).all(|&count| count > 0);
        are_positive
            && most(lines).saturating_mul(most(columns)) <= MOST_FOR_RECIPROCALS
            && lines.len() * columns.len() <= MOST_RECIPROCALS
    }

    /// A function of the count, for each element of the result.
    fn map(
        &self,
        cx: &mut NodeContext<'_, '_>,
        sums: InstructionId,
        function: impl Fn(i32) -> i32,
    ) -> Result<InstructionId> {
        let [lines, columns] = &self.0;
        let all = lines.iter().flat_map(|line| columns.iter().map(move |column| line * column));
        let all: Vec<i32> = all.map(function).collect();
        let dimensions: Vec<usize> = [1, 2].into_iter().filter(|&d| self.0[d - 1].len() > 1).collect();
        let kept: Vec<i64> = dimensions.iter().map(|&d| self.0[d - 1].len() as i64).collect();
        let literal = cx.literal(Literal::from_elements(&kept, &all));
        let sizes = cx.sizes(sums);
        cx.broadcast(literal, &sizes, &dimensions)
    }

    /// The counts themselves, computed from those of both dimensions.
    fn product(&self, cx: &mut NodeContext<'_, '_>, sums: InstructionId) -> Result<InstructionId> {
        let sizes = cx.sizes(sums);
        let mut along = |d: usize| {
            let counts = &self.0[d - 1];
            let (kept, dimensions) =
                if counts.len() == 1 { (vec![], vec![]) } else { (vec![sizes[d]], vec![d]) };
            let literal = cx.literal(Literal::from_elements(&kept, counts));
            cx.broadcast(literal, &sizes, &dimensions)
        };
        let (lines, columns) = (along(1)?, along(2)?);
        cx.mul(lines, columns)
    }
}
