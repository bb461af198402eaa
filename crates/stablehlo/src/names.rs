//! Names of a program's arguments and results.

use crate::types::shape_with;
use crate::walk::{body_of, path_name};
use mlir::{Attribute, Operation};
use shape::Shape;
use support::{Error, Result};

/// Returns the attributes of a function's arguments or results.
pub(crate) fn attributes(function: &Operation, key: &str) -> Vec<Attribute> {
    match function.attribute(key) {
        Some(Attribute::Array(list)) => list.clone(),
        _ => Vec::new(),
    }
}

/// Returns the names of a function's arguments.
pub(crate) fn argument_names(source: &mlir::Module, entry: &Operation) -> Result<Vec<String>> {
    let body = body_of(entry)?;
    // Types only matter here as arrays or not.
    let shape = |&id| shape_with(&source[id].value_type, &|_| Some(0));
    let arguments = body.arguments.iter().map(shape).collect::<Result<Vec<_>>>()?;
    names(arguments, &attributes(entry, "arg_attrs"), "jax.arg_info", |k| {
        match source[body.arguments[k]].name.as_str() {
            name if path_name(name).is_empty() => format!("arg{k}"),
            name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("arg{name}"),
            name => name.to_owned(),
        }
    })
}

/// Returns the names of a function's results, which have these shapes.
pub(crate) fn result_names(entry: &Operation, shapes: Vec<Shape>) -> Result<Vec<String>> {
    names(shapes, &attributes(entry, "res_attrs"), "jax.result_info", |k| format!("result{k}"))
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
