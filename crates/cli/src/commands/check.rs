//! `tfcompile check`: lists everything that prevents a model from compiling.

use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::files::outputs;
use crate::program::model::load;
use crate::program::module_file;
use crate::report::dump::Dumper;
use crate::report::progress::Progress;
use crate::report::text::{print_json, table, with_quantization};
use clap::Args;
use compiler::{BackOptions, Checked, Input, Source};
use serde_json::{Value, json};
use shape::Quantization;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use support::{Error, ErrorKind, Result};
use terminal::{Screen, Style, printable};

/// `tfcompile check`.
#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Nouns for the parts of a model and for their kinds.
struct Nouns {
    part: &'static str,
    kind: &'static str,
}

const GRAPH: Nouns = Nouns { part: "node", kind: "op" };
const PROGRAM: Nouns = Nouns { part: "instruction", kind: "opcode" };

/// Maximum number of nodes listed for one problem.
const LISTED: usize = 5;

/// Checks a model and prints the problems. Returns an error if it cannot be compiled.
pub(crate) fn run(arguments: &Check) -> Result<()> {
    let model = &arguments.model;
    let mut progress = Progress::new(model, "check");
    let mut dumper = Dumper::new(&XlaFlags::default());
    if let Some((input, _)) = module_file::read(model, &[], &mut progress, &mut dumper)? {
        return check_program(arguments, input, progress);
    }
    let (loaded, file) = load(model)?;
    let (config, missing, notes) = match file {
        Some((config, _)) => (config, Vec::new(), Vec::new()),
        None => {
            let inferred = compiler::guarded(|| loaded.infer())?;
            (inferred.config, inferred.problems, inferred.notes)
        }
    };
    let (name, graph) = (loaded.name, loaded.graph);
    let options = options(model)?;
    let bounds = crate::args::parse::loop_bounds(&model.loop_bound)?;
    let checked =
        compiler::guarded(|| compiler::check(graph, &config, &missing, &bounds, &options, &mut progress))?;
    progress.finish();
    report(arguments, &name, &GRAPH, &checked, &notes)
}

/// Options of the compilation that the flags describe.
fn options(model: &ModelArgs) -> Result<BackOptions> {
    Ok(BackOptions {
        plan: model.plan_options()?,
        devices: model.devices()?,
        ..BackOptions::new(model.target("")?, "model")
    })
}

/// Checks a program in HLO or StableHLO.
fn check_program(arguments: &Check, input: Input, mut progress: Progress) -> Result<()> {
    let model = &arguments.model;
    let Source::Hlo(program) = input.source else {
        return Err(Error::internal("expected an HLO source for a program file, got a graph"));
    };
    let options = options(model)?;
    let checked = compiler::guarded(|| Ok(compiler::check_program(program, &options, &mut progress)))?;
    progress.finish();
    let name = model.model.display().to_string();
    report(arguments, &name, &PROGRAM, &checked, &[])
}

/// Prints the problems. Returns an error if there are any. `nouns` name what is counted.
fn report(arguments: &Check, name: &str, nouns: &Nouns, checked: &Checked, notes: &[String]) -> Result<()> {
    if arguments.json {
        print_json("check", name, to_json(checked, notes))?
    } else {
        outputs::print(&to_text(&Screen::stdout(), name, nouns, checked, notes))?
    }
    let Some(first) = checked.problems.first() else { return Ok(()) };
    let count = match checked.problems.len() {
        1 => "1 problem".to_owned(),
        count @ compiler::MAX_PROBLEMS.. => format!("{count} problems or more"),
        count => format!("{count} problems"),
    };
    let error = Error::invalid(format!("{name} cannot be compiled: {count}"));
    Err(error.coded(first.error.code()))
}

/// Accessors of the class without duplicates: a written variable is both an argument and a result.
fn interface(checked: &Checked) -> impl Iterator<Item = &aot::Accessor> {
    let entries = &checked.accessors;
    let is_first = |(k, entry): &(usize, &aot::Accessor)| !entries[..*k].contains(entry);
    entries.iter().enumerate().filter(is_first).map(|(_, entry)| entry)
}

/// Name of the kind of an error.
fn kind(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Invalid => "invalid",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Internal => "internal",
    }
}

fn to_json(checked: &Checked, notes: &[String]) -> Value {
    let some = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
    let problems: Vec<Value> = checked
        .problems
        .iter()
        .map(|p| {
            json!({
                "kind": kind(&p.error),
                "code": p.error.code().to_string(),
                "node": some(&p.node),
                "op": some(&p.op),
                "message": p.error.message(),
            })
        })
        .collect();
    let ops: Vec<Value> = checked
        .ops
        .iter()
        .map(|(op, (count, supported))| json!({ "op": op, "nodes": count, "supported": supported }))
        .collect();
    let entries: Vec<Value> = interface(checked)
        .map(|a| {
            let mut entry = json!({
                "kind": a.kind,
                "node": a.node,
                "name": a.name,
                "shape": a.shape.to_string(),
                "accessor": a.accessor,
            });
            if let Some(Quantization { scale, zero_point }) = a.quantization {
                entry["scale"] = json!(scale);
                entry["zero_point"] = json!(zero_point);
            }
            entry
        })
        .collect();
    let dimensions: Vec<Value> = checked
        .dimensions
        .iter()
        .map(|(name, range)| json!({ "name": name, "min": range.low, "max": range.high }))
        .collect();
    json!({
        "compiles": checked.problems.is_empty(),
        "problems": problems,
        "warnings": checked.warnings,
        "notes": notes,
        "ops": ops,
        "interface": entries,
        "dimensions": dimensions,
    })
}

fn to_text(screen: &Screen, name: &str, nouns: &Nouns, checked: &Checked, notes: &[String]) -> String {
    let mut out = String::new();
    let nodes: usize = checked.ops.values().map(|(count, _)| count).sum();
    let counted = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let _ =
        writeln!(out, "{name}: {} of {}", counted(nodes, nouns.part), counted(checked.ops.len(), nouns.kind));
    for line in problem_lines(checked) {
        let _ = writeln!(out, "{line}");
    }
    let is_unsupported = |problem: &tf::Problem| problem.error.kind() == ErrorKind::Unsupported;
    if nouns.kind == GRAPH.kind && checked.problems.iter().any(is_unsupported) {
        out.push_str(
            "hint: feed the results of unsupported nodes, or fetch nodes that do not depend on them\n",
        );
    }
    checked.warnings.iter().for_each(|w| out.push_str(&format!("warning: {}\n", printable(w))));
    notes.iter().for_each(|n| out.push_str(&format!("note: {}\n", printable(n))));
    let mut ops: Vec<(&String, &(usize, bool))> = checked.ops.iter().collect();
    ops.sort_by_key(|(op, (count, supported))| (*supported, std::cmp::Reverse(*count), *op));
    let row = |(op, (count, supported)): (&String, &(usize, bool))| {
        let remark = if *supported { "" } else { "not supported" };
        vec![op.clone(), format!("{count:>6}"), remark.to_owned()]
    };
    out += &table(screen, "ops", &ops.into_iter().map(row).collect::<Vec<_>>());
    let interface: Vec<Vec<String>> = interface(checked)
        .map(|a| {
            let renamed = a.name.as_deref().unwrap_or(&a.node);
            let remark = if a.accessor.ends_with(renamed) || a.name.is_none() && a.kind != "variable" {
                String::new()
            } else {
                format!("for '{}', which is not a C++ identifier", printable(renamed))
            };
            vec![
                a.kind.to_owned(),
                a.node.clone(),
                with_quantization(a.shape.to_string(), a.quantization),
                format!("{}()", a.accessor),
                remark,
            ]
        })
        .collect();
    out += &table(screen, "interface", &interface);
    let dimensions = checked.dimensions.iter().map(|(name, range)| vec![name.clone(), range.to_string()]);
    out += &table(screen, "dimensions", &dimensions.collect::<Vec<_>>());
    if checked.problems.is_empty() {
        out += &(screen.style(Style::Good, "no problems: it compiles") + "\n");
    }
    out
}

/// Describes the problems, each in one or more lines. Problems that differ only in the node are
/// combined.
fn problem_lines(checked: &Checked) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for problem in &checked.problems {
        groups.entry((kind(&problem.error), problem.error.message())).or_default().push(&problem.node);
    }
    let mut lines = Vec::new();
    for ((kind, message), nodes) in groups {
        let names: Vec<String> = nodes
            .iter()
            .filter(|n| !n.is_empty())
            .take(LISTED)
            .map(|n| format!("'{}'", printable(n)))
            .collect();
        let more = nodes.len().saturating_sub(LISTED);
        let message: Vec<String> = message.lines().map(printable).collect();
        let message = message.join("\n  ");
        let is_named = nodes.len() == 1 && message.contains(&format!("'{}", printable(nodes[0])));
        lines.push(match (names.is_empty() || is_named, more) {
            (true, _) => format!("{kind}: {message}"),
            (false, 0) => format!("{kind}: {}: {message}", names.join(", ")),
            (false, more) => format!("{kind}: {} and {more} more: {message}", names.join(", ")),
        });
    }
    lines
}
