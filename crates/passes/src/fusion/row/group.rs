//! Decides which instructions are walked together.

use super::RowFusion;
use super::rows::Rows;
use crate::fusion::body::is_mask;
use crate::fusion::tiles::Tiles;
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use std::collections::BTreeSet;
use support::{IdSet, IdVec};

/// The content of one fusion.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The instructions that are computed.
    pub(super) members: BTreeSet<InstructionId>,
    /// Cheap instructions outside that are computed again inside.
    pub(super) copied: BTreeSet<InstructionId>,
    /// Arrays read from memory, in the order in which the members first read them.
    pub(super) operands: Vec<InstructionId>,
    /// Members that are read outside.
    pub(super) results: Vec<InstructionId>,
}

/// The groups of a computation.
pub(super) struct Groups<'m> {
    options: &'m RowFusion,
    module: &'m Module,
    computation: &'m Computation,
    order: Vec<InstructionId>,
    /// Positions of live instructions in the order.
    place: IdVec<InstructionId, Option<usize>>,
    tiles: Tiles,
    grouped: IdSet<InstructionId>,
    pub(super) groups: Vec<Group>,
}

/// Maximum number of users of a group's instructions to examine.
const MAX_VISITS: usize = 1024;

/// With shorter rows than this, arrays with one element per row are better computed with vectors
/// across rows.
const MIN_COLUMNS_FOR_ONE_WALK: i64 = 32;

impl<'m> Groups<'m> {
    /// Groups the live instructions of the computation, starting at its first reduction.
    pub(super) fn new(options: &'m RowFusion, module: &'m Module, id: ComputationId) -> Self {
        let computation = &module[id];
        let order = computation.post_order();
        let mut place = IdVec::filled(None, computation.id_count());
        for (k, &id) in order.iter().enumerate() {
            place[id] = Some(k);
        }
        let tiles = Tiles::new(computation, &order, |id| computation[id].op().is_elementwise());
        let (grouped, all) = (IdSet::new(), Vec::new());
        let mut groups = Self { options, module, computation, order, place, tiles, grouped, groups: all };
        for k in 0..groups.order.len() {
            let seed = groups.order[k];
            if groups.grouped.contains(seed) {
                continue;
            }
            if let Some(rows) = groups.rows(seed)
                && let Some(group) = groups.group(seed, &rows)
            {
                for &member in &group.members {
                    groups.grouped.insert(member);
                }
                groups.groups.push(group);
            }
        }
        groups
    }

    fn rows(&self, id: InstructionId) -> Option<Rows> {
        Rows::of(self.options, self.module, self.computation, id)
    }

    fn admits(&self, rows: &Rows, id: InstructionId, members: &BTreeSet<InstructionId>) -> bool {
        if self.grouped.contains(id) || self.tiles.contains(id) {
            return false;
        }
        match self.computation[id].op() {
            Op::Reduce { .. } => self.rows(id).as_ref() == Some(rows),
            _ => rows.admits(self.computation, id, |operand| members.contains(&operand)),
        }
    }

    fn live_users(&self, id: InstructionId) -> impl Iterator<Item = InstructionId> + '_ {
        self.computation[id].users().iter().copied().filter(|&user| self.place[user].is_some())
    }

    /// The group of a reduction, if it is worth a kernel of its own kind.
    fn group(&self, seed: InstructionId, rows: &Rows) -> Option<Group> {
        let mut members = self.downstream(seed, rows);
        self.add_upstream(rows, &mut members);
        let group = self.finished(members);
        let is_reduction = |id: &&InstructionId| matches!(self.computation[**id].op(), Op::Reduce { .. });
        let reductions = || group.members.iter().filter(is_reduction);
        // A broadcast that is read outside is computed there.
        let is_used = |id: &InstructionId| self.live_users(*id).any(|user| group.members.contains(&user));
        let walks = reductions().count()
            + group.results.iter().filter(|&&id| rows.is_whole(self.computation, id)).count();
        let is_good = reductions().any(is_used)
            && (walks > 1 || rows.columns >= MIN_COLUMNS_FOR_ONE_WALK)
            && !group.results.is_empty()
            && group.operands.len() <= self.options.max_operands;
        is_good.then_some(group)
    }

    /// The reduction and its consumers, as long as no instruction that cannot be a member lies in
    /// between.
    fn downstream(&self, seed: InstructionId, rows: &Rows) -> BTreeSet<InstructionId> {
        let mut members = BTreeSet::from([seed]);
        let mut others: BTreeSet<InstructionId> = BTreeSet::new();
        let users = |id: InstructionId| self.live_users(id).map(|user| (self.place[user], user));
        // Users of members and of others, in order of execution.
        let mut pending: BTreeSet<(Option<usize>, InstructionId)> = users(seed).collect();
        for _ in 0..MAX_VISITS {
            let Some((_, id)) = pending.pop_first() else { break };
            let operands = self.computation[id].operands();
            let is_clean = !operands.iter().any(|operand| others.contains(operand));
            if is_clean && members.len() < self.options.max_instructions && self.admits(rows, id, &members) {
                members.insert(id);
            } else {
                others.insert(id);
            }
            pending.extend(users(id));
        }
        members
    }

    /// Adds instructions that only members read, each for its own row.
    fn add_upstream(&self, rows: &Rows, members: &mut BTreeSet<InstructionId>) {
        let read = |id: InstructionId| self.computation[id].operands().iter().map(|&o| (self.place[o], o));
        let mut pending: BTreeSet<(Option<usize>, InstructionId)> =
            members.iter().flat_map(|&id| read(id)).collect();
        while let Some((_, id)) = pending.pop_last() {
            let is_free = !members.contains(&id)
                && id != self.computation.root()
                && members.len() < self.options.max_instructions
                && self.live_users(id).all(|user| members.contains(&user) && self.takes(rows, user, id))
                && self.admits(rows, id, &BTreeSet::new());
            if is_free {
                members.insert(id);
                pending.extend(read(id));
            }
        }
    }

    /// True if a member may use the value of another one.
    fn takes(&self, rows: &Rows, user: InstructionId, id: InstructionId) -> bool {
        let is_reduction = matches!(self.computation[user].op(), Op::Reduce { .. });
        is_reduction || rows.admits(self.computation, user, |operand| operand == id)
    }

    /// Determines the results, the operands, and the cheap instructions that are copied.
    fn finished(&self, members: BTreeSet<InstructionId>) -> Group {
        let mut group = Group::default();
        let mut outside: BTreeSet<InstructionId> = BTreeSet::new();
        let mut ordered: Vec<InstructionId> = members.iter().copied().collect();
        ordered.sort_unstable_by_key(|id| self.place[*id]);
        for &id in ordered.iter().rev() {
            let is_read = |user: InstructionId| !members.contains(&user) || outside.contains(&user);
            if id != self.computation.root() && !self.live_users(id).any(is_read) {
                continue;
            }
            let only_moves = matches!(
                self.computation[id].op(),
                Op::Broadcast { .. } | Op::Reshape {} | Op::Bitcast {} | Op::Iota { .. }
            );
            if only_moves && id != self.computation.root() {
                outside.insert(id);
            } else {
                group.results.push(id);
            }
        }
        group.results.reverse();
        // Instructions that are read only by outside instructions are not members.
        group.members = members;
        for &id in ordered.iter().rev() {
            let is_used = |user: InstructionId| group.members.contains(&user);
            if outside.contains(&id) && !self.live_users(id).any(is_used) {
                group.members.remove(&id);
            }
        }
        let mut seen = BTreeSet::new();
        let mut pending: Vec<InstructionId> =
            ordered.into_iter().rev().filter(|id| group.members.contains(id)).collect();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            if !group.members.contains(&id) {
                if !self.is_cheap(id) || group.copied.len() >= self.options.max_instructions {
                    group.operands.push(id);
                    continue;
                }
                group.copied.insert(id);
            }
            pending.extend(self.computation[id].operands().iter().rev());
        }
        group
    }

    /// True if an instruction generates data, so that repeating it costs no more than reading it.
    fn is_cheap(&self, id: InstructionId) -> bool {
        let Some(shape) = self.computation[id].shape().as_array().filter(|s| s.is_static()) else {
            return false;
        };
        match self.computation[id].op() {
            Op::Constant { .. } => shape.rank() == 0,
            Op::Broadcast { .. } | Op::Iota { .. } => {
                let operands = self.computation[id].operands().iter();
                !shape.element_type.is_complex()
                    && operands.map(|&o| self.computation[o].shape()).all(|s| s.as_array().is_some())
            }
            Op::Compare { .. } => is_mask(self.computation, id),
            _ => false,
        }
    }
}
