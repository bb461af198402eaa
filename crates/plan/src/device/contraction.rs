//! Contractions on a device: dots, convolutions, and gradients of kernels as products of matrices.
//!
//! All of them have the same plan. A [`ContractionView`] says where the elements of the matrices
//! lie in memory, and a [`Method`] who computes which elements of the result.

pub(super) mod cost;
mod view;

pub use view::{Check, ContractionView, OperandView, Role};

use super::GroupGrid;
use crate::contraction::convolution::ConvolutionDims;
use crate::contraction::epilogue::check_epilogue;
use crate::contraction::tile::accumulator;
use crate::fusion::{Fusion, Position};
use crate::in_place::overwritable;
use crate::kernel_plan::KernelPlan;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use std::fmt;
use support::{Error, Result};
use target::Gpu;

/// Plan of a contraction on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractionPlan {
    /// The dot or convolution.
    pub hero: InstructionId,
    /// The matrices.
    pub view: ContractionView,
    /// The type of products and sums.
    pub accumulator: PrimitiveType,
    /// Index of the fusion's operand that is the left one.
    pub lhs_operand: usize,
    /// Index of the fusion's operand that is the right one.
    pub rhs_operand: usize,
    /// Division of the work among workgroups and threads.
    pub method: Method,
    /// Number of parts into which the summands are divided. Each part's sums are kept in scratch,
    /// and another kernel adds them up in order.
    pub splits: i64,
    /// Summands of a part, except for the last one.
    pub part: i64,
    /// Elements of an array around the slice that the kernel writes, if it writes a slice.
    pub around: Option<i64>,
}

/// Division of a contraction's work among workgroups and threads.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// A workgroup computes a tile from tiles of the operands in workgroup memory.
    Tiles(GroupTile),
    /// A workgroup computes a tile with the device's matrix units.
    Matrix(MatrixTile),
    /// A workgroup computes some columns for the few rows of the result. Its threads share the
    /// summands.
    Few(FewRows),
    /// Each thread computes one element.
    Direct,
}

/// A tile of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupTile {
    /// Rows of the tile.
    pub rows: i64,
    /// Columns of the tile.
    pub columns: i64,
    /// Summands that are in workgroup memory at the same time.
    pub depth: i64,
    /// Rows of a thread.
    pub thread_rows: i64,
    /// Columns of a thread.
    pub thread_columns: i64,
}

impl GroupTile {
    /// Threads of the workgroup.
    pub fn threads(&self) -> u32 {
        ((self.rows / self.thread_rows) * (self.columns / self.thread_columns)) as u32
    }

    /// Elements after each row in workgroup memory, so that neighboring rows begin in different
    /// banks.
    pub const PADDING: i64 = 4;

    /// Bytes of workgroup memory: two buffers for each operand.
    pub fn workgroup_bytes(&self, element: i64) -> i64 {
        2 * (self.buffer_bytes(self.rows, element) + self.buffer_bytes(self.columns, element))
    }

    /// Bytes of a buffer for some rows or columns.
    pub fn buffer_bytes(&self, extent: i64, element: i64) -> i64 {
        self.depth * (extent + Self::PADDING) * element
    }
}

/// A tile that the matrix units of a multiprocessor compute. Each of the four warps of the
/// workgroup computes a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixTile {
    /// Rows of the tile: a multiple of 32.
    pub rows: i64,
    /// Columns of the tile: a multiple of 32.
    pub columns: i64,
    /// The type of both operands: `f16`, `bf16`, `s8`, or `f32`, which is multiplied as TF32.
    pub element_type: PrimitiveType,
}

impl MatrixTile {
    /// Threads of the workgroup.
    pub const THREADS: u32 = 128;

    /// Bytes of a row or column that are in workgroup memory at the same time.
    pub const ROW_BYTES: i64 = 64;

    /// Summands that are in workgroup memory at the same time.
    pub fn depth(&self) -> i64 {
        Self::ROW_BYTES / self.element_type.byte_size() as i64
    }

    /// Bytes of workgroup memory: two buffers for each operand.
    pub fn workgroup_bytes(&self) -> i64 {
        2 * Self::ROW_BYTES * (self.rows + self.columns)
    }
}

/// The work of a workgroup that computes columns of a few rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewRows {
    /// True if rows and columns are exchanged: the result has few columns.
    pub is_swapped: bool,
    /// True if neighboring threads compute neighboring columns, false if they take neighboring
    /// summands.
    pub along_columns: bool,
    /// Columns, or runs of neighboring columns, of the workgroup.
    pub columns: i64,
    /// Threads that share the summands of a column.
    pub slices: i64,
    /// Neighboring columns that a thread loads together.
    pub column_run: i64,
    /// Neighboring summands that a thread loads together.
    pub run: i64,
}

/// Threads of a workgroup that computes a few rows.
const FEW_THREADS: i64 = 256;

/// Rows up to which each thread keeps the sums of all rows.
const MOST_FEW: i64 = 8;

/// Threads of a workgroup that computes element by element or adds up parts.
const ELEMENT_THREADS: u32 = 128;

impl ContractionPlan {
    /// Number of kernels.
    pub fn steps(&self) -> usize {
        1 + usize::from(self.splits > 1) + usize::from(self.around.is_some())
    }

    /// The kernel of a step.
    pub fn step(&self, number: usize) -> Step {
        match (self.around.is_some(), number) {
            (true, 0) => Step::CopyAround,
            (false, 0) | (true, 1) => Step::Products,
            _ => Step::Sums,
        }
    }

    /// Elements of the result of the contraction.
    pub fn elements(&self) -> i64 {
        [Role::Batch, Role::Row, Role::Column]
            .into_iter()
            .fold(1, |n: i64, role| n.saturating_mul(self.view.extent(role)))
    }

    /// The grid of a step.
    pub fn grid(&self, number: usize) -> GroupGrid {
        let linear = |elements: i64| GroupGrid {
            groups: (elements.max(1) as u64).div_ceil(ELEMENT_THREADS.into()),
            threads: ELEMENT_THREADS,
        };
        match (self.step(number), &self.method) {
            (Step::CopyAround, _) => linear(self.around.unwrap_or(0)),
            (Step::Sums, _) | (Step::Products, Method::Direct) => linear(self.elements()),
            (Step::Products, Method::Tiles(tile)) => {
                GroupGrid { groups: self.tile_groups(tile.rows, tile.columns), threads: tile.threads() }
            }
            (Step::Products, Method::Matrix(tile)) => {
                GroupGrid { groups: self.tile_groups(tile.rows, tile.columns), threads: MatrixTile::THREADS }
            }
            (Step::Products, Method::Few(few)) => {
                let groups = self.view.extent(Role::Batch) * self.column_groups(few) * self.splits;
                GroupGrid { groups: groups as u64, threads: (few.columns * few.slices) as u32 }
            }
        }
    }

    /// Numbers of tiles along the rows and the columns of a product.
    pub fn tiles(&self, rows: i64, columns: i64) -> [i64; 2] {
        [div_ceil(self.view.extent(Role::Row), rows), div_ceil(self.view.extent(Role::Column), columns)]
    }

    fn tile_groups(&self, rows: i64, columns: i64) -> u64 {
        let [rows, columns] = self.tiles(rows, columns);
        (self.view.extent(Role::Batch) * rows * columns * self.splits) as u64
    }

    /// The contraction whose rows are the few ones.
    pub fn view_of_few(&self, few: &FewRows) -> ContractionView {
        if few.is_swapped { self.view.swapped() } else { self.view.clone() }
    }

    /// Number of workgroups that share the columns of a product with few rows.
    pub fn column_groups(&self, few: &FewRows) -> i64 {
        let columns = self.view.extent(if few.is_swapped { Role::Row } else { Role::Column });
        div_ceil(columns, few.columns * few.column_run)
    }

    /// Bytes of scratch: the sums of all parts.
    fn scratch_bytes(&self) -> u64 {
        if self.splits == 1 {
            return 0;
        }
        (self.splits * self.elements()) as u64 * self.accumulator.byte_size() as u64
    }
}

/// A kernel of a contraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Copies what is around the slice that the others write.
    CopyAround,
    /// Computes the sums of products.
    Products,
    /// Adds up the sums of the parts.
    Sums,
}

pub(super) fn div_ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// Plans a dot or a convolution with its epilogue. Returns `None` for empty operands, and for what
/// the plan of a processor rejects or has no products to sum.
pub(super) fn plan(
    fusion: &Fusion<'_>,
    hero: InstructionId,
    gpu: Gpu,
    allow_tf32: bool,
) -> Result<Option<KernelPlan<ContractionPlan>>> {
    let operands = fusion.body[hero].operands();
    let shape = |k: usize| fusion.body[operands[k]].shape().expect_array();
    let (lhs, rhs, result) = (shape(0), shape(1), fusion.body[hero].shape().expect_array());
    let is_empty = [lhs, rhs, result].iter().any(|shape| shape.element_count() == 0);
    let has_pred = [lhs, rhs, result].iter().any(|shape| shape.element_type == PrimitiveType::Pred);
    if is_empty || has_pred {
        return Ok(None);
    }
    check_epilogue(fusion, hero)?;
    let number = |k: usize| match fusion.position(operands[k]) {
        Position::Operand(number) => Ok(number),
        Position::Inside => Err(Error::internal("operand of a contraction is not in memory")),
    };
    let op = fusion.body[hero].op();
    let view = match op {
        Op::Dot { dot_dimension_numbers: numbers } => ContractionView::of_dot(lhs, rhs, numbers),
        _ => {
            let (form, dims) = ConvolutionDims::of(op, lhs, rhs, result)?;
            ContractionView::of_convolution(form, &dims, lhs, rhs)
        }
    };
    let accumulator = accumulator(result.element_type);
    let choice = cost::choose(&view, [lhs.element_type, rhs.element_type], accumulator, gpu, allow_tf32);
    let root = fusion.shape().as_array().map_or(0, shape::ArrayShape::element_count);
    let is_slice = fusion.computed() != fusion.root;
    let slice = fusion.row_slice();
    if is_slice && slice.is_none() {
        return Ok(None);
    }
    let around = slice.map(|slice| root - slice.rows * slice.run).filter(|&elements| elements > 0);
    let plan = ContractionPlan {
        hero,
        view,
        accumulator,
        lhs_operand: number(0)?,
        rhs_operand: number(1)?,
        method: choice.method,
        splits: choice.splits,
        part: choice.part,
        around,
    };
    // The products read their operands until the end. The epilogue reads its own only at the
    // element that it computes.
    let mut may_overwrite = overwritable(fusion);
    may_overwrite.retain(|k| ![plan.lhs_operand, plan.rhs_operand].contains(k));
    let scratch_bytes = plan.scratch_bytes();
    Ok(Some(KernelPlan { scratch_bytes, may_overwrite, ..KernelPlan::new(plan) }))
}

impl fmt::Display for ContractionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extent = |role| self.view.extent(role);
        write!(
            f,
            "contraction {}x{}x{}x{} in {}",
            extent(Role::Batch),
            extent(Role::Row),
            extent(Role::Column),
            extent(Role::Summand),
            self.accumulator
        )?;
        match &self.method {
            Method::Tiles(tile) => write!(
                f,
                ", tiles {}x{}x{} of {}x{} in {} threads, {} bytes of workgroup memory",
                tile.rows,
                tile.columns,
                tile.depth,
                tile.thread_rows,
                tile.thread_columns,
                tile.threads(),
                tile.workgroup_bytes(self.accumulator.byte_size() as i64),
            )?,
            Method::Matrix(tile) => write!(
                f,
                ", matrix units, tiles {}x{}x{} of {} in {} threads, {} bytes of workgroup memory",
                tile.rows,
                tile.columns,
                tile.depth(),
                tile.element_type,
                MatrixTile::THREADS,
                tile.workgroup_bytes(),
            )?,
            Method::Few(few) => write!(
                f,
                ", {} {} columns of {} slices, runs of {}x{}",
                if few.is_swapped { "few columns," } else { "few rows," },
                few.columns,
                few.slices,
                few.run,
                few.column_run
            )?,
            Method::Direct => f.write_str(", a thread per element")?,
        }
        if self.splits > 1 {
            write!(f, ", {} parts of {} summands", self.splits, self.part)?;
        }
        if self.around.is_some() {
            f.write_str(", copies around")?;
        }
        Ok(())
    }
}
