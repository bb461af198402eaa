//! Imports a module as a program: selects its entry function and names the arguments and results.

use crate::checks::Check;
use crate::names::{argument_names, attributes, result_names};
use crate::ops;
use crate::sized::{self, OpenDimensions, SizeRequest, has_open_sizes, open_dimensions};
use crate::walk::{Importer, body_of, symbol};
use crate::writer::{FRONTEND, FRONTEND_IN_MLIR};
use hlo::{Interface, Module};
use mlir::{Attribute, Operation, Type};
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
    import_sized(source, function, &SizeRequest::default())
}

/// Same as [`import_function_named`], with sizes or ranges for open dimensions of arguments.
pub fn import_sized(
    source: &mlir::Module,
    function: Option<&str>,
    request: &SizeRequest,
) -> Result<Imported> {
    let (functions, name) = functions(source)?;
    let entry = entry_of(&functions, function)?;
    import_function(source, &functions, entry, name, request)
}

/// Returns the open dimensions of a function's arguments; `None` if there are none.
pub fn dimensions(
    source: &mlir::Module,
    function: Option<&str>,
    request: &SizeRequest,
) -> Result<Option<OpenDimensions>> {
    let (functions, _) = functions(source)?;
    let entry = entry_of(&functions, function)?;
    if !has_open_sizes(source, entry) {
        return Ok(None);
    }
    open_dimensions(entry, &argument_names(source, entry)?, request).map(Some)
}

/// Returns the functions of a module and its name.
fn functions(source: &mlir::Module) -> Result<(Vec<&Operation>, &str)> {
    let mut name = "";
    let operations = top_level(source, &mut name)?;
    Ok((operations.into_iter().filter(|operation| operation.name == "func.func").collect(), name))
}

/// Converts every function without arguments to a separate HLO program, as for a file of tests.
pub fn import_each(source: &mlir::Module) -> Result<Vec<(String, Result<Imported>)>> {
    let (functions, name) = functions(source)?;
    let programs =
        functions.iter().filter(|function| argument_types(function).is_some_and(<[Type]>::is_empty));
    Ok(programs
        .map(|function| {
            (
                symbol(function).to_owned(),
                import_function(source, &functions, function, name, &SizeRequest::default()),
            )
        })
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
    request: &SizeRequest,
) -> Result<Imported> {
    let name = if name.is_empty() { symbol(entry) } else { name };
    if has_open_sizes(source, entry) {
        let open = open_dimensions(entry, &argument_names(source, entry)?, request)?;
        let (module, interface, checks) = sized::import_function(source, functions, entry, name, &open)?;
        // The memory of an argument whose size differs from run to run is no variable.
        let is_fixed = |&(argument, _): &(usize, usize)| open.arguments[argument].is_empty();
        let aliases = aliases(entry).into_iter().filter(is_fixed).collect();
        return Ok(Imported { module, interface, checks, aliases });
    }
    if let Some(key) = request.given.keys().find(|key| !request.shared.contains(*key)) {
        return Err(Error::invalid(format!("--dim {key}: all sizes of '{}' are fixed", symbol(entry))));
    }
    let mut importer = Importer::new(source, functions, name, ops::convert);
    let body = body_of(entry)?;
    let (entry_computation, results) = importer.entry(symbol(entry), body)?;
    let mut module = importer.builder.finish_with(entry_computation);
    module.set_attributes(frontend_attributes(source));
    let arguments = argument_names(source, entry)?;
    let results = result_names(entry, results)?;
    let interface = Interface::with_names(&module, &arguments, &results)?;
    Ok(Imported { module, interface, checks: importer.checks, aliases: aliases(entry) })
}

/// Returns the numbers of the arguments that a result overwrites, and of these results.
fn aliases(entry: &Operation) -> Vec<(usize, usize)> {
    let alias = |(argument, attributes): (usize, &Attribute)| {
        let result = attributes.dictionary()?.get("tf.aliasing_output")?.integer()?;
        Some((argument, usize::try_from(result).ok()?))
    };
    attributes(entry, "arg_attrs").iter().enumerate().filter_map(alias).collect()
}

/// Returns the attributes that XLA keeps without interpreting them.
fn frontend_attributes(source: &mlir::Module) -> Vec<(String, String)> {
    let [only] = &source.operations[..] else { return Vec::new() };
    let fields = only.attribute(FRONTEND_IN_MLIR).and_then(Attribute::dictionary);
    let text = |(name, value): (&str, &Attribute)| {
        if name != "named_dimensions" {
            return None;
        }
        let value = value.text().filter(|value| !value.contains(['"', '\\']))?;
        Some(format!("{name}=\"{value}\""))
    };
    let fields: Vec<String> = fields.into_iter().flat_map(mlir::Attributes::iter).filter_map(text).collect();
    if fields.is_empty() {
        Vec::new()
    } else {
        vec![(FRONTEND.to_owned(), format!("{{{}}}", fields.join(",")))]
    }
}
