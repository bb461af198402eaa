//! Conditionals on arrays of bounded size in existing HLO.

use crate::arrays::Bounded;
use crate::settle::{Settler, Value};
use hlo::{ComparisonDirection, Computation, ComputationId, InstructionId, Module, Op, Traits};
use shape::{PrimitiveType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

impl Settler {
    /// `conditional(p, x, y), branches => select(p, first(x), second(y))`: computes every branch,
    /// then selects the results and the sizes of the branch that is taken. Only for branches that
    /// [`Self::may_run_all`] allows.
    pub(crate) fn settled_conditional(
        &mut self,
        branches: &[ComputationId],
        chooser: InstructionId,
        arguments: &[&Value],
    ) -> Result<Value> {
        let mut results = Vec::with_capacity(branches.len());
        for (&branch, &argument) in branches.iter().zip(arguments) {
            let body = self.module()[branch].clone();
            results.push(self.settled_body(&body, argument)?);
        }
        let is_pred = self.element_type(chooser) == PrimitiveType::Pred;
        let mut chosen =
            results.pop().ok_or_else(|| Error::invalid("expected a conditional with at least one branch"))?;
        // An index out of range selects the last branch.
        while let Some(result) = results.pop() {
            let takes = if is_pred {
                chooser
            } else {
                let index = self.s32(results.len() as i64)?;
                self.compare(ComparisonDirection::Eq, chooser, index)?
            };
            chosen = self.either(takes, &result, &chosen)?;
        }
        Ok(chosen)
    }

    /// True if running branches that are not taken has no observable effect: they have no loop, no
    /// custom call, and no side effect.
    pub(crate) fn may_run_all(&self, branches: &[ComputationId]) -> bool {
        branches.iter().all(|&branch| !only_if_taken(self.module(), branch))
    }

    /// Applies a computation of one parameter to a value.
    pub(crate) fn settled_body(&mut self, body: &Computation, argument: &Value) -> Result<Value> {
        let mut values = BTreeMap::new();
        for id in body.post_order() {
            let value = match body[id].op() {
                Op::Parameter { .. } => argument.clone(),
                _ => self.settled(body, id, &values).map_err(|error| {
                    error.context(format!("instruction '{}' ({})", body[id].name(), body[id].opcode().name()))
                })?,
            };
            values.insert(id, value);
        }
        values.remove(&body.root()).ok_or_else(|| Error::internal("the root is not in post order"))
    }

    /// Selects one of two values of the same shape.
    fn either(&mut self, takes: InstructionId, a: &Value, b: &Value) -> Result<Value> {
        if let (Value::One(a), Value::One(b)) = (a, b)
            && self.scope_ref().shape(*a).as_tuple().is_none()
        {
            return Ok(Value::One(self.either_array(takes, *a, *b)?));
        }
        let (a, b) = (self.elements(a)?, self.elements(b)?);
        if a.len() != b.len() {
            return Err(Error::internal("branches return tuples of different sizes"));
        }
        let pairs = a.iter().zip(&b);
        Ok(Value::Many(pairs.map(|(a, b)| self.either(takes, a, b)).collect::<Result<_>>()?))
    }

    /// Returns the elements of a tuple.
    pub(crate) fn elements(&mut self, value: &Value) -> Result<Vec<Value>> {
        match value {
            Value::Many(elements) => Ok(elements.clone()),
            Value::One(id) => {
                let count = self.scope_ref().shape(*id).as_tuple().map_or(0, <[Shape]>::len);
                let element = |index| Ok(Value::One(self.op(Op::GetTupleElement { index }, &[*id])?));
                (0..count).map(element).collect()
            }
        }
    }

    fn either_array(
        &mut self,
        takes: InstructionId,
        a: InstructionId,
        b: InstructionId,
    ) -> Result<InstructionId> {
        let (one, other) = (self.split(a)?, self.split(b)?);
        let Bounded { data, sizes } = one;
        let bounds = self.scope_ref().shape(data).clone();
        let Some(array) = bounds.as_array().filter(|_| *self.scope_ref().shape(other.data) == bounds) else {
            let different = self.scope_ref().shape(other.data);
            return Err(Error::unsupported(format!(
                "the branches return different shapes: {bounds} and {different}"
            )));
        };
        let whole = self.broadcast(takes, &array.sizes(), &[])?;
        let data = self.select(whole, data, other.data)?;
        let mut chosen = Vec::with_capacity(sizes.len());
        for (dimension, (&of_a, &of_b)) in sizes.iter().zip(&other.sizes).enumerate() {
            chosen.push(match of_a.or(of_b) {
                None => None,
                Some(_) => {
                    let (of_a, of_b) = (self.true_size(a, dimension)?, self.true_size(b, dimension)?);
                    Some(self.select(takes, of_a, of_b)?)
                }
            });
        }
        self.bounded(data, &chosen)
    }
}

/// True if a computation, or one that it calls, must only run if needed: it has a side effect, or a
/// loop that may not terminate.
fn only_if_taken(module: &Module, root: ComputationId) -> bool {
    let mut seen = BTreeSet::from([root]);
    let mut pending = vec![root];
    while let Some(id) = pending.pop() {
        for (_, instruction) in module[id].instructions() {
            let is_loop_or_call = matches!(instruction.op(), Op::While { .. } | Op::CustomCall { .. });
            if is_loop_or_call || instruction.opcode().traits().contains(Traits::SIDE_EFFECT) {
                return true;
            }
            let called = instruction.op().called_computations();
            pending.extend(called.into_iter().filter(|&callee| seen.insert(callee)));
        }
    }
    false
}
