//! Budgets: limits for the figures of a report, in a subset of TOML.
//!
//! ```toml
//! latency = "10 ms"
//! ram = "2 MB"
//!
//! [error]
//! "y" = 1e-5
//! ```

use crate::data::{Report, Source};
use support::{Error, Result};
use terminal::{bytes, seconds};

/// Upper bound of the bytes of a budget.
const MAX_BYTES: usize = 1 << 20;

/// A figure of a report in bytes.
type Bytes = fn(&Report) -> u64;

/// Keys of sizes with their figures.
const BYTES: [(&str, Bytes); 5] = [
    ("size", |report| report.sizes.size()),
    ("code", |report| report.sizes.code),
    ("constants", |report| report.sizes.constants),
    ("arena", |report| report.sizes.arena),
    ("ram", |report| report.sizes.ram()),
];

/// Units of sizes in bytes.
const SIZES: [(&str, f64); 7] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// Units of times in seconds.
const TIMES: [(&str, f64); 4] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];

/// Limits with the lines that state them.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Name of the file.
    pub file: String,
    /// Limits in the order of the file.
    pub limits: Vec<(usize, Limit)>,
}

/// A limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// Upper bound of the measured latency in seconds.
    Latency(f64),
    /// Upper bound of a size in bytes, by the key of the figure.
    Bytes(&'static str, u64),
    /// Upper bound of the relative error of a result, by its name; `*` is every result.
    Error(String, f64),
}

/// A line of a budget and the figure that it limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Number of the line, from 1.
    pub line: usize,
    /// Key of the line, such as `ram` or `error.y`.
    pub key: String,
    /// The figure and its limit in words.
    pub message: String,
    /// True if the figure is within its limit.
    pub passed: bool,
}

impl Budget {
    /// Parses a budget. `file` appears in messages.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        if text.len() > MAX_BYTES {
            return Err(Error::invalid(format!(
                "{file}: a budget may have at most {MAX_BYTES} bytes, got {}",
                text.len()
            )));
        }
        let mut limits: Vec<(usize, Limit)> = Vec::new();
        let mut in_errors = false;
        let mut keys = std::collections::BTreeSet::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = |what: String| Error::invalid(format!("{file}:{}: {what}", number + 1));
            let line = without_comment(line).trim();
            if line.is_empty() {
                continue;
            }
            if line.starts_with('[') {
                in_errors = line == "[error]";
                if !in_errors {
                    return Err(wrong(format!("unknown section {line}; expected [error]")));
                }
                continue;
            }
            let (key, value) = split_pair(line)
                .ok_or_else(|| wrong("expected KEY = VALUE, such as ram = \"2 MB\"".to_owned()))?;
            if !keys.insert((in_errors, key.clone())) {
                return Err(wrong(format!("duplicate key '{key}'; delete one of the lines")));
            }
            let limit = if in_errors { error_limit(key, &value) } else { figure_limit(&key, &value) };
            limits.push((number + 1, limit.map_err(wrong)?));
        }
        if limits.is_empty() {
            return Err(Error::invalid(format!(
                "{file}: a budget without limits; add one, such as ram = \"2 MB\""
            )));
        }
        Ok(Self { file: file.to_owned(), limits })
    }

    /// True if a line limits the errors of results.
    pub fn needs_errors(&self) -> bool {
        self.limits.iter().any(|(_, limit)| matches!(limit, Limit::Error(..)))
    }

    /// Compares the figures of a report with the limits. A missing figure breaks its line.
    pub fn check(&self, report: &Report) -> Vec<Finding> {
        self.limits.iter().flat_map(|(line, limit)| findings(*line, limit, report)).collect()
    }
}

fn findings(line: usize, limit: &Limit, report: &Report) -> Vec<Finding> {
    let finding = |key: String, message: String, passed| Finding { line, key, message, passed };
    match limit {
        Limit::Latency(limit) => {
            let measured = report.time.filter(|time| time.source == Source::Measured);
            let Some(time) = measured else {
                let why = "no measured time: only a model whose code runs on this machine has one";
                return vec![finding("latency".to_owned(), format!("latency: {why}"), false)];
            };
            let (now, most) = (seconds(time.seconds), seconds(*limit));
            let message = compared("latency", time.seconds, *limit, &now, &most);
            vec![finding("latency".to_owned(), message, time.seconds <= *limit)]
        }
        &Limit::Bytes(key, limit) => {
            let figure = BYTES.iter().find(|(name, _)| *name == key).map_or(0, |(_, of)| of(report));
            let (now, most) = (bytes(figure), bytes(limit));
            let message = compared(key, figure as f64, limit as f64, &now, &most);
            vec![finding(key.to_owned(), message, figure <= limit)]
        }
        Limit::Error(name, limit) => {
            let matching: Vec<_> =
                report.results.iter().filter(|result| name == "*" || *name == result.name).collect();
            if matching.is_empty() {
                let known: Vec<String> =
                    report.results.iter().map(|result| format!("'{}'", result.name)).collect();
                let why = match (report.results.is_empty(), report.kind.as_str()) {
                    (true, "object") => "errors are measured on models, not on compiled files".to_owned(),
                    (true, _) => "no result was compared with the evaluator".to_owned(),
                    (false, _) => format!("no such result; the results are {}", known.join(", ")),
                };
                return vec![finding(format!("error.{name}"), format!("error of '{name}': {why}"), false)];
            }
            let of_result = |result: &&crate::data::ResultError| {
                let what = format!("error of '{}'", result.name);
                let (now, most) = (format!("{:.2e}", result.relative), format!("{limit:.2e}"));
                let message = compared(&what, result.relative, *limit, &now, &most);
                finding(format!("error.{}", result.name), message, result.relative <= *limit)
            };
            matching.iter().map(of_result).collect()
        }
    }
}

/// Describes a figure and its limit.
fn compared(what: &str, figure: f64, limit: f64, now: &str, most: &str) -> String {
    if figure <= limit {
        return format!("{what} is {now}, within the budget of {most}");
    }
    let more = match figure / limit {
        ratio if limit <= 0.0 || ratio.is_nan() => String::new(),
        ratio if ratio < 10.0 => format!(", {:.1}% more", 100.0 * (ratio - 1.0)),
        ratio => format!(", {ratio:.0} times as much"),
    };
    format!("{what} is {now}, over the budget of {most}{more}")
}

/// A limit of a time or a size.
fn figure_limit(key: &str, value: &Value) -> Result<Limit, String> {
    if key == "latency" {
        return quantity(value, &TIMES)
            .map(Limit::Latency)
            .ok_or_else(|| "latency: expected a time, such as \"10 ms\", in ns, us, ms, or s".to_owned());
    }
    let Some((name, _)) = BYTES.iter().find(|(name, _)| *name == key) else {
        let names: Vec<&str> = BYTES.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "unknown key '{key}'; expected latency, {}, or a section [error]",
            names.join(", ")
        ));
    };
    let bytes = match value {
        Value::Number(number) => Some(*number),
        Value::Text(_) => quantity(value, &SIZES),
    };
    let bytes = bytes.filter(|bytes| (0.0..=1e18).contains(bytes));
    bytes.map(|bytes| Limit::Bytes(name, bytes as u64)).ok_or_else(|| {
        format!("{key}: expected a size, such as \"2 MB\", in B, kB, MB, GB, KiB, MiB, or GiB")
    })
}

/// A limit of a result's error.
fn error_limit(name: String, value: &Value) -> Result<Limit, String> {
    match value {
        Value::Number(number) if *number >= 0.0 => Ok(Limit::Error(name, *number)),
        _ => Err(format!("'{name}': expected the largest relative error, such as 1e-5")),
    }
}

enum Value {
    Number(f64),
    Text(String),
}

/// The number of a text with one of the units.
fn quantity(value: &Value, units: &[(&str, f64)]) -> Option<f64> {
    let Value::Text(text) = value else { return None };
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let number: f64 = number.trim().parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

/// The line up to a `#` outside quotes.
fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            '#' if !quoted => return &line[..at],
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    line
}

/// Splits a line into its key and its value.
fn split_pair(line: &str) -> Option<(String, Value)> {
    let (key, rest) = if line.starts_with('"') {
        quoted(line)?
    } else {
        let (key, rest) = line.split_at(line.find('=')?);
        let key = key.trim();
        let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        (!key.is_empty() && key.chars().all(is_bare)).then(|| (key.to_owned(), rest))?
    };
    let value = rest.trim_start().strip_prefix('=')?.trim();
    if value.starts_with('"') {
        let (text, rest) = quoted(value)?;
        return rest.trim().is_empty().then_some((key, Value::Text(text)));
    }
    let number: f64 = value.replace('_', "").parse().ok()?;
    number.is_finite().then_some((key, Value::Number(number)))
}

/// The string at the start of a text, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut content, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Some((content, &text[at + 1..])),
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            '"' | '\\' => content.push(c),
            _ if escaped => return None,
            _ => content.push(c),
        }
        escaped = false;
    }
    None
}
