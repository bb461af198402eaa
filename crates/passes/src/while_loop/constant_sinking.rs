//! Constants go into the loops that read them.

use super::{Loop, simplifier};
use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use support::Result;

/// Makes condition and body of a loop read a constant, or the broadcast of one, where they read an element of the state that
/// starts as it and that the body passes through. A broadcast of anything else goes in too if the body only takes slices
/// of it: what is broadcast becomes an element of the state instead. Exact for every input.
///
/// Rules see constants in bodies then, and kernels of contractions that are constants.
pub struct WhileLoopConstantSinking;

impl Pass for WhileLoopConstantSinking {
    fn name(&self) -> &'static str {
        "while-loop-constant-sinking"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        // What sinks into a loop sinks into the loops inside next.
        for site in Loop::sites(module).into_iter().rev() {
            let Some(found) = Loop::at(module, site) else { continue };
            let is_used =
                |k: &usize| [found.condition, found.body].iter().any(|&id| is_used(module, found, id, *k));
            let constants = found.invariants(module).into_iter().filter(is_used).filter_map(|element| {
                Some((element, constant(&module[found.caller], found.start(module, element))?))
            });
            let constants: Vec<(usize, Vec<InstructionId>)> = constants.collect();
            let broadcasts =
                found.invariants(module).into_iter().filter(|&k| is_sliced_broadcast(module, found, k));
            let broadcasts: Vec<usize> = broadcasts.collect();
            if constants.is_empty() && broadcasts.is_empty() {
                continue;
            }
            let found = found.exclusive(module);
            for (element, chain) in constants {
                sink(module, found, element, &chain);
            }
            for element in broadcasts {
                sink_broadcast(module, found, element);
            }
            changed = true;
        }
        Ok(changed.into())
    }
}

/// Whether a computation of the loop uses an element for more than to pass it through.
fn is_used(module: &Module, found: Loop, id: ComputationId, element: usize) -> bool {
    let computation = &module[id];
    let reads = Loop::reads(computation, computation.parameters()[0], element);
    let is_returned = |read: InstructionId, user: InstructionId| {
        let root = computation.root();
        let places = computation[user].operands().iter().enumerate().filter(|&(_, &operand)| operand == read);
        id == found.body && user == root && places.map(|(place, _)| place).eq([element])
    };
    reads.iter().any(|&read| {
        computation.root() == read || computation[read].users().iter().any(|&user| !is_returned(read, user))
    })
}

/// A constant, or a broadcast and its constant, innermost first.
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

fn sink(module: &mut Module, found: Loop, element: usize, chain: &[InstructionId]) {
    for id in [found.condition, found.body] {
        if !is_used(module, found, id, element) {
            continue;
        }
        let mut copy = None;
        for &link in chain {
            let original = &module[found.caller][link];
            let (op, shape) = (original.op().clone(), original.shape().clone());
            let (name, metadata) = (original.name().to_owned(), original.metadata().clone());
            let operands: Vec<InstructionId> = copy.into_iter().collect();
            copy = Some(module.computation_mut(id).add(&name, op, shape, &operands, metadata));
        }
        let Some(copy) = copy else { continue };
        simplifier::replace_reads_with(module, found, id, element, copy);
    }
}

/// Whether an element starts as the broadcast of something that is no constant, and the body only takes slices of it.
fn is_sliced_broadcast(module: &Module, found: Loop, element: usize) -> bool {
    let caller = &module[found.caller];
    let start = found.start(module, element);
    let is_broadcast =
        matches!(caller[start].op(), Op::Broadcast { .. }) && constant(caller, start).is_none();
    let (body, condition) = (&module[found.body], &module[found.condition]);
    let reads = Loop::reads(body, body.parameters()[0], element);
    let mut users = reads.iter().flat_map(|&read| body[read].users()).filter(|&&user| user != body.root());
    is_broadcast
        && !Loop::reads(condition, condition.parameters()[0], element)
            .iter()
            .any(|&read| !condition[read].users().is_empty())
        && is_used(module, found, found.body, element)
        && users.all(|&user| {
            let is_slice = matches!(body[user].op(), Op::DynamicSlice { .. } | Op::Slice { .. });
            is_slice && reads.contains(&body[user].operands()[0])
        })
}

fn sink_broadcast(module: &mut Module, found: Loop, element: usize) {
    let start = found.start(module, element);
    let broadcast = &module[found.caller][start];
    let (op, shape) = (broadcast.op().clone(), broadcast.shape().clone());
    let (metadata, source) = (broadcast.metadata().clone(), broadcast.operands()[0]);
    let small = found.add_element(module, source);
    let small = found.read(module, found.body, small);
    let copy = module.computation_mut(found.body).add("", op, shape, &[small], metadata);
    simplifier::replace_reads_with(module, found, found.body, element, copy);
}
