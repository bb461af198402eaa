//! Instantiates the library functions that a program calls.
//!
//! A function with attributes is instantiated once for each set of attribute values in calls. Calls
//! are renamed to the instance: the node's op if it is a function, and every function among the
//! node's attributes.

use super::nodes::{check_inputs, push_node};
use super::signatures::{Signatures, Typed};
use crate::proto::{
    AttrValue, FunctionDef, FunctionDefLibrary, NameAttrList, NodeDef, OpDef, attr_value::Value,
};
use crate::{Attributes, Function, FunctionLibrary, Graph, Node, NodeId, OutputId, Program, op_def};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use support::{Error, Id, Result};

/// Maximum nesting depth of function calls.
const MAX_DEPTH: usize = 100;

/// Maximum total number of nodes in all instances.
const MAX_NODES: usize = 10_000_000;

/// Adds every function that the program's graph calls, directly or indirectly, to its library.
pub(super) fn instantiate(
    program: &mut Program,
    signatures: &Signatures<'_>,
    library: Option<&FunctionDefLibrary>,
) -> Result<()> {
    let mut instances = Instances {
        signatures,
        library: FunctionLibrary::default(),
        names: BTreeMap::new(),
        active: Vec::new(),
        nodes: 0,
        gradients: library
            .iter()
            .flat_map(|l| &l.gradient)
            .map(|gradient| (gradient.function_name.as_str(), gradient.gradient_func.as_str()))
            .collect(),
    };
    instances.resolve_calls(&mut program.graph)?;
    program.library = instances.library;
    for gradient in library.iter().flat_map(|l| &l.gradient) {
        program.library.insert_gradient(&gradient.function_name, &gradient.gradient_func);
    }
    Ok(())
}

/// A function and the values of its attributes, encoded.
type Key = (String, Vec<u8>);

struct Instances<'a> {
    signatures: &'a Signatures<'a>,
    library: FunctionLibrary,
    names: BTreeMap<Key, String>,
    /// The functions being instantiated, outermost first.
    active: Vec<String>,
    nodes: usize,
    /// Gradient functions that the library declares, by function.
    gradients: BTreeMap<&'a str, &'a str>,
}

impl Instances<'_> {
    /// Replaces the names of functions in a graph by the names of their instances.
    fn resolve_calls(&mut self, graph: &mut Graph) -> Result<()> {
        for id in graph.nodes.ids() {
            let node = &graph.nodes[id];
            let at_node = |e: Error| e.context(format!("node '{}' (op {})", node.name, node.op));
            let gradient = self.declared_gradient(node).map_err(at_node)?;
            let op = match self.signatures.function(&node.op) {
                Some(_) => self.instance(&node.op, node.attributes.values()).map_err(at_node)?,
                None => gradient.unwrap_or_else(|| node.op.clone()),
            };
            let has_functions = node.attributes.values().values().any(|value| match &value.value {
                Some(Value::Func(_)) => true,
                Some(Value::List(list)) => !list.func.is_empty(),
                _ => false,
            });
            if op == node.op && !has_functions {
                continue;
            }
            let mut values = node.attributes.values().clone();
            if has_functions {
                for (name, value) in &mut values {
                    self.resolve_value(value).map_err(|e| {
                        e.context(format!("node '{}' (op {}), attribute '{name}'", node.name, node.op))
                    })?;
                }
            }
            let node = &mut graph.nodes[id];
            node.attributes = Attributes::new(&node.name, &op, values);
            node.op = op;
        }
        Ok(())
    }

    /// Returns the instance of the function that replaces a `SymbolicGradient`, if the library
    /// declares one.
    fn declared_gradient(&mut self, node: &Node) -> Result<Option<String>> {
        if node.op != super::gradient::OP {
            return Ok(None);
        }
        let (function, attributes) = node.attributes.func("f")?;
        match self.gradients.get(function).copied() {
            Some(gradient) => self.instance(gradient, attributes.values()).map(Some),
            None => Ok(None),
        }
    }

    fn resolve_value(&mut self, value: &mut AttrValue) -> Result<()> {
        match &mut value.value {
            Some(Value::Func(func)) => self.resolve_func(func),
            Some(Value::List(list)) => list.func.iter_mut().try_for_each(|func| self.resolve_func(func)),
            _ => Ok(()),
        }
    }

    fn resolve_func(&mut self, func: &mut NameAttrList) -> Result<()> {
        if func.name.is_empty() {
            return Ok(());
        }
        if self.signatures.function(&func.name).is_some() {
            func.name = self.instance(&func.name, &func.attr)?;
            return Ok(());
        }
        match self.signatures.get(&func.name) {
            Some(_) => Ok(()),
            None => Err(Error::invalid(format!(
                "function '{}' is neither in the graph's library nor an op",
                func.name
            ))),
        }
    }

    /// Returns the name of a function's instance for the given attributes. Creates it on first use.
    fn instance(&mut self, name: &str, attributes: &BTreeMap<String, AttrValue>) -> Result<String> {
        let (function, signature) = self
            .signatures
            .function(name)
            .ok_or_else(|| Error::internal(format!("function '{name}' is not in the library")))?;
        let mut values: BTreeMap<String, AttrValue> = signature
            .attr
            .iter()
            .filter_map(|attr| Some((attr.name.clone(), attributes.get(&attr.name)?.clone())))
            .collect();
        op_def::fill_defaults(signature, &mut values)?;
        let encoded = NameAttrList { name: String::new(), attr: values.clone() }.encode_to_vec();
        let key = (name.to_owned(), encoded);
        if let Some(instance) = self.names.get(&key) {
            if self.active.contains(instance) {
                return Err(Error::unsupported(format!(
                    "function '{name}' calls itself: {} -> {instance}; recursion is not bounded at compile time: use a \
                     loop instead",
                    self.active.join(" -> ")
                )));
            }
            return Ok(instance.clone());
        }
        if self.active.len() >= MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "functions call each other more than {MAX_DEPTH} levels deep, down to '{name}'"
            )));
        }
        let instance = self.unused_name(name, signature);
        self.names.insert(key, instance.clone());
        self.active.push(instance.clone());
        let body = Body { signatures: self.signatures, function, signature, values: &values };
        let at_function = |e: Error| e.context(format!("function '{name}'"));
        let mut new_function = body.build(&instance).map_err(at_function)?;
        self.nodes += new_function.graph.nodes.len();
        if self.nodes > MAX_NODES {
            return Err(Error::invalid(format!(
                "the instances of the library's functions have more than {MAX_NODES} nodes in total, at '{name}'"
            )));
        }
        self.resolve_calls(&mut new_function.graph).map_err(at_function)?;
        new_function.graph.topological_order().map_err(at_function)?;
        self.active.pop();
        self.library.insert(new_function);
        Ok(instance)
    }

    /// Returns the function's own name if it can have only one instance, else a numbered name that
    /// no function has.
    fn unused_name(&self, name: &str, signature: &OpDef) -> String {
        if signature.attr.is_empty() {
            return name.to_owned();
        }
        // The number is unique among instances.
        let mut instance = format!("{name}__instance_{}", self.names.len());
        while self.signatures.function(&instance).is_some() {
            instance.push('_');
        }
        instance
    }
}

/// A function that is being instantiated.
struct Body<'a> {
    signatures: &'a Signatures<'a>,
    function: &'a FunctionDef,
    signature: &'a OpDef,
    /// Values of the function's attributes.
    values: &'a BTreeMap<String, AttrValue>,
}

/// Entity that a name in a body refers to.
enum Named<'a> {
    /// The nodes of an argument.
    Argument(Range<usize>),
    /// A node, with its signature and the start index of each output argument.
    Node(NodeId, &'a OpDef, Vec<usize>),
}

impl<'a> Body<'a> {
    fn build(&self, instance: &str) -> Result<Function> {
        let mut graph = Graph::new();
        let mut named: BTreeMap<&str, Named<'_>> = BTreeMap::new();
        let arguments = self.add_arguments(&mut graph, &mut named)?;
        let needed_nodes = self.needed_nodes()?;
        let unknown: Vec<(&str, &str)> = needed_nodes
            .iter()
            .filter(|n| self.signatures.get(&n.op).is_none())
            .map(|n| (n.op.as_str(), n.name.as_str()))
            .collect();
        if !unknown.is_empty() {
            return Err(super::signatures::unregistered(&unknown));
        }
        let mut typed = Vec::with_capacity(needed_nodes.len());
        for (i, node) in needed_nodes.iter().enumerate() {
            let applied = self.signatures.apply(node, self.substitute_all(&node.attr, &node.name)?)?;
            let signature = self.signatures.get(&node.op).expect("signature missing after apply found it");
            let id = NodeId::from_index(arguments.len() + i);
            named.insert(&node.name, Named::Node(id, signature, applied.output_starts.clone()));
            typed.push(applied);
        }
        let mut all_input_types = Vec::with_capacity(needed_nodes.len());
        for (node, Typed { values, input_types, output_types, .. }) in needed_nodes.iter().zip(typed) {
            let (inputs, control_inputs) = inputs(node, &named)?;
            push_node(&mut graph, node, values, inputs, control_inputs, output_types);
            all_input_types.push(input_types);
        }
        for (i, types) in all_input_types.iter().enumerate() {
            check_inputs(&graph, NodeId::from_index(arguments.len() + i), types)?;
        }
        let results = self.results(&graph, &named)?;
        let control_results = self.control_results(&needed_nodes, &named)?;
        Ok(Function { name: instance.to_owned(), graph, arguments, results, control_results })
    }

    fn add_arguments<'n>(
        &self,
        graph: &mut Graph,
        named: &mut BTreeMap<&'n str, Named<'n>>,
    ) -> Result<Vec<NodeId>>
    where
        'a: 'n,
    {
        let (types, starts) = op_def::flat_types(&self.signature.input_arg, self.values)?;
        let mut arguments = Vec::new();
        for (arg, bounds) in self.signature.input_arg.iter().zip(starts.windows(2)) {
            let (first, end) = (bounds[0], bounds[1]);
            for (index, &data_type) in types.iter().enumerate().take(end).skip(first) {
                let name = match end - first {
                    1 => arg.name.clone(),
                    _ => format!("{}:{}", arg.name, index - first),
                };
                arguments.push(graph.push_argument(&name, index, data_type));
            }
            if named.insert(&arg.name, Named::Argument(first..end)).is_some() {
                return Err(Error::invalid(format!("two arguments have the name '{}'", arg.name)));
            }
        }
        Ok(arguments)
    }

    /// Returns the nodes that results, control results, and effects need, in the order of the body.
    fn needed_nodes(&self) -> Result<Vec<&'a NodeDef>> {
        let nodes = &self.function.node_def;
        let mut index: BTreeMap<&str, usize> = BTreeMap::new();
        let arguments: BTreeSet<&str> = self.signature.input_arg.iter().map(|a| a.name.as_str()).collect();
        for (i, node) in nodes.iter().enumerate() {
            let is_argument = arguments.contains(node.name.as_str());
            if node.name.is_empty() || is_argument || index.insert(&node.name, i).is_some() {
                return Err(Error::invalid(format!(
                    "the name '{}' of a node (op {}) is empty or not unique",
                    node.name, node.op
                )));
            }
        }
        let roots = self.function.ret.values().chain(self.function.control_ret.values());
        let mut work: Vec<usize> = roots.filter_map(|input| index.get(base_name(input)).copied()).collect();
        work.extend((0..nodes.len()).filter(|&i| self.is_stateful(&nodes[i])));
        let mut needed = vec![false; nodes.len()];
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut needed[at], true) {
                work.extend(nodes[at].input.iter().filter_map(|input| index.get(base_name(input)).copied()));
            }
        }
        Ok(nodes.iter().zip(needed).filter(|(_, needed)| *needed).map(|(node, _)| node).collect())
    }

    fn is_stateful(&self, node: &NodeDef) -> bool {
        self.signatures.get(&node.op).is_some_and(|op| op.is_stateful)
    }

    /// Replaces the function's placeholders in attributes.
    fn substitute_all(
        &self,
        attr: &BTreeMap<String, AttrValue>,
        node: &str,
    ) -> Result<BTreeMap<String, AttrValue>> {
        attr.iter()
            .map(|(name, value)| {
                let value = self
                    .substitute(value)
                    .map_err(|e| e.context(format!("node '{node}', attribute '{name}'")))?;
                Ok((name.clone(), value))
            })
            .collect()
    }

    /// Replaces the function's placeholders in a value. The recursion is bounded, because the
    /// decoder limits the nesting depth of messages.
    fn substitute(&self, value: &AttrValue) -> Result<AttrValue> {
        let substitute_func = |func: &NameAttrList| -> Result<NameAttrList> {
            let attr = func
                .attr
                .iter()
                .map(|(name, value)| Ok((name.clone(), self.substitute(value)?)))
                .collect::<Result<_>>()?;
            Ok(NameAttrList { name: func.name.clone(), attr })
        };
        Ok(match &value.value {
            Some(Value::Placeholder(name)) => self.values.get(name).cloned().ok_or_else(|| {
                Error::invalid(format!(
                    "the function has no attribute '{name}', which is used as a placeholder"
                ))
            })?,
            Some(Value::Func(func)) => Value::Func(substitute_func(func)?).into(),
            Some(Value::List(list)) if !list.func.is_empty() => {
                let mut list = list.clone();
                for func in &mut list.func {
                    *func = substitute_func(func)?;
                }
                Value::List(list).into()
            }
            _ => value.clone(),
        })
    }

    fn results(&self, graph: &Graph, named: &BTreeMap<&str, Named<'_>>) -> Result<Vec<OutputId>> {
        let (types, starts) = op_def::flat_types(&self.signature.output_arg, self.values)?;
        let mut results = Vec::new();
        for (arg, bounds) in self.signature.output_arg.iter().zip(starts.windows(2)) {
            let at_result = |e: Error| e.context(format!("result '{}'", arg.name));
            let source =
                self.function.ret.get(&arg.name).ok_or_else(|| {
                    Error::invalid(format!("the body does not define result '{}'", arg.name))
                })?;
            let outputs = resolve(source, named).map_err(at_result)?;
            let expected = &types[bounds[0]..bounds[1]];
            if outputs.len() != expected.len() {
                return Err(at_result(Error::invalid(format!(
                    "'{source}' has {} tensors, but the signature has {}",
                    outputs.len(),
                    expected.len()
                ))));
            }
            for (&output, &expected) in outputs.iter().zip(expected) {
                let actual = graph.nodes[output.node].output_types.get(output.index).copied();
                if actual.map(|t| t.base()) != Some(expected.base()) {
                    let actual = actual.map_or("nothing", |t| t.name());
                    return Err(at_result(Error::invalid(format!(
                        "'{source}' has type {actual}, but the signature has {expected}"
                    ))));
                }
                results.push(output);
            }
        }
        Ok(results)
    }

    /// Returns the nodes that must run: the control results, and every node with an effect, as in
    /// TensorFlow.
    fn control_results(
        &self,
        nodes_in_body: &[&NodeDef],
        named: &BTreeMap<&str, Named<'_>>,
    ) -> Result<Vec<NodeId>> {
        let mut nodes = BTreeSet::new();
        for name in self.function.control_ret.values() {
            match named.get(name.as_str()) {
                Some(Named::Node(id, ..)) => nodes.insert(*id),
                Some(Named::Argument(_)) => false,
                None => {
                    return Err(Error::invalid(format!("control result '{name}' is not the name of a node")));
                }
            };
        }
        for node in nodes_in_body.iter().filter(|node| self.is_stateful(node)) {
            if let Some(Named::Node(id, ..)) = named.get(node.name.as_str()) {
                nodes.insert(*id);
            }
        }
        Ok(nodes.into_iter().collect())
    }
}

fn base_name(input: &str) -> &str {
    let input = input.strip_prefix('^').unwrap_or(input);
    input.split(':').next().unwrap_or(input)
}

fn inputs(node: &NodeDef, named: &BTreeMap<&str, Named<'_>>) -> Result<(Vec<OutputId>, Vec<NodeId>)> {
    let (mut inputs, mut control_inputs) = (Vec::new(), Vec::new());
    for text in &node.input {
        let missing =
            || Error::invalid(format!("node '{}' input '{text}' is not a node or argument", node.name));
        match text.strip_prefix('^') {
            Some(name) => match named.get(name).ok_or_else(missing)? {
                Named::Node(id, ..) => control_inputs.push(*id),
                Named::Argument(_) => {}
            },
            None => inputs.extend(
                resolve(text, named)
                    .map_err(|e| e.context(format!("node '{}' input '{text}'", node.name)))?,
            ),
        }
    }
    Ok((inputs, control_inputs))
}

/// Returns the tensors of `argument`, `argument:i`, `node:output`, or `node:output:i`. Without an
/// index, returns all tensors of the argument or output.
fn resolve(text: &str, named: &BTreeMap<&str, Named<'_>>) -> Result<Vec<OutputId>> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or(text);
    let rest: Vec<&str> = parts.collect();
    let wrong = |why: String| Error::invalid(why);
    let pick = |all: Vec<OutputId>, index: Option<&&str>| -> Result<Vec<OutputId>> {
        match index {
            None => Ok(all),
            Some(index) => {
                let output = index.parse::<usize>().ok().and_then(|i| all.get(i).copied());
                output.map(|output| vec![output]).ok_or_else(|| {
                    wrong(format!("index '{index}' is invalid for a list of {} tensors", all.len()))
                })
            }
        }
    };
    match (named.get(name), rest.as_slice()) {
        (Some(Named::Argument(range)), rest) if rest.len() <= 1 => {
            let all = range.clone().map(|i| OutputId { node: NodeId::from_index(i), index: 0 }).collect();
            pick(all, rest.first())
        }
        (Some(Named::Node(id, signature, starts)), [output, rest @ ..]) if rest.len() <= 1 => {
            let at = signature.output_arg.iter().position(|arg| arg.name == *output).ok_or_else(|| {
                wrong(format!("op {} of node '{name}' has no output '{output}'", signature.name))
            })?;
            let all = (starts[at]..starts[at + 1]).map(|index| OutputId { node: *id, index }).collect();
            pick(all, rest.first())
        }
        (Some(Named::Node(..)), []) => Err(wrong(format!("missing the name of an output of node '{name}'"))),
        (Some(_), _) => Err(wrong("too many parts".to_owned())),
        (None, _) => Err(wrong("not a node or argument".to_owned())),
    }
}
