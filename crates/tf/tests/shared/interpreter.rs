//! An interpreter of prepared programs whose tensors are scalars.

use std::collections::BTreeMap;
use tf::{Attributes, Graph, Node, NodeId, Program};

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    Number(f32),
    Bool(bool),
    /// A variable, stack or tensor array, by number.
    Handle(usize),
    /// An array that no number depends on: a shape, a message.
    Shape,
}

use Value::*;

impl Value {
    pub fn number(&self) -> f32 {
        match self {
            Number(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }

    fn bool(&self) -> bool {
        match self {
            Bool(value) => *value,
            other => panic!("{other:?} is no bool"),
        }
    }
}

/// Value of a handle.
#[derive(Debug)]
enum Resource {
    Variable(String),
    Stack(Vec<Value>),
    Array(Vec<Option<Value>>),
}

/// A run of a program.
pub struct Interpreter<'a> {
    program: &'a Program,
    /// The variables, by the name of their node.
    pub variables: BTreeMap<String, f32>,
    resources: Vec<Resource>,
    /// The array of gradients of each array, by its number and the gradients' source.
    gradients: BTreeMap<(usize, String), usize>,
}

impl<'a> Interpreter<'a> {
    pub fn new(program: &'a Program, variables: &[(&str, f32)]) -> Self {
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        Self { program, variables, resources: Vec::new(), gradients: BTreeMap::new() }
    }

    /// All nodes of a graph, once each, inputs and control inputs first.
    pub fn run(&mut self, graph: &Graph, arguments: &[Value]) -> BTreeMap<(NodeId, usize), Value> {
        let mut values: BTreeMap<(NodeId, usize), Value> = BTreeMap::new();
        for id in graph.topological_order().expect("no cycle") {
            let node = &graph.nodes[id];
            let inputs: Vec<Value> = node.inputs.iter().map(|o| values[&(o.node, o.index)].clone()).collect();
            for (index, value) in self.node(node, &inputs, arguments).into_iter().enumerate() {
                values.insert((id, index), value);
            }
        }
        values
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Vec<Value> {
        let function = self.program.library.get(name).unwrap_or_else(|| panic!("function {name}"));
        assert_eq!(function.arguments.len(), arguments.len(), "{name}");
        let values = self.run(&function.graph, arguments);
        function.results.iter().map(|o| values[&(o.node, o.index)].clone()).collect()
    }

    fn node(&mut self, node: &Node, inputs: &[Value], arguments: &[Value]) -> Vec<Value> {
        let attributes = &node.attributes;
        let function = |name: &str| attributes.func(name).expect("a function").0.to_owned();
        match node.op.as_str() {
            "_Arg" => vec![arguments[attributes.int("index").expect("an index") as usize].clone()],
            "If" | "StatelessIf" => {
                let branch = if inputs[0].bool() { "then_branch" } else { "else_branch" };
                self.call(&function(branch), &inputs[1..])
            }
            "Case" | "StatelessCase" => {
                let branches = attributes.funcs("branches").expect("functions");
                let index = usize::try_from(inputs[0].number() as i64).unwrap_or(usize::MAX);
                let name = branches[index.min(branches.len() - 1)].0.to_owned();
                self.call(&name, &inputs[1..])
            }
            "While" | "StatelessWhile" => {
                let (cond, body) = (function("cond"), function("body"));
                let mut state = inputs.to_vec();
                for _ in 0..1000 {
                    if !self.call(&cond, &state)[0].bool() {
                        return state;
                    }
                    state = self.call(&body, &state);
                }
                panic!("node '{}' does not end", node.name);
            }
            _ => self
                .state(node, inputs)
                .or_else(|| pure(node, inputs))
                .unwrap_or_else(|| self.call(&node.op, inputs)),
        }
    }

    fn resource(&mut self, resource: Resource) -> Value {
        self.resources.push(resource);
        Handle(self.resources.len() - 1)
    }

    fn at(&mut self, handle: &Value) -> &mut Resource {
        match handle {
            Handle(number) => &mut self.resources[*number],
            other => panic!("{other:?} is no handle"),
        }
    }

    fn read(&mut self, handle: &Value) -> f32 {
        match self.at(handle) {
            Resource::Variable(name) => {
                let name = name.clone();
                self.variables[&name]
            }
            other => panic!("{other:?} is not a variable"),
        }
    }

    fn write(&mut self, handle: &Value, value: f32) -> Vec<Value> {
        match self.at(handle) {
            Resource::Variable(name) => {
                let name = name.clone();
                self.variables.insert(name, value);
                vec![handle.clone()]
            }
            other => panic!("{other:?} is not a variable"),
        }
    }

    /// Ops on variables, stacks and arrays.
    fn state(&mut self, node: &Node, inputs: &[Value]) -> Option<Vec<Value>> {
        let number = |i: usize| inputs[i].number();
        Some(match node.op.as_str() {
            "VarHandleOp" | "VariableV2" => vec![self.resource(Resource::Variable(node.name.clone()))],
            // Reads a reference where a value is expected.
            "Identity" | "Enter" if node.inputs.len() == 1 && self.is_variable_to_read(node, inputs) => {
                vec![Number(self.read(&inputs[0]))]
            }
            "ReadVariableOp" => vec![Number(self.read(&inputs[0]))],
            "AssignVariableOp" | "Assign" => self.write(&inputs[0], number(1)),
            "AssignAddVariableOp" | "AssignAdd" => {
                let value = self.read(&inputs[0]) + number(1);
                self.write(&inputs[0], value)
            }
            "AssignSubVariableOp" => {
                let value = self.read(&inputs[0]) - number(1);
                self.write(&inputs[0], value)
            }
            "StackV2" => vec![self.resource(Resource::Stack(Vec::new()))],
            "StackPushV2" => match self.at(&inputs[0]) {
                Resource::Stack(values) => {
                    values.push(inputs[1].clone());
                    vec![inputs[1].clone()]
                }
                other => panic!("{other:?} is no stack"),
            },
            "StackPopV2" => match self.at(&inputs[0]) {
                Resource::Stack(values) => {
                    vec![values.pop().unwrap_or_else(|| panic!("{}: empty", node.name))]
                }
                other => panic!("{other:?} is no stack"),
            },
            "StackCloseV2" => vec![],
            "TensorArrayV3" => {
                let size = number(0) as usize;
                vec![self.resource(Resource::Array(vec![None; size])), Number(0.0)]
            }
            "TensorArrayGradV3" => {
                let source = node.attributes.text("source").expect("a source").to_owned();
                let Handle(array) = inputs[0] else { panic!("no handle") };
                let Resource::Array(values) = &self.resources[array] else { panic!("no array") };
                let size = values.len();
                let key = (array, source);
                let gradient = match self.gradients.get(&key) {
                    Some(&gradient) => Handle(gradient),
                    None => {
                        let made = self.resource(Resource::Array(vec![None; size]));
                        self.gradients.insert(key, self.resources.len() - 1);
                        made
                    }
                };
                vec![gradient, Number(0.0)]
            }
            "TensorArraySizeV3" => match self.at(&inputs[0]) {
                Resource::Array(values) => vec![Number(values.len() as f32)],
                other => panic!("{other:?} is no array"),
            },
            "TensorArrayWriteV3" => {
                let Resource::Array(values) = self.at(&inputs[0]) else { panic!("no array") };
                let before = values[number(1) as usize].as_ref().map_or(0.0, Value::number);
                values[number(1) as usize] = Some(Number(before + number(2)));
                vec![inputs[3].clone()]
            }
            "TensorArrayReadV3" => {
                let Resource::Array(values) = self.at(&inputs[0]) else { panic!("no array") };
                // Unwritten elements are zero.
                vec![values[number(1) as usize].clone().unwrap_or(Number(0.0))]
            }
            _ => return None,
        })
    }

    fn is_variable_to_read(&self, node: &Node, inputs: &[Value]) -> bool {
        let wants_value = node.output_types.iter().all(|t| t.primitive_type().is_some());
        matches!(inputs[0], Handle(number) if wants_value
            && matches!(self.resources[number], Resource::Variable(_)))
    }
}

fn constant(attributes: &Attributes) -> Value {
    match attributes.tensor("value") {
        Ok(literal) if literal.bytes().is_empty() => Shape,
        Ok(literal) => match literal.scalar_at(0) {
            shape::Scalar::Float(v) => Number(v as f32),
            shape::Scalar::Signed(v) => Number(v as f32),
            shape::Scalar::Pred(v) => Bool(v),
            other => panic!("{other:?}"),
        },
        // A message of an Assert.
        Err(_) => Shape,
    }
}

fn pure(node: &Node, inputs: &[Value]) -> Option<Vec<Value>> {
    let number = |i: usize| inputs[i].number();
    Some(match node.op.as_str() {
        "Const" => vec![constant(&node.attributes)],
        "Identity" | "RefIdentity" | "Cast" | "PreventGradient" | "StopGradient" => vec![inputs[0].clone()],
        "AddV2" | "AddN" | "Add" => vec![Number(inputs.iter().map(Value::number).sum())],
        "Sub" => vec![Number(number(0) - number(1))],
        "Mul" => vec![Number(number(0) * number(1))],
        "Neg" => vec![Number(-number(0))],
        "Sin" => vec![Number(number(0).sin())],
        "Cos" => vec![Number(number(0).cos())],
        "Maximum" => vec![Number(number(0).max(number(1)))],
        "Minimum" => vec![Number(number(0).min(number(1)))],
        "Less" => vec![Bool(number(0) < number(1))],
        "Greater" => vec![Bool(number(0) > number(1))],
        "GreaterEqual" => vec![Bool(number(0) >= number(1))],
        "LogicalAnd" => vec![Bool(inputs[0].bool() && inputs[1].bool())],
        "Shape" => vec![Shape],
        "ZerosLike" => vec![Number(0.0)],
        "OnesLike" => vec![Number(1.0)],
        "Fill" => vec![inputs[1].clone()],
        "Sum" | "Reshape" => vec![inputs[0].clone()],
        "BroadcastGradientArgs" => vec![Shape, Shape],
        "NoOp" | "ControlTrigger" => vec![],
        "Assert" => {
            assert!(inputs[0].bool());
            vec![]
        }
        _ => return None,
    })
}
