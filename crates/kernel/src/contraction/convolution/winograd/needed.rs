//! The patches of a run whose output ends at sizes that are known only then. They are numbered
//! without gaps, so that blocks have no patches that are not needed.

use super::{Block, Nest, Patch};
use crate::context::KernelContext;
use crate::context::limits::{greater, lesser};
use crate::context::tasks::Span;
use crate::contraction::tile;
use crate::index::{Facts, Index};
use hlo::analysis::Extent;
use nest::{BinaryOp, Predicate, Type, ValueId};
use plan::{ConvolutionDims, ConvolutionPlan, WinogradPlan};
use support::Result;

/// Numbers of patches in a run.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Lines and columns of patches per image, at least 1.
    patches: [ValueId; 2],
    all: ValueId,
    blocks: ValueId,
    /// Images, lines, and columns of the pixels with patches, and of those that are needed, if a
    /// mask hides the others.
    hidden: Option<[[ValueId; 3]; 2]>,
}

impl Run {
    /// Returns the numbers of a run, or `None` if all pixels of the output are always needed.
    pub(super) fn of(
        cx: &mut KernelContext<'_>,
        plan: &ConvolutionPlan,
        winograd: &WinogradPlan,
    ) -> Result<Option<Self>> {
        let dims: &ConvolutionDims = &plan.dims;
        let sizes = [dims.batch, dims.spatial[0].output, dims.spatial[1].output];
        let of = |cx: &KernelContext<'_>, needed: &[Option<Extent>]| {
            [0, 1, 2].map(|d| {
                let extent = needed.get(d).copied().flatten();
                extent.filter(|&extent| !cx.covers(extent, sizes[d]))
            })
        };
        let needed = of(cx, &cx.needed_for(cx.fusion().root, plan.hero));
        let shown = of(cx, &cx.needed(plan.hero));
        let extents = [0, 1, 2].map(|d| shown[d].or(needed[d]));
        if extents.iter().all(Option::is_none) {
            return Ok(None);
        }
        let units = [1, winograd.transform.outputs, winograd.transform.outputs];
        let most = [dims.batch, winograd.patches[0], winograd.patches[1]];
        let mut counts = Vec::with_capacity(3);
        for d in 0..3 {
            counts.push(match extents[d] {
                None => cx.index(most[d]),
                Some(extent) => {
                    let size = cx.extent(extent, sizes[d])?;
                    let (count, _) =
                        cx.div_rem(&Index::scalar(size).plus_constant(units[d] - 1), units[d])?;
                    cx.scalar_value(&count)?
                }
            });
        }
        let mut hidden = None;
        if extents != needed {
            let (mut with_patches, mut all) = ([counts[0]; 3], [counts[0]; 3]);
            for d in 0..3 {
                with_patches[d] = cx.mul_constant(counts[d], units[d]);
                all[d] = match needed[d] {
                    Some(extent) => cx.extent(extent, sizes[d])?,
                    None => cx.index(sizes[d]),
                };
            }
            hidden = Some([with_patches, all]);
        }
        let one = cx.index(1);
        let image = cx.mul(counts[1], counts[2]);
        let all = cx.mul(counts[0], image);
        cx.learn(all, Facts::range(0, winograd.all_patches(dims)));
        let (blocks, _) =
            cx.div_rem(&Index::scalar(all).plus_constant(winograd.block - 1), winograd.block)?;
        let blocks = cx.scalar_value(&blocks)?;
        let patches = [greater(cx, counts[1], one), greater(cx, counts[2], one)];
        Ok(Some(Self { patches, all, blocks, hidden }))
    }

    /// Returns the blocks of a part of the work.
    pub(super) fn span(
        self,
        cx: &mut KernelContext<'_>,
        part: &Index,
        parts: i64,
        most: i64,
    ) -> Result<Span> {
        let part = cx.scalar_value(part)?;
        let next = cx.add_constant(part, 1);
        let mut bounds = [part, next];
        for bound in &mut bounds {
            let product = cx.mul(*bound, self.blocks);
            cx.learn(product, Facts::range(0, most.saturating_mul(parts)));
            let (first, _) = cx.div_rem(&Index::scalar(product), parts)?;
            *bound = cx.scalar_value(&first)?;
        }
        Ok(Span::Part { begin: bounds[0], end: bounds[1], steps: most, is_one: false })
    }

    /// Returns the patches of a block: blocks differ by at most one.
    pub(super) fn block(self, cx: &mut KernelContext<'_>, number: ValueId) -> Block {
        let next = cx.add_constant(number, 1);
        let [begin, end] = [number, next].map(|number| {
            let product = cx.mul(number, self.all);
            cx.binary(BinaryOp::DivideSigned, product, self.blocks)
        });
        Block { begin, end }
    }
}

impl Nest<'_> {
    /// Returns the position of a patch of a run.
    pub(super) fn patch_of_run(
        &self,
        cx: &mut KernelContext<'_>,
        run: Run,
        number: ValueId,
    ) -> Result<Patch> {
        let mut rest = number;
        let mut outputs = [number; 2];
        for d in [1, 0] {
            let quotient = cx.binary(BinaryOp::DivideSigned, rest, run.patches[d]);
            let whole = cx.mul(quotient, run.patches[d]);
            let index = cx.sub(rest, whole);
            cx.learn(index, Facts::range(0, self.winograd.patches[d] - 1));
            outputs[d] = cx.scalar_value(&Index::scalar(index).times(self.winograd.transform.outputs))?;
            rest = quotient;
        }
        cx.learn(rest, Facts::range(0, self.dims.batch - 1));
        Ok(Patch { image: rest, outputs })
    }

    /// Passes the needed pixels beyond all patches, which a mask hides, to the epilogue. The first
    /// task does it for all.
    pub(super) fn hidden(&self, cx: &mut KernelContext<'_>, run: Run, task: &Index) -> Result<()> {
        let Some([with_patches, all]) = run.hidden else { return Ok(()) };
        let (zero, task) = (cx.index(0), cx.scalar_value(task)?);
        let is_first = cx.compare(Predicate::Equal, task, zero);
        let images = cx.select(is_first, all[0], zero);
        let [lines, columns] = [0, 1].map(|d| self.dims.spatial[d].output);
        let panels = Span::All(self.winograd.whole_panels(self.dims));
        cx.for_dynamic(zero, images, self.dims.batch, &[], |cx, image, _| {
            cx.for_dynamic(zero, all[1], lines, &[], |cx, line, _| {
                let is_image = cx.compare(Predicate::Less, image, with_patches[0]);
                let is_line = cx.compare(Predicate::Less, line, with_patches[1]);
                let has_patches = cx.and(is_image, is_line);
                let begin = cx.select(has_patches, with_patches[2], zero);
                cx.for_dynamic(begin, all[2], columns, &[], |cx, column, _| {
                    let line = Index::scalar(image).times(lines).plus(&Index::scalar(line));
                    let pixel = line.times(columns).plus(&Index::scalar(column));
                    self.panels(cx, panels, &mut |cx, first, parts| {
                        parts.iter().try_for_each(|&part| {
                            let none = tile::zero(cx, Type::vector(self.scalar, part.lanes));
                            self.hand_over(cx, &pixel, first, part, none)
                        })
                    })
                    .map(|()| Vec::new())
                })
            })
        })
        .map(|_| ())
    }

    /// Returns the number of register tiles of a block with this many patches.
    pub(super) fn tiles_of_block(&self, cx: &mut KernelContext<'_>, patches: ValueId) -> Result<ValueId> {
        let rows = i64::from(self.winograd.tile.rows);
        cx.learn(patches, Facts::range(0, self.winograd.block));
        let (tiles, _) = cx.div_rem(&Index::scalar(patches).plus_constant(rows - 1), rows)?;
        let (tiles, most) = (cx.scalar_value(&tiles)?, cx.index((self.winograd.block + rows - 1) / rows));
        Ok(lesser(cx, tiles, most))
    }
}
