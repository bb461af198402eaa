//! Panels of a constant that other kernels can read, too.

use super::{Dot, pack};
use crate::fusion::Fusion;
use crate::packing::{Packing, Packings};
use hlo::{Computation, InstructionId, Module};
use shape::{ArrayShape, Literal};
use target::Target;

/// Panels in which the kernels of a dot on all of these targets read its constant right operand, as
/// an array `[panel][row][column]` of the operand's type. Rows are the dimension that is summed.
/// `None` if the kernels read it in another form, or a fusion surrounds the dot.
pub fn constant_panels(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    targets: &[Target],
    packings: &Packings,
) -> Option<Literal> {
    let fusion = Fusion::of(module, computation, id).ok()?;
    let mut plans = Vec::new();
    for target in targets {
        if target.gpu.is_some() {
            return None;
        }
        let dot = Dot::of(&fusion, fusion.root).ok()?.in_groups(target);
        let literal = dot.rhs_values?;
        let is_plain = dot.grouping.is_none() && dot.weights.is_none() && dot.shape.batch == 1;
        let loops = dot.loops(target);
        let plan = dot.with_loops(loops);
        let tiled = plan.tiled().filter(|tiled| tiled.rhs_packing == Packing::Constant)?;
        let is_matrix = plan.dims.rhs_k.len() == 1 && plan.dims.columns.len() == 1;
        let has_type = literal.array_shape().element_type == plan.accumulator;
        if !(is_plain && is_matrix && has_type && tiled.panels.header == 0 && tiled.panels.block_rows == 0) {
            return None;
        }
        let panels = tiled.panels;
        plans.push((plan, panels, literal));
    }
    let (plan, panels, literal) = plans.first()?;
    if plans.iter().any(|(_, others, _)| others != panels) {
        return None;
    }
    let shape = ArrayShape::new(plan.accumulator, &[panels.count(), panels.rows, panels.width]);
    Literal::from_bytes(shape, pack::panels(literal, plan, *panels, packings))
}
