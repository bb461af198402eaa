//! Findings of a budget in the formats of CI systems.

use crate::budget::Finding;
use std::fmt::Write as _;

/// Annotations of GitHub's workflows, one for each broken line.
pub fn github(file: &str, findings: &[Finding]) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let mut text = String::new();
    for Finding { line, key, message, .. } in findings.iter().filter(|finding| !finding.passed) {
        let title = property(&format!("budget {key}"));
        let _ =
            writeln!(text, "::error file={},line={line},title={title}::{}", property(file), data(message));
    }
    text
}

/// A JUnit report with a test case for each line of the budget.
pub fn junit(file: &str, findings: &[Finding]) -> String {
    let failures = findings.iter().filter(|finding| !finding.passed).count();
    let (name, tests) = (escaped(file), findings.len());
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites tests=\"{tests}\" failures=\"{failures}\">");
    let _ = writeln!(text, "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\">");
    for Finding { line, key, message, passed } in findings {
        let _ = write!(
            text,
            "    <testcase classname=\"{name}\" name=\"{}\" file=\"{name}\" line=\"{line}\"",
            escaped(key)
        );
        let _ = if *passed {
            writeln!(text, "/>")
        } else {
            writeln!(text, ">\n      <failure message=\"{}\"/>\n    </testcase>", escaped(message))
        };
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// Escapes text for XML. Characters that XML excludes become question marks.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
