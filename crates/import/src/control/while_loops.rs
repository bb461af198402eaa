//! Loops: `While` becomes HLO's `while`.
//!
//! The state is one tuple: the arrays of the values that the loop carries, then the outer values
//! that the condition and the body read, and the variables that they touch. Arguments that the body
//! returns unchanged are captured instead of carried. Small constants among them are rebuilt
//! inside, so that shapes and axes remain compile-time constants there.

use crate::control::loop_bounds::{Prospect, inductive, promised, prospect, range_of_state, why_unbounded};
use crate::control::loops::Loop;
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_values};
use crate::node::trial::Outcome;
use crate::values::value::Value;
use crate::values::value_type::{self, ValueType, leaves_of, rebuild};
use bounded::{LoopFacts, Scope, VariableId};
use hlo::analysis::{Range, induction_variables, state_ranges, trip_count};
use hlo::{ComparisonDirection, Computation, InstructionId, Op};
use shape::{Literal, PrimitiveType, Scalar, Shape};
use std::collections::BTreeMap;
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule_values("While", while_op).effect(),
    rule_values("StatelessWhile", while_op),
    rule_values("XlaWhile", while_op).effect(),
];

/// Maximum number of translations of a body before the types that it carries must be stable.
const MAX_ROUNDS: usize = 10;

/// Maximum number of iterations to unroll if the shape of an array changes from one iteration to
/// the next. The gradients of TensorFlow 1's loops concatenate rows that way.
const MAX_UNROLLED: u64 = 128;

/// The first stage of a loop's translation: facts known before its body is translated.
struct Probe<'p> {
    parts: Loop<'p>,
    /// The values that it carries, before the loop, and their types.
    initial: Vec<Value>,
    initial_types: Vec<ValueType>,
    /// These types without a capacity for lists.
    opened: Vec<ValueType>,
    /// Number of iterations, if it is known.
    trips: Option<u64>,
    /// Maximum number of iterations that the user promises.
    promised: Option<u64>,
    known: Known,
}

/// Facts that the translation of a loop may rely on.
struct Known {
    facts: LoopFacts,
    /// For each value that it carries, its range at the beginning of the body.
    ranges: Vec<Range>,
}

/// The second stage: a translation with types that are the same in all iterations.
struct Settled {
    types: Vec<ValueType>,
    round: Round,
    /// Number of arrays that the loop carries.
    count: usize,
}

/// A translated condition and body whose computations are still open.
struct Round {
    condition: Scope,
    predicate: InstructionId,
    body: Scope,
    /// The next values of the carried values, in the body's scope.
    results: Vec<Value>,
    types: Vec<ValueType>,
}

/// The reason why a loop cannot be translated.
enum Failure {
    /// An iteration changes the shape of an array that the loop carries.
    NewShape(Error),
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Failure {
    fn into_error(self) -> Error {
        let (Self::NewShape(error) | Self::Other(error)) = self;
        error
    }
}

/// `While(inputs...)`: applies `body` to the values while `cond` of them is true.
fn while_op(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let probe = Probe::new(Loop::new(cx)?, cx)?;
    let types = probe.find_types(cx);
    if probe.trips == Some(0) {
        return probe.without_iterations(cx, types);
    }
    match types.and_then(|types| probe.settle(cx, types)) {
        Ok(settled) => probe.build(cx, settled),
        Err(failure) => match (failure, probe.trips) {
            (Failure::NewShape(_), Some(count))
                if probe.promised.is_none() && count <= MAX_UNROLLED && !cx.is_analysis() =>
            {
                probe.parts.unrolled(cx, count)
            }
            (Failure::NewShape(error), _) if !cx.is_analysis() => {
                probe.after_first(cx).ok().flatten().ok_or(error)
            }
            (failure, _) => Err(failure.into_error()),
        },
    }
}

/// Returns the arrays that represent carried values of these types before the loop.
fn start(
    cx: &mut NodeContext<'_, '_>,
    initial: &[Value],
    types: &[ValueType],
) -> Result<Vec<(InstructionId, Shape)>> {
    let mut start = Vec::new();
    for (&value, value_type) in initial.iter().zip(types) {
        let value = value_type::coerce(cx, value, value_type)?;
        start.extend(leaves_of(cx, value, value_type));
    }
    let shape = |id: InstructionId| (id, cx.scope_ref().shape(id).clone());
    Ok(start.into_iter().map(shape).collect())
}

impl<'p> Probe<'p> {
    /// Analyzes the loop before its body is translated.
    fn new(parts: Loop<'p>, cx: &mut NodeContext<'_, 'p>) -> Result<Self> {
        let initial: Vec<Value> = parts.carried.iter().map(|&k| parts.inputs[k]).collect();
        let initial_types: Vec<ValueType> =
            initial.iter().map(|&value| value_type::value_type(cx, value)).collect();
        let opened = value_type::open(&initial_types);
        let start = start(cx, &initial, &opened)?;
        let Prospect { trips, ranges } = prospect(cx, &parts, &opened, &start);
        let promised = promised(cx).filter(|&promised| trips.bound.is_none_or(|bound| bound > promised));
        let exact = if promised == Some(0) { Some(0) } else { trips.exact };
        let bound = promised.or(trips.bound);
        let why_unbounded = if bound.is_none() { why_unbounded(cx, &parts) } else { String::new() };
        let facts = LoopFacts { bound, why_unbounded };
        Ok(Self {
            parts,
            initial,
            initial_types,
            opened,
            trips: exact,
            promised,
            known: Known { facts, ranges },
        })
    }

    /// Translates the condition and the body with values of the given types.
    fn translate(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        types: &[ValueType],
        start: &[(InstructionId, Shape)],
        known: &Known,
    ) -> Result<Round> {
        let parts = &self.parts;
        let scope = cx.loop_scope(&parts.condition.name, start, known.facts.clone());
        let (condition, predicate) = parts.translate_condition(cx, scope, types)?;
        let body = condition.of_same_loop(&parts.body.name);
        let (body, (results, types)) = cx.within(body, |cx| {
            let arguments = parts.arguments(cx, parts.body, &parts.body_needs, types)?;
            for (&k, &range) in parts.carried.iter().zip(&known.ranges) {
                if let (Value::Array(id), true) = (arguments[k], range != Range::UNKNOWN) {
                    cx.note_range(id, range);
                }
            }
            let all = cx.translate_function(parts.body, &arguments)?;
            let (mut results, mut types) = (Vec::new(), Vec::new());
            for &k in &parts.carried {
                let result = cx.dereferenced(all[k]);
                types.push(value_type::value_type(cx, result));
                results.push(result);
            }
            Ok((results, types))
        })?;
        Ok(Round { condition, predicate, body, results, types })
    }

    /// Translates and returns the first error. If problems are collected, an error causes a second
    /// translation that collects all of them.
    fn translate_or_collect(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        types: &[ValueType],
        start: &[(InstructionId, Shape)],
    ) -> Result<Round> {
        let round = cx.trial(|cx| {
            cx.return_problems();
            self.translate(cx, types, start, &self.known).map(Outcome::Keep)
        });
        match round {
            Err(_) if cx.is_collecting() => self.translate(cx, types, start, &self.known),
            round => round,
        }
    }

    /// Derives the types of the next round from the types of the body's results.
    fn next_types(&self, before: &[ValueType], results: &[ValueType]) -> Result<Vec<ValueType>, Failure> {
        for (place, (before, result)) in before.iter().zip(results).enumerate() {
            if let Err(error) = value_type::join(before, result) {
                let (k, name) = (self.parts.carried[place], self.parts.carried_name(place));
                let error = error.context(format!(
                    "loop variable {k} ('{name}') changes its type or shape between the beginning and the \
                     end of an iteration"
                ));
                return Err(match (before, result) {
                    (
                        ValueType::Array(_) | ValueType::Named(..),
                        ValueType::Array(_) | ValueType::Named(..),
                    ) => Failure::NewShape(error),
                    _ => Failure::Other(error),
                });
            }
        }
        Ok(value_type::carried(before, results)?)
    }

    /// Infers the types that the loop carries, with enough room for lists.
    fn find_types(&self, cx: &mut NodeContext<'_, 'p>) -> Result<Vec<ValueType>, Failure> {
        let mut types = self.opened.clone();
        if !types.iter().any(|value_type| matches!(value_type, ValueType::List(_))) {
            return Ok(types);
        }
        if cx.is_analysis() {
            return Err(cx.invalid("a trial does not analyze loops that carry lists").into());
        }
        for _ in 0..MAX_ROUNDS {
            let results = cx.trial(|cx| {
                let start = start(cx, &self.initial, &types)?;
                self.translate_or_collect(cx, &types, &start).map(|round| Outcome::RollBack(round.types))
            })?;
            let next = self.next_types(&types, &results)?;
            if next == types {
                let settled =
                    value_type::settle(&self.initial_types, &types, &results, self.known.facts.bound);
                return settled.map_err(|place| {
                    let name = self.parts.carried_name(place);
                    let error = Error::unsupported(format!(
                        "the tensor list of the loop variable '{name}' needs a slot for each iteration, but {}",
                        self.known.facts.why_unbounded
                    ));
                    error.coded(Code::LoopBound).into()
                });
            }
            types = next;
        }
        Err(unsettled(cx).into())
    }

    /// Translates until the types are stable, and returns the last translation.
    fn settle(&self, cx: &mut NodeContext<'_, 'p>, mut types: Vec<ValueType>) -> Result<Settled, Failure> {
        for _ in 0..MAX_ROUNDS {
            let round = cx.trial(|cx| {
                let start = start(cx, &self.initial, &types)?;
                let round = self.translate_or_collect(cx, &types, &start)?;
                let next = self.next_types(&types, &round.types)?;
                if next == types {
                    return Ok(Outcome::Keep(Some((round, start.len()))));
                }
                types = next;
                Ok::<_, Failure>(Outcome::RollBack(None))
            })?;
            if let Some((round, count)) = round {
                return Ok(Settled { types, round, count });
            }
        }
        Err(unsettled(cx).into())
    }

    /// Returns the values after a loop whose first iteration changes the shape of an array that the
    /// later ones keep: one iteration, and a loop from its results. `None` if it is not known that
    /// the loop runs at all, because then the shape would depend on the condition.
    fn after_first(&self, cx: &mut NodeContext<'_, 'p>) -> Result<Option<Vec<Value>>> {
        cx.trial(|cx| {
            cx.return_problems();
            if !self.parts.begins(cx)? {
                return Ok(Outcome::RollBack(None));
            }
            let mut inputs = self.parts.unrolled(cx, 1)?;
            for value in &mut inputs {
                // Bounds follow from constants, not from the arithmetic that leads to them.
                if let Value::Array(id) = *value
                    && cx.array(id).element_count() <= 1
                    && let Some(known) = cx.fold(id)
                {
                    *value = Value::Array(cx.literal(known));
                }
            }
            let mut rest = Self::new(self.parts.from(inputs), cx)?;
            rest.promised = self.promised.map(|promised| promised.saturating_sub(1));
            let types = rest.find_types(cx);
            let values = match rest.trips {
                Some(0) => rest.without_iterations(cx, types)?,
                _ => {
                    let settled = types.and_then(|types| rest.settle(cx, types));
                    rest.build(cx, settled.map_err(Failure::into_error)?)?
                }
            };
            Ok(Outcome::Keep(Some(values)))
        })
    }

    /// Returns the values after a loop that never runs: those before it. Lists get the types that
    /// the loop would give them.
    fn without_iterations(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        types: Result<Vec<ValueType>, Failure>,
    ) -> Result<Vec<Value>> {
        self.learn_elements(cx);
        let mut values = self.parts.inputs.clone();
        if let Ok(types) = types {
            for ((&k, &value), value_type) in self.parts.carried.iter().zip(&self.initial).zip(&types) {
                values[k] = value_type::coerce(cx, value, value_type)?;
            }
        }
        Ok(values)
    }

    /// Translates a body that never runs, to learn the shapes of the elements of tensor arrays and
    /// stacks.
    fn learn_elements(&self, cx: &mut NodeContext<'_, 'p>) {
        let facts = LoopFacts { bound: Some(0), why_unbounded: String::new() };
        let known = Known { facts, ranges: Vec::new() };
        let learned = cx.trial(|cx| {
            cx.return_problems();
            if let Ok(start) = start(cx, &self.initial, &self.initial_types) {
                // Errors in the body do not matter, since it is not part of the program.
                let _unused = self.translate(cx, &self.initial_types, &start, &known);
            }
            Ok::<_, Error>(Outcome::RollBack(cx.element_shapes()))
        });
        cx.learn_element_shapes(learned.unwrap_or_default());
    }

    /// Builds the `while` from its translation, and returns the values after it.
    fn build(&self, cx: &mut NodeContext<'_, 'p>, settled: Settled) -> Result<Vec<Value>> {
        let Settled { types, round, count } = settled;
        let Round { mut condition, mut predicate, body, results, .. } = round;
        let (mut body, next) = cx.within(body, |cx| {
            let mut next = Vec::new();
            for (&value, value_type) in results.iter().zip(&types) {
                let value = value_type::coerce(cx, value, value_type)?;
                next.extend(leaves_of(cx, value, value_type));
            }
            Ok(next)
        })?;
        let mut next: BTreeMap<usize, InstructionId> = next.into_iter().enumerate().collect();
        let written = add_written(cx, &mut body, &mut next);
        if let Some(promised) = self.promised {
            (condition, predicate) = add_guard(cx, condition, predicate, &mut body, &mut next, promised)?;
        }
        let outer = body.captures().map(|captures| captures.outer().to_vec()).unwrap_or_default();
        let elements: Vec<InstructionId> = (0..outer.len())
            .map(|index| next.get(&index).copied().unwrap_or_else(|| body.element(index)))
            .collect();
        let (body, _) = body.finish(&elements);
        let (mut condition, _) = condition.finish_at(predicate);
        let parameter = condition.parameters()[0];
        condition.set_shape(parameter, body[body.parameters()[0]].shape().clone());
        let exits = exits(cx, &condition, &body, &outer);

        let tuple = cx.op(Op::Tuple {}, &outer)?;
        let condition = cx.add_computation(condition);
        let body = cx.add_computation(body);
        let while_loop = cx.op(Op::While { condition, body }, &[tuple])?;
        let after = |cx: &mut NodeContext<'_, 'p>, index: usize| -> Result<InstructionId> {
            if let Some(literal) = exits[index].as_ref().and_then(|exit| exit.value.clone()) {
                return Ok(cx.literal(literal));
            }
            let id = cx.tuple_element(while_loop, index)?;
            if let Some(exit) = &exits[index] {
                cx.note_range(id, exit.range);
            }
            Ok(id)
        };
        let mut values = self.parts.inputs.clone();
        let closed = value_type::closed(&self.initial_types, &types);
        let mut index = 0;
        for (&k, value_type) in self.parts.carried.iter().zip(&closed) {
            let count = value_type.leaves().len();
            let leaves: Vec<InstructionId> =
                (index..index + count).map(|index| after(cx, index)).collect::<Result<_>>()?;
            index += count;
            values[k] = rebuild(cx, value_type, &leaves);
        }
        debug_assert_eq!(index, count, "the number of arrays of closed and carried types differs");
        for (variable, (index, writer)) in written {
            let value = after(cx, index)?;
            cx.write_variable(variable, value, &writer);
        }
        Ok(values)
    }
}

fn unsettled(cx: &NodeContext<'_, '_>) -> Error {
    Error::unsupported(format!(
        "the types that the loop '{}' carries still change after {MAX_ROUNDS} rounds",
        cx.name()
    ))
}

/// Makes the variables that the body writes part of the state. Returns their elements and writers.
fn add_written(
    cx: &mut NodeContext<'_, '_>,
    body: &mut Scope,
    next: &mut BTreeMap<usize, InstructionId>,
) -> BTreeMap<VariableId, (usize, String)> {
    let mut written = BTreeMap::new();
    for (variable, writer) in body.written().clone() {
        let outer = cx.read_variable(variable);
        let shape = cx.scope_ref().shape(outer).clone();
        body.capture_variable(variable, outer, &shape);
        let index = body.captures().and_then(|captures| captures.variables().get(&variable).copied());
        let (Some(index), Some(value)) = (index, body.variable(variable)) else {
            unreachable!("the loop did not capture a variable that it writes")
        };
        next.insert(index, value);
        written.insert(variable, (index, writer));
    }
    written
}

/// Makes the loop stop after the number of iterations that the user promised.
fn add_guard(
    cx: &mut NodeContext<'_, '_>,
    condition: Scope,
    predicate: InstructionId,
    body: &mut Scope,
    next: &mut BTreeMap<usize, InstructionId>,
    promised: u64,
) -> Result<(Scope, InstructionId)> {
    let limit = Literal::scalar(i64::try_from(promised).unwrap_or(i64::MAX));
    let zero = cx.literal(Literal::scalar(0i64));
    let shape = Shape::array(PrimitiveType::S64, &[]);
    let index = body.capture_apart(zero, &shape);
    let counter = body.element(index);
    let one = body.add_constant(Literal::scalar(1i64));
    let more = body.add(cx.module(), Op::Add {}, &[counter, one], None)?;
    next.insert(index, more);
    let mut condition = condition;
    condition.match_elements(body);
    let counter = condition.element(index);
    cx.within(condition, |cx| {
        let limit = cx.literal(limit);
        let runs = cx.compare(ComparisonDirection::Lt, counter, limit)?;
        cx.op(Op::And {}, &[predicate, runs])
    })
}

/// An element of the state after a loop.
struct Exit {
    range: Range,
    /// The value, if it is known.
    value: Option<Literal>,
}

/// Returns what is known about the state after a loop. Only for integers.
fn exits(
    cx: &NodeContext<'_, '_>,
    condition: &Computation,
    body: &Computation,
    outer: &[InstructionId],
) -> Vec<Option<Exit>> {
    let module = cx.module();
    let is_scalar = |id: InstructionId| {
        let array = cx.scope_ref().shape(id).as_array();
        array.filter(|array| array.rank() == 0 && array.element_type.is_signed_integer())
    };
    // The first value of a flag says whether the loop runs at all.
    let is_flag = |id: InstructionId| *cx.scope_ref().shape(id) == Shape::scalar(PrimitiveType::Pred);
    let first = |&outer: &InstructionId| {
        if is_scalar(outer).is_some() || is_flag(outer) { cx.range(outer) } else { Range::UNKNOWN }
    };
    let initial: Vec<Range> = outer.iter().map(first).collect();
    let of_element = |index: usize| initial.get(index).copied().unwrap_or_default();
    let trips = trip_count(module, condition, body, &of_element);
    let states = state_ranges(module, condition, body, &of_element);
    let states = inductive(module, body, &initial, states);
    // If the number of iterations is known, so are the induction variables in the last one.
    let mut last = states.clone();
    if let Some(before_last) = trips.exact.and_then(|exact| i64::try_from(exact).ok()?.checked_sub(1)) {
        for (k, step) in induction_variables(module, body) {
            let value =
                initial[k].value().and_then(|start| start.checked_add(step.checked_mul(before_last)?));
            if let (Some(value), true) = (value, k < last.len()) {
                last[k] = Range::exactly(value);
            }
        }
    }
    let ran = trips.exact.is_some_and(|exact| exact > 0);
    let results = body[body.root()].operands();
    let exit = |(k, &outer): (usize, &InstructionId)| {
        let array = is_scalar(outer)?;
        let after = range_of_state(module, body, results[k], if ran { &last } else { &states });
        let range = if ran { after } else { bounded::join_ranges(initial[k], after) };
        let value = range.value().map(|value| Literal::from_scalars(array.clone(), [Scalar::Signed(value)]));
        (range != Range::UNKNOWN).then_some(Exit { range, value })
    };
    outer.iter().enumerate().map(exit).collect()
}
