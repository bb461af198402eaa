//! Dependencies among kernels, some of which have been merged.

use super::body::{Body, memory};
use hlo::{AliasKind, Computation, ComputationId, InstructionId, Module, Op};
use std::collections::{BTreeMap, BTreeSet};

/// Upper bound of the instructions visited per query; beyond it, the query assumes the worst.
const MAX_VISITS: usize = 4096;

/// The dependencies of a computation.
pub(super) struct Graph<'m> {
    module: &'m Module,
    computation: &'m Computation,
    group_of: BTreeMap<InstructionId, usize>,
    members: Vec<Vec<InstructionId>>,
    /// For each instruction that computes an element of the root, the arrays whose memory it should
    /// reuse.
    homes: BTreeMap<InstructionId, Vec<InstructionId>>,
    /// The kernels that read an array.
    readers: BTreeMap<InstructionId, Vec<InstructionId>>,
}

impl<'m> Graph<'m> {
    pub(super) fn new(module: &'m Module, id: ComputationId) -> Self {
        let computation = &module[id];
        let mut graph = Self {
            module,
            computation,
            group_of: BTreeMap::new(),
            members: Vec::new(),
            homes: homes(module, id),
            readers: BTreeMap::new(),
        };
        for instruction in computation.post_order() {
            let passes_on = |op: &Op| matches!(op, Op::Reshape {} | Op::Bitcast {} | Op::Tuple {});
            if !passes_on(computation[instruction].op()) {
                for &operand in computation[instruction].operands() {
                    graph.readers.entry(memory(computation, operand)).or_default().push(instruction);
                }
            }
        }
        graph
    }

    /// Records that a kernel is in a group.
    pub(super) fn join(&mut self, id: InstructionId, group: usize) {
        self.group_of.insert(id, group);
        if self.members.len() <= group {
            self.members.resize(group + 1, Vec::new());
        }
        self.members[group].push(id);
    }

    /// True if a kernel's result consists of its elements, each stored where it is computed.
    pub(super) fn makes_elements(&self, id: InstructionId) -> bool {
        let body = Body::of(self.module, self.computation, id);
        !matches!(
            body.computation[body.root].op(),
            Op::DynamicUpdateSlice {} | Op::Reduce { .. } | Op::Concatenate { .. }
        )
    }

    /// The array that a kernel updates in place.
    pub(super) fn updated_by(&self, id: InstructionId) -> Option<InstructionId> {
        let body = Body::of(self.module, self.computation, id);
        let root = &body.computation[body.root];
        match root.op() {
            Op::DynamicUpdateSlice {} => {
                body.outside(root.operands()[0]).map(|array| memory(self.computation, array))
            }
            _ => None,
        }
    }

    /// The arrays whose memory a kernel's result should reuse.
    pub(super) fn replaced_by(&self, id: InstructionId) -> Vec<InstructionId> {
        let homes = self.homes.get(&id).into_iter().flatten().copied();
        homes.chain(self.updated_by(id)).collect()
    }

    /// True if a kernel, the latest so far, may join a group: no other kernel lies between them,
    /// and no reader of an array that either of them replaces depends on the other.
    pub(super) fn may_join(
        &self,
        id: InstructionId,
        group: usize,
        replaced: &BTreeSet<InstructionId>,
    ) -> bool {
        let own = self.replaced_by(id);
        let is_joined = |other: InstructionId| other == id || self.group_of.get(&other) == Some(&group);
        let operands = self.computation[id].operands().iter().copied();
        let outside: Vec<InstructionId> = operands.filter(|&operand| !is_joined(operand)).collect();
        if self.reaches(&outside, |other| self.group_of.get(&other) == Some(&group)) {
            return false;
        }
        let readers =
            replaced.iter().chain(&own).flat_map(|array| self.readers.get(array).into_iter().flatten());
        let readers: BTreeSet<InstructionId> =
            readers.copied().filter(|&reader| !is_joined(reader)).collect();
        let waiting: Vec<InstructionId> =
            readers.iter().flat_map(|&reader| self.computation[reader].operands()).copied().collect();
        !self.reaches(&waiting, is_joined)
    }

    /// True if any of these instructions is, or depends on, an instruction for which `is_target` is
    /// true. Groups are treated as a whole.
    fn reaches(&self, from: &[InstructionId], is_target: impl Fn(InstructionId) -> bool) -> bool {
        let mut pending = from.to_vec();
        let mut seen = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if is_target(id) {
                return true;
            }
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > MAX_VISITS {
                return true;
            }
            match self.group_of.get(&id) {
                Some(&group) => {
                    let members = &self.members[group];
                    seen.extend(members);
                    pending.extend(members.iter().flat_map(|&m| self.computation[m].operands()));
                }
                None => pending.extend(self.computation[id].operands()),
            }
        }
        false
    }
}

/// For each instruction that computes an element of the root, the arrays whose memory it should
/// reuse: a parameter to which the result is aliased, or the state of the loop whose body the
/// computation is.
fn homes(module: &Module, id: ComputationId) -> BTreeMap<InstructionId, Vec<InstructionId>> {
    let computation = &module[id];
    let mut homes: BTreeMap<InstructionId, Vec<InstructionId>> = BTreeMap::new();
    let root = &computation[computation.root()];
    if !matches!(root.op(), Op::Tuple {}) {
        return homes;
    }
    for (element, &result) in root.operands().iter().enumerate() {
        let result = memory(computation, result);
        if id == module.entry() {
            if let Some(alias) = module.alias_of(&[element])
                && alias.kind == AliasKind::Must
                && alias.parameter_index.is_empty()
            {
                homes.entry(result).or_default().push(computation.parameters()[alias.parameter_number]);
            }
            continue;
        }
        let state = computation.parameters().iter().flat_map(|&p| computation[p].users());
        let same = state.copied().filter(
            |&user| matches!(computation[user].op(), Op::GetTupleElement { index } if *index == element),
        );
        homes.entry(result).or_default().extend(same);
    }
    homes
}
