//! Clusters of a session's graph, as [`Options::rewrite`](crate::Options::rewrite) makes them.

use crate::lock::lock;
use crate::options::Rewrite;
use cluster::{Candidate, Kernels, Observer, State};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use tf::op_signature;

/// The compiler, as clustering asks it.
struct Compiler;

impl Kernels for Compiler {
    fn compiles(&self, candidate: Candidate<'_>, _device: &str) -> Result<(), String> {
        let node = tf::Node::of_def(candidate.node, candidate.output_types);
        if candidate.input_types.iter().chain(candidate.output_types).any(|t| t.is_ref()) {
            return Err(
                "it takes or makes references to variables, which stay outside of clusters".to_owned()
            );
        }
        // What runs on the host takes strings; a launch has no operand of them.
        if candidate.input_types.iter().chain(candidate.output_types).any(|t| *t == tf::DataType::String) {
            return Err("it takes or makes strings, which stay outside of clusters".to_owned());
        }
        // Those have functions, which clustering follows, or effects that a cluster keeps.
        let is_flow = matches!(
            node.op.as_str(),
            "If" | "While" | "Case" | "PartitionedCall" | "StatefulPartitionedCall" | "ReadVariableOp"
        );
        let is_stateful = op_signature(&node.op).is_some_and(|signature| signature.is_stateful);
        let has_handle = candidate.input_types.iter().any(|t| t.base() == tf::DataType::Resource);
        if is_stateful && !is_flow && !has_handle && !is_random(&node.op) {
            return Err("it has effects that a cluster would not have".to_owned());
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
            // Where a slice begins may be known only when it is run.
            "Slice" => &["size"],
            _ => cluster::compile_time_constant_inputs(op),
        }
    }

    fn slices_from_run_time(&self) -> bool {
        true
    }
}

/// Ops with states of their own, about which the kind of device decides.
fn is_random(op: &str) -> bool {
    op.starts_with("Random") || matches!(op, "TruncatedNormal" | "Multinomial" | "Assert" | "CheckNumerics")
}

/// Lets a session cluster its graph for each set of feeds, fetches and targets.
pub fn clusters(options: cluster::Options, observer: Box<dyn Observer + Send>) -> Rewrite {
    let kept = Mutex::new((State::default(), observer));
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
        let mut kept = lock(&kept);
        let (state, observer) = &mut *kept;
        Ok(cluster::cluster(graph, &options, &Compiler, state, observer.as_mut())?.graph)
    })
}
