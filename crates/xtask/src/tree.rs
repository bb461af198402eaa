//! Files to check: those that git tracks or would add or, without git, all except build outputs.

use std::path::Path;
use std::process::Command;

/// A file of the repository.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path from the root, with `/`.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its text; empty if it is not UTF-8, is too large to be source, or is recorded.
    pub text: String,
}

/// Larger files are not source; only their size is checked.
const TEXT_LIMIT: u64 = 1 << 20;

/// The start and a part of the paths of what released versions of the tool wrote. Only its size is
/// checked.
const RECORDED: (&str, &str) = ("tests/releases/", "/built/");

/// All files below `root`, sorted by path.
pub fn read(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut paths = git_files(root).map_or_else(|| walk(root), Ok)?;
    paths.sort();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        let at = root.join(&path);
        // A tracked file may be deleted without the deletion being committed.
        let Ok(metadata) = std::fs::symlink_metadata(&at) else { continue };
        if !metadata.is_file() {
            continue;
        }
        let size = metadata.len();
        let is_recorded = path.starts_with(RECORDED.0) && path.contains(RECORDED.1);
        let data = if size <= TEXT_LIMIT && !is_recorded { std::fs::read(&at) } else { Ok(Vec::new()) };
        let data = data.map_err(|e| format!("cannot read {path}: {e}"))?;
        files.push(SourceFile { path, size, text: String::from_utf8(data).unwrap_or_default() });
    }
    if files.is_empty() { Err("no files found: run this in the repository".to_owned()) } else { Ok(files) }
}

/// Git's list without ignored files. `None` without git or outside a checkout.
fn git_files(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.split_terminator('\0').map(str::to_owned).collect())
}

/// All files except version control and build outputs.
fn walk(root: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        for entry in entries {
            let entry = entry.map_err(|e| format!("{}: {e}", directory.display()))?;
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && !path.is_symlink() {
                if name != ".git" && name != "target" {
                    directories.push(path);
                }
            } else if let Ok(below) = path.strip_prefix(root) {
                files.push(below.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    Ok(files)
}
