//! Wording of sources and pages: American spelling, phrases with a plainer standard term, doc
//! comments that open with a noun or a verb, and the length of comment lines. The tables are in
//! `rules`.

use crate::rules::{BRITISH, CLAUSE_OPENERS, MAX_COMMENT, PHRASES, SPELLED_BY_OTHERS};
use crate::tree::SourceFile;

/// Checks every source file, script, and page.
pub fn check(files: &[SourceFile], findings: &mut Vec<String>) {
    for file in files.iter().filter(|file| is_checked(&file.path)) {
        let mut in_doc_comment = false;
        for (number, line) in file.text.lines().enumerate() {
            let mut report =
                |finding: String| findings.push(format!("{}:{}: {finding}", file.path, number + 1));
            spelling(line, &mut report);
            let Some(comment) = comment(&file.path, line) else {
                in_doc_comment = false;
                continue;
            };
            phrases(comment.text, &mut report);
            let columns = line.chars().count();
            if columns > MAX_COMMENT && !comment.text.contains("://") {
                report(format!("a comment line of {columns} columns, the limit is {MAX_COMMENT}"));
            }
            if comment.is_doc && !in_doc_comment {
                opener(comment.text, &mut report);
            }
            in_doc_comment = comment.is_doc;
        }
    }
}

/// True for source files, scripts, and pages, except the tables that quote what is flagged.
fn is_checked(path: &str) -> bool {
    const ENDS: [&str; 8] = [".rs", ".h", ".cc", ".c", ".py", ".sh", ".md", "Makefile"];
    let is_table = path.starts_with("crates/xtask/src/");
    let is_data = SPELLED_BY_OTHERS.iter().any(|(prefix, _)| path.starts_with(prefix));
    ENDS.iter().any(|end| path.ends_with(end)) && !is_table && !is_data
}

/// A comment on one line.
struct Comment<'a> {
    text: &'a str,
    is_doc: bool,
}

/// The comment that a line ends with. Pages have none; only their spelling is checked.
fn comment<'a>(path: &str, line: &'a str) -> Option<Comment<'a>> {
    if path.ends_with(".md") {
        return None;
    }
    let trimmed = line.trim_start();
    let marker = if [".py", ".sh", "Makefile"].iter().any(|end| path.ends_with(end)) { "#" } else { "//" };
    for doc in ["///", "//!"].iter().filter(|_| marker == "//") {
        if let Some(text) = trimmed.strip_prefix(doc) {
            return Some(Comment { text: text.trim(), is_doc: true });
        }
    }
    let start = match trimmed.strip_prefix(marker) {
        Some(text) => text,
        None => line.split_once(&format!(" {marker} "))?.1,
    };
    Some(Comment { text: start.trim(), is_doc: false })
}

/// Reports words of British spelling, in code as well: an identifier is read like any other word.
fn spelling(line: &str, report: &mut impl FnMut(String)) {
    let lower = line.to_ascii_lowercase();
    for (british, american) in BRITISH {
        // `-is` is British only before a vowel: not in "parallelism".
        let is_british = |(at, _): (usize, &str)| {
            let after = lower[at + british.len()..].chars().next();
            !british.ends_with("is") || after.is_some_and(|c| "eai".contains(c))
        };
        if lower.match_indices(british).any(is_british) {
            report(format!("`{british}` is British spelling: write `{american}`"));
        }
    }
}

/// Reports phrases that have a plainer standard term.
fn phrases(comment: &str, report: &mut impl FnMut(String)) {
    let lower = comment.to_ascii_lowercase();
    for (phrase, instead) in PHRASES {
        let is_word = |(at, _): (usize, &str)| {
            let before = lower[..at].chars().next_back();
            let after = lower[at + phrase.len()..].chars().next();
            !before.is_some_and(is_part_of_word) && !after.is_some_and(is_part_of_word)
        };
        if lower.match_indices(phrase).any(is_word) {
            report(format!("`{phrase}` in a comment: write {instead}"));
        }
    }
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Reports a doc comment that opens with a clause instead of a noun or a verb. Questions may.
fn opener(text: &str, report: &mut impl FnMut(String)) {
    let first = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    if CLAUSE_OPENERS.contains(&first) && !text.contains('?') {
        report(format!(
            "a doc comment opens with `{first}`: name what it describes (\"True if\", \"Number of\")"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&[SourceFile { path: path.to_owned(), size: 0, text: text.to_owned() }], &mut found);
        found
    }

    #[test]
    fn plain_american_comments_pass() {
        let text = "//! Shapes.\n\n/// Number of lanes.\n/// What follows may open a later line.\nfn f() {} // neighbors\n";
        assert_eq!(findings("crates/shape/src/x.rs", text), [""; 0]);
    }

    #[test]
    fn british_spelling_is_found_in_code_and_pages() {
        let want = "x:1: `normalis` is British spelling: write `normaliz`";
        for (path, text) in [
            ("crates/hlo/src/x.rs", "let normalised = parallelism;"),
            ("docs/x.md", "A normalisation."),
            ("scripts/x.sh", "echo Normalising"),
        ] {
            assert_eq!(findings(path, text), [want.replacen('x', path, 1)]);
        }
        // Recorded data is spelled by its source.
        assert_eq!(findings("tests/hlo/x.hlo", "normalised"), [""; 0]);
    }

    #[test]
    fn phrases_are_found_as_whole_words_in_comments() {
        let found = findings("crates/hlo/src/x.rs", "// Sizes of so many elements.\nlet x = \"so many\";");
        assert!(found.len() == 1 && found[0].starts_with("crates/hlo/src/x.rs:1: `so many`"), "{found:?}");
        assert_eq!(findings("crates/hlo/src/x.rs", "// All of it is untold."), [""; 0]);
        assert_eq!(findings("scripts/x.py", "f()  # behind the loop").len(), 1);
        assert_eq!(findings("scripts/x.py", "'#' # after the loop").len(), 0);
    }

    #[test]
    fn doc_comments_open_with_a_noun_or_a_verb() {
        assert_eq!(findings("crates/hlo/src/x.rs", "/// Whether it is even.\nfn f() {}\n").len(), 1);
        assert_eq!(findings("crates/hlo/src/x.rs", "//! What is here?\n"), [""; 0]);
        assert_eq!(findings("crates/hlo/src/x.rs", "// Whether it is even depends on the bound.\n"), [""; 0]);
        // The second paragraph of a comment is not its opening.
        assert_eq!(
            findings("crates/hlo/src/x.rs", "/// A size.\n///\n/// What is odd is padded.\n"),
            [""; 0]
        );
    }

    #[test]
    fn comment_lines_are_at_most_100_columns() {
        let long = format!("// {}\n", "a".repeat(98));
        assert_eq!(findings("crates/hlo/src/x.rs", &long).len(), 1);
        assert_eq!(findings("crates/hlo/src/x.rs", &long.replacen("aa", "", 1)).len(), 0);
        let address = format!("// https://{}\n", "a".repeat(98));
        assert_eq!(findings("crates/hlo/src/x.rs", &address), [""; 0]);
    }
}
