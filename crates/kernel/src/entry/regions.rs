//! Parallel regions: groups of calls that the entry forks together.
//!
//! Each region costs a fork and a join, so independent kernels, such as those in the branches of a
//! graph, run in one region. Two kernels are independent if neither writes memory that the other
//! one accesses. The buffer assignment is final at this point, so a kernel can move ahead of others
//! that do not share memory with it.

use crate::calls::Call;
use buffers::{Allocation, Slice};
use nest::{
    BinaryOp, Function, FunctionBuilder, Linkage, PointerFacts, Predicate, RegionBuilder as _, Type, ValueId,
};

/// The work of a region, cut into parts. Each part holds the same share of every kernel that has
/// many tasks. The parts of all other kernels come first; their number is proportional to the
/// kernel's duration. The first of its parts runs a kernel with a single task. If a kernel has a
/// few tasks, each task runs in the part that contains its midpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The kernels.
    pub members: Vec<RegionMember>,
    /// Total number of parts. A region with one part is a plain call.
    pub items: i64,
}

/// A kernel of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionMember {
    /// The kernel's name.
    pub name: String,
    /// Planned duration on one core, in nanoseconds.
    pub nanoseconds: u64,
    /// Number of tasks.
    pub tasks: i64,
    /// The first part, and the number of parts.
    pub items: (i64, i64),
}

/// Minimum duration of a kernel with several tasks that runs in parallel: a few times the overhead
/// of a region.
const MIN_SHARED_NANOSECONDS: u64 = 800;

/// Bytes per nanosecond that a core reads from another core's caches.
const HANDED_BYTES: u64 = 12;

/// Larger arrays mostly no longer reside in those caches.
const MAX_HANDED_BYTES: u64 = 1 << 20;

/// Minimum duration of a kernel with a single task that joins a parallel region.
const MIN_SERIAL_NANOSECONDS: u64 = 300;

/// Minimum duration of each kernel in a region whose kernels all have a single task.
pub(super) const MIN_PAIR_NANOSECONDS: u64 = 1000;

/// Number of later calls that are considered for a region.
const WINDOW: usize = 16;

/// Maximum number of kernels in a region, and of parameters of its function.
const MAX_MEMBERS: usize = 8;
const MAX_ARGUMENTS: usize = 64;

/// Maximum number of parts of a kernel that has a single task.
const MAX_PARTS: u64 = 64;

/// Minimum number of tasks of a kernel that shares its parts with others.
const MANY_TASKS: i64 = 8;

/// Overhead of a region with two workers. Measured with the pools of this repository: 0.16 to 0.2
/// us where a cache line and its answer travel between the cores in 0.1 us. Where they took 0.5 us,
/// an earlier layout of the pool took 0.7 to 1.2 us.
const FORK_JOIN_NANOSECONDS: u64 = 300;

/// A call. `is_shared` is true if its tasks run in parallel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) call: &'a Call,
    pub(crate) is_shared: bool,
}

/// Decides which of several consecutive calls run in parallel: those that save at least a tenth of
/// their time with two workers. The cost includes cache transfers: if the entry's own thread writes
/// or reads an array, the other workers' part of it moves from one core's caches to another's.
pub(crate) fn share<'a>(calls: &[&'a Call]) -> Vec<Item<'a>> {
    let is_long = |call: &Call| call.tasks > 1 && call.nanoseconds >= MIN_SHARED_NANOSECONDS;
    let mut items: Vec<Item<'a>> = Vec::with_capacity(calls.len());
    for (k, &call) in calls.iter().enumerate() {
        let (read, written) = call.arguments.split_at(call.written);
        // The entry's thread wrote the array alone, and no parallel call has read it since.
        let is_serial_before = |slice: &&Slice| {
            let before = items.iter().rev().take(WINDOW);
            let last_access = before.into_iter().find(|item| {
                let written = &item.call.arguments[item.call.written..];
                written.contains(slice) || item.is_shared && item.call.arguments.contains(slice)
            });
            slice.allocation == Allocation::Temps && last_access.is_some_and(|item| !item.is_shared)
        };
        let is_serial_after = |slice: &&Slice| {
            let later = calls[k + 1..].iter().take(WINDOW);
            let user = later.into_iter().find(|next| next.arguments[..next.written].contains(slice));
            user.is_some_and(|next| !is_long(next))
        };
        let handed = read.iter().filter(is_serial_before).chain(written.iter().filter(is_serial_after));
        // The other worker accesses half of the bytes.
        let bytes: u64 = handed.map(|slice| slice.size.min(MAX_HANDED_BYTES)).sum();
        let cost = FORK_JOIN_NANOSECONDS + bytes / 2 / HANDED_BYTES;
        let is_shared = is_long(call) && call.nanoseconds / 2 > cost + call.nanoseconds / 10;
        items.push(Item { call, is_shared });
    }
    items
}

/// Groups consecutive calls that no control flow separates. Returns groups of call numbers, in
/// execution order.
pub(crate) fn group(calls: &[Item<'_>]) -> Vec<Vec<usize>> {
    let mut is_done = vec![false; calls.len()];
    let mut groups = Vec::new();
    for first in 0..calls.len() {
        if std::mem::replace(&mut is_done[first], true) {
            continue;
        }
        let mut group = vec![first];
        let mut arguments = calls[first].call.arguments.len();
        let mut passed: Vec<usize> = Vec::new();
        let end = calls.len().min(first + 1 + WINDOW);
        for next in (first + 1..end).filter(|&next| !is_done[next]) {
            let item = calls[next];
            let is_free =
                group.iter().chain(&passed).all(|&other| is_independent(calls[other].call, item.call));
            let fits = group.len() < MAX_MEMBERS && arguments + item.call.arguments.len() <= MAX_ARGUMENTS;
            if is_free && fits && is_worth(calls, &group, item) {
                arguments += item.call.arguments.len();
                group.push(next);
            } else {
                passed.push(next);
            }
        }
        group.iter().for_each(|&member| is_done[member] = true);
        groups.push(group);
    }
    groups
}

/// True if a call gains by joining a group.
fn is_worth(calls: &[Item<'_>], group: &[usize], item: Item<'_>) -> bool {
    let is_shared = group.iter().any(|&member| calls[member].is_shared);
    let all_take =
        |nanoseconds: u64| group.iter().all(|&member| calls[member].call.nanoseconds >= nanoseconds);
    let own = item.call.nanoseconds;
    match (is_shared, item.is_shared) {
        (true, true) => true,
        (true, false) => own >= MIN_SERIAL_NANOSECONDS,
        (false, true) => all_take(MIN_SERIAL_NANOSECONDS),
        (false, false) => own >= MIN_PAIR_NANOSECONDS && all_take(MIN_PAIR_NANOSECONDS),
    }
}

/// True if two calls may run in any order and at the same time: neither writes memory that the
/// other one reads or writes.
pub(super) fn is_independent(a: &Call, b: &Call) -> bool {
    let meets =
        |written: &[Slice], all: &[Slice]| written.iter().any(|w| all.iter().any(|slice| w.overlaps(slice)));
    !meets(&a.arguments[a.written..], &b.arguments) && !meets(&b.arguments[b.written..], &a.arguments)
}

/// Cuts the kernels of a group into parts.
pub(crate) fn region(items: &[Item<'_>], name: impl Fn(&Call) -> String) -> Region {
    let tasks = |item: &Item<'_>| if item.is_shared { item.call.tasks } else { 1 };
    let is_fine = |item: &Item<'_>| item.is_shared && (items.len() == 1 || item.call.tasks >= MANY_TASKS);
    let time =
        |items: &mut dyn Iterator<Item = &Item<'_>>| items.map(|item| item.call.nanoseconds).sum::<u64>();
    let cut = items.iter().filter(|item| is_fine(item)).map(tasks).max().unwrap_or(0);
    // Other kernels count as many parts as their duration is worth, so that all workers take
    // equally long.
    let part = match cut {
        0 => (time(&mut items.iter()) / MAX_PARTS).max(1),
        _ => (time(&mut items.iter().filter(|item| is_fine(item))) / cut as u64).max(1),
    };
    let parts = |item: &Item<'_>| match items.len() {
        _ if is_fine(item) => 0,
        1 => 1,
        _ => {
            let parts = ((item.call.nanoseconds + part / 2) / part).clamp(1, MAX_PARTS) as i64;
            parts.max(tasks(item))
        }
    };
    let coarse: i64 = items.iter().map(parts).sum();
    let mut first = 0;
    let mut member = |item: &Item<'_>| {
        let parts = parts(item);
        let range = if is_fine(item) { (coarse, cut) } else { (first, parts) };
        first += parts;
        let nanoseconds = item.call.nanoseconds;
        RegionMember { name: name(item.call), nanoseconds, tasks: tasks(item), items: range }
    };
    let members = items.iter().map(&mut member).collect();
    Region { members, items: coarse + cut }
}

/// Builds the function that runs parts of a region. Returns it with the slices that its first
/// parameters point to. The workers' scratch and the numbers of the parts follow as parameters.
/// Each worker has `worker_scratch_bytes`: concurrent kernels must agree on the address of a
/// worker's scratch, no matter how much each of them needs.
pub(crate) fn function(
    items: &[Item<'_>],
    region: &Region,
    name: String,
    worker_scratch_bytes: i64,
) -> (Function, Vec<Slice>) {
    let mut b = FunctionBuilder::new(name, Linkage::Internal);
    let mut slices: Vec<Slice> = Vec::new();
    for slice in items.iter().flat_map(|item| &item.call.arguments) {
        if !slices.iter().any(|s| is_same_place(s, slice)) {
            slices.push(*slice);
        }
    }
    let mut pointer = |name: &str| b.parameter(name, Type::PTR, PointerFacts::default());
    let pointers: Vec<ValueId> = (0..slices.len()).map(|k| pointer(&format!("array{k}"))).collect();
    let scratch =
        items.iter().any(|item| item.call.takes_workers_scratch).then(|| pointer("workers_scratch"));
    let mut number = |name: &str| b.parameter(name, Type::I64, PointerFacts::default());
    let (begin, end, worker) = (number("begin"), number("end"), number("worker"));
    // Each kernel sees a single worker, whose scratch is that of the current worker.
    let scratch = scratch.map(|first| b.offset(first, worker, worker_scratch_bytes));
    for (Item { call, is_shared }, member) in items.iter().zip(&region.members) {
        let place = |slice: &Slice| slices.iter().position(|s| is_same_place(s, slice));
        let mut arguments: Vec<ValueId> =
            call.arguments.iter().filter_map(|slice| place(slice).map(|k| pointers[k])).collect();
        arguments.extend(scratch.filter(|_| call.takes_workers_scratch));
        let (first, parts) = member.items;
        let has_work = if *is_shared {
            let task = |b: &mut FunctionBuilder, part: ValueId| task_of_part(b, part, member);
            let (from, to) = (task(&mut b, begin), task(&mut b, end));
            debug_assert!(first + parts <= region.items);
            arguments.extend([from, to, b.index(0)]);
            b.compare(Predicate::Less, from, to)
        } else {
            if call.tasks > 1 {
                arguments.extend([b.index(0), b.index(call.tasks), b.index(0)]);
            }
            let first = b.index(first);
            let (is_begun, is_reached) =
                (b.compare(Predicate::LessEqual, begin, first), b.compare(Predicate::Less, first, end));
            b.and(is_begun, is_reached)
        };
        // The closure never fails.
        let _ = b.if_then(has_work, |b| {
            b.call(call.function, arguments);
            Ok(())
        });
    }
    (b.finish(), slices)
}

/// Returns the first task of a kernel that runs at or after a part of the region. Of few tasks,
/// each belongs to the part that contains its midpoint.
fn task_of_part(b: &mut FunctionBuilder, part: ValueId, member: &RegionMember) -> ValueId {
    let (first, parts) = member.items;
    let (zero, start) = (b.index(0), b.index(first));
    let relative = b.sub(part, start);
    let is_before = b.compare(Predicate::Less, relative, zero);
    let relative = b.select(is_before, zero, relative);
    let most = b.index(parts);
    let is_after = b.compare(Predicate::Less, most, relative);
    let relative = b.select(is_after, most, relative);
    if parts == member.tasks {
        return relative;
    }
    if let Some((factor, shift)) = quotient_by_shift(member.tasks, parts) {
        let scaled = b.mul_constant(relative, factor);
        let (scaled, shift) = (b.add_constant(scaled, 1 << (shift - 1)), b.index(shift));
        return b.binary(BinaryOp::ShiftRightLogical, scaled, shift);
    }
    let (tasks, parts) = (b.index(member.tasks), b.index(parts));
    let scaled = b.mul(relative, tasks);
    let scaled = b.add_constant(scaled, member.items.1 / 2);
    b.binary(BinaryOp::DivideSigned, scaled, parts)
}

/// Returns a factor and a shift such that `part * factor >> shift` equals `part * tasks / parts`
/// for all parts. 32-bit processors cannot divide an index. Returns `None` if the product would
/// overflow.
fn quotient_by_shift(tasks: i64, parts: i64) -> Option<(i64, i64)> {
    // The factor is too large by less than 1. The quotient is therefore too large by less than
    // `parts / 2^bits`, which is less than `1 / parts`.
    let bits = 2 * (i64::BITS - parts.leading_zeros());
    let factor = (i128::from(tasks) << bits.min(64)).checked_add(i128::from(parts) - 1)? / i128::from(parts);
    let most = factor.checked_mul(i128::from(parts))?.checked_add(1 << bits.min(64))?;
    let fits = (1..62).contains(&bits) && most < i128::from(i64::MAX);
    fits.then_some((i64::try_from(factor).ok()?, i64::from(bits)))
}

fn is_same_place(a: &Slice, b: &Slice) -> bool {
    (a.allocation, a.offset) == (b.allocation, b.offset)
}

impl Region {
    /// Returns the minimum duration on `workers` workers if each runs its own share, in
    /// nanoseconds.
    pub fn nanoseconds(&self, workers: i64) -> u64 {
        if workers <= 1 || self.items <= 1 {
            return self.members.iter().map(|member| member.nanoseconds).sum();
        }
        // Thread pools deal out at least two parts per worker.
        let workers = workers.min((self.items + 1) / 2).max(2);
        let first = |worker: i64| self.items / workers * worker + worker.min(self.items % workers);
        let share = |worker: i64| {
            let of_member = |member: &RegionMember| member.share(first(worker), first(worker + 1));
            self.members.iter().map(of_member).sum::<u64>()
        };
        FORK_JOIN_NANOSECONDS + (0..workers).map(share).max().unwrap_or(0)
    }
}

impl RegionMember {
    /// Returns the duration of the kernel's work in parts `begin..end` of the region, in
    /// nanoseconds.
    fn share(&self, begin: i64, end: i64) -> u64 {
        let (first, parts) = self.items;
        if self.tasks <= 1 {
            return if (begin..end).contains(&first) { self.nanoseconds } else { 0 };
        }
        let task = |item: i64| ((item - first).clamp(0, parts) * self.tasks + parts / 2) / parts;
        let tasks = task(end) - task(begin);
        (u128::from(self.nanoseconds) * tasks as u128 / self.tasks as u128) as u64
    }
}

/// Numbers of workers in the table of [`to_text`].
const WORKERS: [i64; 6] = [2, 4, 8, 16, 32, 64];

/// Formats the regions as a table: the speedup for more workers, by the plan's own numbers, and the
/// kernels that limit it most. The body of a loop counts once.
pub fn to_text(regions: &[Region]) -> String {
    let total =
        |workers: i64| regions.iter().map(|region| region.nanoseconds(workers)).fold(0, u64::saturating_add);
    let shared = regions.iter().filter(|region| region.items > 1);
    let all = total(1);
    let within = shared.clone().map(|region| region.nanoseconds(1)).fold(0, u64::saturating_add);
    let mut text = format!(
        "{} regions, {} of them parallel; {:.1} us on one worker, {:.1} % of it in parallel regions\n",
        regions.len(),
        shared.count(),
        all as f64 / 1e3,
        100.0 * within as f64 / all.max(1) as f64
    );
    let most = WORKERS[WORKERS.len() - 1];
    for workers in WORKERS {
        let time = total(workers);
        let faster = all as f64 / time.max(1) as f64;
        text += &format!("  {workers:2} workers: {:.1} us, {faster:.2} times as fast\n", time as f64 / 1e3);
    }
    let mut slowest: Vec<(u64, &Region)> = regions.iter().map(|r| (r.nanoseconds(most), r)).collect();
    slowest.sort_by_key(|&(time, _)| std::cmp::Reverse(time));
    for (time, region) in slowest.into_iter().take(5) {
        let describe = |member: &RegionMember| format!("{} in {} tasks", member.name, member.tasks);
        let members = region.members.iter().map(describe).collect::<Vec<_>>().join(" and ");
        text += &format!("  with {most} workers {:.1} us: {members}\n", time as f64 / 1e3);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nest::{FunctionId, Statement};
    use support::Id;

    /// Returns a kernel that reads and writes slices of 64 bytes with these numbers.
    fn call(nanoseconds: u64, tasks: i64, reads: &[u64], writes: &[u64]) -> Call {
        let slice = |&number: &u64| Slice { allocation: Allocation::Temps, offset: 64 * number, size: 64 };
        Call {
            function: FunctionId::from_index(0),
            arguments: reads.iter().chain(writes).map(slice).collect(),
            written: reads.len(),
            takes_workers_scratch: false,
            tasks,
            nanoseconds,
        }
    }

    fn groups(calls: &[Call]) -> Vec<Vec<usize>> {
        group(&share(&calls.iter().collect::<Vec<_>>()))
    }

    #[test]
    fn shifts_divide_exactly() {
        for (tasks, parts) in
            [(96, 64), (64, 63), (1, 64), (1000, 7), (3, 2), (65, 64), (12345, 4096), (5, 5)]
        {
            let (factor, bits) = quotient_by_shift(tasks, parts).expect("small numbers");
            for part in 0..=parts {
                assert_eq!((part * factor) >> bits, part * tasks / parts, "{part} of {parts} for {tasks}");
            }
        }
        assert_eq!(quotient_by_shift(i64::MAX, 3), None);
        assert_eq!(quotient_by_shift(1, i64::MAX), None);
    }

    #[test]
    fn transfers_between_cores_count() {
        let large =
            |number: u64| Slice { allocation: Allocation::Temps, offset: number << 20, size: 1 << 15 };
        let kernel = |nanoseconds: u64, reads: u64, writes: u64| Call {
            arguments: vec![large(reads), large(writes)],
            ..call(nanoseconds, 8, &[7], &[8])
        };
        let shared = |calls: &[Call]| -> Vec<bool> {
            share(&calls.iter().collect::<Vec<_>>()).iter().map(|item| item.is_shared).collect()
        };
        assert_eq!(shared(&[kernel(6000, 0, 1), kernel(6000, 1, 2), kernel(6000, 2, 3)]), [true; 3]);
        assert_eq!(shared(&[kernel(700, 0, 1), kernel(6000, 1, 2), kernel(700, 2, 3)]), [false; 3]);
        assert_eq!(shared(&[kernel(700, 0, 1), kernel(9000, 1, 2), kernel(700, 2, 3)]), [false, true, false]);
        // The transferred arrays are small.
        let calls = [call(700, 8, &[0], &[1]), call(6000, 24, &[1], &[2]), call(700, 8, &[2], &[3])];
        assert_eq!(shared(&calls), [false, true, false]);
    }

    #[test]
    fn independent_kernels_share_a_region_and_dependent_ones_do_not() {
        // Two branches of two kernels each, and a kernel that joins them.
        let calls = [
            call(9000, 36, &[0], &[1]),
            call(9000, 36, &[1], &[2]),
            call(9000, 36, &[0], &[3]),
            call(9000, 36, &[3], &[4]),
            call(9000, 36, &[2, 4], &[5]),
        ];
        assert_eq!(groups(&calls), [vec![0, 2], vec![1, 3], vec![4]]);
    }

    #[test]
    fn memory_that_is_used_again_keeps_the_order() {
        // The third kernel writes the operand of the second one. The last kernel writes the same
        // memory as the third one.
        let calls = [
            call(9000, 36, &[0], &[1]),
            call(9000, 36, &[1], &[2]),
            call(9000, 36, &[0], &[1]),
            call(9000, 36, &[7], &[1]),
        ];
        assert_eq!(groups(&calls), [vec![0], vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn small_kernels_join_only_parallel_regions() {
        let calls = [call(400, 1, &[0], &[1]), call(400, 1, &[0], &[2]), call(9000, 36, &[0], &[3])];
        assert_eq!(groups(&calls), [vec![0, 2], vec![1]]);
        let calls = [call(9000, 36, &[0], &[3]), call(400, 1, &[0], &[1]), call(50, 1, &[0], &[2])];
        assert_eq!(groups(&calls), [vec![0, 1], vec![2]]);
        let calls = [call(1600, 1, &[0], &[1]), call(1700, 1, &[0], &[2]), call(400, 1, &[0], &[3])];
        assert_eq!(groups(&calls), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn shares_take_equally_long() {
        // 64 tasks of 1 us, 10 of 3.2 us, and 4 us in one piece.
        let calls = [call(64_000, 64, &[], &[1]), call(32_000, 10, &[], &[2]), call(4_000, 1, &[], &[3])];
        let items: Vec<Item<'_>> = share(&calls.iter().collect::<Vec<_>>());
        let region = region(&items, |_| String::new());
        assert_eq!(region.members.iter().map(|m| m.items).collect::<Vec<_>>(), [(3, 64), (3, 64), (0, 3)]);
        assert_eq!(region.items, 67);
        assert_eq!(region.nanoseconds(1), 100_000);
        let two = region.nanoseconds(2);
        assert!((50_000..54_000).contains(&two), "{two}");
        // Ten tasks occupy at most five workers.
        let few = super::region(&items[1..2], |_| String::new());
        assert_eq!(few.nanoseconds(64), 300 + 6_400);
    }

    #[test]
    fn no_kernel_of_a_region_counts_workers_by_itself() {
        // Each kernel would use the distance of its own scratch size. The region's function uses
        // one distance for all.
        let mut calls =
            [call(50_000, 8, &[0], &[1]), call(50_000, 8, &[2], &[3]), call(9_000, 8, &[4], &[5])];
        calls.iter_mut().for_each(|call| call.takes_workers_scratch = true);
        let items = calls.iter().enumerate().map(|(k, call)| Item { call, is_shared: k < 2 });
        let items: Vec<Item<'_>> = items.collect();
        let region = region(&items, |_| String::new());
        let (function, slices) = function(&items, &region, "region".to_owned(), 4096);
        let (scratch, worker) = (function.parameters[slices.len()].value, function.parameters.last());
        let worker = worker.map(|parameter| parameter.value);
        let mut passed = Vec::new();
        for statement in &function.body.statements {
            if let Statement::If { then, .. } = statement {
                let calls = then.statements.iter().filter_map(|statement| match statement {
                    Statement::Call { arguments, .. } => Some(arguments.clone()),
                    _ => None,
                });
                passed.extend(calls);
            }
        }
        assert_eq!(passed.len(), 3);
        let own = passed[0][2];
        for arguments in passed {
            assert_eq!(arguments[2], own, "one scratch for all");
            assert!(own != scratch && arguments.last().copied() != worker);
        }
    }
}
