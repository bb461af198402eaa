//! Several results from one loop nest. For each element of a space, the kernel computes all values;
//! it then stores them in their results or adds them to the columns that they are reduced to.

use crate::context::KernelContext;
use crate::context::reindex::same_dimensions;
use crate::element::{Element, normalize};
use crate::index::{Index, Position};
use crate::loops::{self, TaskLoop};
use crate::reduction::reduce::blocks::{Carried, nest_in_blocks};
use crate::reduction::reduce::operation::Operation;
use crate::reduction::reduce::{LimitedLoop, nest_parts};
use hlo::analysis::Extent;
use hlo::{InstructionId, Op};
use nest::ValueId;
use plan::{MultiOutputPlan, Output, OutputReduction, Placement};
use support::{Error, Result};

/// Writes all results.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &MultiOutputPlan) -> Result<()> {
    let outputs = plan::outputs(&cx.fusion())?;
    for &(leaf, number) in &plan.updates {
        copy_operand(cx, leaf, number)?;
    }
    if plan.sizes.contains(&0) && !plan.reduces() {
        return Ok(());
    }
    let mut placed = Vec::with_capacity(outputs.len());
    for output in &outputs {
        placed.push(Placed::new(cx, output)?);
    }
    if plan.reduces() {
        return columns(cx, plan, &placed);
    }
    emit_elements(cx, plan, &placed)
}

/// Computes and stores the elements of all outputs, none of which is reduced.
pub(crate) fn emit_elements(
    cx: &mut KernelContext<'_>,
    plan: &MultiOutputPlan,
    placed: &[Placed],
) -> Result<()> {
    let needed = needed(cx, plan, placed)?;
    loops::for_each(cx, &plan.nest, plan.sizes.len(), &needed, &mut |cx, indices| {
        let mut values = Vec::with_capacity(placed.len());
        for output in placed {
            values.push(output.element(cx, indices)?);
        }
        for (output, value) in placed.iter().zip(values) {
            output.store(cx, indices, value)?;
        }
        Ok(())
    })
}

/// Returns how many indices of each loop are needed: those on which all outputs agree.
fn needed(cx: &KernelContext<'_>, plan: &MultiOutputPlan, placed: &[Placed]) -> Result<Vec<Option<Extent>>> {
    let mut agreed: Option<Vec<Option<Extent>>> = None;
    for output in placed {
        let mut extents = vec![None; plan.sizes.len()];
        if output.sizes == plan.sizes {
            extents = output.needed(cx)?;
        }
        let of_loops = KernelContext::loop_extents(&plan.nest.loops, &plan.sizes, &extents);
        agreed = Some(match agreed {
            None => of_loops,
            Some(others) => {
                let both = others.into_iter().zip(of_loops);
                both.map(|(a, b)| a.filter(|_| a == b)).collect()
            }
        });
    }
    Ok(agreed.unwrap_or_default())
}

/// Copies an operand that a result updates in part, unless the result already occupies the
/// operand's memory.
fn copy_operand(cx: &mut KernelContext<'_>, leaf: usize, number: usize) -> Result<()> {
    let (operand, result) = (cx.operand(number)?.clone(), cx.results()[leaf].clone());
    if !cx.is_same_memory(operand.pointer, result.pointer) {
        let bytes = cx.index(result.shape.byte_size() as i64);
        cx.copy_bytes(result.pointer, operand.pointer, bytes);
    }
    Ok(())
}

/// An output whose placement steps are indices.
pub(crate) struct Placed {
    value: InstructionId,
    pub(crate) leaf: usize,
    /// Sizes of the value. Those other than 1 match the dimensions of the space, in order.
    sizes: Vec<i64>,
    steps: Vec<Step>,
    pub(crate) reduction: Option<OutputReduction>,
}

/// A step from the value's indices to those of the result.
enum Step {
    /// A reshape between two lists of sizes that differ only in dimensions of size 1.
    Reshape(Vec<i64>, Vec<i64>),
    /// Adds an offset in each dimension.
    Move(Vec<Index>),
}

impl Placed {
    pub(crate) fn new(cx: &mut KernelContext<'_>, output: &Output) -> Result<Self> {
        let body = cx.fusion().body;
        let mut steps = Vec::with_capacity(output.path.len());
        let mut at = cx.shape(output.value)?.sizes();
        for step in &output.path {
            match *step {
                Placement::Reshape(id) => {
                    let to = cx.shape(id)?.sizes();
                    steps.push(Step::Reshape(at, to.clone()));
                    at = to;
                }
                Placement::Part(id, dimension, first) => {
                    let mut by = vec![Index::default(); at.len()];
                    by[dimension] = Index::constant(first);
                    steps.push(Step::Move(by));
                    at = cx.shape(id)?.sizes();
                }
                Placement::Update(id) => {
                    let sizes = cx.shape(id)?.sizes();
                    let operands = &body[id].operands()[2..];
                    let mut by = Vec::with_capacity(sizes.len());
                    let starts = cx.start_operands(operands, sizes.len())?;
                    for (d, (start, position)) in starts.into_iter().enumerate() {
                        let element = cx.element(start, &position)?;
                        let element_type = cx.shape(start)?.element_type;
                        by.push(cx.start_index(element, element_type, sizes[d] - at[d])?);
                    }
                    steps.push(Step::Move(by));
                    at = sizes;
                }
            }
        }
        let sizes = cx.shape(output.value)?.sizes();
        Ok(Self { value: output.value, leaf: output.leaf, sizes, steps, reduction: output.reduction })
    }

    /// Returns how many indices along each dimension of the value change what is read of the
    /// output.
    fn needed(&self, cx: &KernelContext<'_>) -> Result<Vec<Option<Extent>>> {
        let Some(OutputReduction { instruction, .. }) = self.reduction else {
            return Ok(cx.needed(self.value));
        };
        let dimensions = self.reduced(cx)?;
        let mut extents = cx.significant(instruction);
        extents.resize(self.sizes.len(), None);
        let kept = (0..extents.len()).filter(|d| !dimensions.contains(d));
        kept.zip(cx.needed(instruction)).for_each(|(d, extent)| extents[d] = extent);
        Ok(extents)
    }

    /// Returns the dimensions of the value that are reduced.
    fn reduced<'a>(&self, cx: &KernelContext<'a>) -> Result<&'a [usize]> {
        let Some(OutputReduction { instruction, .. }) = self.reduction else { return Ok(&[]) };
        let Op::Reduce { dimensions, .. } = cx.fusion().body[instruction].op() else {
            return Err(Error::internal("expected a reduce instruction as the reduction of an output"));
        };
        Ok(dimensions)
    }

    /// Maps indices of the space to indices of the value.
    fn indices(&self, space: &[Index]) -> Vec<Index> {
        let mut next = space.iter();
        let mut index = |&size: &i64| match size {
            1 => Index::default(),
            _ => next.next().cloned().unwrap_or_default(),
        };
        self.sizes.iter().map(&mut index).collect()
    }

    pub(crate) fn element(&self, cx: &mut KernelContext<'_>, space: &[Index]) -> Result<Element> {
        cx.element(self.value, &Position::Multi(self.indices(space)))
    }

    pub(crate) fn store(&self, cx: &mut KernelContext<'_>, space: &[Index], value: Element) -> Result<()> {
        let mut position = Position::Multi(self.indices(space));
        for step in &self.steps {
            position = match (step, position) {
                (Step::Reshape(from, to), position) => {
                    same_dimensions(&position, from, to).ok_or_else(|| {
                        Error::internal("the dimensions of a result differ from those of its value")
                    })?
                }
                (Step::Move(by), Position::Multi(indices)) => {
                    Position::Multi(indices.iter().zip(by).map(|(index, by)| index.plus(by)).collect())
                }
                (Step::Move(_), position @ Position::Linear(_)) => position,
            };
        }
        let result = cx.results()[self.leaf].clone();
        cx.store_at(&result, &position, value)
    }

    /// Returns the position of a column in the result: its indices in the kept dimensions.
    pub(crate) fn column(&self, cx: &KernelContext<'_>, space: &[Index]) -> Result<Position> {
        let dimensions = self.reduced(cx)?;
        let own = self.indices(space);
        let kept = own.into_iter().enumerate().filter(|(d, _)| !dimensions.contains(d));
        Ok(Position::Multi(kept.map(|(_, index)| index).collect()))
    }
}

/// A reduction's operation and initial value.
struct Column<'a> {
    operation: Operation<'a>,
    initial: ValueId,
    output: &'a Placed,
}

/// Emits a nest with reductions: loops over the kept dimensions around loops over the reduced ones.
fn columns(cx: &mut KernelContext<'_>, plan: &MultiOutputPlan, outputs: &[Placed]) -> Result<()> {
    let (reduced, kept): (Vec<usize>, Vec<usize>) =
        (0..plan.nest.loops.len()).partition(|&number| plan.is_reduced[plan.nest.loops[number].dimension]);
    let needed = needed(cx, plan, outputs)?;
    let steps = plan.steps();
    // The innermost loop, which is kept, takes vectors.
    let vectors = i64::from(plan.nest.lanes) * plan.column_vectors;
    let width = |number: usize| if number + 1 == steps.len() { vectors } else { 1 };
    let widths: Vec<i64> = kept.iter().map(|&number| width(number)).collect();
    let (steps, cuts): (Vec<i64>, Vec<i64>) =
        kept.iter().map(|&number| (steps[number], plan.nest.cuts[number])).unzip();
    let loops = &plan.nest.loops;
    let mut blocks = Blocks {
        plan,
        outputs,
        columns: Vec::new(),
        reduced: reduced.iter().map(|&number| (loops[number], needed[number])).collect(),
    };
    cx.for_tasks(|cx, task| {
        let mut spans = cx.spans(&task, &steps, &cuts)?;
        for ((span, &number), &step) in spans.iter_mut().zip(&kept).zip(&widths) {
            *span = cx.limited(*span, needed[number], step)?;
        }
        let kept: Vec<TaskLoop> =
            kept.iter().zip(spans).map(|(&k, span)| TaskLoop { full: loops[k], span }).collect();
        for output in outputs {
            let Some(reduction) = output.reduction else { continue };
            let element_type = cx.results()[output.leaf].shape.element_type;
            let operation = Operation::of(cx, reduction.to_apply, element_type);
            let initial = cx.element(reduction.initial, &Position::scalar())?.real();
            blocks.columns.push(Column { operation, initial, output });
        }
        blocks.emit(cx, &kept)
    })
}

/// Emitter for blocks of columns.
struct Blocks<'a> {
    plan: &'a MultiOutputPlan,
    outputs: &'a [Placed],
    columns: Vec<Column<'a>>,
    reduced: Vec<LimitedLoop>,
}

impl Blocks<'_> {
    /// Emits all blocks of a task. The last block may overlap the one before; its columns are then
    /// reduced again.
    fn emit(&self, cx: &mut KernelContext<'_>, kept: &[TaskLoop]) -> Result<()> {
        let Some((&TaskLoop { full: innermost, span }, outer)) = kept.split_last() else {
            return Err(Error::internal("a reduction over columns has no kept dimension"));
        };
        let (lanes, count) = (self.plan.nest.lanes, self.plan.column_vectors);
        let (vector, extent) = (i64::from(lanes), innermost.extent);
        let (full, vectors) = (extent / (vector * count) * (vector * count), extent / vector * vector);
        let mut indices = vec![Index::default(); self.plan.sizes.len()];
        nest_parts(cx, outer, &mut indices, &mut |cx, indices| {
            cx.for_span(span, vector * count, |cx, index| {
                self.block(cx, indices, innermost.dimension, &index, lanes, count)
            })?;
            if full == extent {
                return Ok(());
            }
            cx.if_last(span, |cx| {
                if full < vectors {
                    let rest = Index::constant(full);
                    let count = (vectors - full) / vector;
                    self.block(cx, indices, innermost.dimension, &rest, lanes, count)?;
                }
                if vectors < extent {
                    let last = Index::constant(extent - vector);
                    self.block(cx, indices, innermost.dimension, &last, lanes, 1)?;
                }
                Ok(())
            })
        })
    }

    /// Reduces several neighboring vectors of columns, and stores the outputs without a reduction.
    fn block(
        &self,
        cx: &mut KernelContext<'_>,
        indices: &mut Vec<Index>,
        dimension: usize,
        begin: &Index,
        lanes: u32,
        count: i64,
    ) -> Result<()> {
        let column = |k: i64| {
            let stride = Index::lanes(i64::from(lanes > 1));
            begin.plus(&stride).plus_constant(k * i64::from(lanes))
        };
        let (mut start, mut operations) = (Vec::new(), Vec::new());
        for reduced in &self.columns {
            let initial = cx.widen(Element::Real(reduced.initial), lanes)?.real();
            start.extend(std::iter::repeat_n(initial, count as usize));
            operations.extend(std::iter::repeat_n(reduced.operation, count as usize));
        }
        let carried = Carried { operations: &operations, lanes, inside: 1 };
        let sums = nest_in_blocks(cx, &self.reduced, indices, &carried, &start, &mut |cx, indices, sums| {
            let mut next = sums.to_vec();
            cx.with_lanes(lanes, |cx| {
                for k in 0..count {
                    indices[dimension] = column(k);
                    self.elements(
                        cx,
                        indices,
                        lanes,
                        |number| number * count as usize + k as usize,
                        &mut next,
                    )?;
                }
                Ok(next)
            })
        })?;
        cx.with_lanes(lanes, |cx| {
            for (number, reduced) in self.columns.iter().enumerate() {
                let result = cx.results()[reduced.output.leaf].clone();
                for k in 0..count {
                    indices[dimension] = column(k);
                    let sum = sums[number * count as usize + k as usize];
                    let value = normalize(cx, result.shape.element_type, sum);
                    let position = reduced.output.column(cx, indices)?;
                    cx.store_at(&result, &position, Element::Real(value))?;
                }
            }
            Ok(())
        })
    }

    /// Computes one vector of the space, combines the reduced outputs into the sums of `next`
    /// (numbered by `slot`), and stores the others.
    fn elements(
        &self,
        cx: &mut KernelContext<'_>,
        indices: &[Index],
        lanes: u32,
        slot: impl Fn(usize) -> usize,
        next: &mut [ValueId],
    ) -> Result<()> {
        let mut stored = Vec::new();
        let mut number = 0;
        for output in self.outputs {
            let element = output.element(cx, indices)?;
            if output.reduction.is_none() {
                stored.push((output, element));
                continue;
            }
            let element = cx.widen(element, lanes)?.real();
            let sum = &mut next[slot(number)];
            *sum = self.columns[number].operation.combine(cx, *sum, element)?;
            number += 1;
        }
        for (output, element) in stored {
            output.store(cx, indices, element)?;
        }
        Ok(())
    }
}
