//! The blocks of patches that are needed, if the output ends at sizes that are known only at run
//! time.

use super::{Block, Nest};
use crate::context::KernelContext;
use hlo::analysis::Extent;
use nest::{Predicate, ValueId};
use support::Result;

impl Nest<'_> {
    /// Returns a condition that holds if some pixel of a block may be needed, or `None` if all
    /// pixels of the output are.
    pub(super) fn is_needed(&self, cx: &mut KernelContext<'_>, block: Block) -> Result<Option<ValueId>> {
        let needed = cx.needed_for(cx.fusion().root, self.plan.hero);
        let sizes = [self.dims.batch, self.dims.spatial[0].output, self.dims.spatial[1].output];
        let mut limits = [None; 3];
        for (limit, (&extent, &size)) in limits.iter_mut().zip(needed.iter().zip(&sizes)) {
            *limit = extent.filter(|&extent: &Extent| !cx.covers(extent, size)).map(|extent| (extent, size));
        }
        if limits.iter().all(Option::is_none) {
            return Ok(None);
        }
        let end = cx.add_constant(block.end, -1);
        let (first, last) = (self.patch(cx, block.begin)?, self.patch(cx, end)?);
        let has_images = cx.compare(Predicate::NotEqual, first.image, last.image);
        let has_lines = cx.compare(Predicate::NotEqual, first.outputs[0], last.outputs[0]);
        let has_lines = cx.or(has_images, has_lines);
        let mut all = None;
        let firsts = [first.image, first.outputs[0], first.outputs[1]];
        for (d, (limit, index)) in limits.into_iter().zip(firsts).enumerate() {
            let Some((extent, size)) = limit else { continue };
            let limit = cx.extent(extent, size)?;
            let mut is_inside = cx.compare(Predicate::Less, index, limit);
            // A block of several images or lines contains the first index of the next one.
            if d > 0 {
                is_inside = cx.or(is_inside, if d == 1 { has_images } else { has_lines });
            }
            all = Some(all.map_or(is_inside, |all| cx.and(all, is_inside)));
        }
        Ok(all)
    }
}
