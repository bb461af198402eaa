//! The node being translated: its inputs, attributes, compile-time constants, and the functions
//! that it calls.

use crate::node::accepted::takes_bounded;
use crate::node::functions::{FunctionPart, Functions};
use crate::values::state::State;
use crate::values::value::Value;
use bounded::{Scope, VariableId, list};
use hlo::InstructionId;
use shape::{Literal, PrimitiveType};
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use support::{Code, Error, Result};
use tf::{DataType, Function, NodeId};

/// Upper bound on the number of elements of a shape. It keeps numbers of elements, bytes, and bits
/// within `i64`.
const MOST_ELEMENTS: i64 = 1 << 56;

/// One node being translated. Instructions built through it carry the node's op and name. It
/// dereferences to [`State`], and so to the builder.
pub(crate) struct NodeContext<'i, 'p> {
    state: &'i mut State<'p>,
    functions: &'i mut dyn Functions<'p>,
    node: &'p tf::Node,
    /// The graph or function that contains the node.
    graph: &'p tf::Graph,
    /// The node's name, prefixed with the names of the calls that lead to it.
    name: String,
    inputs: Vec<Value>,
}

/// A node in its graph, and its inputs.
pub(crate) struct NodeInputs<'p> {
    pub(crate) node: &'p tf::Node,
    pub(crate) graph: &'p tf::Graph,
    pub(crate) name: String,
    pub(crate) inputs: Vec<Value>,
}

impl<'p> Deref for NodeContext<'_, 'p> {
    type Target = State<'p>;

    fn deref(&self) -> &State<'p> {
        self.state
    }
}

impl DerefMut for NodeContext<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.state
    }
}

impl<'i, 'p> NodeContext<'i, 'p> {
    /// Creates the context of a node about to be translated.
    pub(crate) fn new(
        state: &'i mut State<'p>,
        functions: &'i mut dyn Functions<'p>,
        node: NodeInputs<'p>,
    ) -> Self {
        let NodeInputs { node, graph, name, inputs } = node;
        Self { state, functions, node, graph, name, inputs }
    }
}

impl<'p> NodeContext<'_, 'p> {
    /// The node.
    pub(crate) fn node(&self) -> &'p tf::Node {
        self.node
    }

    /// The graph or function that contains the node.
    pub(crate) fn graph(&self) -> &'p tf::Graph {
        self.graph
    }

    /// The node's attributes.
    pub(crate) fn attributes(&self) -> &'p tf::Attributes {
        &self.node.attributes
    }

    /// The node's name, prefixed with the names of the calls that lead to it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The node's inputs.
    pub(crate) fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    /// Gives the node another input.
    pub(crate) fn replace_input(&mut self, k: usize, id: InstructionId) {
        self.inputs[k] = Value::Array(id);
    }

    /// Builds with other inputs, then restores the node's own.
    pub(crate) fn with_inputs<R>(&mut self, inputs: Vec<Value>, build: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.inputs, inputs);
        let result = build(self);
        self.inputs = outer;
        result
    }

    /// Builds in a scope of its own, and returns the closed scope.
    pub(crate) fn within<R>(
        &mut self,
        scope: Scope,
        build: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<(Scope, R)> {
        let level = self.open(scope);
        let built = build(self);
        // Errors about this node refer to the computation around that scope.
        let scope = self.close(level);
        self.forget_earlier_arrays(level);
        Ok((scope, built?))
    }

    /// Returns a function of the library.
    pub(crate) fn function(&self, name: &str) -> Result<&'p Function> {
        self.program().library.get(name).ok_or_else(|| {
            Error::invalid(format!("function '{name}' is not in the graph's library"))
                .coded(Code::FunctionLibrary)
        })
    }

    /// Translates a function's body in place and returns the values of its results.
    pub(crate) fn translate_function(
        &mut self,
        function: &'p Function,
        arguments: &[Value],
    ) -> Result<Vec<Value>> {
        let prefix = format!("{}/", self.name);
        self.functions.translate(self.state, function, arguments, &prefix)
    }

    /// Translates the nodes that one output of a function's body needs. Returns the output's value,
    /// or `None` if the output does not exist.
    pub(crate) fn translate_output(
        &mut self,
        part: &FunctionPart<'p, '_>,
        arguments: &[Value],
    ) -> Result<Option<Value>> {
        let prefix = format!("{}/", self.name);
        self.functions.translate_output(self.state, part, arguments, &prefix)
    }

    /// Returns the nodes of a function that a call must run.
    pub(crate) fn needed_nodes(&self, function: &'p Function) -> BTreeSet<NodeId> {
        self.functions.needed_nodes(function)
    }

    /// For each result of a function, the argument that it returns unchanged, if any.
    pub(crate) fn passed_arguments(&mut self, function: &'p Function) -> Vec<Option<usize>> {
        self.functions.passed_arguments(function)
    }

    /// Returns the array at an input. A reference to a variable is read now.
    pub(crate) fn input(&mut self, k: usize) -> Result<InstructionId> {
        match self.value(k)? {
            Value::Array(id) if self.is_bounded(id) && !takes_bounded(&self.node.op) => {
                Err(Error::unsupported(format!(
                    "input {k} has a dimension of data-dependent size, which {} does not support yet; \
                     give the input a fixed size first, for example with XlaRemoveDynamicDimensionSize",
                    self.node.op
                )).coded(Code::BoundedSize))
            }
            Value::Array(id) => Ok(id),
            Value::Reference(variable) => Ok(self.read_variable(variable)),
            Value::Resource(variable) => Err(self.invalid(format!(
                "input {k} is the handle of variable '{}', but the op expects its value: insert a ReadVariableOp",
                self.variable_name(variable)
            ))),
            other @ (Value::List(_) | Value::Stack(_) | Value::TensorArray(_)) => Err(self.invalid(format!(
                "input {k}: expected an array, got {}",
                other.kind()
            ))),
            Value::Opaque => Err(self.invalid(format!(
                "input {k}: expected an array, got a string or another value without an array; only Assert accepts one"
            ))),
        }
    }

    /// Returns all inputs from a position on.
    pub(crate) fn inputs_from(&mut self, first: usize) -> Result<Vec<InstructionId>> {
        (first..self.inputs.len()).map(|k| self.input(k)).collect()
    }

    /// Returns the inputs as outputs, position by position. References to variables are read.
    pub(crate) fn pass_on(&mut self) -> Result<Vec<Value>> {
        (0..self.node.output_types.len())
            .map(|k| self.value(k).map(|value| self.dereferenced(value)))
            .collect()
    }

    /// Returns the value of an input.
    pub(crate) fn value(&self, k: usize) -> Result<Value> {
        let value = self.inputs.get(k).copied();
        value.ok_or_else(|| {
            self.invalid(format!(
                "the op expects an input {k}, but the node has {} inputs",
                self.inputs.len()
            ))
        })
    }

    /// Returns the variable whose handle or reference is an input.
    pub(crate) fn variable(&self, k: usize) -> Result<VariableId> {
        match self.value(k)? {
            Value::Resource(variable) | Value::Reference(variable) => Ok(variable),
            _ => Err(self.invalid(format!("input {k}: expected the handle of a variable"))),
        }
    }

    /// Returns the element type that a type attribute names.
    pub(crate) fn type_attribute(&self, name: &str) -> Result<PrimitiveType> {
        let data_type = self.node.attributes.ty(name)?;
        self.primitive(data_type)
    }

    /// Returns the element type of an output.
    pub(crate) fn output_type(&self, k: usize) -> Result<PrimitiveType> {
        let data_type = self.node.output_types.get(k).copied();
        let data_type = data_type.ok_or_else(|| Error::internal(format!("no type for output {k}")))?;
        self.primitive(data_type)
    }

    fn primitive(&self, data_type: DataType) -> Result<PrimitiveType> {
        data_type.base().primitive_type().ok_or_else(|| {
            Error::unsupported(format!(
                "unsupported tensor type {data_type}; only numbers and bool can be compiled"
            ))
            .coded(Code::UnsupportedOp)
        })
    }

    /// Returns a string attribute, or a default if it is absent.
    pub(crate) fn text_or(&self, name: &str, default: &'p str) -> Result<&'p str> {
        if self.node.attributes.has(name) { self.node.attributes.text(name) } else { Ok(default) }
    }

    /// Returns the value of an input that must be known at compile time.
    pub(crate) fn constant(&mut self, k: usize) -> Result<Literal> {
        let id = self.input(k)?;
        match self.fold(id) {
            Some(literal) => Ok(literal),
            None => Err(self.not_constant(k, id)),
        }
    }

    /// Returns one integer of an input, if it is known at compile time.
    pub(crate) fn constant_element(&mut self, k: usize, position: usize) -> Result<Option<i64>> {
        let id = self.input(k)?;
        Ok(self.fold_element(id, position))
    }

    /// Returns `end[position] - begin[position]`, if both are known up to the same run-time value.
    pub(crate) fn constant_difference(
        &mut self,
        end: usize,
        begin: usize,
        position: usize,
    ) -> Result<Option<i64>> {
        let (end, begin) = (self.input(end)?, self.input(begin)?);
        let end = self.linear_element(end, position);
        let begin = self.linear_element(begin, position);
        Ok(match (end, begin) {
            (Some(end), Some(begin)) if end.base == begin.base => end.offset.checked_sub(begin.offset),
            _ => None,
        })
    }

    /// Returns the error for an input that must be known at compile time and is not.
    pub(crate) fn not_constant(&mut self, k: usize, id: InstructionId) -> Error {
        self.state.request_constant(&self.name, k);
        let origins = self.origins(id);
        let fix = match self.only_feed(id) {
            Some(node) => format!("give the feed a value with --feed-constant {node}=VALUE"),
            None => "make it a Const in the graph".to_owned(),
        };
        let origins = match origins.as_slice() {
            [] => "it is too large to be evaluated at compile time".to_owned(),
            origins => format!("it depends on {}", origins.join(", ")),
        };
        Error::invalid(format!(
            "Input {k} to node `{}` with op {} must be a compile-time constant: {origins}. Shapes, axes and the like \
             must follow from constants and from the shapes of feeds: {fix}, or feed the tensor that it leads to \
             instead.",
            self.name, self.node.op
        )).coded(Code::NotConstant)
    }

    /// Returns the integers of an input that must be known at compile time: a scalar or a vector.
    pub(crate) fn constant_i64s(&mut self, k: usize) -> Result<Vec<i64>> {
        let literal = self.constant(k)?;
        let rank = literal.array_shape().rank();
        self.check(rank <= 1, || format!("input {k}: expected a scalar or a vector, got rank {rank}"))?;
        literal.to_i64s().ok_or_else(|| self.invalid(format!("input {k}: expected integers")))
    }

    /// Returns the integer of an input that must be known at compile time and have one element.
    pub(crate) fn constant_i64(&mut self, k: usize) -> Result<i64> {
        match self.constant_i64s(k)?.as_slice() {
            [value] => Ok(*value),
            values => {
                Err(self.invalid(format!("input {k}: expected a scalar, got {} elements", values.len())))
            }
        }
    }

    /// Returns sizes from an input that must be known at compile time. Rejects negative sizes and
    /// shapes with too many elements.
    pub(crate) fn constant_sizes(&mut self, k: usize) -> Result<Vec<i64>> {
        let sizes = self.constant_i64s(k)?;
        let count = shape::index::element_count(&sizes).unwrap_or(i64::MAX);
        let fits = sizes.iter().all(|size| (0..MOST_ELEMENTS).contains(size)) && count < MOST_ELEMENTS;
        self.check(fits, || format!("input {k} is not a valid shape: {}", list(&sizes)))?;
        Ok(sizes)
    }

    /// Adds the node to an error that does not name it.
    pub(crate) fn at_node(&self, error: Error) -> Error {
        let named = [format!("'{}'", self.name), format!("`{}`", self.name)];
        if named.iter().any(|name| error.message().contains(name)) || error.message().contains("node '") {
            return error;
        }
        let shape = |value: &Value| match value {
            Value::Array(id) => self.scope_ref().shape(*id).to_string(),
            Value::Resource(v) | Value::Reference(v) => {
                format!("variable '{}'", self.variable_name(*v))
            }
            other => other.kind().to_owned(),
        };
        let inputs: Vec<String> = self.inputs.iter().take(8).map(shape).collect();
        let inputs =
            if inputs.is_empty() { String::new() } else { format!(", inputs {}", inputs.join(", ")) };
        let message = format!("{} (node '{}', op '{}'{inputs})", error.message(), self.name, self.node.op);
        error.with_message(message)
    }
}
