//! The list of known failures: a TOML file with one table, `[cases]`, that maps cases to the
//! reasons for their failure.
//!
//! The parser supports only the necessary part of TOML: comments, the table's header, and lines
//! `"CASE" = "REASON"` with basic strings and the escapes `\"` and `\\`.

use std::collections::BTreeMap;
use std::path::Path;

/// Reads the cases and reasons of a file. An error names the file and the line.
pub fn read(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, (usize, String)> {
    let mut known = BTreeMap::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let wrong = |why: &str| Err((at + 1, why.to_owned()));
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "[cases]" {
            if std::mem::replace(&mut is_open, true) {
                return wrong("a second [cases]");
            }
            continue;
        }
        if !is_open {
            return wrong("the line precedes [cases]");
        }
        let parsed = string(line).and_then(|(case, rest)| {
            let rest = rest.trim_start().strip_prefix('=')?.trim_start();
            let (reason, rest) = string(rest)?;
            let rest = rest.trim_start();
            (rest.is_empty() || rest.starts_with('#')).then_some((case, reason))
        });
        let Some((case, reason)) = parsed else {
            return wrong("expected a line of the form \"CASE\" = \"REASON\"");
        };
        if reason.trim().is_empty() {
            return wrong("missing reason of the case");
        }
        if known.insert(case, reason).is_some() {
            return wrong("the case is listed twice");
        }
    }
    Ok(known)
}

/// Splits a double-quoted string off the beginning of a text.
fn string(text: &str) -> Option<(String, &str)> {
    let mut characters = text.strip_prefix('"')?.char_indices();
    let mut value = String::new();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 2..])),
            '\\' => match characters.next()?.1 {
                escaped @ ('"' | '\\') => value.push(escaped),
                _ => return None,
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_and_reasons_are_read() {
        let text = "# what fails\n\n[cases]\n\"a/1\" = \"says \\\"no\\\"\" # truly\n  \"b/2\"=\"a \\\\ b\"\n";
        let known = parse(text).expect("well formed");
        let expected = [("a/1", "says \"no\""), ("b/2", "a \\ b")];
        assert_eq!(known, expected.map(|(case, reason)| (case.to_owned(), reason.to_owned())).into());
    }

    #[test]
    fn malformed_lists_are_rejected_with_the_line() {
        let wrong = |text: &str| parse(text).expect_err("no list");
        assert_eq!(wrong("\"a\" = \"b\"\n"), (1, "the line precedes [cases]".to_owned()));
        assert_eq!(wrong("[cases]\n\"a\" = \" \"\n"), (2, "missing reason of the case".to_owned()));
        assert_eq!(wrong("[cases]\n\"a\" = \"b\"\n\"a\" = \"c\"\n").0, 3);
        for line in ["a = \"b\"", "\"a\" \"b\"", "\"a\" = \"b\" c", "\"a\" = \"b\\n\"", "\"a\" = \"b"] {
            assert_eq!(wrong(&format!("[cases]\n{line}\n")).0, 2, "{line}");
        }
        assert!(parse("").expect("empty").is_empty());
    }
}
