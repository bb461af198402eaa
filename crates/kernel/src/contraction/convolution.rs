//! Convolutions: the loops that [`plan::ConvolutionPlan`] describes, and the transition of finished
//! elements to the epilogue.

mod count;
pub(super) mod dense;
pub(super) mod depthwise;
mod general;
mod gradient;
pub(super) mod grid;
mod pixels;
mod streams;
mod walk;
mod winograd;

use crate::context::KernelContext;
use crate::contraction::tile::{self, Columns};
use crate::element::Element;
use crate::index::{Index, Position};
use grid::Grid;
use nest::{FunctionBuilder, ValueId};
use plan::{ConvolutionKind, ConvolutionPlan};
use shape::PrimitiveType;
use support::Result;

/// Emits a register tile, given its first feature and its vectors of features.
type PanelBody<'b> = &'b mut dyn FnMut(&mut KernelContext<'_>, &Index, &[Columns]) -> Result<()>;

/// Writes the result of a convolution and its epilogue.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &ConvolutionPlan) -> Result<()> {
    if cx.results()[0].shape.element_count() == 0 {
        return Ok(());
    }
    let grid = Grid::of(cx, plan)?;
    match &plan.kind {
        ConvolutionKind::Dense(dense) => cx.for_tasks(|cx, task| dense::emit(cx, plan, dense, &grid, &task)),
        ConvolutionKind::Depthwise(depthwise) => {
            cx.for_tasks(|cx, task| depthwise::emit(cx, plan, depthwise, &grid, &task))
        }
        ConvolutionKind::Winograd(winograd) => winograd::emit(cx, plan, winograd),
        ConvolutionKind::Gradient(gradient) => gradient::emit(cx, plan, gradient),
        ConvolutionKind::WinogradGradient(gradient) => winograd::emit_gradient(cx, plan, gradient),
        ConvolutionKind::General { lanes, chunks } => general::emit(cx, plan, *lanes, *chunks),
    }
}

/// Emits the epilogue for some neighboring features and stores the result.
fn finish(
    cx: &mut KernelContext<'_>,
    plan: &ConvolutionPlan,
    position: &Position,
    lanes: u32,
    value: Element,
) -> Result<()> {
    tile::finish(cx, plan.sums, plan.accumulator, position, lanes, value)
}

/// Loads neighboring elements (one if the type is complex) and converts them to the accumulator's
/// type.
fn load(
    b: &mut FunctionBuilder,
    plan: &ConvolutionPlan,
    from: PrimitiveType,
    pointer: ValueId,
    lanes: u32,
) -> Result<Element> {
    tile::load(b, from, plan.accumulator, pointer, lanes)
}
