//! Leaves buffers uninitialized if a loop fills them before they are read.

use super::Loop;
use super::row_hoisting::{affine, is_only_written};
use super::rows::{Index, Row, covers_all};
use crate::pass::{Changed, Pass};
use hlo::custom_call::allocation;
use hlo::{Module, Op};
use support::Result;

/// `while((.., broadcast(0), ..)) => while((.., AllocateBuffer(), ..))`, if the body only writes
/// rows of the element and each row in exactly one iteration.
///
/// `AllocateBuffer` is XLA's custom call for an uninitialized array. It needs no code. The fill of
/// the buffer disappears, and so do its copies if several buffers share it. Exact for every input.
pub struct WhileLoopUninitializedBuffers;

impl Pass for WhileLoopUninitializedBuffers {
    fn name(&self) -> &'static str {
        "while-loop-uninitialized-buffers"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(while_loop) = Loop::at(module, site) else { continue };
            let elements: Vec<usize> = (0..while_loop.element_count(module))
                .filter(|&element| is_written_whole(module, while_loop, element))
                .collect();
            for element in elements {
                let shape = module[while_loop.caller][while_loop.id].shape().get(&[element]).cloned();
                let Some(shape) = shape else { continue };
                let caller = module.computation_mut(while_loop.caller);
                let metadata = caller[while_loop.id].metadata().clone();
                let buffer = caller.add("buffer", allocation(), shape, &[], metadata);
                while_loop.set_start(module, element, buffer);
                changed = true;
            }
            if changed {
                crate::simplify::dce::sweep(module.computation_mut(while_loop.caller));
            }
        }
        Ok(changed.into())
    }
}

/// True if the loop writes every row of an element, reads none, and the element starts as a fill.
fn is_written_whole(module: &Module, while_loop: Loop, element: usize) -> bool {
    let start = while_loop.start(module, element);
    let is_fill = matches!(module[while_loop.caller][start].op(), Op::Broadcast { .. } | Op::Constant { .. });
    if !is_fill || !is_only_written(module, while_loop, element) {
        return false;
    }
    let body = &module[while_loop.body];
    let Some(shape) = while_loop.array(module, element) else { return false };
    let &[_, slot, index, ref rest @ ..] = body[while_loop.next(module, element)].operands() else {
        return false;
    };
    let Some(slot) = body[slot].shape().as_array() else { return false };
    let is_row = slot.rank() == shape.rank()
        && slot.size(0) == 1
        && slot.sizes()[1..] == shape.sizes()[1..]
        && rest.len() + 1 == shape.rank();
    let affine = affine(module, while_loop, &while_loop.state_ranges(module), index);
    is_row
        && affine.is_some_and(|affine| {
            let row = Row { index: Index::Affine(affine), count: shape.size(0) };
            covers_all(module, while_loop, row, while_loop.trip_count(module))
        })
}
