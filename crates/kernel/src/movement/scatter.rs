//! Scatter: copies the operands or updates them in place, then combines each window of the updates
//! into them, in order.

use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::context::parameters::Memory;
use crate::element::Element;
use crate::index::{Index, Position};
use crate::movement::update::{copy_operand, number_of};
use hlo::analysis::Extent;
use hlo::{ComputationId, Op, ScatterDimensionNumbers};
use nest::{BinaryOp, ConvertOp, Predicate, ScalarType, ValueId};
use support::{Error, Result};

/// A scatter with its operands and results.
pub(crate) struct Scatter<'a> {
    numbers: &'a ScatterDimensionNumbers,
    to_apply: ComputationId,
    indices: Memory,
    updates: Vec<Memory>,
    results: Vec<Memory>,
    /// Sizes of the operands.
    pub(crate) sizes: Vec<i64>,
    /// Sizes of the updates.
    pub(crate) update_sizes: Vec<i64>,
    /// Operand dimensions that a window spans, in order.
    spanned: Vec<usize>,
    /// Number of elements along the innermost window dimension that are combined at once.
    lanes: u32,
    /// Dimensions of the updates whose indices the caller sets.
    fixed: Vec<usize>,
    /// Numbers of updates along each dimension that may be in range, unless all may.
    limits: Vec<Option<Extent>>,
}

/// Writes the result. Windows that exceed the operand are skipped.
pub(crate) fn emit(cx: &mut KernelContext<'_>) -> Result<()> {
    for k in 0..cx.results().len() {
        copy_operand(cx, k)?;
    }
    let Some(mut scatter) = Scatter::of(cx)? else { return Ok(()) };
    scatter.lanes = scatter.lanes(cx);
    let mut update = vec![Index::default(); scatter.update_sizes.len()];
    scatter.combine_all(cx, Vec::new(), &mut update)
}

impl<'a> Scatter<'a> {
    /// Returns the scatter of a kernel, or `None` if nothing is combined.
    pub(crate) fn of(cx: &KernelContext<'a>) -> Result<Option<Self>> {
        let Op::Scatter { scatter_dimension_numbers: numbers, to_apply, .. } = cx.fusion().root_op() else {
            return Err(Error::internal("expected a scatter as the root"));
        };
        let count = cx.results().len();
        let memory = |k: usize| -> Result<Memory> {
            let operand = cx.fusion().body[cx.fusion().root].operands()[k];
            Ok(cx.operand(number_of(cx, operand)?)?.clone())
        };
        let indices = memory(count)?;
        let updates: Vec<Memory> = (0..count).map(|k| memory(count + 1 + k)).collect::<Result<_>>()?;
        let (sizes, update_sizes) = (cx.results()[0].shape.sizes(), updates[0].shape.sizes());
        if update_sizes.contains(&0) || sizes.contains(&0) {
            return Ok(None);
        }
        let is_dropped =
            |d: &usize| numbers.inserted_window_dims.contains(d) || numbers.input_batching_dims.contains(d);
        let mut limits = cx.significant(cx.fusion().root);
        limits.resize(update_sizes.len(), None);
        let spanned: Vec<usize> = (0..sizes.len()).filter(|d| !is_dropped(d)).collect();
        Ok(Some(Scatter {
            numbers,
            to_apply: *to_apply,
            indices,
            updates,
            results: cx.results().to_vec(),
            sizes,
            update_sizes,
            spanned,
            lanes: 1,
            fixed: Vec::new(),
            limits,
        }))
    }

    /// Combines all updates with the given indices in the fixed dimensions, in order.
    pub(crate) fn combine_all(
        &mut self,
        cx: &mut KernelContext<'_>,
        fixed: Vec<usize>,
        update: &mut Vec<Index>,
    ) -> Result<()> {
        self.fix(fixed);
        let is_walked = |d: &usize| !self.numbers.update_window_dims.contains(d) && !self.fixed.contains(d);
        let batch: Vec<usize> = (0..self.update_sizes.len()).filter(is_walked).collect();
        self.for_batch(cx, &batch, update)
    }
}

impl Scatter<'_> {
    /// Returns the number of lanes. Windows are combined in vectors if their innermost dimension is
    /// also the innermost one of the operands and updates. The elements of one window are distinct.
    fn lanes(&self, cx: &KernelContext<'_>) -> u32 {
        let (Some(&window), Some(&spanned)) = (self.numbers.update_window_dims.last(), self.spanned.last())
        else {
            return 1;
        };
        let is_innermost = window + 1 == self.update_sizes.len() && spanned + 1 == self.sizes.len();
        let widest = self.results.iter().map(|r| r.shape.element_type.byte_size().max(4)).max().unwrap_or(8);
        let is_complex = self.results.iter().any(|r| r.shape.element_type.is_complex());
        if !is_innermost || is_complex {
            return 1;
        }
        let mut lanes = cx.target().lanes(widest);
        while lanes > 1 && i64::from(lanes) > self.update_sizes[window] {
            lanes /= 2;
        }
        lanes
    }

    fn for_batch(
        &self,
        cx: &mut KernelContext<'_>,
        dimensions: &[usize],
        update: &mut Vec<Index>,
    ) -> Result<()> {
        if let Some((&outer, inner)) = dimensions.split_first() {
            let indices = (0, self.update_sizes[outer], self.limits[outer]);
            return cx.for_needed_indices(indices, |cx, index| {
                update[outer] = index;
                self.for_batch(cx, inner, update)
            });
        }
        let (start, fits) = self.start(cx, update)?;
        let mut window = start.clone();
        match fits {
            Containment::Never => Ok(()),
            Containment::Always => self.for_window(cx, 0, update, &start, &mut window),
            Containment::When(fits) => {
                cx.when(fits, |cx| self.for_window(cx, 0, update, &start, &mut window))
            }
        }
    }

    /// Sets the dimensions of the updates whose indices the caller sets.
    pub(crate) fn fix(&mut self, dimensions: Vec<usize>) {
        self.fixed = dimensions;
    }

    /// Returns the indices of an update that are not those in its window.
    fn batch(&self, update: &[Index]) -> Vec<Index> {
        let is_batch = |d: &usize| !self.numbers.update_window_dims.contains(d);
        (0..update.len()).filter(is_batch).map(|d| update[d].clone()).collect()
    }

    /// Returns the start of a window, given by its batch alone.
    pub(crate) fn batch_start(&self, update: &[Index]) -> Vec<Index> {
        let (numbers, batch) = (self.numbers, self.batch(update));
        let mut start = vec![Index::default(); self.sizes.len()];
        for (&d, &i) in numbers.input_batching_dims.iter().zip(&numbers.scatter_indices_batching_dims) {
            let number = if i > numbers.index_vector_dim { i - 1 } else { i };
            start[d] = batch[number].clone();
        }
        start
    }

    /// Returns the start of a window in the operand, and whether the window fits.
    pub(crate) fn start(
        &self,
        cx: &mut KernelContext<'_>,
        update: &[Index],
    ) -> Result<(Vec<Index>, Containment)> {
        let numbers = self.numbers;
        let batch = self.batch(update);
        let mut start = self.batch_start(update);
        let mut fits: Option<ValueId> = None;
        for (k, &d) in numbers.scatter_dims_to_operand_dims.iter().enumerate() {
            let mut at = batch.clone();
            if numbers.index_vector_dim < self.indices.shape.rank() {
                at.insert(numbers.index_vector_dim, Index::constant(k as i64));
            }
            let element = cx.load_at(&self.indices, &Position::Multi(at))?.real();
            let is_signed = self.indices.shape.element_type.is_signed_integer();
            let op = if is_signed { ConvertOp::SignExtend } else { ConvertOp::ZeroExtend };
            let index = cx.convert(op, element, ScalarType::I64);
            // Compared as unsigned numbers, negative indices also exceed the limit.
            let room = cx.index(self.sizes[d] - self.extent(d));
            let is_within = cx.compare(Predicate::BelowEqual, index, room);
            fits = Some(fits.map_or(is_within, |fits| cx.binary(BinaryOp::And, fits, is_within)));
            start[d] = start[d].plus(&Index::scalar(index));
        }
        Ok((start, fits.map_or(Containment::Always, Containment::When)))
    }

    /// Returns a window's size along an operand dimension.
    fn extent(&self, dimension: usize) -> i64 {
        let position = self.spanned.iter().position(|&d| d == dimension);
        position.map_or(1, |p| self.update_sizes[self.numbers.update_window_dims[p]])
    }

    pub(crate) fn for_window(
        &self,
        cx: &mut KernelContext<'_>,
        depth: usize,
        update: &mut Vec<Index>,
        start: &[Index],
        target: &mut Vec<Index>,
    ) -> Result<()> {
        let Some((&u, &d)) = self.numbers.update_window_dims.get(depth).zip(self.spanned.get(depth)) else {
            return self.combine(cx, update, target);
        };
        if self.fixed.contains(&u) {
            target[d] = start[d].plus(&update[u]);
            return self.for_window(cx, depth + 1, update, start, target);
        }
        let is_last = depth + 1 == self.spanned.len();
        let lanes = if is_last { self.lanes } else { 1 };
        let extent = self.update_sizes[u];
        let full = extent / i64::from(lanes) * i64::from(lanes);
        for (begin, end, lanes) in [(0, full, lanes), (full, extent, 1)] {
            cx.for_range(begin, end, lanes.into(), |cx, index| {
                let index = index.plus(&Index::lanes(i64::from(lanes > 1)));
                target[d] = start[d].plus(&index);
                update[u] = index;
                cx.with_lanes(lanes, |cx| self.for_window(cx, depth + 1, update, start, target))
            })?;
        }
        Ok(())
    }

    /// Combines the updates at one position into the results at another.
    fn combine(&self, cx: &mut KernelContext<'_>, update: &[Index], target: &[Index]) -> Result<()> {
        self.combine_with(cx, |cx| self.load_updates(cx, update), target)
    }

    /// Loads the updates at a position, one per array.
    pub(crate) fn load_updates(&self, cx: &mut KernelContext<'_>, update: &[Index]) -> Result<Vec<Element>> {
        let from = Position::Multi(update.to_vec());
        self.updates.iter().map(|memory| cx.load_at(memory, &from)).collect()
    }

    /// Combines updates into the results at a position.
    pub(crate) fn combine_with(
        &self,
        cx: &mut KernelContext<'_>,
        updates: impl FnOnce(&mut KernelContext<'_>) -> Result<Vec<Element>>,
        target: &[Index],
    ) -> Result<()> {
        let to = Position::Multi(target.to_vec());
        let mut arguments: Vec<Element> = Vec::with_capacity(2 * self.results.len());
        for result in &self.results {
            arguments.push(cx.pinned(|cx| cx.load_at(result, &to))?);
        }
        arguments.extend(updates(cx)?);
        let combined = cx.apply(self.to_apply, &arguments)?;
        if combined.len() != self.results.len() {
            return Err(Error::internal("expected one value per array from the computation of a scatter"));
        }
        for (result, value) in self.results.iter().zip(combined) {
            cx.store_at(result, &to, value)?;
        }
        Ok(())
    }
}
