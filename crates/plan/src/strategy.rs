//! Types of a plan: the strategy and the resources of each instruction.

use crate::contraction::attention::AttentionPlan;
use crate::contraction::chain::ChainPlan;
use crate::contraction::convolution::ConvolutionPlan;
use crate::contraction::dot::DotPlan;
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

/// Plans of the entry and of every computation that control flow reaches from it (not of those that fusions,
/// reductions and their kind apply: these are emitted in place).
#[derive(Clone, Debug, Default)]
pub struct ModulePlan {
    /// By computation.
    pub computations: BTreeMap<ComputationId, ComputationPlan>,
    /// Kernels for which the caller's [`Choices`] name what is no candidate of theirs, so that it was ignored.
    pub ignored_choices: Vec<String>,
}

impl ModulePlan {
    /// Forgets the bytes of packed constants, which somebody else keeps.
    pub fn drop_packed(&mut self) {
        let plans = self.computations.values_mut().flat_map(|plans| plans.instructions.values_mut());
        plans.flat_map(|plan| &mut plan.packed).for_each(|packed| packed.bytes = Bytes::new());
    }
}

/// Plans of a computation's instructions.
#[derive(Clone, Debug, Default)]
pub struct ComputationPlan {
    /// One for each live instruction.
    pub instructions: BTreeMap<InstructionId, InstructionPlan>,
}

/// The plan of one instruction.
pub type InstructionPlan = KernelPlan<Strategy>;

/// How an instruction's code looks.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// None: the result is the operand's memory, the parameter's, the constant's, or a tuple of such.
    Alias,
    /// None, but memory: whatever is in there is overwritten before it is read.
    Undefined,
    /// A call of the user's function, or a check: the entry's own code.
    CustomCall,
    /// A loop nest over the result, each element computed from the operands.
    Loop(LoopPlan),
    /// A reduction with what feeds it.
    Reduce(ReducePlan),
    /// Rows, each walked several times while it is in the cache: reductions along it and what needs their results.
    Rows(RowsPlan),
    /// A windowed reduction with what feeds it.
    ReduceWindow(ReduceWindowPlan),
    /// A contraction with what follows it.
    Dot(Box<DotPlan>),
    /// A convolution with what follows it.
    Convolution(Box<ConvolutionPlan>),
    /// Several convolutions, each with what follows it, one band of lines after another.
    ConvolutionChain(Box<ChainPlan>),
    /// Two contractions and walks along rows between them, some rows at a time.
    Attention(Box<AttentionPlan>),
    /// Each operand copied to its place.
    Concatenate,
    /// Operand 0 copied (or taken over), then the update written into it: copied from memory, or computed by a loop nest
    /// over its elements.
    DynamicUpdateSlice(Option<LoopPlan>),
    /// One loop nest that makes several results.
    MultiOutput(Box<MultiOutputPlan>),
    /// Operand 0 copied (or taken over), then each update combined into it, in order.
    Scatter,
    /// A sort along one dimension, by numbers or by calling the comparison.
    Sort(Option<Box<SortPlan>>),
    /// The first `k` of each row by total order: of a sort, or kept in order while the row passes by.
    TopK(Option<Box<SortPlan>>),
    /// Fourier transforms: a kernel for each dimension.
    Fft(Box<FftPlan>),
    /// Blocks of random bits.
    RngBitGenerator,
    /// The instance's own random state.
    RngGetAndUpdateState,
    /// One of several computations.
    Conditional,
    /// A computation repeated in place.
    While,
}

impl Strategy {
    /// Whether there is no kernel: nothing is to be done, or it is the entry's own business.
    pub fn has_no_kernel(&self) -> bool {
        matches!(self, Self::Alias | Self::Undefined | Self::Conditional | Self::While | Self::CustomCall)
    }
}
