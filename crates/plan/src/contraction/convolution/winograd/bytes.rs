//! Patches of bytes. The transforms add at most four pixels and nine weights, so frequencies have
//! 16 bits, and an instruction multiplies pairs of them and adds both products to 32 bits. The
//! kernel's matrix is doubled to contain integers only: outputs are four times as large as the sums
//! of products, and the division by four is exact.
//!
//! With a window of one tap, nothing is transformed: pixels and weights are widened to 16 bits
//! once, in place of once for each product.
//!
//! Where an instruction multiplies four numbers of 16 bits by one, a pair takes two of them. The
//! direct sum takes as many for its products, but more to read bytes and to add products.
//!
//! A pixel's frequency has two halves: each has two bytes of every group of four input features,
//! the even and the odd ones. Groups are those of the direct sum, whose panels become the
//! transformed kernel at run time. An object therefore stores each weight once, in one byte.

use super::{Machine, Transform, Winograd, WinogradPlan, cost, lay_out, plain_cost};
use crate::contraction::convolution::{ConvolutionDims, DensePlan};
use crate::contraction::grouping::{Factors, GROUP_BYTES, Sums};
use crate::contraction::tile;
use crate::packing::Packing;
use target::{ShortProducts, Target};

/// Factors of 32 bits.
pub(super) const PAIR: i64 = 2;

/// Bytes of a pair.
const ELEMENT: i64 = 4;

/// Upper bound of the input features, if sums must not exceed 31 bits: four times nine products of
/// an unsigned and a signed byte.
const MOST_INPUTS: i64 = (1 << 31) / (4 * 9 * 255 * 128);

/// Cost of a product of the direct sum, which moves signs or widens bytes, relative to one of a
/// pair.
const DIRECT: f64 = 1.5;

/// Cost of a product of the direct sum in halves, in instructions of which a pair takes
/// [`BY_LANE`]. By LLVM's models, it is 2.7 on a Cortex-A53, which executes one instruction at a
/// time, and 1.2 on a Cortex-A72, which multiplies and adds pairs of products at the same time.
const DIRECT_HALVES: f64 = 1.8;

/// Instructions of a product of a pair if each multiplies by one lane.
const BY_LANE: f64 = 2.0;

/// Registers for each patch of a tile whose factors are lanes: two for sums, one for factors, and a
/// share of those for the kernel.
const REGISTERS_BY_LANE: u32 = 4;

/// Chooses patches in place of a direct sum of bytes, if they are possible and pay off.
pub(in super::super) fn choose(
    dims: &ConvolutionDims,
    direct: &DensePlan,
    allowed: Winograd,
    target: &Target,
) -> Option<WinogradPlan> {
    let (cost, direct_cost) = costs(dims, direct, target)?;
    let transform = transform(dims)?;
    let is_chosen = match allowed {
        Winograd::Never => false,
        Winograd::Forced(outputs) => i64::from(outputs) == transform.outputs,
        Winograd::Small | Winograd::Large => cost < direct_cost * (1.0 - super::LEAST_GAIN),
    };
    if !is_chosen {
        return None;
    }
    let machine = machine(dims, target)?;
    let plan = lay_out(&in_pairs(dims), transform, ELEMENT, false, &machine);
    let plan = WinogradPlan { bytes: Some(Box::new(direct.clone())), ..plan };
    Some(plan).filter(|plan| plan.scratch.bytes <= super::MAX_SCRATCH)
}

/// Costs of the patches and of the direct sum, in multiply-adds of pairs. The patches must be
/// possible.
pub(in super::super) fn costs(
    dims: &ConvolutionDims,
    direct: &DensePlan,
    target: &Target,
) -> Option<(f64, f64)> {
    let grouping = direct.grouping?;
    let direct_product = match (target.short_products?, grouping.sums) {
        (ShortProducts::Neighbors, Sums::Lanes) => DIRECT,
        (ShortProducts::ByLane, Sums::Halves) => DIRECT_HALVES,
        _ => return None,
    };
    let is_possible = grouping.is_widened
        && matches!(grouping.factors, Factors::Bytes { .. })
        && direct.kernel_packing == Packing::Constant
        && dims.inputs % GROUP_BYTES == 0;
    let fits = |transform: &Transform| transform.scale == 1 || dims.inputs <= MOST_INPUTS;
    let transform = transform(dims).filter(|transform| is_possible && fits(transform))?;
    let pairs = in_pairs(dims);
    let cost = cost(&pairs, transform, ELEMENT, false, &machine(dims, target)?);
    Some((cost, direct_product * plain_cost(&pairs, ELEMENT)))
}

/// The machine's registers and products.
fn machine(dims: &ConvolutionDims, target: &Target) -> Option<Machine> {
    let machine = Machine::of(target, ELEMENT, tile::panel(dims.outputs, ELEMENT as usize));
    Some(match target.short_products? {
        ShortProducts::Neighbors => machine,
        ShortProducts::ByLane => {
            let most_rows = i64::from(target.vector_registers / REGISTERS_BY_LANE);
            Machine { most_rows, product: BY_LANE, ..machine }
        }
    })
}

/// The transform for the window, if there is one.
pub(in super::super) fn transform(dims: &ConvolutionDims) -> Option<Transform> {
    let transforms = [Transform::INTEGER, Transform::IDENTITY];
    transforms.into_iter().find(|transform| super::is_possible(dims, transform.window()))
}

/// The same convolution with pairs in place of input features.
fn in_pairs(dims: &ConvolutionDims) -> ConvolutionDims {
    ConvolutionDims { inputs: dims.inputs / PAIR, ..dims.clone() }
}
