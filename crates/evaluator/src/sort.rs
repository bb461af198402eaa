//! `sort` and `topk`.

use crate::array::{View, arrays, check_array, for_each_index, from_bytes, pack};
use crate::evaluator::Evaluator;
use crate::scalar_function::Callee;
use hlo::ComputationId;
use shape::index::linear_index;
use shape::{Literal, Scalar, Shape};
use std::cmp::Ordering;
use support::{Error, Result};

impl Evaluator<'_> {
    /// Evaluates `sort` along a dimension. It is always stable. The comparator's parameters are the
    /// left and right element of each operand.
    pub(crate) fn sort(
        &mut self,
        shape: &Shape,
        operands: &[&Literal],
        dimension: usize,
        comparator: ComputationId,
    ) -> Result<Literal> {
        let results = arrays(shape)?;
        let callee = self.callee(comparator, 2 * operands.len())?;
        let views: Vec<View<'_>> = operands.iter().map(|o| View::new(o)).collect::<Result<_>>()?;
        let Some(first) = views.first() else { return Err(Error::invalid("missing operand of the sort")) };
        if views.iter().any(|v| v.sizes != first.sizes) || dimension >= first.sizes.len() {
            return Err(Error::invalid(format!(
                "all operands must have the same dimensions, including dimension {dimension}"
            )));
        }
        let (length, stride) = (first.sizes[dimension] as usize, first.strides[dimension] as usize);
        let mut lines = first.sizes.clone();
        lines[dimension] = lines[dimension].min(1);
        let mut data: Vec<Vec<u8>> = operands.iter().map(|o| o.bytes().to_vec()).collect();
        for_each_index(&lines, |line| {
            let start = linear_index(&first.sizes, line) as usize;
            let at = |i: usize| start + i * stride;
            let order = self.sorted_line(operands, &callee, length, &at)?;
            for (view, data) in views.iter().zip(&mut data) {
                for (to, &from) in order.iter().enumerate() {
                    let element = view.at(at(from) as i64);
                    data[at(to) * element.len()..][..element.len()].copy_from_slice(element);
                }
            }
            Ok(())
        })?;
        let literals = results.iter().zip(data).map(|(result, data)| from_bytes(result, data));
        Ok(pack(shape, literals.collect::<Result<_>>()?))
    }

    /// Bottom-up merge sort. It terminates with a permutation even if the comparator is not an
    /// order.
    fn sorted_line(
        &mut self,
        operands: &[&Literal],
        callee: &Callee,
        length: usize,
        at: &dyn Fn(usize) -> usize,
    ) -> Result<Vec<usize>> {
        let mut order: Vec<usize> = (0..length).collect();
        let mut width = 1;
        while width < length {
            let mut merged = Vec::with_capacity(length);
            for run in order.chunks(2 * width) {
                let (mut left, mut right) = run.split_at(width.min(run.len()));
                while let (Some((&l, left_rest)), Some((&r, right_rest))) =
                    (left.split_first(), right.split_first())
                {
                    let arguments: Vec<Scalar> =
                        operands.iter().flat_map(|o| [o.scalar_at(at(r)), o.scalar_at(at(l))]).collect();
                    // A right element overtakes only if it must come first, which makes the sort
                    // stable.
                    if self.apply(callee, &arguments)? == [Scalar::Pred(true)] {
                        merged.push(r);
                        right = right_rest;
                    } else {
                        merged.push(l);
                        left = left_rest;
                    }
                }
                merged.extend_from_slice(left);
                merged.extend_from_slice(right);
            }
            order = merged;
            width *= 2;
        }
        Ok(order)
    }
}

/// Evaluates `topk` along the last dimension: values in descending (or ascending) total order, ties
/// by index, and `s32` indices.
pub(crate) fn top_k(shape: &Shape, operand: &Literal, k: i64, largest: bool) -> Result<Literal> {
    check_array(operand)?;
    let results = arrays(shape)?;
    let view = View::new(operand)?;
    let Some(&length) = view.sizes.last() else {
        return Err(Error::invalid("expected at least one dimension in the operand of topk"));
    };
    if !(0..=length).contains(&k) || results.len() != 2 {
        return Err(Error::invalid(format!("cannot select the top {k} of {length} elements")));
    }
    let rows = if length == 0 { 0 } else { operand.array_shape().element_count() / length };
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let element = |i: i64| operand.scalar_at((row * length + i) as usize);
        let mut order: Vec<i64> = (0..length).collect();
        order.sort_by(|&i, &j| {
            let order = total_order(element(i), element(j));
            if largest { order.reverse() } else { order }
        });
        for &i in &order[..k as usize] {
            values.extend_from_slice(view.at(row * length + i));
            indices.extend_from_slice(&(i as i32).to_le_bytes());
        }
    }
    Ok(Literal::Tuple(vec![from_bytes(&results[0], values)?, from_bytes(&results[1], indices)?]))
}

fn total_order(x: Scalar, y: Scalar) -> Ordering {
    match (x, y) {
        (Scalar::Pred(x), Scalar::Pred(y)) => x.cmp(&y),
        (Scalar::Signed(x), Scalar::Signed(y)) => x.cmp(&y),
        (Scalar::Unsigned(x), Scalar::Unsigned(y)) => x.cmp(&y),
        (Scalar::Float(x), Scalar::Float(y)) => x.total_cmp(&y),
        (Scalar::Complex(a, b), Scalar::Complex(c, d)) => a.total_cmp(&c).then(b.total_cmp(&d)),
        _ => Ordering::Equal,
    }
}
