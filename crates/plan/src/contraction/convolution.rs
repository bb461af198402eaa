//! Convolutions in canonical form: how their loops, tiles and packed kernels look.

mod area;
pub(crate) mod bands;
mod candidates;
mod cost;
mod dense;
mod depthwise;
mod dims;
mod gradient;
mod pack;
mod tiling;
mod winograd;
mod winograd_gradient;
mod winograd_matrices;

pub(crate) use candidates::candidates;
pub(crate) use dims::is_kernel_gradient;

pub use dense::DensePlan;
pub use depthwise::DepthwisePlan;
pub use dims::{ConvolutionDims, Segment, SpatialDimension};
pub use gradient::{GradientPlan, GradientSize, Strip};
pub use tiling::{Rectangle, TileSize, Tiling};
pub use winograd::{Winograd, WinogradPlan, WinogradScratch};
pub use winograd_gradient::{WinogradGradientPlan, WinogradGradientScratch};
pub use winograd_matrices::{GradientTransform, Transform};

use super::epilogue::check_epilogue;
use super::packing::{Packing, constant_operand, is_read_once};
use super::tile::accumulator;
use crate::candidate::Candidate;
use crate::fusion::{Fusion, Position};
use crate::in_place::overwritable;
use crate::strategy::{InstructionPlan, Options, PackedConstant, Strategy};
use crate::tasks::Work;
use bands::Lines;
use hlo::Op;
use shape::{ArrayShape, Literal, PrimitiveType};
use support::{Error, Result};
use target::Target;

/// The loops of a convolution.
#[derive(Clone, Debug, PartialEq)]
pub enum ConvolutionKind {
    /// Tiles of pixels times vectors of output features.
    Dense(DensePlan),
    /// The same where each output feature has one input feature.
    Depthwise(DepthwisePlan),
    /// Patches of pixels, transformed so that each output takes fewer multiplications.
    Winograd(Box<WinogradPlan>),
    /// Products of two arrays of pixels, summed over these: the gradient of a convolution's kernel, in its own form.
    Gradient(GradientPlan),
    /// The same of 3x3 taps, from transformed patches of both arrays.
    WinogradGradient(Box<WinogradGradientPlan>),
    /// One vector of output features after another, each tap looked up: everything that no other kind covers.
    General {
        /// Output features at once; 1 is a scalar loop.
        lanes: u32,
        /// Into how many parts the lines of pixels are cut: the kernel's tasks.
        chunks: i64,
    },
}

impl ConvolutionKind {
    /// Whether patches are transformed.
    pub(crate) fn is_transformed(&self) -> bool {
        matches!(self, Self::Winograd(_) | Self::WinogradGradient(_))
    }
}

impl ConvolutionKind {
    /// The tiles of the output, if it is cut into some.
    pub fn tiling(&self) -> Option<&Tiling> {
        match self {
            Self::Dense(dense) => Some(&dense.tiling),
            Self::Depthwise(depthwise) => Some(&depthwise.tiling),
            Self::Gradient(_) | Self::WinogradGradient(_) | Self::Winograd(_) | Self::General { .. } => None,
        }
    }
}

/// How a convolution looks.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvolutionPlan {
    /// Its extents.
    pub dims: ConvolutionDims,
    /// Its loops.
    pub kind: ConvolutionKind,
    /// The type of products and sums.
    pub accumulator: PrimitiveType,
    /// The fusion's operand that is the input.
    pub input_operand: usize,
    /// The fusion's operand that is the kernel.
    pub kernel_operand: usize,
}

/// Plans a body that holds convolutions, with elementwise work behind each; as a candidate says, if one is given.
pub(crate) fn plan(
    fusion: &Fusion<'_>,
    candidate: Option<Candidate>,
    target: &Target,
    options: &Options,
) -> Result<InstructionPlan> {
    let id = fusion.find_convolution().ok_or_else(|| Error::internal("the body has a convolution"))?;
    check_epilogue(fusion, id)?;
    let (plan, packed) = stage_plan(fusion, None, None, (target, options, candidate))?;
    let (tasks, worker_scratch_bytes) = match &plan.kind {
        ConvolutionKind::Dense(dense) => (dense.tasks(), 0),
        ConvolutionKind::Depthwise(depthwise) => (depthwise.tasks(), 0),
        ConvolutionKind::Winograd(winograd) => (winograd.tasks(), winograd.scratch.bytes as u64),
        ConvolutionKind::Gradient(gradient) => {
            let elements = gradient.most_rows().saturating_mul(gradient.scratch_row(&plan.dims)) as u64;
            (gradient.tasks(), elements.saturating_mul(plan.accumulator.byte_size() as u64))
        }
        ConvolutionKind::WinogradGradient(gradient) => {
            (gradient.tasks(&plan.dims), gradient.scratch_bytes() as u64)
        }
        ConvolutionKind::General { chunks, .. } => (*chunks, 0),
    };
    let strategy = Strategy::Convolution(Box::new(plan));
    let may_overwrite = if fusion.row_slice().is_some() { overwritable(fusion) } else { Vec::new() };
    let instruction = InstructionPlan::new(strategy);
    Ok(InstructionPlan { packed, tasks, worker_scratch_bytes, may_overwrite, ..instruction })
}

/// Plans the convolution in front of a body's root, in bands or as a whole, and packs its constants. The input is an
/// operand of the fusion unless its number is given.
pub(crate) fn stage_plan(
    fusion: &Fusion<'_>,
    input_number: Option<usize>,
    bands: Option<&[Lines]>,
    decisions: (&Target, &Options, Option<Candidate>),
) -> Result<(ConvolutionPlan, Vec<PackedConstant>)> {
    let plan = stage_loops(fusion, input_number, bands, decisions)?;
    let ConvolutionPlan { dims, kind, accumulator, kernel_operand, .. } = &plan;
    let mut packed = Vec::new();
    let bytes = match (kind, kernel_constant(fusion, *kernel_operand)) {
        (ConvolutionKind::Dense(dense), Some(literal)) if dense.kernel_packing == Packing::Constant => {
            Some(pack::panels(literal, dims, dense, *accumulator))
        }
        (ConvolutionKind::Winograd(winograd), Some(literal))
            if winograd.kernel_packing == Packing::Constant =>
        {
            Some(winograd_matrices::panels(literal, dims, winograd, *accumulator))
        }
        _ => None,
    };
    packed.extend(bytes.map(|bytes| PackedConstant { operand: Some(*kernel_operand), bytes }));
    if let ConvolutionKind::Gradient(gradient) = kind {
        packed.push(PackedConstant { operand: None, bytes: gradient.table().into() });
    }
    if let Some(tiling) = kind.tiling().filter(|tiling| tiling.needs_table()) {
        packed.push(PackedConstant { operand: None, bytes: tiling.table().into() });
    }
    Ok((plan, packed))
}

/// The kernel's values, if they are known and the kernel alone reads them: it does not see a packed operand's own layout.
fn kernel_constant<'m>(fusion: &Fusion<'m>, kernel_operand: usize) -> Option<&'m Literal> {
    constant_operand(fusion, kernel_operand).filter(|_| is_read_once(fusion, kernel_operand))
}

/// As [`stage_plan`], without packing anything.
fn stage_loops(
    fusion: &Fusion<'_>,
    input_number: Option<usize>,
    bands: Option<&[Lines]>,
    (target, options, candidate): (&Target, &Options, Option<Candidate>),
) -> Result<ConvolutionPlan> {
    let id = fusion.find_convolution().ok_or_else(|| Error::internal("the body has a convolution"))?;
    let shape = |k: usize| fusion.body[fusion.body[id].operands()[k]].shape().expect_array();
    let operand = |k: usize| match fusion.position(fusion.body[id].operands()[k]) {
        Position::Operand(number) => Ok(number),
        Position::Inside => Err(Error::internal("a convolution's operands are in memory")),
    };
    let (input, kernel) = (shape(0), shape(1));
    let input_operand = input_number.map_or_else(|| operand(0), Ok)?;
    let kernel_operand = operand(1)?;
    let result = fusion.body[id].shape().expect_array();
    if [input, kernel, result].iter().any(|s| s.element_type == PrimitiveType::Pred) {
        return Err(Error::unsupported(
            "opcode convolution of pred; convert its operands to an integer type",
        ));
    }
    let accumulator = accumulator(result.element_type);
    if dims::is_kernel_gradient(fusion.body[id].op()) {
        let arrays = [input, kernel, result];
        let operands = (input_operand, kernel_operand);
        return gradient_plan(fusion.body[id].op(), arrays, operands, (target, options, candidate));
    }
    let dims = ConvolutionDims::new(fusion.body[id].op(), input, kernel, result)?;
    let constant = kernel_constant(fusion, kernel_operand);
    let is_cheap = |from| is_cheap(from, accumulator, target);
    let in_place = is_cheap(input.element_type) && is_cheap(kernel.element_type);
    let with_constant = is_cheap(input.element_type) && constant.is_some();
    let allowed = candidates::allowed(candidate, options.winograd);
    let kind = None
        .or_else(|| {
            let choose = || winograd::choose(&dims, accumulator, constant.is_some(), allowed, target);
            let winograd = bands.is_none().then(choose).flatten();
            winograd.filter(|_| in_place || with_constant).map(|w| ConvolutionKind::Winograd(Box::new(w)))
        })
        .or_else(|| {
            let depthwise = depthwise::choose(&dims, accumulator, bands, candidate, target);
            depthwise.filter(|_| in_place).map(ConvolutionKind::Depthwise)
        })
        .or_else(|| {
            let dense = dense::choose(&dims, accumulator, constant.is_some(), bands, candidate, target);
            dense.filter(|_| in_place || with_constant).map(ConvolutionKind::Dense)
        })
        .filter(|_| result.element_count() > 0)
        .unwrap_or_else(|| general(&dims, accumulator, target));
    Ok(ConvolutionPlan { dims, kind, accumulator, input_operand, kernel_operand })
}

/// Whether a convolution of these extents, in front of a body's root, has a plan in tiles, and none that is better.
pub(crate) fn has_tiles(
    fusion: &Fusion<'_>,
    dims: &ConvolutionDims,
    (target, options): (&Target, &Options),
) -> bool {
    let Some(id) = fusion.find_convolution() else { return false };
    let types = |k: usize| fusion.body[fusion.body[id].operands()[k]].shape().expect_array().element_type;
    let result = fusion.body[id].shape().expect_array();
    let accumulator = accumulator(result.element_type);
    let is_plain = [types(0), types(1)]
        .iter()
        .all(|&from| from != PrimitiveType::Pred && is_cheap(from, accumulator, target));
    let has_kind = || {
        depthwise::choose(dims, accumulator, None, None, target).is_some()
            || dense::choose(dims, accumulator, true, None, None, target).is_some()
    };
    let is_transformed = || winograd::choose(dims, accumulator, true, options.winograd, target).is_some();
    is_plain && result.element_count() > 0 && has_kind() && !is_transformed()
}

/// Plans the gradient of a kernel that stands as it is.
fn gradient_plan(
    op: &Op,
    [input, kernel, result]: [&ArrayShape; 3],
    (input_operand, kernel_operand): (usize, usize),
    (target, options, candidate): (&Target, &Options, Option<Candidate>),
) -> Result<ConvolutionPlan> {
    let accumulator = accumulator(result.element_type);
    if [input, kernel].iter().any(|s| s.element_type != accumulator) || accumulator.is_complex() {
        return Err(Error::unsupported("gradient of a kernel in another type than that of its sums"));
    }
    let dims = ConvolutionDims::of_gradient(op, input, kernel, result)?;
    let allowed = candidates::allowed(candidate, options.winograd);
    if let Some(patches) = winograd_gradient::choose(&dims, accumulator, allowed, target) {
        let kind = ConvolutionKind::WinogradGradient(Box::new(patches));
        return Ok(ConvolutionPlan { dims, kind, accumulator, input_operand, kernel_operand });
    }
    let gradient = gradient::choose(&dims, accumulator, candidate, target)
        .ok_or_else(|| Error::unsupported("gradient of a kernel of more than three spatial dimensions"))?;
    let kind = ConvolutionKind::Gradient(gradient);
    Ok(ConvolutionPlan { dims, kind, accumulator, input_operand, kernel_operand })
}

/// Whether an element is converted to the accumulator's type each time it is read, rather than once.
fn is_cheap(from: PrimitiveType, accumulator: PrimitiveType, target: &Target) -> bool {
    if accumulator.is_complex() {
        return false;
    }
    match from {
        PrimitiveType::F16 => target.has_f16_conversion,
        _ => !from.is_minifloat() && !from.is_subbyte_integer(),
    }
}

/// The widest vector that a group's output features fill; tasks of whole lines.
fn general(dims: &ConvolutionDims, accumulator: PrimitiveType, target: &Target) -> ConvolutionKind {
    let mut lanes = if accumulator.is_complex() { 1 } else { target.lanes(accumulator.byte_size()) };
    while i64::from(lanes) > dims.outputs.max(1) {
        lanes /= 2;
    }
    let wanted = Work { operations: dims.work().max(0) as u64, bytes: 0 }.tasks();
    let chunks = wanted.min(dims.lines()).max(1);
    ConvolutionKind::General { lanes, chunks }
}

impl std::fmt::Display for ConvolutionPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ConvolutionDims { batch, groups, inputs, outputs, .. } = self.dims;
        let kind = match &self.kind {
            ConvolutionKind::Dense(_) => "tiled convolution",
            ConvolutionKind::Depthwise(_) => "depthwise convolution",
            ConvolutionKind::Winograd(_) => "convolution by transformed patches",
            ConvolutionKind::Gradient(_) => "gradient of a kernel",
            ConvolutionKind::WinogradGradient(_) => "gradient of a kernel by transformed patches",
            ConvolutionKind::General { .. } => "general convolution",
        };
        write!(f, "{kind} {batch}x{}", self.dims.pixels())?;
        if groups != 1 {
            write!(f, ", {groups} groups")?;
        }
        write!(f, ", {} taps, {inputs} to {outputs} features in {}", self.dims.taps(), self.accumulator)?;
        if let Some(tiling) = self.kind.tiling() {
            let sizes = tiling.sizes.iter().map(|s| s.pixels.to_string()).collect::<Vec<_>>();
            write!(f, ", tiles {}", sizes.join("/"))?;
        }
        match &self.kind {
            ConvolutionKind::Dense(dense) => {
                write!(f, "x{} of {} lanes", dense.tile.vectors, dense.tile.lanes)?;
                match dense.kernel_packing {
                    Packing::Constant => f.write_str(", kernel packed at compile time"),
                    Packing::None | Packing::Scratch => Ok(()),
                }
            }
            ConvolutionKind::Depthwise(plan) => write!(f, "x{} of {} lanes", plan.vectors, plan.lanes),
            ConvolutionKind::Winograd(plan) => plan.fmt(f),
            ConvolutionKind::WinogradGradient(plan) => plan.fmt(f),
            ConvolutionKind::Gradient(plan) => {
                let rows = plan.sizes.iter().map(|s| s.rows.to_string()).collect::<Vec<_>>();
                let (vectors, lanes) = (plan.tile.vectors, plan.tile.lanes);
                write!(f, ", tiles {}x{vectors} of {lanes} lanes", rows.join("/"))?;
                write!(f, ", blocks of {} images and {} lines", plan.images, plan.lines)
            }
            ConvolutionKind::General { lanes, .. } => write!(f, ", {lanes} lanes"),
        }
    }
}
