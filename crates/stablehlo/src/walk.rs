//! Walks over functions and blocks. The conversion of a single operation is a parameter.

mod context;
pub(crate) mod emit;
pub(crate) mod matrices;

pub(crate) use context::{Context, Scope};

use crate::checks::Check;
use crate::types::shape_of;
use bounded::Builder;
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use mlir::{Attribute, Block, Elements, Operation, ValueId};
use shape::Shape;
use std::collections::{BTreeMap, HashMap};
use support::{Error, Result};

/// Adds the instructions of an operation and returns its results.
pub(crate) type Convert = for<'c, 's, 'x> fn(&'x mut Context<'c, 's>) -> Result<Vec<InstructionId>>;

/// Maximum nesting depth of function calls and regions.
const MAX_DEPTH: usize = 200;

pub(crate) fn symbol(operation: &Operation) -> &str {
    operation.attribute("sym_name").and_then(Attribute::text).unwrap_or("")
}

/// Converts `result['loss'][0]` to `loss_0`; keeps only characters that are valid in a C++ name.
pub(crate) fn path_name(path: &str) -> String {
    let path = path.strip_prefix("result").unwrap_or(path);
    let words = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_");
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("result{name}") } else { name }
}

pub(crate) fn body_of(function: &Operation) -> Result<&Block> {
    function.regions.first().and_then(|region| region.blocks.first()).ok_or_else(|| {
        Error::invalid(format!("{}: function '{}' has no body", function.line, symbol(function)))
    })
}

/// A module under construction.
pub(crate) struct Importer<'s> {
    pub(crate) source: &'s mlir::Module,
    functions: BTreeMap<&'s str, &'s Operation>,
    /// The constants by value: regions copy them.
    pub(crate) constants: HashMap<ValueId, &'s Elements>,
    /// The finished computations. In a program with open dimensions, also the open ones.
    pub(crate) builder: Builder,
    /// The computations of functions; `None` while one is under construction.
    computations: BTreeMap<&'s str, Option<ComputationId>>,
    pub(crate) checks: Vec<Check>,
    depth: usize,
    convert: Convert,
}

impl<'s> Importer<'s> {
    /// `convert` adds the instructions of an operation.
    pub(crate) fn new(
        source: &'s mlir::Module,
        functions: &[&'s Operation],
        name: &str,
        convert: Convert,
    ) -> Self {
        let mut constants = HashMap::new();
        source.operations.iter().for_each(|operation| collect_constants(operation, &mut constants));
        Self {
            source,
            functions: functions.iter().map(|function| (symbol(function), *function)).collect(),
            constants,
            builder: Builder::new(Module::new(name)),
            computations: BTreeMap::new(),
            checks: Vec::new(),
            depth: 0,
            convert,
        }
    }

    /// Returns the entry computation and the shapes of its results.
    pub(crate) fn entry(&mut self, name: &str, body: &'s Block) -> Result<(Computation, Vec<Shape>)> {
        let mut scope = Scope::new(name, true);
        for &argument in &body.arguments {
            let value = &self.source[argument];
            let parameter = scope.own().parameter(&path_name(&value.name), shape_of(&value.value_type)?);
            scope.define(argument, parameter);
        }
        let mut results = self.block(&mut scope, body)?;
        let shapes = results.iter().map(|&id| scope.own().shape(id).clone()).collect();
        results.append(&mut scope.compared);
        let root = scope.own().op(self.builder.module(), Op::Tuple {}, &results)?;
        Ok((scope.finish(root), shapes))
    }

    /// Returns the computation of a called function.
    pub(crate) fn function(&mut self, name: &str) -> Result<ComputationId> {
        let Some((&name, &function)) = self.functions.get_key_value(name) else {
            return Err(Error::invalid(format!("unknown function '{name}'")));
        };
        match self.computations.get(name) {
            Some(Some(id)) => return Ok(*id),
            Some(None) => return Err(Error::unsupported(format!("function '{name}' calls itself"))),
            None => {}
        }
        self.computations.insert(name, None);
        let body = body_of(function)?;
        let mut scope = Scope::new(name, false);
        for &argument in &body.arguments {
            let value = &self.source[argument];
            let parameter = scope.own().parameter(&path_name(&value.name), shape_of(&value.value_type)?);
            scope.define(argument, parameter);
        }
        let results = self.block(&mut scope, body)?;
        let root = self.root(&mut scope, &results)?;
        let id = self.builder.add_computation(scope.finish(root));
        self.computations.insert(name, Some(id));
        Ok(id)
    }

    /// Returns a function.
    pub(crate) fn function_named(&self, name: &str) -> Result<&'s Operation> {
        let function = self.functions.get(name).copied();
        function.ok_or_else(|| Error::invalid(format!("unknown function '{name}'")))
    }

    /// Returns the root of a computation: its only result, or a tuple.
    pub(crate) fn root(&mut self, scope: &mut Scope, results: &[InstructionId]) -> Result<InstructionId> {
        match results {
            [only] => Ok(*only),
            _ => scope.own().op(self.builder.module(), Op::Tuple {}, results),
        }
    }

    /// Adds a block's operations to a scope; returns the operands of the last one.
    pub(crate) fn block(&mut self, scope: &mut Scope, block: &'s Block) -> Result<Vec<InstructionId>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "functions and regions nest deeper than {MAX_DEPTH} levels"
            )));
        }
        let mut results_of_block = Vec::new();
        for operation in &block.operations {
            let mut context = Context { importer: self, scope, operation, dequantize: None };
            if matches!(operation.name.as_str(), "func.return" | "stablehlo.return") {
                results_of_block = context.operands()?;
                break;
            }
            let results =
                (context.importer.convert)(&mut context).map_err(|error| with_location(error, operation))?;
            if results.len() != operation.results.len() {
                let message = format!("expected {} results, got {}", operation.results.len(), results.len());
                return Err(with_location(Error::invalid(message), operation));
            }
            for (&value, result) in operation.results.iter().zip(results) {
                scope.define(value, result);
            }
        }
        self.depth -= 1;
        Ok(results_of_block)
    }
}

/// Adds the operation to an error, unless the error already names a nested one.
fn with_location(error: Error, operation: &Operation) -> Error {
    let has_location = error.message().split(": ").next().is_some_and(|line| line.parse::<usize>().is_ok());
    if has_location {
        return error;
    }
    error.context(match (operation.line, operation.location.as_str()) {
        (0, "") => operation.name.clone(),
        (0, location) => format!("{} ({location})", operation.name),
        (line, _) => format!("{line}: {}", operation.name),
    })
}

fn collect_constants<'s>(operation: &'s Operation, constants: &mut HashMap<ValueId, &'s Elements>) {
    if let (Some(Attribute::Elements(elements)), [result]) =
        (operation.attribute("value"), &operation.results[..])
    {
        constants.insert(*result, elements);
    }
    let blocks = operation.regions.iter().flat_map(|region| &region.blocks);
    blocks.flat_map(|block| &block.operations).for_each(|inner| collect_constants(inner, constants));
}
