//! Runs passes in order, verifies the module after each change, and records statistics.

use crate::pass::{Changed, Pass};
use hlo::Module;
use support::Result;

/// Record of the run of one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassRecord {
    /// Name of the pass.
    pub name: &'static str,
    /// True if the pass changed the module.
    pub changed: bool,
    /// Number of live instructions after the pass, in all computations.
    pub instructions: usize,
}

/// A list of passes to run in order.
pub struct Pipeline {
    name: &'static str,
    passes: Vec<Box<dyn Pass>>,
    /// True if errors concern the module that the user gave. Such an error does not name the pass,
    /// because that would not help the user.
    is_user_input: bool,
}

impl Pipeline {
    /// A pipeline that runs each of these passes once. Names of dump files contain its name.
    pub fn new(name: &'static str, passes: Vec<Box<dyn Pass>>) -> Self {
        Self { name, passes, is_user_input: false }
    }

    /// A pipeline over a module that the user gave. Its errors do not name the pass.
    pub fn of_input(name: &'static str, passes: Vec<Box<dyn Pass>>) -> Self {
        Self { name, passes, is_user_input: true }
    }

    /// Name of the pipeline.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The passes, in order.
    pub fn passes(&self) -> impl Iterator<Item = &dyn Pass> {
        self.passes.iter().map(|pass| &**pass)
    }

    /// Removes the passes with a name.
    pub fn remove(&mut self, name: &str) {
        self.passes.retain(|pass| pass.name() != name);
    }

    /// Changes the name.
    pub fn rename(&mut self, name: &'static str) {
        self.name = name;
    }

    /// Removes the first pass with a name, and all that follow it.
    pub fn truncate(&mut self, name: &str) {
        let at = self.passes.iter().position(|pass| pass.name() == name);
        self.passes.truncate(at.unwrap_or(self.passes.len()));
    }

    /// Inserts a pass before the first one with a name.
    pub fn insert_before(&mut self, name: &str, pass: Box<dyn Pass>) {
        let at = self.passes.iter().position(|pass| pass.name() == name);
        self.passes.insert(at.expect("a pass of this pipeline"), pass);
    }

    /// Appends a pass.
    pub fn push(&mut self, pass: Box<dyn Pass>) {
        self.passes.push(pass);
    }

    /// Runs every pass whose name is not disabled. After a change, the module is verified.
    /// `observe` is called after each pass, to dump the module or to measure the time. Debug builds
    /// check that a pass that reports no change made none.
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
                if self.is_user_input { error } else { error.context(format_args!("pass {}", pass.name())) }
            })?;
            if let Some(before) = before {
                let is_truthful = changed == Changed::Yes || before == *module;
                assert!(is_truthful, "pass {} changed the module but reported no change", pass.name());
            }
            if changed == Changed::Yes {
                hlo::verify(module).map_err(|e| e.context(format_args!("after pass {}", pass.name())))?;
            }
            let instructions = module.computations().map(|(_, c)| c.opcodes().count()).sum();
            let record = PassRecord { name: pass.name(), changed: changed == Changed::Yes, instructions };
            observe(&record, module);
            records.push(record);
        }
        Ok(records)
    }
}
