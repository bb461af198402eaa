//! Compile-time constants: evaluates the instructions built so far that depend on no parameter.

use crate::builder::{Builder, Scope, integer_vector};
use evaluator::{Evaluator, Limits};
use hlo::analysis::{Range, largest_exact_integer, range_in};
use hlo::{Computation, InstructionId, Module, Op, Opcode};
use shape::{ArrayShape, Literal, PrimitiveType, Shape, index};
use support::Result;

/// Maximum number of elements of an instruction to evaluate. Shapes, axes, and paddings are short.
const MAX_FOLDED_ELEMENTS: i64 = 1 << 16;

/// Maximum number of elements of constants to rebuild within a branch or a loop.
const MAX_COPIED_ELEMENTS: i64 = 1024;

/// Maximum number of elements of a vector of sizes whose elements are followed one by one.
pub(super) const MAX_SHAPE: i64 = 16;

/// Maximum number of steps of one evaluation.
const MAX_STEPS_OF_ONE: u64 = 1 << 22;

/// Number of steps of one evaluation that is always left, for shapes and axes after large tables.
const MIN_STEPS_OF_ONE: u64 = 256;

/// Returns the value of an instruction, if it depends only on constants and is small. Each
/// instruction is evaluated once.
fn fold(module: &Module, scope: &mut Scope, id: InstructionId) -> Option<Literal> {
    let mut stack = vec![id];
    while let Some(&top) = stack.last() {
        if scope.folded.contains_key(&top) {
            stack.pop();
            continue;
        }
        let instruction = &scope.computation[top];
        if let Op::Constant { literal } = instruction.op() {
            let value = Some(literal.clone());
            scope.folded.insert(top, value);
            continue;
        }
        if let Some(empty) = empty_array(instruction.shape()) {
            scope.folded.insert(top, Some(empty));
            continue;
        }
        if !may_fold(instruction.op(), instruction.shape()) {
            scope.folded.insert(top, None);
            continue;
        }
        let operands = instruction.operands();
        let unknown = operands.iter().find(|operand| !scope.folded.contains_key(operand));
        if let Some(&unknown) = unknown {
            stack.push(unknown);
            continue;
        }
        let values: Option<Vec<&Literal>> = operands.iter().map(|o| scope.folded[o].as_ref()).collect();
        let limit = scope.fold_steps_left.get().clamp(MIN_STEPS_OF_ONE, MAX_STEPS_OF_ONE);
        let (value, steps) = match values {
            Some(values) => evaluate_instruction(module, scope, top, &values, limit),
            None => (known_slice(module, scope, top), 0),
        };
        scope.fold_steps_left.set(scope.fold_steps_left.get().saturating_sub(steps));
        scope.folded.insert(top, value);
    }
    scope.folded[&id].clone()
}

impl Builder {
    /// Returns the value of an instruction, if it is known at compile time.
    pub fn fold(&mut self, id: InstructionId) -> Option<Literal> {
        let (module, scope) = self.module_and_scope();
        fold(module, scope, id)
    }

    /// Returns the number that each element of an array is, if that is known at compile time.
    pub fn repeated(&mut self, id: InstructionId) -> Result<Option<f64>> {
        let mut whole = self.split(id)?.data;
        if let Op::Broadcast { .. } = self.scope_ref().computation()[whole].op() {
            whole = self.scope_ref().computation()[whole].operands()[0];
        }
        let literal = self.fold(whole).filter(|literal| literal.is_splat());
        let literal = literal.filter(|literal| literal.array_shape().element_count() > 0);
        Ok(literal.and_then(|literal| literal.scalar_at(0).as_f64()))
    }

    /// Returns an integer of an open scope, if it is known at compile time.
    pub(super) fn folded_element(&mut self, level: usize, id: InstructionId, position: usize) -> Option<i64> {
        let literal = fold(&self.module, &mut self.scopes[level], id)?;
        let is_inside = (position as i64) < literal.array_shape().element_count();
        if is_inside { literal.scalar_at(position).as_i64() } else { None }
    }

    /// Treats an instruction as a run-time value, even if it is a constant.
    pub(crate) fn forbid_folding(&mut self, id: InstructionId) {
        self.scope().folded.insert(id, None);
    }

    /// Returns the integer at a position of a short vector, even if its neighbors are unknown.
    /// Looks through concatenations.
    pub fn fold_element(&mut self, id: InstructionId, position: usize) -> Option<i64> {
        let element = self.linear_element(id, position)?;
        element.base.is_none().then_some(element.offset)
    }

    /// Returns the integer at a position of a vector, relative to a run-time base. `None` if it is
    /// not an integer.
    pub fn linear_element(&mut self, id: InstructionId, position: usize) -> Option<LinearElement> {
        let (module, scope) = self.module_and_scope();
        linear_element(module, scope, id, position, MAX_ADDITIONS)
    }

    /// Returns a number that `end - begin` does not exceed, for two scalars.
    pub fn largest_difference(&mut self, end: InstructionId, begin: InstructionId) -> Option<i64> {
        let of_sizes =
            if self.has_named_sizes() { self.largest_difference_of_sizes(end, begin) } else { None };
        let begin = self.linear_element(begin, 0)?;
        let end = self.linear_element(end, 0)?;
        self.largest_difference_of(end, begin, MAX_MINIMA).into_iter().chain(of_sizes).min()
    }

    fn largest_difference_of(
        &mut self,
        end: LinearElement,
        begin: LinearElement,
        minima: usize,
    ) -> Option<i64> {
        if end.base == begin.base {
            return end.offset.checked_sub(begin.offset);
        }
        let range = |element: LinearElement| match element.base {
            Some((id, _)) => self.range(id),
            None => Range::exactly(0),
        };
        let high = range(end).high.and_then(|high| high.checked_add(end.offset));
        let low = range(begin).low.and_then(|low| low.checked_add(begin.offset));
        let mut least = high.zip(low).and_then(|(high, low)| high.checked_sub(low));
        let Some((id, position)) = end.base else { return least };
        let instruction = &self.scope_ref().computation()[id];
        if minima > 0 && matches!(instruction.op(), Op::Minimum {}) {
            for operand in instruction.operands().to_vec() {
                let element = self.linear_element(operand, position)?;
                let element = LinearElement { offset: element.offset.checked_add(end.offset)?, ..element };
                let difference = self.largest_difference_of(element, begin, minima - 1);
                least = least.into_iter().chain(difference).min();
            }
        }
        least
    }

    /// True for a short vector of integers that is not known as a whole. Its elements may be.
    pub(super) fn is_shape(&mut self, id: InstructionId) -> bool {
        let array = self.scope_ref().shape(id).as_array();
        let is_short = array.is_some_and(|array| {
            array.rank() == 1
                && array.is_static()
                && array.element_type.is_integer()
                && array.element_count() <= MAX_SHAPE
        });
        is_short && self.fold(id).is_none()
    }

    /// Returns an element of a vector as a scalar.
    pub(super) fn scalar_of_vector(&mut self, id: InstructionId, position: i64) -> Result<InstructionId> {
        let element = self.slice_in(id, 0, position, position + 1)?;
        let element = self.reshape(element, &[])?;
        Ok(match self.fold(element) {
            Some(known) => self.literal(known),
            None => element,
        })
    }

    /// Returns the sum of two integers, if it is known although they are not: `c - n` and `n`.
    pub fn known_sum(&mut self, a: LinearElement, b: LinearElement) -> Option<i64> {
        self.sum_of_opposites(a, b).or_else(|| self.sum_of_opposites(b, a))
    }

    fn sum_of_opposites(&mut self, difference: LinearElement, number: LinearElement) -> Option<i64> {
        let (id, position) = difference.base?;
        let instruction = &self.scope_ref().computation()[id];
        let Op::Subtract {} = instruction.op() else { return None };
        let (minuend, subtrahend) = (instruction.operands()[0], instruction.operands()[1]);
        let minuend = self.linear_element(minuend, position)?;
        let subtrahend = self.linear_element(subtrahend, position)?;
        let is_opposite = minuend.base.is_none() && subtrahend.base == number.base;
        let sum = minuend.offset.checked_sub(subtrahend.offset)?.checked_add(number.offset)?;
        sum.checked_add(difference.offset).filter(|_| is_opposite)
    }

    /// Returns an array of the enclosing scope for use in the innermost scope: captured, or rebuilt
    /// if it is a small constant, so that shapes and axes remain known.
    pub fn bring_in_array(&mut self, id: InstructionId) -> InstructionId {
        let Self { module, scopes, .. } = self;
        let [.., outer, inner] = scopes.as_mut_slice() else {
            unreachable!("the entry has no enclosing scope")
        };
        let shape = outer.shape(id).clone();
        let is_small = shape.as_array().is_some_and(|a| a.element_count() <= MAX_COPIED_ELEMENTS);
        let known = if is_small { fold(module, outer, id) } else { None };
        if let Some(literal) = known {
            return inner.add_constant(literal);
        }
        let captured = inner.capture(id, &shape);
        if shape.as_array().is_some_and(|array| array.rank() == 0 && array.element_type.is_integer()) {
            let range = self.range_at(self.level() - 1, id);
            self.note_range(captured, range);
        }
        captured
    }
}

/// An integer as `base + offset`, where the base is a run-time element. Without a base, the offset
/// is the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearElement {
    /// The instruction and the position of the element.
    pub base: Option<(InstructionId, usize)>,
    /// The constant added to the base.
    pub offset: i64,
}

/// Maximum number of additions to follow.
const MAX_ADDITIONS: usize = 32;

/// Maximum number of nested minima to follow.
const MAX_MINIMA: usize = 4;

/// Returns the integer at a position of a vector, relative to a run-time base. `None` if it is not
/// an integer.
fn linear_element(
    module: &Module,
    scope: &mut Scope,
    mut id: InstructionId,
    mut position: usize,
    additions: usize,
) -> Option<LinearElement> {
    loop {
        if let Some(literal) = fold(module, scope, id) {
            let in_range = (position as i64) < literal.array_shape().element_count();
            let offset = if in_range { literal.scalar_at(position).as_i64()? } else { return None };
            return Some(LinearElement { base: None, offset });
        }
        let unknown = LinearElement { base: Some((id, position)), offset: 0 };
        let instruction = &scope.computation[id];
        if position as i64 >= instruction.shape().as_array()?.element_count() {
            return None;
        }
        match instruction.op() {
            Op::Reshape {} => id = instruction.operands()[0],
            // A known element keeps its value if it fits.
            Op::Convert {} if additions > 0 => {
                let source = instruction.operands()[0];
                let is_integer = |id: InstructionId| {
                    let array = scope.computation[id].shape().as_array();
                    array.is_some_and(|array| {
                        array.element_type.is_integer() && array.element_type.bit_width() >= 32
                    })
                };
                if is_integer(id) && is_float(&scope.computation, source) {
                    let sum = sum_of_floats(module, scope, source, position, additions - 1);
                    return Some(sum.unwrap_or(unknown));
                }
                if !is_integer(id) || !is_integer(source) {
                    return Some(unknown);
                }
                let element = linear_element(module, scope, source, position, additions - 1)?;
                let fits = element.base.is_none() && (0..=i64::from(i32::MAX)).contains(&element.offset);
                return Some(if fits { element } else { unknown });
            }
            Op::Broadcast { dimensions } if dimensions.is_empty() => {
                (id, position) = (instruction.operands()[0], 0);
            }
            Op::Concatenate { dimension } => {
                let mut at = index::multi_index(&instruction.shape().as_array()?.sizes(), position as i64);
                let mut operands = instruction.operands().iter();
                id = loop {
                    let &operand = operands.next()?;
                    let sizes = scope.computation[operand].shape().as_array()?.sizes();
                    if at[*dimension] < sizes[*dimension] {
                        position = index::linear_index(&sizes, &at) as usize;
                        break operand;
                    }
                    at[*dimension] -= sizes[*dimension];
                };
            }
            Op::Slice { slice } => {
                let at = index::multi_index(&instruction.shape().as_array()?.sizes(), position as i64);
                let at: Vec<i64> = at.iter().zip(slice).map(|(at, s)| s.start + at * s.stride).collect();
                id = instruction.operands()[0];
                position =
                    index::linear_index(&scope.computation[id].shape().as_array()?.sizes(), &at) as usize;
            }
            Op::Add {} if additions > 0 => {
                let (a, b) = (instruction.operands()[0], instruction.operands()[1]);
                let a = linear_element(module, scope, a, position, additions - 1)?;
                let b = linear_element(module, scope, b, position, additions - 1)?;
                return match (a.base, b.base, a.offset.checked_add(b.offset)) {
                    (base, None, Some(offset)) | (None, base, Some(offset)) => {
                        Some(LinearElement { base, offset })
                    }
                    _ => Some(unknown),
                };
            }
            Op::Minimum {} | Op::Maximum {} if additions > 0 => {
                let is_minimum = matches!(instruction.op(), Op::Minimum {});
                let (a, b) = (instruction.operands()[0], instruction.operands()[1]);
                let a = linear_element(module, scope, a, position, additions - 1)?;
                let b = linear_element(module, scope, b, position, additions - 1)?;
                let is_below = |a: LinearElement, b: LinearElement| {
                    a.range(module, scope).1.zip(b.range(module, scope).0).is_some_and(|(a, b)| a <= b)
                };
                let (below, above) = if is_below(a, b) {
                    (a, b)
                } else if is_below(b, a) {
                    (b, a)
                } else {
                    return Some(unknown);
                };
                return Some(if is_minimum { below } else { above });
            }
            _ => return Some(unknown),
        }
    }
}

impl LinearElement {
    /// Returns the smallest and the largest value, if they are known.
    fn range(self, module: &Module, scope: &Scope) -> (Option<i64>, Option<i64>) {
        let Some((id, _)) = self.base else { return (Some(self.offset), Some(self.offset)) };
        let of_leaf = |leaf: InstructionId| scope.ranges.get(&leaf).copied();
        let Range { low, high } = range_in(module, &scope.computation, id, &of_leaf);
        let sum = |end: i64| end.checked_add(self.offset);
        (low.and_then(sum), high.and_then(sum))
    }
}

fn is_float(computation: &Computation, id: InstructionId) -> bool {
    let array = computation[id].shape().as_array();
    array.is_some_and(|array| matches!(array.element_type, PrimitiveType::F32 | PrimitiveType::F64))
}

/// Returns an integer that is converted to a float, plus whole numbers, if `f32` has all of them.
/// Converters of models count with floats.
fn sum_of_floats(
    module: &Module,
    scope: &mut Scope,
    mut id: InstructionId,
    position: usize,
    additions: usize,
) -> Option<LinearElement> {
    let largest = largest_exact_integer(PrimitiveType::F32)?.unsigned_abs();
    let (mut sum, mut total) = (0i64, 0u64);
    for _ in 0..additions {
        let (op, operands) = (scope.computation[id].op().clone(), scope.computation[id].operands().to_vec());
        match (op, &operands[..]) {
            (Op::Reshape {}, &[operand]) => id = operand,
            (Op::Add {}, &[a, b]) => {
                let (number, other) = match (fold(module, scope, a), fold(module, scope, b)) {
                    (_, Some(number)) => (number, a),
                    (Some(number), _) => (number, b),
                    _ => return None,
                };
                let number = *number.floats()?.get(position)?;
                let is_whole = number.fract() == 0.0 && number.abs() <= largest as f64;
                let number = is_whole.then_some(number as i64)?;
                (sum, total) = (sum + number, total + number.unsigned_abs());
                id = other;
            }
            (Op::Convert {}, &[integer]) => {
                let element = linear_element(module, scope, integer, position, additions)?;
                let (low, high) = element.range(module, scope);
                // No partial sum is larger than all numbers together.
                let is_kept = |end: i64| end.unsigned_abs().saturating_add(total) <= largest;
                let offset = element.offset.checked_add(sum)?;
                return (is_kept(low?) && is_kept(high?)).then_some(LinearElement { offset, ..element });
            }
            _ => return None,
        }
    }
    None
}

/// Returns the value of a slice of a short vector of which only those elements are known, such as a
/// shape with a size that the caller chooses.
fn known_slice(module: &Module, scope: &mut Scope, id: InstructionId) -> Option<Literal> {
    let instruction = &scope.computation[id];
    let array = instruction.shape().as_array()?;
    let Op::Slice { slice } = instruction.op() else { return None };
    let [range] = slice[..] else { return None };
    let (element_type, count, vector) =
        (array.element_type, array.element_count(), instruction.operands()[0]);
    if !element_type.is_integer() || count > MAX_SHAPE {
        return None;
    }
    let mut values = Vec::new();
    for at in 0..count {
        let position = usize::try_from(range.start + at * range.stride).ok()?;
        let element = linear_element(module, scope, vector, position, MAX_ADDITIONS)?;
        values.push(Some(element.offset).filter(|_| element.base.is_none())?);
    }
    integer_vector(element_type, &values)
}

/// Returns the value of an empty array, which is known regardless of its operands.
fn empty_array(shape: &Shape) -> Option<Literal> {
    let array = shape.as_array().filter(|array| array.element_count() == 0 && array.is_static())?;
    Literal::from_bytes(ArrayShape::new(array.element_type, &array.sizes()), Default::default())
}

/// True if an instruction with known operands has a compile-time value.
fn may_fold(op: &Op, shape: &Shape) -> bool {
    let small = shape
        .leaves()
        .iter()
        .all(|(_, leaf)| leaf.is_static() && leaf.element_count() <= MAX_FOLDED_ELEMENTS);
    let pure = !matches!(
        op.opcode(),
        Opcode::Parameter | Opcode::Rng | Opcode::RngGetAndUpdateState | Opcode::CustomCall | Opcode::Infeed
    );
    small && pure
}

/// Evaluates one instruction on known operands. Also returns the number of steps.
fn evaluate_instruction(
    module: &Module,
    scope: &Scope,
    id: InstructionId,
    operands: &[&Literal],
    max_steps: u64,
) -> (Option<Literal>, u64) {
    let instruction = &scope.computation[id];
    let limits = Limits { max_steps, max_live_bytes: 1 << 26, max_depth: 16 };
    let mut evaluator = Evaluator::with_limits(module, limits);
    let value = evaluator.evaluate_instruction(instruction.op(), instruction.shape(), operands).ok();
    (value, max_steps - evaluator.steps_left())
}
