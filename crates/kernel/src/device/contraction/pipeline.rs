//! The loop over the summands of a tile, with two buffers in workgroup memory for each operand:
//! the threads load the next summands while they multiply these.

use crate::context::KernelContext;
use crate::index::{Facts, Index};
use nest::{Predicate, ValueId};
use support::Result;

/// The elements of an operand's tile that a thread loads.
pub(super) trait Stage {
    /// The elements of one step.
    type Values;

    /// The first buffer in workgroup memory.
    fn shared(&self) -> ValueId;

    /// Bytes of a buffer.
    fn bytes(&self) -> i64;

    /// Loads the elements of the step that begins at a summand.
    fn load(&self, cx: &mut KernelContext<'_>, summand: &Index) -> Result<Self::Values>;

    /// Stores the elements into a buffer.
    fn store(&self, cx: &mut KernelContext<'_>, buffer: ValueId, values: &Self::Values) -> Result<()>;
}

/// Returns the sums over `steps` steps of `depth` summands from the first one on. `products` adds
/// the products of a step, given a buffer of each stage, to sums. If there are several steps, all
/// threads have read the buffers when it returns.
pub(super) fn sums<S: Stage, const N: usize>(
    cx: &mut KernelContext<'_>,
    stages: [&S; N],
    first: &Index,
    [steps, depth]: [i64; 2],
    initial: &[ValueId],
    products: impl Fn(&mut KernelContext<'_>, &Index, [ValueId; N], &[ValueId]) -> Result<Vec<ValueId>>,
) -> Result<Vec<ValueId>> {
    for stage in stages {
        let values = stage.load(cx, first)?;
        stage.store(cx, stage.shared(), &values)?;
    }
    cx.barrier();
    if steps == 1 {
        let buffers = std::array::from_fn(|k| stages[k].shared());
        return products(cx, &Index::default(), buffers, initial);
    }
    cx.for_range_carrying(0, steps, 1, initial, |cx, step, sums| {
        let next = next_step(cx, &step, steps)?;
        let summand = first.plus(&next.times(depth));
        let mut values = Vec::with_capacity(N);
        for stage in stages {
            values.push(stage.load(cx, &summand)?);
        }
        let (_, parity) = cx.div_rem(&step, 2)?;
        let parity = cx.scalar_value(&parity)?;
        let one = cx.index(1);
        let other = cx.sub(one, parity);
        let buffers = std::array::from_fn(|k| cx.offset(stages[k].shared(), parity, stages[k].bytes()));
        let sums = products(cx, &step, buffers, sums)?;
        for (stage, values) in stages.iter().zip(&values) {
            let buffer = cx.offset(stage.shared(), other, stage.bytes());
            stage.store(cx, buffer, values)?;
        }
        cx.barrier();
        Ok(sums)
    })
}

/// Returns the number of the step whose elements are loaded during another one: the next one. The
/// last step loads its own again.
fn next_step(cx: &mut KernelContext<'_>, step: &Index, steps: i64) -> Result<Index> {
    let (step, last) = (cx.scalar_value(step)?, cx.index(steps - 1));
    let is_before = cx.compare(Predicate::Less, step, last);
    let next = cx.add_constant(step, 1);
    let next = cx.select(is_before, next, last);
    cx.learn(next, Facts::range(0, steps - 1));
    Ok(Index::scalar(next))
}
