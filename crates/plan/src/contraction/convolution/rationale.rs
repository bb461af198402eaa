//! Why the planner chooses the loops of a convolution: the costs that its models compute, and its
//! rules.

use super::candidates::{chosen, ranked_gradients};
use super::{ConvolutionDims, ConvolutionKind, ConvolutionPlan, Winograd};
use super::{cost, dense, winograd, winograd_gradient};
use crate::candidate::Candidate;
use crate::fusion::Fusion;
use crate::rationale::{Considered, ModeledCost, Rationale};
use hlo::InstructionId;
use shape::PrimitiveType;
use target::Target;

/// Unit of the costs of transforms.
const MULTIPLY_ADDS: &str = "multiply-adds of vectors";
/// Units of the model of tiles, which omits the cost that all tiles share.
const CYCLES: &str = "cycles per group";
const GRADIENT_CYCLES: &str = "cycles per tap and pixel";

/// A convolution whose loops were chosen.
struct Choice<'a> {
    dims: &'a ConvolutionDims,
    accumulator: PrimitiveType,
    is_constant: bool,
    winograd: Winograd,
    /// The direct sum that patches of bytes may replace.
    bytes: Option<&'a dense::DensePlan>,
    target: &'a Target,
}

/// The costs of the candidates, and why the first of them was chosen.
pub(crate) fn rationale(
    fusion: &Fusion<'_>,
    hero: InstructionId,
    target: &Target,
    winograd: Winograd,
    candidates: &[Candidate],
) -> Option<Rationale> {
    let (plan, is_constant) = chosen(fusion, hero, target, winograd)?;
    let ConvolutionPlan { dims, kind, accumulator, .. } = &plan;
    let bytes = match kind {
        ConvolutionKind::Dense(plan) => Some(plan),
        ConvolutionKind::Winograd(plan) => plan.bytes.as_deref(),
        _ => None,
    };
    let choice = Choice { dims, accumulator: *accumulator, is_constant, winograd, bytes, target };
    let tiles = match kind {
        ConvolutionKind::Gradient(_) | ConvolutionKind::WinogradGradient(_) => choice.gradient_costs(),
        ConvolutionKind::Depthwise(_) | ConvolutionKind::General { .. } => Vec::new(),
        ConvolutionKind::Dense(plan) => choice.dense_costs(plan),
        ConvolutionKind::Winograd(plan) => {
            let dense = plan.direct(dims, *accumulator, is_constant, target);
            dense.map(|plan| choice.dense_costs(&plan)).unwrap_or_default()
        }
    };
    let is_gradient = matches!(kind, ConvolutionKind::Gradient(_) | ConvolutionKind::WinogradGradient(_));
    let transforms: Vec<(u32, (f64, f64))> = candidates
        .iter()
        .filter_map(|candidate| match *candidate {
            Candidate::Winograd { outputs } => Some((outputs, choice.transform_costs(is_gradient, outputs)?)),
            _ => None,
        })
        .collect();
    let of_tile = |tile: Candidate| tiles.iter().find(|(of, _)| *of == tile).map(|&(_, cost)| cost);
    let cost_of = |candidate: &Candidate| match candidate {
        Candidate::Winograd { outputs } => {
            let of_transform = transforms.iter().find(|(of, _)| of == outputs);
            of_transform.map(|&(_, (amount, _))| ModeledCost { amount, unit: MULTIPLY_ADDS })
        }
        // The model of tiles has no order of loops.
        &Candidate::Dense { pixels, vectors, .. } => {
            of_tile(Candidate::Dense { pixels, vectors, panels_outside: false })
        }
        other => of_tile(*other),
    };
    let considered = |candidate: &Candidate| Considered { candidate: *candidate, cost: cost_of(candidate) };
    Some(Rationale {
        candidates: candidates.iter().map(considered).collect(),
        reason: choice.reason(kind, &transforms),
    })
}

impl Choice<'_> {
    /// Modeled cycles of all tiles, under the names of those with pixels as the outer loop.
    fn dense_costs(&self, plan: &dense::DensePlan) -> Vec<(Candidate, ModeledCost)> {
        let size = self.accumulator.byte_size();
        let dims = &dense::in_groups(self.dims, plan.grouping);
        let vectors = dense::vectors(dims, size, plan.grouping, self.target);
        let ranked = cost::ranked(dims, vectors, self.target).unwrap_or_default();
        let of_tile = |(amount, cost::Choice { pixels, vectors })| {
            (
                Candidate::Dense { pixels, vectors, panels_outside: false },
                ModeledCost { amount, unit: CYCLES },
            )
        };
        ranked.into_iter().map(of_tile).collect()
    }

    /// Modeled cycles of all tiles of a kernel gradient.
    fn gradient_costs(&self) -> Vec<(Candidate, ModeledCost)> {
        let of_tile = |(amount, cost::GradientChoice { rows, vectors, taps })| {
            let candidate = Candidate::Gradient { rows: rows as u32, vectors, taps: taps as u32 };
            (candidate, ModeledCost { amount, unit: GRADIENT_CYCLES })
        };
        ranked_gradients(self.dims, self.accumulator, self.target).into_iter().map(of_tile).collect()
    }

    /// Costs of a transform and of the direct sum.
    fn transform_costs(&self, is_gradient: bool, outputs: u32) -> Option<(f64, f64)> {
        let &Self { dims, accumulator, is_constant, target, .. } = self;
        if let Some(costs) = self.bytes.and_then(|direct| winograd::bytes::costs(dims, direct, target)) {
            return Some(costs);
        }
        if !is_gradient {
            return winograd::costs(dims, accumulator, is_constant, outputs, target);
        }
        let plan = winograd_gradient::choose(dims, accumulator, Winograd::Forced(outputs), target)?;
        Some(winograd_gradient::costs(dims, &plan, accumulator))
    }

    /// Reason for the loops.
    fn reason(&self, kind: &ConvolutionKind, transforms: &[(u32, (f64, f64))]) -> String {
        match kind {
            ConvolutionKind::Winograd(plan) => {
                self.transform_reason(plan.transform.outputs as u32, transforms)
            }
            ConvolutionKind::WinogradGradient(_) => self.transform_reason(2, transforms),
            ConvolutionKind::Gradient(_) => {
                format!(
                    "cost model; the tile takes the fewest {GRADIENT_CYCLES}{}",
                    rejected(transforms, winograd_gradient::LEAST_GAIN)
                )
            }
            ConvolutionKind::Dense(plan) => {
                let order = dense::order_reason(plan, self.dims, self.accumulator, self.target);
                // See `Stage::kind`.
                let is_replaced = self.winograd == Winograd::Small
                    && plan.grouping.is_some_and(|grouping| !grouping.is_widened);
                let rejected = if is_replaced && !transforms.is_empty() {
                    "; winograd: not considered, because an instruction of several products saves as much"
                        .to_owned()
                } else {
                    rejected(transforms, winograd::LEAST_GAIN)
                };
                format!(
                    "cost model and a rule; pixels: the tile takes the fewest {CYCLES}; outer: {order}{rejected}"
                )
            }
            ConvolutionKind::Depthwise(plan) => {
                let order = if plan.blocks_outside {
                    "the input lines of an output line exceed half of the first-level cache"
                } else {
                    "the input lines of an output line fit half of the first-level cache"
                };
                format!(
                    "rules without a cost; depthwise: pixels that fit the registers, and the vectors \
                     whose last block overlaps least; outer: {order}"
                )
            }
            ConvolutionKind::General { .. } => "the only way to compute it".to_owned(),
        }
    }

    fn transform_reason(&self, outputs: u32, transforms: &[(u32, (f64, f64))]) -> String {
        if matches!(self.winograd, Winograd::Forced(_)) {
            return "the options name this transform".to_owned();
        }
        let costs = transforms.iter().find(|(of, _)| *of == outputs);
        let saved = costs.map_or_else(String::new, |(_, (cost, direct))| {
            format!(", {:.1}% fewer than the {direct:.3e} of the direct sum", 100.0 * (1.0 - cost / direct))
        });
        let form = if outputs == 1 { "pairs of 16 bits take" } else { "the transform takes" };
        format!("cost model; {form} the fewest {MULTIPLY_ADDS}{saved}")
    }
}

/// Describes the cheapest of the possible transforms, which saves less than `gain` of the direct
/// sum.
fn rejected(transforms: &[(u32, (f64, f64))], gain: f64) -> String {
    let least = transforms.iter().min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
    least.map_or_else(String::new, |&(outputs, (cost, direct))| {
        let percent = 100.0 * gain;
        let form = if outputs == 1 { "pairs of 16 bits: take" } else { "winograd: takes" };
        format!(
            "; {form} {cost:.3e} {MULTIPLY_ADDS}, not {percent:.0}% fewer than the {direct:.3e} of the \
             direct sum"
        )
    })
}
