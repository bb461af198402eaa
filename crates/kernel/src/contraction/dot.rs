//! Dots: one generator for all plans that [`plan::DotPlan`] describes.
//!
//! Tiles of rows and vectors of columns are accumulated in registers over the summands. The
//! epilogue receives each finished element (a vector of neighboring columns) before it is stored.

mod apart;
mod block_float;
mod complex;
mod pack;
pub(crate) mod part;
mod row_dot;
pub(super) mod row_tiles;
mod tiled;
mod walk;

use crate::context::KernelContext;
use crate::context::tasks::Span;
use crate::contraction::tile;
use crate::contraction::tile_registers::{TileRegisters, with_tiles};
use crate::element::{Element, decode, memory_type};
use crate::index::{Index, Position};
use apart::{OpenDims, OpenSides, RowsApart};
use hlo::analysis::{Extent, linear_extent};
use hlo::{InstructionId, Op};
use nest::{ConvertOp, FunctionBuilder, ScalarType, Type, ValueId};
use plan::{DotLoops, DotPlan, Packing, PanelLayout, TiledDot};
use shape::PrimitiveType;
use std::ops::Range;
use support::{Error, Result};

/// Neighboring elements of a row of the result, before the epilogue.
#[derive(Clone, Debug)]
struct DotElement {
    /// Number of the product, row-major over the batch dimensions.
    batch: Index,
    /// The row, row-major over the left operand's free dimensions.
    row: Index,
    /// The first column, row-major over the right operand's free dimensions.
    column: Index,
    /// Number of columns.
    lanes: u32,
    /// The sum.
    value: Element,
}

/// Writes the result of a dot and its epilogue.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &DotPlan) -> Result<()> {
    if cx.results()[0].shape.element_count() == 0 {
        return Ok(());
    }
    let lhs = cx.operand(plan.lhs_operand)?.pointer;
    let rhs = match plan.rhs_packing() {
        Packing::Constant => cx.first_packed()?,
        Packing::None | Packing::Scratch => cx.operand(plan.rhs_operand)?.pointer,
    };
    let lhs = match plan.block_float {
        Some(row) => block_float::pack(cx, plan, row, lhs)?,
        None => lhs,
    };
    let constant_product = plan.tiled().map_or(0, |tiled| tiled.panels.bytes());
    let needed = Needed::of(cx, plan, cx.fusion().root)?;
    let sides = Tiles::of(plan).and_then(|tiles| OpenSides::of(cx, tiles, cx.fusion().root));
    let OpenSides { rows: open_rows, columns: open_columns } = sides.unwrap_or_default();
    let apart = Tiles::of(plan).zip(open_rows.as_ref());
    let apart = apart.and_then(|(tiles, rows)| RowsApart::of(cx, tiles, rows));
    // If panels are packed for all rows, the blocks of rows are within them.
    let open_rows = open_rows.as_ref().filter(|_| apart.is_none());
    let registers = Tiles::of(plan).and_then(|tiles| tiles.tile_registers(cx));
    let body = |cx: &mut KernelContext<'_>, task: Index| {
        let (mut steps, mut cuts) = (plan.steps(), plan.cuts);
        if plan.tasks_by_rows() {
            steps.swap(1, 2);
            cuts.swap(1, 2);
        }
        let spans = cx.spans(&task, &steps, &cuts)?;
        let &[batches, outer, inner] = &spans[..] else {
            return Err(Error::internal("expected three loops over a dot"));
        };
        let (columns, rows) = if plan.tasks_by_rows() { (inner, outer) } else { (outer, inner) };
        let batches = cx.limited(batches, needed.batches, 1)?;
        let part = Part {
            columns: needed.columns(cx, plan, columns)?,
            rows: needed.rows(cx, plan, rows)?,
            open_rows,
            open_columns: open_columns.as_ref(),
        };
        cx.for_span(batches, 1, |cx, batch| {
            let lhs = pack::batch_pointer(cx, lhs, &batch, &plan.dims.lhs_batch, plan.lhs_type)?;
            let rhs = match plan.rhs_packing() {
                Packing::Constant => {
                    let number = cx.scalar_value(&batch)?;
                    cx.offset(rhs, number, constant_product)
                }
                _ => pack::batch_pointer(cx, rhs, &batch, &plan.dims.rhs_batch, plan.rhs_type)?,
            };
            let product = Product::in_place(plan, batch, lhs, rhs);
            if let (Some(rows), Some(tiles)) = (apart, Tiles::of(plan)) {
                return rows.for_each(cx, tiles, part, &mut |cx, part| {
                    let product = pack::product(cx, plan, product.clone(), part)?;
                    tiled::emit(cx, tiles, &product, part)
                });
            }
            let product = pack::product(cx, plan, product, part)?;
            match &plan.loops {
                DotLoops::Tiled(tiled) => tiled::emit(cx, Tiles { dot: plan, tiled }, &product, part),
                DotLoops::Rows { tile, .. } => row_dot::emit(cx, plan, *tile, &product, part),
                DotLoops::Complex { .. } => complex::emit(cx, plan, &product, part),
            }
        })
    };
    cx.for_tasks(|cx, task| with_tiles(cx, registers, |cx| body(cx, task)))
}

/// The products, rows, and columns of a dot that are needed, if not all are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needed {
    pub(crate) batches: Option<Extent>,
    pub(crate) rows: Option<Extent>,
    pub(crate) columns: Option<Extent>,
}

impl Needed {
    /// Returns what the needed elements of a result of the body are made of.
    pub(crate) fn of(cx: &KernelContext<'_>, plan: &DotPlan, result: InstructionId) -> Result<Self> {
        let (dot, body) = (plan.hero, cx.fusion().body);
        let Op::Dot { dot_dimension_numbers: numbers } = body[dot].op() else {
            return Err(Error::internal("expected a dot instruction as the plan's dot"));
        };
        let (sizes, extents) = (cx.shape(dot)?.sizes(), cx.needed_for(result, dot));
        let rows = numbers.lhs_batch_dims.len();
        let columns = cx.shape(body[dot].operands()[0])?.rank() - numbers.lhs_contracting_dims.len();
        let of = |range: Range<usize>| linear_extent(sizes.get(range.clone())?, extents.get(range)?);
        Ok(Self { batches: of(0..rows), rows: of(rows..columns), columns: of(columns..sizes.len()) })
    }

    /// Returns the part of some steps over rows that is needed.
    pub(crate) fn rows(self, cx: &mut KernelContext<'_>, plan: &DotPlan, rows: Span) -> Result<RowSteps> {
        let (Some(extent), Some(tiles)) = (self.rows, Tiles::of(plan)) else {
            return Ok(RowSteps::all(cx.limited(rows, self.rows, plan.tile_rows())?));
        };
        if cx.covers(extent, plan.shape.m) {
            return Ok(RowSteps::all(rows));
        }
        let count = cx.extent(extent, plan.shape.m)?;
        let tiles = row_tiles::tiles_of_rows(cx, tiles, count)?;
        Ok(RowSteps { span: cx.until(rows, tiles), count: Some(count) })
    }

    /// Returns the part of some steps over columns that is needed.
    pub(crate) fn columns(self, cx: &mut KernelContext<'_>, plan: &DotPlan, columns: Span) -> Result<Span> {
        match &plan.loops {
            DotLoops::Tiled(tiled) if tiled.panel_distance > tiled.panels.width => Ok(columns),
            DotLoops::Tiled(tiled) => cx.limited(columns, self.columns, tiled.tile.columns()),
            DotLoops::Rows { tile, .. } => cx.limited(columns, self.columns, i64::from(tile.vectors)),
            DotLoops::Complex { .. } => Ok(columns),
        }
    }
}

/// A dot whose loops are tiled.
#[derive(Clone, Copy)]
pub(crate) struct Tiles<'p> {
    pub(crate) dot: &'p DotPlan,
    pub(crate) tiled: &'p TiledDot,
}

impl<'p> Tiles<'p> {
    /// Returns the number of summands that are not known to be 0, if the tiles leave out the
    /// others.
    pub(crate) fn needed_summands(self, cx: &mut KernelContext<'_>) -> Result<Option<ValueId>> {
        let extent = cx.needed_summands(self.dot.hero).filter(|_| self.dot.limits_summands());
        extent.map(|extent| cx.extent(extent, self.dot.shape.k)).transpose()
    }

    /// Returns the tile registers with the sums, if they are there. If the number of rows is known
    /// at run time, the last tiles have few of them.
    fn tile_registers(self, cx: &KernelContext<'_>) -> Option<TileRegisters> {
        let (m, most) = (self.dot.shape.m, i64::from(self.tiled.tile.rows));
        let is_open = !cx.fusion().module.size_parameters().is_empty();
        let fewest = match (is_open, m % most) {
            (true, _) => 1,
            (false, 0) => most,
            (false, _) => most - self.tiled.row_step,
        };
        let rows = [most, fewest].map(|rows| rows.max(1) as u32);
        TileRegisters::new(self.dot.grouping, rows, self.dot.shape.k)
    }

    /// Returns the dot if its loops are tiled.
    pub(crate) fn of(dot: &'p DotPlan) -> Option<Self> {
        dot.tiled().map(|tiled| Self { dot, tiled })
    }
}

/// A task's part of a product.
#[derive(Clone, Copy, Debug)]
struct Part<'d> {
    /// Steps over the columns.
    columns: Span,
    /// Steps over the rows.
    rows: RowSteps,
    /// The dimensions of the rows, if the loop over them has to leave out some.
    open_rows: Option<&'d OpenDims>,
    /// The dimensions of the columns, if the loop over them has to leave out some.
    open_columns: Option<&'d OpenDims>,
}

impl Part<'_> {
    /// Returns a part without gaps.
    fn new(columns: Span, rows: RowSteps) -> Self {
        Self { columns, rows, open_rows: None, open_columns: None }
    }
}

/// Steps over the rows of a product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowSteps {
    /// The steps.
    pub(crate) span: Span,
    /// Number of rows of the product that are needed, if it is known at run time. The last step may
    /// then have fewer than others.
    pub(crate) count: Option<ValueId>,
}

impl RowSteps {
    /// Returns steps whose rows are all needed.
    pub(crate) fn all(span: Span) -> Self {
        Self { span, count: None }
    }
}

/// Emits the epilogue for some elements and stores the result.
fn finish(cx: &mut KernelContext<'_>, plan: &DotPlan, element: DotElement) -> Result<()> {
    let dot = plan.hero;
    let shape = cx.shape(dot)?;
    let Op::Dot { dot_dimension_numbers: numbers } = cx.fusion().body[dot].op() else {
        return Err(Error::internal("expected a dot instruction as the plan's dot"));
    };
    let sizes = shape.sizes();
    let batch_rank = numbers.lhs_batch_dims.len();
    let lhs_rank = cx.shape(cx.fusion().body[dot].operands()[0])?.rank();
    let column_rank = lhs_rank - numbers.lhs_contracting_dims.len();
    let column = element.column.plus(&Index::lanes(i64::from(element.lanes > 1)));
    let position = cx.with_lanes(element.lanes, |cx| {
        let mut position = delinearized(cx, &element.batch, &sizes[..batch_rank])?;
        position.extend(delinearized(cx, &element.row, &sizes[batch_rank..column_rank])?);
        position.extend(delinearized(cx, &column, &sizes[column_rank..])?);
        Ok(Position::Multi(position))
    })?;
    tile::finish(cx, plan.sums, plan.accumulator, &position, element.lanes, element.value)
}

/// Converts a row-major number to an index for each dimension.
fn delinearized(cx: &mut KernelContext<'_>, number: &Index, sizes: &[i64]) -> Result<Vec<Index>> {
    let mut indices = vec![Index::default(); sizes.len()];
    let mut rest = number.clone();
    for dimension in (0..sizes.len()).rev() {
        if dimension == 0 {
            indices[0] = rest;
            break;
        }
        (rest, indices[dimension]) = cx.div_rem(&rest, sizes[dimension])?;
    }
    Ok(indices)
}

/// One product of matrices: the addresses of its operands, and their strides in bytes.
#[derive(Clone, Debug)]
struct Product {
    batch: Index,
    lhs: ValueId,
    /// The row at the left operand's address, if that is not the product's first one.
    lhs_first: Option<ValueId>,
    lhs_row: i64,
    lhs_k: i64,
    rhs: ValueId,
    /// Type of the right operand's elements where tiles read them.
    rhs_type: PrimitiveType,
    rhs_k: i64,
    /// Distance between neighboring columns of an operand that is not packed into panels.
    rhs_column: i64,
    /// Layout of the right operand if it is packed into panels.
    panels: Option<PanelLayout>,
    /// Alignment of the first element of the right operand, or of each panel.
    rhs_alignment: u32,
}

impl Product {
    /// Returns the product of operands that are not packed at run time.
    fn in_place(plan: &DotPlan, batch: Index, lhs: ValueId, rhs: ValueId) -> Self {
        let size = plan.accumulator.byte_size() as i64;
        let rhs_type = if plan.rhs_packing() == Packing::None { plan.rhs_type } else { plan.accumulator };
        let rhs_size = rhs_type.byte_size() as i64;
        let (lhs_row, lhs_k) = match plan.grouping {
            Some(grouping) => (plan.dims.lhs_m_stride() * plan.lhs_type.byte_size() as i64, grouping.bytes()),
            None => (plan.dims.lhs_m_stride() * size, plan.dims.lhs_k_stride() * size),
        };
        let mut product = Self {
            batch,
            lhs,
            lhs_first: None,
            lhs_row,
            lhs_k,
            rhs,
            rhs_type,
            rhs_k: plan.dims.rhs_k_stride() * rhs_size,
            rhs_column: plan.dims.rhs_n_stride() * rhs_size,
            panels: None,
            rhs_alignment: alignment(rhs_type),
        };
        let packed = Tiles::of(plan).filter(|tiles| tiles.tiled.rhs_packing == Packing::Constant);
        if let Some(tiles) = packed {
            product.set_panels(tiles, rhs);
        }
        product
    }

    /// Replaces the right operand by packed panels at an address.
    fn set_panels(&mut self, plan: Tiles<'_>, pointer: ValueId) {
        let panels = plan.tiled.panels;
        self.rhs = pointer;
        self.rhs_k = panels.row_bytes();
        self.panels = Some(panels);
        // Panels and their rows consist of whole vectors, so the block's alignment carries over.
        self.rhs_alignment = (i64::from(plan.tiled.tile.lanes) * panels.element_bytes).min(64) as u32;
    }
}

impl Product {
    /// Loads neighbors of a right operand that is not packed, and widens them to the accumulator's
    /// type.
    fn load_right(&self, b: &mut FunctionBuilder, scalar: ScalarType, from: ValueId, lanes: u32) -> ValueId {
        if self.rhs_type.byte_size() == scalar.byte_size() {
            return b.load(Type::vector(scalar, lanes), from, self.rhs_alignment);
        }
        let raw = b.load(Type::vector(memory_type(self.rhs_type), lanes), from, self.rhs_alignment);
        if self.rhs_type.is_floating_point() {
            return decode(b, self.rhs_type, raw);
        }
        let is_signed = self.rhs_type.is_signed_integer();
        let op = if is_signed { ConvertOp::SignedToFloat } else { ConvertOp::UnsignedToFloat };
        b.convert(op, raw, scalar)
    }

    /// Returns the address of a row of the left operand.
    fn row(&self, cx: &mut KernelContext<'_>, row: &Index) -> Result<ValueId> {
        let mut row = cx.scalar_value(row)?;
        if let Some(first) = self.lhs_first {
            row = cx.sub(row, first);
        }
        Ok(cx.offset(self.lhs, row, self.lhs_row))
    }

    /// Returns the address of a column of the right operand. In a packed one, the column must be
    /// the first of a panel, or of a tile within a panel, and the address is that of the first
    /// summand, after the panel's header.
    fn column(&self, cx: &mut KernelContext<'_>, column: &Index) -> Result<ValueId> {
        let Some(panels) = self.panels else {
            let column = cx.scalar_value(column)?;
            return Ok(cx.offset(self.rhs, column, self.rhs_column));
        };
        let (number, within) = cx.div_rem(column, panels.width)?;
        let (number, within) = (cx.scalar_value(&number)?, cx.scalar_value(&within)?);
        let first = cx.offset(self.rhs, number, panels.panel_bytes());
        let first = tile::after_header(cx, panels, first);
        Ok(cx.offset(first, within, panels.element_bytes))
    }

    /// Returns the distance in bytes between the first column of a tile and another one.
    fn within_tile(&self, column: i64, size: i64) -> i64 {
        self.panels.map_or(column * size, |panels| panels.offset(column))
    }
}

/// Returns the alignment of an element. The alignment of a complex number is that of its parts.
fn alignment(element_type: PrimitiveType) -> u32 {
    element_type.real_part().byte_size() as u32
}
