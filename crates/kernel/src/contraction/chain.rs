//! Chains of convolutions: the loops of each stage over one band. Stages communicate through
//! scratch.
//!
//! Each stage is emitted like a kernel of its own: as a part of the context's kernel.

use super::convolution::grid::Grid;
use super::convolution::{dense, depthwise};
use crate::context::parameters::Memory;
use crate::context::{KernelContext, Part};
use crate::index::{Facts, Index};
use buffers::ALIGNMENT;
use nest::{Type, ValueId};
use plan::{ChainPlan, ChainStage, ConvolutionKind};
use support::{Error, Result};

/// Writes the result of a chain. Tasks are bands.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &ChainPlan) -> Result<()> {
    cx.for_tasks(|cx, band| {
        let scratch = cx.worker_scratch();
        let mut input: Option<Memory> = None;
        for stage in &plan.stages {
            let packed = cx.packed()[stage.packed.clone()].to_vec();
            let output = match stage.band {
                Some(offset) => {
                    let pointer = cx.offset_bytes(scratch, offset as i64);
                    Some(band_memory(cx, stage, pointer, &packed, &band)?)
                }
                None => None,
            };
            if let Some(input) = input {
                let number = stage.convolution.input_operand;
                cx.set_operand(number, input);
            }
            let mut fusion = cx.fusion();
            fusion.root = stage.root;
            let part = Part {
                fusion,
                results: output.clone().map_or_else(|| cx.results().to_vec(), |output| vec![output]),
                packed,
            };
            cx.with_part(part, |cx| {
                let plan = &stage.convolution;
                let grid = Grid::of(cx, plan)?;
                match &plan.kind {
                    ConvolutionKind::Dense(dense) => dense::emit(cx, plan, dense, &grid, &band),
                    ConvolutionKind::Depthwise(depthwise) => {
                        depthwise::emit(cx, plan, depthwise, &grid, &band)
                    }
                    ConvolutionKind::Winograd(_)
                    | ConvolutionKind::WinogradGradient(_)
                    | ConvolutionKind::Gradient(_)
                    | ConvolutionKind::General { .. } => {
                        Err(Error::internal("expected tiled convolutions in a chain"))
                    }
                }
            })?;
            input = output;
        }
        Ok(())
    })
}

/// Returns the output of a stage: an array of which `pointer` holds the elements of the band.
fn band_memory(
    cx: &mut KernelContext<'_>,
    stage: &ChainStage,
    pointer: ValueId,
    packed: &[ValueId],
    band: &Index,
) -> Result<Memory> {
    let shape = cx.shape(stage.root)?.clone();
    let alignment = ALIGNMENT as u32;
    let tiling = stage.convolution.kind.tiling();
    let Some(tiling) = tiling.filter(|tiling| !tiling.origins.is_empty()) else {
        return Ok(Memory { pointer, shape, alignment, first: Index::default() });
    };
    let table = packed.last().ok_or_else(|| Error::internal("expected a table of the tiles of a band"))?;
    let at = cx.offset_bytes(*table, tiling.position_of_origins() as i64 * 8);
    let band = cx.scalar_value(band)?;
    let at = cx.offset(at, band, 8);
    let origin = cx.load(Type::I64, at, 8);
    let most = tiling.origins.iter().copied().max().unwrap_or(0);
    cx.learn(origin, Facts::range(0, most));
    let dims = &stage.convolution.dims;
    let first = Index::scalar(origin).times(dims.groups * dims.outputs);
    Ok(Memory { pointer, shape, alignment, first })
}
