//! The plan: for each instruction that needs code, how its code will look.
//!
//! A pure function of module and target, printable with [`ModulePlan::to_text`], tested as tables. The plan decides what
//! the buffers must provide (packed constants, scratch, in-place rights), so it comes before them; it emits nothing.

mod attention;
mod candidate;
mod collapse;
mod convolution;
mod dot;
mod fft;
mod fusion;
mod in_place;
mod loops;
mod multi_output;
mod overwritten;
mod parallel;
mod print;
mod reduce;
mod reduce_window;
mod rows;
mod sort;
mod tasks;
pub mod tuning;
mod update;

pub use attention::AttentionPlan;
pub use candidate::{Candidate, MAX_CANDIDATES, candidates};
pub use collapse::Loop;
pub use convolution::{
    ChainPlan, ChainStage, ConvolutionDims, ConvolutionKind, ConvolutionPlan, DensePlan, DepthwisePlan,
    GradientPlan, GradientSize, GradientTransform, MAX_STAGES, Rectangle, Segment, SpatialDimension, Strip,
    TileSize, Tiling, Transform, Winograd, WinogradGradientPlan, WinogradGradientScratch, WinogradPlan,
    WinogradScratch, chain_saving,
};
pub use dot::{DotDims, DotKind, DotPlan, DotShape, Extent, Packing, Tile, most_together};
pub use fft::{
    FftKind, FftLayout, FftPlace, FftPlan, FftStep, Roots, has_kernel as has_fft_kernel, root_of_unity,
};
pub use fusion::{Fusion, Position, RowSlice};
pub use loops::LoopPlan;
pub use multi_output::{MultiOutputPlan, Output, OutputReduction, Placement, outputs};
pub use reduce::{ReduceKind, ReducePlan, is_associative};
pub use reduce_window::{ReduceWindowPlan, WindowSegment, WindowWalk};
pub use rows::{RowValue, RowsPlan, Sweep};
pub use sort::{FEW, NETWORK_ROWS, SortItems, SortKey, SortLayout, SortPlan};
pub use tasks::{Work, is_transcendental};
pub use tuning::Choices;

use bytes::Bytes;
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{Error, Result};
use target::Target;

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

/// Plans a module. An error lists every instruction that no strategy covers.
pub fn plan(module: &Module, target: &Target) -> Result<ModulePlan> {
    plan_with(module, target, &Options::default())
}

/// As [`plan`], with the caller's decisions.
pub fn plan_with(module: &Module, target: &Target, options: &Options) -> Result<ModulePlan> {
    let mut plans = ModulePlan::default();
    let mut unsupported = Vec::new();
    let mut ignored = std::collections::BTreeSet::new();
    let mut pending = vec![module.entry()];
    while let Some(id) = pending.pop() {
        if plans.computations.contains_key(&id) {
            continue;
        }
        let computation = &module[id];
        let mut instructions = BTreeMap::new();
        for instruction in computation.post_order() {
            let choice = tuning::choose(module, computation, instruction, target, options);
            let candidate = choice.unwrap_or_else(|kernel| {
                ignored.insert(kernel);
                None
            });
            match plan_instruction(module, computation, instruction, candidate, (target, options)) {
                Ok(mut plan) => {
                    plan.work = work(module, computation, instruction, &plan)?;
                    plan.tuned = candidate;
                    instructions.insert(instruction, plan);
                }
                Err(error) => unsupported.push(describe(computation, instruction, &error)),
            }
            match computation[instruction].op() {
                Op::Conditional { branch_computations } => pending.extend(branch_computations),
                Op::While { condition, body } => pending.extend([condition, body]),
                _ => {}
            }
        }
        plans.computations.insert(id, ComputationPlan { instructions });
    }
    plans.ignored_choices = ignored.into_iter().collect();
    if unsupported.is_empty() {
        return Ok(plans);
    }
    Err(Error::unsupported(format!("no code can be made for:\n  {}", unsupported.join("\n  "))))
}

/// What an instruction's kernel does.
fn work(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    plan: &InstructionPlan,
) -> Result<Work> {
    match &plan.strategy {
        Strategy::Alias | Strategy::Conditional | Strategy::While | Strategy::CustomCall => {
            Ok(Work::default())
        }
        Strategy::Convolution(plan) if plan.kind.is_transformed() => {
            let work = Work::of_kernel(&Fusion::of(module, computation, id)?);
            // Of 36 products 16 are left, and the transforms.
            Ok(Work { operations: work.operations / 8 * 5, ..work })
        }
        Strategy::Rows(rows) => Ok(Work::of_kernel(&Fusion::of(module, computation, id)?).and(rows.sums())),
        _ => Ok(Work::of_kernel(&Fusion::of(module, computation, id)?)),
    }
}

/// Whether an instruction that computes attention has a plan of its own on each of these targets, and pays there.
pub fn attention_pays(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    targets: &[Target],
) -> bool {
    let pays = |fusion: &Fusion<'_>| targets.iter().all(|target| attention::plan(fusion, target).is_ok());
    Fusion::of(module, computation, id).is_ok_and(|fusion| attention::is_attention(&fusion) && pays(&fusion))
}

fn describe(computation: &Computation, id: InstructionId, error: &Error) -> String {
    let instruction = &computation[id];
    let metadata = instruction.metadata();
    let node = if metadata.op_name.is_empty() {
        String::new()
    } else {
        format!(" (node '{}', op {})", metadata.op_name, metadata.op_type)
    };
    format!("{} = {} {}{node}: {error}", instruction.name(), instruction.shape(), instruction.opcode().name())
}

/// The strategy of one instruction.
fn plan_instruction(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    candidate: Option<Candidate>,
    (target, options): (&Target, &Options),
) -> Result<InstructionPlan> {
    let instruction = &computation[id];
    for (_, leaf) in instruction.shape().leaves() {
        if !leaf.is_row_major() {
            return Err(Error::unsupported(format!("layout of {leaf}; only row-major arrays have code")));
        }
    }
    if overwritten::is_overwritten(module, computation, id) {
        return Ok(InstructionPlan::new(Strategy::Undefined));
    }
    let strategy = match instruction.op() {
        Op::Parameter { .. }
        | Op::Constant { .. }
        | Op::Tuple {}
        | Op::GetTupleElement { .. }
        | Op::Bitcast {}
        | Op::Reshape {}
        | Op::OptimizationBarrier {}
        | Op::AddDependency {}
        | Op::AfterAll {} => Strategy::Alias,
        Op::Concatenate { .. } => {
            let bytes = instruction.shape().byte_size().saturating_mul(2);
            let tasks = tasks::Work { operations: 0, bytes }.tasks();
            return Ok(InstructionPlan { tasks, ..InstructionPlan::new(Strategy::Concatenate) });
        }
        Op::DynamicUpdateSlice {} => return Ok(in_place(Strategy::DynamicUpdateSlice(None))),
        Op::Scatter { .. } if instruction.shape().as_array().is_some() => {
            return Ok(in_place(Strategy::Scatter));
        }
        // Of several arrays, one may be another's updates: each result begins as a copy.
        Op::Scatter { .. } => Strategy::Scatter,
        Op::Sort { .. } | Op::TopK { .. } => {
            let work = Work::of_kernel(&Fusion::of(module, computation, id)?);
            return Ok(sort::plan(module, computation, id, work, target));
        }
        Op::Fft { .. } => {
            let fusion = Fusion::of(module, computation, id)?;
            return fft::plan(&fusion, Work::of_kernel(&fusion), target);
        }
        Op::RngBitGenerator { .. } => Strategy::RngBitGenerator,
        Op::RngGetAndUpdateState { .. } => Strategy::RngGetAndUpdateState,
        Op::Conditional { .. } => Strategy::Conditional,
        Op::While { .. } => Strategy::While,
        Op::CustomCall { custom_call_target, .. }
            if custom_call_target == hlo::custom_call::ALLOCATE_BUFFER =>
        {
            Strategy::Undefined
        }
        op if hlo::custom_call::custom_call(op).is_some() => Strategy::CustomCall,
        Op::CustomCall { custom_call_target, .. } => {
            return Err(Error::unsupported(format!(
                "nothing here defines the custom call \"{custom_call_target}\"; write what it computes as HLO"
            )));
        }
        _ => {
            let fusion = Fusion::of(module, computation, id)?;
            return match fusion.root_op() {
                _ if attention::is_attention(&fusion) => attention::plan(&fusion, target),
                _ if rows::is_rows(&fusion) => rows::plan(&fusion, target),
                Op::Reduce { .. } => reduce::plan(&fusion, target),
                Op::ReduceWindow { .. } => reduce_window::plan(&fusion, target),
                Op::Tuple {} => multi_output::plan(&fusion, target),
                _ if fusion.find_dot().is_some() => dot::plan(&fusion, candidate, target),
                _ if fusion.find_convolution().is_some() => {
                    convolution::plan(&fusion, candidate, target, options)
                }
                Op::DynamicUpdateSlice {} => update::plan(&fusion, target),
                _ => loops::plan(&fusion, target),
            };
        }
    };
    Ok(InstructionPlan::new(strategy))
}

/// Operand 0 may become the result.
fn in_place(strategy: Strategy) -> InstructionPlan {
    InstructionPlan { may_overwrite: vec![0], ..InstructionPlan::new(strategy) }
}
