//! Strategies for devices: the threads of a workgroup share the work of a row, a tile, or a block.
//!
//! A device plan has steps, one kernel each, that run in order on the same parameters. Everything
//! that no device plan covers has the strategy of a processor, with a thread for each task.

pub(crate) mod attention;
mod contraction;
pub(crate) mod movement;
pub(crate) mod outputs;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod scatter;
pub(crate) mod sort;
pub(crate) mod teams;
pub(crate) mod transpose;
pub(crate) mod windows;

pub use attention::{DeviceAttentionPlan, OnlineSoftmax};
pub use contraction::{
    Check, ContractionPlan, ContractionView, FewRows, GroupTile, MatrixTile, Method, OperandView, Role, Step,
};

use crate::contraction::Planner;
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use hlo::{Computation, FusionKind, InstructionId, Module, Op};
use movement::{CopyPlan, UpdatePlan};
use outputs::OutputsPlan;
use reduce::TeamReducePlan;
use rows::TeamRowsPlan;
use scatter::ScatterPlan;
use sort::TeamSortPlan;
use std::fmt;
use support::Result;
use target::Gpu;
use transpose::TransposePlan;
use windows::WindowsPlan;

/// Workgroups of a kernel and their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupGrid {
    /// Number of workgroups.
    pub groups: u64,
    /// Threads of each workgroup; at most 1024.
    pub threads: u32,
}

/// The plan of an instruction's kernels on a device.
#[derive(Clone, Debug, PartialEq)]
pub enum DevicePlan {
    /// A reduction: a team of threads for each result.
    Reduce(TeamReducePlan),
    /// Rows, each walked by a team of threads.
    Rows(TeamRowsPlan),
    /// A concatenation. Its steps are the numbers of their first operands.
    Copy(CopyPlan),
    /// A slice update.
    Update(UpdatePlan),
    /// A scatter.
    Scatter(ScatterPlan),
    /// A sort or top-k.
    Sort(TeamSortPlan),
    /// A loop nest whose operands are transposed.
    Transpose(TransposePlan),
    /// A windowed reduction.
    Windows(WindowsPlan),
    /// Several results.
    Outputs(OutputsPlan),
    /// A dot or a convolution with its epilogue.
    Contraction(Box<ContractionPlan>),
    /// Attention.
    Attention(Box<DeviceAttentionPlan>),
}

impl fmt::Display for DevicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reduce(plan) => plan.fmt(f),
            Self::Rows(plan) => plan.fmt(f),
            Self::Copy(plan) => plan.fmt(f),
            Self::Transpose(plan) => plan.fmt(f),
            Self::Windows(plan) => plan.fmt(f),
            Self::Outputs(plan) => plan.fmt(f),
            Self::Update(plan) => plan.fmt(f),
            Self::Scatter(plan) => plan.fmt(f),
            Self::Sort(plan) => plan.fmt(f),
            Self::Contraction(plan) => plan.fmt(f),
            Self::Attention(plan) => plan.fmt(f),
        }
    }
}

impl DevicePlan {
    /// Number of kernels that run one after another.
    pub fn steps(&self) -> usize {
        match self {
            Self::Reduce(plan) => plan.steps(),
            Self::Rows(_) | Self::Copy(_) | Self::Transpose(_) | Self::Windows(_) | Self::Attention(_) => 1,
            Self::Update(_) => 2,
            Self::Scatter(plan) => plan.steps(),
            Self::Sort(plan) => plan.steps.len(),
            Self::Outputs(plan) => plan.steps(),
            Self::Contraction(plan) => plan.steps(),
        }
    }

    /// The grid of a step.
    pub fn grid(&self, step: usize) -> GroupGrid {
        match self {
            Self::Reduce(plan) => plan.grid(step),
            Self::Rows(plan) => plan.grid(),
            Self::Copy(plan) => plan.grid(step),
            Self::Transpose(plan) => plan.grid(),
            Self::Windows(plan) => plan.grid(),
            Self::Outputs(plan) => plan.grid(step),
            Self::Update(plan) => plan.grid(step),
            Self::Scatter(plan) => plan.grid(step),
            Self::Sort(plan) => plan.grid(step),
            Self::Contraction(plan) => plan.grid(step),
            Self::Attention(plan) => plan.grid(),
        }
    }

    /// True if operands are read only element by element, so that an immediate can replace them.
    pub fn reads_elements(&self) -> bool {
        match self {
            Self::Reduce(_) | Self::Rows(_) | Self::Transpose(_) | Self::Windows(_) => true,
            Self::Copy(_) | Self::Update(_) | Self::Contraction(_) | Self::Attention(_) => false,
            Self::Scatter(_) | Self::Sort(_) => false,
            Self::Outputs(plan) => plan.body.updates.is_empty(),
        }
    }
}

/// Plans an instruction for a device, or returns `None` if a thread for each task does as well.
pub(crate) fn plan(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    planner: Planner<'_>,
) -> Result<Option<KernelPlan<DevicePlan>>> {
    let Some(gpu) = planner.target.gpu else { return Ok(None) };
    let has_no_kernel = matches!(
        computation[id].op(),
        Op::Parameter { .. }
            | Op::Constant { .. }
            | Op::Tuple {}
            | Op::GetTupleElement { .. }
            | Op::Bitcast {}
            | Op::Reshape {}
            | Op::OptimizationBarrier {}
            | Op::AddDependency {}
            | Op::AfterAll {}
            | Op::Conditional { .. }
            | Op::While { .. }
            | Op::CustomCall { .. }
    );
    if has_no_kernel {
        return Ok(None);
    }
    let fusion = Fusion::of(module, computation, id)?;
    plan_fusion(&fusion, gpu, planner)
}

fn plan_fusion(
    fusion: &Fusion<'_>,
    gpu: Gpu,
    planner: Planner<'_>,
) -> Result<Option<KernelPlan<DevicePlan>>> {
    let target = planner.target;
    if let Op::Concatenate { .. } = fusion.caller[fusion.instruction].op() {
        return Ok(movement::concatenation(fusion).map(|plan| plan.map(DevicePlan::Copy)));
    }
    if let Op::Scatter { .. } = fusion.caller[fusion.instruction].op() {
        return Ok(scatter::plan(fusion, gpu).map(|plan| plan.map(DevicePlan::Scatter)));
    }
    if let Op::Sort { .. } | Op::TopK { .. } = fusion.caller[fusion.instruction].op() {
        return Ok(sort::plan(fusion, gpu).map(|plan| plan.map(DevicePlan::Sort)));
    }
    Ok(match fusion.kind() {
        FusionKind::Loop => transpose::plan(fusion, gpu)?.map(|plan| plan.map(DevicePlan::Transpose)),
        FusionKind::ReduceWindow => {
            windows::plan(fusion, gpu, target)?.map(|plan| plan.map(DevicePlan::Windows))
        }
        FusionKind::MultiOutput => {
            outputs::plan(fusion, gpu, target)?.map(|plan| plan.map(DevicePlan::Outputs))
        }
        FusionKind::Update => movement::update(fusion)?.map(|plan| plan.map(DevicePlan::Update)),
        FusionKind::Reduce => reduce::plan(fusion, gpu)?.map(|plan| plan.map(DevicePlan::Reduce)),
        FusionKind::Rows => rows::plan(fusion, gpu, target)?.map(|plan| plan.map(DevicePlan::Rows)),
        FusionKind::Dot { dot: hero } | FusionKind::Convolution { convolution: hero } => {
            contraction::plan(fusion, hero, gpu, planner.allow_tf32)?
                .map(|plan| plan.map(|plan| DevicePlan::Contraction(Box::new(plan))))
        }
        FusionKind::Attention { scores, values } => {
            attention::plan(fusion, [scores, values], gpu, planner.allow_tf32)?
                .map(|plan| plan.map(|plan| DevicePlan::Attention(Box::new(plan))))
        }
        FusionKind::Chain { .. } => None,
    })
}
