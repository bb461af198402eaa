//! Strategies for devices: the threads of a workgroup share the work of a row, a tile, or a block.
//!
//! A device plan has steps, one kernel each, that run in order on the same parameters. Everything
//! that no device plan covers has the strategy of a processor, with a thread for each task.

mod contraction;
pub(crate) mod loops;
pub(crate) mod movement;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod teams;

pub use contraction::{
    Check, ContractionPlan, ContractionView, FewRows, GroupTile, MatrixTile, Method, OperandView, Role, Step,
};

use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use hlo::{Computation, FusionKind, InstructionId, Module, Op};
use movement::{CopyPlan, UpdatePlan};
use reduce::TeamReducePlan;
use rows::TeamRowsPlan;
use std::fmt;
use support::Result;
use target::{Gpu, Target};

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
    /// A dot or a convolution with its epilogue.
    Contraction(ContractionPlan),
}

impl fmt::Display for DevicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reduce(plan) => plan.fmt(f),
            Self::Rows(plan) => plan.fmt(f),
            Self::Copy(plan) => plan.fmt(f),
            Self::Update(plan) => plan.fmt(f),
            Self::Contraction(plan) => plan.fmt(f),
        }
    }
}

impl DevicePlan {
    /// Number of kernels that run one after another.
    pub fn steps(&self) -> usize {
        match self {
            Self::Reduce(plan) => plan.steps(),
            Self::Rows(_) | Self::Copy(_) => 1,
            Self::Update(_) => 2,
            Self::Contraction(plan) => plan.steps(),
        }
    }

    /// The grid of a step.
    pub fn grid(&self, step: usize) -> GroupGrid {
        match self {
            Self::Reduce(plan) => plan.grid(step),
            Self::Rows(plan) => plan.grid(),
            Self::Copy(plan) => plan.grid(step),
            Self::Update(plan) => plan.grid(step),
            Self::Contraction(plan) => plan.grid(step),
        }
    }

    /// True if operands are read only element by element, so that an immediate can replace them.
    pub fn reads_elements(&self) -> bool {
        match self {
            Self::Reduce(_) | Self::Rows(_) => true,
            Self::Copy(_) | Self::Update(_) | Self::Contraction(_) => false,
        }
    }
}

/// Plans an instruction for a device, or returns `None` if a thread for each task does as well.
pub(crate) fn plan(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    target: &Target,
) -> Result<Option<KernelPlan<DevicePlan>>> {
    let Some(gpu) = target.gpu else { return Ok(None) };
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
    plan_fusion(&fusion, gpu, target)
}

fn plan_fusion(fusion: &Fusion<'_>, gpu: Gpu, target: &Target) -> Result<Option<KernelPlan<DevicePlan>>> {
    if let Op::Concatenate { .. } = fusion.caller[fusion.instruction].op() {
        return Ok(movement::concatenation(fusion).map(|plan| plan.map(DevicePlan::Copy)));
    }
    Ok(match fusion.kind() {
        FusionKind::Update => movement::update(fusion)?.map(|plan| plan.map(DevicePlan::Update)),
        FusionKind::Reduce => reduce::plan(fusion, gpu)?.map(|plan| plan.map(DevicePlan::Reduce)),
        FusionKind::Rows => rows::plan(fusion, gpu, target)?.map(|plan| plan.map(DevicePlan::Rows)),
        FusionKind::Dot { dot: hero } | FusionKind::Convolution { convolution: hero } => {
            contraction::plan(fusion, hero, gpu)?.map(|plan| plan.map(DevicePlan::Contraction))
        }
        _ => None,
    })
}
