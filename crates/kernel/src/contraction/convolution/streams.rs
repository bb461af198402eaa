//! Arrays that the epilogue of a convolution reads and writes, element by element. If they do not
//! fit into the second-level cache, their lines are prefetched while the sums are computed.

use crate::context::KernelContext;
use crate::contraction::tile::Columns;
use crate::index::Index;
use hlo::CACHE_LINE;
use nest::ValueId;
use plan::ConvolutionPlan;
use support::Result;

/// Addresses of the arrays and their element sizes. Empty if all arrays may stay in the cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Vec<(ValueId, i64)>);

/// Minimum number of products in a sum. Shorter sums are complete before a prefetched line arrives.
const ENOUGH_SUMMANDS: i64 = 48;

impl Streams {
    /// Finds the arrays with the shape of the convolution: the result and operands of the epilogue.
    /// Prefetching an array that is read at other positions is useless but harmless.
    pub(super) fn new(cx: &KernelContext<'_>, plan: &ConvolutionPlan) -> Result<Self> {
        let shape = cx.shape(plan.hero)?;
        let result = &cx.results()[0];
        if plan.dims.taps().saturating_mul(plan.dims.inputs) < ENOUGH_SUMMANDS
            || result.shape.sizes() != shape.sizes()
        {
            return Ok(Self::default());
        }
        let mut arrays = vec![(result.pointer, result.shape.element_type.byte_size() as i64)];
        for number in 0..cx.fusion().caller[cx.fusion().instruction].operands().len() {
            let is_own = number == plan.input_operand || number == plan.kernel_operand;
            let Some(memory) = cx.operand(number).ok().filter(|_| !is_own) else { continue };
            let is_read = memory.shape.sizes() == shape.sizes();
            if is_read && !cx.is_same_memory(memory.pointer, result.pointer) {
                arrays.push((memory.pointer, memory.shape.element_type.byte_size() as i64));
            }
        }
        let bytes = arrays.iter().map(|a| a.1).sum::<i64>().saturating_mul(shape.element_count());
        let leaves = bytes as u64 > cx.target().l2_bytes / 2;
        Ok(if leaves { Self(arrays) } else { Self::default() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Prefetches the lines of some neighboring features, starting at a position.
    pub(super) fn fetch(&self, cx: &mut KernelContext<'_>, first: &Index, parts: &[Columns]) -> Result<()> {
        let Some(last) = parts.last() else { return Ok(()) };
        let first = cx.scalar_value(first)?;
        for &(pointer, size) in &self.0 {
            let pointer = cx.offset(pointer, first, size);
            let bytes = (last.offset + i64::from(last.valid)) * size;
            for line in (0..bytes).step_by(CACHE_LINE as usize) {
                let line = cx.offset_bytes(pointer, line);
                cx.prefetch(line, 1);
            }
        }
        Ok(())
    }
}
