//! Copies the elements around the slice that the kernel writes, unless the result is in the same
//! memory.

use super::{element, when_below};
use crate::context::KernelContext;
use nest::{BinaryOp, Predicate, ScalarType, Type};
use plan::{DevicePlan, Position as PlanPosition, RowSlice, Strategy};
use support::{Error, Result};

/// Emits the kernel: each thread copies some neighboring bytes.
pub(super) fn emit(cx: &mut KernelContext<'_>) -> Result<()> {
    let missing = || Error::internal("expected a slice update of an array in memory");
    let RowSlice { rows, whole, run, offset } = cx.fusion().row_slice().ok_or_else(missing)?;
    let root = cx.fusion().root;
    let PlanPosition::Operand(number) = cx.fusion().position(cx.fusion().body[root].operands()[0]) else {
        return Err(missing());
    };
    let (from, result) = (cx.operand(number)?.clone(), cx.results()[0].clone());
    if cx.is_same_memory(from.pointer, result.pointer) {
        return Ok(());
    }
    let Strategy::Device(device) = &cx.plan().strategy else { return Err(missing()) };
    let DevicePlan::Contraction(plan) = &**device else { return Err(missing()) };
    let threads = i64::from(plan.grid(0).threads);
    let size = result.shape.element_type.byte_size() as i64;
    let thread = element(cx, threads, rows * (whole - run))?;
    // The largest unit that divides all distances.
    let alignment = i64::from(from.alignment.min(result.alignment));
    let fits = |unit: &i64| {
        alignment % unit == 0 && [run, whole, offset].iter().all(|distance| distance * size % unit == 0)
    };
    let unit = [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1);
    let ty = match unit {
        16 => Type::vector(ScalarType::I32, 4),
        8 => Type::scalar(ScalarType::I64),
        4 => Type::scalar(ScalarType::I32),
        2 => Type::scalar(ScalarType::I16),
        _ => Type::scalar(ScalarType::I8),
    };
    let [run, whole, offset] = [run, whole, offset].map(|distance| distance * size / unit);
    // Elements of more bytes than a unit take several units per thread.
    let units = rows * (whole - run);
    let per_thread = (size / unit).max(1);
    for k in 0..per_thread {
        let number = thread.times(per_thread).plus_constant(k);
        when_below(cx, &number, units, 1, |cx, number| {
            let (row, within) = cx.div_rem(&number, whole - run)?;
            let within = cx.scalar_value(&within)?;
            let (begin, length) = (cx.index(offset), cx.index(run));
            let is_before = cx.compare(Predicate::Less, within, begin);
            let behind = cx.binary(BinaryOp::Add, within, length);
            let within = cx.select(is_before, within, behind);
            let first = cx.scalar_value(&row.times(whole))?;
            let at = cx.add(first, within);
            let source = cx.offset(from.pointer, at, unit);
            let value = cx.load(ty, source, unit as u32);
            let destination = cx.offset(result.pointer, at, unit);
            cx.store(value, destination, unit as u32);
            Ok(())
        })?;
    }
    Ok(())
}
