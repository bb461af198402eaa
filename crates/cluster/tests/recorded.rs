//! Compares clusters with those of TensorFlow 2.15.1 (on CPUs, level 2, clusters of at least two
//! nodes).
//!
//! Each file of `tests/recorded` is the dump `mark_for_compilation` of a session's graph, reduced
//! to the parts that clustering reads: without elements of constants, shapes, and the only device.
//! `ops.txt` lists the ops that XLA compiles.

use cluster::{Candidate, Flags, JitLevel, Kernels, Options, Silent, State, cluster};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tf::DataType;
use tf::proto::attr_value::Value;
use tf::proto::{GraphDef, NodeDef};

/// A compiler that supports XLA's ops.
struct Xla(BTreeSet<String>);

impl Kernels for Xla {
    fn compiles(&self, candidate: Candidate<'_>, _device: &str) -> Result<(), String> {
        let is_string = |t: &DataType| t.base() == DataType::String;
        if !self.0.contains(&candidate.node.op) {
            Err("XLA does not know the op".to_owned())
        } else if candidate.input_types.iter().chain(candidate.output_types).any(is_string) {
            Err("XLA has no strings".to_owned())
        } else {
            Ok(())
        }
    }

    fn knows(&self, op: &str) -> bool {
        self.0.contains(op)
    }
}

fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Removes the recorded clusters from a graph and returns the nodes of each.
fn take_clusters(graph: &mut GraphDef) -> BTreeSet<BTreeSet<String>> {
    let mut clusters: BTreeMap<Vec<u8>, BTreeSet<String>> = BTreeMap::new();
    for node in &mut graph.node {
        if let Some(Value::S(cluster)) = node.attr.remove("_XlaCluster").and_then(|v| v.value) {
            clusters.entry(cluster.to_vec()).or_default().insert(node.name.clone());
        }
    }
    clusters.into_values().collect()
}

/// The original of a cloned constant. Clustering creates the clones first.
fn original(name: &str) -> Option<&str> {
    let (name, number) = name.rsplit_once("/clone_")?;
    number.bytes().all(|b| b.is_ascii_digit()).then_some(name)
}

/// Removes the clones of constants, so that ours are created in the same order.
fn without_copies(graph: &mut GraphDef) {
    graph.node.retain(|node| original(&node.name).is_none());
    for input in graph.node.iter_mut().flat_map(|node| &mut node.input) {
        if let Some(name) = original(input) {
            *input = name.to_owned();
        }
    }
}

/// Our clusters as the marking pass creates them, before declustering.
fn mark_clusters(graph: &GraphDef) -> BTreeSet<BTreeSet<String>> {
    #[derive(Default)]
    struct MarkedGraph(GraphDef);
    impl cluster::Observer for MarkedGraph {
        fn wants_graphs(&self) -> bool {
            true
        }
        fn graph(&mut self, name: &str, graph: &GraphDef) {
            if name == "mark_for_compilation" {
                self.0 = graph.clone();
            }
        }
    }
    let ops = String::from_utf8(read("ops.txt")).expect("text").lines().map(str::to_owned).collect();
    let flags =
        Flags { min_cluster_size: 2, cpu_global_jit: true, clustering_debug: true, ..Flags::default() };
    let options = Options { cluster_functions: false, ..Options::new(JitLevel::On2, flags) };
    let mut observer = MarkedGraph::default();
    cluster(graph, &options, &Xla(ops), &mut State::default(), &mut observer)
        .unwrap_or_else(|e| panic!("{e}"));
    cluster(graph, &options, &Xla(BTreeSet::new()), &mut State::default(), &mut Silent)
        .map(|none| assert!(none.report.clusters.is_empty(), "a compiler without ops must yield no clusters"))
        .unwrap_or_else(|e| panic!("{e}"));
    take_clusters(&mut observer.0)
}

/// Verifies that clustering a clustered graph changes nothing.
fn check_idempotent(graph: &GraphDef, name: &str) {
    let ops = String::from_utf8(read("ops.txt")).expect("text").lines().map(str::to_owned).collect();
    let flags = Flags { min_cluster_size: 2, cpu_global_jit: true, ..Flags::default() };
    let (options, xla) = (Options::new(JitLevel::On2, flags), Xla(ops));
    let again = |graph: &GraphDef| {
        cluster(graph, &options, &xla, &mut State::default(), &mut Silent).unwrap_or_else(|e| panic!("{e}"))
    };
    let once = again(graph);
    assert!(!once.report.clusters.is_empty(), "{name}");
    let twice = again(&once.graph);
    assert!(twice.report.clusters.is_empty(), "{name}: {:?}", twice.report.clusters);
    // The order of nodes is irrelevant.
    let nodes = |graph: &GraphDef| -> BTreeMap<String, NodeDef> {
        graph.node.iter().map(|node| (node.name.clone(), node.clone())).collect()
    };
    assert!(nodes(&twice.graph) == nodes(&once.graph), "{name} has other nodes");
    assert!(twice.graph.library == once.graph.library, "{name} has other functions");
}

fn check_clusters(name: &str) {
    let file = format!("{name}.pbtxt");
    let mut graph = tf::source::parse_graph_def(read(&file).into(), &file).unwrap_or_else(|e| panic!("{e}"));
    let recorded = take_clusters(&mut graph);
    assert!(!recorded.is_empty(), "{name} has clusters");
    without_copies(&mut graph);
    let ours = mark_clusters(&graph);
    check_idempotent(&graph, name);
    let missing: Vec<_> = recorded.difference(&ours).collect();
    let extra: Vec<_> = ours.difference(&recorded).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "{name}: missing clusters: {missing:#?}, extra clusters: {extra:#?}"
    );
}

macro_rules! recorded {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                check_clusters(stringify!($name));
            }
        )*
    };
}

recorded!(
    cond,
    control,
    conv,
    embed,
    function_body,
    functions,
    parallel,
    rnn,
    scope,
    shapes,
    softmax,
    softmax_resource,
    while1,
    while_grad,
    while_nested
);
