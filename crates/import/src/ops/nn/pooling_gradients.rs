//! The gradients of pooling.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::math::reductions::accumulation_type;
use crate::ops::nn::pooling::{PoolWindows, check_same, divide_by_counts};
use bounded::{Reducer, lowest};
use hlo::{
    ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, InstructionId, Op, Window,
    WindowDimension,
};
use shape::{PrimitiveType, Shape};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("MaxPoolGrad", |cx| max_pool_grad(cx, 4)).types("T", REAL),
    rule("MaxPoolGradV2", |cx| max_pool_grad(cx, 4)).types("T", REAL),
    rule("MaxPool3DGrad", |cx| max_pool_grad(cx, 5)).types("T", FLOATS_TO_32_BITS),
    rule("AvgPoolGrad", |cx| avg_pool_grad(cx, 4)).types("T", FLOATS),
    rule("AvgPool3DGrad", |cx| avg_pool_grad(cx, 5)).types("T", FLOATS),
    rule("MaxPoolGradGrad", |cx| max_pool_grad_grad(cx, 4)).types("T", &[tf::DataType::Float]),
    rule("MaxPoolGradGradV2", |cx| max_pool_grad_grad(cx, 4)).types("T", &[tf::DataType::Float]),
    rule("MaxPool3DGradGrad", |cx| max_pool_grad_grad(cx, 5)).types("T", &[tf::DataType::Float]),
];

/// `MaxPoolGrad(x, pooled, gradient)`: adds each window's gradient to the first of its largest
/// elements.
fn max_pool_grad(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<InstructionId> {
    let (x, gradient) = (cx.input(0)?, cx.input(2)?);
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    cx.check_rank("the original input", &sizes, rank)?;
    let pool = PoolWindows::of_node(cx, &sizes, 3)?;
    check_same(cx, "the gradient", &cx.sizes(gradient), &pool.result)?;
    let gradient = cx.convert(gradient, element_type)?;
    let zero = cx.scalar(element_type, 0.0);
    let select = not_less(cx, element_type)?;
    let scatter = cx.reducer(Reducer::Add, element_type)?;
    let result =
        cx.op(Op::SelectAndScatter { window: pool.window, select, scatter }, &[x, gradient, zero])?;
    let output_type = cx.output_type(0)?;
    cx.convert(result, output_type)
}

/// Returns the computation `(x, y) -> x >= y`.
fn not_less(cx: &mut NodeContext<'_, '_>, element_type: PrimitiveType) -> Result<ComputationId> {
    let module = cx.module_mut();
    let mut builder = ComputationBuilder::new(format!("ge.{element_type}"));
    let x = builder.parameter("x", Shape::scalar(element_type));
    let y = builder.parameter("y", Shape::scalar(element_type));
    let op = Op::Compare { direction: ComparisonDirection::Ge, comparison_type: ComparisonType::Default };
    let root = builder.op(module, op, &[x, y])?;
    Ok(module.add_computation(builder.finish(root)))
}

/// `AvgPoolGrad(input_sizes, gradient)`: the gradient of each element is the sum over the windows
/// that contain it, each divided by the number of its elements.
fn avg_pool_grad(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<InstructionId> {
    let gradient = cx.input(1)?;
    let (gradient_sizes, element_type) = (cx.sizes(gradient), cx.element_type(gradient));
    let sizes = cx.constant_sizes(0)?;
    cx.check_rank("the original input", &sizes, rank)?;
    let pool = PoolWindows::of_node(cx, &sizes, 2)?;
    check_same(cx, "the gradient", &gradient_sizes, &pool.result)?;
    if gradient_sizes.contains(&0) {
        return cx.splat(element_type, &sizes, 0.0);
    }
    let wide = cx.convert(gradient, accumulation_type(element_type))?;
    let parts = divide_by_counts(cx, wide, &sizes, &pool)?;
    // The windows that contain an element are consecutive. Their sum is thus that of a window on
    // the gradient, dilated by the strides.
    let mut window = Window::default();
    for (d, forward) in pool.window.dimensions.iter().enumerate() {
        let spread = (gradient_sizes[d] - 1) * forward.stride + 1;
        let padding_low = forward.size - 1 - forward.padding_low;
        window.dimensions.push(WindowDimension {
            padding_low,
            padding_high: sizes[d] + forward.size - 1 - spread - padding_low,
            base_dilation: forward.stride,
            ..WindowDimension::of_size(forward.size)
        });
    }
    let sums = cx.reduce_window(parts, Reducer::Add, window)?;
    cx.convert(sums, element_type)
}

/// `MaxPoolGradGrad(x, pooled, gradient)`: the gradient at the first of the largest elements of
/// each window.
fn max_pool_grad_grad(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<InstructionId> {
    let (x, gradient) = (cx.input(0)?, cx.input(2)?);
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    cx.check_rank("the original input", &sizes, rank)?;
    let pool = PoolWindows::of_node(cx, &sizes, 3)?;
    check_same(cx, "the gradient", &cx.sizes(gradient), &sizes)?;
    let least = cx.literal(lowest(element_type));
    let zero = cx.scalar(element_type, 0.0);
    let to_apply = larger_of_pairs(cx, element_type)?;
    let pairs = cx.op(Op::ReduceWindow { window: pool.window, to_apply }, &[x, gradient, least, zero])?;
    cx.tuple_element(pairs, 1)
}

/// Returns the computation `((x, g), (y, h)) -> x >= y ? (x, g) : (y, h)`.
fn larger_of_pairs(cx: &mut NodeContext<'_, '_>, element_type: PrimitiveType) -> Result<ComputationId> {
    let module = cx.module_mut();
    let mut builder = ComputationBuilder::new(format!("larger_of_pairs.{element_type}"));
    let [x, g, y, h] = ["x", "g", "y", "h"].map(|name| builder.parameter(name, Shape::scalar(element_type)));
    let ge = Op::Compare { direction: ComparisonDirection::Ge, comparison_type: ComparisonType::Default };
    let first = builder.op(module, ge, &[x, y])?;
    let value = builder.op(module, Op::Select {}, &[first, x, y])?;
    let gradient = builder.op(module, Op::Select {}, &[first, g, h])?;
    let root = builder.op(module, Op::Tuple {}, &[value, gradient])?;
    Ok(module.add_computation(builder.finish(root)))
}
