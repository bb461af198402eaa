//! Strategies for devices: the threads of a workgroup share the work of a row, a tile, or a block.
//!
//! A device plan has steps, one kernel each, that run in order on the same parameters. Everything
//! that no device plan covers has the strategy of a processor, with a thread for each task.

mod contraction;

pub use contraction::{
    Check, ContractionPlan, ContractionView, FewRows, GroupTile, MatrixTile, Method, OperandView, Role, Step,
};

use crate::contraction::Planner;
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use hlo::{Computation, FusionKind, InstructionId, Module, Op};
use std::fmt;
use support::Result;
use target::Gpu;

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
    /// A dot or a convolution with its epilogue.
    Contraction(ContractionPlan),
}

impl fmt::Display for DevicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contraction(plan) => plan.fmt(f),
        }
    }
}

impl DevicePlan {
    /// Number of kernels that run one after another.
    pub fn steps(&self) -> usize {
        match self {
            Self::Contraction(plan) => plan.steps(),
        }
    }

    /// The grid of a step.
    pub fn grid(&self, step: usize) -> GroupGrid {
        match self {
            Self::Contraction(plan) => plan.grid(step),
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
    Ok(match fusion.kind() {
        FusionKind::Dot { dot: hero } | FusionKind::Convolution { convolution: hero } => {
            contraction::plan(fusion, hero, gpu, planner.allow_tf32)?.map(|plan| plan.map(DevicePlan::Contraction))
        }
        _ => None,
    })
}
