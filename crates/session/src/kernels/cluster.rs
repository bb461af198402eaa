//! Launches clusters, as one kernel or node by node, and implements the flags that print or check
//! their results.
//!
//! The rules are TensorFlow's (`device_compilation_profiler.cc`). A cluster is compiled when it
//! first runs. A new shape runs node by node the first time and is compiled the second time, unless
//! the cluster has been compiled often with few runs per compilation. Shapes that differ in sizes
//! that one kernel covers count as one. With [`Launches::is_async`]
//! another thread compiles the cluster, which runs node by node until that thread is done, or
//! forever if it fails: as in TensorFlow, a run never sees such an error (`device_compiler.h`).

use super::launch::{self, LockedVariables, ShapeSnapshot};
use super::{Binding, Launcher, Request, Site};
use crate::context::Context;
use crate::lock::lock;
use crate::ops;
use crate::options::{Launches, Output};
use crate::value::Value;
use crate::value::Variable;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use support::{Error, ErrorKind, Result};

/// Number of requests for a shape before the cluster is compiled for it.
const REQUESTS: u64 = 2;
/// A cluster with more compilations than this and fewer than [`RUNS_FOR_EACH`] runs per compilation
/// is megamorphic: it is not compiled again.
const MANY_COMPILATIONS: u64 = 10;
/// Minimum number of runs per compilation of a cluster that has been compiled often.
const RUNS_FOR_EACH: u64 = 50;
/// Number of launches of a cluster whose outputs are printed.
const PRINTED: u64 = 1000;

/// Run history of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    runs: u64,
    compilations: u64,
    /// True if the cluster keeps getting new shapes.
    is_megamorphic: bool,
    /// True if compiling the cluster failed.
    is_uncompilable: bool,
    /// Number of requests for each set of shapes, by the hash of the kernel's key.
    of_key: BTreeMap<Vec<u8>, u64>,
    /// Keys that another thread is compiling or has failed to compile.
    in_background: BTreeSet<Vec<u8>>,
    /// True if a warning about the failed compilation has been printed.
    has_warned: bool,
    printed: u64,
}

impl Requests {
    /// True if the cluster should now be compiled for a key without a kernel.
    fn compiles(&mut self, key: &[u8]) -> bool {
        let count = self.of_key.entry(Sha256::digest(key).to_vec()).or_default();
        *count += 1;
        let is_due = self.runs == 1 || *count >= REQUESTS;
        let compiles = is_due && !self.is_megamorphic && !self.is_uncompilable;
        self.compilations += u64::from(compiles);
        compiles
    }

    /// True if another thread should now compile the cluster for a key without a kernel. `is_busy`
    /// means that too many compilations are pending.
    fn compiles_in_background(&mut self, key: &[u8], is_busy: bool) -> bool {
        let may_begin = !self.is_megamorphic && (self.runs == 1 || !is_busy);
        let begins = may_begin && self.in_background.insert(Sha256::digest(key).to_vec());
        self.compilations += u64::from(begins);
        begins
    }

    fn ran(&mut self) {
        self.runs += 1;
        let is_wasted = self.runs < self.compilations.saturating_mul(RUNS_FOR_EACH);
        self.is_megamorphic |= self.compilations > MANY_COMPILATIONS && is_wasted;
    }
}

/// Runs a cluster.
pub(super) fn run(
    site: &Arc<Site>,
    variables: &[Arc<Variable>],
    cx: &mut Context<'_>,
    launcher: &Launcher<'_>,
) -> Result<()> {
    let shared = cx.shared;
    let launches = &shared.launches;
    let name = cx.node.attributes.func("function")?.0.to_owned();
    if launches.checks_inputs {
        for (k, input) in cx.inputs.iter().enumerate() {
            check_numerics(input, || format!("input {k} into {name}"))?;
        }
    }
    let mut locked = LockedVariables::new(variables);
    let Some(binding) = choose_kernel(site, &locked, cx, launcher)? else {
        // The nodes lock the variables one by one.
        drop(locked);
        let arguments = cx.inputs.drain(..).collect();
        return cx.call_function(&name, arguments);
    };
    launch::launch(site, &binding.kernel, &mut locked, cx, launcher.recorder)?;
    drop(locked);
    report(site, launches, &name, cx)
}

/// The kernel to launch, or `None` if the cluster runs node by node this time.
fn choose_kernel(
    site: &Arc<Site>,
    locked: &LockedVariables<'_>,
    cx: &Context<'_>,
    launcher: &Launcher<'_>,
) -> Result<Option<Arc<Binding>>> {
    let shared = cx.shared;
    let launches = &shared.launches;
    let device = &shared.devices[cx.device];
    if device.always_compiles() || !(launches.is_lazy || launches.is_deferred) {
        return site.bind(locked, cx, launcher).map(Some);
    }
    lock(&site.requests).ran();
    if launches.is_deferred {
        return Ok(None);
    }
    if let Some(recent) = site.recent(device, cx.inputs, locked) {
        return Ok(Some(recent));
    }
    let operands = site.operands(cx.inputs, locked)?;
    let Request { operands, class } = site.request(operands, launcher.kernels, launcher.library, device);
    let key = launcher.kernels.key(site, &operands, launcher.library, device);
    let has_kernel = launcher.kernels.has_kernel(&key);
    if !has_kernel && launches.is_async {
        if lock(&site.requests).compiles_in_background(&key, launcher.background.is_full()) {
            compile_in_background(site, &key, locked.snapshot()?, cx, launcher);
        }
        return Ok(None);
    }
    if !has_kernel && !lock(&site.requests).compiles(class.as_ref().unwrap_or(&key)) {
        return Ok(None);
    }
    match site.bind(locked, cx, launcher) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            lock(&site.requests).is_uncompilable = true;
            warn_uncompilable(site, &error, &shared.output);
            Ok(None)
        }
        binding => binding.map(Some),
    }
}

/// Compiles the cluster for these inputs on another thread. A later launch tries again if the
/// system starts no thread.
fn compile_in_background(
    site: &Arc<Site>,
    key: &[u8],
    shapes: ShapeSnapshot,
    cx: &Context<'_>,
    launcher: &Launcher<'_>,
) {
    let shared = cx.shared;
    let (site, inputs, hash) = (site.clone(), cx.inputs.clone(), Sha256::digest(key).to_vec());
    let (kernels, library) = (launcher.kernels.clone(), launcher.library.clone());
    let (device, output) = (shared.devices[cx.device].clone(), shared.output.clone());
    let (requests, begun) = (site.clone(), hash.clone());
    let is_begun =
        launcher.background.begin(move || match site.find(&inputs, &shapes, &kernels, &library, &device) {
            Ok(_) => drop(lock(&site.requests).in_background.remove(&hash)),
            Err(error) => warn_uncompilable(&site, &error, &output),
        });
    if !is_begun {
        lock(&requests.requests).in_background.remove(&begun);
    }
}

/// Warns once that a cluster cannot be compiled.
fn warn_uncompilable(site: &Site, error: &Error, output: &Output) {
    if !std::mem::replace(&mut lock(&site.requests).has_warned, true) {
        output(&format!(
            "warning: cluster '{}' was not compiled and runs node by node: {error}\n",
            site.node.name
        ));
    }
}

/// Prints and checks the outputs of a launch, as requested.
fn report(site: &Site, launches: &Launches, name: &str, cx: &Context<'_>) -> Result<()> {
    let outputs = || cx.outputs.iter().enumerate().filter_map(|(k, output)| Some((k, output.as_ref()?)));
    if launches.prints_outputs {
        let mut requests = lock(&site.requests);
        requests.printed += 1;
        if requests.printed <= PRINTED {
            for (k, output) in outputs() {
                let text = ops::summary(output, -1)?;
                (cx.shared.output)(&format!("output {k} from {name} is [{text}]\n"));
            }
        }
    }
    if launches.checks_outputs {
        for (k, output) in outputs() {
            check_numerics(output, || format!("output {k} from cluster {name}"))?;
        }
    }
    Ok(())
}

/// Fails if an array contains NaN or infinities, with the message of `CheckNumerics`.
fn check_numerics(value: &Value, what: impl Fn() -> String) -> Result<()> {
    let Value::Tensor(tensor) = value else { return Ok(()) };
    if !tensor.shape().element_type.is_floating_point() {
        return Ok(());
    }
    let numbers = tensor.to_literal().floats().unwrap_or_default();
    let kinds = match (numbers.iter().any(|x| x.is_infinite()), numbers.iter().any(|x| x.is_nan())) {
        (false, false) => return Ok(()),
        (true, true) => "Inf and NaN",
        (true, false) => "Inf",
        (false, true) => "NaN",
    };
    Err(Error::invalid(format!("CheckNumerics failed for {} : Tensor had {kinds} values", what())))
}

#[cfg(test)]
mod tests {
    use super::Requests;

    /// One run with a key. Returns true if the cluster is compiled for it; call this only for keys
    /// without a kernel.
    fn run(requests: &mut Requests, key: &[u8]) -> bool {
        requests.ran();
        requests.compiles(key)
    }

    #[test]
    fn the_first_run_is_compiled_and_other_shapes_on_their_second_run() {
        let mut requests = Requests::default();
        assert!(run(&mut requests, b"a"));
        assert!(!run(&mut requests, b"b"));
        assert!(!run(&mut requests, b"c"));
        assert!(run(&mut requests, b"b"));
        assert!(run(&mut requests, b"c"));
    }

    #[test]
    fn a_megamorphic_cluster_is_no_longer_compiled() {
        let mut requests = Requests::default();
        let compiled =
            (0..30u8).filter(|&key| run(&mut requests, &[key]) || run(&mut requests, &[key])).count();
        assert_eq!(compiled, 11);
        // Runs of compiled shapes do not reverse the decision.
        (0..1000).for_each(|_| requests.ran());
        assert!(!run(&mut requests, b"new") && !run(&mut requests, b"new"));
    }

    #[test]
    fn the_background_compiles_every_shape_once_unless_it_is_full() {
        let mut requests = Requests::default();
        let mut run = |key: &[u8], is_busy| {
            requests.ran();
            requests.compiles_in_background(key, is_busy)
        };
        // The first shape is compiled even if the background is full.
        assert!(run(b"a", true));
        assert!(!run(b"a", false));
        assert!(!run(b"b", true));
        assert!(run(b"b", false));
        assert!(!run(b"b", false));
        let compiled = (0..100u8).filter(|&key| run(&[key], false)).count();
        assert_eq!(compiled, 9, "eleven compilations in total");
    }

    #[test]
    fn a_cluster_that_is_run_often_is_compiled_for_many_shapes() {
        let mut requests = Requests::default();
        for key in 0..30u8 {
            let first = run(&mut requests, &[key]);
            assert!(first || run(&mut requests, &[key]), "{key}");
            (0..60).for_each(|_| requests.ran());
        }
    }
}
