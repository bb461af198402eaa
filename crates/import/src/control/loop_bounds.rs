//! Bounds on a loop's iterations, computed before its body is translated.
//!
//! A trial translates the condition, and the part of the body that computes the integers of the
//! loop's state. The rest of the state is unconstrained. Whatever `hlo::analysis` proves about that
//! loop holds for the real one. A loop without a bound gets the one that the user promises
//! (`--loop-bound`), and enforces it. If there is no promise, it gets an error message for ops that
//! need a bound.

use crate::control::loops::Loop;
use crate::node::context::NodeContext;
use crate::node::functions::FunctionPart;
use crate::node::name::name_within;
use crate::node::trial::Outcome;
use crate::values::value::Value;
use crate::values::value_type::ValueType;
use bounded::{LoopFacts, join_ranges};
use hlo::analysis::{Range, TripCount, range_in, state_ranges, state_ranges_within, trip_count};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{PrimitiveType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tf::{Function, NodeId, OutputId};

/// Facts about a loop, known before its body is translated.
pub(crate) struct Prospect {
    pub(crate) trips: TripCount,
    /// For each value that the loop carries, its range at the beginning of the body. Only for
    /// integers.
    pub(crate) ranges: Vec<Range>,
}

/// Maximum number of nodes in a slice of the body to analyze.
const MAX_SLICE: usize = 4096;

/// Analyzes a loop whose values have the given types and begin with the given instructions.
pub(crate) fn prospect<'p>(
    cx: &mut NodeContext<'_, 'p>,
    parts: &Loop<'p>,
    types: &[ValueType],
    leaves: &[(InstructionId, Shape)],
) -> Prospect {
    let unknown = || Prospect { trips: TripCount::default(), ranges: vec![Range::UNKNOWN; types.len()] };
    if cx.is_analysis() {
        // No trial needs the bound of a nested loop, and its results are found without it.
        // Otherwise, the work would double with each level of nesting.
        return unknown();
    }
    let prospect = cx.trial(|cx| {
        cx.begin_analysis();
        on_trial(cx, parts, types, leaves).map(Outcome::RollBack)
    });
    // An error here is reported again by the actual translation.
    prospect.unwrap_or_else(|_| unknown())
}

fn on_trial<'p>(
    cx: &mut NodeContext<'_, 'p>,
    parts: &Loop<'p>,
    types: &[ValueType],
    leaves: &[(InstructionId, Shape)],
) -> Result<Prospect> {
    let facts = LoopFacts { bound: None, why_unbounded: "its bound is not known yet".to_owned() };
    let scope = cx.loop_scope(&parts.condition.name, leaves, facts);
    let (condition, predicate) = parts.translate_condition(cx, scope, types)?;
    let body = condition.of_same_loop(&parts.body.name);
    let (mut body, next) = cx.within(body, |cx| integers_of_body(cx, parts, types))?;

    let captures = body.captures().expect("the scope of a loop has no captures");
    let (outer, count) = (captures.outer().to_vec(), captures.outer().len());
    let shapes = captures.shapes().to_vec();
    let mut elements = Vec::new();
    let mut others = Vec::new();
    for index in 0..count {
        let is_captured = body.captures().is_some_and(|captures| captures.is_captured(index));
        elements.push(match next.get(&index) {
            Some(&next) => next,
            None if is_captured => body.element(index),
            // The element becomes another value, about which nothing is known.
            None => {
                let other = body.capture_apart(outer[index], &shapes[index]);
                others.push(other);
                body.element(other)
            }
        });
    }
    elements.extend(others.into_iter().map(|other| body.element(other)));
    let (body, _) = body.finish(&elements);
    let (mut condition, _) = condition.finish_at(predicate);
    let parameter = condition.parameters()[0];
    condition.set_shape(parameter, body[body.parameters()[0]].shape().clone());
    let initial: Vec<Range> = outer.iter().map(|&outer| cx.range(outer)).collect();
    let of_element = |index: usize| initial.get(index).copied().unwrap_or(Range::UNKNOWN);
    let module = cx.module();
    let trips = trip_count(module, &condition, &body, &of_element);
    let states = match promised(cx) {
        Some(most) => state_ranges_within(module, &condition, &body, &of_element, most),
        None => state_ranges(module, &condition, &body, &of_element),
    };
    let states = inductive(module, &body, &initial, states);
    let mut ranges = Vec::new();
    let mut index = 0;
    for value_type in types {
        let leaves = value_type.leaves().len();
        let is_array = matches!(value_type, ValueType::Array(_));
        ranges.push(if is_array { states.get(index).copied().unwrap_or_default() } else { Range::UNKNOWN });
        index += leaves;
    }
    Ok(Prospect { trips, ranges })
}

/// Returns the next values of the state's integer elements, as far as they can be determined.
fn integers_of_body<'p>(
    cx: &mut NodeContext<'_, 'p>,
    parts: &Loop<'p>,
    types: &[ValueType],
) -> Result<BTreeMap<usize, InstructionId>> {
    let arguments = parts.arguments(cx, parts.body, &parts.body_needs, types)?;
    let mut next = BTreeMap::new();
    let mut index = 0;
    for (&k, value_type) in parts.carried.iter().zip(types) {
        if let ValueType::Array(shape) = value_type
            && shape.element_count() == 1
            && (shape.element_type.is_integer() || shape.element_type == PrimitiveType::Pred)
            && let Some(id) = slice_of_body(cx, parts.body, k, &arguments)
            && cx.scope_ref().shape(id).as_array() == Some(shape)
        {
            next.insert(index, id);
        }
        index += value_type.leaves().len();
    }
    Ok(next)
}

/// Translates one result of a loop's body, with only the nodes that it needs.
fn slice_of_body<'p>(
    cx: &mut NodeContext<'_, 'p>,
    body: &'p Function,
    result: usize,
    arguments: &[Value],
) -> Option<InstructionId> {
    let output = body.results[result];
    let needed = data_inputs(body, output);
    if needed.len() > MAX_SLICE {
        return None;
    }
    let part = FunctionPart { function: body, output, needed: &needed };
    let value = cx.trial(|cx| {
        let value = cx.translate_output(&part, arguments)?;
        Ok::<_, Error>(if value.is_some() { Outcome::Keep(value) } else { Outcome::RollBack(None) })
    });
    match value.ok().flatten()? {
        Value::Array(id) => Some(id),
        _ => None,
    }
}

/// Returns the nodes that an output is computed from.
fn data_inputs(function: &Function, output: OutputId) -> BTreeSet<NodeId> {
    let mut needed = BTreeSet::new();
    let mut waiting = vec![output.node];
    while let Some(id) = waiting.pop() {
        if needed.insert(id) {
            waiting.extend(function.graph.nodes[id].inputs.iter().map(|input| input.node));
        }
    }
    needed
}

/// Number of rounds that refine a guess at the ranges of a loop's state, and number of rounds in
/// which ranges may widen freely.
const MAX_GUESSES: usize = 12;
const FREE_GUESSES: usize = 3;

/// Returns ranges of a loop's state that hold before the loop and, by induction, in each iteration.
/// They show more than the steps and the condition do, for example about a maximum that the loop
/// carries.
pub(crate) fn inductive(
    module: &Module,
    body: &Computation,
    initial: &[Range],
    known: Vec<Range>,
) -> Vec<Range> {
    let Op::Tuple {} = body[body.root()].op() else { return known };
    let results = body[body.root()].operands();
    let narrow = |a: Range, b: Range| Range { low: a.low.or(b.low), high: a.high.or(b.high) };
    let after = |state: &[Range]| -> Vec<Range> {
        results.iter().map(|&result| range_of_state(module, body, result, state)).collect()
    };
    let at = |ranges: &[Range], k: usize| ranges.get(k).copied().unwrap_or_default();
    // Guess the ranges after a few iterations, then check that they are stable. Give up those that
    // are not.
    let mut guess: Vec<Range> = (0..results.len()).map(|k| narrow(at(&known, k), at(initial, k))).collect();
    let mut is_given_up = vec![false; results.len()];
    for round in 0..MAX_GUESSES {
        let next = after(&guess);
        let mut is_stable = true;
        for k in 0..results.len() {
            let wider = if is_given_up[k] {
                at(&known, k)
            } else {
                narrow(at(&known, k), join_ranges(guess[k], at(&next, k)))
            };
            if wider == guess[k] {
                continue;
            }
            is_stable = false;
            is_given_up[k] = round >= FREE_GUESSES;
            guess[k] = if is_given_up[k] { at(&known, k) } else { wider };
        }
        if is_stable {
            return guess;
        }
    }
    known
}

/// Returns the range of an instruction of a loop's body, given the ranges of the state.
pub(crate) fn range_of_state(
    module: &Module,
    body: &Computation,
    id: InstructionId,
    state: &[Range],
) -> Range {
    let parameter = body.parameters()[0];
    let of_leaf = |leaf: InstructionId| match *body[leaf].op() {
        Op::GetTupleElement { index } if body[leaf].operands()[0] == parameter => {
            state.get(index).copied().filter(|&range| range != Range::UNKNOWN)
        }
        _ => None,
    };
    range_in(module, body, id, &of_leaf)
}

/// Returns the names by which the user may promise a bound for a loop: the node's name, with or
/// without the calls that lead to it, and the part before `/while_context`.
pub(crate) fn names(full_name: &str, node_name: &str) -> Vec<String> {
    let mut names = Vec::new();
    for name in [full_name, node_name] {
        names.push(name.to_owned());
        names.extend(name.rsplit_once("/while_context").map(|(before, _)| before.to_owned()));
    }
    names
}

/// Returns the maximum number of iterations that the user promises, if any.
pub(crate) fn promised(cx: &NodeContext<'_, '_>) -> Option<u64> {
    let names = names(cx.name(), &cx.node().name);
    let promised = names.iter().find_map(|name| cx.program().loop_bounds.get(name));
    promised.and_then(|&bound| u64::try_from(bound).ok())
}

/// Explains why a loop has no bound and how to supply one. Messages prefix this with the op that
/// needs the bound.
pub(crate) fn why_unbounded<'p>(cx: &NodeContext<'_, 'p>, parts: &Loop<'p>) -> String {
    let origins = origins(cx, parts);
    let origins = match origins.as_slice() {
        [] => "values that the loop computes".to_owned(),
        origins => origins.join(", "),
    };
    let (condition, op) = parts.condition_node();
    let condition = name_within(&format!("{}/", cx.name()), condition);
    let names = names(cx.name(), &cx.node().name);
    let short = names.iter().map(String::as_str).min_by_key(|name| name.len()).unwrap_or(cx.name());
    format!(
        "the loop '{}' (op '{}') has no iteration bound: its condition, node '{condition}' (op '{op}'), depends on \
         {origins}. Make the limit a constant, or promise at most N iterations with --loop-bound {short}=N: the loop then \
         stops after N.",
        cx.name(),
        cx.node().op
    )
}

/// Describes the feeds and variables that a loop's condition depends on, in the first iteration or
/// through the body.
fn origins<'p>(cx: &NodeContext<'_, 'p>, parts: &Loop<'p>) -> Vec<String> {
    let mut origins = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting = arguments_of(parts.condition, parts.condition.results[0]);
    while let Some(k) = waiting.pop() {
        if !seen.insert(k) {
            continue;
        }
        match parts.inputs[k] {
            Value::Array(id) => origins.extend(cx.origins(id)),
            Value::Resource(variable) | Value::Reference(variable) => {
                origins.insert(format!("the variable '{}'", cx.variable_name(variable)));
            }
            _ => {}
        }
        if parts.carried.contains(&k) {
            waiting.extend(arguments_of(parts.body, parts.body.results[k]));
        }
    }
    origins.into_iter().collect()
}

/// Returns the arguments that an output of a function is computed from.
fn arguments_of(function: &Function, output: OutputId) -> Vec<usize> {
    let needed = data_inputs(function, output);
    (0..function.arguments.len()).filter(|&k| needed.contains(&function.arguments[k])).collect()
}

/// Rejects promises for loops that do not exist.
pub(crate) fn check_promises(program: &tf::Program) -> Result<()> {
    if program.loop_bounds.is_empty() {
        return Ok(());
    }
    let graphs = std::iter::once(&program.graph).chain(program.library.functions().map(|f| &f.graph));
    let mut known = BTreeSet::new();
    for (_, node) in graphs.flat_map(|graph| graph.nodes.iter()) {
        if matches!(node.op.as_str(), "While" | "StatelessWhile" | "XlaWhile") {
            known.extend(names(&node.name, &node.name));
        }
    }
    for (name, &bound) in &program.loop_bounds {
        if bound < 0 {
            return Err(Error::invalid(format!(
                "--loop-bound {name}={bound}: expected a number of iterations >= 0"
            )));
        }
        // The name may have the names of the calls that lead to the loop as a prefix.
        let is_known = known.iter().any(|known| name == known || name.ends_with(&format!("/{known}")));
        if !is_known {
            let loops: Vec<String> = known.iter().take(8).map(|name| format!("'{name}'")).collect();
            let loops = if loops.is_empty() { "none".to_owned() } else { loops.join(", ") };
            return Err(Error::invalid(format!(
                "--loop-bound {name}={bound}: the graph has no loop of that name; its loops: {loops}"
            )));
        }
    }
    Ok(())
}
