//! A module: its functions, which of them is the program, what its arguments and results are called.

use crate::block::{Context, Scope};
use crate::checks::Check;
use crate::ops;
use crate::types::shape_of;
use hlo::{Computation, ComputationId, InstructionId, Interface, Module, Op};
use mlir::{Attribute, Block, Elements, Operation, Type, ValueId};
use shape::Shape;
use std::collections::{BTreeMap, HashMap};
use support::{Error, Result};

/// How deep functions may call each other and regions nest.
const MAX_DEPTH: usize = 200;

/// A program as HLO.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The module; its entry's root is a tuple of the results, those that the checks compare last.
    pub module: Module,
    /// Arguments and results have the names that the exporter gave them, or else `arg0`, `result0` and so on.
    pub interface: Interface,
    /// Statements of the program about its own values.
    pub checks: Vec<Check>,
}

/// Makes HLO of a module's function `main`, or of the only one that is public.
///
/// An error names the line and the operation.
pub fn import(source: &mlir::Module) -> Result<Imported> {
    let mut functions = Vec::new();
    let mut name = "";
    for operation in top_level(source, &mut name)? {
        if operation.name == "func.func" {
            functions.push(operation);
        }
    }
    let entry = entry_of(&functions)?;
    import_function(source, &functions, entry, name)
}

/// Makes HLO of every function that takes no arguments, each a program of its own: what a file of tests holds.
pub fn import_each(source: &mlir::Module) -> Result<Vec<(String, Result<Imported>)>> {
    let mut name = "";
    let functions: Vec<&Operation> =
        top_level(source, &mut name)?.into_iter().filter(|operation| operation.name == "func.func").collect();
    let programs =
        functions.iter().filter(|function| argument_types(function).is_some_and(<[Type]>::is_empty));
    Ok(programs
        .map(|function| (symbol(function).to_owned(), import_function(source, &functions, function, name)))
        .collect())
}

/// The operations of the outermost module, whose name is stored.
fn top_level<'s>(source: &'s mlir::Module, name: &mut &'s str) -> Result<Vec<&'s Operation>> {
    let mut operations: Vec<&Operation> = source.operations.iter().collect();
    while let [only] = operations[..] {
        if only.name != "builtin.module" {
            break;
        }
        *name = symbol(only);
        operations = only
            .regions
            .iter()
            .flat_map(|region| &region.blocks)
            .flat_map(|block| &block.operations)
            .collect();
    }
    Ok(operations)
}

fn symbol(operation: &Operation) -> &str {
    operation.attribute("sym_name").and_then(Attribute::text).unwrap_or("")
}

fn entry_of<'s>(functions: &[&'s Operation]) -> Result<&'s Operation> {
    if let Some(main) = functions.iter().find(|function| symbol(function) == "main") {
        return Ok(main);
    }
    let is_private = |function: &Operation| {
        function.attribute("sym_visibility").and_then(Attribute::text) == Some("private")
    };
    let public: Vec<&&Operation> = functions.iter().filter(|function| !is_private(function)).collect();
    match public[..] {
        [only] => Ok(only),
        [] => Err(Error::invalid("the module has no public function")),
        _ => {
            let names: Vec<&str> = public.iter().map(|function| symbol(function)).collect();
            Err(Error::invalid(format!(
                "the module has no function 'main' and several public ones ({}): rename the one to compile",
                names.join(", ")
            )))
        }
    }
}

fn argument_types(function: &Operation) -> Option<&[Type]> {
    match function.attribute("function_type") {
        Some(Attribute::Type(Type::Function { inputs, .. })) => Some(inputs),
        _ => None,
    }
}

fn import_function(
    source: &mlir::Module,
    functions: &[&Operation],
    entry: &Operation,
    name: &str,
) -> Result<Imported> {
    let mut importer = Importer::new(source, functions, if name.is_empty() { symbol(entry) } else { name });
    let body = body_of(entry)?;
    let (entry_computation, results) = importer.entry(symbol(entry), body)?;
    let id = importer.module.add_computation(entry_computation);
    importer.module.set_entry(id);
    importer.module.remove_unreachable_computations();
    let arguments =
        body.arguments.iter().map(|&id| shape_of(&source[id].value_type)).collect::<Result<Vec<_>>>()?;
    let attributes = |of: &str| match entry.attribute(of) {
        Some(Attribute::Array(list)) => list.clone(),
        _ => Vec::new(),
    };
    let arguments = names(arguments, &attributes("arg_attrs"), "jax.arg_info", |k| {
        match source[body.arguments[k]].name.as_str() {
            name if path_name(name).is_empty() => format!("arg{k}"),
            name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("arg{name}"),
            name => name.to_owned(),
        }
    })?;
    let results = names(results, &attributes("res_attrs"), "jax.result_info", |k| format!("result{k}"))?;
    let interface = Interface::named(&importer.module, &arguments, &results)?;
    Ok(Imported { module: importer.module, interface, checks: importer.checks })
}

/// The names of arrays: those that JAX stored where it did, without the word `result` and brackets that it puts around.
fn names(
    shapes: Vec<Shape>,
    attributes: &[Attribute],
    key: &str,
    default: impl Fn(usize) -> String,
) -> Result<Vec<String>> {
    let mut taken = std::collections::BTreeSet::new();
    let mut list = Vec::new();
    for (k, shape) in shapes.into_iter().enumerate() {
        let Shape::Array(_) = shape else {
            return Err(Error::unsupported(format!(
                "argument or result {k} of the program is {shape}, no array"
            )));
        };
        let stored = attributes.get(k).and_then(|attributes| attributes.dictionary()?.get(key)?.text());
        let stored = stored.map(path_name).filter(|name| !name.is_empty());
        let mut name = stored.unwrap_or_else(|| path_name(&default(k)));
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        list.push(name);
    }
    Ok(list)
}

/// `result['loss'][0]` as `loss_0`; only what may stand in a C++ name is kept.
fn path_name(path: &str) -> String {
    let path = path.strip_prefix("result").unwrap_or(path);
    let words = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_");
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("result{name}") } else { name }
}

fn body_of(function: &Operation) -> Result<&Block> {
    function.regions.first().and_then(|region| region.blocks.first()).ok_or_else(|| {
        Error::invalid(format!("{}: function '{}' has no body", function.line, symbol(function)))
    })
}

/// A module in the making.
pub(crate) struct Importer<'s> {
    pub(crate) source: &'s mlir::Module,
    functions: BTreeMap<&'s str, &'s Operation>,
    /// The constants by value: regions take copies of them.
    pub(crate) constants: HashMap<ValueId, &'s Elements>,
    pub(crate) module: Module,
    /// The computations of functions; `None` while one is being made.
    computations: BTreeMap<&'s str, Option<ComputationId>>,
    pub(crate) checks: Vec<Check>,
    depth: usize,
}

impl<'s> Importer<'s> {
    fn new(source: &'s mlir::Module, functions: &[&'s Operation], name: &str) -> Self {
        let mut constants = HashMap::new();
        source.operations.iter().for_each(|operation| collect_constants(operation, &mut constants));
        Self {
            source,
            functions: functions.iter().map(|function| (symbol(function), *function)).collect(),
            constants,
            module: Module::new(name),
            computations: BTreeMap::new(),
            checks: Vec::new(),
            depth: 0,
        }
    }

    /// The entry computation and the shapes of its results.
    fn entry(&mut self, name: &str, body: &'s Block) -> Result<(Computation, Vec<Shape>)> {
        let mut scope = Scope::new(name, true);
        for &argument in &body.arguments {
            let value = &self.source[argument];
            let parameter = scope.builder.parameter(&path_name(&value.name), shape_of(&value.value_type)?);
            scope.define(argument, parameter);
        }
        let mut results = self.block(&mut scope, body)?;
        let shapes = results.iter().map(|&id| scope.builder.shape(id).clone()).collect();
        results.append(&mut scope.compared);
        let root = scope.builder.op(&self.module, Op::Tuple {}, &results)?;
        Ok((scope.builder.finish(root), shapes))
    }

    /// The computation of a function that is called.
    pub(crate) fn function(&mut self, name: &str) -> Result<ComputationId> {
        let Some((&name, &function)) = self.functions.get_key_value(name) else {
            return Err(Error::invalid(format!("there is no function '{name}'")));
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
            let parameter = scope.builder.parameter(&path_name(&value.name), shape_of(&value.value_type)?);
            scope.define(argument, parameter);
        }
        let results = self.block(&mut scope, body)?;
        let root = self.root(&mut scope, &results)?;
        let id = self.module.add_computation(scope.builder.finish(root));
        self.computations.insert(name, Some(id));
        Ok(id)
    }

    /// What a computation returns: the only result, or a tuple.
    pub(crate) fn root(&mut self, scope: &mut Scope, results: &[InstructionId]) -> Result<InstructionId> {
        match results {
            [only] => Ok(*only),
            _ => scope.builder.op(&self.module, Op::Tuple {}, results),
        }
    }

    /// Adds a block's operations to a scope; gives what the last one returns.
    pub(crate) fn block(&mut self, scope: &mut Scope, block: &'s Block) -> Result<Vec<InstructionId>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::unsupported(format!("functions and regions nest deeper than {MAX_DEPTH}")));
        }
        let mut returned = Vec::new();
        for operation in &block.operations {
            let mut context = Context { importer: self, scope, operation, dequantizes: false };
            if matches!(operation.name.as_str(), "func.return" | "stablehlo.return") {
                returned = context.operands()?;
                break;
            }
            let results = ops::convert(&mut context).map_err(|error| located(error, operation))?;
            if results.len() != operation.results.len() {
                let message = format!("made {} results, not {}", results.len(), operation.results.len());
                return Err(located(Error::invalid(message), operation));
            }
            for (&value, result) in operation.results.iter().zip(results) {
                scope.define(value, result);
            }
        }
        self.depth -= 1;
        Ok(returned)
    }
}

/// The error with the operation that it is about, unless one within it is named already.
fn located(error: Error, operation: &Operation) -> Error {
    let named = error.message().split(": ").next().is_some_and(|line| line.parse::<usize>().is_ok());
    if named {
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
