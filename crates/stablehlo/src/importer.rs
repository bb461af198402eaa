//! Imports a module as a program: selects its entry function and names the arguments and results.

use crate::checks::Check;
use crate::ops;
use crate::types::shape_of;
use crate::walk::{Importer, body_of, path_name, symbol};
use hlo::{Interface, Module};
use mlir::{Attribute, Operation, Type};
use shape::Shape;
use support::{Error, Result};

/// A program converted to HLO.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The module. Its entry's root is a tuple of the results, followed by the values that the
    /// checks compare.
    pub module: Module,
    /// Arguments and results have the names from the exporter, or else `arg0`, `result0`, and so
    /// on.
    pub interface: Interface,
    /// Assertions of the program about its values.
    pub checks: Vec<Check>,
    /// Arguments whose memory a result may use (`tf.aliasing_output`), each with the number of the
    /// result.
    pub aliases: Vec<(usize, usize)>,
}

/// Converts a module's function `main` to HLO, or its only public function.
///
/// An error states the line and the operation.
pub fn import(source: &mlir::Module) -> Result<Imported> {
    import_function_named(source, None)
}

/// Same as [`import`], for the public function of this name if there is one.
pub fn import_function_named(source: &mlir::Module, function: Option<&str>) -> Result<Imported> {
    let mut functions = Vec::new();
    let mut name = "";
    for operation in top_level(source, &mut name)? {
        if operation.name == "func.func" {
            functions.push(operation);
        }
    }
    let entry = entry_of(&functions, function)?;
    import_function(source, &functions, entry, name)
}

/// Converts every function without arguments to a separate HLO program, as for a file of tests.
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

/// Returns the operations of the outermost module and stores its name.
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

fn entry_of<'s>(functions: &[&'s Operation], name: Option<&str>) -> Result<&'s Operation> {
    if name.is_none()
        && let Some(main) = functions.iter().find(|function| symbol(function) == "main")
    {
        return Ok(main);
    }
    let is_private = |function: &Operation| {
        function.attribute("sym_visibility").and_then(Attribute::text) == Some("private")
    };
    let public: Vec<&&Operation> = functions.iter().filter(|function| !is_private(function)).collect();
    if let Some(name) = name {
        let names: Vec<&str> = public.iter().map(|function| symbol(function)).collect();
        let found = public.iter().find(|function| symbol(function) == name);
        return found.map(|found| **found).ok_or_else(|| {
            Error::invalid(format!(
                "the module has no public function '{name}', but these: {}",
                names.join(", ")
            ))
        });
    }
    match public[..] {
        [only] => Ok(only),
        [] => Err(Error::invalid("the module has no public function")),
        _ => {
            let names: Vec<&str> = public.iter().map(|function| symbol(function)).collect();
            Err(Error::invalid(format!(
                "the module has no function 'main' and several public ones ({}): select one with --signature",
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
    let name = if name.is_empty() { symbol(entry) } else { name };
    let mut importer = Importer::new(source, functions, name, ops::convert);
    let body = body_of(entry)?;
    let (entry_computation, results) = importer.entry(symbol(entry), body)?;
    let id = importer.module.add_computation(entry_computation);
    importer.module.set_entry(id);
    importer.module.remove_unreachable_computations();
    let arguments =
        body.arguments.iter().map(|&id| shape_of(&source[id].value_type)).collect::<Result<Vec<_>>>()?;
    let attributes = |key: &str| match entry.attribute(key) {
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
    let interface = Interface::with_names(&importer.module, &arguments, &results)?;
    let alias = |(argument, attributes): (usize, &Attribute)| {
        let result = attributes.dictionary()?.get("tf.aliasing_output")?.integer()?;
        Some((argument, usize::try_from(result).ok()?))
    };
    let aliases = attributes("arg_attrs").iter().enumerate().filter_map(alias).collect();
    Ok(Imported { module: importer.module, interface, checks: importer.checks, aliases })
}

/// Names arrays. Names from JAX lose the word `result` and the brackets around them.
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
                "argument or result {k} of the program is {shape}, not an array"
            )));
        };
        let exported_name =
            attributes.get(k).and_then(|attributes| attributes.dictionary()?.get(key)?.text());
        let exported_name = exported_name.map(path_name).filter(|name| !name.is_empty());
        let mut name = exported_name.unwrap_or_else(|| path_name(&default(k)));
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        list.push(name);
    }
    Ok(list)
}
