//! Formats the report as text and as JSON.

use super::{Comparison, KernelCheck, Mismatch, ProgramCheck, VerifyReport};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use terminal::{Column, Screen, Style, Table, percent, printable};

impl fmt::Display for VerifyReport {
    /// The text without colors and without a limit of its width.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(&Screen::PLAIN))
    }
}

/// A table of comparisons under a title.
fn table(title: &str, second: &str) -> Table {
    Table::new([
        Column::names(title),
        Column::words(second),
        Column::numbers("elements").optional(),
        Column::numbers("max ulp").optional(),
        Column::numbers("max relative"),
        Column::numbers("of limit"),
        Column::numbers("undecided").optional(),
    ])
}

fn row(table: &mut Table, name: &str, second: &str, result: &Comparison, share: &str) {
    let cells = [
        name.to_owned(),
        second.to_owned(),
        result.elements.to_string(),
        result.max_ulp.to_string(),
        format!("{:.1e}", result.max_relative),
        share.to_owned(),
        result.undecided.to_string(),
    ];
    if result.passed() { table.row(cells) } else { table.styled_row(Style::Bad, cells) }
}

impl VerifyReport {
    /// Tables of fetches and of kinds of kernels, then the failures.
    pub fn to_text(&self, screen: &Screen) -> String {
        let mut programs = table("whole program", "inputs");
        for program in &self.programs {
            for result in &program.results {
                let share = if program.estimated { percent(result.share_of_limit) } else { "-".to_owned() };
                row(&mut programs, &result.name, &program.inputs(), result, &share);
            }
        }
        let mut text = programs.render(screen);
        if let Some(program) = self.programs.iter().find(|p| !p.estimated) {
            let distance = program.distance;
            let note = format!("compared as a whole: distance {distance:.1e} relative to the norm");
            text += &screen.paragraph(Style::Plain, &note);
        }
        let compared = self.kernels.iter().filter(|k| !k.inputs.is_empty()).count();
        let mut all = table(&format!("kernels: {compared} of {} compared", self.kernels.len()), "count");
        let mut kinds: BTreeMap<&str, Vec<&KernelCheck>> = BTreeMap::new();
        self.kernels.iter().for_each(|kernel| kinds.entry(kernel.kind).or_default().push(kernel));
        for (kind, kernels) in kinds {
            let worst = kernels
                .iter()
                .filter_map(|k| k.worst.as_ref())
                .max_by(|(_, a), (_, b)| a.share_of_limit.total_cmp(&b.share_of_limit));
            let Some((_, worst)) = worst else { continue };
            row(&mut all, kind, &kernels.len().to_string(), worst, &percent(worst.share_of_limit));
        }
        text += &format!("\n{}", all.render(screen));
        for kernel in self.kernels.iter().filter(|k| k.inputs.is_empty()) {
            match &kernel.skipped {
                Some(why) if !why.starts_with("like ") => {
                    let note = format!("{} not compared: {why}", kernel.name);
                    text += &screen.paragraph(Style::Plain, &printable(&note));
                }
                _ => {}
            }
        }
        text + "\n" + &self.legend(screen) + "\n" + &self.verdict(screen)
    }

    /// Explains the columns.
    fn legend(&self, screen: &Screen) -> String {
        let mut lines = vec![
            "max ulp, max relative: largest distance of any element from the evaluator's value",
            "of limit: that distance as a share of the bound for rounding errors; above 100% is wrong",
        ];
        let all = self.programs.iter().flat_map(|program| &program.results);
        let undecided = all.chain(self.kernels.iter().filter_map(|k| Some(&k.worst.as_ref()?.1)));
        if undecided.map(|comparison| comparison.undecided).sum::<usize>() > 0 {
            lines.push(
                "undecided: elements that cannot be checked, because correct code may overflow or errors may add up there",
            );
        }
        lines.iter().map(|line| screen.paragraph(Style::Faint, line)).collect()
    }

    /// The verdict, with all failures.
    fn verdict(&self, screen: &Screen) -> String {
        if self.passed() {
            return screen.style(Style::Good, "the code agrees with the evaluator") + "\n";
        }
        let mut lines = Vec::new();
        for program in self.programs.iter().filter(|p| !p.passed()) {
            if !program.estimated {
                lines.push(format!(
                    "WRONG: the program on {} inputs: distance {:.1e} relative to the norm",
                    program.inputs(),
                    program.distance
                ));
            }
            for result in program.results.iter().filter(|r| !r.passed()) {
                lines.push(format!(
                    "WRONG: '{}' on {} inputs: {}",
                    result.name,
                    program.inputs(),
                    wrong(result)
                ));
            }
        }
        if let Some(kernel) = self.first_failed_kernel()
            && let Some((fill, comparison)) = &kernel.worst
        {
            lines.push(format!(
                "first to diverge: {} {} on {fill} inputs: {}",
                kernel.kind,
                kernel.name,
                wrong(comparison)
            ));
            lines.push(format!("from nodes: {}", kernel.nodes.join(", ")));
            let failed = self.kernels.iter().filter(|k| !k.passed()).count();
            if failed > 1 {
                lines.push(format!("and {} later kernels", failed - 1));
            }
        } else if let Some(pass) = &self.guilty_pass {
            lines.push(format!(
                "every kernel alone is correct; the pass '{pass}' changes the module's results"
            ));
        } else {
            lines.push(
                "every kernel alone is correct, and so is every pass: buffers overlap, or kernels run out of order"
                    .to_owned(),
            );
        }
        lines.iter().map(|line| screen.paragraph(Style::Bad, &printable(line))).collect()
    }

    /// Returns the whole report.
    pub fn to_json(&self) -> Value {
        let kernels = self.kernels.iter().map(|kernel| {
            json!({
                "name": kernel.name,
                "kind": kernel.kind,
                "nodes": kernel.nodes,
                "inputs": kernel.inputs,
                "skipped": kernel.skipped,
                "passed": kernel.passed(),
                "worst": kernel.worst.as_ref().map(|(fill, comparison)| {
                    json!({"inputs": fill, "comparison": comparison_json(comparison)})
                }),
            })
        });
        let first = self.first_failed_kernel();
        json!({
            "passed": self.passed(),
            "programs": self.programs.iter().map(program_json).collect::<Vec<_>>(),
            "kernels": kernels.collect::<Vec<_>>(),
            "first_failed_kernel": first.map(|kernel| kernel.name.as_str()),
            "first_failed_node": first.and_then(|kernel| kernel.nodes.first()),
            "guilty_pass": self.guilty_pass,
        })
    }
}

/// Describes the mismatches of an array.
fn wrong(comparison: &Comparison) -> String {
    match &comparison.first {
        Some(Mismatch { index, got, want, limit }) => format!(
            "{} of {} elements, first at {index:?}: expected {want} within {limit:.1e}, got {got}",
            comparison.mismatches, comparison.elements
        ),
        None => "wrong shape".to_owned(),
    }
}

fn program_json(program: &ProgramCheck) -> Value {
    json!({
        "inputs": program.inputs(),
        "passed": program.passed(),
        "estimated": program.estimated,
        "distance": program.distance,
        "results": program.results.iter().map(comparison_json).collect::<Vec<_>>(),
    })
}

fn comparison_json(comparison: &Comparison) -> Value {
    json!({
        "name": comparison.name,
        "elements": comparison.elements,
        "max_ulp": comparison.max_ulp,
        "max_relative": comparison.max_relative,
        "share_of_limit": comparison.share_of_limit,
        "undecided": comparison.undecided,
        "mismatches": comparison.mismatches,
        "first_mismatch": comparison.first.as_ref().map(|first| {
            json!({"index": first.index, "got": first.got, "want": first.want, "limit": first.limit})
        }),
    })
}
