//! Control flow, calls, and variables.

use super::Row;
use crate::convert::{Op, Use};
use crate::schema::{Subgraph, Tensor};
use crate::variables::key_of_handle;
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Attribute, Ref, function, functions, ty, types};

pub(super) const ROWS: &[Row] = &[
    ("ASSIGN_VARIABLE", assign_variable),
    ("CALL", |op| call(op, 0)),
    ("CALL_ONCE", call_once),
    ("IF", conditional),
    ("READ_VARIABLE", read_variable),
    ("STABLEHLO_CASE", case),
    ("STABLEHLO_COMPOSITE", |op| call(op, 1)),
    ("VAR_HANDLE", var_handle),
    ("WHILE", repeat),
];

fn input_types(op: &Op<'_, '_>, from: usize) -> Result<Vec<DataType>> {
    (from..op.input_count()).map(|k| op.data_type(k)).collect()
}

fn result_types(op: &Op<'_, '_>) -> Result<Vec<DataType>> {
    (0..op.output_count()).map(|k| Ok(op.result(k)?.data_type)).collect()
}

/// Checks the numbers of tensors that a subgraph takes and returns.
fn check_interface(number: i64, subgraph: &Subgraph<'_>, inputs: usize, outputs: usize) -> Result<()> {
    let (has_inputs, has_outputs) = (subgraph.inputs.len(), subgraph.outputs.len());
    if (has_inputs, has_outputs) == (inputs, outputs) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "subgraph {number} has {has_inputs} inputs and {has_outputs} outputs, but the operator needs {inputs} and {outputs}"
    )))
}

/// Functions for subgraphs, with the variables that any of them uses.
pub(super) struct Called {
    functions: Vec<String>,
    /// Handles, which are arguments after the others.
    handles: Vec<Ref>,
}

impl Called {
    /// The only function, which may not use variables.
    pub(super) fn only(&self) -> Result<&str> {
        match (self.functions.as_slice(), self.handles.as_slice()) {
            ([function], []) => Ok(function),
            _ => Err(Error::unsupported("a function of elements cannot use variables")),
        }
    }

    fn types(&self, of_others: Vec<DataType>) -> Vec<DataType> {
        of_others.into_iter().chain(self.handles.iter().map(|_| DataType::Resource)).collect()
    }
}

/// The functions of subgraphs, each with these numbers of inputs and outputs.
pub(super) fn called(op: &mut Op<'_, '_>, numbers: &[i64], inputs: usize, outputs: usize) -> Result<Called> {
    let interfaces: Vec<(i64, usize)> = numbers.iter().map(|&number| (number, outputs)).collect();
    functions_of(op, &interfaces, inputs, false)
}

/// Functions that take the operator's inputs from a number on and return its outputs.
fn called_with_inputs(op: &mut Op<'_, '_>, numbers: &[i64], first: usize) -> Result<Called> {
    let (inputs, outputs) = (input_types(op, first)?, result_types(op)?);
    let called = called(op, numbers, inputs.len(), outputs.len())?;
    for &number in numbers {
        check_types(op, number, &inputs, &outputs)?;
    }
    Ok(called)
}

/// Checks the types that a subgraph takes and returns.
fn check_types(op: &Op<'_, '_>, number: i64, inputs: &[DataType], outputs: &[DataType]) -> Result<()> {
    let (_, subgraph) = op.subgraph(number)?;
    for (what, tensors, types) in
        [("input", &subgraph.inputs, inputs), ("output", &subgraph.outputs, outputs)]
    {
        for (k, (&tensor, &wanted)) in tensors.iter().zip(types).enumerate() {
            let Tensor { name, data_type, .. } = &subgraph.tensors[tensor];
            if *data_type != wanted {
                return Err(Error::invalid(format!(
                    "{what} {k} of subgraph {number}, '{name}', has type {data_type}, but the operator needs {wanted}"
                )));
            }
        }
    }
    Ok(())
}

/// Functions for subgraphs, by number and number of outputs. In a loop, the last one is the body,
/// which returns the handles of variables.
fn functions_of(
    op: &mut Op<'_, '_>,
    numbers: &[(i64, usize)],
    inputs: usize,
    is_loop: bool,
) -> Result<Called> {
    let mut subgraphs = Vec::new();
    for &(number, outputs) in numbers {
        let (index, subgraph) = op.subgraph(number)?;
        check_interface(number, subgraph, inputs, outputs)?;
        subgraphs.push(index);
    }
    let variables = op.used_variables(&subgraphs)?;
    let mut functions = Vec::new();
    for (k, &subgraph) in subgraphs.iter().enumerate() {
        let is_body = k + 1 == subgraphs.len();
        functions.push(op.function(&Use {
            subgraph,
            variables: variables.clone(),
            returns_variables: is_loop && is_body,
            is_condition: is_loop && !is_body,
        })?);
    }
    let handles = variables.iter().map(|key| op.variable(key)).collect::<Result<_>>()?;
    Ok(Called { functions, handles })
}

/// Adds a node that calls functions.
fn add_call(
    op: &mut Op<'_, '_>,
    name: &str,
    called: &Called,
    first: usize,
    attributes: Vec<Attribute>,
) -> Result<()> {
    let mut inputs = op.inputs()?;
    // Any array of one element selects a branch.
    if first == 1 {
        let selector = condition_type(op)?;
        inputs[0] = op.node("Squeeze", &[inputs[0].clone()], [ty("T", selector)])?;
    }
    inputs.extend(called.handles.iter().cloned());
    let mut all =
        vec![types("Tin", &called.types(input_types(op, first)?)), types("Tout", &result_types(op)?)];
    all.extend(attributes);
    let results = op.add(name, &inputs, all)?;
    op.set_all(results)
}

fn conditional(op: &mut Op<'_, '_>) -> Result<()> {
    let tcond = condition_type(op)?;
    let numbers = [op.options().int(0, 0)?, op.options().int(1, 0)?];
    let called = called_with_inputs(op, &numbers, 1)?;
    let attributes = vec![
        ty("Tcond", tcond),
        function("then_branch", &called.functions[0]),
        function("else_branch", &called.functions[1]),
    ];
    add_call(op, "If", &called, 1, attributes)
}

/// The type of the first input, which selects a branch.
fn condition_type(op: &Op<'_, '_>) -> Result<DataType> {
    op.data_type(0).map_err(|e| e.context("the operator has no condition"))
}

/// One of several branches; the last one for numbers of none.
fn case(op: &mut Op<'_, '_>) -> Result<()> {
    condition_type(op)?;
    let numbers = op.options().ints(0)?;
    if numbers.is_empty() {
        return Err(Error::invalid("the operator has no branches"));
    }
    let called = called_with_inputs(op, &numbers, 1)?;
    let attributes = vec![functions("branches", &called.functions)];
    add_call(op, "Case", &called, 1, attributes)
}

fn repeat(op: &mut Op<'_, '_>) -> Result<()> {
    let count = op.input_count();
    if op.output_count() != count {
        return Err(Error::invalid(format!("{count} inputs, but {} outputs", op.output_count())));
    }
    let numbers = [(op.options().int(0, 0)?, 1), (op.options().int(1, 0)?, count)];
    let called = functions_of(op, &numbers, count, true)?;
    let of_state = input_types(op, 0)?;
    check_types(op, numbers[0].0, &of_state, &[DataType::Bool])?;
    check_types(op, numbers[1].0, &of_state, &of_state)?;
    let mut inputs = op.inputs()?;
    inputs.extend(called.handles.iter().cloned());
    let attributes: [Attribute; 3] = [
        types("T", &called.types(of_state)),
        function("cond", &called.functions[0]),
        function("body", &called.functions[1]),
    ];
    let results = op.add("While", &inputs, attributes)?;
    op.set_all(results)
}

/// `CALL`, and operations with a decomposition.
fn call(op: &mut Op<'_, '_>, field: usize) -> Result<()> {
    let number = op.options().int(field, 0)?;
    let called = called_with_inputs(op, &[number], 0)?;
    let attributes = vec![function("f", &called.functions[0])];
    add_call(op, "StatefulPartitionedCall", &called, 0, attributes)
}

/// A subgraph that runs once, before anything else, and gives variables their first values.
fn call_once(op: &mut Op<'_, '_>) -> Result<()> {
    let (_, subgraph) = op.subgraph(op.options().int(0, 0)?)?;
    let mut handles: BTreeMap<usize, String> = BTreeMap::new();
    for operator in &subgraph.operators {
        match (operator.op, operator.inputs.as_slice(), operator.outputs.as_slice()) {
            ("VAR_HANDLE", [], [handle]) => {
                handles.insert(*handle, key_of_handle(operator)?);
            }
            ("ASSIGN_VARIABLE", [Some(handle), Some(value)], []) => {
                let name = handles.get(handle).ok_or_else(|| {
                    Error::invalid(
                        "the subgraph that initializes variables assigns to one that it does not name",
                    )
                })?;
                let value = &subgraph.tensors[*value];
                op.initialize(name, first_value(value)?);
            }
            (other, ..) => {
                return Err(Error::unsupported(format!(
                    "the subgraph that initializes variables has an operator {other}, but only constants are supported"
                )));
            }
        }
    }
    Ok(())
}

/// The value of a constant.
fn first_value(tensor: &Tensor) -> Result<Literal> {
    let Tensor { name, data_type, sizes, contents, .. } = tensor;
    let literal = contents.as_ref().zip(data_type.primitive_type()).and_then(|(contents, element)| {
        Literal::from_bytes(ArrayShape::new(element, sizes), contents.clone())
    });
    literal.ok_or_else(|| {
        Error::unsupported(format!("the first value of a variable, '{name}', is not a constant"))
    })
}

fn var_handle(op: &mut Op<'_, '_>) -> Result<()> {
    let handle = op.variable(&key_of_handle(op.operator())?)?;
    op.set(0, handle)
}

fn read_variable(op: &mut Op<'_, '_>) -> Result<()> {
    let handle = op.input(0)?;
    let value = op.node("ReadVariableOp", &[handle], [ty("dtype", op.result(0)?.data_type)])?;
    op.set(0, value)
}

fn assign_variable(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    op.add("AssignVariableOp", &inputs, [ty("dtype", op.data_type(1)?)])?;
    Ok(())
}
