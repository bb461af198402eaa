//! Stacks: the storage of values that a TensorFlow 1 loop keeps for its gradient.
//!
//! A stack is two local variables of the computation that creates it: a buffer with a slot for each
//! element, and the number of elements. Loops and conditionals carry them like other variables.
//! Memory is static, so the buffer has a slot for every push: as many as `max_size` says, otherwise
//! as many as the pushes may run. Even if that number were wrong, memory would be safe, because
//! out-of-range slices are clamped.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_values};
use crate::values::stack::{Elements, Stack};
use crate::values::value::{StackId, Value};
use bounded::{join_ranges, list};
use hlo::analysis::Range;
use hlo::{InstructionId, Op};
use shape::{ArrayShape, PrimitiveType};
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule_values("StackV2", |cx| stack(cx, true)).types("elem_type", ALL_AND_HANDLES),
    rule_values("StackPushV2", push).types("T", ALL_AND_HANDLES).effect(),
    rule_values("StackPopV2", pop).types("elem_type", ALL_AND_HANDLES).effect(),
    rule_values("StackCloseV2", |_| Ok(Vec::new())),
    rule_values("Stack", |cx| stack(cx, false)).types("elem_type", ALL),
    rule_values("StackPush", push).types("T", ALL).effect(),
    rule_values("StackPop", pop).types("elem_type", ALL).effect(),
    rule_values("StackClose", |_| Ok(Vec::new())),
];

/// Maximum number of values in an element to check for constants.
const MAX_CONSTANT_ELEMENTS: i64 = 64;

/// `StackV2(max_size)`. Without a size, or with -1, the stack grows in TensorFlow.
fn stack(cx: &mut NodeContext<'_, '_>, has_max_size: bool) -> Result<Vec<Value>> {
    let mut max_size = None;
    if has_max_size {
        let size = cx.input(0)?;
        let known = cx.fold(size).and_then(|literal| literal.scalar_at(0).as_i64());
        max_size = known.filter(|&size| size >= 0);
    }
    let holds_handles = cx.attributes().ty("elem_type")? == tf::DataType::Resource;
    let element_type = if holds_handles { None } else { Some(cx.type_attribute("elem_type")?) };
    let (name, level) = (cx.name().to_owned(), cx.level());
    let empty = cx.scalar(PrimitiveType::S32, 0.0);
    let size = cx.new_local(&name, level, empty);
    let stack = Stack {
        name,
        level,
        element_type,
        handle: None,
        max_size,
        elements: None,
        size,
        pushes: 0,
        range: None,
        constant: None,
        was_used: false,
    };
    Ok(vec![Value::Stack(cx.add_stack(stack))])
}

/// `StackPushV2(handle, elem) = elem`.
fn push(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let id = cx.stack(0)?;
    if cx[id].element_type.is_none() {
        return push_handle(cx, id);
    }
    let value = cx.input(1)?;
    let shape = cx.array(value);
    count_push(cx, id, value)?;
    let Elements { buffer, places, element } = elements(cx, id, &shape)?;
    let name = &cx[id].name;
    cx.check(shape == element, || {
        format!(
            "stack '{name}' holds elements of shape {element}, but an element of shape {shape} is pushed; all elements of a \
             stack must have one shape"
        )
    })?;
    let size = cx[id].size;
    let at = cx.read_variable(size);
    let old = cx.read_variable(buffer);
    // Without slots there is nothing to push, because the enclosing loop never runs.
    if places > 0 {
        let new = cx.update_element(old, value, at)?;
        let writer = cx.name().to_owned();
        cx.write_variable(buffer, new, &writer);
    }
    let more = cx.add_scalar(at, 1.0)?;
    let writer = cx.name().to_owned();
    cx.write_variable(size, more, &writer);
    Ok(vec![Value::Array(value)])
}

/// Pushes the handle of a tensor array that each iteration creates, so that the backward loop finds
/// its gradient.
fn push_handle(cx: &mut NodeContext<'_, '_>, id: StackId) -> Result<Vec<Value>> {
    let value = cx.value(1)?;
    let before = cx[id].handle;
    match value {
        Value::TensorArray(array) if before.is_none_or(|before| before == array) => {
            cx[id].handle = Some(array);
            Ok(vec![value])
        }
        Value::TensorArray(_) => {
            let name = &cx[id].name;
            Err(Error::unsupported(format!("stack '{name}' holds handles of different tensor arrays")))
        }
        other => Err(Error::unsupported(format!(
            "stack '{}' holds {}; the only handles that can be pushed are those of tensor arrays",
            cx[id].name,
            other.kind()
        ))),
    }
}

/// Returns the tensor array of an earlier iteration. Only its gradients can be used, which is what
/// gradients of loops do. They are the same wherever the handle comes from in one iteration.
fn pop_handle(cx: &mut NodeContext<'_, '_>, id: StackId) -> Result<Vec<Value>> {
    let Some(array) = cx[id].handle else {
        let name = &cx[id].name;
        return Err(cx.invalid(format!("nothing is ever pushed on stack '{name}'")));
    };
    let earlier = cx.earlier_array(array);
    Ok(vec![Value::TensorArray(earlier)])
}

/// Counts the number of times that this push may run, and records what is known about its value.
fn count_push(cx: &mut NodeContext<'_, '_>, id: StackId, value: InstructionId) -> Result<()> {
    let Stack { name, level, max_size, .. } = &cx[id];
    if max_size.is_none() {
        let runs = cx.runs_within(*level).map_err(|why| {
            Error::unsupported(format!("stack '{name}' needs a slot for each iteration, but {why}"))
                .coded(Code::LoopBound)
        })?;
        let stack = &mut cx[id];
        stack.pushes = stack.pushes.saturating_add(runs);
    }
    let range = match cx.scope_ref().shape(value).as_array() {
        Some(array) if array.rank() == 0 && array.element_type.is_signed_integer() => cx.range(value),
        _ => Range::UNKNOWN,
    };
    let is_small = cx.array(value).element_count() <= MAX_CONSTANT_ELEMENTS;
    let constant = if is_small { cx.fold(value) } else { None };
    let stack = &mut cx[id];
    let joined = stack.range.map_or(range, |all| join_ranges(all, range));
    let constant = match &stack.constant {
        None => constant,
        Some(all) => constant.filter(|constant| all.as_ref() == Some(constant)),
    };
    if stack.was_used && (stack.range != Some(joined) || stack.constant.as_ref() != Some(&constant)) {
        let name = stack.name.clone();
        cx.lessons_mut().distrust(&name);
    }
    let stack = &mut cx[id];
    stack.range = Some(joined);
    stack.constant = Some(constant);
    Ok(())
}

/// Returns the buffer of a stack. The first push determines the shape of the elements.
fn elements(cx: &mut NodeContext<'_, '_>, id: StackId, shape: &ArrayShape) -> Result<Elements> {
    let stack = cx[id].clone();
    let mut elements = match stack.elements {
        Some(elements) => elements,
        None => {
            let element_type = stack.element_type.unwrap_or(shape.element_type);
            cx.check(shape.element_type == element_type, || {
                format!("stack '{}' holds {element_type}, got {}", stack.name, shape.element_type)
            })?;
            let learned = cx.lessons().places(&stack.name);
            let places = stack.max_size.unwrap_or_else(|| stack.pushes.max(learned));
            let sizes = [&[places], &shape.sizes()[..]].concat();
            let zeros = cx.zeros_at(stack.level, element_type, &sizes);
            let zeros = zeros.map_err(|e| {
                e.context(format!(
                    "stack '{}' of {places} elements of shape {}",
                    stack.name,
                    list(&shape.sizes())
                ))
            })?;
            let buffer = cx.new_local(&stack.name, stack.level, zeros);
            Elements { buffer, places, element: shape.clone() }
        }
    };
    if stack.max_size.is_none() && stack.pushes > elements.places {
        // The first push could not know about all pushes. The next round has enough room.
        cx.lessons_mut().need_places(&stack.name, stack.pushes);
    }
    elements.places = elements.places.max(0);
    cx[id].elements = Some(elements.clone());
    Ok(elements)
}

/// `StackPopV2(handle)`: the element that was pushed last.
fn pop(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let id = cx.stack(0)?;
    if cx[id].element_type.is_none() {
        return pop_handle(cx, id);
    }
    let Stack { name, elements, size, range, constant, .. } = cx[id].clone();
    let Some(Elements { buffer, places, element }) = elements else {
        return Err(cx.invalid(format!("nothing is ever pushed on stack '{name}'")));
    };
    let requested = cx.output_type(0)?;
    cx.check(requested == element.element_type, || {
        format!("stack '{name}' holds {}, but is read as {requested}", element.element_type)
    })?;
    let at = cx.read_variable(size);
    let fewer = cx.add_scalar(at, -1.0)?;
    let buffer = cx.read_variable(buffer);
    let writer = cx.name().to_owned();
    cx.write_variable(size, fewer, &writer);
    if places == 0 {
        return Ok(vec![Value::Array(cx.splat(element.element_type, &element.sizes(), 0.0)?)]);
    }
    let is_trusted = !cx.lessons().is_distrusted(&name);
    if let Some(Some(constant)) = constant
        && is_trusted
    {
        cx[id].was_used = true;
        return Ok(vec![Value::Array(cx.literal(constant))]);
    }
    let value = cx.element_at(buffer, fewer)?;
    if let Some(range) = range
        && range != Range::UNKNOWN
        && is_trusted
    {
        cx[id].was_used = true;
        // Elements that were never written are 0.
        let range = join_ranges(range, Range::exactly(0));
        cx.note_range(value, range);
    }
    Ok(vec![Value::Array(value)])
}

impl NodeContext<'_, '_> {
    /// Returns the stack whose handle is an input.
    fn stack(&self, k: usize) -> Result<StackId> {
        match self.value(k)? {
            Value::Stack(id) => Ok(id),
            other => {
                Err(self.invalid(format!("input {k}: expected the handle of a stack, got {}", other.kind())))
            }
        }
    }

    /// Returns the element of a buffer at a position along its first dimension. Positions out of
    /// range are clamped.
    pub(crate) fn element_at(&mut self, buffer: InstructionId, at: InstructionId) -> Result<InstructionId> {
        let mut sizes = self.sizes(buffer);
        sizes[0] = 1;
        let mut operands = vec![buffer];
        operands.extend(self.element_start(at, sizes.len())?);
        let slice = self.op(Op::DynamicSlice { dynamic_slice_sizes: sizes.clone() }, &operands)?;
        self.reshape(slice, &sizes[1..])
    }

    /// Returns a buffer with the element at a position along its first dimension replaced.
    pub(crate) fn update_element(
        &mut self,
        buffer: InstructionId,
        element: InstructionId,
        at: InstructionId,
    ) -> Result<InstructionId> {
        let sizes = [&[1], &self.sizes(element)[..]].concat();
        let update = self.reshape(element, &sizes)?;
        let mut operands = vec![buffer, update];
        operands.extend(self.element_start(at, sizes.len())?);
        self.op(Op::DynamicUpdateSlice {}, &operands)
    }

    /// Returns the start indices of the element at a position.
    fn element_start(&mut self, at: InstructionId, rank: usize) -> Result<Vec<InstructionId>> {
        let index_type = self.element_type(at);
        let mut start = vec![at];
        if rank > 1 {
            let zero = self.scalar(index_type, 0.0);
            start.resize(rank, zero);
        }
        Ok(start)
    }
}
