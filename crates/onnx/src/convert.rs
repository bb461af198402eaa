//! Conversion of a model's graph: it becomes the graph itself, its subgraphs become functions of
//! the library, and calls of its functions are replaced by their bodies.

mod op;
mod subgraph;
mod value;

pub(crate) use op::Op;
pub(crate) use subgraph::Interface;
pub(crate) use value::{Array, Value};

use crate::proto::{
    AttributeProto, Dimension, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    SparseTensorProto, TensorProto, TypeProto, ValueInfoProto,
};
use crate::tensor::{Constant, STRING, data_type};
use crate::{External, Read};
use std::collections::BTreeMap;
use std::rc::Rc;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Body, Names, Ref, identifier, of_node, shape_of, ty};
use tf::model::Foreign;
use tf::proto::attr_value::Value as Attribute;
use tf::proto::{
    Config, Feed, Fetch, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, TensorId, TensorShapeProto,
};

/// Deepest nesting of subgraphs and functions.
const DEEPEST: usize = 64;

/// Most nodes of a model whose calls are replaced by the bodies of functions, and whose loops that
/// carry sequences are unrolled.
const MOST_NODES: usize = 1 << 18;

/// Most bytes of lists and sequences that nodes of the graph have copies of.
const MOST_COPIED_BYTES: usize = 1 << 28;

/// The oldest and the newest version of ONNX's ops that are supported.
const VERSIONS: [i64; 2] = [6, 28];

/// Names of values that are visible, and the versions of ops.
#[derive(Default)]
pub(crate) struct Scope<'a> {
    values: BTreeMap<String, Value>,
    /// Constants that are not needed yet.
    initializers: BTreeMap<&'a str, Initializer<'a>>,
    /// Types that the file states.
    stated: BTreeMap<&'a str, &'a TypeProto>,
}

/// A constant of the file.
#[derive(Clone, Copy)]
pub(crate) enum Initializer<'a> {
    Dense(&'a TensorProto),
    Sparse(&'a SparseTensorProto),
}

/// A graph or function under construction.
pub(crate) struct Frame<'a> {
    pub(crate) body: Body,
    scopes: Vec<Scope<'a>>,
}

impl Frame<'_> {
    /// The node that was added last.
    pub(crate) fn last_node(&mut self) -> Option<&mut NodeDef> {
        self.body.nodes.last_mut()
    }
}

/// Converts one node.
pub(crate) type ConvertNode = fn(&mut Op<'_, '_, '_>) -> Result<()>;

/// Versions of ops by domain.
pub(crate) type Versions = Rc<BTreeMap<String, i64>>;

/// State of a conversion.
pub(crate) struct Converter<'a, 'e> {
    convert: ConvertNode,
    pub(crate) external: &'e mut External<'e>,
    dims: &'a BTreeMap<String, i64>,
    functions: BTreeMap<[&'a str; 3], &'a FunctionProto>,
    /// Attributes of the function that is being inlined.
    attributes: Vec<Rc<BTreeMap<&'a str, &'a AttributeProto>>>,
    versions: Vec<Versions>,
    function_names: Names,
    library: Vec<FunctionDef>,
    depth: usize,
    nodes: usize,
    copied: usize,
}

/// The domain of ONNX's own ops has two names.
pub(crate) fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

fn versions(imports: &[OperatorSetIdProto]) -> Result<Versions> {
    let versions: BTreeMap<String, i64> =
        imports.iter().map(|import| (domain(&import.domain).to_owned(), import.version)).collect();
    if let Some(&version) = versions.get("")
        && !(VERSIONS[0]..=VERSIONS[1]).contains(&version)
    {
        return Err(Error::unsupported(format!(
            "the model uses version {version} of ONNX's ops, but versions {} to {} are supported: convert it with onnx.version_converter",
            VERSIONS[0], VERSIONS[1]
        )));
    }
    Ok(Rc::new(versions))
}

/// The sizes of an array: -1 for unknown ones, or nothing for an unknown rank.
fn sizes_of(
    shape: Option<&crate::proto::TensorShapeProto>,
    dims: &BTreeMap<String, i64>,
) -> Result<Option<Vec<i64>>> {
    let Some(shape) = shape else { return Ok(None) };
    let size = |dimension: &Dimension| match (dimension.dim_value, &dimension.dim_param) {
        // Converters of Paddle's models write -1 for unknown sizes.
        (Some(-1), _) => Ok(-1),
        (Some(size), _) if size < 0 => Err(Error::invalid(format!("size {size} is negative"))),
        (Some(size), _) => Ok(size),
        (None, Some(name)) => Ok(dims.get(name).copied().unwrap_or(-1)),
        (None, None) => Ok(-1),
    };
    shape.dim.iter().map(size).collect::<Result<Vec<i64>>>().map(Some)
}

/// Reads a model as a graph with its interface.
pub(crate) fn convert<'a>(
    model: &'a ModelProto,
    dims: &'a BTreeMap<String, i64>,
    external: &mut External<'_>,
    convert: ConvertNode,
) -> Result<Read> {
    let graph = model.graph.as_ref().ok_or_else(|| Error::invalid("the model has no graph"))?;
    if model.opset_import.is_empty() {
        return Err(Error::invalid("the model does not state the version of its ops (opset_import)"));
    }
    let mut read = |path: &str| external(path);
    let mut converter = Converter {
        convert,
        external: &mut read,
        dims,
        functions: BTreeMap::new(),
        attributes: vec![Rc::default()],
        versions: vec![versions(&model.opset_import)?],
        function_names: Names::default(),
        library: Vec::new(),
        depth: 0,
        nodes: 0,
        copied: 0,
    };
    for function in &model.functions {
        let key = [domain(&function.domain), function.name.as_str(), function.overload.as_str()];
        converter.functions.insert(key, function);
    }
    let mut frame = Frame { body: Body::new(false), scopes: vec![Scope::default()] };
    converter.declare(&mut frame, graph);
    let mut config = Config::default();
    let mut names = Names::default();
    let mut symbols = Vec::new();
    for input in &graph.input {
        if frame.scopes[0].initializers.contains_key(input.name.as_str()) {
            continue;
        }
        let at = |e: Error| e.context(format!("input '{}'", input.name));
        let (feed, value) = converter.feed(&mut frame, input, &mut names).map_err(at)?;
        let shape = input.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()).and_then(|t| t.shape.as_ref());
        for name in shape.iter().flat_map(|shape| &shape.dim).filter_map(|dim| dim.dim_param.as_ref()) {
            if !name.is_empty() && !symbols.contains(name) {
                symbols.push(name.clone());
            }
        }
        config.feed.push(feed);
        frame.scopes[0].values.insert(input.name.clone(), value);
    }
    converter.nodes(&mut frame, &graph.node)?;
    let mut names = Names::default();
    for output in &graph.output {
        let at = |e: Error| e.context(format!("output '{}'", output.name));
        let value = converter.value(&mut frame, &output.name).map_err(at)?;
        let (arrays, numbered) = match value {
            Value::Array(array) => (vec![array], false),
            Value::Sequence(_, arrays) => (arrays, true),
            Value::Absent => {
                return Err(at(Error::unsupported("an optional value without contents cannot be an output")));
            }
        };
        for (k, array) in arrays.into_iter().enumerate() {
            let own = if numbered { format!("{}_{k}", output.name) } else { output.name.clone() };
            let value = frame.body.after_effects(&of_node(&own), &array.value, array.data_type)?;
            // An input, or an output under another name, is an output, too.
            let value = if value.node == of_node(&own) {
                value
            } else {
                frame.body.add(&of_node(&own), "Identity", &[value], [ty("T", array.data_type)])?.remove(0)
            };
            config.fetch.push(Fetch {
                id: Some(TensorId { node_name: value.node, output_index: value.output as i64 }),
                name: names.unique(&identifier(&own)),
                r#type: array.data_type.number(),
                ..Fetch::default()
            });
        }
    }
    if config.fetch.is_empty() {
        return Err(Error::invalid("the model has no outputs"));
    }
    let library = FunctionDefLibrary { function: converter.library, ..FunctionDefLibrary::default() };
    let graph = GraphDef { node: frame.body.nodes, library: Some(library), ..GraphDef::default() };
    let foreign = Foreign { kind: "onnx".to_owned(), graph, config, ..Foreign::default() };
    Ok(Read { foreign, dims: symbols })
}

impl<'a> Converter<'a, '_> {
    /// An input of the model.
    fn feed(
        &mut self,
        frame: &mut Frame<'a>,
        input: &ValueInfoProto,
        names: &mut Names,
    ) -> Result<(Feed, Value)> {
        let stated = input.r#type.as_ref().ok_or_else(|| Error::invalid("its type is not stated"))?;
        let Some(tensor) = &stated.tensor_type else {
            let kind = match stated {
                TypeProto { sequence_type: Some(_), .. } => {
                    "a sequence, whose length the file does not state"
                }
                TypeProto { optional_type: Some(_), .. } => {
                    "an optional value, which may be absent at run time"
                }
                TypeProto { map_type: Some(_), .. } => "a map",
                TypeProto { sparse_tensor_type: Some(_), .. } => "a sparse tensor",
                _ => return Err(Error::invalid("its type is not stated")),
            };
            return Err(Error::unsupported(format!(
                "it is {kind}: only arrays can be inputs of a compiled model"
            )));
        };
        let data_type = data_type(tensor.elem_type)?;
        let sizes = sizes_of(tensor.shape.as_ref(), self.dims)?;
        let shape = match &sizes {
            Some(sizes) => {
                let mut shape = shape_of(sizes);
                let symbols = tensor.shape.iter().flat_map(|shape| &shape.dim);
                for (dim, symbol) in shape.dim.iter_mut().zip(symbols).filter(|(dim, _)| dim.size < 0) {
                    dim.name = symbol.dim_param.clone().unwrap_or_default();
                }
                shape
            }
            None => TensorShapeProto { unknown_rank: true, ..TensorShapeProto::default() },
        };
        let attributes = [ty("dtype", data_type), ("shape", Attribute::Shape(shape.clone()))];
        let value = frame.body.add(&of_node(&input.name), "Placeholder", &[], attributes)?.remove(0);
        let feed = Feed {
            id: Some(TensorId { node_name: value.node.clone(), output_index: 0 }),
            shape: Some(shape),
            name: names.unique(&identifier(&input.name)),
            r#type: data_type.number(),
            ..Feed::default()
        };
        let sizes = sizes.filter(|sizes| !sizes.contains(&-1));
        Ok((feed, Value::Array(Array { value, data_type, constant: None, sizes })))
    }

    /// Makes the constants and the stated types of a graph visible.
    fn declare(&self, frame: &mut Frame<'a>, graph: &'a GraphProto) {
        let scope = frame.scopes.last_mut().expect("a scope");
        for tensor in &graph.initializer {
            scope.initializers.insert(&tensor.name, Initializer::Dense(tensor));
        }
        for sparse in &graph.sparse_initializer {
            if let Some(values) = &sparse.values {
                scope.initializers.insert(&values.name, Initializer::Sparse(sparse));
            }
        }
        for info in graph.value_info.iter().chain(&graph.output) {
            if let Some(stated) = &info.r#type {
                scope.stated.insert(&info.name, stated);
            }
        }
    }

    /// Converts nodes, in the order of the file, which is one of execution.
    fn nodes(&mut self, frame: &mut Frame<'a>, nodes: &'a [NodeProto]) -> Result<()> {
        for node in nodes {
            self.node(frame, node).map_err(|e| {
                let first = node.output.iter().find(|name| !name.is_empty());
                let name =
                    if node.name.is_empty() { first.cloned().unwrap_or_default() } else { node.name.clone() };
                if e.message().contains("node '") {
                    e
                } else {
                    e.context(format!("node '{name}', op '{}'", node.op_type))
                }
            })?;
        }
        Ok(())
    }

    /// Counts a node, or an iteration of a loop that is unrolled.
    pub(crate) fn count(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return Err(Error::unsupported(format!(
                "the model has more than {MOST_NODES} nodes when calls of functions are replaced by their \
                 bodies, and loops that carry sequences by their iterations"
            )));
        }
        Ok(())
    }

    fn node(&mut self, frame: &mut Frame<'a>, node: &'a NodeProto) -> Result<()> {
        self.count()?;
        let mut inputs = Vec::new();
        for name in &node.input {
            let value = if name.is_empty() { None } else { Some(self.value(frame, name)?) };
            if let Some(Value::Sequence(_, arrays)) = &value {
                self.copy(arrays)?;
            }
            inputs.push(value);
        }
        let start = frame.body.nodes.len();
        let key = [domain(&node.domain), node.op_type.as_str(), node.overload.as_str()];
        let outputs = match self.functions.get(&key).copied() {
            Some(function) => self.call(frame, node, function, inputs)?,
            None => {
                let first = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&node.op_type);
                let name = of_node(first);
                let mut op = Op::new(self, frame, node, inputs, name);
                let convert = op.converter.convert;
                convert(&mut op)?;
                op.outputs
            }
        };
        let mut outputs: Vec<Option<Value>> = outputs;
        for (k, name) in node.output.iter().enumerate() {
            if let Some(Some(Value::Array(array))) = outputs.get(k)
                && !name.is_empty()
                && let Some((before, after)) = Self::renamed(frame, start, name, &array.value)
            {
                let rename = &mut |array: &mut Array| {
                    if array.value.node == before.node {
                        array.value = array.value.renamed(&before, &after);
                    }
                };
                outputs.iter_mut().flatten().for_each(|value| value.each_mut(rename));
            }
        }
        for (name, value) in node.output.iter().zip(outputs) {
            let Some(value) = value else { continue };
            if name.is_empty() {
                continue;
            }
            let value = self.with_stated_sizes(frame, name, value);
            let scope = frame.scopes.last_mut().expect("a scope");
            if scope.values.insert(name.clone(), value).is_some() {
                return Err(Error::invalid(format!("value '{name}' is computed twice")));
            }
        }
        Ok(())
    }

    /// Gives the node that computes a value the value's name. Returns the output before and after,
    /// if it was renamed.
    fn renamed(frame: &mut Frame<'_>, start: usize, name: &str, value: &Ref) -> Option<(Ref, Ref)> {
        let wanted = of_node(name);
        let is_new = |node: &NodeDef| node.name == value.node;
        let renames =
            value.output == 0 && value.node != wanted && frame.body.nodes[start..].iter().any(is_new);
        renames.then(|| (value.clone(), frame.body.rename(start, value, &wanted)))
    }

    /// The value with the sizes that the file states.
    fn with_stated_sizes(&self, frame: &Frame<'a>, name: &str, mut value: Value) -> Value {
        if let Value::Array(array) = &mut value
            && array.sizes.is_none()
            && let Some(stated) = frame.scopes.last().and_then(|scope| scope.stated.get(name))
            && let Some(tensor) = &stated.tensor_type
            && let Ok(Some(sizes)) = sizes_of(tensor.shape.as_ref(), self.dims)
            && !sizes.contains(&-1)
        {
            array.sizes = Some(sizes);
        }
        value
    }

    /// A visible value, which may be a constant that is not needed before.
    pub(crate) fn value(&mut self, frame: &mut Frame<'a>, name: &str) -> Result<Value> {
        for depth in (0..frame.scopes.len()).rev() {
            if let Some(value) = frame.scopes[depth].values.get(name) {
                return Ok(value.clone());
            }
            if let Some(&initializer) = frame.scopes[depth].initializers.get(name) {
                let at = |e: Error| e.context(format!("constant '{name}'"));
                let constant = match initializer {
                    Initializer::Dense(tensor) => Constant::read(tensor, self.external).map_err(at)?,
                    Initializer::Sparse(sparse) => {
                        Constant::read_sparse(sparse, self.external).map_err(at)?
                    }
                };
                let value = Value::Array(self.constant(&mut frame.body, &of_node(name), constant)?);
                frame.scopes[depth].values.insert(name.to_owned(), value.clone());
                return Ok(value);
            }
        }
        Err(Error::invalid(format!(
            "value '{name}' does not exist: it is neither an input, nor a constant, nor the output of an earlier node"
        )))
    }

    /// Adds a constant.
    pub(crate) fn constant(&self, body: &mut Body, base: &str, constant: Constant) -> Result<Array> {
        let Constant { data_type, sizes, bytes } = &constant;
        let value = body.constant(base, *data_type, sizes, bytes.clone())?;
        let (data_type, sizes) = (*data_type, Some(sizes.clone()));
        Ok(Array { value, data_type, constant: Some(Rc::new(constant)), sizes })
    }

    /// Converts the body of a function in place of a call.
    fn call(
        &mut self,
        frame: &mut Frame<'a>,
        node: &'a NodeProto,
        function: &'a FunctionProto,
        inputs: Vec<Option<Value>>,
    ) -> Result<Vec<Option<Value>>> {
        self.enter()?;
        let outer = self.attributes.last().expect("attributes").clone();
        let mut attributes: BTreeMap<&str, &AttributeProto> =
            function.attribute_proto.iter().map(|attribute| (attribute.name.as_str(), attribute)).collect();
        for attribute in &node.attribute {
            let given = match attribute.ref_attr_name.as_str() {
                "" => Some(attribute),
                name => outer.get(name).copied(),
            };
            if let Some(given) = given {
                attributes.insert(&attribute.name, given);
            }
        }
        let mut scope = Scope::default();
        for (name, value) in function.input.iter().zip(inputs) {
            if let Some(value) = value {
                scope.values.insert(name.clone(), value);
            }
        }
        // The body sees its own values only.
        let outer = std::mem::replace(&mut frame.scopes, vec![scope]);
        let own = if function.opset_import.is_empty() {
            self.versions.last().expect("versions").clone()
        } else {
            versions(&function.opset_import)?
        };
        self.attributes.push(Rc::new(attributes));
        self.versions.push(own);
        let converted = self.nodes(frame, &function.node).and_then(|()| {
            let outputs = function.output.iter().zip(&node.output);
            outputs
                .map(
                    |(name, wanted)| {
                        if wanted.is_empty() { Ok(None) } else { self.value(frame, name).map(Some) }
                    },
                )
                .collect()
        });
        self.versions.pop();
        self.attributes.pop();
        frame.scopes = outer;
        self.depth -= 1;
        let converted: Result<Vec<Option<Value>>> = converted;
        converted.map_err(|e| e.context(format!("function '{}'", function.name)))
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Error::unsupported(format!(
                "functions and subgraphs are nested more than {DEEPEST} deep, or a function calls itself"
            )));
        }
        Ok(())
    }

    /// Counts the bytes of a list of the file, or of a sequence, that a node gets a copy of.
    pub(crate) fn copy<T>(&mut self, list: &[T]) -> Result<()> {
        self.copied = self.copied.saturating_add(size_of_val(list));
        if self.copied > MOST_COPIED_BYTES {
            return Err(Error::unsupported(format!(
                "nodes have copies of sequences and lists of more than {} MiB in total",
                MOST_COPIED_BYTES >> 20
            )));
        }
        Ok(())
    }

    /// The version of the ops of a domain.
    pub(crate) fn version(&self, domain: &str) -> i64 {
        self.versions.last().and_then(|versions| versions.get(domain)).copied().unwrap_or(1)
    }
}

/// The type of an element that a type of the file states.
pub(crate) fn element_type(stated: &TypeProto) -> Result<DataType> {
    let mut stated = stated;
    loop {
        if let Some(tensor) = &stated.tensor_type {
            return data_type(if tensor.elem_type == 0 { STRING } else { tensor.elem_type });
        }
        let inner = stated.sequence_type.as_ref().or(stated.optional_type.as_ref());
        let inner = inner.and_then(|inner| inner.elem_type.as_deref());
        stated = inner.ok_or_else(|| Error::invalid("the type of the elements is not stated"))?;
    }
}
