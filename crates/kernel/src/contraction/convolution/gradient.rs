//! The gradient of a convolution's kernel: products of input pixels with pixels of the result's
//! gradient. They are summed in registers over a block of pixels, and in scratch over the blocks.

use super::count::Count;
use super::walk::repeat;
use super::{PanelBody, finish};
use crate::context::KernelContext;
use crate::contraction::tile::{
    Columns, Reading, last_columns, multiply_add, scalar_type, whole_columns, zero,
};
use crate::element::Element;
use crate::index::{Facts, Index, Position};
use nest::{FunctionBuilder, Predicate, ScalarType, Type, ValueId};
use plan::{ConvolutionDims, ConvolutionPlan, GradientPlan, GradientSize, SpatialDimension, Strip, Tile};
use support::{Error, Result};

/// Emits the loops.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &ConvolutionPlan,
    gradient: &GradientPlan,
) -> Result<()> {
    let scalar = scalar_type(plan.accumulator)?;
    let nest = Nest {
        plan,
        gradient,
        dims: &plan.dims,
        scalar,
        size: scalar.byte_size() as i64,
        extents: Extents::new(&plan.dims)?,
        input: cx.operand(plan.input_operand)?.pointer,
        factor: cx.operand(plan.kernel_operand)?.pointer,
        table: *cx.packed().last().ok_or_else(|| Error::internal("missing table of strips"))?,
    };
    cx.for_tasks(|cx, task| {
        let task = cx.scalar_value(&task)?;
        let rows = nest.rows(cx, task);
        let scratch = cx.worker_scratch();
        let bytes = cx.sub(rows.end, rows.begin);
        let bytes = cx.mul_constant(bytes, nest.row_bytes());
        let nothing = cx.integer(Type::scalar(ScalarType::I8), 0);
        cx.fill_bytes(scratch, nothing, bytes);
        let skipped = cx.mul_constant(rows.begin, -nest.row_bytes());
        nest.blocks(cx, task, Scratch { begin: scratch, skipped })?;
        nest.finish(cx, rows, scratch)
    })
}

/// Pixels of the arrays.
struct Extents {
    /// Input pixels of an image, in each dimension.
    input: [i64; 3],
    /// Gradient pixels.
    factor: [i64; 3],
    /// Distance in input pixels between gradient pixels.
    dilations: [i64; 3],
}

impl Extents {
    fn new(dims: &ConvolutionDims) -> Result<Self> {
        let missing = 3usize
            .checked_sub(dims.spatial.len())
            .ok_or_else(|| Error::internal("expected at most three spatial dimensions in a gradient"))?;
        let field = |f: fn(&SpatialDimension) -> i64| {
            let mut all = [1; 3];
            for (d, spatial) in dims.spatial.iter().enumerate() {
                all[missing + d] = f(spatial);
            }
            all
        };
        Ok(Self {
            input: field(|d| d.input),
            factor: field(|d| d.window.size),
            dilations: field(|d| d.window.window_dilation),
        })
    }

    /// Returns the distance in pixels between positions of a dimension.
    fn unit(extents: [i64; 3], d: usize) -> i64 {
        extents[d + 1..].iter().product()
    }
}

/// The loops of one gradient.
struct Nest<'p> {
    plan: &'p ConvolutionPlan,
    gradient: &'p GradientPlan,
    dims: &'p ConvolutionDims,
    scalar: ScalarType,
    /// Size of an element in bytes.
    size: i64,
    extents: Extents,
    input: ValueId,
    factor: ValueId,
    table: ValueId,
}

/// Rows of the scratch, from `begin` up to, but not including, `end`.
#[derive(Clone, Copy)]
struct Rows {
    begin: ValueId,
    end: ValueId,
}

/// The memory of a task's rows, addressed as if it contained all rows.
#[derive(Clone, Copy)]
struct Scratch {
    begin: ValueId,
    /// Distance in bytes from `begin` to the place of the very first row.
    skipped: ValueId,
}

/// The first image and line of a block.
#[derive(Clone, Copy)]
struct Corner {
    image: ValueId,
    line: ValueId,
}

/// A register tile: rows of sums, and the vectors of each.
#[derive(Clone, Copy)]
pub(super) struct RegisterTile<'p> {
    pub(super) rows: i64,
    pub(super) parts: &'p [Columns],
}

/// Pixels of a strip that are within a block.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Addresses of the first pixels of both arrays, at the first row and column.
    input: ValueId,
    factor: ValueId,
    /// Numbers of images, planes, lines, and columns.
    counts: [Count; 4],
}

impl Nest<'_> {
    /// Returns the distance in bytes between rows of the scratch.
    fn row_bytes(&self) -> i64 {
        self.gradient.scratch_row(self.dims) * self.size
    }

    /// Returns the rows of a task.
    fn rows(&self, b: &mut FunctionBuilder, task: ValueId) -> Rows {
        if self.gradient.tasks() == 1 {
            return Rows { begin: b.index(0), end: b.index(self.gradient.most_rows()) };
        }
        let at = b.offset(self.table, task, 8);
        let next = b.offset_bytes(at, 8);
        Rows { begin: b.load(Type::I64, at, 8), end: b.load(Type::I64, next, 8) }
    }

    /// Sums one block after another.
    fn blocks(&self, cx: &mut KernelContext<'_>, task: ValueId, scratch: Scratch) -> Result<()> {
        let plan = self.gradient;
        let lines = self.extents.factor[1];
        cx.for_range(0, self.dims.inputs, plan.images, |cx, image| {
            let image = cx.scalar_value(&image)?;
            cx.for_range(0, lines, plan.lines, |cx, line| {
                let line = cx.scalar_value(&line)?;
                for (number, size) in plan.sizes.iter().enumerate() {
                    let (first, starts) = plan.table_positions(number);
                    let first = cx.offset_bytes(self.table, first as i64 * 8);
                    let start = cx.offset_bytes(self.table, starts as i64 * 8);
                    let start = cx.offset(start, task, 8);
                    let next = cx.offset_bytes(start, 8);
                    let (begin, end) = (cx.load(Type::I64, start, 8), cx.load(Type::I64, next, 8));
                    cx.for_dynamic(begin, end, size.strips.len() as i64, &[], |cx, number, _| {
                        let strip = ListedStrip { size, first, number };
                        self.strip(cx, &strip, Corner { image, line }, scratch).map(|()| Vec::new())
                    })?;
                }
                Ok(())
            })
        })
    }

    /// Emits the tiles of a strip, for those of its pixels that are within the block.
    fn strip(
        &self,
        cx: &mut KernelContext<'_>,
        strip: &ListedStrip<'_>,
        corner: Corner,
        scratch: Scratch,
    ) -> Result<()> {
        let Corner { image, line } = corner;
        let field = |cx: &mut KernelContext<'_>, field| strip.field(cx, field);
        let (input, factor) = (field(cx, 0)?, field(cx, 1)?);
        let first_line = field(cx, 2)?;
        let counts = [field(cx, 3)?, field(cx, 4)?, field(cx, 5)?];
        let (row, tiles) = (field(cx, 6)?, field(cx, 7)?);
        let Extents { input: input_extents, factor: factor_extents, dilations } = self.extents;
        let (features, outputs) = (self.dims.batch, self.dims.outputs);
        // Lines of the strip that are within the block.
        let (first, lines) = self.cut(cx, first_line.value, counts[1], line);
        let images = self.images(cx, image);
        let skipped_lines = cx.sub(first, first_line.value);
        let at = |b: &mut FunctionBuilder, base, of_image: i64, first, line_step: i64, size: i64| {
            let at = b.offset(base, image, of_image * size);
            let at = b.offset(at, first, size);
            b.offset(at, skipped_lines, line_step * size)
        };
        let line_step = dilations[1] * Extents::unit(input_extents, 1) * features;
        let image_size = input_extents.iter().product::<i64>() * features;
        let input = at(cx, self.input, image_size, input.value, line_step, self.size);
        let factor = cx.mul_constant(factor.value, outputs);
        let image_size = factor_extents.iter().product::<i64>() * outputs;
        let factor =
            at(cx, self.factor, image_size, factor, Extents::unit(factor_extents, 1) * outputs, self.size);
        let block = Block { input, factor, counts: [images, counts[0], lines, counts[2]] };
        let rows = i64::from(strip.size.rows);
        let scratch = cx.offset(scratch.begin, scratch.skipped, 1);
        let scratch = cx.offset(scratch, row.value, self.row_bytes());
        repeat(cx, tiles, &[], |cx, tile, _| {
            let block = Block { input: cx.offset(block.input, tile, rows * self.size), ..block };
            let scratch = cx.offset(scratch, tile, rows * self.row_bytes());
            self.panels(cx, &mut |cx, column, parts| {
                let column = cx.scalar_value(column)?;
                let block = Block { factor: cx.offset(block.factor, column, self.size), ..block };
                let scratch = cx.offset(scratch, column, self.size);
                self.tile(cx, RegisterTile { rows, parts }, block, scratch)
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Returns the lines of a strip that are within the block that begins at `line`: the first one,
    /// and their number.
    fn cut(&self, b: &mut FunctionBuilder, first: ValueId, count: Count, line: ValueId) -> (ValueId, Count) {
        if self.gradient.lines >= self.extents.factor[1] {
            return (first, count);
        }
        let end = b.add(first, count.value);
        let block_end = b.add_constant(line, self.gradient.lines);
        let begin = choose(b, Predicate::Greater, line, first);
        let end = choose(b, Predicate::Less, block_end, end);
        (begin, Count { value: b.sub(end, begin), most: count.most.min(self.gradient.lines) })
    }

    /// Returns the number of images in the block that begins with an image.
    fn images(&self, b: &mut FunctionBuilder, image: ValueId) -> Count {
        let (all, block_images) = (self.dims.inputs, self.gradient.images);
        if all % block_images == 0 {
            return Count::constant(b, block_images);
        }
        let all = b.index(all);
        let left = b.sub(all, image);
        let block_images_value = b.index(block_images);
        Count { value: choose(b, Predicate::Less, left, block_images_value), most: block_images }
    }

    /// Runs `body` for all panels of output features, with the first feature and the vectors.
    fn panels(&self, cx: &mut KernelContext<'_>, body: PanelBody<'_>) -> Result<()> {
        let is_wide = i64::from(self.gradient.tile.lanes) * self.size >= 32;
        let reading = if is_wide { Reading::Masked } else { Reading::Narrowing };
        for_panels(cx, self.gradient.tile, self.dims.outputs, reading, body)
    }

    /// Adds the sums of a tile over the pixels of a block to the scratch.
    fn tile(
        &self,
        cx: &mut KernelContext<'_>,
        tile: RegisterTile<'_>,
        block: Block,
        scratch: ValueId,
    ) -> Result<()> {
        let RegisterTile { rows, parts } = tile;
        let types: Vec<Type> = parts.iter().map(|part| Type::vector(self.scalar, part.lanes)).collect();
        let mut sums = Vec::new();
        for _ in 0..rows {
            sums.extend(types.iter().map(|&ty| zero(cx, ty)));
        }
        let sums = self.pixels(cx, 0, tile, block, &sums)?;
        for (number, sum) in sums.into_iter().enumerate() {
            let (row, part) = (number / parts.len(), parts[number % parts.len()]);
            let at = cx.offset_bytes(scratch, row as i64 * self.row_bytes() + part.offset * self.size);
            let alignment = self.size as u32;
            let ty = cx.ty(sum);
            let before = cx.load(ty, at, alignment);
            let sum = cx.add(before, sum);
            cx.store(sum, at, alignment);
        }
        Ok(())
    }

    /// Emits loops over images and pixels.
    fn pixels(
        &self,
        cx: &mut KernelContext<'_>,
        level: usize,
        tile: RegisterTile<'_>,
        block: Block,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let (features, outputs) = (self.dims.batch, self.dims.outputs);
        let Some(&count) = block.counts.get(level) else {
            return self.accumulate(cx, tile, block, sums);
        };
        let (input, factor) = match level.checked_sub(1) {
            None => (self.extents.input.iter().product(), self.extents.factor.iter().product()),
            Some(d) => {
                let input = Extents::unit(self.extents.input, d) * self.extents.dilations[d];
                (input, Extents::unit(self.extents.factor, d))
            }
        };
        let (input, factor): (i64, i64) = (input, factor);
        repeat(cx, count, sums, |cx, index, sums| {
            let block = Block {
                input: cx.offset(block.input, index, input * features * self.size),
                factor: cx.offset(block.factor, index, factor * outputs * self.size),
                ..block
            };
            self.pixels(cx, level + 1, tile, block, sums)
        })
    }

    /// Adds the products of a pixel.
    fn accumulate(
        &self,
        b: &mut FunctionBuilder,
        tile: RegisterTile<'_>,
        block: Block,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let RegisterTile { rows, parts } = tile;
        let alignment = self.size as u32;
        let mut vectors = Vec::new();
        for part in parts {
            let at = b.offset_bytes(block.factor, part.offset * self.size);
            vectors.push(if part.valid == part.lanes {
                b.load(Type::vector(self.scalar, part.lanes), at, alignment)
            } else {
                part.load_masked(b, self.scalar, at, alignment)
            });
        }
        let mut next = Vec::with_capacity(sums.len());
        for row in 0..rows {
            let at = b.offset_bytes(block.input, row * self.size);
            let element = b.load(Type::scalar(self.scalar), at, alignment);
            for (k, (part, &vector)) in parts.iter().zip(&vectors).enumerate() {
                let element = b.splat(element, part.lanes);
                next.push(multiply_add(b, element, vector, sums[row as usize * parts.len() + k]));
            }
        }
        Ok(next)
    }

    /// Passes the sums of a task's rows to the epilogue.
    fn finish(&self, cx: &mut KernelContext<'_>, rows: Rows, scratch: ValueId) -> Result<()> {
        let Rows { begin, end } = rows;
        let outputs = self.dims.outputs;
        let all = self.dims.pixels() * self.dims.batch;
        cx.for_dynamic(begin, end, all, &[], |cx, row, _| {
            let done = cx.sub(row, begin);
            let from = cx.offset(scratch, done, self.row_bytes());
            self.panels(cx, &mut |cx, column, parts| {
                let first = cx.scalar_value(column)?;
                let from = cx.offset(from, first, self.size);
                let at = Index::scalar(row).times(outputs).plus(column);
                for part in parts {
                    let ty = Type::vector(self.scalar, part.lanes);
                    let pointer = cx.offset_bytes(from, part.offset * self.size);
                    let sum = cx.load(ty, pointer, self.size as u32);
                    part.pieces(cx, sum, |cx, offset, lanes, value| {
                        let at = at.plus_constant(offset).plus(&Index::lanes(i64::from(lanes > 1)));
                        finish(cx, self.plan, &Position::Linear(at), lanes, Element::Real(value))
                    })?;
                }
                Ok(())
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    }
}

/// A strip in the list of strips of the same size.
struct ListedStrip<'p> {
    size: &'p GradientSize,
    /// Address of the fields of the list's first strip in the table.
    first: ValueId,
    /// Number of the strip in the list.
    number: ValueId,
}

impl ListedStrip<'_> {
    /// Returns a field of the strip, as in [`Strip::fields`].
    fn field(&self, cx: &mut KernelContext<'_>, field: usize) -> Result<Count> {
        let (min, most) = self.size.range(field);
        if min == most {
            return Ok(Count::constant(cx, most));
        }
        let at = cx.offset(self.first, self.number, Strip::FIELDS as i64 * 8);
        let at = cx.offset_bytes(at, field as i64 * 8);
        let value = cx.load(Type::I64, at, 8);
        cx.learn(value, Facts::range(min, most));
        Ok(Count { value, most })
    }
}

/// Returns `x` if the predicate holds for `x` and `y`, or else `y`.
fn choose(b: &mut FunctionBuilder, predicate: Predicate, x: ValueId, y: ValueId) -> ValueId {
    let holds = b.compare(predicate, x, y);
    b.select(holds, x, y)
}

/// Runs `body` for all panels of `features` features, with the first feature and the vectors of a
/// tile. The last panel may be narrower.
pub(super) fn for_panels(
    cx: &mut KernelContext<'_>,
    tile: Tile,
    features: i64,
    reading: Reading,
    body: PanelBody<'_>,
) -> Result<()> {
    let columns = tile.columns();
    let full = whole_columns(tile.vectors, tile.lanes);
    cx.for_range(0, features / columns * columns, columns, |cx, column| body(cx, &column, &full))?;
    let rest = features % columns;
    if rest == 0 {
        return Ok(());
    }
    body(cx, &Index::constant(features - rest), &last_columns(rest, tile.lanes, reading))
}
