//! `docs/walkthrough.md` follows one graph through every stage of the compiler. Each of its
//! listings must be what the stage produces. `make docs` rewrites the listings.

use compiler::{AotOptions, BackOptions, Input, Observer, Point, build};
use hlo::Module;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use target::Target;
use tf::InferOptions;

/// Name of the listing that is the model; it is also the name of the model's file.
const MODEL: &str = "edges.pbtxt";

/// The texts of the stages, by the names of their listings.
#[derive(Default)]
struct Stages(BTreeMap<&'static str, String>);

impl Observer for Stages {
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String) {
        let name = match stage {
            "plan" => "plan.txt",
            "buffers" => "buffers.txt",
            "kernel" => "nest.txt",
            _ => return,
        };
        self.0.insert(name, detail());
    }

    fn module(&mut self, point: Point<'_>, module: &Module) {
        let name = match point {
            Point::Imported => "imported.hlo",
            Point::Optimized => "optimized.hlo",
            Point::PipelineStart { .. } | Point::AfterPass { .. } | Point::PipelineEnd => return,
        };
        self.0.insert(name, module.to_text());
    }

    fn code(&mut self, llvm_ir: Option<&str>, assembly: Option<&str>) {
        self.0.insert("edges.ll", llvm_ir.expect("LLVM IR was requested").to_owned());
        self.0.insert("edges.s", assembly.expect("assembly was requested").to_owned());
    }
}

/// Compiles the model for a fixed processor, so that the host does not matter.
fn stages(model: &str) -> Stages {
    let graph = tf::source::parse_graph_def(model.to_owned().into_bytes().into(), MODEL).expect("a graph");
    let inferred = tf::infer(&graph, &InferOptions::default()).expect("an inferred config");
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "").expect("a target");
    let back = BackOptions { llvm_ir: true, assembly: true, ..BackOptions::new(target, "edges") };
    let mut stages = Stages::default();
    let outputs = build(Input::new(graph, inferred.config), &AotOptions::new("Edges", back), &mut stages);
    stages.0.insert("edges.h", outputs.expect("the model compiles").header);
    stages
}

/// The named fenced blocks of a page: the name, and the lines between the fences.
fn listings(page: &[&str]) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    let mut open: Option<(Option<String>, usize)> = None;
    for (number, line) in page.iter().enumerate() {
        let Some(info) = line.strip_prefix("```") else { continue };
        match open.take() {
            None => open = Some((info.split_once(' ').map(|(_, name)| name.to_owned()), number + 1)),
            Some((Some(name), begin)) => found.push((name, begin..number)),
            Some((None, _)) => {}
        }
    }
    found
}

fn is_gap(line: &str) -> bool {
    line.trim() == "..."
}

/// True if the listing has the lines of the stage. A line `...` stands for any number of lines.
fn is_excerpt(listing: &[&str], stage: &[&str]) -> bool {
    match (listing, stage) {
        ([], _) => stage.is_empty(),
        ([gap, rest @ ..], _) if is_gap(gap) => {
            (0..=stage.len()).any(|skipped| is_excerpt(rest, &stage[skipped..]))
        }
        ([line, rest @ ..], [first, others @ ..]) => {
            line.trim_end() == first.trim_end() && is_excerpt(rest, others)
        }
        _ => false,
    }
}

/// A listing with the current text: each part between two gaps keeps its first and its last line,
/// and gets the lines that the stage now has between them. `None` if the stage no longer has those
/// two lines.
fn updated<'s>(listing: &[&'s str], stage: &[&'s str]) -> Option<Vec<&'s str>> {
    if !listing.iter().any(|line| is_gap(line)) {
        return Some(stage.to_vec());
    }
    let mut lines = Vec::new();
    let mut rest = stage;
    for (number, part) in listing.split(|line| is_gap(line)).enumerate() {
        if number > 0 {
            lines.push("...");
        }
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let begin = rest.iter().position(|line| line.trim_end() == first.trim_end())?;
        let length = rest[begin..].iter().position(|line| line.trim_end() == last.trim_end())? + 1;
        lines.extend(&rest[begin..begin + length]);
        rest = &rest[begin + length..];
    }
    Some(lines)
}

#[test]
fn each_stage_of_the_walkthrough_is_what_the_compiler_produces() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/walkthrough.md");
    let text = std::fs::read_to_string(&path).expect("docs/walkthrough.md is readable");
    let page: Vec<&str> = text.lines().collect();
    let mut listings = listings(&page);
    let model = listings.iter().find(|(name, _)| name == MODEL).expect("the page has a model").1.clone();
    let stages = stages(&page[model].join("\n")).0;
    listings.retain(|(name, _)| name != MODEL);
    let shown: Vec<&str> = listings.iter().map(|(name, _)| name.as_str()).collect();
    let missing: Vec<_> = stages.keys().filter(|name| !shown.contains(name)).collect();
    assert!(missing.is_empty(), "the page has no listing of {missing:?}");

    let mut current = page.clone();
    for (name, range) in listings.into_iter().rev() {
        let stage = stages.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not the name of a stage"));
        let lines: Vec<&str> = stage.lines().collect();
        let listing = &page[range.clone()];
        if is_excerpt(listing, &lines) {
            continue;
        }
        assert!(
            std::env::var_os("UPDATE_DOCS").is_some(),
            "docs/walkthrough.md: {name} is out of date, run `make docs`; the stage is now\n{stage}"
        );
        let new = updated(listing, &lines);
        let new =
            new.unwrap_or_else(|| panic!("docs/walkthrough.md: choose a new excerpt of {name}\n{stage}"));
        current.splice(range, new);
    }
    if current != page {
        std::fs::write(&path, current.join("\n") + "\n").expect("docs/walkthrough.md is writable");
    }
}
