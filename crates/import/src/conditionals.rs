//! Conditionals: `If` and `Case` become HLO's `conditional`.
//!
//! A branch is a computation of its own. It takes a tuple of what its function reads from outside, constants left out,
//! and returns the function's results, then the new value of each variable that some branch writes.

use crate::calls::function;
use crate::context::{NodeContext, list};
use crate::data_types::*;
use crate::fold::fold;
use crate::importer::needed_nodes;
use crate::rule::{Rule, rule_values};
use crate::scope::Scope;
use crate::value::{Value, VariableId};
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::Function;

pub(crate) const RULES: &[Rule] = &[
    rule_values("If", if_op).types("Tcond", ALL).effect(),
    rule_values("StatelessIf", if_op).types("Tcond", ALL),
    rule_values("Case", case).effect(),
    rule_values("StatelessCase", case),
];

/// Constants with at most so many elements are built again inside of a branch, so that shapes and axes stay known there.
const MAX_COPIED_ELEMENTS: i64 = 1024;

/// `If(cond, inputs...)`: a scalar that is not 0, or an array that is not empty, chooses `then_branch`.
fn if_op(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let condition = cx.input(0)?;
    let condition = cx.truth(condition)?;
    let then_branch = function(cx, cx.node.attributes.func("then_branch")?.0)?;
    let else_branch = function(cx, cx.node.attributes.func("else_branch")?.0)?;
    if let Some(known) = cx.fold(condition) {
        let chosen = if known.scalar_at(0).as_i64() == Some(1) { then_branch } else { else_branch };
        return inline_branch(cx, chosen);
    }
    conditional(cx, condition, &[then_branch, else_branch])
}

/// `Case(index, inputs...)`: an index out of range chooses the last branch.
fn case(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let index = cx.input(0)?;
    let sizes = cx.sizes(index);
    cx.check(sizes.is_empty(), || format!("branch_index must be a scalar, but has shape {}", list(&sizes)))?;
    let names: Vec<String> = cx.node.attributes.funcs("branches")?.iter().map(|f| f.0.to_owned()).collect();
    let branches: Vec<&Function> = names.iter().map(|name| function(cx, name)).collect::<Result<_>>()?;
    let Some(&last) = branches.last() else {
        return Err(cx.invalid("needs at least one branch"));
    };
    if let Some(known) = cx.fold(index) {
        let known = known.scalar_at(0).as_i64().and_then(|index| usize::try_from(index).ok());
        let chosen = known.and_then(|index| branches.get(index)).copied().unwrap_or(last);
        return inline_branch(cx, chosen);
    }
    if branches.len() == 1 {
        return inline_branch(cx, last);
    }
    let index = cx.convert(index, PrimitiveType::S32)?;
    conditional(cx, index, &branches)
}

/// The branch that is known to be chosen, in place of the conditional.
fn inline_branch<'p>(cx: &mut NodeContext<'_, 'p>, function: &'p Function) -> Result<Vec<Value>> {
    let prefix = format!("{}/", cx.name);
    let arguments = cx.inputs[1..].to_vec();
    cx.importer.translate_function(function, &arguments, &prefix)
}

/// A branch that has been translated, its computation still open.
struct Branch {
    scope: Scope,
    results: Vec<Value>,
}

fn conditional<'p>(
    cx: &mut NodeContext<'_, 'p>,
    selector: InstructionId,
    functions: &[&'p Function],
) -> Result<Vec<Value>> {
    cx.importer.count_branches(functions.len())?;
    let mut branches = Vec::new();
    for &function in functions {
        branches.push(translate_branch(cx, function)?);
    }
    let mut written: BTreeMap<VariableId, String> = BTreeMap::new();
    for branch in &branches {
        for (&variable, writer) in &branch.scope.written {
            written.entry(variable).or_insert_with(|| writer.clone());
        }
    }
    let results = merged_results(cx, &branches)?;
    let mut operands = vec![selector];
    let mut branch_computations = Vec::new();
    for branch in branches {
        let (tuple, computation) = finish_branch(cx, branch, &written)?;
        operands.push(tuple);
        branch_computations.push(computation);
    }
    let made = cx.op(Op::Conditional { branch_computations }, &operands)?;
    let mut index = 0;
    let mut next = |cx: &mut NodeContext<'_, 'p>| {
        index += 1;
        cx.tuple_element(made, index - 1)
    };
    let mut values = Vec::new();
    for result in results {
        values.push(match result {
            None => Value::Array(next(cx)?),
            Some(same) => same,
        });
    }
    for (variable, writer) in written {
        let value = next(cx)?;
        cx.importer.write_variable(variable, value, &writer);
    }
    Ok(values)
}

/// Translates a function into a computation of its own.
fn translate_branch<'p>(cx: &mut NodeContext<'_, 'p>, function: &'p Function) -> Result<Branch> {
    let inputs = &cx.inputs[1..];
    cx.check(inputs.len() == function.arguments.len(), || {
        format!(
            "branch '{}' takes {} arguments, but the node has {} inputs",
            function.name,
            function.arguments.len(),
            inputs.len()
        )
    })?;
    let needed = needed_nodes(cx.importer.program, function);
    let mut inner = Scope::branch(&function.name);
    inner.metadata = cx.importer.scope_ref().metadata.clone();
    let mut arguments = Vec::new();
    for (&value, argument) in cx.inputs[1..].iter().zip(&function.arguments) {
        arguments.push(match value {
            Value::Array(_) if !needed.contains(argument) => Value::Opaque,
            Value::Array(id) => {
                let (module, outer) = cx.importer.module_and_scope();
                let shape = outer.shape(id).clone();
                let small = shape.as_array().is_some_and(|a| a.element_count() <= MAX_COPIED_ELEMENTS);
                let known = if small { fold(module, outer, id) } else { None };
                Value::Array(match known {
                    Some(literal) => inner.add_constant(literal),
                    None => inner.capture(id, &shape),
                })
            }
            same => same,
        });
    }
    cx.importer.scopes.push(inner);
    let prefix = format!("{}/", cx.name);
    let results = match cx.importer.translate_function(function, &arguments, &prefix) {
        Ok(results) => results,
        Err(error) => {
            // What is said of this node is about the computation around the branch.
            cx.importer.scopes.pop();
            return Err(error);
        }
    };
    // A reference that a branch returns is read there.
    let results = results
        .into_iter()
        .map(|value| match value {
            Value::Reference(variable) => Value::Array(cx.importer.read_variable(variable)),
            value => value,
        })
        .collect();
    let scope = cx.importer.scopes.pop().expect("the branch that was pushed above");
    Ok(Branch { scope, results })
}

/// For each result: `None` if it is an array, else the value that all branches agree on.
fn merged_results(cx: &NodeContext<'_, '_>, branches: &[Branch]) -> Result<Vec<Option<Value>>> {
    let first = &branches[0];
    let mut merged = Vec::new();
    for (k, &value) in first.results.iter().enumerate() {
        for branch in branches {
            let other = branch.results.get(k).copied();
            match (value, other) {
                (Value::Array(a), Some(Value::Array(b))) => {
                    let (a, b) = (first.scope.shape(a), branch.scope.shape(b));
                    cx.check(a == b, || {
                        format!(
                            "the branches must return the same shapes, but result {k} is {a} in one and {b} in \
                             another"
                        )
                    })?;
                }
                (value, Some(other)) if value == other => {}
                _ => {
                    return Err(Error::unsupported(format!(
                        "result {k} is an array in one branch but not in the other, or different variables"
                    )));
                }
            }
        }
        merged.push(if matches!(value, Value::Array(_)) { None } else { Some(value) });
    }
    Ok(merged)
}

/// Closes a branch; the tuple of what it captures, and its computation.
fn finish_branch(
    cx: &mut NodeContext<'_, '_>,
    branch: Branch,
    written: &BTreeMap<VariableId, String>,
) -> Result<(InstructionId, hlo::ComputationId)> {
    let Branch { scope, results } = branch;
    let mut elements: Vec<InstructionId> = results
        .into_iter()
        .filter_map(|value| match value {
            Value::Array(id) => Some(id),
            _ => None,
        })
        .collect();
    cx.importer.scopes.push(scope);
    for &variable in written.keys() {
        elements.push(cx.importer.read_variable(variable));
    }
    let scope = cx.importer.scopes.pop().expect("the branch that was pushed above");
    let (computation, captured) = scope.finish(&elements);
    let computation = cx.importer.module.add_computation(computation);
    let tuple = cx.op(Op::Tuple {}, &captured)?;
    Ok((tuple, computation))
}
