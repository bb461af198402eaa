//! The kernels of a session, cached by what they compute.

use super::one_node::{self, Source};
use super::{Operand, Site};
use crate::device::Place;
use crate::op_kind::must_compile;
use crate::recorder::profile::{ClusterProfile, KernelCounts, Profile};
use compiler::{BackOptions, Executable, Loadable};
use hlo::custom_call::{ASSERT, ASSERT_OR_ABORT};
use hlo::{Identifier, Interface, Module, Op};
use shape::ArrayShape;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::{Error, Result};
use tf::{FunctionLibrary, VariableState};

use crate::lock::lock;

/// A kernel whose flops plus bytes exceed this is worth another thread.
const EXPENSIVE: u64 = 50_000;

/// Compiled code of one node.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(super) executable: Executable,
    /// For each argument that is not a variable, the index of the node's input.
    pub(super) feeds: Vec<usize>,
    /// For each size that is an argument after the feeds, an input that has it, and the dimension.
    pub(super) sizes: Vec<(usize, usize)>,
    /// Use of each of the node's variables.
    pub(super) variables: Vec<Use>,
    /// Shapes of the results that are not written to an argument.
    pub(super) results: Vec<Arc<ArrayShape>>,
    pub(super) outputs: Vec<Source>,
    /// Number of bytes at the beginning of the temporary buffer that persist across runs.
    pub(super) persistent_bytes: usize,
    pub(super) is_expensive: bool,
    pub(super) counts: Arc<KernelCounts>,
}

impl Kernel {
    /// True if the kernel computes a batch in pieces, and accesses its true rows only.
    pub(super) fn is_in_pieces(&self) -> bool {
        self.executable.code().memory().takes_true_sizes
    }
}

/// Use of a variable by a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Reads the variable.
    Reads,
    /// Updates it in place.
    Updates,
    /// Creates its new value, which is result number `result`, and reads the old one if `is_read`.
    Creates { is_read: bool, result: usize },
    /// No access: the variable has no value and gets none.
    Ignores,
}

/// Result of importing a node: a kernel, or an error and the inputs whose values the import needed.
pub(super) type Compilation = std::result::Result<Arc<Kernel>, (Error, BTreeSet<usize>)>;

/// All kernels of a session.
#[derive(Debug)]
pub(crate) struct Kernels {
    cells: Mutex<BTreeMap<Vec<u8>, Arc<OnceLock<Compilation>>>>,
    options: BackOptions,
    profiles_clusters: bool,
    compiled: AtomicU64,
}

impl Kernels {
    /// Creates a cache for kernels with these options. Clusters get time counters if
    /// `profiles_clusters`.
    pub(crate) fn new(options: BackOptions, profiles_clusters: bool) -> Self {
        Self { cells: Mutex::default(), options, profiles_clusters, compiled: AtomicU64::new(0) }
    }

    /// Counters of all clusters, in no particular order.
    pub(crate) fn profiles(&self) -> Vec<ClusterProfile> {
        let cells = lock(&self.cells);
        let kernels = cells.values().filter_map(|cell| cell.get()?.as_ref().ok());
        kernels.filter_map(|kernel| kernel.counts.profile.as_ref().map(Profile::total)).collect()
    }

    /// True if clusters get time counters.
    pub(super) fn profiles_clusters(&self) -> bool {
        self.profiles_clusters
    }

    /// Number of kernels compiled so far.
    pub(crate) fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Cache key of a kernel.
    pub(super) fn key(
        &self,
        site: &Site,
        operands: &[Operand],
        library: &FunctionLibrary,
        device: &Place,
    ) -> Vec<u8> {
        let mut key = site.key(operands, library);
        key.extend(device.code_key().bytes());
        key
    }

    /// True if the cache has a compiled kernel for the key.
    pub(super) fn has_kernel(&self, key: &[u8]) -> bool {
        lock(&self.cells).get(key).is_some_and(|cell| matches!(cell.get(), Some(Ok(_))))
    }

    /// The kernel of a node for these operands. Concurrent requests for the same kernel share one
    /// compilation.
    pub(super) fn get(
        &self,
        site: &Site,
        operands: &[Operand],
        library: &FunctionLibrary,
        device: &Place,
    ) -> Result<Compilation> {
        let key = self.key(site, operands, library, device);
        let cell = lock(&self.cells).entry(key).or_default().clone();
        let compilation = cell.get_or_init(|| {
            let result = compiler::guarded(|| Ok(self.compile(site, operands, library, device)));
            result.unwrap_or_else(|error| Err((error, BTreeSet::new())))
        });
        Ok(compilation.clone())
    }

    fn compile(
        &self,
        site: &Site,
        operands: &[Operand],
        library: &FunctionLibrary,
        device: &Place,
    ) -> Compilation {
        let none = |error| (error, BTreeSet::new());
        let one = one_node::program(site, operands, library).map_err(none)?;
        let sizes = one_node::named_dimensions(operands);
        let imported = if sizes.is_empty() {
            import::import_or_requested(&one.program).map_err(|(error, requested)| {
                let of_site = requested.into_iter().filter(|(node, _)| *node == site.node.name);
                (error, of_site.map(|(_, input)| input).collect())
            })?
        } else {
            import_ranges(site, &one.program, operands, library).map_err(none)?
        };
        hlo::verify(&imported.module).map_err(none)?;
        let interface = imported.interface.clone();
        // A GPU's kernels are measured by its driver.
        let is_profiled = self.profiles_clusters && must_compile(&site.node) && device.gpu.is_none();
        let (code, profile) = if !is_profiled {
            (device.compile(imported, &self.options).map_err(none)?, None)
        } else {
            let options = BackOptions { is_profiled, ..self.options.clone() };
            let compiled = device.compile_counting(imported.module, &options).map_err(none)?;
            let code = Loadable::of(&compiled).map_err(none)?;
            (code, Some(Profile::new(&site.node.name, compiled)))
        };
        if !code.is_cached() {
            self.compiled.fetch_add(1, Ordering::Relaxed);
            site.compilations.fetch_add(1, Ordering::Relaxed);
        }
        let (cost, persistent_bytes) = (code.cost(), code.persistent_bytes() as usize);
        let executable = device.load(code).map_err(none)?;
        let own = executable.interface().own_results();
        let results = own.map(|result| Arc::new(result.whole())).collect();
        Ok(Arc::new(Kernel {
            variables: uses(&one.program, &interface),
            feeds: one.feeds,
            sizes,
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

/// Imports the program of a node whose operands have named dimensions.
fn import_ranges(
    site: &Site,
    program: &tf::Program,
    operands: &[Operand],
    library: &FunctionLibrary,
) -> Result<hlo::Program> {
    let at_size = |size| Ok(one_node::program(site, &one_node::at_size(operands, size), library)?.program);
    let imported = compiler::import_for_code(program, &at_size)?;
    // A kernel for a shape does without checks of sizes, and an import for it states errors better.
    if imported.sized.is_empty() && has_check(&imported.module) {
        return Err(Error::unsupported("the sizes of a run must be checked"));
    }
    Ok(imported)
}

/// True if a module ends with an error for some inputs.
fn has_check(module: &Module) -> bool {
    let is_check = |instruction: &hlo::Instruction| match instruction.op() {
        Op::CustomCall { custom_call_target, .. } => {
            [ASSERT, ASSERT_OR_ABORT].contains(&custom_call_target.as_str())
        }
        _ => false,
    };
    module.computations().flat_map(|(_, computation)| computation.instructions()).any(|(_, i)| is_check(i))
}

/// Determines how the program of a node uses each of its variables.
fn uses(program: &tf::Program, interface: &Interface) -> Vec<Use> {
    let use_of = |variable: &tf::Variable| {
        let id = Identifier::Variable(variable.node_name.clone());
        let new_value = interface.own_results().position(|result| result.id == id);
        match (variable.readonly, variable.state, new_value) {
            (true, VariableState::Uninitialized, _) => Use::Ignores,
            (true, ..) => Use::Reads,
            (false, state, Some(result)) => {
                Use::Creates { is_read: state == VariableState::Separate, result }
            }
            (false, _, None) => Use::Updates,
        }
    };
    program.variables.iter().map(use_of).collect()
}
