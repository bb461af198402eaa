//! Code that was generated before, by the content that it was generated from.
//!
//! A key is the hash of a unit's LLVM code, as it is before any pass, with all else that decides what LLVM makes of it. So
//! an entry is never out of date, and an object is the same with a cache and without. Where entries are kept is the
//! caller's matter; what comes back is trusted only if its own hash says that it is what was kept, under this key.

use std::collections::BTreeMap;
use std::fmt::Debug;

use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use sha2::{Digest, Sha256};
use support::Result;

use crate::{Generated, llvm};

/// A place where generated code is kept from one compilation to the next. Several threads use it at once.
pub trait UnitCache: Debug + Send + Sync {
    /// What was kept under a key of 64 hexadecimal digits, if it is still there.
    fn get(&self, key: &str) -> Option<Vec<u8>>;
    /// Keeps an entry, if it can.
    fn put(&self, key: &str, entry: &[u8]);
    /// What tells this build of the compiler from all others. `None` if nothing does: then only what LLVM made of its own code
    /// is kept, which no change of the compiler makes wrong.
    fn compiler(&self) -> Option<&str> {
        None
    }
}

/// What entries begin with: the kind and version of their contents.
const MAGIC: &[u8; 8] = b"tfcunit2";
const HASH_BYTES: usize = 32;

/// The key of a unit. `settings` are what the caller tells LLVM besides the code.
pub(crate) fn key(module: &Module<'_>, machine: &TargetMachine, settings: &str) -> String {
    let mut hasher = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(MAGIC);
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(llvm::version().as_bytes());
    add(machine.get_triple().as_str().to_bytes());
    add(machine.get_cpu().to_bytes());
    add(machine.get_feature_string().to_bytes());
    add(settings.as_bytes());
    add(module.write_bitcode_to_memory().as_slice());
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An entry of a cache: what kind and version it is, the hash of its key and of what follows, what follows.
pub fn seal(magic: &[u8; 8], key: &str, payload: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(magic.len() + HASH_BYTES + payload.len());
    entry.extend(magic);
    entry.extend(hash(key, payload));
    entry.extend(payload);
    entry
}

/// What [`seal`] put into an entry; `None` for an entry of another kind or key, and for one that was cut or changed.
pub fn unseal<'e>(magic: &[u8; 8], key: &str, entry: &'e [u8]) -> Option<&'e [u8]> {
    let rest = entry.strip_prefix(magic)?;
    let (hash, payload) = rest.split_at_checked(HASH_BYTES)?;
    (self::hash(key, payload) == *hash).then_some(payload)
}

/// What an entry is recognised by: an entry of another key is whole and yet the wrong code.
fn hash(key: &str, payload: &[u8]) -> [u8; HASH_BYTES] {
    Sha256::new()
        .chain_update((key.len() as u64).to_le_bytes())
        .chain_update(key)
        .chain_update(payload)
        .finalize()
        .into()
}

/// An entry: the stack frames, the object.
pub(crate) fn encode(key: &str, generated: &Generated) -> Vec<u8> {
    let mut payload = Vec::with_capacity(generated.object.len() + 64 * generated.frames.len() + 8);
    payload.extend((generated.frames.len() as u64).to_le_bytes());
    for (name, bytes) in &generated.frames {
        payload.extend((name.len() as u64).to_le_bytes());
        payload.extend(name.as_bytes());
        payload.extend(bytes.to_le_bytes());
    }
    payload.extend(&generated.object);
    seal(MAGIC, key, &payload)
}

/// What an entry holds; `None` if it is not what [`encode`] wrote for this key.
pub(crate) fn decode(key: &str, entry: &[u8]) -> Option<Generated> {
    let mut rest = unseal(MAGIC, key, entry)?;
    let mut frames = BTreeMap::new();
    for _ in 0..number(&mut rest)? {
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let (name, after) = rest.split_at_checked(length)?;
        rest = after;
        frames.insert(String::from_utf8(name.to_vec()).ok()?, number(&mut rest)?);
    }
    Some(Generated { object: rest.to_vec(), llvm_ir: None, assembly: None, frames, is_cached: true })
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

/// Generated code from the cache, or made and kept there.
pub(crate) fn through(
    cache: &dyn UnitCache,
    key: &str,
    make: impl FnOnce() -> Result<Generated>,
) -> Result<Generated> {
    if let Some(kept) = cache.get(key).and_then(|entry| decode(key, &entry)) {
        return Ok(kept);
    }
    let made = make()?;
    cache.put(key, &encode(key, &made));
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated() -> Generated {
        let frames = BTreeMap::from([("e.kernel".to_owned(), 24), ("e".to_owned(), 1 << 40)]);
        Generated {
            object: b"\x7fELF object".to_vec(),
            llvm_ir: None,
            assembly: None,
            frames,
            is_cached: false,
        }
    }

    #[test]
    fn an_entry_comes_back_as_it_was() {
        let found = decode("k", &encode("k", &generated())).expect("a whole entry");
        assert_eq!((found.object, found.frames), (generated().object, generated().frames));
        assert!(found.is_cached);
    }

    #[test]
    fn entries_that_are_cut_or_changed_are_refused() {
        let entry = encode("k", &generated());
        for length in 0..entry.len() {
            assert!(decode("k", &entry[..length]).is_none(), "the first {length} bytes");
        }
        for at in 0..entry.len() {
            let mut changed = entry.clone();
            changed[at] ^= 0x10;
            assert!(decode("k", &changed).is_none(), "byte {at}");
        }
    }

    #[test]
    fn an_entry_of_another_key_is_refused() {
        assert!(decode("other", &encode("k", &generated())).is_none());
    }

    #[test]
    fn counts_beyond_the_entry_end_the_search() {
        let payload = u64::MAX.to_le_bytes();
        let mut entry = MAGIC.to_vec();
        entry.extend(hash("k", &payload));
        entry.extend(payload);
        assert!(decode("k", &entry).is_none());
    }
}
