//! Nodes that pass handles to functions: calls, conditionals, and loops.

use super::{Bound, Copies, type_value};
use crate::proto::{NodeDef, TensorShapeProto, attr_value::Value};
use support::{Error, Result};

/// Way in which a node passes its inputs to functions.
struct Kind {
    /// Attributes that name functions.
    functions: &'static [&'static str],
    /// Number of leading inputs that are not passed to a function.
    first: usize,
    /// Attributes with the types of the inputs passed to functions, and of the results.
    types: [&'static str; 2],
}

fn kind(op: &str) -> Option<Kind> {
    let (functions, first, types): (&[&str], _, _) = match op {
        "PartitionedCall" | "StatefulPartitionedCall" => (&["f"], 0, ["Tin", "Tout"]),
        "If" | "StatelessIf" => (&["then_branch", "else_branch"], 1, ["Tin", "Tout"]),
        "Case" | "StatelessCase" => (&["branches"], 1, ["Tin", "Tout"]),
        "While" | "StatelessWhile" => (&["cond", "body"], 0, ["T", "T"]),
        _ => return None,
    };
    Some(Kind { functions, first, types })
}

/// True if a node calls functions with its inputs.
pub(super) fn is_call(node: &NodeDef, copies: &Copies<'_>) -> bool {
    kind(&node.op).is_some() || copies.is_function(&node.op)
}

/// Bindings of the results of a call.
pub(super) fn results(
    node: &NodeDef,
    bound: &[Option<Bound>],
    copies: &mut Copies<'_>,
) -> Result<Vec<Option<Bound>>> {
    let mut copy = node.clone();
    replace(&mut copy, bound, copies)
}

/// Redirects a node to the copies of its functions for its bound inputs.
pub(super) fn rewrite(node: &mut NodeDef, bound: &[Option<Bound>], copies: &mut Copies<'_>) -> Result<()> {
    let results = replace(node, bound, copies)?;
    let Some(kind) = kind(&node.op) else { return Ok(()) };
    set_types(node, kind.types[0], bound.get(kind.first..).unwrap_or_default());
    set_types(node, kind.types[1], &results);
    // Results that were handles are values now, and their shapes are unknown.
    if let Some(Value::List(list)) = node.attr.get_mut("output_shapes").and_then(|v| v.value.as_mut()) {
        let changed = list.shape.iter_mut().zip(&results).filter(|(_, bound)| bound.is_some());
        changed.for_each(|(shape, _)| *shape = TensorShapeProto { dim: Vec::new(), unknown_rank: true });
    }
    Ok(())
}

/// Replaces the function names of a node by those of copies. Returns the bindings of the results.
fn replace(
    node: &mut NodeDef,
    bound: &[Option<Bound>],
    copies: &mut Copies<'_>,
) -> Result<Vec<Option<Bound>>> {
    let name = node.name.clone();
    let at_node = |e: Error| e.context(format!("node '{name}'"));
    let Some(kind) = kind(&node.op) else {
        let copy = copies.copy_of(&node.op, bound).map_err(at_node)?;
        node.op = copy.name;
        return Ok(copy.results);
    };
    let arguments = bound.get(kind.first..).unwrap_or_default();
    if bound.iter().take(kind.first).any(Option::is_some) {
        return Err(at_node(Error::invalid(format!(
            "op {} selects its function by a handle; expected a number or bool",
            node.op
        ))));
    }
    let is_loop = kind.functions == ["cond", "body"];
    let mut results: Option<Vec<Option<Bound>>> = None;
    for attribute in kind.functions {
        let funcs = match node.attr.get_mut(*attribute).and_then(|value| value.value.as_mut()) {
            Some(Value::Func(func)) => std::slice::from_mut(func),
            Some(Value::List(list)) => list.func.as_mut_slice(),
            _ => &mut [],
        };
        for func in funcs {
            let copy = copies.copy_of(&func.name, arguments).map_err(at_node)?;
            func.name = copy.name;
            if is_loop && *attribute == "cond" {
                continue;
            }
            match &results {
                Some(first) if *first != copy.results => {
                    return Err(at_node(Error::unsupported(
                        "the branches return different variables or tables",
                    )));
                }
                _ => results = Some(copy.results),
            }
        }
    }
    let results = results
        .ok_or_else(|| at_node(Error::invalid(format!("op {} does not name a function to call", node.op))))?;
    if is_loop && results != arguments {
        return Err(at_node(Error::unsupported(
            "the loop body replaces a variable or table in the loop state by a different one",
        )));
    }
    Ok(results)
}

/// Writes the types of bound values into a list of types.
pub(super) fn set_types(node: &mut NodeDef, attribute: &str, bound: &[Option<Bound>]) {
    let Some(Value::List(list)) = node.attr.get_mut(attribute).and_then(|value| value.value.as_mut()) else {
        return;
    };
    for (number, bound) in list.r#type.iter_mut().zip(bound) {
        if let Some(bound) = bound
            && let Some(Value::Type(new)) = type_value(bound.data_type()).value
        {
            *number = new;
        }
    }
}
