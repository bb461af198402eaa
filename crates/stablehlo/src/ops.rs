//! One function for each operation, looked up by name.

mod check;
mod chlo;
mod complex;
mod contraction;
mod control_flow;
mod custom_call;
mod elementwise;
mod indexing;
mod lapack;
mod linear_algebra;
mod ragged_dot;
mod reductions;
mod scan;
mod shaping;

use crate::quantized;
use crate::walk::Context;
pub(crate) use crate::walk::Convert;
pub(crate) use contraction::convolution_of;
use hlo::InstructionId;
pub(crate) use indexing::gather_numbers;
use support::{Error, Result};

/// Finds the operation with the given name. Each family of operations is asked in turn.
fn find(name: &str) -> Option<Convert> {
    let families: [fn(&str) -> Option<Convert>; 8] = [
        elementwise::find,
        shaping::find,
        indexing::find,
        contraction::find,
        reductions::find,
        control_flow::find,
        linear_algebra::find,
        chlo::find,
    ];
    families.iter().find_map(|family| family(name))
}

/// Adds the instructions of an operation and returns its results.
pub(crate) fn convert(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    if !quantized::computes(context) {
        return convert_numbers(context);
    }
    context.dequantize = Some(quantized::dequantize);
    let results = convert_numbers(context)?;
    quantized::quantize_results(context, results)
}

fn convert_numbers(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let name = context.operation.name.as_str();
    if check::is_check(name) {
        return check::convert(context, name);
    }
    // A probe only logs its operand, which is also its result.
    if name == "interpreter.probe" {
        return context.operands();
    }
    // The real numbers are unchanged; the conversion of their storage happens around this call.
    if matches!(name, "stablehlo.uniform_quantize" | "stablehlo.uniform_dequantize") {
        return context.operands();
    }
    if name == "stablehlo.custom_call" {
        return custom_call::convert(context);
    }
    match find(name) {
        Some(convert) => convert(context),
        None => Err(Error::unsupported(if COLLECTIVES.contains(&name) {
            "this operation requires several devices: export the program for a single device"
        } else {
            "unknown operation"
        })),
    }
}

/// Operations that communicate between devices.
const COLLECTIVES: [&str; 14] = [
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.collective_reduce",
    "stablehlo.cross-replica-sum",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.reduce_scatter",
    "stablehlo.send",
    "stablehlo.async_start",
    "interpreter.run_parallel",
];
