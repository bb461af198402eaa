//! Packs a constant kernel.

use super::DensePlan;
use super::dims::ConvolutionDims;
use crate::contraction::for_each_panel;
use bytes::Bytes;
use shape::{ArrayShape, Literal, PrimitiveType};

/// The panels `[group][outputs / width][taps * inputs][width]` of a kernel, converted to the
/// accumulator's type. The last panel of a group is padded with zeros.
pub(super) fn panels(
    literal: &Literal,
    dims: &ConvolutionDims,
    dense: &DensePlan,
    accumulator: PrimitiveType,
) -> Bytes {
    let literal = converted(literal, accumulator);
    let source = literal.bytes();
    let size = accumulator.byte_size();
    let (groups, outputs) = (dims.groups as usize, dims.outputs as usize);
    let (rows, width) = (dense.summands as usize, dense.panel as usize);
    let panels = outputs.div_ceil(width);
    let mut packed = vec![0u8; groups * panels * rows * width * size];
    for_each_panel(&mut packed, rows * width * size, |number, packed| {
        let (group, first) = (number / panels, number % panels * width);
        let count = width.min(outputs - first);
        for (row, packed) in packed.chunks_exact_mut(width * size).enumerate() {
            let from = (row * groups + group) * outputs + first;
            packed[..count * size].copy_from_slice(&source[from * size..(from + count) * size]);
        }
    });
    packed.into()
}

fn converted(literal: &Literal, accumulator: PrimitiveType) -> Literal {
    let shape = literal.array_shape();
    if shape.element_type == accumulator {
        return literal.clone();
    }
    // The accumulator is wider and of the same kind, so scalars convert exactly.
    Literal::from_scalars(ArrayShape::new(accumulator, &shape.sizes()), literal.scalars())
}
