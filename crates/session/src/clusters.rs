//! Clusters of a session's graph, as created by [`Options::rewrite`](crate::Options::rewrite).

use crate::lock::lock;
use crate::options::Rewrite;
use cluster::{Candidate, Kernels, Observer, State};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use tf::op_signature;

/// The compiler's answers to the clustering pass.
struct Compiler;

impl Kernels for Compiler {
    fn compiles(&self, candidate: Candidate<'_>, _device: &str) -> Result<(), String> {
        let node = tf::Node::of_def(candidate.node, candidate.output_types);
        if candidate.input_types.iter().chain(candidate.output_types).any(|t| t.is_ref()) {
            return Err(
                "its operands or results include references to variables, which stay outside clusters"
                    .to_owned(),
            );
        }
        // A launch has no string operands: strings are handled on the host.
        if candidate.input_types.iter().chain(candidate.output_types).any(|t| *t == tf::DataType::String) {
            return Err("its operands or results include strings, which stay outside clusters".to_owned());
        }
        // These ops either call functions, which clustering inspects, or have effects that a
        // cluster preserves.
        let is_flow = matches!(
            node.op.as_str(),
            "If" | "While" | "Case" | "PartitionedCall" | "StatefulPartitionedCall" | "ReadVariableOp"
        );
        let is_stateful = op_signature(&node.op).is_some_and(|signature| signature.is_stateful);
        let has_handle = candidate.input_types.iter().any(|t| t.base() == tf::DataType::Resource);
        if is_stateful && !is_flow && !has_handle && !is_random(&node.op) {
            return Err("it has side effects that a cluster would drop".to_owned());
        }
        match import::unsupported_node(&node) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    fn knows(&self, op: &str) -> bool {
        static KNOWN: LazyLock<BTreeSet<&str>> =
            LazyLock::new(|| import::supported_ops().iter().map(|known| known.name).collect());
        KNOWN.contains(op)
    }

    fn compile_time_constant_inputs(&self, op: &str) -> &[&str] {
        match op {
            // The start of a slice may be known only at run time.
            "Slice" => &["size"],
            _ => cluster::compile_time_constant_inputs(op),
        }
    }

    fn slices_from_run_time(&self) -> bool {
        true
    }
}

/// Ops that are stateful in TensorFlow, but that the device type decides about when clustering.
fn is_random(op: &str) -> bool {
    op.starts_with("Random") || matches!(op, "TruncatedNormal" | "Multinomial" | "Assert" | "CheckNumerics")
}

/// Returns a rewrite that clusters a session's graph for each set of feeds, fetches, and targets.
///
/// Stateful random ops stay outside clusters, even on `XLA_CPU` and `XLA_GPU`: alone, they draw
/// TensorFlow's numbers, but in compiled functions they draw from streams of the function.
pub fn clusters(mut options: cluster::Options, observer: Box<dyn Observer + Send>) -> Rewrite {
    for rules in options.devices.values_mut() {
        rules.cluster_stateful_rng_ops = false;
    }
    let shared = Mutex::new((State::default(), observer));
    Arc::new(move |graph, wanted| {
        let text = |(node, output): &(String, i64)| format!("{node}:{output}");
        let options = cluster::Options {
            feeds: wanted.feeds.iter().map(text).collect(),
            fetches: wanted.fetches.iter().map(text).collect(),
            targets: wanted.targets.clone(),
            prunes: true,
            keeps_names: true,
            ..options.clone()
        };
        let mut guard = lock(&shared);
        let (state, observer) = &mut *guard;
        Ok(cluster::cluster(graph, &options, &Compiler, state, observer.as_mut())?.graph)
    })
}
