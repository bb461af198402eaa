//! Maps a seed to a graph.

use crate::check::{Setup, refusal};
use crate::named::{self, Report};
use crate::{Draw, Outcome, check, edit, file_test, hlo_graph, minimize, tf_graph};
use filetest::programs;
use hlo::Module;

/// Source of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Modules of instructions of all kinds and types.
    Hlo,
    /// Modules of few types and sizes, rich in patterns that passes transform.
    Programs,
    /// Layers of bytes.
    Quantized,
    /// Graphs of TensorFlow's ops.
    Tf,
    /// Any of these, depending on the seed.
    All,
    /// Modules of the file tests, with random edits.
    Files,
    /// Graphs of TensorFlow's ops whose feeds have named dimensions.
    Sizes,
}

impl Kind {
    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "hlo" => Self::Hlo,
            "programs" => Self::Programs,
            "quantized" => Self::Quantized,
            "tf" => Self::Tf,
            "files" => Self::Files,
            "all" => Self::All,
            "sizes" => Self::Sizes,
            _ => return None,
        })
    }

    fn of(self, seed: u64) -> Self {
        match self {
            Self::All => {
                [Self::Programs, Self::Hlo, Self::Tf, Self::Hlo, Self::Quantized][(seed % 5) as usize]
            }
            kind => kind,
        }
    }
}

/// A graph and its setup.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The graph.
    pub module: Module,
    /// Compilation options.
    pub setup: Setup,
}

/// Returns the graph of a seed, or an error if no module can be generated.
pub fn subject(kind: Kind, seed: u64) -> Result<Subject, Outcome> {
    let mut draw = Draw::new(seed ^ 0x6772_6170_6873);
    let size = 4 + draw.below(14);
    let module = match kind.of(seed) {
        Kind::Programs => programs::program(seed, size),
        Kind::Quantized => hlo_graph::quantized_module(seed, 2 + size / 3),
        Kind::Files => edit::module(seed).map_err(|error| refusal(&error, "reading"))?,
        Kind::Tf => tf_graph::module(seed, 1 + size / 4)?,
        _ => hlo_graph::module(seed, size),
    };
    hlo::verify(&module).map_err(|error| refusal(&error, "verifying"))?;
    Ok(Subject { module, setup: Setup::draw(&mut draw) })
}

/// Checks the graph of a seed, and reports what happened on the way.
pub fn report(kind: Kind, seed: u64) -> Report {
    match kind {
        Kind::Sizes => named::run(seed),
        kind => Report { outcome: run(kind, seed), notes: Vec::new() },
    }
}

/// Checks the graph of a seed that has no named dimensions. A failure's text ends with the smallest
/// failing module found, as a file test.
pub fn run(kind: Kind, seed: u64) -> Outcome {
    let Subject { module, setup } = match subject(kind, seed) {
        Ok(subject) => subject,
        Err(outcome) => return outcome,
    };
    match check(&module, &setup, seed) {
        Outcome::Failed(why) => {
            let (small, reason) = minimize(&module, &why, |module| check(module, &setup, seed));
            let text = file_test(&small, &setup, seed, &reason);
            Outcome::Failed(format!("{why}\nsmallest: {reason}\nsetup: {setup:?}\n{text}"))
        }
        outcome => outcome,
    }
}
