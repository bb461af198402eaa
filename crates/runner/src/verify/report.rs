//! Formats the report as text and as JSON.

use super::{Comparison, KernelCheck, Mismatch, ProgramCheck, VerifyReport};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

impl fmt::Display for VerifyReport {
    /// Writes tables of fetches and of kinds of kernels, then the failures.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<28} {:<9} {:>9} {:>12} {:>14} {:>10} {:>10}",
            "whole program", "inputs", "elements", "max ulp", "max relative", "of limit", "undecided"
        )?;
        for program in &self.programs {
            for result in &program.results {
                let share = if program.estimated { share(result.share_of_limit) } else { "-".to_owned() };
                write_row(f, &result.name, &program.inputs(), result, &share)?;
            }
        }
        if let Some(program) = self.programs.iter().find(|p| !p.estimated) {
            writeln!(f, "  compared as a whole: distance {:.1e} relative to the norm", program.distance)?;
        }
        let compared = self.kernels.iter().filter(|k| !k.inputs.is_empty()).count();
        writeln!(
            f,
            "\n{:<28} {:<9} {:>9} {:>12} {:>14} {:>10} {:>10}",
            format!("kernels: {compared} of {} compared", self.kernels.len()),
            "count",
            "elements",
            "max ulp",
            "max relative",
            "of limit",
            "undecided"
        )?;
        let mut kinds: BTreeMap<&str, Vec<&KernelCheck>> = BTreeMap::new();
        self.kernels.iter().for_each(|kernel| kinds.entry(kernel.kind).or_default().push(kernel));
        for (kind, kernels) in kinds {
            let worst = kernels
                .iter()
                .filter_map(|k| k.worst.as_ref())
                .max_by(|(_, a), (_, b)| a.share_of_limit.total_cmp(&b.share_of_limit));
            let Some((_, worst)) = worst else { continue };
            write_row(f, kind, &kernels.len().to_string(), worst, &share(worst.share_of_limit))?;
        }
        for kernel in self.kernels.iter().filter(|k| k.inputs.is_empty()) {
            match &kernel.skipped {
                Some(why) if !why.starts_with("like ") => {
                    writeln!(f, "  {} not compared: {why}", kernel.name)?
                }
                _ => {}
            }
        }
        self.write_legend(f)?;
        self.write_failures(f)
    }
}

fn write_row(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    inputs: &str,
    result: &Comparison,
    share: &str,
) -> fmt::Result {
    writeln!(
        f,
        "  {name:<26} {inputs:<9} {:>9} {:>12} {:>14} {share:>10} {:>10}",
        result.elements,
        result.max_ulp,
        format!("{:.1e}", result.max_relative),
        result.undecided
    )
}

fn share(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

impl VerifyReport {
    /// Explains the columns.
    fn write_legend(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nmax ulp, max relative: largest distance of any element from the evaluator's value")?;
        writeln!(
            f,
            "of limit: that distance as a share of the bound for rounding errors; above 100% is wrong"
        )?;
        let all = self.programs.iter().flat_map(|program| &program.results);
        let undecided = all.chain(self.kernels.iter().filter_map(|k| Some(&k.worst.as_ref()?.1)));
        if undecided.map(|comparison| comparison.undecided).sum::<usize>() > 0 {
            writeln!(
                f,
                "undecided: elements that cannot be checked, because correct code may overflow or errors may add up there"
            )?;
        }
        Ok(())
    }

    fn write_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        if self.passed() {
            return writeln!(f, "the code agrees with the evaluator");
        }
        for program in self.programs.iter().filter(|p| !p.passed()) {
            if !program.estimated {
                writeln!(
                    f,
                    "WRONG: the program on {} inputs: distance {:.1e} relative to the norm",
                    program.inputs(),
                    program.distance
                )?;
            }
            for result in program.results.iter().filter(|r| !r.passed()) {
                writeln!(f, "WRONG: '{}' on {} inputs: {}", result.name, program.inputs(), wrong(result))?;
            }
        }
        if let Some(kernel) = self.first_failed_kernel()
            && let Some((fill, comparison)) = &kernel.worst
        {
            writeln!(
                f,
                "first to diverge: {} {} on {fill} inputs: {}",
                kernel.kind,
                kernel.name,
                wrong(comparison)
            )?;
            writeln!(f, "  from nodes: {}", kernel.nodes.join(", "))?;
            let failed = self.kernels.iter().filter(|k| !k.passed()).count();
            if failed > 1 {
                writeln!(f, "  and {} later kernels", failed - 1)?;
            }
        } else if let Some(pass) = &self.guilty_pass {
            writeln!(f, "every kernel alone is correct; the pass '{pass}' changes the module's results")?;
        } else {
            writeln!(
                f,
                "every kernel alone is correct, and so is every pass: buffers overlap, or kernels run out of order"
            )?;
        }
        Ok(())
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
