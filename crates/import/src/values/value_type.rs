//! The types of values that a loop carries or that the branches of a conditional return: the arrays
//! that represent a value, and the value that such arrays represent.
//!
//! The types that a loop carries are inferred by translating its body, in two phases:
//! 1. The body is translated with the types that [`open`] derives from the initial values. This
//!    repeats, each time with the types that [`carried`] derives from the previous types and the
//!    body's results, until they are stable. In this phase, lists have no buffers, and reads from
//!    them are placeholders. Everything built is discarded, but it shows how many times the loop
//!    runs.
//! 2. [`settle`] then derives types in which lists have enough room. The body is translated with
//!    these, again until [`carried`] is stable; the HLO of the last round is kept. [`coerce`]
//!    converts initial values and results to these types. After the loop, the types are those of
//!    [`closed`].
//!
//! The types of other values are known from the beginning, so that a loop without lists needs one
//! round of each phase.

use crate::values::list::{Bounds, Content, ElementType, Length, List, ListType};
use crate::values::state::State;
use crate::values::value::Value;
use bounded::crossing;
use hlo::InstructionId;
use shape::{ArrayShape, Literal};
use support::{Error, Result};

/// The type of a value that passes from one computation into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// An array.
    Array(ArrayShape),
    /// An array whose bounded dimensions are named: the position of the name of each dimension.
    /// Their sizes are the same everywhere, so they are not among the arrays that represent it.
    Named(ArrayShape, Vec<Option<usize>>),
    /// A tensor list.
    List(ListType),
    /// A value that no instruction represents: the handle of a resource, or nothing at all.
    Same(Value),
}

impl ValueType {
    /// Returns the arrays that represent a value of this type.
    pub(crate) fn leaves(&self) -> Vec<ArrayShape> {
        match self {
            Self::Array(shape) => crossing::parts_of_type(shape),
            Self::Named(shape, _) => vec![ArrayShape::new(shape.element_type, &shape.sizes())],
            Self::List(list) => list.leaves(),
            Self::Same(_) => Vec::new(),
        }
    }
}

/// Returns the type of a value of the computation being built.
pub(crate) fn value_type(state: &State<'_>, value: Value) -> ValueType {
    match value {
        Value::Array(id) => {
            let shape = state.scope_ref().shape(id).expect_array().clone();
            match names(state, id) {
                Some(names) => ValueType::Named(shape, names),
                None => ValueType::Array(shape),
            }
        }
        Value::List(id) => ValueType::List(type_of_list(state, state.level(), &state[id])),
        other => ValueType::Same(other),
    }
}

/// Returns the type of a list of an open scope, with the name of its length.
fn type_of_list(state: &State<'_>, level: usize, list: &List) -> ListType {
    let named = match list.length {
        Length::Known(_) => None,
        Length::Dynamic(id) => {
            state.named_size_at(level, id).and_then(|position| u32::try_from(position).ok())
        }
    };
    ListType { named, ..list.list_type() }
}

/// Returns the named dimensions of an array, or `None` if it has other bounded dimensions, or none
/// at all.
pub(crate) fn names(state: &State<'_>, id: InstructionId) -> Option<Vec<Option<usize>>> {
    let shape = state.scope_ref().shape(id).expect_array();
    if shape.is_static() {
        return None;
    }
    let parts = crossing::parts(state.scope_ref(), id);
    let mut sizes = parts[1..].iter();
    let mut names = Vec::new();
    for dimension in &shape.dimensions {
        names.push(if dimension.is_dynamic { Some(state.named_size(*sizes.next()?)?) } else { None });
    }
    Some(names)
}

/// Returns an array with named dimensions.
pub(crate) fn with_names(
    state: &mut State<'_>,
    whole: InstructionId,
    shape: &ArrayShape,
    names: &[Option<usize>],
) -> InstructionId {
    let mut parts = vec![whole];
    for &position in names.iter().flatten() {
        parts.push(state.size_parameter(position));
    }
    crossing::assembled(state, shape, &parts)
}

/// Returns the arrays that represent a value of a type, in a fixed order.
pub(crate) fn leaves_of(state: &State<'_>, value: Value, value_type: &ValueType) -> Vec<InstructionId> {
    let mut leaves = leaves(state, value);
    match value_type {
        ValueType::Named(..) => leaves.truncate(1),
        ValueType::List(list) if list.named.is_some() => leaves.truncate(leaves.len().saturating_sub(1)),
        _ => {}
    }
    leaves
}

/// Returns the arrays that represent a value, in a fixed order.
pub(crate) fn leaves(state: &State<'_>, value: Value) -> Vec<InstructionId> {
    match value {
        Value::Array(id) => crossing::parts(state.scope_ref(), id),
        Value::List(id) => state[id].leaves(),
        _ => Vec::new(),
    }
}

/// Returns the value of a type that arrays of the computation being built represent, as many as
/// [`ValueType::leaves`].
pub(crate) fn rebuild(state: &mut State<'_>, value_type: &ValueType, leaves: &[InstructionId]) -> Value {
    match value_type {
        ValueType::Array(shape) => Value::Array(crossing::assembled(state, shape, leaves)),
        ValueType::Named(shape, names) => Value::Array(with_names(state, leaves[0], shape, names)),
        ValueType::List(list_type) => {
            let mut list = rebuild_list(state, list_type, leaves);
            if let Length::Dynamic(id) = list.length {
                // After a loop that runs a known number of times, the length is a constant.
                let known = state.fold(id).and_then(|l| l.scalar_at(0).as_i64());
                list.length = known.map_or(Length::Dynamic(id), Length::Known);
            }
            if let (Length::Known(length), Some(_)) = (list.length, list.capacity) {
                list.bounds.most = length;
            }
            Value::List(state.add_list(list))
        }
        ValueType::Same(value) => *value,
    }
}

/// Returns the list that arrays represent.
fn rebuild_list(state: &mut State<'_>, list_type: &ListType, leaves: &[InstructionId]) -> List {
    let (buffers, length) = match (list_type.length, list_type.named, leaves) {
        (Some(length), _, buffers) => (buffers, Length::Known(length)),
        (None, Some(position), buffers) => {
            (buffers, Length::Dynamic(state.size_parameter(position as usize)))
        }
        (None, None, [buffers @ .., length]) => (buffers, Length::Dynamic(*length)),
        (None, None, []) => unreachable!("a list of unknown length without a leaf for its length"),
    };
    let bounds = list_type.bounds;
    let content = match &list_type.content {
        Content::Empty => Content::Empty,
        Content::Zeros => Content::Zeros,
        Content::Uniform(literal) => Content::Uniform(literal.clone()),
        Content::Buffers(()) => Content::Buffers(buffers.to_vec()),
    };
    let element = list_type.element.clone();
    List { element, capacity: list_type.capacity, content, length, bounds, only: None }
}

impl State<'_> {
    /// Returns a value of the enclosing scope for use in the innermost scope: captured, or rebuilt
    /// if it is a small constant.
    pub(crate) fn bring_in(&mut self, value: Value, is_needed: bool) -> Value {
        match value {
            Value::Array(_) | Value::List(_) if !is_needed => Value::Opaque,
            Value::Array(id) => {
                let outer = self.scope_at(self.level() - 1);
                let (shape, parts) = (outer.shape(id).expect_array().clone(), crossing::parts(outer, id));
                let inner: Vec<InstructionId> =
                    parts.into_iter().map(|part| self.bring_in_array(part)).collect();
                Value::Array(crossing::assembled(self, &shape, &inner))
            }
            Value::List(id) => {
                let list_type = ValueType::List(type_of_list(self, self.level() - 1, &self[id]));
                let inner = leaves_of(self, value, &list_type);
                let inner: Vec<InstructionId> =
                    inner.into_iter().map(|leaf| self.bring_in_array(leaf)).collect();
                rebuild(self, &list_type, &inner)
            }
            handle => handle,
        }
    }
}

/// Returns the least type that includes values of both types.
pub(crate) fn join(a: &ValueType, b: &ValueType) -> Result<ValueType> {
    match (a, b) {
        (ValueType::List(a), ValueType::List(b)) => Ok(ValueType::List(a.join(b)?)),
        (a, b) if a == b => Ok(a.clone()),
        (ValueType::Array(a) | ValueType::Named(a, _), ValueType::Array(b) | ValueType::Named(b, _)) => {
            crossing::joined(a, b)
                .map(ValueType::Array)
                .ok_or_else(|| Error::invalid(format!("shapes differ: {a} and {b}")))
        }
        _ => Err(Error::unsupported(format!("kinds of values differ: {} and {}", kind(a), kind(b)))),
    }
}

/// Describes the kind of value of a type.
fn kind(value_type: &ValueType) -> &'static str {
    match value_type {
        ValueType::Array(_) | ValueType::Named(..) => "an array",
        ValueType::List(_) => "a tensor list",
        ValueType::Same(value) => value.kind(),
    }
}

/// Converts the value to a type that [`join`] derived from its own.
pub(crate) fn coerce(state: &mut State<'_>, value: Value, value_type: &ValueType) -> Result<Value> {
    if let (Value::Array(id), ValueType::Array(target)) = (value, value_type) {
        return Ok(Value::Array(crossing::coerced(state, id, target)?));
    }
    let (Value::List(id), ValueType::List(target)) = (value, value_type) else { return Ok(value) };
    let source = type_of_list(state, state.level(), &state[id]);
    if source == *target {
        return Ok(value);
    }
    let leaves = leaves_of(state, value, &ValueType::List(source.clone()));
    let leaves = convert_list(state, &leaves, &source, target, &[])?;
    // Use exactly the arrays that the type prescribes, even if the length among them is a constant.
    let mut list = rebuild_list(state, target, &leaves);
    list.bounds = state[id].bounds;
    list.bounds.fixed |= target.bounds.fixed;
    if let (true, Some(&length)) = (target.has_length(), leaves.last()) {
        // The length is known here, but not for other values of the type, so it remains one of the
        // arrays.
        list.length = Length::Dynamic(length);
    }
    Ok(Value::List(state.add_list(list)))
}

/// Converts the arrays of lists to another type. The lists are the elements of an array of sizes
/// `prefix`.
fn convert_list(
    state: &mut State<'_>,
    leaves: &[InstructionId],
    from: &ListType,
    to: &ListType,
    prefix: &[i64],
) -> Result<Vec<InstructionId>> {
    let mut converted = Vec::new();
    let no_capacity = || Error::internal("elements of a list without a capacity");
    if let Content::Buffers(()) = to.content
        && !ListType::leaves(&ListType { length: Some(0), ..to.clone() }).is_empty()
    {
        let capacity = to.capacity.ok_or_else(no_capacity)?;
        match &from.content {
            Content::Buffers(()) => {
                let actual = from.capacity.ok_or_else(no_capacity)?;
                let inner = [prefix, &[actual]].concat();
                let buffers = &leaves[..leaves.len() - usize::from(from.has_length())];
                for buffer in convert_elements(state, buffers, &from.element, &to.element, &inner)? {
                    converted.push(state.pad_end(buffer, prefix.len(), capacity - actual)?);
                }
            }
            Content::Uniform(literal) => {
                let element = state.literal(literal.clone());
                converted.push(state.repeat(element, &[prefix, &[capacity]].concat())?);
            }
            Content::Empty | Content::Zeros => {
                for leaf in to.element.leaves() {
                    let sizes = [prefix, &[capacity], &leaf.sizes()].concat();
                    converted.push(state.zeros(leaf.element_type, &sizes)?);
                }
            }
        }
    }
    match (from.length, from.named) {
        _ if !to.has_length() => {}
        (Some(length), _) => {
            let length = i32::try_from(length).map_err(|_| Error::unsupported("a list is too long"))?;
            let length = state.literal(Literal::scalar(length));
            converted.push(state.repeat(length, prefix)?);
        }
        (None, Some(position)) => {
            let length = state.size_parameter(position as usize);
            converted.push(state.repeat(length, prefix)?);
        }
        (None, None) => converted.extend(leaves.last()),
    }
    Ok(converted)
}

/// Converts the arrays of an array of elements of sizes `prefix` to another type.
pub(crate) fn convert_elements(
    state: &mut State<'_>,
    leaves: &[InstructionId],
    from: &ElementType,
    to: &ElementType,
    prefix: &[i64],
) -> Result<Vec<InstructionId>> {
    match (from, to) {
        (ElementType::List(from), ElementType::List(to)) if from != to => {
            convert_list(state, leaves, from, to, prefix)
        }
        (ElementType::OneOf(from), ElementType::OneOf(to)) if from != to => {
            convert_choices(state, leaves, from, to, prefix)
        }
        _ => Ok(leaves.to_vec()),
    }
}

/// Like [`convert_elements`], for the contents of optionals. Contents that the source cannot have
/// become zeros.
fn convert_choices(
    state: &mut State<'_>,
    leaves: &[InstructionId],
    from: &[ListType],
    to: &[ListType],
    prefix: &[i64],
) -> Result<Vec<InstructionId>> {
    let mut converted = Vec::new();
    for choice in to {
        let mut start = 0;
        let matching = from.iter().find(|actual| {
            let fits = choice.join_choice(actual).is_some();
            start += if fits { 0 } else { actual.leaves().len() };
            fits
        });
        let empty = ListType { content: Content::Empty, ..choice.clone() };
        let (actual, parts) = match matching {
            Some(actual) => (actual, &leaves[start..start + actual.leaves().len()]),
            None => (&empty, &leaves[..0]),
        };
        converted.extend(convert_list(state, parts, actual, choice, prefix)?);
    }
    Ok(converted)
}

/// Returns the types of the first round: those of the initial values, with lists without a
/// capacity.
pub(crate) fn open(initial: &[ValueType]) -> Vec<ValueType> {
    initial.iter().enumerate().map(|(k, value_type)| opened(value_type, k)).collect()
}

fn opened(value_type: &ValueType, position: usize) -> ValueType {
    match value_type {
        ValueType::List(list) => ValueType::List(ListType {
            capacity: None,
            bounds: Bounds { origin: Some(position), limit: list.bounds.limit, ..Bounds::default() },
            ..list.clone()
        }),
        other => other.clone(),
    }
}

/// Returns the types of the next round, given the body's `results` for values of the types
/// `before`.
pub(crate) fn carried(before: &[ValueType], results: &[ValueType]) -> Result<Vec<ValueType>> {
    let join = |(before, result): (&ValueType, &ValueType)| {
        let mut joined = join(before, result)?;
        if let (
            ValueType::Array(before) | ValueType::Named(before, _),
            ValueType::Array(joined) | ValueType::Named(joined, _),
        ) = (before, &joined)
            && before.sizes() != joined.sizes()
        {
            return Err(Error::unsupported(format!(
                "an array of bounded size, {before}, becomes {joined} in an iteration: a loop cannot carry a growing array"
            )));
        }
        if let (ValueType::List(joined), ValueType::List(before)) = (&mut joined, before) {
            let most = match joined.capacity {
                // The list grew to an index rather than by pushes.
                capacity if capacity != before.capacity => capacity.unwrap_or(0),
                _ => 0,
            };
            joined.bounds = Bounds { most: before.bounds.most.max(most), ..before.bounds };
        }
        Ok(joined)
    };
    before.iter().zip(results).map(join).collect()
}

/// Returns types in which lists have enough room, for a loop that runs at most `trips` times. They
/// follow from the types of the initial values, the types that [`carried`] found, and the types of
/// the body's last results. `Err` holds the index of a list that grows in a loop without a bound.
pub(crate) fn settle(
    initial: &[ValueType],
    stable: &[ValueType],
    results: &[ValueType],
    trips: Option<u64>,
) -> Result<Vec<ValueType>, usize> {
    let bounds = |types: &[ValueType]| -> Vec<Option<Bounds>> {
        types.iter().map(|t| if let ValueType::List(list) = t { Some(list.bounds) } else { None }).collect()
    };
    let (starts, ends) = (bounds(initial), bounds(results));
    let mut settled = Vec::new();
    for (k, (initial, stable)) in initial.iter().zip(stable).enumerate() {
        let (ValueType::List(start), ValueType::List(list), Some(end)) = (initial, stable, ends[k]) else {
            settled.push(stable.clone());
            continue;
        };
        let (most, peak) = match end.origin {
            None => (start.bounds.most.max(end.most), start.bounds.most.max(end.most)),
            Some(origin) if origin == k => {
                let grown = grown(start.bounds.most, end.most, end.peak, trips);
                grown.or(start.bounds.limit.map(|limit| (limit, limit))).ok_or(k)?
            }
            // Lists change places: any of them may be the longest, and grow the most.
            Some(_) => {
                let most = starts.iter().flatten().map(|b| b.most).max().unwrap_or(0);
                let net = ends.iter().flatten().map(|b| b.most).max().unwrap_or(0);
                let peak = ends.iter().flatten().map(|b| b.peak).max().unwrap_or(0);
                grown(most, net, peak, trips).ok_or(k)?
            }
        };
        let limit = start.bounds.limit.unwrap_or(i64::MAX);
        let (most, peak) = (most.min(limit), peak.min(limit));
        let fixed = start.bounds.fixed;
        let capacity = start.capacity.map(|actual| if fixed { actual } else { actual.max(peak) });
        let bounds = Bounds { most, peak: start.bounds.peak.max(peak), fixed: true, ..start.bounds };
        let mut list = ListType { capacity, bounds, ..list.clone() };
        if list.element.is_open() && capacity.is_some() {
            // The next round shows the capacity of the elements.
            list.element = ElementType::Unknown(None);
            list.content = Content::Empty;
        }
        settled.push(ValueType::List(list));
    }
    Ok(settled)
}

/// Returns the maximum number of elements after a loop, and within it. The list has `start`
/// elements before the loop. Each iteration leaves it `net` elements longer, and at most `peak`
/// longer meanwhile.
fn grown(start: i64, net: i64, peak: i64, trips: Option<u64>) -> Option<(i64, i64)> {
    let net = net.max(0);
    let trips = match (trips, net) {
        (None, 0) => 1,
        (trips, _) => i64::try_from(trips?).unwrap_or(i64::MAX),
    };
    if trips == 0 {
        return Some((start, start));
    }
    let most = start.saturating_add(net.saturating_mul(trips));
    let before_last = start.saturating_add(net.saturating_mul(trips - 1));
    Some((most, most.max(before_last.saturating_add(peak))))
}

/// Returns the types after a loop, from those of the initial values and those that the loop
/// carries.
pub(crate) fn closed(initial: &[ValueType], carried: &[ValueType]) -> Vec<ValueType> {
    let close = |(initial, carried): (&ValueType, &ValueType)| {
        let mut closed = carried.clone();
        if let (ValueType::List(closed), ValueType::List(initial)) = (&mut closed, initial) {
            closed.bounds.fixed = initial.bounds.fixed;
        }
        closed
    };
    initial.iter().zip(carried).map(close).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::list::Bounds;
    use shape::PrimitiveType;

    fn list(capacity: i64, length: Option<i64>, content: Content<()>) -> ListType {
        let element = ElementType::Array(ArrayShape::new(PrimitiveType::F32, &[3]));
        let bounds = Bounds { most: length.unwrap_or(capacity), ..Bounds::default() };
        ListType { element, capacity: Some(capacity), content, length, named: None, bounds }
    }

    /// The effect of an iteration on a list: it ends `most` elements longer and is `peak` longer
    /// meanwhile. It began as the list at `origin`.
    fn after(before: &ValueType, most: i64, peak: i64, origin: Option<usize>) -> ValueType {
        let ValueType::List(before) = before else { panic!("not a list") };
        let bounds = Bounds { most, peak, origin, ..before.bounds };
        ValueType::List(ListType { bounds, length: None, content: Content::Buffers(()), ..before.clone() })
    }

    fn capacity(value_type: &ValueType) -> Option<i64> {
        match value_type {
            ValueType::List(list) => list.capacity,
            _ => None,
        }
    }

    #[test]
    fn a_list_that_a_loop_pushes_on_has_room_for_all_iterations() {
        let initial = [ValueType::List(list(1, Some(1), Content::Buffers(())))];
        let opened = open(&initial);
        assert_eq!(capacity(&opened[0]), None, "its capacity is not known yet");
        let results = [after(&opened[0], 1, 1, Some(0))];
        let stable = carried(&opened, &results).expect("both are lists of the same arrays");
        let settled = settle(&initial, &stable, &results, Some(10)).expect("the loop has a bound");
        assert_eq!(capacity(&settled[0]), Some(11));
        assert_eq!(
            settle(&initial, &stable, &results, None),
            Err(0),
            "without a bound it would grow forever"
        );
    }

    #[test]
    fn pushes_that_are_popped_again_need_room_once() {
        // Two pushes and two pops need no bound.
        assert_eq!(grown(3, 0, 2, None), Some((3, 5)));
        // Three pushes and two pops.
        assert_eq!(grown(3, 1, 3, Some(4)), Some((7, 9)));
        // Pops without pushes.
        assert_eq!(grown(3, -1, 0, None), Some((3, 3)));
        assert_eq!(grown(3, 1, 1, Some(0)), Some((3, 3)));
    }

    #[test]
    fn lists_that_change_places_get_room_for_the_longest() {
        let initial = [
            ValueType::List(list(5, Some(5), Content::Buffers(()))),
            ValueType::List(list(0, Some(0), Content::Empty)),
        ];
        let opened = open(&initial);
        let results = [after(&opened[0], 0, 0, Some(1)), after(&opened[1], 1, 1, Some(0))];
        let stable = carried(&opened, &results).expect("both are lists of the same arrays");
        let settled = settle(&initial, &stable, &results, Some(6)).expect("the loop has a bound");
        assert!(settled.iter().all(|settled| capacity(settled) == Some(11)), "{settled:?}");
    }

    #[test]
    fn a_list_with_several_origins_gets_room_for_the_longest() {
        let initial = [
            ValueType::List(list(1, Some(1), Content::Buffers(()))),
            ValueType::List(list(9, Some(9), Content::Buffers(()))),
        ];
        let opened = open(&initial);
        // if (p) a = push(b) else a = push(a)
        let chosen = join(&after(&opened[0], 1, 1, Some(0)), &after(&opened[1], 1, 1, Some(1)));
        let results = [chosen.expect("lists of the same arrays"), opened[1].clone()];
        let stable = carried(&opened, &results).expect("both are lists of the same arrays");
        let settled = settle(&initial, &stable, &results, Some(6)).expect("the loop has a bound");
        assert!(
            capacity(&settled[0]) >= Some(15),
            "nine elements of b, and one more per iteration: {settled:?}"
        );
    }

    #[test]
    fn equal_elements_need_no_buffer() {
        let uniform = |value: i32| Content::Uniform(Literal::from_elements(&[3], &[value; 3]));
        let joined = |a: Content<()>, b: Content<()>| {
            let joined = list(4, None, a).join(&list(4, None, b)).expect("lists of the same arrays");
            joined.content
        };
        assert_eq!(joined(Content::Empty, uniform(7)), uniform(7));
        assert_eq!(joined(uniform(7), uniform(7)), uniform(7));
        assert_eq!(joined(uniform(7), uniform(8)), Content::Buffers(()));
        assert_eq!(joined(Content::Zeros, uniform(7)), Content::Buffers(()));
        assert_eq!(joined(Content::Zeros, uniform(0)), Content::Zeros);
    }
}
