//! Custom calls: checks, annotations for partitioners, and functions without a StableHLO operation.

use super::{check, chlo, lapack};
use crate::walk::Context;
use composite::linear_algebra::Decomposition;
use hlo::{InstructionId, Op};
use mlir::Attribute;
use shape::ArrayShape;
use support::Result;

/// Targets that annotate the placement of values, which has no effect on a single device.
const MARKS: [&str; 5] = [
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "LayoutConstraint",
];

pub(super) fn convert(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let target = view.text("call_target_name")?;
    if check::is_check(target) {
        return check::convert(context, target);
    }
    if MARKS.contains(&target) {
        return context.operands();
    }
    if let Some(function) = target.strip_prefix("mhlo.").and_then(|name| chlo::find(&format!("chlo.{name}")))
    {
        return function(context);
    }
    if let Some(function) = lapack::find(target) {
        return function(context);
    }
    let backend_config = view.find("backend_config").and_then(Attribute::text).unwrap_or("");
    if let Some(decomposition) = Decomposition::of(target, backend_config) {
        let operands = context.operands()?;
        let shapes: Vec<ArrayShape> = operands.iter().map(|&x| context.array(x)).collect::<Result<_>>()?;
        let count = context.operation.results.len();
        let results: Vec<ArrayShape> = (0..count).map(|k| context.result_array(k)).collect::<Result<_>>()?;
        if decomposition.fits(&shapes, &results) {
            return context.composite(&operands, |_, operands| decomposition.results(&results, operands));
        }
    }
    let op = Op::CustomCall {
        custom_call_target: target.to_owned(),
        backend_config: backend_config.to_owned(),
        custom_call_has_side_effect: view.flag("has_side_effect"),
        attributes: hlo::RawAttributes::default(),
    };
    let operands = context.operands()?;
    context.emit(op, &operands)
}
