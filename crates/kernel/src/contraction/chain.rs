//! Chains of convolutions: the loops of each stage over one band. Stages communicate through
//! scratch.
//!
//! Each stage is emitted like a kernel of its own: as a part of the context's kernel.

use super::convolution::grid::Grid;
use super::convolution::{dense, depthwise};
use crate::context::parameters::Memory;
use crate::context::{KernelContext, Part};
use crate::index::Index;
use buffers::ALIGNMENT;
use nest::ValueId;
use plan::{ChainPlan, ChainStage, ConvolutionKind};
use support::{Error, Result};

/// Writes the result of a chain. Tasks are bands.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &ChainPlan) -> Result<()> {
    cx.for_tasks(|cx, band| {
        let scratch = cx.worker_scratch();
        let all = Grid::default();
        let mut input: Option<Memory> = None;
        for stage in &plan.stages {
            let output = match stage.band {
                Some(offset) => Some(band_memory(cx, stage, scratch, offset)?),
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
                packed: cx.packed()[stage.packed.clone()].to_vec(),
            };
            cx.with_part(part, |cx| match &stage.convolution.kind {
                ConvolutionKind::Dense(dense) => dense::emit(cx, &stage.convolution, dense, &all, &band),
                ConvolutionKind::Depthwise(depthwise) => {
                    depthwise::emit(cx, &stage.convolution, depthwise, &all, &band)
                }
                ConvolutionKind::Winograd(_)
                | ConvolutionKind::WinogradGradient(_)
                | ConvolutionKind::Gradient(_)
                | ConvolutionKind::General { .. } => {
                    Err(Error::internal("expected tiled convolutions in a chain"))
                }
            })?;
            input = output;
        }
        Ok(())
    })
}

/// Returns the output of a stage: an array in which memory begins with the elements of the band.
fn band_memory(
    cx: &mut KernelContext<'_>,
    stage: &ChainStage,
    scratch: ValueId,
    offset: u64,
) -> Result<Memory> {
    let shape = cx.shape(stage.root)?.clone();
    let pointer = cx.offset_bytes(scratch, offset as i64);
    Ok(Memory { pointer, shape, alignment: ALIGNMENT as u32, first: Index::default() })
}
