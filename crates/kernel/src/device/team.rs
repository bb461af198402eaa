//! Teams: threads of a workgroup that combine their accumulators through workgroup memory, in a
//! fixed order.

use crate::context::KernelContext;
use crate::element::Element;
use crate::index::{Facts, Index};
use crate::reduction::reduce::operation::Operation;
use hlo::ComputationId;
use nest::{BinaryOp, ConvertOp, Predicate, ScalarType, ThreadIndex, Type, ValueId};
use plan::{Loop, Teams};
use support::{Error, Result};

/// Accumulators that a thread combines at once. The combination of a team's 256 accumulators then
/// waits three times.
const RADIX: i64 = 8;

/// Combines two lists of accumulators.
pub(super) enum Reducer<'a> {
    /// One operation for each accumulator, in any order.
    Operations(Vec<Operation<'a>>),
    /// A computation that combines all accumulators. The order of the elements is kept.
    Computation(ComputationId, Vec<Element>),
}

impl Reducer<'_> {
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Self::Computation(..))
    }

    pub(super) fn combine(
        &self,
        cx: &mut KernelContext<'_>,
        x: &[ValueId],
        y: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        match self {
            Self::Operations(operations) => {
                let pairs = operations.iter().zip(x.iter().zip(y));
                pairs.map(|(operation, (&x, &y))| operation.combine(cx, x, y)).collect()
            }
            Self::Computation(computation, like) => {
                let mut arguments = elements(like, x);
                arguments.extend(elements(like, y));
                let next = cx.apply(*computation, &arguments)?;
                if next.len() != like.len() {
                    return Err(Error::internal(
                        "expected as many values from the computation of a reduction as it has accumulators",
                    ));
                }
                Ok(next.into_iter().flat_map(Element::values).collect())
            }
        }
    }
}

/// Groups values into elements that are real or complex like those of a list.
pub(super) fn elements(like: &[Element], values: &[ValueId]) -> Vec<Element> {
    let mut rest = values;
    let mut elements = Vec::with_capacity(like.len());
    for element in like {
        let (own, more) = rest.split_at(element.values().len());
        elements.push(Element::from_values(own));
        rest = more;
    }
    elements
}

/// The running thread's place in its team.
pub(super) struct Team {
    teams: Teams,
    /// Number of the thread in its team.
    pub(super) rank: Index,
    /// Number of the team in its workgroup.
    team: Index,
    /// Two regions of workgroup memory, which alternate, and their size.
    regions: Option<([ValueId; 2], u64)>,
    turn: usize,
}

impl Team {
    pub(super) fn new(cx: &mut KernelContext<'_>, teams: Teams) -> Result<Self> {
        let local = cx.thread(ThreadIndex::Local);
        cx.learn(local, Facts::range(0, teams.threads() - 1));
        let divisor = if teams.is_across { teams.per_group } else { teams.size };
        let (outer, inner) = cx.div_rem(&Index::scalar(local), divisor)?;
        let (team, rank) = if teams.is_across { (inner, outer) } else { (outer, inner) };
        Ok(Self { teams, rank, team, regions: None, turn: 0 })
    }

    /// Reserves workgroup memory for the largest list of accumulators that are combined at once.
    pub(super) fn reserve(&mut self, cx: &mut KernelContext<'_>, lists: &[Vec<Type>]) -> Result<()> {
        let largest = lists.iter().map(|types| bytes(types, self.teams.threads())).max().unwrap_or(0);
        if self.teams.size == 1 || largest == 0 {
            return Ok(());
        }
        let regions = [cx.workgroup_memory(largest, 16), cx.workgroup_memory(largest, 16)];
        self.regions = Some((regions, largest));
        Ok(())
    }

    /// Returns the number of the thread's team among all teams, given that of its workgroup, and a
    /// condition if the team may have no work; its number is then that of another team.
    pub(super) fn number(
        &self,
        cx: &mut KernelContext<'_>,
        group: &Index,
    ) -> Result<(Index, Option<ValueId>)> {
        let number = group.times(self.teams.per_group).plus(&self.team);
        if self.teams.count % self.teams.per_group == 0 {
            return Ok((number, None));
        }
        let value = cx.scalar_value(&number)?;
        let count = cx.index(self.teams.count);
        let has_work = cx.compare(Predicate::Less, value, count);
        let number = cx.clamp(&number, 0, self.teams.count - 1)?;
        Ok((number, Some(has_work)))
    }

    /// Returns a condition that holds for one thread of the team, if it has several.
    pub(super) fn is_first(&self, cx: &mut KernelContext<'_>) -> Result<Option<ValueId>> {
        if self.teams.size == 1 {
            return Ok(None);
        }
        let rank = cx.scalar_value(&self.rank)?;
        let zero = cx.index(0);
        Ok(Some(cx.compare(Predicate::Equal, rank, zero)))
    }

    /// Combines the accumulators of all threads of the team. Each of them gets the result. All
    /// threads of the workgroup must call this together.
    pub(super) fn reduce(
        &mut self,
        cx: &mut KernelContext<'_>,
        values: Vec<ValueId>,
        reducer: &Reducer<'_>,
    ) -> Result<Vec<ValueId>> {
        let mut members = self.teams.size;
        if members == 1 || values.is_empty() {
            return Ok(values);
        }
        let types: Vec<Type> = values.iter().map(|&v| cx.ty(v)).collect();
        let rank = cx.scalar_value(&self.rank)?;
        self.store(cx, &values, members)?;
        cx.barrier();
        while members > RADIX {
            let rest = members / RADIX;
            let limit = cx.index(rest);
            let goes_on = cx.compare(Predicate::Less, rank, limit);
            let from = self.turn;
            self.turn ^= 1;
            let this = &*self;
            cx.when(goes_on, |cx| {
                let combined = this.combine(cx, &types, from, members, RADIX, rest, reducer)?;
                this.store(cx, &combined, rest)
            })?;
            cx.barrier();
            members = rest;
        }
        let from = self.turn;
        self.turn ^= 1;
        self.combine_all(cx, &types, from, members, reducer)
    }

    /// Combines `radix` of the members' accumulators for the member of the next round with the
    /// thread's rank.
    #[allow(clippy::too_many_arguments)]
    fn combine(
        &self,
        cx: &mut KernelContext<'_>,
        types: &[Type],
        region: usize,
        members: i64,
        radix: i64,
        rest: i64,
        reducer: &Reducer<'_>,
    ) -> Result<Vec<ValueId>> {
        let member = |k: i64| {
            if reducer.is_ordered() {
                self.rank.times(radix).plus_constant(k)
            } else {
                self.rank.plus_constant(k * rest)
            }
        };
        let mut loaded = Vec::with_capacity(radix as usize);
        for k in 0..radix {
            loaded.push(self.load(cx, types, region, members, &member(k))?);
        }
        tree(cx, loaded, reducer)
    }

    fn combine_all(
        &self,
        cx: &mut KernelContext<'_>,
        types: &[Type],
        region: usize,
        members: i64,
        reducer: &Reducer<'_>,
    ) -> Result<Vec<ValueId>> {
        let mut loaded = Vec::with_capacity(members as usize);
        for k in 0..members {
            loaded.push(self.load(cx, types, region, members, &Index::constant(k))?);
        }
        tree(cx, loaded, reducer)
    }

    /// Returns the number of a member's place in a region.
    fn place(&self, members: i64, member: &Index) -> Index {
        if self.teams.is_across {
            member.times(self.teams.per_group).plus(&self.team)
        } else {
            self.team.times(members).plus(member)
        }
    }

    fn address(
        &self,
        cx: &mut KernelContext<'_>,
        region: usize,
        offset: u64,
        ty: Type,
        place: &Index,
    ) -> Result<ValueId> {
        let Some((regions, _)) = self.regions else {
            return Err(Error::internal("a team has no workgroup memory"));
        };
        let place = cx.scalar_value(place)?;
        let first = cx.offset_bytes(regions[region], offset as i64);
        Ok(cx.offset(first, place, ty.scalar.byte_size() as i64))
    }

    fn store(&self, cx: &mut KernelContext<'_>, values: &[ValueId], members: i64) -> Result<()> {
        let place = self.place(members, &self.rank);
        let mut offset = 0;
        for &value in values {
            let raw = to_memory(cx, value);
            let ty = cx.ty(raw);
            let address = self.address(cx, self.turn, offset, ty, &place)?;
            cx.store(raw, address, ty.scalar.byte_size() as u32);
            offset += bytes(&[ty], self.teams.threads());
        }
        Ok(())
    }

    fn load(
        &self,
        cx: &mut KernelContext<'_>,
        types: &[Type],
        region: usize,
        members: i64,
        member: &Index,
    ) -> Result<Vec<ValueId>> {
        let place = self.place(members, member);
        let mut offset = 0;
        let mut values = Vec::with_capacity(types.len());
        for &ty in types {
            let stored = memory(ty);
            let address = self.address(cx, region, offset, stored, &place)?;
            let raw = cx.load(stored, address, stored.scalar.byte_size() as u32);
            values.push(from_memory(cx, ty, raw));
            offset += bytes(&[ty], self.teams.threads());
        }
        Ok(values)
    }
}

/// Combines lists of accumulators pairwise, in order.
pub(super) fn tree(
    cx: &mut KernelContext<'_>,
    mut lists: Vec<Vec<ValueId>>,
    reducer: &Reducer<'_>,
) -> Result<Vec<ValueId>> {
    while lists.len() > 1 {
        let mut halved = Vec::with_capacity(lists.len().div_ceil(2));
        for pair in lists.chunks(2) {
            halved.push(match pair {
                [x, y] => reducer.combine(cx, x, y)?,
                _ => pair.concat(),
            });
        }
        lists = halved;
    }
    lists.pop().ok_or_else(|| Error::internal("nothing to combine"))
}

/// The form of an accumulator in memory.
pub(super) fn memory(ty: Type) -> Type {
    if ty.scalar == ScalarType::Bool { Type::scalar(ScalarType::I8) } else { Type::scalar(ty.scalar) }
}

pub(super) fn to_memory(cx: &mut KernelContext<'_>, value: ValueId) -> ValueId {
    if cx.ty(value).scalar == ScalarType::Bool {
        cx.convert(ConvertOp::ZeroExtend, value, ScalarType::I8)
    } else {
        value
    }
}

pub(super) fn from_memory(cx: &mut KernelContext<'_>, ty: Type, raw: ValueId) -> ValueId {
    if ty.scalar == ScalarType::Bool {
        let ty = cx.ty(raw);
        let zero = cx.integer(ty, 0);
        cx.compare(Predicate::NotEqual, raw, zero)
    } else {
        raw
    }
}

/// Bytes of one accumulator of each type for each of `count` owners.
fn bytes(types: &[Type], count: i64) -> u64 {
    let each = |ty: &Type| (memory(*ty).scalar.byte_size() as u64 * count as u64).next_multiple_of(16);
    types.iter().map(each).sum()
}

/// Returns the workgroup's number in a grid of `groups`.
pub(super) fn group(cx: &mut KernelContext<'_>, groups: i64) -> Index {
    let group = cx.thread(ThreadIndex::Workgroup);
    cx.learn(group, Facts::range(0, groups - 1));
    Index::scalar(group)
}

/// Sets the indices of some loops, given the number of their combined iteration.
pub(super) fn place(
    cx: &mut KernelContext<'_>,
    loops: &[Loop],
    number: &Index,
    indices: &mut [Index],
) -> Result<()> {
    let mut rest = number.clone();
    for (k, one) in loops.iter().enumerate().rev() {
        if k == 0 {
            indices[one.dimension] = rest;
            break;
        }
        (rest, indices[one.dimension]) = cx.div_rem(&rest, one.extent)?;
    }
    Ok(())
}

/// Clamps an index to the last load of `lanes` elements within `length`. Both are multiples of
/// `lanes`.
pub(super) fn within(cx: &mut KernelContext<'_>, number: &Index, length: i64, lanes: u32) -> Result<Index> {
    let multiple = i64::from(lanes);
    let inside = cx.clamp(number, 0, length - multiple)?;
    if let [(value, 1)] = inside.terms()
        && inside.offset() == 0
    {
        cx.learn(*value, Facts { min: 0, max: length - multiple, multiple });
    }
    Ok(inside)
}

/// Returns a condition that holds if all of these do; `None` if there are none.
pub(super) fn all(cx: &mut KernelContext<'_>, conditions: &[Option<ValueId>]) -> Option<ValueId> {
    let known = conditions.iter().flatten().copied();
    known.reduce(|a, b| cx.binary(BinaryOp::And, a, b))
}

/// Runs `body` if a condition holds, or always if there is none.
pub(super) fn when(
    cx: &mut KernelContext<'_>,
    condition: Option<ValueId>,
    body: impl FnOnce(&mut KernelContext<'_>) -> Result<()>,
) -> Result<()> {
    match condition {
        None => body(cx),
        Some(condition) => cx.when(condition, |cx| body(cx)),
    }
}
