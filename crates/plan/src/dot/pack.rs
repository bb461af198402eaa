//! Packs a constant right operand.

use super::DotPlan;
use super::dims::Extent;
use bytes::Bytes;
use shape::{ArrayShape, Literal};

/// All products' panels `[batch][n / panel][k][panel]` of a constant, converted to the accumulator's type.
pub(super) fn panels(literal: &Literal, plan: &DotPlan) -> Bytes {
    let literal = converted(literal, plan);
    let source = literal.bytes();
    let size = plan.accumulator.byte_size();
    let (columns, k) = (plan.panel as usize, plan.shape.k as usize);
    let panel = k * columns * size;
    let panels = plan.padded_columns() as usize / columns.max(1);
    let mut packed = vec![0u8; plan.shape.batch as usize * panels * panel];
    let (ks, ns) = (positions(&plan.dims.rhs_k), positions(&plan.dims.columns));
    for (batch, base) in positions(&plan.dims.rhs_batch).into_iter().enumerate() {
        for (k, k_offset) in ks.iter().enumerate() {
            for (n, n_offset) in ns.iter().enumerate() {
                let from = (base + k_offset + n_offset) * size;
                let to = (batch * panels + n / columns) * panel + (k * columns + n % columns) * size;
                packed[to..to + size].copy_from_slice(&source[from..from + size]);
            }
        }
    }
    packed.into()
}

/// The positions that some dimensions run through, in row-major order.
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
    fn positions_run_in_row_major_order_whatever_the_strides() {
        let extents = [Extent { size: 2, stride: 5 }, Extent { size: 3, stride: 10 }];
        assert_eq!(positions(&extents), [0, 10, 20, 5, 15, 25]);
        assert_eq!(positions(&[]), [0]);
    }
}
