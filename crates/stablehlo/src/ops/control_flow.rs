//! Calls, conditionals, and loops. HLO regions cannot refer to outside values, so values that a
//! StableHLO region captures become part of the operand.

use super::Convert;
use crate::regions::{block_of, captures};
use crate::walk::Context;
use hlo::{InstructionId, Op};
use mlir::Block;
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "func.call" => call,
        "stablehlo.composite" => composite,
        "stablehlo.while" => while_loop,
        "stablehlo.if" | "stablehlo.case" => conditional,
        _ => return None,
    })
}

fn call(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let name = context.view().text("callee")?;
    call_function(context, name)
}

/// A composite computes the same as its decomposition.
fn composite(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let name = context.view().text("decomposition")?;
    call_function(context, name)
}

fn call_function(context: &mut Context<'_, '_>, name: &str) -> Result<Vec<InstructionId>> {
    let to_apply = context.importer.function(name)?;
    let operands = context.operands()?;
    context.emit(Op::Call { to_apply }, &operands)
}

fn while_loop(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (condition, body) = (block_of(context.operation, 0)?, block_of(context.operation, 1)?);
    let outside = captures(context, &[condition, body]);
    let condition = context.tuple_region(condition, &outside, false, true)?;
    let body = context.tuple_region(body, &outside, true, false)?;
    let mut carried = context.operands()?;
    let count = carried.len();
    carried.extend(context.values(&outside)?);
    let tuple = context.op(Op::Tuple {}, &carried)?;
    let result = context.op(Op::While { condition, body }, &[tuple])?;
    let mut results = context.elements_of(result)?;
    results.truncate(count);
    Ok(results)
}

/// `if` has branches for true and false; `case` has one for each index.
fn conditional(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let selector = context.operand(0)?;
    let blocks: Vec<&Block> = (0..context.operation.regions.len())
        .map(|k| block_of(context.operation, k))
        .collect::<Result<_>>()?;
    if blocks.is_empty() {
        return Err(Error::invalid("expected at least one branch in a conditional"));
    }
    let mut operands = vec![selector];
    let mut branch_computations = Vec::new();
    for block in blocks {
        let outside = captures(context, &[block]);
        branch_computations.push(context.tuple_region(block, &outside, false, false)?);
        let values = context.values(&outside)?;
        operands.push(context.op(Op::Tuple {}, &values)?);
    }
    let result = context.op(Op::Conditional { branch_computations }, &operands)?;
    context.elements_of(result)
}
