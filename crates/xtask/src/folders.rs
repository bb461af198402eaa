//! Layout of folders: how many files each may hold, and how modules are written.

use crate::rules::MAX_FILES_IN_FOLDER;
use crate::tree::SourceFile;
use std::collections::BTreeMap;

/// Findings about the folders of all crates, or of one.
pub fn check(files: &[SourceFile], only: Option<&str>, findings: &mut Vec<String>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let Some((folder, name)) = file.path.rsplit_once('/') else { continue };
        let in_crate = folder.strip_prefix("crates/").unwrap_or(folder).split('/').next();
        if only.is_some() && only != in_crate {
            continue;
        }
        *counts.entry(folder).or_default() += 1;
        // Cargo takes `tests/x.rs` for a test; helpers of tests are `tests/x/mod.rs`.
        if name == "mod.rs" && folder.split('/').any(|part| part == "src") {
            findings.push(format!("{}: a module with children is `{folder}.rs`", file.path));
        }
    }
    for (folder, count) in counts.into_iter().filter(|(_, count)| *count > MAX_FILES_IN_FOLDER) {
        findings.push(format!("{folder} has {count} files, the limit is {MAX_FILES_IN_FOLDER}; group them"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(paths: &[String], only: Option<&str>) -> Vec<String> {
        let file = |path: &String| SourceFile { path: path.clone(), size: 0, text: String::new() };
        let files: Vec<SourceFile> = paths.iter().map(file).collect();
        let mut found = Vec::new();
        check(&files, only, &mut found);
        found
    }

    #[test]
    fn large_folders_are_found() {
        let mut paths: Vec<String> = (0..30).map(|n| format!("crates/x/src/a{n}.rs")).collect();
        paths.extend(["crates/x/src/a.txt".to_owned(), "crates/x/src/b/c.rs".to_owned()]);
        assert_eq!(findings(&paths, None), [""; 0]);
        paths.push("crates/x/src/more.rs".to_owned());
        let want = ["crates/x/src has 31 files, the limit is 30; group them"];
        assert_eq!(findings(&paths, None), want);
        assert_eq!(findings(&paths, Some("x")), want);
        assert_eq!(findings(&paths, Some("y")), [""; 0]);
    }

    #[test]
    fn modules_are_files_beside_folders() {
        let paths =
            ["crates/x/src/a/mod.rs", "crates/x/tests/b/mod.rs", "crates/x/src/c.rs"].map(str::to_owned);
        let want = "crates/x/src/a/mod.rs: a module with children is `crates/x/src/a.rs`";
        assert_eq!(findings(&paths, None), [want]);
    }
}
