//! A loop's functions and inputs, and their translation.

use crate::node::context::NodeContext;
use crate::values::value::Value;
use crate::values::value_type::{ValueType, rebuild};
use bounded::Scope;
use hlo::InstructionId;
use shape::PrimitiveType;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tf::{Function, NodeId};

/// A loop's functions and inputs.
#[derive(Clone)]
pub(crate) struct Loop<'p> {
    pub(crate) condition: &'p Function,
    pub(crate) body: &'p Function,
    /// All values before the loop. References among the carried ones have been read.
    pub(crate) inputs: Vec<Value>,
    /// Positions of the inputs that change.
    pub(crate) carried: Vec<usize>,
    pub(crate) condition_needs: BTreeSet<NodeId>,
    pub(crate) body_needs: BTreeSet<NodeId>,
}

impl<'p> Loop<'p> {
    /// Creates the loop of a node.
    pub(crate) fn new(cx: &mut NodeContext<'_, 'p>) -> Result<Self> {
        let condition = cx.function(cx.attributes().func("cond")?.0)?;
        let body = cx.function(cx.attributes().func("body")?.0)?;
        let count = cx.inputs().len();
        for (function, what) in [(condition, "condition"), (body, "body")] {
            cx.check(function.arguments.len() == count, || {
                format!(
                    "the loop's {what} '{}' expects {} arguments, but the node has {count} inputs",
                    function.name,
                    function.arguments.len()
                )
            })?;
        }
        cx.check(body.results.len() == count && condition.results.len() == 1, || {
            format!(
                "expected {count} results from the loop's body and 1 from its condition, got {} and {}",
                body.results.len(),
                condition.results.len()
            )
        })?;
        let passed = cx.passed_arguments(body);
        let carried: Vec<usize> = (0..count).filter(|&k| passed[k] != Some(k)).collect();
        let mut inputs = cx.inputs().to_vec();
        for &k in &carried {
            inputs[k] = cx.dereferenced(inputs[k]);
        }
        let (condition_needs, body_needs) = (cx.needed_nodes(condition), cx.needed_nodes(body));
        Ok(Self { condition, body, inputs, carried, condition_needs, body_needs })
    }

    /// Returns the name and op of the node that computes the condition.
    pub(crate) fn condition_node(&self) -> (&'p str, &'p str) {
        let graph = &self.condition.graph;
        let mut node = &graph.nodes[self.condition.results[0].node];
        while let ("Identity", [input]) = (node.op.as_str(), node.inputs.as_slice()) {
            node = &graph.nodes[input.node];
        }
        (&node.name, &node.op)
    }

    /// Returns the arguments of the condition or the body, whose scope is the innermost.
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
                (index..index + count).map(|index| cx.scope().element(index)).collect();
            index += count;
            carried.insert(k, rebuild(cx, value_type, &leaves));
        }
        let mut arguments = Vec::new();
        for (k, (&value, argument)) in self.inputs.iter().zip(&function.arguments).enumerate() {
            arguments.push(match carried.get(&k) {
                Some(&value) => value,
                None => cx.bring_in(value, needed.contains(argument)),
            });
        }
        Ok(arguments)
    }

    /// Translates the condition. Returns its scope and the truth value.
    pub(crate) fn translate_condition(
        &self,
        cx: &mut NodeContext<'_, 'p>,
        scope: Scope,
        types: &[ValueType],
    ) -> Result<(Scope, InstructionId)> {
        let (scope, predicate) = cx.within(scope, |cx| {
            let arguments = self.arguments(cx, self.condition, &self.condition_needs, types)?;
            let results = cx.translate_function(self.condition, &arguments)?;
            let predicate = match cx.dereferenced(results[0]) {
                Value::Array(id) => id,
                other => {
                    return Err(
                        cx.invalid(format!("the loop's condition: expected an array, got {}", other.kind()))
                    );
                }
            };
            let shape = cx.array(predicate);
            if shape.rank() > 0 || shape.element_type != PrimitiveType::Pred {
                return Err(cx.invalid(format!(
                    "the loop's condition: expected a scalar of type bool, got {shape}; compare it with a number, such as \
                     Greater(x, 0), or reduce it with All or Any"
                )));
            }
            Ok(predicate)
        })?;
        if let Some((&variable, writer)) = scope.written().iter().next() {
            return Err(Error::unsupported(format!(
                "the condition of the loop '{}' writes '{}' (node '{writer}'); only the body may write variables",
                cx.name(),
                cx.variable_name(variable)
            )));
        }
        Ok((scope, predicate))
    }

    /// Returns the same loop with other values before it.
    pub(crate) fn from(&self, inputs: Vec<Value>) -> Self {
        Self { inputs, ..self.clone() }
    }

    /// True if the condition is known to be true before the first iteration.
    pub(crate) fn begins(&self, cx: &mut NodeContext<'_, 'p>) -> Result<bool> {
        let results = cx.translate_function(self.condition, &self.inputs)?;
        let Value::Array(predicate) = cx.dereferenced(results[0]) else { return Ok(false) };
        let known = cx.fold(predicate).filter(|known| known.array_shape().rank() == 0);
        Ok(known.is_some_and(|known| known.scalar_at(0).as_i64() == Some(1)))
    }

    /// Translates the body `count` times and returns the values after the loop.
    pub(crate) fn unrolled(&self, cx: &mut NodeContext<'_, 'p>, count: u64) -> Result<Vec<Value>> {
        let mut values = self.inputs.clone();
        for _ in 0..count {
            let next = cx.translate_function(self.body, &values)?;
            for &k in &self.carried {
                values[k] = cx.dereferenced(next[k]);
            }
        }
        Ok(values)
    }

    /// Returns the body's name for the carried value at an index.
    pub(crate) fn carried_name(&self, place: usize) -> &'p str {
        &self.body.graph.nodes[self.body.arguments[self.carried[place]]].name
    }
}
