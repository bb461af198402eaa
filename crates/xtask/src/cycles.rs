//! Import cycles: sibling files or folders of a crate that use each other in a circle.
//!
//! A file `x.rs` and the folder `x/` beside it are one sibling. Uses between parent and child do
//! not count.

use crate::modules::{Modules, Use};
use crate::rules::{CYCLES, Cycle};
use crate::tree::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// Siblings that use each other in a circle.
struct Group {
    /// The folder that holds them.
    folder: String,
    /// Their names.
    members: Vec<String>,
    /// Uses among them, one for each pair of siblings.
    arrows: Vec<Arrow>,
}

/// All uses of one sibling by another.
struct Arrow {
    from: String,
    to: String,
    /// The used names.
    names: Vec<String>,
    /// The first use, `file:line`.
    place: String,
    /// True for the few arrows without which the group has no cycle.
    upward: bool,
}

/// Reports cycles that the table does not allow, and rows of the table that match no cycle, in all
/// crates or in one.
pub fn check(files: &[SourceFile], only: Option<&str>, findings: &mut Vec<String>) {
    check_against(CYCLES, files, only, findings);
}

fn check_against(table: &[Cycle], files: &[SourceFile], only: Option<&str>, findings: &mut Vec<String>) {
    let mut groups = Vec::new();
    let mut folders = Vec::new();
    for manifest in files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml")) {
        let name = manifest.rsplit('/').next().unwrap_or(manifest);
        if only.is_none_or(|only| only == name) {
            let source = format!("{manifest}/src/");
            crate_groups(name, &source, files, &mut groups);
            folders.push(source);
        }
    }
    let allows = |(folder, members, _): &Cycle, group: &Group| {
        *folder == group.folder && group.members.iter().all(|member| members.contains(&member.as_str()))
    };
    let unlisted = |group: &&Group| !table.iter().any(|row| allows(row, group));
    findings.extend(groups.iter().filter(unlisted).map(Group::text));
    for row in table {
        let (folder, members) = (row.0, row.1.join(", "));
        let looked_at = folders.iter().any(|source| format!("{folder}/").starts_with(source));
        if looked_at && !groups.iter().any(|group| allows(row, group)) {
            findings.push(format!("{folder}: no cycle of {members}; remove the row from xtask/src/rules.rs"));
        }
    }
}

/// Uses of siblings by each other.
type Uses<'a> = BTreeMap<(&'a str, &'a str), Vec<Use>>;

fn crate_groups(name: &str, source: &str, files: &[SourceFile], found: &mut Vec<Group>) {
    let modules = Modules::read(name, source, files);
    // The uses between siblings, by folder.
    let mut folders: BTreeMap<&[&str], Uses<'_>> = BTreeMap::new();
    for used in modules.uses() {
        let (from, to) = (modules.path(used.from), modules.path(used.to));
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
            folders.entry(&from[..shared]).or_default().entry((a, b)).or_default().push(used);
        }
    }
    for (folder, uses) in folders {
        let arrows: BTreeSet<(&str, &str)> = uses.keys().copied().collect();
        for members in components(&arrows) {
            let inside = |arrow: &(&str, &str)| members.contains(arrow.0) && members.contains(arrow.1);
            let inner: BTreeMap<(&str, &str), usize> = uses
                .iter()
                .filter(|(arrow, _)| inside(arrow))
                .map(|(arrow, uses)| (*arrow, uses.len()))
                .collect();
            let order = order(&members, &inner);
            let rank = |name: &str| order.iter().position(|n| *n == name);
            let arrows = inner.keys().map(|arrow| {
                let uses = &uses[arrow];
                let mut names: Vec<String> = uses.iter().map(|used| used.name.clone()).collect();
                names.sort();
                names.dedup();
                let place = format!("{}:{}", modules.file(uses[0].from), uses[0].line);
                let upward = rank(arrow.0) > rank(arrow.1);
                Arrow { from: arrow.0.to_owned(), to: arrow.1.to_owned(), names, place, upward }
            });
            found.push(Group {
                folder: [source.trim_end_matches('/')]
                    .iter()
                    .chain(folder)
                    .copied()
                    .collect::<Vec<_>>()
                    .join("/"),
                arrows: arrows.collect(),
                members: members.into_iter().map(str::to_owned).collect(),
            });
        }
    }
}

/// The groups of names that reach each other, of two names and more.
fn components<'a>(arrows: &BTreeSet<(&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let names: BTreeSet<&str> = arrows.iter().flat_map(|(from, to)| [*from, *to]).collect();
    let reached = |from: &'a str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            let next = arrows.range((at, "")..).take_while(|(from, _)| *from == at).map(|(_, to)| *to);
            open.extend(next.filter(|to| seen.insert(*to)));
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = names.iter().map(|name| (*name, reached(name))).collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for name in names {
        if found.iter().any(|group| group.contains(name)) {
            continue;
        }
        let group: BTreeSet<&str> =
            reached[name].iter().copied().filter(|other| reached[other].contains(name)).collect();
        if group.len() > 1 {
            found.push(group);
        }
    }
    found
}

/// Members in an order in which few uses run upward: users before what they use.
///
/// The greedy order of Eades, Lin, and Smyth: members without users go first, members that use
/// nothing go last, and between them goes the member that exceeds most in uses over users.
fn order<'a>(members: &BTreeSet<&'a str>, arrows: &BTreeMap<(&'a str, &'a str), usize>) -> Vec<&'a str> {
    let mut left = members.clone();
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let count = |name: &str, outward: bool| -> usize {
            let counts = |(from, to): &(&str, &str)| {
                let (this, other) = if outward { (from, to) } else { (to, from) };
                *this == name && left.contains(other)
            };
            arrows.iter().filter(|(arrow, _)| counts(arrow)).map(|(_, uses)| uses).sum()
        };
        let name = if let Some(sink) = left.iter().copied().find(|name| count(name, true) == 0) {
            tail.push(sink);
            sink
        } else {
            let excess = |name: &&str| count(name, true).cast_signed() - count(name, false).cast_signed();
            let source = left.iter().copied().find(|name| count(name, false) == 0);
            let first = source.or_else(|| left.iter().copied().max_by_key(excess)).unwrap_or_default();
            head.push(first);
            first
        };
        left.remove(name);
    }
    head.extend(tail.into_iter().rev());
    head
}

impl Group {
    /// The group and its uses; those to remove are marked.
    fn text(&self) -> String {
        let members = self.members.join(", ");
        let mut text = format!("{}: import cycle of {}: {members}", self.folder, self.members.len());
        for arrow in &self.arrows {
            let mark = if arrow.upward { "cut" } else { "   " };
            text += &format!("\n  {mark} {}", arrow.text());
        }
        text
    }
}

impl Arrow {
    fn text(&self) -> String {
        let shown = self.names.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
        let more = match self.names.len() {
            0..=6 => String::new(),
            length => format!(" and {} more", length - 6),
        };
        format!("{} uses {} for {shown}{more} ({})", self.from, self.to, self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(table: &[Cycle], files: &[(&str, &str)]) -> Vec<String> {
        let mut all =
            vec![SourceFile { path: "crates/x/Cargo.toml".to_owned(), size: 0, text: String::new() }];
        all.extend(files.iter().map(|(name, text)| SourceFile {
            path: format!("crates/x/src/{name}"),
            size: text.len() as u64,
            text: (*text).to_owned(),
        }));
        let mut found = Vec::new();
        check_against(table, &all, None, &mut found);
        found
    }

    #[track_caller]
    fn one_cycle(files: &[(&str, &str)], head: &str, arrows: &[&str]) {
        let found = findings(&[], files);
        assert_eq!(found.len(), 1, "{found:?}");
        let lines: Vec<&str> = found[0].lines().collect();
        assert_eq!(lines[0], head);
        assert_eq!(lines[1..], *arrows);
    }

    const PAIR: &[(&str, &str)] =
        &[("lib.rs", "mod a;\nmod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "fn f() { crate::a::a(1); }")];

    #[test]
    fn siblings_that_use_each_other_are_found() {
        let arrows =
            ["  cut a uses b for B (crates/x/src/a.rs:1)", "      b uses a for a (crates/x/src/b.rs:1)"];
        one_cycle(PAIR, "crates/x/src: import cycle of 2: a, b", &arrows);
    }

    #[test]
    fn the_longer_cycle_is_found_among_folders() {
        let files = [
            ("a.rs", "mod deep;"),
            ("a/deep.rs", "use super::super::b::{c::{self, C}, D as E};"),
            ("b.rs", "pub mod c;"),
            ("b/c.rs", "\nuse crate::d;\nfn f() { d::g() }"),
            ("d.rs", "use crate::a;"),
        ];
        let found = findings(&[], &files);
        assert!(found[0].starts_with("crates/x/src: import cycle of 3: a, b, d\n"), "{found:?}");
        assert_eq!(found[0].matches("cut").count(), 1, "{found:?}");
    }

    #[test]
    fn parents_and_children_may_use_each_other() {
        let files = [
            ("lib.rs", "mod a; use a::b::B; pub struct Root;"),
            ("a.rs", "mod b; mod c; pub use b::B; fn f() { c::c() } pub struct A;"),
            ("a/b.rs", "use super::A; use crate::Root; pub struct B;"),
            ("a/c.rs", "use crate::a::A; use super::b::B; pub fn c() {}"),
        ];
        assert_eq!(findings(&[], &files), [""; 0]);
    }

    #[test]
    fn names_are_followed_through_imports_exports_and_globs() {
        for (text, other) in [
            ("use super::B;", "use crate::a::A;"),
            ("use super::{a, *}; fn f() -> B {} pub struct A;", "use super::A;"),
            ("use crate as all; fn f(b: all::B) {}", "fn f() { super::a::f() }"),
            ("fn f(b: x::b::B) {}", "macro_rules! m { () => { $crate::a::A } }"),
        ] {
            let files = [
                ("lib.rs", "mod a; mod b; pub use b::B; pub use a::*;"),
                ("a.rs", text),
                ("b.rs", &format!("pub struct B; {other}")),
            ];
            let found = findings(&[], &files);
            assert!(found.len() == 1 && found[0].contains("a uses b for B"), "{text}: {found:?}");
        }
    }

    #[test]
    fn tests_comments_and_strings_use_nothing() {
        let unused = "// use crate::a::A;\nconst T: &str = \"crate::a::A\";\n#[cfg(test)]\nmod tests { use crate::a::A; }";
        let files = [("a.rs", "use crate::b::B;"), ("b.rs", unused), ("b/tests.rs", "use crate::a::A;")];
        assert_eq!(findings(&[], &files), [""; 0]);
    }

    #[test]
    fn the_table_allows_what_it_lists_and_no_more() {
        let row = |members: &'static [&'static str]| [("crates/x/src", members, "")];
        assert_eq!(findings(&row(&["a", "b", "c"]), PAIR), [""; 0]);
        let stale = "crates/x/src: no cycle of a, c; remove the row from xtask/src/rules.rs";
        assert_eq!(findings(&row(&["a", "c"]), PAIR)[1], stale);
        assert_eq!(findings(&row(&["a", "c"]), &PAIR[..2]), [stale]);
    }
}
