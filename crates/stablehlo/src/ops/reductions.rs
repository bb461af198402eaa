//! Operations with a reducer or a comparator: reductions, windows, sorts, maps.

use super::Convert;
use super::contraction::window;
use crate::walk::Context;
use hlo::{InstructionId, Op};
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "stablehlo.reduce" => reduce,
        "stablehlo.reduce_window" => reduce_window,
        "stablehlo.select_and_scatter" => select_and_scatter,
        "stablehlo.sort" => sort,
        "stablehlo.map" => map,
        _ => return None,
    })
}

fn reduce(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimensions = context.view().dimensions("dimensions")?;
    let to_apply = context.reducer(0)?;
    let operands = context.operands()?;
    context.emit(Op::Reduce { dimensions, to_apply }, &operands)
}

fn reduce_window(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let sizes = context.view().integers("window_dimensions")?;
    let window = window(context, &sizes, "window_strides", "base_dilations", "window_dilations")?;
    let to_apply = context.reducer(0)?;
    let operands = context.operands()?;
    context.emit(Op::ReduceWindow { window, to_apply }, &operands)
}

fn select_and_scatter(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let sizes = match context.view().find("window_dimensions") {
        Some(_) => context.view().integers("window_dimensions")?,
        None => {
            let operand = context.operand(0)?;
            vec![1; context.array(operand)?.rank()]
        }
    };
    let window = window(context, &sizes, "window_strides", "base_dilations", "window_dilations")?;
    let select = context.reducer(0)?;
    let scatter = context.reducer(1)?;
    let operands = context.operands()?;
    context.emit(Op::SelectAndScatter { window, select, scatter }, &operands)
}

/// A negative dimension counts from the end.
fn sort(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let operands = context.operands()?;
    let Some(&first) = operands.first() else { return Err(Error::invalid("expected an operand to sort")) };
    let rank = context.array(first)?.rank() as i64;
    let signed = view.integer_or("dimension", -1)?;
    let dimension = usize::try_from(if signed < 0 { signed + rank } else { signed }).map_err(|_| {
        Error::invalid(format!("dimension {signed} is out of range for an array of rank {rank}"))
    })?;
    let is_stable = view.flag("is_stable");
    let to_apply = context.reducer(0)?;
    context.emit(Op::Sort { dimension, is_stable, to_apply }, &operands)
}

fn map(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimensions = context.view().dimensions("dimensions")?;
    let to_apply = context.reducer(0)?;
    let operands = context.operands()?;
    context.emit(Op::Map { dimensions, to_apply }, &operands)
}
