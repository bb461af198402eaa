//! Independence of a batch's rows: row `r` of every result depends on row `r` of the inputs alone.
//!
//! A program with this property computes a large batch in pieces, with the code of a program for a
//! small one. The analysis follows the batch dimension from the parameters through every
//! instruction. The batch is a part of one dimension of an array, of which a reshape may make
//! several or which it may merge with others. Its place is therefore the distance between
//! neighboring rows in memory order, which a reshape does not change.
//!
//! A value that does not depend on the inputs may meet rows only if it is the same for all of them
//! ([`uniform`]): the first piece would otherwise use another part of it than the second.

mod contractions;
mod rules;
mod uniform;

use crate::{ComputationId, InstructionId, Module, Op};
use shape::index::row_major_strides;
use shape::{ArrayShape, Shape};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of computations and rounds of loops in an analysis.
const MAX_VISITS: usize = 10_000;

/// Maximum depth of nested computations.
const MAX_DEPTH: usize = 60;

/// The use of the batch in an element of the entry's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowUse {
    /// Its leading dimension is the batch.
    Rows,
    /// It does not depend on the batch.
    None,
}

/// Reason why rows depend on each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// Computation of the instruction.
    pub computation: ComputationId,
    /// The first instruction that mixes rows.
    pub instruction: InstructionId,
    /// The way in which it mixes them.
    pub reason: &'static str,
}

/// Returns how each element of the entry's result depends on a batch of `size` rows, which is the
/// leading dimension of some parameters. An error names an instruction that mixes rows. `size` is
/// at least 2.
pub fn independent_rows(
    module: &Module,
    batched: &BTreeSet<usize>,
    size: i64,
) -> std::result::Result<Vec<RowUse>, Dependence> {
    let entry = module.entry();
    let computation = &module[entry];
    let mut rows = Rows {
        module,
        size,
        visits: 0,
        depth: 0,
        origins: BTreeMap::new(),
        promoted: RefCell::default(),
        bodies: Vec::new(),
        at: (entry, computation.root()),
    };
    let mut parameters = Vec::new();
    for (number, &parameter) in computation.parameters().iter().enumerate() {
        rows.at = (entry, parameter);
        parameters.push(if batched.contains(&number) {
            let stride = rows.leading(computation[parameter].shape());
            Value::Rows(stride.ok_or_else(|| rows.dependence("its leading dimension is not the batch"))?)
        } else {
            Value::Fixed
        });
    }
    let result = rows.computation(entry, &parameters)?;
    let root = computation.root();
    let shapes: Vec<&Shape> = match computation[root].shape() {
        Shape::Tuple(elements) => elements.iter().collect(),
        one => vec![one],
    };
    rows.at = (entry, root);
    let mut uses = Vec::with_capacity(shapes.len());
    for (index, shape) in shapes.into_iter().enumerate() {
        let value = if let Value::Tuple(_) = result { result.element(index) } else { result.clone() };
        uses.push(match value {
            Value::Fixed => RowUse::None,
            Value::Rows(stride) if rows.leading(shape) == Some(stride) => RowUse::Rows,
            _ => return Err(rows.dependence("the batch is not the leading dimension of a result")),
        });
    }
    Ok(uses)
}

type Result<T> = std::result::Result<T, Dependence>;

/// The dependence of a value on the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// Not at all.
    Fixed,
    /// An array with the batch; the distance between neighboring rows in elements.
    Rows(i64),
    /// The elements of a tuple.
    Tuple(Vec<Value>),
}

impl Value {
    fn elements(self) -> Vec<Self> {
        match self {
            Self::Tuple(elements) => elements,
            one => vec![one],
        }
    }

    fn is_fixed(&self) -> bool {
        match self {
            Self::Fixed => true,
            Self::Rows(_) => false,
            Self::Tuple(elements) => elements.iter().all(Self::is_fixed),
        }
    }

    /// The value of an element of a tuple.
    fn element(&self, index: usize) -> Self {
        match self {
            Self::Tuple(elements) => elements.get(index).cloned().unwrap_or(Self::Fixed),
            _ => Self::Fixed,
        }
    }

    fn stride(&self) -> Option<i64> {
        match self {
            Self::Rows(stride) => Some(*stride),
            _ => None,
        }
    }
}

/// The batch within an array: all or a part of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    dimension: usize,
    /// Number of elements of the dimension per row of the batch.
    inner: i64,
}

/// The instruction that a parameter of a loop's body, or one of its elements, always equals.
type Origins = BTreeMap<(ComputationId, usize), (ComputationId, InstructionId)>;

/// The analysis of a module.
struct Rows<'a> {
    module: &'a Module,
    size: i64,
    visits: usize,
    depth: usize,
    /// Elements of the states of loops that keep their initial value.
    origins: Origins,
    /// Elements of the states of loops that met the batch before they were known to depend on it,
    /// with the distance between rows.
    promoted: RefCell<BTreeMap<(ComputationId, usize), i64>>,
    /// The bodies of the loops around the instruction that is looked at.
    bodies: Vec<ComputationId>,
    /// The instruction that is looked at.
    at: (ComputationId, InstructionId),
}

impl Rows<'_> {
    fn dependence(&self, reason: &'static str) -> Dependence {
        Dependence { computation: self.at.0, instruction: self.at.1, reason }
    }

    /// Returns the distance between rows if the leading dimension is the batch.
    fn leading(&self, shape: &Shape) -> Option<i64> {
        let sizes = shape.as_array()?.sizes();
        (sizes.first() == Some(&self.size)).then(|| row_major_strides(&sizes)[0])
    }

    fn array(&self, id: InstructionId) -> Result<&ArrayShape> {
        let shape = self.module[self.at.0][id].shape().as_array();
        shape.ok_or_else(|| self.dependence("an operand is not an array"))
    }

    /// Returns the batch's place in an array.
    fn axis(&self, shape: &ArrayShape, stride: i64) -> Result<Axis> {
        axis(&shape.sizes(), stride, self.size)
            .ok_or_else(|| self.dependence("the batch is spread over several dimensions"))
    }

    /// Returns the value of an array with the batch at a place.
    fn at_axis(&self, shape: &ArrayShape, axis: Axis) -> Result<Value> {
        let sizes = shape.sizes();
        let is_whole = sizes.get(axis.dimension).is_some_and(|size| size % (axis.inner * self.size) == 0);
        if !is_whole {
            return Err(self.dependence("its result does not contain whole batches"));
        }
        Ok(Value::Rows(row_major_strides(&sizes)[axis.dimension] * axis.inner))
    }

    /// Returns the value of a computation's result.
    fn computation(&mut self, id: ComputationId, parameters: &[Value]) -> Result<Value> {
        self.visits += 1;
        self.depth += 1;
        let before = self.at;
        if self.visits > MAX_VISITS || self.depth > MAX_DEPTH {
            return Err(self.dependence("control flow is nested too deeply to follow the batch"));
        }
        let values = self.values(id, parameters)?;
        self.depth -= 1;
        self.at = before;
        Ok(values[&self.module[id].root()].clone())
    }

    fn values(&mut self, id: ComputationId, parameters: &[Value]) -> Result<BTreeMap<InstructionId, Value>> {
        let computation = &self.module[id];
        let mut values: BTreeMap<InstructionId, Value> = BTreeMap::new();
        for instruction in computation.post_order() {
            self.at = (id, instruction);
            let operands: Vec<Value> =
                computation[instruction].operands().iter().map(|operand| values[operand].clone()).collect();
            let value = match computation[instruction].op() {
                Op::Parameter { number } => parameters.get(*number).cloned().unwrap_or(Value::Fixed),
                Op::Tuple {} => Value::Tuple(operands),
                Op::GetTupleElement { index } => operands[0].element(*index),
                Op::OptimizationBarrier {} | Op::AddDependency {} => operands[0].clone(),
                Op::Call { to_apply } => self.computation(*to_apply, &operands)?,
                Op::Conditional { branch_computations } => {
                    self.conditional(branch_computations, &operands)?
                }
                Op::While { condition, body } => {
                    let initial = computation[instruction].operands()[0];
                    self.while_loop(*condition, *body, initial, &operands[0])?
                }
                op if operands.iter().all(Value::is_fixed) => self.fixed(op)?,
                op => self.rule(op, instruction, &operands)?,
            };
            values.insert(instruction, value);
        }
        Ok(values)
    }

    /// Returns the value of an instruction whose operands do not depend on the batch. Running it
    /// once per piece of a batch must have the same effect as running it once.
    fn fixed(&self, op: &Op) -> Result<Value> {
        let is_check = match op {
            Op::CustomCall { .. } => crate::custom_call::is_repeatable(op),
            op => !op.opcode().traits().contains(crate::Traits::SIDE_EFFECT),
        };
        if is_check { Ok(Value::Fixed) } else { Err(self.dependence("it has an effect in every run")) }
    }

    fn conditional(&mut self, branches: &[ComputationId], operands: &[Value]) -> Result<Value> {
        if !operands[0].is_fixed() {
            return Err(self.dependence("its condition depends on the batch"));
        }
        let mut joined: Option<Value> = None;
        let mut results = Vec::new();
        for (&branch, operand) in branches.iter().zip(&operands[1..]) {
            let result = self.computation(branch, std::slice::from_ref(operand))?;
            joined = Some(match joined {
                None => result.clone(),
                Some(before) => self.joined(&before, &result)?,
            });
            results.push(result);
        }
        let joined = joined.unwrap_or(Value::Fixed);
        for (&branch, result) in branches.iter().zip(&results) {
            self.expect_uniform((branch, self.module[branch].root()), result, &joined)?;
        }
        Ok(joined)
    }

    /// Returns the state of a loop after it.
    fn while_loop(
        &mut self,
        condition: ComputationId,
        body: ComputationId,
        initial: InstructionId,
        operand: &Value,
    ) -> Result<Value> {
        let computation = self.at.0;
        let kept = self.kept_elements(body);
        for &element in &kept {
            let origin = match self.module[computation][initial].op() {
                Op::Tuple {} => self.module[computation][initial].operands().get(element).copied(),
                _ => None,
            };
            if let Some(origin) = origin {
                self.origins.insert((body, element), (computation, origin));
            }
        }
        let place = self.at;
        let fixed = self.loop_state((condition, body), initial, operand, operand.clone());
        fixed.or_else(|error| {
            // An initial value of equal rows, such as zeros, may become rows in the first
            // iteration.
            self.at = place;
            let state = self.likely_state((computation, initial), operand);
            if state == *operand {
                return Err(error);
            }
            self.loop_state((condition, body), initial, operand, state).map_err(|_| error)
        })
    }

    /// Returns the state with the elements as rows that are the same for all of them, and have the
    /// batch's size.
    fn likely_state(&self, place: (ComputationId, InstructionId), operand: &Value) -> Value {
        let Op::Tuple {} = self.module[place.0][place.1].op() else { return operand.clone() };
        let operands = self.module[place.0][place.1].operands();
        let likely = operands.iter().enumerate().map(|(k, &id)| {
            let value = operand.element(k);
            let sizes = self.module[place.0][id].shape().as_array().map(ArrayShape::sizes);
            let stride = sizes.and_then(|sizes| {
                let dimension = sizes.iter().position(|&size| size == self.size)?;
                Some(row_major_strides(&sizes)[dimension])
            });
            match stride.filter(|&stride| value == Value::Fixed && self.is_uniform((place.0, id), stride)) {
                Some(stride) => Value::Rows(stride),
                None => value,
            }
        });
        Value::Tuple(likely.collect())
    }

    /// Returns the state of a loop after it, given a state before it that is at least what the
    /// operand is. It is known once another iteration does not change what depends on the batch.
    fn loop_state(
        &mut self,
        (condition, body): (ComputationId, ComputationId),
        initial: InstructionId,
        operand: &Value,
        mut state: Value,
    ) -> Result<Value> {
        let place = self.at;
        let rounds = 2 + operand.clone().elements().len();
        for _ in 0..rounds {
            let (depth, loops) = (self.depth, self.bodies.len());
            self.bodies.push(body);
            let next = self.computation(body, std::slice::from_ref(&state));
            self.bodies.truncate(loops);
            self.depth = depth;
            let next = next?;
            let joined = self.promoted(body, self.joined(&state, &next)?);
            if joined == state {
                self.expect_uniform((place.0, initial), operand, &state)?;
                self.expect_uniform((body, self.module[body].root()), &next, &state)?;
                let verdict = self.computation(condition, std::slice::from_ref(&state))?;
                if !verdict.is_fixed() {
                    return Err(self.dependence("the number of its iterations depends on the batch"));
                }
                return Ok(state);
            }
            state = joined;
        }
        Err(self.dependence("its state changes the place of the batch"))
    }

    /// Marks the elements of a loop's state that met the batch in its body.
    fn promoted(&self, body: ComputationId, state: Value) -> Value {
        let Value::Tuple(mut elements) = state else { return state };
        for (&(_, element), &stride) in self.promoted.borrow().range((body, 0)..=(body, usize::MAX)) {
            if let Some(value @ Value::Fixed) = elements.get_mut(element) {
                *value = Value::Rows(stride);
            }
        }
        Value::Tuple(elements)
    }

    /// Returns the elements of a loop's state that its body returns unchanged.
    fn kept_elements(&self, body: ComputationId) -> Vec<usize> {
        let computation = &self.module[body];
        let root = computation.root();
        let Op::Tuple {} = computation[root].op() else { return Vec::new() };
        let is_kept = |(number, &id): (usize, &InstructionId)| {
            let Op::GetTupleElement { index } = computation[id].op() else { return None };
            let is_state = matches!(computation[computation[id].operands()[0]].op(), Op::Parameter { .. });
            (is_state && *index == number).then_some(number)
        };
        computation[root].operands().iter().enumerate().filter_map(is_kept).collect()
    }

    /// Returns the value of something that has one of two values.
    fn joined(&self, a: &Value, b: &Value) -> Result<Value> {
        match (a, b) {
            (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => {
                let elements = a.iter().zip(b).map(|(a, b)| self.joined(a, b));
                Ok(Value::Tuple(elements.collect::<Result<_>>()?))
            }
            (Value::Tuple(elements), Value::Fixed) | (Value::Fixed, Value::Tuple(elements)) => {
                Ok(Value::Tuple(elements.clone()))
            }
            (Value::Rows(a), Value::Rows(b)) if a == b => Ok(Value::Rows(*a)),
            (Value::Fixed, Value::Fixed) => Ok(Value::Fixed),
            (Value::Fixed, Value::Rows(stride)) | (Value::Rows(stride), Value::Fixed) => {
                Ok(Value::Rows(*stride))
            }
            _ => Err(self.dependence("the batch is in different dimensions of its operands")),
        }
    }

    /// Fails if a part of a value that does not depend on the batch, but counts as if it did,
    /// differs between rows. `place` is the value's instruction.
    fn expect_uniform(
        &self,
        place: (ComputationId, InstructionId),
        value: &Value,
        joined: &Value,
    ) -> Result<()> {
        let (computation, id) = place;
        match (value, joined) {
            (Value::Fixed, Value::Rows(stride)) => {
                if self.is_uniform(place, *stride) {
                    Ok(())
                } else {
                    Err(self.dependence("a value that differs between rows meets the batch"))
                }
            }
            (value, Value::Tuple(joined)) => {
                let Op::Tuple {} = self.module[computation][id].op() else {
                    return if value == &Value::Tuple(joined.clone()) {
                        Ok(())
                    } else {
                        Err(self.dependence("a tuple that is not built here meets the batch"))
                    };
                };
                let operands = self.module[computation][id].operands();
                for (k, (&operand, joined)) in operands.iter().zip(joined).enumerate() {
                    self.expect_uniform((computation, operand), &value.element(k), joined)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Returns the dimension that contains a batch of `size` rows with this distance.
fn axis(sizes: &[i64], stride: i64, size: i64) -> Option<Axis> {
    let strides = row_major_strides(sizes);
    (0..sizes.len()).find_map(|dimension| {
        let own = strides[dimension];
        let inner = (own > 0 && stride % own == 0).then(|| stride / own)?;
        (inner > 0 && sizes[dimension] % inner.checked_mul(size)? == 0 && sizes[dimension] > 0)
            .then_some(Axis { dimension, inner })
    })
}

/// True if a shape is an array without dimensions.
fn is_scalar(shape: &Shape) -> bool {
    shape.as_array().is_some_and(|shape| shape.rank() == 0)
}
