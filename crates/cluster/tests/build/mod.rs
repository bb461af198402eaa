//! Graphs for tests, built node by node, and a compiler that supports the same ops as XLA.

#![allow(dead_code, reason = "each test uses a part")]

use cluster::{Candidate, Clustered, Flags, JitLevel, Kernels, Observer, Options, State};
use std::collections::{BTreeMap, BTreeSet};
use tf::proto::attr_value::Value;
use tf::proto::{
    ArgDef, AttrValue, Dim, FunctionDef, FunctionDefLibrary, GraphDef, ListValue, NameAttrList, NodeDef,
    OpDef, TensorProto, TensorShapeProto,
};
use tf::{DataType, op_signature};

/// One or two devices of each kind.
pub const CPU: &str = "/job:worker/replica:0/task:0/device:CPU:0";
pub const GPU0: &str = "/job:worker/replica:0/task:0/device:GPU:0";
pub const GPU1: &str = "/job:worker/replica:0/task:0/device:GPU:1";
pub const XLA_CPU: &str = "/job:worker/replica:0/task:0/device:XLA_CPU:0";
pub const XLA_GPU0: &str = "/job:worker/replica:0/task:0/device:XLA_GPU:0";
pub const XLA_GPU1: &str = "/job:worker/replica:0/task:0/device:XLA_GPU:1";

/// An op on floats that the compiler does not support.
pub const UNCOMPILABLE: &str = "Rint";

/// A compiler that supports all but a few ops.
pub struct Compiler;

impl Kernels for Compiler {
    fn compiles(&self, candidate: Candidate<'_>, _device: &str) -> Result<(), String> {
        let is_string = |t: &DataType| t.base() == DataType::String;
        let op = candidate.node.op.as_str();
        match op {
            UNCOMPILABLE | "EncodeBase64" | "StringSplit" | "Print" | "Stage" | "Unstage" | "Variable" => {
                Err(format!("the compiler does not support {op}"))
            }
            _ if candidate.input_types.iter().chain(candidate.output_types).any(is_string) => {
                Err("its operands or results include strings".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn knows(&self, op: &str) -> bool {
        op_signature(op).is_some() && op != UNCOMPILABLE
    }
}

/// A node under construction.
pub struct NodeBuilder<'g>(&'g mut NodeDef);

impl NodeBuilder<'_> {
    pub fn attr(self, name: &str, value: Value) -> Self {
        self.0.attr.insert(name.to_owned(), value.into());
        self
    }

    pub fn flag(self, name: &str, value: bool) -> Self {
        self.attr(name, Value::B(value))
    }

    pub fn text(self, name: &str, value: &str) -> Self {
        self.attr(name, Value::S(value.to_owned().into()))
    }

    pub fn ty(self, name: &str, data_type: DataType) -> Self {
        self.attr(name, Value::Type(data_type.number()))
    }

    pub fn device(self, device: &str) -> Self {
        device.clone_into(&mut self.0.device);
        self
    }

    pub fn function(self, name: &str, function: &str) -> Self {
        let func = NameAttrList { name: function.to_owned(), attr: BTreeMap::new() };
        self.attr(name, Value::Func(func))
    }

    pub fn types(self, name: &str, types: &[DataType]) -> Self {
        let list = ListValue { r#type: types.iter().map(|t| t.number()).collect(), ..ListValue::default() };
        self.attr(name, Value::List(Box::new(list)))
    }
}

/// A graph under construction.
#[derive(Default)]
pub struct Builder {
    pub def: GraphDef,
}

/// A node whose attributes have default values. Types are float.
fn new_node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
    let mut node = NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        input: inputs.iter().map(|&input| input.to_owned()).collect(),
        ..NodeDef::default()
    };
    let data = inputs.iter().filter(|input| !input.starts_with('^')).count();
    let signature = op_signature(op);
    for attr in signature.iter().flat_map(|s| &s.attr).filter(|attr| attr.default_value.is_none()) {
        let value = match attr.r#type.as_str() {
            "type" => Value::Type(DataType::Float.number()),
            "int" if signature.is_some_and(|s| s.input_arg.iter().any(|a| a.number_attr == attr.name)) => {
                Value::I(data as i64)
            }
            "int" => Value::I(0),
            "string" => Value::S("text".into()),
            "shape" => Value::Shape(TensorShapeProto::default()),
            "list(type)" => {
                let types = vec![DataType::Float.number(); data];
                Value::List(Box::new(ListValue { r#type: types, ..ListValue::default() }))
            }
            _ => continue,
        };
        node.attr.insert(attr.name.clone(), AttrValue::from(value));
    }
    node
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn node(&mut self, name: &str, op: &str, inputs: &[&str]) -> NodeBuilder<'_> {
        self.def.node.push(new_node(name, op, inputs));
        NodeBuilder(self.def.node.last_mut().expect("just pushed"))
    }

    /// A float node that the caller feeds.
    pub fn placeholder(&mut self, name: &str) -> NodeBuilder<'_> {
        self.node(name, "Placeholder", &[])
    }

    /// A constant of zeros.
    pub fn constant(&mut self, name: &str, data_type: DataType, sizes: &[i64]) -> NodeBuilder<'_> {
        let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
        let tensor = TensorProto {
            dtype: data_type.number(),
            tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
            ..TensorProto::default()
        };
        self.node(name, "Const", &[]).ty("dtype", data_type).attr("value", Value::Tensor(Box::new(tensor)))
    }

    /// A variable's handle.
    pub fn variable(&mut self, name: &str) -> NodeBuilder<'_> {
        self.node(name, "VarHandleOp", &[]).ty("dtype", DataType::Float)
    }

    /// A variable and its read.
    pub fn read(&mut self, id: &str) -> NodeBuilder<'_> {
        let handle = format!("Var{id}");
        self.variable(&handle);
        self.node(&format!("Read{id}"), "ReadVariableOp", &[&handle]).ty("dtype", DataType::Float)
    }

    /// A variable and a write of a constant.
    pub fn write(&mut self, id: &str) -> NodeBuilder<'_> {
        let (handle, value) = (format!("Var{id}"), format!("ValueToAssign{id}"));
        self.variable(&handle);
        self.constant(&value, DataType::Float, &[]);
        self.node(&format!("Assignment{id}"), "AssignVariableOp", &[&handle, &value])
            .ty("dtype", DataType::Float)
    }

    /// Adds a control edge.
    pub fn wait(&mut self, node: &str, before: &str) {
        let node = self.def.node.iter_mut().find(|n| n.name == node).expect("no such node");
        node.input.push(format!("^{before}"));
    }

    pub fn place(&mut self, node: &str, device: &str) {
        let node = self.def.node.iter_mut().find(|n| n.name == node).expect("no such node");
        device.clone_into(&mut node.device);
    }

    /// A function of floats: arguments `name` or `name:type`, results as `name=node:output:0`.
    pub fn function(
        &mut self,
        name: &str,
        arguments: &[&str],
        results: &[&str],
        nodes: Builder,
    ) -> &mut FunctionDef {
        let arg = |text: &str| {
            let (name, data_type) = text.split_once(':').unwrap_or((text, "float"));
            let data_type = DataType::ALL.iter().find(|t| t.name() == data_type).expect("a type");
            ArgDef { name: name.to_owned(), r#type: data_type.number(), ..ArgDef::default() }
        };
        let mut signature = OpDef { name: name.to_owned(), ..OpDef::default() };
        signature.input_arg = arguments.iter().map(|a| arg(a)).collect();
        let mut ret = BTreeMap::new();
        for result in results {
            let (name, from) = result.split_once('=').expect("name=tensor");
            signature.output_arg.push(arg(name));
            ret.insert(name.split(':').next().expect("a name").to_owned(), from.to_owned());
        }
        let library = self.def.library.get_or_insert_with(FunctionDefLibrary::default);
        library.function.push(FunctionDef {
            signature: Some(signature),
            node_def: nodes.def.node,
            ret,
            ..FunctionDef::default()
        });
        library.function.last_mut().expect("just pushed")
    }
}

/// Options of TensorFlow's tests: clusters of at least two nodes, on all devices.
pub fn options() -> Options {
    let flags = Flags { min_cluster_size: 2, cpu_global_jit: true, ..Flags::default() };
    let mut options = Options::new(JitLevel::On2, flags);
    options.default_device = CPU.to_owned();
    options.reports_refusals = true;
    options
}

/// Records all events.
#[derive(Default)]
pub struct Listener {
    pub graphs: Vec<(String, GraphDef)>,
    pub warnings: Vec<String>,
}

impl Observer for Listener {
    fn wants_graphs(&self) -> bool {
        true
    }

    fn graph(&mut self, name: &str, graph: &GraphDef) {
        self.graphs.push((name.to_owned(), graph.clone()));
    }

    fn warning(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }
}

/// Clusters a graph and checks the result.
pub fn run(graph: &Builder, options: &Options) -> Clustered {
    let clustered =
        cluster::cluster(&graph.def, options, &Compiler, &mut State::default(), &mut cluster::Silent)
            .unwrap_or_else(|e| panic!("{e}"));
    check(&clustered.graph);
    clustered
}

/// Sorted node names of each cluster, sorted by their first names.
pub fn sets(graph: &Builder, options: &Options) -> Vec<BTreeSet<String>> {
    let mut sets: Vec<BTreeSet<String>> = run(graph, options)
        .report
        .clusters
        .into_iter()
        .map(|cluster| {
            cluster.nodes.into_iter().map(|n| n.split("/clone_").next().expect("a part").to_owned()).collect()
        })
        .collect();
    sets.sort();
    sets
}

/// The same form from string literals.
pub fn names(sets: &[&[&str]]) -> Vec<BTreeSet<String>> {
    let mut sets: Vec<BTreeSet<String>> =
        sets.iter().map(|set| set.iter().map(|&name| name.to_owned()).collect()).collect();
    sets.sort();
    sets
}

/// The cluster of each node.
pub fn cluster_of(graph: &Builder, options: &Options) -> BTreeMap<String, String> {
    let clusters = run(graph, options).report.clusters;
    let pairs = clusters.iter().flat_map(|c| c.nodes.iter().map(|node| (node.clone(), c.name.clone())));
    pairs.collect()
}

/// Reason why a node is in no cluster.
pub fn why(clustered: &Clustered, node: &str) -> String {
    let refused = clustered.report.refused_nodes.iter().find(|r| r.node == node);
    refused.map_or_else(|| "not refused".to_owned(), |r| r.reason.clone())
}

/// Checks that a graph is well-formed: names are unique, inputs and functions exist, and launches
/// match their functions.
pub fn check(graph: &GraphDef) {
    let empty = FunctionDefLibrary::default();
    let library = graph.library.as_ref().unwrap_or(&empty);
    let mut functions = BTreeMap::new();
    for function in &library.function {
        let signature = function.signature.as_ref().expect("a signature");
        assert!(
            functions.insert(signature.name.as_str(), signature).is_none(),
            "duplicate function {}",
            signature.name
        );
    }
    check_nodes(&graph.node, &BTreeSet::new(), &functions);
    for function in &library.function {
        let signature = function.signature.as_ref().expect("a signature");
        let arguments: BTreeSet<&str> = signature.input_arg.iter().map(|a| a.name.as_str()).collect();
        check_nodes(&function.node_def, &arguments, &functions);
        let nodes: BTreeSet<&str> = function.node_def.iter().map(|n| n.name.as_str()).collect();
        for result in &signature.output_arg {
            let from = function
                .ret
                .get(&result.name)
                .unwrap_or_else(|| panic!("{}: {}", signature.name, result.name));
            let source = from.split(':').next().expect("a part");
            assert!(nodes.contains(source) || arguments.contains(source), "{}: {from}", signature.name);
        }
        for node in function.control_ret.values() {
            assert!(nodes.contains(node.as_str()), "{}: control result {node}", signature.name);
        }
    }
}

fn check_nodes(nodes: &[NodeDef], arguments: &BTreeSet<&str>, functions: &BTreeMap<&str, &OpDef>) {
    let names: BTreeSet<&str> =
        nodes.iter().map(|n| n.name.as_str()).chain(arguments.iter().copied()).collect();
    assert_eq!(names.len(), nodes.len() + arguments.len(), "duplicate node names");
    for node in nodes {
        for input in &node.input {
            let source = input.trim_start_matches('^').split(':').next().expect("a part");
            assert!(names.contains(source), "input '{input}' of '{}'", node.name);
        }
        if !matches!(node.op.as_str(), "_XlaLaunch" | "XlaLaunch") {
            continue;
        }
        let list = |name: &str| match node.attr.get(name).and_then(|v| v.value.as_ref()) {
            Some(Value::List(list)) => list.r#type.clone(),
            other => panic!("{}: {name} is {other:?}", node.name),
        };
        let Some(Value::I(resources)) = node.attr["Nresources"].value else { panic!("Nresources") };
        let Some(Value::Func(callee)) = &node.attr["function"].value else { panic!("function") };
        let signature = functions[callee.name.as_str()];
        let mut expected = list("Tconstants");
        expected.extend(list("Targs"));
        expected.extend(std::iter::repeat_n(DataType::Resource.number(), resources as usize));
        let actual: Vec<i32> = signature.input_arg.iter().map(|a| a.r#type).collect();
        assert_eq!(actual, expected, "arguments of {}", node.name);
        let results: Vec<i32> = signature.output_arg.iter().map(|a| a.r#type).collect();
        assert_eq!(results, list("Tresults"), "results of {}", node.name);
        let data = node.input.iter().filter(|input| !input.starts_with('^')).count();
        assert_eq!(data, expected.len(), "operands of {}", node.name);
    }
}
