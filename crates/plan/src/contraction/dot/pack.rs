//! Packs a constant right operand.

use super::DotPlan;
use super::dims::{DotDims, Extent};
use crate::contraction::grouping::Grouping;
use crate::contraction::panels::{PanelLayout, converted, for_each_panel};
use crate::contraction::weights::{WeightArrays, Weights};
use crate::packing::Packings;
use bytes::Bytes;
use shape::Literal;

/// Lines of a transposed panel that are filled together.
const LINES: usize = 64;

/// Panels of a constant, for all products, converted to the accumulator's type.
pub(super) fn panels(literal: &Literal, plan: &DotPlan, layout: PanelLayout, packings: &Packings) -> Bytes {
    let DotDims { rhs_batch, rhs_k, columns, .. } = &plan.dims;
    let form = format!("{:?}", (plan.accumulator, plan.shape.batch, rhs_batch, rhs_k, columns, layout));
    packings.share(&[literal.bytes()], form, || fill_panels(literal, plan, layout))
}

fn fill_panels(literal: &Literal, plan: &DotPlan, layout: PanelLayout) -> Bytes {
    let literal = converted(literal, plan.accumulator);
    let source = literal.bytes();
    let (size, columns) = (layout.element_bytes as usize, layout.width as usize);
    let panels = layout.count() as usize;
    let mut packed = vec![0u8; plan.shape.batch as usize * layout.bytes() as usize];
    let batches = positions(&plan.dims.rhs_batch);
    let (ks, ns) = (positions(&plan.dims.rhs_k), positions(&plan.dims.columns));
    for_each_panel(&mut packed, layout.panel_bytes() as usize, |number, packed| {
        let base = batches[number / panels];
        let ns = &ns[number % panels * columns..];
        let ns = &ns[..columns.min(ns.len())];
        let range = |position: usize| position * size..(position + 1) * size;
        if ns.windows(2).all(|pair| pair[1] == pair[0] + 1) {
            for (packed, k) in packed.chunks_exact_mut(layout.row_bytes() as usize).zip(&ks) {
                let from = (base + k + ns[0]) * size;
                packed[..ns.len() * size].copy_from_slice(&source[from..from + ns.len() * size]);
            }
            return;
        }
        // Transposed: copies some lines of every column at a time, which stay in the cache.
        for (block, ks) in ks.chunks(LINES).enumerate() {
            for (column, n) in ns.iter().enumerate() {
                for (line, k) in ks.iter().enumerate() {
                    let to = (block * LINES + line) * columns + column;
                    packed[range(to)].copy_from_slice(&source[range(base + k + n)]);
                }
            }
        }
    });
    packed.into()
}

/// Panels of groups of summands of a constant of narrow numbers, for all products.
pub(super) fn group_panels(
    literal: &Literal,
    plan: &DotPlan,
    layout: PanelLayout,
    grouping: Grouping,
    packings: &Packings,
) -> Bytes {
    let DotDims { rhs_batch, rhs_k, columns, .. } = &plan.dims;
    let form = format!("{:?}", (grouping, plan.shape.batch, rhs_batch, rhs_k, columns, layout));
    packings.share(&[literal.bytes()], form, || fill_group_panels(literal, plan, layout, grouping))
}

fn fill_group_panels(literal: &Literal, plan: &DotPlan, layout: PanelLayout, grouping: Grouping) -> Bytes {
    let source = literal.bytes();
    let columns = layout.width as usize;
    let panels = layout.count() as usize;
    let mut packed = vec![0u8; plan.shape.batch as usize * layout.bytes() as usize];
    let batches = positions(&plan.dims.rhs_batch);
    let (ks, ns) = (positions(&plan.dims.rhs_k), positions(&plan.dims.columns));
    for_each_panel(&mut packed, layout.panel_bytes() as usize, |number, packed| {
        let base = batches[number / panels];
        let first = number % panels * columns;
        grouping.fill(packed, layout, source, |row, column, number| {
            let k = ks[grouping.summand(ks.len(), row, number)?];
            ns.get(first + column).map(|n| base + k + n)
        });
    });
    packed.into()
}

/// Panels of weights in few bits, for the only product.
pub(super) fn weight_panels(
    weights: Weights,
    arrays: &WeightArrays<'_>,
    plan: &DotPlan,
    layout: PanelLayout,
    packings: &Packings,
) -> Bytes {
    let DotDims { rhs_k, columns, .. } = &plan.dims;
    let form = format!("{:?}", (weights, arrays.scale_dimensions(), rhs_k, columns, layout));
    packings.share(&arrays.sources(), form, || fill_weight_panels(weights, arrays, plan, layout))
}

fn fill_weight_panels(
    weights: Weights,
    arrays: &WeightArrays<'_>,
    plan: &DotPlan,
    layout: PanelLayout,
) -> Bytes {
    let columns = layout.width as usize;
    let mut packed = vec![0u8; layout.bytes() as usize];
    let (ks, ns) = (positions(&plan.dims.rhs_k), positions(&plan.dims.columns));
    for_each_panel(&mut packed, layout.panel_bytes() as usize, |number, packed| {
        let ns = &ns[number * columns..];
        weights.fill(packed, layout, arrays, &ks, &ns[..columns.min(ns.len())]);
    });
    packed.into()
}

/// The positions through which some dimensions run, in row-major order.
fn positions(extents: &[Extent]) -> Vec<usize> {
    let mut positions = vec![0];
    for extent in extents {
        let along = |base: usize| (0..extent.size as usize).map(move |i| base + i * extent.stride as usize);
        positions = positions.into_iter().flat_map(along).collect();
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_in_row_major_order_for_any_strides() {
        let extents = [Extent { size: 2, stride: 5 }, Extent { size: 3, stride: 10 }];
        assert_eq!(positions(&extents), [0, 10, 20, 5, 15, 25]);
        assert_eq!(positions(&[]), [0]);
    }
}
