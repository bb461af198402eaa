//! Packs a constant kernel.

use super::DensePlan;
use super::dense;
use super::depthwise::{self, PackedColumns};
use super::dims::ConvolutionDims;
use crate::contraction::grouping::{GROUP_BYTES, Grouping};
use crate::contraction::panels::{converted, for_each_panel};
use bytes::Bytes;
use shape::Literal;

/// The panels `[group][outputs / width][taps * inputs][width]` of a kernel, converted to their
/// type. The last panel of a group is padded with zeros.
pub(super) fn panels(literal: &Literal, dims: &ConvolutionDims, dense: &DensePlan) -> Bytes {
    if let Some(grouping) = dense.grouping {
        return group_panels(literal, dims, dense, grouping);
    }
    let literal = converted(literal, dense.stored);
    let source = literal.bytes();
    let layout = dense.panels;
    let size = layout.element_bytes as usize;
    let (groups, outputs, width) = (dims.groups as usize, layout.columns as usize, layout.width as usize);
    let panels = layout.count() as usize;
    let mut packed = vec![0u8; groups * layout.bytes() as usize];
    for_each_panel(&mut packed, layout.panel_bytes() as usize, |number, packed| {
        let (group, first) = (number / panels, number % panels * width);
        let count = width.min(outputs - first);
        for (row, packed) in packed.chunks_exact_mut(layout.row_bytes() as usize).enumerate() {
            let from = (row * groups + group) * outputs + first;
            packed[..count * size].copy_from_slice(&source[from * size..(from + count) * size]);
        }
    });
    packed.into()
}

/// The same panels of groups of input features of a kernel of narrow numbers. The header of a panel
/// of bytes has a row for each tap.
fn group_panels(literal: &Literal, dims: &ConvolutionDims, dense: &DensePlan, grouping: Grouping) -> Bytes {
    let source = literal.bytes();
    let layout = dense.panels;
    let (inputs, groups) = (dense::run(dims, grouping.summands()) as usize, dims.groups as usize);
    let (outputs, width, rows) = (layout.columns as usize, layout.width as usize, dense.inputs as usize);
    let panels = layout.count() as usize;
    let mut packed = vec![0u8; groups * layout.bytes() as usize];
    for_each_panel(&mut packed, layout.panel_bytes() as usize, |number, packed| {
        let (group, first) = (number / panels, number % panels * width);
        grouping.fill(packed, layout, source, |row, column, number| {
            let input = grouping.summand(inputs, row % rows, number)?;
            let (tap, output) = (row / rows, first + column);
            let at = ((tap * inputs + input) * groups + group) * outputs + output;
            (output < outputs).then_some(at)
        });
    });
    packed.into()
}

/// The groups of taps of a depthwise kernel, `[plane][lines / 4][column][feature][4]`, after the
/// sums of all taps of each feature.
pub(super) fn columns(literal: &Literal, dims: &ConvolutionDims, columns: &PackedColumns) -> Bytes {
    let source = literal.bytes();
    let (features, lines) = (columns.panel.columns as usize, depthwise::column(dims) as usize);
    let groups = columns.grouping.groups(lines as i64) as usize;
    let width = columns_of_window(dims) as usize;
    let mut packed = vec![0u8; columns.panel.bytes() as usize];
    columns.grouping.fill(&mut packed, columns.panel, source, |row, feature, byte| {
        let (plane, group, column) = (row / (groups * width), row / width % groups, row % width);
        let line = group * GROUP_BYTES as usize + byte;
        (line < lines).then_some(((plane * lines + line) * width + column) * features + feature)
    });
    packed.into()
}

/// Columns of the window.
fn columns_of_window(dims: &ConvolutionDims) -> i64 {
    dims.spatial.last().map_or(1, |d| d.window.size)
}
