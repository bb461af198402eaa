//! Lengths of sequences, which may depend on a size that is known at run time.

use crate::context::KernelContext;
use crate::index::Index;
use hlo::analysis::Extent;
use nest::ValueId;
use support::Result;

/// A number of elements: all there are, or fewer if they depend on a size.
#[derive(Clone, Copy)]
pub(super) struct Length {
    pub(super) most: i64,
    pub(super) extent: Option<Extent>,
}

impl Length {
    /// Returns a length that is constant if the extent covers all elements in every run.
    pub(super) fn of(cx: &KernelContext<'_>, most: i64, extent: Option<Extent>) -> Self {
        Self { most, extent: extent.filter(|&extent| !cx.covers(extent, most)) }
    }

    pub(super) fn value(self, cx: &mut KernelContext<'_>) -> Result<ValueId> {
        match self.extent {
            Some(extent) => cx.extent(extent, self.most),
            None => Ok(cx.index(self.most)),
        }
    }

    /// Returns the number of elements in whole steps.
    pub(super) fn whole(self, cx: &mut KernelContext<'_>, step: i64) -> Result<ValueId> {
        if self.extent.is_none() {
            return Ok(cx.index(self.most / step * step));
        }
        let length = self.value(cx)?;
        let (steps, _) = cx.div_rem(&Index::scalar(length), step)?;
        cx.scalar_value(&steps.times(step))
    }

    /// Returns the number of steps that cover all elements.
    pub(super) fn steps(self, cx: &mut KernelContext<'_>, step: i64) -> Result<ValueId> {
        if self.extent.is_none() {
            return Ok(cx.index((self.most + step - 1) / step));
        }
        let length = self.value(cx)?;
        let (steps, _) = cx.div_rem(&Index::scalar(length).plus_constant(step - 1), step)?;
        cx.scalar_value(&steps)
    }

    /// Runs `body` for each whole step.
    pub(super) fn for_whole(
        self,
        cx: &mut KernelContext<'_>,
        step: i64,
        body: impl FnMut(&mut KernelContext<'_>, Index) -> Result<()>,
    ) -> Result<()> {
        let most = self.most / step * step;
        if self.extent.is_none() {
            return cx.for_range(0, most, step, body);
        }
        let (begin, end) = (cx.index(0), self.whole(cx, step)?);
        between(cx, (begin, end), most, step, body)
    }

    /// Runs `body` for each element after the whole steps.
    pub(super) fn for_rest(
        self,
        cx: &mut KernelContext<'_>,
        step: i64,
        body: impl FnMut(&mut KernelContext<'_>, Index) -> Result<()>,
    ) -> Result<()> {
        if self.extent.is_none() {
            return cx.for_range(self.most / step * step, self.most, 1, body);
        }
        let (begin, end) = (self.whole(cx, step)?, self.value(cx)?);
        between(cx, (begin, end), self.most, 1, body)
    }

    /// Runs `body` for each element.
    pub(super) fn for_each(
        self,
        cx: &mut KernelContext<'_>,
        body: impl FnMut(&mut KernelContext<'_>, Index) -> Result<()>,
    ) -> Result<()> {
        cx.for_needed_indices((0, self.most, self.extent), body)
    }
}

/// Runs `body` for steps between two numbers of at most `most`.
fn between(
    cx: &mut KernelContext<'_>,
    bounds: (ValueId, ValueId),
    most: i64,
    step: i64,
    mut body: impl FnMut(&mut KernelContext<'_>, Index) -> Result<()>,
) -> Result<()> {
    let body = |cx: &mut KernelContext<'_>, index: Index, _: &[ValueId]| body(cx, index).map(|()| Vec::new());
    cx.for_steps(bounds, (0, most), step, &[], body).map(|_| ())
}
