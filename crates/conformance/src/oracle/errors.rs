//! Erroneous graphs and configs: the tool must reject each with one message that names the culprit,
//! in bounded time and memory, and must not leave files.

use super::config;
use super::program;
use super::tools::{Model, Output, Settings, Tools, describe_output, run};
use super::{Check, read_json, values};
use crate::tolerance::Tolerance;
use shape::Literal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time limit for rejecting an erroneous input.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Limit of the address space in KiB.
const ADDRESS_SPACE: &str = "2097152";
/// Words that the message must contain, by entry: the node, feed, fetch, or variable that the entry
/// is about (for `no_fetch`, the missing item).
const CULPRITS: &[(&str, &[&str])] = &[
    ("bad_cpp_feed_name", &["a-b"]),
    ("cycle", &["a", "b"]),
    ("data_dependent_shape", &["w"]),
    ("duplicate_feed", &["x"]),
    ("duplicate_feed_name", &["a"]),
    ("duplicate_node", &["x"]),
    ("empty_feed_node", &["feed"]),
    ("empty_fetch_node", &["fetch"]),
    ("feed_type_mismatch", &["x"]),
    ("incompatible_shapes", &["x_y_sum"]),
    ("missing_input", &["gone", "sum"]),
    ("negative_index", &["sum"]),
    ("no_fetch", &["fetch"]),
    ("no_kernel", &["n", "StringLength"]),
    ("no_such_feed", &["nosuch"]),
    ("no_such_fetch", &["nosuch"]),
    ("no_such_output", &["sum"]),
    ("no_such_variable", &["w"]),
    ("placeholder_not_fed", &["y"]),
    ("shape_from_feed", &["s", "r"]),
    ("type_mismatch", &["sum"]),
    ("unknown_dimension", &["x"]),
    ("unknown_op_needed", &["z", "SomeUnknownOp"]),
    ("unknown_rank", &["x"]),
    ("variable_not_in_config", &["v"]),
    ("variable_not_written", &["v"]),
    ("variable_shape_mismatch", &["v"]),
    ("variable_written_but_readonly", &["v"]),
];

/// Returns a check for each entry in the directory's index.
pub(super) fn checks(directory: &Path) -> Result<Vec<Check>, String> {
    let index = directory.join("index.json");
    if !index.is_file() {
        return Ok(Vec::new());
    }
    let index = read_json(&index)?;
    let index = index.as_object().ok_or("expected an object in index.json")?;
    let entry = |(name, what): (&String, &serde_json::Value)| {
        let (path, name) = (directory.join(name), name.clone());
        let what = what.as_str().unwrap_or_default().to_owned();
        Check::new(format!("errors/{name}"), move |tools, work| {
            check(tools, &path, &name, work).map_err(|e| format!("{what}: {e}"))
        })
    };
    Ok(index.iter().map(entry).collect())
}

fn check(tools: &Tools, entry: &Path, name: &str, work: &Path) -> Result<String, String> {
    let (graph, config) = (entry.join("graph.pb"), entry.join("config.pbtxt"));
    let model = Model {
        graph: &graph,
        settings: Settings::Config(&config),
        class: "oracle::Model",
        entry_point: "oracle_model",
    };
    let outputs = work.join("outputs");
    std::fs::create_dir(&outputs).map_err(|e| e.to_string())?;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {ADDRESS_SPACE} && exec \"$@\""), "sh"]);
    command.arg(&tools.tool).args(tools.command(&model, &outputs));
    let output = run(&mut command, work, "tfcompile", TIME_LIMIT)?;
    if output.status.success() {
        return check_acceptance(tools, &model, &config, name, work);
    }
    let leftovers: Vec<PathBuf> = std::fs::read_dir(&outputs)
        .map_err(|e| e.to_string())?
        .filter_map(|file| Some(file.ok()?.path()))
        .collect();
    if !leftovers.is_empty() {
        return Err(format!("expected no output files, found {leftovers:?}"));
    }
    let culprits =
        CULPRITS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, culprits)| culprits);
    check_refusal(&output, culprits)
}

/// Returns the first line if the output is one message, with exit status 1, that names the
/// culprits.
fn check_refusal(output: &Output, culprits: &[&str]) -> Result<String, String> {
    if output.status.code() != Some(1) {
        return Err(format!("expected exit status 1, got {}", describe_output(output)));
    }
    let message = output.stderr.trim();
    let first = message.lines().next().ok_or("rejected without a message")?;
    if message.contains("panicked at") || message.contains("stack backtrace") {
        return Err(format!("the tool panicked: {first}"));
    }
    let heads = message.lines().filter(|line| is_head(line)).count();
    if message.contains("\n\n") || heads > 1 {
        return Err(format!("more than one message: {}", message.replace('\n', " | ")));
    }
    match culprits.iter().find(|culprit| !names(message, culprit)) {
        Some(culprit) => Err(format!("the message does not name {culprit:?}: {message}")),
        None => Ok(first.to_owned()),
    }
}

/// True if a line starts a message: it begins with the kind of error and a colon.
fn is_head(line: &str) -> bool {
    let kind = line.split_once(':').map(|(kind, _)| kind.to_ascii_lowercase());
    let kinds = [
        "error",
        "invalid",
        "invalid arguments",
        "unsupported",
        "unimplemented",
        "internal",
        "internal error",
        "tfcompile",
    ];
    kind.is_some_and(|kind| kinds.contains(&kind.as_str()))
}

/// True if a message contains this word. A name of one or two letters must be a whole word and look
/// like a name (in quotes, after a colon or the kind of thing it is, before an output index),
/// because it could occur in any sentence.
fn names(message: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '-');
    message.match_indices(word).any(|(at, _)| {
        let (before, after) = (&message[..at], message[at + word.len()..].chars().next());
        if before.ends_with(part_of_name) {
            return false;
        }
        let marked = before.ends_with(['\'', '"', '`'])
            || [": ", "node ", "feed ", "fetch ", "variable ", "placeholder "]
                .iter()
                .any(|kind| before.ends_with(kind))
            || after == Some(':');
        word.len() > 2 || (marked && !after.is_some_and(part_of_name))
    })
}

/// Checks the result if the tool accepts the input, which is permitted for two inputs that have an
/// answer.
fn check_acceptance(
    tools: &Tools,
    model: &Model<'_>,
    config: &Path,
    name: &str,
    work: &Path,
) -> Result<String, String> {
    let float = |values: &[f32]| Literal::from_elements(&[values.len() as i64], values);
    let (feeds, want) = match name {
        // The positions of the nonzero elements. The buffer may be larger.
        "data_dependent_shape" => (vec![float(&[0.0, 3.0])], Literal::from_elements(&[1], &[1i64])),
        // A feed without a rank is treated as a scalar.
        "unknown_rank" => (vec![float(&[5.0]), float(&[1.0, 2.0])], float(&[6.0, 7.0])),
        _ => return Err("the tool accepted the input".to_owned()),
    };
    let config = config::read(config)?;
    let mut session = program::start(tools, model, &config, work)?;
    session.new_case(&[])?;
    let answer = session.run(&feeds.iter().map(|feed| &feed.bytes()[..]).collect::<Vec<_>>())?;
    let size = want.bytes().len();
    let got = answer.results[0].get(..size).ok_or("accepted, but the result is too small")?;
    values::check_whole("accepted, but the result", got, &want, Tolerance::EXACT)?;
    session.finish().map(|_| "accepted with the correct answer".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn output(status: i32, stderr: &str) -> Output {
        let status = ExitStatus::from_raw(status);
        Output { status, stdout: String::new(), stderr: stderr.to_owned(), time: Duration::ZERO }
    }

    #[test]
    fn a_refusal_is_one_message_with_the_culprit_and_status_1() {
        let fine = output(1 << 8, "INVALID ARGUMENTS: node 'sum' needs\nits second input\n\n");
        assert!(check_refusal(&fine, &["sum"]).is_ok());
        assert!(check_refusal(&fine, &["sum", "gone"]).unwrap_err().contains("gone"));
        assert!(check_refusal(&output(2 << 8, "x 'sum'"), &["sum"]).unwrap_err().contains("status: 2"));
        assert!(check_refusal(&output(6, "x 'sum'"), &["sum"]).unwrap_err().contains("signal"));
        assert!(check_refusal(&output(1 << 8, ""), &[]).is_err());
        assert!(
            check_refusal(&output(1 << 8, "error: first\nerror: second"), &[])
                .unwrap_err()
                .contains("more than one")
        );
        assert!(check_refusal(&output(1 << 8, "thread 'main' panicked at src/x.rs"), &[]).is_err());
    }

    #[test]
    fn short_names_have_to_look_like_names() {
        assert!(!names("a feed is wrong", "a"));
        assert!(names("feed 'a' is wrong", "a"));
        assert!(names("feed \"x:0\" is fed twice", "x"));
        assert!(names("duplicate feed name: a", "a"));
        assert!(names("x:0 is fed twice", "x"));
        assert!(!names("needs a node: another", "a"));
        assert!(!names("feed 'ab' is wrong", "a"));
        assert!(names("two fetches", "fetch"));
        assert!(!names("x_sum", "sum"));
    }
}
