//! The child process that runs cases. It reads paths from one pipe and writes an answer for each to
//! the other, as one line of JSON. The parent survives anything that a case does to this process (a
//! crash, an infinite loop, a leak).

use crate::case::{Case, read_case};
use crate::compare::check_results;
use serde_json::{Value, json};
use shape::Literal;
use std::cell::RefCell;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use support::{ErrorKind, Result};

/// Outcome of a case. All variants except `Passed` carry the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The results are correct.
    Passed,
    /// The compiler reported that it does not support the graph.
    Unsupported(String),
    /// A result differs from the recorded answers.
    Wrong(String),
    /// The compiler rejected a valid graph or reported a failure, or the case file cannot be read.
    Refused(String),
    /// A panic, a signal, or a timeout.
    Crashed(String),
}

impl Outcome {
    /// Returns the word for tables and files.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unsupported(_) => "unsupported",
            Self::Wrong(_) => "wrong",
            Self::Refused(_) => "refused",
            Self::Crashed(_) => "crashed",
        }
    }

    /// Returns the reason; empty for a pass.
    pub fn reason(&self) -> &str {
        match self {
            Self::Passed => "",
            Self::Unsupported(why) | Self::Wrong(why) | Self::Refused(why) | Self::Crashed(why) => why,
        }
    }

    /// Formats a line of the protocol, without the newline.
    pub fn to_line(&self) -> String {
        json!({"outcome": self.word(), "reason": self.reason()}).to_string()
    }

    /// Parses a line of the protocol.
    pub fn from_line(line: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(line).ok()?;
        let reason = json["reason"].as_str()?.to_owned();
        Some(match json["outcome"].as_str()? {
            "passed" => Self::Passed,
            "unsupported" => Self::Unsupported(reason),
            "wrong" => Self::Wrong(reason),
            "refused" => Self::Refused(reason),
            "crashed" => Self::Crashed(reason),
            _ => return None,
        })
    }
}

/// Runs a case's graph on its arguments. Results are the fetches, then the written variables.
pub type Engine<'a> = dyn Fn(&Case) -> Result<Vec<Literal>> + 'a;

/// Answers each path of `input` until it ends.
pub fn serve(engine: &Engine<'_>, input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    std::panic::set_hook(Box::new(|panic| {
        PANIC.with(|last| *last.borrow_mut() = Some(panic.to_string().replace('\n', " ")));
    }));
    for line in input.lines() {
        let outcome = run_case(engine, Path::new(&line?));
        writeln!(output, "{}", outcome.to_line())?;
        output.flush()?;
    }
    Ok(())
}

thread_local! {
    /// Location and message of the last panic, recorded by the hook.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs one case and compares the results.
pub fn run_case(engine: &Engine<'_>, path: &Path) -> Outcome {
    let case = match read_case(path) {
        Ok(case) => case,
        Err(error) => return Outcome::Refused(format!("case file: {error}")),
    };
    let got = match catch_unwind(AssertUnwindSafe(|| engine(&case))) {
        Ok(Ok(got)) => got,
        Ok(Err(error)) => {
            return match error.kind() {
                ErrorKind::Unsupported => Outcome::Unsupported(error.to_string()),
                ErrorKind::Invalid => Outcome::Refused(format!("invalid: {error}")),
                ErrorKind::Internal => Outcome::Refused(format!("internal: {error}")),
            };
        }
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let hook = PANIC.with(RefCell::take);
            return Outcome::Crashed(hook.or(text).unwrap_or_else(|| "panicked".to_owned()));
        }
    };
    let metadata = &case.metadata;
    match check_results(&got, &case.expected, metadata.tolerance, metadata.values) {
        Ok(()) => Outcome::Passed,
        Err(why) => Outcome::Wrong(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use support::Error;

    /// Writes a case with one feed `[1, 2]` and one fetch `[2, 3]` (the engine under test adds
    /// one).
    fn case_file(name: &str) -> PathBuf {
        let bytes = |text: &str| Literal::from_elements(&[text.len() as i64], text.as_bytes());
        let tensor = r#"[{"dtype": "int32", "shape": [2]}]"#;
        let meta = format!(
            r#"{{"ops": {{"Add": 1}}, "xla_ok": true, "compare": "values", "atol": 0.0, "rtol": 0.0,
                "dynamic_output": [], "feeds": {tensor}, "fetches": {tensor}, "variables": []}}"#
        );
        let arrays = BTreeMap::from([
            ("meta.json".to_owned(), bytes(&meta)),
            ("graph.pb".to_owned(), bytes("graph")),
            ("config.pbtxt".to_owned(), bytes("config")),
            ("feed/0".to_owned(), Literal::from_elements(&[2], &[1i32, 2])),
            ("fetch_tf/0".to_owned(), Literal::from_elements(&[2], &[2i32, 3])),
        ]);
        let path = std::env::temp_dir().join(format!("worker-test-{}-{name}.npz", std::process::id()));
        std::fs::write(&path, npz::write(&arrays).unwrap()).unwrap();
        path
    }

    fn outcome(name: &str, engine: &Engine<'_>) -> Outcome {
        let path = case_file(name);
        let outcome = run_case(engine, &path);
        std::fs::remove_file(path).unwrap();
        outcome
    }

    #[test]
    fn every_kind_of_end_has_its_outcome() {
        let right = |case: &Case| {
            assert_eq!((&case.graph[..], &case.config[..]), (&b"graph"[..], &b"config"[..]));
            let values = case.arguments[0].to_vec::<i32>().unwrap();
            Ok(vec![Literal::from_elements(&[2], &[values[0] + 1, values[1] + 1])])
        };
        assert_eq!(outcome("right", &right), Outcome::Passed);
        let same = |case: &Case| Ok(case.arguments.clone());
        assert!(matches!(outcome("same", &same), Outcome::Wrong(why) if why.contains("want 2")));
        let unsupported = |_: &Case| Err(Error::unsupported("no Add"));
        assert_eq!(outcome("unsupported", &unsupported), Outcome::Unsupported("no Add".to_owned()));
        let invalid = |_: &Case| Err(Error::invalid("bad"));
        assert!(matches!(outcome("invalid", &invalid), Outcome::Refused(_)));
        let panics = |_: &Case| -> Result<Vec<Literal>> { panic!("out of luck") };
        assert!(matches!(outcome("panics", &panics), Outcome::Crashed(why) if why.contains("out of luck")));
        assert!(matches!(run_case(&same, Path::new("no such file")), Outcome::Refused(_)));
    }

    #[test]
    fn an_outcome_survives_the_pipe() {
        for outcome in [
            Outcome::Passed,
            Outcome::Unsupported("two\nlines and \"quotes\"".to_owned()),
            Outcome::Wrong("w".to_owned()),
            Outcome::Refused("r".to_owned()),
            Outcome::Crashed("c".to_owned()),
        ] {
            let line = outcome.to_line();
            assert!(!line.contains('\n'));
            assert_eq!(Outcome::from_line(&line), Some(outcome));
        }
        assert_eq!(Outcome::from_line("LLVM ERROR: no"), None);
    }
}
