//! What a run prints: a table by op, the reasons, the CSV file, the closing line.

use crate::worker::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// One case that ran.
pub struct Entry {
    /// The case's name.
    pub name: String,
    /// Its TensorFlow ops.
    pub ops: Vec<String>,
    /// Whether it is outside of the count, because XLA refuses it.
    pub extra: bool,
    /// Whether the original refuses the graph with this config, so that a refusal is no defect.
    pub original_refuses: bool,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub time: Duration,
}

/// A finished run.
pub struct Report {
    /// Every case that ran, in the order of selection.
    pub entries: Vec<Entry>,
    /// The ops of the counted cases that `--only` and `--sample` left out.
    pub skipped: Vec<Vec<String>>,
}

/// What a run says beside a list of known failures.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// Counted cases that fail and are not listed.
    pub unlisted: Vec<&'a str>,
    /// Counted cases that are listed and pass.
    pub passes_now: Vec<&'a str>,
}

impl Verdict<'_> {
    /// Whether the list says exactly what fails.
    pub fn is_good(&self) -> bool {
        self.unlisted.is_empty() && self.passes_now.is_empty()
    }
}

/// Cases of one op.
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
    fn counted(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.extra)
    }

    /// How many counted cases passed.
    pub fn passed(&self) -> usize {
        self.counted().filter(|entry| entry.outcome == Outcome::Passed).count()
    }

    /// How many counted cases did not, unsupported ones included.
    pub fn failed(&self) -> usize {
        self.counted().count() - self.passed()
    }

    /// How many counted cases the compiler said it can't do.
    pub fn unsupported(&self) -> usize {
        self.counted().filter(|entry| matches!(entry.outcome, Outcome::Unsupported(_))).count()
    }

    /// Which failures nobody knows of, and which known failures are none. With `allow_unsupported` ops that are not done and
    /// refusals that are the original's too need not be known.
    pub fn verdict(&self, known: &BTreeMap<String, String>, allow_unsupported: bool) -> Verdict<'_> {
        let mut verdict = Verdict::default();
        for entry in self.counted() {
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
        for entry in self.counted() {
            entry.ops.iter().for_each(|op| tallies.entry(op).or_default().add(&entry.outcome));
        }
        for op in self.skipped.iter().flatten() {
            if let Some(tally) = tallies.get_mut(op.as_str()) {
                tally.skipped += 1;
            }
        }
        tallies
    }

    /// How many cases of each op passed, as comma-separated values: what the table of ops in the documentation shows.
    pub fn counts(&self) -> String {
        let mut out = String::from("op,passed,cases\n");
        for (op, Tally { passed, failed, unsupported, .. }) in self.tallies() {
            writeln!(out, "{op},{passed},{}", passed + failed + unsupported).expect("a string takes all");
        }
        out
    }

    /// The table: a line for each op of a case that ran, with the cases that hold it.
    pub fn by_op(&self) -> String {
        let tallies = self.tallies();
        let width = tallies.keys().map(|op| op.len()).max().unwrap_or(0).max("op".len());
        let mut out = format!("{:width$}  passed  failed  unsupported  skipped\n", "op");
        for (op, tally) in tallies {
            let Tally { passed, failed, unsupported, skipped } = tally;
            writeln!(out, "{op:width$}  {passed:6}  {failed:6}  {unsupported:11}  {skipped:7}")
                .expect("a string takes all");
        }
        out
    }

    /// The first `limit` cases that are wrong, refused or crashed, then how many more there are.
    pub fn failures(&self, limit: usize) -> String {
        let is_failure = |entry: &&Entry| !matches!(entry.outcome, Outcome::Passed | Outcome::Unsupported(_));
        let all: Vec<&Entry> = self.entries.iter().filter(is_failure).collect();
        let mut out = String::new();
        for entry in all.iter().take(limit) {
            let extra = if entry.extra { " (extra)" } else { "" };
            let (word, reason) = (entry.outcome.word(), one_line(entry.outcome.reason()));
            writeln!(out, "{}{extra}: {word}: {reason}", entry.name).expect("a string takes all");
        }
        if all.len() > limit {
            writeln!(out, "and {} more; --verbose shows all", all.len() - limit).expect("a string takes all");
        }
        out
    }

    /// Reasons with their names and numbers taken out, and how many cases have each, the most frequent first.
    pub fn by_reason(&self) -> String {
        let mut groups: BTreeMap<(&str, String), (usize, &str)> = BTreeMap::new();
        for entry in self.counted().filter(|entry| entry.outcome != Outcome::Passed) {
            let key = (entry.outcome.word(), generalise(&one_line(entry.outcome.reason())));
            groups.entry(key).or_insert((0, &entry.name)).0 += 1;
        }
        let mut rows: Vec<_> = groups.into_iter().collect();
        rows.sort_by(|(a, (n, _)), (b, (m, _))| m.cmp(n).then_with(|| a.cmp(b)));
        let mut out = String::new();
        for ((word, reason), (count, example)) in rows {
            writeln!(out, "{count:6}  {word}: {reason}  (as {example})").expect("a string takes all");
        }
        out
    }

    /// All entries as comma-separated values, with a header.
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

    /// The two last lines: extras, and the count.
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

/// A message of several lines as one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A field of a CSV file, in quotes where it must be.
fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// The message with quoted names and numbers replaced, so that equal problems read equal.
fn generalise(message: &str) -> String {
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
    // A list of names is as good as one.
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
