//! Conditionals and loops.

use super::Row;
use super::constants::array_of;
use crate::convert::{Array, Interface, Op, Value};
use crate::proto::GraphProto;
use crate::tensor::Constant;
use std::rc::Rc;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Ref, function, int, ty, types};

pub(super) const ROWS: &[Row] = &[("If", conditional), ("Loop", repeat), ("Scan", scan)];

fn types_of(arrays: &[Array]) -> Vec<DataType> {
    arrays.iter().map(|array| array.data_type).collect()
}

fn values_of(arrays: &[Array]) -> Vec<Ref> {
    arrays.iter().map(|array| array.value.clone()).collect()
}

/// The captured arrays that become arguments.
fn arguments(captured: &[(String, Value)]) -> Vec<Array> {
    let arrays = captured.iter().flat_map(|(_, value)| value.arrays());
    arrays.filter(|array| array.constant.is_none()).cloned().collect()
}

/// A condition or a number without dimensions.
fn scalar_of(op: &mut Op<'_, '_, '_>, array: Array) -> Result<Array> {
    match &array.sizes {
        Some(sizes) if sizes.is_empty() => Ok(array),
        _ => {
            let scalar =
                |constant: &Rc<Constant>| Rc::new(Constant { sizes: Vec::new(), ..(**constant).clone() });
            let constant = array.constant.as_ref().map(scalar);
            Ok(Array { constant, ..op.reshape(&array, &[])? })
        }
    }
}

fn conditional(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let condition = op.input(0)?;
    let branches = [op.graph("then_branch")?, op.graph("else_branch")?];
    if let Some(truth) = condition.constant.as_ref().and_then(|constant| constant.truth()) {
        let branch = branches[usize::from(!truth)];
        let results = op.converter.subgraph(op.frame, branch, Vec::new())?;
        return set_all(op, results);
    }
    let condition = scalar_of(op, condition)?;
    let captured = op.converter.captured(op.frame, &branches)?;
    let inputs = arguments(&captured);
    let mut functions = Vec::new();
    let mut kinds: Option<Vec<Value>> = None;
    for branch in branches {
        let mut interface = op.converter.begin();
        op.converter.bind(&mut interface, &captured)?;
        let results = op.converter.subgraph(&mut interface.frame, branch, Vec::new())?;
        let arrays: Vec<Array> = results.iter().flat_map(|value| value.arrays()).cloned().collect();
        functions.push(op.converter.finish(interface, &branch.name, &arrays)?);
        let agrees = kinds.as_ref().is_none_or(|kinds| {
            kinds.len() == results.len() && kinds.iter().zip(&results).all(|(a, b)| have_same_kind(a, b))
        });
        if !agrees {
            return Err(Error::unsupported(
                "the branches must return the same types, and sequences of the same length",
            ));
        }
        kinds.get_or_insert(results);
    }
    let mut kinds = kinds.unwrap_or_default();
    let result_types: Vec<DataType> =
        kinds.iter().flat_map(|value| value.arrays()).map(|array| array.data_type).collect();
    let mut all = vec![condition.value];
    all.extend(values_of(&inputs));
    let attributes = [
        ty("Tcond", DataType::Bool),
        types("Tin", &types_of(&inputs)),
        types("Tout", &result_types),
        function("then_branch", &functions[0]),
        function("else_branch", &functions[1]),
    ];
    let mut results = op.add("If", &all, attributes)?.into_iter();
    for kind in &mut kinds {
        kind.each_mut(&mut |array| {
            let value = results.next().expect("one result for each array");
            *array = Array::new(value, array.data_type);
        });
    }
    set_all(op, kinds)
}

fn have_same_kind(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.data_type == b.data_type,
        (Value::Sequence(a, x), Value::Sequence(b, y)) => a == b && x.len() == y.len(),
        (Value::Absent, Value::Absent) => true,
        _ => false,
    }
}

fn set_all(op: &mut Op<'_, '_, '_>, results: Vec<Value>) -> Result<()> {
    if results.len() < op.output_count() {
        return Err(Error::invalid(format!(
            "the subgraph returns {} values, but the node has {} outputs",
            results.len(),
            op.output_count()
        )));
    }
    for (k, value) in results.into_iter().enumerate() {
        op.set(k, value);
    }
    Ok(())
}

/// The values that a loop carries: a counter, its condition, its limit, and the values of the body.
struct State {
    initial: Vec<Array>,
    names: Vec<String>,
}

impl State {
    fn push(&mut self, name: &str, array: Array) -> usize {
        self.initial.push(array);
        self.names.push(name.to_owned());
        self.initial.len() - 1
    }

    /// The state as arguments of a function.
    fn arguments(&self, interface: &mut Interface<'_>) -> Vec<Array> {
        let pairs = self.names.iter().zip(&self.initial);
        pairs.map(|(name, array)| interface.argument(name, array.data_type)).collect()
    }
}

/// An array with a node of its own in a function.
fn added(interface: &mut Interface<'_>, op: &str, inputs: &[&Array], data_type: DataType) -> Result<Array> {
    let values: Vec<Ref> = inputs.iter().map(|array| array.value.clone()).collect();
    let attributes = if op.starts_with("Logical") { Vec::new() } else { vec![ty("T", inputs[0].data_type)] };
    Ok(Array::new(interface.body().add(op, op, &values, attributes)?.remove(0), data_type))
}

/// A list without elements, with room for as many as iterations. Without a count, it grows.
fn list(op: &mut Op<'_, '_, '_>, count: Option<&Array>, element: DataType) -> Result<Array> {
    let any = op.int32(-1)?;
    let (kind, count) = match count {
        Some(count) => ("TensorListReserve", op.cast(count, DataType::Int32)?),
        None => ("EmptyTensorList", any.clone()),
    };
    let attributes = [ty("element_dtype", element), ty("shape_type", DataType::Int32)];
    let value = op.node(kind, &[any.value, count.value], attributes)?;
    Ok(Array::new(value, DataType::Variant))
}

/// The list with an element at a position, or at its end.
fn with_element(
    interface: &mut Interface<'_>,
    list: &Array,
    position: Option<&Array>,
    element: &Array,
) -> Result<Array> {
    let body = interface.body();
    let (mut kind, mut inputs) = ("TensorListPushBack", vec![list.value.clone(), element.value.clone()]);
    if let Some(position) = position {
        let attributes = [ty("SrcT", position.data_type), ty("DstT", DataType::Int32)];
        let position = std::slice::from_ref(&position.value);
        kind = "TensorListSetItem";
        inputs.insert(1, body.add("position", "Cast", position, attributes)?.remove(0));
    }
    let attributes = [ty("element_dtype", element.data_type)];
    let value = body.add("list", kind, &inputs, attributes)?.remove(0);
    Ok(Array::new(value, DataType::Variant))
}

/// All elements of a list.
fn stacked(op: &mut Op<'_, '_, '_>, list: &Ref, element: DataType) -> Result<Array> {
    let any = op.int32(-1)?;
    let attributes = [ty("element_dtype", element), int("num_elements", -1)];
    let value = op.node("TensorListStack", &[list.clone(), any.value], attributes)?;
    Ok(Array::new(value, element))
}

fn repeat(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let body = op.graph("body")?;
    let carried_count = op.input_count().saturating_sub(2);
    if body.input.len() != carried_count + 2 || body.output.len() < carried_count + 1 {
        return Err(Error::invalid(format!(
            "the body has {} inputs and {} outputs, which do not fit {carried_count} carried values",
            body.input.len(),
            body.output.len()
        )));
    }
    let limit = op.optional(0)?.map(|limit| scalar_of(op, limit)).transpose()?;
    let limit = limit.map(|limit| op.cast(&limit, DataType::Int64)).transpose()?;
    let condition = op.optional(1)?.map(|condition| scalar_of(op, condition)).transpose()?;
    let values = (0..carried_count).map(|k| op.value(k + 2)).collect::<Result<Vec<Value>>>()?;
    if values.iter().any(|value| matches!(value, Value::Sequence(..))) {
        return unroll(op, body, [limit, condition], values);
    }
    let carried: Vec<Array> =
        (0..carried_count).map(|k| array_of(op.value(k + 2)?)).collect::<Result<_>>()?;
    let captured = op.converter.captured(op.frame, &[body])?;
    let starts_true =
        condition.as_ref().is_none_or(|c| c.constant.as_ref().and_then(|c| c.truth()) == Some(true));

    let mut state = State { initial: Vec::new(), names: Vec::new() };
    let counter = state.push("iteration", op.long(0)?);
    let initial = match &condition {
        Some(condition) => condition.clone(),
        None => op.scalar(DataType::Bool, 1.0)?,
    };
    let going = state.push("condition", initial);
    // A constant limit is repeated in the functions.
    let limit_at = limit
        .as_ref()
        .filter(|limit| limit.constant.is_none())
        .map(|limit| state.push("limit", limit.clone()));
    let first = state.initial.len();
    for (array, input) in carried.iter().zip(&body.input[2..]) {
        state.push(&tf::foreign::of_node(&input.name), array.clone());
    }
    let last = state.initial.len();
    let outer = arguments(&captured);

    let mut interface = op.converter.begin();
    let arguments_of_body = state.arguments(&mut interface);
    op.converter.bind(&mut interface, &captured)?;
    let mut inputs = vec![
        Value::Array(arguments_of_body[counter].clone()),
        Value::Array(arguments_of_body[going].clone()),
    ];
    // A condition that only the trip count ends is true in every iteration.
    if starts_true {
        let truth = op.converter.constant(interface.body(), "true", Constant::of_truth(true))?;
        inputs[1] = Value::Array(truth);
    }
    inputs.extend(arguments_of_body[first..last].iter().cloned().map(Value::Array));
    let results = op.converter.subgraph(&mut interface.frame, body, inputs)?;
    let results: Vec<Array> = results.into_iter().map(array_of).collect::<Result<_>>()?;
    let stays_true =
        starts_true && results[0].constant.as_ref().and_then(|constant| constant.truth()) == Some(true);
    let one = op.converter.constant(interface.body(), "one", Constant::of_longs(&[], &[1]))?;
    let next = added(&mut interface, "AddV2", &[&arguments_of_body[counter], &one], DataType::Int64)?;
    let mut new_state = vec![next];
    let shape = Constant::of_longs(&[0], &[]);
    let shape = op.converter.constant(interface.body(), "shape", shape)?;
    let reshape = [ty("T", DataType::Bool), ty("Tshape", DataType::Int64)];
    let inputs_of_reshape = [results[0].value.clone(), shape.value];
    let scalar = interface.body().add("condition", "Reshape", &inputs_of_reshape, reshape)?.remove(0);
    new_state.push(Array::new(scalar, DataType::Bool));
    new_state.extend(limit_at.map(|at| arguments_of_body[at].clone()));
    for (k, result) in results[1..=carried_count].iter().enumerate() {
        if result.data_type != carried[k].data_type {
            return Err(Error::invalid(format!(
                "carried value {k} has type {} before the loop and {} after an iteration",
                carried[k].data_type, result.data_type
            )));
        }
        new_state.push(result.clone());
    }
    new_state.extend(passed_on(&interface, &state, &outer));
    let parts: Vec<DataType> = types_of(&results[carried_count + 1..]);
    // The largest number stands for no limit: then the condition bounds the lists.
    let is_limit = |limit: &&Array| {
        let number = limit.constant.as_ref().and_then(|limit| limit.longs()?.first().copied());
        number.is_none_or(|number| number < i64::from(i32::MAX))
    };
    let count = limit.as_ref().filter(is_limit);
    let mut lists = Vec::new();
    for result in &results[carried_count + 1..] {
        lists.push(list(op, count, result.data_type)?);
        let list = interface.argument("parts", DataType::Variant);
        let position = count.map(|_| &arguments_of_body[counter]);
        new_state.push(with_element(&mut interface, &list, position, result)?);
    }
    let body_function = op.converter.finish(interface, &body.name, &new_state)?;

    let mut interface = op.converter.begin();
    let arguments_of_condition = state.arguments(&mut interface);
    for array in outer.iter().chain(&lists) {
        interface.argument("other", array.data_type);
    }
    let mut goes_on = None;
    if let Some(limit) = &limit {
        let limit = match (limit_at, &limit.constant) {
            (Some(at), _) => arguments_of_condition[at].clone(),
            (None, Some(constant)) => {
                op.converter.constant(interface.body(), "limit", (**constant).clone())?
            }
            (None, None) => return Err(Error::internal("a limit is neither carried nor constant")),
        };
        let counter = &arguments_of_condition[counter];
        goes_on = Some(added(&mut interface, "Less", &[counter, &limit], DataType::Bool)?);
    }
    let is_going = &arguments_of_condition[going];
    let goes_on = match goes_on {
        Some(is_below) if stays_true => is_below,
        Some(is_below) => added(&mut interface, "LogicalAnd", &[&is_below, is_going], DataType::Bool)?,
        None => is_going.clone(),
    };
    let condition_function =
        op.converter.finish(interface, &format!("{}_condition", body.name), &[goes_on])?;

    let results = run(op, &state, &outer, &lists, [&condition_function, &body_function])?;
    let lists_at = state.initial.len() + outer.len();
    for (k, array) in carried.iter().enumerate() {
        op.set(k, Value::Array(Array::new(results[first + k].clone(), array.data_type)));
    }
    for (k, &part) in parts.iter().enumerate() {
        let mut whole = stacked(op, &results[lists_at + k], part)?;
        if !stays_true && count.is_some() {
            whole = head(op, &whole, &results[counter])?;
        }
        op.set(carried_count + k, Value::Array(whole));
    }
    Ok(())
}

/// Translates the iterations of a loop one after the other. It carries sequences, which exist only
/// when compiling, so that the number of iterations must be known.
fn unroll<'a>(
    op: &mut Op<'_, 'a, '_>,
    body: &'a GraphProto,
    [limit, condition]: [Option<Array>; 2],
    mut carried: Vec<Value>,
) -> Result<()> {
    let unknown = || {
        Error::unsupported(
            "a loop that carries a sequence must have a constant number of iterations: sequences exist only \
             when compiling",
        )
    };
    let truth = |array: &Array| array.constant.as_ref().and_then(|constant| constant.truth());
    let mut goes_on = condition.as_ref().map_or(Some(true), truth).ok_or_else(unknown)?;
    let limit = match limit {
        Some(limit) => {
            let number = limit.constant.as_ref().and_then(|limit| limit.longs()?.first().copied());
            number.ok_or_else(unknown)?
        }
        None => i64::MAX,
    };
    let mut parts: Vec<Vec<Array>> = vec![Vec::new(); body.output.len() - 1 - carried.len()];
    let mut iteration = 0;
    while goes_on && iteration < limit {
        op.converter.count()?;
        let first = [op.long(iteration)?, op.constant(Constant::of_truth(true))?];
        let inputs = first.into_iter().map(Value::Array).chain(carried).collect();
        let mut results = op.converter.subgraph(op.frame, body, inputs)?.into_iter();
        let condition = results.next().ok_or_else(|| Error::invalid("the body has no condition"))?;
        goes_on = truth(&array_of(condition)?).ok_or_else(unknown)?;
        carried = results.by_ref().take(body.input.len() - 2).collect();
        for (parts, result) in parts.iter_mut().zip(results) {
            parts.push(array_of(result)?);
        }
        iteration += 1;
    }
    let first_part = carried.len();
    for (k, value) in carried.into_iter().enumerate() {
        op.set(k, value);
    }
    for (k, parts) in parts.into_iter().enumerate() {
        let first = parts.first().ok_or_else(|| {
            Error::unsupported("a loop that carries a sequence and has no iteration has no parts to join")
        })?;
        let attributes = [ty("T", first.data_type), int("N", parts.len() as i64), int("axis", 0)];
        let whole = op.node("Pack", &values_of(&parts), attributes)?;
        op.set(first_part + k, Value::Array(Array::new(whole, first.data_type)));
    }
    Ok(())
}

/// The captured values as a body returns them.
fn passed_on(interface: &Interface<'_>, state: &State, outer: &[Array]) -> Vec<Array> {
    let names = interface.argument_names();
    let pairs = names[state.initial.len()..].iter().zip(outer);
    pairs.map(|(name, array)| Array::new(Ref::argument(name), array.data_type)).collect()
}

/// Adds the loop, and returns the state after it.
fn run(
    op: &mut Op<'_, '_, '_>,
    state: &State,
    outer: &[Array],
    lists: &[Array],
    [condition, body]: [&str; 2],
) -> Result<Vec<Ref>> {
    let all: Vec<Array> = state.initial.iter().chain(outer).chain(lists).cloned().collect();
    let attributes = [types("T", &types_of(&all)), function("cond", condition), function("body", body)];
    op.add("While", &values_of(&all), attributes)
}

/// The first rows of an array.
fn head(op: &mut Op<'_, '_, '_>, x: &Array, count: &Ref) -> Result<Array> {
    let (begin, strides) = (op.longs(&[0])?, op.longs(&[1])?);
    let count = op.reshape(&Array::new(count.clone(), DataType::Int64), &[1])?;
    let attributes = [ty("T", x.data_type), ty("Index", DataType::Int64)];
    let inputs = [x.value.clone(), begin.value, count.value, strides.value];
    Ok(Array::new(op.node("StridedSlice", &inputs, attributes)?, x.data_type))
}

/// Integers of an attribute, one for each of a number of values.
fn per_value(op: &Op<'_, '_, '_>, name: &str, count: usize) -> Result<Vec<i64>> {
    let values = op.attribute(name).map_or_else(|| vec![0; count], |attribute| attribute.ints.clone());
    if values.len() == count {
        return Ok(values);
    }
    Err(Error::invalid(format!("{name}: expected {count} integers, got {}", values.len())))
}

/// A loop over the positions of an axis of arrays.
fn scan(op: &mut Op<'_, '_, '_>) -> Result<()> {
    if op.version() < 9 {
        return Err(Error::unsupported("Scan of version 8, with batches: convert the model to version 9"));
    }
    let body = op.graph("body")?;
    let scanned_count = usize::try_from(op.int("num_scan_inputs", 0)).unwrap_or(0);
    let carried_count = op.input_count().checked_sub(scanned_count);
    let carried_count = carried_count.filter(|_| scanned_count > 0);
    let carried_count =
        carried_count.ok_or_else(|| Error::invalid("num_scan_inputs does not fit the number of inputs"))?;
    if body.input.len() != op.input_count() || body.output.len() < carried_count {
        return Err(Error::invalid("the body's inputs and outputs do not fit the node's"));
    }
    let inputs: Vec<Array> = (0..op.input_count()).map(|k| op.input(k)).collect::<Result<_>>()?;
    let (carried, scanned) = inputs.split_at(carried_count);
    let axes = per_value(op, "scan_input_axes", scanned_count)?;
    let directions = per_value(op, "scan_input_directions", scanned_count)?;
    let parts_count = body.output.len() - carried_count;
    let output_axes = per_value(op, "scan_output_axes", parts_count)?;
    let output_directions = per_value(op, "scan_output_directions", parts_count)?;
    let captured = op.converter.captured(op.frame, &[body])?;
    let outer = arguments(&captured);

    let shape = op.node(
        "Shape",
        std::slice::from_ref(&scanned[0].value),
        [ty("T", scanned[0].data_type), ty("out_type", DataType::Int64)],
    )?;
    let count = element_of(op, &Array::new(shape, DataType::Int64), axes[0])?;
    let mut state = State { initial: Vec::new(), names: Vec::new() };
    let counter = state.push("iteration", op.long(0)?);
    let limit = state.push("limit", count.clone());
    for (array, input) in inputs.iter().zip(&body.input) {
        state.push(&tf::foreign::of_node(&input.name), array.clone());
    }
    let last_state = state.initial.len();

    let mut interface = op.converter.begin();
    let own = state.arguments(&mut interface);
    op.converter.bind(&mut interface, &captured)?;
    let first = limit + 1;
    let mut values: Vec<Value> =
        own[first..first + carried_count].iter().cloned().map(Value::Array).collect();
    let one = op.converter.constant(interface.body(), "one", Constant::of_longs(&[], &[1]))?;
    let last = added(&mut interface, "Sub", &[&own[limit], &one], DataType::Int64)?;
    let backward = added(&mut interface, "Sub", &[&last, &own[counter]], DataType::Int64)?;
    for k in 0..scanned_count {
        let x = &own[first + carried_count + k];
        let position = if directions[k] == 0 { &own[counter] } else { &backward };
        let axis = Constant::of_longs(&[], &[axes[k]]);
        let axis = op.converter.constant(interface.body(), "axis", axis)?;
        let attributes = [
            ty("Tparams", x.data_type),
            ty("Tindices", DataType::Int64),
            ty("Taxis", DataType::Int64),
            int("batch_dims", 0),
        ];
        let inputs = [x.value.clone(), position.value.clone(), axis.value];
        let part = interface.body().add("part", "GatherV2", &inputs, attributes)?.remove(0);
        values.push(Value::Array(Array::new(part, x.data_type)));
    }
    let results = op.converter.subgraph(&mut interface.frame, body, values)?;
    let results: Vec<Array> = results.into_iter().map(array_of).collect::<Result<_>>()?;
    let next = added(&mut interface, "AddV2", &[&own[counter], &one], DataType::Int64)?;
    let mut new_state = vec![next, own[limit].clone()];
    for (before, after) in carried.iter().zip(&results) {
        if before.data_type != after.data_type {
            return Err(Error::invalid("a carried value changes its type"));
        }
    }
    new_state.extend(results[..carried_count].iter().cloned());
    new_state.extend(own[first + carried_count..last_state].iter().cloned());
    new_state.extend(passed_on(&interface, &state, &outer));
    let parts: Vec<DataType> = types_of(&results[carried_count..]);
    let mut lists = Vec::new();
    for (k, result) in results[carried_count..].iter().enumerate() {
        let position = if output_directions[k] == 0 { &own[counter] } else { &backward };
        lists.push(list(op, Some(&count), result.data_type)?);
        let list = interface.argument("parts", DataType::Variant);
        new_state.push(with_element(&mut interface, &list, Some(position), result)?);
    }
    let body_function = op.converter.finish(interface, &body.name, &new_state)?;

    let mut interface = op.converter.begin();
    let own = state.arguments(&mut interface);
    for array in outer.iter().chain(&lists) {
        interface.argument("other", array.data_type);
    }
    let goes_on = added(&mut interface, "Less", &[&own[counter], &own[limit]], DataType::Bool)?;
    let condition_function =
        op.converter.finish(interface, &format!("{}_condition", body.name), &[goes_on])?;

    let results = run(op, &state, &outer, &lists, [&condition_function, &body_function])?;
    let lists_at = state.initial.len() + outer.len();
    for (k, array) in carried.iter().enumerate() {
        op.set(k, Value::Array(Array::new(results[first + k].clone(), array.data_type)));
    }
    for (k, &part) in parts.iter().enumerate() {
        let whole = stacked(op, &results[lists_at + k], part)?;
        let moved = super::own::moved_axis(op, &whole, output_axes[k])?;
        op.set(carried_count + k, Value::Array(moved));
    }
    Ok(())
}

/// An element of a vector.
fn element_of(op: &mut Op<'_, '_, '_>, x: &Array, index: i64) -> Result<Array> {
    let (begin, end) = (op.longs(&[index])?, op.longs(&[index.wrapping_add(1)])?);
    let strides = op.longs(&[1])?;
    let attributes = [ty("T", x.data_type), ty("Index", DataType::Int64), int("shrink_axis_mask", 1)];
    let inputs = [x.value.clone(), begin.value, end.value, strides.value];
    Ok(Array::new(op.node("StridedSlice", &inputs, attributes)?, x.data_type))
}
