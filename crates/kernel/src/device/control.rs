//! Kernels that control a device program: they set the guards of branches and loops, record failed
//! checks, and copy memory under a guard.

use nest::{
    BinaryOp, ConvertOp, Function, FunctionBuilder, Linkage, PointerFacts, Predicate, RegionBuilder as _,
    ScalarType, ThreadIndex, Type, ValueId,
};
use support::Result;

const I8: Type = Type::scalar(ScalarType::I8);
const I32: Type = Type::scalar(ScalarType::I32);

/// Threads of a workgroup that copies.
const COPY_THREADS: u32 = 128;

/// Upper bound of the workgroups that copy.
const MAX_COPY_GROUPS: u64 = 2048;

fn start(name: String, threads: u32) -> FunctionBuilder {
    let mut b = FunctionBuilder::new(name, Linkage::Kernel { threads });
    b.parameter("guard", Type::PTR, PointerFacts::default());
    b
}

fn address(b: &mut FunctionBuilder, name: &str, alignment: u32) -> ValueId {
    b.parameter(name, Type::PTR, PointerFacts { alignment, ..PointerFacts::default() })
}

/// Returns the guard that a region inherits, an `I32` of 0 or 1: the outer one's, or 1 if there is
/// none.
fn outer(b: &mut FunctionBuilder, pointer: Option<ValueId>) -> ValueId {
    match pointer {
        Some(pointer) => b.load(I32, pointer, 4),
        None => b.integer(I32, 1),
    }
}

/// Returns 1 if the condition holds, else 0.
fn flag(b: &mut FunctionBuilder, condition: ValueId) -> ValueId {
    b.convert(ConvertOp::ZeroExtend, condition, ScalarType::I32)
}

/// Returns the kernel that sets the guards of `count` branches from the index, a `pred` or an
/// `s32`. An index out of range selects the last branch. Parameters: the first guard, the index,
/// and the outer guard if there is one.
pub(super) fn branch(name: String, count: usize, is_pred: bool, has_outer: bool) -> Function {
    let mut b = start(name, 1);
    let guards = address(&mut b, "guards", 4);
    let index = address(&mut b, "index", if is_pred { 1 } else { 4 });
    let pointer = has_outer.then(|| address(&mut b, "outer", 4));
    let outer = outer(&mut b, pointer);
    let number = if is_pred {
        let value = b.load(I8, index, 1);
        let (zero, first, second) = (b.integer(I8, 0), b.integer(I32, 0), b.integer(I32, 1));
        let is_true = b.compare(Predicate::NotEqual, value, zero);
        b.select(is_true, first, second)
    } else {
        let value = b.load(I32, index, 4);
        let (end, last) = (b.integer(I32, count as i64), b.integer(I32, count as i64 - 1));
        let is_branch = b.compare(Predicate::Below, value, end);
        b.select(is_branch, value, last)
    };
    for k in 0..count {
        let this = b.integer(I32, k as i64);
        let is_this = b.compare(Predicate::Equal, number, this);
        let chosen = flag(&mut b, is_this);
        let guard = b.binary(BinaryOp::And, chosen, outer);
        let at = b.offset_bytes(guards, 4 * k as i64);
        b.store(guard, at, 4);
    }
    b.finish()
}

/// Returns the kernel that starts a loop: its guard is the outer one's, its count 0. Parameters:
/// the guard, which the count follows, and the outer guard if there is one.
pub(super) fn loop_start(name: String, has_outer: bool) -> Function {
    let mut b = start(name, 1);
    let guard = address(&mut b, "guard_and_count", 4);
    let pointer = has_outer.then(|| address(&mut b, "outer", 4));
    let value = outer(&mut b, pointer);
    b.store(value, guard, 4);
    let zero = b.integer(I32, 0);
    let count = b.offset_bytes(guard, 4);
    b.store(zero, count, 4);
    b.finish()
}

/// Returns the kernel that ends a loop when its condition is false or a check has failed, and
/// counts the iterations. Parameters: the guard, which the count follows, the condition, and the
/// status word.
pub(super) fn loop_test(name: String) -> Function {
    let mut b = start(name, 1);
    let guard = address(&mut b, "guard_and_count", 4);
    let condition = address(&mut b, "condition", 1);
    let status = address(&mut b, "status", 4);
    let before = b.load(I32, guard, 4);
    let value = b.load(I8, condition, 1);
    let failed = b.load(I32, status, 4);
    let (zero, none) = (b.integer(I8, 0), b.integer(I32, 0));
    let holds = b.compare(Predicate::NotEqual, value, zero);
    let is_fine = b.compare(Predicate::Equal, failed, none);
    let goes_on = b.and(holds, is_fine);
    let goes_on = flag(&mut b, goes_on);
    let after = b.binary(BinaryOp::And, before, goes_on);
    b.store(after, guard, 4);
    let at = b.offset_bytes(guard, 4);
    let count = b.load(I32, at, 4);
    let next = b.add(count, after);
    b.store(next, at, 4);
    b.finish()
}

/// Returns the kernel that records the failure of a check, unless another one has failed before.
/// Parameters: the condition and the status word.
pub(super) fn check(name: String, number: usize) -> Result<Function> {
    let mut b = start(name, 1);
    let condition = address(&mut b, "condition", 1);
    let status = address(&mut b, "status", 4);
    let value = b.load(I8, condition, 1);
    let zero = b.integer(I8, 0);
    let before = b.load(I32, status, 4);
    let (none, this) = (b.integer(I32, 0), b.integer(I32, number as i64 + 1));
    let fails = b.compare(Predicate::Equal, value, zero);
    let is_first = b.compare(Predicate::Equal, before, none);
    let is_new = b.and(fails, is_first);
    b.if_then(is_new, |b| {
        b.store(this, status, 4);
        Ok(())
    })?;
    Ok(b.finish())
}

/// Returns the kernel that copies `bytes` bytes, in units that divide both addresses, and the
/// number of its workgroups. Parameters: destination and source.
pub(super) fn copy(name: String, bytes: u64, alignment: u64) -> Result<(Function, u64)> {
    let (scalar, lanes, size) = match alignment.min(1 << bytes.trailing_zeros().min(4)) {
        0..=1 => (ScalarType::I8, 1, 1),
        2..=3 => (ScalarType::I16, 1, 2),
        4..=7 => (ScalarType::I32, 1, 4),
        8..=15 => (ScalarType::I32, 2, 8),
        _ => (ScalarType::I32, 4, 16),
    };
    let units = bytes / size;
    let groups = units.div_ceil(COPY_THREADS.into()).clamp(1, MAX_COPY_GROUPS);
    let mut b = start(name, COPY_THREADS);
    let to = address(&mut b, "to", size as u32);
    let from = address(&mut b, "from", size as u32);
    let first = thread(&mut b, COPY_THREADS);
    let end = b.index(units as i64);
    let step = groups as i64 * i64::from(COPY_THREADS);
    b.for_each(first, end, step, |b, unit| {
        let source = b.offset(from, unit, size as i64);
        let value = b.load(Type::vector(scalar, lanes), source, size as u32);
        let destination = b.offset(to, unit, size as i64);
        b.store(value, destination, size as u32);
        Ok(())
    })?;
    Ok((b.finish(), groups))
}

/// Returns the number of the running thread in the grid.
pub(crate) fn thread(b: &mut FunctionBuilder, threads: u32) -> ValueId {
    let (group, local) = (b.thread(ThreadIndex::Workgroup), b.thread(ThreadIndex::Local));
    let first = b.mul_constant(group, threads.into());
    b.add(first, local)
}
