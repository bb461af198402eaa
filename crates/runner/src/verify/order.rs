//! Errors of ordering instructions and of bits.
//!
//! Elements whose order is not certain may swap places. The values that accompany them are then
//! unknown, and the elements themselves are between the least and the greatest of the group.

use super::estimate::{Estimate, Known};
use hlo::{ComparisonDirection, ComparisonType, ComputationId, Instruction, Module, Op};
use shape::{Literal, Scalar};
use std::cmp::Ordering;

/// Returns the effect of the operands' errors on each array of the result of a `sort`, a `topk`, or
/// a `bitcast-convert`. Returns `None` for other instructions, and if the order is certain.
pub(super) fn propagate(
    module: &Module,
    instruction: &Instruction,
    operands: &[&Estimate],
) -> Option<Vec<Vec<f64>>> {
    let arrays: Vec<&Known> = operands.iter().flat_map(|o| o.arrays()).collect();
    let rank = instruction.operands().len();
    if arrays.len() != rank {
        return None;
    }
    match instruction.op() {
        Op::Sort { dimension, to_apply, .. } => {
            let key = key_of(module, *to_apply);
            let exact = |k: usize| arrays[k].error.is_none();
            match key {
                Some(key) if exact(key.operand) => None,
                _ => Some(sort_errors(&arrays, *dimension, key)),
            }
        }
        Op::TopK { k, largest } => {
            let input = arrays[0];
            let key = Key { operand: 0, falls: *largest, is_total: true };
            let dimension = input.value.array_shape().rank().checked_sub(1)?;
            Some(first(input, dimension, *k as usize, key))
        }
        Op::BitcastConvert {} => bits(arrays[0], instruction),
        _ => None,
    }
}

/// Sort key.
#[derive(Clone, Copy, Debug)]
struct Key {
    operand: usize,
    falls: bool,
    is_total: bool,
}

/// Returns the key of a comparison of two elements of one operand, or `None` for other comparisons.
fn key_of(module: &Module, comparator: ComputationId) -> Option<Key> {
    let computation = &module[comparator];
    let root = &computation[computation.root()];
    let Op::Compare { direction, comparison_type } = root.op() else { return None };
    let number = |k: usize| match computation[root.operands()[k]].op() {
        Op::Parameter { number } => Some(*number),
        _ => None,
    };
    let (left, right) = (number(0)?, number(1)?);
    let rises = match direction {
        ComparisonDirection::Lt | ComparisonDirection::Le => true,
        ComparisonDirection::Gt | ComparisonDirection::Ge => false,
        ComparisonDirection::Eq | ComparisonDirection::Ne => return None,
    };
    let is_turned = left > right;
    let is_total = *comparison_type == ComparisonType::TotalOrder;
    (left / 2 == right / 2 && left != right).then_some(Key {
        operand: left / 2,
        falls: rises == is_turned,
        is_total,
    })
}

/// Knowledge about an element of a sorted line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// It is the original element with this index.
    Certain(usize),
    /// It is one of several whose keys differ by at most this amount.
    Uncertain(f64),
}

/// Returns the least and greatest possible value of each element's key, such that lower comes
/// first. Returns `None` if NaN may be in a different place.
fn intervals(keys: &Known, at: &dyn Fn(usize) -> usize, length: usize, key: Key) -> Option<Vec<(f64, f64)>> {
    let interval = |i: usize| {
        let error = keys.error.as_ref().map_or(0.0, |errors| errors[at(i)]);
        let value = match keys.value.scalar_at(at(i)) {
            Scalar::Complex(..) => return None,
            Scalar::Pred(value) => f64::from(u8::from(value)),
            other => other.as_f64()?,
        };
        if error.is_infinite() || value.is_nan() && (error != 0.0 || !key.is_total) {
            return None;
        }
        let (low, high) = if error == 0.0 { (value, value) } else { (value - error, value + error) };
        Some(if key.falls { (-high, -low) } else { (low, high) })
    };
    (0..length).map(interval).collect()
}

/// Returns the places of a line.
fn places(keys: &Known, at: &dyn Fn(usize) -> usize, length: usize, key: Key) -> Vec<Place> {
    let Some(intervals) = intervals(keys, at, length, key) else {
        return vec![Place::Uncertain(f64::INFINITY); length];
    };
    let compare = |x: f64, y: f64| {
        if key.is_total { x.total_cmp(&y) } else { x.partial_cmp(&y).unwrap_or(Ordering::Equal) }
    };
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by(|&i, &j| compare(intervals[i].0, intervals[j].0));
    let mut places = Vec::with_capacity(length);
    let mut begin = 0;
    while begin < length {
        let mut end = begin + 1;
        let mut high = intervals[order[begin]].1;
        while end < length && intervals[order[end]].0 <= high {
            high = high.max(intervals[order[end]].1);
            end += 1;
        }
        let group = &order[begin..end];
        let is_certain = group.len() == 1 || group.iter().all(|&i| intervals[i].0 == intervals[i].1);
        let spread = high - intervals[group[0]].0;
        places.extend(
            group.iter().map(|&i| if is_certain { Place::Certain(i) } else { Place::Uncertain(spread) }),
        );
        begin = end;
    }
    places
}

/// Calls `body` for each line along a dimension, passing the positions of its elements.
fn for_lines(value: &Literal, dimension: usize, mut body: impl FnMut(&dyn Fn(usize) -> usize)) {
    let sizes = value.array_shape().sizes();
    let stride: usize = sizes[dimension + 1..].iter().map(|&s| s as usize).product();
    let length = sizes[dimension] as usize;
    let lines = value.array_shape().element_count() as usize / length.max(1);
    for line in 0..lines {
        let start = line / stride * stride * length + line % stride;
        body(&|i| start + i * stride);
    }
}

fn sort_errors(arrays: &[&Known], dimension: usize, key: Option<Key>) -> Vec<Vec<f64>> {
    let mut errors: Vec<Vec<f64>> = arrays.iter().map(|a| vec![0.0; a.errors().len()]).collect();
    let length = arrays[0].value.array_shape().size(dimension) as usize;
    for_lines(&arrays[0].value, dimension, |at| {
        let places = match key {
            Some(key) => places(arrays[key.operand], at, length, key),
            None => {
                let is_exact =
                    |i: usize| arrays.iter().all(|a| a.error.as_ref().is_none_or(|e| e[at(i)] == 0.0));
                // The effect of another comparator on errors is unknown. Without errors, nothing
                // needs to be added.
                let exact = (0..length).all(is_exact);
                vec![Place::Uncertain(if exact { 0.0 } else { f64::INFINITY }); length]
            }
        };
        for (i, place) in places.into_iter().enumerate() {
            for (k, (array, errors)) in arrays.iter().zip(&mut errors).enumerate() {
                errors[at(i)] = match place {
                    Place::Certain(from) => array.error.as_ref().map_or(0.0, |e| e[at(from)]),
                    Place::Uncertain(spread) if spread == 0.0 || key.is_some_and(|key| key.operand == k) => {
                        spread
                    }
                    Place::Uncertain(_) => f64::INFINITY,
                };
            }
        }
    });
    errors
}

fn first(input: &Known, dimension: usize, k: usize, key: Key) -> Vec<Vec<f64>> {
    let length = input.value.array_shape().size(dimension) as usize;
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for_lines(&input.value, dimension, |at| {
        for place in places(input, at, length, key).into_iter().take(k) {
            let (value, index) = match place {
                Place::Certain(from) => (input.error.as_ref().map_or(0.0, |e| e[at(from)]), 0.0),
                Place::Uncertain(spread) => (spread, f64::INFINITY),
            };
            values.push(value);
            indices.push(index);
        }
    });
    vec![values, indices]
}

/// Returns the errors of a bit conversion. Nothing is known of parts of elements, nor of NaN; whole
/// elements are shifted as numbers.
fn bits(input: &Known, instruction: &Instruction) -> Option<Vec<Vec<f64>>> {
    let errors = input.error.as_ref()?;
    let count = instruction.shape().as_array()?.element_count() as usize;
    let is_nan = |k: usize| match input.value.scalar_at(k) {
        Scalar::Float(x) => x.is_nan(),
        Scalar::Complex(re, im) => re.is_nan() || im.is_nan(),
        _ => false,
    };
    let is_whole = count == errors.len();
    if is_whole && !(0..count).any(|k| errors[k] != 0.0 && is_nan(k)) {
        return None;
    }
    let unknown = |is_exact: bool| if is_exact { 0.0 } else { f64::INFINITY };
    let errors = (0..count).map(|k| match (count, errors.len()) {
        (pieces, whole) if pieces >= whole => unknown(errors[k / (pieces / whole)] == 0.0),
        (whole, pieces) => {
            let each = pieces / whole;
            unknown(errors[k * each..(k + 1) * each].iter().all(|&e| e == 0.0))
        }
    });
    Some(vec![errors.collect()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(keys: &[f32], errors: &[f64], key: Key) -> Vec<Place> {
        let keys = Known::new(Literal::from_elements(&[keys.len() as i64], keys), errors.to_vec());
        places(&keys, &|i| i, errors.len(), key)
    }

    #[test]
    fn what_may_tip_is_uncertain_and_the_rest_is_where_it_was() {
        use Place::*;
        let rises = Key { operand: 0, falls: false, is_total: false };
        let keys = [5.0, 1.0, 1.5, 9.0];
        assert_eq!(places_of(&keys, &[0.0; 4], rises), [Certain(1), Certain(2), Certain(0), Certain(3)]);
        let places = places_of(&keys, &[0.0, 0.5, 0.25, 0.0], rises);
        assert_eq!(places, [Uncertain(1.25), Uncertain(1.25), Certain(0), Certain(3)]);
        let falls = Key { falls: true, ..rises };
        let places = places_of(&keys, &[0.0, 0.5, 0.25, 0.0], falls);
        assert_eq!(places, [Certain(3), Certain(0), Uncertain(1.25), Uncertain(1.25)]);
        // Exact equal elements keep their order.
        assert_eq!(places_of(&[2.0, 2.0, 1.0], &[0.0; 3], falls), [Certain(0), Certain(1), Certain(2)]);
    }

    #[test]
    fn nan_of_any_sign_makes_a_line_uncertain() {
        use super::super::estimate::ANY_NAN;
        let total = Key { operand: 0, falls: false, is_total: true };
        let keys = [f32::NAN, 1.0];
        assert_eq!(places_of(&keys, &[0.0; 2], total), [Place::Certain(1), Place::Certain(0)]);
        assert_eq!(places_of(&keys, &[ANY_NAN, 0.0], total), [Place::Uncertain(f64::INFINITY); 2]);
    }

    #[test]
    fn keys_are_read_off_comparisons() {
        let key = |compare: &str| {
            let text = format!(
                "HloModule m\n\nENTRY c {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  \
                 d = s32[] parameter(3)\n  ROOT r = pred[] compare({compare}\n}}\n"
            );
            let module = hlo::parse(&text).expect("a module");
            key_of(&module, module.entry()).map(|key| (key.operand, key.falls, key.is_total))
        };
        assert_eq!(key("a, b), direction=LT"), Some((0, false, false)));
        assert_eq!(key("b, a), direction=LT, type=TOTALORDER"), Some((0, true, true)));
        assert_eq!(key("c, d), direction=GE"), Some((1, true, false)));
        assert_eq!(key("c, d), direction=NE"), None);
    }
}
