//! Functions that receive or contain frozen variables. Each combination of frozen arguments gets
//! its own copy.

use super::convert::{self, Body, Frozen, FrozenOutputs, Kind};
use super::{Choice, Variables, is_variable, names_of};
use crate::checkpoint;
use crate::proto::{
    ArgDef, AttrValue, FunctionDef, FunctionDefLibrary, GraphDef, NameAttrList, NodeDef, TensorShapeProto,
    attr_value::Value,
};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Limit for the depth of nested calls.
const MAX_DEPTH: usize = 100;

/// Limit for the copies of functions.
const MAX_COPIES: usize = 20_000;

/// Limit for the nodes visited, summed over all visits of all bodies.
const MAX_NODES: usize = 20_000_000;

/// The function library of a graph while it is frozen.
pub(super) struct Functions<'a> {
    originals: BTreeMap<&'a str, &'a FunctionDef>,
    library: Option<&'a FunctionDefLibrary>,
    variables: &'a Variables<'a>,
    choice: &'a Choice,
    /// Values of variables that were read, by whether the node is in a function, and by name.
    values: BTreeMap<(bool, String), checkpoint::Value>,
    /// True for a function that contains frozen variables, itself or in its callees.
    has_variables: BTreeMap<&'a str, bool>,
    /// Results of each function for the given arguments.
    results: BTreeMap<Key, Vec<Option<Frozen>>>,
    /// Names of the copies, including unfinished ones.
    copies: BTreeMap<Key, String>,
    /// Finished copies by the name of the original.
    definitions: BTreeMap<String, Vec<FunctionDef>>,
    depth: usize,
    nodes: usize,
}

/// Name of a function, and its frozen arguments.
type Key = (String, Vec<Option<Frozen>>);

/// Attributes and inputs by which an op calls functions.
pub(super) struct Call {
    /// Attribute with the types of the arguments.
    types: &'static str,
    /// Number of inputs before the arguments.
    first: usize,
    /// Attributes that name functions. Empty if the op itself is the function's name.
    functions: &'static [&'static str],
    /// Attribute with the types of the outputs.
    result_types: &'static str,
}

/// Describes how an op calls functions. `None` if it does not call any.
pub(super) fn function_attributes(op: &str, functions: &Functions<'_>) -> Option<Call> {
    let call = |types, first, functions, result_types| Call { types, first, functions, result_types };
    Some(match op {
        "PartitionedCall" | "StatefulPartitionedCall" => call("Tin", 0, &["f"], "Tout"),
        "If" | "StatelessIf" => call("Tin", 1, &["then_branch", "else_branch"], "Tout"),
        "Case" | "StatelessCase" => call("Tin", 1, &["branches"], "Tout"),
        "While" | "StatelessWhile" => call("T", 0, &["body", "cond"], "T"),
        _ if functions.originals.contains_key(op) => call("", 0, &[], ""),
        _ => return None,
    })
}

/// Number of the output that an input names. Within functions, an input names an output argument
/// and the number of an output within that argument.
pub(super) fn flat_output(input: &str, node: Option<&NodeDef>, functions: &Functions<'_>) -> usize {
    let mut parts = input.split(':').skip(1);
    let (Some(first), second) = (parts.next(), parts.next()) else { return 0 };
    let Some(second) = second else { return first.parse().unwrap_or(0) };
    let within: usize = second.parse().unwrap_or(0);
    let op = node.map_or("", |node| node.op.as_str());
    let before = match (op, first) {
        ("Switch" | "RefSwitch", "output_true") | ("Merge" | "RefMerge", "value_index") => 1,
        _ => functions
            .originals
            .get(op)
            .and_then(|function| function.signature.as_ref())
            .map_or(0, |signature| {
                signature.output_arg.iter().position(|output| output.name == first).unwrap_or(0)
            }),
    };
    before + within
}

impl<'a> Functions<'a> {
    pub(super) fn new(graph: &'a GraphDef, variables: &'a Variables<'a>, choice: &'a Choice) -> Self {
        let functions = graph.library.iter().flat_map(|library| &library.function);
        let named = functions.filter_map(|f| Some((f.signature.as_ref()?.name.as_str(), f)));
        Self {
            originals: named.collect(),
            library: graph.library.as_ref(),
            variables,
            choice,
            values: BTreeMap::new(),
            has_variables: BTreeMap::new(),
            results: BTreeMap::new(),
            copies: BTreeMap::new(),
            definitions: BTreeMap::new(),
            depth: 0,
            nodes: 0,
        }
    }

    /// Counts visited nodes. Returns an error above the limit, so that a small file cannot cause
    /// unbounded work.
    pub(super) fn count(&mut self, nodes: usize) -> Result<()> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(too_many());
        }
        Ok(())
    }

    /// True if the options select the variable for freezing.
    pub(super) fn freezes(&self, variable: &NodeDef) -> bool {
        names_of(variable).iter().all(|name| !self.choice.denylist.contains(*name))
            && names_of(variable).iter().any(|name| self.choice.freezes(name))
    }

    /// Returns the value of a variable. Reads it on first use.
    pub(super) fn value(&mut self, variable: &NodeDef, in_function: bool) -> Result<checkpoint::Value> {
        let name = names_of(variable).last().map_or(String::new(), |name| (*name).to_owned());
        let key = (in_function, if in_function { name } else { variable.name.clone() });
        if let Some(value) = self.values.get(&key) {
            return Ok(value.clone());
        }
        let value = self.variables.value(variable, in_function)?;
        self.values.insert(key, value.clone());
        Ok(value)
    }

    /// Outputs of a call that are frozen variables in every function that the node may call.
    pub(super) fn results(
        &mut self,
        node: &NodeDef,
        inputs: &[Option<Frozen>],
    ) -> Result<Vec<(usize, Frozen)>> {
        let mut all: Vec<Vec<Option<Frozen>>> = Vec::new();
        for (name, arguments) in self.callees(node, inputs) {
            // The results of a loop are those of its body, the first callee. The condition does not
            // return variables.
            if !node.op.ends_with("While") || all.is_empty() {
                all.push(self.function_results(&name, &arguments)?);
            }
        }
        let Some(first) = all.first() else { return Ok(vec![]) };
        let shared = |k: usize| {
            let same = all.iter().all(|results| results.get(k).is_some_and(Option::is_some));
            first[k].clone().filter(|_| same)
        };
        Ok((0..first.len()).filter_map(|k| Some((k, shared(k)?))).collect())
    }

    /// Functions that a node calls, with their frozen arguments.
    fn callees(&self, node: &NodeDef, inputs: &[Option<Frozen>]) -> Vec<(String, Vec<Option<Frozen>>)> {
        let Some(call) = function_attributes(&node.op, self) else { return vec![] };
        let handles = inputs.iter().skip(call.first);
        // Variables of the same type and shape share a copy, so the keys omit their names.
        let unnamed = |input: &Frozen| Frozen { variable: String::new(), ..input.clone() };
        let arguments: Vec<Option<Frozen>> = handles
            .map(|input| input.as_ref().filter(|input| input.kind == Kind::Handle).map(unnamed))
            .collect();
        let mut names: Vec<String> =
            call.functions.iter().flat_map(|attribute| function_names(node, attribute)).collect();
        if call.functions.is_empty() {
            names.push(node.op.clone());
        }
        names.into_iter().map(|name| (name, arguments.clone())).collect()
    }

    fn body(&self, name: &str, arguments: &[Option<Frozen>]) -> Result<(&'a FunctionDef, Body<'a>)> {
        let function = *self.originals.get(name).ok_or_else(|| {
            Error::invalid(format!("the graph calls function '{name}', which is not in its library"))
        })?;
        let signature = function.signature.as_ref();
        let inputs = signature.map_or(&[][..], |signature| &signature.input_arg);
        let named = |(input, value): (&ArgDef, &Option<Frozen>)| {
            let value = Frozen { variable: input.name.clone(), ..value.clone()? };
            Some(((input.name.clone(), 0), value))
        };
        let arguments = inputs.iter().zip(arguments).filter_map(named).collect();
        let name = signature.map(|signature| signature.name.as_str());
        Ok((function, Body { nodes: function.node_def.iter().collect(), function: name, arguments }))
    }

    fn function_results(&mut self, name: &str, arguments: &[Option<Frozen>]) -> Result<Vec<Option<Frozen>>> {
        let key = (name.to_owned(), arguments.to_vec());
        if let Some(results) = self.results.get(&key) {
            return Ok(results.clone());
        }
        if self.results.len() > MAX_COPIES {
            return Err(too_many());
        }
        // A recursive call finds no frozen results.
        self.results.insert(key.clone(), Vec::new());
        let results = self.deeper(name, |functions| {
            let (function, body) = functions.body(name, arguments)?;
            let frozen = convert::frozen_outputs(&body, functions)?;
            Ok(functions.returned(function, &body, &frozen))
        })?;
        self.results.insert(key, results.clone());
        Ok(results)
    }

    /// Frozen results of a function, one entry for each output argument.
    fn returned(
        &self,
        function: &FunctionDef,
        body: &Body<'_>,
        frozen: &FrozenOutputs,
    ) -> Vec<Option<Frozen>> {
        let by_name: BTreeMap<&str, &NodeDef> = body.nodes.iter().map(|n| (n.name.as_str(), *n)).collect();
        let outputs = function.signature.as_ref().map_or(&[][..], |signature| &signature.output_arg);
        let result = |name: &str| {
            let input = function.ret.get(name)?;
            let node = super::base_name(input);
            let output = flat_output(input, by_name.get(node).copied(), self);
            frozen.get(&(node.to_owned(), output)).filter(|value| value.kind == Kind::Handle).cloned()
        };
        outputs.iter().map(|output| result(&output.name)).collect()
    }

    fn deeper<T>(&mut self, name: &str, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "the call of function '{name}' is nested more than {MAX_DEPTH} levels deep; recursive functions cannot be frozen"
            )));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    /// True if a function contains variables to freeze, itself or in its callees.
    fn has_variables(&mut self, name: &str) -> bool {
        let Some((&name, &function)) = self.originals.get_key_value(name) else { return false };
        if let Some(&answer) = self.has_variables.get(name) {
            return answer;
        }
        self.has_variables.insert(name, false);
        let mut has_any = false;
        // Uses an explicit stack, because a library may contain a long chain of calls.
        let mut work = vec![function];
        let mut seen = BTreeSet::from([name]);
        while let Some(function) = work.pop() {
            for node in &function.node_def {
                has_any |= is_variable(&node.op) && self.freezes(node);
                for (callee, _) in self.callees(node, &[]) {
                    if let Some((&callee, &function)) = self.originals.get_key_value(callee.as_str())
                        && seen.insert(callee)
                    {
                        work.push(function);
                    }
                }
            }
        }
        self.has_variables.insert(name, has_any);
        has_any
    }

    /// Returns a node whose calls go to frozen copies of the functions that contain or receive
    /// frozen variables.
    pub(super) fn caller(&mut self, node: &NodeDef, inputs: &[Option<Frozen>]) -> Result<NodeDef> {
        let Some(call) = function_attributes(&node.op, self) else { return Ok(node.clone()) };
        let mut renamed: BTreeMap<String, String> = BTreeMap::new();
        for (name, arguments) in self.callees(node, inputs) {
            if arguments.iter().any(Option::is_some) || self.has_variables(&name) {
                renamed.insert(name.clone(), self.copy(&name, &arguments)?);
            }
        }
        let mut node = node.clone();
        if renamed.is_empty() {
            return Ok(node);
        }
        let results = self.results(&node, inputs)?;
        let handles: Vec<Option<Frozen>> =
            inputs.iter().map(|v| v.clone().filter(|v| v.kind == Kind::Handle)).collect();
        if node.op.ends_with("While") {
            check_loop(&node, &handles, &results)?;
            convert::set_shapes(&mut node, "output_shapes", &handles, false);
        }
        let types: Vec<Option<i32>> = handles.iter().map(|v| v.as_ref().map(|v| v.data_type)).collect();
        convert::set_types(&mut node, call.types, call.first, &types);
        let count = results.iter().map(|(k, _)| k + 1).max().unwrap_or(0);
        let mut result_types = vec![None; count];
        results.iter().for_each(|(k, value)| result_types[*k] = Some(value.data_type));
        convert::set_types(&mut node, call.result_types, 0, &result_types);
        if count > 0 {
            node.attr.remove("_output_shapes");
        }
        for attribute in call.functions {
            rename_functions(node.attr.get_mut(*attribute), &renamed);
        }
        if let Some(name) = renamed.get(&node.op) {
            node.op.clone_from(name);
        }
        Ok(node)
    }

    /// Returns the name of a function's copy in which its variables and these arguments are frozen.
    /// Creates the copy on first use.
    fn copy(&mut self, name: &str, arguments: &[Option<Frozen>]) -> Result<String> {
        let key = (name.to_owned(), arguments.to_vec());
        if let Some(copy) = self.copies.get(&key) {
            return Ok(copy.clone());
        }
        if self.copies.len() > MAX_COPIES {
            return Err(too_many());
        }
        let copy = self.copy_name(name);
        self.copies.insert(key, copy.clone());
        let function = self.deeper(name, |functions| functions.frozen_copy(name, &copy, arguments))?;
        self.definitions.entry(name.to_owned()).or_default().push(function);
        Ok(copy)
    }

    /// Chooses the name of a copy. Like the original, replaces a number at the end of the name.
    fn copy_name(&self, name: &str) -> String {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let base = name.rsplit_once('_').filter(|(_, end)| digits(end)).map_or(name, |(base, _)| base);
        let in_use =
            |name: &str| self.originals.contains_key(name) || self.copies.values().any(|copy| copy == name);
        let mut number = self.copies.len();
        loop {
            let copy = format!("{base}_frozen_{number}");
            if !in_use(&copy) {
                return copy;
            }
            number += 1;
        }
    }

    fn frozen_copy(&mut self, name: &str, copy: &str, arguments: &[Option<Frozen>]) -> Result<FunctionDef> {
        let (function, body) = self.body(name, arguments)?;
        let frozen = convert::frozen_outputs(&body, self)?;
        let (mut nodes, added) = convert::emit(&body, &frozen, self)?;
        nodes.extend(added);
        let returned = self.returned(function, &body, &frozen);
        let mut function = FunctionDef { node_def: nodes, ..function.clone() };
        let by_name: BTreeMap<&str, &NodeDef> = body.nodes.iter().map(|n| (n.name.as_str(), *n)).collect();
        function.ret.values_mut().for_each(|value| convert::rename_port(value, &by_name, &frozen));
        if let Some(signature) = &mut function.signature {
            signature.name = copy.to_owned();
            for (argument, value) in signature.input_arg.iter_mut().zip(arguments) {
                if let Some(value) = value {
                    argument.r#type = value.data_type;
                }
            }
            for (result, value) in signature.output_arg.iter_mut().zip(&returned) {
                if let Some(value) = value {
                    result.r#type = value.data_type;
                }
            }
        }
        if let Some(Value::List(list)) = function.attr.get_mut("_input_shapes").and_then(|a| a.value.as_mut())
        {
            for (shape, value) in list.shape.iter_mut().zip(arguments) {
                if value.is_some() {
                    *shape = TensorShapeProto { unknown_rank: true, ..TensorShapeProto::default() };
                }
            }
        }
        Ok(function)
    }

    /// Returns the frozen library. Copies replace their originals. An original that is still called
    /// stays before its copies.
    pub(super) fn finish(mut self, nodes: &[NodeDef]) -> FunctionDefLibrary {
        let Some(library) = self.library else { return FunctionDefLibrary::default() };
        let mut called: BTreeSet<String> = BTreeSet::new();
        let copies = self.definitions.values().flatten().flat_map(|function| &function.node_def);
        let mut work: Vec<&NodeDef> = nodes.iter().chain(copies).collect();
        // Like the original, keeps functions that were never copied, called or not, and everything
        // that they call.
        let uncopied = self.originals.iter().filter(|(name, _)| !self.definitions.contains_key(**name));
        work.extend(uncopied.flat_map(|(_, function)| &function.node_def));
        while let Some(node) = work.pop() {
            for (name, _) in self.callees(node, &[]) {
                if called.insert(name.clone())
                    && let Some(function) = self.originals.get(name.as_str())
                {
                    work.extend(&function.node_def);
                }
            }
        }
        let mut function = Vec::new();
        for original in &library.function {
            let name = original.signature.as_ref().map_or("", |signature| &signature.name);
            let copies = self.definitions.remove(name);
            if copies.is_none() || called.contains(name) {
                function.push(original.clone());
            }
            function.extend(copies.unwrap_or_default());
        }
        let names: BTreeSet<&str> =
            function.iter().filter_map(|f| f.signature.as_ref()).map(|s| s.name.as_str()).collect();
        let gradients = library.gradient.iter();
        let gradient = gradients.filter(|g| names.contains(g.function_name.as_str())).cloned().collect();
        FunctionDefLibrary { function, gradient }
    }
}

fn too_many() -> Error {
    Error::unsupported(format!(
        "too many functions to freeze: the limits are {MAX_COPIES} copies and {MAX_NODES} visited nodes"
    ))
}

/// Checks that a loop passes each frozen variable on to its next iteration.
fn check_loop(node: &NodeDef, handles: &[Option<Frozen>], results: &[(usize, Frozen)]) -> Result<()> {
    let results: BTreeMap<usize, &Frozen> = results.iter().map(|(k, value)| (*k, value)).collect();
    for (k, handle) in handles.iter().enumerate() {
        if let Some(handle) = handle
            && results.get(&k).is_none_or(|result| result.data_type != handle.data_type)
        {
            return Err(Error::unsupported(format!(
                "node '{}' (op {}) does not pass the handle of variable '{}' on to the next iteration",
                node.name, node.op, handle.variable
            )));
        }
    }
    Ok(())
}

fn function_names(node: &NodeDef, attribute: &str) -> Vec<String> {
    match node.attr.get(attribute).and_then(|attr| attr.value.as_ref()) {
        Some(Value::Func(function)) => vec![function.name.clone()],
        Some(Value::List(list)) => list.func.iter().map(|function| function.name.clone()).collect(),
        _ => vec![],
    }
}

fn rename_functions(attribute: Option<&mut AttrValue>, renamed: &BTreeMap<String, String>) {
    let rename = |function: &mut NameAttrList| {
        if let Some(name) = renamed.get(&function.name) {
            function.name.clone_from(name);
        }
    };
    match attribute.and_then(|attribute| attribute.value.as_mut()) {
        Some(Value::Func(function)) => rename(function),
        Some(Value::List(list)) => list.func.iter_mut().for_each(rename),
        _ => {}
    }
}
