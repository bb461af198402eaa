//! The `check` operations of StableHLO's tests.

use crate::checks::{Check, CheckKind};
use crate::walk::Context;
use hlo::InstructionId;
use mlir::Attribute;
use support::{Error, Result};

/// True if this is the name of a check, as an operation or as the target of a custom call.
pub(crate) fn is_check(name: &str) -> bool {
    name.starts_with("check.expect_") || name == "check.eq"
}

/// Records the values that a check compares.
pub(crate) fn convert(context: &mut Context<'_, '_>, name: &str) -> Result<Vec<InstructionId>> {
    if !context.scope.is_entry {
        return Err(Error::unsupported("a check inside a called function or a region is not supported"));
    }
    let view = context.view();
    let is_custom_call = context.operation.name != name;
    let kind = match name.trim_end_matches("_const") {
        "check.expect_eq" | "check.eq" | "check.expect_serialized_eq" => CheckKind::Equal,
        "check.expect_almost_eq" => {
            let default = if is_custom_call { CUSTOM_CALL_TOLERANCE } else { TOLERANCE };
            let tolerance = view.find("tolerance").and_then(Attribute::float);
            CheckKind::AlmostEqual { tolerance: tolerance.unwrap_or(default) }
        }
        "check.expect_close" => CheckKind::Close {
            min_ulp: view.integer_or("min_ulp_difference", 0)? as u64,
            max_ulp: view.integer_or("max_ulp_difference", if is_custom_call { 3 } else { 1 })? as u64,
        },
        _ => return Err(Error::unsupported(format!("unknown check '{name}'"))),
    };
    let actual = context.operand(0)?;
    let expected = match view.find("value") {
        // The serialized value is the one that passed through the probe.
        _ if name == "check.expect_serialized_eq" => actual,
        Some(Attribute::Elements(elements)) => context.elements(elements)?,
        _ => context.operand(1)?,
    };
    if context.shape(actual) != context.shape(expected) {
        return Err(Error::invalid("the two values of a check have different shapes"));
    }
    context.scope.compared.extend([actual, expected]);
    context.importer.checks.push(Check { kind, line: context.operation.line });
    Ok(Vec::new())
}

/// Default tolerances of operations and of custom calls in the reference interpreter.
const TOLERANCE: f64 = 1e-4;
const CUSTOM_CALL_TOLERANCE: f64 = 1e-3;
