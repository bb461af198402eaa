//! Sets of nodes whose order depends only on what was done to them, as that of TensorFlow's does.

use super::Vertex;
use std::collections::HashMap;

/// The most members that are searched one by one.
const SMALL: usize = 16;

/// Distinct nodes, in an order that decides in which order clusters are merged.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderedSet {
    members: Vec<Vertex>,
    /// Where members are; only for sets that are not small.
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

    /// Whether the member is new.
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

    /// The last member takes the place of the one that goes.
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
