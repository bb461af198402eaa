//! Plans a module: the strategy of each instruction.

use crate::contraction::{Planner, attention, chain, convolution, dot};
use crate::device;
use crate::fusion::Fusion;
use crate::movement::{overwritten, update};
use crate::options::Options;
use crate::reduction::{reduce, reduce_window, rows};
use crate::strategy::{ComputationPlan, InstructionPlan, ModulePlan, Strategy};
use crate::tasks::{self, Work};
use crate::{fft, loops, multi_output, sort, tuning};
use hlo::{Computation, FusionKind, InstructionId, Module, Op};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use target::Target;

/// Plans a module. An error lists every instruction that no strategy covers.
pub fn plan(module: &Module, target: &Target) -> Result<ModulePlan> {
    plan_with(module, target, &Options::default())
}

/// Same as [`plan`], with the caller's options.
pub fn plan_with(module: &Module, target: &Target, options: &Options) -> Result<ModulePlan> {
    let mut plans = ModulePlan { is_for_device: target.gpu.is_some(), ..ModulePlan::default() };
    let mut unsupported = Vec::new();
    let mut ignored = BTreeSet::new();
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
            let Options { winograd, allow_tf32, .. } = *options;
            let packings = &options.packings;
            let planner = Planner { target, winograd, allow_tf32, candidate, packings };
            match plan_instruction(module, computation, instruction, planner) {
                Ok(mut plan) => {
                    plan.work = work(module, computation, instruction, &plan)?;
                    plan.tuned = candidate;
                    instructions.insert(instruction, plan);
                }
                Err(error) => unsupported.push(format!("{}: {error}", computation[instruction].described())),
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
    Err(Error::unsupported(format!(
        "cannot generate code for these instructions:\n  {}",
        unsupported.join("\n  ")
    )))
}

/// Estimates the work of an instruction's kernel.
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
        Strategy::Convolution(plan) if plan.kind.saves_products() => {
            let work = Work::of_kernel(&Fusion::of(module, computation, id)?);
            // Of every 36 products, Winograd leaves 16, plus the transforms.
            Ok(Work { operations: work.operations / 8 * 5, ..work })
        }
        Strategy::Rows(rows) => Ok(Work::of_kernel(&Fusion::of(module, computation, id)?).and(rows.sums())),
        _ => Ok(Work::of_kernel(&Fusion::of(module, computation, id)?)),
    }
}

/// True if an attention instruction has a plan on each of these targets and is worth fusing there.
pub fn attention_pays(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    targets: &[Target],
    options: &Options,
) -> bool {
    let Ok(fusion) = Fusion::of(module, computation, id) else { return false };
    let FusionKind::Attention { scores, values } = fusion.kind() else { return false };
    targets.iter().all(|target| match target.gpu {
        Some(gpu) => device::attention::pays(&fusion, [scores, values], gpu, options.allow_tf32),
        None => attention::plan(&fusion, scores, values, target).is_ok(),
    })
}

/// Plans one instruction.
fn plan_instruction(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    planner: Planner<'_>,
) -> Result<InstructionPlan> {
    let target = planner.target;
    let instruction = &computation[id];
    for (_, leaf) in instruction.shape().leaves() {
        if !leaf.is_row_major() {
            return Err(Error::unsupported(format!(
                "unsupported layout {leaf}; only row-major arrays are supported"
            )));
        }
    }
    if overwritten::is_overwritten(module, computation, id) {
        return Ok(InstructionPlan::new(Strategy::Undefined));
    }
    if let Some(plan) = device::plan(module, computation, id, planner)? {
        return Ok(plan.map(|plan| Strategy::Device(Box::new(plan))));
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
            // A task of a device copies at least a cache line.
            let most = (instruction.shape().byte_size() / 64).max(1) as i64;
            let tasks = tasks::Work { operations: 0, bytes }.tasks(target).min(most);
            return Ok(InstructionPlan { tasks, ..InstructionPlan::new(Strategy::Concatenate) });
        }
        Op::DynamicUpdateSlice {} => return Ok(in_place(Strategy::DynamicUpdateSlice(None))),
        Op::Scatter { .. } if instruction.shape().as_array().is_some() => {
            return Ok(in_place(Strategy::Scatter));
        }
        // Among several arrays, one may be another's updates, so each result starts as a copy.
        Op::Scatter { .. } => Strategy::Scatter,
        Op::Sort { .. } | Op::TopK { .. } => {
            let work = Work::of_kernel(&Fusion::of(module, computation, id)?);
            let plan = sort::plan(module, computation, id, work, target);
            let is_top_k = matches!(instruction.op(), Op::TopK { .. });
            let strategy = if is_top_k { Strategy::TopK } else { Strategy::Sort };
            return Ok(plan.map(|plan| strategy(plan.map(Box::new))));
        }
        Op::Fft { .. } => {
            let fusion = Fusion::of(module, computation, id)?;
            let plan = fft::plan(&fusion, Work::of_kernel(&fusion), target)?;
            return Ok(plan.map(|plan| Strategy::Fft(Box::new(plan))));
        }
        op @ Op::RngBitGenerator { .. } => {
            let plan = InstructionPlan::new(Strategy::RngBitGenerator);
            let data = instruction.shape().leaves().get(1).map(|(_, data)| *data);
            let blocks = data.map_or(1, |data| device::random::blocks(op, data));
            return Ok(InstructionPlan {
                tasks: if target.gpu.is_some() { blocks.max(1) } else { 1 },
                ..plan
            });
        }
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
                "custom call \"{custom_call_target}\" has no implementation; express its computation as HLO"
            )));
        }
        _ => {
            let fusion = Fusion::of(module, computation, id)?;
            return plan_fusion(&fusion, planner);
        }
    };
    Ok(InstructionPlan::new(strategy))
}

/// Plans a kernel by its fusion kind.
fn plan_fusion(fusion: &Fusion<'_>, planner: Planner<'_>) -> Result<InstructionPlan> {
    let target = planner.target;
    Ok(match fusion.kind() {
        FusionKind::Loop => loops::plan(fusion, target)?.map(Strategy::Loop),
        FusionKind::Update => update::plan(fusion, target)?.map(Strategy::DynamicUpdateSlice),
        FusionKind::Reduce => reduce::plan(fusion, target)?.map(Strategy::Reduce),
        FusionKind::ReduceWindow => reduce_window::plan(fusion, target)?.map(Strategy::ReduceWindow),
        FusionKind::Rows => rows::plan(fusion, target)?.map(Strategy::Rows),
        FusionKind::MultiOutput => {
            multi_output::plan(fusion, target)?.map(|plan| Strategy::MultiOutput(Box::new(plan)))
        }
        FusionKind::Dot { dot } => dot::plan(fusion, dot, planner)?.map(|plan| Strategy::Dot(Box::new(plan))),
        FusionKind::Convolution { convolution } => {
            let plan = convolution::plan(fusion, convolution, planner)?;
            plan.map(|plan| Strategy::Convolution(Box::new(plan)))
        }
        FusionKind::Chain { .. } => {
            chain::plan(fusion, target)?.map(|plan| Strategy::ConvolutionChain(Box::new(plan)))
        }
        FusionKind::Attention { scores, values } => {
            let plan = attention::plan(fusion, scores, values, target)?;
            plan.map(|plan| Strategy::Attention(Box::new(plan)))
        }
    })
}

/// A plan whose result may overwrite operand 0.
fn in_place(strategy: Strategy) -> InstructionPlan {
    InstructionPlan { may_overwrite: vec![0], ..InstructionPlan::new(strategy) }
}
