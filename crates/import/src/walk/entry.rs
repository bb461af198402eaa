//! The entry of a program: its parameters, the walk over its graph, and its results.

use crate::node::rule::RuleTable;
use crate::values::state::State;
use crate::values::value::Value;
use crate::walk::graph_walk::Walk;
use crate::walk::writers::may_write;
use bounded::{VariableId, check_size};
use hlo::{
    Argument, Identifier, InstructionId, Interface, NamedDimension, OpMetadata, Origin, Output, Role,
    SizeParameter, SizeRange,
};
use shape::{ArrayShape, PrimitiveType, Shape};
use std::collections::BTreeMap;
use support::{Code, Coded as _, Error, Id, Result};
use tf::{NodeId, Program, VariableState};

/// Imports the program as HLO, in one round.
pub(crate) fn import_once(rules: &'static RuleTable, state: &mut State<'_>) -> Result<hlo::Program> {
    let program = state.program();
    let mut walk = Walk::new(program, rules);
    let Entry { arguments, feed_values } = add_variables_and_feeds(state)?;
    let values = walk.translate_graph(state, &program.graph, feed_values, None, "");
    // Prefer the root cause over errors that follow from the missing value.
    let values = values.map_err(|error| uninitialized(state).unwrap_or(error))?;
    check_written(rules, state).coded(Code::Variable)?;

    let mut elements = Vec::new();
    for fetch in &program.fetches {
        elements.push(fetched(state, fetch, &values)?);
    }
    for v in (0..program.variables.len()).filter(|&v| !program.variables[v].readonly) {
        elements.push(state.read_variable(VariableId::from_index(v)));
    }
    if let Some(error) = uninitialized(state) {
        return Err(error);
    }
    let shapes: Vec<ArrayShape> = elements.iter().map(|&id| state.array(id)).collect();
    let results = results(program, &arguments, shapes);
    let interface = Interface::new(arguments, results);
    let mut module = state.finish(&elements);
    module.set_input_output_alias(interface.input_output_alias());
    let sizes = interface.sizes().map(|(parameter, _, SizeRange { low, high })| SizeParameter {
        parameter,
        low,
        high,
    });
    module.set_size_parameters(sizes.collect());
    Ok(hlo::Program::new(module, interface))
}

/// The results of a program: fetches, then new values of variables. The value of a variable that is
/// kept in place aliases its argument.
fn results(program: &Program, arguments: &[Argument], shapes: Vec<ArrayShape>) -> Vec<Output> {
    let mut shapes = shapes.into_iter();
    let fetches = program.fetches.iter().zip(shapes.by_ref()).map(|(fetch, shape)| {
        let id = Identifier::Output { node: fetch.id.0.clone(), index: fetch.id.1 };
        let mut result = Output::new(chosen(&fetch.name), id, shape, Origin::Fetch);
        result.quantization = fetch.quantization;
        result
    });
    let mut results: Vec<Output> = fetches.collect();
    let written = program.variables.iter().filter(|variable| !variable.readonly);
    results.extend(written.zip(shapes).map(|(variable, shape)| {
        let id = Identifier::Variable(variable.node_name.clone());
        match variable.state {
            VariableState::InPlace => Output::new_value(chosen(&variable.name), id, shape, arguments),
            VariableState::Separate | VariableState::Uninitialized => {
                let mut result = Output::new(chosen(&variable.name), id, shape, Origin::Variable);
                result.quantization = variable.quantization;
                result
            }
        }
    }));
    results
}

/// Returns the name that the config gives, if any.
fn chosen(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

/// The beginning of the entry.
pub(crate) struct Entry {
    pub(crate) arguments: Vec<Argument>,
    /// The values of the feeds, by their nodes. Those with named dimensions have bounded sizes.
    pub(crate) feed_values: BTreeMap<NodeId, Vec<Value>>,
}

/// Adds the entry's parameters: feeds, the sizes of named dimensions, and variables.
pub(crate) fn add_variables_and_feeds(state: &mut State<'_>) -> Result<Entry> {
    let program = state.program();
    let mut arguments = Vec::new();
    let mut parameters = Vec::new();
    for feed in &program.feeds {
        let name = if feed.name.is_empty() { &feed.id.0 } else { &feed.name };
        let shape = parameter_shape("feed", name, feed.data_type, &feed.shape)?;
        parameters.push(add_parameter(state, name, shape.clone().into(), &feed.id.0, "Placeholder"));
        let id = Identifier::Output { node: feed.id.0.clone(), index: feed.id.1 };
        let argument = Argument::new(chosen(&feed.name), id, shape, Role::Feed);
        let named = feed.dimensions.iter().map(|(&dimension, &position)| NamedDimension {
            dimension,
            size: program.feeds.len() + position,
        });
        let (named_dimensions, quantization) = (named.collect(), feed.quantization);
        arguments.push(Argument { named_dimensions, quantization, ..argument });
    }
    let sizes = add_sizes(state, &mut arguments);
    let mut feed_values = BTreeMap::new();
    for (feed, parameter) in program.feeds.iter().zip(parameters) {
        let size = |d: usize| feed.dimensions.get(&d).map(|&position| sizes[position]);
        let own: Vec<_> = (0..feed.shape.len()).map(size).collect();
        let value = state.bounded(parameter, &own)?;
        feed_values.insert(feed.tensor.node, vec![Value::Array(value)]);
    }
    for (v, variable) in program.variables.iter().enumerate() {
        let name = if variable.name.is_empty() { &variable.node_name } else { &variable.name };
        if variable.state == VariableState::Uninitialized {
            state.add_unset_variable(VariableId::from_index(v));
            continue;
        }
        let shape = parameter_shape("variable", name, variable.data_type, &variable.shape)?;
        let id = add_parameter(state, name, shape.clone().into(), &variable.node_name, "VarHandleOp");
        state.add_variable(VariableId::from_index(v), 0, id);
        let id = Identifier::Variable(variable.node_name.clone());
        let quantization = variable.quantization;
        let argument = Argument::new(chosen(&variable.name), id, shape, Role::Variable);
        arguments.push(Argument { quantization, ..argument });
    }
    Ok(Entry { arguments, feed_values })
}

/// Adds the sizes of named dimensions, with their ranges.
fn add_sizes(state: &mut State<'_>, arguments: &mut Vec<Argument>) -> Vec<InstructionId> {
    let mut sizes = Vec::new();
    for tf::Dimension { name, low, high } in &state.program().dimensions {
        let shape = ArrayShape::new(PrimitiveType::S32, &[]);
        let size = add_parameter(state, name, shape.clone().into(), name, "Size");
        state.add_size_parameter(size, *low, *high);
        sizes.push(size);
        let id = Identifier::Output { node: name.clone(), index: 0 };
        let argument = Argument::new(chosen(name), id, shape, Role::Feed);
        arguments.push(Argument { range: Some(SizeRange { low: *low, high: *high }), ..argument });
    }
    sizes
}

fn add_parameter(
    state: &mut State<'_>,
    name: &str,
    shape: Shape,
    op_name: &str,
    op_type: &str,
) -> InstructionId {
    let metadata =
        OpMetadata { op_type: op_type.to_owned(), op_name: op_name.to_owned(), ..OpMetadata::default() };
    state.scope().add_entry_parameter(name, shape, metadata)
}

/// Returns the array of a fetch.
fn fetched(
    state: &mut State<'_>,
    fetch: &tf::Fetch,
    values: &BTreeMap<NodeId, Vec<Value>>,
) -> Result<InstructionId> {
    let id = format!("{}:{}", fetch.id.0, fetch.id.1);
    let value = values.get(&fetch.tensor.node).and_then(|outputs| outputs.get(fetch.tensor.index));
    match value {
        Some(Value::Array(id)) => Ok(*id),
        Some(Value::Reference(variable)) => Ok(state.read_variable(*variable)),
        Some(Value::Resource(variable)) => Err(Error::invalid(format!(
            "fetch '{id}' is the handle of variable '{}'; fetch a ReadVariableOp of it instead",
            state.variable_name(*variable)
        ))
        .coded(Code::Fetch)),
        Some(other @ (Value::List(_) | Value::Stack(_) | Value::TensorArray(_))) => Err(Error::unsupported(
            format!("fetch '{id}' is {}; fetch a value read from it instead", other.kind()),
        )
        .coded(Code::Fetch)),
        Some(Value::Opaque) => Err(Error::unsupported(format!(
            "fetch '{id}' is a string; only numbers and bool can be compiled"
        ))
        .coded(Code::Fetch)),
        None => Err(Error::invalid(format!("fetch '{id}': the node has no such output")).coded(Code::Fetch)),
    }
}

/// The shape of the entry parameter of a feed or a variable.
pub(crate) fn parameter_shape(
    what: &str,
    name: &str,
    data_type: tf::DataType,
    sizes: &[i64],
) -> Result<ArrayShape> {
    let Some(element_type) = data_type.base().primitive_type() else {
        return Err(Error::unsupported(format!(
            "{what} '{name}' has type {data_type}; only numbers and bool can be compiled"
        ))
        .coded(Code::Feed));
    };
    if sizes.iter().any(|&size| size < 0) || shape::index::element_count(sizes).is_none() {
        return Err(
            Error::invalid(format!("{what} '{name}' has an invalid shape: {sizes:?}")).coded(Code::Feed)
        );
    }
    let shape = ArrayShape::new(element_type, sizes);
    check_size(&shape.clone().into()).map_err(|e| e.context(format!("{what} '{name}'")))?;
    Ok(shape)
}

/// Returns the error for a variable that is read before it has a value, if any.
pub(crate) fn uninitialized(state: &State<'_>) -> Option<Error> {
    let variable = state.read_unset()?;
    Some(Error::invalid(format!(
        "Attempting to use uninitialized value {}: run its initializer first, or restore it from a checkpoint",
        state.variable_name(variable)
    )).coded(Code::Uninitialized))
}

/// Checks that the variables marked readonly are exactly those that no node writes.
pub(crate) fn check_written(rules: &RuleTable, state: &State<'_>) -> Result<()> {
    for (position, variable) in state.program().variables.iter().enumerate() {
        let writer = state.scope_ref().written().get(&VariableId::from_index(position));
        let name = &variable.node_name;
        match (writer, variable.readonly) {
            (Some(writer), true) => {
                return Err(Error::invalid(format!(
                    "Variable \"{name}\" is marked as readonly, but is modified by the computation: node '{writer}' \
                     writes it. Remove `readonly: true` from the config, or fetch something that does not need that \
                     node."
                )));
            }
            // If only a branch that is never taken writes it, it keeps its value.
            (None, false) if may_write(rules, state.program(), VariableId::from_index(position)) => {}
            (None, false) => {
                let hint = match variable.node {
                    Some(_) => {
                        "no node that the fetches need writes it. Set `readonly: true` in the config, or fetch \
                                the update (or a node that depends on it)"
                    }
                    None => {
                        "no variable of that name is needed by the fetches. Correct the name, or remove it from \
                             the config"
                    }
                };
                return Err(Error::invalid(format!(
                    "Variable \"{name}\" is marked as not readonly, but is not modified by the computation: {hint}."
                )));
            }
            _ => {}
        }
    }
    Ok(())
}
