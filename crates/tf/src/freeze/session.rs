//! Runs the nodes that assign variables: the restore op of a saver, and initializers.
//!
//! Only a few ops are evaluated: restoring and assigning, constants and copies, fills, and
//! reshapes. A value of the checkpoint is loaded only when a frozen variable or an evaluated node
//! needs it.

use super::{base_name, is_variable, names_of};
use crate::checkpoint::{Checkpoint, Value};
use crate::proto::{GraphDef, NodeDef, SaverDef};
use crate::saved_model::restore;
use crate::{Attributes, DataType};
use shape::{ArrayShape, Literal, index};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Limit for the bytes that one initializer produces.
const MAX_INITIAL_BYTES: u64 = 1 << 30;

/// Nodes of a graph, and the current values of its variables.
pub(super) struct Session<'a> {
    nodes: BTreeMap<&'a str, &'a NodeDef>,
    checkpoint: &'a Checkpoint,
    /// Computed values, keyed by the names of the variables' nodes.
    variables: BTreeMap<String, Value>,
    /// Values that are still in the checkpoint, keyed like `variables`.
    restored: BTreeMap<String, Stored>,
    /// Keys in the checkpoint's object graph by the names of variables. `None` unless variables are
    /// restored by name.
    objects: Option<BTreeMap<String, String>>,
}

/// A tensor of the checkpoint, or a part of it.
#[derive(Clone)]
struct Stored {
    key: String,
    part: String,
}

/// An output of a node.
#[derive(Clone)]
enum Item {
    Tensor(Value),
    Stored(Stored),
    /// The handle or reference of a variable.
    Variable(String),
    /// A table or the like. The value of a variable cannot depend on it.
    Opaque,
}

type Outputs<'a> = BTreeMap<&'a str, Vec<Item>>;

impl<'a> Session<'a> {
    /// Creates a session without values. Returns an error if two nodes have the same name.
    pub(super) fn new(nodes: &'a [NodeDef], checkpoint: &'a Checkpoint) -> Result<Self> {
        let mut all = BTreeMap::new();
        for node in nodes {
            if all.insert(node.name.as_str(), node).is_some() {
                return Err(Error::invalid(format!("two nodes have the name '{}'", node.name)));
            }
        }
        Ok(Self {
            nodes: all,
            checkpoint,
            variables: BTreeMap::new(),
            restored: BTreeMap::new(),
            objects: None,
        })
    }

    /// Returns the node with this name.
    pub(super) fn node(&self, name: &str) -> Option<&'a NodeDef> {
        self.nodes.get(name).copied()
    }

    /// Restores variables like the restore op of a SavedModel, which may be in a function. Restores
    /// the remaining variables by name.
    pub(super) fn restore_saved_model(&mut self, graph: &GraphDef, saver: &SaverDef) -> Result<()> {
        for (variable, source) in restore::sources(graph, saver)? {
            self.restored.insert(variable, Stored { key: source.key, part: source.slice });
        }
        self.restore_by_name()
    }

    /// Restores variables without a restored value by their names.
    pub(super) fn restore_by_name(&mut self) -> Result<()> {
        self.objects = Some(self.checkpoint.variable_keys()?);
        let variables = self.nodes.values().filter(|node| is_variable(&node.op));
        let remaining: Vec<&NodeDef> =
            variables.filter(|node| !self.restored.contains_key(&node.name)).copied().collect();
        for node in remaining {
            if let Some(key) = self.key(&names_of(node)) {
                self.restored.insert(node.name.clone(), Stored { key, part: String::new() });
            }
        }
        Ok(())
    }

    /// Checkpoint key of a variable with these names. `None` unless variables are restored by name.
    fn key(&self, names: &[&str]) -> Option<String> {
        let objects = self.objects.as_ref()?;
        let key = names.iter().copied().find(|name| self.checkpoint.contains(name));
        key.or_else(|| names.iter().find_map(|name| objects.get(*name)).map(String::as_str))
            .map(str::to_owned)
    }

    /// Value of a variable that is identified only by name. Handles within functions need this,
    /// because their variables need not be nodes of the graph.
    pub(super) fn value_by_name(&self, names: &[&str]) -> Result<Option<Value>> {
        match self.key(names) {
            Some(key) => self.load(&Stored { key, part: String::new() }).map(Some),
            None => Ok(None),
        }
    }

    /// Current value of a variable of the graph. `None` if nothing assigns it.
    pub(super) fn value(&self, variable: &str) -> Result<Option<Value>> {
        match self.restored.get(variable) {
            Some(stored) => self.load(stored).map(Some),
            None => Ok(self.variables.get(variable).cloned()),
        }
    }

    fn load(&self, stored: &Stored) -> Result<Value> {
        self.checkpoint
            .restore(&stored.key, &stored.part)?
            .ok_or_else(|| Error::invalid(format!("Key {} not found in checkpoint", stored.key)))
    }

    /// Runs a node and everything upstream of it.
    pub(super) fn run(&mut self, name: &str) -> Result<()> {
        let target = base_name(name);
        let (target, _) = self.nodes.get_key_value(target).ok_or_else(|| {
            Error::invalid(format!("The name '{target}' refers to an Operation not in the graph."))
        })?;
        let mut outputs: Outputs<'a> = BTreeMap::new();
        // Each node is pushed twice. The second entry, marked ready, is popped after its inputs.
        let mut work = vec![(*target, false)];
        let mut active = BTreeSet::new();
        while let Some((name, ready)) = work.pop() {
            if outputs.contains_key(name) {
                continue;
            }
            let node = self.nodes[name];
            if ready {
                active.remove(name);
                let items = self.evaluate(node, &outputs)?;
                outputs.insert(name, items);
                continue;
            }
            work.push((name, true));
            active.insert(name);
            for input in needed_inputs(node) {
                let (input, _) = self.nodes.get_key_value(base_name(input)).ok_or_else(|| {
                    Error::invalid(format!("node '{name}' has the input '{input}', which does not exist"))
                })?;
                if !outputs.contains_key(input) {
                    if active.contains(input) {
                        return Err(Error::invalid(format!("node '{name}' is on a cycle with '{input}'")));
                    }
                    work.push((*input, false));
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, node: &'a NodeDef, outputs: &Outputs<'a>) -> Result<Vec<Item>> {
        let input = |i: usize| -> Result<Item> {
            let name = node.input.get(i).filter(|input| !input.starts_with('^'));
            let name = name.ok_or_else(|| failed(node, &format!("is missing input {i}")))?;
            let output = name.split_once(':').map_or(Ok(0), |(_, output)| output.parse::<usize>());
            let items = outputs.get(base_name(name));
            let item = output.ok().zip(items).and_then(|(output, items)| items.get(output));
            item.cloned()
                .ok_or_else(|| failed(node, &format!("reads the output '{name}', which does not exist")))
        };
        let tensor = |session: &Self, i: usize| -> Result<Value> {
            match input(i)? {
                Item::Tensor(value) => Ok(value),
                Item::Stored(stored) => session.load(&stored),
                Item::Variable(name) => session
                    .value(&name)?
                    .ok_or_else(|| failed(node, &format!("reads variable '{name}' before it is assigned"))),
                Item::Opaque => Err(failed(node, "reads a value that is not a tensor")),
            }
        };
        Ok(match node.op.as_str() {
            "NoOp" => vec![],
            op if is_variable(op) => vec![Item::Variable(node.name.clone())],
            "Const" => vec![Item::Tensor(constant(node)?)],
            "Identity" | "RefIdentity" | "Snapshot" | "StopGradient" | "PlaceholderWithDefault" => {
                vec![input(0)?]
            }
            "ReadVariableOp" => vec![Item::Tensor(tensor(self, 0)?)],
            "RestoreV2" => self.restored_v2(node, &tensor(self, 1)?, &tensor(self, 2)?)?,
            "Restore" => vec![stored(&strings(node, &tensor(self, 1)?)?, 0, None, node)?],
            "RestoreSlice" => {
                let part = strings(node, &tensor(self, 2)?)?;
                vec![stored(&strings(node, &tensor(self, 1)?)?, 0, Some(&part), node)?]
            }
            "Assign" | "AssignVariableOp" => {
                let Item::Variable(variable) = input(0)? else {
                    return Err(failed(node, "assigns to a node that is not a variable"));
                };
                match input(1)? {
                    Item::Stored(stored) => {
                        self.variables.remove(&variable);
                        self.restored.insert(variable.clone(), stored);
                    }
                    _ => {
                        let value = tensor(self, 1)?;
                        self.restored.remove(&variable);
                        self.variables.insert(variable.clone(), value);
                    }
                }
                vec![Item::Variable(variable)]
            }
            "Fill" => {
                let sizes = sizes(node, &tensor(self, 0)?)?;
                vec![Item::Tensor(fill(node, &sizes, &tensor(self, 1)?)?)]
            }
            "ZerosLike" => {
                let value = tensor(self, 0)?;
                vec![Item::Tensor(uniform(node, &value, false)?)]
            }
            "OnesLike" => {
                let value = tensor(self, 0)?;
                vec![Item::Tensor(uniform(node, &value, true)?)]
            }
            "Reshape" => {
                let sizes = sizes(node, &tensor(self, 1)?)?;
                vec![Item::Tensor(reshape(node, &tensor(self, 0)?, &sizes)?)]
            }
            op if is_table(op) => vec![Item::Opaque],
            op => {
                let random = op.contains("Random") || op.contains("Normal") || op.contains("Multinomial");
                let why = if random { "is random" } else { "cannot be evaluated as an initializer" };
                return Err(Error::unsupported(format!(
                    "node '{}' (op {op}) {why}; save the variable's value in the checkpoint instead",
                    node.name
                )));
            }
        })
    }

    fn restored_v2(&self, node: &NodeDef, names: &Value, parts: &Value) -> Result<Vec<Item>> {
        let (names, parts) = (strings(node, names)?, strings(node, parts)?);
        if names.len() != parts.len() {
            return Err(failed(node, &format!("has {} names but {} slices", names.len(), parts.len())));
        }
        (0..names.len()).map(|i| stored(&names, i, Some(&parts), node)).collect()
    }
}

/// Inputs that the evaluation of a node needs. A restore op always reads the checkpoint, so its
/// file name is not needed. A table op needs only its control inputs.
fn needed_inputs(node: &NodeDef) -> impl Iterator<Item = &String> {
    let restores = matches!(node.op.as_str(), "RestoreV2" | "Restore" | "RestoreSlice");
    let skipped = if is_table(&node.op) { usize::MAX } else { usize::from(restores) };
    let inputs = node.input.iter().enumerate();
    inputs.filter(move |(i, input)| *i >= skipped || input.starts_with('^')).map(|(_, input)| input)
}

/// True for tables and their initializers, which do not assign variables.
fn is_table(op: &str) -> bool {
    op.contains("HashTable") || op.starts_with("InitializeTable") || op.starts_with("LookupTable")
}

fn failed(node: &NodeDef, what: &str) -> Error {
    Error::invalid(format!("node '{}' (op {}) {what}", node.name, node.op))
}

fn stored(names: &[String], i: usize, parts: Option<&[String]>, node: &NodeDef) -> Result<Item> {
    let key =
        names.get(i).cloned().ok_or_else(|| failed(node, "does not name a tensor of the checkpoint"))?;
    let part = parts.and_then(|parts| parts.get(i)).cloned().unwrap_or_default();
    Ok(Item::Stored(Stored { key, part }))
}

fn constant(node: &NodeDef) -> Result<Value> {
    let attributes = Attributes::new(&node.name, &node.op, node.attr.clone());
    let (data_type, sizes) = attributes.tensor_type("value")?;
    match data_type {
        DataType::String => Ok(Value::Strings(sizes, attributes.tensor_strings("value")?)),
        _ => Ok(Value::Array(data_type, attributes.tensor("value")?)),
    }
}

fn strings(node: &NodeDef, value: &Value) -> Result<Vec<String>> {
    let Value::Strings(_, strings) = value else { return Err(failed(node, "requires a tensor of strings")) };
    let text = |bytes: &bytes::Bytes| {
        String::from_utf8(bytes.to_vec()).map_err(|_| failed(node, "contains a name that is not UTF-8"))
    };
    strings.iter().map(text).collect()
}

fn sizes(node: &NodeDef, value: &Value) -> Result<Vec<i64>> {
    let sizes = value.array()?.to_i64s();
    sizes.ok_or_else(|| failed(node, "has a shape operand that is not a tensor of integers"))
}

fn fill(node: &NodeDef, sizes: &[i64], element: &Value) -> Result<Value> {
    let data_type = element.data_type();
    let literal = element.array()?;
    let size = literal.array_shape().element_type.byte_size() as u64;
    let count =
        Some(sizes).filter(|sizes| sizes.iter().all(|&size| size >= 0)).and_then(index::element_count);
    let count = count
        .filter(|&count| count as u64 <= MAX_INITIAL_BYTES / size && literal.bytes().len() as u64 == size);
    let count = count.ok_or_else(|| failed(node, &format!("cannot fill the shape {sizes:?}")))?;
    let shape = ArrayShape::new(literal.array_shape().element_type, sizes);
    let filled = Literal::from_bytes(shape, literal.bytes().repeat(count as usize).into());
    Ok(Value::Array(
        data_type,
        filled.ok_or_else(|| Error::internal("the bytes of a filled tensor do not match its shape"))?,
    ))
}

/// Returns zeros or ones with the type and shape of a tensor.
fn uniform(node: &NodeDef, like: &Value, ones: bool) -> Result<Value> {
    let shape = ArrayShape::new(like.array()?.array_shape().element_type, &[]);
    let scalar = match shape.element_type {
        shape::PrimitiveType::Pred => shape::Scalar::Pred(ones),
        t if t.is_complex() => shape::Scalar::Complex(f64::from(u8::from(ones)), 0.0),
        t if t.is_floating_point() => shape::Scalar::Float(f64::from(u8::from(ones))),
        t if t.is_signed_integer() => shape::Scalar::Signed(i64::from(ones)),
        _ => shape::Scalar::Unsigned(u64::from(ones)),
    };
    let element = Value::Array(like.data_type(), Literal::from_scalars(shape, [scalar]));
    fill(node, &like.sizes(), &element)
}

fn reshape(node: &NodeDef, value: &Value, sizes: &[i64]) -> Result<Value> {
    let literal = value.array()?;
    let known: i64 = sizes.iter().filter(|&&size| size >= 0).product();
    let unknown = sizes.iter().filter(|&&size| size < 0).count();
    let count = literal.array_shape().element_count();
    let sizes: Vec<i64> = match unknown {
        0 => sizes.to_vec(),
        1 if known > 0 => sizes.iter().map(|&size| if size < 0 { count / known } else { size }).collect(),
        _ => return Err(failed(node, &format!("cannot reshape its input to {sizes:?}"))),
    };
    let reshaped = literal.reshape(&sizes);
    let reshaped = reshaped.ok_or_else(|| failed(node, &format!("cannot reshape its input to {sizes:?}")))?;
    Ok(Value::Array(value.data_type(), reshaped))
}
