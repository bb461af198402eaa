//! Candidates: the nodes that may be in clusters at all.

pub(crate) mod compilability;
pub(crate) mod op_groups;

use crate::analysis::constants;
use crate::analysis::resources::{ResourceKind, access};
use crate::devices::{DeviceId, Devices, Policy, Registration};
use crate::graph::attributes::{attribute, bool_attribute};
use crate::graph::library::Library;
use crate::graph::{Graph, Node, NodeId};
use crate::kernels::Kernels;
use crate::options::{Options, State};
use crate::report::{MAX_REFUSALS, RefusedNode, Report};
use compilability::Checker;
use std::collections::{BTreeMap, BTreeSet};
use support::{Id, IdVec, Result};
use tf::proto::attr_value::Value;

/// The attribute that asks for a cluster, or forbids one.
pub(crate) const COMPILE: &str = "_XlaCompile";
/// The attribute of functions that must be compiled.
pub(crate) const MUST_COMPILE: &str = "_XlaMustCompile";

/// What everything here looks at.
pub(crate) struct Context<'a> {
    pub(crate) options: &'a Options,
    pub(crate) library: &'a Library<'a>,
    pub(crate) kernels: &'a dyn Kernels,
    pub(crate) constants: &'a constants::Analysis<'a>,
    /// The same of XLA, which decides what is a candidate: a compiler that wants less constant has the same clusters.
    pub(crate) constants_of_xla: &'a constants::Analysis<'a>,
    /// Whether the JIT level is on.
    pub(crate) is_on: bool,
    /// Nodes that stay as they are.
    pub(crate) pinned: &'a BTreeSet<&'a str>,
}

/// The candidates of a graph.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// By node.
    pub(crate) is_candidate: IdVec<NodeId, bool>,
    /// The candidates, in the order of their numbers.
    pub(crate) nodes: Vec<NodeId>,
    /// The device of each node; of gaps and the ends of the graph, that of any other.
    pub(crate) device_of: IdVec<NodeId, DeviceId>,
    pub(crate) devices: Devices,
    /// Whether nodes on a CPU were left out that the level asks for.
    pub(crate) left_cpu_out: bool,
}

impl Context<'_> {
    /// Whether `_XlaCompile` stands on the node or the function it calls, or, if the level is on, `_XlaMustCompile`.
    pub(crate) fn is_asked_for(&self, node: &Node) -> bool {
        self.says(node, COMPILE) || (self.is_on && self.says(node, MUST_COMPILE))
    }

    /// Whether an attribute is true on the node or on the function it calls.
    pub(crate) fn says(&self, node: &Node, name: &str) -> bool {
        bool_attribute(&node.def.attr, name) == Some(true)
            || self.library.definitions.callee_attribute(&node.def, name) == Some(&Value::B(true))
    }

    /// Whether `_XlaCompile=false` stands on the node or, if that says nothing, on the function it calls.
    fn is_forbidden(&self, node: &Node) -> bool {
        let own = bool_attribute(&node.def.attr, COMPILE);
        match own {
            Some(compile) => !compile,
            None => self.library.definitions.callee_attribute(&node.def, COMPILE) == Some(&Value::B(false)),
        }
    }

    pub(crate) fn registration(&self, kind: &str) -> Option<&Registration> {
        self.options.devices.get(kind)
    }

    /// Whether clusters on a kind of device are compiled.
    pub(crate) fn should_compile(&self, is_asked_for: bool, kind: &str, registration: &Registration) -> bool {
        is_asked_for
            || match registration.policy {
                Policy::Always => true,
                Policy::IfEnabledGlobally => self.is_on,
                Policy::IfExplicitlyRequested => kind == "CPU" && self.is_on && self.options.cpu_global_jit,
            }
    }

    /// Finds the candidates of a graph.
    pub(crate) fn candidates(
        &self,
        graph: &Graph,
        state: &mut State,
        report: &mut Report,
    ) -> Result<Candidates> {
        let flags = &self.options.flags;
        let wanted_ops = op_groups::ops(&flags.ops_to_cluster, self.kernels)?;
        let excluded = op_groups::excluded(&flags.cluster_exclude_ops, self.kernels)?;
        let must_be_constant = self.constants_of_xla.of_graph(graph, &|_| true)?.nodes;
        let mut found = Candidates {
            is_candidate: graph.node_table(false),
            device_of: graph.node_table(DeviceId::from_index(0)),
            ..Candidates::default()
        };
        for id in graph.ids() {
            let at_node = |e: support::Error| e.context(format!("node '{}'", graph[id].name()));
            found.device_of[id] = found.devices.id(&graph[id].def.device).map_err(at_node)?;
        }
        let mut checkers: BTreeMap<String, Checker<'_>> = BTreeMap::new();
        for id in graph.ids() {
            let node = &graph[id];
            let kind = found.devices.kind(found.device_of[id]).to_owned();
            let why_not = if state.fuel_used >= flags.clustering_fuel {
                Some("--tf_xla_clustering_fuel is used up".to_owned())
            } else if !wanted_ops.is_empty() && !wanted_ops.contains(node.op()) {
                Some("--tf_xla_ops_to_cluster does not list its op".to_owned())
            } else {
                self.why_not(graph, id, &kind, &excluded, &mut checkers, &mut found)
            };
            let why_not = why_not
                .or_else(|| {
                    (must_be_constant[id] && node.is_stateful && !works_on_list(node.op())).then(|| {
                        "its value must be known when what it leads to is compiled, but differs from run to run".to_owned()
                    })
                })
                .or_else(|| {
                    drives_constants_of_loop(graph, id)
                        .then(|| "a loop's condition would have to wait for its body".to_owned())
                });
            match why_not {
                None => {
                    found.is_candidate[id] = true;
                    found.nodes.push(id);
                    state.fuel_used += 1;
                }
                Some(reason) => {
                    if self.options.reports_refusals && report.refused_nodes.len() < MAX_REFUSALS {
                        let (node, op) = (node.name().to_owned(), node.op().to_owned());
                        report.refused_nodes.push(RefusedNode { node, op, reason });
                    }
                }
            }
        }
        Ok(found)
    }

    fn why_not<'c>(
        &'c self,
        graph: &Graph,
        id: NodeId,
        kind: &str,
        excluded: &'c BTreeSet<String>,
        checkers: &mut BTreeMap<String, Checker<'c>>,
        found: &mut Candidates,
    ) -> Option<String> {
        let node = &graph[id];
        if self.pinned.contains(node.name()) {
            return Some("the caller feeds it".to_owned());
        }
        if self.is_forbidden(node) {
            return Some(format!("{COMPILE} is false"));
        }
        let Some((name, registration)) = self.options.devices.get_key_value(kind) else {
            return Some(format!("devices of kind '{kind}' have no compiler"));
        };
        if !self.should_compile(self.is_asked_for(node), kind, registration) {
            found.left_cpu_out |= kind == "CPU" && self.is_on;
            return Some(if self.is_on {
                format!("the JIT level does not hold for devices of kind '{kind}'")
            } else {
                "the JIT is off".to_owned()
            });
        }
        let checker = checkers
            .entry(kind.to_owned())
            .or_insert_with(|| Checker::new(self.library, self.kernels, excluded, registration, name));
        checker.check(graph, id).err()
    }
}

/// Whether an op works on a tensor array or a stack: its values must be in the cluster that they are made in.
fn works_on_list(op: &str) -> bool {
    access(op).is_some_and(|(_, kind)| kind != ResourceKind::Variable)
}

/// Whether an `Identity` behind the continuing side of a loop's switch is there for constants to wait for.
fn drives_constants_of_loop(graph: &Graph, id: NodeId) -> bool {
    if !graph[id].is_identity() {
        return false;
    }
    let Some(edge) =
        graph.in_edges(id).find(|e| graph[e.src].is_switch() && e.tensor().is_some_and(|t| t.output == 1))
    else {
        return false;
    };
    let Some(condition) = graph.input(edge.src, 1) else { return false };
    graph[condition.node].op() == "LoopCond"
        && graph.out_edges(id).any(|e| e.is_control() && graph[e.dst].is_constant())
}

/// Whether a graph was clustered before, or made for another compiler.
pub(crate) fn is_to_be_left(graph: &Graph) -> bool {
    graph.ids().any(|id| {
        attribute(&graph[id].def.attr, "_XlaAlreadyClustered").is_some()
            || matches!(graph[id].op(), "TPUExecute" | "TPUExecuteAndUpdateVariables")
    })
}
