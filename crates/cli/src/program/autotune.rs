//! `--autotune`: measures the fastest algorithm for each kernel.

use crate::args::tuning::{AutotuneArgs, read};
use compiler::tuning::{self, Choices};
use compiler::{BackOptions, Input, NoObserver, PlanOptions};
use hlo::Module;
use runner::{Autotuned, Progress};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use support::{Error, Result};
use terminal::{Column, Screen, Style, Table, seconds};

/// Choices of the tuning file together with the measured ones.
pub(crate) struct Tuning {
    pub(crate) path: PathBuf,
    pub(crate) choices: Arc<Choices>,
    measured: Autotuned,
}

/// Measures the choices that the file does not contain, if the flag asks for it. `progress`
/// receives each activity.
pub(crate) fn measure(
    flags: &AutotuneArgs,
    input: &Input,
    back: &BackOptions,
    progress: &mut Progress<'_>,
) -> Result<Option<Tuning>> {
    let Some(path) = &flags.autotune else { return Ok(None) };
    if !(flags.autotune_seconds.is_finite() && (0.0..=86_400.0).contains(&flags.autotune_seconds)) {
        return Err(Error::invalid(format!(
            "--autotune-seconds {}: expected a number from 0 to 86400",
            flags.autotune_seconds
        )));
    }
    if !back.devices.is_empty() {
        return Err(Error::invalid(
            "autotuning measures on this machine's processor, but the code is for a GPU: build without it",
        ));
    }
    let (host, machine) = (tuning::machine(&compiler::host("native")?), tuning::machine(&back.target));
    if !back.variants.is_empty() || host != machine {
        let machine = if back.variants.is_empty() { machine } else { "several processors".to_owned() };
        return Err(Error::invalid(format!(
            "autotuning measures on this machine, [{host}], but the code is for {machine}: add --target-cpu=native, or use \
             --tuning with a file that was measured there"
        )));
    }
    let mut choices = if path.exists() { read(path)? } else { Choices::default() };
    let with = |choices: &Choices| PlanOptions { choices: Arc::new(choices.clone()), ..back.plan.clone() };
    let input = input.clone();
    let modules = compiler::guarded(|| {
        let program = input.source.import(&mut NoObserver)?;
        // The code of a batch is that of its sizes.
        let sized: Vec<Module> = program.sized.into_iter().map(|sized| sized.module).collect();
        let mut modules = if sized.is_empty() { vec![program.module] } else { sized };
        modules.extend(program.exact.into_iter().map(|exact| exact.module));
        let back = BackOptions { plan: with(&choices), ..back.clone() };
        modules.iter_mut().try_for_each(|module| compiler::optimize(module, &back, &mut NoObserver))?;
        Ok(modules)
    })?;
    let seconds = flags.autotune_seconds / modules.len() as f64;
    let mut measured = Autotuned::default();
    for module in &modules {
        let own = runner::autotune(module, &back.target, &with(&choices), seconds, progress)?;
        choices.merge(own.choices.clone());
        measured.choices.merge(own.choices);
        measured.kernels.extend(own.kernels);
        measured.left += own.left;
    }
    Ok(Some(Tuning { path: path.clone(), choices: Arc::new(choices), measured }))
}

impl Tuning {
    /// Contents of the file to write: the measured choices, merged into those that other processes
    /// have written since.
    pub(crate) fn table(&self) -> Result<String> {
        let mut choices = (*self.choices).clone();
        if self.path.exists() {
            choices = read(&self.path)?;
            choices.merge(self.measured.choices.clone());
        }
        Ok(choices.to_text())
    }

    /// Summary of the measurements in one sentence, followed by a table per kernel if `is_verbose`.
    pub(crate) fn report(&self, screen: &Screen, is_verbose: bool) -> String {
        let kernels = &self.measured.kernels;
        let changed = kernels.iter().filter(|kernel| kernel.chosen != 0).count();
        let mut text =
            format!("autotune: {} kernels measured, {changed} use a faster algorithm", kernels.len());
        if changed > 0 {
            let times = kernels.iter().map(|k| (k.seconds(), k.instances as f64));
            let (before, now) = times.fold((0.0, 0.0), |sum, (k, n)| (sum.0 + k.0 * n, sum.1 + k.1 * n));
            text += &format!(": {} in total instead of {}", seconds(now), seconds(before));
        }
        if self.measured.left > 0 {
            text += &format!("; {} not measured: allow more seconds", self.measured.left);
        }
        let mut text = screen.paragraph(Style::Plain, &text);
        for kernel in kernels.iter().filter(|_| is_verbose) {
            text += &format!("  {} times {}\n", kernel.instances, kernel.kernel);
            if let Some(ratio) = kernel.in_program {
                text += &format!(
                    "    time of the program with the fastest candidate: {ratio:.4} times the original\n"
                );
            }
            let mut table =
                Table::new([Column::words(""), Column::numbers(""), Column::names("")]).indented();
            for (number, (candidate, time)) in kernel.times.iter().enumerate() {
                let mark = if number == kernel.chosen { "*" } else { "" };
                table.row([mark.to_owned(), seconds(*time), candidate.to_string()]);
            }
            text += &table.render(screen);
        }
        text
    }

    /// The measured kernels with the chosen candidate of each.
    pub(crate) fn kernels(&self, screen: &Screen) -> String {
        let mut table = Table::new([
            Column::numbers("instances").optional(),
            Column::numbers("planner"),
            Column::numbers("chosen"),
            Column::names("kernel"),
            Column::names("candidate").optional(),
        ]);
        for kernel in &self.measured.kernels {
            let (before, now) = kernel.seconds();
            table.row([
                kernel.instances.to_string(),
                seconds(before),
                seconds(now),
                kernel.kernel.clone(),
                kernel.times[kernel.chosen].0.to_string(),
            ]);
        }
        if table.is_empty() { String::new() } else { table.render(screen) }
    }

    /// The measurements, with times in seconds.
    pub(crate) fn to_json(&self) -> Value {
        let kernels = self.measured.kernels.iter().map(|kernel| {
            let candidate =
                |(candidate, time): &(compiler::Candidate, f64)| json!({ "candidate": format!("{candidate}"), "seconds": time });
            json!({
                "kernel": kernel.kernel,
                "instances": kernel.instances,
                "candidates": kernel.times.iter().map(candidate).collect::<Vec<_>>(),
                "chosen": kernel.chosen,
                "in_program": kernel.in_program,
            })
        });
        json!({
            "file": self.path.display().to_string(),
            "kernels": kernels.collect::<Vec<_>>(),
            "unmeasured": self.measured.left,
        })
    }
}

/// Note about choices that a build ignored, if there are any.
pub(crate) fn ignored(kernels: &[String]) -> Option<String> {
    let first = kernels.first()?;
    Some(format!(
        "{} choices of the tuning file are unknown to this version of tfcompile and were ignored, the first one for \
         '{first}'; delete these lines and measure again",
        kernels.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "tfcompile-tuning 1\n\n[machine]\n";

    /// Two builds measure at the same time. The one that writes last keeps the other's choices.
    #[test]
    fn choices_of_concurrent_builds_are_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.tuning");
        let table = |lines: &str| Choices::parse(&format!("{HEAD}{lines}"), "t").expect("a table");
        let tuning = Tuning {
            path: path.clone(),
            choices: Arc::new(table("a => 1\nb => 2\n")),
            measured: Autotuned { choices: table("b => 2\n"), kernels: Vec::new(), left: 0 },
        };
        assert_eq!(tuning.table().expect("a table"), format!("{HEAD}a => 1\nb => 2\n"));
        std::fs::write(&path, format!("{HEAD}a => 1\nb => 7\nc => 3\n")).expect("writable");
        assert_eq!(tuning.table().expect("a table"), format!("{HEAD}a => 1\nb => 2\nc => 3\n"));
        std::fs::write(&path, "something else").expect("writable");
        assert!(tuning.table().is_err());
    }
}
