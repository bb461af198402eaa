//! Stacks: what a loop of TensorFlow 1 puts away for its gradient.
//!
//! A stack is two local variables of the computation that makes it: a buffer with a place for each element, and the number
//! of elements. Loops and conditionals carry them as they carry variables. Memory is static, so there is a place for all
//! that the graph may push: as many as `max_size` says, else as often as each push may run. Even if that were wrong, no
//! memory would be overrun: slices beyond the end are moved to it.

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

/// Elements with at most so many numbers are looked at.
const MAX_CONSTANT_ELEMENTS: i64 = 64;

/// `StackV2(max_size)`; without one, or with -1, the stack grows in TensorFlow.
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
            "stack '{name}' holds elements of shape {element}, but one of shape {shape} is pushed; all elements of a \
             stack must have one shape"
        )
    })?;
    let size = cx[id].size;
    let at = cx.read_variable(size);
    let old = cx.read_variable(buffer);
    // Without a place there is nothing to push: the loop around this never runs.
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

/// The handle of a tensor array that each iteration makes anew, so that its gradient is found in the loop that goes back.
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
            "stack '{}' holds {}; of handles only those of tensor arrays can be pushed",
            cx[id].name,
            other.kind()
        ))),
    }
}

/// The tensor array of an earlier iteration: only its gradients can be used, as gradients of loops do. They are the same
/// ones wherever its handle comes from in one iteration.
fn pop_handle(cx: &mut NodeContext<'_, '_>, id: StackId) -> Result<Vec<Value>> {
    let Some(array) = cx[id].handle else {
        let name = &cx[id].name;
        return Err(cx.invalid(format!("nothing is ever pushed on stack '{name}'")));
    };
    let earlier = cx.earlier_array(array);
    Ok(vec![Value::TensorArray(earlier)])
}

/// Counts how often this push may run, and what is known of its value.
fn count_push(cx: &mut NodeContext<'_, '_>, id: StackId, value: InstructionId) -> Result<()> {
    let Stack { name, level, max_size, .. } = &cx[id];
    if max_size.is_none() {
        let runs = cx.runs_within(*level).map_err(|why| {
            Error::unsupported(format!("stack '{name}' needs a place for each iteration, but {why}"))
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

/// The buffer of a stack; the first push shows what the elements are.
fn elements(cx: &mut NodeContext<'_, '_>, id: StackId, shape: &ArrayShape) -> Result<Elements> {
    let stack = cx[id].clone();
    let mut elements = match stack.elements {
        Some(elements) => elements,
        None => {
            let element_type = stack.element_type.unwrap_or(shape.element_type);
            cx.check(shape.element_type == element_type, || {
                format!("stack '{}' holds {element_type}, not {}", stack.name, shape.element_type)
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
        // More is pushed than the first push could know of: next time there is room.
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
    let wanted = cx.output_type(0)?;
    cx.check(wanted == element.element_type, || {
        format!("stack '{name}' holds {}, not {wanted}", element.element_type)
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
        // What was never written is 0.
        let range = join_ranges(range, Range::exactly(0));
        cx.note_range(value, range);
    }
    Ok(vec![Value::Array(value)])
}

impl NodeContext<'_, '_> {
    /// The stack whose handle comes in at a position.
    fn stack(&self, k: usize) -> Result<StackId> {
        match self.value(k)? {
            Value::Stack(id) => Ok(id),
            other => {
                Err(self.invalid(format!("input {k} must be the handle of a stack, but is {}", other.kind())))
            }
        }
    }

    /// The element of a buffer at a position along its first dimension; beyond its ends the nearest.
    pub(crate) fn element_at(&mut self, buffer: InstructionId, at: InstructionId) -> Result<InstructionId> {
        let mut sizes = self.sizes(buffer);
        sizes[0] = 1;
        let mut operands = vec![buffer];
        operands.extend(self.element_start(at, sizes.len())?);
        let slice = self.op(Op::DynamicSlice { dynamic_slice_sizes: sizes.clone() }, &operands)?;
        self.reshape(slice, &sizes[1..])
    }

    /// A buffer with another element at a position along its first dimension.
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

    /// Where the element at a position begins.
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
