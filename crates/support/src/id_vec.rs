//! Typed indices: a newtype over `u32` for each kind of entity, and vectors and sets indexed by it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index, declared by [`id_type!`](crate::id_type).
pub trait Id: Copy + Ord + fmt::Debug {
    /// Returns the id of position `index`. Panics beyond `u32::MAX`.
    fn from_index(index: usize) -> Self;
    /// Position of the entity.
    fn index(self) -> usize;
}

/// Declares a typed index that displays as `prefix` followed by its number.
#[macro_export]
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $crate::Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2^32 entities"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// A vector of entities, indexed by their typed ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    marker: PhantomData<I>,
}

impl<I: Id, T> IdVec<I, T> {
    /// Creates an empty vector.
    pub const fn new() -> Self {
        Self { items: Vec::new(), marker: PhantomData }
    }

    /// Creates a vector of `len` clones of an entity.
    pub fn filled(item: T, len: usize) -> Self
    where
        T: Clone,
    {
        Self { items: vec![item; len], marker: PhantomData }
    }

    /// Appends an entity and returns its id.
    pub fn push(&mut self, item: T) -> I {
        let id = self.next_id();
        self.items.push(item);
        id
    }

    /// Id that the next `push` will return.
    pub fn next_id(&self) -> I {
        I::from_index(self.items.len())
    }

    /// Number of entities.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if the vector is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the entity, or `None` if the id is out of range.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// All entities, in order.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// All entities, in order.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// All entities, in order, by value.
    pub fn into_values(self) -> std::vec::IntoIter<T> {
        self.items.into_iter()
    }

    /// All pairs of id and entity, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(i, item)| (I::from_index(i), item))
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I: Id, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(items: It) -> Self {
        Self { items: items.into_iter().collect(), marker: PhantomData }
    }
}

/// A set of ids: one bit for each id up to the largest one. For sets that may hold most of the
/// entities; iteration is not supported.
#[derive(Clone, Debug)]
pub struct IdSet<I> {
    words: Vec<u64>,
    marker: PhantomData<I>,
}

impl<I: Id> IdSet<I> {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self { words: Vec::new(), marker: PhantomData }
    }

    /// Adds an id. Returns true if it was not in the set.
    pub fn insert(&mut self, id: I) -> bool {
        let (word, bit) = (id.index() / 64, 1 << (id.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    /// True if the id is in the set.
    pub fn contains(&self, id: I) -> bool {
        self.words.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 == 1)
    }
}

impl<I: Id> Default for IdSet<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id> FromIterator<I> for IdSet<I> {
    fn from_iter<It: IntoIterator<Item = I>>(ids: It) -> Self {
        let mut set = Self::new();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::id_type!(
        /// A test entity.
        Thing,
        "t"
    );

    #[test]
    fn ids_display_with_their_prefix_and_index_their_vector() {
        let mut things = IdVec::<Thing, &str>::new();
        let first = things.push("first");
        let second = things.push("second");
        assert_eq!(format!("{first} {second:?}"), "t0 t1");
        assert_eq!(things[second], "second");
        assert_eq!(things.ids().rev().map(|id| things[id]).collect::<Vec<_>>(), ["second", "first"]);
        assert_eq!(things.get(Thing::from_index(2)), None);
    }

    #[test]
    fn sets_contain_what_was_inserted() {
        let ids = [0, 63, 64, 200].map(Thing::from_index);
        let mut set: IdSet<Thing> = ids.into_iter().collect();
        let found: Vec<usize> = (0..1000).filter(|&index| set.contains(Thing::from_index(index))).collect();
        assert_eq!(found, [0, 63, 64, 200]);
        assert!(!set.insert(ids[1]) && set.insert(Thing::from_index(65)));
        assert!(!IdSet::<Thing>::new().contains(ids[0]));
    }
}
