//! Convolutions whose groups have many features: tiles of pixels times vectors of output features.

use super::dims::ConvolutionDims;
use super::tiling::{self, Sharing, Tiling};
use crate::dot::{Packing, Tile, tile};
use crate::tasks::Work;
use shape::PrimitiveType;
use target::Target;

/// Tiles of output pixels times vectors of output features, accumulated over taps and input features.
#[derive(Clone, Debug, PartialEq)]
pub struct DensePlan {
    /// Pixels of most tiles, and vectors of features.
    pub tile: Tile,
    /// The tiles of the output.
    pub tiling: Tiling,
    /// Kernel: in place, or as panels `[group][outputs / panel][summands][panel]`.
    pub kernel_packing: Packing,
    /// Features of a packed panel: one cache line of them.
    pub panel: i64,
    /// Summands of an output: taps times input features of a group.
    pub summands: i64,
    /// Whether neighbouring taps of the last dimension and their input features are one run in memory.
    pub is_run: bool,
    /// Whether panels are the outer loop and pixels the inner one.
    pub panels_outside: bool,
    /// Into how many parts the panels of a group are cut; with the chunks of the tiling, the kernel's tasks.
    pub feature_chunks: i64,
}

impl DensePlan {
    /// Groups of `tile.vectors` vectors that exist as a whole.
    pub fn whole_panels(&self, dims: &ConvolutionDims) -> i64 {
        dims.outputs / self.tile.columns()
    }

    /// The tasks of the kernel.
    pub fn tasks(&self) -> i64 {
        self.tiling.chunks * self.feature_chunks
    }
}

/// The bytes of a cache line: packed panels are as wide on every machine.
const LINE: i64 = 64;

/// Tiles and loops, or nothing if the shape is too irregular for them.
pub(super) fn choose(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    is_constant: bool,
    target: &Target,
) -> Option<DensePlan> {
    let size = accumulator.byte_size();
    let summands = dims.taps().checked_mul(dims.inputs).filter(|&n| n > 0)?;
    let pixels = dims.batch.checked_mul(dims.pixels())?;
    let mut tile = tile::choose(pixels, dims.outputs, size, target);
    let last = dims.spatial.last();
    let is_run =
        dims.groups == 1 && last.is_none_or(|d| d.window.window_dilation == 1 && d.window.base_dilation == 1);
    let kernel_bytes = (summands as u64).saturating_mul(dims.outputs as u64).saturating_mul(size as u64);
    let whole = dims.outputs / tile.columns();
    let panels_outside = whole > 1 && kernel_bytes > target.l2_bytes / 2;
    let wanted = Work { operations: dims.work().max(0) as u64, bytes: 0 }.tasks();
    let most = tile::most_rows(tile.vectors, target);
    let (chunks, feature_chunks) = split(dims, wanted, i64::from(most), whole, panels_outside);
    let tiling = tiling::tiles(dims, most, chunks, Sharing::All)?;
    tile.rows = tiling.sizes.iter().map(|s| s.pixels).max().unwrap_or(1);
    tile.k_split = 1;
    let line = LINE / size as i64;
    Some(DensePlan {
        panel: line.min(i64::from(u32::try_from(dims.outputs).map_or(u32::MAX, u32::next_power_of_two))),
        tile,
        tiling,
        kernel_packing: if is_constant { Packing::Constant } else { Packing::None },
        summands,
        is_run,
        panels_outside,
        feature_chunks,
    })
}

/// Into how many parts to cut the pixels and the panels. A large kernel is read once, by the tasks together, if they share
/// it; else pixels are cut first, into parts that still fill tiles along every border.
pub(super) fn split(
    dims: &ConvolutionDims,
    wanted: i64,
    most: i64,
    panels: i64,
    panels_outside: bool,
) -> (i64, i64) {
    let rows = match &dims.spatial[..] {
        [] => dims.batch,
        [only] if dims.batch == 1 => only.output,
        [outer @ .., _] => outer.iter().fold(dims.batch, |n, d| n.saturating_mul(d.output)),
    };
    let is_pointwise = dims.taps() == 1;
    let rows_at_once = if is_pointwise && dims.spatial.len() > 1 { 1 } else { most };
    let parts = (rows / rows_at_once).max(1);
    if panels_outside {
        let features = wanted.min(panels);
        return ((wanted / features.max(1)).clamp(1, parts), features.max(1));
    }
    let chunks = wanted.min(parts);
    (chunks, (wanted / chunks).clamp(1, panels.max(1)))
}
