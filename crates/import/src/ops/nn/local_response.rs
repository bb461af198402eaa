//! Local response normalization.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::nn::pooling::check_same;
use bounded::{Reducer, list};
use hlo::{InstructionId, Op, Window, WindowDimension};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("LRN", lrn).types("T", FLOATS_TO_32_BITS),
    rule("LRNGrad", lrn_grad).types("T", FLOATS_TO_32_BITS),
];

/// Attributes. All arithmetic is in float32, as in TensorFlow and XLA.
struct Response {
    radius: i64,
    bias: f64,
    alpha: f64,
    beta: f64,
}

impl Response {
    fn of_node(cx: &NodeContext<'_, '_>) -> Result<Self> {
        let attributes = &cx.attributes();
        let radius = attributes.int_or("depth_radius", 5)?;
        cx.check((0..=i64::from(i32::MAX)).contains(&radius), || {
            format!("depth_radius: expected 0 to 2^31 - 1, got {radius}")
        })?;
        Ok(Self {
            radius,
            bias: f64::from(attributes.float_or("bias", 1.0)?),
            alpha: f64::from(attributes.float_or("alpha", 1.0)?),
            beta: f64::from(attributes.float_or("beta", 0.5)?),
        })
    }

    /// Returns the sum of the features up to `radius` away, along the last dimension.
    fn sum_around(&self, cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
        let mut dimensions = vec![WindowDimension::of_size(1); 3];
        dimensions.push(WindowDimension {
            padding_low: self.radius,
            padding_high: self.radius,
            ..WindowDimension::of_size(2 * self.radius + 1)
        });
        cx.reduce_window(x, Reducer::Add, Window { dimensions })
    }

    /// `bias + alpha * sum(x^2 around)`.
    fn norm(&self, cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
        let squares = cx.mul(x, x)?;
        let sum = self.sum_around(cx, squares)?;
        let scaled = cx.mul_scalar(sum, self.alpha)?;
        cx.add_scalar(scaled, self.bias)
    }

    /// `norm^-beta`.
    fn scale(&self, cx: &mut NodeContext<'_, '_>, norm: InstructionId) -> Result<InstructionId> {
        let exponent = cx.splat_like(norm, -self.beta)?;
        cx.op(Op::Power {}, &[norm, exponent])
    }
}

fn image(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<InstructionId> {
    let x = cx.input(k)?;
    let sizes = cx.sizes(x);
    cx.check(sizes.len() == 4, || format!("input {k}: expected 4 dimensions, got shape {}", list(&sizes)))?;
    cx.convert(x, PrimitiveType::F32)
}

/// `LRN(x) = x / (bias + alpha * sum(x^2 around))^beta`.
fn lrn(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let element_type = cx.output_type(0)?;
    let x = image(cx, 0)?;
    let response = Response::of_node(cx)?;
    let norm = response.norm(cx, x)?;
    let scale = response.scale(cx, norm)?;
    let y = cx.mul(x, scale)?;
    cx.convert(y, element_type)
}

/// `LRNGrad(g, x, y) = g * norm^-beta - 2 * alpha * beta * x * sum(g * y / norm around)`.
fn lrn_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let element_type = cx.output_type(0)?;
    let (g, x, y) = (image(cx, 0)?, image(cx, 1)?, image(cx, 2)?);
    let sizes = cx.sizes(g);
    check_same(cx, "the input", &cx.sizes(x), &sizes)?;
    check_same(cx, "the output", &cx.sizes(y), &sizes)?;
    let response = Response::of_node(cx)?;
    let norm = response.norm(cx, x)?;
    let ratio = cx.div(y, norm)?;
    let scaled = cx.mul_scalar(ratio, -2.0 * response.alpha * response.beta)?;
    let shares = cx.mul(scaled, g)?;
    let around = response.sum_around(cx, shares)?;
    let indirect = cx.mul(x, around)?;
    let scale = response.scale(cx, norm)?;
    let direct = cx.mul(g, scale)?;
    let result = cx.add(indirect, direct)?;
    cx.convert(result, element_type)
}
