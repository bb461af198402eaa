//! Calls, loops, and branches of programs with open dimensions.

use crate::ops::Convert;
use crate::regions::{block_of, captures};
use crate::walk::{Context, Scope, body_of};
use hlo::InstructionId;
use mlir::{Block, ValueId};
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "func.call" => |context| inlined(context, "callee"),
        "stablehlo.composite" => |context| inlined(context, "decomposition"),
        "stablehlo.while" => while_loop,
        "stablehlo.if" | "stablehlo.case" => conditional,
        _ => return None,
    })
}

/// Adds the operations of a called function.
fn inlined(context: &mut Context<'_, '_>, attribute: &str) -> Result<Vec<InstructionId>> {
    let function = context.importer.function_named(context.view().text(attribute)?)?;
    let body = body_of(function)?;
    let operands = context.operands()?;
    if operands.len() != body.arguments.len() {
        return Err(Error::invalid(format!(
            "a call has {} operands for {} arguments",
            operands.len(),
            body.arguments.len()
        )));
    }
    let mut scope = Scope::shared("", false);
    for (&argument, operand) in body.arguments.iter().zip(operands) {
        scope.define(argument, operand);
    }
    context.importer.block(&mut scope, body)
}

fn while_loop(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (condition, body) = (block_of(context.operation, 0)?, block_of(context.operation, 1)?);
    let outside = captures(context, &[condition, body]);
    let start = context.operands()?;
    let captured = context.values(&outside)?;
    let carried = context.importer.builder.carried(&start)?;
    let level = context.importer.builder.open_condition("while_condition", &carried);
    let arguments = context.importer.builder.carried_values(&carried)?;
    let results = within(context, condition, &arguments, &outside, &captured)?;
    let &[predicate] = &results[..] else { return Err(Error::invalid("expected one result of a condition")) };
    let condition = context.importer.builder.close(level);
    let level = context.importer.builder.open(condition.of_same_loop("while_body"));
    let arguments = context.importer.builder.carried_values(&carried)?;
    let results = within(context, body, &arguments, &outside, &captured)?;
    context.stamp();
    context.importer.builder.finish_loop(&carried, (condition, predicate), level, &results)
}

/// `if` has branches for true and false; `case` has one for each index.
fn conditional(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let selector = context.operand(0)?;
    if context.operation.regions.is_empty() {
        return Err(Error::invalid("expected at least one branch in a conditional"));
    }
    let mut branches = Vec::new();
    for number in 0..context.operation.regions.len() {
        let block = block_of(context.operation, number)?;
        let outside = captures(context, &[block]);
        let captured = context.values(&outside)?;
        let level = context.importer.builder.open_branch("branch", number);
        let results = within(context, block, &[], &outside, &captured)?;
        branches.push(context.importer.builder.close_branch(level, results));
    }
    context.stamp();
    context.importer.builder.finish_conditional(selector, branches)
}

/// Adds the operations of a region to the innermost scope, with these arguments and values from the
/// scope around it.
fn within<'s>(
    context: &mut Context<'_, 's>,
    block: &'s Block,
    arguments: &[InstructionId],
    outside: &[ValueId],
    captured: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    let mut scope = Scope::shared("", false);
    if arguments.len() != block.arguments.len() {
        return Err(Error::invalid(format!(
            "a region has {} arguments for {} values",
            block.arguments.len(),
            arguments.len()
        )));
    }
    for (&argument, &value) in block.arguments.iter().zip(arguments) {
        scope.define(argument, value);
    }
    for (&value, &outer) in outside.iter().zip(captured) {
        let inner = context.importer.builder.bring_in(outer)?;
        scope.define(value, inner);
    }
    context.importer.block(&mut scope, block)
}
