//! Convolutions in canonical form: chooses loops, tiles, and packed kernels.

mod area;
pub(crate) mod bands;
mod candidates;
mod cost;
mod dense;
mod depthwise;
mod dims;
mod gradient;
mod pack;
mod rationale;
mod rectangles;
mod tiling;
mod winograd;
mod winograd_gradient;
mod winograd_kernel;
mod winograd_matrices;

pub(crate) use candidates::candidates;
pub(crate) use rationale::rationale;

pub use dense::DensePlan;
pub use depthwise::{DepthwisePlan, PackedColumns};
pub use dims::{ConvolutionDims, OpenDimensions, Segment, SpatialDimension};
pub use gradient::{GradientPlan, GradientSize, Strip};
pub use rectangles::{Rectangle, TileSize};
pub use tiling::Tiling;
pub use winograd::{Winograd, WinogradPlan, WinogradScratch};
pub use winograd_gradient::{WinogradGradientPlan, WinogradGradientScratch};
pub use winograd_matrices::{GradientTransform, Transform};

use super::Planner;
use super::bias::Bias;
use super::epilogue::check_epilogue;
use super::grouping::FactorTypes;
use super::operands::{constant_operand, is_read_once};
use super::tile::accumulator;
use crate::fusion::{Fusion, Position};
use crate::in_place::{overwritable, reads_overwritten};
use crate::kernel_plan::KernelPlan;
use crate::packing::{PackedConstant, Packing};
use crate::tasks::Work;
use bands::Lines;
use hlo::{ConvolutionForm, InstructionId};
use shape::{ArrayShape, Literal, PrimitiveType};
use support::{Error, Result};
use target::Target;

/// The loops of a convolution.
#[derive(Clone, Debug, PartialEq)]
pub enum ConvolutionKind {
    /// Tiles of pixels times vectors of output features.
    Dense(DensePlan),
    /// The same for one input feature per output feature.
    Depthwise(DepthwisePlan),
    /// Winograd: patches of pixels, transformed so that each output takes fewer multiplications.
    Winograd(Box<WinogradPlan>),
    /// Products of two arrays of pixels, summed over the pixels: the gradient of a convolution with
    /// respect to its kernel.
    Gradient(GradientPlan),
    /// The same gradient for 3x3 taps, from Winograd-transformed patches of both arrays.
    WinogradGradient(Box<WinogradGradientPlan>),
    /// One vector of output features after another, with each tap tested: everything that no other
    /// kind covers.
    General {
        /// Output features computed at once; 1 is a scalar loop.
        lanes: u32,
        /// Number of parts into which the lines of pixels are divided: the kernel's tasks.
        chunks: i64,
    },
}

impl ConvolutionKind {
    /// True if patches are transformed, which saves products.
    pub(crate) fn saves_products(&self) -> bool {
        match self {
            Self::Winograd(plan) => plan.saves_products(),
            Self::WinogradGradient(_) => true,
            _ => false,
        }
    }
}

impl ConvolutionKind {
    /// The tiles of the output, if the output is divided into tiles.
    pub fn tiling(&self) -> Option<&Tiling> {
        match self {
            Self::Dense(dense) => Some(&dense.tiling),
            Self::Depthwise(depthwise) => Some(&depthwise.tiling),
            Self::Gradient(_) | Self::WinogradGradient(_) | Self::Winograd(_) | Self::General { .. } => None,
        }
    }
}

/// Plan of a convolution.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvolutionPlan {
    /// The convolution.
    pub hero: InstructionId,
    /// The instruction whose values the sums become: the convolution, or the addition of a bias
    /// with which they begin. The numbers are then the second packed constant.
    pub sums: InstructionId,
    /// Its extents.
    pub dims: ConvolutionDims,
    /// Its loops.
    pub kind: ConvolutionKind,
    /// The type of products and sums.
    pub accumulator: PrimitiveType,
    /// Index of the fusion's operand that is the input.
    pub input_operand: usize,
    /// Index of the fusion's operand that is the kernel.
    pub kernel_operand: usize,
}

/// Plans a body of a convolution and elementwise work on its result.
pub(crate) fn plan(
    fusion: &Fusion<'_>,
    hero: InstructionId,
    planner: Planner<'_>,
) -> Result<KernelPlan<ConvolutionPlan>> {
    check_epilogue(fusion, hero)?;
    let (plan, packed) = Stage { fusion, hero, input: None, bands: None }.plan(planner)?;
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
    let may_overwrite = if fusion.row_slice().is_some() { overwritable(fusion) } else { Vec::new() };
    Ok(KernelPlan { packed, tasks, worker_scratch_bytes, may_overwrite, ..KernelPlan::new(plan) })
}

/// A convolution and its epilogue.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'s, 'm> {
    /// The body, up to the result of the stage.
    pub(crate) fusion: &'s Fusion<'m>,
    /// The convolution.
    pub(crate) hero: InstructionId,
    /// Index of the input among the kernel's operands, if it is not an operand of the fusion.
    pub(crate) input: Option<usize>,
    /// The lines of each band, if the convolution is computed in bands.
    pub(crate) bands: Option<&'s [Lines]>,
}

impl<'s, 'm> Stage<'s, 'm> {
    /// Plans the loops and packs constants.
    pub(crate) fn plan(self, planner: Planner<'_>) -> Result<(ConvolutionPlan, Vec<PackedConstant>)> {
        let (mut plan, kernel) = self.loops(planner)?;
        let bias = self.take_bias(&mut plan);
        let ConvolutionPlan { dims, kind, accumulator, kernel_operand, .. } = &plan;
        let mut packed = Vec::new();
        let bytes = match (kind, kernel) {
            (ConvolutionKind::Dense(dense), Some(literal)) if dense.kernel_packing == Packing::Constant => {
                Some(pack::panels(literal, dims, dense))
            }
            (ConvolutionKind::Winograd(winograd), Some(literal)) if winograd.bytes.is_some() => {
                winograd.bytes.as_deref().map(|direct| pack::panels(literal, dims, direct))
            }
            (ConvolutionKind::Winograd(winograd), Some(literal))
                if winograd.kernel_packing == Packing::Constant =>
            {
                Some(winograd_kernel::panels(literal, dims, winograd, *accumulator))
            }
            (ConvolutionKind::Depthwise(DepthwisePlan { columns: Some(columns), .. }), Some(literal)) => {
                Some(pack::columns(literal, dims, columns))
            }
            _ => None,
        };
        packed.extend(bytes.map(|bytes| PackedConstant { operand: Some(*kernel_operand), bytes }));
        if let (
            ConvolutionKind::Dense(DensePlan { grouping: Some(grouping), panels, .. }),
            Some(bias),
            [kernel],
        ) = (kind, bias, &packed[..])
        {
            packed.push(bias.packed(*grouping, *panels, &kernel.bytes));
        }
        if let ConvolutionKind::Gradient(gradient) = kind {
            packed.push(PackedConstant { operand: None, bytes: gradient.table().into() });
        }
        if let Some(tiling) = kind.tiling().filter(|tiling| tiling.needs_table()) {
            packed.push(PackedConstant { operand: None, bytes: tiling.table().into() });
        }
        Ok((plan, packed))
    }

    /// Makes sums begin with the bias that follows, if all of them have the same taps, whose
    /// corrections the header of a panel would hold otherwise.
    fn take_bias(self, plan: &mut ConvolutionPlan) -> Option<Bias<'m>> {
        let (dense, is_direct) = match &mut plan.kind {
            ConvolutionKind::Dense(dense) => (dense, true),
            // The panels are those of the direct sum in other versions of the code.
            ConvolutionKind::Winograd(winograd) => (&mut **winograd.bytes.as_mut()?, false),
            _ => return None,
        };
        if dense.kernel_packing != Packing::Constant || plan.dims.groups != 1 || !plan.dims.has_all_taps() {
            return None;
        }
        let bias = Bias::of(self.fusion, self.hero, plan.dims.outputs, dense.grouping)?;
        dense.panels.header = 0;
        if !is_direct {
            return None;
        }
        plan.sums = bias.sum;
        Some(bias)
    }

    /// The kernel's values, if they are constant and only the convolution reads them, because a
    /// packed operand is not available in its own layout.
    fn kernel_constant(self, kernel_operand: usize) -> Option<&'m Literal> {
        let constant = constant_operand(self.fusion, kernel_operand);
        constant.filter(|_| is_read_once(self.fusion, kernel_operand))
    }

    /// The shape of an operand.
    fn operand(self, number: usize) -> &'m ArrayShape {
        let body = self.fusion.body;
        body[body[self.hero].operands()[number]].shape().expect_array()
    }

    fn result(self) -> &'m ArrayShape {
        self.fusion.body[self.hero].shape().expect_array()
    }

    /// Same as [`Self::plan`], but returns the values to pack, if any, instead of packing them.
    fn loops(self, planner: Planner<'_>) -> Result<(ConvolutionPlan, Option<&'m Literal>)> {
        let Self { fusion, hero, .. } = self;
        let number = |k: usize| match fusion.position(fusion.body[hero].operands()[k]) {
            Position::Operand(number) => Ok(number),
            Position::Inside => Err(Error::internal("operand of a convolution is not in memory")),
        };
        let (input, kernel, result) = (self.operand(0), self.operand(1), self.result());
        let input_operand = self.input.map_or_else(|| number(0), Ok)?;
        let kernel_operand = number(1)?;
        if [input, kernel, result].iter().any(|s| s.element_type == PrimitiveType::Pred) {
            return Err(Error::unsupported(
                "opcode convolution of pred; convert its operands to an integer type",
            ));
        }
        let accumulator = accumulator(result.element_type);
        let op = fusion.body[hero].op();
        let (form, dims) = ConvolutionDims::of(op, input, kernel, result)?;
        let dims = dims.within(fusion.module);
        let (kind, constant) = match form {
            ConvolutionForm::KernelGradient => (self.gradient(&dims, accumulator, planner)?, None),
            ConvolutionForm::Canonical => {
                let constant = self.kernel_constant(kernel_operand);
                (self.kind(&dims, accumulator, constant, planner), constant)
            }
        };
        let plan =
            ConvolutionPlan { hero, sums: hero, dims, kind, accumulator, input_operand, kernel_operand };
        Ok((plan, constant))
    }

    /// Loops of a convolution that is not a kernel gradient. `constant` has the values of a
    /// constant kernel.
    fn kind(
        self,
        dims: &ConvolutionDims,
        accumulator: PrimitiveType,
        constant: Option<&Literal>,
        planner: Planner<'_>,
    ) -> ConvolutionKind {
        let Planner { target, candidate, .. } = planner;
        let is_constant = constant.is_some();
        if target.gpu.is_some() {
            return general(dims, accumulator, target);
        }
        let bands = self.bands;
        let is_cheap = |k: usize| is_cheap(self.operand(k).element_type, accumulator, target);
        let in_place = is_cheap(0) && is_cheap(1);
        let with_constant = is_cheap(0) && is_constant;
        let types = [self.operand(0).element_type, self.operand(1).element_type, accumulator];
        let types = FactorTypes::new(types, constant, target);
        let grouping = dense::grouping(types, dims, target).filter(|_| is_constant);
        let allowed = match planner.winograd {
            // An instruction of several products saves as much as the small transform.
            Winograd::Small if grouping.is_some_and(|grouping| !grouping.is_widened) => Winograd::Never,
            winograd => winograd,
        };
        let allowed = match candidates::allowed(candidate, allowed) {
            // Pixels of the large transform depend on rounding errors of pixels beyond a size.
            Winograd::Large | Winograd::Forced(_) if !self.fusion.module.size_parameters().is_empty() => {
                Winograd::Small
            }
            allowed => allowed,
        };
        None.or_else(|| {
            let choose = || winograd::choose(dims, accumulator, is_constant, allowed, target);
            let winograd = bands.is_none().then(choose).flatten();
            winograd.filter(|_| in_place || with_constant).map(|w| ConvolutionKind::Winograd(Box::new(w)))
        })
        .or_else(|| {
            let grouping = depthwise::grouping(types, dims, target).filter(|_| is_constant);
            let depthwise = depthwise::choose(dims, accumulator, grouping, bands, candidate, target);
            depthwise.filter(|_| in_place).map(ConvolutionKind::Depthwise)
        })
        .or_else(|| {
            let parts = dense::Parts { bands, overlaps: bands.is_some() || !reads_overwritten(self.fusion) };
            let constant = constant.map(|_| types.rhs);
            let dense = dense::choose(dims, accumulator, constant, grouping, parts, candidate, target)
                .filter(|_| in_place || with_constant)?;
            let patches = || winograd::bytes::choose(dims, &dense, allowed, target);
            let patches = bands.is_none().then(patches).flatten();
            Some(match patches {
                Some(patches) => ConvolutionKind::Winograd(Box::new(patches)),
                None => ConvolutionKind::Dense(dense),
            })
        })
        .filter(|_| self.result().element_count() > 0)
        .unwrap_or_else(|| general(dims, accumulator, target))
    }

    /// Loops of a kernel gradient.
    fn gradient(
        self,
        dims: &ConvolutionDims,
        accumulator: PrimitiveType,
        planner: Planner<'_>,
    ) -> Result<ConvolutionKind> {
        let (input, kernel, target) = (self.operand(0), self.operand(1), planner.target);
        if [input, kernel].iter().any(|s| s.element_type != accumulator) || accumulator.is_complex() {
            return Err(Error::unsupported("kernel gradient whose type differs from that of its sums"));
        }
        let allowed = candidates::allowed(planner.candidate, planner.winograd);
        if let Some(patches) = winograd_gradient::choose(dims, accumulator, allowed, target) {
            return Ok(ConvolutionKind::WinogradGradient(Box::new(patches)));
        }
        let gradient = gradient::choose(dims, accumulator, planner.candidate, target)
            .ok_or_else(|| Error::unsupported("kernel gradient with more than three spatial dimensions"))?;
        Ok(ConvolutionKind::Gradient(gradient))
    }

    /// True if a convolution of these extents has a tiled plan that no better kind supersedes.
    pub(crate) fn has_tiles(self, dims: &ConvolutionDims, target: &Target, winograd: Winograd) -> bool {
        let accumulator = accumulator(self.result().element_type);
        let is_plain = [self.operand(0), self.operand(1)].iter().all(|shape| {
            let from = shape.element_type;
            from != PrimitiveType::Pred && is_cheap(from, accumulator, target)
        });
        let has_kind = || {
            depthwise::choose(dims, accumulator, None, None, None, target).is_some()
                || dense::of_rules(dims, accumulator, true, target).is_some()
        };
        let is_transformed = || {
            let types = [self.operand(0).element_type, self.operand(1).element_type, accumulator];
            winograd::choose(dims, accumulator, true, winograd, target).is_some()
                || dense::of_groups(types, dims, target)
                    .and_then(|direct| winograd::bytes::choose(dims, &direct, winograd, target))
                    .is_some_and(|plan| plan.saves_products())
        };
        is_plain && self.result().element_count() > 0 && has_kind() && !is_transformed()
    }
}

/// True if converting an element to the accumulator's type on each read is cheap enough that
/// converting it once in advance is not needed.
fn is_cheap(from: PrimitiveType, accumulator: PrimitiveType, target: &Target) -> bool {
    if accumulator.is_complex() {
        return false;
    }
    match from {
        PrimitiveType::F16 => target.has_f16_conversion,
        _ => !from.is_minifloat() && !from.is_subbyte_integer(),
    }
}

/// Uses the widest vector that a group's output features fill, and tasks of whole lines.
fn general(dims: &ConvolutionDims, accumulator: PrimitiveType, target: &Target) -> ConvolutionKind {
    let mut lanes = if accumulator.is_complex() { 1 } else { target.lanes(accumulator.byte_size()) };
    while i64::from(lanes) > dims.outputs.max(1) {
        lanes /= 2;
    }
    let task_limit = Work { operations: dims.work().max(0) as u64, bytes: 0 }.tasks(target);
    let chunks = task_limit.min(dims.lines()).max(1);
    ConvolutionKind::General { lanes, chunks }
}

impl std::fmt::Display for ConvolutionPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ConvolutionDims { batch, groups, inputs, outputs, .. } = self.dims;
        let kind = match &self.kind {
            ConvolutionKind::Dense(_) => "tiled convolution",
            ConvolutionKind::Depthwise(_) => "depthwise convolution",
            ConvolutionKind::Winograd(plan) if !plan.saves_products() => "convolution of widened bytes",
            ConvolutionKind::Winograd(_) => "Winograd convolution",
            ConvolutionKind::Gradient(_) => "gradient of a kernel",
            ConvolutionKind::WinogradGradient(_) => "Winograd gradient of a kernel",
            ConvolutionKind::General { .. } => "general convolution",
        };
        write!(f, "{kind} {batch}x{}", self.dims.pixels())?;
        if groups != 1 {
            write!(f, ", {groups} groups")?;
        }
        write!(f, ", {} taps, {inputs} to {outputs} features in {}", self.dims.taps(), self.accumulator)?;
        let grouping = match &self.kind {
            ConvolutionKind::Dense(dense) => dense.grouping,
            ConvolutionKind::Depthwise(depthwise) => depthwise.columns.map(|columns| columns.grouping),
            _ => None,
        };
        if let Some(grouping) = grouping {
            write!(f, ", {grouping}")?;
        }
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
