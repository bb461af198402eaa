//! The output of a run: a table by op, the reasons, the CSV file, the closing line.

use crate::worker::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// A case that ran.
pub struct Entry {
    /// The case's name.
    pub name: String,
    /// Its TensorFlow ops.
    pub ops: Vec<String>,
    /// True if the case is not counted, because XLA rejects it.
    pub extra: bool,
    /// True if the original rejects the graph with this config, so that a rejection is not a
    /// defect.
    pub original_refuses: bool,
    /// Outcome of the case.
    pub outcome: Outcome,
    /// Duration.
    pub time: Duration,
}

/// A finished run.
pub struct Report {
    /// Every case that ran, in order of selection.
    pub entries: Vec<Entry>,
    /// Ops of the counted cases that `--only` and `--sample` excluded.
    pub skipped: Vec<Vec<String>>,
}

/// Comparison of a run with the list of known failures.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// Counted cases that fail but are not listed.
    pub unlisted: Vec<&'a str>,
    /// Counted cases that are listed but pass.
    pub passes_now: Vec<&'a str>,
}

impl Verdict<'_> {
    /// True if the list contains exactly the failures.
    pub fn is_good(&self) -> bool {
        self.unlisted.is_empty() && self.passes_now.is_empty()
    }
}

/// Counts of the cases of one op.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    unsupported: usize,
    skipped: usize,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Unsupported(_) => self.unsupported += 1,
            Outcome::Wrong(_) | Outcome::Refused(_) | Outcome::Crashed(_) => self.failed += 1,
        }
    }
}

impl Report {
    fn counted_entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.extra)
    }

    /// Returns the number of counted cases that passed.
    pub fn passed(&self) -> usize {
        self.counted_entries().filter(|entry| entry.outcome == Outcome::Passed).count()
    }

    /// Returns the number of counted cases that failed, including unsupported ones.
    pub fn failed(&self) -> usize {
        self.counted_entries().count() - self.passed()
    }

    /// Returns the number of counted cases that the compiler does not support.
    pub fn unsupported(&self) -> usize {
        self.counted_entries().filter(|entry| matches!(entry.outcome, Outcome::Unsupported(_))).count()
    }

    /// Returns the unlisted failures, and the listed cases that pass. With `allow_unsupported`,
    /// unsupported ops and rejections shared with the original need not be listed.
    pub fn verdict(&self, known: &BTreeMap<String, String>, allow_unsupported: bool) -> Verdict<'_> {
        let mut verdict = Verdict::default();
        for entry in self.counted_entries() {
            let is_known = known.contains_key(&entry.name);
            let is_tolerable = match &entry.outcome {
                Outcome::Passed => {
                    verdict.passes_now.extend(is_known.then_some(entry.name.as_str()));
                    continue;
                }
                Outcome::Unsupported(_) => true,
                Outcome::Refused(_) => entry.original_refuses,
                Outcome::Wrong(_) | Outcome::Crashed(_) => false,
            };
            if !(is_known || allow_unsupported && is_tolerable) {
                verdict.unlisted.push(&entry.name);
            }
        }
        verdict
    }

    fn tallies(&self) -> BTreeMap<&str, Tally> {
        let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
        for entry in self.counted_entries() {
            entry.ops.iter().for_each(|op| tallies.entry(op).or_default().add(&entry.outcome));
        }
        for op in self.skipped.iter().flatten() {
            if let Some(tally) = tallies.get_mut(op.as_str()) {
                tally.skipped += 1;
            }
        }
        tallies
    }

    /// Returns the number of passed cases per op as comma-separated values, for the table of ops in
    /// the documentation.
    pub fn counts(&self) -> String {
        let mut out = String::from("op,passed,cases\n");
        for (op, Tally { passed, failed, unsupported, .. }) in self.tallies() {
            writeln!(out, "{op},{passed},{}", passed + failed + unsupported)
                .expect("writing to a string cannot fail");
        }
        out
    }

    /// Returns the table: one line per op, with the number of cases that contain it.
    pub fn by_op(&self) -> String {
        let tallies = self.tallies();
        let width = tallies.keys().map(|op| op.len()).max().unwrap_or(0).max("op".len());
        let mut out = format!("{:width$}  passed  failed  unsupported  skipped\n", "op");
        for (op, tally) in tallies {
            let Tally { passed, failed, unsupported, skipped } = tally;
            writeln!(out, "{op:width$}  {passed:6}  {failed:6}  {unsupported:11}  {skipped:7}")
                .expect("writing to a string cannot fail");
        }
        out
    }

    /// Returns the first `limit` wrong, rejected, or crashed cases, and the number of further ones.
    pub fn failures(&self, limit: usize) -> String {
        let is_failure = |entry: &&Entry| !matches!(entry.outcome, Outcome::Passed | Outcome::Unsupported(_));
        let all: Vec<&Entry> = self.entries.iter().filter(is_failure).collect();
        let mut out = String::new();
        for entry in all.iter().take(limit) {
            let extra = if entry.extra { " (extra)" } else { "" };
            let (word, reason) = (entry.outcome.word(), one_line(entry.outcome.reason()));
            writeln!(out, "{}{extra}: {word}: {reason}", entry.name)
                .expect("writing to a string cannot fail");
        }
        if all.len() > limit {
            writeln!(out, "and {} more; --verbose shows all", all.len() - limit)
                .expect("writing to a string cannot fail");
        }
        out
    }

    /// Returns the reasons without names and numbers, and the number of cases for each, most
    /// frequent first.
    pub fn by_reason(&self) -> String {
        let mut groups: BTreeMap<(&str, String), (usize, &str)> = BTreeMap::new();
        for entry in self.counted_entries().filter(|entry| entry.outcome != Outcome::Passed) {
            let key = (entry.outcome.word(), generalize(&one_line(entry.outcome.reason())));
            groups.entry(key).or_insert((0, &entry.name)).0 += 1;
        }
        let mut rows: Vec<_> = groups.into_iter().collect();
        rows.sort_by(|(a, (n, _)), (b, (m, _))| m.cmp(n).then_with(|| a.cmp(b)));
        let mut out = String::new();
        for ((word, reason), (count, example)) in rows {
            writeln!(out, "{count:6}  {word}: {reason}  (as {example})")
                .expect("writing to a string cannot fail");
        }
        out
    }

    /// Returns all entries as comma-separated values, with a header.
    pub fn csv(&self) -> String {
        let mut out = String::from("case,ops,extra,outcome,ms,reason\n");
        for entry in &self.entries {
            let fields = [
                entry.name.as_str(),
                &entry.ops.join(" "),
                if entry.extra { "1" } else { "0" },
                entry.outcome.word(),
                &format!("{:.1}", entry.time.as_secs_f64() * 1e3),
                &one_line(entry.outcome.reason()),
            ];
            out.push_str(&fields.map(quote).join(","));
            out.push('\n');
        }
        out
    }

    /// Returns the last two lines: the extras, and the count.
    pub fn closing(&self) -> String {
        let extras: Vec<&Entry> = self.entries.iter().filter(|entry| entry.extra).collect();
        let right = extras.iter().filter(|entry| entry.outcome == Outcome::Passed).count();
        format!(
            "extra: {right} of {}\n{} passed, {} failed, {} skipped",
            extras.len(),
            self.passed(),
            self.failed(),
            self.skipped.len()
        )
    }
}

/// Joins the lines of a message.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Quotes a field of a CSV file if necessary.
fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Replaces quoted names and numbers, so that equal problems have equal texts.
fn generalize(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(c) = rest.chars().next() {
        let quoted = matches!(c, '\'' | '`' | '"').then(|| rest[1..].split_once(c)).flatten();
        if let Some((_, after)) = quoted {
            out.push('*');
            rest = after;
        } else if c.is_ascii_digit() && !out.ends_with(|before: char| before.is_alphanumeric()) {
            out.push('#');
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    // Collapse a list of names.
    while out.contains("*, *") {
        out = out.replace("*, *", "*");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, ops: &[&str], extra: bool, outcome: Outcome) -> Entry {
        let ops = ops.iter().map(|op| (*op).to_owned()).collect();
        Entry {
            name: name.to_owned(),
            ops,
            extra,
            original_refuses: false,
            outcome,
            time: Duration::from_micros(1500),
        }
    }

    fn report() -> Report {
        let unsupported =
            |node| Outcome::Unsupported(format!("2 nodes:\n  op Conv2D (T=f32): nodes '{node}', 'b'"));
        let entries = vec![
            entry("a/1", &["Add", "Mul"], false, Outcome::Passed),
            entry("a/2", &["Add"], false, Outcome::Wrong("fetch 0: at [3] 1, want 2".to_owned())),
            entry("b/1", &["Sort"], false, unsupported("s1")),
            entry("b/2", &["Sort", "Add"], false, unsupported("s2")),
            entry("c/1", &["Add"], true, Outcome::Passed),
            entry("c/2", &["Add"], true, Outcome::Crashed("signal: 11".to_owned())),
        ];
        let skipped = ["Add", "Add", "Mul", "Neg"].map(|op| vec![op.to_owned()]).to_vec();
        Report { entries, skipped }
    }

    #[test]
    fn failures_must_be_known_and_known_failures_must_fail() {
        let report = report();
        let known = |names: &[&str]| -> BTreeMap<String, String> {
            names.iter().map(|name| ((*name).to_owned(), "for a reason".to_owned())).collect()
        };
        assert!(report.verdict(&known(&["a/2", "elsewhere/1"]), true).is_good());
        assert_eq!(report.verdict(&known(&["a/1"]), true).passes_now, ["a/1"]);
        assert_eq!(report.verdict(&known(&[]), true).unlisted, ["a/2"]);
        assert_eq!(report.verdict(&known(&["a/2", "b/2"]), false).unlisted, ["b/1"]);
    }

    #[test]
    fn unsupported_counts_as_failed_and_extras_do_not_count() {
        assert_eq!(report().closing(), "extra: 1 of 2\n1 passed, 3 failed, 4 skipped");
        assert_eq!(report().unsupported(), 2);
    }

    #[test]
    fn the_table_counts_a_case_for_each_of_its_ops() {
        let lines = [
            "op    passed  failed  unsupported  skipped",
            "Add        1       1            1        2",
            "Mul        1       0            0        1",
            "Sort       0       0            2        0",
        ];
        assert_eq!(report().by_op().lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn counts_hold_every_counted_case() {
        assert_eq!(report().counts(), "op,passed,cases\nAdd,1,3\nMul,1,1\nSort,0,2\n");
    }

    #[test]
    fn equal_reasons_are_grouped() {
        let lines = [
            "     2  unsupported: # nodes: op Conv2D (T=f32): nodes *  (as b/1)",
            "     1  wrong: fetch #: at [#] #, want #  (as a/2)",
        ];
        assert_eq!(report().by_reason().lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn failures_are_listed_and_the_rest_counted() {
        assert_eq!(
            report().failures(1),
            "a/2: wrong: fetch 0: at [3] 1, want 2\nand 1 more; --verbose shows all\n"
        );
        assert!(report().failures(9).ends_with("c/2 (extra): crashed: signal: 11\n"));
    }

    #[test]
    fn csv_fields_are_quoted_where_needed() {
        let csv = report().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "case,ops,extra,outcome,ms,reason");
        assert_eq!(lines[1], "a/1,Add Mul,0,passed,1.5,");
        assert_eq!(lines[2], "a/2,Add,0,wrong,1.5,\"fetch 0: at [3] 1, want 2\"");
        assert_eq!(lines.len(), 7);
    }
}
