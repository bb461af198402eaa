//! `--kernel-cache DIR`: generated code in files, one for each unit, named by what it was generated from.
//!
//! Several processes may use a directory at once: a file is written under another name and renamed, so it is there whole
//! or not at all, and all who write one write the same. What a file holds is checked by whoever reads it.

use codegen::UnitCache;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use support::{Error, Result};

/// The bytes that a directory is let grow to. Beyond, the files that were used or written the longest ago are removed.
const MAX_BYTES: u64 = 256 << 20;

/// A larger file is none of ours.
const MAX_ENTRY: u64 = 64 << 20;

/// Digits of a key.
const KEY_DIGITS: usize = 64;

/// A directory of generated code.
#[derive(Debug)]
pub(crate) struct KernelCache {
    directory: PathBuf,
}

impl KernelCache {
    /// Opens a directory, which is made if it does not exist. An error if nothing can be written there.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let usable = fs::create_dir_all(directory).and_then(|()| tempfile::tempfile_in(directory));
        usable.map_err(|e| {
            let text = e.to_string();
            let reason = text.split(" at path ").next().unwrap_or(&text);
            Error::invalid(format!(
                "cannot keep code in '{}': {reason}; name another directory with --kernel-cache, or leave it out",
                directory.display()
            ))
        })?;
        let cache = Self { directory: directory.to_owned() };
        cache.prune(MAX_BYTES);
        Ok(cache)
    }

    /// Removes files until half of what is allowed is left, the oldest first, if there is more. Files that are no entries
    /// stay, and so does what cannot be removed.
    fn prune(&self, allowed: u64) {
        let Ok(listing) = fs::read_dir(&self.directory) else { return };
        let mut entries: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        for file in listing.flatten() {
            let name = file.file_name();
            let is_key = name
                .to_str()
                .is_some_and(|name| name.len() == KEY_DIGITS && name.bytes().all(|b| b.is_ascii_hexdigit()));
            if let Ok(metadata) = file.metadata()
                && is_key
                && metadata.is_file()
            {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push((used, file.path(), metadata.len()));
            }
        }
        let mut total: u64 = entries.iter().map(|(_, _, bytes)| bytes).sum();
        if total <= allowed {
            return;
        }
        entries.sort();
        for (_, path, bytes) in entries {
            if total <= allowed / 2 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }
}

impl UnitCache for KernelCache {
    fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.directory.join(key);
        // Opening a pipe would wait for its writer.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let file = fs::File::open(path).ok()?;
        if file.metadata().ok()?.len() > MAX_ENTRY {
            return None;
        }
        let mut bytes = Vec::new();
        (&file).take(MAX_ENTRY).read_to_end(&mut bytes).ok()?;
        // What is used stays longest.
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    /// A file that cannot be written is made again the next time.
    fn put(&self, key: &str, entry: &[u8]) {
        let written = tempfile::NamedTempFile::new_in(&self.directory).and_then(|mut file| {
            file.write_all(entry)?;
            Ok(file)
        });
        if let Ok(file) = written {
            let _ = file.persist(self.directory.join(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digit: char) -> String {
        std::iter::repeat_n(digit, KEY_DIGITS).collect()
    }

    #[test]
    fn what_is_kept_is_found_and_the_oldest_goes_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = KernelCache::open(directory.path()).expect("writable");
        assert_eq!(cache.get(&key('a')), None);
        for (age, digit) in ['a', 'b', 'c'].into_iter().enumerate() {
            cache.put(&key(digit), &[b'x'; 10]);
            let file = fs::File::open(directory.path().join(key(digit))).expect("it is there");
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + age as u64);
            file.set_modified(time).expect("a time");
        }
        fs::write(directory.path().join("notes.txt"), [b'n'; 100]).expect("writable");
        cache.prune(30);
        assert!(cache.get(&key('a')).is_some(), "all fit");
        // Reading made `a` the one that was used last.
        cache.prune(29);
        assert_eq!(cache.get(&key('a')).as_deref(), Some(&[b'x'; 10][..]));
        assert_eq!((cache.get(&key('b')), cache.get(&key('c'))), (None, None));
        assert!(directory.path().join("notes.txt").exists(), "it is none of ours");
    }

    #[test]
    fn a_directory_that_cannot_be_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        fs::write(&file, "").expect("writable");
        let error = KernelCache::open(&file.join("cache")).expect_err("below a file");
        assert!(error.message().contains("name another directory with --kernel-cache"), "{error}");
    }
}
