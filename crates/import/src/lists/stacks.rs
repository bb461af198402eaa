//! Stacks: what a loop of TensorFlow 1 puts away for its gradient.
//!
//! A stack is two local variables of the computation that makes it: a buffer with a place for each element, and the number
//! of elements. Loops and conditionals carry them as they carry variables. Memory is static, so there is a place for all
//! that the graph may push: as many as `max_size` says, else as often as each push may run. Even if that were wrong, no
//! memory would be overrun: slices beyond the end are moved to it.

use crate::node::context::{NodeContext, list};
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_values};
use crate::values::local_state::join_ranges;
use crate::values::value::{StackId, TensorArrayId, Value, VariableId};
use crate::walk::importer::Importer;
use hlo::analysis::Range;
use hlo::{InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType};
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

/// A stack.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// The node that makes it.
    name: String,
    /// The scope that it lives in.
    level: usize,
    /// `None` if it holds handles.
    element_type: Option<PrimitiveType>,
    /// Of a stack of handles the tensor array that is pushed, one and the same in the graph.
    handle: Option<TensorArrayId>,
    /// The places that the graph asks for; `None` if that is left to the compiler.
    max_size: Option<i64>,
    /// The buffer's places and one element, once something was pushed.
    elements: Option<Elements>,
    /// The number of elements: an `s32` scalar.
    size: VariableId,
    /// The most that was pushed so far.
    pub(crate) pushes: i64,
    /// What is known of all that was pushed, of integer scalars only.
    range: Option<Range>,
    /// What every element that was pushed is, if that is known: gradients put shapes away like that. `Some(None)` if they
    /// differ.
    constant: Option<Option<Literal>>,
    /// Whether somebody relies on that or on the range.
    was_used: bool,
}

#[derive(Clone, Debug)]
struct Elements {
    buffer: VariableId,
    places: i64,
    element: ArrayShape,
}

/// `StackV2(max_size)`; without one, or with -1, the stack grows in TensorFlow.
fn stack(cx: &mut NodeContext<'_, '_>, has_max_size: bool) -> Result<Vec<Value>> {
    let mut max_size = None;
    if has_max_size {
        let size = cx.input(0)?;
        let known = cx.fold(size).and_then(|literal| literal.scalar_at(0).as_i64());
        max_size = known.filter(|&size| size >= 0);
    }
    let holds_handles = cx.node.attributes.ty("elem_type")? == tf::DataType::Resource;
    let element_type = if holds_handles { None } else { Some(cx.type_attribute("elem_type")?) };
    let (name, level) = (cx.name.clone(), cx.importer.level());
    let empty = cx.scalar(PrimitiveType::S32, 0.0);
    let size = cx.importer.new_local(&name, level, empty);
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
    Ok(vec![Value::Stack(cx.importer.stacks.push(stack))])
}

/// `StackPushV2(handle, elem) = elem`.
fn push(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let id = cx.stack(0)?;
    if cx.importer.stacks[id].element_type.is_none() {
        return push_handle(cx, id);
    }
    let value = cx.input(1)?;
    let shape = cx.array(value);
    count_push(cx, id, value)?;
    let Elements { buffer, places, element } = elements(cx, id, &shape)?;
    let name = &cx.importer.stacks[id].name;
    cx.check(shape == element, || {
        format!(
            "stack '{name}' holds elements of shape {element}, but one of shape {shape} is pushed; all elements of a \
             stack must have one shape"
        )
    })?;
    let size = cx.importer.stacks[id].size;
    let at = cx.importer.read_variable(size);
    let old = cx.importer.read_variable(buffer);
    // Without a place there is nothing to push: the loop around this never runs.
    if places > 0 {
        let new = cx.update_element(old, value, at)?;
        let writer = cx.name.clone();
        cx.importer.write_variable(buffer, new, &writer);
    }
    let more = cx.add_scalar(at, 1.0)?;
    let writer = cx.name.clone();
    cx.importer.write_variable(size, more, &writer);
    Ok(vec![Value::Array(value)])
}

/// The handle of a tensor array that each iteration makes anew, so that its gradient is found in the loop that goes back.
fn push_handle(cx: &mut NodeContext<'_, '_>, id: StackId) -> Result<Vec<Value>> {
    let value = cx.value(1)?;
    let before = cx.importer.stacks[id].handle;
    match value {
        Value::TensorArray(array) if before.is_none_or(|before| before == array) => {
            cx.importer.stacks[id].handle = Some(array);
            Ok(vec![value])
        }
        Value::TensorArray(_) => {
            let name = &cx.importer.stacks[id].name;
            Err(Error::unsupported(format!("stack '{name}' holds handles of different tensor arrays")))
        }
        other => Err(Error::unsupported(format!(
            "stack '{}' holds {}; of handles only those of tensor arrays can be pushed",
            cx.importer.stacks[id].name,
            other.kind()
        ))),
    }
}

/// The tensor array of an earlier iteration: only its gradients can be used, as gradients of loops do. They are the same
/// ones wherever its handle comes from in one iteration.
fn pop_handle(cx: &mut NodeContext<'_, '_>, id: StackId) -> Result<Vec<Value>> {
    let Some(array) = cx.importer.stacks[id].handle else {
        let name = &cx.importer.stacks[id].name;
        return Err(cx.invalid(format!("nothing is ever pushed on stack '{name}'")));
    };
    let level = cx.importer.level();
    if let Some(&earlier) = cx.importer.scope().earlier_arrays.get(&array) {
        return Ok(vec![Value::TensorArray(earlier)]);
    }
    let earlier = cx.importer.tensor_arrays[array].of_earlier_iteration(level);
    let earlier = cx.importer.tensor_arrays.push(earlier);
    cx.importer.scope().earlier_arrays.insert(array, earlier);
    Ok(vec![Value::TensorArray(earlier)])
}

/// Counts how often this push may run, and what is known of its value.
fn count_push(cx: &mut NodeContext<'_, '_>, id: StackId, value: InstructionId) -> Result<()> {
    let Stack { name, level, max_size, .. } = &cx.importer.stacks[id];
    if max_size.is_none() {
        let runs = cx.importer.runs_within(*level).map_err(|why| {
            Error::unsupported(format!("stack '{name}' needs a place for each iteration, but {why}"))
                .coded(Code::LoopBound)
        })?;
        let stack = &mut cx.importer.stacks[id];
        stack.pushes = stack.pushes.saturating_add(runs);
    }
    let range = match cx.importer.scope_ref().shape(value).as_array() {
        Some(array) if array.rank() == 0 && array.element_type.is_signed_integer() => {
            cx.importer.range(value)
        }
        _ => Range::UNKNOWN,
    };
    let is_small = cx.array(value).element_count() <= MAX_CONSTANT_ELEMENTS;
    let constant = if is_small { cx.fold(value) } else { None };
    let stack = &mut cx.importer.stacks[id];
    let joined = stack.range.map_or(range, |all| join_ranges(all, range));
    let constant = match &stack.constant {
        None => constant,
        Some(all) => constant.filter(|constant| all.as_ref() == Some(constant)),
    };
    if stack.was_used && (stack.range != Some(joined) || stack.constant.as_ref() != Some(&constant)) {
        let name = stack.name.clone();
        cx.importer.lessons.distrust(&name);
    }
    let stack = &mut cx.importer.stacks[id];
    stack.range = Some(joined);
    stack.constant = Some(constant);
    Ok(())
}

/// The buffer of a stack; the first push shows what the elements are.
fn elements(cx: &mut NodeContext<'_, '_>, id: StackId, shape: &ArrayShape) -> Result<Elements> {
    let stack = cx.importer.stacks[id].clone();
    let mut elements = match stack.elements {
        Some(elements) => elements,
        None => {
            let element_type = stack.element_type.unwrap_or(shape.element_type);
            cx.check(shape.element_type == element_type, || {
                format!("stack '{}' holds {element_type}, not {}", stack.name, shape.element_type)
            })?;
            let learned = cx.importer.lessons.places(&stack.name);
            let places = stack.max_size.unwrap_or_else(|| stack.pushes.max(learned));
            let sizes = [&[places], &shape.sizes()[..]].concat();
            let zeros = cx.importer.zeros_at(stack.level, element_type, &sizes);
            let zeros = zeros.map_err(|e| {
                e.context(format!(
                    "stack '{}' of {places} elements of shape {}",
                    stack.name,
                    list(&shape.sizes())
                ))
            })?;
            let buffer = cx.importer.new_local(&stack.name, stack.level, zeros);
            Elements { buffer, places, element: shape.clone() }
        }
    };
    if stack.max_size.is_none() && stack.pushes > elements.places {
        // More is pushed than the first push could know of: next time there is room.
        cx.importer.lessons.need_places(&stack.name, stack.pushes);
    }
    elements.places = elements.places.max(0);
    cx.importer.stacks[id].elements = Some(elements.clone());
    Ok(elements)
}

/// `StackPopV2(handle)`: the element that was pushed last.
fn pop(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let id = cx.stack(0)?;
    if cx.importer.stacks[id].element_type.is_none() {
        return pop_handle(cx, id);
    }
    let Stack { name, elements, size, range, constant, .. } = cx.importer.stacks[id].clone();
    let Some(Elements { buffer, places, element }) = elements else {
        return Err(cx.invalid(format!("nothing is ever pushed on stack '{name}'")));
    };
    let wanted = cx.output_type(0)?;
    cx.check(wanted == element.element_type, || {
        format!("stack '{name}' holds {}, not {wanted}", element.element_type)
    })?;
    let at = cx.importer.read_variable(size);
    let fewer = cx.add_scalar(at, -1.0)?;
    let buffer = cx.importer.read_variable(buffer);
    let writer = cx.name.clone();
    cx.importer.write_variable(size, fewer, &writer);
    if places == 0 {
        return Ok(vec![Value::Array(cx.splat(element.element_type, &element.sizes(), 0.0)?)]);
    }
    let is_trusted = !cx.importer.lessons.is_distrusted(&name);
    if let Some(Some(constant)) = constant
        && is_trusted
    {
        cx.importer.stacks[id].was_used = true;
        return Ok(vec![Value::Array(cx.literal(constant))]);
    }
    let value = cx.element_at(buffer, fewer)?;
    if let Some(range) = range
        && range != Range::UNKNOWN
        && is_trusted
    {
        cx.importer.stacks[id].was_used = true;
        // What was never written is 0.
        let range = join_ranges(range, Range::exactly(0));
        cx.importer.scope().ranges.insert(value, range);
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

impl Importer<'_> {
    /// How much was pushed so far, for each stack.
    pub(crate) fn pushes(&self) -> Vec<i64> {
        self.stacks.values().map(|stack| stack.pushes).collect()
    }

    /// Goes back to what was pushed before; of stacks that are new since then what they hold stays.
    pub(crate) fn set_pushes(&mut self, pushes: &[i64]) {
        for (k, stack) in self.stacks.values_mut().enumerate() {
            if let Some(&pushes) = pushes.get(k) {
                stack.pushes = pushes;
            }
        }
    }

    /// The larger of what was pushed so far and something else.
    pub(crate) fn most_pushes(&self, others: &[i64]) -> Vec<i64> {
        let most = |(k, pushes): (usize, i64)| others.get(k).map_or(pushes, |&other| other.max(pushes));
        self.pushes().into_iter().enumerate().map(most).collect()
    }
}
