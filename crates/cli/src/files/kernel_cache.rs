//! `--kernel-cache DIR` and `--tf_xla_persistent_cache_directory`: generated code in files, one for each unit of an object or each
//! kernel and cluster of a session, named by what it was generated from.
//!
//! Several processes may use a directory at once: a file is written under another name and renamed, so it is there whole
//! or not at all, and all who write one write the same. What a file holds is checked by whoever reads it.

use codegen::UnitCache;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
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
    /// What the names of its files begin with.
    prefix: String,
    is_read_only: bool,
    /// What tells this program from others, where whole kernels are kept.
    compiler: Option<String>,
}

/// What the names of files begin with that are not whole yet.
const UNFINISHED: &str = ".unfinished-";

/// A file that nobody has finished for so long belongs to a process that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// What tells this program from others that compile in another way: the size of its file and when that was made.
fn this_program() -> Option<String> {
    let metadata = fs::metadata(std::env::current_exe().ok()?).ok()?;
    let made = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(format!("{} bytes of {} ns", metadata.len(), made.as_nanos()))
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
        let cache = Self {
            directory: directory.to_owned(),
            prefix: String::new(),
            is_read_only: false,
            compiler: None,
        };
        cache.prune(MAX_BYTES);
        Ok(cache)
    }

    /// The cache that `--tf_xla_persistent_cache_directory` and its kin ask for; `None` if they name no directory. A directory
    /// that cannot be written is one from which is only read: a cache is no reason for a run to fail.
    pub(crate) fn of_flags(flags: &cluster::Flags) -> Option<Self> {
        let directory = Path::new(&flags.persistent_cache_directory);
        if flags.persistent_cache_directory.is_empty() {
            return None;
        }
        let opened = if flags.persistent_cache_read_only { None } else { Self::open(directory).ok() };
        let is_read_only = opened.is_none();
        let prefix = match flags.persistent_cache_prefix.as_str() {
            "" => String::new(),
            prefix => format!("{}__", prefix.replace('/', "_")),
        };
        let cache = Self { directory: directory.to_owned(), prefix, is_read_only, compiler: this_program() };
        if !is_read_only {
            cache.prune(MAX_BYTES);
        }
        Some(cache)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{}{key}", self.prefix))
    }

    /// Removes files until half of what is allowed is left, the oldest first, if there is more; also what a process has left that
    /// was killed while it wrote. Files that are no entries stay, and so does what cannot be removed.
    fn prune(&self, allowed: u64) {
        let Ok(listing) = fs::read_dir(&self.directory) else { return };
        let mut entries: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        for file in listing.flatten() {
            let name = file.file_name();
            let is_unfinished = name.to_str().is_some_and(|name| name.starts_with(UNFINISHED));
            if is_unfinished {
                let age = file.metadata().ok().and_then(|metadata| metadata.modified().ok()?.elapsed().ok());
                if age.is_some_and(|age| age > ABANDONED) {
                    let _ = fs::remove_file(file.path());
                }
                continue;
            }
            let is_key = name
                .to_str()
                .and_then(|name| name.strip_prefix(&*self.prefix))
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
        let path = self.path(key);
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
        if !self.is_read_only {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(bytes)
    }

    /// A file that cannot be written is made again the next time.
    fn put(&self, key: &str, entry: &[u8]) {
        if self.is_read_only {
            return;
        }
        let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.directory);
        let written = unfinished.and_then(|mut file| {
            file.write_all(entry)?;
            Ok(file)
        });
        if let Ok(file) = written {
            let _ = file.persist(self.path(key));
        }
    }

    fn compiler(&self) -> Option<&str> {
        self.compiler.as_deref()
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

    fn flags(directory: &Path, is_read_only: bool) -> cluster::Flags {
        cluster::Flags {
            persistent_cache_directory: directory.display().to_string(),
            persistent_cache_read_only: is_read_only,
            ..cluster::Flags::default()
        }
    }

    #[test]
    fn flags_name_a_directory_a_prefix_and_who_may_write() {
        assert!(KernelCache::of_flags(&cluster::Flags::default()).is_none());
        let directory = tempfile::tempdir().expect("a directory");
        let reader = KernelCache::of_flags(&flags(directory.path(), true)).expect("a directory is named");
        reader.put(&key('a'), b"code");
        assert_eq!(reader.get(&key('a')), None);
        let writer = KernelCache::of_flags(&flags(directory.path(), false)).expect("a directory is named");
        writer.put(&key('a'), b"code");
        assert!(directory.path().join(format!("xla_compile_cache__{}", key('a'))).exists());
        assert_eq!(reader.get(&key('a')).as_deref(), Some(&b"code"[..]));
        // Files under another prefix are another cache's, and stay.
        let plain = KernelCache::open(directory.path()).expect("writable");
        assert_eq!(plain.get(&key('a')), None);
        plain.prune(0);
        assert!(writer.get(&key('a')).is_some());
        writer.prune(0);
        assert_eq!(writer.get(&key('a')), None);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_no_error_for_a_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        fs::write(&file, "").expect("writable");
        let cache = KernelCache::of_flags(&flags(&file.join("cache"), false)).expect("a directory is named");
        cache.put(&key('a'), b"code");
        assert_eq!(cache.get(&key('a')), None);
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed_later() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = |name: &str, age: Duration| {
            let path = directory.path().join(format!("{UNFINISHED}{name}"));
            let file = fs::File::create(&path).expect("writable");
            file.set_modified(SystemTime::now() - age).expect("a time");
            path
        };
        let (old, new) = (left("old", 2 * ABANDONED), left("new", ABANDONED / 2));
        KernelCache::of_flags(&flags(directory.path(), true)).expect("a directory is named");
        assert!(old.exists(), "who only reads removes nothing");
        KernelCache::of_flags(&flags(directory.path(), false)).expect("a directory is named");
        assert!(!old.exists() && new.exists(), "somebody may still write the new one");
    }

    #[test]
    fn writers_at_once_leave_a_whole_entry_and_no_other_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let entries: Vec<Vec<u8>> = (0..4).map(|writer| vec![writer; 100_000]).collect();
        std::thread::scope(|scope| {
            for entry in &entries {
                let path = directory.path();
                scope.spawn(move || {
                    let cache = KernelCache::of_flags(&flags(path, false)).expect("a directory is named");
                    for _ in 0..20 {
                        cache.put(&key('a'), entry);
                        assert!(cache.get(&key('a')).is_some_and(|found| found.len() == entry.len()));
                    }
                });
            }
        });
        let cache = KernelCache::of_flags(&flags(directory.path(), true)).expect("a directory is named");
        assert!(entries.contains(&cache.get(&key('a')).expect("it is there")));
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
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
