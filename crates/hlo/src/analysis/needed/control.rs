//! The reads of loops and branches.

use super::extent::{Need, joined};
use super::{Analysis, all};
use crate::{ComputationId, InstructionId};

/// Number of visits of the module after which the state of a loop whose reads still grow is read
/// completely in the dimensions in which they do.
const SETTLING: usize = 6;
/// Maximum number of visits.
pub(super) const MAX_VISITS: usize = 24;
/// Maximum nesting depth of loops and branches that are followed.
const MAX_NESTING: usize = 64;

impl Analysis<'_> {
    /// True for the computations of a loop or a conditional that are followed: nothing else calls
    /// them.
    pub(super) fn follows(&self, computations: &[ComputationId]) -> bool {
        self.nesting < MAX_NESTING
            && !self.reads_loops_completely
            && computations.iter().all(|&called| self.masks.is_called_once(called))
    }

    /// Visits the branches of a conditional.
    pub(super) fn conditional(
        &mut self,
        (at, id): (ComputationId, InstructionId),
        branches: &[ComputationId],
        need: &[Need],
    ) {
        let operands = self.module[at][id].operands();
        self.add(at, operands[0], &all(self.module[at][operands[0]].shape()));
        for (&branch, &operand) in branches.iter().zip(&operands[1..]) {
            if let Some(more) = self.called(branch, need) {
                self.add(at, operand, &more);
            }
        }
    }

    /// Visits the condition and the body of a loop. The state is read as far as the condition, the
    /// body, and the users of the loop read it. What the body reads depends on what is read of its
    /// result, so the module is visited until nothing changes.
    pub(super) fn while_loop(
        &mut self,
        place: (ComputationId, InstructionId),
        [condition, body]: [ComputationId; 2],
        need: &[Need],
    ) {
        let known = self.states.get(&place).cloned().unwrap_or_else(|| vec![None; need.len()]);
        let mut state = known.clone();
        join(&mut state, need);
        let verdict = all(self.module[condition][self.module[condition].root()].shape());
        let read = self.called(condition, &verdict);
        let read_by_body = self.called(body, &state.clone());
        read.iter().chain(&read_by_body).for_each(|more| join(&mut state, more));
        if state != known {
            if self.visits > SETTLING {
                state.iter_mut().zip(&known).for_each(|(new, old)| settle(new, old));
            }
            self.is_settled = false;
            self.states.insert(place, state.clone());
        }
        let (at, id) = place;
        self.add(at, self.module[at][id].operands()[0], &state);
    }

    /// Visits a computation with one parameter. Returns what it reads of that, unless nothing.
    fn called(&mut self, computation: ComputationId, need: &[Need]) -> Option<Vec<Need>> {
        let callee = &self.module[computation];
        self.needs.insert((computation, callee.root()), need.to_vec());
        self.nesting += 1;
        self.visit(computation);
        self.nesting -= 1;
        self.needs.get(&(computation, *callee.parameters().first()?)).cloned()
    }
}

fn join(state: &mut [Need], more: &[Need]) {
    for (one, more) in state.iter_mut().zip(more) {
        *one = joined(one.take(), more.clone());
    }
}

/// Removes limits that have changed.
fn settle(new: &mut Need, old: &Need) {
    if let (Some(new), Some(old)) = (new, old) {
        for (new, old) in new.iter_mut().zip(old) {
            *new = new.filter(|extent| Some(*extent) == *old);
        }
    }
}
