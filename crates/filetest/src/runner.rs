//! Runs the test files of a folder.

use crate::case::{Case, LineError};
use crate::directive::{ALL, Directive, Outcome};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs every `.hlo` file in a folder with all directives. See [`run_with`].
pub fn run(folder: &Path) -> Result<usize, String> {
    run_with(folder, ALL)
}

/// Runs every `.hlo` file in a folder. Returns the number of files, or all failures.
///
/// With `BLESS=1` in the environment, updates the expected outputs. With `FILETEST=PART`, runs only
/// files whose path contains PART.
pub fn run_with(folder: &Path, directives: &[Directive]) -> Result<usize, String> {
    let bless = std::env::var("BLESS").is_ok_and(|value| value == "1");
    let filter = std::env::var("FILETEST").unwrap_or_default();
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.retain(|file| file.to_string_lossy().contains(&filter));
    if files.is_empty() {
        return Err(format!("{}: no test files found", folder.display()));
    }
    let failures: Vec<String> = files
        .iter()
        .filter_map(|file| {
            run_file(file, directives, bless).err().map(|why| format!("{}: {why}", file.display()))
        })
        .collect();
    if failures.is_empty() {
        return Ok(files.len());
    }
    Err(format!("{} of {} file tests failed\n{}", failures.len(), files.len(), failures.join("\n")))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "hlo") {
            files.push(path);
        }
    }
    Ok(())
}

fn run_file(file: &Path, directives: &[Directive], bless: bool) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let case = Case::parse(&text)?;
    let directive = directives.iter().find(|directive| directive.name == case.directive);
    let directive = directive.ok_or_else(|| format!("unknown directive '{}'", case.directive))?;
    match judge(&case, (directive.run)(&case)) {
        Verdict::Passed => Ok(()),
        Verdict::OtherText(text) if bless && case.expected.is_some() => {
            fs::write(file, case.with_expected(&text)).map_err(|error| error.to_string())
        }
        Verdict::OtherText(text) => {
            Err(format!("the output differs from the expected text (BLESS=1 accepts it):\n{text}"))
        }
        Verdict::Failed(why) => Err(why),
    }
}

enum Verdict {
    Passed,
    /// The output, which differs from the expected text.
    OtherText(String),
    Failed(String),
}

fn judge(case: &Case, outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Text { .. } if !case.errors.is_empty() => {
            Verdict::Failed(format!("expected {} errors, found none", case.errors.len()))
        }
        Outcome::Text { text, unless_expected } => match case.expected.clone().or(unless_expected) {
            Some(expected) if expected == text => Verdict::Passed,
            Some(_) => Verdict::OtherText(text),
            None => Verdict::Failed("missing arrow '// ==>' and expected output".to_owned()),
        },
        Outcome::Errors(errors) if case.expected.is_some() => {
            let errors: Vec<String> = errors.iter().map(|e| format!("  {}: {}", e.line, e.message)).collect();
            Verdict::Failed(format!("expected a text, found errors\n{}", errors.join("\n")))
        }
        Outcome::Errors(actual) => match difference(&case.errors, &actual) {
            None => Verdict::Passed,
            Some(why) => Verdict::Failed(why),
        },
    }
}

/// Pairs each expected error with an actual one, and reports the unpaired ones on both sides.
fn difference(expected: &[LineError], actual: &[LineError]) -> Option<String> {
    let mut unpaired: Vec<&LineError> = actual.iter().collect();
    let mut lines = Vec::new();
    for error in expected {
        let matching =
            unpaired.iter().position(|f| f.line == error.line && f.message.contains(&error.message));
        match matching {
            Some(position) => {
                unpaired.remove(position);
            }
            None => lines.push(format!("  missing: {}: {}", error.line, error.message)),
        }
    }
    lines.extend(unpaired.iter().map(|error| format!("  unexpected: {}: {}", error.line, error.message)));
    (!lines.is_empty()).then(|| format!("the errors differ\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: usize, message: &str) -> LineError {
        LineError { line, message: message.to_owned() }
    }

    #[test]
    fn errors_must_agree_in_line_and_in_part_of_the_message() {
        let actual = [error(3, "unknown operand 'y'"), error(4, "no")];
        assert_eq!(difference(&[error(4, "no"), error(3, "operand 'y'")], &actual), None);
        for expected in [&[error(3, "operand"), error(5, "no")][..], &[error(3, "operand")], &[]] {
            assert!(difference(expected, &actual).is_some(), "{expected:?}");
        }
        assert!(
            difference(&[error(3, "operand"), error(3, "operand")], &actual[..1]).is_some(),
            "one error is one"
        );
    }

    #[test]
    fn a_text_passes_only_if_it_is_the_expected_one() {
        let case = |expected: &str| {
            Case::parse(&format!("// test: x\nin\n// ==>\n{expected}")).expect("a directive")
        };
        let outcome = || Outcome::Text { text: "out\n".to_owned(), unless_expected: None };
        assert!(matches!(judge(&case("out\n"), outcome()), Verdict::Passed));
        assert!(matches!(judge(&case("other\n"), outcome()), Verdict::OtherText(_)));
        assert!(matches!(judge(&case("out\n"), Outcome::Errors(Vec::new())), Verdict::Failed(_)));
        let without = Case::parse("// test: x\nin\n").expect("a directive");
        assert!(matches!(judge(&without, outcome()), Verdict::Failed(_)));
    }
}
