//! The kernels of a session, by what they compute.

use super::one_node::{self, Source};
use super::{Operand, Site};
use crate::device::Device;
use crate::op_kind::must_compile;
use crate::recorder::profile::{ClusterProfile, KernelCounts, Profile};
use compiler::{BackOptions, Executable, Loadable};
use hlo::{Identifier, Interface};
use shape::ArrayShape;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::{Error, Result};
use tf::{FunctionLibrary, VariableState};

use crate::lock::lock;

/// A kernel whose flops and bytes together are more is worth another thread.
const EXPENSIVE: u64 = 50_000;

/// Compiled code of one node.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(super) executable: Executable,
    /// Which input of the node each argument is, those that are variables left out.
    pub(super) feeds: Vec<usize>,
    /// What becomes of each of the node's variables.
    pub(super) variables: Vec<Use>,
    /// The shapes of results that live in no argument.
    pub(super) results: Vec<Arc<ArrayShape>>,
    pub(super) outputs: Vec<Source>,
    /// Bytes at the beginning of its temps that persist.
    pub(super) persistent_bytes: usize,
    pub(super) is_expensive: bool,
    pub(super) counts: Arc<KernelCounts>,
}

/// What a kernel does with a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Reads it.
    Reads,
    /// Writes where it lies.
    Updates,
    /// Reads it if it has a value, and makes a new one: the result of that number.
    Makes { is_read: bool, result: usize },
    /// Neither: it has no value and gets none.
    Leaves,
}

/// What an import says: a kernel, or an error and the inputs whose values it wanted.
pub(super) type Made = std::result::Result<Arc<Kernel>, (Error, BTreeSet<usize>)>;

/// All kernels.
#[derive(Debug)]
pub(crate) struct Kernels {
    kept: Mutex<BTreeMap<Vec<u8>, Arc<OnceLock<Made>>>>,
    options: BackOptions,
    profiles_clusters: bool,
    compiled: AtomicU64,
}

impl Kernels {
    /// For kernels that are compiled so; those of clusters may count how long their instructions take.
    pub(crate) fn new(options: BackOptions, profiles_clusters: bool) -> Self {
        Self { kept: Mutex::default(), options, profiles_clusters, compiled: AtomicU64::new(0) }
    }

    /// What clusters have counted, in no order that would say anything.
    pub(crate) fn profiles(&self) -> Vec<ClusterProfile> {
        let kept = lock(&self.kept);
        let kernels = kept.values().filter_map(|cell| cell.get()?.as_ref().ok());
        kernels.filter_map(|kernel| kernel.counts.profile.as_ref().map(Profile::total)).collect()
    }

    /// How many kernels were compiled so far.
    pub(crate) fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// What a kernel is kept by.
    pub(super) fn key(
        &self,
        site: &Site,
        operands: &[Operand],
        library: &FunctionLibrary,
        device: &dyn Device,
    ) -> Vec<u8> {
        let mut key = site.key(operands, library);
        key.extend(device.kind().bytes());
        key
    }

    /// Whether there is a kernel of a key.
    pub(super) fn is_made(&self, key: &[u8]) -> bool {
        lock(&self.kept).get(key).is_some_and(|cell| matches!(cell.get(), Some(Ok(_))))
    }

    /// The kernel of a node for operands. Two that want the same one at once wait for one compilation.
    pub(super) fn get(
        &self,
        site: &Site,
        operands: &[Operand],
        library: &FunctionLibrary,
        device: &dyn Device,
    ) -> Result<Made> {
        let key = self.key(site, operands, library, device);
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
        let one = one_node::program(site, operands, library).map_err(none)?;
        let imported = import::import_or_wanted(&one.program).map_err(|(error, wanted)| {
            let of_site = wanted.into_iter().filter(|(node, _)| *node == site.node.name);
            (error, of_site.map(|(_, input)| input).collect())
        })?;
        let hlo::Program { module, interface } = imported;
        hlo::verify(&module).map_err(none)?;
        let is_profiled = self.profiles_clusters && must_compile(&site.node);
        let (code, profile) = if !is_profiled {
            (device.compile(module, &self.options).map_err(none)?, None)
        } else {
            let options = BackOptions { is_profiled, ..self.options.clone() };
            let compiled = device.compile_counting(module, &options).map_err(none)?;
            let code = Loadable::of(&compiled).map_err(none)?;
            (code, Some(Profile::new(&site.node.name, compiled)))
        };
        if !code.is_kept() {
            self.compiled.fetch_add(1, Ordering::Relaxed);
        }
        let (cost, persistent_bytes) = (code.cost(), code.persistent_bytes() as usize);
        let executable = code.load().map_err(none)?;
        let own = executable.interface().own_results();
        let results = own.map(|result| Arc::new(result.whole())).collect();
        Ok(Arc::new(Kernel {
            variables: uses(&one.program, &interface),
            feeds: one.feeds,
            results,
            outputs: one.outputs,
            persistent_bytes,
            counts: Arc::new(KernelCounts { flops: cost.flops, moved_bytes: cost.bytes(), profile }),
            is_expensive: cost.flops.saturating_add(8 * cost.transcendentals).saturating_add(cost.bytes())
                > EXPENSIVE,
            executable,
        }))
    }
}

/// How a program of one node uses each of its variables.
fn uses(program: &tf::Program, interface: &Interface) -> Vec<Use> {
    let use_of = |variable: &tf::Variable| {
        let id = Identifier::Variable(variable.node_name.clone());
        let new_value = interface.own_results().position(|result| result.id == id);
        match (variable.readonly, variable.state, new_value) {
            (true, VariableState::Unset, _) => Use::Leaves,
            (true, ..) => Use::Reads,
            (false, state, Some(result)) => Use::Makes { is_read: state == VariableState::Replaced, result },
            (false, _, None) => Use::Updates,
        }
    };
    program.variables.iter().map(use_of).collect()
}
