//! Resources become values: variables constants, tables lookups in constant arrays, in functions too.
//!
//! A handle is followed from its node through copies, calls and control flow. What reads the variable becomes a copy of
//! the value, what looks a key up a call of the table's function; each function that a handle reaches is copied for the
//! handles that it gets. Only resources that nothing writes can be bound.

mod body;
mod calls;

pub(crate) use body::constant;

use crate::DataType;
use crate::proto::{AttrValue, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, attr_value::Value};
use body::Body;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// What a resource stands for from now on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    /// A value of this type; `reference` says that the variable is one of TensorFlow 1's, whose readers need no op.
    Value { data_type: DataType, reference: bool },
    /// A table: the functions that find values and tell the size. The handle itself is a number that nobody looks at.
    Table { find: String, size: String },
}

impl Bound {
    /// The type of what takes the handle's place.
    fn data_type(&self) -> DataType {
        match self {
            Self::Value { data_type, .. } => *data_type,
            Self::Table { .. } => DataType::Int32,
        }
    }

    fn is_reference(&self) -> bool {
        matches!(self, Self::Value { reference: true, .. })
    }
}

/// The resources of a graph that are bound.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// By the node that makes the handle: what it becomes, and the constant in its place.
    pub(crate) nodes: BTreeMap<String, (Bound, NodeDef)>,
    /// More functions, those of tables.
    pub(crate) functions: Vec<FunctionDef>,
}

/// How deep functions may call each other.
const MAX_DEPTH: usize = 100;

/// The most nodes in all copies of functions.
const MAX_NODES: usize = 1_000_000;

/// The nodes of a graph that are `needed`, and the library, with resources bound.
pub(crate) fn bind(graph: GraphDef, needed: &[bool], bindings: &Bindings) -> Result<GraphDef> {
    let empty = Vec::new();
    let library = graph.library.as_ref().map_or(&empty, |library| &library.function);
    let mut copies = Copies::new(library, &bindings.functions)?;
    let kept: Vec<&NodeDef> =
        graph.node.iter().zip(needed).filter(|(_, needed)| **needed).map(|(node, _)| node).collect();
    let roots = bindings.nodes.iter().map(|(name, (bound, _))| (name.as_str(), bound.clone())).collect();
    let body = Body::new(kept.iter().copied(), roots, &[], &mut copies)?;
    // What changes of the kept nodes, in their order; the others are moved, for a graph may be large.
    let mut changes = Vec::new();
    for (at, node) in kept.iter().enumerate() {
        match bindings.nodes.get(&node.name) {
            Some((_, constant)) => changes.push((at, vec![constant.clone()])),
            None => changes.extend(body.rewritten(node, &mut copies)?.map(|made| (at, made.nodes))),
        }
    }
    let made = copies.made;
    let mut nodes = Vec::new();
    let mut changes = changes.into_iter().peekable();
    let kept = graph.node.into_iter().zip(needed).filter(|(_, needed)| **needed);
    for (at, (node, _)) in kept.enumerate() {
        match changes.next_if(|(changed, _)| *changed == at) {
            Some((_, made)) => nodes.extend(made),
            None => nodes.push(node),
        }
    }
    let mut library = graph.library.unwrap_or_default();
    library.function.extend(made);
    library.function.extend(bindings.functions.iter().cloned());
    let library = (library != FunctionDefLibrary::default()).then_some(library);
    Ok(GraphDef { node: nodes, versions: graph.versions, library })
}

/// A copy of a function for some bound arguments.
#[derive(Clone)]
struct Copy {
    name: String,
    /// What is bound among its results.
    results: Vec<Option<Bound>>,
}

/// The copies of functions made so far.
struct Copies<'a> {
    functions: BTreeMap<&'a str, &'a FunctionDef>,
    taken: BTreeSet<String>,
    known: BTreeMap<(String, Vec<Option<Bound>>), Copy>,
    made: Vec<FunctionDef>,
    nodes: usize,
    /// The functions being copied, the outermost first.
    active: Vec<String>,
}

impl<'a> Copies<'a> {
    fn new(library: &'a [FunctionDef], more: &'a [FunctionDef]) -> Result<Self> {
        let mut functions = BTreeMap::new();
        for function in library.iter().chain(more) {
            let name = function.signature.as_ref().map_or("", |signature| signature.name.as_str());
            if name.is_empty() || functions.insert(name, function).is_some() {
                return Err(Error::invalid(format!(
                    "the name '{name}' of a function of the graph's library is empty or not unique"
                )));
            }
        }
        let taken = functions.keys().map(|name| (*name).to_owned()).collect();
        let (known, made, active) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Self { functions, taken, known, made, nodes: 0, active })
    }

    /// Whether the library has a function of this name.
    fn is_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// The copy of a function for arguments of which some are bound. Makes it on first use.
    fn of(&mut self, name: &str, arguments: &[Option<Bound>]) -> Result<Copy> {
        let key = (name.to_owned(), arguments.to_vec());
        if let Some(copy) = self.known.get(&key) {
            return Ok(copy.clone());
        }
        if self.active.iter().any(|active| active == name) || self.active.len() >= MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "function '{name}' calls itself, or functions call each other more than {MAX_DEPTH} levels deep: {}",
                self.active.join(" -> ")
            )));
        }
        let function = *self.functions.get(name).ok_or_else(|| {
            Error::invalid(format!("function '{name}' is neither in the graph's library nor an op"))
        })?;
        self.active.push(name.to_owned());
        let made = self.make(function, arguments).map_err(|e| e.context(format!("function '{name}'")))?;
        self.active.pop();
        self.known.insert(key, made.clone());
        Ok(made)
    }

    fn make(&mut self, function: &FunctionDef, arguments: &[Option<Bound>]) -> Result<Copy> {
        let mut copy = FunctionDef {
            signature: function.signature.clone(),
            attr: function.attr.clone(),
            ret: function.ret.clone(),
            control_ret: function.control_ret.clone(),
            arg_attr: BTreeMap::new(),
            node_def: Vec::new(),
        };
        let signature = copy.signature.get_or_insert_default();
        if signature.input_arg.len() != arguments.len() {
            return Err(Error::unsupported(format!(
                "it has {} arguments, among them lists, and {} tensors to take, among them handles",
                signature.input_arg.len(),
                arguments.len()
            )));
        }
        self.nodes += function.node_def.len();
        if self.nodes > MAX_NODES {
            return Err(Error::invalid(format!("its copies have more than {MAX_NODES} nodes")));
        }
        let mut roots = BTreeMap::new();
        let stated = function.signature.iter().flat_map(|signature| &signature.input_arg);
        for ((arg, stated), bound) in signature.input_arg.iter_mut().zip(stated).zip(arguments) {
            let Some(bound) = bound else { continue };
            arg.r#type = bound.data_type().number();
            arg.type_attr.clear();
            roots.insert(stated.name.as_str(), bound.clone());
        }
        let names: Vec<&str> =
            function.signature.iter().flat_map(|s| &s.input_arg).map(|arg| arg.name.as_str()).collect();
        let body = Body::new(&function.node_def, roots, &names, self)?;
        let mut results = Vec::new();
        for arg in &mut signature.output_arg {
            let source = function.ret.get(&arg.name);
            let bound = source.and_then(|source| body.bound_of(source));
            if let Some(bound) = &bound {
                arg.r#type = bound.data_type().number();
                arg.type_attr.clear();
            }
            results.push(bound);
        }
        let (mut nodes, mut renamed) = (Vec::with_capacity(function.node_def.len()), BTreeMap::new());
        for node in &function.node_def {
            match body.rewritten(node, self)? {
                None => nodes.push(node.clone()),
                Some(made) => {
                    nodes.extend(made.nodes);
                    renamed.extend(made.output.map(|output| (node.name.as_str(), output)));
                }
            }
        }
        let inputs = nodes.iter_mut().flat_map(|node| &mut node.input).chain(copy.ret.values_mut());
        inputs.for_each(|input| body::rename_output(input, &renamed));
        copy.node_def = nodes;
        signature.name = self.unused_name(&signature.name);
        let name = signature.name.clone();
        self.made.push(copy);
        Ok(Copy { name, results })
    }

    fn unused_name(&mut self, name: &str) -> String {
        let mut number = self.made.len();
        loop {
            let unused = format!("{name}__bound_{number}");
            if self.taken.insert(unused.clone()) {
                return unused;
            }
            number += 1;
        }
    }
}

/// An attribute that holds a type.
fn type_value(data_type: DataType) -> AttrValue {
    Value::Type(data_type.number()).into()
}
