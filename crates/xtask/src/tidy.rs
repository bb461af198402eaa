//! Checks of the tree. Each takes the files and adds its findings. A finding names the file and
//! states the fix.

use crate::links;
use crate::manifest::{Dependency, dependencies};
use crate::paths;
use crate::prose;
use crate::rules::{
    DRAWER_NAMES, EDGES, IO_ALLOWED, IO_EXCEPTIONS, IO_WORDS, LLVM_CRATE, LLVM_PACKAGES, LONG_FILES,
    MAX_LINES, PAGE_LIMITS, SEALED_TYPES, SIZE_LIMITS,
};
use crate::tree::SourceFile;
use std::collections::BTreeSet;

/// Runs all checks on these files and returns their findings.
pub fn check(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    edges(files, &mut findings);
    sealed_types(files, &mut findings);
    links::check(files, &mut findings);
    paths::check(files, &mut findings);
    prose::check(files, &mut findings);
    for file in files {
        sizes(file, &mut findings);
        if file.path.ends_with(".rs") {
            headers(file, &mut findings);
            lengths(file, &mut findings);
            llvm(file, &mut findings);
            io(file, &mut findings);
            names(file, &mut findings);
        }
        page_lengths(file, &mut findings);
        debts(file, &mut findings);
    }
    findings
}

/// Checks that every dependency between crates of the workspace is in the table.
fn edges(files: &[SourceFile], findings: &mut Vec<String>) {
    let manifests: Vec<(&str, Vec<Dependency>)> = files
        .iter()
        .filter_map(|file| {
            let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then(|| (name, dependencies(&file.text)))
        })
        .collect();
    let ours: BTreeSet<&str> = manifests.iter().map(|(name, _)| *name).collect();
    for (name, dependencies) in &manifests {
        let Some((_, allowed)) = EDGES.iter().find(|(known, _)| known == name) else {
            findings.push(format!("crate {name} is not in the table of xtask/src/rules.rs"));
            continue;
        };
        for dependency in dependencies {
            let to = dependency.name.as_str();
            if LLVM_PACKAGES.contains(&to) && *name != LLVM_CRATE {
                findings.push(format!("{name} depends on {to}; LLVM is named only in {LLVM_CRATE}"));
            }
            if ours.contains(to) && !dependency.dev && !allowed.contains(&to) {
                findings.push(format!("{name} -> {to} is not in the table of xtask/src/rules.rs"));
            }
        }
    }
}

/// Checks that types that only one crate may construct are sealed there.
fn sealed_types(files: &[SourceFile], findings: &mut Vec<String>) {
    for (name, sealed, why) in SEALED_TYPES {
        let source = format!("crates/{name}/src/");
        let mut files = files.iter().filter(|file| file.path.starts_with(&source)).peekable();
        if files.peek().is_none() {
            continue;
        }
        let item = format!("\npub struct {sealed} {{");
        let Some((path, before)) =
            files.find_map(|file| Some((&file.path, &file.text[..file.text.find(&item)?])))
        else {
            findings.push(format!("{source} has no `pub struct {sealed}`, which xtask/src/rules.rs lists"));
            continue;
        };
        // Documentation and attributes stand between the blank line and the item.
        let attributes = before.rsplit("\n\n").next().unwrap_or_default();
        let attributes = attributes.lines().filter(|line| !line.starts_with("//"));
        let attributes: String = attributes.collect();
        if !attributes.contains("#[non_exhaustive]") {
            findings.push(format!(
                "{path}: `{sealed}` is not `#[non_exhaustive]`; only {name} constructs it: {why}"
            ));
        }
        if attributes.contains("Default") {
            findings.push(format!("{path}: `{sealed}` has a `Default`; only {name} constructs it: {why}"));
        }
    }
}

/// Checks the size of a file against the limit of its folder.
fn sizes(file: &SourceFile, findings: &mut Vec<String>) {
    let limit = SIZE_LIMITS.iter().filter(|(prefix, _)| file.path.starts_with(prefix));
    let (_, limit) = limit.max_by_key(|(prefix, _)| prefix.len()).expect("the empty prefix matches all");
    if file.size > *limit {
        findings.push(format!("{} has {} bytes; the limit of its folder is {limit}", file.path, file.size));
    }
}

/// Checks that a source file opens with a description of its contents. Recorded ones have no text.
fn headers(file: &SourceFile, findings: &mut Vec<String>) {
    let is_read = file.size == 0 || !file.text.is_empty();
    if is_read && !file.text.starts_with("//!") {
        findings.push(format!("{} does not open with `//!`", file.path));
    }
}

/// Checks the number of lines of a source file.
fn lengths(file: &SourceFile, findings: &mut Vec<String>) {
    let lines = shipped(file).lines().count();
    if lines > MAX_LINES && !LONG_FILES.iter().any(|(path, _)| *path == file.path) {
        findings.push(format!(
            "{} has {lines} lines without tests, the limit is {MAX_LINES}; split it",
            file.path
        ));
    }
}

/// Checks the number of lines of a page.
fn page_lengths(file: &SourceFile, findings: &mut Vec<String>) {
    let limits = PAGE_LIMITS.iter().filter(|(prefix, _)| file.path.starts_with(prefix));
    let Some((_, limit)) = limits.max_by_key(|(prefix, _)| prefix.len()) else { return };
    let lines = file.text.lines().count();
    if file.path.ends_with(".md") && lines > *limit {
        findings.push(format!("{} has {lines} lines, the limit is {limit}; split it", file.path));
    }
}

/// Checks that only one crate uses LLVM's bindings.
fn llvm(file: &SourceFile, findings: &mut Vec<String>) {
    if crate_of(file) == Some(LLVM_CRATE) || crate_of(file) == Some("xtask") {
        return;
    }
    for (number, line) in code_lines(&file.text) {
        if ["inkwell::", "llvm_sys::"].iter().any(|word| line.contains(word)) {
            findings.push(format!("{}:{number} names LLVM; only {LLVM_CRATE} may", file.path));
        }
    }
}

/// Checks that only the listed crates, and tests, do IO.
fn io(file: &SourceFile, findings: &mut Vec<String>) {
    let Some(name) = crate_of(file).filter(|name| !IO_ALLOWED.iter().any(|(allowed, _)| allowed == name))
    else {
        return;
    };
    if is_test_file(&file.path) {
        return;
    }
    for (number, line) in code_lines(shipped(file)) {
        let allowed =
            |word: &str| IO_EXCEPTIONS.iter().any(|(path, may, _)| *path == file.path && *may == word);
        if let Some(word) = IO_WORDS.iter().find(|word| line.contains(**word) && !allowed(word)) {
            findings
                .push(format!("{}:{number} uses {word}; {name} does no IO (xtask/src/rules.rs)", file.path));
        }
    }
}

/// Checks that a file's name says what it holds.
fn names(file: &SourceFile, findings: &mut Vec<String>) {
    let stem = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    if DRAWER_NAMES.contains(&stem) {
        findings.push(format!("{}: `{stem}` does not say what the file holds: rename it", file.path));
    }
}

/// Checks that unfinished work names its issue.
fn debts(file: &SourceFile, findings: &mut Vec<String>) {
    if crate_of(file) == Some("xtask") || !is_source(&file.path) {
        return;
    }
    for (number, line) in file.text.lines().enumerate() {
        let open = ["TODO", "FIXME", "XXX"].into_iter().find(|word| {
            line.match_indices(word).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = &line[at + word.len()..];
                let is_word = !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
                    && !after.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
                is_word && !after.starts_with("(#")
            })
        });
        if let Some(word) = open {
            findings.push(format!("{}:{}: {word} without an issue, `{word}(#123)`", file.path, number + 1));
        }
        if line.contains("todo!(") || line.contains("unimplemented!(") || line.contains("#[ignore") {
            findings.push(format!("{}:{}: unfinished: {}", file.path, number + 1, line.trim()));
        }
    }
}

/// The crate that a file belongs to.
fn crate_of(file: &SourceFile) -> Option<&str> {
    file.path.strip_prefix("crates/")?.split('/').next()
}

/// True for files that are checked for unfinished work.
fn is_source(path: &str) -> bool {
    [".rs", ".h", ".cc", ".py", ".sh", ".toml", "Makefile"].iter().any(|end| path.ends_with(end))
}

/// True for files that contain only tests.
fn is_test_file(path: &str) -> bool {
    path.contains("/tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
        || is_build_script(path)
}

/// True for Cargo's build scripts; below `src`, the name means nothing.
fn is_build_script(path: &str) -> bool {
    path.ends_with("/build.rs") && !path.contains("/src/")
}

/// The text before the inline tests.
fn shipped(file: &SourceFile) -> &str {
    if is_test_file(&file.path) && !is_build_script(&file.path) {
        return "";
    }
    file.text.find("\n#[cfg(test)]\nmod tests {").map_or(&file.text, |at| &file.text[..=at])
}

/// Lines with their numbers, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), size: text.len() as u64, text: text.to_owned() }
    }

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&[file(path, text)])
    }

    #[track_caller]
    fn one_finding(path: &str, text: &str, want: &str) {
        let found = findings(path, text);
        assert!(found.len() == 1 && found[0].contains(want), "want one with {want:?}: {found:?}");
    }

    #[test]
    fn a_clean_file_has_no_finding() {
        let text = "//! Shapes.\n\n/// A thing. See std::fs for files.\npub struct Thing;\n";
        assert_eq!(findings("crates/shape/src/thing.rs", text), [""; 0]);
    }

    #[test]
    fn edges_outside_of_the_table_are_found() {
        let manifest = |name: &str, text: &str| file(&format!("crates/{name}/Cargo.toml"), text);
        let good = manifest("shape", "[dependencies]\nsupport.workspace = true\nbytes = \"1\"\n");
        let support = manifest("support", "[dependencies]\n");
        assert_eq!(check(&[good, support.clone()]), [""; 0]);
        let bad = manifest("support", "[dependencies]\nshape.workspace = true\n");
        let shape = manifest("shape", "[dependencies]\n");
        let found = check(&[bad, shape.clone()]);
        assert!(found.len() == 1 && found[0].contains("support -> shape"), "{found:?}");
        let dev = manifest("support", "[dev-dependencies]\nshape.workspace = true\n");
        assert_eq!(check(&[dev, shape]), [""; 0]);
        one_finding("crates/kernel/Cargo.toml", "[dependencies]\ninkwell = \"1\"\n", "LLVM");
        one_finding("crates/newcomer/Cargo.toml", "[dependencies]\n", "newcomer is not in the table");
    }

    #[test]
    fn sealed_types_are_sealed() {
        let graph = |attributes: &str| {
            let sealed = |name: &str| format!("\n/// {name}.\n#[non_exhaustive]\npub struct {name} {{}}\n");
            let text = format!(
                "//! Graphs.\n{}{}\n/// Default, #[non_exhaustive].\n{attributes}pub struct Graph {{}}\n",
                sealed("Node"),
                sealed("Program")
            );
            file("crates/tf/src/graph.rs", &text)
        };
        assert_eq!(check(&[graph("#[derive(Debug)]\n#[non_exhaustive]\n")]), [""; 0]);
        let found = check(&[graph("#[derive(Debug)]\n")]);
        assert!(found.len() == 1 && found[0].contains("`Graph` is not `#[non_exhaustive]`"), "{found:?}");
        let found = check(&[graph("#[derive(Default)]\n#[non_exhaustive]\n")]);
        assert!(found.len() == 1 && found[0].contains("`Graph` has a `Default`"), "{found:?}");
        let found = check(&[file("crates/tf/src/lib.rs", "//! Nothing.\n")]);
        assert!(found.len() == 3 && found[1].contains("no `pub struct Node`"), "{found:?}");
    }

    #[test]
    fn the_table_has_no_cycle() {
        // The table is in the order of the arrows: each crate uses only crates above it.
        for (position, (name, allowed)) in EDGES.iter().enumerate() {
            for to in *allowed {
                let at = EDGES
                    .iter()
                    .position(|(other, _)| other == to)
                    .expect("an arrow to a crate of the table");
                assert!(at < position, "{name} -> {to} points down the table");
            }
        }
    }

    #[test]
    fn structure_of_source_files_is_checked() {
        one_finding("crates/hlo/src/x.rs", "pub struct Thing;\n", "`//!`");
        one_finding("crates/hlo/src/utils.rs", "//! Things.\n", "rename it");
        let long = format!("//! Long.\n{}", "fn f() {}\n".repeat(600));
        one_finding("crates/hlo/src/x.rs", &long, "601 lines");
        let tests = format!("//! Long.\n\n#[cfg(test)]\nmod tests {{\n{}}}\n", "fn f() {}\n".repeat(600));
        assert_eq!(findings("crates/hlo/src/x.rs", &tests), [""; 0]);
        let gated = format!("//! L.\n#[cfg(test)]\nmod fixtures;\n{}", "fn f() {}\n".repeat(600));
        one_finding("crates/hlo/src/x.rs", &gated, "603 lines");
    }

    #[test]
    fn pages_have_a_limit() {
        let page = |lines: usize| "a\n".repeat(lines);
        let findings = |path: &str, lines: usize| {
            let mut found = Vec::new();
            page_lengths(&file(path, &page(lines)), &mut found);
            found
        };
        assert_eq!(findings("docs/x/y.md", 250), [""; 0]);
        assert_eq!(findings("docs/x/y.md", 251), ["docs/x/y.md has 251 lines, the limit is 250; split it"]);
        assert_eq!(findings("README.md", 151).len(), 1);
        assert_eq!(findings("docs/bench.json", 300), [""; 0]);
        assert_eq!(findings("tests/README.md", 300), [""; 0]);
    }

    #[test]
    fn llvm_and_io_stay_in_their_rooms() {
        let llvm = "//! K.\nuse inkwell::context::Context;\n";
        one_finding("crates/kernel/src/x.rs", llvm, "names LLVM");
        assert_eq!(findings("crates/codegen/src/x.rs", llvm), [""; 0]);
        let io = "//! P.\nfn f() { std::fs::read(\"x\"); }\n";
        one_finding("crates/plan/src/x.rs", io, "std::fs");
        assert_eq!(findings("crates/cli/src/x.rs", io), [""; 0]);
        let exit = "//! L.\nfn f() { std::process::exit(1); }\n";
        assert_eq!(findings("crates/codegen/src/llvm.rs", exit), [""; 0]);
        one_finding("crates/codegen/src/x.rs", exit, "std::process");
        let tested = "//! P.\n\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert_eq!(findings("crates/plan/src/x.rs", tested), [""; 0]);
        assert_eq!(findings("crates/plan/tests/x.rs", io), [""; 0]);
    }

    #[test]
    fn debts_need_an_issue() {
        one_finding("crates/hlo/src/x.rs", "//! H.\n// TODO: later\n", "TODO without an issue");
        one_finding("scripts/x.sh", "# FIXME\n", "FIXME without an issue");
        assert_eq!(findings("crates/hlo/src/x.rs", "//! H.\n// TODO(#12): later\n"), [""; 0]);
        assert_eq!(findings("crates/hlo/src/x.rs", "//! H.\nconst TODOS: u8 = 0;\n"), [""; 0]);
        one_finding("crates/hlo/src/x.rs", "//! H.\nfn f() { todo!() }\n", "unfinished");
    }

    #[test]
    fn committed_files_stay_small() {
        let mut large = file("tests/conformance/x.npz", "");
        large.size = 40 << 10;
        assert_eq!(check(std::slice::from_ref(&large)).len(), 1);
        large.path = "examples/digits/digits.csv".to_owned();
        assert_eq!(check(&[large]), [""; 0]);
    }
}
