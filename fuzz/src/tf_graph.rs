//! Random graphs of TensorFlow's ops, generated from the rules of `import` and the signatures of
//! `tf`.
//!
//! A node follows its op's signature: types that the rule accepts, attributes with all allowed
//! values, and existing or new inputs. For ops whose inputs must match, `templates` lists the
//! shapes; other inputs have the first input's shape. Nodes that the importer rejects as invalid or
//! unsupported are dropped from the graph. Any other failure of the importer is a finding.

mod attributes;
mod inputs;
mod layers;
mod loops;
mod named;
mod sizes;
mod templates;

pub use named::{NamedGraph, named_graph, with_sizes};

use crate::{Draw, Outcome};
use bytes::Bytes;
use compiler::{NoObserver, guarded};
use hlo::{Module, Program};
use import::SupportedOp;
use shape::{Literal, PrimitiveType};
use std::collections::BTreeMap;
use support::{ErrorKind, Result};
use tf::DataType;
use tf::proto::{
    AttrValue, Config, Dim, Feed, Fetch, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, TensorId,
    TensorProto, TensorShapeProto, attr_value::Value,
};

/// Omitted ops, by prefixes of their names.
const LEFT_OUT: &[&str] = &[
    // Handles, which no available input provides.
    "Assign",
    "Apply",
    "Resource",
    "ReadVariable",
    "Var",
    "Variable",
    "IsVariable",
    "Stack",
    "TensorArray",
    "TensorList",
    "EmptyTensorList",
    "Optional",
    "ScatterAdd",
    "ScatterSub",
    "ScatterMul",
    "ScatterDiv",
    "ScatterMin",
    "ScatterMax",
    "ScatterUpdate",
    "ScatterNdAdd",
    "ScatterNdSub",
    "ScatterNdUpdate",
    "StridedSliceAssign",
    "Rng",
    "Stateful",
    "TemporaryVariable",
    // Functions.
    "If",
    "While",
    "Case",
    "StatelessIf",
    "StatelessWhile",
    "StatelessCase",
    "PartitionedCall",
    "XlaIf",
    "XlaWhile",
    "XlaReduce",
    "XlaVariadicReduce",
    "XlaScatter",
    "XlaSelectAndScatter",
    "XlaCustomCall",
    "XlaVariadicSort",
    // Random numbers from a state, which the evaluator initializes but a program continues.
    "RandomUniform",
    "RandomStandardNormal",
    "TruncatedNormal",
    "RandomShuffle",
    "Multinomial",
    "ParameterizedTruncatedNormal",
    "StatelessRandomGetAlg",
    // Results that depend on rounding as a whole: rejection of random numbers, decompositions of
    // possibly singular matrices.
    "StatelessTruncatedNormal",
    "StatelessParameterized",
    "StatelessMultinomial",
    "Cholesky",
    "Qr",
    "Svd",
    "SelfAdjointEig",
    "Lu",
    "MatrixInverse",
    "MatrixSolve",
    "MatrixDeterminant",
    "LogMatrixDeterminant",
    "TridiagonalSolve",
    "XlaSelfAdjointEig",
    "XlaSvd",
    "MatrixTriangularSolve",
    "BatchMatrixTriangularSolve",
    // No arrays.
    "Assert",
    "NoOp",
    "ControlTrigger",
    "Placeholder",
    "Const",
    "FakeParam",
    "XlaSharding",
    "XlaSpmd",
];

/// An available tensor.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    name: String,
    data_type: DataType,
    sizes: Vec<i64>,
}

/// A graph under construction.
pub(crate) struct Writer {
    pub(crate) draw: Draw,
    nodes: Vec<NodeDef>,
    tensors: Vec<Tensor>,
    feeds: Vec<Feed>,
    fetches: Vec<Tensor>,
    functions: Vec<FunctionDef>,
    /// Dimensions whose sizes the caller chooses.
    names: named::Names,
}

/// Lengths of a writer's lists.
struct Mark([usize; 5]);

/// Returns the HLO of a random graph of about `size` ops, or the importer's failure.
pub fn module(seed: u64, size: usize) -> Result<Module, Outcome> {
    let ops = ops();
    let mut writer = Writer::new(Draw::new(seed), named::Names::default());
    let mut module = None;
    for _ in 0..6 * size {
        if writer.fetches.len() >= size {
            break;
        }
        let op = writer.draw.pick(&ops);
        let mark = writer.mark();
        let imported = match writer.node(&op) {
            Some(outputs) => writer.import(op.name, outputs)?,
            None => None,
        };
        match imported {
            Some(new) => module = Some(new.module),
            None => writer.undo(&mark),
        }
    }
    module.ok_or_else(|| Outcome::Refused("none of the drawn ops fit".to_owned()))
}

/// Returns the ops of random nodes.
fn ops() -> Vec<SupportedOp> {
    let left_out = |op: &SupportedOp| {
        LEFT_OUT.iter().any(|prefix| match op.name.strip_prefix(prefix) {
            // A name that continues in lower case is a different word.
            Some(rest) => !rest.starts_with(|c: char| c.is_ascii_lowercase()),
            None => false,
        })
    };
    import::supported_ops().into_iter().filter(|op| !left_out(op)).collect()
}

impl Writer {
    fn new(draw: Draw, names: named::Names) -> Self {
        Self {
            draw,
            nodes: Vec::new(),
            tensors: Vec::new(),
            feeds: Vec::new(),
            fetches: Vec::new(),
            functions: Vec::new(),
            names,
        }
    }

    fn mark(&self) -> Mark {
        let Self { nodes, tensors, feeds, fetches, functions, .. } = self;
        Mark([nodes.len(), tensors.len(), feeds.len(), fetches.len(), functions.len()])
    }

    /// Drops everything that was added since.
    fn undo(&mut self, &Mark([nodes, tensors, feeds, fetches, functions]): &Mark) {
        self.nodes.truncate(nodes);
        self.tensors.truncate(tensors);
        self.feeds.truncate(feeds);
        self.fetches.truncate(fetches);
        self.functions.truncate(functions);
    }

    fn graph(&self) -> GraphDef {
        let library =
            FunctionDefLibrary { function: self.functions.clone(), ..FunctionDefLibrary::default() };
        GraphDef { node: self.nodes.clone(), library: Some(library), ..GraphDef::default() }
    }

    /// Returns the config of all feeds and fetches. Named dimensions have ranges.
    fn config(&self) -> Config {
        Config {
            feed: self.feeds.clone(),
            fetch: self.fetches.iter().map(fetch).collect(),
            dimension: self.names.dimensions(),
            ..Config::default()
        }
    }

    /// Writes a node of an op. Returns its outputs' names and types, or `None` if no inputs were
    /// found.
    fn node(&mut self, op: &SupportedOp) -> Option<Vec<(String, DataType)>> {
        let signature = tf::op_signature(op.name)?;
        let (attr, main) = self.attributes(op, signature)?;
        let input = self.inputs(signature, &attr, main)?;
        let name = format!("n{}", self.nodes.len());
        let mut outputs = Vec::new();
        for arg in &signature.output_arg {
            for data_type in inputs::types(arg, &attr)? {
                outputs.push((format!("{name}:{}", outputs.len()), data_type));
            }
        }
        let node = NodeDef { name, op: op.name.to_owned(), input, attr, ..NodeDef::default() };
        self.nodes.push(node);
        Some(outputs)
    }

    /// Imports the graph with new outputs among the fetches. Returns `None` if the importer rejects
    /// it as unsupported. Named dimensions have the sizes that stand for them.
    fn import(&mut self, name: &str, outputs: Vec<(String, DataType)>) -> Result<Option<Program>, Outcome> {
        let arrays = outputs.into_iter().filter(|(_, t)| t.primitive_type().is_some());
        let new: Vec<Tensor> =
            arrays.map(|(name, data_type)| Tensor { name, data_type, sizes: Vec::new() }).collect();
        if new.is_empty() {
            return Ok(None);
        }
        let first = self.fetches.len();
        self.fetches.extend(new);
        let config = self.names.with_stand_ins(self.config());
        let Ok(program) = import_graph(self.graph(), config, name)? else { return Ok(None) };
        let results = results_of(&program.module);
        if largest(&results) > self.names.most_elements() || results.len() != self.fetches.len() {
            return Ok(None);
        }
        for (tensor, sizes) in self.fetches.iter_mut().zip(results).skip(first) {
            tensor.sizes = sizes;
            self.tensors.push(tensor.clone());
        }
        Ok(Some(program))
    }

    /// Adds a new input of the graph, or a constant.
    pub(crate) fn new_tensor(&mut self, data_type: DataType, sizes: &[i64]) -> Option<String> {
        data_type.primitive_type()?;
        if self.draw.once_in(6) && !self.names.are_in(sizes) {
            let shape = shape::Shape::array(data_type.primitive_type()?, sizes);
            let literal = self.draw.literal(&shape, crate::Numbers::Gentle);
            return Some(self.constant(data_type, &literal));
        }
        let name = format!("n{}", self.nodes.len());
        let node = NodeDef {
            name: name.clone(),
            op: "Placeholder".to_owned(),
            attr: BTreeMap::from([("dtype".to_owned(), AttrValue::from(Value::Type(data_type.number())))]),
            ..NodeDef::default()
        };
        self.nodes.push(node);
        self.feeds.push(Feed {
            id: Some(TensorId { node_name: name.clone(), output_index: 0 }),
            shape: Some(self.names.shape(sizes)),
            r#type: data_type.number(),
            ..Feed::default()
        });
        let tensor = Tensor { name: name.clone(), data_type, sizes: sizes.to_vec() };
        self.tensors.push(tensor);
        Some(name)
    }

    /// Adds a constant of integers.
    pub(crate) fn integers(&mut self, data_type: DataType, sizes: &[i64], values: &[i64]) -> Option<String> {
        let element_type = data_type.primitive_type()?;
        if !element_type.is_integer() {
            return None;
        }
        if sizes.len() < 2 && self.names.are_in(values) {
            return self.integers_of_shapes(data_type, sizes, values);
        }
        let shape = shape::ArrayShape::new(element_type, sizes);
        let scalar = |&value: &i64| {
            if element_type.is_signed_integer() {
                shape::Scalar::Signed(value)
            } else {
                shape::Scalar::Unsigned(value as u64)
            }
        };
        Some(self.constant(data_type, &Literal::from_scalars(shape, values.iter().map(scalar))))
    }

    pub(crate) fn constant(&mut self, data_type: DataType, literal: &Literal) -> String {
        let name = format!("n{}", self.nodes.len());
        let sizes = literal.array_shape().sizes();
        let tensor = TensorProto {
            dtype: data_type.number(),
            tensor_shape: Some(shape_proto(&sizes)),
            tensor_content: content(literal),
            ..TensorProto::default()
        };
        let attr = BTreeMap::from([
            ("dtype".to_owned(), AttrValue::from(Value::Type(data_type.number()))),
            ("value".to_owned(), AttrValue::from(Value::Tensor(Box::new(tensor)))),
        ]);
        let node = NodeDef { name: name.clone(), op: "Const".to_owned(), attr, ..NodeDef::default() };
        self.nodes.push(node);
        self.tensors.push(Tensor { name: name.clone(), data_type, sizes });
        name
    }
}

/// Imports a graph whose last step has this name. The inner error is the importer's refusal.
fn import_graph(
    graph: GraphDef,
    config: Config,
    name: &str,
) -> Result<Result<Program, support::Error>, Outcome> {
    match guarded(|| compiler::import(graph.clone(), config.clone(), &mut NoObserver)) {
        Err(error) if error.kind() == ErrorKind::Internal => {
            let texts = [tf::source::graph_def_to_text(&graph), tf::source::config_to_text(&config)];
            Err(Outcome::Failed(format!("importing: {error}\n{name}\n{}", texts.concat())))
        }
        imported => Ok(imported),
    }
}

/// Returns the sizes of a module's results.
fn results_of(module: &Module) -> Vec<Vec<i64>> {
    let result = module.entry_computation().program_shape().result;
    let sizes = |shape: &shape::Shape| shape.as_array().map(|array| array.sizes()).unwrap_or_default();
    result.as_tuple().unwrap_or_default().iter().map(sizes).collect()
}

/// Returns the number of elements of the largest of some arrays.
fn largest(arrays: &[Vec<i64>]) -> i64 {
    arrays.iter().map(|sizes| sizes.iter().product()).max().unwrap_or(0)
}

/// Returns a tensor's bytes. Types narrower than a byte occupy one byte per element.
fn content(literal: &Literal) -> Bytes {
    debug_assert!(
        literal.array_shape().element_type != PrimitiveType::Pred || literal.bytes().iter().all(|b| *b < 2)
    );
    literal.bytes().clone()
}

fn shape_proto(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}

fn fetch(tensor: &Tensor) -> Fetch {
    let (node, output) = tensor.name.split_once(':').unwrap_or((&tensor.name, "0"));
    let output_index = output.parse().unwrap_or(0);
    Fetch { id: Some(TensorId { node_name: node.to_owned(), output_index }), ..Fetch::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_seed_makes_the_same_graph() {
        for seed in 0..40 {
            let text = |seed| module(seed, 3).map(|module| module.to_text());
            assert_eq!(text(seed).ok(), text(seed).ok());
        }
    }

    #[test]
    fn many_ops_turn_up() {
        let mut ops = BTreeSet::new();
        for seed in 0..300 {
            let Ok(graph) = module(seed, 3) else { continue };
            for (_, computation) in graph.computations() {
                ops.extend(computation.instructions().map(|(_, i)| i.metadata().op_type.clone()));
            }
        }
        assert!(ops.len() > 100, "{}: {ops:?}", ops.len());
    }
}
