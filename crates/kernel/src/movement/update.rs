//! Dynamic update of a slice: copies the operand or updates it in place, then writes the update.

use crate::context::KernelContext;
use crate::context::limits::greater;
use crate::context::parameters::Memory;
use crate::context::tasks::Span;
use crate::element::Element;
use crate::index::{Index, Position};
use crate::loops;
use hlo::analysis::{Extent, linear_extent};
use plan::LoopPlan;
use support::{Error, Result};

/// Copies the operand unless it is in place, then writes the update at its clamped start: row by
/// row from memory, or computed in a nest.
pub(crate) fn emit(cx: &mut KernelContext<'_>, nest: Option<&LoopPlan>) -> Result<()> {
    let result = cx.results()[0].clone();
    copy_operand(cx, 0)?;
    let operands = cx.fusion().body[cx.fusion().root].operands();
    let (sizes, update_sizes) = (result.shape.sizes(), cx.shape(operands[1])?.sizes());
    if update_sizes.contains(&0) {
        return Ok(());
    }
    let starts = starts(cx)?;
    if let Some(plan) = nest {
        return loops::emit_at(cx, plan, operands[1], &starts);
    }
    let update = cx.operand(number_of(cx, operands[1])?)?.clone();
    // The dimensions that the update fills are contiguous, together with the next slower one.
    let whole = (0..sizes.len()).rev().take_while(|&d| sizes[d] == update_sizes[d]).count();
    let rows = sizes.len().saturating_sub(whole + 1);
    let run: i64 = update_sizes[rows..].iter().product();
    let mut indices: Vec<Index> = vec![Index::default(); sizes.len()];
    let needed = cx.needed(operands[1]);
    copy_rows(cx, &Rows { result, update, starts, count: rows, run, needed }, 0, &mut indices)
}

/// Returns the clamped start indices of the root, a slice update.
pub(crate) fn starts(cx: &mut KernelContext<'_>) -> Result<Vec<Index>> {
    let operands = cx.fusion().body[cx.fusion().root].operands();
    let (sizes, update_sizes) = (cx.shape(operands[0])?.sizes(), cx.shape(operands[1])?.sizes());
    let mut starts = Vec::with_capacity(sizes.len());
    for (d, (id, position)) in cx.start_operands(&operands[2..], sizes.len())?.into_iter().enumerate() {
        let element = cx.element(id, &position)?;
        let element_type = cx.shape(id)?.element_type;
        starts.push(cx.start_index(element, element_type, sizes[d] - update_sizes[d])?);
    }
    Ok(starts)
}

struct Rows {
    result: Memory,
    update: Memory,
    starts: Vec<Index>,
    /// Number of dimensions that enumerate the rows.
    count: usize,
    /// Number of contiguous elements.
    run: i64,
    /// Numbers of indices of the update that are needed, unless all are.
    needed: Vec<Option<Extent>>,
}

fn copy_rows(
    cx: &mut KernelContext<'_>,
    rows: &Rows,
    dimension: usize,
    indices: &mut Vec<Index>,
) -> Result<()> {
    if dimension < rows.count {
        let indices_of = (0, rows.update.shape.size(dimension), rows.needed[dimension]);
        return cx.for_needed_indices(indices_of, |cx, index| {
            indices[dimension] = index;
            copy_rows(cx, rows, dimension + 1, indices)
        });
    }
    let moved = indices.iter().zip(&rows.starts).map(|(i, s)| i.plus(s)).collect();
    let size = rows.update.shape.element_type.byte_size() as i64;
    let to = Position::Multi(moved).linear(&rows.result.shape.sizes());
    let from = Position::Multi(indices.clone()).linear(&rows.update.shape.sizes());
    if rows.run == 1 {
        let element = cx.load_at(&rows.update, &Position::Linear(from))?;
        return cx.store_at(&rows.result, &Position::Linear(to), element);
    }
    let (to, from) = (cx.scalar_value(&to)?, cx.scalar_value(&from)?);
    let (to, from) = (cx.offset(rows.result.pointer, to, size), cx.offset(rows.update.pointer, from, size));
    let own = &rows.update.shape.sizes()[rows.count..];
    let bytes = match linear_extent(own, &rows.needed[rows.count..]) {
        Some(elements) => {
            let elements = cx.extent(elements, rows.run)?;
            cx.mul_constant(elements, size)
        }
        None => cx.index(rows.run * size),
    };
    cx.copy_bytes(to, from, bytes);
    Ok(())
}

/// Returns the number of the kernel's operand that is an operand of the root.
pub(crate) fn number_of(cx: &KernelContext<'_>, id: hlo::InstructionId) -> Result<usize> {
    match cx.fusion().position(id) {
        plan::Position::Operand(number) => Ok(number),
        plan::Position::Inside => {
            Err(Error::internal("expected an operand of the kernel, got an instruction of its body"))
        }
    }
}

/// Copies operand `k` of the root to result `k`, unless both have the same memory.
pub(crate) fn copy_operand(cx: &mut KernelContext<'_>, k: usize) -> Result<()> {
    let operand = cx.fusion().body[cx.fusion().root].operands()[k];
    let memory = cx.operand(number_of(cx, operand)?)?.clone();
    let result = cx.results()[k].clone();
    if cx.is_same_memory(memory.pointer, result.pointer) {
        return Ok(());
    }
    let (sizes, size) = (result.shape.sizes(), result.shape.element_type.byte_size() as i64);
    let mut needed = cx.needed(cx.fusion().root);
    needed.resize(sizes.len(), None);
    let all = Span::All(result.shape.byte_size() as i64 / size.max(1));
    cx.for_needed_parts(all, &sizes, &needed, &mut |cx, part| {
        let Span::Part { begin, end, .. } = part else {
            let bytes = cx.index(result.shape.byte_size() as i64);
            cx.copy_bytes(result.pointer, memory.pointer, bytes);
            return Ok(());
        };
        let (to, from) = (cx.offset(result.pointer, begin, size), cx.offset(memory.pointer, begin, size));
        let (count, zero) = (cx.sub(end, begin), cx.index(0));
        let count = greater(cx, count, zero);
        let bytes = cx.mul_constant(count, size);
        cx.copy_bytes(to, from, bytes);
        Ok(())
    })
}

/// Returns the values of some elements, for loops that carry them.
pub(crate) fn flatten(elements: &[Element]) -> Vec<nest::ValueId> {
    elements.iter().flat_map(|e| e.values()).collect()
}
