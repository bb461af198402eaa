//! The statements of one function: values with their names, operations, regions.

use super::types::{quote, sanitize, tensor};
use super::{Version, Writer};
use hlo::{Computation, ComputationId, InstructionId, OpMetadata};
use shape::{ArrayShape, Shape};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use support::{Error, Result};

/// Operations whose short form states the types of operands and results separately, even if all are
/// equal.
const FULL_FORM: [&str; 4] =
    ["stablehlo.bitcast_convert", "stablehlo.dynamic_update_slice", "stablehlo.reshape", "stablehlo.select"];

/// A tensor or a token with a name.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// The name with its `%`, and the `#k` of one of several results.
    pub(super) name: Rc<str>,
    /// The type as text.
    pub(super) type_text: Rc<str>,
    /// The array; `None` for a token.
    pub(super) array: Option<ArrayShape>,
    /// The source of a parameter.
    source: Rc<OpMetadata>,
}

impl Leaf {
    /// ` loc("...")`, or an empty string.
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
    /// Returns the tensors and tokens in the value, in order.
    pub(super) fn leaves(&self) -> Vec<Leaf> {
        match self {
            Self::Leaf(leaf) => vec![leaf.clone()],
            Self::Tuple(elements) => elements.iter().flat_map(Self::leaves).collect(),
        }
    }

    /// Builds a value of a shape from the next leaves.
    pub(super) fn of_shape(shape: &Shape, leaves: &mut impl Iterator<Item = Leaf>) -> Result<Self> {
        match shape {
            Shape::Tuple(elements) => {
                let elements = elements.iter().map(|element| Self::of_shape(element, leaves));
                Ok(Self::Tuple(elements.collect::<Result<_>>()?))
            }
            _ => leaves.next().map(Self::Leaf).ok_or_else(|| {
                Error::internal("expected as many results of an operation as of its instruction")
            }),
        }
    }
}

/// ` loc(fused["AddV2:", "tower/add"])`: the form from which XLA recovers both names.
fn location(metadata: &OpMetadata) -> String {
    match (metadata.op_type.as_str(), metadata.op_name.as_str()) {
        (_, "") => String::new(),
        ("", name) => format!(" loc({})", quote(name)),
        (op_type, name) => {
            format!(" loc(fused[{}, {}])", quote(&format!("{op_type}:")), quote(name))
        }
    }
}

/// The statements of a function under construction.
pub(super) struct Body<'w, 'm> {
    pub(super) writer: &'w mut Writer<'m>,
    out: String,
    level: usize,
    /// Number of requests for each name.
    names: BTreeMap<String, usize>,
    /// The source of the current statement, and its preferred name.
    metadata: OpMetadata,
    wish: String,
}

impl<'w, 'm> Body<'w, 'm> {
    /// Creates an empty body at a level of indentation.
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

    /// Returns the target version.
    pub(super) fn version(&self) -> Version {
        self.writer.version
    }

    fn name(&mut self, wish: &str) -> String {
        let stem = sanitize(wish);
        let count = self.names.entry(stem.clone()).or_insert(0);
        *count += 1;
        match *count {
            1 => format!("%{stem}"),
            // A stem never contains a period, so this name cannot clash with a stem.
            n => format!("%{stem}.{}", n - 1),
        }
    }

    fn type_of(&self, shape: &Shape) -> Result<String> {
        match shape {
            Shape::Array(array) => tensor(array, self.writer.version),
            Shape::Token => Ok("!stablehlo.token".to_owned()),
            Shape::Tuple(_) => Err(Error::internal("expected an array or a token, found a tuple")),
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

    /// Creates names for the leaves of a computation's parameters.
    pub(super) fn parameters(&mut self, computation: &Computation) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        for &id in computation.parameters() {
            let parameter = &computation[id];
            let mut metadata = parameter.metadata().clone();
            // The name of the source is that of the argument, which MLIR does not keep in names of
            // values.
            if metadata.op_name.is_empty() && parameter.name() != sanitize(parameter.name()) {
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

    /// Writes a computation's instructions with these values as parameters; returns the value of
    /// its root.
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
                value.ok_or_else(|| Error::internal("expected an operand before its user"))
            };
            let operands = instruction.operands().iter().map(operand).collect::<Result<Vec<_>>>()?;
            self.begin(instruction);
            let value = self.instruction(instruction, &operands).map_err(|error| {
                // A nested error already names its instruction.
                if error.message().starts_with("instruction '") {
                    error
                } else {
                    error.context(format!("instruction '{}'", instruction.name()))
                }
            })?;
            values.insert(id, value);
        }
        values
            .remove(&computation.root())
            .ok_or_else(|| Error::internal("expected the root among a computation's instructions"))
    }

    fn begin(&mut self, instruction: &hlo::Instruction) {
        instruction.name().clone_into(&mut self.wish);
        self.metadata = instruction.metadata().clone();
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.level));
    }

    /// Writes `%name = ` for results of these shapes; returns the results.
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

    /// Writes an operation in its generic form: attributes as properties, regions as texts from
    /// [`Self::region`].
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
            && !FULL_FORM.contains(&name)
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

    /// Writes an operation with one result.
    pub(super) fn one(
        &mut self,
        name: &str,
        operands: &[Leaf],
        attributes: &[(&str, String)],
        shape: impl Into<Shape>,
    ) -> Result<Leaf> {
        let results = self.operation(name, operands, attributes, &[], &[shape.into()])?;
        results.into_iter().next().ok_or_else(|| Error::internal("expected a result of the operation"))
    }

    /// Writes an operation whose assembly is `head(operands) tail : types`, such as a call.
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

    /// Writes a constant.
    pub(super) fn constant(&mut self, literal: &shape::Literal) -> Result<Leaf> {
        let shape = Shape::Array(ArrayShape { layout: None, ..literal.array_shape().clone() });
        let results = self.results(std::slice::from_ref(&shape))?;
        let dense = super::constant::dense(literal);
        let _ = write!(self.out, "stablehlo.constant {dense} : {}", results[0].type_text);
        self.end()?;
        results.into_iter().next().ok_or_else(|| Error::internal("expected a result of the constant"))
    }

    /// Returns the text of a region for a computation; `values` replace its parameters, if given.
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

    /// Ends the statements with a return of `results`, and returns their text.
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
