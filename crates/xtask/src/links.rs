//! Links between pages: every linked file and heading exists, and no page of the book in `docs/`
//! links out of it.

use crate::tree::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// The book's folder and its list of pages.
const BOOK: &str = "docs/";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Findings about the links of all Markdown files.
pub fn check(files: &[SourceFile], findings: &mut Vec<String>) {
    let paths = with_folders(files);
    let pages: Vec<&SourceFile> = files.iter().filter(|file| file.path.ends_with(".md")).collect();
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut listed = BTreeSet::new();
    for page in &pages {
        for (number, target) in links(&page.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let at = format!("{}:{number}", page.path);
            let (file, anchor) =
                target.split_once('#').map_or((target.as_str(), None), |(f, a)| (f, Some(a)));
            let Some(to) = (if file.is_empty() { Some(page.path.clone()) } else { join(&page.path, file) })
            else {
                findings.push(format!("{at} links out of the repository: {target}"));
                continue;
            };
            if !paths.contains(to.as_str()) {
                findings.push(format!("{at} links to {to}, which does not exist"));
            } else if page.path.starts_with(BOOK) && !to.starts_with(BOOK) {
                findings
                    .push(format!("{at} links to {to}, which is not part of the book: name it as `{to}`"));
            } else if anchor.is_some_and(|a| !anchors.get(to.as_str()).is_some_and(|all| all.contains(a))) {
                findings.push(format!("{at} links to a heading that {to} does not have: {target}"));
            }
            if page.path == SUMMARY {
                listed.insert(to);
            }
        }
    }
    for page in pages.iter().filter(|page| page.path.starts_with(BOOK) && page.path != SUMMARY) {
        if !listed.contains(&page.path) {
            findings.push(format!("{} is not a page of the book: list it in {SUMMARY}", page.path));
        }
    }
}

/// Paths of all files and of the folders that hold them.
pub fn with_folders(files: &[SourceFile]) -> BTreeSet<&str> {
    let folders = |file: &'_ SourceFile| file.path.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
    let all = files
        .iter()
        .flat_map(|file| folders(file).into_iter().map(|at| &file.path[..at]).chain([&file.path[..]]));
    all.collect()
}

/// The path that a link means, seen from its page. `None` above the root.
fn join(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Lines outside code blocks, with their numbers, without the code within them.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    // An indented line is code after an empty line or after code. Elsewhere it continues a paragraph.
    let mut may_be_code = true;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        let empty = line.trim().is_empty();
        let code = fenced || (may_be_code && line.starts_with("    "));
        may_be_code = empty || code;
        (!code && !empty).then(|| (number + 1, line))
    })
}

/// A line without its `code`.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The targets of `[text](target)`, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(targets.map(|(target, _)| (number, target.to_owned())));
    }
    found
}

/// Anchors of the headings, as GitHub and mdBook name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else { continue };
        let Some(heading) = heading.strip_prefix(' ') else { continue };
        let slug: String = heading
            .trim()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
                _ => None,
            })
            .collect();
        let again = (1..).map(|n| format!("{slug}-{n}"));
        let free = std::iter::once(slug.clone()).chain(again).find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile {
                path: (*path).to_owned(),
                size: text.len() as u64,
                text: (*text).to_owned(),
            })
            .collect();
        let mut found = Vec::new();
        check(&files, &mut found);
        found
    }

    #[test]
    fn links_lead_to_files_folders_and_headings() {
        let readme = "[a](docs/a.md) [b](docs/a.md#the-end-of---all) [c](examples/x) [d](https://a.b) [e](#top)\n# Top\n";
        let page = "# A\n## The end of `--all`\n[up](#a) and [itself](a.md#a)\n";
        let files = [
            ("README.md", readme),
            ("docs/SUMMARY.md", "- [A](a.md)\n"),
            ("docs/a.md", page),
            ("examples/x/y.rs", ""),
        ];
        assert_eq!(findings(&files), [""; 0]);
    }

    #[test]
    fn missing_targets_are_found() {
        for (text, want) in [
            ("[x](gone.md)\n", "README.md:1 links to gone.md, which does not exist"),
            (
                "\n[x](docs/a.md#b)\n",
                "README.md:2 links to a heading that docs/a.md does not have: docs/a.md#b",
            ),
            ("[x](../a.md)\n", "README.md:1 links out of the repository: ../a.md"),
            ("[x](#none)\n", "README.md:1 links to a heading that README.md does not have: #none"),
        ] {
            let files = [("README.md", text), ("docs/SUMMARY.md", "[A](a.md)\n"), ("docs/a.md", "# A\n")];
            assert_eq!(findings(&files), [want]);
        }
    }

    #[test]
    fn the_book_lists_its_pages_and_links_within() {
        let files =
            [("docs/SUMMARY.md", "[A](a.md)\n"), ("docs/a.md", "[x](../README.md)\n"), ("README.md", "")];
        let found = findings(&files);
        assert!(
            found.len() == 1 && found[0].contains("docs/a.md:1 links to README.md, which is not part"),
            "{found:?}"
        );
        let files = [("docs/SUMMARY.md", "[A](a.md)\n"), ("docs/a.md", ""), ("docs/b.md", "")];
        assert_eq!(findings(&files), ["docs/b.md is not a page of the book: list it in docs/SUMMARY.md"]);
    }

    #[test]
    fn code_is_no_link_and_no_heading() {
        let text = "Say `[x](gone.md)`.\n\n    [x](gone.md)\n    # Code\n\n```sh\n# Fenced\n[x](gone.md)\n```\n- item\n    [x](#code)\n";
        let found = findings(&[("README.md", text)]);
        assert_eq!(found, ["README.md:11 links to a heading that README.md does not have: #code"]);
    }

    #[test]
    fn headings_of_the_same_words_are_numbered() {
        assert_eq!(
            anchors("# A b\n## A b\n### A, b!\n"),
            ["a-b", "a-b-1", "a-b-2"].map(str::to_owned).into()
        );
    }
}
