//! Windows and their numbers of positions.

use super::Inference;
use crate::attributes::Window;
use shape::Dimension;
use support::Result;

impl Inference<'_> {
    /// Returns the number of window positions along each base dimension.
    pub(super) fn window_positions(&self, base: &[Dimension], window: &Window) -> Result<Vec<Dimension>> {
        self.check(
            window.dimensions.len() == base.len(),
            format_args!("expected {} window dimensions, got {}", base.len(), window.dimensions.len()),
        )?;
        let mut positions = Vec::with_capacity(base.len());
        for (i, (dimension, window)) in base.iter().zip(&window.dimensions).enumerate() {
            self.check(
                window.size >= 1
                    && window.stride >= 1
                    && window.base_dilation >= 1
                    && window.window_dilation >= 1,
                format_args!("size, stride, and dilations of window dimension {i} must be positive"),
            )?;
            let extent = |size: i64, dilation: i64| match size {
                0 => 0,
                size => (i128::from(size) - 1) * i128::from(dilation) + 1,
            };
            let base = extent(dimension.size, window.base_dilation)
                + i128::from(window.padding_low)
                + i128::from(window.padding_high);
            let room = base - extent(window.size, window.window_dilation);
            // An empty base has no positions, regardless of its padding.
            let count = if base <= 0 || room < 0 { 0 } else { room / i128::from(window.stride) + 1 };
            let size = i64::try_from(count)
                .map_err(|_| self.error(format_args!("window dimension {i} has more than 2^63 positions")))?;
            positions.push(Dimension { size, is_dynamic: dimension.is_dynamic });
        }
        Ok(positions)
    }
}
