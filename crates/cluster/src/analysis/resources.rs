//! Accesses of ops to variables, stacks, and tensor arrays, and pairs of accesses that one cluster
//! cannot contain.
//!
//! A cluster reads all of its variables when it begins and writes them when it ends. A path from a
//! write to a read must therefore not lie within one cluster.

use crate::analysis::cycles::Cycles;
use crate::graph::definitions::Definitions;
use crate::graph::{Graph, NodeId};
use std::rc::Rc;
use support::{Id, IdVec};
use tf::DataType;

/// Kind of access to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    ReadWrite,
}

/// Kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    Variable,
    Stack,
    TensorArray,
}

/// Accesses of the ops that XLA supports.
pub(crate) fn access(op: &str) -> Option<(Access, ResourceKind)> {
    use Access::{Read, ReadWrite, Write};
    use ResourceKind::{Stack, TensorArray, Variable};
    Some(match op {
        "CollectiveReduceV2"
        | "ReadVariableOp"
        | "ReadVariableXlaSplitND"
        | "ResourceGather"
        | "ResourceGatherNd"
        | "VarIsInitializedOp"
        | "VariableShape" => (Read, Variable),
        "AssignVariableOp" | "AssignVariableXlaConcatND" => (Write, Variable),
        "AssignAddVariableOp"
        | "AssignSubVariableOp"
        | "ResourceStridedSliceAssign"
        | "RngReadAndSkip"
        | "RngSkip"
        | "StatefulStandardNormalV2"
        | "StatefulTruncatedNormal"
        | "StatefulUniform"
        | "StatefulUniformFullInt"
        | "StatefulUniformInt" => (ReadWrite, Variable),
        "StackV2" => (Write, Stack),
        "StackCloseV2" => (Read, Stack),
        "StackPopV2" | "StackPushV2" => (ReadWrite, Stack),
        "TensorArrayV3" | "TensorArrayScatterV3" | "TensorArraySplitV3" | "TensorArrayWriteV3" => {
            (Write, TensorArray)
        }
        "TensorArrayConcatV3"
        | "TensorArrayGatherV3"
        | "TensorArrayGradV3"
        | "TensorArrayCloseV3"
        | "TensorArrayReadV3"
        | "TensorArraySizeV3" => (Read, TensorArray),
        _ if op.starts_with("ResourceApply")
            || op.starts_with("ResourceSparseApply")
            || op.starts_with("ResourceScatter") =>
        {
            (ReadWrite, Variable)
        }
        _ => return None,
    })
}

support::id_type!(
    /// Number of a writing node among all writing nodes.
    WriterId,
    "w"
);

/// Maximum memory in bytes for reachability sets.
const MAX_BYTES: usize = 256 << 20;

/// Pairs of candidates that must not be in one cluster.
#[derive(Debug, Default)]
pub(crate) struct Safety {
    /// Writer number of each node that writes.
    writers: IdVec<NodeId, Option<WriterId>>,
    /// For each node that reads, a bit set of the writers that reach it; `None` for other nodes.
    reached_by: IdVec<NodeId, Option<Rc<[u64]>>>,
    /// True if there are too many writers for the sets. Then every writer is assumed to reach every
    /// reader.
    is_unknown: bool,
    count: usize,
}

impl Safety {
    /// Collects the writers and readers of a graph. Only candidates for which `is_ignored` is false
    /// count.
    pub(crate) fn new(
        graph: &Graph,
        definitions: &Definitions<'_>,
        candidates: &IdVec<NodeId, bool>,
        is_ignored: &dyn Fn(NodeId) -> bool,
    ) -> Self {
        let mut accesses: IdVec<NodeId, Option<Access>> = graph.node_table(None);
        let mut safety =
            Self { writers: graph.node_table(None), reached_by: graph.node_table(None), ..Self::default() };
        for id in graph.ids().filter(|&id| candidates[id] && !is_ignored(id)) {
            let node = &graph[id];
            let takes_handle = || node.input_types.contains(&DataType::Resource);
            let known = access(node.op()).map(|(access, _)| access);
            // Functions can do anything, and so can ops that XLA does not support.
            let access = known
                .or_else(|| (definitions.may_call(&node.def) || takes_handle()).then_some(Access::ReadWrite));
            accesses[id] = access;
            if matches!(access, Some(Access::Write | Access::ReadWrite)) {
                safety.writers[id] = Some(WriterId::from_index(safety.count));
                safety.count += 1;
            }
        }
        if safety.count == 0 {
            return safety;
        }
        let words = safety.count.div_ceil(64);
        safety.is_unknown = words.saturating_mul(8 * graph.nodes.len()) > MAX_BYTES;
        let nothing: Rc<[u64]> = vec![0; if safety.is_unknown { 0 } else { words }].into();
        let mut reaching: IdVec<NodeId, Rc<[u64]>> = graph.node_table(nothing.clone());
        for id in graph.forward_order() {
            if !safety.is_unknown {
                let mut sets =
                    graph.in_edges(id).filter(|e| !graph[e.src].is_next_iteration()).map(|e| e.src);
                let mut set = sets.next().map_or_else(|| nothing.clone(), |src| reaching[src].clone());
                for src in sets {
                    set = union(&set, &reaching[src]);
                }
                reaching[id] = set;
            }
            if matches!(accesses[id], Some(Access::Read | Access::ReadWrite)) {
                safety.reached_by[id] = Some(reaching[id].clone());
            }
            if let Some(writer) = safety.writers[id]
                && !safety.is_unknown
            {
                let mut set = reaching[id].to_vec();
                set[writer.index() / 64] |= 1 << (writer.index() % 64);
                reaching[id] = set.into();
            }
        }
        safety
    }

    /// Writer number of a node.
    pub(crate) fn writer(&self, id: NodeId) -> Option<WriterId> {
        self.writers[id]
    }

    /// True if a node reads a resource.
    pub(crate) fn reads(&self, id: NodeId) -> bool {
        self.reached_by[id].is_some()
    }

    /// True if any of these writers reaches any of these readers. Counts its steps and returns true
    /// if the budget is exhausted.
    pub(crate) fn is_broken_by(&self, writers: &[WriterId], readers: &[NodeId], cycles: &mut Cycles) -> bool {
        if writers.is_empty() || readers.is_empty() {
            return false;
        }
        if self.is_unknown || !cycles.work(writers.len() as u64) {
            return true;
        }
        let mut writer_set = vec![0u64; self.count.div_ceil(64)];
        for &writer in writers {
            writer_set[writer.index() / 64] |= 1 << (writer.index() % 64);
        }
        for reached_by in readers.iter().filter_map(|&id| self.reached_by[id].as_ref()) {
            if !cycles.work(writer_set.len() as u64)
                || writer_set.iter().zip(reached_by.iter()).any(|(a, b)| a & b != 0)
            {
                return true;
            }
        }
        false
    }
}

fn union(one: &Rc<[u64]>, other: &Rc<[u64]>) -> Rc<[u64]> {
    if Rc::ptr_eq(one, other) || one.iter().zip(other.iter()).all(|(a, b)| b & !a == 0) {
        return one.clone();
    }
    if one.iter().zip(other.iter()).all(|(a, b)| a & !b == 0) {
        return other.clone();
    }
    one.iter().zip(other.iter()).map(|(a, b)| a | b).collect()
}
