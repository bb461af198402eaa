//! Attention on a device: two products and the softmax between them as one kernel.
//!
//! A workgroup computes some rows of one product. It walks over the keys, a tile at a time: it
//! multiplies the rows by the keys, keeps the largest score and the sum of the exponentials of each
//! row, and adds the products with the values to sums in registers. Where the largest score grows,
//! the sums so far are scaled down (online softmax: Dao et al., FlashAttention, 2022). Scores exist
//! only in workgroup memory, a tile at a time.

mod cost;
mod softmax;

pub use softmax::OnlineSoftmax;

use super::GroupGrid;
use super::contraction::{
    ContractionPlan, ContractionView, GroupTile, MatrixTile, Method, OperandView, Role, div_ceil,
};
use crate::contraction::epilogue::check_epilogue;
use crate::contraction::tile::accumulator;
use crate::fusion::{Fusion, Position};
use crate::kernel_plan::KernelPlan;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use std::fmt;
use support::{Error, Result};
use target::Gpu;

/// Plan of attention on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceAttentionPlan {
    /// The product of queries and keys. A tile of it is in workgroup memory.
    pub scores: ContractionPlan,
    /// Steps of the first product for which the queries are kept in workgroup memory: all, or 0 if
    /// each tile of keys loads them again.
    pub kept_steps: i64,
    /// The work on the scores.
    pub softmax: OnlineSoftmax,
    /// The product of weights and values. All columns are in one tile.
    pub values: ContractionPlan,
}

impl DeviceAttentionPlan {
    /// Rows of a workgroup, and keys of a tile.
    pub fn tile(&self) -> [i64; 2] {
        tile_of(&self.scores.method)
    }

    /// Columns of the second product's tile.
    pub fn width(&self) -> i64 {
        tile_of(&self.values.method)[1]
    }

    /// Threads of a workgroup.
    pub fn threads(&self) -> u32 {
        self.scores.grid(0).threads
    }

    /// The grid: a workgroup for each tile of rows of each product.
    pub(crate) fn grid(&self) -> GroupGrid {
        let [rows, _] = self.tile();
        let tiles = div_ceil(self.scores.view.extent(Role::Row), rows);
        let groups = self.scores.view.extent(Role::Batch) * tiles;
        GroupGrid { groups: groups as u64, threads: self.threads() }
    }
}

/// Rows and columns of a workgroup's tile.
fn tile_of(method: &Method) -> [i64; 2] {
    match method {
        Method::Tiles(tile) => [tile.rows, tile.columns],
        Method::Matrix(tile) => [tile.rows, tile.columns],
        Method::Few(_) | Method::Direct => [1, 1],
    }
}

/// Summands of a step of a product.
fn depth_of(method: &Method) -> i64 {
    match method {
        Method::Tiles(tile) => tile.depth,
        Method::Matrix(tile) => tile.depth(),
        Method::Few(_) | Method::Direct => 1,
    }
}

/// Bytes of workgroup memory: buffers that both products use in turns, queries that are kept, the
/// tile of scores, and for each row a factor and what its threads exchange.
fn workgroup_bytes([scores, values]: [&Method; 2], threads: i64, element: i64, kept_steps: i64) -> i64 {
    let [rows, keys] = tile_of(scores);
    let [_, columns] = tile_of(values);
    let buffer = |extent: i64| match scores {
        Method::Tiles(tile) => tile.buffer_bytes(extent, element),
        _ => MatrixTile::ROW_BYTES * extent,
    };
    let staged_rows = if kept_steps > 0 { 0 } else { 2 * buffer(rows) };
    let stages = (staged_rows + 2 * buffer(keys)).max(2 * buffer(columns));
    let queries = kept_steps * buffer(rows);
    stages + queries + scores_bytes([rows, keys], element) + (rows + threads) * element
}

/// Bytes of a tile of scores in workgroup memory. Its keys are rows.
fn scores_bytes([rows, keys]: [i64; 2], element: i64) -> i64 {
    keys * (rows + GroupTile::PADDING) * element
}

/// Plans a body of two dots. Returns `None` if the body does not compute attention, or if the
/// device cannot hold its tiles.
pub(crate) fn plan(
    fusion: &Fusion<'_>,
    dots: [InstructionId; 2],
    gpu: Gpu,
    allow_tf32: bool,
) -> Result<Option<KernelPlan<DeviceAttentionPlan>>> {
    Ok(choose(fusion, dots, gpu, allow_tf32)?.map(|(plan, _)| KernelPlan::new(plan)))
}

/// True if a body of two dots has a plan that is faster than separate kernels.
pub(crate) fn pays(fusion: &Fusion<'_>, dots: [InstructionId; 2], gpu: Gpu, allow_tf32: bool) -> bool {
    matches!(choose(fusion, dots, gpu, allow_tf32), Ok(Some((_, true))))
}

/// Returns the plan, and true if it pays off.
fn choose(
    fusion: &Fusion<'_>,
    dots: [InstructionId; 2],
    gpu: Gpu,
    allow_tf32: bool,
) -> Result<Option<(DeviceAttentionPlan, bool)>> {
    let [scores, values] = dots;
    if fusion.computed() != fusion.root {
        return Ok(None);
    }
    let Some(softmax) = OnlineSoftmax::of(fusion, scores, values) else { return Ok(None) };
    let handed = fusion.caller[fusion.instruction].operands().len();
    let last = fusion.part(fusion.root, Some((softmax.weights, handed)));
    if check_epilogue(&last, values).is_err() {
        return Ok(None);
    }
    let product = |dot: InstructionId, lhs: Option<usize>| -> Result<Option<ContractionPlan>> {
        let body = fusion.body;
        let Op::Dot { dot_dimension_numbers: numbers } = body[dot].op() else {
            return Err(Error::internal("expected a dot in attention"));
        };
        let operands = body[dot].operands();
        let number = |k: usize| match fusion.position(operands[k]) {
            Position::Operand(number) => Some(number),
            Position::Inside => None,
        };
        let (Some(lhs_operand), Some(rhs_operand)) = (lhs.or_else(|| number(0)), number(1)) else {
            return Ok(None);
        };
        let shape = |id: InstructionId| body[id].shape().expect_array();
        let view = ContractionView::of_dot(shape(operands[0]), shape(operands[1]), numbers);
        let part = view.extent(Role::Summand);
        Ok(Some(ContractionPlan {
            hero: dot,
            view,
            accumulator: accumulator(shape(dot).element_type),
            lhs_operand,
            rhs_operand,
            method: Method::Direct,
            splits: 1,
            part,
            around: None,
        }))
    };
    let (Some(scores), Some(values)) = (product(scores, None)?, product(values, Some(handed))?) else {
        return Ok(None);
    };
    if !are_joined(&scores.view, &values.view) || scores.accumulator != values.accumulator {
        return Ok(None);
    }
    if !softmax.is_computed_in(fusion, scores.accumulator)
        || softmax.row(fusion) != Some(scores.view.extent(Role::Column))
    {
        return Ok(None);
    }
    let work = cost::Work {
        views: [&scores.view, &values.view],
        types: element_types(fusion, &scores, &values),
        accumulator: scores.accumulator,
        traffic: softmax.traffic(fusion),
    };
    let Some(choice) = cost::choose(&work, gpu, allow_tf32) else { return Ok(None) };
    let [first, second] = choice.methods;
    let plan = DeviceAttentionPlan {
        scores: ContractionPlan { method: first, ..scores },
        kept_steps: choice.kept_steps,
        softmax,
        values: ContractionPlan { method: second, ..values },
    };
    Ok(Some((plan, choice.pays)))
}

/// Types of queries, keys, weights, and values.
fn element_types(
    fusion: &Fusion<'_>,
    scores: &ContractionPlan,
    values: &ContractionPlan,
) -> [PrimitiveType; 4] {
    let of = |dot: InstructionId, k: usize| {
        fusion.body[fusion.body[dot].operands()[k]].shape().expect_array().element_type
    };
    [of(scores.hero, 0), of(scores.hero, 1), of(values.hero, 0), of(values.hero, 1)]
}

/// True if the result of the first product, row-major, is the left operand of the second one.
fn are_joined(scores: &ContractionView, values: &ContractionView) -> bool {
    let roles = [Role::Batch, Role::Row, Role::Column];
    let [batch, rows, keys] = roles.map(|role| scores.extent(role));
    let is_empty =
        [batch, rows, keys, scores.extent(Role::Summand), values.extent(Role::Column)].contains(&0);
    let others = [Role::Batch, Role::Row, Role::Summand].map(|role| values.extent(role));
    !is_empty && others == [batch, rows, keys] && is_row_major(&values.lhs, values)
}

/// True if the elements of a left operand are in the order of products, rows, and summands.
fn is_row_major(operand: &OperandView, view: &ContractionView) -> bool {
    let mut distance = 1;
    for role in [Role::Summand, Role::Row, Role::Batch] {
        let axes = view.axes[role as usize].iter().zip(&operand.strides[role as usize]);
        for (&size, &stride) in axes.rev() {
            if stride != distance {
                return false;
            }
            distance *= size;
        }
    }
    operand.offset == 0 && operand.checks.is_empty()
}

impl fmt::Display for DeviceAttentionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rows, keys] = self.tile();
        let groups = self.grid().groups;
        let kept = if self.kept_steps > 0 { "kept" } else { "loaded again" };
        write!(f, "attention, {rows} rows, {kept}, and tiles of {keys} keys in {groups} workgroups; ")?;
        write!(f, "{}; {}", self.scores, self.values)
    }
}
