//! Types of a plan: the strategy and the resources of each instruction.

use crate::contraction::attention::AttentionPlan;
use crate::contraction::chain::ChainPlan;
use crate::contraction::convolution::ConvolutionPlan;
use crate::contraction::dot::DotPlan;
use crate::device::DevicePlan;
use crate::fft::FftPlan;
use crate::kernel_plan::KernelPlan;
use crate::loops::LoopPlan;
use crate::multi_output::MultiOutputPlan;
use crate::reduction::reduce::ReducePlan;
use crate::reduction::reduce_window::ReduceWindowPlan;
use crate::reduction::rows::RowsPlan;
use crate::sort::SortPlan;
use bytes::Bytes;
use hlo::{ComputationId, InstructionId};
use std::collections::BTreeMap;

/// Plans of the entry and of every computation that control flow reaches from it. Computations that
/// fusions, reductions, and similar instructions apply have no plan: they are emitted in place.
#[derive(Clone, Debug, Default)]
pub struct ModulePlan {
    /// Plans by computation.
    pub computations: BTreeMap<ComputationId, ComputationPlan>,
    /// True if kernels run on a device, which is given fixed addresses: loops copy their state
    /// instead of exchanging addresses.
    pub is_for_device: bool,
    /// Kernels for which the caller's [`Choices`](crate::Choices) name something other than one of
    /// their candidates, and whose choice was therefore ignored.
    pub ignored_choices: Vec<String>,
}

impl ModulePlan {
    /// Drops the bytes of packed constants after another owner has taken them.
    pub fn drop_packed(&mut self) {
        let plans = self.computations.values_mut().flat_map(|plans| plans.instructions.values_mut());
        plans.flat_map(|plan| &mut plan.packed).for_each(|packed| packed.bytes = Bytes::new());
    }
}

/// Plans of a computation's instructions.
#[derive(Clone, Debug, Default)]
pub struct ComputationPlan {
    /// One plan for each live instruction.
    pub instructions: BTreeMap<InstructionId, InstructionPlan>,
}

/// The plan of one instruction.
pub type InstructionPlan = KernelPlan<Strategy>;

/// Kind of code for an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// No code: the result is the memory of the operand, the parameter, or the constant, or a tuple
    /// of those.
    Alias,
    /// No code, only memory, whose content is overwritten before it is read.
    Undefined,
    /// A call of a user's function, or a check; part of the entry's own code.
    CustomCall,
    /// A loop nest over the result that computes each element from the operands.
    Loop(LoopPlan),
    /// A reduction with its fused producers.
    Reduce(ReducePlan),
    /// Rows, each walked several times while it is in the cache: reductions along the row and the
    /// instructions that need their results.
    Rows(RowsPlan),
    /// A windowed reduction with its fused producers.
    ReduceWindow(ReduceWindowPlan),
    /// A dot with its epilogue.
    Dot(Box<DotPlan>),
    /// A convolution with its epilogue.
    Convolution(Box<ConvolutionPlan>),
    /// Several convolutions with their epilogues, computed one band of lines after another.
    ConvolutionChain(Box<ChainPlan>),
    /// Two contractions with walks along rows between them, a block of rows at a time.
    Attention(Box<AttentionPlan>),
    /// Copies each operand to its place.
    Concatenate,
    /// Copies operand 0 or reuses its memory, then writes the update into it. The update is copied
    /// from memory or computed by a loop nest over its elements.
    DynamicUpdateSlice(Option<LoopPlan>),
    /// One loop nest with several results.
    MultiOutput(Box<MultiOutputPlan>),
    /// Copies operand 0 or reuses its memory, then combines each update into it, in order.
    Scatter,
    /// A sort along one dimension, by numeric keys or by calling the comparison.
    Sort(Option<Box<SortPlan>>),
    /// The first `k` of each row in the total order: a prefix of a sort, or a sorted list
    /// maintained while scanning the row.
    TopK(Option<Box<SortPlan>>),
    /// Fourier transforms, with a kernel per dimension.
    Fft(Box<FftPlan>),
    /// Blocks of random bits.
    RngBitGenerator,
    /// The random state of the instance.
    RngGetAndUpdateState,
    /// Kernels of a device whose workgroups share work.
    Device(Box<DevicePlan>),
    /// Selects one of several computations.
    Conditional,
    /// Repeats a computation in place.
    While,
}

impl Strategy {
    /// True if the strategy has no kernel: nothing remains to be computed, or the entry's own code
    /// does it.
    pub fn has_no_kernel(&self) -> bool {
        matches!(self, Self::Alias | Self::Undefined | Self::Conditional | Self::While | Self::CustomCall)
    }
}
