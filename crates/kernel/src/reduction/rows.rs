//! Rows, each walked several times while it is in the cache: reductions along the row, and the code
//! that uses their results.
//!
//! A walk evaluates its targets at every element of the row, vector by vector. In later walks of
//! the row, the result of a reduction replaces its instruction. Values that a later walk needs
//! again are read back from scratch, or stay in registers if the row is short.

use crate::context::KernelContext;
use crate::element::{Element, decode, encode, memory_type, normalize};
use crate::index::{Index, Position};
use crate::loops::TaskLoop;
use crate::reduction::reduce::nest_parts;
use crate::reduction::reduce::operation::Operation;
use hlo::analysis::Extent;
use hlo::{InstructionId, Op};
use nest::{FunctionBuilder, Predicate, ScalarType, Type, ValueId};
use plan::{Loop, RowValue, RowsPlan, Sweep};
use support::{Error, Result};

/// Writes the results.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &RowsPlan) -> Result<()> {
    let results = match cx.fusion().root_op() {
        Op::Tuple {} => cx.fusion().body[cx.fusion().root].operands().to_vec(),
        _ => vec![cx.fusion().root],
    };
    let row = Row { plan, results: &results, columns: needed_columns(cx, plan, &results)? };
    let steps: Vec<i64> = plan.rows.iter().map(|l| l.extent).collect();
    let needed = row.needed(cx)?;
    cx.for_tasks(|cx, task| {
        let mut spans = cx.spans(&task, &steps, &plan.cuts)?;
        for (span, &needed) in spans.iter_mut().zip(&needed) {
            *span = cx.limited(*span, needed, 1)?;
        }
        let loops: Vec<TaskLoop> =
            plan.rows.iter().zip(spans).map(|(&full, span)| TaskLoop { full, span }).collect();
        let mut indices = vec![Index::default(); plan.sizes.len()];
        nest_parts(cx, &loops, &mut indices, &mut |cx, indices| row.emit(cx, indices))
    })
}

/// Writes the single result of one row, given the row's number.
pub(crate) fn emit_row(cx: &mut KernelContext<'_>, plan: &RowsPlan, number: &Index) -> Result<()> {
    let mut indices = vec![Index::default(); plan.sizes.len()];
    let mut rest = number.clone();
    for (place, outer) in plan.rows.iter().enumerate().rev() {
        if place == 0 {
            indices[outer.dimension] = rest;
            break;
        }
        (rest, indices[outer.dimension]) = cx.div_rem(&rest, outer.extent)?;
    }
    let results = &[cx.fusion().root];
    Row { plan, results, columns: needed_columns(cx, plan, results)? }.emit(cx, &mut indices)
}

/// Returns how many elements of a row matter, if all reductions and results agree.
fn needed_columns(
    cx: &KernelContext<'_>,
    plan: &RowsPlan,
    results: &[InstructionId],
) -> Result<Option<Extent>> {
    let &[column] = &plan.columns[..] else { return Ok(None) };
    if plan.sizes[column.dimension] != column.extent {
        return Ok(None);
    }
    let mut all = Vec::new();
    for &id in plan.sweeps.iter().flat_map(|sweep| &sweep.reductions) {
        let array = cx.fusion().body[id].operands()[0];
        let extents = cx.significant(id);
        let is_walked = cx.shape(array)?.sizes() == plan.sizes;
        all.push(extents.get(column.dimension).copied().flatten().filter(|_| is_walked));
    }
    for &id in results {
        if cx.shape(id)?.sizes() == plan.sizes {
            all.push(cx.needed(id)[column.dimension]);
        }
    }
    let first = all.first().copied().flatten();
    Ok(first.filter(|_| all.iter().all(|&extent| extent == first)))
}

/// Emitter for a row.
struct Row<'p> {
    plan: &'p RowsPlan,
    results: &'p [InstructionId],
    /// Number of elements of a row that matter.
    columns: Option<Extent>,
}

/// Accumulators of a walk: for each vector of a round, one per reduction.
type Sums = Vec<ValueId>;

/// Elements of results that are stored later: result, position, element.
type Pending = Vec<(usize, Position, Element)>;

/// Instructions and the values that replace them.
type Provided = Vec<(InstructionId, Element)>;

/// Lanes of a vector that count in a reduction.
#[derive(Clone, Copy)]
enum Counting {
    /// All of them.
    All,
    /// The given number of lanes at the end. The lanes before were counted already.
    Last(i64),
}

impl Row<'_> {
    /// Returns how many rows are needed along each loop over rows, if all results agree.
    fn needed(&self, cx: &KernelContext<'_>) -> Result<Vec<Option<Extent>>> {
        let rank = self.plan.sizes.len();
        let mut all: Option<Vec<Option<Extent>>> = None;
        for &result in self.results {
            let sizes = cx.shape(result)?.sizes();
            let mut extents = vec![None; rank];
            let follows = if sizes == self.plan.sizes {
                (0..rank).map(Some).collect()
            } else {
                self.plan.row_dimensions(&sizes)
            };
            for (dimension, extent) in follows.into_iter().zip(cx.needed(result)) {
                if let Some(dimension) = dimension {
                    extents[dimension] = extent;
                }
            }
            // Only rows matter: walks are always complete.
            self.plan.columns.iter().for_each(|column| extents[column.dimension] = None);
            match &all {
                Some(others) if *others != extents => return Ok(Vec::new()),
                _ => all = Some(extents),
            }
        }
        let extents = all.unwrap_or_default();
        Ok(KernelContext::loop_extents(&self.plan.rows, &self.plan.sizes, &extents))
    }

    /// Emits all walks along one row, and the results with one element per row.
    fn emit(&self, cx: &mut KernelContext<'_>, indices: &mut [Index]) -> Result<()> {
        self.walks(cx, &self.plan.sweeps, indices)
    }

    /// Emits the remaining walks. The results of each walk's reductions replace their instructions
    /// in the later walks.
    fn walks(&self, cx: &mut KernelContext<'_>, sweeps: &[Sweep], indices: &mut [Index]) -> Result<()> {
        let Some((sweep, later)) = sweeps.split_first() else { return self.row_results(cx, indices) };
        let reduced = self.walk(cx, sweep, indices)?;
        cx.with_provided(reduced, |cx| self.walks(cx, later, indices))
    }

    fn row_results(&self, cx: &mut KernelContext<'_>, indices: &[Index]) -> Result<()> {
        for &number in &self.plan.row_results {
            let result = cx.results()[number].clone();
            let follows = self.plan.row_dimensions(&result.shape.sizes());
            let at = follows.iter().map(|d| d.map_or_else(Index::default, |d| indices[d].clone()));
            let position = Position::Multi(at.collect());
            let element = cx.element(self.results[number], &position)?;
            cx.store_at(&result, &position, element)?;
        }
        Ok(())
    }

    /// Emits one walk. Returns the results of its reductions.
    fn walk(&self, cx: &mut KernelContext<'_>, sweep: &Sweep, indices: &mut [Index]) -> Result<Provided> {
        let mut operations = Vec::with_capacity(sweep.reductions.len());
        for &id in &sweep.reductions {
            let Op::Reduce { to_apply, .. } = cx.fusion().body[id].op() else {
                return Err(Error::internal("expected a reduction among those of a walk"));
            };
            operations.push(Operation::of(cx, *to_apply, cx.shape(id)?.element_type));
        }
        let walk = Walk { row: self, sweep, operations: &operations };
        let lanes = self.plan.lanes;
        let mut neutral = Vec::with_capacity(operations.len());
        for operation in &operations {
            neutral.push(cx.at(1, |b| operation.neutral(b, lanes))?);
        }
        let start: Sums = (0..sweep.vectors).flat_map(|_| neutral.iter().copied()).collect();
        let sums = walk.nest(cx, &self.plan.columns, indices, &start)?;
        for column in &self.plan.columns {
            indices[column.dimension] = Index::default();
        }
        let mut reduced = Provided::new();
        for (k, (&id, operation)) in sweep.reductions.iter().zip(&operations).enumerate() {
            let of_one = sums.iter().skip(k).step_by(operations.len()).copied().collect();
            let sum = combined(cx, operation, of_one, lanes)?;
            let initial = cx.fusion().body[id].operands()[1];
            let initial = cx.element(initial, &Position::scalar())?.real();
            let value = operation.combine(cx, initial, sum)?;
            let element_type = cx.shape(id)?.element_type;
            let value = normalize(cx, element_type, value);
            reduced.push((id, Element::Real(value)));
        }
        Ok(reduced)
    }
}

/// Emitter for a walk.
struct Walk<'p> {
    row: &'p Row<'p>,
    sweep: &'p Sweep,
    operations: &'p [Operation<'p>],
}

impl Walk<'_> {
    /// Emits the loops over the elements of a row, the outermost first.
    fn nest(
        &self,
        cx: &mut KernelContext<'_>,
        loops: &[Loop],
        indices: &mut [Index],
        sums: &[ValueId],
    ) -> Result<Sums> {
        match loops {
            [] => Ok(sums.to_vec()),
            [innermost] => self.line(cx, *innermost, indices, sums),
            [outer, inner @ ..] => cx.for_range_carrying(0, outer.extent, 1, sums, |cx, index, sums| {
                indices[outer.dimension] = index;
                self.nest(cx, inner, indices, sums)
            }),
        }
    }

    /// Emits rounds of several vectors, single vectors, and a last vector that overlaps the one
    /// before.
    fn line(
        &self,
        cx: &mut KernelContext<'_>,
        innermost: Loop,
        indices: &mut [Index],
        sums: &[ValueId],
    ) -> Result<Sums> {
        let plan = self.row.plan;
        let (extent, lanes) = (innermost.extent, i64::from(plan.lanes));
        let round = lanes * i64::from(self.sweep.vectors);
        let count = self.operations.len();
        let whole = extent / lanes * lanes;
        let rounds = if plan.in_registers { 0 } else { extent / round * round };
        let mut sums = sums.to_vec();
        let mut pending = Pending::new();
        if whole < extent {
            // Results may overwrite operands, so the last vector is read before anything is
            // written.
            let (last, slot) = (sums.len() - count, Counting::Last(extent - whole));
            let begin = Index::constant(extent - lanes);
            pending = self.vector(cx, innermost, &begin, indices, &mut sums[last..], slot)?;
        }
        if rounds > 0 {
            sums = cx.for_needed((0, rounds, self.row.columns), round, &sums, |cx, index, sums| {
                let mut sums = sums.to_vec();
                let mut written = Pending::new();
                for k in 0..i64::from(self.sweep.vectors) {
                    let (first, slot) = (index.plus_constant(k * lanes), k as usize * count);
                    let of_vector = &mut sums[slot..slot + count];
                    written.extend(self.vector(cx, innermost, &first, indices, of_vector, Counting::All)?);
                }
                write(cx, plan.lanes, written)?;
                Ok(sums)
            })?;
        }
        for (k, begin) in (rounds..whole).step_by(lanes as usize).enumerate() {
            let slot = k % self.sweep.vectors.max(1) as usize * count;
            let (of_vector, begin) = (&mut sums[slot..slot + count], Index::constant(begin));
            let written = self.vector(cx, innermost, &begin, indices, of_vector, Counting::All)?;
            write(cx, plan.lanes, written)?;
        }
        write(cx, plan.lanes, pending)?;
        Ok(sums)
    }

    /// Emits one vector: accumulates it and stores the values that later walks need. Returns the
    /// elements of results.
    fn vector(
        &self,
        cx: &mut KernelContext<'_>,
        innermost: Loop,
        first: &Index,
        indices: &mut [Index],
        sums: &mut [ValueId],
        counting: Counting,
    ) -> Result<Pending> {
        let lanes = self.row.plan.lanes;
        let number = self.number_in_row(indices, innermost, first);
        let mut loaded = Provided::new();
        for value in &self.sweep.loaded {
            loaded.push((value.instruction, self.load(cx, value, &number)?));
        }
        indices[innermost.dimension] = first.plus(&Index::lanes(i64::from(lanes > 1)));
        cx.with_provided(loaded, |cx| {
            cx.with_lanes(lanes, |cx| self.evaluate(cx, indices, &number, sums, counting))
        })
    }

    fn evaluate(
        &self,
        cx: &mut KernelContext<'_>,
        indices: &[Index],
        number: &Index,
        sums: &mut [ValueId],
        counting: Counting,
    ) -> Result<Pending> {
        let lanes = self.row.plan.lanes;
        let position = Position::Multi(indices.to_vec());
        for (k, &id) in self.sweep.reductions.iter().enumerate() {
            let input = cx.fusion().body[id].operands()[0];
            let element = cx.element(input, &position)?;
            let mut value = cx.widen(element, lanes)?.real();
            if let Counting::Last(count) = counting {
                value = last_lanes(cx, &self.operations[k], value, lanes, count)?;
            }
            sums[k] = self.operations[k].combine(cx, sums[k], value)?;
        }
        for value in &self.sweep.stored {
            let element = cx.element(value.instruction, &position)?;
            let element = cx.widen(element, lanes)?;
            self.store(cx, value, number, element)?;
        }
        let mut written = Pending::new();
        for &k in &self.sweep.results {
            written.push((k, position.clone(), cx.element(self.row.results[k], &position)?));
        }
        Ok(written)
    }

    /// Returns the number of an element in its row.
    fn number_in_row(&self, indices: &[Index], innermost: Loop, first: &Index) -> Index {
        let columns = &self.row.plan.columns;
        columns.iter().fold(Index::default(), |number, column| {
            let index =
                if column.dimension == innermost.dimension { first } else { &indices[column.dimension] };
            number.times(column.extent).plus(index)
        })
    }

    /// Returns the address in scratch of a stored value's elements, from the given element on.
    fn scratch(
        &self,
        cx: &mut KernelContext<'_>,
        value: &RowValue,
        number: &Index,
    ) -> Result<(ValueId, Type, u32)> {
        let element_type = cx.shape(value.instruction)?.element_type;
        let ty = Type::vector(memory_type(element_type), self.row.plan.lanes);
        let size = element_type.byte_size() as i64;
        let first = cx.worker_scratch();
        let first = cx.offset_bytes(first, value.offset as i64);
        let number = cx.scalar_value(number)?;
        Ok((cx.offset(first, number, size), ty, size as u32))
    }

    /// Loads a stored value in the current region: the scratch belongs to other rows before and
    /// after.
    fn load(&self, cx: &mut KernelContext<'_>, value: &RowValue, number: &Index) -> Result<Element> {
        let (pointer, ty, alignment) = self.scratch(cx, value, number)?;
        let raw = cx.load(ty, pointer, alignment);
        let element_type = cx.shape(value.instruction)?.element_type;
        Ok(Element::Real(decode(cx, element_type, raw)))
    }

    fn store(
        &self,
        cx: &mut KernelContext<'_>,
        value: &RowValue,
        number: &Index,
        element: Element,
    ) -> Result<()> {
        let (pointer, _, alignment) = self.scratch(cx, value, number)?;
        let element_type = cx.shape(value.instruction)?.element_type;
        let raw = encode(cx, element_type, element.real());
        cx.store(raw, pointer, alignment);
        Ok(())
    }
}

/// Stores elements of results.
fn write(cx: &mut KernelContext<'_>, lanes: u32, elements: Pending) -> Result<()> {
    for (k, position, element) in elements {
        let result = cx.results()[k].clone();
        cx.with_lanes(lanes, |cx| cx.store_at(&result, &position, element))?;
    }
    Ok(())
}

/// Returns a value whose first lanes are neutral, except for the last `count`.
fn last_lanes(
    b: &mut FunctionBuilder,
    operation: &Operation<'_>,
    value: ValueId,
    lanes: u32,
    count: i64,
) -> Result<ValueId> {
    let neutral = operation.neutral(b, lanes)?;
    let lane = b.iota(ScalarType::I32, lanes);
    let first = b.integer(Type::vector(ScalarType::I32, lanes), i64::from(lanes) - count);
    let is_new = b.compare(Predicate::GreaterEqual, lane, first);
    Ok(b.select(is_new, value, neutral))
}

/// Combines accumulators into one scalar.
fn combined(
    cx: &mut KernelContext<'_>,
    operation: &Operation<'_>,
    mut sums: Vec<ValueId>,
    mut lanes: u32,
) -> Result<ValueId> {
    while sums.len() > 1 {
        let mut halved = Vec::with_capacity(sums.len().div_ceil(2));
        for pair in sums.chunks(2) {
            halved.push(match *pair {
                [x, y] => operation.combine(cx, x, y)?,
                [x] => x,
                _ => return Err(Error::internal("found an empty pair of accumulators")),
            });
        }
        sums = halved;
    }
    let mut sum =
        sums.first().copied().ok_or_else(|| Error::internal("missing accumulator of a reduction"))?;
    while lanes > 1 {
        lanes /= 2;
        let low = cx.shuffle(sum, sum, (0..lanes).collect());
        let high = cx.shuffle(sum, sum, (lanes..2 * lanes).collect());
        sum = operation.combine(cx, low, high)?;
    }
    Ok(cx.extract(sum, 0))
}
