//! Attention: computes a block of scores in scratch, applies softmax row by row, and multiplies the
//! result by the values.
//!
//! Each part is emitted like a kernel of its own, with the part as the context's body. The result
//! of the part before is an operand. Scratch contains only its rows that belong to the block.

use super::dot::row_tiles::first_row;
use super::dot::{Needed, RowSteps, Tiles, part as dot};
use crate::context::limits::lesser;
use crate::context::parameters::Memory;
use crate::context::tasks::Span;
use crate::context::{KernelContext, Part};
use crate::index::{Facts, Index};
use crate::reduction::rows;
use buffers::ALIGNMENT;
use hlo::InstructionId;
use nest::{BinaryOp, Predicate, ValueId};
use plan::{AttentionPlan, DotPlan};
use shape::ArrayShape;
use support::Result;

/// Writes the result. Tasks are blocks of rows.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &AttentionPlan) -> Result<()> {
    if cx.results()[0].shape.element_count() == 0 {
        return Ok(());
    }
    let needed = NeededParts::of(cx, plan)?;
    cx.for_tasks(|cx, task| {
        let spans = cx.spans(&task, &[plan.scores.shape.batch, plan.blocks], &plan.cuts)?;
        let &[products, blocks] = &spans[..] else {
            return Err(support::Error::internal("expected two loops over attention"));
        };
        let scratch = cx.worker_scratch();
        let is_new = match blocks {
            Span::All(_) => None,
            // Panels that the worker's previous task packed are still valid.
            Span::Part { begin, .. } => {
                let zero = cx.index(0);
                let is_first_block = cx.compare(Predicate::Equal, begin, zero);
                let is_first_task = cx.is_first_task(&task)?;
                is_first_task.map(|first| cx.binary(BinaryOp::Or, first, is_first_block))
            }
        };
        let products = cx.limited(products, needed.values.batches, 1)?;
        let blocks = needed.blocks(cx, plan, blocks)?;
        let values = cx.offset_bytes(scratch, plan.values_offset as i64);
        let panels = Panels { plan, needed: &needed, keys: scratch, values };
        let product = |cx: &mut KernelContext<'_>, batch: Index| {
            match is_new {
                None => panels.pack(cx, &batch)?,
                Some(is_new) => cx.when(is_new, |cx| panels.pack(cx, &batch))?,
            }
            cx.for_span(blocks, 1, |cx, block| {
                let block = Block::new(cx, plan, &needed, &batch, &block, scratch)?;
                block.emit(cx, &panels)
            })
        };
        match blocks {
            Span::Part { begin, end, .. } if needed.values.rows.is_some() => {
                let has_blocks = cx.compare(Predicate::Less, begin, end);
                cx.when(has_blocks, |cx| cx.for_span(products, 1, product))
            }
            _ => cx.for_span(products, 1, product),
        }
    })
}

/// The elements of both products that are needed.
struct NeededParts {
    scores: Needed,
    values: Needed,
}

impl NeededParts {
    fn of(cx: &KernelContext<'_>, plan: &AttentionPlan) -> Result<Self> {
        let values = Needed::of(cx, &plan.values, cx.fusion().root)?;
        // Of the scores, columns may be hidden by the masks of softmax.
        let columns = Needed::of(cx, &plan.scores, plan.scores_root)?.columns;
        Ok(Self { scores: Needed { columns, ..values }, values })
    }

    /// Returns the part of some tiles of rows that is needed.
    fn tiles(&self, cx: &mut KernelContext<'_>, plan: &AttentionPlan, tiles: Span) -> Result<RowSteps> {
        match (plan.scores.tiled(), plan.values.tiled()) {
            (Some(_), Some(_)) => self.values.rows(cx, &plan.scores, tiles),
            _ => Ok(RowSteps::all(tiles)),
        }
    }

    /// Returns the part of some blocks with rows that are needed.
    fn blocks(&self, cx: &mut KernelContext<'_>, plan: &AttentionPlan, blocks: Span) -> Result<Span> {
        let steps = plan.scores.steps()[2];
        let tiles = self.tiles(cx, plan, Span::All(steps))?;
        let Span::Part { end, .. } = tiles.span else { return Ok(blocks) };
        // A block with less than the average number of tiles begins no later than this.
        let each = (steps / plan.blocks.max(1)).max(1);
        let (count, _) = cx.div_rem(&Index::scalar(end).plus_constant(each - 1), each)?;
        let count = cx.scalar_value(&count)?;
        Ok(cx.until(blocks, count))
    }
}

/// Addresses of the packed right operands.
struct Panels<'p> {
    plan: &'p AttentionPlan,
    needed: &'p NeededParts,
    keys: ValueId,
    values: ValueId,
}

impl Panels<'_> {
    fn pack(&self, cx: &mut KernelContext<'_>, batch: &Index) -> Result<()> {
        let plan = self.plan;
        let NeededParts { scores, values } = *self.needed;
        let both = [(&plan.scores, scores, self.keys), (&plan.values, values, self.values)];
        for (product, needed, to) in both {
            if let Some(tiles) = Tiles::of(product).filter(|tiles| tiles.tiled.keeps_panels) {
                dot::pack_panels(cx, tiles, batch, needed, to)?;
            }
        }
        Ok(())
    }
}

/// Some rows of one product.
struct Block<'p> {
    plan: &'p AttentionPlan,
    needed: &'p NeededParts,
    batch: &'p Index,
    /// The tiles of these rows.
    tiles: Option<RowSteps>,
    /// The first row, and one past the last.
    rows: (ValueId, ValueId),
    /// Address of their scores.
    scores: ValueId,
}

impl<'p> Block<'p> {
    fn new(
        cx: &mut KernelContext<'_>,
        plan: &'p AttentionPlan,
        needed: &'p NeededParts,
        batch: &'p Index,
        block: &Index,
        scratch: ValueId,
    ) -> Result<Self> {
        let m = plan.scores.shape.m;
        let scores = cx.offset_bytes(scratch, plan.scores_offset as i64);
        let all = (cx.index(0), cx.index(m));
        let steps = plan.scores.steps()[2];
        let mut tiles = Span::All(steps);
        if plan.blocks > 1 {
            let number = cx.scalar_value(block)?;
            tiles = cx.span(number, plan.blocks, steps);
        }
        let tiles = needed.tiles(cx, plan, tiles)?;
        let Span::Part { begin, end, .. } = tiles.span else {
            return Ok(Self { plan, needed, batch, tiles: None, rows: all, scores });
        };
        let mut rows = all;
        if let Some(scores) = Tiles::of(&plan.scores) {
            rows = (first_row(cx, scores, begin), first_row(cx, scores, end));
        }
        if let Some(count) = tiles.count {
            rows.1 = lesser(cx, rows.1, count);
        }
        for row in [rows.0, rows.1] {
            cx.learn(row, Facts::range(0, m));
        }
        Ok(Self { plan, needed, batch, tiles: Some(tiles), rows, scores })
    }

    fn emit(&self, cx: &mut KernelContext<'_>, panels: &Panels<'_>) -> Result<()> {
        let plan = self.plan;
        let (whole, packed) = (cx.fusion(), cx.packed().to_vec());
        let part = |fusion, results| Part { fusion, results, packed: packed.to_vec() };
        let scores = self.memory(cx, plan.scores_root)?;
        let products = part(whole.part(plan.scores_root, None), vec![scores.clone()]);
        let steps = self.steps(&plan.scores);
        let needed = self.needed.scores;
        cx.with_part(products, |cx| {
            dot::emit(cx, &plan.scores, self.batch, None, panels.keys, steps, needed)
        })?;
        cx.set_operand(plan.handed, scores);
        let softmax = whole.part(plan.softmax_root, Some((plan.scores_root, plan.handed)));
        let softmax = part(softmax, vec![self.memory(cx, plan.softmax_root)?]);
        // Scratch contains other scores before and after.
        cx.with_part(softmax, |cx| cx.pinned(|cx| cx.scoped(|cx| self.walk(cx))))?;
        let values =
            part(whole.part(whole.root, Some((plan.weights, plan.handed + 1))), cx.results().to_vec());
        let weights = dot::Rows { pointer: self.scores, first: self.rows.0, stride: plan.row };
        let steps = self.steps(&plan.values);
        cx.with_part(values, |cx| {
            let needed = self.needed.values;
            dot::emit(cx, &plan.values, self.batch, Some(weights), panels.values, steps, needed)
        })
    }

    /// Applies softmax to the rows.
    fn walk(&self, cx: &mut KernelContext<'_>) -> Result<()> {
        let (begin, end) = self.rows;
        let m = self.plan.scores.shape.m;
        cx.for_dynamic(begin, end, m, &[], |cx, row, _| {
            let number = self.batch.times(m).plus(&Index::scalar(row));
            rows::emit_row(cx, &self.plan.softmax, &number).map(|()| Vec::new())
        })
        .map(|_| ())
    }

    fn steps(&self, product: &DotPlan) -> RowSteps {
        match self.tiles {
            Some(tiles) if product.tiled().is_some() => tiles,
            _ => RowSteps::all(Span::All(product.steps()[2])),
        }
    }

    /// Returns the array of all scores, or of their weights. Scratch contains only the block's
    /// rows.
    fn memory(&self, cx: &KernelContext<'_>, id: InstructionId) -> Result<Memory> {
        let shape = cx.shape(id)?;
        let (m, n, row) = (self.plan.scores.shape.m, self.plan.scores.shape.n, self.plan.row);
        let mut sizes = shape.sizes();
        // Only rows that lie in the last dimension are padded.
        if let Some(last) = sizes.last_mut().filter(|_| row != n) {
            *last = row;
        }
        let first = self.batch.times(m).plus(&Index::scalar(self.rows.0)).times(row);
        let shape = ArrayShape::new(shape.element_type, &sizes);
        Ok(Memory { pointer: self.scores, shape, alignment: ALIGNMENT as u32, first })
    }
}
