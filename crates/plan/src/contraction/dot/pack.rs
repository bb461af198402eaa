//! Packs a constant right operand.

use super::DotPlan;
use super::dims::Extent;
use crate::contraction::for_each_panel;
use bytes::Bytes;
use shape::{ArrayShape, Literal};

/// Lines of a transposed panel that are filled together.
const LINES: usize = 64;

/// Panels `[batch][n / panel][k][panel]` of a constant, for all products, converted to the
/// accumulator's type.
pub(super) fn panels(literal: &Literal, plan: &DotPlan, panel: i64) -> Bytes {
    let literal = converted(literal, plan);
    let source = literal.bytes();
    let size = plan.accumulator.byte_size();
    let (columns, k) = (panel as usize, plan.shape.k as usize);
    let panel = k * columns * size;
    let panels = plan.padded_columns() as usize / columns.max(1);
    let mut packed = vec![0u8; plan.shape.batch as usize * panels * panel];
    let batches = positions(&plan.dims.rhs_batch);
    let (ks, ns) = (positions(&plan.dims.rhs_k), positions(&plan.dims.columns));
    for_each_panel(&mut packed, panel, |number, packed| {
        let base = batches[number / panels];
        let ns = &ns[number % panels * columns..];
        let ns = &ns[..columns.min(ns.len())];
        let range = |position: usize| position * size..(position + 1) * size;
        if ns.windows(2).all(|pair| pair[1] == pair[0] + 1) {
            for (packed, k) in packed.chunks_exact_mut(columns * size).zip(&ks) {
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

/// The positions through which some dimensions run, in row-major order.
fn positions(extents: &[Extent]) -> Vec<usize> {
    let mut positions = vec![0];
    for extent in extents {
        let along = |base: usize| (0..extent.size as usize).map(move |i| base + i * extent.stride as usize);
        positions = positions.into_iter().flat_map(along).collect();
    }
    positions
}

fn converted(literal: &Literal, plan: &DotPlan) -> Literal {
    let shape = literal.array_shape();
    if shape.element_type == plan.accumulator {
        return literal.clone();
    }
    // The accumulator is wider and of the same kind, so scalars convert exactly.
    let wide = ArrayShape::new(plan.accumulator, &shape.sizes());
    Literal::from_scalars(wide, literal.scalars())
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
