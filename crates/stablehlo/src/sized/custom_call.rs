//! Custom calls that check sizes, and those for operations that StableHLO has only for known sizes.

use super::{factors, slices, windows};
use crate::ops;
use crate::walk::Context;
use hlo::InstructionId;
use mlir::Attribute;
use support::{Error, Result};

/// Checks of shapes, and operations that StableHLO has only for known sizes.
pub(super) fn convert(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let target = context.view().text("call_target_name")?;
    if let Some(convert) = factors::find(context, target) {
        return convert(context);
    }
    match target {
        "shape_assertion" | "stablehlo.shape_assertion" => shape_assertion(context),
        "stablehlo.dynamic_reduce_window" => windows::dynamic_reduce_window(context),
        "stablehlo.dynamic_top_k" | "mhlo.dynamic_topk" => slices::dynamic_top_k(context),
        _ => ops::convert(context),
    }
}

/// A condition that sizes fulfill: checked now if they are known, and otherwise by each run.
fn shape_assertion(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let condition = context.operand(0)?;
    let text =
        context.view().find("error_message").and_then(Attribute::text).unwrap_or("a check of sizes failed");
    // The rest of the message has the sizes of a run.
    let end = [", but found", " Using the following", " when computing", " (= {"];
    let end = end.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let message = text[..end].trim_end().to_owned();
    match context.importer.builder.known_integer(condition, 0) {
        Some(0) => return Err(Error::invalid(message)),
        Some(_) => {}
        None => {
            context.stamp();
            context.importer.builder.assert(condition, message)?;
        }
    }
    Ok(Vec::new())
}
