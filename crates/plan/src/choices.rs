//! Tables of choices: the candidate for each kernel for which measuring found a better one than the
//! planner's, and the text format of such tables.
//!
//! ```text
//! tfcompile-tuning 1
//!
//! [x86_64 sapphirerapids 32x64 fma l1=49152 l2=2097152]
//! KERNEL => CANDIDATE
//! ```
//!
//! A section describes a machine as the plan sees it. A line assigns a candidate, such as
//! `tile=8x3,right=constant,outer=panels,k-block=768`, to a kernel, such as
//! `dot f32[128,768]c1 constant f32[768,768]c0 -> f32[128,768]; add; f32[768]`. Kernels are
//! described by the properties that the plan reads: shapes, types, which operands are constant, and
//! which operations follow. The values of constants, names, and positions in a program do not
//! matter. Sections and lines are sorted, so that tables can be committed, compared, and merged.

use crate::candidate::Candidate;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use support::{Error, Result};

/// First line of a table.
const HEADER: &str = "tfcompile-tuning 1";

/// Upper bounds of a table's bytes and lines.
pub const MAX_BYTES: usize = 16 << 20;
const MAX_LINES: usize = 200_000;

/// Separates a kernel from its candidate.
const ARROW: &str = " => ";

/// Candidates by machine and kernel. Candidate names are kept verbatim, so that names from other
/// versions of the tool survive a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    machines: BTreeMap<String, BTreeMap<String, String>>,
}

impl Choices {
    /// True if there are no choices.
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    /// Number of choices, over all machines.
    pub fn len(&self) -> usize {
        self.machines.values().map(BTreeMap::len).sum()
    }

    /// The candidate chosen for a kernel on a machine, identified by
    /// [`machine`](crate::tuning::machine) and [`kernel`](crate::tuning::kernel); `None` if there
    /// is no choice or its name is unknown.
    pub fn get(&self, machine: &str, kernel: &str) -> Option<Candidate> {
        Candidate::parse(self.machines.get(machine)?.get(kernel)?)
    }

    /// The kernels of a machine with the names of their candidates.
    pub(crate) fn of_machine(&self, machine: &str) -> Option<&BTreeMap<String, String>> {
        self.machines.get(machine)
    }

    /// Sets the choice for a kernel of a machine, replacing an earlier one.
    pub fn set(&mut self, machine: &str, kernel: &str, candidate: Candidate) {
        let kernels = self.machines.entry(machine.to_owned()).or_default();
        kernels.insert(kernel.to_owned(), candidate.to_string());
    }

    /// Adds another table's choices, which replace existing ones.
    pub fn merge(&mut self, other: Self) {
        for (machine, kernels) in other.machines {
            self.machines.entry(machine).or_default().extend(kernels);
        }
    }

    /// These choices combined with `others`, which take precedence.
    pub fn and(&self, others: &Self) -> Self {
        let mut both = self.clone();
        both.merge(others.clone());
        both
    }

    /// Parses a table. `name` appears in error messages.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let wrong = |line: usize, what: &str| {
            Error::invalid(format!(
                "{name}:{}: {what}; delete the line, or the file, and measure again",
                line + 1
            ))
        };
        if text.len() > MAX_BYTES {
            return Err(Error::invalid(format!(
                "{name}: a tuning file may have at most {MAX_BYTES} bytes, got {}",
                text.len()
            )));
        }
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line.trim_end()) != Some(HEADER) {
            return Err(Error::invalid(format!(
                "{name}: not a tuning file of this version: expected the first line '{HEADER}'"
            )));
        }
        let mut choices = Self::default();
        let mut machine: Option<&str> = None;
        for (number, line) in lines {
            let line = line.trim_end();
            if number > MAX_LINES {
                return Err(wrong(number, &format!("more than {MAX_LINES} lines")));
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                machine = Some(name);
                continue;
            }
            let machine =
                machine.ok_or_else(|| wrong(number, "expected a [machine] before the first kernel"))?;
            let (kernel, candidate) =
                line.split_once(ARROW).ok_or_else(|| wrong(number, "expected 'kernel => candidate'"))?;
            let kernels = choices.machines.entry(machine.to_owned()).or_default();
            if kernels.insert(kernel.to_owned(), candidate.to_owned()).is_some() {
                return Err(wrong(number, "duplicate kernel"));
            }
        }
        Ok(choices)
    }

    /// The table as text. Equal tables yield equal text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (machine, kernels) in &self.machines {
            let _ = write!(text, "\n[{machine}]\n");
            for (kernel, candidate) in kernels {
                let _ = writeln!(text, "{kernel}{ARROW}{candidate}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "tfcompile-tuning 1

[aarch64 baseline 32x16 fma l1=32768 l2=524288]
dot f32[3,4]c1 f32[4,5]c0 -> f32[3,5] => tile=3x2,right=in-place,outer=rows,k-block=4

[x86_64 znver4 32x64 fma l1=32768 l2=1048576]
convolution a => pixels=6x4,outer=pixels
dot b => a name of later versions
";

    #[test]
    fn tables_round_trip_and_merge() {
        let table = Choices::parse(TABLE, "t").unwrap();
        assert_eq!(table.to_text(), TABLE);
        assert_eq!((table.len(), table.is_empty()), (3, false));
        let zen = "x86_64 znver4 32x64 fma l1=32768 l2=1048576";
        let dense = |pixels| Candidate::Dense { pixels, vectors: 4, panels_outside: false };
        assert_eq!(table.get(zen, "convolution a"), Some(dense(6)));
        assert_eq!(
            (table.get(zen, "dot b"), table.get(zen, "c"), table.get("", "dot b")),
            (None, None, None)
        );
        let mut more = Choices::default();
        more.set(zen, "convolution a", dense(5));
        more.set("armv7", "dot c", Candidate::Winograd { outputs: 2 });
        let mut both = table.clone();
        both.merge(more);
        assert_eq!(both.len(), 4);
        assert_eq!(both.get(zen, "convolution a"), Some(dense(5)));
        // Candidates unknown to this version are kept.
        assert!(both.to_text().contains("dot b => a name of later versions\n"));
        assert_eq!(Choices::parse(&both.to_text(), "t").unwrap(), both);
        assert_eq!(Choices::default().to_text(), "tfcompile-tuning 1\n");
    }

    #[test]
    fn comments_and_windows_line_ends_are_accepted() {
        let text = TABLE.replace('\n', "\r\n").replace("dot b", "# a comment\r\n\r\ndot b");
        assert_eq!(Choices::parse(&text, "t").unwrap().to_text(), TABLE);
    }

    #[test]
    fn malformed_tables_are_rejected_with_the_line() {
        let cases = [
            ("", "expected the first line 'tfcompile-tuning 1'"),
            ("tfcompile-tuning 2\n", "expected the first line 'tfcompile-tuning 1'"),
            ("{\"version\": 1}", "expected the first line 'tfcompile-tuning 1'"),
            ("tfcompile-tuning 1\ndot => tile\n", "t:2: expected a [machine] before the first kernel"),
            ("tfcompile-tuning 1\n[m]\ndot\n", "t:3: expected 'kernel => candidate'"),
            ("tfcompile-tuning 1\n[m]\na => b\na => c\n", "t:4: duplicate kernel"),
            ("tfcompile-tuning 1\n[m]\na => b\n[n]\na => b\n[m]\na => b\n", "t:7: duplicate kernel"),
        ];
        for (text, expected) in cases {
            let error = Choices::parse(text, "t").unwrap_err();
            assert!(error.message().contains(expected), "{text:?}: {}", error.message());
        }
        let long = format!("tfcompile-tuning 1\n{}", "#\n".repeat(MAX_LINES + 1));
        assert!(
            Choices::parse(&long, "t")
                .unwrap_err()
                .message()
                .contains(&format!("more than {MAX_LINES} lines"))
        );
        let large = "x".repeat(MAX_BYTES + 1);
        assert!(
            Choices::parse(&large, "t")
                .unwrap_err()
                .message()
                .contains("at most 16777216 bytes, got 16777217")
        );
    }
}
