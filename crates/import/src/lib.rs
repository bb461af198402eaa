//! TensorFlow graphs to HLO: one rule for each op.
//!
//! [`import`] walks a prepared [`tf::Program`] in execution order and applies the rule of each node's op. What comes
//! out is plain HLO of static shapes (but for results whose sizes only a run knows), each instruction with the op and the
//! name of the node it comes from:
//! - the entry's parameters are the feeds, then the variables, in the order of the config;
//! - its result is a tuple: the fetches, then the new value of each variable that is not readonly;
//! - such a result lives in its variable's parameter (`input_output_alias`, `must-alias`);
//! - functions are inlined; conditionals become `conditional`, with the variables they touch passed in and out.
//!
//! A rule lives in the file of its family, as one row and one function. A folder lists its families; `table` lists the folders.

mod bounded;
mod builder;
mod control;
mod lists;
mod node;
mod ops;
mod settle;
mod table;
mod values;
mod walk;

pub use settle::{has_bounded_shapes, settle_bounded_shapes};
pub use table::op_table::op_table;
pub use table::rules::{SupportedOp, supported_ops};
pub use walk::problems::problems;
pub use walk::unsupported::unsupported_op;

use crate::control::loop_bounds;
use crate::ops::training::variables;
use crate::values::value::{Value, VariableId};
use crate::walk::importer::{Importer, parameter_shape};
use crate::walk::{rounds, unsupported, writers};
use hlo::{Argument, Identifier, InstructionId, Interface, Module, Op, OpMetadata, Origin, Output, Role};
use shape::{Literal, Shape};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Coded as _, Error, Id, Result};
use tf::{NodeId, Program, VariableState};

/// The HLO of a program.
///
/// Errors are the user's graph's (`Invalid`: shapes that do not fit, variables that the config describes wrongly), or
/// list every node that cannot be compiled yet (`Unsupported`).
pub fn import(program: &Program) -> Result<Module> {
    Ok(import_program(program)?.module)
}

/// The HLO of a program, with its interface.
pub fn import_program(program: &Program) -> Result<hlo::Program> {
    unsupported::check(program)?;
    loop_bounds::check_promises(program).coded(Code::LoopBound)?;
    rounds::import_in_rounds(program, |mut importer| {
        let result = import_once(&mut importer);
        (result, importer.lessons)
    })
}

/// As [`import_program`], and beside an error the inputs whose values the rules wanted to know: names of nodes and positions.
/// Whoever knows them may put constants there and ask again.
pub fn import_or_wanted(
    program: &Program,
) -> std::result::Result<hlo::Program, (Error, BTreeSet<(String, usize)>)> {
    let check = unsupported::check(program)
        .and_then(|()| loop_bounds::check_promises(program).coded(Code::LoopBound));
    check.map_err(|error| (error, BTreeSet::new()))?;
    let wanted = RefCell::new(BTreeSet::new());
    let result = rounds::import_in_rounds(program, |mut importer| {
        let result = import_once(&mut importer);
        wanted.replace(importer.wanted_constants.take());
        (result, importer.lessons)
    });
    result.map_err(|error| (error, wanted.into_inner()))
}

/// Whether a node of the program writes the variable at a position, be it run or not.
pub fn may_write(program: &Program, variable: usize) -> bool {
    writers::may_write(program, VariableId::from_index(variable))
}

/// Why a node that calls no function cannot be compiled, by its op and the types that it names; `None` if it can.
pub fn unsupported_node(node: &tf::Node) -> Option<String> {
    unsupported::reason_of_op(node)
}

fn import_once(importer: &mut Importer<'_>) -> Result<hlo::Program> {
    let program = importer.program;
    let arguments = add_variables_and_feeds(importer)?;
    let given: BTreeMap<NodeId, Vec<Value>> = program
        .feeds
        .iter()
        .zip(importer.scope_ref().computation.parameters())
        .map(|(feed, &parameter)| (feed.tensor.node, vec![Value::Array(parameter)]))
        .collect();
    let values = importer.translate_graph(&program.graph, given, None, "");
    // What follows from a value that is not there says less.
    let values = values.map_err(|error| variables::uninitialized(importer).unwrap_or(error))?;
    variables::check_written(importer).coded(Code::Variable)?;

    let mut elements = Vec::new();
    for fetch in &program.fetches {
        elements.push(fetched(importer, fetch, &values)?);
    }
    for v in (0..program.variables.len()).filter(|&v| !program.variables[v].readonly) {
        elements.push(importer.read_variable(VariableId::from_index(v)));
    }
    if let Some(error) = variables::uninitialized(importer) {
        return Err(error);
    }
    let scope = importer.scopes.pop().expect("the entry is open until here");
    let (computation, _) = scope.finish(&elements);
    let shapes = computation[computation.root()].shape().as_tuple().unwrap_or_default();
    let results = results(program, &arguments, shapes);
    let interface = Interface::new(arguments, results);
    let mut module = std::mem::replace(&mut importer.module, Module::new(""));
    let entry = module.add_computation(computation);
    module.set_entry(entry);
    module.set_input_output_alias(interface.input_output_alias());
    // Reducers and branches that were built for what nobody needs.
    module.remove_unreachable_computations();
    Ok(hlo::Program { module, interface })
}

/// The results of a program, fetches before new values of variables. A variable that is kept where it is takes the memory of
/// its argument.
fn results(program: &Program, arguments: &[Argument], shapes: &[Shape]) -> Vec<Output> {
    let mut shapes = shapes.iter().map(|shape| shape.expect_array().clone());
    let fetches = program.fetches.iter().zip(shapes.by_ref()).map(|(fetch, shape)| {
        let id = Identifier::Output { node: fetch.id.0.clone(), index: fetch.id.1 };
        Output::new(chosen(&fetch.name), id, shape, Origin::Fetch)
    });
    let mut results: Vec<Output> = fetches.collect();
    let written = program.variables.iter().filter(|variable| !variable.readonly);
    results.extend(written.zip(shapes).map(|(variable, shape)| {
        let id = Identifier::Variable(variable.node_name.clone());
        let is_kept = variable.state == VariableState::Kept;
        let alias = if is_kept { arguments.iter().position(|argument| argument.id == id) } else { None };
        Output::new(chosen(&variable.name), id, shape, Origin::Variable).with_alias(alias)
    }));
    results
}

/// A name that the config gives, if it gives one.
fn chosen(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

/// Adds the entry's parameters.
fn add_variables_and_feeds(importer: &mut Importer<'_>) -> Result<Vec<Argument>> {
    let program = importer.program;
    let mut arguments = Vec::new();
    for feed in &program.feeds {
        let name = if feed.name.is_empty() { &feed.id.0 } else { &feed.name };
        let shape = parameter_shape("feed", name, feed.data_type, &feed.shape)?;
        add_parameter(importer, name, shape.clone().into(), &feed.id.0, "Placeholder");
        let id = Identifier::Output { node: feed.id.0.clone(), index: feed.id.1 };
        arguments.push(Argument { name: chosen(&feed.name), id, shape, role: Role::Feed });
    }
    for (v, variable) in program.variables.iter().enumerate() {
        let name = if variable.name.is_empty() { &variable.node_name } else { &variable.name };
        if variable.state == VariableState::Unset {
            let nothing = importer.scope().add_constant(Literal::scalar(false));
            importer.scope().variables.insert(VariableId::from_index(v), nothing);
            importer.unset.insert(VariableId::from_index(v), nothing);
            continue;
        }
        let shape = parameter_shape("variable", name, variable.data_type, &variable.shape)?;
        let id = add_parameter(importer, name, shape.clone().into(), &variable.node_name, "VarHandleOp");
        importer.scope().variables.insert(VariableId::from_index(v), id);
        let id = Identifier::Variable(variable.node_name.clone());
        arguments.push(Argument { name: chosen(&variable.name), id, shape, role: Role::Variable });
    }
    Ok(arguments)
}

fn add_parameter(
    importer: &mut Importer<'_>,
    name: &str,
    shape: Shape,
    op_name: &str,
    op_type: &str,
) -> InstructionId {
    let metadata =
        OpMetadata { op_type: op_type.to_owned(), op_name: op_name.to_owned(), ..OpMetadata::default() };
    let computation = &mut importer.scope().computation;
    let number = computation.parameters().len();
    computation.add(name, Op::Parameter { number }, shape, &[], metadata)
}

/// The array that a fetch asks for.
fn fetched(
    importer: &mut Importer<'_>,
    fetch: &tf::Fetch,
    values: &BTreeMap<NodeId, Vec<Value>>,
) -> Result<InstructionId> {
    let id = format!("{}:{}", fetch.id.0, fetch.id.1);
    let value = values.get(&fetch.tensor.node).and_then(|outputs| outputs.get(fetch.tensor.index));
    match value {
        Some(Value::Array(id)) => Ok(*id),
        Some(Value::Reference(variable)) => Ok(importer.read_variable(*variable)),
        Some(Value::Resource(variable)) => Err(Error::invalid(format!(
            "fetch '{id}' is the handle of variable '{}'; fetch a ReadVariableOp of it instead",
            importer.variable_name(*variable)
        ))
        .coded(Code::Fetch)),
        Some(other @ (Value::List(_) | Value::Stack(_) | Value::TensorArray(_))) => {
            Err(Error::unsupported(format!("fetch '{id}' is {}; fetch what is read from it", other.kind()))
                .coded(Code::Fetch))
        }
        Some(Value::Opaque) => Err(Error::unsupported(format!(
            "fetch '{id}' is a string; only numbers and bool can be compiled"
        ))
        .coded(Code::Fetch)),
        None => Err(Error::invalid(format!("fetch '{id}': the node makes no such value")).coded(Code::Fetch)),
    }
}
