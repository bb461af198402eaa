//! Keys of kernels and machines in tables of [`Choices`], and the candidates of a kernel.

use crate::candidate::{Candidate, MAX_CANDIDATES};
use crate::contraction::convolution::{self, ConvolutionKind, GradientTransform};
use crate::contraction::dot;
use crate::contraction::operands::constant_operand;
use crate::fusion::{Fusion, Position};
use crate::options::Options;
use crate::rationale::{Considered, Rationale};
use crate::strategy::{InstructionPlan, Strategy};
use hlo::{Computation, ConvolutionForm, DotDimensionNumbers, FusionKind, InstructionId, Module, Op, Window};
use shape::{ArrayShape, Shape};
use std::fmt::Write as _;
use target::{Architecture, Target};

pub use crate::choices::{Choices, MAX_BYTES};

/// The candidate that the options' choices name for an instruction. The error is the kernel's key
/// if they name something other than one of its candidates.
pub(crate) fn choose(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    target: &Target,
    options: &Options,
) -> std::result::Result<Option<Candidate>, String> {
    let Some(kernels) = options.choices.of_machine(&machine(target)) else { return Ok(None) };
    let Ok(fusion) = Fusion::of(module, computation, id) else { return Ok(None) };
    let Some(kernel) = kernel(&fusion) else { return Ok(None) };
    let Some(name) = kernels.get(&kernel) else { return Ok(None) };
    match Candidate::parse(name) {
        Some(choice) if of_fusion(&fusion, target, options).contains(&choice) => Ok(Some(choice)),
        _ => Err(kernel),
    }
}

impl Candidate {
    /// The candidate that a plan implements, if the instruction has alternatives.
    pub fn of(plan: &InstructionPlan) -> Option<Self> {
        match &plan.strategy {
            Strategy::Dot(dot) => dot::candidate(&dot.loops),
            Strategy::Convolution(convolution) => match &convolution.kind {
                ConvolutionKind::Dense(dense) => Some(dense.candidate()),
                ConvolutionKind::Depthwise(depthwise) => Some(depthwise.candidate()),
                ConvolutionKind::WinogradGradient(_) => {
                    Some(Self::Winograd { outputs: GradientTransform::PIXELS as u32 })
                }
                ConvolutionKind::Winograd(winograd) => {
                    Some(Self::Winograd { outputs: winograd.transform.outputs as u32 })
                }
                ConvolutionKind::Gradient(gradient) => Some(gradient.candidate()),
                ConvolutionKind::General { .. } => None,
            },
            _ => None,
        }
    }
}

/// Candidates for an instruction, the planner's choice first. Empty if the instruction is not a
/// contraction or can be computed in one way only.
pub fn candidates(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    target: &Target,
    options: &Options,
) -> Vec<Candidate> {
    let Ok(fusion) = Fusion::of(module, computation, id) else { return Vec::new() };
    let candidates = of_fusion(&fusion, target, options);
    if candidates.len() > 1 { candidates } else { Vec::new() }
}

/// The candidates for an instruction with their modeled costs, and why the planner chooses the
/// first. `None` if there are no candidates.
pub fn rationale(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    target: &Target,
    options: &Options,
) -> Option<Rationale> {
    let all = candidates(module, computation, id, target, options);
    if all.is_empty() {
        return None;
    }
    let fusion = Fusion::of(module, computation, id).ok()?;
    match fusion.kind() {
        FusionKind::Dot { dot } => {
            let candidates = all.into_iter().map(|candidate| Considered { candidate, cost: None }).collect();
            Some(Rationale { candidates, reason: dot::reason(&fusion, dot, target)? })
        }
        FusionKind::Convolution { convolution } => {
            convolution::rationale(&fusion, convolution, target, options.winograd, &all)
        }
        _ => None,
    }
}

pub(crate) fn of_fusion(fusion: &Fusion<'_>, target: &Target, options: &Options) -> Vec<Candidate> {
    let all = match fusion.kind() {
        FusionKind::Dot { dot } => dot::candidates(fusion, dot, target),
        FusionKind::Convolution { convolution } => {
            convolution::candidates(fusion, convolution, target, options.winograd)
        }
        _ => Vec::new(),
    };
    let mut candidates = Vec::new();
    for candidate in all {
        if candidates.len() < MAX_CANDIDATES && !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// Key of a machine: the properties that the plan reads.
pub fn machine(target: &Target) -> String {
    let architecture = match target.triple.architecture {
        Architecture::X86_64 => "x86_64",
        Architecture::X86 => "x86",
        Architecture::Aarch64 => "aarch64",
        Architecture::Arm => "arm",
        Architecture::Riscv32 => "riscv32",
        Architecture::Riscv64 => "riscv64",
        Architecture::Wasm32 => "wasm32",
        Architecture::Nvptx64 => "nvptx64",
        Architecture::Spirv64 => "spirv64",
        Architecture::Other => "other",
    };
    let cpu = if target.cpu.is_empty() { "baseline" } else { &target.cpu };
    let (registers, bytes) = (target.vector_registers, target.vector_bytes);
    let fma = if target.has_fma { " fma" } else { "" };
    format!("{architecture} {cpu} {registers}x{bytes}{fma} l1={} l2={}", target.l1_bytes, target.l2_bytes)
}

/// Key of a contraction's kernel: the properties that the plan reads. `None` for other kernels.
pub fn kernel(fusion: &Fusion<'_>) -> Option<String> {
    let body = fusion.body;
    let id = fusion.kind().hero()?;
    let operand = |k: usize| {
        let operand = *body[id].operands().get(k)?;
        let shape = body[operand].shape().as_array()?;
        let is_constant = match fusion.position(operand) {
            Position::Operand(number) => constant_operand(fusion, number).is_some(),
            Position::Inside => false,
        };
        let constant = if is_constant { "constant " } else { "" };
        Some(format!("{constant}{}", of_array(shape)))
    };
    let (lhs, rhs) = (operand(0)?, operand(1)?);
    let mut text = match body[id].op() {
        Op::Dot { dot_dimension_numbers: numbers } => {
            let DotDimensionNumbers { lhs_batch_dims, lhs_contracting_dims, .. } = numbers;
            let left = dims(lhs_batch_dims, lhs_contracting_dims);
            let right = dims(&numbers.rhs_batch_dims, &numbers.rhs_contracting_dims);
            format!("dot {lhs}{left} {rhs}{right}")
        }
        Op::Convolution { window, dim_labels, feature_group_count, .. } => {
            let is_gradient = ConvolutionForm::of(body[id].op()) == Some(ConvolutionForm::KernelGradient);
            let what = if is_gradient { "kernel-gradient" } else { "convolution" };
            let numbers =
                [&[dim_labels.input_batch_dimension][..], &[dim_labels.input_feature_dimension]].concat();
            let labels = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join("");
            let groups = if *feature_group_count == 1 {
                String::new()
            } else {
                format!(" groups={feature_group_count}")
            };
            format!("{what} {lhs} {rhs} {labels}{}{groups}", of_window(window))
        }
        _ => return None,
    };
    let _ = write!(text, " -> {}", of_shape(fusion.shape()));
    let mut beside = Vec::new();
    for inside in fusion.instructions() {
        let op = body[inside].op();
        let is_plain =
            matches!(op, Op::Constant { .. } | Op::Broadcast { .. } | Op::Reshape {} | Op::Bitcast {});
        if inside != id && !is_plain {
            let _ = write!(text, "; {}", body[inside].opcode().name());
        }
        let outside = |&&o: &&hlo::InstructionId| fusion.position(o) != Position::Inside;
        if inside != id {
            let shapes = body[inside].operands().iter().filter(outside);
            beside.extend(shapes.map(|&o| of_shape(body[o].shape())));
        }
    }
    for shape in beside {
        let _ = write!(text, "; {shape}");
    }
    Some(text)
}

/// Batch and contracting dimensions, as in `b0c2`.
fn dims(batch: &[usize], contracting: &[usize]) -> String {
    let list = |letter: char, dims: &[usize]| dims.iter().map(|d| format!("{letter}{d}")).collect::<String>();
    list('b', batch) + &list('c', contracting)
}

fn of_shape(shape: &Shape) -> String {
    match shape.as_array() {
        Some(array) => of_array(array),
        None => shape.leaves().iter().map(|(_, leaf)| of_array(leaf)).collect::<Vec<_>>().join("+"),
    }
}

fn of_array(shape: &ArrayShape) -> String {
    let sizes = shape.sizes().iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    format!("{}[{sizes}]", shape.element_type)
}

/// Sizes, and those of strides, padding, and dilations that differ from a plain window's.
fn of_window(window: &Window) -> String {
    let list = |each: &dyn Fn(&hlo::WindowDimension) -> String| {
        window.dimensions.iter().map(each).collect::<Vec<_>>().join("x")
    };
    let mut text = format!(" window={}", list(&|d| d.size.to_string()));
    if window.dimensions.iter().any(|d| d.stride != 1) {
        let _ = write!(text, " stride={}", list(&|d| d.stride.to_string()));
    }
    if window.dimensions.iter().any(|d| d.padding_low != 0 || d.padding_high != 0) {
        let _ = write!(text, " pad={}", list(&|d| format!("{}_{}", d.padding_low, d.padding_high)));
    }
    if window.dimensions.iter().any(|d| d.window_dilation != 1) {
        let _ = write!(text, " rhs_dilate={}", list(&|d| d.window_dilation.to_string()));
    }
    if window.dimensions.iter().any(|d| d.base_dilation != 1) {
        let _ = write!(text, " lhs_dilate={}", list(&|d| d.base_dilation.to_string()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_keys_differ_by_properties_that_plans_read() {
        let new = |cpu| Target::new("x86_64-pc-linux", cpu, "").unwrap();
        assert_eq!(machine(&new("")), "x86_64 baseline 16x16 l1=32768 l2=524288");
        assert_ne!(machine(&new("x86-64-v3")), machine(&new("x86-64-v4")));
    }
}
