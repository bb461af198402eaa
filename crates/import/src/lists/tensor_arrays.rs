//! Tensor arrays of TensorFlow 1: arrays of tensors that are written and read one by one.
//!
//! A tensor array is a local variable of the computation that creates it: a buffer with a slot for
//! each element, initially zeros. Its size must have a bound, or follow from the largest index
//! that is written. A write to a plain array overwrites the element. A write to a
//! gradient array adds to it. A gradient array is identified by the name of its gradient, however
//! often it is requested. Elements that were never written are zeros, and indices out of range are
//! clamped, so that all accesses stay within the buffer.

use crate::lists::elements::unnamed;
use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many, rule_values};
use crate::values::tensor_array::TensorArray;
use crate::values::value::{TensorArrayId, Value};
use crate::values::value_type::names;
use bounded::{Bounded, Reducer, Size, VariableId, list};
use hlo::{InstructionId, Op};
use shape::{ArrayShape, PrimitiveType};
use std::collections::BTreeMap;
use support::{Code, Error, Result};

// The three versions of each op differ in the type of the handle, which does not matter here.
pub(crate) const RULES: &[Rule] = &[
    rule_values("TensorArray", tensor_array).types("dtype", ALL),
    rule_values("TensorArrayV2", tensor_array).types("dtype", ALL),
    rule_values("TensorArrayV3", tensor_array).types("dtype", ALL),
    rule_values("TensorArrayGrad", |cx| gradient(cx, false)),
    rule_values("TensorArrayGradV2", |cx| gradient(cx, false)),
    rule_values("TensorArrayGradV3", |cx| gradient(cx, false)),
    rule_values("TensorArrayGradWithShape", |cx| gradient(cx, true)),
    rule_values("TensorArrayWrite", write).types("T", ALL).effect(),
    rule_values("TensorArrayWriteV2", write).types("T", ALL).effect(),
    rule_values("TensorArrayWriteV3", write).types("T", ALL).effect(),
    rule("TensorArrayRead", read).types("dtype", ALL),
    rule("TensorArrayReadV2", read).types("dtype", ALL),
    rule("TensorArrayReadV3", read).types("dtype", ALL),
    rule("TensorArrayGather", gather).types("dtype", ALL),
    rule("TensorArrayGatherV2", gather).types("dtype", ALL),
    rule("TensorArrayGatherV3", gather).types("dtype", ALL),
    rule_values("TensorArrayScatter", scatter).types("T", ALL).effect(),
    rule_values("TensorArrayScatterV2", scatter).types("T", ALL).effect(),
    rule_values("TensorArrayScatterV3", scatter).types("T", ALL).effect(),
    rule_many("TensorArrayConcat", concat).types("dtype", ALL),
    rule_many("TensorArrayConcatV2", concat).types("dtype", ALL),
    rule_many("TensorArrayConcatV3", concat).types("dtype", ALL),
    rule_values("TensorArraySplit", split).types("T", ALL).effect(),
    rule_values("TensorArraySplitV2", split).types("T", ALL).effect(),
    rule_values("TensorArraySplitV3", split).types("T", ALL).effect(),
    rule("TensorArrayPack", pack).types("dtype", ALL),
    rule_values("TensorArrayUnpack", unpack).types("T", ALL).effect(),
    rule("TensorArraySize", size),
    rule("TensorArraySizeV2", size),
    rule("TensorArraySizeV3", size),
    rule_values("TensorArrayClose", |_| Ok(Vec::new())),
    rule_values("TensorArrayCloseV2", |_| Ok(Vec::new())),
    rule_values("TensorArrayCloseV3", |_| Ok(Vec::new())),
];

/// `TensorArrayV3(size) = handle, flow`.
pub(super) fn tensor_array(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (size, open) = initial_size(cx)?;
    cx.check(size >= 0, || format!("TensorArray size must be >= 0, got {size}"))?;
    let element_type = cx.type_attribute("dtype")?;
    let grows = cx.attributes().bool_or("dynamic_size", false)?;
    let element = cx.attributes().shape_or("element_shape", tf::PartialShape::UNKNOWN)?.sizes();
    let (name, level) = (cx.name().to_owned(), cx.level());
    let mut length = None;
    if grows {
        let initial = match open {
            Some(open) => cx.size_of_entry(open)?,
            None => cx.s32(size)?,
        };
        length = Some(cx.new_local(&name, level, initial));
    }
    let array = TensorArray {
        places: if grows { size.max(cx.lessons().places(&name)) } else { size },
        size: open.filter(|_| !grows),
        name,
        level,
        element_type,
        length,
        accumulates: false,
        element,
        names: Vec::new(),
        buffer: None,
        is_gone: false,
        gradients: BTreeMap::new(),
    };
    let id = cx.add_tensor_array(array);
    let mut values = vec![Value::TensorArray(id)];
    if cx.node().output_types.len() > 1 {
        values.push(Value::Array(cx.scalar(PrimitiveType::F32, 0.0)));
    }
    Ok(values)
}

/// Returns the size that an array has in the beginning, or its bound, and the size itself if it is
/// open: an instruction of the entry.
fn initial_size(cx: &mut NodeContext<'_, '_>) -> Result<(i64, Option<InstructionId>)> {
    let id = cx.input(0)?;
    if !cx.has_named_sizes() || cx.fold(id).is_some() {
        return Ok((cx.constant_i64(0)?, None));
    }
    let Size { bound, size } = cx.bounded_element(0, 0)?;
    let Some(size) = size else { return Ok((bound, None)) };
    match cx.entry_size(size) {
        Some(size) => Ok((bound, Some(size))),
        None => Err(cx.not_constant(0, id)),
    }
}

/// `TensorArrayGradV3(handle, flow) = grad_handle, flow`: an array of the same size that
/// accumulates writes.
pub(super) fn gradient(cx: &mut NodeContext<'_, '_>, has_prefix: bool) -> Result<Vec<Value>> {
    let forward = cx.tensor_array_input()?;
    let source = cx.attributes().text("source")?.to_owned();
    let prefix = if has_prefix { cx.constant_sizes(2)? } else { Vec::new() };
    let id = match cx[forward].gradients.get(&source) {
        Some(&id) => id,
        None => {
            let array = cx[forward].clone();
            let element = array.element.as_ref().map(|element| [&prefix, &element[..]].concat());
            let gradient = TensorArray {
                element,
                accumulates: true,
                buffer: None,
                is_gone: false,
                length: None,
                gradients: BTreeMap::new(),
                ..array
            };
            let id = cx.add_tensor_array(gradient);
            cx[forward].gradients.insert(source, id);
            id
        }
    };
    let mut values = vec![Value::TensorArray(id)];
    if cx.node().output_types.len() > 1 {
        values.push(cx.value(1)?);
    }
    Ok(values)
}

/// `TensorArrayWriteV3(handle, index, value, flow) = flow`.
pub(super) fn write(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let id = cx.tensor_array_input()?;
    let (index, mut value) = (cx.input(1)?, cx.input(2)?);
    let index_sizes = cx.sizes(index);
    cx.check(index_sizes.is_empty(), || {
        format!("index: expected a scalar, got shape {}", list(&index_sizes))
    })?;
    grow(cx, id, index)?;
    let names = element_names(cx, value)?;
    let (element_type, sizes) = (cx.element_type(value), cx.sizes(value));
    cx.check_element(id, element_type, &sizes, &names)?;
    value = cx.split(value)?.data;
    let buffer = cx.buffer(id)?;
    let old = cx.read_variable(buffer);
    if cx[id].places > 0 {
        if cx[id].accumulates {
            let before = cx.element_at(old, index)?;
            value = cx.sum(before, value)?;
        }
        let new = cx.update_element(old, value, index)?;
        cx.write_local(buffer, new);
    }
    Ok(vec![cx.value(3)?])
}

/// Returns the names of an array's dimensions. Bounded ones must have one.
fn element_names(cx: &NodeContext<'_, '_>, value: InstructionId) -> Result<Vec<Option<usize>>> {
    if !cx.is_bounded(value) {
        return Ok(Vec::new());
    }
    names(cx, value).ok_or_else(|| unnamed(&cx.array(value)))
}

/// Records the length to which a write extends an array that grows.
fn grow(cx: &mut NodeContext<'_, '_>, id: TensorArrayId, index: InstructionId) -> Result<()> {
    let Some(length) = cx[id].length else { return Ok(()) };
    let Some(most) = cx.range(index).high else {
        return Err(unbounded(cx, id, index));
    };
    let places = most.saturating_add(1);
    if places > cx[id].places {
        let name = cx[id].name.clone();
        cx.lessons_mut().need_places(&name, places);
        if cx[id].buffer.is_none() {
            cx[id].places = places;
        }
    }
    let old = cx.read_variable(length);
    let end = cx.add_scalar(index, 1.0)?;
    let new = cx.op(Op::Maximum {}, &[old, end])?;
    cx.write_local(length, new);
    Ok(())
}

fn unbounded(cx: &NodeContext<'_, '_>, id: TensorArrayId, index: InstructionId) -> Error {
    let array = &cx[id];
    let name = &array.name;
    let why = cx.runs_within(array.level).err().unwrap_or_else(|| {
        let origins = cx.origins(index);
        let origins =
            if origins.is_empty() { "the iterations of the loop".to_owned() } else { origins.join(", ") };
        format!("it depends on {origins}. Give the TensorArray a fixed size.")
    });
    Error::unsupported(format!(
        "TensorArray '{name}' has dynamic_size=true, and the index that is written has no upper bound: {why}"
    ))
    .coded(Code::LoopBound)
}

/// `TensorArrayReadV3(handle, index, flow) = value`.
pub(super) fn read(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let id = cx.tensor_array_input()?;
    let index = cx.input(1)?;
    let (buffer, element) = cx.contents(id, None)?;
    let value = if cx[id].places == 0 {
        cx.splat(element.element_type, &element.sizes(), 0.0)?
    } else {
        cx.element_at(buffer, index)?
    };
    cx.with_element_names(id, value, &[])
}

/// `TensorArrayGatherV3(handle, indices, flow) = value`.
pub(super) fn gather(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let id = cx.tensor_array_input()?;
    let indices = cx.input(1)?;
    let index_sizes = cx.sizes(indices);
    cx.check(index_sizes.len() == 1, || {
        format!("indices: expected a vector, got shape {}", list(&index_sizes))
    })?;
    let (buffer, _) = cx.contents(id, Some("element_shape"))?;
    let indices = cx.split(indices)?;
    let value = if is_dense(cx, indices.data, cx[id].places) {
        cx.slice_in(buffer, 0, 0, index_sizes[0])?
    } else {
        cx.gather_along(buffer, indices.data, 0, 0)?
    };
    cx.with_element_names(id, value, &indices.sizes)
}

/// `TensorArrayPack(handle, flow) = value`: all elements.
pub(super) fn pack(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let id = cx.tensor_array_input()?;
    let (buffer, _) = cx.contents(id, Some("element_shape"))?;
    let count = cx.number_of_elements(id)?;
    let value = cx.slice_in(buffer, 0, 0, count.bound)?;
    cx.with_element_names(id, value, &[count.size])
}

/// True if indices are known to be 0, 1, 2, and so on, and all are below a limit.
fn is_dense(cx: &mut NodeContext<'_, '_>, indices: InstructionId, limit: i64) -> bool {
    let known = cx.fold(indices).and_then(|literal| literal.to_i64s());
    known.is_some_and(|known| known.len() as i64 <= limit && known.iter().copied().eq(0..known.len() as i64))
}

/// `TensorArrayScatterV3(handle, indices, value, flow) = flow`: writes row `i` of the value to
/// element `indices[i]`.
pub(super) fn scatter(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let id = cx.tensor_array_input()?;
    let (indices, value) = (cx.input(1)?, cx.input(2)?);
    let (index_sizes, sizes) = (cx.sizes(indices), cx.sizes(value));
    cx.check(index_sizes.len() == 1 && sizes.first() == Some(&index_sizes[0]), || {
        format!(
            "indices of shape {}: expected a vector with one index for each row of {}",
            list(&index_sizes),
            list(&sizes)
        )
    })?;
    grow_to_rows(cx, id, indices)?;
    let whole_indices = cx.split(indices)?.data;
    if is_dense(cx, whole_indices, cx[id].places) {
        write_rows(cx, id, value)?;
    } else {
        let names = element_names(cx, value)?;
        cx.check_element(id, cx.element_type(value), &sizes[1..], names.get(1..).unwrap_or_default())?;
        // Rows beyond the true number are not written.
        let Bounded { data, sizes: mut true_sizes } = cx.split(value)?;
        true_sizes[1..].fill(None);
        let value = cx.bounded(data, &true_sizes)?;
        let buffer = cx.buffer(id)?;
        let old = cx.read_variable(buffer);
        let reducer = if cx[id].accumulates { Reducer::Add } else { Reducer::Replace };
        let new = cx.scatter_rows(old, indices, value, reducer)?;
        cx.write_local(buffer, new);
    }
    Ok(vec![cx.value(3)?])
}

/// Extends an array that grows to the largest index of a scatter.
fn grow_to_rows(cx: &mut NodeContext<'_, '_>, id: TensorArrayId, indices: InstructionId) -> Result<()> {
    if cx[id].length.is_none() || cx.sizes(indices) == [0] {
        return Ok(());
    }
    let most = cx.reduce(indices, Reducer::Maximum, &[0])?;
    grow(cx, id, most)
}

/// `TensorArrayUnpack(handle, value, flow) = flow`: writes one row to each element.
pub(super) fn unpack(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let id = cx.tensor_array_input()?;
    let value = cx.input(1)?;
    write_rows(cx, id, value)?;
    Ok(vec![cx.value(2)?])
}

/// Writes rows to the first elements.
fn write_rows(cx: &mut NodeContext<'_, '_>, id: TensorArrayId, value: InstructionId) -> Result<()> {
    let sizes = cx.sizes(value);
    let places = cx[id].places;
    cx.check(sizes.first().is_some_and(|&rows| rows <= places), || {
        format!("a value of shape {} does not fit in {places} elements", list(&sizes))
    })?;
    let names = element_names(cx, value)?;
    cx.check_element(id, cx.element_type(value), &sizes[1..], names.get(1..).unwrap_or_default())?;
    let value = cx.split(value)?.data;
    let buffer = cx.buffer(id)?;
    let (whole, accumulates) = (sizes[0] == places, cx[id].accumulates);
    let new = match (whole, accumulates) {
        (true, false) => value,
        (_, true) => {
            let mut padding = vec![(0, 0, 0); sizes.len()];
            padding[0].1 = places - sizes[0];
            let element_type = cx.element_type(value);
            let zero = cx.scalar(element_type, 0.0);
            let value = cx.pad(value, zero, &padding)?;
            let old = cx.read_variable(buffer);
            cx.sum(old, value)?
        }
        (false, false) => {
            let old = cx.read_variable(buffer);
            let rest = cx.slice_in(old, 0, sizes[0], places)?;
            cx.concatenate(&[value, rest], 0)?
        }
    };
    cx.write_local(buffer, new);
    Ok(())
}

/// `TensorArrayConcatV3(handle, flow) = value, lengths`: concatenates the elements.
pub(super) fn concat(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let id = cx.tensor_array_input()?;
    let places = cx[id].places;
    if cx[id].element.is_none() && places == 0 {
        let rest = cx.attributes().shape_or("element_shape_except0", tf::PartialShape::UNKNOWN)?;
        if let Some(rest) = rest.sizes() {
            cx[id].element = Some([&[0], &rest[..]].concat());
        }
    }
    let (buffer, element) = cx.contents(id, None)?;
    let element = element.sizes();
    cx.check(!element.is_empty(), || {
        "Concat saw a scalar shape, but requires at least vectors; did you mean to use pack?".to_owned()
    })?;
    let count = cx.number_of_elements(id)?;
    let elements = cx.slice_in(buffer, 0, 0, count.bound)?;
    let elements = cx.with_element_names(id, elements, &[count.size])?;
    let sizes = cx.all_sizes(elements)?;
    let rows = cx.true_count(elements, &[0, 1])?;
    let joined = Size { bound: count.bound * element[0], size: Some(rows) };
    let sizes = [&[joined], &sizes[2..]].concat();
    let value = cx.reshape_to(elements, &sizes)?;
    let length = cx.true_size(elements, 1)?;
    let length = cx.convert(length, PrimitiveType::S64)?;
    let lengths = cx.broadcast(length, &[count.bound], &[])?;
    Ok(vec![value, cx.bounded(lengths, &[count.size])?])
}

/// `TensorArraySplitV3(handle, value, lengths, flow) = flow`: writes the number of rows in
/// `lengths` to each element.
pub(super) fn split(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let id = cx.tensor_array_input()?;
    let value = cx.input(1)?;
    let (sizes, lengths) = (cx.sizes(value), cx.constant_sizes(2)?);
    let count = lengths.len() as i64;
    cx.check(!sizes.is_empty() && lengths.iter().sum::<i64>() == sizes[0], || {
        format!("the lengths {} do not add up to the first dimension of {}", list(&lengths), list(&sizes))
    })?;
    let length = lengths.first().copied().unwrap_or(0);
    if lengths.iter().any(|&other| other != length) {
        return Err(Error::unsupported(format!(
            "TensorArray '{}' would hold elements of different lengths {}; compiled code supports one shape for all elements",
            cx[id].name,
            list(&lengths)
        )));
    }
    if cx[id].length.is_some() && count > 0 {
        let last = cx.integers(PrimitiveType::S32, &[count - 1])?;
        let last = cx.reshape(last, &[])?;
        grow(cx, id, last)?;
    }
    let rows = cx.reshape(value, &[&[count, length], &sizes[1..]].concat())?;
    write_rows(cx, id, rows)?;
    Ok(vec![cx.value(3)?])
}

/// `TensorArraySizeV3(handle, flow) = size`.
pub(super) fn size(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let id = cx.tensor_array_input()?;
    match (cx[id].length, cx[id].size) {
        (Some(length), _) => Ok(cx.read_variable(length)),
        (None, Some(size)) => cx.size_of_entry(size),
        (None, None) => {
            let places = cx[id].places;
            let size = cx.integers(PrimitiveType::S32, &[places])?;
            cx.reshape(size, &[])
        }
    }
}

impl NodeContext<'_, '_> {
    /// Returns the tensor array whose handle is the first input.
    fn tensor_array_input(&self) -> Result<TensorArrayId> {
        match self.value(0)? {
            Value::TensorArray(id) => Ok(id),
            other => {
                Err(self
                    .invalid(format!("input 0: expected the handle of a TensorArray, got {}", other.kind())))
            }
        }
    }

    /// Returns an instruction of the entry for a size: itself there, or a named one.
    fn entry_size(&mut self, size: InstructionId) -> Option<InstructionId> {
        if self.level() == 0 {
            return Some(size);
        }
        self.named_size(size).map(|position| self.entry_size_parameter(position))
    }

    /// Returns the number of elements of an array to be converted to one tensor. HLO's shapes are
    /// static, so it must be known or open.
    fn number_of_elements(&mut self, id: TensorArrayId) -> Result<Size> {
        let TensorArray { places, length, size, .. } = self[id];
        let Some(length) = length else {
            let size = size.map(|size| self.size_of_entry(size)).transpose()?;
            return Ok(Size { bound: places, size });
        };
        let length = self.read_variable(length);
        if let Some(known) = self.fold(length).and_then(|literal| literal.scalar_at(0).as_i64()) {
            return Ok(Size::known(known.clamp(0, places)));
        }
        let owner = format!("TensorArray '{}'", self[id].name);
        Err(self.unknown_length(length, &owner, "give the TensorArray a fixed size without dynamic_size"))
    }

    /// Gives true sizes to an array of elements: those of its leading dimensions, and the named
    /// ones of elements.
    fn with_element_names(
        &mut self,
        id: TensorArrayId,
        whole: InstructionId,
        lead: &[Option<InstructionId>],
    ) -> Result<InstructionId> {
        let mut sizes = lead.to_vec();
        for name in self[id].names.clone() {
            sizes.push(name.map(|position| self.size_parameter(position)));
        }
        sizes.resize(self.rank(whole), None);
        self.bounded(whole, &sizes)
    }

    /// Records an element's shape. Returns an error if it differs from that of other elements.
    fn check_element(
        &mut self,
        id: TensorArrayId,
        element_type: PrimitiveType,
        sizes: &[i64],
        names: &[Option<usize>],
    ) -> Result<()> {
        let names = if names.iter().any(Option::is_some) { names } else { &[] };
        let array = &self[id];
        self.check(array.element_type == element_type, || {
            format!("TensorArray '{}' holds {}, got {element_type}", array.name, array.element_type)
        })?;
        if let Some(element) = &array.element {
            return self.check(element == sizes && array.names == names, || {
                format!(
                    "TensorArray '{}' holds elements of shape {}, but an element of shape {} is written; all elements must \
                     have one shape",
                    array.name,
                    list(element),
                    list(sizes)
                )
            });
        }
        self[id].element = Some(sizes.to_vec());
        self[id].names = names.to_vec();
        Ok(())
    }

    /// Returns the buffer of an array whose element shape is known. A new buffer contains zeros.
    fn buffer(&mut self, id: TensorArrayId) -> Result<VariableId> {
        let array = &self[id];
        if let Some(buffer) = array.buffer {
            return Ok(buffer);
        }
        if array.is_gone {
            return Err(Error::unsupported(format!(
                "TensorArray '{}' is created in each iteration of a loop and used in another loop, where its elements no longer \
                 exist; only its gradient may be used there",
                array.name
            )));
        }
        let (level, element_type, name) = (array.level, array.element_type, array.name.clone());
        let element = array.element.clone().unwrap_or_default();
        let sizes = [&[array.places], &element[..]].concat();
        let zeros = self.zeros_at(level, element_type, &sizes);
        let zeros = zeros.map_err(|e| e.context(format!("TensorArray '{name}' of {} elements", sizes[0])))?;
        let buffer = self.new_local(&name, level, zeros);
        self[id].buffer = Some(buffer);
        Ok(buffer)
    }

    /// Returns all elements of an array, and the shape of one. If nothing was written, an attribute
    /// may declare it.
    fn contents(
        &mut self,
        id: TensorArrayId,
        attribute: Option<&str>,
    ) -> Result<(InstructionId, ArrayShape)> {
        let array = &self[id];
        let (element_type, name) = (array.element_type, array.name.clone());
        let requested = self.output_type(0)?;
        self.check(requested == element_type, || {
            format!("TensorArray '{name}' holds {element_type}, but is read as {requested}")
        })?;
        let mut element = array.element.clone();
        if let (None, Some(attribute)) = (&element, attribute) {
            element = self.attributes().shape_or(attribute, tf::PartialShape::UNKNOWN)?.sizes();
        }
        let element = element.ok_or_else(|| {
            self.invalid(format!(
                "TensorArray '{name}' is read before a write determines the shape of its elements; give the \
                 TensorArray an element_shape"
            ))
        })?;
        self[id].element = Some(element.clone());
        let buffer = self.buffer(id)?;
        let elements = self.read_variable(buffer);
        Ok((elements, ArrayShape::new(element_type, &element)))
    }

    /// Returns the sum of two arrays of one shape, or the logical or of truth values.
    fn sum(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        let op = if self.element_type(a) == PrimitiveType::Pred { Op::Or {} } else { Op::Add {} };
        self.op(op, &[a, b])
    }

    /// Assigns a new value to a local variable.
    fn write_local(&mut self, variable: VariableId, value: InstructionId) {
        let writer = self.name().to_owned();
        self.write_variable(variable, value, &writer);
    }
}
