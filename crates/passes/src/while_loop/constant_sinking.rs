//! Sinks constants into the loops that read them.

use super::{Loop, simplifier};
use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use support::Result;

/// Makes the condition and body of a loop read a constant, or the broadcast of one, instead of a
/// state element that starts with this value and that the body passes through. A broadcast of
/// another value is sunk, too, if the body only slices it; its operand becomes a state element
/// instead. Exact for every input.
///
/// Other rules can then see constants in bodies, and contractions have constant kernels.
pub struct WhileLoopConstantSinking;

impl Pass for WhileLoopConstantSinking {
    fn name(&self) -> &'static str {
        "while-loop-constant-sinking"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        // Constants that sink into a loop sink into the loops inside it next.
        for site in Loop::sites(module).into_iter().rev() {
            let Some(while_loop) = Loop::at(module, site) else { continue };
            let is_used = |k: &usize| {
                [while_loop.condition, while_loop.body].iter().any(|&id| is_used(module, while_loop, id, *k))
            };
            let constants = while_loop.invariants(module).into_iter().filter(is_used).filter_map(|element| {
                Some((element, constant(&module[while_loop.caller], while_loop.start(module, element))?))
            });
            let constants: Vec<(usize, Vec<InstructionId>)> = constants.collect();
            let broadcasts = while_loop
                .invariants(module)
                .into_iter()
                .filter(|&k| is_sliced_broadcast(module, while_loop, k));
            let broadcasts: Vec<usize> = broadcasts.collect();
            if constants.is_empty() && broadcasts.is_empty() {
                continue;
            }
            let while_loop = while_loop.exclusive(module);
            for (element, chain) in constants {
                sink(module, while_loop, element, &chain);
            }
            for element in broadcasts {
                sink_broadcast(module, while_loop, element);
            }
            changed = true;
        }
        Ok(changed.into())
    }
}

/// True if a computation of the loop uses an element other than to pass it through.
fn is_used(module: &Module, while_loop: Loop, id: ComputationId, element: usize) -> bool {
    let computation = &module[id];
    let reads = Loop::reads(computation, computation.parameters()[0], element);
    let is_returned = |read: InstructionId, user: InstructionId| {
        let root = computation.root();
        let places = computation[user].operands().iter().enumerate().filter(|&(_, &operand)| operand == read);
        id == while_loop.body && user == root && places.map(|(place, _)| place).eq([element])
    };
    reads.iter().any(|&read| {
        computation.root() == read || computation[read].users().iter().any(|&user| !is_returned(read, user))
    })
}

/// A constant, or a constant and its broadcast, in that order.
fn constant(computation: &Computation, id: InstructionId) -> Option<Vec<InstructionId>> {
    match computation[id].op() {
        Op::Constant { .. } => Some(vec![id]),
        Op::Broadcast { .. } => {
            let operand = computation[id].operands()[0];
            matches!(computation[operand].op(), Op::Constant { .. }).then(|| vec![operand, id])
        }
        _ => None,
    }
}

fn sink(module: &mut Module, while_loop: Loop, element: usize, chain: &[InstructionId]) {
    for id in [while_loop.condition, while_loop.body] {
        if !is_used(module, while_loop, id, element) {
            continue;
        }
        let mut copy = None;
        for &link in chain {
            let original = &module[while_loop.caller][link];
            let (op, shape) = (original.op().clone(), original.shape().clone());
            let (name, metadata) = (original.name().to_owned(), original.metadata().clone());
            let operands: Vec<InstructionId> = copy.into_iter().collect();
            copy = Some(module.computation_mut(id).add(&name, op, shape, &operands, metadata));
        }
        let Some(copy) = copy else { continue };
        simplifier::replace_reads_with(module, while_loop, id, element, copy);
    }
}

/// True if an element starts as the broadcast of a value that is not constant, and the body only
/// slices it.
fn is_sliced_broadcast(module: &Module, while_loop: Loop, element: usize) -> bool {
    let caller = &module[while_loop.caller];
    let start = while_loop.start(module, element);
    let is_broadcast =
        matches!(caller[start].op(), Op::Broadcast { .. }) && constant(caller, start).is_none();
    let (body, condition) = (&module[while_loop.body], &module[while_loop.condition]);
    let reads = Loop::reads(body, body.parameters()[0], element);
    let mut users = reads.iter().flat_map(|&read| body[read].users()).filter(|&&user| user != body.root());
    is_broadcast
        && !Loop::reads(condition, condition.parameters()[0], element)
            .iter()
            .any(|&read| !condition[read].users().is_empty())
        && is_used(module, while_loop, while_loop.body, element)
        && users.all(|&user| {
            let is_slice = matches!(body[user].op(), Op::DynamicSlice { .. } | Op::Slice { .. });
            is_slice && reads.contains(&body[user].operands()[0])
        })
}

fn sink_broadcast(module: &mut Module, while_loop: Loop, element: usize) {
    let start = while_loop.start(module, element);
    let broadcast = &module[while_loop.caller][start];
    let (op, shape) = (broadcast.op().clone(), broadcast.shape().clone());
    let (metadata, source) = (broadcast.metadata().clone(), broadcast.operands()[0]);
    let small = while_loop.add_element(module, source);
    let small = while_loop.read(module, while_loop.body, small);
    let copy = module.computation_mut(while_loop.body).add("", op, shape, &[small], metadata);
    simplifier::replace_reads_with(module, while_loop, while_loop.body, element, copy);
}
