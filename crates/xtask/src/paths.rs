//! Paths that pages name in `code`: each exists.

use crate::links::{prose, with_folders};
use crate::tree::SourceFile;
use std::collections::BTreeSet;

/// Folders of a crate that pages name from the crate on: `kernel/src/context.rs`.
const IN_CRATE: &[&str] = &["src", "tests", "benches"];

/// Findings about the paths that Markdown files name.
pub fn check(files: &[SourceFile], findings: &mut Vec<String>) {
    let paths = with_folders(files);
    for page in files.iter().filter(|file| is_page(&file.path)) {
        for (number, line) in prose(&page.text) {
            let code = line.split('`').skip(1).step_by(2);
            for word in code.flat_map(str::split_whitespace) {
                let path = word.trim_end_matches([',', '.', ';', ':', '/']);
                if is_ours(path, &paths) && !is_there(path, &paths) {
                    findings.push(format!("{}:{number} names {path}, which does not exist", page.path));
                }
            }
        }
    }
}

/// Pages about the repository: those in its root, the book, and the page about the tests.
fn is_page(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_of_book = folder.split('/').next() == Some("docs");
    path.ends_with(".md") && path != "CHANGELOG.md" && (is_of_book || ["", "tests"].contains(&folder))
}

/// True if a path begins in this repository: in a folder of its root, or in one of a crate.
fn is_ours(path: &str, paths: &BTreeSet<&str>) -> bool {
    let mut parts = path.split('/');
    let (Some(first), Some(second)) = (parts.next(), parts.next()) else { return false };
    let is_crate = paths.contains(format!("crates/{first}").as_str());
    (is_crate && IN_CRATE.contains(&second)) || (!is_crate && paths.contains(first))
}

/// True if the file or folder exists. Only the folders before the first placeholder are checked.
fn is_there(path: &str, paths: &BTreeSet<&str>) -> bool {
    let path = match path.find(['<', '*', '{', '$', '…', '(']) {
        Some(at) => path[..at].rsplit_once('/').map_or("", |(folder, _)| folder),
        None => path.split(':').next().unwrap_or(path),
    };
    path.is_empty() || paths.contains(path) || paths.contains(format!("crates/{path}").as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_paths_are_there() {
        let files: Vec<SourceFile> = ["crates/kernel/src/x.rs", "crates/kernel/Cargo.toml", "scripts/test.sh"]
            .map(|path| (path, ""))
            .into_iter()
            .chain([
                ("docs/a.md", "`kernel/src/x.rs` `crates/kernel/src/` `LIMIT=2 scripts/test.sh a/b`, `kernel/src/x.rs:12`\n`scripts/<name>.sh` and `crates/*/src`; `std/src/x`\n"),
                ("docs/b.md", "`kernel/src/y.rs`\n\n    `scripts/c`\n\n`scripts/{a,b}.sh` `scripts/gone/*.sh` scripts/d\n"),
                ("examples/c.md", "`scripts/c`\n"),
            ])
            .map(|(path, text)| SourceFile { path: path.to_owned(), size: 0, text: text.to_owned() })
            .collect();
        let mut found = Vec::new();
        check(&files, &mut found);
        let want = [
            "docs/b.md:1 names kernel/src/y.rs, which does not exist",
            "docs/b.md:5 names scripts/gone/*.sh, which does not exist",
        ];
        assert_eq!(found, want);
    }
}
