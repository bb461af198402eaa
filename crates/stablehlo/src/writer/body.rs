//! The statements of one function: values, their names, operations, regions.

use super::types::{quoted, sanitized, tensor};
use super::{Version, Writer};
use hlo::{Computation, ComputationId, InstructionId, OpMetadata};
use shape::{ArrayShape, Shape};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use support::{Error, Result};

/// A tensor or a token that has a name.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// With its `%`, and the `#k` of one of several results.
    pub(super) name: Rc<str>,
    /// Its type as text.
    pub(super) type_text: Rc<str>,
    /// The array; `None` for a token.
    pub(super) array: Option<ArrayShape>,
    /// Where a parameter comes from.
    source: Rc<OpMetadata>,
}

impl Leaf {
    /// ` loc("...")`, or nothing.
    pub(super) fn location(&self) -> String {
        location(&self.source)
    }
}

/// The value of an instruction.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Leaf(Leaf),
    Tuple(Vec<Value>),
}

impl Value {
    /// The tensors and tokens in it, in order.
    pub(super) fn leaves(&self) -> Vec<Leaf> {
        match self {
            Self::Leaf(leaf) => vec![leaf.clone()],
            Self::Tuple(elements) => elements.iter().flat_map(Self::leaves).collect(),
        }
    }

    /// A value of a shape whose leaves are the next ones.
    pub(super) fn of_shape(shape: &Shape, leaves: &mut impl Iterator<Item = Leaf>) -> Result<Self> {
        match shape {
            Shape::Tuple(elements) => {
                let elements = elements.iter().map(|element| Self::of_shape(element, leaves));
                Ok(Self::Tuple(elements.collect::<Result<_>>()?))
            }
            _ => leaves
                .next()
                .map(Self::Leaf)
                .ok_or_else(|| Error::internal("an operation has fewer results than its instruction")),
        }
    }
}

/// ` loc(fused["AddV2:", "tower/add"])`: the form in which XLA finds both names again.
fn location(metadata: &OpMetadata) -> String {
    match (metadata.op_type.as_str(), metadata.op_name.as_str()) {
        (_, "") => String::new(),
        ("", name) => format!(" loc({})", quoted(name)),
        (op_type, name) => {
            format!(" loc(fused[{}, {}])", quoted(&format!("{op_type}:")), quoted(name))
        }
    }
}

/// The statements of a function, while they are written.
pub(super) struct Body<'w, 'm> {
    pub(super) writer: &'w mut Writer<'m>,
    out: String,
    level: usize,
    /// How often each name was wished for.
    names: BTreeMap<String, usize>,
    /// Where what is written now comes from, and what it should be called.
    metadata: OpMetadata,
    wish: String,
}

impl<'w, 'm> Body<'w, 'm> {
    /// An empty one at a level of indentation.
    pub(super) fn new(writer: &'w mut Writer<'m>, level: usize) -> Self {
        Self {
            writer,
            out: String::new(),
            level,
            names: BTreeMap::new(),
            metadata: OpMetadata::default(),
            wish: String::new(),
        }
    }

    /// The version that is written.
    pub(super) fn version(&self) -> Version {
        self.writer.version
    }

    fn name(&mut self, wish: &str) -> String {
        let stem = sanitized(wish);
        let count = self.names.entry(stem.clone()).or_insert(0);
        *count += 1;
        match *count {
            1 => format!("%{stem}"),
            // No stem has a point, so this is nobody's stem.
            n => format!("%{stem}.{}", n - 1),
        }
    }

    fn type_of(&self, shape: &Shape) -> Result<String> {
        match shape {
            Shape::Array(array) => tensor(array, self.writer.version),
            Shape::Token => Ok("!stablehlo.token".to_owned()),
            Shape::Tuple(_) => Err(Error::internal("a tuple that was not taken apart")),
        }
    }

    fn leaf(&self, name: String, shape: &Shape, source: OpMetadata) -> Result<Leaf> {
        Ok(Leaf {
            name: name.into(),
            type_text: self.type_of(shape)?.into(),
            array: shape.as_array().cloned(),
            source: source.into(),
        })
    }

    /// New names for the leaves of a computation's parameters.
    pub(super) fn parameters(&mut self, computation: &Computation) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        for &id in computation.parameters() {
            let parameter = &computation[id];
            let mut metadata = parameter.metadata().clone();
            // The name of the source is the argument's, whatever MLIR makes of the names of values.
            if metadata.op_name.is_empty() && parameter.name() != sanitized(parameter.name()) {
                metadata.op_name = parameter.name().to_owned();
            }
            values.push(self.fresh(parameter.name(), parameter.shape(), &metadata)?);
        }
        Ok(values)
    }

    fn fresh(&mut self, wish: &str, shape: &Shape, metadata: &OpMetadata) -> Result<Value> {
        match shape {
            Shape::Tuple(elements) => {
                let elements = elements.iter().enumerate();
                let elements =
                    elements.map(|(k, element)| self.fresh(&format!("{wish}_{k}"), element, metadata));
                Ok(Value::Tuple(elements.collect::<Result<_>>()?))
            }
            _ => {
                let name = self.name(wish);
                Ok(Value::Leaf(self.leaf(name, shape, metadata.clone())?))
            }
        }
    }

    /// Writes a computation's instructions with these values for its parameters; gives the value of its root.
    pub(super) fn computation(&mut self, id: ComputationId, arguments: Vec<Value>) -> Result<Value> {
        let module = self.writer.module;
        let computation = &module[id];
        let mut values: BTreeMap<InstructionId, Value> =
            computation.parameters().iter().copied().zip(arguments).collect();
        for id in computation.post_order() {
            if values.contains_key(&id) {
                continue;
            }
            let instruction = &computation[id];
            let operand = |operand: &InstructionId| {
                let value = values.get(operand).cloned();
                value.ok_or_else(|| Error::internal("an operand behind its user"))
            };
            let operands = instruction.operands().iter().map(operand).collect::<Result<Vec<_>>>()?;
            self.begin(instruction);
            let value = self.instruction(instruction, &operands).map_err(|error| {
                // What is nested names its own instruction.
                if error.message().starts_with("instruction '") {
                    error
                } else {
                    error.context(format!("instruction '{}'", instruction.name()))
                }
            })?;
            values.insert(id, value);
        }
        values.remove(&computation.root()).ok_or_else(|| Error::internal("a computation without its root"))
    }

    fn begin(&mut self, instruction: &hlo::Instruction) {
        instruction.name().clone_into(&mut self.wish);
        self.metadata = instruction.metadata().clone();
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.level));
    }

    /// Writes `%name = ` for results of these shapes; gives the results.
    fn results(&mut self, shapes: &[Shape]) -> Result<Vec<Leaf>> {
        let wish = self.wish.clone();
        self.indent();
        if shapes.is_empty() {
            return Ok(Vec::new());
        }
        let name = self.name(&wish);
        let count = if shapes.len() > 1 { format!(":{}", shapes.len()) } else { String::new() };
        let _ = write!(self.out, "{name}{count} = ");
        let leaf = |(k, shape): (usize, &Shape)| {
            let name = if shapes.len() > 1 { format!("{name}#{k}") } else { name.clone() };
            self.leaf(name, shape, OpMetadata::default())
        };
        shapes.iter().enumerate().map(leaf).collect()
    }

    fn end(&mut self) -> Result<()> {
        let location = location(&self.metadata);
        self.out.push_str(&location);
        self.out.push('\n');
        self.writer.count()
    }

    /// An operation in its generic form: attributes are its properties, regions are texts of [`Self::region`].
    pub(super) fn operation(
        &mut self,
        name: &str,
        operands: &[Leaf],
        attributes: &[(&str, String)],
        regions: &[String],
        shapes: &[Shape],
    ) -> Result<Vec<Leaf>> {
        let results = self.results(shapes)?;
        let operand_types = type_list(operands);
        let result_types = type_list(&results);
        let same = results.len() == 1
            && regions.is_empty()
            && attributes.is_empty()
            && !operands.is_empty()
            && operands.iter().chain(&results).all(|leaf| leaf.type_text == results[0].type_text);
        let names = name_list(operands);
        if let ([result], true) = (&results[..], same) {
            let _ = write!(self.out, "{name} {names} : {}", result.type_text);
        } else {
            let _ = write!(self.out, "\"{name}\"({names})");
            if !attributes.is_empty() {
                let list: Vec<String> =
                    attributes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                let _ = write!(self.out, " <{{{}}}>", list.join(", "));
            }
            if !regions.is_empty() {
                let _ = write!(self.out, " ({})", regions.join(", "));
            }
            let arrow = if results.len() == 1 { result_types } else { format!("({result_types})") };
            let _ = write!(self.out, " : ({operand_types}) -> {arrow}");
        }
        self.end()?;
        Ok(results)
    }

    /// An operation with one result.
    pub(super) fn one(
        &mut self,
        name: &str,
        operands: &[Leaf],
        attributes: &[(&str, String)],
        shape: impl Into<Shape>,
    ) -> Result<Leaf> {
        let results = self.operation(name, operands, attributes, &[], &[shape.into()])?;
        results.into_iter().next().ok_or_else(|| Error::internal("an operation without a result"))
    }

    /// An operation whose assembly is `head(operands) tail : types`, such as a call.
    pub(super) fn call(
        &mut self,
        head: &str,
        operands: &[Leaf],
        tail: &str,
        shapes: &[Shape],
    ) -> Result<Vec<Leaf>> {
        let results = self.results(shapes)?;
        let (names, operand_types, result_types) =
            (name_list(operands), type_list(operands), type_list(&results));
        let arrow = if results.len() == 1 { result_types } else { format!("({result_types})") };
        let _ = write!(self.out, "{head}({names}){tail} : ({operand_types}) -> {arrow}");
        self.end()?;
        Ok(results)
    }

    /// A constant.
    pub(super) fn constant(&mut self, literal: &shape::Literal) -> Result<Leaf> {
        let shape = Shape::Array(ArrayShape { layout: None, ..literal.array_shape().clone() });
        let results = self.results(std::slice::from_ref(&shape))?;
        let dense = super::constant::dense(literal);
        let _ = write!(self.out, "stablehlo.constant {dense} : {}", results[0].type_text);
        self.end()?;
        results.into_iter().next().ok_or_else(|| Error::internal("a constant without a result"))
    }

    /// The text of a region whose block has a computation's parameters, or of which these are the values.
    pub(super) fn region(&mut self, id: ComputationId, values: Option<Vec<Value>>) -> Result<String> {
        let outer = std::mem::take(&mut self.out);
        let (wish, metadata) = (self.wish.clone(), self.metadata.clone());
        self.level += 1;
        let module = self.writer.module;
        let mut text = String::from("{\n");
        let values = match values {
            Some(values) => values,
            None => {
                let values = self.parameters(&module[id])?;
                let leaves = values.iter().flat_map(Value::leaves);
                let arguments: Vec<String> =
                    leaves.map(|leaf| format!("{}: {}", leaf.name, leaf.type_text)).collect();
                self.level -= 1;
                self.indent();
                self.level += 1;
                let _ = writeln!(self.out, "^bb0({}):", arguments.join(", "));
                values
            }
        };
        let root = self.computation(id, values)?.leaves();
        self.terminate("stablehlo.return", &root);
        self.level -= 1;
        self.indent();
        text.push_str(&std::mem::replace(&mut self.out, outer));
        text.push('}');
        (self.wish, self.metadata) = (wish, metadata);
        Ok(text)
    }

    fn terminate(&mut self, word: &str, results: &[Leaf]) {
        self.indent();
        let _ = match results {
            [] => writeln!(self.out, "{word}"),
            _ => writeln!(self.out, "{word} {} : {}", name_list(results), type_list(results)),
        };
    }

    /// The statements, ended by a return of these.
    pub(super) fn finish(mut self, word: &str, results: &[Leaf]) -> String {
        self.terminate(word, results);
        self.out
    }
}

fn name_list(leaves: &[Leaf]) -> String {
    leaves.iter().map(|leaf| &*leaf.name).collect::<Vec<_>>().join(", ")
}

fn type_list(leaves: &[Leaf]) -> String {
    leaves.iter().map(|leaf| &*leaf.type_text).collect::<Vec<_>>().join(", ")
}
