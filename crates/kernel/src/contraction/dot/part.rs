//! Products inside a kernel of several contractions, which provides the addresses of their
//! operands.

use super::walk::{for_panels, parts_end};
use super::{Needed, Part, Product, RowSteps, Tiles, pack, row_dot, tiled};
use crate::context::KernelContext;
use crate::context::tasks::Span;
use crate::index::Index;
use nest::ValueId;
use plan::{DotLoops, DotPlan};
use support::{Error, Result};

/// Rows of a left operand that is not the memory of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// Address of the first row.
    pub(crate) pointer: ValueId,
    /// Number of the first row in the product.
    pub(crate) first: ValueId,
    /// Distance between rows in elements.
    pub(crate) stride: i64,
}

/// Packs the needed panels of a product's right operand, one after another.
pub(crate) fn pack_panels(
    cx: &mut KernelContext<'_>,
    tiles: Tiles<'_>,
    batch: &Index,
    needed: Needed,
    to: ValueId,
) -> Result<()> {
    let plan = tiles.dot;
    let from = cx.operand(plan.rhs_operand)?.pointer;
    let from = pack::batch_pointer(cx, from, batch, &plan.dims.rhs_batch, plan.rhs_type)?;
    let product = Product::in_place(plan, batch.clone(), from, from);
    let bytes = plan.shape.k * plan.accumulator.byte_size() as i64;
    let columns = needed.columns(cx, plan, Span::All(plan.steps()[1]))?;
    let part = Part::new(columns, RowSteps::all(Span::All(plan.steps()[2])));
    for_panels(cx, tiles, part, &mut |cx, column, parts| {
        let number = cx.scalar_value(column)?;
        let to = cx.offset(to, number, bytes);
        pack::panel_to(cx, tiles, &product, column, parts_end(parts), to)
    })
}

/// Computes some rows of a product, as far as `needed` says. `panels` is the address of the right
/// operand if [`pack_panels`] packed it.
pub(crate) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    batch: &Index,
    rows: Option<Rows>,
    panels: ValueId,
    steps: RowSteps,
    needed: Needed,
) -> Result<()> {
    let lhs = match rows {
        Some(rows) => rows.pointer,
        None => {
            let lhs = cx.operand(plan.lhs_operand)?.pointer;
            pack::batch_pointer(cx, lhs, batch, &plan.dims.lhs_batch, plan.lhs_type)?
        }
    };
    let rhs = cx.operand(plan.rhs_operand)?.pointer;
    let rhs = pack::batch_pointer(cx, rhs, batch, &plan.dims.rhs_batch, plan.rhs_type)?;
    let mut product = Product::in_place(plan, batch.clone(), lhs, rhs);
    if let Some(rows) = rows {
        product.lhs_first = Some(rows.first);
        product.lhs_row = rows.stride * plan.accumulator.byte_size() as i64;
    }
    if let Some(tiles) = Tiles::of(plan).filter(|tiles| tiles.tiled.keeps_panels) {
        product.set_panels(tiles, panels);
    }
    let columns = needed.columns(cx, plan, Span::All(plan.steps()[1]))?;
    let part = Part::new(columns, steps);
    match &plan.loops {
        DotLoops::Tiled(tiled) => tiled::emit(cx, Tiles { dot: plan, tiled }, &product, part),
        DotLoops::Rows { tile, .. } => row_dot::emit(cx, plan, *tile, &product, part),
        DotLoops::Complex { .. } => Err(Error::internal("expected real numbers in a part of a kernel")),
    }
}
