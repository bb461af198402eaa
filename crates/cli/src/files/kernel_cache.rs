//! Cache of generated code in files, for builds and for `--tf_xla_persistent_cache_directory`.
//! There is one file for each unit of an object, or for each kernel and cluster of a session. A
//! file's name is the key of its content.
//!
//! Builds use a directory of the user's cache unless the user names another one or none. They never
//! fail because of it, and they do not touch it before they have something to read or store.
//!
//! Several processes may use a directory at once. A file is written under a temporary name and then
//! renamed, so it is always complete, and all writers of a key write the same content. The reader
//! of a file validates its content.

use codegen::UnitCache;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use support::{Error, Result};

/// Maximum size of a directory in bytes, if the user sets none. Beyond it, the least recently used
/// files are removed.
const MAX_BYTES: u64 = 256 << 20;

/// Environment variable with the directory for builds. Empty for none.
const DIRECTORY_VARIABLE: &str = "TFCOMPILE_KERNEL_CACHE";

/// Environment variable with the maximum size of the directory in MiB.
const LIMIT_VARIABLE: &str = "TFCOMPILE_KERNEL_CACHE_LIMIT";

/// Maximum size of an entry in bytes. A larger file was not written by this cache.
const MAX_ENTRY: u64 = 64 << 20;

/// Number of hexadecimal digits of a key.
const KEY_DIGITS: usize = 64;

/// Directory of generated code.
#[derive(Debug)]
pub(crate) struct KernelCache {
    directory: PathBuf,
    /// Prefix of the names of its files.
    prefix: String,
    is_read_only: bool,
    /// Identifies this version of the compiler, for caches of whole kernels and for those that no
    /// user asked for.
    compiler: Option<String>,
    /// Maximum size in bytes.
    allowed: u64,
    /// Bytes written since the size was last checked. The first write checks it, too.
    unchecked: AtomicU64,
}

/// Prefix of the names of incomplete files.
const UNFINISHED: &str = ".unfinished-";

/// Age at which an incomplete file counts as abandoned by a process that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Identifies this version of the compiler by the size of its program file and the time of its last
/// modification.
fn this_program() -> Option<String> {
    let metadata = fs::metadata(std::env::current_exe().ok()?).ok()?;
    let modified = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(format!("{} bytes of {} ns", metadata.len(), modified.as_nanos()))
}

/// The directory for builds, by the values of environment variables. A relative path of a home
/// directory is ignored, as the XDG Base Directory Specification requires.
fn default_directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(directory) = variable(DIRECTORY_VARIABLE) {
        return (!directory.as_os_str().is_empty()).then_some(directory);
    }
    let caches = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let caches =
        caches.or_else(|| Some(variable("HOME").filter(|home| home.is_absolute())?.join(".cache")))?;
    Some(caches.join("tfcompile/kernels"))
}

/// The limit in MiB that the environment variable states.
fn limit_of(value: Option<&std::ffi::OsStr>) -> Result<u64> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(MAX_BYTES >> 20) };
    value.to_str().and_then(|value| value.parse().ok()).ok_or_else(|| {
        Error::invalid(format!(
            "{LIMIT_VARIABLE}={}: expected the maximum size of the kernel cache in MiB, such as 256",
            value.display()
        ))
    })
}

/// Creates a directory that only the user can read, because programs execute what it contains.
fn create_private(directory: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)
}

impl KernelCache {
    /// Returns the cache of a build: in the directory and with the limit in MiB of the user's
    /// flags, else of the environment, else in the user's cache. `None` if the environment turns it
    /// off, or there is no home directory.
    pub(crate) fn of_build(directory: Option<&Path>, limit: Option<u64>) -> Result<Option<Self>> {
        let limit = match limit {
            Some(limit) => limit,
            None => limit_of(std::env::var_os(LIMIT_VARIABLE).as_deref())?,
        };
        let allowed = limit.saturating_mul(1 << 20);
        if let Some(directory) = directory {
            return Self::open(directory, allowed).map(Some);
        }
        let directory = default_directory(|variable| std::env::var_os(variable).map(PathBuf::from));
        Ok(directory.map(|directory| Self::lazy(directory, allowed)))
    }

    /// A cache in a directory that need not exist.
    fn lazy(directory: PathBuf, allowed: u64) -> Self {
        Self {
            directory,
            prefix: String::new(),
            is_read_only: false,
            compiler: this_program(),
            allowed,
            unchecked: AtomicU64::new(u64::MAX / 2),
        }
    }

    /// Opens a directory, and creates it if it does not exist. Returns an error if it is not
    /// writable.
    fn open(directory: &Path, allowed: u64) -> Result<Self> {
        let usable = fs::create_dir_all(directory).and_then(|()| tempfile::tempfile_in(directory));
        usable.map_err(|e| {
            let text = e.to_string();
            let reason = text.split(" at path ").next().unwrap_or(&text);
            Error::invalid(format!(
                "cannot write to the kernel cache '{}': {reason}; name another directory with --kernel-cache, or remove the flag",
                directory.display()
            ))
        })?;
        let cache = Self { compiler: None, ..Self::lazy(directory.to_owned(), allowed) };
        cache.prune(allowed);
        cache.unchecked.store(0, Ordering::Relaxed);
        Ok(cache)
    }

    /// Returns the cache of `--tf_xla_persistent_cache_directory` and the related flags, or `None`
    /// if they name no directory. A directory that is not writable is only read, because a run must
    /// not fail because of its cache.
    pub(crate) fn of_flags(flags: &cluster::Flags) -> Option<Self> {
        let directory = Path::new(&flags.persistent_cache_directory);
        if flags.persistent_cache_directory.is_empty() {
            return None;
        }
        let opened =
            if flags.persistent_cache_read_only { None } else { Self::open(directory, MAX_BYTES).ok() };
        let is_read_only = opened.is_none();
        let prefix = match flags.persistent_cache_prefix.as_str() {
            "" => String::new(),
            prefix => format!("{}__", prefix.replace('/', "_")),
        };
        let cache = Self { prefix, is_read_only, ..Self::lazy(directory.to_owned(), MAX_BYTES) };
        if !is_read_only {
            cache.prune(MAX_BYTES);
        }
        Some(cache)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{}{key}", self.prefix))
    }

    /// Prunes if much was written since the last time: at most a sixteenth of the limit is exceeded
    /// by each process.
    fn check_size(&self, written: u64) {
        let unchecked = self.unchecked.fetch_add(written, Ordering::Relaxed).saturating_add(written);
        if unchecked > self.allowed / 16 {
            self.unchecked.store(0, Ordering::Relaxed);
            self.prune(self.allowed);
        }
    }

    /// If the directory is larger than `allowed` bytes, removes the least recently used entries
    /// until half of that is left. Also removes unfinished files of processes that were killed
    /// while writing. Other files stay, and so do files that cannot be removed.
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
        // Opening a pipe would block until it has a writer.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let file = fs::File::open(path).ok()?;
        if file.metadata().ok()?.len() > MAX_ENTRY {
            return None;
        }
        let mut bytes = Vec::new();
        (&file).take(MAX_ENTRY).read_to_end(&mut bytes).ok()?;
        // Mark the entry as recently used.
        if !self.is_read_only {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(bytes)
    }

    /// Stores an entry. An error is ignored, because the code can be generated again.
    fn put(&self, key: &str, entry: &[u8]) {
        if self.is_read_only {
            return;
        }
        let create = || tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.directory);
        let unfinished = create().or_else(|_| {
            create_private(&self.directory)?;
            create()
        });
        let written = unfinished.and_then(|mut file| {
            file.write_all(entry)?;
            Ok(file)
        });
        if let Ok(file) = written {
            let _ = file.persist(self.path(key));
            self.check_size(entry.len() as u64);
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
    fn entries_are_found_and_the_oldest_is_removed_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = KernelCache::open(directory.path(), MAX_BYTES).expect("writable");
        assert_eq!(cache.get(&key('a')), None);
        for (age, digit) in ['a', 'b', 'c'].into_iter().enumerate() {
            cache.put(&key(digit), &[b'x'; 10]);
            let file = fs::File::open(directory.path().join(key(digit))).expect("exists");
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + age as u64);
            file.set_modified(time).expect("a time");
        }
        fs::write(directory.path().join("notes.txt"), [b'n'; 100]).expect("writable");
        cache.prune(30);
        assert!(cache.get(&key('a')).is_some(), "all fit");
        // `a` was used last, because it was read.
        cache.prune(29);
        assert_eq!(cache.get(&key('a')).as_deref(), Some(&[b'x'; 10][..]));
        assert_eq!((cache.get(&key('b')), cache.get(&key('c'))), (None, None));
        assert!(directory.path().join("notes.txt").exists(), "it is not an entry");
    }

    fn flags(directory: &Path, is_read_only: bool) -> cluster::Flags {
        cluster::Flags {
            persistent_cache_directory: directory.display().to_string(),
            persistent_cache_read_only: is_read_only,
            ..cluster::Flags::default()
        }
    }

    #[test]
    fn flags_name_a_directory_a_prefix_and_the_access() {
        assert!(KernelCache::of_flags(&cluster::Flags::default()).is_none());
        let directory = tempfile::tempdir().expect("a directory");
        let reader = KernelCache::of_flags(&flags(directory.path(), true)).expect("a directory is named");
        reader.put(&key('a'), b"code");
        assert_eq!(reader.get(&key('a')), None);
        let writer = KernelCache::of_flags(&flags(directory.path(), false)).expect("a directory is named");
        writer.put(&key('a'), b"code");
        assert!(directory.path().join(format!("xla_compile_cache__{}", key('a'))).exists());
        assert_eq!(reader.get(&key('a')).as_deref(), Some(&b"code"[..]));
        // Files with another prefix belong to another cache and stay.
        let plain = KernelCache::open(directory.path(), MAX_BYTES).expect("writable");
        assert_eq!(plain.get(&key('a')), None);
        plain.prune(0);
        assert!(writer.get(&key('a')).is_some());
        writer.prune(0);
        assert_eq!(writer.get(&key('a')), None);
    }

    #[test]
    fn a_run_ignores_a_directory_that_is_not_writable() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        fs::write(&file, "").expect("writable");
        let cache = KernelCache::of_flags(&flags(&file.join("cache"), false)).expect("a directory is named");
        cache.put(&key('a'), b"code");
        assert_eq!(cache.get(&key('a')), None);
    }

    #[test]
    fn files_of_killed_processes_are_removed_later() {
        let directory = tempfile::tempdir().expect("a directory");
        let create = |name: &str, age: Duration| {
            let path = directory.path().join(format!("{UNFINISHED}{name}"));
            let file = fs::File::create(&path).expect("writable");
            file.set_modified(SystemTime::now() - age).expect("a time");
            path
        };
        let (old, new) = (create("old", 2 * ABANDONED), create("new", ABANDONED / 2));
        KernelCache::of_flags(&flags(directory.path(), true)).expect("a directory is named");
        assert!(old.exists(), "a reader removes nothing");
        KernelCache::of_flags(&flags(directory.path(), false)).expect("a directory is named");
        assert!(!old.exists() && new.exists(), "the new file may still be incomplete");
    }

    #[test]
    fn concurrent_writers_leave_a_complete_entry_and_no_other_files() {
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
        assert!(entries.contains(&cache.get(&key('a')).expect("exists")));
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
    }

    #[test]
    fn the_environment_names_the_directory() {
        let of = |variables: &[(&str, &str)]| {
            let value =
                |name: &str| Some(PathBuf::from(variables.iter().find(|(variable, _)| *variable == name)?.1));
            default_directory(value)
        };
        let home = ("HOME", "/home/user");
        assert_eq!(of(&[home]), Some("/home/user/.cache/tfcompile/kernels".into()));
        let xdg = ("XDG_CACHE_HOME", "/var/caches");
        assert_eq!(of(&[home, xdg]), Some("/var/caches/tfcompile/kernels".into()));
        let relative = ("XDG_CACHE_HOME", "caches");
        assert_eq!(of(&[home, relative]), of(&[home]));
        assert_eq!(of(&[home, ("XDG_CACHE_HOME", "")]), of(&[home]));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HOME", "")]), None);
        assert_eq!(of(&[home, xdg, ("TFCOMPILE_KERNEL_CACHE", "here")]), Some("here".into()));
        assert_eq!(of(&[home, xdg, ("TFCOMPILE_KERNEL_CACHE", "")]), None);
    }

    #[test]
    fn the_environment_states_the_limit() {
        let of = |value: &str| limit_of(Some(value.as_ref()));
        assert_eq!(limit_of(None).expect("valid"), 256);
        assert_eq!(of("").expect("valid"), 256);
        assert_eq!(of("1000").expect("valid"), 1000);
        for value in ["1 GB", "-1", "1.5"] {
            let error = of(value).expect_err("not a number of MiB");
            assert!(error.message().contains(&format!("TFCOMPILE_KERNEL_CACHE_LIMIT={value}")), "{error}");
        }
    }

    #[test]
    fn writing_keeps_the_directory_within_the_limit() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("not/yet/there");
        let bytes_in = |place: &Path| -> u64 {
            let files = fs::read_dir(place).expect("readable").flatten();
            files.map(|file| file.metadata().expect("exists").len()).sum()
        };
        let allowed = 160_000;
        let cache = KernelCache::lazy(place.clone(), allowed);
        assert_eq!(cache.get(&key('a')), None);
        assert!(!place.exists(), "a search creates nothing");
        for number in 0..100 {
            cache.put(&format!("{number:064}"), &[b'x'; 9_000]);
            let used = bytes_in(&place);
            assert!(used <= allowed + allowed / 16 + 9_000, "{used} bytes after entry {number}");
        }
        assert!(bytes_in(&place) >= allowed / 2 - 9_000, "half of the entries are kept");
        assert!(cache.get(&format!("{:064}", 99)).is_some(), "the newest entry is kept");
        // Another process removes what the first one left as soon as it stores something.
        let smaller = KernelCache::lazy(place.clone(), 50_000);
        smaller.put(&key('a'), &[b'x'; 9_000]);
        assert!(bytes_in(&place) <= 50_000);
    }

    #[test]
    fn a_directory_that_cannot_be_created_is_ignored() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        fs::write(&file, "").expect("writable");
        let cache = KernelCache::lazy(file.join("cache"), MAX_BYTES);
        cache.put(&key('a'), b"code");
        assert_eq!(cache.get(&key('a')), None);
    }

    #[test]
    fn an_impossible_directory_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        fs::write(&file, "").expect("writable");
        let error = KernelCache::open(&file.join("cache"), MAX_BYTES).expect_err("below a file");
        assert!(error.message().contains("name another directory with --kernel-cache"), "{error}");
    }
}
