//! Packs operands in scratch into the layout that the loops read, one product at a time.

mod left;

use super::{Part, Product, Tiles, alignment};
use crate::context::KernelContext;
use crate::context::limits::lesser;
use crate::context::tasks::Span;
use crate::contraction::tile::{self, scalar_type, zero};
use crate::element::Element;
use crate::index::Index;
use crate::transpose::transpose;
use nest::{FunctionBuilder, ScalarType, Type, ValueId};
use plan::{DotPlan, Extent, Packing};
use shape::PrimitiveType;
use support::{Error, Result};

/// Returns the address of a product's operand. The batch number is split along the batch
/// dimensions.
pub(super) fn batch_pointer(
    cx: &mut KernelContext<'_>,
    pointer: ValueId,
    batch: &Index,
    extents: &[Extent],
    element_type: PrimitiveType,
) -> Result<ValueId> {
    let sizes: Vec<i64> = extents.iter().map(|e| e.size).collect();
    let indices = super::delinearized(cx, batch, &sizes)?;
    let position =
        indices.iter().zip(extents).fold(Index::default(), |sum, (i, e)| sum.plus(&i.times(e.stride)));
    let position = cx.scalar_value(&position)?;
    Ok(cx.offset(pointer, position, element_type.byte_size() as i64))
}

/// Loads an element and converts it to the accumulator's type.
fn load(b: &mut FunctionBuilder, plan: &DotPlan, from: PrimitiveType, pointer: ValueId) -> Result<Element> {
    tile::load(b, from, plan.accumulator, pointer, 1)
}

/// Packs the operands that the plan says, and describes the product for the loops.
pub(super) fn product(
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    mut product: Product,
    part: Part<'_>,
) -> Result<Product> {
    let size = plan.accumulator.byte_size() as i64;
    if plan.lhs_packing == Packing::Scratch {
        let to = scratch(cx)?;
        let outer = Dimension { extents: &plan.dims.rows, stride: plan.shape.k * size };
        let inner = Dimension { extents: &plan.dims.lhs_k, stride: size };
        let summands = match Tiles::of(plan) {
            Some(tiles) => tiles.needed_summands(cx)?,
            None => None,
        };
        let from = product.lhs;
        let matrix = Matrix { from, element_type: plan.lhs_type, to, outer, inner, summands };
        match part.rows.span {
            Span::All(_) if !has_open_sizes(cx) => copy(cx, plan, matrix)?,
            span => product.lhs_first = Some(left::copy_needed_rows(cx, plan, matrix, span, part.open_rows)?),
        }
        (product.lhs, product.lhs_row, product.lhs_k) = (to, plan.shape.k * size, size);
    }
    if plan.rhs_packing() == Packing::Scratch && plan.tiled().is_none() {
        let to = scratch(cx)?;
        let to = cx.offset_bytes(to, plan.lhs_scratch_bytes() as i64);
        let outer = Dimension { extents: &plan.dims.columns, stride: plan.shape.k * size };
        let inner = Dimension { extents: &plan.dims.rhs_k, stride: size };
        let (from, element_type) = (product.rhs, plan.rhs_type);
        copy(cx, plan, Matrix { from, element_type, to, outer, inner, summands: None })?;
        (product.rhs, product.rhs_column, product.rhs_k) = (to, plan.shape.k * size, size);
    }
    Ok(product)
}

/// Returns the scratch for packed operands: the worker's if it has any.
pub(super) fn scratch(cx: &mut KernelContext<'_>) -> Result<ValueId> {
    if cx.plan().worker_scratch_bytes > 0 {
        return Ok(cx.worker_scratch());
    }
    cx.scratch().ok_or_else(|| Error::internal("missing scratch for a packed operand"))
}

/// Dimensions of the source that become one dimension of the copy.
#[derive(Clone, Copy)]
struct Dimension<'p> {
    extents: &'p [Extent],
    /// Distance in bytes between neighbors in the copy.
    stride: i64,
}

/// A matrix and its copy.
#[derive(Clone, Copy)]
struct Matrix<'p> {
    from: ValueId,
    element_type: PrimitiveType,
    to: ValueId,
    outer: Dimension<'p>,
    inner: Dimension<'p>,
    /// Number of elements of the inner dimension that are copied, unless all are.
    summands: Option<ValueId>,
}

/// Copies a matrix element by element, with conversion.
fn copy(cx: &mut KernelContext<'_>, plan: &DotPlan, matrix: Matrix<'_>) -> Result<()> {
    let element_size = matrix.element_type.byte_size() as i64;
    let start = Index::default();
    let outer = Walk { extents: matrix.outer.extents, element_size, limit: None };
    let inner = Walk { extents: matrix.inner.extents, element_size, limit: matrix.summands };
    walk(cx, outer, matrix.from, &start, &mut |cx, from, position| {
        let to = cx.offset(matrix.to, position, matrix.outer.stride);
        walk(cx, inner, from, &start, &mut |b, from, position| {
            let to = b.offset(to, position, matrix.inner.stride);
            let part = plan.accumulator.real_part().byte_size() as i64;
            let element = load(b, plan, matrix.element_type, from)?;
            for (k, value) in element.values().into_iter().enumerate() {
                let to = b.offset_bytes(to, k as i64 * part);
                b.store(value, to, part as u32);
            }
            Ok(())
        })
    })
}

/// True if the program has sizes that are known only at run time.
fn has_open_sizes(cx: &KernelContext<'_>) -> bool {
    !cx.fusion().module.size_parameters().is_empty()
}

/// Runs `body` for the needed steps of some summands.
fn for_summands(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    (begin, end): (i64, i64),
    step: i64,
    mut body: impl FnMut(&mut KernelContext<'_>, ValueId) -> Result<()>,
) -> Result<()> {
    let count = plan.needed_summands(cx)?.filter(|_| begin < end);
    let mut body = |cx: &mut KernelContext<'_>, summand: Index| {
        let summand = cx.scalar_value(&summand)?;
        body(cx, summand)
    };
    let Some(count) = count else { return cx.for_range(begin, end, step, body) };
    let (steps, _) = cx.div_rem(&Index::scalar(count).plus_constant(step - 1), step)?;
    let (from, to, most) = (cx.index(begin), cx.scalar_value(&steps.times(step))?, cx.index(end));
    let to = lesser(cx, to, most);
    cx.for_steps((from, to), (begin, end), step, &[], |cx, summand, _| body(cx, summand).map(|()| Vec::new()))
        .map(|_| ())
}

type Visit<'v> = &'v mut dyn FnMut(&mut KernelContext<'_>, ValueId, ValueId) -> Result<()>;

/// Dimensions whose elements are visited.
#[derive(Clone, Copy)]
struct Walk<'p> {
    extents: &'p [Extent],
    element_size: i64,
    /// Number of indices of the only dimension that are visited, unless all are.
    limit: Option<ValueId>,
}

/// Visits the elements along some dimensions, with their addresses and their positions in row-major
/// order.
fn walk(
    cx: &mut KernelContext<'_>,
    dimensions: Walk<'_>,
    from: ValueId,
    position: &Index,
    visit: Visit<'_>,
) -> Result<()> {
    let Some((extent, rest)) = dimensions.extents.split_first() else {
        let position = cx.scalar_value(position)?;
        return visit(cx, from, position);
    };
    let inner: i64 = rest.iter().map(|e| e.size).product();
    let mut step = |cx: &mut KernelContext<'_>, index: &Index| {
        let value = cx.scalar_value(index)?;
        let from = cx.offset(from, value, extent.stride * dimensions.element_size);
        let position = position.plus(&index.times(inner));
        walk(cx, Walk { extents: rest, ..dimensions }, from, &position, visit)
    };
    let Some(limit) = dimensions.limit.filter(|_| rest.is_empty()) else {
        return cx.for_range(0, extent.size, 1, |cx, index| step(cx, &index));
    };
    let zero = cx.index(0);
    cx.for_dynamic(zero, limit, extent.size, &[], |cx, index, _| {
        step(cx, &Index::scalar(index)).map(|()| Vec::new())
    })
    .map(|_| ())
}

/// Packs the panel that begins at a column as `[k][columns]`. Only `valid` columns exist; the
/// others are zeros.
pub(super) fn panel(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    product: &Product,
    column: &Index,
    valid: i64,
) -> Result<Product> {
    let scratch = scratch(cx)?;
    let to = cx.offset_bytes(scratch, plan.dot.lhs_scratch_bytes() as i64);
    panel_to(cx, plan, product, column, valid, to)?;
    let mut packed = product.clone();
    packed.set_panels(plan, to);
    Ok(packed)
}

/// Like [`panel`], to a given address.
pub(super) fn panel_to(
    cx: &mut KernelContext<'_>,
    plan: Tiles<'_>,
    product: &Product,
    column: &Index,
    valid: i64,
    to: ValueId,
) -> Result<()> {
    let scalar = scalar_type(plan.dot.accumulator)?;
    let size = scalar.byte_size() as i64;
    let panel = Panel {
        plan,
        to,
        row: plan.tiled.tile.columns() * size,
        lanes: i64::from(plan.tiled.tile.lanes),
        scalar,
        size,
    };
    let is_plain = plan.dot.rhs_type == plan.dot.accumulator && plan.dot.dims.rhs_is_strided();
    let vectors = valid - valid % panel.lanes;
    if valid < plan.tiled.tile.columns() {
        panel.fill(cx, vectors)?;
    }
    if is_plain && plan.dot.dims.rhs_n_stride() == 1 {
        let first = cx.scalar_value(column)?;
        let from = cx.offset(product.rhs, first, size);
        panel.copy_rows(cx, from, valid)?;
    } else if is_plain && plan.dot.dims.rhs_k_stride() == 1 && panel.lanes > 1 {
        let first = cx.scalar_value(column)?;
        let from = cx.offset(product.rhs, first, plan.dot.dims.rhs_n_stride() * size);
        panel.transpose(cx, from, valid)?;
    } else if panel.has_contiguous_vectors(cx) {
        panel.copy_vectors(cx, product.rhs, column, valid)?;
    } else {
        panel.copy_elements(cx, product.rhs, column, valid)?;
    }
    Ok(())
}

/// Emitter for a panel.
struct Panel<'p> {
    plan: Tiles<'p>,
    /// Address of the panel.
    to: ValueId,
    /// Size of a row in bytes.
    row: i64,
    lanes: i64,
    scalar: ScalarType,
    /// Size of an element in bytes.
    size: i64,
}

impl Panel<'_> {
    fn vector_alignment(&self) -> u32 {
        (self.lanes * self.size).min(64) as u32
    }

    /// Writes zeros from a column on, in all rows.
    fn fill(&self, cx: &mut KernelContext<'_>, first: i64) -> Result<()> {
        let nothing = zero(cx, Type::vector(self.scalar, self.lanes as u32));
        cx.for_range(0, self.plan.dot.shape.k, 1, |cx, row| {
            let row = cx.scalar_value(&row)?;
            let to = cx.offset(self.to, row, self.row);
            for column in (first..self.plan.tiled.tile.columns()).step_by(self.lanes as usize) {
                let to = cx.offset_bytes(to, column * self.size);
                cx.store(nothing, to, self.vector_alignment());
            }
            Ok(())
        })
    }

    /// Copies rows that are contiguous.
    fn copy_rows(&self, cx: &mut KernelContext<'_>, from: ValueId, valid: i64) -> Result<()> {
        let stride = self.plan.dot.dims.rhs_k_stride() * self.size;
        let vectors = valid - valid % self.lanes;
        let k = self.plan.dot.shape.k;
        let (begin, end) = (cx.index(0), self.plan.needed_summands(cx)?.unwrap_or_else(|| cx.index(k)));
        cx.for_dynamic(begin, end, k, &[], |cx, row, _| {
            let from = cx.offset(from, row, stride);
            let to = cx.offset(self.to, row, self.row);
            let copy = |b: &mut FunctionBuilder, column: i64, lanes: i64| {
                let ty = Type::vector(self.scalar, lanes as u32);
                let (from, to) =
                    (b.offset_bytes(from, column * self.size), b.offset_bytes(to, column * self.size));
                let value = b.load(ty, from, self.size as u32);
                b.store(
                    value,
                    to,
                    if lanes == self.lanes { self.vector_alignment() } else { self.size as u32 },
                );
            };
            (0..vectors).step_by(self.lanes as usize).for_each(|column| copy(cx, column, self.lanes));
            let mut column = vectors;
            while column < valid {
                let lanes = 1 << (valid - column).ilog2();
                copy(cx, column, lanes);
                column += lanes;
            }
            Ok(Vec::new())
        })
        .map(|_| ())
    }

    /// True if the program has open sizes, and the columns of each vector are contiguous, but not
    /// all columns are.
    fn has_contiguous_vectors(&self, cx: &KernelContext<'_>) -> bool {
        let (dot, lanes) = (self.plan.dot, self.lanes);
        let inner = dot.dims.columns.last();
        has_open_sizes(cx)
            && dot.rhs_type == dot.accumulator
            && dot.dims.rhs_k.len() == 1
            && inner.is_some_and(|columns| columns.stride == 1 && columns.size % lanes == 0)
    }

    /// Copies vectors of columns that are contiguous.
    fn copy_vectors(
        &self,
        cx: &mut KernelContext<'_>,
        from: ValueId,
        first: &Index,
        valid: i64,
    ) -> Result<()> {
        let (dot, stride) = (self.plan.dot, self.plan.dot.dims.rhs_k_stride() * self.size);
        let mut sources = Vec::new();
        for column in (0..valid).step_by(self.lanes as usize) {
            let at = first.plus_constant(column);
            sources.push((column, batch_pointer(cx, from, &at, &dot.dims.columns, dot.rhs_type)?));
        }
        let k = dot.shape.k;
        let (begin, end) = (cx.index(0), self.plan.needed_summands(cx)?.unwrap_or_else(|| cx.index(k)));
        cx.for_dynamic(begin, end, k, &[], |cx, row, _| {
            let to = cx.offset(self.to, row, self.row);
            for &(column, from) in &sources {
                let (from, to) = (cx.offset(from, row, stride), cx.offset_bytes(to, column * self.size));
                let value = cx.load(Type::vector(self.scalar, self.lanes as u32), from, self.size as u32);
                cx.store(value, to, self.vector_alignment());
            }
            Ok(Vec::new())
        })
        .map(|_| ())
    }

    /// Copies columns that are contiguous. Squares are loaded by columns and transposed.
    fn transpose(&self, cx: &mut KernelContext<'_>, from: ValueId, valid: i64) -> Result<()> {
        let stride = self.plan.dot.dims.rhs_n_stride() * self.size;
        let (k, lanes) = (self.plan.dot.shape.k, self.lanes);
        let whole = k - k % lanes;
        let vectors = valid - valid % lanes;
        let ty = Type::vector(self.scalar, lanes as u32);
        cx.for_range(0, vectors, lanes, |cx, column| {
            let column = cx.scalar_value(&column)?;
            let from = cx.offset(from, column, stride);
            let to = cx.offset(self.to, column, self.size);
            for_summands(cx, self.plan, (0, whole), lanes, |cx, row| {
                let from = cx.offset(from, row, self.size);
                let to = cx.offset(to, row, self.row);
                let columns: Vec<ValueId> = (0..lanes)
                    .map(|column| {
                        let from = cx.offset_bytes(from, column * stride);
                        cx.load(ty, from, self.size as u32)
                    })
                    .collect();
                for (row, value) in transpose(cx, &columns).into_iter().enumerate() {
                    let to = cx.offset_bytes(to, row as i64 * self.row);
                    cx.store(value, to, self.vector_alignment());
                }
                Ok(())
            })?;
            for_summands(cx, self.plan, (whole, k), 1, |cx, row| {
                let from = cx.offset(from, row, self.size);
                let to = cx.offset(to, row, self.row);
                for column in 0..lanes {
                    self.copy_element(cx, from, column * stride, to, column * self.size);
                }
                Ok(())
            })
        })?;
        cx.for_range(vectors, valid, 1, |cx, column| {
            let column = cx.scalar_value(&column)?;
            let from = cx.offset(from, column, stride);
            let to = cx.offset(self.to, column, self.size);
            for_summands(cx, self.plan, (0, k), 1, |cx, row| {
                let (from, to) = (cx.offset(from, row, self.size), cx.offset(to, row, self.row));
                self.copy_element(cx, from, 0, to, 0);
                Ok(())
            })
        })
    }

    fn copy_element(&self, b: &mut FunctionBuilder, from: ValueId, skip: i64, to: ValueId, onward: i64) {
        let (from, to) = (b.offset_bytes(from, skip), b.offset_bytes(to, onward));
        let value = b.load(Type::scalar(self.scalar), from, self.size as u32);
        b.store(value, to, self.size as u32);
    }

    /// Copies element by element, for any dimensions and types.
    fn copy_elements(
        &self,
        cx: &mut KernelContext<'_>,
        from: ValueId,
        first: &Index,
        valid: i64,
    ) -> Result<()> {
        let plan = self.plan;
        let element_size = plan.dot.rhs_type.byte_size() as i64;
        let (start, limit) = (Index::default(), plan.needed_summands(cx)?);
        let summands = Walk { extents: &plan.dot.dims.rhs_k, element_size, limit };
        cx.for_range(0, valid, 1, |cx, column| {
            let to = cx.scalar_value(&column)?;
            let to = cx.offset(self.to, to, self.size);
            let from =
                batch_pointer(cx, from, &first.plus(&column), &plan.dot.dims.columns, plan.dot.rhs_type)?;
            walk(cx, summands, from, &start, &mut |b, from, k| {
                let to = b.offset(to, k, self.row);
                let element = load(b, plan.dot, plan.dot.rhs_type, from)?;
                b.store(element.real(), to, alignment(plan.dot.accumulator));
                Ok(())
            })
        })
    }
}
