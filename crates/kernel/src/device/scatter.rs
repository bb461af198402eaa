//! Scatters: a thread for each element of a window, or groups that own ranges of elements.
//!
//! A group reads the indices of all updates, a tile at a time, and lists those of its range in
//! order. Each thread then walks the list and combines the updates of its own elements.

use super::movement;
use super::team;
use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::element::Element;
use crate::index::{Facts, Index};
use crate::movement::scatter::Scatter;
use crate::movement::update::number_of;
use nest::{
    ConvertOp, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, ThreadIndex, Type, ValueId,
};
use plan::{GroupGrid, Loop, RangesPlan, SCATTER_THREADS, ScatterPlan};
use support::Result;

/// Emits a step: the copy of an operand, or the combination of the updates.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &ScatterPlan,
    step: usize,
    grid: GroupGrid,
) -> Result<()> {
    if let Some(&copy) = plan.copies.get(step) {
        let operand = cx.fusion().body[cx.fusion().root].operands()[step];
        let operand = cx.operand(number_of(cx, operand)?)?.clone();
        let result = cx.results()[step].clone();
        return movement::copy_all(cx, &operand, &result, copy, grid);
    }
    let Some(scatter) = Scatter::of(cx)? else { return Ok(()) };
    match &plan.ranges {
        None => by_threads(cx, plan, scatter, grid),
        Some(ranges) => by_ranges(cx, plan, ranges, scatter),
    }
}

fn by_threads(
    cx: &mut KernelContext<'_>,
    plan: &ScatterPlan,
    mut scatter: Scatter<'_>,
    grid: GroupGrid,
) -> Result<()> {
    let loops: Vec<Loop> = plan.batch.iter().chain(&plan.window).copied().collect();
    movement::for_unit(cx, grid, plan.tasks(), |cx, number| {
        let mut update = vec![Index::default(); scatter.update_sizes.len()];
        team::place(cx, &loops, number, &mut update)?;
        scatter.combine_all(cx, loops.iter().map(|l| l.dimension).collect(), &mut update)
    })
}

/// Bytes of workgroup memory for the updates of a tile.
const STASH_BYTES: i64 = 24 << 10;

/// The updates of a tile that are in the range of a group.
struct List {
    /// Numbers of the updates, and of the elements within the range.
    updates: ValueId,
    elements: ValueId,
    /// Two regions for running totals.
    totals: [ValueId; 2],
    /// The updates themselves if a window is a single element.
    stash: Option<Stash>,
}

/// Updates in workgroup memory: elements like them, and an array of each of their parts.
struct Stash {
    like: Vec<Element>,
    parts: Vec<(ValueId, Type)>,
}

impl Stash {
    /// Returns memory for `tile` updates like those at a position, or `None` if they are too large.
    fn new(
        cx: &mut KernelContext<'_>,
        scatter: &Scatter<'_>,
        update: &[Index],
        tile: i64,
    ) -> Result<Option<Self>> {
        let like = scatter.load_updates(cx, update)?;
        let types: Vec<Type> = like.iter().flat_map(|e| e.values()).map(|value| cx.ty(value)).collect();
        let bytes = |ty: Type| tile * team::memory(ty).scalar.byte_size() as i64;
        if types.iter().map(|&ty| bytes(ty)).sum::<i64>() > STASH_BYTES {
            return Ok(None);
        }
        let parts = types.into_iter().map(|ty| (cx.workgroup_memory(bytes(ty) as u64, 16), ty)).collect();
        Ok(Some(Self { like, parts }))
    }

    fn address(b: &mut FunctionBuilder, part: (ValueId, Type), item: ValueId) -> (ValueId, Type, u32) {
        let ty = team::memory(part.1);
        let bytes = ty.scalar.byte_size();
        (b.offset(part.0, item, bytes as i64), ty, bytes as u32)
    }

    fn store(&self, cx: &mut KernelContext<'_>, item: ValueId, updates: &[Element]) {
        for (&part, value) in self.parts.iter().zip(updates.iter().flat_map(|e| e.values())) {
            let raw = team::to_memory(cx, value);
            let (address, _, alignment) = Self::address(cx, part, item);
            cx.store(raw, address, alignment);
        }
    }

    fn load(&self, cx: &mut KernelContext<'_>, item: ValueId) -> Vec<Element> {
        let mut values = Vec::with_capacity(self.parts.len());
        for &part in &self.parts {
            let (address, ty, alignment) = Self::address(cx, part, item);
            let raw = cx.load(ty, address, alignment);
            values.push(team::from_memory(cx, part.1, raw));
        }
        team::elements(&self.like, &values)
    }
}

/// Loads a number of a list.
fn load_number(cx: &mut KernelContext<'_>, list: ValueId, item: ValueId, end: i64) -> ValueId {
    let at = cx.offset(list, item, 4);
    let number = cx.load(Type::scalar(ScalarType::I32), at, 4);
    let number = cx.convert(ConvertOp::ZeroExtend, number, ScalarType::I64);
    cx.learn(number, Facts::range(0, end - 1));
    number
}

fn by_ranges(
    cx: &mut KernelContext<'_>,
    plan: &ScatterPlan,
    ranges: &RangesPlan,
    mut scatter: Scatter<'_>,
) -> Result<()> {
    let tile = SCATTER_THREADS * ranges.each;
    let bytes = 4 * tile as u64;
    let mut list = List {
        updates: cx.workgroup_memory(bytes, 16),
        elements: cx.workgroup_memory(bytes, 16),
        totals: [0; 2].map(|_| cx.workgroup_memory(8 * SCATTER_THREADS as u64, 16)),
        stash: None,
    };
    let local = cx.thread(ThreadIndex::Local);
    cx.learn(local, Facts::range(0, SCATTER_THREADS - 1));
    let rank = Index::scalar(local);
    let group = team::group(cx, plan.tasks());
    let (group, range) = cx.div_rem(&group, ranges.ranges.0)?;
    let (batch, part) = cx.div_rem(&group, plan.window_parts())?;
    let (class, column) = cx.div_rem(&rank, ranges.across)?;
    let column = part.times(ranges.across).plus(&column);
    let width: i64 = plan.window.iter().map(|l| l.extent).product();
    let has_column = match cx.contains(&column, 0, width)? {
        Containment::When(is_in) => Some(is_in),
        Containment::Always | Containment::Never => None,
    };
    let column = cx.clamp(&column, 0, width - 1)?;
    let mut update = vec![Index::default(); scatter.update_sizes.len()];
    team::place(cx, &plan.batch, &batch, &mut update)?;
    team::place(cx, &plan.window, &column, &mut update)?;
    let fixed: Vec<usize> = (0..update.len()).collect();
    scatter.fix(fixed);
    if width == 1 {
        let first = vec![Index::default(); update.len()];
        list.stash = Stash::new(cx, &scatter, &first, tile)?;
    }
    let first = range.times(ranges.ranges.1);
    let class = cx.scalar_value(&class)?;
    cx.for_range(0, ranges.updates(), tile, |cx, begin| {
        // The threads have walked the list of the tile before.
        cx.barrier();
        let begin = begin.plus(&rank.times(ranges.each));
        let total = fill(cx, ranges, &scatter, &list, &begin, &first, update.clone())?;
        cx.barrier();
        if let Some(stash) = &list.stash {
            cx.for_each(local, total, SCATTER_THREADS, |cx, item| {
                cx.scoped(|cx| {
                    let number = load_number(cx, list.updates, item, ranges.updates());
                    let mut update = update.clone();
                    team::place(cx, &ranges.walked, &Index::scalar(number), &mut update)?;
                    let updates = scatter.load_updates(cx, &update)?;
                    stash.store(cx, item, &updates);
                    Ok(())
                })
            })?;
            cx.barrier();
        }
        let zero = cx.index(0);
        cx.for_dynamic(zero, total, tile, &[], |cx, item, _| {
            let element = load_number(cx, list.elements, item, ranges.ranges.1);
            let mask = cx.index(SCATTER_THREADS / ranges.across - 1);
            let its_class = cx.and(element, mask);
            let is_own = cx.compare(Predicate::Equal, its_class, class);
            let is_own = team::all(cx, &[Some(is_own), has_column]);
            team::when(cx, is_own, |cx| {
                let number =
                    cx.clamp(&first.plus(&Index::scalar(element)), 0, count(&ranges.selected) - 1)?;
                if let Some(stash) = &list.stash {
                    let mut target = scatter.batch_start(&update);
                    team::place(cx, &ranges.selected, &number, &mut target)?;
                    return scatter.combine_with(cx, |cx| Ok(stash.load(cx, item)), &target);
                }
                let mut update = update.clone();
                let of_update = load_number(cx, list.updates, item, ranges.updates());
                team::place(cx, &ranges.walked, &Index::scalar(of_update), &mut update)?;
                let mut start = scatter.batch_start(&update);
                team::place(cx, &ranges.selected, &number, &mut start)?;
                let mut target = start.clone();
                scatter.for_window(cx, 0, &mut update, &start, &mut target)
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    })
}

fn count(loops: &[Loop]) -> i64 {
    loops.iter().map(|l| l.extent).product()
}

/// Lists the updates of a tile that are in the range. Returns their number.
fn fill(
    cx: &mut KernelContext<'_>,
    ranges: &RangesPlan,
    scatter: &Scatter<'_>,
    list: &List,
    begin: &Index,
    first: &Index,
    mut update: Vec<Index>,
) -> Result<ValueId> {
    let mut found = Vec::with_capacity(ranges.each as usize);
    let mut own = cx.index(0);
    for k in 0..ranges.each {
        let number = begin.plus_constant(k);
        let is_update = match cx.contains(&number, 0, ranges.updates())? {
            Containment::When(is_in) => Some(is_in),
            Containment::Always | Containment::Never => None,
        };
        let number = cx.clamp(&number, 0, ranges.updates() - 1)?;
        team::place(cx, &ranges.walked, &number, &mut update)?;
        let (start, fits) = scatter.start(cx, &update)?;
        let fits = if let Containment::When(fits) = fits { Some(fits) } else { None };
        let mut place = Index::default();
        for l in &ranges.selected {
            place = place.times(l.extent).plus(&start[l.dimension]);
        }
        let element = cx.scalar_value(&place.plus(&first.times(-1)))?;
        let end = cx.index(ranges.ranges.1);
        let is_near = cx.compare(Predicate::Below, element, end);
        let is_in = team::all(cx, &[is_update, fits, Some(is_near)]).unwrap_or(is_near);
        let one = cx.convert(ConvertOp::ZeroExtend, is_in, ScalarType::I64);
        own = cx.add(own, one);
        let number = cx.scalar_value(&number)?;
        found.push((is_in, one, number, element));
    }
    let (before, total) = running_total(cx, list, own)?;
    let mut at = before;
    for (is_in, one, number, element) in found {
        cx.when(is_in, |cx| {
            for (value, list) in [(number, list.updates), (element, list.elements)] {
                let address = cx.offset(list, at, 4);
                let value = cx.convert(ConvertOp::Truncate, value, ScalarType::I32);
                cx.store(value, address, 4);
            }
            Ok(())
        })?;
        at = cx.add(at, one);
    }
    Ok(total)
}

/// Returns the sum of the numbers of the threads before this one, and that of all threads.
fn running_total(cx: &mut KernelContext<'_>, list: &List, own: ValueId) -> Result<(ValueId, ValueId)> {
    let local = cx.thread(ThreadIndex::Local);
    let zero = cx.index(0);
    let (mut sum, mut region, mut distance) = (own, 0, 1);
    while distance < SCATTER_THREADS {
        let earlier = exchange(cx, list.totals[region], local, sum, -distance);
        let limit = cx.index(distance);
        let has_earlier = cx.compare(Predicate::GreaterEqual, local, limit);
        let earlier = cx.select(has_earlier, earlier, zero);
        sum = cx.add(sum, earlier);
        region ^= 1;
        distance *= 2;
    }
    let address = cx.offset(list.totals[region], local, 8);
    cx.store(sum, address, 8);
    cx.barrier();
    let last = cx.offset_bytes(list.totals[region], 8 * (SCATTER_THREADS - 1));
    let total = cx.load(Type::I64, last, 8);
    Ok((cx.sub(sum, own), total))
}

/// Returns the number of the thread at a distance before this one, or of the first one.
fn exchange(
    b: &mut FunctionBuilder,
    region: ValueId,
    local: ValueId,
    own: ValueId,
    distance: i64,
) -> ValueId {
    let address = b.offset(region, local, 8);
    b.store(own, address, 8);
    b.barrier();
    let from = b.add_constant(local, distance);
    let zero = b.index(0);
    let is_first = b.compare(Predicate::Less, from, zero);
    let from = b.select(is_first, zero, from);
    let address = b.offset(region, from, 8);
    b.load(Type::I64, address, 8)
}
