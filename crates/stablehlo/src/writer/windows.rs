//! Operations whose attributes describe windows, padding, or indices.

use super::attributes::{booleans, integer, integers, pairs};
use super::body::Body;
use super::{Version, attributes};
use hlo::{Op, Window, WindowDimension};
use support::{Error, Result};

impl Body<'_, '_> {
    /// Returns the operation and its attributes; `None` for other opcodes.
    pub(super) fn window_or_index_form(&self, op: &Op) -> Result<Option<attributes::NameAndAttributes>> {
        Ok(Some(match op {
            Op::Dot { dot_dimension_numbers } => (
                "stablehlo.dot_general",
                vec![("dot_dimension_numbers", attributes::dot(dot_dimension_numbers))],
            ),
            Op::Convolution { window, dim_labels, feature_group_count, batch_group_count } => {
                let reversed = window.dimensions.iter().map(|dimension| dimension.window_reversal);
                let list = vec![
                    ("batch_group_count", integer(*batch_group_count)),
                    ("dimension_numbers", attributes::convolution(dim_labels)),
                    ("feature_group_count", integer(*feature_group_count)),
                    ("lhs_dilation", per_dimension(window, |d| d.base_dilation)),
                    ("padding", padding(window)),
                    ("rhs_dilation", per_dimension(window, |d| d.window_dilation)),
                    ("window_reversal", booleans(reversed)),
                    ("window_strides", per_dimension(window, |d| d.stride)),
                ];
                ("stablehlo.convolution", list)
            }
            Op::Gather { gather_dimension_numbers: numbers, slice_sizes, indices_are_sorted } => {
                if !numbers.operand_batching_dims.is_empty() {
                    self.require(Version::new(1, 1, 0), "a gather with batching dimensions")?;
                }
                let list = vec![
                    ("dimension_numbers", attributes::gather(numbers)),
                    ("indices_are_sorted", indices_are_sorted.to_string()),
                    ("slice_sizes", integers(slice_sizes.iter().copied())),
                ];
                ("stablehlo.gather", list)
            }
            Op::Slice { slice } => {
                let list = vec![
                    ("limit_indices", integers(slice.iter().map(|dimension| dimension.limit))),
                    ("start_indices", integers(slice.iter().map(|dimension| dimension.start))),
                    ("strides", integers(slice.iter().map(|dimension| dimension.stride))),
                ];
                ("stablehlo.slice", list)
            }
            Op::Pad { padding } => {
                let dimensions = &padding.dimensions;
                let list = vec![
                    ("edge_padding_high", integers(dimensions.iter().map(|d| d.edge_padding_high))),
                    ("edge_padding_low", integers(dimensions.iter().map(|d| d.edge_padding_low))),
                    ("interior_padding", integers(dimensions.iter().map(|d| d.interior_padding))),
                ];
                ("stablehlo.pad", list)
            }
            _ => return Ok(None),
        }))
    }
}

/// Lists one number for each dimension of a window.
fn per_dimension(window: &Window, number: impl Fn(&WindowDimension) -> i64) -> String {
    integers(window.dimensions.iter().map(number))
}

fn padding(window: &Window) -> String {
    let dimensions = window.dimensions.iter();
    pairs(&dimensions.map(|d| (d.padding_low, d.padding_high)).collect::<Vec<_>>())
}

/// Attributes of a windowed reduction.
pub(super) fn reduce_window(window: &Window) -> Result<attributes::Attributes> {
    reject_reversal(window)?;
    Ok(vec![
        ("base_dilations", per_dimension(window, |d| d.base_dilation)),
        ("padding", padding(window)),
        ("window_dilations", per_dimension(window, |d| d.window_dilation)),
        ("window_dimensions", per_dimension(window, |d| d.size)),
        ("window_strides", per_dimension(window, |d| d.stride)),
    ])
}

/// Attributes of a select-and-scatter; its windows have no dilation in StableHLO.
pub(super) fn select_and_scatter(window: &Window) -> Result<attributes::Attributes> {
    reject_reversal(window)?;
    if window.dimensions.iter().any(|d| d.base_dilation != 1 || d.window_dilation != 1) {
        return Err(Error::unsupported("select-and-scatter with dilation has no equivalent in StableHLO"));
    }
    Ok(vec![
        ("padding", padding(window)),
        ("window_dimensions", per_dimension(window, |d| d.size)),
        ("window_strides", per_dimension(window, |d| d.stride)),
    ])
}

fn reject_reversal(window: &Window) -> Result<()> {
    if window.dimensions.iter().any(|dimension| dimension.window_reversal) {
        Err(Error::unsupported("a reduction of reversed windows has no equivalent in StableHLO"))
    } else {
        Ok(())
    }
}
