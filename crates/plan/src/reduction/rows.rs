//! Row patterns: reductions along rows with the elementwise instructions that need their results,
//! such as softmax and layer normalization, as one kernel that walks each row several times while
//! it is in the cache.

mod body;

use crate::collapse::{self, Follows, Loop, Visits};
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::loops;
use crate::tasks::{self, Work};
use body::Body;
use hlo::{InstructionId, Op, is_associative};
use support::{Error, Result};
use target::Target;

/// Plan of a kernel that walks rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsPlan {
    /// The dimensions of the walked space: rows, then the elements of a row.
    pub sizes: Vec<i64>,
    /// The loops over rows, outermost first.
    pub rows: Vec<Loop>,
    /// The loops over the elements of a row, outermost first; vectors run along the last.
    pub columns: Vec<Loop>,
    /// Elements per vector.
    pub lanes: u32,
    /// The walks along a row, in order.
    pub sweeps: Vec<Sweep>,
    /// Indices of the results with one element per row; they are computed after the last walk.
    pub row_results: Vec<usize>,
    /// True if a row is so short that all of it stays in registers from walk to walk.
    pub in_registers: bool,
    /// Number of parts into which each loop over rows is divided for tasks.
    pub cuts: Vec<i64>,
}

/// Cost of adding up the lanes of a row's sum and waiting for the result, in operations.
const SUM_OPERATIONS: u64 = 800;

impl RowsPlan {
    /// Work per row, in addition to the work per element.
    pub(crate) fn sums(&self) -> Work {
        let sums = self.sweeps.iter().map(|sweep| sweep.reductions.len() as u64).sum::<u64>();
        let rows = self.rows.iter().fold(1u64, |n, l| n.saturating_mul(l.extent.max(0) as u64));
        Work { operations: rows.saturating_mul(sums).saturating_mul(SUM_OPERATIONS), bytes: 0 }
    }
}

/// One walk along a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The reductions that this walk finishes.
    pub reductions: Vec<InstructionId>,
    /// Values of earlier walks that this walk reads back.
    pub loaded: Vec<RowValue>,
    /// Values that later walks read back.
    pub stored: Vec<RowValue>,
    /// Indices of the results that this walk writes.
    pub results: Vec<usize>,
    /// Vectors per iteration, each with its own accumulators.
    pub vectors: u32,
}

/// An instruction whose elements of one row are kept in the worker's scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowValue {
    /// The instruction.
    pub instruction: InstructionId,
    /// Offset of its first byte.
    pub offset: u64,
}

impl RowsPlan {
    /// The row dimension that each dimension of an array with these sizes follows; `None` for those
    /// of size 1.
    pub fn row_dimensions(&self, sizes: &[i64]) -> Vec<Option<usize>> {
        let columns = self.columns.iter().map(|l| l.dimension).min().unwrap_or(self.sizes.len());
        follow_rows(sizes, &self.sizes, |d| d < columns)
    }
}

/// For each dimension of an array with one element per row, the row dimension that it follows;
/// `None` where its size is 1.
fn follow_rows(sizes: &[i64], walked: &[i64], is_row: impl Fn(usize) -> bool) -> Follows {
    let mut rows = (0..walked.len()).filter(|&d| walked[d] != 1 && is_row(d));
    sizes.iter().map(|&size| if size == 1 { None } else { rows.next() }).collect()
}

/// The walked space, and which of its dimensions form a row.
struct Walked {
    sizes: Vec<i64>,
    /// True for each dimension along a row.
    is_column: Vec<bool>,
}

/// Plans a fusion of kind `Rows`.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<KernelPlan<RowsPlan>> {
    let walked = walked(fusion)?;
    let results = results(fusion);
    let row_results: Vec<usize> =
        (0..results.len()).filter(|&k| !is_whole(fusion, &walked, results[k])).collect();
    let (loops, visits) = walk(fusion, &walked, &results, &row_results)?;
    let (columns, rows): (Vec<Loop>, Vec<Loop>) = loops.iter().partition(|l| walked.is_column[l.dimension]);
    let innermost = columns.last().map_or(1, |l| l.extent);
    let lanes = loops::largest_fitting(loops::lanes(fusion, target), innermost);
    let body = Body::new(fusion, &visits, &walked);
    let mut sweeps = body.sweeps(&results, &row_results);
    let kept_values = body.kept(&sweeps, &results);
    let vectors = innermost / i64::from(lanes) + i64::from(innermost % i64::from(lanes) != 0);
    let in_registers =
        columns.len() == 1 && body.fits_registers(&sweeps, &results, &kept_values, vectors, target);
    let elements = columns.iter().fold(1u64, |n, l| n.saturating_mul(l.extent.max(0) as u64));
    let mut bytes = 0u64;
    for value in kept_values.iter().filter(|_| !in_registers) {
        let size = fusion.body[value.instruction].shape().expect_array().element_type.byte_size() as u64;
        let stored = RowValue { instruction: value.instruction, offset: bytes };
        sweeps[value.first].stored.push(stored);
        value.later.iter().for_each(|&later| sweeps[later].loaded.push(stored));
        bytes = bytes.saturating_add(elements.saturating_mul(size)).next_multiple_of(64);
    }
    for k in 0..sweeps.len() {
        // With only sixteen registers, the constants of elementary functions leave few free.
        let when_costly = if target.vector_registers < 32 { 1 } else { 2 };
        let most = if body.is_costly(&sweeps, &results, k) { when_costly } else { 4 };
        sweeps[k].vectors = (innermost / i64::from(lanes)).clamp(1, most) as u32;
    }
    let all = walked.sizes.iter().fold(1i64, |n, &size| n.saturating_mul(size));
    let units: Vec<i64> = rows.iter().map(|l| l.extent).collect();
    let may_overwrite = body.overwritable();
    let sizes = walked.sizes;
    let mut plan =
        RowsPlan { sizes, rows, columns, lanes, sweeps, row_results, in_registers, cuts: Vec::new() };
    plan.cuts = tasks::cut(Work::of_elements(fusion, all).and(plan.sums()).tasks(target), &units);
    let tasks = tasks::count(&plan.cuts);
    Ok(KernelPlan { tasks, worker_scratch_bytes: bytes, may_overwrite, ..KernelPlan::new(plan) })
}

/// The instructions of the body that are results, in order.
fn results(fusion: &Fusion<'_>) -> Vec<InstructionId> {
    match fusion.root_op() {
        Op::Tuple {} => fusion.body[fusion.root].operands().to_vec(),
        _ => vec![fusion.root],
    }
}

/// True if a result has all dimensions of the walked space.
fn is_whole(fusion: &Fusion<'_>, walked: &Walked, id: InstructionId) -> bool {
    fusion.body[id].shape().as_array().is_some_and(|shape| shape.sizes() == walked.sizes)
}

/// The space that all reductions of the body walk.
fn walked(fusion: &Fusion<'_>) -> Result<Walked> {
    let mut walked: Option<Walked> = None;
    for id in fusion.instructions() {
        let instruction = &fusion.body[id];
        let is_complex = |shape: &shape::ArrayShape| shape.element_type.is_complex() || !shape.is_static();
        if instruction.shape().leaves().iter().any(|(_, leaf)| is_complex(leaf)) {
            return Err(Error::unsupported("complex numbers or dynamic sizes in a walk along rows"));
        }
        let Op::Reduce { dimensions, to_apply } = instruction.op() else {
            if id != fusion.root || !matches!(instruction.op(), Op::Tuple {}) {
                loops::check_fusible(instruction.op())?;
            }
            continue;
        };
        let &[input, initial] = instruction.operands() else {
            return Err(Error::unsupported("reduction of several arrays in a walk along rows"));
        };
        let sizes = fusion.body[input].shape().expect_array().sizes();
        let is_column = (0..sizes.len()).map(|d| dimensions.contains(&d)).collect();
        let this = Walked { sizes, is_column };
        if !is_associative(&fusion.module[*to_apply])
            || !this.ends_in_columns()
            || fusion.body[initial].shape().as_array().is_none_or(|s| s.rank() != 0)
            || walked.as_ref().is_some_and(|other| !other.is_same(&this))
        {
            return Err(Error::unsupported("reductions of different kinds in one walk along rows"));
        }
        walked.get_or_insert(this);
    }
    walked.ok_or_else(|| Error::internal("walk along rows without a reduction"))
}

impl Walked {
    /// The dimensions whose size is not 1.
    fn wide(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.sizes.len()).filter(|&d| self.sizes[d] != 1)
    }

    /// True if row dimensions precede the dimensions along a row, and none is empty.
    fn ends_in_columns(&self) -> bool {
        let columns: Vec<bool> = self.wide().map(|d| self.is_column[d]).collect();
        columns.is_sorted() && columns.last() == Some(&true) && self.sizes.iter().all(|&size| size > 0)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.sizes == other.sizes && self.wide().all(|d| self.is_column[d] == other.is_column[d])
    }

    /// True if an array that follows these dimensions differs along a row.
    fn varies_along_row(&self, follows: &Follows) -> bool {
        follows.iter().flatten().any(|&d| self.is_column[d] && self.sizes[d] != 1)
    }
}

/// The loops over the walked space, and every instruction that they evaluate.
fn walk(
    fusion: &Fusion<'_>,
    walked: &Walked,
    results: &[InstructionId],
    row_results: &[usize],
) -> Result<(Vec<Loop>, Visits)> {
    let whole = || (0..walked.sizes.len()).map(Some).collect::<Follows>();
    let is_reduction = |id: &InstructionId| matches!(fusion.body[*id].op(), Op::Reduce { .. });
    let reductions = fusion.instructions().into_iter().filter(is_reduction);
    let mut starts: Vec<(InstructionId, Follows)> =
        reductions.map(|id| (fusion.body[id].operands()[0], whole())).collect();
    let of_rows = |sizes: &[i64]| follow_rows(sizes, &walked.sizes, |d| !walked.is_column[d]);
    let rows: Vec<usize> = walked.wide().filter(|&d| !walked.is_column[d]).collect();
    for (k, &id) in results.iter().enumerate() {
        if !row_results.contains(&k) {
            starts.push((id, whole()));
            continue;
        }
        let sizes = fusion.body[id].shape().expect_array().sizes();
        let wide = sizes.iter().filter(|&&size| size != 1);
        if !wide.eq(rows.iter().map(|&d| &walked.sizes[d])) {
            return Err(Error::unsupported("result whose dimensions differ from those of the rows"));
        }
        starts.push((id, of_rows(&sizes)));
    }
    let (nest, visits) = collapse::visited_nest(fusion, starts, &walked.sizes, |outer, inner| {
        walked.is_column[outer] == walked.is_column[inner]
    })?;
    // A reduction's value belongs to the row that is being walked.
    for (id, follows) in visits.iter().filter(|(id, _)| is_reduction(id)) {
        let wide = fusion.body[*id].shape().expect_array().sizes().into_iter().zip(follows);
        let followed = wide.filter(|(size, _)| *size != 1).map(|(_, follows)| *follows);
        if !followed.eq(rows.iter().map(|&d| Some(d))) {
            return Err(Error::unsupported("reduction of another row in a walk along rows"));
        }
    }
    Ok((nest.loops, visits))
}

impl std::fmt::Display for RowsPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let elements: i64 = self.columns.iter().map(|l| l.extent).product();
        let what = if self.in_registers { "rows in registers" } else { "rows" };
        write!(f, "{what} of {elements} elements, {} walks, {} lanes", self.sweeps.len(), self.lanes)
    }
}

#[cfg(test)]
mod tests;
