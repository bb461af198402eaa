//! Candidates: the nodes that may be part of a cluster.

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

/// Attribute that requests or forbids a cluster.
pub(crate) const COMPILE: &str = "_XlaCompile";
/// Attribute of functions that must be compiled.
pub(crate) const MUST_COMPILE: &str = "_XlaMustCompile";

/// Inputs of the search for candidates.
pub(crate) struct Context<'a> {
    pub(crate) options: &'a Options,
    pub(crate) library: &'a Library<'a>,
    pub(crate) kernels: &'a dyn Kernels,
    pub(crate) constants: &'a constants::Analysis<'a>,
    /// The same analysis with XLA's rules, which determine the candidates: a compiler that needs
    /// fewer constants still produces the same clusters.
    pub(crate) constants_of_xla: &'a constants::Analysis<'a>,
    /// True if the JIT level is on.
    pub(crate) is_on: bool,
    /// Nodes that must stay unchanged.
    pub(crate) pinned: &'a BTreeSet<&'a str>,
}

/// The candidates of a graph.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// For each node, true if it is a candidate.
    pub(crate) is_candidate: IdVec<NodeId, bool>,
    /// Candidates in increasing order.
    pub(crate) nodes: Vec<NodeId>,
    /// Device of each node; arbitrary for gaps, the source, and the sink.
    pub(crate) device_of: IdVec<NodeId, DeviceId>,
    pub(crate) devices: Devices,
    /// True if nodes were excluded only because they are on a CPU.
    pub(crate) excluded_cpu: bool,
}

impl Context<'_> {
    /// True if `_XlaCompile` is set on the node or on its callee, or, if the level is on,
    /// `_XlaMustCompile`.
    pub(crate) fn is_asked_for(&self, node: &Node) -> bool {
        self.has_attribute(node, COMPILE) || (self.is_on && self.has_attribute(node, MUST_COMPILE))
    }

    /// True if an attribute is true on the node or on its callee.
    pub(crate) fn has_attribute(&self, node: &Node, name: &str) -> bool {
        bool_attribute(&node.def.attr, name) == Some(true)
            || self.library.definitions.callee_attribute(&node.def, name) == Some(&Value::B(true))
    }

    /// True if `_XlaCompile` is false on the node or, if the node does not have it, on its callee.
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

    /// True if clusters on a device of this kind are compiled.
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
        let allowed_ops = op_groups::ops(&flags.ops_to_cluster, self.kernels)?;
        let excluded = op_groups::excluded(&flags.cluster_exclude_ops, self.kernels)?;
        let must_be_constant = self.constants_of_xla.of_graph(graph, &|_| true)?.nodes;
        let mut candidates = Candidates {
            is_candidate: graph.node_table(false),
            device_of: graph.node_table(DeviceId::from_index(0)),
            ..Candidates::default()
        };
        for id in graph.ids() {
            let at_node = |e: support::Error| e.context(format!("node '{}'", graph[id].name()));
            candidates.device_of[id] = candidates.devices.id(&graph[id].def.device).map_err(at_node)?;
        }
        let mut checkers: BTreeMap<String, Checker<'_>> = BTreeMap::new();
        for id in graph.ids() {
            let node = &graph[id];
            let kind = candidates.devices.kind(candidates.device_of[id]).to_owned();
            let why_not = if state.fuel_used >= flags.clustering_fuel {
                Some("--tf_xla_clustering_fuel is exhausted".to_owned())
            } else if !allowed_ops.is_empty() && !allowed_ops.contains(node.op()) {
                Some("--tf_xla_ops_to_cluster does not list its op".to_owned())
            } else {
                self.why_not(graph, id, &kind, &excluded, &mut checkers, &mut candidates)
            };
            let why_not = why_not
                .or_else(|| {
                    (must_be_constant[id] && node.is_stateful && !works_on_list(node.op())).then(|| {
                        "its value must be a compile-time constant, but it changes between runs".to_owned()
                    })
                })
                .or_else(|| {
                    drives_constants_of_loop(graph, id)
                        .then(|| "the loop's condition would depend on its body".to_owned())
                });
            match why_not {
                None => {
                    candidates.is_candidate[id] = true;
                    candidates.nodes.push(id);
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
        Ok(candidates)
    }

    fn why_not<'c>(
        &'c self,
        graph: &Graph,
        id: NodeId,
        kind: &str,
        excluded: &'c BTreeSet<String>,
        checkers: &mut BTreeMap<String, Checker<'c>>,
        candidates: &mut Candidates,
    ) -> Option<String> {
        let node = &graph[id];
        if self.pinned.contains(node.name()) {
            return Some("it is fed by the caller".to_owned());
        }
        if self.is_forbidden(node) {
            return Some(format!("{COMPILE} is false"));
        }
        let Some((name, registration)) = self.options.devices.get_key_value(kind) else {
            return Some(format!("no compiler supports devices of kind '{kind}'"));
        };
        if !self.should_compile(self.is_asked_for(node), kind, registration) {
            candidates.excluded_cpu |= kind == "CPU" && self.is_on;
            return Some(if self.is_on {
                format!("the JIT level does not apply to devices of kind '{kind}'")
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

/// True if an op works on a tensor array or a stack. These cannot leave the cluster that creates
/// them.
fn works_on_list(op: &str) -> bool {
    access(op).is_some_and(|(_, kind)| kind != ResourceKind::Variable)
}

/// True for an `Identity` on the continuing side of a loop's switch that only serves as a control
/// input of constants.
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

/// True if a graph must not be clustered: it was clustered before, or targets another compiler.
pub(crate) fn must_skip(graph: &Graph) -> bool {
    graph.ids().any(|id| {
        attribute(&graph[id].def.attr, "_XlaAlreadyClustered").is_some()
            || matches!(graph[id].op(), "TPUExecute" | "TPUExecuteAndUpdateVariables")
    })
}
