//! Counts how often passes changed a module and rules were applied, and lists those that never did.

use crate::translation::{PASS, ROUNDED, RULE};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Counts by name. Names that never occur count 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Firings {
    /// Number of changes of each pass.
    pub passes: BTreeMap<String, u64>,
    /// Number of changes of each pass after which some results differed within their bounds.
    pub rounded: BTreeMap<String, u64>,
    /// Number of applications of each rule of the algebraic simplifier.
    pub rules: BTreeMap<String, u64>,
}

/// Returns the counts of the notes with a prefix, by the rest of the note.
fn counts(notes: &BTreeMap<String, u64>, prefix: &str) -> BTreeMap<String, u64> {
    let named = |(note, count): (&String, &u64)| Some((note.strip_prefix(prefix)?.to_owned(), *count));
    notes.iter().filter_map(named).collect()
}

impl Firings {
    /// Sorts the counted notes of [`crate::translation::run`].
    pub fn new(notes: &BTreeMap<String, u64>) -> Self {
        let all = passes::all();
        let mut passes: BTreeMap<String, u64> = all.iter().map(|pass| (pass.name().to_owned(), 0)).collect();
        let mut rules: BTreeMap<String, u64> =
            passes::AlgebraicSimplifier::rule_names().map(|name| (name.to_owned(), 0)).collect();
        passes.extend(counts(notes, PASS));
        rules.extend(counts(notes, RULE));
        Self { passes, rounded: counts(notes, ROUNDED), rules }
    }

    /// Returns the counts as text, the most frequent names first.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (what, counts) in [("changes by pass", &self.passes), ("applications by rule", &self.rules)] {
            let mut sorted: Vec<(&String, &u64)> = counts.iter().filter(|(_, count)| **count > 0).collect();
            sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let _ = writeln!(text, "{what}:");
            for (name, count) in sorted {
                let rounded = self.rounded.get(name).map(|times| format!(", {times} of them rounded"));
                let _ = writeln!(text, "{count:>10}  {name}{}", rounded.unwrap_or_default());
            }
            let _ = writeln!(text, "     never  {}", never(counts).join(", "));
        }
        text
    }

    /// Returns the counts as JSON. Names consist of letters and dashes.
    pub fn to_json(&self) -> String {
        let object = |counts: &BTreeMap<String, u64>| {
            let lines: Vec<String> =
                counts.iter().map(|(name, count)| format!("    \"{name}\": {count}")).collect();
            if lines.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n  }}", lines.join(",\n")) }
        };
        let (passes, rounded, rules) = (object(&self.passes), object(&self.rounded), object(&self.rules));
        format!("{{\n  \"passes\": {passes},\n  \"rounded\": {rounded},\n  \"rules\": {rules}\n}}\n")
    }
}

/// Returns the names that count 0.
fn never(counts: &BTreeMap<String, u64>) -> Vec<&str> {
    counts.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_a_count_are_listed() {
        let notes = [("pass dce", 3), ("rule add-of-zero", 2), ("rounded by dce", 1)];
        let notes = notes.map(|(note, count)| (note.to_owned(), count)).into();
        let firings = Firings::new(&notes);
        assert_eq!((firings.passes["dce"], firings.passes["cse"]), (3, 0));
        assert_eq!((firings.rules["add-of-zero"], firings.rules["copy"]), (2, 0));
        let text = firings.to_text();
        assert!(text.contains("         3  dce, 1 of them rounded\n"), "{text}");
        let never: Vec<&str> = text.lines().filter(|line| line.starts_with("     never")).collect();
        assert!(never[0].contains("cse") && !never[0].contains("dce,"), "{text}");
        assert!(never[1].contains("copy") && !never[1].contains("add-of-zero"), "{text}");
        assert!(firings.to_json().contains("  \"rounded\": {\n    \"dce\": 1\n  },\n"));
    }
}
