//! Packing: operands in a kernel's own layout.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory from which a kernel reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The operand's own memory.
    None,
    /// Packed at compile time.
    Constant,
    /// Packed into scratch on each call.
    Scratch,
}

/// Constants in a kernel's own layout.
#[derive(Clone, Debug)]
pub struct PackedConstant {
    /// Index of the operand that the kernel reads in this form; `None` for tables that the plan
    /// computed.
    pub operand: Option<usize>,
    /// The packed elements, 64-byte aligned in the constants block.
    pub bytes: Bytes,
}

/// Packed constants by their sources and form, so that the plans of several targets and functions
/// share them. Clones are the same collection; it does not affect plans, so all are equal.
#[derive(Clone, Debug, Default)]
pub struct Packings(Arc<Mutex<BTreeMap<Key, Shared>>>);

/// Addresses and lengths of the sources, and a description of the form.
type Key = (Vec<(usize, usize)>, String);

/// A packed constant.
#[derive(Debug)]
struct Shared {
    /// Keep the addresses in the key in use.
    _sources: Vec<Bytes>,
    packed: Bytes,
}

impl Packings {
    /// Packs constants, or returns the result of an earlier call with the same bytes in memory and
    /// the same description of the form.
    pub(crate) fn share(&self, sources: &[&Bytes], form: String, pack: impl FnOnce() -> Bytes) -> Bytes {
        let key: Key = (sources.iter().map(|bytes| (bytes.as_ptr() as usize, bytes.len())).collect(), form);
        if let Some(shared) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return shared.packed.clone();
        }
        let packed = pack();
        let sources = sources.iter().copied().cloned().collect();
        let shared = Shared { _sources: sources, packed: packed.clone() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, shared);
        packed
    }

    /// Releases the constants.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl PartialEq for Packings {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Packings {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_packed_once_for_each_form() {
        let packings = Packings::default();
        let (one, other) = (Bytes::from(vec![1u8; 100]), Bytes::from(vec![1u8; 100]));
        let pack = |source: &Bytes, form: &str, value: u8| {
            packings.clone().share(&[source], form.to_owned(), || vec![value; 3].into())
        };
        assert_eq!(pack(&one, "a", 1), [1; 3][..]);
        assert_eq!(pack(&one.clone(), "a", 2), [1; 3][..], "the same bytes in the same form");
        assert_eq!(pack(&one, "b", 3), [3; 3][..]);
        assert_eq!(pack(&other, "a", 4), [4; 3][..]);
        assert_eq!(pack(&one.slice(..50), "a", 5), [5; 3][..]);
        let both = packings.share(&[&one, &other], "a".to_owned(), || vec![6; 3].into());
        assert_eq!(both, [6; 3][..], "another second source");
        packings.clear();
        assert_eq!(pack(&one, "a", 7), [7; 3][..]);
    }
}
