//! Chains of convolutions: each stage's loops over one band, from scratch to scratch.
//!
//! A stage's kernel is emitted as if it stood alone: for that time the context's root, result, packed constants and input
//! are the stage's.

use super::convolution::{dense, depthwise};
use crate::context::{KernelContext, Memory, Operand};
use crate::index::Index;
use buffers::ALIGNMENT;
use nest::ValueId;
use plan::{ChainPlan, ChainStage, ConvolutionKind};
use support::{Error, Result};

/// Writes the result of a chain; tasks are bands.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &ChainPlan) -> Result<()> {
    cx.for_tasks(|cx, band| {
        let scratch = cx.worker_scratch();
        let mut input: Option<Memory> = None;
        for stage in &plan.stages {
            let output = match stage.band {
                Some(offset) => Some(band_memory(cx, stage, scratch, offset)?),
                None => None,
            };
            let view = View { stage, input, output: output.clone() };
            view.run(cx, |cx| match &stage.convolution.kind {
                ConvolutionKind::Dense(dense) => dense::emit(cx, &stage.convolution, dense, &band),
                ConvolutionKind::Depthwise(depthwise) => {
                    depthwise::emit(cx, &stage.convolution, depthwise, &band)
                }
                ConvolutionKind::Winograd(_)
                | ConvolutionKind::WinogradGradient(_)
                | ConvolutionKind::Gradient(_)
                | ConvolutionKind::General { .. } => {
                    Err(Error::internal("a chain's convolutions have tiles"))
                }
            })?;
            input = output;
        }
        Ok(())
    })
}

/// What a stage hands on: an array whose first elements are those of the band.
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

/// What the context shows of a kernel while one stage is emitted.
struct View<'p> {
    stage: &'p ChainStage,
    /// What the stage before has handed on.
    input: Option<Memory>,
    /// What this one hands on; nothing is the kernel's result.
    output: Option<Memory>,
}

impl View<'_> {
    fn run(
        self,
        cx: &mut KernelContext<'_>,
        emit: impl FnOnce(&mut KernelContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let packed = cx.packed[self.stage.packed.clone()].to_vec();
        let packed = std::mem::replace(&mut cx.packed, packed);
        let root = std::mem::replace(&mut cx.fusion.root, self.stage.root);
        let results = cx.results.clone();
        if let Some(output) = self.output {
            cx.results = vec![output];
        }
        if let Some(input) = self.input {
            let number = self.stage.convolution.input_operand;
            cx.operands.insert((number, Vec::new()), Operand::Memory(input));
        }
        let emitted = emit(cx);
        (cx.packed, cx.fusion.root, cx.results) = (packed, root, results);
        emitted
    }
}
