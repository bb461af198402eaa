//! The kernels of a session, by what they compute.

use super::build::{self, Source};
use super::{Operand, Site};
use crate::device::Device;
use compiler::{BackOptions, Executable};
use hlo::analysis::Cost;
use shape::ArrayShape;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::{Error, Result};
use tf::FunctionLibrary;

use crate::resources::lock;

/// A kernel whose flops and bytes together are more is worth another thread.
const EXPENSIVE: u64 = 50_000;

/// Compiled code of one node.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(super) executable: Executable,
    /// Which input of the node each argument is, those that are variables left out.
    pub(super) feeds: Vec<usize>,
    /// How many variables follow, and which of them are written.
    pub(super) written: Vec<bool>,
    /// The shapes of results that live in no argument.
    pub(super) results: Vec<Arc<ArrayShape>>,
    pub(super) outputs: Vec<Source>,
    /// Bytes at the beginning of its temps that persist.
    pub(super) persistent_bytes: usize,
    pub(super) is_expensive: bool,
}

/// What an import says: a kernel, or an error and the inputs whose values it wanted.
pub(super) type Made = std::result::Result<Arc<Kernel>, (Error, BTreeSet<usize>)>;

/// All kernels.
#[derive(Debug)]
pub(crate) struct Kernels {
    kept: Mutex<BTreeMap<Vec<u8>, Arc<OnceLock<Made>>>>,
    options: BackOptions,
    compiled: AtomicU64,
}

impl Kernels {
    /// For kernels that are compiled so.
    pub(crate) fn new(options: BackOptions) -> Self {
        Self { kept: Mutex::default(), options, compiled: AtomicU64::new(0) }
    }

    /// How many kernels were compiled so far.
    pub(crate) fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// The kernel of a node for operands. Two that want the same one at once wait for one compilation.
    pub(super) fn get(
        &self,
        site: &Site,
        operands: &[Operand],
        library: &FunctionLibrary,
        device: &dyn Device,
    ) -> Result<Made> {
        let mut key = site.key(operands, library);
        key.extend(device.kind().bytes());
        let cell = lock(&self.kept).entry(key).or_default().clone();
        let made = cell.get_or_init(|| {
            let made = compiler::guarded(|| Ok(self.compile(site, operands, library, device)));
            made.unwrap_or_else(|error| Err((error, BTreeSet::new())))
        });
        Ok(made.clone())
    }

    fn compile(
        &self,
        site: &Site,
        operands: &[Operand],
        library: &FunctionLibrary,
        device: &dyn Device,
    ) -> Made {
        let none = |error| (error, BTreeSet::new());
        let one = build::program(site, operands, library).map_err(none)?;
        let imported = import::import_or_wanted(&one.program).map_err(|(error, wanted)| {
            let of_site = wanted.into_iter().filter(|(node, _)| *node == site.node.name);
            (error, of_site.map(|(_, input)| input).collect())
        })?;
        hlo::verify(&imported.module).map_err(none)?;
        let compiled = device.compile(imported.module, &self.options).map_err(none)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let entry = compiled.module.entry();
        let instructions = compiled.module.entry_computation().instructions();
        let costs = instructions.map(|(id, _)| Cost::of_instruction(&compiled.module, entry, id));
        let cost: Cost = costs.sum();
        let executable = Executable::load(&compiled).map_err(none)?;
        let results = executable.results().iter().filter(|(_, alias)| alias.is_none());
        let results = results.map(|(shape, _)| Arc::new(shape.clone())).collect();
        Ok(Arc::new(Kernel {
            feeds: one.feeds,
            written: one.program.variables.iter().map(|variable| !variable.readonly).collect(),
            results,
            outputs: one.outputs,
            persistent_bytes: compiled.assignment.persistent_size as usize,
            is_expensive: cost.flops.saturating_add(8 * cost.transcendentals).saturating_add(cost.bytes())
                > EXPENSIVE,
            executable,
        }))
    }
}
