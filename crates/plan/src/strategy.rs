//! Types of a plan: the strategy and the resources of each instruction.

use crate::candidate::Candidate;
use crate::contraction::attention::AttentionPlan;
use crate::contraction::chain::ChainPlan;
use crate::contraction::convolution::{ConvolutionPlan, Winograd};
use crate::contraction::dot::DotPlan;
use crate::fft::FftPlan;
use crate::loops::LoopPlan;
use crate::multi_output::MultiOutputPlan;
use crate::reduction::reduce::ReducePlan;
use crate::reduction::reduce_window::ReduceWindowPlan;
use crate::reduction::rows::RowsPlan;
use crate::sort::SortPlan;
use crate::tasks::Work;
use crate::tuning::Choices;
use bytes::Bytes;
use hlo::{ComputationId, InstructionId};
use std::collections::BTreeMap;
use std::sync::Arc;

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
#[derive(Clone, Debug)]
pub struct InstructionPlan {
    /// How its code looks.
    pub strategy: Strategy,
    /// Constant operands in the layout that the kernel wants. The kernel does not read the operand itself.
    pub packed: Vec<PackedConstant>,
    /// Bytes of 64-byte aligned scratch for one call.
    pub scratch_bytes: u64,
    /// Into how many tasks the kernel's work is cut; 1 is serial. Tasks write disjoint memory, and each computes the same
    /// bits whoever runs it, so the number depends on the work alone: never on how many workers there are.
    pub tasks: i64,
    /// What the kernel does, by rule of thumb; nothing for what needs no kernel.
    pub work: Work,
    /// Bytes of 64-byte aligned scratch for each worker; one task at a time uses it.
    pub worker_scratch_bytes: u64,
    /// Operands whose memory the (array) result may take over, if nobody reads them later: element `i` of the result
    /// is written after the last read of element `i` of the operand, and nothing else of it is read after that.
    pub may_overwrite: Vec<usize>,
    /// The same for each leaf of a result that is a tuple: number of the leaf, number of the operand.
    pub leaves_may_overwrite: Vec<(usize, usize)>,
    /// What the caller's [`Choices`] said, if they did.
    pub tuned: Option<Candidate>,
}

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

/// Constants in a kernel's own layout.
#[derive(Clone, Debug)]
pub struct PackedConstant {
    /// The position of the operand that the kernel reads in this form; nothing for tables that the plan made up.
    pub operand: Option<usize>,
    /// The packed elements; 64-byte aligned in the constants block.
    pub bytes: Bytes,
}

impl Strategy {
    /// Whether there is no kernel: nothing is to be done, or it is the entry's own business.
    pub fn has_no_kernel(&self) -> bool {
        matches!(self, Self::Alias | Self::Undefined | Self::Conditional | Self::While | Self::CustomCall)
    }
}

impl InstructionPlan {
    /// A strategy that needs nothing.
    pub fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            packed: Vec::new(),
            scratch_bytes: 0,
            tasks: 1,
            work: Work::default(),
            worker_scratch_bytes: 0,
            may_overwrite: Vec::new(),
            leaves_may_overwrite: Vec::new(),
            tuned: None,
        }
    }
}

/// What the caller decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which transforms convolutions may use that change how results are rounded.
    pub winograd: Winograd,
    /// What measuring has chosen; where it says nothing, the cost models choose.
    pub choices: Arc<Choices>,
}
