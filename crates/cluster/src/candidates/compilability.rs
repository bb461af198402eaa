//! Checks whether a node, including all functions that it calls, may be part of a cluster.

use crate::analysis::resources::{ResourceKind, access};
use crate::devices::Registration;
use crate::graph::attributes::{function_attribute, function_list};
use crate::graph::library::{Library, MAX_DEPTH};
use crate::graph::{Edge, Graph, Node, NodeId};
use crate::kernels::{Candidate, Kernels, is_executor_op};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use tf::DataType;
use tf::proto::{AttrValue, NameAttrList};

/// Checks the nodes of one kind of device. Caches the results for functions.
pub(crate) struct Checker<'a> {
    library: &'a Library<'a>,
    kernels: &'a dyn Kernels,
    excluded: &'a BTreeSet<String>,
    registration: &'a Registration,
    device: &'a str,
    functions: BTreeMap<Vec<u8>, Result<(), String>>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(
        library: &'a Library<'a>,
        kernels: &'a dyn Kernels,
        excluded: &'a BTreeSet<String>,
        registration: &'a Registration,
        device: &'a str,
    ) -> Self {
        Self { library, kernels, excluded, registration, device, functions: BTreeMap::new() }
    }

    /// Checks whether a node of a graph may be clustered. The error is the reason.
    pub(crate) fn check(&mut self, graph: &Graph, id: NodeId) -> Result<(), String> {
        self.node(graph, id, 1)
    }

    fn node(&mut self, graph: &Graph, id: NodeId, depth: usize) -> Result<(), String> {
        let node = &graph[id];
        let is_argument = matches!(node.op(), "_Arg" | "_Retval");
        if depth == 1 && is_argument {
            return Err("it is an argument or a result of the graph".to_owned());
        }
        for name in ["_scoped_allocator", "_forward_from"] {
            if node.def.attr.contains_key(name) {
                return Err(format!("it has the attribute '{name}'"));
            }
        }
        self.kernel(graph, id, depth, is_argument)?;
        self.filters(node, depth)
    }

    /// Checks whether the op itself and the functions it calls can be compiled.
    fn kernel(&mut self, graph: &Graph, id: NodeId, depth: usize, is_argument: bool) -> Result<(), String> {
        let node = &graph[id];
        let attributes = &node.def.attr;
        if is_argument {
            return Ok(());
        }
        let callee = match node.op() {
            "PartitionedCall" | "StatefulPartitionedCall" | "SymbolicGradient" => {
                let callee = function_attribute(attributes, "f");
                Some(callee.cloned().ok_or("it does not name a function")?)
            }
            op if self.library.definitions.function(op).is_some() => {
                Some(NameAttrList { name: op.to_owned(), attr: attributes.clone() })
            }
            _ => None,
        };
        if let Some(callee) = callee {
            return self.call(&callee, depth);
        }
        if is_executor_op(node.op()) {
            return Err("the executor itself runs the op".to_owned());
        }
        if node.op() == "Const" && node.output_types.contains(&DataType::String) {
            return Err("it is a string constant".to_owned());
        }
        let is_reference = |edge: &Edge| {
            edge.tensor().is_some_and(|tensor| graph[tensor.node].output_types[tensor.output].is_ref())
        };
        // A cluster cannot guarantee that an input and an output share memory.
        if node.is_identity() && graph.in_edges(id).any(|edge| is_reference(&edge)) {
            return Err("it forwards a reference".to_owned());
        }
        let candidate =
            Candidate { node: &node.def, input_types: &node.input_types, output_types: &node.output_types };
        self.kernels.compiles(candidate, self.device)?;
        let branches: Vec<NameAttrList> = match node.op() {
            "While" | "StatelessWhile" => self.named_functions(attributes, &["cond", "body"])?,
            "If" | "StatelessIf" => self.named_functions(attributes, &["then_branch", "else_branch"])?,
            "Case" | "StatelessCase" => function_list(attributes, "branches").to_vec(),
            _ => Vec::new(),
        };
        branches.iter().try_for_each(|branch| self.call(branch, depth))
    }

    fn named_functions(
        &self,
        attributes: &BTreeMap<String, AttrValue>,
        names: &[&str],
    ) -> Result<Vec<NameAttrList>, String> {
        let get = |name: &&str| {
            function_attribute(attributes, name)
                .cloned()
                .ok_or_else(|| format!("the function attribute '{name}' is missing"))
        };
        names.iter().map(get).collect()
    }

    /// Checks whether an entire function can be compiled.
    fn call(&mut self, callee: &NameAttrList, depth: usize) -> Result<(), String> {
        let name = &callee.name;
        if depth > MAX_DEPTH {
            return Err(format!("function calls are nested more than {MAX_DEPTH} levels deep at '{name}'"));
        }
        let key = callee.encode_to_vec();
        if let Some(known) = self.functions.get(&key) {
            return known.clone();
        }
        self.functions.insert(key.clone(), Err(format!("function '{name}' calls itself")));
        let result = match self.library.body(name, &callee.attr) {
            Ok(body) => body.graph.ids().try_for_each(|id| {
                self.node(&body.graph, id, depth + 1)
                    .map_err(|reason| format!("'{}' in function '{name}': {reason}", body.graph[id].name()))
            }),
            Err(error) => Err(error.message().to_owned()),
        };
        self.functions.insert(key, result.clone());
        result
    }

    /// Excludes nodes from clusters although they could be compiled.
    fn filters(&self, node: &Node, depth: usize) -> Result<(), String> {
        let rules = self.registration;
        let kind = access(node.op()).map(|(_, kind)| kind);
        let is_variant = |t: &DataType| t.base() == DataType::Variant;
        let has_variant = node.input_types.iter().chain(&node.output_types).any(is_variant);
        if self.excluded.contains(node.op()) {
            return Err("--tf_xla_cluster_exclude_ops excludes it".to_owned());
        }
        let reason = match node.op() {
            "RandomUniform"
            | "RandomShuffle"
            | "RandomUniformInt"
            | "RandomStandardNormal"
            | "TruncatedNormal"
            | "Multinomial"
                if !rules.cluster_stateful_rng_ops =>
            {
                "it is a stateful random op"
            }
            "ControlTrigger" if !rules.cluster_control_trigger => "it runs even if its inputs are dead",
            "Assert" | "CheckNumerics" if !rules.elide_assert_and_checknumerics => {
                "a cluster would drop its check"
            }
            "CollectiveReduceV2" => "it is a collective op",
            "Unique" => "the size of its result is known only after it has run",
            _ if has_variant && !rules.cluster_variant_ops => "its operands or results include variants",
            _ if kind == Some(ResourceKind::Stack) && !rules.cluster_stack_ops => "it uses a stack",
            _ if kind == Some(ResourceKind::TensorArray) && !rules.cluster_tensor_array_ops => {
                "it uses a tensor array"
            }
            _ if depth > 1
                && !rules.cluster_resource_variable_ops_unsafely
                && node.input_types.contains(&DataType::Resource) =>
            {
                "it uses a resource inside a function"
            }
            "SelfAdjointEigV2" | "Svd" if !rules.cluster_inaccurate_ops => "it is inaccurate in XLA",
            "Qr"
            | "MatrixInverse"
            | "MatrixSolve"
            | "ResizeBilinearGrad"
            | "NonMaxSuppressionV3"
            | "NonMaxSuppressionV4"
                if !rules.cluster_slow_ops =>
            {
                "it is slow in XLA"
            }
            _ => return Ok(()),
        };
        Err(reason.to_owned())
    }
}
