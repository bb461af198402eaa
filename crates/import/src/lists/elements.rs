//! Reads and writes of the elements of tensor lists.

use crate::node::context::NodeContext;
use crate::values::list::{Bounds, Content, ElementType, Length, List, ListType, is_zero, join_contents};
use crate::values::value::{ListId, Value};
use crate::values::value_type::{ValueType, coerce, convert_elements, leaves_of, rebuild, value_type};
use bounded::list as in_words;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use support::{Code, Error, Result};

/// Maximum number of values in a constant element that needs no buffer.
const MAX_UNIFORM_ELEMENTS: i64 = 64;

/// Lists at least this long grow by half of their capacity. Shorter ones grow by exactly what they
/// need.
const EXACT_GROWTH: i64 = 16;

/// Creates the error for elements whose sizes depend on data.
pub(crate) fn unnamed(shape: &ArrayShape) -> Error {
    Error::unsupported(format!(
        "elements {shape} of a list have a dimension of data-dependent size, which is not supported; give them a fixed size \
         first, for example with XlaRemoveDynamicDimensionSize"
    ))
    .coded(Code::BoundedSize)
}

/// A position in a list.
pub(crate) type Position = Length;

impl ElementType {
    /// Returns the type of an element as a value, or `None` if it is not known.
    pub(crate) fn value_type(&self) -> Option<ValueType> {
        match self {
            Self::Unknown(_) | Self::OneOf(_) => None,
            Self::Array(shape) => Some(ValueType::Array(shape.clone())),
            Self::Named(shape, names) => Some(ValueType::Named(shape.clone(), names.clone())),
            Self::List(list) => Some(ValueType::List((**list).clone())),
        }
    }
}

impl NodeContext<'_, '_> {
    /// Returns the list at an input.
    pub(crate) fn list(&self, k: usize) -> Result<List> {
        match self.value(k)? {
            Value::List(id) => Ok(self[id].clone()),
            other => Err(self.invalid(format!("input {k}: expected a tensor list, got {}", other.kind()))),
        }
    }

    /// Adds a list and returns it as a value.
    pub(crate) fn new_list(&mut self, list: List) -> Value {
        let id: ListId = self.add_list(list);
        Value::List(id)
    }

    /// Returns the number of elements as an `s32` scalar.
    pub(crate) fn length(&mut self, list: &List) -> Result<InstructionId> {
        self.position(list.length)
    }

    /// Returns a position as an `s32` scalar.
    pub(crate) fn position(&mut self, position: Position) -> Result<InstructionId> {
        match position {
            Length::Known(position) => {
                let position = i32::try_from(position);
                let position = position
                    .map_err(|_| self.invalid("a list is too long: its positions do not fit in int32"))?;
                Ok(self.literal(Literal::scalar(position)))
            }
            Length::Dynamic(id) => Ok(id),
        }
    }

    /// Returns the position at an input.
    pub(crate) fn position_input(&mut self, k: usize) -> Result<Position> {
        let id = self.input(k)?;
        let sizes = self.sizes(id);
        self.check(sizes.is_empty(), || {
            format!("input {k}: expected a scalar, got shape {}", in_words(&sizes))
        })?;
        let id = self.convert(id, PrimitiveType::S32)?;
        Ok(self.known(id))
    }

    fn known(&mut self, id: InstructionId) -> Position {
        match self.fold(id).and_then(|literal| literal.scalar_at(0).as_i64()) {
            Some(known) => Length::Known(known),
            None => Length::Dynamic(id),
        }
    }

    /// `position + offset`.
    pub(crate) fn moved(&mut self, position: Position, offset: i64) -> Result<Position> {
        Ok(match position {
            Length::Known(known) => Length::Known(known.saturating_add(offset)),
            Length::Dynamic(id) => Length::Dynamic(self.add_scalar(id, offset as f64)?),
        })
    }

    /// The larger of two positions.
    pub(crate) fn later(&mut self, a: Position, b: Position) -> Result<Position> {
        if let (Length::Known(a), Length::Known(b)) = (a, b) {
            return Ok(Length::Known(a.max(b)));
        }
        let (a, b) = (self.position(a)?, self.position(b)?);
        let later = self.op(Op::Maximum {}, &[a, b])?;
        Ok(self.known(later))
    }

    /// Returns the number of elements of a list to be converted to an array. HLO's shapes are
    /// static, so it must be known.
    pub(crate) fn known_length(&self, list: &List) -> Result<i64> {
        let id = match list.length {
            Length::Known(length) => return Ok(length),
            Length::Dynamic(id) => id,
        };
        Err(self.unknown_length(
            id,
            "the list",
            "create the list with a fixed number of elements (a TensorArray with a constant size and without dynamic_size)",
        ))
    }

    /// Returns the error for a data-dependent number of elements that an array is to hold. `fix`
    /// says how to avoid it.
    pub(crate) fn unknown_length(&self, length: InstructionId, owner: &str, fix: &str) -> Error {
        let loops = self.loops_before(length);
        let by = match loops.as_slice() {
            [] => String::new(),
            loops => format!(" after {}", loops.join(" and ")),
        };
        let origins = self.origins(length);
        let origins = match origins.as_slice() {
            [] => String::new(),
            origins => format!(": it depends on {}", origins.join(", ")),
        };
        Error::unsupported(format!(
            "the number of elements of {owner} is not known at compile time{by}{origins}. Compiled shapes are static: {fix}, or \
             let the loop run a constant number of times"
        )).coded(Code::LoopBound)
    }

    /// Returns the sizes that an input declares for elements, with -1 for unknown ones, or `None`
    /// if the rank is unknown.
    pub(crate) fn declared_sizes(&mut self, k: usize) -> Result<Option<Vec<i64>>> {
        let id = self.input(k)?;
        let shape = self.array(id);
        match shape.sizes().as_slice() {
            [] => {
                let only = self.constant_element(k, 0)?;
                self.check(only.is_none_or(|only| only == -1), || {
                    "a scalar shape must be -1, the unknown shape".to_owned()
                })?;
                Ok(None)
            }
            &[rank] => {
                let mut sizes = Vec::new();
                for d in 0..rank.clamp(0, 255) as usize {
                    sizes.push(self.constant_element(k, d)?.unwrap_or(-1).max(-1));
                }
                Ok(Some(sizes))
            }
            sizes => Err(self.invalid(format!("a shape must be a vector, got shape {}", in_words(sizes)))),
        }
    }

    /// Returns the type of elements of these sizes, and of the type that the attribute names.
    pub(crate) fn element_of(&self, sizes: Option<Vec<i64>>) -> Result<ElementType> {
        if self.attributes().ty("element_dtype")?.base() == tf::DataType::Variant {
            return Ok(ElementType::Unknown(None));
        }
        let element_type = self.type_attribute("element_dtype")?;
        Ok(match sizes {
            Some(sizes) if !sizes.contains(&-1) => {
                let fits = shape::index::element_count(&sizes).is_some();
                self.check(fits, || format!("elements of shape {} have too many values", in_words(&sizes)))?;
                ElementType::Array(ArrayShape::new(element_type, &sizes))
            }
            sizes => ElementType::Unknown(sizes),
        })
    }

    /// Returns the type of a list's elements or, if it is not known, the type that an input
    /// declares.
    pub(crate) fn element_or_declared(&mut self, list: &List, k: usize) -> Result<ElementType> {
        if !matches!(list.element, ElementType::Unknown(_)) {
            return Ok(list.element.clone());
        }
        let mut declared = self.declared_sizes(k)?;
        // Each may specify sizes that the other leaves open.
        if let (Some(declared), ElementType::Unknown(Some(sizes))) = (&mut declared, &list.element)
            && declared.len() == sizes.len()
        {
            for (size, &other) in declared.iter_mut().zip(sizes) {
                *size = if *size == -1 { other } else { *size };
            }
        }
        self.element_of(declared)
    }

    /// Reads the element at a position. Positions out of range are clamped, as in XLA. `element` is
    /// the type to read if nothing was written.
    pub(crate) fn read_element(
        &mut self,
        list: &List,
        position: Position,
        element: &ElementType,
    ) -> Result<Value> {
        let Some(value_type) = element.value_type() else {
            return Err(self.invalid(
                "the shape to read is unknown: the list has no element yet and declares no shape; set \
                 element_shape of the list or of the TensorArray",
            ));
        };
        let buffers = match &list.content {
            Content::Uniform(literal) => return Ok(Value::Array(self.literal(literal.clone()))),
            Content::Buffers(_) if list.is_open() => {
                let leaves = self.placeholders(&value_type)?;
                return Ok(rebuild(self, &value_type, &leaves));
            }
            Content::Buffers(buffers) if list.capacity != Some(0) => buffers.clone(),
            _ => {
                let leaves = self.zero_leaves(&value_type)?;
                return Ok(rebuild(self, &value_type, &leaves));
            }
        };
        let mut parts = Vec::new();
        for buffer in buffers {
            parts.push(self.row(buffer, position)?);
        }
        Ok(rebuild(self, &value_type, &parts))
    }

    /// Returns one row of a buffer along its leading dimension, which must not be empty.
    pub(crate) fn row(&mut self, buffer: InstructionId, position: Position) -> Result<InstructionId> {
        let sizes = self.sizes(buffer);
        let row = match position {
            Length::Known(position) => {
                let position = position.clamp(0, sizes[0] - 1);
                self.slice_in(buffer, 0, position, position + 1)?
            }
            Length::Dynamic(id) => {
                let mut operands = vec![buffer, id];
                operands.extend(self.zero_indices(sizes.len() - 1));
                let mut dynamic_slice_sizes = sizes.clone();
                dynamic_slice_sizes[0] = 1;
                self.op(Op::DynamicSlice { dynamic_slice_sizes }, &operands)?
            }
        };
        self.reshape(row, &sizes[1..])
    }

    fn zero_indices(&mut self, count: usize) -> Vec<InstructionId> {
        let zero = (count > 0).then(|| self.literal(Literal::scalar(0i32)));
        zero.into_iter().cycle().take(count).collect()
    }

    /// Returns arrays in place of those of a value while the types that a loop carries are being
    /// inferred.
    pub(crate) fn placeholders(&mut self, value_type: &ValueType) -> Result<Vec<InstructionId>> {
        let mut parts = Vec::new();
        for leaf in value_type.leaves() {
            parts.push(self.placeholder(&leaf)?);
        }
        Ok(parts)
    }

    /// Returns an array in place of one that is not known yet. It is never part of the final
    /// program.
    pub(crate) fn placeholder(&mut self, shape: &ArrayShape) -> Result<InstructionId> {
        let op = Op::CustomCall {
            custom_call_target: "tensor-list-placeholder".to_owned(),
            backend_config: String::new(),
            custom_call_has_side_effect: false,
            attributes: hlo::RawAttributes::default(),
        };
        self.op_shaped(&Shape::from(shape.clone()), op, &[])
    }

    fn zero_leaves(&mut self, value_type: &ValueType) -> Result<Vec<InstructionId>> {
        let mut parts = Vec::new();
        for leaf in value_type.leaves() {
            parts.push(self.zeros(leaf.element_type, &leaf.sizes())?);
        }
        Ok(parts)
    }

    /// Returns the array or list at an input.
    pub(crate) fn element_input(&mut self, k: usize) -> Result<Value> {
        match self.value(k)? {
            list @ Value::List(_) => Ok(list),
            _ => Ok(Value::Array(self.input(k)?)),
        }
    }

    /// Returns the type of a value as an element.
    pub(crate) fn element_type_of(&self, value: Value) -> Result<ElementType> {
        match value_type(self, value) {
            ValueType::Array(shape) if !shape.is_static() => Err(unnamed(&shape)),
            ValueType::Array(shape) => Ok(ElementType::Array(shape)),
            ValueType::Named(shape, names) => Ok(ElementType::Named(shape, names)),
            ValueType::List(list) => {
                Ok(ElementType::List(Box::new(ListType { bounds: Bounds::default(), ..list })))
            }
            ValueType::Same(value) => Err(self.invalid(format!(
                "expected an array or a tensor list as a list element, got {}",
                value.kind()
            ))),
        }
    }

    /// Returns the value of an element, if it is small and known at compile time.
    fn small_constant(&mut self, value: Value) -> Option<Literal> {
        let Value::Array(id) = value else { return None };
        let small = self.array(id).element_count() <= MAX_UNIFORM_ELEMENTS;
        if small { self.fold(id) } else { None }
    }

    /// Writes an element at a position below the capacity, without changing the length.
    pub(crate) fn write_element(&mut self, list: &mut List, position: Position, value: Value) -> Result<()> {
        let was_zeros = matches!(list.content, Content::Zeros);
        list.only = None;
        let element = list.element.join(&self.element_type_of(value)?)?;
        let content = match self.small_constant(value) {
            Some(literal) if is_zero(&literal) && matches!(list.content, Content::Zeros) => Content::Zeros,
            Some(literal) => join_contents(&list.list_type().content, &Content::Uniform(literal)),
            None => Content::Buffers(()),
        };
        let mut target = ListType { element, content, ..list.list_type() };
        if target.content != Content::Buffers(()) {
            list.content = match target.content {
                Content::Uniform(literal) => Content::Uniform(literal),
                _ => Content::Zeros,
            };
            list.element = target.element;
            return Ok(());
        }
        if target.is_open() {
            list.element = target.element;
            list.content = Content::Buffers(Vec::new());
            return Ok(());
        }
        target.length = list.list_type().length;
        *list = self.coerced(list, &target)?;
        let parts = self.element_leaves(value, &list.element)?;
        let Content::Buffers(buffers) = &mut list.content else {
            return Err(Error::internal("a list converted to buffers has none"));
        };
        if list.capacity == Some(0) {
            return Ok(());
        }
        for (buffer, &part) in buffers.iter_mut().zip(&parts) {
            *buffer = self.with_row(*buffer, position, part)?;
        }
        list.only = was_zeros.then_some((position, parts));
        Ok(())
    }

    /// Converts an element to the list's element type and returns its arrays.
    fn element_leaves(&mut self, value: Value, element: &ElementType) -> Result<Vec<InstructionId>> {
        let own_type = self.element_type_of(value)?;
        let parts = leaves_of(self, value, &value_type(self, value));
        convert_elements(self, &parts, &own_type, element, &[])
    }

    pub(crate) fn with_row(
        &mut self,
        buffer: InstructionId,
        position: Position,
        row: InstructionId,
    ) -> Result<InstructionId> {
        let mut sizes = self.sizes(buffer);
        sizes[0] = 1;
        let row = self.reshape(row, &sizes)?;
        let position = self.position(position)?;
        let mut operands = vec![buffer, row, position];
        operands.extend(self.zero_indices(sizes.len() - 1));
        self.op(Op::DynamicUpdateSlice {}, &operands)
    }

    /// Converts a list to another type.
    pub(crate) fn coerced(&mut self, list: &List, target: &ListType) -> Result<List> {
        let value = self.new_list(list.clone());
        match coerce(self, value, &ValueType::List(target.clone()))? {
            Value::List(id) => {
                let mut list = self[id].clone();
                if let Length::Dynamic(id) = list.length {
                    list.length = self.known(id);
                }
                Ok(list)
            }
            other => Err(Error::internal(format!("a list became {}", other.kind()))),
        }
    }

    /// Reserves capacity for `length` elements, unless a loop or the user has fixed it.
    pub(crate) fn reserve(&mut self, list: &mut List, length: i64) -> Result<()> {
        let Some(capacity) = list.capacity else { return Ok(()) };
        let length = list.bounds.limit.map_or(length, |limit| length.min(limit));
        if length <= capacity || list.bounds.fixed {
            return Ok(());
        }
        let new_capacity = if capacity < EXACT_GROWTH { length } else { length.max(capacity + capacity / 2) };
        let new_capacity = list.bounds.limit.map_or(new_capacity, |limit| new_capacity.min(limit));
        *list = self.coerced(list, &ListType { capacity: Some(new_capacity), ..list.list_type() })?;
        Ok(())
    }

    /// Reserves capacity for `length` elements, even if it was fixed.
    pub(crate) fn reserve_always(&mut self, list: &mut List, length: i64) -> Result<()> {
        match list.capacity {
            Some(capacity) if capacity < length => {
                *list = self.coerced(list, &ListType { capacity: Some(length), ..list.list_type() })?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the list without its last element, and that element.
    pub(crate) fn pop(&mut self, list: &List, element: &ElementType) -> Result<(List, Value)> {
        let mut rest = list.clone();
        rest.only = None;
        let last = match list.length {
            // This is a branch that is never taken, or a loop that never runs.
            Length::Known(0) => Length::Known(0),
            length => self.moved(length, -1)?,
        };
        rest.length = last;
        rest.bounds.most = match (last, list.capacity) {
            (Length::Known(length), Some(_)) => length,
            _ => list.bounds.most.saturating_sub(1),
        };
        let value = self.read_element(list, last, element)?;
        Ok((rest, value))
    }

    /// Adds an element at the end.
    pub(crate) fn push(&mut self, list: &mut List, value: Value) -> Result<()> {
        let length = match list.length {
            Length::Known(length) => length.saturating_add(1),
            Length::Dynamic(_) => list.bounds.most.saturating_add(1),
        };
        self.reserve(list, length)?;
        self.write_element(list, list.length, value)?;
        list.only = None;
        list.length = self.moved(list.length, 1)?;
        list.count_more(1);
        Ok(())
    }

    /// Changes the length: truncates the list, or extends it with zeros.
    pub(crate) fn resize(&mut self, list: &mut List, length: Position) -> Result<()> {
        let old = list.length;
        list.only = None;
        match (old, length) {
            (old, new) if old == new => return Ok(()),
            (Length::Known(old), Length::Known(new)) => {
                if new > old {
                    self.reserve(list, new)?;
                    self.clear_from(list, Length::Known(old), new)?;
                }
                list.count_more(new - old);
            }
            (_, Length::Known(new)) => {
                self.reserve(list, new)?;
                self.clear_from(list, old, new)?;
                list.count_more((new - list.bounds.most).max(0));
            }
            (old, Length::Dynamic(new)) => {
                let Some(capacity) = list.capacity else {
                    list.length = length;
                    return Ok(());
                };
                let most = self.range(new).high.unwrap_or(capacity);
                self.reserve_always(list, most)?;
                self.clear_from(list, old, most)?;
                list.count_more((most - list.bounds.most).max(0));
            }
        }
        list.length = length;
        Ok(())
    }

    /// Writes zeros from a position on, over elements that were popped or truncated before.
    fn clear_from(&mut self, list: &mut List, position: Position, end: i64) -> Result<()> {
        if let (Content::Empty, true) = (&list.content, end > 0) {
            list.content = Content::Zeros;
        }
        if let Content::Uniform(_) = list.content {
            let target = ListType { content: Content::Buffers(()), ..list.list_type() };
            *list = self.coerced(list, &target)?;
        }
        let Content::Buffers(buffers) = &list.content else { return Ok(()) };
        let mut cleared = Vec::new();
        for &buffer in buffers {
            let sizes = self.sizes(buffer);
            cleared.push(match position {
                Length::Known(position) => {
                    let head = self.slice_in(buffer, 0, 0, position.clamp(0, sizes[0]))?;
                    self.pad_end(head, 0, sizes[0] - position.clamp(0, sizes[0]))?
                }
                Length::Dynamic(id) => {
                    let positions = self.iota(PrimitiveType::S32, &sizes, 0)?;
                    let length = self.broadcast(id, &sizes, &[])?;
                    let is_kept = self.compare(ComparisonDirection::Lt, positions, length)?;
                    let zero = self.splat_like(buffer, 0.0)?;
                    self.select(is_kept, buffer, zero)?
                }
            });
        }
        list.content = Content::Buffers(cleared);
        Ok(())
    }
}
