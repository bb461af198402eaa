//! The text of a dot's plan.

use super::{DotLoops, DotPlan, TiledDot};
use crate::contraction::extents::DotShape;
use crate::packing::Packing;

impl std::fmt::Display for DotPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DotShape { batch, m, n, k } = self.dims.shape();
        if batch != 1 {
            write!(f, "{batch} times ")?;
        }
        write!(
            f,
            "{} {m}x{n}x{k} in {}",
            match self.loops {
                DotLoops::Tiled(_) => "tiled dot",
                DotLoops::Rows { .. } => "dot along rows",
                DotLoops::Complex { .. } => "complex dot",
            },
            self.accumulator
        )?;
        if let Some(grouping) = self.grouping {
            write!(f, ", {grouping}")?;
        }
        if let Some(weights) = self.weights {
            write!(f, ", weights in {}", weights.stored)?;
            if let Some(blocks) = weights.blocks {
                write!(f, " with scales in {} for {} summands", blocks.scale, blocks.summands)?;
            }
        }
        if let Some(TiledDot { tile, prefetches, tasks_by_rows, k_block, .. }) = self.tiled() {
            write!(f, ", tile {}x{} of {} lanes", tile.rows, tile.vectors, tile.lanes)?;
            if *prefetches {
                write!(f, ", the next panel prefetched")?;
            }
            if *tasks_by_rows && self.cuts[2] > 1 {
                write!(f, ", rows divided into tasks")?;
            }
            if *k_block < self.shape.k {
                write!(f, ", {k_block} summands per pass")?;
            }
        }
        if self.block_float.is_some() {
            write!(f, ", row in block floating point")?;
        }
        for (side, packing) in [("left", self.lhs_packing), ("right", self.rhs_packing())] {
            match packing {
                Packing::None => {}
                Packing::Constant => write!(f, ", {side} packed at compile time")?,
                Packing::Scratch => write!(f, ", {side} packed on each call")?,
            }
        }
        Ok(())
    }
}
