//! Selects cases: all in the given directories, except those that `--only` and `--sample` exclude.

use crate::case::{Metadata, read_metadata};
use regex_lite::Regex;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// A case file.
pub struct Found {
    /// Path relative to its root directory, without `.npz`.
    pub name: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Its metadata, or the error from reading it.
    pub metadata: Result<Metadata>,
}

impl Found {
    fn has_op(&self, op: &str) -> bool {
        self.metadata.as_ref().is_ok_and(|metadata| metadata.ops.contains_key(op))
    }
}

/// Returns all cases in these directories, ordered by name. A file is a single case.
pub fn find(roots: &[PathBuf]) -> Result<Vec<Found>> {
    let mut cases = Vec::new();
    for root in roots {
        let mut paths = Vec::new();
        if root.is_dir() {
            collect(root, &mut paths)?;
        } else {
            paths.push(root.clone());
        }
        paths.sort();
        for path in paths {
            let below = path.strip_prefix(root).ok().filter(|below| below.components().next().is_some());
            let name = below.unwrap_or(&path).with_extension("").display().to_string();
            let metadata = read_metadata(&path);
            cases.push(Found { name, path, metadata });
        }
    }
    Ok(cases)
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = |e: std::io::Error| Error::invalid(format!("cannot list {}: {e}", directory.display()));
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        // Uses the type of the entry itself: links to directories are not followed, so there are no
        // cycles.
        if entry.file_type().map_err(cannot)?.is_dir() {
            collect(&entry.path(), paths)?;
        } else if entry.path().extension().is_some_and(|e| e == "npz") {
            paths.push(entry.path());
        }
    }
    Ok(())
}

/// Keeps the cases that `--only` and `--sample` ask for, if they are given.
pub fn narrowed(mut cases: Vec<Found>, only: Option<&str>, count: Option<usize>) -> Result<Vec<Found>> {
    if let Some(only) = only {
        cases = keep_only(cases, only)?;
    }
    Ok(match count {
        Some(count) => sample(cases, count),
        None => cases,
    })
}

/// Keeps the cases that contain the op `only`. If no case contains such an op, keeps the cases
/// whose name matches the regular expression `only`.
fn keep_only(cases: Vec<Found>, only: &str) -> Result<Vec<Found>> {
    if cases.iter().any(|case| case.has_op(only)) {
        return Ok(cases.into_iter().filter(|case| case.has_op(only)).collect());
    }
    let regex = Regex::new(only).map_err(|e| Error::invalid(format!("--only {only}: {e}")))?;
    Ok(cases.into_iter().filter(|case| regex.is_match(&case.name)).collect())
}

/// Keeps `count` cases spread over all of them: those with the lowest hashes of their names, so
/// that the choice depends neither on other cases nor on the machine.
pub fn sample(mut cases: Vec<Found>, count: usize) -> Vec<Found> {
    let mut hashes: Vec<(u64, usize)> =
        cases.iter().enumerate().map(|(i, case)| (fnv1a64(case.name.as_bytes()), i)).collect();
    hashes.sort_unstable();
    hashes.truncate(count);
    let selected: std::collections::BTreeSet<usize> = hashes.into_iter().map(|(_, i)| i).collect();
    let mut index = 0..;
    cases.retain(|_| index.next().is_some_and(|i| selected.contains(&i)));
    cases
}

/// Returns the 64-bit FNV-1a hash.
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(names: &[&str]) -> Vec<Found> {
        let found = |name: &&str| Found {
            name: (*name).to_owned(),
            path: PathBuf::from(name),
            metadata: Err(Error::invalid("none")),
        };
        names.iter().map(found).collect()
    }

    fn names(cases: &[Found]) -> Vec<&str> {
        cases.iter().map(|case| case.name.as_str()).collect()
    }

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of the FNV reference, draft-eastlake-fnv.
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn only_is_a_regular_expression_over_names() {
        let selected = keep_only(cases(&["a/add_1", "a/sub_1", "b/add_2"]), "^a/|_2$").unwrap();
        assert_eq!(names(&selected), ["a/add_1", "a/sub_1", "b/add_2"]);
        let selected = keep_only(cases(&["a/add_1", "a/sub_1"]), "add").unwrap();
        assert_eq!(names(&selected), ["a/add_1"]);
        assert!(keep_only(cases(&["a"]), "(").is_err());
    }

    #[test]
    fn a_sample_keeps_its_members_when_cases_are_added() {
        let small = sample(cases(&["a", "b", "c", "d", "e"]), 3);
        assert_eq!(small.len(), 3);
        let large = sample(cases(&["a", "b", "c", "d", "e"]), 4);
        assert!(names(&small).iter().all(|name| names(&large).contains(name)));
        assert_eq!(sample(cases(&["a", "b"]), 9).len(), 2);
    }
}
