//! Sets of nodes whose order depends only on the operations performed, as in TensorFlow.

use super::Vertex;
use std::collections::HashMap;

/// Maximum number of members for linear search.
const SMALL: usize = 16;

/// Distinct nodes. Their order determines the order in which clusters are merged.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderedSet {
    members: Vec<Vertex>,
    /// Positions of members; only for larger sets.
    places: Option<HashMap<Vertex, u32>>,
}

impl OrderedSet {
    pub(super) fn members(&self) -> &[Vertex] {
        &self.members
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    fn place(&self, member: Vertex) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&member).map(|&place| place as usize),
            None => self.members.iter().position(|&m| m == member),
        }
    }

    pub(super) fn contains(&self, member: Vertex) -> bool {
        self.place(member).is_some()
    }

    /// Inserts a member. Returns true if it is new.
    pub(super) fn insert(&mut self, member: Vertex) -> bool {
        if self.contains(member) {
            return false;
        }
        if let Some(places) = &mut self.places {
            places.insert(member, self.members.len() as u32);
        } else if self.members.len() >= SMALL {
            let all = self.members.iter().chain([&member]).enumerate();
            self.places = Some(all.map(|(place, &m)| (m, place as u32)).collect());
        }
        self.members.push(member);
        true
    }

    /// Removes a member. The last member takes its position.
    pub(super) fn remove(&mut self, member: Vertex) {
        let Some(place) = self.place(member) else { return };
        self.members.swap_remove(place);
        if let Some(places) = &mut self.places {
            places.remove(&member);
            if let Some(&moved) = self.members.get(place) {
                places.insert(moved, place as u32);
            }
        }
    }
}
