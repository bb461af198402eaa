//! Alternatives for computing a convolution: other tiles, the other order of loops, and other
//! transforms.

use super::dims::ConvolutionDims;
use super::tiling::three_dimensions;
use super::{ConvolutionPlan, DensePlan, Stage, Winograd, cost, dense, winograd, winograd_gradient};
use crate::candidate::Candidate;
use crate::contraction::convolution::ConvolutionKind;
use crate::contraction::{Planner, tile};
use crate::fusion::Fusion;
use crate::packing::Packings;
use hlo::InstructionId;
use shape::PrimitiveType;
use target::Target;

/// Number of tiles of a kind that are candidates, in addition to the best of each width.
const MORE_TILES: usize = 2;

/// The transforms that a candidate allows; without a candidate, those that the caller allows.
pub(super) fn allowed(candidate: Option<Candidate>, options: Winograd) -> Winograd {
    match candidate {
        None => options,
        Some(Candidate::Winograd { outputs }) => Winograd::Forced(outputs),
        Some(_) => Winograd::Never,
    }
}

/// The plan without a measured choice, and whether the kernel is constant.
pub(super) fn chosen(
    fusion: &Fusion<'_>,
    hero: InstructionId,
    target: &Target,
    winograd: Winograd,
) -> Option<(ConvolutionPlan, bool)> {
    let stage = Stage { fusion, hero, input: None, bands: None };
    let planner =
        Planner { target, winograd, allow_tf32: false, candidate: None, packings: &Packings::default() };
    let (plan, constant) = stage.loops(planner).ok()?;
    Some((plan, constant.is_some()))
}

/// All candidates, the planner's choice first.
pub(crate) fn candidates(
    fusion: &Fusion<'_>,
    hero: InstructionId,
    target: &Target,
    winograd: Winograd,
) -> Vec<Candidate> {
    let Some((chosen, is_constant)) = chosen(fusion, hero, target, winograd) else { return Vec::new() };
    let ConvolutionPlan { dims, kind, accumulator, .. } = &chosen;
    match kind {
        ConvolutionKind::General { .. } => Vec::new(),
        ConvolutionKind::Gradient(gradient) => {
            let mut candidates = vec![gradient.candidate()];
            let forced = || winograd_gradient::choose(dims, *accumulator, Winograd::Forced(2), target);
            if matches!(winograd, Winograd::Small | Winograd::Large) && forced().is_some() {
                candidates.push(Candidate::Winograd { outputs: 2 });
            }
            candidates.extend(gradients(dims, *accumulator, target));
            candidates
        }
        ConvolutionKind::WinogradGradient(_) => {
            let mut candidates = vec![Candidate::Winograd { outputs: 2 }];
            candidates.extend(gradients(dims, *accumulator, target));
            candidates
        }
        ConvolutionKind::Depthwise(plan) => {
            let mut candidates = vec![plan.candidate()];
            let most = if target.vector_registers >= 32 { 2 } else { 1 };
            let features = dims.groups.saturating_mul(dims.outputs);
            let fits = |&vectors: &u32| i64::from(plan.lanes) * i64::from(vectors) <= features;
            let pixels = [4, 8, if target.vector_registers >= 32 { 12 } else { 6 }];
            for vectors in (1..=most).filter(fits) {
                // Sums, and the weights of a line of three taps.
                let holds = |&pixels: &u32| vectors * (pixels + 4) <= target.vector_registers;
                candidates.extend(pixels.into_iter().filter(holds).map(|pixels| Candidate::Depthwise {
                    pixels,
                    vectors,
                    blocks_outside: plan.blocks_outside,
                }));
            }
            let (pixels, vectors) = (plan.most_pixels, plan.vectors);
            candidates.push(Candidate::Depthwise { pixels, vectors, blocks_outside: !plan.blocks_outside });
            candidates
        }
        ConvolutionKind::Dense(plan) => {
            let mut candidates = vec![plan.candidate()];
            candidates.extend(transforms(dims, *accumulator, is_constant, winograd, target));
            let outputs = winograd::bytes::transform(dims).map(|transform| transform.outputs as u32);
            candidates.extend(
                outputs
                    .filter(|&outputs| {
                        let forced = Winograd::Forced(outputs);
                        matches!(winograd, Winograd::Small | Winograd::Large)
                            && winograd::bytes::choose(dims, plan, forced, target).is_some()
                    })
                    .map(|outputs| Candidate::Winograd { outputs }),
            );
            candidates.extend(tiles(dims, accumulator.byte_size(), plan, target));
            candidates.extend(other_order(plan, dims));
            candidates
        }
        ConvolutionKind::Winograd(plan) => {
            let mut candidates = vec![Candidate::Winograd { outputs: plan.transform.outputs as u32 }];
            candidates.extend(transforms(dims, *accumulator, is_constant, winograd, target));
            if let Some(plan) = plan.direct(dims, *accumulator, is_constant, target) {
                candidates.push(plan.candidate());
                candidates.extend(tiles(dims, accumulator.byte_size(), &plan, target));
                candidates.extend(other_order(&plan, dims));
            }
            candidates
        }
    }
}

/// The transforms that the caller allows, regardless of whether they seem to pay off.
fn transforms(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    is_constant: bool,
    allowed: Winograd,
    target: &Target,
) -> Vec<Candidate> {
    let outputs: &[u32] = match allowed {
        Winograd::Never | Winograd::Forced(_) => &[],
        Winograd::Small => &[2],
        Winograd::Large => &[2, 4],
    };
    let is_possible = |&&outputs: &&u32| {
        winograd::choose(dims, accumulator, is_constant, Winograd::Forced(outputs), target).is_some()
    };
    outputs.iter().filter(is_possible).map(|&outputs| Candidate::Winograd { outputs }).collect()
}

/// The best tile of each width, best first, and the best of the others.
fn tiles(dims: &ConvolutionDims, size: usize, plan: &DensePlan, target: &Target) -> Vec<Candidate> {
    let &DensePlan { panels_outside, grouping, .. } = plan;
    let dims = &dense::in_groups(dims, grouping);
    let ranked = cost::ranked(dims, dense::vectors(dims, size, grouping, target), target).unwrap_or_default();
    let mut widths = std::collections::BTreeSet::new();
    let (best, rest): (Vec<_>, Vec<_>) =
        ranked.into_iter().map(|(_, choice)| choice).partition(|choice| widths.insert(choice.vectors));
    let chosen = best.into_iter().chain(rest.into_iter().take(MORE_TILES));
    let candidate = |cost::Choice { pixels, vectors }| Candidate::Dense { pixels, vectors, panels_outside };
    chosen.map(candidate).collect()
}

/// The chosen tile with the other order of loops, if there are several panels.
fn other_order(plan: &dense::DensePlan, dims: &ConvolutionDims) -> Option<Candidate> {
    let Candidate::Dense { pixels, vectors, panels_outside } = plan.candidate() else { return None };
    let other = Candidate::Dense { pixels, vectors, panels_outside: !panels_outside };
    (plan.whole_panels(dims) > 1).then_some(other)
}

/// The best tile of each width, and the best of the others.
fn gradients(dims: &ConvolutionDims, accumulator: PrimitiveType, target: &Target) -> Vec<Candidate> {
    let ranked = ranked_gradients(dims, accumulator, target);
    let mut kinds = std::collections::BTreeSet::new();
    let (best, rest): (Vec<_>, Vec<_>) = ranked
        .into_iter()
        .map(|(_, choice)| choice)
        .partition(|choice| kinds.insert((choice.vectors, choice.taps > 1)));
    let chosen = best.into_iter().chain(rest.into_iter().take(MORE_TILES));
    let candidate = |cost::GradientChoice { rows, vectors, taps }| Candidate::Gradient {
        rows: rows as u32,
        vectors,
        taps: taps as u32,
    };
    chosen.map(candidate).collect()
}

/// All tiles of a kernel gradient with their times, fastest first.
pub(super) fn ranked_gradients(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    target: &Target,
) -> Vec<(f64, cost::GradientChoice)> {
    let size = accumulator.byte_size();
    let Some(spatial) = three_dimensions(dims) else { return Vec::new() };
    let lanes = target.lanes(size).min(tile::panel(dims.outputs, size) as u32);
    let last = spatial[2];
    let is_run = last.window.stride == 1;
    let shape =
        cost::GradientShape { features: dims.batch, outputs: dims.outputs, taps: last.output, is_run };
    shape.ranked(lanes, target)
}
