//! Sorts: numbers in vectors if the plan has a key. Other sorts call the comparison to compute a
//! permutation of each row, and then gather the elements.

pub(crate) mod items;
mod length;
mod merge;
pub(crate) mod network;
mod numbers;
pub(crate) mod operands;
mod permutation;

use crate::context::KernelContext;
use crate::context::parameters::Memory;
use crate::element::{Element, memory_type, register_type};
use crate::elemental;
use crate::index::{Index, Position};
use crate::movement::update::number_of;
use hlo::Op;
use hlo::analysis::Extent;
use length::Length;
use numbers::{Gathered, Job};
use operands::Sorting;
use permutation::{Before, insertion, merge_sort, read_order};
use plan::SortPlan;
use shape::PrimitiveType;
use support::{Error, Result};

/// Emits the work for a row at the given indices.
type Row<'f> = dyn FnMut(&mut KernelContext<'_>, &[Index]) -> Result<()> + 'f;

/// Returns an array of narrow floats as integers of their bits. Elements that only move are then
/// not rounded, and signaling NaNs keep their bits.
fn as_bits(memory: &Memory) -> Memory {
    let mut bits = memory.clone();
    let element_type = memory.shape.element_type;
    if memory_type(element_type) != register_type(element_type) && element_type.is_floating_point() {
        let unsigned = [PrimitiveType::U8, PrimitiveType::U16];
        let same_size = |t: &PrimitiveType| t.byte_size() == element_type.byte_size();
        bits.shape.element_type = unsigned.into_iter().find(same_size).unwrap_or(element_type);
    }
    bits
}

/// Sorts every row along the dimension. All operands follow one permutation.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: Option<&SortPlan>) -> Result<()> {
    let Op::Sort { dimension, .. } = cx.fusion().root_op() else {
        return Err(Error::internal("expected a sort as the root"));
    };
    let sizes = cx.results()[0].shape.sizes();
    if sizes.contains(&0) {
        return Ok(());
    }
    let sorting = Sorting::of(cx, plan)?;
    let (length, count) = lengths(cx, *dimension, sizes[*dimension], sizes[*dimension]);
    if let Some(plan) = plan {
        return by_numbers(cx, plan, &sorting, *dimension, (length, count));
    }
    let scratch = cx.scratch().ok_or_else(|| Error::internal("missing scratch for a sort"))?;
    let rows: Vec<usize> = (0..sizes.len()).filter(|d| d != dimension).collect();
    let mut indices = vec![Index::default(); sizes.len()];
    let needed = needed_rows(cx, sizes.len());
    for_rows(cx, (&sizes, &needed), &rows, &mut indices, &mut |cx, indices| {
        let at = |index: &Index| {
            let mut indices = indices.to_vec();
            indices[*dimension] = index.clone();
            Position::Multi(indices)
        };
        let order = merge_sort(cx, scratch, length, &mut |cx, x, y| sorting.before(cx, &at(x), &at(y)))?;
        count.for_each(cx, |cx, index| {
            let from = read_order(cx, order, &index, sizes[*dimension])?;
            for Gathered { operand, result } in &sorting.gathered {
                let element = cx.load_at(operand, &at(&from))?;
                cx.store_at(result, &at(&index), element)?;
            }
            Ok(())
        })
    })
}

/// Writes the first `k` of every row by total order, and their indices. Equal elements are ordered
/// by index.
pub(crate) fn emit_top_k(cx: &mut KernelContext<'_>, plan: Option<&SortPlan>) -> Result<()> {
    let Op::TopK { k, .. } = cx.fusion().root_op() else {
        return Err(Error::internal("expected topk as the root"));
    };
    let operand = cx.operand(number_of(cx, cx.fusion().body[cx.fusion().root].operands()[0])?)?.clone();
    let [values, numbers] = cx.results() else {
        return Err(Error::internal("expected values and indices as the results of topk"));
    };
    let (values, numbers) = (values.clone(), numbers.clone());
    let sizes = operand.shape.sizes();
    let Some((&length, outer)) = sizes.split_last() else {
        return Err(Error::internal("expected topk of an array with at least one dimension"));
    };
    if sizes.contains(&0) || *k == 0 {
        return Ok(());
    }
    let sorting = Sorting::of(cx, plan)?;
    let (all, count) = lengths(cx, outer.len(), length, *k);
    if let Some(plan) = plan {
        return by_numbers(cx, plan, &sorting, outer.len(), (all, count));
    }
    let order = cx.scratch().ok_or_else(|| Error::internal("missing scratch for topk"))?;
    let rows: Vec<usize> = (0..outer.len()).collect();
    let mut indices = vec![Index::default(); outer.len()];
    let needed = needed_rows(cx, sizes.len());
    for_rows(cx, (outer, &needed), &rows, &mut indices, &mut |cx, indices| {
        let at = |index: &Index| Position::Multi(indices.iter().chain([index]).cloned().collect());
        let before: &mut Before<'_> = &mut |cx, x, y| sorting.before(cx, &at(x), &at(y));
        let order = if *k <= plan::FEW && *k <= length / 4 {
            insertion(cx, order, *k, all, before).map(|()| order)?
        } else {
            merge_sort(cx, order, all, before)?
        };
        count.for_each(cx, |cx, index| {
            let from = read_order(cx, order, &index, length)?;
            let element = cx.load_at(&as_bits(&operand), &at(&from))?;
            cx.store_at(&as_bits(&values), &at(&index), element)?;
            let number = cx.scalar_value(&from)?;
            let to = numbers.shape.element_type;
            let number = elemental::convert(cx, PrimitiveType::S64, to, Element::Real(number))?;
            cx.store_at(&numbers, &at(&index), number)
        })
    })
}

/// Returns how many elements of each sequence along a dimension of the root are sorted, and how
/// many sorted ones are needed.
fn lengths(cx: &KernelContext<'_>, dimension: usize, length: i64, count: i64) -> (Length, Length) {
    let root = cx.fusion().root;
    let at = |extents: Vec<Option<Extent>>| extents.get(dimension).copied().flatten();
    (Length::of(cx, length, at(cx.significant(root))), Length::of(cx, count, at(cx.needed(root))))
}

/// Returns how many indices of each dimension of the root are needed.
fn needed_rows(cx: &KernelContext<'_>, rank: usize) -> Vec<Option<Extent>> {
    let mut needed = cx.needed(cx.fusion().root);
    needed.resize(rank, None);
    needed
}

/// Sorts by numeric keys along a dimension, given the numbers of elements that are sorted and that
/// are needed.
fn by_numbers(
    cx: &mut KernelContext<'_>,
    plan: &SortPlan,
    sorting: &Sorting<'_>,
    dimension: usize,
    (length, count): (Length, Length),
) -> Result<()> {
    let sizes = cx.results()[0].shape.sizes();
    let needed = needed_rows(cx, sizes.len());
    let job = Job {
        plan,
        key: &sorting.key,
        length,
        count,
        outer: (sizes[..dimension].to_vec(), needed[..dimension].to_vec()),
        inner: (sizes[dimension + 1..].to_vec(), needed[dimension + 1..].to_vec()),
        keys: sorting.keys.as_ref(),
        places: sorting.places.as_ref(),
        gathered: &sorting.gathered,
    };
    job.emit(cx, &mut |cx, x, y| sorting.before(cx, x, y))
}

/// Runs the body for each needed index of some dimensions.
fn for_rows(
    cx: &mut KernelContext<'_>,
    (sizes, needed): (&[i64], &[Option<Extent>]),
    dimensions: &[usize],
    indices: &mut Vec<Index>,
    body: &mut Row<'_>,
) -> Result<()> {
    let Some((&outer, inner)) = dimensions.split_first() else { return body(cx, indices) };
    cx.for_needed_indices((0, sizes[outer], needed[outer]), |cx, index| {
        indices[outer] = index;
        for_rows(cx, (sizes, needed), inner, indices, body)
    })
}
