//! Runs passes in order, verifies after each change, and keeps the books.

use crate::pass::{Changed, Pass};
use hlo::Module;
use support::Result;

/// What one pass did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassRecord {
    /// Its name.
    pub name: &'static str,
    /// Whether it changed anything.
    pub changed: bool,
    /// Live instructions in all computations afterwards.
    pub instructions: usize,
}

/// Passes in their order.
pub struct Pipeline {
    name: &'static str,
    passes: Vec<Box<dyn Pass>>,
    /// True if an error is about the module that the user gave, so that the pass that found it is no help.
    is_of_input: bool,
}

impl Pipeline {
    /// These passes, once each. The name stands in the names of files that show the module between passes.
    pub fn new(name: &'static str, passes: Vec<Box<dyn Pass>>) -> Self {
        Self { name, passes, is_of_input: false }
    }

    /// Passes over a module that the user gave: their errors do not name the pass.
    pub fn of_input(name: &'static str, passes: Vec<Box<dyn Pass>>) -> Self {
        Self { name, passes, is_of_input: true }
    }

    /// The name of the passes together.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Adds a pass behind all others.
    pub fn push(&mut self, pass: Box<dyn Pass>) {
        self.passes.push(pass);
    }

    /// Runs every pass whose name is not disabled. After each that changed the module it is verified, and `observe` sees
    /// it (to dump it, or to time it). Debug builds compare the module's text with what a pass claims to have changed.
    pub fn run(
        &self,
        module: &mut Module,
        disabled: &[String],
        mut observe: impl FnMut(&PassRecord, &Module),
    ) -> Result<Vec<PassRecord>> {
        let mut records = Vec::new();
        for pass in &self.passes {
            if disabled.iter().any(|name| name == pass.name()) {
                continue;
            }
            let before = cfg!(debug_assertions).then(|| module.clone());
            let changed = pass.run(module).map_err(|error| {
                if self.is_of_input { error } else { error.context(format_args!("pass {}", pass.name())) }
            })?;
            if let Some(before) = before {
                let claims_right = changed == Changed::Yes || before == *module;
                assert!(claims_right, "pass {} changed the module and says it did not", pass.name());
            }
            if changed == Changed::Yes {
                hlo::verify(module).map_err(|e| e.context(format_args!("after pass {}", pass.name())))?;
            }
            let instructions = module.computations().map(|(_, c)| c.instructions().count()).sum();
            let record = PassRecord { name: pass.name(), changed: changed == Changed::Yes, instructions };
            observe(&record, module);
            records.push(record);
        }
        Ok(records)
    }
}
