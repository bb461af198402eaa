//! Loops: `While` becomes HLO's `while`.
//!
//! The state is one tuple: the arrays of the values that the loop carries, then what condition and body read from outside,
//! which stays as it is, and the variables that they touch. Arguments that the body returns unchanged are not carried:
//! they are captured, and small constants among them are built again inside, so that shapes and axes stay known there.

use crate::builder::scope::{LoopFacts, Scope};
use crate::control::calls::function;
use crate::control::loop_bounds::{inductive, promised, prospect, range_of_state, why_unbounded};
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_values};
use crate::values::value::{Value, VariableId};
use crate::values::value_type::{self, ValueType, leaves, rebuild};
use crate::walk::importer::needed_nodes;
use hlo::analysis::{Range, induction_variables, state_ranges, trip_count};
use hlo::{ComparisonDirection, Computation, InstructionId, Op};
use shape::{Literal, PrimitiveType, Scalar, Shape};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Error, Result};
use tf::{Function, NodeId};

pub(crate) const RULES: &[Rule] = &[
    rule_values("While", while_op).effect(),
    rule_values("StatelessWhile", while_op),
    rule_values("XlaWhile", while_op).effect(),
];

/// How often a body is translated until the types of what it carries stay.
const MAX_ROUNDS: usize = 10;

/// Iterations that are translated one behind the other where arrays change their shapes from one to the next: gradients of
/// TensorFlow 1's loops put rows together like that.
const MAX_UNROLLED: u64 = 128;

/// A loop's functions and inputs.
pub(crate) struct Loop<'p> {
    pub(crate) condition: &'p Function,
    pub(crate) body: &'p Function,
    /// The values before the loop, all of them; references among those that are carried have been read.
    pub(crate) inputs: Vec<Value>,
    /// Which of them change.
    pub(crate) carried: Vec<usize>,
    pub(crate) condition_needs: BTreeSet<NodeId>,
    pub(crate) body_needs: BTreeSet<NodeId>,
    /// Whether an array that it carries was found to have another shape after an iteration.
    changes_shapes: Cell<bool>,
}

/// A condition and a body that have been translated, their computations still open.
struct Round {
    condition: Scope,
    predicate: InstructionId,
    body: Scope,
    /// The next values of what the loop carries: of the body's scope.
    results: Vec<Value>,
    types: Vec<ValueType>,
}

/// `While(inputs...)`: applies `body` to the values as long as `cond` of them is true.
fn while_op(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let of = Loop::new(cx)?;
    let initial: Vec<Value> = of.carried.iter().map(|&k| of.inputs[k]).collect();
    let initial_types: Vec<ValueType> =
        initial.iter().map(|&value| value_type::value_type(cx.importer, value)).collect();
    let opened = value_type::open(&initial_types);
    let start = of.start(cx, &initial, &opened)?;
    let ahead = prospect(cx, &of, &opened, &start);
    let mut trips = ahead.trips;
    let promised = promised(cx).filter(|&promised| trips.bound.is_none_or(|bound| bound > promised));
    if promised == Some(0) {
        trips.exact = Some(0);
    }
    let bound = promised.or(trips.bound);
    let why_unbounded = if bound.is_none() { why_unbounded(cx, &of) } else { String::new() };
    let facts = LoopFacts { bound, why_unbounded };
    let snapshot = cx.importer.snapshot();
    let types = of.find_types(cx, &initial, &initial_types, opened, &facts, &ahead.ranges);
    if trips.exact == Some(0) {
        return of.without_iterations(cx, &initial, types);
    }
    let settled = types.and_then(|mut types| {
        let (round, start) = of.settled(cx, &initial, &mut types, &facts, &ahead.ranges)?;
        Ok((types, round, start))
    });
    let count = trips.exact.filter(|&count| promised.is_none() && count <= MAX_UNROLLED);
    match (settled, count) {
        (Ok((types, round, start)), _) => of.build(cx, &initial_types, types, round, start, promised),
        (Err(_), Some(count)) if of.changes_shapes.get() && !cx.importer.is_trial => {
            cx.importer.restore(&snapshot);
            of.unrolled(cx, count)
        }
        (Err(error), _) => Err(error),
    }
}

impl<'p> Loop<'p> {
    fn new(cx: &mut NodeContext<'_, 'p>) -> Result<Self> {
        let condition = function(cx, cx.node.attributes.func("cond")?.0)?;
        let body = function(cx, cx.node.attributes.func("body")?.0)?;
        let count = cx.inputs.len();
        for (function, what) in [(condition, "condition"), (body, "body")] {
            cx.check(function.arguments.len() == count, || {
                format!(
                    "the loop's {what} '{}' takes {} arguments, but the node has {count} inputs",
                    function.name,
                    function.arguments.len()
                )
            })?;
        }
        cx.check(body.results.len() == count && condition.results.len() == 1, || {
            format!(
                "the loop's body must return {count} values and its condition one, not {} and {}",
                body.results.len(),
                condition.results.len()
            )
        })?;
        let passed = cx.importer.passed_arguments(body);
        let carried: Vec<usize> = (0..count).filter(|&k| passed[k] != Some(k)).collect();
        let mut inputs = cx.inputs.clone();
        for &k in &carried {
            if let Value::Reference(variable) = inputs[k] {
                inputs[k] = Value::Array(cx.importer.read_variable(variable));
            }
        }
        let (condition_needs, body_needs) =
            (needed_nodes(cx.importer.program, condition), needed_nodes(cx.importer.program, body));
        let changes_shapes = Cell::new(false);
        Ok(Self { condition, body, inputs, carried, condition_needs, body_needs, changes_shapes })
    }

    /// The name and op of the node that decides.
    pub(crate) fn condition_node(&self) -> (&'p str, &'p str) {
        let graph = &self.condition.graph;
        let mut node = &graph.nodes[self.condition.results[0].node];
        while let ("Identity", [input]) = (node.op.as_str(), node.inputs.as_slice()) {
            node = &graph.nodes[input.node];
        }
        (&node.name, &node.op)
    }

    /// The arrays that the carried values are made of before the loop.
    fn start(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        initial: &[Value],
        types: &[ValueType],
    ) -> Result<Vec<(InstructionId, Shape)>> {
        let mut start = Vec::new();
        for (&value, value_type) in initial.iter().zip(types) {
            let value = value_type::coerce(cx.importer, value, value_type)?;
            start.extend(leaves(cx.importer, value));
        }
        let shape = |id: InstructionId| (id, cx.importer.scope_ref().shape(id).clone());
        Ok(start.into_iter().map(shape).collect())
    }

    /// The arguments of the condition or the body, whose scope is the innermost.
    pub(crate) fn arguments(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        function: &Function,
        needed: &BTreeSet<NodeId>,
        types: &[ValueType],
    ) -> Result<Vec<Value>> {
        let mut carried = BTreeMap::new();
        let mut index = 0;
        for (&k, value_type) in self.carried.iter().zip(types) {
            let count = value_type.leaves().len();
            let leaves: Vec<InstructionId> =
                (index..index + count).map(|index| cx.importer.scope().element(index)).collect();
            index += count;
            carried.insert(k, rebuild(cx.importer, value_type, &leaves));
        }
        let mut arguments = Vec::new();
        for (k, (&value, argument)) in self.inputs.iter().zip(&function.arguments).enumerate() {
            arguments.push(match carried.get(&k) {
                Some(&value) => value,
                None => cx.importer.bring_in(value, needed.contains(argument)),
            });
        }
        Ok(arguments)
    }

    /// Translates the condition; its scope and the truth value.
    pub(crate) fn translate_condition(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        scope: Scope,
        types: &[ValueType],
    ) -> Result<(Scope, InstructionId)> {
        let prefix = format!("{}/", cx.name);
        let (scope, predicate) = cx.within(scope, |cx| {
            let arguments = self.arguments(cx, self.condition, &self.condition_needs, types)?;
            let results = cx.importer.translate_function(self.condition, &arguments, &prefix)?;
            let predicate = match results[0] {
                Value::Array(id) => id,
                Value::Reference(variable) => cx.importer.read_variable(variable),
                other => return Err(cx.invalid(format!("the loop's condition is {}", other.kind()))),
            };
            cx.truth(predicate)
        })?;
        if let Some((&variable, writer)) = scope.written.iter().next() {
            return Err(Error::unsupported(format!(
                "the condition of the loop '{}' writes '{}' (node '{writer}'); only its body may",
                cx.name,
                cx.importer.variable_name(variable)
            )));
        }
        Ok((scope, predicate))
    }

    /// Translates condition and body with values of the given types.
    fn translate(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        types: &[ValueType],
        start: &[(InstructionId, Shape)],
        facts: &LoopFacts,
        ranges: &[Range],
    ) -> Result<Round> {
        let mut scope = Scope::of_loop(&self.condition.name, start, facts.clone());
        scope.metadata = cx.importer.scope_ref().metadata.clone();
        let (condition, predicate) = self.translate_condition(cx, scope, types)?;
        let body = condition.of_same_loop(&self.body.name);
        let prefix = format!("{}/", cx.name);
        let (body, (results, types)) = cx.within(body, |cx| {
            let arguments = self.arguments(cx, self.body, &self.body_needs, types)?;
            for (&k, &range) in self.carried.iter().zip(ranges) {
                if let (Value::Array(id), true) = (arguments[k], range != Range::UNKNOWN) {
                    cx.importer.scope().ranges.insert(id, range);
                }
            }
            let all = cx.importer.translate_function(self.body, &arguments, &prefix)?;
            let (mut results, mut types) = (Vec::new(), Vec::new());
            for &k in &self.carried {
                let result = match all[k] {
                    Value::Reference(variable) => Value::Array(cx.importer.read_variable(variable)),
                    other => other,
                };
                types.push(value_type::value_type(cx.importer, result));
                results.push(result);
            }
            Ok((results, types))
        })?;
        Ok(Round { condition, predicate, body, results, types })
    }

    /// Translates so that what goes wrong is returned; only if something does, once more to collect all of it.
    fn translate_or_collect(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        types: &[ValueType],
        start: &[(InstructionId, Shape)],
        facts: &LoopFacts,
        ranges: &[Range],
    ) -> Result<Round> {
        let snapshot = cx.importer.snapshot();
        let collected = cx.importer.collected.take();
        let round = self.translate(cx, types, start, facts, ranges);
        cx.importer.collected = collected;
        match round {
            Err(_) if cx.importer.collected.is_some() => {
                cx.importer.restore(&snapshot);
                self.translate(cx, types, start, facts, ranges)
            }
            round => round,
        }
    }

    /// What the types become when the body made values of the types `results`.
    fn next_types(&self, before: &[ValueType], results: &[ValueType]) -> Result<Vec<ValueType>> {
        for ((&k, before), result) in self.carried.iter().zip(before).zip(results) {
            if let Err(error) = value_type::join(before, result) {
                self.changes_shapes
                    .set(matches!((before, result), (ValueType::Array(_), ValueType::Array(_))));
                let name = &self.body.graph.nodes[self.body.arguments[k]].name;
                return Err(error.context(format!(
                    "loop variable {k} ('{name}') must have one type and shape in all iterations, at the beginning and at the \
                     end of the body"
                )));
            }
        }
        value_type::carried(before, results)
    }

    /// The types of what the loop carries, with room for what lists get.
    fn find_types(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        initial: &[Value],
        initial_types: &[ValueType],
        opened: Vec<ValueType>,
        facts: &LoopFacts,
        ranges: &[Range],
    ) -> Result<Vec<ValueType>> {
        if !opened.iter().any(|value_type| matches!(value_type, ValueType::List(_))) {
            return Ok(opened);
        }
        if cx.importer.is_trial {
            return Err(cx.invalid("loops that carry lists are not looked at on trial"));
        }
        let snapshot = cx.importer.snapshot();
        let mut types = opened;
        for _ in 0..MAX_ROUNDS {
            let start = self.start(cx, initial, &types)?;
            let round = self.translate_or_collect(cx, &types, &start, facts, ranges)?;
            cx.importer.restore(&snapshot);
            let next = self.next_types(&types, &round.types)?;
            if next == types {
                let settled = value_type::settle(initial_types, &types, &round.types, facts.bound);
                return settled.map_err(|place| {
                    let name = &self.body.graph.nodes[self.body.arguments[self.carried[place]]].name;
                    Error::unsupported(format!(
                        "the tensor list of the loop variable '{name}' needs a place for each iteration, but {}",
                        facts.why_unbounded
                    )).coded(Code::LoopBound)
                });
            }
            types = next;
        }
        Err(self.unsettled(cx))
    }

    fn unsettled(&self, cx: &NodeContext<'_, '_>) -> Error {
        Error::unsupported(format!(
            "the types of what the loop '{}' carries still change after {MAX_ROUNDS} rounds",
            cx.name
        ))
    }

    /// Translates until the types stay; the last translation, and the arrays before the loop.
    fn settled(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        initial: &[Value],
        types: &mut Vec<ValueType>,
        facts: &LoopFacts,
        ranges: &[Range],
    ) -> Result<(Round, Vec<(InstructionId, Shape)>)> {
        for _ in 0..MAX_ROUNDS {
            let snapshot = cx.importer.snapshot();
            let start = self.start(cx, initial, types)?;
            let round = self.translate_or_collect(cx, types, &start, facts, ranges)?;
            let next = self.next_types(types, &round.types)?;
            if next == *types {
                return Ok((round, start));
            }
            cx.importer.restore(&snapshot);
            *types = next;
        }
        Err(self.unsettled(cx))
    }

    /// The values behind a loop that never runs: those before it. Lists get the types that they would have.
    fn without_iterations(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        initial: &[Value],
        types: Result<Vec<ValueType>>,
    ) -> Result<Vec<Value>> {
        self.learn_elements(cx, initial);
        let mut values = self.inputs.clone();
        if let Ok(types) = types {
            for ((&k, &value), value_type) in self.carried.iter().zip(initial).zip(&types) {
                values[k] = value_type::coerce(cx.importer, value, value_type)?;
            }
        }
        Ok(values)
    }

    /// The values behind a loop that runs so often, its body translated for each iteration.
    fn unrolled(&self, cx: &mut NodeContext<'_, 'p>, count: u64) -> Result<Vec<Value>> {
        let prefix = format!("{}/", cx.name);
        let mut values = self.inputs.clone();
        for _ in 0..count {
            let next = cx.importer.translate_function(self.body, &values, &prefix)?;
            for &k in &self.carried {
                values[k] = match next[k] {
                    Value::Reference(variable) => Value::Array(cx.importer.read_variable(variable)),
                    other => other,
                };
            }
        }
        Ok(values)
    }

    /// Translates a body that never runs, for what it says about the elements of tensor arrays and stacks.
    fn learn_elements(&self, cx: &mut NodeContext<'_, 'p>, initial: &[Value]) {
        let snapshot = cx.importer.snapshot();
        let collected = cx.importer.collected.take();
        let facts = LoopFacts { bound: Some(0), why_unbounded: String::new() };
        let types: Vec<ValueType> =
            initial.iter().map(|&value| value_type::value_type(cx.importer, value)).collect();
        if let Ok(start) = self.start(cx, initial, &types) {
            // What is wrong in it does not matter, since it is not part of the program.
            let _unused = self.translate(cx, &types, &start, &facts, &[]);
        }
        let learned = cx.importer.element_shapes();
        cx.importer.restore(&snapshot);
        cx.importer.collected = collected;
        cx.importer.learn_element_shapes(learned);
    }

    /// Makes the `while` of what was translated; the values behind it.
    fn build(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        initial_types: &[ValueType],
        types: Vec<ValueType>,
        round: Round,
        start: Vec<(InstructionId, Shape)>,
        promised: Option<u64>,
    ) -> Result<Vec<Value>> {
        let Round { mut condition, mut predicate, body, results, .. } = round;
        let (mut body, mut next) = cx.within(body, |cx| {
            let mut next = Vec::new();
            for (&value, value_type) in results.iter().zip(&types) {
                let value = value_type::coerce(cx.importer, value, value_type)?;
                next.extend(leaves(cx.importer, value));
            }
            Ok(next)
        })?;
        let mut next: BTreeMap<usize, InstructionId> = next.drain(..).enumerate().collect();
        let written = self.add_written(cx, &mut body, &mut next);
        if let Some(promised) = promised {
            (condition, predicate) =
                self.add_guard(cx, condition, predicate, &mut body, &mut next, promised)?;
        }
        let captures = body.captures.as_ref().expect("a loop captures");
        let outer = captures.outer.clone();
        let elements: Vec<InstructionId> = (0..outer.len())
            .map(|index| next.get(&index).copied().unwrap_or_else(|| body.element(index)))
            .collect();
        let (body, _) = body.finish(&elements);
        let (mut condition, _) = condition.finish_at(predicate);
        let parameter = condition.parameters()[0];
        condition.set_shape(parameter, body[body.parameters()[0]].shape().clone());
        let exits = exits(cx, &condition, &body, &outer);

        let tuple = cx.op(Op::Tuple {}, &outer)?;
        let condition = cx.importer.module.add_computation(condition);
        let body = cx.importer.module.add_computation(body);
        let made = cx.op(Op::While { condition, body }, &[tuple])?;
        let after = |cx: &mut NodeContext<'_, 'p>, index: usize| -> Result<InstructionId> {
            if let Some(literal) = exits[index].as_ref().and_then(|exit| exit.value.clone()) {
                return Ok(cx.literal(literal));
            }
            let id = cx.tuple_element(made, index)?;
            if let Some(exit) = &exits[index] {
                cx.importer.scope().ranges.insert(id, exit.range);
            }
            Ok(id)
        };
        let mut values = self.inputs.clone();
        let closed = value_type::closed(initial_types, &types);
        let mut index = 0;
        for (&k, value_type) in self.carried.iter().zip(&closed) {
            let count = value_type.leaves().len();
            let leaves: Vec<InstructionId> =
                (index..index + count).map(|index| after(cx, index)).collect::<Result<_>>()?;
            index += count;
            values[k] = rebuild(cx.importer, value_type, &leaves);
        }
        debug_assert_eq!(index, start.len(), "closed types have as many arrays as carried ones");
        for (variable, (index, writer)) in written {
            let value = after(cx, index)?;
            cx.importer.write_variable(variable, value, &writer);
        }
        Ok(values)
    }

    /// Makes the variables that the body writes part of the state; their elements and writers.
    fn add_written(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        body: &mut Scope,
        next: &mut BTreeMap<usize, InstructionId>,
    ) -> BTreeMap<VariableId, (usize, String)> {
        let mut written = BTreeMap::new();
        for (variable, writer) in body.written.clone() {
            let outer = cx.importer.read_variable(variable);
            let shape = cx.importer.scope_ref().shape(outer).clone();
            body.capture_variable(variable, outer, &shape);
            let captures = body.captures.as_ref().expect("a loop captures");
            let index = captures.variables()[&variable];
            next.insert(index, body.variables[&variable]);
            written.insert(variable, (index, writer));
        }
        written
    }

    /// Makes the loop stop after as many iterations as the user promised at most.
    fn add_guard(
        &self,
        cx: &mut NodeContext<'_, 'p>,
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
        let more = body.add(&cx.importer.module, Op::Add {}, &[counter, one], None)?;
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
}

/// What an element of the state is behind a loop.
struct Exit {
    range: Range,
    /// The value, if it is known.
    value: Option<Literal>,
}

/// What is known of the state behind a loop, of integers only.
fn exits(
    cx: &NodeContext<'_, '_>,
    condition: &Computation,
    body: &Computation,
    outer: &[InstructionId],
) -> Vec<Option<Exit>> {
    let module = &cx.importer.module;
    let is_scalar = |id: InstructionId| {
        let array = cx.importer.scope_ref().shape(id).as_array();
        array.filter(|array| array.rank() == 0 && array.element_type.is_signed_integer())
    };
    let initial: Vec<Range> = outer
        .iter()
        .map(|&outer| if is_scalar(outer).is_some() { cx.importer.range(outer) } else { Range::UNKNOWN })
        .collect();
    let of_element = |index: usize| initial.get(index).copied().unwrap_or_default();
    let trips = trip_count(module, condition, body, &of_element);
    let states = state_ranges(module, condition, body, &of_element);
    let states = inductive(module, body, &initial, states);
    // When the number of iterations is known, so are the induction variables in the last one.
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
        let range = if ran { after } else { crate::values::local_state::join_ranges(initial[k], after) };
        let value = range.value().map(|value| Literal::from_scalars(array.clone(), [Scalar::Signed(value)]));
        (range != Range::UNKNOWN).then_some(Exit { range, value })
    };
    outer.iter().enumerate().map(exit).collect()
}
