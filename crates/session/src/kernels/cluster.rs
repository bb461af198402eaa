//! Launches of clusters: as one kernel where that pays, else node by node; and what flags ask to be told of them.
//!
//! The rules are TensorFlow's (`device_compilation_profiler.cc`): a cluster is compiled when it first runs. For other shapes it
//! runs node by node the first time and is compiled the second time, unless it has been compiled often for little use. With
//! [`Launches::is_async`] another thread compiles it when it first comes, and its nodes run until that thread is done, for ever
//! if it fails: so it is in TensorFlow, where no run learns of such an error (`device_compiler.h`).

use super::launch::{self, Held, Seen};
use super::{Bound, Launcher, Site};
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

/// How often a shape must come before the cluster is compiled for it.
const REQUESTS: u64 = 2;
/// A cluster that was compiled more often than this,
const MANY_COMPILATIONS: u64 = 10;
/// and run less often than this for each time, is not compiled again.
const RUNS_FOR_EACH: u64 = 50;
/// How often the outputs of a cluster are printed.
const PRINTED: u64 = 1000;

/// What is known of a cluster's runs.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    runs: u64,
    compilations: u64,
    /// It meets ever new shapes.
    is_megamorphic: bool,
    /// No kernel can be made of it.
    is_refused: bool,
    /// How often each set of shapes has come, by the hash of the kernel's key.
    of_key: BTreeMap<Vec<u8>, u64>,
    /// Those that another thread compiles, or has failed to compile.
    in_background: BTreeSet<Vec<u8>>,
    /// Whether it was said that it cannot be compiled.
    is_told: bool,
    printed: u64,
}

impl Requests {
    /// Whether the cluster is compiled for a key that it is not compiled for yet.
    fn compiles(&mut self, key: &[u8]) -> bool {
        let count = self.of_key.entry(Sha256::digest(key).to_vec()).or_default();
        *count += 1;
        let is_due = self.runs == 1 || *count >= REQUESTS;
        let compiles = is_due && !self.is_megamorphic && !self.is_refused;
        self.compilations += u64::from(compiles);
        compiles
    }

    /// Whether another thread shall compile the cluster for a key that it is not compiled for; `is_busy` are those with others.
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
    let mut held = Held::new(variables);
    let Some(bound) = bound(site, &held, cx, launcher)? else {
        // The nodes take the variables one by one.
        drop(held);
        let arguments = cx.inputs.drain(..).collect();
        return cx.call_function(&name, arguments);
    };
    launch::launch(site, &bound.kernel, &mut held, cx, launcher.recorder)?;
    drop(held);
    tell(site, launches, &name, cx)
}

/// The kernel to launch; `None` if the cluster runs node by node this time.
fn bound(
    site: &Arc<Site>,
    held: &Held<'_>,
    cx: &Context<'_>,
    launcher: &Launcher<'_>,
) -> Result<Option<Arc<Bound>>> {
    let shared = cx.shared;
    let launches = &shared.launches;
    let device = &*shared.devices[cx.device];
    if device.must_compile() || !(launches.is_lazy || launches.is_deferred) {
        return site.bind(held, cx, launcher).map(Some);
    }
    lock(&site.requests).ran();
    if launches.is_deferred {
        return Ok(None);
    }
    let last = lock(&site.last).clone();
    if let Some(last) = last.filter(|bound| bound.fits(cx.inputs, held)) {
        return Ok(Some(last));
    }
    let operands = site.operands(cx.inputs, held)?;
    let key = launcher.kernels.key(site, &operands, launcher.library, device);
    let is_made = launcher.kernels.is_made(&key);
    if !is_made && launches.is_async {
        if lock(&site.requests).compiles_in_background(&key, launcher.background.is_full()) {
            compile_in_background(site, &key, held.seen()?, cx, launcher)?;
        }
        return Ok(None);
    }
    if !is_made && !lock(&site.requests).compiles(&key) {
        return Ok(None);
    }
    match site.bind(held, cx, launcher) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            lock(&site.requests).is_refused = true;
            tell_refused(site, &error, &shared.output);
            Ok(None)
        }
        bound => bound.map(Some),
    }
}

/// Has another thread compile the cluster for these inputs.
fn compile_in_background(
    site: &Arc<Site>,
    key: &[u8],
    seen: Seen,
    cx: &Context<'_>,
    launcher: &Launcher<'_>,
) -> Result<()> {
    let shared = cx.shared;
    let (site, inputs, hash) = (site.clone(), cx.inputs.clone(), Sha256::digest(key).to_vec());
    let (kernels, library) = (launcher.kernels.clone(), launcher.library.clone());
    let (device, output) = (shared.devices[cx.device].clone(), shared.output.clone());
    launcher.background.begin(move || match site.find(&inputs, &seen, &kernels, &library, &*device) {
        Ok(_) => drop(lock(&site.requests).in_background.remove(&hash)),
        Err(error) => tell_refused(&site, &error, &output),
    })
}

/// Says, once, that a cluster cannot be compiled.
fn tell_refused(site: &Site, error: &Error, output: &Output) {
    if !std::mem::replace(&mut lock(&site.requests).is_told, true) {
        output(&format!(
            "warning: cluster '{}' is not compiled, its nodes run one by one: {error}\n",
            site.node.name
        ));
    }
}

/// Prints and checks what a launch made.
fn tell(site: &Site, launches: &Launches, name: &str, cx: &Context<'_>) -> Result<()> {
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

/// An error for floating-point numbers that are infinite or none, in the words of `CheckNumerics`.
fn check_numerics(value: &Value, what: impl Fn() -> String) -> Result<()> {
    let Value::Tensor(tensor) = value else { return Ok(()) };
    if !tensor.shape().element_type.is_floating_point() {
        return Ok(());
    }
    let numbers = tensor.to_literal().floats().unwrap_or_default();
    let found = match (numbers.iter().any(|x| x.is_infinite()), numbers.iter().any(|x| x.is_nan())) {
        (false, false) => return Ok(()),
        (true, true) => "Inf and NaN",
        (true, false) => "Inf",
        (false, true) => "NaN",
    };
    Err(Error::invalid(format!("CheckNumerics failed for {} : Tensor had {found} values", what())))
}

#[cfg(test)]
mod tests {
    use super::Requests;

    /// One run with a key; whether the cluster is compiled for it. What is compiled is not asked again.
    fn run(requests: &mut Requests, key: &[u8]) -> bool {
        requests.ran();
        requests.compiles(key)
    }

    #[test]
    fn the_first_run_is_compiled_and_other_shapes_when_they_come_again() {
        let mut requests = Requests::default();
        assert!(run(&mut requests, b"a"));
        assert!(!run(&mut requests, b"b"));
        assert!(!run(&mut requests, b"c"));
        assert!(run(&mut requests, b"b"));
        assert!(run(&mut requests, b"c"));
    }

    #[test]
    fn a_cluster_that_meets_ever_new_shapes_is_not_compiled_any_more() {
        let mut requests = Requests::default();
        let compiled =
            (0..30u8).filter(|&key| run(&mut requests, &[key]) || run(&mut requests, &[key])).count();
        assert_eq!(compiled, 11);
        // Runs of what is compiled do not bring it back.
        (0..1000).for_each(|_| requests.ran());
        assert!(!run(&mut requests, b"new") && !run(&mut requests, b"new"));
    }

    #[test]
    fn in_the_background_every_shape_is_compiled_once_unless_there_is_too_much_to_do() {
        let mut requests = Requests::default();
        let mut run = |key: &[u8], is_busy| {
            requests.ran();
            requests.compiles_in_background(key, is_busy)
        };
        // The first one, however much there is to do.
        assert!(run(b"a", true));
        assert!(!run(b"a", false));
        assert!(!run(b"b", true));
        assert!(run(b"b", false));
        assert!(!run(b"b", false));
        let compiled = (0..100u8).filter(|&key| run(&[key], false)).count();
        assert_eq!(compiled, 9, "eleven in all");
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
