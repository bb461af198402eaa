//! Buffers that a loop fills before anybody reads them need nothing in them when it begins.

use super::Loop;
use super::row_hoisting::{affine, is_only_written};
use super::rows::{Index, Row, covers_all};
use crate::pass::{Changed, Pass};
use hlo::{Module, Op};
use support::Result;

/// `while((.., broadcast(0), ..)) => while((.., AllocateBuffer(), ..))`, where the body only writes rows into the element,
/// each of its rows in one iteration.
///
/// `AllocateBuffer` is XLA's own call for an array of any content. It needs no code; what filled the buffer, and the copies
/// of that if several buffers begin with it, are gone. Exact for every input.
pub struct WhileLoopUninitializedBuffers;

/// XLA's name of the call.
const TARGET: &str = "AllocateBuffer";

impl Pass for WhileLoopUninitializedBuffers {
    fn name(&self) -> &'static str {
        "while-loop-uninitialized-buffers"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(found) = Loop::at(module, site) else { continue };
            let elements: Vec<usize> = (0..found.element_count(module))
                .filter(|&element| is_written_whole(module, found, element))
                .collect();
            for element in elements {
                let shape = module[found.caller][found.id].shape().get(&[element]).cloned();
                let Some(shape) = shape else { continue };
                let op = Op::CustomCall {
                    custom_call_target: TARGET.to_owned(),
                    backend_config: String::new(),
                    custom_call_has_side_effect: false,
                    attributes: hlo::RawAttributes::default(),
                };
                let caller = module.computation_mut(found.caller);
                let metadata = caller[found.id].metadata().clone();
                let buffer = caller.add("buffer", op, shape, &[], metadata);
                found.set_start(module, element, buffer);
                changed = true;
            }
            if changed {
                crate::simplify::dce::sweep(module.computation_mut(found.caller));
            }
        }
        Ok(changed.into())
    }
}

/// Whether the loop writes every row of an element, reads none, and begins with a value that is made for it.
fn is_written_whole(module: &Module, found: Loop, element: usize) -> bool {
    let start = found.start(module, element);
    let is_fill = matches!(module[found.caller][start].op(), Op::Broadcast { .. } | Op::Constant { .. });
    if !is_fill || !is_only_written(module, found, element) {
        return false;
    }
    let body = &module[found.body];
    let Some(shape) = found.array(module, element) else { return false };
    let &[_, slot, index, ref rest @ ..] = body[found.next(module, element)].operands() else { return false };
    let Some(slot) = body[slot].shape().as_array() else { return false };
    let is_row = slot.rank() == shape.rank()
        && slot.size(0) == 1
        && slot.sizes()[1..] == shape.sizes()[1..]
        && rest.len() + 1 == shape.rank();
    let affine = affine(module, found, &found.state_ranges(module), index);
    is_row
        && affine.is_some_and(|affine| {
            let row = Row { index: Index::Affine(affine), count: shape.size(0) };
            covers_all(module, found, row, found.trip_count(module))
        })
}
