//! Gradients of kernels by transformed patches, as [`plan::WinogradGradientPlan`] describes. For
//! each block of patches and each row of frequencies, input and gradient are transformed into the
//! worker's scratch, and their products are added to the sums there. Finally, the sums are
//! transformed to taps, which are passed to the epilogue.

use super::super::count::Count;
use super::super::gradient::{RegisterTile, for_panels};
use super::super::walk::repeat;
use super::super::{PanelBody, finish, load};
use super::image::{Image, Place, in_vectors};
use super::transform;
use crate::context::KernelContext;
use crate::context::parameters::TaskRange;
use crate::context::tasks::Span;
use crate::contraction::tile::{Columns, Reading, multiply_add, scalar_type, zero};
use crate::element::Element;
use crate::index::{Facts, Index, Position};
use nest::{FunctionBuilder, Predicate, ScalarType, Type, ValueId};
use plan::{ConvolutionDims, ConvolutionPlan, GradientTransform, WinogradGradientPlan};
use shape::PrimitiveType;
use support::{Error, Result};

/// Emits the loops: those for all tasks together, used if the plan has them and one call runs all
/// tasks, and those of each task.
pub(in super::super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &ConvolutionPlan,
    gradient: &WinogradGradientPlan,
) -> Result<()> {
    let mut tasks = cx.tasks();
    if let (Some(together), Some(range)) = (gradient.together.as_deref(), tasks) {
        let (first, end) = (cx.index(0), cx.index(gradient.tasks(&plan.dims)));
        let (begins, ends) =
            (cx.compare(Predicate::Equal, range.begin, first), cx.compare(Predicate::Equal, range.end, end));
        let are_all = cx.and(begins, ends);
        // A loop that runs once or never.
        let once = cx.index(1);
        let times = cx.select(are_all, once, first);
        cx.for_dynamic(first, times, 1, &[], |cx, _, _| {
            task(cx, plan, together, [Index::default(), Index::default()])?;
            Ok(Vec::new())
        })?;
        let begin = cx.select(are_all, range.end, range.begin);
        tasks = Some(TaskRange { begin, ..range });
    }
    let each = |cx: &mut KernelContext<'_>, number: Index| {
        let (part, other) = cx.div_rem(&number, gradient.parts(&plan.dims)[1])?;
        let first = [part.times(gradient.features[0]), other.times(gradient.features[1])];
        task(cx, plan, gradient, first)
    };
    cx.with_tasks(tasks, |cx| cx.for_tasks(each))
}

/// Emits the loops of a task, given its first input feature and its first output feature.
fn task(
    cx: &mut KernelContext<'_>,
    plan: &ConvolutionPlan,
    gradient: &WinogradGradientPlan,
    first: [Index; 2],
) -> Result<()> {
    let scalar = scalar_type(plan.accumulator)?;
    let size = scalar.byte_size() as i64;
    let [input, factor] =
        [cx.operand(plan.input_operand)?, cx.operand(plan.kernel_operand)?].map(Clone::clone);
    let [inputs, outputs] = [cx.scalar_value(&first[0])?, cx.scalar_value(&first[1])?];
    let nest = Nest {
        plan,
        gradient,
        dims: &plan.dims,
        scalar,
        size,
        first,
        input: cx.offset(input.pointer, inputs, size),
        factor: cx.offset(factor.pointer, outputs, size),
        types: [input.shape.element_type, factor.shape.element_type],
        scratch: cx.worker_scratch(),
    };
    nest.prepare(cx);
    cx.for_range(0, gradient.blocks, 1, |cx, number| {
        let block = nest.block(cx, &number)?;
        (0..GradientTransform::SIZE).try_for_each(|row| {
            nest.transform(cx, block, row)?;
            nest.products(cx, block, row)
        })
    })?;
    nest.taps(cx)
}

/// The loops of a task.
struct Nest<'p> {
    plan: &'p ConvolutionPlan,
    gradient: &'p WinogradGradientPlan,
    dims: &'p ConvolutionDims,
    scalar: ScalarType,
    /// Size of an element in bytes.
    size: i64,
    /// First input feature and first output feature of the task.
    first: [Index; 2],
    /// Addresses of both arrays, at the task's first feature.
    input: ValueId,
    factor: ValueId,
    types: [PrimitiveType; 2],
    /// Address of the worker's scratch.
    scratch: ValueId,
}

/// A range of patches. `end` is excluded.
#[derive(Clone, Copy)]
struct Block {
    begin: ValueId,
    end: ValueId,
}

/// Addresses at the start of a register tile: in the transformed input, the transformed gradient,
/// and the sums.
#[derive(Clone, Copy)]
struct Pointers {
    input: ValueId,
    factor: ValueId,
    sums: ValueId,
}

/// An array whose patches are transformed.
struct Source {
    image: Image,
    /// Number of features per task.
    features: i64,
    element_type: PrimitiveType,
    /// Number of pixels of a patch in each dimension.
    pixels: i64,
    matrix: &'static [&'static [f64]],
    /// Destination of the frequencies, in bytes: the offset in the scratch, the distance between
    /// patches, and the distance between frequencies.
    target: [i64; 3],
    /// True if patches may extend beyond the images.
    may_leave: bool,
}

impl Nest<'_> {
    /// Clears the padding, the sums, and the elements after the last features.
    fn prepare(&self, b: &mut FunctionBuilder) {
        let scratch = self.gradient.scratch;
        let [inputs, outputs] = self.gradient.features;
        let mut clear = |from: i64, bytes: i64| {
            let (zero, bytes) = (b.integer(Type::scalar(ScalarType::I8), 0), b.index(bytes));
            let first = b.offset_bytes(self.scratch, from);
            b.fill_bytes(first, zero, bytes);
        };
        clear(0, inputs.max(outputs) * self.size);
        if outputs * self.size != scratch.gradient_row {
            clear(scratch.gradient, GradientTransform::SIZE * scratch.gradient_frequency);
        }
        clear(scratch.sums, GradientTransform::FREQUENCIES * scratch.sums_frequency);
    }

    /// Returns the patches of a block.
    fn block(&self, cx: &mut KernelContext<'_>, number: &Index) -> Result<Block> {
        let all = self.gradient.all_patches(self.dims);
        let number = cx.scalar_value(number)?;
        if all % self.gradient.blocks == 0 {
            let begin = cx.mul_constant(number, self.gradient.block);
            return Ok(Block { begin, end: cx.add_constant(begin, self.gradient.block) });
        }
        match cx.span(number, self.gradient.blocks, all) {
            Span::Part { begin, end, .. } => Ok(Block { begin, end }),
            Span::All(_) => Err(Error::internal("expected a part of the patches, got all of them")),
        }
    }

    /// Returns the number of patches in a block.
    fn count(&self, b: &mut FunctionBuilder, block: Block) -> Count {
        let most = self.gradient.block;
        if self.gradient.all_patches(self.dims) % self.gradient.blocks == 0 {
            return Count::constant(b, most);
        }
        Count { value: b.sub(block.end, block.begin), most }
    }

    /// Returns both arrays.
    fn sources(&self) -> [Source; 2] {
        let (scratch, spatial) = (self.gradient.scratch, &self.dims.spatial);
        let [inputs, outputs] = self.gradient.features;
        let (size, step) = (GradientTransform::SIZE, GradientTransform::PIXELS);
        let low = [0, 1].map(|d| spatial[d].window.padding_low);
        // Patches of `pixels` pixels per side move over an image, starting at `low` pixels before
        // it.
        let source = |array: usize, extents: [i64; 2], low: [i64; 2], pixels: i64, matrix, target| {
            let last = [0, 1].map(|d| (self.gradient.patches[d] - 1) * step - low[d]);
            let all = [self.dims.batch, self.dims.outputs][array];
            let image = Image {
                pointer: [self.input, self.factor][array],
                extents,
                pixel_bytes: all * self.types[array].byte_size() as i64,
                first: [0, 1].map(|d| (-low[d], last[d])),
                zeros: self.scratch,
            };
            Source {
                image,
                features: [inputs, outputs][array],
                element_type: self.types[array],
                pixels,
                matrix,
                target,
                may_leave: (0..2).any(|d| low[d] > 0 || last[d] + pixels > extents[d]),
            }
        };
        let input = [scratch.input, scratch.input_row, scratch.input_frequency];
        let factor = [scratch.gradient, scratch.gradient_row, scratch.gradient_frequency];
        [
            source(0, [0, 1].map(|d| spatial[d].input), low, size, GradientTransform::INPUT, input),
            source(
                1,
                [0, 1].map(|d| spatial[d].window.size),
                [0; 2],
                step,
                GradientTransform::GRADIENT,
                factor,
            ),
        ]
    }

    /// Computes a row of frequencies of both arrays for the pixels of a block.
    fn transform(&self, cx: &mut KernelContext<'_>, block: Block, frequencies: i64) -> Result<()> {
        let [lines, columns] = self.gradient.patches;
        let limit = self.gradient.all_patches(self.dims);
        let sources = self.sources();
        cx.for_dynamic(block.begin, block.end, limit, &[], |cx, number, _| {
            let row = cx.sub(number, block.begin);
            cx.learn(number, Facts::range(0, limit - 1));
            let (rest, column) = cx.div_rem(&Index::scalar(number), columns)?;
            let (image, line) = cx.div_rem(&rest, lines)?;
            let image = cx.scalar_value(&image)?;
            let first = [line, column].map(|at| at.times(GradientTransform::PIXELS));
            let first = [cx.scalar_value(&first[0])?, cx.scalar_value(&first[1])?];
            // First line and column of the input, which may be outside.
            let low = [0, 1].map(|d| cx.add_constant(first[d], -self.dims.spatial[d].window.padding_low));
            for (source, first) in sources.iter().zip([low, first]) {
                self.patch(cx, source, Place { image, first }, frequencies, row)?;
            }
            Ok(Vec::new())
        })
        .map(|_| ())
    }

    /// Transforms a patch of an array: writes a row of its frequencies to a row of the block.
    fn patch(
        &self,
        cx: &mut KernelContext<'_>,
        source: &Source,
        place: Place,
        frequencies: i64,
        row: ValueId,
    ) -> Result<()> {
        if !source.may_leave {
            return self.patch_inside(cx, source, place, frequencies, row, true);
        }
        let is_inside = source.image.has(cx, place.first, source.pixels);
        cx.when(is_inside, |cx| self.patch_inside(cx, source, place, frequencies, row, true))?;
        let no = cx.integer(Type::scalar(ScalarType::Bool), 0);
        let is_outside = cx.compare(Predicate::Equal, is_inside, no);
        cx.when(is_outside, |cx| self.patch_inside(cx, source, place, frequencies, row, false))
    }

    /// Transforms a patch that is known to be inside the image, or known not to be.
    fn patch_inside(
        &self,
        cx: &mut KernelContext<'_>,
        source: &Source,
        place: Place,
        frequencies: i64,
        row: ValueId,
        is_inside: bool,
    ) -> Result<()> {
        let n = source.pixels as usize;
        let [target, target_row, frequency] = source.target;
        let target = cx.offset_bytes(self.scratch, target);
        let target = cx.offset(target, row, target_row);
        let pixels = source.image.pixels(cx, place, source.pixels, is_inside);
        let element = source.element_type.byte_size() as i64;
        in_vectors(cx, source.features, self.size, &mut |b, channel, lanes| {
            let target = b.offset(target, channel, self.size);
            transform::row(
                b,
                source.matrix,
                frequencies as usize,
                &mut |b, row, column| {
                    let pointer = b.offset(pixels[row * n + column], channel, element);
                    Ok(load(b, self.plan, source.element_type, pointer, lanes)?.real())
                },
                &mut |b, _, column, value| {
                    let pointer = b.offset_bytes(target, column as i64 * frequency);
                    b.store(value, pointer, self.size as u32);
                    Ok(())
                },
            )
        })
    }

    /// Runs `body` for all panels of the task's output features, with the first feature and the
    /// vectors.
    fn panels(&self, cx: &mut KernelContext<'_>, body: PanelBody<'_>) -> Result<()> {
        for_panels(cx, self.gradient.tile, self.gradient.features[1], Reading::Padded, body)
    }

    /// Adds the products of a block at a row of frequencies to the sums.
    fn products(&self, cx: &mut KernelContext<'_>, block: Block, frequencies: i64) -> Result<()> {
        let scratch = self.gradient.scratch;
        let count = self.count(cx, block);
        let sums = scratch.sums + frequencies * GradientTransform::SIZE * scratch.sums_frequency;
        let [input, factor, sums] =
            [scratch.input, scratch.gradient, sums].map(|at| cx.offset_bytes(self.scratch, at));
        cx.for_range(0, GradientTransform::SIZE, 1, |cx, frequency| {
            let frequency = cx.scalar_value(&frequency)?;
            let input = cx.offset(input, frequency, scratch.input_frequency);
            let factor = cx.offset(factor, frequency, scratch.gradient_frequency);
            let sums = cx.offset(sums, frequency, scratch.sums_frequency);
            self.panels(cx, &mut |cx, column, parts| {
                let column = cx.scalar_value(column)?;
                let (factor, sums) =
                    (cx.offset(factor, column, self.size), cx.offset(sums, column, self.size));
                let mut first = 0;
                for &(rows, tiles) in &self.gradient.rows {
                    let input = cx.offset_bytes(input, first * self.size);
                    let sums = cx.offset_bytes(sums, first * scratch.sums_row);
                    cx.for_range(0, tiles, 1, |cx, tile| {
                        let tile = cx.scalar_value(&tile)?;
                        let input = cx.offset(input, tile, rows * self.size);
                        let sums = cx.offset(sums, tile, rows * scratch.sums_row);
                        self.tile(cx, RegisterTile { rows, parts }, Pointers { input, factor, sums }, count)
                    })?;
                    first += rows * tiles;
                }
                Ok(())
            })
        })
    }

    /// Adds the products of `count` patches to the sums of a register tile.
    fn tile(
        &self,
        cx: &mut KernelContext<'_>,
        tile: RegisterTile<'_>,
        pointers: Pointers,
        count: Count,
    ) -> Result<()> {
        let RegisterTile { rows, parts } = tile;
        let Pointers { input, factor, sums: target } = pointers;
        let scratch = self.gradient.scratch;
        let types: Vec<Type> = parts.iter().map(|part| Type::vector(self.scalar, part.lanes)).collect();
        let mut zeros = Vec::new();
        for _ in 0..rows {
            zeros.extend(types.iter().map(|&ty| zero(cx, ty)));
        }
        let sums = repeat(cx, count, &zeros, |b, patch, sums| {
            let input = b.offset(input, patch, scratch.input_row);
            let factor = b.offset(factor, patch, scratch.gradient_row);
            let mut vectors = Vec::new();
            for (part, &ty) in parts.iter().zip(&types) {
                let pointer = b.offset_bytes(factor, part.offset * self.size);
                vectors.push(b.load(ty, pointer, self.alignment(*part)));
            }
            let mut next = Vec::with_capacity(sums.len());
            for row in 0..rows {
                let pointer = b.offset_bytes(input, row * self.size);
                let element = b.load(Type::scalar(self.scalar), pointer, self.size as u32);
                for (k, (part, &vector)) in parts.iter().zip(&vectors).enumerate() {
                    let element = b.splat(element, part.lanes);
                    next.push(multiply_add(b, element, vector, sums[row as usize * parts.len() + k]));
                }
            }
            Ok(next)
        })?;
        for (number, sum) in sums.into_iter().enumerate() {
            let (row, part) = (number / parts.len(), parts[number % parts.len()]);
            let at = row as i64 * scratch.sums_row + part.offset * self.size;
            let pointer = cx.offset_bytes(target, at);
            let ty = cx.ty(sum);
            let before = cx.load(ty, pointer, self.alignment(part));
            let sum = cx.add(before, sum);
            cx.store(sum, pointer, self.alignment(part));
        }
        Ok(())
    }

    /// Returns the alignment of a vector of the transformed gradient and of the sums.
    fn alignment(&self, part: Columns) -> u32 {
        (part.lanes * self.size as u32).min(64)
    }

    /// Transforms the sums to taps and passes these to the epilogue.
    fn taps(&self, cx: &mut KernelContext<'_>) -> Result<()> {
        let scratch = self.gradient.scratch;
        let sums = cx.offset_bytes(self.scratch, scratch.sums);
        cx.for_range(0, self.gradient.features[0], 1, |cx, row| {
            let number = cx.scalar_value(&row)?;
            let sums = cx.offset(sums, number, scratch.sums_row);
            let at = self.first[0].plus(&row).times(self.dims.outputs).plus(&self.first[1]);
            self.panels(cx, &mut |cx, column, parts| {
                let first = cx.scalar_value(column)?;
                let sums = cx.offset(sums, first, self.size);
                let at = at.plus(column);
                parts.iter().try_for_each(|&part| self.taps_of(cx, sums, &at, part))
            })
        })
    }

    /// Transforms a vector of sums to taps. The first tap belongs to element `at` of the result.
    fn taps_of(&self, cx: &mut KernelContext<'_>, sums: ValueId, at: &Index, part: Columns) -> Result<()> {
        let frequency = self.gradient.scratch.sums_frequency;
        let taps = transform::output(cx, GradientTransform::OUTPUT, &mut |b, row, column| {
            let number = row as i64 * GradientTransform::SIZE + column as i64;
            let pointer = b.offset_bytes(sums, number * frequency + part.offset * self.size);
            Ok(b.load(Type::vector(self.scalar, part.lanes), pointer, self.alignment(part)))
        })?;
        let distance = self.dims.batch * self.dims.outputs;
        for (tap, value) in taps.into_iter().flatten().enumerate() {
            let at = at.plus_constant(tap as i64 * distance);
            part.pieces(cx, value, |cx, offset, lanes, value| {
                let at = at.plus_constant(offset).plus(&Index::lanes(i64::from(lanes > 1)));
                finish(cx, self.plan, &Position::Linear(at), lanes, Element::Real(value))
            })?;
        }
        Ok(())
    }
}
