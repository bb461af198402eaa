//! Slice updates whose update is computed directly in its destination.

use crate::collapse;
use crate::fusion::{Fusion, Position};
use crate::in_place::updated;
use crate::kernel_plan::KernelPlan;
use crate::loops::LoopPlan;
use crate::loops::{self, check_fusible, largest_fitting};
use hlo::Op;
use support::{Error, Result};
use target::Target;

/// Plans a body whose root is a dynamic-update-slice: a loop nest over the update's elements. It is
/// one task, because the operand may have to be copied before it.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<KernelPlan<Option<LoopPlan>>> {
    let operands = fusion.body[fusion.root].operands();
    let (buffer, update) = (operands[0], operands[1]);
    if fusion.position(buffer) == Position::Inside {
        return Err(Error::unsupported("slice update of an array that the same kernel computes"));
    }
    for id in fusion.instructions() {
        if id != fusion.root {
            check_fusible(fusion.body[id].op())?;
        }
    }
    let may_overwrite = updated(fusion).into_iter().collect();
    let nest = match fusion.position(update) {
        Position::Operand(_) => None,
        Position::Inside => Some(nest(fusion, target)?),
    };
    Ok(KernelPlan { may_overwrite, ..KernelPlan::new(nest) })
}

fn nest(fusion: &Fusion<'_>, target: &Target) -> Result<LoopPlan> {
    let Op::DynamicUpdateSlice {} = fusion.root_op() else {
        return Err(Error::internal("expected a slice update as the root"));
    };
    let update = fusion.body[fusion.root].operands()[1];
    let sizes = fusion.body[update].shape().expect_array().sizes();
    let nest = collapse::nest(fusion, &[fusion.root], &sizes, &vec![false; sizes.len()])?;
    let lanes = largest_fitting(loops::lanes(fusion, target), nest.loops.last().map_or(1, |l| l.extent));
    let cuts = vec![1; nest.loops.len()];
    Ok(LoopPlan { lanes, loops: nest.loops, transposed: None, is_flat: false, cuts })
}
