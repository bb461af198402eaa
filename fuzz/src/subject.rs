//! What a seed stands for.

use crate::check::{Setup, refusal};
use crate::{Draw, Outcome, check, file_test, hlo_graph, minimize, tf_graph};
use filetest::programs;
use hlo::Module;

/// Where graphs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Modules of instructions of all kinds and types.
    Hlo,
    /// Modules of few types and sizes, rich in what passes look for.
    Programs,
    /// Graphs of TensorFlow's ops.
    Tf,
    /// Any of these, by seed.
    All,
}

impl Kind {
    /// By name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "hlo" => Self::Hlo,
            "programs" => Self::Programs,
            "tf" => Self::Tf,
            "all" => Self::All,
            _ => return None,
        })
    }

    fn of(self, seed: u64) -> Self {
        match self {
            Self::All => [Self::Programs, Self::Hlo, Self::Tf, Self::Hlo][(seed % 4) as usize],
            kind => kind,
        }
    }
}

/// A graph and how it is compiled.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The graph.
    pub module: Module,
    /// How it is compiled.
    pub setup: Setup,
}

/// What a seed stands for; or what is wrong, where not even a module can be made.
pub fn subject(kind: Kind, seed: u64) -> Result<Subject, Outcome> {
    let mut draw = Draw::new(seed ^ 0x6772_6170_6873);
    let size = 4 + draw.below(14);
    let module = match kind.of(seed) {
        Kind::Programs => programs::program(seed, size),
        Kind::Tf => tf_graph::module(seed, 1 + size / 4)?,
        _ => hlo_graph::module(seed, size),
    };
    hlo::verify(&module).map_err(|error| refusal(&error, "verifying"))?;
    Ok(Subject { module, setup: Setup::draw(&mut draw) })
}

/// Checks what a seed stands for. A failure's text ends with the smallest module found that fails, as a file test.
pub fn run(kind: Kind, seed: u64) -> Outcome {
    let Subject { module, setup } = match subject(kind, seed) {
        Ok(subject) => subject,
        Err(outcome) => return outcome,
    };
    match check(&module, &setup, seed) {
        Outcome::Failed(why) => {
            let (small, reason) = minimize(&module, &why, |module| check(module, &setup, seed));
            let text = file_test(&small, &setup, seed);
            Outcome::Failed(format!("{why}\nsmallest: {reason}\nsetup: {setup:?}\n{text}"))
        }
        outcome => outcome,
    }
}
