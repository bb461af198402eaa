//! Cache of generated code, addressed by the content from which it is generated.
//!
//! A key is the hash of a unit's LLVM code before any pass, together with everything else that
//! affects LLVM's output. Entries therefore never become stale, and an object is the same with and
//! without a cache. The caller decides where entries are stored. A returned entry is used only if
//! its own hash confirms that it was stored under this key.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Mutex;

use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use sha2::{Digest, Sha256};
use support::Result;

use crate::{Generated, llvm};

/// Storage of generated code between compilations. Must be thread-safe.
pub trait UnitCache: Debug + Send + Sync {
    /// Returns the entry of a key of 64 hexadecimal digits, if it still exists.
    fn get(&self, key: &str) -> Option<Vec<u8>>;
    /// Stores an entry if possible.
    fn put(&self, key: &str, entry: &[u8]);
    /// Identity of this build of the compiler, which becomes part of the keys. `None` if it has
    /// none: then only LLVM's output is stored, and the keys say with which version of LLVM and of
    /// this crate.
    fn compiler(&self) -> Option<&str> {
        None
    }
}

/// Generated code in memory, for compilations of one process that have code in common.
#[derive(Debug, Default)]
pub struct MemoryCache(Mutex<BTreeMap<String, Vec<u8>>>);

impl UnitCache for MemoryCache {
    fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.0.lock().ok()?.get(key).cloned()
    }

    fn put(&self, key: &str, entry: &[u8]) {
        if let Ok(mut entries) = self.0.lock() {
            entries.insert(key.to_owned(), entry.to_vec());
        }
    }
}

/// Magic number of the entries of units: the kind and the version of their contents.
pub const UNIT_MAGIC: &[u8; 8] = b"tfcunit2";
const HASH_BYTES: usize = 32;

/// Returns the key of a unit. `settings` are the LLVM settings that are not part of the code.
pub(crate) fn key(module: &Module<'_>, machine: &TargetMachine, settings: &str) -> String {
    let mut hasher = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(UNIT_MAGIC);
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(llvm::version().as_bytes());
    add(machine.get_triple().as_str().to_bytes());
    add(machine.get_cpu().to_bytes());
    add(machine.get_feature_string().to_bytes());
    add(settings.as_bytes());
    add(module.write_bitcode_to_memory().as_slice());
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Builds a cache entry: kind and version, a hash of the key and the payload, and the payload.
pub fn seal(magic: &[u8; 8], key: &str, payload: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(magic.len() + HASH_BYTES + payload.len());
    entry.extend(magic);
    entry.extend(hash(key, payload));
    entry.extend(payload);
    entry
}

/// Returns the payload that [`seal`] stored. `None` if the entry has another kind or key, or is
/// damaged.
pub fn unseal<'e>(magic: &[u8; 8], key: &str, entry: &'e [u8]) -> Option<&'e [u8]> {
    let rest = entry.strip_prefix(magic)?;
    let (hash, payload) = rest.split_at_checked(HASH_BYTES)?;
    (self::hash(key, payload) == *hash).then_some(payload)
}

/// Hashes the key with the payload, since an intact entry of another key is still the wrong code.
fn hash(key: &str, payload: &[u8]) -> [u8; HASH_BYTES] {
    Sha256::new()
        .chain_update((key.len() as u64).to_le_bytes())
        .chain_update(key)
        .chain_update(payload)
        .finalize()
        .into()
}

/// Serializes an entry: the stack frames and the object.
pub(crate) fn encode(key: &str, generated: &Generated) -> Vec<u8> {
    let mut payload = Vec::with_capacity(generated.object.len() + 64 * generated.frames.len() + 8);
    payload.extend((generated.frames.len() as u64).to_le_bytes());
    for (name, bytes) in &generated.frames {
        payload.extend((name.len() as u64).to_le_bytes());
        payload.extend(name.as_bytes());
        payload.extend(bytes.to_le_bytes());
    }
    payload.extend(&generated.object);
    seal(UNIT_MAGIC, key, &payload)
}

/// Parses an entry. `None` if [`encode`] did not write it for this key.
pub(crate) fn decode(key: &str, entry: &[u8]) -> Option<Generated> {
    let mut rest = unseal(UNIT_MAGIC, key, entry)?;
    let mut frames = BTreeMap::new();
    for _ in 0..number(&mut rest)? {
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let (name, after) = rest.split_at_checked(length)?;
        rest = after;
        frames.insert(String::from_utf8(name.to_vec()).ok()?, number(&mut rest)?);
    }
    let (object, routines) = (rest.to_vec(), BTreeSet::new());
    Some(Generated { object, llvm_ir: None, assembly: None, frames, routines, is_cached: true })
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

/// Returns generated code from the cache, or generates and stores it.
pub(crate) fn get_or_generate(
    cache: &dyn UnitCache,
    key: &str,
    make: impl FnOnce() -> Result<Generated>,
) -> Result<Generated> {
    if let Some(cached) = cache.get(key).and_then(|entry| decode(key, &entry)) {
        return Ok(cached);
    }
    let generated = make()?;
    cache.put(key, &encode(key, &generated));
    Ok(generated)
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
            routines: BTreeSet::new(),
            is_cached: false,
        }
    }

    #[test]
    fn an_entry_comes_back_as_it_was() {
        let decoded = decode("k", &encode("k", &generated())).expect("a whole entry");
        assert_eq!((decoded.object, decoded.frames), (generated().object, generated().frames));
        assert!(decoded.is_cached);
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
        let mut entry = UNIT_MAGIC.to_vec();
        entry.extend(hash("k", &payload));
        entry.extend(payload);
        assert!(decode("k", &entry).is_none());
    }
}
